//! Copies over SDShare from feeds that change, or lead in circles, while their pages are read.

use crate::copy::Copy;
use crate::rdf::{canonical, quads};
use crate::sdshare_source::{ATOM, Habits, SdSource};
use abreast_destination::{NQuadsOptions, SinkOptions};
use abreast_testkit::pages::{Answer, Server};
use abreast_webtypes::Timestamp;
use oxigraph::io::{RdfFormat, RdfParser};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

fn copy_of(url: String) -> Copy {
    let mut copy = Copy::of(url);
    copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    copy
}

#[track_caller]
fn assert_has(copy: &Copy, lines: &str) {
    let quads_of = RdfParser::from_format(RdfFormat::NTriples).for_slice(lines.as_bytes());
    let expected: Vec<_> = quads_of.map(|quad| quad.unwrap()).collect();
    assert_eq!(canonical(quads(copy.folder())), canonical(expected));
}

/// Does something once, before the first page that is not the first one is answered.
fn at_second_page(source: &SdSource, once: impl Fn(&SdSource) + Send + Sync + 'static) {
    let (own, is_done) = (source.clone(), AtomicBool::new(false));
    source.answer_first(move |target, _| {
        if target.contains("page=1") && !is_done.swap(true, Ordering::Relaxed) {
            once(&own);
        }
        None
    });
}

#[test]
fn pages_that_grow_during_a_walk_hide_no_entry() {
    for newest_first in [true, false] {
        let habits = Habits { newest_first, page: 2, has_snapshots: false, ..Habits::default() };
        let source = SdSource::start(habits);
        (0..7).for_each(|number| source.put_number(number, "first"));
        at_second_page(&source, |source| source.data().habits.page = 3);
        let copy = copy_of(source.url());
        assert_eq!(copy.try_run().exit(), 0);
        assert_has(&copy, &source.statements());
    }
}

#[test]
fn changes_behind_a_time_in_the_future_hide_no_entry() {
    let habits = Habits { newest_first: false, page: 1, has_snapshots: false, ..Habits::default() };
    let source = SdSource::start(habits);
    (0..4).for_each(|number| source.put_number(number, "first"));
    source.data().habits.ahead = 40_000 * 86_400;
    source.put_number(9, "from the future");
    source.data().habits.ahead = 0;
    // The time of the feed stays as it is.
    at_second_page(&source, |source| source.put_number(0, "second"));
    let copy = copy_of(source.url());
    assert_eq!(copy.try_run().exit(), 0);
    assert_has(&copy, &source.statements());
}

#[test]
fn changes_during_a_walk_are_no_sign_of_a_restored_server() {
    let source = SdSource::start(Habits { page: 2, ..Habits::default() });
    (0..4).for_each(|number| source.put_number(number, "first"));
    source.make_snapshot();
    let copy = copy_of(source.url());
    copy.run();
    (4..7).for_each(|number| source.put_number(number, "first"));
    // The last known entries move to the first page, which was already read.
    at_second_page(&source, |source| {
        (0..4).for_each(|number| source.put_number(number, "second"));
    });
    let ran = copy.try_run();
    // What moved was not read: it is reported, and the next run reads it.
    assert!(ran.exit() == 3 && ran.has("list.unstable") && !ran.has("gap"), "{:?}", ran.reported);
    let ran = copy.try_run();
    assert!(ran.exit() == 0 && !ran.has("gap"), "{:?}", ran.reported);
    assert_has(&copy, &source.statements());
}

#[test]
fn entries_older_than_the_snapshot_show_that_none_is_missing() {
    let source = SdSource::start(Habits::default());
    (0..3).for_each(|number| source.put_number(number, "first"));
    source.make_snapshot();
    // The last change that is in the snapshot is not listed any more.
    source.put_number(2, "second");
    let backup = source.data().clone();
    let copy = copy_of(source.url());
    copy.run();
    source.put_number(5, "lost");
    copy.run();
    *source.data() = backup;
    let ran = copy.try_run();
    assert!(ran.exit() == 0 && ran.has("gap"), "{:?}", ran.reported);
    assert_has(&copy, &source.statements());
    let ran = copy.try_run();
    assert!(ran.exit() == 0 && !ran.has("gap"), "{:?}", ran.reported);
}

/// The content of a server: the entries of its feed, as a number, a time in seconds and a text,
/// with the newest first; whether its only page links to itself, first with another URL; and the
/// numbers in its snapshot of the time 10.
#[derive(Clone, Default)]
struct Told {
    entries: Vec<(usize, i64, &'static str)>,
    is_circle: bool,
    snapshot: Vec<usize>,
    /// Added to each time, in microseconds: times in whole seconds may come from a clock with this
    /// precision.
    micros: i64,
}

fn lines(number: usize, text: &str) -> String {
    format!("<{}> <http://ns.example/value> \"{text}\" .\n", SdSource::name(number))
}

impl Told {
    fn time(&self, seconds: i64) -> String {
        Timestamp::from_seconds(1_767_225_600 + seconds).plus_micros(self.micros).to_string()
    }

    fn answer(&self, target: &str) -> Option<Answer> {
        let link = |relation: &str, kind: &str, href: &str| {
            format!(
                "<link rel=\"http://www.sdshare.org/2012/core/{relation}\" type=\"{kind}\" href=\"{href}\"/>"
            )
        };
        let feed = |updated: &str, more: &str, entries: &[(String, String)]| {
            let mut text = format!(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"http://www.sdshare.org/2012/core/\"><id>f</id>\
                 <title>t</title><author><name>a</name></author><updated>{updated}</updated>{more}"
            );
            for (updated, inside) in entries {
                let id: u64 = inside.bytes().map(u64::from).sum();
                let _ = write!(
                    text,
                    "<entry><id>{updated} {id}</id><title>e</title><updated>{updated}</updated>{inside}</entry>"
                );
            }
            Some(Answer::ok(text + "</feed>").header("content-type", ATOM))
        };
        let statements =
            |text: String| Some(Answer::ok(text).header("content-type", "application/n-triples"));
        match target.split(['?', '#']).next()? {
            "/collection" => {
                let snapshots = (self.time(10), link("snapshotsfeed", ATOM, "/snapshots"));
                let fragments = (self.time(10), link("fragmentsfeed", ATOM, "/fragments"));
                feed(&self.time(10), "", &[snapshots, fragments])
            }
            "/snapshots" => {
                let link = link("snapshot", "application/n-triples", "/snapshot");
                feed(&self.time(10), "", &[(self.time(10), link)])
            }
            "/snapshot" => {
                statements(self.snapshot.iter().map(|it| lines(*it, "listed")).collect())
            }
            "/fragments" => {
                let entry = |(number, seconds, _): &(usize, i64, &str)| {
                    let link = link("fragment", "application/n-triples", &format!("/f/{number}"));
                    let name = SdSource::name(*number);
                    (self.time(*seconds), format!("{link}<s:resource>{name}</s:resource>"))
                };
                let entries: Vec<_> = self.entries.iter().map(entry).collect();
                let mark = if target.contains('?') { "&again=1" } else { "?again=1" };
                let next = target.trim_end_matches(mark).to_owned() + mark;
                let next = format!("<link rel=\"next\" href=\"{}\"/>", next.replace('&', "&amp;"));
                let newest = self.entries.iter().map(|it| it.1).max().unwrap_or_default();
                feed(&self.time(newest), if self.is_circle { &next } else { "" }, &entries)
            }
            path => {
                let number: usize = path.strip_prefix("/f/")?.parse().ok()?;
                let (_, _, text) = self.entries.iter().find(|it| it.0 == number)?;
                if *text == "fails" {
                    return Some(Answer::status(404));
                }
                statements(lines(number, text))
            }
        }
    }
}

fn told(server: &Server) -> Arc<Mutex<Told>> {
    let told = Arc::new(Mutex::new(Told::default()));
    let own = Arc::clone(&told);
    server.handler(move |target, _| own.lock().unwrap().answer(target));
    told
}

#[test]
fn a_fetch_that_failed_outlasts_later_changes() {
    let server = Server::start();
    let now = told(&server);
    let listed = |entries| Told { entries, snapshot: vec![7], ..Told::default() };
    let circle = |entries| Told { is_circle: true, ..listed(entries) };
    // Walks in circles do not move the position.
    *now.lock().unwrap() = circle(vec![(1, 20, "first")]);
    let copy = copy_of(server.url("/collection"));
    assert_ne!(copy.try_run().exit(), 0);
    // The entity changes again in that second.
    *now.lock().unwrap() = circle(vec![(2, 29, "first"), (1, 20, "fails")]);
    (0..2).for_each(|_| assert_ne!(copy.try_run().exit(), 0));
    *now.lock().unwrap() = listed(vec![(2, 29, "first"), (1, 20, "second")]);
    copy.run();
    let expected = [lines(1, "second"), lines(2, "first"), lines(7, "listed")];
    assert_has(&copy, &expected.concat());
}

#[test]
fn a_circle_makes_no_version_final_that_it_did_not_reach() {
    let server = Server::start();
    let now = told(&server);
    let listed = |entries| Told { entries, snapshot: vec![7], ..Told::default() };
    let circle = |entries| Told { is_circle: true, ..listed(entries) };
    *now.lock().unwrap() = circle(vec![(1, 20, "first")]);
    let copy = copy_of(server.url("/collection"));
    assert_ne!(copy.try_run().exit(), 0);
    // The entity changes again in that second, after the circle.
    *now.lock().unwrap() = circle(vec![(2, 29, "first"), (3, 28, "first")]);
    assert_ne!(copy.try_run().exit(), 0);
    *now.lock().unwrap() = listed(vec![(2, 29, "first"), (3, 28, "first"), (1, 20, "second")]);
    copy.run();
    let all = [lines(1, "second"), lines(2, "first"), lines(3, "first"), lines(7, "listed")];
    assert_has(&copy, &all.concat());
}

#[test]
fn a_comparison_keeps_the_plan_of_a_change_of_its_second() {
    let server = Server::start();
    let now = told(&server);
    let listed = |entries| Told { entries, snapshot: vec![1], ..Told::default() };
    *now.lock().unwrap() = listed(vec![(1, 10, "listed")]);
    let mut copy = copy_of(server.url("/collection"));
    copy.run();
    // The entity changes again in the second of the snapshot, which contains the previous version.
    *now.lock().unwrap() = listed(vec![(2, 29, "first"), (1, 10, "fails")]);
    assert_ne!(copy.try_run().exit(), 0);
    copy.options.baseline = true;
    assert_ne!(copy.try_run().exit(), 0);
    copy.options.baseline = false;
    *now.lock().unwrap() = listed(vec![(2, 29, "first"), (1, 10, "second")]);
    copy.run();
    assert_has(&copy, &[lines(1, "second"), lines(2, "first")].concat());
}

#[test]
fn a_circle_after_a_restore_deletes_nothing() {
    let server = Server::start();
    let now = told(&server);
    let listed = |entries| Told { entries, snapshot: vec![7], ..Told::default() };
    *now.lock().unwrap() = listed(vec![(3, 19, "lost"), (2, 15, "first"), (7, 5, "listed")]);
    let copy = copy_of(server.url("/collection"));
    copy.run();
    // The server does not have 3 any more, and the walk does not reach 2.
    *now.lock().unwrap() = Told { is_circle: true, ..listed(vec![(4, 16, "first")]) };
    (0..2).for_each(|_| assert_ne!(copy.try_run().exit(), 0));
    let all = [lines(2, "first"), lines(3, "lost"), lines(4, "first"), lines(7, "listed")];
    assert_has(&copy, &all.concat());
    *now.lock().unwrap() = listed(vec![(4, 16, "first"), (2, 15, "first"), (7, 5, "listed")]);
    copy.run();
    assert_has(&copy, &[lines(2, "first"), lines(4, "first"), lines(7, "listed")].concat());
}

/// As after an import of a whole set. Within a second of a coarse clock, more entries may have
/// followed after the read: the entries are fetched again once.
#[test]
fn many_entries_of_one_time_are_not_fetched_with_each_change() {
    for (micros, at_first) in [(500_000, 2), (0, 3_001)] {
        let server = Server::start();
        let now = told(&server);
        let all: Vec<_> = (1..=3_000).map(|number| (number, 20, "first")).collect();
        *now.lock().unwrap() = Told { entries: all, micros, ..Told::default() };
        let copy = copy_of(server.url("/collection"));
        copy.run();
        let fetched_after = |changes: [(usize, i64, &'static str); 2]| {
            let mut now = now.lock().unwrap();
            now.entries.retain(|it| changes.iter().all(|change| change.0 != it.0));
            now.entries.splice(0..0, changes);
            drop(now);
            server.take_log();
            copy.run();
            server.take_log().iter().filter(|line| line.contains("/f/")).count()
        };
        let changed = [(5, 29, "second"), (0, 28, "new")];
        assert_eq!(fetched_after(changed), at_first, "{micros}");
        let changed = [(7, 35, "second"), (8, 34, "second")];
        let again = usize::from(micros == 0);
        assert_eq!(fetched_after(changed), 2 + again, "{micros}");
    }
}

#[test]
fn relative_iris_of_a_fragment_are_resolved_where_it_was_found() {
    let server = Server::start();
    let (now, to) =
        (Told { entries: vec![(1, 20, "first")], ..Told::default() }, server.url("/docs/1"));
    server.handler(move |target, _| match target {
        "/f/1" => Some(Answer::status(303).header("location", &to)),
        "/docs/1" => {
            let text = format!("<{}> <http://ns.example/next> <2> .", SdSource::name(1));
            Some(Answer::ok(text).header("content-type", "text/turtle"))
        }
        target => now.answer(target),
    });
    let copy = copy_of(server.url("/collection"));
    copy.run();
    let next = server.url("/docs/2");
    let expected = format!("<{}> <http://ns.example/next> <{next}> .", SdSource::name(1));
    assert_has(&copy, &expected);
}

#[test]
fn relative_iris_of_a_snapshot_are_resolved_where_it_was_found() {
    let habits = Habits { media_type: "text/turtle", ..Habits::default() };
    let source = SdSource::start(habits);
    source.put_number(1, "first");
    source.wait(100);
    source.make_snapshot();
    let to = source.server.url("/docs/all");
    source.answer_first(move |target, _| match target {
        "/snapshot" => Some(Answer::status(302).header("location", &to)),
        "/docs/all" => {
            let text = format!("<{}> <http://ns.example/next> <2> .", SdSource::name(1));
            Some(Answer::ok(text).header("content-type", "text/turtle"))
        }
        _ => None,
    });
    let copy = copy_of(source.url());
    copy.run();
    let next = source.server.url("/docs/2");
    assert_has(&copy, &format!("<{}> <http://ns.example/next> <{next}> .", SdSource::name(1)));
}
