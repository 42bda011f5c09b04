//! Which documents does a Source publish, and what is in each? Every one is a projection of the log.

mod about;
mod archives;
mod cache;
mod capability_list;
mod change_list;
mod dump;
mod lanes;
mod notification;
mod resource_list;
mod sitemap;
mod source_description;
mod urls;

pub use about::{About, CONTENT_SECURITY_POLICY, HTML};
pub use archives::ArchiveKind;
pub(crate) use archives::{archived_index, archived_list};
pub use cache::{Body, CacheFile, Document, Freshness};
pub(crate) use capability_list::URI_SPACE;
pub(crate) use notification::framework;
pub use notification::{Channel, Notifications, TopicDocument};
pub(crate) use urls::write_uri;
pub use urls::{DocumentPath, SetUrls, SourceUrls};

use crate::archive::Archive;
use crate::dump::Dumps;
use crate::links::PublishedLinks;
use crate::versions::VersionUrls;
use abreast_contents::Contents;
use abreast_core::{ChangeLog, LogError, Position, SetId};
use abreast_resourcesync::v1_1::Ln;
use cache::DocumentCache;
use capability_list::HasDumps;
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
}

impl PublishedSet {
    /// A set with nothing but what every set has.
    pub fn new(id: SetId, slug: impl Into<String>, urls: SetUrls) -> Self {
        Self { id, slug: slug.into(), urls, links: PublishedLinks::default(), versions: None }
    }
}

/// Renders the documents of a Source, and keeps what it rendered until it is out of date.
pub struct Publisher {
    log: Arc<dyn ChangeLog>,
    urls: SourceUrls,
    sets: Vec<PublishedSet>,
    abouts: Vec<About>,
    sets_per_description: usize,
    archives: Vec<Option<Arc<Archive>>>,
    notifications: Vec<Option<Notifications>>,
    entries_per_archive: u64,
    cache: DocumentCache,
    dumps: Option<Arc<Dumps>>,
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
        let abouts = vec![About::default(); sets.len()];
        let cache = DocumentCache::new(cache_folder)?;
        Ok(Self {
            log,
            urls,
            sets,
            abouts,
            sets_per_description: source_description::MAX_SETS,
            archives: Vec::new(),
            notifications: Vec::new(),
            entries_per_archive: archives::MAX_ENTRIES,
            cache,
            dumps: None,
            contents: None,
        })
    }

    /// With the archives of its sets, in their order.
    #[must_use]
    pub fn with_archives(mut self, archives: Vec<Option<Arc<Archive>>>) -> Self {
        self.archives = archives;
        self
    }

    /// With what its sets tell those who subscribed, in their order.
    #[must_use]
    pub fn with_notifications(mut self, notifications: Vec<Option<Notifications>>) -> Self {
        self.notifications = notifications;
        self
    }

    /// What a set tells those who subscribed, if anything.
    pub fn notifications(&self, set: usize) -> Option<&Notifications> {
        self.notifications.get(set)?.as_ref()
    }

    /// With an index of archives from this many entries on, at most 50,000 in each.
    #[must_use]
    pub fn with_entries_per_archive(mut self, entries: u64) -> Self {
        self.entries_per_archive = entries.clamp(1, archives::MAX_ENTRIES);
        self
    }

    /// The archive of a set, if old lists are kept.
    pub fn archive(&self, set: usize) -> Option<&Arc<Archive>> {
        self.archives.get(set)?.as_ref()
    }

    /// The numbers of a set's archives of one kind, when one document is not enough.
    ///
    /// # Errors
    /// When there is no such set, or the log fails.
    pub fn archive_parts(&self, set: usize, kind: ArchiveKind) -> Result<Vec<u64>, PublishError> {
        self.archives_of(set, kind)?.parts()
    }

    /// The numbers of the first and the last document in an archive of a set.
    pub(crate) fn archive_span(&self, set: usize, kind: ArchiveKind) -> Result<Option<(u64, u64)>, PublishError> {
        self.archives_of(set, kind)?.span()
    }

    /// The Source Description that names a set.
    pub(crate) fn source_description_of(&self, set: usize) -> OfSet {
        let (most, all) = (self.sets_per_description, self.sets.len());
        let part = (set / most + 1) as u64;
        OfSet {
            path: if all <= most { DocumentPath::SourceDescription } else { DocumentPath::SourceDescriptionPart(part) },
            url: source_description::of_set(&self.urls, all, most, set),
            index: (all > most).then(|| self.urls.source_description()),
        }
    }

    /// How many documents so many packages of a dump are.
    pub(crate) fn dump_parts(packages: usize) -> u64 {
        packages.div_ceil(dump::MAX_PACKAGES).max(1) as u64
    }

    /// What is archived of a set.
    pub fn archive_kinds(&self, set: usize) -> Vec<ArchiveKind> {
        let has_dumps = self.has_dumps(set);
        let there = |kind: &ArchiveKind| match kind {
            ArchiveKind::ResourceLists | ArchiveKind::ChangeLists => true,
            ArchiveKind::ResourceDumps => has_dumps.resources,
            ArchiveKind::ChangeDumps => has_dumps.changes,
        };
        let kinds = ArchiveKind::ALL.into_iter().filter(|_| self.archive(set).is_some());
        kinds.filter(there).collect()
    }

    fn archives_of(&self, number: usize, kind: ArchiveKind) -> Result<archives::Archives<'_>, PublishError> {
        let set = self.set(number)?;
        self.archive(number).ok_or(PublishError::NotFound)?;
        Ok(archives::Archives { publisher: self, set, number, kind, most: self.entries_per_archive })
    }

    /// `rs:ln rel="archives"` of a list's entry point.
    fn archive_link(&self, number: usize, kind: ArchiveKind) -> Option<Ln> {
        self.archive(number)?;
        Some(link("archives", &self.sets.get(number)?.urls.archive(kind)))
    }

    /// With what people are told of each set, in their order.
    #[must_use]
    pub fn with_abouts(mut self, abouts: impl IntoIterator<Item = About>) -> Self {
        self.abouts.iter_mut().zip(abouts).for_each(|(known, given)| *known = given);
        self
    }

    /// With an index of Source Descriptions from this many sets on, at most 50,000 in each.
    #[must_use]
    pub fn with_sets_per_description(mut self, sets: usize) -> Self {
        self.sets_per_description = sets.clamp(1, source_description::MAX_SETS);
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

    /// The document at a path, if it can be answered from memory without reading the store or a disk.
    pub fn cached(&self, path: &DocumentPath) -> Option<Arc<Document>> {
        match self.log_state(path) {
            Some(at) => self.cache.fresh_at(path, at),
            None => self.cache.of_version(path, &self.version(path).ok()?, None),
        }
    }

    /// For a document whose version is read from the store: the state of the log that it follows from, which is known
    /// without reading.
    fn log_state(&self, path: &DocumentPath) -> Option<LogState> {
        let (DocumentPath::ResourceListShard(set, _) | DocumentPath::SitemapShard(set, _)) = path else { return None };
        let head = self.log.head(self.sets.get(*set)?.id).ok()?;
        (!head.importing).then_some(LogState { created: head.created, position: head.position })
    }

    /// The document at a path, rendered if need be. May block for as long as a shard of 40,000 resources takes.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn document(&self, path: &DocumentPath) -> Result<Arc<Document>, PublishError> {
        let at = self.log_state(path);
        let version = self.version(path)?;
        self.cache.get_or_render(path, &version, at, |output| self.render(path, output))
    }

    /// The bytes of a document, rendered now and kept nowhere.
    ///
    /// # Errors
    /// When there is none, or it cannot be made now.
    pub fn bytes(&self, path: &DocumentPath) -> Result<Vec<u8>, PublishError> {
        self.version(path)?;
        self.render(path, &mut Whole).map(|rendered| rendered.bytes)
    }

    fn render(&self, path: &DocumentPath, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        match path {
            DocumentPath::SourceDescription => {
                output.expect(self.description_length());
                Ok(source_description::entry_point(&self.urls, &self.sets, self.sets_per_description))
            }
            DocumentPath::SourceDescriptionPart(number) => {
                output.expect(self.description_length());
                source_description::part(&self.urls, &self.sets, self.sets_per_description, *number)
            }
            DocumentPath::SourcePage => about::source_page(self),
            DocumentPath::SetPage(set) => about::set_page(self, *set),
            DocumentPath::Robots => Ok(sitemap::robots(&self.urls)),
            DocumentPath::SitemapIndex => sitemap::index(&*self.log, &self.sets, output),
            DocumentPath::CapabilityList(set) => {
                let up = source_description::of_set(&self.urls, self.sets.len(), self.sets_per_description, *set);
                let (has_dumps, archives) = (self.has_dumps(*set), self.archive_kinds(*set));
                Ok(capability_list::render(&up, self.set(*set)?, has_dumps, &archives, self.notifications(*set)))
            }
            DocumentPath::ResourceList(set) => resource_list::entry_point(
                &*self.log,
                self.set(*set)?,
                self.archive_link(*set, ArchiveKind::ResourceLists),
                output,
            ),
            DocumentPath::ResourceListShard(set, id) => resource_list::shard(&*self.log, self.set(*set)?, *id, output),
            DocumentPath::ChangeList(set) => {
                let archive = self.archive_link(*set, ArchiveKind::ChangeLists);
                change_list::entry_point(&*self.log, self.set(*set)?, archive, output)
            }
            DocumentPath::ChangeListPage(set, number) => {
                change_list::page(&*self.log, self.set(*set)?, *number, output)
            }
            DocumentPath::ResourceDump(set) | DocumentPath::ResourceDumpPart(set, _) => {
                let dump = self.resource_dump(*set)?;
                let packages = dump::Packages::of_resources(self.set(*set)?, &dump, dump::MAX_PACKAGES);
                match path {
                    DocumentPath::ResourceDumpPart(_, number) => packages.part(*number),
                    _ => Ok(packages.entry_point()),
                }
            }
            DocumentPath::ChangeDump(set) | DocumentPath::ChangeDumpPart(set, _) => {
                let dumps = self.dumps.as_ref().map(|dumps| dumps.changes(*set)).unwrap_or_default();
                let packages = dump::Packages::of_changes(self.set(*set)?, &dumps, dump::MAX_PACKAGES)
                    .ok_or(PublishError::NotFound)?;
                match path {
                    DocumentPath::ChangeDumpPart(_, number) => packages.part(*number),
                    _ => Ok(packages.entry_point()),
                }
            }
            DocumentPath::Archive(set, kind) => {
                let archives = self.archives_of(*set, *kind)?;
                output.expect(archives.length()?);
                archives.entry_point()
            }
            DocumentPath::ArchivePart(set, kind, part) => {
                let archives = self.archives_of(*set, *kind)?;
                output.expect(archives.length()?);
                archives.part(*part)
            }
            DocumentPath::ArchivedDump(set, kind, begin) => self.archives_of(*set, *kind)?.dump(*begin),
            DocumentPath::ArchivedResourceList(set, number) => {
                output.expect(lanes::LARGE);
                let bytes = self.archive(*set).ok_or(PublishError::NotFound)?.list(*number)?;
                Ok(Rendered { bytes, modified: None, content_type: XML })
            }
            DocumentPath::ArchivedResourceListPart(set, shard, version, number) => {
                output.expect(lanes::LARGE);
                let bytes = self.archive(*set).ok_or(PublishError::NotFound)?.part(*shard, *version, *number)?;
                Ok(Rendered { bytes, modified: None, content_type: XML })
            }
            DocumentPath::SitemapShard(set, id) => sitemap::shard(&*self.log, self.set(*set)?, *id, output),
        }
    }

    /// About how long a Source Description is.
    fn description_length(&self) -> u64 {
        self.sets.len().min(self.sets_per_description) as u64 * 300
    }

    /// What dumps of a set are there?
    fn has_dumps(&self, set: usize) -> HasDumps {
        let Some(dumps) = &self.dumps else { return HasDumps::default() };
        HasDumps {
            resources: dumps.resources(set).is_some(),
            changes: dumps.changes_span(set).is_some(),
            since: dumps.offered(set),
        }
    }

    /// The newest Resource Dump; asking for it may make a newer one.
    fn resource_dump(&self, set: usize) -> Result<Arc<crate::dump::Dump>, PublishError> {
        let dumps = self.dumps.as_ref().filter(|dumps| dumps.offered(set)).ok_or(PublishError::NotFound)?;
        dumps.ask(set);
        let none = if dumps.impossible(set) { PublishError::NotFound } else { PublishError::Making };
        dumps.resources(set).ok_or(none)
    }

    /// What people are told of a set.
    fn about(&self, set: usize) -> &About {
        const UNKNOWN: &About = &About { title: String::new(), description: None, licence: None, contact: None };
        self.abouts.get(set).unwrap_or(UNKNOWN)
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
            DocumentPath::SourceDescription | DocumentPath::SourceDescriptionPart(_) | DocumentPath::Robots => {
                Version { of: [0, 0], immutable: false }
            }
            DocumentPath::CapabilityList(set) => {
                // Whether changes can be asked for is decided when the process starts.
                let has_dumps = self.has_dumps(*set);
                Version { of: [has_dumps.resources, has_dumps.changes].map(u64::from), immutable: false }
            }
            DocumentPath::ResourceDump(set) | DocumentPath::ResourceDumpPart(set, _) => {
                let dump = self.resource_dump(*set)?;
                Version { of: [dump.begin.as_micros() as u64, dump.end.as_micros() as u64], immutable: false }
            }
            DocumentPath::ChangeDump(set) | DocumentPath::ChangeDumpPart(set, _) => {
                let span = self.dumps.as_ref().and_then(|dumps| dumps.changes_span(*set));
                let (begin, end) = span.ok_or(PublishError::NotFound)?;
                Version { of: [begin.as_micros() as u64, end.as_micros() as u64], immutable: false }
            }
            DocumentPath::Archive(set, ArchiveKind::ResourceLists)
            | DocumentPath::ArchivePart(set, ArchiveKind::ResourceLists, _) => {
                let (first, last) = self.archive(*set).ok_or(PublishError::NotFound)?.span().unwrap_or_default();
                Version { of: [first, last], immutable: false }
            }
            DocumentPath::Archive(set, ArchiveKind::ChangeLists)
            | DocumentPath::ArchivePart(set, ArchiveKind::ChangeLists, _) => {
                let (created, head) = head(*set)?;
                Version { of: [created, head.open_page], immutable: false }
            }
            DocumentPath::Archive(set, kind) | DocumentPath::ArchivePart(set, kind, _) => {
                let dumps = self.archives_of(*set, *kind)?.dumps();
                let span = dumps.first().zip(dumps.last());
                let span = span.map(|(first, last)| [first.begin, last.end].map(|at| at.as_micros() as u64));
                Version { of: span.ok_or(PublishError::NotFound)?, immutable: false }
            }
            // A dump is made once, and one that was made anew for the same time has other packages.
            DocumentPath::ArchivedDump(..) => Version { of: [0, 0], immutable: false },
            DocumentPath::ArchivedResourceList(..) | DocumentPath::ArchivedResourceListPart(..) => {
                Version { of: [0, 0], immutable: true }
            }
            DocumentPath::SourcePage => {
                let mut sum = [0, 0];
                for set in &self.sets {
                    let head = self.log.head(set.id)?;
                    sum[0] += u64::from(head.importing);
                    sum[1] += head.position.0;
                }
                Version { of: sum, immutable: false }
            }
            DocumentPath::SetPage(set) => {
                let head = self.log.head(self.set(*set)?.id)?;
                let has_dumps = self.has_dumps(*set);
                let [resources, changes] = [has_dumps.resources, has_dumps.changes].map(u64::from);
                let what = u64::from(head.importing) | resources << 1 | changes << 2;
                Version { of: [what, head.position.0], immutable: false }
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

/// The document of several that speaks of a set.
pub(crate) struct OfSet {
    pub(crate) path: DocumentPath,
    pub(crate) url: String,
    /// Its index, if it is under one.
    pub(crate) index: Option<String>,
}

/// What the bytes of a document depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    of: [u64; 2],
    immutable: bool,
}

/// Where the log of a set stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogState {
    created: abreast_webtypes::Timestamp,
    position: Position,
}

/// Where the bytes of a document go while it is rendered.
pub(crate) trait Output {
    /// So many bytes will come, about. A large document waits here for its turn: it is to be called before the store is
    /// read for the entries, and while no lock is held.
    fn expect(&mut self, bytes: u64);

    /// Takes bytes of a long document away, so that it is never in memory as a whole.
    fn drain(&mut self, bytes: &mut Vec<u8>);
}

/// Leaves a document in memory as a whole, and lets it wait for nothing.
pub(crate) struct Whole;

impl Output for Whole {
    fn expect(&mut self, _: u64) {}

    fn drain(&mut self, _: &mut Vec<u8>) {}
}

/// Bytes of a long document in memory while it is rendered and drained.
const MAX_IN_MEMORY: usize = cache::MEMORY_DOCUMENT + 64 * 1024;

/// A freshly rendered document.
pub(crate) struct Rendered {
    /// All of it, or what is left of it after the last draining.
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
