//! A change of what a service stores, and how far blank nodes reach in what it stored before.

use super::super::document::{Description, digest_of};
use crate::sink::kept::is_distrusted;
use abreast_rdf::sparql::Reach;
use abreast_store::mirror::Row;
use std::fmt::Write as _;

/// What is to be stored of a resource.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) uri: String,
    /// Whether the copy has something of it.
    pub(super) is_kept: bool,
    /// How far the blank nodes reach of what is stored; `None` where it must be asked for what is
    /// stored.
    pub(super) old: Option<Reach>,
    /// Nothing when the resource is gone.
    pub(super) new: Option<Description>,
    /// Kept when the change is settled: its outcome may not be taken yet.
    pub(super) row: Option<Row>,
}

impl Change {
    /// The entity that its document is about.
    pub(super) fn entity(&self) -> &str {
        let entity = self.new.as_ref().and_then(|new| new.entity.as_ref());
        entity.map_or(&self.uri, |entity| entity.as_str())
    }

    pub(super) fn bytes(&self) -> usize {
        self.uri.len() + self.new.as_ref().map_or(0, |description| description.lines.len())
    }
}

/// Bits of each number of a reach in a row. A description has no more statements than they count.
pub(super) const BITS: u32 = 20;

/// What has this many paths, or more, has any number of them.
pub(super) const MOST: u64 = (1 << BITS) - 1;

/// A reach as the row of a resource has it, in place of the time of a file.
pub(super) fn packed(reach: Reach) -> i64 {
    let (steps, depth) = (reach.steps as u64, reach.depth as u64);
    (steps << (2 * BITS) | depth << BITS | reach.paths.min(MOST)) as i64
}

pub(super) fn unpacked(number: i64) -> Reach {
    let part = |at: u32| (number as u64 >> (at * BITS)) & MOST;
    let paths = if part(0) == MOST { u64::MAX } else { part(0) };
    Reach { depth: part(1) as usize, paths, steps: part(2) as usize }
}

/// The reach of what is stored, if the row states it.
pub(super) fn reach_in(row: Option<&Row>) -> Option<Reach> {
    row.filter(|row| !is_distrusted(row)).map(|row| unpacked(row.file_mtime))
}

/// A reach that is enough for either of two descriptions.
pub(super) fn either(one: Reach, other: Reach) -> Reach {
    if one.depth == other.depth {
        let (paths, steps) = (one.paths.max(other.paths), one.steps.max(other.steps));
        return Reach { depth: one.depth, paths, steps };
    }
    Reach::of_depth(one.depth.max(other.depth))
}

/// Names a version of a description by its digest; there is none without statements.
pub(super) fn version(digest: &[u8]) -> Option<String> {
    (digest != digest_of(&[]).as_slice()).then(|| hex(digest))
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(digest: &[u8]) -> String {
    let mut text = String::with_capacity(2 * digest.len());
    for byte in digest {
        // Writing into memory cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
