//! How much of the stored data is read.

use std::hash::BuildHasher as _;

/// The share of contents, files and packages whose bytes are read and compared with their digests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadShare(f64);

impl ReadShare {
    /// Reads no bytes: paths and lengths are compared.
    pub const NONE: Self = Self(0.0);
    /// Reads the bytes of all contents.
    pub const ALL: Self = Self(100.0);

    /// Reads a random part, in percent from 0 to 100.
    pub const fn percent(percent: f64) -> Self {
        Self(percent)
    }

    /// Selects at random, for one run, the items whose bytes are read.
    pub fn selection(self) -> impl Fn(&str) -> bool + use<> {
        let (share, chance) = (self.0, std::hash::RandomState::new());
        move |name| share >= 100.0 || (chance.hash_one(name) % 100_000) as f64 / 1_000.0 < share
    }
}
