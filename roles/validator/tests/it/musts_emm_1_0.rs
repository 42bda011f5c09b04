//! For each MUST of Entity Metadata Management 1.0 a document that breaks it. The MUSTs are in
//! `conformance/emm-1.0/manifest.toml`.

use crate::emm_cases::{E, P1, P2};
use crate::musts::Mutant;
use crate::site::Break;
use Break::{Remove, Replace};

pub(crate) const MUTANTS: &[Mutant] = &[
    (
        "context-entry-point",
        "EMM-2.2-context",
        &[Replace(E, r#""https://www.w3.org/ns/activitystreams","#, "")],
    ),
    (
        "context-change-set",
        "EMM-2.2-context",
        &[Replace(P2, r#""https://www.w3.org/ns/activitystreams","#, "")],
    ),
    (
        "context-order",
        "EMM-2.2-context-order",
        &[Replace(
            P1,
            r#""@context":["#,
            r#""@context":["https://emm-spec.org/1.0/context.json",{"x":"http://x.example/"},"#,
        )],
    ),
    (
        "entry-point-type",
        "EMM-3.1-type",
        &[Replace(E, r#""type":"OrderedCollection""#, r#""type":"Collection""#)],
    ),
    ("entry-point-id", "EMM-3.1-id", &[Replace(E, r#""id":"{B}/emm10","#, "")]),
    (
        "entry-point-id-string",
        "AS-4.1-id",
        &[Replace(E, r#""id":"{B}/emm10""#, r#""id":["{B}/emm10"]"#)],
    ),
    (
        "entry-point-id-http",
        "EMM-3.1-id",
        &[Replace(E, r#""id":"{B}/emm10""#, r#""id":"urn:x:feed""#)],
    ),
    (
        "entry-point-id-served",
        "EMM-3.1-id-served",
        &[Replace(E, r#""id":"{B}/emm10""#, r#""id":"{B}/other""#)],
    ),
    (
        "first-form",
        "EMM-3.1-reference",
        &[Replace(
            E,
            r#""first":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":5"#,
        )],
    ),
    (
        "first-id",
        "EMM-3.1-reference",
        &[Replace(
            E,
            r#""first":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "first-type",
        "AS-4.6-page",
        &[Replace(
            E,
            r#""first":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":{"id":"{B}/emm10/page/1","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "last-form",
        "EMM-3.1-reference",
        &[Replace(
            E,
            r#""last":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":5"#,
        )],
    ),
    (
        "last-id",
        "EMM-3.1-reference",
        &[Replace(
            E,
            r#""last":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "last-type",
        "AS-4.6-page",
        &[Replace(
            E,
            r#""last":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":{"id":"{B}/emm10/page/2","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "first-page",
        "EMM-3.2-ends",
        &[Replace(
            E,
            r#""first":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "last-page",
        "EMM-3.2-ends",
        &[Replace(
            E,
            r#""last":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "entry-point-total",
        "AS-4.6-total",
        &[Replace(E, r#""totalItems":4"#, r#""totalItems":4.5"#)],
    ),
    (
        "sorted",
        "EMM-3.2-order",
        &[Replace(P2, r#""published":"2026-01-04"#, r#""published":"2026-01-02"#)],
    ),
    (
        "one-direction",
        "EMM-3.2-order",
        &[Replace(P2, r#""published":"2026-01-03"#, r#""published":"2026-01-05"#)],
    ),
    (
        "sets-sorted",
        "EMM-3.2-page-order",
        &[Replace(P2, r#""published":"2026-"#, r#""published":"2025-"#)],
    ),
    (
        "change-set-type",
        "EMM-3.1-type",
        &[Replace(
            P2,
            r#"],"partOf":{"id":"{B}/emm10","type":"OrderedCollection"},"prev":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"},"totalItems":2,"type":"OrderedCollectionPage""#,
            r#"],"partOf":{"id":"{B}/emm10","type":"OrderedCollection"},"prev":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"},"totalItems":2,"type":"CollectionPage""#,
        )],
    ),
    ("change-set-id", "EMM-3.1-id", &[Replace(P2, r#""id":"{B}/emm10/page/2","#, "")]),
    (
        "change-set-id-string",
        "AS-4.1-id",
        &[Replace(P2, r#""id":"{B}/emm10/page/2""#, r#""id":2"#)],
    ),
    (
        "change-set-id-http",
        "EMM-3.1-id",
        &[Replace(P2, r#""id":"{B}/emm10/page/2""#, r#""id":"urn:x:2""#)],
    ),
    (
        "change-set-id-served",
        "EMM-3.1-id-served",
        &[Replace(P1, r#""id":"{B}/emm10/page/1""#, r#""id":"{B}/emm10/page/9""#)],
    ),
    (
        "change-set-id-served",
        "EMM-3.1-id-served",
        &[Replace(P2, r#""id":"{B}/emm10/page/2""#, r#""id":"{B}/emm10/page/9""#)],
    ),
    (
        "change-set-part-of-form",
        "EMM-3.1-reference",
        &[Replace(
            P1,
            r#""partOf":{"id":"{B}/emm10","type":"OrderedCollection"}"#,
            r#""partOf":5"#,
        )],
    ),
    (
        "change-set-part-of-type",
        "AS-4.6-page",
        &[Replace(
            P1,
            r#""partOf":{"id":"{B}/emm10","type":"OrderedCollection"}"#,
            r#""partOf":{"id":"{B}/emm10","type":"OrderedCollectionPage"}"#,
        )],
    ),
    ("change-set-total", "AS-4.6-total", &[Replace(P1, r#""totalItems":2"#, r#""totalItems":-2"#)]),
    ("items", "EMM-3.2-items", &[Replace(P1, r#""orderedItems""#, r#""ordered""#)]),
    ("items-activities", "EMM-3.3-type", &[Replace(P2, r#""type":"Update""#, r#""type":"Note""#)]),
    (
        "next-form",
        "EMM-3.1-reference",
        &[Replace(
            P1,
            r#""next":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""next":5"#,
        )],
    ),
    (
        "next-id",
        "EMM-3.1-reference",
        &[Replace(
            P1,
            r#""next":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""next":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "next-type",
        "AS-4.6-page",
        &[Replace(
            P1,
            r#""next":{"id":"{B}/emm10/page/2","type":"OrderedCollectionPage"}"#,
            r#""next":{"id":"{B}/emm10/page/2","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "prev-form",
        "EMM-3.1-reference",
        &[Replace(
            P2,
            r#""prev":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""prev":5"#,
        )],
    ),
    (
        "prev-id",
        "EMM-3.1-reference",
        &[Replace(
            P2,
            r#""prev":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""prev":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "prev-type",
        "AS-4.6-page",
        &[Replace(
            P2,
            r#""prev":{"id":"{B}/emm10/page/1","type":"OrderedCollectionPage"}"#,
            r#""prev":{"id":"{B}/emm10/page/1","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "activity",
        "EMM-3.2-items",
        &[Replace(P1, r#""orderedItems":["#, r#""orderedItems":["{B}/emm10/activity/9","#)],
    ),
    ("activity-what", "EMM-3.3-type", &[Replace(P2, r#""type":"Update""#, r#""type":"Announce""#)]),
    ("activity-entity", "EMM-3.3-object", &[Replace(P1, r#""object":"#, r#""subject":"#)]),
    ("activity-type", "EMM-3.3-type", &[Replace(P2, r#","type":"Update""#, "")]),
    (
        "object-form",
        "EMM-3.3-object",
        &[Replace(P1, r#""object":{"#, r#""object":"{B}/id/a","o":{"#)],
    ),
    (
        "object-id",
        "EMM-3.3-object",
        &[Replace(P1, r#""object":{"id":"{B}/id/b","#, r#""object":{"#)],
    ),
    (
        "object-uri",
        "AS-4.1-id",
        &[Replace(P1, r#""object":{"id":"{B}/id/b""#, r#""object":{"id":"b""#)],
    ),
    (
        "part-of-page",
        "EMM-3.3-part-of",
        &[Replace(P1, r#""summary":"Create a""#, r#""partOf":"{B}/emm10","summary":"Create a""#)],
    ),
    (
        "part-of-string",
        "EMM-3.3-part-of",
        &[Replace(
            P1,
            r#""summary":"Create a""#,
            r#""partOf":{"id":"{B}/emm10/page/1"},"summary":"Create a""#,
        )],
    ),
    (
        "part-of-http",
        "EMM-3.3-part-of",
        &[Replace(P1, r#""summary":"Create a""#, r#""partOf":"urn:x:1","summary":"Create a""#)],
    ),
    (
        "part-of-served",
        "EMM-3.3-part-of",
        &[Replace(P1, r#""summary":"Create a""#, r#""partOf":"{B}/nothing","summary":"Create a""#)],
    ),
    ("new", "EMM-4.1-first", &[Replace(P1, r#""type":"Create""#, r#""type":"Update""#)]),
    (
        "first-appearance",
        "EMM-4.1-first",
        &[Replace(P1, r#""type":"Create""#, r#""type":"Deprecate""#)],
    ),
    ("create-available", "EMM-4.1-available", &[Remove("/id/a.nt")]),
    ("update", "EMM-3.3-type", &[Replace(P2, r#""type":"Update""#, r#""type":"Move""#)]),
    ("delete", "EMM-3.3-type", &[Replace(P2, r#""type":"Delete""#, r#""type":"Undo""#)]),
];

/// MUSTs that no document shows broken, and why.
pub(crate) const WITHOUT: &[(&str, &str)] = &[
    ("entry-point", "an Entity Set without an Entry Point is not seen by a client"),
    ("released", "nothing else shows which changes were published"),
];
