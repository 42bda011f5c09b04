//! The version of a document, by its first bytes.
//!
//! A Sitemap has version 0.1 if it has an element or attribute that only 0.1 defines, and none of
//! later versions. A plain index has the version of its first Sitemap. The reader of 1.1 reads any
//! other Sitemap. A change set may be inside a stanza of XMPP, as in an example of the
//! specification, which the lenient reader unwraps [rs-0.1 §5.2.1].

use super::SUBJECT;
use crate::sitemap::{RS_NAMESPACE, SITEMAP_NAMESPACE, XHTML_NAMESPACE, trimmed};
use abreast_webtypes::xml::{Element, Ns, Reader, Token};

/// Most indexes above the Sitemap that shows the version.
pub const INDEXES_MAX: usize = 2;

const NAMESPACES: &[&str] = &[SITEMAP_NAMESPACE, RS_NAMESPACE, XHTML_NAMESPACE];
const SITEMAP: Ns = Ns::known(0);
const RS: Ns = Ns::known(1);
const XHTML: Ns = Ns::known(2);

/// The prefix of relation types of this version; in later versions `terms/` follows.
const RELATIONS: &str = "http://www.openarchives.org/rs/";
const LATER_RELATIONS: &str = "http://www.openarchives.org/rs/terms/";

/// Whether XML, which may be truncated, has an element or attribute of 0.1 and none of a later
/// version.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v0_1::has_marks;
///
/// let begin = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
///   xmlns:rs="http://www.openarchives.org/rs/terms/">
///   <url><loc>https://repo.example/item/1</loc><rs:size>40960</rs:size>"#;
/// assert!(has_marks(begin));
/// ```
pub fn has_marks(begin: &[u8]) -> bool {
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

/// The first `loc` of a plain index. An index that has neither times nor links does not show its
/// version. `None` for other documents.
pub fn first_of_plain_index(begin: &[u8]) -> Option<String> {
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

/// Whether this `meta` is the document's last modification.
fn is_modified(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("DCTERMS.modified")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(has_marks(text.as_bytes()), "{root} {inside}");
            let (_, text) = text.split_once("?>").unwrap();
            for stanza in ["iq", "message"] {
                let text = format!("<{stanza} xmlns='jabber:client'><pubsub>{text}");
                assert!(has_marks(text.as_bytes()), "{text}");
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
            assert!(!has_marks(document("", inside).as_bytes()), "{inside}");
        }
        assert!(!has_marks(b"<iq xmlns='jabber:client'><pubsub><urlset/></pubsub></iq>"));
        for other in [&b""[..], b"{}", b"<html xmlns='http://www.w3.org/1999/xhtml'><meta name='DCTERMS.modified' content='1'/>"] {
            assert!(!has_marks(other), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn a_plain_index_names_its_first_document() {
        let index = |inside: &str| {
            format!(
                "<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
                 xmlns:r='http://www.openarchives.org/rs/terms/'>{inside}"
            )
        };
        let first = |inside: &str| first_of_plain_index(index(inside).as_bytes());
        let (one, two) = ("<sitemap><loc> http://h/1 </loc>", "<sitemap><loc>http://h/2</loc>");
        assert_eq!(first(&format!("{one}</sitemap>{two}")).as_deref(), Some("http://h/1"));
        assert_eq!(first("<sitemap><lastmod>2026</lastmod><loc>h:a</loc>").as_deref(), Some("h:a"));
        for other in [
            "",
            "<sitemap><loc>http://h/1",
            "<r:md capability='resourcelist'/><sitemap><loc>h:a</loc>",
        ] {
            assert_eq!(first(other), None, "{other}");
        }
        assert_eq!(first_of_plain_index(b"<sitemapindex><sitemap><loc>h:a</loc>"), None);
        let set = index(two).replace("sitemapindex", "urlset");
        assert_eq!(first_of_plain_index(set.as_bytes()), None);
    }
}
