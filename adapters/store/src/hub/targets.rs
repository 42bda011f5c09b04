//! Targets of notifications and their progress: tables.

use super::numbers::{cut, ending_number, ending_of, kind_number, kind_of};
use super::transaction::{Answer, HubTransaction, WriterState};
use crate::database::sum::Sum;
use abreast_core::hub::{
    ALL_DEAD_LETTERS_MAX, ATTEMPTS_MAX, Attempt, DEAD_LETTERS_MAX, DeadLetter, ENDED_MAX,
    EndedTarget, Ending, NewTarget, Progress, Secret, Target, TargetId, TargetKind, check_target,
    no_topic,
};
use abreast_core::{Offset, TopicId};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::time::Duration;

const TARGET: &str = "SELECT id, topic_id, kind, address, secret, lease_until, created, targets.sum, \
                      generation, cursor, attempts, first_failed, next_at, progress.sum \
                      FROM targets JOIN progress ON target_id = id";

pub(crate) fn one(connection: &Connection, id: TargetId) -> rusqlite::Result<Option<Target>> {
    connection
        .prepare_cached(&format!("{TARGET} WHERE id = ?1"))?
        .query_row([id.0], read_target)
        .optional()
}

pub(crate) fn find(
    connection: &Connection,
    topic: TopicId,
    address: &str,
    kind: TargetKind,
) -> rusqlite::Result<Option<Target>> {
    connection
        .prepare_cached(&format!("{TARGET} WHERE topic_id = ?1 AND address = ?2 AND kind = ?3"))?
        .query_row(params![topic.0, address, kind_number(kind)], read_target)
        .optional()
}

pub(crate) fn page(
    connection: &Connection,
    after: TargetId,
    limit: usize,
) -> rusqlite::Result<Vec<Target>> {
    let mut statement =
        connection.prepare_cached(&format!("{TARGET} WHERE id > ?1 ORDER BY id LIMIT ?2"))?;
    statement.query_map(params![after.0, limit as i64], read_target)?.collect()
}

pub(crate) fn page_of(
    connection: &Connection,
    topic: TopicId,
    after: TargetId,
    limit: usize,
) -> rusqlite::Result<Vec<Target>> {
    let mut statement = connection.prepare_cached(&format!(
        "{TARGET} WHERE topic_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3"
    ))?;
    statement.query_map(params![topic.0, after.0, limit as i64], read_target)?.collect()
}

fn read_target(row: &Row<'_>) -> rusqlite::Result<Target> {
    let secret: Option<Vec<u8>> = row.get(4)?;
    let target = Target {
        id: TargetId(row.get(0)?),
        topic: TopicId(row.get(1)?),
        kind: read_kind(row, 2)?,
        address: row.get(3)?,
        secret: secret.map(Secret::from),
        lease_until: instant(row, 5)?,
        created: Timestamp::from_micros(row.get(6)?),
        generation: row.get::<_, i64>(8)? as u64,
        cursor: Offset(row.get::<_, i64>(9)? as u64),
        attempts: row.get(10)?,
        first_failed: instant(row, 11)?,
        next_at: instant(row, 12)?,
    };
    if target_sum(&target) != row.get::<_, i64>(7)? {
        return Err(crate::database::sum::damaged(7));
    }
    if ProgressColumns::of(&target).sum(target.id) != row.get::<_, i64>(13)? {
        return Err(crate::database::sum::damaged(13));
    }
    Ok(target)
}

fn read_kind(row: &Row<'_>, column: usize) -> rusqlite::Result<TargetKind> {
    let number: i64 = row.get(column)?;
    kind_of(number).ok_or_else(|| crate::database::sum::damaged(column))
}

fn instant(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_micros))
}

fn micros(instant: Option<Timestamp>) -> Option<i64> {
    instant.map(Timestamp::as_micros)
}

/// The checksum of a target, without its progress.
pub(crate) fn target_sum(target: &Target) -> i64 {
    let mut sum = Sum::default();
    sum.number(Some(target.id.0));
    sum.number(Some(target.topic.0));
    sum.number(Some(kind_number(target.kind)));
    sum.bytes(Some(target.address.as_bytes()));
    sum.bytes(target.secret.as_ref().map(|secret| &*secret.0));
    sum.number(micros(target.lease_until));
    sum.number(Some(target.created.as_micros()));
    sum.finish()
}

/// The columns of `progress` that its checksum covers.
#[derive(Clone, Copy)]
pub(crate) struct ProgressColumns {
    generation: u64,
    cursor: Offset,
    attempts: u32,
    first_failed: Option<Timestamp>,
    next_at: Option<Timestamp>,
}

impl ProgressColumns {
    /// Progress of a target without failures at this cursor.
    pub(crate) const fn at(cursor: Offset) -> Self {
        Self { generation: 1, cursor, attempts: 0, first_failed: None, next_at: None }
    }

    pub(crate) const fn of(target: &Target) -> Self {
        Self {
            generation: target.generation,
            cursor: target.cursor,
            attempts: target.attempts,
            first_failed: target.first_failed,
            next_at: target.next_at,
        }
    }

    pub(crate) fn put(self, connection: &Connection, id: TargetId) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO progress (target_id, generation, cursor, attempts, first_failed, next_at, sum) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (target_id) DO UPDATE SET generation = ?2, \
                 cursor = ?3, attempts = ?4, first_failed = ?5, next_at = ?6, sum = ?7",
            )?
            .execute(params![
                id.0,
                self.generation as i64,
                self.cursor.0 as i64,
                self.attempts,
                micros(self.first_failed),
                micros(self.next_at),
                self.sum(id)
            ])?;
        Ok(())
    }

    /// The checksum of the progress.
    pub(crate) fn sum(self, id: TargetId) -> i64 {
        let mut sum = Sum::default();
        sum.number(Some(id.0));
        sum.number(Some(self.generation as i64));
        sum.number(Some(self.cursor.0 as i64));
        sum.number(Some(i64::from(self.attempts)));
        sum.number(micros(self.first_failed));
        sum.number(micros(self.next_at));
        sum.finish()
    }
}

/// Creates or renews a target. A renewal replaces secret and lease, and does not change the cursor.
pub(crate) fn put(run: &mut HubTransaction<'_>, new: &NewTarget) -> Answer<Target> {
    if let Err(refused) = check_target(new) {
        return Ok(Err(refused));
    }
    let HubTransaction { connection, known, now } = run;
    let Some(state) = known.topics.get(&new.topic) else { return Ok(Err(no_topic(new.topic))) };
    let mut target = match find(connection, new.topic, &new.address, new.kind)? {
        Some(known) => Target {
            secret: new.secret.clone(),
            lease_until: new.lease_until,
            generation: known.generation + 1,
            // A renewal resets the failed attempts.
            next_at: None,
            ..known
        },
        None => Target {
            id: TargetId(0),
            topic: new.topic,
            kind: new.kind,
            address: new.address.clone(),
            secret: new.secret.clone(),
            lease_until: new.lease_until,
            cursor: Offset(new.cursor.map_or(state.head, |cursor| cursor.0.min(state.head))),
            generation: 1,
            created: *now,
            attempts: 0,
            first_failed: None,
            next_at: None,
        },
    };
    if target.id == TargetId(0) {
        connection
            .prepare_cached("INSERT INTO targets (topic_id, kind, address, created, sum) VALUES (?1, ?2, ?3, ?4, 0)")?
            .execute(params![target.topic.0, kind_number(target.kind), target.address, target.created.as_micros()])?;
        target.id = TargetId(connection.last_insert_rowid());
    }
    connection
        .prepare_cached("UPDATE targets SET secret = ?2, lease_until = ?3, sum = ?4 WHERE id = ?1")?
        .execute(params![
            target.id.0,
            target.secret.as_ref().map(|secret| &*secret.0),
            micros(target.lease_until),
            target_sum(&target)
        ])?;
    ProgressColumns::of(&target).put(connection, target.id)?;
    Ok(Ok(target))
}

/// Ends a target, and removes its data except the row in the list of ended targets. Returns whether
/// it existed.
pub(crate) fn end(
    run: &mut HubTransaction<'_>,
    id: TargetId,
    why: Ending,
) -> rusqlite::Result<bool> {
    let HubTransaction { connection, known, now } = run;
    let noted = connection
        .prepare_cached(
            "INSERT INTO ended (target_id, topic_id, kind, address, why, cursor, created, time) \
             SELECT id, topic_id, kind, address, ?2, cursor, created, ?3 FROM targets JOIN progress ON target_id = id \
             WHERE id = ?1",
        )?
        .execute(params![id.0, ending_number(why), now.as_micros()])?;
    if noted == 0 {
        return Ok(false);
    }
    let kept_after = connection.last_insert_rowid() - ENDED_MAX;
    connection.prepare_cached("DELETE FROM ended WHERE id <= ?1")?.execute([kept_after])?;
    for sql in [
        "DELETE FROM targets WHERE id = ?1",
        "DELETE FROM progress WHERE target_id = ?1",
        "DELETE FROM attempts WHERE target_id = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([id.0])?;
    }
    let letters =
        connection.prepare_cached("DELETE FROM dead WHERE target_id = ?1")?.execute([id.0])?;
    known.dead_letters -= letters as i64;
    Ok(true)
}

/// Records the progress of targets. Returns the targets whose progress was not recorded: they
/// ended, were renewed or replayed meanwhile, or have a larger cursor.
pub(crate) fn save_progress(
    run: &mut HubTransaction<'_>,
    all: &[Progress],
) -> Answer<Vec<TargetId>> {
    let HubTransaction { connection, known, .. } = run;
    let mut update = connection.prepare_cached(
        "UPDATE progress SET cursor = ?3, attempts = ?4, first_failed = ?5, next_at = ?6, sum = ?7 \
         WHERE target_id = ?1 AND generation = ?2 AND cursor <= ?3",
    )?;
    let mut update_sent = connection.prepare_cached(
        "UPDATE progress SET cursor = ?3, attempts = ?4, first_failed = ?5, next_at = ?6, sum = ?7, \
         sent_offset = ?8, sent_number = ?9, sent_time = ?10, sent_status = ?11, sent_micros = ?12 \
         WHERE target_id = ?1 AND generation = ?2 AND cursor <= ?3",
    )?;
    let mut stale = Vec::new();
    for one in all {
        let standing = ProgressColumns {
            generation: one.generation,
            cursor: one.cursor,
            attempts: one.attempts,
            first_failed: one.first_failed,
            next_at: one.next_at,
        };
        let (id, generation, cursor) = (one.id.0, one.generation as i64, one.cursor.0 as i64);
        let (first_failed, next_at) = (micros(one.first_failed), micros(one.next_at));
        let sum = standing.sum(one.id);
        let changed = match &one.last {
            Some(sent) if sent.error.is_none() => update_sent.execute(params![
                id,
                generation,
                cursor,
                one.attempts,
                first_failed,
                next_at,
                sum,
                sent.offset.0 as i64,
                sent.number,
                sent.time.as_micros(),
                sent.status,
                sent.took.as_micros() as i64
            ])?,
            _ => update.execute(params![
                id,
                generation,
                cursor,
                one.attempts,
                first_failed,
                next_at,
                sum
            ])?,
        };
        if changed == 0 {
            stale.push(one.id);
            continue;
        }
        if let Some(Attempt { error: Some(error), .. }) = &one.last {
            note_failure(connection, one, error)?;
        }
        if let Some(letter) = &one.dead {
            add_dead_letter(connection, known, one.id, letter)?;
        }
    }
    Ok(Ok(stale))
}

fn note_failure(connection: &Connection, one: &Progress, error: &str) -> rusqlite::Result<()> {
    let Some(attempt) = &one.last else { return Ok(()) };
    let seq: i64 = connection
        .prepare_cached("SELECT ifnull(max(seq), 0) + 1 FROM attempts WHERE target_id = ?1")?
        .query_row([one.id.0], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT INTO attempts (target_id, seq, offset, number, time, status, error, micros) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            one.id.0,
            seq,
            attempt.offset.0 as i64,
            attempt.number,
            attempt.time.as_micros(),
            attempt.status,
            cut(error),
            attempt.took.as_micros() as i64
        ])?;
    connection
        .prepare_cached("DELETE FROM attempts WHERE target_id = ?1 AND seq <= ?2")?
        .execute([one.id.0, seq - ATTEMPTS_MAX])?;
    Ok(())
}

fn add_dead_letter(
    connection: &Connection,
    known: &mut WriterState,
    id: TargetId,
    letter: &DeadLetter,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO dead (target_id, first, last, letters, error, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            id.0,
            letter.first.0 as i64,
            letter.last.0 as i64,
            letter.letters as i64,
            cut(&letter.error),
            letter.time.as_micros()
        ])?;
    let kept: i64 = connection
        .prepare_cached("SELECT count(*) FROM dead WHERE target_id = ?1")?
        .query_row([id.0], |row| row.get(0))?;
    if kept > DEAD_LETTERS_MAX {
        // Merge the two oldest dead letters.
        let mut oldest = connection.prepare_cached(
            "SELECT id, first, letters FROM dead WHERE target_id = ?1 ORDER BY first, id LIMIT 2",
        )?;
        let two: Vec<(i64, i64, i64)> = oldest
            .query_map([id.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if let [(gone, first, letters), (stays, ..)] = two[..] {
            connection.prepare_cached("DELETE FROM dead WHERE id = ?1")?.execute([gone])?;
            connection
                .prepare_cached("UPDATE dead SET first = ?2, letters = letters + ?3 WHERE id = ?1")?
                .execute([stays, first, letters])?;
            known.dead_letters -= 1;
        }
    }
    known.dead_letters += 1;
    if known.dead_letters > ALL_DEAD_LETTERS_MAX {
        let gone = connection
            .prepare_cached(
                "DELETE FROM dead WHERE id IN (SELECT id FROM dead ORDER BY id LIMIT ?1)",
            )?
            .execute([known.dead_letters - ALL_DEAD_LETTERS_MAX])?;
        known.dead_letters -= gone as i64;
    }
    Ok(())
}

/// Sets a cursor back, or forward, within the stored notifications.
pub(crate) fn replay(
    run: &mut HubTransaction<'_>,
    id: TargetId,
    to: Offset,
) -> rusqlite::Result<Option<Target>> {
    let connection = run.connection;
    let Some(known) = one(connection, id)? else { return Ok(None) };
    let head = run.known.topics.get(&known.topic).map_or(0, |state| state.head);
    let target = Target {
        cursor: Offset(to.0.min(head)),
        generation: known.generation + 1,
        attempts: 0,
        first_failed: None,
        next_at: None,
        ..known
    };
    ProgressColumns::of(&target).put(connection, id)?;
    Ok(Some(target))
}

/// The last success, then failures, the newest first.
pub(crate) fn attempts(connection: &Connection, id: TargetId) -> rusqlite::Result<Vec<Attempt>> {
    let mut statement = connection.prepare_cached(
        "SELECT sent_offset, sent_number, sent_time, sent_status, NULL, sent_micros, 0 AS seq FROM progress \
         WHERE target_id = ?1 AND sent_time IS NOT NULL UNION ALL \
         SELECT offset, number, time, status, error, micros, seq FROM attempts WHERE target_id = ?1",
    )?;
    let mut attempts: Vec<Attempt> = statement
        .query_map([id.0], |row| {
            Ok(Attempt {
                offset: Offset(row.get::<_, i64>(0)? as u64),
                number: row.get(1)?,
                time: Timestamp::from_micros(row.get(2)?),
                status: row.get(3)?,
                error: row.get(4)?,
                took: Duration::from_micros(row.get::<_, i64>(5)? as u64),
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    attempts.sort_by_key(|attempt| std::cmp::Reverse(attempt.time));
    Ok(attempts)
}

pub(crate) fn dead(
    connection: &Connection,
    id: TargetId,
    after: Offset,
    limit: usize,
) -> rusqlite::Result<Vec<DeadLetter>> {
    let mut statement = connection.prepare_cached(
        "SELECT first, last, letters, error, time FROM dead WHERE target_id = ?1 AND first > ?2 \
         ORDER BY first, id LIMIT ?3",
    )?;
    let letters = statement.query_map(params![id.0, after.0 as i64, limit as i64], |row| {
        Ok(DeadLetter {
            first: Offset(row.get::<_, i64>(0)? as u64),
            last: Offset(row.get::<_, i64>(1)? as u64),
            letters: row.get::<_, i64>(2)? as u64,
            error: row.get(3)?,
            time: Timestamp::from_micros(row.get(4)?),
        })
    })?;
    letters.collect()
}

pub(crate) fn count_dead(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT count(*) FROM dead")?.query_row([], |row| row.get(0))
}

pub(crate) fn ended(
    connection: &Connection,
    before: i64,
    limit: usize,
) -> rusqlite::Result<Vec<EndedTarget>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, target_id, topic_id, kind, address, why, cursor, created, time FROM ended WHERE id < ?1 \
         ORDER BY id DESC LIMIT ?2",
    )?;
    let ended = statement.query_map(params![before, limit as i64], |row| {
        let why: i64 = row.get(5)?;
        Ok(EndedTarget {
            number: row.get(0)?,
            id: TargetId(row.get(1)?),
            topic: TopicId(row.get(2)?),
            kind: read_kind(row, 3)?,
            address: row.get(4)?,
            why: ending_of(why).ok_or_else(|| crate::database::sum::damaged(5))?,
            cursor: Offset(row.get::<_, i64>(6)? as u64),
            created: Timestamp::from_micros(row.get(7)?),
            time: Timestamp::from_micros(row.get(8)?),
        })
    })?;
    ended.collect()
}

pub(crate) fn ids_of(connection: &Connection, topic: TopicId) -> rusqlite::Result<Vec<TargetId>> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM targets WHERE topic_id = ?1 ORDER BY id")?;
    statement.query_map([topic.0], |row| row.get(0).map(TargetId))?.collect()
}

pub(crate) fn leases_over(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<TargetId>> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM targets WHERE lease_until <= ?1 ORDER BY lease_until, id LIMIT ?2",
    )?;
    statement
        .query_map(params![now.as_micros(), limit as i64], |row| row.get(0).map(TargetId))?
        .collect()
}

pub(crate) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached("SELECT count(*) FROM progress")?;
    statement.query_row([], |row| row.get::<_, i64>(0)).map(|count| count as u64)
}
