//! Dumps: packages are complete and correct, and together with the Change List equal the Source.

use crate::world::{BASE, World, bytes};
use abreast_core::{Change as LogChange, PageRule, State, SystemClock, append};
use abreast_resourcesync::package::member_name;
use abreast_resourcesync::v0_1;
use abreast_resourcesync::v1_1::{Capability, Change, Document, Entry, Root};
use abreast_source::OpenKept;
use abreast_source::dump::{
    Compression, DumpOptions, Dumper, Dumps, SetDumps, Since, SinceError, Which, check_dumps,
    repair_dumps,
};
use abreast_source::projection::resourcesync_0_1::ResourceSync01;
use abreast_source::projection::{FileContent, FileError, PublishedFile};
use abreast_source::publish::{Freshness, PublishError, Publisher};
use abreast_testkit::digest::sha256_hex;
use abreast_testkit::{Random, eventually};
use abreast_webtypes::Timestamp;
use md5::{Digest as _, Md5};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Made {
    shared: Arc<Dumps>,
    dumps: Arc<SetDumps>,
    publisher: Publisher,
    dumper: Option<Dumper>,
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(dumper) = self.dumper.take() {
            dumper.stop();
        }
    }
}

fn options() -> DumpOptions {
    DumpOptions {
        every: Duration::ZERO,
        patience: Duration::from_secs(1),
        ..DumpOptions::default()
    }
}

fn open(world: &World, options: DumpOptions, kept: Option<OpenKept>) -> Made {
    let (shared, dumps) = world.dumps(options, kept);
    let publisher = world.publisher_of(world.published().with(Some(Arc::clone(&dumps))));
    Made { shared, dumps, publisher, dumper: None }
}

fn start(world: &World, options: DumpOptions, kept: Option<OpenKept>) -> Made {
    let mut made = open(world, options, kept);
    made.dumper = Some(made.shared.start([Arc::clone(&made.dumps)]).unwrap());
    made
}

impl Made {
    fn read(&self, path: &str) -> Document {
        Document::from_slice(&bytes(&self.publisher, path)).unwrap()
    }

    fn resource_dump(&self) -> Document {
        eventually("there is a Resource Dump", || self.dumps.newest_resources().is_some());
        self.read("set/resourcedump.xml")
    }

    /// The file at a URL that a document contains.
    fn file(&self, url: &str) -> PathBuf {
        let name = url.strip_prefix(&format!("{BASE}set/dump/")).unwrap();
        self.dumps.file(name).unwrap_or_else(|| panic!("{url} is not there"))
    }
}

/// A URI and its bytes, or `None` for a deletion.
type Bitstream = (String, Option<Vec<u8>>);

/// Unpacks and checks a package: every bitstream equals its entry, and the package has no other
/// members.
fn unpack(path: &Path) -> (Document, Vec<Bitstream>) {
    let mut zip = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut read = |name: &str| {
        let mut bytes = Vec::new();
        zip.by_name(name)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    };
    let manifest = read("manifest.xml");
    let copy = fs::read(path.with_extension("xml")).unwrap();
    assert_eq!(manifest, copy, "the copy beside the package is the same");
    let manifest = Document::from_slice(&manifest).unwrap();
    assert!(
        manifest
            .head
            .links
            .iter()
            .any(|ln| ln.has_rel("up") && ln.href.ends_with("/set/capabilitylist.xml"))
    );
    let mut found = Vec::new();
    let mut members = 1;
    for entry in &manifest.entries {
        let Some(path) = &entry.path else {
            assert_eq!(entry.change, Some(Change::Deleted));
            found.push((entry.loc.clone(), None));
            continue;
        };
        assert!(path.starts_with('/'));
        let bytes = read(member_name(path));
        assert_eq!(entry.length, Some(bytes.len() as u64), "{path}");
        assert_eq!(entry.digests.md5, Some(Md5::digest(&bytes).into()), "{path}");
        assert!(entry.media_type.is_some() && entry.lastmod.is_some());
        found.push((entry.loc.clone(), Some(bytes)));
        members += 1;
    }
    assert_eq!(zip.len(), members, "the manifest lists every member");
    (manifest, found)
}

fn uri(key: &str) -> String {
    format!("{BASE}set/r/{key}")
}

fn large(seed: u8) -> Vec<u8> {
    (0..700_000_u32).map(|number| (number >> 3) as u8 ^ seed).collect()
}

#[test]
fn a_resource_dump_holds_every_resource_as_listed() {
    let world = World::new();
    let wanted: BTreeMap<_, _> = [
        ("a.txt", b"aaa".to_vec()),
        ("empty", Vec::new()),
        ("fo%20lder/%C3%A9.ttl", b"<a> <b> <c> .".to_vec()),
        ("large.bin", large(0)),
    ]
    .into_iter()
    .collect();
    for (key, bytes) in &wanted {
        let path = world.folder.join(key.replace("%20", " ").replace("%C3%A9", "é"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let odd = world
        .folder
        .join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"back\\slash\xff"));
    fs::write(odd, "odd").unwrap();
    world.scan();
    for compression in [Compression::Store, Compression::Deflate] {
        let made = start(&world, DumpOptions { compression, ..options() }, None);
        assert!(
            !made.read_capabilities().contains(&Capability::ResourceDump),
            "a dump that is not there is not announced"
        );
        if world.log.head(world.set).unwrap().importing {
            world.log.complete_import(world.set).unwrap();
        }
        let dump = made.resource_dump();
        assert_eq!(
            (dump.head.root, dump.head.capability),
            (Root::UrlSet, Some(Capability::ResourceDump))
        );
        let head = world.log.head(world.set).unwrap();
        assert_eq!(dump.head.at.unwrap().instant, head.time);
        assert!(dump.head.completed.unwrap().instant >= head.time);
        assert_eq!(dump.entries.len(), 1);
        let entry = &dump.entries[0];
        let package = made.file(&entry.loc);
        let zip = fs::read(&package).unwrap();
        assert_eq!(
            (entry.length, entry.digests.md5),
            (Some(zip.len() as u64), Some(Md5::digest(&zip).into()))
        );
        assert_eq!(entry.media_type.as_deref(), Some("application/zip"));
        assert!(entry.at.is_some() && entry.completed.is_some());
        let contents = entry.links.iter().find(|ln| ln.has_rel("contents")).unwrap();
        assert_eq!(made.file(&contents.href), package.with_extension("xml"));
        let (manifest, found) = unpack(&package);
        assert_eq!(manifest.head.capability, Some(Capability::ResourceDumpManifest));
        assert_eq!(manifest.head.at, dump.head.at);
        assert!(manifest.head.completed.is_some());
        let mut expected: BTreeMap<_, _> =
            wanted.iter().map(|(key, bytes)| (uri(key), Some(bytes.clone()))).collect();
        expected.insert(uri("back%5Cslash%FF"), Some(b"odd".to_vec()));
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected);
        assert!(made.read_capabilities().contains(&Capability::ResourceDump));
        drop(made);
        fs::remove_dir_all(world.temporary.path().join("dumps")).unwrap();
    }
}

impl Made {
    fn read_capabilities(&self) -> Vec<Capability> {
        let list = self.read("set/capabilitylist.xml");
        list.entries.iter().filter_map(|entry| entry.capability).collect()
    }
}

#[test]
fn a_large_set_comes_in_parts() {
    let world = World::begun();
    for number in 0..20 {
        world.write(&format!("f{number:02}"), &"x".repeat(1_000 + number));
    }
    fs::write(world.folder.join("larger"), large(1)).unwrap();
    world.scan();
    let made = start(&world, DumpOptions { part_size: 10_000, ..options() }, None);
    let dump = made.resource_dump();
    assert!((4..=6).contains(&dump.entries.len()), "{}", dump.entries.len());
    let mut found = BTreeMap::new();
    for entry in &dump.entries {
        let package = made.file(&entry.loc);
        let (_, resources) = unpack(&package);
        let bytes: usize =
            resources.iter().filter_map(|(_, bytes)| bytes.as_ref()).map(Vec::len).sum();
        assert!(
            bytes <= 10_000 || resources.len() == 1,
            "a part is larger only if one resource is"
        );
        found.extend(resources);
    }
    assert_eq!(found.len(), 21);
}

#[test]
fn an_empty_set_has_an_empty_package() {
    let world = World::begun();
    let made = start(&world, options(), None);
    let dump = made.resource_dump();
    assert!(unpack(&made.file(&dump.entries[0].loc)).1.is_empty());
}

#[test]
fn a_dump_on_demand_is_made_when_asked_for() {
    let world = World::begun();
    world.write("a", "a");
    world.scan();
    let made = start(
        &world,
        DumpOptions { scheduled: false, every: Duration::from_secs(3_600), ..options() },
        None,
    );
    assert!(matches!(made.publisher.document("set/resourcedump.xml"), Err(PublishError::Making)));
    let first = made.resource_dump();
    world.write("b", "b");
    world.scan();
    assert_eq!(made.resource_dump(), first, "not again before its time");
    let none = World::begun();
    assert!(matches!(
        none.publisher().document("set/resourcedump.xml"),
        Err(PublishError::NotFound)
    ));
}

#[test]
fn a_dump_that_cannot_be_made_is_answered_with_the_reason() {
    let world = World::begun();
    world.write("a", "a");
    world.scan();
    fs::remove_file(world.folder.join("a")).unwrap();
    let unable = DumpOptions { scheduled: false, patience: Duration::ZERO, ..options() };
    let made = start(&world, unable, None);
    eventually("the reason is known", || {
        let read = made.publisher.document("set/resourcedump.xml");
        matches!(read, Err(PublishError::NotMade { reason, seconds })
            if reason.starts_with("the dump cannot be made: `a` is published") && seconds >= 10)
    });
    let publisher = with_0_1(&made, &world, (9_500_000, 49_999));
    for path in ["set/v0.1/dump.zip", "set/v0.1/dump.warc.gz"] {
        let asked = of_0_1(&publisher, path);
        assert!(matches!(asked, Err(FileError::Later { .. })), "{path}");
    }
}

#[test]
fn a_replaced_dump_remains_and_a_restart_finds_the_newest() {
    let world = World::begun();
    world.write("a", "1");
    world.scan();
    let mut made = start(
        &world,
        DumpOptions { keep: 1, grace: Duration::from_secs(3_600), ..options() },
        None,
    );
    let first = made.resource_dump();
    world.write("a", "two");
    world.scan();
    eventually("there is a newer dump", || made.resource_dump() != first);
    assert!(made.file(&first.entries[0].loc).is_file(), "a download that began can be ended");
    let second = made.resource_dump();
    made.dumper.take().unwrap().stop();
    let made = start(&world, DumpOptions { keep: 1, grace: Duration::ZERO, ..options() }, None);
    assert_eq!(made.resource_dump(), second);
    let name = first.entries[0].loc.rsplit('/').next().unwrap().to_owned();
    eventually("the old dump is removed", || made.dumps.file(&name).is_none());
    assert!(made.file(&second.entries[0].loc).is_file());
}

#[test]
fn replaced_dumps_do_not_pile_up_however_often_one_is_made() {
    let world = World::begun();
    let grace = Duration::from_secs(3_600);
    let made = start(&world, DumpOptions { keep: 1, grace, scheduled: false, ..options() }, None);
    let mut begins = std::collections::BTreeSet::new();
    for number in 0..8 {
        world.write("a", &"x".repeat(number));
        world.scan();
        eventually("there is a newer dump", || {
            made.dumps.ask();
            made.dumps.newest_resources().is_some_and(|dump| begins.insert(dump.begin))
        });
    }
    eventually("the oldest left", || made.dumps.resources().len() == 5);
    assert_eq!(made.dumps.resources().last().map(|dump| dump.begin), begins.last().copied());
}

/// The file differs from its state in the log, and no change is recorded: a dump would lack the
/// resource.
#[test]
fn a_resource_that_cannot_be_had_as_recorded_prevents_the_dump() {
    let world = World::begun();
    world.write("a", "one");
    world.write("b", "other");
    world.scan();
    world.write("a", "two");
    let made =
        start(&world, DumpOptions { patience: Duration::from_millis(300), ..options() }, None);
    let folder = world.temporary.path().join("dumps/set/resources");
    let begun = || fs::read_dir(&folder).unwrap().count();
    eventually("it is tried", || begun() == 1);
    eventually("it is given up", || begun() == 0);
    assert!(made.dumps.newest_resources().is_none());
}

/// The file has changed, and the change is recorded while the dump is made.
#[test]
fn a_file_changed_meanwhile_is_packaged_as_recorded_in_the_log() {
    let world = World::begun();
    world.write("a", "one");
    fs::write(world.folder.join("large"), large(1)).unwrap();
    world.scan();
    let at = world.log.head(world.set).unwrap().time;
    world.write("a", "two, longer");
    fs::write(world.folder.join("large"), large(2)).unwrap();
    let made = start(&world, DumpOptions { patience: Duration::from_secs(30), ..options() }, None);
    let folder = world.temporary.path().join("dumps/set/resources");
    eventually("it is begun", || fs::read_dir(&folder).unwrap().count() == 1);
    world.scan();
    let dump = made.resource_dump();
    if dump.head.at.unwrap().instant == at {
        let (_, found) = unpack(&made.file(&dump.entries[0].loc));
        let found: BTreeMap<_, _> = found.into_iter().collect();
        assert_eq!(found[&uri("a")].as_deref(), Some(&b"two, longer"[..]));
        assert_eq!(found[&uri("large")], Some(large(2)));
    }
}

/// Packages are made while a writer changes the folder continuously. Together with the changes
/// after `at`, they must equal the Source.
#[test]
fn a_dump_made_during_change_plus_later_changes_is_complete() {
    for round in 0..3_u64 {
        let world = World::with(PageRule { changes: 50, ..PageRule::default() }, 40);
        for number in 0..200 {
            world.write(&format!("k{number:03}"), &format!("version 0 of {number}"));
        }
        world.scan();
        world.log.complete_import(world.set).unwrap();
        let world = Arc::new(world);
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let (world, stop) = (Arc::clone(&world), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut random = Random::new(round);
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..10 {
                        let path = format!("k{:03}", random.below(300));
                        match random.below(4) {
                            0 => drop(fs::remove_file(world.folder.join(path))),
                            1 => world.write(&path, &"large ".repeat(50_000 + random.index(1_000))),
                            _ => world.write(&path, &format!("version {}", random.number())),
                        }
                    }
                    world.scan();
                }
            })
        };
        let made = start(
            &world,
            DumpOptions { patience: Duration::from_millis(500), part_size: 2_000_000, ..options() },
            None,
        );
        let dump = made.resource_dump();
        let mut copy = BTreeMap::new();
        for entry in &dump.entries {
            let (manifest, found) = unpack(&made.file(&entry.loc));
            assert_eq!(manifest.head.at, dump.head.at);
            copy.extend(found.into_iter().map(|(loc, bytes)| (loc, md5_of(&bytes.unwrap()))));
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        world.scan();
        let at = dump.head.at.unwrap().instant;
        let mut replayed = 0;
        for entry in
            change_lists(&made).into_iter().filter(|entry| entry.datetime.unwrap().instant > at)
        {
            replayed += 1;
            match entry.change.unwrap() {
                Change::Deleted => drop(copy.remove(&entry.loc)),
                _ => drop(copy.insert(entry.loc, entry.digests.to_string())),
            }
        }
        let source: BTreeMap<_, _> =
            world.table().into_iter().map(|(key, digest)| (uri(&key), digest)).collect();
        assert_eq!(copy, source, "round {round}, {replayed} changes replayed");
        assert!(replayed > 0);
    }
}

fn md5_of(bytes: &[u8]) -> String {
    let digests = abreast_webtypes::Digests {
        md5: Some(Md5::digest(bytes).into()),
        ..abreast_webtypes::Digests::default()
    };
    digests.to_string()
}

fn change_lists(made: &Made) -> Vec<abreast_resourcesync::v1_1::Entry> {
    let top = made.read("set/changelist.xml");
    if top.head.root == Root::UrlSet {
        return top.entries;
    }
    let pages = 1..=top.entries.len() as u64;
    pages.flat_map(|page| made.read(&format!("set/changelist/{page}.xml")).entries).collect()
}

/// Stored versions, in a folder with names.
fn kept(world: &World) -> (OpenKept, impl Fn(&str, &str) + use<>) {
    let folder = world.temporary.path().join("kept");
    fs::create_dir_all(&folder).unwrap();
    let (set, log) = (world.set, Arc::clone(&world.log));
    let put = {
        let folder = folder.clone();
        move |key: &str, content: &str| {
            let id = abreast_core::ContentId(Md5::digest(content).repeat(2).try_into().unwrap());
            fs::write(folder.join(id.to_string()), content).unwrap();
            let state = abreast_core::State {
                length: Some(content.len() as u64),
                media_type: Some("text/plain".into()),
                digests: abreast_webtypes::Digests {
                    md5: Some(Md5::digest(content).into()),
                    ..abreast_webtypes::Digests::default()
                },
                content: Some(id),
                ..abreast_core::State::default()
            };
            append(&*log, set, vec![LogChange::put(key, state)]).unwrap();
        }
    };
    (
        Arc::new(move |id| {
            fs::read(folder.join(id.to_string())).map(abreast_core::contents::Content::of_bytes)
        }),
        put,
    )
}

#[test]
fn a_change_dump_has_one_bitstream_for_each_change() {
    let world = World::with(PageRule { changes: 4, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let (open_kept, put) = kept(&world);
    let made = start(
        &world,
        DumpOptions { changes: true, every: Duration::from_secs(3_600), ..options() },
        Some(open_kept),
    );
    assert!(matches!(made.publisher.document("set/changedump.xml"), Err(PublishError::NotFound)));
    // The Change Dump starts with the first change if the log was read before.
    eventually("the log was looked at", || made.dumps.newest_resources().is_some());
    put("a", "one");
    put("a", "two");
    put("b", &"large ".repeat(100_000));
    append(&*world.log, world.set, vec![LogChange::delete("a")]).unwrap();
    assert!(made.dumps.changes().is_empty(), "an open page is not packaged before its time");
    put("c", "see");
    eventually("the closed page is packaged", || !made.dumps.changes().is_empty());
    let dump = made.read("set/changedump.xml");
    assert_eq!((dump.head.capability, dump.head.until), (Some(Capability::ChangeDump), None));
    let entry = &dump.entries[0];
    let page = made.read("set/changelist/1.xml");
    assert_eq!((entry.from, entry.until), (page.head.from, page.head.until));
    let (manifest, found) = unpack(&made.file(&entry.loc));
    assert_eq!(manifest.head.capability, Some(Capability::ChangeDumpManifest));
    assert_eq!((manifest.head.from, manifest.head.until), (page.head.from, page.head.until));
    let expected = [
        (uri("a"), Some(b"one".to_vec())),
        (uri("a"), Some(b"two".to_vec())),
        (uri("b"), Some("large ".repeat(100_000).into_bytes())),
        (uri("a"), None),
    ];
    assert_eq!(found, expected);
    for (packaged, listed) in manifest.entries.iter().zip(&page.entries) {
        assert_eq!(
            (&packaged.loc, packaged.datetime, packaged.change),
            (&listed.loc, listed.datetime, listed.change)
        );
    }
    assert!(made.read_capabilities().contains(&Capability::ChangeDump));
}

#[test]
fn change_dumps_follow_each_other_without_gap_over_restarts() {
    let world = World::with(PageRule { changes: 3, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let (open_kept, put) = kept(&world);
    let every = DumpOptions {
        changes: true,
        every: Duration::from_secs(3_600),
        part_size: 2_000,
        ..options()
    };
    let mut made = start(&world, every.clone(), Some(Arc::clone(&open_kept)));
    eventually("the log was looked at", || made.dumps.newest_resources().is_some());
    for number in 0..10 {
        put("a", &format!("version {number} {}", "x".repeat(900)));
        if number == 4 {
            eventually("a page is packaged", || !made.dumps.changes().is_empty());
            made.dumper.take().unwrap().stop();
            made = start(&world, every.clone(), Some(Arc::clone(&open_kept)));
        }
    }
    eventually("all closed pages are packaged", || made.dumps.changes().len() == 3);
    let dump = made.read("set/changedump.xml");
    assert!(dump.entries.len() > 3, "a page too large for one package is split");
    let mut versions = Vec::new();
    for pair in dump.entries.windows(2) {
        assert_eq!(pair[0].until, pair[1].from, "nothing falls between two packages");
    }
    for entry in &dump.entries {
        let (manifest, found) = unpack(&made.file(&entry.loc));
        assert_eq!((manifest.head.from, manifest.head.until), (entry.from, entry.until));
        versions.extend(found.into_iter().map(|(_, bytes)| bytes.unwrap()[8]));
    }
    assert_eq!(versions, b"012345678");
}

#[test]
fn dumps_of_a_log_that_was_begun_again_begin_with_it() {
    let mut world = World::begun();
    let options = || DumpOptions { changes: true, every: Duration::from_millis(1), ..options() };
    {
        let (open_kept, put) = kept(&world);
        let made = start(&world, options(), Some(open_kept));
        put("a", "one");
        eventually("the first change is packaged", || made.dumps.changes().len() == 1);
        eventually("there is a Resource Dump", || made.dumps.newest_resources().is_some());
    }
    let path = world.temporary.path().join("source.db");
    // Only one program can open the store.
    world.log = Arc::new(abreast_store::SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
    abreast_store::backup::restart_log(&path, Timestamp::from_seconds(0)).unwrap();
    world.log = Arc::new(abreast_store::SqliteLog::open(&path, Arc::new(SystemClock)).unwrap());
    let (open_kept, put) = kept(&world);
    // The interval is long: dumps of the earlier log are replaced immediately.
    let every = Duration::from_secs(3_600);
    let slow = start(&world, DumpOptions { every, ..options() }, Some(Arc::clone(&open_kept)));
    let created = world.log.head(world.set).unwrap().created;
    eventually("the Resource Dump is of this log", || {
        slow.dumps.newest_resources().is_some_and(|dump| dump.begin >= created)
    });
    drop(slow);
    let made = start(&world, options(), Some(open_kept));
    put("a", "two");
    eventually("the change is packaged", || {
        made.dumps.changes().first().is_some_and(|dump| dump.begin >= created)
    });
    let dump = made.read("set/changedump.xml");
    assert_eq!(dump.head.from, made.read("set/changelist.xml").head.from);
}

#[test]
fn changes_of_an_open_page_are_packaged_when_due() {
    let world = World::begun();
    let (open_kept, put) = kept(&world);
    let made = start(
        &world,
        DumpOptions { changes: true, every: Duration::from_millis(1), ..options() },
        Some(open_kept),
    );
    put("a", "one");
    eventually("the first change is packaged", || made.dumps.changes().len() == 1);
    put("a", "two");
    eventually("the second is packaged", || made.dumps.changes().len() == 2);
    let dump = made.read("set/changedump.xml");
    assert_eq!(dump.entries[0].until, dump.entries[1].from);
    assert_eq!(dump.head.from, made.read("set/changelist.xml").head.from);
    let found: Vec<_> =
        dump.entries.iter().flat_map(|entry| unpack(&made.file(&entry.loc)).1).collect();
    assert_eq!(found, [(uri("a"), Some(b"one".to_vec())), (uri("a"), Some(b"two".to_vec()))]);
}

#[test]
fn the_oldest_packages_of_changes_leave_when_there_are_too_many() {
    let world = World::with(PageRule { changes: 1, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let (open_kept, put) = kept(&world);
    let options = DumpOptions {
        changes: true,
        changes_size: 3_500,
        every: Duration::from_secs(3_600),
        ..options()
    };
    let made = start(&world, options, Some(open_kept));
    eventually("the log was looked at", || made.dumps.newest_resources().is_some());
    for number in 0..5 {
        put("a", &format!("{number}{}", " ".repeat(1_000)));
    }
    let fourth = change_lists(&made)[3].datetime.unwrap().instant;
    eventually("the closed pages are packaged", || {
        made.dumps.changes().last().is_some_and(|dump| dump.end >= fourth)
    });
    eventually("the oldest leave", || made.dumps.changes().len() < 4);
    let dump = made.read("set/changedump.xml");
    assert_eq!(dump.head.from, dump.entries[0].from, "it speaks for what is there");
}

#[test]
fn a_change_dump_never_speaks_for_a_change_whose_bytes_are_gone() {
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let made = start(
        &world,
        DumpOptions { changes: true, every: Duration::from_secs(3_600), ..options() },
        None,
    );
    eventually("the log was looked at", || made.dumps.newest_resources().is_some());
    for content in ["1", "22", "333"] {
        world.write("a", content);
        world.scan();
    }
    world.write("b", "b");
    world.scan();
    world.write("c", "c");
    world.scan();
    // Page 1 has both superseded changes to `a`; page 2 has the last change to `a`, and `b`.
    eventually("what can be packaged is", || !made.dumps.changes().is_empty());
    let dump = made.read("set/changedump.xml");
    let (_, found) = unpack(&made.file(&dump.entries[0].loc));
    assert_eq!(found, [(uri("a"), Some(b"333".to_vec())), (uri("b"), Some(b"b".to_vec()))]);
    assert_eq!(dump.head.from, made.read("set/changelist/2.xml").head.from);
}

#[test]
fn what_changed_since_a_point_is_one_package() {
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let (open_kept, put) = kept(&world);
    let made = open(&world, DumpOptions { part_size: 10_000, ..options() }, Some(open_kept));
    for (key, content) in [("a", "one"), ("b", "bee"), ("a", "two"), ("c", "see"), ("a", "three")] {
        put(key, content);
    }
    let since = |point| {
        let path = made.dumps.since(point, Which::Every).unwrap();
        let (manifest, found) = unpack(&path);
        (
            manifest.head,
            found
                .into_iter()
                .map(|(_, bytes)| String::from_utf8(bytes.unwrap()).unwrap())
                .collect::<Vec<_>>(),
        )
    };
    let all = ["one", "bee", "two", "see", "three"];
    let times: Vec<_> = change_lists(&made).iter().map(|entry| entry.datetime.unwrap()).collect();
    for position in 0..=5 {
        let (head, found) = since(Since::Position(position));
        assert_eq!(found, all[position as usize..], "{position}");
        assert_eq!(head.until, Some(times[4]));
        if position > 0 {
            let time = times[position as usize - 1];
            assert_eq!(head.from, Some(time));
            assert_eq!(since(Since::Time(time.instant)).1, found);
            let before = abreast_webtypes::Timestamp::from_micros(time.instant.as_micros() - 1);
            assert_eq!(since(Since::Time(before)).1, all[position as usize - 1..]);
        }
    }
    let last =
        |position| unpack(&made.dumps.since(Since::Position(position), Which::Last).unwrap()).1;
    let bytes = |content: &str| Some(content.as_bytes().to_vec());
    assert_eq!(
        last(0),
        [(uri("b"), bytes("bee")), (uri("c"), bytes("see")), (uri("a"), bytes("three"))]
    );
    assert_eq!(last(3), [(uri("c"), bytes("see")), (uri("a"), bytes("three"))]);
    let again = made.dumps.since(Since::Position(2), Which::Every).unwrap();
    let before = again.metadata().unwrap().modified().unwrap();
    assert_eq!(
        made.dumps
            .since(Since::Position(2), Which::Every)
            .unwrap()
            .metadata()
            .unwrap()
            .modified()
            .unwrap(),
        before
    );
    assert!(matches!(
        made.dumps.since(Since::Position(6), Which::Every),
        Err(SinceError::Ahead { position: 5 })
    ));
    let epoch = abreast_webtypes::Timestamp::from_seconds(0);
    assert!(matches!(
        made.dumps.since(Since::Time(epoch), Which::Every),
        Err(SinceError::TooOld { .. })
    ));
    put("d", &"x".repeat(10_001));
    assert!(matches!(
        made.dumps.since(Since::Position(5), Which::Every),
        Err(SinceError::TooLarge { limit: 10_000 })
    ));
    assert!(since(Since::Position(6)).1.is_empty());
}

#[test]
fn a_package_since_a_point_is_refused_when_bytes_are_missing() {
    let world = World::begun();
    for content in ["1", "22"] {
        world.write("a", content);
        world.scan();
    }
    let made = open(&world, options(), None);
    assert!(matches!(
        made.dumps.since(Since::Position(0), Which::Every),
        Err(SinceError::NotKept { position: 1 })
    ));
    assert!(made.dumps.since(Since::Position(1), Which::Every).is_ok());
    // The bytes of the current state are available.
    let last =
        |position| unpack(&made.dumps.since(Since::Position(position), Which::Last).unwrap()).1;
    assert_eq!(last(0), [(uri("a"), Some(b"22".to_vec()))]);
    world.write("a", "333");
    assert!(
        made.dumps.since(Since::Position(1), Which::Every).is_ok(),
        "made before, kept for the next"
    );
}

#[test]
fn a_set_with_resources_elsewhere_has_no_resource_dump() {
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let record = |key: &str| {
        world.write(key, key);
        world.scan();
    };
    // The wait is longer than the test: an attempt would not end.
    let options = DumpOptions { patience: Duration::from_secs(3_600), changes: true, ..options() };
    let mut made = start(&world, DumpOptions { scheduled: false, ..options.clone() }, None);
    record("a");
    eventually("the first change is packaged", || made.dumps.changes().len() == 1);
    assert!(made.dumps.since(Since::Position(0), Which::Every).is_ok());
    let elsewhere = LogChange::put("https://elsewhere.example/x", abreast_core::State::default());
    append(&*world.log, world.set, vec![elsewhere]).unwrap();
    assert!(matches!(
        made.dumps.since(Since::Position(0), Which::Every),
        Err(SinceError::NotKept { position: 2 })
    ));
    record("b");
    assert!(made.dumps.since(Since::Position(2), Which::Every).is_ok());
    let at = change_lists(&made)[1].datetime;
    eventually("the Change Dump begins again behind it", || {
        made.dumps.changes().first().is_some_and(|dump| Some(dump.begin) == at.map(|at| at.instant))
    });
    let (_, found) = unpack(&made.file(&made.read("set/changedump.xml").entries[0].loc));
    assert_eq!(found, [(uri("b"), Some(b"b".to_vec()))]);
    made.dumper.take().unwrap().stop();

    let made = start(&world, options, None);
    record("c");
    // Resource Dumps are made first, so an attempt was made before this change is packaged.
    eventually("the next change is packaged", || made.dumps.changes().len() == 2);
    assert!(made.dumps.newest_resources().is_none(), "it would lack what the Resource List has");
    assert!(!made.read_capabilities().contains(&Capability::ResourceDump));
    let asked = made.publisher.document("set/resourcedump.xml");
    assert!(
        matches!(asked, Err(PublishError::NotFound)),
        "nobody is told to wait for what does not come"
    );
    let left = fs::read_dir(world.temporary.path().join("dumps/set/resources")).unwrap().count();
    assert_eq!(left, 0, "nothing of the try is left");
}

#[test]
fn kept_contents_are_in_dumps_whatever_their_uris() {
    let world = World::with(PageRule { changes: 4, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let (open_kept, put) = kept(&world);
    let odd = "https://elsewhere.example/a/../b//c?d";
    let large = "large ".repeat(100_000);
    let expected =
        [(odd, "odd"), ("https://elsewhere.example/large", &large), ("urn:isbn:0451450523", "urn")];
    for (uri, content) in expected {
        put(uri, content);
    }
    let expected =
        expected.map(|(uri, content)| (uri.to_owned(), Some(content.as_bytes().to_vec())));
    let made = start(&world, DumpOptions { changes: true, ..options() }, Some(open_kept));
    let packages = |entries: &[Entry]| -> Vec<Bitstream> {
        let packages = entries.iter().map(|entry| made.file(&entry.loc));
        packages
            .flat_map(|path| {
                let (manifest, found) = unpack(&path);
                let safe = |path: &String| {
                    path.split('/').skip(1).all(|name| !matches!(name, "" | "." | ".."))
                };
                assert!(manifest.entries.iter().filter_map(|entry| entry.path.as_ref()).all(safe));
                found
            })
            .collect()
    };
    let mut found = packages(&made.resource_dump().entries);
    found.sort();
    assert_eq!(found, expected);
    let since = made.dumps.since(Since::Position(0), Which::Every).unwrap();
    let mut found = unpack(&since).1;
    found.sort();
    assert_eq!(found, expected);
}

/// Opens a dump of version 0.1.
fn of_0_1(publisher: &Publisher, path: &str) -> Result<PublishedFile, FileError> {
    assert!(publisher.is_file(path), "{path}");
    publisher.file(path, None)
}

fn read_file(file: PublishedFile) -> Vec<u8> {
    let FileContent::File(mut file) = file.content else { panic!("a dump is a file") };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

/// The resources of a ZIP dump of version 0.1, each checked against its manifest.
fn unpack_0_1(bytes: Vec<u8>) -> (v0_1::Document, BTreeMap<String, Vec<u8>>) {
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut member = |name: &str| {
        let mut bytes = Vec::new();
        zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let manifest = v0_1::Document::from_slice(&member("manifest.xml")).unwrap();
    let mut found = BTreeMap::new();
    for entry in &manifest.entries {
        let path = entry.path.as_deref().unwrap();
        assert!(!path.starts_with('/'));
        let bytes = member(path);
        assert_eq!(entry.size, Some(bytes.len() as u64), "{path}");
        assert_eq!(entry.digests.md5, Some(Md5::digest(&bytes).into()), "{path}");
        found.insert(entry.loc.clone(), bytes);
    }
    assert_eq!(zip.len(), found.len() + 1, "the manifest lists every member");
    (manifest, found)
}

/// The resources of a WARC dump, and its manifest.
fn unwrap_warc(bytes: &[u8]) -> (v0_1::Document, BTreeMap<String, Vec<u8>>) {
    let (mut records, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        // Each record is a separate gzip member, which can be read alone.
        let mut member = flate2::bufread::GzDecoder::new(rest);
        let mut record = Vec::new();
        member.read_to_end(&mut record).unwrap();
        rest = member.into_inner();
        let end = record.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(record[..end].to_vec()).unwrap();
        let block = record[end + 4..record.len() - 4].to_vec();
        records.push((head, block));
    }
    assert!(records[0].0.contains("WARC-Type: warcinfo"));
    assert!(records[1].0.contains("WARC-Type: resource"));
    let manifest = v0_1::Document::from_slice(&records[1].1).unwrap();
    let mut found = BTreeMap::new();
    for (head, block) in &records[2..] {
        let field = |name: &str| {
            let found = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.unwrap_or_else(|| panic!("{name}: {head}")).to_owned()
        };
        assert_eq!(field("WARC-Type"), "response");
        let body = block.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let digest = |bytes: &[u8]| format!("sha256:{}", sha256_hex(bytes));
        assert_eq!(field("WARC-Payload-Digest"), digest(&block[body..]));
        assert_eq!(field("WARC-Block-Digest"), digest(block));
        found.insert(field("WARC-Target-URI"), block[body..].to_vec());
    }
    (manifest, found)
}

fn dump_links(publisher: &Publisher) -> Vec<String> {
    let sitemap = v0_1::Document::from_slice(&bytes(publisher, "set/v0.1/sitemap.xml")).unwrap();
    let links = sitemap.head.links.iter().filter(|link| link.has_rel(v0_1::DUMP));
    links.map(|link| link.href.strip_prefix(BASE).unwrap().to_owned()).collect()
}

fn with_0_1(made: &Made, world: &World, limits: (usize, u64)) -> Publisher {
    let set = world.published().with(Some(Arc::clone(&made.dumps)));
    let projection = ResourceSync01::default().with_limits(limits.0, limits.1);
    world.publisher_of(set).with_projection(projection)
}

#[test]
fn dumps_of_0_1_hold_the_same_resources() {
    let world = World::begun();
    let mut expected = BTreeMap::new();
    for (name, key, content) in [
        ("a b.html", "a%20b.html", "<p>hello".to_owned()),
        ("d/é&.txt", "d/%C3%A9&.txt", "text ".repeat(2_000)),
        ("empty", "empty", String::new()),
    ] {
        world.write(name, &content);
        expected.insert(uri(key), content.into_bytes());
    }
    world.scan();
    let at = world.log.head(world.set).unwrap().time;
    for compression in [Compression::Store, Compression::Deflate] {
        let made = start(&world, DumpOptions { compression, ..options() }, None);
        made.resource_dump();
        let publisher = with_0_1(&made, &world, (9_500_000, 49_999));
        let links = dump_links(&publisher);
        assert_eq!(links, ["set/v0.1/dump.zip", "set/v0.1/dump.warc.gz"]);
        let zip = of_0_1(&publisher, &links[0]).unwrap();
        assert_eq!(zip.freshness, Freshness::Revalidate);
        let constant = zip.location.clone().unwrap();
        let digest = zip.digest;
        let zip = read_file(zip);
        assert_eq!(digest, Some(sha2::Sha256::digest(&zip).into()));
        let same = of_0_1(&publisher, constant.strip_prefix(BASE).unwrap()).unwrap();
        assert_eq!(same.freshness, Freshness::Immutable);
        assert!(read_file(same) == zip);
        let (manifest, found) = unpack_0_1(zip.clone());
        assert_eq!(found, expected);
        assert_eq!(manifest.head.modified.unwrap().instant, at);
        let warc = read_file(of_0_1(&publisher, &links[1]).unwrap());
        assert_eq!(unwrap_warc(&warc), (manifest, expected.clone()));
        let folder = made.dumps.file(&format!("{}-1.zip", made.dumps.resources()[0].name)).unwrap();
        let names: Vec<_> = fs::read_dir(folder.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().all(|name| !name.starts_with("making-")), "{names:?}");
        let mut findings = Vec::new();
        let dumps = world.temporary.path().join("dumps");
        check_dumps(&dumps, true, &mut |finding| findings.push(finding)).unwrap();
        assert!(findings.is_empty(), "{findings:?}");
        // A damaged dump is detected, and made again.
        let name = names.iter().find(|name| name.ends_with("v0.1-1.zip")).unwrap();
        let damaged = folder.with_file_name(name);
        fs::write(&damaged, &zip[1..]).unwrap();
        check_dumps(&dumps, true, &mut |finding| findings.push(finding)).unwrap();
        assert_eq!(findings[0].rule, "dumps.derived");
        let removed = repair_dumps(&dumps, true, false).unwrap().removed;
        assert_eq!((removed, findings.len()), (vec![damaged], 1));
        assert!(read_file(of_0_1(&publisher, &links[0]).unwrap()) == zip);
        fs::remove_dir_all(dumps).unwrap();
    }
}

#[test]
fn the_parts_of_a_dump_of_0_1_are_known_without_reading() {
    let world = World::begun();
    for number in 0..5 {
        world.write(&format!("f{number}"), "content");
    }
    world.scan();
    let made = start(&world, options(), None);
    made.resource_dump();
    drop(made);
    let made = open(&world, options(), None);
    let publisher = with_0_1(&made, &world, (9_500_000, 49_999));
    let package = made.dumps.newest_resources().unwrap().packages[0].clone();
    assert_eq!(package.parts, Some(1));
    fs::remove_file(made.dumps.file(&format!("{}.xml", package.stem)).unwrap()).unwrap();
    assert_eq!(dump_links(&publisher), ["set/v0.1/dump.zip", "set/v0.1/dump.warc.gz"]);
}

#[test]
fn a_long_manifest_of_0_1_makes_several_dumps() {
    let world = World::begun();
    for number in 0..25 {
        world.write(&format!("f{number:02}"), &format!("content {number}"));
    }
    world.scan();
    let part_size = 3_000;
    let made = start(&world, DumpOptions { part_size, ..options() }, None);
    made.resource_dump();
    assert!(made.dumps.newest_resources().unwrap().packages.len() > 1);
    let publisher = with_0_1(&made, &world, (9_500_000, 4));
    let links = dump_links(&publisher);
    for ending in [".zip", ".warc.gz"] {
        let parts: Vec<_> = links.iter().filter(|link| link.ends_with(ending)).collect();
        assert!(parts.len() >= 7, "{links:?}");
        let mut found = BTreeMap::new();
        for part in parts {
            let bytes = read_file(of_0_1(&publisher, part).unwrap());
            let (manifest, of_part) =
                if ending == ".zip" { unpack_0_1(bytes) } else { unwrap_warc(&bytes) };
            assert!(manifest.entries.len() <= 4 && manifest.entries.len() == of_part.len());
            for (loc, bytes) in of_part {
                assert_eq!(found.insert(loc, bytes), None, "each resource is in one part");
            }
        }
        assert_eq!(found.len(), 25);
    }
    // If the dump has several parts, the address of a single dump does not exist.
    assert!(matches!(of_0_1(&publisher, "set/v0.1/dump.zip"), Err(FileError::NotFound(_))));
    let name = &made.dumps.newest_resources().unwrap().packages[0].stem;
    for path in [
        format!("set/v0.1/dump/{name}-99.zip"),
        "set/v0.1/dump/resources-x-1-1.zip".to_owned(),
        "set/v0.1/dump/..-1.zip".to_owned(),
        "set/v0.1/dump/../../x-1.zip".to_owned(),
    ] {
        assert!(matches!(of_0_1(&publisher, &path), Err(FileError::NotFound(_))), "{path}");
    }
}

#[test]
fn a_dump_of_0_1_is_made_on_demand_and_goes_with_its_package() {
    let world = World::begun();
    world.write("a", "first");
    world.scan();
    let made = start(&world, DumpOptions { scheduled: false, keep: 1, ..options() }, None);
    let publisher = with_0_1(&made, &world, (9_500_000, 49_999));
    assert_eq!(dump_links(&publisher).len(), 2);
    assert!(made.dumps.newest_resources().is_none());
    let asked = of_0_1(&publisher, "set/v0.1/dump.zip");
    assert!(matches!(asked, Ok(_) | Err(FileError::Making { .. })));
    eventually("the dump is made", || of_0_1(&publisher, "set/v0.1/dump.zip").is_ok());
    let file = of_0_1(&publisher, "set/v0.1/dump.zip").unwrap();
    let constant = file.location.clone().unwrap();
    let constant = constant.strip_prefix(BASE).unwrap().to_owned();
    assert_eq!(unpack_0_1(read_file(file)).1.len(), 1);

    // The next start removes unfinished files of a killed process.
    let package = made.dumps.newest_resources().unwrap().packages[0].stem.clone();
    let zip = made.dumps.file(&format!("{package}.zip")).unwrap();
    fs::write(zip.with_file_name(format!("making-{package}.v0.1-1.warc.gz")), "torn").unwrap();
    let other = zip.with_file_name(format!("making-{package}.v0.1-2.zip"));
    fs::write(&other, "torn").unwrap();
    drop(world.dumps(options(), None));
    assert!(!other.exists());
    let warc = read_file(of_0_1(&publisher, "set/v0.1/dump.warc.gz").unwrap());
    assert_eq!(unwrap_warc(&warc).1.len(), 1);

    // An unreadable package causes an error, not a shorter dump.
    for ending in ["zip", "warc.gz"] {
        fs::remove_file(zip.with_file_name(format!("{package}.v0.1-1.{ending}"))).unwrap();
    }
    let whole = fs::read(&zip).unwrap();
    fs::write(&zip, &whole[..whole.len() / 2]).unwrap();
    for path in ["set/v0.1/dump.zip", "set/v0.1/dump.warc.gz"] {
        assert!(matches!(of_0_1(&publisher, path), Err(FileError::Failed { .. })), "{path}");
    }
    fs::write(&zip, &whole).unwrap();
    assert!(of_0_1(&publisher, "set/v0.1/dump.zip").is_ok());

    for round in 0..8 {
        world.write("a", &format!("round {round}"));
        world.scan();
        let newest = made.dumps.newest_resources().unwrap().name.clone();
        eventually("a newer dump is made", || {
            made.dumps.ask();
            made.dumps.newest_resources().unwrap().name != newest
        });
    }
    eventually("the old dump is removed", || {
        matches!(of_0_1(&publisher, &constant), Err(FileError::NotFound(_)))
    });
    let folder = zip.parent().unwrap();
    eventually("nothing of it stays", || !folder.exists());
    let new = unpack_0_1(read_file(of_0_1(&publisher, "set/v0.1/dump.zip").unwrap()));
    assert_eq!(new.1[&uri("a")], b"round 7");
}

#[test]
fn a_set_without_a_dump_links_to_none_in_0_1() {
    let world = World::begun();
    append(&*world.log, world.set, vec![LogChange::put("http://example.com/x", State::default())])
        .unwrap();
    let publisher = world.publisher().with_projection(ResourceSync01::default());
    assert!(dump_links(&publisher).is_empty());
    assert!(matches!(of_0_1(&publisher, "set/v0.1/dump.zip"), Err(FileError::NotFound(_))));
    // The resources of this set are on other servers.
    let made = start(&world, options(), None);
    let publisher = with_0_1(&made, &world, (9_500_000, 49_999));
    eventually("it is known that there can be none", || made.dumps.impossible());
    assert!(dump_links(&publisher).is_empty());
    assert!(matches!(of_0_1(&publisher, "set/v0.1/dump.zip"), Err(FileError::NotFound(_))));
}
