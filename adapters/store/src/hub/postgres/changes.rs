//! Changes of all nodes, in the order of the hub's revisions.

use super::rows::{offset, read_target, read_verification, target_columns, verification_columns};
use super::topics::each;
use crate::postgres::client::Client;
use abreast_core::hub::{ChangedTarget, HubChanges, HubRevision, HubShard, TargetId};
use abreast_core::{LogError, TopicId};
use tokio_postgres::types::{ToSql, Type};

/// Most revisions in an answer. Each has at most the requests of a group.
const REVISIONS: i64 = 20;

const DOING: &str = "cannot read the changes of other nodes";

/// The revision of the last change that reads contain.
pub(crate) fn revision(client: &Client) -> Result<HubRevision, LogError> {
    let rows = client.query(DOING, "SELECT revision, stamp FROM abreast.hub WHERE id = 0", &[])?;
    let found = each(DOING, &rows, |row| {
        let (number, stamp): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(HubRevision { number: number as u64, stamp: stamp as u64 })
    })?;
    Ok(found.first().copied().unwrap_or_default())
}

/// The known revision as the database has it, and the last revision of the next answer.
fn bounds(client: &Client, after: i64) -> Result<(Option<u64>, HubRevision), LogError> {
    const BOUNDS: &str = "SELECT until, (SELECT stamp FROM abreast.revisions WHERE revision = $1), \
         (SELECT stamp FROM abreast.revisions WHERE revision = until) \
         FROM (SELECT least(revision, $2) AS until FROM abreast.hub WHERE id = 0) AS hub";
    let most = after.saturating_add(REVISIONS);
    let rows = client.query(DOING, BOUNDS, &[(&after, Type::INT8), (&most, Type::INT8)])?;
    let found = each(DOING, &rows, |row| {
        let (number, known): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let stamp: Option<i64> = row.try_get(2)?;
        let until = HubRevision { number: number as u64, stamp: stamp.unwrap_or(0) as u64 };
        Ok((known.map(|stamp| stamp as u64), until))
    })?;
    Ok(found.first().copied().unwrap_or_default())
}

/// Changes after a revision; `None` if the database does not have this revision. Revisions become
/// visible in their order, because the row of the hub is locked until a transaction ends; the rows
/// that are read after the newest revision have all its changes.
pub(crate) fn after(
    client: &Client,
    known: HubRevision,
    shards: &[HubShard],
) -> Result<Option<HubChanges>, LogError> {
    const TARGETS: &str =
        concat!(target_columns!(), " WHERE revision > $1 AND revision <= $2 AND shard = ANY ($3)");
    const VERIFICATIONS: &str = concat!(
        verification_columns!(),
        " WHERE revision > $1 AND revision <= $2 AND shard = ANY ($3) ORDER BY id"
    );
    let after = i64::try_from(known.number).unwrap_or(i64::MAX);
    let (stamp, revision) = bounds(client, after)?;
    if stamp != Some(known.stamp) {
        return Ok(None);
    }
    let until = revision.number as i64;
    let mut changes = HubChanges { revision, ..HubChanges::default() };
    if until <= after {
        return Ok(Some(changes));
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
    Ok(Some(changes))
}
