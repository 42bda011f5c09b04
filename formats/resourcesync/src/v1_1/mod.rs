//! ResourceSync 1.1 (ANSI/NISO Z39.99-2017); reads 1.0 and the 0.1 spelling of resource metadata
//! too.

mod attributes;
mod capability;
mod notification;
mod parts;
mod version;
mod write;

pub use crate::sitemap::{
    Change, Finding, Limits, RS_NAMESPACE, ReadError, Root, SITEMAP_NAMESPACE, SPEC_MAX_ENTRIES,
    Step, Tolerance, write_end,
};
pub use abreast_webtypes::SyntaxError as Error;
pub use capability::Capability;
pub use notification::NotificationFault;
pub use parts::{Entry, Head, Ln};
pub use version::V1_1;
pub use write::{write_entry, write_head, write_plain_entry, write_plain_head};

/// A whole document of this version in memory [rs-core §7].
///
/// # Examples
/// ```
/// use abreast_resourcesync::v1_1::{Capability, Document, Entry};
///
/// let list = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
///   xmlns:rs="http://www.openarchives.org/rs/terms/">
///   <rs:md capability="resourcelist" at="2026-03-01T00:00:00Z"/>
///   <url><loc>https://repo.example/item/1.pdf</loc>
///     <rs:md length="40960" type="application/pdf"/></url>
/// </urlset>"#;
/// let mut document = Document::from_slice(list)?;
/// assert_eq!(document.head.capability, Some(Capability::ResourceList));
/// assert_eq!(document.entries[0].length, Some(40_960));
///
/// let loc = "https://repo.example/search?q=maps&page=2".to_owned();
/// document.entries.push(Entry { loc, ..Entry::default() });
/// let xml = String::from_utf8(document.to_bytes()).expect("documents are UTF-8");
/// assert!(xml.contains("<loc>https://repo.example/search?q=maps&amp;page=2</loc>"));
/// # Ok::<(), abreast_resourcesync::v1_1::Error>(())
/// ```
pub type Document = crate::sitemap::Document<V1_1>;
/// Reads a document of this version from chunks of any size.
pub type Parser = crate::sitemap::Parser<V1_1>;
/// Reads a document of this version from a file or a pipe.
pub type Reader<R> = crate::sitemap::Reader<R, V1_1>;
