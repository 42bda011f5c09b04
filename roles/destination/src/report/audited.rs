//! The outcome of an audit.

use serde::Serialize;

/// The outcome of an audit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditReport {
    /// Whether digests were compared.
    pub full: bool,
    /// Listed and here, as listed.
    pub same: u64,
    /// Listed and here, but other bytes or another time.
    #[serde(rename = "different")]
    pub updated: u64,
    /// Listed, not here.
    pub missing: u64,
    /// Here, not listed.
    pub extra: u64,
    /// Listed without anything to compare by.
    pub unverified: u64,
    /// The documents are too old, or list too little, to show whether the copy has them rightly.
    pub unknown: u64,
    /// Documents could not be read or used in whole, or do not list some changes: a difference may
    /// not have been found.
    pub partial: bool,
    /// Listed and here, under the reserved name because a folder that no resource needs has their
    /// own.
    pub conflicts: u64,
    /// Of all sets: those without a copy.
    pub missing_sets: u64,
    /// Deletions that the runs of the copy hold back.
    pub held: u64,
    /// Since when they are held back, as a W3C Datetime.
    pub held_since: Option<String>,
    /// Since when each run of the copy had failures or refusals, as a W3C Datetime.
    pub failing_since: Option<String>,
    /// Requests sent.
    pub requests: u64,
    /// Seconds taken.
    pub seconds: f64,
    /// The exit code: 0 equal, 1 different, 3 if no difference was found and there may be some.
    pub exit_code: u8,
}
