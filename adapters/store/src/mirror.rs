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
mod left_out;
mod packed;
mod patches;
mod plan;
mod rows;

pub use access::Access;
pub use described::Described;
pub use expected::{Expected, ExpectedRow};
pub use left_out::LeftOutStatements;
pub use packed::{Location, Packed, Segment};
pub use plan::{
    ChangeOrder, ChangesDue, Coming, Deprecated, Pending, PendingAction, PendingCounts,
    PendingState, Task,
};
pub use rows::{Document, Row};

use crate::connection::{Durability, beside, open_own_connection, sqlite_error};
use crate::migration::{check_schema, migrate};
use abreast_core::{ErrorKind, LogError};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

pub(crate) const STEPS: [&str; 11] = [
    include_str!("migrations/mirror_0001.sql"),
    include_str!("migrations/mirror_0002.sql"),
    include_str!("migrations/mirror_0003.sql"),
    include_str!("migrations/mirror_0004.sql"),
    include_str!("migrations/mirror_0005.sql"),
    include_str!("migrations/mirror_0006.sql"),
    include_str!("migrations/mirror_0007.sql"),
    include_str!("migrations/mirror_0008.sql"),
    include_str!("migrations/mirror_0009.sql"),
    include_str!("migrations/mirror_0010.sql"),
    include_str!("migrations/mirror_0011.sql"),
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
        Ok(Self {
            connection,
            log_file: Some(beside(path, "-wal")),
            is_reader: false,
            has_durable_names: Cell::new(false),
            counted: Cell::default(),
            may_have_access,
        })
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
            crate::connection::open_read_only(path)
        } else {
            crate::connection::open_reader(path)
        };
        let (connection, version, any) = match opened.and_then(open) {
            // The files for sharing cannot be written either.
            Err(_) => open(crate::read_only::open_for_check(path)?)?,
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
            connection: crate::read_only::open_for_check(path)?,
            log_file: None,
            is_reader: true,
            has_durable_names: Cell::new(false),
            counted,
            may_have_access,
        })
    }

    /// Opens another read-only connection to a database that this process has open. It sees
    /// committed data only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_reader(path: &Path) -> Result<Self, LogError> {
        Ok(Self {
            connection: crate::connection::open_reader(path)?,
            log_file: Some(beside(path, "-wal")),
            is_reader: true,
            has_durable_names: Cell::new(false),
            counted: Cell::default(),
            may_have_access: Cell::new(false),
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

    /// Starts a transaction, which [`Mirror::commit`] completes.
    ///
    /// # Errors
    /// The system's own.
    pub fn begin(&self) -> Result<(), LogError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed("cannot write the state"))
    }

    /// Commits all changes since [`Mirror::begin`].
    ///
    /// # Errors
    /// The system's own, for example no space.
    pub fn commit(&self) -> Result<(), LogError> {
        self.connection.execute_batch("COMMIT").map_err(failed("cannot write the state"))
    }

    /// Discards all changes since [`Mirror::begin`]; does nothing outside a transaction.
    ///
    /// # Errors
    /// The system's own.
    pub fn rollback(&self) -> Result<(), LogError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.counted.take();
        self.connection.execute_batch("ROLLBACK").map_err(failed("cannot write the state"))
    }

    /// Starts a part of a transaction that can be rolled back alone.
    ///
    /// # Errors
    /// The system's own.
    pub fn begin_part(&self) -> Result<(), LogError> {
        self.connection.execute_batch("SAVEPOINT part").map_err(failed(WRITE))
    }

    /// Merges a part into its transaction.
    ///
    /// # Errors
    /// The system's own.
    pub fn join_part(&self) -> Result<(), LogError> {
        self.connection.execute_batch("RELEASE part").map_err(failed(WRITE))
    }

    /// Discards all changes since [`Mirror::begin_part`]; the transaction continues.
    ///
    /// # Errors
    /// The system's own.
    pub fn give_up_part(&self) -> Result<(), LogError> {
        self.counted.take();
        self.connection.execute_batch("ROLLBACK TO part; RELEASE part").map_err(failed(WRITE))
    }

    /// A setting or fact about the whole copy.
    ///
    /// # Errors
    /// The system's own.
    pub fn meta(&self, key: &str) -> Result<Option<String>, LogError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT value FROM meta WHERE key = ?1")
            .map_err(failed(READ))?;
        statement.query_row([key], |row| row.get(0)).optional().map_err(failed(READ))
    }

    /// Sets a fact; `None` deletes it.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_meta(&self, key: &str, value: Option<&str>) -> Result<(), LogError> {
        let done = match value {
            Some(value) => self
                .connection
                .prepare_cached("INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2")
                .and_then(|mut statement| statement.execute([key, value])),
            None => self
                .connection
                .prepare_cached("DELETE FROM meta WHERE key = ?1")
                .and_then(|mut statement| statement.execute([key])),
        };
        done.map(|_| ()).map_err(failed(WRITE))
    }

    /// Adds to a fact that is a number; an absent fact counts as 0.
    ///
    /// # Errors
    /// The system's own.
    pub fn add_to_meta(&self, key: &str, number: u64) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO meta (key, value) VALUES (?1, CAST(?2 AS TEXT))
                 ON CONFLICT DO UPDATE SET value = CAST(value + ?2 AS TEXT)",
            )
            .and_then(|mut statement| statement.execute(params![key, number as i64]))
            .map(drop)
            .map_err(failed(WRITE))
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
mod tests {
    use super::*;

    fn mirror() -> (tempfile::TempDir, Mirror) {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        (folder, mirror)
    }

    fn row(uri: &str) -> Row {
        Row { uri: uri.to_owned(), length: 5, digests: vec![1, 2], file_mtime: 7, ..Row::default() }
    }

    fn fetch(uri: &str) -> Pending {
        Pending { uri: uri.to_owned(), ..Pending::default() }
    }

    #[test]
    fn facts_rows_and_documents_are_kept() {
        let (folder, mirror) = mirror();
        mirror.set_meta("cursor", Some("1")).unwrap();
        mirror.set_meta("cursor", Some("2")).unwrap();
        mirror.put_row(&row("http://h/a")).unwrap();
        let document =
            Document { etag: Some("\"x\"".to_owned()), last_modified: None, fingerprint: -3 };
        mirror.set_document("http://h/list", &document).unwrap();
        drop(mirror);
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        assert_eq!(mirror.meta("cursor").unwrap().as_deref(), Some("2"));
        assert_eq!(mirror.row("http://h/a").unwrap(), Some(row("http://h/a")));
        assert_eq!(mirror.document("http://h/list").unwrap(), Some(document));
        mirror.set_meta("cursor", None).unwrap();
        assert_eq!(mirror.meta("cursor").unwrap(), None);
    }

    #[test]
    fn a_state_of_the_former_schema_opens_with_everything_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mirror.db");
        let former = Connection::open(&path).unwrap();
        former.execute_batch(crate::migration::VERSION_TABLE).unwrap();
        STEPS[..4].iter().for_each(|step| former.execute_batch(step).unwrap());
        let written = "INSERT INTO schema_version VALUES (4);
            INSERT INTO meta VALUES ('cursor', '2026-01-01T00:00:00Z');
            INSERT INTO resource VALUES ('http://h/a', 0, 5, 5, x'0102', 8, NULL, 7, 0, 3);
            INSERT INTO pending VALUES ('http://h/b', 0, 5, 9, x'03', 0, 8, 1, 2, '{}');
            INSERT INTO pending VALUES ('http://h/c', 2, NULL, NULL, x'', 0, 9, 0, 0, NULL);";
        former.execute_batch(written).unwrap();
        drop(former);
        for _ in 0..2 {
            let mirror = Mirror::open(&path).unwrap();
            assert_eq!(mirror.meta("cursor").unwrap().as_deref(), Some("2026-01-01T00:00:00Z"));
            let kept = Row { modified: Some(5), changed: Some(8), epoch: 3, ..row("http://h/a") };
            assert_eq!(mirror.row("http://h/a").unwrap(), Some(kept));
            let failed = Pending {
                modified: Some(5),
                length: Some(9),
                digests: vec![3],
                changed: Some(8),
                attempts: 2,
                via: Some("{}".to_owned()),
                ..fetch("http://h/b")
            };
            assert_eq!(mirror.task("http://h/b").unwrap().unwrap().pending, failed);
            let counts = mirror.pending_counts().unwrap();
            assert_eq!((counts.deletes, counts.held), (1, 1));
        }
    }

    fn at(time: i64) -> ChangeOrder {
        ChangeOrder { time, changed: Some((time, time)), ..ChangeOrder::default() }
    }

    #[test]
    fn lengths_beyond_all_numbers_add_up_to_the_greatest() {
        let (_folder, mirror) = mirror();
        let mut bytes = Vec::new();
        // The last was written by a version that read longer ones.
        for length in [Some(3), None, Some(i64::MAX as u64), Some(i64::MAX as u64), Some(u64::MAX)]
        {
            let uri = format!("http://h/{}", bytes.len());
            mirror.put_pending(&Pending { length, changed: Some(1), ..fetch(&uri) }).unwrap();
            let (all, due) = (mirror.pending_counts().unwrap(), mirror.changes_due().unwrap());
            assert_eq!((all.bytes, all.fetches), (due.bytes, due.resources));
            bytes.push(all.bytes);
        }
        let most = i64::MAX as u64;
        assert_eq!(bytes, [3, 3, most, most, most]);
    }

    #[test]
    fn a_state_of_a_former_schema_is_not_changed_by_reading_it() {
        let (folder, mirror) = mirror();
        let path = folder.path().join("mirror.db");
        mirror.put_row(&row("http://h/a")).unwrap();
        let read = Mirror::open_as_it_is(&path).unwrap().unwrap();
        assert_eq!(read.row("http://h/a").unwrap(), Some(row("http://h/a")));
        assert!(read.is_read_only() && read.put_row(&row("http://h/b")).is_err());
        drop((mirror, read));
        let set = |version: usize| {
            let connection = Connection::open(&path).unwrap();
            connection.execute("UPDATE schema_version SET version = ?1", [version as i64]).unwrap();
        };
        set(STEPS.len() - 1);
        let before = std::fs::read(&path).unwrap();
        assert!(Mirror::open_as_it_is(&path).unwrap().is_none());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        set(STEPS.len() + 1);
        let error = Mirror::open_as_it_is(&path).unwrap_err();
        assert!(error.to_string().contains("help: use the newer program"), "{error}");
    }

    #[test]
    fn rows_and_plan_get_uris_of_another_base() {
        let (_folder, mirror) = mirror();
        // A new URI may be the old one of another row.
        for uri in ["http://h/a", "http://h/d/a", "http://h/d/d/a", "http://other/a"] {
            mirror.put_row(&row(uri)).unwrap();
        }
        mirror.put_pending(&fetch("http://h/b")).unwrap();
        mirror.rebase("http://h/", "http://h/d/").unwrap();
        let mut rows = Vec::new();
        mirror.rows_after("", 9, &mut rows).unwrap();
        let uris: Vec<_> = rows.into_iter().map(|row| row.uri).collect();
        let expected = ["http://h/d/a", "http://h/d/d/a", "http://h/d/d/d/a", "http://other/a"];
        assert_eq!(uris, expected);
        assert!(mirror.task("http://h/d/b").unwrap().is_some());
    }

    #[test]
    fn a_removal_is_a_deletion_with_its_reason_kept() {
        let (_folder, mirror) = mirror();
        let removed = Pending { action: PendingAction::Remove, ..fetch("http://h/a") };
        mirror.put_coming(&removed, at(1)).unwrap();
        let (mut coming, mut tasks) = (Vec::new(), Vec::new());
        mirror.coming_after("", 10, &mut coming).unwrap();
        assert_eq!(coming[0].task.pending.action, PendingAction::Remove);
        mirror.put_pending(&removed).unwrap();
        assert_eq!(
            (mirror.pending_counts().unwrap().deletes, mirror.hold_deletes().unwrap()),
            (1, 1)
        );
        mirror.renew_pending().unwrap();
        tasks.clear();
        mirror.fetches_after("", 10, &mut tasks).unwrap();
        assert!(tasks.is_empty(), "it is not fetched");
        mirror.deletes_after("", 10, &mut tasks).unwrap();
        assert_eq!(tasks[0].pending.action, PendingAction::Remove);
    }

    #[test]
    fn a_change_whose_time_is_a_guess_can_be_doubted() {
        let (_folder, mirror) = mirror();
        let guessed = ChangeOrder { time: 9, ..ChangeOrder::default() };
        let deletion = |uri| Pending { action: PendingAction::Delete, ..fetch(uri) };
        mirror.put_coming(&deletion("http://h/a"), guessed).unwrap();
        mirror.put_coming(&deletion("http://h/b"), at(9)).unwrap();
        mirror.doubt_undated().unwrap();
        for uri in ["http://h/a", "http://h/b"] {
            mirror.put_coming(&fetch(uri), at(5)).unwrap();
        }
        let mut coming = Vec::new();
        mirror.coming_after("", 10, &mut coming).unwrap();
        let actions: Vec<_> = coming.iter().map(|it| it.task.pending.action).collect();
        assert_eq!(actions, [PendingAction::Fetch, PendingAction::Delete]);
    }

    #[test]
    fn fetches_that_no_change_names_can_be_forgotten() {
        let (_folder, mirror) = mirror();
        mirror
            .put_row(&Row {
                uri: "http://h/damaged".to_owned(),
                changed: Some(3),
                ..Row::default()
            })
            .unwrap();
        for uri in ["http://h/a", "http://h/b", "http://h/damaged"] {
            mirror.put_pending(&Pending { changed: Some(3), ..fetch(uri) }).unwrap();
        }
        mirror.put_coming(&fetch("http://h/b"), at(5)).unwrap();
        mirror.forget_unnamed().unwrap();
        let is_planned = |uri| mirror.task(uri).unwrap().is_some();
        assert_eq!(
            (is_planned("http://h/a"), is_planned("http://h/b"), is_planned("http://h/damaged")),
            (false, true, true)
        );
    }

    #[test]
    fn deprecations_wait_until_they_are_reported() {
        let (folder, mirror) = mirror();
        for uri in ["http://h/b", "http://h/a", "http://h/b"] {
            mirror.put_deprecation(uri).unwrap();
        }
        drop(mirror);
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        assert_eq!(mirror.deprecations(1).unwrap(), ["http://h/a"]);
        assert_eq!(mirror.deprecations(9).unwrap(), ["http://h/a", "http://h/b"]);
        mirror.forget_deprecations().unwrap();
        assert_eq!(mirror.deprecations(9).unwrap(), [""; 0]);
    }

    #[test]
    fn a_deprecation_counts_unless_a_newer_change_ends_it() {
        let (_folder, mirror) = mirror();
        for uri in ["http://h/a", "http://h/b", "http://h/c"] {
            mirror.put_deprecated(uri, &["http://h/new".to_owned()], at(5)).unwrap();
        }
        mirror.put_coming(&fetch("http://h/a"), at(5)).unwrap();
        mirror.put_coming(&fetch("http://h/b"), at(6)).unwrap();
        mirror.put_deprecated("http://h/c", &[], at(7)).unwrap();
        mirror.put_deprecated("http://h/c", &["http://h/old".to_owned()], at(6)).unwrap();
        let mut found = Vec::new();
        mirror.deprecated_after("", 10, &mut found).unwrap();
        let of = |uri: &str, replaced_by: &[&str], time| Deprecated {
            uri: uri.to_owned(),
            replaced_by: replaced_by.iter().map(|&uri| uri.to_owned()).collect(),
            time: Some(time),
        };
        assert_eq!(found, [of("http://h/a", &["http://h/new"], 5), of("http://h/c", &[], 7)]);
    }

    #[test]
    fn uncommitted_rows_are_not_kept() {
        let (folder, mirror) = mirror();
        mirror.begin().unwrap();
        mirror.put_row(&row("http://h/a")).unwrap();
        mirror.put_pending(&fetch("http://h/b")).unwrap();
        drop(mirror);
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        assert_eq!(mirror.row("http://h/a").unwrap(), None);
        assert_eq!(mirror.pending_counts().unwrap(), PendingCounts::default());
    }

    #[test]
    fn a_part_is_given_up_by_itself() {
        let (_folder, mirror) = mirror();
        mirror.begin().unwrap();
        mirror.set_meta("a", Some("1")).unwrap();
        mirror.begin_part().unwrap();
        mirror.set_meta("b", Some("1")).unwrap();
        mirror.give_up_part().unwrap();
        mirror.begin_part().unwrap();
        mirror.set_meta("c", Some("1")).unwrap();
        mirror.join_part().unwrap();
        let kept = |key| mirror.meta(key).unwrap().is_some();
        assert_eq!((kept("a"), kept("b"), kept("c")), (true, false, true));
        mirror.rollback().unwrap();
        assert_eq!(mirror.meta("a").unwrap(), None);
    }

    #[test]
    fn rows_come_in_the_order_of_their_bytes() {
        let (_folder, mirror) = mirror();
        for uri in ["http://h/a/b", "http://h/a", "http://h/A", "http://h/a!", "http://h/é"] {
            mirror.put_row(&row(uri)).unwrap();
        }
        let mut rows = Vec::new();
        mirror.rows_after("", 3, &mut rows).unwrap();
        let last = rows.last().unwrap().uri.clone();
        mirror.rows_after(&last, 3, &mut rows).unwrap();
        let uris: Vec<_> = rows.iter().map(|row| row.uri.as_str()).collect();
        assert_eq!(uris, ["http://h/A", "http://h/a", "http://h/a!", "http://h/a/b", "http://h/é"]);
    }

    #[test]
    fn a_plan_keeps_failures_and_forgets_what_is_done() {
        let (_folder, mirror) = mirror();
        for uri in ["http://h/a", "http://h/b", "http://h/c"] {
            mirror.put_pending(&fetch(uri)).unwrap();
        }
        mirror
            .put_pending(&Pending { action: PendingAction::Delete, ..fetch("http://h/d") })
            .unwrap();
        let mut tasks = Vec::new();
        mirror.fetches_after("", 10, &mut tasks).unwrap();
        assert_eq!(tasks.len(), 3);
        mirror.set_pending_state("http://h/b", PendingState::Failed, true).unwrap();
        mirror.forget_fetches_between("http://h/a", "http://h/c").unwrap();
        let counts = mirror.pending_counts().unwrap();
        assert_eq!((counts.fetches, counts.deletes, counts.held), (0, 1, 1));
        mirror.renew_pending().unwrap();
        tasks.clear();
        mirror.fetches_after("", 10, &mut tasks).unwrap();
        assert_eq!((tasks.len(), tasks[0].pending.attempts), (1, 1));
        // The same expectation keeps the count of attempts, another starts again.
        mirror.put_pending(&fetch("http://h/b")).unwrap();
        tasks.clear();
        mirror.fetches_after("", 10, &mut tasks).unwrap();
        assert_eq!(tasks[0].pending.attempts, 1);
        let changed = |time| Pending { changed: Some(time), ..fetch("http://h/b") };
        mirror.put_pending(&changed(1)).unwrap();
        mirror.set_pending_state("http://h/b", PendingState::Failed, true).unwrap();
        mirror.put_pending(&changed(1)).unwrap();
        assert!(mirror.is_failed("http://h/b").unwrap(), "the same change is for the next run");
        mirror.put_pending(&changed(2)).unwrap();
        assert!(!mirror.is_failed("http://h/b").unwrap());
        mirror.put_pending(&Pending { length: Some(3), ..fetch("http://h/b") }).unwrap();
        tasks.clear();
        mirror.fetches_after("", 10, &mut tasks).unwrap();
        assert_eq!(tasks[0].pending.attempts, 0);
    }

    #[test]
    fn counts_are_never_those_of_another_plan() {
        let (_folder, mirror) = mirror();
        let fetches = || mirror.pending_counts().unwrap().fetches;
        mirror.put_pending(&fetch("http://h/a")).unwrap();
        assert_eq!((fetches(), fetches()), (1, 1));
        mirror.begin().unwrap();
        mirror.put_pending(&fetch("http://h/b")).unwrap();
        assert_eq!(fetches(), 2);
        mirror.rollback().unwrap();
        assert_eq!(fetches(), 1);
        mirror.begin().unwrap();
        mirror.begin_part().unwrap();
        mirror.set_pending_state("http://h/a", PendingState::Failed, true).unwrap();
        assert_eq!(fetches(), 0);
        mirror.give_up_part().unwrap();
        assert_eq!(fetches(), 1);
        mirror.forget_pending("http://h/a").unwrap();
        assert_eq!(fetches(), 0);
    }

    #[test]
    fn rows_of_what_came_as_planned_are_made_out_of_the_plan() {
        let (_folder, mirror) = mirror();
        for uri in ["http://h/a", "http://h/b", "http://h/c", "http://h/d"] {
            let listed =
                Pending { modified: Some(5), length: Some(3), digests: vec![1, 9], ..fetch(uri) };
            mirror
                .put_pending(&Pending { changed: (uri == "http://h/b").then_some(8), ..listed })
                .unwrap();
        }
        mirror.set_pending_state("http://h/c", PendingState::Failed, true).unwrap();
        assert_eq!(mirror.put_rows_as_planned("http://h/a", "http://h/c", 7, true).unwrap(), 2);
        let mut rows = Vec::new();
        mirror.rows_after("", 10, &mut rows).unwrap();
        let planned = Row {
            file_mtime: 5_000,
            modified: Some(5),
            length: 3,
            digests: vec![1, 9],
            verified: true,
            epoch: 7,
            ..row("http://h/a")
        };
        let second = Row { uri: "http://h/b".to_owned(), changed: Some(8), ..planned.clone() };
        assert_eq!(rows, [planned, second]);
        // Without times, of the files and of what is listed.
        let listed = Pending { length: Some(3), digests: vec![1, 9], ..fetch("http://h/e") };
        mirror.put_pending(&listed).unwrap();
        assert_eq!(mirror.put_rows_as_planned("http://h/e", "http://h/e", 7, false).unwrap(), 1);
        let kept = mirror.row("http://h/e").unwrap().unwrap();
        assert_eq!((kept.modified, kept.file_mtime), (None, 0));
    }

    #[test]
    fn one_item_is_found_with_what_is_kept() {
        let (_folder, mirror) = mirror();
        assert_eq!(mirror.task("http://h/a").unwrap(), None);
        mirror.put_row(&row("http://h/a")).unwrap();
        mirror.put_pending(&fetch("http://h/a")).unwrap();
        let task = mirror.task("http://h/a").unwrap().unwrap();
        assert_eq!((task.pending.uri.as_str(), task.row), ("http://h/a", Some(row("http://h/a"))));
    }

    #[test]
    fn unseen_rows_become_deletions_once() {
        let (_folder, mirror) = mirror();
        for uri in ["http://h/a", "http://h/b", "http://h/c"] {
            mirror.put_row(&row(uri)).unwrap();
        }
        mirror.add_unseen("http://h/a").unwrap();
        mirror.add_unseen("http://h/b").unwrap();
        assert!(mirror.take_unseen("http://h/b").unwrap());
        assert!(!mirror.take_unseen("http://h/b").unwrap());
        assert_eq!(mirror.plan_unseen().unwrap(), 1);
        let mut tasks = Vec::new();
        mirror.deletes_after("", 10, &mut tasks).unwrap();
        assert_eq!(tasks.len(), 1);
        assert_eq!(
            (tasks[0].pending.uri.as_str(), tasks[0].row.as_ref().unwrap().length),
            ("http://h/a", 5)
        );
    }

    #[test]
    fn excluded_resources_are_deleted_only_on_request() {
        let (_folder, mirror) = mirror();
        for uri in ["http://h/a", "http://h/b"] {
            mirror.put_row(&row(uri)).unwrap();
        }
        assert!(mirror.set_excluded("http://h/a", true).unwrap());
        assert!(!mirror.set_excluded("http://h/a", true).unwrap());
        assert!(mirror.set_excluded("http://h/gone", true).unwrap());
        assert!(mirror.has_excluded().unwrap());
        assert!(!mirror.is_excluded("http://h/gone").unwrap(), "what is not kept is forgotten");
        assert_eq!(mirror.plan_excluded(true).unwrap(), 1);
        assert_eq!(mirror.pending_counts().unwrap().deletes, 1);
        mirror.plan_excluded(false).unwrap();
        assert_eq!(mirror.pending_counts().unwrap().deletes, 0);
        mirror
            .put_coming(&Pending { action: PendingAction::Leave, ..fetch("http://h/b") }, at(2))
            .unwrap();
        mirror.put_coming(&fetch("http://h/b"), at(1)).unwrap();
        let mut tasks = Vec::new();
        mirror.coming_after("", 10, &mut tasks).unwrap();
        assert_eq!(tasks[0].task.pending.action, PendingAction::Leave);
    }

    #[test]
    fn of_several_changes_the_newest_stays_and_of_equals_the_last() {
        let (_folder, mirror) = mirror();
        let change =
            |uri: &str, time, length| (Pending { length: Some(length), ..fetch(uri) }, time);
        for (pending, time) in [
            change("http://h/a", 2, 20),
            change("http://h/a", 1, 10),
            change("http://h/b", 1, 1),
            change("http://h/b", 1, 2),
        ] {
            mirror.put_coming(&pending, at(time)).unwrap();
        }
        let mut tasks = Vec::new();
        mirror.coming_after("", 10, &mut tasks).unwrap();
        let got: Vec<_> =
            tasks.iter().map(|coming| (coming.task.pending.length, coming.changed)).collect();
        assert_eq!(got, [(Some(20), Some((2, 2))), (Some(2), Some((1, 1)))]);
        mirror.clear_scratch().unwrap();
        tasks.clear();
        mirror.coming_after("", 10, &mut tasks).unwrap();
        assert!(tasks.is_empty());
    }
}
