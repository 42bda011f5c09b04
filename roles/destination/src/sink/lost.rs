//! What the files of a packed copy have lost at their ends.

use crate::copy::names::ARCHIVE;
use crate::report::error::Error;
use crate::sink::warc::spelling::write_error;
use crate::sink::warc::{forget_beyond, whole_length};
use abreast_store::mirror::{Mirror, Segment};
use std::path::Path;

/// The files that resources are packed into which have lost their end, or are missing, and the bytes
/// of each that are of use.
pub(crate) fn lost_ends(
    kind: &str,
    folder: &Path,
    mirror: &Mirror,
) -> Result<Vec<(Segment, u64)>, Error> {
    match kind {
        "nquads" => short_segments(folder, mirror),
        "warc" => {
            let archive = folder.join(ARCHIVE);
            let mut cut = short_segments(&archive, mirror)?;
            for (segment, length) in &mut cut {
                *length = whole_length(&archive.join(&segment.name)).map_err(write_error)?;
            }
            Ok(cut)
        }
        _ => Ok(Vec::new()),
    }
}

/// Forgets what is in such ends.
pub(crate) fn forget_ends(
    kind: &str,
    (folder, state): (&Path, &Path),
    mirror: &Mirror,
    cut: &[(Segment, u64)],
) -> Result<(), Error> {
    cut.iter().try_for_each(|(segment, length)| match kind {
        "warc" => forget_beyond(folder, state, mirror, (segment, *length)),
        _ => Ok(mirror.cut_segment(segment.number, *length)?),
    })
}

/// Forgets what the files of a packed copy have lost, before a comparison that fetches it again.
pub(crate) fn forget_lost(
    kind: &str,
    (folder, state): (&Path, &Path),
    mirror: &Mirror,
) -> Result<(), Error> {
    let cut = lost_ends(kind, folder, mirror)?;
    if cut.is_empty() {
        return Ok(());
    }
    mirror.begin()?;
    forget_ends(kind, (folder, state), mirror, &cut)?;
    Ok(mirror.commit()?)
}

/// Files that have lost their end, or are missing, and the bytes that they have.
fn short_segments(folder: &Path, mirror: &Mirror) -> Result<Vec<(Segment, u64)>, Error> {
    let with_length = |segment: Segment| {
        let length = std::fs::metadata(folder.join(&segment.name));
        let length = length.map_or(0, |metadata| metadata.len());
        (length < segment.length).then_some((segment, length))
    };
    Ok(mirror.segments()?.into_iter().filter_map(with_length).collect())
}
