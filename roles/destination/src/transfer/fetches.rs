//! Distribution of the items to fetch among threads with separate connections, and the resolution
//! of name conflicts.

use super::Transfer;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::transfer::work_queue::{Chunk, WorkQueue};
use crate::transfer::workers::{DoneChunk, Worker};
use abreast_core::start_scoped;
use abreast_store::mirror::{Mirror, PendingState, Task};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Most items handed out together.
const CHUNK_ITEMS: usize = 64;
/// Listed bytes after which a chunk ends.
const CHUNK_BYTES: u64 = 1 << 20;
/// Minimum number of chunks that are handed out at a time, so that they belong to several folders.
const OUTSTANDING_CHUNKS: usize = 48;
/// The assumed length of an item without a listed length, in bytes.
const UNKNOWN_BYTES: u64 = 16 << 10;
/// Number of items that are read from the plan at a time.
pub(super) const READ_ITEMS: usize = 512;
/// Maximum number of passes over items that wait for a parent folder.
const CONFLICT_PASSES: usize = 4;
/// Interval of the checks for a request to stop.
const TICK: Duration = Duration::from_millis(100);

impl Transfer<'_> {
    /// Does everything in the plan that is due except deletions.
    pub(super) fn apply_fetches(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        if self.options.dry_run {
            return self.rehearse_fetches(report);
        }
        // Too many members of packages failed.
        if report.summary.budget_spent {
            report.summary.untried = self.mirror.pending_counts()?.fetches;
            return Ok(());
        }
        report.begin_phase("fetching");
        for pass in 1..=CONFLICT_PASSES {
            let counts = self.mirror.pending_counts()?;
            if counts.fetches > 0 {
                self.fetch_pass(counts.fetches, counts.bytes, report)?;
            }
            if report.summary.budget_spent || self.mirror.pending_counts()?.conflicts == 0 {
                return Ok(());
            }
            if pass < CONFLICT_PASSES {
                self.make_room(report)?;
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
                self.failed(task, in_the_way(), report);
            }
        }
    }

    fn fetch_pass(
        &mut self,
        total: u64,
        total_bytes: u64,
        report: &mut Reporter<'_>,
    ) -> Result<(), Error> {
        let lanes = self.options.lanes();
        let queue = Arc::new(WorkQueue::new(lanes.len()));
        let (send_done, done) = std::sync::mpsc::channel::<DoneChunk>();
        let stop = Arc::new(AtomicBool::new(false));
        let lost = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            sink: Arc::clone(&self.sink),
            rules: Arc::clone(&self.rules),
            shared: Arc::clone(&self.shared),
            queue: Arc::clone(&queue),
            stop: Arc::clone(&stop),
            allowance: self.requests.allowance.clone(),
            meter: report.meter.clone(),
            lost: Arc::clone(&lost),
        };
        let result = std::thread::scope(|scope| {
            for (number, lanes) in lanes.into_iter().enumerate() {
                let connections = self.warm_up.take(number);
                let (worker, done) = (worker.clone(), send_done.clone());
                start_scoped(scope, format!("fetch-{number}"), move || {
                    if let Err(error) = worker.run(number, lanes, connections, &done) {
                        tracing::error!(%error, "cannot start a thread's runtime");
                    }
                })
                .map_err(|cause| {
                    // Stops the threads that were already started.
                    queue.close();
                    Error::new("io", ExitCode::Io, "cannot start a thread").with_cause(cause)
                })?;
            }
            drop((send_done, worker));
            let _stop_on_panic = StopOnPanic { queue: &queue, stop: &stop };
            let result = self.coordinate(&queue, &done, &stop, (total, total_bytes), report);
            stop.store(result.is_err() || stop.load(Ordering::Relaxed), Ordering::Relaxed);
            queue.close();
            if lost.load(Ordering::Relaxed) { Err(worker_gone()) } else { result }
        });
        if result.is_err() {
            self.roll_back()?;
        }
        result
    }

    /// Hands out work and records outcomes, until all work is done or the run must stop.
    fn coordinate(
        &mut self,
        queue: &WorkQueue,
        done: &std::sync::mpsc::Receiver<DoneChunk>,
        stop: &AtomicBool,
        (total, total_bytes): (u64, u64),
        report: &mut Reporter<'_>,
    ) -> Result<(), Error> {
        let mut source =
            Due { buffer: VecDeque::new(), key: String::new(), exhausted: false, remaining: total };
        let batch_items = self.sink.batch_items();
        let (mut outstanding, mut finished, mut uncommitted) = (0, 0, 0);
        let (mut at_limit, mut undone) = (false, 0_u64);
        // The first items show whether the server takes more requests. Until then, chunks are small,
        // so that no lane gets items that others could fetch.
        let by_protocol = self.options.parallel_by_protocol();
        let first_items = 4 * by_protocol[0] as u64;
        let mut fatal = None;
        self.mirror.begin()?;
        loop {
            if self.requests.is_cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
            if !at_limit && self.requests.allowance.reached().is_some() {
                at_limit = true;
                stop.store(true, Ordering::Relaxed);
            }
            // Smaller items among the chunks that were handed out may still fit.
            let is_lacking = self.requests.allowance.is_lacking();
            let takes_many = finished < first_items || self.shared.takes_many();
            let parallel = by_protocol[usize::from(takes_many)];
            let outstanding_max = (parallel * 2).max(OUTSTANDING_CHUNKS);
            while outstanding < outstanding_max && !is_lacking && !stop.load(Ordering::Relaxed) {
                let chunk = source.next_chunk(self.mirror, parallel)?;
                if chunk.is_empty() {
                    break;
                }
                queue.put(chunk);
                outstanding += 1;
            }
            if outstanding == 0 {
                break;
            }
            report.status(finished, total, total_bytes);
            let chunk = match done.recv_timeout(TICK) {
                Ok(chunk) => chunk,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Err(worker_gone()),
            };
            outstanding -= 1;
            finished += chunk.len() as u64;
            uncommitted += chunk.len() as u64;
            undone += chunk.iter().filter(|(_, outcome)| outcome.is_none()).count() as u64;
            fatal = fatal.or(self.take(chunk, report)?);
            if fatal.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            if report.is_over_budget(total, &self.options.url) {
                stop.store(true, Ordering::Relaxed);
            }
            if uncommitted >= batch_items {
                fatal = fatal.or(self.settle_and_commit(report)?);
                if fatal.is_some() {
                    stop.store(true, Ordering::Relaxed);
                }
                self.mirror.begin()?;
                uncommitted = 0;
            }
        }
        // A limit that is reached with the last items, which may have come before the stop did,
        // stops nothing.
        let untried = undone + source.remaining;
        let at_limit = at_limit || self.requests.allowance.is_lacking();
        if at_limit && untried > 0 && self.over_limit(report) {
            report.summary.budget_spent = true;
        }
        if report.summary.budget_spent {
            report.summary.untried = untried;
        }
        fatal = fatal.or(self.settle_and_commit(report)?);
        self.check_settled()?;
        match fatal {
            Some(error) => Err(error),
            None => self.requests.check_cancelled(),
        }
    }

    pub(super) fn make_room(&mut self, report: &mut Reporter<'_>) -> Result<(), Error> {
        let sink = Arc::clone(&self.sink);
        let mut notices = Vec::new();
        sink.make_room(self.mirror, &mut notices)?;
        for (uri, notice) in notices {
            report.notice(notice.code, &uri, &notice.message);
        }
        Ok(())
    }
}

/// Why a resource cannot be stored whose folder cannot be made.
pub(super) fn in_the_way() -> Failure {
    Failure::refused("path.conflict", "a file stands where a folder is needed")
}

/// Stops the threads if the thread that hands out work panics, because that thread waits for them.
struct StopOnPanic<'a> {
    queue: &'a WorkQueue,
    stop: &'a AtomicBool,
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
            self.queue.close();
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
}

impl Due {
    fn next_chunk(&mut self, mirror: &Mirror, parallel: usize) -> Result<Chunk, Error> {
        let mut chunk = Vec::new();
        let mut bytes = 0_u64;
        // Chunks become smaller towards the end, so that all lanes end at the same time, and a few
        // items occupy all lanes.
        let items = self.remaining / (parallel as u64 * 4);
        let items = items.clamp(1, CHUNK_ITEMS as u64) as usize;
        while chunk.len() < items && bytes < CHUNK_BYTES {
            if self.buffer.is_empty() && !self.exhausted {
                let mut read = Vec::with_capacity(READ_ITEMS);
                mirror.fetches_after(&self.key, READ_ITEMS, &mut read)?;
                self.exhausted = read.len() < READ_ITEMS;
                if let Some(last) = read.last() {
                    self.key.clone_from(&last.pending.uri);
                }
                self.buffer = read.into();
            }
            let Some(task) = self.buffer.pop_front() else { break };
            bytes = bytes.saturating_add(task.pending.length.unwrap_or(UNKNOWN_BYTES));
            chunk.push(task);
        }
        self.remaining = self.remaining.saturating_sub(chunk.len() as u64);
        Ok(chunk)
    }
}

fn worker_gone() -> Error {
    Error::new("internal", ExitCode::Other, "a fetching thread ended early")
        .with_help("please report this")
}
