//! The stores in one folder, opened for a task: the folder is locked, then the log and the stored
//! contents are opened.

use crate::program::errors::ExitCodeError;
use crate::store::data_folder::{NewData, refuse_database, refuse_published};
use crate::store::database::Database;
use abreast_contents::Contents;
use abreast_core::SystemClock;
use abreast_core::contents::ContentStore;
use abreast_core::hub::HubStore;
use abreast_folder::{Folder, Locked};
use abreast_server::api::{TokenPlace, tokens_path};
use abreast_store::SqliteLog;
use abreast_store::hub::SqliteHub;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The purpose for which stores are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// To publish or deliver until stopped.
    Serve,
    /// To write a static site.
    Build,
    /// To record changes, once.
    Record,
    /// To read or change existing data; creates neither folder nor store.
    Read,
}

impl Task {
    /// The refusal when another process has the folder.
    fn locked(self, data: &Path) -> ExitCodeError {
        let shown = data.display();
        let (message, code) = match self {
            Self::Serve => (
                format!(
                    "another abreast is serving from the store `{shown}` (help: stop it, or name another with --data)"
                ),
                10,
            ),
            Self::Build => (
                format!(
                    "another abreast uses the store `{shown}` (help: wait for it, or name another with --data)"
                ),
                10,
            ),
            Self::Record | Self::Read => (
                format!(
                    "a server has the store `{shown}` open\n  help: go through it: --server URL instead of --data or --config"
                ),
                10,
            ),
        };
        ExitCodeError { message, code }
    }
}

/// Opens a change log that no other process has open.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn open_log(path: &Path) -> Result<SqliteLog> {
    SqliteLog::open(path, Arc::new(SystemClock))
        .with_context(|| format!("cannot open the store `{}`", path.display()))
}

/// Opens the store of a hub in a file.
///
/// # Errors
/// It cannot be opened, or another process has it open.
pub(crate) fn open_hub(path: &Path) -> Result<Arc<dyn HubStore>> {
    let hub = SqliteHub::open(path, Arc::new(SystemClock))
        .with_context(|| format!("cannot open the hub's store `{}`", path.display()))?;
    Ok(Arc::new(hub))
}

/// The place of the tokens of an API: in the folder of a store, or in the database.
pub(crate) fn token_place(data: &Path, database: Option<&Database>) -> TokenPlace {
    match database {
        Some(database) => TokenPlace::Shared(database.records()),
        None => TokenPlace::File(tokens_path(data)),
    }
}

/// The beginning of a command that runs as the owner of a folder, if this process is root's and the folder is not. The
/// name of the owner is that of `/etc/passwd`.
pub(crate) fn as_owner(folder: &Path) -> Option<String> {
    let (user, group) = abreast_folder::other_owner(folder)?;
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then_some(name)
    });
    Some(match name {
        Some(name) => format!("runuser -u {name} -- "),
        None => format!("setpriv --reuid {user} --regid {group} --clear-groups -- "),
    })
}

/// The stores of a folder that no other process has open.
pub(crate) struct Stores {
    data: PathBuf,
    /// The folder, while it may still be removed again: a start that fails leaves nothing behind.
    new: Option<NewData>,
    _lock: Locked,
}

impl Stores {
    /// Locks the folder; makes it first, except to read.
    ///
    /// # Errors
    /// It cannot be made or opened, or another process has it.
    pub(crate) fn open(data: &Path, task: Task) -> Result<Self> {
        refuse_database(data)?;
        abreast_maintenance::refuse_backup(data)?;
        if task != Task::Read {
            refuse_published(data)?;
        }
        let new = if task == Task::Read { None } else { Some(NewData::make(data)?) };
        if matches!(task, Task::Serve | Task::Record)
            && let Some(prefix) = as_owner(data)
        {
            tracing::warn!(
                "this runs as root, and the folder `{}` belongs to another user, whose programs cannot replace what root \
                 writes there\n  help: run `{prefix}abreast` with the same arguments, or change the owner of the files afterwards",
                data.display()
            );
        }
        let folder = Folder::open(data)
            .with_context(|| format!("cannot open the store's folder `{}`", data.display()))?;
        let Some(lock) = folder
            .root()
            .lock(b"source.lock")
            .with_context(|| format!("cannot lock the store `{}`", data.display()))?
        else {
            bail!(task.locked(data));
        };
        Ok(Self { data: data.to_owned(), new: new.map(NewData::locked), _lock: lock })
    }

    /// The path of something in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// The folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Opens the change log.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn log(&self) -> Result<SqliteLog> {
        open_log(&self.path("source.db"))
    }

    /// Opens the store of contents.
    ///
    /// # Errors
    /// The contents cannot be opened.
    pub(crate) fn contents(&self) -> Result<Arc<dyn ContentStore>> {
        let path = self.path("contents");
        let contents = Contents::open(&path)
            .with_context(|| format!("cannot open the kept contents `{}`", path.display()))?;
        Ok(Arc::new(contents))
    }

    /// Retains a new folder, even if a later step fails.
    pub(crate) fn keep(&mut self) {
        self.new.take().into_iter().for_each(NewData::keep);
    }
}
