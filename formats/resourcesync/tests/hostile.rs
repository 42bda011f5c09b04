//! Hostile documents cost bounded memory and time and have no other effect.
#![allow(clippy::unwrap_used)]

use abreast_resourcesync::v1_1::{Document, Entry, Limits, Parser, Step};

const ROOT: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">";
const MD: &str = "<rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\"/>";

fn error(text: impl AsRef<[u8]>) -> (&'static str, String) {
    match Document::from_slice(text.as_ref()) {
        Ok(document) => panic!("accepted with {} entries", document.entries.len()),
        Err(error) => (error.code(), error.to_string()),
    }
}

/// Feeds a piece again and again until the document is refused; says the code and how many bytes
/// were taken.
fn refused_after(start: &str, piece: &str, at_most: usize) -> (&'static str, usize) {
    let mut parser = Parser::new(Limits::default());
    parser.feed(start.as_bytes());
    let mut fed = start.len();
    let mut entry = Entry::default();
    loop {
        match parser.next(&mut entry) {
            Ok(Step::NeedInput) => {
                assert!(fed < at_most, "takes everything");
                parser.feed(piece.as_bytes());
                fed += piece.len();
            }
            Ok(_) => {}
            Err(error) => return (error.code(), fed),
        }
    }
}

#[test]
fn entities_are_never_expanded() {
    let entity =
        |level: u32| format!("<!ENTITY l{level} \"{}\">", format!("&l{};", level - 1).repeat(10));
    let entities = (1..12).map(entity).collect::<Vec<_>>().concat();
    let laughs = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE urlset [<!ENTITY l0 \"ha\">{entities}]>\n\
         {ROOT}{MD}<url><loc>http://example.org/&l11;</loc></url></urlset>"
    );
    assert_eq!(error(&laughs).0, "xml.doctype");
}

#[test]
fn external_entities_are_neither_opened_nor_shown() {
    let (code, text) = error(format!(
        "<!DOCTYPE urlset [<!ENTITY x SYSTEM \"file:///etc/shadow\">]>{ROOT}<url><loc>http://example.org/&x;</loc></url></urlset>"
    ));
    assert_eq!(code, "xml.doctype");
    assert!(!text.contains("shadow"));
}

#[test]
fn undefined_entities_are_refused() {
    assert_eq!(
        error(format!("{ROOT}<url><loc>http://example.org/&x;</loc></url></urlset>")).0,
        "xml.syntax"
    );
}

#[test]
fn a_million_levels_are_refused_at_the_sixty_fifth() {
    let (code, fed) = refused_after(ROOT, &"<a>".repeat(100), 3_000_000);
    assert_eq!((code, fed < 1_000), ("xml.depth", true));
    let deep = format!("{ROOT}{}", "<a>".repeat(1_000_000));
    assert_eq!(error(deep).0, "xml.depth");
}

#[test]
fn thousands_of_attributes_are_refused() {
    let attributes =
        (0..3_000).map(|number| format!(" a{number}=\"{number}\"")).collect::<Vec<_>>().concat();
    assert_eq!(
        error(format!("{ROOT}<rs:md capability=\"resourcelist\"{attributes}/></urlset>")).0,
        "xml.attributes"
    );
    assert_eq!(
        error(format!(
            "{ROOT}<rs:md capability=\"resourcelist\" capability=\"changelist\"/></urlset>"
        ))
        .0,
        "xml.attributes"
    );
}

#[test]
fn a_16_mib_attribute_or_text_is_refused_after_1_mib() {
    let piece = "x".repeat(64 * 1_024);
    for start in ["<rs:md capability=\"", "<url><loc>", "<!--", "<url><rs:ln href='", "<x>"] {
        let (code, fed) = refused_after(&format!("{ROOT}{start}"), &piece, 16 << 20);
        assert_eq!((code, fed < 2 << 20), ("xml.size", true), "{start}");
    }
    let literal =
        format!("{ROOT}<url><loc>http://example.org/{}</loc></url></urlset>", "x".repeat(64 << 20));
    assert_eq!(error(literal).0, "xml.size");
}

#[test]
fn text_in_many_pieces_is_limited_too() {
    for (start, expected) in [
        ("<url><loc>", "rs.loc"),
        ("<url><lastmod>", "rs.datetime"),
        ("<url><rs:mimetype>", "rs.value"),
    ] {
        let (code, fed) =
            refused_after(&format!("{ROOT}{start}"), "<![CDATA[0123456789]]><!-- c -->", 1 << 20);
        assert_eq!((code, fed < 100_000), (expected, true), "{start}");
    }
}

#[test]
fn bytes_that_are_no_characters_are_refused() {
    let text = [
        ROOT.as_bytes(),
        MD.as_bytes(),
        b"<url><loc>http://example.org/caf\xff.txt</loc></url></urlset>",
    ]
    .concat();
    assert_eq!(error(text).0, "xml.encoding");
}

#[test]
fn a_byte_order_mark_is_fine() {
    let text = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>{ROOT}{MD}<url><loc>http://example.org/a</loc></url></urlset>"
    );
    assert_eq!(Document::from_slice(text.as_bytes()).unwrap().entries.len(), 1);
}

#[test]
fn a_list_cut_anywhere_is_refused() {
    let whole = format!(
        "{ROOT}{MD}<url><loc>http://example.org/a</loc></url><url><loc>http://example.org/b</loc></url></urlset>"
    );
    for length in 0..whole.len() {
        assert_eq!(error(&whole[..length]).0, "xml.eof", "{length}");
    }
}

#[test]
fn everything_legal_is_read() {
    let text = "<?xml version='1.0'?><!-- c --><s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'\n\
        xmlns:r='http://www.openarchives.org/rs/terms/' xmlns:f='urn:f'><r:ln href='http://example.org/x' rel='urn:x'/>\
        <r:md at='2026-01-03T09:00:00Z' f:z='1' capability='resourcelist'/><s:url><f:loc>http://evil.example/</f:loc>\
        <s:loc><![CDATA[http://example.org/a?x=1&y=2]]></s:loc></s:url><?pi x?><s:url><s:loc>\n\
        http://example.org/b?x=1&amp;y=&#x32; </s:loc></s:url></s:urlset>\n<!-- end -->\n";
    let document = Document::from_slice(text.as_bytes()).unwrap();
    let uris: Vec<_> = document.entries.iter().map(|entry| entry.loc.as_str()).collect();
    assert_eq!(uris, ["http://example.org/a?x=1&y=2", "http://example.org/b?x=1&y=2"]);
    assert!(document.head.capability.is_some() && document.head.links.len() == 1);
}
