//! Opening the store of a hub on PostgreSQL.

use super::node::Node;
use super::store::PostgresHub;
use super::writer::HubWriter;
use crate::database::queue::Queue;
use crate::postgres::attempts::Attempts;
use crate::postgres::database::PostgresDatabase;
use crate::postgres::leases::NodeOptions;
use crate::postgres::options::{thread, writer_name};
use abreast_core::LogError;
use std::sync::Arc;

impl PostgresDatabase {
    /// Opens the store of a hub, for this node.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn hub(&self, node: NodeOptions) -> Result<PostgresHub, LogError> {
        let client = Arc::clone(&self.client);
        let node = Arc::new(Node::new(node));
        let queue = Arc::new(Queue::default());
        let writer = HubWriter {
            client: Arc::clone(&client),
            clock: self.options.clock.clone(),
            name: format!("{}-hub", writer_name()?),
            node: Arc::clone(&node),
            cached: None,
            pruned: None,
            batch: 0,
            revisions: None,
            attempts: Attempts::default(),
        };
        let taken = Arc::clone(&queue);
        let thread = Some(thread("hub-writer", move || writer.run(&taken))?);
        Ok(PostgresHub { client, queue, node, thread })
    }
}
