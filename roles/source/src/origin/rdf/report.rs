//! Report on the changes of a new state.

use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::target::RdfOptions;
use crate::scan::guard::Held;
use crate::scan::guard::Lost;
use abreast_rdf::LeftOut;

/// Most omitted entities that are listed in the program's log; further ones are only counted.
pub(super) const LEFT_OUT_NAMED: u64 = 10;

/// Numbers of changes and problems in a new state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RdfReport {
    /// Number of entities in the new state.
    pub entities: u64,
    /// Number of statements about entities, without statements about blank nodes.
    pub statements: u64,
    /// Number of entities that were not in the set.
    pub created: u64,
    /// Number of entities with a changed description.
    pub updated: u64,
    /// Number of deleted entities, which the new state does not contain.
    pub deleted: u64,
    /// Deletions that the guard holds, none recorded.
    pub held: Option<Held>,
    /// Number of entities with an unchanged description.
    pub unchanged: u64,
    /// Number of entities that cannot be recorded because their IRI or description is too large.
    /// Their recorded state does not change.
    pub left_out: u64,
    /// IRIs of some of the entities whose deletion is held.
    pub held_names: Vec<String>,
    /// Number of invalid statements that were skipped, as requested in the options.
    pub invalid_statements: u64,
    /// Number of blank nodes in the descriptions of several entities, each of which has a copy.
    pub shared_blank_nodes: u64,
    /// Number of blank nodes that do not belong to any entity, and are not published.
    pub unreached_blank_nodes: u64,
    /// Number of descriptions whose blank nodes cannot be named by content within the limits. Such
    /// a description may be recorded as changed without a change.
    pub unstable: u64,
}

impl RdfReport {
    /// Decides on the deletions of a plan, for a set that had `known` entities.
    pub(crate) fn judge(
        &mut self,
        (deletions, names): (u64, Vec<String>),
        known: u64,
        options: &RdfOptions,
    ) -> Result<(), RdfError> {
        let lost = Lost { count: deletions, ..Lost::default() };
        let before = if options.peak == 0 { known } else { options.peak };
        let held = Held::judge(&lost, known + self.created, before, self.entities == 0);
        self.held = held.filter(|_| !options.confirm_deletions);
        if self.held.is_some() {
            self.held_names = names;
        } else {
            self.deleted = deletions;
        }
        match self.held.filter(|_| !options.record_rest) {
            Some(held) => Err(RdfError::Deletions { held }),
            None => Ok(()),
        }
    }

    /// Counts an entity that cannot be recorded, and logs the first ones.
    pub(crate) fn leave_out(&mut self, why: &dyn std::fmt::Display) {
        self.left_out += 1;
        if self.left_out <= LEFT_OUT_NAMED {
            tracing::warn!("an entity is left out: {why}");
        }
    }

    /// Counts invalid statements, and logs the first ones.
    pub(crate) fn leave_out_statements(&mut self, left_out: &LeftOut) {
        for fault in left_out.first() {
            tracing::warn!("a statement is left out: {fault}");
        }
        self.invalid_statements += left_out.count();
    }

    /// Describes omitted entities and statements for status pages; `None` if nothing was omitted.
    pub(super) fn problem(&self) -> Option<String> {
        let entities = (self.left_out > 0)
            .then(|| format!("entities too large to be recorded: {}", self.left_out));
        let statements = (self.invalid_statements > 0)
            .then(|| format!("statements that are not valid: {}", self.invalid_statements));
        let all: Vec<_> = entities.into_iter().chain(statements).collect();
        (!all.is_empty()).then(|| format!("{} (see the log)", all.join("; ")))
    }

    /// Logs a warning for each kind of omitted or unstable data in the input.
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
