//! Writing a document directly to bytes, with elements in the order of the specification's tables
//! [rs-0.1 §3.1].

use super::{Change, Entry, Head, Link, Meta, Root};
use crate::sitemap::{XMLNS_RS, close_entry, number, open_entry, open_root, text, token};
use abreast_webtypes::Algorithm;
use abreast_webtypes::xml::write_escaped;

const XMLNS_XHTML: &[u8] = b" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\"";
const CHANGE_SET_TYPE: &[u8] = b" rs:type=\"changeset\"";

/// Appends the document up to the first entry.
pub fn write_head(out: &mut Vec<u8>, head: &Head) {
    let kind = if head.change_set { CHANGE_SET_TYPE } else { b"" };
    open_root(out, head.root, &[XMLNS_RS, XMLNS_XHTML, kind]);
    if let Some(modified) = head.modified {
        out.extend_from_slice(b"  <xhtml:meta name=\"DCTERMS.modified\" content=\"");
        modified.instant.write_to(out);
        out.extend_from_slice(b"\"/>\n");
    }
    for link in &head.links {
        write_link(out, b"  ", link);
    }
    for meta in &head.metas {
        write_meta(out, b"  ", meta);
    }
}

/// Appends one entry, as `url` or `sitemap` according to the root.
///
/// A deletion has `expires`, all other entries `lastmod`. Only the digests MD5, SHA-1 and SHA-256
/// are written.
pub fn write_entry(out: &mut Vec<u8>, root: Root, entry: &Entry) {
    open_entry(out, root);
    out.extend_from_slice(b"    <loc");
    text(out, b" rs:protocol=\"", entry.protocol.as_deref());
    out.push(b'>');
    write_escaped(out, &entry.loc);
    out.extend_from_slice(b"</loc>\n");
    write_time(out, entry);
    for algorithm in [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256] {
        if entry.digests.bytes_of(algorithm).is_some() {
            token(out, b"    <rs:fixity type=\"", algorithm.token());
            out.push(b'>');
            entry.digests.write_base64_to(algorithm, out);
            out.extend_from_slice(b"</rs:fixity>\n");
        }
    }
    if let Some(size) = entry.size {
        out.extend_from_slice(b"    <rs:size>");
        number(out, size);
        out.extend_from_slice(b"</rs:size>\n");
    }
    element(out, "rs:mimetype", entry.media_type.as_deref());
    element(out, "rs:contentencoding", entry.encoding.as_deref());
    element(out, "rs:path", entry.path.as_deref().map(|path| path.trim_start_matches('/')));
    for link in &entry.links {
        write_link(out, b"    ", link);
    }
    for meta in &entry.metas {
        write_meta(out, b"    ", meta);
    }
    close_entry(out, root);
}

fn write_time(out: &mut Vec<u8>, entry: &Entry) {
    let Some(time) = entry.time else { return };
    let (start, end): (&[u8], &[u8]) = match entry.change {
        None => (b"    <lastmod>", b"</lastmod>\n"),
        Some(Change::Created) => (b"    <lastmod rs:type=\"created\">", b"</lastmod>\n"),
        Some(Change::Updated) => (b"    <lastmod rs:type=\"updated\">", b"</lastmod>\n"),
        Some(Change::Deleted) => (b"    <expires>", b"</expires>\n"),
    };
    out.extend_from_slice(start);
    time.instant.write_to(out);
    out.extend_from_slice(end);
}

fn write_link(out: &mut Vec<u8>, indent: &[u8], link: &Link) {
    out.extend_from_slice(indent);
    out.extend_from_slice(b"<xhtml:link");
    text(out, b" rel=\"", Some(link.rel.as_str()).filter(|rel| !rel.is_empty()));
    text(out, b" href=\"", Some(&link.href));
    text(out, b" rs:protocol=\"", link.protocol.as_deref());
    text(out, b" rs:pubsubnode=\"", link.pubsub_node.as_deref());
    text(out, b" title=\"", link.title.as_deref());
    text(out, b" type=\"", link.media_type.as_deref());
    out.extend_from_slice(b"/>\n");
}

fn write_meta(out: &mut Vec<u8>, indent: &[u8], meta: &Meta) {
    out.extend_from_slice(indent);
    out.extend_from_slice(b"<xhtml:meta");
    text(out, b" name=\"", Some(&meta.name));
    text(out, b" content=\"", Some(&meta.content));
    out.extend_from_slice(b"/>\n");
}

/// Appends an element with this text; nothing for an absent text.
fn element(out: &mut Vec<u8>, name: &str, content: Option<&str>) {
    let Some(content) = content else { return };
    out.extend_from_slice(b"    <");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
    write_escaped(out, content);
    out.extend_from_slice(b"</");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b">\n");
}
