//! Copies in a store of Oxigraph in a folder.

use crate::contract::{Kept, contract_with, kills};
use crate::copy::Copy;
use crate::rdf::as_documents;
use crate::source::Source;
use abreast_destination::{OxigraphOptions, SinkOptions};
use oxigraph::model::{GraphName, Literal, NamedNode, Quad};
use oxigraph::store::Store;
use std::path::Path;

fn oxigraph(_: &Path) -> SinkOptions {
    SinkOptions::Oxigraph(OxigraphOptions::default())
}

fn stored(copy: &Copy) -> Vec<Quad> {
    Store::open(copy.folder()).unwrap().iter().map(Result::unwrap).collect()
}

fn in_store(copy: &Copy, source: &Source) -> Kept {
    as_documents(stored(copy), source)
}

fn one() -> (Source, Copy) {
    let mut source = Source::of_statements();
    source.set("/a", "text");
    source.snapshot();
    let copy = Copy::kept_in(&source, oxigraph);
    (source, copy)
}

#[test]
fn a_store_in_a_folder_keeps_the_contract() {
    contract_with(Source::of_statements(), &oxigraph, in_store);
    kills::killed_with(Source::of_statements, &oxigraph, in_store);
    kills::killed_twice_with(Source::of_statements(), &oxigraph, in_store);
}

#[test]
fn what_others_stored_in_the_folder_is_kept() {
    let (source, copy) = one();
    let iri = |text: &str| NamedNode::new(text).unwrap();
    let of = |subject: &str| {
        let value = Literal::new_simple_literal("other");
        Quad::new(iri(subject), iri("http://h/p"), value, GraphName::DefaultGraph)
    };
    let (other, own) = (of("http://h/other"), of(&source.server.url("/a")));
    Store::open(copy.folder()).unwrap().extend([other.clone(), own.clone()]).unwrap();
    copy.run();
    let found = stored(&copy);
    assert!(found.len() == 2 && found.contains(&other) && !found.contains(&own), "{found:?}");
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let (_source, copy) = one();
    std::fs::create_dir_all(copy.folder()).unwrap();
    let file = copy.folder().join("report.txt");
    std::fs::write(&file, "mine").unwrap();
    assert_eq!(copy.try_run().code(), "oxigraph.folder");
    assert_eq!(copy.paths(), ["report.txt"]);
    std::fs::remove_file(file).unwrap();
    // As a kill leaves a store that is being made.
    std::fs::write(copy.folder().join("IDENTITY"), "1").unwrap();
    assert_eq!(copy.run().created, 1);
}

#[test]
fn a_store_that_is_open_or_lost_ends_the_run() {
    let (source, mut copy) = one();
    let open = Store::open(copy.folder()).unwrap();
    assert_eq!(copy.try_run().code(), "oxigraph.locked");
    drop(open);
    copy.run();
    let rest = std::fs::read_dir(copy.folder()).unwrap().flatten().map(|entry| entry.path());
    rest.filter(|path| path.is_file()).for_each(|path| std::fs::remove_file(path).unwrap());
    assert_eq!(copy.try_run().code(), "oxigraph.damaged");
    copy.options.baseline = true;
    assert_eq!(copy.try_run().count("local.restored"), 1);
    assert_eq!(in_store(&copy, &source), source.kept);
}
