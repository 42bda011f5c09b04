//! The store in a PostgreSQL database.

use crate::hub::postgres::migrated::store_migrated;
use crate::hub::postgres::rows::{numbered, shard_of, url_hash};
use crate::log::postgres::load::store;
use crate::log::postgres::rows::key_hash;
use crate::log::postgres::tables::PostgresTables;
use crate::log::set_state::SetState;
use crate::maintenance::former_sets::{FormerSet, RECORD, to_record};
use crate::maintenance::migrate::options::{MIGRATED, UNFINISHED};
use crate::maintenance::migrate::side::{Numbers, PART_BYTES, Rows, Side, size_of};
use crate::maintenance::migrate::state::State;
use crate::maintenance::migrate::table::{Column, Derived, Kind, Part, Table};
use crate::maintenance::migrate::value::{Row, Value};
use crate::maintenance::shared_sets::SharedSets as _;
use crate::postgres::client::repeat;
use crate::postgres::database::PostgresDatabase;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::{Param, params};
use abreast_core::hub::HUB_SHARDS;
use abreast_core::{ChangeLog, ContentId, ErrorKind, LogError, Records as _, SetId};
use std::collections::HashMap;
use tokio_postgres::types::{ToSql, Type};

/// Rows of the first part of a table. Later parts have as many as [`PART_BYTES`] allow.
const FIRST: usize = 16;
/// Largest number of a target or a verification in SQLite, whose number in PostgreSQL is larger.
const NUMBER_MAX: i64 = i64::MAX / HUB_SHARDS as i64 - 1;

/// The store in a database.
pub(crate) struct PostgresSide {
    database: PostgresDatabase,
    /// Rows of the next part that is read, by the sizes of the rows before.
    limit: usize,
    /// The number of the record with the state, by which a second process is noticed.
    revisions: [i64; 2],
}

impl PostgresSide {
    pub(crate) fn new(database: PostgresDatabase) -> Self {
        Self { database, limit: FIRST, revisions: [0; 2] }
    }

    /// Checks that no node uses the database, and that its rows belong to sets.
    pub(crate) fn check_source(&self) -> Result<(), LogError> {
        self.database.check_unused()?;
        let Some(set) = self.database.unfinished_removals()?.into_iter().next() else {
            return Ok(());
        };
        let message = format!(
            "the removal of the set `{set}` from the source is not complete\n  help: run `abreast set remove {set}` again, or start a node"
        );
        Err(LogError::new(ErrorKind::Refused, message))
    }

    /// Whether the database has no sets, topics and records.
    pub(crate) fn is_empty(&self) -> Result<bool, LogError> {
        const SQL: &str = "SELECT NOT (EXISTS (SELECT FROM abreast.sets) OR EXISTS (SELECT FROM abreast.topics) \
             OR EXISTS (SELECT FROM abreast.verifications) OR EXISTS (SELECT FROM abreast.ended) \
             OR EXISTS (SELECT FROM abreast.records WHERE name <> 'contents'))";
        const DOING: &str = "cannot inspect the database";
        let rows = self.database.client.query(DOING, SQL, &[])?;
        let is_empty = rows.first().map_or(Ok(false), |row| row.try_get(0));
        is_empty.map_err(|error| Failure::from(error).into_error(DOING))
    }

    /// Runs a transaction with the lock of the state, which it replaces.
    fn change(
        &mut self,
        part: Part,
        state: &State,
        doing: &str,
        mut write: impl FnMut(&mut Statements<'_>) -> Result<(), Failure>,
    ) -> Result<(), LogError> {
        const LOCK: &str = "SELECT revision FROM abreast.records WHERE name = $1 FOR UPDATE";
        let index = part as usize;
        let (known, name) = (self.revisions[index], UNFINISHED[index]);
        let client = &*self.database.client;
        let mut work = || -> Result<bool, Failure> {
            let (mut statements, row) = Statements::begin(client, LOCK, &params![name => TEXT])?;
            let found = row.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
            if found != known {
                return Ok(false);
            }
            write(&mut statements)?;
            statements.write(
                "INSERT INTO abreast.records (name, revision, bytes) VALUES ($1, $2, $3) \
                 ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, bytes = excluded.bytes",
                params![name => TEXT, known + 1 => INT8, state.bytes() => BYTEA],
            )?;
            statements.commit()?;
            Ok(true)
        };
        if work().map_err(|failure| failure.into_error(doing))? {
            self.revisions[index] = known + 1;
            return Ok(());
        }
        let message = "another process writes the same destination\n  help: wait for its end";
        Err(LogError::new(ErrorKind::Busy, message))
    }
}

/// The expression that reads a column.
fn read_of(column: &Column) -> String {
    let read = column.postgres.read;
    match column.kind {
        Kind::Int if column.numbered_by.is_some() => format!("{read} / {HUB_SHARDS}"),
        Kind::Int if read == "row" => "\"row\"".to_owned(),
        Kind::Int => format!("{read}::bigint"),
        Kind::Flag => format!("{read}::integer::bigint"),
        Kind::Text | Kind::Error => format!("{read}::text"),
        Kind::Bytes => read.to_owned(),
    }
}

fn read_value(row: &tokio_postgres::Row, index: usize, kind: Kind) -> Result<Value, Failure> {
    Ok(match kind {
        Kind::Int | Kind::Flag => row.try_get::<_, Option<i64>>(index)?.map(Value::Int),
        Kind::Text | Kind::Error => row.try_get::<_, Option<String>>(index)?.map(Value::Text),
        Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(index)?.map(Value::Bytes),
    }
    .unwrap_or(Value::Null))
}

fn param(value: &Value) -> Param {
    match value {
        Value::Null | Value::Int(_) => (Box::new(value.int()), Type::INT8),
        Value::Text(text) => (Box::new(text.clone()), Type::TEXT),
        Value::Bytes(bytes) => (Box::new(bytes.clone()), Type::BYTEA),
    }
}

/// The rows that a statement reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    First,
    /// After a place.
    After,
    /// After a place, in the same set: otherwise the planner would read all rows of the set, since
    /// the index has only the first characters of keys.
    InSet,
    /// In the sets after that of a place.
    NextSets,
}

/// The statement that reads a part of a table.
fn select(table: &Table, from: From) -> String {
    let mut columns: Vec<String> = table.columns.iter().map(read_of).collect();
    // The place of the row follows its columns.
    columns.extend(table.postgres_order.iter().map(|(read, kind)| match kind {
        Kind::Int => format!("{read}::bigint"),
        Kind::Flag | Kind::Text | Kind::Error | Kind::Bytes => (*read).to_owned(),
    }));
    // A name without its table would be that of a column of the result.
    let order = table.postgres_order.iter().map(|(read, _)| {
        if read.contains('(') { (*read).to_owned() } else { format!("{}.{read}", table.name) }
    });
    let order: Vec<String> = order.collect();
    let (order, count) = (order.join(", "), order.len());
    let parameters = |from: usize| -> String {
        (from..2 + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
    };
    let set = format!("{}.set_id", table.name);
    let condition = match from {
        From::First => String::new(),
        From::After => format!("WHERE ({order}) > ({})", parameters(2)),
        From::InSet => {
            let rest = order.strip_prefix(&format!("{set}, ")).unwrap_or(&order);
            format!("WHERE {set} = $2 AND ({rest}) > ({})", parameters(3))
        }
        From::NextSets => format!("WHERE {set} > $2"),
    };
    let (columns, name) = (columns.join(", "), table.name);
    let body = table.apart.as_ref().map(|apart| table.columns[apart.column].postgres.read);
    let from = match body {
        // Bodies are large: the database adds up their lengths.
        Some(body) => format!(
            "(SELECT * FROM (SELECT *, sum(length({body})) OVER (ORDER BY {order}) AS bytes_until, \
             row_number() OVER (ORDER BY {order}) AS number_until \
             FROM (SELECT * FROM abreast.{name} {condition} ORDER BY {order} LIMIT $1) AS {name}) AS summed \
             WHERE number_until = 1 OR coalesce(bytes_until, 0) <= {PART_BYTES}) AS {name}"
        ),
        None => format!("abreast.{name} {condition}"),
    };
    format!("SELECT {columns} FROM {from} ORDER BY {order} LIMIT $1")
}

/// The statement that writes a part of a table from arrays.
fn insert(table: &Table) -> String {
    let (mut names, mut values, mut arrays, mut aliases) = (vec![], vec![], vec![], vec![]);
    let mut array = |name: &str, kind: &str| -> String {
        let number = arrays.len() + 1;
        arrays.push(format!("${number}::{kind}[]"));
        aliases.push(format!("c{number}"));
        names.push(format!("\"{name}\""));
        format!("c{number}")
    };
    for column in table.columns {
        let Some(name) = column.postgres.write else { continue };
        let kind = match column.kind {
            Kind::Int | Kind::Flag => "bigint",
            Kind::Text | Kind::Error => "text",
            Kind::Bytes => "bytea",
        };
        let value = array(name, kind);
        values.push(if column.kind == Kind::Flag { format!("{value} <> 0") } else { value });
    }
    for derived in table.derived {
        let (name, kind) = match derived {
            Derived::KeyHash(_) => ("key_hash", "bytea"),
            Derived::UrlHash(name, _) => (*name, "bytea"),
            Derived::Shard(_) => ("shard", "bigint"),
            Derived::Number(name, _) => (*name, "bigint"),
        };
        values.push(array(name, kind));
    }
    format!(
        "INSERT INTO abreast.{} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM unnest({}) AS rows ({})",
        table.name,
        names.join(", "),
        values.join(", "),
        arrays.join(", "),
        aliases.join(", ")
    )
}

fn missing(table: &Table) -> LogError {
    let message = format!(
        "a row of the table `{}` lacks a value\n  help: the store is damaged; `abreast check` shows where",
        table.name
    );
    LogError::new(ErrorKind::Corrupt, message)
}

/// Refuses a text that PostgreSQL does not store.
fn refuse_zero(table: &Table, text: &str) -> LogError {
    let shown: String = text.chars().take(100).collect();
    let message = format!(
        "a row of the table `{}` has the text `{}` with the character U+0000, which PostgreSQL does not store\n  \
         help: change the resource or subscription with this text, then start again",
        table.name,
        shown.replace('\0', "\u{fffd}")
    );
    LogError::new(ErrorKind::Refused, message)
}

/// The columns of rows as arrays.
fn arrays(table: &Table, rows: &[Row]) -> Result<Vec<Param>, LogError> {
    let text_of = |row: &Row, column: usize| -> Result<String, LogError> {
        row[column].text().map(str::to_owned).ok_or_else(|| missing(table))
    };
    let mut arrays: Vec<Param> = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        if column.postgres.write.is_none() {
            continue;
        }
        arrays.push(match (column.kind, column.numbered_by) {
            (_, Some(address)) => {
                let numbers = rows.iter().map(|row| {
                    let number = row[index].int().filter(|number| *number <= NUMBER_MAX);
                    let shard = shard_of(&text_of(row, address)?);
                    Ok(numbered(number.ok_or_else(|| missing(table))?, shard))
                });
                let numbers: Vec<i64> = numbers.collect::<Result<_, LogError>>()?;
                (Box::new(numbers), Type::INT8_ARRAY)
            }
            (Kind::Int | Kind::Flag, None) => {
                let numbers: Vec<Option<i64>> = rows.iter().map(|row| row[index].int()).collect();
                (Box::new(numbers), Type::INT8_ARRAY)
            }
            (Kind::Text | Kind::Error, None) => {
                let texts: Vec<Option<String>> =
                    rows.iter().map(|row| row[index].text().map(str::to_owned)).collect();
                if let Some(text) = texts.iter().flatten().find(|text| text.contains('\0')) {
                    return Err(refuse_zero(table, text));
                }
                (Box::new(texts), Type::TEXT_ARRAY)
            }
            (Kind::Bytes, None) => {
                let bytes: Vec<Option<Vec<u8>>> =
                    rows.iter().map(|row| row[index].bytes().map(<[u8]>::to_vec)).collect();
                (Box::new(bytes), Type::BYTEA_ARRAY)
            }
        });
    }
    for derived in table.derived {
        arrays.push(match derived {
            Derived::KeyHash(column) | Derived::UrlHash(_, column) => {
                let hash = if matches!(derived, Derived::KeyHash(_)) { key_hash } else { url_hash };
                let hashes = rows.iter().map(|row| Ok(hash(&text_of(row, *column)?)));
                (Box::new(hashes.collect::<Result<Vec<_>, LogError>>()?), Type::BYTEA_ARRAY)
            }
            Derived::Shard(column) => {
                let shards =
                    rows.iter().map(|row| Ok(i64::from(shard_of(&text_of(row, *column)?).0)));
                (Box::new(shards.collect::<Result<Vec<_>, LogError>>()?), Type::INT8_ARRAY)
            }
            Derived::Number(_, number) => (Box::new(vec![*number; rows.len()]), Type::INT8_ARRAY),
        });
    }
    Ok(arrays)
}

impl Side for PostgresSide {
    fn has(&self, _: Part) -> bool {
        true
    }

    fn read(
        &mut self,
        table: &Table,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Rows, LogError> {
        let doing = format!("cannot read the table `{}`", table.name);
        if after.is_none() {
            self.limit = FIRST;
        }
        let most = self.limit.min(limit);
        let has_sets = table.postgres_order[0].0 == "set_id";
        let steps: &[From] = match after {
            None => &[From::First],
            Some(_) if has_sets => &[From::InSet, From::NextSets],
            Some(_) => &[From::After],
        };
        let client = &*self.database.client;
        let (rows, next) = repeat(&doing, || {
            let mut statements = Statements::snapshot(client)?;
            let mut found = Vec::new();
            for from in steps {
                let mut params: Vec<Param> = params![most as i64 => INT8].into();
                let place = after.unwrap_or_default();
                let used = if *from == From::NextSets { 1 } else { place.len() };
                params.extend(place.iter().take(used).map(param));
                found = statements.query(&select(table, *from), &params)?;
                if !found.is_empty() {
                    break;
                }
            }
            statements.commit()?;
            let count = table.columns.len();
            let mut rows = Vec::with_capacity(found.len());
            for row in &found {
                let values = table.columns.iter().enumerate();
                let values = values.map(|(index, column)| read_value(row, index, column.kind));
                rows.push(values.collect::<Result<Row, Failure>>()?);
            }
            let place = found.last().map(|row| {
                let place = table.postgres_order.iter().enumerate();
                place
                    .map(|(index, (_, kind))| read_value(row, count + index, *kind))
                    .collect::<Result<Vec<Value>, Failure>>()
            });
            // A part of large rows, or the last part of a set, may have fewer than the limit.
            Ok((rows, place.transpose()?))
        })?;
        let bytes: usize = rows.iter().map(|row| size_of(row)).sum();
        let fitting = PART_BYTES * rows.len() / bytes.max(1);
        self.limit = fitting.clamp(1, self.limit * 8);
        Ok(Rows { rows, next })
    }

    fn state(&mut self, part: Part) -> Result<Option<State>, LogError> {
        let (index, name) = (part as usize, UNFINISHED[part as usize]);
        let Some(record) = self.database.records().record(name)? else { return Ok(None) };
        self.revisions[index] = record.revision as i64;
        State::parse(&record.bytes).map(Some)
    }

    fn write(&mut self, table: &Table, rows: &[Row], state: &State) -> Result<(), LogError> {
        let doing = format!("cannot write the table `{}`", table.name);
        let (sql, mut arrays) = (insert(table), Some(arrays(table, rows)?));
        self.change(table.part, state, &doing, |statements| {
            let Some(arrays) = arrays.take().filter(|_| !rows.is_empty()) else { return Ok(()) };
            statements.query(&sql, &arrays).map(drop)
        })
    }

    fn write_state(&mut self, part: Part, state: &State) -> Result<(), LogError> {
        self.change(part, state, "cannot write the state of the migration", |_| Ok(()))
    }

    /// Only SQLite computes the values.
    fn set_states(&mut self) -> Result<HashMap<SetId, SetState>, LogError> {
        Ok(HashMap::new())
    }

    fn store_set_states(&mut self, states: HashMap<SetId, SetState>) -> Result<(), LogError> {
        const DOING: &str = "cannot write the values of the sets";
        const LOCK: &str = "SELECT id FROM abreast.sets WHERE id = $1 FOR UPDATE";
        const NEXT_ID: &str = "SELECT setval(pg_get_serial_sequence('abreast.sets', 'id'), max(id)) FROM abreast.sets \
                               HAVING max(id) IS NOT NULL";
        let client = &*self.database.client;
        for (set, mut state) in states {
            repeat(DOING, || {
                let (statements, _) = Statements::begin(client, LOCK, &params![set.0 => INT8])?;
                let mut tables = PostgresTables::new(statements, set, 1);
                store(&mut tables, &mut state)?;
                tables.statements.commit()
            })?;
        }
        client.query(DOING, NEXT_ID, &[]).map(drop)
    }

    fn numbers(&mut self) -> Result<Numbers, LogError> {
        const DOING: &str = "cannot read the last numbers of the hub";
        const SQL: &str = "SELECT last_topic, last_target, last_verification, last_ended FROM abreast.hub WHERE id = 0";
        let rows = self.database.client.query(DOING, SQL, &[])?;
        let read = |row: &tokio_postgres::Row| -> Result<Numbers, Failure> {
            Ok(Numbers {
                topic: row.try_get(0)?,
                target: row.try_get(1)?,
                verification: row.try_get(2)?,
                ended: row.try_get(3)?,
            })
        };
        let numbers = rows.first().map(read).transpose();
        Ok(numbers.map_err(|failure| failure.into_error(DOING))?.unwrap_or_default())
    }

    fn store_numbers(&mut self, numbers: Numbers) -> Result<(), LogError> {
        store_migrated(
            &self.database.client,
            [numbers.topic, numbers.target, numbers.verification, numbers.ended],
        )
    }

    fn former_sets(&mut self) -> Result<Vec<FormerSet>, LogError> {
        self.database.former_sets()
    }

    fn store_former_sets(&mut self, former: &[FormerSet]) -> Result<(), LogError> {
        let (records, bytes) = (self.database.records(), to_record(former));
        if former.is_empty() {
            return Ok(());
        }
        let revision = records.record_revision(RECORD)?;
        // Without success, another process has written the same record.
        records.replace_record(RECORD, revision, &bytes).map(drop)
    }

    fn needed(&mut self, after: &[u8], limit: usize) -> Result<Vec<(ContentId, u64)>, LogError> {
        self.database.client.needed_contents(after, limit)
    }

    fn with_log(
        &mut self,
        work: &mut dyn FnMut(&dyn ChangeLog) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        work(&self.database.log()?)
    }

    fn finish(&mut self, from: &str) -> Result<(), LogError> {
        const SQL: &str = "WITH unfinished AS (DELETE FROM abreast.records WHERE name = ANY ($1)) \
             INSERT INTO abreast.records (name, revision, bytes) VALUES ($2, 1, $3) ON CONFLICT (name) DO NOTHING";
        let names = UNFINISHED.map(str::to_owned).to_vec();
        let client = &self.database.client;
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&names, Type::TEXT_ARRAY), (&MIGRATED, Type::TEXT), (&from.as_bytes(), Type::BYTEA)];
        client.query("cannot complete the database", SQL, &params).map(drop)
    }
}
