//! How fast the host of a target answers.

use std::time::Duration;

/// How fast a recipient answers, by its last exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Nothing was sent to it since the start.
    #[default]
    New,
    /// It answered, or failed, soon.
    Quick,
    /// It took long, or had to give up its place before it answered.
    Slow,
    /// It did not answer several times in a row.
    Silent,
}

impl Pace {
    /// A lane of their own for those whose last exchange took long.
    pub(crate) const fn is_slow(self) -> bool {
        matches!(self, Self::Slow | Self::Silent)
    }
}

/// The longest pause before the next attempt to publish to a node.
pub(super) const NODE_PAUSE_MAX: Duration = Duration::from_secs(60);
