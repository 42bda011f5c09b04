//! The stores of a node in a PostgreSQL database.

use crate::config::database::DatabaseConfig;
use abreast_core::hub::HubStore;
use abreast_core::{ChangeLog, Lease, Records, WorkOnRequest};
use anyhow::Result;
use std::sync::Arc;

#[cfg(feature = "postgres")]
mod connected {
    use super::{Arc, ChangeLog, DatabaseConfig, HubStore, Lease, Records, Result, WorkOnRequest};
    use abreast_store::hub::NodeOptions;
    use abreast_store::{PostgresDatabase, PostgresLeases, PostgresOptions};
    use anyhow::Context as _;
    use std::sync::OnceLock;

    /// A database that is open for this process.
    #[derive(Clone, Debug)]
    pub(crate) struct Database {
        database: PostgresDatabase,
        node: NodeOptions,
        leases: Arc<OnceLock<Arc<PostgresLeases>>>,
    }

    impl Database {
        /// Connects, and makes the tables that are missing.
        ///
        /// # Errors
        /// The password cannot be read, or the database cannot be opened.
        pub(crate) fn connect(config: &DatabaseConfig) -> Result<Self> {
            let tls =
                abreast_net::client_tls(config.ca_file.as_deref()).map_err(anyhow::Error::msg)?;
            let mut options = PostgresOptions::default().with_tls(tls);
            if let Some(password) = &config.password {
                let password =
                    password.read().context("cannot read the password of the database")?;
                options = options.with_password(password);
            }
            let database = options.connect(&config.url);
            let database =
                database.with_context(|| format!("cannot open the database {}", config.shown()))?;
            let node = NodeOptions { name: config.node.clone(), lease: config.lease };
            Ok(Self { database, node, leases: Arc::default() })
        }

        /// The change log.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn log(&self) -> Result<Arc<dyn ChangeLog>> {
            Ok(Arc::new(self.database.log()?))
        }

        /// The lease of a part of the work, of which one node at a time does each part.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn lease(&self, name: String) -> Result<Lease> {
            Ok(Lease::of(self.leases()?, name))
        }

        /// A part of the work that one node at a time does on request.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn work_on_request(&self, name: String) -> Result<WorkOnRequest> {
            Ok(WorkOnRequest::of(self.leases()?, name))
        }

        /// The leases of this process, which are taken since the first call.
        fn leases(&self) -> Result<Arc<PostgresLeases>> {
            if let Some(leases) = self.leases.get() {
                return Ok(Arc::clone(leases));
            }
            let started = Arc::new(self.database.leases(&self.node)?);
            Ok(Arc::clone(self.leases.get_or_init(|| started)))
        }

        /// The store of the hub.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn hub(&self) -> Result<Arc<dyn HubStore>> {
            Ok(Arc::new(self.database.hub(self.node.clone())?))
        }

        /// Small records, such as the tokens.
        pub(crate) fn records(&self) -> Arc<dyn Records> {
            Arc::new(self.database.records())
        }
    }
}

#[cfg(not(feature = "postgres"))]
mod connected {
    use super::{Arc, ChangeLog, DatabaseConfig, HubStore, Lease, Records, Result, WorkOnRequest};
    use anyhow::bail;

    /// A database, which this program cannot open.
    #[derive(Clone, Debug)]
    pub(crate) enum Database {}

    impl Database {
        pub(crate) fn connect(_: &DatabaseConfig) -> Result<Self> {
            bail!(crate::config::database::WITHOUT)
        }

        pub(crate) fn log(&self) -> Result<Arc<dyn ChangeLog>> {
            match *self {}
        }

        pub(crate) fn lease(&self, _: String) -> Result<Lease> {
            match *self {}
        }

        pub(crate) fn work_on_request(&self, _: String) -> Result<WorkOnRequest> {
            match *self {}
        }

        pub(crate) fn hub(&self) -> Result<Arc<dyn HubStore>> {
            match *self {}
        }

        pub(crate) fn records(&self) -> Arc<dyn Records> {
            match *self {}
        }
    }
}

pub(crate) use connected::Database;
