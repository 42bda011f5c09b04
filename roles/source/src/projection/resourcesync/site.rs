//! The documents of a static site, in the order in which they are written.

use super::paths::SetDocument;
use super::{PublishedSet, ResourceSync};
use crate::projection::SiteDocument;
use crate::publish::{PublishError, Publisher};

/// All documents; none names one that comes after it, but for the Capability List that each leads
/// up to.
pub(super) fn documents(
    projection: &ResourceSync,
    publisher: &Publisher,
) -> Result<Vec<SiteDocument>, PublishError> {
    let (mut lists, mut entries, mut capabilities) = (Vec::new(), Vec::new(), Vec::new());
    let (mut archived, mut archives) = (Vec::new(), Vec::new());
    let (log, urls) = (publisher.log(), publisher.urls());
    let add =
        |to: &mut Vec<SiteDocument>, set: &PublishedSet, document: SetDocument, entry, closed| {
            let path = urls.path_of(&document.url(&set.urls));
            to.push(SiteDocument { path, entry, closed, identifies: false });
        };
    for set in publisher.sets() {
        let shards = log.shards(set.id)?;
        let open_page = log.head(set.id)?.open_page;
        for shard in &shards {
            if shards.len() > 1 {
                add(&mut lists, set, SetDocument::ResourceListShard(shard.id), false, false);
            }
        }
        let first = log.pages(set.id, 1, 1)?.first().map_or(1, |page| page.number);
        for page in (first..=open_page).filter(|_| open_page > 1) {
            add(&mut lists, set, SetDocument::ChangeListPage(page), false, page < open_page);
        }
        if let Some(archive) = &set.archive {
            for snapshot in archive.snapshots() {
                for part in snapshot.parts() {
                    let document = SetDocument::ArchivedResourceListPart(
                        part.shard,
                        part.version,
                        part.number,
                    );
                    add(&mut lists, set, document, false, true);
                }
                add(
                    &mut archived,
                    set,
                    SetDocument::ArchivedResourceList(snapshot.number),
                    true,
                    true,
                );
            }
            for kind in set.archive_kinds() {
                for part in projection.archives(publisher, set, kind)?.parts()? {
                    add(&mut archives, set, SetDocument::ArchivePart(kind, part), true, false);
                }
                add(&mut archives, set, SetDocument::Archive(kind), true, false);
            }
        }
        // Changes before resources: a reader of the old Resource List finds the changes since.
        add(&mut entries, set, SetDocument::ChangeList, true, false);
        add(&mut entries, set, SetDocument::ResourceList, true, false);
        add(&mut capabilities, set, SetDocument::CapabilityList, true, false);
    }
    let mut plan = lists;
    plan.append(&mut archived);
    plan.append(&mut archives);
    plan.append(&mut entries);
    plan.append(&mut capabilities);
    let mut describe = |url: &str, identifies| {
        plan.push(SiteDocument { path: urls.path_of(url), entry: true, closed: false, identifies });
    };
    for part in 1..=projection.description_parts(publisher) {
        describe(&urls.source_description_part(part), false);
    }
    describe(&urls.source_description(), true);
    Ok(plan)
}
