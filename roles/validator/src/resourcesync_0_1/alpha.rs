//! Documents of ResourceSync 0.1, as records of the walk.

use crate::fetch;
use abreast_webtypes::Timestamp;

/// A document or dump of 0.1 that was read.
#[derive(Debug, Default)]
pub(crate) struct Alpha {
    pub(crate) name: &'static str,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) modified: Option<Timestamp>,
    pub(crate) is_change_set: bool,
    /// It is a document that cannot be read to its end.
    pub(crate) is_cut: bool,
    /// Why copies refuse it.
    pub(crate) refusal: Option<String>,
    /// It is a dump that was given, and not read yet.
    pub(crate) is_dump: bool,
    pub(crate) children: Vec<String>,
    pub(crate) facts: fetch::ResponseFacts,
}
