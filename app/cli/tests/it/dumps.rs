//! Dumps as the built program makes them: read by others, whole over kills, and equal to the
//! Source.

use crate::world::{Source, get};
use abreast_resourcesync::package::member_name;
use abreast_resourcesync::v1_1::{Change, Document, Entry, Root};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::folder::{files, same};
use abreast_testkit::{Random, eventually, eventually_ok, kills, provided, run, seed};
use abreast_webtypes::Timestamp;
use md5::{Digest as _, Md5};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Kills while dumps are made.
const KILLS: u64 = 30;

fn read(address: &str, path: &str) -> Option<Document> {
    let (200, body) = get(address, path)? else { return None };
    Some(Document::from_slice(&body).unwrap())
}

fn path_in(url: &str) -> String {
    format!("/{}", url.splitn(4, '/').nth(3).unwrap())
}

/// The resources of a package as its manifest says, each checked against its digest.
fn unpack(source: &Source, entry: &Entry) -> Option<BTreeMap<String, String>> {
    let bytes = source.get(&path_in(&entry.loc))?;
    assert_eq!(entry.length, Some(bytes.len() as u64), "a package is sent whole");
    assert_eq!(entry.digests.md5, Some(Md5::digest(&bytes).into()));
    let contents =
        source.get(&path_in(&entry.links.iter().find(|ln| ln.has_rel("contents"))?.href))?;
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut member = |name: &str| {
        let mut bytes = Vec::new();
        zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let manifest = member("manifest.xml");
    assert!(manifest == contents, "the copy of the manifest is the manifest");
    let mut found = BTreeMap::new();
    for entry in Document::from_slice(&manifest).unwrap().entries {
        let bytes = member(member_name(entry.path.as_deref().unwrap()));
        assert_eq!(entry.digests.md5, Some(Md5::digest(&bytes).into()), "{}", entry.loc);
        found.insert(name_of(&entry.loc), entry.digests.to_string());
    }
    assert_eq!(zip.len(), found.len() + 1);
    Some(found)
}

fn name_of(url: &str) -> String {
    url.rsplit('/').next().unwrap().to_owned()
}

/// The newest dump, read whole and checked; `None` while there is none, or it was replaced
/// meanwhile.
fn dump(source: &Source) -> Option<(Document, BTreeMap<String, String>)> {
    let document = read(&source.address, "/set/resourcedump.xml")?;
    let mut found = BTreeMap::new();
    for entry in &document.entries {
        found.extend(unpack(source, entry)?);
    }
    Some((document, found))
}

pub(crate) fn changes(source: &Source) -> Vec<Entry> {
    let top = read(&source.address, "/set/changelist.xml").unwrap();
    match top.head.root {
        Root::UrlSet => top.entries,
        Root::SitemapIndex => {
            let pages = top
                .entries
                .iter()
                .map(|entry| read(&source.address, &path_in(&entry.loc)).unwrap());
            pages.flat_map(|page| page.entries).collect()
        }
    }
}

#[test]
fn dump_survives_kills_and_with_changes_equals_the_source() {
    let (kills, seed) = (kills(KILLS), seed(1));
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("original");
    fs::create_dir(&folder).unwrap();
    let mut random = Random::new(seed);
    for number in 0..120 {
        fs::write(folder.join(format!("f{number:03}")), format!("{number} ").repeat(1_000))
            .unwrap();
    }
    for number in 0..3 {
        fs::write(folder.join(format!("large{number}")), vec![number; 3_000_000]).unwrap();
    }
    let arguments = ["--dumps", "1s", "--dump-part-size", "4MiB"];
    let mut source = Source::start(&folder, 0, &arguments);
    let port = source.port();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (folder, stop) = (folder.clone(), Arc::clone(&stop));
        let mut random = Random::new(seed + 7);
        std::thread::spawn(move || {
            let mut version = 0;
            while !stop.load(Ordering::Relaxed) {
                version += 1;
                let path = folder.join(format!("f{:03}", random.below(150)));
                if random.below(5) == 0 {
                    let _ = fs::remove_file(path);
                } else {
                    fs::write(
                        path,
                        format!("version {version} ").repeat(1 + random.below(3_000) as usize),
                    )
                    .unwrap();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        })
    };
    let store = folder.join(".abreast/dumps/set/resources");
    let (mut newest, mut interrupted, mut seen) = (None, 0, 0);
    for round in 0..kills {
        // Where the machine is slow, none would ever be made between two kills.
        if round % 6 == 0 {
            eventually("a newer dump is made", || made_at(&source) > newest);
        }
        // Killed at any instant, most often while one is made.
        std::thread::sleep(Duration::from_millis(random.below(400)));
        if random.below(3) > 0 {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_secs(2) && !is_making(&store) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(random.below(60)));
        }
        source.kill();
        interrupted += u64::from(is_making(&store));
        source = Source::start(&folder, port, &arguments);
        let at = made_at(&source);
        assert!(at >= newest, "{at:?} is there after a kill, {newest:?} was before");
        newest = at;
        seen += u64::from(dump(&source).is_some());
    }
    eprintln!("{kills} kills, {interrupted} dumps were interrupted, {seen} were read");
    assert!(interrupted > kills / 6 && seen > kills / 3, "{interrupted} interrupted, {seen} read");
    let mut taken = None;
    eventually("a dump is read while files change", || {
        taken = dump(&source);
        taken.is_some()
    });
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let (document, base) = taken.unwrap();
    let at = document.head.at.unwrap().instant;
    let original: BTreeMap<_, _> = files(&folder)
        .into_iter()
        .map(|(path, bytes)| (path.to_string_lossy().into_owned(), digest(&bytes)))
        .collect();
    eventually_ok("the Source is what the dump and the changes after it say", || {
        let mut copy = base.clone();
        for entry in
            changes(&source).into_iter().filter(|entry| entry.datetime.unwrap().instant > at)
        {
            match entry.change.unwrap() {
                Change::Deleted => drop(copy.remove(&name_of(&entry.loc))),
                _ => drop(copy.insert(name_of(&entry.loc), entry.digests.to_string())),
            }
        }
        same(&original, &copy)
    });
    source.kill();
}

/// The time of which the newest dump is, if there is one.
fn made_at(source: &Source) -> Option<Timestamp> {
    Some(read(&source.address, "/set/resourcedump.xml")?.head.at.unwrap().instant)
}

fn is_making(store: &Path) -> bool {
    let Ok(names) = fs::read_dir(store) else { return false };
    names.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("making-"))
}

fn digest(bytes: &[u8]) -> String {
    format!("md5:{}", md5_hex(bytes))
}

#[test]
fn every_change_is_packaged_also_of_a_file_that_changed_twice() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("original");
    fs::create_dir_all(&folder).unwrap();
    let source = Source::start(&folder, 0, &["--dumps", "1s", "--change-dumps"]);
    let mut wanted = Vec::new();
    // One file stays: the deletion of all would be held.
    for (name, content) in [("stays", "here"), ("a", "one"), ("a", "two"), ("a", "three")] {
        fs::write(folder.join(name), content).unwrap();
        wanted.push(digest(content.as_bytes()));
        eventually("the change is known", || changes(&source).len() == wanted.len());
    }
    fs::remove_file(folder.join("a")).unwrap();
    wanted.push(String::new());
    let mut found = Vec::new();
    eventually("every change is packaged", || {
        let Some(dump) = read(&source.address, "/set/changedump.xml") else { return false };
        found.clear();
        for entry in dump.entries {
            let package = source.get(&path_in(&entry.loc)).unwrap();
            let mut zip = zip::ZipArchive::new(Cursor::new(package)).unwrap();
            let mut member = |name: &str| {
                let mut bytes = Vec::new();
                zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
                bytes
            };
            let manifest = Document::from_slice(&member("manifest.xml")).unwrap();
            found.extend(manifest.entries.iter().map(|entry| {
                entry
                    .path
                    .as_deref()
                    .map(|path| digest(&member(member_name(path))))
                    .unwrap_or_default()
            }));
        }
        found.len() == wanted.len()
    });
    assert_eq!(found, wanted);
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn python_reads_packages_as_they_are() {
    const SCRIPT: &str = "import sys, zipfile\n\
        for name in sys.argv[1:]:\n    \
            zip = zipfile.ZipFile(name)\n    \
            assert zip.testzip() is None, name\n    \
            print(*sorted(member.filename for member in zip.infolist()), sep='|')\n";
    let Some(python) = provided("Python reads our packages", "ABREAST_TEST_PYTHON") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("original");
    fs::create_dir_all(folder.join("sub folder")).unwrap();
    fs::write(folder.join("sub folder/é %.txt"), "text").unwrap();
    fs::write(folder.join("empty"), "").unwrap();
    let source = Source::start(&folder, 0, &["--dumps", "on-demand"]);
    eventually("a dump is made on demand", || source.get("/set/resourcedump.xml").is_some());
    fs::write(folder.join("new"), "new").unwrap();
    eventually("the change is known", || changes(&source).len() == 1);
    let resources = read(&source.address, "/set/resourcedump.xml").unwrap().entries.remove(0).loc;
    let mut names = Vec::new();
    for (name, path) in
        [("all.zip", path_in(&resources)), ("since.zip", "/set/changedump/since?position=0".into())]
    {
        fs::write(temporary.path().join(name), source.get(&path).unwrap()).unwrap();
        names.push(temporary.path().join(name));
    }
    let output = run(Command::new(python).args(["-X", "utf8", "-c", SCRIPT]).args(names));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        printed,
        "manifest.xml|resources/empty|resources/sub folder/é %.txt\nchanges/1/new|manifest.xml\n"
    );
}
