//! URLs of documents, built only from the configured public base, never from a request.

use super::archive::Part;
use super::{ArchiveKind, Channel};
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
        format!("{}capabilitylist.xml", self.base())
    }

    /// URL of the Resource List or its index.
    pub fn resource_list(&self) -> String {
        format!("{}resourcelist.xml", self.base())
    }

    /// URL of one list in the index of Resource Lists.
    pub fn resource_list_shard(&self, id: ShardId) -> String {
        format!("{}resourcelist/{}.xml", self.base(), id.0)
    }

    /// URL of the Change List or its index.
    pub fn change_list(&self) -> String {
        format!("{}changelist.xml", self.base())
    }

    /// URL of one page in the index of Change Lists.
    pub fn change_list_page(&self, number: u64) -> String {
        format!("{}changelist/{number}.xml", self.base())
    }

    /// URL of an archive or its index.
    pub fn archive(&self, kind: ArchiveKind) -> String {
        format!("{}{}.xml", self.base(), kind.name())
    }

    /// URL of one of several archives of a kind.
    pub fn archive_part(&self, kind: ArchiveKind, number: u64) -> String {
        format!("{}{}/{number}.xml", self.base(), kind.name())
    }

    /// URL of a copy of the Resource List, or of the index of a copy.
    pub fn archived_resource_list(&self, number: u64) -> String {
        format!("{}archived/resourcelist/{number}.xml", self.base())
    }

    /// URL of a list in the index of a copy.
    pub fn archived_resource_list_part(&self, part: &Part) -> String {
        format!(
            "{}archived/resourcelist/{}-{}-{}.xml",
            self.base(),
            part.shard.0,
            part.version.0,
            part.number
        )
    }

    /// URL of a dump in an archive, by the time when the dump began.
    pub fn archived_dump(&self, kind: ArchiveKind, begin: Timestamp) -> String {
        let name = if kind == ArchiveKind::ChangeDumps { "changedump" } else { "resourcedump" };
        format!("{}archived/{name}/{}.xml", self.base(), begin.as_micros())
    }

    /// URL of the Resource Dump or its index.
    pub fn resource_dump(&self) -> String {
        format!("{}resourcedump.xml", self.base())
    }

    /// URL of one Resource Dump in the index.
    pub fn resource_dump_part(&self, number: u64) -> String {
        format!("{}resourcedump/{number}.xml", self.base())
    }

    /// URL of the Change Dump or its index.
    pub fn change_dump(&self) -> String {
        format!("{}changedump.xml", self.base())
    }

    /// URL of one Change Dump in the index.
    pub fn change_dump_part(&self, number: u64) -> String {
        format!("{}changedump/{number}.xml", self.base())
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
