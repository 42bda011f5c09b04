//! Copies of change feeds in Activity Streams.

use super::oracle::{assert_each, assert_right, simulate};
use super::{BASE, SEEDS, world};
use crate::read::emm::PROTOCOL;
use abreast_testkit::providers::{Fault, Faults, Paging, Protocol, Provider};

#[test]
fn copies_of_quiet_feeds_are_right() {
    assert_right("activities::copies_of_quiet", (Protocol::Activities, PROTOCOL.reader), true);
}

#[test]
fn copies_of_feeds_are_right_after_any_adversity() {
    assert_right("activities::copies_of_feeds", (Protocol::Activities, PROTOCOL.reader), false);
}

#[test]
fn an_entry_point_older_than_its_pages_needs_no_comparison() {
    let made = |seed| {
        let mut made = Provider::new(Protocol::Activities, seed, BASE, true);
        made.faults = Faults::only(Fault::OldEntry);
        let leads_on = made.shape().has_prev && made.shape().paging != Paging::Until;
        leads_on.then_some(made)
    };
    let test = "activities::an_entry_point";
    // Seed 1365 found that an empty page may be the only page in an Entry Point.
    assert_each(test, SEEDS + 400, made, |bench, seed, made| {
        simulate(bench, seed, made, PROTOCOL.reader)?;
        match world::gaps() {
            0 => Ok(()),
            gaps => Err(format!("{gaps} comparisons: ABREAST_TEST_SEED={seed}")),
        }
    });
}
