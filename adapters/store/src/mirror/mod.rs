//! A Destination's database: the rows of its resources, and the plan of pending actions, in the
//! order of URIs.
//!
//! The database can be rebuilt from the Source and the folder. Therefore a commit must survive the
//! end of the process, but not a loss of power. Decisions are made by the callers.

mod access;
mod deletions;
mod deprecations;
mod described;
mod excluded;
mod expected;
mod gone;
pub mod labels;
mod left_out;
mod meta;
mod packed;
mod patches;
mod plan;
mod planned;
mod rows;
mod transaction;
mod waiting;

pub use access::Access;
pub use described::Described;
pub use expected::{Expected, ExpectedRow};
pub use left_out::LeftOutStatements;
pub use packed::{Location, Packed, Segment};
pub use planned::{
    ChangeOrder, ChangesDue, Coming, Deprecated, Pending, PendingAction, PendingCounts,
    PendingState, PlanSummary, Task,
};
pub use rows::{Document, Row};
pub use waiting::{WAITING_CHANGES_MAX, WaitingBatch, WaitingChange, WaitingKind};

use crate::database::connection::{Durability, beside, open_own_connection, sqlite_error};
use crate::database::migration::{check_schema, migrate};
use abreast_core::{ErrorKind, LogError};
use rusqlite::Connection;
use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

pub(crate) const STEPS: [&str; 12] = [
    include_str!("../migrations/mirror_0001.sql"),
    include_str!("../migrations/mirror_0002.sql"),
    include_str!("../migrations/mirror_0003.sql"),
    include_str!("../migrations/mirror_0004.sql"),
    include_str!("../migrations/mirror_0005.sql"),
    include_str!("../migrations/mirror_0006.sql"),
    include_str!("../migrations/mirror_0007.sql"),
    include_str!("../migrations/mirror_0008.sql"),
    include_str!("../migrations/mirror_0009.sql"),
    include_str!("../migrations/mirror_0010.sql"),
    include_str!("../migrations/mirror_0011.sql"),
    include_str!("../migrations/mirror_0012.sql"),
];
/// Tables that exist during one run; SQLite moves them from its cache to a file when they become
/// large.
const SCRATCH: &str = "
    CREATE TEMP TABLE unseen (uri TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TEMP TABLE coming (
        uri TEXT PRIMARY KEY, gone INTEGER NOT NULL, modified INTEGER, length INTEGER, digests BLOB NOT NULL,
        unknown INTEGER NOT NULL, time INTEGER NOT NULL, first INTEGER, last INTEGER, is_new INTEGER NOT NULL,
        is_known INTEGER NOT NULL, via TEXT, list INTEGER NOT NULL, href TEXT, accept TEXT, describes INTEGER NOT NULL, body INTEGER
    ) STRICT, WITHOUT ROWID;
    CREATE TEMP TABLE deprecated (
        uri TEXT PRIMARY KEY, time INTEGER NOT NULL, list INTEGER NOT NULL, changed INTEGER,
        replaced_by TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TEMP TABLE patch (
        uri TEXT NOT NULL, time INTEGER NOT NULL, list INTEGER NOT NULL, begin INTEGER NOT NULL,
        PRIMARY KEY (uri, time, list, begin)
    ) STRICT, WITHOUT ROWID;";

/// The database of a destination folder. Only one process may open it at a time: the caller holds a
/// lock.
#[derive(Debug)]
pub struct Mirror {
    connection: Connection,
    /// File of the write-ahead log; `None` for a temporary database.
    log_file: Option<PathBuf>,
    /// Another connection writes, and checkpoints the write-ahead log.
    is_reader: bool,
    /// Whether the folder with the database's files was synchronized, so that the files survive
    /// loss of power.
    has_durable_names: Cell<bool>,
    /// The last count of the plan, with the number of changed rows at that time. Any later change
    /// makes it invalid.
    counted: Cell<Option<(u64, PendingCounts)>>,
    /// Whether any resource has a row in `access`. If not, the table need not be searched.
    may_have_access: Cell<bool>,
    /// Most changes that wait for a command; `None` if changes are not recorded.
    recorded_max: Cell<Option<u64>>,
    /// Whether the triggers that record changes exist.
    has_triggers: Cell<bool>,
}

/// Size of a log that is not copied into the database: the next run reads it in a few milliseconds,
/// copying takes longer.
const LOG_LEFT: u64 = 4 << 20;

impl Drop for Mirror {
    fn drop(&mut self) {
        let size = self
            .log_file
            .as_ref()
            .filter(|_| !self.is_reader)
            .and_then(|file| std::fs::metadata(file).ok())
            .map_or(0, |file| file.len());
        if size > LOG_LEFT {
            // On failure, the next run reads the pages from the log.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }
}

impl Mirror {
    /// Opens the database, and creates it if it does not exist.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, or was written by a newer program.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let mut connection = open_own_connection(path, Durability::ProcessEnd)?;
        migrate(&mut connection, path, &STEPS)?;
        connection.execute_batch(SCRATCH).map_err(failed("cannot prepare the state"))?;
        let any =
            connection.query_row("SELECT EXISTS (SELECT 1 FROM access)", [], |row| row.get(0));
        let may_have_access = Cell::new(any.map_err(failed(READ))?);
        let mirror = Self {
            connection,
            log_file: Some(beside(path, "-wal")),
            is_reader: false,
            has_durable_names: Cell::new(false),
            counted: Cell::default(),
            may_have_access,
            recorded_max: Cell::default(),
            has_triggers: Cell::default(),
        };
        mirror.continue_recording()?;
        Ok(mirror)
    }

    /// Opens an existing database read-only, also while another process writes it. Returns `None`
    /// if it has an older schema, which [`Mirror::open`] updates.
    ///
    /// # Errors
    /// It is not there, cannot be read, or was written by a newer program.
    pub fn open_as_it_is(path: &Path) -> Result<Option<Self>, LogError> {
        let open = |connection: Connection| -> Result<(Connection, i64, bool), LogError> {
            let version = "SELECT ifnull(max(version), 0) FROM schema_version";
            let read = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
            let version = read(version).map_err(failed(READ))?;
            let any = if version < STEPS.len() as i64 {
                0
            } else {
                read("SELECT EXISTS (SELECT 1 FROM access)").map_err(failed(READ))?
            };
            Ok((connection, version, any > 0))
        };
        // Leave an existing log; remove a log that this creates.
        let opened = if beside(path, "-wal").exists() {
            crate::database::connection::open_read_only(path)
        } else {
            crate::database::connection::open_reader(path)
        };
        let (connection, version, any) = match opened.and_then(open) {
            // The files for sharing cannot be written either.
            Err(_) => open(crate::database::read_only::open_for_check(path)?)?,
            opened => opened?,
        };
        check_schema(version, STEPS.len() as i64, path)?;
        let is_current = version == STEPS.len() as i64;
        Ok(is_current.then(|| Self {
            connection,
            log_file: None,
            is_reader: true,
            has_durable_names: Cell::new(false),
            counted: Cell::default(),
            may_have_access: Cell::new(any),
            recorded_max: Cell::default(),
            has_triggers: Cell::default(),
        }))
    }

    /// Whether the database was opened read-only.
    pub const fn is_read_only(&self) -> bool {
        self.is_reader
    }

    /// Opens an existing database read-only, also during a run.
    ///
    /// # Errors
    /// It is not there, cannot be read, or was written by a newer program.
    pub fn open_read_only(path: &Path) -> Result<Self, LogError> {
        // This connection never plans.
        let (counted, may_have_access) = (Cell::default(), Cell::new(false));
        Ok(Self {
            connection: crate::database::read_only::open_for_check(path)?,
            log_file: None,
            is_reader: true,
            has_durable_names: Cell::new(false),
            counted,
            may_have_access,
            recorded_max: Cell::default(),
            has_triggers: Cell::default(),
        })
    }

    /// Opens another read-only connection to a database that this process has open. It sees
    /// committed data only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_reader(path: &Path) -> Result<Self, LogError> {
        Ok(Self {
            connection: crate::database::connection::open_reader(path)?,
            log_file: Some(beside(path, "-wal")),
            is_reader: true,
            has_durable_names: Cell::new(false),
            counted: Cell::default(),
            may_have_access: Cell::new(false),
            recorded_max: Cell::default(),
            has_triggers: Cell::default(),
        })
    }

    /// Opens an empty, temporary database for a dry run.
    ///
    /// # Errors
    /// No temporary file can be made.
    pub fn scratch() -> Result<Self, LogError> {
        let prepare = || -> rusqlite::Result<Connection> {
            let connection = Connection::open("")?;
            for step in STEPS {
                connection.execute_batch(step)?;
            }
            connection.execute_batch(SCRATCH)?;
            Ok(connection)
        };
        let connection = prepare().map_err(failed("cannot make a temporary database"))?;
        Ok(Self {
            connection,
            log_file: None,
            is_reader: false,
            has_durable_names: Cell::new(false),
            counted: Cell::default(),
            may_have_access: Cell::new(false),
            recorded_max: Cell::default(),
            has_triggers: Cell::default(),
        })
    }

    /// Makes earlier commits durable; otherwise they may be missing after loss of power. Call it
    /// before an action that must not precede its record.
    ///
    /// # Errors
    /// The system's own.
    pub fn sync(&self) -> Result<(), LogError> {
        let Some(log) = &self.log_file else { return Ok(()) };
        let sync = || -> std::io::Result<()> {
            // Data outside the log is durable in the database. SQLite does not lock the log's file,
            // so closing it releases no lock.
            match File::open(log) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                file => file?.sync_data()?,
            }
            if !self.has_durable_names.replace(true) {
                let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
                File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
            }
            Ok(())
        };
        sync().map_err(|cause| {
            LogError::new(ErrorKind::Io, "cannot make the state durable").with_cause(cause)
        })
    }
}

/// Rows that a visitor gets at a time.
const BATCH: usize = 512;
const READ: &str = "cannot read the state";
const WRITE: &str = "cannot write the state";

fn failed(task: &str) -> impl FnOnce(rusqlite::Error) -> LogError {
    move |cause| sqlite_error(task, cause)
}

#[cfg(test)]
mod tests;
