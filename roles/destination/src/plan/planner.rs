//! The planner: the data from which a plan is made, and the results of reading that the transfer
//! uses.

use crate::copy::state_folder::StateFolder;
use crate::copy::{key, transaction};
use crate::plan::alternates::{Alternates, Changed};
use crate::plan::bodies::{Bodies, NewBodies};
use crate::plan::copy_check::CopyCheck;
use crate::plan::deprecation::Deprecations;
use crate::plan::history::History;
use crate::plan::open::Open;
use crate::plan::select::Selection;
use crate::plan::volume::Changes;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::request::admit::Admission;
use crate::request::package::download::Downloads;
use crate::request::package::listing::Dump;
use crate::request::requests::Requests;
use crate::sink::Sink;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Instant;

/// Makes the plan of a run.
pub(crate) struct Planner<'a> {
    pub(crate) options: &'a SyncOptions,
    pub(crate) mirror: &'a Mirror,
    /// The user's filters, applied to this run.
    pub(crate) selection: Selection,
    /// Earlier versions that lists link to.
    pub(crate) history: History,
    /// Mirrors and patches that lists link to.
    pub(crate) alternates: Arc<Alternates>,
    /// Which hosts resources may be on, once the Source is found.
    pub(crate) admission: Option<Admission>,
    /// The sink of the copy; `None` until its base is known.
    pub(crate) sink: Option<Arc<dyn Sink>>,
    /// Deprecated resources that are reported after their descriptions were received.
    pub(crate) deprecations: Arc<Deprecations>,
    /// The comparison of stored data with its rows.
    pub(crate) copy: CopyCheck,
    /// The packages on disk.
    pub(crate) downloads: Downloads,
    /// The file of planned bytes.
    pub(crate) bodies: Arc<Bodies>,
    /// Bytes that the changes being read add to that file.
    pub(crate) coming_bodies: Option<NewBodies>,
    /// The plan contains the changes since this time; `None` for a comparison with all resources.
    pub(crate) since: Option<Timestamp>,
    /// The number of this run, if it writes to the copy.
    pub(crate) epoch: i64,
    /// Data that this run and later ones wrote may be newer than the changes that the Source now
    /// lists.
    pub(crate) uncertain_from: Option<i64>,
    /// The last run whose versions may be lost; `None` until the copy was compared after the Source
    /// was restored.
    pub(crate) lost_until: Option<i64>,
    /// Earlier runs planned all changes up to this time.
    pub(crate) settled: Option<Timestamp>,
    /// The time of the newest list of resources that was read, even partially.
    pub(crate) listed: Option<Timestamp>,
    /// Resources for which the time of a list leaves the last change open.
    pub(crate) open: Open,
    /// The time of the list of all resources in microseconds, if it is still in the future by every
    /// clock.
    pub(crate) early: Option<i64>,
    /// The list of all resources has documents of this time and of an earlier time.
    pub(crate) mixed_until: Option<Timestamp>,
    /// The amount of changes since `since`.
    pub(crate) changes: Changes,
    /// The packages from whose manifests the plan was made.
    pub(crate) made_from: Option<Dump>,
    /// Notifications to plan from instead of requesting lists, if they continue from the cursor.
    pub(crate) notifications: Vec<Bytes>,
    pub(crate) polling: Polling,
    /// Resources whose changes were read for the plan.
    pub(crate) changed: Changed,
    /// Unchanged and excluded resources that were counted before the transaction.
    before: (u64, u64),
}

/// The context of a reader: requests, planner and reporter.
pub(crate) struct PlanContext<'p, 'a> {
    pub(crate) requests: &'p Requests<'a>,
    pub(crate) planner: &'p mut Planner<'a>,
    pub(crate) report: &'p mut Reporter<'a>,
}

/// The earliest time for requests of the lists, and the time of the last request.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    /// Not before this instant.
    pub(crate) earliest: Option<Instant>,
    /// The time of the last request in this run.
    pub(crate) polled: Option<Instant>,
    /// Whether a request was postponed because it was too early.
    pub(crate) is_postponed: bool,
    /// Whether the address of announcements is determined again.
    pub(crate) looks_again: bool,
}

impl Polling {
    /// Whether the lists may be requested now. If so, records a request at this time.
    pub(crate) fn may_poll(&mut self) -> bool {
        let now = Instant::now();
        if self.earliest.is_some_and(|earliest| now < earliest) {
            return false;
        }
        self.polled = Some(now);
        true
    }
}

impl<'a> Planner<'a> {
    pub(crate) fn new(
        options: &'a SyncOptions,
        mirror: &'a Mirror,
        state: StateFolder,
    ) -> Result<Self, Error> {
        Ok(Self {
            options,
            mirror,
            selection: Selection::new(options),
            history: History::new(options.history.is_some()),
            alternates: Arc::default(),
            admission: None,
            sink: None,
            deprecations: Arc::new(Deprecations::open(&options.replaced_by, mirror)?),
            copy: CopyCheck::default(),
            bodies: Arc::new(Bodies::open(state.clone(), mirror)?),
            coming_bodies: None,
            downloads: Downloads::new(state),
            since: None,
            epoch: mirror.meta(key::EPOCH)?.and_then(|text| text.parse().ok()).unwrap_or(0) + 1,
            uncertain_from: None,
            lost_until: None,
            settled: None,
            listed: None,
            open: Open::default(),
            early: None,
            mixed_until: None,
            changes: Changes::default(),
            made_from: None,
            notifications: Vec::new(),
            polling: Polling::default(),
            changed: Changed::default(),
            before: (0, 0),
        })
    }

    /// Starts a transaction. A dry run is a single transaction that is never committed, and its
    /// transactions are parts of the single one.
    pub(crate) fn begin(&mut self, report: &Reporter<'_>) -> Result<(), Error> {
        self.before = (report.summary.unchanged, report.summary.excluded);
        transaction::begin(self.mirror, self.options.dry_run)
    }

    /// Commits all changes since [`Planner::begin`].
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        transaction::commit(self.mirror, self.options.dry_run)
    }

    /// Discards all changes since [`Planner::begin`], because an incomplete plan must not be used.
    pub(crate) fn abandon(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        (report.summary.unchanged, report.summary.excluded) = self.before;
        transaction::abandon(self.mirror, self.options.dry_run)?;
        Ok(self.mirror.clear_scratch()?)
    }
}
