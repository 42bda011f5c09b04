//! The options of a migration of a whole store.

use abreast_core::Meter;

/// The stores, and the extent of the comparison.
pub(crate) struct Options<'o> {
    pub(crate) from: &'o str,
    pub(crate) to: &'o str,
    /// The bucket of a database that is given by its URL.
    pub(crate) contents: Option<&'o str>,
    /// Number of contents that are read back.
    pub(crate) sample: u64,
    pub(crate) meter: Meter,
    pub(crate) is_cancelled: &'o (dyn Fn() -> bool + Sync),
}
