//! No error, empty answer or list that could not be read whole deletes anything, whatever the copy is kept in.
//!
//! Each thing that is wrong is met in three runs, since a failure that stays must not be forgotten either. That nothing
//! was deleted is told three ways: by the runs, by the next good run, which finds nothing to make anew, and at the end
//! by a real deletion, which is done.

use super::web::{BEGIN, Page, Web, document, md5_hex};
use super::{Copy, Ran};
use abreast_destination::{Dumps, SinkOptions, WarcOptions};
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;

const COUNT: usize = 60;

/// What is served in place of a package.
type Served<'a> = &'a dyn Fn(&[u8]) -> Page;

fn resources() -> Vec<(String, String)> {
    (0..COUNT).map(|number| (format!("/d/r{number:02}"), format!("resource {number}"))).collect()
}

fn sinks() -> Vec<(&'static str, SinkOptions)> {
    vec![("folder", SinkOptions::Folder), ("warc", SinkOptions::Warc(WarcOptions::default()))]
}

const RESOURCE_LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn list(web: &Web, resources: &[(String, String)]) -> String {
    let entries: String = resources.iter().map(|(path, body)| web.entry(path, body.as_bytes(), "")).collect();
    document("urlset", RESOURCE_LIST, &entries)
}

/// A run that must delete nothing, three times; then the good one.
fn meets(copy: &Copy, what: &str, bad: impl FnOnce(), good: impl FnOnce()) {
    bad();
    for round in 0..3 {
        let ran = copy.run();
        nothing_deleted(&ran, &format!("{what}, run {round}"));
        assert_ne!(ran.exit(), 0, "{what}, run {round}: told as if all were well {:?}", ran.codes);
    }
    good();
    let ran = copy.run();
    nothing_deleted(&ran, &format!("{what}, after it"));
    let summary = ran.summary();
    assert_eq!((summary.exit_code, summary.created), (0, 0), "{what}: something was gone {:?}", ran.codes);
}

fn nothing_deleted(ran: &Ran, what: &str) {
    assert!(ran.deleted.is_empty(), "{what}: deleted {:?}", ran.deleted);
    assert_eq!(ran.result.as_ref().map_or(0, |summary| summary.deleted), 0, "{what}");
}

/// What may come in place of a list: what it is, and the answer.
fn bad_lists(web: &Web, good: &str) -> Vec<(&'static str, Page)> {
    let half = good.len() / 2;
    let entry = good[..half].rfind("<url>").unwrap();
    let elsewhere = good.replace(&web.base, "http://elsewhere.example");
    let index = |entries: &str| document("sitemapindex", RESOURCE_LIST, entries);
    let child = |path: &str| format!("<sitemap><loc>{}</loc></sitemap>", web.url(path));
    let part = good.replace(&good[good.find("<url>").unwrap()..entry], "");
    web.body("/part.xml", part);
    web.body("/login", "<!DOCTYPE html><html><head><title>Log in</title></head><body>Who are you?</body></html>");
    web.body("/cut.xml", &good[..half]);
    web.put("/broken.xml", Page::status(500));
    vec![
        ("an empty list", Page::ok(document("urlset", RESOURCE_LIST, ""))),
        ("no bytes", Page::ok("")),
        ("a list cut within an entry", Page::ok(&good[..half])),
        ("a list cut between entries", Page::ok(&good[..entry])),
        ("a list cut on the way", Page::cut(good, half)),
        ("a list cut between entries on the way", Page::cut(good, good.len() - entry)),
        ("401", Page::status(401)),
        ("403", Page::status(403)),
        ("404", Page::status(404)),
        ("410", Page::status(410)),
        ("500", Page::status(500)),
        ("503", Page::status(503)),
        ("204", Page::status(204)),
        ("206 nobody asked for", Page { status: 206, ..Page::ok(&good[..half]) }),
        ("an error with the status of success", Page::ok("{\"error\":\"cannot list\"}")),
        ("a directory's listing", Page::ok("<html><body><a href=\"r00\">r00</a></body></html>")),
        ("a page to log in at", Page::ok("<html><head><title>Log in</title></head><body><form/></body></html>")),
        ("a redirect to a page to log in at", Page::status(302).header(&format!("location: {}", web.url("/login")))),
        ("a redirect to itself", Page::status(302).header(&format!("location: {}", web.url("/list.xml")))),
        ("a wrong namespace", Page::ok(good.replace("http://www.sitemaps.org/schemas/sitemap/0.9", "urn:wrong"))),
        ("no namespace", Page::ok(good.replace(" xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"", ""))),
        ("changes in place of a list", Page::ok(good.replace("\"resourcelist\"", "\"changelist\""))),
        ("a list of somebody else's", Page::ok(elsewhere)),
        ("packed, and cut", Page::ok([0x1f, 0x8b, 8, 0, 0, 0]).header("content-encoding: gzip")),
        ("an empty index", Page::ok(index(""))),
        ("an index with a missing child", Page::ok(index(&(child("/part.xml") + &child("/none.xml"))))),
        ("an index with a failing child", Page::ok(index(&(child("/part.xml") + &child("/broken.xml"))))),
        ("an index with a cut child", Page::ok(index(&(child("/part.xml") + &child("/cut.xml"))))),
        ("an index with a page to log in at", Page::ok(index(&(child("/part.xml") + &child("/login"))))),
        ("an index that names itself", Page::ok(index(&(child("/part.xml") + &child("/list.xml"))))),
    ]
}

#[test]
fn nothing_is_deleted_for_any_wrong_list() {
    for (sink, options) in sinks() {
        let (web, place) = (Web::start(), tempfile::tempdir().unwrap());
        let all = resources();
        for (path, body) in &all {
            web.body(path, body.as_str());
        }
        let good = list(&web, &all);
        web.body("/list.xml", good.as_str());
        web.offer(&[("resourcelist", "/list.xml")]);
        let mut copy = Copy::of(web.url("/caps.xml"), &place.path().join("copy"));
        copy.options.sink = options;
        copy.options.net.retries = 0;
        assert_eq!(copy.run().summary().created, COUNT as u64);
        for (what, page) in bad_lists(&web, &good) {
            meets(
                &copy,
                &format!("{sink}: {what}"),
                || web.put("/list.xml", page),
                || web.body("/list.xml", good.as_str()),
            );
        }
        for (what, page) in [
            ("no Capability List", Page::status(404)),
            ("a Capability List that fails", Page::status(500)),
            ("an empty Capability List", Page::ok(document("urlset", "capability=\"capabilitylist\"", ""))),
            ("a page in place of the Capability List", Page::ok("<html><body>moved</body></html>")),
        ] {
            // Where the Resource List is known already, it may be asked by itself: that is no harm.
            web.put("/caps.xml", page);
            nothing_deleted(&copy.run(), &format!("{sink}: {what}"));
            web.offer(&[("resourcelist", "/list.xml")]);
            assert_eq!(copy.run().summary().created, 0, "{sink}: {what}");
        }
        web.body("/list.xml", list(&web, &all[1..]));
        assert_eq!(copy.run().deleted.len(), 1, "{sink}: what left the list is deleted");
    }
}

#[test]
fn nothing_is_deleted_when_lists_of_changes_and_of_resources_are_both_wrong() {
    for (sink, options) in sinks() {
        let (web, place) = (Web::start(), tempfile::tempdir().unwrap());
        let all = resources();
        for (path, body) in &all {
            web.body(path, body.as_str());
        }
        let good = list(&web, &all);
        let changes =
            |entries: &str| document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), entries);
        web.body("/list.xml", good.as_str());
        web.body("/changes.xml", changes(""));
        web.offer(&[("resourcelist", "/list.xml"), ("changelist", "/changes.xml")]);
        let mut copy = Copy::of(web.url("/caps.xml"), &place.path().join("copy"));
        copy.options.sink = options;
        copy.options.net.retries = 0;
        assert_eq!(copy.run().summary().created, COUNT as u64);
        // A gap: the changes begin later than the copy knows, so the list is asked, and is wrong.
        let gap = document("urlset", "capability=\"changelist\" from=\"2026-03-01T00:00:00Z\"", "");
        let deleted = format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-02T00:00:00Z\"/></url>",
            web.url("/d/r00")
        );
        let cut = changes(&deleted).replace("</urlset>", "");
        for (what, changed) in [
            ("a gap", Page::ok(gap)),
            ("no Change List", Page::status(404)),
            ("a Change List that fails", Page::status(500)),
            ("a Change List cut behind a deletion", Page::ok(cut)),
            ("a page in place of the Change List", Page::ok("<html><body>moved</body></html>")),
        ] {
            for (which, page) in bad_lists(&web, &good) {
                web.put("/changes.xml", changed.clone());
                web.put("/list.xml", page);
                nothing_deleted(&copy.run(), &format!("{sink}: {what} and {which}"));
            }
            web.body("/list.xml", good.as_str());
            web.body("/changes.xml", changes(""));
            let ran = copy.run();
            nothing_deleted(&ran, &format!("{sink}: after {what}"));
            assert_eq!(ran.summary().created, 0, "{sink}: after {what}");
        }
        web.body("/changes.xml", changes(&deleted));
        assert_eq!(copy.run().deleted.len(), 1, "{sink}: a real deletion is applied");
    }
}

/// A package with its manifest.
fn package(web: &Web, resources: &[(String, String)]) -> Vec<u8> {
    let mut entries = String::new();
    for (path, body) in resources {
        entries += &web.entry(path, body.as_bytes(), &format!(" path=\"/resources{path}\""));
    }
    zipped(
        resources,
        Some(&document("urlset", &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""), &entries)),
    )
}

fn zipped(resources: &[(String, String)], manifest: Option<&str>) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (path, body) in resources {
        zip.start_file(format!("resources{path}"), stored).unwrap();
        zip.write_all(body.as_bytes()).unwrap();
    }
    if let Some(manifest) = manifest {
        zip.start_file("manifest.xml", stored).unwrap();
        zip.write_all(manifest.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A Resource Dump of packages, listed with the digests they should have.
fn dump(web: &Web, packages: &[(&str, &[u8])]) -> String {
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
    web: Web,
    one: Vec<u8>,
    two: Vec<u8>,
    copy: Copy,
}

impl Packed {
    fn new(place: &Path, sink: SinkOptions) -> Self {
        let web = Web::start();
        let all = resources();
        let (one, two) = (package(&web, &all[..COUNT / 2]), package(&web, &all[COUNT / 2..]));
        let mut copy = Copy::of(web.url("/caps.xml"), &place.join("copy"));
        copy.options.sink = sink;
        copy.options.dumps = Dumps::Always;
        copy.options.net.retries = 0;
        let packed = Self { web, one, two, copy };
        packed.web.offer(&[("resourcedump", "/dump.xml")]);
        packed.good();
        packed
    }

    fn good(&self) {
        self.web.body("/one.zip", self.one.clone());
        self.web.body("/two.zip", self.two.clone());
        self.web.body("/dump.xml", dump(&self.web, &[("/one.zip", &self.one), ("/two.zip", &self.two)]));
    }

    /// Lists another second package, and serves it; the document differs from every one before.
    fn second(&self, listed: &[u8], served: Page) {
        self.web.put("/two.zip", served);
        let dump = dump(&self.web, &[("/one.zip", &self.one), ("/two.zip", listed)]);
        self.web.body("/dump.xml", dump.replace(BEGIN, "2026-01-02T00:00:00Z"));
    }
}

#[test]
fn nothing_is_deleted_for_any_wrong_dump() {
    for (sink, options) in sinks() {
        let place = tempfile::tempdir().unwrap();
        let packed = Packed::new(place.path(), options);
        let ran = packed.copy.run();
        assert_eq!(ran.summary().created, COUNT as u64, "{sink}: {:?}", ran.codes);
        let two = &packed.two;
        let strange: Vec<_> = resources()[COUNT / 2..].to_vec();
        let strangers = {
            let mut entries = String::new();
            for (path, body) in &strange {
                entries += &packed.web.entry(path, body.as_bytes(), &format!(" path=\"/resources{path}\""));
            }
            let manifest =
                document("urlset", &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""), &entries);
            zipped(&strange, Some(&manifest.replace(&packed.web.base, "http://elsewhere.example")))
        };
        let manifest = |text: &str| zipped(&strange, Some(text));
        let of_changes = document("urlset", &format!("capability=\"changedump-manifest\" from=\"{BEGIN}\""), "");
        let none = document("urlset", &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""), "");
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
                || packed.second(&bytes, Page::ok(bytes.clone())),
                || packed.good(),
            );
        }
        // Not what is listed. Each time it is another package, since one that was had is not asked for again.
        let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
        let flipped = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        };
        let wrong: [(&str, Served<'_>); 7] = [
            ("a missing package", &|_| Page::status(404)),
            ("a package that fails", &|_| Page::status(500)),
            ("a package cut on the way", &|bytes| Page::cut(bytes, bytes.len() / 2)),
            ("a package that is cut", &|bytes| Page::ok(half(bytes))),
            ("a package with a bit turned", &|bytes| Page::ok(flipped(bytes))),
            ("a page in place of a package", &|_| Page::ok("<html><body>Log in</body></html>")),
            ("another package", &|_| Page::ok(packed.one.clone())),
        ];
        for (number, (what, page)) in wrong.into_iter().enumerate() {
            let stray = [&strange[..], &[(format!("/stray{number}"), "not in the manifest".to_owned())]].concat();
            let mut entries = String::new();
            for (path, body) in &strange {
                entries += &packed.web.entry(path, body.as_bytes(), &format!(" path=\"/resources{path}\""));
            }
            let manifest =
                document("urlset", &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""), &entries);
            let listed = zipped(&stray, Some(&manifest));
            meets(&packed.copy, &format!("{sink}: {what}"), || packed.second(&listed, page(&listed)), || packed.good());
        }
        // The dump's own document.
        let good = dump(&packed.web, &[("/one.zip", &packed.one), ("/two.zip", two)]);
        for (what, page) in bad_dumps(&packed.web, &good) {
            meets(&packed.copy, &format!("{sink}: {what}"), || packed.web.put("/dump.xml", page), || packed.good());
        }
        // A dump that has one resource less deletes it.
        let fewer = package(&packed.web, &resources()[COUNT / 2 + 1..]);
        packed.second(&fewer, Page::ok(fewer.clone()));
        let ran = packed.copy.run();
        assert_eq!(ran.deleted.len(), 1, "{sink}: what left the dump is deleted {:?}", ran.codes);
    }
}

/// What may come in place of the document that lists the packages.
fn bad_dumps(web: &Web, good: &str) -> Vec<(&'static str, Page)> {
    let second = good.rfind("<url>").unwrap();
    web.body("/login", "<!DOCTYPE html><html><body>Who are you?</body></html>");
    vec![
        ("an empty dump", Page::ok(document("urlset", &format!("capability=\"resourcedump\" at=\"{BEGIN}\""), ""))),
        ("a dump cut between packages", Page::ok(&good[..second])),
        ("a dump cut on the way", Page::cut(good, good.len() - second)),
        ("no dump", Page::status(404)),
        ("a dump that fails", Page::status(500)),
        ("a dump behind a log-in", Page::status(302).header(&format!("location: {}", web.url("/login")))),
        (
            "a dump in a wrong namespace",
            Page::ok(good.replace("http://www.sitemaps.org/schemas/sitemap/0.9", "urn:wrong")),
        ),
    ]
}
