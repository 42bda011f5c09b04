//! Deletion guard, which limits how many resources a set may lose without a confirmation.

use abreast_core::ChangeLog;
use abreast_core::LogError;
use abreast_core::SetId;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Deletions are held if they are more than this number and more than a tenth of the set.
const MANY: u64 = 1_000;
/// In a set of at least this size, deletions are held if they are more than half of the set.
const FEW: u64 = 10;
/// Default duration for which deletions are held.
pub(crate) const HOLD: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Time during which successive deletions are judged together.
const LATELY: Duration = Duration::from_secs(600);

/// Rule for resources whose files are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletions {
    /// Records deletions, unless the guard holds them. The guard holds deletions if the set would
    /// lose more than 1,000 resources and more than 10 %, or more than half of 10 or more
    /// resources, or if the folder is empty.
    Guarded {
        /// Largest recent number of resources in the set; 0 for the number at the start of the
        /// scan.
        peak: u64,
    },
    /// Records all deletions, because they were confirmed.
    Confirmed,
}

impl Default for Deletions {
    fn default() -> Self {
        Self::Guarded { peak: 0 }
    }
}

/// Deletions that wait for a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Held {
    /// Number of resources whose files are missing or excluded by the filter.
    pub missing: u64,
    /// Number of these resources whose files exist and are excluded by the filter.
    pub left_out: u64,
    /// Number of resources before the deletions.
    pub of: u64,
    /// Number of recently recorded deletions, which are judged together with the held deletions.
    pub before: u64,
}

impl Held {
    /// Decides whether to hold deletions in a set that has `resources` now and had `before`
    /// earlier. New resources compensate for deleted ones, so that moving a folder does not count
    /// as a loss.
    pub(crate) fn judge(lost: &Lost, resources: u64, before: u64, emptied: bool) -> Option<Self> {
        let missing = lost.count;
        let gone = before.saturating_sub(resources.saturating_sub(missing));
        let many = gone > MANY && gone > before / 10;
        let most = before >= FEW && gone > before / 2;
        let of = before.max(missing);
        let held =
            Self { missing, left_out: lost.left_out, of, before: before.saturating_sub(resources) };
        (missing > 0 && (emptied || many || most)).then_some(held)
    }

    /// Condition for the confirmation of these deletions, for help texts.
    pub fn if_intended(&self) -> &'static str {
        match self.left_out {
            0 => "they were removed on purpose",
            left_out if left_out == self.missing => "the patterns are as intended",
            _ => "they were removed on purpose and the patterns are as intended",
        }
    }
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { missing, left_out, of, before } = *self;
        let resources = if of == 1 { "resource" } else { "resources" };
        write!(f, "the deletion of {missing} of {of} {resources} is held: ")?;
        match (missing - left_out, left_out) {
            (1, 0) if missing == 1 => write!(f, "the file is gone")?,
            (_, 0) => write!(f, "the files are gone")?,
            (0, _) => write!(f, "the include and exclude patterns leave them out")?,
            (1, _) => write!(
                f,
                "1 file is gone, and the include and exclude patterns leave out {left_out}"
            )?,
            (gone, _) => write!(
                f,
                "{gone} files are gone, and the include and exclude patterns leave out {left_out}"
            )?,
        }
        if before > 0 {
            let minutes = LATELY.as_secs() / 60;
            write!(
                f,
                "; {before} deleted before {} as well (deletions within {minutes} minutes are judged together)",
                if before == 1 { "counts" } else { "count" }
            )?;
        }
        Ok(())
    }
}

/// Largest number of resources that a set had recently, while no deletion was pending.
#[derive(Debug)]
pub(crate) struct Peak {
    since: Instant,
    now: u64,
    before: u64,
}

impl Default for Peak {
    fn default() -> Self {
        Self::new(Instant::now())
    }
}

impl Peak {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, now: 0, before: 0 }
    }

    /// Records the number of resources. Call this method only if no deletion is pending.
    pub(crate) fn note(&mut self, now: Instant, resources: u64) {
        self.turn(now);
        self.now = self.now.max(resources);
    }

    /// Returns the number to which deletions are compared: the maximum of the last ten to twenty
    /// minutes. Without a recorded number, stores and returns the current one, because several
    /// passes can find the deletions of a single `rm`.
    pub(crate) fn judged(&mut self, now: Instant, resources: u64) -> u64 {
        if self.most(now) == 0 {
            self.note(now, resources);
        }
        self.most(now)
    }

    fn most(&mut self, now: Instant) -> u64 {
        self.turn(now);
        self.now.max(self.before)
    }

    fn turn(&mut self, now: Instant) {
        if now.duration_since(self.since) >= LATELY {
            let long_ago = now.duration_since(self.since) >= 2 * LATELY;
            *self = Self { since: now, now: 0, before: if long_ago { 0 } else { self.now } };
        }
    }

    /// Resets the maximum after deletions were confirmed.
    pub(crate) fn forget(&mut self, now: Instant) {
        *self = Self::new(now);
    }
}

/// Most keys of missing resources in memory. Beyond this limit, only the number is counted.
const MAX_LOST: usize = 50_000;

/// Most keys in a list of held deletions for people.
pub(crate) const HELD_NAMES: usize = 20;

/// Resources whose files are missing, or excluded by the filter of the set.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    pub(crate) count: u64,
    /// Number of these resources whose files exist and are excluded by the filter.
    pub(crate) left_out: u64,
    /// Keys of the resources; empty if the number exceeds the limit.
    pub(crate) keys: Vec<String>,
    /// The first keys, for people.
    pub(crate) first: Vec<String>,
}

impl Lost {
    pub(crate) fn push(&mut self, key: String) {
        self.count += 1;
        if self.first.len() < HELD_NAMES {
            self.first.push(key.clone());
        }
        if self.too_many() {
            self.keys = Vec::new();
        } else {
            self.keys.push(key);
        }
    }

    /// Whether the number exceeds the limit of keys.
    pub(crate) const fn too_many(&self) -> bool {
        self.count > MAX_LOST as u64
    }

    /// Adds the resources that are in the log, from these keys.
    pub(crate) fn add_known(
        &mut self,
        log: &dyn ChangeLog,
        set: SetId,
        keys: Vec<String>,
    ) -> Result<(), LogError> {
        for key in keys {
            if log.resource(set, &key)?.is_some() {
                self.push(key);
            }
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.left_out += other.left_out;
        self.first.extend(other.first);
        self.first.truncate(HELD_NAMES);
        if self.too_many() {
            self.keys = Vec::new();
        } else {
            self.keys.extend(other.keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(missing: u64, resources: u64, peak: u64, emptied: bool) -> Option<Held> {
        Held::judge(&Lost { count: missing, ..Lost::default() }, resources, peak, emptied)
    }

    #[test]
    fn a_notice_names_the_cause_and_what_was_deleted_before() {
        let notice =
            |missing, left_out, of, before| Held { missing, left_out, of, before }.to_string();
        assert_eq!(
            notice(8, 0, 12, 0),
            "the deletion of 8 of 12 resources is held: the files are gone"
        );
        assert_eq!(
            notice(8, 8, 12, 0),
            "the deletion of 8 of 12 resources is held: the include and exclude patterns leave them out"
        );
        assert_eq!(
            notice(8, 3, 12, 0),
            "the deletion of 8 of 12 resources is held: 5 files are gone, and the include and exclude patterns leave out 3"
        );
        assert_eq!(notice(1, 0, 1, 0), "the deletion of 1 of 1 resource is held: the file is gone");
        let held = judge(1, 14, 28, false).unwrap();
        assert_eq!(
            held.to_string(),
            "the deletion of 1 of 28 resources is held: the file is gone; 14 deleted before count as well \
             (deletions within 10 minutes are judged together)"
        );
        assert!(notice(2, 0, 9, 1).contains("; 1 deleted before counts as well ("));
    }

    #[test]
    fn most_of_a_few_or_many_and_a_tenth_are_held() {
        let held = |missing, resources| judge(missing, resources, resources, false).is_some();
        assert!(held(28, 28) && held(6, 10) && !held(5, 10) && !held(9, 9));
        assert!(
            held(1_001, 10_000)
                && !held(1_000, 10_000)
                && !held(1_001, 10_010)
                && held(1_100, 10_010)
        );
        assert!(!held(0, 0) && judge(1, 1, 1, true).is_some() && judge(0, 0, 0, true).is_none());
    }

    #[test]
    fn what_was_created_makes_up_for_what_is_gone() {
        // The set has 6,000 files, and 3,000 of them are moved.
        assert!(judge(3_000, 9_000, 6_000, false).is_none());
        assert!(judge(40, 6_000, 6_000, false).is_none(), "and then 40 are removed");
        let held = judge(28, 29, 28, false).unwrap();
        assert_eq!((held.missing, held.of, held.before), (28, 28, 0), "one is new");
    }

    #[test]
    fn the_size_that_deletions_are_judged_against_is_noted() {
        let begun = Instant::now();
        let mut peak = Peak::new(begun);
        peak.note(begun, 50);
        // A new set, and a set after a long time without changes.
        for (mut peak, now) in [(Peak::new(begun), begun), (peak, begun + 3 * LATELY)] {
            assert!(judge(10, 40, peak.judged(now, 40), false).is_none());
            // The size is not recorded while more files are missing.
            assert!(judge(15, 30, peak.judged(now, 30), false).is_some());
        }
    }

    #[test]
    fn deletions_that_follow_each_other_are_judged_together() {
        let begun = Instant::now();
        let mut peak = Peak::new(begun);
        assert_eq!(peak.most(begun), 0);
        peak.note(begun, 100);
        assert!(judge(20, 70, peak.most(begun), false).is_none());
        assert!(judge(25, 70, peak.most(begun), false).is_some());
        assert_eq!(peak.most(begun + LATELY), 100);
        peak.note(begun + LATELY, 70);
        assert_eq!(peak.most(begun + 2 * LATELY), 70);
        peak.forget(begun);
        peak.note(begun, 1);
        assert_eq!(peak.most(begun), 1);
    }
}
