//! A plan carried out: fetch and store, make room where names conflict, then delete [design: journal].

use crate::desk::Desk;
use crate::error::{Error, ExitCode};
use crate::events::ItemAction;
use crate::session::Session;
use crate::sink::outcome::{Failure, Outcome};
use crate::workers::{Chunk, Crew, DoneChunk};
use abreast_store::mirror::{PendingAction, PendingState, Task};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Most items handed out together.
const CHUNK_ITEMS: usize = 64;
/// Listed bytes after which a chunk ends.
const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks handed out at a time, at least: enough to see several folders.
const OUTSTANDING_CHUNKS: usize = 48;
/// What an item of unknown length counts.
const UNKNOWN_BYTES: u64 = 16 << 10;
/// Items read from the plan at a time.
pub(crate) const READ_ITEMS: usize = 512;
/// Items deleted together.
const DELETED_TOGETHER: usize = 128;
/// Passes over items that wait for a parent folder.
const CONFLICT_PASSES: usize = 4;
/// Failures remembered until it is known that they stand; beyond, they are told at once.
const REPORTS_MAX: usize = 10_000;
/// How often a stop is looked for.
const TICK: Duration = Duration::from_millis(100);

/// A failure not told yet, because the Source may have changed the resource meanwhile.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) uri: String,
    pub(crate) failure: Failure,
    /// It failed in an earlier run too.
    pub(crate) again: bool,
}

impl Session<'_> {
    /// Does everything in the plan that is due except deletions; failures go to `reports`.
    pub(crate) fn apply_fetches(&mut self, reports: &mut Vec<Report>) -> Result<(), Error> {
        if self.options.dry_run {
            return self.rehearse_fetches(reports);
        }
        self.report.begin_phase("fetching");
        for pass in 1..=CONFLICT_PASSES {
            let counts = self.mirror.pending_counts()?;
            if counts.fetches > 0 {
                self.fetch_pass(counts.fetches, counts.bytes, reports)?;
            }
            if self.report.summary.budget_spent || self.mirror.pending_counts()?.conflicts == 0 {
                return Ok(());
            }
            if pass < CONFLICT_PASSES {
                self.make_room()?;
            }
        }
        let mut waiting = Vec::new();
        loop {
            waiting.clear();
            self.mirror.conflicts_after("", READ_ITEMS, &mut waiting)?;
            if waiting.is_empty() {
                return Ok(());
            }
            for task in &waiting {
                self.mirror.set_pending_state(&task.pending.uri, PendingState::Failed, true)?;
                self.failed(task, in_the_way(), reports);
            }
        }
    }

    fn failed(&mut self, task: &Task, failure: Failure, reports: &mut Vec<Report>) {
        let again = task.pending.attempts > 0;
        self.count_failure(&failure, again);
        let report = Report { uri: task.pending.uri.clone(), failure, again };
        if reports.len() < REPORTS_MAX {
            reports.push(report);
        } else {
            self.report.problem(report.failure.code, &report.uri, &report.failure.message);
        }
    }

    pub(crate) fn count_failure(&mut self, failure: &Failure, again: bool) {
        if failure.refused {
            self.report.summary.skipped += 1;
        } else {
            self.report.summary.failed += 1;
        }
        self.report.new_failures += u64::from(!again);
    }

    fn fetch_pass(&mut self, total: u64, total_bytes: u64, reports: &mut Vec<Report>) -> Result<(), Error> {
        let connections = self.options.connections.max(1);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.options.threads.unwrap_or(cores).clamp(1, connections);
        let outstanding_max = (connections * 2).max(OUTSTANDING_CHUNKS);
        let desk = Arc::new(Desk::new(threads));
        let (send_done, done) = std::sync::mpsc::channel::<DoneChunk>();
        let stop = Arc::new(AtomicBool::new(false));
        let lost = Arc::new(AtomicBool::new(false));
        let crew = Crew {
            sink: Arc::clone(self.sink()),
            rules: Arc::clone(&self.rules),
            shared: Arc::clone(&self.shared),
            desk: Arc::clone(&desk),
            stop: Arc::clone(&stop),
            lost: Arc::clone(&lost),
        };
        let result = std::thread::scope(|scope| {
            for number in 0..threads {
                let (crew, done) = (crew.clone(), send_done.clone());
                let connections = connections / threads + usize::from(number < connections % threads);
                std::thread::Builder::new()
                    .name(format!("fetch-{number}"))
                    .spawn_scoped(scope, move || {
                        if let Err(error) = crew.run(number, connections, &done) {
                            tracing::error!(%error, "cannot start a thread's runtime");
                        }
                    })
                    .map_err(|cause| {
                        // Those that started are sent home.
                        desk.close();
                        Error::new("io", ExitCode::Io, "cannot start a thread").with_cause(cause)
                    })?;
            }
            drop((send_done, crew));
            let _going = SendHome { desk: &desk, stop: &stop };
            let result = self.coordinate(&desk, &done, &stop, outstanding_max, (total, total_bytes), reports);
            stop.store(result.is_err() || stop.load(Ordering::Relaxed), Ordering::Relaxed);
            desk.close();
            if lost.load(Ordering::Relaxed) { Err(worker_gone()) } else { result }
        });
        if result.is_err() {
            self.mirror.rollback()?;
        }
        result
    }

    /// Hands out work and keeps what comes back, until all is done or the run is to stop.
    fn coordinate(
        &mut self,
        desk: &Desk,
        done: &std::sync::mpsc::Receiver<DoneChunk>,
        stop: &AtomicBool,
        outstanding_max: usize,
        (total, total_bytes): (u64, u64),
        reports: &mut Vec<Report>,
    ) -> Result<(), Error> {
        let connections = self.options.connections.max(1) as u64;
        let mut source =
            Due { buffer: VecDeque::new(), key: String::new(), exhausted: false, remaining: total, connections };
        let batch_items = self.sink().batch_items();
        let (mut outstanding, mut finished, mut uncommitted) = (0, 0, 0);
        let (mut at_limit, mut undone) = (false, false);
        let mut fatal = None;
        self.mirror.begin()?;
        loop {
            if self.is_cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
            if !at_limit && self.requests.allowance.reached().is_some() {
                at_limit = true;
                stop.store(true, Ordering::Relaxed);
            }
            while outstanding < outstanding_max && !stop.load(Ordering::Relaxed) {
                let chunk = source.next_chunk(self)?;
                if chunk.is_empty() {
                    break;
                }
                desk.put(chunk);
                outstanding += 1;
            }
            if outstanding == 0 {
                break;
            }
            self.report.status(finished, total, total_bytes);
            let chunk = match done.recv_timeout(TICK) {
                Ok(chunk) => chunk,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(worker_gone()),
            };
            outstanding -= 1;
            finished += chunk.len() as u64;
            uncommitted += chunk.len() as u64;
            undone |= chunk.iter().any(|(_, outcome)| outcome.is_none());
            fatal = fatal.or(self.keep(chunk, reports)?);
            if fatal.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            if !self.report.summary.budget_spent && self.report.over_budget(total) {
                self.report.summary.budget_spent = true;
                stop.store(true, Ordering::Relaxed);
            }
            if uncommitted >= batch_items {
                self.settle_and_commit()?;
                self.mirror.begin()?;
                uncommitted = 0;
            }
        }
        // A limit that is reached with the last items, which may have come before the stop did, stops nothing.
        if at_limit && (undone || source.remaining > 0) && self.over_limit() {
            self.report.summary.budget_spent = true;
        }
        self.settle_and_commit()?;
        match fatal {
            Some(error) => Err(error),
            None => self.check_cancelled(),
        }
    }

    /// Ends a transaction in which outcomes were kept: first the contents are made durable, then the rows.
    pub(crate) fn settle_and_commit(&mut self) -> Result<(), Error> {
        self.sink().settle(&self.mirror)?;
        self.commit()
    }

    /// Keeps the outcome of one chunk in the state, tells it and counts it; gives back what makes going on useless.
    /// The chunk is in the order of URIs, and the caller holds a transaction.
    pub(crate) fn keep(&mut self, chunk: DoneChunk, reports: &mut Vec<Report>) -> Result<Option<Error>, Error> {
        let whole = chunk.iter().all(|(_, outcome)| outcome.is_some());
        let as_planned =
            whole && chunk.iter().all(|(task, outcome)| is_as_planned(task, outcome.as_ref(), self.rules.epoch));
        let items = chunk.len() as u64;
        let ends = chunk
            .first()
            .zip(chunk.last())
            .map(|(first, last)| (first.0.pending.uri.clone(), last.0.pending.uri.clone()));
        let mut fatal = None;
        for (task, outcome) in chunk {
            let uri = &task.pending.uri;
            match outcome {
                Some(Outcome::Stored { row, created, notices }) => {
                    if !as_planned {
                        self.mirror.put_row(&row)?;
                    }
                    self.check_reserved(&task, &row)?;
                    let action = if created { ItemAction::Created } else { ItemAction::Updated };
                    *(if created { &mut self.report.summary.created } else { &mut self.report.summary.updated }) += 1;
                    self.report.summary.unverified += u64::from(!row.verified);
                    self.item(uri, row.leaf, action, row.length);
                    for notice in notices {
                        self.report.notice(notice.code, uri, &notice.message);
                    }
                }
                Some(Outcome::Right { row }) => {
                    self.mirror.put_row(&row)?;
                    self.check_reserved(&task, &row)?;
                    self.report.summary.unchanged += 1;
                    self.item(uri, row.leaf, ItemAction::Unchanged, 0);
                }
                Some(Outcome::Conflict) => {
                    self.mirror.set_pending_state(uri, PendingState::Conflict, false)?;
                    continue;
                }
                Some(Outcome::Failed(failure)) if failure.fatal => {
                    fatal = Some(failure.into_error());
                    self.mirror.set_pending_state(uri, PendingState::Failed, false)?;
                    continue;
                }
                Some(Outcome::Failed(failure)) => {
                    self.mirror.set_pending_state(uri, PendingState::Failed, true)?;
                    self.failed(&task, failure, reports);
                    continue;
                }
                None => continue,
            }
            if !whole {
                self.mirror.forget_pending(uri)?;
            }
        }
        if let (true, Some((first, last))) = (whole, ends) {
            // One statement for all of them; what is between the first and the last is these items and no other.
            if as_planned && self.mirror.put_rows_as_planned(&first, &last, self.rules.epoch)? != items {
                return Err(Error::new("internal", ExitCode::Other, format!("the plan changed at {first}"))
                    .with_help("please report this"));
            }
            self.mirror.forget_fetches_between(&first, &last)?;
        }
        Ok(fatal)
    }

    pub(crate) fn make_room(&mut self) -> Result<(), Error> {
        let sink = Arc::clone(self.sink());
        let mut notices = Vec::new();
        sink.make_room(&self.mirror, &mut notices)?;
        for (uri, notice) in notices {
            self.report.notice(notice.code, &uri, &notice.message);
        }
        Ok(())
    }

    /// Deletes what is due. Only what the state knows.
    pub(crate) fn apply_deletes(&mut self, reports: &mut Vec<Report>) -> Result<(), Error> {
        self.report.begin_phase("deleting");
        let total = self.mirror.pending_counts()?.deletes;
        if total == 0 {
            return Ok(());
        }
        let sink = Arc::clone(self.sink());
        let mut hand = Arc::clone(&sink).hand();
        let (mut key, mut tasks, mut finished) = (String::new(), Vec::new(), 0);
        loop {
            self.check_cancelled()?;
            tasks.clear();
            self.mirror.deletes_after(&key, DELETED_TOGETHER, &mut tasks)?;
            let Some(end) = tasks.last() else { break };
            key.clone_from(&end.pending.uri);
            self.begin()?;
            for (task, result) in tasks.iter().zip(hand.delete(&tasks)) {
                let uri = &task.pending.uri;
                match result {
                    Ok(deleted) => {
                        if deleted.gone {
                            self.gone(uri, task.row.as_ref().is_some_and(|row| row.leaf));
                        }
                        for notice in deleted.notices {
                            self.report.notice(notice.code, uri, &notice.message);
                        }
                        self.mirror.delete_row(uri)?;
                        self.mirror.forget_pending(uri)?;
                        // A resource that had to give its name to a folder gets it back when the folder is gone.
                        for above in sink.resources_above(uri) {
                            self.plan_name(&above)?;
                        }
                    }
                    Err(failure) if failure.fatal => {
                        self.settle_and_commit()?;
                        return Err(failure.into_error());
                    }
                    Err(failure) => {
                        self.mirror.set_pending_state(uri, PendingState::Failed, true)?;
                        self.failed(task, failure, reports);
                    }
                }
                finished += 1;
                self.report.status(finished, total, 0);
            }
            self.settle_and_commit()?;
        }
        // Folders that are empty now are removed first.
        drop(hand);
        self.apply_fetches(reports)
    }

    fn gone(&mut self, uri: &str, leaf: bool) {
        self.report.summary.deleted += 1;
        self.item(uri, leaf, ItemAction::Deleted, 0);
    }

    /// Tells the failures that still stand.
    pub(crate) fn tell(&mut self, reports: Vec<Report>) {
        for report in reports {
            self.report.problem(report.failure.code, &report.uri, &report.failure.message);
        }
    }
}

/// Why a resource cannot be stored whose folder cannot be made.
pub(crate) fn in_the_way() -> Failure {
    Failure::refused("path.conflict", "a file stands where a folder is needed")
}

/// Sends the threads home if whoever hands out work panics: nobody else would, and they are waited for.
struct SendHome<'a> {
    desk: &'a Desk,
    stop: &'a AtomicBool,
}

impl Drop for SendHome<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
            self.desk.close();
        }
    }
}

/// The items that are due, in chunks.
struct Due {
    buffer: VecDeque<Task>,
    key: String,
    exhausted: bool,
    /// Items not handed out yet.
    remaining: u64,
    connections: u64,
}

impl Due {
    fn next_chunk(&mut self, session: &Session<'_>) -> Result<Chunk, Error> {
        let mut chunk = Vec::new();
        let mut bytes = 0;
        // Smaller towards the end, so that all connections end at the same time, and few items keep all busy.
        let items = (self.remaining / (self.connections * 4)).clamp(1, CHUNK_ITEMS as u64) as usize;
        while chunk.len() < items && bytes < CHUNK_BYTES {
            if self.buffer.is_empty() && !self.exhausted {
                let mut read = Vec::with_capacity(READ_ITEMS);
                session.mirror.fetches_after(&self.key, READ_ITEMS, &mut read)?;
                self.exhausted = read.len() < READ_ITEMS;
                if let Some(last) = read.last() {
                    self.key.clone_from(&last.pending.uri);
                }
                self.buffer = read.into();
            }
            let Some(task) = self.buffer.pop_front() else { break };
            bytes += task.pending.length.unwrap_or(UNKNOWN_BYTES);
            chunk.push(task);
        }
        self.remaining = self.remaining.saturating_sub(chunk.len() as u64);
        Ok(chunk)
    }
}

/// Does the row to be kept say nothing but what the plan says?
fn is_as_planned(task: &Task, outcome: Option<&Outcome>, epoch: i64) -> bool {
    let (item, Some(Outcome::Stored { row, .. })) = (&task.pending, outcome) else { return false };
    item.action == PendingAction::Fetch
        && row.uri == item.uri
        && !row.leaf
        && row.modified.is_some()
        && row.modified == item.modified
        && Some(row.length) == item.length
        && row.digests == item.digests
        && row.changed == item.changed
        && row.etag.is_none()
        && row.modified.and_then(|modified| modified.checked_mul(1_000)) == Some(row.file_mtime)
        && row.verified
        && row.epoch == epoch
}

fn worker_gone() -> Error {
    Error::new("internal", ExitCode::Other, "a fetching thread ended early").with_help("please report this")
}
