//! Deprecated resources to be reported once their descriptions were fetched.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;

impl Mirror {
    /// Notes a deprecation to be reported, in the transaction of the plan.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_deprecation(&self, uri: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO deprecation VALUES (?1)")
            .and_then(|mut statement| statement.execute([uri]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// The first `limit` URIs, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn deprecations(&self, limit: usize) -> Result<Vec<String>, LogError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT uri FROM deprecation ORDER BY uri LIMIT ?1")?;
            statement.query_map([limit as i64], |row| row.get(0))?.collect()
        };
        read().map_err(failed(READ))
    }

    /// Deletes all rows, after the deprecations were reported.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_deprecations(&self) -> Result<(), LogError> {
        self.connection.execute("DELETE FROM deprecation", []).map(|_| ()).map_err(failed(WRITE))
    }
}
