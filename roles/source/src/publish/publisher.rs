//! The publisher, and the projections that it asks for documents and topics.

use super::body::{Body, Document};
use super::cache::DocumentCache;
use super::document::{LogState, ResolvedDocument, Whole};
use super::error::PublishError;
use super::files::{FileError, PublishedFile};
use super::head_reader::HeadReader;
use super::news::{EndedTopic, News, NewsRequest};
use super::set::PublishedSet;
use super::site::SiteDocument;
use super::topic::Topic;
use crate::publish::{SourceUrls, cache};
use abreast_core::{ChangeLog, Position};
use abreast_webtypes::Link;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Renders the documents of a Source, and keeps what it rendered until it is out of date.
pub struct Publisher {
    log: Arc<dyn ChangeLog>,
    pub(super) urls: SourceUrls,
    sets: Vec<Arc<PublishedSet>>,
    /// The place of each set, by its name in URLs.
    places: HashMap<String, usize>,
    projections: Vec<Box<dyn Projection>>,
    cache: DocumentCache,
}

impl Publisher {
    /// A publisher of these sets with these projections, in the order in which they are asked;
    /// rendered documents are kept in `cache_folder`, from which those of an earlier process are
    /// removed first.
    ///
    /// # Errors
    /// When the folder cannot be made, read or cleared.
    pub fn of(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        projections: Vec<Box<dyn Projection>>,
        cache_folder: PathBuf,
    ) -> io::Result<Self> {
        let cache = DocumentCache::new(cache_folder)?;
        let sets: Vec<Arc<PublishedSet>> = sets.into_iter().map(Into::into).collect();
        let places =
            sets.iter().enumerate().map(|(place, set)| (set.slug.clone(), place)).collect();
        Ok(Self { log, urls, sets, places, projections, cache })
    }

    /// With these projections in place of the default ones, in the order in which they are asked.
    #[must_use]
    pub fn with_projections(self, projections: Vec<Box<dyn Projection>>) -> Self {
        Self { projections, ..self }
    }

    /// With one more projection, asked after those before it.
    #[must_use]
    pub fn with_projection(self, projection: impl Projection) -> Self {
        self.with_boxed(Box::new(projection))
    }

    pub(crate) fn with_boxed(mut self, projection: Box<dyn Projection>) -> Self {
        self.projections.push(projection);
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

/// The documents and topics of one protocol.
pub trait Projection: Send + Sync + 'static {
    /// The document at a path below the public base, which does not begin with `/`; `None` when the
    /// path is not of this projection. A document has one path. Reads no store.
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>>;

    /// The document at a path for a request with a query, made for that request and not kept;
    /// `None` when nothing in the query matters for the path. Reads no store.
    fn resolve_query<'p>(
        &'p self,
        _publisher: &'p Publisher,
        _path: &str,
        _query: &str,
    ) -> Option<Result<Box<dyn ResolvedDocument + 'p>, PublishError>> {
        None
    }

    /// Whether a path below the public base is that of a file, whether it exists or not. Reads no
    /// store.
    fn is_file(&self, _publisher: &Publisher, _path: &str) -> bool {
        false
    }

    /// The file at a path, open. May block while it is made.
    ///
    /// # Errors
    /// When there is none, or not now.
    fn file(
        &self,
        _publisher: &Publisher,
        _path: &str,
        _query: Option<&str>,
    ) -> Result<PublishedFile, FileError> {
        Err(FileError::NotFound("there is no such file".to_owned()))
    }

    /// Whether a static site can publish the protocol, so that a server does not have to answer.
    fn is_static(&self) -> bool {
        true
    }

    /// All documents of a static site, of each stage in an order in which none names one that comes
    /// after it; lists may name each other.
    ///
    /// # Errors
    /// When the log fails.
    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError>;

    /// Links from the site as a whole to the entry points of this protocol [rfc6415 §2].
    fn site_links(&self, _publisher: &Publisher) -> Vec<Link> {
        Vec::new()
    }

    /// Links in the head of a set's page, besides the one to its Capability List. Those with a title
    /// are shown to people too.
    fn page_links(&self, _set: &Arc<PublishedSet>) -> Vec<Link> {
        Vec::new()
    }

    /// Sitemaps that robots.txt names besides the plain one.
    fn robots_sitemaps(&self, _publisher: &Publisher) -> Vec<String> {
        Vec::new()
    }

    /// Folders of a set in a static site whose documents are numbered: a history that was lost left
    /// others there.
    fn numbered_folders(&self) -> &'static [&'static str] {
        &[]
    }

    /// The topics there are.
    fn topics(&self, _publisher: &Publisher) -> Vec<Topic> {
        Vec::new()
    }

    /// The topic at a path below the public base.
    fn topic(&self, _publisher: &Publisher, _path: &str) -> Option<Topic> {
        None
    }

    /// The topic that is subscribed to by HTTP callback at a path below the public base.
    fn callback_topic(&self, _publisher: &Publisher, _path: &str) -> Option<Topic> {
        None
    }

    /// The URLs of a set's topics, whether notifications are published there now or not.
    fn topic_urls(&self, _set: &Arc<PublishedSet>) -> Vec<String> {
        Vec::new()
    }

    /// The notification of a range of the log, in a topic of [`TopicContent::Changes`](crate::publish::topic::TopicContent::Changes). The same
    /// range is the same bytes.
    ///
    /// # Errors
    /// When there is no such topic or the log fails.
    fn notification(
        &self,
        _publisher: &Publisher,
        _topic: &Topic,
        _after: Position,
        _last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        Err(PublishError::NotFound)
    }

    /// The notification for a subscriber that misses some, in a topic of
    /// [`TopicContent::Changes`](crate::publish::topic::TopicContent::Changes): it states where all changes are. `None` where notifications show
    /// by themselves that others are missing before them.
    ///
    /// # Errors
    /// When the log fails.
    fn gap(&self, _publisher: &Publisher, _topic: &Topic) -> Result<Option<Vec<u8>>, PublishError> {
        Ok(None)
    }

    /// The notification of the documents that are new or different, in a topic of
    /// [`TopicContent::Documents`](crate::publish::topic::TopicContent::Documents); `None` when none is.
    ///
    /// # Errors
    /// When the log fails.
    fn news(
        &self,
        _publisher: &Publisher,
        _topic: &Topic,
        _request: &NewsRequest<'_>,
    ) -> Result<Option<News>, PublishError> {
        Ok(None)
    }

    /// The end of a topic of documents whose set is no longer published, by the name of its record;
    /// `None` when the set is published, or the record is not of this projection.
    fn ended_topic(
        &self,
        _publisher: &Publisher,
        _record: &str,
        _request: &NewsRequest<'_>,
    ) -> Option<EndedTopic> {
        None
    }

    /// Whether this is the path of a topic in which the end of a set is published, whether there is
    /// such a set or not.
    fn is_lasting_topic(&self, _path: &str) -> bool {
        false
    }
}
