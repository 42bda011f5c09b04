//! Contract of pages: they close when they should and never change afterwards.

use super::{DAY, Fixture, HOUR, START, Stores, put, rule};
use crate::{NewSet, Page, PageRule, Position};
use std::time::Duration;

const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

fn pages(fixture: &Fixture) -> Vec<Page> {
    fixture.log.pages(fixture.set, 1, usize::MAX).expect("the pages can be read")
}

/// The positions at which pages were closed.
fn closed_at(fixture: &Fixture) -> Vec<u64> {
    pages(fixture).iter().filter_map(|page| page.last).map(|last| last.0).collect()
}

fn append(fixture: &Fixture, changes: u64) {
    let before = fixture.log.head(fixture.set).expect("a head").position.0;
    fixture.append((0..changes).map(|number| put(format!("{}", before + number), 1)).collect());
}

pub(super) fn pages_close_by_count(stores: &mut dyn Stores) {
    let mut fixture = Fixture::new(stores, rule(10, WEEK), 1_000, 1_000_000);
    let open = Page { number: 1, after: Position(0), last: None, from: START, until: None };
    assert_eq!(pages(&fixture), [open]);
    append(&fixture, 9);
    assert_eq!(pages(&fixture), [open]);
    append(&fixture, 1);
    assert_eq!(closed_at(&fixture), [10], "a full page closes at once");
    assert_eq!(fixture.log.head(fixture.set).expect("a head").open_page, 2);
    append(&fixture, 35);
    fixture = fixture.reopen(stores);
    assert_eq!(closed_at(&fixture), [10, 20, 30, 40], "one batch may fill several pages");
    append(&fixture, 5);
    let all = pages(&fixture);
    assert_eq!(closed_at(&fixture), [10, 20, 30, 40, 50]);
    assert_eq!((all.len(), all[5].number, all[5].after, all[5].last), (6, 6, Position(50), None));
    for (first, limit, numbers) in [
        (1, 2, 1..3),
        (0, 1, 1..2),
        (5, 10, 5..7),
        (6, 1, 6..7),
        (7, 5, 7..7),
        (1, 0, 1..1),
        (u64::MAX, 1, 1..1),
    ] {
        let some = fixture.log.pages(fixture.set, first, limit).expect("the pages can be read");
        let expected: Vec<Page> = numbers.map(|number: usize| all[number - 1]).collect();
        assert_eq!(some, expected, "{limit} pages from {first}");
    }
    fixture.check();
}

pub(super) fn pages_close_by_age(stores: &mut dyn Stores) {
    let mut fixture = Fixture::new(stores, rule(1_000, WEEK), 1_000, 1_000_000);
    fixture.clock.set(START.plus_micros(30 * DAY));
    append(&fixture, 1); // an empty page does not age
    assert_eq!(closed_at(&fixture), [0; 0]);
    fixture.clock.set(START.plus_micros(37 * DAY));
    append(&fixture, 1); // as old as it may be
    assert_eq!(closed_at(&fixture), [0; 0]);
    fixture = fixture.reopen(stores);
    fixture.clock.set(START.plus_micros(37 * DAY + HOUR));
    assert_eq!(closed_at(&fixture), [0; 0], "time alone closes nothing");
    append(&fixture, 2);
    assert_eq!(closed_at(&fixture), [2]);
    let all = pages(&fixture);
    assert_eq!(all[0].until, Some(START.plus_micros(37 * DAY)));
    assert_eq!(Some(all[1].from), all[0].until, "the next page starts where this one ended");
    fixture.clock.set(START);
    append(&fixture, 2);
    assert_eq!(closed_at(&fixture), [2], "a clock that steps back closes nothing");
    fixture.check();
}

pub(super) fn closed_pages_outlive_their_rule(stores: &mut dyn Stores) {
    let mut fixture = Fixture::new(stores, rule(4, WEEK), 1_000, 1_000_000);
    append(&fixture, 11);
    let closed = pages(&fixture)[..2].to_vec();
    let change_rule = |fixture: &Fixture, page_rule: PageRule| {
        let set = fixture
            .log
            .open_set(&NewSet { slug: "checked".into(), page_rule, ..NewSet::default() })
            .expect("opened again");
        assert_eq!(set.id, fixture.set);
    };
    change_rule(&fixture, rule(7, WEEK));
    assert_eq!(pages(&fixture)[..2], closed);
    append(&fixture, 5);
    assert_eq!(closed_at(&fixture), [4, 8, 15], "the open page takes the new rule");
    append(&fixture, 4);
    fixture = fixture.reopen(stores);
    change_rule(&fixture, rule(2, WEEK));
    append(&fixture, 3);
    assert_eq!(
        closed_at(&fixture),
        [4, 8, 15, 20, 22],
        "a page too large for a new rule closes before the next"
    );
    assert_eq!(pages(&fixture)[..2], closed);
    change_rule(&fixture, rule(1, Duration::ZERO));
    append(&fixture, 2);
    assert_eq!(closed_at(&fixture), [4, 8, 15, 20, 22, 23, 24, 25]);
    fixture.check();
}
