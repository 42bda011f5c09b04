//! The pages of a feed: from the newest change back to the last known change, or from the oldest
//! change on if pages do not link back.
//!
//! The data shows which end is the newest: the times on a page, or the times on another page.

use super::ages::{Ages, Links};
use super::document::{Read, read};
use super::find::check_host;
use super::listed::Listed;
use super::order::{
    is_ahead, newest_of, order_in, order_of, order_of_entities, order_of_pages, times_of,
};
use crate::plan::judge::LIST_AHEAD_MAX;
use crate::read::emm::document::{PageLink, activities, if_there};
use crate::read::walk::{Cut, Trail, Walk};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_emm::{Action, Document, DocumentKind, Item};
use abreast_webtypes::{Moment, Timestamp};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Most pages that are newer than the Entry Point, and are searched for from there.
const NEWER_MAX: usize = 1_000;
/// Most pages that are read to find changes before the cursor, or other times.
const MORE_PAGES_MAX: usize = 3;
/// Most pages that show nothing of the order and are passed over.
const SKIPPED_MAX: usize = 16;

/// The way through the pages.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// From the newest page to older pages.
    Back { newest: Read, link: PageLink },
    /// From the oldest page to newer pages.
    On { oldest: Read },
}

/// How far back a walk goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Since {
    /// All pages with changes from this time on are read.
    pub(super) cursor: Timestamp,
    /// A change of this time is searched for as well, on a few pages more.
    pub(super) known: Timestamp,
}

impl Since {
    pub(super) const fn time(cursor: Timestamp) -> Self {
        Self { cursor, known: cursor }
    }
}

/// Facts collected on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The newest time of an activity.
    pub(super) newest: Option<Timestamp>,
    /// The activities.
    pub(super) listed: Listed,
    /// The pages after the last read page are not known.
    pub(super) cut: Option<Cut>,
    /// The page with activities that was read first.
    pub(super) first: Option<Read>,
    /// The last read page with activities, if it is not the first one.
    pub(super) last: Option<Read>,
    /// Pages read.
    pub(super) pages: usize,
    /// The end of the walk, if the walk ended before it found all known changes.
    pub(super) end: Option<Timestamp>,
    /// Whether the pages changed during each read, so that changes may be missing.
    pub(super) is_unstable: bool,
}

/// The activities of a page that count, the oldest first.
pub(super) struct PageOfItems<'p> {
    pub(super) url: &'p str,
    pub(super) document: &'p Document,
    pub(super) items: Vec<&'p Item>,
    /// Pages come from the newest to the oldest.
    pub(super) is_back: bool,
}

/// Finds the way through the pages of a feed, and whether times show that it is right. `each`
/// receives the pages that are read, even if others cannot be read.
pub(super) fn way(
    requests: &Requests<'_>,
    options: &SyncOptions,
    entry: &Read,
    each: &mut dyn FnMut(&Read),
) -> Result<(Way, bool), Error> {
    let each = RefCell::new(each);
    let fetch = |url: &str| -> Result<Read, Error> {
        check_host(options, &entry.url, url)?;
        let page = read(requests, url)?;
        each.borrow_mut()(&page);
        Ok(page)
    };
    let back = |page: Read, link: PageLink| -> Result<Way, Error> {
        let newest = newest_from(page, link, &fetch)?;
        Ok(Way::Back { newest, link })
    };
    let document = &entry.document;
    let is_page = document.kind == DocumentKind::Page;
    let is_itself = |url: &&String| **url == entry.url;
    // A last page with the URL of the Entry Point is not a separate page.
    let last = document.last.as_ref().filter(|url| !is_itself(url));
    let last = last.map(|url| fetch(url)).transpose()?;
    if let Some(last) = &last
        && order_of(last) == Some(Ordering::Less)
        && !is_ahead(last)
        && (last.document.prev.is_some() || document.first == document.last)
    {
        return Ok((back(last.clone(), PageLink::Prev)?, true));
    }
    let first = match document.first.as_ref() {
        _ if is_page => entry.clone(),
        Some(url) if is_itself(&url) && last.is_none() => {
            let message = format!("{url} names itself as its first page, and no other page");
            return Err(Error::new("list.cycle", ExitCode::SourceInvalid, message)
                .with_help("report it to the server's operator"));
        }
        Some(url) if !is_itself(&url) => match &last {
            Some(last) if last.url == *url => last.clone(),
            _ => fetch(url)?,
        },
        _ => {
            // Only the end is known.
            let newest = last.ok_or_else(|| {
                let message = format!("{} has neither pages nor activities", entry.url);
                Error::new("emm.empty", ExitCode::SourceInvalid, message)
                    .with_help("give the address of an Entry Point")
            })?;
            return Ok((Way::Back { newest, link: PageLink::Prev }, false));
        }
    };
    let (order, is_sure) = direction(&first, last.as_ref(), &fetch)?;
    let way = match (order, last) {
        // A feed without dates and without a last page starts with the newest change.
        (Some(Ordering::Greater), _) | (None, None) => back(first, PageLink::Next)?,
        // The only page of an older Entry Point may be empty by now, and other pages need not link
        // back to it.
        (Some(Ordering::Less), Some(last))
            if last.document.prev.is_some()
                || last.url == first.url && !leads_on_from_nothing(&first) =>
        {
            back(last, PageLink::Prev)?
        }
        _ => Way::On { oldest: first },
    };
    Ok((way, is_sure))
}

/// Whether changes become newer from the first page on (`Less`) or older, and whether times show
/// this. The order of pages has precedence over the order within a page. Times in the future are
/// used only if there are no other times.
fn direction(
    first: &Read,
    last: Option<&Read>,
    fetch: &dyn Fn(&str) -> Result<Read, Error>,
) -> Result<(Option<Ordering>, bool), Error> {
    // Pages at both ends may be passed over.
    let known = RefCell::new(HashMap::from([(first.url.clone(), first.clone())]));
    let fetch = &|url: &str| -> Result<Read, Error> {
        if let Some(page) = known.borrow().get(url) {
            return Ok(page.clone());
        }
        let page = fetch(url)?;
        known.borrow_mut().insert(url.to_owned(), page.clone());
        Ok(page)
    };
    let (mut of_begin, mut of_end) = (Vec::new(), Vec::new());
    let begin = beyond(first, PageLink::Next, fetch, &mut |page| {
        of_begin.push(page.clone());
        is_ahead(page)
    })?;
    let within = order_of(&begin).filter(|order| order.is_ne());
    let other = match last.filter(|last| last.url != first.url) {
        Some(last) => Some(beyond(last, PageLink::Prev, fetch, &mut |page| {
            of_end.push(page.clone());
            is_ahead(page)
        })?),
        None if first.document.next.is_none() || within == Some(Ordering::Greater) => None,
        None => {
            let mut equal = 0;
            Some(beyond(&begin, PageLink::Next, fetch, &mut |page| {
                if page.url != begin.url {
                    of_begin.push(page.clone());
                }
                equal += usize::from(times_of(page) == times_of(&begin));
                is_ahead(page) && !is_ahead(&begin)
                    || times_of(page) == times_of(&begin) && equal <= MORE_PAGES_MAX
            })?)
        }
    };
    let is_single = within.is_none() && other.is_none();
    let other = other.filter(|other| is_ahead(other) == is_ahead(&begin));
    let pages = other.as_ref().and_then(|other| order_of_pages(&begin, other));
    // The first time of a page may be equal to the last time of another page.
    let touching = || {
        let (begin, other) = (times_of(&begin)?, times_of(other.as_ref()?)?);
        Some(begin.cmp(&other))
    };
    let order = pages.or(within).or_else(touching).filter(|order| order.is_ne());
    let is_sure = !is_single && order.is_some();
    // If there is no other evidence, future times are used if all are in order; times in the far
    // future only if they belong to one entity or page.
    let shown_ahead = || {
        let limit = first.answered.latest_now().plus_micros(LIST_AHEAD_MAX);
        let all =
            of_begin.iter().flat_map(|page| &page.document.items).filter_map(|item| item.time);
        let all: Vec<_> = all.filter(|time| *time <= limit).collect();
        let urls: HashSet<_> = of_begin.iter().map(|page| page.url.as_str()).collect();
        let pages = of_end.iter().rev().filter(|page| !urls.contains(page.url.as_str()));
        let of_entities =
            order_of_entities(of_begin.iter().chain(pages).flat_map(|it| &it.document.items));
        let far = begin.document.items.iter().filter_map(|item| item.time);
        let far: Vec<_> = far.filter(|time| *time > limit).collect();
        order_in(&all).or(of_entities).or_else(|| order_in(&far))
    };
    let order = match order.or_else(shown_ahead) {
        // Entry Points that name a last page are in the order of the specifications.
        None if is_single && last.is_some() => Some(Ordering::Less),
        None if is_single => Some(Ordering::Greater),
        order => order,
    };
    Ok((order, is_sure))
}

/// The first page from this one on that is not skipped, among a few pages; this page if all are
/// skipped.
fn beyond(
    page: &Read,
    link: PageLink,
    fetch: &dyn Fn(&str) -> Result<Read, Error>,
    is_skipped: &mut dyn FnMut(&Read) -> bool,
) -> Result<Read, Error> {
    let (mut other, mut visited) = (page.clone(), HashSet::new());
    for _ in 0..SKIPPED_MAX {
        if !is_skipped(&other) {
            return Ok(other);
        }
        visited.insert(other.url.clone());
        match link.of(&other.document) {
            Some(url) if !visited.contains(url) => other = fetch(url)?,
            _ => break,
        }
    }
    Ok(page.clone())
}

/// Continues with newer pages, if the page that seemed to be the newest lacks a known time and
/// links to newer pages.
pub(super) fn turned(
    requests: &Requests<'_>,
    options: &SyncOptions,
    way: Way,
    known: Option<Timestamp>,
) -> Result<Way, Error> {
    let Way::Back { newest: page, link: PageLink::Next } = &way else { return Ok(way) };
    let newest = newest_of(page);
    let is_old = known.is_some_and(|known| newest.is_some_and(|newest| newest < known));
    let Some(next) = page.document.next.as_ref().filter(|next| is_old && **next != page.url) else {
        return Ok(way);
    };
    check_host(options, &page.url, next)?;
    let is_wrong = order_of_pages(page, &read(requests, next)?) == Some(Ordering::Less);
    Ok(if is_wrong { Way::On { oldest: page.clone() } } else { way })
}

/// The newest page. The Entry Point may be older than the pages: then the page that it links to has
/// links to newer pages, which link back.
pub(super) fn newest_from(
    mut page: Read,
    link: PageLink,
    fetch: &dyn Fn(&str) -> Result<Read, Error>,
) -> Result<Read, Error> {
    let mut visited = HashSet::from([page.url.clone()]);
    while let Some(url) = link.back().of(&page.document)
        && visited.len() <= NEWER_MAX
        && visited.insert(url.clone())
    {
        match fetch(url) {
            Ok(newer) if leads_back(&newer, &page, link) => page = newer,
            Err(error) if error.exit_code() != ExitCode::SourceInvalid => return Err(error),
            _ => break,
        }
    }
    Ok(page)
}

/// Whether a page is empty and links to another page.
fn leads_on_from_nothing(page: &Read) -> bool {
    let next = page.document.next.as_ref();
    page.document.items.is_empty() && next.is_some_and(|next| *next != page.url)
}

/// Whether a page is newer than another page: it links back to that page, or past it if that page
/// is empty.
fn leads_back(newer: &Read, page: &Read, link: PageLink) -> bool {
    let back = link.of(&newer.document);
    let is_linked = back == Some(&page.url)
        || page.document.items.is_empty() && back.is_some() && back == link.of(&page.document);
    is_linked && newest_of(newer).is_none_or(|newest| Some(newest) >= newest_of(page))
}

impl Seen {
    /// Records a page after it was read.
    fn note_end(&mut self, page: Read) {
        if page.document.items.is_empty() {
            return;
        }
        let end = if self.first.is_none() { &mut self.first } else { &mut self.last };
        *end = Some(page);
    }
}

impl Way {
    /// The page that is read first.
    pub(super) const fn begin(&self) -> &Read {
        match self {
            Self::Back { newest, .. } => newest,
            Self::On { oldest } => oldest,
        }
    }

    /// Passes on the pages with changes since `since`, or all pages.
    pub(super) fn walk<'w, 'a>(
        &self,
        walk: &mut Walk<'w, 'a>,
        entry: &Read,
        since: Option<Since>,
        each: &mut dyn FnMut(&mut Walk<'w, 'a>, &PageOfItems<'_>) -> Result<(), Error>,
    ) -> Result<Seen, Error> {
        let (requests, options, begin) = (walk.requests, walk.options, self.begin());
        let link = match self {
            Self::Back { link, .. } => Some(*link),
            Self::On { .. } => None,
        };
        // The other end of the feed, if the Entry Point contains it.
        let far_end = match link {
            Some(PageLink::Prev) => entry.document.first.as_deref(),
            Some(PageLink::Next) | None => entry.document.last.as_deref(),
        };
        let far_end = far_end.filter(|end| *end != entry.url);
        walk.clock(&begin.answered);
        let (is_back, mut seen) = (link.is_some(), Seen::default());
        let mut trail = Trail::new(!is_back);
        // The Entry Point is not one of its own pages.
        trail.visit(&entry.url);
        let (mut page, mut only_deletions, mut more, mut is_reached) =
            (begin.clone(), false, 0, false);
        let (mut largest, mut links, mut ages) = (0, Links::default(), Ages::default());
        loop {
            trail.visit(&page.url);
            seen.newest = seen.newest.max(newest_of(&page));
            seen.listed.add(page.document.items.iter());
            seen.pages += 1;
            let (items, refreshed) = counted(&page, link, &mut only_deletions);
            if is_back {
                ages.add(items.iter().rev().copied(), true);
            } else {
                ages.add(items.iter().copied(), false);
            }
            seen.is_unstable |= ages.are_mixed;
            let (url, document) = (page.url.as_str(), &page.document);
            each(walk, &PageOfItems { url, document, items, is_back })?;
            // Activities before a refresh are irrelevant for a new copy.
            if refreshed && since.is_none() && is_back {
                break;
            }
            if let Some(Since { cursor, known }) = since
                && let Some(end) = link.and_then(|link| end_of(&page.document, link))
            {
                if end < known {
                    break;
                }
                is_reached |= end < cursor;
                more += usize::from(end < cursor);
                if more > MORE_PAGES_MAX {
                    seen.end = Some(end);
                    break;
                }
            }
            let next = link.unwrap_or(PageLink::Next).of(&page.document);
            let Some(next) = next.cloned() else { break };
            let is_all = is_reached || far_end.is_some_and(|end| trail.has(end));
            let may_have_more =
                far_end.is_some() || since.is_some_and(|since| since.cursor > Timestamp::MIN);
            // The oldest page of some feeds leads to itself.
            if next == page.url
                && is_back
                && (is_all || !may_have_more || page.document.items.is_empty())
            {
                break;
            }
            let size = activities(&page.document).len();
            if let Err(cut) = trail.check(&page.url, page.document.items.len(), &next) {
                // The walk has reached the other end of the feed.
                if is_all {
                    walk.notice(cut.code, &cut.url, &cut.why);
                } else {
                    seen.cut = Some(cut);
                }
                break;
            }
            check_host(options, &page.url, &next)?;
            let following = read(requests, &next)?;
            let is_last = following.document.items.is_empty();
            if !is_back
                && size < largest
                && !is_last
                && let Some(page) = if_there(read(requests, &page.url))?
            {
                // The page was the newest one when it was read, and may have more activities now.
                let (items, _) = counted(&page, link, &mut only_deletions);
                let (url, document) = (page.url.as_str(), &page.document);
                each(walk, &PageOfItems { url, document, items, is_back })?;
            }
            if let Some(link) = link {
                links.add(&following.document, link.back());
            }
            largest = largest.max(size);
            seen.note_end(std::mem::replace(&mut page, following));
        }
        largest = largest.max(activities(&page.document).len());
        seen.is_unstable |= links.are_mixed(largest);
        seen.note_end(page);
        Ok(seen)
    }
}

/// The time with which a page ends, in the direction of the walk. Single activities may be out of
/// order: the last one decides.
fn end_of(page: &Document, link: PageLink) -> Option<Timestamp> {
    let mut times = page.items.iter().filter_map(|item| item.moment).map(Moment::last);
    match link {
        PageLink::Next => times.next_back(),
        PageLink::Prev => times.next(),
    }
}

/// The relevant activities of a page, the oldest first; and whether an activity announces that
/// everything is listed again after it [iiif-discovery §3.5].
fn counted<'p>(
    page: &'p Read,
    link: Option<PageLink>,
    only_deletions: &mut bool,
) -> (Vec<&'p Item>, bool) {
    // If all times on a page are the same, the direction of the feed applies.
    let is_descending = match order_of(page).filter(|_| !is_ahead(page)) {
        Some(Ordering::Greater) => true,
        Some(Ordering::Less) => false,
        _ => link == Some(PageLink::Next),
    };
    let mut items: Vec<&Item> = page.document.items.iter().collect();
    if !is_descending {
        items.reverse();
    }
    let mut refreshed = false;
    // From the newest on.
    items.retain(|item| {
        if item.action == Action::Refresh {
            refreshed = true;
            *only_deletions |= link.is_some();
        }
        !*only_deletions || matches!(item.action, Action::Delete | Action::Remove | Action::Move)
    });
    items.reverse();
    (items, refreshed)
}
