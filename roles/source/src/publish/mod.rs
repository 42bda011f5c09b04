//! The publisher: it asks the projections for documents and topics, and keeps what they render until it is out of date.

mod cache;
mod lanes;
mod topics;

pub use crate::projection::pages::{About, CONTENT_SECURITY_POLICY, HTML, PagePath};
pub use crate::projection::resourcesync::{ArchiveKind, Channel, DocumentPath, Notifications, SetUrls, SourceUrls};
pub(crate) use crate::projection::resourcesync::{URI_SPACE, archived_index, archived_list};
pub use cache::{Body, CacheFile, Document, Freshness};
pub(crate) use lanes::LARGE;
pub use topics::TopicDocument;

use crate::archive::Archive;
use crate::links::PublishedLinks;
use crate::projection::pages::Pages;
use crate::projection::resourcesync::dumps::Dumps;
use crate::projection::resourcesync::{self, ResourceSync};
use crate::projection::{DocumentName, FileError, Projection, PublishedFile, ResolvedDocument, Whole};
use crate::versions::VersionUrls;
use abreast_contents::Contents;
use abreast_core::{ChangeLog, LogError, SetId};
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
    /// Links of the set as a whole.
    pub links: PublishedLinks,
    /// Where earlier versions of its resources are, if they are kept.
    pub versions: Option<VersionUrls>,
    /// Its description for people.
    pub about: About,
    /// Its archive, if old lists are kept.
    pub archive: Option<Arc<Archive>>,
    /// Where its notifications are subscribed to, if there are any.
    pub notifications: Option<Notifications>,
}

impl PublishedSet {
    /// A set with nothing but what every set has.
    pub fn new(id: SetId, slug: impl Into<String>, urls: SetUrls) -> Self {
        Self {
            id,
            slug: slug.into(),
            urls,
            links: PublishedLinks::default(),
            versions: None,
            about: About::default(),
            archive: None,
            notifications: None,
        }
    }
}

/// Renders the documents of a Source, and keeps what it rendered until it is out of date.
pub struct Publisher {
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) urls: SourceUrls,
    pub(crate) sets: Vec<PublishedSet>,
    projections: Vec<Box<dyn Projection>>,
    pub(crate) sets_per_description: usize,
    pub(crate) entries_per_archive: u64,
    cache: DocumentCache,
    pub(crate) dumps: Option<Arc<Dumps>>,
    contents: Option<Contents>,
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
    /// The Resource Dump is being made for the first time.
    #[error("the Resource Dump is being made; ask again when it is complete")]
    Making,
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
        let cache = DocumentCache::new(cache_folder)?;
        Ok(Self {
            log,
            urls,
            sets,
            // The descriptions of ResourceSync name the pages: in a static site the pages are written first.
            projections: vec![Box::new(Pages), Box::<ResourceSync>::default()],
            sets_per_description: resourcesync::MAX_SETS,
            entries_per_archive: resourcesync::MAX_ENTRIES,
            cache,
            dumps: None,
            contents: None,
        })
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

    /// With the archives of its sets, in their order.
    #[must_use]
    pub fn with_archives(mut self, archives: Vec<Option<Arc<Archive>>>) -> Self {
        self.sets.iter_mut().zip(archives).for_each(|(set, archive)| set.archive = archive);
        self
    }

    /// With what its sets tell those who subscribed, in their order.
    #[must_use]
    pub fn with_notifications(mut self, notifications: Vec<Option<Notifications>>) -> Self {
        self.sets.iter_mut().zip(notifications).for_each(|(set, given)| set.notifications = given);
        self
    }

    /// What a set tells those who subscribed, if anything.
    pub fn notifications(&self, set: usize) -> Option<&Notifications> {
        self.sets.get(set)?.notifications.as_ref()
    }

    /// With an index of archives from this many entries on, at most 50,000 in each.
    #[must_use]
    pub fn with_entries_per_archive(mut self, entries: u64) -> Self {
        self.entries_per_archive = entries.clamp(1, resourcesync::MAX_ENTRIES);
        self
    }

    /// The archive of a set, if old lists are kept.
    pub fn archive(&self, set: usize) -> Option<&Arc<Archive>> {
        self.sets.get(set)?.archive.as_ref()
    }

    /// With what people are told of each set, in their order.
    #[must_use]
    pub fn with_abouts(mut self, abouts: impl IntoIterator<Item = About>) -> Self {
        self.sets.iter_mut().zip(abouts).for_each(|(set, about)| set.about = about);
        self
    }

    /// With an index of Source Descriptions from this many sets on, at most 50,000 in each.
    #[must_use]
    pub fn with_sets_per_description(mut self, sets: usize) -> Self {
        self.sets_per_description = sets.clamp(1, resourcesync::MAX_SETS);
        self
    }

    /// With the dumps of its sets, in their order.
    #[must_use]
    pub fn with_dumps(mut self, dumps: Arc<Dumps>) -> Self {
        self.dumps = Some(dumps);
        self
    }

    /// With the bytes of earlier versions.
    #[must_use]
    pub fn with_contents(mut self, contents: Contents) -> Self {
        self.contents = Some(contents);
        self
    }

    /// The bytes of earlier versions, if any set keeps them.
    pub fn contents(&self) -> Option<&Contents> {
        self.contents.as_ref()
    }

    /// The dumps of its sets, if any set has them.
    pub fn dumps(&self) -> Option<&Arc<Dumps>> {
        self.dumps.as_ref()
    }

    /// How many Source Descriptions the index names; 0 when one document is enough.
    pub fn source_description_parts(&self) -> u64 {
        if self.sets.len() <= self.sets_per_description {
            return 0;
        }
        self.sets.len().div_ceil(self.sets_per_description) as u64
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

    /// The document at a path, if it can be answered from memory without reading the store or a disk.
    pub fn cached(&self, name: &(impl DocumentName + ?Sized)) -> Option<Arc<Document>> {
        let path = name.path(self)?;
        let resolved = self.resolve(&path)?;
        match resolved.log_state() {
            Some(at) => self.cache.fresh_at(&path, at),
            None => self.cache.of_version(&path, &resolved.version().ok()?, None),
        }
    }

    /// The document at a path, rendered if need be. May block for as long as a shard of 40,000 resources takes.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn document(&self, name: &(impl DocumentName + ?Sized)) -> Result<Arc<Document>, PublishError> {
        let path = name.path(self).ok_or(PublishError::NotFound)?;
        let resolved = self.resolve(&path).ok_or(PublishError::NotFound)?;
        self.cache.get_or_render(&path, &*resolved)
    }

    /// The bytes of a document, rendered now and kept nowhere.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn bytes(&self, name: &(impl DocumentName + ?Sized)) -> Result<Vec<u8>, PublishError> {
        let path = name.path(self).ok_or(PublishError::NotFound)?;
        let resolved = self.resolve(&path).ok_or(PublishError::NotFound)?;
        resolved.version()?;
        resolved.render(&mut Whole).map(|rendered| rendered.bytes)
    }

    /// A document's bytes in gzip, compressed once and kept. May block.
    ///
    /// # Errors
    /// When the cache fails.
    pub fn gzip(&self, document: &Document) -> Result<Body, PublishError> {
        self.cache.gzip(document).map_err(PublishError::Cache)
    }

    pub(crate) fn set(&self, number: usize) -> Result<&PublishedSet, PublishError> {
        self.sets.get(number).ok_or(PublishError::NotFound)
    }
}

/// Bytes of a long document in memory while it is rendered and drained.
pub(crate) const MAX_IN_MEMORY: usize = cache::MEMORY_DOCUMENT + 64 * 1024;
