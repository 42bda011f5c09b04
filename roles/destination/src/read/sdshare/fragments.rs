//! The fragments feed: the changes since the last known update
//! [sdshare §Fragments Feed, §Fragment Processing].

use super::feed::read_feed;
use crate::plan::listed::Listed;
use crate::read::position::Of;
use crate::read::walk::{Trail, Walk};
use crate::report::clock::SECOND_MICROS;
use crate::report::error::{Error, ExitCode};
use crate::request::pieces::{Go, unasked};
use crate::request::requests::Requests;
use abreast_core::Kind;
use abreast_rdf::Syntax;
use abreast_sdshare::{Entry, Feed, Link, Relation, with_since};
use abreast_webtypes::{Digests, Moment, Timestamp};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

static NO_DIGESTS: LazyLock<Digests> = LazyLock::new(Digests::default);

/// Maximum number of reads of pages that change while they are read.
const READS_MAX: usize = 3;
/// Maximum number of resources whose newest entry must be found again if pages are read again.
const FOUND_MAX: usize = 65_536;

/// The fragment of an entry that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fragment<'e> {
    href: &'e str,
    media_type: Option<&'e str>,
    /// Whether the fragment describes the resource; otherwise the fragment is stored as a file.
    describes: bool,
}

impl<'e> Fragment<'e> {
    /// The fragment of an entry whose syntax is the cheapest to read.
    fn of(feed: &Feed, entry: &'e Entry) -> Option<Self> {
        let link = entry.targets(&Relation::Fragment).min_by_key(|link| cost(link))?;
        let media_type = link.media_type.as_deref();
        Some(Self { href: &link.href, media_type, describes: !feed.has_files })
    }

    /// The entry as a listed resource, or as a change.
    fn listed<'l>(self, entry: &'l Entry, resource: &'l str, page: &'l str) -> Listed<'l>
    where
        'e: 'l,
    {
        Listed {
            uri: resource,
            href: Some(self.href),
            accept: self.media_type.filter(|_| self.describes),
            describes: self.describes,
            body: None,
            document: page,
            modified: None,
            modified_is_change: false,
            length: None,
            media_type: self.media_type,
            digests: &NO_DIGESTS,
            change: Some(if entry.is_deleted { Kind::Delete } else { Kind::Update }),
            changed: entry.updated.map(moment),
            // Several changes of a resource may have the same `id`.
            id: Some(entry.id.as_str()).filter(|id| !id.is_empty()),
            patch: None,
            replaced_by: &[],
            patches: Vec::new(),
            links: Vec::new(),
            categories: Vec::new(),
        }
    }
}

/// The relative cost of parsing the target of a link.
pub(super) fn cost(link: &Link) -> u8 {
    match Syntax::of_sdshare_media_type(&link.essence()) {
        Some(Syntax::NTriples) if link.essence() != "text/plain" => 0,
        Some(Syntax::NTriples) => 1,
        Some(Syntax::Turtle) => 2,
        Some(Syntax::NQuads | Syntax::TriG) => 3,
        Some(Syntax::RdfXml) => 4,
        Some(Syntax::JsonLd) => 5,
        _ => 6,
    }
}

/// The time of an entry. A time in whole seconds may come from a clock with this precision.
fn moment(updated: Timestamp) -> Moment {
    match updated.as_micros() % SECOND_MICROS {
        0 => Moment::between(updated, updated.plus_micros(SECOND_MICROS - 1)),
        _ => Moment::exact(updated),
    }
}

/// The entries of a page, as fingerprints of their resources and times.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    url: String,
    entries: HashSet<u64>,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
    /// The time in the feed of this page.
    updated: Option<Timestamp>,
}

impl Page {
    fn add(&mut self, entry: &Entry) {
        let mut hasher = DefaultHasher::new();
        (&entry.resources, entry.updated.map(Timestamp::as_micros)).hash(&mut hasher);
        self.entries.insert(hasher.finish());
        self.newest = self.newest.max(entry.updated);
        self.oldest = self.oldest.into_iter().chain(entry.updated).min();
    }

    /// A fingerprint of the page's entries and of the previous pages.
    fn fingerprint(&self, before: u64) -> u64 {
        let own = self.entries.iter().fold(0_u64, |sum, entry| sum.wrapping_add(*entry));
        let mut hasher = DefaultHasher::new();
        (before, own).hash(&mut hasher);
        hasher.finish()
    }

    /// The current version of the page, and the time of its feed; `None` if the page was removed.
    fn now(&self, requests: &Requests<'_>) -> Result<Option<(Self, Option<Timestamp>)>, Error> {
        let (url, updated) = (self.url.clone(), self.updated);
        let mut now = Self { url, updated, ..Self::default() };
        let asked = read_feed(requests, &self.url, &mut |_, entry, _| {
            now.add(entry);
            Ok(Go::On)
        });
        match asked {
            Err(error) if error.may_be_gone() => Ok(None),
            Err(error) => Err(error),
            Ok(read) => Ok(Some((now, read.feed.updated))),
        }
    }
}

/// The first and the last page of a walk.
struct Pages {
    first: Page,
    last: Page,
    /// The newest change on the last page with changes.
    last_newest: Option<Timestamp>,
    /// The server's clock at the request for the first page.
    began: Timestamp,
    /// Whether the feed has the same time on all its pages.
    has_one_time: bool,
    /// Whether a page belongs to a later, or an earlier, version of the feed than a previous page.
    has_later: bool,
    has_earlier: bool,
    /// A fingerprint of the entries of all pages.
    entries: u64,
}

impl Pages {
    fn of(first: Page, began: Timestamp) -> Self {
        let last = Page { url: first.url.clone(), updated: first.updated, ..Page::default() };
        let (has_one_time, last_newest) = (first.updated > first.newest, first.newest);
        let (has_later, has_earlier, entries) = (false, false, first.fingerprint(0));
        Self { first, last, last_newest, began, has_one_time, has_later, has_earlier, entries }
    }

    fn add(&mut self, page: Page) {
        self.has_one_time |= page.updated > page.newest;
        self.has_later |= page.updated > self.last.updated;
        self.has_earlier |= page.updated < self.last.updated;
        self.last_newest = page.newest.or(self.last_newest);
        self.entries = page.fingerprint(self.entries);
        self.last = page;
    }

    /// Whether the pages may lack entries that moved to other pages meanwhile. `is_same`: the pages
    /// have the same entries as in the previous read. A change moves its entry to the newest page.
    /// If pages are ordered from the oldest on, the following entries then move back, also to pages
    /// that were already read. If pages are ordered from the newest on, entries move forward,
    /// unless the number of entries in a page changed.
    fn have_moved(&self, walk: &mut Walk<'_, '_>, is_same: bool) -> Result<bool, Error> {
        if self.first.url == self.last.url {
            return Ok(false);
        }
        let is_newest_first = self.first.oldest > self.last_newest && self.last_newest.is_some();
        let is_oldest_first = self.first.newest < self.last_newest;
        // A single page with entries does not show an order.
        let is_mixed = self.has_later && !is_newest_first || self.has_earlier && !is_oldest_first;
        if self.has_one_time && is_mixed {
            return Ok(true);
        }
        if is_same {
            return Ok(false);
        }
        // Within a second of a coarse clock, or before a time in the future, there may have been changes that the time of the
        // feed does not show.
        let hides_changes = self.first.updated.is_none_or(|updated| {
            let end = updated.plus_micros(2 * SECOND_MICROS);
            let is_fresh = (updated..end).contains(&self.began);
            updated.as_micros() % SECOND_MICROS == 0 && is_fresh || walk.is_future(updated)
        });
        if !is_newest_first && hides_changes {
            return Ok(true);
        }
        let Some((first, updated)) = self.first.now(walk.requests)? else { return Ok(true) };
        // A page from a cache, older than the other pages, does not show the number of entries in a
        // page.
        let is_older = self.has_one_time && updated < self.last.updated;
        if is_older || first.entries.len() != self.first.entries.len() {
            return Ok(true);
        }
        // A missing entry may be on the first page, or after it, with a later time.
        walk.walked.has_grown = is_newest_first && first != self.first;
        if is_newest_first {
            return Ok(false);
        }
        // An entry that left the first page made other entries move back to the first page.
        Ok(first.entries != self.first.entries
            || self.last.now(walk.requests)?.is_none_or(|(last, _)| last != self.last))
    }
}

/// Passes on the entries since the position of the walk, or all entries of a feed.
pub(super) fn fragments(walk: &mut Walk<'_, '_>, feed: &str) -> Result<(), Error> {
    let since = walk.since().map(Moment::first);
    // The request includes the last known entries, also for servers that list only the changes
    // after a given second.
    let known = walk.marks().oldest().into_iter().chain(since).min();
    // After a gap, only older entries show that no change is missing, so the whole feed is read.
    let is_all = since.is_none() || walk.follows_gap();
    let asked = known.filter(|_| !is_all).map(|known| known.plus_micros(-SECOND_MICROS));
    let start = asked.map_or_else(|| feed.to_owned(), |since| with_since(feed, since));
    let (mut found, mut before) = (Found::default(), None);
    for reads in 1.. {
        found.reads = reads;
        let pages = read_pages(walk, feed, &start, &mut found)?;
        let is_same = before.replace(pages.entries) == Some(pages.entries);
        if walk.walked.cut.is_some() || !found.lacks_any() && !pages.have_moved(walk, is_same)? {
            break;
        }
        if reads == READS_MAX {
            walk.walked.is_unstable = true;
            break;
        }
        walk.restart()?;
    }
    if walk.options.dry_run && found.may_delete && !found.marks_deletions {
        let message = "fragments are not read in a dry run: a resource whose fragment is empty is reported as fetched, \
            and a run deletes it";
        walk.notice("sdshare.dry-run", feed, message);
    }
    walk.walked.end = asked;
    let is_complete =
        walk.walked.cut.is_none() && !walk.walked.is_unstable && !walk.walked.has_grown;
    if is_complete && walk.marks().are_lost(asked) {
        let earliest = walk.walked.oldest.or(found.updated);
        // The listed entries start after the known ones: entries were removed.
        if let Some(earliest) = earliest.filter(|at| since.is_some_and(|since| since < *at)) {
            walk.reaches_back_to(Moment::exact(earliest));
        }
    }
    walk.walked.went_back = went_back(walk, found.updated, since);
    Ok(())
}

/// The result of reading all pages.
#[derive(Debug, Default)]
struct Found {
    /// The time of the feed on the first page, when it was read first.
    updated: Option<Timestamp>,
    marks_deletions: bool,
    may_delete: bool,
    /// How often the pages were read, and for each resource the time of its newest entry and which read found that last.
    reads: usize,
    newest: HashMap<u64, (Option<Timestamp>, usize)>,
}

impl Found {
    fn add(&mut self, entry: &Entry) {
        let mut hasher = DefaultHasher::new();
        entry.resources.hash(&mut hasher);
        let (resource, is_full) = (hasher.finish(), self.newest.len() >= FOUND_MAX);
        match self.newest.get_mut(&resource) {
            Some(newest) if newest.0 <= entry.updated => *newest = (entry.updated, self.reads),
            None if !is_full => drop(self.newest.insert(resource, (entry.updated, self.reads))),
            _ => {}
        }
    }

    /// Whether the last read lacks an entry of an earlier read, and also a newer entry of the same
    /// resource: the entry moved to a page that was already read, or some pages belong to an
    /// earlier version of the feed.
    fn lacks_any(&self) -> bool {
        self.newest.values().any(|newest| newest.1 != self.reads)
    }
}

/// Passes on the entries of all pages from `start` on.
fn read_pages(
    walk: &mut Walk<'_, '_>,
    feed: &str,
    start: &str,
    found: &mut Found,
) -> Result<Pages, Error> {
    let requests = walk.requests;
    let mut next = Some(start.to_owned());
    let (mut admission, mut trail) = (walk.admission(feed), Trail::new(true));
    let mut pages = None::<Pages>;
    // Among changes with the same time, the first one is the newest if the newest entry is first,
    // as is usual.
    let (mut before, mut is_ascending) = (None::<Timestamp>, false);
    // A page with a link back to the first one is descending if the others are ascending, and the
    // reverse.
    let mut steps = 0_i64;
    while let Some(url) = next.take() {
        if admission.check(&url).is_err() {
            let message =
                format!("the next page of {feed} is {url}, on a host that is not allowed");
            return Err(Error::new("uri.authority", ExitCode::SourceInvalid, message)
                .with_help("allow hosts you trust with `--allow-host HOST`"));
        }
        trail.visit(&url);
        let (mut entries, mut has_begun) = (0, false);
        let mut one = Page { url: url.clone(), ..Page::default() };
        let read = read_feed(requests, &url, &mut |page, entry, answered| {
            if !std::mem::replace(&mut has_begun, true) {
                walk.clock(answered);
                walk.begin_changes(&url, None, None);
            }
            entries += 1;
            let updated = entry.updated.filter(|updated| !walk.is_future(*updated));
            let step = before.zip(updated).map_or(0, |(before, now)| now.cmp(&before) as i64);
            is_ascending |= step > 0;
            steps += step;
            before = updated.or(before);
            if is_ascending {
                walk.later_document();
            } else {
                walk.earlier_document();
            }
            one.add(entry);
            found.add(entry);
            found.marks_deletions |= entry.is_deleted;
            found.may_delete |= !page.has_files && !entry.is_deleted;
            hand_over(walk, (page, entry), &url)?;
            Ok(Go::On)
        })?;
        walk.clock(&read.answered);
        one.updated = read.feed.updated;
        if let Some(pages) = &mut pages {
            pages.add(one);
        } else {
            found.updated = found.updated.or(read.feed.updated);
            pages = Some(Pages::of(one, read.answered.date));
        }
        let following = read.feed.link(&Relation::Next).map(|link| link.href.clone());
        if let Some(following) = following {
            match trail.check(&url, entries, &following) {
                Ok(()) => next = Some(following),
                Err(cut) => {
                    walk.walked.is_back = steps <= 0;
                    walk.cut(cut);
                }
            }
        }
    }
    // An entry that changed while the pages were read may be on a page that was already read.
    let pages = pages.ok_or_else(|| unasked(start))?;
    if trail.len() > 1 {
        walk.limit_to(pages.began);
    }
    Ok(pages)
}

/// The reason why the feed does not continue from the known changes: its server was restored, or
/// its clock was set back.
fn went_back(
    walk: &Walk<'_, '_>,
    updated: Option<Timestamp>,
    since: Option<Timestamp>,
) -> Option<String> {
    let (seen, newest) = (walk.position().newest_seen(), walk.walked.newest.map(Moment::last));
    // A snapshot may be newer than the last change.
    let since = since.filter(|_| walk.position().of() != Of::Snapshot).max(seen)?;
    let updated = updated.filter(|updated| *updated < since)?;
    // The last known entry is listed again. If it is missing, the feed has lost it.
    newest.is_none_or(|newest| newest < since).then(|| {
        format!("the feed was updated at {updated}, and changes of {since} were seen already")
    })
}

fn hand_over(
    walk: &mut Walk<'_, '_>,
    (feed, entry): (&Feed, &Entry),
    page: &str,
) -> Result<(), Error> {
    let fragment = Fragment::of(feed, entry);
    let (Some(fragment), false) = (fragment, entry.resources.is_empty()) else {
        // Every run reads the entry again.
        if let Some(updated) = entry.updated {
            walk.limit_to(updated);
        }
        walk.unusable(|| {
            let what = if fragment.is_none() { "link to a fragment" } else { "resource" };
            format!("line {} of {page}: an entry without a {what}", entry.line)
        });
        return Ok(());
    };
    let mut resources = entry.resources.iter();
    resources.try_for_each(|resource| walk.change(&fragment.listed(entry, resource, page)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(resource: &str, time: i64) -> Entry {
        let updated = Some(Timestamp::from_micros(time));
        Entry { resources: vec![resource.to_owned()], updated, ..Entry::default() }
    }

    #[test]
    fn an_entry_of_an_earlier_read_has_to_be_found_or_replaced() {
        let mut found = Found::default();
        let mut read = |entries: &[(&str, i64)]| {
            found.reads += 1;
            for (resource, time) in entries {
                found.add(&entry(resource, *time));
            }
            found.lacks_any()
        };
        assert!(!read(&[("a", 5), ("b", 4)]));
        assert!(!read(&[("b", 6), ("a", 5)]));
        assert!(read(&[("b", 6)]), "that of a is missing");
        assert!(read(&[("a", 7), ("b", 4)]), "an older page");
        assert!(!read(&[("a", 7), ("b", 6), ("c", 8)]));
    }
}
