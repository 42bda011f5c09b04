//! Copies of descriptions whose servers write IRIs in place of blank nodes [rdf11-concepts §3.5].

use crate::copy::Copy;
use crate::emm_source::{self, EmmSource};
use crate::rdf::{canonical, endpoint, quads};
use crate::sdshare_source::{self, SdSource};
use abreast_destination::{
    Graph, GraphStoreOptions, NQuadsOptions, OpenStore, OxigraphOptions, SinkOptions, SparqlOptions,
};
use abreast_rdf::{EntityPatch, PatchBlankNodes, canonical_lines};
use oxigraph::io::{RdfFormat, RdfParser};
use serde_json::json;
use std::collections::BTreeMap;

/// The start of another program's IRIs for the blank nodes of its data.
const OTHER: &str = "https://data.example/.well-known/genid/";

/// A Source whose entities have numbers, of either protocol.
enum Provider {
    Emm(EmmSource),
    SdShare(SdSource),
}

impl Provider {
    fn start(is_emm: bool) -> Self {
        if is_emm {
            Self::Emm(EmmSource::start(emm_source::Habits::default()))
        } else {
            Self::SdShare(SdSource::start(sdshare_source::Habits::default()))
        }
    }

    fn iri(&self, number: usize) -> String {
        match self {
            Self::Emm(source) => source.iri(number),
            Self::SdShare(_) => SdSource::name(number),
        }
    }

    fn put(&self, number: usize, lines: &str) {
        match self {
            Self::Emm(source) => {
                let former = source.data().entities.insert(number, lines.to_owned());
                source.record(number, if former.is_none() { "Create" } else { "Update" });
            }
            Self::SdShare(source) => source.put(&self.iri(number), lines),
        }
    }

    fn delete(&self, number: usize) {
        match self {
            Self::Emm(source) => source.delete(number),
            Self::SdShare(source) => source.delete_number(number),
        }
    }

    /// Makes a full download, or a snapshot.
    fn dump(&self) {
        match self {
            Self::Emm(source) => source.make_download(),
            Self::SdShare(source) => source.make_snapshot(),
        }
    }

    fn wait(&self) {
        match self {
            Self::Emm(source) => source.wait_days(1),
            Self::SdShare(source) => source.wait(5),
        }
    }

    fn copy(&self, sink: SinkOptions) -> Copy {
        let url = match self {
            Self::Emm(source) => source.url(),
            Self::SdShare(source) => source.url(),
        };
        let mut copy = Copy::of(url);
        copy.options.sink = sink;
        copy
    }
}

/// The description of an entity with parts whose IRIs belong to this version: two nested parts, and
/// a blank node between an entity and such a part.
fn with_parts(provider: &Provider, number: usize, version: &str) -> String {
    let (iri, ns) = (provider.iri(number), "http://ns.example/");
    let part = |name: &str| format!("<{OTHER}{version}-{number}-{name}>");
    let (a, b, c) = (part("a"), part("b"), part("c"));
    format!(
        "<{iri}> <{ns}value> \"{version}\" .\n<{iri}> <{ns}part> {a} .\n{a} <{ns}of> \"{version}\" .\n\
         {a} <{ns}part> {b} .\n{b} <{ns}of> \"b {version}\" .\n<{iri}> <{ns}node> _:n{number} .\n\
         _:n{number} <{ns}part> {c} .\n{c} <{ns}of> <{iri}> .\n"
    )
}

/// Descriptions with separate blank nodes for each entity instead of such IRIs.
fn with_blank_nodes<'d>(descriptions: impl IntoIterator<Item = &'d String>) -> Vec<String> {
    let mut text = String::new();
    for (number, lines) in descriptions.into_iter().enumerate() {
        for line in lines.lines() {
            let own = |term: &str| match term.strip_prefix(&format!("<{OTHER}")) {
                Some(name) => format!("_:g{number}{}", name.trim_end_matches('>')),
                None => term.to_owned(),
            };
            text.push_str(&line.split(' ').map(own).collect::<Vec<_>>().join(" "));
            text.push('\n');
        }
    }
    let parser = RdfParser::from_format(RdfFormat::NTriples);
    canonical(parser.for_slice(text.as_bytes()).map(|quad| quad.unwrap()))
}

fn copied(copy: &Copy) -> Vec<String> {
    match &copy.options.sink {
        SinkOptions::NQuads(_) => canonical(quads(copy.folder())),
        _ => canonical(endpoint().store.iter().map(Result::unwrap)),
    }
}

fn nquads() -> SinkOptions {
    SinkOptions::NQuads(NQuadsOptions::default())
}

/// The sinks of statements, each empty.
fn sinks() -> impl Iterator<Item = (SinkOptions, &'static str)> {
    let (url, store) = (endpoint().url(), Some(OpenStore::new(endpoint().store.clone())));
    let sparql = SparqlOptions { url, query_url: None, graph: Graph::Default };
    let graphs = GraphStoreOptions { url: endpoint().graph_store_url() };
    let sinks = [
        (nquads(), "files"),
        (SinkOptions::Sparql(sparql), "endpoint"),
        (SinkOptions::Oxigraph(OxigraphOptions { graph: Graph::Default, store }), "store"),
        (SinkOptions::GraphStore(graphs), "graph store"),
    ];
    sinks.into_iter().inspect(|_| endpoint().store.clear().unwrap())
}

#[test]
fn skolem_iris_of_others_are_parts_of_their_entity() {
    for is_emm in [true, false] {
        for is_dumped in [true, false] {
            for (sink, what) in sinks() {
                let what = format!("EMM: {is_emm}, dump: {is_dumped}, {what}");
                let provider = Provider::start(is_emm);
                let mut all = BTreeMap::new();
                let put = |number: usize, version: &str, all: &mut BTreeMap<_, _>| {
                    let lines = with_parts(&provider, number, version);
                    provider.put(number, &lines);
                    all.insert(number, lines);
                };
                (0..4).for_each(|number| put(number, "first", &mut all));
                if is_dumped {
                    provider.dump();
                }
                provider.wait();
                put(1, "second", &mut all);
                let mut copy = provider.copy(sink);
                let ran = copy.try_run();
                assert_eq!((ran.exit(), &ran.codes), (0, &vec![]), "{what}: {:?}", ran.reported);
                assert_eq!(copied(&copy), with_blank_nodes(all.values()), "{what}");

                // The IRIs of parts are new in each version; no statement about an old one remains.
                provider.wait();
                for number in [1, 2] {
                    put(number, "third", &mut all);
                }
                let ran = copy.try_run();
                assert_eq!((ran.exit(), &ran.codes), (0, &vec![]), "{what}: {:?}", ran.reported);
                assert_eq!(copied(&copy), with_blank_nodes(all.values()), "{what}");
                assert_eq!(copy.audit(true).exit_code, 0, "{what}");
                provider.delete(3);
                all.remove(&3);
                assert_eq!(copy.try_run().exit(), 0, "{what}");
                assert_eq!(copied(&copy), with_blank_nodes(all.values()), "{what}");

                provider.wait();
                provider.dump();
                copy.options.baseline = true;
                let ran = copy.try_run();
                assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{what}: {:?}", ran.reported);
                assert_eq!(copy.audit(true).exit_code, 0, "{what}");
            }
        }
    }
}

/// Puts an entity with an IRI for a blank node, and where it is fetched.
fn put_skolem(provider: &Provider, iri: &str, number: usize, lines: &str) {
    match provider {
        Provider::Emm(source) => {
            let former = source.data().entities.insert(number, lines.to_owned());
            let kind = if former.is_none() { "Create" } else { "Update" };
            let link = json!({"type": "Link", "href": format!("/id/{number}.nt"),
                "mediaType": "application/n-triples"});
            let object = json!({"id": iri, "type": "http://ns.example/Term", "url": [link]});
            source.record_with(number, kind, json!({"object": object}));
        }
        Provider::SdShare(source) => source.put(iri, lines),
    }
}

fn parsed(statements: &str) -> Vec<String> {
    let parser = RdfParser::from_format(RdfFormat::NTriples);
    canonical(parser.for_slice(statements.as_bytes()).map(|quad| quad.unwrap()))
}

/// A Source that lists its IRIs for blank nodes as resources: how its copies are corrected once.
#[test]
fn skolem_iris_that_a_source_lists_are_resources() {
    for is_emm in [true, false] {
        for changed in [0, 100] {
            let what = format!("EMM: {is_emm}, changed: {changed}");
            let provider = Provider::start(is_emm);
            let part = format!("{OTHER}x");
            let put = |number: usize, value: &str| {
                let iri = if number == 100 { part.clone() } else { provider.iri(number) };
                let mut lines = format!("<{iri}> <http://ns.example/value> \"{value}\" .\n");
                match number {
                    100 => return put_skolem(&provider, &part, number, &lines),
                    0 => lines += &format!("<{iri}> <http://ns.example/part> <{part}> .\n"),
                    _ => {}
                }
                provider.put(number, &lines);
            };
            let all = || match &provider {
                Provider::Emm(source) => parsed(&source.statements()),
                Provider::SdShare(source) => parsed(&source.statements()),
            };
            for number in [100, 0, 1] {
                put(number, "first");
            }
            provider.wait();
            provider.dump();
            let copy = provider.copy(nquads());
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.codes.len()), (0, 0), "{what}: {:?}", ran.reported);
            assert_eq!(copy.audit(true).exit_code, 0, "{what}");
            provider.wait();
            put(changed, "second");
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.count("rdf.skolem")), (3, 1), "{what}: {:?}", ran.reported);
            for _ in 0..2 {
                let ran = copy.try_run();
                assert_eq!((ran.exit(), ran.codes.len()), (0, 0), "{what}: {:?}", ran.reported);
                assert_eq!(copied(&copy), all(), "{what}");
                provider.wait();
                put(1, "third");
            }
            assert_eq!(copy.try_run().exit(), 0, "{what}");
            for number in [100, 0] {
                put(number, "fourth");
            }
            provider.dump();
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.codes.len()), (0, 0), "{what}: {:?}", ran.reported);
            assert_eq!(copied(&copy), all(), "{what}");
            assert_eq!(copy.audit(true).exit_code, 0, "{what}");
        }
    }
}

#[test]
fn skolem_iris_of_this_program_are_resources() {
    for is_emm in [true, false] {
        let provider = Provider::start(is_emm);
        // An IRI in two descriptions, and an IRI in none.
        let (shared, lone) = (format!("{OTHER}{:032x}", 1), format!("{OTHER}{:032x}-2", 2));
        let value =
            |iri: &str, value: &str| format!("<{iri}> <http://ns.example/v> \"{value}\" .\n");
        for number in [0, 1] {
            let iri = provider.iri(number);
            let part = format!("<{iri}> <http://ns.example/part> <{shared}> .\n");
            provider.put(number, &(value(&iri, "first") + &part));
        }
        put_skolem(&provider, &shared, 100, &value(&shared, "first"));
        put_skolem(&provider, &lone, 101, &value(&lone, "first"));
        provider.wait();
        provider.dump();
        let copy = provider.copy(nquads());
        for round in 0..3 {
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.codes.len()), (0, 0), "{round}: {:?}", ran.reported);
            let all = match &provider {
                Provider::Emm(source) => source.statements(),
                Provider::SdShare(source) => source.statements(),
            };
            assert_eq!(copied(&copy), parsed(&all), "{round}");
            assert_eq!(copy.audit(true).exit_code, 0, "{round}");
            provider.wait();
            put_skolem(&provider, &shared, 100, &value(&shared, &format!("round {round}")));
        }
    }
}

#[test]
fn patches_with_skolem_iris_of_others_lose_nothing() {
    let source = EmmSource::start(emm_source::Habits::default());
    let provider = Provider::Emm(source.clone());
    let copy = provider.copy(nquads());
    let mut before = Vec::new();
    for version in ["first", "second", "third"] {
        let lines = with_parts(&provider, 0, version);
        let now = canonical_lines(lines.as_bytes()).unwrap().lines;
        source.data().entities.insert(0, lines);
        let (id, mut patch) = (format!("http://source.example/{version}"), Vec::new());
        let entity = source.iri(0);
        EntityPatch {
            entity: &entity,
            old: &before,
            new: &now,
            id: &id,
            prev: None,
            entity_prev: None,
            blank_nodes: PatchBlankNodes::Labels,
        }
        .write(&mut patch)
        .unwrap();
        let kind = if before.is_empty() { "Create" } else { "Update" };
        let text = String::from_utf8(patch).unwrap();
        source.record_with(
            0,
            kind,
            json!({"instrument": {"type": "rdf_patch", "id": id, "content": text}}),
        );
        before = now;
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{version}: {:?}", ran.reported);
        let all = source.data().entities.clone();
        assert_eq!(copied(&copy), with_blank_nodes(all.values()), "{version}");
    }
}
