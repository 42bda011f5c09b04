//! Inputs that the XML reader accepts and refuses. Each rule with the smallest input that shows it.
#![allow(clippy::unwrap_used)]

use abreast_webtypes::SyntaxError;
use abreast_webtypes::xml::{MAX_DEPTH, MAX_TOKEN_LENGTH, Ns, Reader, Token};
use proptest::prelude::*;

const KNOWN: &[&str] = &["urn:a", "urn:b"];

/// All tokens, one a line; text pieces joined, since where they are cut is nobody's concern.
fn read_chunks<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Result<Vec<String>, SyntaxError> {
    let mut chunks = chunks.fuse();
    let mut reader = Reader::new(KNOWN);
    let mut seen: Vec<String> = Vec::new();
    loop {
        let line = match reader.next()? {
            Token::NeedInput => {
                match chunks.next() {
                    Some(chunk) => reader.push(chunk),
                    None => reader.finish(),
                }
                continue;
            }
            Token::Start(element) => {
                let name = |ns: Ns, local: &str| match ns {
                    Ns::NONE => local.to_owned(),
                    ns if ns == Ns::known(0) => format!("a|{local}"),
                    ns if ns == Ns::known(1) => format!("b|{local}"),
                    Ns::XML => format!("xml|{local}"),
                    _ => format!("?|{local}"),
                };
                let attributes = element
                    .attributes()
                    .map(|a| format!(" {}={}", name(a.ns(), a.local()), a.value()));
                format!(
                    "<{}{}",
                    name(element.ns(), element.local()),
                    attributes.collect::<Vec<_>>().concat()
                )
            }
            Token::End => ">".to_owned(),
            Token::Text(text) => format!("\"{text}"),
            Token::Markup(text) => text.to_owned(),
            Token::Done => return Ok(seen),
        };
        match seen.last_mut() {
            Some(last) if last.starts_with('"') && line.starts_with('"') => {
                last.push_str(&line[1..]);
            }
            _ => seen.push(line),
        }
    }
}

fn read(text: impl AsRef<[u8]>) -> Result<Vec<String>, SyntaxError> {
    read_chunks(std::iter::once(text.as_ref()))
}

fn code(text: impl AsRef<[u8]>) -> &'static str {
    match read(text.as_ref()) {
        Ok(tokens) => panic!("accepted as {tokens:?}"),
        Err(error) => error.code(),
    }
}

fn place(text: &str) -> (u64, u64) {
    let error = read(text).unwrap_err();
    (error.line(), error.column())
}

#[test]
fn reads_elements_attributes_and_text() {
    let seen = read(
        "<?xml version=\"1.0\" encoding='utf-8'?><!-- c --><?p q?>\n<a x='1' y=\"&lt;2&#x20ac;\">t&amp;u<![CDATA[<&]]> v<b/></a >\n<!-- d -->",
    );
    assert_eq!(seen.unwrap(), ["<a x=1 y=<2€", "\"t&u<& v", "<b", ">", ">"]);
}

#[test]
fn names_are_resolved_whatever_their_prefix() {
    let seen = read(
        "<p:a xmlns:p='urn:a' xmlns='urn:b' p:x='1' x='2' xml:lang='en'><a xmlns=''/><p:b xmlns:p='urn:c'><p:c/></p:b><p:d/><e/></p:a>",
    );
    assert_eq!(
        seen.unwrap(),
        [
            "<a|a a|x=1 x=2 xml|lang=en",
            "<a",
            ">",
            "<?|b",
            "<?|c",
            ">",
            ">",
            "<a|d",
            ">",
            "<b|e",
            ">",
            ">"
        ]
    );
}

#[test]
fn prefixes_must_be_declared() {
    for text in [
        "<p:a/>",
        "<a p:b='1'/>",
        "<a xmlns:p=''/>",
        "<a xmlns:xml='urn:a'/>",
        "<a xmlns:xmlns='urn:a'/>",
    ] {
        assert_eq!(code(text), "xml.syntax", "{text}");
    }
    let reserved = "<a xmlns:q='http://www.w3.org/2000/xmlns/'/>";
    assert_eq!(code(reserved), "xml.syntax");
}

#[test]
fn white_space_in_values_becomes_blanks_and_line_ends_are_one() {
    assert_eq!(
        read("<a b='1\r\n2\t3&#10;4'>5\r\n6\r7&#13;</a>").unwrap(),
        ["<a b=1 2 3\n4", "\"5\n6\n7\r", ">"]
    );
}

#[test]
fn a_doctype_is_refused_unread() {
    let laughs = "<?xml version='1.0'?>\n<!DOCTYPE a [<!ENTITY b \"&c;&c;\"><!ENTITY x SYSTEM \"file:///etc/hostname\">]><a>&b;</a>";
    let error = read(laughs).unwrap_err();
    assert_eq!((error.code(), error.line(), error.column()), ("xml.doctype", 2, 1));
    assert!(!error.to_string().contains("hostname"));
    assert_eq!(code("<!DOCTYPE"), "xml.doctype");
}

/// All text of a document whose entities are allowed, pushed in pieces of that many bytes.
fn text_with_entities(document: &str, piece: usize) -> Result<String, SyntaxError> {
    let mut reader = Reader::new(KNOWN).allow_entities().keep_markup();
    let mut pieces = document.as_bytes().chunks(piece);
    let mut seen = String::new();
    loop {
        match reader.next()? {
            Token::NeedInput => match pieces.next() {
                Some(piece) => reader.push(piece),
                None => reader.finish(),
            },
            Token::Start(element) => {
                for attribute in element.attributes() {
                    seen.push_str(&attribute.value());
                }
            }
            Token::Text(text) | Token::Markup(text) => seen.push_str(text),
            Token::End => {}
            Token::Done => return Ok(seen),
        }
    }
}

#[test]
fn flat_entities_are_replaced_where_they_are_allowed() {
    let document = "<?xml version='1.0'?><!DOCTYPE a [<!-- ' -->\n<!ENTITY b \"x'y\" ><?p ?>\
        <!ENTITY c 'v&amp;w'><!ENTITY b 'later'><!ENTITY amp 'wrong'>] ><a d='&b;'>&c;&amp;<!-- e --></a>";
    for piece in [1, 2, 7, 1_000] {
        assert_eq!(text_with_entities(document, piece).unwrap(), "x'yv&w&<!-- e -->");
    }
    assert_eq!(text_with_entities("<!DOCTYPE a><a>b</a>", 1).unwrap(), "b");
}

#[test]
fn other_declarations_are_refused_even_so() {
    for (document, code) in [
        ("<!DOCTYPE a SYSTEM 'b'><a/>", "xml.doctype"),
        ("<!DOCTYPEa><a/>", "xml.doctype"),
        ("<!DOCTYPE a [<!ENTITY b SYSTEM 'c'>]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [<!ENTITY % b 'c'>]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [<!ENTITY b 'c'><!ENTITY d '&b;'>]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [<!ENTITY b '<c/>'>]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [<!ENTITY b '&#60;'>]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [<!ELEMENT b ANY>]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [ b ]><a/>", "xml.doctype"),
        ("<!DOCTYPE a [] b><a/>", "xml.doctype"),
        ("<!DOCTYPE a><!DOCTYPE a><a/>", "xml.syntax"),
        ("<a/><!DOCTYPE a>", "xml.syntax"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&d;</a>", "xml.syntax"),
        ("<!DOCTYPE a [<!ENTITY b 'c'", "xml.eof"),
    ] {
        for piece in [1, 1_000] {
            let found = text_with_entities(document, piece).map_err(|error| error.code());
            assert_eq!(found, Err(code), "{document}");
        }
    }
}

#[test]
fn only_predefined_entities_and_valid_characters_are_allowed() {
    for text in [
        "<a>&b;</a>",
        "<a b='&c;'/>",
        "<a>&</a>",
        "<a>& b;</a>",
        "<a>&#0;</a>",
        "<a>&#1;</a>",
        "<a>&#xFFFF;</a>",
        "<a>&#xD800;</a>",
        "<a>&#x110000;</a>",
        "<a>&#;</a>",
        "<a>&amp</a>",
        "<a b='&#8;'/>",
        "<a>&AMP;</a>",
    ] {
        assert_eq!(code(text), "xml.syntax", "{text}");
    }
}

#[test]
fn duplicates_are_refused_as_written_and_by_namespace() {
    assert_eq!(code("<a b='1' c='2' b='3'/>"), "xml.attributes");
    assert_eq!(code("<a xmlns:p='urn:a' xmlns:q='urn:a' p:b='1' q:b='2'/>"), "xml.attributes");
    assert_eq!(code("<a xmlns='urn:a' xmlns='urn:b'/>"), "xml.attributes");
    let many = |extra: &str| {
        format!(
            "<a {} {extra}/>",
            (0..200).map(|n| format!("n{n}='' ")).collect::<Vec<_>>().concat()
        )
    };
    assert_eq!(code(many("n77=''")), "xml.attributes");
    assert!(read(many("m77=''")).is_ok());
    assert!(read("<a xmlns:p='urn:a' p:b='1' b='2'/>").is_ok());
}

#[test]
fn attributes_depth_and_namespaces_are_limited() {
    let attributes = |count| {
        format!("<a {}/>", (0..count).map(|n| format!("n{n}='' ")).collect::<Vec<_>>().concat())
    };
    assert!(read(attributes(256)).is_ok());
    assert_eq!(code(attributes(3_000)), "xml.attributes");
    let nested = |depth| format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth));
    assert!(read(nested(MAX_DEPTH)).is_ok());
    assert_eq!(code(nested(MAX_DEPTH + 1)), "xml.depth");
    let namespaces = |count| {
        format!(
            "<a {}/>",
            (0..count).map(|n| format!("xmlns:n{n}='urn:{n}' ")).collect::<Vec<_>>().concat()
        )
    };
    assert!(read(namespaces(128)).is_ok());
    assert_eq!(code(namespaces(129)), "xml.attributes");
    assert_eq!(code(format!("<{}/>", "n".repeat(1_025))), "xml.size");
}

/// Feeds `piece` until the reader refuses it, and says after how many bytes.
fn refused_after(start: &str, piece: &str) -> (&'static str, usize) {
    let mut reader = Reader::new(&[]);
    reader.push(start.as_bytes());
    let mut fed = start.len();
    loop {
        match reader.next() {
            Ok(Token::NeedInput) => {
                reader.push(piece.as_bytes());
                fed += piece.len();
                assert!(fed < 2 * MAX_TOKEN_LENGTH + 65_536, "takes everything");
            }
            Ok(_) => {}
            Err(error) => return (error.code(), fed),
        }
    }
}

#[test]
fn endless_tokens_are_refused_in_bounded_memory() {
    let chunk = "x".repeat(65_536);
    for start in ["<a>", "<a b='", "<a b=\"", "<a><![CDATA[", "<a><!--", "<?p ", "<", "<a></"] {
        let (code, fed) = refused_after(start, &chunk);
        assert_eq!(code, "xml.size", "{start}");
        assert!(fed <= MAX_TOKEN_LENGTH + 2 * 65_536, "{start}: {fed}");
    }
    assert_eq!(refused_after("<a>", &"<a>".repeat(10_000)).0, "xml.depth");
}

#[test]
fn a_cut_document_is_never_a_shorter_one() {
    let whole = "<?xml version='1.0'?><a xmlns='urn:a'><b c='d'>e</b><!-- f --><![CDATA[g]]></a>";
    assert!(read(whole).is_ok());
    for length in 0..whole.len() {
        assert_eq!(code(&whole[..length]), "xml.eof", "{}", &whole[..length]);
    }
    assert_eq!(code(b"<a>\xc3"), "xml.eof");
}

#[test]
fn bytes_must_be_the_encoding_they_should_be() {
    assert_eq!(code(b"<a>\xff</a>"), "xml.encoding");
    assert_eq!(code(b"<a>\xc3(</a>"), "xml.encoding");
    assert_eq!(code(b"<!-- \xed\xa0\x80 --><a/>"), "xml.encoding");
    assert_eq!(code("<?xml version='1.0' encoding='ISO-8859-15'?><a/>"), "xml.encoding");
    assert_eq!(code("<?xml version='1.0' encoding='UTF-16'?><a/>"), "xml.encoding");
    assert_eq!(
        read(b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?><a/>").unwrap(),
        ["<a", ">"]
    );
    assert_eq!(
        read("<?xml version='1.0' encoding='us-ascii' standalone='yes'?><a/>").unwrap(),
        ["<a", ">"]
    );
}

fn utf16(text: &str, big_endian: bool) -> Vec<u8> {
    let unit = |unit: u16| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
    text.encode_utf16().flat_map(unit).collect()
}

#[test]
fn latin_text_is_read_where_it_is_declared() {
    for label in ["ISO-8859-1", "windows-1252", "latin1"] {
        let declared = format!("<?xml version='1.0' encoding='{label}'?><a>caf");
        let bytes = [declared.as_bytes(), b"\xe9 \x80\x85</a>"].concat();
        assert_eq!(read(&bytes).unwrap(), ["<a", "\"café €…", ">"], "{label}");
    }
}

#[test]
fn a_charset_is_used_for_bytes_that_are_not_utf_8() {
    let read = |media_type: &str, bytes: &[u8], piece: usize| {
        let (mut reader, mut text) = (Reader::new(&[]), String::new());
        reader.use_charset(media_type);
        let mut pieces = bytes.chunks(piece);
        loop {
            match reader.next()? {
                Token::NeedInput => match pieces.next() {
                    Some(piece) => reader.push(piece),
                    None => reader.finish(),
                },
                Token::Text(more) => text.push_str(more),
                Token::Done => return Ok::<_, SyntaxError>(text),
                _ => {}
            }
        }
    };
    let latin = "text/xml; charset=ISO-8859-1";
    let utf_8 = "<?xml version='1.0'?><a>café</a>".as_bytes();
    let mixed = b"<?xml version='1.0' encoding='UTF-8'?><a>caf\xe9\xe9</a>";
    for piece in [1, 3, 100] {
        for charset in ["utf-16le", "UTF-16BE", "utf-16"] {
            for (text, big_endian) in [
                ("<?xml version='1.0' encoding='utf-16'?><a>é\u{1f600}</a>", false),
                ("\r\n <a>é\u{1f600}</a>", true),
                ("\u{feff}<a>é\u{1f600}</a>", true),
            ] {
                let bytes = utf16(text, big_endian);
                let media_type = format!("text/xml; charset={charset}");
                assert_eq!(read(&media_type, &bytes, piece).unwrap(), "é\u{1f600}", "{text}");
            }
            let utf_8 = "<a>é</a>".as_bytes();
            assert_eq!(read("text/xml; charset=utf-16", utf_8, piece).unwrap(), "é");
        }
        assert_eq!(read(latin, utf_8, piece).unwrap(), "café");
        assert_eq!(read(latin, mixed, piece).unwrap(), "caféé");
        assert_eq!(read("text/xml", mixed, piece).unwrap_err().code(), "xml.encoding");
    }
}

#[test]
fn utf16_needs_its_mark_unless_the_answer_states_it() {
    for big_endian in [true, false] {
        let text = "\u{feff}<?xml version='1.0' encoding='utf-16'?><a>é\u{1f600}</a>";
        assert_eq!(read(utf16(text, big_endian)).unwrap(), ["<a", "\"é\u{1f600}", ">"]);
        assert_eq!(code(utf16(&text[3..], big_endian)), "xml.encoding");
        let mut cut = utf16("\u{feff}<a>\u{1f600}", big_endian);
        assert_eq!(code(&cut), "xml.eof");
        cut.truncate(cut.len() - 2);
        assert_eq!(code(&cut), "xml.eof");
        cut.extend(utf16("x</a>", big_endian));
        assert_eq!(code(&cut), "xml.encoding");
    }
    assert_eq!(code([0xff, 0xfe, 0, 0, b'<', 0, 0, 0]), "xml.encoding");
}

#[test]
fn ill_formed_documents_are_refused() {
    for text in [
        "<a></b>",
        "<a><b></a></b>",
        "</a>",
        "<a/><b/>",
        "<a/>x",
        "x<a/>",
        "{\"a\":1}",
        "<a b=c/>",
        "<a b/>",
        "<a b='<'/>",
        "<a>\u{1}</a>",
        "<a>\0</a>",
        "<a>\u{fffe}</a>",
        "<a>]]></a>",
        "<a><!-- -- --></a>",
        "<!----->",
        "<a><!b></a>",
        "<a/><![CDATA[]]>",
        " <?xml version='1.0'?><a/>",
        "<?xml version='2.0'?><a/>",
        "<?xml version='1.0' x='y'?><a/>",
        "<?xml encoding='utf-8'?><a/>",
        "<?xml version='1.0'/?><a/>",
        "<a><?XML b?></a>",
        "<??><a/>",
        "< a/>",
        "<a b='1'c='2'/>",
    ] {
        assert_eq!(code(text), "xml.syntax", "{text}");
    }
}

#[test]
fn errors_have_a_location() {
    assert_eq!(place("<a>\n  <b></c>\n</a>"), (2, 6));
    assert_eq!(place("<a>\n<é é='1'  x=2></a>"), (2, 13));
    assert_eq!(place("<a>\n\n"), (3, 1));
    assert_eq!(place("<a>\né\u{2}"), (2, 2));
    let error = read("<a>\n  <b></c>\n</a>").unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 6: `</c>` closes `<b>`");
}

#[test]
fn documents_have_a_length_limit() {
    let document = b"<a>12345</a>";
    for chunk in [1, 5, 100] {
        let outcome = |limit| {
            let mut reader = Reader::with_limit(&[], limit);
            let mut chunks = document.chunks(chunk);
            loop {
                match reader.next() {
                    Ok(Token::NeedInput) => match chunks.next() {
                        Some(chunk) => reader.push(chunk),
                        None => reader.finish(),
                    },
                    Ok(Token::Done) => return "",
                    Ok(_) => {}
                    Err(error) => return error.code(),
                }
            }
        };
        assert_eq!(outcome(12), "");
        assert_eq!(outcome(11), "xml.size");
    }
}

fn bytes_of_documents() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "<a>",
        "</a>",
        "<a",
        " b='",
        "c'",
        ">",
        "/>",
        "&amp;",
        "&#10;",
        "&",
        ";",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?p",
        "?>",
        "<?xml version='1.0'?>",
        " xmlns:p='urn:a'",
        "<p:b",
        "é",
        "\u{1f600}",
        "\r\n",
        "\n",
        " ",
        "]",
        "-",
        "\u{1}",
        "x",
        "<!DOCTYPE",
        "\"",
    ]);
    let bytes = prop_oneof![20 => pieces.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 1..3)];
    let start = prop::sample::select(vec![
        &b""[..],
        b"<a>",
        b"<a>",
        b"\xef\xbb\xbf<a>",
        b"\xff\xfe<\0a\0>\0",
    ]);
    (start, prop::collection::vec(bytes, 0..20), prop::sample::select(vec!["", "</a>"]))
        .prop_map(|(start, pieces, end)| [start, &pieces.concat(), end.as_bytes()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn cutting_the_input_changes_nothing(document in bytes_of_documents(), chunk in 1_usize..7) {
        prop_assert_eq!(read(&document), read_chunks(document.chunks(chunk)));
    }
}

#[test]
fn repairs_are_only_made_on_demand_and_are_reported() {
    let text = "<list xmlns='urn:a'><q:item q:x='1'>a</item></list>";
    assert_eq!(read_chunks([text.as_bytes()].into_iter()).unwrap_err().code(), "xml.syntax");
    let mut reader = Reader::new(KNOWN).repair(&[("q", "urn:b")]);
    reader.push(text.as_bytes());
    reader.finish();
    let mut spaces = Vec::new();
    loop {
        match reader.next().unwrap() {
            Token::Start(element) => {
                spaces.push((element.ns(), element.namespace().to_owned()));
                spaces.extend(element.attributes().map(|of| (of.ns(), of.namespace().to_owned())));
            }
            Token::Done => break,
            _ => {}
        }
    }
    let (a, b) = ((Ns::known(0), "urn:a".to_owned()), (Ns::known(1), "urn:b".to_owned()));
    assert_eq!(spaces, [a, b.clone(), b]);
    let repairs: Vec<_> = reader.take_repairs().collect();
    assert_eq!(
        repairs,
        [
            ("xml.end-tag", "`</item>` closes `<q:item>`".to_owned()),
            ("xml.prefix", "the prefix `q` is not declared".to_owned())
        ]
    );
    assert_eq!(reader.take_repairs().count(), 0);
}

#[test]
fn a_start_tag_can_be_taken_as_an_end() {
    for (after, expected) in [("\n<!-- c -->", None), ("<a/>", Some("xml.syntax"))] {
        let mut reader = Reader::new(KNOWN);
        reader.push(format!("<a><b/><a>{after}").as_bytes());
        reader.finish();
        let mut starts = 0;
        let error = loop {
            match reader.next() {
                Ok(Token::Start(element)) => {
                    starts += 1;
                    assert_eq!(element.is_bare(), starts != 2);
                    if starts == 3 {
                        reader.take_as_end();
                    }
                }
                Ok(Token::Done) => break None,
                Ok(_) => {}
                Err(error) => break Some(error.code()),
            }
        };
        assert_eq!((starts, error), (3, expected));
    }
}
