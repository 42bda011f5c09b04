//! The functions as other programs call them. `app/cli/tests/it` has the tests of the commands.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

use abreast_core::SystemClock;
use abreast_maintenance::{
    CheckOptions, Diagnosis, DoctorObserver, DoctorOptions, ErrorKind, Listen, RepairOptions,
    StoreRecord, Subject, check, doctor, repair,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn store() -> tempfile::TempDir {
    let store = tempfile::tempdir().unwrap();
    let database = store.path().join("source.db");
    abreast_store::SqliteLog::open(&database, Arc::new(SystemClock)).unwrap();
    store
}

fn stop() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn steps_before_a_failure_are_reported() {
    let store = store();
    std::fs::create_dir(store.path().join("notified.json")).unwrap();
    let mut options = RepairOptions::new(store.path());
    options.records.push(StoreRecord {
        name: "the record",
        check: |_| Ok(None),
        repair: |_, dry_run| Ok(Some(format!("repair the record: {dry_run}"))),
    });
    let mut steps = Vec::new();
    let error = repair(&options, &mut |step| steps.push(step), &stop()).unwrap_err();
    assert_eq!(steps, ["repair the record: false"]);
    assert_eq!(error.kind(), ErrorKind::Disk);
    assert_eq!(error.to_string(), "cannot read the record of notified documents");
}

#[test]
fn an_incomplete_check_has_its_findings_and_the_reason() {
    let store = store();
    let record = store.path().join("served.json");
    abreast_folder::write_sealed(&record, b"{}".to_vec()).unwrap();
    let mut damaged = std::fs::read(&record).unwrap();
    damaged[0] ^= 1;
    std::fs::write(&record, damaged).unwrap();
    let mut options = CheckOptions::new(store.path());
    let report = check(&options, &stop()).unwrap();
    let codes: Vec<_> = report.findings().map(|finding| finding.code).collect();
    assert_eq!((codes, report.is_complete), (vec!["served.record"], true));
    let unreadable = |_: &Path| Err(std::io::Error::other("the disk failed"));
    options.records.push(StoreRecord {
        name: "the record",
        check: unreadable,
        repair: |_, _| Ok(None),
    });
    let report = check(&options, &stop()).unwrap();
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(failures, ["cannot check the record"]);
    assert!(!report.is_complete && !report.summary().ok && !report.is_cancelled);
}

#[test]
fn a_place_without_a_store_is_wrong_usage() {
    let empty = tempfile::tempdir().unwrap();
    let error = check(&CheckOptions::new(empty.path()), &stop()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.text().contains("; help: name the folder of a store"), "{error}");
}

#[test]
fn a_missing_folder_ends_the_diagnosis() {
    #[derive(Default)]
    struct Results(Vec<Diagnosis>);
    impl DoctorObserver for Results {
        fn diagnosed(&mut self, diagnosis: &Diagnosis) {
            self.0.push(diagnosis.clone());
        }
    }
    let place = tempfile::tempdir().unwrap().path().join("none").into();
    let subject = Subject::Folder { place, meant: Some("http://none/".to_owned()) };
    let mut results = Results::default();
    let report = doctor(&DoctorOptions { listen: Listen::default(), subject }, &mut results);
    assert_eq!(report.error.unwrap().kind(), ErrorKind::Usage);
    let last = results.0.last().unwrap();
    let help = last.help.as_deref();
    assert_eq!((last.code, help), ("folder", Some("for a server, did you mean `http://none/`?")));
}
