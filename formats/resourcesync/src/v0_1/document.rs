//! Documents of ResourceSync 0.1: Sitemaps, their indexes, change sets and the manifests of dumps.

use super::parts::{Entry, Head};
use super::version::V0_1;
use super::write::{write_entry, write_head};
use super::{Error, SPEC_MAX_ENTRIES, write_end};
use crate::sitemap::read_all;

/// A whole document in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The head of the document.
    pub head: Head,
    /// Entries in the order of the document, for which 0.1 does not have a rule.
    pub entries: Vec<Entry>,
}

impl Document {
    /// Reads a document in memory.
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
    ///
    /// # Errors
    /// The bytes are not such a document: see `next` of [`Parser`](super::Parser).
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        let (head, entries) = read_all::<V0_1>(bytes)?;
        Ok(Self { head, entries })
    }

    /// The document as bytes: XML in UTF-8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_head(&mut out, &self.head);
        for entry in &self.entries {
            write_entry(&mut out, self.head.root, entry);
        }
        write_end(&mut out, self.head.root);
        out
    }

    /// Whether there are more entries than a Sitemap may have [rs-0.1 §3.2].
    pub fn over_spec_limit(&self) -> bool {
        self.entries.len() as u64 > SPEC_MAX_ENTRIES
    }
}
