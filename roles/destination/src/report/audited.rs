//! Counts of an audit: a comparison of a copy with its Source, without changes.

use crate::report::clock::earlier;
use serde::Serialize;

/// The counts of an audit, and its exit code; reported as the last event of the audit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditReport {
    /// Whether the audit compared digests, not only lengths and times.
    pub full: bool,
    /// Resources that are listed and stored, with the listed properties.
    pub same: u64,
    /// Resources that are listed and stored, but with other bytes or another time than listed.
    #[serde(rename = "different")]
    pub updated: u64,
    /// Resources that are listed and not stored.
    pub missing: u64,
    /// Resources that are stored and not listed.
    pub extra: u64,
    /// Resources that are listed without a digest, length or time to compare with.
    pub unverified: u64,
    /// Resources whose version cannot be judged: the documents are too old or list too little.
    pub unknown: u64,
    /// Whether documents could not be read or used completely, or do not list some changes, so that
    /// a difference may not have been found.
    pub partial: bool,
    /// Resources that are listed and stored, but under the reserved name, because a folder that no
    /// resource needs occupies their path.
    pub conflicts: u64,
    /// Sets of the Source without a copy, if all sets are audited.
    pub missing_sets: u64,
    /// Deletions that the runs of this copy hold back.
    pub held: u64,
    /// The time of the first run that held deletions back, as a W3C Datetime.
    pub held_since: Option<String>,
    /// The time of the first of the uninterrupted runs with failures or refusals, as a W3C
    /// Datetime.
    pub failing_since: Option<String>,
    /// Number of requests that the audit sent.
    pub requests: u64,
    /// Duration of the audit, in seconds.
    pub seconds: f64,
    /// The exit code: 0 equal, 1 different, 3 if no difference was found and there may be some.
    pub exit_code: u8,
}

impl AuditReport {
    /// Adds the counts of the audit of another set, and keeps the exit code.
    pub fn add(&mut self, audit: &Self) {
        for (sum, part) in [
            (&mut self.same, audit.same),
            (&mut self.updated, audit.updated),
            (&mut self.missing, audit.missing),
            (&mut self.extra, audit.extra),
            (&mut self.unverified, audit.unverified),
            (&mut self.unknown, audit.unknown),
            (&mut self.conflicts, audit.conflicts),
            (&mut self.requests, audit.requests),
            (&mut self.held, audit.held),
        ] {
            *sum += part;
        }
        self.partial |= audit.partial;
        self.held_since = earlier(self.held_since.take(), audit.held_since.clone());
        self.failing_since = earlier(self.failing_since.take(), audit.failing_since.clone());
    }
}
