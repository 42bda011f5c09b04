//! Evidence from documents about a copy that is compared with them: their age, and the questions
//! that they leave open.
//!
//! A list of all resources is not evidence about later changes. If the listed changes continue from
//! the list, both together describe the Source as it is now. If changes in between are missing, the
//! copy may know more than the documents.

use super::position::Position;
use crate::plan::judge::{AsOf, Stated, Verdict as Planned, judge};
use crate::report::clock::now;
use crate::report::error::Error;
use crate::request::verify::Verdict;
use abreast_store::mirror::{Expected, ExpectedRow, Mirror, Row};
use abreast_webtypes::{Digests, Moment, Timestamp};

/// The documents of a Source that were read for a comparison without changes to the copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectation {
    /// The list of all resources.
    pub(super) list: AsOf,
    /// Resources that neither the list nor a change contains are not in the set.
    pub(super) lists_all: bool,
    /// Changes are missing between the list and the listed changes.
    pub(super) has_gap: bool,
    /// Something that a copy may lack could not be read or used.
    pub(crate) is_lacking: bool,
    /// A description without statements means that its resource was deleted.
    pub(super) is_gone_if_empty: bool,
    /// The time up to which the copy knows all changes.
    pub(super) known: Option<Moment>,
}

/// The conclusion about a resource that only the Source or only the copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OneSide {
    /// The two differ.
    Differs,
    /// The documents do not show whether there is a difference.
    Unknown,
}

impl Expectation {
    /// Before anything is read, for a copy with this position.
    pub(super) fn new(position: &Position, is_gone_if_empty: bool) -> Self {
        // A history that the Source may not have any more protects nothing.
        let is_uncertain = position.due.as_ref().is_some_and(|due| due.is_uncertain);
        Self {
            list: AsOf { is_uncertain, now: Some(now()), ..AsOf::default() },
            known: position.until(),
            is_gone_if_empty,
            ..Self::default()
        }
    }

    /// Judges a resource whose stored bytes agree with a row. If only the server knows whether the
    /// stored version is the listed one, a later change decides.
    pub(crate) fn judge_row(&self, listed: &ExpectedRow, row: &Row) -> Verdict {
        let [digests, kept] = [&listed.digests, &row.digests].map(|bytes| {
            let mut digests = Digests::default();
            digests.set_from_bytes(bytes);
            digests
        });
        let agree = digests.agree(&kept);
        let ExpectedRow { length, modified, is_change, .. } = *listed;
        let stated = Stated::Present { length, modified, digests: &digests, is_change };
        let at = Timestamp::from_micros;
        let as_of = match listed.at {
            // A copy that is later than the last change differs from the change too.
            Some((first, _)) if is_change => {
                AsOf { at: Some(Moment::exact(at(first))), is_uncertain: true, ..AsOf::default() }
            }
            Some((first, last)) => {
                AsOf { at: Some(Moment::between(at(first), at(last))), ..self.list }
            }
            None => self.list,
        };
        match judge(stated, as_of, Some(row)) {
            Planned::Unknown => Verdict::Unknown,
            Planned::Fetch if agree.is_none() && listed.modified.is_none() => {
                let is_other = listed.length.is_some_and(|length| length != row.length);
                let changed = listed.at.filter(|_| is_change);
                let is_later = row.changed.zip(changed).is_some_and(|(kept, now)| kept < now.0);
                if is_other || is_later { Verdict::Mismatch } else { Verdict::Unverified }
            }
            Planned::Fetch => Verdict::Mismatch,
            _ if agree == Some(true) => Verdict::Verified,
            _ => Verdict::Unverified,
        }
    }

    /// The conclusion from a listed resource that is not stored.
    pub(crate) fn missing(&self, mirror: &Mirror, listed: &ExpectedRow) -> Result<OneSide, Error> {
        let first = listed.at.map(|at| Timestamp::from_micros(at.0));
        let first = first.or(self.list.at.map(Moment::first));
        let gone = mirror.gone(&listed.uri)?.map(Timestamp::from_micros);
        if !self.list.is_uncertain && gone.zip(first).is_some_and(|(gone, first)| first < gone) {
            return Ok(OneSide::Unknown);
        }
        let is_known = first.zip(self.known).is_some_and(|(at, known)| at <= known.first());
        // Deleted by a change that is not listed any more, or by a description that was empty.
        let may_be_gone =
            if listed.is_change { self.is_gone_if_empty && listed.describes } else { self.has_gap };
        let is_unknown = is_known
            && may_be_gone
            && !self.list.is_uncertain
            && mirror.row(&listed.uri)?.is_none()
            && mirror.task(&listed.uri)?.is_none();
        Ok(if is_unknown { OneSide::Unknown } else { OneSide::Differs })
    }

    /// The conclusion from a stored resource that is not listed.
    pub(crate) fn extra(&self, expected: &Expected, row: &Row) -> Result<OneSide, Error> {
        if expected.is_gone(&row.uri)? {
            return Ok(OneSide::Differs);
        }
        let is_old = judge(Stated::Absent, self.list, Some(row)) == Planned::Unknown;
        Ok(if is_old || !self.lists_all { OneSide::Unknown } else { OneSide::Differs })
    }
}
