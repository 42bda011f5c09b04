//! Verification of the stored data of any sink: for checks, repairs, comparisons and audits.

use crate::report::error::Error;
use abreast_store::mirror::{Mirror, Pending, Row};
use abreast_webtypes::Digests;

/// Damage to the stored bytes of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) kind: DamageKind,
    pub(crate) message: String,
}

/// The difference between the stored data and the data that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DamageKind {
    /// The URI cannot be mapped to a path.
    NoPlace,
    /// The data is missing, or cannot be read.
    Missing,
    /// The length differs from the row.
    Length,
    /// The modification time differs, and the bytes were not compared.
    Time,
    /// The modification time is this one, in nanoseconds since 1970, but the bytes are the written
    /// ones.
    Touched(i64),
    /// The bytes differ from the row's digest.
    Digest,
    /// The stored data cannot be compared.
    Unknown,
    /// The data is as written, but under the reserved name although the plain name is free, or the
    /// other way round.
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

    /// The code of the notice about the repair.
    pub(crate) fn code(self) -> &'static str {
        if self == Self::Missing { "local.missing" } else { "local.altered" }
    }

    /// Whether the bytes are the written ones, so that a comparison only restores the file's name
    /// or time.
    pub(crate) const fn keeps_bytes(self) -> bool {
        matches!(self, Self::Name | Self::Touched(_) | Self::Unknown)
    }

    /// Whether the bytes that were written are lost for certain.
    pub(crate) const fn is_loss(self) -> bool {
        matches!(self, Self::Missing | Self::Length | Self::Digest)
    }
}

/// Whether the bytes that were read have the digests and the length of a row.
pub(crate) fn same_bytes(row: &Row, digests: &Digests, read: Option<&(Digests, u64)>) -> bool {
    read.is_some_and(|(found, length)| *length == row.length && found.agree(digests) == Some(true))
}

/// The file time of rows whose bytes are lost or changed; no file has this time.
const DISTRUSTED: i64 = i64::MIN;

/// Whether the row already records that its file is lost or changed.
pub(crate) const fn is_distrusted(row: &Row) -> bool {
    row.file_mtime == DISTRUSTED
}

/// A row without properties of the bytes, so that the next run fetches them for any listed version,
/// and moves an existing file aside.
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

/// A plan to fetch the stored version of a resource again.
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

/// Plans to fetch a resource again whose stored bytes were lost or changed. An existing plan for
/// the resource is retained.
pub(crate) fn plan_again(mirror: &Mirror, row: &Row) -> Result<(), Error> {
    if mirror.task(&row.uri)?.is_none() {
        mirror.put_pending(&fetch_again(mirror, row)?)?;
    }
    Ok(mirror.put_row(&distrusted(row))?)
}

/// Reads the stored data of a copy.
pub(crate) trait ReadBack {
    /// The damage to the resource of a row, by length and time, or with `read` by digests.
    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error>;

    /// Whether the bytes can be read back. Other sinks store data derived from the bytes, and the
    /// digests in a row are valid as long as that data is undamaged.
    fn keeps_bytes(&self) -> bool {
        true
    }

    /// The damage to the single file with all resources, and its path, for a sink that writes such
    /// a file from other stored data.
    fn file_damage(&mut self) -> Result<Option<(String, Damage)>, Error> {
        Ok(None)
    }

    /// Code and message about data that cannot be compared.
    fn remark(&self) -> Option<(&'static str, String)> {
        None
    }

    /// Prepares the next calls for these resources, with fewer requests.
    fn read_ahead(&mut self, _mirror: &Mirror, _uris: &[&str]) -> Result<(), Error> {
        Ok(())
    }

    /// The listed digests, computed from the stored bytes, and their length.
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

    /// Reports stored data that is not in the database of the copy.
    fn extras(&mut self, _mirror: &Mirror, _report: &mut dyn FnMut(&str)) -> Result<(), Error> {
        Ok(())
    }
}
