//! Changes of all nodes, in the order of the hub's revisions.

use super::rows::{offset, read_target, read_verification, target_columns, verification_columns};
use super::topics::each;
use crate::postgres::client::Client;
use abreast_core::hub::{ChangedTarget, HubChanges, HubShard, TargetId};
use abreast_core::{LogError, TopicId};
use tokio_postgres::types::{ToSql, Type};

/// Most revisions in an answer. Each has at most the requests of a group.
const REVISIONS: i64 = 20;

const DOING: &str = "cannot read the changes of other nodes";

/// The revision of the last change that reads contain.
pub(crate) fn revision(client: &Client) -> Result<u64, LogError> {
    let rows = client.query(DOING, "SELECT revision FROM abreast.hub WHERE id = 0", &[])?;
    let found = each(DOING, &rows, |row| Ok(row.try_get::<_, i64>(0)? as u64))?;
    Ok(found.first().copied().unwrap_or(0))
}

/// Changes after a revision. Revisions become visible in their order, because the row of the hub is
/// locked until a transaction ends; the rows that are read after the newest revision have all its
/// changes.
pub(crate) fn after(
    client: &Client,
    after: u64,
    shards: &[HubShard],
) -> Result<HubChanges, LogError> {
    const TARGETS: &str =
        concat!(target_columns!(), " WHERE revision > $1 AND revision <= $2 AND shard = ANY ($3)");
    const VERIFICATIONS: &str = concat!(
        verification_columns!(),
        " WHERE revision > $1 AND revision <= $2 AND shard = ANY ($3) ORDER BY id"
    );
    let newest = revision(client)? as i64;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    // A database that was restored may be behind.
    let until = newest.min(after.saturating_add(REVISIONS));
    let mut changes = HubChanges { revision: until as u64, ..HubChanges::default() };
    if until <= after {
        return Ok(changes);
    }
    let shards: Vec<i16> = shards.iter().map(|shard| shard.0 as i16).collect();
    let params: [(&(dyn ToSql + Sync), Type); 3] =
        [(&after, Type::INT8), (&until, Type::INT8), (&shards, Type::INT2_ARRAY)];
    let rows = client.query(
        DOING,
        "SELECT id, url, head FROM abreast.topics WHERE revision > $1 AND revision <= $2 ORDER BY id",
        &params[..2],
    )?;
    changes.topics =
        each(DOING, &rows, |row| Ok((TopicId(row.try_get(0)?), row.try_get(1)?, offset(row, 2)?)))?;
    let rows = client.query(
        DOING,
        "SELECT id FROM abreast.ended WHERE revision > $1 AND revision <= $2",
        &params[..2],
    )?;
    changes.ended = each(DOING, &rows, |row| Ok(TargetId(row.try_get(0)?)))?;
    changes.targets = each(DOING, &client.query(DOING, TARGETS, &params)?, |row| {
        let replayed = row.try_get::<_, i64>(12)? > after;
        Ok(ChangedTarget { target: read_target(row)?, replayed })
    })?;
    changes.verifications =
        each(DOING, &client.query(DOING, VERIFICATIONS, &params)?, read_verification)?;
    Ok(changes)
}
