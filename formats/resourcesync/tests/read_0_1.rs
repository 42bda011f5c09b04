//! Rules of reading documents of 0.1: small documents, one rule each.
#![allow(clippy::unwrap_used)]

use abreast_resourcesync::v0_1::{
    CHANGE_SET, Change, Document, Entry, Error, Head, Limits, PARTIAL, Parser, Reader, Root, Step,
    Tolerance, XMPP_PROTOCOL,
};
use abreast_webtypes::Timestamp;

const XMLNS: &str = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/' xmlns:xhtml='http://www.w3.org/1999/xhtml'";
const LASTMOD: &str = "<lastmod rs:type='updated'>2026-01-03T08:15:00Z</lastmod>";

struct Read {
    head: Head,
    entries: Vec<Entry>,
    /// Codes in the order of the document.
    findings: Vec<&'static str>,
    messages: Vec<String>,
    skipped: u64,
}

fn read(text: &str, tolerance: Tolerance) -> Result<Read, Error> {
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
    Ok(Read {
        head: parser.head().unwrap().clone(),
        entries,
        findings: parser.findings().iter().map(|finding| finding.code).collect(),
        messages: parser.findings().iter().map(|finding| finding.message.clone()).collect(),
        skipped: parser.skipped(),
    })
}

fn urlset(content: &str) -> String {
    format!("<urlset {XMLNS}>{content}</urlset>")
}

fn change_set(content: &str) -> String {
    format!("<urlset rs:type='changeset' {XMLNS}>{content}</urlset>")
}

/// A list of one entry with that content besides its `loc`.
fn entry(content: &str) -> String {
    urlset(&format!("<url><loc>http://example.org/a</loc>{content}</url>"))
}

/// A change set of one change with that content.
fn change(content: &str) -> String {
    change_set(&format!("<url><loc>http://example.org/a</loc>{content}</url>"))
}

/// Reads with a finding, is refused with the same code where findings are refused.
fn found(text: &str, code: &str) -> Read {
    let usual = read(text, Tolerance::Usual).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(usual.findings, [code], "{text}");
    assert_eq!(read(text, Tolerance::Strict).err().map(|error| error.code()), Some(code), "{text}");
    assert_eq!(usual.skipped, 0);
    usual
}

/// Is refused with that code whatever the tolerance is.
fn refused(text: &str, code: &str) {
    for tolerance in [Tolerance::Strict, Tolerance::Usual, Tolerance::Lenient] {
        let error = read(text, tolerance).err().map(|error| error.code());
        assert_eq!(error, Some(code), "{tolerance:?} {text}");
    }
}

/// Is refused with that code, except that the lenient reader leaves the entry out and counts it.
fn left_out(text: &str, code: &str) {
    for tolerance in [Tolerance::Strict, Tolerance::Usual] {
        let error = read(text, tolerance).err().map(|error| error.code());
        assert_eq!(error, Some(code), "{tolerance:?} {text}");
    }
    let lenient = read(text, Tolerance::Lenient).unwrap();
    assert_eq!((lenient.entries.len(), lenient.skipped), (0, 1), "{text}");
    assert!(lenient.findings.contains(&"rs.entry"), "{text}");
}

/// Is read only by the lenient reader, with a finding of that code.
fn repaired(text: &str, code: &str) -> Read {
    for tolerance in [Tolerance::Strict, Tolerance::Usual] {
        assert!(read(text, tolerance).is_err(), "{tolerance:?} {text}");
    }
    let lenient = read(text, Tolerance::Lenient).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(lenient.findings.contains(&code), "{:?} {text}", lenient.findings);
    lenient
}

#[test]
fn reads_everything_that_there_is() {
    let text = change_set(
        "<xhtml:meta name='DCTERMS.modified' content='2026-01-03T16:30:00Z'/>\
         <xhtml:link href='http://example.org/changes/2' rel='prev http://www.openarchives.org/rs/changeset'/>\
         <xhtml:link href='xmpp:pubsub.example.org' rs:protocol='http://xmpp.org/extensions/xep-0060.html' rs:pubsubnode='node'/>\
         <xhtml:meta name='DC.rights' content='free'/>\
         <url><loc rs:protocol='urn:x'>http://example.org/a</loc><lastmod rs:type='created'>2026-01-03T08:15:00Z</lastmod>\
         <rs:fixity type='md5'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity>\
         <rs:fixity type='sha-1'>qvTGHdzF6KLavt4PO0gs2a6pQ00=</rs:fixity>\
         <rs:fixity type='sha-256'>LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=</rs:fixity>\
         <rs:size>5</rs:size><rs:mimetype>text/html; charset=utf-8</rs:mimetype>\
         <rs:contentencoding>gzip</rs:contentencoding><rs:path>resources/a</rs:path>\
         <xhtml:link rel='DCTERMS.subject' href='http://example.org/frogs' title='Frogs' type='text/html'/>\
         <xhtml:link rel='http://www.openarchives.org/rs/partial' rs:protocol='urn:p' href='http://example.org/a/d'/>\
         <xhtml:meta name='DC.subject' content='Newts'/></url>\
         <url><loc>http://example.org/b</loc><expires>2026-01-03T09:00:00Z</expires></url>",
    );
    let read = read(&text, Tolerance::Strict).unwrap();
    let head = &read.head;
    assert_eq!((head.root, head.change_set), (Root::UrlSet, true));
    assert_eq!(head.modified.unwrap().instant.to_string(), "2026-01-03T16:30:00Z");
    assert!(head.links[0].has_rel("PREV") && head.links[0].has_rel(CHANGE_SET));
    assert_eq!(head.links[1].protocol.as_deref(), Some(XMPP_PROTOCOL));
    assert_eq!(head.links[1].pubsub_node.as_deref(), Some("node"));
    assert_eq!((head.metas[0].name.as_str(), head.metas.len()), ("DC.rights", 1));
    let entry = &read.entries[0];
    assert_eq!(
        (entry.loc.as_str(), entry.protocol.as_deref(), entry.change),
        ("http://example.org/a", Some("urn:x"), Some(Change::Created))
    );
    assert_eq!(entry.time.unwrap().instant.to_string(), "2026-01-03T08:15:00Z");
    assert_eq!(
        entry.digests.to_string(),
        "md5:5d41402abc4b2a76b9719d911017c592 sha-1:aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d \
         sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    );
    assert_eq!((entry.size, entry.path.as_deref()), (Some(5), Some("resources/a")));
    assert_eq!(entry.media_type.as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!(entry.encoding.as_deref(), Some("gzip"));
    assert_eq!((entry.links[0].title.as_deref(), entry.links.len()), (Some("Frogs"), 2));
    assert!(entry.links[1].has_rel(PARTIAL));
    assert_eq!(entry.metas[0].content, "Newts");
    assert_eq!(read.entries[1].change, Some(Change::Deleted));
    let again = Document::from_slice(
        &Document { head: read.head.clone(), entries: read.entries.clone() }.to_bytes(),
    )
    .unwrap();
    assert_eq!(again.head, read.head);
}

#[test]
fn a_change_set_is_never_taken_for_a_list() {
    assert!(!read(&urlset(""), Tolerance::Strict).unwrap().head.change_set);
    let unprefixed = format!("<urlset type='changeset' {XMLNS}/>");
    assert!(found(&unprefixed, "rs.prefix").head.change_set);
    let wrong_case = format!("<urlset rs:type='changeSet' {XMLNS}/>");
    assert!(found(&wrong_case, "rs.type-case").head.change_set);
    for kind in ["changes", "sitemap", ""] {
        refused(&format!("<urlset rs:type='{kind}' {XMLNS}/>"), "rs.type");
    }
    // A document in a chain of change sets is one.
    let link = format!("<xhtml:link href='http://h/1' rel='prev {CHANGE_SET}'/>");
    assert!(found(&urlset(&link), "rs.type-missing").head.change_set);
    let previous = format!("<xhtml:link href='http://h/1' rel='previous {CHANGE_SET}'/>");
    let found_so = found(&change_set(&previous), "rs.previous");
    assert!(found_so.head.links[0].has_rel("prev"));
    let entry = "<url><loc>http://h/a</loc><lastmod>2026-01-03</lastmod></url>";
    refused(&urlset(&format!("{entry}{link}")), "rs.type");
    assert!(read(&change_set(&format!("{entry}{link}")), Tolerance::Usual).is_ok());
    let current = format!("<xhtml:link href='http://h/1' rel='current {CHANGE_SET}'/>");
    assert!(!read(&urlset(&current), Tolerance::Strict).unwrap().head.change_set);
    // There is no index of change sets.
    refused(&format!("<sitemapindex rs:type='changeset' {XMLNS}/>"), "rs.type");
    let sitemap = change_set("<sitemap><loc>http://h/1</loc></sitemap>");
    assert_eq!(read(&sitemap, Tolerance::Lenient).err().unwrap().code(), "rs.type");
}

#[test]
fn documents_of_other_versions_are_refused() {
    refused(&urlset("<rs:md capability='changelist'/>"), "rs.version");
    refused(
        &urlset("<url><loc>http://h/a</loc></url><rs:md capability='changelist'/>"),
        "rs.version",
    );
    left_out(&entry("<rs:md change='deleted'/>"), "rs.version");
    let of_0_1 = abreast_resourcesync::v1_1::Document::from_slice(change(LASTMOD).as_bytes());
    assert_eq!(of_0_1.unwrap_err().code(), "rs.version");
}

#[test]
fn a_change_has_one_time() {
    let time = "2026-01-03T08:15:00Z";
    left_out(&change(""), "rs.change");
    left_out(&change(&format!("{LASTMOD}<expires>{time}</expires>")), "rs.change");
    left_out(&change(&format!("<lastmod>{time}</lastmod><expires>{time}</expires>")), "rs.change");
    left_out(&change(&format!("{LASTMOD}{LASTMOD}")), "rs.change");
    left_out(&change(&format!("<expires>{time}</expires><expires>{time}</expires>")), "rs.change");
    for kind in ["deleted", "changed", ""] {
        let lastmod = format!("<lastmod rs:type='{kind}'>{time}</lastmod>");
        left_out(&change(&lastmod), "rs.change");
        left_out(&entry(&lastmod), "rs.change");
    }
    left_out(&change("<expires>yesterday</expires>"), "rs.datetime");
    let empty = change("<lastmod rs:type='updated'></lastmod>");
    assert_eq!(read(&empty, Tolerance::Usual).err().unwrap().code(), "rs.change");
    assert_eq!(found(&entry("<lastmod></lastmod>"), "rs.no-date").entries[0].time, None);
}

#[test]
fn a_change_without_type_is_an_update() {
    let read = found(&change("<lastmod>2026-01-03</lastmod>"), "rs.change-type");
    assert_eq!(read.entries[0].change, Some(Change::Updated));
    let unprefixed = "<lastmod type='created'>2026-01-03T08:15:00Z</lastmod>";
    assert_eq!(found(&change(unprefixed), "rs.prefix").entries[0].change, Some(Change::Created));
    let wrong_case = "<lastmod rs:type='Created'>2026-01-03T08:15:00Z</lastmod>";
    assert_eq!(found(&change(wrong_case), "rs.type-case").entries[0].change, Some(Change::Created));
}

#[test]
fn lists_may_state_changes_too() {
    let list = read(&entry(LASTMOD), Tolerance::Strict).unwrap();
    assert_eq!((list.head.change_set, list.entries[0].change), (false, Some(Change::Updated)));
    let plain = read(&entry("<lastmod>2026-01-03</lastmod>"), Tolerance::Strict).unwrap();
    assert_eq!((plain.entries[0].change, plain.entries[0].time.is_some()), (None, true));
    let deleted =
        read(&entry("<expires>2026-01-03T09:00:00Z</expires>"), Tolerance::Strict).unwrap();
    assert_eq!(deleted.entries[0].change, Some(Change::Deleted));
    let both = entry("<lastmod>2026-01-02</lastmod><expires>2026-01-03</expires>");
    let both = found(&both, "rs.expires");
    assert_eq!(both.entries[0].change, None);
    assert_eq!(both.entries[0].time.unwrap().instant.to_string(), "2026-01-02T00:00:00Z");
    let index = format!(
        "<sitemapindex {XMLNS}><sitemap><loc>http://h/1</loc><expires>2026-01-03</expires></sitemap></sitemapindex>"
    );
    assert_eq!(found(&index, "rs.expires").entries[0].change, None);
}

#[test]
fn a_deletion_in_the_future_is_none_yet() {
    let modified = "<xhtml:meta name='DCTERMS.modified' content='2026-01-03'/>";
    let with = |root: fn(&str) -> String, expires: &str| {
        root(&format!("{modified}<url><loc>http://h/a</loc><expires>{expires}</expires></url>"))
    };
    let late = found(&with(change_set, "2026-01-04T00:00:00Z"), "rs.expires-future");
    let late = &late.entries[0];
    assert_eq!(late.change, Some(Change::Deleted));
    let at = |text: &str| -> Timestamp {
        abreast_webtypes::W3cDatetime::parse(text.as_bytes()).unwrap().instant
    };
    assert!(!late.is_deleted(at("2026-01-03T23:59:59Z")));
    assert!(late.is_deleted(at("2026-01-04T00:00:00Z")));
    // Elsewhere than in change sets such times are common, and mean another thing.
    assert_eq!(found(&with(urlset, "2026-01-04"), "rs.expires-future").entries[0].change, None);
    for expires in ["2026-01-03T23:00:00Z", "2026-01-03", "2026"] {
        assert!(read(&with(change_set, expires), Tolerance::Strict).is_ok(), "{expires}");
    }
}

#[test]
fn metadata_that_cannot_be_read_is_left_out() {
    for (content, code) in [
        ("<rs:size>many</rs:size>", "rs.length"),
        ("<rs:size>-1</rs:size>", "rs.length"),
        ("<rs:size>1.5</rs:size>", "rs.length"),
        ("<rs:size>99999999999999999999</rs:size>", "rs.length"),
        ("<rs:size/>", "rs.empty"),
        ("<rs:path/>", "rs.empty"),
        ("<rs:fixity type='md5'>A7kjY2sgSW50ZWdyaX6sgt==</rs:fixity>", "rs.fixity"),
        ("<rs:fixity type='md5'>A7kjY2sgSW50ZWdyaX6sgt=</rs:fixity>", "rs.fixity"),
        ("<rs:fixity type='sha-1'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity>", "rs.fixity"),
        ("<rs:fixity type='md5'/>", "rs.fixity"),
        ("<rs:fixity type='crc32'>AA==</rs:fixity>", "rs.fixity-type"),
        ("<rs:fixity>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity>", "rs.fixity-type"),
        ("<xhtml:link rel='alternate'/>", "rs.link"),
        ("<xhtml:link href='http://h/x'/>", "rs.link"),
        ("<xhtml:meta name='DC.subject'/>", "rs.meta"),
        ("<xhtml:meta content='x'/>", "rs.meta"),
    ] {
        let read = found(&entry(content), code);
        let expected = Entry {
            loc: "http://example.org/a".to_owned(),
            line: 1,
            digests: read.entries[0].digests.clone(),
            ..Entry::default()
        };
        assert_eq!(
            (&read.entries[0], expected.digests.strongest()),
            (&expected, None),
            "{content}"
        );
    }
}

#[test]
fn unambiguous_deviations_of_metadata_are_read() {
    let one = |content: &str, code| found(&entry(content), code).entries.remove(0);
    let md5 = "md5:5d41402abc4b2a76b9719d911017c592";
    for (content, code) in [
        ("<rs:fixity type='md5'>5d41402abc4b2a76b9719d911017c592</rs:fixity>", "rs.fixity-hex"),
        ("<rs:fixity type='MD5'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity>", "rs.fixity-type"),
        ("<rs:fixity rs:type='md5'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity>", "rs.prefix"),
        (
            "<rs:fixity type='md5'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity><rs:fixity type='md5'>AAAAAAAAAAAAAAAAAAAAAA==</rs:fixity>",
            "rs.repeated",
        ),
    ] {
        assert_eq!(one(content, code).digests.to_string(), md5, "{content}");
    }
    assert_eq!(one("<rs:path>/resources/a</rs:path>", "rs.path").path.unwrap(), "resources/a");
    assert_eq!(one("<rs:size>1</rs:size><rs:size>2</rs:size>", "rs.repeated").size, Some(1));
    let twice = "<rs:mimetype>a/b</rs:mimetype><rs:mimetype>c/d</rs:mimetype>";
    assert_eq!(one(twice, "rs.repeated").media_type.unwrap(), "a/b");
    let link = one("<xhtml:link href='xmpp:h' protocol='urn:x'/>", "rs.prefix").links.remove(0);
    assert_eq!(link.protocol.as_deref(), Some("urn:x"));
    let spaced = urlset("<url><loc>\n   http://h/oai</loc></url>");
    assert_eq!(found(&spaced, "rs.loc-space").entries[0].loc, "http://h/oai");
    assert_eq!(one("<lastmod>2026-01-03T08:15:00</lastmod>", "rs.zone").change, None);
}

#[test]
fn the_head_may_be_late_and_its_time_wrong() {
    let late = urlset(&format!(
        "<url><loc>http://h/a</loc></url><xhtml:link href='http://h/c' rel='current {CHANGE_SET}'/>"
    ));
    assert_eq!(found(&late, "rs.order").head.links.len(), 1);
    let wrong = urlset("<xhtml:meta name='DCTERMS.modified' content='yesterday'/>");
    assert_eq!(found(&wrong, "rs.modified").head.modified, None);
    let one = "<xhtml:meta name='DCTERMS.modified' content='2026-01-03'/>";
    assert!(found(&urlset(&one.repeat(2)), "rs.repeated").head.modified.is_some());
    let other_case = urlset("<xhtml:meta name='dcterms.modified' content='2026-01-03'/>");
    assert!(read(&other_case, Tolerance::Strict).unwrap().head.modified.is_some());
}

#[test]
fn foreign_elements_are_ignored() {
    let text = change(&format!(
        "{LASTMOD}<changefreq>daily</changefreq><priority>1</priority><rs:new>x</rs:new>\
         <x:expires xmlns:x='urn:x'>2026-01-03</x:expires><x:loc xmlns:x='urn:x'>http://evil.example/</x:loc>\
         <xhtml:p>text <xhtml:meta name='a' content='b'/></xhtml:p>"
    ));
    let read = read(&text, Tolerance::Strict).unwrap();
    assert_eq!(
        (read.entries[0].loc.as_str(), read.entries[0].metas.len()),
        ("http://example.org/a", 0)
    );
}

#[test]
fn an_entry_has_one_uri() {
    for content in ["", "<loc/>", "<loc>a b</loc>", "<loc>a</loc><loc>b</loc>", "<loc>a<b/></loc>"]
    {
        left_out(&urlset(&format!("<url>{content}</url>")), "rs.loc");
    }
    refused(&urlset("<Url><loc>http://h/a</loc></Url>"), "rs.root");
    refused(
        &urlset("<url><loc>http://h/a</loc></url><sitemap><loc>http://h/a</loc></sitemap>"),
        "rs.root",
    );
}

#[test]
fn limits_of_the_specification_are_findings_and_ours_refuse() {
    let many = |count| urlset(&"<url><loc>a</loc></url>".repeat(count));
    assert!(read(&many(50_000), Tolerance::Strict).is_ok());
    assert_eq!(found(&many(50_001), "rs.entries").entries.len(), 50_001);
    refused(&many(200_001), "rs.entries");
    let long = urlset(&"<!-- comment -->".repeat(700_000));
    let codes = |tolerance| match read(&long, tolerance) {
        Ok(read) => read.findings,
        Err(error) => vec![error.code()],
    };
    assert_eq!(
        (codes(Tolerance::Strict), codes(Tolerance::Usual)),
        (vec!["rs.bytes"], vec!["rs.bytes"])
    );
    let mut parser = Parser::new(Limits::default().with_bytes(1_000));
    parser.feed(many(100).as_bytes());
    parser.finish();
    let code = loop {
        match parser.next(&mut Entry::default()) {
            Ok(_) => {}
            Err(error) => break error.code(),
        }
    };
    assert_eq!(code, "xml.size");
    for (element, place) in [
        ("<xhtml:link rel='a' href='b'/>", urlset as fn(&str) -> String),
        ("<xhtml:link rel='a' href='b'/>", entry),
        ("<xhtml:meta name='a' content='b'/>", urlset),
        ("<xhtml:meta name='a' content='b'/>", entry),
    ] {
        assert!(read(&place(&element.repeat(1_000)), Tolerance::Strict).is_ok());
        refused(&place(&element.repeat(1_001)), "rs.links");
    }
    left_out(&entry(&format!("<rs:mimetype>{}</rs:mimetype>", "x".repeat(1_025))), "rs.value");
}

#[test]
fn end_tags_with_a_wrong_prefix_are_repaired() {
    let text = change_set(&format!("\n<url>\n<loc>http://h/a</sm:loc>{LASTMOD}</url>"));
    let error = read(&text, Tolerance::Usual).err().unwrap();
    assert_eq!(error.to_string(), "line 3, column 16: `</sm:loc>` closes `<loc>`");
    let read = repaired(&text, "xml.end-tag");
    assert_eq!(
        (read.entries[0].loc.as_str(), read.messages),
        ("http://h/a", vec!["`</sm:loc>` closes `<loc>`".to_owned()])
    );
    refused(&urlset("<url><loc>http://h/a</lastmod></url>"), "xml.syntax");
    refused(&urlset("<url><loc>http://h/a</url></loc>"), "xml.syntax");
}

#[test]
fn a_start_tag_in_place_of_the_last_end_tag_is_repaired() {
    let entry = "<url><loc>http://h/a</loc></url>";
    for text in [
        format!("<urlset {XMLNS}>{entry}<urlset>\n"),
        format!("<urlset {XMLNS}>{entry}<urlset>\n<!-- end -->"),
        format!("<urlset {XMLNS}>{entry}<urlset>"),
    ] {
        assert_eq!(repaired(&text, "xml.end-tag").entries.len(), 1);
    }
    let index =
        format!("<sitemapindex {XMLNS}><sitemap><loc>http://h/a</loc></sitemap><sitemapindex>");
    assert_eq!(repaired(&index, "xml.end-tag").head.root, Root::SitemapIndex);
    // What follows may be anything, and would be lost.
    for more in [entry, "</urlset>", "text", "<urlset>", "<!-- cut"] {
        let text = format!("<urlset {XMLNS}>{entry}<urlset>{more}");
        assert!(read(&text, Tolerance::Lenient).is_err(), "{text}");
    }
    for tag in ["<urlset/>", "<urlset x='y'>", "<sitemapindex>"] {
        let text = format!("<urlset {XMLNS}>{entry}{tag}");
        let read = read(&text, Tolerance::Lenient);
        assert!(tag == "<sitemapindex>" || read.is_err(), "{text}");
    }
}

#[test]
fn an_element_without_its_first_character_is_repaired() {
    let text = "\n  xhtml:meta name=\"DC.subject\" content=\"Newts\"/>\n  ";
    let list = found(&entry(text), "rs.text");
    assert!(list.entries[0].metas.is_empty() && !list.messages[0].contains("read as"));
    let lenient = read(&entry(text), Tolerance::Lenient).unwrap();
    assert_eq!(lenient.entries[0].metas[0].content, "Newts");
    assert!(lenient.messages[0].ends_with("; read as an element whose `<` is missing"));
    let head = urlset(&format!(" xhtml:link rel='current {CHANGE_SET}' href='http://h/c'/>"));
    assert_eq!(read(&head, Tolerance::Lenient).unwrap().head.links.len(), 1);
    for other in [
        "xhtml:meta name='a' content='b'/> and more",
        "xhtml:meta name='a' content='b'>",
        "xhtml:meta name='a' content='b'/> xhtml:meta name='c' content='d'/>",
        "xhtml:meta name='a' name='b'/>",
        "loc>http://evil.example/",
        "rs:size 5/>",
        &format!("xhtml:meta name='a' content='{}'/>", "x".repeat(10_000)),
    ] {
        let lenient = read(&entry(other), Tolerance::Lenient).unwrap();
        assert_eq!(
            (lenient.entries[0].metas.len(), lenient.findings),
            (0, vec!["rs.text"]),
            "{other}"
        );
    }
}

#[test]
fn prefixes_that_nobody_declared_are_repaired() {
    let text = "<urlset rs:type='changeset' xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
        <xhtml:meta name='DCTERMS.modified' content='2026-01-03'/>\
        <url><loc>http://h/a</loc><expires>2026-01-03</expires></url></urlset>";
    let read_back = repaired(text, "xml.prefix");
    assert!(read_back.head.change_set && read_back.head.modified.is_some());
    assert_eq!(read_back.messages, ["the prefix `rs` is not declared"]);
    assert!(read(&text.replace("rs:type", "x:type"), Tolerance::Lenient).is_err());
    // A declaration of its own counts, and one of another namespace too.
    let other = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='urn:x' rs:type='x'/>";
    assert!(read(other, Tolerance::Lenient).unwrap().findings.is_empty());
}

#[test]
fn a_change_set_in_an_xmpp_stanza_is_unwrapped() {
    let set =
        format!("<urlset rs:type='changeset'><url><loc>http://h/a</loc>{LASTMOD}</url></urlset>");
    let wrap = |before: &str, inside: &str, after: &str| {
        format!(
            "<x:{before} xmlns:x='http://jabber.org/protocol/pubsub' {XMLNS}><x:pubsub><x:publish node='n'><x:item id='1'>{inside}</x:item></x:publish></x:pubsub></x:{after}>"
        )
    };
    let printed = wrap("iq", &set, "iq");
    let read_back = repaired(&printed, "rs.wrapper");
    assert!(read_back.head.change_set && read_back.entries.len() == 1);
    assert!(
        read_back.messages[0].contains("in the namespace of PubSub"),
        "{:?}",
        read_back.messages
    );
    let event = format!(
        "<message xmlns='jabber:client'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='1'>{}</item></items></event><delay/></message>",
        change(LASTMOD).replace("http://example.org/a", "http://h/a")
    );
    assert_eq!(repaired(&event, "rs.wrapper").entries.len(), 1);
    // One of two change sets would be lost.
    refused(&wrap("iq", &format!("{set}{set}"), "iq"), "rs.root");
    refused(&wrap("iq", "", "iq"), "rs.root");
    refused(&wrap("iq", "<retract/>", "iq"), "rs.root");
    refused("<html xmlns='http://www.w3.org/1999/xhtml'/>", "rs.root");
}

#[test]
fn hostile_documents_are_refused_by_every_reader() {
    let root = format!("<urlset {XMLNS}>");
    refused(&format!("<!DOCTYPE urlset [<!ENTITY a 'b'>]>{root}</urlset>"), "xml.doctype");
    refused(&format!("{root}{}", "<a>".repeat(1_000)), "xml.depth");
    refused(&format!("{root}<url><loc>http://h/&x;</loc></url></urlset>"), "xml.syntax");
    refused(&format!("{root}<!--{}", "x".repeat(2 << 20)), "xml.size");
    refused(&format!("{root}{}", "x".repeat(2 << 20)), "xml.size");
    let stanza = "<iq xmlns='jabber:client'>".repeat(1_000);
    assert_eq!(read(&stanza, Tolerance::Lenient).err().unwrap().code(), "xml.depth");
    // Many repairs are one finding.
    let text = change_set(&format!("<url><loc>http://h/a</sm:loc>{LASTMOD}</url>").repeat(10_000));
    let read = read(&text, Tolerance::Lenient).unwrap();
    assert_eq!((read.entries.len(), read.messages.len()), (10_000, 1));
}

#[test]
fn a_reader_keeps_nothing_of_the_last_entry() {
    let text = change_set(&format!(
        "<url><loc rs:protocol='urn:x'>http://h/long/name</loc>{LASTMOD}<rs:size>5</rs:size><rs:path>p</rs:path>\
         <rs:mimetype>a/b</rs:mimetype><rs:contentencoding>gzip</rs:contentencoding>\
         <rs:fixity type='md5'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity><xhtml:link rel='a' href='b'/>\
         <xhtml:meta name='a' content='b'/></url><url><loc>http://h/b</loc><expires>2026-01-03</expires></url>"
    ));
    let mut reader = Reader::new(text.as_bytes());
    let mut entry = Entry::default();
    assert!(reader.head().unwrap().change_set);
    assert!(reader.next(&mut entry).unwrap() && reader.next(&mut entry).unwrap());
    let expected = Entry {
        loc: "http://h/b".to_owned(),
        change: Some(Change::Deleted),
        time: entry.time,
        line: 1,
        ..Entry::default()
    };
    assert_eq!(entry, expected);
    assert!(!reader.next(&mut entry).unwrap() && reader.findings().is_empty());
}
