//! The store in a folder.

use crate::database::connection::{open_reader, sqlite_error};
use crate::database::locked::DatabaseLock;
use crate::database::sum::damaged;
use crate::hub::SqliteHub;
use crate::hub::store::create_private;
use crate::log::set_state::SetState;
use crate::log::sqlite::load::load_set_states;
use crate::log::sqlite::log::SqliteLog;
use crate::maintenance::former_sets::{self, FormerSet};
use crate::maintenance::migrate::side::{Numbers, PART_BYTES, Rows, Side, size_of};
use crate::maintenance::migrate::state::State;
use crate::maintenance::migrate::table::{Kind, Part, Table};
use crate::maintenance::migrate::value::{Row, Value};
use abreast_core::{ChangeLog, ContentId, ErrorKind, LogError, SetId, ShardRule, SystemClock};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, ToSql, params_from_iter};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the change log's database in a folder.
const LOG: &str = "source.db";
/// Name of the hub's database in a folder.
const HUB: &str = "hub.db";
/// The table with the state of the migration, which exists until the store is complete.
const STATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS migration (state BLOB NOT NULL) STRICT";

/// The two databases of a folder.
pub(crate) struct SqliteSide {
    folder: PathBuf,
    log: Option<Database>,
    hub: Option<Database>,
}

/// A database, which no other process has open.
struct Database {
    path: PathBuf,
    connection: Connection,
    /// The lock of a database that is written.
    lock: Option<DatabaseLock>,
    /// The store of a database that is read.
    source: Option<Source>,
}

/// An open store, whose opening brings old databases to the newest schema.
enum Source {
    Log(SqliteLog),
    Hub { _open: SqliteHub },
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(stored: ValueRef<'_>, column: usize, kind: Kind) -> rusqlite::Result<Value> {
    Ok(match (stored, kind) {
        (ValueRef::Null, Kind::Error) => Value::Text(String::new()),
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(number), Kind::Int | Kind::Flag) => Value::Int(number),
        (ValueRef::Text(_), Kind::Text) => Value::Text(stored.as_str()?.to_owned()),
        (ValueRef::Text(_), Kind::Error) => Value::Text(stored.as_str()?.replace('\0', "\u{fffd}")),
        (ValueRef::Blob(bytes), Kind::Bytes) => Value::Bytes(bytes.to_vec()),
        _ => return Err(damaged(column)),
    })
}

/// A value of any type, as a part of a place in a table.
fn place(stored: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match stored {
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Text(_) => Value::Text(stored.as_str()?.to_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Null | ValueRef::Real(_) => Value::Null,
    })
}

/// Numbered parameters of a statement, separated by commas.
fn numbered(from: usize, count: usize) -> String {
    (from..from + count).map(|number| format!("?{number}")).collect::<Vec<_>>().join(", ")
}

impl Database {
    /// Opens a database to read its rows.
    fn source(
        path: PathBuf,
        open: impl FnOnce(&Path) -> Result<Source, LogError>,
    ) -> Result<Option<Self>, LogError> {
        if !path.exists() {
            return Ok(None);
        }
        let source = Some(open(&path)?);
        let connection = open_reader(&path)?;
        Ok(Some(Self { path, connection, lock: None, source }))
    }

    /// Opens a database to write its rows.
    fn destination(path: PathBuf, steps: &[&str]) -> Result<Self, LogError> {
        let lock = DatabaseLock::take(&path)?;
        let connection = lock.open(steps)?;
        Ok(Self { path, connection, lock: Some(lock), source: None })
    }

    fn failed(&self, doing: &str, cause: rusqlite::Error) -> LogError {
        sqlite_error(&format!("cannot {doing} {}", self.path.display()), cause)
    }

    fn read(&self, table: &Table, after: Option<&[Value]>, limit: usize) -> rusqlite::Result<Rows> {
        let mut columns: Vec<&str> =
            table.columns.iter().map(|column| column.sqlite.read).collect();
        let sum = table.sum.map(|sum| (sum, columns.len()));
        if sum.is_some() {
            columns.push("sum");
        }
        let first_of_place = columns.len();
        columns.extend(table.sqlite_order);
        let (order, count) = (table.sqlite_order.join(", "), table.sqlite_order.len());
        let condition = match after {
            Some(_) => format!("WHERE ({order}) > ({})", numbered(1, count)),
            None => String::new(),
        };
        let from = table.apart.as_ref().map_or(table.name, |apart| apart.from);
        let sql = format!("SELECT {} FROM {from} {condition} ORDER BY {order}", columns.join(", "));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = statement.query(params_from_iter(after.unwrap_or_default()))?;
        let (mut rows, mut next, mut bytes) = (Vec::new(), None, 0);
        while let Some(stored) = found.next()? {
            if rows.len() >= limit || bytes >= PART_BYTES {
                return Ok(Rows { rows, next });
            }
            let row = table
                .columns
                .iter()
                .enumerate()
                .map(|(index, column)| value(stored.get_ref(index)?, index, column.kind));
            let row: Row = row.collect::<rusqlite::Result<_>>()?;
            if let Some((sum, index)) = sum
                && let Some(stored) = stored.get::<_, Option<i64>>(index)?
                && sum(&row) != Some(stored)
            {
                return Err(damaged(index));
            }
            let place = (0..count).map(|column| place(stored.get_ref(first_of_place + column)?));
            next = Some(place.collect::<rusqlite::Result<_>>()?);
            bytes += size_of(&row);
            rows.push(row);
        }
        Ok(Rows { rows, next: None })
    }

    fn write(&mut self, table: &Table, rows: &[Row], state: &State) -> rusqlite::Result<()> {
        let written: Vec<(usize, &str)> = table.sqlite_written().collect();
        let mut names: Vec<&str> = written.iter().map(|(_, name)| *name).collect();
        names.extend(table.apart.as_ref().map(|apart| apart.number));
        names.extend(table.sum.map(|_| "sum"));
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            table.name,
            names.join(", "),
            numbered(1, names.len())
        );
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(&sql)?;
            for row in rows {
                let number = match &table.apart {
                    Some(apart) if row[apart.column] != Value::Null => {
                        transaction.prepare_cached(apart.insert)?.execute([&row[apart.column]])?;
                        Some(transaction.last_insert_rowid())
                    }
                    _ => None,
                };
                let sum = table.sum.map(|sum| sum(row).ok_or_else(|| damaged(0))).transpose()?;
                let mut values: Vec<&dyn ToSql> = Vec::with_capacity(names.len());
                values.extend(written.iter().map(|(index, _)| &row[*index] as &dyn ToSql));
                if table.apart.is_some() {
                    values.push(&number);
                }
                if table.sum.is_some() {
                    values.push(&sum);
                }
                insert.execute(&*values)?;
            }
        }
        write_state(&transaction, state)?;
        transaction.commit()
    }

    fn state(&self) -> rusqlite::Result<Option<Vec<u8>>> {
        if !self.connection.table_exists(None, "migration")? {
            return Ok(None);
        }
        let sql = "SELECT state FROM migration";
        self.connection.query_row(sql, [], |row| row.get(0)).optional()
    }

    /// Deletes the state, and makes the database a single file.
    fn finish(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("DROP TABLE IF EXISTS migration")?;
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }
}

fn write_state(connection: &Connection, state: &State) -> rusqlite::Result<()> {
    connection.execute_batch(STATE_TABLE)?;
    connection.execute("DELETE FROM migration", [])?;
    connection.execute("INSERT INTO migration (state) VALUES (?1)", [state.bytes()])?;
    Ok(())
}

impl SqliteSide {
    /// Opens the store to read it.
    pub(crate) fn source(folder: &Path) -> Result<Self, LogError> {
        let log = Database::source(folder.join(LOG), |path| {
            Ok(Source::Log(SqliteLog::open(path, Arc::new(SystemClock))?))
        })?;
        let hub = Database::source(folder.join(HUB), |path| {
            Ok(Source::Hub { _open: SqliteHub::open(path, Arc::new(SystemClock))? })
        })?;
        Ok(Self { folder: folder.to_owned(), log, hub })
    }

    /// Opens the store to write it.
    pub(crate) fn destination(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), log: None, hub: None }
    }

    fn database(&self, part: Part) -> Result<&Database, LogError> {
        let database = match part {
            Part::Log => &self.log,
            Part::Hub => &self.hub,
        };
        database.as_ref().ok_or_else(|| LogError::new(ErrorKind::Io, "the database is not open"))
    }

    /// The database to be written, which is made when it is needed first.
    fn opened(&mut self, part: Part) -> Result<&mut Database, LogError> {
        let (database, name, steps) = match part {
            Part::Log => (&mut self.log, LOG, crate::log::sqlite::log::MIGRATIONS),
            Part::Hub => (&mut self.hub, HUB, crate::hub::MIGRATIONS),
        };
        if database.is_none() {
            let path = self.folder.join(name);
            if part == Part::Hub {
                create_private(&path)?;
            }
            *database = Some(Database::destination(path, steps)?);
        }
        database.as_mut().ok_or_else(|| LogError::new(ErrorKind::Io, "the database is not open"))
    }
}

impl Side for SqliteSide {
    fn has(&self, part: Part) -> bool {
        self.database(part).is_ok()
    }

    fn read(
        &mut self,
        table: &Table,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Rows, LogError> {
        let database = self.database(table.part)?;
        database
            .read(table, after, limit)
            .map_err(|cause| database.failed(&format!("read the table `{}` of", table.name), cause))
    }

    fn state(&mut self, part: Part) -> Result<Option<State>, LogError> {
        let name = match part {
            Part::Log => LOG,
            Part::Hub => HUB,
        };
        if !self.folder.join(name).exists() {
            return Ok(None);
        }
        let database = self.opened(part)?;
        let state = database
            .state()
            .map_err(|cause| database.failed("read the state of the migration in", cause))?;
        state.map(|state| State::parse(&state)).transpose()
    }

    fn write(&mut self, table: &Table, rows: &[Row], state: &State) -> Result<(), LogError> {
        let database = self.opened(table.part)?;
        database.write(table, rows, state).map_err(|cause| {
            database.failed(&format!("write the table `{}` of", table.name), cause)
        })
    }

    fn write_state(&mut self, part: Part, state: &State) -> Result<(), LogError> {
        let database = self.opened(part)?;
        let write = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            write_state(&transaction, state)?;
            transaction.commit()
        };
        write(&mut database.connection)
            .map_err(|cause| database.failed("write the state of the migration in", cause))
    }

    fn set_states(&mut self) -> Result<HashMap<SetId, SetState>, LogError> {
        let database = self.database(Part::Log)?;
        load_set_states(&database.connection, ShardRule::DEFAULT)
            .map_err(|cause| database.failed("read the sets of", cause))
    }

    /// The values are computed when the store is opened.
    fn store_set_states(&mut self, _: HashMap<SetId, SetState>) -> Result<(), LogError> {
        Ok(())
    }

    fn numbers(&mut self) -> Result<Numbers, LogError> {
        let database = self.database(Part::Hub)?;
        let last = |table: &str| -> rusqlite::Result<i64> {
            database.connection.query_row(
                "SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = ?1), 0)",
                [table],
                |row| row.get(0),
            )
        };
        let read = || -> rusqlite::Result<Numbers> {
            Ok(Numbers {
                topic: last("topics")?,
                target: last("targets")?,
                verification: last("verifications")?,
                ended: last("ended")?,
            })
        };
        read().map_err(|cause| database.failed("read the last numbers of", cause))
    }

    fn store_numbers(&mut self, numbers: Numbers) -> Result<(), LogError> {
        let database = self.opened(Part::Hub)?;
        let last = [
            ("topics", numbers.topic),
            ("targets", numbers.target),
            ("verifications", numbers.verification),
            ("ended", numbers.ended),
        ];
        let write = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            for (table, number) in last {
                transaction.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
                transaction.execute(
                    "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                    (table, number),
                )?;
            }
            transaction.commit()
        };
        write(&mut database.connection)
            .map_err(|cause| database.failed("write the last numbers of", cause))
    }

    fn former_sets(&mut self) -> Result<Vec<FormerSet>, LogError> {
        match &self.log {
            Some(database) => former_sets::former_sets(&database.path),
            None => Ok(Vec::new()),
        }
    }

    fn store_former_sets(&mut self, former: &[FormerSet]) -> Result<(), LogError> {
        let database = self.opened(Part::Log)?;
        let write = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction()?;
            former.iter().try_for_each(|one| former_sets::put_former(&transaction, one))?;
            transaction.commit()
        };
        write(&mut database.connection)
            .map_err(|cause| database.failed("write the former names of sets of", cause))
    }

    fn needed(&mut self, after: &[u8], limit: usize) -> Result<Vec<(ContentId, u64)>, LogError> {
        let Ok(database) = self.database(Part::Log) else { return Ok(Vec::new()) };
        let read = || -> rusqlite::Result<Vec<(ContentId, u64)>> {
            let mut statement = database.connection.prepare_cached(
                "SELECT id, max(length) FROM contents WHERE needed > 0 AND id > ?1 GROUP BY id ORDER BY id LIMIT ?2",
            )?;
            let rows = statement.query_map((after, limit as i64), |row| {
                let id = ContentId::from_slice(row.get_ref(0)?.as_blob()?);
                Ok((id.ok_or_else(|| damaged(0))?, row.get::<_, i64>(1)? as u64))
            })?;
            rows.collect()
        };
        read().map_err(|cause| database.failed("read the needed contents of", cause))
    }

    fn with_log(
        &mut self,
        work: &mut dyn FnMut(&dyn ChangeLog) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        if let Some(Source::Log(log)) = self.log.as_ref().and_then(|log| log.source.as_ref()) {
            return work(log);
        }
        // The lock of a database that is written is released: opening takes it.
        let Some(Database { path, connection, lock, .. }) = self.log.take() else { return Ok(()) };
        drop((connection, lock));
        let log = SqliteLog::open(&path, Arc::new(SystemClock))?;
        let result = work(&log);
        drop(log);
        self.opened(Part::Log)?;
        result
    }

    fn finish(&mut self, _: &str) -> Result<(), LogError> {
        for database in [self.log.take(), self.hub.take()].into_iter().flatten() {
            database.finish().map_err(|cause| database.failed("complete", cause))?;
        }
        Ok(())
    }
}
