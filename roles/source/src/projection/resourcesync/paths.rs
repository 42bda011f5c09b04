//! The path of each document: from a path to the document, and back.

use crate::archive::Part;
use crate::projection::{DocumentName, plain_number as number};
use crate::publish::{ArchiveKind, Publisher};
use abreast_core::{Position, ShardId};
use abreast_webtypes::Timestamp;
use std::borrow::Cow;

/// One document of ResourceSync; sets are numbered in their configured order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentPath {
    /// `/.well-known/resourcesync`
    SourceDescription,
    /// `/sourcedescription/{number}.xml`: one of several Source Descriptions
    SourceDescriptionPart(u64),
    /// `/{set}/capabilitylist.xml`
    CapabilityList(usize),
    /// `/{set}/resourcelist.xml`: the Resource List, or its index when there are several
    ResourceList(usize),
    /// `/{set}/resourcelist/{id}.xml`
    ResourceListShard(usize, ShardId),
    /// `/{set}/changelist.xml`: the Change List, or its index when there are several
    ChangeList(usize),
    /// `/{set}/changelist/{number}.xml`
    ChangeListPage(usize, u64),
    /// `/{set}/resourcedump.xml`: the Resource Dump, or its index when one document is not enough
    ResourceDump(usize),
    /// `/{set}/resourcedump/{number}.xml`
    ResourceDumpPart(usize, u64),
    /// `/{set}/changedump.xml`: the Change Dump, or its index when one document is not enough
    ChangeDump(usize),
    /// `/{set}/changedump/{number}.xml`
    ChangeDumpPart(usize, u64),
    /// `/{set}/resourcelist-archive.xml` or `/{set}/changelist-archive.xml`, or an index of several
    Archive(usize, ArchiveKind),
    /// `/{set}/resourcelist-archive/{number}.xml` or the same of Change Lists: one of several archives
    ArchivePart(usize, ArchiveKind, u64),
    /// `/{set}/archived/resourcelist/{number}.xml`: a copy of a Resource List, or of its index
    ArchivedResourceList(usize, u64),
    /// `/{set}/archived/resourcelist/{shard}-{version}-{number}.xml`: a list of such an index
    ArchivedResourceListPart(usize, ShardId, Position, u64),
    /// `/{set}/archived/resourcedump/{begin}.xml` or the same of a Change Dump: what one dump holds
    ArchivedDump(usize, ArchiveKind, Timestamp),
}

impl DocumentPath {
    /// The document at a path below the public base; `slugs` are the sets' names.
    pub(super) fn parse<'a>(path: &str, mut slugs: impl Iterator<Item = &'a str>) -> Option<Self> {
        if path == ".well-known/resourcesync" {
            return Some(Self::SourceDescription);
        }
        if let Some(part) = path.strip_prefix("sourcedescription/") {
            return part.strip_suffix(".xml").and_then(number).map(Self::SourceDescriptionPart);
        }
        let (slug, rest) = path.split_once('/')?;
        let set = slugs.position(|name| name == slug)?;
        let numbered = |prefix: &str| rest.strip_prefix(prefix)?.strip_suffix(".xml").and_then(number);
        let document = match rest {
            "capabilitylist.xml" => Self::CapabilityList(set),
            "resourcelist.xml" => Self::ResourceList(set),
            "changelist.xml" => Self::ChangeList(set),
            "resourcelist-archive.xml" => Self::Archive(set, ArchiveKind::ResourceLists),
            "changelist-archive.xml" => Self::Archive(set, ArchiveKind::ChangeLists),
            "resourcedump-archive.xml" => Self::Archive(set, ArchiveKind::ResourceDumps),
            "changedump-archive.xml" => Self::Archive(set, ArchiveKind::ChangeDumps),
            "resourcedump.xml" => Self::ResourceDump(set),
            "changedump.xml" => Self::ChangeDump(set),
            _ => {
                if let Some(id) = numbered("resourcelist/") {
                    Self::ResourceListShard(set, ShardId(id))
                } else if let Some(page) = numbered("changelist/") {
                    Self::ChangeListPage(set, page)
                } else if let Some(number) = numbered("resourcedump/") {
                    Self::ResourceDumpPart(set, number)
                } else if let Some(number) = numbered("changedump/") {
                    Self::ChangeDumpPart(set, number)
                } else if let Some(part) = numbered("resourcelist-archive/") {
                    Self::ArchivePart(set, ArchiveKind::ResourceLists, part)
                } else if let Some(part) = numbered("changelist-archive/") {
                    Self::ArchivePart(set, ArchiveKind::ChangeLists, part)
                } else if let Some(part) = numbered("resourcedump-archive/") {
                    Self::ArchivePart(set, ArchiveKind::ResourceDumps, part)
                } else if let Some(part) = numbered("changedump-archive/") {
                    Self::ArchivePart(set, ArchiveKind::ChangeDumps, part)
                } else if let Some(begin) = numbered("archived/resourcedump/").and_then(time) {
                    Self::ArchivedDump(set, ArchiveKind::ResourceDumps, begin)
                } else if let Some(begin) = numbered("archived/changedump/").and_then(time) {
                    Self::ArchivedDump(set, ArchiveKind::ChangeDumps, begin)
                } else if let Some(list) = numbered("archived/resourcelist/") {
                    Self::ArchivedResourceList(set, list)
                } else if let Some([shard, version, list]) = three_numbers(rest, "archived/resourcelist/") {
                    Self::ArchivedResourceListPart(set, ShardId(shard), Position(version), list)
                } else {
                    return None;
                }
            }
        };
        Some(document)
    }
}

impl DocumentName for DocumentPath {
    fn path<'n>(&'n self, publisher: &Publisher) -> Option<Cow<'n, str>> {
        let urls = publisher.urls();
        let of = |set: &usize| publisher.sets().get(*set).map(|set| &set.urls);
        let url = match self {
            Self::SourceDescription => urls.source_description(),
            Self::SourceDescriptionPart(number) => urls.source_description_part(*number),
            Self::CapabilityList(set) => of(set)?.capability_list(),
            Self::ResourceList(set) => of(set)?.resource_list(),
            Self::ResourceListShard(set, id) => of(set)?.resource_list_shard(*id),
            Self::ChangeList(set) => of(set)?.change_list(),
            Self::ChangeListPage(set, number) => of(set)?.change_list_page(*number),
            Self::ResourceDump(set) => of(set)?.resource_dump(),
            Self::ResourceDumpPart(set, number) => of(set)?.resource_dump_part(*number),
            Self::ChangeDump(set) => of(set)?.change_dump(),
            Self::ChangeDumpPart(set, number) => of(set)?.change_dump_part(*number),
            Self::Archive(set, kind) => of(set)?.archive(*kind),
            Self::ArchivePart(set, kind, part) => of(set)?.archive_part(*kind, *part),
            Self::ArchivedResourceList(set, number) => of(set)?.archived_resource_list(*number),
            Self::ArchivedResourceListPart(set, shard, version, number) => {
                let part = Part { shard: *shard, version: *version, number: *number, time: Timestamp::default() };
                of(set)?.archived_resource_list_part(&part)
            }
            Self::ArchivedDump(set, kind, begin) => of(set)?.archived_dump(*kind, *begin),
        };
        url.strip_prefix(urls.base()).map(|path| Cow::Owned(path.to_owned()))
    }
}

/// Microseconds since 1970.
fn time(micros: u64) -> Option<Timestamp> {
    micros.try_into().ok().map(Timestamp::from_micros)
}

/// `{prefix}{number}-{number}-{number}.xml`
fn three_numbers(path: &str, prefix: &str) -> Option<[u64; 3]> {
    let mut parts = path.strip_prefix(prefix)?.strip_suffix(".xml")?.split('-').map(number);
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<DocumentPath> {
        DocumentPath::parse(path, ["a", "b"].into_iter())
    }

    #[test]
    fn every_document_has_one_path() {
        assert_eq!(of(".well-known/resourcesync"), Some(DocumentPath::SourceDescription));
        assert_eq!(of("b/resourcelist/12.xml"), Some(DocumentPath::ResourceListShard(1, ShardId(12))));
        assert_eq!(of("a/changelist/3.xml"), Some(DocumentPath::ChangeListPage(0, 3)));
        assert_eq!(of("sourcedescription/2.xml"), Some(DocumentPath::SourceDescriptionPart(2)));
        let archive = DocumentPath::Archive(0, ArchiveKind::ResourceLists);
        assert_eq!(of("a/resourcelist-archive.xml"), Some(archive));
        let part = DocumentPath::ArchivePart(1, ArchiveKind::ChangeLists, 3);
        assert_eq!(of("b/changelist-archive/3.xml"), Some(part));
        let list = DocumentPath::ArchivedResourceList(0, 7);
        assert_eq!(of("a/archived/resourcelist/7.xml"), Some(list));
        let part = DocumentPath::ArchivedResourceListPart(0, ShardId(1), Position(2), 3);
        assert_eq!(of("a/archived/resourcelist/1-2-3.xml"), Some(part));
        assert_eq!(of("a/archived/resourcelist/1-2.xml"), None);
        let dump = DocumentPath::ArchivedDump(0, ArchiveKind::ChangeDumps, Timestamp::from_micros(5));
        assert_eq!(of("a/archived/changedump/5.xml"), Some(dump));
        assert_eq!(of("a/archived/changedump/18446744073709551615.xml"), None);
        assert_eq!(of("a/changedump.xml"), Some(DocumentPath::ChangeDump(0)));
        assert_eq!(of("a/resourcedump/2.xml"), Some(DocumentPath::ResourceDumpPart(0, 2)));
        for path in [
            "",
            "a",
            "/",
            "c/r/x",
            "a/",
            "a/r/x",
            "a/changelist/03.xml",
            "a/changelist/+3.xml",
            "a/changelist/.xml",
            "/robots.txt",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
