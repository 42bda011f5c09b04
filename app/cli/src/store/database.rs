//! The stores of a node in a PostgreSQL database.

use crate::config::database::DatabaseConfig;
use abreast_core::hub::{HubStore, HubSummary};
use abreast_core::{ChangeLog, Clock, Lease, Records, WorkOnRequest};
use abreast_maintenance::DatabaseStatus;
use abreast_store::SharedSets;
use abreast_store::integrity::SharedStore;
use abreast_webtypes::Timestamp;
use anyhow::Result;
use std::sync::Arc;

/// Name of the record with the address of the bucket.
pub(crate) const BUCKET: &str = "contents";

/// The rows of a database, and the address of its bucket.
pub(crate) type Checked = (Box<dyn SharedStore>, Option<String>);

/// A database, and the deliveries of its hub, if the database has tables.
pub(crate) type Inspected = (DatabaseStatus, Option<HubSummary>);

#[cfg(feature = "postgres")]
mod connected {
    use super::{
        Arc, BUCKET, ChangeLog, Checked, Clock, DatabaseConfig, HubStore, Inspected, Lease,
        Records, Result, SharedSets, Timestamp, WorkOnRequest,
    };
    use crate::program::errors::UsageError;
    use crate::store::data_folder::unfinished;
    use crate::store::database_password;
    use abreast_core::NodeRole;
    use abreast_maintenance::{DatabaseStatus, LeaseStatus, NodeStatus, TablesStatus};
    use abreast_source::WatchNote;
    use abreast_store::hub::{DatabaseInspection, LeaseInspection, NodeInspection, NodeOptions};
    use abreast_store::migrate::MigratedStore;
    use abreast_store::{PostgresDatabase, PostgresLeases, PostgresOptions};
    use abreast_webtypes::visible;
    use anyhow::{Context as _, bail};
    use std::sync::OnceLock;

    /// A database that is open for this process.
    #[derive(Clone, Debug)]
    pub(crate) struct Database {
        postgres: PostgresDatabase,
        node: NodeOptions,
        leases: Arc<OnceLock<Arc<PostgresLeases>>>,
    }

    impl Database {
        /// Connects, and makes the tables that are missing.
        ///
        /// # Errors
        /// The password cannot be read, or the database cannot be opened.
        pub(crate) fn connect(config: &DatabaseConfig) -> Result<Self> {
            let database = Self::connect_to_migrate(config)?;
            if abreast_store::migrate::is_unfinished(&database.postgres)? {
                bail!(unfinished(&config.shown()));
            }
            Ok(database)
        }

        /// As [`Self::connect`], also if a migration to the database is not complete.
        ///
        /// # Errors
        /// As [`Self::connect`].
        pub(crate) fn connect_to_migrate(config: &DatabaseConfig) -> Result<Self> {
            let database = Self::options(config)?.connect(&config.url);
            let database =
                database.with_context(|| format!("cannot open the database {}", config.shown()))?;
            let node =
                NodeOptions { name: config.node.clone(), lease: config.lease, roles: config.roles };
            Ok(Self { postgres: database, node, leases: Arc::default() })
        }

        /// The database as the store of a migration.
        pub(crate) fn migrated(&self) -> MigratedStore {
            MigratedStore::Database(self.postgres.clone())
        }

        /// The change log.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn log(&self) -> Result<Arc<dyn ChangeLog>> {
            Ok(Arc::new(self.postgres.log()?))
        }

        /// The lease of a part of the work, of which one node with the role [`NodeRole::Watch`] at a time
        /// does each part.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn lease(&self, name: String) -> Result<Lease> {
            let leases = self.leases()?;
            Ok(if self.node.roles.has(NodeRole::Watch) {
                Lease::of(leases, name)
            } else {
                Lease::observed(leases, name)
            })
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
            let started = Arc::new(self.postgres.leases(&self.node)?);
            Ok(Arc::clone(self.leases.get_or_init(|| started)))
        }

        /// The change log, to read only: the database must have the tables of this program.
        ///
        /// # Errors
        /// The database cannot be read, or has other tables.
        pub(crate) fn log_to_read(config: &DatabaseConfig) -> Result<Arc<dyn ChangeLog>> {
            Ok(Arc::new(Self::to_read(config)?.log()?))
        }

        /// The rows of all stores, to check them, and the address of the bucket that the first node recorded. Nodes may be
        /// running.
        ///
        /// # Errors
        /// As [`Self::log_to_read`], or a migration to the database is not complete.
        pub(crate) fn to_check(config: &DatabaseConfig) -> Result<Checked> {
            let database = Self::to_read(config)?;
            if abreast_store::migrate::is_unfinished(&database)? {
                bail!(unfinished(&config.shown()));
            }
            let record = database.records().record(BUCKET)?;
            let bucket = record.map(|record| String::from_utf8_lossy(&record.bytes).into_owned());
            Ok((Box::new(database), bucket))
        }

        /// The sets of a database that has the tables of this program, to remove and rename them.
        ///
        /// # Errors
        /// As [`Self::to_check`].
        pub(crate) fn sets_of(config: &DatabaseConfig) -> Result<Arc<dyn SharedSets>> {
            let database = Self::to_read(config)?;
            if abreast_store::migrate::is_unfinished(&database)? {
                bail!(unfinished(&config.shown()));
            }
            Ok(Arc::new(database))
        }

        /// The sets, with the removals that are not complete.
        pub(crate) fn sets(&self) -> Arc<dyn SharedSets> {
            Arc::new(self.postgres.clone())
        }

        /// A database that has the tables of this program, and is not changed.
        fn to_read(config: &DatabaseConfig) -> Result<PostgresDatabase> {
            let shown = config.shown();
            let database = Self::options(config)?.connect_to_inspect(&config.url)?;
            let versions = database.table_versions();
            let (found, newest) =
                versions.with_context(|| format!("cannot open the database {shown}"))?;
            if found != Some(newest) {
                bail!(UsageError(match found {
                    None => format!("{shown} has no store (help: start a node first)"),
                    Some(found) => format!(
                        "{shown} has version {found} of the tables, and this program needs {newest} (help: use the program of the nodes)"
                    ),
                }));
            }
            Ok(database)
        }

        fn options(config: &DatabaseConfig) -> Result<PostgresOptions> {
            let tls =
                abreast_net::client_tls(config.ca_file.as_deref()).map_err(anyhow::Error::msg)?;
            database_password::add(PostgresOptions::default().with_tls(tls), config)
        }

        /// Describes a database, which it does not change. Subscriptions that ended after a time are
        /// counted.
        ///
        /// # Errors
        /// The password cannot be read, or the database does not answer.
        pub(crate) fn inspect(config: &DatabaseConfig, since: Timestamp) -> Result<Inspected> {
            let database = Self::options(config)?.connect_to_inspect(&config.url)?;
            let (mut status, hub) = inspected(database.inspect(since)?);
            // A newer program may have another record.
            let record = database.records().record(BUCKET).ok().flatten();
            let url = record.map(|record| String::from_utf8_lossy(&record.bytes).into_owned());
            status.contents = url.map(|url| visible(&url).into_owned());
            Ok((status, hub))
        }

        /// The store of the hub.
        ///
        /// # Errors
        /// The system cannot start a thread.
        pub(crate) fn hub(&self) -> Result<Arc<dyn HubStore>> {
            Ok(Arc::new(self.postgres.hub(self.node.clone())?))
        }

        /// The time of the database, which is the same for all nodes.
        pub(crate) fn clock(&self) -> Arc<dyn Clock> {
            self.postgres.clock()
        }

        /// Small records, such as the tokens.
        pub(crate) fn records(&self) -> Arc<dyn Records> {
            Arc::new(self.postgres.records())
        }
    }

    fn inspected(found: DatabaseInspection) -> Inspected {
        let status = DatabaseStatus {
            reachable: true,
            version: Some(found.version),
            version_number: u32::try_from(found.version_number).ok(),
            clock_difference_ms: Some(found.clock_difference / 1_000),
            read_only: Some(found.is_read_only),
            tls: (!found.is_local).then_some(found.has_tls),
            synchronous_commit: Some(found.synchronous_commit),
            fsync: Some(found.fsync),
            tables: found.schemas.into_iter().map(tables).collect(),
            newest_tables: Some(found.newest_schema.into()),
            nodes: found.nodes.into_iter().map(node).collect(),
            leases: found.leases.into_iter().map(lease).collect(),
            contents: None,
        };
        (status, found.hub)
    }

    fn tables((part, version): (String, i32)) -> TablesStatus {
        TablesStatus { part, version: version.into() }
    }

    fn lease(lease: LeaseInspection) -> LeaseStatus {
        let note = lease.note.as_deref().filter(|_| lease.is_valid).and_then(WatchNote::parse);
        let held = note.as_ref().and_then(|note| note.held);
        LeaseStatus {
            name: lease.name,
            node: lease.node,
            state: if lease.is_valid { "held" } else { "over" }.to_owned(),
            until: lease.until.to_string(),
            watch: note.as_ref().map(|note| note.state.name().to_owned()),
            held_deletions: held.map_or(0, |held| held.missing),
            held: note.map(|note| note.held_names).unwrap_or_default(),
        }
    }

    fn node(node: NodeInspection) -> NodeStatus {
        NodeStatus {
            name: node.name,
            state: if node.is_alive { "alive" } else { "lost" }.to_owned(),
            started: node.started.to_string(),
            until: node.until.to_string(),
            shards: node.shards,
            roles: node.roles,
        }
    }
}

#[cfg(not(feature = "postgres"))]
mod connected {
    use super::{
        Arc, ChangeLog, Checked, Clock, DatabaseConfig, HubStore, Inspected, Lease, Records,
        Result, SharedSets, Timestamp, WorkOnRequest,
    };
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

        pub(crate) fn to_check(_: &DatabaseConfig) -> Result<Checked> {
            bail!(crate::config::database::WITHOUT)
        }

        pub(crate) fn log_to_read(_: &DatabaseConfig) -> Result<Arc<dyn ChangeLog>> {
            bail!(crate::config::database::WITHOUT)
        }

        pub(crate) fn sets_of(_: &DatabaseConfig) -> Result<Arc<dyn SharedSets>> {
            bail!(crate::config::database::WITHOUT)
        }

        pub(crate) fn sets(&self) -> Arc<dyn SharedSets> {
            match *self {}
        }

        pub(crate) fn lease(&self, _: String) -> Result<Lease> {
            match *self {}
        }

        pub(crate) fn work_on_request(&self, _: String) -> Result<WorkOnRequest> {
            match *self {}
        }

        pub(crate) fn inspect(_: &DatabaseConfig, _: Timestamp) -> Result<Inspected> {
            bail!(crate::config::database::WITHOUT)
        }

        pub(crate) fn hub(&self) -> Result<Arc<dyn HubStore>> {
            match *self {}
        }

        pub(crate) fn clock(&self) -> Arc<dyn Clock> {
            match *self {}
        }

        pub(crate) fn records(&self) -> Arc<dyn Records> {
            match *self {}
        }
    }
}

pub(crate) use connected::Database;
