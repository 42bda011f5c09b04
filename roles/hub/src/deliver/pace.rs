//! The speed at which the host of a target answers.

use std::time::Duration;

/// The speed of a recipient in its last exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pace {
    /// No exchange with the recipient since the start.
    #[default]
    New,
    /// The recipient answered, or failed, within `slow_after`.
    Quick,
    /// The recipient needed more time, or had to release its place before it answered.
    Slow,
    /// The recipient did not answer several times in a row.
    Silent,
}

impl Pace {
    /// Whether the pace is for recipients whose last exchange was slow; they have separate lanes.
    pub(crate) const fn is_slow(self) -> bool {
        matches!(self, Self::Slow | Self::Silent)
    }
}

/// The longest pause before the next attempt to publish to a node.
pub(super) const NODE_PAUSE_MAX: Duration = Duration::from_secs(60);
