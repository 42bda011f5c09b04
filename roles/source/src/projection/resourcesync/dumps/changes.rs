//! Change Dumps: the changes in a span of the log, with one bitstream for each change [rs-core
//! §13].
//!
//! A resource that changed twice has two entries with two paths, unless only last changes are
//! requested. The bytes of a replaced state are stored as an earlier version; the bytes of the last
//! state are in the folder. If the bytes of a change are not available, a package cannot cover its
//! span, and is not made.

use super::copy::{Copier, Item, Refused};
use super::parts::{Parts, Span};
use super::record::Dump;
use super::{DumpError, Job, path_in_package};
use crate::projection::resourcesync::{LinkDocument, state_links};
use abreast_core::{ChangeRecord, Kind, Position};
use abreast_resourcesync::v1_1::{Change, Entry, SPEC_MAX_ENTRIES};
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// Changes read from the log at a time.
const SLICE: usize = 1_024;

/// A span of the log: the changes after `after` up to and including `last`, and the times of the
/// span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) after: Position,
    pub(super) last: Position,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) which: Which,
}

/// Selection of the changes of a resource for the package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// All changes in the span.
    #[default]
    Every,
    /// The last change only. A change that is followed by a change after the span is left out too.
    Last,
}

/// Size of a span of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) changes: u64,
    pub(super) bytes: u64,
}

/// Computes the size of a span; stops at one change more than the limit of a package.
pub(super) fn weigh(job: &Job<'_>, range: &Range) -> Result<Weight, DumpError> {
    let mut weight = Weight::default();
    let mut after = range.after;
    job.meter.begin("dumping");
    while after < range.last && weight.changes <= SPEC_MAX_ENTRIES {
        let slice = slice(job, range, after)?;
        let Some(last) = slice.last() else { break };
        after = last.position;
        weight.changes += slice.len() as u64;
        for record in &slice {
            if let Some(length) = record.state.as_ref().and_then(|state| state.length)
                && is_wanted(job, range, record)?
            {
                weight.bytes += length;
            }
        }
    }
    Ok(weight)
}

/// Whether the package should have the change.
fn is_wanted(job: &Job<'_>, range: &Range, record: &ChangeRecord) -> Result<bool, DumpError> {
    Ok(range.which == Which::Every || is_last(job, record)?)
}

/// Whether the resource has not changed after this change.
fn is_last(job: &Job<'_>, record: &ChangeRecord) -> Result<bool, DumpError> {
    let now = job.log.resource(job.set.id, &record.key)?;
    Ok(now.map_or(record.state.is_none(), |resource| resource.position == record.position))
}

/// Last change in a span whose bytes are neither stored nor in the folder, because they were
/// deleted or are on another server.
pub(super) fn last_missing(
    job: &Job<'_>,
    range: &Range,
) -> Result<Option<(Position, String)>, DumpError> {
    let mut missing = None;
    let mut after = range.after;
    while after < range.last {
        let slice = slice(job, range, after)?;
        let Some(last) = slice.last() else { break };
        after = last.position;
        for record in slice {
            let Some(state) = &record.state else { continue };
            if job.bytes.has_kept(state) {
                continue;
            }
            let is_last = is_last(job, &record)?;
            let is_missing = !is_last || !job.bytes.has(&record.key, state);
            if is_missing && (is_last || range.which == Which::Every) {
                missing = Some((record.position, record.key));
            }
        }
    }
    Ok(missing)
}

fn slice(job: &Job<'_>, range: &Range, after: Position) -> Result<Vec<ChangeRecord>, DumpError> {
    let mut slice = Vec::with_capacity(SLICE);
    visit(job, &Range { after, ..*range }, &mut |record| {
        slice.push(record.clone());
        if slice.len() < SLICE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(slice)
}

fn visit(
    job: &Job<'_>,
    range: &Range,
    see: &mut dyn FnMut(&ChangeRecord) -> ControlFlow<()>,
) -> Result<(), DumpError> {
    job.log.read(job.set.id, range.after, &mut |record| {
        if record.position > range.last { ControlFlow::Break(()) } else { see(record) }
    })?;
    Ok(())
}

/// Makes the packages of a span in a folder; the packages are durable on return.
pub(super) fn make(
    job: &Job<'_>,
    range: &Range,
    folder: &Path,
    name: &str,
) -> Result<Dump, DumpError> {
    let span = Span::Changes { from: range.from, until: range.until };
    let mut parts = Parts::new(folder, name, span, job);
    let mut copier = Copier::new(&job.bytes, job.cancel);
    let mut after = range.after;
    while after < range.last {
        let slice = slice(job, range, after)?;
        let Some(last) = slice.last() else { break };
        after = last.position;
        for record in slice {
            job.meter.add(1, 0);
            if is_wanted(job, range, &record)? {
                copier.take(item(job, record), &mut parts)?;
            }
        }
        copier.flush(&mut parts)?;
        // The order of changes matters, so bytes cannot be added later.
        if let Some(Refused { key, why }) = copier.refused.pop() {
            return Err(DumpError::NotKept { key, why });
        }
    }
    let packages = parts.finish()?;
    Ok(Dump { name: name.to_owned(), begin: range.from, end: range.until, packages })
}

/// Like [`make`], but retries while a file is being changed: the bytes are stored when the change
/// is recorded.
pub(super) fn make_patiently(
    job: &Job<'_>,
    range: &Range,
    folder: &Path,
    name: &str,
) -> Result<Dump, DumpError> {
    let deadline = Instant::now() + job.options.patience;
    loop {
        match make(job, range, folder, name) {
            Err(DumpError::NotKept { .. })
                if Instant::now() < deadline && !job.cancel.is_wanted()
                    // Bytes that will never be available are not waited for.
                    && last_missing(job, range)?.is_none() =>
            {
                for entry in std::fs::read_dir(folder).map_err(DumpError::Write)? {
                    std::fs::remove_file(entry.map_err(DumpError::Write)?.path())
                        .map_err(DumpError::Write)?;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            made => return made,
        }
    }
}

fn item(job: &Job<'_>, record: ChangeRecord) -> Item {
    let ChangeRecord { position, time, kind, key, state, .. } = record;
    let at = Some(W3cDatetime { instant: time, precision: Precision::Fraction });
    let resources = job.set.urls.resources();
    let change = match kind {
        Kind::Create | Kind::Add => Change::Created,
        Kind::Remove | Kind::Delete => Change::Deleted,
        _ => Change::Updated,
    };
    // Both attributes, as in Change Lists, because clients of 1.0 use `lastmod` as the time of the
    // change.
    let mut entry = Entry { lastmod: at, datetime: at, change: Some(change), ..Entry::default() };
    job.set.urls.naming().write_uri(&key, &mut entry.loc);
    if let Some(state) = &state {
        entry.digests.clone_from(&state.digests);
        entry.length = state.length;
        entry.media_type.clone_from(&state.media_type);
        entry.encoding.clone_from(&state.encoding);
        entry.path = Some(path_in_package(&format!("changes/{position}"), &key));
        state_links(&resources, state, LinkDocument::ChangeDumpManifest, &mut entry.links);
    }
    Item { key, state, entry, time }
}
