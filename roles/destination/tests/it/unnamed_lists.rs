//! Change Lists that are missing in the index, lists from caches, and temporarily missing
//! documents.

use crate::copy::Copy;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use abreast_testkit::pages::{Answer, Server};
use abreast_webtypes::Timestamp;
use std::fmt::Write as _;
use std::time::SystemTime;

/// A Source of lists that a test makes.
struct Lists {
    server: Server,
}

impl Lists {
    fn new() -> Self {
        let server = Server::start();
        let of = |kind: &str, path: &str| {
            format!("<url><loc>{}</loc><rs:md capability=\"{kind}\"/></url>", server.url(path))
        };
        let entries = of("resourcelist", "/list.xml") + &of("changelist", "/changes.xml");
        server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &entries));
        Self { server }
    }

    fn copy(&self) -> Copy {
        Copy::of(self.server.url("/caps.xml"))
    }

    /// An entry for a resource, which has that text from now on.
    fn entry(&self, name: &str, text: &str, more: &str) -> String {
        self.server.body(&format!("/d/{name}"), text);
        let (url, digest) = (self.server.url(&format!("/d/{name}")), md5_hex(text.as_bytes()));
        let length = text.len();
        format!(
            "<url><loc>{url}</loc><rs:md{more} hash=\"md5:{digest}\" length=\"{length}\"/></url>"
        )
    }

    fn list_at(&self, path: &str, time: &str, resources: &[(&str, &str)]) {
        let entries: String =
            resources.iter().map(|(name, text)| self.entry(name, text, "")).collect();
        let attributes = format!("capability=\"resourcelist\" at=\"{time}\"");
        self.server.body(path, document("urlset", &attributes, &entries));
    }

    /// A Change List with this span, and its changes with their times.
    fn changes(&self, span: &str, changes: &[(&str, &str, &str)]) -> String {
        let entry = |(name, text, time): &(&str, &str, &str)| {
            self.entry(name, text, &format!(" change=\"updated\" datetime=\"{time}\""))
        };
        let entries: String = changes.iter().map(entry).collect();
        document("urlset", &format!("capability=\"changelist\" {span}"), &entries)
    }

    fn put_changes(&self, path: &str, span: &str, changes: &[(&str, &str, &str)]) {
        self.server.body(path, self.changes(span, changes));
    }

    /// An index of lists, with their intervals.
    fn index(&self, path: &str, attributes: &str, lists: &[(&str, &str)]) {
        let mut entries = String::new();
        for (path, span) in lists {
            let url = self.server.url(path);
            write!(entries, "<sitemap><loc>{url}</loc><rs:md {span}/></sitemap>").unwrap();
        }
        self.server.body(path, document("sitemapindex", attributes, &entries));
    }

    fn index_of_changes(&self, lists: &[(&str, &str)]) {
        let attributes = "capability=\"changelist\" from=\"2026-03-01T08:00:00.000001Z\"";
        self.index("/changes.xml", attributes, lists);
    }
}

/// A time of the day of these tests.
fn at(time: &str) -> String {
    format!("2026-03-01T{time}Z")
}

fn span(from: &str, until: &str) -> String {
    match until {
        "" => format!("from=\"{}\"", at(from)),
        _ => format!("from=\"{}\" until=\"{}\"", at(from), at(until)),
    }
}

#[test]
fn changes_of_the_time_of_a_list_count_once_they_are_named() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("10:00:05.000002"), &[("a", "a1")]);
    let first = span("08:00:00.000001", "10:00:03.000001");
    lists.put_changes("/1.xml", &first, &[("a", "a1", &at("10:00:03.000001"))]);
    lists.put_changes("/open.xml", &span("10:00:05.000002", ""), &[]);
    lists.index_of_changes(&[("/1.xml", &first), ("/open.xml", "")]);
    let copy = lists.copy();
    assert_eq!(copy.run().exit_code, 0);
    let second = span("10:00:03.000001", "10:00:05.000002");
    lists.put_changes("/2.xml", &second, &[("b", "b1", &at("10:00:05.000002"))]);
    lists.index_of_changes(&[("/1.xml", &first), ("/2.xml", &second), ("/open.xml", "")]);
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
    lists.server.take_log();
    assert_eq!((copy.run().exit_code, lists.server.take_log()), (0, vec!["/open.xml".to_owned()]));
}

#[test]
fn a_list_of_the_second_of_the_open_one_is_read_once_named() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("10:00:00"), &[]);
    let first = span("08:00:00", "10:00:05");
    lists.put_changes("/1.xml", &first, &[("a", "a1", &at("10:00:05"))]);
    lists.put_changes("/open.xml", &span("10:00:05", ""), &[("b", "b1", &at("10:00:06"))]);
    lists.index_of_changes(&[("/1.xml", &first), ("/open.xml", &span("10:00:05", ""))]);
    let copy = lists.copy();
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 2));
    let (second, third) = (span("10:00:05", "10:00:05"), span("10:00:05", "10:00:06"));
    lists.put_changes("/2.xml", &second, &[("c", "c1", &at("10:00:05"))]);
    lists.put_changes("/3.xml", &third, &[("b", "b1", &at("10:00:06"))]);
    lists.put_changes("/open.xml", &span("10:00:06", ""), &[]);
    lists.index_of_changes(&[
        ("/1.xml", &first),
        ("/2.xml", &second),
        ("/3.xml", &third),
        ("/open.xml", &span("10:00:06", "")),
    ]);
    assert_eq!((copy.run().exit_code, copy.read("c")), (0, Some("c1".to_owned())));
}

#[test]
fn an_open_list_beside_a_later_one_was_not_the_whole_of_it() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("09:00:00.000001"), &[]);
    let (a, b) = (("a", "a1", &*at("09:30:00.000001")), ("b", "b1", &*at("09:20:00.000001")));
    let d = ("d", "d1", &*at("10:10:00.000001"));
    lists.put_changes("/1.xml", &span("09:00:00.000001", ""), &[a]);
    lists.put_changes("/2.xml", &span("10:00:00.000001", ""), &[d]);
    lists.index_of_changes(&[("/1.xml", ""), ("/2.xml", "")]);
    let copy = lists.copy();
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 2));
    // Now the lists give their ends.
    lists.put_changes("/1.xml", &span("09:00:00.000001", "10:00:00.000001"), &[b, a]);
    lists.put_changes("/2.xml", &span("10:00:00.000001", "11:00:00.000001"), &[d]);
    lists.put_changes("/3.xml", &span("11:00:00.000001", ""), &[]);
    lists.index_of_changes(&[("/1.xml", ""), ("/2.xml", ""), ("/3.xml", "")]);
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
}

#[test]
fn a_closed_list_that_comes_open_again_is_of_a_cache() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("09:00:00.000001"), &[]);
    let (a, b) = (("a", "a1", &*at("09:30:00.000001")), ("b", "b1", &*at("09:40:00.000001")));
    lists.put_changes("/0.xml", &span("08:00:00.000001", "09:00:00.000001"), &[]);
    lists.put_changes("/1.xml", &span("09:00:00.000001", ""), &[a]);
    lists.index_of_changes(&[("/0.xml", ""), ("/1.xml", "")]);
    let copy = lists.copy();
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 1));
    let d = ("d", "d1", &*at("10:10:00.000001"));
    lists.put_changes("/2.xml", &span("10:00:00.000001", ""), &[d]);
    lists.index_of_changes(&[("/0.xml", ""), ("/1.xml", ""), ("/2.xml", "")]);
    let old = lists.changes(&span("09:00:00.000001", ""), &[a]);
    let new = lists.changes(&span("09:00:00.000001", "10:00:00.000001"), &[a, b]);
    let before = lists.server.take_log().len();
    assert!(before > 0);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    lists.server.handler(move |path, _| {
        let number = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (path == "/1.xml").then(|| Answer::ok(if number() == 1 { &*old } else { &*new }))
    });
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("list.unstable")), (3, true), "{:?}", ran.reported);
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
}

#[test]
fn a_gap_that_is_searched_again_stays_until_it_is_reached() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("09:00:00.000001"), &[("a", "a1")]);
    lists.put_changes("/open.xml", &span("10:00:00.000001", ""), &[]);
    lists.index_of_changes(&[("/open.xml", &span("09:00:00.000001", ""))]);
    let copy = lists.copy();
    for named in ["09:00:00.000001", "10:00:00.000001", "10:00:00.000001"] {
        lists.index_of_changes(&[("/open.xml", &span(named, ""))]);
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.has("gap")), (3, true), "{named} {:?}", ran.reported);
    }
    lists.list_at("/list.xml", &at("11:00:00.000001"), &[("a", "a1"), ("b", "b1")]);
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
}

#[test]
fn a_capability_list_that_was_not_there_is_found_later() {
    let lists = Lists::new();
    let up = format!("<rs:ln rel=\"up\" href=\"{}\"/>", lists.server.url("/caps.xml"));
    let entries = up + &lists.entry("a", "a1", "");
    let attributes = format!("capability=\"resourcelist\" at=\"{}\"", at("09:00:00.000001"));
    lists.server.body("/list.xml", document("urlset", &attributes, &entries));
    let from = span("09:00:00.000001", "");
    lists.put_changes("/changes.xml", &from, &[("b", "b1", &at("09:30:00.000001"))]);
    let caps = lists.server.page("/caps.xml");
    lists.server.put("/caps.xml", Answer::status(404));
    let copy = Copy::of(lists.server.url("/list.xml"));
    for _ in 0..2 {
        assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 1));
    }
    lists.server.body("/caps.xml", caps);
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
    lists.server.take_log();
    assert_eq!((copy.run().exit_code, lists.server.take_log().len()), (0, 1));
    // A document that exists and is not a Capability List is requested once.
    lists.server.body("/caps.xml", "<!DOCTYPE html><html><head><title>Maps</title></head></html>");
    let other = Copy::of(lists.server.url("/list.xml"));
    assert_eq!(other.run().exit_code, 0);
    lists.server.take_log();
    assert_eq!((other.run().exit_code, lists.server.take_log()), (0, vec!["/list.xml".to_owned()]));
}

#[test]
fn an_older_list_than_one_read_in_part_decides_after_a_restore() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("09:00:00.000001"), &[("a", "a0"), ("b", "b0")]);
    lists.put_changes("/changes.xml", &span("09:00:00.000001", ""), &[]);
    let copy = lists.copy();
    assert_eq!(copy.run().exit_code, 0);
    // After a gap, only one part of the list can be read.
    lists.put_changes("/changes.xml", &span("12:00:00.000001", ""), &[]);
    let of_list = |time: &str| {
        let attributes = format!("capability=\"resourcelist\" at=\"{}\"", at(time));
        lists.index("/list.xml", &attributes, &[("/part0.xml", ""), ("/part1.xml", "")]);
        lists.list_at("/part0.xml", &at(time), &[("a", "a0")]);
        lists.list_at("/part1.xml", &at(time), &[("b", "b1")]);
    };
    of_list("13:00:00.000001");
    lists.server.put("/part1.xml", Answer::status(404));
    assert_eq!((copy.try_run().exit(), copy.read("b")), (3, Some("b0".to_owned())));
    // A backup has the change of `b`, and nothing later.
    lists.put_changes("/changes.xml", &span("11:00:00.000001", ""), &[]);
    of_list("11:00:00.000001");
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
}

#[test]
fn open_lists_beside_each_other_are_believed_by_the_second_run() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("08:00:00"), &[]);
    let closed = span("08:00:00", "09:00:00");
    lists.put_changes("/1.xml", &closed, &[("a", "a1", &at("08:30:00"))]);
    lists.put_changes("/2.xml", &span("08:00:00", ""), &[("b", "b1", &at("08:40:00"))]);
    lists.put_changes("/3.xml", &span("09:00:00", ""), &[("c", "c1", &at("09:10:00"))]);
    lists.index_of_changes(&[("/1.xml", ""), ("/2.xml", ""), ("/3.xml", "")]);
    let copy = lists.copy();
    copy.try_run();
    for number in 2..6 {
        let time = format!("09:{number}0:00");
        lists.put_changes("/2.xml", &span("08:00:00", ""), &[("b", &time, &at(&time))]);
        let ran = copy.try_run();
        assert!(!ran.has("list.unstable") || number == 2, "{number}: {:?}", ran.reported);
        assert_eq!(copy.read("b"), Some(time), "{number}: {:?}", ran.reported);
    }
    assert_eq!((copy.try_run().exit(), copy.paths().len()), (0, 3));
}

#[test]
fn an_open_list_that_was_empty_may_follow_an_unnamed_one() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("09:00:00"), &[]);
    let (first, open) = (span("08:00:00", "10:00:05"), span("10:00:05", ""));
    lists.put_changes("/1.xml", &first, &[("a", "a1", &at("10:00:05"))]);
    lists.put_changes("/open.xml", &open, &[]);
    lists.index_of_changes(&[("/1.xml", &first), ("/open.xml", &open)]);
    let copy = lists.copy();
    for _ in 0..2 {
        assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 1));
    }
    // A change within that second is published late.
    let second = span("10:00:05", "10:00:05");
    lists.put_changes("/2.xml", &second, &[("b", "b1", &at("10:00:05"))]);
    lists.put_changes("/open.xml", &open, &[("c", "c1", &at("10:00:06"))]);
    lists.index_of_changes(&[("/1.xml", &first), ("/2.xml", &second), ("/open.xml", &open)]);
    assert_eq!((copy.run().exit_code, copy.read("b")), (0, Some("b1".to_owned())));
    lists.put_changes("/open.xml", &open, &[("c", "c2", &at("10:00:07"))]);
    assert_eq!((copy.run().exit_code, copy.read("c")), (0, Some("c2".to_owned())));
    let more = [("c", "c2", &*at("10:00:07")), ("d", "d1", &*at("10:00:08"))];
    lists.put_changes("/open.xml", &open, &more);
    lists.server.take_log();
    assert_eq!((copy.run().exit_code, copy.read("d")), (0, Some("d1".to_owned())));
    let log = lists.server.take_log();
    assert!(!log.contains(&"/changes.xml".to_owned()), "{log:?}");
}

#[test]
fn a_list_that_an_older_index_lacks_follows_those_before_it() {
    let lists = Lists::new();
    lists.list_at("/list.xml", &at("09:00:00"), &[]);
    let (first, second) = (span("10:00:05", "10:00:05"), span("10:00:05", "10:00:06"));
    // Times in the future show no order.
    lists.put_changes("/0.xml", &span("08:00:00", "10:00:05"), &[]);
    lists.put_changes("/1.xml", &first, &[("a", "a1", "2099-03-01T00:00:00Z")]);
    lists.put_changes("/2.xml", &span("10:00:05", ""), &[]);
    lists.index_of_changes(&[("/0.xml", ""), ("/1.xml", ""), ("/2.xml", "")]);
    let copy = lists.copy();
    copy.run();
    assert_eq!(copy.read("a").as_deref(), Some("a1"));
    lists.put_changes("/2.xml", &second, &[("a", "a2", "2099-02-01T00:00:00Z")]);
    lists.index_of_changes(&[("/0.xml", ""), ("/1.xml", "")]);
    copy.run();
    assert_eq!(copy.read("a").as_deref(), Some("a2"));
}

#[test]
fn changes_without_times_read_again_are_no_newer_than_before() {
    let lists = Lists::new();
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let undated = |name: &str| lists.entry(name, "1", " change=\"updated\"");
    let put = |entries: &str| {
        let attributes = format!("capability=\"changelist\" {}", span("08:00:00.000001", ""));
        lists.server.body("/changes.xml", document("urlset", &attributes, entries));
    };
    lists.list_at("/list.xml", &at("09:00:00.000001"), &[("a", "1")]);
    put(&undated("a"));
    let copy = lists.copy();
    assert_eq!(copy.run().exit_code, 0);
    let later = Timestamp::from_micros(now().as_micros() as i64).to_string();
    put(&(undated("a") + &undated("b")));
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 2));
    // Since then `a` has changed, and changes from before are not listed any more.
    lists.list_at("/list.xml", &later, &[("a", "2"), ("b", "1")]);
    let attributes = format!("capability=\"changelist\" from=\"{later}\"");
    lists.server.body("/changes.xml", document("urlset", &attributes, ""));
    assert_eq!((copy.run().exit_code, copy.read("a")), (0, Some("2".to_owned())));
}

#[test]
fn a_part_older_than_one_read_before_deletes_nothing() {
    let lists = Lists::new();
    let entries = format!(
        "<url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url>",
        lists.server.url("/list.xml")
    );
    lists.server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &entries));
    let put = |time: &str, second: &str, has_b: bool| {
        let attributes = format!("capability=\"resourcelist\" at=\"{}\"", at(time));
        lists.index("/list.xml", &attributes, &[("/part0.xml", ""), ("/part1.xml", "")]);
        lists.list_at("/part0.xml", &at(time), &[("a", "a1")]);
        let all = [("b", "b1")];
        lists.list_at("/part1.xml", &at(second), if has_b { &all } else { &[] });
    };
    // The index and the first part are of a cache, and then the second part is too.
    put("10:00:00", "11:00:00", true);
    let copy = lists.copy();
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 2));
    put("10:00:00", "10:00:00", false);
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 2));
    put("12:00:00", "12:00:00", false);
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 1));
}
