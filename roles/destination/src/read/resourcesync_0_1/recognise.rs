//! Whether the begin of an answer is of this version.
//!
//! A Sitemap is of 0.1 if it has an element or attribute that only 0.1 has, and nothing of later
//! versions; a plain index if its first Sitemap is. Any other Sitemap is read by the reader of 1.1. A change set may be inside a stanza of
//! XMPP, as in the specification's example, which the lenient reader unwraps [rs-0.1 §5.2.1].

use crate::read::protocol::{AnswerHead, HEAD_BYTES};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use abreast_net::Unpacker;
use abreast_resourcesync::sitemap::trimmed;
use abreast_resourcesync::v0_1::SUBJECT;
use abreast_webtypes::xml::{Element, Ns, Reader, Token, utf8_begin};
use std::borrow::Cow;

/// Unpacked bytes of a document that are searched.
const BYTES_MAX: usize = 64 << 10;
/// Most indexes above the Sitemap that shows of which version it is.
const INDEXES_MAX: usize = 2;
/// How ZIP files begin.
const ZIP: &[u8] = b"PK\x03\x04";
/// How WARC files begin.
const WARC: &[u8] = b"WARC/";

const NAMESPACES: &[&str] = &[
    "http://www.sitemaps.org/schemas/sitemap/0.9",
    "http://www.openarchives.org/rs/terms/",
    "http://www.w3.org/1999/xhtml",
];
const SITEMAP: Ns = Ns::known(0);
const RS: Ns = Ns::known(1);
const XHTML: Ns = Ns::known(2);

/// What relation types of this version begin with; those of later versions continue with `terms/`.
const RELATIONS: &str = "http://www.openarchives.org/rs/";
const LATER_RELATIONS: &str = "http://www.openarchives.org/rs/terms/";

/// A document of 0.1, or a dump by itself.
pub(crate) fn recognises(head: &AnswerHead<'_>) -> bool {
    let unpacked = unpacked(head.bytes);
    is_dump(&unpacked) || is_document(&unpacked)
}

/// Whether an answer begins as a dump does: a ZIP or WARC file, packed perhaps.
pub(crate) fn is_dump_begin(begin: &[u8]) -> bool {
    is_dump(&unpacked(begin))
}

fn is_dump(begin: &[u8]) -> bool {
    begin.starts_with(ZIP) || begin.starts_with(WARC)
}

/// The begin of what is in a file packed with gzip; any other as it is.
pub(crate) fn unpacked(begin: &[u8]) -> Cow<'_, [u8]> {
    if !begin.starts_with(&Unpacker::MAGIC) {
        return begin.into();
    }
    let mut unpacked = Vec::new();
    // It is cut: what was unpacked before that counts.
    let _ = Unpacker::new(u64::MAX).unpack(begin, &mut |bytes| {
        unpacked.extend_from_slice(bytes);
        unpacked.len() < BYTES_MAX
    });
    unpacked.into()
}

/// Whether XML that may be cut has a mark of 0.1 and none of a later version.
fn is_document(begin: &[u8]) -> bool {
    let mut reader = Reader::new(NAMESPACES);
    reader.guess_encoding();
    reader.push(begin);
    let (mut depth, mut marked) = (0, false);
    loop {
        match reader.next() {
            Ok(Token::Start(element)) => {
                let name = element.local();
                if depth == 0 && !matches!(name, "urlset" | "sitemapindex" | "iq" | "message") {
                    return false;
                }
                if element.ns() == RS && matches!(element.local(), "md" | "ln") {
                    return false;
                }
                depth += 1;
                marked |= is_mark(&element);
            }
            Ok(Token::NeedInput | Token::Done) | Err(_) => return marked,
            Ok(_) => {}
        }
    }
}

/// The first document that a plain index names: an index has no marks of 0.1 of its own if it gives no time and no
/// links. `None` for other documents.
fn first_of_plain_index(begin: &[u8]) -> Option<String> {
    let mut reader = Reader::new(NAMESPACES);
    reader.guess_encoding();
    reader.push(begin);
    let (mut depth, mut first) = (0, None::<String>);
    loop {
        match reader.next() {
            Ok(Token::Start(element)) => {
                if depth == 0 && (element.ns(), element.local()) != (SITEMAP, "sitemapindex")
                    || element.ns() == RS
                {
                    return None;
                }
                if (depth, element.ns(), element.local()) == (2, SITEMAP, "loc") {
                    first = Some(String::new());
                }
                depth += 1;
            }
            Ok(Token::Text(text)) => {
                if let Some(first) = first.as_mut().filter(|_| depth == 3) {
                    first.push_str(text);
                }
            }
            Ok(Token::End) if first.is_some() => break,
            Ok(Token::End) => depth -= 1,
            Ok(Token::Markup(_)) => {}
            Ok(Token::NeedInput | Token::Done) | Err(_) => return None,
        }
    }
    first.map(|first| trimmed(&first).to_owned())
}

/// Whether the Sitemaps below a plain index are of 0.1, by the first. What cannot be requested shows nothing.
///
/// # Errors
/// The user wants to stop.
pub(crate) fn leads_to_0_1(
    requests: &Requests<'_>,
    options: &SyncOptions,
    index: &str,
    begin: &[u8],
) -> Result<bool, Error> {
    let mut admission = Admission::new(index, &options.allow_hosts, options.allow_downgrade);
    let mut next = first_of_plain_index(&unpacked(begin));
    for _ in 0..INDEXES_MAX {
        let Some(url) = next.take().filter(|url| admission.check(url).is_ok()) else { break };
        let opened = requests.open(&url, HEAD_BYTES, |answer| {
            let bytes = utf8_begin(answer.map_or(&[][..], |begun| &begun.begin));
            let is_old = recognises(&AnswerHead { bytes: &bytes });
            (is_old, first_of_plain_index(&unpacked(&bytes)))
        });
        match opened {
            Ok((true, _)) => return Ok(true),
            Ok((false, below)) => next = below,
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            Err(_) => break,
        }
    }
    Ok(false)
}

fn is_mark(element: &Element<'_>) -> bool {
    const ELEMENTS: [&str; 5] = ["fixity", "size", "mimetype", "contentencoding", "path"];
    const ATTRIBUTES: [&str; 3] = ["type", "protocol", "pubsubnode"];
    if element.ns() == RS {
        return ELEMENTS.contains(&element.local());
    }
    if (element.ns(), element.local()) == (SITEMAP, "expires") {
        return true;
    }
    if element.attributes().any(|it| it.ns() == RS && ATTRIBUTES.contains(&it.local())) {
        return true;
    }
    if element.ns() != XHTML {
        return false;
    }
    match element.local() {
        "meta" => element.attribute("name").is_some_and(|name| is_modified(&name)),
        "link" => element.attribute("rel").is_some_and(|rel| {
            rel.split_ascii_whitespace().any(|token| {
                token.eq_ignore_ascii_case(SUBJECT)
                    || token.starts_with(RELATIONS) && !token.starts_with(LATER_RELATIONS)
            })
        }),
        _ => false,
    }
}

/// Whether it is the name of the time of a document.
fn is_modified(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("DCTERMS.modified")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn recognised(bytes: &[u8]) -> bool {
        recognises(&AnswerHead { bytes })
    }

    #[test]
    fn marks_of_this_version_make_a_document_of_it() {
        let document = |root: &str, inside: &str| {
            format!(
                "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
                 xmlns:r='http://www.openarchives.org/rs/terms/' xmlns:x='http://www.w3.org/1999/xhtml' {root}>{inside}"
            )
        };
        for (root, inside) in [
            ("r:type='changeset'", ""),
            ("", "<x:meta name='DCTERMS.modified' content='2026-01-01'/>"),
            ("", "<x:link rel='current http://www.openarchives.org/rs/changeset' href='/c'/>"),
            ("", "<x:link r:protocol='http://e.example/p' href='/c'/>"),
            ("", "<url><loc>http://h/</loc><lastmod r:type='created'>2026-01-01</lastmod>"),
            ("", "<url><loc>http://h/</loc><r:fixity type='md5'>"),
            ("", "<url><x:link rel='DCTERMS.subject' href='http://h/c'/>"),
        ] {
            let text = document(root, inside);
            assert!(recognised(text.as_bytes()), "{root} {inside}");
            let (_, text) = text.split_once("?>").unwrap();
            for stanza in ["iq", "message"] {
                let text = format!("<{stanza} xmlns='jabber:client'><pubsub>{text}");
                assert!(recognised(text.as_bytes()), "{text}");
            }
        }
        for inside in [
            "<url><loc>http://h/</loc><lastmod>2026-01-01</lastmod></url>",
            "<url><x:link rel='alternate' hreflang='de' href='/de'/></url>",
            "<x:link rel='http://www.openarchives.org/rs/terms/patch' href='/p'/>",
            "<r:md capability='resourcelist'/><x:meta name='DCTERMS.modified' content='2026'/>",
            "<x:meta name='DCTERMS.modified' content='2026'/><r:md capability='resourcelist'/>",
            "<!-- rs:fixity DCTERMS.modified -->",
        ] {
            assert!(!recognised(document("", inside).as_bytes()), "{inside}");
        }
        assert!(!recognised(b"<iq xmlns='jabber:client'><pubsub><urlset/></pubsub></iq>"));
        for other in [&b""[..], b"{}", b"<html xmlns='http://www.w3.org/1999/xhtml'><meta name='DCTERMS.modified' content='1'/>"] {
            assert!(!recognised(other), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn dumps_and_packed_documents_are_recognised_by_their_begin() {
        assert!(recognised(b"PK\x03\x04 and so on"));
        assert!(recognised(b"WARC/1.1\r\n"));
        for (text, is_known) in [
            ("WARC/1.0\r\nWARC-Type: warcinfo\r\n", true),
            ("<urlset xmlns:rs='http://www.openarchives.org/rs/terms/' rs:type='changeset'>", true),
            ("something else", false),
        ] {
            let mut packed =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            packed.write_all(text.as_bytes()).unwrap();
            let packed = packed.finish().unwrap();
            assert_eq!(recognised(&packed), is_known, "{text}");
        }
    }

    #[test]
    fn what_is_packed_well_is_recognised() {
        let entry =
            "<url><loc>http://h/x</loc><lastmod r:type='created'>2026-01-01</lastmod></url>";
        let text = format!(
            "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:r='http://www.openarchives.org/rs/terms/'>{}",
            entry.repeat(20_000)
        );
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(text.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        assert!(recognised(&packed[..packed.len().min(4_096)]));
    }
}
