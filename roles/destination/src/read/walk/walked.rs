//! What a walk found.

use super::Cut;
use crate::read::position::Bookmark;
use crate::request::package::listing::Dump;
use abreast_rdf::LeftOut;
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp};
use std::collections::BTreeMap;

/// What a walk through changes found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// The document asked first is as it was.
    pub(crate) is_unchanged: bool,
    /// Changes handed over, known ones included.
    pub(crate) entries: u64,
    /// Changes handed over that were not known.
    pub(crate) new: u64,
    /// Changes with a time.
    pub(crate) dated: u64,
    /// The newest change that is not in the future.
    pub(crate) newest: Option<Moment>,
    /// The latest end that a document states.
    pub(crate) stated: Option<Timestamp>,
    /// The time of the oldest one.
    pub(crate) oldest: Option<Timestamp>,
    /// The newest change was given by a document whose times may be off by most of a day.
    pub(crate) widen: i64,
    /// All changes since then were read, as the documents give it.
    pub(crate) from: Option<Moment>,
    /// The walk ended before it reached what is older: changes known of a later time had to be found.
    pub(crate) end: Option<Timestamp>,
    /// Pages that were not reached.
    pub(crate) cut: Option<Cut>,
    /// Documents that were not reached are older, whatever the cut states.
    pub(crate) is_back: bool,
    /// The documents changed each time they were read.
    pub(crate) is_unstable: bool,
    /// Changes came while the documents were read: what is missing in them may be on one that was read before.
    pub(crate) has_grown: bool,
    /// Entries were left out: the position stays.
    pub(crate) left_out: bool,
    /// Why the Source is of an earlier state than the copy knows, if it is.
    pub(crate) went_back: Option<String>,
    /// The copy is compared again with a newer snapshot, for this reason.
    pub(crate) recheck: Option<String>,
    /// Changes that were published late and are older than the list of all resources: the last time of each resource by its
    /// fingerprint, and whether the copy has another state.
    pub(crate) late_for_list: BTreeMap<u64, (Timestamp, bool)>,
    /// The changes begin after the snapshot, and no document gives since when all are listed.
    pub(crate) is_apart: bool,
    /// Closed documents give their end, as [`Position`](crate::read::position::Position) notes it.
    pub(crate) gives_end: Option<bool>,
    /// Changes are missing between the span of two documents.
    pub(crate) hole: Option<String>,
    /// The position moves no further than this.
    pub(crate) limit: Option<Timestamp>,
    /// A change was published late: its time is before the position.
    pub(crate) late: Option<Timestamp>,
    /// The first time in the future, and fingerprints of the entries that have one, with the width of their times, microseconds.
    pub(crate) first_future: Option<Timestamp>,
    pub(crate) future: Vec<(u64, i64)>,
    /// A change was handed over whose time is an interval around that of the position.
    pub(crate) is_around: bool,
    /// Entries that no change could be made of, and what the first one is.
    pub(crate) unusable: u64,
    pub(crate) first_unusable: Option<String>,
    /// The list of all resources has a time so far ahead that it shows nothing.
    pub(crate) is_undated: bool,
    /// The time of the list of all resources, if no clock has reached it yet.
    pub(crate) early: Option<Timestamp>,
    /// The position is later than the Source's clock.
    pub(crate) is_ahead: bool,
    /// The server's clock at the first answer.
    pub(crate) date: Option<Timestamp>,
    /// Times and fingerprints of the newest changes.
    pub(crate) recent: Vec<(i64, u64)>,
    /// What to request first the next time, if that is known.
    pub(crate) bookmark: Option<Bookmark>,
    /// What is known now of documents, for conditional requests.
    pub(crate) documents: Vec<(String, Document)>,
    /// The packages that the changes were read of.
    pub(crate) made_from: Option<Dump>,
    /// IRIs in place of blank nodes that are parts of the descriptions of a snapshot, if that has descriptions.
    pub(crate) parts: Option<u64>,
    /// The name of a snapshot that has descriptions, and the statements that were left out of it.
    pub(crate) invalid: Option<(String, LeftOut)>,
}
