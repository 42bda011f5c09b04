//! The nodes that use a database at this moment.

use crate::postgres::failure::Failure;
use crate::postgres::shared_values::database_now;
use abreast_core::{ErrorKind, LogError};
use abreast_webtypes::Timestamp;
use tokio_postgres::Row;

/// Processes with a valid lease: nodes of a hub, and nodes that do a part of the work of a Source.
pub(crate) const RUNNING: &str = concat!(
    "SELECT name, max(until) FROM (SELECT name, until FROM abreast.nodes UNION ALL SELECT node, until FROM abreast.leases) \
     AS nodes WHERE until > ",
    database_now!(),
    " GROUP BY name ORDER BY name LIMIT 100"
);

/// A node that uses a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningNode {
    /// Name of the node, from its configuration.
    pub name: String,
    /// End of its last lease, unless the node renews the lease.
    pub until: Timestamp,
}

/// Reads the rows of [`RUNNING`].
pub(crate) fn read_nodes(rows: &[Row]) -> Result<Vec<RunningNode>, Failure> {
    let node = |row: &Row| {
        let until = Timestamp::from_micros(row.try_get(1)?);
        Ok(RunningNode { name: row.try_get(0)?, until })
    };
    rows.iter().map(node).collect()
}

/// The error if nodes use the database, whose users must stop them first.
pub(crate) fn check_unused(nodes: &[RunningNode]) -> Result<(), LogError> {
    let Some(until) = nodes.iter().map(|node| node.until).max() else { return Ok(()) };
    let names: Vec<String> = nodes.iter().map(|node| format!("`{}`", node.name)).collect();
    let (noun, names) = (if names.len() == 1 { "node" } else { "nodes" }, names.join(", "));
    let message = format!(
        "the database is in use by the {noun} {names}\n  help: stop all nodes first; the lease of a node that was killed ends by itself, here \
         until {until}"
    );
    Err(LogError::new(ErrorKind::Busy, message))
}
