//! Resources of an RDF set: entities with descriptions in canonical N-Triples.
//!
//! The statements of a new complete state are sorted by line, compared with the current state in
//! the log entity by entity, and then recorded. Nothing is recorded if the input is invalid, and
//! neither state is completely in memory.
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
mod error;
mod keyed_hash;
pub(super) mod plan;
pub(super) mod record;
mod report;
mod seen;
mod target;
mod watch;
mod writer;

pub use abreast_statements::{Bytes as RdfBytes, Input as RdfInput};
pub use delta::{Delta, DeltaRow, apply, each_row};
pub use error::RdfError;
pub use report::RdfReport;
pub use target::{MEDIA_TYPE, RdfOptions, RdfTarget, check_records_of_files};
pub use watch::{RdfFolder, RdfWatch};
pub use writer::{
    Changing, Described, EntityWriter, Import, NotDescription, read_description, read_descriptions,
};

use abreast_rdf::Syntax;
use abreast_statements::{Error, SortedStatements};
use abreast_webtypes::Timestamp;

/// Replaces the complete state of the set with these inputs. Entities that the inputs do not
/// contain are deleted. An incomplete set is complete afterwards, and can be published. Entities
/// that are too large are counted and not recorded.
///
/// # Errors
/// If an input is invalid, or the guard holds the deletions, nothing is recorded. If the log, the
/// contents or the disk fail, some changes may be recorded; these are correct, and the same inputs
/// complete the state.
pub fn replace(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = Result<RdfInput, Error>>,
    modified: Timestamp,
) -> Result<RdfReport, RdfError> {
    replace_if(target, inputs, modified, &|| Ok(()))
}

/// Runs [`replace`], and calls `is_still` before recording to check that the inputs have not
/// changed.
fn replace_if(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = Result<RdfInput, Error>>,
    modified: Timestamp,
    is_still: &dyn Fn() -> Result<(), RdfError>,
) -> Result<RdfReport, RdfError> {
    in_folder(target.options, || {
        let inputs: Vec<_> = inputs.into_iter().collect::<Result<_, _>>()?;
        target.options.meter.begin("sorting");
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
    target.options.meter.begin("recording");
    record::record(target, plan, report.held.is_some(), modified)?;
    target.options.meter.end();
    if !target.options.dry_run && target.log.head(target.set)?.importing {
        target.log.complete_import(target.set)?;
    }
    Ok(())
}

/// Runs [`replace`] with statements that are already sorted.
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

/// Runs a function that needs temporary files, and adds the path of their folder to its errors.
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

/// Compares a single file of sorted N-Triples without copying it; `None` for any other input.
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
        // The caller then reads and sorts the input, so that errors contain a file and a line.
        Err(RdfError::Statements(Error::NotSorted { .. } | Error::Line { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
