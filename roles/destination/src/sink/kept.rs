//! Does a copy that is no folder have what is expected? Its state, read back, beside the Source's list.

use crate::audit::AuditReport;
use crate::error::Error;
use crate::events::{Event, Item, ItemAction, Observer, Status};
use crate::verify::{Verdict, judge};
use abreast_store::mirror::{Expected, ExpectedRow, Mirror, Row};
use abreast_webtypes::Digests;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Rows compared at a time.
const ROWS: usize = 512;

/// Reads back what is kept.
pub(crate) trait ReadBack {
    /// Is it where the state says, as far as a look tells?
    fn is_there(&mut self, mirror: &Mirror, row: &Row) -> Result<bool, Error>;

    /// Digests of the bytes that are there, of the algorithms that are listed, and their length.
    fn digests(&mut self, mirror: &Mirror, row: &Row, listed: &Digests) -> Result<Option<(Digests, u64)>, Error>;

    /// Tells what is there and the state does not know.
    fn strangers(&mut self, _mirror: &Mirror, _tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
        Ok(())
    }
}

/// An audit of such a copy.
pub(crate) struct Kept<'a> {
    pub(crate) mirror: Mirror,
    pub(crate) reader: Box<dyn ReadBack>,
    pub(crate) full: bool,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) cancel: &'a AtomicBool,
}

impl Kept<'_> {
    pub(crate) fn compare(mut self, expected: &Expected) -> Result<AuditReport, Error> {
        let mut report = AuditReport { full: self.full, ..AuditReport::default() };
        let (mut key, mut rows, began) = (String::new(), Vec::new(), Instant::now());
        loop {
            rows.clear();
            expected.after(&key, ROWS, &mut rows)?;
            let Some(last) = rows.last() else { break };
            key.clone_from(&last.uri);
            for listed in &rows {
                self.compare_one(listed, &mut report)?;
            }
            self.check_cancelled()?;
            let done = report.same + report.updated + report.missing;
            let seconds = began.elapsed().as_secs_f64();
            self.observer.event(&Event::Status(Status { phase: "comparing", done, seconds, ..Status::default() }));
        }
        self.find_extra(expected, &mut report)?;
        let (mirror, observer) = (&self.mirror, self.observer);
        self.reader.strangers(mirror, &mut |path| {
            report.extra += 1;
            observer.event(&Event::Item(Item { uri: "", path, action: ItemAction::Extra, bytes: 0 }));
        })?;
        Ok(report)
    }

    fn find_extra(&self, expected: &Expected, report: &mut AuditReport) -> Result<(), Error> {
        let (mut key, mut rows) = (String::new(), Vec::new());
        loop {
            rows.clear();
            self.mirror.rows_after(&key, ROWS, &mut rows)?;
            let Some(last) = rows.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            for row in &rows {
                // What is kept although filters exclude it is nobody's concern.
                if !expected.contains(&row.uri)? && !self.mirror.is_excluded(&row.uri)? {
                    report.extra += 1;
                    self.tell(&row.uri, ItemAction::Extra);
                }
            }
            self.check_cancelled()?;
        }
    }

    fn compare_one(&mut self, listed: &ExpectedRow, report: &mut AuditReport) -> Result<(), Error> {
        let mut expected = Digests::default();
        expected.set_from_bytes(&listed.digests);
        let found = match self.mirror.row(&listed.uri)? {
            Some(row) if self.full => self.reader.digests(&self.mirror, &row, &expected)?,
            Some(row) if self.reader.is_there(&self.mirror, &row)? => {
                let mut digests = Digests::default();
                digests.set_from_bytes(&row.digests);
                Some((digests, row.length))
            }
            _ => None,
        };
        match found.map(|(digests, length)| judge(&expected, listed.length, &digests, length)) {
            None => {
                report.missing += 1;
                self.tell(&listed.uri, ItemAction::Missing);
            }
            Some(Verdict::Mismatch) => {
                report.updated += 1;
                self.tell(&listed.uri, ItemAction::Different);
            }
            Some(verdict) => {
                report.same += 1;
                report.unverified += u64::from(verdict == Verdict::Unverified);
            }
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
    }

    fn tell(&self, uri: &str, action: ItemAction) {
        self.observer.event(&Event::Item(Item { uri, path: uri, action, bytes: 0 }));
    }
}
