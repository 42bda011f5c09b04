//! A folder becomes equal to its Source, and stays so.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "tests may stop, and need not be fast"
)]

mod server;

use abreast_destination::{AuditOptions, Error, Event, ExitCode, MaxDelete, Mode, Summary, SyncOptions, audit, sync};
use server::{Answer, BEGIN, Server, Source, document, md5_hex};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Everything in a folder but the state: path, content.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, dir: &Path, out: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path == root.join(".abreast") {
                continue;
            }
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                walk(root, &path, out);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                let text = if kind.is_file() {
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
                } else {
                    "(special)".into()
                };
                out.insert(name, text);
            }
        }
    }
    let mut out = BTreeMap::new();
    walk(folder, folder, &mut out);
    out
}

fn paths(folder: &Path) -> Vec<String> {
    tree(folder).into_keys().collect()
}

/// A run, with the codes of its errors and notices.
struct Ran {
    result: Result<Summary, Error>,
    codes: Vec<String>,
}

impl Ran {
    fn summary(&self) -> &Summary {
        match &self.result {
            Ok(summary) => summary,
            Err(error) => panic!("{error} {:?}", self.codes),
        }
    }

    fn exit(&self) -> u8 {
        self.result.as_ref().map_or_else(|error| error.exit_code().number(), |summary| summary.exit_code)
    }

    fn code(&self) -> &str {
        self.result.as_ref().map_or_else(Error::code, |_| "")
    }
}

fn run(options: &SyncOptions) -> Ran {
    let codes = Mutex::new(Vec::new());
    let observer = |event: &Event<'_>| {
        if let Event::Error(problem) | Event::Notice(problem) = event {
            codes.lock().unwrap().push(problem.code.to_owned());
        }
    };
    let result = sync(options, &observer, &AtomicBool::new(false));
    Ran { result, codes: codes.into_inner().unwrap() }
}

struct Copy {
    place: tempfile::TempDir,
    options: SyncOptions,
}

impl Copy {
    fn of(url: impl Into<String>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(url, place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 2;
        // One request less to count; `tests/choices.rs` is about robots.
        options.ignore_robots = true;
        Self { place, options }
    }

    fn folder(&self) -> &Path {
        &self.options.folder
    }

    fn run(&self) -> Ran {
        run(&self.options)
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.folder().join(path)).ok()
    }
}

/// A plain Resource List with the given entries, and resources that all say hello.
fn list_of(server: &Server, locs: &[&str]) {
    let entries: String = locs.iter().map(|loc| format!("<url><loc>{}</loc></url>\n", server.url(loc))).collect();
    server.body("/list.xml", document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &entries));
    for loc in locs {
        server.body(loc.split('#').next().unwrap(), "hello");
    }
}

#[test]
fn a_copy_follows_its_source() {
    let mut source = Source::new();
    source.set("/d/a.txt", "one");
    source.set("/d/b.txt", "two");
    source.snapshot();
    source.set("/d/c.txt", "three");
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!((ran.summary().mode, ran.summary().created), (Mode::Baseline, 3));
    assert_eq!(copy.read("a.txt").as_deref(), Some("one"), "{:?}", paths(copy.folder()));
    let modified = std::fs::metadata(copy.folder().join("a.txt")).unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_748_736_000);

    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode, ran.summary().requests), (0, Mode::Unchanged, 1));
    assert_eq!(source.server.take_log(), ["/changelist.xml"]);

    source.set("/d/a.txt", "uno");
    source.delete("/d/b.txt");
    source.set("/d/e/f.txt", "new");
    source.server.take_log();
    let ran = copy.run();
    let summary = ran.summary();
    assert_eq!((summary.mode, summary.created, summary.updated, summary.deleted), (Mode::Incremental, 1, 1, 1));
    let mut log = source.server.take_log();
    log.sort();
    assert_eq!(log, ["/changelist.xml", "/d/a.txt", "/d/e/f.txt"]);
    assert_eq!(paths(copy.folder()), ["a.txt", "c.txt", "e/f.txt"]);
    assert_eq!(copy.read("a.txt").as_deref(), Some("uno"));
    assert_eq!(copy.run().summary().requests, 1);
}

#[test]
fn the_base_stays_what_it_was_first() {
    let mut source = Source::new();
    source.set("/d/e/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    source.set("/x", "2");
    assert_eq!(copy.run().exit(), 0);
    let outside = format!("%^{}/x", source.server.base.replace(':', "%3A").replace('/', "%2F"));
    assert_eq!(paths(copy.folder()), [outside, "a".to_owned()]);
}

#[test]
fn nothing_is_written_in_a_dry_run() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.dry_run = true;
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 1));
    assert!(!copy.folder().exists());
    copy.options.dry_run = false;
    copy.run().summary();
    source.delete("/a");
    copy.options.dry_run = true;
    for _ in 0..2 {
        let ran = copy.run();
        assert_eq!(ran.summary().deleted, 1);
        assert_eq!(paths(copy.folder()), ["a"]);
    }
    copy.options.dry_run = false;
    assert_eq!(copy.run().summary().deleted, 1);
    assert!(paths(copy.folder()).is_empty());
}

#[test]
fn unsorted_changes_end_in_the_newest_state() {
    let mut source = Source::new();
    source.set("/ok.txt", "hello");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    let entry = |change: &str, second: u32| {
        format!(
            "<url><loc>{}</loc><rs:md change=\"{change}\" datetime=\"2026-01-01T00:10:{second:02}Z\"/></url>",
            source.server.url("/ok.txt")
        )
    };
    let changes = format!("{}{}{}", source.changes, entry("deleted", 12), entry("created", 10));
    source
        .server
        .body("/changelist.xml", document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &changes));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().deleted), (0, 1), "{:?}", ran.codes);
    assert!(paths(copy.folder()).is_empty());
}

#[test]
fn a_lone_change_list_is_followed_from_its_beginning() {
    let server = Server::start();
    server.body("/ok.txt", "hello");
    let entry = |path: &str, change: &str, second: u32| {
        let loc = server.url(path);
        format!("<url><loc>{loc}</loc><rs:md change=\"{change}\" datetime=\"2026-01-01T00:10:{second:02}Z\"/></url>")
    };
    let changes = format!(
        "{}{}{}",
        entry("/gone.txt", "deleted", 12),
        entry("/gone.txt", "created", 10),
        entry("/ok.txt", "created", 11)
    );
    server.body("/changes.xml", document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &changes));
    let copy = Copy::of(server.url("/changes.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 1), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["ok.txt"]);
}

#[test]
fn changes_of_one_instant_are_taken_in_their_order() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    for (changes, there) in [("deleted created", true), ("created deleted", false), ("deleted created", true)] {
        for change in changes.split(' ') {
            if change == "deleted" {
                source.delete("/a");
            } else {
                source.set("/a", "2");
            }
            // All in one second.
            let stamp = format!("datetime=\"{}\"", source.now());
            source.clock -= 1;
            let before = format!("datetime=\"{}\"", source.now());
            source.changes = source.changes.replace(&stamp, &before);
            source.clock += u32::from(source.clock == 0);
        }
        source.publish();
        copy.run().summary();
        assert_eq!(copy.read("a").is_some(), there, "{changes}");
    }
}

#[test]
fn entries_without_any_time_are_followed_too() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.set("/b", "1");
    source.snapshot();
    source.changes.clear();
    source.publish();
    let copy = Copy::of(source.url());
    assert_eq!(copy.run().exit(), 0);
    source.server.body("/a", "2");
    let entries = format!(
        "{}<url><loc>{}</loc><rs:md change=\"deleted\"/></url>",
        source.entry("/a", b"2", " change=\"updated\"").replace("<lastmod>2025-06-01T00:00:00Z</lastmod>", ""),
        source.server.url("/b")
    );
    source
        .server
        .body("/changelist.xml", document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &entries));
    let ran = copy.run();
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1), "{:?}", ran.codes);
    assert_eq!(copy.run().summary().requests, 1);
}

#[test]
fn closed_lists_are_followed_through_the_index() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    // The list is closed, another begun, an index put before both.
    let server = source.server.clone();
    let md = |from: &str, until: &str| format!("capability=\"changelist\" from=\"{from}\"{until}");
    let until = " until=\"2026-01-01T00:30:00Z\"";
    let one = format!(
        "{}{}",
        source.changes,
        source.entry("/b", b"b", " change=\"created\" datetime=\"2026-01-01T00:20:00Z\"")
    );
    let two = source.entry("/c", b"c", " change=\"created\" datetime=\"2026-01-01T00:40:00Z\"");
    server.body("/b", "b");
    server.body("/c", "c");
    let link = format!("<rs:ln rel=\"index\" href=\"{}\"/>", server.url("/changes.xml"));
    server.body(
        "/changelist.xml",
        document("urlset", &md(BEGIN, until), &one).replace("<rs:md cap", &format!("{link}<rs:md cap")),
    );
    server.body("/changes-2.xml", document("urlset", &md("2026-01-01T00:30:00Z", ""), &two));
    let index = format!(
        "<sitemap><loc>{0}/changelist.xml</loc><rs:md from=\"{BEGIN}\"{until}/></sitemap>\
         <sitemap><loc>{0}/changes-2.xml</loc><rs:md from=\"2026-01-01T00:30:00Z\"/></sitemap>",
        server.base
    );
    server.body("/changes.xml", document("sitemapindex", &md(BEGIN, ""), &index));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created, ran.summary().mode), (0, 2, Mode::Incremental), "{:?}", ran.codes);
    server.take_log();
    assert_eq!(copy.run().summary().mode, Mode::Unchanged);
    assert_eq!(server.take_log(), ["/changes-2.xml"]);
}

#[test]
fn changes_that_were_missed_lead_to_a_new_baseline() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.set("/b", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    source.delete("/a");
    source.set("/c", "3");
    source.snapshot();
    let rotated = document("urlset", "capability=\"changelist\" from=\"2026-01-01T00:00:30Z\"", "");
    source.server.body("/changelist.xml", rotated);
    let ran = copy.run();
    assert!(ran.codes.contains(&"gap".to_owned()), "{:?}", ran.codes);
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Baseline));
    assert_eq!(paths(copy.folder()), ["b", "c"]);
    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.summary().mode, ran.summary().requests), (Mode::Unchanged, 1), "{:?}", source.server.take_log());
}

#[test]
fn a_source_that_went_back_is_compared_anew() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let restored = source.changes.clone();
    source.set("/a", "2");
    source.set("/b", "2");
    let copy = Copy::of(source.url());
    copy.run().summary();
    assert_eq!(copy.read("a").as_deref(), Some("2"));
    source.changes = restored;
    source.server.body("/a", "1");
    source.server.remove("/b");
    source.publish();
    let ran = copy.run();
    assert!(ran.codes.contains(&"gap".to_owned()), "{:?}", ran.codes);
    assert_eq!(ran.exit(), 0);
    assert_eq!(tree(copy.folder()), BTreeMap::from([("a".to_owned(), "1".to_owned())]));
}

#[test]
fn without_a_change_list_the_list_itself_is_asked() {
    let server = Server::start();
    list_of(&server, &["/a", "/b"]);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().summary().created, 2);
    server.take_log();
    assert_eq!(copy.run().summary().mode, Mode::Unchanged);
    assert_eq!(server.take_log(), ["/list.xml"]);
    list_of(&server, &["/b", "/c"]);
    server.body("/b", "changed");
    let ran = copy.run();
    assert_eq!((ran.summary().created, ran.summary().updated, ran.summary().deleted), (1, 1, 1), "{:?}", ran.codes);
}

#[test]
fn lists_out_of_order_are_compared_all_the_same() {
    let server = Server::start();
    list_of(&server, &["/m", "/a", "/z", "/b", "/a"]);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().summary().created, 4);
    list_of(&server, &["/z", "/m", "/a"]);
    let ran = copy.run();
    assert_eq!((ran.summary().created, ran.summary().deleted), (0, 1), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["a", "m", "z"]);
}

// Hostile URIs

#[test]
fn uris_that_would_escape_are_refused_and_the_rest_is_kept() {
    let server = Server::start();
    list_of(
        &server,
        &[
            "/d/../../../escaped.txt",
            "/%2e%2e%2fescape1",
            "/..%2fescape2",
            "/%2e./escape3",
            "/..%5cescape4",
            "/%252e%252e%252fsafe5",
            "/ok.txt",
        ],
    );
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().skipped, ran.summary().created), (3, 5, 2), "{:?}", ran.codes);
    assert_eq!(ran.codes.iter().filter(|code| *code == "path.escape").count(), 5);
    assert_eq!(paths(copy.folder()), ["%2e%2e%2fsafe5", "ok.txt"]);
    assert_eq!(std::fs::read_dir(copy.place.path()).unwrap().count(), 1);
}

#[test]
fn queries_are_resources_of_their_own() {
    let server = Server::start();
    list_of(&server, &["/i", "/i?", "/i?id=1", "/i?id=2", "/i?p=../../x", "/i?id=1#frag"]);
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), paths(copy.folder()).len()), (0, 5), "{:?}", ran.codes);
}

#[test]
fn other_hosts_and_schemes_need_leave() {
    let server = Server::start();
    let other = Server::start();
    other.body("/x", "other");
    list_of(&server, &["/ok.txt"]);
    let more = format!(
        "<url><loc>{}</loc></url><url><loc>file:///etc/passwd</loc></url><url><loc>data:text/plain,x</loc></url>\
         <url><loc>ftp://127.0.0.1/x</loc></url><url><loc>{}</loc></url>",
        other.url("/x"),
        server.url("/ok.txt")
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &more));
    let mut copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().skipped), (3, 4), "{:?}", ran.codes);
    assert!(ran.codes.iter().all(|code| code == "uri.authority"), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["ok.txt"]);
    // Leave given later is enough: what was refused is tried again.
    copy.options.allow_hosts.push(other.base.trim_start_matches("http://").to_owned());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created, ran.summary().skipped), (3, 1, 3), "{:?}", ran.codes);
}

#[test]
fn names_that_are_files_and_folders_are_all_kept_in_any_order() {
    for order in [["/a", "/a/b", "/a/b/c"], ["/a/b/c", "/a/b", "/a"], ["/a/b", "/a", "/a/b/c"]] {
        let mut source = Source::new();
        source.snapshot();
        let mut copy = Copy::of(source.url());
        copy.options.base = Some(source.server.url("/"));
        assert_eq!(copy.run().exit(), 0);
        for path in order {
            source.set(path, path);
            let ran = copy.run();
            assert_eq!(ran.exit(), 0, "{order:?} {:?}", ran.codes);
        }
        let expected: BTreeMap<String, String> = [("%!a", "/a"), ("a/%!b", "/a/b"), ("a/b/c", "/a/b/c")]
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into();
        assert_eq!(tree(copy.folder()), expected, "{order:?}");
        source.set("/a", "other");
        source.snapshot();
        copy.options.baseline = true;
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.summary().updated), (0, 1), "{:?}", ran.codes);
        copy.options.baseline = false;
        source.delete("/a/b/c");
        assert_eq!(copy.run().exit(), 0);
        // Names that no folder needs any more are given back, as a fresh copy has them.
        assert_eq!(paths(copy.folder()), ["%!a", "a/b"]);
        source.delete("/a/b");
        assert_eq!(copy.run().exit(), 0);
        assert_eq!(tree(copy.folder()), BTreeMap::from([("a".to_owned(), "other".to_owned())]));
        assert_eq!(copy.run().codes, [""; 0]);
    }
}

#[test]
fn names_that_are_files_and_folders_are_all_kept_in_one_run() {
    let server = Server::start();
    list_of(&server, &["/a", "/a/b", "/a/b/c", "/a/b/d", "/a!"]);
    let mut copy = Copy::of(server.url("/list.xml"));
    copy.options.connections = 1;
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 5), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["%!a", "a!", "a/%!b", "a/b/c", "a/b/d"]);
    let report = audit(
        &AuditOptions { sync: copy.options.clone(), full: true },
        &abreast_destination::Silent,
        &AtomicBool::new(false),
    )
    .unwrap();
    assert_eq!((report.same, report.exit_code), (5, 0));
}

#[test]
fn nothing_is_written_through_a_link() {
    let server = Server::start();
    list_of(&server, &["/a", "/a/b", "/a/b/c", "/l"]);
    let copy = Copy::of(server.url("/list.xml"));
    let outside = copy.place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "mine").unwrap();
    std::fs::create_dir(copy.folder()).unwrap();
    std::os::unix::fs::symlink(&outside, copy.folder().join("a")).unwrap();
    std::os::unix::fs::symlink(outside.join("file"), copy.folder().join("l")).unwrap();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().failed), (3, 4), "{:?}", ran.codes);
    assert!(ran.codes.iter().skip(1).all(|code| code == "path.symlink"), "{:?}", ran.codes);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "mine");
}

#[test]
fn pipes_and_hard_links_are_not_written_to() {
    let server = Server::start();
    list_of(&server, &["/pipe", "/linked"]);
    let copy = Copy::of(server.url("/list.xml"));
    std::fs::create_dir(copy.folder()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(copy.folder().join("pipe")).status().unwrap().success());
    let outside = copy.place.path().join("outside");
    std::fs::write(&outside, "mine").unwrap();
    std::fs::hard_link(&outside, copy.folder().join("linked")).unwrap();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().failed), (3, 1));
    assert_eq!(ran.codes, ["state.missing", "local.backup", "path.special"]);
    assert_eq!(copy.read("linked").as_deref(), Some("hello"));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
}

// Fixity

#[test]
fn bytes_that_are_not_as_listed_are_never_seen() {
    let mut source = Source::new();
    source.set("/ok.txt", "old copy");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    source.set("/ok.txt", "new copy");
    source.server.body("/ok.txt", "bad copy");
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.codes.as_slice()), (3, ["fixity.mismatch".to_owned()].as_slice()));
    assert_eq!(tree(copy.folder()), BTreeMap::from([("ok.txt".to_owned(), "old copy".to_owned())]));
    // It is not forgotten: the next run, with an unchanged list, tries again.
    source.server.body("/ok.txt", "new copy");
    let ran = copy.run();
    assert_eq!((ran.exit(), copy.read("ok.txt").as_deref()), (0, Some("new copy")), "{:?}", ran.codes);
}

#[test]
fn unknown_algorithms_are_told_and_refused_on_demand() {
    let server = Server::start();
    let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let entries = format!(
        "<url><loc>{0}/ok.txt</loc><rs:md length=\"5\" hash=\"sha3-512:00 sha-256:{sha}\"/></url>\
         <url><loc>{0}/ok2.txt</loc><rs:md hash=\"whirlpool:00\"/></url>",
        server.base
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entries));
    server.body("/ok.txt", "hello");
    server.body("/ok2.txt", "hello");
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().unverified), (0, 1));
    assert_eq!(ran.codes, ["fixity.unknown", "fixity.unknown"]);
    let mut strict = Copy::of(server.url("/list.xml"));
    strict.options.require_fixity = true;
    let ran = strict.run();
    assert_eq!((ran.exit(), ran.summary().skipped), (3, 1));
    assert_eq!(paths(strict.folder()), ["ok.txt"]);
}

#[test]
fn a_body_cut_short_is_retried_and_reported() {
    let server = Server::start();
    list_of(&server, &["/cut", "/chunked", "/mends", "/ok"]);
    server.put("/cut", Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello"));
    server.put("/chunked", Answer::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"));
    let tries = AtomicBool::new(false);
    server.handler(move |path, _| {
        (path == "/mends" && !tries.swap(true, std::sync::atomic::Ordering::Relaxed)).then(|| Answer::status(503))
    });
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!(
        (ran.exit(), ran.codes.as_slice()),
        (3, ["http.truncated".to_owned(), "http.truncated".to_owned()].as_slice())
    );
    assert_eq!(paths(copy.folder()), ["mends", "ok"]);
    assert_eq!(server.take_log().iter().filter(|path| *path == "/cut").count(), 3);
}

#[test]
fn a_large_body_is_continued_where_it_broke_off() {
    let server = Server::start();
    let body: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let entry = format!(
        "<url><loc>{}</loc><rs:md length=\"{}\" hash=\"md5:{}\"/></url>",
        server.url("/big"),
        body.len(),
        md5_hex(&body)
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entry));
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let sent = body.clone();
    server.handler(move |path, _| {
        if path != "/big" {
            return None;
        }
        let head = if tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            let mut raw =
                format!("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: {}\r\n\r\n", sent.len()).into_bytes();
            raw.extend_from_slice(&sent[..2_000_000]);
            raw
        } else {
            // Whatever was asked for: a whole body is a right answer to a range too.
            let mut raw =
                format!("HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: {}\r\n\r\n", sent.len()).into_bytes();
            raw.extend_from_slice(&sent);
            raw
        };
        Some(Answer::raw(head))
    });
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().exit(), 0);
    assert_eq!(std::fs::read(copy.folder().join("big")).unwrap(), body);
    assert_eq!(paths(copy.folder()), ["big"]);
}

// Lists that cannot be trusted

#[test]
fn no_deletion_follows_from_a_bad_list() {
    let server = Server::start();
    let all: Vec<String> = (0..20).map(|number| format!("/r{number:02}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    list_of(&server, &all);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().summary().created, 20);
    let whole = document("urlset", "capability=\"resourcelist\"", "");
    let cut = "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>http";
    for (answer, exit) in [
        (Answer::ok(whole), 4),
        (Answer::ok(cut), 4),
        (Answer::ok(""), 4),
        (Answer::ok("<html><head><title>Log in</title></head><body>please</body></html>"), 4),
        (Answer::ok("<!DOCTYPE html><html><body><p>please<br></body></html>"), 4),
        (Answer::ok("<urlset xmlns=\"http://wrong.example/\"></urlset>"), 4),
        (Answer::status(404), 4),
        (Answer::status(403), 12),
        (Answer::status(500), 5),
        (Answer::status(503), 5),
        (Answer::status(204), 4),
        (Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<?xml version=\"1.0\"?>"), 5),
    ] {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let status = answer.status;
        server.put("/list.xml", answer);
        let ran = copy.run();
        assert_eq!(ran.exit(), exit, "{status} {text} {:?} {}", ran.codes, ran.code());
        assert_eq!(paths(copy.folder()).len(), 20);
    }
}

#[test]
fn an_index_with_a_missing_list_deletes_nothing() {
    let server = Server::start();
    let entry = |path: &str| format!("<url><loc>{}</loc></url>", server.url(path));
    let one = document("urlset", "capability=\"resourcelist\"", &entry("/a"));
    server.body("/one.xml", one);
    server.body("/two.xml", document("urlset", "capability=\"resourcelist\"", &entry("/b")));
    server.body("/a", "a");
    server.body("/b", "b");
    server.body("/c", "c");
    let index =
        format!("<sitemap><loc>{0}/one.xml</loc></sitemap><sitemap><loc>{0}/two.xml</loc></sitemap>", server.base);
    server.body("/list.xml", document("sitemapindex", "capability=\"resourcelist\"", &index));
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 2), "{:?} {}", ran.codes, ran.code());
    assert_eq!(copy.run().summary().mode, Mode::Unchanged);
    server.remove("/two.xml");
    server.body("/one.xml", document("urlset", "capability=\"resourcelist\"", &entry("/c")));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.codes.as_slice()), (3, ["http.status".to_owned()].as_slice()));
    // What could be read is applied.
    assert_eq!(paths(copy.folder()), ["a", "b", "c"]);
    server.body("/two.xml", document("urlset", "capability=\"resourcelist\"", &entry("/b")));
    assert_eq!(copy.run().summary().deleted, 1);
    assert_eq!(paths(copy.folder()), ["b", "c"]);
}

#[test]
fn an_index_that_names_itself_is_read_once() {
    let server = Server::start();
    let index = format!("<sitemap><loc>{}/list.xml</loc></sitemap>", server.base);
    server.body("/list.xml", document("sitemapindex", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &index));
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.codes.as_slice()), (3, ["list.cycle".to_owned()].as_slice()), "{}", ran.code());
    assert!(server.take_log().len() < 8);
}

#[test]
fn an_index_of_missing_lists_ends_at_the_budget() {
    let server = Server::start();
    let index: String =
        (0..5_000).map(|number| format!("<sitemap><loc>{}/l{number}</loc></sitemap>", server.base)).collect();
    server.body("/list.xml", document("sitemapindex", "capability=\"resourcelist\"", &index));
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.code()), (8, "budget.lists"));
    assert!(server.take_log().len() < 200);
}

#[test]
fn a_list_that_keeps_changing_is_given_up() {
    let server = Server::start();
    let base = server.base.clone();
    server.handler(move |path, number| match path {
        "/list.xml" => {
            let entry = format!("<sitemap><loc>{base}/one.xml</loc></sitemap><!-- {number} -->");
            Some(Answer::ok(document("sitemapindex", "capability=\"resourcelist\"", &entry)))
        }
        "/one.xml" => Some(Answer::ok(document(
            "urlset",
            "capability=\"resourcelist\"",
            &format!("<url><loc>{base}/a</loc></url>"),
        ))),
        _ => None,
    });
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.code()), (5, "list.unstable"), "{:?}", ran.codes);
}

#[test]
fn times_beyond_the_servers_clock_do_not_move_the_cursor() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let far =
        document("urlset", "capability=\"resourcelist\" at=\"2099-01-01T00:00:00Z\"", &source.entry("/a", b"1", ""));
    source.server.put("/resourcelist.xml", Answer::ok(far).header("Date", "Thu, 01 Jan 2026 00:00:30 GMT"));
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.codes.as_slice()), (0, ["time.future".to_owned()].as_slice()));
    assert!(ran.summary().cursor.as_deref() <= Some("2026-01-01T00:00:30Z"), "{:?}", ran.summary().cursor);
}

#[test]
fn a_snapshot_that_ends_before_it_begins_is_refused() {
    let server = Server::start();
    server.body(
        "/list.xml",
        document(
            "urlset",
            "capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\" completed=\"2026-01-03T08:00:00Z\"",
            "",
        ),
    );
    let ran = Copy::of(server.url("/list.xml")).run();
    assert_eq!((ran.exit(), ran.code()), (4, "time.interval"));
}

#[test]
fn more_deletions_than_allowed_are_held() {
    let server = Server::start();
    let all: Vec<String> = (0..30).map(|number| format!("/r{number:02}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    list_of(&server, &all);
    let mut copy = Copy::of(server.url("/list.xml"));
    copy.run().summary();
    list_of(&server, &all[..10]);
    server.body("/r00", "changed");
    copy.options.max_delete = MaxDelete::Percent(50.0);
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().held, ran.summary().updated), (7, 20, 1), "{:?}", ran.codes);
    assert_eq!(ran.codes, ["delete.limit"]);
    assert_eq!(paths(copy.folder()).len(), 30);
    // Still there to decide upon, though the list has not changed since.
    copy.options.max_delete = MaxDelete::Count(20);
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().deleted), (0, 20), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()).len(), 10);
}

#[test]
fn half_of_a_small_copy_may_go_at_once_and_no_more() {
    for (kept, gone, exit) in [(28, 28, 7), (28, 15, 7), (28, 14, 0), (10, 6, 7), (10, 5, 0), (9, 9, 0)] {
        for listed in [true, false] {
            let mut source = Source::new();
            let all: Vec<String> = (0..kept).map(|number| format!("/r{number:02}")).collect();
            for path in &all {
                source.set(path, path);
            }
            source.set("/x", "more than nothing is listed");
            source.delete("/x");
            source.snapshot();
            let mut copy = Copy::of(source.url());
            copy.run().summary();
            // What comes anew does not make up for what goes.
            source.set("/new", "new");
            for path in &all[..gone] {
                source.delete(path);
            }
            if listed {
                source.snapshot();
                copy.options.baseline = true;
            }
            let ran = copy.run();
            let summary = ran.summary();
            let held = if exit == 7 { gone as u64 } else { 0 };
            let case = format!("{gone} of {kept}, listed: {listed} {:?}", ran.codes);
            assert_eq!((ran.exit(), summary.held, summary.deleted), (exit, held, gone as u64 - held), "{case}");
            assert_eq!(summary.created, 1, "{case}");
            copy.options.max_delete = MaxDelete::Count(gone as u64);
            assert_eq!(copy.run().exit(), 0, "{case}");
            assert_eq!(paths(copy.folder()).len(), kept - gone + 1, "{case}");
        }
    }
}

#[test]
fn failures_hold_deletions_back_for_one_run() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.set("/b", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    source.delete("/b");
    source.set("/c", "3");
    source.server.remove("/c");
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().held, ran.summary().failed), (3, 1, 1));
    assert_eq!(paths(copy.folder()), ["a", "b"]);
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().deleted, ran.summary().failed), (3, 1, 1), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["a"]);
}

// What people do in the folder

#[test]
fn files_that_people_changed_are_kept_aside() {
    let mut source = Source::new();
    source.set("/d/a", "1");
    source.set("/d/b", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.backup_dir = Some(copy.place.path().join("saved"));
    copy.run().summary();
    std::fs::write(copy.folder().join("a"), "by hand").unwrap();
    std::fs::write(copy.folder().join("b"), "by hand too").unwrap();
    source.set("/d/a", "2");
    source.delete("/d/b");
    copy.options.immutable = true;
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().skipped), (3, 1), "{:?}", ran.codes);
    assert_eq!(copy.read("a").as_deref(), Some("by hand"));
    copy.options.immutable = false;
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!(ran.codes, ["local.backup", "local.backup"]);
    assert_eq!(tree(copy.folder()), BTreeMap::from([("a".to_owned(), "2".to_owned())]));
    let saved: Vec<String> = tree(&copy.place.path().join("saved")).into_values().collect();
    assert_eq!(saved, ["by hand", "by hand too"]);
}

#[test]
fn strangers_files_stay_when_their_folder_empties() {
    let mut source = Source::new();
    source.set("/x", "1");
    source.set("/d/e/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    std::fs::write(copy.folder().join("d/mine"), "mine").unwrap();
    source.delete("/d/e/a");
    assert_eq!(copy.run().summary().deleted, 1);
    assert_eq!(paths(copy.folder()), ["d/mine", "x"]);
    assert!(!copy.folder().join("d/e").exists());
}

#[test]
fn files_found_here_are_taken_over_when_they_are_right() {
    let mut source = Source::new();
    source.set("/a", "same");
    source.set("/b", "other");
    source.snapshot();
    let copy = Copy::of(source.url());
    std::fs::create_dir(copy.folder()).unwrap();
    std::fs::write(copy.folder().join("a"), "same").unwrap();
    std::fs::write(copy.folder().join("b"), "OTHER").unwrap();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().unchanged, ran.summary().updated), (0, 1, 1), "{:?}", ran.codes);
    assert!(!source.server.take_log().contains(&"/a".to_owned()));
    assert_eq!(copy.read("b").as_deref(), Some("other"));
}

#[test]
fn two_runs_do_not_work_on_one_folder() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    let lock = std::fs::File::options().write(true).open(copy.folder().join(".abreast/lock")).unwrap();
    lock.lock().unwrap();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.code()), (10, "locked"));
    drop(lock);
    assert_eq!(copy.run().exit(), 0);
}

#[test]
fn copies_inside_copies_are_refused() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    for (folder, state) in [("copy/sub", None), ("", None), ("copy", Some("elsewhere"))] {
        let mut options = copy.options.clone();
        options.folder = copy.place.path().join(folder);
        options.state = state.map(|state| copy.place.path().join(state));
        let ran = run(&options);
        assert_eq!((ran.exit(), ran.code()), (2, "folder.overlap"), "{folder}");
    }
    let other = Server::start();
    list_of(&other, &["/z"]);
    let mut options = copy.options.clone();
    options.url = other.url("/list.xml");
    assert_eq!(run(&options).code(), "folder.source");
}

#[test]
fn state_may_be_elsewhere() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.state = Some(copy.place.path().join("state"));
    assert_eq!(copy.run().summary().created, 1);
    assert_eq!(copy.run().summary().requests, 1);
    assert!(copy.place.path().join("state/mirror.db").exists());
    copy.options.state = None;
    assert_eq!(copy.run().code(), "folder.overlap");
}

// Interruption

#[test]
fn a_run_that_was_stopped_is_continued() {
    let mut source = Source::new();
    for number in 0..300 {
        source.set(&format!("/d/{number:03}"), &format!("text {number}"));
    }
    source.snapshot();
    let copy = Copy::of(source.url());
    let cancel = std::sync::Arc::new(AtomicBool::new(false));
    let seen = cancel.clone();
    source.server.handler(move |path, number| {
        if path.starts_with("/d/") && number > 100 {
            seen.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        None
    });
    let error = sync(&copy.options, &abreast_destination::Silent, &cancel).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Cancelled);
    let kept = paths(copy.folder()).len();
    assert!(kept < 300 && paths(copy.folder()).iter().all(|path| !path.contains(".%~")), "{kept}");
    source.server.handler(|_, _| None);
    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), paths(copy.folder()).len()), (0, 300));
    // Nothing that was kept is fetched again.
    let again = source.server.take_log().iter().filter(|path| path.starts_with("/d/")).count();
    assert!(again <= 300 - kept, "{again} {kept}");
}

#[test]
fn resources_that_change_while_they_are_fetched_are_looked_at_again() {
    let mut source = Source::new();
    source.set("/a", "one");
    source.set("/b", "two");
    source.snapshot();
    let copy = Copy::of(source.url());
    // After the lists were read, one resource changes and another goes.
    let later = {
        let mut later = source.changes.clone();
        later.push_str(&source.entry("/a", b"newer", " change=\"updated\" datetime=\"2026-01-01T00:10:00Z\""));
        later.push_str(&format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-01T00:10:01Z\"/></url>",
            source.server.url("/b")
        ));
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &later)
    };
    let server = source.server.clone();
    let armed = AtomicBool::new(true);
    source.server.handler(move |path, _| {
        if (path == "/a" || path == "/b") && armed.swap(false, std::sync::atomic::Ordering::Relaxed) {
            server.body("/a", "newer");
            server.remove("/b");
            server.body("/changelist.xml", later.clone());
        }
        None
    });
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.codes.len(), ran.summary().failed), (0, 0, 0), "{:?}", ran.codes);
    assert_eq!(tree(copy.folder()), BTreeMap::from([("a".to_owned(), "newer".to_owned())]));
}

// Finding the lists

#[test]
fn lists_are_found_from_anywhere() {
    let mut source = Source::new();
    source.set("/d/a", "1");
    source.snapshot();
    let server = &source.server;
    let caps = server.url("/caps.xml");
    server.body(
        "/.well-known/resourcesync",
        document(
            "urlset",
            "capability=\"description\"",
            &format!("<url><loc>{caps}</loc><rs:md capability=\"capabilitylist\"/></url>"),
        ),
    );
    server
        .body("/page.html", "<!DOCTYPE html><html><head><link rel=\"resourcesync\" href=\"/caps.xml\"></head></html>");
    server.put("/linked", Answer::ok("text").header("Link", "</caps.xml>; rel=\"resourcesync\""));
    let up = format!("<rs:ln rel=\"up\" href=\"{caps}\"/>");
    server.body(
        "/list2.xml",
        document("urlset", "capability=\"resourcelist\"", "").replace("<rs:md", &format!("{up}<rs:md")),
    );
    for path in ["/", "/caps.xml", "/.well-known/resourcesync", "/page.html", "/linked", "/list2.xml"] {
        let copy = Copy::of(server.url(path));
        let ran = copy.run();
        assert_eq!(ran.exit(), 0, "{path} {:?} {}", ran.codes, ran.code());
        assert_eq!(paths(copy.folder()), ["a"], "{path}");
        assert_eq!(copy.run().summary().requests, 1, "{path}");
    }
}

#[test]
fn robots_and_plain_sitemaps_are_enough() {
    let server = Server::start();
    let plain = format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{}</loc></url></urlset>",
        server.url("/a")
    );
    server.body("/some.xml", plain);
    server.body("/robots.txt", format!("User-agent: *\nSitemap: {}\n", server.url("/some.xml")));
    server.body("/a", "1");
    let copy = Copy::of(server.url("/"));
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?} {}", ran.codes, ran.code());
    assert_eq!(paths(copy.folder()), ["a"]);
}

#[test]
fn of_several_sets_one_is_to_be_chosen() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let server = &source.server;
    let caps = format!("<url><loc>{0}/caps.xml</loc></url><url><loc>{0}/other/caps.xml</loc></url>", server.base);
    server.body("/description.xml", document("urlset", "capability=\"description\"", &caps));
    let mut copy = Copy::of(server.url("/description.xml"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.code()), (2, "discover.set"));
    assert!(ran.result.unwrap_err().to_string().contains("/other/caps.xml"));
    copy.options.set = Some("caps.xml".to_owned());
    assert_eq!(copy.run().code(), "discover.set");
    copy.options.set = Some(server.url("/caps.xml"));
    assert_eq!(copy.run().exit(), 0);
    assert_eq!(copy.run().summary().requests, 1);
}

#[test]
fn when_nothing_is_found_it_says_what_was_tried() {
    let server = Server::start();
    let ran = Copy::of(server.url("/")).run();
    assert_eq!((ran.exit(), ran.code()), (4, "discover.nothing"));
    let text = ran.result.unwrap_err().to_string();
    assert!(
        text.contains("/.well-known/resourcesync") && text.contains("/robots.txt") && text.contains("help:"),
        "{text}"
    );
}

// Audits

#[test]
fn an_audit_tells_each_difference() {
    let mut source = Source::new();
    for path in ["/same", "/longer", "/flipped", "/gone"] {
        source.set(path, "text");
    }
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    let audited = |full| {
        let items = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Item(item) = event {
                items.lock().unwrap().push(format!("{:?}", item.action));
            }
        };
        let report =
            audit(&AuditOptions { sync: copy.options.clone(), full }, &observer, &AtomicBool::new(false)).unwrap();
        let mut items = items.into_inner().unwrap();
        items.sort();
        (report, items)
    };
    assert_eq!((audited(true).0.same, audited(true).0.exit_code), (4, 0));
    std::fs::write(copy.folder().join("longer"), "longer text").unwrap();
    let before = std::fs::metadata(copy.folder().join("flipped")).unwrap().modified().unwrap();
    std::fs::write(copy.folder().join("flipped"), "tExt").unwrap();
    std::fs::File::options().write(true).open(copy.folder().join("flipped")).unwrap().set_modified(before).unwrap();
    std::fs::remove_file(copy.folder().join("gone")).unwrap();
    std::fs::create_dir(copy.folder().join("mine")).unwrap();
    std::fs::write(copy.folder().join("mine/own"), "mine").unwrap();
    source.set("/later", "not here yet");
    let (report, items) = audited(false);
    assert_eq!((report.same, report.updated, report.missing, report.extra, report.exit_code), (2, 1, 2, 1, 1));
    assert_eq!(items, ["Different", "Extra", "Missing", "Missing"]);
    let (report, _) = audited(true);
    assert_eq!((report.same, report.updated, report.missing, report.extra), (1, 2, 2, 1));
}

#[test]
fn an_audit_lists_what_is_extra_by_name() {
    let mut source = Source::new();
    source.set("/same", "text");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    for folder in ["b", "a", "a/c", "d"] {
        std::fs::create_dir_all(copy.folder().join(folder)).unwrap();
        for number in (0..20).rev() {
            std::fs::write(copy.folder().join(format!("{folder}/{number:02}")), "mine").unwrap();
        }
    }
    let paths = Mutex::new(Vec::new());
    let observer = |event: &Event<'_>| {
        if let Event::Item(item) = event {
            paths.lock().unwrap().push(item.path.to_owned());
        }
    };
    let options = AuditOptions { sync: copy.options.clone(), full: false };
    assert_eq!(audit(&options, &observer, &AtomicBool::new(false)).unwrap().extra, 80);
    let paths = paths.into_inner().unwrap();
    assert!(paths.is_sorted(), "{paths:?}");
}

#[test]
fn what_a_killed_run_left_is_taken_up() {
    let mut source = Source::new();
    source.set("/d/a", "one");
    source.set("/d/b", "two");
    source.snapshot();
    let copy = Copy::of(source.url());
    // Both are planned, neither is had.
    source.server.remove("/d/a");
    source.server.remove("/d/b");
    assert_eq!(copy.run().exit(), 3);
    assert!(paths(copy.folder()).is_empty());
    source.server.body("/d/a", "one");
    source.server.body("/d/b", "two");
    // One file had its final name when the process died, of the other only the beginning was written.
    std::fs::write(copy.folder().join("a"), "one").unwrap();
    let leftover = {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        source.server.url("/d/b").hash(&mut hasher);
        format!(".%~{:016x}", hasher.finish())
    };
    std::fs::write(copy.folder().join(leftover), "tw").unwrap();
    source.server.take_log();
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["a", "b"]);
    assert_eq!(source.server.take_log(), ["/changelist.xml", "/d/b"]);
}

#[test]
fn a_move_to_the_leaf_name_that_was_broken_off_is_finished() {
    let mut source = Source::new();
    source.set("/a", "file");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.run().summary();
    // The state said so already, the file had not moved yet.
    let mirror = abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
    let mut row = mirror.row(&source.server.url("/a")).unwrap().unwrap();
    row.leaf = true;
    mirror.put_row(&row).unwrap();
    drop(mirror);
    source.set("/a/b", "below");
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    let expected = [("%!a", "file"), ("a/b", "below")].map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(tree(copy.folder()), expected.into());
}

#[test]
fn files_that_a_power_loss_spoiled_are_fetched_again() {
    let mut source = Source::new();
    source.set("/a", "good");
    source.set("/b", "fine");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    let path = copy.folder().join("a");
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, "\0\0\0\0").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    let mirror = abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
    mirror.set_meta("written", Some("0 another-life-of-this-machine")).unwrap();
    drop(mirror);
    let ran = copy.run();
    assert!(ran.codes.contains(&"settle.recheck".to_owned()), "{:?}", ran.codes);
    assert_eq!((ran.exit(), copy.read("a").as_deref()), (0, Some("good")));
    let ran = copy.run();
    assert_eq!((ran.codes.len(), ran.summary().requests), (0, 1));
}

#[test]
fn following_sees_changes_until_it_is_stopped() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.interval = Duration::from_millis(5);
    let cancel = AtomicBool::new(false);
    let (send, seen) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let following = scope.spawn(|| {
            let observer = |event: &Event<'_>| match event {
                Event::Item(item) => send.send(format!("{:?} {}", item.action, item.path)).unwrap(),
                Event::Error(problem) => send.send(problem.code.to_owned()).unwrap(),
                _ => {}
            };
            abreast_destination::follow(&copy.options, &observer, &cancel)
        });
        let next = || seen.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(next(), "Created a");
        source.set("/b", "2");
        assert_eq!(next(), "Created b");
        // A Source that is away for a while is asked again.
        source.server.put("/changelist.xml", Answer::status(503));
        assert_eq!(next(), "http.status");
        source.delete("/a");
        while next() != "Deleted a" {}
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        following.join().unwrap().unwrap();
    });
    assert_eq!(paths(copy.folder()), ["b"]);
}

#[test]
fn a_dry_run_shows_the_baseline_that_a_gap_asks_for() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.run().summary();
    source.set("/b", "2");
    source.snapshot();
    source
        .server
        .body("/changelist.xml", document("urlset", "capability=\"changelist\" from=\"2026-01-01T00:00:30Z\"", ""));
    copy.options.dry_run = true;
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created, ran.summary().mode), (0, 1, Mode::Baseline), "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["a"]);
}

#[test]
fn packed_documents_and_packed_resources_are_read() {
    let server = Server::start();
    let gzip = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let entry = |path: &str, body: &[u8]| {
        format!(
            "<url><loc>{}</loc><rs:md length=\"{}\" hash=\"md5:{}\"/></url>",
            server.url(path),
            body.len(),
            md5_hex(body)
        )
    };
    let archive = gzip(b"an archive");
    // One is listed as it is sent, the other as it is when unpacked.
    let entries = format!("{}{}", entry("/a.gz", &archive), entry("/plain", b"plain text"));
    server.body("/list.xml.gz", gzip(document("urlset", "capability=\"resourcelist\"", &entries).as_bytes()));
    server.put("/a.gz", Answer::ok(archive.clone()).header("Content-Encoding", "gzip"));
    server.put("/plain", Answer::ok(gzip(b"plain text")).header("Content-Encoding", "gzip"));
    let copy = Copy::of(server.url("/list.xml.gz"));
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?} {}", ran.codes, ran.code());
    assert_eq!(std::fs::read(copy.folder().join("a.gz")).unwrap(), archive);
    assert_eq!(copy.read("plain").as_deref(), Some("plain text"));
}

#[test]
fn too_many_failures_end_the_run_without_deletions() {
    let server = Server::start();
    list_of(&server, &["/old"]);
    let copy = Copy::of(server.url("/list.xml"));
    copy.run().summary();
    let many: Vec<String> = (0..2_000).map(|number| format!("/m{number:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    list_of(&server, &many);
    for path in &many {
        server.remove(path);
    }
    server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().held), (8, 1), "{:?}", ran.summary());
    assert!(server.take_log().len() < 1_900);
    assert_eq!(paths(copy.folder()), ["old"]);
}

#[test]
fn a_server_that_says_nothing_does_not_keep_a_run_from_stopping() {
    // Takes connections, never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let copy = Copy::of(format!("http://{}/caps.xml", silent.local_addr().unwrap()));
    let cancel = AtomicBool::new(false);
    let began = std::time::Instant::now();
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| sync(&copy.options, &abreast_destination::Silent, &cancel));
        let _connection = silent.accept().unwrap();
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        run.join().unwrap().unwrap_err()
    });
    assert_eq!(error.exit_code(), ExitCode::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_large_file_is_continued_by_the_next_run() {
    let server = Server::start();
    let body: Vec<u8> = (0..12_000_000_u32).map(|number| (number % 253) as u8).collect();
    let entry = format!(
        "<url><loc>{}</loc><rs:md length=\"{}\" hash=\"md5:{}\"/></url>",
        server.url("/big"),
        body.len(),
        md5_hex(&body)
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entry));
    server.put("/big", Answer::ok(body.clone()).header("etag", "\"v1\""));
    let begin = body[..10_000_000].to_vec();
    let length = body.len();
    let cut = move |etag: &str| {
        let mut raw = format!("HTTP/1.1 200 OK\r\nETag: {etag}\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        raw.extend_from_slice(&begin);
        Answer::raw(raw)
    };
    for (etag, rest) in [("\"v1\"", 2_000_000), ("\"v0\"", 12_000_000)] {
        let mut copy = Copy::of(server.url("/list.xml"));
        copy.options.net.retries = 0;
        let (cut, etag) = (cut.clone(), etag.to_owned());
        server.handler(move |path, _| (path == "/big").then(|| cut(&etag)));
        assert_eq!(copy.run().exit(), 3);
        assert!(paths(copy.folder())[0].starts_with(".%~"), "{:?}", paths(copy.folder()));
        server.handler(|_, _| None);
        let ran = copy.run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
        let bytes = ran.summary().bytes;
        assert!((rest..rest + 20_000).contains(&bytes), "{bytes}");
        assert_eq!(std::fs::read(copy.folder().join("big")).unwrap(), body);
        assert_eq!(paths(copy.folder()), ["big"]);
        assert_eq!(std::fs::read_dir(copy.folder().join(".abreast/partial")).unwrap().count(), 0);
    }
}

#[test]
fn what_was_begun_is_removed_when_it_is_wanted_no_longer() {
    let mut source = Source::new();
    source.set("/small", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.options.net.retries = 0;
    copy.run().summary();
    let body = "x".repeat(9_000_000);
    source.set("/big", &body);
    let mut raw = b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 9000000\r\n\r\n".to_vec();
    raw.extend_from_slice(&body.as_bytes()[..8_900_000]);
    source.server.put("/big", Answer::raw(raw));
    assert_eq!(copy.run().exit(), 3);
    assert_eq!(paths(copy.folder()).len(), 2);
    source.delete("/big");
    source.set("/small", "2");
    let ran = copy.run();
    assert_eq!((ran.exit(), paths(copy.folder())), (0, vec!["small".to_owned()]), "{:?}", ran.codes);
}

#[test]
fn a_list_older_than_its_index_says_is_made_up_by_the_changes() {
    let source = Source::new();
    let server = source.server.clone();
    let at = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z");
    let index = format!("<sitemap><loc>{}</loc><rs:md at=\"{}\"/></sitemap>", server.url("/part.xml"), at(8));
    let list = |minute| format!("capability=\"resourcelist\" at=\"{}\"", at(minute));
    server.body("/resourcelist.xml", document("sitemapindex", &list(10), &index));
    // From a cache: the change of minute 8 is not in it.
    server.body("/part.xml", document("urlset", &list(5), &source.entry("/old", b"old", "")));
    let change = source.entry("/new", b"new", &format!(" change=\"created\" datetime=\"{}\"", at(8)));
    let from = format!("capability=\"changelist\" from=\"{BEGIN}\"");
    server.body("/changelist.xml", document("urlset", &from, &change));
    server.body("/old", "old");
    server.body("/new", "new");
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!(paths(copy.folder()), ["new", "old"]);
}

#[test]
fn an_empty_change_list_without_validators_is_no_new_beginning() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    let change = source.entry("/b", b"2", " change=\"created\" datetime=\"2026-01-01T00:30:00Z\"");
    source.server.body("/b", "2");
    let from = |from: &str| format!("capability=\"changelist\" from=\"{from}\"");
    source.server.body("/changelist.xml", document("urlset", &from(BEGIN), &change));
    copy.run().summary();
    // The list was closed; the next one begins where it ended, and is empty.
    let empty = document("urlset", &from("2026-01-01T00:30:00Z"), "");
    source.server.handler(move |path, _| {
        let raw = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{empty}", empty.len());
        (path == "/changelist.xml").then(|| Answer::raw(raw))
    });
    let ran = copy.run();
    assert!(!ran.codes.contains(&"gap".to_owned()), "{:?}", ran.codes);
    assert_ne!(ran.summary().mode, Mode::Baseline);
}

#[test]
fn an_index_whose_transfer_broke_off_is_read_once() {
    let source = Source::new();
    let server = source.server.clone();
    let parts: String =
        (0..3).map(|n| format!("<sitemap><loc>{}</loc></sitemap>\n", server.url(&format!("/part{n}.xml")))).collect();
    let list = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    let index = document("sitemapindex", &list, &parts);
    for n in 0..3 {
        let entry = source.entry(&format!("/r{n}"), b"x", "");
        server.body(&format!("/part{n}.xml"), document("urlset", &list, &entry));
        server.body(&format!("/r{n}"), "x");
    }
    source.publish();
    server.handler(move |path, times| {
        if path != "/resourcelist.xml" {
            return None;
        }
        let sent = if times <= 1 { &index[..index.len() - 60] } else { &index[..] };
        Some(Answer::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{sent}", index.len())))
    });
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 3), "{:?}", ran.codes);
}

#[test]
fn a_file_that_was_only_touched_is_the_same_to_an_audit() {
    let mut source = Source::new();
    source.set("/a", "text");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run().summary();
    let file = std::fs::File::options().write(true).open(copy.folder().join("a")).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let options = AuditOptions { sync: copy.options.clone(), full: false };
    let report = audit(&options, &abreast_destination::Silent, &AtomicBool::new(false)).unwrap();
    assert_eq!((report.same, report.exit_code), (1, 0));
}
