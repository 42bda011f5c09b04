//! Deletions that are held back.

use crate::copy::Copy;
use crate::source::{Source, list_of};
use abreast_destination::MaxDelete;
use abreast_testkit::pages::Server;

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
