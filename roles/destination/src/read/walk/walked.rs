//! The result of a walk through changes.

use super::Cut;
use crate::read::position::Bookmark;
use crate::request::package::listing::Dump;
use abreast_rdf::LeftOut;
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp};
use std::collections::BTreeMap;

/// The result of a walk through changes.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Whether the first document has not changed.
    pub(crate) is_unchanged: bool,
    /// Number of changes that were passed on, including known ones.
    pub(crate) entries: u64,
    /// Number of unknown changes that were passed on.
    pub(crate) new: u64,
    /// Changes with a time.
    pub(crate) dated: u64,
    /// The newest change that is not in the future.
    pub(crate) newest: Option<Moment>,
    /// The latest end time in a document.
    pub(crate) stated: Option<Timestamp>,
    /// The time of the oldest change.
    pub(crate) oldest: Option<Timestamp>,
    /// The newest change was given by a document whose times may be off by most of a day.
    pub(crate) widen: i64,
    /// All changes since this time were read, according to the documents.
    pub(crate) from: Option<Moment>,
    /// The walk ended before it reached older changes, so known changes after this time had to be
    /// found.
    pub(crate) end: Option<Timestamp>,
    /// The first page that was not reached, with the reason.
    pub(crate) cut: Option<Cut>,
    /// Whether documents that were not reached are older, regardless of `cut`.
    pub(crate) is_back: bool,
    /// Whether the documents changed during each walk.
    pub(crate) is_unstable: bool,
    /// Whether changes were added during the walk, so that missing changes may be in a document
    /// that was read before.
    pub(crate) has_grown: bool,
    /// Whether entries were left out, so that the position must not move.
    pub(crate) left_out: bool,
    /// The reason for the conclusion that the Source was restored to an earlier version.
    pub(crate) went_back: Option<String>,
    /// The copy is compared again with a newer snapshot, for this reason.
    pub(crate) recheck: Option<String>,
    /// Late changes that are older than the list of all resources: the last time for each
    /// fingerprint of a resource, and whether the copy has another version.
    pub(crate) late_for_list: BTreeMap<u64, (Timestamp, bool)>,
    /// Whether the changes start after the snapshot, and no document specifies the start of its
    /// changes.
    pub(crate) is_apart: bool,
    /// Whether closed documents contain their end time, for
    /// [`Position`](crate::read::position::Position).
    pub(crate) gives_end: Option<bool>,
    /// Changes are missing between the span of two documents.
    pub(crate) hole: Option<String>,
    /// The latest time to which the position may move.
    pub(crate) limit: Option<Timestamp>,
    /// A change was published late: its time is before the position.
    pub(crate) late: Option<Timestamp>,
    /// The first time in the future, and fingerprints of the entries with future times, with the
    /// widths of these times in microseconds.
    pub(crate) first_future: Option<Timestamp>,
    pub(crate) future: Vec<(u64, i64)>,
    /// Whether a change was passed on whose time is an interval around the time of the position.
    pub(crate) is_around: bool,
    /// Number of entries that do not result in a change, and a description of the first one.
    pub(crate) unusable: u64,
    pub(crate) first_unusable: Option<String>,
    /// Whether the time of the list of all resources is so far in the future that it is ignored.
    pub(crate) is_undated: bool,
    /// The time of the list of all resources, if it is still in the future by every clock.
    pub(crate) early: Option<Timestamp>,
    /// The position is later than the Source's clock.
    pub(crate) is_ahead: bool,
    /// The server's clock at the first response.
    pub(crate) date: Option<Timestamp>,
    /// Times and fingerprints of the newest changes.
    pub(crate) recent: Vec<(i64, u64)>,
    /// What to request first the next time, if that is known.
    pub(crate) bookmark: Option<Bookmark>,
    /// The current versions of documents, for conditional requests.
    pub(crate) documents: Vec<(String, Document)>,
    /// The packages that the changes were read of.
    pub(crate) made_from: Option<Dump>,
    /// IRIs in place of blank nodes that are parts of the descriptions of a snapshot, if that has descriptions.
    pub(crate) parts: Option<u64>,
    /// The name of a snapshot with descriptions, and the statements that were left out of the
    /// descriptions.
    pub(crate) invalid: Option<(String, LeftOut)>,
}
