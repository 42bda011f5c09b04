//! A short description of a hub's deliveries, for reports.

use abreast_core::hub::{FAILING_TARGETS_MAX, FailingTarget, HubSummary, TopicSummary};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Describes the deliveries, and counts the subscriptions that ended since a time. The caller has begun a
/// transaction, so that all queries see the same rows.
pub(crate) fn summarise(connection: &Connection, since: Timestamp) -> rusqlite::Result<HubSummary> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let instant = |time: Option<i64>| time.map(Timestamp::from_micros);
    let mut summary = HubSummary {
        topic_count: count("SELECT count(*) FROM topics")? as u64,
        targets: count("SELECT count(*) FROM targets")? as u64,
        failing: count("SELECT count(*) FROM progress WHERE attempts > 0")? as u64,
        dead_letters: count("SELECT count(*) FROM dead")? as u64,
        dead_subscriptions: connection.query_row(
            // Reasons: 2 lease over, 3 gone.
            "SELECT count(*) FROM ended WHERE why IN (2, 3) AND time >= ?1",
            [since.as_micros()],
            |row| row.get::<_, i64>(0),
        )? as u64,
        ..HubSummary::default()
    };
    let mut oldest = connection
        .prepare("SELECT time FROM notifications WHERE topic_id = ?1 AND offset > ?2 ORDER BY offset LIMIT 1")?;
    let mut statement = connection.prepare(
        "SELECT topics.id, url, head, count(*), sum(attempts > 0), sum(cursor < head), min(cursor)
         FROM topics JOIN targets ON topic_id = topics.id JOIN progress ON target_id = targets.id
         GROUP BY topics.id ORDER BY topics.id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, head, cursor): (i64, i64, i64) = (row.get(0)?, row.get(2)?, row.get(6)?);
        let lacks = cursor < head;
        let time = if lacks {
            oldest.query_row(params![id, cursor], |row| row.get::<_, i64>(0)).optional()?
        } else {
            None
        };
        summary.topics.push(TopicSummary {
            url: row.get(1)?,
            head: head as u64,
            targets: row.get::<_, i64>(3)? as u64,
            failing: row.get::<_, i64>(4)? as u64,
            behind: row.get::<_, i64>(5)? as u64,
            lag: (head - cursor).max(0) as u64,
            oldest: instant(time),
        });
    }
    let mut statement = connection.prepare(
        "SELECT targets.id, address, url, attempts, first_failed,
                (SELECT error FROM attempts WHERE target_id = targets.id ORDER BY seq DESC LIMIT 1)
         FROM progress JOIN targets ON targets.id = target_id JOIN topics ON topics.id = topic_id
         WHERE attempts > 0 ORDER BY first_failed, targets.id LIMIT ?1",
    )?;
    let targets = statement.query_map([FAILING_TARGETS_MAX], |row| {
        Ok(FailingTarget {
            id: row.get(0)?,
            address: row.get(1)?,
            topic: row.get(2)?,
            attempts: row.get::<_, i64>(3)? as u64,
            since: instant(row.get(4)?),
            error: row.get(5)?,
        })
    })?;
    summary.failing_targets = targets.collect::<rusqlite::Result<_>>()?;
    Ok(summary)
}
