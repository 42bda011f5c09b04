//! Resources are extracted from packages, safely and only if that is cheaper.

use crate::copy::{Copy, files};
use crate::dump_source::{DumpSource, manifest, packages, resources, stopped_within};
use crate::rs01_source::base64_of_hex;
use abreast_destination::{Dumps, Filter, Mode, NQuadsOptions, SinkOptions, Tolerance};
use abreast_testkit::digest::sha256_hex;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::Answer;
use abreast_testkit::zip::Zip;
use std::sync::Mutex;

#[test]
fn many_resources_come_from_packages_few_from_requests() {
    let mut source = DumpSource::new();
    let all = resources(100);
    source.serve(&all);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all[..50], false));
    source.server.body("/two.zip", source.package(&all[50..], true));
    source.dump(&["/one.zip", "/two.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, files(copy.folder()).len()),
        (0, 100, 100),
        "{:?}",
        ran.reported
    );
    assert_eq!(copy.read("4/0099.txt").as_deref(), Some("resource 99"));
    assert!(source.server.take_log().iter().all(|path| !path.starts_with("/d/")));
    assert_eq!(packages(&copy), 0);
    // A few new ones.
    let more = resources(105);
    source.serve(&more);
    source.list(&more);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 5));
    assert!(!source.server.take_log().contains(&"/dump.xml".to_owned()));
}

#[test]
fn the_user_decides_about_packages() {
    let mut source = DumpSource::new();
    let all = resources(40);
    source.serve(&all);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Never;
    assert_eq!(copy.run().created, 40);
    assert!(!source.server.take_log().contains(&"/one.zip".to_owned()));
    let few = resources(3);
    source.list(&few);
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Always;
    assert_eq!(copy.run().created, 3);
    assert!(source.server.take_log().contains(&"/one.zip".to_owned()));
}

#[test]
fn a_member_of_another_version_is_requested_singly() {
    let mut source = DumpSource::new();
    let mut all = resources(40);
    source.server.body("/one.zip", source.package(&all, false));
    all[7].1 = "changed since".to_owned();
    source.serve(&all);
    source.list(&all);
    source.dump(&["/one.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{:?}", ran.reported);
    assert!(ran.has("dump.version"));
    assert_eq!(copy.read("2/0007.txt").as_deref(), Some("changed since"));
    let asked: Vec<_> =
        source.server.take_log().into_iter().filter(|path| path.starts_with("/d/")).collect();
    assert_eq!(asked, ["/d/2/0007.txt"]);
}

/// Makes a package that is not right.
type Spoil = fn(&DumpSource, &[(String, String)]) -> Vec<u8>;

#[test]
fn an_unusable_package_is_replaced_by_single_requests() {
    let all = resources(40);
    let spoil: [(&str, Spoil); 5] = [
        ("dump.manifest", |_, _| Zip::new().add("resources/0", b"hello").finish()),
        ("dump.zip", |source, all| {
            let whole = source.package(all, false);
            whole[..whole.len() - 40].to_vec()
        }),
        ("dump.overlap", |_, _| Zip::overlapping(100, &[0; 10_000])),
        ("dump.duplicate", |_, _| Zip::new().add("a", b"1").add("a", b"2").finish()),
        ("dump.manifest", |_, _| {
            Zip::new().add("manifest.xml", manifest("resourcelist", "").as_bytes()).finish()
        }),
    ];
    for (code, package) in spoil {
        let mut source = DumpSource::new();
        source.serve(&all);
        source.list(&all);
        source.server.body("/one.zip", package(&source, &all));
        source.dump(&["/one.zip"]);
        let mut copy = Copy::of(source.url());
        copy.options.dumps = Dumps::Always;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{code} {:?}", ran.reported);
        assert!(ran.has(code), "{code} {:?}", ran.reported);
        assert_eq!(packages(&copy), 0);
    }
}

#[test]
fn packages_of_other_kinds_or_digests_are_reported() {
    let mut source = DumpSource::new();
    let all = resources(40);
    source.serve(&all);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all, false));
    for (attributes, code) in [
        ("type=\"application/x-xz\" length=\"1000\"", "dump.format"),
        ("type=\"application/warc\" length=\"1000\"", "dump.format"),
        ("hash=\"md5:00000000000000000000000000000000\" length=\"1000000\"", "fixity.mismatch"),
        ("length=\"10\"", "fixity.mismatch"),
    ] {
        source.dump_with(&["/one.zip"], |_, _| attributes.to_owned());
        let mut copy = Copy::of(source.url());
        copy.options.dumps = Dumps::Always;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{:?}", ran.reported);
        assert!(ran.has(code), "{code} {:?}", ran.reported);
    }
}

#[test]
fn a_package_is_the_one_that_its_server_states() {
    let mut source = DumpSource::new();
    let all = resources(40);
    source.serve(&all);
    source.list(&all);
    let package = source.package(&all, false);
    let right = format!("sha-256=:{}:", base64_of_hex(&sha256_hex(&package)));
    let wrong = format!("sha-256=:{}:", base64_of_hex(&sha256_hex("another")));
    for (name, value, code) in [
        ("repr-digest", format!("crc32c=:AAAAAA==:, {right}"), None),
        ("content-digest", right, None),
        ("repr-digest", wrong.clone(), Some("fixity.mismatch")),
        ("content-digest", wrong.clone(), Some("fixity.mismatch")),
        ("repr-digest", wrong.replace(':', ""), Some("http.digest")),
        // Unknown or deprecated algorithms.
        ("repr-digest", "md5=:AAAAAAAAAAAAAAAAAAAAAA==:".to_owned(), None),
    ] {
        source.server.put("/one.zip", Answer::ok(&*package).header(name, &value));
        source.dump_with(&["/one.zip"], |_, _| String::new());
        let mut copy = Copy::of(source.url());
        copy.options.dumps = Dumps::Always;
        source.server.take_log();
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{value} {:?}", ran.reported);
        for known in ["fixity.mismatch", "http.digest"] {
            assert_eq!(ran.has(known), code == Some(known), "{value} {:?}", ran.reported);
        }
        let is_single = source.server.take_log().iter().any(|path| path.starts_with("/d/"));
        assert_eq!(is_single, code == Some("fixity.mismatch"), "{value}");
    }
}

#[test]
fn unusable_members_are_fetched_where_a_list_has_them() {
    let mut source = DumpSource::new();
    let all: Vec<_> =
        ["a", "b", "c", "d", "e"].map(|name| (format!("/d/{name}"), format!("the {name}"))).into();
    source.serve(&all);
    source.list(&all);
    let entries: String = all
        .iter()
        .zip(["/encrypted", "/link", "/lost", "/../up", "/good"])
        .map(|((path, body), member)| source.entry(path, body, &format!("path=\"{member}\"")))
        .collect();
    let mut zip = Zip::new();
    zip.encrypted("encrypted", b"the a")
        .symlink("link", "/etc/passwd")
        .add("good", b"the e")
        .add("stray", b"x");
    zip.deflated("manifest.xml", manifest("resourcedump-manifest", &entries).as_bytes());
    source.server.body("/one.zip", zip.finish());
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Always;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 5), "{:?}", ran.reported);
    for code in ["dump.encrypted", "dump.symlink", "dump.missing", "path.escape", "dump.stray"] {
        assert!(ran.has(code), "{code} {:?}", ran.reported);
    }
    let mut asked = source.server.take_log();
    asked.retain(|path| path.starts_with("/d/"));
    asked.sort();
    assert_eq!(asked, ["/d/a", "/d/b", "/d/c", "/d/d"]);
}

#[test]
fn a_source_that_has_nothing_but_a_dump_is_copied_from_it() {
    let mut source = DumpSource::new();
    let all = resources(10);
    source.server.body("/one.zip", source.package(&all[..6], false));
    source.server.body("/two.zip", source.package(&all[6..], false));
    source.dump(&["/one.zip", "/two.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().mode, ran.summary().created),
        (0, Mode::Baseline, 10),
        "{:?}",
        ran.reported
    );
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Unchanged));
    assert_eq!(source.server.take_log(), ["/dump.xml"]);
    // One fewer, one different.
    let mut fewer = all[..9].to_vec();
    fewer[0].1 = "new".to_owned();
    source.server.body("/three.zip", source.package(&fewer, false));
    source.dump(&["/three.zip"]);
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().updated, ran.summary().deleted),
        (0, 1, 1),
        "{:?}",
        ran.reported
    );
    assert_eq!((files(copy.folder()).len(), copy.read("0/0000.txt").as_deref()), (9, Some("new")));
}

#[test]
fn without_a_list_newly_included_resources_come_from_the_dump() {
    let mut source = DumpSource::new();
    source.server.body("/one.zip", source.package(&resources(10), false));
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.filter = Filter::new(["- /d/3/0003.txt", "- 0004.txt"]).unwrap();
    assert_eq!((copy.try_run().exit(), files(copy.folder()).len()), (0, 8));
    assert!(copy.read("d/3/0008.txt").is_some());
    copy.options.filter = Filter::default();
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, files(copy.folder()).len()),
        (0, 2, 10),
        "{:?}",
        ran.reported
    );
    assert_eq!(copy.run().mode, Mode::Unchanged);
}

#[test]
fn bad_entries_of_a_manifest_are_requested_and_the_rest_copied() {
    let mut source = DumpSource::new();
    let entries = [
        source.entry("/d/e1", "x", "path=\"../../escape\""),
        source.entry("/d/e2", "x", "path=\"/tmp/abreast-escape\""),
        source.entry("/d/lost", "x", "path=\"/resources/lost\""),
        source.entry("/d/ok", "hello", "path=\"/resources/ok\""),
    ];
    let mut zip = Zip::new();
    zip.deflated("manifest.xml", manifest("resourcedump-manifest", &entries.concat()).as_bytes());
    zip.add("../../escape", b"x")
        .add("/tmp/abreast-escape", b"x")
        .add("resources/ok", b"hello")
        .add("stray", b"x");
    source.server.body("/one.zip", zip.finish());
    source.dump(&["/one.zip"]);
    // The other two are not there.
    source.server.body("/d/e1", "x");
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (3, 2), "{:?}", ran.reported);
    assert_eq!(
        (copy.read("ok").as_deref(), copy.read("e1").as_deref()),
        (Some("hello"), Some("x"))
    );
    assert_eq!(
        (files(copy.folder()).len(), ran.count("http.status")),
        (2, 2),
        "{:?}",
        ran.reported
    );
    for (code, path) in
        [("path.escape", "/d/e1"), ("path.escape", "/d/e2"), ("dump.missing", "/d/lost")]
    {
        assert!(
            ran.codes_and_uris().contains(&(code.to_owned(), source.server.url(path))),
            "{code} {:?}",
            ran.reported
        );
    }
    assert!(ran.has("dump.stray"));
    assert!(!copy.options.folder.parent().unwrap().join("escape").exists());
}

#[test]
fn a_lone_package_that_cannot_be_read_changes_nothing() {
    let mut source = DumpSource::new();
    let all = resources(10);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let copy = Copy::of(source.url());
    assert_eq!(copy.try_run().exit(), 0);
    for (package, exit, code) in [
        (Zip::new().add("resources/0", b"x").finish(), 4, "dump.manifest"),
        (Zip::overlapping(1_000, &vec![0; 100_000]), 8, "dump.overlap"),
        (Zip::new().deflated("manifest.xml", &vec![b' '; 20 << 20]).finish(), 8, "dump.ratio"),
        (
            Zip::new().add("manifest.xml", manifest("changedump-manifest", "").as_bytes()).finish(),
            4,
            "dump.manifest",
        ),
        (
            Zip::new()
                .add("manifest.xml", &manifest("resourcedump-manifest", "").as_bytes()[..200])
                .finish(),
            4,
            "xml.eof",
        ),
    ] {
        source.server.body("/one.zip", package);
        source.dump(&["/one.zip"]);
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.code()), (exit, code), "{:?}", ran.reported);
        assert_eq!(files(copy.folder()).len(), 10);
        assert_eq!(packages(&copy), 0, "{code}");
    }
}

#[test]
fn skipped_entries_of_a_manifest_hold_deletions_back() {
    let mut source = DumpSource::new();
    let all = resources(3);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    assert_eq!(copy.try_run().exit(), 0);
    // The second entry is still there, and cannot be parsed; the third is missing.
    let broken = source
        .entry(&all[1].0, &all[1].1, "path=\"/1\"")
        .replace("2025-06-01T00:00:00Z", "yesterday");
    let entries = source.entry(&all[0].0, &all[0].1, "path=\"/0\"") + &broken;
    let mut zip = Zip::new();
    zip.add("0", all[0].1.as_bytes()).add("1", all[1].1.as_bytes());
    zip.add("manifest.xml", manifest("resourcedump-manifest", &entries).as_bytes());
    source.server.body("/two.zip", zip.finish());
    source.dump(&["/two.zip"]);
    assert_eq!(copy.try_run().code(), "rs.datetime");
    copy.options.tolerance = Tolerance::Lenient;
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), ran.summary().skipped, ran.summary().deleted),
            (3, 1, 0),
            "{:?}",
            ran.reported
        );
        assert!(ran.has("rs.entry"));
        assert_eq!(files(copy.folder()).len(), 3);
    }
}

#[test]
fn members_of_rdf_have_the_type_that_the_manifest_states() {
    for (has_type, requests) in [(true, 0), (false, 40)] {
        let mut source = DumpSource::new();
        let document = |number: usize, source: &DumpSource| {
            let path = format!("/id/{number}");
            let uri = source.server.url(&path);
            (path, format!("<{uri}> <http://ns.example/text> \"{number}\" .\n"))
        };
        let all: Vec<_> = (0..40).map(|number| document(number, &source)).collect();
        source.list(&all);
        let mut manifest = source.manifest_of(&all);
        if has_type {
            manifest = manifest.replace("path=", "type=\"application/n-triples\" path=");
        }
        let mut zip = Zip::new();
        for (number, (path, text)) in all.iter().enumerate() {
            zip.add(&format!("resources/{number}"), text.as_bytes());
            let answer = Answer::ok(text.as_str());
            source.server.put(path, answer.header("content-type", "application/n-triples"));
        }
        zip.add("manifest.xml", manifest.as_bytes());
        source.server.body("/one.zip", zip.finish());
        source.dump(&["/one.zip"]);
        let mut copy = Copy::of(source.url());
        copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
        copy.options.dumps = Dumps::Always;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{:?}", ran.reported);
        let log = source.server.take_log();
        assert!(log.contains(&"/one.zip".to_owned()));
        let singly = log.iter().filter(|path| path.starts_with("/id/")).count();
        assert_eq!(singly, requests, "with a type: {has_type}");
    }
}

#[test]
fn a_run_that_too_many_failures_end_states_why() {
    let mut source = DumpSource::new();
    let all = resources(300);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    for dumps in [Dumps::Always, Dumps::Never] {
        for (path, _) in &all {
            source.server.body(path, "other");
        }
        let mut copy = Copy::of(source.url());
        copy.options.dumps = dumps;
        copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.count("limit.failures")), (8, 1), "{:?}", ran.codes);
    }
}

#[test]
fn a_stopped_run_goes_on_with_the_package_it_has() {
    let mut source = DumpSource::new();
    let all = resources(600);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let copy = stopped_within((100, 600), || Copy::of(source.url()), |copy| copy);
    let stored = files(copy.folder()).len();
    assert!((100..600).contains(&stored), "{stored}");
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), files(copy.folder()).len()), (0, 600), "{:?}", ran.reported);
    assert!(!source.server.take_log().contains(&"/one.zip".to_owned()), "it was here whole");
    assert_eq!(packages(&copy), 0);
}

#[test]
fn a_package_whose_transfer_broke_off_is_continued() {
    let mut source = DumpSource::new();
    let all = resources(400);
    let package = source.package(&all, false);
    source.list(&all);
    source.server.body("/one.zip", package.clone());
    source.dump(&["/one.zip"]);
    let half = package.len() / 2;
    let mut cut =
        format!("HTTP/1.1 200 OK\r\netag: \"v1\"\r\ncontent-length: {}\r\n\r\n", package.len())
            .into_bytes();
    cut.extend_from_slice(&package[..half]);
    source.server.put("/one.zip", Answer::ok(package.clone()).header("etag", "\"v1\""));
    let served = Mutex::new(0);
    source.server.handler(move |path, _| {
        let mut served = served.lock().unwrap();
        *served += usize::from(path == "/one.zip");
        (path == "/one.zip" && *served == 1).then(|| Answer::raw(cut.clone()))
    });
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 400), "{:?}", ran.reported);
    assert!(
        ran.summary().bytes < (package.len() * 3 / 2 + 100_000) as u64,
        "{}",
        ran.summary().bytes
    );
}

/// Seconds since 1970 of a file's last modification.
fn modified(copy: &Copy, path: &str) -> u64 {
    let time = std::fs::metadata(copy.options.folder.join(path)).unwrap().modified().unwrap();
    time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_file_has_the_time_of_the_resource_however_it_came() {
    // Last modified at 2001-09-09T01:46:40Z, changed at `BEGIN` + 5 s; lists of changes are for
    // clients of both versions.
    let (seconds, date) = (1_000_000_000, "Sun, 09 Sep 2001 01:46:40 GMT");
    let changed = "2026-01-01T00:00:05Z";
    let all = resources(40);
    let entry = |source: &DumpSource, number: usize, lastmod: &str, more: &str| {
        let (path, body) = &all[number];
        source.entry(path, body, more).replace("2025-06-01T00:00:00Z", lastmod)
    };
    let change = |more: &str| format!("change=\"created\" datetime=\"{changed}\" {more}");
    let package =
        |source: &DumpSource, manifest: &str, lastmod: &str, more: &dyn Fn(&str) -> String| {
            let mut zip = Zip::new();
            zip.modified(seconds);
            let mut entries = String::new();
            for (number, (_, body)) in all.iter().enumerate() {
                zip.add(&number.to_string(), body.as_bytes());
                entries += &entry(source, number, lastmod, &more(&format!("path=\"/{number}\"")));
            }
            let head = format!("capability=\"{manifest}\" at=\"{BEGIN}\"");
            zip.modified(0).add("manifest.xml", document("urlset", &head, &entries).as_bytes());
            zip.finish()
        };
    for way in ["requests", "changes", "change dump", "change dump only", "dump", "dump only"] {
        let mut source = DumpSource::new();
        for (path, body) in &all {
            source.server.put(path, Answer::ok(body.as_str()).header("last-modified", date));
        }
        let listed: String = (0..all.len())
            .map(|number| entry(&source, number, "2001-09-09T01:46:40Z", ""))
            .collect();
        let changes: String =
            (0..all.len()).map(|number| entry(&source, number, changed, &change(""))).collect();
        let span = format!("from=\"{BEGIN}\"");
        let is_change = way.starts_with("change");
        let (list, dumped) = if is_change { ("", "") } else { (&*listed, "/all.zip") };
        if !way.ends_with("only") {
            source.offer(
                "resourcelist",
                "/resourcelist.xml",
                "urlset",
                &format!("at=\"{BEGIN}\""),
                list,
            );
            source.offer("changelist", "/changelist.xml", "urlset", &span, "");
        }
        if way.starts_with("dump") || way == "change dump only" {
            let body = match dumped {
                "" => Zip::new()
                    .add("manifest.xml", manifest("resourcedump-manifest", "").as_bytes())
                    .finish(),
                _ => package(
                    &source,
                    "resourcedump-manifest",
                    "2001-09-09T01:46:40Z",
                    &str::to_owned,
                ),
            };
            source.server.body("/all.zip", body);
            source.dump(&["/all.zip"]);
        }
        if way.starts_with("change dump") {
            source
                .server
                .body("/changes.zip", package(&source, "changedump-manifest", changed, &change));
            let entry = format!("<url><loc>{}</loc></url>", source.server.url("/changes.zip"));
            source.offer("changedump", "/changedump.xml", "urlset", &span, &entry);
        }
        let mut copy = Copy::of(source.url());
        copy.options.base = Some(source.server.url("/d/"));
        copy.options.dumps = if way.contains("dump") { Dumps::Always } else { Dumps::Never };
        if is_change && !way.ends_with("only") {
            // A package of changes is used when changes are followed.
            assert_eq!(copy.try_run().exit(), 0);
            source.offer("changelist", "/changelist.xml", "urlset", &span, &changes);
        }
        source.server.take_log();
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{way} {:?}", ran.reported);
        let asked = source.server.take_log().iter().any(|path| path.starts_with("/d/"));
        assert_eq!(asked, !way.contains("dump"), "{way}");
        for (path, _) in &all {
            let path = path.trim_start_matches("/d/");
            assert_eq!(modified(&copy, path), u64::from(seconds.unsigned_abs()), "{way} {path}");
        }
    }
}
