//! The driver: the order of a run, and the decisions that follow from the documents. It is the same
//! for all protocols.
//!
//! 1. Pushed changes are applied if they continue from the position.
//! 2. Otherwise, changes are read from the position on. If they do not continue from the position,
//!    there is a gap.
//! 3. At the first run and after a gap, the copy is compared with all resources that the Source
//!    lists; then changes since that list are read.
//!
//! A position moves in the transaction of its plan.

mod changes;
mod expected;
mod judged;
mod outcome;
mod pushed;
mod remarks;
mod snapshot;

use super::position::{Due, Position, Unknown};
use super::{Finding, Offers, Packages, Reader, SourceSet, Start, Whole, moved};
use crate::copy::key;
use crate::plan::manifest::Manifest;
use crate::plan::planner::PlanContext;
use crate::push::announcement::Announcement;
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Event, Mode, Observer, Problem};
use crate::report::options::SyncOptions;
use crate::request::package::archive::Package;
use crate::request::package::listing::{Offered, Packaged};
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Moment, Timestamp};
use outcome::{Compared, Followed};

/// A reader, with the facts that a run knows about it.
pub(crate) struct Driver {
    reader: Box<dyn Reader>,
    /// The time of the newest change that was pushed and is not planned yet.
    announced: Option<Timestamp>,
    /// Changes since the snapshot are read after its packages were used.
    has_rest: bool,
    /// Documents or entries that cannot be used were reported in this run.
    has_reported: bool,
    /// If the current comparison follows a gap: the time up to which the copy knew all changes
    /// before.
    known_before: Option<Timestamp>,
}

impl Driver {
    pub(crate) const fn of(reader: Box<dyn Reader>) -> Self {
        let (has_rest, has_reported) = (false, false);
        Self { reader, announced: None, has_rest, has_reported, known_before: None }
    }

    // Finding

    /// Finds the Source's documents for a run.
    pub(crate) fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error> {
        let (options, mirror, requests) = (run.planner.options, run.planner.mirror, run.requests);
        let (looks_again, report) = (run.planner.polling.looks_again, &mut *run.report);
        let mut notice = |code: &str, url: &str, message: &str| report.notice(code, url, message);
        let (known, is_moved) = (Some(mirror), moved::is_under_way(mirror)?);
        let found = self.reader.find(&mut Finding {
            requests,
            options,
            known,
            is_read_only: false,
            looks_again,
            is_moved,
            notice: &mut notice,
        });
        let start = match found {
            Err(error) if error.code() == "folder.source" => {
                return Err(moved::with_redirect(error, (requests, options), mirror)?);
            }
            found => found?,
        };
        requests.diagnostics.report(run.report);
        (self.has_rest, self.has_reported, self.known_before) = (false, false, None);
        if start.is_found_anew || is_moved {
            run.planner.begin(run.report)?;
            mirror.set_meta(key::SOURCE_URL, Some(&options.url))?;
            mirror.set_meta(key::SET, options.set.as_deref())?;
            self.reader.keep(mirror)?;
            moved::finish(mirror)?;
            run.planner.commit()?;
        }
        Ok(start)
    }

    /// Finds the documents for a comparison that does not change the copy. `known` is the database
    /// of the copy, which contains its set unless the user specifies the set.
    pub(crate) fn find_read_only(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        observer: &dyn Observer,
    ) -> Result<Start, Error> {
        let mut notice = |code: &str, uri: &str, message: &str| {
            observer.event(&Event::Notice(Problem { code, uri, message }));
        };
        let notice = &mut notice;
        let (is_read_only, looks_again) = (true, false);
        let is_moved = known.map(moved::is_under_way).transpose()?.unwrap_or(false);
        let mut finding =
            Finding { requests, options, known, is_read_only, looks_again, is_moved, notice };
        self.reader.find(&mut finding)
    }

    pub(crate) fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        self.reader.sets(requests, options)
    }

    // Requests by other modules.

    pub(crate) fn announcement(&self) -> Option<Announcement> {
        self.reader.announcement()
    }

    /// The dumps that may contain planned resources. With `since`, the plan consists of the changes
    /// since then.
    pub(crate) fn offered(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error> {
        self.reader.packages().map_or(Ok(Vec::new()), |packages| packages.offered(run, since))
    }

    /// The packages of the Source, if its protocol has any.
    pub(crate) fn packages(&mut self) -> Option<&mut dyn Packages> {
        self.reader.packages()
    }

    /// Which resource is which member of a package.
    pub(crate) fn manifest(
        &mut self,
        requests: &Requests<'_>,
        package: &Package,
        url: &str,
        packaged: Packaged,
    ) -> Result<Manifest, Error> {
        let Some(packages) = self.reader.packages() else {
            let message = format!("{url} is a package of a protocol without packages");
            return Err(Error::new("internal", ExitCode::Other, message));
        };
        packages.manifest(requests, package, url, packaged)
    }

    pub(crate) fn is_gone_if_empty(&self) -> bool {
        self.reader.is_gone_if_empty()
    }

    pub(crate) fn explain(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        error: Error,
    ) -> Error {
        self.reader.explain(requests, options, error)
    }

    /// Whether changes were announced that the copy does not have.
    pub(crate) fn is_behind(&self, mirror: &Mirror) -> Result<bool, Error> {
        let until = Position::load(mirror)?.until();
        Ok(self
            .announced
            .is_some_and(|announced| until.is_some_and(|until| until.last() < announced)))
    }

    // Reading without a plan

    // The order of a run

    /// Plans what makes the copy equal to the Source.
    pub(crate) fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        let (options, mirror) = (run.planner.options, run.planner.mirror);
        let offers = self.reader.offers(Some(mirror), options)?;
        let mut position = Position::load(mirror)?;
        let has_all = !matches!(offers.whole, Whole::Nothing(_));
        let has_other_filters = run.planner.selection.has_changed();
        if has_other_filters && !has_all {
            run.planner.selection.keep(mirror)?;
        }
        let is_compared = options.baseline
            || has_other_filters && has_all
            || offers.is_comparison_due
            || position.due.is_some()
            || position.until().is_none() && position.bookmark.is_none()
            || offers.changes.is_none();
        if !is_compared && self.plan_pushed(run, &position)? {
            // Pushed changes do not contain earlier changes that were missing.
            if let Some(unknown) = position.unknown.as_ref().filter(|unknown| unknown.is_fault) {
                run.report.lacking("gap", &options.url, &unknown.why);
            }
            return Ok(());
        }
        if !run.planner.polling.may_poll() {
            run.planner.polling.is_postponed = true;
            return Ok(());
        }
        if !is_compared {
            let newer_list = self.snapshot_since(run, &position)?;
            let is_list = newer_list.is_some();
            let followed = match newer_list {
                Some(why) => {
                    // Versions from a lost history are deleted, regardless of their times.
                    let unknown = position.unknown.as_ref();
                    let is_uncertain = unknown.is_some_and(|unknown| unknown.spares_absent);
                    let lost_until = unknown.and_then(|unknown| unknown.lost_until);
                    Followed::Gap(Due { why, is_uncertain, lost_until })
                }
                None => self.follow(run, &position, None)?,
            };
            let Followed::Gap(due) = followed else {
                if followed != Followed::Unchanged {
                    run.report.summary.mode = Mode::Incremental;
                }
                return Ok(());
            };
            if let Whole::Nothing(help) = offers.whole {
                return Err(Error::new("gap", ExitCode::Gap, due.why).with_help(help));
            }
            let message = format!("{}; comparing with all that the Source has now", due.why);
            run.report.notice("gap", offers.changes.as_deref().unwrap_or(&options.url), &message);
            // The reason is stored until a comparison succeeds, because the documents that show the
            // gap may be replaced before.
            position.due = Some(due);
            // A new list of all resources is not a gap.
            position.unknown = position.unknown.filter(|unknown| is_list || unknown.is_fault);
            position.store(mirror)?;
        }
        run.planner.since = None;
        match self.compare(run, &position, &offers)? {
            None => Ok(()),
            // Changes that the copy had seen are now missing, so versions from a later history are
            // not spared.
            Some(due) => {
                let message = format!("{}; comparing again", due.why);
                run.report.notice(
                    "gap",
                    offers.changes.as_deref().unwrap_or(&options.url),
                    &message,
                );
                let mut position = Position::load(mirror)?;
                position.due = Some(due);
                position.store(mirror)?;
                self.compare(run, &position, &offers).map(drop)
            }
        }
    }

    /// Plans what makes the copy equal to all that the Source has, and what changed since. Returns why that must be done
    /// again, if the Source went back and that was not known.
    fn compare(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        offers: &Offers,
    ) -> Result<Option<Due>, Error> {
        let is_uncertain =
            position.due.as_ref().is_some_and(|due| due.is_uncertain) || offers.is_comparison_due;
        run.planner.uncertain_from = position.run.filter(|_| is_uncertain);
        // Changes since the first comparison belong to the history of the Source.
        run.planner.lost_until = position.due.as_ref().and_then(|due| due.lost_until);
        let mut position = position.clone();
        if is_uncertain && run.planner.lost_until.is_none() {
            position.unsettle();
        }
        let position = &position;
        run.planner.listed = position.listed();
        // A new list of all resources is not a gap.
        let is_gap = position.due.is_some()
            && position.unknown.as_ref().is_none_or(|unknown| unknown.is_fault);
        // Times of a history that the Source has lost do not apply to its current history.
        let until = position.until().filter(|_| is_gap && !is_uncertain);
        self.known_before = until.map(Moment::first);
        let mut everything = position.nowhere();
        // After a gap, the changes that were seen may be older than those listed.
        if run.planner.uncertain_from.is_none() && position.due.is_none() {
            everything.remember(position);
        }
        let after = match offers.whole {
            Whole::Snapshot => match self.plan_snapshot(run, position, offers)? {
                // The list was not read completely, so the next run compares again.
                Compared::Unchanged | Compared::Read { is_whole: false, .. } => return Ok(None),
                Compared::Absent { is_due } => {
                    run.report.summary.mode = Mode::Baseline;
                    return self.plan_all(run, &everything, is_due);
                }
                Compared::Read { after, .. } => after,
            },
            Whole::Changes => {
                run.report.summary.mode = Mode::Baseline;
                return self.plan_all(run, &everything, false);
            }
            Whole::Nothing(_) => {
                let changes = offers.changes.as_deref().unwrap_or_default();
                let message = "there is no list of all resources to begin from; only the changes that are listed are applied";
                run.report.notice("gap", changes, message);
                run.report.summary.mode = Mode::Incremental;
                return self.plan_all(run, &everything, false);
            }
        };
        if offers.changes.is_none() || after.until().is_none() && after.bookmark.is_none() {
            return Ok(None);
        }
        if offers.changes_in_packages && run.planner.made_from.is_some() {
            self.has_rest = true;
            if run.planner.mirror.pending_counts()?.fetches > 0 {
                return Ok(None);
            }
        }
        Ok(match self.read_rest(run)? {
            Followed::Gap(due) => Some(due),
            _ => None,
        })
    }

    /// Plans all changes that are listed. Where a snapshot should be, the next run asks for it again. Returns as
    /// [`Driver::compare`] does.
    fn plan_all(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        is_snapshot_missing: bool,
    ) -> Result<Option<Due>, Error> {
        if let Followed::Gap(due) = self.follow(run, position, Some(run.report.summary.mode))? {
            return Ok(Some(due));
        }
        let mut after = Position::load(run.planner.mirror)?;
        if is_snapshot_missing && after.until().is_some() {
            let why = "the list of all resources could not be read".to_owned();
            after.unknown = Some(Unknown::fault(why));
            after.store(run.planner.mirror)?;
        }
        Ok(None)
    }

    /// Plans the changes since the snapshot, after the first part of the plan was carried out.
    /// Returns `true` if there may be more work.
    pub(crate) fn plan_rest(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        Ok(self.read_rest(run)? == Followed::Planned(true))
    }

    fn read_rest(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Followed, Error> {
        self.has_rest = false;
        let position = Position::load(run.planner.mirror)?;
        match self.follow(run, &position, Some(run.report.summary.mode)) {
            Err(error) if error.exit_code() == ExitCode::SourceInvalid => {
                let offers = self.reader.offers(None, run.planner.options)?;
                let changes = offers.changes.unwrap_or_default();
                run.report.list_failed(error.code(), &changes, &error.to_string());
                if run.planner.uncertain_from.is_some() {
                    // Resources that the list lacks may be among these changes.
                    run.planner.mirror.forget_absent()?;
                }
                let mut position = Position::load(run.planner.mirror)?;
                position.due.get_or_insert(Due::new("the changes could not be read", false));
                position.store(run.planner.mirror)?;
                Ok(Followed::Unchanged)
            }
            followed => followed,
        }
    }

    /// Whether changes wait until the plan so far was carried out.
    pub(crate) const fn has_rest(&self) -> bool {
        self.has_rest
    }

    /// Plans what changed while the plan was carried out; `false` when nothing more is known.
    pub(crate) fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let position = Position::load(run.planner.mirror)?;
        let may_follow = position.until().is_some() || position.bookmark.is_some();
        if !may_follow
            || position.due.is_some()
            || self.reader.offers(None, run.planner.options)?.changes.is_none()
            || !run.planner.polling.may_poll()
        {
            return Ok(false);
        }
        match self.follow(run, &position, None) {
            Err(error) if error.exit_code() == ExitCode::Cancelled => Err(error),
            // If other results persist, the next run reports them.
            followed => Ok(matches!(followed, Ok(Followed::Planned(true)))),
        }
    }
}
