//! Where is each document? Built from the configured public base only, never from a request.

use abreast_core::ShardId;

/// One document that a Source can be asked for; sets are numbered in their configured order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentPath {
    /// `/.well-known/resourcesync`
    SourceDescription,
    /// `/robots.txt`
    Robots,
    /// `/sitemap.xml`
    SitemapIndex,
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
    /// `/{set}/sitemap/{id}.xml`: a plain Sitemap for crawlers
    SitemapShard(usize, ShardId),
}

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

    /// The Source Description.
    pub fn source_description(&self) -> String {
        format!("{}.well-known/resourcesync", self.base)
    }

    /// The plain Sitemap index for crawlers.
    pub fn sitemap(&self) -> String {
        format!("{}sitemap.xml", self.base)
    }

    /// The URLs of one set.
    pub fn set(&self, slug: &str) -> SetUrls {
        SetUrls { base: format!("{}{slug}/", self.base) }
    }
}

/// URLs of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUrls {
    base: String,
}

impl SetUrls {
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

    /// One plain Sitemap.
    pub fn sitemap_shard(&self, id: ShardId) -> String {
        format!("{}sitemap/{}.xml", self.base, id.0)
    }

    /// What all keys of resources that live here are relative to.
    pub fn resources(&self) -> String {
        format!("{}r/", self.base)
    }
}

/// The URI of a key: absolute keys are URIs already.
pub(crate) fn write_uri(resources: &str, key: &str, out: &mut String) {
    out.clear();
    // Relative keys never hold a `:`; their encoder escapes it.
    if !key.contains(':') {
        out.push_str(resources);
    }
    out.push_str(key);
}
