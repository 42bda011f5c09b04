//! Contract of versions: earlier states are kept and dropped as the policy states.

use super::random::Random;
use super::{DAY, Fixture, HOUR, START, Stores, everything, rule, state};
use crate::{
    Change, ContentId, FixedClock, Imported, NewSet, Order, Position, SetId, State, Version,
    VersionPolicy, append,
};
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A state whose bytes are kept: `number` of them.
fn kept(number: u64) -> State {
    State { content: Some(id(number)), length: Some(number), links: Vec::new(), ..state(number) }
}

fn id(number: u64) -> ContentId {
    let mut id = [0; ContentId::BYTES];
    id[..8].copy_from_slice(&number.to_be_bytes());
    ContentId(id)
}

fn put(key: &str, number: u64) -> Change {
    Change::put(key, kept(number))
}

fn versions(fixture: &Fixture, key: &str) -> Vec<Version> {
    let read = |from, order| {
        fixture.log.versions(fixture.set, key, from, order, usize::MAX).expect("versions")
    };
    let oldest_first = read(Timestamp::MIN, Order::OldestFirst);
    let mut newest_first = read(Timestamp::MAX, Order::NewestFirst);
    newest_first.reverse();
    assert_eq!(oldest_first, newest_first, "both orders give the same");
    oldest_first
}

/// The lengths of a resource's versions; `None` where it was not there.
fn lengths(fixture: &Fixture, key: &str) -> Vec<Option<u64>> {
    versions(fixture, key)
        .iter()
        .map(|one| one.state.as_ref().and_then(|state| state.length))
        .collect()
}

fn with_versions(stores: &mut dyn Stores) -> Fixture {
    let fixture = Fixture::plain(stores);
    fixture.log.keep_versions(fixture.set, true).expect("versions can be kept");
    fixture
}

/// Collects until nothing is due, a few changes at a time.
fn collect(fixture: &Fixture, policy: VersionPolicy) -> u64 {
    let mut dropped = 0;
    for _ in 0..10_000 {
        let step = fixture.log.collect_versions(fixture.set, &policy, 3).expect("collected");
        dropped += step.dropped;
        if step.complete {
            let again = fixture.log.collect_versions(fixture.set, &policy, 3).expect("collected");
            assert_eq!((again.dropped, again.complete), (0, true), "nothing is left to do");
            return dropped;
        }
    }
    panic!("collecting does not end");
}

fn unneeded(fixture: &Fixture) -> Vec<ContentId> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let some = fixture.log.unneeded_contents(after, 2).expect("no error");
        let Some(last) = some.last() else { return all };
        after = Some(*last);
        all.extend(some);
    }
}

pub(super) fn versions_are_kept_only_when_asked(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    fixture.append(vec![put("a", 1)]);
    fixture.append(vec![put("a", 2), Change::delete("a")]);
    assert_eq!(versions(&fixture, "a"), []);
    assert_eq!(unneeded(&fixture), [id(1), id(2)], "unneeded contents are listed all the same");
    fixture.log.keep_versions(fixture.set, true).expect("kept from now on");
    fixture.append(vec![
        Change::put("b", state(1)),
        Change::delete("b"),
        Change::put("b", state(2)),
    ]);
    assert_eq!(versions(&fixture, "b"), [], "no bytes, no versions");
    let fixture = fixture.reopen(stores);
    fixture.append(vec![put("a", 3)]);
    assert_eq!(lengths(&fixture, "a"), [Some(3)]);
    fixture.log.keep_versions(fixture.set, false).expect("no longer kept");
    fixture.append(vec![put("a", 4)]);
    assert_eq!(lengths(&fixture, "a"), [Some(3)]);
    fixture.check();
}

pub(super) fn versions_are_complete_while_a_resource_changes(stores: &mut dyn Stores) {
    const CHANGES: u64 = 200;
    let fixture = with_versions(stores);
    fixture.append(vec![put("a", 0)]);
    let (log, set) = (&*fixture.log, fixture.set);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for number in 1..=CHANGES {
                append(log, set, vec![put("a", number)]).expect("recorded");
            }
        });
        let mut is_last = false;
        while !is_last {
            is_last = writer.is_finished();
            for order in [Order::OldestFirst, Order::NewestFirst] {
                let from =
                    if order == Order::OldestFirst { Timestamp::MIN } else { Timestamp::MAX };
                let found = log.versions(set, "a", from, order, usize::MAX).expect("versions");
                let mut positions: Vec<u64> =
                    found.iter().map(|version| version.position.0).collect();
                positions.sort_unstable();
                assert!(positions.iter().copied().eq(1..=positions.len() as u64), "{positions:?}");
            }
        }
    });
    assert_eq!(versions(&fixture, "a").len() as u64, CHANGES + 1);
}

pub(super) fn versions_tell_the_history_of_a_resource(stores: &mut dyn Stores) {
    let clock = Arc::new(FixedClock::at(START));
    let log = stores.create(Arc::clone(&clock), 1_000, 1_000_000);
    let set = log.open_set(&NewSet { slug: "a".into(), ..NewSet::default() }).expect("opened").id;
    log.keep_versions(set, true).expect("kept");
    let imported = |number| Imported { key: "a".into(), state: kept(number), witness: Vec::new() };
    log.import(set, vec![imported(9)]).expect("imported");
    log.import(set, vec![imported(1), Imported { key: "other".into(), ..imported(5) }])
        .expect("imported");
    clock.set(START.plus_micros(HOUR));
    log.complete_import(set).expect("completed");
    let fixture = Fixture { log, clock, set };
    let created = fixture.log.head(set).expect("a head").created;
    fixture.append(vec![put("a", 2), Change::delete("a"), Change::delete("other")]);
    fixture.append(vec![put("a", 3), Change::put("a", state(4))]);
    let fixture = fixture.reopen(stores);
    let expected = [
        Version { time: created, position: Position(0), state: Some(kept(1)) },
        Version { time: created.plus_micros(1), position: Position(1), state: Some(kept(2)) },
        Version { time: created.plus_micros(2), position: Position(2), state: None },
        Version { time: created.plus_micros(4), position: Position(4), state: Some(kept(3)) },
        Version { time: created.plus_micros(5), position: Position(5), state: Some(state(4)) },
    ];
    assert_eq!(
        versions(&fixture, "a"),
        expected,
        "the last one's bytes are not kept, the one before ends there"
    );
    assert_eq!(lengths(&fixture, "other"), [Some(5), None]);
    assert_eq!(lengths(&fixture, "none"), []);
    let at = |micros: i64, order, limit| {
        let from = created.plus_micros(micros);
        let found = fixture.log.versions(set, "a", from, order, limit).expect("versions");
        found.iter().map(|one| one.position.0).collect::<Vec<_>>()
    };
    assert_eq!(at(0, Order::OldestFirst, 2), [0, 1]);
    assert_eq!(at(-1, Order::OldestFirst, 1), [0]);
    assert_eq!(at(1, Order::OldestFirst, 9), [1, 2, 4, 5]);
    assert_eq!(at(6, Order::OldestFirst, 9), [0; 0]);
    assert_eq!(at(3, Order::NewestFirst, 2), [2, 1]);
    assert_eq!(at(0, Order::NewestFirst, 9), [0]);
    assert_eq!(at(-1, Order::NewestFirst, 9), [0; 0]);
    fixture.append(vec![put("a", 9)]);
    assert_eq!(
        unneeded(&fixture),
        [],
        "imported twice: the first bytes were let go, then needed again"
    );
}

pub(super) fn bytes_found_later_complete_a_version(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let bare = |number| State { content: None, ..kept(number) };
    fixture.append(vec![
        Change::put("a", bare(1)),
        Change::put("a", bare(2)),
        Change::put("b", bare(3)),
    ]);
    fixture.log.keep_versions(fixture.set, true).expect("kept");
    let policy = VersionPolicy { count: Some(1), age: Some(Duration::ZERO), bytes: Some(0) };
    let collected = fixture.log.collect_versions(fixture.set, &policy, 1).expect("collected");
    assert!(collected.complete, "changes before versions were kept are not read");
    let appended = fixture.append(vec![put("a", 2), put("a", 2)]);
    assert_eq!((appended.recorded, appended.unchanged), (0, 2));
    let expected =
        Version { time: START.plus_micros(2), position: Position(2), state: Some(kept(2)) };
    assert_eq!(
        versions(&fixture, "a"),
        [expected],
        "since its last change, not since its bytes were found"
    );
    // Found elsewhere: the old place is let go.
    let moved = State { content: Some(id(77)), ..kept(2) };
    fixture.append(vec![Change::put("a", moved.clone())]);
    assert_eq!(versions(&fixture, "a")[0].state, Some(moved));
    assert_eq!(unneeded(&fixture), [id(2)]);
    assert_eq!(lengths(&fixture, "b"), []);
}

pub(super) fn the_state_at_the_beginning_is_a_version(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    fixture.append(vec![put("a", 1), put("b", 5), put("c", 9)]);
    fixture.append(vec![put("a", 2)]);
    assert_eq!(lengths(&fixture, "a"), [], "not kept yet");
    fixture.log.keep_versions(fixture.set, true).expect("kept");
    let head = |fixture: &Fixture| fixture.log.head(fixture.set).expect("a head");
    assert_eq!(head(&fixture).versions_since, Some(Position(4)));
    assert_eq!(lengths(&fixture, "a"), [Some(2)], "before it is superseded");
    assert_eq!(lengths(&fixture, "c"), [Some(9)]);
    fixture.append(vec![put("a", 3), Change::delete("b"), put("a", 4)]);
    let former =
        Version { time: START.plus_micros(4), position: Position(4), state: Some(kept(2)) };
    assert_eq!(versions(&fixture, "a")[0], former, "since its change");
    assert_eq!(lengths(&fixture, "a"), [Some(2), Some(3), Some(4)]);
    assert_eq!(lengths(&fixture, "b"), [Some(5), None]);
    assert_eq!(unneeded(&fixture), [id(1)]);
    // Not kept for a while.
    fixture.log.keep_versions(fixture.set, false).expect("no longer kept");
    assert_eq!(head(&fixture).versions_since, None);
    fixture.append(vec![put("a", 6), put("a", 7)]);
    fixture.log.keep_versions(fixture.set, true).expect("kept again");
    let fixture = fixture.reopen(stores);
    fixture.log.keep_versions(fixture.set, true).expect("as before");
    assert_eq!(head(&fixture).versions_since, Some(Position(9)));
    assert_eq!(lengths(&fixture, "a"), [Some(2), Some(3), Some(4), Some(7)]);
    fixture.append(vec![Change::delete("a"), put("a", 8), put("c", 10)]);
    let all = [Some(2), Some(3), Some(4), Some(7), None, Some(8)];
    assert_eq!(lengths(&fixture, "a"), all);
    assert_eq!(lengths(&fixture, "c"), [Some(9), Some(10)]);
    assert_eq!(unneeded(&fixture), [id(1), id(6)]);
    collect(&fixture, VersionPolicy { count: Some(1), ..VersionPolicy::default() });
    assert_eq!(lengths(&fixture, "a"), [Some(8)]);
    assert_eq!(lengths(&fixture, "c"), [Some(10)]);
    check_needs(&fixture, &[fixture.set], &["a", "b", "c"], "at the end");
}

pub(super) fn versions_beyond_the_count_are_dropped(stores: &mut dyn Stores) {
    let fixture = with_versions(stores);
    for number in 1..=9 {
        fixture.append(vec![put("a", number), put("b", 100 + number)]);
    }
    fixture.append(vec![put("c", 50), Change::delete("a")]);
    let count = |count| VersionPolicy { count: Some(count), ..VersionPolicy::default() };
    assert_eq!(collect(&fixture, count(4)), 6 + 5);
    assert_eq!(
        lengths(&fixture, "a"),
        [Some(7), Some(8), Some(9), None],
        "a deletion is a state too"
    );
    assert_eq!(lengths(&fixture, "b"), [106, 107, 108, 109].map(Some));
    assert_eq!(lengths(&fixture, "c"), [Some(50)]);
    let fixture = fixture.reopen(stores);
    fixture.append(vec![put("b", 110)]);
    assert_eq!(collect(&fixture, count(4)), 1, "continues after what it has read");
    assert_eq!(collect(&fixture, count(7)), 0, "more are kept from now on");
    assert_eq!(collect(&fixture, count(1)), 3 + 3, "fewer: all are read again");
    assert_eq!((lengths(&fixture, "a"), lengths(&fixture, "b")), (vec![None], vec![Some(110)]));
    let needed: Vec<u64> =
        (0..200).filter(|one| fixture.log.needs_content(&id(*one)).expect("no error")).collect();
    assert_eq!(needed, [50, 110]);
}

pub(super) fn versions_superseded_too_long_ago_are_dropped(stores: &mut dyn Stores) {
    let fixture = with_versions(stores);
    let policy =
        VersionPolicy { age: Some(Duration::from_secs(10 * 86_400)), ..VersionPolicy::default() };
    for day in 0..5 {
        fixture.clock.set(START.plus_micros(day * DAY + HOUR));
        fixture.append(vec![put("a", day as u64 + 1)]);
    }
    fixture.append(vec![put("old", 60), put("gone", 70), put("again", 80)]);
    fixture.append(vec![Change::delete("gone"), Change::delete("again")]);
    assert_eq!(collect(&fixture, policy), 0);
    fixture.clock.set(START.plus_micros(12 * DAY + 2 * HOUR));
    fixture.append(vec![put("again", 81)]);
    assert_eq!(collect(&fixture, policy), 2, "what was replaced on day 1 and on day 2");
    assert_eq!(lengths(&fixture, "a"), [3, 4, 5].map(Some), "the third was current until day 3");
    fixture.clock.set(START.plus_micros(300 * DAY));
    let fixture = fixture.reopen(stores);
    assert_eq!(collect(&fixture, policy), 2 + 2 + 2);
    assert_eq!(
        (lengths(&fixture, "a"), lengths(&fixture, "old")),
        (vec![Some(5)], vec![Some(60)]),
        "the current stays"
    );
    assert_eq!(lengths(&fixture, "gone"), [], "nothing is left of what was deleted long ago");
    assert_eq!(lengths(&fixture, "again"), [Some(81)]);
}

pub(super) fn versions_over_the_size_are_dropped(stores: &mut dyn Stores) {
    let fixture = with_versions(stores);
    let bytes = |bytes| VersionPolicy { bytes: Some(bytes), ..VersionPolicy::default() };
    // 300 and 600 bytes current, 10 + 20 + 30 bytes of old ones, of which 20 are needed twice.
    fixture.append(vec![
        put("a", 10),
        put("b", 20),
        put("a", 20),
        put("a", 30),
        put("b", 600),
        put("a", 300),
    ]);
    assert_eq!(collect(&fixture, bytes(960)), 0, "equal bytes count once");
    assert_eq!(collect(&fixture, bytes(955)), 1);
    assert_eq!(
        (lengths(&fixture, "a"), lengths(&fixture, "b")),
        (vec![Some(20), Some(30), Some(300)], vec![Some(20), Some(600)])
    );
    assert_eq!(collect(&fixture, bytes(949)), 2, "both that need the same bytes");
    assert_eq!(
        (lengths(&fixture, "a"), lengths(&fixture, "b")),
        (vec![Some(30), Some(300)], vec![Some(600)])
    );
    assert_eq!(collect(&fixture, bytes(1)), 1, "what is current stays");
    assert_eq!(
        (lengths(&fixture, "a"), lengths(&fixture, "b")),
        (vec![Some(300)], vec![Some(600)])
    );
    let left = fixture.log.collect_versions(fixture.set, &bytes(1), 5).expect("collected");
    assert_eq!((left.kept_bytes, left.complete), (900, true));
    assert_eq!(unneeded(&fixture), [10, 20, 30].map(id));
    fixture.append(vec![put("c", 20)]);
    fixture
        .log
        .forget_contents(unneeded(&fixture).into_iter().chain([id(20)]).collect())
        .expect("forgotten");
    assert_eq!(unneeded(&fixture), []);
    assert!(fixture.log.needs_content(&id(20)).expect("no error"), "needed again meanwhile");
}

pub(super) fn what_is_needed_is_told(stores: &mut dyn Stores) {
    const KEYS: [&str; 4] = ["a", "b", "c/d", "é"];
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let fixture = Fixture::new(stores, rule(7, Duration::from_secs(1_000_000)), 5, 10_000);
        let other = fixture.log.open_set(&NewSet { slug: "other".into(), ..NewSet::default() });
        let other = other.expect("opened").id;
        fixture.log.complete_import(other).expect("completed");
        fixture.log.keep_versions(fixture.set, true).expect("kept");
        let mut fixture = fixture;
        for round in 0..30 {
            let change = |random: &mut Random| {
                let key = *random.of(&KEYS);
                match random.below(5) {
                    0 => Change::delete(key),
                    1 => Change::put(key, State { content: None, ..kept(random.below(6)) }),
                    _ => put(key, random.below(6)),
                }
            };
            let batch = (0..random.below(12)).map(|_| change(&mut random)).collect();
            let set = if random.below(4) == 0 { other } else { fixture.set };
            append(&*fixture.log, set, batch).expect("appended");
            let policy = VersionPolicy {
                count: (random.below(2) == 0).then(|| 1 + random.below(5) as u32),
                bytes: (random.below(3) == 0).then(|| random.below(20)),
                age: None,
            };
            if random.below(2) == 0 {
                fixture
                    .log
                    .collect_versions(fixture.set, &policy, 1 + random.below(9) as usize)
                    .expect("collected");
            }
            if random.below(9) == 0 {
                fixture = fixture.reopen(stores);
            }
            check_needs(
                &fixture,
                &[fixture.set, other],
                &KEYS,
                &format!("seed {seed}, round {round}"),
            );
        }
    }
}

/// Needed is exactly what a resource or a version names; the bytes counted are those of the first
/// set.
fn check_needs(fixture: &Fixture, sets: &[SetId], keys: &[&str], place: &str) {
    let mut named = BTreeSet::new();
    let mut bytes = 0;
    for set in sets {
        let here =
            Fixture { log: Arc::clone(&fixture.log), clock: Arc::clone(&fixture.clock), set: *set };
        let resources = here.resources(&everything());
        let mut states: Vec<State> =
            resources.iter().map(|resource| resource.state.clone()).collect();
        for key in keys {
            let all = versions(&here, key);
            let current = resources
                .iter()
                .find(|resource| resource.key == **key)
                .map(|resource| &resource.state);
            if let Some(last) = all.last() {
                let last = last.state.as_ref().map(|state| (state.content, &state.digests));
                assert_eq!(
                    last,
                    current.map(|state| (state.content, &state.digests)),
                    "{place}: the newest is current"
                );
            }
            states.extend(all.into_iter().filter_map(|version| version.state));
        }
        let mut own = BTreeSet::new();
        for state in states {
            if let Some(id) = state.content
                && own.insert(id)
                && *set == fixture.set
            {
                bytes += state.length.unwrap_or(0);
            }
        }
        named.extend(own);
    }
    let collected =
        fixture.log.collect_versions(fixture.set, &VersionPolicy::default(), 1).expect("collected");
    assert_eq!(collected.kept_bytes, bytes, "{place}: bytes are counted once");
    for number in 0..8 {
        let id = id(number);
        assert_eq!(
            fixture.log.needs_content(&id).expect("no error"),
            named.contains(&id),
            "{place}: {number}"
        );
    }
}
