//! Dead letters: notifications that were given up.

use super::rows::{error_text, shard_column};
use super::transaction::HubTransaction;
use crate::postgres::failure::Failure;
use crate::postgres::values::params;
use abreast_core::hub::{ALL_DEAD_LETTERS_MAX, DEAD_LETTERS_MAX, DeadLetter, TargetId};

/// A dead letter to be stored.
pub(crate) struct NewLetter<'p> {
    pub(crate) id: TargetId,
    /// Number of its row among all letters to the target.
    pub(crate) row: i64,
    pub(crate) letter: &'p DeadLetter,
}

/// Writes dead letters. Now and then, the oldest of all are deleted if there are too many.
pub(crate) fn add(run: &mut HubTransaction<'_>, letters: &[NewLetter<'_>]) -> Result<(), Failure> {
    if letters.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&NewLetter<'_>) -> i64| -> Vec<i64> { letters.iter().map(value).collect() };
    run.statements.write(
        "INSERT INTO abreast.dead (shard, id, row, first, last, letters, error, time) \
         SELECT * FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
         $7::text[], $8::bigint[])",
        params![
            letters.iter().map(|one| shard_column(one.id)).collect::<Vec<_>>() => INT2_ARRAY,
            column(|one| one.id.0) => INT8_ARRAY,
            column(|one| one.row) => INT8_ARRAY,
            column(|one| one.letter.first.0 as i64) => INT8_ARRAY,
            column(|one| one.letter.last.0 as i64) => INT8_ARRAY,
            column(|one| one.letter.letters as i64) => INT8_ARRAY,
            letters.iter().map(|one| error_text(&one.letter.error)).collect::<Vec<_>>() => TEXT_ARRAY,
            column(|one| one.letter.time.as_micros()) => INT8_ARRAY,
        ],
    )
}

/// Merges the oldest dead letters of a target into one, so that [`DEAD_LETTERS_MAX`] are left.
pub(crate) fn merge(
    run: &mut HubTransaction<'_>,
    id: TargetId,
    letters: i64,
) -> Result<(), Failure> {
    run.statements.write(
        "WITH oldest AS (SELECT row, first, letters, row_number() OVER (ORDER BY first DESC, row DESC) AS place \
         FROM (SELECT row, first, letters FROM abreast.dead WHERE shard = $1 AND id = $2 \
         ORDER BY first, row LIMIT $3) AS part), \
         gone AS (DELETE FROM abreast.dead USING oldest WHERE shard = $1 AND id = $2 AND dead.row = oldest.row \
         AND place > 1) \
         UPDATE abreast.dead SET first = (SELECT min(first) FROM oldest), letters = (SELECT sum(letters) FROM oldest) \
         WHERE shard = $1 AND id = $2 AND row = (SELECT row FROM oldest WHERE place = 1)",
        params![
            shard_column(id) => INT2, id.0 => INT8, letters - DEAD_LETTERS_MAX + 1 => INT8,
        ],
    )
}

/// Deletes the oldest dead letters of all targets, at most `limit`, if there are more than
/// [`ALL_DEAD_LETTERS_MAX`]. Counts of targets become too large by this, which merges earlier.
pub(crate) fn delete_oldest(run: &mut HubTransaction<'_>, limit: i64) -> Result<(), Failure> {
    run.statements.write(
        "DELETE FROM abreast.dead USING (SELECT shard, id, row FROM abreast.dead ORDER BY time \
         LIMIT least($2, greatest(0, (SELECT count(*) FROM abreast.dead) - $1))) AS oldest \
         WHERE dead.shard = oldest.shard AND dead.id = oldest.id AND dead.row = oldest.row",
        params![ALL_DEAD_LETTERS_MAX => INT8, limit => INT8],
    )
}
