//! The check of a store that several nodes share.

use crate::maintenance::integrity::findings::Findings;
use crate::maintenance::integrity::set::SetFacts;
use abreast_core::{ContentId, LogError, Meter};

/// A store that several nodes share, as a check reads it. Nodes may record changes meanwhile.
pub trait SharedStore: Sync {
    /// Checks the rows of all sets as they are at one instant; `place` is the name of the store in
    /// findings. The check stops with an error when `is_stopped` returns true.
    ///
    /// # Errors
    /// The store cannot be read, or the check was stopped. The findings up to there are valid.
    fn check_log(
        &self,
        place: &str,
        findings: &mut Findings,
        meter: &Meter,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<SetFacts>, LogError>;

    /// Addresses and lengths of the contents that rows need, in the order of the addresses after
    /// `after`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn needed_contents(
        &self,
        after: &[u8],
        limit: usize,
    ) -> Result<Vec<(ContentId, u64)>, LogError>;

    /// Whether a row needs a content now.
    ///
    /// # Errors
    /// The store cannot be read.
    fn is_needed(&self, id: &ContentId) -> Result<bool, LogError>;
}
