//! The comparison of a copy with the Sitemap of its Source [rs-0.1 §2.2.1].

use super::change_sets::LAST;
use super::cursor;
use super::entry_points::EntryPoints;
use super::sitemap::Sitemaps;
use crate::diagnostics::{Diagnostics, Remark};
use crate::error::{Error, ExitCode};
use crate::options::MaxDelete;
use crate::plan::comparison::{Baseline, is_future};
use crate::plan::planner::PlanContext;
use crate::read::boundary::Boundary;
use crate::read::pieces::Answered;
use crate::read::sitemap::compare::compare;
use crate::read::sitemap::document::at_earliest;
use crate::read::sitemap::unchanged;
use abreast_webtypes::Timestamp;

/// Those of the Sitemaps that are indexes.
const INDEXES: &str = "rs01-indexes";
/// How far before the time of a Sitemap changes are replayed, microseconds. The draft does not state
/// whether that is the begin or the end of its making.
pub(super) const MARGIN_MICROS: i64 = 3_600_000_000;

/// Plans what makes the copy equal to the Sitemap, and adds the documents that it names to those
/// known.
pub(super) fn plan_baseline(
    run: &mut PlanContext<'_, '_>,
    sitemap: &str,
    known: &mut EntryPoints,
) -> Result<Baseline, Error> {
    run.report.begin_phase("reading");
    if known.change_set.is_none()
        && !run.planner.options.baseline
        && !run.planner.selection.has_changed()
        && is_all_unchanged(run, sitemap)?
    {
        return Ok(Baseline { unchanged: true, whole: true, at: None });
    }
    run.plan_snapshot(sitemap, &mut |run| compare_sitemaps(run, sitemap, known))
}

/// Whether each Sitemap is as it was read: without change sets the way to find that nothing has
/// changed.
pub(super) fn is_all_unchanged(run: &PlanContext<'_, '_>, sitemap: &str) -> Result<bool, Error> {
    let mut sitemaps = Sitemaps::new(run.planner.options);
    unchanged::is_all_unchanged(run, sitemap, INDEXES, &mut sitemaps)
}

/// Compares with the Sitemap, or the index and its Sitemaps; `None` when they changed meanwhile.
fn compare_sitemaps(
    run: &mut PlanContext<'_, '_>,
    sitemap: &str,
    known: &mut EntryPoints,
) -> Result<Option<Baseline>, Error> {
    let mirror = run.planner.mirror;
    let mut sitemaps = Sitemaps::new(run.planner.options);
    let mut compared = compare(run, sitemap, &mut sitemaps, true)?;
    let may_be_changes = sitemaps.may_be_changes();
    let Sitemaps { modified, newest, entry_points: mut found, others, .. } = sitemaps;
    run.planner.selection.note_others(&others);
    found.sitemap.clone_from(&known.sitemap);
    found.keep_changes_of(known);
    let has_changes = found.change_set.is_some();
    if !has_changes && compared.changed_meanwhile(run.requests)? {
        return Ok(None);
    }
    let (answered, whole) = (&compared.top.answered, compared.whole);
    let at = time_of(run, sitemap, answered, modified, newest);
    compared.comparison.finish(mirror)?;
    // What changed later need not be in it.
    if has_changes {
        mirror.take_unseen_newer(at.as_micros())?;
    }
    run.conclude(sitemap, &mut compared.comparison, whole)?;
    if may_be_changes
        && run.planner.options.max_delete == MaxDelete::Default
        && mirror.pending_counts()?.deletes > 0
    {
        let message = format!(
            "{sitemap} may be a change set: each of its entries is a change, and it is read as a list of all resources, so that \
             others would be deleted"
        );
        return Err(Error::new("rs.type", ExitCode::SourceInvalid, message).with_help(
            "change sets have `rs:type=\"changeset\"` in their root; if it is a Sitemap, run with `--max-delete`, for example 10%",
        ));
    }
    cursor::set(mirror, whole.then(|| at.plus_micros(-MARGIN_MICROS)))?;
    Boundary::forget(mirror, LAST)?;
    compared.keep(mirror, INDEXES)?;
    if whole {
        found.keep(mirror)?;
        *known = found;
    }
    Ok(Some(Baseline { unchanged: false, whole, at: Some(at) }))
}

/// The time of a Sitemap or dump, as by [`instant`]; one that is in the future is reported.
pub(super) fn time_of(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    answered: &Answered,
    modified: Option<Timestamp>,
    newest: Option<Timestamp>,
) -> Timestamp {
    if let Some(modified) = modified {
        run.not_after(url, "DCTERMS.modified", modified, Some(answered.date));
    }
    instant(answered, modified, newest)
}

/// The time of a Sitemap or dump. One that does not state when it was modified, or a time that its
/// server has not reached, may be a file that was copied later: then it is not newer than what it
/// lists.
pub(super) fn instant(
    answered: &Answered,
    modified: Option<Timestamp>,
    newest: Option<Timestamp>,
) -> Timestamp {
    let stated = modified.filter(|modified| !is_future(*modified, Some(answered.date)));
    stated.unwrap_or_else(|| {
        let of_answer = answered.last_modified.unwrap_or(answered.date);
        newest.map_or(of_answer, |newest| newest.min(of_answer))
    })
}

/// The newest time in a Sitemap or dump, of those that its server has reached: others show nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewestTime {
    date: Timestamp,
    newest: Option<Timestamp>,
    /// Times in the future.
    future: u64,
}

impl NewestTime {
    pub(super) fn of(answered: &Answered) -> Self {
        Self { date: answered.date, ..Self::default() }
    }

    /// Adds the time of an entry.
    pub(super) fn add(&mut self, time: Option<Timestamp>) {
        if time.is_some_and(|time| is_future(time, Some(self.date))) {
            self.future += 1;
        } else {
            self.newest = self.newest.max(time);
        }
    }

    /// The newest time, at the earliest; those in the future are reported.
    pub(super) fn end(
        self,
        diagnostics: &Diagnostics,
        url: &str,
        zoneless: bool,
    ) -> Option<Timestamp> {
        if self.future > 0 && !zoneless {
            let message = format!(
                "a time of a resource is in the future: the server's clock shows {}",
                self.date
            );
            let remark = Remark { code: "time.future", line: 1, message, count: self.future };
            diagnostics.note(url, remark);
        }
        self.newest.map(|newest| at_earliest(zoneless, newest))
    }
}
