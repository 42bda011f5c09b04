//! The newest versions of the resources in a part of a batch.

use crate::log::version_state::Dropped;
use abreast_core::Position;
use abreast_webtypes::Timestamp;
use std::collections::HashMap;

/// The newest versions of the resources of a part, which are read together when the first is needed.
#[derive(Default)]
pub(crate) struct NewestVersions {
    /// The keys of the part; empty when their versions were read.
    pub(crate) hashes: Vec<Vec<u8>>,
    /// Positions of their present states with stored bytes.
    pub(crate) positions: Vec<i64>,
    /// `None` for a resource without versions.
    pub(crate) versions: HashMap<Vec<u8>, Option<(Timestamp, Dropped)>>,
    /// Times of changes, by their positions.
    pub(crate) times: HashMap<Position, Timestamp>,
}

impl NewestVersions {
    /// The versions of keys, not read yet.
    pub(crate) fn of(hashes: Vec<Vec<u8>>) -> Self {
        Self { hashes, ..Self::default() }
    }
}
