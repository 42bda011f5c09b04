//! The nodes that share the store: leases, and shards of targets and verifications.

use super::changes;
use super::node::{Param, database_now, first};
use super::rows::{read_seen, read_target, read_verification, target_page, verification_columns};
use super::store::PostgresHub;
use super::topics::{each, limit_column};
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::LogError;
use abreast_core::hub::{
    HUB_SHARDS, HubChanges, HubNodes, HubRevision, HubShard, Membership, Target, TargetId,
    Verification, VerificationId,
};
use tokio_postgres::types::Type;

/// Deletes nodes whose lease is over, except nodes that record progress at this moment.
const DELETE_EXPIRED: &str = concat!(
    "DELETE FROM abreast.nodes WHERE id IN (SELECT id FROM abreast.nodes WHERE until <= ",
    database_now!(),
    " FOR UPDATE SKIP LOCKED) RETURNING name"
);
/// Nodes that deliver.
const COUNT: &str = concat!(
    "SELECT count(*) FROM abreast.nodes WHERE 'hub' = ANY (roles) AND until > ",
    database_now!()
);
/// A shard of no node, if there is one.
const FREE: &str = "SELECT shard FROM abreast.hub_shards AS free \
     WHERE NOT EXISTS (SELECT FROM abreast.nodes WHERE nodes.id = free.owner) LIMIT 1";
/// Shards of no node, up to `$2`, for the node `$1`.
const CLAIM: &str = "UPDATE abreast.hub_shards SET owner = $1 WHERE shard IN \
     (SELECT shard FROM abreast.hub_shards AS free \
     WHERE NOT EXISTS (SELECT FROM abreast.nodes WHERE nodes.id = free.owner) \
     ORDER BY shard LIMIT $2 FOR UPDATE SKIP LOCKED)";
const HELD: &str = "SELECT shard FROM abreast.hub_shards WHERE owner = $1 ORDER BY shard";

/// Takes free shards. Claims come one after the other: a claim that started before another node
/// joined would take that node's shards.
fn claim(client: &Client, id: i64, wanted: i64) -> Result<(), Failure> {
    const LOCK: &str = "SELECT id FROM abreast.hub WHERE id = 0 FOR UPDATE";
    let (mut statements, _) = Statements::begin(client, LOCK, &[])?;
    statements.write(CLAIM, params![id => INT8, wanted => INT8])?;
    statements.commit()
}

impl HubNodes for PostgresHub {
    fn renew(&self) -> Result<Membership, LogError> {
        const DOING: &str = "cannot divide the targets among the nodes";
        let (client, node) = (&*self.client, &self.node);
        let id = node.renew(client)?;
        let ask = |sql: &str, params: &[Param<'_>]| {
            client.query_lease(DOING, node.lease / 3, sql, params)
        };
        for row in ask(DELETE_EXPIRED, &[])? {
            let name: String = row.try_get(0).unwrap_or_default();
            tracing::warn!(node = name, "the lease of a node is over; the others take its part");
        }
        let rows = ask(COUNT, &[])?;
        let nodes = first(DOING, &rows, |row| Ok(row.try_get::<_, i64>(0)?))?.max(1);
        let all = if node.delivers() { i64::from(HUB_SHARDS) } else { 0 };
        let share = all / nodes + i64::from(all % nodes > 0);
        // The last node gets the rest, if the others have whole shares.
        let rest = (all - share * (nodes - 1)).max(0) as usize;
        let held = || -> Result<Vec<HubShard>, LogError> {
            let rows = ask(HELD, &[(&id, Type::INT8)])?;
            each(DOING, &rows, |row| Ok(HubShard(row.try_get::<_, i16>(0)? as u16)))
        };
        let mut shards = held()?;
        let wanted = share - shards.len() as i64;
        if wanted > 0 && !ask(FREE, &[])?.is_empty() {
            claim(client, id, wanted).map_err(|failure| failure.into_error(DOING))?;
            shards = held()?;
        }
        Ok(Membership {
            surplus: shards.len().saturating_sub(share as usize),
            missing: rest.saturating_sub(shards.len()),
            shards,
            nodes: nodes as usize,
            lease: node.lease,
        })
    }

    fn give_back(&self, shards: &[HubShard]) -> Result<(), LogError> {
        let Some(id) = self.node.id() else { return Ok(()) };
        let shards: Vec<i16> = shards.iter().map(|shard| shard.0 as i16).collect();
        self.client
            .query_lease(
                "cannot give targets to other nodes",
                self.node.lease / 3,
                "UPDATE abreast.hub_shards SET owner = NULL WHERE owner = $1 AND shard = ANY ($2)",
                &[(&id, Type::INT8), (&shards, Type::INT2_ARRAY)],
            )
            .map(drop)
    }

    fn leave(&self) -> Result<(), LogError> {
        const SQL: &str = "DELETE FROM abreast.nodes WHERE id = $1";
        const DOING: &str = "cannot end the lease of the node";
        let Some(id) = self.node.id() else { return Ok(()) };
        let params: [Param<'_>; 1] = [(&id, Type::INT8)];
        self.client.query_lease(DOING, self.node.lease / 3, SQL, &params).map(drop)
    }

    fn revision(&self) -> Result<HubRevision, LogError> {
        let revision = changes::revision(&self.client)?;
        self.node.saw(revision);
        Ok(revision)
    }

    fn changes_after(
        &self,
        known: HubRevision,
        shards: &[HubShard],
    ) -> Result<Option<HubChanges>, LogError> {
        let seen = self.node.seen();
        let changes = changes::after(&self.client, known, &seen, shards)?;
        if let Some(changes) = &changes {
            self.node.found(&seen);
            self.node.saw(changes.revision);
        }
        Ok(changes)
    }

    fn start_again(&self) {
        self.node.forget_seen();
    }

    fn targets_in(
        &self,
        shard: HubShard,
        after: TargetId,
        limit: usize,
    ) -> Result<Vec<Target>, LogError> {
        const DOING: &str = "cannot read the targets of a shard";
        const SQL: &str = target_page!("shard = $1 AND id > $2 ORDER BY id LIMIT $3");
        let limit = limit_column(limit);
        let params: [Param<'_>; 3] =
            [(&(shard.0 as i16), Type::INT2), (&after.0, Type::INT8), (&limit, Type::INT8)];
        let rows = self.client.query(DOING, SQL, &params)?;
        self.node.saw(read_seen(&rows).map_err(|failure| failure.into_error(DOING))?);
        each(DOING, &rows, read_target)
    }

    fn verifications_in(
        &self,
        shard: HubShard,
        after: VerificationId,
        limit: usize,
    ) -> Result<Vec<Verification>, LogError> {
        const DOING: &str = "cannot read the verifications of a shard";
        const SQL: &str =
            concat!(verification_columns!(), " WHERE shard = $1 AND id > $2 ORDER BY id LIMIT $3");
        let limit = limit_column(limit);
        let params: [Param<'_>; 3] =
            [(&(shard.0 as i16), Type::INT2), (&after.0, Type::INT8), (&limit, Type::INT8)];
        each(DOING, &self.client.query(DOING, SQL, &params)?, read_verification)
    }
}
