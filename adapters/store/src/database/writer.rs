//! The writer thread: it owns the writing connection and commits jobs in groups.

use crate::database::connection::{
    BUSY_TIMEOUT, CHECKPOINT_FRAMES, WAL_FRAMES_MAX, code_of, sqlite_error,
};
use crate::database::presence::Presence;
use crate::database::queue::{AbandonOnDrop, Queue, QueueItem, answer};
use abreast_core::{ErrorKind, LogError};
use rusqlite::{Connection, ErrorCode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the writer waits for readers if the write-ahead log has become too large.
const RESTART_WAIT: Duration = Duration::from_millis(100);

/// Writes jobs, and caches values so that they are not read back.
pub(crate) trait Recorder {
    type Job: QueueItem;
    /// The result that a job's caller gets once the job is durable.
    type Outcome;

    /// Reads the cached values: at the start, and after a group was rolled back.
    fn load(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Writes a group inside a transaction. A refused job changes nothing and does not affect the
    /// others.
    fn record(
        &mut self,
        connection: &Connection,
        group: &mut [Self::Job],
    ) -> rusqlite::Result<Vec<Self::Outcome>>;

    /// The loaded or recorded values are durable: readers may see them.
    fn committed(&mut self);

    /// Sends the result to a job's caller.
    fn reply(job: Self::Job, outcome: Self::Outcome);
}

/// The writer, which owns the only writing connection.
pub(crate) struct Writer<R> {
    connection: Connection,
    path: PathBuf,
    presence: Presence,
    recorder: R,
    /// Frames in the write-ahead log at which it is next copied into the database.
    checkpoint_at: i64,
    /// The reason why further jobs are refused.
    stopped: Option<String>,
}

impl<R: Recorder> Writer<R> {
    /// Starts with an open database of the newest schema.
    pub(crate) fn new(
        connection: Connection,
        path: PathBuf,
        mut recorder: R,
    ) -> Result<Self, LogError> {
        // `checkpoint` copies the log after callers got their results, and handles its failures.
        connection
            .pragma_update(None, "wal_autocheckpoint", 0)
            .and_then(|()| recorder.load(&connection))
            .map_err(|cause| {
                sqlite_error(&format!("cannot read the store {}", path.display()), cause)
            })?;
        recorder.committed();
        let presence = Presence::of(&path)?;
        Ok(Self {
            connection,
            path,
            presence,
            recorder,
            checkpoint_at: CHECKPOINT_FRAMES,
            stopped: None,
        })
    }

    /// Processes jobs until the queue is closed and empty.
    pub(crate) fn run(mut self, queue: &Queue<R::Job>) {
        let _abandon = AbandonOnDrop(queue);
        loop {
            let group = queue.take();
            if group.is_empty() {
                return;
            }
            self.serve(group);
        }
    }

    fn serve(&mut self, mut group: Vec<R::Job>) {
        let outcome = match &self.stopped {
            Some(why) => Err(LogError::new(ErrorKind::Io, why.clone())),
            None => match self.presence.check() {
                Ok(()) => self.commit(&mut group).map_err(|cause| self.failed(cause)),
                Err(lost) => Err(lost),
            },
        };
        match outcome {
            Ok(results) => {
                for (job, outcome) in group.into_iter().zip(results) {
                    answer(|| R::reply(job, outcome));
                }
                if let Err(cause) = self.checkpoint() {
                    self.failed(cause);
                }
            }
            Err(failure) => {
                let failure = Arc::new(failure);
                for job in group {
                    let outcome = LogError::new(failure.kind(), failure.to_string())
                        .with_cause(Arc::clone(&failure));
                    answer(|| job.refuse(outcome));
                }
            }
        }
    }

    /// Writes the whole group in one transaction.
    fn commit(&mut self, group: &mut [R::Job]) -> rusqlite::Result<Vec<R::Outcome>> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let results = self.recorder.record(&self.connection, group)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.recorder.committed();
        Ok(results)
    }

    /// Rolls back a failed group, or stops the writer if the content of the disk is not certain.
    fn failed(&mut self, cause: rusqlite::Error) -> LogError {
        let transient = matches!(
            code_of(&cause),
            Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        );
        let undone = (self.connection.is_autocommit()
            || self.connection.execute_batch("ROLLBACK").is_ok())
            && self.recorder.load(&self.connection).is_ok();
        if transient && undone {
            return sqlite_error(
                "the changes could not be recorded, nothing of them is in the log",
                cause,
            );
        }
        let why = format!(
            "the store {} failed and accepts no more changes: {cause}\n  help: check its disk, then start again",
            self.path.display()
        );
        tracing::error!(store = %self.path.display(), %cause, "the store failed and accepts no more changes");
        self.stopped = Some(why);
        sqlite_error(
            "the changes could not be recorded; the store stops, since its disk cannot be trusted",
            cause,
        )
    }

    /// Copies a large write-ahead log into the database, so that the log is restarted.
    fn checkpoint(&mut self) -> rusqlite::Result<()> {
        let frames: i64 = self
            .connection
            .prepare_cached("PRAGMA wal_checkpoint(NOOP)")?
            .query_row([], |row| row.get(1))?;
        if frames < CHECKPOINT_FRAMES {
            self.checkpoint_at = CHECKPOINT_FRAMES;
        } else if frames >= self.checkpoint_at {
            self.checkpoint_at = frames + CHECKPOINT_FRAMES;
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            if frames > WAL_FRAMES_MAX {
                // Overlapping readers prevent a restart of the log: wait until they end.
                self.connection.busy_timeout(RESTART_WAIT)?;
                let restarted =
                    self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                self.connection.busy_timeout(BUSY_TIMEOUT)?;
                restarted?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::connection::{Durability, open_connection};
    use crate::database::migration::migrate;
    use crate::log::sqlite::recorder::{Heads, LogRecorder};
    use crate::log::work::{Job, Outcome, Reply, Work};
    use abreast_core::ShardRule;
    use abreast_core::{Change, NewSet, PageRule, Position, SetId, State, SystemClock};
    use abreast_webtypes::Timestamp;
    use rusqlite::ffi;
    use std::sync::mpsc::sync_channel;

    type LogWriter = Writer<LogRecorder>;

    fn writer(folder: &tempfile::TempDir) -> LogWriter {
        let path = folder.path().join("store.sqlite");
        let mut connection = open_connection(&path, Durability::PowerLoss).unwrap();
        migrate(&mut connection, &path, crate::log::sqlite::log::MIGRATIONS).unwrap();
        let rule = ShardRule { resources: 20, bytes: 1_000_000 };
        let recorder = LogRecorder::new(Arc::new(SystemClock), rule, Arc::new(Heads::default()));
        Writer::new(connection, path, recorder).unwrap()
    }

    fn ask(writer: &mut LogWriter, work: Work) -> Result<Outcome, LogError> {
        let (sender, receiver) = sync_channel(1);
        writer.serve(vec![Job::new(work, Reply::Call(sender))]);
        receiver.recv().unwrap()
    }

    fn set(writer: &mut LogWriter) -> SetId {
        let new = NewSet {
            slug: "a".into(),
            page_rule: PageRule { changes: 7, ..PageRule::default() },
            ..NewSet::default()
        };
        let Ok(Outcome::Set(set)) = ask(writer, Work::OpenSet(new)) else {
            panic!("the set opens")
        };
        ask(writer, Work::CompleteImport(set.id)).unwrap();
        set.id
    }

    fn batch(number: usize) -> Vec<Change> {
        (0..30).map(|one| Change::put(format!("{one}/{number}"), State::default())).collect()
    }

    #[test]
    fn full_disk_refuses_a_whole_batch_until_there_is_space() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder);
        let set = set(&mut writer);
        let pages: i64 =
            writer.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer
            .connection
            .pragma_update_and_check(None, "max_page_count", pages + 5, |_| Ok(()))
            .unwrap();
        let mut number = 0;
        let error = loop {
            match ask(&mut writer, Work::Append(set, batch(number))) {
                Ok(_) => number += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains("help: free space"), "{error}");
        let recorded = Position(number as u64 * 30);
        assert!(number > 0);
        assert_eq!(
            (
                writer.recorder.set_states[&set].position,
                writer.recorder.heads.of(set).unwrap().position
            ),
            (recorded, recorded)
        );
        let stored = |writer: &LogWriter, table: &str| -> i64 {
            let sql = format!("SELECT count(*) FROM {table}");
            writer.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(stored(&writer, "changes") as u64, recorded.0);
        assert_eq!(writer.recorder.set_states[&set].shards.resources(), recorded.0);

        writer
            .connection
            .pragma_update_and_check(None, "max_page_count", pages + 500, |_| Ok(()))
            .unwrap();
        ask(&mut writer, Work::Append(set, batch(number))).unwrap();
        assert_eq!(writer.recorder.set_states[&set].position, Position(recorded.0 + 30));
        assert_eq!(stored(&writer, "resources") as u64, recorded.0 + 30);
    }

    #[test]
    fn a_disk_that_fails_stops_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder);
        let set = set(&mut writer);
        ask(&mut writer, Work::Append(set, batch(0))).unwrap();
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None);
        let outcome = writer.failed(error);
        assert!(outcome.to_string().contains("its disk cannot be trusted"), "{outcome}");
        for _ in 0..2 {
            let error = ask(&mut writer, Work::Append(set, batch(1))).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains("accepts no more changes"), "{error}");
        }
        assert_eq!(writer.recorder.heads.of(set).unwrap().position, Position(30));
    }

    #[test]
    fn old_idempotency_keys_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder);
        let set = set(&mut writer);
        let named = |name: &str| vec![Change::delete("x").with_idempotency_key(name)];
        ask(&mut writer, Work::Append(set, named("old"))).unwrap();
        writer.connection.execute("UPDATE idempotency SET time = 0", []).unwrap();
        writer.recorder.pruned = Timestamp::MIN;
        ask(&mut writer, Work::Append(set, named("new"))).unwrap();
        let kept: String = writer
            .connection
            .query_row("SELECT group_concat(key) FROM idempotency", [], |row| row.get(0))
            .unwrap();
        assert_eq!(kept, "new");
    }
}
