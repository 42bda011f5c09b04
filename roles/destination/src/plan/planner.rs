//! The planner: the state from which a plan is made, and the results of reading that the transfer
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

/// Makes the plan of one run.
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
    /// Where the copy is, once its base is known.
    pub(crate) sink: Option<Arc<dyn Sink>>,
    /// Deprecated resources that are reported when their descriptions came.
    pub(crate) deprecations: Arc<Deprecations>,
    /// Compares what is kept with what was written.
    pub(crate) copy: CopyCheck,
    /// Packages on disk.
    pub(crate) downloads: Downloads,
    /// The bytes that came with a list.
    pub(crate) bodies: Arc<Bodies>,
    /// What the changes that are being read add to them.
    pub(crate) coming_bodies: Option<NewBodies>,
    /// The plan is what changed since then; else it is a comparison with all.
    pub(crate) since: Option<Timestamp>,
    /// The number of this run, if it writes anything.
    pub(crate) epoch: i64,
    /// What this run and later ones wrote may be newer than the changes that the Source lists now.
    pub(crate) uncertain_from: Option<i64>,
    /// Up to this run, where the copy was compared since the Source went back.
    pub(crate) lost_until: Option<i64>,
    /// Earlier runs planned all changes up to here.
    pub(crate) settled: Option<Timestamp>,
    /// The time of the newest list of resources that was read, also in part.
    pub(crate) listed: Option<Timestamp>,
    /// What the time of a list leaves open.
    pub(crate) open: Open,
    /// The time of the list of all resources, microseconds, if no clock has reached it yet.
    pub(crate) early: Option<i64>,
    /// Some documents of the list of all resources are of this time, and others of an earlier one.
    pub(crate) mixed_until: Option<Timestamp>,
    /// How much has changed since then.
    pub(crate) changes: Changes,
    /// The packages from whose manifests the plan was made.
    pub(crate) made_from: Option<Dump>,
    /// Notifications to plan from instead of requesting lists, as far as they continue what is
    /// known.
    pub(crate) notifications: Vec<Bytes>,
    pub(crate) polling: Polling,
    /// Resources whose changes were read for the plan.
    pub(crate) changed: Changed,
    /// Unchanged and excluded resources counted when the transaction began.
    before: (u64, u64),
}

/// The context of a reader: requests, planner and reporter.
pub(crate) struct PlanContext<'p, 'a> {
    pub(crate) requests: &'p Requests<'a>,
    pub(crate) planner: &'p mut Planner<'a>,
    pub(crate) report: &'p mut Reporter<'a>,
}

/// When the lists may be requested, and when they were.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    /// Not before this instant.
    pub(crate) earliest: Option<Instant>,
    /// When they were last requested in this run.
    pub(crate) polled: Option<Instant>,
    /// It was too early to request them.
    pub(crate) is_postponed: bool,
    /// Where changes are announced is looked up again.
    pub(crate) looks_again: bool,
}

impl Polling {
    /// Whether the lists may be requested now; if so, they are.
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

    /// Begins a transaction; a dry run is one that never ends, and has parts.
    pub(crate) fn begin(&mut self, report: &Reporter<'_>) -> Result<(), Error> {
        self.before = (report.summary.unchanged, report.summary.excluded);
        transaction::begin(self.mirror, self.options.dry_run)
    }

    /// Keeps everything since [`Planner::begin`].
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        transaction::commit(self.mirror, self.options.dry_run)
    }

    /// Discards everything since [`Planner::begin`]: an incomplete plan is not a plan.
    pub(crate) fn abandon(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        (report.summary.unchanged, report.summary.excluded) = self.before;
        transaction::abandon(self.mirror, self.options.dry_run)?;
        Ok(self.mirror.clear_scratch()?)
    }
}
