//! The newest snapshot of a collection, and the descriptions in it [sdshare §Snapshots Feed,
//! §Chunked Snapshot Feed, §Snapshot Processing].

use super::feed::read_feed;
use super::fragments::cost;
use crate::read::Snapshot as SnapshotRead;
use crate::read::descriptions::{DescriptionFile, fetch_sorted, hand_over};
use crate::read::walk::Walk;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::pieces::Go;
use crate::request::requests::Requests;
use abreast_rdf::Syntax;
use abreast_sdshare::{Entry, Link, Relation};
use abreast_webtypes::{Moment, Timestamp};

/// Most chunks of a snapshot.
const CHUNKS_MAX: usize = 100_000;

/// A snapshot that a feed lists.
#[derive(Clone, Debug)]
struct Snapshot {
    /// The time up to which changes are included, if specified.
    updated: Option<Timestamp>,
    /// The URL of the feed of the snapshot's chunks.
    chunks: Option<String>,
    /// The link to the single file of the snapshot.
    whole: Option<Link>,
}

/// The newest snapshot that can be read.
fn newest(walk: &mut Walk<'_, '_>, feed: &str) -> Result<Option<Snapshot>, Error> {
    let mut newest: Option<Snapshot> = None;
    let read = read_feed(walk.requests, feed, &mut |_, entry, _| {
        let found = Snapshot::of(entry);
        let is_newer =
            |found: &Snapshot| newest.as_ref().is_none_or(|newest| newest.updated < found.updated);
        if let Some(found) = found.filter(is_newer) {
            newest = Some(found);
        }
        Ok(Go::On)
    })?;
    walk.clock(&read.answered);
    Ok(newest)
}

/// Passes on the newest snapshot of a feed; `None` if the feed is empty. If the collection lacks a
/// fragments feed, an unchanged snapshot need not be read again.
pub(super) fn snapshot(walk: &mut Walk<'_, '_>, feed: &str) -> Result<Option<SnapshotRead>, Error> {
    let Some(snapshot) = newest(walk, feed)? else { return Ok(None) };
    let known = walk.position().snapshot();
    if walk.is_conditional() && snapshot.updated.is_some_and(|updated| known >= Some(updated)) {
        return Ok(Some(SnapshotRead { is_unchanged: true, ..SnapshotRead::default() }));
    }
    // A time in the future counts as none.
    let updated = snapshot
        .updated
        .map(Moment::from)
        .filter(|stated| walk.not_after(snapshot.name(), "updated", *stated) == *stated);
    let (requests, options) = (walk.requests, walk.options);
    let parts = snapshot.parts(requests, options)?;
    walk.begin_snapshot(snapshot.name())?;
    let lists_all = walk.with_downloads(|walk, downloads| {
        let sorted = fetch_sorted(requests, snapshot.name(), &parts, downloads)?;
        hand_over(walk, snapshot.name(), &sorted, updated)?;
        Ok::<_, Error>(sorted.lists_all())
    })?;
    Ok(Some(SnapshotRead {
        lists_all,
        as_of: updated,
        // If the time of the snapshot is not known, any change may be later.
        changes_from: updated.or(Some(Moment::exact(Timestamp::MIN))),
        ..SnapshotRead::default()
    }))
}

impl Snapshot {
    fn of(entry: &Entry) -> Option<Self> {
        let chunks = entry.targets(&Relation::ChunkedSnapshot).next();
        let chunks = chunks.map(|link| link.href.clone());
        let whole = readable(entry, &Relation::Snapshot).cloned();
        let has_any = chunks.is_some() || whole.is_some();
        has_any.then_some(Self { updated: entry.updated, chunks, whole })
    }

    /// The name of the snapshot in messages.
    fn name(&self) -> &str {
        let whole = self.whole.as_ref().map(|link| link.href.as_str());
        self.chunks.as_deref().or(whole).unwrap_or_default()
    }

    /// The files of the snapshot: its chunks, or else its single file.
    fn parts(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<DescriptionFile>, Error> {
        let mut links = Vec::new();
        match &self.chunks {
            None => links.extend(self.whole.clone()),
            Some(chunks) => {
                check_host(options, self.name(), chunks)?;
                let read = read_feed(requests, chunks, &mut |_, entry, _| {
                    let Some(link) = readable(entry, &Relation::SnapshotComponent) else {
                        // A snapshot that lacks one of its chunks cannot be used.
                        let message = format!(
                            "cannot use {chunks}: the chunk at line {} has no link to RDF",
                            entry.line
                        );
                        return Err(Error::new("sdshare.link", ExitCode::SourceInvalid, message));
                    };
                    links.push(link.clone());
                    if links.len() > CHUNKS_MAX {
                        let message = format!("{chunks} has more than {CHUNKS_MAX} chunks");
                        return Err(Error::new("limit.chunks", ExitCode::Limit, message));
                    }
                    Ok(Go::On)
                })?;
                if read.feed.link(&Relation::Next).is_some() {
                    let message = format!("cannot use {chunks}: it has several pages");
                    return Err(Error::new("sdshare.link", ExitCode::SourceInvalid, message));
                }
            }
        }
        let part = |link: Link| {
            check_host(options, self.name(), &link.href)?;
            let syntax = Syntax::of_sdshare_media_type(&link.essence()).unwrap_or(Syntax::RdfXml);
            Ok(DescriptionFile { url: link.href, media_type: link.media_type, syntax })
        };
        links.into_iter().map(part).collect()
    }
}

/// The link of an entry to RDF in the syntax that is parsed fastest. A link without a type may be
/// RDF/XML, which most servers send.
fn readable<'e>(entry: &'e Entry, relation: &Relation) -> Option<&'e Link> {
    let is_readable = |link: &&Link| {
        link.media_type.is_none() || Syntax::of_sdshare_media_type(&link.essence()).is_some()
    };
    entry.targets(relation).filter(is_readable).min_by_key(|link| cost(link))
}

fn check_host(options: &SyncOptions, named_by: &str, url: &str) -> Result<(), Error> {
    let mut admission = Admission::new(&options.url, &options.allow_hosts, options.allow_downgrade);
    admission.check(url).map_err(|refusal| {
        let message = format!("the snapshot {named_by} is at {url}: {}", refusal.message());
        Error::new(refusal.code(), ExitCode::SourceInvalid, message)
    })
}
