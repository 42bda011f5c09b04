//! Checks that the log implies the table, the latest changes, the pages and the shards.

use super::random::Random;
use super::{DAY, Fixture, HOUR, START, Stores, YEAR, put, rule, state};
use crate::{
    Action, Change, ChangeLog, ChangeRecord, Head, KeyRange, Kind, Position, Resource, SetId, State,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

/// Checks that a set that began empty is consistent: replaying its log from the start gives its
/// table, its positions have no gaps, its times increase, its pages cover the log and its shards
/// cover the table.
///
/// Nobody else may append meanwhile.
///
/// # Panics
/// When something differs.
pub fn check_consistency(log: &dyn ChangeLog, set: SetId) {
    let head = log.head(set).expect("a head");
    let mut table: BTreeMap<String, (State, Position)> = BTreeMap::new();
    let (mut changes, mut latest) = (Vec::new(), BTreeMap::new());
    let mut replay = |change: &ChangeRecord| {
        assert_eq!(change.position.0, changes.len() as u64 + 1, "positions have no gaps");
        let before = table.remove(&change.key);
        latest.insert(change.key.clone(), change.position);
        match (change.kind, &change.state) {
            (Kind::Create | Kind::Add, Some(_)) => {
                assert!(before.is_none(), "created twice: {change:?}");
            }
            (Kind::Update, Some(state)) => {
                assert!(before.is_some_and(|(old, _)| old != *state), "no update: {change:?}");
            }
            (Kind::Deprecate, Some(_)) => {}
            (Kind::Delete | Kind::Remove, None) => {
                assert!(before.is_some(), "removed what was not there: {change:?}");
            }
            _ => panic!("a state belongs to what stays: {change:?}"),
        }
        if let Some(state) = &change.state {
            table.insert(change.key.clone(), (state.clone(), change.position));
        }
        changes.push((change.time, change.key.clone()));
        ControlFlow::Continue(())
    };
    log.read(set, Position(0), &mut replay).expect("the log can be read");
    assert_eq!(head.position.0, changes.len() as u64);
    assert_eq!(head.time, changes.last().map_or(head.created, |(time, _)| *time));
    assert!(changes.first().is_none_or(|(time, _)| *time > head.created));
    assert!(changes.windows(2).all(|pair| pair[0].0 < pair[1].0), "times strictly increase");

    let mut expected = table.iter();
    let mut compare = |resource: &Resource| {
        let (key, (state, position)) =
            expected.next().expect("the table has more than the log implies");
        assert_eq!((&resource.key, &resource.state, resource.position), (key, state, *position));
        ControlFlow::Continue(())
    };
    log.scan(set, &KeyRange::default(), &mut compare).expect("the table can be read");
    assert_eq!(expected.next(), None, "the table has less than the log implies");
    assert_eq!(head.resources, table.len() as u64);

    let mut expected: Vec<_> = latest.into_iter().map(|(key, position)| (position, key)).collect();
    expected.sort_unstable();
    let mut found = Vec::new();
    let mut visit = |change: &ChangeRecord| {
        found.push((change.position, change.key.clone()));
        ControlFlow::Continue(())
    };
    log.latest(set, Position(0), &mut visit).expect("the latest changes can be read");
    assert_eq!(found, expected, "the latest change of each resource");

    check_pages(log, set, &head, &changes);
    check_shards(log, set, &head, &table, &changes);
}

type Changes = [(abreast_webtypes::Timestamp, String)];

fn check_pages(log: &dyn ChangeLog, set: SetId, head: &Head, changes: &Changes) {
    let pages = log.pages(set, 1, usize::MAX).expect("the pages can be read");
    assert_eq!(head.open_page, pages.len() as u64);
    let time_at = |position: Position| match position.0.checked_sub(1) {
        None => head.created,
        Some(place) => changes[place as usize].0,
    };
    let mut after = Position(0);
    for (place, page) in pages.iter().enumerate() {
        assert_eq!((page.number, page.after), (place as u64 + 1, after), "pages follow each other");
        assert_eq!(page.from, time_at(page.after));
        assert_eq!(page.last.is_none(), place + 1 == pages.len(), "only the last is open");
        if let Some(last) = page.last {
            assert!(last > after, "no closed page is empty");
            assert_eq!(page.until, Some(time_at(last)));
            after = last;
        }
    }
}

fn check_shards(
    log: &dyn ChangeLog,
    set: SetId,
    head: &Head,
    table: &BTreeMap<String, (State, Position)>,
    changes: &Changes,
) {
    let live = log.shards(set).expect("the shards can be read");
    assert_eq!(live.first().map(|shard| shard.range.start.as_str()), Some(""));
    assert!(
        live.windows(2).all(|pair| pair[0].range.end.as_ref() == Some(&pair[1].range.start)),
        "{live:?}"
    );
    assert_eq!(live.last().map(|shard| &shard.range.end), Some(&None));
    let newest = live.iter().map(|shard| shard.id.0).max().unwrap_or_default();
    for id in 1..=newest {
        let shard = log
            .shard(set, crate::ShardId(id))
            .expect("a shard can be read")
            .expect("numbers have no gaps");
        let inside = |key: &String| {
            *key >= shard.range.start && shard.range.end.as_ref().is_none_or(|end| key < end)
        };
        assert_eq!(shard.retired, !live.contains(&shard), "{shard:?}");
        assert_eq!(
            shard.resources,
            table.keys().filter(|key| inside(key)).count() as u64,
            "{shard:?}"
        );
        let last =
            changes.iter().rposition(|(_, key)| inside(key)).map_or(0, |place| place as u64 + 1);
        // It may be later: halves begin with the version of the whole.
        assert!(
            shard.version.0 >= last && shard.version <= head.position,
            "{shard:?}, last change {last}"
        );
        let time = if shard.version == Position(0) {
            head.created
        } else {
            changes[shard.version.0 as usize - 1].0
        };
        assert_eq!(shard.time, time, "{shard:?}");
    }
}

/// The expected state of a resource, by a second implementation that shares nothing with a store.
#[derive(Default)]
struct Model {
    table: BTreeMap<String, u64>,
    deprecated: BTreeSet<String>,
    recorded: u64,
}

impl Model {
    fn put(&mut self, key: &str, number: u64) {
        if self.table.insert(key.to_owned(), number) != Some(number) {
            self.deprecated.remove(key);
            self.recorded += 1;
        }
    }

    fn deprecate(&mut self, key: &str, number: Option<u64>) {
        let Some(number) = number.or_else(|| self.table.get(key).copied()) else { return };
        let is_new = self.deprecated.insert(key.to_owned());
        if self.table.insert(key.to_owned(), number) != Some(number) || is_new {
            self.recorded += 1;
        }
    }

    fn delete(&mut self, key: &str) {
        if self.table.remove(key).is_some() {
            self.deprecated.remove(key);
            self.recorded += 1;
        }
    }
}

const PARTS: &[&str] = &["", "a", "b", "a/", "%", "%2F", "é", "😀", "zz", "A", "0", "\u{7f}"];

pub(super) fn log_implies_table(stores: &mut dyn Stores) {
    for seed in 0..12 {
        let run = Seeded(seed);
        random_sequence(stores, seed);
        std::mem::forget(run);
    }
}

/// Prints how to repeat a failing sequence.
struct Seeded(u64);

#[expect(clippy::print_stderr, reason = "a failing test must print how to repeat it")]
impl Drop for Seeded {
    fn drop(&mut self) {
        eprintln!("the random sequence with seed {} failed", self.0);
    }
}

fn random_sequence(stores: &mut dyn Stores, seed: u64) {
    let mut random = Random::new(seed);
    let page = rule(1 + random.below(20) as u32, Duration::from_secs(1 + random.below(200_000)));
    let mut fixture =
        Fixture::new(stores, page, 3 + random.below(10), 3_000 + random.below(20_000));
    let mut model = Model::default();
    for round in 0..25 {
        match random.below(8) {
            0 => fixture = fixture.reopen(stores),
            1 => fixture.clock.set(START.plus_micros(random.below(3) as i64 * DAY)),
            2 => fixture.clock.set(START.plus_micros(random.below(48) as i64 * HOUR - YEAR)),
            _ => {}
        }
        let size = random.below(40);
        let batch: Vec<Change> = (0..size)
            .map(|_| {
                let key = format!("{}{}{}", random.of(PARTS), random.of(PARTS), random.of(PARTS));
                if random.below(3) == 0 {
                    model.delete(&key);
                    return if random.below(2) == 0 {
                        Change::delete(key)
                    } else {
                        Change::remove(key)
                    };
                }
                let number = random.below(4);
                match random.below(6) {
                    0 => {
                        model.deprecate(&key, None);
                        Change::deprecate(key, Vec::new())
                    }
                    1 => {
                        model.deprecate(&key, Some(number));
                        let state = Some((state(number), Vec::new()));
                        Change::new(key, Action::Deprecate { state, replaced_by: Vec::new() })
                    }
                    2 => {
                        model.put(&key, number);
                        Change::add(key, state(number))
                    }
                    _ => {
                        model.put(&key, number);
                        put(key, number)
                    }
                }
            })
            .collect();
        let before = fixture.log.head(fixture.set).expect("a head").position.0;
        let answer = fixture.append(batch);
        assert_eq!(answer.head.0, model.recorded, "round {round}");
        assert_eq!(
            (answer.recorded, answer.unchanged),
            (model.recorded - before, size + before - model.recorded)
        );
        let found = fixture.resources(&KeyRange::default());
        let found: Vec<_> =
            found.into_iter().map(|resource| (resource.key, resource.state)).collect();
        let expected: Vec<_> =
            model.table.iter().map(|(key, number)| (key.clone(), state(*number))).collect();
        assert_eq!(found, expected, "round {round}");
        fixture.check();
    }
}
