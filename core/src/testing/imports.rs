//! Contract of imports: a set begins with its base, and its log follows.

use super::{DAY, Fixture, START, Stores, everything, put, state};
use crate::{Beginning, ErrorKind, FixedClock, Head, Imported, NewSet, Position, append};
use std::sync::Arc;

fn imported(key: &str, number: u64) -> Imported {
    Imported { key: key.into(), state: state(number), witness: vec![number as u8] }
}

fn importing(stores: &mut dyn Stores) -> Fixture {
    let clock = Arc::new(FixedClock::at(START));
    let log = stores.create(Arc::clone(&clock), 3, 1_000_000);
    let new = NewSet { slug: "imported".into(), ..NewSet::default() };
    let set = log.open_set(&new).expect("a set can be opened").id;
    Fixture { log, clock, set }
}

pub(super) fn base_comes_before_the_log(stores: &mut dyn Stores) {
    let fixture = importing(stores);
    let (log, set) = (&*fixture.log, fixture.set);
    assert!(log.head(set).unwrap_or_default().importing);
    let early =
        append(log, set, vec![put("a", 1)]).expect_err("no change before the end of the import");
    assert_eq!(early.kind(), ErrorKind::Refused);

    log.import(set, vec![imported("b", 1), imported("a", 2), imported("d", 3)]).expect("imported");
    log.import(set, vec![imported("b", 4), imported("c", 5), imported("bb", 6)]).expect("imported");
    fixture.clock.set(START.plus_micros(DAY));
    log.complete_import(set).expect("completed");
    let head = log.head(set).expect("a head");
    assert!(!head.importing);
    assert_eq!((head.position, head.resources, head.open_page), (Position(0), 5, 1));
    assert_eq!((head.created, head.time), (START.plus_micros(DAY), START.plus_micros(DAY)));

    let resources = fixture.resources(&everything());
    let found: Vec<_> =
        resources.iter().map(|one| (one.key.as_str(), one.state.clone(), one.position)).collect();
    let expected = [("a", 2), ("b", 4), ("bb", 6), ("c", 5), ("d", 3)]
        .map(|(key, number)| (key, state(number), Position(0)));
    assert_eq!(found, expected, "a key imported twice takes the later state");
    let shards = log.shards(set).expect("shards");
    assert!(shards.len() > 1, "an import fills shards");
    assert!(
        shards.iter().all(|shard| shard.version == Position(0) && shard.time == head.created),
        "{shards:?}"
    );
    let pages = log.pages(set, 1, 10).expect("pages");
    assert_eq!((pages.len(), pages[0].from), (1, head.created));

    fixture.clock.set(START.plus_micros(2 * DAY));
    log.complete_import(set).expect("completed again");
    assert_eq!(log.head(set).expect("a head"), head, "completing twice does nothing");
    let late = log.import(set, vec![imported("z", 1)]).expect_err("no import after its end");
    assert_eq!(late.kind(), ErrorKind::Refused);

    fixture.clock.set(START);
    fixture.append(vec![put("a", 2), put("b", 9)]);
    let head = log.head(set).expect("a head");
    assert_eq!(head.position, Position(1));
    assert_eq!(
        head.time,
        head.created.next(),
        "the log begins after the import, whatever the clock shows"
    );
    let fixture = fixture.reopen(stores);
    assert_eq!(fixture.log.head(set).expect("a head"), head);
    assert_eq!(fixture.resources(&everything()).len(), 5);
}

pub(super) fn interrupted_import_goes_on(stores: &mut dyn Stores) {
    let fixture = importing(stores);
    fixture.log.import(fixture.set, vec![imported("a", 1), imported("b", 2)]).expect("imported");
    let fixture = fixture.reopen(stores);
    let head = fixture.log.head(fixture.set).expect("a head");
    assert!(head.importing);
    assert_eq!(head.resources, 2);
    fixture.log.import(fixture.set, vec![imported("b", 3), imported("c", 4)]).expect("imported");
    fixture.log.complete_import(fixture.set).expect("completed");
    let fixture = fixture.reopen(stores);
    assert!(!fixture.log.head(fixture.set).expect("a head").importing);
    assert_eq!(fixture.keys(&everything()), ["a", "b", "c"]);
    fixture.append(vec![put("d", 1)]);
}

/// A set whose first state is read from elsewhere, and goes into its log.
pub(super) fn an_incomplete_set_takes_changes(stores: &mut dyn Stores) {
    let clock = Arc::new(FixedClock::at(START));
    let log = stores.create(Arc::clone(&clock), 3, 1_000_000);
    let new = NewSet {
        slug: "read".into(),
        beginning: Beginning::Log,
        incomplete: true,
        ..NewSet::default()
    };
    let set = log.open_set(&new).expect("a set can be opened").id;
    let fixture = Fixture { log, clock, set };
    fixture.append(vec![put("a", 1)]);
    let fixture = fixture.reopen(stores);
    let (log, set) = (&*fixture.log, fixture.set);
    let head = log.head(set).expect("a head");
    assert!(head.importing && head.is_first() && !head.takes_base());
    assert_eq!((head.position, head.resources), (Position(1), 1));
    let base = log.import(set, vec![imported("b", 1)]).expect_err("it has no base");
    assert_eq!(base.kind(), ErrorKind::Refused);
    log.open_set(&NewSet { incomplete: false, ..new.clone() }).expect("opened");
    assert!(log.head(set).expect("a head").importing, "opening it again completes nothing");
    fixture.clock.set(START.plus_micros(DAY));
    log.complete_import(set).expect("completed");
    let complete = Head { importing: false, ..head };
    assert_eq!(log.head(set).expect("a head"), complete, "its log began before");
    log.open_set(&new).expect("opened");
    let fixture = fixture.reopen(stores);
    assert_eq!(fixture.log.head(fixture.set).expect("a head"), complete);
}
