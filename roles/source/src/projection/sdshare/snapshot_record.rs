//! A complete snapshot, as its record describes it, and its files in a folder.

use super::snapshot_name::SnapshotName;
use crate::made::{discard, sweep};
use crate::projection::routes::PathValue as _;
use abreast_folder::read_sealed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The files of a snapshot, its record first; files with a `z` are compressed by gzip.
const EXTENSIONS: [&str; 5] = ["json", "nt", "ntz", "rdf", "rdfz"];

/// A complete snapshot, as its record describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) name: SnapshotName,
    /// Time when the log began, in microseconds, to detect snapshots of another log.
    pub(super) created: i64,
    /// Length of the N-Triples file in bytes.
    pub(super) length: u64,
    /// Offsets of the chunks' ends in the N-Triples file.
    pub(super) chunks: Vec<u64>,
    /// Whether the snapshot has a file of RDF/XML.
    pub(super) has_rdf_xml: bool,
    /// Offsets of the chunks' ends in the compressed N-Triples file; each chunk is compressed
    /// separately.
    #[serde(default)]
    pub(super) gzip: Vec<u64>,
    /// Digests of the files, by extension.
    #[serde(default)]
    pub(super) digests: BTreeMap<String, String>,
}

impl Snapshot {
    pub(super) fn extensions(&self) -> &'static [&'static str] {
        if self.has_rdf_xml { &["nt", "ntz", "rdf", "rdfz"] } else { &["nt", "ntz"] }
    }
}

/// Offset and length of a part; `number` is counted from 1.
pub(super) fn part(ends: &[u64], number: usize) -> Option<(u64, u64)> {
    let end = *ends.get(number.checked_sub(1)?)?;
    let start = if number == 1 { 0 } else { ends[number - 2] };
    Some((start, end - start))
}

/// Complete snapshots in a folder, the oldest first; removes incomplete snapshots.
pub(super) fn complete_in(folder: &Path) -> io::Result<Vec<Arc<Snapshot>>> {
    let mut complete = Vec::new();
    sweep(
        folder,
        |name| own_name(name).is_some(),
        |file| {
            let Some((name, extension)) = own_name(file) else { return Ok(true) };
            let record = read_record(folder, name);
            let is_whole = record.is_some();
            complete.extend(record.filter(|_| extension == "json").map(Arc::new));
            Ok(is_whole)
        },
    )?;
    complete.sort_by_key(|snapshot: &Arc<Snapshot>| snapshot.name);
    Ok(complete)
}

/// Digest of the bytes of a file, in hexadecimal.
pub(super) fn digest_of(path: &Path) -> io::Result<String> {
    abreast_contents::digest(path).map(|(id, _)| id.to_string())
}

pub(super) fn read_record(folder: &Path, name: SnapshotName) -> Option<Snapshot> {
    let record = read_sealed(&folder.join(format!("{name}.json"))).ok()?;
    let snapshot: Snapshot = serde_json::from_slice(&record).ok()?;
    let length = folder.join(format!("{name}.nt")).metadata().ok()?.len();
    let has_rdf_xml = folder.join(format!("{name}.rdf")).is_file();
    let packed = || folder.join(format!("{name}.ntz")).metadata().ok().map(|found| found.len());
    let whole = snapshot.name == name
        && (snapshot.gzip.is_empty() || packed() == snapshot.gzip.last().copied())
        && snapshot.length == length
        && snapshot.chunks.is_sorted()
        && snapshot.chunks.last() == Some(&length)
        && (has_rdf_xml || !snapshot.has_rdf_xml);
    whole.then_some(snapshot)
}

/// Removes a snapshot, its record first, so that remaining files are not listed.
pub(super) fn remove(folder: &Path, name: SnapshotName) {
    discard(EXTENSIONS.map(|extension| folder.join(format!("{name}.{extension}"))));
}

/// Name of the snapshot and extension, if the file belongs to a snapshot.
fn own_name(file: &str) -> Option<(SnapshotName, &str)> {
    let (stem, extension) = file.rsplit_once('.')?;
    let name = SnapshotName::parse(stem)?;
    EXTENSIONS.contains(&extension).then_some((name, extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_the_whole() {
        let ends = [4, 9];
        assert_eq!((part(&ends, 1), part(&ends, 2)), (Some((0, 4)), Some((4, 5))));
        assert_eq!((part(&ends, 0), part(&ends, 3)), (None, None));
    }
}
