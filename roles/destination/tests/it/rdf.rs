//! Copies that store triples: files of N-Quads, a SPARQL endpoint, a store of Oxigraph.

use crate::contract::{Kept, contract_with, kills};
use crate::copy::{Copy, Ran};
use crate::source::{Source, list_of};
use abreast_destination::check::{CopyPlace, repair_copy};
use abreast_destination::{
    Graph, GraphStoreOptions, NQuadsOptions, OpenStore, OxigraphOptions, PushOptions, SinkOptions,
    SparqlOptions,
};
use abreast_testkit::endpoint::{DefaultGraph, Endpoint, Fault};
use abreast_testkit::http::unused_address;
use abreast_testkit::pages::{Answer, Server};
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::dataset::CanonicalizationAlgorithm;
use oxigraph::model::{Dataset, GraphName, NamedOrBlankNode, Quad, Term};
use std::path::Path;
use std::sync::atomic::AtomicBool;

const RESOURCE: &str = "http://ns.example/";

/// What any program reads in the files of a copy, one after the other.
pub(crate) fn quads(folder: &Path) -> Vec<Quad> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "nq"));
    paths.sort();
    let text: Vec<u8> = paths.iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    RdfParser::from_format(RdfFormat::NQuads).for_slice(&text).map(|quad| quad.unwrap()).collect()
}

/// The literals of entities with one statement, as their documents.
pub(crate) fn as_documents(quads: impl IntoIterator<Item = Quad>, source: &Source) -> Kept {
    let mut kept = Kept::new();
    for quad in quads {
        let NamedOrBlankNode::NamedNode(subject) = &quad.subject else { panic!("{quad}") };
        let base = source.server.base.as_str();
        let path = subject.as_str().strip_prefix(base);
        let path = path.or_else(|| subject.as_str().strip_prefix(&Source::iri_of(base))).unwrap();
        let line = format!("{} {} {} .\n", quad.subject, quad.predicate, quad.object);
        assert_eq!(kept.insert(path.to_owned(), line.into_bytes()), None, "{quad}");
    }
    kept
}

pub(crate) fn in_files(copy: &Copy, source: &Source) -> Kept {
    as_documents(quads(copy.folder()), source)
}

pub(crate) fn nquads(_: &Path) -> SinkOptions {
    SinkOptions::NQuads(NQuadsOptions::default())
}

fn nquads_in(graph: Graph, file_bytes: u64) -> SinkOptions {
    SinkOptions::NQuads(NQuadsOptions { graph, file_bytes })
}

fn sparql_in(endpoint: &Endpoint, graph: Graph) -> SinkOptions {
    SinkOptions::Sparql(SparqlOptions { url: endpoint.url(), query_url: None, graph })
}

thread_local! {
    /// The endpoint of the test's thread.
    static ENDPOINT: Endpoint = Endpoint::start();
}

pub(crate) fn endpoint() -> Endpoint {
    ENDPOINT.with(Clone::clone)
}

/// An empty endpoint.
pub(crate) fn sparql(_: &Path) -> SinkOptions {
    endpoint().store.clear().unwrap();
    sparql_in(&endpoint(), Graph::Default)
}

fn oxigraph_in(endpoint: &Endpoint, graph: Graph) -> SinkOptions {
    let store = Some(OpenStore::new(endpoint.store.clone()));
    SinkOptions::Oxigraph(OxigraphOptions { graph, store })
}

/// An empty store.
pub(crate) fn oxigraph(_: &Path) -> SinkOptions {
    endpoint().store.clear().unwrap();
    oxigraph_in(&endpoint(), Graph::Default)
}

/// An empty graph store.
pub(crate) fn graph_store(_: &Path) -> SinkOptions {
    endpoint().store.clear().unwrap();
    SinkOptions::GraphStore(GraphStoreOptions { url: endpoint().graph_store_url() })
}

/// A receiver that was sent nothing.
pub(crate) fn receiver(_: &Path) -> SinkOptions {
    endpoint().pushed.lock().unwrap().clear();
    SinkOptions::Push(PushOptions { url: endpoint().push_url(), graph: None })
}

pub(crate) fn in_receiver(_: &Copy, source: &Source) -> Kept {
    let pushed = endpoint().pushed.lock().unwrap().clone();
    let quads = pushed.iter().flat_map(|(resource, body)| {
        let parser = RdfParser::from_format(RdfFormat::NTriples);
        let quads: Vec<Quad> = parser.for_slice(body).map(|quad| quad.unwrap()).collect();
        assert!(quads.iter().all(|quad| quad.subject.to_string() == format!("<{resource}>")));
        quads
    });
    as_documents(quads.collect::<Vec<_>>(), source)
}

pub(crate) fn in_endpoint(_: &Copy, source: &Source) -> Kept {
    as_documents(endpoint().store.iter().map(Result::unwrap), source)
}

#[test]
fn a_folder_of_nquads_keeps_the_contract() {
    contract_with(Source::of_statements(), &nquads, in_files);
    // Each resource is in a separate file, which is rewritten when it is superseded.
    let small = |_: &Path| nquads_in(Graph::OfResource, 1);
    contract_with(Source::of_statements(), &small, in_files);
}

#[test]
fn a_folder_of_nquads_recovers_from_kills() {
    kills::killed_with(Source::of_statements, &nquads, in_files);
    kills::killed_twice_with(Source::of_statements(), &nquads, in_files);
    let small = |_: &Path| nquads_in(Graph::Default, 300);
    kills::killed_with(Source::of_statements, &small, in_files);
}

#[test]
fn a_sparql_endpoint_keeps_the_contract() {
    contract_with(Source::of_statements(), &sparql, in_endpoint);
    for graph in [Graph::Named("http://ns.example/graph".to_owned()), Graph::OfResource] {
        let sink = move |_: &Path| {
            endpoint().store.clear().unwrap();
            sparql_in(&endpoint(), graph.clone())
        };
        contract_with(Source::of_statements(), &sink, in_endpoint);
    }
}

#[test]
fn a_sparql_endpoint_recovers_from_kills() {
    for new in [Source::of_statements, Source::of_addresses] {
        kills::killed_with(new, &sparql, in_endpoint);
        sparql(Path::new(""));
        kills::killed_twice_with(new(), &sparql, in_endpoint);
    }
}

#[test]
fn a_store_of_oxigraph_keeps_the_contract() {
    contract_with(Source::of_statements(), &oxigraph, in_endpoint);
    for graph in [Graph::Named("http://ns.example/graph".to_owned()), Graph::OfResource] {
        let sink = move |_: &Path| {
            endpoint().store.clear().unwrap();
            oxigraph_in(&endpoint(), graph.clone())
        };
        contract_with(Source::of_statements(), &sink, in_endpoint);
    }
    assert_eq!(endpoint().store.named_graphs().count(), endpoint().store.len().unwrap());
}

#[test]
fn a_store_of_oxigraph_recovers_from_kills() {
    for new in [Source::of_statements, Source::of_addresses] {
        kills::killed_with(new, &oxigraph, in_endpoint);
        oxigraph(Path::new(""));
        kills::killed_twice_with(new(), &oxigraph, in_endpoint);
    }
}

#[test]
fn addresses_of_documents_keep_the_contract() {
    contract_with(Source::of_addresses(), &oxigraph, in_endpoint);
    contract_with(Source::of_addresses(), &nquads, in_files);
    contract_with(Source::of_addresses(), &sparql, in_endpoint);
    contract_with(Source::of_addresses(), &receiver, in_receiver);
}

#[test]
fn graph_stores_and_receivers_keep_the_contract() {
    contract_with(Source::of_statements(), &graph_store, in_endpoint);
    contract_with(Source::of_statements(), &receiver, in_receiver);
}

#[test]
fn graph_stores_and_receivers_recover_from_kills() {
    kills::killed_with(Source::of_statements, &graph_store, in_endpoint);
    graph_store(Path::new(""));
    kills::killed_twice_with(Source::of_statements(), &graph_store, in_endpoint);
    for new in [Source::of_statements, Source::of_addresses] {
        kills::killed_with(new, &receiver, in_receiver);
        receiver(Path::new(""));
        kills::killed_twice_with(new(), &receiver, in_receiver);
    }
}

/// The sinks, each empty.
fn sinks() -> impl Iterator<Item = (SinkOptions, &'static str)> {
    let named = Graph::Named("http://ns.example/graph".to_owned());
    let sinks = [
        (nquads_in(Graph::Default, 64 << 20), "files"),
        (nquads_in(named.clone(), 500), "small files"),
        (sparql_in(&endpoint(), Graph::Default), "endpoint"),
        (sparql_in(&endpoint(), named.clone()), "graph of the endpoint"),
        (oxigraph_in(&endpoint(), Graph::Default), "store"),
        (oxigraph_in(&endpoint(), named), "graph of the store"),
    ];
    sinks.into_iter().inspect(|_| endpoint().store.clear().unwrap())
}

/// A canonical form of isomorphic graphs, independent of the graph's name.
pub(crate) fn canonical(quads: impl IntoIterator<Item = Quad>) -> Vec<String> {
    let quads = quads.into_iter().map(|quad| Quad { graph_name: GraphName::DefaultGraph, ..quad });
    let mut dataset: Dataset = quads.collect();
    dataset.canonicalize(CanonicalizationAlgorithm::Unstable);
    let mut lines: Vec<String> = dataset.iter().map(|quad| quad.to_string()).collect();
    lines.sort();
    lines
}

/// The statements of a copy.
fn copied(copy: &Copy) -> Vec<String> {
    match &copy.options.sink {
        SinkOptions::NQuads(_) => canonical(quads(copy.folder())),
        _ => canonical(endpoint().store.iter().map(Result::unwrap)),
    }
}

/// The statements of a Source of Turtle documents, each with separate blank nodes.
fn published(source: &Source) -> Vec<String> {
    let mut all = Vec::new();
    for (number, body) in source.kept.values().enumerate() {
        let parser = RdfParser::from_format(RdfFormat::Turtle);
        for quad in parser.for_slice(body) {
            let mut quad = quad.unwrap();
            let own =
                |label: &str| oxigraph::model::BlankNode::new(format!("d{number}{label}")).unwrap();
            if let NamedOrBlankNode::BlankNode(node) = &quad.subject {
                quad.subject = own(node.as_str()).into();
            }
            if let Term::BlankNode(node) = &quad.object {
                quad.object = own(node.as_str()).into();
            }
            all.push(quad);
        }
    }
    canonical(all)
}

#[test]
fn blank_nodes_are_replaced_with_their_resource_and_no_other() {
    for (sink, what) in sinks() {
        let mut source = Source::new();
        let subject = |source: &Source, path: &str| format!("<{}>", source.server.url(path));
        let (a, b) = (subject(&source, "/a.ttl"), subject(&source, "/b.ttl"));
        let address = "<http://ns.example/address> [ <http://ns.example/city> \"x\" ]";
        // Equal blank nodes of two resources, which refer to each other.
        let versions = [
            format!("{a} {address}, [] ; <http://ns.example/knows> {b} ."),
            format!("{a} {address} ."),
            // Cycles, including a cycle of a single node, and two equal ones.
            format!(
                "{a} <http://ns.example/p> _:x, _:z . _:x <http://ns.example/p> _:y . _:y <http://ns.example/p> _:x . _:z <http://ns.example/p> _:z ."
            ),
            format!(
                "{a} <http://ns.example/p> _:x, _:y . _:x <http://ns.example/p> _:x . _:y <http://ns.example/p> _:y ."
            ),
            // A list, which is a long chain.
            format!("{a} <http://ns.example/list> (1 2 3 4 5 6 7 8 9 (10 11) {b} ) ."),
            format!("{a} <http://ns.example/list> (1 2 3 4 5 7 8 9 (10 11) {b} ) ."),
            String::new(),
            format!("{a} a {b} ; {address} ; <http://ns.example/knows> {b} ."),
        ];
        source.set("/b.ttl", &format!("{b} {address}, [ <http://ns.example/knows> {a} ] ."));
        source.set("/a.ttl", &versions[0]);
        source.snapshot();
        let mut copy = Copy::kept_in(&source, |_| sink);
        copy.run();
        assert_eq!(copied(&copy), published(&source), "{what}");
        for version in &versions[1..] {
            source.set("/a.ttl", version);
            let Ran { result, codes, .. } = copy.try_run();
            assert_eq!((result.unwrap().exit_code, codes), (0, Vec::new()), "{what}: {version}");
            assert_eq!(copied(&copy), published(&source), "{what}: {version}");
            assert_eq!(copy.audit(true).exit_code, 0, "{what}: {version}");
        }
        source.delete("/b.ttl");
        copy.run();
        assert_eq!(copied(&copy), published(&source), "{what}");
        source.snapshot();
        copy.options.baseline = true;
        copy.options.full = true;
        let compared = copy.run();
        assert_eq!((compared.updated, compared.damaged), (0, 0), "{what}");
        source.delete("/a.ttl");
        copy.options.baseline = false;
        copy.run();
        assert_eq!(copied(&copy), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn hostile_literals_and_iris_are_stored_unchanged_or_refused() {
    for (sink, what) in sinks() {
        let mut source = Source::new();
        let literals = [
            r"> } ; DROP ALL #",
            r#"\" } ; DROP ALL ; INSERT DATA { <http://h/x> <http://h/y> \" "#,
            r"\\u0022 } ; DROP ALL #",
            r"\\\\U00000022 \\\\\\u0022 \u0000 \u0001 \u000B \u007F \uFFFD",
            r"\n\r\t\b\f line # comment",
            "' ''' \u{2028} \u{202e} é 😀",
        ];
        for (number, literal) in literals.iter().enumerate() {
            let path = format!("/{number}.ttl");
            let uri = source.server.url(&path);
            source.set(&path, &format!("<{uri}> <{RESOURCE}p> \"{literal}\", \"x\"@en-GB ."));
        }
        let expected = published(&source);
        // Refused: a valid statement in the same document is not applied alone.
        for (name, bad) in
            [("space", "<http://h/a b>"), ("end", r"<http://h/\u003E>"), ("relative", "\"x\"@-")]
        {
            let path = format!("/bad-{name}.ttl");
            let uri = source.server.url(&path);
            source.set(&path, &format!("<{uri}> <{RESOURCE}p> \"good\", {bad} ."));
        }
        source.snapshot();
        let copy = Copy::kept_in(&source, |_| sink);
        let Ran { result, codes, .. } = copy.try_run();
        let summary = result.unwrap();
        assert_eq!((summary.created, summary.failed), (6, 3), "{what}: {codes:?}");
        assert!(codes.iter().all(|code| code.starts_with("rdf.")), "{what}: {codes:?}");
        // The parsers of this test and of the endpoint write language tags in lower case.
        let copied: Vec<String> =
            copied(&copy).into_iter().map(|line| line.replace("@en-GB", "@en-gb")).collect();
        assert_eq!(copied, expected, "{what}");
    }
}

/// The document of a resource with a URI, and a predicate.
type Document = fn(&str, &str) -> String;

#[test]
fn every_syntax_gives_the_same_description() {
    for (sink, what) in sinks() {
        let mut source = Source::new();
        let uri = |source: &Source, path: &str| source.server.url(path);
        let p = "http://ns.example/p";
        let documents: [(&str, Document); 5] = [
            ("/a.nt", |uri, p| format!("<{uri}> <{p}> _:x .\n_:x <{p}> \"é\"@de .\n")),
            ("/b.ttl", |uri, p| format!("<{uri}> <{p}> [ <{p}> \"é\"@de ] .")),
            ("/c.nq", |uri, p| format!("_:1 <{p}> \"\\u00E9\"@de .\n<{uri}> <{p}> _:1 .\n")),
            ("/d.rdf", |uri, _| {
                format!(
                    "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://ns.example/\">\
                     <r:Description r:about=\"{uri}\"><p r:parseType=\"Resource\"><p xml:lang=\"de\">é</p></p></r:Description></r:RDF>"
                )
            }),
            ("/e.jsonld", |uri, p| {
                format!(r#"{{"@id":"{uri}","{p}":{{"{p}":{{"@value":"é","@language":"de"}}}}}}"#)
            }),
        ];
        for (path, document) in documents {
            let text = document(&uri(&source, path), p);
            source.set(path, &text);
        }
        source.snapshot();
        let copy = Copy::kept_in(&source, |_| sink);
        let Ran { result, codes, .. } = copy.try_run();
        assert_eq!((result.unwrap().created, &codes), (5, &Vec::new()), "{what}");
        let turtle = documents.map(|(path, _)| documents[1].1(&uri(&source, path), p)).concat();
        let parser = RdfParser::from_format(RdfFormat::Turtle);
        let expected = canonical(parser.for_slice(&turtle).map(|quad| quad.unwrap()));
        assert_eq!(copied(&copy), expected, "{what}");
    }
}

#[test]
fn statements_about_others_are_reported_and_not_stored() {
    for (sink, what) in sinks() {
        let mut source = Source::new();
        let (a, b) = (source.server.url("/a.ttl"), source.server.url("/b.ttl"));
        let own = format!("<{b}> <{RESOURCE}p> \"own\" .");
        source.set("/b.ttl", &own);
        source.set(
            "/a.ttl",
            &format!("<{a}> <{RESOURCE}p> <{b}> . <{b}> <{RESOURCE}p> \"not own\" ."),
        );
        source.set("/c.ttl", &format!("{own} <{RESOURCE}c> <{RESOURCE}p> 1 ."));
        source.set("/page", "<html></html>");
        source.snapshot();
        let copy = Copy::kept_in(&source, |_| sink);
        let Ran { result, codes, .. } = copy.try_run();
        let summary = result.unwrap();
        assert_eq!((summary.created, summary.skipped), (2, 2), "{what}: {codes:?}");
        for code in ["rdf.others", "rdf.subject", "rdf.type"] {
            assert!(codes.iter().any(|known| known == code), "{what}: {codes:?}");
        }
        let text = format!("<{a}> <{RESOURCE}p> <{b}> . {own}");
        let parser = RdfParser::from_format(RdfFormat::Turtle);
        let expected = canonical(parser.for_slice(&text).map(|quad| quad.unwrap()));
        assert_eq!(copied(&copy), expected, "{what}");
    }
}

#[test]
fn texts_are_read_as_rdf_only_where_they_state_something() {
    let plain =
        || Source { media_type: Some("text/plain; charset=utf-8"), ..Source::of_statements() };
    for (sink, what) in sinks() {
        let mut source = plain();
        source.set("/a", "first");
        source.set("/b.nt", "first");
        source.snapshot();
        let copy = Copy::kept_in(&source, |_| sink);
        assert_eq!(copy.run().created, 2);
        let before = copied(&copy);
        assert_eq!(before, published(&source), "{what}");
        for text in ["# README\n", "", "\n", "Not found", "<!DOCTYPE html>", "<a> <b> <c> .\n"] {
            source.form = |_, text| text.to_owned();
            source.set("/a", text);
            let ran = copy.try_run();
            assert!(ran.has("rdf.type"), "{what}, {text:?}: {:?}", ran.reported);
            assert_eq!((ran.exit(), copied(&copy)), (3, before.clone()), "{what}, {text:?}");
        }
        source.form = plain().form;
        source.set("/a", "second");
        copy.run();
        assert_eq!(copied(&copy), published(&source), "{what}");
        // A document with the media type of N-Triples may lack statements.
        source.form = |_, text| text.to_owned();
        source.set("/b.nt", "# nothing any more\n");
        copy.run();
        assert_eq!(copied(&copy), published(&source), "{what}");
    }
}

/// As a set of entities is published by ResourceSync: the URI is an address.
#[test]
fn an_address_may_be_that_of_a_document_about_an_entity() {
    let ada = |text: &str| {
        format!("<http://id.example/ada> <{RESOURCE}p> _:x .\n_:x <{RESOURCE}p> \"{text}\" .\n")
    };
    for (sink, what) in sinks() {
        let mut source = Source::new();
        source.set("/ada.nt", &ada("1"));
        source.set("/other.nt", &format!("<http://id.example/other> <{RESOURCE}p> \"1\" .\n"));
        source.snapshot();
        let copy = Copy::kept_in(&source, |_| sink);
        let check = |source: &Source| {
            copy.run();
            assert_eq!(copied(&copy), published(source), "{what}");
            assert_eq!(copy.audit(true).exit_code, 0, "{what}");
        };
        check(&source);
        source.set("/ada.nt", &ada("2"));
        check(&source);
        // Another address of the same entity, and another entity at the same address.
        source.set("/people/ada.nt", &ada("2"));
        source.delete("/ada.nt");
        source.set("/other.nt", &format!("<http://id.example/new> <{RESOURCE}p> \"1\" .\n"));
        check(&source);
        source.set("/people/ada.nt", &ada("3"));
        check(&source);
        source.delete("/people/ada.nt");
        source.delete("/other.nt");
        check(&source);
    }
}

#[test]
fn without_its_state_a_folder_of_nquads_becomes_equal_again() {
    let mut source = Source::of_statements();
    for number in 0..20 {
        source.set(&format!("/{number}"), "some text");
    }
    source.snapshot();
    let copy = Copy::kept_in(&source, |_| nquads_in(Graph::Default, 700));
    copy.run();
    source.delete("/3");
    source.set("/4", "other");
    source.snapshot();
    std::fs::remove_dir_all(copy.folder().join(".abreast")).unwrap();
    // Torn, as by a kill.
    let last = copy.folder().join("abreast-00000001.nq");
    let text = std::fs::read(&last).unwrap();
    std::fs::write(&last, [&text[..], b"# abreast", &text[9..60]].concat()).unwrap();
    copy.run();
    assert_eq!(in_files(&copy, &source), source.kept);
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn altered_files_of_nquads_are_found_and_repaired() {
    let mut source = Source::of_statements();
    for number in 0..9 {
        source.set(&format!("/{number}"), "some text");
    }
    source.snapshot();
    let mut copy = Copy::kept_in(&source, nquads);
    copy.run();
    let path = copy.folder().join("abreast-00000001.nq");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("some text", "some tex!", 1)).unwrap();
    assert_eq!(copy.audit(false).exit_code, 0);
    let report = copy.audit(true);
    assert_eq!((report.same, report.updated, report.exit_code), (8, 1, 1));
    (copy.options.baseline, copy.options.full) = (true, true);
    let ran = copy.run();
    assert_eq!((ran.damaged, ran.updated), (1, 1));
    assert_eq!(in_files(&copy, &source), source.kept);
    (copy.options.baseline, copy.options.full) = (false, false);
    let repaired = |copy: &Copy| {
        assert_eq!(copy.try_run().code(), "nquads.damaged");
        let (place, cancel) = (CopyPlace::find(copy.folder()).unwrap(), AtomicBool::new(false));
        let repair = |is_dry| {
            repair_copy(&place, &|_| true, is_dry, &cancel, &abreast_core::Meter::default())
                .unwrap()
        };
        assert_eq!(repair(true), repair(false));
        let ran = copy.try_run();
        assert_eq!((ran.exit(), copy.audit(true).exit_code), (0, 0), "{:?}", ran.reported);
        assert_eq!(in_files(copy, &source), source.kept);
        assert_eq!(repair(false), [""; 0]);
    };
    let text = std::fs::read_to_string(&path).unwrap();
    for cut in [text.len() - 1, text.len() / 2, 1] {
        std::fs::write(&path, &std::fs::read_to_string(&path).unwrap()[..cut]).unwrap();
        repaired(&copy);
    }
    for file in std::fs::read_dir(copy.folder()).unwrap().flatten() {
        if file.path().extension().is_some_and(|end| end == "nq") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    repaired(&copy);
}

#[test]
fn superseded_descriptions_leave_files_that_do_not_grow() {
    let mut source = Source::of_statements();
    let text = "x".repeat(1_000);
    for number in 0..50 {
        source.set(&format!("/{number}"), &text);
    }
    source.snapshot();
    let copy = Copy::kept_in(&source, |_| nquads_in(Graph::Default, 10_000));
    copy.run();
    let bytes = || -> u64 {
        let entries = std::fs::read_dir(copy.folder()).unwrap().flatten();
        entries
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.metadata().unwrap().len())
            .sum()
    };
    let first = bytes();
    for round in 0..10 {
        for number in 0..25 {
            source.set(&format!("/{number}"), &format!("{round} {text}"));
        }
        copy.run();
        assert_eq!(in_files(&copy, &source), source.kept);
        assert!(bytes() <= 2 * first + 30_000, "{} of {first}", bytes());
    }
}

#[test]
fn an_endpoint_that_fails_for_a_moment_is_asked_again() {
    sparql(Path::new(""));
    for fault in [Fault::Status(503), Fault::Status(429), Fault::Unanswered] {
        endpoint().store.clear().unwrap();
        let mut source = Source::new();
        let uri = source.server.url("/a.ttl");
        source.set("/a.ttl", &format!("<{uri}> <{RESOURCE}p> [ <{RESOURCE}p> [] ] ."));
        source.snapshot();
        let copy = Copy::kept_in(&source, |_| sparql_in(&endpoint(), Graph::Default));
        endpoint().fail([fault]);
        copy.run();
        assert_eq!(copied(&copy), published(&source), "{fault:?}");
        // Longer and shorter chains than the stored one.
        for list in ["1 2 3 4 5 6 7", "1 2"] {
            source.set("/a.ttl", &format!("<{uri}> <{RESOURCE}p> ({list}), [] ."));
            endpoint().fail([fault, fault]);
            copy.run();
            assert_eq!(copied(&copy), published(&source), "{fault:?}");
        }
    }
}

#[test]
fn refused_descriptions_fail_alone() {
    sparql(Path::new(""));
    let mut source = Source::of_statements();
    for number in 0..30 {
        source.set(&format!("/{number}"), if number % 10 == 3 { "bad" } else { "good" });
    }
    source.snapshot();
    let copy = Copy::kept_in(&source, |_| sparql_in(&endpoint(), Graph::Default));
    endpoint().judge(|text| text.contains("\"bad\"").then_some(Fault::Status(500)));
    let Ran { result, codes, reported, .. } = copy.try_run();
    let summary = result.unwrap();
    assert_eq!((summary.created, summary.failed, summary.exit_code), (27, 3, 3));
    assert_eq!(codes, ["sparql.refused"; 3]);
    assert!(reported[0].message.ends_with(": no\\u001bt now"), "{}", reported[0].message);
    endpoint().judge(|_| None);
    // The statements may have been stored although they were refused.
    assert_eq!(copy.run().updated, 3);
    assert_eq!(in_endpoint(&copy, &source), source.kept);
}

#[test]
fn an_endpoint_that_cannot_be_used_ends_the_run() {
    let mut source = Source::of_statements();
    for number in 0..5 {
        source.set(&format!("/{number}"), "text");
    }
    source.snapshot();
    for (fault, code) in [(401, "sparql.denied"), (404, "sparql.url"), (503, "sparql.failed")] {
        let endpoint = Endpoint::start();
        let copy = Copy::kept_in(&source, |_| sparql_in(&endpoint, Graph::Default));
        endpoint.fail([Fault::Status(fault); 3]);
        let ran = copy.try_run();
        assert_eq!(ran.code(), code);
    }
    let url = format!("http://me:secret@{}/update", unused_address());
    let options = SparqlOptions { url, query_url: None, graph: Graph::Default };
    let copy = Copy::kept_in(&source, |_| SinkOptions::Sparql(options));
    let error = copy.try_run().result.unwrap_err();
    assert_eq!(error.code(), "sparql.failed");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    let credentials = Endpoint::start();
    let url = credentials.url().replace("http://", "http://me:secret@");
    let options = SparqlOptions { url, query_url: None, graph: Graph::Default };
    let copy = Copy::kept_in(&source, |_| SinkOptions::Sparql(options));
    assert_eq!(copy.run().created, 5);
    let heads = credentials.heads();
    assert!(heads.iter().all(|head| head.contains("Basic bWU6c2VjcmV0")), "{heads:?}");
}

#[test]
fn what_others_stored_of_a_resource_is_replaced() {
    for sink in [sparql, oxigraph] {
        others_are_replaced(sink);
    }
}

fn others_are_replaced(sink: fn(&Path) -> SinkOptions) {
    let mut source = Source::new();
    let sink = sink(Path::new(""));
    let uri = source.server.url("/a.ttl");
    endpoint().update(&format!(
        "INSERT DATA {{ <{uri}> <{RESOURCE}p> (1 2 3 4 5), \"old\" . <{RESOURCE}other> <{RESOURCE}p> [ <{RESOURCE}p> <{uri}> ] }}"
    ));
    source.set("/a.ttl", &format!("<{uri}> <{RESOURCE}p> \"new\" ."));
    source.snapshot();
    let copy = Copy::kept_in(&source, |_| sink);
    copy.run();
    let left: Vec<Quad> = endpoint().store.iter().map(Result::unwrap).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    endpoint().update(&format!("DELETE WHERE {{ <{uri}> ?p ?o }}"));
    assert_eq!(copy.audit(false).exit_code, 0);
    let report = copy.audit(true);
    assert_eq!((report.missing, report.exit_code), (1, 1));
}

#[test]
fn what_others_altered_is_found_by_audits_and_stored_again() {
    type NewSink = fn(&Path) -> SinkOptions;
    let alter: [(NewSink, &str); 3] = [
        (oxigraph, "DELETE { ?s ?p ?o } INSERT { ?s ?p 7 } WHERE { ?s ?p ?o . FILTER(?o = 3) }"),
        (sparql, "DELETE { ?s ?p ?o } INSERT { ?s ?p 7 } WHERE { ?s ?p ?o . FILTER(?o = 3) }"),
        (
            graph_store,
            "DELETE { GRAPH ?g { ?s ?p ?o } } INSERT { GRAPH ?g { ?s ?p 7 } } WHERE { GRAPH ?g { ?s ?p ?o . FILTER(?o = 3) } }",
        ),
    ];
    for (sink, update) in alter {
        let mut source = Source::new();
        for number in 0..9 {
            let uri = source.server.url(&format!("/{number}.ttl"));
            // Some descriptions lack blank nodes, and are read together.
            let below = if number % 2 == 0 { "[ <http://h/q> (1 2 3 4 5) ]" } else { "3" };
            let text = format!("<{uri}> <{RESOURCE}p> {below}, {} .", 100 + number);
            source.set(&format!("/{number}.ttl"), &text);
        }
        source.snapshot();
        let mut copy = Copy::kept_in(&source, sink);
        copy.run();
        assert_eq!(copy.audit(true).exit_code, 0);
        let before = copied(&copy);
        endpoint().update(update);
        let report = copy.audit(true);
        assert_eq!((report.same, report.updated, report.missing), (0, 9, 0));
        (copy.options.baseline, copy.options.full) = (true, true);
        assert_eq!(copy.run().damaged, 9);
        assert_eq!(copied(&copy), before);
        assert_eq!(copy.audit(true).exit_code, 0);
    }
}

#[test]
fn numbers_are_compared_as_a_store_keeps_them() {
    let mut source = Source::new();
    let uri = source.server.url("/a.ttl");
    let text = |more: &str| {
        format!("<{uri}> <{RESOURCE}p> 1.0, 1.00, 007, true, [ <{RESOURCE}p> 1e0, {more} ] .")
    };
    source.set("/a.ttl", &text("2.50"));
    source.snapshot();
    let mut copy = Copy::kept_in(&source, oxigraph);
    copy.run();
    assert_eq!(endpoint().store.len().unwrap(), 6);
    assert_eq!(copy.audit(true).exit_code, 0);
    source.set("/a.ttl", &text("2.5"));
    copy.run();
    assert_eq!((endpoint().store.len().unwrap(), copy.audit(true).exit_code), (6, 0));
    (copy.options.baseline, copy.options.full) = (true, true);
    assert_eq!(copy.run().damaged, 0);
}

#[test]
fn what_is_stored_of_a_resource_has_a_limit() {
    let mut source = Source::of_statements();
    source.set("/a", "text");
    source.set("/b", "text");
    source.snapshot();
    let copy = Copy::kept_in(&source, oxigraph);
    let entity = source.server.url("/a");
    let (many, p) = (200_001, oxigraph::model::NamedNode::new(format!("{RESOURCE}p")).unwrap());
    let subject = oxigraph::model::NamedNode::new(&entity).unwrap();
    let number = |n: i32| {
        Quad::new(
            subject.clone(),
            p.clone(),
            oxigraph::model::Literal::from(n),
            GraphName::DefaultGraph,
        )
    };
    endpoint().store.extend((0..many).map(number)).unwrap();
    let ran = copy.try_run();
    assert_eq!(ran.codes, ["oxigraph.refused"]);
    assert_eq!((ran.result.unwrap().created, endpoint().store.len().unwrap()), (1, 200_002));
}

#[test]
fn a_copy_stays_in_its_graph() {
    let mut source = Source::of_statements();
    source.set("/a", "text");
    source.snapshot();
    let mut copy = Copy::kept_in(&source, nquads);
    copy.run();
    copy.options.sink = nquads_in(Graph::OfResource, 1_000);
    assert_eq!(copy.try_run().code(), "sink.kind");
    copy.options.sink = nquads_in(Graph::Named("no graph".to_owned()), 1_000);
    assert_eq!(copy.try_run().code(), "rdf.graph");
}

#[test]
fn default_graphs_that_show_named_ones_are_compared_alone() {
    for default in [DefaultGraph::Own, DefaultGraph::Union, DefaultGraph::NamedOnly] {
        let endpoint = Endpoint::start();
        let mut source = Source::of_statements();
        for path in ["/a", "/b", "/c"] {
            source.set(path, path);
        }
        source.snapshot();
        let mut copy = Copy::kept_in(&source, |_| sparql_in(&endpoint, Graph::Default));
        assert_eq!(copy.run().created, 3);
        let uri = |path: &str| source.server.url(path);
        let other = format!(
            "INSERT DATA {{ GRAPH <http://h/g> {{ <{}> <http://h/p> 1 . <http://h/x> <http://h/p> 2 }} }}",
            uri("/a")
        );
        endpoint.update(&other);
        endpoint.show_as_default(default);
        let audit = |copy: &Copy| {
            let ran = Ran::audit(&copy.options, true);
            let report = ran.result.as_ref().unwrap();
            (
                report.same,
                report.unverified,
                report.updated + report.missing,
                ran.has("sparql.union"),
            )
        };
        let expected = match default {
            DefaultGraph::Own => (3, 0, 0, false),
            DefaultGraph::Union => (3, 1, 0, true),
            DefaultGraph::NamedOnly => (3, 3, 0, true),
        };
        assert_eq!(audit(&copy), expected, "{default:?}");
        copy.options.baseline = true;
        copy.options.full = true;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().damaged), (0, 0), "{default:?}: {:?}", ran.reported);
        assert_eq!(ran.has("sparql.union"), expected.3, "{default:?}");
        // Statements that are damaged only in the default graph are found, and stored again.
        endpoint.update(&format!("DELETE WHERE {{ <{}> ?p ?o }}", uri("/b")));
        endpoint.update(&format!("INSERT DATA {{ <{}> <http://h/p> 1 }}", uri("/c")));
        let damaged = if default == DefaultGraph::NamedOnly { 0 } else { 2 };
        assert_eq!(audit(&copy).2, damaged, "{default:?}");
        assert_eq!(copy.run().damaged, damaged, "{default:?}");
        assert_eq!(audit(&copy), expected, "{default:?}");
    }
}

/// As the 303 of linked data leads from an entity to a document about it [rfc3986 §5.1.3].
#[test]
fn relative_iris_are_resolved_where_the_document_was_found() {
    let server = Server::start();
    list_of(&server, &["/e/ttl", "/e/rdf", "/e/jsonld"]);
    let root = |name: &str| server.url(&format!("/e/{name}"));
    let documents = [
        ("ttl", "text/turtle", format!("<{}> <http://p> <next> .", root("ttl"))),
        (
            "rdf",
            "application/rdf+xml",
            format!(
                "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:h='http://'>\
                 <rdf:Description rdf:about='{}'><h:p rdf:resource='next'/></rdf:Description></rdf:RDF>",
                root("rdf")
            ),
        ),
        (
            "jsonld",
            "application/ld+json",
            format!("{{\"@id\":\"{}\",\"http://p\":{{\"@id\":\"next\"}}}}", root("jsonld")),
        ),
    ];
    for (name, media_type, text) in documents {
        let to = server.url(&format!("/doc/{name}"));
        server.put(&format!("/e/{name}"), Answer::status(303).header("location", &to));
        let answer = Answer::ok(text).header("content-type", media_type);
        server.put(&format!("/doc/{name}"), answer);
    }
    let mut copy = Copy::of(server.url("/list.xml"));
    copy.options.sink = nquads(Path::new(""));
    copy.run();
    let found: Vec<_> = quads(copy.folder()).iter().map(|quad| quad.object.to_string()).collect();
    assert_eq!(found, vec![format!("<{}>", server.url("/doc/next")); 3]);
}
