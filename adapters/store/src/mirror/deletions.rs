//! The planned deletions: reported by the Source, or concluded from lists without the resource.

use super::planned::{PendingAction, Task};
use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::params;

impl Mirror {
    /// Appends deletions that are due, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn deletes_after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<Task>,
    ) -> Result<(), LogError> {
        self.tasks("p.action >= 2 AND p.state = 0", uri, limit, out)
    }

    /// Appends postponed and failed deletions, after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn held_after(&self, uri: &str, limit: usize, out: &mut Vec<Task>) -> Result<(), LogError> {
        self.tasks("p.action >= 2 AND p.state = 1", uri, limit, out)
    }

    /// Number of deletions in the plan, due or not.
    ///
    /// # Errors
    /// The system's own.
    pub fn count_deletes(&self) -> Result<u64, LogError> {
        self.connection
            .query_row("SELECT count(*) FROM pending WHERE action >= 2", [], |row| {
                row.get::<_, i64>(0)
            })
            .map(|count| count as u64)
            .map_err(failed(READ))
    }

    /// How many planned deletions are moves: this run or a later one wrote a resource with the same
    /// bytes. Resources without a digest are not compared. Reads all resources.
    ///
    /// # Errors
    /// The system's own.
    pub fn count_moved(&self, epoch: i64) -> Result<u64, LogError> {
        self.connection
            .query_row(
                "SELECT ifnull(sum(min(lost, new)), 0) FROM (\
                 SELECT count(pending.uri) AS lost, count(*) FILTER (WHERE pending.uri IS NULL AND resource.epoch >= ?1) AS new \
                 FROM resource LEFT JOIN pending ON pending.uri = resource.uri AND pending.action >= 2 \
                 WHERE resource.digests <> x'' AND (resource.length, resource.digests) IN (\
                 SELECT lost.length, lost.digests FROM pending JOIN resource AS lost ON lost.uri = pending.uri WHERE pending.action >= 2) \
                 GROUP BY resource.length, resource.digests)",
                [epoch],
                |row| row.get::<_, i64>(0),
            )
            .map(|count| count as u64)
            .map_err(failed(READ))
    }

    /// Postpones all deletions to another run.
    ///
    /// # Errors
    /// The system's own.
    pub fn hold_deletes(&self) -> Result<u64, LogError> {
        self.connection
            .execute("UPDATE pending SET state = 1 WHERE state = 0 AND action >= 2", [])
            .map(|count| count as u64)
            .map_err(failed(WRITE))
    }

    /// Postpones deletions to another run, except deletions that waited in `runs` runs already.
    /// With `only_absent`, deletions that the Source reported are not postponed.
    ///
    /// # Errors
    /// The system's own.
    pub fn hold_waiting(&self, runs: u32, only_absent: bool) -> Result<u64, LogError> {
        self.connection
            .execute(
                "UPDATE pending SET state = 1, attempts = attempts + 1
                 WHERE state = 0 AND attempts < ?1 AND (action = 5 OR action >= 2 AND NOT ?2)",
                params![runs, only_absent],
            )
            .map(|count| count as u64)
            .map_err(failed(WRITE))
    }

    /// Plans to delete every resource noted as unseen; returns how many.
    ///
    /// # Errors
    /// The system's own.
    pub fn plan_unseen(&self) -> Result<u64, LogError> {
        self.plan_deletes(PendingAction::Absent, "SELECT uri FROM temp.unseen")
    }

    /// Removes the deletions that were concluded from lists; returns their number.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_absent(&self) -> Result<u64, LogError> {
        self.connection
            .execute("DELETE FROM pending WHERE action = 5", ())
            .map(|count| count as u64)
            .map_err(failed(WRITE))
    }

    /// Removes planned fetches of versions that are neither in the copy nor in a noted change.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_unnamed(&self) -> Result<(), LogError> {
        self.connection
            .execute_batch(
                "DELETE FROM pending WHERE action = 0 AND uri NOT IN (SELECT uri FROM temp.coming)
                    AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.uri = pending.uri AND r.changed IS pending.changed)",
            )
            .map_err(failed(WRITE))?;
        self.forget_unused_access()
    }

    /// Plans to delete the resources that a query returns; returns their number. An already planned
    /// deletion does not change.
    pub(super) fn plan_deletes(&self, action: PendingAction, query: &str) -> Result<u64, LogError> {
        let action = action as i64;
        let sql = format!(
            "INSERT INTO pending (uri, action, digests, unknown, state, attempts)
             SELECT uri, {action}, x'', 0, 0, 0 FROM ({query}) WHERE true
             ON CONFLICT DO UPDATE SET
                modified = iif(action >= 2, modified, NULL), length = iif(action >= 2, length, NULL),
                digests = iif(action >= 2, digests, x''), unknown = iif(action >= 2, unknown, 0),
                changed = iif(action >= 2, changed, NULL), attempts = iif(action >= 2, attempts, 0),
                via = iif(action >= 2, via, NULL), body = iif(action >= 2, body, NULL),
                action = iif(action >= 2, action, {action}), state = 0"
        );
        self.connection.execute(&sql, []).map(|count| count as u64).map_err(failed(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pending, Row};
    use super::*;

    fn mirror_of(uris: &[&str]) -> Mirror {
        let mirror = Mirror::scratch().unwrap();
        for uri in uris {
            mirror.put_row(&Row { uri: (*uri).to_owned(), ..Row::default() }).unwrap();
        }
        mirror
    }

    fn due(mirror: &Mirror) -> Vec<(String, PendingAction)> {
        let mut tasks = Vec::new();
        mirror.deletes_after("", 100, &mut tasks).unwrap();
        tasks.into_iter().map(|task| (task.pending.uri, task.pending.action)).collect()
    }

    #[test]
    fn a_deletion_waits_in_so_many_runs_and_no_more() {
        let mirror = mirror_of(&["a", "b"]);
        let stated =
            Pending { uri: "a".to_owned(), action: PendingAction::Delete, ..Pending::default() };
        mirror.put_pending(&stated).unwrap();
        for run in 0..2 {
            // Each run concludes again what no list names.
            mirror.add_unseen("b").unwrap();
            mirror.plan_unseen().unwrap();
            assert_eq!(mirror.hold_waiting(2, true).unwrap(), 1, "run {run}");
            assert_eq!(due(&mirror), [("a".to_owned(), PendingAction::Delete)], "run {run}");
            mirror.renew_pending().unwrap();
        }
        assert_eq!(mirror.hold_waiting(2, true).unwrap(), 0);
        assert_eq!(
            mirror.hold_waiting(2, false).unwrap(),
            1,
            "a stated one waits for other reasons"
        );
        assert_eq!(due(&mirror), [("b".to_owned(), PendingAction::Absent)]);
        assert_eq!((mirror.count_deletes().unwrap(), mirror.hold_deletes().unwrap()), (2, 1));
    }

    #[test]
    fn an_absent_resource_keeps_the_deletion_that_was_stated() {
        let mirror = mirror_of(&["a", "b"]);
        let moved = Pending {
            uri: "a".to_owned(),
            action: PendingAction::Remove,
            via: Some("http://h/new".to_owned()),
            ..Pending::default()
        };
        let fetched = Pending {
            uri: "b".to_owned(),
            length: Some(5),
            attempts: 2,
            via: Some("{}".to_owned()),
            ..Pending::default()
        };
        mirror.put_pending(&moved).unwrap();
        mirror.put_pending(&fetched).unwrap();
        mirror.mark_stale().unwrap();
        mirror.add_unseen("a").unwrap();
        mirror.add_unseen("b").unwrap();
        assert_eq!(mirror.plan_unseen().unwrap(), 2);
        mirror.forget_stale().unwrap();
        let task = |uri| mirror.task(uri).unwrap().unwrap().pending;
        assert_eq!(task("a"), moved);
        let absent =
            Pending { uri: "b".to_owned(), action: PendingAction::Absent, ..Pending::default() };
        assert_eq!(task("b"), absent);
    }
}
