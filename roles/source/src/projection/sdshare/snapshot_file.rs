//! Files of snapshots, and their chunks, opened for a request.

use super::form::Form;
use super::paths::SnapshotFile;
use super::snapshot_record::part;
use super::snapshots::Found;
use crate::publish::files::{FileError, PublishedFile};
use crate::publish::{Freshness, PublishedSet};
use std::sync::Arc;

/// When a client that asked for a snapshot in the making asks again.
const MAKING_SECONDS: u32 = 1;
/// Seconds until a client retries while the record of all nodes cannot be read.
pub(super) const UNREAD_SECONDS: u32 = 5;

/// Opens the file of a snapshot, or a chunk of the file.
pub(super) fn open(
    set: &Arc<PublishedSet>,
    file: SnapshotFile,
) -> Result<PublishedFile, FileError> {
    let (name, chunk, form) = match file {
        SnapshotFile::Whole(name, form) => (name, None, form),
        SnapshotFile::Chunk(name, number, form) => (name, Some(number), form),
    };
    let none = || FileError::NotFound("there is no such snapshot; read the feed again".to_owned());
    let snapshots = set.snapshots().ok_or_else(none)?;
    let snapshot = match snapshots.find(name) {
        Found::Complete(snapshot) => snapshot,
        Found::Making => {
            let detail = "the snapshot is being made; retry when it is complete".to_owned();
            return Err(FileError::Making { detail, seconds: MAKING_SECONDS });
        }
        Found::Unread => {
            let detail = "the snapshots cannot be read from the object store now".to_owned();
            return Err(FileError::Later { detail, seconds: UNREAD_SECONDS });
        }
        Found::Unknown => return Err(none()),
    };
    let extension = match form {
        Form::RdfXml if chunk.is_none() && snapshot.has_rdf_xml => "rdf",
        Form::RdfXml => return Err(none()),
        _ => "nt",
    };
    let open = |extension: &str, ends: &[u64]| {
        let content = snapshots.file(name, extension)?;
        let Some(number) = chunk else { return Some(content) };
        let (start, length) = part(ends, usize::try_from(number).ok()?)?;
        Some(content.part(start, length))
    };
    let content = open(extension, &snapshot.chunks).ok_or_else(none)?;
    let gzip = open(&format!("{extension}z"), &snapshot.gzip);
    Ok(PublishedFile {
        content,
        gzip,
        content_type: form.media_type().into(),
        set: Arc::clone(set),
        location: None,
        freshness: Freshness::Immutable,
        negotiated: true,
        digest: None,
    })
}
