//! Archived copies of Resource Lists: rendering and parsing.

use crate::archive::{Part, Snapshot};
use crate::publish::{PublishError, PublishedSet};
use abreast_core::{ChangeLog, Position, Shard, ShardId};
use abreast_resourcesync::v1_1::{Document, Entry, Root};
use abreast_webtypes::Timestamp;

use crate::projection::resourcesync::resource_list;

/// Renders the index of the parts of a Resource List, for the archive.
pub(crate) fn archived_index(set: &PublishedSet, snapshot: &Snapshot) -> Vec<u8> {
    let parts =
        snapshot.parts.iter().map(|part| (set.urls.archived_resource_list_part(part), part.time));
    resource_list::index(set, snapshot.at, snapshot.completed, None, parts).bytes
}

/// Renders a Resource List for the archive, of a whole set or of one part.
pub(crate) fn archived_list(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    shard: &Shard,
) -> Result<Vec<u8>, PublishError> {
    resource_list::kept(log, set, shard).map(|rendered| rendered.bytes)
}

/// Parses an archived list, or the index of its parts; `None` if the bytes are neither.
pub(crate) fn read_archived(bytes: &[u8]) -> Option<ArchivedList> {
    let document = Document::from_slice(bytes).ok()?;
    let parts = match document.head.root {
        Root::SitemapIndex => document.entries.iter().map(archived_part).collect::<Option<_>>()?,
        Root::UrlSet => Vec::new(),
    };
    Some(ArchivedList {
        at: document.head.at?.instant,
        completed: document.head.completed.map(|completed| completed.instant),
        parts,
    })
}

/// Data that an archived list contains about the copy.
pub(crate) struct ArchivedList {
    pub(crate) at: Timestamp,
    pub(crate) completed: Option<Timestamp>,
    /// Parts of the list, if it is an index.
    pub(crate) parts: Vec<Part>,
}

/// Part with the URL of an index entry, which ends in `/SHARD-VERSION-NUMBER.xml`.
pub(crate) fn archived_part(entry: &Entry) -> Option<Part> {
    let name = entry.loc.rsplit('/').next()?.strip_suffix(".xml")?;
    let mut numbers = name.split('-');
    let mut next = || numbers.next()?.parse::<u64>().ok();
    let (shard, version, number) = (next()?, next()?, next()?);
    let time = entry.lastmod?.instant;
    Some(Part { shard: ShardId(shard), version: Position(version), number, time })
}
