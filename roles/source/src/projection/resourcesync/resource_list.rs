//! Resource Lists: all resources of a set, and the index of the lists [rs-core §10].
//!
//! A list has the resources of one shard, and its bytes depend only on the rows of this shard. `at`
//! of a list is the time of the last change in its range: the list includes all changes until then,
//! and there are no later ones in its range. `at` of the index is the time of the last change of
//! the set. Lists that a client reads after the index include all changes until then. A client that
//! applies the Change List from that `at` has exactly the state of the Source.

use super::links::{LinkDocument, state_links};
use super::values::{XML, exactly, link};
use super::version_links::version_links;
use super::{MAX_IN_MEMORY, Output, PublishError, PublishedSet, Rendered, Whole};
use abreast_core::{ChangeLog, Shard, ShardId, ShardRule};
use abreast_resourcesync::v1_1::{
    Capability, Entry, Head, Ln, Root, write_end, write_entry, write_head,
};
use abreast_webtypes::{Precision, Timestamp};
use std::ops::ControlFlow;

/// The most entries of a list; a shard that grew beyond is no longer published [rs-core §7].
const MAX_ENTRIES: u64 = 50_000;
// A shard is split before it exceeds the limits of a list: 50,000 entries and 50 MB.
const _: () =
    assert!(ShardRule::DEFAULT.resources < MAX_ENTRIES && ShardRule::DEFAULT.bytes < 50_000_000);

/// Renders the Resource List if one is enough, otherwise the index; with a link to the archive, if
/// there is one.
pub(super) fn entry_point(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    archive: Option<Ln>,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    // The head is read before the shards, so that the shards include at least its changes.
    let head = log.head(set.id)?;
    let shards = log.shards(set.id)?;
    if let [only] = shards.as_slice() {
        return list(log, set, only, archive, output);
    }
    output.expect(shards.len() as u64 * 160);
    let shards = shards.iter().map(|shard| (set.urls.resource_list_shard(shard.id), shard.time));
    Ok(index(set, head.time, None, archive, shards))
}

/// Renders an index of lists with their URLs and times.
pub(super) fn index(
    set: &PublishedSet,
    at: Timestamp,
    completed: Option<Timestamp>,
    more: impl IntoIterator<Item = Ln>,
    lists: impl ExactSizeIterator<Item = (String, Timestamp)>,
) -> Rendered {
    let mut links = vec![link("up", &set.urls.capability_list())];
    links.extend(more);
    let mut bytes = Vec::with_capacity(256 + lists.len() * 160);
    write_head(
        &mut bytes,
        &Head {
            root: Root::SitemapIndex,
            capability: Some(Capability::ResourceList),
            at: Some(exactly(at)),
            completed: completed.map(exactly),
            links,
            ..Head::default()
        },
    );
    for (loc, time) in lists {
        let time = Some(exactly(time));
        let entry = Entry { loc, lastmod: time, at: time, ..Entry::default() };
        write_entry(&mut bytes, Root::SitemapIndex, &entry);
    }
    write_end(&mut bytes, Root::SitemapIndex);
    Rendered { bytes, content_type: XML }
}

/// Renders a list for the archive, without links to documents that may be deleted.
pub(super) fn kept(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    shard: &Shard,
) -> Result<Rendered, PublishError> {
    list(log, set, shard, None, &mut Whole)
}

/// Renders one list of the index, current or replaced.
pub(super) fn shard(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    id: ShardId,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let shard = log.shard(set.id, id)?.ok_or(PublishError::NotFound)?;
    if shard.resources > MAX_ENTRIES {
        return Err(PublishError::Gone);
    }
    list(log, set, &shard, Some(link("index", &set.urls.resource_list())), output)
}

fn list(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    shard: &Shard,
    more: Option<Ln>,
    output: &mut dyn Output,
) -> Result<Rendered, PublishError> {
    let mut links = vec![link("up", &set.urls.capability_list())];
    links.extend(more);
    links.push(link(super::capability_list::URI_SPACE, &set.urls.resources()));
    let length = 1_024 + shard.resources * 240;
    output.expect(length);
    let mut bytes = Vec::with_capacity((length as usize).min(MAX_IN_MEMORY));
    write_head(
        &mut bytes,
        &Head {
            root: Root::UrlSet,
            capability: Some(Capability::ResourceList),
            at: Some(exactly(shard.time)),
            links,
            ..Head::default()
        },
    );
    let (resources, naming) = (set.urls.resources(), set.urls.naming());
    let mut entry = Entry::default();
    log.scan(set.id, &shard.range, &mut |resource| {
        naming.write_uri(&resource.key, &mut entry.loc);
        let state = &resource.state;
        entry.lastmod = Some(abreast_webtypes::W3cDatetime {
            instant: state.modified,
            precision: Precision::Second,
        });
        entry.digests.clone_from(&state.digests);
        entry.length = state.length;
        entry.media_type.clone_from(&state.media_type);
        entry.encoding.clone_from(&state.encoding);
        entry.links.clear();
        state_links(&resources, state, LinkDocument::ResourceList, &mut entry.links);
        if let Some(urls) = &set.versions {
            version_links(urls, &resource.key, state, None, &mut entry.links);
        }
        write_entry(&mut bytes, Root::UrlSet, &entry);
        output.drain(&mut bytes);
        ControlFlow::Continue(())
    })?;
    write_end(&mut bytes, Root::UrlSet);
    Ok(Rendered { bytes, content_type: XML })
}
