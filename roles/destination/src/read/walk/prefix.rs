//! The known part of a growing document of changes.

use crate::read::position::Bookmark;

/// The entries of a document that were read by an earlier run.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    pub(super) known: Option<(u64, u64)>,
    entries: u64,
    fingerprint: u64,
    /// Whether the known entries are there, in the same order.
    pub(super) is_same: Option<bool>,
    /// Whether the document may have been missing in the index before.
    pub(super) is_unnamed: bool,
    /// Whether an entry has a time before the position.
    pub(super) has_old: bool,
}

impl Prefix {
    pub(super) fn of(bookmark: Option<&Bookmark>) -> Self {
        let known = bookmark.map(|bookmark| (bookmark.entries, bookmark.fingerprint));
        Self {
            is_same: known.and_then(|known| (known.0 == 0).then_some(true)),
            known,
            ..Self::default()
        }
    }

    /// Adds an entry; whether it was added after an earlier run read the document, or the document was rewritten.
    pub(super) fn add(&mut self, entry: u64) -> bool {
        let is_after = self.known.is_some_and(|known| self.entries >= known.0);
        self.entries += 1;
        self.fingerprint =
            self.fingerprint.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ entry;
        if let Some((_, fingerprint)) = self.known.filter(|known| known.0 == self.entries) {
            self.is_same = Some(fingerprint == self.fingerprint);
        }
        is_after
    }

    /// Whether the entries that were read by an earlier run are others now.
    pub(super) fn was_rewritten(&self) -> bool {
        let has_others =
            self.known.is_some_and(|known| self.entries < known.0) || self.is_same == Some(false);
        self.has_old && has_others
    }

    pub(super) fn bookmark(&self, url: &str) -> Bookmark {
        let (entries, fingerprint) = (self.entries, self.fingerprint);
        Bookmark { document: url.to_owned(), entries, fingerprint, ..Bookmark::default() }
    }
}
