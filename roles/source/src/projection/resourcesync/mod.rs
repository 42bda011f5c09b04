//! ResourceSync 1.1: documents and packages with their URLs, versions and bytes, and topics
//! [rs-core §6].

pub mod archive;
mod archived;
mod archives;
mod capability_list;
mod change_list;
mod digests;
mod dump_list;
pub mod dumps;
mod framework;
mod links;
mod list_reader;
mod notification;
mod paths;
mod resource_list;
mod set;
mod settings;
mod site;
mod source_description;
mod urls;
mod values;
mod version_links;

pub use crate::names::urls::{SetUrls, SourceUrls};
pub use crate::publish::Notifications;
pub use archives::ArchiveKind;
pub(crate) use links::{LinkDocument, state_links};
pub use list_reader::{ListError, ListReader, ListedChange, ListedRecord};
pub use notification::Channel;
pub use settings::ResourceSync;

use super::site_link;
use crate::projection::resourcesync::values::XML;
use crate::publish::document::{Output, Rendered, ResolvedDocument, Version, Whole};
use crate::publish::files::{FileError, PublishedFile};
use crate::publish::publisher::{MAX_IN_MEMORY, Projection, Publisher};
use crate::publish::{
    EndedTopic, HeadReader, LARGE, News, NewsRequest, PublishError, PublishedSet, SiteDocument,
    Topic,
};
use abreast_core::{Head, Position};
use archives::Archives;
use dumps::FilePath;
use paths::{DocumentPath, SetDocument};
use std::sync::Arc;

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

/// A document of a publisher, found for a path.
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

    fn is_newest(&self) -> bool {
        matches!(self.path, DocumentPath::OfSet(_, SetDocument::ChangeList))
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
                // The support for changes on request is constant while the process runs.
                let has_dumps = set.has_dumps();
                Version::changing([has_dumps.resources, has_dumps.changes].map(u64::from))
            }
            SetDocument::ResourceDump | SetDocument::ResourceDumpPart(_) => {
                let dump = set.resource_dump()?;
                Version::changing([dump.begin.as_micros() as u64, dump.end.as_micros() as u64])
            }
            SetDocument::ChangeDump | SetDocument::ChangeDumpPart(_) => {
                let span = set.dumps().and_then(|dumps| dumps.changes_span());
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
            // A dump is made once. A second dump for the same time has other packages.
            SetDocument::ArchivedResourceDump(begin) | SetDocument::ArchivedChangeDump(begin) => {
                let dumps = self.archives(set, document.kind_of_dump())?.dumps();
                if !dumps.iter().any(|dump| dump.begin == begin) {
                    return Err(PublishError::NotFound);
                }
                Version::changing([0, 0])
            }
            SetDocument::ArchivedResourceList(number) => {
                let archive = set.archive().ok_or(PublishError::NotFound)?;
                let has_list = archive.has_list(number)?;
                has_list.then(|| Version::closed([0, 0])).ok_or(PublishError::NotFound)?
            }
            SetDocument::ArchivedResourceListPart(shard, version, number) => {
                let archive = set.archive().ok_or(PublishError::NotFound)?;
                let part = archive.find_part(shard, version, number)?;
                part.map(|_| Version::closed([0, 0])).ok_or(PublishError::NotFound)?
            }
            SetDocument::ResourceList => {
                let (created, head) = head()?;
                Version::changing([created, head.position.0])
            }
            SetDocument::ChangeList => {
                let (created, head) = head()?;
                // If there are closed pages, the entry point is an index, which changes only when a
                // page is closed.
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
                let dumps = set.dumps().map(|dumps| dumps.changes()).unwrap_or_default();
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
            SetDocument::ArchivedResourceDump(begin) | SetDocument::ArchivedChangeDump(begin) => {
                self.archives(set, document.kind_of_dump())?.dump(begin)
            }
            SetDocument::ArchivedResourceList(number) => {
                output.expect(LARGE);
                let bytes = set.archive().ok_or(PublishError::NotFound)?.list(number)?;
                Ok(Rendered { bytes, content_type: XML })
            }
            SetDocument::ArchivedResourceListPart(shard, version, number) => {
                output.expect(LARGE);
                let bytes =
                    set.archive().ok_or(PublishError::NotFound)?.part(shard, version, number)?;
                Ok(Rendered { bytes, content_type: XML })
            }
        }
    }
}
