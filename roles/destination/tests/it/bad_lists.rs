//! Lists that are wrong, incomplete or unstable change nothing that they should not.

use crate::copy::Copy;
use crate::source::{Source, list_of};
use abreast_destination::Mode;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::{Answer, Server};

#[test]
fn no_deletion_follows_from_a_bad_list() {
    let server = Server::start();
    let all: Vec<String> = (0..20).map(|number| format!("/r{number:02}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    list_of(&server, &all);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().created, 20);
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
        let ran = copy.try_run();
        assert_eq!(ran.exit(), exit, "{status} {text} {:?} {}", ran.codes, ran.code());
        assert_eq!(copy.paths().len(), 20);
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
    let index = format!(
        "<sitemap><loc>{0}/one.xml</loc></sitemap><sitemap><loc>{0}/two.xml</loc></sitemap>",
        server.base
    );
    server.body("/list.xml", document("sitemapindex", "capability=\"resourcelist\"", &index));
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 2), "{:?} {}", ran.codes, ran.code());
    assert_eq!(copy.run().mode, Mode::Unchanged);
    server.remove("/two.xml");
    server.body("/one.xml", document("urlset", "capability=\"resourcelist\"", &entry("/c")));
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.codes.as_slice()),
        (3, ["http.status", "rs.no-at", "rs.no-at"].map(str::to_owned).as_slice())
    );
    // What could be read is applied.
    assert_eq!(copy.paths(), ["a", "b", "c"]);
    server.body("/two.xml", document("urlset", "capability=\"resourcelist\"", &entry("/b")));
    assert_eq!(copy.run().deleted, 1);
    assert_eq!(copy.paths(), ["b", "c"]);
}

#[test]
fn an_index_that_names_itself_is_read_once() {
    let server = Server::start();
    let index = format!("<sitemap><loc>{}/list.xml</loc></sitemap>", server.base);
    server.body(
        "/list.xml",
        document("sitemapindex", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &index),
    );
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.codes.as_slice()),
        (3, ["list.cycle".to_owned()].as_slice()),
        "{}",
        ran.code()
    );
    assert!(server.take_log().len() < 8);
}

#[test]
fn an_index_of_missing_lists_ends_at_the_budget() {
    let server = Server::start();
    let index: String = (0..5_000)
        .map(|number| format!("<sitemap><loc>{}/l{number}</loc></sitemap>", server.base))
        .collect();
    server.body("/list.xml", document("sitemapindex", "capability=\"resourcelist\"", &index));
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (8, "budget.lists"));
    assert!(server.take_log().len() < 200);
}

#[test]
fn a_list_that_keeps_changing_ends_the_run() {
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
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (5, "list.unstable"), "{:?}", ran.codes);
}

#[test]
fn times_beyond_the_servers_clock_do_not_move_the_cursor() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let far = document(
        "urlset",
        "capability=\"resourcelist\" at=\"2099-01-01T00:00:00Z\"",
        &source.entry("/a", b"1", ""),
    );
    source
        .server
        .put("/resourcelist.xml", Answer::ok(far).header("Date", "Thu, 01 Jan 2026 00:00:30 GMT"));
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.codes.as_slice()), (0, ["time.future".to_owned()].as_slice()));
    assert!(
        ran.summary().cursor.as_deref() <= Some("2026-01-01T00:00:30Z"),
        "{:?}",
        ran.summary().cursor
    );
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
    let ran = Copy::of(server.url("/list.xml")).try_run();
    assert_eq!((ran.exit(), ran.code()), (4, "time.interval"));
}

#[test]
fn a_list_older_than_its_index_states_is_completed_by_changes() {
    let source = Source::new();
    let server = source.server.clone();
    let at = |minute: u32| format!("2026-01-01T00:{minute:02}:00Z");
    let index = format!(
        "<sitemap><loc>{}</loc><rs:md at=\"{}\"/></sitemap>",
        server.url("/part.xml"),
        at(8)
    );
    let list = |minute| format!("capability=\"resourcelist\" at=\"{}\"", at(minute));
    server.body("/resourcelist.xml", document("sitemapindex", &list(10), &index));
    // From a cache: the change of minute 8 is not in it.
    server.body("/part.xml", document("urlset", &list(5), &source.entry("/old", b"old", "")));
    let change =
        source.entry("/new", b"new", &format!(" change=\"created\" datetime=\"{}\"", at(8)));
    let from = format!("capability=\"changelist\" from=\"{BEGIN}\"");
    server.body("/changelist.xml", document("urlset", &from, &change));
    server.body("/old", "old");
    server.body("/new", "new");
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!(copy.paths(), ["new", "old"]);
}

#[test]
fn an_empty_change_list_without_validators_starts_no_baseline() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let change =
        source.entry("/b", b"2", " change=\"created\" datetime=\"2026-01-01T00:30:00.5Z\"");
    source.server.body("/b", "2");
    let from = |from: &str| format!("capability=\"changelist\" from=\"{from}\"");
    source.server.body("/changelist.xml", document("urlset", &from(BEGIN), &change));
    copy.run();
    // The list was closed; the next list starts at its end, and is empty.
    let empty = document("urlset", &from("2026-01-01T00:30:00.5Z"), "");
    source.server.handler(move |path, _| {
        let raw = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{empty}", empty.len());
        (path == "/changelist.xml").then(|| Answer::raw(raw))
    });
    let ran = copy.try_run();
    assert!(!ran.codes.contains(&"gap".to_owned()), "{:?}", ran.codes);
    assert_ne!(ran.summary().mode, Mode::Baseline);
}

/// The time of the list is not evidence about later lists.
#[test]
fn a_list_of_a_time_to_come_outdates_no_later_one() {
    let mut source = Source::new();
    (0..5).for_each(|number| source.set(&format!("/{number}"), "first"));
    source.snapshot();
    let right = source.server.page("/resourcelist.xml");
    let list = String::from_utf8(right).unwrap();
    source.server.body("/resourcelist.xml", list.replace(&source.at, "2099-01-01T00:00:00Z"));
    let mut copy = Copy::of(source.url());
    assert_eq!(copy.run().created, 5);
    // Only the next list shows the deletion.
    source.kept.remove("/1");
    source.server.remove("/1");
    source.clock += 5;
    source.snapshot();
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().deleted), (0, 1), "{:?}", ran.reported);
}
