//! The addresses of patches.

use abreast_core::Position;

/// A patch of the log of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogPatch {
    /// The state before the first patch.
    Init,
    /// That of the last change.
    Current,
    At(Position),
    Id([u8; 16]),
}
