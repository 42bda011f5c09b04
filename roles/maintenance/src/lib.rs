#![doc = include_str!("../README.md")]

mod backup;
mod check;
mod doctor;
mod place;
mod repair;
mod restore;
mod status;

pub use backup::{
    BackedUpSet, BackupOptions, BackupReport, KeptBackup, ListedBackup, Pruning, Retention,
    UntouchedFolder, backup, list_backups, plan_backup, refuse_backup,
};
pub use check::{
    CheckOptions, CheckReport, CheckSummary, ReportedFinding, SharedCheckOptions, check,
    check_shared,
};
pub use doctor::{
    AddressSubject, BucketSubject, ConfigurationSubject, DatabaseSubject, Diagnosis,
    DoctorObserver, DoctorOptions, DoctorReport, Listen, Subject, doctor,
};
pub use place::{
    DatabaseCheck, DatabaseStatus, Error, ErrorKind, LeaseStatus, NodeStatus, Place, ReadShare,
    StateFolders, StoreRecord, TablesStatus, hold, holder_of, refuse_held, there,
};
pub use repair::{RepairOptions, RepairReport, SharedRepairOptions, repair, repair_shared};
pub use restore::{RestoreOptions, RestoreReport, restore};
pub use status::{
    Attention, AuditStatus, CopyRun, CopyStatus, DiskUse, DumpUse, FailingTarget, FollowerStatus,
    HubStatus, ProblemStatus, PublishedCopy, PublishedStatus, STALLED_AFTER, STATUS_VERSION,
    SetStatus, StatusReport, StoreStatus, TopicStatus, copy_status, free_bytes, hub_status,
    replace_file, status, store_status,
};
