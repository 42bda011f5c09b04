//! A database that is open for all stores of a process.

use crate::postgres::client::Client;
use crate::postgres::leases::{NodeOptions, PostgresLeases};
use crate::postgres::options::PostgresOptions;
use crate::postgres::records::PostgresRecords;
use abreast_core::{Clock, LogError};
use std::fmt;
use std::sync::Arc;

/// A PostgreSQL database with the stores of several nodes. The stores of a process share its
/// connections, at most 30.
#[derive(Clone)]
pub struct PostgresDatabase {
    pub(crate) client: Arc<Client>,
    pub(crate) options: PostgresOptions,
}

impl fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresDatabase").finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// Connects to the database at a URL, and makes the tables that are missing. Several hosts may
    /// be given; with `target_session_attrs=read-write`, the host that accepts changes is used. A
    /// host that does not answer within 3 s is passed over.
    ///
    /// # Errors
    /// The database cannot be reached, is not encoded in UTF-8, or has tables of a newer program.
    pub fn connect(self, url: &str) -> Result<PostgresDatabase, LogError> {
        let client = self.client(url)?;
        Ok(PostgresDatabase { client, options: self })
    }
}

impl PostgresDatabase {
    /// The time of the database, which is the same for all nodes.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.client.clock.clone())
    }

    /// The small records of the whole store.
    pub fn records(&self) -> PostgresRecords {
        PostgresRecords::new(Arc::clone(&self.client))
    }

    /// Starts to take leases of parts of the work of a Source for a node.
    ///
    /// # Errors
    /// The system cannot start a thread, or does not give random numbers.
    pub fn leases(&self, node: &NodeOptions) -> Result<PostgresLeases, LogError> {
        PostgresLeases::start(Arc::clone(&self.client), node.name.clone(), node.lease)
    }

    /// Checks that the database answers.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn check_available(&self) -> Result<(), LogError> {
        self.client.query("cannot reach the database", "SELECT 1", &[]).map(drop)
    }

    /// The version of the server.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn version(&self) -> Result<String, LogError> {
        const DOING: &str = "cannot read the version of the database";
        let rows = self.client.query(DOING, "SHOW server_version", &[])?;
        let version = rows.first().map_or(Ok(String::new()), |row| row.try_get(0));
        version.map_err(|error| crate::postgres::failure::Failure::from(error).into_error(DOING))
    }
}
