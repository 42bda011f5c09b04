//! Notifications of topics: recording and trimming.

use super::numbers::{READ_BYTES_MAX, TRIM_MAX};
use super::topic_states::{TopicState, TopicStates};
use super::transaction::{Answer, HubTransaction};
use crate::database::sum::Sum;
use abreast_core::hub::{Topic, check_notification, check_topic_url, no_topic};
use abreast_core::{NewNotification, Notification, Offset, Payload, Position, TopicId};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::sync::Arc;

/// Selects notifications with the columns that [`read_notification`] expects.
macro_rules! notifications {
    () => {
        "SELECT offset, time, media_type, links, after, last, body_id, sum, bytes FROM notifications \
         LEFT JOIN bodies ON bodies.id = body_id"
    };
}
pub(crate) use notifications;

pub(crate) fn load(connection: &Connection) -> rusqlite::Result<TopicStates> {
    let mut statement = connection.prepare(
        "SELECT id, head, trimmed, bytes, ifnull((SELECT time FROM notifications \
         WHERE topic_id = topics.id AND offset = topics.head), created), url, sum FROM topics",
    )?;
    let rows = statement.query_map([], |row| {
        check_url(TopicId(row.get(0)?), row.get_ref(5)?.as_str()?, row.get(6)?)?;
        let state = TopicState {
            head: row.get::<_, i64>(1)? as u64,
            trimmed: row.get::<_, i64>(2)? as u64,
            bytes: row.get(3)?,
            time: Timestamp::from_micros(row.get(4)?),
        };
        Ok((TopicId(row.get(0)?), state))
    })?;
    rows.collect()
}

/// Checks a topic's URL against its checksum.
fn check_url(id: TopicId, url: &str, sum: i64) -> rusqlite::Result<()> {
    if url_sum(id, url) == sum { Ok(()) } else { Err(crate::database::sum::damaged(1)) }
}

pub(crate) fn url_sum(id: TopicId, url: &str) -> i64 {
    let mut sum = Sum::default();
    sum.number(Some(id.0));
    sum.bytes(Some(url.as_bytes()));
    sum.finish()
}

pub(crate) fn open(run: &mut HubTransaction<'_>, url: &str) -> Answer<TopicId> {
    if let Some(id) = find(run.connection, url)? {
        return Ok(Ok(id));
    }
    if let Err(refused) = check_topic_url(url, run.known.topics.len()) {
        return Ok(Err(refused));
    }
    run.connection
        .prepare_cached("INSERT INTO topics (url, created, head, trimmed, bytes, sum) VALUES (?1, ?2, 0, 0, 0, 0)")?
        .execute(params![url, run.now.as_micros()])?;
    let id = TopicId(run.connection.last_insert_rowid());
    run.connection
        .prepare_cached("UPDATE topics SET sum = ?2 WHERE id = ?1")?
        .execute([id.0, url_sum(id, url)])?;
    run.known.topics.insert(id, TopicState { head: 0, trimmed: 0, bytes: 0, time: run.now });
    run.known.touched.insert(id);
    Ok(Ok(id))
}

pub(crate) fn find(connection: &Connection, url: &str) -> rusqlite::Result<Option<TopicId>> {
    let mut statement = connection.prepare_cached("SELECT id FROM topics WHERE url = ?1")?;
    statement.query_row([url], |row| row.get(0).map(TopicId)).optional()
}

const TOPIC: &str = "SELECT id, url, created, head, trimmed, bytes, sum FROM topics";

fn read_topic(row: &Row<'_>) -> rusqlite::Result<Topic> {
    let (id, url) = (TopicId(row.get(0)?), row.get::<_, String>(1)?);
    check_url(id, &url, row.get(6)?)?;
    Ok(Topic {
        id,
        url,
        created: Timestamp::from_micros(row.get(2)?),
        head: Offset(row.get::<_, i64>(3)? as u64),
        trimmed: Offset(row.get::<_, i64>(4)? as u64),
        bytes: row.get::<_, i64>(5)? as u64,
    })
}

pub(crate) fn one(connection: &Connection, id: TopicId) -> rusqlite::Result<Option<Topic>> {
    connection
        .prepare_cached(&format!("{TOPIC} WHERE id = ?1"))?
        .query_row([id.0], read_topic)
        .optional()
}

pub(crate) fn page(
    connection: &Connection,
    after: TopicId,
    limit: usize,
) -> rusqlite::Result<Vec<Topic>> {
    let mut statement =
        connection.prepare_cached(&format!("{TOPIC} WHERE id > ?1 ORDER BY id LIMIT ?2"))?;
    statement.query_map(params![after.0, limit as i64], read_topic)?.collect()
}

/// Records one notification. The topic's row is updated by [`store`].
pub(crate) fn publish(
    run: &mut HubTransaction<'_>,
    topic: TopicId,
    notification: &NewNotification,
) -> Answer<Offset> {
    if let Err(refused) = check_notification(notification) {
        return Ok(Err(refused));
    }
    let HubTransaction { connection, known, now } = run;
    let Some(state) = known.topics.get_mut(&topic) else { return Ok(Err(no_topic(topic))) };
    known.touched.insert(topic);
    let offset = state.head + 1;
    let time = (*now).max(state.time);
    let (range, body) = match &notification.payload {
        Payload::Changes { after, last } => (Some((after.0 as i64, last.0 as i64)), None),
        Payload::Bytes(bytes) => (None, Some(&**bytes)),
    };
    let body_id = match body {
        Some(bytes) => {
            connection
                .prepare_cached("INSERT INTO bodies (bytes) VALUES (?1)")?
                .execute([bytes])?;
            Some(connection.last_insert_rowid())
        }
        None => None,
    };
    let sum = sum(topic, offset, time, notification);
    connection
        .prepare_cached(
            "INSERT INTO notifications (topic_id, offset, time, media_type, links, after, last, body_id, sum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            topic.0,
            offset as i64,
            time.as_micros(),
            notification.media_type,
            notification.links,
            range.map(|(after, _)| after),
            range.map(|(_, last)| last),
            body_id,
            sum
        ])?;
    state.head = offset;
    state.time = time;
    state.bytes += body.map_or(0, <[u8]>::len) as i64;
    Ok(Ok(Offset(offset)))
}

/// Writes the rows of topics.
pub(crate) fn store(
    connection: &Connection,
    topic: TopicId,
    state: &TopicState,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE topics SET head = ?2, trimmed = ?3, bytes = ?4 WHERE id = ?1")?
        .execute(params![topic.0, state.head as i64, state.trimmed as i64, state.bytes])?;
    Ok(())
}

/// Drops the oldest notifications up to an offset, at most [`TRIM_MAX`]. Returns whether more are
/// to be dropped.
pub(crate) fn trim(run: &mut HubTransaction<'_>, topic: TopicId, up_to: Offset) -> Answer<bool> {
    let HubTransaction { connection, known, .. } = run;
    let Some(state) = known.topics.get_mut(&topic) else { return Ok(Err(no_topic(topic))) };
    known.touched.insert(topic);
    let end = up_to.0.min(state.head.saturating_sub(1));
    if end <= state.trimmed {
        return Ok(Ok(false));
    }
    drop_some(connection, topic, state, end)?;
    Ok(Ok(state.trimmed < end))
}

/// Drops the oldest notifications up to an offset, at most [`TRIM_MAX`].
fn drop_some(
    connection: &Connection,
    topic: TopicId,
    state: &mut TopicState,
    end: u64,
) -> rusqlite::Result<()> {
    let until = end.min(state.trimmed + TRIM_MAX);
    let span = params![topic.0, state.trimmed as i64, until as i64];
    let bytes: i64 = connection
        .prepare_cached(
            "SELECT ifnull(sum(length(bytes)), 0) FROM bodies WHERE id IN \
             (SELECT body_id FROM notifications WHERE topic_id = ?1 AND offset > ?2 AND offset <= ?3)",
        )?
        .query_row(span, |row| row.get(0))?;
    connection
        .prepare_cached(
            "DELETE FROM bodies WHERE id IN \
             (SELECT body_id FROM notifications WHERE topic_id = ?1 AND offset > ?2 AND offset <= ?3)",
        )?
        .execute(span)?;
    connection
        .prepare_cached(
            "DELETE FROM notifications WHERE topic_id = ?1 AND offset > ?2 AND offset <= ?3",
        )?
        .execute(span)?;
    state.trimmed = until;
    state.bytes -= bytes;
    Ok(())
}

pub(crate) fn read(
    connection: &Connection,
    topic: TopicId,
    after: Offset,
    limit: usize,
) -> rusqlite::Result<Vec<Notification>> {
    let mut statement = connection.prepare_cached(concat!(
        notifications!(),
        " WHERE topic_id = ?1 AND offset > ?2 ORDER BY offset LIMIT ?3"
    ))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![topic.0, after, limit])?;
    let (mut read, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let notification = read_notification(topic, row)?;
        if let Payload::Bytes(body) = &notification.content.payload {
            bytes += body.len();
            if bytes > READ_BYTES_MAX && !read.is_empty() {
                break;
            }
        }
        read.push(notification);
    }
    Ok(read)
}

pub(crate) fn read_notification(topic: TopicId, row: &Row<'_>) -> rusqlite::Result<Notification> {
    let payload = match (row.get::<_, Option<i64>>(4)?, row.get::<_, Option<i64>>(5)?) {
        (Some(after), Some(last)) => {
            Payload::Changes { after: Position(after as u64), last: Position(last as u64) }
        }
        _ => Payload::Bytes(Arc::from(row.get_ref(8)?.as_blob()?)),
    };
    let content = NewNotification { media_type: row.get(2)?, links: row.get(3)?, payload };
    let (offset, time) = (row.get::<_, i64>(0)? as u64, Timestamp::from_micros(row.get(1)?));
    if sum(topic, offset, time, &content) != row.get::<_, i64>(7)? {
        return Err(crate::database::sum::damaged(7));
    }
    Ok(Notification { offset: Offset(offset), time, content })
}

/// Bytes of the body in a row with the columns of [`read_notification`].
pub(crate) fn body_bytes(row: &Row<'_>) -> rusqlite::Result<i64> {
    Ok(row.get_ref(8)?.as_blob_or_null().ok().flatten().map_or(0, |body| body.len() as i64))
}

/// The checksum of a notification.
pub(crate) fn sum(
    topic: TopicId,
    offset: u64,
    time: Timestamp,
    notification: &NewNotification,
) -> i64 {
    let mut sum = Sum::default();
    sum.number(Some(topic.0));
    sum.number(Some(offset as i64));
    sum.number(Some(time.as_micros()));
    sum.bytes(Some(notification.media_type.as_bytes()));
    sum.bytes(Some(notification.links.as_bytes()));
    match &notification.payload {
        Payload::Changes { after, last } => {
            sum.number(Some(after.0 as i64));
            sum.number(Some(last.0 as i64));
        }
        Payload::Bytes(bytes) => sum.bytes(Some(bytes)),
    }
    sum.finish()
}

/// The last notification that was accepted before an instant, 0 if all are newer. A binary search:
/// times in a topic never decrease.
pub(crate) fn before(
    connection: &Connection,
    topic: TopicId,
    time: Timestamp,
) -> rusqlite::Result<Option<Offset>> {
    let Some(found) = one(connection, topic)? else { return Ok(None) };
    let mut at = connection
        .prepare_cached("SELECT time FROM notifications WHERE topic_id = ?1 AND offset = ?2")?;
    // Invariant: `low` is before this instant, `high` is not.
    let (mut low, mut high) = (found.trimmed.0, found.head.0 + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let accepted: Option<i64> =
            at.query_row(params![topic.0, middle as i64], |row| row.get(0)).optional()?;
        if accepted.is_none_or(|accepted| accepted < time.as_micros()) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(Offset(low)))
}
