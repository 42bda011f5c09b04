//! The plan of the changes since a position.

use super::Driver;
use super::judged::{Judged, judge_walk, moved, unknown_between};
use super::outcome::Followed;
use super::remarks::report;
use crate::plan::planner::PlanContext;
use crate::read::marks::Marks;
use crate::read::planning::Planning;
use crate::read::position::{Due, Position, Unknown};
use crate::read::walk::Walk;
use crate::report::clock::{now, now_seconds};
use crate::report::error::{Error, ExitCode};
use crate::report::events::Mode;
use abreast_webtypes::{Moment, Timestamp};
use std::time::Duration;

/// Maximum time for which documents may lack pushed changes.
const LATE_MAX: Duration = Duration::from_secs(15 * 60);

impl Driver {
    /// Plans the changes since a position. After a snapshot, `first` is the mode of the run: then
    /// all listed changes are applied, and changes in between are recorded as unknown.
    pub(super) fn follow(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
        first: Option<Mode>,
    ) -> Result<Followed, Error> {
        // Documents that could not be reached may be there by now.
        let is_cut = position.unknown.as_ref().is_some_and(|unknown| unknown.is_cut);
        let since = position.unknown.as_ref().and_then(|unknown| unknown.since);
        let since = since.map(Timestamp::from_micros).or(position.snapshot());
        let again = (is_cut && first.is_none()).then(|| position.back_to(since));
        let followed = self.follow_from(run, position, again, first);
        let Ok(Followed::Late) = followed else { return followed };
        let (mirror, now) = (run.planner.mirror, now_seconds());
        let mut late = position.clone();
        let since = late.late_since.filter(|since| *since <= now);
        if since.is_some_and(|since| now - since >= LATE_MAX.as_secs()) {
            let why = "the documents lack what was pushed: the Source went back";
            return Ok(Followed::Gap(Due::new(why, true)));
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
            (Followed::Unchanged, None, (None, Marks::default()));
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
            let is_uncertain = planning.run.planner.uncertain_from.is_some();
            let mut walk = Walk::new((requests, options), &from, is_conditional, &mut planning)
                .with_admission(admission)
                .after_gap(first.is_some() && known_before.is_some());
            let read = reader.changes(&mut walk);
            let (mut walked, marks) = walk.finish();
            let (base, uncategorised) = (planning.take_base(), planning.uncategorised);
            seen.0 = walked.newest.map(Moment::first);
            if let Err(error) = read {
                seen.1 = marks;
                return Err(error);
            }
            if walked.is_unchanged {
                return Ok(false);
            }
            let made_from = walked.made_from.take();
            // Clocks of two responses in one run are not evidence about the history of the Source.
            walked.is_ahead &= first.is_none();
            let judged = judge_walk(position, &walked, &marks);
            let may_judge = first.is_some() && !is_uncertain && walked.cut.is_none();
            let judged = judged.or_older_list(may_judge && planning.run.planner.open.has_older(), position, &walked);
            // A missing change may be on a page that was read before it grew: the next run searches
            // again.
            walked.is_unstable |= walked.has_grown
                && (marks.are_lost(walked.end) || marks.ahead.newest_lost(walked.from).is_some());
            // Changes that were not reached before are searched for from the snapshot on.
            let is_whole = walked.cut.is_none() && !walked.is_unstable && !walked.left_out;
            let is_found = |unknown: &Unknown| {
                let until = position.until().map(Moment::first);
                let since =
                    unknown.since.map(Timestamp::from_micros).filter(|_| unknown.is_between);
                let begin = walked.from.map(Moment::first).into_iter().chain(walked.oldest).min();
                first.is_none()
                    && is_whole
                    && since.is_some()
                    && since == until
                    && begin <= since
                    && begin.is_some()
            };
            // A second search has not reached the changes either.
            let is_missed = is_again
                && from.until().zip(walked.from).is_some_and(|(until, begin)| until.is_before(begin));
            let mut unknown = position.unknown.clone();
            // An incomplete walk leaves the search to the next walk.
            unknown = unknown
                .filter(|it| if it.is_cut { !is_whole || is_missed } else { !is_found(it) })
                .map(|it| Unknown { is_cut: it.is_cut && !is_whole, ..it });
            let spared = position.unknown.as_ref().is_some_and(|unknown| unknown.spares_absent);
            // These resources can now be compared with the list.
            let is_decidable = first.is_none() && spared && unknown.is_none();
            match (judged, first) {
                (Judged::Continued, _) => {}
                (Judged::Gap(due), Some(_))
                    if due.is_uncertain && run.planner.uncertain_from.is_none() =>
                {
                    followed = Followed::Gap(due);
                    return Ok(false);
                }
                (Judged::Gap(Due { why, .. }) | Judged::Late(why), Some(_)) => {
                    // A list between two other lists may be available at the next run.
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
            // A walk that goes further back may find more late changes.
            let is_earlier = |late: &Timestamp| {
                !is_again || from.until().is_some_and(|until| *late < until.first())
            };
            if let Some(time) = walked.late.filter(is_earlier) {
                found_late = Some((time, walked.gives_end));
                return Ok(false);
            }
            let new = walked.new;
            report(run, &url, &walked, uncategorised, &mut has_reported);
            let is_known = unknown.as_ref().is_none_or(|unknown| !unknown.is_fault);
            if first.is_some() && is_known {
                let open_since = run.planner.open.since();
                let between = unknown_between(position, &walked, known_before, open_since);
                let fault = |why| Unknown { is_between: true, ..Unknown::fault(why) };
                unknown = between.map(fault).or(unknown);
            }
            let lacking =
                unknown.as_ref().filter(|it| it.is_fault && (first.is_some() || is_missed));
            if let Some(Unknown { why, .. }) = lacking {
                let message = format!("{why}; changes in between are known from a newer list only");
                run.report.lacking("gap", &url, &message);
            }
            let was_cut = position.unknown.as_ref().is_some_and(|unknown| unknown.is_cut);
            // If there is no snapshot, a part of the changes does not replace an earlier history of
            // the copy.
            let is_replaced = position.until().is_some() || run.planner.uncertain_from.is_none();
            let is_first = (first.is_some() || was_cut) && is_replaced;
            if let Some(cut) = walked.cut.as_ref().filter(|cut| !cut.is_newer && is_first) {
                let why = format!("changes before those read are not known: {}", cut.why);
                unknown = Some(Unknown { is_cut: true, ..Unknown::fault(why) });
            }
            let mixed_until = run.planner.mixed_until.filter(|_| first.is_some() && is_uncertain);
            let is_short = mixed_until.is_some_and(|until| {
                walked.newest.is_none_or(|newest| newest.last() < until)
            });
            let has_all =
                walked.cut.is_none() && !walked.is_unstable && !walked.left_out && !is_short;
            let is_lacking = unknown.as_ref().is_some_and(|unknown| unknown.is_fault);
            // Resources that the list lacks may have been created between the list and the changes.
            let may_lack = is_uncertain && (is_lacking || walked.is_apart || !has_all);
            let spares_absent = first.is_some() && may_lack && mirror.forget_absent()? > 0;
            if is_lacking && first.is_some() {
                // Changes before the listed ones are recorded as unknown, and the listed changes
                // are followed from their start.
                walked.newest = walked.newest.or(walked.from);
            }
            let recheck = walked.recheck.clone().or_else(|| {
                (uncategorised > 0).then(|| "resources without categories are new".to_owned())
            });
            if let (None, Some(why)) = (&unknown, recheck) {
                unknown = Some(Unknown { why, ..Unknown::default() });
            }
            let contradicts_list = walked.late_for_list.values().any(|late| late.1);
            if contradicts_list && unknown.as_ref().is_none_or(|unknown| !unknown.is_fault) {
                let why = "a change that is older than the list of all resources was published after it, and the list does not have it";
                run.report.lacking("gap", &url, &format!("{why}; the next list decides"));
                unknown = Some(Unknown::fault(why));
            }
            if let Some(unknown) = unknown.as_mut().filter(|_| first.is_some()) {
                unknown.not_before = run.planner.early;
                unknown.spares_absent = spares_absent;
                unknown.lost_until = run.planner.lost_until;
                unknown.since = position.until().map(|until| until.first().as_micros());
            }
            run.planner.made_from = made_from.or(run.planner.made_from.take());
            if is_everything && has_all && run.planner.uncertain_from.is_some() {
                // Removes actions that were planned from a history that the Source has lost.
                mirror.forget_unnamed()?;
            }
            // The time by the Source's clock, which may be ahead of our clock.
            let not_before = position.unknown.as_ref().and_then(|unknown| unknown.not_before);
            let listed = run.planner.early.max(not_before).map(Timestamp::from_micros);
            let until = walked.newest.map(Moment::first).max(walked.stated).max(listed);
            run.plan_coming(until.unwrap_or(Timestamp::MIN).max(now()))?;
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
            if has_all || after.due.is_none() {
                after.run = Some(run.planner.epoch);
            }
            let mut after = moved(after, walked, marks, is_first, mirror)?;
            if is_decidable {
                let why = "the list of all resources lacks some that the copy has, and the changes since then are known by now";
                let lost_until = position.unknown.as_ref().and_then(|unknown| unknown.lost_until);
                after.due.get_or_insert(Due { lost_until, ..Due::new(why, true) });
            }
            if !is_replaced && after.until().is_none() {
                let why = "the comparison with all changes did not reach all of them";
                after.due = Some(Due::new(why, true));
            }
            if is_short {
                let why = "documents of the list of all resources are of several times, and the changes end before the last of these";
                run.report.lacking("gap", &url, why);
                after.due = Some(Due::new(why, true));
            }
            after.store(mirror)?;
            reader.keep(mirror)?;
            followed = Followed::Planned(new > 0);
            Ok(true)
        });
        self.has_reported |= has_reported;
        if let Err(error) = planned {
            if error.exit_code() != ExitCode::Cancelled {
                // If a server is restored before the next run, changes that this run has seen will
                // be missing.
                let mut known = Position::load(run.planner.mirror)?;
                if known.until().is_some() || known.run.is_some() {
                    known.see(seen.0);
                    known.glimpse(seen.1);
                    known.store(run.planner.mirror)?;
                }
            }
            return Err(error);
        }
        // Changes were published late, so all changes since the earliest late one are compared with
        // the copy.
        let Some((mut late, gives_end)) = found_late else { return Ok(followed) };
        if is_again {
            // Further late changes are earlier; the oldest recent change limits the search.
            let oldest = position.recent().first().map(|it| Timestamp::from_micros(it.0));
            late = oldest.map_or(late, |oldest| late.min(oldest));
        }
        let mut again = position.back_to(Some(late));
        again.gives_end = gives_end;
        self.follow_from(run, position, Some(again), first)
    }
}
