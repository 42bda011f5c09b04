//! Change sets: from the current change set back to the last known change [rs-0.1 §6.1].
//!
//! A change set links to the previous one, and does not contain the interval that it covers. So all
//! changes are known when the walk reaches a change set with a known change. Entries may be in any
//! order [rs-0.1 §5.1]. If the change sets with known changes were removed, the change set with the
//! same predecessor as the last walk's current change set contains the next changes.

use super::document::{Read, from_of, read_head, target};
use super::listed::listed;
use crate::plan::listed::Listed;
use crate::read::position::Bookmark;
use crate::read::sitemap::document::{Part, ZONE_MICROS, read};
use crate::read::walk::{Category, Cut, Trail, Walk};
use crate::report::clock::SECOND_MICROS;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::diagnostics::Remark;
use crate::request::pieces::Go;
use crate::request::requests::Requests;
use abreast_resourcesync::sitemap::is_no_change_set;
use abreast_resourcesync::v0_1::{CHANGE_SET, Change, Entry, Head, Root, V0_1};
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp};

/// Maximum number of change sets before the position that are read to find a known change.
const MORE_SETS_MAX: usize = 3;

/// The times in a change set.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    oldest: Option<Timestamp>,
    /// The last instants that the oldest and the newest time can mean.
    oldest_end: Option<Timestamp>,
    newest: Option<Timestamp>,
}

impl Times {
    /// Seconds are distinguished by their start.
    fn add(&mut self, at: Timestamp, time: Moment) {
        let end = if time.last() < at.plus_micros(SECOND_MICROS) { at } else { time.last() };
        self.oldest = self.oldest.into_iter().chain([at]).min();
        self.oldest_end = self.oldest_end.into_iter().chain([end]).min();
        self.newest = self.newest.max(Some(end));
    }
}

/// How far back a walk has come.
struct Reach {
    /// The change that was read last, or the instant of the snapshot.
    goal: Timestamp,
    reached: bool,
    /// A change set ends at the goal, so earlier change sets can only have other changes with that
    /// time.
    is_there: bool,
    /// Number of change sets that were read since the goal was reached.
    more: usize,
}

impl Reach {
    /// Whether all changes are known in a change set without changes after `end`, and in earlier
    /// change sets. A Sitemap need not contain all changes at its own time.
    fn is_before_goal(&self, end: Timestamp, is_found: bool) -> bool {
        end < self.goal || end == self.goal && self.is_there && is_found
    }

    const fn to(goal: Timestamp) -> Self {
        Self { goal, reached: false, is_there: false, more: 0 }
    }

    /// Adds a change set; returns whether no other change set need be read. `is_found` is whether
    /// this or a later change set has a known change; `None` if no change is known. If no known
    /// change was found, all changes of a change set must be older, because changes may be
    /// published late, with old times. Changes within one second of a coarse clock may be divided
    /// between two change sets.
    fn is_enough(&mut self, times: Times, from: Option<Timestamp>, is_found: Option<bool>) -> bool {
        self.more += usize::from(self.reached);
        let is_found_here = is_found == Some(true);
        let end = if is_found_here { times.oldest_end } else { times.newest };
        let is_fine = self.goal.as_micros() % SECOND_MICROS != 0;
        self.is_there |= is_fine && end == Some(self.goal);
        self.reached |= from.is_some_and(|from| from <= self.goal)
            || end.is_some_and(|end| self.is_before_goal(end, is_found_here))
            // Changes within that second in the previous change set were published before an older
            // change.
            || end == Some(self.goal) && times.oldest < end;
        self.reached && (is_found != Some(false) || self.more > MORE_SETS_MAX)
    }
}

/// Passes on the changes since the position of the walk, from the current change set back. Returns
/// where the current change set is now, if it is at another address.
pub(super) fn change_sets(
    walk: &mut Walk<'_, '_>,
    change_set: &str,
) -> Result<Option<String>, Error> {
    sets_before(walk, change_set, None)
}

/// A change set that cannot be read to its end, and why.
type Unreadable = (String, String);

fn sets_before(
    walk: &mut Walk<'_, '_>,
    change_set: &str,
    unreadable: Option<&Unreadable>,
) -> Result<Option<String>, Error> {
    let known = walk.known(change_set)?.filter(|_| unreadable.is_none());
    let since = walk.since();
    // If known changes are read again, they do not show that earlier changes are known.
    let newest = walk.marks().newest_known();
    let is_again = newest.zip(since).is_some_and(|(newest, since)| since.last() < newest);
    let goal = newest.filter(|_| !is_again).or(walk.position().snapshot());
    let until = since.map(Moment::last);
    let goal = goal.into_iter().chain(until).min().unwrap_or(Timestamp::MIN);
    let (mut reach, mut trail, mut deletions) =
        (Reach::to(goal), Trail::new(false), Coming::default());
    let Some(mut one) = read_one(walk, change_set, known.as_ref(), &mut deletions)? else {
        walk.walked.is_unchanged = true;
        return Ok(None);
    };
    trail.visit(change_set);
    trail.visit(&one.read.answered.url);
    let mut admission = walk.admission(change_set);
    let (validators, moved) =
        (one.read.answered.validators.clone(), moved_to(walk.options, change_set, &one.read));
    let (mut oldest, mut url) = (None::<Timestamp>, change_set.to_owned());
    let modified = one.read.modified();
    let place = before(&one.read).map(|before| after(&before));
    let (entries_of_current, mut is_next, mut is_replaced) = (one.entries as u64, false, false);
    let is_joined = loop {
        let has_marks = walk.marks().are_any() && !is_again;
        let is_found = has_marks.then(|| walk.marks().are_found());
        let from = from_of(&one.read.head).map(|from| one.read.at_latest(from));
        let first = one.times.oldest.map(|first| one.read.at_latest(first));
        oldest = oldest.into_iter().chain(first).chain(from).min();
        if reach.is_enough(one.span(), from, is_found) {
            break true;
        }
        // If the first change set contains known changes, no change is missing.
        let Some(before) = before(&one.read) else {
            break is_found == Some(true) || reach.is_there || walk.marks().ahead.are_found();
        };
        let next = trail.check(&url, one.entries, &before).and_then(|()| {
            let cut = |code, why| Err(Cut { is_newer: false, code, url: url.clone(), why });
            if let Err(refusal) = admission.check(&before) {
                return cut(refusal.code(), format!("{before}: {}", refusal.message()));
            }
            Ok(())
        });
        if let Err(cut) = next {
            walk.cut(cut);
            break false;
        }
        walk.requests.check_cancelled()?;
        walk.earlier_document();
        trail.visit(&before);
        let entries = walk.walked.entries;
        let read = match unreadable.filter(|it| it.0 == before) {
            Some((_, why)) => Err(Error::new("list.chain", ExitCode::SourceInvalid, why)),
            None => read_one(walk, &before, None, &mut deletions),
        };
        let why = match read {
            Ok(Some(read)) => {
                (one, url) = (read, before);
                continue;
            }
            Ok(None) => format!("{before} answered 304 unasked"),
            // A change set that was read only partially does not count: all change sets are read
            // again without it.
            Err(error) if error.may_be_gone() && walk.walked.entries > entries => {
                walk.restart()?;
                return sets_before(walk, change_set, Some(&(before, error.to_string())));
            }
            // A document that was removed, or is not a change set, will not be restored.
            Err(error) if error.may_be_gone() => {
                let known = walk.position().bookmark.as_ref();
                let known = known.filter(|known| known.document == after(&before));
                // The previous change set has known changes, which were not found.
                let is_before = is_found == Some(false);
                // A change set that replaces the current one of the last walk contains its changes.
                is_replaced = is_before && known.is_some_and(|known| known.entries > 0);
                // If no changes are searched for, others with that time may be missing after a gap,
                // if this change set has any.
                let may_miss = one.times.newest.is_some() && (is_again || walk.follows_gap());
                let is_there = reach.is_there && is_found.unwrap_or(!may_miss);
                // An existing change set was not removed, whatever it contains.
                is_next = error.status().is_some() && (is_there || known.is_some() && !is_replaced);
                error.to_string()
            }
            Err(error) => return Err(error),
        };
        if is_next {
            break true;
        }
        walk.cut(Cut { is_newer: false, code: "list.chain", url: url.clone(), why });
        break false;
    };
    if is_joined {
        walk.walked.cut = None;
        let place = place.filter(|_| since.is_some());
        let entries = entries_of_current;
        let bookmark = |document| Bookmark { document, entries, ..Bookmark::default() };
        walk.walked.bookmark = place.map(bookmark);
    }
    if is_next {
        // The change sets with known changes were removed.
        walk.walked.end = until;
    } else if is_joined {
        // The known changes with the newest time must be found.
        let searched = i64::from(walk.marks().are_any());
        walk.walked.end = Some(goal.plus_micros(-searched));
    }
    match oldest {
        Some(_) if is_joined => walk.reaches_back_to(Moment::exact(goal)),
        // A chain that leads past the known changes shows whether it contains them.
        Some(oldest) if trail.len() > 2 && oldest < goal && walk.walked.cut.is_none() => {}
        // The first change set need not be the start of all changes.
        _ if walk.is_conditional() && (oldest.is_some() || walk.marks().are_any()) => {
            let why =
                walk.walked.cut.take().map_or_else(String::new, |cut| format!(": {}", cut.why));
            let until = since.map(|since| since.first().to_string()).unwrap_or_default();
            let why = format!(
                "the change sets do not lead back to the changes up to {until}, which the copy has{why}"
            );
            // A change set that was modified before that time never had these changes.
            let is_older = modified.zip(since).is_some_and(|(own, since)| own.is_before(since));
            let went_back = is_older || is_replaced;
            let shown = if went_back { &mut walk.walked.went_back } else { &mut walk.walked.hole };
            *shown = Some(why);
        }
        Some(oldest)
            if since.is_some_and(|since| since.last() < oldest) && walk.walked.cut.is_none() =>
        {
            let message = "the oldest change that is listed is newer than the list of all resources; changes between \
                the two are not known, and the list is compared again when it changes";
            walk.notice("gap", change_set, message);
            walk.walked.is_apart = true;
            walk.walked.recheck = Some(message.to_owned());
        }
        None if !is_joined => {
            // Some may have been removed.
            let modified = one.read.modified();
            walk.walked.is_apart = modified.is_some_and(|modified| modified.first() > goal);
            let mut why = "the change sets list nothing yet";
            if walk.walked.is_apart && !walk.is_conditional() {
                why = "the change sets were modified after the list of all resources, and list nothing; changes between the two \
                    are not known, and the list is compared again when it changes";
                walk.notice("gap", change_set, why);
            }
            walk.walked.recheck = Some(why.to_owned());
        }
        _ => {}
    }
    if deletions.count > 0 {
        let message = format!("deletions in the future are not applied: {}", deletions.count);
        walk.notice("time.future", change_set, &message);
        walk.walked.recheck = Some(message);
    }
    // Deletions to come are checked again. One without changes and time is the same in every history.
    let is_same = deletions.count == 0 && (entries_of_current > 0 || modified.is_some());
    let validators = if is_same { validators } else { Document::default() };
    walk.keep_document(change_set, &validators);
    let Some(moved) = moved else { return Ok(None) };
    let is_there =
        read_head(walk.requests, &moved).is_ok_and(|read| read.head.is_change_set(&moved));
    Ok(is_there.then_some(moved))
}

/// Deletions that have not happened yet.
#[derive(Clone, Copy, Debug, Default)]
struct Coming {
    count: u64,
}

/// The current address of the current change set, if the document has a link to another address.
fn moved_to(options: &SyncOptions, change_set: &str, read: &Read) -> Option<String> {
    let mut admission = Admission::new(change_set, &options.allow_hosts, options.allow_downgrade);
    let mut links = read.head.links.iter();
    let link = links.find(|link| link.has_rel(CHANGE_SET) && link.has_rel("current"))?;
    target(&read.answered.url, link).filter(|url| {
        url != change_set && *url != read.answered.url && admission.check(url).is_ok()
    })
}

/// The change set before another.
fn before(read: &Read) -> Option<String> {
    let links = || read.head.links.iter().filter(|link| link.has_rel("prev"));
    let typed = links().find(|link| link.has_rel(CHANGE_SET));
    target(&read.answered.url, typed.or_else(|| links().next())?)
}

/// The name of the place after a change set.
fn after(url: &str) -> String {
    format!("after {url}")
}

/// A change set that was read.
struct One {
    read: Read,
    times: Times,
    entries: usize,
}

impl One {
    /// The times of the changes. A change set without changes, or only with future changes, was
    /// modified after all previous change sets.
    fn span(&self) -> Times {
        let mut times = self.times;
        if times.newest.is_none()
            && let Some(modified) = self.read.head.modified
        {
            let modified = self.read.at_latest(modified.instant);
            times.add(modified, Moment::exact(modified));
        }
        times
    }
}

/// Reads a change set; `None` if it has not changed.
fn read_one(
    walk: &mut Walk<'_, '_>,
    url: &str,
    known: Option<&Document>,
    coming: &mut Coming,
) -> Result<Option<One>, Error> {
    let requests = walk.requests;
    let (mut times, mut others, mut entries) = (Times::default(), OtherEntries::default(), 0);
    let (coming_before, mut now) = (*coming, Timestamp::MIN);
    let answer = read::<V0_1>(requests, url, known, &mut |part| {
        match part {
            Part::Begin(head, answered) => {
                check_root(head, url)?;
                walk.clock(answered);
                let modified = head.modified.map(|modified| modified.instant);
                walk.reads_back(modified);
                walk.begin_changes(url, None, None);
                (times, others, entries) = (Times::default(), OtherEntries::default(), 0);
                *coming = coming_before;
                // The Source's clock has reached the position, and the time at which it wrote the
                // change set.
                let reached = walk.since().map(Moment::last);
                let reached = reached.max(modified);
                now = walk.latest().max(reached.unwrap_or(Timestamp::MIN));
            }
            Part::Entry(_, entry) if entry.protocol.is_some() => others.add(entry),
            Part::Entry(head, entry) => {
                check_entry(head, entry, url)?;
                entries += 1;
                if !hand_over(walk, url, entry, now)? {
                    coming.count += 1;
                } else if let Some(time) = entry.time
                    && !walk.is_future(time.instant)
                {
                    times.add(time.instant, time.moment());
                }
            }
        }
        Ok(Go::On)
    })?;
    let Some(read) = answer else { return Ok(None) };
    if others.count > 0 && entries == 0 {
        walk.unusable(|| {
            format!("all entries of {url} are addresses of another protocol, such as OAI-PMH")
        });
    }
    others.note(requests, url);
    walk.end_changes();
    // A known change has the time that is written.
    times.newest = times.newest.map(|newest| read.at_latest(newest));
    if read.zoneless {
        walk.walked.widen = ZONE_MICROS;
    }
    walk.skipped(url, read.skipped)?;
    Ok(Some(One { read, times, entries }))
}

/// Passes on the change of an entry, if it has happened: a resource that `expires` later exists
/// until then. A change without categories retains the categories of its resource in the Sitemap.
pub(super) fn hand_over(
    walk: &mut Walk<'_, '_>,
    url: &str,
    entry: &Entry,
    now: Timestamp,
) -> Result<bool, Error> {
    let is_coming =
        entry.change == Some(Change::Deleted) && entry.time.is_some_and(|time| time.instant > now);
    if is_coming {
        return Ok(false);
    }
    let mut change: Listed<'_> = listed(url, true, entry);
    let options = walk.options;
    if walk.category(&change)? == Category::AsKept {
        change.categories.extend(options.categories.iter().map(String::as_str).take(1));
    }
    walk.change(&change)?;
    Ok(true)
}

/// Entries of a document that are not resources [rs-0.1 §4.3.3].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherEntries {
    pub(super) count: u64,
    /// The line of the first such entry.
    line: u64,
}

impl OtherEntries {
    pub(super) fn add(&mut self, entry: &Entry) {
        if self.count == 0 {
            self.line = entry.line;
        }
        self.count += 1;
    }

    /// Reports the entries, if there are any.
    pub(super) fn note(self, requests: &Requests<'_>, url: &str) {
        let Self { count: count @ 1.., line } = self else { return };
        let message = "entries that are addresses of another protocol, such as OAI-PMH, and no \
                       resources: not supported, left out"
            .to_owned();
        requests.diagnostics.note(url, Remark { code: "rs.protocol", line, message, count });
    }
}

fn check_root(head: &Head, url: &str) -> Result<(), Error> {
    if head.root == Root::UrlSet {
        return Ok(());
    }
    let message = is_no_change_set(url, None);
    Err(Error::new("list.capability", ExitCode::SourceInvalid, message))
}

/// A Sitemap at the address of a change set is an error.
fn check_entry(head: &Head, entry: &Entry, url: &str) -> Result<(), Error> {
    if entry.change.is_some() || head.is_change_set(url) {
        return Ok(());
    }
    let message = is_no_change_set(url, Some(entry.line));
    Err(Error::new("list.capability", ExitCode::SourceInvalid, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(oldest: i64, newest: i64) -> Times {
        let at = |micros| Some(Timestamp::from_micros(micros));
        Times { oldest: at(oldest), oldest_end: at(oldest), newest: at(newest) }
    }

    #[test]
    fn a_walk_ends_where_what_is_known_begins() {
        let goal = Timestamp::from_micros(10_000_001);
        let missing = Some(false);
        let mut reach = Reach::to(goal);
        assert!(!reach.is_enough(times(10_000_002, 20_000_000), None, missing));
        assert!(!reach.is_enough(Times::default(), None, missing), "an empty one shows nothing");
        assert!(reach.is_enough(times(10_000_001, 20_000_000), None, Some(true)));
        // If no known change was found, an old time may be the time of a late change.
        let mut reach = Reach::to(goal);
        assert!(!reach.is_enough(times(1, 20_000_000), None, None));
        assert!(reach.is_enough(times(1, 10_000_000), None, None));
        let mut reach = Reach::to(goal);
        assert!(!reach.is_enough(times(10_000_001, 10_000_001), None, None), "others of that time");
        // A clock of whole seconds: other changes within that second may be in the previous set.
        let mut reach = Reach::to(Timestamp::from_seconds(10));
        assert!(!reach.is_enough(times(10_000_000, 20_000_000), None, Some(true)));
        assert!(reach.is_enough(times(9_000_000, 10_000_000), None, Some(true)));
        // A time since which it has all changes counts as well.
        assert!(Reach::to(goal).is_enough(Times::default(), Some(goal), None));
        // The search for known changes continues for a few sets.
        let mut reach = Reach::to(goal);
        let ends: Vec<_> = (0..5).map(|_| reach.is_enough(times(1, 2), None, missing)).collect();
        assert_eq!(ends, [false, false, false, false, true]);
    }
}
