//! Every case of `resourcesync-0.1/manifest.toml` ends as it states.
#![allow(clippy::unwrap_used)]

use abreast_conformance::resourcesync_0_1 as properties;
use abreast_resourcesync::v0_1::{
    Change, Document, Entry, Error, Limits, Parser, Root, Step, Tolerance,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The numbered examples in XML.
const EXAMPLES: [&str; 30] = [
    "2.1", "2.3", "2.4", "2.5", "2.6", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9",
    "3.10", "3.11", "4.1", "4.2", "4.3", "4.4", "4.5", "5.1", "5.2", "5.3", "5.4", "5.5", "5.6",
    "5.7", "6.1", "6.2", "6.3",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    case: Vec<Case>,
}

/// One document and what becomes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    cites: String,
    input: String,
    /// The same without misprints.
    corrected: Option<String>,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the manifest")]
    note: String,
    /// The error of the usual reader.
    refused: Option<String>,
    /// The usual reader reads less of it than the lenient one.
    #[serde(default)]
    lenient: bool,
    /// Codes, in any order.
    #[serde(default)]
    findings: BTreeSet<String>,
    read: Counted,
}

/// What is counted in a document that is read.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Counted {
    root: Option<String>,
    change_set: bool,
    modified: bool,
    entries: usize,
    head_links: usize,
    /// Of all entries together, as all that follow.
    links: usize,
    metas: usize,
    digests: usize,
    unknown_digests: usize,
    paths: usize,
    protocols: usize,
    changes: Vec<String>,
}

impl Counted {
    fn of(document: &Document) -> Self {
        let (head, entries) = (&document.head, &document.entries);
        let sum = |count: &dyn Fn(&Entry) -> usize| entries.iter().map(count).sum();
        Self {
            root: (head.root == Root::SitemapIndex).then(|| head.root.element().to_owned()),
            change_set: head.change_set,
            modified: head.modified.is_some(),
            entries: entries.len(),
            head_links: head.links.len(),
            links: sum(&|entry| entry.links.len()),
            metas: sum(&|entry| entry.metas.len()),
            digests: sum(&|entry| entry.digests.to_string().split_ascii_whitespace().count()),
            unknown_digests: sum(&|entry| entry.digests.unknown.len()),
            paths: sum(&|entry| usize::from(entry.path.is_some())),
            protocols: sum(&|entry| usize::from(entry.protocol.is_some())),
            changes: entries
                .iter()
                .filter_map(|entry| entry.change.map(Change::token).map(str::to_owned))
                .collect(),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("resourcesync-0.1")
}

fn manifest() -> Manifest {
    toml::from_str(&std::fs::read_to_string(folder().join("manifest.toml")).unwrap()).unwrap()
}

fn read(name: &str, tolerance: Tolerance) -> Result<(Document, BTreeSet<String>), Error> {
    let bytes = std::fs::read(folder().join(name)).unwrap();
    properties::document(&bytes);
    let mut parser = Parser::with_tolerance(Limits::default(), tolerance);
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    parser.feed(&bytes);
    parser.finish();
    loop {
        match parser.next(&mut entry)? {
            Step::Entry => entries.push(Entry { line: 0, ..std::mem::take(&mut entry) }),
            Step::End => break,
            Step::Head | Step::NeedInput => {}
        }
    }
    let findings = parser.findings().iter().map(|finding| finding.code.to_owned()).collect();
    let head = parser.head().unwrap().clone();
    Ok((Document { head, entries }, findings))
}

/// What the document states about resources, without what cannot be read of it.
fn resources(document: &Document) -> Vec<Entry> {
    let mut entries = document.entries.clone();
    for entry in &mut entries {
        entry.digests.clear();
    }
    entries
}

fn check(case: &Case) {
    let usual = read(&case.input, Tolerance::Usual);
    let (tolerance, id) = match &case.refused {
        Some(text) => {
            let error = usual.unwrap_err().to_string();
            assert_eq!(error.lines().next(), Some(text.as_str()), "{}", case.id);
            (Tolerance::Lenient, &case.id)
        }
        None if case.lenient => (Tolerance::Lenient, &case.id),
        None => (Tolerance::Usual, &case.id),
    };
    let (document, findings) = read(&case.input, tolerance).unwrap();
    assert_eq!(findings, case.findings, "{id}");
    assert_eq!(Counted::of(&document), case.read, "{id} [{}]", case.cites);
    assert_eq!(read(&case.input, Tolerance::Strict).is_err(), case.corrected.is_some(), "{id}");
    let right = case.corrected.as_ref().unwrap_or(&case.input);
    let (corrected, findings) = read(right, Tolerance::Strict).unwrap();
    assert!(findings.is_empty(), "{id}");
    assert_eq!(corrected.head, document.head, "{id}");
    assert_eq!(resources(&corrected), resources(&document), "{id}");
    let mut again = Document::from_slice(&corrected.to_bytes()).unwrap();
    for entry in &mut again.entries {
        entry.line = 0;
    }
    assert_eq!(again, corrected, "{id}");
}

#[test]
fn every_case_ends_as_its_manifest_states() {
    manifest().case.iter().for_each(check);
}

#[test]
fn the_manifest_names_every_document_once() {
    let manifest = manifest();
    let inputs = manifest.case.iter().flat_map(|case| [Some(&case.input), case.corrected.as_ref()]);
    let mut named: Vec<_> = inputs.flatten().cloned().collect();
    named.push("manifest.toml".to_owned());
    named.sort();
    let files = std::fs::read_dir(folder()).unwrap();
    let mut documents: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    documents.sort();
    assert_eq!(documents, named);
}

#[test]
fn every_example_in_xml_has_its_case() {
    let manifest = manifest();
    let ids: Vec<_> = manifest.case.iter().map(|case| case.id.as_str()).collect();
    let examples: Vec<_> = EXAMPLES.iter().map(|number| format!("rs-0.1/ex-{number}")).collect();
    assert_eq!(ids, examples);
}
