//! A folder becomes equal to its Source, and remains equal.

use crate::copy::Copy;
use crate::source::{Source, list_of};
use abreast_destination::{Event, Mode};
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[test]
fn a_copy_follows_its_source() {
    let mut source = Source::new();
    source.set("/d/a.txt", "one");
    source.set("/d/b.txt", "two");
    source.snapshot();
    source.set("/d/c.txt", "three");
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!((ran.summary().mode, ran.summary().created), (Mode::Baseline, 3));
    assert_eq!(copy.read("a.txt").as_deref(), Some("one"), "{:?}", copy.paths());
    let modified = std::fs::metadata(copy.folder().join("a.txt")).unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_748_736_000);

    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode, ran.summary().requests), (0, Mode::Unchanged, 1));
    assert_eq!(source.server.take_log(), ["/changelist.xml"]);

    source.set("/d/a.txt", "uno");
    source.delete("/d/b.txt");
    source.set("/d/e/f.txt", "new");
    source.server.take_log();
    let ran = copy.try_run();
    let summary = ran.summary();
    assert_eq!(
        (summary.mode, summary.created, summary.updated, summary.deleted),
        (Mode::Incremental, 1, 1, 1)
    );
    let mut log = source.server.take_log();
    log.sort();
    assert_eq!(log, ["/changelist.xml", "/d/a.txt", "/d/e/f.txt"]);
    assert_eq!(copy.paths(), ["a.txt", "c.txt", "e/f.txt"]);
    assert_eq!(copy.read("a.txt").as_deref(), Some("uno"));
    assert_eq!(copy.run().requests, 1);
}

#[test]
fn the_base_stays_what_it_was_first() {
    let mut source = Source::new();
    source.set("/d/e/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    source.set("/x", "2");
    assert_eq!(copy.try_run().exit(), 0);
    let outside = format!("%^{}/x", source.server.base.replace(':', "%3A").replace('/', "%2F"));
    assert_eq!(copy.paths(), [outside, "a".to_owned()]);
}

#[test]
fn nothing_is_written_in_a_dry_run() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.dry_run = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 1));
    assert!(!copy.folder().exists());
    copy.options.dry_run = false;
    copy.run();
    source.delete("/a");
    copy.options.dry_run = true;
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!(ran.summary().deleted, 1);
        assert_eq!(copy.paths(), ["a"]);
    }
    copy.options.dry_run = false;
    assert_eq!(copy.run().deleted, 1);
    assert!(copy.paths().is_empty());
}

#[test]
fn unsorted_changes_end_in_the_newest_state() {
    let mut source = Source::new();
    source.set("/ok.txt", "hello");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let entry = |change: &str, second: u32| {
        format!(
            "<url><loc>{}</loc><rs:md change=\"{change}\" datetime=\"2026-01-01T00:10:{second:02}Z\"/></url>",
            source.server.url("/ok.txt")
        )
    };
    let changes = format!("{}{}{}", source.changes, entry("deleted", 12), entry("created", 10));
    source.server.body(
        "/changelist.xml",
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &changes),
    );
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().deleted), (0, 1), "{:?}", ran.codes);
    assert!(copy.paths().is_empty());
}

#[test]
fn a_lone_change_list_is_followed_from_its_beginning() {
    let server = Server::start();
    server.body("/ok.txt", "hello");
    let entry = |path: &str, change: &str, second: u32| {
        let loc = server.url(path);
        format!(
            "<url><loc>{loc}</loc><rs:md change=\"{change}\" datetime=\"2026-01-01T00:10:{second:02}Z\"/></url>"
        )
    };
    let changes = format!(
        "{}{}{}",
        entry("/gone.txt", "deleted", 12),
        entry("/gone.txt", "created", 10),
        entry("/ok.txt", "created", 11)
    );
    server.body(
        "/changes.xml",
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &changes),
    );
    let copy = Copy::of(server.url("/changes.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 1), "{:?}", ran.codes);
    assert_eq!(copy.paths(), ["ok.txt"]);
}

#[test]
fn changes_of_one_instant_are_taken_in_their_order() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    for (changes, there) in
        [("deleted created", true), ("created deleted", false), ("deleted created", true)]
    {
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
        copy.run();
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
    assert_eq!(copy.try_run().exit(), 0);
    source.server.body("/a", "2");
    let entries = format!(
        "{}<url><loc>{}</loc><rs:md change=\"deleted\"/></url>",
        source
            .entry("/a", b"2", " change=\"updated\"")
            .replace("<lastmod>2025-06-01T00:00:00Z</lastmod>", ""),
        source.server.url("/b")
    );
    source.server.body(
        "/changelist.xml",
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &entries),
    );
    let ran = copy.try_run();
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1), "{:?}", ran.codes);
    assert_eq!(copy.run().requests, 1);
}

#[test]
fn closed_lists_are_followed_through_the_index() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    // The list is closed, another one is started, and an index precedes both.
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
        document("urlset", &md(BEGIN, until), &one)
            .replace("<rs:md cap", &format!("{link}<rs:md cap")),
    );
    server.body("/changes-2.xml", document("urlset", &md("2026-01-01T00:30:00Z", ""), &two));
    let index = format!(
        "<sitemap><loc>{0}/changelist.xml</loc><rs:md from=\"{BEGIN}\"{until}/></sitemap>\
         <sitemap><loc>{0}/changes-2.xml</loc><rs:md from=\"2026-01-01T00:30:00Z\"/></sitemap>",
        server.base
    );
    server.body("/changes.xml", document("sitemapindex", &md(BEGIN, ""), &index));
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, ran.summary().mode),
        (0, 2, Mode::Incremental),
        "{:?}",
        ran.codes
    );
    server.take_log();
    assert_eq!(copy.run().mode, Mode::Unchanged);
    assert_eq!(server.take_log(), ["/changes-2.xml"]);
}

#[test]
fn changes_that_were_missed_lead_to_a_new_baseline() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.set("/b", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    source.delete("/a");
    source.set("/c", "3");
    source.snapshot();
    let rotated = document("urlset", "capability=\"changelist\" from=\"2026-01-01T00:00:30Z\"", "");
    source.server.body("/changelist.xml", rotated);
    let ran = copy.try_run();
    assert!(ran.codes.contains(&"gap".to_owned()), "{:?}", ran.codes);
    // The list is older than the start of the Change List, so the changes in between are not known.
    assert_eq!((ran.exit(), ran.summary().mode), (3, Mode::Baseline));
    assert_eq!(copy.paths(), ["b", "c"]);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (3, Mode::Unchanged), "{:?}", ran.reported);
    let asked = source.server.take_log();
    assert_eq!(asked, ["/resourcelist.xml", "/changelist.xml"]);
    // The next list has it.
    source.clock = 40;
    source.set("/d", "4");
    source.changes.clear();
    source.snapshot();
    source.server.body(
        "/changelist.xml",
        document("urlset", "capability=\"changelist\" from=\"2026-01-01T00:00:30Z\"", ""),
    );
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Baseline), "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["b", "c", "d"]);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().requests), (0, 1), "{:?}", ran.reported);
}

#[test]
fn a_source_restored_from_a_backup_is_compared_again() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let restored = source.changes.clone();
    source.set("/a", "2");
    source.set("/b", "2");
    let copy = Copy::of(source.url());
    copy.run();
    assert_eq!(copy.read("a").as_deref(), Some("2"));
    source.changes = restored;
    source.server.body("/a", "1");
    source.server.remove("/b");
    source.publish();
    let ran = copy.try_run();
    assert!(ran.codes.contains(&"gap".to_owned()), "{:?}", ran.codes);
    assert_eq!(ran.exit(), 0);
    assert_eq!(copy.texts(), BTreeMap::from([("a".to_owned(), "1".to_owned())]));
}

#[test]
fn without_a_change_list_the_resource_list_is_polled() {
    let server = Server::start();
    list_of(&server, &["/a", "/b"]);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().created, 2);
    server.take_log();
    assert_eq!(copy.run().mode, Mode::Unchanged);
    assert_eq!(server.take_log(), ["/list.xml"]);
    list_of(&server, &["/b", "/c"]);
    server.body("/b", "changed");
    let ran = copy.try_run();
    assert_eq!(
        (ran.summary().created, ran.summary().updated, ran.summary().deleted),
        (1, 1, 1),
        "{:?}",
        ran.codes
    );
}

#[test]
fn lists_out_of_order_are_compared_too() {
    let server = Server::start();
    list_of(&server, &["/m", "/a", "/z", "/b", "/a"]);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().created, 4);
    list_of(&server, &["/z", "/m", "/a"]);
    let ran = copy.try_run();
    assert_eq!((ran.summary().created, ran.summary().deleted), (0, 1), "{:?}", ran.codes);
    assert_eq!(copy.paths(), ["a", "m", "z"]);
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
    assert_eq!(copy.paths(), ["b"]);
}

#[test]
fn a_dry_run_shows_the_baseline_that_a_gap_asks_for() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.run();
    source.set("/b", "2");
    source.snapshot();
    source.server.body(
        "/changelist.xml",
        document("urlset", "capability=\"changelist\" from=\"2026-01-01T00:00:30Z\"", ""),
    );
    copy.options.dry_run = true;
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, ran.summary().mode),
        (3, 1, Mode::Baseline),
        "{:?}",
        ran.codes
    );
    assert_eq!(copy.paths(), ["a"]);
}
