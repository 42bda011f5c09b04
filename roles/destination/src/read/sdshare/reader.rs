//! The reader of SDShare: the feeds of a collection, and their contents.

use super::find::{self, Feeds};
use super::fragments::fragments;
use super::snapshots::snapshot;
use crate::copy::key;
use crate::push::announcement::{Announcement, Topic};
use crate::read::walk::Walk;
use crate::read::{Finding, Offers, Reader, Snapshot, SourceSet, Start, Whole};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_sdshare::{Document, Limits, Relation};
use abreast_store::mirror::Mirror;
use abreast_websub::MAX_HUBS;
use abreast_webtypes::SyntaxError;

/// A collection.
#[derive(Debug, Default)]
pub(crate) struct SdShare {
    feeds: Feeds,
}

impl Reader for SdShare {
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error> {
        let (known, options) = (finding.known, finding.options);
        let mut feeds = None;
        if let Some(mirror) = known.filter(|_| !finding.is_read_only) {
            let is_same_address = mirror.meta(key::SOURCE_URL)?.as_ref() == Some(&options.url);
            let is_same_set = options.set.is_none() || options.set == mirror.meta(key::SET)?;
            let own = Feeds::known(mirror)?;
            feeds = Some(own).filter(|own| own.first().is_some() && is_same_address && is_same_set);
        }
        let is_found_anew = feeds.is_none();
        let feeds = if let Some(feeds) = feeds {
            feeds
        } else {
            let mut options = options.clone();
            if let Some(mirror) = known.filter(|_| finding.is_read_only && options.set.is_none()) {
                options.set = mirror.meta(key::SET)?;
            }
            let found = find::find(finding.requests, &options)?;
            if let Some(mirror) = known.filter(|_| !finding.is_moved) {
                found.check_same(&Feeds::known(mirror)?)?;
            }
            found
        };
        let first = feeds.first().unwrap_or(&options.url).to_owned();
        let has_list = feeds.snapshots.is_some();
        *self = Self { feeds };
        Ok(Start { first, uri_space: None, has_list, is_found_anew })
    }

    fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        self.feeds.keep(mirror)
    }

    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        find::sets(requests, options)
    }

    fn offers(&self, mirror: Option<&Mirror>, _: &SyncOptions) -> Result<Offers, Error> {
        let whole = if self.feeds.snapshots.is_some() { Whole::Snapshot } else { Whole::Changes };
        // A repair plans resources again that came with a snapshot, and cannot be requested
        // individually.
        let has_unaddressed = mirror.map(Mirror::has_unaddressed).transpose()?.unwrap_or(false);
        Ok(Offers {
            whole,
            changes: self.feeds.fragments.clone(),
            changes_in_packages: false,
            is_comparison_due: has_unaddressed,
        })
    }

    fn announcement(&self) -> Option<Announcement> {
        let url = self.feeds.fragments.clone()?;
        Some(Announcement { url, topic_in, offers: Vec::new() })
    }

    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        let read = match &self.feeds.snapshots {
            Some(feed) => snapshot(walk, feed)?,
            None => None,
        };
        match read {
            Some(read) => Ok(read),
            // The collection does not have snapshots, so only the feed is available.
            None if self.feeds.fragments.is_some() => Ok(Snapshot::default()),
            None => {
                let message = "the collection has neither a snapshot nor a fragments feed";
                Err(Error::new("gap", ExitCode::Gap, message)
                    .with_help("try again when the server has made a snapshot"))
            }
        }
    }

    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        self.feeds.fragments.as_deref().map_or(Ok(()), |feed| fragments(walk, feed))
    }
}

/// The topic of a fragments feed, if the feed contains a hub [websub §4].
fn topic_in(feed: &[u8], base: &str) -> Result<Option<Topic>, SyntaxError> {
    let feed = Document::from_slice(feed, base, Limits::default())?.feed;
    let links = |relation| feed.links.iter().filter(move |link| link.relation == relation);
    let hubs: Vec<_> = links(Relation::Hub).map(|link| link.href.clone()).take(MAX_HUBS).collect();
    let url =
        links(Relation::SelfLink).next().map_or_else(|| base.to_owned(), |link| link.href.clone());
    Ok((!hubs.is_empty()).then_some(Topic { url, hubs, ..Topic::default() }))
}
