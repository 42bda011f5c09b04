//! Reads rows of PostgreSQL into topics, targets and verifications.

use crate::hub::numbers::{cut, kind_of, mode_of};
use crate::postgres::failure::Failure;
use abreast_core::hub::{
    HUB_SHARDS, HubRevision, HubShard, NewVerification, Secret, Target, TargetId, TargetKind,
    Topic, Verification, VerificationId,
};
use abreast_core::{NewNotification, Notification, Offset, Payload, Position, TopicId};
use abreast_webtypes::Timestamp;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tokio_postgres::Row;

/// The revision of the hub that a statement reads, as the last two columns of [`read_seen`].
macro_rules! seen_columns {
    () => {
        ", (SELECT revision FROM abreast.hub WHERE id = 0), (SELECT stamp FROM abreast.hub WHERE id = 0)"
    };
}
/// Columns of a topic, in the order [`read_topic`] expects, and of [`read_seen`].
macro_rules! topic_columns {
    () => {
        concat!(
            "SELECT id, url, created, head, trimmed, bytes",
            $crate::hub::postgres::rows::seen_columns!(),
            " FROM abreast.topics"
        )
    };
}
/// Columns of a target, in the order [`read_target`] expects.
macro_rules! target_columns {
    () => {
        "SELECT id, topic_id, kind, address, secret, lease_until, created, generation, cursor, attempts, \
         first_failed, next_at, replayed FROM abreast.targets JOIN abreast.progress USING (shard, id)"
    };
}
/// A page of targets with the columns of [`read_target`] and [`read_seen`]. The targets are chosen first, by an index:
/// the planner would sort all joined rows.
macro_rules! target_page {
    ($chosen:literal) => {
        concat!(
            "SELECT id, topic_id, kind, address, secret, lease_until, created, generation, cursor, attempts, \
             first_failed, next_at, replayed",
            $crate::hub::postgres::rows::seen_columns!(),
            " FROM (SELECT * FROM abreast.targets WHERE ",
            $chosen,
            ") AS targets JOIN abreast.progress USING (shard, id) ORDER BY id"
        )
    };
}
/// Columns of a verification, in the order [`read_verification`] expects.
macro_rules! verification_columns {
    () => {
        "SELECT id, topic_url, callback, mode, secret, lease_seconds, challenge, reason, attempts, next_at, created \
         FROM abreast.verifications"
    };
}
/// Columns of a notification, in the order [`read_notification`] expects.
macro_rules! notification_columns {
    () => {
        "number, time, media_type, links, after, last, body"
    };
}
pub(crate) use {
    notification_columns, seen_columns, target_columns, target_page, topic_columns,
    verification_columns,
};

/// Bytes of a URL's hash in the tables.
const HASH_BYTES: usize = 16;

/// The hash by which rows of a URL are found.
pub(crate) fn url_hash(url: &str) -> Vec<u8> {
    Sha256::digest(url.as_bytes())[..HASH_BYTES].to_vec()
}

/// The shard of a callback's verifications and targets.
pub(crate) fn shard_of(address: &str) -> HubShard {
    let hash = Sha256::digest(address.as_bytes());
    HubShard(u16::from_be_bytes([hash[30], hash[31]]) % HUB_SHARDS)
}

/// The number of a new target or verification: it has the shard as its remainder.
pub(crate) fn numbered(last: i64, shard: HubShard) -> i64 {
    last * i64::from(HUB_SHARDS) + i64::from(shard.0)
}

/// The column `shard` of a target with this number.
pub(crate) fn shard_column(id: TargetId) -> i16 {
    HubShard::of_target(id).0 as i16
}

/// The revision of the hub that a statement read; number 0 without rows.
pub(crate) fn read_seen(rows: &[Row]) -> Result<HubRevision, Failure> {
    let Some(row) = rows.first() else { return Ok(HubRevision::default()) };
    let (number, stamp): (i64, i64) = (row.try_get(row.len() - 2)?, row.try_get(row.len() - 1)?);
    Ok(HubRevision { number: number as u64, stamp: stamp as u64 })
}

pub(crate) fn read_topic(row: &Row) -> Result<Topic, Failure> {
    Ok(Topic {
        id: TopicId(row.try_get(0)?),
        url: row.try_get(1)?,
        created: time(row, 2)?,
        head: offset(row, 3)?,
        trimmed: offset(row, 4)?,
        bytes: row.try_get::<_, i64>(5)? as u64,
    })
}

pub(crate) fn read_target(row: &Row) -> Result<Target, Failure> {
    let secret: Option<Vec<u8>> = row.try_get(4)?;
    Ok(Target {
        id: TargetId(row.try_get(0)?),
        topic: TopicId(row.try_get(1)?),
        kind: read_kind(row, 2)?,
        address: row.try_get(3)?,
        secret: secret.map(Secret::from),
        lease_until: instant(row, 5)?,
        created: time(row, 6)?,
        generation: row.try_get::<_, i64>(7)? as u64,
        cursor: offset(row, 8)?,
        attempts: count(row, 9)?,
        first_failed: instant(row, 10)?,
        next_at: instant(row, 11)?,
    })
}

pub(crate) fn read_kind(row: &Row, column: usize) -> Result<TargetKind, Failure> {
    let number: i16 = row.try_get(column)?;
    kind_of(i64::from(number)).ok_or_else(|| unknown("kind of target", number))
}

pub(crate) fn read_verification(row: &Row) -> Result<Verification, Failure> {
    let secret: Option<Vec<u8>> = row.try_get(4)?;
    let mode: i16 = row.try_get(3)?;
    let request = NewVerification {
        topic_url: row.try_get(1)?,
        callback: row.try_get(2)?,
        mode: mode_of(i64::from(mode)).ok_or_else(|| unknown("mode of verification", mode))?,
        secret: secret.map(Secret::from),
        lease_seconds: row.try_get::<_, Option<i64>>(5)?.map(|seconds| seconds as u64),
        challenge: row.try_get(6)?,
        reason: row.try_get(7)?,
        next_at: time(row, 9)?,
    };
    Ok(Verification {
        id: VerificationId(row.try_get(0)?),
        request,
        attempts: count(row, 8)?,
        created: time(row, 10)?,
    })
}

pub(crate) fn read_notification(row: &Row) -> Result<Notification, Failure> {
    let range = (row.try_get::<_, Option<i64>>(4)?, row.try_get::<_, Option<i64>>(5)?);
    let payload = match (range, row.try_get::<_, Option<&[u8]>>(6)?) {
        ((Some(after), Some(last)), None) => {
            Payload::Changes { after: Position(after as u64), last: Position(last as u64) }
        }
        ((None, None), Some(body)) => Payload::Bytes(Arc::from(body)),
        _ => return Err(Failure::Damaged("a notification without a payload".to_owned())),
    };
    let content = NewNotification { media_type: row.try_get(2)?, links: row.try_get(3)?, payload };
    Ok(Notification { offset: offset(row, 0)?, time: time(row, 1)?, content })
}

pub(crate) fn unknown(what: &str, number: i16) -> Failure {
    Failure::Damaged(format!("the number {number} is not a {what}"))
}

pub(crate) fn time(row: &Row, column: usize) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_micros(row.try_get(column)?))
}

pub(crate) fn instant(row: &Row, column: usize) -> Result<Option<Timestamp>, Failure> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

pub(crate) fn micros(instant: Option<Timestamp>) -> Option<i64> {
    instant.map(Timestamp::as_micros)
}

pub(crate) fn offset(row: &Row, column: usize) -> Result<Offset, Failure> {
    Ok(Offset(row.try_get::<_, i64>(column)? as u64))
}

pub(crate) fn count(row: &Row, column: usize) -> Result<u32, Failure> {
    Ok(u32::try_from(row.try_get::<_, i64>(column)?).unwrap_or(u32::MAX))
}

/// An error text that PostgreSQL can store.
pub(crate) fn error_text(error: &str) -> String {
    cut(error).replace('\0', "\u{fffd}")
}
