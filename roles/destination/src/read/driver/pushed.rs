//! The plan of pushed changes.

use super::Driver;
use super::remarks::report;
use crate::plan::alternates::Changed;
use crate::plan::planner::PlanContext;
use crate::read::Pushed;
use crate::read::marks::Marks;
use crate::read::planning::Planning;
use crate::read::position::{Of, Position, Span};
use crate::read::walk::{AHEAD_MAX, Walk, Walked};
use crate::report::clock::now;
use crate::report::error::Error;
use crate::report::events::Mode;
use abreast_webtypes::{Moment, Timestamp};

/// Maximum distance of times of pushed changes into the future by our clock, in microseconds.
const CLOCK_MICROS: i64 = 60_000_000;

impl Driver {
    /// Plans pushed changes; returns `false` if the documents must be requested.
    pub(super) fn plan_pushed(
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
                // A document with future times is not used.
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
        // Notifications may arrive in any order.
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
                // All changes are recorded; known changes do not matter.
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
            run.plan_coming(now())?;
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

/// The place of a pushed document relative to the copy's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// All changes of the document are known.
    Old,
    /// The document continues from the position.
    Next,
    /// Changes are missing before the document, or its place cannot be determined.
    Apart,
}

/// Determines the place of a pushed document.
fn place(pushed: &dyn Pushed, position: &Position, walked: &Walked, marks: &Marks) -> Place {
    let Some(known) = position.until() else { return Place::Apart };
    let (from, until) = (pushed.from(), pushed.until());
    if known.first() > now().plus_micros(AHEAD_MAX) {
        return Place::Apart;
    }
    // The document lacks changes of its interval that the copy has, or has changes that were
    // published late.
    let is_whole = walked.unusable == 0 && !walked.left_out && walked.late.is_none();
    if !is_whole || from.is_some_and(|from| marks.are_lost(Some(from))) {
        return Place::Apart;
    }
    // With a coarse clock, changes of the same time may be distributed over several documents.
    let is_fine = known.last() < known.first().plus_micros(900_000);
    let at = known.first();
    if until < at || until == at && is_fine {
        return if walked.new == 0 { Place::Old } else { Place::Apart };
    }
    // A document that repeats the last one repeats its changes, unless another change followed
    // within the same time.
    if until == at || position.announced().is_some_and(|announced| until <= announced) {
        return Place::Apart;
    }
    let continues =
        |from: Timestamp| from < at || Some(from) == position.announced() || from == at && is_fine;
    // With the change that was read last.
    let is_joined = marks.are_found() && is_fine;
    if from.is_some_and(continues) || is_joined { Place::Next } else { Place::Apart }
}
