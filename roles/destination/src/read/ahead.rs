//! Changes that were read when their times were in the future. The position does not reach them: should a server be restored
//! to a backup without them, only that they are missing shows it.

use crate::copy::fingerprint::Fingerprint;
use crate::plan::listed::Listed;
use abreast_webtypes::{Moment, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher as _};

/// Entries with times in the future that are remembered.
pub(crate) const FUTURE_MAX: usize = 1_024;

/// A change of a time in the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AheadMark {
    /// Its time, microseconds, and its resource.
    time: i64,
    resource: u64,
    /// Where the order of the documents places it, microseconds.
    place: i64,
}

/// Those of earlier walks, compared with what a walk finds, and those of this one.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// By their resources; whether they are there, or another change came since.
    known: HashMap<u64, Vec<(AheadMark, bool)>>,
    /// The places of those of this walk, by time and resource.
    found: BTreeMap<(i64, u64), i64>,
}

impl Ahead {
    /// A walk by a copy that knows these.
    pub(crate) fn known(marks: &[AheadMark]) -> Self {
        let mut known: HashMap<u64, Vec<_>> = HashMap::new();
        for mark in marks {
            known.entry(mark.resource).or_default().push((*mark, false));
        }
        Self { known, found: BTreeMap::new() }
    }

    /// Compares a change with them; with `is_new` no walk before has read it.
    pub(crate) fn compare(&mut self, listed: &Listed<'_>, time: Option<Moment>, is_new: bool) {
        if self.known.is_empty() {
            return;
        }
        let time = time.map(|time| time.first().as_micros());
        for (mark, is_there) in self.known.get_mut(&resource_of(listed)).into_iter().flatten() {
            *is_there |= is_new || time == Some(mark.time);
        }
    }

    /// Notes a change for the next walk.
    pub(crate) fn note(&mut self, listed: &Listed<'_>, time: Moment, place: i64) {
        self.found.insert((time.first().as_micros(), resource_of(listed)), place);
    }

    /// The time of the newest one that is missing; of a walk through documents that begin at `from`.
    pub(crate) fn newest_lost(&self, from: Option<Moment>) -> Option<Timestamp> {
        let is_read = |mark: &AheadMark| {
            from.is_none_or(|from| from.last() < Timestamp::from_micros(mark.place))
        };
        let lost = self.missing().filter(is_read);
        lost.map(|mark| Timestamp::from_micros(mark.time)).max()
    }

    /// Whether any are known, and this walk has found all of them.
    pub(crate) fn are_found(&self) -> bool {
        !self.known.is_empty() && self.missing().next().is_none()
    }

    /// Those that this walk has not found.
    pub(crate) fn missing(&self) -> impl Iterator<Item = AheadMark> + use<'_> {
        self.known.values().flatten().filter(|(_, is_there)| !is_there).map(|(mark, _)| *mark)
    }

    /// Those that the next walk reads: they stand behind the position.
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
