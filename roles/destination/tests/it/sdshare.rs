//! Copies of collections over SDShare, from servers as others write them.

use crate::copy::Copy;
use crate::rdf::{canonical, quads};
use crate::sdshare_source::{Habits, SdSource};
use abreast_destination::check::{CopyPlace, repair_copy};
use abreast_destination::{ItemAction, MaxDelete, NQuadsOptions, SinkOptions};
use abreast_testkit::pages::{Answer, Server};
use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::Quad;
use std::sync::atomic::AtomicBool;

/// A copy in files of N-Quads.
fn copy_of(source: &SdSource) -> Copy {
    let mut copy = Copy::of(source.url());
    copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    copy
}

fn parsed(lines: &str) -> Vec<Quad> {
    RdfParser::from_format(RdfFormat::NTriples)
        .for_slice(lines.as_bytes())
        .map(|quad| quad.unwrap())
        .collect()
}

/// The copy equals the source, except the labels of blank nodes.
#[track_caller]
fn assert_same(copy: &Copy, source: &SdSource) {
    let all = source.statements();
    assert_eq!(canonical(quads(copy.folder())), canonical(parsed(&all)));
}

fn with_numbers(habits: Habits, count: usize) -> SdSource {
    let source = SdSource::start(habits);
    for number in 0..count {
        source.put_number(number, "first");
    }
    source
}

/// Follows a source through every kind of change.
fn follow(habits: Habits) {
    let source = with_numbers(habits, 12);
    source.make_snapshot();
    // After the snapshot, before the copy.
    source.wait(5);
    source.put_number(3, "second");
    source.delete_number(4);
    source.put_number(20, "first");
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);

    source.wait(5);
    source.put_number(3, "third");
    source.put_number(4, "again");
    source.delete_number(5);
    source.put_number(21, "first");
    for number in 6..10 {
        source.put_number(number, "second");
    }
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    let summary = ran.summary();
    assert_eq!((summary.created, summary.updated, summary.deleted), (2, 5, 1), "{summary:?}");

    source.make_snapshot();
    let mut again = copy;
    again.options.baseline = true;
    let ran = again.try_run();
    assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{:?} {:?}", ran.reported, ran.items);
    assert_same(&again, &source);
}

#[test]
fn a_copy_follows_whatever_order_the_feed_has() {
    follow(Habits::default());
    follow(Habits { newest_first: false, page: 1, ..Habits::default() });
    follow(Habits { page: 1_000, ..Habits::default() });
}

#[test]
fn a_copy_is_made_of_chunks_where_there_are_any() {
    let habits = Habits { chunks: 3, ..Habits::default() };
    follow(habits.clone());
    let source = with_numbers(habits, 5);
    source.make_snapshot();
    copy_of(&source).run();
    let log = source.server.take_log();
    assert!(
        log.contains(&"/chunk2".to_owned()) && !log.contains(&"/snapshot".to_owned()),
        "{log:?}"
    );
}

#[test]
fn servers_of_the_draft_of_2010_are_followed() {
    follow(Habits::of_2010());
}

#[test]
fn servers_with_whole_seconds_that_leave_out_since_lose_nothing() {
    let source =
        with_numbers(Habits { whole_seconds: true, is_exclusive: true, ..Habits::default() }, 3);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    source.wait(1);
    source.put_number(1, "second");
    copy.run();
    // In the second that was seen.
    source.put_number(2, "second");
    source.put_number(1, "third");
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn a_server_without_snapshots_is_followed_by_its_fragments() {
    let habits = Habits { has_snapshots: false, ..Habits::default() };
    let source = with_numbers(habits, 7);
    let copy = copy_of(&source);
    copy.run();
    assert_same(&copy, &source);
    source.put_number(2, "second");
    source.delete_number(3);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn an_empty_fragments_feed_can_be_followed_from_its_beginning() {
    let source = SdSource::start(Habits::default());
    let mut copy = copy_of(&source);
    copy.options.url = source.server.url("/fragments?since=2026-01-01T00:00:00Z");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    for number in 0..3 {
        source.put_number(number, "first");
    }
    copy.run();
    assert_same(&copy, &source);
    source.delete_number(1);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn since_in_an_address_does_not_leave_out_what_is_older() {
    let source = with_numbers(Habits { page: 2, ..Habits::default() }, 5);
    let mut copy = copy_of(&source);
    copy.options.url = source.server.url("/fragments?since=2026-01-01T00:00:03Z&x=1");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert!(format!("{:?}", ran.reported).contains("sdshare.since"), "{:?}", ran.reported);
    assert_same(&copy, &source);
    source.put_number(1, "second");
    copy.run();
    assert_same(&copy, &source);
    assert!(source.server.take_log().iter().all(|target| !target.starts_with("/collection")));
}

#[test]
fn without_retries_a_fragment_that_fails_is_requested_once() {
    for whole_seconds in [false, true] {
        let source = with_numbers(Habits { whole_seconds, ..Habits::default() }, 3);
        source.make_snapshot();
        let mut copy = copy_of(&source);
        copy.options.net.retries = 0;
        copy.run();
        source.wait(2);
        source.put_number(1, "second");
        source.answer_first(|target, _| {
            target.starts_with("/fragment/").then(|| Answer::status(503))
        });
        source.server.take_log();
        for _ in 0..2 {
            assert_eq!(copy.try_run().exit(), 3);
            let log = source.server.take_log();
            let mut asked: Vec<_> =
                log.iter().filter(|target| target.starts_with("/fragment/")).collect();
            let count = asked.len();
            asked.sort();
            asked.dedup();
            assert!(count > 0 && asked.len() == count, "{log:?}");
        }
        source.answer_first(|_, _| None);
        copy.run();
        assert_same(&copy, &source);
    }
}

#[test]
fn fragments_that_were_applied_are_not_fetched_again() {
    let source = with_numbers(Habits::default(), 4);
    source.make_snapshot();
    source.put_number(1, "second");
    let copy = copy_of(&source);
    copy.run();
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.items.len()), (0, 0));
    let log = source.server.take_log();
    assert_eq!(log.len(), 1, "{log:?}");
    // From a second before the oldest of the changes that were read last.
    assert!(log[0].starts_with("/fragments?since=2026-01-01T00:00:03.000004"), "{log:?}");
}

#[test]
fn a_fragment_that_fails_is_fetched_by_the_next_run() {
    let source = with_numbers(Habits::default(), 6);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    for number in 0..4 {
        source.put_number(number, "second");
    }
    source.delete_number(5);
    source.answer_first(|target, _| target.ends_with("id%2F2").then(|| Answer::status(404)));
    let ran = copy.try_run();
    assert_ne!(ran.exit(), 0);
    assert!(ran.has("http.status"), "{:?}", ran.reported);
    // A new failure holds deletions, nothing else.
    assert_eq!((ran.summary().updated, ran.summary().held), (3, 1), "{:?}", ran.summary());
    let ran = copy.try_run();
    assert_eq!(ran.summary().deleted, 1, "a failure that is known holds nothing");
    source.answer_first(|_, _| None);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn fragments_about_something_else_delete_nothing() {
    let source = with_numbers(Habits::default(), 4);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    let other = format!("<{}> <http://ns.example/value> \"injected\" .\n", SdSource::name(0));
    source.put(&SdSource::name(1), &other);
    let ran = copy.try_run();
    assert!(ran.has("rdf.subject"), "{:?}", ran.reported);
    assert_eq!((ran.summary().deleted, ran.summary().updated), (0, 0));
    // Statements about other entities are not stored.
    let own = format!("<{}> <http://ns.example/value> \"own\" .\n", SdSource::name(1));
    source.put(&SdSource::name(1), &format!("{own}{other}"));
    let ran = copy.try_run();
    assert!(ran.has("rdf.others"), "{:?}", ran.reported);
    source.put(&SdSource::name(1), &own);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn mass_deletions_by_empty_fragments_are_held() {
    let source = with_numbers(Habits::default(), 40);
    source.make_snapshot();
    let mut copy = copy_of(&source);
    copy.run();
    for number in 0..30 {
        source.delete_number(number);
    }
    let ran = copy.try_run();
    assert!(ran.has("delete.limit"), "{:?}", ran.reported);
    assert_eq!((ran.summary().deleted, ran.summary().held), (0, 30));
    copy.options.max_delete = MaxDelete::Count(30);
    assert_eq!(copy.run().deleted, 30);
    assert_same(&copy, &source);
}

/// Nothing of a snapshot that cannot be used is applied.
#[track_caller]
fn refused(path: &'static str, answer: Answer, code: &str) {
    let source = with_numbers(Habits { chunks: 3, ..Habits::default() }, 9);
    source.make_snapshot();
    let mut copy = copy_of(&source);
    copy.run();
    let before = canonical(quads(copy.folder()));
    source.delete_number(1);
    source.make_snapshot();
    source.answer_first(move |target, _| (target == path).then(|| answer.clone()));
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(ran.code(), code, "{path}: {:?} {:?}", ran.result, ran.reported);
    assert_eq!(canonical(quads(copy.folder())), before);
    source.answer_first(|_, _| None);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn nothing_is_deleted_for_a_snapshot_that_cannot_be_used() {
    let turtle = |text: &str| Answer::ok(text).header("content-type", "application/n-triples");
    refused("/chunk1", Answer::status(404), "http.status");
    refused("/chunk1", Answer::cut("<http://a> <http://b> <http://c> .\n", 9), "http.truncated");
    refused("/chunk1", turtle("<http://a> <http://b> <htt"), "rdf.syntax");
    refused("/chunk2", turtle("this is no document"), "rdf.iri");
    refused("/chunks", Answer::status(500), "http.status");
    let feed = "<feed xmlns=\"http://www.w3.org/2005/Atom\">";
    refused("/chunks", Answer::ok(feed), "xml.eof");
    let entity = format!("<!DOCTYPE feed [<!ENTITY a \"b\">]>{feed}&a;</feed>");
    refused("/chunks", Answer::ok(entity), "xml.doctype");
}

#[test]
fn an_empty_snapshot_deletes_nothing() {
    let source = with_numbers(Habits::default(), 5);
    source.make_snapshot();
    let mut copy = copy_of(&source);
    copy.run();
    for number in 0..5 {
        source.delete_number(number);
    }
    source.make_snapshot();
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(ran.code(), "list.empty", "{:?}", ran.reported);
    assert!(!quads(copy.folder()).is_empty());
}

#[test]
fn a_snapshot_in_the_making_is_waited_for() {
    let source = with_numbers(Habits { chunks: 2, ..Habits::default() }, 4);
    source.make_snapshot();
    let answers = std::sync::atomic::AtomicUsize::new(0);
    source.answer_first(move |target, _| {
        let is_making = matches!(target, "/chunks" | "/chunk1")
            && answers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3 < 2;
        is_making.then(|| Answer::status(202).header("retry-after", "0"))
    });
    let copy = copy_of(&source);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn waiting_for_a_snapshot_ends_with_the_time_of_the_run() {
    let source = with_numbers(Habits::default(), 4);
    source.make_snapshot();
    source.answer_first(|target, _| (target == "/snapshot").then(|| Answer::status(202)));
    let mut copy = copy_of(&source);
    copy.options.max_time = Some(std::time::Duration::from_millis(700));
    assert_eq!(copy.try_run().code(), "limit.time");
}

#[test]
fn pages_that_lead_in_circles_come_to_an_end() {
    let source = with_numbers(Habits { page: 100, ..Habits::default() }, 4);
    source.make_snapshot();
    let page = |next: &str| {
        format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><link rel=\"next\" href=\"{next}\"/></feed>"
        )
    };
    let (one, two) = (page("/fragments?page=2"), page("/fragments?page=1"));
    source.answer_first(move |target, _| match target {
        "/fragments?page=2" => Some(Answer::ok(two.clone())),
        _ if target.starts_with("/fragments") => Some(Answer::ok(one.clone())),
        _ => None,
    });
    let copy = copy_of(&source);
    let ran = copy.try_run();
    // The newest come first.
    let text = format!("{:?}", ran.reported);
    assert!(ran.has("list.cycle") && text.contains("older changes behind it"), "{text}");
    assert_eq!(ran.exit(), 3);
    assert_same(&copy, &source);
}

#[test]
fn other_hosts_are_asked_only_when_they_are_allowed() {
    let source = with_numbers(Habits::default(), 3);
    source.make_snapshot();
    let other = Server::start();
    other.put(
        "/f",
        Answer::ok(format!("<{}> <http://ns.example/value> \"elsewhere\" .\n", SdSource::name(9)))
            .header("content-type", "text/plain"),
    );
    let entry = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"http://www.sdshare.org/2012/core/\"><entry>\
         <updated>2026-01-02T00:00:00.5Z</updated><s:resource>{}</s:resource>\
         <link rel=\"http://www.sdshare.org/2012/core/fragment\" type=\"text/plain\" href=\"{}\"/></entry></feed>",
        SdSource::name(9),
        other.url("/f")
    );
    source.answer_first(move |target, _| {
        target.starts_with("/fragments").then(|| Answer::ok(entry.clone()))
    });
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!(ran.count("uri.authority"), 1, "{:?}", ran.reported);
    assert!(other.take_log().is_empty());
    let copy = copy.allowing(&other);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.uris(ItemAction::Created).len()), (0, 1), "{:?}", ran.reported);

    // Nor are feeds and pages of other hosts read.
    for path in ["/overview", "/fragments"] {
        let base = other.base.clone();
        source.answer_first(move |target, _| {
            let relation = "http://www.sdshare.org/2012/core/collectionfeed";
            let link = match path {
                "/overview" => {
                    format!("<entry><link rel=\"{relation}\" href=\"{base}/c\"/></entry>")
                }
                _ => format!("<link rel=\"next\" href=\"{base}/page\"/>"),
            };
            let feed = format!("<feed xmlns=\"http://www.w3.org/2005/Atom\">{link}</feed>");
            target.starts_with(path).then(|| Answer::ok(feed))
        });
        let ran = copy_of(&source).try_run();
        assert_ne!(ran.exit(), 0);
        assert!(
            ran.code() == "uri.authority" || ran.has("uri.authority"),
            "{path}: {:?}",
            ran.reported
        );
    }
    assert_eq!(other.take_log(), ["/f"]);
}

#[test]
fn a_text_is_no_description_and_empties_nothing() {
    for media_type in ["text/plain", "text/turtle"] {
        let source = with_numbers(Habits { media_type, ..Habits::default() }, 3);
        source.make_snapshot();
        let copy = copy_of(&source);
        assert_eq!(copy.try_run().exit(), 0);
        let before = canonical(quads(copy.folder()));
        for text in [
            "# README\n#\n# All about this folder.\n",
            "Not found\n",
            "<!DOCTYPE html><title>500</title>",
            "<http://h/a> <http://h/p> \"about another\" .\n",
            "# Cut off\n<http://id.example/id/1> <http://h/p> \n",
        ] {
            source.wait(5);
            source.put_number(1, "second");
            let answer = Answer::ok(text).header("content-type", "text/plain; charset=utf-8");
            source.answer_first(move |target, _| {
                target.starts_with("/fragment/").then(|| answer.clone())
            });
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 3, "{text}: {:?}", ran.reported);
            assert!(ran.has("rdf.type") || ran.has("rdf.subject"), "{text}: {:?}", ran.reported);
            assert_eq!(canonical(quads(copy.folder())), before, "{text}");
        }
        // A fragment with statements is read, for any media type; an empty fragment marks a
        // deletion.
        source.data().habits.media_type = "text/plain";
        source.answer_first(|_, _| None);
        assert_eq!(copy.try_run().exit(), 0);
        assert_same(&copy, &source);
        source.wait(5);
        source.delete_number(1);
        assert_eq!(copy.try_run().exit(), 0);
        assert_same(&copy, &source);
    }
}

#[test]
fn a_time_in_the_future_hides_no_later_change() {
    let source = with_numbers(Habits { page: 100, ..Habits::default() }, 3);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    source.data().habits.ahead = 40_000 * 86_400;
    source.put_number(1, "from the future");
    let ran = copy.try_run();
    assert_eq!(ran.summary().updated, 1, "{:?}", ran.reported);
    assert!(ran.has("time.future"), "{:?}", ran.reported);
    source.data().habits.ahead = 0;
    source.put_number(2, "second");
    copy.run();
    assert_same(&copy, &source);
}

/// A server that was restored from a backup, and a copy that has changes after it.
fn restored() -> (SdSource, Copy) {
    let source = with_numbers(Habits::default(), 6);
    source.make_snapshot();
    let backup = source.data().clone();
    let copy = copy_of(&source);
    copy.run();
    source.put_number(1, "lost");
    source.put_number(10, "lost");
    copy.run();
    assert_same(&copy, &source);
    *source.data() = backup;
    (source, copy)
}

#[test]
fn a_server_that_went_back_is_compared_with_its_snapshot() {
    let (source, copy) = restored();
    let ran = copy.try_run();
    assert!(ran.has("gap"), "{:?}", ran.reported);
    assert_same(&copy, &source);
    assert!(!copy.try_run().has("gap"));
}

#[test]
fn a_comparison_that_failed_is_made_by_the_next_run() {
    let (source, copy) = restored();
    source.answer_first(|target, _| target.starts_with("/snapshot").then(|| Answer::status(500)));
    assert_ne!(copy.try_run().exit(), 0);
    source.answer_first(|_, _| None);
    // By now it has newer changes than before.
    source.wait(1_000);
    source.put_number(2, "newer");
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn entries_that_cannot_be_used_are_read_again() {
    let source = with_numbers(Habits { page: 100, ..Habits::default() }, 3);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    source.put_number(1, "second");
    source.data().habits.resource = "unknown";
    let ran = copy.try_run();
    assert!(ran.has("sdshare.resource"), "{:?}", ran.reported);
    assert_ne!(ran.exit(), 0);
    source.put_number(2, "second");
    source.data().habits.resource = "resource";
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn a_run_that_was_interrupted_is_continued() {
    let source = with_numbers(Habits::default(), 300);
    source.make_snapshot();
    source.put_number(5, "second");
    let copy = copy_of(&source);
    // Everything is planned, and the fragment fails.
    source.answer_first(|target, _| target.starts_with("/fragment/").then(|| Answer::status(500)));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let observer = |event: &abreast_destination::Event<'_>| {
        if let abreast_destination::Event::Item(_) = event {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let _ = abreast_destination::sync(&copy.options, &observer, &stop);
    source.answer_first(|target, _| target.starts_with("/snapshot").then(|| Answer::status(500)));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert_same(&copy, &source);
    assert!(!copy.folder().join(".abreast/bodies").exists());
}

#[test]
fn a_dry_run_announces_and_leaves_nothing() {
    let source = with_numbers(Habits::default(), 5);
    source.make_snapshot();
    let mut copy = copy_of(&source);
    copy.options.dry_run = true;
    let ran = copy.try_run();
    assert_eq!(ran.summary().created, 5, "{:?}", ran.reported);
    assert!(!copy.folder().exists());
    copy.options.dry_run = false;
    copy.run();
    source.put_number(1, "second");
    source.make_snapshot();
    copy.options.dry_run = true;
    copy.options.baseline = true;
    assert_eq!(copy.run().updated, 1);
    assert!(!copy.folder().join(".abreast/bodies").exists());
    copy.options.dry_run = false;
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn an_audit_finds_what_differs() {
    let source = with_numbers(Habits::default(), 5);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    assert_eq!((copy.audit(true).exit_code, copy.audit(true).same), (0, 5));
    source.put_number(1, "second");
    source.delete_number(2);
    source.put_number(7, "first");
    source.make_snapshot();
    let report = copy.audit(true);
    assert_eq!((report.updated, report.missing, report.extra), (1, 1, 1), "{report:?}");
    copy.run();
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn iris_that_differ_in_the_fragment_have_files_of_their_own() {
    let source = SdSource::start(Habits::default());
    for name in ["", "#a", "#b", "?q#a"] {
        let iri = format!("http://id.example/vocabulary{name}");
        source.put(&iri, &format!("<{iri}> <http://ns.example/value> \"{name}\" .\n"));
    }
    source.make_snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let texts = copy.texts();
    assert_eq!(texts.len(), 4, "{texts:?}");
    let all: String = texts.into_values().collect();
    assert_eq!(canonical(parsed(&all)), canonical(parsed(&source.statements())));
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn a_snapshot_without_a_time_is_used() {
    let source = with_numbers(Habits { page: 100, ..Habits::default() }, 4);
    source.make_snapshot();
    source.put_number(2, "second");
    let feed = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry>\
                <link rel=\"http://www.sdshare.org/2012/core/snapshot\" type=\"text/plain\" href=\"/snapshot\"/>\
                </entry></feed>";
    source.answer_first(move |target, _| (target == "/snapshots").then(|| Answer::ok(feed)));
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 4), "{:?}", ran.reported);
    assert_same(&copy, &source);
    source.delete_number(3);
    copy.run();
    assert_same(&copy, &source);
}

#[test]
fn a_repaired_copy_is_completed_by_the_next_run() {
    let source = with_numbers(Habits::default(), 8);
    source.make_snapshot();
    let copy = copy_of(&source);
    copy.run();
    source.put_number(2, "second");
    copy.run();
    let path = copy.folder().join("abreast-00000001.nq");
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 3]).unwrap();
    let (place, cancel) = (CopyPlace::find(copy.folder()).unwrap(), AtomicBool::new(false));
    let steps =
        repair_copy(&place, &|_| true, false, &cancel, &abreast_core::Meter::default()).unwrap();
    assert!(steps.len() > 4, "{steps:?}");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    source.server.take_log();
    copy.run();
    assert_eq!(source.server.take_log().len(), 1, "changes are followed again");
}

#[test]
fn a_dry_run_asks_no_host_that_iris_name() {
    let source = with_numbers(Habits::default(), 3);
    source.make_snapshot();
    let mut copy = copy_of(&source);
    copy.options.ignore_robots = false;
    copy.options.dry_run = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 3), "{:?}", ran.reported);
}

#[test]
fn a_copy_is_continued_over_its_own_protocol_only() {
    let source = with_numbers(Habits::default(), 3);
    source.make_snapshot();
    source.answer_first(|target, _| {
        let list = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"/>";
        (target == "/list.xml").then(|| Answer::ok(list))
    });
    let mut copy = copy_of(&source);
    copy.run();
    copy.options.url = source.server.url("/list.xml");
    let ran = copy.try_run();
    assert_eq!(ran.code(), "folder.source", "{:?}", ran.result);
    copy.options.url = source.server.url("/collection");
    copy.run();
    assert_same(&copy, &source);
}
