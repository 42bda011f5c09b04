//! Checks stored data for damage. Read-only, and safe while a server is running.

mod advice;
mod contents;
mod report;
pub(crate) mod shared;
pub(crate) mod store;

pub use report::{CheckReport, CheckSummary, ReportedFinding};
pub use shared::{SharedCheckOptions, check_shared};

use crate::backup::manifest::{backups_in, is_backup};
use crate::backup::verify::check_backup;
use crate::place::{Context as _, Error, Place, ReadShare, Result, StateFolders, StoreRecord};
use crate::place::{holder_of, there};
use abreast_core::Meter;
use abreast_destination::check::check_copy;
use abreast_store::integrity::{Findings, check_hub};
use abreast_webtypes::count;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use store::StoreCheck;

/// The folder to check, and how much of its data is read.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// The folder of a store, a copy or backups.
    pub place: Place,
    /// The copies of all sets in the folder, each with the path of its folder. They are checked if the folder itself contains
    /// neither a store nor a copy.
    pub sets: Vec<(String, StateFolders)>,
    /// The share of contents, files and packages whose bytes are read.
    pub read: ReadShare,
    /// Further records in the folder of a store.
    pub records: Vec<StoreRecord>,
    /// Shows how far the check is.
    pub meter: Meter,
}

impl CheckOptions {
    /// Creates options that compare paths and lengths, and read no contents.
    pub fn new(place: impl Into<Place>) -> Self {
        let (place, sets, records) = (place.into(), Vec::new(), Vec::new());
        Self { place, sets, read: ReadShare::NONE, records, meter: Meter::default() }
    }
}

/// Checks the stores, copies or backups in a folder. Backups are always read completely. A check that cannot be completed
/// returns the findings up to there, and the reason in [`CheckReport::failures`].
///
/// # Errors
/// The folder has neither a store nor a copy, or permission is denied to search for them.
pub fn check(options: &CheckOptions, cancel: &AtomicBool) -> Result<CheckReport> {
    let backups = backups_of(&options.place.folder)?;
    if !backups.is_empty() {
        return Ok(check_backups(&backups, cancel, &options.meter));
    }
    let places = StateFolders::of(&options.place, &options.sets)?;
    let mut report = CheckReport::default();
    for (set, place) in &places {
        let mut lines = Vec::new();
        if let (Some(set), true) = (set, place.is_none()) {
            let message = format!("the set in {set} has no copy yet");
            report.findings.note("sets.missing", options.place.shown.as_str(), message);
            continue;
        }
        let checked = check_folder(place, options, &mut report.findings, &mut lines, cancel);
        report.notes.extend(lines.iter().map(|line| of_set(set.as_deref(), line)));
        if let Err(error) = checked {
            report.failures.push(error);
            break;
        }
    }
    report.is_complete = report.failures.is_empty();
    report.is_cancelled = !report.is_complete && cancel.load(Ordering::Relaxed);
    Ok(report)
}

/// The backups that a folder has, or is; none of the folder of a store or of a copy.
fn backups_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let is_other = !StateFolders::find(dir)?.is_none() && !is_backup(dir);
    if is_other || !there::is_dir(dir)? {
        return Ok(Vec::new());
    }
    backups_in(dir).with_context(|| format!("cannot read `{}`", dir.display()))
}

/// Whether a part of a backup could not be read, so that its bytes are not known.
fn is_unreadable(error: &Error) -> bool {
    let is_of_reading = |error: &std::io::Error| {
        use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
        !matches!(error.kind(), NotFound | InvalidData | UnexpectedEof)
    };
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_of_reading))
        || error.chain().any(|cause| {
            let kind = cause.downcast_ref().map(abreast_core::LogError::kind);
            kind == Some(abreast_core::ErrorKind::Io)
        })
}

/// Checks all data of backups, because an incomplete backup cannot be restored. Contents that several
/// backups need are read once.
fn check_backups(backups: &[PathBuf], cancel: &AtomicBool, meter: &Meter) -> CheckReport {
    let (mut report, mut whole) = (CheckReport::default(), HashSet::new());
    for backup in backups {
        match check_backup(backup, &mut whole, cancel, meter) {
            Err(_) if cancel.load(Ordering::Relaxed) => {
                report.is_cancelled = true;
                break;
            }
            Ok(manifest) => {
                let sets = count(manifest.sets.len() as u64, "set");
                report.notes.push(format!("backup of {}: whole, {sets}", manifest.created));
            }
            Err(error) if is_unreadable(&error) => {
                let task = format!("cannot check the backup `{}`", backup.display());
                report.failures.push(Error::During { task, cause: Box::new(error) });
            }
            Err(error) => {
                let location = backup.display().to_string();
                let (mut text, help) = error.text_and_help();
                if let Some(help) = help {
                    text = format!("{text}\n  help: {help}");
                }
                report.findings.add("backup.damaged", location, text);
            }
        }
    }
    report.is_complete = report.failures.is_empty() && !report.is_cancelled;
    report
}

/// A line about one set of several.
pub(crate) fn of_set(set: Option<&str>, line: &str) -> String {
    set.map_or_else(|| line.to_owned(), |set| format!("{set}: {line}"))
}

fn check_folder(
    place: &StateFolders,
    options: &CheckOptions,
    findings: &mut Findings,
    notes: &mut Vec<String>,
    cancel: &AtomicBool,
) -> Result<()> {
    let wants = options.read.selection();
    if let Some(store) = &place.store {
        if let Some(pid) = holder_of(&store.join("source.lock")) {
            notes.push(format!("process {pid} is using the store"));
        }
        let check = StoreCheck {
            store,
            wants: &wants,
            records: &options.records,
            cancel,
            meter: &options.meter,
        };
        check.run(findings, notes, &mut |_, _| {})?;
    }
    if let Some(hub) = &place.hub {
        let facts = check_hub(hub, findings)?;
        notes.push(format!(
            "hub: {}, {}, subscriptions and hubs to notify: {}",
            count(facts.topics, "topic"),
            count(facts.notifications, "notification"),
            facts.targets
        ));
    }
    if let Some(place) = &place.copy {
        if let Some(pid) = place.lock_file().and_then(|lock| holder_of(&lock)) {
            notes.push(format!(
                "process {pid} is using the copy: its changes during the check may be reported as findings"
            ));
        }
        let facts = check_copy(place, &wants, findings, cancel, &options.meter)?;
        notes.push(format!("copy: {}, {} read", count(facts.resources, "resource"), facts.read));
    }
    Ok(())
}
