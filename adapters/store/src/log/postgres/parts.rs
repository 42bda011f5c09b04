//! Reads whose visitors stop when they want: a part at a time.

use crate::log::postgres::rows::read_change;
use crate::postgres::client::{Client, repeat};
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::{Param, params};
use abreast_core::{ChangeRecord, KeyRange, LogError, Position, SetId, Visit};
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Rows in the first part of a read.
const READ_FIRST: i64 = 32;
/// Most rows of a part, as a multiple of the rows in the part before: the second part completes a page with
/// a thousand changes.
const GROWTH: i64 = 32;
/// Most rows in a part of a read.
const READ_MAX: i64 = 5_000;
/// Bytes of the rows in a part, about; a part has [`READ_FIRST`] rows at least.
const READ_BYTES: i64 = 512 << 10;
/// Characters by which the index orders keys.
const ORDERED: usize = 500;
/// Parts that are read before a part is read ahead: most reads end earlier, also reads of a page with a
/// thousand changes. A read that stops waits until the part that is read ahead is there.
const READ_ALONE: usize = 2;

/// Reads parts until `read` returns `None` or a visit stops. After some parts, a thread reads the next
/// part while one is visited.
fn in_parts<E: Send>(
    mut read: impl FnMut() -> Result<Option<Vec<Row>>, E> + Send,
    mut visit: impl FnMut(Vec<Row>) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    for _ in 0..READ_ALONE {
        let Some(rows) = read()? else { return Ok(()) };
        if visit(rows)?.is_break() {
            return Ok(());
        }
    }
    std::thread::scope(|scope| {
        let (sender, parts) = sync_channel(0);
        scope.spawn(move || {
            while let Some(part) = read().transpose() {
                // A visit that stopped has dropped the receiver.
                if part.is_err() | sender.send(part).is_err() {
                    break;
                }
            }
        });
        for part in parts {
            if visit(part?)?.is_break() {
                break;
            }
        }
        Ok(())
    })
}

/// The number of rows in the next part, by the size of the rows in the last one.
fn next_size(last: i64, rows: &[Row]) -> i64 {
    let bytes: usize = rows.iter().map(Row::raw_size_bytes).sum();
    let within = (READ_BYTES * rows.len() as i64).checked_div(bytes as i64).unwrap_or(READ_MAX);
    (last * GROWTH).min(within).clamp(READ_FIRST, READ_MAX)
}

/// A statement that reads a part of the rows in a range of keys.
#[derive(Clone, Copy)]
pub(crate) struct Scan {
    /// Orders rows by the indexed characters of their keys.
    pub(crate) by_index: &'static str,
    /// Orders rows by their keys, at the cost of sorting.
    pub(crate) by_key: &'static str,
    /// Column of the key.
    pub(crate) key: usize,
}

/// Makes a [`Scan`] of these columns, of which this one is the key.
macro_rules! scan {
    ($columns:expr, $key:expr) => {{
        use crate::log::postgres::tables::key_range;
        crate::log::postgres::parts::Scan {
            by_index: concat!(
                "SELECT ",
                $columns,
                " FROM abreast.resources WHERE ",
                key_range!(),
                " ORDER BY left(key, 500) LIMIT $5"
            ),
            by_key: concat!(
                "SELECT ",
                $columns,
                " FROM abreast.resources WHERE ",
                key_range!(),
                " ORDER BY left(key, 500), key LIMIT $5"
            ),
            key: $key,
        }
    }};
}
pub(crate) use scan;

impl Scan {
    /// Reads a part. Only long keys can have equal indexed characters.
    fn read(&self, statements: &mut Statements<'_>, params: &[Param]) -> Result<Vec<Row>, Failure> {
        let rows = statements.query(self.by_index, params)?;
        for row in &rows {
            if row.try_get::<_, &str>(self.key)?.len() >= ORDERED {
                return statements.query(self.by_key, params);
            }
        }
        Ok(rows)
    }
}

impl Client {
    /// Visits the changes that a statement selects, a part at a time, up to a position.
    pub(crate) fn read_parts(
        &self,
        sql: &str,
        set: SetId,
        (mut after, until): (Position, Position),
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError> {
        const DOING: &str = "cannot read the log";
        let change = |row: &Row| read_change(row).map_err(|failure| failure.into_error(DOING));
        let (mut most, mut is_complete) = (READ_FIRST, false);
        let read = || {
            if is_complete || after >= until {
                return Ok(None);
            }
            let rows = self.query(
                DOING,
                sql,
                &[
                    (&set.0, Type::INT8),
                    (&(after.0 as i64), Type::INT8),
                    (&(until.0 as i64), Type::INT8),
                    (&most, Type::INT8),
                ],
            )?;
            is_complete = (rows.len() as i64) < most;
            if let Some(last) = rows.last() {
                after = change(last)?.position;
            }
            most = next_size(most, &rows);
            Ok(Some(rows))
        };
        in_parts(read, |rows| {
            for row in &rows {
                if visit(&change(row)?).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Visits rows of resources in a range of keys, all from one snapshot, a part at a time.
    pub(crate) fn scan_rows(
        &self,
        set: SetId,
        range: &KeyRange,
        scan: Scan,
        visit: &mut dyn FnMut(&Row) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), LogError> {
        let doing = "cannot read the resources";
        repeat(doing, || {
            let mut visited = false;
            match self.scan_parts(set, range, scan, &mut |row| {
                visited = true;
                visit(row)
            }) {
                // Visited rows cannot be visited again.
                Err(failure) if visited => Ok(Err(failure)),
                scanned => scanned.map(Ok),
            }
        })?
        .map_err(|failure| failure.into_error(doing))
    }

    /// Visits the rows in one transaction.
    fn scan_parts(
        &self,
        set: SetId,
        range: &KeyRange,
        scan: Scan,
        visit: &mut dyn FnMut(&Row) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        // No stored key has the character U+0000: bounds with it are between two possible keys.
        let (mut from, mut included) = match range.start.split_once('\0') {
            Some((before, _)) => (before.to_owned(), false),
            None => (range.start.clone(), true),
        };
        let end = range.end.as_ref().map(|end| match end.split_once('\0') {
            Some((before, _)) => format!("{before}\u{1}"),
            None => end.clone(),
        });
        let (mut most, mut is_complete) = (READ_FIRST, false);
        let mut statements = Statements::snapshot(self)?;
        let read = || -> Result<_, Failure> {
            if is_complete {
                return Ok(None);
            }
            let params = params![
                set.0 => INT8, from.clone() => TEXT, included => BOOL, end.clone() => TEXT, most => INT8,
            ];
            let rows = scan.read(&mut statements, &params)?;
            is_complete = (rows.len() as i64) < most;
            if let Some(last) = rows.last() {
                from = last.try_get(scan.key)?;
            }
            included = false;
            most = next_size(most, &rows);
            Ok(Some(rows))
        };
        let mut is_stopped = false;
        in_parts(read, |rows| {
            for row in &rows {
                if visit(row)?.is_break() {
                    is_stopped = true;
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !is_stopped {
            // All rows were visited, whatever the end of the transaction answers.
            drop(statements.commit());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_a_thousand_rows_reads_nothing_ahead() {
        const WANTED: i64 = 1_000;
        let (mut sizes, mut visited, mut last) = (vec![READ_FIRST], 0, READ_FIRST);
        while sizes.iter().sum::<i64>() < WANTED {
            last = next_size(last, &[]);
            sizes.push(last);
        }
        let mut reads = 0;
        let done = in_parts(
            || {
                reads += 1;
                Ok::<_, LogError>(Some(Vec::new()))
            },
            |_| {
                visited += 1;
                let is_last = visited == sizes.len();
                Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        );
        assert!(done.is_ok());
        assert_eq!(reads, sizes.len());
    }
}
