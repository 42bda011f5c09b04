//! A batch does what its changes do one by one, also in a store that is opened again meanwhile, and
//! in every database.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::testing::Random;
use abreast_core::{
    Action, Beginning, Change, ChangeLog, ChangeRecord, ContentId, Description, FixedClock, Head,
    Imported, KeyRange, NewSet, Order, Page, PageRule, Position, Resource, SetId, ShardRule, State,
    Version, append,
};
use abreast_store::integrity::{Findings, check_log};
use abreast_store::{SqliteLog, SqliteOptions};
use abreast_testkit::folder;
use abreast_webtypes::{Digests, Label, Link, Timestamp};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Random histories; each is recorded in several ways.
const HISTORIES: u64 = 40;
/// New resources of a large batch.
const MANY: u64 = 300;
const ROUNDS: u64 = 8;
const RULE: ShardRule = ShardRule { resources: 12, bytes: 30_000 };
const START: i64 = 1_767_225_600;

const KEYS: &[&str] = &["a", "a/b", "b", "c%", "d", "é", "f", "z/1", "z/2", "z/3", "z/4", "0", "~"];
const NAMES: &[&str] = &["n1", "n2", "n3"];

/// The part of a store that readers can see.
#[derive(Debug, PartialEq)]
struct Seen {
    head: Head,
    changes: Vec<ChangeRecord>,
    latest: Vec<ChangeRecord>,
    resources: Vec<Resource>,
    pages: Vec<Page>,
    versions: Vec<Vec<Version>>,
    needed: Vec<bool>,
    unneeded: Vec<ContentId>,
    kept_bytes: u64,
    positions: Vec<Position>,
}

struct Way<'w> {
    name: &'static str,
    log: Option<Box<dyn ChangeLog>>,
    open: Box<dyn Fn() -> Box<dyn ChangeLog> + 'w>,
    clock: Arc<FixedClock>,
    set: SetId,
    one_by_one: bool,
}

impl<'w> Way<'w> {
    /// Opens a new store, whose pages and beginning depend on the seed.
    fn new(
        name: &'static str,
        seed: u64,
        open: impl Fn(Arc<FixedClock>) -> Box<dyn ChangeLog> + 'w,
    ) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(START)));
        let given = Arc::clone(&clock);
        let open = Box::new(move || open(Arc::clone(&given)));
        let log = open();
        let new = NewSet {
            slug: "set".into(),
            page_rule: PageRule {
                changes: 1 + random.below(30) as u32,
                age: Duration::from_secs(86_400 * 3),
            },
            beginning: if random.below(3) == 0 { Beginning::Log } else { Beginning::Base },
            ..NewSet::default()
        };
        let set = log.open_set(&new).unwrap().id;
        Self { name, log: Some(log), open, clock, set, one_by_one: name.ends_with("one by one") }
    }

    /// Opens the store again: all that the writer had in memory is read from the rows.
    fn reopen(&mut self) {
        drop(self.log.take());
        self.log = Some((self.open)());
    }

    fn log(&self) -> &dyn ChangeLog {
        self.log.as_deref().unwrap()
    }
}

fn open_sqlite(path: &Path, clock: &Arc<FixedClock>) -> SqliteLog {
    SqliteOptions::default().with_shard_rule(RULE).open(path, Arc::clone(clock) as _).unwrap()
}

fn id(number: u64) -> ContentId {
    ContentId([number as u8; ContentId::BYTES])
}

fn state(random: &mut Random) -> State {
    let number = random.below(3);
    let content = (random.below(2) == 0).then(|| random.below(4));
    State {
        modified: Timestamp::from_seconds(number as i64),
        // Bytes of one address have one length.
        length: Some(content.unwrap_or(number)),
        media_type: (number == 1).then(|| "text/plain".to_owned()),
        digests: Digests { md5: (number > 0).then_some([number as u8; 16]), ..Digests::default() },
        links: if number == 2 {
            vec![Link {
                target: "https://example.org/".into(),
                rel: "up".into(),
                ..Link::default()
            }]
        } else {
            Vec::new()
        },
        description: (number == 2).then(|| {
            Box::new(Description { labels: vec![Label::plain("Two")], ..Description::default() })
        }),
        content: content.map(id),
        ..State::default()
    }
}

fn key(random: &mut Random) -> String {
    if random.below(3) == 0 {
        format!("{}{}", random.of(KEYS), random.below(40))
    } else {
        (*random.of(KEYS)).to_owned()
    }
}

fn witness(random: &mut Random) -> Vec<u8> {
    vec![7; random.index(3)]
}

fn change(random: &mut Random) -> Change {
    let key = key(random);
    let replaced_by = || vec!["urn:other".to_owned()];
    let change = match random.below(10) {
        0 => Change::delete(key),
        1 => Change::remove(key),
        2 => Change::deprecate(key, replaced_by()),
        3 => Change::deprecate(key, Vec::new()),
        4 => Change::new(
            key,
            Action::Deprecate {
                state: Some((state(random), Vec::new())),
                replaced_by: replaced_by(),
            },
        ),
        5 => Change::add(key, state(random)),
        _ => Change::put(key, state(random)),
    };
    let change = change.with_witness(witness(random));
    let change = if random.below(5) == 0 { change.with_summary("why") } else { change };
    if random.below(6) == 0 { change.with_idempotency_key(*random.of(NAMES)) } else { change }
}

/// The same history recorded in a store: batch by batch, or change by change.
fn record(way: &mut Way<'_>, seed: u64) {
    let (log, set) = (way.log(), way.set);
    let mut random = Random::new(seed);
    log.keep_versions(set, random.below(3) > 0).unwrap();
    if log.head(set).unwrap().importing {
        for _ in 0..random.below(3) {
            let imported = |random: &mut Random| Imported {
                key: key(random),
                state: state(random),
                witness: witness(random),
            };
            let resources: Vec<Imported> =
                (0..random.below(30)).map(|_| imported(&mut random)).collect();
            if way.one_by_one {
                for resource in resources {
                    log.import(set, vec![resource]).unwrap();
                }
            } else {
                log.import(set, resources).unwrap();
            }
        }
        log.complete_import(set).unwrap();
    }
    for round in 0..ROUNDS {
        // Also back, and beyond the seven days for which names are remembered.
        let days = random.below(12) as i64 - 1;
        way.clock.set(Timestamp::from_seconds(START + days * 86_400));
        let size = if round == 3 { random.below(200) } else { random.below(25) };
        let mut changes: Vec<Change> = (0..size).map(|_| change(&mut random)).collect();
        if round == 5 {
            let new = |number| Change::put(format!("many/{number}"), state(&mut random));
            let many = if seed.is_multiple_of(8) { MANY } else { 0 };
            changes.extend((0..many).map(new));
        }
        if way.name.ends_with("reopened") {
            way.reopen();
        }
        let log = way.log();
        if way.one_by_one {
            for change in changes {
                append(log, set, vec![change]).unwrap();
            }
        } else {
            append(log, set, changes).unwrap();
        }
    }
}

fn seen(way: &Way<'_>) -> Seen {
    let (log, set) = (way.log(), way.set);
    let (mut changes, mut latest, mut resources) = (Vec::new(), Vec::new(), Vec::new());
    log.read(set, Position(0), &mut |change| {
        changes.push(change.clone());
        ControlFlow::Continue(())
    })
    .unwrap();
    log.latest(set, Position(0), &mut |change| {
        latest.push(change.clone());
        ControlFlow::Continue(())
    })
    .unwrap();
    log.scan(set, &KeyRange::default(), &mut |resource| {
        resources.push(resource.clone());
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut keys: Vec<&str> =
        changes.iter().map(|change| change.key.as_str()).chain(KEYS.iter().copied()).collect();
    keys.sort_unstable();
    keys.dedup();
    let versions = keys
        .iter()
        .map(|key| log.versions(set, key, Timestamp::MIN, Order::OldestFirst, 1_000).unwrap());
    Seen {
        head: log.head(set).unwrap(),
        versions: versions.collect(),
        needed: (0..4).map(|number| log.needs_content(&id(number)).unwrap()).collect(),
        unneeded: log.unneeded_contents(None, 100).unwrap(),
        kept_bytes: log
            .collect_versions(set, &abreast_core::VersionPolicy::default(), 1)
            .unwrap()
            .kept_bytes,
        pages: log.pages(set, 1, 10_000).unwrap(),
        positions: (-2..13)
            .map(|day| log.position_at(set, Timestamp::from_seconds(START + day * 86_400)).unwrap())
            .collect(),
        changes,
        latest,
        resources,
    }
}

/// Records a history, and compares what readers see with the first way that recorded it.
fn recorded<'w>(
    name: &'static str,
    seed: u64,
    open: impl Fn(Arc<FixedClock>) -> Box<dyn ChangeLog> + 'w,
    first: &mut Option<Seen>,
) -> Way<'w> {
    let mut way = Way::new(name, seed, open);
    record(&mut way, seed);
    let now = seen(&way);
    let expected = first.get_or_insert_with(|| seen(&way));
    assert!(now == *expected, "seed {seed}, {name}:\n{now:#?}\nexpected\n{expected:#?}");
    way
}

#[test]
fn batches_and_single_changes_make_the_same_log() {
    let folder = folder::in_memory();
    for seed in 0..HISTORIES {
        let mut first = None;
        for name in ["one by one", "in batches", "in batches, reopened"] {
            let path = folder.path().join(format!("{seed} {name}.db"));
            let way =
                recorded(name, seed, |clock| Box::new(open_sqlite(&path, &clock)), &mut first);
            drop(way);
            let mut findings = Findings::default();
            check_log(&path, &mut findings).unwrap();
            assert!(findings.is_consistent(), "seed {seed}, {name}: {:?}", findings.list());
        }
    }
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_and_sqlite_make_the_same_log() {
    let name = "postgres_and_sqlite_make_the_same_log";
    let Some(programs) = abreast_testkit::provided(name, "ABREAST_TEST_POSTGRES") else { return };
    let server = abreast_testkit::postgres::Postgres::start(&programs);
    let folder = folder::in_memory();
    for seed in 0..HISTORIES / 5 {
        let mut first = None;
        let path = folder.path().join(format!("{seed}.db"));
        recorded("SQLite", seed, |clock| Box::new(open_sqlite(&path, &clock)), &mut first);
        let ways = ["in batches", "in batches, reopened"];
        for (number, name) in ways.into_iter().enumerate() {
            let url = server.create(&format!("store{seed}_{number}"));
            let open = |clock: Arc<FixedClock>| -> Box<dyn ChangeLog> {
                let options = abreast_store::PostgresOptions::default().with_shard_rule(RULE);
                Box::new(options.with_clock(clock).open(&url).unwrap())
            };
            recorded(name, seed, open, &mut first);
        }
    }
}
