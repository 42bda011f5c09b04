//! ResourceSync documents as text, for Sources that a test writes by hand.

use crate::bytes::digest::md5_hex;
use std::fmt::Write as _;

/// The instant of the first documents.
pub const BEGIN: &str = "2026-01-01T00:00:00Z";

/// A document: its root element, the attributes of its `rs:md`, and its entries as XML.
pub fn document(root: &str, attributes: &str, entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n<rs:md {attributes}/>\n{entries}</{root}>\n"
    )
}

/// A resource as an entry with length and MD5 digest; `more` are further attributes of its `rs:md`.
pub fn entry(url: &str, body: &[u8], more: &str) -> String {
    let (digest, length) = (md5_hex(body), body.len());
    let space = if more.is_empty() { "" } else { " " };
    format!(
        "<url><loc>{url}</loc><lastmod>2025-06-01T00:00:00Z</lastmod>\
         <rs:md hash=\"md5:{digest}\" length=\"{length}\"{space}{more}/></url>\n"
    )
}

/// A Capability List that offers documents: capability and URL of each.
pub fn capability_list(
    documents: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
) -> String {
    let mut entries = String::new();
    for (capability, url) in documents {
        let (capability, url) = (capability.as_ref(), url.as_ref());
        let _ =
            writeln!(entries, "<url><loc>{url}</loc><rs:md capability=\"{capability}\"/></url>");
    }
    document("urlset", "capability=\"capabilitylist\"", &entries)
}
