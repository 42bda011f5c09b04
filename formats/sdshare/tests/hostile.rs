//! Feeds that harm a careless reader.
#![allow(clippy::unwrap_used)]

use abreast_sdshare::{Document, Error, Limits, Relation, stamp};

const BASE: &str = "http://example.org/f";

fn read(text: &str) -> Result<Document, Error> {
    Document::from_slice(text.as_bytes(), BASE, Limits::default())
}

fn feed(inside: &str) -> String {
    format!(
        "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:s='http://www.sdshare.org/2012/core/'>{inside}</feed>"
    )
}

#[test]
fn markup_in_titles_stays_text() {
    let title = "&lt;script>alert(1)&lt;/script>";
    let text = feed(&format!(
        "<title type='html'>{title}</title><entry><title>{title}</title>\
         <summary type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>a <b>b</b><script>c</script></div></summary></entry>"
    ));
    let read = read(&text).unwrap();
    assert_eq!(read.feed.title, "<script>alert(1)</script>");
    assert_eq!(read.entries[0].title, "<script>alert(1)</script>");
    assert_eq!(read.entries[0].summary.as_deref(), Some("a bc"));
    let mut written = Vec::new();
    abreast_sdshare::write_feed(&mut written, &read.feed);
    abreast_sdshare::write_entry(&mut written, &read.entries[0]);
    assert!(!String::from_utf8(written).unwrap().contains("<script"));
}

#[test]
fn a_page_that_leads_to_itself_is_noticed() {
    for next in ["http://example.org/f", "f", "", "http://example.org/self"] {
        let text = feed(&format!("<link rel='self' href='self'/><link rel='next' href='{next}'/>"));
        let read = read(&text).unwrap();
        assert!(read.findings.iter().any(|finding| finding.code == "atom.paging-loop"), "{next}");
    }
    // With a query that differs each page is another: the client counts pages.
    let read = read(&feed("<link rel='next' href='?p=2'/>")).unwrap();
    assert!(!read.findings.iter().any(|finding| finding.code == "atom.paging-loop"));
    assert_eq!(read.feed.link(&Relation::Next).unwrap().href, "http://example.org/f?p=2");
}

#[test]
fn a_time_far_ahead_and_a_time_twice_are_reported_as_they_are() {
    let entry = |time, id: u8| {
        format!(
            "<entry><id>urn:e:{id}</id><updated>{time}</updated><s:resource>urn:r</s:resource></entry>"
        )
    };
    let far = "9999-12-31T23:59:59.999999Z";
    let text = feed(
        &(entry(far, 1) + &entry("2026-01-01T00:00:00Z", 2) + &entry("2026-01-01T00:00:00Z", 3)),
    );
    let read = read(&text).unwrap();
    let seen: Vec<_> =
        read.entries.iter().map(|e| (e.id.as_str(), e.updated.map(stamp).unwrap())).collect();
    let twice = "2026-01-01T00:00:00.000000Z".to_owned();
    assert_eq!(seen, [("urn:e:1", far.to_owned()), ("urn:e:2", twice.clone()), ("urn:e:3", twice)]);
    for beyond in ["10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00"] {
        let _ = self::read(&feed(&entry(beyond, 1))).unwrap();
    }
}

#[test]
fn other_documents_are_refused_with_help() {
    for (text, help) in [
        ("<rss version='2.0'><channel/></rss>", "served as Atom"),
        ("<html><body/></html>", "a web page"),
        ("<feed/>", "the namespace of Atom"),
        ("<feed xmlns='http://purl.org/atom/ns#'/>", "the namespace of Atom"),
        ("<entry xmlns='http://www.w3.org/2005/Atom'/>", "single entry"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.code(), "atom.root", "{text}");
        assert!(error.to_string().contains(help), "{error}");
    }
    assert_eq!(read("<!DOCTYPE feed><feed/>").unwrap_err().code(), "xml.doctype");
    assert_eq!(read("").unwrap_err().code(), "xml.eof");
    assert_eq!(read("{}").unwrap_err().code(), "xml.syntax");
}

#[test]
fn a_feed_that_is_cut_is_not_a_shorter_feed() {
    let whole = feed("<entry><id>urn:a</id></entry><entry><id>urn:b</id></entry>");
    for length in 0..whole.len() {
        assert_eq!(read(&whole[..length]).unwrap_err().code(), "xml.eof", "{length}");
    }
    assert_eq!(read(&whole).unwrap().entries.len(), 2);
}

#[test]
fn every_count_has_a_limit() {
    let limits = Limits::default().with_entries(3);
    let entries = |number| feed(&"<entry/>".repeat(number));
    assert!(Document::from_slice(entries(3).as_bytes(), BASE, limits).is_ok());
    let error = Document::from_slice(entries(4).as_bytes(), BASE, limits).unwrap_err();
    assert_eq!((error.code(), error.message()), ("sdshare.limit", "more than 3 entries"));
    let limits = Limits::default().with_bytes(100);
    assert_eq!(
        Document::from_slice(entries(50).as_bytes(), BASE, limits).unwrap_err().code(),
        "xml.size"
    );
    let links = |number| "<link href='a'/>".repeat(number);
    assert!(read(&feed(&format!("<entry>{}</entry>", links(100)))).is_ok());
    for text in [
        format!("<entry>{}</entry>", links(101)),
        links(101),
        format!("<entry>{}</entry>", "<s:resource>a:b</s:resource>".repeat(1_001)),
    ] {
        assert_eq!(read(&feed(&text)).unwrap_err().code(), "sdshare.limit");
    }
    let deep = format!("<entry>{}{}</entry>", "<a>".repeat(80), "</a>".repeat(80));
    assert_eq!(read(&feed(&deep)).unwrap_err().code(), "xml.depth");
    let long = "é".repeat(50_000);
    let read = self::read(&feed(&format!(
        "<entry><id>urn:{long}</id><title>{long}</title><s:resource>urn:{long}</s:resource><updated>{long}</updated>\
         <link rel='{long}' type='{long}' href='a'/><link href='{long}'/></entry>"
    ))).unwrap();
    let blank = " ".repeat(10_000);
    let uri = format!("urn:{}", "x".repeat(8_000));
    let padded =
        self::read(&feed(&format!("<entry><s:resource>{blank}{uri}</s:resource></entry>")))
            .unwrap();
    assert!(padded.entries[0].resources.is_empty(), "never a part of an IRI");
    let entry = &read.entries[0];
    assert_eq!((entry.id.as_str(), entry.resources.len(), entry.links.len()), ("", 0, 1));
    assert_eq!(entry.title.len(), 4_096);
    assert!(read.findings.iter().all(|finding| finding.message.len() < 600), "{:?}", read.findings);
}

#[test]
fn links_to_other_schemes_are_kept_for_the_client_to_refuse() {
    let read = read(&feed("<entry><link href='file:///etc/passwd'/><link href='//other.example/x'/><link href='javascript:alert(1)'/></entry>")).unwrap();
    let hrefs: Vec<_> = read.entries[0].links.iter().map(|link| link.href.as_str()).collect();
    assert_eq!(hrefs, ["file:///etc/passwd", "http://other.example/x", "javascript:alert(1)"]);
}
