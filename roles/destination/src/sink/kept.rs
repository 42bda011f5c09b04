//! A copy read back, whatever its sink: for checks, repairs, comparisons and audits.

use super::folder::FolderKept;
use super::rdf::nquads::NQuadsKept;
use super::warc::WarcKept;
use crate::read::expectation::{Expectation, OneSide};
use crate::report::error::Error;
use crate::report::events::{Event, Item, ItemAction, Observer, Problem, Status};
use crate::request::verify::{Verdict, judge};
use crate::run::audit::AuditReport;
use abreast_store::mirror::{Expected, ExpectedRow, Mirror, Pending, Row};
use abreast_webtypes::Digests;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Damage to the bytes kept of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) kind: DamageKind,
    pub(crate) message: String,
}

/// In which way what is there differs from what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DamageKind {
    /// Its URI has no path.
    NoPlace,
    /// It is not there, or cannot be read.
    Missing,
    /// It has another length.
    Length,
    /// It was modified at another time, and nothing is known of its bytes.
    Time,
    /// It was modified at this time, nanoseconds since 1970; the bytes are those that were written.
    Touched(i64),
    /// It has other bytes.
    Digest,
    /// What is there cannot be compared.
    Unknown,
    /// It is as written, under the reserved name although its own name is free, or the other way
    /// round.
    Name,
}

impl DamageKind {
    /// The code of a check's finding.
    pub(crate) const fn rule(self) -> &'static str {
        match self {
            Self::NoPlace => "copy.path",
            Self::Missing => "copy.missing",
            Self::Length | Self::Time | Self::Touched(_) => "copy.changed",
            Self::Digest | Self::Unknown => "copy.digest",
            Self::Name => "copy.name",
        }
    }

    /// The code of a notice that it is repaired.
    pub(crate) fn code(self) -> &'static str {
        if self == Self::Missing { "local.missing" } else { "local.altered" }
    }

    /// Whether the bytes are those that were written: a comparison gives the file its name or time
    /// back.
    pub(crate) const fn keeps_bytes(self) -> bool {
        matches!(self, Self::Name | Self::Touched(_) | Self::Unknown)
    }

    /// Whether the bytes that were written are lost for certain.
    pub(crate) const fn is_loss(self) -> bool {
        matches!(self, Self::Missing | Self::Length | Self::Digest)
    }
}

/// Opens what is kept by a copy of the kind `folder`, `warc` or `nquads`; `None` for other kinds, and before
/// the first run.
pub(crate) fn read_back(
    kind: &str,
    folder: &Path,
    mirror: &Mirror,
) -> Result<Option<Box<dyn ReadBack>>, Error> {
    match kind {
        "folder" => {
            Ok(FolderKept::open(folder, mirror)?.map(|kept| Box::new(kept) as Box<dyn ReadBack>))
        }
        "warc" => Ok(Some(Box::new(WarcKept::open(folder, mirror)?))),
        "nquads" => Ok(Some(Box::new(NQuadsKept::open(folder, mirror)?))),
        _ => Ok(None),
    }
}

/// Whether the bytes read back are those of a row.
pub(crate) fn same_bytes(row: &Row, digests: &Digests, read: Option<&(Digests, u64)>) -> bool {
    read.is_some_and(|(found, length)| *length == row.length && found.agree(digests) == Some(true))
}

/// The file time of a row whose bytes are known to be lost or altered: no file has it.
const DISTRUSTED: i64 = i64::MIN;

/// Whether it is known already that the file is not the one that was written.
pub(crate) const fn is_distrusted(row: &Row) -> bool {
    row.file_mtime == DISTRUSTED
}

/// A row without facts about the bytes: whatever is listed, they are fetched, and an existing file
/// is moved aside.
pub(crate) fn distrusted(row: &Row) -> Row {
    Row {
        modified: None,
        digests: Vec::new(),
        changed: None,
        etag: None,
        file_mtime: DISTRUSTED,
        verified: false,
        ..row.clone()
    }
}

/// A plan to have the kept version again.
pub(crate) fn fetch_again(mirror: &Mirror, row: &Row) -> Result<Pending, Error> {
    Ok(Pending {
        uri: row.uri.clone(),
        modified: row.modified,
        length: Some(row.length),
        digests: row.digests.clone(),
        changed: row.changed,
        access: mirror.access(&row.uri)?,
        ..Pending::default()
    })
}

/// Plans to fetch a resource again whose bytes were lost or altered here. What is planned for it
/// already stays planned.
pub(crate) fn plan_again(mirror: &Mirror, row: &Row) -> Result<(), Error> {
    if mirror.task(&row.uri)?.is_none() {
        mirror.put_pending(&fetch_again(mirror, row)?)?;
    }
    Ok(mirror.put_row(&distrusted(row))?)
}

/// Reads back what is kept.
pub(crate) trait ReadBack {
    /// The damage to the resource of a row, by length and time, or with `read` by digests.
    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error>;

    /// Whether the bytes that are listed can be read back; otherwise what was made of them is, and
    /// their digests are those of the row as long as it has no damage.
    fn keeps_bytes(&self) -> bool {
        true
    }

    /// The damage to the one file that all resources are in together, and its path, where it is made of
    /// something else that is kept.
    fn file_damage(&mut self) -> Result<Option<(String, Damage)>, Error> {
        Ok(None)
    }

    /// Code and message about what could not be compared.
    fn remark(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Reads what the next calls will need of these resources.
    fn read_ahead(&mut self, _mirror: &Mirror, _uris: &[&str]) -> Result<(), Error> {
        Ok(())
    }

    /// Digests of the bytes that are there, of the algorithms that are listed, and their length.
    fn digests(
        &mut self,
        _mirror: &Mirror,
        row: &Row,
        _listed: &Digests,
    ) -> Result<Option<(Digests, u64)>, Error> {
        let mut digests = Digests::default();
        digests.set_from_bytes(&row.digests);
        Ok(Some((digests, row.length)))
    }

    /// Reports what is there and the state does not know.
    fn extras(&mut self, _mirror: &Mirror, _report: &mut dyn FnMut(&str)) -> Result<(), Error> {
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
    pub(crate) expectation: &'a Expectation,
}

impl Kept<'_> {
    pub(crate) fn compare(mut self, expected: &Expected) -> Result<AuditReport, Error> {
        let mut report = AuditReport { full: self.full, ..AuditReport::default() };
        let began = Instant::now();
        expected.each_batch(|rows| {
            if self.full {
                let uris: Vec<&str> = rows.iter().map(|row| row.uri.as_str()).collect();
                self.reader.read_ahead(&self.mirror, &uris)?;
            }
            for listed in rows {
                self.compare_one(listed, &mut report)?;
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
                // What is kept although filters exclude it does not matter.
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
        // What is listed is compared with the others.
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
            // It is there, in a version that nobody knows.
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
            // The bytes were read, or are those of the row.
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
