//! The result of a repair.

use serde::Serialize;

/// Number of steps of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "summary")]
pub struct RepairReport {
    /// Number of steps; 0 if nothing was damaged.
    pub steps: usize,
    /// Whether the steps were reported only.
    pub dry_run: bool,
}
