//! Copies of change feeds in Activity Streams, from servers as others write them.

use crate::copy::{Copy, Ran};
use crate::emm_source::{EmmSource, Habits};
use crate::rdf::{canonical, quads};
use abreast_destination::{LabelsOptions, NQuadsOptions, SinkOptions};
use abreast_store::labels::LabelTable;
use abreast_store::mirror::Mirror;
use abreast_testkit::pages::Answer;
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::Quad;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A copy in files of N-Quads.
pub(crate) fn copy_of(source: &EmmSource) -> Copy {
    let mut copy = Copy::of(source.url());
    copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    copy
}

/// The copy equals the source, except the labels of blank nodes.
#[track_caller]
pub(crate) fn assert_same(copy: &Copy, source: &EmmSource) {
    assert_eq!(canonical(quads(copy.folder())), canonical(parsed(&source.statements())));
}

fn parsed(statements: &str) -> Vec<Quad> {
    let parser = RdfParser::from_format(RdfFormat::NTriples);
    parser.for_slice(statements.as_bytes()).map(|quad| quad.unwrap()).collect()
}

pub(crate) fn with_numbers(habits: Habits, count: usize) -> EmmSource {
    let source = EmmSource::start(habits);
    for number in 0..count {
        source.put(number, "first");
    }
    source
}

/// Follows a source through every kind of change.
fn follow(habits: &Habits) {
    let source = with_numbers(habits.clone(), 11);
    source.put(3, "second");
    source.delete(4);
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);

    for round in 0..3 {
        // The days of changes are over before the next ones come.
        source.wait_days(2);
        source.put(3, &format!("round {round}"));
        source.put(20 + round, "first");
        if round == 1 {
            source.delete(5);
            source.put(4, "again");
            source.put(3, "twice in a round");
        }
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert_same(&copy, &source);
    }
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?} {:?}", ran.reported, ran.items);
}

#[test]
fn feeds_of_every_known_shape_are_followed() {
    for page in [1, 3, 100] {
        for habits in [
            Habits::default(),
            Habits::of_congress(),
            Habits::of_getty(),
            Habits::of_blue_core(),
            Habits::of_iiif(),
            Habits::of_marva(),
            Habits { newest_first: true, ..Habits::default() },
            Habits { has_prev: false, ..Habits::default() },
            Habits { date: "created", listed_types: true, ..Habits::default() },
        ] {
            follow(&Habits { page, ..habits });
        }
    }
}

#[test]
fn a_feed_whose_end_leads_to_itself_is_read_once() {
    follow(&Habits::of_libris());
}

#[test]
fn a_full_download_is_read_first() {
    let source = with_numbers(Habits::default(), 9);
    source.make_download();
    source.put(2, "second");
    source.delete(3);
    let copy = copy_of(&source);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    let asked: Vec<String> = source.server.take_log();
    let entities = asked.iter().filter(|line| line.contains("/id/")).count();
    // The last change in the download is read again, because times are whole seconds.
    assert_eq!(entities, 2, "only what changed since is asked for: {asked:?}");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.items.len()), (0, 0));
}

#[test]
fn an_entry_point_older_than_its_pages_hides_nothing() {
    for habits in [Habits::default(), Habits { newest_first: true, ..Habits::default() }] {
        let source = with_numbers(habits, 11);
        let copy = copy_of(&source);
        assert_eq!(copy.try_run().exit(), 0);
        // The Entry Point contains the previous last page: 4 of 6.
        for number in 20..26 {
            source.put(number, "first");
        }
        assert_eq!(copy.try_run().exit(), 0);
        let base = source.server.base.clone();
        source.answer_first(move |target, _| {
            let page = |number| json!({"id": format!("{base}/feed/{number}"), "type": "OrderedCollectionPage"});
            (target == "/feed").then(|| {
                Answer::ok(json!({"@context": "https://emm-spec.org/1.0/context.json", "id": format!("{base}/feed"),
                    "type": "OrderedCollection", "first": page(3), "last": page(4)}).to_string())
            })
        });
        source.put(2, "second");
        source.server.take_log();
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.has("gap")), (0, false), "{:?}", ran.reported);
        assert_same(&copy, &source);
        // And what changed in the last second.
        let mut asked = source.server.take_log();
        asked.retain(|line| line.contains("/id/"));
        asked.sort();
        assert_eq!(asked, ["/id/2.nt", "/id/25.nt"]);
    }
}

#[test]
fn an_incremental_run_reads_the_newest_pages_only() {
    let source = with_numbers(Habits::default(), 100);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    source.put(7, "second");
    source.server.take_log();
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
    let asked = source.server.take_log();
    let pages = asked.iter().filter(|line| line.contains("/feed/")).count();
    // Both ends are read once more: they show whether pages changed meanwhile.
    assert!(pages <= 5, "{asked:?}");
    assert_eq!(copy.try_run().exit(), 0);
    let asked = source.server.take_log();
    let pages = asked.iter().filter(|line| line.contains("/feed/")).count();
    assert!(pages <= 3, "nothing is new: {asked:?}");
}

#[test]
fn a_page_is_an_address_of_its_feed() {
    for habits in [Habits::default(), Habits::of_congress(), Habits::of_blue_core()] {
        let source = with_numbers(habits, 8);
        let mut copy = copy_of(&source);
        copy.options.url = source.server.url("/feed/1");
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert_same(&copy, &source);
        source.wait_days(2);
        source.put(1, "second");
        assert_eq!(copy.try_run().exit(), 0);
        assert_same(&copy, &source);
    }
}

#[test]
fn an_entity_that_cannot_be_had_is_kept() {
    let source = with_numbers(Habits::default(), 4);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let before = quads(copy.folder());
    for (number, status) in [(0, 404), (1, 410), (2, 403)] {
        source.put(number, "second");
        source.answer_first(move |target, _| {
            let is_gone = target.starts_with(&format!("/id/{number}"));
            is_gone.then(|| Answer::status(status))
        });
        assert_ne!(copy.try_run().exit(), 0);
        assert_eq!(canonical(quads(copy.folder())), canonical(before.clone()), "{status}");
        source.answer_first(|_, _| None);
        source.data().entities.insert(9, String::new());
        // The entity is requested again.
        let only = source.data().entities[&number].clone();
        assert!(only.contains("second"));
        assert_eq!(copy.try_run().exit(), 0);
        source.put(number, "first");
        assert_eq!(copy.try_run().exit(), 0);
    }
    // A response without statements is not a deletion either.
    source.put(3, "second");
    source.answer_first(|target, _| {
        target
            .starts_with("/id/3")
            .then(|| Answer::ok("").header("content-type", "application/n-triples"))
    });
    let ran = copy.try_run();
    assert_ne!(ran.exit(), 0);
    assert_eq!(canonical(quads(copy.folder())), canonical(before));
}

#[test]
fn what_left_the_feed_and_what_moved_is_understood() {
    let source = with_numbers(Habits::of_iiif(), 6);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    // Removed from this feed, and from another one.
    let own = json!({"origin": {"id": source.url(), "type": "OrderedCollection"}});
    let other =
        json!({"origin": {"id": "https://elsewhere.example/feed", "type": "OrderedCollection"}});
    source.record_with(0, "Remove", own);
    source.record_with(1, "Remove", other);
    let lines = source.data().entities.remove(&2).unwrap();
    let (old, new) = (source.iri(2), source.iri(12));
    source.data().entities.insert(12, lines.replace(&old, &new));
    source.record_with(2, "Move", json!({"target": {"id": new, "type": "http://ns.example/Term"}}));
    source.data().entities.remove(&0);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn behind_a_refresh_only_deletions_count() {
    let source = with_numbers(Habits::of_iiif(), 4);
    // An entity that is in the feed only before the refresh.
    source.record(7, "Create");
    source.record_with(0, "Refresh", json!({"object": null}));
    for number in 0..4 {
        source.record(number, "Update");
    }
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "7 is not asked for: {:?}", ran.reported);
    assert_same(&copy, &source);

    source.delete(1);
    source.record_with(0, "Refresh", json!({"object": null}));
    for number in [0, 2, 3] {
        source.record(number, "Update");
    }
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn a_deprecated_entity_is_kept_as_it_is_described_now() {
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let lines = source.data().entities[&1].replace("first", "deprecated");
    source.data().entities.insert(1, lines);
    source.record(1, "Deprecate");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    assert!(ran.has("resource.deprecated"), "{:?}", ran.reported);
}

#[test]
fn pages_that_move_while_they_are_read_lose_nothing() {
    let source = with_numbers(Habits { page: 2, ..Habits::of_congress() }, 10);
    let copy = copy_of(&source);
    // At the third page, an entity of the last page is changed: all before it move.
    let other = source.clone();
    source.answer_first(move |target, number| {
        if target == "/feed/3" && number == 0 {
            other.put(0, "while the feed was read");
        }
        None
    });
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn documents_of_something_else_are_refused() {
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    for (body, code) in [
        (r#"{"type": "Person", "x": "OrderedCollection"}"#, "emm.type"),
        (r#"{"type": "OrderedCollection"}"#, "emm.empty"),
        (r#"{"type": "OrderedCollection", "totalItems": 3}"#, "emm.empty"),
        (r#"{"type": "OrderedCollection", "totalItems": [0]}"#, "emm.empty"),
        (r#"{"type": "OrderedCollection", "#, "emm.json"),
        (r#"["OrderedCollection"]"#, "emm.type"),
        ("", "emm.json"),
    ] {
        source.answer_first(move |target, _| (target == "/feed").then(|| Answer::ok(body)));
        let ran = copy.try_run();
        assert_ne!(ran.exit(), 0, "{body}");
        assert_eq!(ran.code(), code, "{body}: {:?}", ran.result);
    }
    source.answer_first(|_, _| None);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn an_entry_point_that_states_that_it_is_empty_is_empty() {
    let source = with_numbers(Habits::default(), 3);
    for zero in ["0", "\"0\""] {
        let body = format!(r#"{{"type": "OrderedCollection", "totalItems": {zero}}}"#);
        source.answer_first(move |target, _| {
            (target == "/feed").then(|| Answer::ok(body.as_bytes()))
        });
        let copy = copy_of(&source);
        for _ in 0..2 {
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 0, "{zero}: {:?} {:?}", ran.result, ran.reported);
        }
        source.answer_first(|_, _| None);
        assert_eq!(copy.try_run().exit(), 0);
        assert_same(&copy, &source);
    }
}

#[test]
fn the_newest_of_several_changes_of_one_day_counts() {
    for page in [1, 2, 100] {
        let habits = Habits { latest_only: false, page, ..Habits::of_congress() };
        let source = with_numbers(habits, 5);
        source.delete(1);
        source.put(1, "again");
        source.put(2, "second");
        source.delete(2);
        let copy = copy_of(&source);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{page}: {:?}", ran.reported);
        assert_same(&copy, &source);
    }
}

/// The direction of the feed decides among changes of the same day. Pages with only that day show
/// the direction by other pages.
#[test]
fn the_newest_of_several_changes_of_the_newest_day_counts() {
    for page in 1..=6 {
        for (newest_first, has_last, has_prev) in [
            (true, true, true),
            (true, true, false),
            (true, false, false),
            (false, true, true),
            (false, true, false),
            (false, false, false),
        ] {
            let habits = Habits {
                whole_days: true,
                newest_first,
                has_last,
                has_prev,
                page,
                ..Habits::default()
            };
            let source = with_numbers(habits, 3);
            source.wait_days(1);
            for number in [0, 1] {
                source.delete(number);
                source.put(number, "again");
            }
            source.put(9, "new");
            source.delete(9);
            let copy = copy_of(&source);
            let ran = copy.try_run();
            let case = format!("{page} {newest_first} {has_last} {has_prev}");
            assert_eq!(ran.exit(), 0, "{case}: {:?}", ran.reported);
            assert_same(&copy, &source);
            assert_eq!(copy.audit(true).exit_code, 0, "{case}");
        }
    }
}

#[test]
fn a_full_download_later_than_the_feed_is_read_once() {
    let source = with_numbers(Habits::default(), 4);
    source.wait_days(1);
    source.make_download();
    let copy = copy_of(&source);
    for round in 0..3 {
        source.server.take_log();
        assert_eq!(copy.try_run().exit(), 0);
        let asked = source.server.take_log();
        assert_eq!(asked.iter().any(|line| line.contains("/download")), round == 0, "{asked:?}");
    }
    source.wait_days(1);
    source.put(1, "second");
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
    // A restored server ends before the last known change.
    source.data().changes.truncate(4);
    source.data().entities.insert(1, String::new());
    source.make_download();
    let ran = copy.try_run();
    assert!(ran.has("gap"), "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn a_feed_of_iiif_is_known_by_each_of_its_names() {
    let source = with_numbers(Habits::of_iiif(), 2);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let other = source.url().replace("http://", "https://") + "/";
    source.put(5, "first");
    source.data().changes.pop();
    let target = json!({"target": {"id": other, "type": "OrderedCollection"}});
    source.record_with(5, "Add", target);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
    // Additions to another feed are reported.
    let target = json!({"target": {"id": "https://other.example/", "type": "OrderedCollection"}});
    source.record_with(7, "Add", target);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert!(ran.has("emm.other"), "{:?}", ran.reported);
}

#[test]
fn pages_that_lead_in_circles_do_not_move_the_cursor() {
    let source = with_numbers(Habits { newest_first: true, ..Habits::default() }, 9);
    let copy = copy_of(&source);
    let circle = source.server.url("/feed/1");
    let page = |number: usize| source.server.url(&format!("/feed/{number}"));
    let second = json!({"@context": "https://www.w3.org/ns/activitystreams", "id": page(2), "type": "OrderedCollectionPage",
        "orderedItems": [], "next": circle})
    .to_string();
    source.answer_first(move |target, _| (target == "/feed/2").then(|| Answer::ok(second.clone())));
    let ran = copy.try_run();
    assert_ne!(ran.exit(), 0);
    assert!(ran.has("list.cycle"), "{:?}", ran.reported);
    let audited = Ran::audit(&copy.options, false);
    assert_eq!(audited.code(), "list.cycle", "{:?}", audited.reported);
    source.answer_first(|_, _| None);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn an_audit_sees_damage_and_changes_of_a_feed() {
    for is_folder in [true, false] {
        let source = with_numbers(Habits::default(), 3);
        let mut copy = copy_of(&source);
        if is_folder {
            copy.options.sink = SinkOptions::Folder;
        }
        assert_eq!(copy.try_run().exit(), 0);
        for full in [true, false] {
            assert_eq!(copy.audit(full).exit_code, 0);
        }
        source.put(1, "second");
        for full in [true, false] {
            let report = copy.audit(full);
            assert_eq!((report.updated, report.same, report.exit_code), (1, 2, 1), "{report:?}");
        }
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(copy.audit(true).exit_code, 0);
        if is_folder {
            let path = copy.paths().into_iter().next().unwrap();
            std::fs::write(copy.folder().join(path), "other").unwrap();
            for full in [true, false] {
                assert_eq!((copy.audit(full).updated, copy.audit(full).exit_code), (1, 1));
            }
        }
    }
}

#[test]
fn a_full_download_that_is_not_read_is_reported() {
    let page = json!({"href": "/about.html", "mediaType": "text/html"});
    let with = |links: serde_json::Value| {
        let source = with_numbers(Habits::default(), 2);
        let base = source.server.base.clone();
        source.answer_first(move |target, _| {
            let entry = json!({"type": "OrderedCollection", "first": format!("{base}/feed/1"), "url": links});
            (target == "/feed").then(|| Answer::ok(entry.to_string()))
        });
        source
    };
    // A page for people is not a full download.
    assert!(!copy_of(&with(page.clone())).try_run().has("emm.partial"));
    let list = json!({"href": "/resourcelist.xml", "mediaType": "application/xml"});
    let source = with(json!([page, list]));
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("emm.partial")), (0, 1), "{:?}", ran.reported);
    assert!(ran.reported.iter().any(|problem| problem.message.contains("/resourcelist.xml")));
    assert!(!copy.try_run().has("emm.partial"), "only by comparisons with all");
    assert!(crate::copy::Ran::audit(&copy.options, false).has("emm.partial"));
}

#[test]
fn a_page_that_is_gone_when_it_is_read_again_is_no_failure() {
    let source = with_numbers(Habits { page: 2, ..Habits::default() }, 10);
    let copy = copy_of(&source);
    let read = AtomicUsize::new(0);
    source.answer_first(move |target, _| {
        let is_second = target == "/feed/1" && read.fetch_add(1, Ordering::Relaxed) == 1;
        is_second.then(|| Answer::status(410))
    });
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn pages_that_change_at_each_walk_do_not_count_as_read() {
    let source = with_numbers(Habits::default(), 11);
    let copy = copy_of(&source);
    let other = source.clone();
    let oldest = source.data().changes[0].clone();
    // With and without it, every page has other activities.
    source.answer_first(move |target, _| {
        if target == "/feed/1" {
            let changes = &mut other.data().changes;
            if changes.len() == 11 {
                changes.remove(0);
            } else {
                changes.insert(0, oldest.clone());
            }
        }
        None
    });
    let ran = copy.try_run();
    assert_ne!(ran.exit(), 0);
    assert!(ran.has("list.unstable"), "{:?}", ran.reported);
    source.answer_first(|_, _| None);
    source.put(0, "quiet");
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn a_page_that_lacks_what_it_showed_on_the_way_is_older() {
    let source = with_numbers(Habits { page: 2, ..Habits::default() }, 11);
    let copy = copy_of(&source);
    let mut older = source.data().clone();
    older.changes[9].number = 2;
    let (base, asked) = (source.server.base.clone(), AtomicUsize::new(0));
    source.answer_first(move |target, _| match target {
        "/feed" => {
            let page = |number| json!({"id": format!("{base}/feed/{number}"), "type": "OrderedCollectionPage"});
            let entry = json!({"@context": "https://emm-spec.org/1.0/context.json", "id": format!("{base}/feed"),
                "type": "OrderedCollection", "first": page(1), "last": page(4)});
            Some(Answer::ok(entry.to_string()))
        }
        // The page shows the way to the newest one, and is older when it is read for its changes.
        "/feed/5" if asked.fetch_add(1, Ordering::Relaxed) == 1 => older.answer(&base, target),
        _ => None,
    });
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("list.unstable")), (3, true), "{:?}", ran.reported);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn a_feed_that_grew_once_is_read_again_once() {
    let source = with_numbers(Habits { page: 4, ..Habits::of_blue_core() }, 10);
    let copy = copy_of(&source);
    let other = source.clone();
    source.answer_first(move |target, number| {
        if target == "/feed/2" && number == 0 {
            other.put(0, "while the feed was read");
        }
        None
    });
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    let log = source.server.take_log();
    let of_last = log.iter().filter(|path| path.ends_with("/feed/3")).count();
    assert!(of_last <= 4, "{log:?}");
}

#[test]
fn a_move_deletes_only_what_is_at_its_new_address() {
    let source = with_numbers(Habits::of_iiif(), 4);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    // To nowhere: it is left out.
    source.record_with(1, "Move", json!({}));
    source.record_with(1, "Move", json!({"target": {"id": "", "type": "http://ns.example/Term"}}));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("emm.activity")), (0, true), "{:?}", ran.reported);
    assert_same(&copy, &source);

    let kept = source.statements();
    let lines = source.data().entities.remove(&2).unwrap();
    let (old, new) = (source.iri(2), source.iri(12));
    source.record_with(2, "Move", json!({"target": {"id": new, "type": "http://ns.example/Term"}}));
    for _ in 0..3 {
        assert_ne!(copy.try_run().exit(), 0, "there is nothing at the new address");
        assert_eq!(canonical(quads(copy.folder())), canonical(parsed(&kept)));
    }
    source.data().entities.insert(12, lines.replace(&old, &new));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn an_audit_takes_the_newer_of_two_changes_of_one_day() {
    let source = with_numbers(Habits { whole_days: true, page: 2, ..Habits::default() }, 4);
    // On the page before the deletion, of the same day.
    source.put(1, "second");
    source.put(2, "second");
    source.delete(1);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
    assert_eq!(copy.audit(false).exit_code, 0);
}

/// A feed without a full download has no list of all resources for a comparison.
#[test]
fn damage_is_repaired_by_a_baseline_without_a_full_download() {
    for kind in ["folder", "nquads", "labels"] {
        let source = EmmSource::start(Habits::default());
        for number in 0..5 {
            source.put(number, "first");
        }
        let mut copy = copy_of(&source);
        let table = copy.place.path().join("labels.db");
        match kind {
            "folder" => copy.options.sink = SinkOptions::Folder,
            "labels" => {
                copy.options.sink = SinkOptions::Labels(LabelsOptions {
                    path: table.clone(),
                    predicates: vec!["http://ns.example/value".to_owned()],
                    ..LabelsOptions::default()
                });
            }
            _ => {}
        }
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(copy.audit(true).exit_code, 0);
        if kind == "labels" {
            let mut labels = LabelTable::open(&table).unwrap();
            labels.remove(&source.iri(1)).unwrap();
            let batch = labels.end_batch().unwrap();
            // As if another program had removed it: the database contains no other batch.
            let state = Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
            state.set_meta("labels-batch", Some(&batch.to_string())).unwrap();
            drop((labels, state));
            assert_eq!(copy.audit(false).missing, 1);
        } else {
            let (path, bytes) = crate::copy::files(copy.folder())
                .into_iter()
                .find(|(_, bytes)| bytes.windows(5).any(|word| word == b"first"))
                .unwrap();
            let text = String::from_utf8(bytes).unwrap().replacen("first", "other", 1);
            std::fs::write(copy.folder().join(path), text).unwrap();
            assert_eq!(copy.audit(true).exit_code, 1, "{kind}");
        }
        copy.options.baseline = true;
        copy.options.full = true;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().damaged), (0, 1), "{kind}: {:?}", ran.reported);
        assert_eq!(copy.audit(true).exit_code, 0, "{kind}");
        let ran = copy.try_run();
        assert_eq!((ran.summary().damaged, ran.items.len()), (0, 0), "{kind}: {:?}", ran.reported);
    }
}

/// A page of a server under maintenance, or for a login.
#[test]
fn a_page_in_place_of_an_entity_is_not_kept() {
    for (is_folder, habits) in
        [(true, Habits::default()), (true, Habits::of_getty()), (false, Habits::default())]
    {
        let source = with_numbers(habits, 3);
        let mut copy = copy_of(&source);
        if is_folder {
            copy.options.sink = SinkOptions::Folder;
        }
        assert_eq!(copy.try_run().exit(), 0);
        let before = copy.texts();
        source.put(1, "second");
        for (body, media_type) in [
            ("<html>Down for maintenance</html>", "text/html; charset=utf-8"),
            ("<html xmlns='http://www.w3.org/1999/xhtml'/>", "application/xhtml+xml"),
            ("", "text/html"),
            ("%PDF", "application/pdf"),
            ("{\"error\":\"busy\"}", "application/problem+json"),
        ] {
            source.answer_first(move |target, _| {
                let answer = || Answer::ok(body).header("content-type", media_type);
                target.starts_with("/id/1").then(answer)
            });
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.count("rdf.type")), (3, 1), "{:?}", ran.reported);
            assert!(ran.reported[0].message.contains("help:"));
            assert_eq!(copy.texts(), before, "{media_type}");
        }
        // Once the server is back, without another change.
        source.answer_first(|_, _| None);
        assert_eq!(copy.try_run().exit(), 0);
        assert!(copy.texts().values().any(|text| text.contains("second")));
        assert_eq!(copy.audit(true).exit_code, 0);
    }
}

#[test]
fn an_answer_without_a_media_type_is_named_as_such() {
    let source = with_numbers(Habits::of_getty(), 2);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    source.put(1, "second");
    let lines = source.data().entities[&1].clone();
    source.answer_first(move |target, _| (target == "/id/1").then(|| Answer::ok(lines.clone())));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("rdf.type")), (3, 1), "{:?}", ran.reported);
    let message = &ran.reported[0].message;
    assert!(message.starts_with("the answer has no Content-Type, so"), "{message}");
}

/// If no length is listed, an empty response is accepted, because files may be empty.
#[test]
fn an_empty_file_is_a_file() {
    let source = with_numbers(Habits { has_links: false, ..Habits::default() }, 2);
    let mut copy = copy_of(&source);
    copy.options.sink = SinkOptions::Folder;
    let file = |number: usize| json!({"object": {"id": source.iri(number), "type": "Image"}});
    source.record_with(0, "Update", file(0));
    source.record_with(1, "Update", file(1));
    assert_eq!(copy.try_run().exit(), 0);
    source.data().entities.insert(1, String::new());
    source.record_with(1, "Update", file(1));
    assert_eq!(copy.try_run().exit(), 0);
    assert!(copy.texts().values().any(String::is_empty));
}

#[test]
fn a_stray_subject_does_not_name_all_files() {
    for stray in ["file:///etc/passwd", "ftp://a.b/c", "http://127.0.0.1/other/x", "urn:x:y"] {
        let source = with_numbers(Habits::default(), 4);
        source.make_download();
        let line = format!("<{stray}> <http://ns.example/value> \"stray\" .\n");
        source.data().download.as_mut().unwrap().0.push_str(&line);
        let mut copy = copy_of(&source);
        copy.options.sink = SinkOptions::Folder;
        assert_eq!(copy.try_run().exit(), 0);
        let paths = copy.paths();
        let own = |number: usize| paths.contains(&number.to_string());
        assert!(paths.len() == 5 && (0..4).all(own), "{stray}: {paths:?}");
    }
}
