//! Marks: the changes that were read last, by which a later walk recognises its place.
//!
//! A Source that lacks these changes has removed old changes, or was restored from a backup, even
//! if it has newer changes by now. A change with the same time that is not among the marks is new.

use super::ahead::{Ahead, AheadMark};
use crate::plan::listed::Listed;
use crate::read::ahead::resource_of;
use abreast_webtypes::{Moment, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Number of newest changes that are stored; all changes with the newest time are stored too.
const LAST_MAX: usize = 4;
/// Maximum number of stored changes with the same time; their fingerprints determine which ones.
const EQUAL_MAX: usize = 1_024;

/// Number of newest changes whose fingerprints are stored, to recognise a change that is published
/// late among them.
const RECENT_MAX: usize = 512;

/// A change that was read. Marks are ordered by their times, then by their fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The earliest possible time of the change, in microseconds; then the latest.
    first: i64,
    last: i64,
    /// Fingerprints of the resource and of the whole entry.
    resource: u64,
    change: u64,
}

impl Mark {
    fn of(time: Moment, listed: &Listed<'_>, change: u64) -> Self {
        let (first, last) = (time.first().as_micros(), time.last().as_micros());
        Self { first, last, resource: resource_of(listed), change }
    }

    /// The first instant of its time.
    pub(crate) const fn time(&self) -> Timestamp {
        Timestamp::from_micros(self.first)
    }
}

/// Whether a change is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsKnown {
    Yes,
    No,
    /// The change has the time of more changes than are stored.
    Unclear,
}

/// The status of a known change in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Missing,
    /// There is a newer change of the same resource, which may have replaced this change.
    Superseded,
    Listed,
}

/// Known changes, by their resources.
#[derive(Debug, Default)]
struct Known {
    of_resource: HashMap<u64, Vec<(Mark, Found)>>,
    count: usize,
    oldest: Option<Mark>,
}

impl Known {
    fn new(marks: &[Mark]) -> Self {
        let (count, oldest) = (marks.len(), marks.iter().min().copied());
        let mut of_resource: HashMap<u64, Vec<(Mark, Found)>> = HashMap::new();
        for mark in marks {
            of_resource.entry(mark.resource).or_default().push((*mark, Found::Missing));
        }
        Self { of_resource, count, oldest }
    }

    fn all(&self) -> impl Iterator<Item = &(Mark, Found)> {
        self.of_resource.values().flatten()
    }

    /// Compares a change with the known changes.
    fn compare(&mut self, mark: Mark) -> IsKnown {
        let mut is_known = false;
        for (known, found) in self.of_resource.get_mut(&mark.resource).into_iter().flatten() {
            if mark.first < known.first {
                continue;
            }
            if mark.first == known.first {
                *found = Found::Listed;
                is_known |= known.change == mark.change;
            } else if *found == Found::Missing {
                *found = Found::Superseded;
            }
        }
        let is_left_out = self.count >= EQUAL_MAX
            && self.oldest.is_some_and(|oldest| mark.first == oldest.first && mark < oldest);
        if is_known {
            IsKnown::Yes
        } else if is_left_out {
            IsKnown::Unclear
        } else {
            IsKnown::No
        }
    }

    /// Records a change of a resource without a usable time, which may have replaced known changes.
    fn supersede(&mut self, resource: u64) {
        for (_, found) in self.of_resource.get_mut(&resource).into_iter().flatten() {
            if *found == Found::Missing {
                *found = Found::Superseded;
            }
        }
    }
}

/// The known changes, compared with the changes of a walk.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    known: Known,
    /// Changes of walks to which the position did not move.
    glimpsed: Known,
    /// The changes of this walk.
    newest: BTreeSet<Mark>,
    /// Changes with times in the future.
    pub(crate) ahead: Ahead,
}

impl Marks {
    /// The changes that a copy knows, and other changes that it has seen.
    pub(crate) fn known(marks: &[Mark], glimpsed: &[Mark]) -> Self {
        let (known, glimpsed) = (Known::new(marks), Known::new(glimpsed));
        Self { known, glimpsed, ..Self::default() }
    }

    /// Adds known changes with times in the future.
    pub(crate) fn with_ahead(mut self, ahead: &[AheadMark]) -> Self {
        self.ahead = Ahead::known(ahead);
        self
    }

    /// Whether any change is known.
    pub(crate) const fn are_any(&self) -> bool {
        self.known.count > 0
    }

    /// The time of the oldest change that is searched for.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        let oldest = self.known.oldest.into_iter().chain(self.glimpsed.oldest).min();
        oldest.map(|mark| mark.time())
    }

    /// The time of the newest known change.
    pub(crate) fn newest_known(&self) -> Option<Timestamp> {
        self.known.all().map(|known| known.0.time()).max()
    }

    /// Records a change with this fingerprint for the next walk; returns whether the change is
    /// known.
    pub(crate) fn note(&mut self, time: Moment, listed: &Listed<'_>, change: u64) -> IsKnown {
        let is_since =
            |oldest: Option<Timestamp>| oldest.is_some_and(|oldest| time.first() >= oldest);
        let is_wanted =
            self.newest.len() < LAST_MAX || is_since(self.newest.first().map(Mark::time));
        if !is_wanted && !is_since(self.oldest()) {
            return IsKnown::No;
        }
        let mark = Mark::of(time, listed, change);
        if is_wanted {
            insert(&mut self.newest, mark);
        }
        self.glimpsed.compare(mark);
        self.known.compare(mark)
    }

    /// Records a change of a resource without a usable time, which may have replaced known changes.
    pub(crate) fn supersede(&mut self, listed: &Listed<'_>) {
        let resource = resource_of(listed);
        self.known.supersede(resource);
        self.glimpsed.supersede(resource);
    }

    /// Whether a known change was found, and also every other change with the newest time that no
    /// later change replaced.
    pub(crate) fn are_found(&self) -> bool {
        let known = || self.known.all().filter(|known| known.1 != Found::Superseded);
        let newest = known().map(|known| known.0.first).max();
        known().any(|known| known.1 == Found::Listed)
            && known()
                .filter(|known| Some(known.0.first) == newest)
                .all(|known| known.1 != Found::Missing)
    }

    /// The time of the newest known change that is missing, among changes later than the end of the
    /// walk.
    pub(crate) fn newest_lost(&self, end: Option<Timestamp>) -> Option<Timestamp> {
        let all = self.known.all().chain(self.glimpsed.all());
        let lost = all.filter(|known| known.1 == Found::Missing).map(|known| known.0.time());
        lost.filter(|time| end.is_none_or(|end| *time > end)).max()
    }

    /// Whether a known change is missing that is later than the end of the walk.
    pub(crate) fn are_lost(&self, end: Option<Timestamp>) -> bool {
        self.newest_lost(end).is_some()
    }

    /// The known changes as this walk lists them: changes of the same resource at the same time,
    /// possibly with another fingerprint of the change.
    pub(crate) fn renamed(self) -> Vec<Mark> {
        let known = |resource| self.known.of_resource.get(&resource).into_iter().flatten();
        let is_known = |mark: &&Mark| known(mark.resource).any(|it| it.0.first == mark.first);
        self.newest.iter().rev().filter(is_known).copied().collect()
    }

    /// The changes to recognise the next walk by, the newest first; the known ones too if changes between them were not read.
    pub(crate) fn into_newest(self, is_cut: bool) -> Vec<Mark> {
        let mut newest = self.newest;
        if is_cut {
            self.known.all().for_each(|known| insert(&mut newest, known.0));
        }
        newest.into_iter().rev().collect()
    }
}

/// The newest changes, by time and fingerprint. A change that is later than the oldest of these
/// changes, and is not among them, was published late.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    known: BTreeSet<(i64, u64)>,
    newest: BTreeSet<(i64, u64)>,
}

impl Recent {
    /// A walk by a copy that knows these.
    pub(crate) fn known(known: &[(i64, u64)]) -> Self {
        Self { known: known.iter().copied().collect(), newest: BTreeSet::new() }
    }

    /// Records a change for the next walk; returns whether the change was published after later
    /// changes.
    pub(crate) fn note(&mut self, time: Moment, fingerprint: u64) -> bool {
        let change = (time.first().as_micros(), fingerprint);
        self.newest.insert(change);
        if self.newest.len() > RECENT_MAX {
            self.newest.pop_first();
        }
        let is_within = self.known.first().is_some_and(|oldest| oldest.0 < change.0);
        is_within && !self.known.contains(&change)
    }

    /// Whether an earlier walk found a change.
    pub(crate) fn is_known(&self, time: Moment, fingerprint: u64) -> bool {
        self.known.contains(&(time.first().as_micros(), fingerprint))
    }

    /// The newest changes that were found.
    pub(crate) fn into_newest(self) -> Vec<(i64, u64)> {
        self.newest.into_iter().collect()
    }
}

/// The newest of two lists of recent changes.
pub(crate) fn newest_of(one: &[(i64, u64)], two: &[(i64, u64)]) -> Vec<(i64, u64)> {
    let all: BTreeSet<_> = one.iter().chain(two).copied().collect();
    let before = all.len().saturating_sub(RECENT_MAX);
    all.into_iter().skip(before).collect()
}

/// Adds a change to the newest, and leaves out the oldest of too many: all of the time of the newest count, up to a limit.
fn insert(into: &mut BTreeSet<Mark>, mark: Mark) {
    into.insert(mark);
    let is_too_many = |into: &BTreeSet<Mark>| {
        let is_older =
            into.first().zip(into.last()).is_some_and(|(oldest, newest)| oldest.last < newest.last);
        into.len() > EQUAL_MAX || into.len() > LAST_MAX && is_older
    };
    while is_too_many(into) {
        into.pop_first();
    }
}

/// The newest of two lists.
pub(crate) fn together(one: Vec<Mark>, two: Vec<Mark>) -> Vec<Mark> {
    let mut newest = BTreeSet::new();
    one.into_iter().chain(two).for_each(|mark| insert(&mut newest, mark));
    newest.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::testing::listed;

    fn at(micros: i64) -> Moment {
        Moment::exact(Timestamp::from_micros(micros))
    }

    fn change<'l>(uri: &'l str, time: i64, id: &'l str) -> (Moment, Listed<'l>) {
        let listed =
            Listed { changed: Some(at(time)), id: Some(id), ..listed("", uri, Vec::new()) };
        (at(time), listed)
    }

    fn read(changes: &[(&str, i64, &str)]) -> Vec<Mark> {
        let mut marks = Marks::default();
        for (uri, time, id) in changes {
            let (time, listed) = change(uri, *time, id);
            marks.note(time, &listed, listed.fingerprint());
        }
        marks.into_newest(false)
    }

    #[test]
    fn marks_of_earlier_versions_are_known() {
        const MARK: (u64, u64) = (13_405_108_197_428_339_873, 18_131_632_274_211_145_277);
        let (_, listed) = change("http://a.example/1", 7, "id");
        assert_eq!((resource_of(&listed), listed.fingerprint()), MARK);
    }

    #[test]
    fn another_change_of_one_time_is_new() {
        let mut marks = Marks::known(&read(&[("a", 5, "1"), ("b", 5, "2")]), &[]);
        let mut find = |uri, time, id| {
            let (time, listed) = change(uri, time, id);
            marks.note(time, &listed, listed.fingerprint()) == IsKnown::Yes
        };
        assert!(find("a", 5, "1") && find("b", 5, "2"));
        assert!(!find("a", 5, "3") && !find("c", 5, "4") && !find("a", 6, "1"));
        assert!(marks.are_found() && !marks.are_lost(None));
    }

    #[test]
    fn a_change_that_is_missing_was_lost_unless_it_was_replaced() {
        let known = read(&[("a", 5, "1"), ("b", 4, "2")]);
        let mut marks = Marks::known(&known, &[]);
        assert!(marks.are_lost(None) && !marks.are_found());
        assert!(!marks.are_lost(Some(Timestamp::from_micros(5))), "it was not searched for");
        let (time, listed) = change("a", 9, "7");
        marks.note(time, &listed, listed.fingerprint());
        assert!(marks.are_lost(None), "that of b is missing");
        let (time, listed) = change("b", 4, "2");
        marks.note(time, &listed, listed.fingerprint());
        assert!(!marks.are_lost(None) && marks.are_found());
    }

    #[test]
    fn a_change_among_known_ones_was_published_late() {
        let exact = |micros| Moment::exact(Timestamp::from_micros(micros));
        let mut walk = Recent::default();
        assert!(!walk.note(exact(10), 1) && !walk.note(exact(20), 2) && !walk.note(exact(30), 3));
        let mut next = Recent::known(&walk.into_newest());
        assert!(!next.note(exact(20), 2) && !next.note(exact(30), 3), "known");
        assert!(!next.note(exact(10), 7), "of those of the oldest time not all need be known");
        assert!(next.note(exact(25), 4) && next.note(exact(20), 5));
        let found = next.into_newest();
        assert_eq!(found.len(), 5);
        let many: Vec<_> = (0..2 * RECENT_MAX).map(|number| (number as i64, 0)).collect();
        assert_eq!(newest_of(&many, &found).len(), RECENT_MAX);
    }

    #[test]
    fn where_all_are_known_one_before_all_of_them_is_late() {
        let exact = |micros| Moment::exact(Timestamp::from_micros(micros));
        let mut next = Recent::known(&[(i64::MIN, 0), (20, 2)]);
        assert!(!next.note(exact(20), 2) && next.note(exact(20), 3) && next.note(exact(10), 1));
        let many: Vec<_> = (0..RECENT_MAX).map(|number| (number as i64, 0)).collect();
        let mut next = Recent::known(&newest_of(&[(i64::MIN, 0)], &many));
        assert!(!next.note(exact(-5), 1), "older ones need not be known any more");
    }

    #[test]
    fn changes_of_one_time_beyond_those_kept_are_unclear() {
        let names: Vec<String> = (0..3 * EQUAL_MAX).map(|number| format!("n{number}")).collect();
        let changes: Vec<_> = names.iter().map(|name| (name.as_str(), 9, "x")).collect();
        let known = read(&changes);
        let reversed: Vec<_> = changes.iter().rev().copied().collect();
        assert_eq!(
            (known.len(), &known),
            (EQUAL_MAX, &read(&reversed)),
            "the order does not decide"
        );
        let mut marks = Marks::known(&known, &[]);
        let mut note = |(uri, time, id): (&str, i64, &str)| {
            let (time, listed) = change(uri, time, id);
            marks.note(time, &listed, listed.fingerprint())
        };
        assert!(changes.iter().all(|change| note(*change) != IsKnown::No));
        assert_eq!(note(("n0", 10, "x")), IsKnown::No);
        assert!(marks.are_found() && !marks.are_lost(None));
    }

    #[test]
    fn all_changes_of_the_newest_time_are_kept_and_few_others() {
        let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
        let mut changes: Vec<_> = names.iter().map(|name| (name.as_str(), 9, "x")).collect();
        changes.extend(names.iter().map(|name| (name.as_str(), 3, "y")));
        assert_eq!(read(&changes).len(), 20);
        let other: Vec<_> = (0..20).map(|time| ("a", time, "z")).collect();
        assert_eq!(read(&other).len(), LAST_MAX);
    }
}
