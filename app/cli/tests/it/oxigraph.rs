//! Copies in a store of Oxigraph in a folder.

use crate::triples::{Statements, by_graph, killed_runs_are_completed};
use crate::world::{Source, abreast};
use abreast_testkit::run;
use oxigraph::store::Store;
use std::fs;
use std::path::Path;

fn copied(folder: &Path) -> Statements {
    let store = Store::open(folder).unwrap();
    by_graph(&store.iter().map(|quad| format!("{} .\n", quad.unwrap())).collect::<String>())
}

#[test]
fn killed_runs_leave_a_store_that_is_completed() {
    killed_runs_are_completed("oxigraph", copied);
}

#[test]
fn a_store_that_is_open_elsewhere_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a.nt"), "<http://h/a> <http://h/p> \"1\" .\n").unwrap();
    let source = Source::start(&original, 0, &[]);
    let open = Store::open(&copy).unwrap();
    let target = format!("oxigraph:{}", copy.display());
    let sync = || run(abreast().args(["sync", &source.url(), &target, "--graph", "resource"]));
    let output = sync();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(10), "{text}");
    assert!(text.contains("another program has opened the store"), "{text}");
    drop(open);
    let output = sync();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(copied(&copy).len(), 1);
}
