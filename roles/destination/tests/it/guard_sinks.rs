//! Deletions above the limit remain held, for every sink and protocol, and for any number of runs.

use crate::contract::kills::run_killed_at;
use crate::copy::{Copy, Ran};
use crate::emm_source::EmmSource;
use crate::rdf::endpoint;
use crate::rs01_source::OldSource;
use crate::sdshare_source::SdSource;
use crate::source::Source;
use abreast_destination::{
    Event, Graph, GraphStoreOptions, ItemAction, LabelsOptions, LinesOptions, MaxDelete,
    NQuadsOptions, OpenStore, Output, OxigraphOptions, PushOptions, SinkOptions, SparqlOptions,
    WarcOptions,
};
use abreast_testkit::pages::Server;
use std::path::Path;

/// Makes the options of a sink in a place.
type Make = fn(&Path) -> SinkOptions;

/// Every kind of sink, by its name, empty.
const SINKS: &[(&str, Make)] = &[
    ("folder", |_| SinkOptions::Folder),
    ("warc", |_| SinkOptions::Warc(WarcOptions::default())),
    #[cfg(feature = "s3")]
    ("objects", |place| {
        let url = format!("file://{}", place.join("store").display());
        SinkOptions::Objects(abreast_destination::ObjectsOptions { url, settings: Vec::new() })
    }),
    ("lines", |_| {
        let output = Output::new(std::io::sink());
        SinkOptions::Lines(LinesOptions { output, content_bytes_max: None })
    }),
    ("nquads", |_| SinkOptions::NQuads(NQuadsOptions::default())),
    ("labels", |place| {
        SinkOptions::Labels(LabelsOptions {
            path: place.join("labels.db"),
            is_csv: false,
            predicates: vec!["http://ns.example/text".to_owned()],
            languages: Vec::new(),
        })
    }),
    ("oxigraph", |_| {
        endpoint().store.clear().unwrap();
        let store = Some(OpenStore::new(endpoint().store.clone()));
        SinkOptions::Oxigraph(OxigraphOptions { graph: Graph::Default, store })
    }),
    ("sparql", |_| {
        endpoint().store.clear().unwrap();
        let (url, query_url, graph) = (endpoint().url(), None, Graph::Default);
        SinkOptions::Sparql(SparqlOptions { url, query_url, graph })
    }),
    ("graphstore", |_| {
        endpoint().store.clear().unwrap();
        SinkOptions::GraphStore(GraphStoreOptions { url: endpoint().graph_store_url() })
    }),
    ("push", |_| {
        endpoint().pushed.lock().unwrap().clear();
        SinkOptions::Push(PushOptions { url: endpoint().push_url(), graph: None })
    }),
];

/// A Source of this number of resources, and its copy.
fn copied(count: usize, sink: fn(&Path) -> SinkOptions) -> (Source, Copy) {
    let mut source = Source::of_statements();
    (0..count).for_each(|number| source.set(&format!("/old{number:03}"), "old"));
    source.snapshot();
    let copy = Copy::kept_in(&source, sink);
    assert_eq!(copy.run().created, count as u64);
    (source, copy)
}

/// Replaces that many resources of the Source by others.
fn replace(source: &mut Source, count: usize) {
    for number in 0..count {
        source.delete(&format!("/old{number:03}"));
        source.set(&format!("/new{number:03}"), "new");
    }
}

/// A dry run and the run after it hold that many deletions, and report the same.
fn holds(copy: &mut Copy, held: u64, what: &str) -> Ran {
    copy.options.dry_run = true;
    let dry = copy.try_run();
    copy.options.dry_run = false;
    let ran = copy.try_run();
    for (ran, which) in [(&dry, "dry run"), (&ran, "run")] {
        let what = format!("{what}, {which}: {:?}", ran.codes);
        assert_eq!(ran.uris(ItemAction::Deleted), [""; 0], "{what}");
        assert_eq!((ran.exit(), ran.summary().held, ran.summary().deleted), (7, held, 0), "{what}");
    }
    assert_eq!(dry.summary().created, ran.summary().created, "{what}");
    ran
}

#[test]
fn held_deletions_stay_held_in_every_sink() {
    for (name, sink) in SINKS {
        for by_list in [true, false] {
            let (mut source, mut copy) = copied(20, *sink);
            copy.options.baseline = by_list;
            replace(&mut source, 20);
            for run in 1..=3 {
                if by_list {
                    source.snapshot();
                }
                holds(&mut copy, 20, &format!("{name}, by list: {by_list}, run {run}"));
            }
            copy.options.max_delete = MaxDelete::Count(20);
            assert_eq!(copy.run().deleted, 20, "{name}: confirmed");
            assert_eq!(copy.run().held, 0, "{name}: nothing is left");
        }
    }
}

#[test]
fn held_deletions_stay_held_whatever_the_size() {
    for (count, by_list) in [(300, true), (300, false), (990, true)] {
        let (mut source, mut copy) = copied(count, |_| SinkOptions::Folder);
        copy.options.baseline = by_list;
        replace(&mut source, count);
        source.snapshot();
        for run in 1..=3 {
            holds(&mut copy, count as u64, &format!("{count}, by list: {by_list}, run {run}"));
        }
        assert_eq!(copy.paths().len(), 2 * count);
    }
}

#[test]
fn a_killed_run_does_not_lift_the_guard() {
    for by_list in [true, false] {
        let (mut source, mut copy) = copied(20, |_| SinkOptions::Folder);
        copy.options.baseline = by_list;
        replace(&mut source, 20);
        source.snapshot();
        // Killed when everything new is stored and nothing was judged.
        let is_last =
            |event: &Event<'_>| matches!(event, Event::Item(item) if item.uri.ends_with("/new019"));
        run_killed_at(&copy, &is_last);
        for run in 1..=2 {
            holds(&mut copy, 20, &format!("by list: {by_list}, run {run}"));
        }
    }
}

/// A copy of 20 resources that the Source has all replaced since; the server is retained.
type Replaced = fn() -> (Copy, Server);

/// Protocols and their deletions; a dry run knows all deletions except empty fragments.
const PROTOCOLS: &[(&str, Replaced)] = &[
    ("0.1, change sets", || replaced_in_0_1(false)),
    ("0.1, Sitemap", || replaced_in_0_1(true)),
    ("SDShare, fragments", || replaced_in_sdshare(NQUADS, false)),
    ("SDShare, snapshot", || replaced_in_sdshare(NQUADS, true)),
    ("EMM, activities", || replaced_in_emm(false)),
    ("EMM, full download", || replaced_in_emm(true)),
];

fn replaced_in_0_1(by_list: bool) -> (Copy, Server) {
    let mut source = OldSource::new();
    (0..20).for_each(|number| source.set(&format!("/old{number:02}"), "old"));
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.options.baseline = by_list;
    copy.run();
    for number in 0..20 {
        source.delete(&format!("/old{number:02}"));
        source.set(&format!("/new{number:02}"), "new");
    }
    source.snapshot();
    (copy, source.server)
}

const NQUADS: fn() -> SinkOptions = || SinkOptions::NQuads(NQuadsOptions::default());

fn replaced_in_sdshare(sink: fn() -> SinkOptions, by_list: bool) -> (Copy, Server) {
    let source = SdSource::start(crate::sdshare_source::Habits::default());
    (0..20).for_each(|number| source.put_number(number, "old"));
    source.make_snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.sink = sink();
    copy.options.baseline = by_list;
    copy.run();
    for number in 0..20 {
        source.put_number(number + 100, "new");
        source.delete_number(number);
    }
    if by_list {
        source.data().forget_deleted();
        source.make_snapshot();
    }
    (copy, source.server)
}

fn replaced_in_emm(by_list: bool) -> (Copy, Server) {
    let source = EmmSource::start(crate::emm_source::Habits::default());
    (0..20).for_each(|number| source.put(number, "old"));
    if by_list {
        source.make_download();
    }
    let mut copy = crate::emm::copy_of(&source);
    copy.options.baseline = by_list;
    copy.run();
    for number in 0..20 {
        source.put(number + 100, "new");
        source.delete(number);
    }
    if by_list {
        source.make_download();
    }
    (copy, source.server)
}

#[test]
fn held_deletions_stay_held_in_every_protocol() {
    for (name, replaced) in PROTOCOLS {
        let (mut copy, _server) = replaced();
        for run in 1..=3 {
            let ran = if *name == "SDShare, fragments" {
                copy.try_run()
            } else {
                holds(&mut copy, 20, &format!("{name}, run {run}"))
            };
            let what = format!("{name}, run {run}: {:?}", ran.codes);
            let summary = ran.summary();
            assert_eq!((ran.exit(), summary.held, summary.deleted), (7, 20, 0), "{what}");
            assert_eq!(summary.created, if run == 1 { 20 } else { 0 }, "{what}");
        }
    }
}

#[test]
fn a_killed_run_that_knew_no_deletion_lifts_no_guard() {
    let (copy, _server) = replaced_in_sdshare(|| SinkOptions::Folder, false);
    // At this point all new resources are stored; empty ones follow, in the order of URIs.
    run_killed_at(&copy, &|event| matches!(event, Event::Item(item) if item.uri.ends_with("/119")));
    for run in 1..=2 {
        let ran = copy.try_run();
        let summary = ran.summary();
        let found = (ran.exit(), summary.held, summary.deleted);
        assert_eq!(found, (7, 20, 0), "run {run}: {:?}", ran.reported);
    }
}
