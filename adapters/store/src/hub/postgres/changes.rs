//! Changes of all nodes, in the order of the hub's revisions.

use super::node::{Seen, has_seen};
use super::rows::{offset, read_target, read_verification, target_columns, verification_columns};
use super::topics::each;
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
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

/// The last revision of the next answer; `None` if the database does not have all these revisions.
fn bound(
    client: &Client,
    known: HubRevision,
    seen: &Seen,
) -> Result<Option<HubRevision>, LogError> {
    const BOUND: &str = concat!(
        "SELECT until, (SELECT stamp FROM abreast.revisions WHERE revision = $1), ",
        has_seen!("$3", "$4"),
        ", (SELECT stamp FROM abreast.revisions WHERE revision = until) \
         FROM (SELECT least(revision, $2) AS until FROM abreast.hub WHERE id = 0) AS hub"
    );
    let after = i64::try_from(known.number).unwrap_or(i64::MAX);
    let most = after.saturating_add(REVISIONS);
    let params: [(&(dyn ToSql + Sync), Type); 4] = [
        (&after, Type::INT8),
        (&most, Type::INT8),
        (&seen.numbers, Type::INT8_ARRAY),
        (&seen.stamps, Type::INT8_ARRAY),
    ];
    let rows = client.query(DOING, BOUND, &params)?;
    let found = each(DOING, &rows, |row| {
        let stamp = |column| {
            Ok::<_, Failure>(row.try_get::<_, Option<i64>>(column)?.map(|stamp| stamp as u64))
        };
        let number: i64 = row.try_get(0)?;
        let is_there = stamp(1)? == Some(known.stamp) && row.try_get(2)?;
        let stamp = stamp(3)?.unwrap_or(0);
        Ok(is_there.then_some(HubRevision { number: number as u64, stamp }))
    })?;
    Ok(found.first().copied().flatten())
}

/// Changes after a revision; `None` if the database lacks this revision or one of `seen`. Revisions become
/// visible in their order, because the row of the hub is locked until a transaction ends; the rows
/// that are read after the newest revision have all its changes.
pub(crate) fn after(
    client: &Client,
    known: HubRevision,
    seen: &Seen,
    shards: &[HubShard],
) -> Result<Option<HubChanges>, LogError> {
    const TARGETS: &str =
        concat!(target_columns!(), " WHERE revision > $1 AND revision <= $2 AND shard = ANY ($3)");
    const VERIFICATIONS: &str = concat!(
        verification_columns!(),
        " WHERE revision > $1 AND revision <= $2 AND shard = ANY ($3) ORDER BY id"
    );
    let Some(revision) = bound(client, known, seen)? else { return Ok(None) };
    let (after, until) = (known.number as i64, revision.number as i64);
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
