//! The reader of ResourceSync: which documents are read, in which order, and what follows from
//! them.

use super::change_list::{each_change, plan_changes, skip_gap};
use super::cursor;
use super::discover::{
    Discovered, EntryPoints, discover, discover_again, discover_all, forget_changes_since,
    with_other_sets,
};
use super::dump::{read_dump, since_url};
use super::dump_plan::{plan_change_dump, plan_resource_dump};
use super::keys;
use super::manifest::read_manifest;
use super::pushed::{LISTS_LATE, plan_announced};
use super::resource_list::{ResourceLists, plan_baseline};
use super::topic::topic_in;
use crate::error::{Error, ExitCode};
use crate::events::{Event, Mode, Observer, Problem};
use crate::options::SyncOptions;
use crate::package::archive::Package;
use crate::package::listing::{Offered, Packaged};
use crate::package::manifest::Manifest;
use crate::plan::changes::Followed;
use crate::plan::comparison::Baseline;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::sets::name_of;
use crate::read::sitemap::follow::is_followed;
use crate::read::sitemap::walk::{self, expect_all};
use crate::read::{Announcement, Expecting, Reader, SourceSet, Start, keep_found};
use crate::requests::Requests;
use crate::state::key;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// The help where there is nothing to compare with.
const ONLY_CHANGES: &str =
    "there is neither a Resource List nor a Resource Dump to begin again from";

/// A Source of ResourceSync documents.
#[derive(Debug, Default)]
pub(crate) struct ResourceSync {
    entry_points: EntryPoints,
    /// The Change Dump to read when the packages of a Resource Dump have been used.
    changes_next: Option<String>,
    /// The time of the newest change that notifications announced.
    announced: Option<Timestamp>,
    /// The Capability List was read again in this run.
    is_read_again: bool,
    /// What discovery found when the reader was chosen.
    found: Option<Result<Discovered, Error>>,
}

impl ResourceSync {
    /// For an address whose discovery was done already.
    pub(crate) fn found(found: Result<Discovered, Error>) -> Self {
        Self { found: Some(found), ..Self::default() }
    }

    fn discover(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Discovered, Error> {
        self.found.take().unwrap_or_else(|| discover(requests, options))
    }

    fn start(&mut self, entry_points: EntryPoints, options: &SyncOptions) -> Start {
        let first = entry_points.first().unwrap_or(&options.url).to_owned();
        let (uri_space, has_list) =
            (entry_points.uri_space.clone(), entry_points.resource_list.is_some());
        *self = Self { entry_points, ..Self::default() };
        Start { first, uri_space, has_list }
    }

    /// Reads the Capability List again, once in a run at most, when what is wanted of it is not
    /// known: a Source may have begun to offer it.
    fn read_again(
        &mut self,
        run: &PlanContext<'_, '_>,
        wants_changes_since: bool,
    ) -> Result<(), Error> {
        if self.is_read_again {
            return Ok(());
        }
        let (options, mirror) = (run.planner.options, run.planner.mirror);
        if let Some(read) = discover_again(
            (run.requests, options),
            mirror,
            &self.entry_points,
            wants_changes_since,
        )? {
            self.entry_points = read;
            self.is_read_again = true;
        }
        Ok(())
    }

    fn list(&self, purpose: &str) -> Result<&str, Error> {
        let list = self.entry_points.resource_list.as_deref();
        list.ok_or_else(|| {
            Error::new(
                "gap",
                ExitCode::Gap,
                format!("the Source has no Resource List to {purpose}"),
            )
        })
    }
}

impl Reader for ResourceSync {
    fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error> {
        let entry_points = self.known_or_found(run)?;
        Ok(self.start(entry_points, run.planner.options))
    }

    fn find_read_only(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        observer: &dyn Observer,
    ) -> Result<Start, Error> {
        let options = &match known {
            Some(mirror) => with_known_set(options, mirror)?,
            None => options.clone(),
        };
        let found = self.discover(requests, options)?;
        if let Some(mirror) = known {
            found.entry_points.check_same(&EntryPoints::known(mirror)?, &options.url)?;
        }
        if let Some(route) = &found.route {
            observer.event(&Event::Notice(Problem {
                code: "discover.found",
                uri: &options.url,
                message: route,
            }));
        }
        let start = self.start(found.entry_points, options);
        self.list("compare with")?;
        Ok(start)
    }

    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        let found = discover_all(requests, options)?;
        Ok(found
            .into_iter()
            .map(|set| SourceSet { name: name_of(&set.url).to_owned(), url: set.url })
            .collect())
    }

    fn announcement(&self, mirror: &Mirror) -> Result<Option<Announcement>, Error> {
        Ok(mirror.meta(keys::CAPABILITY_LIST)?.map(|url| Announcement {
            url,
            topic_in,
            offers: Vec::new(),
        }))
    }

    fn each_resource(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<(), Error> {
        let (list, mut lists) = (self.list("test the filters with")?, ResourceLists::default());
        walk::each_resource(requests, options, list, &mut lists, each)
    }

    fn expect(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error> {
        let mut lists = ResourceLists::default();
        expect_all(requests, options, self.list("compare with")?, &mut lists, to)?;
        if let (Some(changes), Some(at)) = (&self.entry_points.change_list, lists.at) {
            each_change(requests, options, changes, at.as_micros(), &mut |listed, time| {
                to.changed(listed, time)
            })?;
        }
        Ok(())
    }

    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        self.plan_due(run)
    }

    fn packages(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error> {
        self.read_again(run, false)?;
        let changes = self.entry_points.change_dump.iter().filter(|_| since.is_some());
        let dumps = changes
            .map(|url| (url, Packaged::Changes))
            .chain(self.entry_points.resource_dump.iter().map(|url| (url, Packaged::Snapshot)));
        let offered = dumps.filter_map(|(url, packaged)| {
            let dump = read_dump(run, url, packaged, None).transpose()?;
            Some(Offered { url: url.clone(), dump: dump.map(|dump| dump.offered(packaged)) })
        });
        Ok(offered.collect())
    }

    fn package_since(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Timestamp,
    ) -> Result<Option<String>, Error> {
        self.read_again(run, true)?;
        Ok(self.entry_points.changes_since.as_deref().and_then(|address| since_url(address, since)))
    }

    fn forget_package_since(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        forget_changes_since(run.planner.mirror)
    }

    fn manifest(
        &self,
        requests: &Requests<'_>,
        package: &Package,
        url: &str,
        packaged: Packaged,
    ) -> Result<Manifest, Error> {
        read_manifest(package, url, packaged, &requests.diagnostics, &mut |_, _| Ok(()))
    }

    fn plan_rest(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        self.plan_changes_next(run)
    }

    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let (Some(changes), Some(cursor)) =
            (&self.entry_points.change_list, cursor::get(run.planner.mirror)?)
        else {
            return Ok(false);
        };
        // Other results are reported by the next run, if they last.
        Ok(run.planner.polling.may_poll()
            && matches!(plan_changes(run, changes, cursor, true), Ok(Followed::Planned)))
    }

    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(cursor::get(mirror)?.map(|cursor| cursor.to_string()))
    }

    fn is_behind(&self, mirror: &Mirror) -> Result<bool, Error> {
        let cursor = cursor::get(mirror)?;
        Ok(self.announced.is_some_and(|announced| cursor.is_some_and(|cursor| cursor < announced)))
    }

    fn explain(&self, requests: &Requests<'_>, options: &SyncOptions, error: Error) -> Error {
        with_other_sets(requests, options, error)
    }
}

/// Without a choice of set, the one that a copy of the same address was begun with.
fn with_known_set(options: &SyncOptions, mirror: &Mirror) -> Result<SyncOptions, Error> {
    let mut options = options.clone();
    if options.set.is_none() && mirror.meta(key::SOURCE_URL)?.as_ref() == Some(&options.url) {
        options.set = mirror.meta(key::SET)?.or(mirror.meta(keys::CAPABILITY_LIST)?);
    }
    Ok(options)
}

impl ResourceSync {
    /// Where the lists are: as found before, or discovered now.
    fn known_or_found(&mut self, run: &mut PlanContext<'_, '_>) -> Result<EntryPoints, Error> {
        let known = EntryPoints::known(run.planner.mirror)?;
        let source = run.planner.mirror.meta(key::SOURCE_URL)?;
        let named = source.as_deref() == Some(&run.planner.options.url)
            || known.capability_list.as_deref() == Some(&run.planner.options.url);
        let same_set = run.planner.options.set.is_none()
            || run.planner.options.set == run.planner.mirror.meta(key::SET)?;
        let has_any = known.has_any();
        if named && has_any && same_set {
            return Ok(known);
        }
        let Discovered { entry_points: found, route } =
            self.discover(run.requests, run.planner.options)?;
        found.check_same(&known, &run.planner.options.url)?;
        if let Some(route) = route {
            run.report.notice("discover.found", &run.planner.options.url, &route);
        }
        keep_found(run, &|mirror| found.keep(mirror))?;
        Ok(found)
    }

    /// Decides between following changes and comparing with the whole list.
    fn plan_due(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        let entry_points = &self.entry_points.clone();
        let changes = entry_points.change_list.as_deref();
        let has_all = entry_points.resource_list.is_some() || entry_points.resource_dump.is_some();
        let only_changes = (!has_all).then_some(ONLY_CHANGES);
        let is_compared =
            run.planner.options.baseline || run.planner.selection.has_changed() && has_all;
        if run.planner.selection.has_changed() && !has_all {
            run.planner.selection.keep(run.planner.mirror)?;
        }
        if !is_compared
            && let (Some(changes), Some(cursor)) = (changes, cursor::get(run.planner.mirror)?)
            && plan_announced(run, changes, cursor, &mut self.announced)?
        {
            return Ok(());
        }
        if !run.planner.polling.may_poll() {
            run.planner.polling.is_postponed = true;
            return Ok(());
        }
        if !is_compared
            && let (Some(changes), Some(cursor)) = (changes, cursor::get(run.planner.mirror)?)
        {
            let followed = plan_changes(run, changes, cursor, true)?;
            if is_followed(run, followed, changes, LISTS_LATE, only_changes)? {
                return Ok(());
            }
        } else if !is_compared
            && let (None, Some(dump), Some(cursor)) =
                (changes, entry_points.change_dump.as_deref(), cursor::get(run.planner.mirror)?)
        {
            let followed = plan_change_dump(run, dump, cursor, false)?;
            if is_followed(run, followed, dump, LISTS_LATE, only_changes)? {
                return Ok(());
            }
        }
        let Some(list) = entry_points.resource_list.as_deref() else {
            if let Some(dump) = entry_points.resource_dump.as_deref() {
                let baseline = plan_resource_dump(
                    run,
                    dump,
                    changes.is_some() || entry_points.change_dump.is_some(),
                )?;
                if changes.is_none() && baseline.whole && baseline.at.is_some() {
                    self.changes_next.clone_from(&entry_points.change_dump);
                    if run.planner.mirror.pending_counts()?.fetches == 0 {
                        self.plan_changes_next(run)?;
                    }
                }
                return plan_since(run, &baseline, changes);
            }
            if let (Some(changes), None) = (changes, cursor::get(run.planner.mirror)?) {
                let message = "there is no Resource List to begin from; only the changes in this Change List are applied";
                run.report.notice("gap", changes, message);
                run.report.summary.mode = Mode::Incremental;
                return skip_gap(run, changes);
            }
            return Err(Error::new(
                "gap",
                ExitCode::Gap,
                "the Source has no Resource List, so a copy cannot begin",
            )
            .with_help("ask for a Capability List that names one"));
        };
        let baseline = plan_baseline(run, list, changes.is_some())?;
        plan_since(run, &baseline, changes)
    }

    /// Plans what changed since a Resource Dump, out of the Change Dump, where there is no Change
    /// List; `true` when something may be planned. The packages of the Resource Dump have been used
    /// by then, since a plan is made from one dump at a time.
    fn plan_changes_next(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let (Some(dump), Some(cursor)) =
            (self.changes_next.take(), cursor::get(run.planner.mirror)?)
        else {
            return Ok(false);
        };
        match plan_change_dump(run, &dump, cursor, true) {
            Ok(followed) => Ok(followed == Followed::Planned),
            Err(error) if error.exit_code() == ExitCode::SourceInvalid => {
                // The cursor stays, so the next run reads the Change Dump again.
                run.report.list_failed(error.code(), &dump, &error.to_string());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Plans what changed since a snapshot, or while it was made.
fn plan_since(
    run: &mut PlanContext<'_, '_>,
    baseline: &Baseline,
    changes: Option<&str>,
) -> Result<(), Error> {
    if baseline.unchanged {
        return Ok(());
    }
    if let (true, Some(changes), Some(at)) = (baseline.whole, changes, baseline.at) {
        match plan_changes(run, changes, at, false) {
            Ok(Followed::Gap(why)) => {
                run.report.notice(
                    "gap",
                    changes,
                    &format!(
                        "{why}; changes in between are known from the next Resource List only"
                    ),
                );
                skip_gap(run, changes)?;
            }
            Ok(_) => {}
            Err(error) if matches!(error.exit_code(), ExitCode::SourceInvalid) => {
                run.report.list_failed(error.code(), changes, &error.to_string());
                cursor::set(run.planner.mirror, None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
