//! The pages of a walk, and the limits of their number.

use crate::report::error::{Error, ExitCode};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// Maximum number of pages or change documents in one walk: ten times the largest known feed.
const PAGES_MAX: usize = 1_000_000;
/// Maximum number of consecutive pages without entries.
const EMPTY_MAX: usize = 1_000;

/// The reason why a walk ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The documents that were not reached may have newer changes; else only older ones.
    pub(crate) is_newer: bool,
    pub(crate) code: &'static str,
    pub(crate) url: String,
    pub(crate) why: String,
}

/// The pages that a walk has visited.
pub(crate) struct Trail {
    hasher: RandomState,
    /// Fingerprints: there may be very many pages.
    visited: HashSet<u64>,
    empty: usize,
    is_newer: bool,
}

impl Trail {
    /// With `is_newer` the pages lead on to newer changes.
    pub(crate) fn new(is_newer: bool) -> Self {
        Self { hasher: RandomState::new(), visited: HashSet::new(), empty: 0, is_newer }
    }

    /// A page is read.
    pub(crate) fn visit(&mut self, url: &str) {
        self.visited.insert(self.hasher.hash_one(url));
    }

    /// Pages read.
    pub(crate) fn len(&self) -> usize {
        self.visited.len()
    }

    /// Whether a page was read.
    pub(crate) fn has(&self, url: &str) -> bool {
        self.visited.contains(&self.hasher.hash_one(url))
    }

    /// Checks that the next page may be read after a page with this number of entries. The limits
    /// are the same for every protocol.
    pub(crate) fn check(&mut self, page: &str, entries: usize, next: &str) -> Result<(), Cut> {
        let cut = |code, why| Err(Cut { is_newer: self.is_newer, code, url: page.to_owned(), why });
        if self.has(next) {
            return cut("list.cycle", format!("it leads back to {next}, which was read already"));
        }
        self.empty = if entries == 0 { self.empty + 1 } else { 0 };
        if self.empty >= EMPTY_MAX {
            return cut("limit.pages", format!("the last {EMPTY_MAX} pages have no entries"));
        }
        if self.visited.len() >= PAGES_MAX {
            return cut("limit.pages", format!("there are more than {PAGES_MAX} pages"));
        }
        Ok(())
    }
}

impl From<Cut> for Error {
    fn from(cut: Cut) -> Self {
        Self::new(cut.code, ExitCode::Limit, format!("{}: {}", cut.url, cut.why))
    }
}
