//! Writing a document directly to bytes, with attributes in the order of the specification's table
//! [rs-core §7].

use super::{Entry, Head, Ln, Root};
use crate::sitemap::{XMLNS_RS, close_entry, datetime, number, open_root, text, token};
use abreast_webtypes::Digests;
use abreast_webtypes::xml::write_escaped;

/// Appends the start of a document, up to its first entry.
///
/// A head without capability makes a plain Sitemap without `rs:md`, which may still have links.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, write_end, write_entry, write_head};
///
/// // A long list is written entry by entry, and sent in pieces.
/// let mut out = Vec::new();
/// let head = Head { capability: Some(Capability::ResourceList), ..Head::default() };
/// write_head(&mut out, &head);
/// for number in 1..=3 {
///     let loc = format!("https://repo.example/item/{number}");
///     write_entry(&mut out, Root::UrlSet, &Entry { loc, ..Entry::default() });
/// }
/// write_end(&mut out, Root::UrlSet);
/// assert!(out.ends_with(b"<loc>https://repo.example/item/3</loc>\n  </url>\n</urlset>\n"));
/// ```
pub fn write_head(out: &mut Vec<u8>, head: &Head) {
    open_root(out, head.root, &[XMLNS_RS]);
    for link in &head.links {
        write_link(out, b"  ", link);
    }
    if let Some(capability) = head.capability {
        out.extend_from_slice(b"  <rs:md");
        datetime(out, b" at=\"", head.at);
        token(out, b" capability=\"", capability.token());
        datetime(out, b" completed=\"", head.completed);
        datetime(out, b" from=\"", head.from);
        datetime(out, b" until=\"", head.until);
        out.extend_from_slice(b"/>\n");
    }
}

/// Appends one entry, as `url` or `sitemap` according to the root.
pub fn write_entry(out: &mut Vec<u8>, root: Root, entry: &Entry) {
    open_entry(out, root, entry);
    let start = out.len();
    out.extend_from_slice(b"    <rs:md");
    let empty = out.len();
    datetime(out, b" at=\"", entry.at);
    if let Some(capability) = entry.capability {
        token(out, b" capability=\"", capability.token());
    }
    if let Some(change) = entry.change {
        token(out, b" change=\"", change.token());
    }
    datetime(out, b" completed=\"", entry.completed);
    datetime(out, b" datetime=\"", entry.datetime);
    text(out, b" encoding=\"", entry.encoding.as_deref());
    datetime(out, b" from=\"", entry.from);
    hash(out, &entry.digests);
    length(out, entry.length);
    text(out, b" path=\"", entry.path.as_deref());
    text(out, b" type=\"", entry.media_type.as_deref());
    datetime(out, b" until=\"", entry.until);
    if out.len() == empty {
        out.truncate(start);
    } else {
        out.extend_from_slice(b"/>\n");
    }
    for link in &entry.links {
        write_link(out, b"    ", link);
    }
    close_entry(out, root);
}

/// Appends the start of a Sitemap without ResourceSync elements, for crawlers that reject unknown
/// ones.
pub fn write_plain_head(out: &mut Vec<u8>, root: Root) {
    open_root(out, root, &[]);
}

/// Appends one entry with `loc` and `lastmod` only; the document also ends with
/// [`write_end`](super::write_end).
///
/// # Examples
/// ```
/// use abreast_resourcesync::plain_sitemap::{Entry, Root, write_plain_entry};
///
/// let mut out = Vec::new();
/// let loc = "https://museum.example/objects/7".to_owned();
/// let entry = Entry { loc, length: Some(512), ..Entry::default() };
/// write_plain_entry(&mut out, Root::UrlSet, &entry);
/// assert_eq!(out, b"  <url>\n    <loc>https://museum.example/objects/7</loc>\n  </url>\n");
/// ```
pub fn write_plain_entry(out: &mut Vec<u8>, root: Root, entry: &Entry) {
    open_entry(out, root, entry);
    close_entry(out, root);
}

/// Appends the start of an entry, up to the elements of a plain Sitemap.
fn open_entry(out: &mut Vec<u8>, root: Root, entry: &Entry) {
    crate::sitemap::open_entry(out, root);
    out.extend_from_slice(b"    <loc>");
    write_escaped(out, &entry.loc);
    out.extend_from_slice(b"</loc>\n");
    if let Some(lastmod) = entry.lastmod {
        out.extend_from_slice(b"    <lastmod>");
        lastmod.instant.write_to(out);
        out.extend_from_slice(b"</lastmod>\n");
    }
}

fn write_link(out: &mut Vec<u8>, indent: &[u8], link: &Ln) {
    out.extend_from_slice(indent);
    out.extend_from_slice(b"<rs:ln");
    text(out, b" encoding=\"", link.encoding.as_deref());
    hash(out, &link.digests);
    text(out, b" href=\"", Some(&link.href));
    length(out, link.length);
    datetime(out, b" modified=\"", link.modified);
    text(out, b" path=\"", link.path.as_deref());
    if let Some(priority) = link.pri {
        out.extend_from_slice(b" pri=\"");
        number(out, u64::from(priority));
        out.push(b'"');
    }
    text(out, b" rel=\"", Some(&link.rel));
    text(out, b" type=\"", link.media_type.as_deref());
    out.extend_from_slice(b"/>\n");
}

fn length(out: &mut Vec<u8>, value: Option<u64>) {
    if let Some(value) = value {
        out.extend_from_slice(b" length=\"");
        number(out, value);
        out.push(b'"');
    }
}

fn hash(out: &mut Vec<u8>, digests: &Digests) {
    if digests.strongest().is_some() {
        out.extend_from_slice(b" hash=\"");
        digests.write_to(out);
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_metadata_has_no_empty_element() {
        let mut out = Vec::new();
        write_entry(
            &mut out,
            Root::UrlSet,
            &Entry { loc: "http://example.org/a".to_owned(), ..Entry::default() },
        );
        assert_eq!(out, b"  <url>\n    <loc>http://example.org/a</loc>\n  </url>\n");
    }
}
