//! Which documents of a set are new or different since they were told? [rs-framework-notification §2.1]
//!
//! - A Resource List follows the log with every change: telling each would ask readers to fetch everything again and
//!   again. Told are new ones: of a new set, of a part that was split, of a log that began anew.
//! - An open Change List that grows is told now and then; one that is closed, and the new one, at once.
//! - A Resource Dump is made anew each time, so it is only ever created. Lists and dumps are never told to be gone.
//! - Of documents under an index the document is told, with a link to its index, and never the index.

use super::told::Told;
use crate::publish::{ArchiveKind, DocumentPath, PublishError, Publisher};
use abreast_core::{Head, Page};
use abreast_resourcesync::v1_1::{Capability, Change, Entry, Ln};
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// Closed Change Lists told one by one; the index leads to more.
const MOST_PAGES: u64 = 100;

/// A set's documents, looked at.
pub(super) struct Look<'a> {
    pub(super) publisher: &'a Publisher,
    pub(super) set: usize,
    pub(super) now: Timestamp,
    /// Is the Source Description new to everyone, not only to this set?
    pub(super) new_source: bool,
    /// May an open Change List that grew be told?
    pub(super) growth: bool,
}

/// What is to be told, and what was told once that is done.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) entries: Vec<Entry>,
    pub(super) told: Told,
    /// An open Change List that grew is among them.
    pub(super) growth: bool,
}

impl Look<'_> {
    /// What is new since `told`.
    pub(super) fn news(&self, told: &Told, documents: &Digests) -> Result<News, PublishError> {
        let mut news = News { entries: Vec::new(), told: told.clone(), growth: false };
        self.descriptions(&mut news, documents);
        let set = self.publisher.sets().get(self.set).ok_or(PublishError::NotFound)?;
        let head = self.publisher.log().head(set.id)?;
        if !head.importing {
            self.lists(&mut news, &head)?;
        }
        self.dumps(&mut news);
        self.archives(&mut news)?;
        Ok(news)
    }

    fn entry(&self, capability: Capability, change: Change, loc: String, index: Option<String>) -> Entry {
        self.entry_of(capability, change, loc, index, self.now)
    }

    fn entry_of(
        &self,
        capability: Capability,
        change: Change,
        loc: String,
        index: Option<String>,
        time: Timestamp,
    ) -> Entry {
        let links = index.map(|href| Ln { rel: "index".to_owned(), href, ..Ln::default() }).into_iter().collect();
        // A clock that is behind the log's times makes no document older than what is in it.
        let datetime = Some(W3cDatetime { instant: time.min(self.now), precision: Precision::Fraction });
        Entry { loc, capability: Some(capability), change: Some(change), datetime, links, ..Entry::default() }
    }

    fn descriptions(&self, news: &mut News, documents: &Digests) {
        if news.told.source_description != documents.source_description {
            let known = !news.told.source_description.is_empty() || !self.new_source;
            let change = if known { Change::Updated } else { Change::Created };
            let of_set = self.publisher.source_description_of(self.set);
            news.entries.push(self.entry(Capability::Description, change, of_set.url, of_set.index));
            news.told.source_description.clone_from(&documents.source_description);
        }
        if news.told.capability_list != documents.capability_list {
            let change = if news.told.capability_list.is_empty() { Change::Created } else { Change::Updated };
            let loc = self.publisher.sets()[self.set].urls.capability_list();
            news.entries.push(self.entry(Capability::CapabilityList, change, loc, None));
            news.told.capability_list.clone_from(&documents.capability_list);
        }
    }

    fn lists(&self, news: &mut News, head: &Head) -> Result<(), PublishError> {
        let (log, set) = (self.publisher.log(), &self.publisher.sets()[self.set]);
        let began = Some(head.created.as_micros());
        let anew = news.told.log != began;
        let same_page = news.told.open_page == head.open_page;
        if !anew && (news.told.position == head.position.0 || (same_page && !self.growth)) {
            return Ok(());
        }
        let shards = log.shards(set.id)?;
        if let Some(newest) = shards.iter().max_by_key(|shard| shard.id)
            && (anew || newest.id.0 > news.told.newest_list)
        {
            // Of several new ones one is enough: the index names the others.
            let change = if anew && news.told.log.is_some() { Change::Updated } else { Change::Created };
            let (loc, index) = match shards.len() {
                1 => (set.urls.resource_list(), None),
                _ => (set.urls.resource_list_shard(newest.id), Some(set.urls.resource_list())),
            };
            news.entries.push(self.entry_of(Capability::ResourceList, change, loc, index, newest.time));
            news.told.newest_list = newest.id.0;
        }
        let told = if anew { 0 } else { news.told.open_page };
        // Of a log that is new to the reader only what goes on is told.
        let first = if anew { head.open_page } else { told.max(1).max(head.open_page.saturating_sub(MOST_PAGES)) };
        for page in log.pages(set.id, first, MOST_PAGES as usize + 1)? {
            let change = if page.number > told { Change::Created } else { Change::Updated };
            // One that was open and still is has only grown.
            news.growth |= page.number == told && page.number == head.open_page;
            news.entries.push(self.change_list(&page, change, head));
        }
        (news.told.log, news.told.open_page, news.told.position) = (began, head.open_page, head.position.0);
        Ok(())
    }

    fn change_list(&self, page: &Page, change: Change, head: &Head) -> Entry {
        let urls = &self.publisher.sets()[self.set].urls;
        let time = page.until.unwrap_or(if change == Change::Created { page.from } else { head.time });
        let (loc, index) = if head.open_page == 1 {
            (urls.change_list(), None)
        } else {
            (urls.change_list_page(page.number), Some(urls.change_list()))
        };
        self.entry_of(Capability::ChangeList, change, loc, index, time)
    }

    fn dumps(&self, news: &mut News) {
        let Some(dumps) = self.publisher.dumps() else { return };
        let urls = &self.publisher.sets()[self.set].urls;
        if let Some(dump) = dumps.resources(self.set) {
            let begun = Some(dump.begin.as_micros());
            if news.told.resource_dump != begun {
                let parts = Publisher::dump_parts(dump.packages.len());
                let (loc, index) = match parts {
                    1 => (urls.resource_dump(), None),
                    _ => (urls.resource_dump_part(1), Some(urls.resource_dump())),
                };
                let entry = self.entry_of(Capability::ResourceDump, Change::Created, loc, index, dump.end);
                news.entries.push(entry);
                news.told.resource_dump = begun;
            }
        }
        if let Some((_, end)) = dumps.changes_span(self.set) {
            let until = Some(end.as_micros());
            if news.told.change_dump != until {
                let change = if news.told.change_dump.is_none() { Change::Created } else { Change::Updated };
                let packages = dumps.changes(self.set).iter().map(|dump| dump.packages.len()).sum();
                let (loc, index) = match Publisher::dump_parts(packages) {
                    1 => (urls.change_dump(), None),
                    last => (urls.change_dump_part(last), Some(urls.change_dump())),
                };
                news.entries.push(self.entry_of(Capability::ChangeDump, change, loc, index, end));
                news.told.change_dump = until;
            }
        }
    }

    fn archives(&self, news: &mut News) -> Result<(), PublishError> {
        let urls = &self.publisher.sets()[self.set].urls;
        for kind in self.publisher.archive_kinds(self.set) {
            let Some(newest) = self.newest_archived(kind)? else { continue };
            let told = news.told.archives.get(kind.name()).copied();
            if told == Some(newest) {
                continue;
            }
            let change = if told.is_none() { Change::Created } else { Change::Updated };
            let (loc, index) = match self.publisher.archive_parts(self.set, kind)?.last() {
                Some(part) => (urls.archive_part(kind, *part), Some(urls.archive(kind))),
                None => (urls.archive(kind), None),
            };
            news.entries.push(self.entry(kind.capability(), change, loc, index));
            news.told.archives.insert(kind.name().to_owned(), newest);
        }
        Ok(())
    }

    /// What grows when an archive does. Dumps are told by their time: old ones leave, so their count may stay the same.
    fn newest_archived(&self, kind: ArchiveKind) -> Result<Option<u64>, PublishError> {
        let dumps = self.publisher.dumps();
        Ok(match kind {
            ArchiveKind::ResourceDumps => {
                let newest = dumps.and_then(|dumps| dumps.resources(self.set));
                newest.map(|dump| dump.begin.as_micros() as u64)
            }
            ArchiveKind::ChangeDumps => {
                let span = dumps.and_then(|dumps| dumps.changes_span(self.set));
                span.map(|(_, end)| end.as_micros() as u64)
            }
            ArchiveKind::ResourceLists | ArchiveKind::ChangeLists => {
                self.publisher.archive_span(self.set, kind)?.map(|(_, last)| last)
            }
        })
    }
}

/// The documents that say how a set is published, each as a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Digests {
    source_description: String,
    capability_list: String,
    /// The tag of that Capability List.
    tag: String,
}

impl Digests {
    pub(super) fn new(source_description: String) -> Self {
        Self { source_description, ..Self::default() }
    }

    /// Those of a set's documents as they are now, looked for when what they are made from changed.
    pub(super) fn refresh(&mut self, publisher: &Publisher, set: usize) -> Result<(), PublishError> {
        let tag = &publisher.document(&DocumentPath::CapabilityList(set))?.tag;
        if self.tag != *tag {
            self.capability_list = digest(publisher, &DocumentPath::CapabilityList(set))?;
            self.tag.clone_from(tag);
        }
        Ok(())
    }
}

/// The digest of a document as it is now.
pub(super) fn digest(publisher: &Publisher, path: &DocumentPath) -> Result<String, PublishError> {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(publisher.bytes(path)?) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
