//! Deletions beyond the limit stay held, whatever the copy is kept in and however often it runs.

use crate::contract::kills::run_killed_at;
use crate::copy::{Copy, Ran};
use crate::rdf::endpoint;
use crate::source::Source;
use abreast_destination::{
    Event, Graph, GraphStoreOptions, ItemAction, LabelsOptions, LinesOptions, MaxDelete,
    NQuadsOptions, OpenStore, Output, OxigraphOptions, PushOptions, SinkOptions, SparqlOptions,
    WarcOptions,
};
use std::path::Path;

/// Every kind of sink, by its name, empty.
const SINKS: &[(&str, fn(&Path) -> SinkOptions)] = &[
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

/// A Source of that many resources, and a copy of it.
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
