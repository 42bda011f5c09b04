//! A Source, an aggregator that publishes its copy again, and one more: each equal, the first
//! origin told by all.

use crate::world::{Source, abreast};
use abreast_resourcesync::v1_1::Document;
use abreast_testkit::folder::{files, same};
use abreast_testkit::{eventually, eventually_ok, run};
use std::fs;
use std::path::Path;

fn republish(url: &str, folder: &Path) {
    let output = run(abreast().args(["sync", url]).arg(folder).args(["--republish", "--quiet"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// URI and `via` of each resource that a Source lists, or lists as changed.
fn origins(source: &Source, document: &str) -> Vec<(String, String)> {
    let Some(bytes) = source.get(document) else { return Vec::new() };
    let entries = Document::from_slice(&bytes).unwrap().entries.into_iter();
    let name = |uri: &str| uri.rsplit('/').next().unwrap().to_owned();
    let mut found: Vec<_> = entries
        .map(|entry| {
            let via =
                entry.links.iter().find(|link| link.rel == "via").map(|link| link.href.clone());
            (name(&entry.loc), via.unwrap_or_default())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn aggregators_keep_the_first_origin_and_use_their_own_times() {
    let place = tempfile::tempdir().unwrap();
    let [original, first, second] =
        ["original", "first", "second"].map(|name| place.path().join(name));
    fs::create_dir_all(&original).unwrap();
    for name in ["a.txt", "b.txt"] {
        fs::write(original.join(name), name).unwrap();
    }
    let source = Source::start(&original, 0, &[]);
    republish(&source.url(), &first);
    let aggregator = Source::start(&first, 0, &[]);
    republish(&aggregator.url(), &second);
    let last = Source::start(&second, 0, &[]);
    let expected: Vec<_> = ["a.txt", "b.txt"]
        .map(|name| (name.to_owned(), format!("{}set/r/{name}", source.url())))
        .to_vec();
    for one in [&aggregator, &last] {
        eventually("the origin is listed", || origins(one, "/set/resourcelist.xml") == expected);
    }

    // A change travels along the chain, with its origin.
    fs::write(original.join("a.txt"), "changed").unwrap();
    fs::write(original.join("c.txt"), "new").unwrap();
    fs::remove_file(original.join("b.txt")).unwrap();
    eventually_ok("the change has arrived", || {
        republish(&source.url(), &first);
        republish(&aggregator.url(), &second);
        same(&files(&original), &files(&second))
    });
    let newest = |one: &Source| {
        let mut changes = origins(one, "/set/changelist.xml");
        changes.retain(|(_, via)| !via.is_empty());
        changes.dedup();
        changes
    };
    let wanted: Vec<_> = ["a.txt", "c.txt"]
        .map(|name| (name.to_owned(), format!("{}set/r/{name}", source.url())))
        .to_vec();
    for one in [&aggregator, &last] {
        eventually("the change is told with its origin", || newest(one) == wanted);
    }
    let from = |one: &Source| {
        Document::from_slice(&one.get("/set/changelist.xml").unwrap()).unwrap().head.from.unwrap()
    };
    assert!(
        from(&source).instant < from(&aggregator).instant
            && from(&aggregator).instant < from(&last).instant
    );
}
