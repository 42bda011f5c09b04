//! Copies from dumps of ResourceSync 0.1 that are WARC files.

use crate::contract::kills::run_killed_at;
use crate::copy::{Copy, Ran};
use crate::rs01_source::{OldSource, document, link, modified};
use abreast_destination::{Dumps, Event};
use abreast_testkit::pages::Answer;
use abreast_testkit::warc::Warc;
use std::sync::atomic::{AtomicUsize, Ordering};

const DUMP: &str = "http://www.openarchives.org/rs/dump";

fn copy_at(source: &OldSource, path: &str) -> Copy {
    let mut copy = Copy::of(source.server.url(path));
    copy.options.base = Some(source.server.url("/"));
    copy
}

fn run_equal(copy: &Copy, source: &OldSource) -> Ran {
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert_eq!(copy.texts(), source.texts(), "{:?}", ran.reported);
    ran
}

fn some(source: &mut OldSource, count: usize) {
    for number in 0..count {
        source.set(&format!("/f{number:02}"), &format!("file {number}"));
    }
    source.snapshot();
}

/// The manifest of all resources.
fn manifest(source: &OldSource) -> String {
    let entries: String = source.kept.keys().map(|path| source.entry(path, "")).collect();
    document("urlset", "", &(modified(&source.now()) + &entries))
}

/// Adds a record for each resource but those.
fn add_all(warc: &mut Warc, source: &OldSource, except: &[&str]) {
    for (path, body) in source.kept.iter().filter(|(path, _)| !except.contains(&path.as_str())) {
        warc.ok(&source.server.url(path), body.as_bytes());
    }
}

/// A dump of all resources.
fn dump(source: &OldSource, mut warc: Warc) -> Vec<u8> {
    warc.info().resource("http://h/d/manifest.xml", manifest(source).as_bytes());
    add_all(&mut warc, source, &[]);
    warc.finish()
}

fn put(source: &OldSource, path: &str, body: Vec<u8>) {
    let etag = format!("\"{}\"", abreast_testkit::digest::md5_hex(&body));
    source.server.put(path, Answer::ok(body).header("etag", &etag));
}

/// Addresses of resources that were requested, each once.
fn asked(source: &OldSource) -> Vec<String> {
    let mut log = source.server.take_log();
    log.retain(|path| path.starts_with("/f"));
    log.sort();
    log.dedup();
    log
}

#[test]
fn a_warc_by_itself_is_a_source() {
    for warc in [Warc::new, Warc::plain] {
        let mut source = OldSource::new();
        some(&mut source, 40);
        put(&source, "/dump", dump(&source, warc()));
        let copy = copy_at(&source, "/dump");
        run_equal(&copy, &source);
        assert!(asked(&source).is_empty());
        assert_eq!(run_equal(&copy, &source).summary().unchanged, 0, "it is not read again");
        source.kept.remove("/f00");
        source.kept.insert("/f01".to_owned(), "other".to_owned());
        put(&source, "/dump", dump(&source, warc()));
        let ran = run_equal(&copy, &source);
        assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1));
        assert_eq!(copy.audit(true).exit_code, 0);

        // A dump that is not whole changes nothing.
        source.kept.remove("/f02");
        let whole = dump(&source, warc());
        let before = copy.texts();
        for cut in [8, whole.len() / 2, whole.len() - 1] {
            put(&source, "/dump", whole[..cut].to_vec());
            let ran = copy.try_run();
            assert_eq!(ran.code(), "dump.warc", "{:?}", ran.result);
            assert_eq!(copy.texts(), before);
        }
        let mut without = warc();
        add_all(without.info(), &source, &[]);
        put(&source, "/dump", without.finish());
        assert_eq!(copy.try_run().code(), "dump.manifest");
        assert_eq!(copy.texts(), before);
        put(&source, "/dump", whole);
        assert_eq!(run_equal(&copy, &source).summary().deleted, 1);
    }
}

#[test]
fn a_sitemap_with_a_warc_only_is_copied_from_it() {
    let mut source = OldSource::new();
    source.links = link(DUMP, "/d.warc.gz");
    some(&mut source, 5);
    source.server.put("/d.warc.gz", Answer::ok(dump(&source, Warc::new())));
    let mut copy = copy_at(&source, "/s.xml");
    copy.options.dumps = Dumps::Always;
    run_equal(&copy, &source);
    assert!(asked(&source).is_empty());
    source.set("/f01", "changed later");
    run_equal(&copy, &source);
    assert_eq!(asked(&source), ["/f01"]);

    // A damaged dump is skipped, and its resources are requested.
    let whole = dump(&source, Warc::new());
    source.server.put("/d.warc.gz", Answer::ok(&whole[..whole.len() - 1]));
    let mut copy = copy_at(&source, "/s.xml");
    copy.options.dumps = Dumps::Always;
    let ran = run_equal(&copy, &source);
    assert!(ran.has("dump.warc"), "{:?}", ran.reported);
    assert_eq!(asked(&source).len(), 5);
}

#[test]
fn what_a_warc_does_not_have_whole_is_requested() {
    let mut source = OldSource::new();
    source.shape.fixity = false;
    some(&mut source, 9);
    let mut warc = Warc::new();
    warc.info().resource("http://h/d/manifest.xml", manifest(&source).as_bytes());
    let paths: Vec<_> = (0..8).map(|number| format!("/f0{number}")).collect();
    add_all(&mut warc, &source, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let uri = |number: usize| source.server.url(&paths[number]);
    warc.response(&uri(0), "HTTP/1.1 404 Not Found\r\n", b"gone");
    warc.response(&uri(1), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", b"file");
    warc.response(&uri(2), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", b"5\r\nfi");
    warc.response(&uri(3), "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n", b"packed");
    let other = warc.fields("resource", &uri(4), "text/plain", b"file 4");
    warc.record(&other, b"file X").ok(&uri(5), b"one").ok(&uri(5), b"two");
    warc.ok(&uri(6), b"file 5").date("2026-01-02T00:00:00Z");
    let revisit = warc.fields("revisit", &uri(6), "application/http", b"HTTP/1.1 200 OK\r\n\r\n");
    warc.record(&revisit, b"HTTP/1.1 200 OK\r\n\r\n").ok("http://elsewhere.example/x", b"x");
    // The last resource has no record.
    put(&source, "/d.warc", warc.finish());
    let copy = copy_at(&source, "/d.warc");
    let ran = run_equal(&copy, &source);
    assert_eq!(asked(&source), paths);
    for code in [
        "dump.status",
        "dump.length",
        "dump.encoding",
        "dump.checksum",
        "dump.duplicate",
        "dump.revisit",
        "dump.missing",
        "dump.stray",
    ] {
        assert!(ran.has(code), "{code} {:?}", ran.reported);
    }
}

#[test]
fn digests_of_the_manifest_decide_what_is_taken() {
    let mut source = OldSource::new();
    some(&mut source, 4);
    let mut warc = Warc::new();
    warc.info().resource("http://h/d/manifest.xml", manifest(&source).as_bytes());
    add_all(&mut warc, &source, &["/f00", "/f01"]);
    // Bytes as they were transferred, and bytes of another version.
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n";
    warc.response(&source.server.url("/f00"), head, b"file 0");
    warc.ok(&source.server.url("/f01"), b"file X");
    put(&source, "/d.warc", warc.finish());
    let ran = run_equal(&copy_at(&source, "/d.warc"), &source);
    assert_eq!(asked(&source), ["/f01"]);
    assert!(ran.has("dump.version"), "{:?}", ran.reported);
}

#[test]
fn only_a_category_is_copied_from_a_warc() {
    let mut source = OldSource::new();
    let frogs = "<xhtml:meta name=\"DC.subject\" content=\"Frogs\"/>";
    source.more.insert("/frog".to_owned(), frogs.to_owned());
    source.set("/frog", "a frog");
    source.set("/fish", "a fish");
    put(&source, "/d.warc.gz", dump(&source, Warc::new()));
    let mut copy = copy_at(&source, "/d.warc.gz");
    copy.options.categories = vec!["Frogs".to_owned()];
    assert_eq!(copy.run().excluded, 1);
    assert_eq!(copy.paths(), ["frog"]);
}

#[test]
fn a_killed_run_from_a_warc_is_continued() {
    let mut source = OldSource::new();
    some(&mut source, 60);
    put(&source, "/d.warc.gz", dump(&source, Warc::new()));
    for at in [1, 20, 59] {
        let copy = copy_at(&source, "/d.warc.gz");
        let items = AtomicUsize::new(0);
        run_killed_at(&copy, &|event: &Event<'_>| {
            matches!(event, Event::Item(_)) && items.fetch_add(1, Ordering::Relaxed) + 1 == at
        });
        run_equal(&copy, &source);
    }
}
