//! Links planted in a copy's state folder, and in the place of files that were begun, lead nowhere.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop")]

mod server;

use abreast_destination::{Dumps, Error, Event, Summary, SyncOptions, sync};
use server::zip::Zip;
use server::{Answer, BEGIN, Server, document, md5_hex};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const LARGE: usize = 9 << 20;
static LARGE_MD5: OnceLock<String> = OnceLock::new();

/// A Source with a version of a resource, a package and one large resource; a copy of it; and what is beside the copy.
struct World {
    place: tempfile::TempDir,
    server: Server,
    options: SyncOptions,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("outside/folder")).unwrap();
        fs::write(place.path().join("outside/victim"), "precious").unwrap();
        fs::write(place.path().join("outside/empty"), "").unwrap();
        let server = Server::start();
        let mut options = SyncOptions::new(server.url("/caps.xml"), place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 0;
        options.ignore_robots = true;
        options.base = Some(server.url("/d/"));
        options.history = Some(3);
        options.dumps = Dumps::Always;
        let world = Self { place, server, options };
        world.server.body("/v/1", "first");
        world.publish("one");
        world
    }

    fn state(&self) -> PathBuf {
        self.options.folder.join(".abreast")
    }

    /// Publishes a version of the small resource, in a list, as a file and in a package.
    fn publish(&self, body: &str) {
        let server = &self.server;
        server.body("/d/a", body);
        // It breaks off.
        let mut cut = format!("HTTP/1.1 200 OK\r\nETag: \"large\"\r\nContent-Length: {LARGE}\r\n\r\n").into_bytes();
        cut.resize(cut.len() + LARGE - 1_000, b'x');
        server.put("/d/large", Answer::raw(cut));
        let md = |body: &[u8], more: &str| {
            format!("<rs:md hash=\"md5:{}\" length=\"{}\" {more}/>", md5_hex(body), body.len())
        };
        let memento =
            format!("<rs:ln rel=\"memento\" href=\"{}\" modified=\"2025-01-01T00:00:00Z\"/>", server.url("/v/1"));
        let small =
            |more: &str| format!("<url><loc>{}</loc>{}{memento}</url>", server.url("/d/a"), md(body.as_bytes(), more));
        let large = format!(
            "<url><loc>{}</loc><rs:md hash=\"md5:{}\" length=\"{LARGE}\"/></url>",
            server.url("/d/large"),
            LARGE_MD5.get_or_init(|| md5_hex(&vec![b'x'; LARGE]))
        );
        let at = format!("at=\"{BEGIN}\"");
        server
            .body("/list.xml", document("urlset", &format!("capability=\"resourcelist\" {at}"), &(small("") + &large)));
        let mut zip = Zip::new();
        let manifest = document("urlset", &format!("capability=\"resourcedump-manifest\" {at}"), &small("path=\"/1\""));
        zip.add("1", body.as_bytes()).add("manifest.xml", manifest.as_bytes());
        server.body("/dump.zip", zip.finish());
        let package = format!("<url><loc>{}</loc></url>", server.url("/dump.zip"));
        server.body("/dump.xml", document("urlset", &format!("capability=\"resourcedump\" {at}"), &package));
        let caps = [("resourcelist", "/list.xml"), ("resourcedump", "/dump.xml")].map(|(capability, path)| {
            format!("<url><loc>{}</loc><rs:md capability=\"{capability}\"/></url>", server.url(path))
        });
        server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &caps.concat()));
    }

    fn run(&self) -> (Result<Summary, Error>, Vec<String>) {
        let told = std::sync::Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Error(problem) | Event::Notice(problem) = event {
                told.lock().unwrap().push(format!("{} {}", problem.code, problem.message));
            }
        };
        let ran = sync(&self.options, &observer, &AtomicBool::new(false));
        (ran, told.into_inner().unwrap())
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.options.folder.join(path)).ok()
    }

    /// All that is outside of the copy.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(path: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in fs::read_dir(path).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, found);
                    found.insert(path, Vec::new());
                } else {
                    found.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.place.path().join("outside"), &mut found);
        found
    }
}

fn remove(path: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path).unwrap();
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn links_planted_in_the_state_lead_nowhere() {
    const FILE: &[(&str, bool)] = &[("victim", false), ("missing", false), ("victim", true), ("empty", true)];
    const FOLDER: &[(&str, bool)] = &[("folder", false), ("victim", true)];
    let names = [
        ("mirror.db", FILE),
        ("mirror.db-wal", &FILE[2..]),
        ("mirror.db-shm", &FILE[..2]),
        ("mirror.db-journal", &FILE[1..3]),
        ("lock", &FILE[1..]),
        ("owner", FILE),
        ("partial", FOLDER),
        ("history", FOLDER),
        ("backup", FOLDER),
        ("packages", FOLDER),
        ("", &FOLDER[..1]),
    ];
    std::thread::scope(|scope| {
        for (name, targets) in names {
            scope.spawn(move || targets.iter().for_each(|(target, hard)| plant(name, target, *hard)));
        }
    });
}

fn plant(name: &str, target: &str, hard: bool) {
    let mut world = World::new();
    let (_, told) = world.run();
    assert_eq!(world.read("a").as_deref(), Some("one"), "{told:?}");
    assert_eq!(world.read(".abreast/history/a/%@20250101T000000Z").as_deref(), Some("first"), "{told:?}");
    if name == "owner" {
        // Written where the state is elsewhere.
        world.options.state = Some(world.place.path().join("state"));
        remove(&world.state());
        fs::create_dir(world.state()).unwrap();
    }
    let planted = world.state().join(name);
    let target = world.place.path().join("outside").join(target);
    remove(&planted);
    if hard {
        fs::hard_link(&target, &planted).unwrap();
    } else {
        symlink(&target, world.state().join(name).components().as_path()).unwrap();
    }
    // All that the state folder is for: a newer version, a file changed here, a version, a package, a large file.
    fs::write(world.options.folder.join("a"), "changed here").unwrap();
    world.publish("two");
    world.options.baseline = true;
    let before = world.outside();
    let (ran, told) = world.run();
    let what = format!("{name} {} {hard}: {:?} {told:?}", target.display(), ran.map(|summary| summary.exit_code));
    assert_eq!(world.outside(), before, "{what}");
    let kept = world.read("a");
    assert!(matches!(kept.as_deref(), Some("changed here" | "two")), "{what}");
    if kept.as_deref() == Some("two") && !planted.is_symlink() && name != "owner" {
        let saved = fs::read_dir(world.state().join("backup")).unwrap().count();
        assert_eq!(saved, 1, "{what}");
    }
}

#[test]
fn a_begun_file_that_is_a_link_is_begun_again() {
    for hard in [false, true] {
        let world = World::new();
        let _ = world.run();
        let begun = || {
            let mut entries = fs::read_dir(&world.options.folder).unwrap().flatten();
            entries.find(|entry| entry.file_name().to_string_lossy().starts_with(".%~")).map(|entry| entry.path())
        };
        let planted = begun().expect("the large file was begun");
        fs::remove_file(&planted).unwrap();
        let target = world.place.path().join("outside/victim");
        if hard {
            fs::hard_link(&target, &planted).unwrap();
        } else {
            symlink(&target, &planted).unwrap();
        }
        world.server.put("/d/large", Answer::ok(vec![b'x'; LARGE]).header("etag", "\"large\""));
        let before = world.outside();
        let (ran, told) = world.run();
        assert_eq!(world.outside(), before, "hard {hard} {told:?}");
        assert_eq!(ran.unwrap().exit_code, 0, "{told:?}");
        assert_eq!(fs::read(world.options.folder.join("large")).unwrap(), vec![b'x'; LARGE]);
        assert_eq!(begun(), None);
    }
}

#[test]
fn what_was_begun_of_a_withdrawn_resource_is_removed() {
    let world = World::new();
    let _ = world.run();
    let left = || {
        let begun = fs::read_dir(&world.options.folder).unwrap().flatten();
        let begun = begun.filter(|entry| entry.file_name().to_string_lossy().starts_with(".%~")).count();
        (begun, fs::read_dir(world.state().join("partial")).map_or(0, Iterator::count))
    };
    assert_eq!(left(), (1, 1));
    // The Source withdraws it, and nothing else is to be done.
    let list = String::from_utf8(world.server.page("/list.xml")).unwrap();
    let end = list.rfind("<url>").unwrap();
    world.server.body("/list.xml", format!("{}</urlset>", &list[..end]));
    let (ran, told) = world.run();
    assert_eq!(ran.unwrap().exit_code, 0, "{told:?}");
    assert_eq!(left(), (0, 0), "{told:?}");
}
