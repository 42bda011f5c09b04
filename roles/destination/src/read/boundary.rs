//! The changes that were seen last, each identified by its resource and its time. A Source that does
//! not have them any more was restored from a backup, even if it has newer ones by now, or has
//! removed some that were never seen.

use crate::error::Error;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// Changes that are kept; more where they have the time of the newest.
const LAST_MAX: usize = 4;
/// Most changes of one time that are kept: that a further one is removed may not be noticed.
const EQUAL_MAX: usize = 64;

/// Changes from which on those of walks that failed are no longer added.
const BESIDE_MAX: usize = 256;

/// The newest changes known, compared with those that a walk finds.
#[derive(Default)]
pub(crate) struct Boundary {
    /// Under which key the state keeps them: lines of a time in microseconds and an IRI.
    key: &'static str,
    /// The newest first.
    known: Vec<(Timestamp, String, Found)>,
    /// Those of this walk, the newest first.
    newest: Vec<(Timestamp, String)>,
}

/// What became of a known change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Missing,
    /// There is a newer one of its entity, which may have replaced it.
    Superseded,
    Listed,
}

impl Boundary {
    pub(crate) fn read(mirror: &Mirror, key: &'static str) -> Result<Self, Error> {
        let text = mirror.meta(key)?.unwrap_or_default();
        let known = text.lines().filter_map(|line| {
            let (time, iri) = line.split_once(' ')?;
            let time = Timestamp::from_micros(time.parse().ok()?);
            Some((time, iri.to_owned(), Found::Missing))
        });
        Ok(Self { key, known: known.collect(), newest: Vec::new() })
    }

    /// Of a Source of which no change counts as known.
    pub(crate) fn empty(key: &'static str) -> Self {
        Self { key, ..Self::default() }
    }

    /// Begins a walk. Returns the time of the oldest known change.
    pub(crate) fn begin(&mut self) -> Option<Timestamp> {
        self.newest.clear();
        self.known.last().map(|known| known.0)
    }

    /// Compares a change that a walk finds with those known.
    pub(crate) fn find(&mut self, time: Timestamp, iri: &str) {
        for (known_time, known, found) in &mut self.known {
            if time >= *known_time && *found != Found::Listed && known == iri {
                *found = if time == *known_time { Found::Listed } else { Found::Superseded };
            }
        }
    }

    /// Notes a change that a walk finds, for the next one.
    pub(crate) fn note(&mut self, time: Timestamp, iri: &str) {
        self.find(time, iri);
        if iri.contains(['\r', '\n']) {
            return;
        }
        let place = self.newest.partition_point(|newer| newer.0 > time);
        if place < LAST_MAX && !self.newest.iter().any(|it| it.0 == time && it.1 == iri) {
            self.newest.insert(place, (time, iri.to_owned()));
            self.limit();
        }
    }

    /// Leaves out the oldest of too many changes.
    fn limit(&mut self) {
        let newest = self.newest.first().map(|it| it.0);
        let equal = self.newest.iter().take_while(|it| Some(it.0) == newest).count();
        self.newest.truncate(equal.clamp(LAST_MAX, EQUAL_MAX));
    }

    /// The time of the newest known change.
    pub(crate) fn newest_known(&self) -> Option<Timestamp> {
        self.known.first().map(|known| known.0)
    }

    /// Whether the walk has reached what is known: the newest known change that was not replaced.
    pub(crate) fn is_found(&self) -> bool {
        self.known.iter().any(|known| known.2 == Found::Listed) && !self.is_broken()
    }

    /// Whether the newest known change is missing, or another one of its time. Changes that were
    /// replaced show nothing.
    fn is_broken(&self) -> bool {
        let newest = self.known.iter().find(|known| known.2 != Found::Superseded);
        newest.is_some_and(|newest| {
            self.known.iter().any(|known| known.0 == newest.0 && known.2 == Found::Missing)
        })
    }

    /// Whether any known change is missing that is later than the end of the walk. Those that were
    /// replaced show nothing.
    pub(crate) fn has_lost(&self, end: Option<Timestamp>) -> bool {
        let is_lost = |known: &(Timestamp, String, Found)| {
            known.2 == Found::Missing && end.is_none_or(|end| known.0 > end)
        };
        self.known.iter().any(is_lost)
    }

    /// Keeps the newest changes of a walk that failed, beside those known.
    pub(crate) fn keep_beside(&mut self, mirror: &Mirror) -> Result<(), Error> {
        if self.known.len() < BESIDE_MAX {
            self.newest.extend(self.known.iter().map(|(time, iri, _)| (*time, iri.clone())));
            self.newest.sort_by(|one, two| (two.0, &two.1).cmp(&(one.0, &one.1)));
            self.newest.dedup();
            self.write(mirror)?;
        }
        Ok(())
    }

    /// Keeps the newest changes of this walk, in the transaction of the plan up to them; and the known
    /// ones, if changes between them were not read.
    pub(crate) fn keep(&mut self, mirror: &Mirror, is_cut: bool) -> Result<(), Error> {
        if is_cut {
            self.newest.extend(self.known.iter().map(|(time, iri, _)| (*time, iri.clone())));
            self.newest.sort_by(|one, two| (two.0, &two.1).cmp(&(one.0, &one.1)));
            self.newest.dedup();
            self.limit();
        }
        self.write(mirror)
    }

    fn write(&self, mirror: &Mirror) -> Result<(), Error> {
        let line = |(time, iri): &(Timestamp, String)| format!("{} {iri}", time.as_micros());
        let lines: Vec<String> = self.newest.iter().map(line).collect();
        Ok(mirror.set_meta(self.key, Some(&lines.join("\n")))?)
    }

    /// Nothing is known any more: all is compared.
    pub(crate) fn forget(mirror: &Mirror, key: &'static str) -> Result<(), Error> {
        Ok(mirror.set_meta(key, None)?)
    }
}
