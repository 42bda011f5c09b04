//! Checks a store that several nodes share: the rows of its database, and the contents in its bucket.

use crate::check::report::CheckReport;
use crate::place::{Context as _, Error, ReadShare, Result};
use abreast_core::contents::ContentStore;
use abreast_core::{ContentId, Meter, on_threads};
use abreast_store::integrity::{Findings, SharedStore};
use abreast_webtypes::count;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Contents that are checked between two reads of the database.
const PART: usize = 512;
/// Threads that ask for contents, since a bucket takes time for each request.
const THREADS: usize = 8;

/// The shared store to check, and how much of its data is read.
#[derive(Clone)]
pub struct SharedCheckOptions<'c> {
    /// The rows of the store.
    pub store: &'c dyn SharedStore,
    /// Name of the store in findings, without a password.
    pub shown: String,
    /// The bucket with its address. Without one, contents are not checked.
    pub contents: Option<(String, &'c dyn ContentStore)>,
    /// The share of contents whose bytes are read.
    pub read: ReadShare,
    /// Shows how far the check is.
    pub meter: Meter,
}

impl std::fmt::Debug for SharedCheckOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedCheckOptions").field("shown", &self.shown).finish_non_exhaustive()
    }
}

/// Checks a store that several nodes share, and may use meanwhile. A check that cannot be completed returns the
/// findings up to there, and the reason in [`CheckReport::failures`].
pub fn check_shared(options: &SharedCheckOptions<'_>, cancel: &AtomicBool) -> CheckReport {
    let mut report = CheckReport { is_shared: true, ..CheckReport::default() };
    let checked = check_rows(options, &mut report, cancel)
        .and_then(|()| check_contents(options, &mut report, &|_, _| {}, cancel));
    if let Err(error) = checked {
        report.failures.push(error);
    }
    report.is_complete = report.failures.is_empty();
    report.is_cancelled = !report.is_complete && cancel.load(Ordering::Relaxed);
    report
}

fn check_rows(
    options: &SharedCheckOptions<'_>,
    report: &mut CheckReport,
    cancel: &AtomicBool,
) -> Result<()> {
    options.meter.begin("checking");
    let is_stopped = || cancel.load(Ordering::Relaxed);
    let (place, findings) = (&options.shown, &mut report.findings);
    for set in options.store.check_log(place, findings, &options.meter, &is_stopped)? {
        let resources = count(set.resources, "resource");
        report
            .notes
            .push(format!("set {}: {resources}, up to position {}", set.slug, set.position));
    }
    Ok(())
}

/// Checks that each content that a row needs is in the bucket. Passes the address and the expected length of each
/// other content to `damaged`.
pub(crate) fn check_contents(
    options: &SharedCheckOptions<'_>,
    report: &mut CheckReport,
    damaged: &(dyn Fn(ContentId, u64) + Sync),
    cancel: &AtomicBool,
) -> Result<()> {
    let mut part = options.store.needed_contents(&[], PART)?;
    let Some((bucket, contents)) = &options.contents else {
        if !part.is_empty() {
            let note = "kept contents: not checked, since their bucket is not known";
            report.notes.push(note.to_owned());
        }
        return Ok(());
    };
    options.meter.begin("checking contents");
    let check = ContentCheck {
        options,
        contents: *contents,
        bucket,
        wants: &options.read.selection(),
        findings: Mutex::new(&mut report.findings),
        damaged,
        read: AtomicU64::new(0),
    };
    let mut kept = 0;
    while let Some((last, _)) = part.last().copied() {
        on_threads(THREADS, &part, &|(id, length)| {
            if cancel.load(Ordering::Relaxed) {
                Err(Error::Cancelled)
            } else {
                check.check(id, *length)
            }
        })
        .with_context(|| format!("cannot check the kept contents in `{bucket}`"))?;
        kept += part.len() as u64;
        part = options.store.needed_contents(last.as_bytes(), PART)?;
    }
    let read = check.read.into_inner();
    if kept > 0 {
        report.notes.push(format!("kept contents: {kept}, {read} read"));
    }
    Ok(())
}

/// The check of contents, which several threads share.
struct ContentCheck<'c> {
    options: &'c SharedCheckOptions<'c>,
    contents: &'c dyn ContentStore,
    bucket: &'c str,
    wants: &'c (dyn Fn(&str) -> bool + Sync),
    findings: Mutex<&'c mut Findings>,
    damaged: &'c (dyn Fn(ContentId, u64) + Sync),
    read: AtomicU64,
}

impl ContentCheck<'_> {
    fn check(&self, id: &ContentId, expected: u64) -> Result<()> {
        let name = id.to_string();
        let _named = self.options.meter.item(|| name.clone());
        self.options.meter.add(1, 0);
        match self.contents.length(id)? {
            None => self.missing(id, expected)?,
            Some(length) if length != expected => {
                let message = format!("{}, {expected} were kept", count(length, "byte"));
                self.report("contents.length", id, expected, &message);
            }
            Some(length) if (self.wants)(&name) => {
                self.read.fetch_add(1, Ordering::Relaxed);
                self.options.meter.add(0, length);
                if self.contents.is_whole(id)? {
                    return Ok(());
                }
                // A node may have removed the content meanwhile.
                if self.contents.contains(id)? {
                    self.report("contents.digest", id, expected, "other bytes than were kept");
                } else {
                    self.missing(id, expected)?;
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Reports a missing content, unless a node removed it together with the rows that needed it.
    fn missing(&self, id: &ContentId, expected: u64) -> Result<()> {
        if self.options.store.is_needed(id)? {
            self.report("contents.missing", id, expected, "rows need bytes that are not kept");
        }
        Ok(())
    }

    fn report(&self, rule: &'static str, id: &ContentId, expected: u64, message: &str) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.add(rule, format!("{}: {id}", self.bucket), message);
        (self.damaged)(*id, expected);
    }
}
