//! The changes that were seen last. A feed that does not have them any more is of a server that was
//! restored from a backup, even if it has newer ones by now.

use super::walk::Since;
use crate::error::Error;
use abreast_emm::Item;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// The newest changes of the feed when it was read last: lines of a time in microseconds and an IRI.
const LAST: &str = "emm-last";
/// Most of them.
const LAST_MAX: usize = 4;

/// The newest changes known, compared with those that a walk finds.
#[derive(Default)]
pub(super) struct Boundary {
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
    pub(super) fn read(mirror: &Mirror) -> Result<Self, Error> {
        let text = mirror.meta(LAST)?.unwrap_or_default();
        let known = text.lines().filter_map(|line| {
            let (time, iri) = line.split_once(' ')?;
            let time = Timestamp::from_micros(time.parse().ok()?);
            Some((time, iri.to_owned(), Found::Missing))
        });
        Ok(Self { known: known.collect(), newest: Vec::new() })
    }

    /// Begins a walk: how far back it finds the changes since a cursor, and all known ones.
    pub(super) fn begin(&mut self, cursor: Option<Timestamp>) -> Option<Since> {
        self.newest.clear();
        let oldest = self.known.last().map(|known| known.0);
        cursor.map(|cursor| Since {
            cursor,
            known: oldest.map_or(cursor, |oldest| oldest.min(cursor)),
        })
    }

    pub(super) fn note(&mut self, item: &Item) {
        let (Some(time), Some(object)) = (item.time, item.objects.first()) else { return };
        for (known_time, iri, found) in &mut self.known {
            if *iri == object.id && *found != Found::Listed && time >= *known_time {
                *found = if time == *known_time { Found::Listed } else { Found::Superseded };
            }
        }
        if object.id.contains(['\r', '\n']) {
            return;
        }
        let place = self.newest.partition_point(|newer| newer.0 > time);
        if place < LAST_MAX && !self.newest.iter().any(|it| it.0 == time && it.1 == object.id) {
            self.newest.insert(place, (time, object.id.clone()));
            self.newest.truncate(LAST_MAX);
        }
    }

    /// Whether the newest known change is missing, or another one of its time. Changes that were
    /// replaced show nothing, and neither do those at or before the end of the walk.
    pub(super) fn is_broken(&self, end: Option<Timestamp>) -> bool {
        let mut found = self.known.iter().filter(|known| end.is_none_or(|end| known.0 > end));
        let newest = found.find(|known| known.2 != Found::Superseded);
        newest.is_some_and(|newest| {
            self.known.iter().any(|known| known.0 == newest.0 && known.2 == Found::Missing)
        })
    }

    /// Keeps the newest changes of this walk, in the transaction of the plan up to them; and the known
    /// ones, if pages between them were not read.
    pub(super) fn keep(&mut self, mirror: &Mirror, is_cut: bool) -> Result<(), Error> {
        if is_cut {
            self.newest.extend(self.known.iter().map(|(time, iri, _)| (*time, iri.clone())));
            self.newest.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
            self.newest.dedup();
            self.newest.truncate(LAST_MAX);
        }
        let line = |(time, iri): &(Timestamp, String)| format!("{} {iri}", time.as_micros());
        let lines: Vec<String> = self.newest.iter().map(line).collect();
        Ok(mirror.set_meta(LAST, Some(&lines.join("\n")))?)
    }

    pub(super) fn forget(mirror: &Mirror) -> Result<(), Error> {
        Ok(mirror.set_meta(LAST, None)?)
    }
}
