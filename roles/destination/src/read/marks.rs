//! Marks: the changes that were read last, by which a later walk recognises where it is.
//!
//! A Source that does not have them any more was restored from a backup, even if it has newer changes by now, or has
//! removed some. A change of the same time that is not among them is new.

use crate::plan::listed::Listed;
use crate::state::Fingerprint;
use abreast_webtypes::{Moment, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher as _};

/// Changes that are kept; more where they have the time of the newest.
const LAST_MAX: usize = 4;
/// Most changes of one time that are kept: further ones are applied again by the next run.
const EQUAL_MAX: usize = 1_024;

/// The newest changes whose fingerprints are kept, to recognise one that is published late among them.
const RECENT_MAX: usize = 512;

/// A change that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Its time, microseconds.
    first: i64,
    last: i64,
    /// Fingerprints of its resource, and of all that its entry has.
    resource: u64,
    change: u64,
}

impl Mark {
    fn of(time: Moment, listed: &Listed<'_>) -> Self {
        let (first, last) = (time.first().as_micros(), time.last().as_micros());
        Self { first, last, resource: resource_of(listed), change: listed.fingerprint() }
    }

    /// The first instant of its time.
    pub(crate) const fn time(&self) -> Timestamp {
        Timestamp::from_micros(self.first)
    }
}

/// A fingerprint of a resource.
fn resource_of(listed: &Listed<'_>) -> u64 {
    let mut hasher = Fingerprint::new();
    listed.uri.hash(&mut hasher);
    hasher.finish()
}

/// What became of a known change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Missing,
    /// There is a newer one of its resource, which may have replaced it.
    Superseded,
    Listed,
}

/// The changes known, compared with those that a walk finds.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The newest first.
    known: Vec<(Mark, Found)>,
    /// Those of walks that the position did not move to.
    glimpsed: Vec<(Mark, Found)>,
    /// Those of this walk, the newest first.
    newest: Vec<Mark>,
}

impl Marks {
    /// A walk by a copy that knows these, and has seen others.
    pub(crate) fn known(marks: &[Mark], glimpsed: &[Mark]) -> Self {
        let missing = |marks: &[Mark]| marks.iter().map(|mark| (*mark, Found::Missing)).collect();
        Self { known: missing(marks), glimpsed: missing(glimpsed), newest: Vec::new() }
    }

    /// Whether any change is known.
    pub(crate) const fn are_any(&self) -> bool {
        !self.known.is_empty()
    }

    /// The time of the oldest change that is searched for.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.known.iter().chain(&self.glimpsed).map(|known| known.0.time()).min()
    }

    /// The time of the newest known change.
    pub(crate) fn newest_known(&self) -> Option<Timestamp> {
        self.known.iter().map(|known| known.0.time()).max()
    }

    fn compare(&mut self, mark: Mark) -> bool {
        compare(&mut self.glimpsed, mark);
        compare(&mut self.known, mark)
    }

    /// Notes a change for the next walk; whether it is one of those known.
    pub(crate) fn note(&mut self, time: Moment, listed: &Listed<'_>) -> bool {
        let is_wanted = self.newest.len() < LAST_MAX
            || self.newest.last().is_none_or(|oldest| time.first().as_micros() >= oldest.first);
        let first = time.first().as_micros();
        let may_be_known =
            self.known.iter().chain(&self.glimpsed).any(|known| first >= known.0.first);
        if !is_wanted && !may_be_known {
            return false;
        }
        let mark = Mark::of(time, listed);
        if is_wanted {
            insert(&mut self.newest, mark);
        }
        self.compare(mark)
    }

    /// A change of a resource that has no usable time may have replaced the known ones.
    pub(crate) fn supersede(&mut self, listed: &Listed<'_>) {
        let resource = resource_of(listed);
        let all = self.known.iter_mut().chain(&mut self.glimpsed);
        for known in all.filter(|it| it.0.resource == resource && it.1 == Found::Missing) {
            known.1 = Found::Superseded;
        }
    }

    /// Whether a known change was found, and every other one of the time of the newest that no later change replaced.
    pub(crate) fn are_found(&self) -> bool {
        let newest = self.known.iter().find(|known| known.1 != Found::Superseded);
        self.known.iter().any(|known| known.1 == Found::Listed)
            && newest.is_none_or(|newest| {
                let equal = self.known.iter().filter(|known| known.0.first == newest.0.first);
                equal.into_iter().all(|known| known.1 != Found::Missing)
            })
    }

    /// The time of the newest known change that is missing, of those later than the end of the walk.
    pub(crate) fn newest_lost(&self, end: Option<Timestamp>) -> Option<Timestamp> {
        let all = self.known.iter().chain(&self.glimpsed);
        let lost = all.filter(|known| known.1 == Found::Missing).map(|known| known.0.time());
        lost.filter(|time| end.is_none_or(|end| *time > end)).max()
    }

    /// Whether a known change is missing that is later than the end of the walk.
    pub(crate) fn are_lost(&self, end: Option<Timestamp>) -> bool {
        self.newest_lost(end).is_some()
    }

    /// The known changes as this walk lists them: of the same resource at the same time, under another name perhaps.
    pub(crate) fn renamed(self) -> Vec<Mark> {
        let Self { known, mut newest, .. } = self;
        let is_known = |mark: &Mark| {
            known.iter().any(|it| (it.0.first, it.0.resource) == (mark.first, mark.resource))
        };
        newest.retain(is_known);
        newest
    }

    /// The changes to recognise the next walk by; the known ones too if changes between them were not read.
    pub(crate) fn into_newest(self, is_cut: bool) -> Vec<Mark> {
        if !is_cut {
            return self.newest;
        }
        together(self.known.into_iter().map(|known| known.0).collect(), self.newest)
    }
}

/// The newest changes by their times and fingerprints: one that is later than the oldest of them, and is not among them, was
/// published late.
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

    /// Notes a change for the next walk; whether it was published after others that are later.
    pub(crate) fn note(&mut self, time: Moment, fingerprint: u64) -> bool {
        let change = (time.first().as_micros(), fingerprint);
        self.newest.insert(change);
        if self.newest.len() > RECENT_MAX {
            self.newest.pop_first();
        }
        let is_within = self.known.first().is_some_and(|oldest| oldest.0 < change.0);
        is_within && !self.known.contains(&change)
    }

    /// The newest of those found.
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

/// Compares a change with marks; whether it is one of them.
fn compare(marks: &mut [(Mark, Found)], mark: Mark) -> bool {
    let mut is_known = false;
    for (known, found) in marks {
        if known.resource != mark.resource || mark.first < known.first {
            continue;
        }
        if mark.first == known.first {
            *found = Found::Listed;
            is_known |= known.change == mark.change;
        } else if *found == Found::Missing {
            *found = Found::Superseded;
        }
    }
    is_known
}

fn insert(into: &mut Vec<Mark>, mark: Mark) {
    let place = into.partition_point(|newer| newer.first > mark.first);
    if into[place..].iter().take_while(|it| it.first == mark.first).any(|it| *it == mark) {
        return;
    }
    into.insert(place, mark);
    limit(into);
}

/// Leaves out the oldest of too many.
fn limit(marks: &mut Vec<Mark>) {
    let newest = marks.first().map(|mark| mark.last);
    let equal =
        marks.iter().take_while(|mark| newest.is_some_and(|newest| mark.last >= newest)).count();
    marks.truncate(equal.clamp(LAST_MAX, EQUAL_MAX));
}

/// The newest of two lists.
pub(crate) fn together(mut one: Vec<Mark>, two: Vec<Mark>) -> Vec<Mark> {
    for mark in two {
        insert(&mut one, mark);
    }
    one
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
            marks.note(time, &listed);
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
            marks.note(time, &listed)
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
        marks.note(time, &listed);
        assert!(marks.are_lost(None), "that of b is missing");
        let (time, listed) = change("b", 4, "2");
        marks.note(time, &listed);
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
    fn all_changes_of_the_newest_time_are_kept_and_few_others() {
        let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
        let mut changes: Vec<_> = names.iter().map(|name| (name.as_str(), 9, "x")).collect();
        changes.extend(names.iter().map(|name| (name.as_str(), 3, "y")));
        assert_eq!(read(&changes).len(), 20);
        let other: Vec<_> = (0..20).map(|time| ("a", time, "z")).collect();
        assert_eq!(read(&other).len(), LAST_MAX);
    }
}
