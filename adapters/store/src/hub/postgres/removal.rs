//! Removal and renaming of topics, while no node delivers.
//!
//! A topic is removed in parts, the topic itself last: an interrupted removal is started again.

use super::rows::url_hash;
use super::store::{PostgresHub, ROW_BYTES};
use super::topics::{self, each};
use super::transaction::{Answer, HubTransaction};
use crate::postgres::values::params;
use abreast_core::hub::Topic;
use abreast_core::{LogError, Offset, TopicId, TopicLog as _};
use tokio_postgres::types::Type;

/// Most targets that a transaction deletes. Each has at most
/// [`DEAD_LETTERS_MAX`](abreast_core::hub::DEAD_LETTERS_MAX) dead letters.
const TARGETS: i64 = 100;
/// Most verifications that a transaction reads.
const VERIFICATIONS: i64 = 500;

impl PostgresHub {
    /// The number of targets of a topic.
    pub(crate) fn count_targets(&self, topic: TopicId) -> Result<u64, LogError> {
        const DOING: &str = "cannot count the targets of a topic";
        const SQL: &str = "SELECT count(*) FROM abreast.targets WHERE topic_id = $1";
        let rows = self.client.query(DOING, SQL, &[(&topic.0, Type::INT8)])?;
        let counts = each(DOING, &rows, |row| Ok(row.try_get::<_, i64>(0)?))?;
        Ok(counts.first().map_or(0, |count| count.unsigned_abs()))
    }

    /// Deletes a topic with its notifications and targets. Subscribers are not notified.
    pub(crate) fn remove_topic(&self, topic: TopicId) -> Result<(), LogError> {
        loop {
            while self.call(ROW_BYTES, move |run| remove_targets(run, topic))? {}
            let Some(Topic { head: Offset(head), .. }) = topics::one(&self.client, topic)? else {
                return Ok(());
            };
            // All but the last notification, in parts.
            self.trim(topic, Offset(head))?;
            if self.call(ROW_BYTES, move |run| remove_topic(run, topic))? {
                return Ok(());
            }
        }
    }

    /// Deletes the pending verifications of topics.
    pub(crate) fn remove_verifications(&self, urls: &[String]) -> Result<(), LogError> {
        let mut after = i64::MIN;
        loop {
            let urls = urls.to_vec();
            let part = move |run: &mut HubTransaction<'_>| remove_verifications(run, &urls, after);
            let Some(last) = self.call(ROW_BYTES, part)? else { return Ok(()) };
            after = last;
        }
    }

    /// Gives a topic another URL. Returns `false` if the topic does not exist, or another topic has the new URL.
    pub(crate) fn rename_topic(&self, old: &str, new: &str) -> Result<bool, LogError> {
        let (old, new) = (old.to_owned(), new.to_owned());
        self.call(ROW_BYTES, move |run| rename(run, &old, &new))
    }
}

/// Deletes some targets of a topic, with their rows in other tables. Returns whether more may follow.
fn remove_targets(run: &mut HubTransaction<'_>, topic: TopicId) -> Answer<bool> {
    const NEXT: &str =
        "SELECT shard, id FROM abreast.targets WHERE topic_id = $1 ORDER BY id LIMIT $2";
    let rows = run.statements.query(NEXT, &params![topic.0 => INT8, TARGETS => INT8])?;
    let (mut shards, mut ids) = (Vec::<i16>::new(), Vec::<i64>::new());
    for row in &rows {
        shards.push(row.try_get(0)?);
        ids.push(row.try_get(1)?);
    }
    for sql in [
        "DELETE FROM abreast.attempts AS old USING unnest($1::smallint[], $2::bigint[]) AS gone (shard, id) \
         WHERE old.shard = gone.shard AND old.id = gone.id",
        "DELETE FROM abreast.dead AS old USING unnest($1::smallint[], $2::bigint[]) AS gone (shard, id) \
         WHERE old.shard = gone.shard AND old.id = gone.id",
        "DELETE FROM abreast.progress AS old USING unnest($1::smallint[], $2::bigint[]) AS gone (shard, id) \
         WHERE old.shard = gone.shard AND old.id = gone.id",
        "DELETE FROM abreast.targets AS old USING unnest($1::smallint[], $2::bigint[]) AS gone (shard, id) \
         WHERE old.shard = gone.shard AND old.id = gone.id",
    ] {
        run.statements
            .write(sql, params![shards.clone() => INT2_ARRAY, ids.clone() => INT8_ARRAY])?;
    }
    run.known.targets -= ids.len() as i64;
    Ok(Ok(ids.len() as i64 == TARGETS))
}

/// Deletes a topic without targets, and its last notification. Returns `false` if the topic has targets.
fn remove_topic(run: &mut HubTransaction<'_>, topic: TopicId) -> Answer<bool> {
    const TARGET: &str = "SELECT id FROM abreast.targets WHERE topic_id = $1 LIMIT 1";
    if run.statements.query_first(TARGET, &params![topic.0 => INT8])?.is_some() {
        return Ok(Ok(false));
    }
    if run.known.topics.remove(&topic).is_some() {
        run.known.topic_count -= 1;
    }
    for sql in [
        "DELETE FROM abreast.notifications WHERE topic_id = $1",
        "DELETE FROM abreast.ended WHERE topic_id = $1",
        "DELETE FROM abreast.topics WHERE id = $1",
    ] {
        run.statements.write(sql, params![topic.0 => INT8])?;
    }
    // A process that was stopped meanwhile must not publish to the topic in its cache: a writer without its row
    // reads the topics again.
    run.statements.write("DELETE FROM abreast.writers WHERE set_id = 0", params![])?;
    Ok(Ok(true))
}

/// Deletes verifications of topics among the next ones. Returns the number of the last one; `None` at the end.
fn remove_verifications(
    run: &mut HubTransaction<'_>,
    urls: &[String],
    after: i64,
) -> Answer<Option<i64>> {
    const NEXT: &str =
        "SELECT shard, id, topic_url FROM abreast.verifications WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = run.statements.query(NEXT, &params![after => INT8, VERIFICATIONS => INT8])?;
    for row in &rows {
        let (shard, id): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
        let url: &str = row.try_get(2)?;
        if urls.iter().any(|removed| removed == url) {
            run.known.verifications -= 1;
            run.statements.write(
                "DELETE FROM abreast.verifications WHERE shard = $1 AND id = $2",
                params![shard => INT2, id => INT8],
            )?;
        }
    }
    let last = rows.last().filter(|_| rows.len() as i64 == VERIFICATIONS);
    Ok(Ok(last.map(|row| row.try_get(1)).transpose()?))
}

fn rename(run: &mut HubTransaction<'_>, old: &str, new: &str) -> Answer<bool> {
    const TOPIC: &str = "SELECT id FROM abreast.topics WHERE url_hash = $1";
    let found = run.statements.query_first(TOPIC, &params![url_hash(old) => BYTEA])?;
    let taken = run.statements.query_first(TOPIC, &params![url_hash(new) => BYTEA])?;
    let (Some(found), None) = (found, taken) else { return Ok(Ok(false)) };
    let id: i64 = found.try_get(0)?;
    run.statements.write(
        "UPDATE abreast.topics SET url = $2, url_hash = $3, revision = $4 WHERE id = $1",
        params![
            id => INT8, new.to_owned() => TEXT, url_hash(new) => BYTEA, run.known.revision => INT8,
        ],
    )?;
    Ok(Ok(true))
}
