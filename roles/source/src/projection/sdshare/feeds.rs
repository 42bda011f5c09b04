//! The overview feed, collection feeds and snapshots feeds [sdshare §Overview Feed,
//! §Collection Feed, §Snapshots Feed].

use super::form::Form;
use super::head::{ATOM, author, title};
use super::paths::{FeedPath, SetFeed, SnapshotFile, overview, snapshot};
use super::snapshot_file::UNREAD_SECONDS;
use super::snapshot_name::SnapshotName;
use super::snapshot_record::Snapshot;
use super::snapshots::Found;
use crate::projection::resourcesync::dumps::Dump;
use crate::projection::routes::Route as _;
use crate::publish::publisher::Publisher;
use crate::publish::{
    HeadReader, Output, PublishError, PublishedSet, Rendered, ResolvedDocument, Version,
};
use abreast_core::Head;
use abreast_sdshare::{Entry, Feed, Link, Relation, write_end, write_entry, write_feed};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// Media type of the packages of a Resource Dump.
const ZIP: &str = "application/zip";

/// A feed with few entries: overview, collection, snapshots or chunks.
pub(super) struct SmallFeed<'p> {
    pub(super) publisher: &'p Publisher,
    pub(super) path: FeedPath<&'p Arc<PublishedSet>>,
}

impl ResolvedDocument for SmallFeed<'_> {
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let sets = match &self.path {
            FeedPath::Overview => self.publisher.sets(),
            FeedPath::OfSet(set, _) => std::slice::from_ref(*set),
        };
        let mut of = [0, 0];
        for set in sets {
            let head = heads.of(set)?;
            of[0] ^= head.created.as_micros() as u64 ^ u64::from(head.importing);
            of[1] += head.position.0;
        }
        match &self.path {
            FeedPath::OfSet(set, SetFeed::Snapshots | SetFeed::Collection) => {
                if let Some(snapshots) = set.snapshots() {
                    snapshots.ask(&heads.of(set)?);
                }
                of[0] ^= listed(set)
                    .iter()
                    .fold(0, |sum: u64, listed| (sum ^ listed.version()).rotate_left(21));
            }
            FeedPath::OfSet(set, SetFeed::Chunks(name)) => {
                complete(set, *name)?;
                return Ok(Version::closed([name.time().as_micros() as u64, 0]));
            }
            FeedPath::Overview | FeedPath::OfSet(_, SetFeed::Fragments) => {}
        }
        Ok(Version::changing(of))
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        match self.path {
            FeedPath::Overview => Vec::new(),
            FeedPath::OfSet(set, _) => vec![Arc::clone(set)],
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
            FeedPath::OfSet(set, feed) => match feed {
                SetFeed::Collection => Ok(collection_feed(publisher, set, &head(set)?)),
                SetFeed::Snapshots => Ok(snapshots_feed(set, &head(set)?)),
                SetFeed::Chunks(name) => Ok(chunks_feed(set, &*complete(set, name)?)),
                SetFeed::Fragments => Err(PublishError::NotFound),
            },
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
        let url = SetFeed::Collection.url(&set.urls);
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
    let url = SetFeed::Collection.url(&set.urls);
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
        ..Feed::default()
    };
    let entry = |name: &str, url: String, relation, updated| {
        let title = format!("{name} of {}", title(set));
        let entry = Entry { id: url.clone(), title, updated: Some(updated), ..Entry::default() };
        entry.with_link(Link::to_feed(relation, url))
    };
    let newest = newest_time(set).max(head.created);
    written(
        &feed,
        [
            entry("Changes", SetFeed::Fragments.url(&set.urls), Relation::FragmentsFeed, head.time),
            entry("Snapshots", SetFeed::Snapshots.url(&set.urls), Relation::SnapshotsFeed, newest),
        ],
    )
}

/// Feed of the complete snapshots, the newest first.
///
/// Snapshots of entities are files with all descriptions. If no snapshot is complete, the feed
/// lists the unfinished snapshot, and requests for its files are answered with 202. Snapshots of
/// files are Resource Dumps with one package. The time of a snapshot is the time of the last
/// included change.
fn snapshots_feed(set: &PublishedSet, head: &Head) -> Rendered {
    let url = SetFeed::Snapshots.url(&set.urls);
    let feed = Feed {
        id: url.clone(),
        title: format!("Snapshots of {}", title(set)),
        updated: Some(newest_time(set).max(head.created)),
        author: Some(author(set)),
        links: vec![
            Link::to_feed(Relation::SelfLink, url),
            Link::to_feed(Relation::Other("up".to_owned()), SetFeed::Collection.url(&set.urls)),
        ],
        ..Feed::default()
    };
    let entries = listed(set).into_iter().map(|listed| {
        let (id, links) = match &listed {
            Listed::Package(dump) => {
                let url = set.urls.package(&dump.packages[0].stem);
                (url.clone(), vec![Link::new(Relation::Snapshot, url).with_type(ZIP)])
            }
            Listed::Descriptions(name, snapshot) => {
                let url = self::snapshot(set, *name);
                let has = |form: &Form| {
                    *form != Form::RdfXml
                        || snapshot.as_ref().is_some_and(|found| found.has_rdf_xml)
                };
                let forms = Form::ALL.into_iter().filter(has);
                let mut links: Vec<_> = forms
                    .map(|form| {
                        file(Relation::Snapshot, set, SnapshotFile::Whole(*name, form), form)
                    })
                    .collect();
                links.push(Link::to_feed(
                    Relation::ChunkedSnapshot,
                    SetFeed::Chunks(*name).url(&set.urls),
                ));
                (url, links)
            }
        };
        let title = format!("{} at {}", title(set), listed.time());
        Entry { id, title, updated: Some(listed.time()), links, ..Entry::default() }
    });
    written(&feed, entries)
}

/// Feed of the chunks of a snapshot [sdshare §Chunked Snapshot Feed].
fn chunks_feed(set: &PublishedSet, snapshot: &Snapshot) -> Rendered {
    let (url, time) = (SetFeed::Chunks(snapshot.name).url(&set.urls), snapshot.name.time());
    let feed = Feed {
        id: url.clone(),
        title: format!("Chunks of {} at {time}", title(set)),
        updated: Some(time),
        author: Some(author(set)),
        links: vec![
            Link::to_feed(Relation::SelfLink, url),
            Link::to_feed(Relation::Other("up".to_owned()), SetFeed::Snapshots.url(&set.urls)),
        ],
        ..Feed::default()
    };
    let count = snapshot.chunks.len();
    let entries = (1..=count).map(|number| {
        let id = format!("{}/{number}", self::snapshot(set, snapshot.name));
        let links = Form::OF_LINES.map(|form| {
            let chunk = SnapshotFile::Chunk(snapshot.name, number as u64, form);
            file(Relation::SnapshotComponent, set, chunk, form)
        });
        let title = format!("Chunk {number} of {count}");
        Entry { id, title, updated: Some(time), links: links.into(), ..Entry::default() }
    });
    written(&feed, entries)
}

fn file(relation: Relation, set: &PublishedSet, file: SnapshotFile, form: Form) -> Link {
    Link::new(relation, file.url(&set.urls)).with_type(form.media_type())
}

/// An entry of a snapshots feed.
enum Listed {
    Package(Arc<Dump>),
    /// Snapshot of entities; `None` if it is not complete.
    Descriptions(SnapshotName, Option<Arc<Snapshot>>),
}

impl Listed {
    /// Number that changes when the entry changes.
    fn version(&self) -> u64 {
        let kind = match self {
            Self::Descriptions(_, None) => 1,
            Self::Descriptions(_, Some(snapshot)) if snapshot.has_rdf_xml => 2,
            Self::Package(_) | Self::Descriptions(..) => 3,
        };
        (self.time().as_micros() as u64) << 2 | kind
    }

    /// Time of the last included change.
    fn time(&self) -> Timestamp {
        match self {
            Self::Package(dump) => dump.begin,
            Self::Descriptions(name, _) => name.time(),
        }
    }
}

/// Snapshots of a set, the newest first.
fn listed(set: &PublishedSet) -> Vec<Listed> {
    if let Some(snapshots) = set.snapshots() {
        let all = snapshots.listed().into_iter();
        return all.map(|(name, snapshot)| Listed::Descriptions(name, snapshot)).collect();
    }
    // Resource Dumps of entities have one file for each description.
    let dumps = set.dumps().filter(|_| !set.urls.naming().names_entities());
    let all = dumps.map(|dumps| dumps.resources()).unwrap_or_default();
    let one = all.into_iter().rev().filter(|dump| dump.packages.len() == 1);
    one.map(Listed::Package).collect()
}

/// Newest complete snapshot of descriptions: the time of the last included change, and URLs of its
/// files with their media types.
pub(in crate::projection) fn newest_snapshot(
    set: &PublishedSet,
) -> Option<(Timestamp, Vec<(String, &'static str)>)> {
    let mut all = set.snapshots()?.listed().into_iter();
    let (name, found) = all.find_map(|(name, found)| Some((name, found?)))?;
    let forms = Form::ALL.into_iter().filter(|form| match form {
        Form::RdfXml => found.has_rdf_xml,
        // This form mostly has the same bytes as N-Triples.
        Form::PlainText => false,
        Form::NTriples | Form::Turtle => true,
    });
    let url = |form| SnapshotFile::Whole(name, form).url(&set.urls);
    let files = forms.map(|form| (url(form), form.media_type()));
    Some((name.time(), files.collect()))
}

fn newest_time(set: &PublishedSet) -> Timestamp {
    listed(set).first().map(Listed::time).unwrap_or_default()
}

/// Finds a complete snapshot by name.
fn complete(set: &PublishedSet, name: SnapshotName) -> Result<Arc<Snapshot>, PublishError> {
    let snapshots = set.snapshots().ok_or(PublishError::NotFound)?;
    match snapshots.find(name) {
        Found::Complete(snapshot) => Ok(snapshot),
        Found::Making => Err(PublishError::Making),
        Found::Unread => Err(PublishError::NotMade {
            reason: "the snapshots cannot be read from the object store now".to_owned(),
            seconds: UNREAD_SECONDS,
        }),
        Found::Unknown => Err(PublishError::NotFound),
    }
}

fn written(feed: &Feed, entries: impl IntoIterator<Item = Entry>) -> Rendered {
    let mut bytes = Vec::new();
    write_feed(&mut bytes, feed);
    for entry in entries {
        write_entry(&mut bytes, &entry);
    }
    write_end(&mut bytes);
    Rendered { bytes, content_type: ATOM }
}
