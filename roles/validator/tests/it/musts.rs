//! Every MUST of a specification about documents and Sources has a document that breaks it, which one of its rules
//! finds. Those MUSTs are in `conformance/*/manifest.toml`. Where a rule is for one MUST only, its case is that
//! document; of the others there is one for each here, or in `musts_*.rs`. Where no document can show a MUST broken
//! there is the reason, and the manifest names the tests of that behaviour.
//!
//! Each row of the tables in `docs` about EMM, IIIF and ResourceSync 0.1 names a rule that has a case, or has a
//! reason for none.

use crate::cases::{all_cases, failure};
use crate::emm_cases::failure_among_others;
use crate::site::{Break, Members};
use crate::{musts_emm_0_1, musts_emm_1_0, musts_feeds, musts_iiif, resourcesync_0_1, sdshare};
use Break::{Header, Members as InPackage, Replace};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use toml::{Table, Value};

const DESCRIPTION: &str = "/.well-known/resourcesync";
const UP: &str = r#"<rs:ln rel="up" href="{B}/caps.xml"/>"#;

/// A MUST, the rule that finds what breaks it, and the edits of the good Source.
pub(crate) type Mutant = (&'static str, &'static str, &'static [Break]);

const MUTANTS: &[Mutant] = &[
    (
        "6.1-same-capability",
        "RS-6.1-capability-equal",
        &[Replace("/rl1.xml", r#""resourcelist""#, r#""changelist""#)],
    ),
    ("6.2-up", "RS-6.2-up-leads", &[Replace("/rl1.xml", "{B}/caps.xml", "{B}/rl.xml")]),
    (
        "6.3.3-html-covers",
        "RS-6.3.3-link",
        &[Replace(
            "/r/d.html",
            "<body>",
            "<head><link rel='resourcesync' href='{B}/rl.xml'></head><body>",
        )],
    ),
    (
        "6.3.3-header-covers",
        "RS-6.3.3-link",
        &[Header("/r/b.txt", "Link", r#"<{B}/nothing.xml>; rel="resourcesync""#)],
    ),
    (
        "7-community-namespace",
        "RS-7-attributes",
        &[Replace("/rl1.xml", "type=", r#"color="red" type="#)],
    ),
    (
        "7-community-prefix",
        "RS-7-attributes",
        &[Replace("/cl1.xml", r#"pri="1""#, r#"pri="1" color="red""#)],
    ),
    (
        "7-capability",
        "RS-7-capability",
        &[Replace("/rla.xml", r#"<rs:md capability="resourcelist-archive""#, "<rs:md")],
    ),
    ("7-at-means", "RS-9-uniform-changes", &[Replace("/cl2.xml", "{B}/r/c.txt", "{B}/r/gone.txt")]),
    (
        "7-from-means",
        "RS-12.2-gap",
        &[Replace("/cl.xml", r#"from="2026-01-05"#, r#"from="2026-01-06"#)],
    ),
    (
        "7-until-means",
        "RS-12.2-gap",
        &[Replace("/cl.xml", r#"until="2026-01-05"#, r#"until="2026-01-04"#)],
    ),
    ("7-href", "RS-7-href", &[Replace("/rl1.xml", r#" href="{B}/rl.xml""#, "")]),
    ("7-rel", "RS-7-rel", &[Replace("/rl1.xml", r#"rel="index" "#, "")]),
    (
        "7-rel-valid",
        "RS-7-rel-registered",
        &[Replace("/cl1.xml", r#"rel="via""#, r#"rel="origin""#)],
    ),
    (
        "7-datetime-range",
        "RS-7-datetime-range",
        &[Replace("/cl1.xml", r#"datetime="2026-01-04"#, r#"datetime="2026-01-06"#)],
    ),
    (
        "8-capability",
        "RS-7-capability",
        &[Replace(DESCRIPTION, r#"<rs:md capability="description"/>"#, "<rs:md/>")],
    ),
    ("8-loc", "RS-7-loc", &[Replace(DESCRIPTION, "<loc>{B}/caps.xml</loc>", "")]),
    (
        "8-entry-capability",
        "RS-8-capability",
        &[Replace(DESCRIPTION, r#""capabilitylist""#, r#""resourcelist""#)],
    ),
    ("9-once", "RS-9-once", &[Replace("/caps.xml", r#""changedump""#, r#""resourcelist""#)]),
    (
        "9-uniform-changes",
        "RS-9-uniform-changes",
        &[Replace("/cl2.xml", "{B}/r/d.html", "{B}/r/gone.html")],
    ),
    (
        "9-capability",
        "RS-7-capability",
        &[Replace("/caps.xml", r#"<rs:md capability="capabilitylist""#, "<rs:md")],
    ),
    ("9-loc", "RS-7-loc", &[Replace("/caps.xml", "<loc>{B}/rd.xml</loc>", "")]),
    (
        "10.1-capability",
        "RS-7-capability",
        &[Replace("/rl1.xml", r#"<rs:md capability="resourcelist""#, "<rs:md")],
    ),
    ("10.1-at", "RS-A-at", &[Replace("/rl1.xml", r#" at="2026-01-10T00:00:00Z""#, "")]),
    ("10.1-loc", "RS-7-loc", &[Replace("/rl1.xml", "<loc>{B}/r/a.txt</loc>", "")]),
    (
        "10.2-capability",
        "RS-7-capability",
        &[Replace("/rl.xml", r#"<rs:md capability="resourcelist""#, "<rs:md")],
    ),
    ("10.2-loc", "RS-7-loc", &[Replace("/rl.xml", "<loc>{B}/rl1.xml</loc>", "")]),
    (
        "11.1-capability",
        "RS-7-capability",
        &[Replace("/rd.xml", r#"<rs:md capability="resourcedump""#, "<rs:md")],
    ),
    (
        "11.1-at",
        "RS-A-at",
        &[Replace("/rd.xml", r#""resourcedump" at="2026-01-10T00:00:00Z""#, r#""resourcedump""#)],
    ),
    ("11.1-loc", "RS-7-loc", &[Replace("/rd.xml", "<loc>{B}/p1.zip</loc>", "")]),
    ("11.1-contents", "RS-11.1-contents", &[Replace("/p1.xml", "{B}/r/a.txt", "{B}/r/aa.txt")]),
    ("11.1-group", "RS-9-once", &[Replace("/caps.xml", r#""changedump""#, r#""resourcedump""#)]),
    (
        "11.2-manifest",
        "RS-11.2-manifest",
        &[InPackage("/p2.zip", |members| drop(members.remove(0)))],
    ),
    (
        "11.2-name",
        "RS-11.2-manifest",
        &[InPackage("/p1.zip", |members| members[0].0.insert_str(0, "meta/"))],
    ),
    (
        "11.2-capability",
        "RS-11.2-manifest",
        &[InPackage("/p1.zip", |members| in_manifest(members, "resourcedump-", "changedump-"))],
    ),
    ("11.2-at", "RS-A-at", &[Replace("/p1.xml", r#" at="2026-01-10T00:00:00Z""#, "")]),
    ("11.2-up", "RS-11.2-up", &[Replace("/p1.xml", UP, "")]),
    ("11.2-loc", "RS-7-loc", &[Replace("/p1.xml", "<loc>{B}/r/a.txt</loc>", "")]),
    (
        "12.1-order",
        "RS-12.1-order",
        &[Replace("/cl1.xml", r#"datetime="2026-01-02T00"#, r#"datetime="2026-01-03T09"#)],
    ),
    (
        "12.1-capability",
        "RS-7-capability",
        &[Replace("/cl1.xml", r#"<rs:md capability="changelist""#, "<rs:md")],
    ),
    ("12.1-from", "RS-A-from", &[Replace("/cl1.xml", r#" from="2026-01-01T00:00:00Z""#, "")]),
    ("12.1-loc", "RS-7-loc", &[Replace("/cl1.xml", "<loc>{B}/r/x.txt</loc>", "")]),
    ("12.1-change", "RS-12.1-change", &[Replace("/cl1.xml", r#"change="deleted" "#, "")]),
    (
        "12.1-change-value",
        "RS-12.1-change-value",
        &[Replace("/cl1.xml", r#""deleted""#, r#""removed""#)],
    ),
    ("12.2-group", "RS-9-once", &[Replace("/caps.xml", r#""changedump""#, r#""changelist""#)]),
    (
        "12.2-capability",
        "RS-7-capability",
        &[Replace("/cl.xml", r#"<rs:md capability="changelist""#, "<rs:md")],
    ),
    ("12.2-loc", "RS-7-loc", &[Replace("/cl.xml", "<loc>{B}/cl1.xml</loc>", "")]),
    (
        "13.1-capability",
        "RS-7-capability",
        &[Replace("/cd.xml", r#"<rs:md capability="changedump""#, "<rs:md")],
    ),
    (
        "13.1-from",
        "RS-A-from",
        &[Replace("/cd.xml", r#""changedump" from="2026-01-01T00:00:00Z""#, r#""changedump""#)],
    ),
    ("13.1-loc", "RS-7-loc", &[Replace("/cd.xml", "<loc>{B}/c1.zip</loc>", "")]),
    ("13.1-contents", "RS-11.1-contents", &[Replace("/c1.xml", "{B}/r/a.txt", "{B}/r/aa.txt")]),
    ("13.1-group", "RS-9-once", &[Replace("/caps.xml", r#""resourcedump""#, r#""changedump""#)]),
    (
        "13.2-manifest",
        "RS-11.2-manifest",
        &[InPackage("/c1.zip", |members| drop(members.remove(0)))],
    ),
    (
        "13.2-order",
        "RS-12.1-order",
        &[Replace("/c1.xml", r#"datetime="2026-01-02T00"#, r#"datetime="2026-01-04T09"#)],
    ),
    (
        "13.2-capability",
        "RS-11.2-manifest",
        &[InPackage("/c1.zip", |members| in_manifest(members, "changedump-", "resourcedump-"))],
    ),
    ("13.2-all", "RS-11.2-exists", &[InPackage("/c1.zip", |members| drop(members.pop()))]),
    ("13.2-up", "RS-11.2-up", &[Replace("/c1.xml", UP, "")]),
    ("13.2-loc", "RS-7-loc", &[Replace("/c1.xml", "<loc>{B}/r/x.txt</loc>", "")]),
    ("13.2-change", "RS-12.1-change", &[Replace("/c1.xml", r#"change="created" "#, "")]),
    ("13.2-slash", "RS-11.2-slash", &[Replace("/c1.xml", r#"path="/1/a"#, r#"path="1/a"#)]),
    (
        "14.2-rel-href",
        "RS-7-href",
        &[Replace("/cl1.xml", r#" href="http://mirror.example/b.txt""#, "")],
    ),
    ("14.3-alternate", "RS-7-href", &[Replace("/cl1.xml", r#" href="{B}/r/b.pdf""#, "")]),
    (
        "14.3-canonical",
        "RS-7-href",
        &[Replace("/cl1.xml", r#"rel="alternate" href="{B}/r/b.pdf""#, r#"rel="canonical""#)],
    ),
    ("14.4-rel-href", "RS-7-href", &[Replace("/cl1.xml", r#" href="{B}/patch""#, "")]),
    ("14.4-type", "RS-14.4-type", &[Replace("/cl1.xml", r#" type="text/x-patch""#, "")]),
    ("14.4-unambiguous", "RS-7-type", &[Replace("/cl1.xml", r#""text/x-patch""#, r#""patch""#)]),
    (
        "14.5-rel-href",
        "RS-7-href",
        &[Replace("/cl1.xml", r#"rel="alternate" href="{B}/r/b.pdf""#, r#"rel="describedby""#)],
    ),
    ("14.6-timegate", "RS-7-href", &[Replace("/cl1.xml", r#" href="{B}/timegate/b.txt""#, "")]),
    (
        "14.6-timemap",
        "RS-7-href",
        &[Replace("/cl1.xml", r#"rel="timegate" href="{B}/timegate/b.txt""#, r#"rel="timemap""#)],
    ),
    (
        "14.7-collection",
        "RS-7-href",
        &[Replace(
            "/cl1.xml",
            r#"rel="timegate" href="{B}/timegate/b.txt""#,
            r#"rel="collection""#,
        )],
    ),
    ("14.8-via", "RS-7-href", &[Replace("/cl1.xml", r#" href="http://origin.example/b.txt""#, "")]),
    (
        "14.8-own-times",
        "RS-7-datetime-range",
        &[Replace("/cl1.xml", r#"datetime="2026-01-02"#, r#"datetime="2025-12-02"#)],
    ),
    (
        "A-at",
        "RS-A-at",
        &[Replace("/rl.xml", r#""resourcelist" at="2026-01-10T00:00:00Z""#, r#""resourcelist""#)],
    ),
    (
        "A-from",
        "RS-A-from",
        &[Replace("/cl.xml", r#""changelist" from="2026-01-01T00:00:00Z""#, r#""changelist""#)],
    ),
];

/// MUSTs that no document shows broken, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("6.3.3-header-rel", "a link of another relation is not a link of ResourceSync"),
    ("6.3.3-html-rel", "a link of another relation is not a link of ResourceSync"),
    ("7-until-closed", "one visit does not show that a document changes later"),
    ("7-until-open", "one visit does not show that a document stays the same"),
    ("8-index", "one Source Description without an index is a Source that has no others"),
    ("9-sets", "resources of two sets in one list are resources of one set"),
    ("12.1-every", "nothing else shows how often a resource changed"),
];

/// The MUSTs of a specification, as documents show them.
struct Specification {
    /// Its folder in `conformance`.
    name: &'static str,
    mutants: &'static [Mutant],
    without: &'static [(&'static str, &'static str)],
    /// Why a rule does not find the edits.
    failure: fn(&str, &[Break]) -> Option<String>,
}

const SPECIFICATIONS: &[Specification] = &[
    Specification { name: "rs-core", mutants: MUTANTS, without: WITHOUT, failure },
    Specification {
        name: "rs-0.1",
        mutants: musts_feeds::RESOURCESYNC_0_1,
        without: &[],
        failure: resourcesync_0_1::failure,
    },
    Specification {
        name: "sdshare",
        mutants: musts_feeds::SDSHARE,
        without: musts_feeds::WITHOUT_SDSHARE,
        failure: sdshare::failure,
    },
    Specification {
        name: "emm-0.1",
        mutants: musts_emm_0_1::MUTANTS,
        without: musts_emm_0_1::WITHOUT,
        failure: failure_among_others,
    },
    Specification {
        name: "emm-1.0",
        mutants: musts_emm_1_0::MUTANTS,
        without: musts_emm_1_0::WITHOUT,
        failure: failure_among_others,
    },
    Specification {
        name: "iiif-discovery",
        mutants: musts_iiif::MUTANTS,
        without: musts_iiif::WITHOUT,
        failure: failure_among_others,
    },
];

fn in_manifest(members: &mut Members, from: &str, to: &str) {
    let text = String::from_utf8(members[0].1.clone()).unwrap();
    assert!(text.contains(from));
    members[0].1 = text.replace(from, to).into_bytes();
}

/// A MUST: the rules and the tests that its manifest names.
struct Must {
    rules: Vec<String>,
    has_tests: bool,
}

/// The MUSTs of a specification about documents and Sources.
fn musts(name: &str) -> BTreeMap<String, Must> {
    let path = format!("{}/../../conformance/{name}/manifest.toml", env!("CARGO_MANIFEST_DIR"));
    let table: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    let words = |value: &Value| value.as_str().unwrap().to_owned();
    let is_ours = |one: &&Value| {
        one["level"].as_str() == Some("must") && one["about"].as_str() != Some("destination")
    };
    let must = |one: &Value| {
        let rules = one.get("rules").and_then(Value::as_array);
        let rules = rules.into_iter().flatten().map(words).collect();
        Must { rules, has_tests: one.get("tests").is_some() }
    };
    let all = table["requirement"].as_array().unwrap().iter().filter(is_ours);
    all.map(|one| (words(&one["id"]), must(one))).collect()
}

#[test]
fn each_must_has_a_document_that_breaks_it() {
    let cases: BTreeSet<_> = all_cases().map(|(rule, _)| *rule).collect();
    for specification in SPECIFICATIONS {
        let name = specification.name;
        let musts = musts(name);
        let has_mutants: BTreeSet<_> = specification.mutants.iter().map(|(id, ..)| *id).collect();
        let without: BTreeSet<_> = specification.without.iter().map(|(id, _)| *id).collect();
        let known = |id: &&str| musts.contains_key(*id);
        let unknown: Vec<_> = has_mutants.iter().chain(&without).filter(|id| !known(id)).collect();
        assert!(unknown.is_empty(), "{name}: not in the manifest: {unknown:?}");
        let foreign = |(id, rule, _): &&Mutant| !musts[*id].rules.iter().any(|own| own == rule);
        let foreign: Vec<_> = specification.mutants.iter().filter(foreign).collect();
        let foreign: Vec<_> = foreign.iter().map(|(id, rule, _)| (id, rule)).collect();
        assert!(foreign.is_empty(), "{name}: the manifest does not name the rule: {foreign:?}");
        let uses = |rule: &String| musts.values().filter(|must| must.rules.contains(rule)).count();
        let has_case = |rule: &String| uses(rule) == 1 && cases.contains(rule.as_str());
        let is_shown =
            |id: &str, must: &Must| has_mutants.contains(id) || must.rules.iter().any(has_case);
        let missing: Vec<_> = musts
            .iter()
            .filter(|(id, must)| is_shown(id, must) == without.contains(id.as_str()))
            .map(|(id, _)| id)
            .collect();
        assert!(
            missing.is_empty(),
            "{name}: without a mutant, or with a reason that is not needed: {missing:?}"
        );
        let untested: Vec<_> = without.iter().filter(|id| !musts[**id].has_tests).collect();
        assert!(untested.is_empty(), "{name}: neither a mutant nor a test: {untested:?}");
    }
}

#[test]
fn each_must_is_found_broken() {
    let all: Vec<_> = SPECIFICATIONS
        .iter()
        .flat_map(|one| one.mutants.iter().map(move |mutant| (one, mutant)))
        .collect();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((one, (id, rule, breaks))) =
                    all.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if let Some(failure) = (one.failure)(rule, breaks) {
                        let failure = format!("{} {id}: {failure}", one.name);
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} mutants\n{}", failures.len(), failures.join("\n"));
}

/// Rows of the tables of the other specifications that name no rule, and why.
const ROWS_WITHOUT: &[(&str, &str)] = &[
    ("C4", "a schedule cannot be seen in a feed"),
    ("§4.2", "it binds readers"),
    ("2.2 processes", "it binds readers"),
    ("4.1 HTTP GET", "it is the default"),
    ("6.2 versions", "links to versions are optional"),
    ("E1", "a set without a feed cannot be seen"),
    ("B WARC", "the section is empty"),
];

#[test]
fn each_row_of_the_other_specifications_has_a_rule() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    let cases: BTreeSet<_> = all_cases().map(|(rule, _)| *rule).collect();
    let (mut without, mut rows) = (BTreeSet::new(), 0);
    for (page, begin, end) in [
        ("emm.md", "## Conformance", "Requirements of the specifications for readers"),
        ("specs/resourcesync-0.1.md", "## Section by section", "## Misprints"),
    ] {
        let text = std::fs::read_to_string(format!("{docs}{page}")).unwrap();
        let (_, tables) = text.split_once(begin).unwrap();
        let (tables, _) = tables.split_once(end).unwrap();
        for row in tables.lines().filter_map(|line| line.strip_prefix("| ")) {
            let first = row.split(" |").next().unwrap_or_default();
            let is_head = matches!(first, "" | "|" | "Section") || row.starts_with("| ");
            if is_head || row.starts_with('|') {
                continue;
            }
            rows += 1;
            if !row.split('`').any(|word| cases.contains(word)) {
                without.insert(first.to_owned());
            }
        }
    }
    let reasons = ROWS_WITHOUT.iter().map(|(row, _)| (*row).to_owned()).collect();
    assert_eq!(without, reasons);
    assert!(rows > 50, "{rows}");
}
