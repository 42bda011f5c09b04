//! Documents of ResourceSync 0.1: their content, and their consistency with the log and with each
//! other.

use crate::world::{BASE, World, body, bytes};
use abreast_core::testing::HeldLog;
use abreast_core::{
    Beginning, Change, ChangeLog, ChangeRecord, ContentId, Description, Imported, NewSet, PageRule,
    Position, State, SystemClock, append,
};
use abreast_resourcesync::v0_1::{
    CALLBACK_PROTOCOL, CHANGE_SET, Change as Kind, Document, Entry, Limits, Link, MIRROR,
    OAI_PMH_PROTOCOL, PARTIAL, Parser, Root, SUBJECT, SUBJECT_NAME, Step, Tolerance,
};
use abreast_source::links::{LinkRecord, read_links};
use abreast_source::projection::emm::ChangeFeeds;
use abreast_source::projection::resourcesync_0_1::{
    Options, PushLink, ResourceSync01, subscribe_url,
};
use abreast_source::projection::sdshare::SdShare;
use abreast_source::publish::{
    Freshness, Notifications, PublishError, PublishedSet, Publisher, SourceUrls,
};
use abreast_source::static_site::{SiteOptions, write_site};
use abreast_source::versions::VersionUrls;
use abreast_store::SqliteLog;
use abreast_testkit::Random;
use abreast_webtypes::{Digests, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Largest length of a Sitemap, in bytes.
const MAX_BYTES: usize = 10_000_000;

fn state(content: u64) -> State {
    let mut digests = Digests { md5: Some([7; 16]), ..Digests::default() };
    digests.sha256 = Some([9; 32]);
    State {
        modified: Timestamp::from_seconds(1_700_000_000),
        length: Some(content),
        media_type: Some("text/plain".into()),
        encoding: Some("gzip".into()),
        digests,
        ..State::default()
    }
}

fn linked(links: &str) -> State {
    let records: Vec<LinkRecord> = serde_json::from_str(links).unwrap();
    State { links: read_links("d/a", &records).unwrap(), ..state(1) }
}

fn publisher(world: &World) -> Publisher {
    world.publisher().with_projection(ResourceSync01::default())
}

fn limited(world: &World, bytes: usize, entries: u64) -> Publisher {
    world.publisher().with_projection(ResourceSync01::default().with_limits(bytes, entries))
}

fn put(world: &World, key: &str, state: State) {
    append(&*world.log, world.set, vec![Change::put(key, state)]).unwrap();
}

fn read(publisher: &Publisher, path: &str) -> Document {
    let path = path.strip_prefix(BASE).unwrap_or(path);
    let document = bytes(publisher, path);
    assert!(document.len() <= MAX_BYTES, "{path}");
    strictly(&document, path)
}

/// Reads a document strictly: any finding fails the test.
fn strictly(bytes: &[u8], path: &str) -> Document {
    let mut parser = Parser::with_tolerance(Limits::default(), Tolerance::Strict);
    let (mut document, mut entry) = (Document::default(), Entry::default());
    let mut input = Some(bytes);
    loop {
        match parser.next(&mut entry).unwrap_or_else(|error| panic!("{path}: {error}")) {
            Step::NeedInput => match input.take() {
                Some(bytes) => parser.feed(bytes),
                None => parser.finish(),
            },
            Step::Head => document.head = parser.head().unwrap().clone(),
            Step::Entry => document.entries.push(entry.clone()),
            Step::End => break,
        }
    }
    assert!(parser.findings().is_empty(), "{path}: {:?}", parser.findings());
    document
}

fn link<'d>(links: &'d [Link], rel: &str) -> Option<&'d str> {
    let found = links.iter().find(|link| link.has_rel(rel) && link.has_rel(CHANGE_SET));
    found.map(|link| link.href.as_str())
}

/// The change sets from the current change set back, along `prev`.
fn walk(publisher: &Publisher) -> Vec<Document> {
    let mut found = vec![read(publisher, "set/v0.1/changeset.xml")];
    while let Some(prev) = link(&found[found.len() - 1].head.links, "prev") {
        assert!(found.len() < 10_000, "the chain has an end");
        let document = read(publisher, prev);
        assert!(document.head.change_set);
        found.push(document);
    }
    found
}

/// All changes in the change sets, the oldest first, in the form of the log.
fn walked(publisher: &Publisher) -> Vec<(String, Kind, Timestamp)> {
    let documents = walk(publisher);
    let entries = documents.iter().rev().flat_map(|document| &document.entries);
    entries.map(identity).collect()
}

fn identity(entry: &Entry) -> (String, Kind, Timestamp) {
    (entry.loc.clone(), entry.change.unwrap(), entry.time.unwrap().instant)
}

fn records(log: &dyn ChangeLog, world: &World) -> Vec<ChangeRecord> {
    let mut records = Vec::new();
    let mut visit = |record: &ChangeRecord| {
        records.push(record.clone());
        ControlFlow::Continue(())
    };
    log.read(world.set, Position(0), &mut visit).unwrap();
    records
}

fn logged(world: &World) -> Vec<(String, Kind, Timestamp)> {
    let kind = |record: &ChangeRecord| match record.kind {
        abreast_core::Kind::Create | abreast_core::Kind::Add => Kind::Created,
        abreast_core::Kind::Delete | abreast_core::Kind::Remove => Kind::Deleted,
        _ => Kind::Updated,
    };
    let records = records(&*world.log, world);
    let of =
        |record: &ChangeRecord| (format!("{BASE}set/r/{}", record.key), kind(record), record.time);
    records.iter().map(of).collect()
}

/// The resources of the Sitemap, or of all Sitemaps of its index.
fn listed(publisher: &Publisher) -> Vec<Entry> {
    let document = read(publisher, "set/v0.1/sitemap.xml");
    assert!(!document.head.change_set && document.head.modified.is_some());
    match document.head.root {
        Root::UrlSet => document.entries,
        Root::SitemapIndex => {
            let read = |entry: &Entry| read(publisher, &entry.loc);
            document.entries.iter().map(read).flat_map(|document| document.entries).collect()
        }
    }
}

#[test]
fn documents_state_what_the_log_has() {
    let world = World::new();
    world.write("a b.ttl", "x");
    world.scan();
    let publisher = publisher(&world);
    for path in ["set/v0.1/sitemap.xml", "set/v0.1/changeset.xml", "set/v0.1/changesets/1.xml"] {
        assert!(matches!(publisher.document(path), Err(PublishError::Importing)), "{path}");
    }
    world.log.complete_import(world.set).unwrap();
    let empty = read(&publisher, "set/v0.1/changeset.xml");
    assert!(empty.entries.is_empty() && empty.head.modified.is_some());

    put(&world, "new", state(5));
    put(&world, "new", state(6));
    append(&*world.log, world.set, vec![Change::delete("a%20b.ttl")]).unwrap();
    let head = world.log.head(world.set).unwrap();
    let sitemap = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!(sitemap.head.modified.unwrap().instant, head.time);
    let current = "https://example.org/set/v0.1/changeset.xml";
    assert_eq!(link(&sitemap.head.links, "current"), Some(current));
    let [entry] = sitemap.entries.as_slice() else { panic!("{sitemap:?}") };
    assert_eq!(entry.loc, "https://example.org/set/r/new");
    assert_eq!((entry.change, entry.size), (None, Some(6)));
    assert_eq!(entry.time.unwrap().instant, Timestamp::from_seconds(1_700_000_000));
    assert_eq!(entry.media_type.as_deref(), Some("text/plain"));
    assert_eq!(entry.encoding.as_deref(), Some("gzip"));
    assert_eq!((entry.digests.md5, entry.digests.sha256), (Some([7; 16]), Some([9; 32])));

    let changes = read(&publisher, "set/v0.1/changeset.xml");
    assert_eq!(changes.head.modified.unwrap().instant, head.time);
    assert_eq!(link(&changes.head.links, "current"), Some(current));
    assert_eq!(link(&changes.head.links, "prev"), None);
    assert_eq!(changes.entries.iter().map(identity).collect::<Vec<_>>(), logged(&world));
    let deleted = &changes.entries[2];
    assert_eq!((deleted.change, deleted.size), (Some(Kind::Deleted), None));
    assert!(deleted.digests.is_empty() && deleted.media_type.is_none());
    let text = String::from_utf8(bytes(&publisher, "set/v0.1/changeset.xml")).unwrap();
    assert!(text.contains("rs:type=\"changeset\"") && text.contains("<expires>"));
    for path in [
        "set/v0.1/changesets/1.xml",
        "set/v0.1/changesets/0.xml",
        "set/v0.1/changesets/1-2.xml",
        "set/v0.1/changesets/9.xml",
        "set/v0.1/sitemaps/9.xml",
    ] {
        assert!(matches!(publisher.document(path), Err(PublishError::NotFound)), "{path}");
    }
    assert!(!publisher.is_document("other/v0.1/sitemap.xml"));
}

#[test]
fn closed_change_sets_never_change_a_byte() {
    let world = World::with(PageRule { changes: 4, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let mut closed: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for number in 0..41_u64 {
        // A new publisher for each round has no cached data. A change set has room for two or three
        // entries.
        let publisher = limited(&world, 1_200, 3);
        put(&world, &format!("k{}", number % 7), state(number));
        for document in walk(&publisher) {
            if let Some(prev) = link(&document.head.links, "prev") {
                let path = prev.strip_prefix(BASE).unwrap().to_owned();
                let now = bytes(&publisher, &path);
                assert_eq!(closed.entry(path.clone()).or_insert_with(|| now.clone()), &now);
            }
        }
    }
    assert!(closed.len() > 15 && closed.keys().any(|path| path.ends_with("-2.xml")));
    let publisher = limited(&world, 1_200, 3);
    for (path, was) in &closed {
        let document = publisher.document(path).unwrap();
        assert_eq!(&body(document.plain()), was, "{path}");
    }
    let first = publisher.document("set/v0.1/changesets/1.xml").unwrap();
    assert_eq!(first.freshness, Freshness::Closed);
}

#[test]
fn change_sets_end_at_positions_whatever_is_written() {
    let world = World::with(PageRule { changes: 10, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    for number in 0..15 {
        put(&world, &format!("k{number}"), state(number));
    }
    // One limit allows one entry, the other limit allows all entries.
    let [small, large] = [1, 9_000_000].map(|bytes| limited(&world, bytes, 4));
    let found = walk(&small);
    assert_eq!(found, walk(&large));
    let lengths: Vec<_> = found.iter().map(|document| document.entries.len()).collect();
    assert_eq!(lengths, [1, 4, 2, 4, 4]);
    for path in ["1.xml", "1-2.xml", "1-3.xml", "2.xml"] {
        let document = small.document(&format!("set/v0.1/changesets/{path}")).unwrap();
        assert_eq!(document.freshness, Freshness::Closed, "{path}");
    }
    for path in ["1-4.xml", "2-2.xml", "3.xml"] {
        let document = small.document(&format!("set/v0.1/changesets/{path}"));
        assert!(matches!(document, Err(PublishError::NotFound)), "{path}");
    }
}

#[test]
fn a_walk_finds_every_change_once_at_any_time() {
    let mut random = Random::new(17);
    for round in 0..25 {
        let changes = 1 + random.below(9) as u32;
        let world = World::with(PageRule { changes, ..PageRule::default() }, 40_000);
        world.log.complete_import(world.set).unwrap();
        let (bytes, entries) = (400 + random.below(3_000) as usize, 1 + random.below(6));
        let publisher = limited(&world, bytes, entries);
        for step in 0..60_u64 {
            let mut batch = Vec::new();
            for _ in 0..random.below(5) {
                let key = format!("k{}", random.below(12));
                batch.push(if random.below(4) == 0 {
                    Change::delete(key)
                } else {
                    Change::put(key, state(step * 100 + random.below(100)))
                });
            }
            append(&*world.log, world.set, batch).unwrap();
            if random.below(6) == 0 || step == 59 {
                let (found, expected) = (walked(&publisher), logged(&world));
                assert_eq!(found, expected, "round {round}, step {step}");
                let identities: BTreeSet<_> =
                    found.iter().map(|(loc, _, time)| (loc, time)).collect();
                assert_eq!(identities.len(), found.len(), "URI and time identify a change");
            }
        }
    }
}

#[test]
fn a_walk_that_began_before_a_page_was_closed_has_no_gap() {
    let world = World::with(PageRule { changes: 3, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let publisher = publisher(&world);
    for number in 0..5 {
        put(&world, "k", state(number));
    }
    let old = read(&publisher, "set/v0.1/changeset.xml");
    for number in 5..20 {
        put(&world, "k", state(number));
    }
    let mut found: Vec<_> = old.entries.iter().map(identity).collect();
    let mut prev = link(&old.head.links, "prev").map(str::to_owned);
    while let Some(path) = prev {
        let document = read(&publisher, &path);
        found.splice(0..0, document.entries.iter().map(identity));
        prev = link(&document.head.links, "prev").map(str::to_owned);
    }
    assert_eq!(found, logged(&world)[..5]);
}

#[test]
fn every_resource_is_in_one_sitemap() {
    let mut random = Random::new(23);
    for (bytes, shard) in [(1_000, 40_000), (3_000, 10), (9_000_000, 10), (9_000_000, 40_000)] {
        let world = World::with(PageRule::default(), shard);
        world.log.complete_import(world.set).unwrap();
        let publisher = limited(&world, bytes, 49_999);
        for step in 0..6_u64 {
            for _ in 0..20 {
                let key = format!("k{:02}", random.below(60));
                let change = match random.below(5) {
                    0 => Change::delete(key),
                    _ => Change::put(key, state(step + random.below(1_000))),
                };
                append(&*world.log, world.set, vec![change]).unwrap();
            }
            let mut found: Vec<String> =
                listed(&publisher).into_iter().map(|entry| entry.loc).collect();
            found.sort();
            let expected: Vec<_> =
                world.keys().iter().map(|key| format!("{BASE}set/r/{key}")).collect();
            assert_eq!(found, expected, "step {step}, {bytes} bytes, {shard} in a shard");
        }
    }
}

#[test]
fn a_resource_stays_in_its_sitemap_while_others_go() {
    let world = World::begun();
    for number in 0..64 {
        put(&world, &format!("k{number:02}"), state(number));
    }
    let publisher = limited(&world, 5_000, 49_999);
    let index = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!(index.head.root, Root::SitemapIndex);
    let (first, rest) = index.entries.split_first().unwrap();
    let mut found: BTreeSet<String> =
        read(&publisher, &first.loc).entries.into_iter().map(|entry| entry.loc).collect();
    // Half of the resources are deleted while a client reads: one Sitemap would now be enough.
    for number in (0..64).step_by(2) {
        append(&*world.log, world.set, vec![Change::delete(format!("k{number:02}"))]).unwrap();
    }
    let fewer = read(&publisher, "set/v0.1/sitemap.xml");
    assert!(fewer.entries.len() < index.entries.len());
    for entry in rest {
        found.extend(read(&publisher, &entry.loc).entries.into_iter().map(|entry| entry.loc));
    }
    for key in world.keys() {
        assert!(found.contains(&format!("{BASE}set/r/{key}")), "{key}");
    }
}

#[test]
fn no_document_is_longer_than_a_sitemap_may_be() {
    let world = World::with(PageRule { changes: 50_000, ..PageRule::default() }, 40_000);
    let key = |number: usize| format!("{number:05}/{}", "x".repeat(420));
    let imported = |number| Imported { key: key(number), state: state(1), witness: Vec::new() };
    for from in (0..18_000).step_by(6_000) {
        world.log.import(world.set, (from..from + 6_000).map(imported).collect()).unwrap();
    }
    world.log.complete_import(world.set).unwrap();
    for from in (0..18_000).step_by(6_000) {
        let changes = (from..from + 6_000).map(|number| Change::put(key(number), state(2)));
        append(&*world.log, world.set, changes.collect()).unwrap();
    }
    let publisher = publisher(&world);
    let index = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!((index.head.root, index.entries.len()), (Root::SitemapIndex, 2));
    assert_eq!(listed(&publisher).len(), 18_000);
    let changes = walk(&publisher);
    assert!(changes.len() > 1);
    assert_eq!(walked(&publisher), logged(&world));
}

#[test]
fn one_change_among_many_makes_one_sitemap_new() {
    let world = World::with(PageRule::default(), 10);
    for number in 0..65 {
        let key = format!("k{number:02}");
        let resource = Imported { key, state: state(1), witness: Vec::new() };
        world.log.import(world.set, vec![resource]).unwrap();
    }
    world.log.complete_import(world.set).unwrap();
    let log = Arc::new(HeldLog::new(Arc::clone(&world.log)));
    let folder = world.temporary.path().join("documents");
    let counted: Arc<dyn ChangeLog> = Arc::clone(&log) as Arc<dyn ChangeLog>;
    let publisher = Publisher::new(counted, SourceUrls::new(BASE), [world.published()], folder)
        .unwrap()
        .with_projection(ResourceSync01::default());
    let tags = |index: &Document| -> BTreeMap<String, String> {
        let tag = |entry: &Entry| {
            let path = entry.loc.strip_prefix(BASE).unwrap();
            (entry.loc.clone(), publisher.document(path).unwrap().tag.clone())
        };
        index.entries.iter().map(tag).collect()
    };
    let before = tags(&read(&publisher, "set/v0.1/sitemap.xml"));
    assert!(before.len() >= 5);
    put(&world, "k20", state(77));
    let scans = log.scans();
    let index = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!(log.scans() - scans, 1, "the index reads what changed, not the set");
    let after = tags(&index);
    assert_eq!(before.iter().filter(|(loc, tag)| after.get(*loc) != Some(tag)).count(), 1);
}

#[test]
fn links_are_mirrors_partial_content_and_categories() {
    let world = World::begun();
    let links = r#"[
        {"rel":"duplicate","href":"http://far.example.com/a","pri":2},
        {"rel":"duplicate","href":"http://mirror.example.com/a","pri":1},
        {"rel":"http://www.openarchives.org/rs/terms/patch","href":"/p","type":"application/json-patch+json"},
        {"rel":"http://purl.org/dc/terms/subject","href":"http://id.example/frogs","title":"Frösche"},
        {"rel":"http://purl.org/dc/terms/subject","href":"data:,wet%20%26%20gr%C3%BCn"},
        {"rel":"collection","href":"http://id.example/all"},
        {"rel":"describedby","href":"a.xml","type":"application/xml"}]"#;
    put(&world, "d/a", linked(links));
    let publisher = publisher(&world);
    let of = |path: &str| read(&publisher, path).entries.remove(0);
    let (listed, changed) = (of("set/v0.1/sitemap.xml"), of("set/v0.1/changeset.xml"));
    for entry in [&listed, &changed] {
        let mirror = entry.links.iter().find(|link| link.has_rel(MIRROR)).unwrap();
        assert_eq!(mirror.rel, format!("alternate {MIRROR}"));
        assert_eq!(mirror.href, "http://mirror.example.com/a");
        let subjects: Vec<_> = entry.links.iter().filter(|link| link.rel == SUBJECT).collect();
        assert_eq!(subjects[0].title.as_deref(), Some("Frösche"));
        assert_eq!(subjects[0].href, "http://id.example/frogs");
        assert_eq!(subjects[1].href, "http://id.example/all");
        let [word] = entry.metas.as_slice() else { panic!("{entry:?}") };
        assert_eq!((word.name.as_str(), word.content.as_str()), (SUBJECT_NAME, "wet & grün"));
        let described = entry.links.iter().find(|link| link.has_rel("describedby")).unwrap();
        assert_eq!(described.href, "https://example.org/set/r/d/a.xml");
        assert_eq!(described.media_type.as_deref(), Some("application/xml"));
    }
    let partial = |entry: &Entry| entry.links.iter().find(|link| link.has_rel(PARTIAL)).cloned();
    assert_eq!(partial(&listed), None, "partial content is of changes [rs-0.1 §4.3.2]");
    let partial = partial(&changed).unwrap();
    assert_eq!(partial.href, "https://example.org/set/r/p");
    assert_eq!(
        partial.protocol.as_deref(),
        Some("https://www.iana.org/assignments/media-types/application/json-patch+json")
    );
}

#[test]
fn the_index_states_the_categories_of_each_sitemap() {
    let world = World::with(PageRule::default(), 4);
    world.log.complete_import(world.set).unwrap();
    let state = |name: &str| {
        linked(&format!(
            r#"[{{"rel":"http://purl.org/dc/terms/subject","href":"data:,{name}"}},
                {{"rel":"http://purl.org/dc/terms/subject","href":"http://id.example/{name}"}}]"#
        ))
    };
    for number in 0..12_u64 {
        let name = if number < 6 { "frogs" } else { "fish" };
        put(&world, &format!("k{number:02}"), state(name));
    }
    let publisher = publisher(&world);
    let index = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!(index.head.root, Root::SitemapIndex);
    let categories = |entry: &Entry| -> BTreeSet<String> {
        let links = entry.links.iter().filter(|link| link.rel == SUBJECT);
        let metas = entry.metas.iter().map(|meta| meta.content.clone());
        links.map(|link| link.href.clone()).chain(metas).collect()
    };
    let mut all = BTreeSet::new();
    for sitemap in &index.entries {
        let entries = read(&publisher, &sitemap.loc).entries;
        let union: BTreeSet<String> = entries.iter().flat_map(categories).collect();
        assert_eq!(categories(sitemap), union, "{}", sitemap.loc);
        all.extend(union);
    }
    assert_eq!(all.len(), 4);
    // More categories than the index lists: an entry without categories may have all of them.
    for number in 12..200_u64 {
        put(&world, "k00", state(&format!("n{number}")));
        put(&world, &format!("m{number}"), state(&format!("n{number}")));
    }
    let index = read(&publisher, "set/v0.1/sitemap.xml");
    for sitemap in &index.entries {
        let entries = read(&publisher, &sitemap.loc).entries;
        let union: BTreeSet<String> = entries.iter().flat_map(categories).collect();
        assert_eq!(categories(sitemap), union, "{}", sitemap.loc);
    }
    let world = World::begun();
    for number in 0..150_u64 {
        put(&world, &format!("m{number}"), state(&format!("n{number}")));
    }
    let publisher = limited(&world, 45_000, 49_999);
    let index = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!(index.head.root, Root::SitemapIndex);
    assert!(index.entries.iter().all(|sitemap| categories(sitemap).is_empty()));
}

#[test]
fn the_index_states_few_bytes_of_categories() {
    for (length, stated) in [(1_000, true), (8_000, false)] {
        let world = World::with(PageRule::default(), 4);
        world.log.complete_import(world.set).unwrap();
        for number in 0..12_u64 {
            let name = format!("{number:02}{}", "x".repeat(length));
            let category = format!(
                r#"[{{"rel":"http://purl.org/dc/terms/subject","href":"http://id.example/{name}"}}]"#
            );
            put(&world, &format!("k{number:02}"), linked(&category));
        }
        let index = read(&publisher(&world), "set/v0.1/sitemap.xml");
        assert!(index.entries.len() > 2);
        let largest = index
            .entries
            .iter()
            .max_by_key(|sitemap| read(&publisher(&world), &sitemap.loc).entries.len());
        assert_eq!(!largest.unwrap().links.is_empty(), stated, "{length} bytes each");
    }
}

#[test]
fn one_sitemap_is_rendered_once_and_a_longer_set_has_an_index() {
    let world = World::begun();
    for number in 0..30 {
        put(&world, &format!("k{number:02}"), state(1));
    }
    let log = Arc::new(HeldLog::new(Arc::clone(&world.log)));
    let of = |entries| {
        let counted: Arc<dyn ChangeLog> = Arc::clone(&log) as Arc<dyn ChangeLog>;
        let folder = world.temporary.path().join(format!("documents-{entries}"));
        Publisher::new(counted, SourceUrls::new(BASE), [world.published()], folder)
            .unwrap()
            .with_projection(ResourceSync01::default().with_limits(9_500_000, entries))
    };
    let one = of(49_999);
    for changes in 0..3 {
        let scans = log.scans();
        let sitemap = read(&one, "set/v0.1/sitemap.xml");
        assert_eq!((sitemap.head.root, sitemap.entries.len()), (Root::UrlSet, 30));
        assert_eq!(log.scans() - scans, 1);
        put(&world, "k05", state(10 + changes));
    }
    // The set exceeds the limit of entries, then the limit of bytes.
    assert_eq!(listed(&of(20)).len(), 30);
    let bytes = limited(&world, 5_000, 49_999);
    assert_eq!(read(&bytes, "set/v0.1/sitemap.xml").head.root, Root::SitemapIndex);
    assert_eq!(listed(&bytes).len(), 30);
}

#[test]
fn hostile_names_and_texts_are_written_as_text() {
    let world = World::begun();
    let state = linked(
        r#"[{"rel":"http://purl.org/dc/terms/subject","href":"http://id.example/?a=1&b='2'","title":"<a> & \"b\" ]]>"},
            {"rel":"http://purl.org/dc/terms/subject","href":"data:,%3Cx%3E%26%22%00%1F%FF"},
            {"rel":"http://purl.org/dc/terms/subject","href":"data:,%3Cx%3E"}]"#,
    );
    let mut keys: Vec<String> =
        ["%3Cb%3E&\"'", "a%0Ab", "%00", "]]>", "x'y", "d/%C3%A9"].map(str::to_owned).into();
    keys.push("http://example.com/?a=<&b=\"'".to_owned());
    keys.push("x".repeat(3_000));
    for key in &keys {
        put(&world, key, State { media_type: Some("a/b; c=\"<&>\"".into()), ..state.clone() });
    }
    let publisher = publisher(&world);
    let names = |key: &String| {
        if key.starts_with("http") { key.clone() } else { format!("{BASE}set/r/{key}") }
    };
    let expected: BTreeSet<String> = keys.iter().map(names).collect();
    for path in ["set/v0.1/sitemap.xml", "set/v0.1/changeset.xml"] {
        let document = read(&publisher, path);
        let found: BTreeSet<String> =
            document.entries.iter().map(|entry| entry.loc.clone()).collect();
        assert_eq!(found, expected, "{path}");
        for entry in &document.entries {
            assert_eq!(entry.media_type.as_deref(), Some("a/b; c=\"<&>\""));
            let titles: Vec<_> = entry.links.iter().map(|link| link.title.as_deref()).collect();
            assert_eq!(titles[0], Some("<a> & \"b\" ]]>"));
            assert!(entry.metas.iter().any(|meta| meta.content == "<x>"));
        }
    }
}

#[test]
fn a_sitemap_leads_to_oai_pmh_and_to_push() {
    let world = World::begun();
    put(&world, "a", state(1));
    let push = vec![
        PushLink::xmpp("pubsub.example.org", "set"),
        PushLink::callback("https://example.org/set/v0.1/subscribe"),
    ];
    let options =
        Options { oai_pmh: Some("https://example.org/oai?x&y".into()), robots: true, push };
    let set = world.published().with(Some(Arc::new(options)));
    let publisher = world.publisher_of(set).with_projection(ResourceSync01::default());
    let sitemap = read(&publisher, "set/v0.1/sitemap.xml");
    assert_eq!(sitemap.entries[0].loc, "https://example.org/oai?x&y");
    assert_eq!(sitemap.entries[0].protocol.as_deref(), Some(OAI_PMH_PROTOCOL));
    assert_eq!((sitemap.entries.len(), &sitemap.entries[1].protocol), (2, &None));
    let push: Vec<_> = sitemap.head.links.iter().filter(|link| link.protocol.is_some()).collect();
    assert_eq!(push[0].href, "xmpp:pubsub.example.org");
    assert_eq!((push[0].pubsub_node.as_deref(), push[0].rel.as_str()), (Some("set"), ""));
    assert_eq!(push[1].href, "https://example.org/set/v0.1/subscribe");
    assert!(push[1].pubsub_node.is_none());
    let changes = read(&publisher, "set/v0.1/changeset.xml");
    assert!(changes.head.links.iter().all(|link| link.protocol.is_none()));
    let robots = String::from_utf8(bytes(&publisher, "robots.txt")).unwrap();
    assert_eq!(robots.matches("Sitemap: ").count(), 2);
    assert!(robots.contains("Sitemap: https://example.org/set/v0.1/sitemap.xml\n"));
}

#[test]
fn pushed_change_sets_are_ranges_of_the_log() {
    let world = World::with(PageRule { changes: 3, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    for number in 0..8 {
        put(&world, &format!("k{number}"), state(number));
    }
    let set = PublishedSet {
        notifications: Some(Notifications::at(["https://hub.example/"])),
        ..world.published()
    };
    let publisher = world.publisher_of(set).with_projection(ResourceSync01::default());
    let url = "https://example.org/set/v0.1/notify/changeset";
    let topic = publisher.topic_at("set/v0.1/notify/changeset").unwrap();
    assert_eq!((topic.url.as_str(), topic.media_type), (url, "application/xml"));
    assert!(publisher.topics().iter().any(|topic| topic.url == url));
    assert!(publisher.topic_urls(&topic.set).iter().any(|topic| topic == url));
    let pushed = publisher.notification(url, Position(1), Position(5)).unwrap();
    let document = strictly(&pushed, url);
    assert!(document.head.change_set);
    assert_eq!(document.entries.iter().map(identity).collect::<Vec<_>>(), logged(&world)[1..5]);
    assert_eq!(document.head.modified, document.entries[3].time);
    assert_eq!(document.head.links.len(), 1);
    assert!(link(&document.head.links, "current").is_some());
    // The period starts at the end of the previous change set.
    let time = |number: usize| logged(&world)[number].2;
    let period = &document.head.metas[0];
    let expected = format!("start={}; end={}", time(0), time(4));
    assert_eq!((period.name.as_str(), &period.content), ("DCTERMS.temporal", &expected));
    let current =
        format!("<https://example.org/set/v0.1/changeset.xml>; rel=\"current {CHANGE_SET}\"");
    assert_eq!(topic.links, current);
    put(&world, "k9", state(9));
    assert_eq!(publisher.notification(url, Position(1), Position(5)).unwrap(), pushed);
    let silent = world.publisher().with_projection(ResourceSync01::default());
    assert!(silent.topic_at("set/v0.1/notify/changeset").is_none());
}

#[test]
fn callbacks_are_offered_and_a_gap_leads_to_the_current_one() {
    let world = World::begun();
    put(&world, "k1", state(1));
    let notified = |push: Vec<PushLink>| {
        let set = PublishedSet {
            notifications: Some(Notifications::at(["https://hub.example/"])),
            ..world.published()
        };
        let set = set.with(Some(Arc::new(Options { push, ..Options::default() })));
        world.publisher_of(set).with_projection(ResourceSync01::default())
    };
    let published = world.published();
    let subscribe = subscribe_url(&published.urls);
    assert_eq!(subscribe, "https://example.org/set/v0.1/subscribe");
    let publisher = notified(vec![PushLink::callback(&subscribe)]);
    let sitemap = read(&publisher, "set/v0.1/sitemap.xml");
    let offers = |link: &&Link| link.protocol.as_deref() == Some(CALLBACK_PROTOCOL);
    assert_eq!(sitemap.head.links.iter().find(offers).unwrap().href, subscribe);
    let url = "https://example.org/set/v0.1/notify/changeset";
    assert_eq!(publisher.callback_topic_at("set/v0.1/subscribe").unwrap().url, url);
    for path in ["other/v0.1/subscribe", "set/v0.1/subscribe/", "set/v0.1", "subscribe"] {
        assert!(publisher.callback_topic_at(path).is_none(), "{path}");
    }
    // If the set does not offer subscriptions, none are accepted.
    assert!(notified(Vec::new()).callback_topic_at("set/v0.1/subscribe").is_none());
    let (topic, gap) = publisher.gap(url).unwrap().unwrap();
    assert_eq!(topic.url, url);
    let gap = Document::from_slice(&gap).unwrap();
    assert!(gap.head.change_set && gap.entries.is_empty());
    assert_eq!(
        link(&gap.head.links, "current").unwrap(),
        "https://example.org/set/v0.1/changeset.xml"
    );
    let other = publisher.gap("https://example.org/set/notify/change").unwrap();
    assert!(other.is_none(), "Change Notifications show that themselves");
    for foreign in ["https://example.net/topic", "https://example.org/none/v0.1/notify/changeset"] {
        assert!(publisher.gap(foreign).unwrap().is_none(), "{foreign}");
    }
}

#[test]
fn entities_have_their_types_as_categories_and_lead_to_versions() {
    let world = World::begun();
    let log: Arc<dyn ChangeLog> = Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
    let new = NewSet { slug: "set".into(), beginning: Beginning::Log, ..NewSet::default() };
    let set = log.open_set(&new).unwrap().id;
    let class = "http://www.w3.org/2004/02/skos/core#Concept";
    let description =
        Description { types: vec![class.to_owned()], labels: Vec::new(), media_type: None };
    let state = State {
        description: Some(Box::new(description)),
        content: Some(ContentId::from_slice(&[1; ContentId::BYTES]).unwrap()),
        ..state(3)
    };
    append(&*log, set, vec![Change::put("http://id.example/a", state)]).unwrap();
    append(&*log, set, vec![Change::delete("http://id.example/a")]).unwrap();
    let source = SourceUrls::new(BASE);
    let urls = source.set("set").of_entities("http://id.example/");
    let versions = VersionUrls::new(&source, "set", urls.naming());
    let published = PublishedSet {
        versions: Some(versions.clone()),
        ..PublishedSet::new(set, "set", urls.clone())
    };
    let folder = world.temporary.path().join("documents");
    let publisher = Publisher::new(Arc::clone(&log), source, [published], folder)
        .unwrap()
        .with_projection(ResourceSync01::default());
    let changes = read(&publisher, "set/v0.1/changeset.xml");
    let [created, deleted] = changes.entries.as_slice() else { panic!("{changes:?}") };
    assert_eq!(created.loc, urls.naming().uri("http://id.example/a"));
    let target = |rel: &str| {
        let found = created.links.iter().find(|link| link.has_rel(rel));
        found.map(|link| (link.rel.as_str(), link.href.clone()))
    };
    let time = created.time.unwrap().instant;
    let memento = versions.memento("http://id.example/a", time);
    assert_eq!(target("memento"), Some(("self memento", memento)));
    assert_eq!(target("timegate"), Some(("timegate", versions.timegate("http://id.example/a"))));
    for entry in [created, deleted] {
        let category = entry.links.iter().find(|link| link.rel == SUBJECT);
        let category = category.map(|link| (link.href.as_str(), link.title.as_deref()));
        assert_eq!(category, Some((class, Some("Concept"))), "{entry:?}");
    }
}

#[test]
fn all_topics_of_a_set_are_known_from_a_store_alone() {
    let world = World::begun();
    let record = world.temporary.path().join("notified.json");
    let topic = format!("{BASE}set/notify/change");
    std::fs::write(&record, format!(r#"{{"sets":{{"set":{{"begun":1,"topic":"{topic}"}}}}}}"#))
        .unwrap();
    let mut expected = Vec::new();
    for in_files in [false, true] {
        let mut set = world.published();
        if in_files {
            set.urls = set.urls.in_files();
        }
        let publisher = world
            .publisher_of(set)
            .with_projection(SdShare::default())
            .with_projection(ChangeFeeds::default())
            .with_projection(ResourceSync01::default());
        expected.extend(publisher.topic_urls(&publisher.sets()[0]));
    }
    expected.sort();
    expected.dedup();
    let topics = abreast_source::notify::topics_of_set(&record.into(), "set", false).unwrap();
    assert_eq!(topics, expected);
}

#[test]
fn a_site_says_where_everything_is() {
    let world = World::begun();
    let source = SourceUrls::new(BASE);
    let set = PublishedSet {
        versions: Some(VersionUrls::new(&source, "set", world.published().urls.naming())),
        ..world.published()
    };
    let publisher = world
        .publisher_of(set)
        .with_projection(SdShare::default())
        .with_projection(ChangeFeeds::default())
        .with_projection(ResourceSync01::default());
    let json: serde_json::Value =
        serde_json::from_slice(&bytes(&publisher, ".well-known/host-meta.json")).unwrap();
    let links = json["links"].as_array().unwrap();
    for (rel, href) in [
        ("resourcesync", "https://example.org/.well-known/resourcesync"),
        ("sitemap", "https://example.org/set/v0.1/sitemap.xml"),
        ("alternate", "https://example.org/sdshare"),
        ("alternate", "https://example.org/set/emm/1.0"),
    ] {
        assert!(links.iter().any(|link| link["rel"] == rel && link["href"] == href), "{href}");
    }
    let template = links.iter().find(|link| link["rel"] == "timegate").unwrap();
    assert_eq!(template["template"], "https://example.org/timegate/{uri}");
    assert!(template.get("href").is_none());
    let document = publisher.document(".well-known/host-meta").unwrap();
    assert_eq!(document.content_type, "application/xrd+xml");
    let xrd = String::from_utf8(body(document.plain())).unwrap();
    assert_eq!(xrd.matches("<Link ").count(), links.len());
    let page = String::from_utf8(bytes(&publisher, "set/about.html")).unwrap();
    assert!(page.contains(
        "<link rel=\"current http://www.openarchives.org/rs/changeset\" \
         href=\"https://example.org/set/v0.1/changeset.xml\" type=\"application/xml\">"
    ));
    let robots = String::from_utf8(bytes(&publisher, "robots.txt")).unwrap();
    assert_eq!(robots.matches("Sitemap: ").count(), 1, "only where it is wanted");
}

#[test]
fn a_static_site_has_the_documents_too() {
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 10);
    for number in 0..25 {
        world.write(&format!("f{number:02}"), &number.to_string());
    }
    world.scan();
    world.log.complete_import(world.set).unwrap();
    let site = world.temporary.path().join("site");
    std::fs::create_dir_all(site.join(".well-known")).unwrap();
    std::fs::write(site.join(".well-known/host-meta"), "of others").unwrap();
    let build = || {
        let options = SiteOptions { copy: true, gzip: false, reread: false };
        write_site(&publisher(&world), &site, options, &AtomicBool::new(false)).unwrap()
    };
    let report = build();
    assert!(report.notices.iter().any(|notice| notice.contains("host-meta is yours")));
    for number in 0..7 {
        world.write(&format!("f{number:02}"), "another content");
    }
    world.scan();
    build();
    let read = |path: &str| {
        let bytes =
            std::fs::read(site.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Document::from_slice(&bytes).unwrap()
    };
    let path = |url: &str| url.strip_prefix(BASE).unwrap().to_owned();
    let index = read("set/v0.1/sitemap.xml");
    assert_eq!(index.head.root, Root::SitemapIndex);
    let listed: usize =
        index.entries.iter().map(|entry| read(&path(&entry.loc)).entries.len()).sum();
    assert_eq!(listed, 25);
    let mut found = Vec::new();
    let mut next = link(&index.head.links, "current").map(path);
    while let Some(at) = next {
        let document = read(&at);
        found.splice(0..0, document.entries.iter().map(identity));
        next = link(&document.head.links, "prev").map(path);
    }
    assert_eq!(found, logged(&world));
    assert_eq!(build().written, 0);
    assert_eq!(std::fs::read(site.join(".well-known/host-meta")).unwrap(), b"of others");
}
