//! Progress of targets, which is recorded without the lock of the hub.

use super::letters::{self, NewLetter};
use super::rows::{error_text, micros, shard_column};
use super::transaction::{Answer, HubTransaction, NodeLease};
use crate::postgres::failure::Failure;
use crate::postgres::values::params;
use abreast_core::hub::{ATTEMPTS_MAX, Attempt, Progress, TargetId};
use std::collections::{BTreeMap, HashMap};

/// The row of a target while its progress is decided.
struct Stored {
    generation: i64,
    cursor: i64,
    /// Number of the last failure that is stored.
    failures: i64,
    letters: i64,
    last_letter: i64,
    /// The last notification of the topic, if a node delivers: a database that lost notifications may
    /// be behind its progress.
    head: i64,
}

/// A failed attempt to be stored.
struct NewFailure<'p> {
    id: TargetId,
    row: i64,
    attempt: &'p Attempt,
    error: &'p str,
}

/// Changes that a batch of progress makes.
#[derive(Default)]
struct Decided<'p> {
    /// The last progress of each target that changes.
    last: BTreeMap<i64, &'p Progress>,
    /// The last success of each target.
    sent: BTreeMap<i64, &'p Attempt>,
    failures: Vec<NewFailure<'p>>,
    letters: Vec<NewLetter<'p>>,
    stale: Vec<TargetId>,
}

/// Records the progress of targets. Returns the targets whose progress was not recorded: they
/// ended, were renewed or replayed meanwhile, have a larger cursor, or belong to another node.
pub(crate) fn save(run: &mut HubTransaction<'_>, all: &[Progress]) -> Answer<Vec<TargetId>> {
    if run.node == Some(NodeLease::Over) {
        return Ok(Ok(all.iter().map(|one| one.id).collect()));
    }
    run.loaded.clear();
    let mut stored = read(run, all)?;
    let decided = decide(&mut stored, all);
    write(run, &stored, &decided)?;
    letters::add(run, &decided.letters)?;
    for (id, row) in &stored {
        if row.letters > abreast_core::hub::DEAD_LETTERS_MAX {
            letters::merge(run, TargetId(*id), row.letters)?;
        }
    }
    Ok(Ok(decided.stale))
}

/// Reads and locks the rows of targets.
fn read(run: &mut HubTransaction<'_>, all: &[Progress]) -> Result<HashMap<i64, Stored>, Failure> {
    let mut ids: Vec<i64> = all.iter().map(|one| one.id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    let shards: Vec<i16> = ids.iter().map(|id| shard_column(TargetId(*id))).collect();
    let node = match run.node {
        Some(NodeLease::Valid(node)) => Some(node),
        Some(NodeLease::Over) | None => None,
    };
    let rows = run.statements.query(
        "SELECT id, generation, cursor, failures, letters, last_letter, head FROM abreast.progress \
         JOIN unnest($1::smallint[], $2::bigint[]) AS wanted (shard, id) USING (shard, id) \
         JOIN (SELECT shard, id, topic_id FROM abreast.targets) AS target USING (shard, id) \
         JOIN (SELECT id AS topic_id, head FROM abreast.topics) AS topic USING (topic_id) \
         WHERE $3::bigint IS NULL \
         OR EXISTS (SELECT FROM abreast.hub_shards AS held WHERE held.shard = progress.shard AND owner = $3) \
         ORDER BY id FOR UPDATE OF progress",
        &params![shards => INT2_ARRAY, ids => INT8_ARRAY, node => INT8],
    )?;
    let stored = |row: &tokio_postgres::Row| {
        let stored = Stored {
            generation: row.try_get(1)?,
            cursor: row.try_get(2)?,
            failures: row.try_get(3)?,
            letters: row.try_get(4)?,
            last_letter: row.try_get(5)?,
            head: if node.is_some() { row.try_get(6)? } else { i64::MAX },
        };
        Ok((row.try_get(0)?, stored))
    };
    rows.iter().map(stored).collect()
}

/// Decides each progress in order, as if each was a transaction.
fn decide<'p>(stored: &mut HashMap<i64, Stored>, all: &'p [Progress]) -> Decided<'p> {
    let mut decided = Decided::default();
    for one in all {
        let row = stored.get_mut(&one.id.0).filter(|row| {
            let cursor = one.cursor.0 as i64;
            row.generation == one.generation as i64 && row.cursor <= cursor && cursor <= row.head
        });
        let Some(row) = row else {
            decided.stale.push(one.id);
            continue;
        };
        row.cursor = one.cursor.0 as i64;
        decided.last.insert(one.id.0, one);
        match &one.last {
            Some(attempt @ Attempt { error: Some(error), .. }) => {
                row.failures += 1;
                decided.failures.push(NewFailure { id: one.id, row: row.failures, attempt, error });
            }
            Some(sent) => drop(decided.sent.insert(one.id.0, sent)),
            None => {}
        }
        if let Some(letter) = &one.dead {
            row.letters += 1;
            row.last_letter += 1;
            decided.letters.push(NewLetter { id: one.id, row: row.last_letter, letter });
        }
    }
    decided
}

fn write(
    run: &mut HubTransaction<'_>,
    stored: &HashMap<i64, Stored>,
    decided: &Decided<'_>,
) -> Result<(), Failure> {
    if decided.last.is_empty() {
        return Ok(());
    }
    let most = abreast_core::hub::DEAD_LETTERS_MAX;
    let column = |value: &dyn Fn(&Stored) -> i64| -> Vec<i64> {
        decided.last.keys().map(|id| stored.get(id).map_or(0, value)).collect()
    };
    let last: Vec<&Progress> = decided.last.values().copied().collect();
    run.statements.write(
        "UPDATE abreast.progress AS old SET cursor = new.cursor, attempts = new.attempts, \
         first_failed = new.first_failed, next_at = new.next_at, failures = new.failures, letters = new.letters, \
         last_letter = new.last_letter \
         FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
         $8::bigint[], $9::bigint[]) \
         AS new (shard, id, cursor, attempts, first_failed, next_at, failures, letters, last_letter) \
         WHERE old.shard = new.shard AND old.id = new.id",
        params![
            last.iter().map(|one| shard_column(one.id)).collect::<Vec<_>>() => INT2_ARRAY,
            last.iter().map(|one| one.id.0).collect::<Vec<_>>() => INT8_ARRAY,
            last.iter().map(|one| one.cursor.0 as i64).collect::<Vec<_>>() => INT8_ARRAY,
            last.iter().map(|one| i64::from(one.attempts)).collect::<Vec<_>>() => INT8_ARRAY,
            last.iter().map(|one| micros(one.first_failed)).collect::<Vec<_>>() => INT8_ARRAY,
            last.iter().map(|one| micros(one.next_at)).collect::<Vec<_>>() => INT8_ARRAY,
            column(&|row| row.failures) => INT8_ARRAY,
            column(&|row| row.letters.min(most)) => INT8_ARRAY,
            column(&|row| row.last_letter) => INT8_ARRAY,
        ],
    )?;
    write_sent(run, &decided.sent)?;
    write_failures(run, &decided.failures)
}

fn write_sent(run: &mut HubTransaction<'_>, sent: &BTreeMap<i64, &Attempt>) -> Result<(), Failure> {
    if sent.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&Attempt) -> i64| -> Vec<i64> { sent.values().map(|one| value(one)).collect() };
    run.statements.write(
        "UPDATE abreast.progress AS old SET sent_offset = new.number, sent_number = new.attempt, sent_time = new.time, \
         sent_status = new.status, sent_micros = new.micros \
         FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[], $7::bigint[]) \
         AS new (shard, id, number, attempt, time, status, micros) WHERE old.shard = new.shard AND old.id = new.id",
        params![
            sent.keys().map(|id| shard_column(TargetId(*id))).collect::<Vec<_>>() => INT2_ARRAY,
            sent.keys().copied().collect::<Vec<_>>() => INT8_ARRAY,
            column(|one| one.offset.0 as i64) => INT8_ARRAY,
            column(|one| i64::from(one.number)) => INT8_ARRAY,
            column(|one| one.time.as_micros()) => INT8_ARRAY,
            sent.values().map(|one| one.status.map(i32::from)).collect::<Vec<_>>() => INT4_ARRAY,
            column(|one| one.took.as_micros() as i64) => INT8_ARRAY,
        ],
    )
}

/// Writes failures, and deletes the oldest failures of a target.
fn write_failures(
    run: &mut HubTransaction<'_>,
    failures: &[NewFailure<'_>],
) -> Result<(), Failure> {
    if failures.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&NewFailure<'_>) -> i64| -> Vec<i64> { failures.iter().map(value).collect() };
    let shards: Vec<i16> = failures.iter().map(|one| shard_column(one.id)).collect();
    run.statements.write(
        "INSERT INTO abreast.attempts (shard, id, row, cursor, number, time, status, error, micros) \
         SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
         $7::integer[], $8::text[], $9::bigint[])",
        params![
            shards.clone() => INT2_ARRAY,
            column(|one| one.id.0) => INT8_ARRAY,
            column(|one| one.row) => INT8_ARRAY,
            column(|one| one.attempt.offset.0 as i64) => INT8_ARRAY,
            column(|one| i64::from(one.attempt.number)) => INT8_ARRAY,
            column(|one| one.attempt.time.as_micros()) => INT8_ARRAY,
            failures.iter().map(|one| one.attempt.status.map(i32::from)).collect::<Vec<_>>() => INT4_ARRAY,
            failures.iter().map(|one| error_text(one.error)).collect::<Vec<_>>() => TEXT_ARRAY,
            column(|one| one.attempt.took.as_micros() as i64) => INT8_ARRAY,
        ],
    )?;
    run.statements.write(
        "DELETE FROM abreast.attempts AS old USING unnest($1::smallint[], $2::bigint[], $3::bigint[]) AS new (shard, id, row) \
         WHERE old.shard = new.shard AND old.id = new.id AND old.row <= new.row",
        params![
            shards => INT2_ARRAY,
            column(|one| one.id.0) => INT8_ARRAY,
            column(|one| one.row - ATTEMPTS_MAX) => INT8_ARRAY,
        ],
    )
}
