//! Contract of waiting for a change, with a time limit.

use super::{Fixture, START, Stores, put};
use crate::{FixedClock, NewSet, Position, SetId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any check may take.
const LONG: Duration = Duration::from_secs(60);

pub(super) fn waiting_ends_with_a_change(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let (log, set) = (&fixture.log, fixture.set);
    let wait =
        |position, timeout| log.wait_for(&[(set, Position(position))], timeout).expect("waited");
    assert!(!wait(0, Duration::ZERO) && !wait(0, Duration::from_millis(5)), "nothing changed");
    assert!(!log.wait_for(&[], Duration::from_millis(1)).expect("waited"), "nothing is waited for");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| wait(0, LONG))).collect();
        fixture.append(vec![put("a", 1)]);
        for waiting in waiting {
            assert!(waiting.join().expect("waited"), "a change ends the waiting");
        }
    });
    assert!(wait(0, LONG), "one that was before does not make it wait");
    assert!(begun.elapsed() < LONG, "no waiting lasted to its end");
    assert!(!wait(1, Duration::from_millis(1)));
    let refused = log.wait_for(&[(SetId(99), Position(0))], LONG);
    assert!(refused.is_err(), "an unknown set is not waited for");
}

pub(super) fn waiting_is_for_any_of_several_sets(stores: &mut dyn Stores) {
    let log = stores.create(Arc::new(FixedClock::at(START)), 1_000, 1_000_000);
    let open = |slug: &str| {
        let set =
            log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).expect("opened").id;
        log.complete_import(set).expect("completed");
        set
    };
    let (one, two) = (open("one"), open("two"));
    crate::append(&*log, one, vec![put("a", 1)]).expect("appended");
    let known = [(one, Position(1)), (two, Position(0))];
    assert!(!log.wait_for(&known, Duration::from_millis(1)).expect("waited"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| log.wait_for(&known, LONG).expect("waited"));
        crate::append(&*log, two, vec![put("b", 1)]).expect("appended");
        assert!(waiting.join().expect("waited"));
    });
}
