//! Folders of a path: a folder that is a file instead, and empty folders.

use abreast_folder::ErrorKind;

/// The first file on a path where a folder is required: its folder, and the end of its name in the
/// path.
pub(super) fn file_on_the_way(
    folder: &abreast_folder::Folder,
    path: &[u8],
) -> Option<(abreast_folder::Dir, usize)> {
    let mut dir = folder.root();
    let mut at = 0;
    while let Some(slash) = path[at..].iter().position(|byte| *byte == b'/') {
        let name = &path[at..at + slash];
        match dir.dir(name) {
            Ok(next) => dir = next,
            Err(error) if error.kind() == ErrorKind::NotFolder => return Some((dir, at + slash)),
            Err(_) => return None,
        }
        at += slash + 1;
    }
    None
}

/// Removes a folder and its parents while they are empty and may be removed; never the root.
pub(super) fn remove_empty(
    folder: &abreast_folder::Folder,
    path: &[u8],
    may_be_removed: &dyn Fn(&[u8]) -> bool,
) {
    let mut path = path;
    while !path.is_empty() && may_be_removed(path) {
        let at = path.iter().rposition(|byte| *byte == b'/');
        let (parent, name) = at.map_or((&path[..0], path), |at| (&path[..at], &path[at + 1..]));
        let components = parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        // The folder is not empty, or was already deleted; its parents need no change.
        if folder.dir(components).and_then(|dir| dir.rmdir(name)).is_err() {
            return;
        }
        path = parent;
    }
}
