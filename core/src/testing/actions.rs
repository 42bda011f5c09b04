//! Checks of actions: what each is recorded as, and what is kept with it.

use super::{Fixture, START, Stores, everything, state};
use crate::{
    Action, Beginning, Change, ChangeRecord, Description, ErrorKind, FixedClock, Kind, NewSet,
    Position, State, append,
};
use abreast_webtypes::Label;
use std::ops::ControlFlow;
use std::sync::Arc;

fn records(fixture: &Fixture) -> Vec<ChangeRecord> {
    let mut found = Vec::new();
    let mut visit = |change: &ChangeRecord| {
        found.push(change.clone());
        ControlFlow::Continue(())
    };
    fixture.log.read(fixture.set, Position(0), &mut visit).expect("the log can be read");
    found
}

fn kinds(fixture: &Fixture) -> Vec<(Kind, String)> {
    records(fixture).into_iter().map(|change| (change.kind, change.key)).collect()
}

pub(super) fn actions_are_recorded_as_kinds(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let batch = vec![
        Change::add("a", state(1)),
        Change::add("a", state(2)),
        Change::put("b", state(1)),
        Change::remove("a"),
        Change::add("a", state(2)),
        Change::deprecate("a", Vec::new()),
        Change::delete("b"),
        Change::put("b", state(1)),
        Change::new(
            "c",
            Action::Deprecate { state: Some((state(3), vec![7])), replaced_by: Vec::new() },
        ),
        Change::remove("c"),
        // None of these changes anything.
        Change::add("b", state(1)),
        Change::remove("none"),
        Change::delete("c"),
        Change::deprecate("none", Vec::new()),
    ];
    let answer = fixture.append(batch);
    assert_eq!((answer.recorded, answer.unchanged), (10, 4));
    let expected = [
        (Kind::Add, "a"),
        (Kind::Update, "a"),
        (Kind::Create, "b"),
        (Kind::Remove, "a"),
        (Kind::Add, "a"),
        (Kind::Deprecate, "a"),
        (Kind::Delete, "b"),
        (Kind::Create, "b"),
        (Kind::Deprecate, "c"),
        (Kind::Remove, "c"),
    ];
    let expected = expected.map(|(kind, key)| (kind, key.to_owned()));
    assert_eq!(kinds(&fixture), expected);
    fixture.check();
    let fixture = fixture.reopen(stores);
    assert_eq!(kinds(&fixture), expected);
    fixture.check();
}

pub(super) fn deprecation_ends_with_another_state(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let (log, set) = (&*fixture.log, fixture.set);
    let deprecated = || log.resource(set, "a").expect("read").expect("there").deprecated;
    let deprecate = |uris: &[&str]| Change::deprecate("a", texts(uris));
    let with_state = |number, uris: &[&str]| {
        Change::new(
            "a",
            Action::Deprecate { state: Some((state(number), vec![9])), replaced_by: texts(uris) },
        )
    };
    let steps = [
        (Change::put("a", state(1)).with_witness(vec![1]), Some(Kind::Create), None),
        (deprecate(&["urn:b"]), Some(Kind::Deprecate), Some(texts(&["urn:b"]))),
        (deprecate(&["urn:b"]), None, Some(texts(&["urn:b"]))),
        (deprecate(&["urn:c", "urn:b"]), Some(Kind::Deprecate), Some(texts(&["urn:c", "urn:b"]))),
        (Change::put("a", state(1)), None, Some(texts(&["urn:c", "urn:b"]))),
        (with_state(2, &["urn:c", "urn:b"]), Some(Kind::Update), Some(texts(&["urn:c", "urn:b"]))),
        (with_state(2, &["urn:c", "urn:b"]), None, Some(texts(&["urn:c", "urn:b"]))),
        (deprecate(&[]), Some(Kind::Deprecate), Some(Vec::new())),
        (Change::put("a", state(3)), Some(Kind::Update), None),
    ];
    let mut count = 0;
    for (place, (change, kind, expected)) in steps.into_iter().enumerate() {
        let recorded = fixture.append(vec![change]).recorded;
        count += recorded as usize;
        assert_eq!(deprecated(), expected, "step {place}");
        assert_eq!(
            (recorded == 1).then(|| records(&fixture)[count - 1].kind),
            kind,
            "step {place}"
        );
    }
    let witness = log.resource(set, "a").expect("read").expect("there").witness;
    assert_eq!(witness, Vec::<u8>::new(), "of the last put");
    let found = &records(&fixture)[2];
    assert_eq!(
        (&found.replaced_by, &found.state),
        (&texts(&["urn:c", "urn:b"]), &Some(state(1))),
        "state kept"
    );
    fixture.check();
}

pub(super) fn notes_and_descriptions_are_kept(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let description = Description {
        types: vec!["urn:type".into()],
        labels: vec![Label { language: "sv".into(), text: "Änne".into() }, Label::plain("Anne")],
        media_type: None,
    };
    let described = State { description: Some(Box::new(description.clone())), ..state(1) };
    fixture.append(vec![
        Change::put("a", described).with_summary("first"),
        Change::deprecate("a", vec!["urn:b".into()]),
        Change::remove("a").with_summary("left\nus"),
        Change::put("b", state(1)),
        Change::delete("b"),
    ]);
    for fixture in [fixture].map(|fixture| fixture.reopen(stores)) {
        let found = records(&fixture);
        let summaries: Vec<_> = found.iter().map(|change| change.summary.as_deref()).collect();
        assert_eq!(summaries, [Some("first"), None, Some("left\nus"), None, None]);
        let replaced: Vec<_> = found.iter().map(|change| change.replaced_by.len()).collect();
        assert_eq!(replaced, [0, 1, 0, 0, 0]);
        let described: Vec<_> =
            found.iter().map(|change| change.description() == Some(&description)).collect();
        assert_eq!(
            described,
            [true, true, true, false, false],
            "what was removed is still described"
        );
        assert_eq!(found[4].removed, None);
        fixture.check();
    }
    let fixture = Fixture::plain(stores);
    for refused in [
        Change::put("a", state(1)).with_summary("x".repeat(5_000)),
        Change::deprecate("a", vec!["x".repeat(20_000)]),
        Change::put(
            "a",
            State {
                description: Some(Box::new(Description {
                    types: vec!["x".repeat(20_000)],
                    labels: Vec::new(),
                    media_type: None,
                })),
                ..state(1)
            },
        ),
    ] {
        let error = append(&*fixture.log, fixture.set, vec![refused]).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
}

/// Texts of their own.
fn texts(uris: &[&str]) -> Vec<String> {
    uris.iter().map(|uri| (*uri).to_owned()).collect()
}

pub(super) fn changes_of_types_keep_the_former_ones(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let put = |number, types: &[&str]| {
        let types = types.iter().map(|class| (*class).to_owned()).collect();
        let description =
            Some(Box::new(Description { types, labels: Vec::new(), media_type: None }));
        Change::put("a", State { description, ..state(number) })
    };
    fixture.append(vec![
        put(1, &["urn:t"]),
        put(2, &["urn:t"]),
        put(3, &["urn:t", "urn:u"]),
        put(4, &[]).with_summary("none"),
    ]);
    fixture.append(vec![put(5, &["urn:u"])]);
    fixture.append(vec![Change::deprecate("a", Vec::new()), Change::delete("a")]);
    fixture.append(vec![put(6, &["urn:t"]), Change::put("a", state(7))]);
    let fixture = fixture.reopen(stores);
    let found = records(&fixture);
    let former: Vec<_> = found.iter().map(|change| change.former_types.clone()).collect();
    let both = texts(&["urn:t", "urn:u"]);
    let one = |class| Some(texts(&[class]));
    assert_eq!(
        former,
        [None, None, one("urn:t"), Some(both), Some(vec![]), None, None, None, one("urn:t")]
    );
    assert_eq!(found[3].summary.as_deref(), Some("none"));
    fixture.check();
}

pub(super) fn history_may_begin_in_the_log(stores: &mut dyn Stores) {
    let clock = Arc::new(FixedClock::at(START));
    let log = stores.create(Arc::clone(&clock), 3, 1_000_000);
    let new = NewSet { slug: "rdf".into(), beginning: Beginning::Log, ..NewSet::default() };
    let set = log.open_set(&new).expect("opened").id;
    let head = log.head(set).expect("a head");
    assert!(!head.importing);
    assert_eq!((head.position, head.created), (Position(0), START));
    log.complete_import(set).expect("nothing to complete");
    let late = log.import(set, Vec::new()).expect_err("there is no base");
    assert_eq!(late.kind(), ErrorKind::Refused);
    let fixture = Fixture { log, clock, set };
    fixture
        .append((0..10).map(|number| Change::add(format!("e{number}"), state(number))).collect());
    fixture.check();
    let fixture = fixture.reopen(stores);
    assert_eq!(fixture.log.open_set(&new).expect("opened again").id, set);
    assert_eq!(fixture.keys(&everything()).len(), 10);
    let other = fixture
        .log
        .open_set(&NewSet { beginning: Beginning::Base, ..new })
        .expect_err("it began otherwise");
    assert_eq!(other.kind(), ErrorKind::Refused);
    fixture.check();
}

pub(super) fn sets_are_listed_and_found(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    let open = |slug: &str| {
        fixture.log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).expect("opened")
    };
    let (two, one) = (open("two"), open("one"));
    let sets = fixture.log.sets().expect("listed");
    assert_eq!(
        sets.iter().map(|set| set.slug.as_str()).collect::<Vec<_>>(),
        ["checked", "two", "one"]
    );
    assert_eq!(fixture.log.find_set("two").expect("asked"), Some(two));
    assert_eq!(fixture.log.find_set("three").expect("asked"), None);
    let fixture = fixture.reopen(stores);
    assert_eq!(fixture.log.sets().expect("listed"), sets);
    assert_eq!(fixture.log.find_set("one").expect("asked"), Some(one));
}
