//! Invalid statements: an error, or left out, counted and reported.

use crate::copy::Copy;
use crate::rdf::{endpoint, oxigraph, sparql};
use crate::sdshare_source::{Habits, SdSource};
use abreast_destination::check::{CopyPlace, check_copy};
use abreast_destination::{NQuadsOptions, SinkOptions};
use abreast_store::integrity::Findings;
use abreast_testkit::pages::{Answer, Server};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn copy_of(url: String) -> Copy {
    let mut copy = Copy::of(url);
    copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    copy
}

/// A description with the value `value`, and a statement that is not valid if `is_wrong`, in each syntax.
fn descriptions(iri: &str, value: &str, is_wrong: bool) -> Vec<(&'static str, String)> {
    let ns = "http://ns.example/";
    let (tag, other) = if is_wrong { ("en_US", "http://h/a|b") } else { ("en-US", "http://h/a") };
    let turtle = format!("<{iri}> <{ns}value> \"{value}\" .\n<{iri}> <{ns}label> \"x\"@{tag} .\n");
    let object = format!("<{iri}> <{ns}value> \"{value}\" .\n<{iri}> <{ns}to> <{other}> .\n");
    vec![
        ("application/n-triples", turtle.clone()),
        ("application/n-triples", object.clone()),
        ("application/n-quads", turtle.clone()),
        ("text/turtle", turtle.clone()),
        ("text/turtle", object.clone()),
        ("application/trig", turtle),
        (
            "application/rdf+xml",
            format!(
                "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:n='{ns}'><r:Description r:about='{iri}'>\
                 <n:value>{value}</n:value><n:label xml:lang='{tag}'>x</n:label></r:Description></r:RDF>"
            ),
        ),
        (
            "application/ld+json",
            format!(
                r#"{{"@id": "{iri}", "{ns}value": "{value}", "{ns}label": {{"@value": "x", "@language": "{tag}"}}}}"#
            ),
        ),
    ]
}

/// The lines of the copy, as they are written.
fn statements(copy: &Copy) -> String {
    let is_copied = |path: &str| Path::new(path).extension().is_some_and(|end| end == "nq");
    copy.texts().into_iter().filter(|(path, _)| is_copied(path)).map(|(_, text)| text).collect()
}

fn findings_of(copy: &Copy) -> Vec<String> {
    let mut findings = Findings::default();
    let place = CopyPlace::find(copy.folder()).unwrap();
    check_copy(
        &place,
        &|_| false,
        &mut findings,
        &AtomicBool::new(false),
        &abreast_core::Meter::default(),
    )
    .unwrap();
    findings.list().iter().map(|finding| finding.message.clone()).collect()
}

#[test]
fn one_invalid_statement_costs_no_description() {
    let iri = SdSource::name(1);
    for case in 0..descriptions(&iri, "", true).len() {
        let source = SdSource::start(Habits::default());
        for number in 0..3 {
            source.put_number(number, "first");
        }
        source.make_snapshot();
        let mut copy = copy_of(source.url());
        copy.run();
        let answer_with = |value: &str, is_wrong: bool| {
            source.wait(5);
            source.put_number(1, value);
            let (media_type, body) = descriptions(&iri, value, is_wrong).swap_remove(case);
            let answer = Answer::ok(body).header("content-type", media_type);
            source.answer_first(move |target, _| {
                target.starts_with("/fragment/").then(|| answer.clone())
            });
            media_type
        };
        let name = answer_with("second", true);
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().failed), (3, 1), "{name} {:?}", ran.reported);
        assert!(statements(&copy).contains("/1> <http://ns.example/value> \"first\""), "{name}");

        copy.options.leave_out_invalid = true;
        let ran = copy.try_run();
        let summary = ran.summary();
        assert_eq!(
            (ran.exit(), summary.failed, summary.updated, summary.invalid_statements),
            (3, 0, 1, 1),
            "{name} {:?}",
            ran.reported
        );
        assert!(ran.has("rdf.invalid"), "{name} {:?}", ran.reported);
        let now = statements(&copy);
        assert!(now.contains("/1> <http://ns.example/value> \"second\""), "{name} {now}");
        assert!(!now.contains("en_US") && !now.contains("a|b"), "{name} {now}");
        // Later runs report the statement too.
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().invalid_statements), (0, 1), "{name}");
        let findings = findings_of(&copy);
        assert!(findings.iter().any(|it| it.contains("1 statement left out")), "{findings:?}");

        answer_with("third", false);
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().invalid_statements), (0, 0), "{name}");
        // The description is the same without the invalid statement.
        answer_with("third", true);
        copy.try_run();
        assert_eq!(copy.try_run().summary().invalid_statements, 1, "{name}");
        source.delete_number(1);
        source.answer_first(|_, _| None);
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().deleted), (0, 1), "{name} {:?}", ran.reported);
        assert_eq!(ran.summary().invalid_statements, 0, "{name}");
    }
}

#[test]
fn nothing_is_deleted_for_statements_that_are_left_out() {
    let source = SdSource::start(Habits::default());
    for number in 0..3 {
        source.put_number(number, "first");
    }
    source.make_snapshot();
    let mut copy = copy_of(source.url());
    copy.options.leave_out_invalid = true;
    copy.run();
    // Nothing valid is left of an entity.
    source.wait(5);
    source.put(
        &SdSource::name(1),
        "<http://id.example/id/1> <http://ns.example/value> \"x\"@en_US .\n",
    );
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().deleted), (3, 0), "{:?}", ran.reported);
    assert!(ran.has("rdf.invalid"), "{:?}", ran.reported);
    assert!(statements(&copy).contains("/1> <http://ns.example/value> \"first\""));
    // Nor in a snapshot, where it is counted.
    source.make_snapshot();
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(ran.summary().deleted, 0, "{:?}", ran.reported);
    assert_eq!(ran.summary().invalid_statements, 1, "{:?}", ran.reported);
    assert!(statements(&copy).contains("/1> <http://ns.example/value> \"first\""));
    copy.options.baseline = false;
    source.wait(5);
    source.put_number(1, "second");
    copy.try_run();
    source.make_snapshot();
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().invalid_statements), (0, 0), "{:?}", ran.reported);
    // If the option is not set, such a snapshot is refused.
    source.wait(5);
    source.put(
        &SdSource::name(2),
        "<http://id.example/id/2> <http://ns.example/value> \"x\"@en_US .\n",
    );
    source.make_snapshot();
    let mut other = copy_of(source.url());
    assert_ne!(other.try_run().exit(), 0);
    other.options.leave_out_invalid = true;
    let ran = other.try_run();
    assert_eq!(ran.exit(), 3, "{:?}", ran.reported);
    assert!(statements(&other).contains("second"));
}

#[test]
fn documents_of_lists_lose_only_what_is_not_valid() {
    let server = Server::start();
    let iri = server.url("/1.ttl");
    server.put(
        "/1.ttl",
        Answer::ok(format!("<{iri}> <http://p> \"x\"@en_US, \"y\"@en-GB .\n"))
            .header("content-type", "text/turtle"),
    );
    server.body(
        "/list.xml",
        format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
             <rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/><url><loc>{iri}</loc></url></urlset>"
        ),
    );
    let mut copy = copy_of(server.url("/list.xml"));
    assert_eq!(copy.try_run().exit(), 3);
    assert_eq!(statements(&copy), "");
    copy.options.leave_out_invalid = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().invalid_statements), (3, 1), "{:?}", ran.reported);
    assert!(ran.has("rdf.invalid"), "{:?}", ran.reported);
    let now = statements(&copy);
    assert!(now.contains("\"y\"@en-GB") && !now.contains("\"x\""), "{now}");
}

#[test]
fn leaving_out_is_refused_where_nothing_is_read_as_rdf() {
    let ns = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";
    for (head, end, protocol) in [
        ("<rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>", "", "ResourceSync"),
        ("", "<rs:size>1</rs:size>", "ResourceSync 0.1"),
    ] {
        let server = Server::start();
        server.body("/a", "a");
        let entry = format!("<url><loc>{}</loc>{end}</url>", server.url("/a"));
        server.body("/list.xml", format!("<urlset {ns}>{head}{entry}</urlset>"));
        let mut copy = Copy::of(server.url("/list.xml"));
        copy.options.leave_out_invalid = true;
        // In the first run, and in the run of an existing copy.
        for _ in 0..2 {
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.code()), (2, "rdf.leave-out"), "{:?}", ran.reported);
            let message = ran.result.as_ref().unwrap_err().to_string();
            assert!(message.contains(&format!("an address of {protocol},")), "{message}");
            copy.options.leave_out_invalid = false;
            assert_eq!(copy.try_run().exit(), 0);
            copy.options.leave_out_invalid = true;
        }
    }
    // Fragments of SDShare are read as RDF for every target.
    let source = SdSource::start(Habits::default());
    source.put(&SdSource::name(1), "<http://id.example/id/1> <http://ns.example/value> \"x\" .\n");
    source.make_snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.leave_out_invalid = true;
    assert_eq!(copy.try_run().exit(), 0);
}

#[test]
fn language_tags_are_copied_as_they_are_written() {
    let source = SdSource::start(Habits::default());
    let put = |tag: &str| {
        let iri = SdSource::name(1);
        source.wait(5);
        source.put(&iri, &format!("<{iri}> <http://ns.example/label> \"x\"@{tag} .\n"));
    };
    put("en-GB");
    source.make_snapshot();
    let mut copy = copy_of(source.url());
    copy.run();
    assert!(statements(&copy).contains("\"x\"@en-GB"), "{}", statements(&copy));
    put("en-gb");
    assert_eq!(copy.run().updated, 1);
    assert!(statements(&copy).contains("\"x\"@en-gb"), "{}", statements(&copy));
    // A store retains the case of the tag, and an endpoint may return it in lower case: neither
    // differs from the Source.
    put("en-GB");
    for (name, sink) in [("store", oxigraph as fn(&Path) -> SinkOptions), ("endpoint", sparql)] {
        copy = Copy::of(source.url());
        copy.options.sink = sink(copy.folder());
        copy.run();
        let stored = endpoint().store.iter().map(|quad| quad.unwrap().to_string());
        let stored = stored.collect::<Vec<_>>().join("\n");
        let expected = if name == "store" { "@en-GB" } else { "@en-gb" };
        assert!(stored.contains(expected), "{name} {stored}");
        assert_eq!(copy.run().updated, 0, "{name}");
        let report = copy.audit(true);
        assert_eq!((report.same, report.exit_code), (1, 0), "{name} {report:?}");
    }
}
