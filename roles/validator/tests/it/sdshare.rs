//! A server of SDShare that keeps to every rule, ways to break each, and walks of it.

use crate::cases::inspect;
use crate::server::{Answers, Server};
use crate::site::{Break, break_all, typed};
use Break::{Accept, AddFinding, Header, Once, Remove, Replace};
use abreast_validator::{Mode, Options, Severity, Share, check_document, ndjson, text, validate};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;

/// Of the draft of 2010.
const OLDER: &str = "http://www.egovpt.org/sdshare/";
const ATOM: &str = "application/atom+xml";
const NT: &str = "application/n-triples";
const TTL: &str = "text/turtle";

const FRAGMENTS: &str = "/s/fragments";
const SECOND: &str = "/s/fragments?page=2";
const SINCE: &str = "/s/fragments?since=2026-01-04T00:00:00.000000Z";
const SINCE_EAST: &str = "/s/fragments?since=2026-01-04T01:00:00.000000%2B01:00";
const SINCE_LATER: &str = "/s/fragments?since=3000-01-01T00:00:00.000000Z";
const YESTERDAY: &str = "/s/fragments?since=yesterday";
/// Since the snapshot.
const SINCE_SNAPSHOT: &str = "/s/fragments?since=2026-01-03T00:00:00.000000Z";

fn feed(title: &str, day: u32, links: &str, entries: &str) -> Vec<u8> {
    format!(
        "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sd=\"http://www.sdshare.org/2012/core/\">\n\
         <title>{title}</title><id>urn:{title}</id><updated>2026-01-{day:02}T00:00:00Z</updated><author><name>A</name></author>\n\
         {links}{entries}</feed>\n"
    )
    .into_bytes()
}

/// Links of SDShare, each repeated.
fn links(relation: &str, targets: &[(&str, &str)]) -> String {
    let one = |(kind, href): &(&str, &str)| {
        format!(
            "<link rel=\"http://www.sdshare.org/2012/core/{relation}\" type=\"{kind}\" href=\"{href}\"/>\
             <link rel=\"alternate\" type=\"{kind}\" href=\"{href}\"/>"
        )
    };
    targets.iter().map(one).collect()
}

fn entry(id: &str, day: u32, more: &str) -> String {
    format!(
        "<entry><title>{id}</title><id>urn:{id}</id><updated>2026-01-{day:02}T00:00:00Z</updated>{more}</entry>\n"
    )
}

/// Of a resource that changed on a day.
fn changed(base: &str, name: &str, day: u32) -> String {
    let (nt, ttl) = (format!("{base}/f/{name}.nt"), format!("{base}/f/{name}.ttl"));
    let links = links("fragment", &[(NT, &nt), (TTL, &ttl)]);
    entry(name, day, &format!("<sd:resource>http://id.example/{name}</sd:resource>{links}"))
}

fn described(name: &str, value: &str) -> String {
    format!(
        "<http://id.example/{name}> <http://p.example/has> _:{name} .\n_:{name} <http://p.example/value> \"{value}\" .\n"
    )
}

/// Resources a and b changed before the snapshot, c after it; d was deleted.
pub(crate) fn good(base: &str) -> Answers {
    let mut answers = Answers::new();
    let mut atom = |path: &str, body: Vec<u8>| {
        answers.insert(path.to_owned(), typed(ATOM, body));
    };
    let to = |path: &str| format!("{base}{path}");
    let of_set = entry("set", 5, &links("collectionfeed", &[(ATOM, &to("/s"))]));
    atom("/sdshare", feed("overview", 5, "", &of_set));
    let two = entry("snapshots", 3, &links("snapshotsfeed", &[(ATOM, &to("/s/snapshots"))]))
        + &entry("changes", 5, &links("fragmentsfeed", &[(ATOM, &to(FRAGMENTS))]));
    let own = format!("<link rel=\"self\" href=\"{base}/s\"/>");
    atom("/s", feed("collection", 5, &own, &two));
    let mut of_snapshot = links("snapshot", &[(NT, &to("/s/snap.nt")), (TTL, &to("/s/snap.ttl"))]);
    let _ = write!(
        of_snapshot,
        "<link rel=\"http://www.sdshare.org/2012/core/chunked-snapshot\" type=\"{ATOM}\" href=\"{base}/s/chunks\"/>"
    );
    atom("/s/snapshots", feed("snapshots", 3, "", &entry("snapshot", 3, &of_snapshot)));
    let chunk = |number: u32| {
        let path = format!("{base}/s/chunk{number}.nt");
        entry(&format!("chunk{number}"), 3, &links("snapshot-component", &[(NT, &path)]))
    };
    atom("/s/chunks", feed("chunks", 3, "", &(chunk(1) + &chunk(2))));
    let next = |path: &str| format!("<link rel=\"next\" href=\"{base}{path}\"/>");
    let hub = format!(
        "<link rel=\"hub\" href=\"{base}/hub\"/><link rel=\"self\" href=\"{base}{FRAGMENTS}\"/>"
    );
    let [a, b, c, d] =
        [("a", 2), ("b", 3), ("c", 4), ("d", 5)].map(|(name, day)| changed(base, name, day));
    atom(FRAGMENTS, feed("fragments", 5, &(hub + &next(&SECOND.replace('&', "&amp;"))), &(a + &b)));
    atom(SECOND, feed("fragments", 5, "", &(c.clone() + &d)));
    let more = format!("{SINCE}&page=2");
    atom(SINCE, feed("fragments", 5, &next(&more.replace('&', "&amp;")), &c));
    atom(&more, feed("fragments", 5, "", &d));
    atom(SINCE_EAST, feed("fragments", 5, "", &(c.clone() + &d)));
    atom(SINCE_SNAPSHOT, feed("fragments", 5, "", &(b + &c + &d)));
    atom(SINCE_LATER, feed("fragments", 5, "", ""));
    atom(YESTERDAY, Vec::new());
    let refused = answers.get_mut(YESTERDAY).unwrap();
    refused.headers.insert("Status".to_owned(), "400 Bad Request".to_owned());

    let old = [described("a", "1"), described("b", "2"), described("c", "3"), described("d", "4")];
    let mut rdf = vec![
        ("/s/snap", old.concat()),
        ("/s/chunk1", old[..2].concat()),
        ("/s/chunk2", old[2..].concat()),
        ("/f/a", described("a", "1")),
        ("/f/b", described("b", "2")),
        ("/f/c", described("c", "new")),
    ];
    rdf.push(("/f/d", String::new()));
    for (path, text) in rdf {
        for (extension, kind) in [("nt", NT), ("ttl", TTL)] {
            let mut answer = typed(kind, text.clone().into_bytes());
            let mut refusal = typed("text/plain", Vec::new());
            refusal.headers.insert("Status".to_owned(), "406 Not Acceptable".to_owned());
            answer.by_accept = Some(("application/x-unknown", Box::new(refusal)));
            answers.insert(format!("{path}.{extension}"), answer);
        }
    }
    answers
}

const AUTHOR: &str = "<author><name>A</name></author>";
const COLLECTION: &str = "<link rel=\"http://www.sdshare.org/2012/core/collectionfeed\" type=\"application/atom+xml\" href=\"{B}/s\"/>";
const TO_CHANGES: &str =
    "<link rel=\"alternate\" type=\"application/atom+xml\" href=\"{B}/s/fragments\"/>";
const NEXT: &str = "<link rel=\"next\" href=\"{B}/s/fragments?page=2\"/>";
const CHUNK: &str =
    "core/snapshot-component\" type=\"application/n-triples\" href=\"{B}/s/chunk1.nt\"";
const A_UPDATED: &str = "<updated>2026-01-02T00:00:00Z</updated>";
const OTHER: &str = "<http://id.example/a> <http://p.example/has> _:a .\n<http://id.example/z> <http://p.example/p> \"z\" .\n";
const OWN: &str = "<http://id.example/a> <http://p.example/has> _:a .\n";
const B_OWN: &str = "<http://id.example/b> <http://p.example/has> _:b .\n";
const SHARED: &str = "<http://id.example/b> <http://p.example/has> _:a, _:b .\n";

const NO_ENTRIES: &str = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>overview</title>\
    <id>urn:overview</id><updated>2026-01-05T00:00:00Z</updated></feed>";

/// A rule and what breaks it.
pub(crate) const CASES: &[(&str, &[Break])] = &[
    (
        "ATOM-2-feed",
        &[Replace("/s/snapshots", "http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#")],
    ),
    (
        "XML-4.3.3-utf-8",
        &[Replace("/s", "version=\"1.0\"?>", "version=\"1.0\" encoding=\"EUC-JP\"?>")],
    ),
    ("ATOM-2-base", &[Replace("/s", "<feed ", "<feed xml:base=\"a b\" ")]),
    ("ATOM-2-text", &[Replace("/s/chunks", "<entry>", "<entry>entry>")]),
    (
        "ATOM-4.2.7.3-type",
        &[Replace("/s/snapshots", "type=\"application/n-triples\"", "type=\"n-triples\"")],
    ),
    ("ATOM-4.1.1-author", &[Replace("/s", AUTHOR, "")]),
    ("ATOM-4.1.1-id-once", &[Replace(SECOND, "urn:c", "urn:a")]),
    ("ATOM-4.1.2-alternate", &[Replace("/s", TO_CHANGES, "")]),
    (
        "ATOM-4.1.2-alternate-once",
        &[Replace(
            "/s",
            "</entry>",
            "<link href=\"{B}/x\" type=\"application/atom+xml\"/></entry>",
        )],
    ),
    ("ATOM-4.2.14-title", &[Replace("/s", "<title>changes</title>", "")]),
    ("ATOM-4.2.15-updated", &[Replace(FRAGMENTS, A_UPDATED, "<updated>today</updated>")]),
    ("ATOM-4.2.6-id", &[Replace("/s", "urn:changes", "changes")]),
    ("ATOM-4.2.7-href", &[Replace("/s", "rel=\"self\" href=\"{B}/s\"", "rel=\"self\"")]),
    (
        "PAGE-3-next",
        &[Replace(
            FRAGMENTS,
            NEXT,
            "<link rel=\"next\" href=\"{B}/s/fragments?page=2\"/><link rel=\"next\" href=\"{B}/x\"/>",
        )],
    ),
    (
        "PAGE-3-loop",
        &[Replace(SECOND, "</author>", "</author><link rel=\"next\" href=\"{B}/s/fragments\"/>")],
    ),
    (
        "PAGE-3-since",
        &[Replace(
            SINCE,
            "{B}/s/fragments?since=2026-01-04T00:00:00.000000Z&amp;page=2",
            "{B}/s/fragments",
        )],
    ),
    ("SDS-5.1-alternate", &[Replace("/s", TO_CHANGES, "")]),
    (
        "SDS-5.1-alternate-only",
        &[Replace("/s", "</entry>", "<link href=\"{B}/x\" type=\"text/html\"/></entry>")],
    ),
    (
        "SDS-5.1-type",
        &[Replace("/s/snapshots", "type=\"application/atom+xml\"", "type=\"application/rdf+xml\"")],
    ),
    (
        "SDS-5.1-mixed",
        &[Replace("/s", "</entry>\n</feed>", "<sd:resource>urn:x</sd:resource></entry>\n</feed>")],
    ),
    ("SDS-5.1-empty", &[AddFinding("/sdshare", NO_ENTRIES)]),
    ("SDS-5.1-kind", &[Replace("/sdshare", "{B}/s\"", "{B}/s/fragments\"")]),
    ("SDS-5.1-older", &[Replace(FRAGMENTS, "http://www.sdshare.org/2012/core/", OLDER)]),
    ("SDS-5.1-reachable", &[Remove("/s/chunks")]),
    ("SDS-5.1-delivered", &[Header("/s/snap.ttl", "Content-Type", "text/plain")]),
    ("SDS-5.1-atom", &[Accept("/s", "text/html", ("200 OK", "text/html"))]),
    ("SDS-5.1-acceptable", &[Accept("/f/a.nt", "application/x-unknown", ("200 OK", "text/html"))]),
    (
        "SDS-5.1.1-link",
        &[Replace(
            "/sdshare",
            COLLECTION,
            "<link rel=\"http://www.sdshare.org/2012/core/collectionfeed\" type=\"application/atom+xml\" href=\"{B}/s\"/><link rel=\"http://www.sdshare.org/2012/core/collectionfeed\" type=\"application/atom+xml\" href=\"{B}/s\"/>",
        )],
    ),
    (
        "SDS-5.1.1-once",
        &[Replace(
            "/sdshare",
            "</author>",
            "</author><entry><title>again</title><id>urn:again</id><updated>2026-01-05T00:00:00Z</updated><link rel=\"http://www.sdshare.org/2012/core/collectionfeed\" type=\"application/atom+xml\" href=\"{B}/s\"/><link rel=\"alternate\" type=\"application/atom+xml\" href=\"{B}/s\"/></entry>",
        )],
    ),
    ("SDS-5.1.2-two", &[Replace("/s", "fragmentsfeed", "snapshotsfeed")]),
    (
        "SDS-5.1.2-since",
        &[Replace("/s", "{B}/s/fragments", "{B}/s/fragments?since=2026-01-03T00:00:00.000000Z")],
    ),
    ("SDS-5.1.3-link", &[Replace("/s/snapshots", "core/snapshot\"", "core/other\"")]),
    (
        "SDS-5.1.3-updated",
        &[Replace("/s/snap.nt", "\"1\"", "\"0\""), Replace("/s/snap.ttl", "\"1\"", "\"0\"")],
    ),
    ("SDS-5.1.3-later", &[Replace("/s/snapshots", "2026-01-03", "2026-01-06")]),
    (
        "SDS-5.1.4-link",
        &[Replace(
            "/s/chunks",
            CHUNK,
            "core/other\" type=\"application/n-triples\" href=\"{B}/s/chunk1.nt\"",
        )],
    ),
    ("SDS-5.1.4-whole", &[Replace("/s/chunk2.nt", "\"3\"", "\"0\"")]),
    ("SDS-5.1.5-link", &[Replace(FRAGMENTS, "core/fragment\"", "core/other\"")]),
    (
        "SDS-5.1.5-resource",
        &[Replace(FRAGMENTS, "<sd:resource>http://id.example/a</sd:resource>", "")],
    ),
    ("SDS-5.1.5-updated", &[Header(SECOND, "Date", "Sat, 03 Jan 2026 00:00:00 GMT")]),
    ("SDS-5.1.5-since", &[Replace(SINCE, "2026-01-04T00:00:00Z", "2026-01-03T00:00:00Z")]),
    ("SDS-5.1.5-inclusive", &[Replace(SINCE, "http://id.example/c", "http://id.example/e")]),
    ("SDS-5.1.5-since-form", &[Header(SINCE_EAST, "Status", "400 Bad Request")]),
    ("SDS-5.1.5-since-invalid", &[Header(YESTERDAY, "Status", "200 OK")]),
    ("SDS-5.1.5-closure", &[Replace("/f/a.nt", OWN, OTHER)]),
    ("SDS-5.1.5-same", &[Replace("/f/a.ttl", "\"1\"", "\"one\"")]),
    ("SDS-5.1.5-deleted", &[Remove("/f/d.nt")]),
    ("SDS-5.1.5-shared", &[Replace("/s/snap.ttl", B_OWN, SHARED), Remove("/s/snap.nt")]),
    ("SDS-5.1.5-blank-root", &[Replace("/s/snap.nt", B_OWN, "")]),
    ("SDS-5.2.1-accepted", &[Once("/s/snap.nt", "202 Accepted")]),
    ("SDS-5.3-formats", &[Replace(FRAGMENTS, "application/n-triples", "application/trig")]),
    ("SDS-5.3-syntax", &[Replace("/f/a.nt", " .", " ,")]),
    ("WS-4-self", &[Replace(FRAGMENTS, "rel=\"self\"", "rel=\"up\"")]),
];

pub(crate) fn failure(rule: &str, breaks: &[Break]) -> Option<String> {
    let server = Server::start(|base| break_all(good(base), base, breaks));
    let report = inspect(&server, "/sdshare", |_| {});
    let found = report.findings.iter().any(|found| found.rule.id == rule);
    (!found).then(|| format!("== {rule}\n{}", text(&report)))
}

#[test]
fn a_server_of_sdshare_that_keeps_to_the_rules_has_no_findings() {
    let server = Server::start(good);
    for (path, documents) in [("/sdshare", 6), ("/s", 5), ("/s/snapshots", 3), (FRAGMENTS, 1)] {
        let report = inspect(&server, path, |_| {});
        assert!(report.findings.is_empty(), "{path}\n{}", text(&report));
        assert_eq!(report.documents.len(), documents, "{path}\n{:#?}", report.documents);
        assert!(report.limit.is_none() && report.found_source());
    }
    // No Source of ResourceSync is expected beside it.
    assert!(!server.requests().iter().any(|path| path.contains("well-known")));
}

#[test]
fn a_feed_is_shown_with_its_pages_formats_and_hubs() {
    let server = Server::start(good);
    let report = inspect(&server, "/sdshare", |options| {
        (options.sample, options.packages) = (Share::Some(0), Share::Some(0));
    });
    let names: Vec<_> = report.documents.iter().map(|found| found.name.as_str()).collect();
    let expected = [
        "SDShare overview feed",
        "SDShare collection feed",
        "SDShare snapshots feed",
        "SDShare snapshot",
        "SDShare chunked snapshot feed",
        "SDShare fragments feed",
    ];
    assert_eq!(names, expected);
    let parents: Vec<_> = report.documents.iter().map(|found| found.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(1), Some(2), Some(3), Some(1)]);
    let facts = |number: usize| report.documents[number].feed.clone().unwrap();
    let snapshot = facts(3);
    assert_eq!((snapshot.formats, snapshot.size), (vec![NT.to_owned(), TTL.to_owned()], Some(344)));
    let fragments = facts(5);
    assert_eq!((fragments.pages, fragments.hubs), (2, vec![server.url("/hub")]));
    assert_eq!(fragments.newest.unwrap().to_string(), "2026-01-05T00:00:00Z");
    assert_eq!(fragments.formats, [NT, TTL]);
    assert!(ndjson(&report).contains("\"pages\":2"), "{}", ndjson(&report));
    // Nothing is asked for that only a check needs.
    let requests = server.requests();
    assert!(!requests.iter().any(|path| path.contains("since=") || path.starts_with("/f/")));
}

#[test]
fn a_blank_node_that_two_chunks_divide_is_found() {
    let breaks = [
        Replace("/s/chunk1.nt", "_:b <http://p.example/value> \"2\" .\n", ""),
        Replace(
            "/s/chunk2.nt",
            "_:c <http://p.example/value> \"3\" .\n",
            "_:c <http://p.example/value> \"3\" .\n_:b <http://p.example/value> \"2\" .\n",
        ),
    ];
    let server = Server::start(|base| break_all(good(base), base, &breaks));
    let report = inspect(&server, "/sdshare", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["SDS-5.1.4-whole"], "{}", text(&report));
}

#[test]
fn a_snapshot_that_is_being_made_is_waited_for() {
    let whole = inspect(&Server::start(good), "/sdshare", |_| {});
    let breaks = ["/s/snap.nt", "/s/chunks", "/s/chunk1.nt"]
        .map(|path| [Once(path, "202 Accepted"), Header(path, "Retry-After", "1")]);
    let server = Server::start(|base| break_all(good(base), base, &breaks.concat()));
    let report = inspect(&server, "/sdshare", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
    assert_eq!(report.sampled, whole.sampled);

    let other =
        Server::start(|base| break_all(good(base), base, &[Once("/f/a.nt", "202 Accepted")]));
    let report = inspect(&other, "/sdshare", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["SDS-5.2.1-accepted"], "{}", text(&report));
}

#[test]
fn limits_end_the_walk_of_feeds() {
    let server = Server::start(good);
    let few = inspect(&server, "/sdshare", |options| options.max_documents = 3);
    assert_eq!(few.limit, Some("--max-documents"));
    assert!(few.documents.iter().filter(|document| document.read).count() <= 4);
    let small = inspect(&server, "/sdshare", |options| options.max_bytes = 2_000);
    assert_eq!(small.limit, Some("--max-bytes"), "{}", text(&small));
    let alone = inspect(&server, FRAGMENTS, |options| options.walk = false);
    assert_eq!((alone.read(), alone.entries(), alone.sampled), (1, 2, 0));
    let shallow = inspect(&server, "/sdshare", |options| options.depth = 1);
    assert_eq!(shallow.read(), 2, "{:?}", shallow.documents);
}

#[test]
fn pages_without_end_are_left() {
    // Each page is another address, with the entries of the first.
    let next = "<link rel=\"next\" href=\"{B}/s/fragments?page=3\"/>";
    let server = Server::start(|base| {
        let breaks = [Replace(SECOND, "</author>", &*format!("</author>{next}").leak())];
        let mut answers = break_all(good(base), base, &breaks);
        let third = answers[SECOND].clone();
        answers.insert(format!("{FRAGMENTS}?page=3"), third);
        answers
    });
    let report = inspect(&server, FRAGMENTS, |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert!(found.contains(&"PAGE-3-loop"), "{}", text(&report));
    let third = server.requests().iter().filter(|path| path.contains("page=3")).count();
    assert_eq!(third, 1);
}

#[test]
fn hosts_that_were_not_given_are_left_out() {
    let breaks = [Replace("/sdshare", "{B}/s\"", "http://127.0.0.2:1/s\"")];
    let server = Server::start(|base| break_all(good(base), base, &breaks));
    let report = inspect(&server, "/sdshare", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["WALK-other-host"], "{}", text(&report));
}

#[test]
fn what_changes_during_the_check_is_no_fault() {
    // When it is fetched, a has changed since the feed was read.
    let server = Server::start(|base| {
        let breaks = [Replace("/f/a.nt", "\"1\"", "\"9\""), Replace("/f/a.ttl", "\"1\"", "\"9\"")];
        let mut answers = break_all(good(base), base, &breaks);
        let later = changed(base, "c", 4) + &changed(base, "d", 5) + &changed(base, "a", 6);
        for path in [SINCE, SINCE_SNAPSHOT, SINCE_EAST] {
            answers.insert(path.to_owned(), typed(ATOM, feed("fragments", 6, "", &later)));
        }
        answers
    });
    let report = inspect(&server, "/sdshare", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
}

#[test]
fn a_server_of_the_draft_of_2010_is_read_to_its_fragments() {
    let older = |path: &'static str| Replace(path, "http://www.sdshare.org/2012/core/", OLDER);
    let breaks = [
        older("/sdshare"),
        older("/s"),
        older("/s/snapshots"),
        older("/s/chunks"),
        older(FRAGMENTS),
        older(SECOND),
    ];
    let server = Server::start(|base| break_all(good(base), base, &breaks));
    let report = inspect(&server, "/sdshare", |_| {});
    let rules: BTreeSet<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(rules, BTreeSet::from(["SDS-5.1-older"]), "{}", text(&report));
    assert_eq!((report.count(Severity::Error), report.documents.len()), (0, 6));
    assert!(report.sampled > 8, "{}", text(&report));
}

#[test]
fn a_source_and_a_server_of_sdshare_are_checked_in_one_run() {
    let server = Server::start(|base| {
        let mut answers = good(base);
        answers.extend(crate::site::broken(base, &[]));
        answers
    });
    let report =
        inspect(&server, "/sdshare", |options| options.starts.push(server.url("/caps.xml")));
    assert!(report.findings.is_empty(), "{}", text(&report));
    let names: Vec<_> = report.documents.iter().map(|found| found.name.as_str()).collect();
    for name in ["SDShare fragments feed", "Change List", "Source Description"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn entries_with_links_alternate_only_lead_on() {
    let other = |path, relation| Replace(path, relation, "urn:other");
    let breaks = [
        other("/s/snapshots", "http://www.sdshare.org/2012/core/snapshot"),
        other("/s/snapshots", "http://www.sdshare.org/2012/core/chunked-snapshot"),
        other(FRAGMENTS, "http://www.sdshare.org/2012/core/fragment"),
    ];
    let server = Server::start(|base| break_all(good(base), base, &breaks));
    let report = inspect(&server, "/sdshare", |_| {});
    let rules: BTreeSet<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(rules, BTreeSet::from(["SDS-5.1-mixed", "SDS-5.1.5-link"]), "{}", text(&report));
    let requests = server.requests();
    for path in ["/s/snap.ttl", "/f/a.ttl"] {
        assert!(requests.iter().any(|request| request == path), "{path}");
    }
}

#[test]
fn feeds_in_files_are_checked_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fragments.atom");
    std::fs::write(&file, good("http://e.example")[FRAGMENTS].body.clone()).unwrap();
    let report = |path: &std::path::Path| {
        let options = Options::new(vec![path.to_str().unwrap().to_owned()]);
        validate(&options, &AtomicBool::new(false))
    };
    let found = report(&file);
    assert_eq!(
        (found.findings.len(), found.read(), found.entries()),
        (0, 1, 2),
        "{}",
        text(&found)
    );
    let packed = folder.path().join("fragments.atom.gz");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::write(&packed, gzip.finish().unwrap()).unwrap();
    assert_eq!(report(&packed).entries(), 2);
    let feeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/sdshare/tests/feeds");
    let older = report(&std::path::Path::new(feeds).join("fragments-2010.atom"));
    assert!(text(&older).contains("SDS-5.1-older"), "{}", text(&older));
    assert!(text(&older).contains(" of an older draft"), "{}", text(&older));
}

#[test]
fn examples_of_the_specification_get_only_notes_in_lenient_mode() {
    for name in ["overview", "collection", "snapshots", "chunks", "fragments"] {
        let feeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../formats/sdshare/tests/feeds");
        let bytes = std::fs::read(format!("{feeds}/{name}.atom")).unwrap();
        for found in check_document(name, &bytes, Mode::Lenient) {
            assert_eq!(found.severity, Severity::Note, "{name}: {found:?}");
        }
    }
}

#[test]
fn any_feed_is_checked_the_same_however_it_comes() {
    use proptest::prelude::*;
    let feeds: Vec<Vec<u8>> = good("http://e.example")
        .into_values()
        .filter(|answer| answer.headers["Content-Type"] == ATOM && !answer.body.is_empty())
        .map(|answer| answer.body)
        .collect();
    let any = (0..feeds.len(), any::<[prop::sample::Index; 3]>(), any::<u8>(), 0..4_u8);
    proptest!(ProptestConfig::with_cases(64), |((which, at, byte, how) in any)| {
        let mut bytes = feeds[which].clone();
        let [one, other, to] = at.map(|at| at.index(bytes.len()));
        let (from, end) = (one.min(other), one.max(other));
        match how {
            0 => bytes[one] = byte,
            1 => drop(bytes.drain(from..end)),
            2 => {
                let part = bytes[from..end].to_vec();
                bytes.splice(to..to, part);
            }
            _ => bytes.truncate(one),
        }
        abreast_validator::fuzz_property::document(&bytes);
    });
}
