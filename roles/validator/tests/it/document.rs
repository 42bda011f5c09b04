//! Documents judged by themselves.

use abreast_validator::{Finding, Mode, Severity, check_document};
use std::collections::BTreeSet;
use std::path::Path;

fn examples() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/resourcesync-1.1");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("ex-"))
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
        })
        .collect();
    found.sort();
    assert_eq!(found.len(), 30);
    found
}

/// Those of the specifications of notifications: two Capability Lists and three notifications.
fn notifications() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/resourcesync-1.1");
    ["change-notification-ex-1", "change-notification-ex-7", "framework-notification-ex-1"]
        .into_iter()
        .chain(["framework-notification-ex-2", "framework-notification-ex-8"])
        .map(|name| (name.to_owned(), std::fs::read(folder.join(format!("{name}.xml"))).unwrap()))
        .collect()
}

fn worst(found: &[Finding]) -> Option<&Finding> {
    found.iter().max_by_key(|found| found.severity)
}

#[test]
fn specification_examples_get_only_notes_in_lenient_mode() {
    for (name, bytes) in examples() {
        let found = check_document(&name, &bytes, Mode::Lenient);
        assert!(
            worst(&found).is_none_or(|found| found.severity == Severity::Note),
            "{name}: {found:#?}"
        );
    }
}

/// Those of ResourceSync 0.1, without misprints. One has nothing that only 0.1 has: a plain Sitemap.
#[test]
fn good_examples_of_0_1_have_only_notes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/resourcesync-0.1");
    let (mut count, mut plain) = (0, BTreeSet::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_none_or(|ending| ending != "xml") || name.contains("as-printed") {
            continue;
        }
        count += 1;
        for mode in [Mode::Lenient, Mode::Normal] {
            let found = check_document(name, &std::fs::read(&path).unwrap(), mode);
            let is_plain = found.iter().any(|found| found.rule.id == "RS-7-md");
            let is_note = |found: &Finding| found.severity == Severity::Note;
            plain.extend(is_plain.then(|| name.to_owned()));
            assert!(is_plain || found.iter().all(is_note), "{name}: {found:#?}");
        }
    }
    assert_eq!(count, 30);
    assert_eq!(plain, BTreeSet::from(["ex-2.1.xml".to_owned()]));
}

#[test]
fn what_follows_a_fault_of_xml_is_not_missing() {
    const ROOT: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">";
    let md = |kind: &str, times: &str| format!("<rs:md capability=\"{kind}\" {times}/>");
    let list = md("resourcelist", "at=\"2026-01-01T00:00:00Z\"");
    let caps = md("capabilitylist", "") + "<rs:ln rel=\"up\" href=\"http://h/\"/>";
    let dump = md("changedump", "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-09T00:00:00Z\"")
        + "<rs:ln rel=\"up\" href=\"http://h/\"/><url><loc>http://h/p.zip</loc>\
           <rs:md from=\"2026-01-01T00:00:00Z\" until=\"2026-01-03T00:00:00Z\" type=\"application/zip\" length=\"9\"/></url>";
    for (before, missing) in [
        ("", "RS-7-md"),
        (&*list, "RS-10.1-up"),
        (&*caps, "RS-9-describedby"),
        (&*dump, "RS-13.1-span"),
    ] {
        let begin = format!("{ROOT}{before}<!-- ");
        let whole = [begin.as_bytes(), b"-->", b"</urlset>"].concat();
        let broken = [begin.as_bytes(), b"\xe9 -->", b"</urlset>"].concat();
        let ids = |document: &[u8]| -> BTreeSet<&str> {
            let found = check_document("d", document, Mode::Normal);
            found.iter().map(|found| found.rule.id).collect()
        };
        let of_whole = ids(&whole);
        assert!(of_whole.contains(missing), "{missing}: {of_whole:?}");
        assert_eq!(ids(&broken), BTreeSet::from(["SITEMAP-utf-8"]), "{missing}");
    }
    let set = ROOT.replace("xmlns:rs", "rs:type=\"changeset\" xmlns:rs");
    let broken = [set.as_bytes(), b"<!-- \xe9 --></urlset>"].concat();
    let found = check_document("d", &broken, Mode::Normal);
    let ids: Vec<_> = found.iter().map(|found| found.rule.id).collect();
    assert_eq!(ids, ["SITEMAP-utf-8"]);
}

/// Sitemaps are in UTF-8; other documents may be in UTF-16 with a byte order mark.
#[test]
fn encodings_are_judged_by_the_kind_of_document() {
    let sitemap = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
        xmlns:rs='http://www.openarchives.org/rs/terms/'>\
        <rs:md capability='resourcelist' at='2026-01-01T00:00:00Z'/></urlset>";
    let of_0_1 = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
        xmlns:rs='http://www.openarchives.org/rs/terms/' rs:type='changeset'></urlset>";
    let feed = "<feed xmlns='http://www.w3.org/2005/Atom'><title>a</title><id>urn:a</id>\
        <updated>2026-01-01T00:00:00Z</updated><author><name>A</name></author></feed>";
    let declared = |text: &str, encoding: &str| {
        format!("<?xml version='1.0' encoding='{encoding}'?>{text}").into_bytes()
    };
    let utf_16 = |text: &str| {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_be_bytes).collect::<Vec<_>>()
    };
    let of_sitemap = Some("SITEMAP-utf-8");
    for (what, bytes, rule) in [
        ("UTF-8", declared(sitemap, "UTF-8"), None),
        ("UTF-16", utf_16(sitemap), of_sitemap),
        ("ISO-8859-1", declared(sitemap, "ISO-8859-1"), of_sitemap),
        ("EUC-JP", declared(sitemap, "EUC-JP"), of_sitemap),
        ("0.1 in UTF-8", declared(of_0_1, "UTF-8"), None),
        ("0.1 in UTF-16", utf_16(of_0_1), of_sitemap),
        ("0.1 in EUC-JP", declared(of_0_1, "EUC-JP"), of_sitemap),
        ("Atom in UTF-8", declared(feed, "UTF-8"), None),
        ("Atom in UTF-16", utf_16(feed), None),
    ] {
        let found = check_document("d", &bytes, Mode::Normal);
        let ids = found.iter().map(|found| found.rule.id).filter(|id| id.ends_with("-utf-8"));
        assert_eq!(ids.collect::<Vec<_>>(), Vec::from_iter(rule), "{what}: {found:#?}");
    }
}

#[test]
fn normative_examples_have_only_their_known_errors() {
    for (name, bytes) in examples() {
        // The walkthrough leaves out `up`; example 27 has digests that are none.
        let known: &[&str] = match &name[3..5] {
            "01" | "02" | "03" | "04" | "05" | "08" => &["-up", "RS-9-up"],
            "27" => &["RS-7-hash"],
            _ => &[],
        };
        for found in check_document(&name, &bytes, Mode::Normal) {
            let is_known = known.iter().any(|known| found.rule.id.ends_with(known));
            assert!(found.severity < Severity::Error || is_known, "{name}: {found:#?}");
        }
    }
}

#[test]
fn the_examples_of_notifications_have_no_faults() {
    for (name, bytes) in notifications() {
        for mode in [Mode::Lenient, Mode::Normal] {
            let found = check_document(&name, &bytes, mode);
            assert!(found.is_empty(), "{name}: {found:#?}");
        }
    }
}

#[test]
fn recommendations_are_required_in_strict_mode() {
    let example = examples().into_iter().find(|(name, _)| name == "ex-17.xml").unwrap().1;
    let text = String::from_utf8(example).unwrap().replace("type=\"application/zip\"", "");
    let of =
        |mode| check_document("d", text.as_bytes(), mode).iter().map(|found| found.severity).max();
    assert_eq!(of(Mode::Normal), Some(Severity::Note));
    assert_eq!(of(Mode::Strict), Some(Severity::Warning));
}

#[test]
fn reading_continues_after_each_fault_and_locates_it() {
    let document = b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'
  xmlns:rs='http://www.openarchives.org/rs/terms/'>
 <rs:md capability='changelist' until='soon'/>
 <url><loc>a b</loc><lastmod>x</lastmod><rs:md change='gone'/></url>
 <url><loc>http://example.org/<b>c</b></loc><rs:ln rel='up'/></url>
 <url><rs:md change='created' length='-1' hash='md5'/></url>
</urlset>";
    let found = check_document("d", document, Mode::Normal);
    let ids: Vec<_> = found.iter().map(|found| (found.line, found.column, found.rule.id)).collect();
    for expected in [
        (3, 2, "RS-7-datetime"),
        (3, 2, "RS-A-from"),
        (4, 2, "RS-7-uri"),
        (4, 31, "RS-7-datetime"),
        (4, 41, "RS-12.1-change-value"),
        (5, 31, "RS-7-elements"),
        (5, 45, "RS-7-href"),
        (5, 2, "RS-12.1-change"),
        (6, 7, "RS-7-length"),
        (6, 7, "RS-7-hash"),
        (6, 2, "RS-7-loc"),
    ] {
        assert!(ids.contains(&expected), "{expected:?} is not in {ids:#?}");
    }
}

#[test]
fn names_of_the_first_draft_are_named() {
    let document = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>
<url><loc>http://h/a</loc><rs:size>3</rs:size><rs:fixity type="md5">Hg1cuO9rpAyZsUwCN75zXg==</rs:fixity>
<rs:mimetype>text/html</rs:mimetype><rs:contentencoding>gzip</rs:contentencoding><expires>2026-01-01</expires></url>
<url><loc>http://h/b</loc><rs:md size="3" color="red"/></url>
</urlset>"#;
    let found = check_document("d", document, Mode::Normal);
    let messages: Vec<_> = found.iter().map(|found| found.message.as_str()).collect();
    for (name, now) in [
        ("`size` is an element of ResourceSync 0.1", "`length`"),
        ("`fixity` is an element of ResourceSync 0.1", "`hash` of `rs:md`, in hex"),
        ("`mimetype` is an element of ResourceSync 0.1", "`type`"),
        ("`contentencoding` is an element of ResourceSync 0.1", "`encoding`"),
        ("`expires` is an element of ResourceSync 0.1", "`change=\"deleted\"`"),
        ("`size` is a name of ResourceSync 0.1", "`length`"),
        ("`color` is not an attribute of `rs:md`", ""),
    ] {
        assert!(
            messages.iter().any(|told| told.starts_with(name) && told.contains(now)),
            "{name}: {messages:#?}"
        );
    }
}

#[test]
fn no_bytes_panic_and_pieces_do_not_matter() {
    use proptest::prelude::*;
    let seeds = [examples(), notifications()].concat();
    proptest!(ProptestConfig::with_cases(64), |(which in 0..seeds.len(), cut: prop::sample::Index, byte: u8)| {
        let mut bytes = seeds[which].1.clone();
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        check_document("d", &bytes, Mode::Strict);
        check_document("d", &bytes[..at], Mode::Strict);
    });
}
