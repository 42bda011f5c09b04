//! The tables of the schema `abreast`, made and migrated by the first node that needs them.

use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::problem::{DatabaseError, DatabaseProblem};
use abreast_core::{ErrorKind, LogError};
use deadpool_postgres::Object;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

const MIGRATIONS: &[&str] = &[
    concat!(
        include_str!("../migrations/postgres_log_0001.sql"),
        include_str!("../migrations/postgres_hub_0001.sql"),
        include_str!("../migrations/postgres_records_0001.sql")
    ),
    include_str!("../migrations/postgres_records_0002.sql"),
    include_str!("../migrations/postgres_log_0002.sql"),
    include_str!("../migrations/postgres_hub_0002.sql"),
];

/// Name of the tables of this file in `abreast.schemas`.
const PART: &str = "store";

/// Version of the tables that this program makes.
pub(crate) const fn newest_version() -> i32 {
    MIGRATIONS.len() as i32
}

/// Brings the tables to the newest schema. Nodes that start at the same time wait for each other.
pub(crate) fn migrate(client: &Client) -> Result<(), LogError> {
    client.read("cannot open the database", |connection| check_encoding(client, connection))??;
    client.read("cannot make the tables", |connection| create(client, connection))?;
    client.read("cannot migrate the tables", |connection| upgrade(client, connection))?
}

/// Creates the schema, unless it exists: a user without the right to create one can open it.
fn create(client: &Client, connection: &mut Object) -> Result<(), Failure> {
    loop {
        let exists = client.wait(async {
            let sql = "SELECT to_regclass('abreast.schemas') IS NOT NULL";
            let rows = connection.query_typed(sql, &[]).await?;
            Ok(rows.first().map_or(Ok(false), |row| row.try_get(0))?)
        })?;
        if exists {
            return Ok(());
        }
        let created = client.wait(async {
            Ok(connection
                .batch_execute(
                    "CREATE SCHEMA IF NOT EXISTS abreast;
                     CREATE TABLE IF NOT EXISTS abreast.schemas
                       (part TEXT PRIMARY KEY, version INTEGER NOT NULL)",
                )
                .await?)
        });
        match created {
            // Two nodes may create the schema at once; one of them fails then, and finds it.
            Err(Failure::Database(error)) if is_race(&error) => {}
            created => return created,
        }
    }
}

fn is_race(error: &tokio_postgres::Error) -> bool {
    [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_SCHEMA, SqlState::DUPLICATE_TABLE]
        .iter()
        .any(|state| error.code() == Some(state))
}

fn check_encoding(
    client: &Client,
    connection: &mut Object,
) -> Result<Result<(), LogError>, Failure> {
    let row = client.wait(async {
        Ok(connection
            .query_typed(
                "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()",
                &[],
            )
            .await?)
    })?;
    let encoding: &str = row.first().map_or(Ok(""), |row| row.try_get(0))?;
    if encoding == "UTF8" {
        return Ok(Ok(()));
    }
    let why = format!("the database has the encoding {encoding}");
    let message = format!(
        "{why}\n  help: create one with `createdb --encoding=UTF8 --template=template0 NAME`"
    );
    let why = DatabaseError::new(DatabaseProblem::Unusable, why);
    Ok(Err(LogError::new(ErrorKind::Refused, message).with_cause(why)))
}

fn upgrade(client: &Client, connection: &mut Object) -> Result<Result<(), LogError>, Failure> {
    let known = MIGRATIONS.len();
    let version = "SELECT version FROM abreast.schemas WHERE part = $1";
    client.wait(async {
        let rows = connection.query_typed(version, &[(&PART, Type::TEXT)]).await?;
        let is_newest = rows
            .first()
            .is_some_and(|row| row.try_get::<_, i32>(0).is_ok_and(|found| found == known as i32));
        if is_newest {
            return Ok(Ok(()));
        }
        let transaction = connection.transaction().await?;
        transaction.batch_execute("LOCK TABLE abreast.schemas IN EXCLUSIVE MODE").await?;
        let rows = transaction
            .query_typed(version, &[(&PART, Type::TEXT)])
            .await?;
        let version = rows.first().map_or(Ok(0), |row| row.try_get::<_, i32>(0))?;
        if usize::try_from(version).is_ok_and(|version| version > known) {
            return Ok(Err(LogError::new(
                ErrorKind::Corrupt,
                format!(
                    "the database has version {version} of the tables, and this program knows {known}\n  help: use a newer program"
                ),
            )));
        }
        for migration in &MIGRATIONS[version as usize..] {
            transaction.batch_execute(migration).await?;
        }
        transaction
            .execute_typed(
                "INSERT INTO abreast.schemas (part, version) VALUES ($1, $2) \
                 ON CONFLICT (part) DO UPDATE SET version = excluded.version",
                &[(&PART, Type::TEXT), (&(known as i32), Type::INT4)],
            )
            .await?;
        transaction.commit().await?;
        Ok(Ok(()))
    })
}
