//! Which documents are in a site, at which paths, and in which order are they written?

use super::SiteError;
use crate::publish::{DocumentPath, PublishedSet, Publisher};

/// One document to write.
pub(super) struct Planned {
    pub(super) document: DocumentPath,
    /// Where in the site, names separated by `/`.
    pub(super) path: String,
    /// Does it name other documents, which must be there before it?
    pub(super) entry: bool,
    /// Will it be the same bytes for ever?
    pub(super) closed: bool,
}

/// All documents; none names one that comes after it, but for the Capability List that each leads up to.
pub(super) fn plan(publisher: &Publisher) -> Result<Vec<Planned>, SiteError> {
    let urls = publisher.urls();
    let (mut lists, mut entries, mut capabilities) = (Vec::new(), Vec::new(), Vec::new());
    let (mut archived, mut archives) = (Vec::new(), Vec::new());
    let add = |to: &mut Vec<Planned>, document, url: &str, entry, closed| {
        to.push(Planned { document, path: path_of_url(urls.base(), url), entry, closed });
    };
    for (number, set) in publisher.sets().iter().enumerate() {
        let log = publisher.log();
        let shards = log.shards(set.id)?;
        let open_page = log.head(set.id)?.open_page;
        for shard in &shards {
            add(
                &mut lists,
                DocumentPath::SitemapShard(number, shard.id),
                &set.urls.sitemap_shard(shard.id),
                false,
                false,
            );
            if shards.len() > 1 {
                let url = set.urls.resource_list_shard(shard.id);
                add(&mut lists, DocumentPath::ResourceListShard(number, shard.id), &url, false, false);
            }
        }
        let first = log.pages(set.id, 1, 1)?.first().map_or(1, |page| page.number);
        for page in (first..=open_page).filter(|_| open_page > 1) {
            let url = set.urls.change_list_page(page);
            add(&mut lists, DocumentPath::ChangeListPage(number, page), &url, false, page < open_page);
        }
        if let Some(archive) = publisher.archive(number) {
            for snapshot in archive.snapshots() {
                for part in snapshot.parts() {
                    let document =
                        DocumentPath::ArchivedResourceListPart(number, part.shard, part.version, part.number);
                    add(&mut lists, document, &set.urls.archived_resource_list_part(part), false, true);
                }
                let url = set.urls.archived_resource_list(snapshot.number);
                add(&mut archived, DocumentPath::ArchivedResourceList(number, snapshot.number), &url, true, true);
            }
            for kind in publisher.archive_kinds(number) {
                for part in publisher.archive_parts(number, kind)? {
                    let url = set.urls.archive_part(kind, part);
                    add(&mut archives, DocumentPath::ArchivePart(number, kind, part), &url, true, false);
                }
                add(&mut archives, DocumentPath::Archive(number, kind), &set.urls.archive(kind), true, false);
            }
        }
        // Changes before resources: who reads the old Resource List finds what changed since.
        add(&mut entries, DocumentPath::ChangeList(number), &set.urls.change_list(), true, false);
        add(&mut entries, DocumentPath::ResourceList(number), &set.urls.resource_list(), true, false);
        add(&mut capabilities, DocumentPath::SetPage(number), &set.urls.page(), true, false);
        add(&mut capabilities, DocumentPath::CapabilityList(number), &set.urls.capability_list(), true, false);
    }
    let mut plan = lists;
    // The same part may belong to several copies.
    plan.sort_by(|one: &Planned, two| one.path.cmp(&two.path));
    plan.dedup_by(|one, two| one.path == two.path);
    plan.append(&mut archived);
    plan.append(&mut archives);
    plan.append(&mut entries);
    add(&mut plan, DocumentPath::SitemapIndex, &urls.sitemap(), true, false);
    plan.append(&mut capabilities);
    for part in 1..=publisher.source_description_parts() {
        let url = urls.source_description_part(part);
        add(&mut plan, DocumentPath::SourceDescriptionPart(part), &url, true, false);
    }
    add(&mut plan, DocumentPath::SourcePage, &urls.page(), true, false);
    add(&mut plan, DocumentPath::SourceDescription, &urls.source_description(), true, false);
    add(&mut plan, DocumentPath::Robots, &urls.robots(), true, false);
    Ok(plan)
}

/// Where copies of a set's resources are; ends in `/`.
pub(super) fn tree_of(publisher: &Publisher, set: &PublishedSet) -> String {
    path_of_url(publisher.urls().base(), &set.urls.resources())
}

fn path_of_url(base: &str, url: &str) -> String {
    url.strip_prefix(base).unwrap_or(url).to_owned()
}
