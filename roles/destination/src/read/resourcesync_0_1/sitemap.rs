//! Sitemaps and their indexes: the snapshot of a Source [rs-0.1 §3].

use super::change_sets::OtherEntries;
use super::document::Read;
use super::entry_points::EntryPoints;
use super::listed::{categories, listed};
use crate::plan::select::{OtherCategories, is_any};
use crate::read::resourcesync_0_1::newest_time::NewestTime;
use crate::read::sitemap::document::{Part, read, unasked};
use crate::read::sitemap::walk::{Found, Lists, Member};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::pieces::Go;
use crate::request::requests::Requests;
use abreast_core::filter::Categories;
use abreast_resourcesync::sitemap::is_no_sitemap;
use abreast_resourcesync::v0_1::{Change, Entry, Head, Link, OAI_PMH_PROTOCOL, Root, V0_1};
use abreast_webtypes::{Moment, Timestamp, W3cDatetime};

/// The properties of the Sitemaps that were read.
pub(super) struct Sitemaps<'a> {
    options: &'a SyncOptions,
    /// The time of the snapshot's last modification, if specified.
    pub(super) modified: Option<Moment>,
    /// The newest time of a resource.
    pub(super) newest: Option<Timestamp>,
    /// The earliest `Last-Modified` of the Sitemaps in an index, or else the time of their
    /// requests, since `Last-Modified` of the index does not apply to them.
    pub(super) saved: Option<Timestamp>,
    /// The documents to which the Sitemaps link.
    pub(super) entry_points: EntryPoints,
    /// The categories in an index of Sitemaps without required categories.
    pub(super) others: OtherCategories,
    /// Whether the documents are certainly Sitemaps: there is an index, or a resource without a
    /// kind of change.
    is_sure: bool,
    has_entries: bool,
    /// Number of entries and links with addresses of other protocols.
    of_others: u64,
}

impl<'a> Sitemaps<'a> {
    pub(super) fn new(options: &'a SyncOptions) -> Self {
        let (modified, newest, saved, entry_points) = (None, None, None, EntryPoints::default());
        let others = OtherCategories::default();
        let (is_sure, has_entries, of_others) = (false, false, 0);
        Self {
            options,
            modified,
            newest,
            saved,
            entry_points,
            others,
            is_sure,
            has_entries,
            of_others,
        }
    }

    /// The number of entries, if all are addresses of other protocols such as OAI-PMH.
    pub(super) fn only_others(&self) -> Option<u64> {
        (self.of_others > 0 && !self.has_entries).then_some(self.of_others)
    }

    /// Whether the document may be a change set: every entry is a change, and there is no other
    /// evidence. The attribute of change sets is only recommended [rs-0.1 §5.1].
    pub(super) const fn may_be_changes(&self) -> bool {
        self.has_entries && !self.is_sure && self.entry_points.change_set.is_none()
    }
}

impl Lists for Sitemaps<'_> {
    type Version = V0_1;

    fn read(
        &mut self,
        requests: &Requests<'_>,
        url: &str,
        each: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
    ) -> Result<Read, Error> {
        let (mut newest, mut reached, mut at) = (NewestTime::default(), Timestamp::MIN, None);
        let mut others = OtherEntries::default();
        let read = read::<V0_1>(requests, url, None, &mut |part| {
            match part {
                Part::Begin(head, answered) => {
                    check_is_sitemap(head, url)?;
                    newest = NewestTime::of(answered);
                    let (now, modified) =
                        (answered.latest_now(), head.modified.map(W3cDatetime::moment));
                    at = modified.filter(|modified| modified.first() <= now);
                    // The Source's clock has reached the time at which it wrote the document.
                    reached = modified.map_or(now, |modified| modified.first().max(now));
                }
                Part::Entry(head, entry) if head.root == Root::SitemapIndex => {
                    self.is_sure = true;
                    let time = entry.time.map(|time| time.instant);
                    let (url, own) = (entry.loc.clone(), categories(&entry.links, &entry.metas));
                    let is_other = is_other(&own, self.options);
                    if is_other {
                        self.others.note(&own);
                    }
                    each(Found::Member(Member { url, time, is_other }))?;
                }
                Part::Entry(_, entry) if entry.protocol.is_some() => others.add(entry),
                Part::Entry(_, entry) => {
                    self.has_entries = true;
                    self.is_sure |= entry.change.is_none();
                    if is_gone(entry, reached) {
                        newest.add(entry.time.map(|time| time.instant));
                        each(Found::Deleted)?;
                    } else {
                        let listed = listed(url, false, entry);
                        newest.add(listed.modified.map(Timestamp::from_micros));
                        // A resource that was modified later was added to the Sitemap later.
                        let own = listed.modified.map(Timestamp::from_micros);
                        let is_later = |at: &Moment| own.is_some_and(|own| own > at.last());
                        let as_of = if at.as_ref().is_some_and(is_later) {
                            own.map(Moment::exact)
                        } else {
                            at
                        };
                        each(Found::Resource(&listed, as_of))?;
                    }
                }
            }
            Ok(Go::On)
        })?;
        others.note(requests, url);
        self.of_others += others.count;
        let read = read.ok_or_else(|| unasked(url))?;
        self.newest = self.newest.max(newest.end(&requests.diagnostics, url, read.zoneless));
        Ok(read)
    }

    fn note(&mut self, url: &str, read: &Read, member: Option<&Member>) {
        let is_other =
            |link: &&Link| link.protocol.as_deref().map(str::trim) == Some(OAI_PMH_PROTOCOL);
        self.of_others += read.head.links.iter().filter(is_other).count() as u64;
        let found = EntryPoints::of(read, url, self.options);
        let Some(member) = member else {
            (self.entry_points, self.modified) = (found, read.modified());
            return;
        };
        if !read.is_index {
            let own = read.answered.last_modified.unwrap_or(read.answered.date);
            self.saved = self.saved.into_iter().chain([own]).min();
        }
        // A Sitemap that is older than its index claims comes from a cache: the changes since the
        // Sitemap are replayed.
        if let (Some(own), Some(stated)) = (read.modified(), member.time)
            && own.last() < stated
        {
            self.modified = self.modified.map(|at| if own.first() < at.first() { own } else { at });
        }
        self.entry_points.add(EntryPoints { sitemap: None, ..found });
    }
}

/// Whether a resource is listed as deleted. One that is to be deleted is there until then.
pub(super) fn is_gone(entry: &Entry, now: Timestamp) -> bool {
    entry.change == Some(Change::Deleted) && entry.time.is_none_or(|time| time.instant <= now)
}

/// Whether the categories of a Sitemap in an index show that it does not contain required
/// resources.
fn is_other(own: &[&str], options: &SyncOptions) -> bool {
    // An index without categories of the Sitemap is not evidence.
    !own.is_empty() && is_any(&options.categories, Categories::Listed(own)) == Some(false)
}

/// # Errors
/// The document is a change set. As a list of all resources, it would delete all other resources.
fn check_is_sitemap(head: &Head, url: &str) -> Result<(), Error> {
    if !head.is_change_set(url) {
        return Ok(());
    }
    Err(Error::new("list.capability", ExitCode::SourceInvalid, is_no_sitemap(url))
        .with_help("read as a list of all there is, it would delete everything else"))
}
