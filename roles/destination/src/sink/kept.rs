//! A copy read back, whatever its sink: for checks, repairs, comparisons and audits.

use crate::report::error::Error;
use abreast_store::mirror::{Mirror, Pending, Row};
use abreast_webtypes::Digests;

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
