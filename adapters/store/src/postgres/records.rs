//! Small records of the whole store.

use crate::postgres::client::Client;
use abreast_core::{ErrorKind, LogError, RECORD_BYTES_MAX, Record, Records};
use std::fmt;
use std::sync::Arc;
use tokio_postgres::types::Type;

/// The small records in a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresRecords {
    client: Arc<Client>,
}

impl fmt::Debug for PostgresRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresRecords").finish_non_exhaustive()
    }
}

impl PostgresRecords {
    pub(crate) const fn new(client: Arc<Client>) -> Self {
        Self { client }
    }
}

impl Records for PostgresRecords {
    fn record(&self, name: &str) -> Result<Option<Record>, LogError> {
        const DOING: &str = "cannot read a record";
        let rows = self.client.query(
            DOING,
            "SELECT revision, bytes FROM abreast.records WHERE name = $1",
            &[(&name, Type::TEXT)],
        )?;
        let record = rows.first().map(|row| {
            Ok(Record { revision: row.try_get::<_, i64>(0)? as u64, bytes: row.try_get(1)? })
        });
        record
            .transpose()
            .map_err(|failure: crate::postgres::failure::Failure| failure.into_error(DOING))
    }

    fn record_revision(&self, name: &str) -> Result<u64, LogError> {
        const DOING: &str = "cannot read a record";
        let rows = self.client.query(
            DOING,
            "SELECT revision FROM abreast.records WHERE name = $1",
            &[(&name, Type::TEXT)],
        )?;
        let revision = rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0));
        let failed = |error| crate::postgres::failure::Failure::from(error).into_error(DOING);
        revision.map(|revision| revision as u64).map_err(failed)
    }

    /// Numbers grow in random steps, so that a number which a failover lost is not given out again.
    ///
    /// If the answer of the database is lost, the change may be recorded, and `false` is returned when
    /// the repetition finds the new number: the caller then reads the record, and finds its change.
    fn replace_record(&self, name: &str, revision: u64, bytes: &[u8]) -> Result<bool, LogError> {
        if bytes.len() > RECORD_BYTES_MAX {
            let message = format!(
                "the record `{name}` has {} bytes\n  help: at most {RECORD_BYTES_MAX} can be stored",
                bytes.len()
            );
            return Err(LogError::new(ErrorKind::Refused, message));
        }
        let rows = self.client.query(
            "cannot change a record",
            "INSERT INTO abreast.records AS old (name, revision, bytes) SELECT $1, 1 + floor(random() * 1000000)::bigint, $3 WHERE $2 = 0 \
             OR EXISTS (SELECT FROM abreast.records WHERE name = $1) \
             ON CONFLICT (name) DO UPDATE SET revision = old.revision + excluded.revision, bytes = excluded.bytes \
             WHERE old.revision = $2 RETURNING revision",
            &[(&name, Type::TEXT), (&(revision as i64), Type::INT8), (&bytes, Type::BYTEA)],
        )?;
        Ok(!rows.is_empty())
    }
}
