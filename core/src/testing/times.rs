//! Contract of times: they strictly increase, whatever the clock does.

use super::{DAY, Fixture, HOUR, START, Stores, YEAR, put};
use crate::Position;
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;

fn times(fixture: &Fixture) -> Vec<Timestamp> {
    let mut times = Vec::new();
    let mut note = |change: &crate::ChangeRecord| {
        times.push(change.time);
        ControlFlow::Continue(())
    };
    fixture.log.read(fixture.set, Position(0), &mut note).expect("the log can be read");
    times
}

pub(super) fn times_increase_whatever_the_clock_does(stores: &mut dyn Stores) {
    let mut fixture = Fixture::plain(stores);
    let created = fixture.log.head(fixture.set).expect("a head").created;
    assert_eq!(created, START);
    let mut expected = Vec::new();
    let mut last = created;
    let steps = [
        0,
        HOUR,
        0,
        -HOUR,
        -10 * YEAR,
        2 * HOUR,
        2 * HOUR + 1,
        2 * HOUR + 2,
        YEAR,
        -YEAR,
        YEAR + DAY,
    ];
    for (round, step) in steps.into_iter().enumerate() {
        let now = START.plus_micros(step);
        fixture.clock.set(now);
        if round % 3 == 2 {
            fixture = fixture.reopen(stores);
            assert_eq!(
                fixture.log.head(fixture.set).expect("a head").time,
                last,
                "after a restart"
            );
        }
        fixture.append((0..3).map(|number| put(format!("{round}/{number}"), 1)).collect());
        // The first takes the clock's time if that is later; the others follow at once.
        for _ in 0..3 {
            last = now.max(last.next());
            expected.push(last);
        }
        assert_eq!(fixture.log.head(fixture.set).expect("a head").time, last);
    }
    assert_eq!(times(&fixture), expected);
    assert!(expected.windows(2).all(|pair| pair[0] < pair[1]));
    fixture.check();
}
