//! The URLs of documents, built from the configured public base only, never from a request.

use super::archive::Part;
use super::{ArchiveKind, Channel};
use crate::publish::{SetUrls, SourceUrls};
use abreast_core::ShardId;
use abreast_webtypes::Timestamp;

impl SourceUrls {
    /// The Source Description.
    pub fn source_description(&self) -> String {
        format!("{}.well-known/resourcesync", self.base())
    }

    /// One of several Source Descriptions, counted from 1.
    pub fn source_description_part(&self, number: u64) -> String {
        format!("{}sourcedescription/{number}.xml", self.base())
    }
}

impl SetUrls {
    /// The Capability List.
    pub fn capability_list(&self) -> String {
        format!("{}capabilitylist.xml", self.base())
    }

    /// The Resource List or its index.
    pub fn resource_list(&self) -> String {
        format!("{}resourcelist.xml", self.base())
    }

    /// One list of the index.
    pub fn resource_list_shard(&self, id: ShardId) -> String {
        format!("{}resourcelist/{}.xml", self.base(), id.0)
    }

    /// The Change List or its index.
    pub fn change_list(&self) -> String {
        format!("{}changelist.xml", self.base())
    }

    /// One page of the index.
    pub fn change_list_page(&self, number: u64) -> String {
        format!("{}changelist/{number}.xml", self.base())
    }

    /// An archive, or its index.
    pub fn archive(&self, kind: ArchiveKind) -> String {
        format!("{}{}.xml", self.base(), kind.name())
    }

    /// One of several archives.
    pub fn archive_part(&self, kind: ArchiveKind, number: u64) -> String {
        format!("{}{}/{number}.xml", self.base(), kind.name())
    }

    /// A copy of the Resource List, or of its index.
    pub fn archived_resource_list(&self, number: u64) -> String {
        format!("{}archived/resourcelist/{number}.xml", self.base())
    }

    /// A list of such an index.
    pub fn archived_resource_list_part(&self, part: &Part) -> String {
        format!(
            "{}archived/resourcelist/{}-{}-{}.xml",
            self.base(),
            part.shard.0,
            part.version.0,
            part.number
        )
    }

    /// A dump that an archive leads to, by the time it begins with.
    pub fn archived_dump(&self, kind: ArchiveKind, begin: Timestamp) -> String {
        let name = if kind == ArchiveKind::ChangeDumps { "changedump" } else { "resourcedump" };
        format!("{}archived/{name}/{}.xml", self.base(), begin.as_micros())
    }

    /// The Resource Dump or its index.
    pub fn resource_dump(&self) -> String {
        format!("{}resourcedump.xml", self.base())
    }

    /// One Resource Dump of the index.
    pub fn resource_dump_part(&self, number: u64) -> String {
        format!("{}resourcedump/{number}.xml", self.base())
    }

    /// The Change Dump or its index.
    pub fn change_dump(&self) -> String {
        format!("{}changedump.xml", self.base())
    }

    /// One Change Dump of the index.
    pub fn change_dump_part(&self, number: u64) -> String {
        format!("{}changedump/{number}.xml", self.base())
    }

    /// A package of a dump, by its name without `.zip`.
    pub fn package(&self, stem: &str) -> String {
        format!("{}dump/{stem}.zip", self.base())
    }

    /// The copy of a package's manifest.
    pub fn package_manifest(&self, stem: &str) -> String {
        format!("{}dump/{stem}.xml", self.base())
    }

    /// The address of one package with the last change of each resource since a time.
    pub fn changes_since(&self) -> String {
        format!("{}changedump/since?changes=last", self.base())
    }

    /// The topic of a channel: it is subscribed to at this URL, which answers with its last
    /// notification.
    pub fn topic(&self, channel: Channel) -> String {
        format!("{}notify/{}", self.base(), channel.name())
    }
}
