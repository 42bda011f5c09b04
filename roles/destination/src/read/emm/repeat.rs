//! Walks that are repeated until the pages do not change while they are read.

use super::document::{Read, read};
use super::find::check_host;
use super::walk::{PageLink, PageOfItems, Seen, Since, Way, activities, newest_from, way};
use crate::error::Error;
use crate::options::SyncOptions;
use crate::requests::Requests;

/// Most walks of one run.
const WALKS_MAX: usize = 5;
/// Most of them from the beginning, while new activities move others to other pages.
const WHOLE_WALKS_MAX: usize = 3;

/// What a repeated walk hands over.
pub(super) enum Step<'s, 'p> {
    /// A page, and whether times show that it is read in the right direction.
    Page(&'s PageOfItems<'p>, bool),
    /// All pages follow again: what was found so far counts no longer.
    Again,
    /// The pages that are new follow.
    Newer,
}

/// What is to be read after a walk during which the pages changed.
enum Renewed {
    /// All of it again, and whether times show that it is the right way.
    Moved(Way, bool),
    /// Only what is new.
    Grown(Way),
}

/// Hands over the pages with changes since then, or all pages, until they do not change meanwhile.
pub(super) fn walk(
    requests: &Requests<'_>,
    options: &SyncOptions,
    entry: &Read,
    found: (Way, bool),
    since: Option<Since>,
    each: &mut dyn FnMut(Step<'_, '_>) -> Result<(), Error>,
) -> Result<Seen, Error> {
    let (mut way, mut is_sure) = found;
    let (mut begin, mut before) = (since, None);
    let mut number = 0;
    loop {
        number += 1;
        let read =
            way.walk(requests, options, begin, &mut |page| each(Step::Page(page, is_sure)))?;
        let seen = match before.take() {
            Some(before) => with_newer(before, read),
            None => read,
        };
        // Where nothing is newer than what is known, nothing can have been missed.
        let is_known = |since: Since| seen.newest.is_some_and(|newest| newest <= since.cursor);
        if number == WALKS_MAX || since.is_some_and(is_known) {
            return Ok(seen);
        }
        match renewed(requests, options, entry, (&way, is_sure, &seen), number < WHOLE_WALKS_MAX)? {
            Some(Renewed::Moved(moved, sure)) => {
                (way, is_sure, begin) = (moved, sure, since);
                each(Step::Again)?;
            }
            Some(Renewed::Grown(newer)) => {
                (way, begin) = (newer, seen.newest.map(Since::time).or(since));
                before = Some(seen);
                each(Step::Newer)?;
            }
            None => return Ok(seen),
        }
    }
}

/// A walk, and one to what was new since then.
fn with_newer(before: Seen, newer: Seen) -> Seen {
    Seen {
        newest: before.newest.max(newer.newest),
        began: newer.began,
        cut: before.cut.or(newer.cut),
        first: newer.first.or(before.first),
        pages: before.pages + newer.pages,
        ..before
    }
}

/// What is to be read because the pages changed while they were read: the first or the last page
/// with activities has others then. If not `may_repeat`, pages that moved are read again only as far
/// as they have newer activities.
fn renewed(
    requests: &Requests<'_>,
    options: &SyncOptions,
    entry: &Read,
    (walked, is_sure, seen): (&Way, bool, &Seen),
    may_repeat: bool,
) -> Result<Option<Renewed>, Error> {
    let moves = matches!(walked, Way::Back { link: PageLink::Next, .. });
    // A single page that grows does not move.
    let Some(first) = seen.first.as_ref().filter(|_| moves || seen.pages > 1) else {
        return Ok(None);
    };
    let first_now = read(requests, &first.url)?;
    let link = match walked {
        Way::Back { link: PageLink::Next, .. } => PageLink::Prev,
        _ => PageLink::Next,
    };
    let of_first = changed(first, &first_now, link);
    let last = seen.last.as_ref();
    let last = last.map(|last| Ok::<_, Error>((last, read(requests, &last.url)?))).transpose()?;
    let of_last = last.as_ref().map_or(Changed::No, |(last, now)| changed(last, now, link));
    if matches!((&of_first, &of_last), (Changed::No, Changed::No)) {
        return Ok(None);
    }
    if let (Way::On { .. }, Changed::No, Changed::Grown, Some((_, oldest))) =
        (walked, &of_first, &of_last, last)
    {
        return Ok(Some(Renewed::Grown(Way::On { oldest })));
    }
    let only_grew = matches!(walked, Way::Back { link: PageLink::Prev, .. })
        && matches!((&of_first, &of_last), (Changed::Grown, Changed::No));
    let (way, is_sure) = match walked {
        // The Entry Point may be older than its pages.
        Way::Back { link, .. } if only_grew || link.back().of(&first_now.document).is_some() => {
            let fetch = |url: &str| {
                check_host(options, &entry.url, url)?;
                read(requests, url)
            };
            let newest = newest_from(first_now, *link, &fetch)?;
            (Way::Back { newest, link: *link }, is_sure)
        }
        _ => way(requests, options, &read(requests, &entry.url)?)?,
    };
    Ok(Some(match way {
        Way::Back { .. } if only_grew || !may_repeat => Renewed::Grown(way),
        _ => Renewed::Moved(way, is_sure),
    }))
}

/// How a page differs from what it was.
enum Changed {
    No,
    /// It has more activities, behind those that it had, or leads to a newer page.
    Grown,
    Moved,
}

fn changed(before: &Read, now: &Read, newer: PageLink) -> Changed {
    let (before, now) = (&before.document, &now.document);
    let has_newer = newer.of(before).is_none() && newer.of(now).is_some();
    match activities(now).strip_prefix(activities(before).as_slice()) {
        Some([]) if !has_newer => Changed::No,
        Some(_) => Changed::Grown,
        None => Changed::Moved,
    }
}
