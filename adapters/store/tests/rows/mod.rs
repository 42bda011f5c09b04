//! A log with rows in each table.

use abreast_core::{
    Change, ChangeLog, ContentId, Imported, NewSet, PageRule, ShardRule, State, append,
};
use std::time::Duration;

/// Small shards, so that a test splits some.
pub(crate) const SHARD_RULE: ShardRule = ShardRule { resources: 20, bytes: 1_000_000 };

pub(crate) fn new_set() -> NewSet {
    let page_rule = PageRule { changes: 10, age: Duration::from_secs(9_999_999) };
    NewSet { slug: "set".into(), page_rule, ..NewSet::default() }
}

pub(crate) fn state(number: u64) -> State {
    let content = number.is_multiple_of(2).then_some(ContentId([number as u8; ContentId::BYTES]));
    State {
        length: Some(number),
        media_type: Some("text/plain".into()),
        content,
        ..State::default()
    }
}

/// A set of each kind of row: a base, changes, removals, versions, names of changes, several pages
/// and shards.
pub(crate) fn fill(log: &dyn ChangeLog) {
    let set = log.open_set(&new_set()).unwrap().id;
    log.keep_versions(set, true).unwrap();
    let base = |number| Imported {
        key: format!("base/{number:02}"),
        state: state(number),
        witness: vec![1],
    };
    log.import(set, (0..30).map(base).collect()).unwrap();
    log.complete_import(set).unwrap();
    for number in 0..35_u64 {
        let change = match number % 5 {
            4 => Change::delete(format!("base/{:02}", number % 30)),
            _ => Change::put(format!("new/{:02}", number * 7 % 40), state(100 + number)),
        };
        append(log, set, vec![change.with_idempotency_key(format!("name {number}"))]).unwrap();
    }
}
