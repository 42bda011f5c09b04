//! Recording a group of jobs in a change log.

use crate::database::writer::Recorder;
use crate::log::apply;
use crate::log::commit_signal::CommitSignal;
use crate::log::limits::{import_is_complete, no_set, other_beginning, still_importing};
use crate::log::set_state::SetState;
use crate::log::shards::LiveShards;
use crate::log::sqlite::load::load_set_states;
use crate::log::sqlite::tables::SqliteTables;
use crate::log::versions;
use crate::log::work::{Job, Outcome, Work};
use abreast_core::batch::IDEMPOTENCY_AGE;
use abreast_core::{
    Appended, Beginning, Clock, Head, LogError, NewSet, ResourceSet, SetId, ShardRule,
};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Interval of searches for old idempotency keys.
const PRUNE_EVERY_MICROS: i64 = 3_600_000_000;
/// Most idempotency keys deleted in one transaction.
const PRUNE_MAX: i64 = 10_000;

/// The heads of all sets, as readers see them, and a signal for readers that wait for changes.
#[derive(Default)]
pub(crate) struct Heads {
    by_set: RwLock<HashMap<SetId, Head>>,
    pub(crate) commit_signal: CommitSignal,
}

impl Heads {
    /// The head of a set, if there is such a set.
    pub(crate) fn of(&self, set: SetId) -> Option<Head> {
        self.by_set.read().unwrap_or_else(PoisonError::into_inner).get(&set).copied()
    }
}

type JobResult = Result<Outcome, LogError>;

/// Values that the writer of a change log caches.
pub(crate) struct LogRecorder {
    clock: Arc<dyn Clock>,
    rule: ShardRule,
    pub(crate) set_states: HashMap<SetId, SetState>,
    pub(crate) heads: Arc<Heads>,
    /// Sets whose new head readers do not see yet.
    touched: Vec<SetId>,
    pub(crate) pruned: Timestamp,
}

impl LogRecorder {
    pub(crate) fn new(clock: Arc<dyn Clock>, rule: ShardRule, heads: Arc<Heads>) -> Self {
        Self {
            clock,
            rule,
            set_states: HashMap::new(),
            heads,
            touched: Vec::new(),
            pruned: Timestamp::MIN,
        }
    }
}

impl Recorder for LogRecorder {
    type Job = Job;
    type Outcome = JobResult;

    fn load(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.set_states = load_set_states(connection, self.rule)?;
        self.touched = self.set_states.keys().copied().collect();
        Ok(())
    }

    fn record(
        &mut self,
        connection: &Connection,
        group: &mut [Job],
    ) -> rusqlite::Result<Vec<JobResult>> {
        let now = self.clock.now();
        self.touched.clear();
        let mut run = Run {
            connection,
            tables: SqliteTables::new(connection)?,
            set_states: &mut self.set_states,
            clock: &*self.clock,
            rule: self.rule,
            touched: &mut self.touched,
        };
        let results =
            group.iter().map(|job| run.job(&job.work)).collect::<rusqlite::Result<Vec<_>>>()?;
        run.finish()?;
        if now.as_micros().saturating_sub(self.pruned.as_micros()).unsigned_abs()
            > PRUNE_EVERY_MICROS as u64
        {
            self.pruned = now;
            prune(connection, now)?;
        }
        Ok(results)
    }

    fn committed(&mut self) {
        let mut heads = self.heads.by_set.write().unwrap_or_else(PoisonError::into_inner);
        for set in self.touched.drain(..) {
            if let Some(set_state) = self.set_states.get(&set) {
                heads.insert(set, set_state.head());
            }
        }
        drop(heads);
        self.heads.commit_signal.notify();
    }

    fn reply(job: Job, outcome: JobResult) {
        job.reply.send(outcome);
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

/// A group of jobs inside its transaction.
struct Run<'w> {
    connection: &'w Connection,
    tables: SqliteTables<'w>,
    set_states: &'w mut HashMap<SetId, SetState>,
    clock: &'w dyn Clock,
    rule: ShardRule,
    touched: &'w mut Vec<SetId>,
}

impl Run<'_> {
    fn job(&mut self, work: &Work) -> rusqlite::Result<JobResult> {
        match work {
            Work::Refuse(error) => Ok(Err(LogError::new(error.kind(), error.to_string()))),
            Work::Append(set, changes) => self.with_set(*set, |set_state, tables, now| {
                if set_state.takes_base() {
                    return Ok(Err(still_importing()));
                }
                let mut results = apply::append(set_state, tables, &[changes], now)?;
                let appended = results.pop().unwrap_or_else(|| Ok(Appended::default()));
                Ok(appended.map(Outcome::Appended))
            }),
            Work::Import(set, resources) => self.with_set(*set, |set_state, tables, _| {
                if !set_state.takes_base() {
                    return Ok(Err(import_is_complete()));
                }
                apply::import(set_state, tables, resources)?;
                Ok(Ok(Outcome::Done))
            }),
            Work::RefreshWitnesses(set, witnesses) => self.with_set(*set, |_, tables, _| {
                for (key, witness) in witnesses {
                    tables.set_witness(key, witness)?;
                }
                Ok(Ok(Outcome::Done))
            }),
            Work::KeepVersions(set, keep) => self.with_set(*set, |set_state, _, _| {
                versions::keep(set_state, *keep);
                Ok(Ok(Outcome::Done))
            }),
            Work::CollectVersions(set, policy, limit) => {
                self.with_set(*set, |set_state, tables, now| {
                    Ok(Ok(Outcome::Collected(versions::collect(
                        set_state, tables, policy, now, *limit,
                    )?)))
                })
            }
            Work::ForgetContents(ids) => {
                self.tables.forget_contents(ids)?;
                Ok(Ok(Outcome::Done))
            }
            Work::CompleteImport(set) => self.complete_import(*set),
            Work::OpenSet(set) => self.open_set(set),
            // The store belongs to one process.
            #[cfg(feature = "postgres")]
            Work::TakeOver(..) => Ok(Ok(Outcome::Done)),
        }
    }

    fn with_set(
        &mut self,
        set: SetId,
        task: impl FnOnce(
            &mut SetState,
            &mut SqliteTables<'_>,
            Timestamp,
        ) -> rusqlite::Result<JobResult>,
    ) -> rusqlite::Result<JobResult> {
        let Some(set_state) = self.set_states.get_mut(&set) else { return Ok(Err(no_set(set))) };
        if !self.touched.contains(&set) {
            self.touched.push(set);
        }
        task(set_state, self.tables.of(set), self.clock.now())
    }

    fn complete_import(&mut self, set: SetId) -> rusqlite::Result<JobResult> {
        let connection = self.connection;
        self.with_set(set, |set_state, tables, now| {
            if set_state.importing {
                set_state.complete_import(now);
                connection
                    .prepare_cached("UPDATE sets SET importing = 0, created = ?2 WHERE id = ?1")?
                    .execute(params![set.0, set_state.created.as_micros()])?;
                tables.put_page(&set_state.page.page())?;
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
            if let Some(set_state) = self.set_states.get_mut(&id) {
                set_state.rule = new.page_rule;
            }
            id
        } else {
            let created = self.clock.now();
            // The name is not a former one any more.
            self.connection
                .prepare_cached("DELETE FROM former_sets WHERE slug = ?1")?
                .execute([&new.slug])?;
            self.connection
                .prepare_cached(
                    "INSERT INTO sets (slug, created, importing, page_changes, page_age, begins) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    new.slug,
                    created.as_micros(),
                    !in_log || new.incomplete,
                    new.page_rule.changes,
                    age,
                    in_log
                ])?;
            let id = SetId(self.connection.last_insert_rowid());
            let set_state = SetState::new(created, new, LiveShards::first(self.rule));
            self.tables.of(id).put_page(&set_state.page.page())?;
            self.set_states.insert(id, set_state);
            id
        };
        self.touched.push(id);
        Ok(Ok(Outcome::Set(ResourceSet { id, slug: new.slug.clone() })))
    }

    fn finish(mut self) -> rusqlite::Result<()> {
        for set in self.touched.iter() {
            if let Some(set_state) = self.set_states.get_mut(set) {
                self.tables.of(*set).store_shards(set_state)?;
                self.tables.store_versions(set_state)?;
            }
        }
        Ok(())
    }
}
