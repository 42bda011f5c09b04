//! Paths of pages and plain Sitemaps, parsed and written.

use super::folders::FolderPage;
use crate::projection::routes::{PathValue, Route as _, routes};
use crate::publish::{SetUrls, SourceUrls};
use abreast_core::ShardId;
use abreast_rdf::Syntax;

/// A page or a plain Sitemap; `S` is a reference to its set, or the set's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PagePath<S> {
    OfSource(SourcePage),
    OfSet(S, SetPage),
}

routes! {
    /// A page of the Source, by its path below the public base.
    #[derive(Copy)]
    enum SourcePage {
        /// Page of the Source for people.
        About = "about.html",
        /// The same page, with the name of the page of a folder.
        Index = "index.html",
        /// Style sheet of all pages.
        Style = "style.css",
        /// Icon of all pages.
        Icon = "icon.svg",
        /// Script that updates a page of changes.
        Live = "live.js",
        /// Script that searches a static site.
        Search = "search.js",
        /// Description of all sets in DCAT.
        Catalog(form: Form) = "catalog.{}",
        /// List of the Sitemaps for crawlers.
        Robots = "robots.txt",
        /// Links to the entry points of the site [rfc6415 §2].
        HostMeta = ".well-known/host-meta",
        /// The same links in JSON.
        HostMetaJson = ".well-known/host-meta.json",
        /// Index of the plain Sitemaps of all sets.
        Sitemaps = "sitemap.xml",
    }
}

routes! {
    /// A page of a set, by its path below the path of the set.
    enum SetPage {
        /// Page of the set for people.
        About = "about.html",
        /// The same page, with the name of the page of a folder.
        Index = "index.html",
        /// Resources of the set; a query chooses them.
        Resources = "resources.html",
        /// Page of a resource, which a query chooses.
        Resource = "resource.html",
        /// The newest changes; a query chooses earlier ones.
        Changes = "changes.html",
        /// The newest changes as an Atom feed.
        Feed = "changes.atom",
        /// Description of the set in DCAT.
        Dataset(form: Form) = "dataset.{}",
        /// A part of the resources in a static site.
        Folder(folder: FolderPage) = "folders/{}.html",
        /// Search index of a static site: addresses of all parts.
        NamesIndex = "names.json",
        /// Search index for a part of the resources in a static site.
        Names(id: ShardId) = "names/{}.json",
        /// A plain Sitemap for crawlers.
        Sitemap(id: ShardId) = "sitemap/{}.xml",
    }
}

/// Syntax of a description in DCAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form(pub(super) Syntax);

impl Form {
    pub(super) const ALL: [Self; 3] =
        [Self(Syntax::Turtle), Self(Syntax::JsonLd), Self(Syntax::RdfXml)];
}

impl PathValue for Form {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.0.extension() == text)
    }

    fn write(&self, path: &mut String) {
        path.push_str(self.0.extension());
    }
}

impl<S> PagePath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        let of_source = SourcePage::parse_path(path).map(Self::OfSource);
        of_source
            .or_else(|| SetPage::parse_in_set(path, find).map(|(set, page)| Self::OfSet(set, page)))
    }
}

impl PagePath<&SetUrls> {
    /// Path of the document below the public base.
    pub(super) fn path(self, urls: &SourceUrls) -> String {
        match self {
            Self::OfSource(page) => page.url_below(""),
            Self::OfSet(set, page) => urls.path_of(&page.url(set)),
        }
    }
}

impl SourceUrls {
    /// URL of the page of the Source for people.
    pub fn page(&self) -> String {
        SourcePage::About.url_below(self.base())
    }

    /// URL of the plain Sitemap index for crawlers.
    pub fn sitemap(&self) -> String {
        SourcePage::Sitemaps.url_below(self.base())
    }
}

impl SetUrls {
    /// URL of the page of the set for people.
    pub fn page(&self) -> String {
        SetPage::About.url(self)
    }

    /// URL of the page with the resources of the set.
    pub fn resources_page(&self) -> String {
        SetPage::Resources.url(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::routes::tests::assert_read_back;

    #[test]
    fn every_route_reads_back() {
        assert_read_back::<SourcePage>();
        assert_read_back::<SetPage>();
    }

    #[test]
    fn every_page_has_one_path() {
        let of = |path: &str| {
            PagePath::parse(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
        };
        assert_eq!(of("about.html"), Some(PagePath::OfSource(SourcePage::About)));
        assert_eq!(of(".well-known/host-meta"), Some(PagePath::OfSource(SourcePage::HostMeta)));
        assert_eq!(
            of(".well-known/host-meta.json"),
            Some(PagePath::OfSource(SourcePage::HostMetaJson))
        );
        assert_eq!(of("b/about.html"), Some(PagePath::OfSet(1, SetPage::About)));
        let sitemap = PagePath::OfSet(1, SetPage::Sitemap(ShardId(12)));
        assert_eq!(of("b/sitemap/12.xml"), Some(sitemap));
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
