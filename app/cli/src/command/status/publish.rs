//! The public status of copies: `status --publish`, and the runs of a job with `publish_status`.

use super::collect;
use crate::admin::ask::Access;
use crate::command::places::Place;
use crate::program::errors::UsageError;
use crate::program::terminal;
use abreast_core::start_thread;
use abreast_maintenance::{PublishedStatus, STALLED_AFTER, StatusReport};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two writes of a follower.
const PAUSE: Duration = Duration::from_secs(60);
/// Time between two checks whether the first run of a follower has ended.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Limit of the time for a program that is asked.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Writes the public status of the reported copies.
///
/// # Errors
/// The report does not contain a copy, or the folder cannot be written.
pub(super) fn publish(report: &StatusReport, stalled_after: Duration, folder: &Path) -> Result<()> {
    if report.copies.is_empty() {
        bail!(UsageError(
            "`--publish` is for copies, and there is none (help: name the folder or the job of a copy)".to_owned()
        ));
    }
    Ok(PublishedStatus::new(report, stalled_after).publish(folder)?)
}

/// The public status of a job or folder, and the folder for its files.
#[derive(Debug)]
pub(crate) struct Publication {
    place: Place,
    folder: PathBuf,
    /// The last failure, which is reported once.
    failure: Option<String>,
}

impl Publication {
    /// Publishes the status of this place in this folder.
    pub(crate) const fn new(place: Place, folder: PathBuf) -> Self {
        Self { place, folder, failure: None }
    }

    /// Writes the files after a run. A failure is a warning, since the copy does not depend on these files.
    pub(crate) fn write(&mut self) {
        if let Some(report) = self.report() {
            self.publish(&report);
        }
    }

    /// Collects the report; `None` before the first run.
    fn report(&self) -> Option<StatusReport> {
        let access = Access::default();
        collect::report(std::slice::from_ref(&self.place), access, ANSWER_MAX).ok()
    }

    fn publish(&mut self, report: &StatusReport) {
        let written = publish(report, STALLED_AFTER, &self.folder);
        let failure = written.err().map(|error| format!("{error:#}"));
        if let Some(failure) = failure.as_ref().filter(|text| self.failure.as_ref() != Some(text)) {
            terminal::warning(failure);
        }
        self.failure = failure;
    }

    /// Writes the files after the first run, then each minute, and when the result is dropped.
    pub(crate) fn repeat(mut self) -> Repeated {
        let (stop, stopped) = channel::<()>();
        let thread = start_thread("status files", move || {
            let mut pause = FIRST_PAUSE;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let has_run = |report: &StatusReport| {
                    report.copies.iter().any(|copy| copy.last_run.is_some())
                };
                if let Some(report) = self.report().filter(has_run) {
                    self.publish(&report);
                    pause = PAUSE;
                }
            }
            self.write();
        });
        if let Err(error) = &thread {
            terminal::warning(&format!("cannot start the thread that writes the status: {error}"));
        }
        Repeated { stop: Some(stop), thread: thread.ok() }
    }
}

/// A thread that writes the files each minute, until this is dropped.
pub(crate) struct Repeated {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Repeated {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
