//! What is written: the bytes themselves, and that they read back equal.
#![allow(clippy::unwrap_used)]

use abreast_sdshare::{
    Document, Entry, Feed, Limits, Link, Relation, write_end, write_entry, write_feed,
};
use abreast_webtypes::Timestamp;
use proptest::prelude::*;

fn written(feed: &Feed, entries: &[Entry]) -> String {
    let mut out = Vec::new();
    write_feed(&mut out, feed);
    for entry in entries {
        write_entry(&mut out, entry);
    }
    write_end(&mut out);
    String::from_utf8(out).unwrap()
}

/// Without the links that repeat others.
fn without_repeats(mut entry: Entry) -> Entry {
    let links = entry.links.clone();
    entry.line = 0;
    entry.links.retain(|link| {
        link.relation != Relation::Alternate
            || !links.iter().any(|other| {
                other.relation.needs_alternate()
                    && other.media_type == link.media_type
                    && other.hreflang == link.hreflang
            })
    });
    entry
}

#[test]
fn a_fragments_feed_is_written_with_all_that_is_required() {
    let feed = Feed {
        id: "http://example.org/ships/fragments".to_owned(),
        title: "Changes of ships".to_owned(),
        updated: Some(Timestamp::from_seconds(1_300_000_000)),
        author: Some("Port & feeds".to_owned()),
        ..Feed::default()
    }
    .with_link(Link::to_feed(Relation::SelfLink, "http://example.org/ships/fragments"))
    .with_link(Link::to_feed(Relation::Next, "http://example.org/ships/fragments?since=x&after=7"))
    .with_link(Link::new(Relation::Hub, "http://example.org/hub"));
    let entry = Entry {
        id: "http://example.org/ships/fragments#7".to_owned(),
        title: "Aurora".to_owned(),
        updated: Some(Timestamp::from_micros(1_300_000_000_123_456)),
        resources: vec!["http://example.org/ships/aurora".to_owned()],
        ..Entry::default()
    };
    let to = |media_type| {
        Link::new(Relation::Fragment, format!("http://example.org/1?{media_type}"))
            .with_type(media_type)
    };
    let entry = entry.with_link(to("application/rdf+xml")).with_link(to("text/turtle"));
    assert_eq!(
        written(&feed, &[entry]),
        r#"<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sdshare="http://www.sdshare.org/2012/core/">
  <title>Changes of ships</title>
  <id>http://example.org/ships/fragments</id>
  <updated>2011-03-13T07:06:40.000000Z</updated>
  <author><name>Port &amp; feeds</name></author>
  <link rel="self" type="application/atom+xml" href="http://example.org/ships/fragments"/>
  <link rel="next" type="application/atom+xml" href="http://example.org/ships/fragments?since=x&amp;after=7"/>
  <link rel="hub" href="http://example.org/hub"/>
  <entry>
    <title>Aurora</title>
    <id>http://example.org/ships/fragments#7</id>
    <updated>2011-03-13T07:06:40.123456Z</updated>
    <link rel="http://www.sdshare.org/2012/core/fragment" type="application/rdf+xml" href="http://example.org/1?application/rdf+xml"/>
    <link rel="alternate" type="application/rdf+xml" href="http://example.org/1?application/rdf+xml"/>
    <link rel="http://www.sdshare.org/2012/core/fragment" type="text/turtle" href="http://example.org/1?text/turtle"/>
    <link rel="alternate" type="text/turtle" href="http://example.org/1?text/turtle"/>
    <sdshare:resource>http://example.org/ships/aurora</sdshare:resource>
  </entry>
</feed>
"#
    );
}

#[test]
fn of_two_links_with_one_type_one_is_repeated() {
    let link =
        |n| Link::new(Relation::Fragment, format!("http://e.org/{n}")).with_type("text/turtle");
    let text = written(&Feed::default(), &[Entry::default().with_link(link(1)).with_link(link(2))]);
    assert_eq!(text.matches("\"alternate\"").count(), 1, "{text}");
}

#[test]
fn the_link_to_chunks_is_not_repeated() {
    let entry = Entry::default()
        .with_link(Link::new(Relation::Snapshot, "http://e.org/s").with_type("text/turtle"))
        .with_link(Link::to_feed(Relation::ChunkedSnapshot, "http://e.org/c"));
    let text = written(&Feed::default(), &[entry]);
    assert_eq!(text.matches("\"alternate\"").count(), 1, "{text}");
}

#[test]
fn feeds_that_were_read_are_written_without_findings() {
    for (text, findings) in [
        (include_str!("feeds/overview.atom"), 0),
        (include_str!("feeds/collection.atom"), 0),
        (include_str!("feeds/snapshots.atom"), 1),
        (include_str!("feeds/chunks.atom"), 0),
        (include_str!("feeds/fragments.atom"), 0),
    ] {
        let base = "http://example.org/";
        let read = Document::from_slice(text.as_bytes(), base, Limits::default()).unwrap();
        let again = written(&read.feed, &read.entries);
        let again = Document::from_slice(again.as_bytes(), base, Limits::default()).unwrap();
        assert_eq!(again.findings.len(), findings, "{:?}", again.findings);
        assert_eq!(again.feed, read.feed);
    }
}

fn text() -> impl Strategy<Value = String> {
    "[ -~\u{a0}-\u{d7ff}\u{e000}-\u{fffd}😀]{0,12}".prop_map(|text| text.trim_ascii().to_owned())
}

fn link() -> impl Strategy<Value = Link> {
    let relation = prop::sample::select(vec![
        "http://www.sdshare.org/2012/core/fragment",
        "http://www.sdshare.org/2012/core/snapshot",
        "http://www.sdshare.org/2012/core/chunked-snapshot",
        "alternate",
        "self",
        "next",
        "describedby",
    ]);
    let uri = "http://[a-z]{1,5}/[!-~é]{0,9}";
    (relation, uri, prop::option::of("[a-z]{1,3}/[a-z]{1,3}"), prop::option::of("[a-z]{2}"))
        .prop_map(|(relation, href, media_type, hreflang)| Link {
            relation: Relation::parse(relation).0,
            href,
            media_type,
            hreflang,
        })
}

prop_compose! {
    fn entry()(
        (id, title) in (text(), text()),
        (summary, author) in (prop::option::of(text()), prop::option::of("[a-z]{1,9}")),
        links in prop::collection::vec(link(), 0..6),
        resources in prop::collection::btree_set("urn:[!-~é]{1,9}", 0..3),
        micros in Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros(),
        is_deleted: bool,
    ) -> Entry {
        Entry {
            id, title, summary, author, links, is_deleted,
            updated: Some(Timestamp::from_micros(micros)),
            resources: resources.into_iter().collect(),
            line: 0,
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back_equal(
        entries in prop::collection::vec(entry(), 0..5),
        links in prop::collection::vec(link(), 0..4),
        (id, title) in (text(), text()),
        subtitle in prop::option::of(text()),
        author in "[a-z]{1,9}",
        has_files: bool,
        piece in 1_usize..64,
    ) {
        let updated = Some(Timestamp::from_seconds(7));
        // A feed has one next page.
        let mut links = links;
        let mut pages = 0;
        links.retain(|link| link.relation != Relation::Next || { pages += 1; pages == 1 });
        let feed = Feed { id, title, subtitle, updated, author: Some(author), links, has_files };
        let bytes = written(&feed, &entries);
        let base = "http://example.org/";
        let read = Document::from_slice(bytes.as_bytes(), base, Limits::default()).unwrap();
        prop_assert_eq!(&read.feed, &feed);
        let expected: Vec<_> = entries.into_iter().map(without_repeats).collect();
        let found: Vec<_> = read.entries.iter().cloned().map(without_repeats).collect();
        prop_assert_eq!(found, expected);

        let mut parser = abreast_sdshare::Parser::new(base, Limits::default());
        let (mut entry, mut in_pieces) = (Entry::default(), Vec::new());
        for piece in bytes.as_bytes().chunks(piece) {
            parser.feed(piece);
            while parser.next(&mut entry).unwrap() == abreast_sdshare::Step::Entry {
                in_pieces.push(entry.clone());
            }
        }
        prop_assert_eq!(in_pieces, read.entries);
    }
}
