//! The deletion guard: whether the deletions that are due may be carried out, decided by numbers
//! alone.
//!
//! The deletions of a plan are judged together, by the size of the copy before they were first
//! held: resources that were created since do not count. So the second run decides as the first.

use crate::report::options::MaxDelete;

/// Runs in which a deletion waits at most because other resources or documents fail.
pub(crate) const WAITS_MAX: u32 = 3;

/// The numbers that are known after the rest of the plan was carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// Deletions that are due.
    pub(crate) due: u64,
    /// Deletions of resources whose bytes were stored under another URI, so that nothing is lost.
    pub(crate) moved: u64,
    /// Resources of the copy, including those to delete.
    pub(crate) rows: u64,
    /// Resources that were created since the due deletions were last within the limit.
    pub(crate) created: u64,
    /// Resources that fail or are refused now, but not in an earlier run.
    pub(crate) new_failures: u64,
    /// Documents that cannot be used now, and could be used in the previous run.
    pub(crate) new_faults: u64,
    /// Whether the run ends before the rest of the plan was tried.
    pub(crate) is_cut_short: bool,
}

/// What becomes of the deletions that are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The deletions are carried out.
    Allowed,
    /// There are more deletions than this allowed number, and all are held.
    Beyond(u64),
    /// All deletions are held until the rest of the plan was tried.
    CutShort,
    /// Deletions that have not waited for [`WAITS_MAX`] runs are held: a resource to delete may
    /// have moved to a URI that fails.
    Wait,
    /// Like [`Verdict::Wait`], except for listed deletions: a document that cannot be used makes
    /// only those deletions doubtful that follow from missing entries.
    WaitIfAbsent,
}

impl Numbers {
    /// The size of the copy by which deletions are judged, at least the number of deletions.
    pub(crate) fn size(&self) -> u64 {
        self.rows.saturating_sub(self.created).max(self.due)
    }

    fn lost(&self) -> u64 {
        self.due.saturating_sub(self.moved)
    }

    /// Decides about the deletions.
    pub(crate) fn judge(&self, limit: MaxDelete) -> Verdict {
        let allowed = limit.allowed(self.size());
        if self.lost() > allowed {
            Verdict::Beyond(allowed)
        } else if self.due == 0 {
            Verdict::Allowed
        } else if self.is_cut_short {
            Verdict::CutShort
        } else if self.new_failures > 0 {
            Verdict::Wait
        } else if self.new_faults > 0 {
            Verdict::WaitIfAbsent
        } else {
            Verdict::Allowed
        }
    }

    /// Whether so many deletions remain that resources created from now on may not count as part of
    /// the copy. A limit that was raised for one run does not influence this decision.
    pub(crate) fn is_beyond(&self, limit: MaxDelete) -> bool {
        let size = self.size();
        self.lost() > limit.allowed(size).min(MaxDelete::Default.allowed(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: Numbers = Numbers {
        due: 0,
        moved: 0,
        rows: 0,
        created: 0,
        new_failures: 0,
        new_faults: 0,
        is_cut_short: false,
    };

    fn of(due: u64, rows: u64, created: u64) -> Numbers {
        Numbers { due, rows, created, ..NONE }
    }

    fn limits() -> impl Strategy<Value = MaxDelete> {
        prop_oneof![
            Just(MaxDelete::Default),
            (0..3_000_u64).prop_map(MaxDelete::Count),
            (0..=100_u8).prop_map(|share| MaxDelete::Percent(f64::from(share))),
        ]
    }

    fn is_beyond(numbers: Numbers, limit: MaxDelete) -> bool {
        matches!(numbers.judge(limit), Verdict::Beyond(_))
    }

    proptest! {
        #[test]
        fn what_is_created_while_they_are_held_changes_nothing(
            due in 0..5_000_u64, rest in 0..5_000_u64, new in 0..20_000_u64, limit in limits()
        ) {
            let first = of(due, due + rest, 0);
            let later = of(due, due + rest + new, new);
            prop_assert_eq!(first.judge(limit), later.judge(limit));
            prop_assert_eq!(first.is_beyond(limit), later.is_beyond(limit));
        }

        #[test]
        fn more_deletions_are_never_allowed_where_fewer_are_not(
            due in 0..5_000_u64, rest in 0..5_000_u64, more in 0..500_u64, limit in limits()
        ) {
            let (few, many) = (of(due, due + rest, 0), of(due + more, due + rest.max(more), 0));
            prop_assert!(few.size() != many.size() || !is_beyond(few, limit) || is_beyond(many, limit));
        }

        #[test]
        fn a_wrong_count_of_new_resources_never_allows_the_whole_copy(
            rows in 10..5_000_u64, created in 0..10_000_u64
        ) {
            prop_assert!(is_beyond(of(rows, rows, created), MaxDelete::Default));
        }

        #[test]
        fn what_is_beyond_the_limit_is_so_whatever_fails(
            due in 0..5_000_u64, rows in 0..5_000_u64, new_failures in 0..2_u64, new_faults in 0..2_u64,
            is_cut_short: bool, limit in limits()
        ) {
            let calm = of(due, rows, 0);
            let failing = Numbers { new_failures, new_faults, is_cut_short, ..calm };
            prop_assert_eq!(is_beyond(calm, limit), is_beyond(failing, limit));
            prop_assert!(!is_beyond(calm, limit) || calm.is_beyond(limit));
        }
    }

    #[test]
    fn what_moved_is_no_loss() {
        let moved = |moved| Numbers { moved, ..of(3_000, 9_000, 3_000) };
        assert!(is_beyond(moved(0), MaxDelete::Default));
        assert!(is_beyond(moved(1_999), MaxDelete::Default));
        assert!(!is_beyond(moved(2_000), MaxDelete::Default));
    }

    #[test]
    fn deletions_wait_for_what_failed_anew() {
        let due = of(1, 100, 0);
        let verdict = |numbers: Numbers| numbers.judge(MaxDelete::Default);
        assert_eq!(verdict(due), Verdict::Allowed);
        assert_eq!(verdict(Numbers { new_failures: 1, new_faults: 1, ..due }), Verdict::Wait);
        assert_eq!(verdict(Numbers { new_faults: 1, ..due }), Verdict::WaitIfAbsent);
        let cut_short = Numbers { new_failures: 1, is_cut_short: true, ..due };
        assert_eq!(verdict(cut_short), Verdict::CutShort);
        assert_eq!(verdict(Numbers { due: 60, ..cut_short }), Verdict::Beyond(50));
        assert_eq!(verdict(Numbers { due: 0, ..cut_short }), Verdict::Allowed);
    }

    #[test]
    fn a_limit_raised_for_one_run_is_forgotten_by_the_next() {
        let replaced = of(20, 40, 20);
        assert_eq!(replaced.judge(MaxDelete::Count(20)), Verdict::Allowed);
        assert!(replaced.is_beyond(MaxDelete::Count(20)));
        assert!(!of(0, 40, 20).is_beyond(MaxDelete::Count(20)));
        assert!(of(5, 40, 0).is_beyond(MaxDelete::Count(3)));
    }
}
