//! Labels of blank nodes, and how they were found.

use std::fmt::Write as _;

/// The label of a blank node: `_:b`, 128 bits and, for interchangeable nodes with the same bits, a
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    hash: [u8; 16],
    copy: usize,
}

impl Label {
    /// The label for the content whose bytes are in `buffer`.
    pub(crate) fn of(buffer: &[u8], copy: usize) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(buffer).as_bytes()[..16]);
        Self { hash, copy }
    }

    pub(crate) fn to_text(self) -> String {
        let mut text = String::with_capacity(35);
        text.push_str("_:b");
        for byte in self.hash {
            let _ = write!(text, "{byte:02x}");
        }
        if self.copy > 0 {
            let _ = write!(text, "-{}", self.copy);
        }
        text
    }
}

/// How labels of blank nodes were found. For a description with several ways, the least stable way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Naming {
    /// The description does not have blank nodes.
    NoBlankNodes,
    /// All labels are made of content and surroundings.
    ByContent,
    /// Some labels are from a refinement of colours.
    Refined,
    /// Some labels are from a search among equal colours.
    Searched,
    /// Some labels follow the order of the input: equal descriptions may have different bytes.
    Arbitrary,
}

/// Appends a part to the bytes to hash, so that different lists of parts have different bytes.
pub(crate) fn hash_part(buffer: &mut Vec<u8>, part: &[u8]) {
    buffer.extend_from_slice(&(part.len() as u64).to_le_bytes());
    buffer.extend_from_slice(part);
}
