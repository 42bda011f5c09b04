//! The URLs of documents, built from the configured public base only, never from a request.

use super::{ArchiveKind, Channel};
use crate::Naming;
use crate::projection::resourcesync::archive::Part;
use abreast_core::ShardId;
use abreast_webtypes::Timestamp;

/// URLs of the Source as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUrls {
    base: String,
}

impl SourceUrls {
    /// URLs below a public base such as `https://example.org/`; a final `/` is added.
    pub fn new(base: &str) -> Self {
        Self { base: format!("{}/", base.trim_end_matches('/')) }
    }

    /// The base, ending in `/`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The path below the base of a URL that begins with it.
    pub(crate) fn path_of(&self, url: &str) -> String {
        url.strip_prefix(&self.base).unwrap_or(url).to_owned()
    }

    /// The Source Description.
    pub fn source_description(&self) -> String {
        format!("{}.well-known/resourcesync", self.base)
    }

    /// One of several Source Descriptions, counted from 1.
    pub fn source_description_part(&self, number: u64) -> String {
        format!("{}sourcedescription/{number}.xml", self.base)
    }

    /// The page of the Source for people.
    pub fn page(&self) -> String {
        format!("{}about.html", self.base)
    }

    /// `robots.txt`
    pub fn robots(&self) -> String {
        format!("{}robots.txt", self.base)
    }

    /// Links to what the site publishes [rfc6415 §2].
    pub fn host_meta(&self) -> String {
        format!("{}.well-known/host-meta", self.base)
    }

    /// The plain Sitemap index for crawlers.
    pub fn sitemap(&self) -> String {
        format!("{}sitemap.xml", self.base)
    }

    /// The URLs of one set.
    pub fn set(&self, slug: &str) -> SetUrls {
        SetUrls {
            base: format!("{}{slug}/", self.base),
            resources: None,
            entities: None,
            in_files: false,
        }
    }
}

/// URLs of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUrls {
    base: String,
    /// The base of resources, if not below that of documents.
    resources: Option<String>,
    /// The namespace of the entities that are the resources.
    entities: Option<String>,
    /// Whether everything is a file of a static site.
    in_files: bool,
}

impl SetUrls {
    /// The same documents, of resources that another server answers for; a final `/` is added.
    #[must_use]
    pub fn with_resources(self, base: &str) -> Self {
        Self { resources: Some(format!("{}/", base.trim_end_matches('/'))), ..self }
    }

    /// The same documents, of entities: their addresses leave out the namespace, which may be empty.
    #[must_use]
    pub fn of_entities(self, namespace: &str) -> Self {
        Self { entities: Some(namespace.to_owned()), ..self }
    }

    /// The same, in a static site: what has the address of a folder on a server, or is chosen there
    /// by a query, is a file.
    #[must_use]
    pub fn in_files(self) -> Self {
        Self { in_files: true, ..self }
    }

    /// Whether everything is a file of a static site.
    pub(crate) fn are_in_files(&self) -> bool {
        self.in_files
    }

    /// The common prefix of its documents' URLs, ending in `/`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The page of the set for people.
    pub fn page(&self) -> String {
        format!("{}about.html", self.base)
    }

    /// The Capability List.
    pub fn capability_list(&self) -> String {
        format!("{}capabilitylist.xml", self.base)
    }

    /// The Resource List or its index.
    pub fn resource_list(&self) -> String {
        format!("{}resourcelist.xml", self.base)
    }

    /// One list of the index.
    pub fn resource_list_shard(&self, id: ShardId) -> String {
        format!("{}resourcelist/{}.xml", self.base, id.0)
    }

    /// The Change List or its index.
    pub fn change_list(&self) -> String {
        format!("{}changelist.xml", self.base)
    }

    /// One page of the index.
    pub fn change_list_page(&self, number: u64) -> String {
        format!("{}changelist/{number}.xml", self.base)
    }

    /// An archive, or its index.
    pub fn archive(&self, kind: ArchiveKind) -> String {
        format!("{}{}.xml", self.base, kind.name())
    }

    /// One of several archives.
    pub fn archive_part(&self, kind: ArchiveKind, number: u64) -> String {
        format!("{}{}/{number}.xml", self.base, kind.name())
    }

    /// A copy of the Resource List, or of its index.
    pub fn archived_resource_list(&self, number: u64) -> String {
        format!("{}archived/resourcelist/{number}.xml", self.base)
    }

    /// A list of such an index.
    pub fn archived_resource_list_part(&self, part: &Part) -> String {
        format!(
            "{}archived/resourcelist/{}-{}-{}.xml",
            self.base, part.shard.0, part.version.0, part.number
        )
    }

    /// A dump that an archive leads to, by the time it begins with.
    pub fn archived_dump(&self, kind: ArchiveKind, begin: Timestamp) -> String {
        let name = if kind == ArchiveKind::ChangeDumps { "changedump" } else { "resourcedump" };
        format!("{}archived/{name}/{}.xml", self.base, begin.as_micros())
    }

    /// One plain Sitemap.
    pub fn sitemap_shard(&self, id: ShardId) -> String {
        format!("{}sitemap/{}.xml", self.base, id.0)
    }

    /// The Resource Dump or its index.
    pub fn resource_dump(&self) -> String {
        format!("{}resourcedump.xml", self.base)
    }

    /// One Resource Dump of the index.
    pub fn resource_dump_part(&self, number: u64) -> String {
        format!("{}resourcedump/{number}.xml", self.base)
    }

    /// The Change Dump or its index.
    pub fn change_dump(&self) -> String {
        format!("{}changedump.xml", self.base)
    }

    /// One Change Dump of the index.
    pub fn change_dump_part(&self, number: u64) -> String {
        format!("{}changedump/{number}.xml", self.base)
    }

    /// A package of a dump, by its name without `.zip`.
    pub fn package(&self, stem: &str) -> String {
        format!("{}dump/{stem}.zip", self.base)
    }

    /// The copy of a package's manifest.
    pub fn package_manifest(&self, stem: &str) -> String {
        format!("{}dump/{stem}.xml", self.base)
    }

    /// The address of one package with the last change of each resource since a time.
    pub fn changes_since(&self) -> String {
        format!("{}changedump/since?changes=last", self.base)
    }

    /// The topic of a channel: it is subscribed to at this URL, which answers with its last
    /// notification.
    pub fn topic(&self, channel: Channel) -> String {
        format!("{}notify/{}", self.base, channel.name())
    }

    /// The base of the keys of its own resources.
    pub fn resources(&self) -> String {
        self.resources.clone().unwrap_or_else(|| format!("{}r/", self.base))
    }

    /// The names of resources.
    pub fn naming(&self) -> Naming {
        let naming = Naming::new(self.resources());
        match &self.entities {
            Some(namespace) if self.in_files => naming.of_entities(namespace).in_files(),
            Some(namespace) => naming.of_entities(namespace),
            None => naming,
        }
    }
}
