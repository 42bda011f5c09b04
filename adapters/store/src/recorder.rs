//! A group of jobs recorded in a change log.

use crate::apply::{self, IDEMPOTENCY_AGE};
use crate::bell::Bell;
use crate::book::Book;
use crate::limits::{import_is_complete, no_set, other_beginning, still_importing};
use crate::load::load_books;
use crate::shards::LiveShards;
use crate::tables::SqliteTables;
use crate::versions;
use crate::work::{Job, Outcome, Work};
use crate::writer::Recorder;
use abreast_core::{Beginning, Clock, Head, LogError, NewSet, ResourceSet, SetId, ShardRule};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// How often old idempotency keys are looked for.
const PRUNE_EVERY_MICROS: i64 = 3_600_000_000;
/// Most idempotency keys forgotten in one transaction.
const PRUNE_MAX: i64 = 10_000;

/// The heads of all sets, as readers see them, and a bell for those who wait for them to move.
#[derive(Default)]
pub(crate) struct Heads {
    by_set: RwLock<HashMap<SetId, Head>>,
    pub(crate) bell: Bell,
}

impl Heads {
    /// The head of a set, if there is such a set.
    pub(crate) fn of(&self, set: SetId) -> Option<Head> {
        self.by_set.read().unwrap_or_else(PoisonError::into_inner).get(&set).copied()
    }
}

type JobResult = Result<Outcome, LogError>;

/// What the writer of a change log knows.
pub(crate) struct LogRecorder {
    clock: Arc<dyn Clock>,
    rule: ShardRule,
    pub(crate) books: HashMap<SetId, Book>,
    pub(crate) heads: Arc<Heads>,
    /// Sets whose heads readers do not see yet.
    touched: Vec<SetId>,
    pub(crate) pruned: Timestamp,
}

impl LogRecorder {
    pub(crate) fn new(clock: Arc<dyn Clock>, rule: ShardRule, heads: Arc<Heads>) -> Self {
        Self { clock, rule, books: HashMap::new(), heads, touched: Vec::new(), pruned: Timestamp::MIN }
    }
}

impl Recorder for LogRecorder {
    type Job = Job;
    type Told = JobResult;

    fn load(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.books = load_books(connection, self.rule)?;
        self.touched = self.books.keys().copied().collect();
        Ok(())
    }

    fn record(&mut self, connection: &Connection, group: &mut [Job]) -> rusqlite::Result<Vec<JobResult>> {
        let now = self.clock.now();
        self.touched.clear();
        let mut run = Run {
            connection,
            tables: SqliteTables::new(connection)?,
            books: &mut self.books,
            clock: &*self.clock,
            rule: self.rule,
            touched: &mut self.touched,
        };
        let results = group.iter().map(|job| run.job(&job.work)).collect::<rusqlite::Result<Vec<_>>>()?;
        run.finish()?;
        if now.as_micros().saturating_sub(self.pruned.as_micros()).unsigned_abs() > PRUNE_EVERY_MICROS as u64 {
            self.pruned = now;
            prune(connection, now)?;
        }
        Ok(results)
    }

    fn committed(&mut self) {
        let mut heads = self.heads.by_set.write().unwrap_or_else(PoisonError::into_inner);
        for set in self.touched.drain(..) {
            if let Some(book) = self.books.get(&set) {
                heads.insert(set, book.head());
            }
        }
        drop(heads);
        self.heads.bell.ring();
    }

    fn tell(job: Job, told: JobResult) {
        job.reply.send(told);
    }
}

fn prune(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let expired = now.plus_micros(-(IDEMPOTENCY_AGE.as_micros() as i64));
    connection
        .prepare_cached(
            "DELETE FROM idempotency WHERE (set_id, key) IN \
             (SELECT set_id, key FROM idempotency WHERE time < ?1 LIMIT ?2)",
        )?
        .execute([expired.as_micros(), PRUNE_MAX])?;
    Ok(())
}

/// One group inside its transaction.
struct Run<'w> {
    connection: &'w Connection,
    tables: SqliteTables<'w>,
    books: &'w mut HashMap<SetId, Book>,
    clock: &'w dyn Clock,
    rule: ShardRule,
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
        let in_log = new.beginning == Beginning::Log;
        let known = self
            .connection
            .prepare_cached("SELECT id, begins FROM sets WHERE slug = ?1")?
            .query_row([&new.slug], |row| Ok((row.get(0).map(SetId)?, row.get::<_, bool>(1)?)))
            .optional()?;
        let id = if let Some((id, known_in_log)) = known {
            if known_in_log != in_log {
                return Ok(Err(other_beginning(new)));
            }
            self.connection
                .prepare_cached("UPDATE sets SET page_changes = ?2, page_age = ?3 WHERE id = ?1")?
                .execute(params![id.0, new.page_rule.changes, age])?;
            if let Some(book) = self.books.get_mut(&id) {
                book.rule = new.page_rule;
            }
            id
        } else {
            let created = self.clock.now();
            self.connection
                .prepare_cached(
                    "INSERT INTO sets (slug, created, importing, page_changes, page_age, begins) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![new.slug, created.as_micros(), !in_log, new.page_rule.changes, age, in_log])?;
            let id = SetId(self.connection.last_insert_rowid());
            let book = Book::new(created, new, LiveShards::first(self.rule));
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
