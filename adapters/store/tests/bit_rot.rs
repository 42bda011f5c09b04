//! Bit flips in a store: each is detected or harmless, and repair handles it.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::{
    Change, ChangeLog, ContentId, Description, Imported, KeyRange, NewSet, Order, PageRule,
    Position, ShardRule, State, SystemClock, append,
};
use abreast_store::integrity::{Findings, check_log};
use abreast_store::repair::repair_log;
use abreast_store::{SqliteLog, SqliteOptions, backup};
use abreast_testkit::bits::{Outcome, flip_each};
use abreast_webtypes::{Digests, Label, Timestamp};
use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Flips of one run; ABREAST_TEST_FLIPS asks for more.
const FLIPS: u64 = 200;

fn state(number: u64) -> State {
    let mut md5 = [number as u8; 16];
    md5[..8].copy_from_slice(&(number * 0x9e37_79b9).to_le_bytes());
    State {
        modified: Timestamp::from_seconds(1_700_000_000 + number as i64),
        length: Some(number * 7),
        media_type: Some("text/plain".into()),
        digests: Digests { md5: Some(md5), ..Digests::default() },
        content: number.is_multiple_of(3).then_some(ContentId([number as u8; 32])),
        description: number.is_multiple_of(4).then(|| {
            Box::new(Description {
                types: vec!["urn:type".into()],
                labels: vec![Label::plain(format!("N {number}"))],
                media_type: None,
            })
        }),
        ..State::default()
    }
}

fn open(path: &Path) -> Result<SqliteLog, abreast_core::LogError> {
    SqliteOptions::default()
        .with_shard_rule(ShardRule { resources: 40, bytes: 1_000_000 })
        .open(path, Arc::new(SystemClock))
}

fn new_set() -> NewSet {
    NewSet {
        slug: "set".into(),
        page_rule: PageRule { changes: 25, age: Duration::from_secs(9_999_999) },
        ..NewSet::default()
    }
}

fn write(path: &Path) {
    let log = open(path).unwrap();
    let set = log.open_set(&new_set()).unwrap().id;
    log.keep_versions(set, true).unwrap();
    let base = (0..60).map(|number| Imported {
        key: format!("base/{number:03}"),
        state: state(number),
        witness: vec![1, 2, 3],
    });
    log.import(set, base.collect()).unwrap();
    log.complete_import(set).unwrap();
    for number in 0..140_u64 {
        let change = match number % 7 {
            6 => Change::delete(format!("new/{:03}", number - 3)),
            4 => Change::deprecate(format!("new/{:03}", number - 2), vec![format!("urn:{number}")])
                .with_summary("old"),
            5 => Change::put(format!("base/{:03}", number % 60), state(number + 500)),
            _ => Change::put(format!("new/{number:03}"), state(number + 100)),
        };
        append(&log, set, vec![change]).unwrap();
    }
    log.close();
}

/// Everything that a store answers.
fn answers(path: &Path) -> Result<String, abreast_core::LogError> {
    let log = open(path)?;
    let set = log.open_set(&new_set())?.id;
    let mut text =
        format!("{:?} {:?} {:?}\n", log.head(set)?, log.pages(set, 1, 1_000)?, log.shards(set)?);
    log.read(set, Position(0), &mut |change| {
        writeln!(text, "{change:?}").unwrap();
        ControlFlow::Continue(())
    })?;
    log.latest(set, Position(0), &mut |change| {
        writeln!(text, "latest {} {}", change.position, change.key).unwrap();
        ControlFlow::Continue(())
    })?;
    let mut keys = Vec::new();
    log.scan(set, &KeyRange::default(), &mut |resource| {
        // Witnesses are only compared: a wrong one means that a file is read again.
        writeln!(
            text,
            "{} {:?} {:?} {}",
            resource.key, resource.state, resource.deprecated, resource.position.0
        )
        .unwrap();
        keys.push(resource.key.clone());
        ControlFlow::Continue(())
    })?;
    for key in keys {
        writeln!(text, "{:?}", log.versions(set, &key, Timestamp::MIN, Order::OldestFirst, 100)?)
            .unwrap();
    }
    Ok(text)
}

fn findings(path: &Path) -> Findings {
    let mut findings = Findings::default();
    if let Err(error) = check_log(path, &mut findings) {
        findings.add("store.damaged", "", error.to_string());
    }
    findings
}

#[test]
fn flipped_bit_is_detected_or_harmless_and_repair_restores() {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original.db");
    write(&original);
    assert!(findings(&original).is_consistent(), "{:?}", findings(&original).list());
    let expected = answers(&original).unwrap();
    flip_each(FLIPS, &fs::read(&original).unwrap(), "source.db", &mut |path, flipped, context| {
        let place = path.parent().unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let found = findings(path);
            assert_eq!(fs::read(path).unwrap(), flipped, "looking changes nothing");
            assert_eq!(fs::read_dir(place).unwrap().count(), 1, "looking leaves nothing");
            if found.is_consistent() {
                let answers = answers(path).unwrap();
                for (answer, expected) in answers.lines().zip(expected.lines()) {
                    assert_eq!(answer, expected, "a wrong answer, and nothing found");
                }
                assert_eq!(answers.len(), expected.len());
                return false;
            }
            // Reading may fail or answer: it must not panic.
            let beside = place.join("beside.db");
            fs::write(&beside, flipped).unwrap();
            let _ = answers(&beside);
            true
        }));
        let Ok(found) = outcome else { panic!("{context}") };
        if !found {
            return Outcome::Unnoticed;
        }
        let Ok(repaired) = repair_log(path, false, Timestamp::from_seconds(1_900_000_000)) else {
            return Outcome::Lost;
        };
        let left = findings(path);
        assert!(left.is_consistent(), "{context}: {:?} after {:?}", left.list(), repaired.steps);
        let log = open(path).unwrap();
        let set = log.open_set(&new_set()).unwrap().id;
        if log.head(set).unwrap().importing {
            log.complete_import(set).unwrap();
        }
        append(&log, set, vec![Change::put("after", state(9_999))]).unwrap();
        drop(log);
        assert!(findings(path).is_consistent(), "{context}: {:?}", findings(path).list());
        Outcome::Repaired
    });
}

#[test]
fn restarted_log_begins_now_and_reuses_no_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.db");
    write(&path);
    let before = {
        let log = open(&path).unwrap();
        log.head(log.open_set(&new_set()).unwrap().id).unwrap()
    };
    backup::restart_log(&path, Timestamp::from_seconds(10)).unwrap();
    assert!(findings(&path).is_consistent(), "{:?}", findings(&path).list());
    let log = open(&path).unwrap();
    let set = log.open_set(&new_set()).unwrap().id;
    let head = log.head(set).unwrap();
    assert!(head.created > before.time, "also when the clock is behind");
    assert_eq!((head.time, head.resources), (head.created, before.resources));
    assert!(head.position > before.position && head.open_page > before.open_page);
    let pages = log.pages(set, 1, 10).unwrap();
    assert_eq!((pages.len(), pages[0].from, pages[0].after), (1, head.created, head.position));
    for number in 0..60 {
        append(&log, set, vec![Change::put(format!("later/{number}"), state(number))]).unwrap();
    }
    let after = log.head(set).unwrap();
    assert_eq!(after.position.0, head.position.0 + 60);
    assert_eq!(log.pages(set, 1, 10).unwrap().len(), 3);
    assert_eq!(
        log.versions(set, "base/012", Timestamp::MIN, Order::OldestFirst, 10).unwrap().len(),
        2
    );
    drop(log);
    assert!(findings(&path).is_consistent(), "{:?}", findings(&path).list());
    backup::restart_log(&path, Timestamp::from_seconds(10)).unwrap();
    let log = open(&path).unwrap();
    assert!(log.head(set).unwrap().position > after.position);
}

#[test]
fn copy_made_under_load_has_all_acknowledged_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.db");
    write(&path);
    let log = open(&path).unwrap();
    let set = log.open_set(&new_set()).unwrap().id;
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (log, stop) = (&log, &stop);
        scope.spawn(move || {
            let mut number = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                number += 1;
                append(log, set, vec![Change::put(format!("load/{number}"), state(number))])
                    .unwrap();
            }
        });
        for round in 0..10 {
            let acknowledged = log.head(set).unwrap().position.0;
            let to = folder.path().join(format!("copy-{round}.db"));
            backup::copy(&path, &to).unwrap();
            let sets = backup::check_copy(&to).unwrap();
            assert!(sets[0].position >= acknowledged);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
