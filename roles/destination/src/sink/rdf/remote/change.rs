//! A change of the stored statements in a service, and the reach of blank nodes in the previous
//! statements.

use super::super::document::{Description, digest_of};
use crate::sink::kept::is_distrusted;
use abreast_rdf::sparql::Reach;
use abreast_store::mirror::Row;
use std::fmt::Write as _;

/// The new statements of a resource.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) uri: String,
    /// Whether the copy has statements of the resource.
    pub(super) is_kept: bool,
    /// The reach of the blank nodes in the stored statements; `None` if the service must be queried
    /// for it.
    pub(super) old: Option<Reach>,
    /// The new description; `None` if the resource was deleted.
    pub(super) new: Option<Description>,
    /// The row to write when the change is settled, since its outcome may not have been received.
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

/// Number of bits of each number of a reach in a row. A description has fewer statements than these
/// bits can count.
pub(super) const BITS: u32 = 20;

/// The largest stored number of paths, which stands for any larger number too.
pub(super) const MOST: u64 = (1 << BITS) - 1;

/// A reach as stored in the row of a resource, in the field for the time of a file.
pub(super) fn packed(reach: Reach) -> i64 {
    let (steps, depth) = (reach.steps as u64, reach.depth as u64);
    (steps << (2 * BITS) | depth << BITS | reach.paths.min(MOST)) as i64
}

pub(super) fn unpacked(number: i64) -> Reach {
    let part = |at: u32| (number as u64 >> (at * BITS)) & MOST;
    let paths = if part(0) == MOST { u64::MAX } else { part(0) };
    Reach { depth: part(1) as usize, paths, steps: part(2) as usize }
}

/// The reach of the stored statements, if the row contains it.
pub(super) fn reach_in(row: Option<&Row>) -> Option<Reach> {
    row.filter(|row| !is_distrusted(row)).map(|row| unpacked(row.file_mtime))
}

/// A reach that covers both descriptions.
pub(super) fn either(one: Reach, other: Reach) -> Reach {
    if one.depth == other.depth {
        let (paths, steps) = (one.paths.max(other.paths), one.steps.max(other.steps));
        return Reach { depth: one.depth, paths, steps };
    }
    Reach::of_depth(one.depth.max(other.depth))
}

/// Identifies a version of a description by its digest; `None` for a description without
/// statements.
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
