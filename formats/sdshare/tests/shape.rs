//! What could make a feed seem shorter, or an entry seem another, is refused.
#![allow(clippy::unwrap_used)]

use abreast_sdshare::{Document, Error, Limits, SDSHARE_NAMESPACE};

const ATOM: &str = "http://www.w3.org/2005/Atom";

fn read(entries: &str) -> Result<Document, Error> {
    let feed = format!("<feed xmlns=\"{ATOM}\" xmlns:s=\"{SDSHARE_NAMESPACE}\">{entries}</feed>");
    Document::from_slice(feed.as_bytes(), "http://example.org/fragments", Limits::default())
}

fn refused(entries: &str) -> (&'static str, String) {
    match read(entries) {
        Ok(_) => panic!("accepted: {entries}"),
        Err(error) => (error.code(), error.message().to_owned()),
    }
}

#[test]
fn elements_in_a_misspelt_namespace_are_refused() {
    for found in [
        "http://www.w3.org/2005/Atom/",
        "https://www.w3.org/2005/Atom",
        "http://www.w3.org/2005/atom",
        "",
    ] {
        for inside in [
            "<entry xmlns='X'/>",
            "<link xmlns='X' rel='next' href='?page=2'/>",
            "<entry><updated xmlns='X'>2026-01-01T00:00:00Z</updated></entry>",
            "<entry><category xmlns='X' scheme='urn:abreast:sdshare' term='deleted'/></entry>",
        ] {
            let (code, message) = refused(&inside.replace('X', found));
            assert_eq!(code, "atom.namespace", "{inside}");
            assert!(message.ends_with(&format!("; expected `{ATOM}`")), "{message}");
            assert!(found.is_empty() || message.contains(found), "{message}");
        }
    }
    assert_eq!(refused("<x:entry xmlns:x='urn:x'/>").0, "atom.namespace");
    let resource = "<entry><s:resource xmlns:s='X'>http://example.org/a</s:resource></entry>";
    for found in ["https://www.sdshare.org/2012/core/", "http://www.sdshare.org/core/", ATOM] {
        let (code, message) = refused(&resource.replace('X', found));
        let expected =
            format!("`resource` is in the namespace `{found}`; expected `{SDSHARE_NAMESPACE}`");
        assert_eq!((code, message), ("sdshare.namespace", expected));
    }
    let message = Document::from_slice(
        b"<feed xmlns='http://www.w3.org/2005/Atom/'/>",
        "http://example.org/",
        Limits::default(),
    )
    .unwrap_err();
    assert!(message.message().contains("in the namespace `http://www.w3.org/2005/Atom/`"));
    // Of other vocabularies.
    assert!(read("<entry><x:entry xmlns:x='urn:x'/><x:link xmlns:x='urn:x'/><x:resource xmlns:x='urn:x'/></entry>").is_ok());
}

#[test]
fn relations_in_a_misspelt_namespace_are_refused() {
    for written in [
        "https://www.sdshare.org/2012/core/fragment",
        "http://www.sdshare.org/2012/fragment",
        "http://www.sdshare.org/2012/core#fragment",
        "http://sdshare.org/core/Fragment",
    ] {
        let entry = format!("<entry><link rel='{written}' href='/f'/></entry>");
        let expected = format!("`rel` is \"{written}\"; expected \"{SDSHARE_NAMESPACE}fragment\"");
        assert_eq!(refused(&entry), ("sdshare.namespace", expected));
    }
    for other in
        ["urn:x/fragment", "http://www.sdshare.org/2012/core/other", "describedby", "fragment"]
    {
        assert!(
            read(&format!("<entry><link rel='{other}' href='/f'/></entry>")).is_ok(),
            "{other}"
        );
    }
}

#[test]
fn entries_are_children_of_the_feed() {
    for inside in [
        "<entry><id>urn:a</id><entry><id>urn:b</id></entry></entry>",
        "<entries><entry/></entries>",
        "<x:y xmlns:x='urn:x'><x:z><entry/></x:z></x:y>",
    ] {
        assert_eq!(refused(inside).0, "atom.nested", "{inside}");
    }
    assert!(read("<entry><content type='application/xml'><entry/></content></entry>").is_ok());
}

#[test]
fn an_entry_has_one_time_and_a_feed_one_next_page() {
    let entry = |second: &str| {
        format!("<entry><updated>2026-01-01T00:00:00Z</updated><updated>{second}</updated></entry>")
    };
    assert!(read(&entry("2026-01-01T00:00:00Z")).is_ok());
    for second in ["2026-01-02T00:00:00Z", "soon"] {
        assert_eq!(refused(&entry(second)).0, "atom.updated");
    }
    for links in [
        "<link rel='next'/>",
        "<link rel='Next' href='a b:'/>",
        "<link rel='next' href='?a'/><link rel='next' href='?b'/>",
    ] {
        assert_eq!(refused(links).0, "atom.paging", "{links}");
    }
}
