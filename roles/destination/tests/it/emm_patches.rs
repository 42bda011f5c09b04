//! Copies of change feeds whose activities contain Entity Patches.

use crate::contract::kills::{run_killed, run_killed_at};
use crate::copy::{Copy, Ran};
use crate::emm_source::{EmmSource, Habits};
use crate::rdf::{canonical, endpoint, quads};
use abreast_destination::{Event, Graph, NQuadsOptions, OpenStore, OxigraphOptions, SinkOptions};
use abreast_rdf::{EntityPatch, PatchBlankNodes, canonical_lines};
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::Quad;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Changes a patch before it is published.
type Alter = fn(&str) -> String;

/// A server whose activities have patches.
struct Patching {
    source: EmmSource,
    /// The versions that the feed has led to.
    versions: RefCell<BTreeMap<usize, Vec<u8>>>,
    /// The last patch of each entity, if patches link to the previous one.
    last: Option<RefCell<BTreeMap<usize, String>>>,
    blank_nodes: PatchBlankNodes<'static>,
}

impl Patching {
    fn start(habits: Habits) -> Self {
        let source = EmmSource::start(habits);
        let blank_nodes = PatchBlankNodes::Skolem("https://source.example");
        Self { source, versions: RefCell::default(), last: Some(RefCell::default()), blank_nodes }
    }

    fn with_numbers(habits: Habits, count: usize) -> Self {
        let patching = Self::start(habits);
        (0..count).for_each(|number| patching.put(number, "first"));
        patching
    }

    fn put(&self, number: usize, value: &str) {
        self.put_altered(number, value, str::to_owned);
    }

    fn put_altered(&self, number: usize, value: &str, alter: Alter) {
        let is_new = !self.source.data().entities.contains_key(&number);
        // Also records a change, without a patch.
        self.source.put(number, value);
        self.source.data().changes.pop();
        self.record(number, if is_new { "Create" } else { "Update" }, alter);
    }

    fn delete(&self, number: usize) {
        self.source.data().entities.remove(&number);
        self.record(number, "Delete", str::to_owned);
    }

    /// A change whose patch nobody has made.
    fn put_unpatched(&self, number: usize, value: &str) {
        self.source.put(number, value);
        self.made(number);
        if let Some(last) = &self.last {
            last.borrow_mut().insert(number, "http://source.example/unknown".to_owned());
        }
    }

    /// The version before, and that of now.
    fn made(&self, number: usize) -> (Vec<u8>, Vec<u8>) {
        let now = self.source.data().entities.get(&number).cloned().unwrap_or_default();
        let now = canonical_lines(now.as_bytes()).unwrap().lines;
        let before = self.versions.borrow_mut().insert(number, now.clone());
        (before.unwrap_or_default(), now)
    }

    fn record(&self, number: usize, kind: &'static str, alter: Alter) {
        let (old, new) = self.made(number);
        let id = format!("http://source.example/patch/{}", self.source.data().now);
        let before =
            self.last.as_ref().and_then(|last| last.borrow_mut().insert(number, id.clone()));
        let mut text = Vec::new();
        let patch = EntityPatch {
            entity: &self.source.iri(number),
            old: &old,
            new: &new,
            id: &id,
            prev: None,
            entity_prev: before.as_deref(),
            blank_nodes: self.blank_nodes,
        };
        patch.write(&mut text).unwrap();
        let text = alter(std::str::from_utf8(&text).unwrap());
        self.source.record_with(number, kind, instrument(&id, &text));
    }

    /// The paths of entities that were asked for since the last call.
    fn asked(&self) -> Vec<String> {
        let log = self.source.server.take_log();
        log.into_iter().filter(|path| path.starts_with("/id/")).collect()
    }
}

fn instrument(id: &str, text: &str) -> Value {
    json!({"instrument": {"type": "rdf_patch", "id": id, "content": text}})
}

fn copy_of(patching: &Patching, sink: SinkOptions) -> Copy {
    let mut copy = Copy::of(patching.source.url());
    copy.options.sink = sink;
    copy
}

fn in_nquads(patching: &Patching) -> Copy {
    copy_of(patching, SinkOptions::NQuads(NQuadsOptions::default()))
}

/// An empty store of Oxigraph.
fn oxigraph() -> SinkOptions {
    endpoint().store.clear().unwrap();
    let store = Some(OpenStore::new(endpoint().store));
    SinkOptions::Oxigraph(OxigraphOptions { graph: Graph::Default, store })
}

/// All statements of a copy, for every sink.
fn statements(copy: &Copy) -> Vec<Quad> {
    match copy.options.sink {
        SinkOptions::NQuads(_) => quads(copy.folder()),
        SinkOptions::Oxigraph(_) => endpoint().store.iter().map(Result::unwrap).collect(),
        _ => {
            // Labels of blank nodes have one meaning in each file.
            let read = |(number, path): (usize, &String)| {
                let text = std::fs::read_to_string(copy.folder().join(path)).unwrap();
                parse(&text.replace("_:", &format!("_:f{number}")))
            };
            copy.paths().iter().enumerate().flat_map(read).collect()
        }
    }
}

fn parse(text: &str) -> Vec<Quad> {
    let parser = RdfParser::from_format(RdfFormat::NTriples);
    parser.for_slice(text.as_bytes()).map(|quad| quad.unwrap()).collect()
}

#[track_caller]
fn assert_same(copy: &Copy, patching: &Patching) {
    assert_eq!(canonical(statements(copy)), canonical(parse(&patching.source.statements())));
}

/// A run after which the copy is the source.
#[track_caller]
fn synced(copy: &Copy, patching: &Patching) -> Ran {
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(copy, patching);
    ran
}

#[test]
fn no_entity_is_requested_whose_patches_came() {
    for sink in [SinkOptions::Folder, SinkOptions::NQuads(NQuadsOptions::default()), oxigraph()] {
        for page in [1, 3, 100] {
            for newest_first in [false, true] {
                let habits = Habits { newest_first, page, ..Habits::default() };
                let patching = Patching::with_numbers(habits, 9);
                if matches!(sink, SinkOptions::Oxigraph(_)) {
                    endpoint().store.clear().unwrap();
                }
                let copy = copy_of(&patching, sink.clone());
                let ran = synced(&copy, &patching);
                assert_eq!((ran.summary().created, ran.summary().patched), (9, 9));
                // A chain, and every kind of change in one run.
                for value in ["second", "third", "fourth"] {
                    patching.put(1, value);
                }
                patching.put(2, "second");
                patching.delete(2);
                patching.put(2, "again");
                patching.put(20, "first");
                patching.put(20, "second");
                patching.delete(3);
                patching.put(21, "first");
                patching.delete(21);
                let ran = synced(&copy, &patching);
                let summary = ran.summary();
                assert_eq!((summary.created, summary.updated, summary.deleted), (1, 2, 1));
                assert_eq!(summary.patched, 3);
                assert!(!ran.has("rdf.patch"), "{:?}", ran.reported);
                let ran = synced(&copy, &patching);
                assert!(ran.items.is_empty(), "{:?}", ran.items);
                assert_eq!(patching.asked(), [""; 0], "{page} {newest_first}");
            }
        }
    }
}

#[test]
fn labels_of_blank_nodes_are_applied_too() {
    for blank_nodes in [PatchBlankNodes::Labels, PatchBlankNodes::Subtrees] {
        let patching = Patching { blank_nodes, last: None, ..Patching::start(Habits::default()) };
        (0..3).for_each(|number| patching.put(number, "first"));
        let copy = in_nquads(&patching);
        synced(&copy, &patching);
        patching.put(1, "second");
        synced(&copy, &patching);
        assert_eq!(patching.asked(), [""; 0]);
    }
}

#[test]
fn a_patch_that_does_not_apply_is_no_loss() {
    let malformed = |_: &str| {
        // As in the examples of the draft.
        "D <http://source.example/1> <http://ns.example/value> 'first'@en.\nA <http://x".to_owned()
    };
    let cases: [(&str, Alter); 7] = [
        ("malformed", malformed),
        ("empty", |_| String::new()),
        ("without digests", |patch| {
            let rows = patch.lines().filter(|row| !row.starts_with("H "));
            rows.map(|row| format!("{row}\n")).collect()
        }),
        ("another base", |patch| {
            let at = patch.find("H before \"sha256:").unwrap() + 17;
            format!("{}0000{}", &patch[..at], &patch[at + 4..])
        }),
        ("another result", |patch| patch.replacen("\"second\"", "\"other\"", 1)),
        ("another entity", |patch| {
            patch.replace("TC .", "A <http://source.example/9> <http://ns.example/p> \"9\" .\nTC .")
        }),
        ("without a result", |patch| {
            let rows = patch.lines().filter(|row| !row.starts_with("H after"));
            rows.map(|row| format!("{row}\n")).collect()
        }),
    ];
    for (what, alter) in cases {
        let patching = Patching::with_numbers(Habits::default(), 4);
        let copy = in_nquads(&patching);
        synced(&copy, &patching);
        patching.put_altered(1, "second", alter);
        patching.put(2, "second");
        let ran = synced(&copy, &patching);
        assert_eq!(patching.asked(), ["/id/1.nt"], "{what}");
        assert_eq!((ran.summary().updated, ran.summary().patched), (2, 1), "{what}");
        let notice = ran.reported.iter().find(|notice| notice.code == "rdf.patch");
        let notice = notice.unwrap_or_else(|| panic!("{what}"));
        assert!(notice.message.contains(": 1;"), "{}", notice.message);
        // The entity was fetched, and the patches after it apply again.
        patching.put(1, "third");
        assert_eq!(synced(&copy, &patching).summary().patched, 1, "{what}");
        assert_eq!(patching.asked(), [""; 0], "{what}");
    }
}

#[test]
fn an_entity_with_a_gap_in_its_patches_is_fetched() {
    for newest_is_unpatched in [false, true] {
        let patching = Patching::with_numbers(Habits::default(), 4);
        let copy = in_nquads(&patching);
        synced(&copy, &patching);
        patching.put(1, "second");
        patching.put_unpatched(1, "third");
        if !newest_is_unpatched {
            patching.put(1, "fourth");
        }
        patching.put(2, "second");
        assert_eq!(synced(&copy, &patching).summary().patched, 1);
        assert_eq!(patching.asked(), ["/id/1.nt"]);
    }
}

#[test]
fn changes_of_one_day_are_applied_in_their_order() {
    for newest_first in [false, true] {
        let habits = Habits { newest_first, whole_days: true, page: 2, ..Habits::default() };
        let patching = Patching::with_numbers(habits, 3);
        let copy = in_nquads(&patching);
        // The order is not known while all changes have the same day.
        for days in [0, 1] {
            patching.source.wait_days(days);
            for value in ["second", "first", "third", "first"] {
                patching.put(1, value);
            }
            patching.put(2, "second");
            // The last change of the same time lacks a patch.
            patching.put_unpatched(2, "third");
            synced(&copy, &patching);
            let asked = patching.asked();
            assert!(asked.contains(&"/id/2.nt".to_owned()), "{asked:?}");
            assert_eq!(asked.contains(&"/id/1.nt".to_owned()), days == 0, "{asked:?}");
            patching.put(2, "first");
        }
    }
}

#[test]
fn a_chain_beyond_the_limit_is_fetched() {
    let patching = Patching::with_numbers(Habits { page: 500, ..Habits::default() }, 2);
    let copy = in_nquads(&patching);
    synced(&copy, &patching);
    for number in 0..999 {
        patching.put(0, &format!("version {number}"));
    }
    assert_eq!(synced(&copy, &patching).summary().patched, 1);
    assert_eq!(patching.asked(), [""; 0]);
    for number in 0..1_001 {
        patching.put(0, &format!("version {number} again"));
    }
    assert_eq!(synced(&copy, &patching).summary().patched, 0);
    assert_eq!(patching.asked(), ["/id/0.nt"]);
}

#[test]
fn a_patch_with_more_rows_than_descriptions_have_is_not_held() {
    let patching = Patching::with_numbers(Habits::default(), 2);
    let copy = in_nquads(&patching);
    synced(&copy, &patching);
    patching.put_altered(0, "second", |text| {
        let rows = "A <a:> <b:> <c:> .\nD <a:> <b:> <c:> .\n".repeat(101_000);
        text.replace("TX .\n", &format!("TX .\n{rows}"))
    });
    let ran = synced(&copy, &patching);
    assert_eq!((ran.summary().patched, patching.asked()), (0, vec!["/id/0.nt".to_owned()]));
    let notice = ran.reported.iter().find(|notice| notice.code == "rdf.patch").unwrap();
    assert!(notice.message.contains("more than 201000 rows"), "{notice:?}");
}

#[test]
fn a_chain_with_many_prefixes_of_blank_nodes_is_fetched() {
    let hosts = ["https://a", "https://b", "https://c", "https://d", "https://e"];
    for count in [4, 5] {
        let mut patching = Patching::with_numbers(Habits::default(), 2);
        let copy = in_nquads(&patching);
        synced(&copy, &patching);
        for host in &hosts[..count] {
            patching.blank_nodes = PatchBlankNodes::Skolem(host);
            patching.put(0, host);
        }
        let ran = synced(&copy, &patching);
        assert_eq!(ran.summary().patched == 1, count == 4, "{:?}", ran.reported);
        assert_eq!(patching.asked().is_empty(), count == 4);
    }
}

#[test]
fn patches_continue_a_full_download() {
    let patching = Patching::with_numbers(Habits::default(), 6);
    patching.put(1, "second");
    patching.source.make_download();
    for sink in [SinkOptions::Folder, SinkOptions::NQuads(NQuadsOptions::default())] {
        let copy = copy_of(&patching, sink);
        // The last change in the download is read again.
        synced(&copy, &patching);
        patching.put(1, "third");
        patching.put(2, "second");
        patching.put(30, "first");
        let other = in_nquads(&patching);
        let ran = synced(&other, &patching);
        assert!(ran.summary().patched >= 3, "{:?}", ran.summary());
        synced(&copy, &patching);
        // Everything is compared, with a download that is older than the copy.
        let mut again = copy;
        again.options.baseline = true;
        synced(&again, &patching);
        assert_eq!(patching.asked(), [""; 0]);
    }
}

#[test]
fn pages_that_move_while_they_are_read_have_each_patch_once() {
    let habits = Habits { newest_first: true, page: 2, ..Habits::default() };
    let patching = Patching::with_numbers(habits, 10);
    patching.put(9, "second");
    // At the third page, an entity of the last page is changed: all before it move.
    let before = patching.source.data().entities[&0].clone();
    patching.put(0, "meanwhile");
    let (change, after) = {
        let mut data = patching.source.data();
        (data.changes.pop().unwrap(), data.entities.insert(0, before).unwrap())
    };
    let other = patching.source.clone();
    patching.source.answer_first(move |target, number| {
        if target == "/feed/3" && number == 0 {
            let mut data = other.data();
            data.entities.insert(0, after.clone());
            data.changes.push(change.clone());
        }
        None
    });
    let copy = in_nquads(&patching);
    let ran = synced(&copy, &patching);
    assert_eq!((ran.summary().patched, patching.asked()), (10, Vec::new()));
    assert!(!ran.has("rdf.patch"), "{:?}", ran.reported);
}

#[test]
fn a_deprecated_entity_is_reported_with_its_replacement() {
    let patching = Patching::with_numbers(Habits::default(), 4);
    let mut copy = in_nquads(&patching);
    copy.options.replaced_by = vec!["http://ns.example/instead".to_owned()];
    synced(&copy, &patching);
    for has_patch in [true, false] {
        for number in 0..2 {
            let (iri, instead) = (patching.source.iri(number), patching.source.iri(number + 2));
            let line = format!("<{iri}> <http://ns.example/instead> <{instead}> .\n");
            let value = patching.source.data().entities[&number].clone();
            patching.source.data().entities.insert(number, value + &line);
            if has_patch {
                patching.record(number, "Deprecate", str::to_owned);
            } else {
                patching.source.record(number, "Deprecate");
            }
        }
        let ran = synced(&copy, &patching);
        assert_eq!(ran.count("resource.deprecated"), 2, "{:?}", ran.reported);
        for notice in ran.reported.iter().filter(|notice| notice.code == "resource.deprecated") {
            let number = usize::from(notice.uri == patching.source.iri(1));
            let instead = patching.source.iri(number + 2);
            assert!(notice.message.contains(&format!("use {instead} instead")), "{notice:?}");
        }
        assert_eq!(patching.asked().is_empty(), has_patch);
    }
    let ran = synced(&copy, &patching);
    assert!(!ran.has("resource.deprecated"), "{:?}", ran.reported);
}

#[test]
fn a_killed_run_is_continued_with_its_patches() {
    for sink in [SinkOptions::Folder, SinkOptions::NQuads(NQuadsOptions::default()), oxigraph()] {
        for has_more in [false, true] {
            let patching = Patching::with_numbers(Habits::default(), 6);
            if matches!(sink, SinkOptions::Oxigraph(_)) {
                endpoint().store.clear().unwrap();
            }
            let copy = copy_of(&patching, sink.clone());
            synced(&copy, &patching);
            patching.put(1, "second");
            patching.put(1, "third");
            patching.put(2, "second");
            patching.delete(3);
            patching.put(7, "first");
            run_killed(&copy);
            if has_more {
                patching.put(1, "fourth");
                patching.put(3, "again");
                patching.put(7, "second");
            }
            let ran = synced(&copy, &patching);
            assert!(!ran.has("local.backup"), "{:?}", ran.codes);
            assert_eq!(patching.asked(), [""; 0], "{sink:?} {has_more}");
        }
    }
}

#[test]
fn a_killed_run_reports_deprecations_later() {
    type At = fn(&Event<'_>) -> bool;
    // When nothing is stored according to the database, and when everything is.
    let ends: [At; 2] = [
        |event| matches!(event, Event::Item(item) if item.uri.ends_with("/0")),
        |event| matches!(event, Event::Notice(notice) if notice.code == "resource.deprecated"),
    ];
    for sink in [SinkOptions::Folder, SinkOptions::NQuads(NQuadsOptions::default()), oxigraph()] {
        for (at, has_patch) in ends.iter().flat_map(|at| [(at, true), (at, false)]) {
            let patching = Patching::with_numbers(Habits::default(), 4);
            if matches!(sink, SinkOptions::Oxigraph(_)) {
                endpoint().store.clear().unwrap();
            }
            let mut copy = copy_of(&patching, sink.clone());
            copy.options.replaced_by = vec!["http://ns.example/instead".to_owned()];
            synced(&copy, &patching);
            let (iri, instead) = (patching.source.iri(0), patching.source.iri(1));
            let line = format!("<{iri}> <http://ns.example/instead> <{instead}> .\n");
            patching.source.data().entities.get_mut(&0).unwrap().push_str(&line);
            if has_patch {
                patching.record(0, "Deprecate", str::to_owned);
            } else {
                patching.source.record(0, "Deprecate");
            }
            run_killed_at(&copy, at);
            let ran = synced(&copy, &patching);
            let notices: Vec<_> = ran
                .reported
                .iter()
                .filter(|notice| notice.code == "resource.deprecated")
                .map(|notice| (&*notice.uri, notice.message.contains(&instead)))
                .collect();
            assert_eq!(notices, [(&*iri, true)], "{sink:?} {has_patch}: {:?}", ran.reported);
            assert!(!synced(&copy, &patching).has("resource.deprecated"));
        }
    }
}

#[test]
fn hosts_that_are_not_allowed_are_not_needed() {
    // The entities are elsewhere, where nobody answers.
    let patching = Patching::with_numbers(Habits { has_links: false, ..Habits::default() }, 3);
    let base = patching.source.server.base.clone();
    let text = "H before \"B\" .\nH after \"A\" .\nTX .\nA <http://elsewhere.invalid/1> <http://ns.example/p> \"1\" .\nTC .\n";
    let text = text.replace('B', &abreast_rdf::digest_text(b"")).replace(
        "\"A\"",
        &format!(
            "\"{}\"",
            abreast_rdf::digest_text(
                b"<http://elsewhere.invalid/1> <http://ns.example/p> \"1\" .\n",
            )
        ),
    );
    let mut more = instrument(&format!("{base}/p"), &text);
    more["object"] = json!({"id": "http://elsewhere.invalid/1", "type": "http://ns.example/Term"});
    patching.source.record_with(50, "Create", more);
    let copy = in_nquads(&patching);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert!(ran.items.iter().any(|item| item.uri == "http://elsewhere.invalid/1"));
}
