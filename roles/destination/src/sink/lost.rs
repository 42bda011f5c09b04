//! Data that is missing at the ends of the files of a packed copy.

use crate::copy::names::ARCHIVE;
use crate::report::error::Error;
use crate::sink::warc::spelling::write_error;
use crate::sink::warc::{forget_beyond, whole_length};
use abreast_store::mirror::{Mirror, Segment};
use std::path::Path;

/// The files of a packed copy that are shorter than recorded or missing, and the number of usable
/// bytes in each.
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

/// Removes the rows of resources in the lost parts.
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

/// Removes the rows of lost data, before a comparison that fetches the resources again.
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

/// Files that are shorter than recorded or missing, and their lengths in bytes.
fn short_segments(folder: &Path, mirror: &Mirror) -> Result<Vec<(Segment, u64)>, Error> {
    let with_length = |segment: Segment| {
        let length = std::fs::metadata(folder.join(&segment.name));
        let length = length.map_or(0, |metadata| metadata.len());
        (length < segment.length).then_some((segment, length))
    };
    Ok(mirror.segments()?.into_iter().filter_map(with_length).collect())
}
