//! Archives: the stored old lists, and the documents that list them.

use crate::world::{BASE, World, bytes};
use abreast_core::{Change, PageRule, State, append};
use abreast_resourcesync::v1_1::{Capability, Document, Entry, Root};
use abreast_source::archive::{Archive, ArchiveRule, Keeper, take};
use abreast_source::projection::resourcesync::{ArchiveKind, ResourceSync};
use abreast_source::publish::{PublishError, PublishedSet, Publisher};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A publisher that copies the Resource List after every change.
fn publisher(world: &World, keep: usize) -> Publisher {
    world.publisher_of(archived(world, keep))
}

fn archived(world: &World, keep: usize) -> PublishedSet {
    let rule = ArchiveRule { every: Duration::ZERO, keep };
    let archive = Archive::open(world.temporary.path().join("archive"), rule, None).unwrap();
    world.published().with(Some(Arc::new(archive)))
}

fn put(world: &World, keys: impl IntoIterator<Item = String>) {
    let changes = keys
        .into_iter()
        .map(|key| Change::put(&key, State { length: Some(1), ..State::default() }));
    append(&*world.log, world.set, changes.collect()).unwrap();
}

fn update(world: &World, key: &str, length: u64) {
    let change = Change::put(key, State { length: Some(length), ..State::default() });
    append(&*world.log, world.set, vec![change]).unwrap();
}

fn archive(publisher: &Publisher) -> bool {
    take(&**publisher.log(), &publisher.sets()[0], &AtomicBool::new(false)).unwrap()
}

fn read(publisher: &Publisher, path: &str) -> Document {
    Document::from_slice(&publisher.bytes(path).unwrap()).unwrap()
}

/// The archived document to which an entry links, read as a server reads it.
fn follow(publisher: &Publisher, entry: &Entry) -> Document {
    assert!(entry.loc.starts_with(&format!("{BASE}set/archived/resourcelist/")), "{}", entry.loc);
    read(publisher, entry.loc.strip_prefix(BASE).unwrap())
}

fn archived_files(world: &World) -> Vec<String> {
    let names = std::fs::read_dir(world.temporary.path().join("archive")).unwrap();
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_copy_of_the_resource_list_stays_as_it_was() {
    let world = World::begun();
    put(&world, ["a".to_owned()]);
    let publisher = publisher(&world, 10);
    assert!(read(&publisher, "set/resourcelist-archive.xml").entries.is_empty());
    let at = read(&publisher, "set/resourcelist.xml").head.at;
    assert!(archive(&publisher));
    assert!(!archive(&publisher), "nothing changed");
    put(&world, ["b".to_owned()]);
    let path = "set/resourcelist-archive.xml";
    let listed = read(&publisher, path);
    assert_eq!(
        (listed.head.root, listed.head.capability),
        (Root::UrlSet, Some(Capability::ResourceListArchive))
    );
    assert_eq!((listed.head.at, listed.head.from, listed.head.until), (None, None, None));
    assert!(
        listed
            .head
            .links
            .iter()
            .any(|ln| ln.has_rel("up") && ln.href.ends_with("/set/capabilitylist.xml"))
    );
    assert_eq!(listed.entries.len(), 1);
    assert_eq!((listed.entries[0].at, listed.entries[0].capability), (at, None));
    let old = follow(&publisher, &listed.entries[0]);
    assert_eq!((old.head.capability, old.head.at), (Some(Capability::ResourceList), at));
    assert_eq!(old.entries.len(), 1, "the second resource came later");
    assert_eq!(read(&publisher, "set/resourcelist.xml").entries.len(), 2);
    assert!(archive(&publisher));
    let times: Vec<_> =
        read(&publisher, path).entries.iter().map(|entry| entry.at.unwrap().instant).collect();
    assert!(times.len() == 2 && times[0] < times[1], "oldest first");

    // The Capability List and the current lists link to the archives; closed lists do not.
    let capabilities = read(&publisher, "set/capabilitylist.xml");
    for (capability, kind) in [
        (Capability::ResourceListArchive, ArchiveKind::ResourceLists),
        (Capability::ChangeListArchive, ArchiveKind::ChangeLists),
    ] {
        let entry =
            capabilities.entries.iter().find(|entry| entry.capability == Some(capability)).unwrap();
        assert_eq!(entry.loc, format!("{BASE}set/{}.xml", kind.name()));
    }
    for path in ["set/resourcelist.xml", "set/changelist.xml"] {
        assert!(
            read(&publisher, path).head.links.iter().any(|ln| ln.has_rel("archives")),
            "{path:?}"
        );
    }
    assert!(!old.head.links.iter().any(|ln| ln.has_rel("archives")));
}

#[test]
fn copies_of_many_lists_share_parts_and_the_oldest_go_first() {
    let world = World::with(PageRule::default(), 10);
    world.log.complete_import(world.set).unwrap();
    put(&world, (0..40).map(|number| format!("k{number:02}")));
    let publisher = publisher(&world, 2);
    assert!(archive(&publisher));
    let parts = archived_files(&world).len() - 2;
    assert!(parts > 2, "several shards: {:?}", archived_files(&world));
    update(&world, "k00", 2);
    assert!(archive(&publisher));
    assert_eq!(archived_files(&world).len(), parts + 2 + 2, "one index and one changed part more");
    let listed = read(&publisher, "set/resourcelist-archive.xml");
    let counts = listed.entries.iter().map(|entry| {
        let index = follow(&publisher, entry);
        assert_eq!((index.head.root, index.head.at), (Root::SitemapIndex, entry.at));
        let parts: Vec<_> = index.entries.iter().map(|part| follow(&publisher, part)).collect();
        (parts.iter().map(|part| part.entries.len()).sum::<usize>(), parts[0].entries[0].length)
    });
    assert_eq!(counts.collect::<Vec<_>>(), [(40, Some(1)), (40, Some(2))]);

    // The third copy removes the first copy, with the part that only the first copy needed.
    update(&world, "k00", 3);
    assert!(archive(&publisher));
    assert_eq!(archived_files(&world).len(), parts + 2 + 2);
    let listed = read(&publisher, "set/resourcelist-archive.xml");
    assert!(listed.entries[0].loc.ends_with("/2.xml") && listed.entries.len() == 2);
    assert!(matches!(
        publisher.bytes("set/archived/resourcelist/1.xml"),
        Err(PublishError::NotFound)
    ));
}

#[test]
fn a_restart_reads_the_archive_and_removes_incomplete_copies() {
    let world = World::begun();
    put(&world, ["a".to_owned()]);
    assert!(archive(&publisher(&world, 10)));
    let place = world.temporary.path().join("archive");
    std::fs::write(place.join("list-2.xml.gz"), "half").unwrap();
    std::fs::write(place.join("part-1-1-2.xml.gz"), "half").unwrap();
    std::fs::write(place.join("notes.txt"), "somebody else's").unwrap();
    let publisher = publisher(&world, 10);
    assert_eq!(archived_files(&world), ["list-1.xml.gz", "notes.txt", "record"]);
    assert!(!archive(&publisher), "it is known that nothing changed");
    let list = Document::from_slice(&bytes(&publisher, "set/archived/resourcelist/1.xml")).unwrap();
    assert_eq!(list.entries[0].loc, format!("{BASE}set/r/a"));
}

#[test]
fn closed_change_lists_are_archived_and_many_make_an_index() {
    let world = World::with(PageRule { changes: 1, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    for number in 0..6 {
        put(&world, [format!("k{number}")]);
    }
    let publisher = publisher(&world, 10);
    let path = "set/changelist-archive.xml";
    let index = read(&publisher, "set/changelist.xml");
    let closed: Vec<_> =
        index.entries.iter().filter(|entry| entry.until.is_some()).cloned().collect();
    assert_eq!(closed.len(), 6);
    let listed = read(&publisher, path);
    assert_eq!(
        (listed.head.root, listed.head.capability),
        (Root::UrlSet, Some(Capability::ChangeListArchive))
    );
    let told = |entries: &[Entry]| -> Vec<_> {
        entries.iter().map(|entry| (entry.loc.clone(), entry.from, entry.until)).collect()
    };
    assert_eq!(told(&listed.entries), told(&closed), "all closed lists, oldest first");

    let publisher = publisher
        .with_projections(vec![Box::new(ResourceSync::default().with_entries_per_archive(2))]);
    let index = Document::from_slice(&publisher.bytes(path).unwrap()).unwrap();
    assert_eq!(
        (index.head.root, index.head.capability),
        (Root::SitemapIndex, Some(Capability::ChangeListArchive))
    );
    assert_eq!(index.entries.len(), 3);
    let mut together = Vec::new();
    for (number, entry) in index.entries.iter().enumerate() {
        assert_eq!(entry.loc, format!("{BASE}set/changelist-archive/{}.xml", number + 1));
        let part = read(&publisher, &format!("set/changelist-archive/{}.xml", number + 1));
        assert!(
            part.head
                .links
                .iter()
                .any(|ln| ln.has_rel("index") && ln.href.ends_with("changelist-archive.xml"))
        );
        assert!(part.entries.len() <= 2);
        together.extend(part.entries);
    }
    assert_eq!(told(&together), told(&closed));
    for missing in [0, 4] {
        let path = format!("set/changelist-archive/{missing}.xml");
        assert!(matches!(publisher.bytes(&path), Err(PublishError::NotFound)));
    }
}

#[test]
fn the_keeper_takes_copies_until_it_is_stopped() {
    let world = World::begun();
    put(&world, ["a".to_owned()]);
    let publisher = Arc::new(publisher(&world, 10));
    let keeper = Keeper::start({
        let publisher = Arc::clone(&publisher);
        move || Arc::clone(&publisher)
    })
    .unwrap();
    abreast_testkit::eventually("a copy was taken", || {
        publisher.sets()[0].archive().unwrap().span() == Some((1, 1))
    });
    keeper.stop();
}

#[test]
fn a_set_without_archives_lists_none() {
    let world = World::begun();
    let publisher = world.publisher();
    let capabilities = read(&publisher, "set/capabilitylist.xml");
    assert_eq!(capabilities.entries.len(), 2);
    assert!(publisher.bytes("set/changelist-archive.xml").is_err());
    assert!(
        !read(&publisher, "set/changelist.xml").head.links.iter().any(|ln| ln.has_rel("archives"))
    );
}

#[test]
fn kept_dumps_are_archived_when_the_set_has_both() {
    use abreast_source::dump::DumpOptions;
    let world = World::with(PageRule { changes: 1, ..PageRule::default() }, 40_000);
    world.write("a", "one");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    let options =
        DumpOptions { every: Duration::ZERO, keep: 2, changes: true, ..DumpOptions::default() };
    let (shared, dumps) = world.dumps(options, None);
    let publisher = world.publisher_of(archived(&world, 10).with(Some(Arc::clone(&dumps))));
    let archives = |publisher: &Publisher| {
        let list = read(publisher, "set/capabilitylist.xml");
        list.entries
            .iter()
            .filter(|entry| entry.capability.unwrap().token().ends_with("dump-archive"))
            .count()
    };
    assert_eq!(archives(&publisher), 0, "there is no dump yet");
    let dumper = shared.start([Arc::clone(&dumps)]).unwrap();
    for number in 1..=2 {
        abreast_testkit::eventually("a dump was made", || {
            let _ = publisher.document("set/resourcedump.xml");
            dumps.resources().len() >= number
        });
        world.write(&format!("b{number}"), "more");
        world.scan();
        abreast_testkit::eventually("the changes were packed", || dumps.changes().len() >= number);
    }
    dumper.stop();
    assert_eq!(archives(&publisher), 2);
    let page = String::from_utf8(bytes(&publisher, "set/about.html")).unwrap();
    for name in ["Resource Dump", "Change Dump", "Resource List Archive", "Change Dump Archive"] {
        let row = format!("<th scope=\"row\">{name}</th><td><a href=");
        assert!(page.contains(&row), "{name} in {page}");
    }
    let (resources, changes) = (dumps.resources().len(), dumps.changes().len());
    for (kind, capability, entry_capability, count) in [
        (
            ArchiveKind::ResourceDumps,
            Capability::ResourceDumpArchive,
            Capability::ResourceDump,
            resources,
        ),
        (ArchiveKind::ChangeDumps, Capability::ChangeDumpArchive, Capability::ChangeDump, changes),
    ] {
        let archive = read(&publisher, &format!("set/{}.xml", kind.name()));
        assert_eq!((archive.head.capability, archive.entries.len()), (Some(capability), count));
        for entry in &archive.entries {
            let begin = entry.at.or(entry.from).unwrap().instant;
            assert!(entry.loc.ends_with(&format!("/{}.xml", begin.as_micros())));
            let dump = read(&publisher, entry.loc.strip_prefix(BASE).unwrap());
            assert_eq!(dump.head.capability, Some(entry_capability));
            assert_eq!((dump.head.at, dump.head.from), (entry.at, entry.from));
            assert_eq!((dump.head.completed, dump.head.until), (entry.completed, entry.until));
            assert!(
                dump.entries
                    .iter()
                    .all(|package| package.loc.starts_with(&format!("{BASE}set/dump/")))
            );
            assert!(!dump.entries.is_empty());
        }
    }
}
