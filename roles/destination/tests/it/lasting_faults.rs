//! Documents that cannot be used in any run: the deletions that they delay, and for how long.

use crate::copy::{Copy, Ran};
use crate::emm_source::{EmmSource, Habits as EmmHabits};
use crate::rs01_source::OldSource;
use crate::sdshare_source::{Habits, SdSource};
use crate::source::Source;
use abreast_destination::check::{CopyPlace, check_copy};
use abreast_destination::{NQuadsOptions, SinkOptions, Tolerance};
use abreast_store::integrity::Findings;
use abreast_testkit::pages::{Answer, Server};
use serde_json::json;
use std::sync::atomic::AtomicBool;

/// A copy of 12 resources whose Source has deleted one, and has a document or an entry that cannot
/// be used from now on; the server is retained.
type Broken = fn() -> (Copy, Server);

/// Protocol and fault, how it is made, its code, and the run that deletes.
const FAULTS: &[(&str, Broken, &str, usize)] = &[
    ("1.1, a Change List", change_list, "rs.change", 2),
    ("1.1, an entry", entry, "rs.entry", 2),
    ("0.1, a change set", change_set, "rs.change", 2),
    ("SDShare, an entry", fragment, "sdshare.resource", 2),
    ("EMM, the full download", download, "emm.download", 1),
    ("EMM, an activity", activity, "list.unusable", 1),
    ("EMM, a page", page, "list.cycle", 1),
];

fn of_statements(url: String) -> Copy {
    let mut copy = Copy::of(url);
    copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    copy
}

fn source_of_12() -> (Source, Copy) {
    let mut source = Source::new();
    (0..12).for_each(|number| source.set(&format!("/r{number:02}"), "text"));
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    (source, copy)
}

const NO_CHANGE: &str =
    "<url><loc>http://h/x</loc><rs:md change=\"renamed\" datetime=\"2026-01-01T00:10:00Z\"/></url>";

fn change_list() -> (Copy, Server) {
    let (mut source, mut copy) = source_of_12();
    source.kept.remove("/r00");
    source.clock += 1;
    source.snapshot();
    source.changes.push_str(NO_CHANGE);
    source.publish();
    copy.options.baseline = true;
    (copy, source.server)
}

fn entry() -> (Copy, Server) {
    let (mut source, mut copy) = source_of_12();
    source.delete("/r00");
    source.changes.push_str(NO_CHANGE);
    source.publish();
    copy.options.tolerance = Tolerance::Lenient;
    (copy, source.server)
}

fn change_set() -> (Copy, Server) {
    let mut source = OldSource::new();
    (0..12).for_each(|number| source.set(&format!("/r{number:02}"), "text"));
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.run();
    source.kept.remove("/r00");
    source.wait(1);
    source.snapshot();
    source.server.body("/c.xml", source.change_set(0).replace("\"created\"", "\"renamed\""));
    copy.options.baseline = true;
    (copy, source.server)
}

fn fragment() -> (Copy, Server) {
    let source = SdSource::start(Habits { page: 100, ..Habits::default() });
    (0..12).for_each(|number| source.put_number(number, "first"));
    source.make_snapshot();
    let copy = of_statements(source.url());
    copy.run();
    source.delete_number(0);
    source.put("not an IRI", "");
    (copy, source.server)
}

fn emm_source() -> (EmmSource, Copy) {
    let source = EmmSource::start(EmmHabits { newest_first: true, ..EmmHabits::default() });
    (0..12).for_each(|number| source.put(number, "first"));
    let copy = of_statements(source.url());
    (source, copy)
}

fn download() -> (Copy, Server) {
    let (source, copy) = emm_source();
    source.make_download();
    copy.run();
    source.delete(0);
    source.answer_first(|target, _| (target == "/download").then(|| Answer::status(404)));
    let mut copy = copy;
    copy.options.baseline = true;
    (copy, source.server)
}

fn activity() -> (Copy, Server) {
    let (source, copy) = emm_source();
    copy.run();
    source.delete(0);
    source.record_with(1, "Update", json!({"object": null}));
    (copy, source.server)
}

fn page() -> (Copy, Server) {
    let (source, mut copy) = emm_source();
    copy.run();
    source.delete(0);
    let page = |number: usize| source.server.url(&format!("/feed/{number}"));
    let circle = json!({"@context": "https://www.w3.org/ns/activitystreams", "id": page(3),
        "type": "OrderedCollectionPage", "orderedItems": [], "next": page(1)});
    source.answer_first(move |target, _| {
        (target == "/feed/3").then(|| Answer::ok(circle.to_string()))
    });
    copy.options.baseline = true;
    (copy, source.server)
}

#[test]
fn a_fault_that_lasts_holds_deletions_in_one_run_at_most() {
    for (what, broken, code, deletes) in FAULTS {
        let (copy, _server) = broken();
        for run in 1..=3 {
            let ran = copy.try_run();
            let what = format!("{what}, run {run}: {:?}", ran.reported);
            let summary = ran.summary();
            let expected = (u64::from(run < *deletes), u64::from(run == *deletes));
            assert_eq!((summary.held, summary.deleted), expected, "{what}");
            if run == 1 {
                assert_eq!((ran.exit(), ran.has(code)), (3, true), "{what}");
            }
        }
    }
}

#[test]
fn a_fault_that_lasts_is_dated() {
    let (copy, server) = change_list();
    let message =
        |ran: &Ran| ran.reported.iter().find(|it| it.code == "rs.change").unwrap().message.clone();
    let first = copy.try_run();
    let since = first.summary().failing_since.clone().unwrap();
    assert!(!message(&first).contains("since"), "{:?}", first.reported);
    for _ in 0..2 {
        let ran = copy.try_run();
        assert!(message(&ran).contains(&format!("\n  since {since}")), "{:?}", ran.reported);
        assert_eq!(ran.summary().failing_since.as_ref(), Some(&since));
        let mut findings = Findings::default();
        let place = CopyPlace::find(copy.folder()).unwrap();
        check_copy(
            &place,
            &|_| false,
            &mut findings,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        let of = |rule| findings.list().iter().find(|it| it.rule == rule).unwrap();
        assert!(of("copy.fault").location.ends_with("/changelist.xml"), "{:?}", findings.list());
        assert!(of("copy.fault").message.contains(&since), "{:?}", findings.list());
        assert!(of("copy.failing").message.contains(&since), "{:?}", findings.list());
    }
    let whole = String::from_utf8(server.page("/changelist.xml")).unwrap();
    server.body("/changelist.xml", whole.replace(NO_CHANGE, ""));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().failing_since.as_ref()), (0, None));
    assert_eq!(copy.audit(false).failing_since, None);
}
