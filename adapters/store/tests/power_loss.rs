//! Power loss at any instant loses no acknowledged change.
//!
//! A kill leaves the system's cache; loss of power does not. A child appends while `strace` notes
//! every write to the store and every time it was made durable. From these notes the test makes the
//! files as they may be after power was lost at some instant: what was made durable is there; of
//! what was written later, each write is there, missing, or torn at a sector, in any combination.
//! Every such store must open, be consistent, and have all that was acknowledged.
//!
//! `ABREAST_POWER_LOSSES` asks for more instants than 120, `ABREAST_CRASH_SEED` repeats a failing
//! run.

use abreast_core::testing::check_consistency;
use abreast_core::{
    Change, ChangeLog, NewSet, PageRule, SetId, ShardRule, State, SystemClock, append,
};
use abreast_store::{SqliteLog, SqliteOptions};
use abreast_testkit::power;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Tells the child which store to write.
const CHILD: &str = "ABREAST_POWER_CHILD";
const LOSSES: u64 = 120;
/// Batches before the store is closed, and after it was opened again.
const BATCHES: [u64; 2] = [60, 40];

fn open(path: &Path) -> (SqliteLog, SetId) {
    let options =
        SqliteOptions::default().with_shard_rule(ShardRule { resources: 25, bytes: 1_000_000 });
    let log =
        options.open(path, Arc::new(SystemClock)).expect("the store opens after loss of power");
    let page_rule = PageRule { changes: 40, age: Duration::from_secs(3_600) };
    let set = log
        .open_set(&NewSet { slug: "power".into(), page_rule, ..NewSet::default() })
        .expect("the set opens")
        .id;
    log.complete_import(set).expect("the set is complete");
    (log, set)
}

/// Appends, closes the store (which writes the log back into the database), opens it, and appends
/// again.
#[test]
fn child() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let mut number = 0;
    for batches in BATCHES {
        let (log, set) = open(Path::new(&path));
        for _ in 0..batches {
            number += 1;
            let state = State {
                length: Some(number),
                media_type: Some("text/plain".into()),
                ..State::default()
            };
            let change = |place: u64| {
                Change::put(format!("{:03}", (number * 7 + place) % 90), state.clone())
            };
            let head =
                append(&log, set, (0..=number % 9).map(change).collect()).expect("appended").head;
            std::io::stderr().write_all(format!("ack {head}\n").as_bytes()).expect("noted");
        }
    }
}

#[test]
fn a_store_that_lost_power_has_all_that_was_acknowledged() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    power::lose_power(
        CHILD,
        "store.sqlite",
        LOSSES,
        BATCHES.iter().sum(),
        &mut |path, promised, context| {
            let (log, set) = open(path);
            let head = log.head(set).unwrap().position.0;
            assert!(
                Some(head) >= promised,
                "{context}: {promised:?} was acknowledged, {head} is there"
            );
            check_consistency(&log, set);
        },
    );
}
