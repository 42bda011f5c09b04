//! Opening the store of a hub on PostgreSQL.

use super::nodes::Node;
use super::store::PostgresHub;
use super::writer::HubWriter;
use crate::database::queue::Queue;
use crate::postgres::attempts::Attempts;
use crate::postgres::options::{PostgresOptions, thread, writer_name};
use abreast_core::LogError;
use std::sync::Arc;
use std::time::Duration;

/// Options of a node among those that share a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    /// The name under which status and logs of other nodes show this node.
    pub name: String,
    /// Time after which other nodes take over the work of a node that does not renew its lease.
    pub lease: Duration,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self { name: "abreast".to_owned(), lease: Duration::from_secs(15) }
    }
}

impl PostgresOptions {
    /// Opens the hub's store in the database at a URL. See
    /// [`PostgresLog::open`](crate::PostgresLog::open) for the URL.
    ///
    /// # Errors
    /// The database cannot be reached, is not encoded in UTF-8, or has tables of a newer program.
    pub fn open_hub(self, url: &str, node: NodeOptions) -> Result<PostgresHub, LogError> {
        let client = self.connect(url)?;
        let node = Arc::new(Node::new(node.name, node.lease));
        let queue = Arc::new(Queue::default());
        let writer = HubWriter {
            client: Arc::clone(&client),
            clock: self.clock,
            name: format!("{}-hub", writer_name()?),
            node: Arc::clone(&node),
            cached: None,
            pruned: None,
            batch: 0,
            attempts: Attempts::default(),
        };
        let taken = Arc::clone(&queue);
        let thread = Some(thread("hub-writer", move || writer.run(&taken))?);
        Ok(PostgresHub { client, queue, node, thread })
    }
}
