//! The store on SQLite beyond the contract: opening, closing, other processes, careless callers.

use abreast_core::{Change, ChangeLog, ErrorKind, NewSet, SetId, State, SystemClock, append};
use abreast_store::SqliteLog;
use std::path::Path;
use std::sync::{Arc, mpsc};

fn open(path: &Path) -> (SqliteLog, SetId) {
    let log = SqliteLog::open(path, Arc::new(SystemClock)).expect("opens");
    let set = log.open_set(&NewSet { slug: "a".into(), ..NewSet::default() }).expect("opens").id;
    log.complete_import(set).expect("opens");
    (log, set)
}

fn put(key: impl Into<String>) -> Change {
    Change::put(key, State::default())
}

#[test]
fn a_store_in_use_is_not_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let (log, _) = open(&path);
    let refused = SqliteLog::open(&path, Arc::new(SystemClock)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.to_string().contains("help: stop it"), "{refused}");
    drop(log);
    open(&path);
}

#[test]
fn missing_folder_gives_a_readable_error() {
    let folder = tempfile::tempdir().unwrap();
    let refused = SqliteLog::open(&folder.path().join("none/store.sqlite"), Arc::new(SystemClock))
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io);
    assert!(refused.to_string().contains("none/store.sqlite"), "{refused}");
}

#[test]
fn closing_records_what_waits_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let (log, set) = open(&path);
    let (sender, answers) = mpsc::channel();
    for number in 0..50 {
        let sender = sender.clone();
        log.append_then(
            set,
            vec![put(number.to_string())],
            Box::new(move |result| sender.send(result).unwrap()),
        );
    }
    log.close();
    drop(sender);
    assert_eq!(answers.iter().flatten().count(), 50);
    let refused = append(&log, set, vec![put("late")]).unwrap_err();
    assert!(refused.to_string().contains("closed"), "{refused}");
    assert_eq!(log.head(set).unwrap().resources, 50);
    assert!(log.resource(set, "49").unwrap().is_some(), "reads go on");
    log.close();
    drop(log);
    assert_eq!(open(&path).0.head(set).unwrap().resources, 50);
}

#[test]
fn panicking_callback_does_not_stop_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (log, set) = open(&folder.path().join("store.sqlite"));
    log.append_then(set, vec![put("a")], Box::new(|_| panic!("on purpose")));
    append(&log, set, vec![put("b")]).unwrap();
    assert_eq!(log.head(set).unwrap().resources, 2);
}

#[test]
fn a_visit_that_panics_gives_its_connection_back() {
    let folder = tempfile::tempdir().unwrap();
    let (log, set) = open(&folder.path().join("store.sqlite"));
    append(&log, set, vec![put("a")]).unwrap();
    for _ in 0..20 {
        let visit = std::panic::AssertUnwindSafe(|| {
            log.scan(set, &abreast_core::KeyRange::default(), &mut |_| panic!("on purpose"))
        });
        assert!(std::panic::catch_unwind(visit).is_err());
    }
    assert!(log.resource(set, "a").unwrap().is_some());
}

#[test]
fn an_import_of_any_size_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(&folder.path().join("store.sqlite"), Arc::new(SystemClock)).unwrap();
    let set = log.open_set(&NewSet { slug: "a".into(), ..NewSet::default() }).unwrap().id;
    let resource = |number: u32| abreast_core::Imported {
        key: format!("{number:06}"),
        state: State::default(),
        witness: Vec::new(),
    };
    log.import(set, (0..25_000).map(resource).collect()).unwrap();
    log.complete_import(set).unwrap();
    assert_eq!(log.head(set).unwrap().resources, 25_000);
}

/// Changes in no order, whose batches touch many pages each.
fn append_spread(log: &SqliteLog, set: SetId, batches: std::ops::Range<u32>) {
    for batch in batches {
        let key = |number: u32| {
            format!(
                "{:08x}/{}",
                (batch * 1_000 + number).wrapping_mul(0x9e37_79b1),
                "x".repeat(300)
            )
        };
        append(log, set, (0..1_000).map(|number| put(key(number))).collect()).expect("appended");
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the file is there").len()
}

#[test]
fn the_write_ahead_log_stays_small_while_changes_keep_coming() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let (log, set) = open(&path);
    let mut largest = 0;
    for batch in 0..60 {
        append_spread(&log, set, batch..batch + 1);
        largest = largest.max(size(&folder.path().join("store.sqlite-wal")));
    }
    assert!(size(&path) > 20_000_000, "copied while it works: {}", size(&path));
    assert!(largest < 64 << 20, "{largest}");
}

#[test]
fn a_long_scan_lets_the_write_ahead_log_grow_only_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    let wal = folder.path().join("store.sqlite-wal");
    let (log, set) = open(&path);
    append(&log, set, vec![put("a"), put("b")]).unwrap();
    let mut largest = 0;
    log.scan(set, &abreast_core::KeyRange::default(), &mut |_| {
        append_spread(&log, set, 0..40);
        largest = size(&wal);
        std::ops::ControlFlow::Break(())
    })
    .unwrap();
    assert!(largest > 64 << 20, "the scan holds it: {largest}");
    append_spread(&log, set, 40..50);
    assert!(size(&wal) <= 64 << 20, "then it is cut back: {}", size(&wal));
}
