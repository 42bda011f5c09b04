//! The overview feed, collection feeds and snapshots feeds [sdshare §Overview Feed,
//! §Collection Feed, §Snapshots Feed].

use super::paths::{FeedPath, collection, fragments, overview, snapshots};
use super::{ATOM, author, title};
use crate::projection::resourcesync::dumps::Dump;
use crate::projection::{HeadReader, Output, Rendered, ResolvedDocument, Version};
use crate::publish::{PublishError, PublishedSet, Publisher};
use abreast_core::Head;
use abreast_sdshare::{Entry, Feed, Link, Relation, write_end, write_entry, write_feed};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// Media type of the packages of a Resource Dump.
const ZIP: &str = "application/zip";

/// A feed of few entries.
pub(super) struct SmallFeed<'p> {
    pub(super) publisher: &'p Publisher,
    pub(super) path: FeedPath<&'p Arc<PublishedSet>>,
}

impl ResolvedDocument for SmallFeed<'_> {
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let sets = match &self.path {
            FeedPath::Overview => self.publisher.sets(),
            FeedPath::Collection(set) | FeedPath::Snapshots(set) | FeedPath::Fragments(set) => {
                std::slice::from_ref(*set)
            }
        };
        let mut of = [0, 0];
        for set in sets {
            let head = heads.of(set)?;
            of[0] ^= head.created.as_micros() as u64 ^ u64::from(head.importing);
            of[1] += head.position.0;
        }
        if let FeedPath::Snapshots(set) = &self.path {
            let newest = newest_snapshot(set).map_or(0, |dump| dump.end.as_micros() as u64);
            of[0] ^= newest.rotate_left(32);
        }
        Ok(Version { of, immutable: false })
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        match self.path {
            FeedPath::Overview => Vec::new(),
            FeedPath::Collection(set) | FeedPath::Snapshots(set) | FeedPath::Fragments(set) => {
                vec![Arc::clone(set)]
            }
        }
    }

    fn render(&self, _: &mut dyn Output) -> Result<Rendered, PublishError> {
        let publisher = self.publisher;
        let head = |set: &PublishedSet| publisher.log().head(set.id);
        match self.path {
            FeedPath::Overview => {
                let mut heads = Vec::new();
                for set in publisher.sets() {
                    heads.push(head(set)?);
                }
                Ok(overview_feed(publisher, &heads))
            }
            FeedPath::Collection(set) => Ok(collection_feed(publisher, set, &head(set)?)),
            FeedPath::Snapshots(set) => Ok(snapshots_feed(set, &head(set)?)),
            FeedPath::Fragments(_) => Err(PublishError::NotFound),
        }
    }
}

fn overview_feed(publisher: &Publisher, heads: &[Head]) -> Rendered {
    let url = overview(publisher.urls());
    let feed = Feed {
        id: url.clone(),
        title: format!("Collections of {}", publisher.urls().base()),
        updated: heads.iter().map(|head| head.time).max(),
        author: Some(publisher.urls().base().to_owned()),
        links: vec![Link::to_feed(Relation::SelfLink, url)],
        ..Feed::default()
    };
    let entries = publisher.sets().iter().zip(heads).map(|(set, head)| {
        let url = collection(set);
        let entry = Entry {
            id: url.clone(),
            title: title(set).to_owned(),
            updated: Some(head.time),
            summary: set.about.description.clone(),
            ..Entry::default()
        };
        entry.with_link(Link::to_feed(Relation::CollectionFeed, url))
    });
    written(&feed, entries)
}

fn collection_feed(publisher: &Publisher, set: &PublishedSet, head: &Head) -> Rendered {
    let url = collection(set);
    let feed = Feed {
        id: url.clone(),
        title: title(set).to_owned(),
        subtitle: set.about.description.clone(),
        updated: Some(head.time),
        author: Some(author(set)),
        links: vec![
            Link::to_feed(Relation::SelfLink, url),
            Link::to_feed(Relation::Other("up".to_owned()), overview(publisher.urls())),
        ],
    };
    let entry = |name: &str, url: String, relation, updated| {
        let title = format!("{name} of {}", title(set));
        let entry = Entry { id: url.clone(), title, updated: Some(updated), ..Entry::default() };
        entry.with_link(Link::to_feed(relation, url))
    };
    let newest = newest_snapshot(set).map_or(head.created, |dump| dump.begin);
    written(
        &feed,
        [
            entry("Changes", fragments(set), Relation::FragmentsFeed, head.time),
            entry("Snapshots", snapshots(set), Relation::SnapshotsFeed, newest),
        ],
    )
}

/// The snapshots that are complete, the newest first. Those of files are Resource Dumps of one
/// package: each is the set at one position of the log, and its time is that of the last change
/// which it includes.
fn snapshots_feed(set: &PublishedSet, head: &Head) -> Rendered {
    let url = snapshots(set);
    let newest = newest_snapshot(set).map_or(head.created, |dump| dump.begin);
    let feed = Feed {
        id: url.clone(),
        title: format!("Snapshots of {}", title(set)),
        updated: Some(newest),
        author: Some(author(set)),
        links: vec![
            Link::to_feed(Relation::SelfLink, url),
            Link::to_feed(Relation::Other("up".to_owned()), collection(set)),
        ],
        ..Feed::default()
    };
    let entries = dumps(set).map(|dump| {
        let url = set.urls.package(&dump.packages[0].stem);
        let title = format!("{} at {}", self::title(set), dump.begin);
        let updated: Option<Timestamp> = Some(dump.begin);
        let entry = Entry { id: url.clone(), title, updated, ..Entry::default() };
        entry.with_link(Link::new(Relation::Snapshot, url).with_type(ZIP))
    });
    written(&feed, entries)
}

/// Resource Dumps of one package, the newest first.
fn dumps(set: &PublishedSet) -> impl Iterator<Item = Arc<Dump>> {
    let all = set.dumps.as_ref().map(|dumps| dumps.resources()).unwrap_or_default();
    all.into_iter().rev().filter(|dump| dump.packages.len() == 1)
}

fn newest_snapshot(set: &PublishedSet) -> Option<Arc<Dump>> {
    dumps(set).next()
}

fn written(feed: &Feed, entries: impl IntoIterator<Item = Entry>) -> Rendered {
    let mut bytes = Vec::new();
    write_feed(&mut bytes, feed);
    for entry in entries {
        write_entry(&mut bytes, &entry);
    }
    write_end(&mut bytes);
    Rendered { bytes, modified: None, content_type: ATOM }
}
