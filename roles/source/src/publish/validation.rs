//! The last validation of a set, from the report that `abreast validate --format json` wrote.

use abreast_webtypes::Timestamp;
use serde::Deserialize;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Bytes at the end of a report that contain the summary.
const TAIL: u64 = 16 << 10;

/// The result of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validation {
    /// When the report was written.
    pub time: Timestamp,
    /// Number of errors: violations of a MUST.
    pub errors: u64,
    /// Number of warnings, such as violations of a SHOULD.
    pub warnings: u64,
    /// Number of checked documents.
    pub documents: u64,
}

/// The last line of a report.
#[derive(Deserialize)]
struct Summary {
    #[serde(rename = "type")]
    kind: String,
    errors: u64,
    warnings: u64,
    documents: u64,
    cancelled: bool,
}

impl Validation {
    /// Reads the summary of a report; `None` if the file does not exist or is not a complete
    /// report, or the validation did not check any document.
    pub fn read(report: &Path) -> Option<Self> {
        let mut file = File::open(report).ok()?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let time = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(TAIL))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail).ok()?;
        let last = tail.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
        let summary: Summary = serde_json::from_slice(last).ok()?;
        let is_complete = summary.kind == "summary" && !summary.cancelled && summary.documents > 0;
        is_complete.then_some(Self {
            time: Timestamp::from_seconds(i64::try_from(time.as_secs()).ok()?),
            errors: summary.errors,
            warnings: summary.warnings,
            documents: summary.documents,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_reports_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Validation::read(&path).map(|found| [found.errors, found.warnings, found.documents])
        };
        let summary = |documents: u64, cancelled: bool| {
            format!(
                "{{\"type\":\"summary\",\"errors\":2,\"warnings\":1,\"documents\":{documents},\"cancelled\":{cancelled}}}\n"
            )
        };
        let findings = "{\"type\":\"finding\"}\n".repeat(2_000);
        assert_eq!(read(&format!("{findings}{}", summary(9, false))), Some([2, 1, 9]));
        assert_eq!(read(&summary(9, false)), Some([2, 1, 9]));
        for text in [&findings, "", &summary(9, true), &summary(0, false), "1 error\n"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Validation::read(&folder.path().join("none")), None);
        assert_eq!(Validation::read(folder.path()), None);
    }
}
