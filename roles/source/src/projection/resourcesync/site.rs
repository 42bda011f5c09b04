//! The documents of a static site, in the order in which they are written.

use super::DocumentPath;
use crate::projection::{DocumentName as _, SiteDocument};
use crate::publish::{PublishError, Publisher};

/// All documents; none names one that comes after it, but for the Capability List that each leads up to.
pub(super) fn documents(publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
    let (mut lists, mut entries, mut capabilities) = (Vec::new(), Vec::new(), Vec::new());
    let (mut archived, mut archives) = (Vec::new(), Vec::new());
    let add = |to: &mut Vec<SiteDocument>, document: DocumentPath, entry, closed| {
        let identifies = document == DocumentPath::SourceDescription;
        // Every document is one of a set that the publisher has.
        to.extend(document.path(publisher).map(|path| SiteDocument {
            path: path.into_owned(),
            entry,
            closed,
            identifies,
        }));
    };
    for (number, set) in publisher.sets().iter().enumerate() {
        let log = publisher.log();
        let shards = log.shards(set.id)?;
        let open_page = log.head(set.id)?.open_page;
        for shard in &shards {
            if shards.len() > 1 {
                add(&mut lists, DocumentPath::ResourceListShard(number, shard.id), false, false);
            }
        }
        let first = log.pages(set.id, 1, 1)?.first().map_or(1, |page| page.number);
        for page in (first..=open_page).filter(|_| open_page > 1) {
            add(&mut lists, DocumentPath::ChangeListPage(number, page), false, page < open_page);
        }
        if let Some(archive) = publisher.archive(number) {
            for snapshot in archive.snapshots() {
                for part in snapshot.parts() {
                    let document =
                        DocumentPath::ArchivedResourceListPart(number, part.shard, part.version, part.number);
                    add(&mut lists, document, false, true);
                }
                add(&mut archived, DocumentPath::ArchivedResourceList(number, snapshot.number), true, true);
            }
            for kind in publisher.archive_kinds(number) {
                for part in publisher.archive_parts(number, kind)? {
                    add(&mut archives, DocumentPath::ArchivePart(number, kind, part), true, false);
                }
                add(&mut archives, DocumentPath::Archive(number, kind), true, false);
            }
        }
        // Changes before resources: who reads the old Resource List finds what changed since.
        add(&mut entries, DocumentPath::ChangeList(number), true, false);
        add(&mut entries, DocumentPath::ResourceList(number), true, false);
        add(&mut capabilities, DocumentPath::CapabilityList(number), true, false);
    }
    let mut plan = lists;
    plan.append(&mut archived);
    plan.append(&mut archives);
    plan.append(&mut entries);
    plan.append(&mut capabilities);
    for part in 1..=publisher.source_description_parts() {
        add(&mut plan, DocumentPath::SourceDescriptionPart(part), true, false);
    }
    add(&mut plan, DocumentPath::SourceDescription, true, false);
    Ok(plan)
}
