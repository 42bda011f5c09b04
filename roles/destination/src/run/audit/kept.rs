//! The audit of a copy that is read back through its sink.

use crate::read::expectation::{Expectation, OneSide};
use crate::report::audited::AuditReport;
use crate::report::error::Error;
use crate::report::events::{Event, Item, ItemAction, Observer, Problem, Status};
use crate::request::verify::{Verdict, judge};
use crate::sink::kept::{DamageKind, ReadBack};
use abreast_store::mirror::{Expected, ExpectedRow, Mirror};
use abreast_webtypes::Digests;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// An audit of a copy that is read back.
pub(crate) struct Kept<'a> {
    pub(crate) mirror: Mirror,
    pub(crate) reader: Box<dyn ReadBack>,
    pub(crate) full: bool,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) cancel: &'a AtomicBool,
    pub(crate) expectation: &'a Expectation,
}

impl Kept<'_> {
    pub(crate) fn compare(mut self, expected: &Expected) -> Result<AuditReport, Error> {
        let mut report = AuditReport { full: self.full, ..AuditReport::default() };
        let (began, meter) = (Instant::now(), self.observer.meter());
        meter.begin("comparing");
        if meter.is_listening() {
            meter.expect(expected.count()?, 0);
        }
        expected.each_batch(|rows| {
            if self.full {
                let uris: Vec<&str> = rows.iter().map(|row| row.uri.as_str()).collect();
                self.reader.read_ahead(&self.mirror, &uris)?;
            }
            for listed in rows {
                self.compare_one(listed, &mut report)?;
                meter.add(1, 0);
            }
            self.check_cancelled()?;
            let done = report.same + report.updated + report.missing;
            let seconds = began.elapsed().as_secs_f64();
            self.observer.event(&Event::Status(Status {
                phase: "comparing",
                done,
                seconds,
                ..Status::default()
            }));
            Ok::<(), Error>(())
        })?;
        self.find_extra(expected, &mut report)?;
        let (mirror, observer) = (&self.mirror, self.observer);
        if let Some((file, damage)) = self.reader.file_damage()? {
            let (count, action) = match damage.kind {
                DamageKind::Missing => (&mut report.missing, ItemAction::Missing),
                _ => (&mut report.updated, ItemAction::Different),
            };
            *count += 1;
            observer.event(&Event::Item(Item { path: &file, ..Item::new("", action) }));
        }
        if let Some((code, message)) = self.reader.remark() {
            observer.event(&Event::Notice(Problem { code, uri: "", message: &message }));
        }
        self.reader.extras(mirror, &mut |path| {
            report.extra += 1;
            observer.event(&Event::Item(Item { path, ..Item::new("", ItemAction::Extra) }));
        })?;
        Ok(report)
    }

    fn find_extra(&self, expected: &Expected, report: &mut AuditReport) -> Result<(), Error> {
        self.mirror.each_batch(|rows| {
            for row in rows {
                // Stored resources that the filters exclude are not compared.
                if expected.contains(&row.uri)? || self.mirror.is_excluded(&row.uri)? {
                    continue;
                }
                if self.expectation.extra(expected, row)? == OneSide::Unknown {
                    report.unknown += 1;
                } else {
                    report.extra += 1;
                    self.report_item(&row.uri, None, ItemAction::Extra);
                }
            }
            self.check_cancelled()
        })?;
        // Listed resources are compared by other means.
        let mut unlisted = Vec::new();
        self.mirror.each_without_row(&mut |uri| unlisted.push(uri.to_owned()))?;
        for uri in unlisted {
            if !expected.contains(&uri)? && !self.mirror.is_excluded(&uri)? {
                report.extra += 1;
                self.report_item(&uri, None, ItemAction::Extra);
            }
        }
        Ok(())
    }

    fn compare_one(&mut self, listed: &ExpectedRow, report: &mut AuditReport) -> Result<(), Error> {
        let mut expected = Digests::default();
        expected.set_from_bytes(&listed.digests);
        let row = self.mirror.row(&listed.uri)?;
        let by_row = row.as_ref().map(|row| self.expectation.judge_row(listed, row));
        let is_unknown = by_row == Some(Verdict::Unknown);
        let reads = self.full && (is_unknown || !self.reader.keeps_bytes());
        let found = match &row {
            // The resource is stored, but its version is not known.
            None if self.mirror.has_place(&listed.uri)? => Some(Verdict::Mismatch),
            None => None,
            Some(row) => match self.reader.damage(&self.mirror, row, reads)? {
                Some(damage) if damage.kind == DamageKind::Missing => None,
                Some(damage) if damage.kind == DamageKind::Unknown => Some(Verdict::Unverified),
                Some(_) => Some(Verdict::Mismatch),
                None if is_unknown => Some(Verdict::Unknown),
                None if self.full => {
                    let found = self.reader.digests(&self.mirror, row, &expected)?;
                    found.map(|(digests, length)| judge(&expected, listed.length, &digests, length))
                }
                None => Some(Verdict::Verified),
            },
        };
        let found = found.map(|verdict| match (verdict, by_row) {
            // The bytes were read, or agree with the row.
            (Verdict::Verified, _) | (Verdict::Unverified, Some(Verdict::Verified))
                if self.full =>
            {
                verdict
            }
            (Verdict::Verified | Verdict::Unverified, Some(by_row)) => by_row,
            (verdict, _) => verdict,
        });
        match found {
            None if row.is_none()
                && self.expectation.missing(&self.mirror, listed)? == OneSide::Unknown =>
            {
                report.unknown += 1;
            }
            None => {
                report.missing += 1;
                self.report_item(&listed.uri, listed.href.as_deref(), ItemAction::Missing);
            }
            Some(Verdict::Mismatch) => {
                report.updated += 1;
                self.report_item(&listed.uri, listed.href.as_deref(), ItemAction::Different);
            }
            Some(Verdict::Unknown) => report.unknown += 1,
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

    fn report_item(&self, uri: &str, href: Option<&str>, action: ItemAction) {
        self.observer.event(&Event::Item(Item { href, ..Item::new(uri, action) }));
    }
}
