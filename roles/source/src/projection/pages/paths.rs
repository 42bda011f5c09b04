//! The paths of pages and plain Sitemaps: from a path to the document, and back.

use crate::projection::{DocumentName, plain_number};
use crate::publish::Publisher;
use abreast_core::ShardId;
use std::borrow::Cow;

/// A page or a plain Sitemap; sets are numbered in their configured order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PagePath {
    /// `/about.html`: the Source, for people
    SourcePage,
    /// `/{set}/about.html`: a set, for people
    SetPage(usize),
    /// `/robots.txt`
    Robots,
    /// `/sitemap.xml`
    SitemapIndex,
    /// `/{set}/sitemap/{id}.xml`: a plain Sitemap for crawlers
    SitemapShard(usize, ShardId),
}

impl PagePath {
    /// The document at a path below the public base; `slugs` are the sets' names.
    pub(super) fn parse<'a>(path: &str, mut slugs: impl Iterator<Item = &'a str>) -> Option<Self> {
        match path {
            "about.html" => return Some(Self::SourcePage),
            "robots.txt" => return Some(Self::Robots),
            "sitemap.xml" => return Some(Self::SitemapIndex),
            _ => {}
        }
        let (slug, rest) = path.split_once('/')?;
        let shard = || rest.strip_prefix("sitemap/")?.strip_suffix(".xml").and_then(plain_number);
        if rest == "about.html" {
            return slugs.position(|name| name == slug).map(Self::SetPage);
        }
        let id = ShardId(shard()?);
        slugs.position(|name| name == slug).map(|set| Self::SitemapShard(set, id))
    }
}

impl DocumentName for PagePath {
    fn path<'n>(&'n self, publisher: &Publisher) -> Option<Cow<'n, str>> {
        let urls = publisher.urls();
        let of = |set: &usize| publisher.sets().get(*set).map(|set| &set.urls);
        let url = match self {
            Self::SourcePage => urls.page(),
            Self::SetPage(set) => of(set)?.page(),
            Self::Robots => urls.robots(),
            Self::SitemapIndex => urls.sitemap(),
            Self::SitemapShard(set, id) => of(set)?.sitemap_shard(*id),
        };
        url.strip_prefix(urls.base()).map(|path| Cow::Owned(path.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_path() {
        let of = |path: &str| PagePath::parse(path, ["a", "b"].into_iter());
        assert_eq!(of("about.html"), Some(PagePath::SourcePage));
        assert_eq!(of("b/about.html"), Some(PagePath::SetPage(1)));
        assert_eq!(of("b/sitemap/12.xml"), Some(PagePath::SitemapShard(1, ShardId(12))));
        for path in ["", "/", "/robots.txt", "c/about.html", "a/sitemap.xml", "a/sitemap/03.xml", "c/sitemap/1.xml"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
