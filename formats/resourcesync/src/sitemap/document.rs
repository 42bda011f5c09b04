//! Documents as a whole, in memory.

use super::parser::read_all;
use super::{SPEC_MAX_ENTRIES, Version, write_end};
use abreast_webtypes::SyntaxError as Error;

/// A whole document in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document<V: Version> {
    /// The head of the document.
    pub head: V::Head,
    /// Entries in the order of the document.
    pub entries: Vec<V::Entry>,
}

impl<V: Version> Document<V> {
    /// Reads a document in memory.
    ///
    /// # Errors
    /// The bytes are not such a document: see `next` of [`Parser`](super::Parser).
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        let (head, entries) = read_all::<V>(bytes)?;
        Ok(Self { head, entries })
    }

    /// The document as bytes: XML in UTF-8, in the order of the specification's tables.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (mut out, root) = (Vec::new(), V::root_of(&self.head));
        V::write_head(&mut out, &self.head);
        for entry in &self.entries {
            V::write_entry(&mut out, root, entry);
        }
        write_end(&mut out, root);
        out
    }

    /// Whether there are more entries than a Sitemap may have [rs-core §7] [rs-0.1 §3.2].
    pub fn over_spec_limit(&self) -> bool {
        self.entries.len() as u64 > SPEC_MAX_ENTRIES
    }
}
