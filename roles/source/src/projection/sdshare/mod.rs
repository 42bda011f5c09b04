//! SDShare 1.0: every set is a collection, with a feed of changed resources and a feed of snapshots
//! [sdshare §Server Role].
//!
//! | file | subject |
//! |---|---|
//! | `paths.rs` | paths, queries and addresses |
//! | `feeds.rs` | overview, collection and snapshots feeds |
//! | `fragments.rs` | pages of the fragments feed, and notifications |
//! | `link.rs` | the fragments of a resource |
//! | `snapshots.rs` | snapshots of entities, made in the background |
//! | `snapshot_record.rs`, `snapshot_file.rs` | complete snapshots and their files |
//! | `shared_snapshots.rs` | snapshots that several nodes share |
//! | `ascii.rs` | N-Triples in ASCII |

mod ascii;
mod check;
mod feeds;
mod form;
mod fragments;
mod head;
mod link;
mod paths;
mod shared_snapshots;
mod snapshot_file;
mod snapshot_name;
mod snapshot_record;
mod snapshots;

use super::routes::Route as _;
use super::site_link;
use crate::projection::sdshare::head::ATOM;
use crate::publish::Reader;
use crate::publish::files::{FileError, PublishedFile};
use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{
    PublishError, PublishedSet, ResolvedDocument, SiteDocument, Topic, TopicContent,
};
use abreast_core::Position;
use abreast_webtypes::Link;
pub use check::{check_snapshots, remove_damaged_snapshots};
use feeds::SmallFeed;
pub(super) use feeds::newest_snapshot;
pub use fragments::ENTRIES_PER_PAGE;
use fragments::FragmentsPage;
use paths::{FeedPath, FragmentPath, FragmentsQuery, SetFeed, SnapshotFile};
pub use snapshots::{SetSnapshots, SnapshotOptions};
use std::sync::Arc;

/// Projection of SDShare 1.0, for servers only.
#[derive(Clone, Copy, Debug)]
pub struct SdShare {
    entries_per_page: usize,
}

impl Default for SdShare {
    fn default() -> Self {
        Self { entries_per_page: ENTRIES_PER_PAGE }
    }
}

impl SdShare {
    /// Sets the number of entries on a page of a fragments feed, at least one.
    #[must_use]
    pub fn with_entries_per_page(self, entries: usize) -> Self {
        Self { entries_per_page: entries.max(1) }
    }

    fn page<'p>(
        self,
        publisher: &'p Publisher,
        set: &'p Arc<PublishedSet>,
        query: FragmentsQuery,
    ) -> Box<dyn ResolvedDocument + 'p> {
        Box::new(FragmentsPage { publisher, set, query, most: self.entries_per_page })
    }
}

impl Projection for SdShare {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        match FeedPath::parse(path, |slug| publisher.find_set(slug))? {
            FeedPath::OfSet(set, SetFeed::Fragments) => {
                Some(self.page(publisher, set, FragmentsQuery::default()))
            }
            path => Some(Box::new(SmallFeed { publisher, path })),
        }
    }

    fn resolve_query<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
        query: &str,
        _reader: &Reader,
    ) -> Option<Result<Box<dyn ResolvedDocument + 'p>, PublishError>> {
        let path = FeedPath::parse(path, |slug| publisher.find_set(slug))?;
        let FeedPath::OfSet(set, SetFeed::Fragments) = path else { return None };
        let query = FragmentsQuery::parse(query)?;
        Some(query.map(|query| self.page(publisher, set, query)).map_err(PublishError::BadQuery))
    }

    fn is_file(&self, publisher: &Publisher, path: &str) -> bool {
        FragmentPath::parse(path, |slug| publisher.find_set(slug)).is_some()
            || SnapshotFile::parse_in_set(path, |slug| publisher.find_set(slug)).is_some()
    }

    fn file(
        &self,
        publisher: &Publisher,
        path: &str,
        _query: Option<&str>,
    ) -> Result<PublishedFile, FileError> {
        if let Some(path) = FragmentPath::parse(path, |slug| publisher.find_set(slug)) {
            return link::open(publisher, &path);
        }
        match SnapshotFile::parse_in_set(path, |slug| publisher.find_set(slug)) {
            Some((set, file)) => snapshot_file::open(set, file),
            None => Err(FileError::NotFound("there is no such fragment".to_owned())),
        }
    }

    fn site_links(&self, publisher: &Publisher) -> Vec<Link> {
        vec![site_link("alternate", paths::overview(publisher.urls()), ATOM)]
    }

    /// The parameter `since` and the pages require a server.
    fn is_static(&self) -> bool {
        false
    }

    fn site(&self, _: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        Ok(Vec::new())
    }

    fn topics(&self, publisher: &Publisher) -> Vec<Topic> {
        publisher.sets().iter().filter_map(topic).collect()
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        match FeedPath::parse(path, |slug| publisher.find_set(slug))? {
            FeedPath::OfSet(set, SetFeed::Fragments) => topic(set),
            _ => None,
        }
    }

    fn topic_urls(&self, set: &Arc<PublishedSet>) -> Vec<String> {
        vec![SetFeed::Fragments.url(&set.urls)]
    }

    fn notification(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        fragments::notification(publisher, &topic.set, after, last)
    }
}

/// Topic of a set's fragments feed, if changes are notified.
fn topic(set: &Arc<PublishedSet>) -> Option<Topic> {
    set.notifications.as_ref().filter(|notifications| notifications.changes)?;
    Some(Topic {
        url: SetFeed::Fragments.url(&set.urls),
        set: Arc::clone(set),
        record: format!("{}/sdshare", set.slug),
        content: TopicContent::Changes,
        media_type: ATOM,
        links: String::new(),
    })
}
