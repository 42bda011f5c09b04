//! The rows of removed sets. A set is removed by the deletion of its row in `sets`, after which no
//! writer records in it. Its other rows are deleted in parts, each in its own transaction.

use crate::postgres::client::{Client, repeat};
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::{Param, params};
use abreast_core::LogError;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Start of the name of the record of a removed set whose rows are not all deleted. Its number follows.
const PREFIX: &str = "removing/";
/// The records of removed sets with their numbers, after the name `$1`.
pub(crate) const REMOVALS: &str = "SELECT name, bytes FROM abreast.records WHERE name > $1 AND name < 'removing0' \
     ORDER BY name LIMIT 1000";
/// Most rows that a transaction deletes.
const PART: i64 = 1_000;
const DOING: &str = "cannot delete the rows of a removed set";

/// Name of the record of a removed set.
pub(crate) fn record_of(set: i64) -> String {
    format!("{PREFIX}{set}")
}

/// Values of [`REMOVALS`] for all records.
pub(crate) fn all_removals() -> [Param; 1] {
    params![PREFIX.to_owned() => TEXT]
}

/// The number of a removed set, from a row of [`REMOVALS`].
pub(crate) fn removed_set(row: &Row) -> Result<i64, Failure> {
    let name: &str = row.try_get(0)?;
    let number = name.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
    let wrong = || format!("the record `{name}` has another name than that of a removed set");
    number.ok_or_else(|| Failure::Damaged(wrong()))
}

/// The first key of a part, in the order of a table.
#[derive(Clone, Debug)]
enum Place {
    Bytes(Vec<u8>),
    Number(i64),
    Text(String),
}

impl Place {
    fn param(&self) -> Param {
        match self.clone() {
            Self::Bytes(bytes) => (Box::new(bytes), Type::BYTEA),
            Self::Number(number) => (Box::new(number), Type::INT8),
            Self::Text(text) => (Box::new(text), Type::TEXT),
        }
    }

    /// The key in the first column of a row, of the same type.
    fn in_row(&self, row: &Row) -> Result<Self, Failure> {
        Ok(match self {
            Self::Bytes(_) => Self::Bytes(row.try_get(0)?),
            Self::Number(_) => Self::Number(row.try_get(0)?),
            Self::Text(_) => Self::Text(row.try_get(0)?),
        })
    }
}

/// The statements for a table: the last key of a part of the set `$1` that starts with the key `$2`, the deletion of
/// the rows up to that key, and of all rows. Rows before `$2` are not read again: until `VACUUM`, an index still has
/// their entries.
struct Table {
    last: &'static str,
    delete_part: &'static str,
    delete_rest: &'static str,
    first: Place,
}

macro_rules! table {
    ($table:literal, $key:literal, $first:expr) => {
        Table {
            last: concat!(
                "SELECT ",
                $key,
                " FROM abreast.",
                $table,
                " WHERE set_id = $1 AND ",
                $key,
                " >= $2 ORDER BY ",
                $key,
                " OFFSET $3 LIMIT 1"
            ),
            delete_part: concat!(
                "DELETE FROM abreast.",
                $table,
                " WHERE set_id = $1 AND ",
                $key,
                " >= $2 AND ",
                $key,
                " <= $3"
            ),
            delete_rest: concat!(
                "DELETE FROM abreast.",
                $table,
                " WHERE set_id = $1 AND ",
                $key,
                " >= $2"
            ),
            first: $first,
        }
    };
}

fn tables() -> [Table; 9] {
    let hash = || Place::Bytes(Vec::new());
    let (number, text) = (|| Place::Number(i64::MIN), || Place::Text(String::new()));
    [
        table!("resources", "key_hash", hash()),
        table!("tombstones", "key_hash", hash()),
        table!("changes", "position", number()),
        table!("pages", "number", number()),
        table!("shards", "id", number()),
        // A key can have more versions than a part.
        Table {
            last: "SELECT key_hash, time FROM abreast.versions WHERE set_id = $1 AND key_hash >= $2 \
                 ORDER BY key_hash, time OFFSET $3 LIMIT 1",
            delete_part: "DELETE FROM abreast.versions WHERE set_id = $1 AND key_hash >= $2 \
                 AND (key_hash, time) <= ($3, $4)",
            delete_rest: "DELETE FROM abreast.versions WHERE set_id = $1 AND key_hash >= $2",
            first: hash(),
        },
        table!("contents", "id", hash()),
        table!("idempotency", "key", text()),
        table!("writers", "writer", text()),
    ]
}

/// Deletes the rows of all removed sets, until `is_stopped` returns true. An interrupted call is
/// continued by the next one, also of another process.
///
/// # Errors
/// The database cannot be reached, or a record has a wrong name.
pub(crate) fn finish(client: &Client, is_stopped: &dyn Fn() -> bool) -> Result<(), LogError> {
    while let Some(set) = first(client)? {
        for table in tables() {
            let mut place = table.first.clone();
            loop {
                if is_stopped() {
                    return Ok(());
                }
                let part = || delete_part(client, set, &table, &place);
                let Some(next) = repeat(DOING, part)? else { break };
                place = next;
            }
        }
        let (sql, name) = ("DELETE FROM abreast.records WHERE name = $1", record_of(set));
        client.query(DOING, sql, &[(&name, Type::TEXT)])?;
    }
    Ok(())
}

/// A removed set whose rows are not all deleted.
fn first(client: &Client) -> Result<Option<i64>, LogError> {
    let rows = client.query(DOING, REMOVALS, &[(&PREFIX, Type::TEXT)])?;
    let set = rows.first().map(removed_set).transpose();
    set.map_err(|failure| failure.into_error(DOING))
}

/// Deletes a part of a table in a transaction. Returns the last key of the part; `None` at the end of the table.
fn delete_part(
    client: &Client,
    set: i64,
    table: &Table,
    place: &Place,
) -> Result<Option<Place>, Failure> {
    // Another process may delete the rows of the same set at the same time.
    const LOCK: &str = "SELECT revision FROM abreast.records WHERE name = $1 FOR UPDATE";
    let (mut statements, record) =
        Statements::begin(client, LOCK, &params![record_of(set) => TEXT])?;
    if record.is_none() {
        return Ok(None);
    }
    let mut values: Vec<Param> = vec![(Box::new(set), Type::INT8), place.param()];
    values.push((Box::new(PART - 1), Type::INT8));
    let last = statements.query_first(table.last, &values)?;
    values.pop();
    let next = last.as_ref().map(|row| place.in_row(row)).transpose()?;
    if let (Some(row), Some(next)) = (&last, &next) {
        values.push(next.param());
        if row.len() > 1 {
            values.push((Box::new(row.try_get::<_, i64>(1)?), Type::INT8));
        }
    }
    let delete = if next.is_some() { table.delete_part } else { table.delete_rest };
    statements.write(delete, values)?;
    statements.commit()?;
    Ok(next)
}
