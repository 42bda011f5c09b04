//! What a new state changed.

use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::target::RdfOptions;
use crate::scan::guard::Held;
use crate::scan::guard::Lost;
use abreast_rdf::LeftOut;

/// Entities that are left out of which each is named in the log.
pub(super) const LEFT_OUT_NAMED: u64 = 10;

/// What a new state changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RdfReport {
    /// Entities in the new state.
    pub entities: u64,
    /// Statements about them, without those about blank nodes.
    pub statements: u64,
    /// New entities.
    pub created: u64,
    /// Entities with another description.
    pub updated: u64,
    /// Entities that are no longer there, and were deleted.
    pub deleted: u64,
    /// Deletions that the guard holds: none is recorded.
    pub held: Option<Held>,
    /// Entities with the description they had.
    pub unchanged: u64,
    /// Entities that cannot be recorded, for their IRI or description is too large: what was recorded of them before stays.
    pub left_out: u64,
    /// Statements that are not valid and were left out, where the options ask for that.
    pub invalid_statements: u64,
    /// Blank nodes that belong to the descriptions of several entities: each has a copy.
    pub shared_blank_nodes: u64,
    /// Blank nodes that belong to no entity: they are not published.
    pub unreached_blank_nodes: u64,
    /// Descriptions whose blank nodes could not be named by their content within the limits: these
    /// may be recorded as changed when they are not.
    pub unstable: u64,
}

impl RdfReport {
    /// Judges the deletions of a plan for a set that had `known` entities.
    pub(crate) fn judge(
        &mut self,
        deletions: u64,
        known: u64,
        options: &RdfOptions,
    ) -> Result<(), RdfError> {
        let lost = Lost { count: deletions, ..Lost::default() };
        let before = if options.peak == 0 { known } else { options.peak };
        let held = Held::judge(&lost, known + self.created, before, self.entities == 0);
        self.held = held.filter(|_| !options.confirm_deletions);
        self.deleted = if self.held.is_none() { deletions } else { 0 };
        match self.held.filter(|_| !options.record_rest) {
            Some(held) => Err(RdfError::Deletions { held }),
            None => Ok(()),
        }
    }

    /// Counts an entity that cannot be recorded; the first ones are named.
    pub(crate) fn leave_out(&mut self, why: &dyn std::fmt::Display) {
        self.left_out += 1;
        if self.left_out <= LEFT_OUT_NAMED {
            tracing::warn!("an entity is left out: {why}");
        }
    }

    /// Counts statements that are not valid; the first ones are named.
    pub(crate) fn leave_out_statements(&mut self, left_out: &LeftOut) {
        for fault in left_out.first() {
            tracing::warn!("a statement is left out: {fault}");
        }
        self.invalid_statements += left_out.count();
    }

    /// What was left out, for status pages; `None` if nothing was.
    pub(super) fn problem(&self) -> Option<String> {
        let entities = (self.left_out > 0)
            .then(|| format!("entities too large to be recorded: {}", self.left_out));
        let statements = (self.invalid_statements > 0)
            .then(|| format!("statements that are not valid: {}", self.invalid_statements));
        let all: Vec<_> = entities.into_iter().chain(statements).collect();
        (!all.is_empty()).then(|| format!("{} (see the log)", all.join("; ")))
    }

    /// Reports what is lost or unstable in what was read.
    pub fn warn(&self) {
        if self.invalid_statements > 0 {
            tracing::warn!(
                "statements that are not valid and were left out: {}",
                self.invalid_statements
            );
        }
        if self.left_out > 0 {
            tracing::warn!(
                "entities that cannot be recorded: {}; what was recorded of them before stays",
                self.left_out
            );
        }
        if self.shared_blank_nodes > 0 {
            tracing::warn!(
                "blank nodes that belong to several entities, each of which has a copy: {} (help: give them IRIs, or set `skolemize`)",
                self.shared_blank_nodes
            );
        }
        if self.unreached_blank_nodes > 0 {
            tracing::warn!(
                "blank nodes that belong to no entity and are not published: {} (help: give them IRIs, or set `skolemize`)",
                self.unreached_blank_nodes
            );
        }
        if self.unstable > 0 {
            tracing::warn!(
                "descriptions with too many equal blank nodes to be compared by content, which may be recorded as changed \
                 when they are not: {}",
                self.unstable
            );
        }
    }
}
