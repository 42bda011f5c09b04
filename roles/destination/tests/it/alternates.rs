//! Mirrors and patches are used, and their bytes are always verified.

use crate::copy::Copy;
use abreast_destination::{SinkOptions, WarcOptions};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, capability_list, document};
use abreast_testkit::pages::{Answer, Server};

/// An entry for a body, with links.
fn entry(server: &Server, path: &str, body: &str, more: &str, links: &str) -> String {
    format!(
        "<url><loc>{}</loc><rs:md hash=\"md5:{}\" length=\"{}\" {more}/>{links}</url>",
        server.url(path),
        md5_hex(body.as_bytes()),
        body.len()
    )
}

fn duplicate(url: &str, pri: &str) -> String {
    format!("<rs:ln rel=\"duplicate\" href=\"{url}\" {pri}/>")
}

fn list(server: &Server, entries: &str) -> String {
    server.body(
        "/list.xml",
        document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), entries),
    );
    server.url("/list.xml")
}

#[test]
fn a_mirror_is_used_when_the_source_fails() {
    let (source, mirror) = (Server::start(), Server::start());
    source.put("/d/a", Answer::status(500));
    mirror.body("/copies/a", "hello");
    let links =
        duplicate("gsiftp://elsewhere/a", "pri=\"1\"") + &duplicate(&mirror.url("/copies/a"), "");
    let copy =
        Copy::of(list(&source, &entry(&source, "/d/a", "hello", "", &links))).allowing(&mirror);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.read("a").as_deref()), (0, Some("hello")), "{:?}", ran.codes);
    assert!(ran.has("mirror.used"));
    assert_eq!(mirror.take_log(), ["/copies/a"]);
}

#[test]
fn bytes_of_a_mirror_count_only_with_the_digest_of_the_source() {
    let (source, mirror) = (Server::start(), Server::start());
    source.put("/d/a", Answer::status(404));
    mirror.body("/a", "HELLO");
    let links = duplicate(&mirror.url("/a"), "");
    let copy =
        Copy::of(list(&source, &entry(&source, "/d/a", "hello", "", &links))).allowing(&mirror);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.read("a")), (3, None), "{:?}", ran.codes);
    // No mirror is asked if no digest is listed.
    mirror.take_log();
    let bare = format!("<url><loc>{}</loc>{links}</url>", source.url("/d/a"));
    let copy = Copy::of(list(&source, &bare)).allowing(&mirror);
    assert_eq!(copy.try_run().exit(), 3);
    assert!(mirror.take_log().is_empty());
}

#[test]
fn mirrors_at_private_addresses_are_not_asked() {
    let (source, mirror) = (Server::start(), Server::start());
    source.put("/d/a", Answer::status(404));
    mirror.body("/a", "hello");
    let copy = Copy::of(list(
        &source,
        &entry(&source, "/d/a", "hello", "", &duplicate(&mirror.url("/a"), "pri=\"1\"")),
    ));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.read("a")), (3, None), "{:?}", ran.codes);
    assert!(mirror.take_log().is_empty());
}

#[test]
fn a_mirror_with_first_priority_is_used_first() {
    let (source, mirror) = (Server::start(), Server::start());
    for name in ["/d/a", "/d/b"] {
        source.body(name, "hello");
        mirror.body(name, "hello");
    }
    let entries = entry(&source, "/d/a", "hello", "", &duplicate(&mirror.url("/d/a"), "pri=\"1\""))
        + &entry(&source, "/d/b", "hello", "", &duplicate(&mirror.url("/d/b"), "pri=\"2\""));
    let copy = Copy::of(list(&source, &entries)).allowing(&mirror);
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(mirror.take_log(), ["/d/a"]);
}

/// A Source with one resource that a copy has stored, and a later Change List.
#[test]
fn a_mirror_that_keeps_failing_is_no_longer_asked() {
    let (source, mirror) = (Server::start(), Server::start());
    let mut entries = String::new();
    for number in 0..40 {
        let name = format!("/d/{number}");
        source.body(&name, "hello");
        // The mirror closes the connection without a response.
        mirror.put(&name, Answer::raw(""));
        entries += &entry(&source, &name, "hello", "", &duplicate(&mirror.url(&name), "pri=\"1\""));
    }
    let copy = Copy::of(list(&source, &entries)).allowing(&mirror);
    assert_eq!(copy.try_run().exit(), 0);
    let asked = mirror.take_log();
    let once: std::collections::HashSet<_> = asked.iter().collect();
    assert_eq!(once.len(), asked.len(), "{asked:?}");
    assert!(asked.len() < 40, "{asked:?}");
}

fn kept(path: &str, body: &str) -> (Server, Copy) {
    let source = Server::start();
    source.body(path, body);
    let lists = [("resourcelist", "/list.xml"), ("changelist", "/changes.xml")];
    source.body(
        "/caps.xml",
        capability_list(lists.map(|(capability, path)| (capability, source.url(path)))),
    );
    list(&source, &entry(&source, path, body, "", ""));
    changes(&source, "");
    let copy = Copy::of(source.url("/caps.xml"));
    assert_eq!(copy.try_run().exit(), 0);
    source.take_log();
    (source, copy)
}

fn changes(source: &Server, entries: &str) {
    source.body(
        "/changes.xml",
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), entries),
    );
}

fn updated(source: &Server, path: &str, body: &str, second: u32, links: &str) -> String {
    source.body(path, body);
    entry(
        source,
        path,
        body,
        &format!("change=\"updated\" datetime=\"2026-01-01T00:00:{second:02}.5Z\""),
        links,
    )
}

fn patch(source: &Server, path: &str, media_type: &str) -> String {
    let rel = "http://www.openarchives.org/rs/terms/patch";
    format!("<rs:ln rel=\"{rel}\" href=\"{}\" type=\"{media_type}\"/>", source.url(path))
}

#[test]
fn a_broken_transfer_from_a_mirror_leaves_nothing_behind() {
    let (source, mirror) = (Server::start(), Server::start());
    let body = "0123456789".repeat(1_000_000);
    source.body("/d/a", body.as_str());
    let begun = &body[..9 << 20];
    mirror.put(
        "/a",
        Answer::raw(format!(
            "HTTP/1.1 200 OK\r\nETag: \"m\"\r\nContent-Length: {}\r\n\r\n{begun}",
            body.len()
        )),
    );
    let links = duplicate(&mirror.url("/a"), "pri=\"1\"");
    let copy =
        Copy::of(list(&source, &entry(&source, "/d/a", &body, "", &links))).allowing(&mirror);
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(copy.read("a"), Some(body));
    let names: Vec<_> = std::fs::read_dir(&copy.options.folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "the file and the state: {names:?}");
}

#[test]
fn a_patch_that_robots_may_not_fetch_is_not_fetched() {
    let (source, mut copy) = kept("/d/a", "one\n");
    copy.options.ignore_robots = false;
    source.body("/robots.txt", "User-agent: *\nDisallow: /patch\n");
    source.body("/patch", "two\n");
    source.body("/d/a", "one\ntwo\n");
    changes(
        &source,
        &updated(
            &source,
            "/d/a",
            "one\ntwo\n",
            1,
            &patch(&source, "/patch", "application/x-append"),
        ),
    );
    assert_eq!((copy.try_run().exit(), copy.read("a").as_deref()), (0, Some("one\ntwo\n")));
    assert_eq!(source.take_log(), ["/changes.xml", "/robots.txt", "/d/a"]);
}

#[test]
fn a_patch_of_the_kept_version_replaces_a_whole_download() {
    let cases: [(&str, &str, &[u8], &str); 2] = [
        ("application/x-append", "one\n", b"two\n", "one\ntwo\n"),
        (
            "application/json-patch",
            "{\"title\":\"a record of some length, as records are\",\"a\":[1,2]}",
            br#"[{"op":"add","path":"/a/-","value":3}]"#,
            "{\"title\":\"a record of some length, as records are\",\"a\":[1,2,3]}",
        ),
    ];
    for (media_type, old, bytes, new) in cases {
        let (source, copy) = kept("/d/a", old);
        source.body("/patch", bytes);
        changes(&source, &updated(&source, "/d/a", new, 1, &patch(&source, "/patch", media_type)));
        source
            .put("/d/a", Answer::ok(new).header("last-modified", "Sun, 09 Sep 2001 01:46:40 GMT"));
        let ran = copy.try_run();
        assert_eq!((ran.exit(), copy.read("a").as_deref()), (0, Some(new)), "{:?}", ran.codes);
        assert_eq!(source.take_log(), ["/changes.xml", "/patch", "HEAD /d/a"]);
        let time = std::fs::metadata(copy.options.folder.join("a")).unwrap().modified().unwrap();
        let seconds = time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert_eq!(seconds, 1_000_000_000, "the time of the resource, not that of the patch");
    }
}

#[test]
fn a_patch_with_a_wrong_result_is_not_used() {
    for (media_type, bytes) in [
        ("application/x-append", "other\n"),
        ("application/json-patch+json", "[]"),
        ("application/x-bsdiff43", "ENDSLEY/BSDIFF43"),
        ("application/x-unknown", "two\n"),
    ] {
        let (source, copy) = kept("/d/a", "one\n");
        source.body("/patch", bytes);
        changes(
            &source,
            &updated(&source, "/d/a", "one\ntwo\n", 1, &patch(&source, "/patch", media_type)),
        );
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), copy.read("a").as_deref()),
            (0, Some("one\ntwo\n")),
            "{:?}",
            ran.codes
        );
        assert!(source.take_log().contains(&"/d/a".to_owned()));
    }
}

#[test]
fn a_patch_of_another_version_is_not_requested() {
    let (source, copy) = kept("/d/a", "one\n");
    source.body("/patch", "three\n");
    let first = updated(&source, "/d/a", "one\ntwo\n", 1, "");
    let second = updated(
        &source,
        "/d/a",
        "one\ntwo\nthree\n",
        2,
        &patch(&source, "/patch", "application/x-append"),
    );
    changes(&source, &(first + &second));
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(source.take_log(), ["/changes.xml", "/d/a"]);
    // Nor for a file that was changed here.
    source.body("/patch", "four\n");
    std::fs::write(copy.options.folder.join("a"), "changed here").unwrap();
    let third = updated(
        &source,
        "/d/a",
        "one\ntwo\nthree\nfour\n",
        3,
        &patch(&source, "/patch", "application/x-append"),
    );
    changes(&source, &third);
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(source.take_log(), ["/changes.xml", "/d/a"]);
    assert_eq!(copy.read("a").as_deref(), Some("one\ntwo\nthree\nfour\n"));
}

#[test]
fn the_patches_of_several_changes_are_applied_in_order() {
    let base = "one\n".repeat(1_000);
    let (source, copy) = kept("/d/a", &base);
    let (second, third) = (format!("{base}two\n"), format!("{base}two\nthree\n"));
    source.body("/patch/2", "two\n");
    source.body("/patch/3", "three\n");
    let append = "application/x-append";
    let first_change = updated(&source, "/d/a", &second, 1, &patch(&source, "/patch/2", append));
    let second_change = updated(&source, "/d/a", &third, 2, &patch(&source, "/patch/3", append));
    changes(&source, &(first_change + &second_change));
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), copy.read("a").as_deref()),
        (0, Some(third.as_str())),
        "{:?}",
        ran.codes
    );
    assert_eq!(source.take_log(), ["/changes.xml", "/patch/2", "/patch/3", "HEAD /d/a"]);
}

#[test]
fn as_many_earlier_versions_as_wanted_are_kept() {
    let source = Server::start();
    source.body("/d/a", "now");
    for (path, body) in [("/v/1", "first"), ("/v/2", "second"), ("/v/3", "third")] {
        source.body(path, body);
    }
    let memento = |path: &str, modified: &str| {
        format!("<rs:ln rel=\"memento\" href=\"{}\" modified=\"{modified}\"/>", source.url(path))
    };
    let links = memento("/v/1", "2025-01-01T00:00:00Z")
        + &memento("/v/gone", "2024-01-01T00:00:00Z")
        + &format!("<rs:ln rel=\"timemap\" href=\"{}\"/>", source.url("/timemap"));
    source.body(
        "/timemap",
        format!(
            "<{0}/d/a>; rel=\"original\",\n<{0}/v/2>; rel=\"memento\"; datetime=\"Sun, 01 Feb 2026 00:00:00 GMT\",\n\
             <{0}/v/3>; rel=\"last memento\"; datetime=\"Sun, 01 Mar 2026 00:00:00 GMT\"",
            source.base
        ),
    );
    let mut copy = Copy::of(list(&source, &entry(&source, "/d/a", "now", "", &links)));
    assert_eq!(copy.try_run().exit(), 0);
    assert!(!source.take_log().contains(&"/timemap".to_owned()), "not unless asked for");
    copy.options.history = Some(3);
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    let kept = |name: &str| copy.read(&format!(".abreast/history/a/%@{name}"));
    assert_eq!(kept("20250101T000000Z").as_deref(), Some("first"));
    assert_eq!(kept("20260201T000000Z").as_deref(), Some("second"));
    assert_eq!(kept("20260301T000000Z").as_deref(), Some("third"));
    // Stored versions are not requested again, and only the newest are retained.
    source.take_log();
    copy.options.history = Some(2);
    assert_eq!(copy.try_run().exit(), 0);
    assert!(source.take_log().iter().all(|path| !path.starts_with("/v/")));
    assert!(copy.read(".abreast/history/a/%@20250101T000000Z").is_none());
}

#[test]
fn versions_that_robots_txt_disallows_are_not_fetched() {
    let source = Server::start();
    source.body("/d/a", "now");
    source.body("/v/1", "first");
    source.body("/w/2", "second");
    source.body("/robots.txt", "User-agent: *\nDisallow: /v/\nDisallow: /timemap");
    source.body("/timemap", "");
    let memento = |path: &str, modified: &str| {
        format!("<rs:ln rel=\"memento\" href=\"{}\" modified=\"{modified}\"/>", source.url(path))
    };
    let links = memento("/v/1", "2025-01-01T00:00:00Z")
        + &memento("/w/2", "2025-02-01T00:00:00Z")
        + &format!("<rs:ln rel=\"timemap\" href=\"{}\"/>", source.url("/timemap"));
    let mut copy = Copy::of(list(&source, &entry(&source, "/d/a", "now", "", &links)));
    copy.options.history = Some(3);
    copy.options.ignore_robots = false;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("robots.disallow")), (0, true), "{:?}", ran.codes);
    assert_eq!(copy.read(".abreast/history/a/%@20250201T000000Z").as_deref(), Some("second"));
    let asked = source.take_log();
    assert!(
        !asked.contains(&"/v/1".to_owned()) && !asked.contains(&"/timemap".to_owned()),
        "{asked:?}"
    );
}

#[test]
fn a_version_that_a_list_and_a_timemap_name_is_kept_once() {
    let source = Server::start();
    source.body("/d/a", "now");
    source.body("/v/1", "first");
    let links = format!(
        "<rs:ln rel=\"memento\" href=\"{}\" modified=\"2025-01-01T00:00:00.5Z\"/><rs:ln rel=\"timemap\" href=\"{}\"/>",
        source.url("/v/1"),
        source.url("/timemap")
    );
    source.body(
        "/timemap",
        format!(
            "<{}/v/1>; rel=\"memento\"; datetime=\"Wed, 01 Jan 2025 00:00:00 GMT\"",
            source.base
        ),
    );
    let mut copy = Copy::of(list(&source, &entry(&source, "/d/a", "now", "", &links)));
    copy.options.history = Some(3);
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(source.take_log().iter().filter(|path| *path == "/v/1").count(), 1);
    assert_eq!(
        std::fs::read_dir(copy.options.folder.join(".abreast/history/a")).unwrap().count(),
        1
    );
    // A copy without a place for versions reports that.
    let mut packed = Copy::of(copy.options.url.clone());
    packed.options.history = Some(3);
    packed.options.sink = SinkOptions::Warc(WarcOptions::default());
    assert!(packed.try_run().has("history.sink"));
}
