//! Limits for all descriptions of an input together.

use crate::canonical::{Canonical, MAX_WORK, Work, canonical_statements, canonical_triples};

use crate::notation::statement::{Statement, StatementError, statements};
use oxrdf::TripleRef;

/// Limits for all descriptions of an input together. Blank nodes that several entities lead to are
/// part of each description. Therefore a small input can have large descriptions, and a part whose
/// blank nodes are hard to label is labelled again in each.
#[derive(Debug)]
pub struct DescriptionBudget {
    bytes: u64,
    most: u64,
    work: u64,
}

impl DescriptionBudget {
    /// Bytes of descriptions for each byte of the input, in addition to `FREE_MAX`.
    const RATIO: u64 = 32;
    /// Bytes of descriptions that any input may have.
    const FREE_MAX: u64 = 64 << 20;
    /// Statements of blank nodes that are read for their labels: as many as the largest work of
    /// this number of descriptions, and a number for each byte of the input.
    const HARD: u64 = 40;
    const WORK_RATIO: u64 = 8;
    /// Bytes that a search for the statements of a blank node counts as, because it takes about as
    /// long as copying them. A tree that many entities lead to is searched again for each, also if
    /// it is too large.
    const SEARCH: u64 = 256;

    /// The budget for an input of this many bytes: 64 MiB of descriptions, and 32 times the input.
    pub fn of_input(bytes: u64) -> Self {
        let most = bytes.saturating_mul(Self::RATIO).saturating_add(Self::FREE_MAX);
        let work = bytes.saturating_mul(Self::WORK_RATIO).saturating_add(Self::HARD * MAX_WORK);
        Self { bytes: most, most, work }
    }

    /// The budget for descriptions in memory: 32 MiB.
    pub fn in_memory() -> Self {
        Self { bytes: 32 << 20, most: 32 << 20, ..Self::of_input(0) }
    }

    /// Subtracts the bytes of a description.
    ///
    /// # Errors
    /// The descriptions before it have used the limit up.
    pub fn take(&mut self, root: &str, bytes: usize) -> Result<(), TooLarge> {
        let rest = self.bytes.checked_sub(bytes as u64);
        self.bytes = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or_else(|| self.spent(root))
    }

    fn spent(&self, root: &str) -> TooLarge {
        let limit = format!("{} bytes together with those before it", self.most);
        TooLarge { root: root.to_owned(), limit }
    }

    /// Subtracts the searches for blank nodes of a description, whether or not the description is
    /// within its limits. [`DescriptionBudget::take`] then reports that the budget is used up.
    pub fn take_searches(&mut self, count: u64) {
        self.bytes = self.bytes.saturating_sub(count.saturating_mul(Self::SEARCH));
    }

    /// Fails if the budget is used up, so that no further description is gathered.
    ///
    /// # Errors
    /// The descriptions before this one have used the budget up.
    pub fn check(&self, root: &str) -> Result<(), TooLarge> {
        if self.bytes == 0 { Err(self.spent(root)) } else { Ok(()) }
    }

    /// As [`canonical_lines`](crate::canonical_lines). When the work is used up, blank nodes that
    /// their content does not distinguish are labelled in the order of the input.
    ///
    /// # Errors
    /// A line is not a statement as this crate writes it.
    pub fn canonical_lines(&mut self, lines: &[u8]) -> Result<Canonical, StatementError> {
        let statements: Result<Vec<Statement<'_>>, StatementError> = statements(lines).collect();
        Ok(self.canonical_statements(statements?))
    }

    /// As [`canonical`](crate::canonical()), within the same budget.
    pub fn canonical<'a>(&mut self, triples: impl IntoIterator<Item = TripleRef<'a>>) -> Canonical {
        self.within(|work| canonical_triples(triples, work))
    }

    pub(crate) fn canonical_statements(&mut self, statements: Vec<Statement<'_>>) -> Canonical {
        self.within(|work| canonical_statements(statements, work))
    }

    fn within(&mut self, name: impl FnOnce(&mut Work) -> Canonical) -> Canonical {
        let allowed = self.work.min(MAX_WORK);
        let mut work = Work::new(allowed);
        let canonical = name(&mut work);
        self.work -= allowed - work.rest();
        canonical
    }
}

/// A description that is larger than the limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the description of {root} has more than {limit}\n  help: give its blank nodes IRIs, so that each is described on its own, or raise the limit"
)]
pub struct TooLarge {
    /// The entity as it is written: `<iri>`.
    pub root: String,
    /// The limit, with its unit.
    pub limit: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::label::Naming;
    use std::fmt::Write as _;

    #[test]
    fn hard_parts_cost_bounded_work_together() {
        let mut lines = String::new();
        for node in 0..30 {
            for step in [1, 7] {
                let _ = writeln!(lines, "_:n{node} <http://p> _:n{} .", (node + step) % 30);
            }
        }
        let mut budget = DescriptionBudget { work: 100_000, ..DescriptionBudget::of_input(0) };
        let name = |_| budget.canonical_lines(lines.as_bytes()).unwrap().naming;
        let named: Vec<Naming> = (0..100).map(name).collect();
        assert_eq!((named[0], named[99], budget.work), (Naming::Searched, Naming::Arbitrary, 0));
        assert!(named.is_sorted(), "once it is spent, it remains so");
    }
}
