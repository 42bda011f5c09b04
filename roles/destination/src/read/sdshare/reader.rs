//! The reader of SDShare: which feeds are read, in which order, and what follows from them.

use super::find::{self, Feeds};
use super::fragments::{Fragment, Pages, keep_seen, plan_fragments, seen};
use super::snapshots::{Snapshot, newest};
use crate::error::{Error, ExitCode};
use crate::events::{Mode, Observer};
use crate::options::SyncOptions;
use crate::package::download::Downloads;
use crate::plan::changes::Followed;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::push::Topic;
use crate::read::descriptions::{each_description, no_temporary, plan_descriptions};
use crate::read::{Announcement, Expecting, Reader, SourceSet, Start, keep_found};
use crate::requests::Requests;
use crate::state::key;
use crate::state_folder::StateFolder;
use abreast_sdshare::{Document, Entry, Feed, Limits, Relation};
use abreast_store::mirror::Mirror;
use abreast_websub::MAX_HUBS;
use abreast_webtypes::{SyntaxError, Timestamp};

/// A collection.
#[derive(Debug, Default)]
pub(crate) struct SdShare {
    feeds: Feeds,
    /// What cannot be used was reported in this run.
    has_reported: bool,
}

impl SdShare {
    fn start(&mut self, feeds: Feeds, options: &SyncOptions) -> Start {
        let first = feeds.first().unwrap_or(&options.url).to_owned();
        let has_list = feeds.snapshots.is_some();
        *self = Self { feeds, has_reported: false };
        Start { first, uri_space: None, has_list }
    }

    /// The newest snapshot, if there is one.
    fn newest(&self, requests: &Requests<'_>) -> Result<Option<Snapshot>, Error> {
        self.feeds.snapshots.as_deref().map_or(Ok(None), |feed| newest(requests, feed))
    }

    fn follow(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Followed, Error> {
        match &self.feeds.fragments {
            Some(feed) => plan_fragments(run, feed, since, &mut self.has_reported),
            None => Ok(Followed::Unchanged),
        }
    }

    /// Hands over everything in the newest snapshot, if there is one.
    fn each_listed(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
    ) -> Result<Option<Snapshot>, Error> {
        let Some(snapshot) = self.newest(requests)? else { return Ok(None) };
        let folder = tempfile::tempdir().map_err(no_temporary)?;
        let downloads = Downloads::new(StateFolder::at(folder.path())?);
        let sorted = snapshot.read(requests, options, &downloads)?;
        let name = snapshot.name();
        each_description(name, &sorted, &mut |described| each(&described.listed(name, 0)))?;
        Ok(Some(snapshot))
    }

    /// Hands over the resources that fragments since a time are about; of each feed the latest.
    fn each_fragment(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        since: Option<Timestamp>,
        each: &mut dyn FnMut(&Listed<'_>, i64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(feed) = &self.feeds.fragments else { return Ok(()) };
        let mut pages = Pages::new(feed, since, options);
        let mut each = |page: &str, feed: &Feed, entry: &Entry| {
            let Some(fragment) = Fragment::of(feed, entry) else { return Ok(()) };
            let time = entry.updated.or(since).map_or(i64::MIN, Timestamp::as_micros);
            let mut resources = entry.resources.iter();
            resources.try_for_each(|resource| each(&fragment.listed(entry, resource, page), time))
        };
        while pages.read(requests, &mut each)?.is_some() {}
        Ok(())
    }
}

/// Plans what makes the copy equal to a snapshot.
fn plan_snapshot(run: &mut PlanContext<'_, '_>, snapshot: &Snapshot) -> Result<(), Error> {
    let (requests, options) = (run.requests, run.planner.options);
    let mut fetch = |downloads: &Downloads| snapshot.read(requests, options, downloads);
    plan_descriptions(run, snapshot.name(), &mut fetch, &mut |mirror, _| {
        keep_seen(mirror, snapshot.updated)
    })
}

impl Reader for SdShare {
    fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error> {
        let (options, mirror) = (run.planner.options, run.planner.mirror);
        let known = Feeds::known(mirror)?;
        let same_address = mirror.meta(key::SOURCE_URL)?.as_ref() == Some(&options.url);
        let same_set = options.set.is_none() || options.set == mirror.meta(key::SET)?;
        if known.first().is_some() && same_address && same_set {
            return Ok(self.start(known, options));
        }
        let found = find::find(run.requests, options)?;
        run.requests.diagnostics.report(run.report);
        found.check_same(&known)?;
        keep_found(run, &|mirror| found.keep(mirror))?;
        Ok(self.start(found, options))
    }

    fn find_read_only(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        _: &dyn Observer,
    ) -> Result<Start, Error> {
        let mut options = options.clone();
        if let Some(mirror) = known.filter(|_| options.set.is_none()) {
            options.set = mirror.meta(key::SET)?;
        }
        let found = find::find(requests, &options)?;
        if let Some(mirror) = known {
            found.check_same(&Feeds::known(mirror)?)?;
        }
        Ok(self.start(found, &options))
    }

    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        find::sets(requests, options)
    }

    fn announcement(&self, mirror: &Mirror) -> Result<Option<Announcement>, Error> {
        let url = Feeds::known(mirror)?.fragments;
        Ok(url.map(|url| Announcement { url, topic_in, offers: Vec::new() }))
    }

    fn each_resource(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<(), Error> {
        let mut every = |listed: &Listed<'_>| {
            each(listed);
            Ok(())
        };
        if self.each_listed(requests, options, &mut every)?.is_none() {
            self.each_fragment(requests, options, None, &mut |listed, _| every(listed))?;
        }
        Ok(())
    }

    fn expect(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error> {
        let snapshot = self.each_listed(requests, options, &mut |listed| to.listed(listed))?;
        let since = snapshot.and_then(|snapshot| snapshot.updated);
        to.changes_since(since);
        self.each_fragment(requests, options, since, &mut |listed, time| to.changed(listed, time))
    }

    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        let known = seen(run.planner.mirror)?;
        if !run.planner.polling.may_poll() {
            run.planner.polling.is_postponed = true;
            return Ok(());
        }
        // A repair plans resources again that came with a snapshot: they have no address of their own.
        if !run.planner.options.baseline
            && !run.planner.selection.has_changed()
            && !run.planner.mirror.has_unaddressed()?
            && let (Some(known), Some(feed)) = (known, self.feeds.fragments.clone())
        {
            let Followed::Gap(why) = self.follow(run, Some(known))? else {
                run.report.summary.mode = Mode::Incremental;
                return Ok(());
            };
            let message = format!("{why}; comparing with all that the Source has now");
            run.report.notice("gap", &feed, &message);
            // Until that has succeeded: the feed may have newer changes then.
            keep_seen(run.planner.mirror, None)?;
        }
        let snapshot = self.newest(run.requests)?;
        run.requests.diagnostics.report(run.report);
        let Some(snapshot) = snapshot else {
            if self.feeds.fragments.is_none() {
                let message = "the collection has neither a snapshot nor a fragments feed";
                return Err(Error::new("gap", ExitCode::Gap, message)
                    .with_help("try again when the server has made a snapshot"));
            }
            // Without snapshots, the feed is all there is to go by.
            run.report.summary.mode = Mode::Baseline;
            self.follow(run, None)?;
            return keep_selection(run);
        };
        let is_only = self.feeds.fragments.is_none();
        let is_known = snapshot.updated.is_some() && known >= snapshot.updated;
        if is_only && is_known && !run.planner.options.baseline {
            return Ok(());
        }
        plan_snapshot(run, &snapshot)?;
        self.follow(run, snapshot.updated)?;
        Ok(())
    }

    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let Some(known) = seen(run.planner.mirror)? else { return Ok(false) };
        Ok(run.planner.polling.may_poll() && self.follow(run, Some(known))? == Followed::Planned)
    }

    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(seen(mirror)?.map(|time| time.to_string()))
    }
}

/// What filters let through now was listed.
fn keep_selection(run: &PlanContext<'_, '_>) -> Result<(), Error> {
    if run.planner.selection.has_changed() {
        run.planner.selection.keep(run.planner.mirror)?;
    }
    Ok(())
}

/// The topic that a fragments feed is, if it names a hub [websub §4].
fn topic_in(feed: &[u8], base: &str) -> Result<Option<Topic>, SyntaxError> {
    let feed = Document::from_slice(feed, base, Limits::default())?.feed;
    let links = |relation| feed.links.iter().filter(move |link| link.relation == relation);
    let hubs: Vec<_> = links(Relation::Hub).map(|link| link.href.clone()).take(MAX_HUBS).collect();
    let url =
        links(Relation::SelfLink).next().map_or_else(|| base.to_owned(), |link| link.href.clone());
    Ok((!hubs.is_empty()).then_some(Topic { url, hubs, ..Topic::default() }))
}
