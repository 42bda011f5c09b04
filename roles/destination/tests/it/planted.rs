//! Links planted in a copy's state folder, and in place of incomplete files, are not followed.

use crate::copy::{Copy, Ran};
use abreast_destination::Dumps;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, capability_list, document};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::zip::Zip;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const LARGE: usize = 9 << 20;
static LARGE_MD5: OnceLock<String> = OnceLock::new();

/// A Source with a version of a resource, a package and one large resource; its copy; and the files
/// next to the copy.
struct World {
    server: Server,
    copy: Copy,
}

impl World {
    fn new() -> Self {
        let server = Server::start();
        let mut copy = Copy::of(server.url("/caps.xml"));
        copy.options.net.retries = 0;
        copy.options.base = Some(server.url("/d/"));
        copy.options.history = Some(3);
        copy.options.dumps = Dumps::Always;
        let world = Self { server, copy };
        fs::create_dir_all(world.outside().join("folder")).unwrap();
        fs::write(world.outside().join("victim"), "precious").unwrap();
        fs::write(world.outside().join("empty"), "").unwrap();
        world.server.body("/v/1", "first");
        world.publish("one");
        world
    }

    fn state(&self) -> PathBuf {
        self.copy.folder().join(".abreast")
    }

    /// Publishes a version of the small resource, in a list, as a file and in a package.
    fn publish(&self, body: &str) {
        let server = &self.server;
        server.body("/d/a", body);
        // The transfer is interrupted.
        let mut cut =
            format!("HTTP/1.1 200 OK\r\nETag: \"large\"\r\nContent-Length: {LARGE}\r\n\r\n")
                .into_bytes();
        cut.resize(cut.len() + LARGE - 1_000, b'x');
        server.put("/d/large", Answer::raw(cut));
        let md = |body: &[u8], more: &str| {
            format!("<rs:md hash=\"md5:{}\" length=\"{}\" {more}/>", md5_hex(body), body.len())
        };
        let memento = format!(
            "<rs:ln rel=\"memento\" href=\"{}\" modified=\"2025-01-01T00:00:00Z\"/>",
            server.url("/v/1")
        );
        let small = |more: &str| {
            format!(
                "<url><loc>{}</loc>{}{memento}</url>",
                server.url("/d/a"),
                md(body.as_bytes(), more)
            )
        };
        let large = format!(
            "<url><loc>{}</loc><rs:md hash=\"md5:{}\" length=\"{LARGE}\"/></url>",
            server.url("/d/large"),
            LARGE_MD5.get_or_init(|| md5_hex(vec![b'x'; LARGE]))
        );
        let at = format!("at=\"{BEGIN}\"");
        server.body(
            "/list.xml",
            document("urlset", &format!("capability=\"resourcelist\" {at}"), &(small("") + &large)),
        );
        let mut zip = Zip::new();
        let manifest = document(
            "urlset",
            &format!("capability=\"resourcedump-manifest\" {at}"),
            &small("path=\"/1\""),
        );
        zip.add("1", body.as_bytes()).add("manifest.xml", manifest.as_bytes());
        server.body("/dump.zip", zip.finish());
        let package = format!("<url><loc>{}</loc></url>", server.url("/dump.zip"));
        server.body(
            "/dump.xml",
            document("urlset", &format!("capability=\"resourcedump\" {at}"), &package),
        );
        let lists = [("resourcelist", "/list.xml"), ("resourcedump", "/dump.xml")];
        server.body(
            "/caps.xml",
            capability_list(lists.map(|(capability, path)| (capability, server.url(path)))),
        );
    }

    fn run(&self) -> Ran {
        self.copy.try_run()
    }

    fn outside(&self) -> PathBuf {
        self.copy.place.path().join("outside")
    }

    /// All that is outside of the copy.
    fn all_outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
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
        walk(&self.outside(), &mut found);
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
fn links_planted_in_the_state_folder_are_not_followed() {
    const FILE: &[(&str, bool)] =
        &[("victim", false), ("missing", false), ("victim", true), ("empty", true)];
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
            scope.spawn(move || {
                for (target, hard) in targets {
                    plant(name, target, *hard);
                }
            });
        }
    });
}

fn plant(name: &str, target: &str, hard: bool) {
    let mut world = World::new();
    let ran = world.run();
    assert_eq!(world.copy.read("a").as_deref(), Some("one"), "{:?}", ran.reported);
    assert_eq!(
        world.copy.read(".abreast/history/a/%@20250101T000000Z").as_deref(),
        Some("first"),
        "{:?}",
        ran.reported
    );
    if name == "owner" {
        // Written if the state is elsewhere.
        world.copy.options.state = Some(world.copy.place.path().join("state"));
        remove(&world.state());
        fs::create_dir(world.state()).unwrap();
    }
    let planted = world.state().join(name);
    let target = world.outside().join(target);
    remove(&planted);
    if hard {
        fs::hard_link(&target, &planted).unwrap();
    } else {
        symlink(&target, world.state().join(name).components().as_path()).unwrap();
    }
    // All uses of the state folder: a newer version, a locally changed file, an earlier version, a
    // package, a large file.
    fs::write(world.copy.folder().join("a"), "changed here").unwrap();
    world.publish("two");
    world.copy.options.baseline = true;
    let before = world.all_outside();
    let ran = world.run();
    let what = format!("{name} {} {hard}: {} {:?}", target.display(), ran.code(), ran.reported);
    assert_eq!(world.all_outside(), before, "{what}");
    let kept = world.copy.read("a");
    assert!(matches!(kept.as_deref(), Some("changed here" | "two")), "{what}");
    if kept.as_deref() == Some("two") && !planted.is_symlink() && name != "owner" {
        let saved = fs::read_dir(world.state().join("backup")).unwrap().count();
        assert_eq!(saved, 1, "{what}");
    }
}

#[test]
fn a_partial_file_that_is_a_link_is_started_again() {
    for hard in [false, true] {
        let world = World::new();
        let _ = world.run();
        let begun = || {
            let mut entries = fs::read_dir(world.copy.folder()).unwrap().flatten();
            entries
                .find(|entry| entry.file_name().to_string_lossy().starts_with(".%~"))
                .map(|entry| entry.path())
        };
        let planted = begun().expect("the large file was begun");
        fs::remove_file(&planted).unwrap();
        let target = world.outside().join("victim");
        if hard {
            fs::hard_link(&target, &planted).unwrap();
        } else {
            symlink(&target, &planted).unwrap();
        }
        world.server.put("/d/large", Answer::ok(vec![b'x'; LARGE]).header("etag", "\"large\""));
        let before = world.all_outside();
        let ran = world.run();
        assert_eq!(world.all_outside(), before, "hard {hard} {:?}", ran.reported);
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert_eq!(fs::read(world.copy.folder().join("large")).unwrap(), vec![b'x'; LARGE]);
        assert_eq!(begun(), None);
    }
}

#[test]
fn the_partial_download_of_a_withdrawn_resource_is_removed() {
    let world = World::new();
    let _ = world.run();
    let left = || {
        let begun = fs::read_dir(world.copy.folder()).unwrap().flatten();
        let begun =
            begun.filter(|entry| entry.file_name().to_string_lossy().starts_with(".%~")).count();
        (begun, fs::read_dir(world.state().join("partial")).map_or(0, Iterator::count))
    };
    assert_eq!(left(), (1, 1));
    // The Source withdraws it, and nothing else is to be done.
    let list = String::from_utf8(world.server.page("/list.xml")).unwrap();
    let end = list.rfind("<url>").unwrap();
    world.server.body("/list.xml", format!("{}</urlset>", &list[..end]));
    let ran = world.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_eq!(left(), (0, 0), "{:?}", ran.reported);
}
