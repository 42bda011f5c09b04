//! Checks of what is found by position and by time without reading the whole log.

use super::{Fixture, HOUR, START, Stores, put, state};
use crate::{
    Change, ChangeLog, ChangeRecord, FixedClock, Imported, Kind, NewSet, Position, SetId, append,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

fn latest(log: &dyn ChangeLog, set: SetId, after: u64) -> Vec<ChangeRecord> {
    let mut found = Vec::new();
    let mut visit = |change: &ChangeRecord| {
        found.push(change.clone());
        ControlFlow::Continue(())
    };
    log.latest(set, Position(after), &mut visit).expect("the latest changes can be read");
    found
}

fn named(changes: &[ChangeRecord]) -> Vec<(u64, Kind, &str)> {
    changes.iter().map(|change| (change.position.0, change.kind, change.key.as_str())).collect()
}

pub(super) fn latest_changes_leave_out_superseded(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    fixture.append(vec![put("a", 1), put("b", 1), put("c", 1), Change::delete("b"), put("a", 2)]);
    fixture.append(vec![
        Change::remove("c"),
        put("d", 1),
        put("c", 2),
        Change::delete("d"),
        put("e", 13),
    ]);
    for fixture in [fixture].map(|fixture| fixture.reopen(stores)) {
        let (log, set) = (&*fixture.log, fixture.set);
        let all = latest(log, set, 0);
        let expected = [
            (4, Kind::Delete, "b"),
            (5, Kind::Update, "a"),
            (8, Kind::Create, "c"),
            (9, Kind::Delete, "d"),
            (10, Kind::Create, "e"),
        ];
        assert_eq!(named(&all), expected);
        assert_eq!(all[4].state, Some(state(13)), "whole records");
        assert_eq!(named(&latest(log, set, 5)), expected[2..]);
        assert_eq!(named(&latest(log, set, 10)), []);
        let before = |position| log.latest_before(set, Position(position)).expect("read");
        assert_eq!(before(4), None, "all before it are superseded");
        assert_eq!(
            [before(5), before(8), before(100)].map(|at| at.map(|at| at.0)),
            [Some(4), Some(5), Some(10)]
        );
        let mut seen = 0;
        let mut first = |_: &ChangeRecord| {
            seen += 1;
            ControlFlow::Break(())
        };
        log.latest(set, Position(0), &mut first).expect("read");
        assert_eq!(seen, 1, "it ends when the visitor stops");
    }
    let fixture = Fixture::plain(stores);
    // More than is read at a time.
    for round in 0..3 {
        for part in 0..3 {
            let keys = part * 5_000..(part + 1) * 5_000;
            fixture.append(keys.map(|key| put(format!("k{key:05}"), round + 1)).collect());
        }
    }
    let found = latest(&*fixture.log, fixture.set, 0);
    assert_eq!(found.len(), 15_000);
    assert!(
        found.iter().zip(30_001..).all(|(change, position)| change.position.0 == position),
        "in order"
    );
}

pub(super) fn latest_changes_lack_none_that_changes_meanwhile(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let keys = || (0..100).map(|key| format!("k{key:02}"));
    fixture.append(keys().map(|key| put(key, 1)).collect());
    let (mut found, mut is_first) = (BTreeSet::new(), true);
    let mut visit = |change: &ChangeRecord| {
        if std::mem::take(&mut is_first) {
            fixture.append(vec![put("k99", 2), put("k00", 2)]);
        }
        found.insert(change.key.clone());
        ControlFlow::Continue(())
    };
    fixture.log.latest(fixture.set, Position(0), &mut visit).expect("read");
    assert_eq!(found, keys().collect());
}

pub(super) fn base_has_no_latest_change(stores: &mut dyn Stores) {
    let clock = Arc::new(FixedClock::at(START));
    let log = stores.create(Arc::clone(&clock), 30, 1_000_000);
    let set =
        log.open_set(&NewSet { slug: "based".into(), ..NewSet::default() }).expect("opened").id;
    let base = ["a", "b", "c"].map(|key| Imported {
        key: key.into(),
        state: state(1),
        witness: Vec::new(),
    });
    log.import(set, base.to_vec()).expect("imported");
    log.complete_import(set).expect("completed");
    assert_eq!(latest(&*log, set, 0), []);
    append(&*log, set, vec![put("b", 2), Change::delete("c")]).expect("recorded");
    assert_eq!(named(&latest(&*log, set, 0)), [(1, Kind::Update, "b"), (2, Kind::Delete, "c")]);
}

pub(super) fn times_lead_to_positions(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let (log, set) = (&*fixture.log, fixture.set);
    let at = |micros: i64| log.position_at(set, START.plus_micros(micros)).expect("found").0;
    assert_eq!((at(-HOUR), at(HOUR)), (0, 0), "there is no change");
    for last in 1..40 {
        fixture.clock.set(START.plus_micros(last * HOUR));
        fixture.append(vec![put(format!("k{last}"), 1)]);
        assert_eq!((at(-1), at(0), at(HOUR - 1)), (0, 0, 0));
        for hour in 1..=last {
            let expected = hour as u64;
            assert_eq!(
                (at(hour * HOUR - 1), at(hour * HOUR), at(hour * HOUR + 1)),
                (expected - 1, expected, expected),
                "of {last}"
            );
        }
    }
    assert_eq!(at(400 * HOUR), 39);
}
