//! Whether the files of a copy were compared with what was written.

use crate::sink::kept::ReadBack;

/// The state of a run about the files of the copy.
#[derive(Default)]
pub(crate) struct CopyCheck {
    /// Reads them back, once one was asked for.
    pub(crate) kept: Option<Box<dyn ReadBack>>,
    /// Resources kept under the reserved name without need.
    pub(crate) misnamed: Vec<String>,
    /// Every row was compared with what is there.
    pub(crate) is_done: bool,
    /// The copy is not as the state has it: it was restored, replaced or emptied. Every row is
    /// compared, as thoroughly as needed.
    pub(crate) is_distrusted: bool,
}
