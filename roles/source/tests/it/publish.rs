//! Documents: their content, and their consistency with each other.

use crate::world::{BASE, World, body, bytes};
use abreast_core::{Change, PageRule, State, append};
use abreast_resourcesync::v1_1::{Capability, Change as Kind, Document, Root};
use abreast_source::publish::{Body, Freshness, PublishError};
use abreast_testkit::Random;
use abreast_webtypes::{Digests, Timestamp};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn state(content: u64) -> State {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&content.to_le_bytes());
    State {
        modified: Timestamp::from_seconds(1_700_000_000),
        length: Some(content),
        media_type: Some("text/plain".into()),
        digests: Digests { md5: Some(md5), ..Digests::default() },
        ..State::default()
    }
}

fn read(publisher: &abreast_source::publish::Publisher, path: &str) -> Document {
    Document::from_slice(&bytes(publisher, path)).unwrap()
}

#[test]
fn every_document_leads_to_every_other() {
    let world = World::new();
    world.write("a b.ttl", "x");
    world.scan();
    let publisher = world.publisher();
    assert!(matches!(publisher.document("set/resourcelist.xml"), Err(PublishError::Importing)));
    world.log.complete_import(world.set).unwrap();

    let description = read(&publisher, ".well-known/resourcesync");
    assert_eq!(description.head.capability, Some(Capability::Description));
    assert_eq!(description.entries[0].loc, "https://example.org/set/capabilitylist.xml");
    let capabilities = read(&publisher, "set/capabilitylist.xml");
    assert!(
        capabilities
            .head
            .links
            .iter()
            .any(|ln| ln.has_rel("up") && ln.href == format!("{BASE}.well-known/resourcesync"))
    );
    let named: Vec<_> = capabilities
        .entries
        .iter()
        .map(|entry| (entry.loc.as_str(), entry.capability.unwrap()))
        .collect();
    assert_eq!(
        named,
        [
            ("https://example.org/set/resourcelist.xml", Capability::ResourceList),
            ("https://example.org/set/changelist.xml", Capability::ChangeList)
        ]
    );
    let list = read(&publisher, "set/resourcelist.xml");
    assert_eq!(
        (list.head.root, list.head.capability),
        (Root::UrlSet, Some(Capability::ResourceList))
    );
    assert!(
        list.head
            .links
            .iter()
            .any(|ln| ln.has_rel("up") && ln.href.ends_with("/set/capabilitylist.xml"))
    );
    let entry = &list.entries[0];
    assert_eq!(entry.loc, "https://example.org/set/r/a%20b.ttl");
    assert_eq!((entry.length, entry.media_type.as_deref()), (Some(1), Some("text/turtle")));
    assert_eq!(entry.digests.to_string(), "md5:9dd4e461268c8034f5c8564e155c67a6");
    let changes = read(&publisher, "set/changelist.xml");
    assert_eq!(changes.head.capability, Some(Capability::ChangeList));
    assert_eq!(
        changes.head.from, list.head.at,
        "the first Change List begins where the Resource List ends"
    );
    assert!(changes.head.until.is_none() && changes.entries.is_empty());
    let sitemap = String::from_utf8(bytes(&publisher, "set/sitemap/1.xml")).unwrap();
    assert!(!sitemap.contains("rs:"), "crawlers punish unknown elements: {sitemap}");
    assert!(
        String::from_utf8(bytes(&publisher, "robots.txt"))
            .unwrap()
            .contains("Sitemap: https://example.org/sitemap.xml")
    );
}

#[test]
fn change_lists_are_chained_and_closed_ones_never_change() {
    let world = World::with(PageRule { changes: 3, ..PageRule::default() }, 40_000);
    world.log.complete_import(world.set).unwrap();
    let publisher = world.publisher();
    for number in 0..7_u64 {
        append(&*world.log, world.set, vec![Change::put(format!("k{number}"), state(number))])
            .unwrap();
    }
    append(&*world.log, world.set, vec![Change::delete("k0")]).unwrap();
    let index = read(&publisher, "set/changelist.xml");
    assert_eq!((index.head.root, index.entries.len()), (Root::SitemapIndex, 3));
    for pair in index.entries.windows(2) {
        assert_eq!(pair[0].until, pair[1].from, "nothing falls between two lists");
    }
    assert!(index.entries[2].until.is_none());
    let first = publisher.document("set/changelist/1.xml").unwrap();
    assert_eq!(first.freshness, Freshness::Closed);
    let before = body(first.plain());
    let open = read(&publisher, "set/changelist/3.xml");
    assert_eq!(open.entries.last().unwrap().change, Some(Kind::Deleted));
    let times: Vec<_> = open.entries.iter().map(|entry| entry.datetime.unwrap().instant).collect();
    assert!(times.is_sorted());
    assert!(
        open.entries.iter().all(|entry| entry.lastmod == entry.datetime),
        "1.0 clients read lastmod as the change time"
    );
    append(&*world.log, world.set, vec![Change::put("k9", state(9))]).unwrap();
    assert_eq!(body(world.publisher().document("set/changelist/1.xml").unwrap().plain()), before);
    assert_eq!(read(&publisher, "set/changelist/3.xml").entries.len(), 3);
    assert!(matches!(publisher.document("set/changelist/9.xml"), Err(PublishError::NotFound)));
}

#[test]
fn one_change_makes_one_list_new() {
    let world = World::with(PageRule::default(), 10);
    for number in 0..35_u64 {
        world.log.import(world.set, vec![imported(number)]).unwrap();
    }
    world.log.complete_import(world.set).unwrap();
    let publisher = world.publisher();
    let tags = |index: &Document| -> BTreeMap<u64, String> {
        let ids = index.entries.iter().map(|entry| id_of(&entry.loc));
        ids.map(|id| {
            (id, publisher.document(&format!("set/resourcelist/{id}.xml")).unwrap().tag.clone())
        })
        .collect()
    };
    let before = tags(&read(&publisher, "set/resourcelist.xml"));
    assert!(before.len() >= 3);
    append(&*world.log, world.set, vec![Change::put("k000020", state(77))]).unwrap();
    let after = tags(&read(&publisher, "set/resourcelist.xml"));
    let changed = before.iter().filter(|(id, tag)| after.get(id) != Some(tag)).count();
    assert_eq!(changed, 1);
}

#[test]
fn gzip_holds_the_same_bytes() {
    use std::io::Read as _;
    let world = World::begun();
    for number in 0..3_000_u64 {
        append(&*world.log, world.set, vec![Change::put(format!("k{number}"), state(number))])
            .unwrap();
        if number == 500 {
            break;
        }
    }
    let publisher = world.publisher();
    let document = publisher.document("set/changelist.xml").unwrap();
    let mut plain = Vec::new();
    let packed = body(&publisher.gzip(&document).unwrap());
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(plain, body(document.plain()));
    assert!(packed.len() * 4 < plain.len());
}

fn imported(number: u64) -> abreast_core::Imported {
    abreast_core::Imported {
        key: format!("k{number:06}"),
        state: state(number),
        witness: Vec::new(),
    }
}

fn id_of(loc: &str) -> u64 {
    loc.rsplit('/').next().unwrap().trim_end_matches(".xml").parse().unwrap()
}

/// A reader requests the Resource List while a writer changes the set continuously, then applies
/// the Change Lists from the list's `at` on. The result must equal the Source: no resource is lost,
/// and no deleted resource exists again.
#[test]
fn a_baseline_taken_during_change_plus_changes_is_complete() {
    for round in 0..5_u64 {
        let world = World::with(PageRule { changes: 50, ..PageRule::default() }, 40);
        for number in 0..200 {
            world.log.import(world.set, vec![imported(number)]).unwrap();
        }
        world.log.complete_import(world.set).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let (log, set, stop) = (Arc::clone(&world.log), world.set, Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut random = Random::new(round);
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("k{:06}", random.below(400));
                    let change = if random.below(3) == 0 {
                        Change::delete(key)
                    } else {
                        Change::put(key, state(random.below(1_000_000)))
                    };
                    append(&*log, set, vec![change]).unwrap();
                }
            })
        };
        let publisher = world.publisher();
        let index = read(&publisher, "set/resourcelist.xml");
        let at = index.head.at.unwrap().instant;
        let mut copy = BTreeMap::new();
        for entry in &index.entries {
            let list = read(&publisher, entry.loc.strip_prefix(BASE).unwrap());
            for entry in list.entries {
                copy.insert(entry.loc, entry.digests.to_string());
            }
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        let changes = read(&publisher, "set/changelist.xml");
        let lists = match changes.head.root {
            Root::UrlSet => vec![changes],
            Root::SitemapIndex => {
                let pages =
                    changes.entries.iter().map(|entry| entry.loc.strip_prefix(BASE).unwrap());
                pages.map(|page| read(&publisher, page)).collect()
            }
        };
        let mut replayed = 0;
        for entry in lists
            .into_iter()
            .flat_map(|list| list.entries)
            .filter(|entry| entry.datetime.unwrap().instant > at)
        {
            replayed += 1;
            match entry.change.unwrap() {
                Kind::Deleted => drop(copy.remove(&entry.loc)),
                _ => drop(copy.insert(entry.loc, entry.digests.to_string())),
            }
        }
        let source: BTreeMap<_, _> = world
            .table()
            .into_iter()
            .map(|(key, digest)| (format!("{BASE}set/r/{key}"), digest))
            .collect();
        assert_eq!(copy, source, "round {round}, {replayed} changes replayed");
    }
}

#[test]
fn documents_of_an_earlier_process_are_removed_from_the_cache() {
    let world = World::begun();
    let cache = world.temporary.path().join("documents");
    std::fs::create_dir_all(cache.join("letters")).unwrap();
    for name in ["7.document", "x.document", ".document", "letters/1.document", "mine.txt"] {
        std::fs::write(cache.join(name), "1").unwrap();
    }
    drop(world.publisher());
    assert!(!cache.join("7.document").exists());
    for kept in ["x.document", ".document", "letters/1.document", "mine.txt"] {
        assert!(cache.join(kept).exists(), "{kept}");
    }
}

#[test]
fn long_lists_are_written_to_files_as_they_are_rendered() {
    let world = World::new();
    for thousand in 0..12 {
        world
            .log
            .import(world.set, (thousand * 1_000..(thousand + 1) * 1_000).map(imported).collect())
            .unwrap();
    }
    world.log.complete_import(world.set).unwrap();
    let publisher = world.publisher();
    let path = "set/resourcelist.xml";
    let document = publisher.document(path).unwrap();
    assert!(matches!(document.plain(), Body::File(_)) && document.plain().length() > 2 << 20);
    let whole = publisher.bytes(path).unwrap();
    assert!(body(document.plain()) == whole && document.plain().length() == whole.len() as u64);
    let gzip = publisher.gzip(&document).unwrap();
    assert!(matches!(gzip, Body::Memory(_)), "compressed it is small enough for memory");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&body(&gzip)[..]).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == whole && gzip.length() == body(&gzip).len() as u64);
    let tag = document.tag.clone();
    append(&*world.log, world.set, vec![Change::put("k000007", state(8))]).unwrap();
    assert_ne!(publisher.document(path).unwrap().tag, tag);
    assert_eq!(
        world.publisher().document(path).unwrap().tag,
        publisher.document(path).unwrap().tag
    );
    // The folder of documents is removed while the program runs.
    drop(document);
    std::fs::remove_dir_all(world.temporary.path().join("documents")).unwrap();
    append(&*world.log, world.set, vec![Change::put("k000008", state(9))]).unwrap();
    assert!(body(publisher.document(path).unwrap().plain()) == publisher.bytes(path).unwrap());
}
