//! Deletions that are held back.

use crate::copy::{Copy, Ran};
use crate::emm_source::{EmmSource, Habits};
use crate::source::{Source, list_of};
use abreast_destination::check::{CopyPlace, check_copy};
use abreast_destination::{Event, MaxDelete, Push, follow};
use abreast_store::integrity::Findings;
use abreast_store::mirror::Mirror;
use abreast_testkit::pages::Server;
use serde_json::json;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn more_deletions_than_allowed_are_held() {
    let server = Server::start();
    let all: Vec<String> = (0..30).map(|number| format!("/r{number:02}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    list_of(&server, &all);
    let mut copy = Copy::of(server.url("/list.xml"));
    copy.run();
    list_of(&server, &all[..10]);
    server.body("/r00", "changed");
    copy.options.max_delete = MaxDelete::Percent(50.0);
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().held, ran.summary().updated),
        (7, 20, 1),
        "{:?}",
        ran.codes
    );
    assert_eq!(ran.codes, ["delete.limit"]);
    assert_eq!(copy.paths().len(), 30);
    // Still there to decide upon, though the list has not changed since.
    copy.options.max_delete = MaxDelete::Count(20);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().deleted), (0, 20), "{:?}", ran.codes);
    assert_eq!(copy.paths().len(), 10);
}

/// The same bytes with other URIs; other bytes, in the same number, are a loss.
#[test]
fn resources_that_move_are_no_loss() {
    for (is_moved, exit) in [(true, 0), (false, 7)] {
        for listed in [true, false] {
            let mut source = Source::new();
            for number in 0..40 {
                source.set(&format!("/a{number}"), &format!("content {number}"));
            }
            source.snapshot();
            let mut copy = Copy::of(source.url());
            copy.run();
            for number in 0..30 {
                let other = if is_moved { "" } else { " of another" };
                source.set(&format!("/b{number}"), &format!("content {number}{other}"));
                source.delete(&format!("/a{number}"));
            }
            if listed {
                source.snapshot();
                copy.options.baseline = true;
            }
            let ran = copy.try_run();
            assert_eq!(ran.exit(), exit, "{is_moved} {listed} {:?}", ran.codes);
            assert_eq!(copy.paths().len(), if is_moved { 40 } else { 70 });
        }
    }
}

#[test]
fn at_most_half_of_a_small_copy_is_deleted_at_once() {
    for (kept, gone, exit) in
        [(28, 28, 7), (28, 15, 7), (28, 14, 0), (10, 6, 7), (10, 5, 0), (9, 9, 0)]
    {
        for listed in [true, false] {
            let mut source = Source::new();
            let all: Vec<String> = (0..kept).map(|number| format!("/r{number:02}")).collect();
            for path in &all {
                source.set(path, path);
            }
            source.set("/x", "more than nothing is listed");
            source.delete("/x");
            source.snapshot();
            let mut copy = Copy::of(source.url());
            copy.run();
            // New resources do not compensate for deleted ones.
            source.set("/new", "new");
            for path in &all[..gone] {
                source.delete(path);
            }
            if listed {
                source.snapshot();
                copy.options.baseline = true;
            }
            let ran = copy.try_run();
            let summary = ran.summary();
            let held = if exit == 7 { gone as u64 } else { 0 };
            let case = format!("{gone} of {kept}, listed: {listed} {:?}", ran.codes);
            assert_eq!(
                (ran.exit(), summary.held, summary.deleted),
                (exit, held, gone as u64 - held),
                "{case}"
            );
            assert_eq!(summary.created, 1, "{case}");
            copy.options.max_delete = MaxDelete::Count(gone as u64);
            assert_eq!(copy.try_run().exit(), 0, "{case}");
            assert_eq!(copy.paths().len(), kept - gone + 1, "{case}");
        }
    }
}

#[test]
fn failures_hold_deletions_back_for_one_run() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.set("/b", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    source.delete("/b");
    source.set("/c", "3");
    source.server.remove("/c");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().held, ran.summary().failed), (3, 1, 1));
    assert_eq!(copy.paths(), ["a", "b"]);
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().deleted, ran.summary().failed),
        (3, 1, 1),
        "{:?}",
        ran.codes
    );
    assert_eq!(copy.paths(), ["a"]);
}

#[test]
fn too_many_failures_end_the_run_without_deletions() {
    let server = Server::start();
    list_of(&server, &["/old"]);
    let copy = Copy::of(server.url("/list.xml"));
    copy.run();
    let many: Vec<String> = (0..2_000).map(|number| format!("/m{number:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    list_of(&server, &many);
    for path in &many {
        server.remove(path);
    }
    server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().held), (8, 1), "{:?}", ran.summary());
    assert!(server.take_log().len() < 1_900);
    assert_eq!(copy.paths(), ["old"]);
}

fn paths(names: std::ops::Range<usize>) -> Vec<String> {
    names.map(|number| format!("/r{number:03}")).collect()
}

/// A copy of a list of so many resources.
fn listed(count: usize) -> (Server, Copy) {
    let server = Server::start();
    list_again(&server, 0..count);
    let copy = Copy::of(server.url("/list.xml"));
    copy.run();
    (server, copy)
}

fn list_again(server: &Server, names: std::ops::Range<usize>) {
    let paths = paths(names);
    list_of(server, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    // With the bytes of another one it would have moved.
    for path in paths {
        server.body(&path, path.clone());
    }
}

/// Exit code, held and deleted of a run.
fn outcome(ran: &Ran) -> (u8, u64, u64) {
    (ran.exit(), ran.summary().held, ran.summary().deleted)
}

#[test]
fn held_deletions_are_dated_until_the_source_has_them_again() {
    let (server, copy) = listed(20);
    list_again(&server, 16..36);
    let first = copy.try_run();
    let since = first.summary().held_since.clone();
    assert_eq!((outcome(&first), since.is_some()), ((7, 16, 0), true));
    let place = CopyPlace::find(copy.folder()).unwrap();
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!((outcome(&ran), &ran.summary().held_since), ((7, 16, 0), &since));
        let expected =
            format!("held since {}, when the copy had 20 resources", since.as_ref().unwrap());
        assert!(ran.reported[0].message.contains(&expected), "{:?}", ran.reported);
        let audited = copy.audit(false);
        assert_eq!((audited.held, &audited.held_since, audited.extra), (16, &since, 16));
        let mut findings = Findings::default();
        check_copy(
            &place,
            &|_| false,
            &mut findings,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        let held = findings.list().iter().find(|finding| finding.rule == "copy.held").unwrap();
        assert!(held.message.contains("16, since "), "{held}");
        assert!(held.message.ends_with("when the copy had 20 resources"), "{held}");
    }
    list_again(&server, 0..36);
    let ran = copy.try_run();
    assert_eq!((outcome(&ran), &ran.summary().held_since), ((0, 0, 0), &None));
    // All that was created meanwhile is part of the copy.
    list_again(&server, 18..36);
    let ran = copy.try_run();
    assert_eq!(outcome(&ran), (0, 0, 18), "{:?}", ran.codes);
    assert_eq!((copy.audit(false).held, copy.audit(false).held_since), (0, None));
}

#[test]
fn later_deletions_are_judged_with_those_that_are_held() {
    let (server, mut copy) = listed(20);
    list_again(&server, 12..32);
    assert_eq!(outcome(&copy.try_run()), (7, 12, 0));
    list_again(&server, 15..40);
    assert_eq!(outcome(&copy.try_run()), (7, 15, 0));
    // Resources that were created since then are deleted too.
    list_again(&server, 15..30);
    assert_eq!(outcome(&copy.try_run()), (7, 25, 0));
    copy.options.max_delete = MaxDelete::Count(24);
    assert_eq!(outcome(&copy.try_run()), (7, 25, 0));
    copy.options.max_delete = MaxDelete::Percent(100.0);
    assert_eq!(outcome(&copy.try_run()), (0, 0, 25));
    copy.options.max_delete = MaxDelete::Default;
    list_again(&server, 15..22);
    assert_eq!(outcome(&copy.try_run()), (7, 8, 0));
    list_again(&server, 15..23);
    assert_eq!(outcome(&copy.try_run()), (0, 0, 7), "of 15, as many as are allowed");
}

#[test]
fn a_state_of_an_older_version_holds_what_it_held() {
    for (gone, exit) in [(20, 7), (11, 7), (10, 0)] {
        let (server, mut copy) = listed(20);
        list_again(&server, gone..gone + 20);
        copy.options.max_delete = MaxDelete::Count(0);
        assert_eq!(outcome(&copy.try_run()), (7, gone as u64, 0));
        copy.options.max_delete = MaxDelete::Default;
        let state = Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
        for key in ["created", "lasting"] {
            assert!(state.meta(key).unwrap().is_some(), "{key}");
            state.set_meta(key, None).unwrap();
        }
        drop(state);
        for run in 0..if exit == 0 { 1 } else { 3 } {
            let ran = copy.try_run();
            assert_eq!(ran.exit(), exit, "{gone}, run {run}: {:?}", ran.codes);
        }
    }
}

#[test]
fn limits_of_bytes_do_not_lift_the_guard() {
    let (server, mut copy) = listed(20);
    list_again(&server, 20..40);
    let large = "x".repeat(20_000);
    for path in paths(20..40) {
        server.body(&path, large.as_str());
    }
    copy.options.max_bytes = Some(100_000);
    copy.options.limit_requests(1);
    let mut cut_short = 0;
    for _ in 0..30 {
        let ran = copy.try_run();
        assert_eq!(ran.summary().deleted, 0);
        cut_short += u64::from(ran.exit() == 8);
        if ran.exit() == 7 {
            break;
        }
    }
    assert!(cut_short > 0);
    copy.options.max_bytes = None;
    assert_eq!(outcome(&copy.try_run()), (7, 20, 0));
    assert_eq!(copy.paths().len(), 40);
}

#[test]
fn runs_that_follow_hold_what_the_first_one_held() {
    let mut source = Source::new();
    (0..20).for_each(|number| source.set(&format!("/old{number}"), "old"));
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.run();
    for number in 0..20 {
        source.delete(&format!("/old{number}"));
        source.set(&format!("/new{number}"), "new");
    }
    copy.options.interval = Duration::from_millis(1);
    copy.options.push = Push::Off;
    let (cancel, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let observer = |event: &Event<'_>| {
        if let Event::Summary(summary) = event {
            let mut seen = seen.lock().unwrap();
            seen.push((summary.exit_code, summary.held, summary.deleted));
            cancel.store(seen.len() >= 4, Ordering::Relaxed);
        }
    };
    follow(&copy.options, &observer, &cancel).unwrap();
    assert_eq!(seen.into_inner().unwrap()[..4], [(7, 20, 0); 4]);
}

#[test]
fn a_copy_may_grow_while_a_few_deletions_are_held() {
    let source = EmmSource::start(Habits::default());
    (0..20).for_each(|number| source.put(number, "first"));
    let copy = crate::emm::copy_of(&source);
    copy.run();
    // Moved to where nothing is.
    let target = json!({"target": {"id": source.iri(900), "type": "http://ns.example/Term"}});
    source.record_with(0, "Move", target);
    let held = copy.try_run();
    assert_eq!((held.summary().held, held.summary().failed), (1, 1), "{:?}", held.codes);
    for week in 1..4 {
        (0..20).for_each(|number| source.put(week * 20 + number, "first"));
        let ran = copy.try_run();
        assert_eq!((ran.summary().held, ran.summary().created), (1, 20), "{:?}", ran.codes);
        assert_eq!(ran.summary().held_since, held.summary().held_since);
    }
    // Half of 20 is less.
    (20..50).for_each(|number| source.delete(number));
    assert_eq!(outcome(&copy.try_run()), (3, 1, 30));
}

#[test]
fn deletions_wait_in_three_runs_for_new_failures() {
    for by_list in [true, false] {
        let mut source = Source::new();
        (0..20).for_each(|number| source.set(&format!("/r{number:02}"), "old"));
        source.snapshot();
        let mut copy = Copy::of(source.url());
        copy.options.baseline = by_list;
        copy.run();
        source.delete("/r00");
        for run in 1..=4 {
            // Another one in each run.
            let failing = format!("/failing{run}");
            source.set(&failing, "new");
            source.server.remove(&failing);
            if run == 2 {
                source.delete("/r01");
            }
            source.snapshot();
            let ran = copy.try_run();
            let expected = match run {
                1 => (3, 1, 0),
                2 | 3 => (3, 2, 0),
                _ => (3, 1, 1),
            };
            assert_eq!(outcome(&ran), expected, "by list: {by_list}, run {run}: {:?}", ran.codes);
            assert_eq!(ran.summary().failed, run);
        }
        let ran = copy.try_run();
        assert_eq!(outcome(&ran), (3, 0, 1), "no failure is new");
        assert!(ran.summary().failing_since.is_some());
    }
}

#[test]
fn failures_that_are_known_do_not_end_a_run() {
    let mut source = Source::new();
    source.set("/zz", "last");
    source.set("/gone", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    // Requests in flight may fail after the run has too many failures.
    copy.options.limit_requests(1);
    copy.run();
    source.delete("/gone");
    for number in 0..150 {
        let failing = format!("/failing{number:03}");
        source.set(&failing, "new");
        source.server.remove(&failing);
    }
    source.set("/zzz", "behind all of them");
    let exits: Vec<_> = (0..3).map(|_| outcome(&copy.try_run())).collect();
    assert_eq!(exits, [(8, 1, 0), (3, 1, 0), (3, 0, 1)]);
    assert_eq!(copy.paths(), ["zz", "zzz"]);
}
