//! ResourceSync 1.1: its documents and packages, their addresses, versions and bytes, and its
//! topics [rs-core §6].

pub mod archive;
mod archives;
mod capability_list;
mod change_list;
mod dump_list;
pub mod dumps;
mod framework;
mod links;
mod list_reader;
mod notification;
mod paths;
mod resource_list;
mod site;
mod source_description;
mod urls;
mod version_links;

pub use archives::ArchiveKind;
pub(crate) use archives::{archived_index, archived_list, read_archived};
pub(crate) use capability_list::URI_SPACE;
pub(crate) use links::{LinkDocument, state_links};
pub use list_reader::{ListError, ListReader, ListedChange, ListedRecord};
pub use notification::{Channel, Notifications};
pub use urls::{SetUrls, SourceUrls};

use super::{
    EndedTopic, FileError, HeadReader, News, NewsRequest, Output, Projection, PublishedFile,
    Rendered, ResolvedDocument, SiteDocument, Topic, Version, Whole, site_link,
};
use crate::publish::{LARGE, MAX_IN_MEMORY, PublishError, PublishedSet, Publisher};
use abreast_core::{Head, Position};
use abreast_resourcesync::v1_1::Ln;
use archives::{Archives, MAX_ENTRIES};
use capability_list::HasDumps;
use dumps::FilePath;
use paths::{DocumentPath, SetDocument};
use source_description::MAX_SETS;
use std::sync::Arc;

/// The projection of ResourceSync 1.1, and the settings of its documents.
#[derive(Debug)]
pub struct ResourceSync {
    sets_per_description: usize,
    entries_per_archive: u64,
    digests: framework::Digests,
}

impl Default for ResourceSync {
    fn default() -> Self {
        Self {
            sets_per_description: MAX_SETS,
            entries_per_archive: MAX_ENTRIES,
            digests: framework::Digests::default(),
        }
    }
}

impl ResourceSync {
    /// With an index of archives from this many entries on, at most 50,000 in each.
    #[must_use]
    pub fn with_entries_per_archive(self, entries: u64) -> Self {
        Self { entries_per_archive: entries.clamp(1, MAX_ENTRIES), ..self }
    }

    /// With an index of Source Descriptions from this many sets on, at most 50,000 in each.
    #[must_use]
    pub fn with_sets_per_description(self, sets: usize) -> Self {
        Self { sets_per_description: sets.clamp(1, MAX_SETS), ..self }
    }

    /// The Source Description that names a set.
    fn description_of(&self, publisher: &Publisher, set: &PublishedSet) -> OfSet {
        let (most, all) = (self.sets_per_description, publisher.sets().len());
        let urls = publisher.urls();
        match publisher.place_of(&set.slug).filter(|_| all > most) {
            None => OfSet { url: urls.source_description(), index: None },
            Some(place) => {
                let part = (place / most + 1) as u64;
                OfSet {
                    url: urls.source_description_part(part),
                    index: Some(urls.source_description()),
                }
            }
        }
    }

    /// The number of Source Descriptions in the index; 0 when one document is enough.
    fn description_parts(&self, publisher: &Publisher) -> u64 {
        let (most, all) = (self.sets_per_description, publisher.sets().len());
        if all <= most { 0 } else { all.div_ceil(most) as u64 }
    }

    /// About how long a Source Description is.
    fn description_length(&self, publisher: &Publisher) -> u64 {
        publisher.sets().len().min(self.sets_per_description) as u64 * 300
    }

    /// The archive of one kind of a set.
    fn archives<'a>(
        &self,
        publisher: &'a Publisher,
        set: &'a PublishedSet,
        kind: ArchiveKind,
    ) -> Result<Archives<'a>, PublishError> {
        let lists = set.archive.as_deref().ok_or(PublishError::NotFound)?;
        Ok(Archives { log: &**publisher.log(), set, lists, kind, most: self.entries_per_archive })
    }
}

/// The Source Description that names a set.
struct OfSet {
    url: String,
    /// Its index, if it is under one.
    index: Option<String>,
}

impl Projection for ResourceSync {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let path = DocumentPath::parse(path, |slug| publisher.find_set(slug))?;
        Some(Box::new(Resolved { projection: self, publisher, path }))
    }

    fn is_file(&self, publisher: &Publisher, path: &str) -> bool {
        FilePath::parse(path, |slug| publisher.find_set(slug)).is_some()
    }

    fn file(
        &self,
        publisher: &Publisher,
        path: &str,
        query: Option<&str>,
    ) -> Result<PublishedFile, FileError> {
        let found = FilePath::parse(path, |slug| publisher.find_set(slug));
        found.ok_or_else(|| FileError::NotFound("there is no such file".to_owned()))?.open(query)
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        site::documents(self, publisher)
    }

    fn site_links(&self, publisher: &Publisher) -> Vec<abreast_webtypes::Link> {
        vec![site_link("resourcesync", publisher.urls().source_description(), XML)]
    }

    fn numbered_folders(&self) -> &'static [&'static str] {
        &["changelist", "resourcelist", "archived", "resourcelist-archive", "changelist-archive"]
    }

    fn topics(&self, publisher: &Publisher) -> Vec<Topic> {
        notification::topics(publisher)
    }

    fn notification(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        notification::of_changes(&**publisher.log(), &topic.set, after, last)
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let (slug, name) = path.split_once("/notify/")?;
        let channel = Channel::ALL.into_iter().find(|channel| channel.name() == name)?;
        notification::topic(publisher.find_set(slug)?, channel)
    }

    fn topic_urls(&self, set: &Arc<PublishedSet>) -> Vec<String> {
        Channel::ALL.map(|channel| set.urls.topic(channel)).into()
    }

    fn news(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        request: &NewsRequest<'_>,
    ) -> Result<Option<News>, PublishError> {
        framework::news(self, publisher, &topic.set, request)
    }

    fn ended_topic(
        &self,
        publisher: &Publisher,
        record: &str,
        request: &NewsRequest<'_>,
    ) -> Option<EndedTopic> {
        framework::ended_topic(publisher, record, request)
    }

    fn is_lasting_topic(&self, path: &str) -> bool {
        notification::is_topic(path, Channel::Framework)
    }
}

/// A document of a publisher.
struct Resolved<'p> {
    projection: &'p ResourceSync,
    publisher: &'p Publisher,
    path: DocumentPath<&'p Arc<PublishedSet>>,
}

impl ResolvedDocument for Resolved<'_> {
    fn follows(&self) -> Option<&PublishedSet> {
        match &self.path {
            DocumentPath::OfSet(set, SetDocument::ResourceListShard(_)) => Some(set),
            _ => None,
        }
    }

    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        match &self.path {
            DocumentPath::SourceDescription | DocumentPath::SourceDescriptionPart(_) => {
                Ok(Version::changing([0, 0]))
            }
            DocumentPath::OfSet(set, document) => self.version_of(set, *document, heads),
        }
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let (urls, sets) = (self.publisher.urls(), self.publisher.sets());
        let most = self.projection.sets_per_description;
        match &self.path {
            DocumentPath::SourceDescription => {
                output.expect(self.projection.description_length(self.publisher));
                Ok(source_description::entry_point(urls, sets, most))
            }
            DocumentPath::SourceDescriptionPart(number) => {
                output.expect(self.projection.description_length(self.publisher));
                source_description::part(urls, sets, most, *number)
            }
            DocumentPath::OfSet(set, document) => self.render_of(set, *document, output),
        }
    }
}

impl Resolved<'_> {
    fn archives<'a>(
        &'a self,
        set: &'a PublishedSet,
        kind: ArchiveKind,
    ) -> Result<Archives<'a>, PublishError> {
        self.projection.archives(self.publisher, set, kind)
    }

    fn version_of(
        &self,
        set: &PublishedSet,
        document: SetDocument,
        heads: HeadReader<'_>,
    ) -> Result<Version, PublishError> {
        let head = || -> Result<(u64, Head), PublishError> {
            let head = heads.of(set)?;
            if head.importing {
                return Err(PublishError::Importing);
            }
            Ok((head.created.as_micros() as u64, head))
        };
        let version = match document {
            SetDocument::CapabilityList => {
                // Whether changes can be asked for is decided when the process starts.
                let has_dumps = set.has_dumps();
                Version::changing([has_dumps.resources, has_dumps.changes].map(u64::from))
            }
            SetDocument::ResourceDump | SetDocument::ResourceDumpPart(_) => {
                let dump = set.resource_dump()?;
                Version::changing([dump.begin.as_micros() as u64, dump.end.as_micros() as u64])
            }
            SetDocument::ChangeDump | SetDocument::ChangeDumpPart(_) => {
                let span = set.dumps.as_ref().and_then(|dumps| dumps.changes_span());
                let (begin, end) = span.ok_or(PublishError::NotFound)?;
                Version::changing([begin.as_micros() as u64, end.as_micros() as u64])
            }
            SetDocument::Archive(kind) | SetDocument::ArchivePart(kind, _) => match kind {
                ArchiveKind::ResourceLists => {
                    let (first, last) = self.archives(set, kind)?.lists.span().unwrap_or_default();
                    Version::changing([first, last])
                }
                ArchiveKind::ChangeLists => {
                    let (created, head) = head()?;
                    Version::changing([created, head.open_page])
                }
                ArchiveKind::ResourceDumps | ArchiveKind::ChangeDumps => {
                    let dumps = self.archives(set, kind)?.dumps();
                    let span = dumps.first().zip(dumps.last());
                    let span = span.map(|(first, last)| {
                        [first.begin, last.end].map(|at| at.as_micros() as u64)
                    });
                    Version::changing(span.ok_or(PublishError::NotFound)?)
                }
            },
            // A dump is made once, and one that was made again for the same time has other
            // packages.
            SetDocument::ArchivedDump(kind, begin) => {
                let dumps = self.archives(set, kind)?.dumps();
                if !dumps.iter().any(|dump| dump.begin == begin) {
                    return Err(PublishError::NotFound);
                }
                Version::changing([0, 0])
            }
            SetDocument::ArchivedResourceList(number) => {
                let archive = set.archive.as_ref().filter(|archive| archive.has_list(number));
                archive.map(|_| Version::closed([0, 0])).ok_or(PublishError::NotFound)?
            }
            SetDocument::ArchivedResourceListPart(shard, version, number) => {
                let archive = set.archive.as_ref().ok_or(PublishError::NotFound)?;
                let part = archive.find_part(shard, version, number);
                part.map(|_| Version::closed([0, 0])).ok_or(PublishError::NotFound)?
            }
            SetDocument::ResourceList => {
                let (created, head) = head()?;
                Version::changing([created, head.position.0])
            }
            SetDocument::ChangeList => {
                let (created, head) = head()?;
                // With closed pages the entry point is an index, which changes only when a page is
                // closed.
                let of =
                    if head.open_page == 1 { head.position.0 } else { u64::MAX - head.open_page };
                Version::changing([created, of])
            }
            SetDocument::ChangeListPage(number) => {
                let (created, head) = head()?;
                if number < head.open_page {
                    Version::closed([created, 0])
                } else {
                    Version::changing([created, head.position.0])
                }
            }
            SetDocument::ResourceListShard(id) => {
                let (created, _) = head()?;
                let shard =
                    self.publisher.log().shard(set.id, id)?.ok_or(PublishError::NotFound)?;
                Version::changing([created, shard.version.0])
            }
        };
        Ok(version)
    }

    fn render_of(
        &self,
        set: &PublishedSet,
        document: SetDocument,
        output: &mut dyn Output,
    ) -> Result<Rendered, PublishError> {
        let log = &**self.publisher.log();
        match document {
            SetDocument::CapabilityList => {
                let up = self.projection.description_of(self.publisher, set).url;
                Ok(capability_list::render(&up, set))
            }
            SetDocument::ResourceList => resource_list::entry_point(
                log,
                set,
                set.archive_link(ArchiveKind::ResourceLists),
                output,
            ),
            SetDocument::ResourceListShard(id) => resource_list::shard(log, set, id, output),
            SetDocument::ChangeList => change_list::entry_point(
                log,
                set,
                set.archive_link(ArchiveKind::ChangeLists),
                output,
            ),
            SetDocument::ChangeListPage(number) => change_list::page(log, set, number, output),
            SetDocument::ResourceDump | SetDocument::ResourceDumpPart(_) => {
                let dump = set.resource_dump()?;
                let packages =
                    dump_list::Packages::of_resources(set, &dump, dump_list::MAX_PACKAGES);
                match document {
                    SetDocument::ResourceDumpPart(number) => packages.part(number),
                    _ => Ok(packages.entry_point()),
                }
            }
            SetDocument::ChangeDump | SetDocument::ChangeDumpPart(_) => {
                let dumps = set.dumps.as_ref().map(|dumps| dumps.changes()).unwrap_or_default();
                let packages =
                    dump_list::Packages::of_changes(set, &dumps, dump_list::MAX_PACKAGES)
                        .ok_or(PublishError::NotFound)?;
                match document {
                    SetDocument::ChangeDumpPart(number) => packages.part(number),
                    _ => Ok(packages.entry_point()),
                }
            }
            SetDocument::Archive(kind) => {
                let archives = self.archives(set, kind)?;
                output.expect(archives.length()?);
                archives.entry_point()
            }
            SetDocument::ArchivePart(kind, part) => {
                let archives = self.archives(set, kind)?;
                output.expect(archives.length()?);
                archives.part(part)
            }
            SetDocument::ArchivedDump(kind, begin) => self.archives(set, kind)?.dump(begin),
            SetDocument::ArchivedResourceList(number) => {
                output.expect(LARGE);
                let bytes = set.archive.as_ref().ok_or(PublishError::NotFound)?.list(number)?;
                Ok(Rendered { bytes, content_type: XML })
            }
            SetDocument::ArchivedResourceListPart(shard, version, number) => {
                output.expect(LARGE);
                let bytes = set
                    .archive
                    .as_ref()
                    .ok_or(PublishError::NotFound)?
                    .part(shard, version, number)?;
                Ok(Rendered { bytes, content_type: XML })
            }
        }
    }
}

impl PublishedSet {
    /// The kinds of archives that the set has.
    pub(crate) fn archive_kinds(&self) -> Vec<ArchiveKind> {
        let has_dumps = self.has_dumps();
        let there = |kind: &ArchiveKind| match kind {
            ArchiveKind::ResourceLists | ArchiveKind::ChangeLists => true,
            ArchiveKind::ResourceDumps => has_dumps.resources,
            ArchiveKind::ChangeDumps => has_dumps.changes,
        };
        let kinds = ArchiveKind::ALL.into_iter().filter(|_| self.archive.is_some());
        kinds.filter(there).collect()
    }

    /// `rs:ln rel="archives"` of a list's entry point.
    fn archive_link(&self, kind: ArchiveKind) -> Option<Ln> {
        self.archive.as_ref()?;
        Some(link("archives", &self.urls.archive(kind)))
    }

    /// The dumps of the set that exist.
    pub(crate) fn has_dumps(&self) -> HasDumps {
        let Some(dumps) = &self.dumps else { return HasDumps::default() };
        HasDumps {
            resources: dumps.newest_resources().is_some(),
            changes: dumps.changes_span().is_some(),
            since: true,
        }
    }

    /// The newest Resource Dump; asking for it may make a newer one.
    fn resource_dump(&self) -> Result<Arc<dumps::Dump>, PublishError> {
        let dumps = self.dumps.as_ref().ok_or(PublishError::NotFound)?;
        dumps.ask();
        dumps.newest_resources().ok_or_else(|| match dumps.failure() {
            _ if dumps.impossible() => PublishError::NotFound,
            Some((reason, seconds)) => PublishError::NotMade { reason, seconds },
            None => PublishError::Making,
        })
    }
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
