//! Pages for people, and plain Sitemaps with `robots.txt` for crawlers: a way into a Source for those who know no protocol.

mod about;
mod paths;
mod sitemap;

pub use about::{About, CONTENT_SECURITY_POLICY, HTML};
pub use paths::PagePath;

use super::{DocumentName as _, LogState, Output, Projection, Rendered, ResolvedDocument, SiteDocument, Version};
use crate::publish::{PublishError, Publisher};
use std::ops::Range;

/// The projection of pages and plain Sitemaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages;

impl Projection for Pages {
    fn resolve<'p>(&self, publisher: &'p Publisher, path: &str) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let path = PagePath::parse(path, publisher.sets().iter().map(|set| set.slug.as_str()))?;
        Some(Box::new(Resolved { publisher, path }))
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let mut documents = Vec::new();
        let mut add = |document: PagePath, entry| {
            // Every document is one of a set that the publisher has.
            documents.extend(document.path(publisher).map(|path| SiteDocument {
                path: path.into_owned(),
                entry,
                closed: false,
                identifies: false,
            }));
        };
        for (number, set) in publisher.sets().iter().enumerate() {
            for shard in publisher.log().shards(set.id)? {
                add(PagePath::SitemapShard(number, shard.id), false);
            }
        }
        add(PagePath::SitemapIndex, true);
        for number in 0..publisher.sets().len() {
            add(PagePath::SetPage(number), true);
        }
        add(PagePath::SourcePage, true);
        add(PagePath::Robots, true);
        Ok(documents)
    }

    fn numbered_folders(&self) -> &'static [&'static str] {
        &["sitemap"]
    }
}

/// A page or a Sitemap of a publisher.
struct Resolved<'p> {
    publisher: &'p Publisher,
    path: PagePath,
}

impl ResolvedDocument for Resolved<'_> {
    fn log_state(&self) -> Option<LogState> {
        match &self.path {
            PagePath::SitemapShard(set, _) => LogState::of(self.publisher, *set),
            _ => None,
        }
    }

    fn introduces(&self) -> Range<usize> {
        match self.path {
            PagePath::SourcePage | PagePath::SitemapIndex => 0..self.publisher.sets().len(),
            PagePath::SetPage(set) | PagePath::SitemapShard(set, _) => set..set + 1,
            PagePath::Robots => 0..0,
        }
    }

    fn version(&self) -> Result<Version, PublishError> {
        let (publisher, log) = (self.publisher, self.publisher.log());
        let of = match &self.path {
            PagePath::Robots => [0, 0],
            PagePath::SourcePage => {
                let mut sum = [0, 0];
                for set in publisher.sets() {
                    let head = log.head(set.id)?;
                    sum[0] += u64::from(head.importing);
                    sum[1] += head.position.0;
                }
                sum
            }
            PagePath::SetPage(set) => {
                let head = log.head(publisher.set(*set)?.id)?;
                let has_dumps = publisher.has_dumps(*set);
                let [resources, changes] = [has_dumps.resources, has_dumps.changes].map(u64::from);
                [u64::from(head.importing) | resources << 1 | changes << 2, head.position.0]
            }
            PagePath::SitemapIndex => {
                let mut sum = [0, 0];
                for state in (0..publisher.sets().len()).filter_map(|set| LogState::of(publisher, set)) {
                    sum[0] ^= state.created.as_micros() as u64;
                    sum[1] += state.position.0;
                }
                sum
            }
            PagePath::SitemapShard(set, id) => {
                let set = publisher.set(*set)?.id;
                let head = log.head(set)?;
                if head.importing {
                    return Err(PublishError::Importing);
                }
                let shard = log.shard(set, *id)?.ok_or(PublishError::NotFound)?;
                [head.created.as_micros() as u64, shard.version.0]
            }
        };
        Ok(Version { of, immutable: false })
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let (publisher, log) = (self.publisher, &**self.publisher.log());
        match &self.path {
            PagePath::SourcePage => about::source_page(publisher),
            PagePath::SetPage(set) => about::set_page(publisher, *set),
            PagePath::Robots => Ok(sitemap::robots(publisher.urls())),
            PagePath::SitemapIndex => sitemap::index(log, publisher.sets(), output),
            PagePath::SitemapShard(set, id) => sitemap::shard(log, publisher.set(*set)?, *id, output),
        }
    }
}
