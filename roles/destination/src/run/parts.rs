//! The parts of a copy that its Source copied from other Sources.

use crate::copy::published::is_there;
use crate::report::error::Error;
use crate::sink::Sink;
use abreast_folder::Folder;
use abreast_store::mirror::Mirror;

/// The folders of a copy that its Source copied from other Sources, each with the Source's address.
/// Includes folders from `named` that exist or are planned.
pub(crate) fn parts_of(
    folder: &Folder,
    sink: &dyn Sink,
    mirror: &Mirror,
    named: Vec<(String, String)>,
) -> Result<Vec<(Vec<u8>, String)>, Error> {
    let mut parts = Vec::new();
    for (uri, source) in named {
        let Some(path) = sink.folder_of(&uri) else { continue };
        let mut planned = Vec::new();
        if !is_there(folder, &path) {
            mirror.pending_after(&uri, 1, &mut planned)?;
            if !planned.iter().any(|task| task.pending.uri.starts_with(&uri)) {
                continue;
            }
        }
        parts.push((path, source));
    }
    Ok(parts)
}
