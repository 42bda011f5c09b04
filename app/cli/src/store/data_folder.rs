//! The store's folder. Some commands only check that the folder exists; other commands create the
//! folder, and remove a new folder if they fail.

use crate::config::database::THROUGH_A_SERVER;
use crate::program::errors::UsageError;
use abreast_destination::published_above;
use anyhow::{Context as _, Result, bail};
use std::fs::{read_dir, remove_dir, remove_dir_all, remove_file};
use std::path::{Path, PathBuf};

/// Files of which a store's folder has at least one.
const OF_A_STORE: &[&str] = &["source.db", "hub.db", "tokens.json"];

/// Folder with the unfinished store of a migration, in the folder of the store.
pub(crate) const MIGRATION: &str = "migration";

/// The refusal of a store to which a migration is not complete.
pub(crate) fn unfinished(store: &str) -> UsageError {
    UsageError(format!(
        "a migration to the store `{store}` is not complete (help: run `abreast migrate` again with the same arguments; it continues)"
    ))
}

/// The folder of a store that this run opens. Dropping the value between [`Self::locked`] and
/// [`Self::keep`] removes all files and folders that the run created, so that a failed start leaves
/// nothing behind.
#[must_use]
pub(crate) struct NewData {
    data: PathBuf,
    /// Folders that were made for it, the innermost first; the store's own is among them.
    made: Vec<PathBuf>,
    /// The store's folder was there and empty.
    was_empty: bool,
    /// No other process uses the store.
    locked: bool,
}

impl NewData {
    /// Makes the folder, if it is missing, with those around it.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(data: &Path) -> Result<Self> {
        let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        let made =
            data.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        let was_empty = read_dir(&data).is_ok_and(|mut entries| entries.next().is_none());
        let new = Self { data, made, was_empty, locked: false };
        let shown = new.data.display();
        crate::program::there::make_folder(&new.data)
            .with_context(|| format!("cannot make the store's folder `{shown}`"))?;
        Ok(new)
    }

    /// The lock of the store is held: nobody else has made anything there.
    pub(crate) fn locked(mut self) -> Self {
        self.locked = true;
        self
    }

    /// Leaves the store where it is.
    pub(crate) fn keep(mut self) {
        self.locked = false;
    }
}

impl Drop for NewData {
    fn drop(&mut self) {
        if !self.locked {
            return;
        }
        let mut made = self.made.iter();
        if made.next().is_some() {
            let _ = remove_dir_all(&self.data);
            // `remove_dir` fails for parent folders that contain other files, as intended.
            made.for_each(|folder| drop(remove_dir(folder)));
        } else if self.was_empty {
            for entry in read_dir(&self.data).into_iter().flatten().flatten() {
                let path = entry.path();
                let _ = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    remove_dir_all(path)
                } else {
                    remove_file(path)
                };
            }
        }
    }
}

/// Refuses the URL of a database, where a command needs a folder.
///
/// # Errors
/// It is one.
pub(crate) fn refuse_database(data: &Path, help: &str) -> Result<()> {
    match crate::config::database::database_url(data) {
        Some(_) => Err(crate::config::database::refusal(help)),
        None => Ok(()),
    }
}

/// Refuses a place for a store where it would be published.
///
/// # Errors
/// It would be.
pub(crate) fn refuse_published(data: &Path) -> Result<()> {
    let Some(published) = published_above(data, &[]) else { return Ok(()) };
    let is_store = ["source.db", "hub.db"].iter().any(|name| data.join(name).exists());
    let (data, published) = (data.display(), published.display());
    if is_store {
        tracing::warn!(
            "the store `{data}` is in `{published}`, which is published (it has a store in `.abreast`); nobody reads it there, but another \
             server may"
        );
        return Ok(());
    }
    bail!(UsageError(format!(
        "`{data}` is in `{published}`, which is published: everybody could read the store\n  help: name a folder elsewhere, or one \
         whose name begins with a dot"
    )))
}

/// Whether a folder has a file of a store.
fn is_store(data: &Path) -> Result<bool> {
    for name in OF_A_STORE {
        if crate::program::there::is_file(&data.join(name))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks that the folder of `--data` contains a store or is empty, so that a mistyped path does not
/// become a store.
///
/// # Errors
/// The folder does not exist, or belongs to something else.
pub(crate) fn check_data(data: &Path) -> Result<()> {
    refuse_database(data, THROUGH_A_SERVER)?;
    let shown = data.display();
    let mut entries = match std::fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(UsageError(format!(
            "`--data`: there is no folder `{shown}`\n  help: check the path; to create a new store: mkdir {shown}"
        ))),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot open the store's folder `{shown}`"));
        }
    };
    let has_store = is_store(data)?;
    let inner = data.join(".abreast");
    if !has_store && is_store(&inner)? {
        bail!(UsageError(format!(
            "`--data`: the folder `{shown}` holds no store\n  help: name the store of this published folder: --data {}",
            inner.display()
        )));
    }
    if !has_store {
        refuse_published(data)?;
    }
    if !has_store && entries.next().is_some() {
        bail!(UsageError(format!(
            "`--data`: the folder `{shown}` holds no store, and is not empty\n  help: check the path"
        )));
    }
    Ok(())
}
