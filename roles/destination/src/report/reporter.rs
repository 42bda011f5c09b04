//! The reporter: the events of a run for its observer, and its counts.

use crate::report::events::{Event, Observer, Problem, Status, Summary};
use crate::report::last_run::RunProblems;
use crate::report::lasting::Continued;
use abreast_core::Meter;
use abreast_net::Shared;
use abreast_webtypes::short_lines;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest pause between two status events.
const STATUS_PAUSE: Duration = Duration::from_millis(100);
/// Number of new failures that one run may have, at least. The limit of a large run is one percent
/// of its planned items.
const BUDGET_MIN: u64 = 100;

/// The result of a run so far, and its observer.
pub(crate) struct Reporter<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) summary: Summary,
    /// Resources that failed or were refused in this run, but not in an earlier run. Deletions are
    /// held back while there are any.
    pub(crate) new_failures: u64,
    /// Documents that this run could not use and the previous run could.
    pub(crate) new_faults: u64,
    /// The conditions that earlier runs left.
    pub(crate) lasting: Continued,
    /// Resources stored under the reserved name because a folder that no resource needs occupies
    /// their path.
    pub(crate) reserved: u64,
    /// The problems so far, for the record of the last run.
    pub(crate) problems: RefCell<RunProblems>,
    /// Shows the progress between the events too.
    pub(crate) meter: Meter,
    shared: Arc<Shared>,
    phase: &'static str,
    phase_began: Instant,
    status_shown: Option<Instant>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(observer: &'a dyn Observer, shared: &Arc<Shared>, is_dry_run: bool) -> Self {
        Self {
            observer,
            summary: Summary { dry_run: is_dry_run, ..Summary::default() },
            new_failures: 0,
            new_faults: 0,
            lasting: Continued::default(),
            reserved: 0,
            problems: RefCell::default(),
            meter: meter_of(observer, shared, "reading"),
            shared: Arc::clone(shared),
            phase: "reading",
            phase_began: Instant::now(),
            status_shown: None,
        }
    }

    pub(crate) fn begin_phase(&mut self, phase: &'static str) {
        (self.phase, self.phase_began, self.status_shown) = (phase, Instant::now(), None);
        self.meter = meter_of(self.observer, &self.shared, phase);
    }

    /// Reports the progress of the run, at most once per [`STATUS_PAUSE`].
    pub(crate) fn status(&mut self, done: u64, total: u64, total_bytes: u64) {
        self.meter.set(done);
        self.meter.expect(total, total_bytes);
        if self.status_shown.is_some_and(|shown| shown.elapsed() < STATUS_PAUSE) {
            return;
        }
        self.status_shown = Some(Instant::now());
        self.observer.event(&Event::Status(Status {
            phase: self.phase,
            done,
            total,
            bytes: self.shared.counters().bytes_received,
            total_bytes,
            seconds: self.phase_began.elapsed().as_secs_f64(),
        }));
    }

    pub(crate) fn notice(&mut self, code: &str, uri: &str, message: &str) {
        self.summary.notices += 1;
        let (uri, message) = (&*short_lines(uri), &*short_lines(message));
        self.observer.event(&Event::Notice(Problem { code, uri, message }));
    }

    /// Reports a failure without counting it.
    pub(crate) fn problem(&self, code: &str, uri: &str, message: &str) {
        let (uri, message) = (&*short_lines(uri), &*short_lines(message));
        let problem = Problem { code, uri, message };
        self.problems.borrow_mut().add(&problem);
        self.observer.event(&Event::Error(problem));
    }

    /// Counts and reports a document that cannot be read.
    pub(crate) fn list_failed(&mut self, code: &str, url: &str, message: &str) {
        let is_new = self.fault(code, url, message);
        self.new_faults += u64::from(is_new);
    }

    /// Counts and reports that the copy may be incomplete. Deletions are not held back: they are
    /// listed, or follow from a list that was read completely.
    pub(crate) fn lacking(&mut self, code: &str, url: &str, message: &str) {
        self.fault(code, url, message);
    }

    /// Counts and reports a fault, with the time of the first run that had the fault. Returns
    /// whether the fault is new.
    fn fault(&mut self, code: &str, url: &str, message: &str) -> bool {
        self.summary.failed += 1;
        let since = self.lasting.note(code, url).map(|since| format!("since {since}"));
        match &since {
            Some(since) => self.problem(code, url, &with_line(message, since)),
            None => self.problem(code, url, message),
        }
        since.is_none()
    }

    /// Counts and reports the entries of a document that were left out. Returns whether there are
    /// any: then the document was not read completely.
    pub(crate) fn left_out(&mut self, url: &str, skipped: u64) -> bool {
        if skipped > 0 {
            self.summary.skipped += skipped;
            if self.lasting.note("rs.entry", url).is_none() {
                self.new_failures += skipped;
            }
            let message = format!(
                "entries that cannot be understood and were left out (`--lenient`): {skipped}"
            );
            self.problem("rs.entry", url, &message);
        }
        skipped > 0
    }

    /// Whether there are more new failures than allowed for `planned` items. The first call that
    /// returns true reports the limit; the caller then ends the run.
    pub(crate) fn is_over_budget(&mut self, planned: u64, url: &str) -> bool {
        let (failures, most) = (self.new_failures + self.new_faults, BUDGET_MIN.max(planned / 100));
        if failures <= most || self.summary.budget_spent {
            return failures > most;
        }
        self.summary.budget_spent = true;
        let message = format!(
            "the run stops after {failures} new failures, since one run may have {most}; the rest is not tried\n  \
             help: find the cause of the first failures; the next run tries the rest"
        );
        self.problem("limit.failures", url, &message);
        true
    }
}

/// The meter of the observer, in a phase that begins now.
fn meter_of(observer: &dyn Observer, shared: &Arc<Shared>, phase: &'static str) -> Meter {
    let meter = observer.meter();
    if meter.is_listening() {
        meter.begin(phase);
        let (shared, before) = (Arc::clone(shared), shared.counters().bytes_received);
        meter.read_bytes_from(move || shared.counters().bytes_received.saturating_sub(before));
    }
    meter
}

/// Adds a line to a message, before its help.
pub(crate) fn with_line(message: &str, line: &str) -> String {
    let (what, help) = message.split_at(message.find("\n  help:").unwrap_or(message.len()));
    format!("{what}\n  {line}{help}")
}
