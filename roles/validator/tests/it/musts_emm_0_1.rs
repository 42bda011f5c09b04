//! For each MUST of Entity Metadata Management 0.1 a document that breaks it. The MUSTs are in
//! `conformance/emm-0.1/manifest.toml`.

use crate::emm_cases::{D1, D2, E01};
use crate::musts::Mutant;
use crate::site::Break;
use Break::{Remove, Replace};

pub(crate) const MUTANTS: &[Mutant] = &[
    (
        "context",
        "EMM-2.2-context",
        &[Replace(
            D2,
            r#""https://ld4.github.io/entity_metadata_management/0.1/context.json""#,
            r#""https://www.w3.org/ns/activitystreams""#,
        )],
    ),
    (
        "context-first",
        "EMM-2.2-context-order",
        &[Replace(
            D1,
            r#""@context":"https://ld4.github.io/entity_metadata_management/0.1/context.json""#,
            r#""@context":["http://x.example/context.json","https://ld4.github.io/entity_metadata_management/0.1/context.json"]"#,
        )],
    ),
    (
        "entry-point-type",
        "EMM-3.1-type",
        &[Replace(E01, r#""type":"OrderedCollection""#, r#""type":"Collection""#)],
    ),
    ("entry-point-id", "EMM-3.1-id", &[Replace(E01, r#""id":"{B}/emm01","#, "")]),
    (
        "entry-point-id-string",
        "AS-4.1-id",
        &[Replace(E01, r#""id":"{B}/emm01""#, r#""id":["{B}/emm01"]"#)],
    ),
    (
        "entry-point-id-http",
        "EMM-3.1-id",
        &[Replace(E01, r#""id":"{B}/emm01""#, r#""id":"urn:x:feed""#)],
    ),
    (
        "entry-point-id-served",
        "EMM-3.1-id-served",
        &[Replace(E01, r#""id":"{B}/emm01""#, r#""id":"{B}/other""#)],
    ),
    (
        "first",
        "EMM01-3.1-first",
        &[Replace(E01, r#""first":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"},"#, "")],
    ),
    (
        "first-form",
        "EMM-3.1-reference",
        &[Replace(
            E01,
            r#""first":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":5"#,
        )],
    ),
    (
        "first-id",
        "EMM-3.1-reference",
        &[Replace(
            E01,
            r#""first":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "first-type",
        "AS-4.6-page",
        &[Replace(
            E01,
            r#""first":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":{"id":"{B}/emm01/page/1","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "last",
        "EMM01-3.1-first",
        &[Replace(E01, r#""last":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"},"#, "")],
    ),
    (
        "last-form",
        "EMM-3.1-reference",
        &[Replace(
            E01,
            r#""last":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":5"#,
        )],
    ),
    (
        "last-id",
        "EMM-3.1-reference",
        &[Replace(
            E01,
            r#""last":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "last-type",
        "AS-4.6-page",
        &[Replace(
            E01,
            r#""last":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":{"id":"{B}/emm01/page/2","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "first-page",
        "EMM-3.2-ends",
        &[Replace(
            E01,
            r#""first":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""first":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "last-page",
        "EMM-3.2-ends",
        &[Replace(
            E01,
            r#""last":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""last":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "entry-point-total",
        "AS-4.6-total",
        &[Replace(E01, r#""totalItems":4"#, r#""totalItems":4.5"#)],
    ),
    (
        "sorted",
        "EMM-3.2-order",
        &[Replace(D2, r#""published":"2026-01-04"#, r#""published":"2026-01-02"#)],
    ),
    (
        "one-direction",
        "EMM-3.2-order",
        &[Replace(D2, r#""published":"2026-01-03"#, r#""published":"2026-01-05"#)],
    ),
    (
        "sets-sorted",
        "EMM-3.2-page-order",
        &[Replace(D2, r#""published":"2026-"#, r#""published":"2025-"#)],
    ),
    (
        "change-set-type",
        "EMM-3.1-type",
        &[Replace(
            D2,
            r#"],"partOf":{"id":"{B}/emm01","type":"OrderedCollection"},"prev":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"},"totalItems":2,"type":"OrderedCollectionPage""#,
            r#"],"partOf":{"id":"{B}/emm01","type":"OrderedCollection"},"prev":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"},"totalItems":2,"type":"CollectionPage""#,
        )],
    ),
    (
        "next-form",
        "EMM-3.1-reference",
        &[Replace(
            D1,
            r#""next":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""next":5"#,
        )],
    ),
    (
        "next-id",
        "EMM-3.1-reference",
        &[Replace(
            D1,
            r#""next":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""next":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "next-type",
        "AS-4.6-page",
        &[Replace(
            D1,
            r#""next":{"id":"{B}/emm01/page/2","type":"OrderedCollectionPage"}"#,
            r#""next":{"id":"{B}/emm01/page/2","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "prev-form",
        "EMM-3.1-reference",
        &[Replace(
            D2,
            r#""prev":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""prev":5"#,
        )],
    ),
    (
        "prev-id",
        "EMM-3.1-reference",
        &[Replace(
            D2,
            r#""prev":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""prev":{"id":"urn:x:1","type":"OrderedCollectionPage"}"#,
        )],
    ),
    (
        "prev-type",
        "AS-4.6-page",
        &[Replace(
            D2,
            r#""prev":{"id":"{B}/emm01/page/1","type":"OrderedCollectionPage"}"#,
            r#""prev":{"id":"{B}/emm01/page/1","type":"OrderedCollection"}"#,
        )],
    ),
    (
        "activity",
        "EMM-3.2-items",
        &[Replace(D1, r#""orderedItems":["#, r#""orderedItems":["{B}/emm01/activity/9","#)],
    ),
    ("activity-what", "EMM-3.3-type", &[Replace(D2, r#""type":"Update""#, r#""type":"Announce""#)]),
    ("activity-type", "EMM-3.3-type", &[Replace(D2, r#","type":"Update""#, "")]),
    ("activity-id", "EMM01-4.1-id", &[Replace(D1, r#""id":"{B}/emm01/activity/1","#, "")]),
    (
        "activity-id-string",
        "AS-4.1-id",
        &[Replace(D1, r#""id":"{B}/emm01/activity/1","#, r#""id":1,"#)],
    ),
    (
        "activity-id-http",
        "EMM01-4.1-id",
        &[Replace(D1, r#""id":"{B}/emm01/activity/1","#, r#""id":"urn:x:1","#)],
    ),
    (
        "part-of-page",
        "EMM-3.3-part-of",
        &[Replace(D1, r#""summary":"Create a""#, r#""partOf":"{B}/emm01","summary":"Create a""#)],
    ),
    (
        "part-of-string",
        "EMM-3.3-part-of",
        &[Replace(
            D1,
            r#""summary":"Create a""#,
            r#""partOf":{"id":"{B}/emm01/page/1"},"summary":"Create a""#,
        )],
    ),
    (
        "part-of-http",
        "EMM-3.3-part-of",
        &[Replace(D1, r#""summary":"Create a""#, r#""partOf":"urn:x:1","summary":"Create a""#)],
    ),
    (
        "part-of-served",
        "EMM-3.3-part-of",
        &[Replace(D1, r#""summary":"Create a""#, r#""partOf":"{B}/nothing","summary":"Create a""#)],
    ),
    ("new", "EMM-4.1-first", &[Replace(D1, r#""type":"Create""#, r#""type":"Update""#)]),
    (
        "first-appearance",
        "EMM-4.1-first",
        &[Replace(D1, r#""type":"Create""#, r#""type":"Deprecate""#)],
    ),
    ("create-available", "EMM-4.1-available", &[Remove("/id/a.nt")]),
    ("update", "EMM-3.3-type", &[Replace(D2, r#""type":"Update""#, r#""type":"Move""#)]),
    ("delete", "EMM-3.3-type", &[Replace(D2, r#""type":"Delete""#, r#""type":"Undo""#)]),
    ("deprecate", "EMM-3.3-type", &[Replace(D2, r#""type":"Update""#, r#""type":"Flag""#)]),
];

/// MUSTs that no document shows broken, and why.
pub(crate) const WITHOUT: &[(&str, &str)] = &[
    ("entry-point", "an Entity Set without an Entry Point is not seen by a client"),
    ("released", "nothing else shows which changes were published"),
    ("all-statements", "nothing else shows which statements there are"),
];
