//! Integrity check of a store; read-only. Each finding has a code that does not change between
//! versions.
//!
//! Redundant data is compared: rows against their checksums and against the log, pages and shards
//! against the rows that they cover, and the counted uses of stored contents against the rows that
//! use them.

pub(crate) mod hub;

pub use hub::{HubFacts, check_hub};

use crate::database::connection::{code_of, sqlite_error};
use crate::database::read_only::open_for_check;
use crate::log::set_rows::empty_change;
use crate::log::shards::entry_bytes;
use crate::log::sqlite::log::MIGRATIONS;
use crate::log::sqlite::rows::{
    change_columns, read_change, read_resource, read_version, resource_columns, version_columns,
};
use abreast_core::{ContentId, Finding, LogError, Resource, Severity};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Most findings of the same code that are reported in detail.
const TOLD_MAX: u64 = 100;
/// Most errors that SQLite's own check reports.
const DAMAGES_MAX: i64 = 50;
/// The table of former names, whose rows can belong to a set, and remain without it.
pub(crate) const FORMER_SETS: &str = "former_sets";
/// Tables whose rows belong to sets.
pub(crate) const SET_TABLES: [&str; 8] = [
    "resources",
    "tombstones",
    "changes",
    "pages",
    "shards",
    "versions",
    "contents",
    "idempotency",
];

/// The findings of a check, each code at most a hundred times.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    counts: BTreeMap<&'static str, u64>,
}

impl Findings {
    /// Adds an error; counts it only, after a hundred with the same code.
    pub fn add(
        &mut self,
        rule: &'static str,
        location: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.put(Severity::Error, rule, location.into(), message.into());
    }

    /// Adds a finding that needs no repair.
    pub fn note(
        &mut self,
        rule: &'static str,
        location: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.put(Severity::Note, rule, location.into(), message.into());
    }

    fn put(&mut self, severity: Severity, rule: &'static str, location: String, message: String) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            self.list.push(Finding { severity, rule, location, message });
        }
    }

    /// The reported findings, at most a hundred of each code.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// How often each code was found.
    pub const fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Whether there is a finding with one of these codes.
    pub fn has(&self, rules: &[&str]) -> bool {
        rules.iter().any(|rule| self.counts.contains_key(rule))
    }

    /// Whether the store is undamaged: all findings are notes.
    pub fn is_consistent(&self) -> bool {
        self.list.iter().all(|finding| finding.severity == Severity::Note)
    }
}

/// A set in a store, with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFacts {
    /// Name of the set in URLs.
    pub slug: String,
    /// Position of the set's last change.
    pub position: u64,
    /// Number of resources in the set.
    pub resources: u64,
}

/// SQLite's own check of a database: pages, order of rows, indexes. Returns whether the rest can be
/// checked.
///
/// # Errors
/// SQLite's temporary files did not fit on the disk: the database was not checked then.
pub(crate) fn integrity(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> Result<bool, LogError> {
    let check = || -> rusqlite::Result<Vec<String>> {
        let mut statement =
            connection.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    match check() {
        Ok(lines) => {
            let mut consistent = true;
            for line in lines.iter().flat_map(|text| text.lines()).filter(|line| *line != "ok") {
                findings.add("store.damaged", place, line);
                consistent = false;
            }
            Ok(consistent)
        }
        Err(cause) if code_of(&cause) == Some(ErrorCode::DiskFull) => {
            Err(sqlite_error(&format!("cannot check the store {place}"), cause))
        }
        Err(cause) => {
            findings.add("store.damaged", place, cause.to_string());
            Ok(false)
        }
    }
}

/// The version of the schema, if there is one.
pub(crate) fn schema(
    connection: &Connection,
    place: &str,
    steps: &[&str],
    findings: &mut Findings,
) -> bool {
    let newest = steps.len();
    let version: rusqlite::Result<i64> =
        connection
            .query_row("SELECT ifnull(max(version), 0) FROM schema_version", [], |row| row.get(0));
    match version {
        Ok(version) if version == newest as i64 => {
            let is_newest = is_newest(connection, steps);
            if !is_newest {
                findings.add(
                    "store.damaged",
                    place,
                    format!("the schema is not the one of version {newest}"),
                );
            }
            is_newest
        }
        // An older program did not create the tables of the newest version: the version number is
        // wrong.
        Ok(version) if version < newest as i64 && is_newest(connection, steps) => {
            let message =
                format!("the schema is the one of version {newest}, and has the number {version}");
            findings.add("store.damaged", place, message);
            false
        }
        Ok(version) if version < newest as i64 && version > 0 => {
            let message = format!(
                "schema {version}, this program writes {newest}: it is brought up to date when next opened"
            );
            findings.note("store.schema-old", place, message);
            false
        }
        Ok(version) => {
            findings.add(
                "store.schema",
                place,
                format!("schema {version}, this program knows up to {newest}"),
            );
            false
        }
        Err(cause) => {
            findings.add("store.damaged", place, format!("the schema cannot be read: {cause}"));
            false
        }
    }
}

/// Whether the tables and indexes are defined as in the newest version.
fn is_newest(connection: &Connection, steps: &[&str]) -> bool {
    matches!((texts(connection), expected_texts(steps)), (Ok(found), Ok(expected)) if found == expected)
}

/// Definitions of the tables and indexes.
fn texts(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || ifnull(sql, '') FROM sqlite_schema \
         WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1",
    )?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn expected_texts(steps: &[&str]) -> rusqlite::Result<Vec<String>> {
    texts(&new_database(steps)?)
}

/// An empty database of the newest version, in memory.
pub(crate) fn new_database(steps: &[&str]) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(crate::database::migration::VERSION_TABLE)?;
    for step in steps {
        connection.execute_batch(step)?;
    }
    Ok(connection)
}

/// Checks a Source's store.
///
/// # Errors
/// The file cannot be opened at all.
pub fn check_log(path: &Path, findings: &mut Findings) -> Result<Vec<SetFacts>, LogError> {
    let connection = open_for_check(path)?;
    let place = path.display().to_string();
    if !integrity(&connection, &place, findings)?
        || !schema(&connection, &place, MIGRATIONS, findings)
    {
        return Ok(Vec::new());
    }
    Ok(check_rows(&connection, &place, findings))
}

/// Checks the database with the data of a copy. Returns whether the rest can be checked.
///
/// # Errors
/// The file cannot be opened at all.
pub fn check_mirror(path: &Path, findings: &mut Findings) -> Result<bool, LogError> {
    let connection = open_for_check(path)?;
    let place = path.display().to_string();
    Ok(integrity(&connection, &place, findings)?
        && schema(&connection, &place, &crate::mirror::STEPS, findings))
}

/// Checks the rows of a store that SQLite can read.
pub(crate) fn check_rows(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> Vec<SetFacts> {
    let mut facts = Vec::new();
    let mut check = || -> rusqlite::Result<()> {
        let transaction = connection.unchecked_transaction()?;
        let mut statement = transaction.prepare(
            "SELECT id, slug, created, anew, importing AND NOT begins, kept_bytes FROM sets ORDER BY id",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let slug: String = row.get(1)?;
            let created = Timestamp::from_micros(
                row.get::<_, Option<i64>>(3)?.map_or_else(|| row.get(2), Ok)?,
            );
            let mut set = SetCheck {
                connection: &transaction,
                id: row.get(0)?,
                place: format!("{place}: set {slug}"),
                begins: created,
                restarted: row.get::<_, Option<i64>>(3)?.is_some(),
                importing: row.get(4)?,
                kept_bytes: row.get(5)?,
                findings,
                head: (0, created),
                live: Vec::new(),
            };
            set.check()?;
            let resources = set.live.iter().map(|shard| shard.resources as u64).sum();
            facts.push(SetFacts { slug, position: set.head.0 as u64, resources });
        }
        for table in SET_TABLES.into_iter().chain([FORMER_SETS]) {
            let sql =
                format!("SELECT count(*) FROM {table} WHERE set_id NOT IN (SELECT id FROM sets)");
            let strangers: i64 = transaction.query_row(&sql, [], |row| row.get(0))?;
            if strangers > 0 {
                findings.add(
                    "store.row",
                    place,
                    format!("rows of {table} that belong to no set: {strangers}"),
                );
            }
        }
        let wrong: i64 = transaction.query_row(
            "SELECT count(*) FROM contents WHERE length(id) != ?1",
            [ContentId::BYTES as i64],
            |row| row.get(0),
        )?;
        if wrong > 0 {
            findings.add(
                "store.row",
                place,
                format!("addresses of kept contents that are not digests: {wrong}"),
            );
        }
        Ok(())
    };
    if let Err(cause) = check() {
        findings.add("store.damaged", place, cause.to_string());
    }
    facts
}

struct Live {
    id: i64,
    start: String,
    end: Option<String>,
    resources: i64,
    bytes: i64,
    version: i64,
    time: i64,
}

/// A set while it is checked.
struct SetCheck<'a> {
    connection: &'a Connection,
    id: i64,
    place: String,
    /// Start of the log: creation of the set, or the last restart.
    begins: Timestamp,
    restarted: bool,
    importing: bool,
    kept_bytes: i64,
    findings: &'a mut Findings,
    /// Position and time of the last change.
    head: (i64, Timestamp),
    live: Vec<Live>,
}

impl SetCheck<'_> {
    fn check(&mut self) -> rusqlite::Result<()> {
        let last_page = self.pages()?;
        self.load_shards()?;
        self.changes(last_page)?;
        self.resources()?;
        self.against_log()?;
        self.tombstones()?;
        self.versions()?;
        self.needs()
    }

    fn add(&mut self, rule: &'static str, message: impl Into<String>) {
        self.findings.add(rule, self.place.clone(), message);
    }

    /// Checks that pages follow each other without gap, and that only the last is open. Returns the
    /// position before the last page.
    fn pages(&mut self) -> rusqlite::Result<i64> {
        let mut statement = self.connection.prepare(
            "SELECT number, after, last, from_time, until_time FROM pages WHERE set_id = ?1 ORDER BY number",
        )?;
        let mut rows = statement.query([self.id])?;
        let mut last_page = 0;
        let mut before: Option<(i64, Option<i64>, Option<i64>)> = None;
        let (findings, place) = (&mut *self.findings, &self.place);
        let mut fault = |text: String| findings.add("log.page", place.clone(), text);
        while let Some(row) = rows.next()? {
            let (number, after, last): (i64, i64, Option<i64>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let (from, until): (i64, Option<i64>) = (row.get(3)?, row.get(4)?);
            last_page = after.max(last_page);
            let follows = match before {
                None => {
                    (self.restarted || (number, after) == (1, 0)) && from == self.begins.as_micros()
                }
                Some((number_before, last_before, until_before)) => {
                    number == number_before + 1
                        && Some(after) == last_before
                        && Some(from) == until_before
                }
            };
            if !follows {
                fault(format!("Change List {number} does not follow the one before it"));
            }
            if let (Some(last), Some(until)) = (last, until) {
                if last <= after
                    || until < from
                    || time_of(self.connection, self.id, last)? != Some(until)
                {
                    fault(format!("Change List {number} ends where no change is"));
                }
            } else if last.is_some() != until.is_some() {
                fault(format!("Change List {number} has half an end"));
            }
            before = Some((number, last, until));
        }
        match before {
            Some((_, None, _)) => {}
            _ => fault("there is no open Change List".to_owned()),
        }
        Ok(last_page)
    }

    /// Checks that live shards cover all keys without overlap.
    fn load_shards(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(
            "SELECT id, start_key, end_key, resources, bytes, version, time FROM shards \
             WHERE set_id = ?1 AND retired = 0 ORDER BY start_key",
        )?;
        let rows = statement.query_map([self.id], |row| {
            Ok(Live {
                id: row.get(0)?,
                start: row.get(1)?,
                end: row.get(2)?,
                resources: row.get(3)?,
                bytes: row.get(4)?,
                version: row.get(5)?,
                time: row.get(6)?,
            })
        })?;
        self.live = rows.collect::<rusqlite::Result<_>>()?;
        let covers = self.live.first().is_some_and(|first| first.start.is_empty())
            && self.live.windows(2).all(|pair| pair[0].end.as_ref() == Some(&pair[1].start))
            && self.live.last().is_some_and(|last| last.end.is_none());
        if !covers {
            self.add("table.shard", "the parts of the Resource List do not cover all keys once");
        }
        let starts: HashSet<&str> = self.live.iter().map(|live| live.start.as_str()).collect();
        let mut statement = self.connection.prepare(
            "SELECT id, start_key, end_key FROM shards WHERE set_id = ?1 AND retired = 1",
        )?;
        let mut rows = statement.query([self.id])?;
        let mut faults = Vec::new();
        while let Some(row) = rows.next()? {
            let (id, start, end): (i64, String, Option<String>) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            if !starts.contains(start.as_str())
                || end.as_deref().is_some_and(|end| !starts.contains(end))
            {
                faults.push(format!(
                    "the former part {id} of the Resource List has limits that no part has"
                ));
            }
        }
        drop(rows);
        for fault in faults {
            self.add("table.shard", fault);
        }
        Ok(())
    }

    /// Checks the log: positions without gaps, increasing times; and that each shard is as new as
    /// its last change.
    fn changes(&mut self, last_page: i64) -> rusqlite::Result<()> {
        const SQL: &str = concat!(
            "SELECT ",
            change_columns!(),
            " FROM changes WHERE set_id = ?1 ORDER BY position"
        );
        let mut statement = self.connection.prepare(SQL)?;
        let mut rows = statement.query([self.id])?;
        let (mut change, mut before) = (empty_change(), (0_i64, Timestamp::MIN));
        let mut newest = vec![0_i64; self.live.len()];
        while let Some(row) = rows.next()? {
            let position: i64 = row.get(10)?;
            if let Err(cause) = read_change(row, &mut change) {
                self.add(
                    "store.row",
                    format!("the change at position {position} is damaged: {cause}"),
                );
            }
            // A restarted log continues after a multiple of [`POSITIONS_APART`].
            let restarts = self.restarted && position.saturating_sub(1) % POSITIONS_APART == 0;
            let next = before.0.saturating_add(1);
            if position < next || position > next && !restarts {
                self.add("log.gap", format!("after position {} comes {position}", before.0));
            }
            if change.time <= before.1 {
                self.add(
                    "log.time",
                    format!(
                        "the change at position {position} is not later than the one before it"
                    ),
                );
            }
            if self.importing {
                self.add(
                    "log.import",
                    format!("there is a change at position {position} before the base is complete"),
                );
            }
            before = (position, change.time);
            let shard =
                self.live.partition_point(|live| live.start.as_str() <= change.key.as_str());
            if let Some(newest) = shard.checked_sub(1).and_then(|shard| newest.get_mut(shard)) {
                *newest = position;
            }
        }
        self.head = (before.0.max(last_page), before.1.max(self.begins));
        let mut faults = Vec::new();
        for (live, newest) in self.live.iter().zip(newest) {
            let time = time_of(self.connection, self.id, live.version)?;
            if live.version < newest
                || live.version > self.head.0
                || time.is_some_and(|time| time != live.time)
            {
                faults.push(format!(
                    "part {} of the Resource List is not as new as its last change",
                    live.id
                ));
            }
        }
        for fault in faults {
            self.add("table.shard", fault);
        }
        Ok(())
    }

    /// Checks the resources: each row against its checksum, and the counted number in each shard.
    fn resources(&mut self) -> rusqlite::Result<()> {
        const SQL: &str = concat!(
            "SELECT ",
            resource_columns!(),
            " FROM resources WHERE set_id = ?1 ORDER BY key"
        );
        let mut statement = self.connection.prepare(SQL)?;
        let mut rows = statement.query([self.id])?;
        let mut resource = Resource::default();
        let mut counted = vec![(0_i64, 0_i64); self.live.len()];
        while let Some(row) = rows.next()? {
            let key: String = row.get(7)?;
            if let Err(cause) = read_resource(row, &mut resource) {
                self.add("store.row", format!("the row of `{key}` is damaged: {cause}"));
                continue;
            }
            let length = |column| {
                Ok::<_, rusqlite::Error>(
                    row.get_ref(column)?.as_bytes_or_null().ok().flatten().map_or(0, <[u8]>::len),
                )
            };
            let bytes = entry_bytes(&key, length(2)?, length(3)?, length(4)?, length(5)?);
            let shard = self.live.partition_point(|live| live.start.as_str() <= key.as_str());
            if let Some(counted) = shard.checked_sub(1).and_then(|shard| counted.get_mut(shard)) {
                *counted = (counted.0 + 1, counted.1 + bytes as i64);
            }
        }
        let mut faults = Vec::new();
        for (live, counted) in self.live.iter().zip(counted) {
            if (live.resources, live.bytes) != counted {
                faults.push(format!(
                    "part {} of the Resource List counts {}, there are {}",
                    live.id,
                    abreast_webtypes::count(live.resources.unsigned_abs(), "resource"),
                    counted.0
                ));
            }
        }
        for fault in faults {
            self.add("table.shard", fault);
        }
        Ok(())
    }

    /// Compares each resource with its last change in the log.
    fn against_log(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(
            "SELECT r.key FROM resources r LEFT JOIN changes c ON c.set_id = r.set_id AND c.position = r.position \
             WHERE r.set_id = ?1 AND r.position > 0 AND (c.key IS NOT r.key OR c.kind >= 5 OR c.modified IS NOT r.modified \
             OR c.length IS NOT r.length OR c.media_type IS NOT r.media_type OR c.encoding IS NOT r.encoding \
             OR c.digests IS NOT r.digests OR c.links IS NOT r.links OR c.description IS NOT r.description)",
        )?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            let key: String = row.get(0)?;
            self.findings.add(
                "table.row",
                self.place.clone(),
                format!("`{key}` is not what its last change made of it"),
            );
        }
        Ok(())
    }

    /// Checks that each removed resource has a tombstone with its last change, and that no existing
    /// resource has a tombstone.
    fn tombstones(&mut self) -> rusqlite::Result<()> {
        for (message, sql) in [
            (
                "is listed as removed where it was not",
                "SELECT t.key FROM tombstones t LEFT JOIN changes c ON c.set_id = t.set_id AND c.position = t.position \
                 WHERE t.set_id = ?1 AND (c.key IS NOT t.key OR c.kind NOT IN (5, 6) OR EXISTS \
                 (SELECT 1 FROM resources r WHERE r.set_id = t.set_id AND r.key = t.key))",
            ),
            (
                "was removed and is not listed as removed",
                "SELECT c.key, max(c.position) FROM changes c WHERE c.set_id = ?1 AND c.kind IN (5, 6) AND NOT EXISTS \
                 (SELECT 1 FROM resources r WHERE r.set_id = c.set_id AND r.key = c.key) GROUP BY c.key \
                 HAVING max(c.position) IS NOT (SELECT t.position FROM tombstones t WHERE t.set_id = ?1 AND t.key = c.key)",
            ),
        ] {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([self.id])?;
            while let Some(row) = rows.next()? {
                let key: String = row.get(0)?;
                self.findings.add(
                    "table.tombstone",
                    self.place.clone(),
                    format!("`{key}` {message}"),
                );
            }
        }
        Ok(())
    }

    fn versions(&mut self) -> rusqlite::Result<()> {
        const SQL: &str =
            concat!("SELECT ", version_columns!(), " FROM versions WHERE set_id = ?1");
        let mut statement = self.connection.prepare(SQL)?;
        let mut rows = statement.query([self.id])?;
        while let Some(row) = rows.next()? {
            if let Err(cause) = read_version(row, self.begins) {
                let key: String = row.get(9).unwrap_or_default();
                self.findings.add(
                    "store.row",
                    self.place.clone(),
                    format!("a version of `{key}` is damaged: {cause}"),
                );
            }
        }
        Ok(())
    }

    /// Checks that the counted uses of each content equal the number of rows with it.
    fn needs(&mut self) -> rusqlite::Result<()> {
        let wrong: i64 = self
            .connection
            .prepare(&format!(
                "WITH named(id, count) AS ({NAMED}) SELECT \
                 (SELECT count(*) FROM named LEFT JOIN contents c ON c.id = named.id AND c.set_id = ?1 \
                  WHERE c.needed IS NOT named.count) \
                 + (SELECT count(*) FROM contents c WHERE c.set_id = ?1 AND c.needed > 0 \
                  AND c.id NOT IN (SELECT id FROM named))"
            ))?
            .query_row([self.id], |row| row.get(0))?;
        let kept: i64 = self
            .connection
            .prepare(
                "SELECT ifnull(sum(length), 0) FROM contents WHERE set_id = ?1 AND needed > 0",
            )?
            .query_row([self.id], |row| row.get(0))?;
        if wrong > 0 {
            self.add(
                "versions.need",
                format!("kept contents that are not needed as often as is counted: {wrong}"),
            );
        }
        if kept != self.kept_bytes {
            self.add(
                "versions.need",
                format!("the bytes of kept contents are {kept}, {} are counted", self.kept_bytes),
            );
        }
        Ok(())
    }
}

fn time_of(connection: &Connection, set: i64, position: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT time FROM changes WHERE set_id = ?1 AND position = ?2")?
        .query_row(params![set, position], |row| row.get(0))
        .optional()
}

/// How many rows of a set use each stored content.
pub(crate) const NAMED: &str = "SELECT content, count(*) FROM (SELECT content FROM resources WHERE set_id = ?1 AND \
     content IS NOT NULL UNION ALL SELECT content FROM versions WHERE set_id = ?1 AND content IS NOT NULL) GROUP BY content";

/// Positions of a restarted log follow the next multiple of this.
pub const POSITIONS_APART: i64 = 1_000_000_000;
