//! Versions: stored contents, their removal, and the links from lists to versions.

use crate::world::{BASE, World, bytes};
use abreast_contents::Contents;
use abreast_core::contents::ContentStore as _;
use abreast_core::{ContentId, KeyRange, Order, State, Version, VersionPolicy};
use abreast_folder::Folder;
use abreast_resourcesync::v1_1::{Document, Entry};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::versions::{Collector, KeptSet, TimeMap, VersionUrls, collect_all};
use abreast_source::{DigestPolicy, IngestOptions, ScanOptions, scan};
use abreast_testkit::eventually;
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn contents(world: &World) -> Contents {
    Contents::open(&world.temporary.path().join("contents")).unwrap()
}

/// Scans the folder and stores a copy of each content.
fn keep(world: &World, contents: &Contents) {
    let ingest = IngestOptions {
        settle: Duration::ZERO,
        digests: DigestPolicy::Both,
        contents: Some(Arc::new(contents.clone())),
        ..IngestOptions::default()
    };
    let options = ScanOptions { ingest, ..ScanOptions::default() };
    let folder = Folder::open(&world.folder).unwrap();
    let report =
        scan(&folder, b"", &*world.log, world.set, &options, &AtomicBool::new(false)).unwrap();
    assert_eq!(report.ingest.problem_count, 0, "{:?}", report.ingest.problems);
    if world.log.head(world.set).unwrap().importing {
        world.log.complete_import(world.set).unwrap();
    }
}

fn versions(world: &World, key: &str) -> Vec<Version> {
    world.log.versions(world.set, key, Timestamp::MIN, Order::OldestFirst, 1_000).unwrap()
}

fn kept_set(world: &World, policy: VersionPolicy) -> Vec<KeptSet> {
    vec![KeptSet { set: world.set, slug: "set".into(), policy }]
}

fn collect(world: &World, contents: &Contents, policy: VersionPolicy) {
    collect_all(Arc::clone(&world.log), Arc::new(contents.clone()), kept_set(world, policy))
        .unwrap();
}

/// The bytes of each version, or `None` for a deletion.
fn texts(world: &World, contents: &Contents, key: &str) -> Vec<Option<String>> {
    let read = |state: State| {
        let mut text = String::new();
        contents.open_read(&state.content.unwrap()).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(state.length, Some(text.len() as u64));
        text
    };
    versions(world, key).into_iter().map(|version| version.state.map(read)).collect()
}

fn in_folder(contents: &Contents) -> BTreeSet<ContentId> {
    let mut all = BTreeSet::new();
    for first in 0..=255 {
        let mut note = |id| {
            all.insert(id);
            ControlFlow::Continue(())
        };
        contents.visit(first, &mut note).unwrap();
    }
    all
}

#[expect(clippy::unnecessary_wraps, reason = "stands beside `None`")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn every_content_is_kept_before_its_record_and_equal_ones_once() {
    let world = World::new();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = contents(&world);
    let large = "large ".repeat(50_000);
    world.write("a", "one");
    world.write("large", &large);
    world.write("same", "one");
    keep(&world, &contents);
    world.write("a", "two");
    world.write("large", "small now");
    keep(&world, &contents);
    std::fs::remove_file(world.folder.join("a")).unwrap();
    keep(&world, &contents);
    world.write("a", "one");
    keep(&world, &contents);
    assert_eq!(texts(&world, &contents, "a"), [some("one"), some("two"), None, some("one")]);
    assert_eq!(texts(&world, &contents, "large"), [Some(large), some("small now")]);
    assert_eq!(in_folder(&contents).len(), 4, "`one` is kept once");
    let kept =
        world.log.collect_versions(world.set, &VersionPolicy::default(), 1).unwrap().kept_bytes;
    assert_eq!(kept, 3 + 3 + 300_000 + 9);
}

#[test]
fn what_cannot_be_kept_is_not_recorded() {
    let world = World::new();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = contents(&world);
    let large = "large ".repeat(50_000);
    for content in ["small", &large] {
        world.write("a", content);
        world.write("b", "another");
        // Another file is at the path of the copy.
        let elsewhere = tempfile::tempdir().unwrap();
        let id = Contents::open(elsewhere.path())
            .unwrap()
            .put_bytes(content.as_bytes())
            .unwrap()
            .id()
            .to_string();
        let place = world.temporary.path().join("contents").join(&id[..2]);
        std::os::unix::fs::symlink(elsewhere.path(), &place).unwrap();
        let ingest = IngestOptions {
            settle: Duration::ZERO,
            contents: Some(Arc::new(contents.clone())),
            ..IngestOptions::default()
        };
        let options = ScanOptions { ingest, ..ScanOptions::default() };
        let folder = Folder::open(&world.folder).unwrap();
        let scanned = || {
            scan(&folder, b"", &*world.log, world.set, &options, &AtomicBool::new(false))
                .unwrap()
                .ingest
        };
        let report = scanned();
        assert_eq!(report.problem_count, 1);
        assert!(
            report.problems[0].contains("cannot read `a`")
                && report.problems[0].contains("symbolic link")
        );
        let before = versions(&world, "a").len();
        std::fs::remove_file(place).unwrap();
        assert_eq!(scanned().problem_count, 0);
        assert_eq!(
            versions(&world, "a").len(),
            before.max(1),
            "an import replaces, and recorded nothing before"
        );
        assert_eq!(texts(&world, &contents, "a"), [Some(content.to_owned())]);
        assert_eq!(texts(&world, &contents, "b"), [some("another")]);
    }
}

#[test]
fn bytes_go_with_the_last_version_that_needs_them() {
    let world = World::new();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = contents(&world);
    for round in 0..6 {
        world.write("a", &format!("a in round {round}"));
        world.write("b", if round % 2 == 0 { "even" } else { "odd" });
        keep(&world, &contents);
    }
    assert_eq!(in_folder(&contents).len(), 8);
    collect(&world, &contents, VersionPolicy { count: Some(2), ..VersionPolicy::default() });
    assert_eq!(texts(&world, &contents, "a"), [some("a in round 4"), some("a in round 5")]);
    assert_eq!(texts(&world, &contents, "b"), [some("even"), some("odd")]);
    assert_eq!(in_folder(&contents).len(), 4);
    collect(&world, &contents, VersionPolicy { bytes: Some(1), ..VersionPolicy::default() });
    assert_eq!(texts(&world, &contents, "a"), [some("a in round 5")]);
    assert_eq!(in_folder(&contents).len(), 2, "what is current stays");
}

#[test]
fn a_running_collection_follows_the_changes() {
    let world = World::new();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = contents(&world);
    let policy = VersionPolicy { count: Some(1), ..VersionPolicy::default() };
    let orphan = contents.put_bytes(b"a process was killed before it recorded this").unwrap().id();
    let in_use = contents.put_bytes(b"somebody is about to record this").unwrap();
    let collector = Collector::start(
        Arc::clone(&world.log),
        Arc::new(contents.clone()),
        kept_set(&world, policy),
        abreast_core::Lease::always(),
    )
    .unwrap();
    for round in 0..3 {
        world.write("a", &format!("round {round}"));
        keep(&world, &contents);
        eventually("only what is current is kept", || {
            let kept = in_folder(&contents);
            kept.len() == 2 && kept.contains(&in_use.id()) && !kept.contains(&orphan)
        });
        assert_eq!(texts(&world, &contents, "a"), [Some(format!("round {round}"))]);
    }
    collector.stop();
}

#[test]
fn what_was_published_before_is_kept_from_its_next_scan_on() {
    let world = World::new();
    world.write("a", "one");
    world.write("b", "one");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    world.write("a", "two");
    world.scan();
    world.log.keep_versions(world.set, true).unwrap();
    let before = (world.changes(), world.log.head(world.set).unwrap());
    let contents = contents(&world);
    // The digest remains MD5: another digest would be a change.
    let ingest = IngestOptions {
        settle: Duration::ZERO,
        contents: Some(Arc::new(contents.clone())),
        ..IngestOptions::default()
    };
    let options = ScanOptions { ingest, ..ScanOptions::default() };
    let folder = Folder::open(&world.folder).unwrap();
    for round in 0..2 {
        let report =
            scan(&folder, b"", &*world.log, world.set, &options, &AtomicBool::new(false)).unwrap();
        assert_eq!(
            report.ingest.unchanged,
            if round == 0 { 2 } else { 0 },
            "read once more, then no more"
        );
    }
    assert_eq!(
        (world.changes(), world.log.head(world.set).unwrap()),
        before,
        "nothing of it is a change"
    );
    assert_eq!(texts(&world, &contents, "a"), [some("two")]);
    assert_eq!(versions(&world, "a")[0].time, before.1.time, "since its last change");
    assert_eq!(texts(&world, &contents, "b"), [some("one")]);
}

#[test]
fn without_a_policy_nothing_is_kept() {
    let world = World::begun();
    world.write("a", "one");
    world.scan();
    assert_eq!(versions(&world, "a"), []);
    let mut rows = 0;
    let mut count = |resource: &abreast_core::Resource| {
        rows += 1;
        assert_eq!(resource.state.content, None);
        ControlFlow::Continue(())
    };
    world.log.scan(world.set, &KeyRange::default(), &mut count).unwrap();
    assert_eq!(
        (rows, std::fs::exists(world.temporary.path().join("contents")).unwrap()),
        (1, false)
    );
}

fn publisher(world: &World) -> (Publisher, VersionUrls) {
    let urls = SourceUrls::new(BASE);
    let set_urls = urls.set("set");
    let versions = VersionUrls::new(&urls, "set", set_urls.naming());
    let set = PublishedSet {
        versions: Some(versions.clone()),
        ..PublishedSet::new(world.set, "set", set_urls)
    };
    let folder = world.temporary.path().join("documents");
    (Publisher::new(Arc::clone(&world.log), urls, vec![set], folder).unwrap(), versions)
}

fn entry(publisher: &Publisher, path: &str, name: &str) -> Vec<Entry> {
    let document = Document::from_slice(&bytes(publisher, path)).unwrap();
    document.entries.into_iter().filter(|entry| entry.loc.ends_with(name)).collect()
}

fn target(entry: &Entry, rel: &str) -> Option<String> {
    entry.links.iter().find(|link| link.has_rel(rel)).map(|link| link.href.clone())
}

#[test]
fn lists_lead_to_versions() {
    let world = World::begun();
    world.write("before", "recorded before versions were kept");
    world.scan();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = contents(&world);
    let long = "x".repeat(150);
    world.write("a b", "one");
    world.write(&long, "a name too long for three links in each list");
    keep(&world, &contents);
    world.write("a b", "two");
    keep(&world, &contents);
    let (publisher, urls) = publisher(&world);
    let changes = entry(&publisher, "set/changelist.xml", "/a%20b");
    let times: Vec<_> = versions(&world, "a%20b").iter().map(|version| version.time).collect();
    assert_eq!((changes.len(), times.len()), (2, 2));
    for (change, time) in changes.iter().zip(times) {
        assert_eq!(target(change, "memento"), Some(urls.memento("a%20b", time)));
        assert_eq!(target(change, "timegate"), Some(urls.timegate("a%20b")));
        assert_eq!(target(change, "timemap"), Some(urls.timemap("a%20b")));
        let memento = change.links.iter().find(|link| link.has_rel("memento")).unwrap();
        assert_eq!((&memento.digests, memento.length), (&change.digests, change.length));
        assert!(memento.modified.is_some());
        let timegate = change.links.iter().find(|link| link.has_rel("timegate")).unwrap();
        assert_eq!(
            (timegate.length, &timegate.media_type),
            (None, &None),
            "meaningless for a TimeGate"
        );
    }
    assert!(
        entry(&publisher, "set/changelist.xml", "/before")[0].links.is_empty(),
        "as it was recorded"
    );
    let listed = entry(&publisher, "set/resourcelist.xml", "/a%20b");
    assert_eq!(target(&listed[0], "timegate"), Some(urls.timegate("a%20b")));
    assert!(target(&listed[0], "timemap").is_some() && target(&listed[0], "memento").is_none());
    for list in ["set/changelist.xml", "set/resourcelist.xml"] {
        assert!(entry(&publisher, list, &long)[0].links.is_empty());
    }
}

#[test]
fn a_long_timemap_has_pages() {
    let world = World::begun();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = contents(&world);
    for round in 0..7 {
        world.write("a", &format!("round {round}"));
        keep(&world, &contents);
    }
    let (_, urls) = publisher(&world);
    let times: Vec<_> = versions(&world, "a").iter().map(|version| version.time).collect();
    let read = |from| TimeMap::read(&*world.log, world.set, "a", from, 3).unwrap();
    let (mut from, mut seen) = (None, Vec::new());
    while let Some(page) = read(from) {
        let text = page.to_links(&urls, "a");
        let links = abreast_webtypes::parse_link_header(&text.replace('\n', " ")).unwrap();
        let own = from.map_or_else(|| urls.timemap("a"), |from| urls.timemap_from("a", from));
        assert_eq!(links.iter().find(|link| link.has_rel("self")).unwrap().target, own);
        seen.extend(
            links
                .iter()
                .filter(|link| link.has_rel("memento"))
                .map(|link| (link.target.clone(), link.has_rel("first"), link.has_rel("last"))),
        );
        let others: Vec<_> =
            links.iter().filter(|link| link.has_rel("timemap")).map(|link| &link.target).collect();
        let next =
            times.iter().copied().find(|time| others.contains(&&urls.timemap_from("a", *time)));
        assert_eq!(
            others.contains(&&urls.timemap("a")),
            from.is_some(),
            "later pages lead back to the first"
        );
        if next.is_none() {
            break;
        }
        from = next;
    }
    let expected: Vec<_> = times
        .iter()
        .enumerate()
        .map(|(n, time)| (urls.memento("a", *time), n == 0, n == 6))
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(read(Some(times[6].next())), None);
}
