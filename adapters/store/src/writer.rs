//! How do jobs become durable? One thread owns the writing connection and commits whole groups of them.

use crate::apply::{self, IDEMPOTENCY_AGE};
use crate::book::Book;
use crate::connection::{BUSY_TIMEOUT, CHECKPOINT_FRAMES, WAL_FRAMES_MAX, sqlite_error};
use crate::limits::{import_is_complete, no_set, still_importing};
use crate::load::load_books;
use crate::queue::{Job, Outcome, Queue, Work};
use crate::shards::{LiveShards, ShardTarget};
use crate::tables::SqliteTables;
use crate::versions;
use abreast_core::{Clock, ErrorKind, Head, LogError, NewSet, ResourceSet, SetId};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How often old idempotency keys are looked for.
const PRUNE_EVERY_MICROS: i64 = 3_600_000_000;
/// Most idempotency keys forgotten in one transaction.
const PRUNE_MAX: i64 = 10_000;

/// How long readers are waited for when the write-ahead log has grown too far.
const RESTART_WAIT: Duration = Duration::from_millis(100);

/// The heads of all sets, as readers see them.
pub(crate) type Heads = RwLock<HashMap<SetId, Head>>;

type JobResult = Result<Outcome, LogError>;

/// The only one who writes.
pub(crate) struct Writer {
    connection: Connection,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    target: ShardTarget,
    books: HashMap<SetId, Book>,
    heads: Arc<Heads>,
    pruned: Timestamp,
    /// Frames in the write-ahead log at which it is next copied into the database.
    checkpoint_at: i64,
    /// Why nothing more is accepted.
    stopped: Option<String>,
}

impl Writer {
    /// Takes over an open database of the newest schema.
    pub(crate) fn new(
        connection: Connection,
        path: PathBuf,
        clock: Arc<dyn Clock>,
        target: ShardTarget,
        heads: Arc<Heads>,
    ) -> Result<Self, LogError> {
        // Copying is done by `checkpoint`, after callers were told, where its failures are seen.
        let books = connection
            .pragma_update(None, "wal_autocheckpoint", 0)
            .and_then(|()| load_books(&connection, target))
            .map_err(|cause| sqlite_error(&format!("cannot read the store {}", path.display()), cause))?;
        let writer = Self {
            connection,
            path,
            clock,
            target,
            books,
            heads,
            pruned: Timestamp::MIN,
            checkpoint_at: CHECKPOINT_FRAMES,
            stopped: None,
        };
        writer.publish(writer.books.keys().copied());
        Ok(writer)
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self, queue: &Queue) {
        let _abandon = AbandonOnDrop(queue);
        loop {
            let group = queue.take();
            if group.is_empty() {
                return;
            }
            self.serve(group);
        }
    }

    fn serve(&mut self, group: Vec<Job>) {
        let outcome = match &self.stopped {
            Some(why) => Err(LogError::new(ErrorKind::Io, why.clone())),
            None => self.commit(&group).map_err(|cause| self.failed(cause)),
        };
        match outcome {
            Ok(results) => {
                for (job, result) in group.into_iter().zip(results) {
                    answer(job, result);
                }
                if let Err(cause) = self.checkpoint() {
                    self.failed(cause);
                }
            }
            Err(failure) => {
                let failure = Arc::new(failure);
                for job in group {
                    let told = LogError::new(failure.kind(), failure.to_string()).with_cause(Arc::clone(&failure));
                    answer(job, Err(told));
                }
            }
        }
    }

    /// One transaction for the whole group. A job that is refused changes nothing and harms no other.
    fn commit(&mut self, group: &[Job]) -> rusqlite::Result<Vec<JobResult>> {
        let now = self.clock.now();
        let mut touched = Vec::new();
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let results = {
            let mut run = Run {
                connection: &self.connection,
                tables: SqliteTables::new(&self.connection)?,
                books: &mut self.books,
                clock: &*self.clock,
                target: self.target,
                touched: &mut touched,
            };
            let results = group.iter().map(|job| run.job(&job.work)).collect::<rusqlite::Result<Vec<_>>>()?;
            run.finish()?;
            results
        };
        if now.as_micros().saturating_sub(self.pruned.as_micros()).unsigned_abs() > PRUNE_EVERY_MICROS as u64 {
            self.pruned = now;
            self.prune(now)?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.publish(touched.into_iter());
        Ok(results)
    }

    fn prune(&self, now: Timestamp) -> rusqlite::Result<()> {
        let expired = now.plus_micros(-(IDEMPOTENCY_AGE.as_micros() as i64));
        self.connection
            .prepare_cached(
                "DELETE FROM idempotency WHERE (set_id, key) IN \
                 (SELECT set_id, key FROM idempotency WHERE time < ?1 LIMIT ?2)",
            )?
            .execute([expired.as_micros(), PRUNE_MAX])?;
        Ok(())
    }

    /// Undoes a failed group, or stops when it is not certain what the disk holds now.
    fn failed(&mut self, cause: rusqlite::Error) -> LogError {
        let transient = matches!(
            cause.sqlite_error_code(),
            Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
        );
        let undone = (self.connection.is_autocommit() || self.connection.execute_batch("ROLLBACK").is_ok())
            && load_books(&self.connection, self.target).map(|books| self.books = books).is_ok();
        if transient && undone {
            return sqlite_error("the changes could not be recorded, nothing of them is in the log", cause);
        }
        let why = format!(
            "the store {} failed and accepts no more changes: {cause}\n  help: look at its disk, then start again",
            self.path.display()
        );
        tracing::error!(store = %self.path.display(), %cause, "the store failed and accepts no more changes");
        self.stopped = Some(why);
        sqlite_error("the changes could not be recorded; the store stops, since its disk cannot be trusted", cause)
    }

    fn publish(&self, sets: impl Iterator<Item = SetId>) {
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        for set in sets {
            if let Some(book) = self.books.get(&set) {
                heads.insert(set, book.head());
            }
        }
    }

    /// Copies the write-ahead log into the database when it has grown, so that it can start anew.
    fn checkpoint(&mut self) -> rusqlite::Result<()> {
        let frames: i64 =
            self.connection.prepare_cached("PRAGMA wal_checkpoint(NOOP)")?.query_row([], |row| row.get(1))?;
        if frames < CHECKPOINT_FRAMES {
            self.checkpoint_at = CHECKPOINT_FRAMES;
        } else if frames >= self.checkpoint_at {
            self.checkpoint_at = frames + CHECKPOINT_FRAMES;
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            if frames > WAL_FRAMES_MAX {
                // Readers that follow each other closely keep it from starting anew: these are waited for.
                self.connection.busy_timeout(RESTART_WAIT)?;
                let restarted = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                self.connection.busy_timeout(BUSY_TIMEOUT)?;
                restarted?;
            }
        }
        Ok(())
    }
}

struct AbandonOnDrop<'q>(&'q Queue);

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// A caller's code must not end the writer.
fn answer(job: Job, result: JobResult) {
    if catch_unwind(AssertUnwindSafe(|| job.reply.send(result))).is_err() {
        tracing::error!("the code told about an append panicked; the append itself is not affected");
    }
}

/// One group inside its transaction.
struct Run<'w> {
    connection: &'w Connection,
    tables: SqliteTables<'w>,
    books: &'w mut HashMap<SetId, Book>,
    clock: &'w dyn Clock,
    target: ShardTarget,
    touched: &'w mut Vec<SetId>,
}

impl Run<'_> {
    fn job(&mut self, work: &Work) -> rusqlite::Result<JobResult> {
        match work {
            Work::Refuse(error) => Ok(Err(LogError::new(error.kind(), error.to_string()))),
            Work::Append(set, changes) => self.with_book(*set, |book, tables, now| {
                if book.importing {
                    return Ok(Err(still_importing()));
                }
                Ok(Ok(Outcome::Appended(apply::append(book, tables, changes, now)?)))
            }),
            Work::Import(set, resources) => self.with_book(*set, |book, tables, _| {
                if !book.importing {
                    return Ok(Err(import_is_complete()));
                }
                apply::import(book, tables, resources)?;
                Ok(Ok(Outcome::Done))
            }),
            Work::RefreshWitnesses(set, witnesses) => self.with_book(*set, |_, tables, _| {
                for (key, witness) in witnesses {
                    apply::Tables::set_witness(tables, key, witness)?;
                }
                Ok(Ok(Outcome::Done))
            }),
            Work::KeepVersions(set, keep) => self.with_book(*set, |book, _, _| {
                versions::keep(book, *keep);
                Ok(Ok(Outcome::Done))
            }),
            Work::CollectVersions(set, policy, limit) => self.with_book(*set, |book, tables, now| {
                Ok(Ok(Outcome::Collected(versions::collect(book, tables, policy, now, *limit)?)))
            }),
            Work::ForgetContents(ids) => {
                self.tables.forget_contents(ids)?;
                Ok(Ok(Outcome::Done))
            }
            Work::CompleteImport(set) => self.complete_import(*set),
            Work::OpenSet(set) => self.open_set(set),
        }
    }

    fn with_book(
        &mut self,
        set: SetId,
        task: impl FnOnce(&mut Book, &mut SqliteTables<'_>, Timestamp) -> rusqlite::Result<JobResult>,
    ) -> rusqlite::Result<JobResult> {
        let Some(book) = self.books.get_mut(&set) else { return Ok(Err(no_set(set))) };
        if !self.touched.contains(&set) {
            self.touched.push(set);
        }
        task(book, self.tables.of(set), self.clock.now())
    }

    fn complete_import(&mut self, set: SetId) -> rusqlite::Result<JobResult> {
        let connection = self.connection;
        self.with_book(set, |book, tables, now| {
            if book.importing {
                book.complete_import(now);
                connection
                    .prepare_cached("UPDATE sets SET importing = 0, created = ?2 WHERE id = ?1")?
                    .execute(params![set.0, book.created.as_micros()])?;
                tables.put_page(&book.page.page())?;
            }
            Ok(Ok(Outcome::Done))
        })
    }

    fn open_set(&mut self, new: &NewSet) -> rusqlite::Result<JobResult> {
        let age = i64::try_from(new.page_rule.age.as_micros()).unwrap_or(i64::MAX);
        let known = self
            .connection
            .prepare_cached("UPDATE sets SET page_changes = ?2, page_age = ?3 WHERE slug = ?1 RETURNING id")?
            .query_row(params![new.slug, new.page_rule.changes, age], |row| row.get(0))
            .optional()?
            .map(SetId);
        let id = if let Some(id) = known {
            if let Some(book) = self.books.get_mut(&id) {
                book.rule = new.page_rule;
            }
            id
        } else {
            let created = self.clock.now();
            self.connection
                .prepare_cached(
                    "INSERT INTO sets (slug, created, importing, page_changes, page_age) VALUES (?1, ?2, 1, ?3, ?4)",
                )?
                .execute(params![new.slug, created.as_micros(), new.page_rule.changes, age])?;
            let id = SetId(self.connection.last_insert_rowid());
            let book = Book::new(created, new.page_rule, LiveShards::first(self.target));
            self.tables.of(id).put_page(&book.page.page())?;
            self.books.insert(id, book);
            id
        };
        self.touched.push(id);
        Ok(Ok(Outcome::Set(ResourceSet { id, slug: new.slug.clone() })))
    }

    fn finish(mut self) -> rusqlite::Result<()> {
        for set in self.touched.iter() {
            if let Some(book) = self.books.get_mut(set) {
                self.tables.of(*set).store_shards(book)?;
                self.tables.store_versions(book)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Durability, open_connection};
    use crate::migration::migrate;
    use crate::queue::Reply;
    use abreast_core::{Change, PageRule, Position, State, SystemClock};
    use rusqlite::ffi;
    use std::sync::mpsc::sync_channel;

    fn writer(folder: &tempfile::TempDir) -> Writer {
        let path = folder.path().join("store.sqlite");
        let mut connection = open_connection(&path, Durability::PowerLoss).unwrap();
        migrate(&mut connection, &path, crate::sqlite_log::MIGRATIONS).unwrap();
        let target = ShardTarget { resources: 20, bytes: 1_000_000 };
        Writer::new(connection, path, Arc::new(SystemClock), target, Arc::default()).unwrap()
    }

    fn ask(writer: &mut Writer, work: Work) -> JobResult {
        let (sender, receiver) = sync_channel(1);
        writer.serve(vec![Job { work, reply: Reply::Call(sender) }]);
        receiver.recv().unwrap()
    }

    fn set(writer: &mut Writer) -> SetId {
        let new = NewSet { slug: "a".into(), page_rule: PageRule { changes: 7, ..PageRule::default() } };
        let Ok(Outcome::Set(set)) = ask(writer, Work::OpenSet(new)) else { panic!("the set opens") };
        ask(writer, Work::CompleteImport(set.id)).unwrap();
        set.id
    }

    fn batch(number: usize) -> Vec<Change> {
        (0..30).map(|one| Change::put(format!("{one}/{number}"), State::default())).collect()
    }

    #[test]
    fn a_full_disk_refuses_a_batch_whole_and_goes_on_when_there_is_space() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder);
        let set = set(&mut writer);
        let pages: i64 = writer.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer.connection.pragma_update_and_check(None, "max_page_count", pages + 5, |_| Ok(())).unwrap();
        let mut number = 0;
        let error = loop {
            match ask(&mut writer, Work::Append(set, batch(number))) {
                Ok(_) => number += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("help: free space"), "{error}");
        let recorded = Position(number as u64 * 30);
        assert!(number > 0);
        assert_eq!((writer.books[&set].position, writer.heads.read().unwrap()[&set].position), (recorded, recorded));
        let stored = |writer: &Writer, table: &str| -> i64 {
            let sql = format!("SELECT count(*) FROM {table}");
            writer.connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!(stored(&writer, "changes") as u64, recorded.0);
        assert_eq!(writer.books[&set].shards.resources(), recorded.0);

        writer.connection.pragma_update_and_check(None, "max_page_count", pages + 500, |_| Ok(())).unwrap();
        ask(&mut writer, Work::Append(set, batch(number))).unwrap();
        assert_eq!(writer.books[&set].position, Position(recorded.0 + 30));
        assert_eq!(stored(&writer, "resources") as u64, recorded.0 + 30);
    }

    #[test]
    fn a_disk_that_fails_stops_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder);
        let set = set(&mut writer);
        ask(&mut writer, Work::Append(set, batch(0))).unwrap();
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None);
        let told = writer.failed(error);
        assert!(told.to_string().contains("its disk cannot be trusted"), "{told}");
        for _ in 0..2 {
            let error = ask(&mut writer, Work::Append(set, batch(1))).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains("accepts no more changes"), "{error}");
        }
        assert_eq!(writer.heads.read().unwrap()[&set].position, Position(30));
    }

    #[test]
    fn old_idempotency_keys_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(&folder);
        let set = set(&mut writer);
        let named = |name: &str| vec![Change::delete("x").with_idempotency_key(name)];
        ask(&mut writer, Work::Append(set, named("old"))).unwrap();
        writer.connection.execute("UPDATE idempotency SET time = 0", []).unwrap();
        writer.pruned = Timestamp::MIN;
        ask(&mut writer, Work::Append(set, named("new"))).unwrap();
        let kept: String =
            writer.connection.query_row("SELECT group_concat(key) FROM idempotency", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "new");
    }
}
