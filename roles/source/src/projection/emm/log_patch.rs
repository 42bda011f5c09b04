//! Addresses of patches in the log of patches.

use abreast_core::Position;

/// A patch in the log of a set's patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogPatch {
    /// The log before the first patch, which is empty.
    Init,
    /// The patch of the last change.
    Current,
    At(Position),
    Id([u8; 16]),
}
