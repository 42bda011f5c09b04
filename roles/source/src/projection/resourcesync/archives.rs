//! Archives: lists of earlier documents, oldest first, and their indexes [rs-archives §3, §4, §5,
//! §6].
//!
//! An archive does not have a time; each entry has the time of its document. The capability of an
//! archive depends on the kind of its documents.

use super::archive::Archive;
use super::dumps::{Dump, DumpKind};
use super::values::{XML, exactly, link};
use super::{PublishError, PublishedSet, Rendered};
use abreast_core::ChangeLog;
use abreast_resourcesync::v1_1::{
    Capability, Entry, Head, Root, write_end, write_entry, write_head,
};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// Entries in one archive, unless fewer are asked for [rs-core §7].
pub(crate) const MAX_ENTRIES: u64 = 50_000;

/// Kind of documents that an archive lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArchiveKind {
    /// Archived copies of the Resource List.
    ResourceLists,
    /// Closed Change Lists of the log.
    ChangeLists,
    /// Earlier Resource Dumps that are still stored.
    ResourceDumps,
    /// Change Dumps, each of one span of the log.
    ChangeDumps,
}

impl ArchiveKind {
    /// All kinds, in the order of documents.
    pub const ALL: [Self; 4] =
        [Self::ResourceLists, Self::ChangeLists, Self::ResourceDumps, Self::ChangeDumps];

    pub(crate) const fn capability(self) -> Capability {
        match self {
            Self::ResourceLists => Capability::ResourceListArchive,
            Self::ChangeLists => Capability::ChangeListArchive,
            Self::ResourceDumps => Capability::ResourceDumpArchive,
            Self::ChangeDumps => Capability::ChangeDumpArchive,
        }
    }

    /// Title of the archive for people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ResourceLists => "Resource List Archive",
            Self::ChangeLists => "Change List Archive",
            Self::ResourceDumps => "Resource Dump Archive",
            Self::ChangeDumps => "Change Dump Archive",
        }
    }

    /// Name of the archive in URLs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResourceLists => "resourcelist-archive",
            Self::ChangeLists => "changelist-archive",
            Self::ResourceDumps => "resourcedump-archive",
            Self::ChangeDumps => "changedump-archive",
        }
    }

    /// Kind of dumps that the archive lists, if it lists dumps.
    const fn dumps(self) -> Option<DumpKind> {
        match self {
            Self::ResourceLists | Self::ChangeLists => None,
            Self::ResourceDumps => Some(DumpKind::Resources),
            Self::ChangeDumps => Some(DumpKind::Changes),
        }
    }
}

/// Archive of one kind for a set. Each document has at most `most` entries: entries `n·most + 1` to
/// `(n+1)·most` are one document, so that a full document never changes.
pub(super) struct Archives<'a> {
    pub(super) log: &'a dyn ChangeLog,
    pub(super) set: &'a PublishedSet,
    /// Archived copies of the set's Resource List.
    pub(super) lists: &'a Archive,
    pub(super) kind: ArchiveKind,
    pub(super) most: u64,
}

impl Archives<'_> {
    /// Numbers of the first and the last document in the archive.
    pub(super) fn span(&self) -> Result<Option<(u64, u64)>, PublishError> {
        match self.kind {
            ArchiveKind::ResourceLists => Ok(self.lists.span()),
            ArchiveKind::ChangeLists => {
                let open = self.log.head(self.set.id)?.open_page;
                // A recreated log does not have the first pages.
                let pages = self.log.pages(self.set.id, 1, 1)?;
                let first = pages.first().map_or(1, |page| page.number);
                Ok((open > first).then(|| (first, open - 1)))
            }
            ArchiveKind::ResourceDumps | ArchiveKind::ChangeDumps => {
                let count = self.dumps().len() as u64;
                Ok((count > 0).then_some((1, count)))
            }
        }
    }

    /// Stored dumps, oldest first. The number of a dump is its index.
    pub(super) fn dumps(&self) -> Vec<Arc<Dump>> {
        let Some(dumps) = self.set.dumps() else { return Vec::new() };
        match self.kind.dumps() {
            Some(DumpKind::Resources) => dumps.resources(),
            Some(DumpKind::Changes) => dumps.changes(),
            None => Vec::new(),
        }
    }

    /// Document of the dump with this beginning.
    pub(super) fn dump(&self, begin: Timestamp) -> Result<Rendered, PublishError> {
        let kind = self.kind.dumps().ok_or(PublishError::NotFound)?;
        let dump = self.dumps().into_iter().find(|dump| dump.begin == begin && fits(dump));
        let dump = dump.ok_or(PublishError::NotFound)?;
        Ok(super::dump_list::Packages::of_one(self.set, kind, &dump).entry_point())
    }

    /// Numbers of the archive's parts, if the archive needs more than one document.
    pub(super) fn parts(&self) -> Result<Vec<u64>, PublishError> {
        let Some((first, last)) = self.span()? else { return Ok(Vec::new()) };
        let (first, last) = ((first - 1) / self.most + 1, (last - 1) / self.most + 1);
        Ok(if first == last { Vec::new() } else { (first..=last).collect() })
    }

    /// Approximate length of the longest document, in bytes.
    pub(super) fn length(&self) -> Result<u64, PublishError> {
        let entries = self.span()?.map_or(0, |(first, last)| last + 1 - first);
        Ok(entries.min(self.most) * 220)
    }

    pub(super) fn entry_point(&self) -> Result<Rendered, PublishError> {
        let parts = self.parts()?;
        if parts.is_empty() {
            let entries =
                self.span()?.map_or(Ok(Vec::new()), |(first, last)| self.entries(first, last))?;
            return Ok(self.document(Root::UrlSet, false, &entries));
        }
        let loc = |part| self.set.urls.archive_part(self.kind, part);
        let entries: Vec<_> =
            parts.into_iter().map(|part| Entry { loc: loc(part), ..Entry::default() }).collect();
        Ok(self.document(Root::SitemapIndex, false, &entries))
    }

    pub(super) fn part(&self, part: u64) -> Result<Rendered, PublishError> {
        if !self.parts()?.contains(&part) {
            return Err(PublishError::NotFound);
        }
        let (first, last) = self.span()?.ok_or(PublishError::NotFound)?;
        let entries =
            self.entries(first.max((part - 1) * self.most + 1), last.min(part * self.most))?;
        Ok(self.document(Root::UrlSet, true, &entries))
    }

    fn entries(&self, first: u64, last: u64) -> Result<Vec<Entry>, PublishError> {
        let urls = &self.set.urls;
        Ok(match self.kind {
            ArchiveKind::ResourceLists => {
                let wanted = self
                    .lists
                    .snapshots()
                    .into_iter()
                    .filter(|one| (first..=last).contains(&one.number));
                wanted
                    .map(|snapshot| Entry {
                        loc: urls.archived_resource_list(snapshot.number),
                        lastmod: Some(exactly(snapshot.completed.unwrap_or(snapshot.at))),
                        at: Some(exactly(snapshot.at)),
                        completed: snapshot.completed.map(exactly),
                        ..Entry::default()
                    })
                    .collect()
            }
            ArchiveKind::ChangeLists => {
                let pages = self.log.pages(self.set.id, first, (last - first + 1) as usize)?;
                let closed =
                    pages.into_iter().filter(|page| page.until.is_some() && page.number <= last);
                closed
                    .map(|page| Entry {
                        loc: urls.change_list_page(page.number),
                        lastmod: page.until.map(exactly),
                        from: Some(exactly(page.from)),
                        until: page.until.map(exactly),
                        ..Entry::default()
                    })
                    .collect()
            }
            ArchiveKind::ResourceDumps | ArchiveKind::ChangeDumps => {
                let dumps = self
                    .dumps()
                    .into_iter()
                    .skip(first as usize - 1)
                    .take((last - first + 1) as usize);
                let entry = |dump: Arc<Dump>| {
                    let (begin, end) = (Some(exactly(dump.begin)), Some(exactly(dump.end)));
                    let loc = urls.archived_dump(self.kind, dump.begin);
                    let entry = Entry { loc, lastmod: end, ..Entry::default() };
                    match self.kind {
                        ArchiveKind::ChangeDumps => Entry { from: begin, until: end, ..entry },
                        _ => Entry { at: begin, completed: end, ..entry },
                    }
                };
                dumps.filter(|dump| fits(dump)).map(entry).collect()
            }
        })
    }

    fn document(&self, root: Root, indexed: bool, entries: &[Entry]) -> Rendered {
        let mut links = vec![link("up", &self.set.urls.capability_list())];
        if indexed {
            links.push(link("index", &self.set.urls.archive(self.kind)));
        }
        let mut bytes = Vec::with_capacity(512 + entries.len() * 220);
        write_head(
            &mut bytes,
            &Head { root, capability: Some(self.kind.capability()), links, ..Head::default() },
        );
        for entry in entries {
            write_entry(&mut bytes, root, entry);
        }
        write_end(&mut bytes, root);
        Rendered { bytes, content_type: XML }
    }
}

/// Whether one document can list all packages of a dump.
fn fits(dump: &Dump) -> bool {
    dump.packages.len() as u64 <= MAX_ENTRIES
}
