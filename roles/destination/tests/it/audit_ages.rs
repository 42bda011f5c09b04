//! Audits by lists that are older than the copy, and by feeds that list only some changes:
//! resources that documents do not show are neither missing nor different.

use crate::copy::{Copy, Ran};
use crate::emm_source::{self, EmmSource};
use crate::rs01_source::{OldSource, Shape};
use crate::sdshare_source::{self, SdSource};
use crate::source::Source;
use abreast_destination::{AuditReport, NQuadsOptions, SinkOptions};
use abreast_testkit::pages::Answer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A Source of each protocol, whose resources have numbers.
enum Provider {
    Lists(Source),
    Old(OldSource),
    SdShare(SdSource),
    Emm(EmmSource),
}

const WITH_LISTS: [&str; 4] = ["1.1", "0.1", "SDShare", "EMM"];

impl Provider {
    fn start(name: &str) -> Self {
        let back = emm_source::Habits { newest_first: true, ..emm_source::Habits::default() };
        match name {
            "1.1" => Self::Lists(Source::new()),
            "0.1" => Self::Old(OldSource::of(Shape { per_set: 1, ..Shape::default() })),
            "SDShare" => Self::SdShare(SdSource::start(sdshare_source::Habits::default())),
            "EMM" => Self::Emm(EmmSource::start(emm_source::Habits::default())),
            "newest first" => Self::Emm(EmmSource::start(back)),
            "oldest first" => Self::Emm(EmmSource::start(emm_source::Habits {
                has_last: false,
                has_prev: false,
                ..emm_source::Habits::default()
            })),
            _ => unreachable!("{name}"),
        }
    }

    fn set(&mut self, number: usize, value: &str) {
        let path = format!("/{number}");
        match self {
            Self::Lists(source) => source.set(&path, value),
            Self::Old(source) => source.set(&path, value),
            Self::SdShare(source) => source.put_number(number, value),
            Self::Emm(source) => source.put(number, value),
        }
    }

    fn delete(&mut self, number: usize) {
        let path = format!("/{number}");
        match self {
            Self::Lists(source) => source.delete(&path),
            Self::Old(source) => source.delete(&path),
            Self::SdShare(source) => source.delete_number(number),
            Self::Emm(source) => source.delete(number),
        }
    }

    fn wait(&mut self) {
        match self {
            Self::Lists(source) => source.clock += 5,
            Self::Old(source) => source.wait(5),
            Self::SdShare(source) => source.wait(5),
            Self::Emm(source) => source.wait_days(1),
        }
    }

    fn snapshot(&mut self) {
        match self {
            Self::Lists(source) => source.snapshot(),
            Self::Old(source) => source.snapshot(),
            Self::SdShare(source) => source.make_snapshot(),
            Self::Emm(source) => source.make_download(),
        }
    }

    /// Removes all changes but the newest.
    fn prune(&mut self) {
        match self {
            Self::Lists(source) => {
                let last = source.changes.trim_end().rfind("<url>").unwrap();
                source.changes.drain(..last);
                source.from = source.now();
                source.publish();
            }
            Self::Old(source) => {
                source.shape.per_set = source.len() - 1;
                source.prune();
            }
            Self::SdShare(source) => source.data().prune(),
            Self::Emm(source) => {
                let mut data = source.data();
                let last = data.changes.len() - 1;
                data.changes.drain(..last);
            }
        }
    }

    fn copy(&self) -> Copy {
        let url = match self {
            Self::Lists(source) => source.url(),
            Self::Old(source) => source.url(),
            Self::SdShare(source) => source.url(),
            Self::Emm(source) => source.url(),
        };
        let mut copy = Copy::of(url);
        if let Self::SdShare(_) | Self::Emm(_) = self {
            copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
        }
        copy
    }
}

/// Equal, updated, missing, extra and unknown.
fn counts(report: &AuditReport) -> [u64; 5] {
    [report.same, report.updated, report.missing, report.extra, report.unknown]
}

#[track_caller]
fn audit(copy: &Copy, full: bool, what: &str) -> AuditReport {
    let ran = Ran::audit(&copy.options, full);
    ran.result.unwrap_or_else(|error| panic!("{what}: {error:?} {:?}", ran.reported))
}

/// The copy followed changes that are not listed any more, and the list of all is older than they are.
#[test]
fn changes_that_are_not_listed_any_more_are_taken_from_the_copy() {
    for name in WITH_LISTS {
        let mut provider = Provider::start(name);
        (0..5).for_each(|number| provider.set(number, "first"));
        provider.snapshot();
        let copy = provider.copy();
        assert_eq!(copy.try_run().exit(), 0, "{name}");
        provider.wait();
        provider.set(1, "second, and longer");
        provider.delete(2);
        provider.set(6, "new");
        provider.wait();
        provider.set(3, "second, and longer");
        assert_eq!(copy.try_run().exit(), 0, "{name}");
        // An empty description is a deletion in SDShare, and only a request would show it.
        let all = [5, 0, 0, 0, u64::from(name == "SDShare")];
        assert_eq!(counts(&audit(&copy, true, name)), all, "{name}");
        provider.prune();
        for full in [false, true] {
            let report = audit(&copy, full, name);
            // 0, 4 and the one whose change is listed; 1 and 6 are later than the list, 2 was deleted.
            assert_eq!(counts(&report), [3, 0, 0, 0, 3], "{name}, full: {full}");
            assert_eq!((report.exit_code, report.partial), (0, false), "{name}, full: {full}");
        }
    }
}

/// A copy from a list from which the changes do not continue is incomplete, whatever it contains.
#[test]
fn a_copy_with_a_gap_is_not_called_equal() {
    for name in ["1.1", "0.1"] {
        let mut provider = Provider::start(name);
        (0..5).for_each(|number| provider.set(number, "first"));
        provider.snapshot();
        provider.wait();
        provider.set(7, "new");
        provider.wait();
        provider.set(3, "second, and longer");
        provider.prune();
        let copy = provider.copy();
        let ran = copy.try_run();
        let report = audit(&copy, true, name);
        assert_eq!(report.exit_code, ran.exit(), "{name}: {:?}", ran.reported);
        assert_eq!(counts(&report), [5, 0, 0, 0, 0], "{name}");
        assert_eq!(report.exit_code == 3, name == "1.1", "{name}");
    }
}

#[test]
fn damage_is_found_whatever_the_age_of_the_list() {
    let mut provider = Provider::start("1.1");
    (0..5).for_each(|number| provider.set(number, "first"));
    provider.snapshot();
    let copy = provider.copy();
    copy.run();
    provider.wait();
    (0..3).for_each(|number| provider.set(number, "second, and longer"));
    provider.set(6, "new");
    provider.wait();
    provider.set(3, "second, and longer");
    copy.run();
    provider.prune();
    assert_eq!(counts(&audit(&copy, true, "")), [2, 0, 0, 0, 4]);
    std::fs::write(copy.folder().join("0"), "altered here").unwrap();
    std::fs::remove_file(copy.folder().join("1")).unwrap();
    std::fs::write(copy.folder().join("stray"), "of nobody").unwrap();
    for full in [false, true] {
        let report = audit(&copy, full, "");
        assert_eq!(counts(&report), [2, 1, 1, 1, 2], "full: {full}");
        assert_eq!(report.exit_code, 1);
    }
}

/// A feed without a list of all shows nothing about entities that it does not name any more.
#[test]
fn entities_that_a_feed_does_not_list_any_more_are_not_extra() {
    for name in ["newest first", "oldest first"] {
        let mut provider = Provider::start(name);
        (0..5).for_each(|number| provider.set(number, "first"));
        let copy = provider.copy();
        assert_eq!(copy.try_run().exit(), 0, "{name}");
        provider.wait();
        provider.delete(1);
        provider.set(3, "second");
        assert_eq!(copy.try_run().exit(), 0, "{name}");
        provider.prune();
        let report = audit(&copy, true, name);
        assert_eq!(counts(&report), [1, 0, 0, 0, 3], "{name}");
        assert_eq!(report.exit_code, 0, "{name}");
    }
}

/// A resource that a document lists as deleted is extra, in every protocol.
#[test]
fn a_deletion_that_the_copy_does_not_have_is_a_difference() {
    for name in WITH_LISTS.into_iter().chain(["newest first", "oldest first"]) {
        let mut provider = Provider::start(name);
        (0..5).for_each(|number| provider.set(number, "first"));
        if WITH_LISTS.contains(&name) {
            provider.snapshot();
        }
        let copy = provider.copy();
        assert_eq!(copy.try_run().exit(), 0, "{name}");
        provider.wait();
        provider.set(7, "second");
        // The deletions have no mark.
        let mut expected = [5, 0, 1, 0, 0];
        if name != "SDShare" {
            provider.delete(3);
            expected = [4, 0, 1, 1, 0];
        }
        assert_eq!(counts(&audit(&copy, true, name)), expected, "{name}");
    }
}

#[test]
fn descriptions_that_were_empty_are_not_missing() {
    for is_listed in [true, false] {
        let mut provider = Provider::start("SDShare");
        (0..3).for_each(|number| provider.set(number, "first"));
        if is_listed {
            provider.snapshot();
        }
        let copy = provider.copy();
        assert_eq!(copy.try_run().exit(), 0);
        provider.wait();
        provider.delete(1);
        // If the time of the stored version is not known, only a request would show the change.
        let not_yet = if is_listed { [3, 0, 0, 0, 0] } else { [2, 1, 0, 0, 0] };
        assert_eq!(counts(&audit(&copy, true, "")), not_yet, "{is_listed}");
        assert_eq!(copy.try_run().exit(), 0);
        let report = audit(&copy, true, "");
        assert_eq!((counts(&report), report.exit_code), ([2, 0, 0, 0, 1], 0));
    }
}

#[test]
fn entries_that_cannot_be_used_are_reported_by_an_audit_too() {
    let Provider::SdShare(source) = Provider::start("SDShare") else { unreachable!() };
    (0..3).for_each(|number| source.put_number(number, "first"));
    source.make_snapshot();
    let feed = "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"http://www.sdshare.org/2012/core/\"><id>x:f</id>\
        <title>t</title><author><name>a</name></author><updated>2026-02-01T00:00:00Z</updated><entry><id>x:e</id>\
        <title>e</title><updated>2026-02-01T00:00:00Z</updated></entry></feed>";
    source.answer_first(move |target, _| {
        let answer = Answer::ok(feed).header("content-type", "application/atom+xml");
        target.starts_with("/fragments").then_some(answer)
    });
    let provider = Provider::SdShare(source);
    let copy = provider.copy();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("list.unusable")), (3, true), "{:?}", ran.result);
    let ran = Ran::audit(&copy.options, true);
    assert!(ran.has("list.unusable"), "{:?}", ran.reported);
    let report = ran.result.unwrap();
    assert_eq!((counts(&report), report.exit_code), ([3, 0, 0, 0, 0], 3));
}

#[test]
fn an_audit_follows_change_lists_back() {
    let mut source = Source::new();
    (0..3).for_each(|number| source.set(&format!("/{number}"), "first"));
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    for number in 0..4 {
        let before = String::from_utf8(source.server.page("/changelist.xml")).unwrap();
        let path = format!("/closed{number}.xml");
        let until = format!("from=\"{}\" until=\"{}\"", source.from, source.now());
        let closed = before.replace(&format!("from=\"{}\"", source.from), &until);
        source.server.body(&path, closed);
        source.changes = format!("<rs:ln rel=\"prev\" href=\"{}\"/>\n", source.server.url(&path));
        source.from = source.now();
        source.set(&format!("/{}", number % 3), &format!("version {number}"));
        source.set(&format!("/new{number}"), "new");
        source.delete(&format!("/new{number}"));
    }
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    let report = audit(&copy, true, "");
    assert_eq!((counts(&report), report.exit_code), ([3, 0, 0, 0, 0], 0));
}

/// A list has a later version of a resource than the change before it, which stands behind one in the future.
#[test]
fn changes_before_a_list_replace_nothing_in_it() {
    let mut source = Source::new();
    source.set("/future", "later");
    source.changes = source.changes.replace(&source.now(), "2099-01-01T00:00:00Z");
    source.set("/0", "first");
    source.clock += 5;
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    assert_eq!(counts(&audit(&copy, true, "")), [2, 0, 0, 0, 0]);
    source.serve("/0", "worse");
    source.kept.insert("/0".to_owned(), b"worse".to_vec());
    source.clock += 5;
    source.snapshot();
    for full in [false, true] {
        assert_eq!(counts(&audit(&copy, full, "of the list")), [1, 1, 0, 0, 0], "full: {full}");
    }
}

/// The transfer of the list is interrupted, and the next response is another version.
#[test]
fn an_aborted_transfer_of_a_list_adds_nothing_to_an_audit() {
    let mut source = Source::new();
    (0..9).for_each(|number| source.set(&format!("/{number}"), "first"));
    source.snapshot();
    let before = source.server.page("/resourcelist.xml");
    for number in [0, 2] {
        source.delete(&format!("/{number}"));
    }
    source.set("/3", "second");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let is_aborted = Arc::new(AtomicBool::new(false));
    let aborted = Arc::clone(&is_aborted);
    source.server.handler(move |target, _| {
        let is_first = target == "/resourcelist.xml" && !aborted.swap(true, Ordering::Relaxed);
        is_first.then(|| Answer::cut(before.clone(), 300))
    });
    let report = audit(&copy, true, "");
    assert!(is_aborted.load(Ordering::Relaxed));
    assert_eq!((counts(&report), report.exit_code), ([7, 0, 0, 0, 0], 0));
}

#[test]
fn a_download_newer_than_its_pages_decides() {
    for name in ["EMM", "SDShare"] {
        let mut provider = Provider::start(name);
        (0..5).for_each(|number| provider.set(number, "first"));
        provider.set(1, "second");
        provider.wait();
        provider.delete(2);
        provider.wait();
        provider.snapshot();
        let copy = provider.copy();
        assert_eq!(copy.try_run().exit(), 0, "{name}");
        // The deletion is missing.
        if let Provider::Emm(source) = &provider {
            source.data().changes.pop();
        }
        let report = audit(&copy, true, name);
        assert_eq!((counts(&report), report.exit_code), ([4, 0, 0, 0, 0], 0), "{name}");
    }
}

#[test]
fn documents_of_a_cache_are_compared_as_they_are() {
    let mut source = Source::new();
    (0..4).for_each(|number| source.set(&format!("/{number}"), "first"));
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let old = ["/resourcelist.xml", "/changelist.xml"].map(|it| (it, source.server.page(it)));
    source.set("/1", "second, and longer");
    source.delete("/2");
    copy.run();
    let (list, body) = &old[0];
    source.server.body(list, body.clone());
    assert_eq!(counts(&audit(&copy, true, "")), [3, 0, 0, 0, 0]);
    // Both lists are old: the Source seems to lack resources that the copy has.
    for (path, body) in &old {
        source.server.body(path, body.clone());
    }
    let report = audit(&copy, true, "");
    assert_eq!((report.updated, report.missing, report.exit_code), (1, 1, 1));
}
