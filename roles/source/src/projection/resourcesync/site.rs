//! Documents of a static site, in the order in which they are written.

use super::PublishedSet;
use super::paths::SetDocument;
use super::settings::ResourceSync;
use crate::projection::routes::Route as _;
use crate::publish::publisher::Publisher;
use crate::publish::{PublishError, SiteDocument, SiteStage};

/// All documents of the sets. A document only has links to documents before it, except the link
/// `up` to the Capability List.
pub(super) fn documents(
    projection: &ResourceSync,
    publisher: &Publisher,
) -> Result<Vec<SiteDocument>, PublishError> {
    use SiteStage::{Discovery, EntryPoint, Identity, List};
    let (mut lists, mut entries, mut capabilities) = (Vec::new(), Vec::new(), Vec::new());
    let (mut archived, mut archives) = (Vec::new(), Vec::new());
    let (log, urls) = (publisher.log(), publisher.urls());
    let add =
        |to: &mut Vec<SiteDocument>, set: &PublishedSet, document: SetDocument, stage, closed| {
            let path = urls.path_of(&document.url(&set.urls));
            to.push(SiteDocument { path, stage, closed });
        };
    for set in publisher.sets() {
        let shards = log.shards(set.id)?;
        let open_page = log.head(set.id)?.open_page;
        for shard in &shards {
            if shards.len() > 1 {
                add(&mut lists, set, SetDocument::ResourceListShard(shard.id), List, false);
            }
        }
        let first = log.pages(set.id, 1, 1)?.first().map_or(1, |page| page.number);
        for page in (first..=open_page).filter(|_| open_page > 1) {
            add(&mut lists, set, SetDocument::ChangeListPage(page), List, page < open_page);
        }
        if let Some(archive) = set.archive() {
            for snapshot in archive.snapshots() {
                for part in snapshot.parts() {
                    let document = SetDocument::ArchivedResourceListPart(
                        part.shard,
                        part.version,
                        part.number,
                    );
                    add(&mut lists, set, document, List, true);
                }
                add(
                    &mut archived,
                    set,
                    SetDocument::ArchivedResourceList(snapshot.number),
                    EntryPoint,
                    true,
                );
            }
            for kind in set.archive_kinds() {
                for part in projection.archives(publisher, set, kind)?.parts()? {
                    add(
                        &mut archives,
                        set,
                        SetDocument::ArchivePart(kind, part),
                        EntryPoint,
                        false,
                    );
                }
                add(&mut archives, set, SetDocument::Archive(kind), EntryPoint, false);
            }
        }
        // Change Lists are before Resource Lists, so that readers of the old Resource List find
        // later changes.
        add(&mut entries, set, SetDocument::ChangeList, EntryPoint, false);
        add(&mut entries, set, SetDocument::ResourceList, EntryPoint, false);
        add(&mut capabilities, set, SetDocument::CapabilityList, Discovery, false);
    }
    let mut plan = lists;
    plan.append(&mut archived);
    plan.append(&mut archives);
    plan.append(&mut entries);
    plan.append(&mut capabilities);
    let mut describe = |url: &str, stage| {
        plan.push(SiteDocument { path: urls.path_of(url), stage, closed: false });
    };
    for part in 1..=projection.description_parts(publisher) {
        describe(&urls.source_description_part(part), Discovery);
    }
    describe(&urls.source_description(), Identity);
    Ok(plan)
}
