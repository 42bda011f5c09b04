//! The comparison of a copy with the Sitemap of its Source [rs-0.1 §2.2.1].

use super::change_sets::LAST;
use super::cursor;
use super::document::{Part, Read, has_changed, is_unchanged, read};
use super::entry_points::EntryPoints;
use super::sitemap::{Visitor, is_other, walk};
use crate::error::{Error, ExitCode};
use crate::plan::comparison::{Baseline, Comparison};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::boundary::Boundary;
use crate::read::pieces::Answered;
use crate::read::resourcesync::document::Go;
use crate::read::unchanged;
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;

/// Those of the Sitemaps that are indexes.
const INDEXES: &str = "rs01-indexes";
/// Sitemaps up to which each is asked again whether it changed meanwhile.
const RECHECKED_MAX: usize = 1_000;
/// Failed Sitemaps that end a run; beyond, one in a hundred.
const SITEMAP_BUDGET: usize = 100;
/// How far before the time of a Sitemap changes are replayed, microseconds. The draft does not state
/// whether that is the begin or the end of its making.
pub(super) const MARGIN_MICROS: i64 = 3_600_000_000;

/// The visitor of a run: compares a Sitemap with the state.
struct Compared<'s, 'p, 'a> {
    run: &'s mut PlanContext<'p, 'a>,
    comparison: &'s mut Comparison,
    sitemap: &'s str,
    /// The documents that were read, to check later whether they have changed.
    read: Vec<(String, Document)>,
    /// Those of them that are indexes.
    indexes: Vec<String>,
    failed: usize,
    partial: bool,
}

impl Visitor for Compared<'_, '_, '_> {
    fn begin(&mut self) {
        self.comparison.begin_document();
    }

    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
        self.comparison.entry(self.run, listed)?;
        if self.comparison.entries.is_multiple_of(1_024) {
            self.run.requests.check_cancelled()?;
            self.run.report.status(self.comparison.entries, 0, 0);
        }
        Ok(())
    }

    fn deleted(&mut self) {
        self.comparison.deleted();
    }

    fn end(&mut self, url: &str, read: &Read) -> Result<(), Error> {
        self.run.refuse_elsewhere(url, self.comparison)?;
        self.partial |= self.run.report.left_out(url, read.skipped);
        self.indexes.extend(read.is_index().then(|| url.to_owned()));
        self.read.push((url.to_owned(), read.answered.validators.clone()));
        Ok(())
    }

    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error> {
        self.failed += 1;
        self.run.report.list_failed(error.code(), url, &error.to_string());
        if self.failed > SITEMAP_BUDGET.max(named / 100) {
            let message = format!(
                "{} of {named} Sitemaps named by {} could not be read",
                self.failed, self.sitemap
            );
            return Err(Error::new("budget.lists", ExitCode::Limit, message)
                .with_help("nothing was changed; the Source has to correct its index"));
        }
        Ok(())
    }

    /// A kept resource that was not named may have left its category: it may be in one of them.
    fn needs_all(&mut self) -> Result<bool, Error> {
        self.comparison.finish(self.run.planner.mirror)?;
        let mut unseen = Vec::new();
        self.run.planner.mirror.unseen_after("", 1, &mut unseen)?;
        Ok(!unseen.is_empty())
    }
}

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
    run.plan_snapshot(sitemap, &mut |run| compare(run, sitemap, known))
}

/// Whether each Sitemap is as it was read: without change sets the way to find that nothing has
/// changed.
pub(super) fn is_all_unchanged(run: &PlanContext<'_, '_>, sitemap: &str) -> Result<bool, Error> {
    let (requests, options) = (run.requests, run.planner.options);
    let indexes = run.planner.mirror.meta(INDEXES)?;
    let members = |index: &str| {
        let mut members = Vec::new();
        read(requests, index, None, &mut |part| {
            match part {
                Part::Begin(_) => members.clear(),
                // Nothing wanted is in it.
                Part::Entry(_, entry) if is_other(entry, options) => {}
                Part::Entry(_, entry) => members.push(entry.loc.clone()),
            }
            Ok(Go::On)
        })?;
        Ok(members)
    };
    let is_unchanged = |url: &str, known: &Document| is_unchanged(requests, url, known);
    unchanged::is_all_unchanged(run, sitemap, indexes.as_deref(), &is_unchanged, &members)
}

/// Compares with the Sitemap, or the index and its Sitemaps; `None` when they changed meanwhile.
fn compare(
    run: &mut PlanContext<'_, '_>,
    sitemap: &str,
    known: &mut EntryPoints,
) -> Result<Option<Baseline>, Error> {
    let (requests, options, mirror) = (run.requests, run.planner.options, run.planner.mirror);
    let mut comparison = run.begin_comparison(sitemap)?;
    let mut compared = Compared {
        run: &mut *run,
        comparison: &mut comparison,
        sitemap,
        read: Vec::new(),
        indexes: Vec::new(),
        failed: 0,
        partial: false,
    };
    let walked = walk(requests, options, sitemap, &mut compared)?;
    let whole = compared.failed == 0 && !compared.partial;
    let (read, indexes) = (compared.read, compared.indexes);
    let is_index = walked.top.is_index();
    let mut found = walked.entry_points;
    found.sitemap.clone_from(&known.sitemap);
    found.keep_changes_of(known);
    let has_changes = found.change_set.is_some();
    if whole && is_index && !has_changes {
        for (url, known) in read.iter().take(RECHECKED_MAX) {
            if has_changed(requests, url, known)? {
                return Ok(None);
            }
        }
    }
    let at = time_of(run, sitemap, &walked.top.answered, walked.modified, walked.newest);
    comparison.finish(mirror)?;
    // What changed later need not be in it.
    let last = walked.modified.or(walked.top.answered.last_modified).or(walked.newest);
    if let Some(last) = last.filter(|_| has_changes) {
        mirror.take_unseen_newer(last.as_micros())?;
    }
    run.conclude(sitemap, &mut comparison, whole)?;
    cursor::set(mirror, whole.then(|| at.plus_micros(-MARGIN_MICROS)))?;
    Boundary::forget(mirror, LAST)?;
    mirror.set_meta(INDEXES, unchanged::kept_indexes(&indexes).as_deref())?;
    if whole {
        found.keep(mirror)?;
        *known = found;
        for (url, validators) in &read {
            mirror.set_document(url, validators)?;
        }
    }
    Ok(Some(Baseline { unchanged: false, whole, at: Some(at) }))
}

/// The time of a Sitemap or dump, never later than the server's own clock. One that does not state
/// when it was modified may be a file that was copied later: then it is not newer than what it
/// lists.
pub(super) fn time_of(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    answered: &Answered,
    modified: Option<Timestamp>,
    newest: Option<Timestamp>,
) -> Timestamp {
    if let Some(modified) = modified {
        return run.not_after(url, "DCTERMS.modified", modified, answered.stated_date);
    }
    unstated_time(answered, newest)
}

/// The time of a Sitemap or dump that states none.
pub(super) fn unstated_time(answered: &Answered, newest: Option<Timestamp>) -> Timestamp {
    let of_answer = answered.last_modified.unwrap_or(answered.date);
    newest.map_or(of_answer, |newest| newest.min(of_answer))
}
