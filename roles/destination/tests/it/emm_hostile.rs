//! Copies of change feeds whose server is hostile, or only wrong.

use crate::copy::Copy;
use crate::emm::{assert_same, copy_of, with_numbers};
use crate::emm_source::{Change, Habits};
use crate::rdf::{canonical, quads};
use abreast_destination::MaxDelete;
use abreast_testkit::pages::Answer;
use serde_json::{Value, json};

/// A time in the future of every clock: the year 9999.
const FAR: i64 = 253_402_300_000;

fn page(items: &Value) -> Answer {
    let page = json!({"@context": "https://www.w3.org/ns/activitystreams", "type": "OrderedCollectionPage",
        "orderedItems": items});
    Answer::ok(page.to_string())
}

#[test]
fn deep_json_is_refused() {
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let before = quads(copy.folder());
    for depth in [600, 1_000_000] {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        for body in [
            deep.clone(),
            format!(r#"{{"type": "OrderedCollection", "first": {deep}}}"#),
            format!(r#"{{"type": "OrderedCollection", "orderedItems": {deep}}}"#),
        ] {
            source.answer_first(move |target, _| {
                (target == "/feed").then(|| Answer::ok(body.as_str()))
            });
            let ran = copy.try_run();
            assert_ne!(ran.exit(), 0, "{depth}: {:?}", ran.reported);
        }
    }
    assert_eq!(canonical(quads(copy.folder())), canonical(before));
}

#[test]
fn contexts_are_never_requested() {
    let source = with_numbers(Habits { context: "/context.json", ..Habits::default() }, 3);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
    let asked = source.server.take_log();
    assert!(asked.iter().all(|line| !line.contains("context")), "{asked:?}");
}

#[test]
fn entities_in_json_ld_with_a_remote_context_are_kept() {
    const LINKED_ART: &str = "https://linked.art/ns/v1/linked-art.json";
    let context = r#"{"@context": {"id": "@id", "type": "@type", "_label": "http://www.w3.org/2000/01/rdf-schema#label"}}"#;
    for media_type in [
        "application/ld+json; profile=\"https://linked.art/ns/v1/linked-art.json\"",
        "application/json",
    ] {
        let source = with_numbers(Habits { has_links: false, ..Habits::default() }, 2);
        let document = |iri: &str| {
            format!(r#"{{"@context": "{LINKED_ART}", "id": "{iri}", "_label": "Spring"}}"#)
        };
        let iris = [source.iri(0), source.iri(1)];
        let documents = iris.each_ref().map(|iri| document(iri));
        let answers = documents.clone();
        source.answer_first(move |target, _| {
            let number = target.strip_prefix("/id/")?.parse::<usize>().ok()?;
            Some(Answer::ok(answers[number].as_str()).header("content-type", media_type))
        });
        // In a folder they are as they were sent.
        let files = Copy::of(source.url());
        let ran = files.try_run();
        assert_eq!(ran.exit(), 0, "{media_type} {:?}", ran.reported);
        assert_eq!(files.texts().into_values().collect::<Vec<_>>(), documents);
        assert_eq!(files.try_run().summary().updated, 0);
        // For statements the context is needed.
        let mut copy = copy_of(&source);
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.count("jsonld.context")), (3, 2), "{:?}", ran.reported);
        assert!(
            ran.reported.iter().any(|it| it.message.contains("--context")),
            "{:?}",
            ran.reported
        );
        copy.options.contexts = copy.options.contexts.with(LINKED_ART, context);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        let label = "http://www.w3.org/2000/01/rdf-schema#label";
        let expected: String =
            iris.iter().map(|iri| format!("<{iri}> <{label}> \"Spring\" .\n")).collect();
        let parser = oxigraph::io::RdfParser::from_format(oxigraph::io::RdfFormat::NTriples);
        let expected: Vec<oxigraph::model::Quad> =
            parser.for_slice(expected.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(canonical(quads(copy.folder())), canonical(expected));
        let asked = source.server.take_log();
        assert!(asked.iter().all(|line| !line.contains("context")), "{asked:?}");
    }
}

#[test]
fn objects_elsewhere_are_reported_and_not_requested() {
    let source = with_numbers(Habits::default(), 2);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let before = quads(copy.folder());
    source.server.take_log();
    let bad = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://169.254.169.254/latest",
        "urn:x:y",
        "",
        "_:b0",
    ];
    let items = bad.map(|id| {
        json!({"type": "Update", "id": "https://other.example/1", "published": "2027-01-01T00:00:00Z",
            "object": {"id": id, "type": "http://ns.example/Term"}})
    });
    let items = json!(items);
    source.answer_first(move |target, _| target.starts_with("/feed/").then(|| page(&items)));
    let ran = copy.try_run();
    assert_ne!(ran.exit(), 0, "{:?}", ran.reported);
    assert_eq!(canonical(quads(copy.folder())), canonical(before));
    // Only addresses of the feed itself are requested on this server.
    let asked = source.server.take_log();
    assert!(asked.iter().all(|line| line.starts_with("/feed")), "{asked:?}");
}

#[test]
fn the_newest_change_counts_whatever_the_order_of_a_page() {
    for page in [1, 2, 3, 100] {
        let source = with_numbers(Habits { page, ..Habits::default() }, 6);
        source.put(1, "second");
        source.delete(2);
        source.delete(3);
        source.put(3, "again");
        let copy = copy_of(&source);
        // The times are as before, in no order.
        source.data().changes.rotate_left(4);
        source.data().changes.swap(0, 5);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{page}: {:?}", ran.reported);
        assert_same(&copy, &source);
    }
}

#[test]
fn activities_in_the_future_hide_no_later_change() {
    for habits in [Habits::default(), Habits { newest_first: true, ..Habits::default() }] {
        let source = with_numbers(habits, 4);
        source.data().changes.push(Change {
            number: 1,
            kind: "Update",
            time: FAR,
            more: Value::Null,
        });
        let copy = copy_of(&source);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert!(ran.has("time.future"), "{:?}", ran.reported);
        for value in ["second", "third"] {
            source.put(2, value);
            assert_eq!(copy.try_run().exit(), 0);
            assert_same(&copy, &source);
        }
    }
}

#[test]
fn descriptions_that_are_no_rdf_are_not_applied_in_part() {
    let source = with_numbers(Habits::default(), 2);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let before = quads(copy.folder());
    source.put(1, "second");
    let iri = source.iri(1);
    for bad in ["<http://h.example/a b>", "<relative>", r"<http://h.example/\uD800>", "\"x\"@-"] {
        let body = format!(
            "<{iri}> <http://ns.example/value> \"good\" .\n<{iri}> <http://ns.example/value> {bad} .\n"
        );
        source.answer_first(move |target, _| {
            let answer =
                || Answer::ok(body.as_str()).header("content-type", "application/n-triples");
            target.starts_with("/id/1").then(answer)
        });
        let ran = copy.try_run();
        assert_ne!(ran.exit(), 0, "{bad}: {:?}", ran.reported);
        assert_eq!(canonical(quads(copy.folder())), canonical(before.clone()), "{bad}");
    }
    source.answer_first(|_, _| None);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn long_languages_and_odd_datatypes_stay_literals() {
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    let iri = source.iri(1);
    let stated = |object: &str| format!("<{iri}> <http://ns.example/value> {object} .\n");
    let longest = format!("en{}", "-abcdefgh".repeat(100_000 / 9));
    let odd = stated("\"x\"^^<javascript:alert(1)>") + &stated(&format!("\"x\"@{longest}"));
    source.data().entities.insert(1, odd.clone());
    source.record(1, "Update");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    // No subtag is that long.
    source.data().entities.insert(1, stated(&format!("\"y\"@{}", "a".repeat(100_000))));
    source.record(1, "Update");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 3, "{:?}", ran.reported);
    let problem = ran.reported.iter().find(|problem| problem.uri == iri).unwrap();
    assert!(problem.code.starts_with("rdf.") && problem.message.len() < 1_000, "{problem:?}");
    source.data().entities.insert(1, odd);
    assert_same(&copy, &source);
}

#[test]
fn a_feed_that_deletes_nearly_everything_is_held() {
    let source = with_numbers(Habits::default(), 40);
    let mut copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let before = quads(copy.folder());
    (1..40).for_each(|number| source.delete(number));
    for _ in 0..2 {
        let ran = copy.try_run();
        assert!(ran.has("delete.limit"), "{:?}", ran.reported);
        assert_eq!(canonical(quads(copy.folder())), canonical(before.clone()));
    }
    copy.options.max_delete = MaxDelete::Percent(100.0);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn activities_that_are_not_understood_are_reported() {
    let source = with_numbers(Habits::default(), 1);
    let of_entity = json!({"id": source.iri(0)});
    let items = json!([
        {"type": "create", "object": of_entity}, {"type": "Created", "object": of_entity},
        {"type": "Move", "object": of_entity}, {"type": "Create", "object": {"id": ""}},
        {"type": "Create", "object": {"id": "a\nhelp: run"}},
    ]);
    source.answer_first(move |target, _| (target == "/feed").then(|| page(&items)));
    let ran = copy_of(&source).try_run();
    assert_eq!(ran.count("emm.activity"), 1, "{:?}", ran.reported);
    let notice = ran.reported.iter().find(|problem| problem.code == "emm.activity").unwrap();
    assert_eq!(
        notice.message,
        format!(
            "an activity of the unknown type `Created` is left out; it is about {} (and 1 more)",
            source.iri(0)
        )
    );
    assert!(ran.reported.iter().any(|problem| {
        problem.message.contains("cannot be used: 2; an activity without the IRI of an entity")
    }));
    // `create` is accepted, since it cannot mean anything else.
    assert_eq!(ran.items.iter().map(|item| &item.uri).collect::<Vec<_>>(), [&source.iri(0)]);
}

#[test]
fn pages_without_activities_end_somewhere() {
    let source = with_numbers(Habits::default(), 1);
    let base = source.server.base.clone();
    source.answer_first(move |target, _| {
        let number: u64 = target.strip_prefix("/empty/").unwrap_or("0").parse().ok()?;
        let page = json!({"type": "OrderedCollectionPage", "orderedItems": [],
            "next": format!("{base}/empty/{}", number + 1)});
        Some(Answer::ok(page.to_string()))
    });
    let ran = copy_of(&source).try_run();
    assert_eq!((ran.exit(), ran.has("limit.pages")), (3, true), "{:?}", ran.reported);
    assert!(source.server.take_log().len() < 1_100);
}

#[test]
fn what_pages_have_too_much_of_is_left_out() {
    let long = format!("http://127.0.0.2/{}", "a".repeat(3_000_000));
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    let items = json!([{}, {"a": 1}, {"type": "Create", "object": {"id": long}}]);
    source.answer_first(move |target, _| target.starts_with("/feed/").then(|| page(&items)));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 3, "{:?}", ran.reported);
    for code in ["emm.item", "emm.uri", "list.unusable"] {
        assert!(ran.has(code), "{code}: {:?}", ran.reported);
    }
    assert!(format!("{:?}", ran.reported).len() < 10_000);
    let items = vec![json!({"type": "Refresh"}); 1_000_001];
    let items = json!(items);
    source.answer_first(move |target, _| target.starts_with("/feed/").then(|| page(&items)));
    let ran = copy.try_run();
    assert_eq!(ran.code(), "limit.items", "{:?}", ran.reported);
}

#[test]
fn what_is_not_json_is_named() {
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    source.answer_first(|target, _| {
        target.starts_with("/feed/").then(|| Answer::ok("<!doctype html><p>Down for maintenance"))
    });
    let ran = copy.try_run();
    assert_eq!(ran.code(), "emm.json", "{:?}", ran.reported);
    assert!(ran.result.unwrap_err().to_string().contains("it is HTML, and not JSON"));
}
