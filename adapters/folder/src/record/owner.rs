//! Files that root writes into the folder of another user, whose programs are to use them.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

/// Gives a file that root made to the owner of the file that it replaces at a path. If that file is missing or
/// belongs to root, the owner of the folder gets the new file. A server of that user could not read or replace it otherwise. A file of
/// another user than root has the right owner already.
///
/// # Errors
/// The owner of the file, or of its folder, cannot be read.
pub fn own_as_folder(file: &fs::File, path: &Path) -> io::Result<()> {
    let own = file.metadata()?;
    let replaced = fs::symlink_metadata(path).ok().filter(|found| found.uid() != 0);
    let wanted = match replaced {
        Some(found) => found,
        None => fs::metadata(folder_of(path))?,
    };
    if (own.uid(), own.gid()) != (wanted.uid(), wanted.gid()) {
        // Only root may change the owner, and only root needs to.
        let _ = fchown(file, Some(wanted.uid()), Some(wanted.gid()));
    }
    Ok(())
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The numbers of the user and the group whose folder this process is about to write into as root; `None` if this
/// process is not root's, or the folder is. A folder that is missing is that of the nearest one around it.
pub fn other_owner(folder: &Path) -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let whole = std::path::absolute(folder).ok()?;
    let found = whole.ancestors().find_map(|above| fs::metadata(above).ok())?;
    (found.uid() != 0).then_some((found.uid(), found.gid()))
}
