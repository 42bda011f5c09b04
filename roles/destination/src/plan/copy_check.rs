//! The comparison of stored files with their rows, in one run.

use crate::sink::kept::ReadBack;

/// The progress of the comparison in a run.
#[derive(Default)]
pub(crate) struct CopyCheck {
    /// Reads the stored data; opened at the first use.
    pub(crate) kept: Option<Box<dyn ReadBack>>,
    /// Resources that are unnecessarily stored under the reserved name.
    pub(crate) misnamed: Vec<String>,
    /// Every row was compared with the stored data.
    pub(crate) is_done: bool,
    /// The stored data differs from the database: the copy was restored, replaced or emptied. Every
    /// row is compared, as thoroughly as necessary.
    pub(crate) is_distrusted: bool,
}
