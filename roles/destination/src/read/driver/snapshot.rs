//! The comparison of the copy with a snapshot.

use super::Driver;
use super::outcome::Compared;
use crate::plan::judge::LIST_AHEAD_MAX;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::plan::skolem;
use crate::read::planning::Planning;
use crate::read::position::{Due, Position, Unknown};
use crate::read::walk::{Visitor, Walk};
use crate::read::{Offers, Snapshot, Whole};
use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::sink::rdf_rules;
use abreast_store::mirror::{ChangeOrder, Document, Mirror};
use abreast_webtypes::{Moment, Timestamp};

/// Maximum number of reads of a snapshot that changes while it is read.
const READS_MAX: usize = 3;

impl Driver {
    /// The reason to compare the copy with a newer snapshot, if not all changes since the last
    /// snapshot are known.
    pub(super) fn snapshot_since(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        position: &Position,
    ) -> Result<Option<String>, Error> {
        let Some(unknown) = &position.unknown else { return Ok(None) };
        let options = run.planner.options;
        // The list that was read last shows no more before its time has come.
        let is_early = unknown.not_before.is_some_and(|time| now().as_micros() < time);
        if is_early || self.reader.offers(None, options)?.whole != Whole::Snapshot {
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
    pub(super) fn plan_snapshot(
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
            let invalid = walk.walked.invalid.take();
            // Resources that such a list lacks may have been created later.
            let is_undated = walk.walked.is_undated && has_changes && position.until().is_some();
            let mut documents = std::mem::take(&mut walk.walked.documents);
            let early = walk.walked.early.map(Timestamp::as_micros);
            if early.is_some() {
                // The list contains more information after its time has come.
                documents = documents.into_iter().map(|it| (it.0, Document::default())).collect();
            }
            let latest = walk.latest();
            drop(walk);
            let Planning { comparison, bodies, has_wanted, .. } = &mut planning;
            let (comparison, bodies, has_wanted) = (comparison.take(), bodies.take(), *has_wanted);
            let base = planning.take_base();
            run.planner.early = early;
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
                    if shows_all && run.planner.uncertain_from.is_some() {
                        run.planner.lost_until.get_or_insert(run.planner.epoch - 1);
                    }
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
                run.planner.mixed_until = snapshot.mixed_until.map(Moment::first);
                if let Some(bodies) = bodies {
                    run.planner.bodies.keep(mirror, bodies)?;
                }
                if let Some(parts) = parts.filter(|_| is_whole) {
                    skolem::keep(mirror, parts)?;
                }
                if let Some((name, left_out)) = &invalid {
                    rdf_rules::keep_of_state(mirror, name, left_out)?;
                    run.report.summary.newly_invalid += left_out.count();
                }
                let mut after = position.clone();
                after.reset(snapshot.changes_from.filter(|_| is_whole));
                // A list with a future time does not contain later changes than now. If its time is
                // far in the future, it is ignored.
                let ahead = latest.plus_micros(LIST_AHEAD_MAX);
                let mut times = [snapshot.mixed_until, snapshot.as_of].into_iter().flatten();
                let seen = times.find(|at| at.first() <= ahead);
                after.see_list(seen.map(|at| at.last().min(latest)));
                after.bookmark.clone_from(&snapshot.bookmark);
                // After a gap, the changes that were seen may be older than those listed.
                if run.planner.uncertain_from.is_none() && position.due.is_none() {
                    after.remember(position);
                }
                after.unknown = is_undated.then(|| {
                    let why = "the list of all resources has a time in the future: nothing shows whether what it lacks was deleted";
                    Unknown::fault(why)
                });
                if early.is_some() && after.unknown.is_none() {
                    let why = "the list of all resources had a time in the future".to_owned();
                    after.unknown = Some(Unknown { why, ..Unknown::default() });
                }
                // Until changes were followed: the copy may contain resources that the Source has
                // lost.
                let due = position.due.clone().filter(|due| due.is_uncertain && has_changes);
                after.due = due.map(|due| Due { lost_until: run.planner.lost_until, ..due });
                if !has_changes && position.until().is_none() && run.planner.open.has_older() {
                    // Only a part of the older list was read, and no changes lead to its resources.
                    let why = "the list of all resources is older than the one that was read before";
                    run.report.lacking("gap", &options.url, why);
                    after.due = Some(Due::new(why, true));
                }
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
}

/// Tests whether a snapshot has changed, without reading its resources.
struct Probe<'m> {
    mirror: &'m Mirror,
    has_begun: bool,
    /// Codes, URLs and messages of documents that cannot be read.
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

    fn document(&self, url: &str) -> Result<Option<Document>, Error> {
        Ok(self.mirror.document(url)?)
    }

    fn notice(&mut self, _: &str, _: &str, _: &str) {}

    fn fault(&mut self, code: &str, url: &str, message: &str) -> Result<(), Error> {
        self.faults.push((code.to_owned(), url.to_owned(), message.to_owned()));
        Ok(())
    }
}
