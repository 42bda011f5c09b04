//! For each MUST of SDShare and of ResourceSync 0.1 a document that breaks it, where the case of its rule is not
//! that document. The MUSTs are in `conformance/sdshare/manifest.toml` and `conformance/rs-0.1/manifest.toml`.

use crate::musts::Mutant;
use crate::resourcesync_0_1::{ENTRY, in_manifest};
use crate::site::Break;
use Break::{Header, Members, Remove, Repeat, Replace};

const LISTED: &str = "<sitemap><loc>{B}/list9.xml</loc></sitemap>\n";

pub(crate) const SDSHARE: &[Mutant] = &[
    (
        "overview-type",
        "SDS-5.1-type",
        &[Replace(
            "/sdshare",
            r#"core/collectionfeed" type="application/atom+xml""#,
            r#"core/collectionfeed" type="application/xml""#,
        )],
    ),
    (
        "overview-href",
        "ATOM-4.2.7-href",
        &[Replace(
            "/sdshare",
            r#"core/collectionfeed" type="application/atom+xml" href="{B}/s""#,
            r#"core/collectionfeed" type="application/atom+xml""#,
        )],
    ),
    (
        "overview-alternate",
        "SDS-5.1-alternate",
        &[Replace(
            "/sdshare",
            r#"<link rel="alternate" type="application/atom+xml" href="{B}/s"/>"#,
            "",
        )],
    ),
    (
        "collection-alternate",
        "SDS-5.1-alternate",
        &[Replace(
            "/s",
            r#"<link rel="alternate" type="application/atom+xml" href="{B}/s/snapshots"/>"#,
            "",
        )],
    ),
    (
        "collection-alternate",
        "SDS-5.1-alternate",
        &[Replace(
            "/s",
            r#"<link rel="alternate" type="application/atom+xml" href="{B}/s/fragments"/>"#,
            "",
        )],
    ),
    (
        "snapshot-type",
        "SDS-5.1-type",
        &[Replace(
            "/s/snapshots",
            r#"core/snapshot" type="application/n-triples""#,
            r#"core/snapshot""#,
        )],
    ),
    (
        "snapshot-href",
        "ATOM-4.2.7-href",
        &[Replace(
            "/s/snapshots",
            r#"core/snapshot" type="application/n-triples" href="{B}/s/snap.nt""#,
            r#"core/snapshot" type="application/n-triples""#,
        )],
    ),
    (
        "snapshot-updated",
        "SDS-5.1.3-updated",
        &[Replace("/s/snap.nt", r#""1""#, r#""0""#), Replace("/s/snap.ttl", r#""1""#, r#""0""#)],
    ),
    (
        "snapshot-alternate",
        "SDS-5.1-alternate",
        &[Replace(
            "/s/snapshots",
            r#"<link rel="alternate" type="text/turtle" href="{B}/s/snap.ttl"/>"#,
            "",
        )],
    ),
    (
        "chunk-type",
        "SDS-5.1-type",
        &[Replace(
            "/s/chunks",
            r#"core/snapshot-component" type="application/n-triples""#,
            r#"core/snapshot-component""#,
        )],
    ),
    (
        "chunk-href",
        "ATOM-4.2.7-href",
        &[Replace(
            "/s/chunks",
            r#"core/snapshot-component" type="application/n-triples" href="{B}/s/chunk1.nt""#,
            r#"core/snapshot-component" type="application/n-triples""#,
        )],
    ),
    (
        "chunk-alternate",
        "SDS-5.1-alternate",
        &[Replace(
            "/s/chunks",
            r#"<link rel="alternate" type="application/n-triples" href="{B}/s/chunk1.nt"/>"#,
            "",
        )],
    ),
    (
        "fragment-type",
        "SDS-5.1-type",
        &[Replace(
            "/s/fragments",
            r#"core/fragment" type="application/n-triples""#,
            r#"core/fragment""#,
        )],
    ),
    (
        "fragment-alternate",
        "SDS-5.1-alternate",
        &[Replace(
            "/s/fragments",
            r#"<link rel="alternate" type="application/n-triples" href="{B}/f/a.nt"/>"#,
            "",
        )],
    ),
    (
        "fragment-resource",
        "SDS-5.1.5-resource",
        &[Replace(
            "/s/fragments",
            "<sd:resource>http://id.example/a</sd:resource>",
            "<sd:resource>http://id.example/a</sd:resource><sd:resource>http://id.example/z</sd:resource>",
        )],
    ),
    (
        "fragment-resource",
        "SDS-5.1.5-resource",
        &[Replace(
            "/s/fragments",
            "<sd:resource>http://id.example/a</sd:resource>",
            r#"<category term="a"><sd:resource>http://id.example/a</sd:resource></category>"#,
        )],
    ),
    (
        "since-accepted",
        "SDS-5.1.5-since",
        &[Header("/s/fragments?since=2026-01-04T00:00:00.000000Z", "Status", "400 Bad Request")],
    ),
    (
        "since-older",
        "SDS-5.1.5-since",
        &[Replace(
            "/s/fragments?since=2026-01-04T00:00:00.000000Z",
            "2026-01-04T00:00:00Z",
            "2026-01-03T00:00:00Z",
        )],
    ),
    (
        "closure-statements",
        "SDS-5.1.3-updated",
        &[
            Replace(
                "/f/b.nt",
                r#"_:b <http://p.example/value> "2" .
"#,
                "",
            ),
            Replace(
                "/f/b.ttl",
                r#"_:b <http://p.example/value> "2" .
"#,
                "",
            ),
        ],
    ),
    (
        "closure-blank-nodes",
        "SDS-5.1.5-closure",
        &[Replace(
            "/f/a.nt",
            "<http://id.example/a> <http://p.example/has> _:a .
",
            "",
        )],
    ),
];

/// MUSTs that no document shows broken, and why.
pub(crate) const WITHOUT_SDSHARE: &[(&str, &str)] =
    &[("fragments-each", "nothing else shows which resources changed")];

pub(crate) const RESOURCESYNC_0_1: &[Mutant] = &[
    ("sitemap-root", "RS01-3.1-root", &[Replace("/list1.xml", "urlset", "sitemap")]),
    ("entries-in-url", "RS01-3.1-root", &[Replace("/list1.xml", "url>", "sitemap>")]),
    ("loc", "RS01-3.1.1-loc", &[Replace("/list1.xml", "<loc>{B}/r/a</loc>", "")]),
    (
        "loc-once",
        "RS01-3.1.1-loc",
        &[Replace("/list1.xml", "<loc>{B}/r/a</loc>", "<loc>{B}/r/a</loc><loc>{B}/r/z</loc>")],
    ),
    ("loc-available", "RS-10.1-available", &[Remove("/r/b")]),
    ("size-number", "RS01-3.1.4-size", &[Replace("/list1.xml", "<rs:size>5<", "<rs:size>-5<")]),
    ("size-equal", "RS-7-length-true", &[Replace("/list1.xml", "<rs:size>5<", "<rs:size>6<")]),
    ("mimetype-equal", "RS-7-type-true", &[Replace("/list1.xml", "text/plain", "text/html")]),
    (
        "encoding-equal",
        "RS-7-encoding-true",
        &[Replace(
            "/list1.xml",
            "<rs:mimetype>",
            "<rs:contentencoding>gzip</rs:contentencoding><rs:mimetype>",
        )],
    ),
    (
        "lastmod-datetime",
        "RS01-3.1.2-datetime",
        &[Replace("/list1.xml", "<lastmod>2026-01-01T00:00:00Z<", "<lastmod>1.1.2026<")],
    ),
    (
        "lastmod-zone",
        "RS01-3.1.2-datetime",
        &[Replace("/list1.xml", "<lastmod>2026-01-01T00:00:00Z<", "<lastmod>2026-01-01T00:00:00<")],
    ),
    (
        "expires-datetime",
        "RS01-3.1.2-datetime",
        &[Replace("/changes/2.xml", "<expires>2026-01-06T00:00:00Z<", "<expires>6.1.2026<")],
    ),
    ("fixity-type", "RS01-3.1.3-fixity", &[Replace("/list1.xml", r#" type="md5""#, "")]),
    (
        "fixity-value",
        "RS01-3.1.3-fixity",
        &[Replace("/list1.xml", "==</rs:fixity>", "</rs:fixity>")],
    ),
    ("fixity-true", "RS-7-hash-true", &[Replace("/r/b", "bbbbb", "bbbbc")]),
    ("sitemap-entries", "RS01-3.2-items", &[Repeat("/list2.xml", ENTRY, 50_000)]),
    ("index-entries", "RS01-3.2-items", &[Repeat("/sitemap.xml", LISTED, 50_000)]),
    (
        "index-root",
        "RS01-3.1-root",
        &[
            Replace("/sitemap.xml", "<sitemap>", "<url>"),
            Replace("/sitemap.xml", "</sitemap>", "</url>"),
        ],
    ),
    ("index-loc", "RS01-3.1.1-loc", &[Replace("/sitemap.xml", "<loc>{B}/list2.xml</loc>", "")]),
    (
        "manifest-sitemap",
        "RS01-3.1-root",
        &[Members("/dump.zip", |members| in_manifest(members, "sitemap/0.9", "sitemap/0.8"))],
    ),
    (
        "manifest-sitemap",
        "RS01-3.1.4-size",
        &[Members("/dump.zip", |members| in_manifest(members, "<rs:size>5", "<rs:size>five"))],
    ),
    ("change-set-root", "RS01-3.1-root", &[Replace("/changes/2.xml", "urlset", "changeset")]),
    ("change-set-loc", "RS01-3.1.1-loc", &[Replace("/changes/2.xml", "<loc>{B}/r/d</loc>", "")]),
    (
        "change-kind",
        "RS01-5.1-change",
        &[Replace("/changes/2.xml", "<expires>2026-01-06T00:00:00Z</expires>", "")],
    ),
    (
        "change-one-kind",
        "RS01-5.1-change",
        &[Replace(
            "/changes/2.xml",
            "<expires>",
            r#"<lastmod rs:type="updated">2026-01-06T00:00:00Z</lastmod><expires>"#,
        )],
    ),
    (
        "change-time",
        "RS01-3.1.2-datetime",
        &[Replace(
            "/changes/current.xml",
            r#"rs:type="updated">2026-01-08T00:00:00Z"#,
            r#"rs:type="updated">"#,
        )],
    ),
    (
        "xmpp-elements",
        "RS01-5.1-change",
        &[
            Replace(
                "/changes/2.xml",
                "<urlset rs:type",
                r#"<iq xmlns="jabber:client"><urlset rs:type"#,
            ),
            Replace("/changes/2.xml", "</urlset>", "</urlset></iq>"),
            Replace("/changes/2.xml", "<expires>2026-01-06T00:00:00Z</expires>", ""),
        ],
    ),
];
