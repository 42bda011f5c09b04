//! The resources of an RDF set: entities, each with the canonical N-Triples of its description.
//!
//! A new complete state is brought into the order of lines, compared with the log's current state
//! entity by entity, and only then recorded: nothing is recorded of input that is wrong, and
//! neither state is ever in memory.
//!
//! ```text
//! files, any syntax ─► sort ─► statements ─► comparison ─► plan (on disk) ─► contents, log
//!                                               ▲
//!                                 the log's resources, in key order
//! ```

pub(super) mod comparison;
mod delta;
mod deprecation;
mod description;
mod keyed_hash;
pub(super) mod plan;
pub(super) mod record;
mod seen;
mod watch;
mod writer;

pub use abreast_statements::{Bytes as RdfBytes, Input as RdfInput};
pub use delta::{Delta, DeltaRow, apply, each_row};
pub use description::DescriptionOptions;
pub use watch::{RdfFolder, RdfWatch};
pub use writer::{
    Changing, Described, EntityWriter, Import, NotDescription, read_description, read_descriptions,
};

use crate::scan::Lost;
use crate::{DigestPolicy, Held, Rest};
use abreast_contents::{Contents, View};
use abreast_core::{ChangeLog, LogError, SetId};
use abreast_rdf::{LeftOut, Syntax};
use abreast_statements::{Error, SortOptions, SortedStatements};
use abreast_webtypes::{Timestamp, count};

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Entities that are left out of which each is named in the log.
const LEFT_OUT_NAMED: u64 = 10;

/// The media type of an entity's bytes.
pub const MEDIA_TYPE: &str = "application/n-triples";

/// How RDF is read into a set.
#[derive(Clone, Debug)]
pub struct RdfOptions {
    /// The digests to publish.
    pub digests: DigestPolicy,
    /// What is taken from descriptions.
    pub descriptions: DescriptionOptions,
    /// How statements are sorted.
    pub sort: SortOptions,
    /// Record deletions however many there are.
    pub confirm_deletions: bool,
    /// Where the guard holds deletions: record the rest. Otherwise nothing is recorded.
    pub record_rest: bool,
    /// The most entities that the set had lately, by which deletions are judged; 0: what it has now.
    pub peak: u64,
    /// How long a watch holds deletions that are more than the guard allows ([`crate::Deletions`]);
    /// zero for not at all.
    pub hold_deletions: Duration,
    /// The beginning of the IRIs that blank nodes get which are the object of several subjects, or
    /// of none; `None`: they have copies, and are not published.
    pub skolemize: Option<String>,
    /// Relative IRIs in a file are resolved against this and the path of the file below its folder.
    /// Ends in `/`. `None`: relative IRIs are errors.
    pub base: Option<String>,
    /// Compare, and record nothing.
    pub dry_run: bool,
    /// What is known of files that may be written.
    pub rest: Arc<Rest>,
}

impl RdfOptions {
    /// Defaults, with a folder for temporary files.
    pub fn new(temporary: impl Into<PathBuf>) -> Self {
        Self {
            digests: DigestPolicy::Md5,
            descriptions: DescriptionOptions::default(),
            sort: SortOptions::new(temporary),
            confirm_deletions: false,
            record_rest: false,
            peak: 0,
            hold_deletions: crate::guard::HOLD,
            skolemize: None,
            base: None,
            dry_run: false,
            rest: Arc::default(),
        }
    }
}

/// The set into which RDF is read.
#[derive(Clone, Copy)]
pub struct RdfTarget<'a> {
    /// The log.
    pub log: &'a dyn ChangeLog,
    /// The set, whose history begins in its log.
    pub set: SetId,
    /// Where descriptions are kept.
    pub contents: &'a Contents,
    /// Where the present ones are read instead, in a dry run that may write nothing there.
    pub kept: Option<&'a View>,
    /// How it is read.
    pub options: &'a RdfOptions,
}

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
    pub(super) fn judge(
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
    pub(super) fn leave_out(&mut self, why: &dyn std::fmt::Display) {
        self.left_out += 1;
        if self.left_out <= LEFT_OUT_NAMED {
            tracing::warn!("an entity is left out: {why}");
        }
    }

    /// Counts statements that are not valid; the first ones are named.
    pub(super) fn leave_out_statements(&mut self, left_out: &LeftOut) {
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

/// Makes these inputs the complete state of the set: entities that are not in them are deleted. A set that was incomplete can be
/// published now. An entity that is too large to be recorded is left out, and counted.
///
/// # Errors
/// An input is wrong, or too much would be deleted: nothing is recorded then. Or the log, the
/// contents or the disk fail: what is recorded then is right, and the same inputs complete it.
pub fn replace(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = Result<RdfInput, Error>>,
    modified: Timestamp,
) -> Result<RdfReport, RdfError> {
    replace_if(target, inputs, modified, &|| Ok(()))
}

/// As [`replace`], if `is_still` states before anything is recorded that the inputs are still the same.
fn replace_if(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = Result<RdfInput, Error>>,
    modified: Timestamp,
    is_still: &dyn Fn() -> Result<(), RdfError>,
) -> Result<RdfReport, RdfError> {
    in_folder(target.options, || {
        let inputs: Vec<_> = inputs.into_iter().collect::<Result<_, _>>()?;
        let (plan, report) = match in_place(target, &inputs)? {
            Some(compared) => compared,
            None => planned(target, abreast_statements::sorted(&target.options.sort, inputs)?)?,
        };
        is_still()?;
        record_state(target, plan, &report, modified)?;
        Ok(report)
    })
}

/// Records the plan of a complete state.
pub(super) fn record_state(
    target: RdfTarget<'_>,
    plan: plan::Plan,
    report: &RdfReport,
    modified: Timestamp,
) -> Result<(), RdfError> {
    record::record(target, plan, report.held.is_some(), modified)?;
    if !target.options.dry_run && target.log.head(target.set)?.importing {
        target.log.complete_import(target.set)?;
    }
    Ok(())
}

/// As [`replace`], by statements that are sorted.
pub(super) fn replace_by(
    target: RdfTarget<'_>,
    statements: SortedStatements,
    modified: Timestamp,
) -> Result<RdfReport, RdfError> {
    let (plan, report) = planned(target, statements)?;
    record_state(target, plan, &report, modified)?;
    Ok(report)
}

fn planned(
    target: RdfTarget<'_>,
    mut statements: SortedStatements,
) -> Result<(plan::Plan, RdfReport), RdfError> {
    let options = target.options;
    let left_out = statements.left_out().clone();
    if let Some(base) = &options.skolemize {
        statements = abreast_statements::skolemized(&options.sort, statements, base)?;
    }
    let (plan, mut report) = comparison::compare(target, &statements)?;
    report.leave_out_statements(&left_out);
    Ok((plan, report))
}

/// Does what needs temporary files: the error of one names their folder.
pub(super) fn in_folder(
    options: &RdfOptions,
    task: impl FnOnce() -> Result<RdfReport, RdfError>,
) -> Result<RdfReport, RdfError> {
    task().map_err(|error| match error {
        RdfError::Io(cause) | RdfError::Statements(Error::Io(cause)) => {
            RdfError::Temporary { folder: options.sort.temporary.clone(), cause }
        }
        other => other,
    })
}

/// Compares a single file of sorted N-Triples without a copy of it; `None` when it is not that.
fn in_place(
    target: RdfTarget<'_>,
    inputs: &[RdfInput],
) -> Result<Option<(plan::Plan, RdfReport)>, RdfError> {
    let [RdfInput { syntax: Syntax::NTriples, bytes: RdfBytes::File(file), .. }] = inputs else {
        return Ok(None);
    };
    let sort = &target.options.sort;
    if target.options.skolemize.is_some() || !sort.graphs.is_empty() || sort.leave_out_invalid {
        return Ok(None);
    }
    let statements = SortedStatements::new(file.try_clone()?, false)?;
    match comparison::compare(target, &statements) {
        Ok(compared) => Ok(Some(compared)),
        // Read again, its errors have their places.
        Err(RdfError::Statements(Error::NotSorted { .. } | Error::Line { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

/// RDF could not be read into a set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdfError {
    /// The statements cannot be read.
    #[error(transparent)]
    Statements(#[from] abreast_statements::Error),
    /// A state or a difference is being imported.
    #[error("an import of RDF is running")]
    Importing,
    /// A delta does not apply.
    #[error("{0}")]
    Delta(String),
    /// An endpoint fails, or its answer is not complete.
    #[error("{0}")]
    Endpoint(String),
    /// A file is being written.
    #[error("`{}` is being written\n  help: try again when it is complete", .0.display())]
    Unsettled(PathBuf),
    /// Too much would be deleted.
    #[error("{} of {} would be deleted; nothing was recorded", held.missing, count(held.of, "entity"))]
    Deletions {
        /// What would be deleted.
        held: Held,
    },
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The descriptions cannot be kept.
    #[error(transparent)]
    Contents(#[from] abreast_contents::Error),
    /// The disk failed.
    #[error("a temporary file failed")]
    Io(#[from] io::Error),
    /// It failed in the folder of temporary files.
    #[error(
        "cannot write or read a temporary file in `{}`\n  help: they are as large as the statements; free space on its disk",
        folder.display()
    )]
    Temporary {
        /// The folder.
        folder: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl RdfError {
    /// Its text and its cause: most have that in their own text.
    pub(crate) fn text(&self) -> String {
        let text = self.to_string();
        let cause = std::error::Error::source(self).map(ToString::to_string);
        let Some(cause) = cause.filter(|cause| !text.contains(cause)) else { return text };
        match text.split_once('\n') {
            Some((first, help)) => format!("{first}: {cause}\n{help}"),
            None => format!("{text}: {cause}"),
        }
    }

    /// Whether the input is wrong: the same input will be refused again.
    pub fn is_of_input(&self) -> bool {
        matches!(
            self,
            Self::Delta(_)
                | Self::Statements(
                    Error::Input { .. }
                        | Error::TooLarge(_)
                        | Error::Together(_)
                        | Error::Line { .. }
                        | Error::Skolem(_)
                        | Error::Unknown(_)
                        | Error::Graph { .. }
                )
        )
    }
}
