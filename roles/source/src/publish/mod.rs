//! Which documents does a Source publish, and what is in each? Every one is a projection of the log.

mod cache;
mod capability_list;
mod change_list;
mod resource_list;
mod sitemap;
mod source_description;
mod urls;

pub use cache::{Body, CacheFile, Document, Freshness};
pub use urls::{DocumentPath, SetUrls, SourceUrls};

use abreast_core::{ChangeLog, LogError, SetId};
use abreast_resourcesync::v1_1::Ln;
use cache::DocumentCache;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// One published set.
#[derive(Clone, Debug)]
pub struct PublishedSet {
    /// Its number in the log.
    pub id: SetId,
    /// Its name in URLs.
    pub slug: String,
    /// Its URLs.
    pub urls: SetUrls,
}

/// Renders the documents of a Source, and keeps what it rendered until it is out of date.
pub struct Publisher {
    log: Arc<dyn ChangeLog>,
    urls: SourceUrls,
    sets: Vec<PublishedSet>,
    cache: DocumentCache,
}

/// A document could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no such document.
    #[error("no such document")]
    NotFound,
    /// There was such a document; its reader should begin again at the index.
    #[error("this list was split into smaller ones; read the index again")]
    Gone,
    /// The set is being read for the first time.
    #[error("the set is being read for the first time; its lists follow when that is complete")]
    Importing,
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The document cache failed.
    #[error("the document cache failed")]
    Cache(#[source] io::Error),
}

impl Publisher {
    /// A publisher of these sets; rendered documents are kept in `cache_folder`, from which those of an
    /// earlier process are removed first.
    ///
    /// # Errors
    /// When the folder cannot be made, read or cleared.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: Vec<PublishedSet>,
        cache_folder: PathBuf,
    ) -> io::Result<Self> {
        Ok(Self { log, urls, sets, cache: DocumentCache::new(cache_folder)? })
    }

    /// The sets it publishes.
    pub fn sets(&self) -> &[PublishedSet] {
        &self.sets
    }

    /// The URLs that belong to no set.
    pub fn urls(&self) -> &SourceUrls {
        &self.urls
    }

    /// The log it publishes from.
    pub fn log(&self) -> &Arc<dyn ChangeLog> {
        &self.log
    }

    /// The document at a path, if it can be answered from memory without reading the store or a disk.
    pub fn cached(&self, path: &DocumentPath) -> Option<Arc<Document>> {
        let version = self.version(path).ok()?;
        self.cache.fresh(path, &version)
    }

    /// The document at a path, rendered if need be. May block for as long as a shard of 40,000 resources takes.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn document(&self, path: &DocumentPath) -> Result<Arc<Document>, PublishError> {
        let version = self.version(path)?;
        self.cache.get_or_render(path, &version, || match path {
            DocumentPath::SourceDescription => Ok(source_description::render(&self.sets)),
            DocumentPath::Robots => Ok(sitemap::robots(&self.urls)),
            DocumentPath::SitemapIndex => sitemap::index(&*self.log, &self.sets),
            DocumentPath::CapabilityList(set) => Ok(capability_list::render(&self.urls, self.set(*set)?)),
            DocumentPath::ResourceList(set) => resource_list::entry_point(&*self.log, self.set(*set)?),
            DocumentPath::ResourceListShard(set, id) => resource_list::shard(&*self.log, self.set(*set)?, *id),
            DocumentPath::ChangeList(set) => change_list::entry_point(&*self.log, self.set(*set)?),
            DocumentPath::ChangeListPage(set, number) => change_list::page(&*self.log, self.set(*set)?, *number),
            DocumentPath::SitemapShard(set, id) => sitemap::shard(&*self.log, self.set(*set)?, *id),
        })
    }

    /// A document's bytes in gzip, compressed once and kept. May block.
    ///
    /// # Errors
    /// When the cache fails.
    pub fn gzip(&self, document: &Document) -> Result<Body, PublishError> {
        self.cache.gzip(document).map_err(PublishError::Cache)
    }

    fn set(&self, number: usize) -> Result<&PublishedSet, PublishError> {
        self.sets.get(number).ok_or(PublishError::NotFound)
    }

    /// What a document's bytes depend on; equal versions mean equal bytes.
    fn version(&self, path: &DocumentPath) -> Result<Version, PublishError> {
        let head = |set: usize| -> Result<(u64, abreast_core::Head), PublishError> {
            let set = self.set(set)?;
            let head = self.log.head(set.id)?;
            if head.importing {
                return Err(PublishError::Importing);
            }
            Ok((head.created.as_micros() as u64, head))
        };
        let version = match path {
            DocumentPath::SourceDescription | DocumentPath::Robots | DocumentPath::CapabilityList(_) => {
                Version { of: [0, 0], immutable: false }
            }
            DocumentPath::SitemapIndex => {
                let mut sum = [0, 0];
                for number in 0..self.sets.len() {
                    if let Ok((created, head)) = head(number) {
                        sum[0] ^= created;
                        sum[1] += head.position.0;
                    }
                }
                Version { of: sum, immutable: false }
            }
            DocumentPath::ResourceList(set) => {
                let (created, head) = head(*set)?;
                Version { of: [created, head.position.0], immutable: false }
            }
            DocumentPath::ChangeList(set) => {
                let (created, head) = head(*set)?;
                // With closed pages the entry point is an index, which changes only when a page is closed.
                let of = if head.open_page == 1 { head.position.0 } else { u64::MAX - head.open_page };
                Version { of: [created, of], immutable: false }
            }
            DocumentPath::ChangeListPage(set, number) => {
                let (created, head) = head(*set)?;
                if *number < head.open_page {
                    Version { of: [created, 0], immutable: true }
                } else {
                    Version { of: [created, head.position.0], immutable: false }
                }
            }
            DocumentPath::ResourceListShard(set, id) | DocumentPath::SitemapShard(set, id) => {
                let (created, _) = head(*set)?;
                let shard = self.log.shard(self.set(*set)?.id, *id)?.ok_or(PublishError::NotFound)?;
                Version { of: [created, shard.version.0], immutable: false }
            }
        };
        Ok(version)
    }
}

/// What the bytes of a document depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    of: [u64; 2],
    immutable: bool,
}

/// A freshly rendered document.
pub(crate) struct Rendered {
    bytes: Vec<u8>,
    /// For Last-Modified.
    modified: Option<abreast_webtypes::Timestamp>,
    content_type: &'static str,
}

const XML: &str = "application/xml";

/// `rs:ln rel="up"`, and others with only a target.
fn link(rel: &str, href: &str) -> Ln {
    Ln { rel: rel.to_owned(), href: href.to_owned(), ..Ln::default() }
}

/// An instant as documents state it.
fn exactly(instant: abreast_webtypes::Timestamp) -> abreast_webtypes::W3cDatetime {
    abreast_webtypes::W3cDatetime { instant, precision: abreast_webtypes::Precision::Fraction }
}
