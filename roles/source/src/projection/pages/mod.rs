//! Pages for people, plain Sitemaps with `robots.txt` for crawlers, and `host-meta`: entry points to
//! a Source for people and programs without the protocol.

mod about;
mod host_meta;
mod paths;
mod sitemap;

use super::resourcesync_0_1::has_one_dump;
use super::sdshare::newest_snapshot;
pub use crate::publish::About;
use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{
    HeadReader, Output, PublishError, PublishedSet, Rendered, ResolvedDocument, SiteDocument,
    SiteStage, Version,
};
pub use about::{CONTENT_SECURITY_POLICY, HTML};
pub(crate) use about::{escaped, page};
use paths::{PagePath, SetPage, SourcePage};
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
        Some(Box::new(Resolved { publisher, path }))
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let (mut documents, urls) = (Vec::new(), publisher.urls());
        let mut add = |document: PagePath<_>, stage| {
            documents.push(SiteDocument { path: document.path(urls), stage, closed: false });
        };
        for set in publisher.sets() {
            for shard in publisher.log().shards(set.id)? {
                let sitemap = SetPage::Sitemap(shard.id);
                add(PagePath::OfSet(&set.urls, sitemap), SiteStage::List);
            }
        }
        add(PagePath::OfSource(SourcePage::Sitemaps), SiteStage::EntryPoint);
        for set in publisher.sets() {
            add(PagePath::OfSet(&set.urls, SetPage::About), SiteStage::Discovery);
        }
        let last =
            [SourcePage::About, SourcePage::Robots, SourcePage::HostMeta, SourcePage::HostMetaJson];
        for page in last {
            add(PagePath::OfSource(page), SiteStage::Discovery);
        }
        Ok(documents)
    }

    fn numbered_folders(&self) -> &'static [&'static str] {
        &["sitemap"]
    }
}

/// A page or a Sitemap, found for a path.
struct Resolved<'p> {
    publisher: &'p Publisher,
    path: PagePath<&'p Arc<PublishedSet>>,
}

impl ResolvedDocument for Resolved<'_> {
    fn follows(&self) -> Option<&PublishedSet> {
        match &self.path {
            PagePath::OfSet(set, SetPage::Sitemap(_)) => Some(set),
            _ => None,
        }
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        match self.path {
            PagePath::OfSource(SourcePage::About | SourcePage::Sitemaps) => {
                self.publisher.sets().to_vec()
            }
            PagePath::OfSource(_) => Vec::new(),
            PagePath::OfSet(set, _) => vec![Arc::clone(set)],
        }
    }

    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let sets = self.publisher.sets();
        let of = match &self.path {
            PagePath::OfSource(SourcePage::About) => {
                let mut sum = [0, 0];
                for set in sets {
                    let head = heads.of(set)?;
                    sum[0] += u64::from(head.importing);
                    sum[1] += head.position.0;
                }
                sum
            }
            PagePath::OfSet(set, SetPage::About) => {
                let head = heads.of(set)?;
                let has_dumps = set.has_dumps();
                let [resources, changes] = [has_dumps.resources, has_dumps.changes].map(u64::from);
                let snapshot = newest_snapshot(set).map_or(0, |(time, _)| time.as_micros() as u64);
                let one_dump = u64::from(has_one_dump(set));
                let parts =
                    u64::from(head.importing) | resources << 1 | changes << 2 | one_dump << 3;
                [parts ^ snapshot << 4, head.position.0]
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
            PagePath::OfSet(set, SetPage::Sitemap(id)) => {
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
                SourcePage::About => about::source_page(publisher),
                SourcePage::Robots => Ok(sitemap::robots(publisher)),
                SourcePage::HostMeta => Ok(host_meta::xrd(publisher)),
                SourcePage::HostMetaJson => Ok(host_meta::json(publisher)),
                SourcePage::Sitemaps => sitemap::index(log, publisher.sets(), output),
            },
            PagePath::OfSet(set, SetPage::About) => about::set_page(publisher, set),
            PagePath::OfSet(set, SetPage::Sitemap(id)) => sitemap::shard(log, set, *id, output),
        }
    }
}
