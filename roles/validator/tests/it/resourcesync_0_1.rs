//! A Source of ResourceSync 0.1 that keeps to every rule, ways to break each, and walks of it.

use crate::cases::inspect;
use crate::server::{Answer, Answers, Server};
use crate::site::{Break, Members, break_all, pack, typed};
use Break::{AddFinding, Changed, Members as InPackage, Remove, Repeat, Replace, Swell};
use abreast_testkit::warc::Warc;
use abreast_validator::{
    Mode, Options, Severity, Share, Unreachable, check_document, ndjson, text, validate,
};
use base64::Engine as _;
use md5::{Digest as _, Md5};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

const XML: &str = "application/xml";
const NS: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\"";
const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";
const COINS: &str =
    "<xhtml:link rel=\"DCTERMS.subject\" href=\"http://topics.example/coins\" title=\"Coins\"/>";
const MAPS: &str = "<xhtml:meta name=\"DC.subject\" content=\"Maps\"/>";
const MODIFIED: &str = "<xhtml:meta name=\"DCTERMS.modified\" content=\"2026-01-10T00:00:00Z\"/>";
const SIZE: &str = "<rs:size>5</rs:size>";
const PARTIAL: &str = "<xhtml:link rel=\"http://www.openarchives.org/rs/partial\" \
    rs:protocol=\"https://www.iana.org/assignments/media-types/application/json-patch+json\" href=\"{B}/r/a.patch\"/>";
const CURRENT: &str = "<xhtml:link rel=\"current http://www.openarchives.org/rs/changeset\" href=\"{B}/changes/current.xml\"/>";
const ROOT: &str = "<urlset rs:type=\"changeset\"";
const NO_SITEMAPS: &str = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">\
    <xhtml:meta name=\"DCTERMS.modified\" content=\"2026-01-10T00:00:00Z\"/></sitemapindex>";
const LATE: &str = "<xhtml:link rel=\"describedby\" href=\"{B}/about\"/>";
const OTHERS: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
    <url><loc rs:protocol=\"http://www.openarchives.org/OAI/openarchivesprotocol.html\">{B}/oai</loc></url></urlset>";
pub(crate) const ENTRY: &str =
    "<url><loc>{B}/r/z</loc><lastmod>2026-01-01T00:00:00Z</lastmod></url>\n";

fn document(root: &str, content: &str) -> Vec<u8> {
    let (name, kind) = root.split_once(' ').unwrap_or((root, ""));
    let (gap, head) = (if kind.is_empty() { "" } else { " " }, MODIFIED);
    format!("<?xml version=\"1.0\"?>\n<{name}{gap}{kind} {NS}>\n{head}\n{content}</{name}>\n")
        .into_bytes()
}

fn digest(content: &[u8]) -> String {
    let base64 = base64::engine::general_purpose::STANDARD.encode(Md5::digest(content));
    format!("<rs:fixity type=\"md5\">{base64}</rs:fixity>")
}

fn resource(base: &str, name: &str, more: &str) -> String {
    let fixity = digest(name.repeat(5).as_bytes());
    format!(
        "<url><loc>{base}/r/{name}</loc><lastmod>2026-01-01T00:00:00Z</lastmod>{fixity}{SIZE}\
         <rs:mimetype>text/plain</rs:mimetype>{more}</url>\n"
    )
}

fn change(base: &str, name: &str, kind: &str, day: u32) -> String {
    let time = match kind {
        "deleted" => format!("<expires>2026-01-{day:02}T00:00:00Z</expires>"),
        _ => format!("<lastmod rs:type=\"{kind}\">2026-01-{day:02}T00:00:00Z</lastmod>"),
    };
    format!("<url><loc>{base}/r/{name}</loc>{time}</url>\n")
}

pub(crate) fn members(base: &str) -> Members {
    let path = |name: &str| format!("<rs:path>resources/{name}</rs:path>");
    let manifest = resource(base, "a", &path("a")) + &resource(base, "b", &path("b"));
    vec![
        ("manifest.xml".to_owned(), document("urlset", &manifest)),
        ("resources/a".to_owned(), b"aaaaa".to_vec()),
        ("resources/b".to_owned(), b"bbbbb".to_vec()),
    ]
}

pub(crate) fn good(base: &str) -> Answers {
    let mut answers = Answers::new();
    let mut add = |path: &str, kind: &str, body: Vec<u8>| {
        answers.insert(path.to_owned(), typed(kind, body));
    };
    let list = |path: &str, categories: &str| {
        format!(
            "<sitemap><loc>{base}{path}</loc><lastmod>2026-01-10T00:00:00Z</lastmod>{categories}</sitemap>\n"
        )
    };
    let current = CURRENT.replace("{B}", base);
    let links = format!(
        "{current}<xhtml:link rel=\"http://www.openarchives.org/rs/dump\" href=\"{base}/dump.zip\"/>\
         <xhtml:link href=\"xmpp:pubsub.example\" rs:protocol=\"http://xmpp.org/extensions/xep-0060.html\" rs:pubsubnode=\"changes\"/>\
         <xhtml:link href=\"{base}/subscribe\" rs:protocol=\"urn:abreast:resourcesync-0.1:callback\"/>\n"
    );
    let lists = list("/list1.xml", &format!("{COINS}{MAPS}")) + &list("/list2.xml", COINS);
    add("/sitemap.xml", XML, document("sitemapindex", &format!("{links}{lists}")));
    let mirror = "<xhtml:link rel=\"alternate http://www.openarchives.org/rs/mirror\" href=\"http://mirror.example/a\"/>";
    let one = resource(base, "a", &format!("{COINS}{mirror}")) + &resource(base, "b", MAPS);
    add("/list1.xml", XML, document("urlset", &one));
    add("/list2.xml", XML, document("urlset", &resource(base, "c", COINS)));
    let prev = |path: &str| {
        format!("{current}<xhtml:link rel=\"prev {CHANGE_SET}\" href=\"{base}{path}\"/>\n")
    };
    let set = "urlset rs:type=\"changeset\"";
    let partial = PARTIAL.replace("{B}", base);
    let now = prev("/changes/2.xml")
        + &change(base, "a", "updated", 8).replace("</url>", &format!("{partial}</url>"));
    add("/changes/current.xml", XML, document(set, &now));
    let before = prev("/changes/1.xml") + &change(base, "d", "deleted", 6);
    add("/changes/2.xml", XML, document(set, &before));
    let first =
        current.clone() + &change(base, "c", "created", 3) + &change(base, "d", "created", 4);
    add("/changes/1.xml", XML, document(set, &first));
    for name in ["a", "b", "c"] {
        add(&format!("/r/{name}"), "text/plain", name.repeat(5).into_bytes());
    }
    add("/dump.zip", "application/zip", pack(&members(base)));
    add("/robots.txt", "text/plain", format!("Sitemap: {base}/sitemap.xml\n").into_bytes());
    let host_meta = format!(
        "<XRD xmlns=\"http://docs.oasis-open.org/ns/xri/xrd-1.0\"><Link rel=\"sitemap\" href=\"{base}/sitemap.xml\"/></XRD>"
    );
    add("/.well-known/host-meta", "application/xrd+xml", host_meta.into_bytes());
    answers
}

/// A rule and what breaks it.
pub(crate) const CASES: &[(&str, &[Break])] = &[
    ("RS01-3.1-root", &[Replace("/list1.xml", "sitemap/0.9", "sitemap/0.8")]),
    (
        "RS01-1.2-prefix",
        &[Replace("/changes/2.xml", "rs:type=\"changeset\"", "type=\"changeset\"")],
    ),
    ("RS01-2.1-reachable", &[Remove("/list2.xml")]),
    ("RS01-3.1-modified", &[Replace("/list1.xml", MODIFIED, "")]),
    ("RS01-3.1-modified-value", &[Replace("/list1.xml", "2026-01-10T00:00:00Z", "yesterday")]),
    ("RS01-3.1-read", &[Replace("/list1.xml", "<loc>{B}/r/a</loc>", "\n\n")]),
    ("RS01-3.1-text", &[Replace("/list1.xml", SIZE, "<rs:size>5</rs:size>rs:size")]),
    ("RS01-3.1-order", &[Repeat("/list1.xml", LATE, 1)]),
    ("RS01-3.1-value", &[Replace("/list1.xml", SIZE, "<rs:size>5</rs:size><rs:size>6</rs:size>")]),
    ("RS01-3.1.1-loc", &[Replace("/list1.xml", "<loc>{B}/r/a<", "<loc>\n  {B}/r/a<")]),
    ("RS01-3.1.1-uri", &[Replace("/list1.xml", "<loc>{B}/r/a<", "<loc>r/a<")]),
    ("RS01-3.1.2-datetime", &[Replace("/list1.xml", "01-01T00:00:00Z", "01-01T00:00:00")]),
    ("RS01-3.1.1-once", &[Replace("/list1.xml", "{B}/r/b<", "{B}/r/a<")]),
    ("RS01-3.1.2-future", &[Replace("/list1.xml", "<lastmod>2026", "<lastmod>2126")]),
    ("RS01-3.1.2-time", &[Replace("/list1.xml", "<lastmod>2026-01-01T00:00:00Z</lastmod>", "")]),
    ("RS01-3.1.2-expires", &[Replace("/changes/2.xml", "<expires>2026", "<expires>2996")]),
    ("RS01-3.1.3-fixity", &[Replace("/list1.xml", "==</rs:fixity>", "=</rs:fixity>")]),
    ("RS01-3.1.4-size", &[Replace("/list1.xml", SIZE, "<rs:size>five</rs:size>")]),
    ("RS01-3.1.5-mimetype", &[Replace("/list1.xml", "text/plain", "text")]),
    (
        "RS01-3.1.6-encoding",
        &[Replace("/list1.xml", SIZE, "<rs:contentencoding>g zip</rs:contentencoding>")],
    ),
    ("RS01-3.1.7-link", &[Replace("/list1.xml", " href=\"http://topics.example/coins\"", "")]),
    ("RS01-3.2-items", &[Repeat("/list2.xml", ENTRY, 50_000)]),
    ("RS01-3.2-bytes", &[Swell("/list2.xml", 10 << 20)]),
    ("RS01-3.2-index", &[Replace("/sitemap.xml", "{B}/list2.xml", "{B}/changes/1.xml")]),
    ("RS01-3.2-empty", &[AddFinding("/sitemap.xml", NO_SITEMAPS)]),
    ("RS01-3.2-time", &[Replace("/list1.xml", "2026-01-10", "2026-01-09")]),
    ("RS01-3.2-categories", &[Replace("/sitemap.xml", "Maps", "Medals")]),
    (
        "RS01-3.2-categories-missing",
        &[Replace("/sitemap.xml", COINS, ""), Replace("/sitemap.xml", MAPS, "")],
    ),
    ("RS01-4.2.1-manifest", &[InPackage("/dump.zip", |members| drop(members.remove(0)))]),
    (
        "RS01-4.2.1-path-missing",
        &[InPackage("/dump.zip", |members| {
            in_manifest(members, "<rs:path>resources/a</rs:path>", "");
        })],
    ),
    (
        "RS01-4.2.1-path",
        &[InPackage("/dump.zip", |members| in_manifest(members, "resources/a", "../resources/a"))],
    ),
    (
        "RS01-4.2.1-members",
        &[InPackage("/dump.zip", |members| members.push(("other".to_owned(), Vec::new())))],
    ),
    ("RS01-4.2.1-true", &[InPackage("/dump.zip", |members| members[1].1 = b"other".to_vec())]),
    (
        "RS01-4.3.1-mirror",
        &[Replace(
            "/list1.xml",
            "alternate http://www.openarchives.org/rs/mirror",
            "http://www.openarchives.org/rs/mirror",
        )],
    ),
    (
        "RS01-4.3.2-place",
        &[Replace(
            "/list1.xml",
            "alternate http://www.openarchives.org/rs/mirror",
            "http://www.openarchives.org/rs/partial",
        )],
    ),
    (
        "RS01-4.3.2-protocol",
        &[Replace(
            "/changes/current.xml",
            " rs:protocol=\"https://www.iana.org/assignments/media-types/application/json-patch+json\"",
            "",
        )],
    ),
    ("RS01-4.3.3-resources", &[AddFinding("/sitemap.xml", OTHERS)]),
    ("RS01-5.1-type", &[Replace("/changes/2.xml", " rs:type=\"changeset\"", "")]),
    ("RS01-5.1-time", &[Replace("/changes/current.xml", "2026-01-08T00:00:00Z", "2026-01-08")]),
    ("RS01-5.1-change", &[Replace("/changes/current.xml", " rs:type=\"updated\"", "")]),
    (
        "RS01-5.1-change-set",
        &[
            Replace("/sitemap.xml", "{B}/changes/current.xml", "{B}/other.xml"),
            AddFinding(
                "/other.xml",
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{B}/r/a</loc></url></urlset>",
            ),
        ],
    ),
    (
        "RS01-5.1-identity",
        &[Replace(
            "/changes/1.xml",
            "{B}/r/c</loc><lastmod rs:type=\"created\">2026-01-03",
            "{B}/r/d</loc><lastmod rs:type=\"created\">2026-01-04",
        )],
    ),
    ("RS01-5.2.1-xmpp", &[Replace("/sitemap.xml", " rs:pubsubnode=\"changes\"", "")]),
    (
        "RS01-5.2.1-stanza",
        &[
            Replace(
                "/changes/1.xml",
                ROOT,
                "<iq xmlns=\"jabber:client\"><urlset rs:type=\"changeset\"",
            ),
            Replace("/changes/1.xml", "</urlset>", "</urlset></iq>"),
        ],
    ),
    (
        "RS01-5.2.2-callback",
        &[Replace("/sitemap.xml", "{B}/subscribe", "ftp://ftp.example/subscribe")],
    ),
    (
        "RS01-6.1-prev",
        &[Replace(
            "/changes/1.xml",
            CURRENT,
            "<xhtml:link rel=\"prev http://www.openarchives.org/rs/changeset\" href=\"{B}/changes/2.xml\"/>",
        )],
    ),
    ("RS01-6.1-previous", &[Replace("/changes/2.xml", "\"prev http", "\"previous http")]),
    ("RS01-6.1-current", &[Replace("/changes/current.xml", CURRENT, "")]),
    ("RS01-6.1-gap", &[Replace("/changes/current.xml", "<loc>{B}/r/a<", "<loc>{B}/r/d<")]),
    ("RS01-6.1-chain", &[Replace("/changes/1.xml", "2026-01-04", "2026-01-07")]),
    ("RS01-6.1-closed", &[Changed("/changes/1.xml", "created", "updated")]),
    (
        "RS01-7.1-discovery",
        &[Remove("/robots.txt"), Replace("/.well-known/host-meta", "/sitemap.xml", "/other.xml")],
    ),
];

pub(crate) fn in_manifest(members: &mut Members, from: &str, to: &str) {
    let text = String::from_utf8(members[0].1.clone()).unwrap();
    assert!(text.contains(from));
    members[0].1 = text.replace(from, to).into_bytes();
}

fn broken(base: &str, breaks: &[Break]) -> Answers {
    let mut answers = good(base);
    let mut others = Vec::new();
    for one in breaks {
        if let InPackage(path, change) = one {
            let mut members = members(base);
            change(&mut members);
            answers.get_mut(*path).unwrap().body = pack(&members);
        } else {
            others.push(one.clone());
        }
    }
    break_all(answers, base, &others)
}

pub(crate) fn failure(rule: &str, breaks: &[Break]) -> Option<String> {
    let server = Server::start(|base| broken(base, breaks));
    let report = inspect(&server, "/sitemap.xml", |_| {});
    let found = report.findings.iter().any(|found| found.rule.id == rule);
    (!found).then(|| format!("== {rule}\n{}", text(&report)))
}

#[test]
fn a_source_of_0_1_that_keeps_to_the_rules_has_no_findings() {
    let server = Server::start(good);
    for (path, documents) in
        [("/sitemap.xml", 7), ("/changes/current.xml", 3), ("/changes/1.xml", 1)]
    {
        let report = inspect(&server, path, |options| options.mode = Mode::Strict);
        assert!(report.findings.is_empty(), "{path}\n{}", text(&report));
        assert_eq!(report.documents.len(), documents, "{path}\n{:#?}", report.documents);
        assert!(report.limit.is_none() && report.found_source());
    }
    assert!(!server.requests().iter().any(|path| path.contains("well-known/resourcesync")));
}

#[test]
fn resources_of_a_source_of_0_1_are_sampled() {
    for share in [Share::Some(10), Share::All] {
        // A and c are in change sets too, and may be others by now.
        let breaks = [Replace("/r/a", "a", "x"), Replace("/r/b", "b", "y")];
        let server = Server::start(|base| broken(base, &breaks));
        let report = inspect(&server, "/sitemap.xml", |options| options.sample = share);
        let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
        assert_eq!(found, ["RS-7-hash-true"], "{}", text(&report));
        assert_eq!(report.sampled, 1);
    }
}

#[test]
fn one_place_that_names_the_sitemap_is_enough() {
    for missing in ["/robots.txt", "/.well-known/host-meta"] {
        let server = Server::start(|base| broken(base, &[Remove(missing)]));
        let report = inspect(&server, "/sitemap.xml", |_| {});
        assert!(report.findings.is_empty(), "{}", text(&report));
    }
}

#[test]
fn what_a_good_source_may_leave_out_is_no_fault() {
    let oai = "<url><loc rs:protocol=\"http://www.openarchives.org/OAI/openarchivesprotocol.html\">http://h.example/oai</loc></url>";
    let server = Server::start(|base| {
        let mut many: String =
            (0..100).map(|number| MAPS.replace("Maps", &number.to_string())).collect();
        many.push_str(COINS);
        let list = resource(base, "c", &many) + oai;
        let mut answers = good(base);
        answers.insert("/list2.xml".to_owned(), typed(XML, document("urlset", &list)));
        let dump = answers.get_mut("/dump.zip").unwrap();
        dump.headers.insert("Status".to_owned(), "202 Accepted".to_owned());
        let index = answers.get_mut("/sitemap.xml").unwrap();
        let text = String::from_utf8(index.body.clone()).unwrap();
        let last = text.rfind(COINS).unwrap();
        index.body = [&text[..last], &text[last + COINS.len()..]].concat().into_bytes();
        answers
    });
    let report = inspect(&server, "/sitemap.xml", |options| options.mode = Mode::Strict);
    assert!(report.findings.is_empty(), "{}", text(&report));
    let dump = report.documents.iter().find(|found| found.url.ends_with("/dump.zip")).unwrap();
    assert_eq!(dump.problem.as_deref(), Some("not checked: still being made (202)"));
}

#[test]
fn dumps_in_warc_are_compared_with_their_manifest() {
    const MEMBERS: &[&str] = &["RS01-4.2.1-members"];
    const TRUE: &[&str] = &["RS01-4.2.1-true"];
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
    let cases: [(&str, &[&str]); 14] = [
        ("", &[]),
        ("padded", &[]),
        ("packed", &[]),
        ("head", MEMBERS),
        ("missing", MEMBERS),
        ("stray", MEMBERS),
        ("twice", MEMBERS),
        ("status", MEMBERS),
        ("chunks", MEMBERS),
        ("block", MEMBERS),
        ("bytes", TRUE),
        ("size", TRUE),
        ("torn", MEMBERS),
        ("manifest", &["RS01-4.2.1-manifest"]),
    ];
    for (case, rules) in cases {
        let server = Server::start(|base| {
            let mut warc = if case == "packed" { Warc::new() } else { Warc::plain() };
            let (a, b) = (format!("{base}/r/a"), format!("{base}/r/b"));
            warc.info();
            if case != "manifest" {
                warc.resource(&format!("{base}/dump/manifest.xml"), &members(base)[0].1);
            }
            match case {
                "missing" => &mut warc,
                "status" => warc.response(&b, "HTTP/1.1 404 Not Found\r\n", b"bbbbb"),
                "chunks" => warc.response(&b, chunked, b"5\r\nbb"),
                "head" => {
                    let block = b"HTTP/1.1 200 OK\n\nbbbbb";
                    let fields = warc.fields("response", &b, "application/http", block);
                    warc.record(&fields, block)
                }
                "bytes" => warc.ok(&b, b"bbbbx"),
                "size" => warc.ok(&b, b"bbbbbb"),
                "block" => {
                    let fields = warc.fields("resource", &b, "text/plain", b"other");
                    warc.record(&fields, b"bbbbb")
                }
                _ => warc.response(&b, chunked, b"5\r\nbbbbb\r\n0\r\n\r\n"),
            };
            let revisit = warc.fields("revisit", &a, "application/http", b"");
            // It may have no block.
            let block: &[u8] = if case == "packed" { b"" } else { b"HTTP/1.1 200 OK\r\n\r\n" };
            warc.resource(&a, b"aaaaa").record(&revisit, block);
            match case {
                "stray" => warc.ok("http://elsewhere.example/", b""),
                "twice" => warc.ok(&a, b"aaaaa"),
                _ => &mut warc,
            };
            let mut body = warc.finish();
            if case == "torn" {
                body.truncate(body.len() - 1);
            } else if case == "padded" {
                body.resize(body.len() + 1_000, 0);
            }
            let mut answers = good(base);
            answers.get_mut("/dump.zip").unwrap().body = body;
            answers
        });
        let report = inspect(&server, "/sitemap.xml", |_| {});
        let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
        assert_eq!(found, rules, "{case} {}", text(&report));
    }
    let server = Server::start(|base| {
        let mut answers = good(base);
        answers.get_mut("/dump.zip").unwrap().body = b"other".to_vec();
        answers
    });
    let report = inspect(&server, "/sitemap.xml", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["RS01-4.2.1-manifest"], "{}", text(&report));
}

#[test]
fn dumps_of_0_1_that_are_given_are_judged_by_its_rules() {
    let server = Server::start(good);
    let report = inspect(&server, "/dump.zip", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
    assert_eq!(report.documents[0].name, "ResourceSync 0.1 Dump");
    assert_eq!(report.documents[0].entries, 2);
    let breaks = [InPackage("/dump.zip", |members| members[1].1 = b"other".to_vec())];
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/dump.zip", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["RS01-4.2.1-true"], "{}", text(&report));
    let server = Server::start(|base| {
        let mut answers = good(base);
        answers.get_mut("/dump.zip").unwrap().body = b"WARC/1.1\r\n".to_vec();
        answers
    });
    let report = inspect(&server, "/dump.zip", |_| {});
    assert_eq!(report.documents[0].name, "ResourceSync 0.1 Dump (WARC)");
}

#[test]
fn dumps_in_warc_are_judged_by_themselves() {
    const BASE: &str = "http://source.example";
    let dump = |mut warc: Warc| {
        let manifest = members(BASE)[0].1.clone();
        let text = String::from_utf8(manifest).unwrap();
        // Records are named by their addresses.
        let text = text.replace("resources/", &format!("{BASE}/r/"));
        warc.info().resource(&format!("{BASE}/dump/manifest.xml"), text.as_bytes());
        warc.ok(&format!("{BASE}/r/a"), b"aaaaa").ok(&format!("{BASE}/r/b"), b"bbbbb");
        warc.finish()
    };
    let (packed, plain) = (dump(Warc::new()), dump(Warc::plain()));
    let gzip = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    };
    let warc = "ResourceSync 0.1 Dump (WARC)";
    for (name, body, expected, rules) in [
        ("d.warc.gz", packed.clone(), warc, &[][..]),
        ("d.warc", plain.clone(), warc, &[]),
        ("d", packed.clone(), warc, &[]),
        ("d", plain.clone(), warc, &[]),
        ("D.WARC", packed.clone(), warc, &[]),
        ("d.warc.gz", packed[..packed.len() - 9].to_vec(), warc, &["RS01-4.2.1-members"]),
        ("d.warc", plain[..plain.len() - 9].to_vec(), warc, &["RS01-4.2.1-members"]),
        ("d.warc.gz", packed[..60].to_vec(), warc, &["RS01-4.2.1-manifest", "RS01-4.2.1-members"]),
        ("d.warc.gz", Vec::new(), warc, &["RS01-4.2.1-manifest"]),
        ("d.warc", b"<urlset/>".to_vec(), warc, &["RS01-4.2.1-manifest", "RS01-4.2.1-members"]),
        ("d.warc.gz", gzip(b"hello"), warc, &["RS01-4.2.1-manifest", "RS01-4.2.1-members"]),
        ("d.warc.gz", pack(&members(BASE)), "ResourceSync 0.1 Dump", &[]),
        ("d.zip", b"hello".to_vec(), "", &["RS-11.2-manifest"]),
        // Each record is a gzip member, or none is.
        ("d.warc.gz", gzip(&plain), warc, &["RS01-4.2.1-manifest", "RS01-4.2.1-members"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, &body).unwrap();
        let path = format!("/{name}?x=1");
        let server =
            Server::start(|_| [(path.clone(), typed("application/warc", body.clone()))].into());
        for start in [file.display().to_string(), server.url(&path)] {
            let report = validate(&Options::new(vec![start.clone()]), &AtomicBool::new(false));
            let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
            assert_eq!(found, rules, "{start} {}", text(&report));
            assert!(expected.is_empty() || report.documents[0].name == expected, "{start}");
        }
    }
}

#[test]
fn an_index_that_lists_itself_is_an_error() {
    let breaks = [Replace("/sitemap.xml", "{B}/list2.xml", "{B}/sitemap.xml")];
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/sitemap.xml", |options| options.sample = Share::Some(0));
    let circles: Vec<_> = report.circles().map(|found| found.message.as_str()).collect();
    assert_eq!(circles, ["it names itself"], "{}", text(&report));
}

#[test]
fn findings_have_one_code_and_no_words_of_copies() {
    let text = format!(
        "<urlset {NS}>\n{MODIFIED}\n<url><loc>http://h.example/a</loc><lastmod>08/08/2012</lastmod></url>\n</urlset>\n"
    );
    let found = check_document("d", text.as_bytes(), Mode::Normal);
    let date = found.iter().find(|found| found.rule.id == "RS01-3.1.2-datetime").unwrap();
    assert!(
        !date.message.contains("left out") && !date.message.contains("rs."),
        "{}",
        date.message
    );
}

#[test]
fn documents_of_0_1_are_shown_as_a_tree() {
    let server = Server::start(good);
    let report = inspect(&server, "/sitemap.xml", |options| options.sample = Share::Some(0));
    let shown: Vec<_> =
        report.documents.iter().map(|found| (found.name.as_str(), found.parent)).collect();
    assert_eq!(
        shown,
        [
            ("ResourceSync 0.1 Sitemap Index", None),
            ("ResourceSync 0.1 Sitemap", Some(0)),
            ("ResourceSync 0.1 Sitemap", Some(0)),
            ("ResourceSync 0.1 Change Set", Some(0)),
            ("ResourceSync 0.1 Change Set", Some(3)),
            ("ResourceSync 0.1 Change Set", Some(4)),
            ("ResourceSync 0.1 Dump", Some(0)),
        ]
    );
    assert_eq!(report.documents[3].until.unwrap().to_string(), "2026-01-10T00:00:00Z");
    assert!(ndjson(&report).contains("ResourceSync 0.1 Dump"));
}

#[test]
fn documents_of_0_1_without_an_end_are_incomplete() {
    for path in ["/list1.xml", "/changes/current.xml"] {
        let server = Server::start(move |base| {
            let mut answers = good(base);
            if let Some(answer) = answers.get_mut(path) {
                let length = answer.body.len();
                answer.body.truncate(length - 20);
            }
            answers
        });
        let report = inspect(&server, path, |_| {});
        let problem = report.documents[0].problem.clone().unwrap_or_default();
        assert!(problem.contains("the document ends inside"), "{path}: {problem}");
    }
}

#[test]
fn a_source_of_0_1_is_found_through_robots_txt() {
    let server = Server::start(good);
    let report = inspect(&server, "/", |_| {});
    assert!(report.documents.iter().any(|found| found.name.contains("0.1 Sitemap Index")));
}

/// Whether the Sitemap of the good Source is found from an address, and which rules are broken.
fn found_from(address: &str, change: impl FnOnce(&mut Answers, &str)) -> (bool, Vec<&'static str>) {
    let server = Server::start(|base| {
        let mut answers = good(base);
        answers.remove("/robots.txt");
        answers.remove("/.well-known/host-meta");
        change(&mut answers, base);
        answers
    });
    let report = inspect(&server, address, |options| options.sample = Share::Some(0));
    let found = report.documents.iter().any(|found| found.name.contains("0.1 Sitemap Index"));
    let has_problem = report.documents.iter().any(|document| document.problem.is_some());
    assert!(!(found && has_problem), "{address} {}", text(&report));
    (found, report.findings.iter().map(|found| found.rule.id).collect())
}

#[test]
fn a_plain_index_over_0_1_is_read_as_0_1() {
    let index = |base: &str, paths: &[&str]| {
        let entry = |path: &&str| format!("<sitemap><loc>{base}{path}</loc></sitemap>");
        let text = format!(
            "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{}</sitemapindex>",
            paths.iter().map(entry).collect::<String>()
        );
        typed(XML, text.into_bytes())
    };
    for (address, first) in
        [("/plain.xml", "/list1.xml"), ("/plain.xml", "/inner.xml"), ("/", "/list1.xml")]
    {
        for named in ["/robots.txt", "/.well-known/host-meta"] {
            let server = Server::start(|base| {
                let mut answers = good(base);
                answers.insert("/plain.xml".to_owned(), index(base, &[first, "/list2.xml"]));
                answers.insert("/inner.xml".to_owned(), index(base, &["/list1.xml"]));
                answers.retain(|path, _| path != "/robots.txt" && path != "/.well-known/host-meta");
                let text = String::from_utf8(good(base)[named].body.clone()).unwrap();
                let text = text.replace("/sitemap.xml", "/plain.xml");
                answers.insert(named.to_owned(), typed("text/plain", text.into_bytes()));
                answers
            });
            let report = inspect(&server, address, |_| {});
            let name = |path: &str| {
                let url = server.url(path);
                let found = report.documents.iter().find(|document| document.url == url);
                found.map(|document| (document.name.as_str(), document.read))
            };
            let all =
                format!("{address} {first} {named} {} {:#?}", text(&report), report.documents);
            assert_eq!(name("/plain.xml"), Some(("ResourceSync 0.1 Sitemap Index", true)), "{all}");
            for path in ["/list1.xml", "/list2.xml"] {
                assert_eq!(name(path), Some(("ResourceSync 0.1 Sitemap", true)), "{path} {all}");
            }
            assert!(!report.findings.iter().any(|found| found.rule.id == "RS-7-md"), "{all}");
        }
    }
}

#[test]
fn sitemaps_with_addresses_of_oai_pmh_only_are_refused() {
    for (breaks, is_refused) in [
        (vec![AddFinding("/sitemap.xml", OTHERS)], true),
        (vec![AddFinding("/list1.xml", OTHERS)], false),
        (vec![AddFinding("/list1.xml", OTHERS), AddFinding("/list2.xml", OTHERS)], true),
        // A Sitemap that was not read may have resources.
        (vec![AddFinding("/list1.xml", OTHERS), Remove("/list2.xml")], false),
    ] {
        let server = Server::start(|base| broken(base, &breaks));
        let report = inspect(&server, "/sitemap.xml", |_| {});
        let problem = report.documents[0].problem.clone().unwrap_or_default();
        let words = "lists no resource, only addresses of other protocols, such as OAI-PMH: ";
        assert_eq!(problem.contains(words), is_refused, "{problem} {}", text(&report));
        let mut found = report.findings.iter();
        let found =
            found.any(|found| found.rule.id == "RS01-4.3.3-resources" && found.message == problem);
        assert_eq!(found, is_refused, "{}", text(&report));
    }
}

#[test]
fn a_plain_index_over_plain_sitemaps_remains_plain() {
    let server = Server::start(|base| {
        let list = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{B}/r/a</loc></url></urlset>";
        let index = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><sitemap><loc>{B}/1.xml</loc></sitemap></sitemapindex>";
        let answer = |text: &str| typed(XML, text.replace("{B}", base).into_bytes());
        Answers::from([
            ("/plain.xml".to_owned(), answer(index)),
            ("/1.xml".to_owned(), answer(list)),
        ])
    });
    let report = inspect(&server, "/plain.xml", |_| {});
    assert!(report.findings.iter().any(|found| found.rule.id == "RS-7-md"), "{}", text(&report));
    assert!(!report.documents.iter().any(|document| document.name.contains("0.1")));
    // Without a walk no other document is requested.
    let alone = inspect(&server, "/plain.xml", |options| options.walk = false);
    assert_eq!(alone.read(), 1);
    assert_eq!(server.requests().iter().filter(|path| *path == "/1.xml").count(), 1);
}

/// Makes what a site answers at one of its addresses, for its base.
type Make<'a> = &'a dyn Fn(&str) -> Answer;

#[test]
fn a_source_of_0_1_is_found_wherever_its_site_names_it() {
    let json = |base: &str, path: &str| {
        let text = format!("{{\"links\":[{{\"rel\":\"sitemap\",\"href\":\"{base}{path}\"}}]}}");
        typed("application/json", text.into_bytes())
    };
    let xrd = |base: &str| good(base)["/.well-known/host-meta"].clone();
    let page =
        |head: &str| typed("text/html", format!("<!DOCTYPE html><head>{head}</head>").into_bytes());
    let (host_meta, in_json) = ("/.well-known/host-meta", "/.well-known/host-meta.json");
    let in_json_only = |base: &str| json(base, "/sitemap.xml");
    let link = |_: &str| page("<link rel=sitemap href=/sitemap.xml>");
    let nowhere = &["RS01-7.1-discovery"][..];
    let cases: [(&str, &str, Make<'_>, &[&str]); 7] = [
        ("/", host_meta, &xrd, &[]),
        ("/", in_json, &in_json_only, &[]),
        (host_meta, host_meta, &xrd, &[]),
        (in_json, in_json, &in_json_only, &[]),
        ("/", "/", &link, nowhere),
        ("/page", "/page", &link, nowhere),
        // A site without anything but the usual name.
        ("/", "/unused", &link, nowhere),
    ];
    for (address, path, make, rules) in cases {
        let (found, broken) = found_from(address, |answers, base| {
            answers.insert(path.to_owned(), make(base));
        });
        assert_eq!((found, broken.as_slice()), (true, rules), "{address} {path}");
    }
    // What is named must be there.
    let (found, broken) = found_from("/", |answers, base| {
        answers.insert(in_json.to_owned(), json(base, "/lost.xml"));
        answers.remove("/sitemap.xml");
    });
    assert!(!found && broken.contains(&"RS01-2.1-reachable"), "{broken:?}");
}

#[test]
fn a_root_without_a_page_is_no_fault_of_a_source_of_0_1() {
    let robots = |answers: &mut Answers, base: &str| {
        let text = format!("Sitemap: {base}/sitemap.xml\n");
        answers.insert("/robots.txt".to_owned(), typed("text/plain", text.into_bytes()));
    };
    assert_eq!(found_from("/", robots), (true, Vec::new()));
    let (found, broken) = found_from("/", |answers, _| drop(answers.remove("/sitemap.xml")));
    assert_eq!((found, broken.as_slice()), (false, &["RS-6.2-reachable"][..]));
}

#[test]
fn a_dump_that_is_still_being_made_is_not_judged() {
    for path in ["/dump.zip", "/dump", "/dump.warc.gz", "/sitemap.xml"] {
        let server = Server::start(|base| {
            let mut answers = good(base);
            let mut answer = typed("text/plain", b"being made".to_vec());
            answer.headers.insert("Status".to_owned(), "202 Accepted".to_owned());
            answers.insert(path.to_owned(), answer);
            answers
        });
        let report = inspect(&server, path, |_| {});
        assert!(report.findings.is_empty(), "{path} {}", text(&report));
        let problem = report.documents[0].problem.as_deref();
        assert_eq!(problem, Some("not checked: still being made (202)"), "{path}");
        assert_eq!(report.unreachable, Some(Unreachable::Making), "{path}");
        assert!(text(&report).contains("still being made (202)"), "{path} {}", text(&report));
        assert!(server.requests().iter().all(|asked| asked == path), "{:?}", server.requests());
    }
}

#[test]
fn limits_end_the_walk_of_a_source_of_0_1() {
    let server = Server::start(good);
    let few = inspect(&server, "/sitemap.xml", |options| options.max_documents = 3);
    assert_eq!(few.limit, Some("--max-documents"));
    let alone = inspect(&server, "/sitemap.xml", |options| options.walk = false);
    assert_eq!((alone.read(), alone.entries()), (1, 2));
    let small = inspect(&server, "/sitemap.xml", |options| options.max_bytes = 2_000);
    assert_eq!(small.limit, Some("--max-bytes"), "{}", text(&small));
}

#[test]
fn chains_without_end_and_other_hosts_are_left() {
    let server = Server::start(|base| {
        let mut answers = good(base);
        let set = answers["/changes/2.xml"].clone();
        for number in 0..200 {
            let mut next = set.clone();
            let text = String::from_utf8(next.body).unwrap();
            next.body = text.replace("/changes/1.xml", &format!("/{}", number + 1)).into_bytes();
            answers.insert(format!("/{number}"), next);
        }
        answers
    });
    let report = inspect(&server, "/0", |options| options.max_documents = 20);
    assert_eq!((report.limit, report.read() <= 21), (Some("--max-documents"), true));
    let breaks = [Replace("/changes/current.xml", "{B}/changes/2.xml", "http://127.0.0.2:1/2.xml")];
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/changes/current.xml", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["WALK-other-host"], "{}", text(&report));
}

#[test]
fn a_manifest_given_alone_has_a_path_for_each_entry() {
    let manifest = String::from_utf8(members("http://h.example").remove(0).1).unwrap();
    let found = |text: &str| {
        let found = check_document("manifest.xml", text.as_bytes(), Mode::Normal);
        found.iter().map(|found| found.rule.id).collect::<Vec<_>>()
    };
    assert_eq!(found(&manifest), Vec::<&str>::new());
    let without = manifest.replace("<rs:path>resources/b</rs:path>", "");
    assert_eq!(found(&without), ["RS01-4.2.1-path-missing"]);
}

#[test]
fn misprints_are_named_with_their_place() {
    let text = format!(
        "<urlset rs:type=\"changeset\" {NS}>\n{MODIFIED}\n<url><loc>http://h.example/a</sm:loc>\
         <lastmod>2026-01-01T00:00:00Z</lastmod></url>\n<url><loc>http://h.example/b</loc></url>\n<urlset>\n"
    );
    let found = check_document("d", text.as_bytes(), Mode::Normal);
    let shown: Vec<_> =
        found.iter().map(|found| (found.rule.id, found.line, found.severity)).collect();
    let rules: BTreeSet<_> = shown.iter().copied().map(|(id, line, _)| (id, line)).collect();
    assert_eq!(
        rules,
        BTreeSet::from([
            ("XML-2.1-well-formed", 3),
            ("RS01-5.1-change", 3),
            ("RS01-5.1-change", 4)
        ])
    );
    assert!(shown.iter().all(|(_, _, severity)| *severity == Severity::Error), "{shown:?}");
    assert_eq!(found.iter().map(|found| 1 + found.more).sum::<u64>(), 4);
}
