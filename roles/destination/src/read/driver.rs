//! The driver: the order of a run, and what follows for the copy from what documents show. The same for every protocol.
//!
//! 1. What was pushed is applied if it continues from the position.
//! 2. Else changes are read from the position on. If they do not continue from it, there is a gap.
//! 3. At the first run and after a gap, the copy is compared with all that the Source lists; then changes since that
//!    list are read.
//!
//! A position moves in the transaction of the plan that it belongs to.

use super::expectation::Expectation;
use super::marks::Marks;
use super::position::{Due, Of, Position, Span, Unknown};
use super::walk::{AHEAD_MAX, Visitor, Walk, Walked};
use super::{Announcement, Finding, Offers, Packages, Reader, Snapshot, SourceSet, Start, Whole};
use crate::alternates::Changed;
use crate::clock::{now, now_seconds};
use crate::error::{Error, ExitCode};
use crate::events::{Event, Mode, Observer, Problem};
use crate::moved;
use crate::options::SyncOptions;
use crate::package::archive::Package;
use crate::package::download::Downloads;
use crate::package::listing::{Offered, Packaged};
use crate::package::manifest::Manifest;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::plan::planning::Planning;
use crate::requests::Requests;
use crate::skolem;
use crate::state::key;
use abreast_store::mirror::{ChangeOrder, Mirror};
use abreast_webtypes::{Moment, Timestamp};
use std::time::Duration;

/// Times a snapshot that changes while it is read is read again.
const READS_MAX: usize = 3;
/// How long documents may lack what was pushed.
const LATE_MAX: Duration = Duration::from_secs(15 * 60);
/// What is pushed may have times that our own clock has not reached by this, microseconds.
const CLOCK_MICROS: i64 = 60_000_000;

/// A reader with what a run knows about it.
pub(crate) struct Driver {
    reader: Box<dyn Reader>,
    /// The time of the newest change that was pushed and is not planned.
    announced: Option<Timestamp>,
    /// Changes since the snapshot are read when its packages have been used.
    has_rest: bool,
    /// What cannot be used was reported in this run.
    has_reported: bool,
    /// The comparison under way follows a gap: up to when the copy was known before.
    known_before: Option<Timestamp>,
}

/// What changes show.
#[derive(Debug, PartialEq, Eq)]
enum Judged {
    /// They continue from the position.
    Continued,
    /// They lack what was pushed; what it means if they should have it.
    Late(String),
    /// Changes since the position cannot all be known; why.
    Gap(Due),
}

/// The result of reading changes.
#[derive(Debug, PartialEq, Eq)]
enum Followed {
    Unchanged,
    /// The changes are in the plan; whether there were any.
    Planned(bool),
    /// Pushed changes are still missing in the documents.
    Late,
    Gap(Due),
}

/// The result of a comparison with a snapshot.
enum Compared {
    /// It is as it was read before.
    Unchanged,
    /// There is none, so that the changes are all there is; whether it is due when there is one.
    Absent { is_due: bool },
    Read {
        /// The position after it; without a time where the time of the snapshot is not known.
        after: Box<Position>,
        /// All of it was read.
        is_whole: bool,
    },
}

/// Judges a walk by what the copy knew before it.
///
/// What the Source lists no longer was removed if all that is left is later; else the Source went back to an earlier state.
fn judge_walk(position: &Position, walked: &Walked, marks: &Marks) -> Judged {
    let is_newer_cut = walked.cut.as_ref().is_some_and(|cut| cut.is_newer);
    let lost = marks
        .newest_lost(walked.end.or(walked.from.map(Moment::first)))
        .filter(|_| !is_newer_cut && (walked.dated > 0 || walked.entries == 0));
    // Documents that cover its time and do not list it are of another history.
    let is_removed = lost.is_some_and(|lost| {
        walked.oldest.is_some_and(|oldest| lost < oldest)
            && walked.from.is_none_or(|from| lost < from.first())
    });
    let went_back = |time: Timestamp| {
        format!(
            "the changes of {time}, which were applied, are not listed any more: the Source went back"
        )
    };
    let Some(until) = position.until() else {
        // A walk that was cut saw changes, and the position did not move.
        return match lost.filter(|_| walked.cut.is_none() && !is_removed) {
            Some(lost) => Judged::Gap(Due { why: went_back(lost), is_uncertain: true }),
            None => Judged::Continued,
        };
    };
    let (why, is_uncertain) = if walked.is_ahead {
        let why = format!(
            "the copy is known up to {}, which the Source's clock has not reached: its clock was wrong then, or is now",
            until.first()
        );
        (why, true)
    } else if let Some(why) = &walked.went_back {
        (why.clone(), true)
    } else if let Some(why) = &walked.hole {
        // What is left ends before it.
        let newest = walked.newest.map(Moment::last);
        (why.clone(), lost.zip(newest).is_some_and(|(lost, newest)| newest < lost))
    } else if let Some(from) = walked.from.filter(|from| !position.is_touched_by(*from)) {
        let (from, until) = (from.first(), until.first());
        let why = format!(
            "the changes that are listed begin at {from}, after {until}, up to which the copy is known"
        );
        (why, false)
    } else if let Some(seen) = position.newest_seen().filter(|seen| {
        let newest = walked
            .newest
            .filter(|_| walked.from.is_none() && walked.end.is_none() && !is_newer_cut);
        newest.is_some_and(|newest| newest.last() < *seen)
    }) {
        let newest = walked.newest.map(|newest| newest.first().to_string()).unwrap_or_default();
        let why = format!("the changes end at {newest}, and changes of {seen} were seen already");
        (why, true)
    } else {
        let is_unchanged_end =
            walked.entries == 0 && walked.from.is_some_and(|from| from.contains(until.first()));
        match lost.filter(|_| !is_unchanged_end) {
            Some(lost) if is_removed => {
                let why = format!(
                    "the changes of {lost}, up to which the copy is known, were removed from those listed"
                );
                (why, false)
            }
            Some(_) => (went_back(until.first()), true),
            None => return Judged::Continued,
        }
    };
    // Documents with later changes would have what was pushed.
    let has_later = walked.newest.is_some_and(|newest| newest.first() > until.last());
    if position.of() == Of::Pushed && !has_later {
        Judged::Late(why)
    } else {
        Judged::Gap(Due { why, is_uncertain })
    }
}

/// Why changes between a snapshot and those listed after a gap are not known: an earlier state of the copy had later ones, or
/// the documents do not give since when they list all changes.
fn unknown_between(
    position: &Position,
    walked: &Walked,
    known_before: Option<Timestamp>,
) -> Option<String> {
    let snapshot = position.snapshot()?;
    if known_before.is_none_or(|known| known <= snapshot && !walked.is_apart) {
        return None;
    }
    let is_reached = walked.from.is_some_and(|from| from.first() <= snapshot)
        || walked.oldest.is_some_and(|oldest| oldest <= snapshot);
    let why = || {
        format!(
            "the list of all resources is of {snapshot}, and the changes since then are not all listed"
        )
    };
    walked.recheck.clone().or_else(|| (!is_reached).then(why))
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

    /// Finds them for reading what the Source lists, and keeps nothing; `known` is the state of the copy, which names its
    /// set where the user does not.
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

    // What others ask

    pub(crate) fn announcement(&self) -> Option<Announcement> {
        self.reader.announcement()
    }

    /// The dumps that planned resources may be in; `since` where the plan is what changed since then.
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

    /// Hands over all that the Source has now: what it lists, and the changes since. `known` is the state of the copy that
    /// is compared with it.
    ///
    /// # Errors
    /// Something cannot be read, so that what is missing is not known.
    pub(crate) fn expect(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        to: &mut dyn Visitor,
    ) -> Result<Expectation, Error> {
        let offers = self.reader.offers(None, options)?;
        let known = known.map(Position::load).transpose()?.unwrap_or_default();
        let mut expectation = Expectation::new(&known, self.reader.is_gone_if_empty());
        let mut position = Position::default();
        if offers.whole == Whole::Snapshot {
            let mut walk = Walk::new((requests, options), &position, false, to);
            let snapshot = self.reader.snapshot(&mut walk)?;
            let is_whole = walk.is_whole();
            position.reset(snapshot.changes_from);
            position.bookmark = snapshot.bookmark;
            expectation.list.at = snapshot.as_of;
            expectation.lists_all = snapshot.lists_all && is_whole;
            expectation.is_lacking = !is_whole;
            if snapshot.lists_all && position.until().is_none() && position.bookmark.is_none() {
                return Ok(expectation);
            }
        } else if let Whole::Nothing(help) = offers.whole {
            let message = "the Source lists only changes, so nothing can be compared with them";
            return Err(Error::new("list.none", ExitCode::Usage, message).with_help(help));
        }
        let Some(url) = offers.changes else { return Ok(expectation) };
        // What the copy could not learn, this list does not show either.
        if let Some(unknown) = known.unknown.as_ref().filter(|unknown| unknown.is_fault)
            && position.snapshot() <= known.snapshot()
        {
            expectation.is_lacking = true;
            to.notice(
                "gap",
                &url,
                &format!("{}; changes in between are not compared", unknown.why),
            );
        }
        if known.due.is_none() {
            position.remember(&known);
        }
        let admission = Some(crate::admit::Admission::new(
            &options.url,
            &options.allow_hosts,
            options.allow_downgrade,
        ));
        let mut walk =
            Walk::new((requests, options), &position, false, &mut *to).with_admission(admission);
        self.reader.changes(&mut walk)?;
        let (walked, marks) = walk.finish();
        if let Some(cut) = walked.cut {
            let message = format!(
                "{}: {}; a copy cannot be compared with what was not reached",
                cut.url, cut.why
            );
            return Err(Error::new(cut.code, ExitCode::Partial, message)
                .with_help("report it to the server's operator"));
        }
        expectation.is_lacking |= walked.left_out;
        for (is_lacking, code, url, message) in remarks(&url, &walked) {
            expectation.is_lacking |= is_lacking;
            to.notice(code, url, &message);
        }
        let is_pushed = known.of() == Of::Pushed;
        match judge_walk(&position, &walked, &marks) {
            Judged::Gap(due) if due.is_uncertain && !is_pushed => {
                expectation.list.is_uncertain = true;
            }
            Judged::Gap(Due { why, .. }) | Judged::Late(why) => {
                expectation.has_gap = true;
                // A copy that followed the changes in between has them.
                let is_followed = known.due.is_none()
                    && known.unknown.as_ref().is_none_or(|unknown| !unknown.is_fault)
                    && walked.from.is_none_or(|from| known.is_touched_by(from));
                if !is_followed {
                    expectation.is_lacking = true;
                    let message = format!("{why}; changes in between are not compared");
                    to.notice("gap", &url, &message);
                }
            }
            // Feeds that do not state since when they list all changes show it by an older one.
            Judged::Continued => {
                let is_reached = walked.from.is_some() || walked.new < walked.entries;
                expectation.has_gap =
                    !is_reached || walked.end == Some(Timestamp::MAX) || walked.recheck.is_some();
            }
        }
        Ok(expectation)
    }

    /// Hands over each listed resource; whether a list of all has them. Lists that cannot be read are left out, but for
    /// the first. Packages are received into `downloads`, if given.
    pub(crate) fn each_resource(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        downloads: Option<&Downloads>,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<bool, Error> {
        let position = Position::default();
        let mut listing = Listing { downloads, each };
        let mut walk = Walk::new((requests, options), &position, false, &mut listing);
        let has_list = match self.reader.offers(None, options)?.whole {
            Whole::Snapshot => self.reader.snapshot(&mut walk)?.lists_all,
            Whole::Changes | Whole::Nothing(_) => false,
        };
        if !has_list {
            self.reader.changes(&mut walk)?;
        }
        Ok(has_list)
    }

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
            // What is pushed does not show what was missing before.
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
            let followed = match self.snapshot_since(run, &position)? {
                Some(why) => Followed::Gap(Due { why, is_uncertain: false }),
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
            // Until the comparison has succeeded: what shows the gap may be superseded then.
            position.due = Some(due);
            position.store(mirror)?;
        }
        run.planner.since = None;
        match self.compare(run, &position, &offers)? {
            None => Ok(()),
            // What the copy had seen before is not there any more: nothing of a later history is spared.
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
        let mut position = position.clone();
        if is_uncertain {
            position.unsettle();
        }
        let position = &position;
        run.planner.listed = position.listed();
        // A new list of all resources is no gap.
        let is_gap = position.due.is_some()
            && position.unknown.as_ref().is_none_or(|unknown| unknown.is_fault);
        let until = position.until().filter(|_| is_gap);
        self.known_before = until.map(Moment::first);
        let everything = position.nowhere();
        let after = match offers.whole {
            Whole::Snapshot => match self.plan_snapshot(run, position, offers)? {
                // Without all of the list, the next run compares again.
                Compared::Unchanged | Compared::Read { is_whole: false, .. } => return Ok(None),
                Compared::Absent { is_due } => {
                    run.report.summary.mode = Mode::Baseline;
                    return self.plan_all(run, &everything, is_due).map(|()| None);
                }
                Compared::Read { after, .. } => after,
            },
            Whole::Changes => {
                run.report.summary.mode = Mode::Baseline;
                return self.plan_all(run, &everything, false).map(|()| None);
            }
            Whole::Nothing(_) => {
                let changes = offers.changes.as_deref().unwrap_or_default();
                let message = "there is no list of all resources to begin from; only the changes that are listed are applied";
                run.report.notice("gap", changes, message);
                run.report.summary.mode = Mode::Incremental;
                return self.plan_all(run, &everything, false).map(|()| None);
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

    /// Plans all changes that are listed. Where a snapshot should be, the next run asks for it again.
    fn plan_all(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        is_snapshot_missing: bool,
    ) -> Result<(), Error> {
        self.follow(run, position, Some(run.report.summary.mode))?;
        let mut after = Position::load(run.planner.mirror)?;
        if is_snapshot_missing && after.until().is_some() {
            let why = "the list of all resources could not be read".to_owned();
            after.unknown = Some(Unknown::fault(why));
            after.store(run.planner.mirror)?;
        }
        Ok(())
    }

    /// Plans what changed since the snapshot, once the plan so far need not be kept apart; `true` when there may be more to
    /// do.
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
                let mut position = Position::load(run.planner.mirror)?;
                let why = "the changes could not be read".to_owned();
                position.due.get_or_insert(Due { why, is_uncertain: false });
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
            // Other results are reported by the next run, if they last.
            followed => Ok(matches!(followed, Ok(Followed::Planned(true)))),
        }
    }

    /// Why the copy is to be compared with a snapshot that is newer than one whose changes are not all known.
    fn snapshot_since(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
    ) -> Result<Option<String>, Error> {
        let Some(unknown) = &position.unknown else { return Ok(None) };
        let options = run.planner.options;
        if self.reader.offers(None, options)?.whole != Whole::Snapshot {
            if unknown.is_fault && !unknown.is_cut {
                run.report.lacking("gap", &options.url, &unknown.why);
            }
            return Ok(None);
        }
        let mut probe = Probe { mirror: run.planner.mirror, has_begun: false, faults: Vec::new() };
        let mut walk = Walk::new((run.requests, run.planner.options), position, true, &mut probe);
        let read = self.reader.snapshot(&mut walk);
        let Probe { has_begun, faults, .. } = probe;
        match read {
            Err(error) if error.exit_code() == ExitCode::Cancelled => Err(error),
            _ if has_begun => {
                Ok(Some(format!("{}, and there is a new list of all resources", unknown.why)))
            }
            _ => {
                for (code, url, message) in &faults {
                    run.report.lacking(code, url, message);
                }
                if unknown.is_fault && !unknown.is_cut && faults.is_empty() {
                    run.report.lacking("gap", &options.url, &unknown.why);
                }
                Ok(None)
            }
        }
    }

    /// Compares the copy with a snapshot.
    fn plan_snapshot(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        offers: &Offers,
    ) -> Result<Compared, Error> {
        let options = run.planner.options;
        let is_conditional = offers.changes.is_none()
            && !options.baseline
            && !run.planner.selection.has_changed()
            && !offers.is_comparison_due
            && position.due.is_none();
        run.requests.skolems_are_resources.set(skolem::are_resources(run.planner.mirror)?);
        run.report.begin_phase("reading");
        let has_changes = offers.changes.is_some();
        for _ in 0..READS_MAX {
            let (requests, mut planning) = (run.requests, Planning::new(run)?);
            let mut walk = Walk::new((requests, options), position, is_conditional, &mut planning);
            let read = self.reader.snapshot(&mut walk);
            let (is_whole, parts) = (walk.is_whole(), walk.walked.parts);
            // What such a list lacks may have come later.
            let is_undated = walk.walked.is_undated && has_changes && position.until().is_some();
            let documents = std::mem::take(&mut walk.walked.documents);
            drop(walk);
            let Planning { comparison, bodies, has_wanted, .. } = &mut planning;
            let (comparison, bodies, has_wanted) = (comparison.take(), bodies.take(), *has_wanted);
            let base = planning.take_base();
            requests.diagnostics.report(run.report);
            let Some(mut comparison) = comparison else {
                let Snapshot { is_unchanged, is_missing: is_due, .. } = read?;
                let absent = Compared::Absent { is_due };
                return Ok(if is_unchanged { Compared::Unchanged } else { absent });
            };
            let concluded = read.and_then(|snapshot| {
                if snapshot.is_unstable {
                    return Ok(None);
                }
                let mirror = run.planner.mirror;
                if snapshot.lists_all {
                    let shows_all = is_whole && !is_undated;
                    run.conclude(&options.url, &mut comparison, shows_all, snapshot.as_of)?;
                } else if has_wanted {
                    run.planner.selection.leave_excluded(mirror)?;
                    run.planner.selection.keep(mirror)?;
                    run.keep_common(&base)?;
                }
                if let Some(doubt) = snapshot.doubt
                    && mirror.pending_counts()?.deletes > 0
                {
                    return Err(doubt);
                }
                if let Some(bodies) = bodies {
                    run.planner.bodies.keep(mirror, bodies)?;
                }
                if let Some(parts) = parts.filter(|_| is_whole) {
                    skolem::keep(mirror, parts)?;
                }
                let mut after = position.clone();
                after.reset(snapshot.changes_from.filter(|_| is_whole));
                after.see_list(snapshot.as_of);
                after.bookmark.clone_from(&snapshot.bookmark);
                // After a gap, the changes that were seen may be older than those listed.
                if run.planner.uncertain_from.is_none() && position.due.is_none() {
                    after.remember(position);
                }
                after.unknown = is_undated.then(|| {
                    let why = "the list of all resources has a time in the future: nothing shows whether what it lacks was deleted";
                    Unknown::fault(why)
                });
                // Until changes were followed: the copy may have what the Source has no longer.
                after.due = position.due.clone().filter(|due| due.is_uncertain && has_changes);
                after.store(mirror)?;
                for (url, document) in documents.iter().filter(|_| is_whole) {
                    mirror.set_document(url, document)?;
                }
                self.reader.keep(mirror)?;
                Ok(Some((after, snapshot.made_from)))
            });
            match concluded {
                Ok(Some((after, made_from))) => {
                    run.planner.commit()?;
                    run.planner.mirror.clear_scratch()?;
                    run.planner.made_from = made_from;
                    return Ok(Compared::Read { after: Box::new(after), is_whole });
                }
                Ok(None) => run.planner.abandon(run.report)?,
                Err(error) => {
                    run.planner.abandon(run.report)?;
                    return Err(error);
                }
            }
        }
        let message = format!("{} changed each time it was read", options.url);
        Err(Error::new("list.unstable", ExitCode::Retryable, message)
            .with_help("try again when the Source is quiet"))
    }

    /// Plans what changed since a position. After a snapshot (`first` is the mode of the run then) whatever changes are
    /// listed is applied, and what lies between is noted as unknown.
    fn follow(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        first: Option<Mode>,
    ) -> Result<Followed, Error> {
        // Documents that could not be reached may be there by now.
        let is_cut = position.unknown.as_ref().is_some_and(|unknown| unknown.is_cut);
        let again = (is_cut && first.is_none()).then(|| position.back_to(position.snapshot()));
        let followed = self.follow_from(run, position, again, first);
        let Ok(Followed::Late) = followed else { return followed };
        let (mirror, now) = (run.planner.mirror, now_seconds());
        let mut late = position.clone();
        let since = late.late_since.filter(|since| *since <= now);
        if since.is_some_and(|since| now - since >= LATE_MAX.as_secs()) {
            let why = "the documents lack what was pushed: the Source went back";
            return Ok(Followed::Gap(Due { why: why.to_owned(), is_uncertain: true }));
        }
        late.late_since = since.or(Some(now));
        late.store(mirror)?;
        Ok(Followed::Late)
    }

    /// As [`Driver::follow`]; with `again` all changes since that earlier position are compared with the copy.
    fn follow_from(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        again: Option<Position>,
        first: Option<Mode>,
    ) -> Result<Followed, Error> {
        run.report.begin_phase("reading");
        if let (None, Some(until)) = (first, position.until()) {
            run.planner.since.get_or_insert(until.first());
        }
        let offers = self.reader.offers(None, run.planner.options)?;
        let url = offers.changes.unwrap_or_else(|| run.planner.options.url.clone());
        let (mut followed, mut found_late, mut seen) =
            (Followed::Unchanged, None, (None, Vec::new()));
        let is_again = again.is_some();
        let from = again.unwrap_or_else(|| position.clone());
        let mut has_reported = self.has_reported;
        let (reader, known_before) = (&mut self.reader, self.known_before);
        run.planner.settled = position.settled();
        let planned = run.plan_noted(&mut |run| {
            let (requests, options) = (run.requests, run.planner.options);
            let (mirror, admission) = (run.planner.mirror, run.planner.admission.clone());
            let is_everything = position.until().is_none() && position.bookmark.is_none();
            let mut planning = Planning::new(run)?
                .with_known_since(position.snapshot().max(position.until().map(Moment::last)));
            let is_conditional = first.is_none() && !is_again;
            let mut walk = Walk::new((requests, options), &from, is_conditional, &mut planning)
                .with_admission(admission);
            let read = reader.changes(&mut walk);
            let (mut walked, marks) = walk.finish();
            let (base, uncategorised) = (planning.take_base(), planning.uncategorised);
            seen.0 = walked.newest.map(Moment::first);
            if let Err(error) = read {
                seen.1 = marks.into_newest(false);
                return Err(error);
            }
            if walked.is_unchanged {
                return Ok(false);
            }
            let made_from = walked.made_from.take();
            // Clocks of two answers of one run show nothing about the Source's history.
            walked.is_ahead &= first.is_none();
            let judged = judge_walk(position, &walked, &marks);
            // What was not reached before is searched for from the snapshot on.
            let mut unknown = position.unknown.clone().filter(|unknown| !unknown.is_cut);
            match (judged, first) {
                (Judged::Continued, _) => {}
                (Judged::Gap(due), Some(_))
                    if due.is_uncertain && run.planner.uncertain_from.is_none() =>
                {
                    followed = Followed::Gap(due);
                    return Ok(false);
                }
                (Judged::Gap(Due { why, .. }) | Judged::Late(why), Some(_)) => {
                    // A list between two others may be there by the next run.
                    unknown =
                        Some(Unknown { is_cut: walked.hole.is_some(), ..Unknown::fault(why) });
                }
                (Judged::Late(_), None) => {
                    followed = Followed::Late;
                    return Ok(false);
                }
                (Judged::Gap(due), None) => {
                    followed = Followed::Gap(due);
                    return Ok(false);
                }
            }
            if let Some(time) = walked.late.filter(|_| !is_again) {
                found_late = Some(time);
                return Ok(false);
            }
            let new = walked.new;
            report(run, &url, &walked, uncategorised, &mut has_reported);
            if first.is_some() && unknown.is_none() {
                unknown = unknown_between(position, &walked, known_before).map(Unknown::fault);
            }
            if let Some(Unknown { why, .. }) = unknown.as_ref().filter(|_| first.is_some()) {
                let message = format!("{why}; changes in between are known from a newer list only");
                run.report.lacking("gap", &url, &message);
            }
            let was_cut = position.unknown.as_ref().is_some_and(|unknown| unknown.is_cut);
            // Without a snapshot, an earlier history of the copy is not replaced by a part of the changes.
            let is_replaced = position.until().is_some() || run.planner.uncertain_from.is_none();
            let is_first = (first.is_some() || was_cut) && is_replaced;
            if let Some(cut) = walked.cut.as_ref().filter(|cut| !cut.is_newer && is_first) {
                let why = format!("changes before those read are not known: {}", cut.why);
                unknown = Some(Unknown { is_cut: true, ..Unknown::fault(why) });
            }
            if unknown.as_ref().is_some_and(|unknown| unknown.is_fault) && first.is_some() {
                if run.planner.uncertain_from.is_some() {
                    // What the list lacks may have come between it and the changes.
                    mirror.forget_absent()?;
                }
                // What lies before the changes that are listed is noted; they are followed from where they begin.
                walked.newest = walked.newest.or(walked.from);
            }
            let recheck = walked.recheck.clone().or_else(|| {
                (uncategorised > 0).then(|| "resources without categories are new".to_owned())
            });
            if let (None, Some(why)) = (&unknown, recheck) {
                unknown = Some(Unknown { why, ..Unknown::default() });
            }
            run.planner.made_from = made_from.or(run.planner.made_from.take());
            run.plan_coming()?;
            if is_everything && first.is_some() {
                if mirror.count_rows_up_to(1)? == 0 && mirror.pending_counts()?.fetches == 0 {
                    run.planner.selection.report_nothing(&url, walked.entries, run.report);
                }
                if run.planner.selection.has_changed() {
                    run.planner.selection.keep(mirror)?;
                }
            }
            run.keep_common(&base)?;
            let mut after = position.clone();
            after.unknown = unknown;
            let is_settled = !walked.left_out && !walked.is_unstable && walked.cut.is_none();
            if is_settled || after.due.is_none() {
                after.run = Some(run.planner.epoch);
            }
            let mut after = moved(after, walked, marks, is_first, mirror)?;
            if !is_replaced && after.until().is_none() {
                let why = "the comparison with all changes did not reach all of them".to_owned();
                after.due = Some(Due { why, is_uncertain: true });
            }
            after.store(mirror)?;
            reader.keep(mirror)?;
            followed = Followed::Planned(new > 0);
            Ok(true)
        });
        self.has_reported |= has_reported;
        if let Err(error) = planned {
            if error.exit_code() != ExitCode::Cancelled {
                // Should a server be restored before the next run, what this one saw is missing then.
                let mut known = Position::load(run.planner.mirror)?;
                if known.until().is_some() {
                    known.see(seen.0);
                    known.glimpse(seen.1);
                    known.store(run.planner.mirror)?;
                }
            }
            return Err(error);
        }
        // Changes were published late: all since the earliest of them are compared with the copy.
        match found_late {
            Some(late) => {
                self.follow_from(run, position, Some(position.back_to(Some(late))), first)
            }
            None => Ok(followed),
        }
    }

    /// Plans what was pushed; `false` when the documents have to be requested.
    fn plan_pushed(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
    ) -> Result<bool, Error> {
        let bodies = std::mem::take(&mut run.planner.notifications);
        let Some(until) = position.until().filter(|_| !bodies.is_empty()) else { return Ok(false) };
        let offers = self.reader.offers(None, run.planner.options)?;
        let url = offers.changes.unwrap_or_default();
        let (mut pushed, mut is_whole) = (Vec::new(), true);
        for bytes in bodies {
            match self.reader.pushed(&bytes) {
                Ok(one) if one.until() <= now().plus_micros(CLOCK_MICROS) => {
                    self.announced = self.announced.max(Some(one.until()));
                    pushed.push(one);
                }
                // One with times in the future is not used.
                Ok(_) => is_whole = false,
                Err(why) => {
                    is_whole = false;
                    let message = format!("{why}; the changes are requested");
                    run.report.notice("notification.unusable", &url, &message);
                }
            }
        }
        if !is_whole {
            return Ok(false);
        }
        // Whatever order they came in.
        pushed.sort_by_key(|one| (one.from().unwrap_or(one.until()), one.until()));
        run.report.begin_phase("reading");
        let mut is_applied = false;
        let mut has_reported = self.has_reported;
        run.planner.changed = Changed::default();
        let mut after = position.clone();
        run.plan_noted(&mut |run| {
            for one in &pushed {
                let (requests, options) = (run.requests, run.planner.options);
                let mut planning = Planning::new(run)?.with_known_since(position.snapshot());
                // All of it is noted: what is known already changes nothing.
                let mut walk = Walk::new((requests, options), &after, false, &mut planning);
                walk.later_document();
                one.each(&mut walk)?;
                let (walked, marks) = walk.finish();
                let uncategorised = planning.uncategorised;
                let place = place(&**one, &after, &walked, &marks);
                let from = one.from().map(|from| from.to_string());
                tracing::debug!(from, until = %one.until(), ?place, "pushed changes");
                match place {
                    Place::Old => continue,
                    Place::Apart => return Ok(false),
                    Place::Next => {}
                }
                report(run, &url, &walked, uncategorised, &mut has_reported);
                let span = Span { from: None, until: walked.newest, is_joined: true };
                let is_moved = walked.newest.is_some_and(|newest| newest.first() > until.first());
                let of = if is_moved { Of::Pushed } else { after.of() };
                if after.advance(&span, of, marks.into_newest(false)).is_err() {
                    return Ok(false);
                }
                after.note_recent(&walked.recent);
                after.settle(walked.newest.map(Moment::first));
                if one.is_span() {
                    after.announce(one.until());
                }
            }
            is_applied = true;
            if after == *position {
                return Ok(false);
            }
            run.planner.since.get_or_insert(until.first());
            run.plan_coming()?;
            run.report.summary.mode = Mode::Incremental;
            tracing::debug!(url, "pushed changes are applied");
            after.run = Some(run.planner.epoch);
            after.store(run.planner.mirror)?;
            Ok(true)
        })?;
        self.has_reported |= has_reported;
        if is_applied {
            self.announced = None;
        }
        Ok(is_applied)
    }
}

/// Where a pushed document stands beside the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// All of it is known.
    Old,
    /// It continues from the position.
    Next,
    /// Others are missing before it, or that cannot be decided.
    Apart,
}

/// Where a pushed document stands.
fn place(pushed: &dyn super::Pushed, position: &Position, walked: &Walked, marks: &Marks) -> Place {
    let Some(known) = position.until() else { return Place::Apart };
    let (from, until) = (pushed.from(), pushed.until());
    if known.first() > now().plus_micros(AHEAD_MAX) {
        return Place::Apart;
    }
    // Of its span it lacks changes that the copy has, or has some that were published late.
    let is_whole = walked.unusable == 0 && !walked.left_out && walked.late.is_none();
    if !is_whole || from.is_some_and(|from| marks.are_lost(Some(from))) {
        return Place::Apart;
    }
    // Of changes of one time of a coarse clock some may have come before others.
    let is_fine = known.last() < known.first().plus_micros(900_000);
    let at = known.first();
    if until < at || until == at && is_fine {
        return if walked.new == 0 { Place::Old } else { Place::Apart };
    }
    // One that repeats the last one repeats what was done, unless another change followed within that time.
    if until == at || position.announced().is_some_and(|announced| until <= announced) {
        return Place::Apart;
    }
    let continues =
        |from: Timestamp| from < at || Some(from) == position.announced() || from == at && is_fine;
    // With the change that was read last.
    let is_joined = marks.are_found() && is_fine;
    if from.is_some_and(continues) || is_joined { Place::Next } else { Place::Apart }
}

/// The position after a walk; `is_first` after a snapshot, or if all changes were read.
fn moved(
    mut after: Position,
    walked: Walked,
    marks: Marks,
    is_first: bool,
    mirror: &Mirror,
) -> Result<Position, Error> {
    after.late_since = None;
    after.see(walked.newest.map(Moment::first));
    after.settle(walked.newest.map(Moment::first));
    after.note_recent(&walked.recent);
    // Older changes than those that were read are noted as unknown; newer ones, or those since the position, are read again.
    let is_cut_short = walked.cut.as_ref().is_some_and(|cut| cut.is_newer || !is_first);
    if walked.left_out || walked.is_unstable || is_cut_short {
        // What was left out may be any change: the next run reads all of them again.
        after.bookmark = None;
        for (url, _) in &walked.documents {
            mirror.set_document(url, &abreast_store::mirror::Document::default())?;
        }
        after.glimpse(marks.into_newest(false));
        return Ok(after);
    }
    after.due = None;
    let newest = walked.newest.map(|newest| newest.widened(walked.widen));
    let until = match (newest, walked.limit) {
        (Some(newest), Some(limit)) if limit < newest.first() => Some(Moment::exact(limit)),
        (newest, _) => newest,
    };
    let is_cut = walked.cut.is_some();
    // The span was judged: it continues from the position, or what lies between is noted as unknown.
    let span = Span { from: walked.from, until, is_joined: true };
    let advanced = after.advance(&span, Of::Change, marks.into_newest(is_cut));
    debug_assert!(advanced.is_ok(), "a joined span is never apart");
    after.confirm();
    after.note_future(&walked.future);
    after.bookmark = walked.bookmark;
    for (url, document) in &walked.documents {
        mirror.set_document(url, document)?;
    }
    Ok(after)
}

/// Reports what a walk could not read or use. A copy that lacks something is never called in sync.
fn report(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    walked: &Walked,
    uncategorised: u64,
    has_reported: &mut bool,
) {
    if std::mem::replace(has_reported, true) {
        return;
    }
    let report = &mut *run.report;
    for (is_lacking, code, url, message) in remarks(url, walked) {
        if is_lacking {
            report.lacking(code, url, &message);
        } else {
            report.notice(code, url, &message);
        }
    }
    if uncategorised > 0 {
        let message = format!(
            "new resources without categories: {uncategorised}; they are left out until the Sitemap states their categories"
        );
        report.notice("filter.category", url, &message);
    }
}

/// What a walk could not read or use: whether a copy may lack something, code, document and message.
fn remarks<'w>(
    url: &'w str,
    walked: &'w Walked,
) -> impl Iterator<Item = (bool, &'static str, &'w str, String)> {
    let cut = walked.cut.as_ref().map(|cut| {
        let which = if cut.is_newer { "newer" } else { "older" };
        let message = format!(
            "{}; {which} changes behind it are not known\n  help: `--baseline` compares with all that the Source lists",
            cut.why
        );
        (true, cut.code, cut.url.as_str(), message)
    });
    let unstable = walked.is_unstable.then(|| {
        let message = "its pages changed each time they were read: changes may be missing\n  \
                       help: they are read again by the next run";
        (true, "list.unstable", url, message.to_owned())
    });
    let unusable = (walked.unusable > 0).then(|| {
        let first = walked.first_unusable.as_deref().unwrap_or_default();
        let message = format!(
            "entries that cannot be used: {}; {first}\n  help: they are read again by every run; \
             `--baseline` compares with a snapshot",
            walked.unusable
        );
        (true, "list.unusable", url, message)
    });
    let future = walked.first_future.map(|future| {
        let date = walked.date.map_or_else(
            || format!("this machine's clock shows {}", now()),
            |date| format!("the server's clock shows {date}"),
        );
        (false, "time.future", url, format!("a change is of {future}, but {date}"))
    });
    [cut, unstable, unusable, future].into_iter().flatten()
}

/// Hands over resources only.
struct Listing<'e> {
    downloads: Option<&'e Downloads>,
    each: &'e mut dyn FnMut(&Listed<'_>),
}

impl Visitor for Listing<'_> {
    fn resource(
        &mut self,
        listed: &Listed<'_>,
        _: Option<Moment>,
        lines: Option<&[u8]>,
    ) -> Result<(), Error> {
        match lines {
            None => (self.each)(listed),
            Some(_) => (self.each)(&Listed { body: Some(0), ..listed.clone() }),
        }
        Ok(())
    }

    fn downloads(&self) -> Option<Downloads> {
        self.downloads.cloned()
    }

    fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
        let is_passed = error.exit_code() != ExitCode::Limit || error.code() == "list.cycle";
        if is_passed { Ok(()) } else { Err(error) }
    }

    fn change(&mut self, listed: &Listed<'_>, _: ChangeOrder) -> Result<(), Error> {
        (self.each)(listed);
        Ok(())
    }

    fn notice(&mut self, _: &str, _: &str, _: &str) {}

    fn fault(&mut self, _: &str, _: &str, _: &str) -> Result<(), Error> {
        Ok(())
    }
}

/// Finds out whether a snapshot has changed, and reads nothing of it.
struct Probe<'m> {
    mirror: &'m Mirror,
    has_begun: bool,
    /// Codes, URLs and messages of what cannot be read.
    faults: Vec<(String, String, String)>,
}

impl Visitor for Probe<'_> {
    fn begin_snapshot(&mut self, _: &str) -> Result<(), Error> {
        self.has_begun = true;
        Err(Error::new("internal", ExitCode::Other, "a probe ends where a snapshot begins"))
    }

    fn resource(
        &mut self,
        _: &Listed<'_>,
        _: Option<Moment>,
        _: Option<&[u8]>,
    ) -> Result<(), Error> {
        Ok(())
    }

    fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
        Err(error)
    }

    fn change(&mut self, _: &Listed<'_>, _: ChangeOrder) -> Result<(), Error> {
        Ok(())
    }

    fn document(&self, url: &str) -> Result<Option<abreast_store::mirror::Document>, Error> {
        Ok(self.mirror.document(url)?)
    }

    fn notice(&mut self, _: &str, _: &str, _: &str) {}

    fn fault(&mut self, code: &str, url: &str, message: &str) -> Result<(), Error> {
        self.faults.push((code.to_owned(), url.to_owned(), message.to_owned()));
        Ok(())
    }
}
