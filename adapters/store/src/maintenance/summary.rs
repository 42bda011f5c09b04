//! Short descriptions of stores, for reports. Read-only; the time to read them depends
//! on the number of sets, topics and targets, not on the number of resources.

use crate::database::connection::sqlite_error;
use crate::database::migration::check_schema;
use crate::database::read_only::open_for_check;
use crate::hub::summary::summarise;
use crate::log::sqlite::log::MIGRATIONS;
use abreast_core::LogError;
use abreast_core::hub::HubSummary;
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;

/// The schema from which on a store records the bytes of earlier versions.
const WITH_VERSIONS: i64 = 3;

/// A set of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetSummary {
    /// Name of the set in URLs.
    pub slug: String,
    /// The time at which the set was created.
    pub created: Timestamp,
    /// Whether the first import of the set is not complete.
    pub importing: bool,
    /// Position of the set's last change; 0 without a change.
    pub position: u64,
    /// The time of the last change.
    pub changed: Option<Timestamp>,
    /// Number of resources in the set.
    pub resources: u64,
    /// Bytes of the stored contents, if the set stores earlier versions.
    pub kept_bytes: Option<u64>,
}

/// Reads the sets of a store, which a server may have open. Stores of earlier versions are read as
/// they are.
///
/// # Errors
/// The store cannot be read, or was written by a newer program.
pub fn read_sets(path: &Path) -> Result<Vec<SetSummary>, LogError> {
    let connection = open_for_check(path)?;
    let failed =
        |cause| sqlite_error(&format!("cannot read the sets of {}", path.display()), cause);
    let version: i64 = connection
        .query_row("SELECT ifnull(max(version), 0) FROM schema_version", [], |row| row.get(0))
        .map_err(failed)?;
    check_schema(version, MIGRATIONS.len() as i64, path)?;
    sets(&connection, version).map_err(failed)
}

fn sets(connection: &Connection, version: i64) -> rusqlite::Result<Vec<SetSummary>> {
    let transaction = connection.unchecked_transaction()?;
    let kept =
        if version < WITH_VERSIONS { "NULL" } else { "CASE WHEN versions THEN kept_bytes END" };
    let mut statement = transaction
        .prepare(&format!("SELECT id, slug, created, importing, {kept} FROM sets ORDER BY id"))?;
    let mut last = transaction.prepare(
        "SELECT position, time FROM changes WHERE set_id = ?1 ORDER BY position DESC LIMIT 1",
    )?;
    let mut resources = transaction.prepare(
        "SELECT ifnull(sum(resources), 0) FROM shards WHERE set_id = ?1 AND retired = 0",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let change = last
            .query_row([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        found.push(SetSummary {
            slug: row.get(1)?,
            created: Timestamp::from_micros(row.get(2)?),
            importing: row.get(3)?,
            position: change.map_or(0, |(position, _)| position as u64),
            changed: change.map(|(_, time)| Timestamp::from_micros(time)),
            resources: resources.query_row([id], |row| row.get::<_, i64>(0))? as u64,
            kept_bytes: row.get::<_, Option<i64>>(4)?.map(|bytes| bytes as u64),
        });
    }
    Ok(found)
}

/// Reads the deliveries of a hub's store, which a hub may have open. Subscriptions that ended since
/// `since` are counted.
///
/// # Errors
/// The store cannot be read, or was written by a newer program.
pub fn read_hub(path: &Path, since: Timestamp) -> Result<HubSummary, LogError> {
    let connection = open_for_check(path)?;
    let failed =
        |cause| sqlite_error(&format!("cannot read the topics of {}", path.display()), cause);
    let version: i64 = connection
        .query_row("SELECT ifnull(max(version), 0) FROM schema_version", [], |row| row.get(0))
        .map_err(failed)?;
    check_schema(version, crate::hub::store::MIGRATIONS.len() as i64, path)?;
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    summarise(&transaction, since).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteLog;
    use crate::hub::SqliteHub;
    use abreast_core::SystemClock;
    use abreast_core::hub::HubStore as _;
    use std::sync::Arc;

    #[test]
    fn stores_in_use_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source.db");
        let log = SqliteLog::open(&path, Arc::new(SystemClock)).unwrap();
        assert_eq!(read_sets(&path).unwrap(), []);
        drop(log);
        assert_eq!(read_sets(&path).unwrap(), []);
        let path = folder.path().join("hub.db");
        let hub = SqliteHub::open(&path, Arc::new(SystemClock)).unwrap();
        let since = Timestamp::from_micros(0);
        assert_eq!(read_hub(&path, since).unwrap(), HubSummary::default());
        assert_eq!(hub.summary(since).unwrap(), HubSummary::default());
    }

    #[test]
    fn a_damaged_store_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source.db");
        std::fs::write(&path, [7; 9_000]).unwrap();
        assert!(read_sets(&path).is_err());
        assert!(read_hub(&path, Timestamp::from_micros(0)).is_err());
    }
}
