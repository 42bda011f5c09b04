//! Resources are taken out of packages, safely and only when that is cheaper.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "tests may stop, and need not be fast"
)]

mod server;

use abreast_destination::{Dumps, Error, Event, Filter, Mode, Summary, SyncOptions, Tolerance, sync};
use server::zip::Zip;
use server::{Answer, BEGIN, Server, document, md5_hex};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A run, with code and URI of its errors and notices.
struct Ran {
    result: Result<Summary, Error>,
    told: Vec<(String, String)>,
}

impl Ran {
    fn summary(&self) -> &Summary {
        self.result.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", self.told))
    }

    fn exit(&self) -> u8 {
        self.result.as_ref().map_or_else(|error| error.exit_code().number(), |summary| summary.exit_code)
    }

    fn code(&self) -> &str {
        self.result.as_ref().map_or_else(Error::code, |_| "")
    }

    fn has(&self, code: &str) -> bool {
        self.told.iter().any(|(told, _)| told == code)
    }
}

struct Copy {
    _place: tempfile::TempDir,
    options: SyncOptions,
}

impl Copy {
    fn of(url: impl Into<String>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(url, place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 2;
        options.ignore_robots = true;
        Self { _place: place, options }
    }

    fn run(&self) -> Ran {
        self.run_until(&AtomicBool::new(false), usize::MAX)
    }

    /// Stops after that many items.
    fn run_until(&self, cancel: &AtomicBool, items: usize) -> Ran {
        let told = Mutex::new(Vec::new());
        let seen = Mutex::new(0);
        let observer = |event: &Event<'_>| match event {
            Event::Error(problem) | Event::Notice(problem) => {
                told.lock().unwrap().push((problem.code.to_owned(), problem.uri.to_owned()));
            }
            Event::Item(_) => {
                let mut seen = seen.lock().unwrap();
                *seen += 1;
                cancel.fetch_or(*seen >= items, Ordering::Relaxed);
            }
            _ => {}
        };
        let result = sync(&self.options, &observer, cancel);
        Ran { result, told: told.into_inner().unwrap() }
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.options.folder.join(path)).ok()
    }

    fn packages(&self) -> usize {
        std::fs::read_dir(self.options.folder.join(".abreast/packages")).map_or(0, Iterator::count)
    }
}

/// A Source made of documents that a test writes.
struct Source {
    server: Server,
    offered: Vec<(&'static str, &'static str)>,
    /// Links at the top of the Capability List.
    links: String,
}

impl Source {
    fn new() -> Self {
        Self { server: Server::start(), offered: Vec::new(), links: String::new() }
    }

    fn url(&self) -> String {
        self.server.url("/caps.xml")
    }

    /// Offers a document in the Capability List.
    fn offer(&mut self, capability: &'static str, path: &'static str, root: &str, attributes: &str, entries: &str) {
        let attributes = format!("capability=\"{capability}\" {attributes}");
        self.server.body(path, document(root, &attributes, entries));
        self.offered.retain(|(_, offered)| *offered != path);
        self.offered.push((capability, path));
        let entries: String = self
            .offered
            .iter()
            .map(|(capability, path)| {
                format!("<url><loc>{}</loc><rs:md capability=\"{capability}\"/></url>", self.server.url(path))
            })
            .collect();
        let entries = format!("{}{entries}", self.links);
        self.server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &entries));
    }

    fn entry(&self, path: &str, body: &str, more: &str) -> String {
        format!(
            "<url><loc>{}</loc><lastmod>2025-06-01T00:00:00Z</lastmod><rs:md hash=\"md5:{}\" length=\"{}\" {more}/></url>\n",
            self.server.url(path),
            md5_hex(body.as_bytes()),
            body.len()
        )
    }

    fn list(&mut self, resources: &[(String, String)]) {
        let entries: String = resources.iter().map(|(path, body)| self.entry(path, body, "")).collect();
        self.offer("resourcelist", "/resourcelist.xml", "urlset", &format!("at=\"{BEGIN}\""), &entries);
    }

    /// A package with its manifest.
    fn package(&self, resources: &[(String, String)], deflate: bool) -> Vec<u8> {
        let mut zip = Zip::new();
        let mut entries = String::new();
        for (number, (path, body)) in resources.iter().enumerate() {
            let name = format!("resources/{number}");
            if deflate {
                zip.deflated(&name, body.as_bytes())
            } else {
                zip.add(&name, body.as_bytes())
            };
            entries.push_str(&self.entry(path, body, &format!("path=\"/{name}\"")));
        }
        zip.add("manifest.xml", manifest("resourcedump-manifest", &entries).as_bytes());
        zip.finish()
    }

    fn dump(&mut self, packages: &[&'static str]) {
        self.dump_with(packages, |source, path| {
            let package = source.server.page(path);
            format!("type=\"application/zip\" hash=\"md5:{}\" length=\"{}\"", md5_hex(&package), package.len())
        });
    }

    fn dump_with(&mut self, packages: &[&'static str], attributes: impl Fn(&Self, &str) -> String) {
        let entries: String = packages
            .iter()
            .map(|path| format!("<url><loc>{}</loc><rs:md {}/></url>", self.server.url(path), attributes(self, path)))
            .collect();
        self.offer("resourcedump", "/dump.xml", "urlset", &format!("at=\"{BEGIN}\""), &entries);
    }

    fn serve(&self, resources: &[(String, String)]) {
        for (path, body) in resources {
            self.server.body(path, body.as_str());
        }
    }
}

fn manifest(capability: &str, entries: &str) -> String {
    document("urlset", &format!("capability=\"{capability}\" at=\"{BEGIN}\""), entries)
}

fn resources(count: usize) -> Vec<(String, String)> {
    (0..count).map(|number| (format!("/d/{}/{number:04}.txt", number % 5), format!("resource {number}"))).collect()
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| {
            let path = entry.path();
            if path.ends_with(".abreast") {
                0
            } else if path.is_dir() {
                files(&path)
            } else {
                1
            }
        })
        .sum()
}

#[test]
fn many_resources_are_taken_out_of_packages_and_few_are_asked_for() {
    let mut source = Source::new();
    let all = resources(100);
    source.serve(&all);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all[..50], false));
    source.server.body("/two.zip", source.package(&all[50..], true));
    source.dump(&["/one.zip", "/two.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created, files(&copy.options.folder)), (0, 100, 100), "{:?}", ran.told);
    assert_eq!(copy.read("4/0099.txt").as_deref(), Some("resource 99"));
    assert!(source.server.take_log().iter().all(|path| !path.starts_with("/d/")));
    assert_eq!(copy.packages(), 0);
    // A few new ones.
    let more = resources(105);
    source.serve(&more);
    source.list(&more);
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 5));
    assert!(!source.server.take_log().contains(&"/dump.xml".to_owned()));
}

#[test]
fn the_user_decides_about_packages() {
    let mut source = Source::new();
    let all = resources(40);
    source.serve(&all);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Never;
    assert_eq!(copy.run().summary().created, 40);
    assert!(!source.server.take_log().contains(&"/one.zip".to_owned()));
    let few = resources(3);
    source.list(&few);
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Always;
    assert_eq!(copy.run().summary().created, 3);
    assert!(source.server.take_log().contains(&"/one.zip".to_owned()));
}

#[test]
fn what_a_package_has_in_another_version_is_asked_for() {
    let mut source = Source::new();
    let mut all = resources(40);
    source.server.body("/one.zip", source.package(&all, false));
    all[7].1 = "changed since".to_owned();
    source.serve(&all);
    source.list(&all);
    source.dump(&["/one.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{:?}", ran.told);
    assert!(ran.has("dump.version"));
    assert_eq!(copy.read("2/0007.txt").as_deref(), Some("changed since"));
    let asked: Vec<_> = source.server.take_log().into_iter().filter(|path| path.starts_with("/d/")).collect();
    assert_eq!(asked, ["/d/2/0007.txt"]);
}

/// Makes a package that is not right.
type Spoil = fn(&Source, &[(String, String)]) -> Vec<u8>;

#[test]
fn a_package_that_cannot_be_used_costs_nothing_but_itself() {
    let all = resources(40);
    let spoil: [(&str, Spoil); 5] = [
        ("dump.manifest", |_, _| Zip::new().add("resources/0", b"hello").finish()),
        ("dump.zip", |source, all| {
            let whole = source.package(all, false);
            whole[..whole.len() - 40].to_vec()
        }),
        ("dump.overlap", |_, _| Zip::overlapping(100, &[0; 10_000])),
        ("dump.duplicate", |_, _| Zip::new().add("a", b"1").add("a", b"2").finish()),
        ("dump.manifest", |_, _| Zip::new().add("manifest.xml", manifest("resourcelist", "").as_bytes()).finish()),
    ];
    for (code, package) in spoil {
        let mut source = Source::new();
        source.serve(&all);
        source.list(&all);
        source.server.body("/one.zip", package(&source, &all));
        source.dump(&["/one.zip"]);
        let mut copy = Copy::of(source.url());
        copy.options.dumps = Dumps::Always;
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{code} {:?}", ran.told);
        assert!(ran.has(code), "{code} {:?}", ran.told);
        assert_eq!(copy.packages(), 0);
    }
}

#[test]
fn packages_of_other_kinds_and_other_digests_are_told() {
    let mut source = Source::new();
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
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{:?}", ran.told);
        assert!(ran.has(code), "{code} {:?}", ran.told);
    }
}

#[test]
fn members_that_cannot_be_used_are_asked_for_where_a_list_has_them() {
    let mut source = Source::new();
    let all: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| (format!("/d/{name}"), format!("the {name}"))).into();
    source.serve(&all);
    source.list(&all);
    let entries: String = all
        .iter()
        .zip(["/encrypted", "/link", "/lost", "/../up", "/good"])
        .map(|((path, body), member)| source.entry(path, body, &format!("path=\"{member}\"")))
        .collect();
    let mut zip = Zip::new();
    zip.encrypted("encrypted", b"the a").symlink("link", "/etc/passwd").add("good", b"the e").add("stray", b"x");
    zip.deflated("manifest.xml", manifest("resourcedump-manifest", &entries).as_bytes());
    source.server.body("/one.zip", zip.finish());
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.dumps = Dumps::Always;
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 5), "{:?}", ran.told);
    for code in ["dump.encrypted", "dump.symlink", "dump.missing", "path.escape", "dump.stray"] {
        assert!(ran.has(code), "{code} {:?}", ran.told);
    }
    let mut asked = source.server.take_log();
    asked.retain(|path| path.starts_with("/d/"));
    asked.sort();
    assert_eq!(asked, ["/d/a", "/d/b", "/d/c", "/d/d"]);
}

#[test]
fn a_source_that_has_nothing_but_a_dump_is_copied_from_it() {
    let mut source = Source::new();
    let all = resources(10);
    source.server.body("/one.zip", source.package(&all[..6], false));
    source.server.body("/two.zip", source.package(&all[6..], false));
    source.dump(&["/one.zip", "/two.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode, ran.summary().created), (0, Mode::Baseline, 10), "{:?}", ran.told);
    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Unchanged));
    assert_eq!(source.server.take_log(), ["/dump.xml"]);
    // One fewer, one different.
    let mut fewer = all[..9].to_vec();
    fewer[0].1 = "new".to_owned();
    source.server.body("/three.zip", source.package(&fewer, false));
    source.dump(&["/three.zip"]);
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().updated, ran.summary().deleted), (0, 1, 1), "{:?}", ran.told);
    assert_eq!((files(&copy.options.folder), copy.read("0/0000.txt").as_deref()), (9, Some("new")));
}

#[test]
fn newly_included_resources_come_out_of_the_dump_where_there_is_no_list() {
    let mut source = Source::new();
    source.server.body("/one.zip", source.package(&resources(10), false));
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.filter = Filter::new(["- /d/3/0003.txt", "- 0004.txt"]).unwrap();
    assert_eq!((copy.run().exit(), files(&copy.options.folder)), (0, 8));
    assert!(copy.read("d/3/0008.txt").is_some());
    copy.options.filter = Filter::default();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created, files(&copy.options.folder)), (0, 2, 10), "{:?}", ran.told);
    assert_eq!(copy.run().summary().mode, Mode::Unchanged);
}

#[test]
fn where_the_manifest_is_the_list_its_bad_entries_are_refused_and_the_rest_is_kept() {
    let mut source = Source::new();
    let entries = [
        source.entry("/d/e1", "x", "path=\"../../escape\""),
        source.entry("/d/e2", "x", "path=\"/tmp/abreast-escape\""),
        source.entry("/d/lost", "x", "path=\"/resources/lost\""),
        source.entry("/d/ok", "hello", "path=\"/resources/ok\""),
    ];
    let mut zip = Zip::new();
    zip.deflated("manifest.xml", manifest("resourcedump-manifest", &entries.concat()).as_bytes());
    zip.add("../../escape", b"x").add("/tmp/abreast-escape", b"x").add("resources/ok", b"hello").add("stray", b"x");
    source.server.body("/one.zip", zip.finish());
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created, ran.summary().skipped), (3, 1, 3), "{:?}", ran.told);
    assert_eq!((copy.read("ok").as_deref(), files(&copy.options.folder)), (Some("hello"), 1));
    for (code, path) in [("path.escape", "/d/e1"), ("path.escape", "/d/e2"), ("dump.missing", "/d/lost")] {
        assert!(ran.told.contains(&(code.to_owned(), source.server.url(path))), "{code} {:?}", ran.told);
    }
    assert!(ran.has("dump.stray"));
    assert!(!copy.options.folder.parent().unwrap().join("escape").exists());
}

#[test]
fn a_lone_package_that_cannot_be_read_changes_nothing() {
    let mut source = Source::new();
    let all = resources(10);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let copy = Copy::of(source.url());
    assert_eq!(copy.run().exit(), 0);
    for (package, exit, code) in [
        (Zip::new().add("resources/0", b"x").finish(), 4, "dump.manifest"),
        (Zip::overlapping(1_000, &vec![0; 100_000]), 8, "dump.overlap"),
        (Zip::new().deflated("manifest.xml", &vec![b' '; 20 << 20]).finish(), 8, "dump.ratio"),
        (Zip::new().add("manifest.xml", manifest("changedump-manifest", "").as_bytes()).finish(), 4, "dump.manifest"),
        (
            Zip::new().add("manifest.xml", &manifest("resourcedump-manifest", "").as_bytes()[..200]).finish(),
            4,
            "xml.eof",
        ),
    ] {
        source.server.body("/one.zip", package);
        source.dump(&["/one.zip"]);
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.code()), (exit, code), "{:?}", ran.told);
        assert_eq!(files(&copy.options.folder), 10);
        assert_eq!(copy.packages(), 0, "{code}");
    }
}

#[test]
fn entries_of_a_manifest_left_out_on_demand_hold_deletions_back() {
    let mut source = Source::new();
    let all = resources(3);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let mut copy = Copy::of(source.url());
    assert_eq!(copy.run().exit(), 0);
    // The second is there still, and cannot be understood; the third is not named.
    let broken = source.entry(&all[1].0, &all[1].1, "path=\"/1\"").replace("2025-06-01T00:00:00Z", "yesterday");
    let entries = source.entry(&all[0].0, &all[0].1, "path=\"/0\"") + &broken;
    let mut zip = Zip::new();
    zip.add("0", all[0].1.as_bytes()).add("1", all[1].1.as_bytes());
    zip.add("manifest.xml", manifest("resourcedump-manifest", &entries).as_bytes());
    source.server.body("/two.zip", zip.finish());
    source.dump(&["/two.zip"]);
    assert_eq!(copy.run().code(), "rs.datetime");
    copy.options.tolerance = Tolerance::Lenient;
    for _ in 0..2 {
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.summary().skipped, ran.summary().deleted), (3, 1, 0), "{:?}", ran.told);
        assert!(ran.has("rs.entry"));
        assert_eq!(files(&copy.options.folder), 3);
    }
}

#[test]
fn a_stopped_run_goes_on_with_the_package_it_has() {
    let mut source = Source::new();
    let all = resources(600);
    source.list(&all);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let copy = Copy::of(source.url());
    let ran = copy.run_until(&AtomicBool::new(false), 100);
    assert_eq!(ran.exit(), 130, "{:?}", ran.told);
    let stored = files(&copy.options.folder);
    assert!((100..600).contains(&stored), "{stored}");
    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), files(&copy.options.folder)), (0, 600), "{:?}", ran.told);
    assert!(!source.server.take_log().contains(&"/one.zip".to_owned()), "it was here whole");
    assert_eq!(copy.packages(), 0);
}

#[test]
fn a_package_whose_transfer_broke_off_is_continued() {
    let mut source = Source::new();
    let all = resources(400);
    let package = source.package(&all, false);
    source.list(&all);
    source.server.body("/one.zip", package.clone());
    source.dump(&["/one.zip"]);
    let half = package.len() / 2;
    let mut cut = format!("HTTP/1.1 200 OK\r\netag: \"v1\"\r\ncontent-length: {}\r\n\r\n", package.len()).into_bytes();
    cut.extend_from_slice(&package[..half]);
    source.server.put("/one.zip", Answer::ok(package.clone()).header("etag", "\"v1\""));
    let served = Mutex::new(0);
    source.server.handler(move |path, _| {
        let mut served = served.lock().unwrap();
        *served += usize::from(path == "/one.zip");
        (path == "/one.zip" && *served == 1).then(|| Answer::raw(cut.clone()))
    });
    let copy = Copy::of(source.url());
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 400), "{:?}", ran.told);
    assert!(ran.summary().bytes < (package.len() * 3 / 2 + 100_000) as u64, "{}", ran.summary().bytes);
}

#[test]
fn changes_are_taken_out_of_change_dumps() {
    let mut source = Source::new();
    let all = resources(50);
    source.serve(&all);
    source.list(&all);
    let changes = |source: &mut Source, entries: &str| {
        source.offer("changelist", "/changelist.xml", "urlset", &format!("from=\"{BEGIN}\""), entries);
    };
    changes(&mut source, "");
    let copy = Copy::of(source.url());
    assert_eq!(copy.run().exit(), 0);
    let new: Vec<_> = all.iter().map(|(path, body)| (path.clone(), format!("{body} again"))).collect();
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
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode, ran.summary().updated), (0, Mode::Incremental, 50), "{:?}", ran.told);
    assert_eq!(copy.read("0/0000.txt").as_deref(), Some("resource 0 again"));
    assert!(source.server.take_log().iter().all(|path| !path.starts_with("/d/")));
}

#[test]
fn a_source_with_dumps_only_is_followed_by_its_change_dump() {
    let mut source = Source::new();
    let all = resources(5);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let publish = |source: &mut Source, entries: &str, zip: &mut Zip| {
        let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
        zip.add("manifest.xml", document("urlset", &attributes, entries).as_bytes());
        let package = zip.finish();
        // So that the document of the dump is another one when the package is.
        let hash = md5_hex(&package);
        source.server.body("/changes.zip", package);
        let entry = format!("<url><loc>{}</loc><rs:md hash=\"md5:{hash}\"/></url>", source.server.url("/changes.zip"));
        source.offer("changedump", "/changedump.xml", "urlset", &format!("from=\"{BEGIN}\""), &entry);
    };
    publish(&mut source, "", &mut Zip::new());
    let copy = Copy::of(source.url());
    assert_eq!(copy.run().exit(), 0);
    let entries = [
        source.entry("/d/0/0000.txt", "new", "change=\"updated\" datetime=\"2026-01-01T00:00:01Z\" path=\"/a\""),
        source.entry("/d/0/0000.txt", "newer", "change=\"updated\" datetime=\"2026-01-01T00:00:02Z\" path=\"/b\""),
        format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-01T00:00:03Z\"/></url>",
            source.server.url("/d/1/0001.txt")
        ),
    ];
    let mut zip = Zip::new();
    zip.add("a", b"new").add("b", b"newer");
    publish(&mut source, &entries.concat(), &mut zip);
    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Incremental), "{:?}", ran.told);
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1), "{:?}", ran.told);
    assert_eq!((copy.read("0/0000.txt").as_deref(), copy.read("1/0001.txt")), (Some("newer"), None));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Unchanged));
}

/// A Change Dump of one package: an update, a creation and a deletion after the Resource Dump of `resources(5)`.
fn offer_changes(source: &mut Source, attributes: &str) {
    let entries = [
        source.entry("/d/0/0000.txt", "newer", "change=\"updated\" datetime=\"2026-01-01T00:00:02Z\" path=\"/a\""),
        source.entry("/d/new.txt", "new", "change=\"created\" datetime=\"2026-01-01T00:00:02Z\" path=\"/b\""),
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
    let entry = format!("<url><loc>{}</loc></url>", source.server.url("/changes.zip"));
    source.offer("changedump", "/changedump.xml", "urlset", attributes, &entry);
}

fn assert_has_changes(copy: &Copy, ran: &Ran) {
    assert_eq!(ran.exit(), 0, "{:?}", ran.told);
    let read = |path| copy.read(path);
    assert_eq!((read("0/0000.txt").as_deref(), read("new.txt").as_deref()), (Some("newer"), Some("new")));
    assert_eq!((read("1/0001.txt"), read("2/0002.txt").as_deref()), (None, Some("resource 2")));
}

#[test]
fn the_first_run_from_dumps_reads_the_change_dump_too() {
    let mut source = Source::new();
    source.server.body("/one.zip", source.package(&resources(5), false));
    source.dump(&["/one.zip"]);
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.run();
    assert_has_changes(&copy, &ran);
    assert_eq!(ran.summary().mode, Mode::Baseline);
    // The next run is one request, and a comparison with the old dump takes nothing back.
    source.server.take_log();
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Unchanged));
    assert_eq!(source.server.take_log(), ["/changedump.xml"]);
    copy.options.baseline = true;
    let ran = copy.run();
    assert_has_changes(&copy, &ran);
}

#[test]
fn a_first_run_with_a_late_or_broken_change_dump_reports_it() {
    let mut source = Source::new();
    source.server.body("/one.zip", source.package(&resources(5), false));
    source.dump(&["/one.zip"]);
    offer_changes(&mut source, "from=\"2026-01-01T00:00:01Z\"");
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.run();
    assert!(ran.has("gap"), "{:?}", ran.told);
    assert_has_changes(&copy, &ran);
    assert_eq!(copy.run().summary().mode, Mode::Unchanged, "a gap is reported once");
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    source.server.body("/changes.zip", "no package");
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.has("dump.zip")), (3, true), "{:?}", ran.told);
    assert_eq!(files(&copy.options.folder), 5);
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let ran = copy.run();
    assert_has_changes(&copy, &ran);
}

#[test]
fn a_dump_that_ends_before_it_begins_is_read_when_lenient() {
    let mut source = Source::new();
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
    let package = format!("<url><loc>{}</loc><rs:md {early}/></url>", source.server.url("/one.zip"));
    source.offer("resourcedump", "/dump.xml", "urlset", early, &package);
    // Changes after the earlier of the two times, and before the later one.
    offer_changes(&mut source, &format!("from=\"{BEGIN}\""));
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/d/"));
    let ran = copy.run();
    assert_eq!((ran.exit(), ran.code()), (4, "time.interval"), "{:?}", ran.told);
    copy.options.tolerance = Tolerance::Lenient;
    let ran = copy.run();
    assert!(ran.has("time.interval"), "{:?}", ran.told);
    assert_has_changes(&copy, &ran);
}

#[test]
fn of_several_packages_of_changes_the_newest_version_counts_also_without_digests() {
    let mut source = Source::new();
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
        zip.add("a", body.as_bytes()).add("manifest.xml", document("urlset", &attributes, &entry).as_bytes());
        let path = format!("/changes{second}.zip");
        source.server.body(&path, zip.finish());
        packages.push_str(&format!("<url><loc>{}</loc></url>", source.server.url(&path)));
    }
    source.offer("changedump", "/changedump.xml", "urlset", &format!("from=\"{BEGIN}\""), &packages);
    let copy = Copy::of(source.url());
    assert_eq!((copy.run().exit(), copy.run().exit()), (0, 0));
    assert_eq!(copy.read("0/0000.txt").as_deref(), Some("newer"));
}

#[test]
fn a_resource_dump_takes_back_nothing_that_changed_after_it_was_made() {
    let mut source = Source::new();
    let all = resources(3);
    source.server.body("/one.zip", source.package(&all, false));
    source.dump(&["/one.zip"]);
    let changed = |source: &Source, path: &str, body: &str, more: &str| {
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
    assert_eq!((copy.run().exit(), copy.run().exit()), (0, 0));
    for baseline in [false, true, false] {
        assert_eq!((copy.read("0/0000.txt").as_deref(), copy.read("new.txt").as_deref()), (Some("newer"), Some("new")));
        copy.options.baseline = baseline;
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.summary().updated, ran.summary().deleted), (0, 0, 0), "{baseline} {:?}", ran.told);
    }
}

#[test]
fn without_a_digest_only_a_package_new_enough_is_believed() {
    let mut source = Source::new();
    let entry = |source: &Source, path: &str, modified: &str, more: &str| {
        format!("<url><loc>{}</loc><lastmod>{modified}</lastmod><rs:md {more}/></url>", source.server.url(path))
    };
    // The dump is of 2026-01-01; `a` was modified before, `b` after.
    let list = [entry(&source, "/d/a", "2025-12-01T00:00:00Z", ""), entry(&source, "/d/b", "2026-01-02T00:00:00Z", "")];
    source.offer("resourcelist", "/resourcelist.xml", "urlset", "at=\"2026-01-03T00:00:00Z\"", &list.concat());
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
    assert_eq!(copy.run().exit(), 0);
    assert_eq!((copy.read("a").as_deref(), copy.read("b").as_deref()), (Some("packed"), Some("new")));
}

/// A Source of which everything changed since it was copied, and that makes packages of changes when it is asked to.
struct Changed {
    source: Source,
    copy: Copy,
    /// What there is now.
    all: Vec<(String, String)>,
}

/// Where the package is: just before the first change.
const SINCE: &str = "/since?time=2026-01-01T00%3A00%3A00.999999Z";

impl Changed {
    fn new(count: usize) -> Self {
        let mut source = Source::new();
        let all = resources(count);
        source.serve(&all);
        source.list(&all);
        source.offer("changelist", "/changelist.xml", "urlset", &format!("from=\"{BEGIN}\""), "");
        let copy = Copy::of(source.url());
        assert_eq!(copy.run().exit(), 0);
        let again = |(path, body): &(String, String)| (path.clone(), format!("{body} again"));
        let all: Vec<_> = all.iter().map(again).collect();
        source.serve(&all);
        let link = source.server.url("/since");
        source.links = format!("<rs:ln rel=\"urn:abreast:rel:changes-since\" href=\"{link}\"/>");
        let listed: String = all.iter().enumerate().map(|(number, _)| Self::entry(&source, &all, number, "")).collect();
        source.offer("changelist", "/changelist.xml", "urlset", &format!("from=\"{BEGIN}\""), &listed);
        source.server.take_log();
        Self { source, copy, all }
    }

    fn entry(source: &Source, all: &[(String, String)], number: usize, more: &str) -> String {
        let (path, body) = &all[number];
        let change =
            format!("change=\"updated\" datetime=\"2026-01-01T00:{:02}:{:02}Z\" {more}", number / 60, number % 60 + 1);
        source.entry(path, body, &change)
    }

    /// The package, with `member` in the place of the first one's bytes.
    fn package(&self, member: &str) -> Vec<u8> {
        let (mut manifested, mut zip) = (String::new(), Zip::new());
        for (number, (_, body)) in self.all.iter().enumerate() {
            manifested.push_str(&Self::entry(&self.source, &self.all, number, &format!("path=\"/{number}\"")));
            zip.add(&number.to_string(), if number == 0 { member.as_bytes() } else { body.as_bytes() });
        }
        let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
        zip.add("manifest.xml", document("urlset", &attributes, &manifested).as_bytes());
        zip.finish()
    }

    fn whole_package(&self) -> Vec<u8> {
        self.package(&self.all[0].1)
    }

    /// The same in a package that the Change Dump lists.
    fn offer_change_dump(&mut self) {
        self.source.server.body("/changes.zip", self.whole_package());
        let entry = format!("<url><loc>{}</loc></url>", self.source.server.url("/changes.zip"));
        self.source.offer("changedump", "/changedump.xml", "urlset", &format!("from=\"{BEGIN}\""), &entry);
    }

    /// How often the package was asked for, and how many resources by themselves.
    fn asked(&self) -> (usize, usize) {
        let log = self.source.server.take_log();
        let count = |start: &str| log.iter().filter(|path| path.starts_with(start)).count();
        assert_eq!(count("/since"), count(SINCE), "{log:?}");
        (count("/since"), count("/d/"))
    }

    fn assert_copied(&self, ran: &Ran) {
        assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Incremental), "{:?}", ran.told);
        for (path, body) in &self.all {
            assert_eq!(self.copy.read(path.strip_prefix("/d/").unwrap()).as_ref(), Some(body), "{path} {:?}", ran.told);
        }
        assert_eq!(self.copy.packages(), 0);
    }
}

#[test]
fn many_changes_are_asked_for_in_one_package_since_the_first() {
    let mut changed = Changed::new(60);
    changed.offer_change_dump();
    let package = changed.whole_package();
    // Far away, so that each request counts.
    changed.source.server.handler(move |path, _| {
        std::thread::sleep(Duration::from_millis(10));
        (path == SINCE).then(|| Answer::ok(package.clone()))
    });
    let ran = changed.copy.run();
    changed.assert_copied(&ran);
    assert_eq!(changed.source.server.take_log(), ["/changelist.xml", "/caps.xml", SINCE], "{:?}", ran.told);
    assert!(ran.told.is_empty(), "{:?}", ran.told);
}

#[test]
fn few_changes_are_asked_for_one_by_one_and_the_user_decides() {
    for (count, dumps, since) in
        [(31, Dumps::Auto, 0), (60, Dumps::Never, 0), (3, Dumps::Always, 1), (60, Dumps::Always, 1)]
    {
        let mut changed = Changed::new(count);
        changed.source.server.body(SINCE, changed.whole_package());
        changed.copy.options.dumps = dumps;
        let ran = changed.copy.run();
        changed.assert_copied(&ran);
        assert_eq!(changed.asked(), (since, if since == 0 { count } else { 0 }), "{count} {dumps:?}");
    }
}

#[test]
fn a_package_of_changes_that_cannot_be_had_is_told_once_and_done_without() {
    let large = vec![b'x'; 3 << 20];
    let answers = [
        ("http.status", Answer::status(404)),
        ("http.status", Answer::status(410)),
        ("http.status", Answer::status(413)),
        ("http.status", Answer::status(429).header("retry-after", "3600")),
        ("http.status", Answer::status(503)),
        ("http.status", Answer::status(503).header("retry-after", "60")),
        ("http.status", Answer::status(202)),
        ("dump.size", Answer::ok(large.clone())),
        ("dump.size", Answer::raw([b"HTTP/1.1 200 OK\r\n\r\n", large.as_slice()].concat())),
        ("dump.zip", Answer::ok("not a package")),
        ("dump.manifest", Answer::ok(Zip::new().add("../../escape", b"x").finish())),
    ];
    for (number, (code, answer)) in answers.into_iter().enumerate() {
        let mut changed = Changed::new(40);
        let has_change_dump = number % 2 == 0;
        if has_change_dump {
            changed.offer_change_dump();
        }
        changed.source.server.put(SINCE, answer);
        changed.copy.options.dumps = Dumps::Always;
        let ran = changed.copy.run();
        changed.assert_copied(&ran);
        assert_eq!(changed.asked(), (1, if has_change_dump { 0 } else { 40 }), "{number} {:?}", ran.told);
        let url = changed.source.server.url(SINCE);
        assert_eq!(ran.told, [(code.to_owned(), url)], "{number}");
    }
}

#[test]
fn what_the_package_of_changes_has_otherwise_is_asked_for() {
    let mut changed = Changed::new(40);
    changed.source.server.body(SINCE, changed.package("of another time"));
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.has("dump.version")), ((1, 1), true), "{:?}", ran.told);
}

#[test]
fn a_package_that_is_just_being_made_is_waited_for_once() {
    let mut changed = Changed::new(40);
    let package = changed.whole_package();
    let busy = Answer::status(503).header("retry-after", "1");
    let asked = Mutex::new(0);
    changed.source.server.handler(move |path, _| {
        let mut asked = asked.lock().unwrap();
        *asked += usize::from(path == SINCE);
        (path == SINCE).then(|| if *asked == 1 { busy.clone() } else { Answer::ok(package.clone()) })
    });
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.told.len()), ((2, 0), 0), "{:?}", ran.told);
}

#[test]
fn a_stopped_run_goes_on_with_a_package_of_what_is_left() {
    let mut changed = Changed::new(600);
    let package = changed.whole_package();
    changed.source.server.handler(move |path, _| path.starts_with("/since").then(|| Answer::ok(package.clone())));
    changed.copy.options.dumps = Dumps::Always;
    assert_eq!(changed.copy.run_until(&AtomicBool::new(false), 100).exit(), 130);
    assert_eq!(changed.asked(), (1, 0));
    let ran = changed.copy.run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.told);
    let log = changed.source.server.take_log();
    // Since the first that is not here yet.
    assert_eq!(log.iter().filter(|path| path.starts_with("/since")).count(), 1, "{log:?}");
    assert!(log.iter().all(|path| path != SINCE && !path.starts_with("/d/")), "{log:?}");
    assert_eq!(changed.copy.read("4/0599.txt").as_deref(), Some("resource 599 again"));
    assert_eq!(changed.copy.packages(), 0);
}

#[test]
fn an_address_of_changes_is_not_asked_when_it_is_not_the_sources_or_was_taken_back() {
    let mut changed = Changed::new(40);
    changed.source.links = "<rs:ln rel=\"urn:abreast:rel:changes-since\" href=\"http://127.0.0.2:9/since\"/>".into();
    changed.offer_change_dump();
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.told.len()), ((0, 0), 0), "{:?}", ran.told);

    let mut changed = Changed::new(40);
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.run();
    assert_eq!((changed.asked(), ran.told.len()), ((1, 40), 1), "{:?}", ran.told);
    changed.source.links.clear();
    let (path, body) = (changed.all[7].0.clone(), "once more");
    changed.source.server.body(&path, body);
    let entry = changed.source.entry(&path, body, "change=\"updated\" datetime=\"2026-01-01T00:59:00Z\"");
    let old = Changed::entry(&changed.source, &changed.all, 39, "");
    changed.source.offer("changelist", "/changelist.xml", "urlset", &format!("from=\"{BEGIN}\""), &(old + &entry));
    changed.all[7].1 = body.to_owned();
    let ran = changed.copy.run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.told.len()), ((0, 1), 0), "{:?}", ran.told);
}

/// Seconds since 1970 of a file's last modification.
fn modified(copy: &Copy, path: &str) -> u64 {
    let time = std::fs::metadata(copy.options.folder.join(path)).unwrap().modified().unwrap();
    time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_file_has_the_time_of_the_resource_however_it_came() {
    // Last modified at 2001-09-09T01:46:40Z, changed at BEGIN + 5 s; lists of changes are for clients of both versions.
    let (seconds, date) = (1_000_000_000, "Sun, 09 Sep 2001 01:46:40 GMT");
    let changed = "2026-01-01T00:00:05Z";
    let all = resources(40);
    let entry = |source: &Source, number: usize, lastmod: &str, more: &str| {
        let (path, body) = &all[number];
        source.entry(path, body, more).replace("2025-06-01T00:00:00Z", lastmod)
    };
    let change = |more: &str| format!("change=\"created\" datetime=\"{changed}\" {more}");
    let package = |source: &Source, manifest: &str, lastmod: &str, more: &dyn Fn(&str) -> String| {
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
        let mut source = Source::new();
        for (path, body) in &all {
            source.server.put(path, Answer::ok(body.as_str()).header("last-modified", date));
        }
        let listed: String = (0..all.len()).map(|number| entry(&source, number, "2001-09-09T01:46:40Z", "")).collect();
        let changes: String = (0..all.len()).map(|number| entry(&source, number, changed, &change(""))).collect();
        let span = format!("from=\"{BEGIN}\"");
        let is_change = way.starts_with("change");
        let (list, dumped) = if is_change { ("", "") } else { (&*listed, "/all.zip") };
        if !way.ends_with("only") {
            source.offer("resourcelist", "/resourcelist.xml", "urlset", &format!("at=\"{BEGIN}\""), list);
            source.offer("changelist", "/changelist.xml", "urlset", &span, "");
        }
        if way.starts_with("dump") || way == "change dump only" {
            let body = match dumped {
                "" => Zip::new().add("manifest.xml", manifest("resourcedump-manifest", "").as_bytes()).finish(),
                _ => package(&source, "resourcedump-manifest", "2001-09-09T01:46:40Z", &str::to_owned),
            };
            source.server.body("/all.zip", body);
            source.dump(&["/all.zip"]);
        }
        if way.starts_with("change dump") {
            source.server.body("/changes.zip", package(&source, "changedump-manifest", changed, &change));
            let entry = format!("<url><loc>{}</loc></url>", source.server.url("/changes.zip"));
            source.offer("changedump", "/changedump.xml", "urlset", &span, &entry);
        }
        let mut copy = Copy::of(source.url());
        copy.options.base = Some(source.server.url("/d/"));
        copy.options.dumps = if way.contains("dump") { Dumps::Always } else { Dumps::Never };
        if is_change && !way.ends_with("only") {
            // A package of changes is used when changes are followed.
            assert_eq!(copy.run().exit(), 0);
            source.offer("changelist", "/changelist.xml", "urlset", &span, &changes);
        }
        source.server.take_log();
        let ran = copy.run();
        assert_eq!((ran.exit(), ran.summary().created), (0, 40), "{way} {:?}", ran.told);
        let asked = source.server.take_log().iter().any(|path| path.starts_with("/d/"));
        assert_eq!(asked, !way.contains("dump"), "{way}");
        for (path, _) in &all {
            let path = path.trim_start_matches("/d/");
            assert_eq!(modified(&copy, path), u64::from(seconds.unsigned_abs()), "{way} {path}");
        }
    }
}
