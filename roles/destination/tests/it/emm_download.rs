//! Full downloads of change feeds that are empty, compressed, missing, or have a future time.

use crate::emm::{assert_same, copy_of, with_numbers};
use crate::emm_source::{EmmSource, Habits};
use abreast_testkit::pages::Answer;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// A source with a full download, and changes since.
fn source() -> EmmSource {
    let source = with_numbers(Habits::default(), 9);
    source.make_download();
    source.put(2, "second");
    source.delete(3);
    source
}

/// The requests of entities since the last call.
fn entities_asked(source: &EmmSource) -> usize {
    source.server.take_log().iter().filter(|line| line.contains("/id/")).count()
}

#[test]
fn packed_downloads_are_read() {
    let source = source();
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(source.data().download.as_ref().unwrap().0.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    source.answer_first(move |target, _| {
        (target == "/download")
            .then(|| Answer::ok(packed.clone()).header("content-type", "application/n-triples"))
    });
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
    assert_eq!(entities_asked(&source), 2);
}

#[test]
fn a_download_of_a_time_to_come_hides_no_change() {
    let source = source();
    // Neither the server's clock nor our own has reached it.
    source.data().download.as_mut().unwrap().1 = 4_000_000_000;
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("time.future")), (0, true), "{:?}", ran.reported);
    assert_same(&copy, &source);
    assert_eq!(copy.audit(true).exit_code, 0);
    source.put(5, "third");
    assert_ne!(copy.audit(true).exit_code, 0);
    assert_eq!(copy.try_run().exit(), 0);
    assert_same(&copy, &source);
}

#[test]
fn an_empty_download_hides_no_entity() {
    for text in ["", "# maintenance\n"] {
        let source = source();
        let now = source.data().now;
        source.data().download = Some((text.to_owned(), now + 1));
        source.wait_days(1);
        let copy = copy_of(&source);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert_same(&copy, &source);
        assert_eq!(copy.audit(true).exit_code, 0);
    }
}

#[test]
fn without_its_download_a_feed_is_read_and_the_run_is_partial() {
    let source = source();
    source.answer_first(|target, _| (target == "/download").then(|| Answer::status(404)));
    let copy = copy_of(&source);
    for number in 0..3 {
        source.put(9, &format!("of run {number}"));
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.has("emm.download")), (3, true), "{:?}", ran.reported);
        assert_same(&copy, &source);
        // Later runs request changed entities only, and apply listed deletions.
        assert_eq!(entities_asked(&source), if number == 0 { 9 } else { 1 });
        source.delete(number + 4);
    }
    source.answer_first(|_, _| None);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("emm.download")), (0, false), "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn filters_by_time_judge_the_times_of_changes() {
    let source = with_numbers(Habits::default(), 3);
    source.wait_days(30);
    source.put(7, "later");
    let mut copy = copy_of(&source);
    let limit = abreast_webtypes::W3cDatetime::parse(b"2026-01-15").unwrap();
    copy.options.filter = copy.options.filter.clone().modified(Some(limit), None);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 1), "{:?}", ran.reported);
    assert!(!ran.has("filter.none"));
}

#[test]
fn filters_that_exclude_all_of_a_feed_are_reported() {
    let source = with_numbers(Habits::default(), 3);
    let mut copy = copy_of(&source);
    let limit = abreast_webtypes::W3cDatetime::parse(b"2030").unwrap();
    copy.options.filter = copy.options.filter.clone().modified(Some(limit), None);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("filter.none")), (0, 1), "{:?}", ran.reported);
}

#[test]
fn a_download_without_invalid_statements_deletes_nothing() {
    let source = with_numbers(Habits::default(), 5);
    source.make_download();
    let mut copy = copy_of(&source);
    copy.run();
    // In the download, and in an entity that changed since.
    let iri = source.iri(1);
    let wrong = format!("<{iri}> <http://ns.example/x> <http://h/a|b> .\n");
    source.data().download.as_mut().unwrap().0.push_str(&wrong);
    source.put(1, "second");
    let own: String = source
        .statements()
        .lines()
        .filter(|line| line.contains(&iri))
        .collect::<Vec<_>>()
        .join("\n");
    let answer =
        Answer::ok(format!("{own}\n{wrong}")).header("content-type", "application/n-triples");
    source.answer_first(move |target, _| target.starts_with("/id/1").then(|| answer.clone()));
    assert_eq!(copy.try_run().exit(), 3);
    copy.options.leave_out_invalid = true;
    let ran = copy.try_run();
    assert!(ran.has("rdf.invalid"), "{:?}", ran.reported);
    assert_eq!((ran.exit(), ran.summary().failed), (3, 0), "{:?}", ran.reported);
    assert_eq!(copy.try_run().summary().invalid_statements, 1);
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(ran.summary().deleted, 0, "{:?}", ran.reported);
    assert!(ran.summary().invalid_statements >= 1, "{:?}", ran.reported);
    copy.options.leave_out_invalid = false;
    assert_ne!(copy.try_run().exit(), 0, "without the option the download is refused");
}
