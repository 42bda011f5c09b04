//! Values and limits that several documents share.

use abreast_resourcesync::v0_1::SPEC_MAX_ENTRIES;
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};

pub(super) const XML: &str = "application/xml";

/// Time in the precision that documents use.
pub(super) fn exactly(instant: Timestamp) -> W3cDatetime {
    W3cDatetime { instant, precision: Precision::Fraction }
}

/// Limits of a Sitemap or a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) entries: u64,
}

impl Limits {
    /// Unlimited, for documents of any length.
    pub(crate) const NONE: Self = Self { bytes: usize::MAX, entries: u64::MAX };

    /// Whether one more entry fits after this number of bytes and entries.
    pub(crate) const fn have_room(&self, bytes: usize, entries: u64) -> bool {
        bytes <= self.bytes && entries < self.entries
    }
}

impl Default for Limits {
    /// A little less than 10 MB and 50,000 [rs-0.1 §3.2]: heads and one more entry fit as well.
    fn default() -> Self {
        Self { bytes: 9_500_000, entries: SPEC_MAX_ENTRIES - 1 }
    }
}
