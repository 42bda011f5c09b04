//! For each rule of change feeds one way to break it, and no other.

use crate::cases::inspect;
use crate::emm::good;
use crate::server::Server;
use crate::site::{Break, break_all};
use Break::{AddFinding, Header, Remove, Replace};
use abreast_validator::text;
use std::collections::BTreeSet;

pub(crate) const E: &str = "/emm10";
pub(crate) const P1: &str = "/emm10/page/1";
pub(crate) const P2: &str = "/emm10/page/2";
pub(crate) const E01: &str = "/emm01";
pub(crate) const D1: &str = "/emm01/page/1";
pub(crate) const D2: &str = "/emm01/page/2";
pub(crate) const I: &str = "/iiif";
pub(crate) const I1: &str = "/iiif/page/1";
pub(crate) const I2: &str = "/iiif/page/2";
const SKIP_TO: &str = "/emm10/skip-to?datetime=2026-01-04T00:00:00Z";
const CONTEXT_01: &str =
    "\"@context\":\"https://ld4.github.io/entity_metadata_management/0.1/context.json\"";
const IIIF_CONTEXT: &str = "\"@context\":\"http://iiif.io/api/discovery/1/context.json\"";
const EMM_CONTEXT: &str = ",\"https://emm-spec.org/1.0/context.json\"";
const SUMMARY: &str = "\"summary\":\"All changes\",";
const LAST: &str = "\"last\":{\"id\":\"{B}/emm10/page/2\",\"type\":\"OrderedCollectionPage\"},";
const NEXT: &str = "\"next\":{\"id\":\"{B}/emm10/page/2\",\"type\":\"OrderedCollectionPage\"},";
const PREV: &str = "\"prev\":{\"id\":\"{B}/emm10/page/1\",\"type\":\"OrderedCollectionPage\"},";
const TERM: &str = "\"type\":\"http://ns.example/Term\",";
const TYPE: &str = "\"type\":\"OrderedCollectionPage\"}";

/// A rule and what breaks it.
pub(crate) const CASES: &[(&str, &[Break])] = &[
    ("AS-2-json", &[Replace(P2, "\"orderedItems\":[", "\"orderedItems\":[,")]),
    ("AS-2-object", &[AddFinding(P2, "[]")]),
    ("AS-2-media-type", &[Header(E, "Content-Type", "text/html")]),
    ("AS-2.1-context", &[Replace(P1, "\"https://emm-spec.org/1.0/context.json\"", "5")]),
    ("AS-2.1-term", &[Replace(P1, "\"http://ns.example/Term\"", "\"Term\"")]),
    ("AS-2.2-absolute", &[Replace(P1, "{B}/id/a.nt", "/id/a.nt")]),
    (
        "AS-2.3-datetime",
        &[Replace(P1, "\"published\":\"2026-01-01T00:00:00Z\"", "\"published\":\"2026-01-01\"")],
    ),
    ("AS-4.1-id", &[Replace(P1, "\"id\":\"{B}/emm10/activity/1\"", "\"id\":5")]),
    ("AS-4.1-id-once", &[Replace(P2, "{B}/emm10/activity/4", "{B}/emm10/activity/3")]),
    ("AS-4.1-type", &[Replace(P1, TERM, "\"type\":5,")]),
    (
        "AS-4.2-link",
        &[Replace(P1, "\"mediaType\":\"application/n-triples\"", "\"mediaType\":\"nt\"")],
    ),
    ("AS-4.2-delivered", &[Header("/id/a.nt", "Content-Type", "text/plain")]),
    ("AS-4.4-reference", &[Replace(P1, "\"url\":[", "\"url\":[5,")]),
    ("AS-4.6-items", &[Replace(P1, "\"orderedItems\":[", "\"items\":[],\"orderedItems\":[")]),
    ("AS-4.6-page", &[Replace(E, "OrderedCollectionPage", "OrderedCollection")]),
    ("AS-4.6-total", &[Replace(E, "\"totalItems\":4", "\"totalItems\":\"4\"")]),
    (
        "AS-4.7-text",
        &[Replace(P1, "\"summary\":\"Create a\"", "\"name\":5,\"summary\":\"Create a\"")],
    ),
    ("AS-4.7-map", &[Replace(E, SUMMARY, "\"summary\":\"x\",\"summaryMap\":5,")]),
    ("AS-4.7-language", &[Replace(E, SUMMARY, "\"summary\":\"x\",\"summaryMap\":{\"1\":\"x\"},")]),
    ("EMM-3-kind", &[Replace(E, "\"type\":\"OrderedCollection\"", "\"type\":\"Note\"")]),
    (
        "EMM-2.2-context",
        &[Replace(P1, "https://www.w3.org/ns/activitystreams", "https://other.example/ns")],
    ),
    ("EMM-2.2-context-exact", &[Replace(P1, "ns/activitystreams", "ns/activitystreams#")]),
    (
        "EMM-2.2-context-order",
        &[Replace(
            P1,
            EMM_CONTEXT,
            ",\"https://emm-spec.org/1.0/context.json\",{\"x\":\"http://x.example/\"}",
        )],
    ),
    ("EMM-2.2-context-emm", &[Replace(P1, EMM_CONTEXT, "")]),
    (
        "EMM01-3.1-override",
        &[Replace(
            D1,
            CONTEXT_01,
            "\"@context\":[\"https://ld4.github.io/entity_metadata_management/0.1/context.json\",{\"object\":\"http://x.example/o\"}]",
        )],
    ),
    (
        "EMM-4.3-context",
        &[
            Replace(P2, EMM_CONTEXT, ""),
            Replace(P2, "\"type\":\"Update\"", "\"type\":\"Deprecate\""),
        ],
    ),
    (
        "IIIF-3.4.1-strings",
        &[Replace(
            I1,
            IIIF_CONTEXT,
            "\"@context\":[{},\"http://iiif.io/api/discovery/1/context.json\"]",
        )],
    ),
    ("IIIF-3.4.1-first", &[Replace(I1, "{\"@context\"", "{\"x\":1,\"@context\"")]),
    ("EMM-3.1-type", &[Replace(P1, TYPE, "\"type\":[\"OrderedCollectionPage\"]}")]),
    ("EMM-3.1-id", &[Replace(E, "\"id\":\"{B}/emm10\"", "\"id\":\"urn:x:feed\"")]),
    (
        "EMM-3.1-id-served",
        &[Replace(P1, "\"id\":\"{B}/emm10/page/1\"", "\"id\":\"{B}/emm10/page/9\"")],
    ),
    ("EMM-3.1-summary", &[Replace(E, SUMMARY, "")]),
    ("EMM-3.1-first", &[Replace(E, LAST, "")]),
    (
        "EMM01-3.1-first",
        &[Replace(
            E01,
            "\"last\":{\"id\":\"{B}/emm01/page/2\",\"type\":\"OrderedCollectionPage\"},",
            "",
        )],
    ),
    (
        "IIIF-3.1-last",
        &[Replace(
            I,
            "\"last\":{\"id\":\"{B}/iiif/page/2\",\"type\":\"OrderedCollectionPage\"},",
            "",
        )],
    ),
    (
        "IIIF-3.1-first",
        &[Replace(
            I,
            "\"first\":{\"id\":\"{B}/iiif/page/1\",\"type\":\"OrderedCollectionPage\"},",
            "",
        )],
    ),
    ("EMM-3.1-reference", &[Replace(E, LAST, "\"last\":\"/emm10/page/2\",")]),
    (
        "IIIF-3.1-reference",
        &[Replace(
            I,
            "{\"id\":\"{B}/iiif/page/1\",\"type\":\"OrderedCollectionPage\"}",
            "\"{B}/iiif/page/1\"",
        )],
    ),
    ("IIIF-3.1-members", &[Replace(I, "\"totalItems\":4", "\"rights\":5,\"totalItems\":4")]),
    ("EMM-3.1-total", &[Replace(E, "\"totalItems\":4", "\"totalItems\":5")]),
    (
        "EMM-A.2-download",
        &[Replace(E, "\"totalItems\":4", "\"totalItems\":4,\"url\":\"{B}/all.nt\"")],
    ),
    (
        "EMM-3.2-items",
        &[Replace(P1, "\"orderedItems\":[", "\"orderedItems\":[\"{B}/emm10/activity/9\",")],
    ),
    (
        "IIIF-3.2-empty",
        &[
            AddFinding(
                I1,
                "{\"@context\":\"http://iiif.io/api/discovery/1/context.json\",\"id\":\"{B}/iiif/page/1\",\"type\":\"OrderedCollectionPage\",\
             \"partOf\":{\"id\":\"{B}/iiif\",\"type\":\"OrderedCollection\"},\"orderedItems\":[],\
             \"next\":{\"id\":\"{B}/iiif/page/2\",\"type\":\"OrderedCollectionPage\"}}",
            ),
            Replace(I, "\"totalItems\":4", "\"totalItems\":2"),
        ],
    ),
    (
        "EMM-3.2-part-of",
        &[Replace(P1, "\"partOf\":{\"id\":\"{B}/emm10\",\"type\":\"OrderedCollection\"},", "")],
    ),
    (
        "IIIF-3.2-part-of",
        &[Replace(I1, "\"partOf\":{\"id\":\"{B}/iiif\",\"type\":\"OrderedCollection\"},", "")],
    ),
    ("EMM-3.2-part-of-equal", &[Replace(P1, "\"{B}/emm10\"", "\"{B}/other\"")]),
    ("EMM-3.2-total", &[Replace(P1, "\"totalItems\":2", "\"totalItems\":3")]),
    ("EMM-3.2-reachable", &[Remove(P2)]),
    ("EMM-3.2-next", &[Replace(P1, NEXT, "")]),
    (
        "IIIF-3.2-next",
        &[Replace(
            I1,
            "\"next\":{\"id\":\"{B}/iiif/page/2\",\"type\":\"OrderedCollectionPage\"},",
            "",
        )],
    ),
    (
        "IIIF-3.2-prev",
        &[Replace(
            I2,
            "\"prev\":{\"id\":\"{B}/iiif/page/1\",\"type\":\"OrderedCollectionPage\"},",
            "",
        )],
    ),
    (
        "EMM-3.2-prev",
        &[Replace(
            P2,
            "\"prev\":{\"id\":\"{B}/emm10/page/1\"",
            "\"prev\":{\"id\":\"{B}/emm10/page/7\"",
        )],
    ),
    (
        "EMM-3.2-loop",
        &[Replace(
            P2,
            PREV,
            "\"next\":{\"id\":\"{B}/emm10/page/2\",\"type\":\"OrderedCollectionPage\"},",
        )],
    ),
    (
        "EMM-3.2-ends",
        &[Replace(
            P1,
            NEXT,
            "\"next\":{\"id\":\"{B}/emm10/page/2\",\"type\":\"OrderedCollectionPage\"},\"prev\":{\"id\":\"{B}/emm10/page/0\",\"type\":\"OrderedCollectionPage\"},",
        )],
    ),
    ("EMM-3.2-order", &[Replace(P2, "\"published\":\"2026-01-04", "\"published\":\"2026-01-02")]),
    ("EMM-3.2-page-order", &[Replace(P2, "\"published\":\"2026-", "\"published\":\"2025-")]),
    (
        "IIIF-3.2-order",
        &[
            Replace(I1, "\"endTime\":\"2026-01-01", "\"endTime\":\"2026-01-09"),
            Replace(I1, "\"endTime\":\"2026-01-02", "\"endTime\":\"2026-01-08"),
            Replace(I2, "\"endTime\":\"2026-01-03", "\"endTime\":\"2026-01-07"),
            Replace(I2, "\"endTime\":\"2026-01-04", "\"endTime\":\"2026-01-06"),
        ],
    ),
    ("EMM-3.3-type", &[Replace(P2, "\"type\":\"Update\"", "\"type\":\"Move\"")]),
    ("IIIF-3.3-type", &[Replace(I2, "\"type\":\"Update\"", "\"type\":\"Change\"")]),
    ("IIIF-3.3-type-known", &[Replace(I2, "\"type\":\"Update\"", "\"type\":\"Announce\"")]),
    ("EMM-3.3-type-string", &[Replace(P1, "\"type\":\"Create\"", "\"type\":[\"as:Create\"]")]),
    ("EMM-3.3-date", &[Replace(P1, "\"published\":\"2026-01-01T00:00:00Z\",", "")]),
    ("EMM-3.3-published", &[Replace(P1, "\"published\"", "\"endTime\"")]),
    ("EMM01-4.1-published", &[Replace(D1, "\"published\"", "\"endTime\"")]),
    ("IIIF-3.3-end-time", &[Replace(I1, "\"endTime\":\"2026-01-01T00:00:00Z\",", "")]),
    (
        "IIIF-3.3-utc",
        &[Replace(
            I1,
            "\"endTime\":\"2026-01-01T00:00:00Z",
            "\"endTime\":\"2026-01-01T01:00:00+01:00",
        )],
    ),
    ("EMM-3.3-future", &[Header(P2, "Date", "Sat, 03 Jan 2026 12:00:00 GMT")]),
    ("EMM-3.3-summary", &[Replace(P1, "\"summary\":\"Create a\",", "")]),
    ("EMM01-4.1-id", &[Replace(D1, "\"id\":\"{B}/emm01/activity/1\",", "")]),
    ("EMM01-4.1-id-served", &[Remove("/emm01/activity/3")]),
    ("IIIF-3.3-id-served", &[Replace("/iiif/activity/1", "{B}/iiif/activity/1", "{B}/iiif/other")]),
    ("IIIF-3.3-id", &[Replace(I1, "\"id\":\"{B}/iiif/activity/1\"", "\"id\":\"urn:x:1\"")]),
    (
        "EMM-3.3-part-of",
        &[Replace(
            P1,
            "\"summary\":\"Create a\"",
            "\"partOf\":{\"id\":\"{B}/emm10/page/1\"},\"summary\":\"Create a\"",
        )],
    ),
    ("EMM-3.3-object", &[Replace(P1, "\"object\":{\"id\":\"{B}/id/b\",", "\"object\":{")]),
    ("EMM-3.3-object-type", &[Replace(P1, TERM, "")]),
    ("EMM-3.3-object-updated", &[Replace(P1, "\"updated\":\"2026-01-01T00:00:00Z\",", "")]),
    ("IIIF-3.3-object", &[Replace(I1, TERM, "")]),
    (
        "IIIF-3.3-members",
        &[Replace(I1, TERM, "\"seeAlso\":{},\"type\":\"http://ns.example/Term\",")],
    ),
    (
        "IIIF-3.3-actor",
        &[Replace(
            I1,
            "\"summary\":\"Create a\"",
            "\"actor\":{\"type\":\"Person\"},\"summary\":\"Create a\"",
        )],
    ),
    ("IIIF-3.3-target", &[Replace(I1, "\"type\":\"Create\"", "\"type\":\"Move\"")]),
    ("EMM-4.1-first", &[Replace(P1, "\"type\":\"Create\"", "\"type\":\"Update\"")]),
    ("EMM-4.1-available", &[Remove("/id/a.nt")]),
    ("EMM-4.4-after", &[Replace(I1, "\"type\":\"Create\"", "\"type\":\"Delete\"")]),
    ("EMM01-4.2-instrument", &[Replace(D1, "\"rdf_patch\"", "\"Document\"")]),
    (
        "EMM01-4.2-document",
        &[Replace("/emm01/activity/3/instrument/1", "\"type\":\"Update\"", "\"type\":\"Note\"")],
    ),
    ("EMM01-4.2-syntax", &[Replace(D2, "TX .", "TX TX")]),
    ("EMM01-4.2-strict", &[Replace(D2, " .\\nTC .", ".\\nTC .")]),
    ("EMM01-4.2-subject", &[Replace(D2, "D <{B}/id/a>", "D <{B}/id/z>")]),
    ("EMM01-4.2-chain", &[Replace(D2, "H prev <uuid:2>", "H prev <uuid:9>")]),
    ("EMM01-4.2-digest", &[Replace(D2, "H before \\\"sha256:", "H before \\\"sha256:0")]),
    ("IIIF-4.1-media-type", &[Header(I, "Content-Type", "text/html")]),
    ("IIIF-4.1-cors", &[Header(I, "Access-Control-Allow-Origin", "")]),
    ("FETCH-3.3-cors", &[Header(E, "Access-Control-Allow-Origin", "")]),
    (
        "EMM-B.2-skip-to",
        &[Replace(SKIP_TO, "\"published\":\"2026-01-04", "\"published\":\"2026-01-03")],
    ),
];

/// Rules that are broken too, since they follow from the first.
const ALSO: &[(&str, &[&str])] = &[
    ("AS-2.1-context", &["EMM-2.2-context-emm"]),
    ("EMM-4.3-context", &["EMM-2.2-context-emm"]),
    // The first activity of the entity is lost.
    ("EMM-3.3-object", &["EMM-4.1-first"]),
    // A deletion that seems to be older than the creation.
    ("EMM-3.2-page-order", &["EMM-4.1-available"]),
    ("IIIF-3.2-order", &["EMM-4.1-available"]),
];

pub(crate) fn failure(rule: &str, breaks: &[Break]) -> Option<String> {
    let (found, report) = found(breaks);
    let also = ALSO.iter().find(|(other, _)| *other == rule).map_or(&[][..], |(_, also)| also);
    let expected: BTreeSet<_> = also.iter().copied().chain([rule]).collect();
    (found != expected).then(|| format!("== {rule}\n{report}"))
}

/// As `failure`, where other rules may be broken too.
pub(crate) fn failure_among_others(rule: &str, breaks: &[Break]) -> Option<String> {
    let (found, report) = found(breaks);
    (!found.contains(rule)).then(|| format!("== {rule}\n{report}"))
}

/// The broken rules, and the report.
fn found(breaks: &[Break]) -> (BTreeSet<&'static str>, String) {
    let path = match breaks[0] {
        Replace(path, ..) | Remove(path) | Header(path, ..) | AddFinding(path, _) => path,
        _ => E,
    };
    // Activities of IIIF are documents that no page leads to.
    let alone = path.starts_with("/iiif/activity/").then_some(path);
    let above = [E, E01, I].into_iter().find(|start| path.starts_with(*start));
    let server = Server::start(|base| break_all(good(base), base, breaks));
    let report = inspect(&server, alone.or(above).unwrap_or(E), |_| {});
    (report.findings.iter().map(|found| found.rule.id).collect(), text(&report))
}
