//! Copies of Sources with dumps and without lists: their requests, audits, other addresses.

use crate::copy::{Copy, Ran};
use crate::dump_source::{DumpSource, manifest, packages, resources};
use crate::rs01::{DUMP, copy_at, some, without_sitemap};
use crate::rs01_source::{OldSource, link, modified};
use abreast_testkit::pages::{Answer, Server};
use std::time::Duration;

/// Ten resources in two packages.
fn of_two(beside: bool) -> DumpSource {
    let mut source = DumpSource::new();
    source.server.delay(Duration::ZERO);
    let all = resources(10);
    source.dump_of(&[("one", &all[..6]), ("two", &all[6..])], beside);
    source
}

/// How many of these paths end like this.
fn count(log: &[String], ending: &str) -> usize {
    log.iter().filter(|path| path.ends_with(ending)).count()
}

/// How often such paths were asked for.
fn asked(server: &Server, ending: &str) -> usize {
    count(&server.take_log(), ending)
}

/// The response of a path in place of a manifest.
type Broken = fn(&DumpSource) -> Answer;

fn of_0_1(extra: &str) -> OldSource {
    let mut source = without_sitemap(&["/d.zip"]);
    if !extra.is_empty() {
        source.set(extra, "new");
    }
    source.server.body("/d.zip", source.part_of_dump(&modified(&source.now()), (0, 1)));
    source
}

#[test]
fn a_copy_of_a_dump_follows_its_source_to_another_address() {
    for beside in [true, false] {
        let (old, new) = (of_two(beside), of_two(beside));
        let mut copy = Copy::of(old.url());
        assert_eq!(copy.run().created, 10);
        let before = copy.texts();
        copy.options.url = new.url();
        let refused = copy.try_run();
        let text = format!("{:?}", refused.result);
        assert_eq!(refused.code(), "folder.source", "{text}");
        assert!(text.contains("--moved"), "{text}");
        copy.options.moved = true;
        copy.options.dry_run = true;
        let ran = copy.try_run();
        let (code, moved) = if beside { ("", 1) } else { ("dump.dry-run", 0) };
        assert_eq!((ran.code(), ran.count("source.moved")), (code, moved), "{:?}", ran.reported);
        copy.options.dry_run = false;
        for is_first in [true, false] {
            new.server.take_log();
            let ran = copy.try_run();
            let reported = format!("{beside} {is_first} {:?}", ran.reported);
            assert_eq!((ran.exit(), ran.items.len()), (0, 0), "{reported}");
            assert_eq!(ran.count("source.moved"), usize::from(is_first), "{reported}");
            let most = if beside { 0 } else { 2 };
            let log = new.server.take_log();
            let counts = (count(&log, ".zip"), count(&log, ".txt"));
            assert_eq!(counts, (most, 0), "{reported} {log:?}");
            assert_eq!((copy.texts(), packages(&copy)), (before.clone(), 0), "{reported}");
        }
        copy.options.moved = false;
        new.server.take_log();
        assert_eq!(copy.run().exit_code, 0);
        assert_eq!(new.server.take_log(), ["/dump.xml"]);
        assert_eq!(copy.audit(true).exit_code, 0);
    }
}

#[test]
fn another_dump_is_not_the_source_of_a_copy() {
    let (old, mut other) = (of_two(false), DumpSource::new());
    let strangers: Vec<_> = (0..5).map(|name| (format!("/x/{name}"), "x".to_owned())).collect();
    other.dump_of(&[("one", &strangers)], false);
    let mut copy = Copy::of(old.url());
    copy.run();
    let before = copy.texts();
    copy.options.url = other.url();
    copy.options.moved = true;
    let refused = copy.try_run();
    assert_eq!((refused.code(), copy.texts()), ("folder.source", before), "{:?}", refused.result);
    copy.options.url = old.url();
    assert_eq!(copy.run().exit_code, 0);
}

#[test]
fn a_copy_of_a_dump_of_0_1_follows_its_source() {
    let (old, mut new) = (of_0_1(""), of_0_1("/f77"));
    let mut copy = Copy::of(old.server.url("/c.xml"));
    copy.options.base = Some(old.server.url("/"));
    copy.run();
    copy.options.base = None;
    copy.options.url = new.server.url("/c.xml");
    copy.options.moved = true;
    new.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.count("source.moved")), (0, 1), "{:?}", ran.reported);
    assert_eq!((ran.summary().created, ran.items.len()), (1, 1), "{:?}", ran.items);
    assert_eq!(asked(&new.server, "/f00"), 0);
    copy.options.moved = false;
    new.set("/f00", "changed");
    assert_eq!((copy.run().updated, copy.audit(true).exit_code), (1, 0));
}

#[test]
fn a_copy_over_0_1_can_continue_at_the_dump_of_its_set() {
    let mut source = OldSource::new();
    some(&mut source, 6);
    source.links = link(DUMP, "/d.zip");
    source.snapshot();
    let dump = source.part_of_dump(&modified(&source.now()), (0, 1));
    // As of a server with both versions: the dump is also a resource of a Source of 1.1.
    let link = format!("<{}>; rel=\"resourcesync\"", source.server.url("/capabilitylist.xml"));
    source.server.put("/d.zip", Answer::ok(dump).header("link", &link));
    let mut copy = copy_at(&source, source.url());
    assert_eq!(copy.run().exit_code, 0);
    copy.options.base = None;
    copy.options.url = source.server.url("/d.zip");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (0, ""), "{:?}", ran.result);
    assert_eq!(ran.items.len(), 0, "{:?}", ran.items);
    // It follows the change sets as before.
    source.set("/f77", "new");
    assert_eq!(copy.run().created, 1);
    // The dump of another set is refused.
    let other = of_0_1("");
    copy.options.url = other.server.url("/d.zip");
    assert_eq!(copy.try_run().code(), "folder.source");
}

#[test]
fn copies_of_dumps_can_be_audited() {
    for beside in [true, false] {
        let source = of_two(beside);
        let copy = Copy::of(source.url());
        copy.run();
        source.server.take_log();
        let report = copy.audit(true);
        assert_eq!((report.same, report.exit_code), (10, 0));
        assert_eq!(asked(&source.server, ".zip"), if beside { 0 } else { 2 });
        std::fs::write(copy.folder().join("0/0000.txt"), "damaged").unwrap();
        std::fs::remove_file(copy.folder().join("1/0001.txt")).unwrap();
        let report = copy.audit(true);
        assert_eq!((report.updated, report.missing, report.same), (1, 1, 8));
        assert_eq!(packages(&copy), 0);
    }
}

#[test]
fn manifests_beside_packages_show_which_ones_are_needed() {
    let mut source = of_two(true);
    let mut copy = Copy::of(source.url());
    copy.options.dry_run = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 10), "{:?}", ran.reported);
    assert_eq!(asked(&source.server, ".zip"), 0);
    copy.options.dry_run = false;
    assert_eq!(copy.run().created, 10);
    // All packages are needed, because only they show their contents.
    let log = source.server.take_log();
    assert!(!log.contains(&"/one.xml".to_owned()), "{log:?}");
    assert!(log.contains(&"/one.zip".to_owned()) && count(&log, ".txt") == 0);
    // A new dump of which nothing is new, then one with a change and a deletion.
    let mut all = resources(10);
    source.dump_of(&[("three", &all)], true);
    assert_eq!(copy.run().exit_code, 0);
    let log = source.server.take_log();
    assert!(log.contains(&"/three.xml".to_owned()) && !log.contains(&"/three.zip".to_owned()));
    all[0].1 = "changed".to_owned();
    source.dump_of(&[("four", &all[..9])], true);
    let ran = copy.try_run();
    assert_eq!((ran.summary().updated, ran.summary().deleted, ran.exit()), (1, 1, 0));
    let log = source.server.take_log();
    assert!(log.contains(&"/four.zip".to_owned()), "{log:?}");
    assert_eq!(count(&log, ".txt"), 0, "{log:?}");
    assert_eq!((copy.read("0/0000.txt").as_deref(), packages(&copy)), (Some("changed"), 0));
}

#[test]
fn packages_are_read_where_manifests_beside_them_are_of_no_use() {
    let broken: [(&str, Broken); 6] = [
        ("missing", |_| Answer::status(404)),
        ("failing", |_| Answer::status(500)),
        ("a page", |_| Answer::ok("<html/>")),
        ("another document", |_| Answer::ok(manifest("resourcelist", ""))),
        ("an index", |source| {
            let whole = manifest("resourcedump-manifest", "");
            let member = format!("<sitemap><loc>{}</loc></sitemap>", source.server.url("/x.xml"));
            let index = whole.replace("urlset", "sitemapindex");
            Answer::ok(index.replace("</sitemapindex", &(member + "</sitemapindex")))
        }),
        ("cut", |source| Answer::cut(source.manifest_of(&resources(10)), 30)),
    ];
    for (what, answer) in broken {
        let mut source = of_two(true);
        let copy = Copy::of(source.url());
        copy.run();
        let mut all = resources(10);
        all[3].1 = "changed".to_owned();
        source.dump_of(&[("three", &all)], true);
        source.server.put("/three.xml", answer(&source));
        let ran: Ran = copy.try_run();
        let counts = (ran.summary().updated, ran.summary().deleted, ran.exit());
        assert_eq!(counts, (1, 0, 0), "{what}: {:?}", ran.reported);
        assert_eq!(copy.audit(true).exit_code, 0, "{what}");
    }
}

/// A package that is older than the manifest next to it, as from a cache.
#[test]
fn a_member_of_another_time_than_the_manifest_is_not_used() {
    let mut source = of_two(true);
    let copy = Copy::of(source.url());
    copy.run();
    let mut all = resources(10);
    all[3].1 = "neither".to_owned();
    all[4].1 = "unknown".to_owned();
    source.dump_of(&[("three", &all)], true);
    source.server.body(&all[3].0, "changed");
    // Digests are missing, and so is the time of one entry.
    let manifest = source.manifest_of(&all).replace("hash=", "x=");
    let mut entries: Vec<_> = manifest.split("<url>").map(str::to_owned).collect();
    entries[1 + 3] = entries[1 + 3].replace("2025-06-01", "2025-07-01");
    entries[1 + 4] = entries[1 + 4].replace("<lastmod>2025-06-01T00:00:00Z</lastmod>", "");
    source.server.body("/three.xml", entries.join("<url>"));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_eq!(copy.read("3/0003.txt").as_deref(), Some("changed"));
    assert_eq!(copy.read("4/0004.txt").as_deref(), Some("unknown"));
}
