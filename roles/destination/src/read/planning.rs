//! The visitor of a run, which makes a plan from the entries that a walk reads.

use crate::copy::common_base::CommonBase;
use crate::plan::alternates::Changed;
use crate::plan::bodies::NewBodies;
use crate::plan::comparison::Comparison;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::plan::select::OtherCategories;
use crate::read::walk::{Category, Visitor};
use crate::report::error::{Error, ExitCode};
use crate::report::events::Mode;
use crate::request::admit::Admission;
use crate::request::package::download::Downloads;
use abreast_core::Kind;
use abreast_core::filter::Decision;
use abreast_store::mirror::{
    ChangeOrder, Document, Pending, PendingAction, PendingCounts, Row, Task,
};
use abreast_webtypes::{Digests, Moment, Timestamp};

/// Number of failed lists that a run may have at least; the limit of a large run is one percent of
/// its lists.
const LIST_BUDGET: usize = 100;

/// The entries of a walk, on their way into the plan.
pub(crate) struct Planning<'s, 'p, 'a> {
    pub(crate) run: &'s mut PlanContext<'p, 'a>,
    /// The comparison with a snapshot, while a snapshot is read.
    pub(crate) comparison: Option<Comparison>,
    /// Bytes that a snapshot contains.
    pub(crate) bodies: Option<NewBodies>,
    /// Whether resources in the list of the user were planned.
    pub(crate) has_wanted: bool,
    /// The common start of the URIs of changes, while the base is not known.
    base: CommonBase,
    wants_base: bool,
    admission: Option<Admission>,
    has_descriptions: bool,
    failed: usize,
    /// Number of changes without categories whose resources are not in the copy.
    pub(crate) uncategorised: u64,
    known_since: Option<Timestamp>,
    name: String,
    item: Pending,
    noted: u64,
}

impl<'s, 'p, 'a> Planning<'s, 'p, 'a> {
    pub(crate) fn new(run: &'s mut PlanContext<'p, 'a>) -> Result<Self, Error> {
        let (wants_base, has_descriptions) =
            (run.planner.sink.is_none(), run.planner.mirror.has_bodies()?);
        Ok(Self {
            run,
            comparison: None,
            bodies: None,
            has_wanted: false,
            base: CommonBase::default(),
            wants_base,
            admission: None,
            has_descriptions,
            failed: 0,
            uncategorised: 0,
            known_since: None,
            name: String::new(),
            item: Pending::default(),
            noted: 0,
        })
    }

    /// Up to when all is known of the Source, for changes without categories.
    pub(crate) const fn with_known_since(mut self, known: Option<Timestamp>) -> Self {
        self.known_since = known;
        self
    }

    /// Removes and returns the common start of the URIs.
    pub(crate) fn take_base(&mut self) -> CommonBase {
        std::mem::take(&mut self.base)
    }
}

impl Visitor for Planning<'_, '_, '_> {
    /// Compares all rows with the stored files first, since damage is planned in separate
    /// transactions.
    fn begin_snapshot(&mut self, name: &str) -> Result<(), Error> {
        let run = &mut *self.run;
        run.report.summary.mode = Mode::Baseline;
        name.clone_into(&mut self.name);
        crate::plan::damage::check_kept(run)?;
        run.report.begin_phase("reading");
        run.planner.begin(run.report)?;
        self.comparison = Some(run.begin_comparison(name)?);
        Ok(())
    }

    fn begin_document(&mut self, url: &str) {
        if let Some(comparison) = &mut self.comparison {
            comparison.begin_document();
        } else {
            let options = self.run.planner.options;
            self.admission =
                Some(Admission::new(url, &options.allow_hosts, options.allow_downgrade));
        }
    }

    fn resource(
        &mut self,
        listed: &Listed<'_>,
        as_of: Option<Moment>,
        lines: Option<&[u8]>,
    ) -> Result<(), Error> {
        let Some(comparison) = &mut self.comparison else { return Ok(()) };
        if comparison.entries.is_multiple_of(1_024) {
            self.run.requests.check_cancelled()?;
            self.run.report.status(comparison.entries, 0, 0);
        }
        let Some(lines) = lines else {
            return comparison.entry(self.run, listed, as_of).map(drop);
        };
        if self.bodies.is_none() {
            let planner = &*self.run.planner;
            self.bodies = Some(planner.bodies.begin(planner.mirror, planner.options.dry_run)?);
        }
        let Some(bodies) = &mut self.bodies else { return Ok(()) };
        let listed = Listed { body: Some(bodies.next()), ..listed.clone() };
        if comparison.entry(self.run, &listed, as_of)? {
            bodies.append(lines)?;
        }
        Ok(())
    }

    fn gone(&mut self) {
        if let Some(comparison) = &mut self.comparison {
            comparison.deleted();
        }
    }

    fn end_document(&mut self, url: &str) -> Result<(), Error> {
        let Some(comparison) = &self.comparison else { return Ok(()) };
        self.run.refuse_elsewhere(url, comparison)
    }

    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error> {
        self.failed += 1;
        self.run.report.list_failed(error.code(), url, &error.to_string());
        if self.failed > LIST_BUDGET.max(named / 100) {
            let message = format!(
                "{} of {named} lists named by {} could not be read",
                self.failed, self.name
            );
            return Err(Error::new("budget.lists", ExitCode::Limit, message)
                .with_help("nothing was changed; the Source has to correct its index"));
        }
        Ok(())
    }

    /// Whether lists of other categories must be read: a stored resource that is not listed may
    /// have moved to another category.
    fn needs_all(&mut self) -> Result<bool, Error> {
        let mirror = self.run.planner.mirror;
        let Some(comparison) = &mut self.comparison else { return Ok(false) };
        comparison.finish(mirror)?;
        let mut unseen = Vec::new();
        mirror.unseen_after("", 1, &mut unseen)?;
        Ok(!unseen.is_empty())
    }

    /// Plans to fetch a resource of the user's list that is not stored, or any resource if `anew`.
    fn wanted(&mut self, listed: &Listed<'_>, anew: bool) -> Result<(), Error> {
        let mirror = self.run.planner.mirror;
        let (uri, selection) = (listed.uri, &mut self.run.planner.selection);
        self.has_wanted = true;
        if matches!(selection.decide(listed.subject()), Decision::Excluded(_)) {
            return Ok(());
        }
        self.base.note(uri);
        let is_planned = mirror.task(uri)?.map(|Task { pending, .. }| {
            // If no document contains the address of the entity, its IRI is the address.
            pending.action.is_deletion() || pending.access.is_some() || pending.body.is_some()
        });
        let is_here = mirror.row(uri)?.is_some() && !selection.is_left(mirror, uri)?;
        if !anew && is_planned.unwrap_or(is_here) {
            return Ok(());
        }
        selection.take_again(mirror, uri)?;
        listed.pending_into(&mut self.item);
        Ok(mirror.put_pending(&self.item)?)
    }

    fn change(&mut self, listed: &Listed<'_>, order: ChangeOrder) -> Result<(), Error> {
        let planner = &mut *self.run.planner;
        let mirror = planner.mirror;
        let item = &mut self.item;
        listed.pending_into(item);
        if item.changed.is_none() && order.time > i64::MIN {
            // The change is not older than the time of its document.
            item.changed = Some(order.time);
        }
        if let Some(patch) = listed.patch.filter(|_| !order.is_known) {
            item.body = planner.keep_patch(patch.as_bytes())?;
        }
        planner.open.settle(&item.uri);
        item.action = match listed.change {
            Some(Kind::Delete) => PendingAction::Delete,
            Some(Kind::Remove) => PendingAction::Remove,
            _ if planner.selection.excludes_change(listed) => PendingAction::Leave,
            _ => PendingAction::Fetch,
        };
        if order.is_known {
            return Ok(mirror.put_coming(item, order)?);
        }
        planner.changes.note(listed);
        let admission = self.admission.as_mut().filter(|_| self.wants_base);
        if admission.is_some_and(|rule| rule.check(listed.href()).is_ok()) {
            self.base.note(&item.uri);
        }
        planner.history.note(listed);
        if listed.change == Some(Kind::Deprecate) && item.action == PendingAction::Fetch {
            mirror.put_deprecated(&item.uri, listed.replaced_by, order)?;
        }
        if !listed.is_only_deprecated() {
            let is_first = planner.changed.is_first(&item.uri);
            let place = (order.time, order.list);
            planner.alternates.note_change(listed, is_first, place);
            mirror.put_coming(item, order)?;
            if let Some(patch) = item.body {
                mirror.put_patch(&item.uri, place, patch)?;
            }
        } else if mirror.row(&item.uri)?.is_none() && mirror.task(&item.uri)?.is_none() {
            // The resource is in the set, and neither stored nor planned. Any change with
            // properties of the resource has precedence.
            let order = ChangeOrder { time: i64::MIN, list: i64::MIN, ..ChangeOrder::default() };
            mirror.put_coming(item, order)?;
        }
        self.noted += 1;
        if self.noted.is_multiple_of(1_024) {
            self.run.report.status(self.noted, 0, 0);
        }
        Ok(())
    }

    fn again(&mut self) -> Result<(), Error> {
        Ok(self.run.planner.mirror.doubt_undated()?)
    }

    fn forget(&mut self) -> Result<(), Error> {
        self.run.planner.changed = Changed::default();
        Ok(self.run.planner.mirror.clear_scratch()?)
    }

    /// Dates a description in a snapshot by the change that precedes it, since the description
    /// itself is not dated.
    fn known_change(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
        match listed.changed {
            Some(changed) if self.has_descriptions && !listed.is_deletion() => {
                let mirror = self.run.planner.mirror;
                Ok(mirror.date_description(listed.uri, changed.first().as_micros())?)
            }
            _ => Ok(()),
        }
    }

    fn differs(&mut self, listed: &Listed<'_>, time: Moment) -> Result<bool, Error> {
        let planner = &mut *self.run.planner;
        let row = planner.mirror.row(listed.uri)?;
        let first = time.first().as_micros();
        let has_it = |row: &Row| row.modified.max(row.changed).is_some_and(|own| first <= own);
        if planner.selection.excludes_change(listed)
            || row.as_ref().is_some_and(has_it)
            || row.is_none() && planner.mirror.task(listed.uri)?.is_some()
        {
            return Ok(false);
        }
        if listed.is_deletion() {
            return Ok(row.is_some());
        }
        let Some(row) = row else { return Ok(true) };
        let mut kept = Digests::default();
        kept.set_from_bytes(&row.digests);
        // If no digest is listed, there is no evidence of a difference.
        Ok(listed.digests.agree(&kept) == Some(false))
    }

    fn is_open(&self, uri: &str) -> bool {
        self.run.planner.open.has(uri)
    }

    fn category(&mut self, listed: &Listed<'_>) -> Result<Category, Error> {
        let planner = &*self.run.planner;
        let (mirror, selection) = (planner.mirror, &planner.selection);
        if !selection.has_categories()
            || !listed.categories.is_empty()
            || listed.is_deletion()
            || selection.is_left(mirror, listed.uri)?
        {
            return Ok(Category::Own);
        }
        let is_planned = |task: Task| task.pending.action == PendingAction::Fetch;
        if mirror.row(listed.uri)?.is_some() || mirror.task(listed.uri)?.is_some_and(is_planned) {
            return Ok(Category::AsKept);
        }
        let known = self.known_since;
        let is_new =
            listed.changed.is_none_or(|time| known.is_none_or(|known| time.last() > known));
        self.uncategorised += u64::from(is_new);
        Ok(Category::Unknown)
    }

    fn left_out(&mut self, categories: &OtherCategories) {
        self.run.planner.selection.note_others(categories);
    }

    fn plans(&self) -> bool {
        true
    }

    fn is_new_copy(&self) -> Result<bool, Error> {
        let mirror = self.run.planner.mirror;
        Ok(mirror.count_rows_up_to(1)? == 0 && mirror.pending_counts()? == PendingCounts::default())
    }

    fn document(&self, url: &str) -> Result<Option<Document>, Error> {
        Ok(self.run.planner.mirror.document(url)?)
    }

    /// A dry run does not store downloads in the state folder.
    fn downloads(&self) -> Option<Downloads> {
        let planner = &self.run.planner;
        (!planner.options.dry_run).then(|| planner.downloads.clone())
    }

    fn notice(&mut self, code: &str, url: &str, message: &str) {
        self.run.report.notice(code, url, message);
    }

    fn fault(&mut self, code: &str, url: &str, message: &str) -> Result<(), Error> {
        self.run.report.list_failed(code, url, message);
        Ok(())
    }

    fn skipped(&mut self, url: &str, skipped: u64) -> Result<bool, Error> {
        Ok(self.run.report.left_out(url, skipped))
    }
}
