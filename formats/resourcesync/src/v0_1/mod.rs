//! ResourceSync 0.1 (alpha draft of August 2012).
//!
//! [`Parser`], [`Reader`] and the writers work as in [`v1_1`](crate::v1_1).

mod attributes;
mod convert;
mod discovery;
mod parts;
mod recognise;
mod relations;
mod version;
mod write;

pub use crate::sitemap::{
    Change, Finding, Limits, ReadError, Root, SPEC_MAX_ENTRIES, Step, Tolerance, write_end,
};
pub use abreast_webtypes::SyntaxError as Error;
pub use convert::MEDIA_TYPES;
pub use discovery::{LinkKind, links_in_host_meta, links_in_html};
pub use parts::{Entry, Head, Link, Meta};
pub use recognise::{INDEXES_MAX, first_of_plain_index, has_marks};
pub use relations::{
    CALLBACK_PROTOCOL, CHANGE_SET, DUMP, MIRROR, OAI_PMH_PROTOCOL, PARTIAL, SITEMAP, SUBJECT,
    SUBJECT_NAME, XMPP_PROTOCOL,
};
pub use version::{SPEC_MAX_BYTES, V0_1};
pub use write::{write_entry, write_head};

/// A whole document of this version in memory: a Sitemap, an index, a change set or the manifest of
/// a dump.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v0_1::{Change, Document};
///
/// let change_set = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
///   xmlns:rs="http://www.openarchives.org/rs/terms/" rs:type="changeset">
///   <url><loc>https://repo.example/item/1</loc>
///     <lastmod rs:type="created">2026-03-01T09:00:00Z</lastmod></url>
///   <url><loc>https://repo.example/item/2</loc><expires>2026-03-01T09:05:00Z</expires></url>
/// </urlset>"#;
/// let document = Document::from_slice(change_set)?;
/// assert!(document.head.change_set);
/// let changes: Vec<_> = document.entries.iter().map(|entry| entry.change).collect();
/// assert_eq!(changes, [Some(Change::Created), Some(Change::Deleted)]);
/// # Ok::<(), abreast_resourcesync::v0_1::Error>(())
/// ```
pub type Document = crate::sitemap::Document<V0_1>;
/// Reads a document of this version from chunks of any size.
pub type Parser = crate::sitemap::Parser<V0_1>;
/// Reads a document of this version from a file or a pipe.
pub type Reader<R> = crate::sitemap::Reader<R, V0_1>;
