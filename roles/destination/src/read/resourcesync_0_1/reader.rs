//! The reader of ResourceSync 0.1: which documents are read, in which order, and what follows from
//! them.

use super::baseline::{MARGIN_MICROS, instant, plan_baseline};
use super::change_sets::{each_change, is_newer, plan_changes};
use super::cursor;
use super::document::read_head;
use super::dump;
use super::entry_points::{EntryPoints, find};
use super::pushed::plan_pushed;
use super::site;
use super::sitemap::Sitemaps;
use crate::error::{Error, ExitCode};
use crate::events::{Event, Mode, Observer, Problem};
use crate::options::SyncOptions;
use crate::package::archive::Package;
use crate::package::listing::{Offered, Packaged};
use crate::package::manifest::Manifest;
use crate::plan::changes::Followed;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::push::Topic;
use crate::read::sets::{choose, fits, name_of};
use crate::read::sitemap::follow::is_followed;
use crate::read::sitemap::walk::{self, expect_all};
use crate::read::{Announcement, Expecting, Reader, SourceSet, Start, keep_found};
use crate::requests::Requests;
use crate::state::key;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{SyntaxError, Timestamp};

/// Since when the current change set lacks what was pushed, seconds.
const LATE: &str = "rs01-late";
/// The help where there is nothing to compare with.
const ONLY_CHANGES: &str =
    "there is neither a Sitemap nor a dump to begin again from; give the address of the Sitemap";

/// A Source of documents of ResourceSync 0.1.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceSync01 {
    /// Where the given address led, when it is not a document itself.
    way: Option<site::Found>,
    entry_points: EntryPoints,
    /// The time of the newest change that was pushed and not read.
    announced: Option<Timestamp>,
}

impl ResourceSync01 {
    /// For an address that leads to documents of 0.1.
    pub(crate) fn found_at(way: site::Found) -> Self {
        Self { way: Some(way), ..Self::default() }
    }

    fn start(&mut self, entry_points: EntryPoints, options: &SyncOptions) -> Start {
        let first = entry_points.first().unwrap_or(&options.url).to_owned();
        let has_list = entry_points.sitemap.is_some();
        (self.entry_points, self.announced) = (entry_points, None);
        Start { first, uri_space: None, has_list }
    }

    /// The documents of the set that the options name.
    fn found(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        notice: &mut dyn FnMut(&str),
    ) -> Result<EntryPoints, Error> {
        let Some(way) = &self.way else {
            let found = find(requests, options, &options.url)?;
            check_set(&found, options)?;
            if let (None, parts @ 2..) = (&found.sitemap, found.dumps.len()) {
                let url = &options.url;
                notice(&format!(
                    "{url} is one of the {parts} parts of a dump; all of them are read"
                ));
            }
            return Ok(found);
        };
        let sets = way.all();
        let wanted = options.set.as_deref();
        let chosen = match sets.as_slice() {
            [first, ..] if way.is_dump => first,
            sets => choose(sets, wanted.filter(|_| sets.len() > 1), &options.url)?,
        };
        let routes = || way.sets.iter().filter(|(set, _)| set.url == chosen.url);
        let mut found =
            find(requests, options, &chosen.url).map_err(|error| match routes().next() {
                Some((_, route)) if error.exit_code() == ExitCode::SourceInvalid => {
                    error.with_line(route)
                }
                _ => error,
            })?;
        if way.is_dump {
            found.take_parts(sets.iter().map(|set| set.url.clone()));
        }
        if way.is_dump || sets.len() == 1 {
            check_set(&found, options)?;
        }
        for (_, route) in routes() {
            notice(route);
        }
        Ok(found)
    }

    /// # Errors
    /// There is neither a Sitemap nor a dump.
    fn check_has_all(&self) -> Result<(), Error> {
        if self.entry_points.sitemap.is_some() || !self.entry_points.dumps.is_empty() {
            return Ok(());
        }
        let message = "the Source has only change sets, which do not list all there is, so nothing can be compared with them";
        Err(Error::new("list.none", ExitCode::Usage, message)
            .with_help("give the address of the Sitemap, if there is one"))
    }

    /// Whether the current change set is gone, and the Sitemap does not name it any more.
    fn has_moved(
        &self,
        run: &PlanContext<'_, '_>,
        sitemap: Option<&str>,
        error: &Error,
    ) -> Result<bool, Error> {
        let Some(sitemap) = sitemap.filter(|_| matches!(error.status(), Some(404 | 410))) else {
            return Ok(false);
        };
        let read = read_head(run.requests, sitemap)?;
        let found = EntryPoints::of(&read, sitemap, run.planner.options);
        // The Sitemaps of an index may name it, too.
        let is_known = found.change_set.is_some() || !read.is_index;
        Ok(is_known && found.change_set != self.entry_points.change_set)
    }
}

fn check_set(found: &EntryPoints, options: &SyncOptions) -> Result<(), Error> {
    let url = found.first().unwrap_or(&options.url).to_owned();
    match &options.set {
        Some(wanted) => {
            let only = [SourceSet { name: name_of(&url).to_owned(), url }];
            choose(&only, Some(wanted), &options.url).map(drop)
        }
        None => Ok(()),
    }
}

impl Reader for ResourceSync01 {
    fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error> {
        let (options, mirror) = (run.planner.options, run.planner.mirror);
        let known = EntryPoints::known(mirror)?;
        if let Some(mut known) = known_at(mirror, options)? {
            if run.planner.polling.looks_again {
                look_again(run, &mut known)?;
            }
            return Ok(self.start(known, options));
        }
        let (requests, report) = (run.requests, &mut *run.report);
        let found = self.found(requests, options, &mut |route| {
            report.notice("discover.found", &options.url, route);
        })?;
        requests.diagnostics.report(run.report);
        found.check_same(&known, &options.url)?;
        keep_found(run, &|mirror| found.keep(mirror))?;
        Ok(self.start(found, options))
    }

    fn find_read_only(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        observer: &dyn Observer,
    ) -> Result<Start, Error> {
        let found = match known.map(|mirror| known_at(mirror, options)).transpose()?.flatten() {
            Some(known) => known,
            None => self.found(requests, options, &mut |route| {
                let (code, uri) = ("discover.found", &*options.url);
                observer.event(&Event::Notice(Problem { code, uri, message: route }));
            })?,
        };
        if let Some(mirror) = known {
            found.check_same(&EntryPoints::known(mirror)?, &options.url)?;
        }
        let start = self.start(found, options);
        self.check_has_all()?;
        Ok(start)
    }

    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        if let Some(way) = self.way.as_ref().filter(|way| !way.is_dump && way.sets.len() > 1) {
            return Ok(way.all());
        }
        let found = self.found(requests, options, &mut |_| {})?;
        let url = found.first().unwrap_or(&options.url).to_owned();
        Ok(vec![SourceSet { name: name_of(&url).to_owned(), url }])
    }

    /// The current change set is the topic, if it names hubs in the headers of its answer.
    fn announcement(&self, mirror: &Mirror) -> Result<Option<Announcement>, Error> {
        let topic_in = |_: &[u8], url: &str| -> Result<Option<Topic>, SyntaxError> {
            Ok(Some(Topic { url: url.to_owned(), ..Topic::default() }))
        };
        let known = EntryPoints::known(mirror)?;
        let offers = known.offers;
        Ok(known.change_set.map(|url| Announcement { url, topic_in, offers }))
    }

    fn each_resource(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<(), Error> {
        self.check_has_all()?;
        if let Some(sitemap) = &self.entry_points.sitemap {
            let mut sitemaps = Sitemaps::new(options);
            return walk::each_resource(requests, options, sitemap, &mut sitemaps, each);
        }
        dump::each_entry(requests, &self.entry_points.dumps, &mut |listed| {
            each(listed);
            Ok(())
        })
        .map(drop)
    }

    fn expect(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error> {
        self.check_has_all()?;
        let (changes, at) = if let Some(sitemap) = &self.entry_points.sitemap {
            let mut sitemaps = Sitemaps::new(options);
            let top = expect_all(requests, options, sitemap, &mut sitemaps, to)?;
            to.left_out(&sitemaps.others);
            let at = instant(&top.answered, sitemaps.modified, sitemaps.newest);
            (sitemaps.entry_points.change_set, Some(at))
        } else {
            let dumps = &self.entry_points.dumps;
            (None, dump::each_entry(requests, dumps, &mut |listed| to.listed(listed))?)
        };
        let changes = changes.or(self.entry_points.change_set.clone());
        if let (Some(changes), Some(at)) = (changes, at) {
            each_change(requests, options, &changes, at, to)?;
        }
        Ok(())
    }

    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        let (options, mirror) = (run.planner.options, run.planner.mirror);
        let changes = self.entry_points.change_set.clone();
        let has_all = self.entry_points.sitemap.is_some() || !self.entry_points.dumps.is_empty();
        let only_changes = (!has_all).then_some(ONLY_CHANGES);
        let has_other_filters = run.planner.selection.has_changed();
        if has_other_filters && !has_all {
            run.planner.selection.keep(mirror)?;
        }
        let is_compared = options.baseline || has_other_filters && has_all;
        let known = if is_compared { None } else { cursor::get(mirror)? };
        if let (Some(changes), Some(known)) = (&changes, known)
            && plan_pushed(run, changes, known, &mut self.announced)?
        {
            return Ok(());
        }
        if !run.planner.polling.may_poll() {
            run.planner.polling.is_postponed = true;
            return Ok(());
        }
        if let (Some(changes), Some(known)) = (&changes, known) {
            let followed = match &self.entry_points.sitemap {
                Some(sitemap) if is_newer(run, sitemap)? => {
                    let why = "the Sitemap was older than the change sets, and there is a new one";
                    Followed::Gap(why.to_owned())
                }
                None if dump::is_newer(run, &self.entry_points.dumps)? => {
                    let why = "the dump was older than the change sets, and there is a new one";
                    Followed::Gap(why.to_owned())
                }
                sitemap => match plan_changes(run, changes, known, None) {
                    Err(error) if self.has_moved(run, sitemap.as_deref(), &error)? => {
                        Followed::Gap(format!("{error}; the Sitemap names others"))
                    }
                    followed => followed?,
                },
            };
            if is_followed(run, followed, changes, LATE, only_changes)? {
                return Ok(());
            }
            // Until the comparison has succeeded: what shows the gap may be superseded then.
            cursor::set(mirror, None)?;
        }
        let baseline = if let Some(sitemap) = self.entry_points.sitemap.clone() {
            plan_baseline(run, &sitemap, &mut self.entry_points)?
        } else if !self.entry_points.dumps.is_empty() {
            dump::plan_dump(run, &self.entry_points.dumps, changes.is_some())?
        } else if let Some(changes) = &changes {
            let message = "there is no Sitemap to begin from; only the changes that the change sets list are applied";
            run.report.notice("gap", changes, message);
            run.report.summary.mode = Mode::Incremental;
            plan_changes(run, changes, Timestamp::MIN, Some(Timestamp::MAX))?;
            return Ok(());
        } else {
            let message = "the Source has neither a Sitemap nor a dump, so a copy cannot begin";
            return Err(Error::new("gap", ExitCode::Gap, message));
        };
        let changes = self.entry_points.change_set.clone();
        if let (false, true, Some(changes), Some(at)) =
            (baseline.unchanged, baseline.whole, changes, baseline.at)
        {
            plan_since(run, &changes, at)?;
        }
        Ok(())
    }

    fn packages(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error> {
        // A dump has everything: what changed since then is a small part of it.
        let links = &self.entry_points.dumps;
        let first = links.first().filter(|_| since.is_none());
        let offered = first.map(|first| Offered {
            url: first.url.clone(),
            dump: dump::offered(run.requests, links),
        });
        Ok(offered.into_iter().collect())
    }

    fn manifest(
        &self,
        requests: &Requests<'_>,
        package: &Package,
        url: &str,
        _: Packaged,
    ) -> Result<Manifest, Error> {
        let mut manifest =
            dump::read_manifest(package, url, &requests.diagnostics, &mut |_| Ok(()))?;
        manifest.at = manifest.at.map(|at| at.plus_micros(-MARGIN_MICROS));
        Ok(manifest)
    }

    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let (Some(changes), Some(cursor)) =
            (&self.entry_points.change_set, cursor::get(run.planner.mirror)?)
        else {
            return Ok(false);
        };
        // Other results are reported by the next run, if they last.
        Ok(run.planner.polling.may_poll()
            && matches!(plan_changes(run, changes, cursor, None), Ok(Followed::Planned)))
    }

    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(cursor::get(mirror)?.map(|cursor| cursor.to_string()))
    }

    fn is_behind(&self, mirror: &Mirror) -> Result<bool, Error> {
        let cursor = cursor::get(mirror)?;
        Ok(self.announced.is_some_and(|announced| cursor.is_some_and(|cursor| cursor < announced)))
    }
}

/// What an earlier run of the same address found.
///
/// # Errors
/// That is of another set than the one that is wanted now.
fn known_at(mirror: &Mirror, options: &SyncOptions) -> Result<Option<EntryPoints>, Error> {
    let known = EntryPoints::known(mirror)?;
    if mirror.meta(key::SOURCE_URL)?.as_ref() != Some(&options.url) {
        return Ok(None);
    }
    let Some(first) = known.first() else { return Ok(None) };
    match &options.set {
        Some(set) if mirror.meta(key::SET)?.as_ref() != Some(set) && !fits(first, set) => {
            let message = format!("this folder is a copy of {first}, not of the set `{set}`");
            Err(Error::new("folder.source", ExitCode::Usage, message)
                .with_help("use another folder, or leave out `--set`"))
        }
        _ => Ok(Some(known)),
    }
}

/// Reads where change sets are pushed, as the Sitemap states it now.
fn look_again(run: &mut PlanContext<'_, '_>, known: &mut EntryPoints) -> Result<(), Error> {
    let Some(address) = known.sitemap.clone().or_else(|| known.change_set.clone()) else {
        return Ok(());
    };
    let found = match find(run.requests, run.planner.options, &address) {
        Ok(found) => found,
        Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
        // The lists are read all the same.
        Err(_) => return Ok(()),
    };
    run.requests.diagnostics.report(run.report);
    known.offers = found.offers;
    keep_found(run, &|mirror| known.keep(mirror))
}

/// Plans what changed since a snapshot, or while it was made.
fn plan_since(run: &mut PlanContext<'_, '_>, changes: &str, at: Timestamp) -> Result<(), Error> {
    match plan_changes(run, changes, at.plus_micros(-MARGIN_MICROS), Some(at)) {
        Ok(_) => Ok(()),
        Err(error) if error.exit_code() == ExitCode::SourceInvalid => {
            run.report.list_failed(error.code(), changes, &error.to_string());
            cursor::set(run.planner.mirror, None)
        }
        Err(error) => Err(error),
    }
}
