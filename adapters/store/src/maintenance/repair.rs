//! Repair of a store without guessing: counts are recomputed, lost data is not invented.
//!
//! A database that SQLite can read is repaired in one transaction. Otherwise its tables are read
//! row by row, from both ends, into a new database; the old one remains in the same folder.
//! Whenever rows were lost, the log is restarted, so that Destinations compare everything once.

pub(crate) mod hub;

pub use hub::repair_hub;

use crate::database::connection::{Durability, beside, open_connection, sqlite_error};
use crate::database::locked::{self, DatabaseLock};
use crate::database::migration::migrate;
use crate::database::read_only::open_for_check;
use crate::log::set_rows::empty_change;
use crate::log::shards::entry_bytes;
use crate::log::sqlite::log::MIGRATIONS;
use crate::log::sqlite::rows::{
    change_columns, read_change, read_resource, read_version, resource_columns, version_columns,
};
use crate::maintenance::backup::{copy, restart_set_log, set_ids};
use crate::maintenance::integrity::set::SET_TABLES;
use crate::maintenance::integrity::sqlite::FORMER_SETS;
use crate::maintenance::integrity::{Findings, check_rows, integrity, schema};
use crate::maintenance::schema_text::Readable;
use crate::mirror;
use abreast_core::{ContentId, ErrorKind, LogError, Resource, ShardRule};
use abreast_webtypes::{Timestamp, count};
use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params, params_from_iter};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// How many rows of a set use each stored content.
const NAMED: &str = "SELECT content, count(*) FROM (SELECT content FROM resources WHERE set_id = ?1 AND \
     content IS NOT NULL UNION ALL SELECT content FROM versions WHERE set_id = ?1 AND content IS NOT NULL) GROUP BY content";

/// The steps of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// One English sentence for each step.
    pub steps: Vec<String>,
    /// Rows were lost or are uncertain: Destinations must compare everything.
    pub lost: bool,
}

/// Repairs a Source's store. With `dry_run` nothing is changed, and the result lists the steps that
/// a repair would take.
///
/// # Errors
/// Another process has it open, or no part of the database can be read.
pub fn repair_log(path: &Path, dry_run: bool, now: Timestamp) -> Result<Repaired, LogError> {
    repair(path, dry_run, MIGRATIONS, &LOG_TABLES, &mut |connection, dry_run, repaired| {
        repair_rows(connection, dry_run, now, repaired)
    })
}

/// Repairs the rows of a database that SQLite can read. With `true` nothing is changed.
pub(crate) type RepairRows<'r> =
    &'r mut dyn FnMut(&mut Connection, bool, &mut Repaired) -> rusqlite::Result<()>;

/// Repairs a database that servers write: first makes it readable for SQLite, then repairs its
/// rows.
pub(crate) fn repair(
    path: &Path,
    dry_run: bool,
    steps: &[&str],
    tables: &[&str],
    repair_rows: RepairRows<'_>,
) -> Result<Repaired, LogError> {
    let lock = if dry_run { None } else { Some(DatabaseLock::take(path)?) };
    let mut repaired = Repaired::default();
    // Repair the salvaged rows before the new database replaces the damaged one. If the process is
    // killed in between, the next repair still finds that rows were lost.
    let mut finish =
        |to: &mut Connection, repaired: &mut Repaired| repair_rows(to, false, repaired);
    if salvage(path, steps, tables, dry_run, &mut repaired, &mut finish)? {
        return Ok(repaired);
    }
    // In a dry run, migrate a copy of a database with an older schema.
    let mut rehearsal = None;
    let mut connection = match &lock {
        Some(lock) => lock.open(steps)?,
        None if crate::database::migration::is_older(path, steps)? => {
            let io = |cause| {
                LogError::new(ErrorKind::Io, "cannot make a temporary folder").with_cause(cause)
            };
            let folder = rehearsal.insert(tempfile::tempdir().map_err(io)?);
            let copied = folder.path().join("copy.db");
            copy(path, &copied)?;
            let mut connection = open_connection(&copied, Durability::ProcessEnd)?;
            migrate(&mut connection, &copied, steps)?;
            connection
        }
        None => open_for_check(path)?,
    };
    repair_rows(&mut connection, dry_run, &mut repaired).map_err(|cause| {
        sqlite_error(&format!("cannot repair the store {}", path.display()), cause)
    })?;
    Ok(repaired)
}

/// Repairs a database that SQLite can read.
fn repair_rows(
    connection: &mut Connection,
    dry_run: bool,
    now: Timestamp,
    repaired: &mut Repaired,
) -> rusqlite::Result<()> {
    let mut findings = Findings::default();
    check_rows(connection, "store", &mut findings);
    let behavior =
        if dry_run { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
    let transaction = connection.transaction_with_behavior(behavior)?;
    let sets: Vec<(i64, String)> = transaction
        .prepare("SELECT id, slug FROM sets ORDER BY id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let lost = repaired.lost;
    for (id, slug) in sets {
        let mut set =
            Set { connection: &transaction, id, slug, dry_run, steps: &mut repaired.steps, lost };
        set.repair(&findings, now)?;
        repaired.lost |= set.lost;
    }
    let of_no_set = SET_TABLES
        .into_iter()
        .chain([FORMER_SETS])
        .map(|table| (table, "set_id NOT IN (SELECT id FROM sets)".to_owned()));
    let no_digest = ("contents", format!("length(id) != {}", ContentId::BYTES));
    for (table, which) in of_no_set.chain([no_digest]) {
        let sql = format!("SELECT count(*) FROM {table} WHERE {which}");
        let rows: i64 = transaction.query_row(&sql, [], |row| row.get(0))?;
        if rows > 0 {
            repaired.steps.push(format!(
                "drop {} of {table} that belong to nothing",
                count(rows as u64, "row")
            ));
            if !dry_run {
                transaction.execute(&format!("DELETE FROM {table} WHERE {which}"), [])?;
            }
        }
    }
    if dry_run { Ok(()) } else { transaction.commit() }
}

/// Repairs the database of a copy; returns whether rows may be missing.
///
/// # Errors
/// No part of the database can be read.
pub fn repair_mirror(path: &Path, dry_run: bool) -> Result<Repaired, LogError> {
    let mut repaired = Repaired::default();
    let mut finish = |to: &mut Connection, _: &mut Repaired| {
        // The next run compares everything, and so restores the data of lost rows.
        to.execute_batch(
            "DELETE FROM document; DELETE FROM meta WHERE key IN ('cursor', 'cursor-is-change', 'open-list');",
        )
    };
    salvage(path, &mirror::STEPS, &MIRROR_TABLES, dry_run, &mut repaired, &mut finish)?;
    Ok(repaired)
}

/// Completes a database made of readable rows.
pub(crate) type Finish<'a> =
    &'a mut dyn FnMut(&mut Connection, &mut Repaired) -> rusqlite::Result<()>;

const LOG_TABLES: [&str; 10] = [
    "sets",
    "resources",
    "tombstones",
    "changes",
    "pages",
    "shards",
    "idempotency",
    "versions",
    "contents",
    "former_sets",
];
const MIRROR_TABLES: [&str; 11] = [
    "meta",
    "resource",
    "pending",
    "access",
    "excluded",
    "segment",
    "packed",
    "description",
    "superseded",
    "deprecation",
    "waiting_change",
];

/// Copies the readable rows of a damaged database into a new one, which then replaces it. Returns
/// whether the database was damaged.
pub(crate) fn salvage(
    path: &Path,
    steps: &[&str],
    tables: &[&str],
    dry_run: bool,
    repaired: &mut Repaired,
    finish: Finish<'_>,
) -> Result<bool, LogError> {
    let io = |task: &str, cause: std::io::Error| {
        LogError::new(ErrorKind::Io, format!("cannot {task} while repairing {}", path.display()))
            .with_cause(cause)
    };
    let (making, done) = (beside(path, ".salvaging"), beside(path, ".salvaged"));
    if done.exists() {
        // An earlier repair was interrupted after it had read all rows.
        repaired.lost = true;
        repaired
            .steps
            .push("put the database that an interrupted repair made into place".to_owned());
        if !dry_run {
            put_in_place(path, &done)
                .map_err(|cause| io("put the new database into place", cause))?;
        }
        return Ok(true);
    }
    let mut findings = Findings::default();
    let consistent = match open_for_check(path) {
        Ok(connection) => {
            let consistent = integrity(&connection, &path.display().to_string(), &mut findings)?;
            let known = schema(&connection, "", steps, &mut findings);
            if findings.has(&["store.schema"]) {
                let why = findings
                    .list()
                    .last()
                    .map(|finding| finding.message.clone())
                    .unwrap_or_default();
                let message = format!(
                    "the store {} has {why}\n  help: use the newer program",
                    path.display()
                );
                return Err(LogError::new(ErrorKind::Refused, message));
            }
            consistent && (known || findings.has(&["store.schema-old"]))
        }
        Err(error) if error.kind() == ErrorKind::Corrupt => false,
        Err(error) => return Err(error),
    };
    if consistent {
        return Ok(false);
    }
    repaired.lost = true;
    repaired.steps.push(format!(
        "read what is readable of the damaged database into a new one; keep the old one as {}",
        file_name(&damaged_name(path))
    ));
    if dry_run {
        return Ok(true);
    }
    for leftover in [making.clone(), beside(&making, "-wal"), beside(&making, "-shm")] {
        let _ = fs::remove_file(leftover);
    }
    let mut to = open_connection(&making, Durability::PowerLoss)?;
    migrate(&mut to, &making, steps)?;
    let mut rows = 0;
    if let Ok(from) = Readable::open(path, steps) {
        for table in tables {
            let read = read_table(&from, &mut to, table)
                .map_err(|cause| sqlite_error("cannot write the new database", cause))?;
            repaired.steps.push(format!("{table}: {}", count(read, "row")));
            rows += read;
        }
    }
    if rows == 0 {
        drop(to);
        let _ = fs::remove_file(&making);
        let message = format!(
            "nothing of the store {} can be read\n  help: restore a backup (`abreast restore`)",
            path.display()
        );
        return Err(LogError::new(ErrorKind::Corrupt, message));
    }
    finish(&mut to, repaired)
        .map_err(|cause| sqlite_error("cannot repair the new database", cause))?;
    let checkpointed = to.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    checkpointed.map_err(|cause| sqlite_error("cannot write the new database", cause))?;
    drop(to);
    File::open(&making)
        .and_then(|file| file.sync_all())
        .map_err(|cause| io("make the new database durable", cause))?;
    fs::rename(&making, &done).map_err(|cause| io("name the new database", cause))?;
    put_in_place(path, &done).map_err(|cause| io("put the new database into place", cause))?;
    Ok(true)
}

/// Replaces the old database, which is renamed. If the process is killed between two steps, this
/// can be repeated.
fn put_in_place(path: &Path, done: &Path) -> std::io::Result<()> {
    let old = damaged_name(path);
    let wal = beside(path, "-wal");
    if wal.exists() {
        fs::copy(&wal, beside(&old, "-wal"))?;
    }
    match fs::hard_link(path, &old) {
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
            fs::copy(path, &old).map(drop)?;
        }
        linked => linked?,
    }
    // The log of the old database must not be applied to the new one.
    for name in [wal, beside(path, "-shm")] {
        match fs::remove_file(name) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(done, path)?;
    let parent =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

fn damaged_name(path: &Path) -> PathBuf {
    (1_u32..10_000)
        .map(|number| beside(path, &format!(".damaged-{number}")))
        .find(|name| !name.exists())
        .unwrap_or_default()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Copies a table from its beginning up to the damage, then from its end back to it.
fn read_table(from: &Connection, to: &mut Connection, table: &str) -> rusqlite::Result<u64> {
    let columns = |connection: &Connection| -> rusqlite::Result<Vec<(String, i64)>> {
        let mut statement = connection
            .prepare(&format!("SELECT name, pk FROM pragma_table_info('{table}') ORDER BY cid"))?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let Ok(known) = columns(from) else { return Ok(0) };
    let mut wanted = columns(to)?;
    // A table with the expected number of columns has the newest version, even if a damaged schema
    // has other names for them.
    let named = if known.len() == wanted.len() {
        known
    } else {
        wanted.retain(|column| known.contains(column));
        wanted.clone()
    };
    if wanted.is_empty() {
        return Ok(0);
    }
    let quoted = |columns: &[(String, i64)]| -> Vec<String> {
        columns.iter().map(|(name, _)| format!("\"{}\"", name.replace('"', "\"\""))).collect()
    };
    let (names, asked) = (quoted(&wanted), quoted(&named).join(", "));
    let mut keys: Vec<(usize, i64)> =
        wanted.iter().map(|(_, pk)| *pk).enumerate().filter(|(_, pk)| *pk > 0).collect();
    keys.sort_by_key(|(_, pk)| *pk);
    let backwards: Vec<String> =
        keys.iter().map(|(column, _)| format!("{} DESC", column + 1)).collect();
    let places: Vec<String> = (1..=names.len()).map(|number| format!("?{number}")).collect();
    let insert = format!(
        "INSERT OR IGNORE INTO {table} ({}) VALUES ({})",
        names.join(", "),
        places.join(", ")
    );
    let mut count = 0;
    let transaction = to.transaction()?;
    {
        let mut insert = transaction.prepare(&insert)?;
        for order in [String::new(), format!(" ORDER BY {}", backwards.join(", "))] {
            let Ok(mut statement) = from.prepare(&format!("SELECT {asked} FROM {table}{order}"))
            else {
                continue;
            };
            let Ok(mut rows) = statement.query([]) else { continue };
            let mut whole = false;
            loop {
                let row = match rows.next() {
                    Ok(Some(row)) => row,
                    Ok(None) => {
                        whole = true;
                        break;
                    }
                    // Read the rows after the damage from the other end.
                    Err(_) => break,
                };
                let values: rusqlite::Result<Vec<Value>> =
                    (0..names.len()).map(|column| row.get(column)).collect();
                let Ok(values) = values else { continue };
                // The new table refuses a value of the wrong type: the row is lost.
                match insert.execute(params_from_iter(values)) {
                    Ok(added) => count += added as u64,
                    Err(error)
                        if error.sqlite_error_code()
                            == Some(rusqlite::ErrorCode::ConstraintViolation) => {}
                    Err(error) => return Err(error),
                }
            }
            if whole {
                break;
            }
        }
    }
    transaction.commit()?;
    Ok(count)
}

/// A set while it is repaired.
struct Set<'a> {
    connection: &'a Connection,
    id: i64,
    slug: String,
    dry_run: bool,
    steps: &'a mut Vec<String>,
    lost: bool,
}

impl Set<'_> {
    fn repair(&mut self, findings: &Findings, now: Timestamp) -> rusqlite::Result<()> {
        if self.lost
            || findings.has(&["store.row", "table.row", "log.gap", "log.time", "log.import"])
        {
            self.drop_damaged(findings, now)?;
        }
        let restart = self.lost || findings.has(&["log.page", "log.gap", "log.time"]);
        if restart {
            self.lost = true;
            self.step("restart the log: Destinations compare everything once");
            if !self.dry_run {
                restart_set_log(self.connection, self.id, now)?;
            }
        }
        if restart || findings.has(&["table.shard"]) {
            self.step("recount the parts of the Resource List");
            if !self.dry_run {
                self.rebuild_shards()?;
            }
        }
        if restart || findings.has(&["table.tombstone"]) {
            self.step("list the resources that left the set again");
            if !self.dry_run {
                self.rebuild_tombstones()?;
            }
        }
        if restart || findings.has(&["versions.need"]) {
            self.step("recount the references to kept contents");
            if !self.dry_run {
                self.recount()?;
            }
        }
        Ok(())
    }

    fn step(&mut self, text: impl std::fmt::Display) {
        let text = format!("set {}: {text}", self.slug);
        self.steps.push(text);
    }

    /// Deletes damaged rows, and the whole log if it has gaps.
    fn drop_damaged(&mut self, findings: &Findings, now: Timestamp) -> rusqlite::Result<()> {
        let mut resources = Vec::new();
        let mut resource = Resource::default();
        self.each(
            concat!("SELECT ", resource_columns!(), " FROM resources WHERE set_id = ?1"),
            |row| {
                if read_resource(row, &mut resource).is_err() {
                    resources.push(row.get::<_, Value>(7)?);
                }
                Ok(())
            },
        )?;
        self.each(
            "SELECT r.key FROM resources r LEFT JOIN changes c ON c.set_id = r.set_id AND c.position = r.position \
             WHERE r.set_id = ?1 AND r.position > 0 AND c.key IS NOT NULL AND (c.key IS NOT r.key OR c.kind >= 5 \
             OR c.modified IS NOT r.modified OR c.length IS NOT r.length OR c.media_type IS NOT r.media_type \
             OR c.encoding IS NOT r.encoding OR c.digests IS NOT r.digests OR c.links IS NOT r.links \
             OR c.description IS NOT r.description)",
            |row| {
                resources.push(row.get(0)?);
                Ok(())
            },
        )?;
        let mut orphans = false;
        self.each(
            "SELECT 1 FROM resources r LEFT JOIN changes c ON c.set_id = r.set_id AND c.position = r.position \
             WHERE r.set_id = ?1 AND r.position > 0 AND c.key IS NULL LIMIT 1",
            |_| {
                orphans = true;
                Ok(())
            },
        )?;
        let mut changes = Vec::new();
        let mut change = empty_change();
        let mut gaps = findings.has(&["log.gap", "log.time", "log.import"]);
        self.each(
            concat!("SELECT ", change_columns!(), " FROM changes WHERE set_id = ?1"),
            |row| {
                if read_change(row, &mut change).is_err() {
                    changes.push(row.get::<_, i64>(10)?);
                }
                Ok(())
            },
        )?;
        let mut versions = Vec::new();
        self.each(
            concat!("SELECT ", version_columns!(), " FROM versions WHERE set_id = ?1"),
            |row| {
                if read_version(row, Timestamp::default()).is_err() {
                    versions.push((row.get::<_, Value>(9)?, row.get::<_, i64>(7)?));
                }
                Ok(())
            },
        )?;
        gaps |= orphans || !changes.is_empty() || self.lost;
        self.lost |= gaps || !resources.is_empty() || !versions.is_empty();
        for (count, what) in [(resources.len(), "resources"), (versions.len(), "versions")] {
            if count > 0 {
                self.step(format!("drop {count} damaged rows of {what}; what is in a watched folder is found again"));
            }
        }
        if gaps {
            self.step(
                "drop the changes recorded so far, of which some are missing or damaged; the table of resources stays",
            );
        }
        if self.dry_run {
            return Ok(());
        }
        for key in resources {
            self.connection.execute(
                "DELETE FROM resources WHERE set_id = ?1 AND key = ?2",
                params![self.id, key],
            )?;
        }
        for (key, time) in versions {
            self.connection.execute(
                "DELETE FROM versions WHERE set_id = ?1 AND key = ?2 AND time = ?3",
                params![self.id, key, time],
            )?;
        }
        if gaps {
            // Positions and times must not be used twice: the restarted log continues after the
            // known ones.
            restart_set_log(self.connection, self.id, now)?;
            self.connection.execute("DELETE FROM changes WHERE set_id = ?1", [self.id])?;
            self.connection.execute(
                "UPDATE resources SET position = 0 WHERE set_id = ?1 AND position > 0",
                [self.id],
            )?;
        }
        Ok(())
    }

    fn each(
        &self,
        sql: &str,
        mut visit: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            visit(row)?;
        }
        Ok(())
    }

    /// Creates new shards of the largest allowed size, and retires the former ones.
    fn rebuild_shards(&self) -> rusqlite::Result<()> {
        let rule = ShardRule::DEFAULT;
        let (position, time): (i64, i64) = self.connection.query_row(
            "SELECT max(ifnull(max(c.position), 0), (SELECT ifnull(max(after), 0) FROM pages WHERE set_id = ?1)), \
             max(ifnull(max(c.time), 0), (SELECT ifnull(anew, created) FROM sets WHERE id = ?1)) \
             FROM changes c WHERE c.set_id = ?1",
            [self.id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let next: i64 = self.connection.query_row(
            "SELECT ifnull(max(id), 0) + 1 FROM shards WHERE set_id = ?1",
            [self.id],
            |row| row.get(0),
        )?;
        let mut parts: Vec<(String, u64, u64)> = vec![(String::new(), 0, 0)];
        self.each(
            "SELECT key, length(CAST(media_type AS BLOB)), length(CAST(encoding AS BLOB)), length(digests), \
             length(CAST(links AS BLOB)) FROM resources WHERE set_id = ?1 ORDER BY key",
            |row| {
                let key: String = row.get(0)?;
                let length =
                    |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.unwrap_or(0) as usize);
                let bytes = entry_bytes(&key, length(1)?, length(2)?, length(3)?, length(4)?);
                if let Some((_, resources, size)) = parts.last_mut() {
                    if *resources > 0 && (*resources + 1 >= rule.resources || *size + bytes >= rule.bytes) {
                        parts.push((key, 1, bytes));
                    } else {
                        *resources += 1;
                        *size += bytes;
                    }
                }
                Ok(())
            },
        )?;
        // A retired shard is answered by the live shards in its range, so these must fit its
        // bounds.
        self.connection.execute("DELETE FROM shards WHERE set_id = ?1", [self.id])?;
        for (number, (start, resources, bytes)) in parts.iter().enumerate() {
            let end = parts.get(number + 1).map(|(start, ..)| start);
            self.connection.execute(
                "INSERT INTO shards (set_id, id, start_key, end_key, resources, bytes, version, time, retired) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
                params![self.id, next + number as i64, start, end, *resources as i64, *bytes as i64, position, time],
            )?;
        }
        Ok(())
    }

    /// Restores the list of resources that left the set, from the log.
    fn rebuild_tombstones(&self) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM tombstones WHERE set_id = ?1", [self.id])?;
        self.connection.execute(
            "INSERT INTO tombstones (set_id, key, position) SELECT set_id, key, max(position) FROM changes \
             WHERE set_id = ?1 AND kind IN (5, 6) AND NOT EXISTS (SELECT 1 FROM resources \
             WHERE resources.set_id = changes.set_id AND resources.key = changes.key) GROUP BY key",
            [self.id],
        )?;
        Ok(())
    }

    fn recount(&self) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE contents SET needed = 0 WHERE set_id = ?1", [self.id])?;
        self.connection.execute(
            &format!(
                "INSERT INTO contents (id, set_id, length, needed) \
                 SELECT named.content, ?1, ifnull((SELECT max(length) FROM resources WHERE set_id = ?1 AND \
                 content = named.content), ifnull((SELECT max(length) FROM versions WHERE set_id = ?1 AND \
                 content = named.content), 0)), named.count FROM (SELECT content, \"count(*)\" AS count FROM ({NAMED})) named \
                 WHERE true ON CONFLICT DO UPDATE SET needed = excluded.needed"
            ),
            [self.id],
        )?;
        self.connection.execute(
            "UPDATE sets SET kept_bytes = (SELECT ifnull(sum(length), 0) FROM contents WHERE set_id = ?1 AND needed > 0) \
             WHERE id = ?1",
            [self.id],
        )?;
        Ok(())
    }
}

/// Deletes the records of stored contents whose bytes are lost: versions with these contents are
/// deleted, resources remain without stored content.
///
/// # Errors
/// Another process has the store open, or it cannot be written.
pub fn drop_contents(path: &Path, lost: &[ContentId]) -> Result<(), LogError> {
    locked::change(path, MIGRATIONS, "forget contents that are lost in", |transaction| {
        // One pass over each table, for any number of contents.
        transaction.execute_batch("CREATE TEMP TABLE lost (id BLOB PRIMARY KEY) WITHOUT ROWID")?;
        let mut insert = transaction.prepare("INSERT OR IGNORE INTO temp.lost (id) VALUES (?1)")?;
        for id in lost {
            insert.execute([id.as_bytes()])?;
        }
        transaction.execute(
            "UPDATE resources SET content = NULL WHERE content IN (SELECT id FROM temp.lost)",
            [],
        )?;
        transaction
            .execute("DELETE FROM versions WHERE content IN (SELECT id FROM temp.lost)", [])?;
        let mut steps = Vec::new();
        for id in set_ids(transaction)? {
            Set {
                connection: transaction,
                id,
                slug: String::new(),
                dry_run: false,
                steps: &mut steps,
                lost: false,
            }
            .recount()?;
        }
        Ok(())
    })
}
