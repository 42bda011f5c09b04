//! URLs of documents, built only from the configured public base, never from a request.

use super::archive::Part;
use super::paths::SetDocument;
use super::{ArchiveKind, Channel};
use crate::projection::routes::Route as _;
use crate::publish::{SetUrls, SourceUrls};
use abreast_core::ShardId;
use abreast_webtypes::Timestamp;

impl SourceUrls {
    /// URL of the Source Description or its index.
    pub fn source_description(&self) -> String {
        format!("{}.well-known/resourcesync", self.base())
    }

    /// URL of one of several Source Descriptions, counted from 1.
    pub fn source_description_part(&self, number: u64) -> String {
        format!("{}sourcedescription/{number}.xml", self.base())
    }
}

impl SetUrls {
    /// URL of the Capability List of the set.
    pub fn capability_list(&self) -> String {
        SetDocument::CapabilityList.url(self)
    }

    /// URL of the Resource List or its index.
    pub fn resource_list(&self) -> String {
        SetDocument::ResourceList.url(self)
    }

    /// URL of one list in the index of Resource Lists.
    pub fn resource_list_shard(&self, id: ShardId) -> String {
        SetDocument::ResourceListShard(id).url(self)
    }

    /// URL of the Change List or its index.
    pub fn change_list(&self) -> String {
        SetDocument::ChangeList.url(self)
    }

    /// URL of one page in the index of Change Lists.
    pub fn change_list_page(&self, number: u64) -> String {
        SetDocument::ChangeListPage(number).url(self)
    }

    /// URL of an archive or its index.
    pub fn archive(&self, kind: ArchiveKind) -> String {
        SetDocument::Archive(kind).url(self)
    }

    /// URL of one of several archives of a kind.
    pub fn archive_part(&self, kind: ArchiveKind, number: u64) -> String {
        SetDocument::ArchivePart(kind, number).url(self)
    }

    /// URL of a copy of the Resource List, or of the index of a copy.
    pub fn archived_resource_list(&self, number: u64) -> String {
        SetDocument::ArchivedResourceList(number).url(self)
    }

    /// URL of a list in the index of a copy.
    pub fn archived_resource_list_part(&self, part: &Part) -> String {
        SetDocument::ArchivedResourceListPart(part.shard, part.version, part.number).url(self)
    }

    /// URL of a dump in an archive, by the time when the dump began.
    pub fn archived_dump(&self, kind: ArchiveKind, begin: Timestamp) -> String {
        let document = if kind == ArchiveKind::ChangeDumps {
            SetDocument::ArchivedChangeDump
        } else {
            SetDocument::ArchivedResourceDump
        };
        document(begin).url(self)
    }

    /// URL of the Resource Dump or its index.
    pub fn resource_dump(&self) -> String {
        SetDocument::ResourceDump.url(self)
    }

    /// URL of one Resource Dump in the index.
    pub fn resource_dump_part(&self, number: u64) -> String {
        SetDocument::ResourceDumpPart(number).url(self)
    }

    /// URL of the Change Dump or its index.
    pub fn change_dump(&self) -> String {
        SetDocument::ChangeDump.url(self)
    }

    /// URL of one Change Dump in the index.
    pub fn change_dump_part(&self, number: u64) -> String {
        SetDocument::ChangeDumpPart(number).url(self)
    }

    /// URL of a package of a dump, by the name of the package without `.zip`.
    pub fn package(&self, stem: &str) -> String {
        format!("{}dump/{stem}.zip", self.base())
    }

    /// URL of the copy of a package's manifest.
    pub fn package_manifest(&self, stem: &str) -> String {
        format!("{}dump/{stem}.xml", self.base())
    }

    /// URL of one package with the last change of each resource since a time.
    pub fn changes_since(&self) -> String {
        format!("{}changedump/since?changes=last", self.base())
    }

    /// URL of a channel's topic, for subscriptions; a request is answered with the last
    /// notification.
    pub fn topic(&self, channel: Channel) -> String {
        format!("{}notify/{}", self.base(), channel.name())
    }
}
