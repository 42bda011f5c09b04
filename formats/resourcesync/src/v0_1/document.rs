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
    /// Its entries, in the order of the document: 0.1 has no rule for it.
    pub entries: Vec<Entry>,
}

impl Document {
    /// Reads a document of bytes in hand.
    ///
    /// # Errors
    /// The bytes are not such a document: see `next` of [`Parser`](super::Parser).
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        let (head, entries) = read_all::<V0_1>(bytes)?;
        Ok(Self { head, entries })
    }

    /// The document as bytes.
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
