//! Framework Notifications: documents of a set that are new or different since the last
//! notification [rs-framework-notification §2.1, §3].
//!
//! The Resource List changes with every change in the log. If each version were notified, readers
//! would fetch everything repeatedly, so only new lists are notified: after the first scan of a
//! set, the split of a part, or a recreated log.
//!
//! An open Change List that grew is notified at intervals. When a list is closed, the closed list
//! and the next one are notified at once.
//!
//! A Resource Dump is always notified as created, because each dump is a new one. Lists and dumps
//! are never notified as deleted.
//!
//! A document below an index is notified with a link to the index; the index itself is never
//! notified.

use super::settings::ResourceSync;
use super::values::exactly;
use super::{
    ArchiveKind, Channel, PublishError, PublishedSet, Publisher, SetUrls, dump_list, notification,
};
use crate::publish::{EndedTopic, News, NewsRequest, NotifiedDocuments};
use abreast_core::{Head, Page};
use abreast_resourcesync::v1_1::{
    Capability, Change, Entry, Ln, Root, write_end, write_entry, write_head,
};
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
/// Documents of one set that have been notified; none at first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Notified {
    /// Digest of the Source Description; empty if it has not been notified.
    source_description: String,
    /// Digest of the Capability List; empty if it has not been notified.
    capability_list: String,
    /// Time when the log of the notified lists began.
    log: Option<i64>,
    /// Position of the last change in the notified Change List.
    position: u64,
    /// Number of the open Change List.
    open_page: u64,
    /// Number of the newest Resource List.
    newest_list: u64,
    /// Time when the Resource Dump began.
    resource_dump: Option<i64>,
    /// End of the time that the Change Dump covers.
    change_dump: Option<i64>,
    /// Number of the newest document in each archive, by kind.
    archives: BTreeMap<String, u64>,
}

impl Notified {
    /// Parses the stored state. If values are damaged, all documents are notified again.
    fn read(kept: &NotifiedDocuments) -> Self {
        serde_json::from_value(Value::Object(kept.clone())).unwrap_or_default()
    }

    fn kept(&self) -> NotifiedDocuments {
        match serde_json::to_value(self) {
            Ok(Value::Object(kept)) => kept,
            _ => NotifiedDocuments::new(),
        }
    }
}

/// Notification of the new and different documents of a set; `None` if there are none.
pub(super) fn news(
    projection: &ResourceSync,
    publisher: &Publisher,
    set: &PublishedSet,
    request: &NewsRequest<'_>,
) -> Result<Option<News>, PublishError> {
    let before = Notified::read(request.before);
    let NewsRequest { now, first, growth, .. } = *request;
    let Differences { entries, notified, grown } =
        Comparison { projection, publisher, set, now, first, growth }.differences(before)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let notification = write(&set.urls, request, &entries);
    Ok(Some(News { notification, after: notified.kept(), grown }))
}

/// Notification that the Capability List of a set was deleted, if the set was notified before. The
/// lists of the set are not included.
pub(super) fn ended_topic(
    publisher: &Publisher,
    slug: &str,
    request: &NewsRequest<'_>,
) -> Option<EndedTopic> {
    if publisher.find_set(slug).is_some()
        || Notified::read(request.before).capability_list.is_empty()
    {
        return None;
    }
    let urls = publisher.urls().set(slug);
    let entry = Entry {
        loc: urls.capability_list(),
        capability: Some(Capability::CapabilityList),
        change: Some(Change::Deleted),
        datetime: Some(exactly(request.until)),
        ..Entry::default()
    };
    let notification = write(&urls, request, &[entry]);
    Some(EndedTopic {
        url: urls.topic(Channel::Framework),
        notification,
        media_type: crate::projection::resourcesync::values::XML,
    })
}

fn write(urls: &SetUrls, request: &NewsRequest<'_>, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512 + entries.len() * 256);
    write_head(
        &mut bytes,
        &notification::head(urls, Channel::Framework, request.from, request.until),
    );
    for entry in entries {
        write_entry(&mut bytes, Root::UrlSet, entry);
    }
    write_end(&mut bytes, Root::UrlSet);
    bytes
}

/// Closed Change Lists that are notified one by one; the index leads to more.
const MOST_PAGES: u64 = 100;

/// Comparison of a set's documents with the notified documents.
struct Comparison<'a> {
    projection: &'a ResourceSync,
    publisher: &'a Publisher,
    set: &'a PublishedSet,
    now: Timestamp,
    /// Whether the Source Description is new to the topics of all sets.
    first: bool,
    /// Whether an open Change List that grew may be notified.
    growth: bool,
}

/// New and different documents for a notification.
#[derive(Debug, Default)]
struct Differences {
    entries: Vec<Entry>,
    /// State to record after the notification.
    notified: Notified,
    /// Whether an open Change List that grew is included.
    grown: bool,
}

impl Comparison<'_> {
    fn differences(&self, before: Notified) -> Result<Differences, PublishError> {
        let mut news = Differences { entries: Vec::new(), notified: before, grown: false };
        self.descriptions(&mut news)?;
        let head = self.publisher.log().head(self.set.id)?;
        if !head.importing {
            self.lists(&mut news, &head)?;
        }
        self.dumps(&mut news);
        self.archives(&mut news)?;
        Ok(news)
    }

    fn entry(
        &self,
        capability: Capability,
        change: Change,
        loc: String,
        index: Option<String>,
    ) -> Entry {
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
        let links = index
            .map(|href| Ln { rel: "index".to_owned(), href, ..Ln::default() })
            .into_iter()
            .collect();
        // If the clock is behind the log, a document is still not older than its changes.
        let datetime = Some(exactly(time.min(self.now)));
        Entry {
            loc,
            capability: Some(capability),
            change: Some(change),
            datetime,
            links,
            ..Entry::default()
        }
    }

    fn descriptions(&self, news: &mut Differences) -> Result<(), PublishError> {
        let digests = &self.projection.digests;
        let of_set = self.projection.description_of(self.publisher, self.set);
        let source_description = digests.source_description(self.publisher, &of_set.url)?;
        if news.notified.source_description != source_description {
            let known = !news.notified.source_description.is_empty() || !self.first;
            let change = if known { Change::Updated } else { Change::Created };
            news.entries.push(self.entry(
                Capability::Description,
                change,
                of_set.url,
                of_set.index,
            ));
            news.notified.source_description = source_description;
        }
        let capability_list = digests.capability_list(self.publisher, self.set)?;
        if news.notified.capability_list != capability_list {
            let change = if news.notified.capability_list.is_empty() {
                Change::Created
            } else {
                Change::Updated
            };
            let loc = self.set.urls.capability_list();
            news.entries.push(self.entry(Capability::CapabilityList, change, loc, None));
            news.notified.capability_list = capability_list;
        }
        Ok(())
    }

    fn lists(&self, news: &mut Differences, head: &Head) -> Result<(), PublishError> {
        let (log, set) = (self.publisher.log(), self.set);
        let began = Some(head.created.as_micros());
        let recreated = news.notified.log != began;
        let same_page = news.notified.open_page == head.open_page;
        if !recreated && (news.notified.position == head.position.0 || (same_page && !self.growth))
        {
            return Ok(());
        }
        let shards = log.shards(set.id)?;
        if let Some(newest) = shards.iter().max_by_key(|shard| shard.id)
            && (recreated || newest.id.0 > news.notified.newest_list)
        {
            // One new list is enough, because the index lists the others.
            let change = if recreated && news.notified.log.is_some() {
                Change::Updated
            } else {
                Change::Created
            };
            let (loc, index) = match shards.len() {
                1 => (set.urls.resource_list(), None),
                _ => (set.urls.resource_list_shard(newest.id), Some(set.urls.resource_list())),
            };
            news.entries.push(self.entry_of(
                Capability::ResourceList,
                change,
                loc,
                index,
                newest.time,
            ));
            news.notified.newest_list = newest.id.0;
        }
        let known = if recreated { 0 } else { news.notified.open_page };
        // If the log is new to the reader, only the open Change List is notified.
        let first = if recreated {
            head.open_page
        } else {
            known.max(1).max(head.open_page.saturating_sub(MOST_PAGES))
        };
        for page in log.pages(set.id, first, MOST_PAGES as usize + 1)? {
            let change = if page.number > known { Change::Created } else { Change::Updated };
            // A list that was open and is still open has only grown.
            news.grown |= page.number == known && page.number == head.open_page;
            news.entries.push(self.change_list(&page, change, head));
        }
        (news.notified.log, news.notified.open_page, news.notified.position) =
            (began, head.open_page, head.position.0);
        Ok(())
    }

    fn change_list(&self, page: &Page, change: Change, head: &Head) -> Entry {
        let urls = &self.set.urls;
        let time =
            page.until.unwrap_or(if change == Change::Created { page.from } else { head.time });
        let (loc, index) = if head.open_page == 1 {
            (urls.change_list(), None)
        } else {
            (urls.change_list_page(page.number), Some(urls.change_list()))
        };
        self.entry_of(Capability::ChangeList, change, loc, index, time)
    }

    fn dumps(&self, news: &mut Differences) {
        let Some(dumps) = self.set.dumps() else { return };
        let urls = &self.set.urls;
        if let Some(dump) = dumps.newest_resources() {
            let begun = Some(dump.begin.as_micros());
            if news.notified.resource_dump != begun {
                let parts = dump_parts(dump.packages.len());
                let (loc, index) = match parts {
                    1 => (urls.resource_dump(), None),
                    _ => (urls.resource_dump_part(1), Some(urls.resource_dump())),
                };
                let entry =
                    self.entry_of(Capability::ResourceDump, Change::Created, loc, index, dump.end);
                news.entries.push(entry);
                news.notified.resource_dump = begun;
            }
        }
        if let Some((_, end)) = dumps.changes_span() {
            let until = Some(end.as_micros());
            if news.notified.change_dump != until {
                let change = if news.notified.change_dump.is_none() {
                    Change::Created
                } else {
                    Change::Updated
                };
                let packages = dumps.changes().iter().map(|dump| dump.packages.len()).sum();
                let (loc, index) = match dump_parts(packages) {
                    1 => (urls.change_dump(), None),
                    last => (urls.change_dump_part(last), Some(urls.change_dump())),
                };
                news.entries.push(self.entry_of(Capability::ChangeDump, change, loc, index, end));
                news.notified.change_dump = until;
            }
        }
    }

    fn archives(&self, news: &mut Differences) -> Result<(), PublishError> {
        let urls = &self.set.urls;
        for kind in self.set.archive_kinds() {
            let Some(newest) = self.newest_archived(kind)? else { continue };
            let known = news.notified.archives.get(kind.name()).copied();
            if known == Some(newest) {
                continue;
            }
            let change = if known.is_none() { Change::Created } else { Change::Updated };
            let (loc, index) =
                match self.projection.archives(self.publisher, self.set, kind)?.parts()?.last() {
                    Some(part) => (urls.archive_part(kind, *part), Some(urls.archive(kind))),
                    None => (urls.archive(kind), None),
                };
            news.entries.push(self.entry(kind.capability(), change, loc, index));
            news.notified.archives.insert(kind.name().to_owned(), newest);
        }
        Ok(())
    }

    /// Number that increases with an archive. For dumps it is the time of the last dump, because
    /// the count does not increase when old dumps are deleted.
    fn newest_archived(&self, kind: ArchiveKind) -> Result<Option<u64>, PublishError> {
        let dumps = self.set.dumps();
        Ok(match kind {
            ArchiveKind::ResourceDumps => {
                let newest = dumps.and_then(|dumps| dumps.newest_resources());
                newest.map(|dump| dump.begin.as_micros() as u64)
            }
            ArchiveKind::ChangeDumps => {
                let span = dumps.and_then(|dumps| dumps.changes_span());
                span.map(|(_, end)| end.as_micros() as u64)
            }
            ArchiveKind::ResourceLists | ArchiveKind::ChangeLists => self
                .projection
                .archives(self.publisher, self.set, kind)?
                .span()?
                .map(|(_, last)| last),
        })
    }
}

/// Number of documents for the packages of a dump.
fn dump_parts(packages: usize) -> u64 {
    packages.div_ceil(dump_list::MAX_PACKAGES).max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(json: &str) -> NotifiedDocuments {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn notified_documents_are_read_as_they_were_kept() {
        let archives = BTreeMap::from([("changelist-archive".to_owned(), 7)]);
        let notified = Notified {
            capability_list: "ab".into(),
            log: Some(3),
            archives,
            ..Notified::default()
        };
        assert_eq!(Notified::read(&notified.kept()), notified);
        // Keys of a newer version are ignored; missing keys of an older version, and damage, count
        // as no data.
        let position = Notified { position: 5, ..Notified::default() };
        assert_eq!(Notified::read(&kept(r#"{"position": 5, "else": 1}"#)), position);
        assert_eq!(Notified::read(&kept(r#"{"position": "five"}"#)), Notified::default());
    }
}
