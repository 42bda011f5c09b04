//! Publisher, which resolves paths of documents and topics through projections.

use super::body::{Body, Document};
use super::cache::{DocumentCache, Place};
use super::document::{LogState, ResolvedDocument, Whole};
use super::error::PublishError;
use super::files::{FileError, PublishedFile};
use super::head_reader::HeadReader;
use super::institution::Institution;
use super::news::{EndedTopic, News, NewsRequest};
use super::reader::Reader;
use super::set::{PublishedSet, next_edition};
use super::site::SiteDocument;
use super::topic::Topic;
use crate::publish::{SourceUrls, cache};
use abreast_core::{ChangeLog, Meter, Position};
use abreast_webtypes::Link;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Renders the documents of a Source, and caches them until they are out of date.
pub struct Publisher {
    log: Arc<dyn ChangeLog>,
    pub(super) urls: SourceUrls,
    sets: Vec<Arc<PublishedSet>>,
    /// Index of each set in `sets`, by the name of the set in URLs.
    places: HashMap<String, usize>,
    projections: Vec<Box<dyn Projection>>,
    cache: Arc<DocumentCache>,
    /// Edition of the documents that do not belong to one set.
    edition: u64,
    /// Shows how far the export of a site is.
    meter: Meter,
    /// The institution that the pages show.
    institution: Arc<Institution>,
}

impl Publisher {
    /// Creates a publisher of these sets. The projections are tried in this order. Rendered
    /// documents are cached in `cache_folder`; documents of an earlier process are removed from it
    /// first.
    ///
    /// # Errors
    /// The folder cannot be created, read or cleared.
    pub fn of(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        projections: Vec<Box<dyn Projection>>,
        cache_folder: PathBuf,
    ) -> io::Result<Self> {
        let cache = Arc::new(DocumentCache::new(cache_folder)?);
        Ok(Self::with_cache(log, urls, sets, projections, cache))
    }

    fn with_cache(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        projections: Vec<Box<dyn Projection>>,
        cache: Arc<DocumentCache>,
    ) -> Self {
        let sets: Vec<Arc<PublishedSet>> = sets.into_iter().map(Into::into).collect();
        let places =
            sets.iter().enumerate().map(|(place, set)| (set.slug.clone(), place)).collect();
        let (edition, meter) = (next_edition(), Meter::default());
        let institution = Arc::default();
        Self { log, urls, sets, places, projections, cache, edition, meter, institution }
    }

    /// A publisher of other sets, with the same log, URLs and cache. Cached documents remain for sets
    /// that both publishers have.
    pub(crate) fn successor(
        &self,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        projections: Vec<Box<dyn Projection>>,
    ) -> Self {
        let (log, urls, cache) =
            (Arc::clone(&self.log), self.urls.clone(), Arc::clone(&self.cache));
        let successor = Self::with_cache(log, urls, sets, projections, cache);
        Self { institution: Arc::clone(&self.institution), ..successor }
    }

    /// The same publisher with an institution, which its pages show.
    #[must_use]
    pub fn with_institution(self, institution: Institution) -> Self {
        Self { institution: Arc::new(institution), ..self }
    }

    /// The institution that the pages show.
    pub fn institution(&self) -> &Institution {
        &self.institution
    }

    /// Edition of the document at a path.
    fn edition_at(&self, path: &str) -> u64 {
        let set = path.split('/').next().and_then(|slug| self.find_set(slug));
        set.map_or(self.edition, |set| set.edition)
    }

    /// Replaces the default projections; projections are tried in this order.
    #[must_use]
    pub fn with_projections(self, projections: Vec<Box<dyn Projection>>) -> Self {
        Self { projections, ..self }
    }

    /// Adds a projection, which is tried after the others.
    #[must_use]
    pub fn with_projection(self, projection: impl Projection) -> Self {
        self.with_boxed(Box::new(projection))
    }

    pub(crate) fn with_boxed(mut self, projection: Box<dyn Projection>) -> Self {
        self.projections.push(projection);
        self
    }

    /// Projections, in the order in which they are tried.
    pub(crate) fn projections(&self) -> impl Iterator<Item = &dyn Projection> {
        self.projections.iter().map(|projection| &**projection)
    }

    /// Published sets, in their configured order.
    pub fn sets(&self) -> &[Arc<PublishedSet>] {
        &self.sets
    }

    /// The set with this name in URLs.
    pub fn find_set(&self, slug: &str) -> Option<&Arc<PublishedSet>> {
        self.sets.get(self.place_of(slug)?)
    }

    /// Index of a set in the configured order.
    pub(crate) fn place_of(&self, slug: &str) -> Option<usize> {
        self.places.get(slug).copied()
    }

    /// URLs that do not belong to a set.
    pub fn urls(&self) -> &SourceUrls {
        &self.urls
    }

    /// The same publisher with a meter, which shows how far the export of a site is.
    #[must_use]
    pub fn with_meter(self, meter: Meter) -> Self {
        Self { meter, ..self }
    }

    /// The meter of long work.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Log from which the documents are rendered.
    pub fn log(&self) -> &Arc<dyn ChangeLog> {
        &self.log
    }

    /// The document at a path, if a projection knows the path.
    fn resolve(&self, path: &str) -> Option<Box<dyn ResolvedDocument + '_>> {
        self.projections().find_map(|projection| projection.resolve(self, path))
    }

    /// Whether a path has the form of a document's path. The document need not exist.
    pub fn is_document(&self, path: &str) -> bool {
        self.resolve(path).is_some()
    }

    /// Whether a path has the form of the path of a projection's file. The file need not exist.
    pub fn is_file(&self, path: &str) -> bool {
        self.projections().any(|projection| projection.is_file(self, path))
    }

    /// Opens the file at a path, for a request with this query. May block while the file is made.
    ///
    /// # Errors
    /// The file does not exist, or is temporarily unavailable.
    pub fn file(&self, path: &str, query: Option<&str>) -> Result<PublishedFile, FileError> {
        match self.projections().find(|projection| projection.is_file(self, path)) {
            Some(projection) => projection.file(self, path, query),
            None => Err(FileError::NotFound("there is no such file".to_owned())),
        }
    }

    /// Document at a path, if a valid copy is cached. Reads neither the store nor a disk.
    pub fn cached(&self, path: &str) -> Option<Arc<Document>> {
        let (resolved, heads) = (self.resolve(path)?, HeadReader::known(&*self.log));
        let place = Place { path, edition: self.edition_at(path) };
        match resolved.follows() {
            Some(set) => self.cache.fresh_at(place, LogState::of(heads, set)?),
            None => self.cache.of_version(place, &resolved.version(heads).ok()?, None),
        }
    }

    /// Document at a path; rendered if no valid copy is cached. May block for the time of rendering
    /// a shard of 40,000 resources.
    ///
    /// # Errors
    /// The document does not exist, or cannot be rendered now.
    pub fn document(&self, path: &str) -> Result<Arc<Document>, PublishError> {
        let resolved = self.resolve(path).ok_or(PublishError::NotFound)?;
        let place = Place { path, edition: self.edition_at(path) };
        self.cache.get_or_render(place, &*resolved, HeadReader::stored(&*self.log))
    }

    fn resolve_query(
        &self,
        path: &str,
        query: &str,
        reader: &Reader,
    ) -> Option<Result<Box<dyn ResolvedDocument + '_>, PublishError>> {
        self.projections()
            .find_map(|projection| projection.resolve_query(self, path, query, reader))
    }

    /// Whether the document at a path depends on the languages of the reader.
    pub fn is_in_languages(&self, path: &str) -> bool {
        self.projections().any(|projection| projection.is_in_languages(self, path))
    }

    /// Whether the query changes the document at a path. Such a document is rendered for each
    /// request ([`Publisher::queried`]).
    pub fn takes_query(&self, path: &str, query: &str) -> bool {
        self.resolve_query(path, query, &Reader::default()).is_some()
    }

    /// Document at a path for a request with a query; rendered for this request and not cached. May
    /// block.
    ///
    /// # Errors
    /// The query is not supported, or the document cannot be rendered now.
    pub fn queried(&self, path: &str, query: &str) -> Result<Arc<Document>, PublishError> {
        self.queried_by(path, query, &Reader::default())
    }

    /// [`Publisher::queried`], for a reader. The query may be empty.
    ///
    /// # Errors
    /// The query is not supported, or the document cannot be rendered now.
    pub fn queried_by(
        &self,
        path: &str,
        query: &str,
        reader: &Reader,
    ) -> Result<Arc<Document>, PublishError> {
        let resolved = self.resolve_query(path, query, reader).ok_or(PublishError::NotFound)??;
        self.cache.render(path, &*resolved, HeadReader::stored(&*self.log)).map(Arc::new)
    }

    /// Bytes of a document, rendered for this call and not cached.
    ///
    /// # Errors
    /// The document does not exist, or cannot be rendered now.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, PublishError> {
        let resolved = self.resolve(path).ok_or(PublishError::NotFound)?;
        resolved.version(HeadReader::stored(&*self.log))?;
        resolved.render(&mut Whole).map(|rendered| rendered.bytes)
    }

    /// Waits for the turn of a rendering of this length, in bytes.
    pub(crate) fn turn(&self, bytes: u64) -> impl Drop + '_ {
        self.cache.turn(bytes)
    }

    /// Body for one response. Large bodies are in a file of the cache folder, so that a slow client
    /// does not occupy memory. May block.
    ///
    /// # Errors
    /// The cache folder cannot be written.
    pub fn body(&self, bytes: Vec<u8>) -> io::Result<Body> {
        self.cache.body(bytes)
    }

    /// Bytes of a document in gzip, compressed once and then cached. May block.
    ///
    /// # Errors
    /// The cache folder cannot be written or read.
    pub fn gzip(&self, document: &Document) -> Result<Body, PublishError> {
        self.cache.gzip(document).map_err(PublishError::Cache)
    }
}

/// Bytes of a long document in memory while it is rendered and drained.
pub(crate) const MAX_IN_MEMORY: usize = cache::MEMORY_DOCUMENT + 64 * 1024;

/// Documents, files and topics of one protocol.
pub trait Projection: Send + Sync + 'static {
    /// Document at a path below the public base. The path does not start with `/`. `None` if the
    /// path does not belong to this projection. A document has one path. Does not read the store.
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>>;

    /// Document at a path for a request with a query; rendered for each request and not cached.
    /// `None` if the query does not change the document. Does not read the store.
    fn resolve_query<'p>(
        &'p self,
        _publisher: &'p Publisher,
        _path: &str,
        _query: &str,
        _reader: &Reader,
    ) -> Option<Result<Box<dyn ResolvedDocument + 'p>, PublishError>> {
        None
    }

    /// Whether the document at a path depends on the languages of the reader: then
    /// [`Projection::resolve_query`] accepts an empty query. Does not read the store.
    fn is_in_languages(&self, _publisher: &Publisher, _path: &str) -> bool {
        false
    }

    /// Whether a path below the public base has the form of a file's path; the file need not exist.
    /// Does not read the store.
    fn is_file(&self, _publisher: &Publisher, _path: &str) -> bool {
        false
    }

    /// Opens the file at a path. May block while the file is made.
    ///
    /// # Errors
    /// The file does not exist, or is temporarily unavailable.
    fn file(
        &self,
        _publisher: &Publisher,
        _path: &str,
        _query: Option<&str>,
    ) -> Result<PublishedFile, FileError> {
        Err(FileError::NotFound("there is no such file".to_owned()))
    }

    /// Whether a static site can publish the protocol, without a server that answers requests.
    fn is_static(&self) -> bool {
        true
    }

    /// All documents of a static site. Within a stage, a document only has links to documents
    /// before it, except that lists may have links to each other.
    ///
    /// # Errors
    /// The log fails.
    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError>;

    /// Links from the site as a whole to the entry points of this protocol [rfc6415 §2].
    fn site_links(&self, _publisher: &Publisher) -> Vec<Link> {
        Vec::new()
    }

    /// Links in the head of a set's page, in addition to the link to the Capability List. Links
    /// with a title are also shown to people.
    fn page_links(&self, _set: &Arc<PublishedSet>) -> Vec<Link> {
        Vec::new()
    }

    /// Sitemaps to list in robots.txt, in addition to the plain Sitemap.
    fn robots_sitemaps(&self, _publisher: &Publisher) -> Vec<String> {
        Vec::new()
    }

    /// Folders of a set in a static site with numbered documents. After the history of a set was
    /// lost, they have documents of the lost history.
    fn numbered_folders(&self) -> &'static [&'static str] {
        &[]
    }

    /// All topics of this protocol, for all sets.
    fn topics(&self, _publisher: &Publisher) -> Vec<Topic> {
        Vec::new()
    }

    /// The topic at a path below the public base.
    fn topic(&self, _publisher: &Publisher, _path: &str) -> Option<Topic> {
        None
    }

    /// Topic at a path below the public base, if clients subscribe to it by HTTP callback.
    fn callback_topic(&self, _publisher: &Publisher, _path: &str) -> Option<Topic> {
        None
    }

    /// URLs of a set's topics, with notifications enabled or not.
    fn topic_urls(&self, _set: &Arc<PublishedSet>) -> Vec<String> {
        Vec::new()
    }

    /// Notification of a range of the log, in a topic of
    /// [`TopicContent::Changes`](crate::publish::topic::TopicContent::Changes). The same range
    /// always has the same bytes.
    ///
    /// # Errors
    /// The topic does not exist, or the log fails.
    fn notification(
        &self,
        _publisher: &Publisher,
        _topic: &Topic,
        _after: Position,
        _last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        Err(PublishError::NotFound)
    }

    /// Notification for a subscriber that missed some, in a topic of
    /// [`TopicContent::Changes`](crate::publish::topic::TopicContent::Changes), with a link to all
    /// changes. `None` if notifications themselves show a gap before them.
    ///
    /// # Errors
    /// The log fails.
    fn gap(&self, _publisher: &Publisher, _topic: &Topic) -> Result<Option<Vec<u8>>, PublishError> {
        Ok(None)
    }

    /// Notification of new and different documents, in a topic of
    /// [`TopicContent::Documents`](crate::publish::topic::TopicContent::Documents); `None` if there
    /// are none.
    ///
    /// # Errors
    /// The log fails.
    fn news(
        &self,
        _publisher: &Publisher,
        _topic: &Topic,
        _request: &NewsRequest<'_>,
    ) -> Result<Option<News>, PublishError> {
        Ok(None)
    }

    /// End of a topic of documents whose set is no longer published, by the key of the topic's
    /// record. `None` if the set is published, or the record does not belong to this projection.
    fn ended_topic(
        &self,
        _publisher: &Publisher,
        _record: &str,
        _request: &NewsRequest<'_>,
    ) -> Option<EndedTopic> {
        None
    }

    /// Whether the path is the path of a topic in which the end of a set is published. The set need
    /// not exist.
    fn is_lasting_topic(&self, _path: &str) -> bool {
        false
    }
}
