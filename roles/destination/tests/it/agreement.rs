//! Audits decide as runs do: for all properties in lists, a run without an error leaves a copy that
//! an audit finds equal, and a comparison repairs the differences that an audit finds.

use crate::copy::{Copy, Ran};
use crate::emm::copy_of;
use crate::emm_source::{EmmSource, Habits};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use abreast_testkit::pages::Server;
use serde_json::json;
use std::time::{Duration, SystemTime};

/// A copy is equal, by digests and without them.
#[track_caller]
fn assert_equal(copy: &Copy, what: &str) {
    for full in [false, true] {
        let ran = Ran::audit(&copy.options, full);
        let report = ran.result.unwrap();
        assert_eq!(report.exit_code, 0, "{what}, full: {full}: {report:?} {:?}", ran.items);
    }
}

#[test]
fn activities_without_a_date_count_in_their_order() {
    let shapes = [
        Habits::default(),
        Habits { newest_first: true, ..Habits::default() },
        Habits { has_prev: false, has_last: false, ..Habits::default() },
        Habits { newest_first: true, has_last: false, has_prev: false, ..Habits::default() },
    ];
    let steps: [&[&str]; 6] = [
        &["Delete"],
        &["Update"],
        &["Delete", "Create"],
        &["Create", "Delete"],
        &["Update", "Delete", "Create", "Delete"],
        &["Delete", "Create", "Update"],
    ];
    for (number, habits) in shapes.iter().enumerate() {
        for page in [2, 100] {
            for (is_dumped, are_dated) in [(page == 2, false), (true, true)] {
                let source = EmmSource::start(Habits { page, ..habits.clone() });
                let put = |number: usize, kind: &'static str, is_dated: bool| {
                    match kind {
                        "Delete" => source.delete(number),
                        _ => source.put(number, kind),
                    }
                    let mut data = source.data();
                    let last = data.changes.last_mut().unwrap();
                    last.kind = kind;
                    if !is_dated {
                        last.more = json!({"published": null});
                    }
                };
                (0..8).for_each(|number| put(number, "Create", true));
                source.wait_days(1);
                if is_dumped {
                    source.make_download();
                }
                for (number, kinds) in steps.iter().enumerate() {
                    for (step, kind) in kinds.iter().enumerate() {
                        put(number, kind, are_dated && step % 2 == 0);
                    }
                }
                put(7, "Update", true);
                let what = format!("shape {number}, {page} a page, dump: {is_dumped}, {are_dated}");
                let copy = copy_of(&source);
                for _ in 0..2 {
                    let ran = copy.try_run();
                    // A run may find that a listed resource is missing.
                    assert!(are_dated || ran.exit() == 0, "{what}: {:?}", ran.reported);
                    if ran.exit() == 0 {
                        assert_equal(&copy, &what);
                    }
                }
            }
        }
    }
}

/// The properties in the entries of a list.
#[derive(Clone, Copy, Debug)]
struct States {
    length: bool,
    digest: bool,
    modified: Option<&'static str>,
}

/// A Resource List of 1.1, in which one resource may be listed twice.
fn list(source: &Server, states: States, entries: &[(&str, &str)]) {
    let mut all = String::new();
    for (path, body) in entries {
        let length =
            if states.length { format!(" length=\"{}\"", body.len()) } else { String::new() };
        let digest = md5_hex(body.as_bytes());
        let digest = if states.digest { format!(" hash=\"md5:{digest}\"") } else { String::new() };
        let modified = states.modified.map(|time| format!("<lastmod>{time}</lastmod>"));
        all += &format!(
            "<url><loc>{}</loc>{}<rs:md{length}{digest}/></url>\n",
            source.url(path),
            modified.unwrap_or_default()
        );
    }
    source.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &all));
}

fn served(entries: &[(&str, &str)]) -> Server {
    let source = Server::start();
    for (path, body) in entries {
        source.body(path, *body);
    }
    source
}

/// All kinds of lists, and some with times that files cannot have.
fn all_states() -> impl Iterator<Item = States> {
    let usual = [None, Some("2025-06-01T00:00:00Z")];
    let facts = [(false, false), (true, false), (false, true), (true, true)];
    let odd = ["1850-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "9999-12-31T23:59:59Z"];
    let usual = usual.into_iter().flat_map(move |modified| facts.map(|facts| (modified, facts)));
    let odd = odd.into_iter().flat_map(move |time| [facts[0], facts[3]].map(|it| (Some(time), it)));
    let states = |(modified, (length, digest))| States { length, digest, modified };
    usual.chain(odd).map(states)
}

#[test]
fn an_audit_finds_what_a_comparison_repairs() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, bool, Damage); 4] = [
        ("nothing", false, |_| {}),
        ("other bytes", false, |path| std::fs::write(path, "jello").unwrap()),
        ("another time", false, |path| {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        }),
        ("other bytes of the same time", true, |path| {
            let before = std::fs::metadata(path).unwrap().modified().unwrap();
            std::fs::write(path, "jello").unwrap();
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(before).unwrap();
        }),
    ];
    for states in all_states() {
        for (damage, full, apply) in damages {
            let what = format!("{states:?}, {damage}, full: {full}");
            let source = served(&[("/a", "hello"), ("/b", "hello")]);
            list(&source, states, &[("/a", "hello"), ("/b", "hello")]);
            let mut copy = Copy::of(source.url("/list.xml"));
            assert_eq!(copy.run().created, 2, "{what}");
            assert_equal(&copy, &what);
            apply(&copy.folder().join("a"));
            let found = copy.audit(full).exit_code;
            copy.options.baseline = true;
            copy.options.full = full;
            let ran = copy.run();
            assert_eq!(found == 1, ran.damaged + ran.updated > 0, "{what}: {ran:?}");
            assert_eq!(copy.audit(full).exit_code, 0, "{what}");
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{what}: {:?}", ran.items);
        }
    }
}

#[test]
fn of_a_resource_that_is_listed_twice_one_counts_everywhere() {
    for modified in [None, Some("2025-06-01T00:00:00Z")] {
        for (first, second) in [("first", "other"), ("first", "second!")] {
            for apart in [false, true] {
                for is_served_first in [true, false] {
                    let what = format!("{modified:?}, {second}, {apart}, {is_served_first}");
                    let body = if is_served_first { first } else { second };
                    let source = served(&[("/a", body), ("/b", "hello")]);
                    let states = States { length: true, digest: true, modified };
                    let mut entries = vec![("/a", first), ("/a", second), ("/b", "hello")];
                    if apart {
                        entries.swap(1, 2);
                    }
                    list(&source, states, &entries);
                    let mut copy = Copy::of(source.url("/list.xml"));
                    for round in 0..3 {
                        copy.options.baseline = round > 0;
                        let ran = copy.try_run();
                        assert!(ran.has("list.twice"), "{what}: {:?}", ran.reported);
                        let is_equal = copy.audit(true).exit_code == 0;
                        assert_eq!(is_equal, ran.exit() == 0, "{what}: {:?}", ran.reported);
                        assert_eq!(is_equal, is_served_first, "{what}");
                    }
                }
            }
        }
    }
}
