//! The amount of changes, to estimate the length of a package with the changes.

use crate::plan::listed::Listed;
use crate::request::package::listing::Made;

/// The assumed length of a resource without a listed length, in bytes.
pub(crate) const UNKNOWN_BYTES: u64 = 16 << 10;
/// The overhead of a change in a package in bytes: a manifest entry and two headers.
const CHANGE_BYTES: u64 = 700;

/// Number of bytes that a package may have in addition to twice its expected length, since changes
/// continue while it is created.
const SPARE_BYTES: u64 = 1 << 20;

/// Time that the Source needs to add one change to a package, in seconds, and the number of bytes
/// that it reads in a second.
const MAKING_SECONDS: f64 = 0.000_05;

const MAKING_BYTES_PER_SECOND: f64 = 100_000_000.0;

/// The amount of listed changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) changes: u64,
    pub(crate) bytes: u64,
}

impl Changes {
    /// Counts a change that was read.
    pub(crate) fn note(&mut self, change: &Listed<'_>) {
        self.changes += 1;
        if !change.is_deletion() {
            self.bytes = self.bytes.saturating_add(change.length.unwrap_or(UNKNOWN_BYTES));
        }
    }

    /// At least so much.
    pub(crate) fn or(self, changes: u64, bytes: u64) -> Self {
        Self { changes: self.changes.max(changes), bytes: self.bytes.max(bytes) }
    }

    /// Expected length of a package with these changes, in bytes.
    pub(crate) fn package_bytes(self) -> u64 {
        self.bytes.saturating_add(self.changes.saturating_mul(CHANGE_BYTES))
    }

    /// The expected package with these changes.
    pub(crate) fn made(self) -> Made {
        Made {
            bytes: self.package_bytes(),
            bytes_max: self.package_bytes().saturating_mul(2).saturating_add(SPARE_BYTES),
            seconds: self.changes as f64 * MAKING_SECONDS
                + self.bytes as f64 / MAKING_BYTES_PER_SECOND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::testing::listed;
    use abreast_core::Kind;

    #[test]
    fn a_package_is_expected_to_hold_every_change() {
        let mut changes = Changes::default();
        let change = |length, change| Listed {
            length,
            change: Some(change),
            ..listed("http://h/l", "http://h/a", Vec::new())
        };
        changes.note(&change(Some(100), Kind::Update));
        changes.note(&change(None, Kind::Create));
        changes.note(&change(Some(100), Kind::Delete));
        assert_eq!(changes, Changes { changes: 3, bytes: 100 + UNKNOWN_BYTES });
        assert_eq!(changes.package_bytes(), 100 + UNKNOWN_BYTES + 3 * CHANGE_BYTES);
        assert_eq!(changes.or(5, 7), Changes { changes: 5, ..changes });
    }
}
