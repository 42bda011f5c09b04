//! Pages for people, plain Sitemaps with `robots.txt` for crawlers, and `host-meta`: entry points to
//! a Source for people and programs without the protocol.

mod about;
mod changes;
mod dataset;
mod documents;
mod folders;
mod host_meta;
mod names;
mod paths;
mod query;
mod resource;
mod resources;
mod set_view;
mod shell;
mod sitemap;

use super::resourcesync_0_1::has_one_dump;
use super::sdshare::newest_snapshot;
pub use crate::publish::About;
use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{
    HeadReader, Output, PublishError, PublishedSet, Reader, Rendered, ResolvedDocument,
    SiteDocument, SiteStage, Version,
};
use changes::Earlier;
use paths::{Form, PagePath, SetPage, SourcePage};
use resource::Asked;
use resources::View;
pub(crate) use resources::page_url;
pub use shell::{Count, Escape, HTML, Shell, Size, content_security_policy, framed, problem_page};
pub(crate) use shell::{Time, is_web, page};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// Projection of pages for people and of plain Sitemaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages;

impl Projection for Pages {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let path = PagePath::parse(path, |slug| publisher.find_set(slug))?;
        Some(Box::new(Resolved { publisher, path, asked: None }))
    }

    fn resolve_query<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
        query: &str,
        reader: &Reader,
    ) -> Option<Result<Box<dyn ResolvedDocument + 'p>, PublishError>> {
        let path = PagePath::parse(path, |slug| publisher.find_set(slug))?;
        let PagePath::OfSet(_, page) = &path else { return None };
        let asked = match page {
            SetPage::Resources => View::parse(query, reader).map(Box::new).map(Query::Resources),
            SetPage::Resource => Asked::parse(query, reader).map(Query::Resource),
            SetPage::Changes => Earlier::parse(query, reader).map(Query::Changes),
            _ => return None,
        };
        Some(match asked {
            Some(asked) => Ok(Box::new(Resolved { publisher, path, asked: Some(asked) })),
            None => Err(PublishError::BadQuery(
                "the page does not have this query; the forms and links of the set's pages have the right ones"
                    .to_owned(),
            )),
        })
    }

    fn is_in_languages(&self, publisher: &Publisher, path: &str) -> bool {
        let path = PagePath::parse(path, |slug| publisher.find_set(slug));
        let Some(PagePath::OfSet(set, SetPage::Resources | SetPage::Changes)) = path else {
            return false;
        };
        set.urls.naming().names_entities()
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let (mut documents, urls) = (Vec::new(), publisher.urls());
        let mut add = |document: PagePath<_>, stage| {
            documents.push(SiteDocument { path: document.path(urls), stage, closed: false });
        };
        for set in publisher.sets() {
            for shard in publisher.log().shards(set.id)? {
                add(PagePath::OfSet(&set.urls, SetPage::Sitemap(shard.id)), SiteStage::List);
                if set.urls.are_in_files() {
                    add(PagePath::OfSet(&set.urls, SetPage::Names(shard.id)), SiteStage::List);
                }
            }
        }
        add(PagePath::OfSource(SourcePage::Sitemaps), SiteStage::EntryPoint);
        let assets = [SourcePage::Style, SourcePage::Icon, SourcePage::Live, SourcePage::Search];
        for page in assets {
            add(PagePath::OfSource(page), SiteStage::EntryPoint);
        }
        let datasets = Form::ALL.map(SetPage::Dataset);
        let pages = [SetPage::Feed, SetPage::Changes, SetPage::About, SetPage::Index];
        for set in publisher.sets() {
            for page in datasets.iter().chain(&pages) {
                add(PagePath::OfSet(&set.urls, page.clone()), SiteStage::Discovery);
            }
            if set.urls.are_in_files() {
                add(PagePath::OfSet(&set.urls, SetPage::NamesIndex), SiteStage::Discovery);
                for page in resources::folder_pages(publisher, set)? {
                    add(PagePath::OfSet(&set.urls, page), SiteStage::Discovery);
                }
            }
        }
        let last = [
            SourcePage::About,
            SourcePage::Index,
            SourcePage::Robots,
            SourcePage::HostMeta,
            SourcePage::HostMetaJson,
        ];
        for page in Form::ALL.map(SourcePage::Catalog).into_iter().chain(last) {
            add(PagePath::OfSource(page), SiteStage::Discovery);
        }
        Ok(documents)
    }

    fn numbered_folders(&self) -> &'static [&'static str] {
        &["sitemap", "names"]
    }
}

/// A page or a Sitemap, found for a path.
struct Resolved<'p> {
    publisher: &'p Publisher,
    path: PagePath<&'p Arc<PublishedSet>>,
    asked: Option<Query>,
}

/// The query of a page.
enum Query {
    Resources(Box<View>),
    Resource(Asked),
    Changes(Earlier),
}

impl ResolvedDocument for Resolved<'_> {
    fn follows(&self) -> Option<&PublishedSet> {
        match &self.path {
            PagePath::OfSet(set, SetPage::Sitemap(_) | SetPage::Names(_)) => Some(set),
            _ => None,
        }
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        match self.path {
            PagePath::OfSource(SourcePage::About | SourcePage::Index | SourcePage::Sitemaps) => {
                self.publisher.sets().to_vec()
            }
            PagePath::OfSource(_) => Vec::new(),
            PagePath::OfSet(set, _) => vec![Arc::clone(set)],
        }
    }

    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let sets = self.publisher.sets();
        let of = match &self.path {
            PagePath::OfSource(SourcePage::About | SourcePage::Index | SourcePage::Catalog(_)) => {
                let mut sum = [self.frame(), 0];
                for set in sets {
                    let head = heads.of(set)?;
                    sum[0] = sum[0].wrapping_add(u64::from(head.importing));
                    sum[1] += head.position.0;
                }
                sum
            }
            PagePath::OfSource(SourcePage::Style | SourcePage::Icon) => [self.frame(), 0],
            PagePath::OfSet(_, SetPage::Resource) if self.asked.is_none() => {
                return Err(PublishError::NotFound);
            }
            // Pages of a server have a query instead.
            PagePath::OfSet(set, SetPage::Folder(_) | SetPage::NamesIndex | SetPage::Names(_))
                if !set.urls.are_in_files() =>
            {
                return Err(PublishError::NotFound);
            }
            PagePath::OfSet(
                set,
                SetPage::Resources
                | SetPage::Folder(_)
                | SetPage::NamesIndex
                | SetPage::Resource
                | SetPage::Changes
                | SetPage::Feed,
            ) => {
                let head = heads.of(set)?;
                if head.importing {
                    return Err(PublishError::Importing);
                }
                [self.frame() ^ head.created.as_micros() as u64, head.position.0]
            }
            PagePath::OfSet(set, SetPage::About | SetPage::Index | SetPage::Dataset(_)) => {
                let head = heads.of(set)?;
                let has_dumps = set.has_dumps();
                let [resources, changes] = [has_dumps.resources, has_dumps.changes].map(u64::from);
                let snapshot = newest_snapshot(set).map_or(0, |(time, _)| time.as_micros() as u64);
                let one_dump = u64::from(has_one_dump(set));
                let parts =
                    u64::from(head.importing) | resources << 1 | changes << 2 | one_dump << 3;
                let mut hasher = DefaultHasher::new();
                set.about.validation().hash(&mut hasher);
                [parts ^ snapshot << 4 ^ self.frame() ^ hasher.finish(), head.position.0]
            }
            PagePath::OfSource(SourcePage::Sitemaps) => {
                let mut sum = [0, 0];
                for set in sets {
                    let head = heads.of(set)?;
                    if !head.importing {
                        sum[0] ^= head.created.as_micros() as u64;
                        sum[1] += head.position.0;
                    }
                }
                sum
            }
            PagePath::OfSource(_) => [0, 0],
            PagePath::OfSet(set, SetPage::Sitemap(id) | SetPage::Names(id)) => {
                let head = heads.of(set)?;
                if head.importing {
                    return Err(PublishError::Importing);
                }
                let shard =
                    self.publisher.log().shard(set.id, *id)?.ok_or(PublishError::NotFound)?;
                [head.created.as_micros() as u64, shard.version.0]
            }
        };
        Ok(Version::changing(of))
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let (publisher, log) = (self.publisher, &**self.publisher.log());
        match &self.path {
            PagePath::OfSource(page) => match page {
                SourcePage::About | SourcePage::Index => about::source_page(publisher),
                SourcePage::Style | SourcePage::Icon | SourcePage::Live | SourcePage::Search => {
                    about::asset(publisher, *page)
                }
                SourcePage::Catalog(form) => dataset::catalog(publisher, *form),
                SourcePage::Robots => Ok(sitemap::robots(publisher)),
                SourcePage::HostMeta => Ok(host_meta::xrd(publisher)),
                SourcePage::HostMetaJson => Ok(host_meta::json(publisher)),
                SourcePage::Sitemaps => sitemap::index(log, publisher.sets(), output),
            },
            PagePath::OfSet(set, page) => match (page, &self.asked) {
                (SetPage::About | SetPage::Index, _) => about::set_page(publisher, set),
                (SetPage::Dataset(form), _) => dataset::dataset(publisher, set, *form),
                (SetPage::Resource, Some(Query::Resource(asked))) => {
                    resource::resource_page(publisher, set, asked)
                }
                (SetPage::Resource, _) => Err(PublishError::NotFound),
                (SetPage::Resources, Some(Query::Resources(view))) => {
                    resources::resources_page(publisher, set, view)
                }
                (SetPage::Resources, _) => {
                    resources::resources_page(publisher, set, &View::default())
                }
                (SetPage::Folder(folder), _) => {
                    resources::resources_page(publisher, set, &View::of_folder(folder))
                }
                (SetPage::Changes, Some(Query::Changes(earlier))) => {
                    changes::changes_page(publisher, set, earlier)
                }
                (SetPage::Changes, _) => changes::changes_page(publisher, set, &Earlier::default()),
                (SetPage::Feed, _) => changes::feed(publisher, set),
                (SetPage::Sitemap(id), _) => sitemap::shard(log, set, *id, output),
                (SetPage::NamesIndex, _) => names::index(log, set),
                (SetPage::Names(id), _) => names::names(log, set, *id, output),
            },
        }
    }
}

impl Resolved<'_> {
    /// A number that changes with the frame of all pages.
    fn frame(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.publisher.institution().hash(&mut hasher);
        hasher.finish()
    }
}
