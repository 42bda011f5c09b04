//! PostgreSQL: connections, transactions and tables, for any number of nodes.

pub(crate) mod attempts;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod database;
pub(crate) mod failure;
pub(crate) mod hosts;
pub(crate) mod lease_notes;
pub(crate) mod leases;
pub(crate) mod options;
pub(crate) mod password;
pub(crate) mod problem;
pub(crate) mod records;
pub(crate) mod running_nodes;
pub(crate) mod schema;
pub(crate) mod shared_values;
pub(crate) mod statements;
pub(crate) mod url;
pub(crate) mod values;
