//! Sets of entities that are described in a SPARQL endpoint.
#![expect(clippy::format_collect, reason = "tests need not be fast")]

use crate::rdf::{Place, expected};
use abreast_core::Kind;
use abreast_source::origin::rdf::{RdfError, RdfReport};
use abreast_source::origin::sparql::{EntityPattern, QueryGraph, SparqlOptions, SparqlSet};
use abreast_testkit::endpoint::{Endpoint, Fault};
use abreast_testkit::http::{Server, send};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Queries of the tests: all statements at once, or the entities in parts.
const ALL: Option<&str> = None;
const LISTED: Option<&str> = Some("?entity ?p ?o");
const VERSIONS: Option<&str> =
    Some("PREFIX d: <http://purl.org/dc/terms/>\n?entity d:modified ?version # the newest");

const DATA: &str = "
    <http://a/1> <http://p> \"1\" ; <http://purl.org/dc/terms/modified> \"2026-01-01\" .
    <http://a/1#x> <http://p> [ <http://q> [ <http://q> \"x\" ] ] ; <http://purl.org/dc/terms/modified> \"2026-01-01\" .
    <http://a/2> <http://p> <http://a/1>, [ <http://q> <http://a/1> ] ; <http://purl.org/dc/terms/modified> \"2026-01-01\" .
    <http://a/\u{e9}> <http://p> \"\u{e9} \\\"quoted\\\"\"@en ; <http://purl.org/dc/terms/modified> \"2026-01-01\" .";

struct World {
    endpoint: Endpoint,
    place: Place,
    set: SparqlSet,
}

fn world(entities: Option<&str>) -> World {
    let endpoint = Endpoint::start();
    let url = endpoint.query_url();
    world_of(endpoint, &url, entities)
}

/// Like [`world`], with queries that are sent to another address.
fn world_of(endpoint: Endpoint, url: &str, entities: Option<&str>) -> World {
    let place = Place::new();
    let mut options = SparqlOptions::new(url);
    options.entities = entities.map(|pattern| EntityPattern::parse(pattern).unwrap());
    (options.page, options.batch) = (3, 2);
    options.net.backoff_base = Duration::from_millis(1);
    let set = SparqlSet::new(
        options,
        Arc::clone(&place.log) as _,
        place.set,
        place.contents.clone(),
        place.options.clone(),
    );
    World { endpoint, place, set }
}

impl World {
    fn insert(&self, data: &str) {
        self.endpoint.update(&format!("INSERT DATA {{ {data} }}"));
    }

    fn read(&mut self) -> Result<RdfReport, RdfError> {
        self.set.read()
    }

    /// The message of a reading that was refused.
    fn refusal(&mut self) -> String {
        let head = self.place.changes(0).len() as u64;
        let error = self.read().unwrap_err();
        assert_eq!(self.place.changes(head), [], "nothing is recorded");
        let RdfError::Endpoint(problem) = error else { panic!("{error:?}") };
        problem
    }

    /// Checks that the set equals the data of the endpoint.
    fn assert_same(&self) {
        let lines: String = self
            .endpoint
            .store
            .iter()
            .map(|quad| format!("{} .\n", oxrdf::Triple::from(quad.unwrap())))
            .collect();
        assert_eq!(self.place.state(), expected(&lines));
    }
}

#[test]
fn only_entities_that_differ_are_recorded() {
    for entities in [ALL, LISTED, VERSIONS] {
        let mut world = world(entities);
        world.insert(DATA);
        let report = world.read().unwrap();
        assert_eq!((report.entities, report.created), (4, 4), "{entities:?}");
        world.assert_same();
        let again = world.read().unwrap();
        assert_eq!((again.entities, again.unchanged), (4, 4), "{entities:?}");
        world.endpoint.update(
            "PREFIX d: <http://purl.org/dc/terms/>
             DELETE { ?b <http://q> \"x\" . <http://a/1#x> d:modified ?m }
             INSERT { ?b <http://q> \"y\" . <http://a/1#x> d:modified \"2026-02-02\" }
             WHERE { ?b <http://q> \"x\" . <http://a/1#x> d:modified ?m } ;
             DELETE WHERE { <http://a/1> ?p ?o } ;
             INSERT DATA { <http://a/3> <http://p> \"3\" ; d:modified \"2026-02-02\" }",
        );
        let report = world.read().unwrap();
        assert_eq!(
            (report.created, report.updated, report.deleted, report.unchanged),
            (1, 1, 1, 2)
        );
        world.assert_same();
        let mut changes = world.place.changes(4);
        changes.sort_by(|one, two| one.1.cmp(&two.1));
        let changed = [(Kind::Delete, "1"), (Kind::Update, "1#x"), (Kind::Create, "3")];
        assert_eq!(changes, changed.map(|(kind, name)| (kind, format!("http://a/{name}"))));
    }
}

#[test]
fn a_description_with_the_same_version_is_not_fetched() {
    let mut world = world(VERSIONS);
    world.insert(DATA);
    world.read().unwrap();
    world
        .endpoint
        .judge_queries(|query| query.starts_with("CONSTRUCT").then_some(Fault::Status(400)));
    assert_eq!(world.read().unwrap().unchanged, 4);
    world.set.sparql.reread = Duration::from_nanos(1);
    assert!(world.refusal().contains("answered 400"), "every description is fetched then");
}

#[test]
fn an_answer_that_was_cut_off_deletes_nothing() {
    let many: String = (0..40).map(|n| format!("<http://a/{n}> <http://p> \"{n}\" . ")).collect();
    // The answer has fewer statements than the endpoint counts.
    let mut all = world(ALL);
    all.insert(&many);
    all.read().unwrap();
    all.endpoint.judge_queries(|query| query.starts_with("CONSTRUCT").then_some(Fault::Rows(39)));
    let problem = all.refusal();
    assert!(
        problem.contains("39 of 40 statements") && problem.contains("name `entities`"),
        "{problem}"
    );
    // The list of entities ends early, but the following list does not; a page may be short.
    let mut listed = world(LISTED);
    listed.set.sparql.page = 100;
    listed.insert(&many);
    listed.endpoint.judge_queries(|query| query.contains("LIMIT").then_some(Fault::Rows(7)));
    assert_eq!(listed.read().unwrap().entities, 40);
    listed
        .endpoint
        .judge_queries(|query| query.contains("> \"http://a/3\"").then_some(Fault::Rows(0)));
    listed.set.sparql.page = 24;
    assert!(listed.refusal().contains("of 40 entities"));
    // Descriptions are fetched in smaller parts, down to single entities.
    listed.set.sparql.batch = 10;
    listed.endpoint.judge_queries(|query| query.starts_with("CONSTRUCT").then_some(Fault::Rows(3)));
    assert_eq!(listed.read().unwrap().unchanged, 40);
    listed.endpoint.judge_queries(|query| query.starts_with("CONSTRUCT").then_some(Fault::Rows(0)));
    assert!(listed.refusal().contains("is not complete"));
}

#[test]
fn an_endpoint_that_fails_deletes_nothing() {
    for entities in [ALL, LISTED] {
        let mut world = world(entities);
        world.insert(DATA);
        world.read().unwrap();
        world.set.sparql.net.retries = 1;
        for (fault, answer) in [
            (Fault::Status(500), "answered 500"),
            (Fault::Status(503), "503"),
            (Fault::Status(401), "give credentials"),
            (Fault::Unanswered, ""),
        ] {
            for kind in ["CONSTRUCT", "SELECT"] {
                world.endpoint.judge_queries(move |query| query.starts_with(kind).then_some(fault));
                let problem = world.refusal();
                assert!(problem.contains(answer), "{problem}");
                assert!(problem.contains("127.0.0.1"), "{problem}");
            }
        }
        world.endpoint.judge_queries(|_| None);
        world.endpoint.update("CLEAR ALL");
        assert!(matches!(world.read(), Err(RdfError::Deletions { .. })), "{entities:?}");
        world.set.options.confirm_deletions = true;
        assert_eq!(world.read().unwrap().deleted, 4);
    }
}

#[test]
fn deep_descriptions_and_long_lists_are_fetched_whole() {
    let chain: String = (0..10).map(|n| format!("_:c{n} <http://p> _:c{} . ", n + 1)).collect();
    let list: String = (0..100).map(|n| format!("\"{n}\" ")).collect();
    let data = format!(
        "<http://a/chain> <http://p> _:c0 . {chain} <http://a/list> <http://p> ( {list} ) .
         <http://a/circle> <http://p> _:x . _:x <http://p> _:y, _:z . _:y <http://p> _:z, _:x . _:z <http://p> _:x, _:y ."
    );
    for entities in [ALL, LISTED] {
        let mut world = world(entities);
        world.insert(&data);
        assert_eq!(world.read().unwrap().created, 3);
        world.assert_same();
        assert_eq!(world.read().unwrap().unchanged, 3);
    }
    let mut world = world(LISTED);
    let chain: String = (0..20).map(|n| format!("_:c{n} <http://p> _:c{} . ", n + 1)).collect();
    world
        .insert(&format!("<http://a/1> <http://p> _:c0 . {chain} <http://a/2> <http://p> \"2\" ."));
    let report = world.read().unwrap();
    assert_eq!((report.created, report.left_out), (1, 1), "more than 12 blank nodes are left out");
}

#[test]
fn entities_that_are_too_large_stop_no_others() {
    let long = format!("http://a/{}", "x".repeat(9_000));
    let values: String = (0..300).map(|n| format!("\"{n}{}\", ", "y".repeat(40_000))).collect();
    for entities in [ALL, LISTED, VERSIONS] {
        let mut world = world(entities);
        world.insert(DATA);
        world.insert("<http://a/large> <http://p> \"small\" ; <http://purl.org/dc/terms/modified> \"2026-01-01\" .");
        assert_eq!(world.read().unwrap().created, 5);
        world.endpoint.update("DELETE WHERE { <http://a/large> ?p ?o }");
        world.insert(&format!(
            "<http://a/large> <http://p> [ <http://q> {values} \"z\" ] ; <http://purl.org/dc/terms/modified> \"2026-02-02\" .
             <http://a/3> <http://p> \"3\" ; <http://purl.org/dc/terms/modified> \"2026-02-02\" .
             <{long}> <http://p> \"1\" ; <http://purl.org/dc/terms/modified> \"2026-02-02\" ."
        ));
        let report = world.read().unwrap();
        assert_eq!((report.created, report.left_out, report.deleted), (1, 2, 0), "{entities:?}");
        let state = world.place.state();
        assert!(state["http://a/large"].contains("small") && state.len() == 6, "{entities:?}");
    }
}

#[test]
fn answers_without_end_are_refused() {
    let count = r#"{"results":{"bindings":[{"n":{"type":"literal","value":"3"}}]}}"#.to_owned();
    let listed = Arc::new(AtomicU64::new(0));
    let server = Server::new(move |request, stream| {
        let entity =
            |number| format!(r#"{{"entity":{{"type":"uri","value":"http://a/{number:09}"}}}}"#);
        let body = if String::from_utf8_lossy(&request.body).contains("COUNT") {
            count.clone()
        } else if request.path() == "/empty" {
            format!(r#"{{"results":{{"bindings":[{}{{}}]}}}}"#, "{},".repeat(200_000))
        } else {
            let first = listed.fetch_add(2_000, Ordering::Relaxed);
            let page: Vec<_> = (first..first + 2_000).map(entity).collect();
            format!(r#"{{"results":{{"bindings":[{}]}}}}"#, page.join(","))
        };
        let kind = "Content-Type: application/sparql-results+json\r\n";
        send(stream, "200 OK", kind, body.as_bytes())
    });
    for (path, why) in [
        ("/empty", "an answer has more than 100000 solutions"),
        (
            "/endless",
            "the list of entities does not end: the endpoint counts 3 and lists more than 10006",
        ),
    ] {
        let refusal = world_of(Endpoint::start(), &server.url(path), LISTED).refusal();
        assert!(refusal.ends_with(why), "{refusal}");
    }
}

#[test]
fn broken_lines_of_an_answer_are_no_statements() {
    let good = "<http://a/1> <http://p> \"1\" .\n<http://a/1> <http://p> \"2\" .\n";
    for (last, is_read) in [
        ("<http://a/1> <http://p> <http://a/|> .\n", true),
        ("<http://a/1> <http://p> \"x\"@toolonglanguage .\n", true),
        ("<http://a/1> <http://p> <http://a", false),
        ("<http://a/1> <http://p> <http://a\n", false),
        ("Virtuoso S1T00 Error SR171: Transaction timed out\n", false),
    ] {
        let lists = AtomicU64::new(0);
        let server = Server::new(move |request, stream| {
            let query = String::from_utf8_lossy(&request.body).into_owned();
            let results = "Content-Type: application/sparql-results+json\r\n";
            if query.contains("COUNT") {
                let count = r#"{"results":{"bindings":[{"n":{"type":"literal","value":"3"}}]}}"#;
                let one = count.replace('3', "1");
                let is_of_entities = query.contains("DISTINCT ?entity");
                let count = if is_of_entities { &one } else { count };
                return send(stream, "200 OK", results, count.as_bytes());
            }
            if query.starts_with("SELECT") {
                let entity = r#"{"entity":{"type":"uri","value":"http://a/1"}}"#;
                let is_first = lists.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
                let list = if is_first { entity } else { "" };
                let list = format!(r#"{{"results":{{"bindings":[{list}]}}}}"#);
                return send(stream, "200 OK", results, list.as_bytes());
            }
            let statements = format!("{good}{last}");
            let kind = "Content-Type: application/n-triples\r\n";
            send(stream, "200 OK", kind, statements.as_bytes())
        });
        for entities in [ALL, LISTED] {
            let mut world = world_of(Endpoint::start(), &server.url("/"), entities);
            world.set.options.sort.leave_out_invalid = true;
            let read = world.read();
            assert_eq!(read.is_ok(), is_read, "{entities:?} {last} {read:?}");
            if let Ok(report) = read {
                assert_eq!((report.entities, report.invalid_statements), (1, 1), "{report:?}");
            }
        }
    }
}

#[test]
fn statements_of_one_graph_or_of_all_are_read() {
    let data = "GRAPH <http://g/1> { <http://a/1> <http://p> \"1\", [ <http://q> \"b\" ] }
                GRAPH <http://g/2> { <http://a/1> <http://p> \"1\" . <http://a/2> <http://p> \"2\" }
                <http://a/3> <http://p> \"3\" .";
    for (graph, names) in [
        (QueryGraph::Default, &["3"][..]),
        (QueryGraph::Named("http://g/2".to_owned()), &["1", "2"]),
        (QueryGraph::Any, &["1", "2"]),
    ] {
        for entities in [ALL, LISTED] {
            let mut world = world(entities);
            world.insert(data);
            world.set.sparql.graph = graph.clone();
            assert_eq!(world.read().unwrap().entities, names.len() as u64, "{graph:?}");
            let known: Vec<_> = world.place.state().into_keys().collect();
            assert_eq!(
                known,
                names.iter().map(|name| format!("http://a/{name}")).collect::<Vec<_>>()
            );
            assert_eq!(world.read().unwrap().unchanged, names.len() as u64);
        }
    }
}
