//! Files that standard output and errors are redirected to: not in a published folder, whose changes they would report and be.

use crate::program::errors::UsageError;
use abreast_destination::published_above;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Refuses to write into one of these folders, or into one that has its store in it.
///
/// # Errors
/// A file of this process would be published.
pub(crate) fn refuse_published_output(published: &[PathBuf]) -> Result<()> {
    for (number, what) in [(1, "standard output"), (2, "the log")] {
        let file = PathBuf::from(format!("/proc/self/fd/{number}"));
        let Ok(path) = file.read_link() else { continue };
        // Pipes and terminals are not in a folder.
        if !file.is_file() || !path.is_absolute() {
            continue;
        }
        let is_visible = path.file_name().is_some_and(|name| {
            abreast_source::is_published_name(std::os::unix::ffi::OsStrExt::as_bytes(name))
        });
        let above = path.parent().and_then(|folder: &Path| published_above(folder, published));
        if let Some(folder) = above.filter(|_| is_visible) {
            bail!(UsageError(format!(
                "{what} goes to `{}`, in the folder `{}` that is published: it would be published with it\n  help: redirect it to a file \
                 elsewhere",
                path.display(),
                folder.display()
            )));
        }
    }
    Ok(())
}
