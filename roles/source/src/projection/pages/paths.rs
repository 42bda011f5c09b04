//! The paths of pages and plain Sitemaps: from a path to the document, and back.

use crate::projection::plain_number;
use crate::publish::{SetUrls, SourceUrls};
use abreast_core::ShardId;

/// A page or a plain Sitemap; `S` is how its set is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PagePath<S> {
    /// `/about.html`: the Source, for people
    SourcePage,
    /// `/robots.txt`
    Robots,
    /// `/.well-known/host-meta`: links to what the site publishes
    HostMeta,
    /// `/.well-known/host-meta.json`: the same in JSON
    HostMetaJson,
    /// `/sitemap.xml`
    SitemapIndex,
    /// `/{set}/about.html`: a set, for people
    SetPage(S),
    /// `/{set}/sitemap/{id}.xml`: a plain Sitemap for crawlers
    SitemapShard(S, ShardId),
}

impl<S> PagePath<S> {
    /// The document at a path below the public base; `find` finds a set by its name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        match path {
            "about.html" => return Some(Self::SourcePage),
            "robots.txt" => return Some(Self::Robots),
            ".well-known/host-meta" => return Some(Self::HostMeta),
            ".well-known/host-meta.json" => return Some(Self::HostMetaJson),
            "sitemap.xml" => return Some(Self::SitemapIndex),
            _ => {}
        }
        let (slug, rest) = path.split_once('/')?;
        if rest == "about.html" {
            return find(slug).map(Self::SetPage);
        }
        let id = rest.strip_prefix("sitemap/")?.strip_suffix(".xml").and_then(plain_number)?;
        find(slug).map(|set| Self::SitemapShard(set, ShardId(id)))
    }
}

impl PagePath<&SetUrls> {
    /// Its path below the public base.
    pub(super) fn path(self, urls: &SourceUrls) -> String {
        let url = match self {
            Self::SourcePage => urls.page(),
            Self::Robots => urls.robots(),
            Self::HostMeta => urls.host_meta(),
            Self::HostMetaJson => format!("{}.json", urls.host_meta()),
            Self::SitemapIndex => urls.sitemap(),
            Self::SetPage(set) => set.page(),
            Self::SitemapShard(set, id) => set.sitemap_shard(id),
        };
        urls.path_of(&url)
    }
}

impl SourceUrls {
    /// The page of the Source for people.
    pub fn page(&self) -> String {
        format!("{}about.html", self.base())
    }

    /// `robots.txt`
    pub fn robots(&self) -> String {
        format!("{}robots.txt", self.base())
    }

    /// Links to what the site publishes [rfc6415 §2].
    pub fn host_meta(&self) -> String {
        format!("{}.well-known/host-meta", self.base())
    }

    /// The plain Sitemap index for crawlers.
    pub fn sitemap(&self) -> String {
        format!("{}sitemap.xml", self.base())
    }
}

impl SetUrls {
    /// The page of the set for people.
    pub fn page(&self) -> String {
        format!("{}about.html", self.base())
    }

    /// One plain Sitemap.
    pub fn sitemap_shard(&self, id: ShardId) -> String {
        format!("{}sitemap/{}.xml", self.base(), id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_path() {
        let of = |path: &str| {
            PagePath::parse(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
        };
        assert_eq!(of("about.html"), Some(PagePath::SourcePage));
        assert_eq!(of(".well-known/host-meta"), Some(PagePath::HostMeta));
        assert_eq!(of(".well-known/host-meta.json"), Some(PagePath::HostMetaJson));
        assert_eq!(of("b/about.html"), Some(PagePath::SetPage(1)));
        assert_eq!(of("b/sitemap/12.xml"), Some(PagePath::SitemapShard(1, ShardId(12))));
        for path in [
            "",
            "/",
            "/robots.txt",
            "c/about.html",
            "a/sitemap.xml",
            "a/sitemap/03.xml",
            "c/sitemap/1.xml",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
