//! Changes are taken out of the packages of Change Dumps.

use crate::copy::{Copy, Ran, files};
use crate::dump_source::{DumpSource, manifest, resources};
use abreast_destination::{Dumps, Mode, Tolerance};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::zip::Zip;

#[test]
fn changes_are_taken_out_of_change_dumps() {
    let mut source = DumpSource::new();
    let all = resources(50);
    source.serve(&all);
    source.list(&all);
    let changes = |source: &mut DumpSource, entries: &str| {
        source.offer(
            "changelist",
            "/changelist.xml",
            "urlset",
            &format!("from=\"{BEGIN}\""),
            entries,
        );
    };
    changes(&mut source, "");
    let copy = Copy::of(source.url());
    assert_eq!(copy.try_run().exit(), 0);
    let new: Vec<_> =
        all.iter().map(|(path, body)| (path.clone(), format!("{body} again"))).collect();
    let (mut listed, mut manifested, mut zip) = (String::new(), String::new(), Zip::new());
    for (number, (path, body)) in new.iter().enumerate() {
        let change = format!("change=\"updated\" datetime=\"2026-01-01T00:00:{:02}Z\"", number + 1);
        listed.push_str(&source.entry(path, body, &change));
        manifested.push_str(&source.entry(path, body, &format!("{change} path=\"/{number}\"")));
        zip.add(&number.to_string(), body.as_bytes());
    }
    changes(&mut source, &listed);
    let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
    zip.add("manifest.xml", document("urlset", &attributes, &manifested).as_bytes());
    let package = zip.finish();
    let entry = format!(
        "<url><loc>{}</loc><rs:md type=\"application/zip\" length=\"{}\" hash=\"md5:{}\"/></url>",
        source.server.url("/changes.zip"),
        package.len(),
        md5_hex(&package)
    );
    source.server.body("/changes.zip", package);
    source.offer("changedump", "/changedump.xml", "urlset", &format!("from=\"{BEGIN}\""), &entry);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().mode, ran.summary().updated),
        (0, Mode::Incremental, 50),
        "{:?}",
        ran.reported
    );
    assert_eq!(copy.read("0/0000.txt").as_deref(), Some("resource 0 again"));
    assert!(source.server.take_log().iter().all(|path| !path.starts_with("/d/")));
}

#[test]
fn a_source_with_dumps_only_is_followed_by_its_change_dump() {
    let mut source = DumpSource::new();
    let all = resources(5);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let publish = |source: &mut DumpSource, entries: &str, zip: &mut Zip| {
        let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
        zip.add("manifest.xml", document("urlset", &attributes, entries).as_bytes());
        let package = zip.finish();
        // So that the document of the dump is another one when the package is.
        let hash = md5_hex(&package);
        source.server.body("/changes.zip", package);
        let entry = format!(
            "<url><loc>{}</loc><rs:md hash=\"md5:{hash}\"/></url>",
            source.server.url("/changes.zip")
        );
        source.offer(
            "changedump",
            "/changedump.xml",
            "urlset",
            &format!("from=\"{BEGIN}\""),
            &entry,
        );
    };
    publish(&mut source, "", &mut Zip::new());
    let copy = Copy::of(source.url());
    assert_eq!(copy.try_run().exit(), 0);
    let entries = [
        source.entry(
            "/d/0/0000.txt",
            "new",
            "change=\"updated\" datetime=\"2026-01-01T00:00:01Z\" path=\"/a\"",
        ),
        source.entry(
            "/d/0/0000.txt",
            "newer",
            "change=\"updated\" datetime=\"2026-01-01T00:00:02Z\" path=\"/b\"",
        ),
        format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-01T00:00:03Z\"/></url>",
            source.server.url("/d/1/0001.txt")
        ),
    ];
    let mut zip = Zip::new();
    zip.add("a", b"new").add("b", b"newer");
    publish(&mut source, &entries.concat(), &mut zip);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Incremental), "{:?}", ran.reported);
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1), "{:?}", ran.reported);
    assert_eq!(
        (copy.read("0/0000.txt").as_deref(), copy.read("1/0001.txt")),
        (Some("newer"), None)
    );
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Unchanged));
}

/// A Change Dump with one package: an update, a creation and a deletion after the Resource Dump of
/// `resources(5)`.
fn offer_changes(source: &mut DumpSource, attributes: &str) {
    let entries = [
        source.entry(
            "/d/0/0000.txt",
            "newer",
            "change=\"updated\" datetime=\"2026-01-01T00:00:02Z\" path=\"/a\"",
        ),
        source.entry(
            "/d/new.txt",
            "new",
            "change=\"created\" datetime=\"2026-01-01T00:00:02Z\" path=\"/b\"",
        ),
        format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-01T00:00:03Z\"/></url>",
            source.server.url("/d/1/0001.txt")
        ),
    ];
    let head = format!("capability=\"changedump-manifest\" {attributes}");
    let mut zip = Zip::new();
    zip.add("a", b"newer").add("b", b"new");
    zip.add("manifest.xml", document("urlset", &head, &entries.concat()).as_bytes());
    source.server.body("/changes.zip", zip.finish());
    let package = source.server.url("/changes.zip");
    // The dump has all changes until this time, and so does not change.
    let entry = format!("<url><loc>{package}</loc><rs:md until=\"2026-01-01T00:00:03Z\"/></url>");
    source.offer("changedump", "/changedump.xml", "urlset", attributes, &entry);
}

#[test]
fn a_package_that_may_grow_is_read_again() {
    let mut source = DumpSource::new();
    source.server.body("/one.zip", source.package(&resources(5), false));
    source.dump(&["/one.zip"]);
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let entry = format!("<url><loc>{}</loc></url>", source.server.url("/changes.zip"));
    let attributes = format!("from=\"{BEGIN}\"");
    source.offer("changedump", "/changedump.xml", "urlset", &attributes, &entry);
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.try_run();
    assert_has_changes(&copy, &ran, 0);
    // The document of the dump is the same.
    let change = "change=\"updated\" datetime=\"2026-01-01T00:00:09Z\" path=\"/a\"";
    let change = source.entry("/d/2/0002.txt", "newest", change);
    let mut zip = Zip::new();
    let head = format!("capability=\"changedump-manifest\" {attributes}");
    zip.add("a", b"newest").add("manifest.xml", document("urlset", &head, &change).as_bytes());
    source.server.body("/changes.zip", zip.finish());
    let _ = copy.try_run();
    assert_eq!(copy.read("2/0002.txt").as_deref(), Some("newest"));
}

fn assert_has_changes(copy: &Copy, ran: &Ran, exit: u8) {
    assert_eq!(ran.exit(), exit, "{:?}", ran.reported);
    let read = |path| copy.read(path);
    assert_eq!(
        (read("0/0000.txt").as_deref(), read("new.txt").as_deref()),
        (Some("newer"), Some("new"))
    );
    assert_eq!((read("1/0001.txt"), read("2/0002.txt").as_deref()), (None, Some("resource 2")));
}

#[test]
fn the_first_run_from_dumps_reads_the_change_dump_too() {
    let mut source = DumpSource::new();
    source.server.body("/one.zip", source.package(&resources(5), false));
    source.dump(&["/one.zip"]);
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.try_run();
    assert_has_changes(&copy, &ran, 0);
    assert_eq!(ran.summary().mode, Mode::Baseline);
    // The next run is one request, and a comparison with the old dump takes nothing back.
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Unchanged));
    assert_eq!(source.server.take_log(), ["/changedump.xml"]);
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_has_changes(&copy, &ran, 0);
}

#[test]
fn a_first_run_with_a_late_or_broken_change_dump_reports_it() {
    let mut source = DumpSource::new();
    source.server.body("/one.zip", source.package(&resources(5), false));
    source.dump(&["/one.zip"]);
    offer_changes(&mut source, "from=\"2026-01-01T00:00:01Z\"");
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.try_run();
    assert!(ran.has("gap"), "{:?}", ran.reported);
    assert_has_changes(&copy, &ran, 3);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (3, Mode::Unchanged), "{:?}", ran.reported);
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    source.server.body("/changes.zip", "no package");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("dump.zip")), (3, true), "{:?}", ran.reported);
    assert_eq!(files(copy.folder()).len(), 5);
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let ran = copy.try_run();
    assert_has_changes(&copy, &ran, 0);
}

#[test]
fn a_dump_that_ends_before_it_begins_is_read_when_lenient() {
    let mut source = DumpSource::new();
    let all = resources(5);
    let early = "at=\"2026-01-01T00:00:09Z\" completed=\"2026-01-01T00:00:01Z\"";
    let entries: String = all
        .iter()
        .enumerate()
        .map(|(number, (path, body))| source.entry(path, body, &format!("path=\"/{number}\"")))
        .collect();
    let mut zip = Zip::new();
    for (number, (_, body)) in all.iter().enumerate() {
        zip.add(&number.to_string(), body.as_bytes());
    }
    let head = format!("capability=\"resourcedump-manifest\" {early}");
    zip.add("manifest.xml", document("urlset", &head, &entries).as_bytes());
    source.server.body("/one.zip", zip.finish());
    let package =
        format!("<url><loc>{}</loc><rs:md {early}/></url>", source.server.url("/one.zip"));
    source.offer("resourcedump", "/dump.xml", "urlset", early, &package);
    // Changes after the earlier of the two times, and before the later one.
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (4, "time.interval"), "{:?}", ran.reported);
    copy.options.tolerance = Tolerance::Lenient;
    let ran = copy.try_run();
    assert!(ran.has("time.interval"), "{:?}", ran.reported);
    assert_has_changes(&copy, &ran, 0);
}

#[test]
fn the_newest_version_in_several_change_packages_counts() {
    let mut source = DumpSource::new();
    source.server.body("/one.zip", source.package(&resources(2), false));
    source.dump(&["/one.zip"]);
    let mut packages = String::new();
    for (second, body) in [(1, "new"), (2, "newer")] {
        let entry = format!(
            "<url><loc>{}</loc><rs:md change=\"updated\" datetime=\"2026-01-01T00:00:0{second}Z\" path=\"/a\"/></url>",
            source.server.url("/d/0/0000.txt")
        );
        let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
        let mut zip = Zip::new();
        zip.add("a", body.as_bytes())
            .add("manifest.xml", document("urlset", &attributes, &entry).as_bytes());
        let path = format!("/changes{second}.zip");
        source.server.body(&path, zip.finish());
        packages.push_str(&format!("<url><loc>{}</loc></url>", source.server.url(&path)));
    }
    source.offer(
        "changedump",
        "/changedump.xml",
        "urlset",
        &format!("from=\"{BEGIN}\""),
        &packages,
    );
    let copy = Copy::of(source.url());
    assert_eq!((copy.try_run().exit(), copy.try_run().exit()), (0, 0));
    assert_eq!(copy.read("0/0000.txt").as_deref(), Some("newer"));
}

#[test]
fn a_resource_dump_undoes_no_later_change() {
    let mut source = DumpSource::new();
    let all = resources(3);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let changed = |source: &DumpSource, path: &str, body: &str, more: &str| {
        source.entry(path, body, &format!("{more} datetime=\"2026-01-01T00:00:01Z\""))
    };
    let entries = changed(&source, "/d/0/0000.txt", "newer", "change=\"updated\" path=\"/a\"")
        + &changed(&source, "/d/new.txt", "new", "change=\"created\" path=\"/b\"");
    let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
    let mut zip = Zip::new();
    zip.add("a", b"newer").add("b", b"new");
    zip.add("manifest.xml", document("urlset", &attributes, &entries).as_bytes());
    source.server.body("/changes.zip", zip.finish());
    let entry = format!("<url><loc>{}</loc></url>", source.server.url("/changes.zip"));
    source.offer("changedump", "/changedump.xml", "urlset", &format!("from=\"{BEGIN}\""), &entry);
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    assert_eq!((copy.try_run().exit(), copy.try_run().exit()), (0, 0));
    for baseline in [false, true, false] {
        assert_eq!(
            (copy.read("0/0000.txt").as_deref(), copy.read("new.txt").as_deref()),
            (Some("newer"), Some("new"))
        );
        copy.options.baseline = baseline;
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), ran.summary().updated, ran.summary().deleted),
            (0, 0, 0),
            "{baseline} {:?}",
            ran.reported
        );
    }
}

#[test]
fn without_a_digest_only_a_recent_package_is_used() {
    let mut source = DumpSource::new();
    let entry = |source: &DumpSource, path: &str, modified: &str, more: &str| {
        format!(
            "<url><loc>{}</loc><lastmod>{modified}</lastmod><rs:md {more}/></url>",
            source.server.url(path)
        )
    };
    // The dump is of 2026-01-01; `a` was modified before, `b` after.
    let list = [
        entry(&source, "/d/a", "2025-12-01T00:00:00Z", ""),
        entry(&source, "/d/b", "2026-01-02T00:00:00Z", ""),
    ];
    source.offer(
        "resourcelist",
        "/resourcelist.xml",
        "urlset",
        "at=\"2026-01-03T00:00:00Z\"",
        &list.concat(),
    );
    let listed = [
        entry(&source, "/d/a", "2025-12-01T00:00:00Z", "path=\"/a\""),
        entry(&source, "/d/b", "2025-12-01T00:00:00Z", "path=\"/b\""),
    ];
    let mut zip = Zip::new();
    zip.add("a", b"packed").add("b", b"old");
    zip.add("manifest.xml", manifest("resourcedump-manifest", &listed.concat()).as_bytes());
    source.server.body("/one.zip", zip.finish());
    source.dump(&["/one.zip"]);
    source.server.body("/d/a", "asked for");
    source.server.body("/d/b", "new");
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Always;
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(
        (copy.read("a").as_deref(), copy.read("b").as_deref()),
        (Some("packed"), Some("new"))
    );
}
