//! Change sets: from the current one back, until what was read before is found [rs-0.1 §6.1].
//!
//! A change set names the one before it and does not state which time it covers. So all changes are
//! known when a change set is reached that has a change read before; which those are is kept in the
//! boundary. Entries may be in any order [rs-0.1 §5.1].

use super::baseline::is_all_unchanged;
use super::cursor;
use super::document::{Read, from_of, is_change_set, read_head, target};
use super::entry_points::EntryPoints;
use super::listed::listed;
use super::pushed::{forget_pushed, is_pushed};
use crate::admit::Admission;
use crate::diagnostics::Remark;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::plan::changes::{Followed, Seen, Span};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::Expecting;
use crate::read::boundary::Boundary;
use crate::read::pieces::Go;
use crate::read::sitemap::document::{Part, read};
use crate::requests::Requests;
use abreast_resourcesync::v0_1::{CHANGE_SET, Change, Entry, Head, Root, V0_1};
use abreast_store::mirror::{Document, Mirror, PendingAction};
use abreast_webtypes::Timestamp;
use std::collections::HashSet;

/// The changes that were read last.
pub(super) const LAST: &str = "rs01-last";
/// Changes between the last snapshot and the change sets are not known: it is compared again when it
/// changes.
const UNSURE: &str = "rs01-unsure";
/// The time of the last snapshot, from which the cursor is some way back, microseconds.
const SNAPSHOT: &str = "rs01-snapshot";
/// Most change sets of a chain, each of which costs a round trip before the next is known.
const CHAIN_MAX: usize = 10_000;
/// Most change sets that are read beyond the cursor to find a change that was read before.
const MORE_SETS_MAX: usize = 3;

/// Why a walk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// What was read before was reached.
    Reached,
    /// The last change set names none before it.
    First,
    /// The one before cannot be read; why.
    Broken(String),
}

/// The times in a change set.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
}

impl Times {
    fn add(&mut self, time: Timestamp) {
        self.oldest = Some(self.oldest.map_or(time, |oldest| oldest.min(time)));
        self.newest = self.newest.max(Some(time));
    }
}

/// How far back a walk has come.
struct Reach {
    /// The change that was read last, or the instant of the snapshot.
    goal: Timestamp,
    reached: bool,
    /// Change sets read since then.
    more: usize,
}

impl Reach {
    const fn to(goal: Timestamp) -> Self {
        Self { goal, reached: false, more: 0 }
    }

    /// Takes a change set into account; whether no other need be read. `is_found` is whether it or a
    /// later one has a change that was read before; `None` when none is known. Without such a change
    /// all of a change set must be older: changes may be published late, with old times. Of changes
    /// within one second of a coarse clock some may be in the one before.
    fn is_enough(&mut self, times: Times, from: Option<Timestamp>, is_found: Option<bool>) -> bool {
        let is_fine = self.goal.as_micros() % 1_000_000 != 0;
        let goal = self.goal;
        self.more += usize::from(self.reached);
        let end = if is_found == Some(true) { times.oldest } else { times.newest };
        self.reached |= from.is_some_and(|from| from <= goal)
            || end.is_some_and(|end| end < goal || end == goal && is_fine);
        self.reached && (is_found != Some(false) || self.more > MORE_SETS_MAX)
    }
}

/// Whether changes between the last snapshot and the change sets are not known.
pub(super) fn is_unsure(mirror: &Mirror) -> Result<bool, Error> {
    Ok(mirror.meta(UNSURE)?.is_some())
}

/// Whether the Sitemap may have changes that neither it nor the change sets had when it was read: it
/// has changed since then.
pub(super) fn is_newer(run: &PlanContext<'_, '_>, sitemap: &str) -> Result<bool, Error> {
    let mirror = run.planner.mirror;
    if !is_unsure(mirror)? || is_all_unchanged(run, sitemap)? {
        return Ok(false);
    }
    let modified = read_head(run.requests, sitemap)?.modified();
    Ok(modified.is_none() || modified != cursor::time_of(mirror, SNAPSHOT)?)
}

/// Plans what changed since the cursor. One request shows that nothing did, and what was read before
/// must be found, unless a snapshot of that time was read just now.
pub(super) fn plan_changes(
    run: &mut PlanContext<'_, '_>,
    change_set: &str,
    cursor: Timestamp,
    snapshot: Option<Timestamp>,
) -> Result<Followed, Error> {
    run.report.begin_phase("reading");
    if snapshot.is_none() && run.planner.since.is_none() {
        run.planner.since = Some(cursor);
    }
    run.plan_noted(&mut |run| walk_back(run, change_set, cursor, snapshot))
}

fn walk_back(
    run: &mut PlanContext<'_, '_>,
    change_set: &str,
    cursor: Timestamp,
    snapshot: Option<Timestamp>,
) -> Result<Followed, Error> {
    let (mirror, conditional) = (run.planner.mirror, snapshot.is_none());
    let known = if conditional { mirror.document(change_set)? } else { None };
    let known = known.filter(|known| known.etag.is_some() || known.last_modified.is_some());
    let mut boundary =
        if conditional { Boundary::read(mirror, LAST)? } else { Boundary::empty(LAST) };
    boundary.begin();
    let has_known = boundary.newest_known().is_some();
    let known_until = match boundary.newest_known() {
        None if conditional => cursor::time_of(mirror, SNAPSHOT)?,
        newest => newest,
    };
    let mut reach = Reach::to(known_until.unwrap_or(cursor));
    let (mut seen, mut visited) = (Seen::default(), HashSet::new());
    let mut unclear = Unclear::since(known_since(mirror, cursor, snapshot)?, Timestamp::MIN);
    let Some(current) =
        read_one(run, change_set, known.as_ref(), cursor, &mut seen, &mut boundary, &mut unclear)?
    else {
        return Ok(Followed::Unchanged);
    };
    visited.insert(change_set.to_owned());
    visited.insert(current.read.answered.url.clone());
    let (validators, date) = (current.read.answered.validators.clone(), current.read.answered.date);
    let moved = moved_to(run, change_set, &current.read);
    let (mut one, mut oldest) = (current, Timestamp::MAX);
    let end = loop {
        let is_found = has_known.then(|| boundary.is_found());
        let from = from_of(&one.read.head).map(|from| one.read.at_latest(from));
        let first = one.times.oldest.map(|first| one.read.at_latest(first));
        oldest = oldest.min(first.unwrap_or(oldest)).min(from.unwrap_or(oldest));
        if reach.is_enough(one.times, from, is_found) {
            break End::Reached;
        }
        let Some(before) = before(&one.read) else { break End::First };
        if let Err(why) = check_next(run, change_set, &before, &mut visited) {
            break End::Broken(why);
        }
        run.requests.check_cancelled()?;
        seen.earlier_list();
        match read_one(run, &before, None, cursor, &mut seen, &mut boundary, &mut unclear) {
            Ok(Some(read)) => one = read,
            Ok(None) => break End::Broken(format!("{before} answered 304 unasked")),
            // What is gone, or is no change set, will not come back.
            Err(error) if error.exit_code() == ExitCode::SourceInvalid => {
                break End::Broken(error.to_string());
            }
            Err(error) => return Err(error),
        }
    };
    if let Some(why) = gap(&end, conditional, has_known, &boundary, &seen, cursor) {
        // Documents with later changes would have what was pushed: it was of others, or of a Source that
        // went back.
        let is_late = seen.newest.is_none_or(|newest| newest <= cursor) && is_pushed(run, cursor)?;
        return Ok(if is_late { Followed::Late(why) } else { Followed::Gap(why) });
    }
    if let Some(snapshot) = snapshot {
        let is_sure = end == End::Reached || oldest <= snapshot;
        note_unsure(run, change_set, &end, is_sure || seen.entries == 0);
        mirror.set_meta(UNSURE, (!is_sure).then_some("1"))?;
        cursor::keep_time(mirror, SNAPSHOT, Some(snapshot))?;
    }
    unclear.report(run, change_set)?;
    forget_pushed(mirror)?;
    run.plan_coming()?;
    run.keep_common(&mut seen)?;
    if seen.left_out {
        // What was left out may be any change: the next run reads all of them again.
        mirror.set_document(change_set, &Document::default())?;
        return Ok(Followed::Planned);
    }
    boundary.keep(mirror, false)?;
    if let Some(newest) = seen.newest.filter(|newest| *newest >= cursor) {
        let newest = run.not_after(change_set, "lastmod", newest, Some(date));
        cursor::set(mirror, Some(newest.max(cursor)))?;
    }
    if let Some(moved) = moved
        && read_head(run.requests, &moved).is_ok_and(|read| is_change_set(&read.head, &moved))
    {
        EntryPoints { change_set: Some(moved), ..EntryPoints::known(mirror)? }.keep(mirror)?;
    }
    // Deletions to come are checked again.
    let validators = if unclear.coming > 0 { Document::default() } else { validators };
    mirror.set_document(change_set, &validators)?;
    Ok(Followed::Planned)
}

/// Up to when all is known of a Source.
pub(super) fn known_since(
    mirror: &Mirror,
    cursor: Timestamp,
    snapshot: Option<Timestamp>,
) -> Result<Timestamp, Error> {
    let snapshot = snapshot.map_or_else(|| cursor::time_of(mirror, SNAPSHOT), |it| Ok(Some(it)))?;
    Ok(snapshot.map_or(cursor, |snapshot| snapshot.max(cursor)))
}

/// Where the current change set is now, if it states another address than its own.
fn moved_to(run: &PlanContext<'_, '_>, change_set: &str, read: &Read) -> Option<String> {
    let options = run.planner.options;
    let mut admission = Admission::new(change_set, &options.allow_hosts, options.allow_downgrade);
    let mut links = read.head.links.iter();
    let link = links.find(|link| link.has_rel(CHANGE_SET) && link.has_rel("current"))?;
    target(&read.answered.url, link).filter(|url| {
        url != change_set && *url != read.answered.url && admission.check(url).is_ok()
    })
}

/// Reports that changes between a snapshot and the change sets may be missing.
fn note_unsure(run: &mut PlanContext<'_, '_>, change_set: &str, end: &End, is_sure: bool) {
    let message = match end {
        End::Broken(why) => format!("changes before those read are not known: {why}"),
        End::First if !is_sure => "the oldest change that is listed is newer than the list of all resources; changes between \
             the two are not known, and it is compared again when it changes"
            .to_owned(),
        End::First | End::Reached => return,
    };
    run.report.notice("gap", change_set, &message);
}

/// Why changes since the cursor may be missing, if they may.
fn gap(
    end: &End,
    conditional: bool,
    has_known: bool,
    boundary: &Boundary,
    seen: &Seen,
    cursor: Timestamp,
) -> Option<String> {
    if !conditional {
        return None;
    }
    let is_missing = if has_known {
        !boundary.is_found()
    } else {
        // There was no change before; those that are there now need not be all.
        *end != End::Reached && seen.entries > 0
    };
    let why = match end {
        _ if !is_missing => return None,
        End::Broken(why) => format!(": {why}"),
        End::Reached | End::First => String::new(),
    };
    Some(format!(
        "the change sets do not lead back to the changes up to {cursor}, which the copy has{why}"
    ))
}

/// Whether the change set before may be read: one that is on an admitted host, and was not read yet.
fn check_next(
    run: &PlanContext<'_, '_>,
    change_set: &str,
    before: &str,
    visited: &mut HashSet<String>,
) -> Result<(), String> {
    let options = run.planner.options;
    let mut admission = Admission::new(change_set, &options.allow_hosts, options.allow_downgrade);
    if let Err(refusal) = admission.check(before) {
        return Err(format!("{before}: {}", refusal.message()));
    }
    if visited.len() > CHAIN_MAX {
        return Err(format!("there are more than {CHAIN_MAX} change sets"));
    }
    if !visited.insert(before.to_owned()) {
        return Err(format!("the change sets lead back to {before}, which was read already"));
    }
    Ok(())
}

/// The change set before another.
fn before(read: &Read) -> Option<String> {
    let links = || read.head.links.iter().filter(|link| link.has_rel("prev"));
    let typed = links().find(|link| link.has_rel(CHANGE_SET));
    target(&read.answered.url, typed.or_else(|| links().next())?)
}

/// A change set that was read.
struct One {
    read: Read,
    times: Times,
}

/// Reads one change set into the changes noted; `None` when it has not changed.
fn read_one(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    known: Option<&Document>,
    cursor: Timestamp,
    seen: &mut Seen,
    boundary: &mut Boundary,
    unclear: &mut Unclear,
) -> Result<Option<One>, Error> {
    let mut reading = run.reading_changes(url);
    let (last_before, requests) = (seen.last, run.requests);
    let (mut times, mut others) = (Times::default(), OtherEntries::default());
    let unclear_before = *unclear;
    let answer = read::<V0_1>(requests, url, known, &mut |part| {
        match part {
            Part::Begin(head, answered) => {
                check_root(head, url)?;
                seen.begin_list(Span::default(), last_before);
                (times, others) = (Times::default(), OtherEntries::default());
                *unclear = unclear_before;
                unclear.now = unclear.now.max(answered.latest_now());
            }
            Part::Entry(_, entry) if entry.protocol.is_some() => others.add(entry),
            Part::Entry(head, entry) => {
                check_entry(head, entry, url)?;
                let Some(change) = change_of(run, url, entry, unclear)? else {
                    return Ok(Go::On);
                };
                if let Some(time) = change.changed {
                    times.add(time);
                    // A walk up to one in the future would pass deletions to come.
                    if time <= unclear.now {
                        boundary.note(time, change.uri);
                    } else {
                        boundary.find(time, change.uri);
                    }
                }
                run.note_change(&change, cursor, seen, &mut reading)?;
            }
        }
        Ok(Go::On)
    })?;
    let Some(read) = answer else { return Ok(None) };
    others.note(requests, url);
    // A known change has the time that is written.
    times.newest = times.newest.map(|newest| read.at_latest(newest));
    seen.newest = seen.newest.max(reading.newest.map(|newest| read.at_earliest(newest)));
    seen.left_out |= run.report.left_out(url, read.skipped);
    Ok(Some(One { read, times }))
}

/// What entries of change sets do not show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unclear {
    /// Up to when the Sitemap or earlier runs have shown it.
    known: Timestamp,
    /// The latest instant that may be now, by any clock.
    now: Timestamp,
    /// Deletions to come.
    coming: u64,
    /// Resources that the copy does not have, of which no categories are stated.
    uncategorised: u64,
}

impl Unclear {
    pub(super) const fn since(known: Timestamp, now: Timestamp) -> Self {
        Self { known, now, coming: 0, uncategorised: 0 }
    }

    /// Reports them. The Sitemap shows what becomes of them.
    pub(super) fn report(
        self,
        run: &mut PlanContext<'_, '_>,
        change_set: &str,
    ) -> Result<(), Error> {
        if self.coming > 0 {
            let message = format!("deletions in the future are not applied: {}", self.coming);
            run.report.notice("time.future", change_set, &message);
        }
        if self.uncategorised > 0 {
            let message = format!(
                "new resources without categories: {}; they are left out until the Sitemap states their categories",
                self.uncategorised
            );
            run.report.notice("filter.category", change_set, &message);
        }
        if self.coming + self.uncategorised > 0 {
            run.planner.mirror.set_meta(UNSURE, Some("1"))?;
        }
        Ok(())
    }
}

/// The change of an entry, if it has happened: what `expires` later is there until then.
fn happened<'e>(url: &'e str, entry: &'e Entry, now: Timestamp) -> Option<Listed<'e>> {
    let is_coming =
        entry.change == Some(Change::Deleted) && entry.time.is_some_and(|time| time.instant > now);
    (!is_coming).then(|| listed(url, true, entry))
}

/// The change of an entry, if it has happened. One that states no category, of a resource that is
/// wanted because of those that the Sitemap states, has them still.
pub(super) fn change_of<'e>(
    run: &PlanContext<'e, '_>,
    url: &'e str,
    entry: &'e Entry,
    unclear: &mut Unclear,
) -> Result<Option<Listed<'e>>, Error> {
    let planner = &run.planner;
    let Some(mut change) = happened(url, entry, unclear.now) else {
        unclear.coming += 1;
        return Ok(None);
    };
    if planner.selection.has_categories()
        && change.categories.is_empty()
        && !change.is_deletion()
        && !planner.selection.is_left(planner.mirror, change.uri)?
    {
        let is_wanted = planner.mirror.row(change.uri)?.is_some()
            || planner
                .mirror
                .task(change.uri)?
                .is_some_and(|task| task.pending.action == PendingAction::Fetch);
        if is_wanted {
            assume_category(planner.options, &mut change);
        } else {
            let is_new = change.changed.is_none_or(|time| time > unclear.known);
            unclear.uncategorised += u64::from(is_new);
        }
    }
    Ok(Some(change))
}

/// Gives a change the categories that are wanted: its resource stays as it was.
fn assume_category<'e>(options: &'e SyncOptions, change: &mut Listed<'e>) {
    change.categories.extend(options.categories.iter().map(String::as_str).take(1));
}

/// Entries of one document that are not resources [rs-0.1 §4.3.3].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherEntries {
    count: u64,
    /// Of the first one.
    line: u64,
}

impl OtherEntries {
    pub(super) fn add(&mut self, entry: &Entry) {
        if self.count == 0 {
            self.line = entry.line;
        }
        self.count += 1;
    }

    /// Reports them, if there are any.
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
    let message = format!("{url} is not a change set: it is an index of Sitemaps");
    Err(Error::new("list.capability", ExitCode::SourceInvalid, message))
}

/// A Sitemap at the address of a change set is not read as one.
fn check_entry(head: &Head, entry: &Entry, url: &str) -> Result<(), Error> {
    if entry.change.is_some() || is_change_set(head, url) {
        return Ok(());
    }
    let message = format!(
        "{url} is not a change set: neither its root nor the entry in line {} states that it is about changes",
        entry.line
    );
    Err(Error::new("list.capability", ExitCode::SourceInvalid, message))
}

/// Hands over the changes since an instant with their times, microseconds.
///
/// # Errors
/// A change set cannot be read, or `to` fails.
pub(super) fn each_change(
    requests: &Requests<'_>,
    options: &SyncOptions,
    change_set: &str,
    since: Timestamp,
    to: &mut dyn Expecting,
) -> Result<(), Error> {
    let mut admission = Admission::new(change_set, &options.allow_hosts, options.allow_downgrade);
    let (mut visited, mut reach) = (HashSet::new(), Reach::to(since));
    let mut now = Timestamp::MIN;
    let mut next = Some(change_set.to_owned());
    while let Some(url) = next.take() {
        requests.check_cancelled()?;
        let mut times = Times::default();
        let answer = read::<V0_1>(requests, &url, None, &mut |part| {
            match part {
                Part::Begin(head, answered) => {
                    check_root(head, &url)?;
                    times = Times::default();
                    now = now.max(answered.latest_now());
                }
                Part::Entry(_, entry) if entry.protocol.is_some() => {}
                Part::Entry(head, entry) => {
                    check_entry(head, entry, &url)?;
                    let Some(mut change) = happened(&url, entry, now) else { return Ok(Go::On) };
                    let time = change.changed.unwrap_or(since);
                    times.add(time);
                    if time >= since {
                        if change.categories.is_empty() && to.is_wanted(change.uri)? {
                            assume_category(options, &mut change);
                        }
                        to.changed(&change, time.as_micros())?;
                    }
                }
            }
            Ok(Go::On)
        })?;
        let Some(read) = answer else { break };
        visited.insert(url);
        times.newest = times.newest.map(|newest| read.at_latest(newest));
        let from = from_of(&read.head).map(|from| read.at_latest(from));
        if !reach.is_enough(times, from, None) {
            let before = before(&read).filter(|url| admission.check(url).is_ok());
            next = before.filter(|url| !visited.contains(url) && visited.len() <= CHAIN_MAX);
            to.earlier_list();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(oldest: i64, newest: i64) -> Times {
        let at = |micros| Some(Timestamp::from_micros(micros));
        Times { oldest: at(oldest), newest: at(newest) }
    }

    #[test]
    fn a_walk_ends_where_what_is_known_begins() {
        let goal = Timestamp::from_micros(10_000_001);
        let missing = Some(false);
        let mut reach = Reach::to(goal);
        assert!(!reach.is_enough(times(10_000_002, 20_000_000), None, missing));
        assert!(!reach.is_enough(Times::default(), None, missing), "an empty one shows nothing");
        assert!(reach.is_enough(times(10_000_001, 20_000_000), None, Some(true)));
        // Without a known change an old time may be that of a late one.
        let mut reach = Reach::to(goal);
        assert!(!reach.is_enough(times(1, 20_000_000), None, None));
        assert!(reach.is_enough(times(1, 10_000_000), None, None));
        // A clock of whole seconds: others of that second may be in the one before.
        let mut reach = Reach::to(Timestamp::from_seconds(10));
        assert!(!reach.is_enough(times(10_000_000, 20_000_000), None, Some(true)));
        assert!(reach.is_enough(times(9_000_000, 10_000_000), None, Some(true)));
        // A time since which it has all changes counts as well.
        assert!(Reach::to(goal).is_enough(Times::default(), Some(goal), None));
        // What is known is searched for a little further.
        let mut reach = Reach::to(goal);
        let ends: Vec<_> = (0..5).map(|_| reach.is_enough(times(1, 2), None, missing)).collect();
        assert_eq!(ends, [false, false, false, false, true]);
    }
}
