//! Copies of Sources of ResourceSync 0.1 whose chain of change sets is broken, or of another history.

use crate::copy::{Copy, Ran};
use crate::rs01::from_now;
use crate::rs01_source::{CHANGE_SET, OldSource, Shape, document, link, modified};
use abreast_testkit::pages::{Answer, Server};

fn copy_of(source: &OldSource) -> Copy {
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy
}

fn run_equal(copy: &Copy, source: &OldSource) -> Ran {
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {:?}", ran.result, ran.reported);
    assert_eq!(copy.texts(), source.texts(), "{:?}", ran.reported);
    ran
}

#[test]
fn a_set_of_changes_of_one_time_that_is_missing_is_a_gap() {
    let mut source = OldSource::of(Shape { per_set: 2, step: 0, ..Shape::default() });
    source.set("/a", "1");
    source.snapshot();
    let copy = copy_of(&source);
    run_equal(&copy, &source);
    // The first set contains the known change and another one at the same time, and the current set
    // contains a third one at that time.
    source.set("/b", "1");
    source.set("/c", "1");
    source.server.put("/c/0.xml", Answer::status(404));
    let ran = copy.try_run();
    assert!(ran.exit() != 0 && ran.has("gap"), "{:?}", ran.reported);
    source.publish();
    run_equal(&copy, &source);
}

#[test]
fn another_set_in_the_place_of_the_one_read_last_is_a_restore() {
    let mut source = OldSource::of(Shape { per_set: 2, ..Shape::default() });
    for path in ["/a", "/b", "/lost"] {
        source.set(path, "1");
    }
    let copy = copy_of(&source);
    source.snapshot();
    run_equal(&copy, &source);
    source.restart();
    source.wait(9);
    for path in ["/a", "/b", "/other"] {
        source.set(path, "2");
    }
    source.snapshot();
    // The first set of both histories is removed.
    source.server.remove("/c/0.xml");
    let ran = run_equal(&copy, &source);
    assert!(ran.has("gap"), "{:?}", ran.reported);
}

#[test]
fn an_empty_set_without_a_time_has_no_usable_validators() {
    let shape = Shape { per_set: 2, modified: false, ..Shape::default() };
    let mut source = OldSource::of(shape);
    for path in ["/a", "/b"] {
        source.set(path, "1");
    }
    source.snapshot();
    let copy = copy_of(&source);
    run_equal(&copy, &source);
    let current = source.server.page("/c.xml");
    source.restart();
    source.wait(9);
    for path in ["/a", "/other"] {
        source.set(path, "2");
    }
    source.snapshot();
    assert_eq!(source.server.page("/c.xml"), current, "they are the same");
    run_equal(&copy, &source);
}

#[test]
fn a_first_set_with_future_times_only_is_recognised() {
    let server = Server::start();
    let list =
        modified("2026-01-01T00:00:00.000001Z") + &link(&format!("current {CHANGE_SET}"), "/c.xml");
    server.body("/s.xml", document("urlset", "", &list));
    let entry = |path: &str, time: &str| {
        server.body(path, path);
        let loc = server.url(path);
        format!("<url><loc>{loc}</loc><lastmod rs:type=\"created\">{time}</lastmod></url>\n")
    };
    let publish = |time: &str, entries: &str| {
        let set = document("urlset", "rs:type=\"changeset\"", &(modified(time) + entries));
        server.body("/c.xml", set);
    };
    let future = entry("/a", &from_now(40 * 86_400_000_000).0);
    publish("2026-01-01T00:00:00.000001Z", &future);
    let mut copy = Copy::of(server.url("/s.xml"));
    copy.options.base = Some(server.url("/"));
    assert_eq!(copy.try_run().exit(), 0);
    let time = "2026-01-02T00:00:00.000001Z";
    publish(time, &(future + &entry("/b", time)));
    let ran = copy.try_run();
    assert!(ran.exit() == 0 && !ran.has("gap"), "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["a", "b"]);
}

#[test]
fn deletions_that_wait_for_a_broken_chain_are_made_at_last() {
    let mut source = OldSource::new();
    for path in ["/a", "/b"] {
        source.set(path, "1");
    }
    source.snapshot();
    let copy = copy_of(&source);
    run_equal(&copy, &source);
    source.set("/lost", "1");
    run_equal(&copy, &source);
    source.restart();
    for path in ["/a", "/b"] {
        source.set(path, "1");
    }
    source.wait(3);
    source.snapshot();
    let sitemap = source.server.page("/s.xml");
    source.server.put("/s.xml", Answer::status(500));
    let ran = copy.try_run();
    assert!(ran.exit() != 0 && ran.has("gap"), "{:?}", ran.reported);
    source.server.body("/s.xml", sitemap);
    for number in 0..9 {
        source.set(&format!("/n{number}"), "new");
    }
    let whole = source.server.page("/c/1.xml");
    source.server.body("/c/1.xml", "<urlset");
    let ran = copy.try_run();
    assert!(ran.exit() != 0 && ran.has("list.chain"), "{:?}", ran.reported);
    // The resource may have been created between the Sitemap and the changes that were read.
    assert!(copy.paths().contains(&"lost".to_owned()));
    source.server.body("/c/1.xml", whole);
    copy.try_run();
    run_equal(&copy, &source);
}
