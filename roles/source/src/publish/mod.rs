//! The publisher: it asks the projections for documents and topics, and keeps what they render
//! until it is out of date.

mod cache;
mod lanes;
pub(crate) mod representations;
mod set;
pub(crate) mod set_state;
mod topics;

pub use crate::projection::pages::{About, CONTENT_SECURITY_POLICY, HTML};
pub use crate::projection::resourcesync::{
    ArchiveKind, Channel, Notifications, SetUrls, SourceUrls,
};
pub(crate) use crate::projection::resourcesync::{
    URI_SPACE, archived_index, archived_list, read_archived,
};
pub use cache::{Body, CacheFile, Document, Freshness, tag_of_bytes};
pub(crate) use lanes::LARGE;
pub use set::PublishedSet;
pub use topics::TopicDocument;

use crate::projection::pages::Pages;
use crate::projection::resourcesync::ResourceSync;
use crate::projection::{
    FileError, HeadReader, LogState, Projection, PublishedFile, ResolvedDocument, Whole,
};
use abreast_core::{ChangeLog, LogError};
use cache::DocumentCache;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// Renders the documents of a Source, and keeps what it rendered until it is out of date.
pub struct Publisher {
    log: Arc<dyn ChangeLog>,
    urls: SourceUrls,
    sets: Vec<Arc<PublishedSet>>,
    /// The place of each set, by its name in URLs.
    places: HashMap<String, usize>,
    projections: Vec<Box<dyn Projection>>,
    cache: DocumentCache,
}

/// A document could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no such document.
    #[error("no such document")]
    NotFound,
    /// There was such a document; its reader should start again at the index.
    #[error("this list was split into smaller ones; read the index again")]
    Gone,
    /// The set is being read for the first time.
    #[error("the set is being read for the first time; its lists follow when that is complete")]
    Importing,
    /// The Resource Dump or a snapshot is being made.
    #[error("this is being made; retry when it is complete")]
    Making,
    /// The last attempt to make the Resource Dump failed.
    #[error("{reason}")]
    NotMade {
        /// Why.
        reason: String,
        /// Seconds until it may be asked for again.
        seconds: u32,
    },
    /// What it is made of is no longer kept.
    #[error("the description before this change is no longer kept; read the entity as it is now")]
    NotKept,
    /// The document is at another URL.
    #[error("this is at {0}")]
    Elsewhere(String),
    /// A kept description cannot be read.
    #[error("a kept description cannot be read")]
    Contents(#[source] io::Error),
    /// The query of the request cannot be answered; the text is for the client.
    #[error("{0}")]
    BadQuery(String),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The document cache failed.
    #[error("the document cache failed")]
    Cache(#[source] io::Error),
}

impl Publisher {
    /// A publisher of these sets, in ResourceSync and as pages; rendered documents are kept in
    /// `cache_folder`, from which those of an earlier process are removed first.
    ///
    /// # Errors
    /// When the folder cannot be made, read or cleared.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        cache_folder: PathBuf,
    ) -> io::Result<Self> {
        let cache = DocumentCache::new(cache_folder)?;
        let sets: Vec<Arc<PublishedSet>> = sets.into_iter().map(Into::into).collect();
        let places =
            sets.iter().enumerate().map(|(place, set)| (set.slug.clone(), place)).collect();
        // The descriptions of ResourceSync name the pages: in a static site the pages are written
        // first.
        let projections: Vec<Box<dyn Projection>> =
            vec![Box::new(Pages), Box::<ResourceSync>::default()];
        Ok(Self { log, urls, sets, places, projections, cache })
    }

    /// With these projections in place of the default ones, in the order in which they are asked.
    #[must_use]
    pub fn with_projections(self, projections: Vec<Box<dyn Projection>>) -> Self {
        Self { projections, ..self }
    }

    /// With one more projection, asked after those before it.
    #[must_use]
    pub fn with_projection(mut self, projection: impl Projection) -> Self {
        self.projections.push(Box::new(projection));
        self
    }

    /// The projections, in the order in which they are asked.
    pub(crate) fn projections(&self) -> impl Iterator<Item = &dyn Projection> {
        self.projections.iter().map(|projection| &**projection)
    }

    /// The sets it publishes, in their configured order.
    pub fn sets(&self) -> &[Arc<PublishedSet>] {
        &self.sets
    }

    /// The set with this name in URLs.
    pub fn find_set(&self, slug: &str) -> Option<&Arc<PublishedSet>> {
        self.sets.get(self.place_of(slug)?)
    }

    /// The place of a set in the configured order.
    pub(crate) fn place_of(&self, slug: &str) -> Option<usize> {
        self.places.get(slug).copied()
    }

    /// The URLs that belong to no set.
    pub fn urls(&self) -> &SourceUrls {
        &self.urls
    }

    /// The log it publishes from.
    pub fn log(&self) -> &Arc<dyn ChangeLog> {
        &self.log
    }

    /// The document at a path, if a projection knows the path.
    fn resolve(&self, path: &str) -> Option<Box<dyn ResolvedDocument + '_>> {
        self.projections().find_map(|projection| projection.resolve(self, path))
    }

    /// Whether a path may be that of a document. It may still not be there.
    pub fn is_document(&self, path: &str) -> bool {
        self.resolve(path).is_some()
    }

    /// Whether a path is that of a file of a projection. It may still not be there.
    pub fn is_file(&self, path: &str) -> bool {
        self.projections().any(|projection| projection.is_file(self, path))
    }

    /// The file at a path, for a request with this query. May block while it is made.
    ///
    /// # Errors
    /// When there is none, or not now.
    pub fn file(&self, path: &str, query: Option<&str>) -> Result<PublishedFile, FileError> {
        match self.projections().find(|projection| projection.is_file(self, path)) {
            Some(projection) => projection.file(self, path, query),
            None => Err(FileError::NotFound("there is no such file".to_owned())),
        }
    }

    /// The document at a path, if it can be answered from memory without reading the store or a
    /// disk.
    pub fn cached(&self, path: &str) -> Option<Arc<Document>> {
        let (resolved, heads) = (self.resolve(path)?, HeadReader::known(&*self.log));
        match resolved.follows() {
            Some(set) => self.cache.fresh_at(path, LogState::of(heads, set)?),
            None => self.cache.of_version(path, &resolved.version(heads).ok()?, None),
        }
    }

    /// The document at a path, rendered if need be. May block for as long as a shard of 40,000
    /// resources takes.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn document(&self, path: &str) -> Result<Arc<Document>, PublishError> {
        let resolved = self.resolve(path).ok_or(PublishError::NotFound)?;
        self.cache.get_or_render(path, &*resolved, HeadReader::stored(&*self.log))
    }

    fn resolve_query(
        &self,
        path: &str,
        query: &str,
    ) -> Option<Result<Box<dyn ResolvedDocument + '_>, PublishError>> {
        self.projections().find_map(|projection| projection.resolve_query(self, path, query))
    }

    /// Whether a query matters for the document at a path: then it is made for each request
    /// ([`Publisher::queried`]).
    pub fn takes_query(&self, path: &str, query: &str) -> bool {
        self.resolve_query(path, query).is_some()
    }

    /// The document at a path for a request with a query, rendered now and not kept. May block.
    ///
    /// # Errors
    /// When the query cannot be answered, or the document cannot be made now.
    pub fn queried(&self, path: &str, query: &str) -> Result<Arc<Document>, PublishError> {
        let resolved = self.resolve_query(path, query).ok_or(PublishError::NotFound)??;
        self.cache.render(path, &*resolved, HeadReader::stored(&*self.log)).map(Arc::new)
    }

    /// The bytes of a document, rendered now and kept nowhere.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, PublishError> {
        let resolved = self.resolve(path).ok_or(PublishError::NotFound)?;
        resolved.version(HeadReader::stored(&*self.log))?;
        resolved.render(&mut Whole).map(|rendered| rendered.bytes)
    }

    /// The turn for a rendering of this length; it waits for those before it.
    pub(crate) fn turn(&self, bytes: u64) -> impl Drop + '_ {
        self.cache.turn(bytes)
    }

    /// Bytes that are sent once: a file of the cache folder unless they are few, so that a client that receives slowly
    /// holds no memory. May block.
    ///
    /// # Errors
    /// The cache failed.
    pub fn body(&self, bytes: Vec<u8>) -> io::Result<Body> {
        self.cache.body(bytes)
    }

    /// A document's bytes in gzip, compressed once and kept. May block.
    ///
    /// # Errors
    /// When the cache fails.
    pub fn gzip(&self, document: &Document) -> Result<Body, PublishError> {
        self.cache.gzip(document).map_err(PublishError::Cache)
    }
}

/// Bytes of a long document in memory while it is rendered and drained.
pub(crate) const MAX_IN_MEMORY: usize = cache::MEMORY_DOCUMENT + 64 * 1024;
