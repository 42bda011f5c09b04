//! Dropping a set leaves nothing of it in a store, and nothing else is touched.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::{Change, ChangeLog, ContentId, FixedClock, NewSet, SetId, State, append};
use abreast_store::integrity::{Findings, check_log};
use abreast_store::{SqliteLog, drop_set};
use abreast_webtypes::Timestamp;
use std::path::Path;
use std::sync::Arc;

fn open(path: &Path) -> SqliteLog {
    let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(1_800_000_000)));
    SqliteLog::open(path, clock).unwrap()
}

/// Opens a set with resources, changes, versions, removals, kept contents and idempotency keys.
fn fill(log: &SqliteLog, slug: &str) -> SetId {
    let set = log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).unwrap().id;
    log.complete_import(set).unwrap();
    log.keep_versions(set, true).unwrap();
    for number in 0..30_u8 {
        let content = Some(ContentId([number % 7; ContentId::BYTES]));
        let state = State { length: Some(u64::from(number)), content, ..State::default() };
        let change = Change::put(format!("{}", number % 10), state);
        let name = format!("{slug} {number}");
        append(log, set, vec![change.with_idempotency_key(name)]).unwrap();
    }
    append(log, set, vec![Change::delete("3")]).unwrap();
    set
}

#[test]
fn a_dropped_set_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("source.db");
    let log = open(&path);
    let kept = fill(&log, "kept");
    fill(&log, "old");
    let head = log.head(kept).unwrap();
    assert!(drop_set(&path, "old", false).is_err(), "it is open");
    drop(log);
    let counted = drop_set(&path, "old", true).unwrap().unwrap();
    assert_eq!((counted.resources, counted.changes), (9, 31));
    assert!(counted.versions >= 30);
    assert_eq!(drop_set(&path, "old", false).unwrap(), Some(counted));
    assert_eq!(drop_set(&path, "old", false).unwrap(), None);
    let mut findings = Findings::default();
    let sets = check_log(&path, &mut findings).unwrap();
    assert!(findings.is_consistent(), "{:?}", findings.list());
    assert_eq!(sets.iter().map(|set| set.slug.as_str()).collect::<Vec<_>>(), ["kept"]);
    let log = open(&path);
    assert_eq!(log.head(kept).unwrap(), head);
    // One of the same name begins from nothing.
    let again = fill(&log, "old");
    assert_eq!(log.head(again).unwrap().position.0, 31);
}
