//! Changes that were read while their times were in the future. The position is before such
//! changes. If a server is restored to a backup without them, only their absence shows the restore.

use crate::copy::fingerprint::Fingerprint;
use crate::plan::listed::Listed;
use abreast_webtypes::{Moment, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher as _};

/// Maximum number of remembered entries with times in the future.
pub(crate) const FUTURE_MAX: usize = 1_024;

/// A change whose time was in the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AheadMark {
    /// The time of the change in microseconds, and the fingerprint of its resource.
    time: i64,
    resource: u64,
    /// The place in the order of the documents, as a time in microseconds.
    place: i64,
}

/// The changes of earlier walks, compared with the changes of this walk.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Changes of earlier walks by resource, and whether the change, or a later change of its
    /// resource, was found.
    known: HashMap<u64, Vec<(AheadMark, bool)>>,
    /// The places of this walk's changes, by time and resource.
    found: BTreeMap<(i64, u64), i64>,
}

impl Ahead {
    /// The changes that a copy knows before a walk.
    pub(crate) fn known(marks: &[AheadMark]) -> Self {
        let mut known: HashMap<u64, Vec<_>> = HashMap::new();
        for mark in marks {
            known.entry(mark.resource).or_default().push((*mark, false));
        }
        Self { known, found: BTreeMap::new() }
    }

    /// Compares a change with the known ones; `is_new` if no earlier walk has read the change.
    pub(crate) fn compare(&mut self, listed: &Listed<'_>, time: Option<Moment>, is_new: bool) {
        if self.known.is_empty() {
            return;
        }
        let time = time.map(|time| time.first().as_micros());
        for (mark, is_there) in self.known.get_mut(&resource_of(listed)).into_iter().flatten() {
            *is_there |= is_new || time == Some(mark.time);
        }
    }

    /// Records a change for the next walk.
    pub(crate) fn note(&mut self, listed: &Listed<'_>, time: Moment, place: i64) {
        self.found.insert((time.first().as_micros(), resource_of(listed)), place);
    }

    /// The time of the newest missing change, in a walk through documents that start at `from`.
    pub(crate) fn newest_lost(&self, from: Option<Moment>) -> Option<Timestamp> {
        let is_read = |mark: &AheadMark| {
            from.is_none_or(|from| from.last() < Timestamp::from_micros(mark.place))
        };
        let lost = self.missing().filter(is_read);
        lost.map(|mark| Timestamp::from_micros(mark.time)).max()
    }

    /// Whether the copy knows such changes, and this walk has found all.
    pub(crate) fn are_found(&self) -> bool {
        !self.known.is_empty() && self.missing().next().is_none()
    }

    /// Known changes that this walk has not found.
    pub(crate) fn missing(&self) -> impl Iterator<Item = AheadMark> + use<'_> {
        self.known.values().flatten().filter(|(_, is_there)| !is_there).map(|(mark, _)| *mark)
    }

    /// The changes after the position, which the next walk reads.
    pub(crate) fn since(self, until: Option<Moment>) -> Vec<AheadMark> {
        let until = until.map_or(i64::MIN, |until| until.first().as_micros());
        let found = self.found.into_iter().rev().filter(|(_, place)| *place >= until);
        let found = found.map(|((time, resource), place)| AheadMark { time, resource, place });
        found.take(FUTURE_MAX).collect()
    }
}

/// A fingerprint of a resource.
pub(super) fn resource_of(listed: &Listed<'_>) -> u64 {
    let mut hasher = Fingerprint::new();
    listed.uri.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::testing::listed;

    fn at(micros: i64) -> Moment {
        Moment::exact(Timestamp::from_micros(micros))
    }

    #[test]
    fn a_change_ahead_is_lost_unless_another_one_came() {
        let one = listed("", "http://a.example/1", Vec::new());
        let mut ahead = Ahead::default();
        ahead.note(&one, at(900), 10);
        let known = ahead.since(Some(at(10)));
        assert_eq!(Ahead::known(&known).newest_lost(None), Some(Timestamp::from_micros(900)));
        assert_eq!(Ahead::known(&known).newest_lost(Some(at(10))), None, "it was not read");
        for (time, is_new, is_lost) in [(900, false, false), (5, false, true), (5, true, false)] {
            let mut ahead = Ahead::known(&known);
            ahead.compare(&one, Some(at(time)), is_new);
            assert_eq!(ahead.newest_lost(None).is_some(), is_lost, "{time} {is_new}");
            assert_eq!(ahead.are_found(), !is_lost);
            assert_eq!(ahead.missing().count(), usize::from(is_lost));
        }
    }

    #[test]
    fn a_change_ahead_before_the_position_is_not_read_again() {
        let one = listed("", "http://a.example/1", Vec::new());
        let mut ahead = Ahead::default();
        ahead.note(&one, at(900), 10);
        assert_eq!(ahead.since(Some(at(11))), Vec::new());
        assert!(!Ahead::default().are_found(), "none is known");
    }
}
