//! The deletion guard: how many resources a set may lose before their deletion waits for a confirmation.

use std::time::{Duration, Instant};

/// A set that becomes smaller by more than this number, and by more than a tenth, is held.
const MANY: u64 = 1_000;
/// A set of at least this size that becomes smaller by more than half is held.
const FEW: u64 = 10;
/// Deletions that follow each other within this time are judged together.
const LATELY: Duration = Duration::from_secs(600);

/// What happens to resources whose files are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletions {
    /// Their deletion is recorded, unless the guard holds it: when the set would become smaller by more than 10 % and more
    /// than 1,000, or by more than half of 10 or more, or the folder is empty.
    Guarded {
        /// The most resources that the set had lately; what it has now, if that is more.
        peak: u64,
    },
    /// Their deletion is recorded, however many they are: it was confirmed.
    Confirmed,
}

impl Default for Deletions {
    fn default() -> Self {
        Self::Guarded { peak: 0 }
    }
}

/// Deletions that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Resources whose files are gone.
    pub missing: u64,
    /// Resources that the set had.
    pub of: u64,
}

impl Held {
    /// Holds the deletion of `missing` resources of a set that has `resources` now, and had `peak` lately.
    pub(crate) fn judge(missing: u64, resources: u64, peak: u64, emptied: bool) -> Option<Self> {
        let of = peak.max(resources);
        let lost = of - resources.saturating_sub(missing);
        let many = lost > MANY && lost > of / 10;
        let most = of >= FEW && lost > of / 2;
        (missing > 0 && (emptied || many || most)).then_some(Self { missing, of })
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the files of {} of {} resources are gone; their deletion is held", self.missing, self.of)
    }
}

/// The most resources that a set had lately.
#[derive(Debug)]
pub(crate) struct Peak {
    since: Instant,
    now: u64,
    before: u64,
}

impl Peak {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, now: 0, before: 0 }
    }

    /// Notes how many there are, and returns the most of the last ten to twenty minutes.
    pub(crate) fn note(&mut self, now: Instant, resources: u64) -> u64 {
        if now.duration_since(self.since) >= LATELY {
            let long_ago = now.duration_since(self.since) >= 2 * LATELY;
            *self = Self { since: now, now: 0, before: if long_ago { 0 } else { self.now } };
        }
        self.now = self.now.max(resources);
        self.now.max(self.before)
    }

    /// Forgets what was before: what is gone since was confirmed.
    pub(crate) fn forget(&mut self, now: Instant) {
        *self = Self::new(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_a_few_or_many_and_a_tenth_are_held() {
        let held = |missing, resources| Held::judge(missing, resources, 0, false).is_some();
        assert!(held(28, 28) && held(6, 10) && !held(5, 10) && !held(9, 9));
        assert!(held(1_001, 10_000) && !held(1_000, 10_000) && !held(1_001, 10_010) && held(1_100, 10_010));
        assert!(!held(0, 0) && Held::judge(1, 1, 0, true).is_some() && Held::judge(0, 0, 0, true).is_none());
    }

    #[test]
    fn deletions_that_follow_each_other_are_judged_together() {
        let begun = Instant::now();
        let mut peak = Peak::new(begun);
        assert_eq!(peak.note(begun, 100), 100);
        assert!(Held::judge(20, 70, peak.note(begun, 70), false).is_none());
        assert!(Held::judge(25, 70, peak.note(begun, 70), false).is_some());
        assert!(Held::judge(25, 100, 100, false).is_none(), "resources added meanwhile count against those gone");
        assert_eq!(peak.note(begun + LATELY, 70), 100);
        assert_eq!(peak.note(begun + 2 * LATELY, 70), 70);
        peak.forget(begun);
        assert_eq!(peak.note(begun, 1), 1);
    }
}
