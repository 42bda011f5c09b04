//! The state of a path of the folder, read by name: a listing may omit a file that is being
//! replaced.

use abreast_folder::{Dir, ErrorKind, Folder, Kind};

/// Result of inspecting a path in the published folder.
pub(crate) enum PathState {
    /// A regular file, with the folder that contains the file.
    File(Dir),
    /// A folder; its entries are not read.
    Folder,
    /// A regular file that the filter of the set excludes.
    LeftOut,
    /// The path does not exist, or is of a kind that is never published.
    Nothing,
    /// A transient failure to read the path, with its cause.
    Unreadable(abreast_folder::Error),
}

/// Inspects a relative path. Symbolic links are followed only if the folder is opened with that
/// option.
pub(crate) fn inspect(folder: &Folder, path: &[u8]) -> PathState {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b""[..], path),
    };
    let absent =
        |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotFolder | ErrorKind::Symlink);
    let dir = match folder.dir(parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty())) {
        Ok(dir) => dir,
        Err(error) if absent(error.kind()) => return PathState::Nothing,
        Err(error) => return PathState::Unreadable(error),
    };
    match dir.stat(name) {
        Ok(stat) if stat.kind == Kind::File && folder.selects(path, Kind::File) => {
            PathState::File(dir)
        }
        Ok(stat) if stat.kind == Kind::File => PathState::LeftOut,
        Ok(stat) if stat.kind == Kind::Folder => PathState::Folder,
        Ok(_) => PathState::Nothing,
        Err(error) if absent(error.kind()) => PathState::Nothing,
        Err(error) => PathState::Unreadable(error),
    }
}
