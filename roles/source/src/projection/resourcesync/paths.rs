//! Paths of documents, parsed and written.

use super::ArchiveKind;
use crate::projection::plain_number as number;
use crate::projection::routes::{PathValue, Route as _, routes};
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

routes! {
    /// One document of a set, with one path below the path of the set.
    #[derive(Copy)]
    enum SetDocument {
        /// Links to the documents of the set.
        CapabilityList = "capabilitylist.xml",
        /// The Resource List, or its index when there are several.
        ResourceList = "resourcelist.xml",
        /// One of several Resource Lists.
        ResourceListShard(id: ShardId) = "resourcelist/{}.xml",
        /// The Change List, or its index when there are several.
        ChangeList = "changelist.xml",
        /// One of several Change Lists.
        ChangeListPage(number: u64) = "changelist/{}.xml",
        /// The Resource Dump, or its index when one document is not enough.
        ResourceDump = "resourcedump.xml",
        /// One of several Resource Dumps.
        ResourceDumpPart(number: u64) = "resourcedump/{}.xml",
        /// The Change Dump, or its index when one document is not enough.
        ChangeDump = "changedump.xml",
        /// One of several Change Dumps.
        ChangeDumpPart(number: u64) = "changedump/{}.xml",
        /// A list in the index of a copy.
        ArchivedResourceListPart(shard: ShardId, version: Position, number: u64) =
            "archived/resourcelist/{}-{}-{}.xml",
        /// A copy of a Resource List, or the index of a copy.
        ArchivedResourceList(number: u64) = "archived/resourcelist/{}.xml",
        /// Packages of a Resource Dump, by the start of the dump.
        ArchivedResourceDump(begin: Timestamp) = "archived/resourcedump/{}.xml",
        /// Packages of a Change Dump, by the start of the dump.
        ArchivedChangeDump(begin: Timestamp) = "archived/changedump/{}.xml",
        /// An archive, or an index of several.
        Archive(kind: ArchiveKind) = "{}.xml",
        /// One of several archives.
        ArchivePart(kind: ArchiveKind, number: u64) = "{}/{}.xml",
    }
}

impl SetDocument {
    /// The kind of an archived dump.
    pub(super) const fn kind_of_dump(self) -> ArchiveKind {
        match self {
            Self::ArchivedChangeDump(_) => ArchiveKind::ChangeDumps,
            _ => ArchiveKind::ResourceDumps,
        }
    }
}

impl PathValue for ArchiveKind {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }

    fn write(&self, path: &mut String) {
        path.push_str(self.name());
    }
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
        SetDocument::parse_in_set(path, find).map(|(set, document)| Self::OfSet(set, document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::SourceUrls;

    fn of(path: &str) -> Option<DocumentPath<usize>> {
        DocumentPath::parse(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
    }

    #[test]
    fn every_route_reads_back() {
        crate::projection::routes::tests::assert_read_back::<SetDocument>();
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
            ("a/archived/changedump/5.xml", 0, SetDocument::ArchivedChangeDump(begin)),
            ("b/archived/resourcedump/5.xml", 1, SetDocument::ArchivedResourceDump(begin)),
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
