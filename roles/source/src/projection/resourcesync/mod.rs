//! ResourceSync 1.1: its documents and packages, their addresses, versions and bytes, and its topics [rs-core §6].

mod archives;
mod capability_list;
mod change_list;
mod dump_list;
pub mod dumps;
mod framework;
mod links;
mod notification;
mod paths;
mod resource_list;
mod site;
mod source_description;
mod urls;
mod version_links;

pub use archives::ArchiveKind;
pub(crate) use archives::{MAX_ENTRIES, archived_index, archived_list};
pub(crate) use capability_list::URI_SPACE;
pub(crate) use links::{Place, state_links};
pub use notification::{Channel, Notifications};
pub use paths::DocumentPath;
pub(crate) use source_description::MAX_SETS;
pub use urls::{SetUrls, SourceUrls};

use super::{
    EndedTopic, FileError, LogState, News, NewsRequest, Output, Projection, PublishedFile, Rendered, ResolvedDocument,
    SiteDocument, Topic, Version, Whole,
};
use crate::publish::{LARGE, MAX_IN_MEMORY, PublishError, PublishedSet, Publisher};
use abreast_core::Position;
use abreast_resourcesync::v1_1::Ln;
use capability_list::HasDumps;
use dumps::FilePath;
use std::sync::Arc;

/// The projection of ResourceSync 1.1.
#[derive(Debug, Default)]
pub struct ResourceSync {
    digests: framework::Digests,
}

impl Projection for ResourceSync {
    fn resolve<'p>(&self, publisher: &'p Publisher, path: &str) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let path = DocumentPath::parse(path, publisher.sets().iter().map(|set| set.slug.as_str()))?;
        Some(Box::new(Resolved { publisher, path }))
    }

    fn is_file(&self, publisher: &Publisher, path: &str) -> bool {
        FilePath::parse(path, publisher.sets().iter().map(|set| set.slug.as_str())).is_some()
    }

    fn file(&self, publisher: &Publisher, path: &str, query: Option<&str>) -> Result<PublishedFile, FileError> {
        let found = FilePath::parse(path, publisher.sets().iter().map(|set| set.slug.as_str()));
        found.ok_or_else(|| FileError::NotFound("there is no such file".to_owned()))?.open(publisher, query)
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        site::documents(publisher)
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
        notification::of_changes(publisher, topic.set, after, last)
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let (slug, name) = path.split_once("/notify/")?;
        let channel = Channel::ALL.into_iter().find(|channel| channel.name() == name)?;
        let set = publisher.sets().iter().position(|set| set.slug == slug)?;
        notification::topic(publisher, set, channel)
    }

    fn topic_urls(&self, publisher: &Publisher, set: usize) -> Vec<String> {
        let urls = publisher.sets().get(set).map(|set| &set.urls);
        urls.into_iter().flat_map(|urls| Channel::ALL.map(|channel| urls.topic(channel))).collect()
    }

    fn news(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        request: &NewsRequest<'_>,
    ) -> Result<Option<News>, PublishError> {
        framework::news(publisher, topic.set, &self.digests, request)
    }

    fn ended_topic(&self, publisher: &Publisher, record: &str, request: &NewsRequest<'_>) -> Option<EndedTopic> {
        framework::ended_topic(publisher, record, request)
    }

    fn is_lasting_topic(&self, path: &str) -> bool {
        notification::is_topic(path, Channel::Framework)
    }
}

/// A document of a publisher.
struct Resolved<'p> {
    publisher: &'p Publisher,
    path: DocumentPath,
}

impl ResolvedDocument for Resolved<'_> {
    fn log_state(&self) -> Option<LogState> {
        match &self.path {
            DocumentPath::ResourceListShard(set, _) => LogState::of(self.publisher, *set),
            _ => None,
        }
    }

    fn version(&self) -> Result<Version, PublishError> {
        let publisher = self.publisher;
        let head = |set: usize| -> Result<(u64, abreast_core::Head), PublishError> {
            let set = publisher.set(set)?;
            let head = publisher.log.head(set.id)?;
            if head.importing {
                return Err(PublishError::Importing);
            }
            Ok((head.created.as_micros() as u64, head))
        };
        let version = match &self.path {
            DocumentPath::SourceDescription | DocumentPath::SourceDescriptionPart(_) => {
                Version { of: [0, 0], immutable: false }
            }
            DocumentPath::CapabilityList(set) => {
                // Whether changes can be asked for is decided when the process starts.
                let has_dumps = publisher.has_dumps(*set);
                Version { of: [has_dumps.resources, has_dumps.changes].map(u64::from), immutable: false }
            }
            DocumentPath::ResourceDump(set) | DocumentPath::ResourceDumpPart(set, _) => {
                let dump = publisher.resource_dump(*set)?;
                Version { of: [dump.begin.as_micros() as u64, dump.end.as_micros() as u64], immutable: false }
            }
            DocumentPath::ChangeDump(set) | DocumentPath::ChangeDumpPart(set, _) => {
                let span = publisher.dumps.as_ref().and_then(|dumps| dumps.changes_span(*set));
                let (begin, end) = span.ok_or(PublishError::NotFound)?;
                Version { of: [begin.as_micros() as u64, end.as_micros() as u64], immutable: false }
            }
            DocumentPath::Archive(set, ArchiveKind::ResourceLists)
            | DocumentPath::ArchivePart(set, ArchiveKind::ResourceLists, _) => {
                let (first, last) = publisher.archive(*set).ok_or(PublishError::NotFound)?.span().unwrap_or_default();
                Version { of: [first, last], immutable: false }
            }
            DocumentPath::Archive(set, ArchiveKind::ChangeLists)
            | DocumentPath::ArchivePart(set, ArchiveKind::ChangeLists, _) => {
                let (created, head) = head(*set)?;
                Version { of: [created, head.open_page], immutable: false }
            }
            DocumentPath::Archive(set, kind) | DocumentPath::ArchivePart(set, kind, _) => {
                let dumps = publisher.archives_of(*set, *kind)?.dumps();
                let span = dumps.first().zip(dumps.last());
                let span = span.map(|(first, last)| [first.begin, last.end].map(|at| at.as_micros() as u64));
                Version { of: span.ok_or(PublishError::NotFound)?, immutable: false }
            }
            // A dump is made once, and one that was made again for the same time has other packages.
            DocumentPath::ArchivedDump(..) => Version { of: [0, 0], immutable: false },
            DocumentPath::ArchivedResourceList(..) | DocumentPath::ArchivedResourceListPart(..) => {
                Version { of: [0, 0], immutable: true }
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
            DocumentPath::ResourceListShard(set, id) => {
                let (created, _) = head(*set)?;
                let shard = publisher.log.shard(publisher.set(*set)?.id, *id)?.ok_or(PublishError::NotFound)?;
                Version { of: [created, shard.version.0], immutable: false }
            }
        };
        Ok(version)
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let publisher = self.publisher;
        match &self.path {
            DocumentPath::SourceDescription => {
                output.expect(publisher.description_length());
                Ok(source_description::entry_point(&publisher.urls, &publisher.sets, publisher.sets_per_description))
            }
            DocumentPath::SourceDescriptionPart(number) => {
                output.expect(publisher.description_length());
                source_description::part(&publisher.urls, &publisher.sets, publisher.sets_per_description, *number)
            }
            DocumentPath::CapabilityList(set) => {
                let up = source_description::of_set(
                    &publisher.urls,
                    publisher.sets.len(),
                    publisher.sets_per_description,
                    *set,
                );
                let (has_dumps, archives) = (publisher.has_dumps(*set), publisher.archive_kinds(*set));
                Ok(capability_list::render(
                    &up,
                    publisher.set(*set)?,
                    has_dumps,
                    &archives,
                    publisher.notifications(*set),
                ))
            }
            DocumentPath::ResourceList(set) => resource_list::entry_point(
                &*publisher.log,
                publisher.set(*set)?,
                publisher.archive_link(*set, ArchiveKind::ResourceLists),
                output,
            ),
            DocumentPath::ResourceListShard(set, id) => {
                resource_list::shard(&*publisher.log, publisher.set(*set)?, *id, output)
            }
            DocumentPath::ChangeList(set) => {
                let archive = publisher.archive_link(*set, ArchiveKind::ChangeLists);
                change_list::entry_point(&*publisher.log, publisher.set(*set)?, archive, output)
            }
            DocumentPath::ChangeListPage(set, number) => {
                change_list::page(&*publisher.log, publisher.set(*set)?, *number, output)
            }
            DocumentPath::ResourceDump(set) | DocumentPath::ResourceDumpPart(set, _) => {
                let dump = publisher.resource_dump(*set)?;
                let packages = dump_list::Packages::of_resources(publisher.set(*set)?, &dump, dump_list::MAX_PACKAGES);
                match &self.path {
                    DocumentPath::ResourceDumpPart(_, number) => packages.part(*number),
                    _ => Ok(packages.entry_point()),
                }
            }
            DocumentPath::ChangeDump(set) | DocumentPath::ChangeDumpPart(set, _) => {
                let dumps = publisher.dumps.as_ref().map(|dumps| dumps.changes(*set)).unwrap_or_default();
                let packages = dump_list::Packages::of_changes(publisher.set(*set)?, &dumps, dump_list::MAX_PACKAGES)
                    .ok_or(PublishError::NotFound)?;
                match &self.path {
                    DocumentPath::ChangeDumpPart(_, number) => packages.part(*number),
                    _ => Ok(packages.entry_point()),
                }
            }
            DocumentPath::Archive(set, kind) => {
                let archives = publisher.archives_of(*set, *kind)?;
                output.expect(archives.length()?);
                archives.entry_point()
            }
            DocumentPath::ArchivePart(set, kind, part) => {
                let archives = publisher.archives_of(*set, *kind)?;
                output.expect(archives.length()?);
                archives.part(*part)
            }
            DocumentPath::ArchivedDump(set, kind, begin) => publisher.archives_of(*set, *kind)?.dump(*begin),
            DocumentPath::ArchivedResourceList(set, number) => {
                output.expect(LARGE);
                let bytes = publisher.archive(*set).ok_or(PublishError::NotFound)?.list(*number)?;
                Ok(Rendered { bytes, modified: None, content_type: XML })
            }
            DocumentPath::ArchivedResourceListPart(set, shard, version, number) => {
                output.expect(LARGE);
                let bytes = publisher.archive(*set).ok_or(PublishError::NotFound)?.part(*shard, *version, *number)?;
                Ok(Rendered { bytes, modified: None, content_type: XML })
            }
        }
    }
}

impl Publisher {
    /// The numbers of a set's archives of one kind, when one document is not enough.
    ///
    /// # Errors
    /// When there is no such set, or the log fails.
    pub fn archive_parts(&self, set: usize, kind: ArchiveKind) -> Result<Vec<u64>, PublishError> {
        self.archives_of(set, kind)?.parts()
    }

    /// The numbers of the first and the last document in an archive of a set.
    fn archive_span(&self, set: usize, kind: ArchiveKind) -> Result<Option<(u64, u64)>, PublishError> {
        self.archives_of(set, kind)?.span()
    }

    /// The Source Description that names a set.
    fn source_description_of(&self, set: usize) -> OfSet {
        let (most, all) = (self.sets_per_description, self.sets.len());
        let part = (set / most + 1) as u64;
        OfSet {
            path: if all <= most { DocumentPath::SourceDescription } else { DocumentPath::SourceDescriptionPart(part) },
            url: source_description::of_set(&self.urls, all, most, set),
            index: (all > most).then(|| self.urls.source_description()),
        }
    }

    /// How many documents so many packages of a dump are.
    fn dump_parts(packages: usize) -> u64 {
        packages.div_ceil(dump_list::MAX_PACKAGES).max(1) as u64
    }

    /// The kinds of archives that a set has.
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

    /// About how long a Source Description is.
    fn description_length(&self) -> u64 {
        self.sets.len().min(self.sets_per_description) as u64 * 300
    }

    /// The dumps of a set that exist.
    pub(crate) fn has_dumps(&self, set: usize) -> HasDumps {
        let Some(dumps) = &self.dumps else { return HasDumps::default() };
        HasDumps {
            resources: dumps.resources(set).is_some(),
            changes: dumps.changes_span(set).is_some(),
            since: dumps.offered(set),
        }
    }

    /// The newest Resource Dump; asking for it may make a newer one.
    fn resource_dump(&self, set: usize) -> Result<Arc<dumps::Dump>, PublishError> {
        let dumps = self.dumps.as_ref().filter(|dumps| dumps.offered(set)).ok_or(PublishError::NotFound)?;
        dumps.ask(set);
        let none = if dumps.impossible(set) { PublishError::NotFound } else { PublishError::Making };
        dumps.resources(set).ok_or(none)
    }
}

/// The Source Description that names a set.
struct OfSet {
    path: DocumentPath,
    url: String,
    /// Its index, if it is under one.
    index: Option<String>,
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
