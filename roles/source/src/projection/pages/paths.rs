//! Paths of pages and plain Sitemaps, parsed and written.

use crate::projection::plain_number;
use crate::publish::{SetUrls, SourceUrls};
use abreast_core::ShardId;

/// A page or a plain Sitemap; `S` is a reference to its set, or the set's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PagePath<S> {
    /// `/about.html`: page of the Source for people
    SourcePage,
    /// `/robots.txt`, which lists the Sitemaps
    Robots,
    /// `/.well-known/host-meta`: links to the entry points of the site
    HostMeta,
    /// `/.well-known/host-meta.json`: the same links in JSON
    HostMetaJson,
    /// `/sitemap.xml`: index of the plain Sitemaps of all sets
    SitemapIndex,
    /// `/{set}/about.html`: page of a set for people
    SetPage(S),
    /// `/{set}/sitemap/{id}.xml`: a plain Sitemap for crawlers
    SitemapShard(S, ShardId),
}

impl<S> PagePath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
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
    /// Path of the document below the public base.
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
    /// URL of the page of the Source for people.
    pub fn page(&self) -> String {
        format!("{}about.html", self.base())
    }

    /// URL of `robots.txt` at the public base.
    pub fn robots(&self) -> String {
        format!("{}robots.txt", self.base())
    }

    /// URL of the document with links to the entry points of the site [rfc6415 §2].
    pub fn host_meta(&self) -> String {
        format!("{}.well-known/host-meta", self.base())
    }

    /// URL of the plain Sitemap index for crawlers.
    pub fn sitemap(&self) -> String {
        format!("{}sitemap.xml", self.base())
    }
}

impl SetUrls {
    /// URL of the page of the set for people.
    pub fn page(&self) -> String {
        format!("{}about.html", self.base())
    }

    /// URL of one plain Sitemap of the set.
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
