//! Properties that hold for any bytes.

use std::io::Read;

use crate::{Patch, ReadError, ReadOptions, Reader, Row, Writer};

/// A patch has the same rows in every division of its bytes. The lenient reader accepts every patch
/// of the strict reader, and without a finding reads equal rows. Rows that are read can be written,
/// and the strict reader reads equal rows again.
///
/// # Panics
/// When that is not so.
pub fn patch(bytes: &[u8]) {
    let lenient = rows(bytes, ReadOptions::lenient());
    assert_eq!(lenient, rows(Pieces(bytes), ReadOptions::lenient()));
    let strict = rows(bytes, ReadOptions::default());
    assert_eq!(strict, rows(Pieces(bytes), ReadOptions::default()));
    if strict.error.is_none() {
        assert_eq!(lenient.error, None);
        assert!(lenient.findings > 0 || lenient.rows == strict.rows);
    }
    let Some(written) = written(&lenient) else { return };
    let again = rows(&written[..], ReadOptions::default());
    assert_eq!(
        (again.error.as_deref(), &again.rows),
        (None, &lenient.rows),
        "{}",
        String::from_utf8_lossy(&written)
    );

    let patch = Patch::from_slice(&written).expect("a strict patch");
    let mut set = std::collections::HashSet::new();
    let changed = patch.apply(&mut set);
    if let Ok(back) = changed.reversed() {
        back.apply(&mut set);
        assert!(set.is_empty());
    }
}

#[derive(Debug, PartialEq)]
struct Outcome {
    rows: Vec<Row>,
    error: Option<String>,
    findings: u64,
}

fn rows(input: impl Read, options: ReadOptions) -> Outcome {
    let mut reader = Reader::new(input, options);
    let mut rows = Vec::new();
    let mut error = None;
    for row in reader.by_ref() {
        match row {
            Ok(row) => rows.push(row),
            Err(ReadError::Syntax(finding)) => error = Some(finding.to_string()),
            Err(ReadError::Io(_)) => {}
        }
    }
    Outcome { rows, error, findings: reader.finding_count() }
}

/// The rows as text, if all rows can be written.
fn written(read: &Outcome) -> Option<Vec<u8>> {
    if read.error.is_some() {
        return None;
    }
    let mut writer = Writer::new(Vec::new());
    for row in &read.rows {
        writer.row(row).ok()?;
    }
    writer.finish().ok()
}

struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.len().min(buffer.len()).min(7);
        buffer[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}
