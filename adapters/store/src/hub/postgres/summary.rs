//! A short description of a hub's deliveries, and the size of its store.

use super::rows::{count, instant};
use super::topics::each;
use crate::hub::numbers::ending_number;
use crate::postgres::client::Client;
use abreast_core::LogError;
use abreast_core::hub::{
    Ending, FAILING_TARGETS_MAX, FailingTarget, HubSummary, Sizes, TopicSummary,
};
use abreast_webtypes::Timestamp;
use tokio_postgres::types::Type;

const TOTALS: &str = "SELECT topics, targets, (SELECT count(*) FROM abreast.progress WHERE attempts > 0), \
     (SELECT count(*) FROM abreast.dead), \
     (SELECT count(*) FROM abreast.ended WHERE why IN ($2, $3) AND time >= $1) FROM abreast.hub WHERE id = 0";
/// Each topic with targets, with the values of its targets.
const TOPICS: &str = "SELECT url, head, targets, failing, behind, greatest(head - slowest, 0), \
     (SELECT time FROM abreast.notifications WHERE topic_id = topics.id AND number > slowest AND slowest < head \
     ORDER BY number LIMIT 1) FROM abreast.topics JOIN (\
     SELECT topic_id, count(*) AS targets, count(*) FILTER (WHERE attempts > 0) AS failing, min(cursor) AS slowest, \
     count(*) FILTER (WHERE cursor < head) AS behind \
     FROM abreast.targets JOIN abreast.progress USING (shard, id) JOIN abreast.topics AS of ON of.id = topic_id \
     GROUP BY topic_id) AS all_of ON all_of.topic_id = topics.id ORDER BY topics.id";
const FAILING: &str = "SELECT id, address, url, progress.attempts, first_failed, \
     (SELECT error FROM abreast.attempts AS failed WHERE failed.shard = progress.shard AND failed.id = progress.id \
     ORDER BY row DESC LIMIT 1) \
     FROM abreast.progress JOIN abreast.targets USING (shard, id) \
     JOIN (SELECT id AS topic_id, url FROM abreast.topics) AS topic USING (topic_id) \
     WHERE progress.attempts > 0 ORDER BY first_failed, id LIMIT $1";

pub(crate) fn summarise(client: &Client, since: Timestamp) -> Result<HubSummary, LogError> {
    const DOING: &str = "cannot read the state of the deliveries";
    let ends = [Ending::LeaseOver, Ending::Gone].map(|why| ending_number(why) as i16);
    let rows = client.query(
        DOING,
        TOTALS,
        &[(&since.as_micros(), Type::INT8), (&ends[0], Type::INT2), (&ends[1], Type::INT2)],
    )?;
    let number = |row: &tokio_postgres::Row,
                  column: usize|
     -> Result<u64, crate::postgres::failure::Failure> {
        Ok(row.try_get::<_, i64>(column)? as u64)
    };
    let totals = each(DOING, &rows, |row| {
        Ok(HubSummary {
            topic_count: number(row, 0)?,
            targets: number(row, 1)?,
            failing: number(row, 2)?,
            dead_letters: number(row, 3)?,
            dead_subscriptions: number(row, 4)?,
            ..HubSummary::default()
        })
    })?;
    let mut summary = totals.into_iter().next().unwrap_or_default();
    summary.topics = each(DOING, &client.query(DOING, TOPICS, &[])?, |row| {
        Ok(TopicSummary {
            url: row.try_get(0)?,
            head: number(row, 1)?,
            targets: number(row, 2)?,
            failing: number(row, 3)?,
            behind: number(row, 4)?,
            lag: number(row, 5)?,
            oldest: instant(row, 6)?,
        })
    })?;
    let rows = client.query(DOING, FAILING, &[(&FAILING_TARGETS_MAX, Type::INT8)])?;
    summary.failing_targets = each(DOING, &rows, |row| {
        Ok(FailingTarget {
            id: row.try_get(0)?,
            address: row.try_get(1)?,
            topic: row.try_get(2)?,
            attempts: u64::from(count(row, 3)?),
            since: instant(row, 4)?,
            error: row.try_get(5)?,
        })
    })?;
    Ok(summary)
}

pub(crate) fn sizes(client: &Client) -> Result<Sizes, LogError> {
    const DOING: &str = "cannot read the store's sizes";
    let rows = client.query(
        DOING,
        "SELECT topics, targets, verifications, (SELECT count(*) FROM abreast.dead), \
         (SELECT coalesce(sum(bytes), 0)::bigint FROM abreast.topics), \
         (SELECT coalesce(sum(head - trimmed), 0)::bigint FROM abreast.topics) FROM abreast.hub WHERE id = 0",
        &[],
    )?;
    let found = each(DOING, &rows, |row| {
        let number = |column: usize| row.try_get::<_, i64>(column).map(|number| number as u64);
        Ok(Sizes {
            topics: number(0)?,
            targets: number(1)?,
            verifications: number(2)?,
            dead_letters: number(3)?,
            body_bytes: number(4)?,
            notifications: number(5)?,
            ..Sizes::default()
        })
    })?;
    Ok(found.into_iter().next().unwrap_or_default())
}
