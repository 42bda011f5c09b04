//! Documents as a whole, in memory [rs-core §7].

use super::parts::{Entry, Head};
use super::version::V1_1;
use super::write::{write_entry, write_head};
use super::{Error, SPEC_MAX_ENTRIES, write_end};
use crate::sitemap::read_all;

/// A whole document of ResourceSync 1.1 in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The head of the document.
    pub head: Head,
    /// Entries in the order of the document.
    pub entries: Vec<Entry>,
}

impl Document {
    /// Reads a document in memory.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::{Capability, Document};
    ///
    /// let list = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    ///   xmlns:rs="http://www.openarchives.org/rs/terms/">
    ///   <rs:md capability="resourcelist" at="2026-03-01T00:00:00Z"/>
    ///   <url><loc>https://repo.example/item/1.pdf</loc>
    ///     <rs:md length="40960" type="application/pdf"/></url>
    /// </urlset>"#;
    /// let document = Document::from_slice(list)?;
    /// assert_eq!(document.head.capability, Some(Capability::ResourceList));
    /// assert_eq!(document.entries[0].length, Some(40_960));
    /// # Ok::<(), abreast_resourcesync::v1_1::Error>(())
    /// ```
    ///
    /// # Errors
    /// The bytes are not such a document: see `next` of [`Parser`](super::Parser).
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        let (head, entries) = read_all::<V1_1>(bytes)?;
        Ok(Self { head, entries })
    }

    /// The document as bytes: XML in UTF-8, with attributes in the order of the specification's table.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v1_1::{Capability, Change, Document, Entry, Head};
    ///
    /// let document = Document {
    ///     head: Head { capability: Some(Capability::ChangeList), ..Head::default() },
    ///     entries: vec![Entry {
    ///         loc: "https://repo.example/search?q=maps&page=2".to_owned(),
    ///         change: Some(Change::Created),
    ///         ..Entry::default()
    ///     }],
    /// };
    /// let xml = String::from_utf8(document.to_bytes())?;
    /// assert!(xml.contains("<loc>https://repo.example/search?q=maps&amp;page=2</loc>"));
    /// assert!(xml.contains("<rs:md change=\"created\"/>"));
    /// # Ok::<(), std::string::FromUtf8Error>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write_head(&mut out, &self.head);
        for entry in &self.entries {
            write_entry(&mut out, self.head.root, entry);
        }
        write_end(&mut out, self.head.root);
        out
    }

    /// Whether there are more entries than a Sitemap may have [rs-core §7].
    pub fn over_spec_limit(&self) -> bool {
        self.entries.len() as u64 > SPEC_MAX_ENTRIES
    }
}
