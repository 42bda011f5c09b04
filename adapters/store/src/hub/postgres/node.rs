//! This process among the nodes: its lease, one row of the database.

use super::namesakes::Namesakes;
use super::topics::each;
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::leases::NodeOptions;
use crate::postgres::shared_values::random_number;
pub(crate) use crate::postgres::shared_values::{Param, database_now};
use abreast_core::hub::HubRevision;
use abreast_core::{ErrorKind, LogError, NodeRole, NodeRoles};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// This process among the nodes.
pub(crate) struct Node {
    name: String,
    pub(crate) lease: Duration,
    roles: NodeRoles,
    /// Number of the present lease, if there was one.
    id: Mutex<Option<i64>>,
    namesakes: Mutex<Namesakes>,
    /// The newest revision of the hub that this process recorded or read.
    seen: Mutex<HubRevision>,
}

impl Node {
    pub(crate) fn new(options: NodeOptions) -> Self {
        let NodeOptions { name, lease, roles } = options;
        let (id, namesakes, seen) = (Mutex::new(None), Mutex::default(), Mutex::default());
        Self { name, lease, roles, id, namesakes, seen }
    }

    /// The newest revision that this process recorded or read. A database without it lost changes
    /// that this process knows; number 0 before the first.
    pub(crate) fn seen(&self) -> HubRevision {
        *self.lock_seen()
    }

    pub(crate) fn saw(&self, revision: HubRevision) {
        let mut seen = self.lock_seen();
        if revision.number > seen.number {
            *seen = revision;
        }
    }

    pub(crate) fn forget_seen(&self) {
        *self.lock_seen() = HubRevision::default();
    }

    fn lock_seen(&self) -> MutexGuard<'_, HubRevision> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this node delivers to a part of the targets.
    pub(crate) fn delivers(&self) -> bool {
        self.roles.has(NodeRole::Hub)
    }

    /// Number of the present or last lease; `None` before the first.
    pub(crate) fn id(&self) -> Option<i64> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<i64>> {
        self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease_micros(&self) -> i64 {
        i64::try_from(self.lease.as_micros()).unwrap_or(i64::MAX)
    }

    /// Renews the lease, or starts a new one after its end.
    pub(crate) fn renew(&self, client: &Client) -> Result<i64, LogError> {
        let id = self.renew_lease(client)?;
        let mut namesakes = self.namesakes.lock().unwrap_or_else(PoisonError::into_inner);
        // The lease is renewed already.
        if let Err(error) = namesakes.check(client, self.lease / 3, (&self.name, id)) {
            tracing::debug!("{error}");
        }
        Ok(id)
    }

    fn renew_lease(&self, client: &Client) -> Result<i64, LogError> {
        const DOING: &str = "cannot renew the lease of the node";
        if let Some(known) = self.id() {
            let sql = concat!(
                "UPDATE abreast.nodes SET until = ",
                database_now!(),
                " + $2 WHERE id = $1 AND until > ",
                database_now!(),
                " RETURNING ",
                database_now!()
            );
            let params: [Param<'_>; 2] = [(&known, Type::INT8), (&self.lease_micros(), Type::INT8)];
            let begin = Instant::now();
            let rows = client.query_lease(DOING, self.lease / 3, sql, &params)?;
            if !rows.is_empty() {
                client.set_clock(&rows, 0, begin);
                return Ok(known);
            }
            tracing::warn!("the lease of this node is over; it starts again without its targets");
        }
        let new = random_number()?;
        // The statement may be repeated after a lost answer.
        let sql = concat!(
            "INSERT INTO abreast.nodes (id, name, roles, started, until) VALUES ($3, $1, $4, ",
            database_now!(),
            ", ",
            database_now!(),
            " + $2) ON CONFLICT (id) DO NOTHING"
        );
        let roles: Vec<&str> = self.roles.names().collect();
        let params: [Param<'_>; 4] = [
            (&self.name, Type::TEXT),
            (&self.lease_micros(), Type::INT8),
            (&new, Type::INT8),
            (&roles, Type::TEXT_ARRAY),
        ];
        client.query_lease(DOING, self.lease / 3, sql, &params)?;
        *self.lock() = Some(new);
        Ok(new)
    }
}

/// The only row of an answer.
pub(crate) fn first<T>(
    doing: &str,
    rows: &[Row],
    read: impl FnMut(&Row) -> Result<T, Failure>,
) -> Result<T, LogError> {
    let missing = || LogError::new(ErrorKind::Io, format!("{doing}: the database answered no row"));
    each(doing, rows, read)?.pop().ok_or_else(missing)
}
