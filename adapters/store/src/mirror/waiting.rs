//! Changes of the copy that wait to be given to a command.
//!
//! Triggers record each change in the transaction that changes the row of the resource, for all
//! code that writes rows. A row that changes without its bytes (times, entity tags) is not a change,
//! nor is a row whose file is known to be lost: the bytes that replace the file are.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::params;

/// Most changes that wait. With one more, all are deleted, and [`WaitingKind::Overflow`] takes their
/// place.
pub const WAITING_CHANGES_MAX: u64 = 1_000_000;

/// Whether changes are recorded: `on`; or `full`, after an overflow that is not given yet. Absent if
/// no command was ever configured.
const RECORDING: &str = "on-change";
/// Number of the last batch, and of its last change.
const BATCH: &str = "on-change-batch";

/// Rows are compared by their bytes. An insert that replaces a row fires no trigger for a deletion.
const TRIGGERS: &str = "
    CREATE TEMP TRIGGER record_put BEFORE INSERT ON main.resource
    WHEN NEW.file_mtime <> -9223372036854775808
        AND (SELECT value FROM meta WHERE key = 'on-change') = 'on'
        AND NOT EXISTS (SELECT 1 FROM resource r WHERE r.uri = NEW.uri AND r.length = NEW.length
            AND r.digests = NEW.digests AND (NEW.digests <> x'' OR r.changed IS NEW.changed))
    BEGIN
        INSERT INTO waiting_change (uri, kind, form, changed, modified, length, digests)
        VALUES (NEW.uri, EXISTS (SELECT 1 FROM resource r WHERE r.uri = NEW.uri), NEW.form, NEW.changed, NEW.modified,
            NEW.length, NEW.digests);
    END;
    CREATE TEMP TRIGGER record_delete AFTER DELETE ON main.resource
    WHEN (SELECT value FROM meta WHERE key = 'on-change') = 'on'
    BEGIN
        INSERT INTO waiting_change (uri, kind, form, changed, modified, length, digests)
        VALUES (OLD.uri, 2, OLD.form, (SELECT p.changed FROM pending p WHERE p.uri = OLD.uri AND p.action IN (2, 4, 5)),
            NULL, NULL, x'');
    END;";

/// The kind of a waiting change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitingKind {
    /// The copy did not contain the resource.
    #[default]
    Created,
    /// The copy contained other bytes, or a file that was lost or altered.
    Updated,
    /// The resource left the copy.
    Deleted,
    /// More changes waited than are stored, and are no longer known: the copy must be read as a
    /// whole. Such a change has no URI.
    Overflow,
}

/// A change of the copy that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingChange {
    /// Number of the change: greater for a later change.
    pub number: i64,
    /// URI of the resource, without fragment.
    pub uri: String,
    /// The kind of the change.
    pub kind: WaitingKind,
    /// Whether the path has the reserved leaf name.
    pub leaf: bool,
    /// Time of the change at the Source in microseconds, if it lists one.
    pub changed: Option<i64>,
    /// Last modification as listed, in microseconds.
    pub modified: Option<i64>,
    /// Length of the bytes; `None` for a deletion.
    pub length: Option<u64>,
    /// Digests of the bytes, in the compact form.
    pub digests: Vec<u8>,
    /// The path in the copy, if the resource has one.
    pub path: Option<String>,
}

/// Changes that are given together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingBatch {
    /// Number of the batch, from 1 on. A batch that is given again has the same number and the same
    /// changes.
    pub number: u64,
    /// The changes in their order, at least one.
    pub changes: Vec<WaitingChange>,
}

impl Mirror {
    /// Records changes from now on, also in later runs. The first call records all resources as
    /// created. At most `most` changes wait.
    ///
    /// # Errors
    /// The system's own.
    pub fn record_changes(&self, most: u64) -> Result<(), LogError> {
        if self.meta(RECORDING)?.is_none() {
            self.begin()?;
            self.connection
                .execute(
                    "INSERT INTO waiting_change (uri, kind, form, changed, modified, length, digests)
                     SELECT uri, 0, form, changed, modified, length, digests FROM resource ORDER BY uri LIMIT ?1",
                    [i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1)],
                )
                .map_err(failed(WRITE))?;
            self.set_meta(RECORDING, Some("on"))?;
            self.recorded_max.set(Some(most));
            self.commit()?;
        }
        self.install_triggers(most)
    }

    /// Continues recording if an earlier run began it.
    pub(super) fn continue_recording(&self) -> Result<(), LogError> {
        if self.meta(RECORDING)?.is_none() {
            return Ok(());
        }
        self.install_triggers(WAITING_CHANGES_MAX)
    }

    fn install_triggers(&self, most: u64) -> Result<(), LogError> {
        self.recorded_max.set(Some(most));
        if self.has_triggers.replace(true) {
            return Ok(());
        }
        self.connection.execute_batch(TRIGGERS).map_err(failed("cannot prepare the state"))
    }

    /// Called before each commit: replaces more than the allowed number of changes.
    pub(super) fn bound_waiting(&self) -> Result<(), LogError> {
        let Some(most) = self.recorded_max.get() else { return Ok(()) };
        // Changes are deleted from the first one on, so their numbers have no gaps.
        let span = "SELECT ifnull((SELECT max(number) FROM waiting_change) - (SELECT min(number) FROM waiting_change) + 1, 0)";
        let waiting: i64 = self
            .connection
            .prepare_cached(span)
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(failed(READ))?;
        if waiting as u64 > most { self.overflow() } else { Ok(()) }
    }

    /// Replaces all waiting changes by [`WaitingKind::Overflow`], if changes are recorded.
    pub(super) fn overflow(&self) -> Result<(), LogError> {
        if self.meta(RECORDING)?.is_none() {
            return Ok(());
        }
        self.connection
            .execute_batch(
                "DELETE FROM waiting_change;
                 INSERT INTO waiting_change (uri, kind, form, digests, path) VALUES ('', 3, 0, x'', '');",
            )
            .map_err(failed(WRITE))?;
        self.set_meta(RECORDING, Some("full"))
    }

    /// Number of waiting changes, counted up to `most`.
    ///
    /// # Errors
    /// The system's own.
    pub fn count_waiting(&self, most: u64) -> Result<u64, LogError> {
        self.connection
            .query_row(
                "SELECT count(*) FROM (SELECT 1 FROM waiting_change LIMIT ?1)",
                [i64::try_from(most).unwrap_or(i64::MAX)],
                |row| row.get::<_, i64>(0),
            )
            .map(|count| count as u64)
            .map_err(failed(READ))
    }

    /// The first `limit` waiting changes whose paths are not determined.
    ///
    /// # Errors
    /// The system's own.
    pub fn waiting_without_path(&self, limit: usize) -> Result<Vec<WaitingChange>, LogError> {
        self.read_waiting(
            "SELECT number, uri, kind, form, changed, modified, length, digests, path FROM waiting_change
             WHERE path IS NULL ORDER BY number LIMIT ?1",
            limit as i64,
        )
    }

    /// Stores the path of a waiting change; `None` if the resource has no path.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_waiting_path(&self, number: i64, path: Option<&str>) -> Result<(), LogError> {
        self.connection
            .prepare_cached("UPDATE waiting_change SET path = ?2 WHERE number = ?1")
            .and_then(|mut statement| statement.execute(params![number, path.unwrap_or_default()]))
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// The next batch of at most `most` changes, or the batch that was not accepted yet; `None` if no
    /// change with a determined path waits.
    ///
    /// # Errors
    /// The system's own.
    pub fn next_batch(&self, most: usize) -> Result<Option<WaitingBatch>, LogError> {
        let (given, last) = self.last_batch()?;
        let first = self.read_waiting(
            "SELECT number, uri, kind, form, changed, modified, length, digests, path FROM waiting_change
             ORDER BY number LIMIT ?1",
            1,
        )?;
        let Some(first) = first.first() else { return Ok(None) };
        if first.number <= last {
            let changes = self.read_waiting(
                "SELECT number, uri, kind, form, changed, modified, length, digests, path FROM waiting_change
                 WHERE number <= ?1 ORDER BY number",
                last,
            )?;
            return Ok(Some(WaitingBatch { number: given, changes }));
        }
        let is_overflow = first.kind == WaitingKind::Overflow;
        let mut changes = self.read_waiting(
            "SELECT number, uri, kind, form, changed, modified, length, digests, path FROM waiting_change
             ORDER BY number LIMIT ?1",
            if is_overflow { 1 } else { most as i64 },
        )?;
        // The columns of a change without a determined path are read as `None` too.
        let undetermined = self.waiting_without_path(1)?.first().map(|change| change.number);
        changes.retain(|change| undetermined.is_none_or(|number| change.number < number));
        let Some(last) = changes.last() else { return Ok(None) };
        self.begin()?;
        if is_overflow {
            // Later changes are recorded again, since the command begins to read the copy now.
            self.set_meta(RECORDING, Some("on"))?;
        }
        self.set_meta(BATCH, Some(&format!("{} {}", given + 1, last.number)))?;
        self.commit()?;
        Ok(Some(WaitingBatch { number: given + 1, changes }))
    }

    /// The batch of this number was accepted: deletes its changes.
    ///
    /// # Errors
    /// The system's own.
    pub fn accept_batch(&self, number: u64) -> Result<(), LogError> {
        let (given, last) = self.last_batch()?;
        if given != number {
            return Ok(());
        }
        self.connection
            .execute("DELETE FROM waiting_change WHERE number <= ?1", [last])
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// The number of the last batch, and of its last change.
    fn last_batch(&self) -> Result<(u64, i64), LogError> {
        let text = self.meta(BATCH)?.unwrap_or_default();
        let parts = text
            .split_once(' ')
            .and_then(|(given, last)| Some((given.parse().ok()?, last.parse().ok()?)));
        Ok(parts.unwrap_or_default())
    }

    fn read_waiting(&self, sql: &str, limit: i64) -> Result<Vec<WaitingChange>, LogError> {
        let read = || -> rusqlite::Result<Vec<WaitingChange>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement.query_map([limit], |row| {
                Ok(WaitingChange {
                    number: row.get(0)?,
                    uri: row.get(1)?,
                    kind: match row.get::<_, i64>(2)? {
                        0 => WaitingKind::Created,
                        1 => WaitingKind::Updated,
                        2 => WaitingKind::Deleted,
                        _ => WaitingKind::Overflow,
                    },
                    leaf: row.get(3)?,
                    changed: row.get(4)?,
                    modified: row.get(5)?,
                    length: row.get::<_, Option<i64>>(6)?.map(|length| length as u64),
                    digests: row.get(7)?,
                    path: row.get::<_, Option<String>>(8)?.filter(|path| !path.is_empty()),
                })
            })?;
            rows.collect()
        };
        read().map_err(failed(READ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::{Pending, PendingAction, Row};

    fn row(uri: &str, digest: u8) -> Row {
        Row {
            uri: uri.to_owned(),
            length: 5,
            digests: vec![digest],
            file_mtime: 7,
            ..Row::default()
        }
    }

    /// The changes of the next batch as `KIND URI`, after it was accepted.
    fn accepted(mirror: &Mirror, most: usize) -> Vec<String> {
        while let [first, ..] = &mirror.waiting_without_path(1).unwrap()[..] {
            mirror.set_waiting_path(first.number, Some("p")).unwrap();
        }
        let Some(batch) = mirror.next_batch(most).unwrap() else { return Vec::new() };
        assert_eq!(mirror.next_batch(1).unwrap().as_ref(), Some(&batch), "the same again");
        mirror.accept_batch(batch.number).unwrap();
        batch.changes.iter().map(|change| format!("{:?} {}", change.kind, change.uri)).collect()
    }

    #[test]
    fn changes_of_bytes_wait_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mirror.db");
        let mirror = Mirror::open(&path).unwrap();
        mirror.put_row(&row("b", 1)).unwrap();
        mirror.put_row(&row("a", 1)).unwrap();
        assert_eq!(mirror.count_waiting(9).unwrap(), 0);
        mirror.record_changes(100).unwrap();
        assert_eq!(accepted(&mirror, 9), ["Created a", "Created b"]);
        mirror.put_row(&Row { changed: Some(3), ..row("a", 1) }).unwrap();
        mirror.put_row(&Row { file_mtime: i64::MIN, digests: Vec::new(), ..row("b", 1) }).unwrap();
        assert_eq!(mirror.count_waiting(9).unwrap(), 0, "no other bytes");
        mirror.put_row(&row("b", 1)).unwrap();
        mirror.put_row(&row("a", 2)).unwrap();
        // Also without being asked again.
        drop(mirror);
        let mirror = Mirror::open(&path).unwrap();
        let fetch =
            Pending { uri: "c".into(), length: Some(5), digests: vec![9], ..Pending::default() };
        mirror.put_pending(&fetch).unwrap();
        assert_eq!(mirror.put_rows_as_planned("c", "c", 1, false).unwrap(), 1);
        let (uri, action) = ("a".to_owned(), PendingAction::Delete);
        mirror.put_pending(&Pending { uri, action, changed: Some(8), ..fetch }).unwrap();
        mirror.delete_row("a").unwrap();
        let times = mirror.waiting_without_path(9).unwrap();
        assert_eq!(times.last().unwrap().changed, Some(8), "of the deletion");
        assert_eq!(mirror.next_batch(9).unwrap(), None, "no path is determined");
        assert_eq!(accepted(&mirror, 3), ["Updated b", "Updated a", "Created c"]);
        assert_eq!(accepted(&mirror, 3), ["Deleted a"]);
        assert_eq!(accepted(&mirror, 3), [""; 0]);
    }

    #[test]
    fn what_is_rolled_back_does_not_wait() {
        let mirror = Mirror::scratch().unwrap();
        mirror.record_changes(100).unwrap();
        mirror.begin().unwrap();
        mirror.put_row(&row("a", 1)).unwrap();
        mirror.rollback().unwrap();
        assert_eq!(mirror.count_waiting(9).unwrap(), 0);
    }

    #[test]
    fn more_changes_than_allowed_become_an_overflow() {
        let mirror = Mirror::scratch().unwrap();
        mirror.record_changes(3).unwrap();
        let put = |uris: &[&str]| {
            mirror.begin().unwrap();
            for uri in uris {
                mirror.put_row(&row(uri, 1)).unwrap();
            }
            mirror.commit().unwrap();
        };
        put(&["a", "b", "c"]);
        assert_eq!(mirror.count_waiting(9).unwrap(), 3);
        put(&["d"]);
        put(&["e"]);
        let batch = mirror.next_batch(9).unwrap().unwrap();
        assert_eq!(batch.changes[0].kind, WaitingKind::Overflow);
        // The command reads the copy now.
        put(&["f"]);
        assert_eq!(accepted(&mirror, 9), ["Overflow "]);
        assert_eq!(accepted(&mirror, 9), ["Created f"]);
        mirror.rebase("a", "http://h/").unwrap();
        assert_eq!(accepted(&mirror, 9), ["Overflow "], "other URIs");
    }
}
