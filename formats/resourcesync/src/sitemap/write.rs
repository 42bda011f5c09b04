//! Parts of documents that all versions have.

use super::Root;
use abreast_webtypes::W3cDatetime;
use abreast_webtypes::xml::write_escaped;

/// Declaration of ResourceSync's namespace.
pub(crate) const XMLNS_RS: &[u8] = b" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// Appends the start of a document. Each attribute must start with a blank.
pub(crate) fn open_root(out: &mut Vec<u8>, root: Root, attributes: &[&[u8]]) {
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    out.extend_from_slice(root.element().as_bytes());
    out.extend_from_slice(b" xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"");
    for attribute in attributes {
        out.extend_from_slice(attribute);
    }
    out.extend_from_slice(b">\n");
}

/// Appends the end of the document.
pub fn write_end(out: &mut Vec<u8>, root: Root) {
    out.extend_from_slice(b"</");
    out.extend_from_slice(root.element().as_bytes());
    out.extend_from_slice(b">\n");
}

/// Appends the start tag of an entry.
pub(crate) fn open_entry(out: &mut Vec<u8>, root: Root) {
    out.extend_from_slice(match root {
        Root::UrlSet => b"  <url>\n",
        Root::SitemapIndex => b"  <sitemap>\n",
    });
}

/// Appends the end tag of an entry.
pub(crate) fn close_entry(out: &mut Vec<u8>, root: Root) {
    out.extend_from_slice(match root {
        Root::UrlSet => b"  </url>\n",
        Root::SitemapIndex => b"  </sitemap>\n",
    });
}

/// Appends an attribute whose value needs no escapes.
pub(crate) fn token(out: &mut Vec<u8>, name: &[u8], token: &str) {
    out.extend_from_slice(name);
    out.extend_from_slice(token.as_bytes());
    out.push(b'"');
}

/// Appends an attribute; nothing for an absent value.
pub(crate) fn datetime(out: &mut Vec<u8>, name: &[u8], value: Option<W3cDatetime>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        value.instant.write_to(out);
        out.push(b'"');
    }
}

/// Appends an attribute; nothing for an absent value.
pub(crate) fn text(out: &mut Vec<u8>, name: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        write_escaped(out, value);
        out.push(b'"');
    }
}

/// Appends a number.
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
