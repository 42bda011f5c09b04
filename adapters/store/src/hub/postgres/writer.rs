//! The thread of a node that records a hub's changes, in groups.

use super::job::{Job, Needs};
use super::letters;
use super::loaded::{Loaded, Wanted};
use super::node::{Node, Seen, database_now, has_seen};
use super::transaction::{HubState, HubTransaction, LOCK_HUB, LOCK_WRITER, NodeLease};
use super::{targets, topics};
use crate::database::queue::{AbandonOnDrop, Queue, QueueItem as _, answer};
use crate::hub::topic_states::TopicStates;
use crate::postgres::attempts::{Attempts, Failed, Prepared, commit};
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::problem::copy_of;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::hub::HubRevision;
use abreast_core::{Clock, ErrorKind, LogError};
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::Row;

/// Interval of deletions of old rows.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// Most dead letters deleted in one transaction.
const PRUNE_MAX: i64 = 10_000;
/// Revisions whose stamps are retained. A node that knows an older one has lost its lease.
const STAMPS: i64 = 100_000;
/// Age at which the record of a writer's last batch is deleted.
const WRITER_AGE_MICROS: i64 = 24 * 3_600_000_000;

/// A thread that records requests.
pub(crate) struct HubWriter {
    pub(crate) client: Arc<Client>,
    /// The clock of tests; the database's if `None`.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    /// Name of this thread in the database.
    pub(crate) name: String,
    pub(crate) node: Arc<Node>,
    pub(crate) cached: Option<Cached>,
    pub(crate) pruned: Option<Instant>,
    /// Number of the last batch.
    pub(crate) batch: i64,
    /// The previous revision, and the revision that the present batch records, if it changes the hub.
    pub(crate) revisions: Option<[HubRevision; 2]>,
    pub(crate) attempts: Attempts,
}

/// The hub as the last transaction of this writer left it.
pub(crate) struct Cached {
    /// The writer's last batch. A database that lost it in a failover or a restore may have the same
    /// revision with another content.
    batch: Option<i64>,
    state: HubState,
}

/// What a transaction leaves in the cache.
type Attempt = Option<Cached>;

impl HubWriter {
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

    fn serve(&mut self, mut group: Vec<Job>) {
        match self.record_or_panic(&mut group) {
            Ok(()) => group.into_iter().for_each(|job| answer(|| job.reply())),
            // One job may have spoiled the transaction of the others.
            Err(failure) if group.len() > 1 && !failure.is_passing() => {
                for job in group {
                    let mut alone = vec![job];
                    let result = self.record_or_panic(&mut alone);
                    for job in alone {
                        match &result {
                            Ok(()) => answer(|| job.reply()),
                            Err(failure) => answer(|| job.refuse(copy_of(failure))),
                        }
                    }
                }
            }
            Err(failure) => {
                for job in group {
                    answer(|| job.refuse(copy_of(&failure)));
                }
            }
        }
    }

    fn record_or_panic(&mut self, group: &mut [Job]) -> Result<(), LogError> {
        catch_unwind(AssertUnwindSafe(|| self.record(group))).unwrap_or_else(|_| {
            self.cached = None;
            let message = "recording stopped by a fault of the program, which is in its log";
            Err(LogError::new(ErrorKind::Io, message))
        })
    }

    /// Records a group in one transaction, and repeats it while that may help.
    fn record(&mut self, group: &mut [Job]) -> Result<(), LogError> {
        self.batch += 1;
        self.revisions = None;
        let mut attempts = std::mem::take(&mut self.attempts);
        let client = Arc::clone(&self.client);
        let recorded = attempts.repeat("cannot record changes", |unknown| {
            let prepared = self.prepare(&client, group, unknown.is_some())?;
            commit(prepared, unknown).map_err(|failed: Failed<Attempt>| failed)
        });
        self.attempts = attempts;
        self.cached = *recorded?;
        if let Some([before, revision]) = self.revisions {
            self.node.recorded(before, revision);
        }
        Ok(())
    }

    fn prepare<'c>(
        &mut self,
        client: &'c Client,
        group: &mut [Job],
        is_unknown: bool,
    ) -> Result<Prepared<'c, Attempt>, Failure> {
        // A failed attempt leaves nothing in the cache.
        let cached = self.cached.take();
        let locks = group.iter().any(|job| job.needs == Needs::Hub);
        let (mut statements, row) = Statements::begin(
            client,
            if locks { LOCK_HUB } else { LOCK_WRITER },
            &params![self.name.clone() => TEXT],
        )?;
        let (now, batch) = match &row {
            Some(row) => (Timestamp::from_micros(row.try_get(0)?), row.try_get(1)?),
            None if locks => {
                return Err(Failure::Damaged(
                    "the row of the hub is not in the database".to_owned(),
                ));
            }
            None => (database_time(&mut statements)?, None),
        };
        // The statement that waited for the lock has an older snapshot.
        if is_unknown && self.is_recorded(&mut statements)? {
            return Ok(Prepared::Known);
        }
        let cached = cached.filter(|cached| cached.batch == batch);
        let known = match (&row, locks) {
            (Some(row), true) => load(&mut statements, row, cached)?,
            _ => cached.map_or_else(HubState::default, |cached| cached.state),
        };
        let records_progress = group.iter().any(|job| job.needs == Needs::Progress);
        let node = match self.node.id().filter(|_| records_progress) {
            Some(id) => Some(lock_node(&mut statements, id, &self.node.seen())?),
            None => None,
        };
        let now = self.clock.as_ref().map_or(now, |clock| clock.now());
        let mut run = HubTransaction {
            statements,
            known,
            now,
            node,
            loaded: Loaded::default(),
            touched: BTreeSet::new(),
            published: Vec::new(),
        };
        if !records_progress {
            let wanted: Vec<&Wanted> = group.iter().filter_map(|job| job.wanted.as_ref()).collect();
            run.loaded.read(&mut run.statements, &wanted)?;
        }
        for job in group.iter_mut() {
            job.run(&mut run)?;
        }
        topics::write_published(&mut run)?;
        topics::store(&mut run)?;
        if locks {
            targets::trim_ended(&mut run)?;
            let (number, stamp) = (run.known.revision as u64, run.known.stamp as u64);
            let before = HubRevision { number: number - 1, stamp };
            run.store_hub()?;
            let stamp = run.known.stamp as u64;
            self.revisions = Some([before, HubRevision { number, stamp }]);
        }
        self.sign(&mut run)?;
        run.statements.send()?;
        // Without the lock, the state is that of an earlier revision, or of none.
        let is_read = locks || run.known.revision > 0;
        let cached = is_read.then_some(Cached { batch: Some(self.batch), state: run.known });
        Ok(Prepared::Write(Box::new(cached), Box::new(run.statements)))
    }

    /// Whether the present batch is recorded.
    fn is_recorded(&self, statements: &mut Statements<'_>) -> Result<bool, Failure> {
        let found = statements.query_first(
            "SELECT batch FROM abreast.writers WHERE set_id = 0 AND writer = $1",
            &params![self.name.clone() => TEXT],
        )?;
        let batch = found.map(|row| row.try_get::<_, i64>(0)).transpose()?;
        Ok(batch == Some(self.batch))
    }

    /// Records the number of the batch, and deletes old rows now and then.
    fn sign(&mut self, run: &mut HubTransaction<'_>) -> Result<(), Failure> {
        run.statements.write(
            "INSERT INTO abreast.writers (set_id, writer, batch, time) VALUES (0, $1, $2, $3) \
             ON CONFLICT (set_id, writer) DO UPDATE SET batch = excluded.batch, time = excluded.time",
            params![
                self.name.clone() => TEXT, self.batch => INT8, run.now.as_micros() => INT8,
            ],
        )?;
        if self.pruned.is_some_and(|pruned| pruned.elapsed() < PRUNE_EVERY) {
            return Ok(());
        }
        self.pruned = Some(Instant::now());
        letters::delete_oldest(run, PRUNE_MAX)?;
        run.statements.write(
            "DELETE FROM abreast.revisions WHERE revision < $1",
            params![run.known.revision - STAMPS => INT8],
        )?;
        run.statements.write(
            "DELETE FROM abreast.writers WHERE set_id = 0 AND time < $1",
            params![run.now.plus_micros(-WRITER_AGE_MICROS).as_micros() => INT8],
        )
    }
}

/// The locked row of the hub, with the topics that changed since `cached`, and the revision of this
/// transaction.
fn load(
    statements: &mut Statements<'_>,
    row: &Row,
    cached: Option<Cached>,
) -> Result<HubState, Failure> {
    let (revision, topics) = match cached {
        Some(Cached { state, .. }) => (state.revision, state.topics),
        None => (-1, TopicStates::new()),
    };
    let mut state = HubState::read(row, topics)?;
    if state.revision != revision {
        topics::refresh(statements, revision, &mut state.topics)?;
    }
    state.revision += 1;
    Ok(state)
}

/// Locks the row of a node until the transaction ends: other nodes cannot take its shards meanwhile.
/// A node also has no lease if the database lost a revision that the node has seen: its progress is
/// about notifications that were lost.
fn lock_node(statements: &mut Statements<'_>, id: i64, seen: &Seen) -> Result<NodeLease, Failure> {
    let found = statements.query_first(
        concat!(
            "SELECT id FROM abreast.nodes WHERE id = $1 AND until > ",
            database_now!(),
            " AND ",
            has_seen!("$2", "$3"),
            " FOR SHARE"
        ),
        &params![
            id => INT8, seen.numbers.clone() => INT8_ARRAY, seen.stamps.clone() => INT8_ARRAY,
        ],
    )?;
    Ok(found.map_or(NodeLease::Over, |_| NodeLease::Valid(id)))
}

fn database_time(statements: &mut Statements<'_>) -> Result<Timestamp, Failure> {
    let row = statements.query_first(concat!("SELECT ", database_now!()), &[])?;
    row.map_or(Ok(Timestamp::default()), |row| Ok(Timestamp::from_micros(row.try_get(0)?)))
}
