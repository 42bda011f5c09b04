//! For each rule one way to break it. The control of all of them is the Source before it is broken.

use crate::mutants::LONG_URI;
use crate::server::Server;
use crate::site::{Break, broken};
use Break::{
    AddFinding, Empty, Few, ForHead, Header, Members, Post, Remove, Repeat, Replace, SmallFiles,
    Swell, Unconditional,
};
use abreast_validator::{Options, Report, rules::RULES, text, validate};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const DESCRIPTION: &str = "/.well-known/resourcesync";
const UP: &str = "<rs:ln rel=\"up\" href=\"{B}/caps.xml\"/>";
const ARCHIVE_MD: &str = "<rs:md capability=\"resourcelist-archive\"/>";
const INDEX: &str = "<rs:ln rel=\"index\" href=\"{B}/cl.xml\"/>";
const DUMP_INDEX: &str = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:ln rel=\"up\" href=\"{B}/caps.xml\"/>\
    <rs:md capability=\"resourcedump\" at=\"2026-01-10T00:00:00Z\"/><sitemap><loc>{B}/rd.xml</loc></sitemap></sitemapindex>";
const CHANGE_DUMP_INDEX: &str = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:ln rel=\"up\" href=\"{B}/caps.xml\"/>\
    <rs:md capability=\"changedump\" from=\"2026-01-01T00:00:00Z\"/><sitemap><loc>{B}/cd.xml</loc></sitemap></sitemapindex>";
const EARLIER_PACKAGE: &str = "<url><loc>{B}/c0.zip</loc><rs:md type=\"application/zip\" length=\"9\" \
    from=\"2025-12-01T00:00:00Z\" until=\"2026-01-01T00:00:00Z\"/></url>";
const ENTRY: &str =
    "<url><loc>{B}/r/z</loc><rs:md change=\"created\" datetime=\"2026-01-01T00:00:00Z\"/></url>";

const NO_SETS: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md capability=\"description\"/></urlset>";

/// A rule and what breaks it.
pub(crate) const CASES: &[(&str, &[Break])] = &[
    ("XML-2.1-well-formed", &[Replace("/rl1.xml", "</urlset>", "</urlse>")]),
    ("XML-2.8-doctype", &[Replace("/rl1.xml", "<urlset", "<!DOCTYPE urlset><urlset")]),
    ("SITEMAP-utf-8", &[Replace("/rl1.xml", "\"UTF-8\"", "\"ISO-8859-1\"")]),
    ("RS-7-root", &[Replace("/rl1.xml", "sitemap/0.9", "sitemap/0.8")]),
    ("RS-7-md", &[Replace("/rl1.xml", "<rs:md capability=", "<rs:mx capability=")]),
    (
        "RS-7-md-once",
        &[Replace("/cl1.xml", "<rs:md change=\"deleted\"", "<rs:md/><rs:md change=\"deleted\"")],
    ),
    ("RS-7-md-first", &[Repeat("/rla.xml", UP, 1)]),
    ("RS-7-read", &[Replace("/rla.xml", ARCHIVE_MD, ""), Repeat("/rla.xml", ARCHIVE_MD, 1)]),
    ("RS-7-capability", &[Replace("/rl1.xml", "capability=\"resourcelist\" ", "")]),
    ("RS-7-capability-value", &[Replace("/rl1.xml", "\"resourcelist\"", "\"resourceList\"")]),
    ("RS-7-prefix", &[Replace("/rl1.xml", "type=", "rs:type=")]),
    ("RS-7-attributes", &[Replace("/rl1.xml", " at=", " modified=\"2026-01-01T00:00:00Z\" at=")]),
    ("RS-7-elements", &[Replace("/rl1.xml", "<lastmod>", "<modified/><lastmod>")]),
    ("RS-7-text", &[Replace("/rl1.xml", "<lastmod>", "x<lastmod>")]),
    ("RS-7-loc", &[Replace("/rl1.xml", "<loc>{B}/r/a.txt</loc>", "")]),
    ("RS-7-loc-space", &[Replace("/rl1.xml", "{B}/r/a.txt", "\u{a0}{B}/r/a.txt\u{feff}")]),
    ("RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "r/a.txt")]),
    ("RS-7-uri-normal", &[Replace("/rl1.xml", "{B}/r/a.txt", "{B}/r/../r/a.txt")]),
    ("SITEMAP-loc", &[Replace("/rl1.xml", "{B}/r/a.txt", LONG_URI)]),
    (
        "SITEMAP-priority",
        &[Replace("/cl1.xml", "<changefreq>", "<priority>2</priority><changefreq>")],
    ),
    ("RS-7-items", &[Repeat("/old-cl.xml", ENTRY, 50_001)]),
    ("RS-7-size", &[Swell("/old-cl.xml", 51 << 20)]),
    ("RS-7-datetime", &[Replace("/rl1.xml", "at=\"2026-01-10T00:00:00Z\"", "at=\"10.1.2026\"")]),
    (
        "RS-7-datetime-utc",
        &[Replace("/rl1.xml", "at=\"2026-01-10T00:00:00Z\"", "at=\"2026-01-10\"")],
    ),
    ("RS-7-datetime-form", &[Replace("/rl1.xml", "at=\"2026-01-10T", "at=\"2026-01-10t")]),
    ("RS-7-future", &[Replace("/rl1.xml", "<lastmod>2026", "<lastmod>2126")]),
    ("RS-7-changefreq", &[Replace("/cl1.xml", "daily", "often")]),
    ("RS-7-completed", &[Replace("/rl.xml", "completed=\"2026-01-11", "completed=\"2026-01-09")]),
    ("RS-7-interval", &[Replace("/cl1.xml", "until=\"2026-01-05", "until=\"2025-01-05")]),
    (
        "RS-7-datetime-range",
        &[Replace("/cl1.xml", "datetime=\"2026-01-04", "datetime=\"2026-01-06")],
    ),
    ("RS-7-href", &[Replace("/rl1.xml", "rel=\"up\" href=\"{B}/caps.xml\"", "rel=\"up\"")]),
    ("RS-7-rel", &[Replace("/rl1.xml", "rel=\"up\" ", "")]),
    ("RS-7-rel-registered", &[Replace("/cl1.xml", "rel=\"via\"", "rel=\"origin\"")]),
    ("RS-7-pri", &[Replace("/cl1.xml", "pri=\"1\"", "pri=\"0\"")]),
    ("RS-7-hash", &[Replace("/rl1.xml", "hash=\"md5:", "hash=\"md5:zz")]),
    (
        "RS-7-hash-once",
        &[Replace("/rl1.xml", "hash=\"md5:", "hash=\"md5:1e0d5cb8ef6ba40c99b14c0237be735e md5:")],
    ),
    ("RS-7-hash-algorithm", &[Replace("/rl1.xml", "hash=\"md5:", "hash=\"whirlpool:")]),
    ("RS-7-length", &[Replace("/rl1.xml", "length=\"5\"", "length=\"5 bytes\"")]),
    ("RS-7-type", &[Replace("/rl1.xml", "text/plain", "text")]),
    ("RS-7-encoding", &[Replace("/rl1.xml", "type=", "encoding=\"g zip\" type=")]),
    ("RS-7-path-only", &[Replace("/rl1.xml", "type=", "path=\"/a\" type=")]),
    ("RS-7-change-only", &[Replace("/rl1.xml", "type=", "change=\"updated\" type=")]),
    (
        "RS-7-deleted",
        &[Replace("/cl1.xml", "change=\"deleted\"", "change=\"deleted\" length=\"3\"")],
    ),
    ("RS-A-at", &[Replace("/rl1.xml", " at=\"2026-01-10T00:00:00Z\"", "")]),
    ("RS-A-from", &[Replace("/cl2.xml", " from=\"2026-01-05T00:00:00Z\"", "")]),
    ("RS-A-from-child", &[Replace("/cl.xml", "<rs:md from=\"2026-01-05T00:00:00Z\"/>", "")]),
    ("RS-A-forbidden", &[Replace("/rl1.xml", " at=", " from=\"2026-01-01T00:00:00Z\" at=")]),
    ("RS-10.1-available", &[Remove("/r/a.txt")]),
    ("RS-7-length-equal", &[Header("/r/a.txt", "Transfer-Encoding", "chunked")]),
    ("RS-7-length-true", &[Replace("/rl1.xml", "length=\"5\"", "length=\"6\"")]),
    ("RS-7-hash-true", &[Replace("/r/a.txt", "first", "tsrif")]),
    ("RS-7-type-true", &[Header("/r/a.txt", "Content-Type", "text/html")]),
    ("RS-7-encoding-true", &[Replace("/rl1.xml", "type=", "encoding=\"gzip\" type=")]),
    ("RS-7-lastmod-true", &[Header("/r/a.txt", "Last-Modified", "Fri, 02 Jan 2026 00:00:00 GMT")]),
    ("HTTP-8.3-content-type", &[Header("/rl1.xml", "Content-Type", "text/html")]),
    ("HTTP-8.8.3-etag", &[Header("/rl1.xml", "ETag", ""), Header("/rl1.xml", "Last-Modified", "")]),
    ("HTTP-13.1-conditional", &[Unconditional("/caps.xml")]),
    ("HTTP-8.4.1-gzip", &[Swell("/old-cl.xml", 70 << 10)]),
    ("HTTP-15.4-redirect", &[Header("/old-rl2.xml", "Location", "{B}/old-rl1.xml")]),
    (
        "RS-6.1-capability-equal",
        &[Replace("/caps.xml", "\"changedump\"", "\"framework-notification\"")],
    ),
    ("RS-6.1-no-nesting", &[Replace("/rl.xml", "{B}/rl2.xml", "{B}/rl.xml")]),
    ("RS-6.1-once", &[Replace("/rl.xml", "{B}/rl2.xml", "{B}/rl1.xml")]),
    ("RS-6.1-once-other", &[Replace("/cl.xml", "{B}/cl2.xml", "{B}/cl1.xml")]),
    ("RS-6.2-reachable", &[Remove("/rl2.xml")]),
    ("RS-6.2-up-leads", &[Replace("/rl1.xml", "{B}/caps.xml", "{B}/rl.xml")]),
    ("RS-6.2-up-once", &[Repeat("/cl2.xml", UP, 1)]),
    (
        "RS-6.2-index-leads",
        &[Replace(
            "/rl1.xml",
            "rel=\"index\" href=\"{B}/rl.xml\"",
            "rel=\"index\" href=\"{B}/cl.xml\"",
        )],
    ),
    ("RS-6.2-listed", &[Replace(DESCRIPTION, "{B}/caps.xml", "{B}/caps2.xml")]),
    ("RS-6.3.2-well-known", &[Remove(DESCRIPTION)]),
    ("RS-6.3.2-description", &[Remove(DESCRIPTION)]),
    ("RS-6.3.3-link", &[Header("/r/a.txt", "Link", "<{B}/rl.xml>; rel=\"resourcesync\"")]),
    ("RS-6.3.4-robots", &[Replace("/robots.txt", "/rl.xml", "/nothing.xml")]),
    (
        "RS-8-describedby",
        &[Replace(DESCRIPTION, "<rs:ln rel=\"describedby\" href=\"{B}/about.html\"/>", "")],
    ),
    ("RS-8-capability", &[Replace(DESCRIPTION, "\"capabilitylist\"", "\"resourcelist\"")]),
    ("RS-8-md", &[Replace(DESCRIPTION, "<rs:md capability=\"capabilitylist\"/>", "")]),
    (
        "RS-8-set-describedby",
        &[Replace(DESCRIPTION, "<rs:ln rel=\"describedby\" href=\"{B}/set.html\"/>", "")],
    ),
    (
        "RS-8-lastmod",
        &[Replace(DESCRIPTION, "</loc>", "</loc><lastmod>2026-01-01T00:00:00Z</lastmod>")],
    ),
    ("RS-8-entries", &[AddFinding(DESCRIPTION, NO_SETS)]),
    (
        "RS-9-up",
        &[Replace("/caps.xml", "<rs:ln rel=\"up\" href=\"{B}/.well-known/resourcesync\"/>", "")],
    ),
    (
        "RS-9-describedby",
        &[Replace("/caps.xml", "<rs:ln rel=\"describedby\" href=\"{B}/set.html\"/>", "")],
    ),
    ("RS-9-capability", &[Replace("/caps.xml", "<rs:md capability=\"changedump\"/>", "")]),
    ("RS-9-kind", &[Replace("/caps.xml", "\"changedump\"", "\"changedump-manifest\"")]),
    ("RS-9-once", &[Replace("/caps.xml", "\"changedump\"", "\"resourcedump\"")]),
    (
        "RS-9-index",
        &[
            Replace("/caps.xml", "urlset", "sitemapindex"),
            Replace("/caps.xml", "<url>", "<sitemap>"),
            Replace("/caps.xml", "</url>", "</sitemap>"),
        ],
    ),
    (
        "RS-9-lastmod",
        &[Replace("/caps.xml", "</loc>", "</loc><lastmod>2026-01-01T00:00:00Z</lastmod>")],
    ),
    ("RS-9-uniform-dump", &[Replace("/rl2.xml", "{B}/r/c.txt", "{B}/r/b2.txt")]),
    ("RS-9-uniform-changes", &[Replace("/cl2.xml", "{B}/r/c.txt", "{B}/r/gone.txt")]),
    ("RS-10.1-up", &[Replace("/rl1.xml", UP, "")]),
    ("RS-10.1-index", &[Replace("/rl1.xml", "<rs:ln rel=\"index\" href=\"{B}/rl.xml\"/>", "")]),
    ("RS-10.1-once", &[Replace("/rl2.xml", "{B}/r/c.txt", "{B}/r/a.txt")]),
    ("RS-10.2-up", &[Replace("/rl.xml", UP, "")]),
    ("RS-10.2-at", &[Replace("/rl1.xml", "at=\"2026-01-10", "at=\"2026-01-11")]),
    ("RS-10.2-at-later", &[Replace("/rl1.xml", "at=\"2026-01-10", "at=\"2026-01-09")]),
    ("RS-11.1-up", &[Replace("/rd.xml", UP, "")]),
    (
        "RS-11.1-index",
        &[AddFinding("/rdi.xml", DUMP_INDEX), Replace("/caps.xml", "{B}/rd.xml", "{B}/rdi.xml")],
    ),
    ("RS-11.1-type-length", &[Replace("/rd.xml", "type=\"application/zip\" ", "")]),
    (
        "RS-11.1-format",
        &[Replace(
            "/rd.xml",
            "p2.zip</loc><rs:md type=\"application/zip\"",
            "p2.zip</loc><rs:md type=\"application/x-tar\"",
        )],
    ),
    ("RS-11.1-zip", &[Replace("/cd.xml", "application/zip", "application/x-tar")]),
    ("RS-11.1-contents", &[Replace("/p1.xml", "{B}/r/a.txt", "{B}/r/aa.txt")]),
    ("RS-11.2-manifest", &[Members("/p1.zip", |members| drop(members.remove(0)))]),
    ("RS-11.2-up", &[Replace("/p1.xml", UP, "")]),
    ("RS-11.2-path", &[Replace("/p1.xml", " path=\"/files/a.txt\"", "")]),
    ("RS-11.2-slash", &[Replace("/p1.xml", "path=\"/files", "path=\"files")]),
    ("RS-11.2-safe", &[Replace("/p1.xml", "path=\"/files", "path=\"/files/..")]),
    ("RS-11.2-exists", &[Members("/p1.zip", |members| drop(members.pop()))]),
    ("RS-11.2-true", &[Members("/p1.zip", |members| members[1].1 = b"tsrif".to_vec())]),
    (
        "RS-11.2-all",
        &[Members("/p1.zip", |members| members.push(("more.txt".to_owned(), Vec::new())))],
    ),
    ("RS-11.2-type", &[Replace("/p1.xml", " type=\"text/plain\"", "")]),
    ("RS-12.1-up", &[Replace("/cl1.xml", UP, "")]),
    ("RS-12.1-index", &[Replace("/cl1.xml", INDEX, "")]),
    ("RS-12.1-change", &[Replace("/cl1.xml", "change=\"created\" ", "")]),
    ("RS-12.1-change-value", &[Replace("/cl1.xml", "\"created\"", "\"added\"")]),
    (
        "RS-12.1-order",
        &[Replace("/cl1.xml", "datetime=\"2026-01-02T00", "datetime=\"2026-01-03T09")],
    ),
    ("RS-12.1-datetime", &[Replace("/cl1.xml", " datetime=\"2026-01-02T00:00:00Z\"", "")]),
    ("RS-12.2-up", &[Replace("/cl.xml", UP, "")]),
    (
        "RS-12.2-order",
        &[Replace(
            "/cl.xml",
            "<rs:md from=\"2026-01-01T00:00:00Z\"",
            "<rs:md from=\"2026-01-06T00:00:00Z\"",
        )],
    ),
    ("RS-12.2-interval", &[Replace("/cl1.xml", "until=\"2026-01-05", "until=\"2026-01-06")]),
    (
        "RS-12.2-until-closed",
        &[Replace(
            "/cl2.xml",
            "from=\"2026-01-05T00:00:00Z\"",
            "from=\"2026-01-05T00:00:00Z\" until=\"2026-01-08T00:00:00Z\"",
        )],
    ),
    ("RS-12.2-until-open", &[Replace("/cl1.xml", " until=\"2026-01-05T00:00:00Z\"", "")]),
    ("RS-12.2-gap", &[Replace("/cl.xml", "from=\"2026-01-05", "from=\"2026-01-06")]),
    ("RS-12.2-last", &[Replace("/cl.xml", " until=\"2026-01-05T00:00:00Z\"", "")]),
    (
        "RS-12.2-span",
        &[Replace("/cl.xml", "changelist\" from=\"2026-01-01", "changelist\" from=\"2025-12-01")],
    ),
    ("RS-13.1-up", &[Replace("/cd.xml", UP, "")]),
    (
        "RS-13.1-index",
        &[
            AddFinding("/cdi.xml", CHANGE_DUMP_INDEX),
            Replace("/caps.xml", "{B}/cd.xml", "{B}/cdi.xml"),
        ],
    ),
    ("RS-13.1-order", &[Repeat("/cd.xml", EARLIER_PACKAGE, 1)]),
    (
        "RS-13.1-span",
        &[Replace("/cd.xml", "changedump\" from=\"2026-01-01", "changedump\" from=\"2025-12-01")],
    ),
    ("RS-13.2-path", &[Replace("/c1.xml", " path=\"/1/a.txt\"", "")]),
    (
        "RS-13.2-deleted",
        &[Replace("/c1.xml", "change=\"deleted\"", "change=\"deleted\" path=\"/1/x.txt\"")],
    ),
    ("RS-13.2-interval", &[Replace("/cd.xml", "until=\"2026-01-05", "until=\"2026-01-06")]),
    ("RS-14.2-differs", &[Replace("/cl1.xml", "pri=\"1\"", "pri=\"1\" length=\"99\"")]),
    ("RS-14.2-repeats", &[Replace("/cl1.xml", "pri=\"1\"", "pri=\"1\" length=\"14\"")]),
    ("RS-14.2-self", &[Replace("/cl1.xml", "http://mirror.example/b.txt", "{B}/r/b.txt")]),
    ("RS-14.3-type", &[Replace("/cl1.xml", " type=\"application/pdf\"", "")]),
    ("RS-14.4-type", &[Replace("/cl1.xml", " type=\"text/x-patch\"", "")]),
    ("RS-14.4-where", &[Replace("/cl1.xml", "change=\"updated\"", "change=\"created\"")]),
    ("RS-14.4-path", &[Replace("/c1.xml", " path=\"/1/b.patch\"", "")]),
    (
        "RS-14.6-timegate",
        &[Replace("/cl1.xml", "rel=\"timegate\"", "rel=\"timegate\" type=\"text/html\"")],
    ),
    ("RS-14.6-modified", &[Replace("/cl1.xml", " modified=\"2026-01-04T00:00:00Z\"", "")]),
    ("RS-14.6-once", &[Replace("/cl1.xml", "rel=\"via\"", "rel=\"memento\"")]),
    ("RS-14.8-via", &[Replace("/cl1.xml", "rel=\"timegate\"", "rel=\"via\"")]),
    ("RSA-3-up", &[Replace("/rla.xml", UP, "")]),
    ("RSA-3-time", &[Replace("/rla.xml", "archive\"", "archive\" at=\"2026-01-02T00:00:00Z\"")]),
    ("RSA-3-at", &[Replace("/rla.xml", " at=\"2026-01-01T00:00:00Z\"", "")]),
    ("RSA-5-from", &[Replace("/cla.xml", " from=\"2026-01-01T00:00:00Z\"", "")]),
    ("RSA-3-order", &[Replace("/rla.xml", "at=\"2026-01-01", "at=\"2026-01-03")]),
    ("RSA-2.2-archives", &[Replace("/cl1.xml", "{B}/cla.xml", "{B}/rla.xml")]),
    (
        "RSN-3-root",
        &[
            Replace("/notify/change", "urlset", "sitemapindex"),
            Replace("/notify/change", "<url>", "<sitemap>"),
            Replace("/notify/change", "</url>", "</sitemap>"),
        ],
    ),
    (
        "RSN-3-once",
        &[
            Replace("/notify/change", "{B}/r/d.html", "{B}/r/c.txt"),
            Replace("/notify/change", "2026-01-07", "2026-01-06"),
        ],
    ),
    ("RSCN-3-change", &[Replace("/notify/change", "change=\"created\" ", "")]),
    (
        "RSCN-3-order",
        &[Replace("/notify/change", "datetime=\"2026-01-07", "datetime=\"2026-01-05")],
    ),
    ("RSCN-3-datetime", &[Replace("/notify/change", " datetime=\"2026-01-06T00:00:00Z\"", "")]),
    ("RSFN-3-change", &[Replace("/notify/framework", "change=\"deleted\" ", "")]),
    ("RSFN-3-capability", &[Replace("/notify/framework", " capability=\"resourcedump\"", "")]),
    (
        "RSFN-2.1-change",
        &[Replace(
            "/notify/framework",
            "created\" capability=\"resourced",
            "updated\" capability=\"resourced",
        )],
    ),
    (
        "RSFN-3-index",
        &[Replace("/notify/framework", "<rs:ln rel=\"index\" href=\"{B}/cl.xml\"/>", "")],
    ),
    ("RSFN-2-no-index", &[Replace("/notify/framework", "<loc>{B}/rl1.xml", "<loc>{B}/rl.xml")]),
    ("RSN-2-channels", &[Replace("/caps.xml", "{B}/notify/framework", "{B}/notify/change")]),
    (
        "RSN-5-hub",
        &[
            Replace("/caps.xml", "<rs:ln rel=\"hub\" href=\"{B}/hub\"/>", ""),
            Replace("/caps.xml", "<rs:ln rel=\"hub\" href=\"http://hub.example/\"/>", ""),
        ],
    ),
    ("RSN-4.1-answers", &[Remove("/notify/change")]),
    ("RSN-4.1-type", &[Header("/notify/change", "Content-Type", "text/xml")]),
    (
        "RSN-4.1-self",
        &[Header("/notify/change", "Link", "<{B}/notify/other>; rel=self, <{B}/hub>; rel=hub")],
    ),
    (
        "RSN-4.1-hub",
        &[Header("/notify/change", "Link", "<{B}/notify/change>; rel=self, <{B}/hub>; rel=hub")],
    ),
    (
        "RSN-4.1-head",
        &[ForHead("/notify/change", "Link", "<{B}/notify/change>; rel=self, <{B}/hub>; rel=hub")],
    ),
    (
        "RSN-4.1-empty",
        &[Empty("/notify/change"), Header("/notify/change", "Transfer-Encoding", "chunked")],
    ),
    ("WS-5.1.2-refusal", &[Post("/hub", ("202 Accepted", "text/plain", ""))]),
    ("WALK-limit", &[Few]),
    ("WALK-other-host", &[Replace("/rl.xml", "{B}/rl2.xml", "http://127.0.0.2:1/rl2.xml")]),
];

pub(crate) fn inspect(server: &Server, path: &str, more: impl FnOnce(&mut Options)) -> Report {
    let mut options = Options::new(vec![server.url(path)]);
    options.net.retries = 0;
    more(&mut options);
    validate(&options, &AtomicBool::new(false))
}

pub(crate) fn failure(rule: &str, breaks: &[Break]) -> Option<String> {
    if crate::sdshare::CASES.iter().any(|(other, _)| *other == rule) {
        return crate::sdshare::failure(rule, breaks);
    }
    if crate::emm_cases::CASES.iter().any(|(other, _)| *other == rule) {
        return crate::emm_cases::failure(rule, breaks);
    }
    if crate::resourcesync_0_1::CASES.iter().any(|(other, _)| *other == rule) {
        return crate::resourcesync_0_1::failure(rule, breaks);
    }
    let server = Server::start(|base| broken(base, breaks));
    let report = inspect(&server, "/caps.xml", |options| {
        if matches!(breaks, [Few]) {
            options.max_documents = 5;
        }
        if matches!(breaks, [SmallFiles, ..]) {
            options.max_file_bytes = 10;
        }
    });
    let found = report.findings.iter().any(|found| found.rule.id == rule);
    (!found).then(|| format!("== {rule}\n{}", text(&report)))
}

pub(crate) fn all_cases() -> impl Iterator<Item = &'static (&'static str, &'static [Break])> + Clone
{
    let of_others =
        [crate::sdshare::CASES, crate::emm_cases::CASES, crate::resourcesync_0_1::CASES];
    CASES.iter().chain(of_others.into_iter().flatten())
}

#[test]
fn each_rule_finds_what_breaks_it() {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let cases = all_cases();
                while let Some((rule, breaks)) =
                    cases.clone().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Some(failure) = failure(rule, breaks) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} cases\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn each_rule_has_a_case() {
    let cases: BTreeSet<_> = all_cases().map(|(rule, _)| *rule).collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(
        rules.difference(&cases).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "rules without a case"
    );
    assert_eq!(
        cases.difference(&rules).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "cases without a rule"
    );
    assert_eq!(rules.len(), RULES.len(), "two rules with one id");
}

/// The control of every case.
#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let server = Server::start(|base| broken(base, &[]));
    for path in ["/caps.xml", "/.well-known/resourcesync", "/rl2.xml", "/cl1.xml"] {
        let report = inspect(&server, path, |_| {});
        assert!(report.findings.is_empty(), "{path}\n{}", text(&report));
        assert_eq!((report.read(), report.sampled), (23, 4), "{path}\n{}", text(&report));
    }
}

#[test]
fn the_table_in_the_documentation_has_every_rule() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/validating.md");
    let page = std::fs::read_to_string(page).unwrap();
    let help = "write it with `cargo run -p abreast-validator --example rules_table`";
    assert!(page.ends_with(&abreast_validator::rules_table()), "{help}");
}
