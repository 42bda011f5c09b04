//! Every case of `resourcesync-1.1/manifest.toml` ends as it states.
#![allow(clippy::unwrap_used)]

use abreast_conformance::properties;
use abreast_resourcesync::v1_1::{Change, Document, Entry, Limits, Parser, Root, Step};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the manifest")]
    note: String,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Accept(Accept),
    Reject { code: String, text: String },
}

/// What is counted in a document that is read.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Accept {
    root: Option<String>,
    capability: Option<String>,
    lenient_capability: bool,
    entries: usize,
    head_links: usize,
    /// `rs:ln` of all entries together.
    links: usize,
    /// Digests that can be verified, and those that cannot, of all entries together.
    digests: usize,
    unknown_digests: usize,
    changes: Vec<String>,
    /// Codes of what was read although the specification has it otherwise.
    findings: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("resourcesync-1.1")
}

fn manifest() -> Manifest {
    toml::from_str(&std::fs::read_to_string(folder().join("manifest.toml")).unwrap()).unwrap()
}

fn findings(bytes: &[u8]) -> Vec<String> {
    let (mut parser, mut entry) = (Parser::new(Limits::default()), Entry::default());
    parser.feed(bytes);
    parser.finish();
    while !matches!(parser.next(&mut entry), Ok(Step::End) | Err(_)) {}
    parser.findings().iter().map(|finding| finding.code.to_owned()).collect()
}

fn counted(document: &Document, findings: Vec<String>) -> Accept {
    let head = &document.head;
    let sum = |count: &dyn Fn(&Entry) -> usize| document.entries.iter().map(count).sum();
    Accept {
        root: (head.root == Root::SitemapIndex).then(|| head.root.element().to_owned()),
        capability: head.capability.map(|capability| capability.token().to_owned()),
        lenient_capability: head.lenient_capability,
        entries: document.entries.len(),
        head_links: head.links.len(),
        links: sum(&|entry| entry.links.len()),
        digests: sum(&|entry| entry.digests.to_string().split_ascii_whitespace().count()),
        unknown_digests: sum(&|entry| entry.digests.unknown.len()),
        changes: document
            .entries
            .iter()
            .filter_map(|entry| entry.change)
            .map(Change::token)
            .map(str::to_owned)
            .collect(),
        findings,
    }
}

fn failure(case: &Case) -> Option<String> {
    let bytes = std::fs::read(folder().join(&case.input)).unwrap();
    let read = Document::from_slice(&bytes);
    properties::sitemap(&bytes);
    match (&case.expect, read) {
        (Expect::Accept(expected), Ok(document)) => {
            let found = counted(&document, findings(&bytes));
            if found != *expected {
                return Some(format!("expected {expected:?}\n  found {found:?}"));
            }
            let again = Document::from_slice(&document.to_bytes()).unwrap();
            let again = counted(&again, Vec::new());
            let expected = Accept {
                lenient_capability: false,
                unknown_digests: 0,
                findings: Vec::new(),
                ..found
            };
            (again != expected).then(|| format!("written and read again it is {again:?}"))
        }
        (Expect::Reject { code, text }, Err(error)) => {
            let shown = error.to_string();
            let first = shown.lines().next().unwrap_or_default();
            (error.code() != code || first != text)
                .then(|| format!("refused as {} {first:?}", error.code()))
        }
        (Expect::Accept(_), Err(error)) => Some(format!("refused: {error}")),
        (Expect::Reject { .. }, Ok(document)) => {
            Some(format!("accepted: {:?}", counted(&document, findings(&bytes))))
        }
    }
}

#[test]
fn every_case_ends_as_its_manifest_states() {
    let failures: Vec<_> = manifest()
        .case
        .iter()
        .filter_map(|case| {
            failure(case).map(|failure| format!("{} [{}]: {failure}", case.id, case.cites))
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn the_manifest_names_every_document_once() {
    let manifest = manifest();
    let named: BTreeSet<_> = manifest.case.iter().map(|case| case.input.clone()).collect();
    assert_eq!(named.len(), manifest.case.len());
    let files = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let documents: BTreeSet<_> = files.filter(|name| name != "manifest.toml").collect();
    assert_eq!(documents, named);
}

#[test]
fn every_example_in_xml_has_its_case() {
    let manifest = manifest();
    for number in (1..=8).chain(12..=33) {
        let id = format!("rs-core/ex-{number:02}");
        assert!(manifest.case.iter().any(|case| case.id == id), "{id}");
    }
}

#[test]
fn every_example_of_a_notification_is_one() {
    for case in manifest().case.iter().filter(|case| case.id.contains("-notification/")) {
        let read =
            Document::from_slice(&std::fs::read(folder().join(&case.input)).unwrap()).unwrap();
        let is_list =
            read.head.capability == Some(abreast_resourcesync::v1_1::Capability::CapabilityList);
        assert!(is_list || read.notification_faults().is_empty(), "{}", case.id);
    }
}
