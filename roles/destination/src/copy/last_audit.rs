//! The last audit of a copy, as a record beside the database, for reports.
//!
//! It is not a row of the database, since an audit opens the database read-only, also while a run
//! writes it.

use crate::copy::state_folder::StateFolder;
use crate::report::audited::AuditReport;
use crate::report::clock::now;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of the file beside the database.
const NAME: &str = "last-audit";
/// Longest record, in bytes.
const BYTES_MAX: u64 = 4 << 10;

/// The last audit of a copy that came to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastAudit {
    /// The end of the audit, as a W3C Datetime.
    pub ended: String,
    /// Whether the audit compared digests, not only lengths and times.
    pub full: bool,
    /// Resources that are listed and stored, with the listed properties.
    pub same: u64,
    /// Resources that are listed and stored, but with other bytes or another time than listed.
    pub different: u64,
    /// Resources that are listed and not stored.
    pub missing: u64,
    /// Resources that are stored and not listed.
    pub extra: u64,
    /// Resources that could not be compared.
    pub unverified: u64,
    /// The exit code: 0 equal, 1 different, 3 if no difference was found and there may be some.
    pub exit_code: u8,
}

impl LastAudit {
    /// Reads the record beside the database of a copy; `None` if no audit of this version came to its end, and
    /// if the record is damaged.
    pub fn read(state: &Path) -> Option<Self> {
        let text = StateFolder::at(state).ok()?.read_text(NAME, BYTES_MAX).ok()??;
        serde_json::from_str(&text).ok()
    }

    /// Writes the record beside the database, if this user may write there. An audit otherwise only reads.
    pub(crate) fn keep(state: &Path, report: &AuditReport) {
        let record = Self {
            ended: now().to_string(),
            full: report.full,
            same: report.same,
            different: report.updated,
            missing: report.missing,
            extra: report.extra,
            unverified: report.unverified + report.unknown,
            exit_code: report.exit_code,
        };
        if let (Ok(state), Ok(text)) = (StateFolder::at(state), serde_json::to_string(&record)) {
            let _ = state.replace_text(NAME, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_audit_is_kept_and_a_damaged_record_is_none() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(LastAudit::read(place.path()), None);
        let report = AuditReport { same: 3, extra: 1, exit_code: 1, ..AuditReport::default() };
        LastAudit::keep(place.path(), &report);
        let read = LastAudit::read(place.path()).unwrap();
        assert_eq!((read.same, read.extra, read.exit_code), (3, 1, 1));
        let path = place.path().join(NAME);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"same\":3", "\"same\":99")).unwrap();
        assert_eq!(LastAudit::read(place.path()), None);
    }
}
