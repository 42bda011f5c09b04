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
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Most revisions that are remembered until the database is found to have them; the oldest are
/// forgotten first.
const SEEN_MAX: usize = 100_000;

/// This process among the nodes.
pub(crate) struct Node {
    name: String,
    pub(crate) lease: Duration,
    roles: NodeRoles,
    /// Number of the present lease, if there was one.
    id: Mutex<Option<i64>>,
    namesakes: Mutex<Namesakes>,
    /// Numbers and stamps of revisions of the hub that this process recorded or read.
    seen: Mutex<BTreeSet<(u64, u64)>>,
}

/// Revisions that a database has if it lost nothing that this process knows, as columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) numbers: Vec<i64>,
    pub(crate) stamps: Vec<i64>,
}

/// A condition that the database has the revisions of [`Seen`], given as these two parameters.
macro_rules! has_seen {
    ($numbers:literal, $stamps:literal) => {
        concat!(
            "NOT EXISTS (SELECT FROM unnest(",
            $numbers,
            "::bigint[], ",
            $stamps,
            "::bigint[]) AS seen (number, random) WHERE NOT EXISTS \
             (SELECT FROM abreast.revisions WHERE revision = seen.number AND stamp = seen.random))"
        )
    };
}
pub(crate) use has_seen;

impl Node {
    pub(crate) fn new(options: NodeOptions) -> Self {
        let NodeOptions { name, lease, roles } = options;
        let (id, namesakes, seen) = (Mutex::new(None), Mutex::default(), Mutex::default());
        Self { name, lease, roles, id, namesakes, seen }
    }

    /// Revisions that this process recorded or read since the last successful comparison with the
    /// database. If the database lacks a revision of these, it has lost changes that this process knows.
    pub(crate) fn seen(&self) -> Seen {
        let seen = self.lock_seen();
        Seen {
            numbers: seen.iter().map(|(number, _)| *number as i64).collect(),
            stamps: seen.iter().map(|(_, stamp)| *stamp as i64).collect(),
        }
    }

    /// Records that this process recorded a revision. It replaces the previous revision, which no
    /// database lacks that has this revision.
    pub(crate) fn recorded(&self, before: HubRevision, revision: HubRevision) {
        let mut seen = self.lock_seen();
        seen.remove(&(before.number, before.stamp));
        insert(&mut seen, revision);
    }

    /// Records that this process read a revision. The database may have lost other revisions meanwhile.
    pub(crate) fn saw(&self, revision: HubRevision) {
        insert(&mut self.lock_seen(), revision);
    }

    /// Records that the database has all these revisions: the last one stands for them.
    pub(crate) fn found(&self, found: &Seen) {
        let found = found.numbers.iter().zip(&found.stamps);
        let mut seen = self.lock_seen();
        let mut last = None;
        for (number, stamp) in found {
            let one = (*number as u64, *stamp as u64);
            // Unless everything was forgotten meanwhile.
            last = seen.take(&one).or(last);
        }
        seen.extend(last);
    }

    pub(crate) fn forget_seen(&self) {
        self.lock_seen().clear();
    }

    fn lock_seen(&self) -> MutexGuard<'_, BTreeSet<(u64, u64)>> {
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

fn insert(seen: &mut BTreeSet<(u64, u64)>, revision: HubRevision) {
    if revision.number > 0 {
        seen.insert((revision.number, revision.stamp));
    }
    if seen.len() > SEEN_MAX {
        seen.pop_first();
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
