//! The position of a copy: the point up to which it knows its Source. One record, for all
//! protocols.
//!
//! The position changes only in two ways: [`Position::advance`] refuses changes that do not
//! continue from it, and [`Position::reset`] replaces the whole record.

use super::ahead::{Ahead, AheadMark};
use super::marks::{Mark, Marks};
use crate::report::clock::SECOND_MICROS;
use crate::report::error::Error;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Moment, Timestamp};
use serde::{Deserialize, Serialize};

/// Key of the record in the database.
const KEY: &str = "position";
/// Keys of times that earlier versions stored, in microseconds.
const OLDER_KEYS: [&str; 4] = ["cursor", "rs01-cursor", "emm-seen", "sdshare-seen"];

/// The point up to which a copy knows its Source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Position {
    /// All changes before the first time, in microseconds, are in the database or in the plan. For
    /// changes between the two times this is not known.
    until: Option<(i64, i64)>,
    /// The kind of document by which the position moved last.
    of: Of,
    /// The time of the list of all resources that the copy was compared with last, microseconds.
    snapshot: Option<i64>,
    /// The time of the newest list of resources that was read, also in part, microseconds.
    listed: Option<i64>,
    /// The changes read last.
    marks: Vec<Mark>,
    /// The newest changes of walks that the position did not move to.
    glimpsed: Vec<Mark>,
    /// Changes with times in the future, which are after the position.
    ahead: Vec<AheadMark>,
    /// Times and fingerprints of the newest changes that were read.
    recent: Vec<(i64, u64)>,
    /// The time up to which earlier runs planned all changes, in microseconds: a stored version
    /// with an earlier coarse time is final.
    settled: Option<i64>,
    /// Fingerprints of changes with times in the future that were read.
    future: Vec<u64>,
    /// Fingerprints of changes whose time is a second in the future, and the time in microseconds
    /// when each was read first. Another change in the same second may follow.
    watched: Vec<(u64, i64)>,
    /// The newest change that any run saw, microseconds; it need not be in the plan.
    newest_seen: Option<i64>,
    /// Whether closed documents of changes contain their end time, if any was read. A document
    /// without an end time then comes from a cache.
    pub(crate) gives_end: Option<bool>,
    /// The document to request first, and its known content.
    pub(crate) bookmark: Option<Bookmark>,
    /// The time up to which pushed documents contained all changes, in microseconds.
    announced: Option<i64>,
    /// The time since which the documents lack pushed changes, in seconds.
    pub(crate) late_since: Option<u64>,
    /// The last run that planned from changes. Rows from that run on may be newer than the
    /// position.
    pub(crate) run: Option<i64>,
    /// The reason why the copy must be compared with all resources of the Source.
    pub(crate) due: Option<Due>,
    /// Changes that no document has contained so far.
    pub(crate) unknown: Option<Unknown>,
}

/// A comparison that is due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Due {
    pub(crate) why: String,
    /// The Source may have been restored to an earlier version, so later changes in the copy may
    /// belong to a history that the Source has lost.
    pub(crate) is_uncertain: bool,
    /// The last run whose versions may belong to that history; `None` until the copy was compared
    /// with a whole list.
    pub(crate) lost_until: Option<i64>,
}

impl Due {
    /// A comparison that is due for this reason.
    pub(crate) fn new(why: impl Into<String>, is_uncertain: bool) -> Self {
        Self { why: why.into(), is_uncertain, lost_until: None }
    }
}

/// Changes that are not known until there is a newer list of all resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unknown {
    pub(crate) why: String,
    /// The copy may lack something: each run reports that.
    pub(crate) is_fault: bool,
    /// Documents could not be reached: each run searches for them again.
    pub(crate) is_cut: bool,
    /// The changes are between the list of all resources and the listed changes: a walk that
    /// reaches back to the list finds them.
    #[serde(default)]
    pub(crate) is_between: bool,
    /// The time from which on changes were read when the gap was found, in microseconds: earlier
    /// than the time of the list, unless that is exact.
    #[serde(default)]
    pub(crate) since: Option<i64>,
    /// The time from which on the list of all resources is read again, in microseconds, because its
    /// time was in the future.
    #[serde(default)]
    pub(crate) not_before: Option<i64>,
    /// Resources that the list lacks were not deleted, because unread changes may have created
    /// them.
    #[serde(default)]
    pub(crate) spares_absent: bool,
    /// The last run that may have stored such resources.
    #[serde(default)]
    pub(crate) lost_until: Option<i64>,
}

impl Unknown {
    /// Changes without which the copy may lack something.
    pub(crate) fn fault(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_fault: true, ..Self::default() }
    }
}

/// The kind of document that a position is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Of {
    /// A list of all resources.
    #[default]
    Snapshot,
    /// A document of changes.
    Change,
    /// A pushed change that no document has confirmed.
    Pushed,
}

/// The document that is requested first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bookmark {
    /// The URL of the document, or another identifier of its place in the protocol.
    pub(crate) document: String,
    /// Number of entries that were read, and their fingerprint.
    pub(crate) entries: u64,
    pub(crate) fingerprint: u64,
    /// The start of the document's changes in microseconds, if the document contains it.
    pub(crate) from: Option<i64>,
    /// The time of the newest change had passed when the document was read, so no other changes at
    /// that time will follow.
    pub(crate) is_past: bool,
}

/// The interval of changes in documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// All changes since this time were read; `None` if documents do not contain the start of their
    /// changes.
    pub(crate) from: Option<Moment>,
    /// The newest change.
    pub(crate) until: Option<Moment>,
    /// The changes include a known one, or follow the snapshot that was just read.
    pub(crate) is_joined: bool,
}

/// The interval starts after the position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Apart;

fn micros(moment: Moment) -> (i64, i64) {
    (moment.first().as_micros(), moment.last().as_micros())
}

impl Position {
    /// The position in the database of a copy, stored by this version or an earlier one.
    pub(crate) fn load(mirror: &Mirror) -> Result<Self, Error> {
        if let Some(text) = mirror.meta(KEY)?
            && let Ok(position) = serde_json::from_str(&text)
        {
            return Ok(position);
        }
        for key in OLDER_KEYS {
            if let Some(at) = mirror.meta(key)?.and_then(|text| text.parse().ok()) {
                return Ok(Self { until: Some((at, at)), ..Self::default() });
            }
        }
        Ok(Self::default())
    }

    /// Stores the position, in the transaction of the plan up to it.
    pub(crate) fn store(&self, mirror: &Mirror) -> Result<(), Error> {
        for key in OLDER_KEYS {
            if mirror.meta(key)?.is_some() {
                mirror.set_meta(key, None)?;
            }
        }
        let text = serde_json::to_string(self).unwrap_or_default();
        Ok(mirror.set_meta(KEY, Some(&text))?)
    }

    /// Up to when all changes are known; `None` before the first comparison.
    pub(crate) fn until(&self) -> Option<Moment> {
        let at = Timestamp::from_micros;
        self.until.map(|(first, last)| Moment::between(at(first), at(last)))
    }

    /// The kind of document by which the position moved last.
    pub(crate) const fn of(&self) -> Of {
        self.of
    }

    /// The changes read last, the newest first.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// Times and fingerprints of the newest changes that were read.
    pub(crate) fn recent(&self) -> &[(i64, u64)] {
        &self.recent
    }

    /// Adds changes that a walk has read.
    pub(crate) fn note_recent(&mut self, read: &[(i64, u64)]) {
        self.recent = super::marks::newest_of(&self.recent, read);
    }

    /// Records that all changes since the first one were read: as long as it is among the newest,
    /// any other change is new.
    pub(crate) fn note_begin(&mut self) {
        self.note_recent(&[(i64::MIN, 0)]);
    }

    /// Whether a change with this fingerprint was read when its time was in the future.
    pub(crate) fn is_future(&self, fingerprint: u64) -> bool {
        self.future.contains(&fingerprint)
    }

    /// Whether any run recorded a change with this fingerprint when its time was in the future.
    pub(crate) fn has_read(&self, fingerprint: u64) -> bool {
        self.is_future(fingerprint) || self.watched.iter().any(|it| it.0 == fingerprint)
    }

    /// Adds fingerprints of changes with future times that were read until `now`, and the widths of
    /// these times. The last ones are stored. Other changes may follow within a coarse time without
    /// being distinguishable, so such a change counts as known only after it was read later than
    /// its whole time.
    pub(crate) fn note_future(&mut self, read: &[(u64, i64)], now: Timestamp) {
        let now = now.as_micros();
        let before = std::mem::take(&mut self.watched);
        for (fingerprint, width) in read {
            if self.future.contains(fingerprint) {
                continue;
            }
            let first = before.iter().find(|it| it.0 == *fingerprint).map_or(now, |it| it.1);
            if *width == 0 || *width >= SECOND_MICROS || now > first.saturating_add(*width) {
                self.future.push(*fingerprint);
            } else {
                self.watched.push((*fingerprint, first));
            }
        }
        let before = self.future.len().saturating_sub(super::ahead::FUTURE_MAX);
        self.future.drain(..before);
    }

    /// The time up to which earlier runs planned all changes.
    pub(crate) fn settled(&self) -> Option<Timestamp> {
        self.settled.map(Timestamp::from_micros)
    }

    /// Records the newest planned change.
    pub(crate) fn settle(&mut self, newest: Option<Timestamp>) {
        self.settled = self.settled.max(newest.map(Timestamp::as_micros));
    }

    /// Discards all final times, because the copy has a history that the Source has lost.
    pub(crate) fn unsettle(&mut self) {
        (self.settled, self.listed) = (None, None);
        self.future.clear();
        self.watched.clear();
        self.ahead.clear();
    }

    /// The time of the newest list of resources that was read, even partially. An older list is not
    /// evidence about stored versions.
    pub(crate) fn listed(&self) -> Option<Timestamp> {
        self.listed.map(Timestamp::from_micros)
    }

    /// Records the time of a list of resources.
    pub(crate) fn see_list(&mut self, at: Option<Timestamp>) {
        self.listed = self.listed.max(at.map(Timestamp::as_micros));
    }

    /// The same position at an earlier time, or at the start of all changes. The last changes are
    /// still recognised.
    pub(crate) fn back_to(&self, time: Option<Timestamp>) -> Self {
        let until = time.map(|time| micros(Moment::exact(time)));
        Self { until, bookmark: None, ..self.clone() }
    }

    /// The time of the last snapshot.
    pub(crate) fn snapshot(&self) -> Option<Timestamp> {
        self.snapshot.map(Timestamp::from_micros)
    }

    /// The newest change that any run saw.
    pub(crate) fn newest_seen(&self) -> Option<Timestamp> {
        self.newest_seen.map(Timestamp::from_micros)
    }

    /// Until when pushed documents gave all changes.
    pub(crate) fn announced(&self) -> Option<Timestamp> {
        self.announced.map(Timestamp::from_micros)
    }

    /// Whether an interval that starts at `from` continues from the position without a gap.
    pub(crate) fn is_touched_by(&self, from: Moment) -> bool {
        self.until().is_some_and(|until| from.first() <= until.last())
    }

    /// Moves the position to the end of an interval whose changes were planned.
    ///
    /// # Errors
    /// The interval starts after the position, or is not connected to it.
    pub(crate) fn advance(&mut self, span: &Span, of: Of, marks: Vec<Mark>) -> Result<(), Apart> {
        let is_joined = span.is_joined || span.from.is_some_and(|from| self.is_touched_by(from));
        if !is_joined {
            return Err(Apart);
        }
        let until = self.until();
        if let Some(newest) =
            span.until.filter(|newest| until.is_none_or(|until| !newest.is_before(until)))
        {
            self.until = Some(micros(newest));
            self.of = of;
        }
        if !marks.is_empty() {
            self.marks = marks;
        }
        self.glimpsed.clear();
        Ok(())
    }

    /// Records that the documents contain the pushed changes.
    pub(crate) fn confirm(&mut self) {
        if self.of == Of::Pushed {
            self.of = Of::Change;
        }
    }

    /// Records the time up to which pushed documents contained all changes.
    pub(crate) fn announce(&mut self, until: Timestamp) {
        self.announced = Some(until.as_micros());
    }

    /// Records the newest change that a run has seen, independent of the success of the run.
    pub(crate) fn see(&mut self, newest: Option<Timestamp>) {
        self.newest_seen = self.newest_seen.max(newest.map(Timestamp::as_micros));
    }

    /// Records changes of a walk to which the position does not move. If the server is restored
    /// before the next run, they will be missing.
    pub(crate) fn glimpse(&mut self, mut marks: Marks) {
        self.ahead = marks.ahead.missing().collect();
        self.ahead.extend(std::mem::take(&mut marks.ahead).since(self.until()));
        let marks = marks.into_newest(false);
        self.glimpsed = super::marks::together(std::mem::take(&mut self.glimpsed), marks);
    }

    /// The changes with times in the future, which are after the position.
    pub(crate) fn ahead(&self) -> &[AheadMark] {
        &self.ahead
    }

    /// Stores the changes of a walk with times in the future.
    pub(crate) fn note_ahead(&mut self, ahead: Ahead) {
        self.ahead = ahead.since(self.until());
    }

    /// Stores the newest changes of another position, to recognise a Source that was restored to an
    /// earlier version.
    pub(crate) fn remember(&mut self, other: &Self) {
        let newest = other.marks.first().map(Mark::time);
        let marks = other.marks.iter().filter(|mark| Some(mark.time()) == newest);
        self.glimpsed = marks.chain(&other.glimpsed).copied().collect();
        self.newest_seen = self.newest_seen.max(other.newest_seen);
        self.ahead.clone_from(&other.ahead);
    }

    /// The changes of walks that the position did not move to.
    pub(crate) fn glimpsed(&self) -> &[Mark] {
        &self.glimpsed
    }

    /// Starts again at a snapshot. The rest of the record is discarded, except the properties of
    /// the copy itself.
    pub(crate) fn reset(&mut self, at: Option<Moment>) {
        *self = Self {
            until: at.map(micros),
            snapshot: at.map(|at| at.last().as_micros()),
            run: self.run,
            settled: self.settled,
            listed: self.listed,
            gives_end: self.gives_end,
            future: std::mem::take(&mut self.future),
            watched: std::mem::take(&mut self.watched),
            ..Self::default()
        };
    }

    /// Adapts the position to a new address of the Source, whose documents have other URLs. `moved`
    /// is the reason for one comparison of the copy, if it is necessary; `marks` are the last
    /// changes as the new documents list them.
    pub(crate) fn move_to(&mut self, moved: Option<Due>, marks: Vec<Mark>) {
        let known = std::mem::take(self);
        *self = Self {
            due: moved.or(known.due),
            unknown: known.unknown,
            until: known.until,
            snapshot: known.snapshot,
            run: known.run,
            marks,
            ..Self::default()
        };
    }

    /// Before anything is known, after the run that planned last.
    pub(crate) fn nowhere(&self) -> Self {
        let (listed, settled, run) = (self.listed, self.settled, self.run);
        Self { listed, settled, run, ..Self::default() }
    }

    /// The position for people.
    pub(crate) fn text(&self) -> Option<String> {
        let until = self.until().filter(|until| until.first() > Timestamp::MIN);
        until.map(|until| until.first().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Moment {
        Moment::exact(Timestamp::from_micros(micros))
    }

    fn span(from: i64, until: i64) -> Span {
        Span { from: Some(at(from)), until: Some(at(until)), is_joined: false }
    }

    #[test]
    fn a_span_that_leaves_a_gap_is_refused() {
        let mut position = Position::default();
        position.reset(Some(at(10)));
        assert_eq!(position.advance(&span(11, 20), Of::Change, Vec::new()), Err(Apart));
        assert_eq!(position.until(), Some(at(10)));
        assert_eq!(position.advance(&span(10, 20), Of::Change, Vec::new()), Ok(()));
        assert_eq!((position.until(), position.of()), (Some(at(20)), Of::Change));
        // An interval that ends earlier does not move the position back.
        assert_eq!(position.advance(&span(1, 5), Of::Change, Vec::new()), Ok(()));
        assert_eq!(position.until(), Some(at(20)));
    }

    #[test]
    fn a_coarse_position_touches_what_begins_within_it() {
        let mut position = Position::default();
        let day = Moment::between(Timestamp::from_micros(0), Timestamp::from_micros(99));
        position.reset(Some(day));
        assert!(position.is_touched_by(at(99)) && !position.is_touched_by(at(100)));
    }

    #[test]
    fn a_reset_leaves_nothing_of_pushes_or_gaps() {
        let mut position = Position::default();
        position.reset(Some(at(10)));
        position.announce(Timestamp::from_micros(50));
        position.late_since = Some(1);
        position.due = Some(Due::new("a gap", true));
        position.unknown = Some(Unknown::fault("a hole"));
        position.run = Some(7);
        position.reset(Some(at(5)));
        let mut expected = Position { run: Some(7), ..Position::default() };
        expected.reset(Some(at(5)));
        assert_eq!(position, expected);
        assert_eq!(position.announced(), None);
    }

    #[test]
    fn a_coarse_time_in_the_future_is_read_again_once() {
        let mut position = Position::default();
        let second = 999_999;
        let now = Timestamp::from_micros;
        position.note_future(&[(1, 0), (2, second)], now(0));
        assert!(position.is_future(1) && !position.is_future(2));
        position.note_future(&[(1, 0), (2, second), (3, second)], now(second));
        assert!(!position.is_future(2), "another change of that time may have come since");
        position.note_future(&[(2, second), (3, second)], now(second + 1));
        assert!(position.is_future(1) && position.is_future(2) && !position.is_future(3));
        position.note_future(&[(4, second)], now(4 * second));
        position.note_future(&[(3, second)], now(5 * second));
        assert!(!position.is_future(3), "it was not listed in between");
    }

    #[test]
    fn the_record_survives_the_state_and_older_keys_are_read() {
        let mirror = Mirror::scratch().unwrap();
        assert_eq!(Position::load(&mirror).unwrap(), Position::default());
        mirror.set_meta("emm-seen", Some("77")).unwrap();
        let older = Position::load(&mirror).unwrap();
        assert_eq!(older.until(), Some(at(77)));
        older.store(&mirror).unwrap();
        assert_eq!(mirror.meta("emm-seen").unwrap(), None);
        assert_eq!(Position::load(&mirror).unwrap(), older);
    }
}
