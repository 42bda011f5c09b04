//! The plan: pending actions, failures, and the temporary tables for making a plan.

use super::access::read_access;
use super::planned::{
    ChangeOrder, ChangesDue, Coming, Deprecated, Pending, PendingAction, PendingCounts,
    PendingState, PlanSummary, Task,
};
use super::rows::{COLUMNS, Row, read_row};
use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::params;

const ITEM: &str = "p.uri, p.action, p.modified, p.length, p.digests, p.unknown, p.changed, p.attempts, p.via, p.body";
/// Index of the first column of the copy's row, after the columns of an item.
const KEPT: usize = 10;
/// Index of the first column with the access of a noted change, after the columns of a row.
const COMING_ACCESS: usize = 20;
const COMING_TIME: usize = 23;

impl Mirror {
    /// Plans one item, replacing an earlier item with the same URI. If the expected properties are
    /// unchanged, the count of failed attempts remains. A fetch that failed in this run is left to
    /// the next run if it is for the same change.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_pending(&self, item: &Pending) -> Result<(), LogError> {
        let same_access = self.access(&item.uri)?.as_deref() == item.access.as_deref();
        self.connection
            .prepare_cached(
                "INSERT INTO pending (uri, action, modified, length, digests, unknown, changed, state, attempts, via, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0, ?8, ?10)
                 ON CONFLICT DO UPDATE SET
                    attempts = iif(?9 AND action IS ?2 AND modified IS ?3 AND length IS ?4 AND digests IS ?5, attempts, 0),
                    action = ?2, modified = ?3, length = ?4, digests = ?5, unknown = ?6, changed = ?7,
                    state = iif(?9 AND action IS ?2 AND modified IS ?3 AND length IS ?4 AND digests IS ?5
                        AND ?2 = 0 AND changed = ?7 AND state = 1, 1, 0),
                    via = ?8, body = ?10",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    item.uri,
                    item.action as i64,
                    item.modified,
                    item.length.map(|length| length as i64),
                    item.digests,
                    item.unknown,
                    item.changed,
                    item.via,
                    same_access,
                    item.body.map(|offset| offset as i64)
                ])
            })
            .map_err(failed(WRITE))?;
        if item.action.is_deletion() {
            // The access may be needed again until the deletion.
            return Ok(());
        }
        self.set_access(&item.uri, item.access.as_deref())
    }

    /// Notes the time of a change for a planned description that arrived in a complete list without
    /// times. The newest of several times is stored.
    ///
    /// # Errors
    /// The system's own.
    pub fn date_description(&self, uri: &str, changed: i64) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "UPDATE pending SET changed = ?2 WHERE uri = ?1 AND action = 0 AND body IS NOT NULL
                 AND length IS NOT NULL AND ifnull(changed, ?2) <= ?2",
            )
            .and_then(|mut statement| statement.execute(params![uri, changed]))
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// Removes an item from the plan.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_pending(&self, uri: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached("DELETE FROM pending WHERE uri = ?1")
            .and_then(|mut statement| statement.execute([uri]))
            .map_err(failed(WRITE))?;
        self.forget_access_unless_kept(uri)
    }

    /// Removes the due fetches from one URI to another, both included, after they were done.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_fetches_between(&self, first: &str, last: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "DELETE FROM pending WHERE uri >= ?1 AND uri <= ?2 AND action < 2 AND state = 0",
            )
            .and_then(|mut statement| statement.execute([first, last]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Records the progress of an item, and whether an attempt failed.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_pending_state(
        &self,
        uri: &str,
        state: PendingState,
        failed_again: bool,
    ) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "UPDATE pending SET state = ?2, attempts = attempts + ?3 WHERE uri = ?1",
            )
            .and_then(|mut statement| statement.execute(params![uri, state as i64, failed_again]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Whether this item failed or is postponed.
    ///
    /// # Errors
    /// The system's own.
    pub fn is_failed(&self, uri: &str) -> Result<bool, LogError> {
        use rusqlite::OptionalExtension as _;
        self.connection
            .prepare_cached("SELECT 1 FROM pending WHERE uri = ?1 AND state = 1")
            .and_then(|mut statement| statement.query_row([uri], |_| Ok(())).optional())
            .map(|found| found.is_some())
            .map_err(failed(READ))
    }

    /// The item of a resource in the plan that is being made.
    ///
    /// # Errors
    /// The system's own.
    pub fn new_task(&self, uri: &str) -> Result<Option<Task>, LogError> {
        use rusqlite::OptionalExtension as _;
        let is_new = self
            .connection
            .prepare_cached("SELECT 1 FROM pending WHERE uri = ?1 AND state <> 2")
            .and_then(|mut statement| statement.query_row([uri], |_| Ok(())).optional())
            .map_err(failed(READ))?;
        is_new.map_or(Ok(None), |()| self.task(uri))
    }

    /// Whether the bytes of any item are in the file of planned bytes.
    ///
    /// # Errors
    /// The system's own.
    pub fn has_bodies(&self) -> Result<bool, LogError> {
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM pending WHERE body IS NOT NULL)", [], |row| {
                row.get(0)
            })
            .map_err(failed(READ))
    }

    /// Whether any planned fetch needs a request to the resource's own URI: its bytes are not in
    /// the file of planned bytes, and another address is not known.
    ///
    /// # Errors
    /// The system's own.
    pub fn has_unaddressed(&self) -> Result<bool, LogError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM pending p WHERE p.action = 0 AND p.body IS NULL
                   AND NOT EXISTS (SELECT 1 FROM access a WHERE a.uri = p.uri))";
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(failed(READ))
    }

    /// Makes all items due again that failed, were postponed or waited in an earlier run.
    ///
    /// # Errors
    /// The system's own.
    pub fn renew_pending(&self) -> Result<(), LogError> {
        self.connection
            .execute("UPDATE pending SET state = 0 WHERE state <> 0", [])
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Makes items due again that waited for a parent folder; returns their number.
    ///
    /// # Errors
    /// The system's own.
    pub fn renew_conflicts(&self) -> Result<u64, LogError> {
        self.connection
            .execute("UPDATE pending SET state = 0 WHERE state = 3", [])
            .map(|count| count as u64)
            .map_err(failed(WRITE))
    }

    /// Marks all items as part of an earlier plan, before a new one is made; returns their number.
    ///
    /// # Errors
    /// The system's own.
    pub fn mark_stale(&self) -> Result<u64, LogError> {
        self.connection
            .execute("UPDATE pending SET state = 2", [])
            .map(|count| count as u64)
            .map_err(failed(WRITE))
    }

    /// Takes a resource's item from the earlier plan into the new one; a conclusion from a list
    /// only `with_conclusions`.
    ///
    /// # Errors
    /// The system's own.
    pub fn keep_planned(&self, uri: &str, with_conclusions: bool) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "UPDATE pending SET state = 0 WHERE uri = ?1 AND state = 2 AND (action <> 5 OR ?2)",
            )
            .and_then(|mut statement| statement.execute(params![uri, with_conclusions]))
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// Removes the items of an earlier plan that are not in the new one.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_stale(&self) -> Result<(), LogError> {
        self.connection
            .execute("DELETE FROM pending WHERE state = 2", [])
            .map_err(failed(WRITE))?;
        self.forget_unused_access()
    }

    /// Appends fetches and touches that are due, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn fetches_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Task>,
    ) -> Result<(), LogError> {
        self.tasks("p.action < 2 AND p.state = 0", uri, limit, out)
    }

    /// Appends items that wait for a parent folder, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn conflicts_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Task>,
    ) -> Result<(), LogError> {
        self.tasks("p.state = 3", uri, limit, out)
    }

    /// Appends every item, due or not, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn pending_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Task>,
    ) -> Result<(), LogError> {
        self.tasks("true", uri, limit, out)
    }

    /// One item, due or not, with the copy's row.
    ///
    /// # Errors
    /// The system's own.
    pub fn task(&self, uri: &str) -> Result<Option<Task>, LogError> {
        let sql = format!(
            "SELECT {ITEM}, {COLUMNS} FROM pending p LEFT JOIN resource r ON r.uri = p.uri
             WHERE p.uri = ?1 ORDER BY p.uri LIMIT ?2"
        );
        let mut found = Vec::new();
        self.collect(&sql, uri, 1, &mut found)?;
        Ok(found.pop())
    }

    pub(super) fn tasks(
        &self,
        which: &str,
        uri: &str,
        limit: usize,
        out: &mut Vec<Task>,
    ) -> Result<(), LogError> {
        let sql = format!(
            "SELECT {ITEM}, {COLUMNS} FROM pending p LEFT JOIN resource r ON r.uri = p.uri
             WHERE {which} AND p.uri > ?1 ORDER BY p.uri LIMIT ?2"
        );
        self.collect(&sql, uri, limit, out)
    }

    fn collect(
        &self,
        sql: &str,
        uri: &str,
        limit: usize,
        out: &mut Vec<Task>,
    ) -> Result<(), LogError> {
        let first = out.len();
        self.each_row(sql, uri, limit, &mut |row| {
            out.push(Task { pending: read_pending(row)?, row: read_kept(row)? });
            Ok(())
        })?;
        for task in &mut out[first..] {
            task.pending.access = self.access(&task.pending.uri)?;
        }
        Ok(())
    }

    fn each_row(
        &self,
        sql: &str,
        uri: &str,
        limit: usize,
        each: &mut dyn FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![uri, limit as i64])?;
            while let Some(row) = rows.next()? {
                each(row)?;
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Whether the plan has items, due or failed.
    ///
    /// # Errors
    /// The system's own.
    pub fn has_plan(&self) -> Result<bool, LogError> {
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM pending)", [], |row| row.get(0))
            .map_err(failed(READ))
    }

    /// Counts of the plan. The sum of the listed lengths saturates, and is exact up to 8 PiB. Reads
    /// the plan, not the resources, and only if the database changed since the last call.
    ///
    /// # Errors
    /// The system's own.
    pub fn pending_counts(&self) -> Result<PendingCounts, LogError> {
        let changes = self.connection.total_changes();
        if let Some((at, counts)) = self.counted.get()
            && at == changes
        {
            return Ok(counts);
        }
        let counts = self.count_pending()?;
        self.counted.set(Some((changes, counts)));
        Ok(counts)
    }

    fn count_pending(&self) -> Result<PendingCounts, LogError> {
        self.connection
            .query_row(
                "SELECT ifnull(sum(state = 0 AND action < 2), 0),
                        CAST(total(max(length, 0)) FILTER (WHERE state = 0 AND action = 0) AS INTEGER),
                        ifnull(sum(state = 0 AND action >= 2), 0), ifnull(sum(state = 1), 0), ifnull(sum(state = 3), 0)
                 FROM pending",
                [],
                |row| {
                    Ok(PendingCounts {
                        fetches: row.get::<_, i64>(0)? as u64,
                        bytes: row.get::<_, i64>(1)? as u64,
                        deletes: row.get::<_, i64>(2)? as u64,
                        held: row.get::<_, i64>(3)? as u64,
                        conflicts: row.get::<_, i64>(4)? as u64,
                    })
                },
            )
            .map_err(failed(READ))
    }

    /// Counts at most `most` items of the plan.
    ///
    /// # Errors
    /// The system's own.
    pub fn summarise_plan(&self, most: u32) -> Result<PlanSummary, LogError> {
        self.connection
            .query_row(
                "SELECT ifnull(sum(state != 1), 0), ifnull(sum(state = 1 AND action < 2), 0),
                        ifnull(sum(state = 1 AND action >= 2), 0), min(changed), count(*)
                 FROM (SELECT state, action, changed FROM pending LIMIT ?1)",
                [i64::from(most) + 1],
                |row| {
                    Ok(PlanSummary {
                        due: row.get::<_, i64>(0)? as u64,
                        failed: row.get::<_, i64>(1)? as u64,
                        held: row.get::<_, i64>(2)? as u64,
                        oldest: row.get(3)?,
                        is_cut: row.get::<_, i64>(4)? > i64::from(most),
                    })
                },
            )
            .map_err(failed(READ))
    }

    /// Counts the due fetches that come from changes with a listed time and did not fail before.
    /// Reads the whole plan.
    ///
    /// # Errors
    /// The system's own.
    pub fn changes_due(&self) -> Result<ChangesDue, LogError> {
        self.connection
            .query_row(
                "SELECT count(*), CAST(total(max(length, 0)) AS INTEGER), min(changed) FROM pending
                 WHERE state = 0 AND action = 0 AND attempts = 0 AND changed IS NOT NULL",
                [],
                |row| {
                    Ok(ChangesDue {
                        resources: row.get::<_, i64>(0)? as u64,
                        bytes: row.get::<_, i64>(1)? as u64,
                        oldest: row.get(2)?,
                    })
                },
            )
            .map_err(failed(READ))
    }

    /// Notes that a resource of the copy was missing in the lists that were read so far.
    ///
    /// # Errors
    /// The system's own.
    pub fn add_unseen(&self, uri: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO temp.unseen VALUES (?1)")
            .and_then(|mut statement| statement.execute([uri]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Clears the mark of a resource that a list contains; returns whether it was marked.
    ///
    /// # Errors
    /// The system's own.
    pub fn take_unseen(&self, uri: &str) -> Result<bool, LogError> {
        self.connection
            .prepare_cached("DELETE FROM temp.unseen WHERE uri = ?1")
            .and_then(|mut statement| statement.execute([uri]))
            .map(|count| count > 0)
            .map_err(failed(WRITE))
    }

    /// Notes a change. The newest change of a URI replaces others; at equal times the change from
    /// the later list, and within a list the change noted last.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_coming(&self, item: &Pending, order: ChangeOrder) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO temp.coming VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
                 ON CONFLICT DO UPDATE SET gone = ?2, modified = ?3, length = ?4, digests = ?5, unknown = ?6,
                    time = ?7, first = ?8, last = ?9, is_new = ?10, is_known = ?11, via = ?12, list = ?13, href = ?14,
                    accept = ?15, describes = ?16, body = ?17
                 WHERE (?7, ?13) >= (time, list)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    item.uri,
                    match item.action {
                        PendingAction::Fetch | PendingAction::Touch => 0,
                        PendingAction::Delete | PendingAction::Absent => 1,
                        PendingAction::Leave => 2,
                        PendingAction::Remove => 3,
                    },
                    item.modified,
                    item.length.map(|length| length as i64),
                    item.digests,
                    item.unknown,
                    order.time,
                    order.changed.map(|changed| changed.0).filter(|first| *first > i64::MIN),
                    order.changed.map(|changed| changed.1),
                    order.is_new,
                    order.is_known,
                    item.via,
                    order.list,
                    item.access.as_ref().and_then(|access| access.href.as_deref()),
                    item.accept(),
                    item.describes(),
                    item.body.map(|begin| begin as i64)
                ])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Changes with an unknown time yield to any other change of their resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn doubt_undated(&self) -> Result<(), LogError> {
        self.connection
            .execute("UPDATE temp.coming SET time = ?1 WHERE first IS NULL", [i64::MIN])
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Appends the noted changes, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn coming_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Coming>,
    ) -> Result<(), LogError> {
        let sql = format!(
            "SELECT p.uri, iif(p.gone = 0, 0, p.gone + 1), p.modified, p.length, p.digests, p.unknown, p.first, 0, p.via, p.body,
                    {COLUMNS}, p.href, p.accept, p.describes, p.first, p.last, p.is_new, p.is_known
             FROM temp.coming p LEFT JOIN resource r ON r.uri = p.uri WHERE p.uri > ?1 ORDER BY p.uri LIMIT ?2"
        );
        self.each_row(&sql, uri, limit, &mut |row| {
            let access = read_access(row, COMING_ACCESS)?;
            let task =
                Task { pending: Pending { access, ..read_pending(row)? }, row: read_kept(row)? };
            let (first, last): (Option<i64>, Option<i64>) =
                (row.get(COMING_TIME)?, row.get(COMING_TIME + 1)?);
            let changed = first.zip(last);
            let until = last.filter(|_| first.is_none());
            let (is_new, is_known) = (row.get(COMING_TIME + 2)?, row.get(COMING_TIME + 3)?);
            out.push(Coming { task, changed, until, is_new, is_known });
            Ok(())
        })
    }

    /// Notes that a change deprecated a resource, until a newer change; ordered as by
    /// [`Mirror::put_coming`].
    ///
    /// # Errors
    /// The system's own.
    pub fn put_deprecated(
        &self,
        uri: &str,
        replaced_by: &[String],
        order: ChangeOrder,
    ) -> Result<(), LogError> {
        let ChangeOrder { time, list, changed, .. } = order;
        let changed = changed.map(|changed| changed.0);
        self.connection
            .prepare_cached(
                "INSERT INTO temp.deprecated VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET time = ?2, list = ?3, changed = ?4, replaced_by = ?5
                 WHERE (?2, ?3) >= (time, list)",
            )
            // URIs do not contain spaces.
            .and_then(|mut statement| {
                statement.execute(params![uri, time, list, changed, replaced_by.join(" ")])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Appends the noted deprecations without a newer change, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn deprecated_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Deprecated>,
    ) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(
                "SELECT d.uri, d.replaced_by, d.changed FROM temp.deprecated d LEFT JOIN temp.coming c ON c.uri = d.uri
                 WHERE d.uri > ?1 AND (c.uri IS NULL OR (c.time, c.list) <= (d.time, d.list))
                 ORDER BY d.uri LIMIT ?2",
            )?;
            let mut rows = statement.query(params![uri, limit as i64])?;
            while let Some(row) = rows.next()? {
                let replaced_by: String = row.get(1)?;
                let replaced_by = replaced_by
                    .split(' ')
                    .filter(|uri| !uri.is_empty())
                    .map(str::to_owned)
                    .collect();
                out.push(Deprecated { uri: row.get(0)?, replaced_by, time: row.get(2)? });
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Empties the temporary tables for making a plan.
    ///
    /// # Errors
    /// The system's own.
    pub fn clear_scratch(&self) -> Result<(), LogError> {
        self.connection
            .execute_batch(
                "DELETE FROM temp.unseen; DELETE FROM temp.coming; DELETE FROM temp.deprecated; DELETE FROM temp.patch",
            )
            .map_err(failed(WRITE))
    }
}

/// Reads the row of the copy, whose columns follow the columns of an item.
fn read_kept(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Row>> {
    let is_kept = row.get_ref(KEPT)? != rusqlite::types::ValueRef::Null;
    if is_kept { read_row(row, KEPT).map(Some) } else { Ok(None) }
}

fn read_pending(row: &rusqlite::Row<'_>) -> rusqlite::Result<Pending> {
    Ok(Pending {
        uri: row.get(0)?,
        action: match row.get::<_, i64>(1)? {
            0 => PendingAction::Fetch,
            1 => PendingAction::Touch,
            2 => PendingAction::Delete,
            4 => PendingAction::Remove,
            5 => PendingAction::Absent,
            _ => PendingAction::Leave,
        },
        modified: row.get(2)?,
        length: row.get::<_, Option<i64>>(3)?.map(|length| length as u64),
        digests: row.get(4)?,
        unknown: row.get(5)?,
        changed: row.get(6)?,
        attempts: row.get::<_, i64>(7)? as u32,
        via: row.get(8)?,
        access: None,
        body: row.get::<_, Option<i64>>(9)?.map(|offset| offset as u64),
    })
}
