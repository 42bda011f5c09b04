//! Repeated walks, until the pages do not change during a walk.

use super::document::{Read, read};
use super::find::check_host;
use super::listed::Listed;
use super::pages::{PageOfItems, Seen, Since, Way, newest_from, way};
use crate::read::emm::document::{PageLink, activities, if_there};
use crate::read::walk::Walk;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_webtypes::Timestamp;

/// Maximum number of walks in one run.
const WALKS_MAX: usize = 5;

/// A step that a repeated walk passes on.
pub(super) enum Step<'s, 'p> {
    /// A page, and whether times show that it is read in the right direction.
    Page(&'s PageOfItems<'p>, bool),
    /// All pages follow again, or the new pages.
    Again,
}

/// The pages to read after a walk during which pages changed.
enum Renewed {
    /// All pages, and whether times show that the direction is right.
    Moved(Way, bool),
    /// Only the new pages.
    Grown(Way),
}

/// Passes on the pages with changes since `since`, or all pages, until they do not change during a
/// walk.
pub(super) fn walk<'w, 'a>(
    walk: &mut Walk<'w, 'a>,
    (entry, listed): (&Read, &mut Listed),
    found: (Way, bool),
    since: Option<Since>,
    each: &mut dyn FnMut(&mut Walk<'w, 'a>, Step<'_, '_>) -> Result<(), Error>,
) -> Result<Seen, Error> {
    let (requests, options) = (walk.requests, walk.options);
    let (mut way, mut is_sure) = found;
    let (mut begin, mut before) = (since, None);
    let mut number = 0;
    loop {
        number += 1;
        let mut read =
            way.walk(walk, entry, begin, &mut |walk, page| each(walk, Step::Page(page, is_sure)))?;
        // New activities on the last page follow the activities that were read from it.
        let is_whole = before.is_none() || matches!(way, Way::Back { .. });
        let from = begin.map_or(Timestamp::MIN, |begin| begin.cursor);
        let is_future = |time| walk.is_future(time);
        read.is_unstable |=
            is_whole && read.cut.is_none() && read.listed.lacks(listed, from, &is_future);
        listed.extend(&read.listed);
        let seen = match before.take() {
            Some(before) => with_newer(&way, before, read),
            None => read,
        };
        // If no activity is newer than the known ones, none can have been missed.
        let is_known = |since: Since| seen.newest.is_some_and(|newest| newest <= since.cursor);
        if since.is_some_and(is_known) {
            return Ok(seen);
        }
        let renewed = renewed(requests, options, entry, (&way, is_sure, &seen))?;
        if number == WALKS_MAX {
            // Activities that were added meanwhile are newer than all activities of this run, and
            // are read by the next run.
            let has_moved = matches!(renewed, Some(Renewed::Moved(..)));
            return Ok(Seen { is_unstable: seen.is_unstable || has_moved, ..seen });
        }
        match renewed {
            Some(Renewed::Moved(moved, sure)) => {
                (way, is_sure, begin) = (moved, sure, since);
                each(walk, Step::Again)?;
            }
            Some(Renewed::Grown(newer)) => {
                (way, begin) = (newer, seen.newest.map(Since::time).or(since));
                before = Some(seen);
                // The walk continues from the last page, so earlier activities retain their places.
                if matches!(way, Way::Back { .. }) {
                    each(walk, Step::Again)?;
                }
            }
            None => return Ok(seen),
        }
    }
}

/// Combines a walk with a second walk to its newer pages. The newer pages are first on the way
/// back, and last on the other way.
fn with_newer(way: &Way, before: Seen, newer: Seen) -> Seen {
    let (first, last) = match way {
        Way::Back { .. } => (newer.first.or(before.first), before.last),
        Way::On { .. } => (before.first, newer.last.or(newer.first).or(before.last)),
    };
    Seen {
        newest: before.newest.max(newer.newest),
        cut: before.cut.or(newer.cut),
        is_unstable: before.is_unstable || newer.is_unstable,
        first,
        last,
        pages: before.pages + newer.pages,
        ..before
    }
}

/// The pages to read because pages changed during the walk: the first or the last page with
/// activities now has others.
fn renewed(
    requests: &Requests<'_>,
    options: &SyncOptions,
    entry: &Read,
    (walked, is_sure, seen): (&Way, bool, &Seen),
) -> Result<Option<Renewed>, Error> {
    let newest_first = matches!(walked, Way::Back { link: PageLink::Next, .. });
    // A single page that grows does not move.
    let Some(first) = seen.first.as_ref().filter(|_| newest_first || seen.pages > 1) else {
        return Ok(None);
    };
    let newer = if newest_first { PageLink::Prev } else { PageLink::Next };
    let again = |page: &Read| -> Result<(Changed, Option<Read>), Error> {
        Ok(match if_there(read(requests, &page.url))? {
            Some(now) => (changed(page, &now, newer), Some(now)),
            None => (Changed::Resized, None),
        })
    };
    let (of_first, first_now) = again(first)?;
    let last = seen.last.as_ref().map(again).transpose()?;
    let of_last = last.as_ref().map_or(Changed::No, |last| last.0);
    let has_missed = match (walked, of_first, of_last) {
        (_, Changed::No, Changed::No) => return Ok(None),
        (Way::On { .. }, Changed::No, Changed::Grown) => {
            let oldest = last.and_then(|(_, oldest)| oldest);
            return Ok(oldest.map(|oldest| Renewed::Grown(Way::On { oldest })));
        }
        // New activities move others to older pages, which are read later. The last page of all is not
        // full, and has another number then.
        (Way::Back { link: PageLink::Next, .. }, first, _) => {
            matches!(first, Changed::Resized | Changed::No)
        }
        (Way::Back { .. }, Changed::Grown, Changed::No) => false,
        _ => true,
    };
    let (way, is_sure) = match (walked, first_now) {
        // The Entry Point may be older than its pages.
        (Way::Back { link, .. }, Some(first_now))
            if !newest_first || newer.of(&first_now.document).is_some() =>
        {
            let fetch = |url: &str| {
                check_host(options, &entry.url, url)?;
                read(requests, url)
            };
            let newest = newest_from(first_now, *link, &fetch)?;
            (Way::Back { newest, link: *link }, is_sure)
        }
        _ => way(requests, options, &read(requests, &entry.url)?, &mut |_| ())?,
    };
    Ok(Some(match way {
        Way::Back { .. } if !has_missed => Renewed::Grown(way),
        _ => Renewed::Moved(way, is_sure),
    }))
}

/// The difference between two versions of a page.
#[derive(Clone, Copy)]
enum Changed {
    No,
    /// The page has additional newer activities, or links to a newer page.
    Grown,
    /// The page has the same number of activities, but other ones.
    Shifted,
    /// The page has another number of activities: the size of pages has changed.
    Resized,
}

fn changed(before: &Read, now: &Read, newer: PageLink) -> Changed {
    let (before, now) = (&before.document, &now.document);
    let has_newer = newer.of(before).is_none() && newer.of(now).is_some();
    let (before, now) = (activities(before), activities(now));
    let has_grown = match newer {
        PageLink::Next => now.starts_with(&before),
        PageLink::Prev => now.ends_with(&before),
    };
    match (before.len() == now.len(), has_grown) {
        (true, true) if !has_newer => Changed::No,
        (_, true) => Changed::Grown,
        (true, false) => Changed::Shifted,
        (false, false) => Changed::Resized,
    }
}
