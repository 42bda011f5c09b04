//! Rules of reading: small documents, one rule each.
#![allow(clippy::unwrap_used)]

use abreast_resourcesync::v1_1::{
    Capability, Change, Document, Entry, Error, Head, Limits, Parser, ReadError, Reader, Root, Step,
};
use abreast_webtypes::Algorithm;
use std::io::{self, Read};

const XMLNS: &str = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'";

/// A `urlset` with that content.
fn urlset(content: &str) -> String {
    format!("<urlset {XMLNS}>{content}</urlset>")
}

/// A list of one entry with that content besides its `loc`.
fn entry(content: &str) -> String {
    urlset(&format!("<url><loc>http://example.org/a</loc>{content}</url>"))
}

fn read(text: &str) -> Result<Document, Error> {
    Document::from_slice(text.as_bytes())
}

fn one(text: &str) -> Entry {
    let document = read(text).unwrap();
    assert_eq!(document.entries.len(), 1);
    document.entries.into_iter().next().unwrap()
}

fn code(text: &str) -> &'static str {
    match read(text) {
        Ok(document) => panic!("accepted: {document:?}"),
        Err(error) => error.code(),
    }
}

#[test]
fn reads_every_attribute() {
    let document = read(&format!(
        "<sitemapindex {XMLNS}><rs:ln rel='up' href='http://example.org/up'/>\
         <rs:md capability='changelist' from='2026-01-01T00:00:00Z' until='2026-01-02T00:00:00Z'/>\
         <sitemap><loc>http://example.org/1</loc><lastmod>2026-01-01T10:00:00+01:00</lastmod>\
         <rs:md at='2026-01-01' completed='2026-01-02' capability='changelist' change='updated' \
          datetime='2026-01-01T09:00:00.5Z' encoding='gzip' from='2025' until='2026' \
          hash='md5:5d41402abc4b2a76b9719d911017c592&#10;  sha3-512:00' length='9788456778' path='/a/b' type='a/b; c=d'/>\
         <rs:ln encoding='gzip' hash='md5:5d41402abc4b2a76b9719d911017c592' href='http://example.org/2' length='5' \
          modified='2026-01-01' path='/p' pri='2' rel='duplicate alternate' type='x/y'/></sitemap></sitemapindex>"
    ))
    .unwrap();
    let head = &document.head;
    assert_eq!((head.root, head.capability), (Root::SitemapIndex, Some(Capability::ChangeList)));
    assert_eq!(head.from.unwrap().instant.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(head.until.unwrap().instant.to_string(), "2026-01-02T00:00:00Z");
    assert_eq!((head.links.len(), head.links[0].has_rel("UP")), (1, true));
    let entry = &document.entries[0];
    assert_eq!(entry.loc, "http://example.org/1");
    assert_eq!(entry.lastmod.unwrap().instant.to_string(), "2026-01-01T09:00:00Z");
    assert_eq!(
        (entry.change, entry.capability),
        (Some(Change::Updated), Some(Capability::ChangeList))
    );
    assert_eq!(entry.datetime.unwrap().instant.to_string(), "2026-01-01T09:00:00.500000Z");
    assert_eq!((entry.encoding.as_deref(), entry.path.as_deref()), (Some("gzip"), Some("/a/b")));
    assert_eq!(
        (entry.length, entry.media_type.as_deref()),
        (Some(9_788_456_778), Some("a/b; c=d"))
    );
    assert_eq!(
        (entry.digests.strongest(), &entry.digests.unknown[..]),
        (Some(Algorithm::Md5), &["sha3-512".to_owned()][..])
    );
    let link = &entry.links[0];
    assert!(
        link.has_rel("alternate")
            && link.pri == Some(2)
            && link.length == Some(5)
            && link.digests.md5.is_some()
    );
    assert_eq!(
        (link.path.as_deref(), link.media_type.as_deref(), link.encoding.as_deref()),
        (Some("/p"), Some("x/y"), Some("gzip"))
    );
    assert!(
        link.modified.is_some()
            && entry.from.is_some()
            && entry.until.is_some()
            && entry.at.is_some()
    );
    let again = Document::from_slice(&document.to_bytes()).unwrap();
    assert_eq!(again.entries[0].links[0].rel, link.rel);
}

#[test]
fn the_root_is_a_sitemap_element() {
    for text in [
        "<html xmlns='http://www.w3.org/1999/xhtml'/>",
        "<urlset/>",
        "<urlset xmlns='http://www.google.com/schemas/sitemap/0.84'/>",
        "<url xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>",
        "<rs:urlset xmlns:rs='http://www.openarchives.org/rs/terms/'/>",
    ] {
        assert_eq!(code(text), "rs.root", "{text}");
    }
    let error = read("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9/'/>").unwrap_err();
    assert_eq!(
        error.message(),
        "`urlset` is in the namespace `http://www.sitemaps.org/schemas/sitemap/0.9/`; \
         expected `http://www.sitemaps.org/schemas/sitemap/0.9`"
    );
}

#[test]
fn entries_must_fit_their_root() {
    let (list, index) = (
        "<url><loc>http://example.org/a</loc></url>",
        "<sitemap><loc>http://example.org/a</loc></sitemap>",
    );
    assert_eq!(code(&urlset(&format!("{list}{index}"))), "rs.root");
    assert_eq!(code(&urlset(&format!("{index}{list}"))), "rs.root");
    assert_eq!(code(&format!("<sitemapindex {XMLNS}>{list}{index}</sitemapindex>")), "rs.root");
    assert_eq!(code(&urlset("<Url><loc>http://example.org/a</loc></Url>")), "rs.root");
}

#[test]
fn a_plain_sitemap_has_no_capability() {
    let document = read(
        "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://example.org/</loc>\
                         <lastmod>2026-01-01</lastmod><changefreq>daily</changefreq><priority>0.5</priority></url></urlset>",
    );
    let document = document.unwrap();
    assert_eq!(
        (document.head, document.entries.len()),
        (Head { links: Vec::new(), ..Head::default() }, 1)
    );
    assert!(read(&urlset("")).unwrap().entries.is_empty());
}

#[test]
fn foreign_elements_are_ignored() {
    let document = urlset(
        "<x:y xmlns:x='urn:x'><x:url><loc>http://evil.example/</loc></x:url><rs:md capability='description'/></x:y>\
         <rs:new><x/></rs:new><rs:md capability='resourcelist' x:capability='changelist' xmlns:x='urn:x' modified='1'/>\
         text<url x='1'><x:loc xmlns:x='urn:x'>http://evil.example/</x:loc><loc>http://example.org/<!-- c -->a</loc>\
         <rs:md length='5'><rs:md length='6'/></rs:md><rs:ln rel='urn:new' href='x'/><image/><x:md xmlns:x='urn:x' n='1'/></url>",
    );
    let document = read(&document).unwrap();
    assert_eq!(document.head.capability, Some(Capability::ResourceList));
    assert_eq!(document.entries.len(), 1);
    assert_eq!(
        (document.entries[0].loc.as_str(), document.entries[0].length),
        ("http://example.org/a", Some(5))
    );
}

#[test]
fn the_head_comes_first() {
    let md = "<rs:md capability='resourcelist' at='2026-01-01'/>";
    let url = "<url><loc>http://example.org/a</loc></url>";
    assert_eq!(code(&urlset(&format!("{url}{md}"))), "rs.order");
    assert_eq!(code(&urlset(&format!("{md}{md}"))), "rs.md");
    let document =
        read(&urlset(&format!("{md}{url}<rs:ln rel='up' href='http://example.org/up'/>{url}")))
            .unwrap();
    assert_eq!(document.entries.len(), 2);
    let error = read(&format!("<urlset {XMLNS}>\n{url}\n  {md}</urlset>")).unwrap_err();
    assert_eq!((error.line(), error.column()), (3, 3));
}

#[test]
fn capabilities_are_known_and_their_case_is_forgiven() {
    let md =
        |capability: &str| urlset(&format!("<rs:md capability='{capability}' at='2026-01-01'/>"));
    let head = read(&md("capabilityList")).unwrap().head;
    assert_eq!(
        (head.capability, head.lenient_capability),
        (Some(Capability::CapabilityList), true)
    );
    assert!(!read(&md("resourcelist")).unwrap().head.lenient_capability);
    assert_eq!(code(&md("changelistindex")), "rs.capability");
    assert_eq!(code(&md("")), "rs.capability");
    assert_eq!(code(&urlset("<rs:md at='2026-01-01'/>")), "rs.capability");
    assert_eq!(one(&entry("<rs:md capability='everything'/>")).capability, None);
}

#[test]
fn an_entry_has_one_uri() {
    assert_eq!(
        one(&urlset("<url><loc>\n http://example.org/a?b=1&amp;c=2\t</loc></url>")).loc,
        "http://example.org/a?b=1&c=2"
    );
    assert_eq!(
        one(&urlset("<url><loc><![CDATA[http://example.org/a?b=1&c=2]]></loc></url>")).loc,
        "http://example.org/a?b=1&c=2"
    );
    for content in [
        "",
        "<loc/>",
        "<loc> \n </loc>",
        "<loc>http://example.org/a b</loc>",
        "<loc>http://example.org/a\nb</loc>",
        "<loc>http://example.org/&#x7f;</loc>",
        "<loc>a</loc><loc>b</loc>",
        "<loc>a<b/></loc>",
    ] {
        assert_eq!(code(&urlset(&format!("<url>{content}</url>"))), "rs.loc", "{content}");
    }
    let long = |length| urlset(&format!("<url><loc>{}</loc></url>", "x".repeat(length)));
    assert_eq!(one(&long(8_192)).loc.len(), 8_192);
    assert_eq!(code(&long(8_193)), "rs.loc");
    assert_eq!(code(&long(100_000)), "rs.loc");
}

#[test]
fn values_are_checked() {
    for (content, expected) in [
        ("<lastmod>yesterday</lastmod>", "rs.datetime"),
        ("<lastmod>Tue, 03 Nov 2026 00:00:00 GMT</lastmod>", "rs.datetime"),
        ("<lastmod>Mon, 02 Nov 2026 00:00:00 GMT</lastmod>", "rs.datetime"),
        ("<lastmod>T</lastmod>", "rs.datetime"),
        ("<lastmod>nulls</lastmod>", "rs.datetime"),
        ("<rs:md datetime='2026-01-01T25:00:00'/>", "rs.datetime"),
        ("<rs:ln rel='memento' href='x' modified='1'/>", "rs.datetime"),
        ("<rs:md length='-1'/>", "rs.length"),
        ("<rs:md length='1e3'/>", "rs.length"),
        ("<rs:md length=''/>", "rs.length"),
        ("<rs:md length='99999999999999999999'/>", "rs.length"),
        ("<rs:size>many</rs:size>", "rs.length"),
        ("<rs:md change='modified'/>", "rs.change"),
        ("<rs:md type='a&#10;b'/>", "rs.value"),
        ("<rs:md/><rs:md/>", "rs.md"),
    ] {
        assert_eq!(code(&entry(content)), expected, "{content}");
    }
    let long = format!("<rs:md type='{}'/>", "x".repeat(1_025));
    assert_eq!(code(&entry(&long)), "rs.value");
}

#[test]
fn links_without_meaning_are_left_out() {
    let read =
        one(&entry("<rs:ln href='x'/><rs:ln rel='up'/><rs:ln rel='duplicate' href='y' pri='0'/>"));
    assert_eq!((read.links.len(), read.links[0].pri), (1, None));
    assert_eq!(code(&entry(&"<rs:ln rel='a' href='b'/>".repeat(1_001))), "rs.links");
    assert_eq!(code(&urlset(&"<rs:ln rel='a' href='b'/>".repeat(1_001))), "rs.links");
}

#[test]
fn digests_that_cannot_be_read_are_noted() {
    let read = one(&entry(
        "<rs:md hash='md5:f4k3 sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 whirlpool:0'/>",
    ));
    assert_eq!(read.digests.strongest(), Some(Algorithm::Sha256));
    assert_eq!(
        (read.digests.md5, read.digests.unknown),
        (None, vec!["md5:f4k3".to_owned(), "whirlpool".to_owned()])
    );
}

#[test]
fn metadata_of_version_0_1_is_read() {
    let read = one(&entry(
        "<rs:fixity type='md5'>XUFAKrxLKna5cZ2REBfFkg==</rs:fixity><rs:fixity type='crc32'>AA==</rs:fixity>\
         <rs:size> 5 </rs:size><rs:mimetype>text/plain</rs:mimetype><rs:contentencoding>gzip</rs:contentencoding>",
    ));
    assert_eq!(read.digests.to_string(), "md5:5d41402abc4b2a76b9719d911017c592");
    assert_eq!(
        (read.length, read.media_type.as_deref(), read.encoding.as_deref()),
        (Some(5), Some("text/plain"), Some("gzip"))
    );
    assert_eq!(read.digests.unknown.len(), 1);
}

#[test]
fn spans_do_not_end_before_they_begin() {
    let head = |attributes: &str| urlset(&format!("<rs:md capability='changelist' {attributes}/>"));
    for attributes in [
        "at='2026-01-03T09:00:00Z' completed='2026-01-03T08:00:00Z'",
        "from='2026-02' until='2026-01'",
    ] {
        assert_eq!(code(&head(attributes)), "time.interval", "{attributes}");
        assert_eq!(
            code(&entry(&format!("<rs:md {attributes}/>"))),
            "time.interval",
            "{attributes}"
        );
    }
    for attributes in [
        "from='2026-05-01T00:00:00Z' until='2026'",
        "at='2026-01-01T10:00:30Z' completed='2026-01-01T10:00Z'",
    ] {
        assert!(read(&head(attributes)).is_ok(), "{attributes}");
    }
}

#[test]
fn order_of_changes_is_kept_as_it_is() {
    let list = urlset(
        "<rs:md capability='changelist' from='2026-01-02T00:00:00Z' until='2026-01-03T00:00:00Z'/>\
         <url><loc>http://example.org/a</loc><rs:md change='deleted' datetime='2026-01-02T12:00:00Z'/></url>\n\
         <url><loc>http://example.org/a</loc><rs:md change='created' datetime='2026-01-02T10:00:00Z'/></url>",
    );
    let entries = read(&list).unwrap().entries;
    assert_eq!(
        entries.iter().map(|entry| entry.change.unwrap()).collect::<Vec<_>>(),
        [Change::Deleted, Change::Created]
    );
    assert_eq!(entries.iter().map(|entry| entry.line).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn an_index_may_name_itself() {
    let index = format!(
        "<sitemapindex {XMLNS}><sitemap><loc>http://example.org/index.xml</loc></sitemap></sitemapindex>"
    );
    assert_eq!(read(&index).unwrap().entries.len(), 1);
}

/// Feeds a head and then entry after entry.
fn parse_many(entries: u64, limits: Limits) -> (Parser, Result<(), Error>) {
    let mut parser = Parser::new(limits);
    let mut read = Entry::default();
    parser.feed(urlset("").trim_end_matches("</urlset>").as_bytes());
    let mut fed = 0;
    let outcome = loop {
        match parser.next(&mut read) {
            Ok(Step::NeedInput) if fed < entries => {
                parser.feed("<url><loc>http://example.org/a</loc></url>".repeat(500).as_bytes());
                fed += 500;
            }
            Ok(Step::NeedInput) => {
                parser.feed(b"</urlset>");
                parser.finish();
            }
            Ok(Step::End) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    (parser, outcome)
}

#[test]
fn too_long_lists_are_read_up_to_a_point() {
    let (parser, outcome) = parse_many(50_000, Limits::default());
    assert!(outcome.is_ok() && !parser.over_spec_limit());
    let (parser, outcome) = parse_many(200_500, Limits::default());
    assert_eq!(outcome.unwrap_err().code(), "rs.entries");
    assert!(parser.over_spec_limit() && parser.entries() == 200_000);
    let (_, outcome) = parse_many(500, Limits::default().with_entries(500));
    assert!(outcome.is_ok());
    let (_, outcome) = parse_many(500, Limits::default().with_entries(499));
    assert_eq!(outcome.unwrap_err().code(), "rs.entries");
    let (_, outcome) = parse_many(500, Limits::default().with_bytes(10_000));
    assert_eq!(outcome.unwrap_err().code(), "xml.size");
}

#[test]
fn one_entry_serves_for_all_and_keeps_nothing_of_the_last() {
    let text = urlset(
        "<url><loc>http://example.org/long/name</loc><lastmod>2026-01-01</lastmod><rs:md hash='md5:x' type='a/b' path='/p' \
         change='created' length='1'/><rs:ln rel='a' href='b' type='c/d'/></url><url><loc>http://example.org/a</loc></url>\
         <url><loc>http://example.org/b</loc><rs:md type='e/f'/></url>",
    );
    let mut reader = Reader::new(text.as_bytes());
    let mut entry = Entry::default();
    assert!(
        reader.next(&mut entry).unwrap() && entry.media_type.is_some() && entry.links.len() == 1
    );
    assert!(reader.next(&mut entry).unwrap());
    assert_eq!(
        entry,
        Entry { loc: "http://example.org/a".to_owned(), line: 1, ..Entry::default() }
    );
    assert!(reader.next(&mut entry).unwrap());
    assert_eq!(entry.media_type.as_deref(), Some("e/f"));
    assert!(!reader.next(&mut entry).unwrap() && !reader.next(&mut entry).unwrap());
    assert_eq!(entry, Entry::default());
}

#[test]
fn head_is_available_before_and_after_entries() {
    let text = urlset(
        "<rs:md capability='resourcelist' at='2026-01-01'/><url><loc>http://example.org/a</loc></url>",
    );
    let mut reader = Reader::new(text.as_bytes());
    let mut entry = Entry::default();
    assert_eq!(reader.head().unwrap().capability, Some(Capability::ResourceList));
    assert!(reader.next(&mut entry).unwrap());
    assert!(!reader.next(&mut entry).unwrap());
    assert_eq!(reader.head().unwrap().capability, Some(Capability::ResourceList));
    assert!(Reader::new(&b"<html/>"[..]).head().is_err());
}

#[test]
fn an_error_stays() {
    let mut parser = Parser::new(Limits::default());
    parser.feed(b"<html>");
    let error = parser.next(&mut Entry::default()).unwrap_err();
    parser.feed(b"</html>");
    parser.finish();
    assert_eq!(parser.next(&mut Entry::default()), Err(error));
}

/// Input that fails after its content.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("unplugged")),
            length => Ok(length),
        }
    }
}

#[test]
fn a_broken_input_is_not_their_fault() {
    let text = urlset("");
    let mut reader = Reader::new(Broken(&text.as_bytes()[..100]));
    assert!(matches!(reader.next(&mut Entry::default()), Err(ReadError::Io(_))));
    let mut reader = Reader::new(&text.as_bytes()[..100]);
    assert!(
        matches!(reader.next(&mut Entry::default()), Err(ReadError::Syntax(error)) if error.code() == "xml.eof")
    );
}
