//! The stores in one folder, opened for a task: the folder is locked, then the log and the stored
//! contents are opened.

use crate::config::database::{DatabaseConfig, THROUGH_A_SERVER};
use crate::program::errors::{ExitCodeError, UsageError};
use crate::store::data_folder::{
    MIGRATION, NewData, refuse_database, refuse_published, unfinished,
};
use crate::store::database::{BUCKET, Database};
use abreast_contents::Contents;
use abreast_core::contents::{ContentStore, ErrorKind};
use abreast_core::hub::HubStore;
use abreast_core::{ChangeLog, Lease, Records, SystemClock, WorkOnRequest};
use abreast_folder::{Folder, Locked};
use abreast_server::api::{TokenPlace, tokens_path};
use abreast_source::notify::{NotifiedPlace, notified_path};
use abreast_source::{SharedFiles, SharedOptions};
use abreast_store::hub::SqliteHub;
use abreast_store::{FormerSet, SqliteLog};
use abreast_webtypes::visible;
use anyhow::{Context as _, Result, bail};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

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
    /// To copy existing data to another store; creates neither folder nor store.
    #[cfg(feature = "postgres")]
    Move,
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
            #[cfg(feature = "postgres")]
            Self::Move => {
                (format!("another abreast uses the store `{shown}` (help: stop it first)"), 10)
            }
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

/// The refusal when another process has the folder for the temporary files of a node.
fn scratch_in_use(scratch: &Path) -> ExitCodeError {
    let message = format!(
        "another abreast uses the folder `{}` for its temporary files (help: stop it, or give each node on this machine its own `scratch`)",
        scratch.display()
    );
    ExitCodeError { message, code: 10 }
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

/// The stores of a folder that no other process has open, and those in a database that other nodes
/// share.
pub(crate) struct Stores {
    data: PathBuf,
    shared: Option<Box<Shared>>,
    /// The folder, while it may still be removed again: a start that fails leaves nothing behind.
    new: Option<NewData>,
    _lock: Locked,
}

/// Stores that other nodes share.
struct Shared {
    database: Database,
    /// The bucket of contents and of made files, and the contents in it.
    bucket: Option<(String, Arc<dyn ContentStore>)>,
    /// Made files, after the first use.
    files: OnceLock<Arc<SharedFiles>>,
}

/// Checks that a bucket answers and is that of all nodes. The first node records the address in the database.
///
/// # Errors
/// The bucket is another one, or cannot be used.
pub(crate) fn check_bucket(
    records: &dyn Records,
    url: &str,
    contents: &dyn ContentStore,
) -> Result<()> {
    // A request for an object does not distinguish a missing bucket from a missing object.
    match contents.visit(0, &mut |_| ControlFlow::Break(())) {
        Err(error) if error.kind() == ErrorKind::Busy => {
            tracing::warn!(
                "the bucket is out of reach: {error}; its contents are served when it answers"
            );
        }
        answer => {
            answer.with_context(|| format!("cannot use the bucket `{url}`"))?;
        }
    }
    // After a lost answer, the record is the own one.
    records.replace_record(BUCKET, 0, url.as_bytes())?;
    let known = records.record(BUCKET)?.map(|record| record.bytes).unwrap_or_default();
    if known != url.as_bytes() {
        bail!(UsageError(format!(
            "`contents`: the other nodes have their contents in `{}` (help: give all nodes the same address; after all objects were copied \
             to another bucket and all nodes are stopped: DELETE FROM abreast.records WHERE name = '{BUCKET}')",
            visible(&String::from_utf8_lossy(&known))
        )));
    }
    Ok(())
}

impl Stores {
    /// As [`Self::open`]; with a database, the folder has the temporary files of a node.
    ///
    /// # Errors
    /// As [`Self::open`], or the database cannot be opened.
    pub(crate) fn open_shared(
        data: &Path,
        database: Option<&DatabaseConfig>,
        task: Task,
    ) -> Result<Self> {
        let Some(config) = database else { return Self::open(data, task) };
        let mut stores = Self::open_as(data, task, scratch_in_use(data))?;
        let database = Database::connect(config)?;
        let open = |url: &String| {
            let contents = crate::store::bucket::contents(url, data)?;
            check_bucket(&*database.records(), url, &*contents)?;
            anyhow::Ok((url.clone(), contents))
        };
        let (bucket, files) = (config.contents.as_ref().map(open).transpose()?, OnceLock::new());
        stores.shared = Some(Box::new(Shared { database, bucket, files }));
        Ok(stores)
    }

    /// Locks the folder; makes it first, except to read.
    ///
    /// # Errors
    /// It cannot be made or opened, or another process has it.
    pub(crate) fn open(data: &Path, task: Task) -> Result<Self> {
        Self::open_as(data, task, task.locked(data))
    }

    /// As [`Self::open`], with the error if another process has the folder.
    fn open_as(data: &Path, task: Task, locked: ExitCodeError) -> Result<Self> {
        let is_existing = !matches!(task, Task::Serve | Task::Build | Task::Record);
        refuse_database(data, THROUGH_A_SERVER)?;
        abreast_maintenance::refuse_backup(data)?;
        if data.join(MIGRATION).exists() {
            bail!(unfinished(&data.display().to_string()));
        }
        if !is_existing {
            refuse_published(data)?;
        }
        let new = if is_existing { None } else { Some(NewData::make(data)?) };
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
            bail!(locked);
        };
        let (data, new) = (data.to_owned(), new.map(NewData::locked));
        Ok(Self { data, shared: None, new, _lock: lock })
    }

    /// The path of something in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// The folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The database that other nodes share, if there is one.
    pub(crate) fn database(&self) -> Option<&Database> {
        self.shared.as_ref().map(|shared| &shared.database)
    }

    /// Opens the change log of the folder.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn log(&self) -> Result<SqliteLog> {
        open_log(&self.path("source.db"))
    }

    /// Opens the change log of the sets to serve, in the folder or in the database.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn served_log(&self) -> Result<Arc<dyn ChangeLog>> {
        match self.database() {
            Some(database) => database.log(),
            None => Ok(Arc::new(self.log()?)),
        }
    }

    /// Opens the store of the hub, in the folder or in the database.
    ///
    /// # Errors
    /// It cannot be opened, or another process has it open.
    pub(crate) fn hub(&self) -> Result<Arc<dyn HubStore>> {
        match self.database() {
            Some(database) => database.hub(),
            None => open_hub(&self.path("hub.db")),
        }
    }

    /// The place of the tokens of the API.
    pub(crate) fn tokens(&self) -> TokenPlace {
        token_place(&self.data, self.database())
    }

    /// The lease of a part of the work, which is always held if no other node shares the store.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn lease(&self, name: impl Into<String>) -> Result<Lease> {
        self.database().map_or(Ok(Lease::always()), |database| database.lease(name.into()))
    }

    /// A part of the work that one node at a time does on request.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn work_on_request(&self, name: impl Into<String>) -> Result<WorkOnRequest> {
        let always = Ok(WorkOnRequest::always());
        self.database().map_or(always, |database| database.work_on_request(name.into()))
    }

    /// The made files that other nodes share, such as dumps: made by the node with their lease, and served by all.
    ///
    /// # Errors
    /// The bucket cannot be opened, or the system cannot start a thread.
    pub(crate) fn made_files(&self) -> Result<Option<Arc<SharedFiles>>> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let Some((bucket, _)) = &shared.bucket else { return Ok(None) };
        if let Some(files) = shared.files.get() {
            return Ok(Some(Arc::clone(files)));
        }
        let lease = self.lease("made")?;
        let mut options = SharedOptions::default();
        options.turn = Arc::new(move || lease.is_held());
        options.clock = shared.database.clock();
        let started = SharedFiles::start(crate::store::bucket::made_files(bucket)?, options);
        let started = started.context("cannot start the thread of made files")?;
        Ok(Some(Arc::clone(shared.files.get_or_init(|| started))))
    }

    /// Where the notifier stores its state.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn notified(&self) -> Result<NotifiedPlace> {
        Ok(match self.database() {
            Some(database) => NotifiedPlace::Shared(database.records(), self.lease("notify")?),
            None => NotifiedPlace::File(notified_path(&self.data)),
        })
    }

    /// Former names of the sets.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn former_sets(&self) -> Result<Vec<FormerSet>> {
        match self.database() {
            Some(database) => Ok(database.sets().former_sets()?),
            None => Ok(abreast_store::former_sets(&self.path("source.db"))?),
        }
    }

    /// Opens the store of contents, in the folder or in the bucket.
    ///
    /// # Errors
    /// The contents cannot be opened.
    pub(crate) fn contents(&self) -> Result<Arc<dyn ContentStore>> {
        if let Some(shared) = &self.shared {
            let (_, contents) = shared.bucket.as_ref().context(
                "`contents`: there is no bucket (help: give the address s3://BUCKET/PREFIX)",
            )?;
            return Ok(Arc::clone(contents));
        }
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
