//! Change feeds in Activity Streams: Entity Metadata Management 0.1 and 1.0, and IIIF Change
//! Discovery, as views of one log.
//!
//! | file | subject |
//! |---|---|
//! | `paths.rs` | paths and addresses |
//! | `feeds.rs` | Entry Points, Change Sets and single activities |
//! | `pages.rs` | the pages of a feed, and their changes |
//! | `activity.rs` | a change of the log as an activity |
//! | `types.rs` | changes in the feed of a type |
//! | `patches.rs` | Entity Patches, and the log of all patches |
//!
//! A page is a range of positions. It never changes after a later change is recorded, and the cost
//! of a page depends only on its entries. The feed of the latest changes has the same pages without
//! superseded changes.

mod activity;
mod feed_topic;
mod feeds;
mod log_patch;
mod options;
mod pages;
mod patches;
mod paths;
mod types;

use super::site_link;
use crate::publish::Reader;
use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{
    PublishError, PublishedSet, ResolvedDocument, SiteDocument, SiteStage, Topic,
};
use abreast_core::Position;
use abreast_emm::Profile;
use abreast_webtypes::Link;
use feed_topic::topic;
use feeds::FeedDocument;
pub use options::FeedOptions;
use pages::Pages;
pub use paths::POSITIONS_PER_PAGE;
use paths::{Feed, FeedPath, View};
use std::sync::Arc;

/// Projection of Entity Metadata Management and IIIF Change Discovery.
#[derive(Clone, Copy, Debug)]
pub struct ChangeFeeds {
    per_page: u64,
}

impl Default for ChangeFeeds {
    fn default() -> Self {
        Self { per_page: POSITIONS_PER_PAGE }
    }
}

impl ChangeFeeds {
    /// Sets the number of log positions per page, at least one. Another number changes the contents
    /// of all pages.
    #[must_use]
    pub fn with_positions_per_page(self, positions: u64) -> Self {
        Self { per_page: positions.max(1) }
    }

    fn parse<'p>(self, publisher: &'p Publisher, path: &str) -> Option<FeedPath<'p>> {
        FeedPath::parse(path, self.per_page, |slug| publisher.find_set(slug))
    }

    /// Feeds of all changes of a set, one for each profile.
    fn histories(self, set: &Arc<PublishedSet>) -> impl Iterator<Item = Feed<'_>> {
        let feed =
            move |profile| Feed { set, profile, view: View::History, per_page: self.per_page };
        Profile::ALL.into_iter().map(feed)
    }
}

impl Projection for ChangeFeeds {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let path = self.parse(publisher, path)?;
        Some(Box::new(FeedDocument { publisher, path, query: None }))
    }

    fn resolve_query<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
        query: &str,
        _reader: &Reader,
    ) -> Option<Result<Box<dyn ResolvedDocument + 'p>, PublishError>> {
        let path = self.parse(publisher, path)?;
        let FeedPath::SkipTo(_) = path else { return None };
        let document = FeedDocument { publisher, path, query: Some(query.to_owned()) };
        Some(Ok(Box::new(document)))
    }

    fn site_links(&self, publisher: &Publisher) -> Vec<Link> {
        let sets = publisher.sets().iter();
        let feeds = sets.flat_map(|set| self.histories(set));
        feeds.map(|feed| site_link("alternate", feed.url(), feed.media_type())).collect()
    }

    fn page_links(&self, set: &Arc<PublishedSet>) -> Vec<Link> {
        let link = |feed: Feed<'_>| {
            let mut link = site_link("alternate", feed.url(), feed.media_type());
            let title = format!("Change feed ({})", title(feed.profile));
            link.params.push(("title".to_owned(), title));
            link
        };
        self.histories(set).map(link).collect()
    }

    /// Documents of the feeds of all changes. Pages of other feeds are left out, because they would
    /// change with every change of an entity or of a type.
    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let (urls, mut documents) = (publisher.urls(), Vec::new());
        for feed in publisher.sets().iter().flat_map(|set| self.histories(set)) {
            let mut add = |url: String, stage, closed| {
                documents.push(SiteDocument { path: urls.path_of(&url), stage, closed });
            };
            let pages = Pages::new(&feed, &**publisher.log())?;
            let mut page = Some(pages.ends()?.0);
            while let Some(number) = page {
                let is_closed = feed.is_closed(number, pages.head().position);
                add(feed.page(number), SiteStage::List, is_closed);
                page = pages.later(number)?;
            }
            add(feed.url(), SiteStage::EntryPoint, false);
        }
        Ok(documents)
    }

    fn numbered_folders(&self) -> &'static [&'static str] {
        &paths::PAGE_FOLDERS
    }

    fn topics(&self, publisher: &Publisher) -> Vec<Topic> {
        let sets = publisher.sets().iter();
        sets.flat_map(|set| self.histories(set).filter_map(|feed| topic(&feed))).collect()
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        match self.parse(publisher, path)? {
            FeedPath::EntryPoint(feed) => topic(&feed.history()),
            _ => None,
        }
    }

    fn topic_urls(&self, set: &Arc<PublishedSet>) -> Vec<String> {
        self.histories(set).map(|feed| feed.url()).collect()
    }

    fn notification(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        let feed = self.histories(&topic.set).find(|feed| feed.url() == topic.url);
        feeds::notification(publisher, &feed.ok_or(PublishError::NotFound)?, after, last)
    }
}

/// Name of a profile for people.
const fn title(profile: Profile) -> &'static str {
    match profile {
        Profile::Emm01 => "EMM 0.1",
        Profile::Emm10 => "EMM 1.0",
        Profile::Iiif1 => "IIIF Change Discovery",
    }
}
