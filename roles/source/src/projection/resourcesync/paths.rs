//! Paths of documents, parsed and written.

use super::{ArchiveKind, SetUrls};
use crate::projection::plain_number as number;
use crate::projection::resourcesync::archive::Part;
use abreast_core::{Position, ShardId};
use abreast_webtypes::Timestamp;

/// One document of ResourceSync; `S` is a reference to its set, or the set's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DocumentPath<S> {
    /// `/.well-known/resourcesync`: the Source Description or its index
    SourceDescription,
    /// `/sourcedescription/{number}.xml`: one of several Source Descriptions
    SourceDescriptionPart(u64),
    /// `/{set}/…`: a document of a set
    OfSet(S, SetDocument),
}

/// One document of a set, with one path below the path of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetDocument {
    /// `capabilitylist.xml`, with links to the documents of the set
    CapabilityList,
    /// `resourcelist.xml`: the Resource List, or its index when there are several
    ResourceList,
    /// `resourcelist/{id}.xml`: one of several Resource Lists
    ResourceListShard(ShardId),
    /// `changelist.xml`: the Change List, or its index when there are several
    ChangeList,
    /// `changelist/{number}.xml`: one of several Change Lists
    ChangeListPage(u64),
    /// `resourcedump.xml`: the Resource Dump, or its index when one document is not enough
    ResourceDump,
    /// `resourcedump/{number}.xml`: one of several Resource Dumps
    ResourceDumpPart(u64),
    /// `changedump.xml`: the Change Dump, or its index when one document is not enough
    ChangeDump,
    /// `changedump/{number}.xml`: one of several Change Dumps
    ChangeDumpPart(u64),
    /// `resourcelist-archive.xml`, and similar for other kinds: an archive, or an index of several
    Archive(ArchiveKind),
    /// `resourcelist-archive/{number}.xml`, and similar for other kinds: one of several archives
    ArchivePart(ArchiveKind, u64),
    /// `archived/resourcelist/{number}.xml`: a copy of a Resource List, or the index of a copy
    ArchivedResourceList(u64),
    /// `archived/resourcelist/{shard}-{version}-{number}.xml`: a list in the index of a copy
    ArchivedResourceListPart(ShardId, Position, u64),
    /// `archived/resourcedump/{begin}.xml`, and similar for Change Dumps: packages of one dump
    ArchivedDump(ArchiveKind, Timestamp),
}

impl<S> DocumentPath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        if path == ".well-known/resourcesync" {
            return Some(Self::SourceDescription);
        }
        if let Some(part) = path.strip_prefix("sourcedescription/") {
            return part.strip_suffix(".xml").and_then(number).map(Self::SourceDescriptionPart);
        }
        let (slug, rest) = path.split_once('/')?;
        let document = SetDocument::parse(rest)?;
        Some(Self::OfSet(find(slug)?, document))
    }
}

impl SetDocument {
    /// Parses a path below the path of the set.
    fn parse(path: &str) -> Option<Self> {
        let stem = path.strip_suffix(".xml")?;
        let whole = match stem {
            "capabilitylist" => Some(Self::CapabilityList),
            "resourcelist" => Some(Self::ResourceList),
            "changelist" => Some(Self::ChangeList),
            "resourcedump" => Some(Self::ResourceDump),
            "changedump" => Some(Self::ChangeDump),
            _ => archive_named(stem).map(Self::Archive),
        };
        if whole.is_some() {
            return whole;
        }
        let (folder, name) = stem.rsplit_once('/')?;
        Some(match folder {
            "resourcelist" => Self::ResourceListShard(ShardId(number(name)?)),
            "changelist" => Self::ChangeListPage(number(name)?),
            "resourcedump" => Self::ResourceDumpPart(number(name)?),
            "changedump" => Self::ChangeDumpPart(number(name)?),
            "archived/resourcedump" => {
                Self::ArchivedDump(ArchiveKind::ResourceDumps, time(number(name)?)?)
            }
            "archived/changedump" => {
                Self::ArchivedDump(ArchiveKind::ChangeDumps, time(number(name)?)?)
            }
            "archived/resourcelist" => match three_numbers(name) {
                Some([shard, version, list]) => {
                    Self::ArchivedResourceListPart(ShardId(shard), Position(version), list)
                }
                None => Self::ArchivedResourceList(number(name)?),
            },
            _ => Self::ArchivePart(archive_named(folder)?, number(name)?),
        })
    }

    /// URL of the document in a set.
    pub(super) fn url(self, set: &SetUrls) -> String {
        match self {
            Self::CapabilityList => set.capability_list(),
            Self::ResourceList => set.resource_list(),
            Self::ResourceListShard(id) => set.resource_list_shard(id),
            Self::ChangeList => set.change_list(),
            Self::ChangeListPage(number) => set.change_list_page(number),
            Self::ResourceDump => set.resource_dump(),
            Self::ResourceDumpPart(number) => set.resource_dump_part(number),
            Self::ChangeDump => set.change_dump(),
            Self::ChangeDumpPart(number) => set.change_dump_part(number),
            Self::Archive(kind) => set.archive(kind),
            Self::ArchivePart(kind, part) => set.archive_part(kind, part),
            Self::ArchivedResourceList(number) => set.archived_resource_list(number),
            Self::ArchivedResourceListPart(shard, version, number) => {
                let part = Part { shard, version, number, time: Timestamp::default() };
                set.archived_resource_list_part(&part)
            }
            Self::ArchivedDump(kind, begin) => set.archived_dump(kind, begin),
        }
    }
}

fn archive_named(name: &str) -> Option<ArchiveKind> {
    ArchiveKind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// Converts microseconds since 1970 to a time.
fn time(micros: u64) -> Option<Timestamp> {
    micros.try_into().ok().map(Timestamp::from_micros)
}

/// `{number}-{number}-{number}`
fn three_numbers(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('-').map(number);
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::SourceUrls;

    fn of(path: &str) -> Option<DocumentPath<usize>> {
        DocumentPath::parse(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
    }

    #[test]
    fn every_document_has_one_path() {
        assert_eq!(of(".well-known/resourcesync"), Some(DocumentPath::SourceDescription));
        assert_eq!(of("sourcedescription/2.xml"), Some(DocumentPath::SourceDescriptionPart(2)));
        let sets = ["a", "b"].map(|slug| SourceUrls::new("https://example.org/").set(slug));
        let begin = Timestamp::from_micros(5);
        for (path, set, document) in [
            ("a/capabilitylist.xml", 0, SetDocument::CapabilityList),
            ("b/resourcelist.xml", 1, SetDocument::ResourceList),
            ("b/resourcelist/12.xml", 1, SetDocument::ResourceListShard(ShardId(12))),
            ("a/changelist.xml", 0, SetDocument::ChangeList),
            ("a/changelist/3.xml", 0, SetDocument::ChangeListPage(3)),
            ("a/resourcedump.xml", 0, SetDocument::ResourceDump),
            ("a/resourcedump/2.xml", 0, SetDocument::ResourceDumpPart(2)),
            ("a/changedump.xml", 0, SetDocument::ChangeDump),
            ("b/changedump/2.xml", 1, SetDocument::ChangeDumpPart(2)),
            ("a/resourcelist-archive.xml", 0, SetDocument::Archive(ArchiveKind::ResourceLists)),
            ("a/changedump-archive.xml", 0, SetDocument::Archive(ArchiveKind::ChangeDumps)),
            (
                "b/changelist-archive/3.xml",
                1,
                SetDocument::ArchivePart(ArchiveKind::ChangeLists, 3),
            ),
            (
                "b/resourcedump-archive/1.xml",
                1,
                SetDocument::ArchivePart(ArchiveKind::ResourceDumps, 1),
            ),
            ("a/archived/resourcelist/7.xml", 0, SetDocument::ArchivedResourceList(7)),
            (
                "a/archived/resourcelist/1-2-3.xml",
                0,
                SetDocument::ArchivedResourceListPart(ShardId(1), Position(2), 3),
            ),
            (
                "a/archived/changedump/5.xml",
                0,
                SetDocument::ArchivedDump(ArchiveKind::ChangeDumps, begin),
            ),
            (
                "b/archived/resourcedump/5.xml",
                1,
                SetDocument::ArchivedDump(ArchiveKind::ResourceDumps, begin),
            ),
        ] {
            assert_eq!(of(path), Some(DocumentPath::OfSet(set, document)));
            assert_eq!(document.url(&sets[set]), format!("https://example.org/{path}"));
        }
        for path in [
            "",
            "a",
            "/",
            "c/r/x",
            "c/changelist.xml",
            "a/",
            "a/r/x",
            "a/changelist/03.xml",
            "a/changelist/+3.xml",
            "a/changelist/.xml",
            "a/changelist",
            "a/archived/resourcelist/1-2.xml",
            "a/archived/resourcelist/1-2-3-4.xml",
            "a/archived/changedump/18446744073709551615.xml",
            "a/archived/changelist/1.xml",
            "/robots.txt",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
