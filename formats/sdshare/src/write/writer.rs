//! Writing a feed directly to bytes, in pieces that the caller can send.

use crate::feed::time::write_stamp;
use crate::{CATEGORIES, Entry, Feed, Link, Relation};
use abreast_webtypes::Timestamp;
use abreast_webtypes::xml::write_escaped;

/// Appends the start of a feed, up to its first entry.
///
/// The id, the title, the time and the author are always written, since Atom requires them
/// [rfc4287 §4.1.1]; a feed without time gets a time of 1970.
pub fn write_feed(out: &mut Vec<u8>, feed: &Feed) {
    out.extend_from_slice(
        b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
          <feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sdshare=\"http://www.sdshare.org/2012/core/\">\n",
    );
    element(out, "  <title>", &feed.title, "</title>\n");
    if let Some(subtitle) = &feed.subtitle {
        element(out, "  <subtitle>", subtitle, "</subtitle>\n");
    }
    element(out, "  <id>", &feed.id, "</id>\n");
    time(out, "  <updated>", feed.updated);
    let author = feed.author.as_deref().unwrap_or_default();
    element(out, "  <author><name>", author, "</name></author>\n");
    for link in &feed.links {
        write_link(out, "  ", &link.relation, link);
    }
    if feed.has_files {
        write_category(out, "  ", "files");
    }
}

/// Appends an entry.
///
/// Each link that SDShare requires to be repeated with `alternate` is repeated, with the same type
/// and address. Atom allows one `alternate` of each type and language in an entry [rfc4287 §4.1.2],
/// so if two links have the same type and language, only the first is repeated.
///
/// # Examples
/// ```
/// use abreast_sdshare::{Entry, write_entry};
///
/// let entry = Entry {
///     title: "Bust of a man (lost)".to_owned(),
///     resources: vec!["https://museum.example/objects/1042".to_owned()],
///     is_deleted: true,
///     ..Entry::default()
/// };
/// let mut out = Vec::new();
/// write_entry(&mut out, &entry);
/// let xml = String::from_utf8(out)?;
/// assert!(xml.contains(r#"<category scheme="urn:abreast:sdshare" term="deleted"/>"#));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
pub fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(b"  <entry>\n");
    element(out, "    <title>", &entry.title, "</title>\n");
    element(out, "    <id>", &entry.id, "</id>\n");
    time(out, "    <updated>", entry.updated);
    if let Some(author) = &entry.author {
        element(out, "    <author><name>", author, "</name></author>\n");
    }
    if let Some(summary) = &entry.summary {
        element(out, "    <summary>", summary, "</summary>\n");
    }
    for (number, link) in entry.links.iter().enumerate() {
        let same =
            |other: &Link| other.media_type == link.media_type && other.hreflang == link.hreflang;
        let before = &entry.links[..number];
        if link.relation == Relation::Alternate {
            // An `alternate` that repeats another link is written with that link.
            let repeats = |other: &Link| other.relation.needs_alternate() && same(other);
            if entry.links.iter().any(repeats) {
                continue;
            }
        }
        write_link(out, "    ", &link.relation, link);
        let repeated = |other: &Link| other.relation.needs_alternate() && same(other);
        if link.relation.needs_alternate() && !before.iter().any(repeated) {
            write_link(out, "    ", &Relation::Alternate, link);
        }
    }
    if entry.is_deleted {
        write_category(out, "    ", "deleted");
    }
    for resource in &entry.resources {
        element(out, "    <sdshare:resource>", resource, "</sdshare:resource>\n");
    }
    out.extend_from_slice(b"  </entry>\n");
}

/// Appends the end of the feed.
pub fn write_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"</feed>\n");
}

fn write_category(out: &mut Vec<u8>, indent: &str, term: &str) {
    for part in [indent, "<category scheme=\"", CATEGORIES, "\" term=\"", term, "\"/>\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn element(out: &mut Vec<u8>, open: &str, text: &str, close: &str) {
    out.extend_from_slice(open.as_bytes());
    write_escaped(out, text);
    out.extend_from_slice(close.as_bytes());
}

fn time(out: &mut Vec<u8>, open: &str, time: Option<Timestamp>) {
    out.extend_from_slice(open.as_bytes());
    write_stamp(out, time.unwrap_or_default());
    out.extend_from_slice(b"</updated>\n");
}

fn write_link(out: &mut Vec<u8>, indent: &str, relation: &Relation, link: &Link) {
    let (namespace, name) = relation.parts();
    out.extend_from_slice(indent.as_bytes());
    out.extend_from_slice(b"<link rel=\"");
    out.extend_from_slice(namespace.as_bytes());
    write_escaped(out, name);
    for (attribute, value) in [("type", &link.media_type), ("hreflang", &link.hreflang)] {
        if let Some(value) = value {
            out.extend_from_slice(b"\" ");
            out.extend_from_slice(attribute.as_bytes());
            out.extend_from_slice(b"=\"");
            write_escaped(out, value);
        }
    }
    out.extend_from_slice(b"\" href=\"");
    write_escaped(out, &link.href);
    out.extend_from_slice(b"\"/>\n");
}
