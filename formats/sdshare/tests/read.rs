//! Feeds equivalent to the examples of the specification, and those of older servers.
#![allow(clippy::unwrap_used)]

use abreast_sdshare::{
    Document, FeedKind, Limits, ReadError, Reader, Relation, SDSHARE_NAMESPACE, stamp,
};
use abreast_sdshare::{Entry, Link};

const BASE: &str = "http://example.org/feeds/ships/fragments";

fn read(text: &str) -> Document {
    Document::from_slice(text.as_bytes(), BASE, Limits::default()).unwrap()
}

fn codes(document: &Document) -> Vec<(&'static str, u64)> {
    document.findings.iter().map(|finding| (finding.code, finding.line)).collect()
}

fn hrefs<'a>(entry: &'a Entry, relation: &Relation) -> Vec<&'a str> {
    entry.targets(relation).map(|link| link.href.as_str()).collect()
}

/// A fragments feed around some entries, which is right but for them.
fn feed(entries: &str) -> String {
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"{SDSHARE_NAMESPACE}\">\n<title>T</title>\
         <id>http://example.org/f</id><updated>2026-01-01T00:00:00Z</updated><author><name>A</name></author>\n{entries}</feed>"
    )
}

/// An entry of a fragments feed that is right, with more in it.
fn entry(more: &str) -> String {
    format!(
        "<entry><title>E</title><id>urn:e:1</id><updated>2026-01-01T00:00:00Z</updated>\
         <s:resource>http://example.org/r</s:resource>\
         <link rel=\"{SDSHARE_NAMESPACE}fragment\" type=\"text/turtle\" href=\"http://example.org/1\"/>\
         <link rel=\"alternate\" type=\"text/turtle\" href=\"http://example.org/1\"/>{more}</entry>"
    )
}

#[test]
fn an_overview_leads_to_collections() {
    let read = read(include_str!("feeds/overview.atom"));
    assert_eq!((read.kind(), codes(&read)), (Some(FeedKind::Overview), vec![]));
    assert_eq!(read.feed.author.as_deref(), Some("Port feeds"));
    let [entry] = &read.entries[..] else { panic!("{:?}", read.entries) };
    assert_eq!((entry.title.as_str(), entry.line), ("Ships", 10));
    assert_eq!(entry.summary.as_deref(), Some("Ships that called at the port."));
    assert_eq!(hrefs(entry, &Relation::CollectionFeed), ["http://example.org/feeds/ships"]);
}

#[test]
fn a_collection_leads_to_its_two_feeds() {
    let read = read(include_str!("feeds/collection.atom"));
    assert_eq!((read.kind(), codes(&read)), (Some(FeedKind::Collection), vec![]));
    let all = |relation| read.entries.iter().flat_map(|e| hrefs(e, relation)).collect::<Vec<_>>();
    assert_eq!(all(&Relation::FragmentsFeed), ["http://example.org/feeds/ships/fragments"]);
    assert_eq!(all(&Relation::SnapshotsFeed), ["http://example.org/feeds/ships/snapshots"]);
    assert_eq!(read.feed.updated.map(stamp).unwrap(), "2009-01-26T11:13:40.000000Z");
}

#[test]
fn a_snapshots_feed_leads_to_snapshots_and_chunks() {
    let read = read(include_str!("feeds/snapshots.atom"));
    assert_eq!(read.kind(), Some(FeedKind::Snapshots));
    // The example of the specification contradicts its text.
    assert_eq!(codes(&read), [("sdshare.type", 10)]);
    let [entry] = &read.entries[..] else { panic!("{:?}", read.entries) };
    assert_eq!(entry.updated.map(stamp).unwrap(), "2009-03-17T13:04:42.305299Z");
    let chunks = "http://example.org/feeds/ships/snapshots/0001/chunks";
    assert_eq!(hrefs(entry, &Relation::ChunkedSnapshot), [chunks]);
    assert_eq!(
        hrefs(entry, &Relation::Snapshot),
        ["http://example.org/feeds/ships/snapshots/0001"]
    );
}

#[test]
fn a_chunked_snapshot_leads_to_its_chunks() {
    let read = read(include_str!("feeds/chunks.atom"));
    assert_eq!((read.kind(), codes(&read)), (Some(FeedKind::ChunkedSnapshot), vec![]));
    let part = "http://example.org/feeds/ships/snapshots/0001/part-1";
    assert_eq!(hrefs(&read.entries[0], &Relation::SnapshotComponent), [part]);
}

#[test]
fn a_fragments_feed_names_resources_and_their_fragments() {
    let read = read(include_str!("feeds/fragments.atom"));
    assert_eq!((read.kind(), codes(&read)), (Some(FeedKind::Fragments), vec![]));
    let [entry] = &read.entries[..] else { panic!("{:?}", read.entries) };
    assert_eq!(entry.resources, ["http://example.org/ships/aurora"]);
    assert_eq!(
        entry.targets(&Relation::Fragment).collect::<Vec<_>>(),
        [&Link::new(Relation::Fragment, "http://example.org/feeds/ships/fragments?id=47&v=2")
            .with_type("application/rdf+xml")]
    );
}

#[test]
fn feeds_of_the_draft_of_2010_are_read() {
    let read_2010 = read(include_str!("feeds/fragments-2010.atom"));
    assert_eq!(read_2010.kind(), Some(FeedKind::Fragments));
    let [entry] = &read_2010.entries[..] else { panic!("{:?}", read_2010.entries) };
    assert_eq!(entry.updated.map(stamp).unwrap(), "2010-03-17T13:47:17.500000Z");
    assert_eq!(
        entry.resources,
        ["http://example.org/ships/aurora", "http://example.org/ships/alias-of-aurora"]
    );
    assert_eq!(
        hrefs(entry, &Relation::Fragment),
        ["http://example.org/feeds/ships/fragments/47.rdf", "http://example.org/topics/47.xtm"]
    );
    assert_eq!(
        read_2010.feed.link(&Relation::Next).unwrap().href,
        "http://example.org/feeds/?page=2"
    );
    assert_eq!(read_2010.feed.updated.map(stamp).unwrap(), "2010-03-17T14:47:17.000000Z");
    assert_eq!(
        codes(&read_2010),
        [
            ("atom.updated", 6),
            ("atom.updated", 10),
            ("sdshare.older", 12),
            ("sdshare.older", 13),
            ("sdshare.link", 8),
            ("sdshare.resource", 8)
        ]
    );

    let read_2010 = read(include_str!("feeds/collection-2010.atom"));
    assert_eq!(read_2010.kind(), Some(FeedKind::Collection));
    assert_eq!(hrefs(&read_2010.entries[1], &Relation::SnapshotsFeed), ["http://example.org/s"]);
    assert_eq!(hrefs(&read_2010.entries[0], &Relation::SnapshotsFeed), [""; 0]);
    assert_eq!(codes(&read_2010), [("sdshare.older", 6), ("sdshare.older", 9)]);
}

#[test]
fn a_resource_in_two_spellings_is_one() {
    let both = entry("<s:ResourceUri>http://example.org/r</s:ResourceUri>");
    assert_eq!(read(&feed(&both)).entries[0].resources, ["http://example.org/r"]);
    let older = both.replace("s:resource>", "s:TopicSI>");
    assert_eq!(read(&feed(&older)).entries[0].resources, ["http://example.org/r"]);
}

#[test]
fn a_right_feed_has_no_findings() {
    let read = read(&feed(&entry("")));
    assert_eq!(codes(&read), []);
    assert_eq!(read.entries.len(), 1);
}

#[test]
fn each_deviation_is_found_at_its_line() {
    let right = entry("");
    let fragment = format!(
        "<link rel=\"{SDSHARE_NAMESPACE}fragment\" type=\"text/turtle\" href=\"http://example.org/1\"/>"
    );
    let alternate = "<link rel=\"alternate\" type=\"text/turtle\" href=\"http://example.org/1\"/>";
    let resource = "<s:resource>http://example.org/r</s:resource>";
    for (entries, expected) in [
        (right.replace("<title>E</title>", ""), vec!["atom.title"]),
        (right.replace("</title>", "</title><title>F</title>"), vec!["atom.title"]),
        (
            right.replace("<updated>", "<updated>2026-01-01T00:00:00Z</updated><updated>"),
            vec!["atom.updated"],
        ),
        (right.replace("<id>urn:e:1</id>", ""), vec!["atom.id"]),
        (right.replace("urn:e:1", "e1"), vec!["atom.id"]),
        (right.replace("<updated>2026-01-01T00:00:00Z</updated>", ""), vec!["atom.updated"]),
        (right.replace("2026-01-01T00:00:00Z", "today"), vec!["atom.updated"]),
        (right.replace(alternate, &format!("link /> {alternate}")), vec!["atom.text"]),
        (right.replace(alternate, ""), vec!["atom.alternate", "sdshare.alternate"]),
        (right.replace(alternate, &alternate.replace("/1", "/2")), vec!["sdshare.alternate"]),
        (right.replace(alternate, &alternate.replace("turtle", "html")), vec!["sdshare.alternate"]),
        (right.replace(alternate, &alternate.repeat(2)), vec!["atom.alternate-twice"]),
        (right.replace(" type=\"text/turtle\"", ""), vec!["sdshare.type"]),
        (right.replace(&fragment, ""), vec!["sdshare.link"]),
        (right.replace(resource, ""), vec!["sdshare.resource"]),
        (right.replace(resource, &resource.repeat(2)), vec!["sdshare.resource"]),
        (right.replace("http://example.org/r", "r"), vec!["sdshare.resource"]),
        (right.replace("http://example.org/r", " "), vec!["sdshare.resource", "sdshare.resource"]),
        (entry("<link rel=\"self\"/>"), vec!["atom.link"]),
        (entry("<link rel=\"self\" href=\"a b\"/>"), vec!["atom.link"]),
        (
            entry("<link rel=\"self\" xml:base=\"a b\" href=\"http://example.org/\"/>"),
            vec!["atom.base"],
        ),
        (
            entry("")
                + &entry("")
                    .replace(
                        &format!("{SDSHARE_NAMESPACE}fragment"),
                        &format!("{SDSHARE_NAMESPACE}snapshot"),
                    )
                    .replace(resource, ""),
            vec!["sdshare.mixed"],
        ),
        (format!("{right}<link rel=\"next\" href=\"{BASE}\"/>"), vec!["atom.paging-loop"]),
        (
            format!("{right}<link rel=\"next\" href=\"?a\"/><link rel=\"next\" href=\"?a\"/>"),
            vec!["atom.paging"],
        ),
        (right.replace("</entry>", "<source><id>x</id><title>x</title></source></entry>"), vec![]),
    ] {
        let document = read(&feed(&entries));
        let found: Vec<_> = document.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(found, expected, "{entries}\n{:?}", document.findings);
        for finding in &document.findings {
            assert!(finding.line <= 3, "{finding:?}");
            assert!(abreast_sdshare::CODES.iter().any(|(code, _)| *code == finding.code));
        }
    }
    for (before, after, code) in [
        ("<title>T</title>", "", "atom.title"),
        ("<title>T</title>", "<title>T</title><title>U</title>", "atom.title"),
        ("<id>http://example.org/f</id>", "", "atom.id"),
        ("<author><name>A</name></author>", "", "atom.author"),
        ("<author><name>A</name></author>", "<author><name/></author>", "atom.author"),
    ] {
        let document = read(&feed(&right).replace(before, after));
        assert_eq!(codes(&document).first().unwrap().0, code);
    }
    let collection = include_str!("feeds/collection.atom");
    let (start, last) = collection.rsplit_once("  <entry>").unwrap();
    for text in [
        format!("{start}</feed>"),
        format!("{start}<entry>{}", last.replace("snapshotsfeed", "fragmentsfeed")),
    ] {
        assert_eq!(codes(&read(&text)).last().unwrap().0, "sdshare.collection");
    }
}

#[test]
fn an_entry_that_lacks_its_time_is_still_reported() {
    let read = read(&feed(&entry("").replace("2026-01-01T00:00:00Z", "soon")));
    assert_eq!((read.entries.len(), read.entries[0].updated), (1, None));
}

#[test]
fn findings_are_bounded_and_counted() {
    let entries = entry("").replace("<title>E</title>", "").repeat(250);
    assert_eq!(read(&feed(&entries)).findings.len(), 100);
}

#[test]
fn the_reader_of_files_has_the_same_entries() {
    let text =
        feed(&(entry("") + &entry("<summary>second</summary>") + "<link rel='next' href='?p=2'/>"));
    let mut reader = Reader::new(text.as_bytes(), BASE, Limits::default());
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    while reader.next(&mut entry).unwrap() {
        entries.push(entry.clone());
    }
    let whole = read(&text);
    assert_eq!(
        (entries, reader.head(), reader.findings()),
        (whole.entries, &whole.feed, &whole.findings[..])
    );
    let mut cut = Reader::new(&text.as_bytes()[..text.len() - 3], BASE, Limits::default());
    let end = loop {
        match cut.next(&mut entry) {
            Ok(true) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Err(ReadError::Syntax(error)) if error.code() == "xml.eof"));
}
