//! Names of the facts that the state of a copy has about the copy as a whole.

pub(crate) const BASE: &str = "base";
/// The folder of a copy whose state is elsewhere.
pub(crate) const FOLDER: &str = "folder";
pub(crate) const FILE_SYSTEM: &str = "file-system";
pub(crate) const SOURCE_URL: &str = "source-url";
/// The protocol of the Source, where there was a choice.
pub(crate) const PROTOCOL: &str = "protocol";
/// The set that was chosen, in the user's words.
pub(crate) const SET: &str = "set";
/// The common begin of all listed URIs, while no base is fixed.
pub(crate) const COMMON: &str = "common";
/// Number of the last run that wrote files.
pub(crate) const EPOCH: &str = "epoch";
/// The last run that carried out its plan to the end.
pub(crate) const FINISHED: &str = "finished";
/// Files of runs up to this one are known to be on the disk.
pub(crate) const SETTLED: &str = "settled";
/// The file of planned bytes.
pub(crate) const BODIES: &str = "bodies";
/// When and in which life of the machine the last writing run ended.
pub(crate) const WRITTEN: &str = "written";
/// Resources created since the copy was last without deletions beyond the limit.
pub(crate) const CREATED: &str = "created";
