//! The comparison of a listed resource with the stored version. All decisions whether they are the
//! same, or which one is newer, are made here.
//!
//! Runs, dry runs, comparisons with whole lists, packages, pushed changes and audits use this
//! module.

use crate::report::clock::SECOND_MICROS;
use abreast_store::mirror::{Pending, Row};
use abreast_webtypes::{Digests, Moment, Timestamp};

/// Maximum distance into the future of a list's time, in microseconds. The time of a list that is
/// further ahead is ignored, and a change further ahead does not order versions.
pub(crate) const LIST_AHEAD_MAX: i64 = 7 * 24 * 3_600_000_000;

/// The decision about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The copy contains the listed version.
    Keep,
    /// The copy has the bytes; only their time differs.
    Touch,
    /// The copy needs the listed version.
    Fetch,
    /// The Source does not have the resource any more.
    Delete,
    /// The document is too old to show anything about the version in the copy.
    Unknown,
}

/// How a document lists a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stated<'l> {
    /// The resource exists; these are its properties, or its properties after a change.
    Present {
        length: Option<u64>,
        /// Last modification, microseconds.
        modified: Option<i64>,
        digests: &'l Digests,
        /// The document announces a change of the resource, at `AsOf::at`.
        is_change: bool,
    },
    /// As deleted.
    Deleted,
    /// Not at all, in a list of all resources.
    Absent,
}

impl<'l> Stated<'l> {
    /// The listed properties in a planned item.
    pub(crate) const fn of(item: &Pending, digests: &'l Digests, is_change: bool) -> Self {
        Self::Present { length: item.length, modified: item.modified, digests, is_change }
    }
}

/// The time of a list or change, and the other facts that decide which version is later.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AsOf {
    /// The time of the change, or of the whole list; `None` if the time is not known.
    pub(crate) at: Option<Moment>,
    /// The Source may have lost the changes that led to the stored versions, so the document
    /// decides.
    pub(crate) is_uncertain: bool,
    /// `is_uncertain` applies only to versions that runs up to this one stored.
    pub(crate) lost_until: Option<i64>,
    /// The present. Stored times of changes after this instant are ignored.
    pub(crate) now: Option<Timestamp>,
    /// Earlier runs planned all changes up to this time. A stored version with an earlier coarse
    /// time is the last one at that time.
    pub(crate) settled: Option<Timestamp>,
    /// The time of the change that deleted the resource, or the latest possible time of a change
    /// whose time is not known.
    pub(crate) gone: Option<Timestamp>,
    /// The time of the newest list of resources that was read before. An older list is not evidence
    /// about stored versions.
    pub(crate) listed: Option<Timestamp>,
}

impl AsOf {
    /// The time of the stored version and the time of the document, if both are usable for a
    /// comparison. A stored time in the far future is ignored, unless the document's time is in the
    /// future too.
    fn beside(self, row: &Row) -> Option<(Timestamp, Moment)> {
        let (changed, at) = (Timestamp::from_micros(row.changed?), self.at?);
        let is_odd = self
            .now
            .is_some_and(|now| at.first() <= now && now.plus_micros(LIST_AHEAD_MAX) < changed);
        (!self.is_lost(row) && !is_odd).then_some((changed, at))
    }

    /// Whether the stored version may result from changes that the Source has lost.
    fn is_lost(self, row: &Row) -> bool {
        self.is_uncertain && self.lost_until.is_none_or(|until| row.epoch <= until)
    }

    /// Whether facts without a row, such as deletions, may result from lost changes too.
    const fn is_all_lost(self) -> bool {
        self.is_uncertain && self.lost_until.is_none()
    }

    /// Whether the stored version is later than the document.
    fn is_older_than(self, row: &Row) -> bool {
        self.beside(row).is_some_and(|(changed, at)| at.last() < changed)
    }

    /// Whether the resource in the copy was deleted, or got its version, by a change that is or may
    /// be later than the list. A change that restores the resource may have been published late.
    fn is_older_than_known(self) -> bool {
        let known = self.gone.zip(self.at).filter(|_| !self.is_all_lost());
        known.is_some_and(|(gone, at)| at.first() <= gone)
    }

    /// Whether the copy was already compared with a later list.
    pub(crate) fn is_older_than_list(self) -> bool {
        let known = self.listed.zip(self.at).filter(|_| !self.is_all_lost());
        known.is_some_and(|(listed, at)| at.last() < listed)
    }

    /// Whether [`Self::is_older_than_list`] is the only evidence that the stored version is later
    /// than the list.
    pub(crate) fn is_only_older_than_list(self, row: &Row) -> bool {
        self.is_older_than_list() && !self.may_be_older_than(row) && !self.is_older_than_known()
    }

    /// Whether the stored version may be later than the list: a list need not contain all changes
    /// at its own time.
    fn may_be_older_than(self, row: &Row) -> bool {
        self.beside(row).is_some_and(|(changed, at)| at.first() <= changed)
    }

    /// Whether a change at this time, in microseconds, may be later than a list.
    pub(crate) fn may_be_older_than_change(self, changed: Option<i64>) -> bool {
        let changed = changed.map(Timestamp::from_micros).filter(|_| !self.is_uncertain);
        changed.zip(self.at).is_some_and(|(changed, at)| at.first() <= changed)
    }

    /// Whether the time of a list leaves open which is later: the list, or the last known change of
    /// the resource.
    pub(crate) fn is_open(self, row: Option<&Row>) -> bool {
        let changed = row.and_then(|row| row.changed).map(Timestamp::from_micros);
        // If the time of a change is not known, only its latest possible time is.
        let first = changed.or(self.gone.map(|gone| row.map_or(gone, |_| Timestamp::MIN)));
        let last = changed.max(self.gone);
        first
            .zip(last)
            .zip(self.at)
            .is_some_and(|((first, last), at)| first <= at.last() && at.first() <= last)
    }

    /// Whether the statement may be of a later time than the version in the copy. Within a second of a coarse clock there
    /// may be several changes.
    fn may_be_newer_than(self, row: &Row) -> bool {
        let changed = row.changed.map(Timestamp::from_micros);
        changed.zip(self.at).is_some_and(|(changed, at)| {
            let is_coarse = at.last() >= at.first().plus_micros(SECOND_MICROS - 1);
            let is_final = self.settled.is_some_and(|settled| at.last() < settled);
            changed < at.first() || is_coarse && at.contains(changed) && !is_final
        })
    }
}

/// Decides about a resource; `row` is the row of its stored version.
///
/// - A document never replaces a version from a later change, and a list never replaces a version
///   from a change at its own time, or undoes a later deletion.
/// - An announced change that is later than the stored version, and lacks a digest to compare,
///   always means another version.
/// - If no decision is possible, the result is [`Verdict::Unknown`], and the resource is neither
///   fetched nor deleted.
pub(crate) fn judge(stated: Stated<'_>, as_of: AsOf, row: Option<&Row>) -> Verdict {
    let Some(row) = row else {
        return match stated {
            Stated::Present { is_change: false, .. } if as_of.is_older_than_known() => {
                Verdict::Unknown
            }
            Stated::Present { .. } => Verdict::Fetch,
            Stated::Deleted | Stated::Absent => Verdict::Keep,
        };
    };
    let is_change = matches!(stated, Stated::Deleted | Stated::Present { is_change: true, .. });
    let is_old = as_of.is_older_than(row)
        || !is_change
            && (as_of.may_be_older_than(row)
                || as_of.is_older_than_known()
                || as_of.is_older_than_list());
    let Stated::Present { length, modified, digests, is_change } = stated else {
        return if is_old { Verdict::Unknown } else { Verdict::Delete };
    };
    match compare(length, modified, digests, row) {
        Verdict::Keep
            if is_change && digests.strongest().is_none() && as_of.may_be_newer_than(row) =>
        {
            Verdict::Fetch
        }
        Verdict::Keep => Verdict::Keep,
        // The bytes are the same, and the time of the later change is retained.
        Verdict::Touch if is_old => Verdict::Keep,
        _ if is_old => Verdict::Unknown,
        verdict => verdict,
    }
}

/// Compares the listed properties with a row, regardless of the times of both.
fn compare(length: Option<u64>, modified: Option<i64>, digests: &Digests, row: &Row) -> Verdict {
    if length.is_some_and(|length| length != row.length) {
        return Verdict::Fetch;
    }
    let mut kept = Digests::default();
    kept.set_from_bytes(&row.digests);
    match digests.agree(&kept) {
        Some(true) if modified.is_none() || modified == row.modified => Verdict::Keep,
        Some(true) => Verdict::Touch,
        // If no digest can be compared, length and time decide. If no time is listed either, only
        // the server knows.
        None if is_version_of(modified, row) => Verdict::Keep,
        Some(false) | None => Verdict::Fetch,
    }
}

/// Whether the stored version has the listed time: its own modification time, or the time of the
/// change that brought it, since the server's `Last-Modified` may differ from the list.
fn is_version_of(modified: Option<i64>, row: &Row) -> bool {
    modified.is_some() && (modified == row.modified || modified == row.changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn digests(text: &str) -> Digests {
        let mut digests = Digests::default();
        digests.parse_into(text.as_bytes()).unwrap();
        digests
    }

    fn at(micros: i64) -> Moment {
        Moment::exact(Timestamp::from_micros(micros))
    }

    #[test]
    fn a_state_that_agrees_is_kept() {
        let hello = digests("md5:5d41402abc4b2a76b9719d911017c592");
        let other = digests("md5:00000000000000000000000000000000");
        let sha =
            digests("sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        let none = Digests::default();
        let row = Row { length: 5, modified: Some(7), digests: hello.to_bytes(), ..Row::default() };
        let judge = |length, modified, digests: &Digests, row: &Row| {
            let stated = Stated::Present { length, modified, digests, is_change: false };
            super::judge(stated, AsOf::default(), Some(row))
        };
        for (length, modified, digests, verdict) in [
            (Some(5), Some(7), &hello, Verdict::Keep),
            (None, None, &hello, Verdict::Keep),
            (None, Some(8), &hello, Verdict::Touch),
            (None, Some(7), &other, Verdict::Fetch),
            (Some(6), Some(7), &hello, Verdict::Fetch),
            (Some(5), Some(7), &sha, Verdict::Keep),
            (Some(5), Some(8), &sha, Verdict::Fetch),
            (Some(5), None, &none, Verdict::Fetch),
        ] {
            assert_eq!(judge(length, modified, digests, &row), verdict, "{length:?} {modified:?}");
        }
        let row = Row { changed: Some(9), ..row };
        assert_eq!(judge(Some(5), Some(9), &none, &row), Verdict::Keep);
        assert_eq!(judge(Some(5), Some(8), &none, &row), Verdict::Fetch);
    }

    #[test]
    fn a_change_without_a_digest_is_never_the_same() {
        let (none, row) =
            (Digests::default(), Row { modified: Some(7), changed: Some(9), ..Row::default() });
        let judge = |time| {
            let stated = Stated::Present {
                length: None,
                modified: Some(7),
                digests: &none,
                is_change: true,
            };
            super::judge(stated, AsOf { at: Some(at(time)), ..AsOf::default() }, Some(&row))
        };
        assert_eq!(judge(10), Verdict::Fetch);
        assert_eq!(judge(9), Verdict::Keep);
        assert_eq!(judge(8), Verdict::Keep);
    }

    #[test]
    fn a_change_of_the_time_of_a_list_may_be_later() {
        let list = AsOf { at: Some(at(5)), ..AsOf::default() };
        let of = |time| list.may_be_older_than_change(time);
        assert_eq!([Some(4), Some(5), Some(6), None].map(of), [false, true, true, false]);
        let lost = AsOf { is_uncertain: true, ..list };
        assert!(!lost.may_be_older_than_change(Some(6)), "the list decides");
    }

    /// A statement, by numbers: 0 is a deletion, 1 absence, others are versions.
    fn stated(kind: u8, digests: &Digests, is_change: bool) -> Stated<'_> {
        match kind {
            0 => Stated::Deleted,
            1 => Stated::Absent,
            _ => Stated::Present {
                length: Some(u64::from(kind)),
                modified: Some(i64::from(kind)),
                digests,
                is_change,
            },
        }
    }

    fn row(version: u8, changed: Option<i64>, epoch: i64) -> Row {
        let (length, modified) = (u64::from(version), Some(i64::from(version)));
        Row { length, modified, changed, epoch, ..Row::default() }
    }

    proptest! {
        #[test]
        fn an_older_document_never_wins(kind in 0_u8..5, version in 2_u8..5, is_change: bool, time in 0_i64..50, later in 1_i64..50) {
            let none = Digests::default();
            let as_of = AsOf { at: Some(at(time)), ..AsOf::default() };
            let row = row(version, Some(time + later), 1);
            let verdict = judge(stated(kind, &none, is_change), as_of, Some(&row));
            prop_assert!(matches!(verdict, Verdict::Keep | Verdict::Unknown), "{verdict:?}");
        }

        #[test]
        fn a_list_of_the_time_of_a_change_changes_nothing(kind in 1_u8..5, version in 2_u8..5, time in 0_i64..50, before in 0_i64..50, after in 0_i64..50) {
            let none = Digests::default();
            let around = Moment::between(Timestamp::from_micros(time - before), Timestamp::from_micros(time + after));
            let (as_of, row) = (AsOf { at: Some(around), ..AsOf::default() }, row(version, Some(time), 1));
            let verdict = judge(stated(kind, &none, false), as_of, Some(&row));
            prop_assert!(matches!(verdict, Verdict::Keep | Verdict::Unknown), "{verdict:?}");
            prop_assert!(as_of.is_open(Some(&row)));
            let later = AsOf { at: Some(at(time + 1)), ..AsOf::default() };
            prop_assert_eq!(judge(stated(1, &none, false), later, Some(&row)), Verdict::Delete);
            // A resource that was deleted then is not restored.
            let as_of = AsOf { gone: Some(Timestamp::from_micros(time)), ..as_of };
            prop_assert_eq!(judge(stated(version, &none, false), as_of, None), Verdict::Unknown);
            prop_assert!(as_of.is_open(None));
        }

        #[test]
        fn an_older_list_brings_nothing_back(time in 0_i64..50, later in 1_i64..50) {
            let none = Digests::default();
            let gone = Some(Timestamp::from_micros(time + later));
            let as_of = AsOf { at: Some(at(time)), gone, ..AsOf::default() };
            prop_assert_eq!(judge(stated(2, &none, false), as_of, None), Verdict::Unknown);
            prop_assert_eq!(judge(stated(2, &none, true), as_of, None), Verdict::Fetch);
            let lost = AsOf { is_uncertain: true, ..as_of };
            prop_assert_eq!(judge(stated(2, &none, false), lost, None), Verdict::Fetch);
        }

        #[test]
        fn a_list_older_than_one_read_before_changes_nothing(kind in 1_u8..5, version in 2_u8..5, changed: Option<u8>, time in 0_i64..50, later in 1_i64..50) {
            let none = Digests::default();
            let row = row(version, changed.map(i64::from), 7);
            let listed = Some(Timestamp::from_micros(time + later));
            let as_of = AsOf { at: Some(at(time)), listed, ..AsOf::default() };
            let verdict = judge(stated(kind, &none, false), as_of, Some(&row));
            prop_assert!(matches!(verdict, Verdict::Keep | Verdict::Unknown), "{verdict:?}");
            let lost = AsOf { is_uncertain: true, ..as_of };
            prop_assert_eq!(judge(stated(1, &none, false), lost, Some(&row)), Verdict::Delete);
        }

        #[test]
        fn a_verdict_that_was_carried_out_is_kept(kind in 2_u8..5, version in 0_u8..5, is_change: bool, time in 0_i64..50, changed: Option<u8>) {
            let none = Digests::default();
            let as_of = AsOf { at: Some(at(time)), ..AsOf::default() };
            let before = (version > 1).then(|| row(version, changed.map(i64::from), 1));
            let stated = stated(kind, &none, is_change);
            if judge(stated, as_of, before.as_ref()) == Verdict::Fetch {
                let after = row(kind, Some(time), 2);
                prop_assert_eq!(judge(stated, as_of, Some(&after)), Verdict::Keep);
            }
        }

        #[test]
        fn unknown_times_delete_only_what_a_list_lacks(kind in 0_u8..5, version in 2_u8..5, changed: Option<u8>, uncertain: bool) {
            let none = Digests::default();
            let row = row(version, changed.map(i64::from), 7);
            let as_of = AsOf { is_uncertain: uncertain, ..AsOf::default() };
            let verdict = judge(stated(kind, &none, false), as_of, Some(&row));
            prop_assert_eq!(verdict == Verdict::Delete, kind < 2);
            prop_assert!(verdict != Verdict::Unknown);
        }

        #[test]
        fn a_change_since_the_source_went_back_wins_over_an_older_list(kind in 1_u8..5, version in 2_u8..5, time in 0_i64..50, later in 1_i64..50) {
            let (none, row) = (Digests::default(), row(version, Some(time + later), 7));
            let as_of = AsOf { at: Some(at(time)), is_uncertain: true, lost_until: Some(6), ..AsOf::default() };
            let verdict = judge(stated(kind, &none, false), as_of, Some(&row));
            prop_assert!(matches!(verdict, Verdict::Keep | Verdict::Unknown), "{verdict:?}");
            let gone = AsOf { gone: Some(Timestamp::from_micros(time + later)), ..as_of };
            prop_assert_eq!(judge(stated(2, &none, false), gone, None), Verdict::Unknown);
            let lost = AsOf { lost_until: Some(7), ..as_of };
            prop_assert_eq!(judge(stated(1, &none, false), lost, Some(&row)), Verdict::Delete);
        }

        #[test]
        fn a_history_that_is_lost_protects_nothing(kind in 0_u8..2, time in 0_i64..50, later in 1_i64..50) {
            let (none, row) = (Digests::default(), row(2, Some(time + later), 7));
            let as_of = AsOf { at: Some(at(time)), is_uncertain: true, ..AsOf::default() };
            prop_assert_eq!(judge(stated(kind, &none, false), as_of, Some(&row)), Verdict::Delete);
        }
    }
}
