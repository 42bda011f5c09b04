//! What one run holds on to: options, state, folder, connections, and the reporter.

use crate::alternates::{Alternates, Changed};
use crate::error::Error;
use crate::events::{Event, Item, ItemAction, Observer};
use crate::fetch::Rules;
use crate::history::History;
use crate::options::SyncOptions;
use crate::package::Packages;
use crate::push::Told;
use crate::reporter::Reporter;
use crate::requests::Requests;
use crate::select::Selection;
use crate::sink::Sink;
use crate::sink::kept::ReadBack;
use crate::state_folder::StateFolder;
use abreast_net::Shared;
use abreast_store::mirror::Mirror;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One run.
pub(crate) struct Session<'a> {
    pub(crate) options: &'a SyncOptions,
    pub(crate) cancel: &'a AtomicBool,
    pub(crate) mirror: Mirror,
    pub(crate) state: StateFolder,
    pub(crate) sink: Option<Arc<dyn Sink>>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) requests: Requests<'a>,
    /// Who hears of it, and the tally.
    pub(crate) report: Reporter<'a>,
    /// Resources whose changes were read for the plan.
    pub(crate) changed: Changed,
    /// Earlier versions that lists link to.
    pub(crate) history: History,
    /// Packages that resources may be taken out of.
    pub(crate) packages: Packages,
    /// What was told before the run.
    pub(crate) told: Told,
    /// What the user's filters mean for this run.
    pub(crate) selection: Selection,
    /// Reads the files of the copy back, once one was asked for.
    pub(crate) kept: Option<Box<dyn ReadBack>>,
    /// Resources kept under the reserved name without need.
    pub(crate) misnamed: Vec<String>,
    /// Resources kept under the reserved name because of a folder that no resource needs.
    pub(crate) reserved: u64,
    unchanged_before: u64,
    excluded_before: u64,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        options: &'a SyncOptions,
        observer: &'a dyn Observer,
        cancel: &'a AtomicBool,
        mirror: Mirror,
        state: StateFolder,
        shared: Arc<Shared>,
        epoch: i64,
    ) -> Result<Self, Error> {
        let rules = Rules {
            require_fixity: options.require_fixity,
            immutable: options.immutable,
            authorization: options.authorization.clone(),
            authorized_url: options.url.clone(),
            robots: (!options.ignore_robots).then(Arc::default),
            admission: None,
            alternates: Alternates::default(),
            epoch,
        };
        Ok(Self {
            options,
            cancel,
            mirror,
            state,
            sink: None,
            rules: Arc::new(rules),
            requests: Requests::new(options, cancel, &shared)?,
            changed: Changed::default(),
            history: History::new(options.history.is_some()),
            packages: Packages::default(),
            told: Told::default(),
            selection: Selection::new(options.filter.clone()),
            report: Reporter::new(observer, &shared, options.dry_run),
            shared,
            kept: None,
            misnamed: Vec::new(),
            reserved: 0,
            unchanged_before: 0,
            excluded_before: 0,
        })
    }

    /// Where resources go, once the base is known.
    pub(crate) fn sink(&self) -> &Arc<dyn Sink> {
        self.sink.as_ref().expect("the base is known before anything is carried out")
    }

    /// Whether the base of the copy is known already, so that it need not be made out of what is listed.
    pub(crate) const fn knows_base(&self) -> bool {
        self.sink.is_some()
    }

    /// Begins a transaction; a dry run is one that never ends, and has parts.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        (self.unchanged_before, self.excluded_before) = (self.report.summary.unchanged, self.report.summary.excluded);
        Ok(if self.options.dry_run { self.mirror.begin_part() } else { self.mirror.begin() }?)
    }

    /// Keeps everything since [`Session::begin`].
    pub(crate) fn commit(&mut self) -> Result<(), Error> {
        Ok(if self.options.dry_run { self.mirror.join_part() } else { self.mirror.commit() }?)
    }

    /// Forgets everything since [`Session::begin`]: a plan half made is no plan.
    pub(crate) fn abandon(&mut self) -> Result<(), Error> {
        (self.report.summary.unchanged, self.report.summary.excluded) = (self.unchanged_before, self.excluded_before);
        if self.options.dry_run { self.mirror.give_up_part() } else { self.mirror.rollback() }?;
        Ok(self.mirror.clear_scratch()?)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    pub(crate) fn item(&self, uri: &str, leaf: bool, action: ItemAction, bytes: u64) {
        if !self.report.observer.wants_items() {
            return;
        }
        let path = self.sink.as_ref().map_or_else(|| uri.to_owned(), |sink| sink.shown(uri, leaf));
        self.report.observer.event(&Event::Item(Item { uri, path: &path, action, bytes }));
    }

    /// Was a limit of bytes or time reached? Shows it.
    pub(crate) fn over_limit(&self) -> bool {
        let Some((code, message)) = self.requests.allowance.reached() else { return false };
        self.report.problem(code, &self.options.url, &format!("{message}\n  help: the next run continues"));
        true
    }
}
