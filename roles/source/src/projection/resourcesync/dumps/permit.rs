//! Limit of the files that are made on demand at a time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Files made on demand at a time.
pub(super) const MOST_AT_A_TIME: usize = 2;

/// A permit to make a file on demand.
pub(super) struct Permit<'a>(&'a AtomicUsize);

impl<'a> Permit<'a> {
    pub(super) fn take(places: &'a AtomicUsize) -> Option<Self> {
        let free = |taken| (taken < MOST_AT_A_TIME).then_some(taken + 1);
        places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok().map(|_| Self(places))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
