//! Deviations from the specification that are read anyway, and their reports.
#![allow(clippy::unwrap_used)]

use abreast_resourcesync::v1_1::{
    Capability, Entry, Error, Head, Limits, Parser, Root, Step, Tolerance,
};

const NS: &str = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'";
const MD: &str = "<rs:md capability='resourcelist' at='2026-01-03T09:00:00Z'/>";

type Outcome = Result<(Head, Vec<Entry>, Vec<(&'static str, u64, u64)>, u64), Error>;

/// Head, entries, findings as code, line and count, and the number of entries left out.
fn read(text: &str, tolerance: Tolerance) -> Outcome {
    let mut parser = Parser::with_tolerance(Limits::default(), tolerance);
    parser.feed(text.as_bytes());
    parser.finish();
    let (mut entries, mut entry) = (Vec::new(), Entry::default());
    loop {
        match parser.next(&mut entry)? {
            Step::Entry => entries.push(entry.clone()),
            Step::End => break,
            Step::Head | Step::NeedInput => {}
        }
    }
    let findings = parser
        .findings()
        .iter()
        .map(|finding| (finding.code, finding.line, finding.count))
        .collect();
    Ok((parser.head().unwrap().clone(), entries, findings, parser.skipped()))
}

fn list(content: &str) -> String {
    format!("<urlset {NS}>\n{content}</urlset>")
}

#[test]
fn unambiguous_deviations_are_reported_unless_strict() {
    let entry = |inner: &str| list(&format!("{MD}\n<url><loc>http://h/a</loc>{inner}</url>"));
    for (text, code) in [
        (list("<url><loc>http://h/a</loc></url>"), "rs.no-md"),
        (
            list(
                "<rs:md capability='ResourceList' at='2026-01-03T09:00:00Z'/><url><loc>http://h/a</loc></url>",
            ),
            "rs.capability-case",
        ),
        (
            list(
                "<rs:md rs:capability='resourcelist' rs:at='2026-01-03'/><url><loc>http://h/a</loc></url>",
            ),
            "rs.prefix",
        ),
        (entry("<lastmod>2026-01-03T09:00:00</lastmod>"), "rs.zone"),
        (entry("<lastmod>2026-01-03T09:00</lastmod>"), "rs.zone"),
        (entry("<lastmod>2026-01-03 09:00:00Z</lastmod>"), "rs.datetime-form"),
        (entry("<lastmod>2026-01-03T09:00:00.5+0100</lastmod>"), "rs.datetime-form"),
        (entry("<lastmod>2026-01-03T09:00:00+00</lastmod>"), "rs.datetime-form"),
        (entry("<lastmod/>"), "rs.no-date"),
        (entry("<lastmod> </lastmod>"), "rs.no-date"),
        (entry("<lastmod>+00</lastmod>"), "rs.no-date"),
        (entry("<lastmod>+00:00</lastmod>"), "rs.no-date"),
        (entry("<lastmod>-0001-11-30T00:00:00+00:00</lastmod>"), "rs.no-date"),
        (entry("<lastmod>0000-00-00</lastmod>"), "rs.no-date"),
        (entry("<lastmod>null</lastmod>"), "rs.no-date"),
        (entry("<lastmod>-</lastmod>"), "rs.no-date"),
        (entry("<lastmod>Z</lastmod>"), "rs.no-date"),
        (entry("<lastmod>N/A</lastmod>"), "rs.no-date"),
        (entry("<rs:md hash=\"md5:12\"/>"), "rs.hash"),
        (entry("rs:md length=\"1\"/>"), "rs.text"),
        (entry("<rs:md length=\"1\">rs:ln/></rs:md>"), "rs.text"),
        (entry("<rs:ln rel=\"describedby\" href=\"/x\">x</rs:ln>"), "rs.text"),
        (list(&format!("{MD}<url><loc>\u{feff}http://h/a\u{a0}\n</loc></url>")), "rs.loc-space"),
        (entry("<rs:md hash='md5:XUFAKrxLKna5cZ2REBfFkg=='/>"), "rs.hash-base64"),
        (entry("<rs:md capability='everything'/>"), "rs.capability-unknown"),
        (list(&format!("{MD}<sitemap><loc>http://h/a</loc></sitemap>")), "rs.root"),
        (entry("<rs:md change='created'/>"), "rs.change-ignored"),
        (entry("<rs:md capability=' resourcelist'/>"), "rs.space"),
        (entry("<rs:ln rel='up'/>"), "rs.link"),
        (entry("<rs:ln href='up'/>"), "rs.link"),
        (entry("<lastmod>2026-01-03</lastmod><lastmod>2026-01-03</lastmod>"), "rs.repeated"),
        (list("<rs:md capability='resourcelist'/><url><loc>http://h/a</loc></url>"), "rs.no-at"),
        (list("<rs:md capability='changedump'/><url><loc>http://h/a</loc></url>"), "rs.no-from"),
        (
            list(
                "<rs:md capability='changelist' from='2026-01-03'/><url><loc>http://h/a</loc><rs:md change='updated '/></url>",
            ),
            "rs.space",
        ),
        (
            format!("<sitemapindex {NS}>\n{MD}<url><loc>http://h/a</loc></url></sitemapindex>"),
            "rs.root",
        ),
    ] {
        let (_, entries, findings, skipped) = read(&text, Tolerance::Usual).unwrap();
        assert_eq!((entries.len(), skipped), (1, 0), "{text}");
        assert_eq!(entries[0].loc, "http://h/a", "{text}");
        assert_eq!(findings.iter().map(|(code, ..)| *code).collect::<Vec<_>>(), [code], "{text}");
        assert_eq!(read(&text, Tolerance::Strict).unwrap_err().code(), code, "{text}");
    }
    let (_, entries, findings, _) =
        read(&entry("<rs:md hash='md5:5d41402abc4b2a76b9719d911017c592'/>"), Tolerance::Strict)
            .unwrap();
    assert_eq!((entries.len(), findings.len()), (1, 0));
}

#[test]
fn a_time_without_zone_is_taken_for_utc() {
    let (_, entries, findings, _) = read(
        &list(&format!("{MD}\n<url><loc>a</loc><lastmod>2026-01-03T09:00:00</lastmod></url>\n<url><loc>b</loc><lastmod>2026-01-03T10:00</lastmod></url>")),
        Tolerance::Usual,
    )
    .unwrap();
    assert_eq!(entries[0].lastmod.unwrap().instant.to_string(), "2026-01-03T09:00:00Z");
    assert_eq!(findings, [("rs.zone", 3, 2)]);
}

#[test]
fn where_root_and_entries_disagree_it_is_an_index() {
    for text in [
        list(&format!("{MD}<sitemap><loc>http://h/a</loc></sitemap>")),
        format!("<sitemapindex {NS}>{MD}<url><loc>http://h/a</loc></url></sitemapindex>"),
    ] {
        let (head, ..) = read(&text, Tolerance::Usual).unwrap();
        assert_eq!(
            (head.root, head.capability),
            (Root::SitemapIndex, Some(Capability::ResourceList)),
            "{text}"
        );
    }
}

#[test]
fn the_right_spelling_counts_where_a_prefixed_one_is_there_too() {
    for md in [
        "rs:capability='changelist' capability='resourcelist'",
        "capability='resourcelist' rs:capability='changelist'",
    ] {
        let (head, ..) = read(&list(&format!("<rs:md {md}/>")), Tolerance::Usual).unwrap();
        assert_eq!(head.capability, Some(Capability::ResourceList), "{md}");
    }
}

#[test]
fn invalid_entries_are_skipped_only_when_lenient() {
    for bad in [
        "<url><loc>http://h/bad</loc><lastmod>yesterday</lastmod><rs:md length='1'/></url>",
        "<url><loc>http://h/bad</loc><rs:md length='many'><x><y/></x></rs:md></url>",
        "<url><loc>http://h/bad</loc><rs:md change='modified'/><rs:ln rel='a' href='b'/></url>",
        "<url><loc>http://h/bad</loc><rs:md/><rs:md/></url>",
        "<url><loc>a<b><c/></b></loc></url>",
        "<url><loc>a</loc><loc>b</loc></url>",
        "<url><rs:md length='1'/></url>",
        "<url><loc>http://h/a b</loc></url>",
        "<url/>",
    ] {
        let text = list(&format!(
            "{MD}\n<url><loc>http://h/a</loc></url>\n{bad}\n<url><loc>http://h/z</loc></url>"
        ));
        assert!(read(&text, Tolerance::Usual).is_err(), "{bad}");
        let (_, entries, findings, skipped) = read(&text, Tolerance::Lenient).unwrap();
        let locs: Vec<_> = entries.iter().map(|entry| entry.loc.as_str()).collect();
        assert_eq!(locs, ["http://h/a", "http://h/z"], "{bad}");
        assert_eq!(
            (entries[1].length, skipped, findings.as_slice()),
            (None, 1, &[("rs.entry", 4, 1)][..]),
            "{bad}"
        );
    }
}

#[test]
fn deviations_that_lose_data_are_refused_even_if_lenient() {
    for (text, code) in [
        (list("<rs:md at='2026-01-03'/>"), "rs.capability"),
        (list("<rs:md capability='everything'/>"), "rs.capability"),
        (
            list(
                "<rs:md capability='changelist' from='2026-01-03T09:00:00Z' until='2026-01-03T08:00:00Z'/>",
            ),
            "time.interval",
        ),
        (list("<url><loc>a</loc></url><sitemap><loc>a</loc></sitemap>"), "rs.root"),
        (list(&format!("<url><loc>a</loc></url>{MD}")), "rs.order"),
    ] {
        assert_eq!(read(&text, Tolerance::Lenient).unwrap_err().code(), code, "{text}");
    }
}

#[test]
fn of_a_snapshot_that_ends_early_the_earlier_time_is_taken() {
    let text = |capability: &str| {
        list(&format!(
            "<rs:md capability='{capability}' at='2026-01-03T09:00:00Z' completed='2026-01-03T08:00:00Z'/>"
        ))
    };
    for capability in ["resourcelist", "resourcedump", "resourcedump-manifest"] {
        assert_eq!(read(&text(capability), Tolerance::Usual).unwrap_err().code(), "time.interval");
        let (head, _, findings, skipped) = read(&text(capability), Tolerance::Lenient).unwrap();
        let time = |time: Option<abreast_webtypes::W3cDatetime>| time.unwrap().instant.to_string();
        assert_eq!(
            (time(head.at), time(head.completed)),
            ("2026-01-03T08:00:00Z".into(), "2026-01-03T09:00:00Z".into())
        );
        assert_eq!((findings, skipped), (vec![("time.interval", 2, 1)], 0));
    }
}
