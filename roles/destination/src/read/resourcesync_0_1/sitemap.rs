//! Sitemaps and their indexes: the snapshot of a Source [rs-0.1 §3].

use super::change_sets::note_others;
use super::document::{Read, is_change_set};
use super::entry_points::EntryPoints;
use super::listed::{categories, listed};
use crate::clock::now;
use crate::error::{Error, ExitCode};
use crate::filter::Categories;
use crate::options::SyncOptions;
use crate::read::pieces::Go;
use crate::read::sitemap::document::{Part, read, unasked};
use crate::read::sitemap::walk::{Found, Lists, Member};
use crate::requests::Requests;
use crate::select::{OtherCategories, is_any};
use abreast_resourcesync::v0_1::{Change, Head, Root, V0_1};
use abreast_webtypes::Timestamp;

/// Sitemaps, and what those read so far state.
pub(super) struct Sitemaps<'a> {
    options: &'a SyncOptions,
    now: Timestamp,
    /// When the snapshot was last modified, if that is stated.
    pub(super) modified: Option<Timestamp>,
    /// The newest time of a resource.
    pub(super) newest: Option<Timestamp>,
    /// What the documents name.
    pub(super) entry_points: EntryPoints,
    /// Categories that an index states for Sitemaps without anything wanted.
    pub(super) others: OtherCategories,
}

impl<'a> Sitemaps<'a> {
    pub(super) fn new(options: &'a SyncOptions) -> Self {
        Self {
            options,
            now: now(),
            modified: None,
            newest: None,
            entry_points: EntryPoints::default(),
            others: OtherCategories::default(),
        }
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
        let mut others = 0;
        let read = read::<V0_1>(requests, url, None, &mut |part| {
            match part {
                Part::Begin(head) => {
                    check_is_sitemap(head, url)?;
                    others = 0;
                    each(Found::Begin)?;
                }
                Part::Entry(head, entry) if head.root == Root::SitemapIndex => {
                    let time = entry.time.map(|time| time.instant);
                    let (url, own) = (entry.loc.clone(), categories(&entry.links, &entry.metas));
                    let is_other = is_other(&own, self.options);
                    if is_other {
                        self.others.note(&own);
                    }
                    each(Found::Member(Member { url, time, is_other }))?;
                }
                Part::Entry(_, entry) if entry.protocol.is_some() => others += 1,
                Part::Entry(_, entry) => {
                    let time = entry.time.map(|time| time.instant);
                    self.newest = self.newest.max(time);
                    // One that is to be deleted is there until then.
                    let is_over = time.is_none_or(|time| time <= self.now);
                    if entry.change == Some(Change::Deleted) && is_over {
                        each(Found::Deleted)?;
                    } else {
                        each(Found::Resource(&listed(url, false, entry)))?;
                    }
                }
            }
            Ok(Go::On)
        })?;
        if others > 0 {
            note_others(requests, url, others);
        }
        read.ok_or_else(|| unasked(url))
    }

    fn note(&mut self, url: &str, read: &Read, member: Option<&Member>) {
        let found = EntryPoints::of(read, url, self.options);
        let Some(member) = member else {
            (self.entry_points, self.modified) = (found, read.modified());
            return;
        };
        // A Sitemap older than its index states comes from some cache: the changes in between are
        // replayed.
        if let (Some(own), Some(stated)) = (read.modified(), member.time)
            && own < stated
        {
            self.modified = self.modified.map(|modified| modified.min(own));
        }
        self.entry_points.add(EntryPoints { sitemap: None, ..found });
    }
}

/// Whether the categories that an index states for a Sitemap show that nothing wanted is in it.
fn is_other(own: &[&str], options: &SyncOptions) -> bool {
    // Without any, the index does not state them.
    !own.is_empty() && is_any(&options.categories, Categories::Listed(own)) == Some(false)
}

/// # Errors
/// It is a change set: read as all there is, it would delete everything else.
fn check_is_sitemap(head: &Head, url: &str) -> Result<(), Error> {
    if !is_change_set(head, url) {
        return Ok(());
    }
    let message = format!("{url} is not a Sitemap: it is a change set");
    Err(Error::new("list.capability", ExitCode::SourceInvalid, message)
        .with_help("read as a list of all there is, it would delete everything else"))
}
