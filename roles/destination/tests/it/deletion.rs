//! Errors, empty responses and incompletely read lists never delete anything, for every kind of
//! copy.
//!
//! Each fault occurs in three runs, since a permanent fault must not be forgotten either. The
//! absence of deletions is shown in three ways: by the runs, by the next good run, which recreates
//! nothing, and at the end by a real deletion, which is carried out.

use crate::copy::{Copy, Ran};
use abreast_destination::{Dumps, ItemAction, SinkOptions, WarcOptions};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{self, BEGIN, capability_list, document};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::zip::Zip;
use std::fmt::Write as _;
use std::path::Path;

const COUNT: usize = 60;

/// The response in place of a package.
type Served<'a> = &'a dyn Fn(&[u8]) -> Answer;

fn resources() -> Vec<(String, String)> {
    (0..COUNT).map(|number| (format!("/d/r{number:02}"), format!("resource {number}"))).collect()
}

/// The kinds of copies, each with its name; objects are stored in a folder next to the copies.
fn sinks(place: &Path) -> Vec<(&'static str, SinkOptions)> {
    let mut sinks =
        vec![("folder", SinkOptions::Folder), ("warc", SinkOptions::Warc(WarcOptions::default()))];
    sinks.extend(objects(place));
    sinks
}

#[cfg(feature = "s3")]
fn objects(place: &Path) -> Vec<(&'static str, SinkOptions)> {
    let url = format!("file://{}", place.join("store").display());
    vec![(
        "objects",
        SinkOptions::Objects(abreast_destination::ObjectsOptions { url, settings: Vec::new() }),
    )]
}

#[cfg(not(feature = "s3"))]
fn objects(_: &Path) -> Vec<(&'static str, SinkOptions)> {
    Vec::new()
}

fn copy_of(web: &Server, sink: SinkOptions) -> Copy {
    let mut copy = Copy::of(web.url("/caps.xml"));
    copy.options.net.retries = 0;
    copy.options.ignore_robots = false;
    copy.options.sink = sink;
    copy
}

fn entry(web: &Server, path: &str, body: &str, more: &str) -> String {
    documents::entry(&web.url(path), body.as_bytes(), more)
}

/// A Capability List that offers documents.
fn offer(web: &Server, documents: &[(&str, &str)]) {
    web.body(
        "/caps.xml",
        capability_list(documents.iter().map(|(capability, path)| (capability, web.url(path)))),
    );
}

const RESOURCE_LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn list(web: &Server, resources: &[(String, String)]) -> String {
    let entries: String = resources.iter().map(|(path, body)| entry(web, path, body, "")).collect();
    document("urlset", RESOURCE_LIST, &entries)
}

/// A server of the resources, and their list.
fn served() -> (Server, String) {
    let (web, all) = (Server::start(), resources());
    for (path, body) in &all {
        web.body(path, body.as_str());
    }
    let good = list(&web, &all);
    (web, good)
}

/// A run that must delete nothing, three times; then the good one.
fn meets(copy: &Copy, what: &str, bad: impl FnOnce(), good: impl FnOnce()) {
    bad();
    for round in 0..3 {
        let ran = copy.try_run();
        nothing_deleted(&ran, &format!("{what}, run {round}"));
        assert_ne!(
            ran.exit(),
            0,
            "{what}, run {round}: told as if all were well {:?}",
            ran.reported
        );
    }
    good();
    let ran = copy.try_run();
    nothing_deleted(&ran, &format!("{what}, after it"));
    let summary = ran.summary();
    assert_eq!(
        (summary.exit_code, summary.created),
        (0, 0),
        "{what}: something was gone {:?}",
        ran.reported
    );
}

/// URIs of the resources that a run deleted.
fn deleted(ran: &Ran) -> Vec<&str> {
    ran.uris(ItemAction::Deleted)
}

fn nothing_deleted(ran: &Ran, what: &str) {
    assert_eq!(deleted(ran), [""; 0], "{what}");
    assert_eq!(ran.result.as_ref().map_or(0, |summary| summary.deleted), 0, "{what}");
}

/// Possible responses in place of a list, each with a description.
fn bad_lists(web: &Server, good: &str) -> Vec<(&'static str, Answer)> {
    let half = good.len() / 2;
    let entry = good[..half].rfind("<url>").unwrap();
    let elsewhere = good.replace(&web.base, "http://elsewhere.example");
    let index = |entries: &str| document("sitemapindex", RESOURCE_LIST, entries);
    let child = |path: &str| format!("<sitemap><loc>{}</loc></sitemap>", web.url(path));
    let part = good.replace(&good[good.find("<url>").unwrap()..entry], "");
    web.body("/part.xml", part);
    web.body(
        "/login",
        "<!DOCTYPE html><html><head><title>Log in</title></head><body>Who are you?</body></html>",
    );
    web.body("/cut.xml", &good[..half]);
    web.put("/broken.xml", Answer::status(500));
    vec![
        ("an empty list", Answer::ok(document("urlset", RESOURCE_LIST, ""))),
        ("no bytes", Answer::ok("")),
        ("a list cut within an entry", Answer::ok(&good[..half])),
        ("a list cut between entries", Answer::ok(&good[..entry])),
        ("a list cut on the way", Answer::cut(good, half)),
        ("a list cut between entries on the way", Answer::cut(good, good.len() - entry)),
        ("401", Answer::status(401)),
        ("403", Answer::status(403)),
        ("404", Answer::status(404)),
        ("410", Answer::status(410)),
        ("500", Answer::status(500)),
        ("503", Answer::status(503)),
        ("204", Answer::status(204)),
        ("206 nobody asked for", Answer { status: 206, ..Answer::ok(&good[..half]) }),
        ("an error with the status of success", Answer::ok("{\"error\":\"cannot list\"}")),
        ("a directory's listing", Answer::ok("<html><body><a href=\"r00\">r00</a></body></html>")),
        (
            "a page to log in at",
            Answer::ok("<html><head><title>Log in</title></head><body><form/></body></html>"),
        ),
        (
            "a redirect to a page to log in at",
            Answer::status(302).header("location", &web.url("/login")),
        ),
        ("a redirect to itself", Answer::status(302).header("location", &web.url("/list.xml"))),
        (
            "a wrong namespace",
            Answer::ok(good.replace("http://www.sitemaps.org/schemas/sitemap/0.9", "urn:wrong")),
        ),
        (
            "no namespace",
            Answer::ok(good.replace(" xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"", "")),
        ),
        (
            "changes in place of a list",
            Answer::ok(good.replace("\"resourcelist\"", "\"changelist\"")),
        ),
        ("a list of somebody else's", Answer::ok(elsewhere)),
        (
            "packed, and cut",
            Answer::ok([0x1f, 0x8b, 8, 0, 0, 0]).header("content-encoding", "gzip"),
        ),
        ("an empty index", Answer::ok(index(""))),
        (
            "an index with a missing child",
            Answer::ok(index(&(child("/part.xml") + &child("/none.xml")))),
        ),
        (
            "an index with a failing child",
            Answer::ok(index(&(child("/part.xml") + &child("/broken.xml")))),
        ),
        (
            "an index with a cut child",
            Answer::ok(index(&(child("/part.xml") + &child("/cut.xml")))),
        ),
        (
            "an index with a page to log in at",
            Answer::ok(index(&(child("/part.xml") + &child("/login")))),
        ),
        (
            "an index that names itself",
            Answer::ok(index(&(child("/part.xml") + &child("/list.xml")))),
        ),
    ]
}

#[test]
fn nothing_is_deleted_for_any_wrong_list() {
    let place = tempfile::tempdir().unwrap();
    for (sink, options) in sinks(place.path()) {
        let (web, good) = served();
        web.body("/list.xml", good.as_str());
        offer(&web, &[("resourcelist", "/list.xml")]);
        let copy = copy_of(&web, options);
        assert_eq!(copy.run().created, COUNT as u64);
        for (what, page) in bad_lists(&web, &good) {
            meets(
                &copy,
                &format!("{sink}: {what}"),
                || web.put("/list.xml", page),
                || web.body("/list.xml", good.as_str()),
            );
        }
        for (what, page) in [
            ("no Capability List", Answer::status(404)),
            ("a Capability List that fails", Answer::status(500)),
            (
                "an empty Capability List",
                Answer::ok(document("urlset", "capability=\"capabilitylist\"", "")),
            ),
            (
                "a page in place of the Capability List",
                Answer::ok("<html><body>moved</body></html>"),
            ),
        ] {
            // A known Resource List may be requested directly, which is harmless.
            web.put("/caps.xml", page);
            nothing_deleted(&copy.try_run(), &format!("{sink}: {what}"));
            offer(&web, &[("resourcelist", "/list.xml")]);
            assert_eq!(copy.run().created, 0, "{sink}: {what}");
        }
        web.body("/list.xml", list(&web, &resources()[1..]));
        assert_eq!(deleted(&copy.try_run()).len(), 1, "{sink}: what left the list is deleted");
    }
}

#[test]
fn nothing_is_deleted_when_both_kinds_of_lists_are_wrong() {
    let place = tempfile::tempdir().unwrap();
    for (sink, options) in sinks(place.path()) {
        let (web, good) = served();
        let changes = |entries: &str| {
            document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), entries)
        };
        web.body("/list.xml", good.as_str());
        web.body("/changes.xml", changes(""));
        offer(&web, &[("resourcelist", "/list.xml"), ("changelist", "/changes.xml")]);
        let copy = copy_of(&web, options);
        assert_eq!(copy.run().created, COUNT as u64);
        // A gap: the changes start after the last known change, so the list is requested, and is
        // wrong.
        let gap = document("urlset", "capability=\"changelist\" from=\"2026-03-01T00:00:00Z\"", "");
        let deletion = format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-02T00:00:00Z\"/></url>",
            web.url("/d/r00")
        );
        let cut = changes(&deletion).replace("</urlset>", "");
        for (what, changed) in [
            ("a gap", Answer::ok(gap)),
            ("no Change List", Answer::status(404)),
            ("a Change List that fails", Answer::status(500)),
            ("a Change List cut behind a deletion", Answer::ok(cut)),
            ("a page in place of the Change List", Answer::ok("<html><body>moved</body></html>")),
        ] {
            for (which, page) in bad_lists(&web, &good) {
                web.put("/changes.xml", changed.clone());
                web.put("/list.xml", page);
                nothing_deleted(&copy.try_run(), &format!("{sink}: {what} and {which}"));
            }
            web.body("/list.xml", good.as_str());
            web.body("/changes.xml", changes(""));
            let ran = copy.try_run();
            nothing_deleted(&ran, &format!("{sink}: after {what}"));
            assert_eq!(ran.summary().created, 0, "{sink}: after {what}");
        }
        web.body("/changes.xml", changes(&deletion));
        assert_eq!(deleted(&copy.try_run()).len(), 1, "{sink}: a real deletion is applied");
    }
}

/// A package with its manifest.
fn package(web: &Server, resources: &[(String, String)]) -> Vec<u8> {
    let mut entries = String::new();
    for (path, body) in resources {
        entries += &entry(web, path, body, &format!("path=\"/resources{path}\""));
    }
    zipped(
        resources,
        Some(&document(
            "urlset",
            &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""),
            &entries,
        )),
    )
}

fn zipped(resources: &[(String, String)], manifest: Option<&str>) -> Vec<u8> {
    let mut zip = Zip::new();
    for (path, body) in resources {
        zip.add(&format!("resources{path}"), body.as_bytes());
    }
    if let Some(manifest) = manifest {
        zip.add("manifest.xml", manifest.as_bytes());
    }
    zip.finish()
}

/// A Resource Dump of packages, listed with the digests they should have.
fn dump(web: &Server, packages: &[(&str, &[u8])]) -> String {
    let entries = packages.iter().fold(String::new(), |mut out, (path, bytes)| {
        let _ = writeln!(
            out,
            "<url><loc>{}</loc><rs:md type=\"application/zip\" hash=\"md5:{}\" length=\"{}\"/></url>",
            web.url(path),
            md5_hex(bytes),
            bytes.len()
        );
        out
    });
    document("urlset", &format!("capability=\"resourcedump\" at=\"{BEGIN}\""), &entries)
}

/// A dump that is the only list there is: `one.zip` and `two.zip`, listed in `dump.xml`.
struct Packed {
    web: Server,
    one: Vec<u8>,
    two: Vec<u8>,
    copy: Copy,
}

impl Packed {
    fn new(sink: SinkOptions) -> Self {
        let web = Server::start();
        let all = resources();
        let (one, two) = (package(&web, &all[..COUNT / 2]), package(&web, &all[COUNT / 2..]));
        let mut copy = copy_of(&web, sink);
        copy.options.dumps = Dumps::Always;
        let packed = Self { web, one, two, copy };
        offer(&packed.web, &[("resourcedump", "/dump.xml")]);
        packed.good();
        packed
    }

    fn good(&self) {
        self.web.body("/one.zip", self.one.clone());
        self.web.body("/two.zip", self.two.clone());
        self.web.body(
            "/dump.xml",
            dump(&self.web, &[("/one.zip", &self.one), ("/two.zip", &self.two)]),
        );
    }

    /// Lists another second package, and serves it; the document differs from every one before.
    fn second(&self, listed: &[u8], served: Answer) {
        self.web.put("/two.zip", served);
        let dump = dump(&self.web, &[("/one.zip", &self.one), ("/two.zip", listed)]);
        self.web.body("/dump.xml", dump.replace(BEGIN, "2026-01-02T00:00:00Z"));
    }
}

#[test]
fn nothing_is_deleted_for_any_wrong_dump() {
    let place = tempfile::tempdir().unwrap();
    for (sink, options) in sinks(place.path()) {
        let packed = Packed::new(options);
        let ran = packed.copy.try_run();
        assert_eq!(ran.summary().created, COUNT as u64, "{sink}: {:?}", ran.reported);
        let two = &packed.two;
        let strange: Vec<_> = resources()[COUNT / 2..].to_vec();
        let strangers = {
            let mut entries = String::new();
            for (path, body) in &strange {
                entries += &entry(&packed.web, path, body, &format!("path=\"/resources{path}\""));
            }
            let manifest = document(
                "urlset",
                &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""),
                &entries,
            );
            zipped(&strange, Some(&manifest.replace(&packed.web.base, "http://elsewhere.example")))
        };
        let manifest = |text: &str| zipped(&strange, Some(text));
        let of_changes =
            document("urlset", &format!("capability=\"changedump-manifest\" from=\"{BEGIN}\""), "");
        let none =
            document("urlset", &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""), "");
        // As listed, and wrong by itself.
        for (what, bytes) in [
            ("a package cut short, and listed so", two[..two.len() / 2].to_vec()),
            ("a package without manifest", zipped(&strange, None)),
            ("a manifest of another set", strangers),
            ("a manifest of changes", manifest(&of_changes)),
            ("a manifest cut short", manifest(&none[..none.len() - 12])),
            ("a manifest that is a page", manifest("<html><body>none</body></html>")),
            ("no bytes", Vec::new()),
        ] {
            meets(
                &packed.copy,
                &format!("{sink}: {what}"),
                || packed.second(&bytes, Answer::ok(bytes.clone())),
                || packed.good(),
            );
        }
        // The bytes differ from the list. The package is different each time, since a received
        // package is not requested again.
        let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
        let flipped = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        };
        let wrong: [(&str, Served<'_>); 7] = [
            ("a missing package", &|_| Answer::status(404)),
            ("a package that fails", &|_| Answer::status(500)),
            ("a package cut on the way", &|bytes| Answer::cut(bytes, bytes.len() / 2)),
            ("a package that is cut", &|bytes| Answer::ok(half(bytes))),
            ("a package with a bit turned", &|bytes| Answer::ok(flipped(bytes))),
            ("a page in place of a package", &|_| Answer::ok("<html><body>Log in</body></html>")),
            ("another package", &|_| Answer::ok(packed.one.clone())),
        ];
        for (number, (what, page)) in wrong.into_iter().enumerate() {
            let stray =
                [&strange[..], &[(format!("/stray{number}"), "not in the manifest".to_owned())]]
                    .concat();
            let mut entries = String::new();
            for (path, body) in &strange {
                entries += &entry(&packed.web, path, body, &format!("path=\"/resources{path}\""));
            }
            let manifest = document(
                "urlset",
                &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""),
                &entries,
            );
            let listed = zipped(&stray, Some(&manifest));
            meets(
                &packed.copy,
                &format!("{sink}: {what}"),
                || packed.second(&listed, page(&listed)),
                || packed.good(),
            );
        }
        // The dump's own document.
        let good = dump(&packed.web, &[("/one.zip", &packed.one), ("/two.zip", two)]);
        for (what, page) in bad_dumps(&packed.web, &good) {
            meets(
                &packed.copy,
                &format!("{sink}: {what}"),
                || packed.web.put("/dump.xml", page),
                || packed.good(),
            );
        }
        // A dump that has one resource less deletes it.
        let fewer = package(&packed.web, &resources()[COUNT / 2 + 1..]);
        packed.second(&fewer, Answer::ok(fewer.clone()));
        let ran = packed.copy.try_run();
        assert_eq!(
            deleted(&ran).len(),
            1,
            "{sink}: what left the dump is deleted {:?}",
            ran.reported
        );
    }
}

/// Possible responses in place of the document with the packages.
fn bad_dumps(web: &Server, good: &str) -> Vec<(&'static str, Answer)> {
    let second = good.rfind("<url>").unwrap();
    web.body("/login", "<!DOCTYPE html><html><body>Who are you?</body></html>");
    vec![
        (
            "an empty dump",
            Answer::ok(document(
                "urlset",
                &format!("capability=\"resourcedump\" at=\"{BEGIN}\""),
                "",
            )),
        ),
        ("a dump cut between packages", Answer::ok(&good[..second])),
        ("a dump cut on the way", Answer::cut(good, good.len() - second)),
        ("no dump", Answer::status(404)),
        ("a dump that fails", Answer::status(500)),
        ("a dump behind a log-in", Answer::status(302).header("location", &web.url("/login"))),
        (
            "a dump in a wrong namespace",
            Answer::ok(good.replace("http://www.sitemaps.org/schemas/sitemap/0.9", "urn:wrong")),
        ),
    ]
}
