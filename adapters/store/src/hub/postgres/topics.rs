//! Notifications of topics: recording and trimming.

use super::rows::{
    notification_columns, offset, read_notification, read_seen, read_topic, seen_columns,
    topic_columns, url_hash,
};
use super::transaction::{Answer, HubTransaction, Published, check_texts, next_number};
use crate::hub::numbers::{READ_BYTES_MAX, TRIM_MAX};
use crate::hub::topic_states::{TopicState, TopicStates};
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::hub::{HubRevision, Topic, check_notification, check_topic_url, no_topic};
use abreast_core::{LogError, NewNotification, Notification, Offset, Payload, TopicId};
use abreast_webtypes::Timestamp;
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Notifications that are written by one statement.
const PART: usize = 1_000;

const STATES: &str =
    "SELECT id, head, trimmed, bytes, time FROM abreast.topics WHERE revision > $1";

/// Reads the topics that changed after a revision into the cached states.
pub(crate) fn refresh(
    statements: &mut Statements<'_>,
    after: i64,
    topics: &mut TopicStates,
) -> Result<(), Failure> {
    for row in statements.query(STATES, &params![after => INT8])? {
        let state = TopicState {
            head: row.try_get::<_, i64>(1)? as u64,
            trimmed: row.try_get::<_, i64>(2)? as u64,
            bytes: row.try_get(3)?,
            time: Timestamp::from_micros(row.try_get(4)?),
        };
        topics.insert(TopicId(row.try_get(0)?), state);
    }
    Ok(())
}

/// The topic with this URL, created if it does not exist.
pub(crate) fn open(run: &mut HubTransaction<'_>, url: &str) -> Answer<TopicId> {
    const SQL: &str = "SELECT id FROM abreast.topics WHERE url_hash = $1";
    if let Some(row) = run.statements.query_first(SQL, &params![url_hash(url) => BYTEA])? {
        return Ok(Ok(TopicId(row.try_get(0)?)));
    }
    let count = run.known.topics.len();
    if let Err(refused) = check_topic_url(url, count).and_then(|()| check_texts([url])) {
        return Ok(Err(refused));
    }
    run.known.topic_count += 1;
    run.known.last_topic = next_number(run.known.last_topic);
    let (id, now) = (run.known.last_topic, run.now);
    run.statements.write(
        "INSERT INTO abreast.topics (id, url_hash, url, created, head, trimmed, bytes, time, revision) \
         VALUES ($1, $2, $3, $4, 0, 0, 0, $4, $5)",
        params![
            id => INT8, url_hash(url) => BYTEA, url.to_owned() => TEXT, now.as_micros() => INT8,
            run.known.revision => INT8,
        ],
    )?;
    let state = TopicState { head: 0, trimmed: 0, bytes: 0, time: now };
    run.known.topics.insert(TopicId(id), state);
    Ok(Ok(TopicId(id)))
}

/// Adds a notification to the topic; [`write_published`] writes its row.
pub(crate) fn publish(
    run: &mut HubTransaction<'_>,
    topic: TopicId,
    notification: &Arc<NewNotification>,
) -> Answer<Offset> {
    let texts = [&*notification.media_type, &*notification.links];
    if let Err(refused) = check_notification(notification).and_then(|()| check_texts(texts)) {
        return Ok(Err(refused));
    }
    let now = run.now;
    let Some(state) = run.topic_mut(topic) else { return Ok(Err(no_topic(topic))) };
    state.head += 1;
    state.time = now.max(state.time);
    if let Payload::Bytes(body) = &notification.payload {
        state.bytes += body.len() as i64;
    }
    let published = Published {
        topic: topic.0,
        number: state.head as i64,
        time: state.time.as_micros(),
        content: Arc::clone(notification),
    };
    let offset = Offset(state.head);
    run.published.push(published);
    if run.published.len() >= PART {
        write_published(run)?;
    }
    Ok(Ok(offset))
}

/// Writes the rows of new notifications.
pub(crate) fn write_published(run: &mut HubTransaction<'_>) -> Result<(), Failure> {
    let all = std::mem::take(&mut run.published);
    if all.is_empty() {
        return Ok(());
    }
    let texts = |text: fn(&NewNotification) -> &String| -> Vec<String> {
        all.iter().map(|one| text(&one.content).clone()).collect()
    };
    let (mut after, mut last, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for one in &all {
        let (range, body) = match &one.content.payload {
            Payload::Changes { after, last } => (Some((after.0 as i64, last.0 as i64)), None),
            Payload::Bytes(bytes) => (None, Some(bytes.to_vec())),
        };
        after.push(range.map(|(after, _)| after));
        last.push(range.map(|(_, last)| last));
        bodies.push(body);
    }
    run.statements.write(
        "INSERT INTO abreast.notifications (topic_id, number, time, media_type, links, after, last, body) \
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], \
         $7::bigint[], $8::bytea[])",
        params![
            all.iter().map(|one| one.topic).collect::<Vec<_>>() => INT8_ARRAY,
            all.iter().map(|one| one.number).collect::<Vec<_>>() => INT8_ARRAY,
            all.iter().map(|one| one.time).collect::<Vec<_>>() => INT8_ARRAY,
            texts(|one| &one.media_type) => TEXT_ARRAY,
            texts(|one| &one.links) => TEXT_ARRAY,
            after => INT8_ARRAY,
            last => INT8_ARRAY,
            bodies => BYTEA_ARRAY,
        ],
    )
}

/// Writes the rows of topics that the transaction changed.
pub(crate) fn store(run: &mut HubTransaction<'_>) -> Result<(), Failure> {
    let touched: Vec<(i64, TopicState)> = std::mem::take(&mut run.touched)
        .into_iter()
        .filter_map(|topic| Some((topic.0, *run.known.topics.get(&topic)?)))
        .collect();
    if touched.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&TopicState) -> i64| -> Vec<i64> {
        touched.iter().map(|(_, state)| value(state)).collect()
    };
    run.statements.write(
        "UPDATE abreast.topics AS topic SET head = new.head, trimmed = new.trimmed, bytes = new.bytes, \
         time = new.time, revision = $6 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], \
         $5::bigint[]) AS new (id, head, trimmed, bytes, time) WHERE topic.id = new.id",
        params![
            touched.iter().map(|(id, _)| *id).collect::<Vec<_>>() => INT8_ARRAY,
            column(|state| state.head as i64) => INT8_ARRAY,
            column(|state| state.trimmed as i64) => INT8_ARRAY,
            column(|state| state.bytes) => INT8_ARRAY,
            column(|state| state.time.as_micros()) => INT8_ARRAY,
            run.known.revision => INT8,
        ],
    )
}

/// Drops the oldest notifications up to an offset, at most [`TRIM_MAX`]. Returns whether more are
/// to be dropped.
pub(crate) fn trim(run: &mut HubTransaction<'_>, topic: TopicId, up_to: Offset) -> Answer<bool> {
    let Some(state) = run.known.topics.get(&topic).copied() else {
        return Ok(Err(no_topic(topic)));
    };
    let end = up_to.0.min(state.head.saturating_sub(1));
    if end <= state.trimmed {
        return Ok(Ok(false));
    }
    write_published(run)?;
    let until = end.min(state.trimmed + TRIM_MAX);
    let dropped = run.statements.query_first(
        "WITH dropped AS (DELETE FROM abreast.notifications WHERE topic_id = $1 AND number > $2 AND number <= $3 \
         RETURNING length(body) AS bytes) SELECT coalesce(sum(bytes), 0)::bigint FROM dropped",
        &params![topic.0 => INT8, state.trimmed as i64 => INT8, until as i64 => INT8],
    )?;
    let bytes = dropped.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
    if let Some(state) = run.topic_mut(topic) {
        state.trimmed = until;
        state.bytes -= bytes;
    }
    Ok(Ok(until < end))
}

pub(crate) fn find(client: &Client, url: &str) -> Result<Option<TopicId>, LogError> {
    const SQL: &str = "SELECT id FROM abreast.topics WHERE url_hash = $1";
    let rows = client.query("cannot find a topic", SQL, &[(&url_hash(url), Type::BYTEA)])?;
    each("cannot find a topic", &rows, |row| Ok(TopicId(row.try_get(0)?)))
        .map(|mut found| found.pop())
}

pub(crate) fn one(client: &Client, id: TopicId) -> Result<Option<Topic>, LogError> {
    const SQL: &str = concat!(topic_columns!(), " WHERE id = $1");
    let rows = client.query("cannot read a topic", SQL, &[(&id.0, Type::INT8)])?;
    each("cannot read a topic", &rows, read_topic).map(|mut found| found.pop())
}

/// A page of topics, and the revision that has them.
pub(crate) fn page(
    client: &Client,
    after: TopicId,
    limit: usize,
) -> Result<(Vec<Topic>, HubRevision), LogError> {
    const DOING: &str = "cannot read the topics";
    const SQL: &str = concat!(topic_columns!(), " WHERE id > $1 ORDER BY id LIMIT $2");
    let limit = limit_column(limit);
    let rows = client.query(DOING, SQL, &[(&after.0, Type::INT8), (&limit, Type::INT8)])?;
    let seen = read_seen(&rows).map_err(|failure| failure.into_error(DOING))?;
    Ok((each(DOING, &rows, read_topic)?, seen))
}

/// The last offset of a topic, and the revision that has it.
pub(crate) fn head(client: &Client, topic: TopicId) -> Result<(Offset, HubRevision), LogError> {
    const DOING: &str = "cannot read a topic";
    const SQL: &str = concat!("SELECT head", seen_columns!(), " FROM abreast.topics WHERE id = $1");
    let rows = client.query(DOING, SQL, &[(&topic.0, Type::INT8)])?;
    let seen = read_seen(&rows).map_err(|failure| failure.into_error(DOING))?;
    let found = each(DOING, &rows, |row| offset(row, 0))?;
    Ok((found.first().copied().ok_or_else(|| no_topic(topic))?, seen))
}

/// Notifications after an offset, up to [`READ_BYTES_MAX`] bytes, but at least one.
pub(crate) fn read(
    client: &Client,
    topic: TopicId,
    after: Offset,
    limit: usize,
) -> Result<Vec<Notification>, LogError> {
    const DOING: &str = "cannot read notifications";
    const SQL: &str = concat!(
        "SELECT ",
        notification_columns!(),
        " FROM (SELECT *, sum(length(body)) OVER (ORDER BY number) AS bytes, row_number() OVER (ORDER BY number) AS row \
         FROM (SELECT * FROM abreast.notifications WHERE topic_id = $1 AND number > $2 ORDER BY number LIMIT $3) AS part) \
         AS found WHERE row = 1 OR coalesce(bytes, 0) <= $4 ORDER BY number"
    );
    let after = i64::try_from(after.0).unwrap_or(i64::MAX);
    let rows = client.query(
        DOING,
        SQL,
        &[
            (&topic.0, Type::INT8),
            (&after, Type::INT8),
            (&limit_column(limit), Type::INT8),
            (&(READ_BYTES_MAX as i64), Type::INT8),
        ],
    )?;
    if rows.is_empty() {
        head(client, topic)?;
    }
    each(DOING, &rows, read_notification)
}

/// The last notification that was accepted before an instant, 0 if all are newer.
pub(crate) fn before(client: &Client, topic: TopicId, time: Timestamp) -> Result<Offset, LogError> {
    const DOING: &str = "cannot read a topic";
    // Times in a topic never decrease.
    let rows = client.query(
        DOING,
        "SELECT coalesce((SELECT number FROM abreast.notifications WHERE topic_id = $1 AND time < $2 \
         ORDER BY time DESC, number DESC LIMIT 1), trimmed) FROM abreast.topics WHERE id = $1",
        &[(&topic.0, Type::INT8), (&time.as_micros(), Type::INT8)],
    )?;
    let found = each(DOING, &rows, |row| offset(row, 0))?;
    found.first().copied().ok_or_else(|| no_topic(topic))
}

/// Reads each row.
pub(crate) fn each<T>(
    doing: &str,
    rows: &[Row],
    read: impl FnMut(&Row) -> Result<T, Failure>,
) -> Result<Vec<T>, LogError> {
    rows.iter().map(read).collect::<Result<_, _>>().map_err(|failure| failure.into_error(doing))
}

/// A limit as a parameter of a statement.
pub(crate) fn limit_column(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
