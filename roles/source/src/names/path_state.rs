//! The state of a path of the folder, read by name: a listing may omit a file that is being
//! replaced.

use abreast_folder::{Dir, ErrorKind, Folder, Kind};

/// The state of one path.
pub(crate) enum PathState {
    /// A regular file, in this folder.
    File(Dir),
    /// A folder.
    Folder,
    /// A regular file that the rules of the set leave out.
    LeftOut,
    /// Nothing that could be published.
    Nothing,
    /// The path cannot be read now, with the reason.
    Unreadable(abreast_folder::Error),
}

/// Inspects a relative path, through symbolic links only if the folder follows them.
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
