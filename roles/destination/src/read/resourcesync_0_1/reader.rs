//! The reader of ResourceSync 0.1: the documents of a set, and their contents.

use super::baseline::{MARGIN_MICROS, sitemap_snapshot};
use super::change_sets::change_sets;
use super::document::read_head;
use super::entry_points::{EntryPoints, find};
use super::pushed::read_pushed;
use super::{dump, site};
use crate::copy::key;
use crate::plan::manifest::Manifest;
use crate::plan::planner::PlanContext;
use crate::push::announcement::{Announcement, Topic};
use crate::read::sets::{choose, fits, name_of};
use crate::read::sitemap::unchanged::kept_indexes;
use crate::read::walk::Walk;
use crate::read::{Finding, Offers, Packages, Pushed, Reader, Snapshot, SourceSet, Start, Whole};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::package::archive::Package;
use crate::request::package::listing::{Offered, Packaged};
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{SyntaxError, Timestamp};

/// The URLs of the Sitemaps that are indexes.
const INDEXES: &str = "rs01-indexes";
/// The help if there is no list to compare with.
const ONLY_CHANGES: &str =
    "there is neither a Sitemap nor a dump to begin again from; give the address of the Sitemap";

/// A Source of documents of ResourceSync 0.1.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceSync01 {
    /// The documents to which the given address led, if it is not a document itself.
    way: Option<site::Found>,
    entry_points: EntryPoints,
    /// The indexes among the Sitemap and its parts.
    indexes: Vec<String>,
}

impl ResourceSync01 {
    /// For an address that leads to documents of 0.1.
    pub(crate) fn found_at(way: site::Found) -> Self {
        Self { way: Some(way), ..Self::default() }
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

    /// The reason why the change sets end, if the current one is missing and the Sitemap links to
    /// another one.
    fn moved_away(&self, walk: &Walk<'_, '_>, error: &Error) -> Result<Option<String>, Error> {
        let sitemap = self.entry_points.sitemap.as_ref();
        let Some(sitemap) = sitemap.filter(|_| matches!(error.status(), Some(404 | 410))) else {
            return Ok(None);
        };
        let read = read_head(walk.requests, sitemap)?;
        let found = EntryPoints::of(&read, sitemap, walk.options);
        // The Sitemaps of an index may also link to the change set.
        let is_known = found.change_set.is_some() || !read.is_index;
        let has_moved = is_known && found.change_set != self.entry_points.change_set;
        Ok(has_moved.then(|| format!("{error}; the Sitemap names others")))
    }

    /// Reads the current push addresses from the Sitemap.
    fn look_again(finding: &Finding<'_, '_>, known: &mut EntryPoints) -> Result<(), Error> {
        let Some(address) = known.sitemap.clone().or_else(|| known.change_set.clone()) else {
            return Ok(());
        };
        match find(finding.requests, finding.options, &address) {
            Ok(found) => known.offers = found.offers,
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            // The lists are read all the same.
            Err(_) => {}
        }
        Ok(())
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
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error> {
        let (options, requests) = (finding.options, finding.requests);
        let known = finding.known.map(|mirror| known_at(mirror, options)).transpose()?.flatten();
        let mut is_found_anew = known.is_none();
        let entry_points = if let Some(mut known) = known {
            if finding.looks_again {
                Self::look_again(finding, &mut known)?;
                is_found_anew = true;
            }
            known
        } else {
            let notice = &mut *finding.notice;
            let mut found = self.found(requests, options, &mut |route| {
                notice("discover.found", &options.url, route);
            })?;
            if let Some(mirror) = finding.known.filter(|_| !finding.is_moved) {
                let known = EntryPoints::known(mirror)?;
                found.check_same(&known, &options.url)?;
                // A dump has no links.
                found.keep_changes_of(&known);
            }
            found
        };
        let first = entry_points.first().unwrap_or(&options.url).to_owned();
        let has_list = entry_points.sitemap.is_some();
        let indexes = finding.known.map(|mirror| mirror.meta(INDEXES)).transpose()?.flatten();
        let indexes = indexes.unwrap_or_default().lines().map(str::to_owned).collect();
        (self.entry_points, self.indexes) = (entry_points, indexes);
        if finding.is_read_only {
            self.check_has_all()?;
        }
        Ok(Start { first, uri_space: None, has_list, is_found_anew })
    }

    fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        if EntryPoints::known(mirror)? != self.entry_points {
            self.entry_points.keep(mirror)?;
        }
        Ok(mirror.set_meta(INDEXES, kept_indexes(&self.indexes).as_deref())?)
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

    fn offers(&self, _: Option<&Mirror>, _: &SyncOptions) -> Result<Offers, Error> {
        let points = &self.entry_points;
        let has_all = points.sitemap.is_some() || !points.dumps.is_empty();
        Ok(Offers {
            whole: if has_all { Whole::Snapshot } else { Whole::Nothing(ONLY_CHANGES) },
            changes: points.change_set.clone(),
            changes_in_packages: false,
            is_comparison_due: false,
        })
    }

    /// The current change set is the topic, if the headers of its response contain hubs.
    fn announcement(&self) -> Option<Announcement> {
        let topic_in = |_: &[u8], url: &str| -> Result<Option<Topic>, SyntaxError> {
            Ok(Some(Topic { url: url.to_owned(), ..Topic::default() }))
        };
        let url = self.entry_points.change_set.clone()?;
        Some(Announcement { url, topic_in, offers: self.entry_points.offers.clone() })
    }

    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        if let Some(sitemap) = self.entry_points.sitemap.clone() {
            return sitemap_snapshot(walk, &sitemap, &mut self.entry_points, &mut self.indexes);
        }
        let has_changes = self.entry_points.change_set.is_some();
        dump::dump_snapshot(walk, &self.entry_points.dumps, has_changes)
    }

    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let Some(current) = self.entry_points.change_set.clone() else { return Ok(()) };
        match change_sets(walk, &current) {
            Ok(None) => Ok(()),
            // Another change set is the current one now, and links back to this one.
            Ok(Some(moved)) => {
                walk.restart()?;
                let read = change_sets(walk, &moved);
                self.entry_points.change_set = Some(moved);
                read.map(drop)
            }
            Err(error) => {
                walk.walked.hole = self.moved_away(walk, &error)?;
                if walk.walked.hole.is_some() { Ok(()) } else { Err(error) }
            }
        }
    }

    fn pushed(&self, bytes: &[u8]) -> Result<Box<dyn Pushed>, String> {
        read_pushed(bytes, self.entry_points.change_set.as_deref().unwrap_or_default())
    }

    fn packages(&mut self) -> Option<&mut dyn Packages> {
        Some(self)
    }
}

impl Packages for ResourceSync01 {
    fn offered(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error> {
        // A dump contains all resources, and the changes since then are a small part.
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
}

/// The documents that an earlier run found at the same address.
///
/// # Errors
/// They belong to another set than the chosen one.
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
