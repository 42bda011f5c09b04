//! What stands at a path of the folder now? Asked by name, since a listing may pass over a file that is just replaced.

use abreast_folder::{Dir, ErrorKind, Folder, Kind};

/// What a look at one path found.
pub(crate) enum Found {
    /// A regular file, in this folder.
    File(Dir),
    /// A folder.
    Folder,
    /// A regular file that the rules of the set leave out.
    LeftOut,
    /// Nothing that could be published.
    Nothing,
    /// It cannot be known now, and why.
    Unreadable(abreast_folder::Error),
}

/// Looks at a relative path, through symbolic links only if the folder follows them.
pub(crate) fn look_for(folder: &Folder, path: &[u8]) -> Found {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b""[..], path),
    };
    let absent = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotFolder | ErrorKind::Symlink);
    let dir = match folder.dir(parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty())) {
        Ok(dir) => dir,
        Err(error) if absent(error.kind()) => return Found::Nothing,
        Err(error) => return Found::Unreadable(error),
    };
    match dir.stat(name) {
        Ok(stat) if stat.kind == Kind::File && folder.selects(path, Kind::File) => Found::File(dir),
        Ok(stat) if stat.kind == Kind::File => Found::LeftOut,
        Ok(stat) if stat.kind == Kind::Folder => Found::Folder,
        Ok(_) => Found::Nothing,
        Err(error) if absent(error.kind()) => Found::Nothing,
        Err(error) => Found::Unreadable(error),
    }
}
