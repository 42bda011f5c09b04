//! The way of a walk through pages, and its limits.

use crate::error::{Error, ExitCode};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::{Duration, Instant};

/// Most pages or change documents of one walk: ten times those of the largest feed that is known.
const PAGES_MAX: usize = 1_000_000;
/// Longest time of one walk: pages that never end would hold a run for days.
const WALK_TIME_MAX: Duration = Duration::from_secs(12 * 3_600);
/// Most pages one after another without entries.
const EMPTY_MAX: usize = 1_000;

/// Why a walk did not reach all that it searched for.
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
    began: Instant,
    empty: usize,
    is_newer: bool,
}

impl Trail {
    /// With `is_newer` the pages lead on to newer changes.
    pub(crate) fn new(is_newer: bool) -> Self {
        let (hasher, visited) = (RandomState::new(), HashSet::new());
        Self { hasher, visited, began: Instant::now(), empty: 0, is_newer }
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

    /// Whether the next page may be read after one with so many entries; why not. Every protocol has these limits.
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
        if self.began.elapsed() >= WALK_TIME_MAX {
            let (pages, hours) = (self.visited.len(), WALK_TIME_MAX.as_secs() / 3_600);
            return cut("limit.pages", format!("{pages} pages took more than {hours} hours"));
        }
        Ok(())
    }
}

impl From<Cut> for Error {
    fn from(cut: Cut) -> Self {
        Self::new(cut.code, ExitCode::Limit, format!("{}: {}", cut.url, cut.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_after_its_time() {
        let mut trail = Trail::new(false);
        trail.visit("1");
        assert_eq!(trail.check("1", 5, "2"), Ok(()));
        let Some(began) = trail.began.checked_sub(WALK_TIME_MAX) else { return };
        trail.began = began;
        let cut = trail.check("1", 5, "2").unwrap_err();
        assert_eq!((cut.code, &*cut.why), ("limit.pages", "1 pages took more than 12 hours"));
    }
}
