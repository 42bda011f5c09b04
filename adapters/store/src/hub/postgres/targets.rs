//! Targets of notifications: creation, renewal and end.

use super::rows::{
    count, micros, numbered, offset, read_kind, read_target, shard_column, shard_of,
    target_columns, target_page, time, unknown, url_hash,
};
use super::topics::{each, limit_column};
use super::transaction::{Answer, HubTransaction, check_texts, next_number};
use crate::hub::numbers::{ending_number, ending_of, kind_number};
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::values::params;
use abreast_core::hub::{
    Attempt, DeadLetter, ENDED_MAX, EndedTarget, Ending, NewTarget, Target, TargetId, TargetKind,
    check_target, no_topic,
};
use abreast_core::{LogError, Offset, TopicId};
use abreast_webtypes::Timestamp;
use std::time::Duration;
use tokio_postgres::types::Type;

const BY_ID: &str = concat!(target_columns!(), " WHERE shard = $1 AND id = $2");
const BY_ADDRESS: &str = concat!(
    target_columns!(),
    " WHERE shard = $1 AND address_hash = $2 AND topic_id = $3 AND kind = $4"
);

/// Creates or renews a target. A renewal replaces secret and lease, and does not change the cursor.
pub(crate) fn put(run: &mut HubTransaction<'_>, new: &NewTarget) -> Answer<Target> {
    if let Err(refused) = check_target(new).and_then(|()| check_texts([&*new.address])) {
        return Ok(Err(refused));
    }
    let Some(state) = run.known.topics.get(&new.topic).copied() else {
        return Ok(Err(no_topic(new.topic)));
    };
    let secret = new.secret.as_ref().map(|secret| secret.0.to_vec());
    let HubTransaction { statements, loaded, .. } = run;
    if let Some(known) = loaded.find(statements, new.topic, &new.address, new.kind)? {
        let target = Target {
            secret: new.secret.clone(),
            lease_until: new.lease_until,
            generation: known.generation + 1,
            // A renewal resets the failed attempts.
            next_at: None,
            ..known
        };
        let (shard, id) = (shard_column(target.id), target.id.0);
        run.statements.write(
            "UPDATE abreast.targets SET secret = $3, lease_until = $4, revision = $5 WHERE shard = $1 AND id = $2",
            params![
                shard => INT2, id => INT8, secret => BYTEA, micros(new.lease_until) => INT8,
                run.known.revision => INT8,
            ],
        )?;
        run.statements.write(
            "UPDATE abreast.progress SET generation = $3, next_at = NULL WHERE shard = $1 AND id = $2",
            params![shard => INT2, id => INT8, target.generation as i64 => INT8],
        )?;
        run.loaded.put(target.clone());
        return Ok(Ok(target));
    }
    run.known.last_target = next_number(run.known.last_target);
    run.known.targets += 1;
    let shard = shard_of(&new.address);
    let target = Target {
        id: TargetId(numbered(run.known.last_target, shard)),
        topic: new.topic,
        kind: new.kind,
        address: new.address.clone(),
        secret: new.secret.clone(),
        lease_until: new.lease_until,
        cursor: Offset(new.cursor.map_or(state.head, |cursor| cursor.0.min(state.head))),
        generation: 1,
        created: run.now,
        attempts: 0,
        first_failed: None,
        next_at: None,
    };
    run.statements.write(
        "INSERT INTO abreast.targets (shard, id, topic_id, kind, address_hash, address, secret, lease_until, created, \
         revision, replayed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0)",
        params![
            shard.0 as i16 => INT2, target.id.0 => INT8, target.topic.0 => INT8,
            kind_number(target.kind) as i16 => INT2, url_hash(&target.address) => BYTEA,
            target.address.clone() => TEXT, secret => BYTEA, micros(target.lease_until) => INT8,
            target.created.as_micros() => INT8, run.known.revision => INT8,
        ],
    )?;
    run.statements.write(
        "INSERT INTO abreast.progress (shard, id, generation, cursor, attempts) VALUES ($1, $2, 1, $3, 0)",
        params![shard.0 as i16 => INT2, target.id.0 => INT8, target.cursor.0 as i64 => INT8],
    )?;
    run.loaded.put(target.clone());
    Ok(Ok(target))
}

/// Ends a target, and removes its data except the row in the list of ended targets. Returns whether
/// it existed.
pub(crate) fn end(
    run: &mut HubTransaction<'_>,
    id: TargetId,
    why: Ending,
) -> Result<bool, Failure> {
    if run.loaded.target(&mut run.statements, id)?.is_none() {
        return Ok(false);
    }
    run.loaded.remove(id);
    run.known.last_ended += 1;
    run.known.targets -= 1;
    let (shard, number) = (shard_column(id), run.known.last_ended);
    run.statements.write(
        "WITH target AS (DELETE FROM abreast.targets WHERE shard = $1 AND id = $2 \
         RETURNING id, topic_id, kind, address, created), \
         progress AS (DELETE FROM abreast.progress WHERE shard = $1 AND id = $2 RETURNING id, cursor) \
         INSERT INTO abreast.ended (number, id, topic_id, kind, address, why, cursor, created, time, revision) \
         SELECT $3, id, topic_id, kind, address, $4, cursor, created, $5, $6 FROM target JOIN progress USING (id)",
        params![
            shard => INT2, id.0 => INT8, number => INT8, ending_number(why) as i16 => INT2,
            run.now.as_micros() => INT8, run.known.revision => INT8,
        ],
    )?;
    for sql in [
        "DELETE FROM abreast.attempts WHERE shard = $1 AND id = $2",
        "DELETE FROM abreast.dead WHERE shard = $1 AND id = $2",
    ] {
        run.statements.write(sql, params![shard => INT2, id.0 => INT8])?;
    }
    Ok(true)
}

/// Deletes the oldest ended targets, so that [`ENDED_MAX`] are left.
pub(crate) fn trim_ended(run: &mut HubTransaction<'_>) -> Result<(), Failure> {
    run.statements.write(
        "DELETE FROM abreast.ended WHERE number <= $1",
        params![run.known.last_ended - ENDED_MAX => INT8],
    )
}

/// Sets a cursor back, or forward, within the stored notifications.
pub(crate) fn replay(
    run: &mut HubTransaction<'_>,
    id: TargetId,
    to: Offset,
) -> Result<Option<Target>, Failure> {
    let HubTransaction { statements, loaded, .. } = run;
    let Some(known) = loaded.target(statements, id)? else { return Ok(None) };
    let (shard, id) = (shard_column(id), id.0);
    let head = run.known.topics.get(&known.topic).map_or(0, |state| state.head);
    let target = Target {
        cursor: Offset(to.0.min(head)),
        generation: known.generation + 1,
        attempts: 0,
        first_failed: None,
        next_at: None,
        ..known
    };
    run.statements.write(
        "UPDATE abreast.progress SET generation = $3, cursor = $4, attempts = 0, first_failed = NULL, next_at = NULL \
         WHERE shard = $1 AND id = $2",
        params![
            shard => INT2, id => INT8, target.generation as i64 => INT8, target.cursor.0 as i64 => INT8,
        ],
    )?;
    run.statements.write(
        "UPDATE abreast.targets SET revision = $3, replayed = $3 WHERE shard = $1 AND id = $2",
        params![shard => INT2, id => INT8, run.known.revision => INT8],
    )?;
    run.loaded.put(target.clone());
    Ok(Some(target))
}

pub(crate) fn one(client: &Client, id: TargetId) -> Result<Option<Target>, LogError> {
    let rows = client.query(
        "cannot read a target",
        BY_ID,
        &[(&shard_column(id), Type::INT2), (&id.0, Type::INT8)],
    )?;
    each("cannot read a target", &rows, read_target).map(|mut found| found.pop())
}

pub(crate) fn find(
    client: &Client,
    topic: TopicId,
    address: &str,
    kind: TargetKind,
) -> Result<Option<Target>, LogError> {
    let rows = client.query(
        "cannot find a target",
        BY_ADDRESS,
        &[
            (&(shard_of(address).0 as i16), Type::INT2),
            (&url_hash(address), Type::BYTEA),
            (&topic.0, Type::INT8),
            (&(kind_number(kind) as i16), Type::INT2),
        ],
    )?;
    each("cannot find a target", &rows, read_target).map(|mut found| found.pop())
}

pub(crate) fn page(
    client: &Client,
    after: TargetId,
    limit: usize,
) -> Result<Vec<Target>, LogError> {
    const SQL: &str = target_page!("id > $1 ORDER BY id LIMIT $2");
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&after.0, Type::INT8), (&limit_column(limit), Type::INT8)];
    each(
        "cannot read the targets",
        &client.query("cannot read the targets", SQL, &params)?,
        read_target,
    )
}

pub(crate) fn page_of(
    client: &Client,
    topic: TopicId,
    after: TargetId,
    limit: usize,
) -> Result<Vec<Target>, LogError> {
    const SQL: &str = target_page!("topic_id = $1 AND id > $2 ORDER BY id LIMIT $3");
    let rows = client.query(
        "cannot read the targets",
        SQL,
        &[(&topic.0, Type::INT8), (&after.0, Type::INT8), (&limit_column(limit), Type::INT8)],
    )?;
    each("cannot read the targets", &rows, read_target)
}

pub(crate) fn leases_over(
    client: &Client,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<TargetId>, LogError> {
    let rows = client.query(
        "cannot read the leases",
        "SELECT id FROM abreast.targets WHERE lease_until <= $1 ORDER BY lease_until, id LIMIT $2",
        &[(&now.as_micros(), Type::INT8), (&limit_column(limit), Type::INT8)],
    )?;
    each("cannot read the leases", &rows, |row| Ok(TargetId(row.try_get(0)?)))
}

/// The last success and the last failures, the newest first.
pub(crate) fn attempts(client: &Client, id: TargetId) -> Result<Vec<Attempt>, LogError> {
    const DOING: &str = "cannot read attempts";
    let rows = client.query(
        DOING,
        "SELECT sent_offset, sent_number, sent_time, sent_status, NULL::text, sent_micros FROM abreast.progress \
         WHERE shard = $1 AND id = $2 AND sent_time IS NOT NULL UNION ALL \
         SELECT cursor, number, time, status, error, micros FROM abreast.attempts WHERE shard = $1 AND id = $2",
        &[(&shard_column(id), Type::INT2), (&id.0, Type::INT8)],
    )?;
    let mut attempts = each(DOING, &rows, |row| {
        Ok(Attempt {
            offset: offset(row, 0)?,
            number: count(row, 1)?,
            time: time(row, 2)?,
            status: row.try_get::<_, Option<i32>>(3)?.and_then(|status| u16::try_from(status).ok()),
            error: row.try_get(4)?,
            took: Duration::from_micros(row.try_get::<_, i64>(5)? as u64),
        })
    })?;
    attempts.sort_by_key(|attempt| std::cmp::Reverse(attempt.time));
    Ok(attempts)
}

pub(crate) fn dead(
    client: &Client,
    id: TargetId,
    after: Offset,
    limit: usize,
) -> Result<Vec<DeadLetter>, LogError> {
    const DOING: &str = "cannot read dead letters";
    let rows = client.query(
        DOING,
        "SELECT first, last, letters, error, time FROM abreast.dead WHERE shard = $1 AND id = $2 AND first > $3 \
         ORDER BY first, row LIMIT $4",
        &[
            (&shard_column(id), Type::INT2),
            (&id.0, Type::INT8),
            (&(after.0 as i64), Type::INT8),
            (&limit_column(limit), Type::INT8),
        ],
    )?;
    each(DOING, &rows, |row| {
        Ok(DeadLetter {
            first: offset(row, 0)?,
            last: offset(row, 1)?,
            letters: row.try_get::<_, i64>(2)? as u64,
            error: row.try_get(3)?,
            time: time(row, 4)?,
        })
    })
}

pub(crate) fn ended(
    client: &Client,
    before: i64,
    limit: usize,
) -> Result<Vec<EndedTarget>, LogError> {
    const DOING: &str = "cannot read ended targets";
    let rows = client.query(
        DOING,
        "SELECT number, id, topic_id, kind, address, why, cursor, created, time FROM abreast.ended WHERE number < $1 \
         ORDER BY number DESC LIMIT $2",
        &[(&before, Type::INT8), (&limit_column(limit), Type::INT8)],
    )?;
    each(DOING, &rows, |row| {
        let why: i16 = row.try_get(5)?;
        Ok(EndedTarget {
            number: row.try_get(0)?,
            id: TargetId(row.try_get(1)?),
            topic: TopicId(row.try_get(2)?),
            kind: read_kind(row, 3)?,
            address: row.try_get(4)?,
            why: ending_of(i64::from(why)).ok_or_else(|| unknown("reason of an end", why))?,
            cursor: offset(row, 6)?,
            created: time(row, 7)?,
            time: time(row, 8)?,
        })
    })
}
