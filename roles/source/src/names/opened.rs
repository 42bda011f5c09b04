//! Opens a folder for publishing. Private folders and files excluded by the filter are hidden.

use super::keys::{is_published_name, is_published_path};
use super::media_type::media_type_of;
use super::private::Private;
use abreast_core::filter::{Decision, Filter, MediaType, Subject};
use abreast_folder::{Folder, Kind, Selection};
use std::path::Path;
use std::sync::Arc;

/// Opens a folder for publishing, optionally following symbolic links. A link is followed if it is
/// relative and its target is a published path in the same folder. Private folders, and files that
/// the filter excludes, are neither listed nor opened.
///
/// # Errors
/// The folder cannot be opened, or the system cannot ensure that links do not leave the folder.
pub fn open_folder(
    path: &Path,
    follow_links: bool,
    filter: &Arc<Filter>,
    private: &Private,
) -> Result<Folder, abreast_folder::Error> {
    let folder = Folder::open(path)?.hiding(private.hiding(path));
    let folder = if follow_links { folder.following_links(is_published_name)? } else { folder };
    if filter.is_empty() {
        return Ok(folder);
    }
    let filter = Arc::clone(filter);
    Ok(folder.selecting(Selection::new(move |path, kind| match kind {
        Kind::Folder => !filter.leaves_out_folder(path),
        // The filter does not apply to hidden names: a hidden folder contains the links of files.
        _ => !is_published_path(path) || takes(&filter, path),
    })))
}

fn takes(filter: &Filter, path: &[u8]) -> bool {
    let media_type = MediaType::Listed(Some(media_type_of(path)));
    matches!(filter.decide(&Subject { path, media_type, ..Subject::default() }), Decision::Taken(_))
}

/// Checks that a filter can be applied to files.
///
/// # Errors
/// A rule is about URIs, but files are selected by path.
pub fn check_filter(filter: &Filter) -> Result<(), String> {
    if filter.needs_uris() {
        return Err(
            "rules for `uri:` apply to copies only (help: use the path in the folder)".to_owned()
        );
    }
    Ok(())
}
