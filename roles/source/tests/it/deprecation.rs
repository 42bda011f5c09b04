//! Deprecated entities: every input of a set records the deprecation once, after the replacement.

use crate::rdf::Place;
use crate::world::BASE;
use abreast_core::{ChangeLog, ChangeRecord, Kind, Position};
use abreast_rdf::Syntax;
use abreast_source::origin::rdf::{Delta, EntityWriter};
use abreast_source::projection::emm::ChangeFeeds;
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::channel;

const OLD: &str = ":a :p 1 .";
const OWL: &str = ":a :p 1 ; owl:deprecated true .";
const BY: &str = ":a :p 1 ; dct:isReplacedBy :c . :c :p 3 .";

fn turtle(text: &str) -> String {
    format!(
        "@prefix : <http://id.example/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .\n\
         @prefix dct: <http://purl.org/dc/terms/> .\n{text} :z :p 9 ."
    )
}

fn records(place: &Place, after: u64) -> Vec<ChangeRecord> {
    let mut records = Vec::new();
    place
        .log
        .read(place.set, Position(after), &mut |record| {
            records.push(record.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

/// Kinds of the changes after a position, with the last part of each IRI and of its replacements.
fn changes(place: &Place, after: u64) -> Vec<(Kind, String)> {
    let last = |iri: &String| iri.rsplit('/').next().unwrap().to_owned();
    let one = |record: ChangeRecord| {
        let mut text = last(&record.key);
        for by in &record.replaced_by {
            text += " by ";
            text += &last(by);
        }
        (record.kind, text)
    };
    records(place, after).into_iter().map(one).collect()
}

fn replace(place: &Place, text: &str) -> Vec<(Kind, String)> {
    let head = place.log.head(place.set).unwrap().position.0;
    place.replace(Syntax::Turtle, &turtle(text)).unwrap();
    changes(place, head)
}

fn change(kind: Kind, text: &str) -> (Kind, String) {
    (kind, text.to_owned())
}

#[test]
fn a_deprecation_in_the_state_is_recorded_once() {
    let place = Place::new();
    replace(&place, OLD);
    assert_eq!(replace(&place, OWL), [change(Kind::Deprecate, "a")]);
    assert_eq!(replace(&place, OWL), []);
    assert_eq!(replace(&place, &OWL.replace('1', "2")), [change(Kind::Update, "a")]);
    assert_eq!(replace(&place, OLD), [change(Kind::Update, "a")]);
    let one = "\"1\"^^<http://www.w3.org/2001/XMLSchema#boolean>";
    assert_eq!(replace(&place, &OWL.replace("true", one)), [change(Kind::Deprecate, "a")]);
    // The replacement is recorded first; a new replacement is a new deprecation.
    let by = [change(Kind::Create, "c"), change(Kind::Deprecate, "a by c")];
    assert_eq!(replace(&place, BY), by);
    let more = BY.replace(":p 1", ":p 2");
    assert_eq!(replace(&place, &more), [change(Kind::Update, "a by c")]);
    assert_eq!(replace(&place, &OLD.replace('1', "7"))[..1], [change(Kind::Update, "a")]);
}

#[test]
fn a_set_may_begin_with_deprecated_entities() {
    let place = Place::new();
    let all = replace(&place, BY);
    let first = [
        change(Kind::Add, "c"),
        change(Kind::Add, "z"),
        change(Kind::Add, "a"),
        change(Kind::Deprecate, "a by c"),
    ];
    assert_eq!(all, first);
    assert_eq!(replace(&place, BY), []);
    // An entity that is deprecated when it is created later.
    let more = format!("{BY} :b :p 1 ; owl:deprecated true .");
    assert_eq!(replace(&place, &more), [change(Kind::Create, "b"), change(Kind::Deprecate, "b")]);
}

#[test]
fn differences_and_single_descriptions_record_deprecations() {
    let place = Place::new();
    replace(&place, OLD);
    let head = || place.log.head(place.set).unwrap().position.0;
    let before = head();
    let text = "<http://id.example/a> <http://www.w3.org/2002/07/owl#deprecated> \
                \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> .\n";
    place.apply(vec![Delta::Add(crate::rdf::input(Syntax::NTriples, text))], false).unwrap();
    assert_eq!(changes(&place, before), [change(Kind::Deprecate, "a")]);

    let log: Arc<dyn ChangeLog> = Arc::clone(&place.log) as _;
    let writer = EntityWriter::new(log, place.set, place.contents.clone(), &place.options);
    let put = |entities: &[(&str, &str)]| {
        let before = head();
        let (sender, done) = channel();
        let line = |name: &str, rest: &str| {
            format!("<http://id.example/{name}> <http://purl.org/dc/terms/{rest} .\n").into_bytes()
        };
        let all = entities
            .iter()
            .map(|(name, rest)| (format!("http://id.example/{name}"), Some(line(name, rest))))
            .collect();
        writer.record(all, None, Box::new(move |result| sender.send(result).unwrap())).unwrap();
        let appended = done.recv().unwrap().unwrap();
        assert_eq!(appended.recorded, head() - before);
        changes(&place, before)
    };
    let by = "isReplacedBy> <http://id.example/d>";
    let both = [change(Kind::Create, "d"), change(Kind::Deprecate, "z by d")];
    assert_eq!(put(&[("z", by), ("d", "title> \"d\"")]), both);
    assert_eq!(put(&[("z", by)]), []);
    let new = [change(Kind::Create, "e"), change(Kind::Deprecate, "e by d")];
    assert_eq!(put(&[("e", by)]), new);
    assert_eq!(put(&[("e", "title> \"e\"")]), [change(Kind::Update, "e")]);
}

#[test]
fn a_deprecation_is_in_the_feeds_of_each_protocol() {
    let place = Place::new();
    replace(&place, OLD);
    replace(&place, BY);
    let log: Arc<dyn ChangeLog> = Arc::clone(&place.log) as _;
    let source = SourceUrls::new(BASE);
    let urls = source.set("set").of_entities("http://id.example/");
    let set = PublishedSet::new(place.set, "set", urls);
    let folder = tempfile::tempdir().unwrap();
    let publisher = Publisher::new(log, source, [set], folder.path().to_owned())
        .unwrap()
        .with_projection(ChangeFeeds::default());
    for (profile, last) in [("emm/1.0", "Deprecate"), ("emm/0.1", "Deprecate"), ("iiif", "Update")]
    {
        let path = format!("set/{profile}/page/1");
        let page = crate::world::bytes(&publisher, &path);
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        let items = page["orderedItems"].as_array().unwrap();
        let item = items.last().unwrap();
        assert_eq!(
            (&item["type"], &item["object"]["id"]),
            (&last.into(), &"http://id.example/a".into())
        );
        assert!(items.iter().take(2).all(|item| item["type"] == "Add"), "{items:?}");
    }
}
