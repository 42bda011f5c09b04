//! The threads of a node that record changes, each set in transactions of its own.

use crate::database::queue::{AbandonOnDrop, Queue, answer};
use crate::log::apply;
use crate::log::limits::{import_is_complete, no_set, still_importing};
use crate::log::postgres::load::{Cached, Locked, lock, store};
use crate::log::postgres::tables::PostgresTables;
use crate::log::postgres::watch::Watch;
use crate::log::set_state::SetState;
use crate::log::versions;
use crate::log::work::{Job, Outcome, Work};
use crate::postgres::attempts::{Attempts, Failed, Prepared, commit};
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::batch::IDEMPOTENCY_AGE;
use abreast_core::{Appended, Change, Clock, ErrorKind, Lease, LogError, SetId, ShardRule};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Interval of searches for old idempotency keys and writers.
const PRUNE_EVERY_MICROS: u64 = 3_600_000_000;
/// Most idempotency keys deleted in one transaction.
const PRUNE_MAX: i64 = 10_000;
/// Age at which the record of a writer's last batch is deleted.
const WRITER_AGE_MICROS: i64 = 24 * 3_600_000_000;

type JobResult = Result<Outcome, LogError>;

/// A thread that records the jobs of some sets.
pub(crate) struct LogWriter {
    pub(crate) client: Arc<Client>,
    /// The clock of tests; the database's if `None`.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) rule: ShardRule,
    pub(crate) watch: Arc<Watch>,
    /// Name of this thread in the database.
    pub(crate) name: String,
    pub(crate) cached: HashMap<SetId, Cached>,
    /// When old rows of a set were last searched.
    pub(crate) pruned: HashMap<SetId, Timestamp>,
    /// Number of the last batch.
    pub(crate) batch: i64,
    pub(crate) attempts: Attempts,
}

/// The results of a group of jobs, before it is known whether its transaction was committed.
struct Attempt {
    results: Vec<JobResult>,
    cached: Option<Cached>,
}

impl LogWriter {
    /// Processes jobs until the queue is closed and empty.
    pub(crate) fn run(mut self, queue: &Queue<Job>) {
        let _abandon = AbandonOnDrop(queue);
        loop {
            let group = queue.take();
            if group.is_empty() {
                return;
            }
            self.serve(group);
        }
    }

    /// Records a group, one transaction for each run of jobs of one set.
    fn serve(&mut self, group: Vec<Job>) {
        let mut jobs: Vec<Job> = Vec::new();
        for job in group {
            let set = job.work.set();
            if jobs.first().is_some_and(|first| first.work.set() != set) {
                self.serve_set(std::mem::take(&mut jobs));
            }
            jobs.push(job);
        }
        self.serve_set(jobs);
    }

    fn serve_set(&mut self, jobs: Vec<Job>) {
        let Some(set) = jobs.first().and_then(|job| job.work.set()) else {
            for job in jobs {
                if let Work::Refuse(error) = job.work {
                    answer(|| job.reply.send(Err(error)));
                }
            }
            return;
        };
        let results = match self.record_or_panic(set, &jobs) {
            // One job may have spoiled the transaction of the others.
            Err(failure) if jobs.len() > 1 && !failure.is_passing() => {
                let alone =
                    |job: &Job| self.record_or_panic(set, std::slice::from_ref(job)).and_then(one);
                jobs.iter().map(alone).collect()
            }
            Ok(results) => results,
            Err(failure) => {
                let failure = Arc::new(failure);
                let error = || {
                    LogError::new(failure.kind(), failure.to_string())
                        .with_cause(Arc::clone(&failure))
                };
                jobs.iter().map(|_| Err(error())).collect()
            }
        };
        for (job, result) in jobs.into_iter().zip(results) {
            answer(|| job.reply.send(result));
        }
    }

    fn record_or_panic(&mut self, set: SetId, jobs: &[Job]) -> Result<Vec<JobResult>, LogError> {
        catch_unwind(AssertUnwindSafe(|| self.record(set, jobs))).unwrap_or_else(|_| {
            self.cached.remove(&set);
            let message = "recording stopped by a fault of the program, which is in its log";
            Err(LogError::new(ErrorKind::Io, message))
        })
    }

    /// Records jobs of a set in one transaction, and repeats it while that may help. A lost
    /// connection during the commit leaves open whether the batch is recorded: the next transaction
    /// that has the lock of the set finds its number, or does not.
    fn record(&mut self, set: SetId, jobs: &[Job]) -> Result<Vec<JobResult>, LogError> {
        self.batch += 1;
        let mut attempts = std::mem::take(&mut self.attempts);
        let recorded =
            attempts.repeat("cannot record changes", |unknown| self.attempt(set, jobs, unknown));
        self.attempts = attempts;
        Ok(self.recorded(set, *recorded?))
    }

    fn recorded(&mut self, set: SetId, attempt: Attempt) -> Vec<JobResult> {
        if let Some(cached) = attempt.cached {
            self.watch.recorded(set, cached.state.position);
            self.cached.insert(set, cached);
        }
        attempt.results
    }

    /// One transaction. `unknown` is an earlier attempt whose commit was not answered.
    fn attempt(
        &mut self,
        set: SetId,
        jobs: &[Job],
        unknown: &mut Option<Box<Attempt>>,
    ) -> Result<Box<Attempt>, Failed<Attempt>> {
        let client = Arc::clone(&self.client);
        if let Some(prepared) = self.prepare(&client, set, jobs, unknown.is_some())? {
            return commit(prepared, unknown);
        }
        let results = jobs.iter().map(|_| Err(no_set(set))).collect();
        Ok(Box::new(Attempt { results, cached: None }))
    }

    /// Writes the jobs in a transaction; `None` if there is no such set.
    fn prepare<'c>(
        &mut self,
        client: &'c Client,
        set: SetId,
        jobs: &[Job],
        is_unknown: bool,
    ) -> Result<Option<Prepared<'c, Attempt>>, Failure> {
        // A failed attempt leaves nothing in the cache.
        let cached = self.cached.remove(&set);
        let Some((Locked { cached, now, worker }, mut statements)) =
            lock(client, set, &self.name, cached, self.rule)?
        else {
            return Ok(None);
        };
        if is_unknown && self.is_recorded(&mut statements, set)? {
            return Ok(Some(Prepared::Known));
        }
        let Cached { revision, mut state, .. } = cached;
        let now = self.clock.as_ref().map_or(now, |clock| clock.now());
        let mut tables = PostgresTables::new(statements, set, revision + 1);
        let results = run(&mut state, &mut tables, jobs, (now, worker))?;
        store(&mut tables, &mut state)?;
        self.sign(&mut tables.statements, set, now)?;
        tables.statements.send()?;
        let cached = Some(Cached { revision: revision + 1, batch: Some(self.batch), state });
        let attempt = Box::new(Attempt { results, cached });
        Ok(Some(Prepared::Write(attempt, Box::new(tables.statements))))
    }

    /// Whether the present batch is recorded.
    fn is_recorded(&self, statements: &mut Statements<'_>, set: SetId) -> Result<bool, Failure> {
        let found = statements.query_first(
            "SELECT batch FROM abreast.writers WHERE set_id = $1 AND writer = $2",
            &params![set.0 => INT8, self.name.clone() => TEXT],
        )?;
        let batch = found.map(|row| row.try_get::<_, i64>(0)).transpose()?;
        Ok(batch == Some(self.batch))
    }

    /// Records the number of the batch, and deletes old rows now and then.
    fn sign(
        &mut self,
        statements: &mut Statements<'_>,
        set: SetId,
        now: Timestamp,
    ) -> Result<(), Failure> {
        statements.write(
            "INSERT INTO abreast.writers (set_id, writer, batch, time) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (set_id, writer) DO UPDATE SET batch = excluded.batch, time = excluded.time",
            params![
                set.0 => INT8, self.name.clone() => TEXT, self.batch => INT8, now.as_micros() => INT8,
            ],
        )?;
        let pruned = self.pruned.entry(set).or_insert(Timestamp::MIN);
        if now.as_micros().abs_diff(pruned.as_micros()) <= PRUNE_EVERY_MICROS {
            return Ok(());
        }
        *pruned = now;
        let expired = now.plus_micros(-(IDEMPOTENCY_AGE.as_micros() as i64));
        statements.write(
            "DELETE FROM abreast.idempotency WHERE set_id = $1 AND key IN \
             (SELECT key FROM abreast.idempotency WHERE set_id = $1 AND time < $2 ORDER BY time LIMIT $3)",
            params![set.0 => INT8, expired.as_micros() => INT8, PRUNE_MAX => INT8],
        )?;
        statements.write(
            "DELETE FROM abreast.writers WHERE set_id = $1 AND time < $2",
            params![set.0 => INT8, now.plus_micros(-WRITER_AGE_MICROS).as_micros() => INT8],
        )
    }
}

/// The result of the only job of a group.
fn one(mut results: Vec<JobResult>) -> JobResult {
    results.pop().unwrap_or_else(|| Err(LogError::new(ErrorKind::Io, "a job got no result")))
}

/// Runs the jobs of a set inside its transaction. Appends in a row are one batch.
fn run(
    state: &mut SetState,
    tables: &mut PostgresTables<'_>,
    jobs: &[Job],
    (now, mut worker): (Timestamp, i64),
) -> Result<Vec<JobResult>, Failure> {
    let mut results = Vec::with_capacity(jobs.len());
    while let Some(next) = jobs.get(results.len()) {
        if next.is_late(worker) {
            results.push(Err(Lease::over()));
        } else if let Work::Append(..) = next.work {
            let waiting = jobs[results.len()..].iter().take_while(|job| !job.is_late(worker));
            let batches: Vec<&[Change]> = waiting.map_while(|job| job.work.batch()).collect();
            if state.takes_base() {
                results.extend(batches.iter().map(|_| Err(still_importing())));
            } else {
                let appended = apply::append(state, tables, &batches, now)?;
                results.extend(appended.into_iter().map(|result| result.map(Outcome::Appended)));
            }
        } else if let Work::TakeOver(_, name, process) = &next.work {
            let is_holder = take_over(tables, name, *process)?;
            if is_holder {
                worker = *process;
            }
            results.push(if is_holder { Ok(Outcome::Done) } else { Err(Lease::over()) });
        } else {
            results.push(job(state, tables, &next.work, now)?);
        }
    }
    Ok(results)
}

/// Makes a process the worker of the set, and returns whether the process has the lease. The lock of
/// the set is held: transactions of earlier workers have ended.
fn take_over(tables: &mut PostgresTables<'_>, lease: &str, process: i64) -> Result<bool, Failure> {
    let statements = &mut tables.statements;
    let owner = statements.query_first(
        "SELECT owner FROM abreast.leases WHERE name = $1",
        &params![lease.to_owned() => TEXT],
    )?;
    let owner: Option<i64> = owner.map(|row| row.try_get(0)).transpose()?;
    if owner != Some(process) {
        return Ok(false);
    }
    statements.write(
        "UPDATE abreast.sets SET worker = $2 WHERE id = $1",
        params![tables.set => INT8, process => INT8],
    )?;
    Ok(true)
}

fn job(
    state: &mut SetState,
    tables: &mut PostgresTables<'_>,
    work: &Work,
    now: Timestamp,
) -> Result<JobResult, Failure> {
    Ok(match work {
        Work::Import(_, resources) => {
            if state.takes_base() {
                apply::import(state, tables, resources)?;
                Ok(Outcome::Done)
            } else {
                Err(import_is_complete())
            }
        }
        Work::CompleteImport(_) => {
            if state.importing {
                state.complete_import(now);
                tables.put_pages(&[&state.page.page()])?;
                tables.statements.write(
                    "UPDATE abreast.sets SET created = $2 WHERE id = $1",
                    params![tables.set => INT8, state.created.as_micros() => INT8],
                )?;
            }
            Ok(Outcome::Done)
        }
        Work::RefreshWitnesses(_, witnesses) => {
            tables.set_witnesses(witnesses)?;
            Ok(Outcome::Done)
        }
        Work::KeepVersions(_, keep) => {
            versions::keep(state, *keep);
            Ok(Outcome::Done)
        }
        Work::CollectVersions(_, policy, limit) => {
            Ok(Outcome::Collected(versions::collect(state, tables, policy, now, *limit)?))
        }
        Work::Append(..)
        | Work::Refuse(_)
        | Work::OpenSet(_)
        | Work::ForgetContents(_)
        | Work::TakeOver(..) => Ok(Outcome::Appended(Appended::default())),
    })
}
