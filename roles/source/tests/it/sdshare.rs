//! SDShare feeds of a folder: their entries, and the consistency of pages and times.

use crate::world::{BASE, World, body, bytes};
use abreast_core::{Change, Position, State, append};
use abreast_sdshare::{Document, Entry, FeedKind, Limits, Relation, stamp, with_since};
use abreast_source::projection::sdshare::SdShare;
use abreast_source::projection::{FileContent, FileError, PublishedFile, TopicContent};
use abreast_source::publish::{About, Body, Notifications, PublishError, PublishedSet, Publisher};
use abreast_source::{Naming, Representations};
use abreast_webtypes::Timestamp;
use std::io::Read as _;
use std::sync::Arc;

const FRAGMENTS: &str = "set/sdshare/fragments";

fn publisher(world: &World, entries: usize) -> Publisher {
    world.publisher().with_projection(SdShare::default().with_entries_per_page(entries))
}

/// Reads a feed and checks that it has no findings.
fn read(bytes: &[u8], url: &str) -> Document {
    let text = String::from_utf8_lossy(bytes);
    let read = Document::from_slice(bytes, url, Limits::default()).unwrap();
    assert_eq!(read.findings, [], "{text}");
    read
}

fn feed(publisher: &Publisher, path: &str) -> Document {
    read(&bytes(publisher, path), &format!("{BASE}{path}"))
}

/// Requests a URL of a fragments feed.
fn page(publisher: &Publisher, url: &str) -> Document {
    let path = url.strip_prefix(BASE).unwrap();
    match path.split_once('?') {
        Some((path, query)) if publisher.takes_query(path, query) => {
            read(&body(publisher.queried(path, query).unwrap().plain()), url)
        }
        _ => feed(publisher, path.split('?').next().unwrap()),
    }
}

/// All pages from a URL on.
fn pages(publisher: &Publisher, url: &str) -> Vec<Document> {
    let (mut pages, mut next) = (Vec::new(), Some(url.to_owned()));
    while let Some(url) = next {
        let page = page(publisher, &url);
        let link = |relation: &Relation| page.feed.link(relation).map(|link| link.href.clone());
        assert_eq!(link(&Relation::SelfLink), Some(url));
        next = link(&Relation::Next);
        pages.push(page);
        assert!(pages.len() < 100);
    }
    pages
}

/// Last path segment of the resources on all pages.
fn names(pages: &[Document]) -> Vec<&str> {
    let entries = pages.iter().flat_map(|page| &page.entries);
    entries.map(|entry| entry.resources[0].rsplit('/').next().unwrap()).collect()
}

fn since(time: Timestamp) -> String {
    with_since(&format!("{BASE}{FRAGMENTS}"), time)
}

fn fragment(publisher: &Publisher, entry: &Entry) -> Result<PublishedFile, FileError> {
    let url = &entry.targets(&Relation::Fragment).next().unwrap().href;
    publisher.file(url.strip_prefix(BASE).unwrap(), None)
}

fn content(file: PublishedFile) -> Vec<u8> {
    match file.content {
        FileContent::Made { body: Body::Memory(bytes), .. } => bytes.to_vec(),
        FileContent::Made { .. }
        | FileContent::Part { .. }
        | FileContent::Shared { .. }
        | FileContent::Stored { .. } => {
            panic!("a fragment is small and whole")
        }
        FileContent::File(mut file) => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        }
    }
}

fn put(world: &World, key: &str, modified: i64) {
    let state = State { modified: Timestamp::from_seconds(modified), ..State::default() };
    append(&*world.log, world.set, vec![Change::put(key, state)]).unwrap();
}

fn delete(world: &World, key: &str) {
    append(&*world.log, world.set, vec![Change::delete(key)]).unwrap();
}

/// A world with `a` to `e`; then `b` was changed, `d` deleted, and `f` added.
fn changed() -> World {
    let world = World::new();
    for name in ["a", "b", "c", "d", "e"] {
        world.write(&format!("{name}.txt"), name);
    }
    world.scan();
    world.log.complete_import(world.set).unwrap();
    world.write("b.txt", "b2");
    world.scan();
    std::fs::remove_file(world.folder.join("d.txt")).unwrap();
    world.scan();
    world.write("f.html", "f");
    world.scan();
    world
}

#[test]
fn the_overview_leads_to_both_feeds_of_every_set() {
    let world = changed();
    let about = About {
        title: "Ships & <more>".to_owned(),
        description: Some("All of them".to_owned()),
        ..About::default()
    };
    let publisher = world
        .publisher_of(PublishedSet { about, ..world.published() })
        .with_projection(SdShare::default());
    let overview = feed(&publisher, "sdshare");
    assert_eq!(overview.kind(), Some(FeedKind::Overview));
    let [collection] = &overview.entries[..] else { panic!("{:?}", overview.entries) };
    assert_eq!(collection.title, "Ships & <more>");
    assert_eq!(collection.summary.as_deref(), Some("All of them"));
    assert_eq!(collection.updated.unwrap(), world.log.head(world.set).unwrap().time);
    let url = &collection.targets(&Relation::CollectionFeed).next().unwrap().href;
    let collection = feed(&publisher, url.strip_prefix(BASE).unwrap());
    assert_eq!(collection.kind(), Some(FeedKind::Collection));
    let leads = |relation: &Relation| {
        let mut links = collection.entries.iter().flat_map(|entry| entry.targets(relation));
        links.next().unwrap().href.clone()
    };
    assert_eq!(leads(&Relation::FragmentsFeed), format!("{BASE}{FRAGMENTS}"));
    assert_eq!(leads(&Relation::SnapshotsFeed), format!("{BASE}set/sdshare/snapshots"));
    let snapshots = feed(&publisher, "set/sdshare/snapshots");
    assert!(snapshots.entries.is_empty(), "a set without dumps has no snapshots");
    for path in ["sdshare/", "other/sdshare", "set/sdshare/", "set/sdshare/chunks"] {
        assert!(!publisher.is_document(path), "{path}");
    }
}

#[test]
fn the_fragments_feed_lists_every_resource_once() {
    let world = changed();
    let publisher = publisher(&world, 1_000);
    let all = pages(&publisher, &format!("{BASE}{FRAGMENTS}"));
    assert_eq!(names(&all), ["a.txt", "c.txt", "e.txt", "b.txt", "d.txt", "f.html"]);
    let times: Vec<_> = all[0].entries.iter().map(|entry| entry.updated.unwrap()).collect();
    assert!(times.is_sorted());
    let head = world.log.head(world.set).unwrap();
    assert_eq!((times[0], times[2], times[5]), (head.created, head.created, head.time));
    assert_eq!(all[0].feed.updated, Some(head.time));
    let mut ids: Vec<_> = all[0].entries.iter().map(|entry| &entry.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}

#[test]
fn any_page_size_gives_the_same_sequence() {
    let world = changed();
    let whole = pages(&publisher(&world, 1_000), &format!("{BASE}{FRAGMENTS}"));
    let entries = |pages: &[Document]| -> Vec<Entry> {
        let all = pages.iter().flat_map(|page| page.entries.clone());
        all.map(|entry| Entry { line: 0, ..entry }).collect()
    };
    for most in 1..8 {
        let publisher = publisher(&world, most);
        let pages = pages(&publisher, &format!("{BASE}{FRAGMENTS}"));
        assert_eq!(entries(&pages), entries(&whole), "{most}");
        assert!(pages.iter().all(|page| page.entries.len() <= most));
        assert!(pages.iter().rev().skip(1).all(|page| !page.entries.is_empty()));
        assert!(pages.iter().all(|page| page.feed.id == whole[0].feed.id));
    }
}

#[test]
fn fragments_feed_omits_entries_older_than_since() {
    let world = changed();
    let publisher = publisher(&world, 2);
    let all = pages(&publisher, &format!("{BASE}{FRAGMENTS}"));
    let times: Vec<_> =
        all.iter().flat_map(|page| &page.entries).map(|entry| entry.updated.unwrap()).collect();
    let names_since = |time| {
        let pages = pages(&publisher, &since(time));
        names(&pages).join(" ")
    };
    // `since` is inclusive: an entry with exactly this time is listed.
    assert_eq!(names_since(times[5]), "f.html");
    assert_eq!(names_since(times[5].plus_micros(1)), "");
    assert_eq!(names_since(times[4]), "d.txt f.html");
    assert_eq!(names_since(times[3]), "b.txt d.txt f.html");
    assert_eq!(names_since(times[0].plus_micros(1)), "b.txt d.txt f.html");
    assert_eq!(names_since(times[0]), "a.txt c.txt e.txt b.txt d.txt f.html");
    assert_eq!(names_since(Timestamp::MIN), "a.txt c.txt e.txt b.txt d.txt f.html");
    assert_eq!(names_since(Timestamp::MAX), "");
}

#[test]
fn what_changes_while_pages_are_read_is_in_a_later_page() {
    let world = changed();
    let publisher = publisher(&world, 1);
    let mut seen = Vec::new();
    let mut next = Some(format!("{BASE}{FRAGMENTS}"));
    let mut number = 0;
    while let Some(url) = next {
        let page = page(&publisher, &url);
        seen.extend(page.entries.iter().map(|entry| {
            (entry.resources[0].rsplit('/').next().unwrap().to_owned(), entry.updated.unwrap())
        }));
        next = page.feed.link(&Relation::Next).map(|link| link.href.clone());
        number += 1;
        match number {
            1 => put(&world, "a.txt", 7),
            2 => put(&world, "e.txt", 7),
            4 => delete(&world, "c.txt"),
            _ => {}
        }
    }
    let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a.txt", "c.txt", "b.txt", "d.txt", "f.html", "a.txt", "e.txt", "c.txt"]);
    assert!(seen.is_sorted_by_key(|(_, time)| *time));
}

#[test]
fn a_fragment_is_the_file_and_is_empty_once_it_is_deleted() {
    let world = changed();
    let publisher = publisher(&world, 1_000);
    let feed = feed(&publisher, FRAGMENTS);
    let entry = |name: &str| {
        feed.entries.iter().find(|entry| entry.resources[0].ends_with(name)).unwrap().clone()
    };
    let media_type = |entry: &Entry| entry.targets(&Relation::Fragment).next().unwrap().essence();
    let (b, d, f) = (entry("b.txt"), entry("d.txt"), entry("f.html"));
    assert_eq!((media_type(&b).as_str(), media_type(&f).as_str()), ("text/plain", "text/html"));
    let file = fragment(&publisher, &b).unwrap();
    assert_eq!(file.location.as_deref(), Some("https://example.org/set/r/b.txt"));
    assert_eq!(content(file), b"b2");
    assert_eq!(content(fragment(&publisher, &d).unwrap()), b"");
    // A file is deleted after a client has received the feed, and before a scan.
    std::fs::remove_file(world.folder.join("f.html")).unwrap();
    assert!(matches!(fragment(&publisher, &f), Err(FileError::Later { .. })));
    world.scan();
    assert_eq!(content(fragment(&publisher, &f).unwrap()), b"");
    for path in ["set/sdshare/fragment/r/../secret", "set/sdshare/fragment/r/.git/config"] {
        assert!(publisher.file(path, None).map_or(true, |file| content(file).is_empty()), "{path}");
    }
    assert!(!publisher.is_file("set/sdshare/fragment/r/"));
    assert!(!publisher.is_file("other/sdshare/fragment/r/a"));
}

#[test]
fn odd_names_are_listed_and_their_fragments_found() {
    let world = World::new();
    let names = ["a b", "x&y=z+1", "<\"'>", "é", "100%", "n\nl", "a/b/c:d"];
    for name in names {
        world.write(name, name);
    }
    world.scan();
    world.log.complete_import(world.set).unwrap();
    for most in [1, 1_000] {
        let publisher = publisher(&world, most);
        let pages = pages(&publisher, &format!("{BASE}{FRAGMENTS}"));
        let entries: Vec<_> = pages.iter().flat_map(|page| &page.entries).collect();
        assert_eq!(entries.len(), names.len());
        for entry in entries {
            let key = entry.resources[0].strip_prefix("https://example.org/set/r/").unwrap();
            let bytes = content(fragment(&publisher, entry).unwrap());
            assert_eq!(bytes, Naming::path(key).unwrap());
        }
    }
}

#[test]
fn queries_that_cannot_be_answered_are_refused_with_help() {
    let world = changed();
    let publisher = publisher(&world, 2);
    for query in ["since=soon", "after=x"] {
        assert!(publisher.takes_query(FRAGMENTS, query));
        let error = publisher.queried(FRAGMENTS, query).unwrap_err();
        let PublishError::BadQuery(text) = error else { panic!("{error}") };
        assert!(text.contains("help: "), "{text}");
    }
    assert!(!publisher.takes_query(FRAGMENTS, "utm=1"));
    assert!(!publisher.takes_query("set/sdshare", "since=soon"));
    // A page after the end is empty, and not an error.
    let beyond = page(&publisher, &format!("{BASE}{FRAGMENTS}?after=999"));
    assert!(beyond.entries.is_empty() && beyond.feed.link(&Relation::Next).is_none());
}

#[test]
fn feeds_of_a_set_that_is_read_for_the_first_time_come_later() {
    let world = World::new();
    let publisher = publisher(&world, 2);
    assert!(matches!(publisher.document(FRAGMENTS), Err(PublishError::Importing)));
    assert!(matches!(
        publisher.queried(FRAGMENTS, "since=2026-01-01T00:00:00Z"),
        Err(PublishError::Importing)
    ));
    assert!(matches!(
        publisher.file("set/sdshare/fragment/r/a", None),
        Err(FileError::Later { .. })
    ));
    assert_eq!(feed(&publisher, "sdshare").entries.len(), 1);
}

#[test]
fn a_feed_is_kept_until_the_set_changes() {
    let world = changed();
    let publisher = publisher(&world, 1_000);
    let first = publisher.document(FRAGMENTS).unwrap();
    assert!(Arc::ptr_eq(&first, &publisher.cached(FRAGMENTS).unwrap()));
    let query = "since=1970-01-01T00:00:00Z";
    let tag = publisher.queried(FRAGMENTS, query).unwrap().tag.clone();
    assert_eq!(publisher.queried(FRAGMENTS, query).unwrap().tag, tag);
    put(&world, "a.txt", 9);
    assert!(publisher.cached(FRAGMENTS).is_none());
    assert_ne!(publisher.document(FRAGMENTS).unwrap().tag, first.tag);
    assert_ne!(publisher.queried(FRAGMENTS, query).unwrap().tag, tag);
}

#[test]
fn fragments_feeds_are_topics_and_notifications_are_feeds() {
    let world = changed();
    let notifications = Some(Notifications::at(["https://hub.example/"]));
    let publisher = world
        .publisher_of(PublishedSet { notifications, ..world.published() })
        .with_projection(SdShare::default());
    let url = format!("{BASE}{FRAGMENTS}");
    let whole = feed(&publisher, FRAGMENTS);
    let hub = whole.feed.link(&Relation::Hub).unwrap();
    assert_eq!((hub.href.as_str(), &hub.media_type), ("https://hub.example/", &None));
    assert_eq!(whole.feed.link(&Relation::SelfLink).unwrap().href, url);
    // A page for a query is not a topic.
    let queried = page(&publisher, &since(Timestamp::from_seconds(0)));
    assert!(queried.feed.link(&Relation::Hub).is_none());
    let topic = publisher.topic_at(FRAGMENTS).unwrap();
    assert_eq!((topic.url.as_str(), topic.content), (url.as_str(), TopicContent::Changes));
    assert_eq!(topic.media_type, "application/atom+xml");
    assert!(publisher.topics().iter().any(|topic| topic.url == url));

    for name in ["a.txt", "b.txt", "a.txt"] {
        put(
            &world,
            name,
            i64::from(name.as_bytes()[0]) + world.log.head(world.set).unwrap().position.0 as i64,
        );
    }
    let last = world.log.head(world.set).unwrap().position;
    let notify = |after: u64, last| publisher.notification(&url, Position(after), last).unwrap();
    let bytes = notify(last.0 - 3, last);
    assert_eq!(bytes, notify(last.0 - 3, last), "the same range is the same bytes");
    let feed = read(&bytes, &url);
    assert_eq!(names(std::slice::from_ref(&feed)), ["b.txt", "a.txt"]);
    assert_eq!(feed.feed.updated, feed.entries[1].updated);
    let ids: Vec<_> = feed.entries.iter().map(|entry| entry.id.clone()).collect();
    let listed = page(&publisher, &since(feed.entries[0].updated.unwrap()));
    assert_eq!(ids, listed.entries.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>());
    assert!(read(&notify(last.0, last), &url).entries.is_empty());
    assert!(world.publisher().with_projection(SdShare::default()).topic_at(FRAGMENTS).is_none());
}

#[test]
fn times_of_a_feed_have_one_width() {
    let world = changed();
    let text = String::from_utf8(bytes(&publisher(&world, 1_000), FRAGMENTS)).unwrap();
    let times: Vec<_> = text
        .split("<updated>")
        .skip(1)
        .map(|rest| rest.split("</updated>").next().unwrap())
        .collect();
    assert_eq!(times.len(), 7);
    assert!(times.iter().all(|time| time.len() == 27 && time.ends_with('Z')), "{times:?}");
    let head = world.log.head(world.set).unwrap();
    assert_eq!(times[0], stamp(head.time));
}

#[test]
fn records_link_to_their_own_servers() {
    let world = World::begun();
    let uri = "https://example.net/a?b=1&c=2";
    put(&world, uri, 7);
    let set = PublishedSet { representations: Representations::elsewhere(), ..world.published() };
    let publisher = world.publisher_of(set).with_projection(SdShare::default());
    let entry = &feed(&publisher, FRAGMENTS).entries[0];
    assert_eq!(entry.resources, [uri]);
    assert_eq!(entry.targets(&Relation::Fragment).next().unwrap().href, uri);
    delete(&world, uri);
    let entry = &feed(&publisher, FRAGMENTS).entries[0];
    assert_eq!(entry.resources, [uri]);
    assert_eq!(content(fragment(&publisher, entry).unwrap()), b"");
}
