//! What could make a list seem shorter, or a change seem another, is refused.
#![allow(clippy::unwrap_used)]

use abreast_resourcesync::v0_1;
use abreast_resourcesync::v1_1::{Document, Entry, Error, Limits, Parser, Step, Tolerance};

const RS: &str = "http://www.openarchives.org/rs/terms/";
const XMLNS: &str = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'";

/// A `urlset` with that content.
fn urlset(content: &str) -> String {
    format!("<urlset {XMLNS}>{content}</urlset>")
}

fn read(text: &str) -> Result<Document, Error> {
    Document::from_slice(text.as_bytes())
}

fn code(text: &str) -> &'static str {
    match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.code(),
    }
}

#[test]
fn elements_in_a_misspelt_namespace_are_refused() {
    let md = "<rs:md capability='changelist' from='2026-01-01'/>";
    let entry =
        "<url><loc>http://example.org/a</loc><rs:md change='deleted' datetime='2026-01-02'/></url>";
    for found in [
        "http://www.openarchives.org/rs/terms",
        "https://www.openarchives.org/rs/terms/",
        "http://openarchives.org/rs/terms/",
        "http://www.openarchives.org/RS/terms/",
        "urn:rs",
    ] {
        let expected = format!("`md` is in the namespace `{found}`; expected `{RS}`");
        let document = urlset(&format!("{md}{entry}")).replace(RS, found);
        let error = read(&document).unwrap_err();
        assert_eq!((error.code(), error.message()), ("rs.namespace", expected.as_str()));
        // Only the entry is, by a declaration of its own.
        let own = entry.replace("<url>", &format!("<url xmlns:rs='{found}'>"));
        let error = read(&urlset(&format!("{md}{own}"))).unwrap_err();
        assert_eq!((error.code(), error.message()), ("rs.namespace", expected.as_str()));
    }
    for inside in [
        "<md capability='resourcelist'/>",
        "<rs:MD capability='resourcelist'/>",
        "<rs:metadata capability='resourcelist'/>",
        "<rs:ln xmlns:rs='http://www.openarchives.org/rs/terms' rel='up' href='x'/>",
        "<url><loc>http://h/a</loc><rs:size xmlns:rs='http://www.openarchives.org/rs/'>5</rs:size></url>",
        "<url><loc>http://h/a</loc><lastmod xmlns='https://www.sitemaps.org/schemas/sitemap/0.9'/></url>",
        "<url xmlns=''/>",
        "<x:url xmlns:x='urn:x'/>",
        "<x:Sitemap xmlns:x='urn:x'/>",
    ] {
        assert_eq!(code(&urlset(inside)), "rs.namespace", "{inside}");
    }
}

#[test]
fn entries_are_children_of_the_root() {
    let entry = "<url><loc>http://example.org/a</loc></url>";
    for inside in [
        entry.replace("</url>", &format!("{entry}</url>")),
        entry.replace("</url>", &format!("<image>{entry}</image></url>")),
        entry.replace("</url>", "<sitemap/></url>"),
        format!("<urls>{entry}</urls>"),
        format!("<x:y xmlns:x='urn:x'>{entry}</x:y>"),
        format!("<y xmlns=''>{entry}</y>"),
    ] {
        assert_eq!(code(&urlset(&inside)), "rs.nested", "{inside}");
        // Left out with all that is in it, so that nothing is concluded from what is not listed.
        let mut parser = Parser::with_tolerance(Limits::default(), Tolerance::Lenient);
        parser.feed(urlset(&format!("{inside}{entry}")).as_bytes());
        parser.finish();
        let mut read = Entry::default();
        while parser.next(&mut read).unwrap() != Step::End {}
        assert_eq!((parser.entries(), parser.skipped()), (1, 1), "{inside}");
    }
}

#[test]
fn a_change_states_its_kind_and_a_list_none_that_is_deleted() {
    let read = |capability: &str, attributes: &str| {
        let md = format!("<rs:md capability='{capability}' at='2026-01-01' from='2026-01-01'/>");
        let entry = format!("<url><loc>http://example.org/a</loc><rs:md {attributes}/></url>");
        read(&urlset(&format!("{md}{entry}"))).map_err(|error| error.code())
    };
    for list in ["changelist", "changedump-manifest"] {
        assert_eq!(read(list, "length='1'").unwrap_err(), "rs.change");
    }
    assert!(read("changelist", "capability='changelist'").is_ok(), "it should be an index");
    assert_eq!(read("changelist", "capability='resourcelist'").unwrap_err(), "rs.change");
    for list in ["resourcelist", "resourcedump-manifest"] {
        assert_eq!(read(list, "change='deleted'").unwrap_err(), "rs.change");
        assert!(read(list, "change='created'").is_ok());
    }
}

#[test]
fn lengths_beyond_what_there_can_be_are_refused() {
    let list = |length: u64| {
        urlset(&format!("<url><loc>http://example.org/a</loc><rs:md length='{length}'/></url>"))
    };
    assert!(read(&list(i64::MAX as u64)).is_ok());
    assert_eq!(code(&list(i64::MAX as u64 + 1)), "rs.length");
}

#[test]
fn change_sets_of_0_1_are_no_sitemaps() {
    const XHTML: &str = "http://www.w3.org/1999/xhtml";
    const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";
    let both = |text: &str| {
        let old = v0_1::Document::from_slice(text.as_bytes()).map_err(|error| error.code());
        (old.map(|read| read.head.change_set), read(text).map(drop).map_err(|error| error.code()))
    };
    let linked = |namespace: &str, attributes: &str| {
        urlset(&format!("<x:link xmlns:x='{namespace}' {attributes}/>"))
    };
    let prev = format!("rel='prev {CHANGE_SET}' href='/c'");
    let current = format!("rel='current {CHANGE_SET}' href='/c'");
    assert_eq!(both(&linked(XHTML, &prev)), (Ok(true), Err("rs.version")));
    assert_eq!(both(&linked(XHTML, &current)), (Ok(false), Ok(())));
    let without_href = linked(XHTML, &prev).replace("href='/c'", "");
    assert_eq!(both(&without_href), (Err("rs.link"), Err("rs.version")));
    for wrong in ["http://www.w3.org/1999/xhtml/", "http://www.w3.org/TR/xhtml1"] {
        for link in [&prev, &current] {
            let text = linked(wrong, link);
            assert_eq!(both(&text), (Err("rs.namespace"), Err("rs.namespace")), "{text}");
        }
    }
    let entry = |inside: &str| urlset(&format!("<url><loc>http://h/a</loc>{inside}</url>"));
    for text in [
        urlset("").replace("<urlset ", "<urlset xmlns:x='urn:x' x:type='changeset' "),
        urlset("")
            .replace("<urlset ", "<urlset rs:type='changeset' ")
            .replace(RS, &RS[..RS.len() - 1]),
        entry("<lastmod xmlns:x='urn:x' x:type='updated'>2026-01-01</lastmod>"),
        entry(
            "<lastmod xmlns:x='https://www.openarchives.org/rs/terms/' x:type='new'>2026-01-01</lastmod>",
        ),
        entry("<expires xmlns='https://www.sitemaps.org/schemas/sitemap/0.9'>2026-01-01</expires>"),
        entry("<x:fixity xmlns:x='http://www.openarchives.org/rs/terms' type='md5'/>"),
    ] {
        assert_eq!(both(&text), (Err("rs.namespace"), Err("rs.namespace")), "{text}");
    }
    let of_protocol = entry("")
        .replace("<loc>", "<loc xmlns:x='http://www.openarchives.org/rs/' x:protocol='p'>");
    assert_eq!(both(&of_protocol).0, Err("rs.namespace"));
}
