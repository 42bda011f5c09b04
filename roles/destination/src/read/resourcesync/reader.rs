//! The reader of ResourceSync: the documents of a set, and their contents.

use super::change_list::ChangeLists;
use super::discover::{
    Discovered, discover, discover_again, discover_all, forget_changes_since, with_other_sets,
};
use super::dump::{read_dump, since_url};
use super::dump_walk::{change_dump, resource_dump};
use super::keys;
use super::manifest::read_manifest;
use super::pushed::read_pushed;
use super::resource_list::{keep_indexes, known_indexes, resource_list};
use super::topic::topic_in;
use crate::copy::key;
use crate::plan::manifest::Manifest;
use crate::plan::planner::PlanContext;
use crate::push::announcement::Announcement;
use crate::read::resourcesync::entry_points::EntryPoints;
use crate::read::sets::name_of;
use crate::read::walk::Walk;
use crate::read::{Finding, Offers, Packages, Pushed, Reader, Snapshot, SourceSet, Start, Whole};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::package::archive::Package;
use crate::request::package::listing::{Offered, Packaged};
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;
use std::time::{Duration, Instant};

/// The help if there is no list to compare with.
const ONLY_CHANGES: &str =
    "there is neither a Resource List nor a Resource Dump to begin again from";

/// Time after discovery in which the Capability List is not read again to find dumps.
const DISCOVERY_LASTS: Duration = Duration::from_secs(60);

/// A Source of ResourceSync documents.
#[derive(Debug, Default)]
pub(crate) struct ResourceSync {
    entry_points: EntryPoints,
    /// The indexes among the Resource List and its parts.
    indexes: Vec<String>,
    /// The Capability List was read again in this run.
    is_read_again: bool,
    /// Time of discovery, if it was in this run.
    found_at: Option<Instant>,
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

    /// Reads the Capability List again, at most once in a run, if a required document is not known:
    /// the Source may have started to offer it.
    fn read_again(
        &mut self,
        run: &PlanContext<'_, '_>,
        wants_changes_since: bool,
    ) -> Result<(), Error> {
        let is_new = self.found_at.is_some_and(|at| at.elapsed() < DISCOVERY_LASTS);
        if self.is_read_again || is_new {
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

    /// The documents that an earlier run found at the same address, if they belong to the chosen
    /// set.
    fn known(finding: &Finding<'_, '_>) -> Result<Option<EntryPoints>, Error> {
        let Some(mirror) = finding.known.filter(|_| !finding.is_read_only) else { return Ok(None) };
        let (known, options) = (EntryPoints::known(mirror)?, finding.options);
        let source = mirror.meta(key::SOURCE_URL)?;
        let is_named = source.as_deref() == Some(&options.url)
            || known.capability_list.as_deref() == Some(&options.url);
        let is_same_set = options.set.is_none() || options.set == mirror.meta(key::SET)?;
        Ok((is_named && known.has_any() && is_same_set).then_some(known))
    }
}

impl Reader for ResourceSync {
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error> {
        let mut known = Self::known(finding)?;
        let again =
            known.as_ref().map(|known| known.find_missing(finding.requests, finding.options));
        let again = again.transpose()?.flatten();
        let is_found_anew = known.is_none() || again.is_some();
        known = again.or(known);
        let entry_points = if let Some(known) = known {
            known
        } else {
            let options = &match finding.known.filter(|_| finding.is_read_only) {
                Some(mirror) => with_known_set(finding.options, mirror)?,
                None => finding.options.clone(),
            };
            let found = self.discover(finding.requests, options)?;
            if let Some(mirror) = finding.known.filter(|_| !finding.is_moved) {
                found.entry_points.check_same(&EntryPoints::known(mirror)?, &options.url)?;
            }
            if let Some(route) = &found.route {
                (finding.notice)("discover.found", &options.url, route);
            }
            found.entry_points
        };
        let first = entry_points.first().unwrap_or(&finding.options.url).to_owned();
        let (uri_space, has_list) =
            (entry_points.uri_space.clone(), entry_points.resource_list.is_some());
        let indexes = finding.known.map(known_indexes).transpose()?.unwrap_or_default();
        let found_at = is_found_anew.then(Instant::now);
        *self = Self { entry_points, indexes, found_at, ..Self::default() };
        if finding.is_read_only && !has_list && self.entry_points.resource_dump.is_none() {
            let message =
                "the Source has neither a Resource List nor a Resource Dump to compare with";
            return Err(Error::new("gap", ExitCode::Gap, message));
        }
        Ok(Start { first, uri_space, has_list, is_found_anew })
    }

    fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        self.entry_points.keep(mirror)?;
        keep_indexes(mirror, &self.indexes)
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

    fn offers(&self, _: Option<&Mirror>, _: &SyncOptions) -> Result<Offers, Error> {
        let points = &self.entry_points;
        let has_all = points.resource_list.is_some() || points.resource_dump.is_some();
        Ok(Offers {
            whole: if has_all { Whole::Snapshot } else { Whole::Nothing(ONLY_CHANGES) },
            changes: points.change_list.clone().or_else(|| points.change_dump.clone()),
            changes_in_packages: points.change_list.is_none(),
            is_comparison_due: false,
        })
    }

    fn announcement(&self) -> Option<Announcement> {
        let url = self.entry_points.capability_list.clone()?;
        Some(Announcement { url, topic_in, offers: Vec::new() })
    }

    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        let points = &self.entry_points;
        let has_changes = points.change_list.is_some() || points.change_dump.is_some();
        if let Some(list) = &points.resource_list {
            return resource_list(walk, list, has_changes, &mut self.indexes);
        }
        match &points.resource_dump {
            Some(dump) => resource_dump(walk, dump, has_changes),
            None => Err(Error::new(
                "gap",
                ExitCode::Gap,
                "the Source has no Resource List, so a copy cannot begin",
            )
            .with_help("ask for a Capability List that names one")),
        }
    }

    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let (requests, options) = (walk.requests, walk.options);
        let (mut points, mut is_read_again) = (self.entry_points.clone(), self.is_read_again);
        let mut read_again = |points: &mut EntryPoints| -> Result<(), Error> {
            // Once in a run: while no list is open the answer is the same.
            if !is_read_again && let Some(url) = points.capability_list.clone() {
                is_read_again = true;
                if let Some(found) = points.read_again(requests, options, &url)? {
                    *points = found;
                }
            }
            Ok(())
        };
        let read = if let Some(list) = self.entry_points.change_list.clone() {
            let archive = self.entry_points.change_list_archive.clone();
            let lists = ChangeLists { list: &list, archive: archive.as_deref() };
            lists.read(walk, &mut || {
                read_again(&mut points)?;
                Ok(points.change_list.clone())
            })
        } else if let Some(dump) = &self.entry_points.change_dump {
            change_dump(walk, dump, &mut || {
                read_again(&mut points)?;
                Ok(points.change_dump.clone())
            })
        } else {
            Ok(())
        };
        (self.entry_points, self.is_read_again) = (points, is_read_again);
        read
    }

    fn pushed(&self, bytes: &[u8]) -> Result<Box<dyn Pushed>, String> {
        let document = self.entry_points.change_list.clone().unwrap_or_default();
        read_pushed(bytes, document)
    }

    fn packages(&mut self) -> Option<&mut dyn Packages> {
        Some(self)
    }

    fn explain(&self, requests: &Requests<'_>, options: &SyncOptions, error: Error) -> Error {
        with_other_sets(requests, options, error)
    }
}

impl Packages for ResourceSync {
    fn offered(
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
            let mut notice =
                |code: &str, url: &str, message: &str| run.report.notice(code, url, message);
            let via = (run.requests, run.planner.options);
            let dump = read_dump(via, url, packaged, None, &mut notice).transpose()?;
            run.requests.diagnostics.report(run.report);
            Some(Offered { url: url.clone(), dump: dump.map(|dump| dump.offered(packaged)) })
        });
        Ok(offered.collect())
    }

    fn since(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Timestamp,
    ) -> Result<Option<String>, Error> {
        self.read_again(run, true)?;
        Ok(self.entry_points.changes_since.as_deref().and_then(|address| since_url(address, since)))
    }

    fn forget_since(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        self.entry_points.changes_since = None;
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
}

/// If the user does not choose a set, chooses the set of an existing copy from the same address.
fn with_known_set(options: &SyncOptions, mirror: &Mirror) -> Result<SyncOptions, Error> {
    let mut options = options.clone();
    if options.set.is_none() && mirror.meta(key::SOURCE_URL)?.as_ref() == Some(&options.url) {
        options.set = mirror.meta(key::SET)?.or(mirror.meta(keys::CAPABILITY_LIST)?);
    }
    Ok(options)
}
