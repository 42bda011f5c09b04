//! More ways to break a rule than the one in `cases.rs`: documents that are wrong in a place, a form or a
//! combination of their own. A row is what is wrong, the rule that finds it, and the edits of the good Source.

use crate::cases::{failure, inspect};
use crate::server::Server;
use crate::site::{Break, broken};
use Break::{AddFinding, ForHead, Header, Repeat, Replace, SmallFiles};
use abreast_validator::{Finding, Severity, text};
use std::collections::BTreeSet;

const DESCRIPTION: &str = "/.well-known/resourcesync";
/// The entries of the Change List Index without their intervals.
const NO_CLOSED: Break =
    Replace("/cl.xml", "<rs:md from=\"2026-01-01T00:00:00Z\" until=\"2026-01-05T00:00:00Z\"/>", "");
const NO_OPEN: Break = Replace("/cl.xml", "<rs:md from=\"2026-01-05T00:00:00Z\"/>", "");
const NO_INTERVAL_OF_PACKAGE: Break =
    Replace("/cd.xml", " from=\"2026-01-01T00:00:00Z\" until=\"2026-01-05T00:00:00Z\"/>", "/>");
const NOTIFIED: &str =
    "<url><loc>{B}/rd.xml</loc><rs:md change=\"created\" capability=\"resourcedump\"/></url>";

const LATER_PACKAGE: &str = "<url><loc>{B}/c9.zip</loc><rs:md type=\"application/zip\" length=\"9\" \
    from=\"2026-01-06T00:00:00Z\" until=\"2026-01-07T00:00:00Z\"/></url>";
const INDEX: &str = "<rs:ln rel=\"index\" href=\"{B}/rl.xml\"/>";
const TWO_INDEXES: &str =
    "<rs:ln rel=\"index\" href=\"{B}/rl.xml\"/><rs:ln rel=\"index\" href=\"{B}/cl.xml\"/>";
const NO_CAPABILITIES: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
    <rs:ln rel=\"up\" href=\"{B}/.well-known/resourcesync\"/><rs:md capability=\"capabilitylist\"/></urlset>";

const IIIF_TYPE: &str = "\"type\":\"http://ns.example/Term\",";
const CANONICAL: &str = "\"type\":\"http://ns.example/Term\",\"canonical\":\"a\",";
const PROVIDER_WITHOUT_LABEL: &str =
    "\"type\":\"http://ns.example/Term\",\"provider\":[{\"id\":\"urn:x:1\",\"type\":\"Agent\"}],";
const PROVIDER_OF_A_TYPE: &str = "\"type\":\"http://ns.example/Term\",\
    \"provider\":[{\"id\":\"urn:x:1\",\"type\":\"Person\",\"label\":{\"en\":[\"A\"]}}],";
const PROVIDER_OF_URN: &str = "\"type\":\"http://ns.example/Term\",\
    \"provider\":[{\"id\":\"urn:x:1\",\"type\":\"Agent\",\"label\":{\"en\":[\"A\"]}}],";
const MOVE: &str = "\"type\":\"Move\",\
    \"target\":{\"id\":\"http://h.example/z\",\"type\":\"Manifest\",\"seeAlso\":{}}";
const PROVIDER: &str = "\"type\":\"http://ns.example/Term\",\"provider\":{},";
/// 2,048 characters.
pub(crate) const LONG_URI: &str = {
    const LONG: [u8; 2_048] = {
        let (mut text, begin) = ([b'a'; 2_048], b"http://h/");
        let mut at = 0;
        while at < begin.len() {
            text[at] = begin[at];
            at += 1;
        }
        text
    };
    match std::str::from_utf8(&LONG) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// What is wrong, the rule, and the edits.
type Mutant = (&'static str, &'static str, &'static [Break]);

const MUTANTS: &[Mutant] = &[
    (
        "lists in another order, their times in the lists only",
        "RS-12.2-order",
        &[NO_CLOSED, NO_OPEN, Replace("/cl1.xml", "from=\"2026-01-01", "from=\"2026-01-06")],
    ),
    (
        "an index that begins before its lists, their times in the lists only",
        "RS-12.2-span",
        &[NO_CLOSED, NO_OPEN, Replace("/cl.xml", "from=\"2026-01-01", "from=\"2025-12-01")],
    ),
    (
        "an index that ends after its lists, their times in the lists only",
        "RS-12.2-span",
        &[
            NO_CLOSED,
            NO_OPEN,
            Replace(
                "/cl.xml",
                "from=\"2026-01-01T00:00:00Z\"",
                "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-09T00:00:00Z\"",
            ),
        ],
    ),
    (
        "an open list before another, their times in the lists only",
        "RS-12.2-last",
        &[NO_CLOSED, NO_OPEN, Replace("/cl1.xml", " until=\"2026-01-05T00:00:00Z\"", "")],
    ),
    (
        "a gap between lists, one time in the index only",
        "RS-12.2-gap",
        &[NO_CLOSED, Replace("/cl.xml", "<rs:md from=\"2026-01-05", "<rs:md from=\"2026-01-06")],
    ),
    (
        "a Change Dump that begins before its package, the time in the manifest only",
        "RS-13.1-span",
        &[NO_INTERVAL_OF_PACKAGE, Replace("/cd.xml", "from=\"2026-01-01", "from=\"2025-12-01")],
    ),
    (
        "a resource twice in a list on one line",
        "RS-10.1-once",
        &[Replace("/rl1.xml", "\n", " "), Replace("/rl1.xml", "{B}/r/b.txt", "{B}/r/a.txt")],
    ),
    (
        "a wrong length of a resource above --max-size",
        "RS-7-length-true",
        &[SmallFiles, Replace("/rl1.xml", "length=\"14\"", "length=\"15\"")],
    ),
    (
        "a length below --max-size of a resource above it",
        "RS-7-length-true",
        &[SmallFiles, Replace("/rl1.xml", "length=\"14\"", "length=\"9\"")],
    ),
    ("a resource above --max-size that is not read", "WALK-limit", &[SmallFiles]),
    (
        "a wrong length of a package above --max-size",
        "RS-7-length-true",
        &[SmallFiles, Replace("/cd.xml", "length=\"", "length=\"9")],
    ),
    (
        "a Source Description in a Source Description",
        "RS-8-capability",
        &[Replace(DESCRIPTION, "\"capabilitylist\"", "\"description\"")],
    ),
    (
        "a manifest as `sitemapindex`",
        "RS-11.2-manifest",
        &[
            Replace("/p1.xml", "urlset", "sitemapindex"),
            Replace("/p1.xml", "<url>", "<sitemap>"),
            Replace("/p1.xml", "</url>", "</sitemap>"),
        ],
    ),
    (
        "the path of a patch leads out of the package",
        "RS-11.2-safe",
        &[Replace("/c1.xml", "path=\"/1/b.patch\"", "path=\"../../etc/passwd\"")],
    ),
    (
        "the path of a patch without a slash",
        "RS-11.2-slash",
        &[Replace("/c1.xml", "path=\"/1/b.patch\"", "path=\"1/b.patch\"")],
    ),
    (
        "one path for two bitstreams",
        "RS-11.2-all",
        &[Replace("/p1.xml", "/files/b.txt", "/files/a.txt")],
    ),
    (
        "one path for a bitstream and a patch",
        "RS-11.2-all",
        &[Replace("/c1.xml", "path=\"/1/b.patch\"", "path=\"/1/b.txt\"")],
    ),
    (
        "the path of the manifest itself",
        "RS-11.2-safe",
        &[Replace("/p1.xml", "/files/a.txt", "/manifest.xml")],
    ),
    (
        "a document twice in a Framework Notification, without times",
        "RSN-3-once",
        &[Repeat("/notify/framework", NOTIFIED, 2)],
    ),
    ("a loc without a host", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "http://")]),
    ("a loc with an empty host", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "http:///x")]),
    ("a loc with a port only", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "http://:80/x")]),
    ("a port too large", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "http://h:99999/")]),
    ("a port of letters", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "http://h:x/")]),
    ("a host in brackets", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "https://[zz]/")]),
    (
        "an impossible IPv4 address",
        "RS-7-uri",
        &[Replace("/rl1.xml", "{B}/r/a.txt", "http://1.2.3.999/")],
    ),
    ("a loc without slashes", "RS-7-uri", &[Replace("/rl1.xml", "{B}/r/a.txt", "http:x")]),
    (
        "an href without a host",
        "RS-7-uri",
        &[Replace("/cl1.xml", "http://origin.example/b.txt", "http:///b.txt")],
    ),
    (
        "an entity without a host",
        "AS-4.1-id",
        &[
            Replace("/emm10/page/1", "{B}/id/a\"", "http:///a\""),
            Replace("/emm10/page/2", "{B}/id/a\"", "http:///a\""),
        ],
    ),
    (
        "an entity with an impossible port",
        "AS-4.1-id",
        &[
            Replace("/emm10/page/1", "{B}/id/a\"", "http://h:99999/a\""),
            Replace("/emm10/page/2", "{B}/id/a\"", "http://h:99999/a\""),
        ],
    ),
    (
        "a link with an impossible port",
        "AS-2.2-absolute",
        &[Replace("/emm10/page/1", "{B}/id/a.nt", "http://h:99999/a")],
    ),
    ("a priority with a sign", "RS-7-pri", &[Replace("/cl1.xml", "pri=\"1\"", "pri=\"+1\"")]),
    (
        "a media type with a broken parameter",
        "RS-7-type",
        &[Replace("/rl1.xml", "text/plain", "text/plain; charset")],
    ),
    (
        "two digests of one algorithm",
        "RS-7-hash-once",
        &[Replace("/rl1.xml", "hash=\"md5:", "hash=\"md5:1e0d5cb8ef6ba40c99b14c0237be735e MD5:")],
    ),
    (
        "a second of 60",
        "RS-7-datetime-form",
        &[Replace(
            "/cl2.xml",
            "datetime=\"2026-01-07T00:00:00Z",
            "datetime=\"2026-01-07T00:00:60Z",
        )],
    ),
    (
        "a change of next century",
        "RS-7-future",
        &[Replace("/cl2.xml", "datetime=\"2026-01-07", "datetime=\"2126-01-07")],
    ),
    (
        "an `at` of next century",
        "RS-7-future",
        &[Replace("/rl1.xml", "at=\"2026-01-10", "at=\"2126-01-10")],
    ),
    ("a hole between packages", "RS-13.1-span", &[Repeat("/cd.xml", LATER_PACKAGE, 1)]),
    (
        "a package that begins before its dump",
        "RS-13.1-span",
        &[Replace("/cd.xml", "changedump\" from=\"2026-01-01", "changedump\" from=\"2026-01-02")],
    ),
    (
        "a package that ends after its dump",
        "RS-13.1-span",
        &[Replace(
            "/cd.xml",
            "changedump\" from=\"2026-01-01T00:00:00Z\"",
            "changedump\" from=\"2026-01-01T00:00:00Z\" until=\"2026-01-04T00:00:00Z\"",
        )],
    ),
    (
        "a package behind the end of its dump",
        "RS-13.1-span",
        &[
            Replace(
                "/cd.xml",
                "changedump\" from=\"2026-01-01T00:00:00Z\"",
                "changedump\" from=\"2026-01-01T00:00:00Z\" until=\"2026-01-05T00:00:00Z\"",
            ),
            Repeat("/cd.xml", LATER_PACKAGE, 1),
        ],
    ),
    (
        "an encoding that readers refuse",
        "SITEMAP-utf-8",
        &[Replace("/rl1.xml", "\"UTF-8\"", "\"EUC-JP\"")],
    ),
    ("two links `index`", "RS-6.2-up-once", &[Replace("/rl1.xml", INDEX, TWO_INDEXES)]),
    (
        "a Capability List without documents",
        "RS-8-entries",
        &[AddFinding("/caps.xml", NO_CAPABILITIES)],
    ),
    (
        "a change behind the time of its set",
        "RS01-3.1.2-future",
        &[Replace("/changes/current.xml", "2026-01-08", "2026-01-11")],
    ),
    (
        "a URI in two Sitemaps of an index",
        "RS01-3.1.1-once",
        &[Replace("/list2.xml", "{B}/r/c<", "{B}/r/a<")],
    ),
    (
        "a first change set without `rs:type`",
        "RS01-5.1-type",
        &[Replace("/changes/1.xml", " rs:type=\"changeset\"", "")],
    ),
    (
        "a patch of another entity at `instrument.id`",
        "EMM01-4.2-subject",
        &[Replace("/emm01/activity/3/instrument/1", "D <{B}/id/a>", "D <{B}/id/z>")],
    ),
    (
        "`canonical` that is no URI",
        "IIIF-3.3-members",
        &[Replace("/iiif/page/1", IIIF_TYPE, CANONICAL)],
    ),
    (
        "`provider` that is no array",
        "IIIF-3.3-members",
        &[Replace("/iiif/page/1", IIIF_TYPE, PROVIDER)],
    ),
    (
        "`provider` without `label`",
        "IIIF-3.3-members",
        &[Replace("/iiif/page/1", IIIF_TYPE, PROVIDER_WITHOUT_LABEL)],
    ),
    (
        "`provider` that is no agent",
        "IIIF-3.3-members",
        &[Replace("/iiif/page/1", IIIF_TYPE, PROVIDER_OF_A_TYPE)],
    ),
    (
        "`seeAlso` of `target` that is no array",
        "IIIF-3.3-members",
        &[Replace("/iiif/page/1", "\"type\":\"Create\"", MOVE)],
    ),
    ("a package twice", "RS-6.1-once-other", &[Replace("/rd.xml", "{B}/p2.zip", "{B}/p1.zip")]),
    (
        "a Change List Index that names itself",
        "RS-6.1-once-other",
        &[Replace("/cl.xml", "{B}/cl2.xml", "{B}/cl.xml")],
    ),
    (
        "a Content-Encoding that the list does not state",
        "RS-7-encoding-true",
        &[Header("/r/a.txt", "Content-Encoding", "gzip")],
    ),
    (
        "a resource that is still being made",
        "RS-10.1-available",
        &[Header("/r/a.txt", "Status", "202 Accepted")],
    ),
    (
        "a list that is still being made",
        "RS-6.2-reachable",
        &[Header("/rl1.xml", "Status", "202 Accepted")],
    ),
    (
        "a resource of a fragment without a host",
        "SDS-5.1.5-resource",
        &[Replace("/s/fragments", "<sd:resource>http://id.example/a<", "<sd:resource>http:///a<")],
    ),
    (
        "a lost `<` before an entry's `rs:md`",
        "RS-7-text",
        &[Replace("/rl1.xml", "<rs:md hash", "rs:md hash")],
    ),
    (
        "a lost `<` before the document's `rs:md`",
        "RS-7-text",
        &[Replace("/rl1.xml", "<rs:md capability", "rs:md capability")],
    ),
];

#[test]
fn each_mutant_is_found_by_its_rule() {
    let failures: Vec<_> = MUTANTS
        .iter()
        .filter_map(|(what, rule, breaks)| Some(format!("{what}: {}", failure(rule, breaks)?)))
        .collect();
    assert!(failures.is_empty(), "{} mutants\n{}", failures.len(), failures.join("\n"));
}

/// A second entry is a problem where copies refuse the document, and else a warning.
#[test]
fn second_entries_are_judged_as_copies_do() {
    for (path, change, severity) in [
        ("/rl.xml", Replace("/rl.xml", "{B}/rl2.xml", "{B}/rl1.xml"), Severity::Error),
        ("/cl.xml", Replace("/cl.xml", "{B}/cl2.xml", "{B}/cl1.xml"), Severity::Warning),
        ("/rd.xml", Replace("/rd.xml", "{B}/p2.zip", "{B}/p1.zip"), Severity::Warning),
    ] {
        let server = Server::start(|base| broken(base, &[change]));
        let report = inspect(&server, "/caps.xml", |_| {});
        let again = |found: &&Finding| found.message.contains("more than once");
        let found: Vec<_> = report.findings.iter().filter(again).collect();
        let is_it = |found: &&Finding| found.severity == severity && found.url.ends_with(path);
        assert!(!found.is_empty() && found.iter().all(is_it), "{path}\n{}", text(&report));
        let mut documents = report.documents.iter();
        let document = documents.find(|document| document.url.ends_with(path)).unwrap();
        assert_eq!(document.problem.is_some(), severity == Severity::Error, "{path}");
    }
}

#[test]
fn a_provider_of_iiif_may_be_a_urn() {
    let breaks = [Replace("/iiif/page/1", IIIF_TYPE, PROVIDER_OF_URN)];
    assert!(failure("IIIF-3.3-members", &breaks).is_some());
}

/// Servers that state no length to HEAD, or a wrong one: what GET states counts.
#[test]
fn answers_to_head_are_no_faults() {
    let rows: &[(&str, &[Break], &[&str])] = &[
        ("405", &[ForHead("/r/b.txt", "Status", "405 Method Not Allowed")], &["WALK-limit"]),
        ("501", &[ForHead("/r/b.txt", "Status", "501 Not Implemented")], &["WALK-limit"]),
        ("404", &[ForHead("/r/b.txt", "Status", "404 Not Found")], &["WALK-limit"]),
        ("0", &[ForHead("/r/b.txt", "Content-Length", "0")], &["WALK-limit"]),
        ("none", &[Header("/r/b.txt", "Transfer-Encoding", "chunked")], &["WALK-limit"]),
        (
            "405, and another length",
            &[
                ForHead("/r/b.txt", "Status", "405 Method Not Allowed"),
                Replace("/rl1.xml", "length=\"14\"", "length=\"15\""),
            ],
            &["RS-7-length-true", "WALK-limit"],
        ),
    ];
    for (what, breaks, expected) in rows {
        let server = Server::start(|base| broken(base, breaks));
        let report = inspect(&server, "/rl1.xml", |options| {
            options.max_file_bytes = 10;
            options.depth = 0;
        });
        let found = report.findings.iter().filter(|found| found.url.ends_with("/rl1.xml"));
        let found: BTreeSet<_> = found.map(|found| found.rule.id).collect();
        assert_eq!(found, expected.iter().copied().collect(), "{what}\n{}", text(&report));
    }
}

/// Content-Length of an encoded answer is the length of other bytes.
#[test]
fn lengths_of_encoded_answers_are_not_compared() {
    let breaks = [
        Header("/r/b.txt", "Content-Encoding", "gzip"),
        Header("/c1.zip", "Content-Encoding", "gzip"),
        Replace("/rl1.xml", "length=\"14\"", "length=\"15\""),
        Replace("/cd.xml", "length=\"", "length=\"9"),
    ];
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/caps.xml", |options| options.max_file_bytes = 10);
    let is_wrong = |found: &Finding| found.rule.id == "RS-7-length-true";
    assert!(!report.findings.iter().any(is_wrong), "{}", text(&report));
}

#[test]
fn answers_of_a_proxy_are_successes() {
    let paths = ["/r/a.txt", "/rl1.xml", "/p1.zip", "/caps.xml"];
    let breaks = paths.map(|path| Header(path, "Status", "203 Non-Authoritative Information"));
    let server = Server::start(|base| broken(base, &breaks));
    let report = inspect(&server, "/caps.xml", |_| {});
    // The server answers no condition then.
    let found = report.findings.iter().filter(|found| found.rule.id != "HTTP-13.1-conditional");
    assert_eq!(found.count(), 0, "{}", text(&report));
}
