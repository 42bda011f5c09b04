//! A description of a database and of its nodes, for operators. It changes nothing.

use super::summary::summarise;
use crate::postgres::database::PostgresDatabase;
use crate::postgres::failure::Failure;
use crate::postgres::options::PostgresOptions;
use crate::postgres::schema::newest_version;
use abreast_core::LogError;
use abreast_core::hub::HubSummary;
use abreast_webtypes::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Most nodes in a description.
const NODES_MAX: i64 = 500;

const SERVER: &str = "SELECT current_setting('server_version'), current_setting('server_version_num')::integer, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, current_setting('synchronous_commit'), \
     current_setting('fsync'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', \
     coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false), \
     to_regclass('abreast.schemas') IS NOT NULL";
const SCHEMAS: &str = "SELECT part, version FROM abreast.schemas ORDER BY part";
const NODES: &str = "SELECT name, started, until, \
     (SELECT count(*) FROM abreast.hub_shards WHERE owner = nodes.id), \
     until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, roles \
     FROM abreast.nodes ORDER BY name, started LIMIT $1";

const LEASES: &str = "SELECT name, node, until, until > (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
     CASE WHEN note_by = owner THEN note END FROM abreast.leases ORDER BY name LIMIT $1";

/// A description of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseInspection {
    /// Version of the server, as it reports it.
    pub version: String,
    /// Version of the server as a number, such as 150004 for 15.4.
    pub version_number: i32,
    /// The clock of the database minus the clock of this machine, in microseconds.
    pub clock_difference: i64,
    /// Value of the parameter `synchronous_commit`.
    pub synchronous_commit: String,
    /// Whether the parameter `fsync` is on.
    pub fsync: bool,
    /// Whether the database accepts no changes.
    pub is_read_only: bool,
    /// Whether the connection uses TLS.
    pub has_tls: bool,
    /// Whether all hosts in the URL are this machine.
    pub is_local: bool,
    /// Versions of the tables by their part; empty before the first start of a node.
    pub schemas: Vec<(String, i32)>,
    /// Version of the tables that this program makes.
    pub newest_schema: i32,
    /// The nodes of the hub, at most 500.
    pub nodes: Vec<NodeInspection>,
    /// Leases of parts of the work of a Source, at most 500.
    pub leases: Vec<LeaseInspection>,
    /// The topics, the targets and their lag; `None` without tables.
    pub hub: Option<HubSummary>,
}

/// A node of a hub in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeInspection {
    /// Name of the node, from its configuration.
    pub name: String,
    /// Time of the first renewal of the present lease.
    pub started: Timestamp,
    /// End of the lease, by the clock of the database.
    pub until: Timestamp,
    /// Number of shards that the node delivers.
    pub shards: u64,
    /// Whether the lease is not over.
    pub is_alive: bool,
    /// Names of the node's roles.
    pub roles: Vec<String>,
}

/// The lease of a part of the work, of which one node at a time does each part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseInspection {
    /// Name of the part, such as `watch/papers`.
    pub name: String,
    /// Name of the node that does the part.
    pub node: String,
    /// Time at which another node may take the lease.
    pub until: Timestamp,
    /// Whether the lease is not over.
    pub is_valid: bool,
    /// The note of the node for other nodes, such as the state of a watch.
    pub note: Option<String>,
}

impl PostgresOptions {
    /// Connects to the database at a URL without making tables, for
    /// [`PostgresDatabase::inspect`].
    ///
    /// # Errors
    /// The URL is wrong.
    pub fn connect_to_inspect(self, url: &str) -> Result<PostgresDatabase, LogError> {
        let client = self.unmigrated_client(url)?;
        Ok(PostgresDatabase { client, options: self })
    }
}

impl PostgresDatabase {
    /// The version of the tables, `None` before the first start of a node, and the version that this
    /// program makes.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn table_versions(&self) -> Result<(Option<i32>, i32), LogError> {
        const DOING: &str = "cannot read the version of the tables";
        const EXISTS: &str = "SELECT to_regclass('abreast.schemas') IS NOT NULL";
        let failed = |failure: Failure| failure.into_error(DOING);
        let exists = self.client.query(DOING, EXISTS, &[])?;
        let exists = exists.first().map_or(Ok(false), |row| row.try_get(0));
        let found = if exists.map_err(|error| failed(error.into()))? {
            let rows = self.client.query(DOING, SCHEMAS, &[])?;
            rows.first()
                .map(|row| row.try_get(1))
                .transpose()
                .map_err(|error| failed(error.into()))?
        } else {
            None
        };
        Ok((found, newest_version()))
    }

    /// Describes the database and its nodes. Targets that ended after `since` are counted.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub fn inspect(&self, since: Timestamp) -> Result<DatabaseInspection, LogError> {
        const DOING: &str = "cannot inspect the database";
        let query = |sql: &str, params: &[_]| self.client.query(DOING, sql, params);
        // The first statement opens the connection, and would take longer.
        self.check_available()?;
        let before = now();
        let rows = query(SERVER, &[])?;
        let middle = before + (now() - before) / 2;
        let (mut found, has_tables) = match rows.first() {
            Some(row) => server(row, middle).map_err(|failure| failure.into_error(DOING))?,
            None => (DatabaseInspection::default(), false),
        };
        (found.newest_schema, found.is_local) = (newest_version(), self.client.is_local);
        if !has_tables {
            return Ok(found);
        }
        let read = |rows: &[Row]| -> Result<_, Failure> {
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
        };
        found.schemas =
            read(&query(SCHEMAS, &[])?).map_err(|failure: Failure| failure.into_error(DOING))?;
        // Tables of a newer program may have other columns.
        if found.schemas.iter().any(|(_, version)| *version != found.newest_schema)
            || found.schemas.is_empty()
        {
            return Ok(found);
        }
        let nodes = query(NODES, &[(&NODES_MAX, Type::INT8)])?;
        let nodes: Result<_, Failure> = nodes.iter().map(node).collect();
        found.nodes = nodes.map_err(|failure| failure.into_error(DOING))?;
        let leases = query(LEASES, &[(&NODES_MAX, Type::INT8)])?;
        let leases: Result<_, Failure> = leases.iter().map(lease).collect();
        found.leases = leases.map_err(|failure| failure.into_error(DOING))?;
        found.hub = Some(summarise(&self.client, since)?);
        Ok(found)
    }
}

fn server(row: &Row, now: i64) -> Result<(DatabaseInspection, bool), Failure> {
    let found = DatabaseInspection {
        version: row.try_get(0)?,
        version_number: row.try_get(1)?,
        clock_difference: row.try_get::<_, i64>(2)? - now,
        synchronous_commit: row.try_get(3)?,
        fsync: row.try_get::<_, String>(4)? == "on",
        is_read_only: row.try_get(5)?,
        has_tls: row.try_get(6)?,
        ..DatabaseInspection::default()
    };
    Ok((found, row.try_get(7)?))
}

fn node(row: &Row) -> Result<NodeInspection, Failure> {
    Ok(NodeInspection {
        name: row.try_get(0)?,
        started: Timestamp::from_micros(row.try_get(1)?),
        until: Timestamp::from_micros(row.try_get(2)?),
        shards: row.try_get::<_, i64>(3)? as u64,
        is_alive: row.try_get(4)?,
        roles: row.try_get(5)?,
    })
}

fn lease(row: &Row) -> Result<LeaseInspection, Failure> {
    Ok(LeaseInspection {
        name: row.try_get(0)?,
        node: row.try_get(1)?,
        until: Timestamp::from_micros(row.try_get(2)?),
        is_valid: row.try_get(3)?,
        note: row.try_get(4)?,
    })
}

/// Microseconds since 1970, by the clock of this machine.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
