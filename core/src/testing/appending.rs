//! Contract of appending: what is recorded and what is not.

use super::{DAY, Fixture, START, Stores, everything, put, state};
use crate::{
    Appended, Change, ChangeRecord, ContentId, Description, ErrorKind, FixedClock, KeyRange, Kind,
    NewSet, Order, PageRule, Position, SetId, ShardId, State, VersionPolicy, append,
};
use abreast_webtypes::{Digests, Label, Link, Timestamp};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

fn records(fixture: &Fixture) -> Vec<ChangeRecord> {
    let mut found = Vec::new();
    let mut note = |change: &ChangeRecord| {
        found.push(change.clone());
        ControlFlow::Continue(())
    };
    fixture.log.read(fixture.set, Position(0), &mut note).expect("the log can be read");
    found
}

const fn appended(head: u64, recorded: u64, unchanged: u64) -> Appended {
    Appended { head: Position(head), recorded, unchanged }
}

pub(super) fn sets_are_opened_by_name(stores: &mut dyn Stores) {
    let log = stores.create(Arc::new(FixedClock::at(START)), 1_000, 1_000_000);
    let open = |slug: &str| log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() });
    let (one, two) = (open("one").expect("opened"), open("two").expect("opened"));
    assert_ne!(one.id, two.id);
    assert_eq!(open("one").expect("opened again"), one);
    for slug in ["", "One", "a/b", "../a", "ö"] {
        assert_eq!(open(slug).expect_err("refused").kind(), ErrorKind::Refused, "{slug}");
    }
    for changes in [0, 50_001] {
        let page_rule = PageRule { changes, ..PageRule::default() };
        let refused = log
            .open_set(&NewSet { slug: "three".into(), page_rule, ..NewSet::default() })
            .expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::Refused, "pages of {changes} changes");
    }
    for set in [one.id, two.id] {
        log.complete_import(set).expect("completed");
    }
    append(&*log, one.id, vec![put("a", 1), put("b", 1)]).expect("appended");
    append(&*log, two.id, vec![put("a", 2)]).expect("appended");
    assert_eq!(log.head(one.id).expect("a head").position, Position(2));
    assert_eq!(log.head(two.id).expect("a head").position, Position(1), "each set has its own log");
    assert_eq!(log.resource(two.id, "b").expect("read"), None);
    assert_eq!(log.resource(two.id, "a").expect("read").map(|found| found.state), Some(state(2)));
    for set in [one.id, two.id] {
        let head = log.head(set).expect("a head");
        assert_eq!(
            log.known_head(set).unwrap_or(head),
            head,
            "what is known without asking is what is asked"
        );
    }
    let log = stores.reopen(log);
    assert_eq!(
        log.open_set(&NewSet { slug: "two".into(), ..NewSet::default() }).expect("opened"),
        two
    );
    assert_eq!(log.head(one.id).expect("a head").position, Position(2));
}

pub(super) fn unknown_sets_are_told_apart(stores: &mut dyn Stores) {
    let log = Fixture::plain(stores).log;
    for set in [SetId(0), SetId(99), SetId(-1)] {
        assert_eq!(log.known_head(set), None);
        let errors = [
            log.head(set).err(),
            log.import(set, Vec::new()).err(),
            log.complete_import(set).err(),
            append(&*log, set, vec![put("a", 1)]).err(),
            log.refresh_witnesses(set, Vec::new()).err(),
            log.read(set, Position(0), &mut |_| ControlFlow::Continue(())).err(),
            log.resource(set, "a").err(),
            log.scan(set, &KeyRange::default(), &mut |_| ControlFlow::Continue(())).err(),
            log.shards(set).err(),
            log.shard(set, ShardId(1)).err(),
            log.pages(set, 1, 1).err(),
            log.keep_versions(set, true).err(),
            log.versions(set, "a", START, Order::OldestFirst, 1).err(),
            log.collect_versions(set, &VersionPolicy::default(), 1).err(),
        ];
        for error in errors {
            assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::NoSet));
        }
    }
}

pub(super) fn positions_have_no_gaps(stores: &mut dyn Stores) {
    let mut fixture = Fixture::plain(stores);
    assert_eq!(fixture.append(Vec::new()), appended(0, 0, 0));
    let mut expected = 0;
    for batch in [1_u64, 2, 7, 100, 1] {
        let changes =
            (0..batch).map(|number| put(format!("{batch}/{number}"), expected + number)).collect();
        expected += batch;
        let first = expected;
        assert_eq!(fixture.append(changes).head, Position(first));
        expected += 1;
        assert_eq!(fixture.append(vec![put("same", expected)]).head, Position(expected));
        fixture = fixture.reopen(stores);
        assert_eq!(fixture.log.head(fixture.set).expect("a head").position, Position(expected));
    }
    let positions: Vec<u64> = records(&fixture).iter().map(|record| record.position.0).collect();
    assert_eq!(positions, (1..=expected).collect::<Vec<_>>());
    for after in [0, 1, 57, expected - 1, expected, expected + 1, u64::MAX >> 1] {
        let mut seen = Vec::new();
        let mut note = |change: &ChangeRecord| {
            seen.push(change.position.0);
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        fixture.log.read(fixture.set, Position(after), &mut note).expect("the log can be read");
        assert_eq!(seen, (after + 1..=expected).take(3).collect::<Vec<_>>(), "after {after}");
    }
    fixture.check();
}

pub(super) fn refused_batch_leaves_nothing(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let longest = "k".repeat(8 * 1024);
    assert_eq!(fixture.append(vec![put(longest.clone(), 1)]), appended(1, 1, 0));
    let long = format!("{longest}k");
    let too_many = (0..10_001).map(|number| Change::delete(number.to_string())).collect();
    let batches: [Vec<Change>; 3] = [
        vec![put("a", 1), put(long.clone(), 1)],
        vec![put("a", 1), Change::delete(long)],
        too_many,
    ];

    // Refused ones among good ones: each gets its own result.
    let (sender, outcomes) = mpsc::channel();
    for (number, refused) in batches.into_iter().enumerate() {
        for changes in [vec![put(format!("good/{number}"), 1)], refused] {
            let sender = sender.clone();
            let here = std::thread::current().id();
            let done = Box::new(move |result: Result<Appended, crate::LogError>| {
                assert_ne!(
                    std::thread::current().id(),
                    here,
                    "`done` is called from another thread"
                );
                sender.send(result.map_err(|error| error.kind())).expect("the test listens");
            });
            fixture.log.append_then(fixture.set, changes, done);
        }
    }
    drop(sender);
    let outcomes: Vec<_> = outcomes.iter().collect();
    let expected =
        [2, 3, 4].map(|head| [Ok(appended(head, 1, 0)), Err(ErrorKind::Refused)]).concat();
    assert_eq!(outcomes, expected);
    assert_eq!(fixture.log.resource(fixture.set, "a").expect("read"), None);
    fixture.append((0..10_000).map(|number| put(format!("many/{number:05}"), 1)).collect());
    fixture.check();
}

pub(super) fn equal_states_record_nothing(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let set = fixture.set;
    assert_eq!(fixture.append(vec![put("a", 210), put("b", 1)]), appended(2, 2, 0));
    assert_eq!(
        fixture.append(vec![put("a", 210), put("b", 1), Change::delete("c")]),
        appended(2, 0, 3)
    );
    assert_eq!(
        fixture.append(vec![put("a", 210), put("b", 2), put("b", 2), put("c", 3)]),
        appended(4, 2, 2)
    );
    assert_eq!(
        fixture.append(vec![Change::delete("b"), Change::delete("b"), put("b", 2)]),
        appended(6, 2, 1)
    );
    let head = fixture.log.head(set).expect("a head");
    assert_eq!(head.resources, 3);
    let found: Vec<_> = records(&fixture)
        .into_iter()
        .map(|change| (change.kind, change.key, change.state))
        .collect();
    let expected = [
        (Kind::Create, "a", Some(210)),
        (Kind::Create, "b", Some(1)),
        (Kind::Update, "b", Some(2)),
        (Kind::Create, "c", Some(3)),
        (Kind::Delete, "b", None),
        (Kind::Create, "b", Some(2)),
    ];
    assert_eq!(
        found,
        expected.map(|(kind, key, number)| (kind, key.to_owned(), number.map(state)))
    );
    let positions = ["a", "b", "c"]
        .map(|key| fixture.log.resource(set, key).expect("read").map(|one| one.position.0));
    assert_eq!(positions, [Some(1), Some(6), Some(4)]);
    fixture.check();
}

pub(super) fn states_are_kept_whole(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let full = State {
        modified: Timestamp::from_micros(-1),
        length: Some(u64::MAX >> 1),
        media_type: Some("text/html; charset=\"utf-8\"".into()),
        encoding: Some("gzip".into()),
        digests: Digests {
            md5: Some([1; 16]),
            sha1: Some([2; 20]),
            sha256: Some([3; 32]),
            sha512: Some(Box::new([4; 64])),
            unknown: Vec::new(),
        },
        links: vec![
            Link {
                target: "https://example.org/ä?a=\"1\"&b".into(),
                rel: "describedby up".into(),
                params: vec![("type".into(), "text/html".into()), ("pri".into(), "1".into())],
            },
            Link::default(),
        ],
        description: Some(Box::new(Description {
            types: vec!["http://example.org/Term".into(), "urn:ä".into()],
            labels: vec![Label::plain("A \"term\"")],
            media_type: None,
        })),
        content: Some(ContentId([5; ContentId::BYTES])),
    };
    // Each differs from the one before in one part only: all of them are changes.
    let steps: [fn(&mut State); 12] = [
        |_| {},
        |state| state.modified = Timestamp::MIN,
        |state| state.length = Some(0),
        |state| state.length = None,
        |state| state.media_type = None,
        |state| state.encoding = Some(String::new()),
        |state| state.digests.sha512 = None,
        |state| state.links.swap(0, 1),
        |state| state.links[1].params.truncate(1),
        |state| state.description.as_mut().expect("one").types.truncate(1),
        |state| state.description = Some(Box::default()),
        |state| state.description = None,
    ];
    let mut state = full;
    let mut expected = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        step(&mut state);
        expected.push(state.clone());
        let position = number as u64 + 1;
        assert_eq!(
            fixture.append(vec![Change::put("a", state.clone())]),
            appended(position, 1, 0),
            "step {number}"
        );
        assert_eq!(
            fixture.append(vec![Change::put("a", state.clone())]),
            appended(position, 0, 1),
            "step {number}"
        );
        let stored = fixture.log.resource(fixture.set, "a").expect("read").map(|found| found.state);
        assert_eq!(stored.as_ref(), Some(&state));
    }
    let found: Vec<_> = records(&fixture).into_iter().filter_map(|change| change.state).collect();
    assert_eq!(found, expected);
    state.digests.unknown.push("whirlpool".into());
    assert_eq!(
        fixture.append(vec![Change::put("a", state)]).unchanged,
        1,
        "names of unknown digests are not kept"
    );
}

pub(super) fn witnesses_are_not_changes(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let (log, set) = (&*fixture.log, fixture.set);
    let witness =
        |key| log.resource(set, key).expect("read").map(|found| (found.witness, found.position.0));
    fixture.append(vec![put("a", 1).with_witness(b"one".to_vec()), put("b", 1)]);
    assert_eq!(fixture.append(vec![put("a", 1).with_witness(b"two".to_vec())]), appended(2, 0, 1));
    assert_eq!(witness("a"), Some((b"two".to_vec(), 1)), "kept though the state is equal");
    let before = log.shards(set).expect("shards");
    let seen = [("a", "three"), ("b", "four"), ("c", "five")];
    let seen = seen.map(|(key, witness)| (key.to_owned(), witness.as_bytes().to_vec()));
    log.refresh_witnesses(set, seen.to_vec()).expect("noted");
    assert_eq!(witness("a"), Some((b"three".to_vec(), 1)));
    assert_eq!(witness("b"), Some((b"four".to_vec(), 2)));
    assert_eq!(witness("c"), None, "a witness makes no resource");
    assert_eq!(log.shards(set).expect("shards"), before, "no document changes");
    assert_eq!(fixture.append(vec![put("a", 2).with_witness(b"six".to_vec())]), appended(3, 1, 0));
    assert_eq!(witness("a"), Some((b"six".to_vec(), 3)));
    fixture.check();
}

pub(super) fn idempotency_keys_name_one_change(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let named = |key: &str, number, name: &str| put(key, number).with_idempotency_key(name);
    assert_eq!(
        fixture.append(vec![named("a", 1, "n1"), named("a", 2, "n1"), named("b", 1, "n2")]),
        appended(2, 2, 1)
    );
    assert_eq!(
        fixture.append(vec![put("a", 3), named("a", 1, "n1")]),
        appended(3, 1, 1),
        "no way back to 1"
    );
    assert_eq!(fixture.append(vec![named("a", 3, "n3")]), appended(3, 0, 1));
    assert_eq!(
        fixture.append(vec![put("a", 4), named("a", 3, "n3")]),
        appended(4, 1, 1),
        "known though no change"
    );
    let deleted = || Change::delete("b").with_idempotency_key("n4");
    assert_eq!(fixture.append(vec![deleted(), put("b", 1), deleted()]), appended(6, 2, 1));

    let other = fixture.log.open_set(&NewSet { slug: "other".into(), ..NewSet::default() });
    let other = other.expect("opened").id;
    fixture.log.complete_import(other).expect("completed");
    let first = append(&*fixture.log, other, vec![named("a", 1, "n1")]).expect("appended");
    assert_eq!(first, appended(1, 1, 0), "each set has its own names");

    let find = |set, prefix: &str| fixture.log.idempotency_key(set, prefix).expect("keys");
    assert_eq!(find(fixture.set, "n").as_deref(), Some("n1"), "the first one");
    assert_eq!(find(fixture.set, "n3").as_deref(), Some("n3"), "also without a change");
    for (set, prefix) in
        [(fixture.set, "n11"), (fixture.set, "m"), (fixture.set, "o"), (other, "n2")]
    {
        assert_eq!(find(set, prefix), None, "{prefix}");
    }

    let fixture = fixture.reopen(stores);
    fixture.clock.set(START.plus_micros(7 * DAY - 60_000_000));
    assert_eq!(fixture.append(vec![named("a", 5, "n1")]), appended(6, 0, 1), "kept for seven days");
    fixture.clock.set(START.plus_micros(7 * DAY + 60_000_000));
    assert_eq!(
        fixture.append(vec![named("a", 5, "n1"), named("a", 6, "n1")]),
        appended(7, 1, 1),
        "then new again"
    );
    fixture.check();
}

pub(super) fn many_appenders_make_one_log(stores: &mut dyn Stores) {
    const THREADS: u64 = 8;
    const BATCHES: u64 = 30;
    let fixture =
        Fixture::new(stores, super::rule(50, std::time::Duration::from_secs(3_600)), 40, 1_000_000);
    let heads: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let run = |thread: u64| {
            let fixture = &fixture;
            move || {
                (0..BATCHES)
                    .map(|batch| {
                        let size = 1 + (thread + batch) % 4;
                        let changes = (0..size)
                            .map(|number| put(format!("{thread}/{batch}/{number}"), batch));
                        let answer = fixture.append(changes.collect());
                        assert_eq!((answer.recorded, answer.unchanged), (size, 0));
                        (answer.head.0, size)
                    })
                    .collect::<Vec<_>>()
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        let answers: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("appended")).collect();
        for own in &answers {
            assert!(
                own.windows(2).all(|pair| pair[0].0 < pair[1].0),
                "one thread's batches keep their order"
            );
        }
        answers.concat()
    });
    let positions: BTreeSet<u64> =
        heads.iter().flat_map(|(head, size)| head - size + 1..=*head).collect();
    let total: u64 = heads.iter().map(|(_, size)| size).sum();
    assert_eq!(positions, (1..=total).collect(), "every position was given once");
    let fixture = fixture.reopen(stores);
    let head = fixture.log.head(fixture.set).expect("a head");
    assert_eq!((head.position.0, head.resources), (total, total));
    let log = records(&fixture);
    for (head, size) in heads {
        let batch = &log[(head - size) as usize..head as usize];
        let of = |key: &str| key.rsplit_once('/').map(|(batch, _)| batch.to_owned());
        assert!(
            batch.iter().all(|change| of(&change.key) == of(&batch[0].key)),
            "a batch is in one piece"
        );
    }
    assert_eq!(fixture.keys(&everything()).len() as u64, total);
    fixture.check();
}

pub(super) fn addresses_of_contents_are_not_changes(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let kept = |byte: u8| State { content: Some(ContentId([byte; ContentId::BYTES])), ..state(1) };
    let content = |fixture: &Fixture| {
        let found = fixture.log.resource(fixture.set, "a").expect("read").expect("it is there");
        found.state.content.map(|id| id.0[0])
    };
    assert_eq!(fixture.append(vec![Change::put("a", state(1))]), appended(1, 1, 0));
    assert_eq!(content(&fixture), None);
    // Kept later, then elsewhere; a state without a value keeps the known one.
    for (given, expected) in [(kept(7), Some(7)), (kept(8), Some(8)), (state(1), Some(8))] {
        assert_eq!(fixture.append(vec![Change::put("a", given)]), appended(1, 0, 1));
        assert_eq!(content(&fixture), expected);
    }
    let fixture = fixture.reopen(stores);
    assert_eq!(content(&fixture), Some(8));
    // A new state does not refer to the bytes of the old one.
    assert_eq!(fixture.append(vec![Change::put("a", state(2))]), appended(2, 1, 0));
    assert_eq!(content(&fixture), None);
    fixture.append(vec![Change::put("a", State { content: Some(ContentId([9; 32])), ..state(3) })]);
    let recorded: Vec<_> = records(&fixture)
        .iter()
        .map(|one| one.state.as_ref().and_then(|one| one.content))
        .collect();
    assert_eq!(recorded, [None, None, Some(ContentId([9; 32]))]);
}
