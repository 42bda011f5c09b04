//! From "look at this file" to a recorded change: files are hashed on all cores, recorded in order.
//!
//! One thread walks, one for each core hashes, one records; the queues between them are bounded, and the walk does
//! not run far ahead of the recording, so memory does not grow with the folder, not even while one huge file is read.

use crate::hash::{DigestPolicy, Hashed, Hasher, Target, witness_of};
use abreast_core::{Action, Change, ChangeLog, Imported, LogError, SetId};
use abreast_folder::Dir;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Files in one batch: a few milliseconds of hashing, one transaction.
const BATCH: usize = 512;
/// Folders kept open by one batch.
const BATCH_FOLDERS: usize = 32;
/// Resources of a new set in one transaction.
const IMPORT_BATCH: usize = 4_096;
/// Batches waiting for a hashing thread, or to be recorded.
const QUEUE: usize = 16;
/// Appends not yet durable.
const OUTSTANDING: usize = 8;
/// Problems told one by one; the rest is counted.
const MAX_PROBLEMS: usize = 100;

/// How files are taken in.
#[derive(Clone, Copy, Debug)]
pub struct IngestOptions {
    /// Digests to compute.
    pub digests: DigestPolicy,
    /// A file changed more recently than this is not read yet: somebody may still be writing it.
    pub settle: Duration,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self { digests: DigestPolicy::default(), settle: Duration::from_secs(1) }
    }
}

/// Something to look at.
pub(crate) enum Work {
    /// A file that is new or looks changed.
    Check { key: String, path: Vec<u8>, dir: Dir },
    /// A resource whose file is gone.
    Gone { key: String },
}

/// What came of it.
#[derive(Debug, Default)]
pub struct IngestReport {
    /// Changes recorded (resources imported, for a new set).
    pub recorded: u64,
    /// Files read whose published state had not changed.
    pub unchanged: u64,
    /// Relative paths of files not yet settled: look again soon.
    pub deferred: Vec<Vec<u8>>,
    /// Files that could not be read, with the reason; what was published of them stays.
    pub problems: Vec<String>,
    /// How many there were, told or not.
    pub problem_count: u64,
}

impl IngestReport {
    pub(crate) fn problem(&mut self, path: &[u8], error: &dyn std::fmt::Display) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(format!("cannot read `{}`: {error}", String::from_utf8_lossy(path).escape_debug()));
        }
    }
}

enum Outcome {
    Put(Imported),
    Gone(String),
    Deferred(Vec<u8>),
    Problem(Vec<u8>, String),
}

/// Where the walk puts its work. Refuses when the recording has failed.
pub(crate) struct Sink {
    batch: Vec<Work>,
    folders: usize,
    number: u64,
    sender: SyncSender<(u64, Vec<Work>)>,
    recorded: Arc<Recorded>,
    /// Batches that may be on their way.
    ahead: u64,
}

/// How many batches the recording is through: later ones that are hashed already wait for earlier ones.
#[derive(Default)]
struct Recorded {
    batches: Mutex<u64>,
    moved: Condvar,
}

impl Recorded {
    fn set(&self, batches: u64) {
        *self.batches.lock().unwrap_or_else(PoisonError::into_inner) = batches;
        self.moved.notify_all();
    }

    fn wait_for(&self, batches: u64) {
        let recorded = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved.wait_while(recorded, |recorded| *recorded < batches);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Lets the walk go on when the recording ends, however it does.
struct EndOnDrop<'r>(&'r Recorded);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}

/// The recording ended early; the reason is the result of [`ingest`].
pub(crate) struct Closed;

impl Sink {
    pub(crate) fn push(&mut self, work: Work) -> Result<(), Closed> {
        self.batch.push(work);
        if self.batch.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Tells that the walk goes on in another folder, so that a batch does not keep too many open.
    pub(crate) fn next_folder(&mut self) -> Result<(), Closed> {
        self.folders += 1;
        if self.folders >= BATCH_FOLDERS && !self.batch.is_empty() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.folders = 0;
        self.recorded.wait_for((self.number + 1).saturating_sub(self.ahead));
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.sender.send((self.number, batch)).map_err(|_| Closed)?;
        self.number += 1;
        Ok(())
    }
}

/// Runs `walk`, hashing and recording what it pushes.
///
/// # Errors
/// When the log fails.
pub(crate) fn ingest<R: Send>(
    log: &dyn ChangeLog,
    set: SetId,
    options: &IngestOptions,
    walk: impl FnOnce(&mut Sink) -> R + Send,
) -> Result<(R, IngestReport), LogError> {
    let importing = log.head(set)?.importing;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (work_sender, work_receiver) = sync_channel::<(u64, Vec<Work>)>(QUEUE);
    let (done_sender, done_receiver) = sync_channel::<(u64, Vec<Outcome>)>(QUEUE);
    let work_receiver = Arc::new(Mutex::new(work_receiver));
    thread::scope(|scope| {
        for _ in 0..threads {
            let receiver = Arc::clone(&work_receiver);
            let sender = done_sender.clone();
            scope.spawn(move || hash_batches(&receiver, &sender, options));
        }
        drop(done_sender);
        // Only the hashing threads hold the receiver now: when they stop, the walk is told.
        drop(work_receiver);
        let recorded = Arc::new(Recorded::default());
        let progress = Arc::clone(&recorded);
        let recorder = scope.spawn(move || record(log, set, importing, &done_receiver, &progress));
        let ahead = (2 * (QUEUE + threads)) as u64;
        let mut sink =
            Sink { batch: Vec::with_capacity(BATCH), folders: 0, number: 0, sender: work_sender, recorded, ahead };
        let walked = walk(&mut sink);
        let _ = sink.flush();
        drop(sink);
        let report = recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((walked, report))
    })
}

fn hash_batches(
    receiver: &Mutex<Receiver<(u64, Vec<Work>)>>,
    sender: &SyncSender<(u64, Vec<Outcome>)>,
    options: &IngestOptions,
) {
    let mut hasher = Hasher::new(options.digests, options.settle);
    loop {
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, batch)) = next else { return };
        if sender.send((number, look(&mut hasher, &batch))).is_err() {
            return;
        }
    }
}

fn look(hasher: &mut Hasher, batch: &[Work]) -> Vec<Outcome> {
    let name_of = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let targets: Vec<Target<'_>> = batch
        .iter()
        .filter_map(|work| match work {
            Work::Check { path, dir, .. } => Some(Target { dir, name: &path[name_of(path)..] }),
            Work::Gone { .. } => None,
        })
        .collect();
    let mut hashed = hasher.hash(&targets).into_iter();
    batch
        .iter()
        .map(|work| match work {
            Work::Gone { key } => Outcome::Gone(key.clone()),
            Work::Check { key, path, .. } => match hashed.next() {
                Some(Hashed::Stable(state, stat)) => {
                    Outcome::Put(Imported { key: key.clone(), state, witness: witness_of(&stat).to_vec() })
                }
                // Recorded as a deletion if it was known, else as nothing at all.
                Some(Hashed::Gone) => Outcome::Gone(key.clone()),
                Some(Hashed::Failed(error)) => Outcome::Problem(path.clone(), error.to_string()),
                Some(Hashed::Unsettled) | None => Outcome::Deferred(path.clone()),
            },
        })
        .collect()
}

/// Appends that are not durable yet, and the first failure.
#[derive(Default)]
struct Outstanding {
    count: usize,
    recorded: u64,
    unchanged: u64,
    failure: Option<LogError>,
}

fn record(
    log: &dyn ChangeLog,
    set: SetId,
    importing: bool,
    receiver: &Receiver<(u64, Vec<Outcome>)>,
    recorded: &Recorded,
) -> Result<IngestReport, LogError> {
    let _end = EndOnDrop(recorded);
    let mut report = IngestReport::default();
    let outstanding = Arc::new((Mutex::new(Outstanding::default()), Condvar::new()));
    let mut imported = Vec::new();
    let mut early = BTreeMap::new();
    let mut next = 0;
    'receiving: for (number, outcomes) in receiver {
        early.insert(number, outcomes);
        while let Some(outcomes) = early.remove(&next) {
            next += 1;
            recorded.set(next);
            let mut puts = Vec::with_capacity(outcomes.len());
            let mut gone = Vec::new();
            for outcome in outcomes {
                match outcome {
                    Outcome::Put(resource) => puts.push(resource),
                    Outcome::Gone(key) => gone.push(key),
                    Outcome::Deferred(path) => report.deferred.push(path),
                    Outcome::Problem(path, error) => report.problem(&path, &error),
                }
            }
            if importing {
                report.recorded += puts.len() as u64;
                imported.extend(puts);
                if imported.len() >= IMPORT_BATCH {
                    log.import(set, std::mem::take(&mut imported))?;
                }
            } else if !puts.is_empty() || !gone.is_empty() {
                let changes = changes_of(puts, gone);
                if !append(log, set, changes, &outstanding) {
                    break 'receiving;
                }
            }
        }
    }
    if !imported.is_empty() {
        log.import(set, imported)?;
    }
    let (state, changed) = &*outstanding;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    while state.count > 0 {
        state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    if let Some(failure) = state.failure.take() {
        return Err(failure);
    }
    report.recorded += state.recorded;
    report.unchanged = state.unchanged;
    Ok(report)
}

fn changes_of(puts: Vec<Imported>, gone: Vec<String>) -> Vec<Change> {
    let mut changes: Vec<Change> = gone.into_iter().map(Change::delete).collect();
    changes.extend(puts.into_iter().map(|put| Change {
        key: put.key,
        action: Action::Put { state: put.state, witness: put.witness },
        idempotency_key: None,
    }));
    changes
}

/// Queues one append; false when an earlier one has failed.
fn append(
    log: &dyn ChangeLog,
    set: SetId,
    changes: Vec<Change>,
    outstanding: &Arc<(Mutex<Outstanding>, Condvar)>,
) -> bool {
    {
        let (state, changed) = &**outstanding;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.count >= OUTSTANDING {
            state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.failure.is_some() {
            return false;
        }
        state.count += 1;
    }
    let outstanding = Arc::clone(outstanding);
    log.append_then(
        set,
        changes,
        Box::new(move |result| {
            let (state, changed) = &*outstanding;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.count -= 1;
            match result {
                Ok(appended) => {
                    state.recorded += appended.recorded;
                    state.unchanged += appended.unchanged;
                }
                Err(error) => state.failure = state.failure.take().or(Some(error)),
            }
            changed.notify_all();
        }),
    );
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_does_not_run_far_ahead_of_the_recording() {
        let (sender, receiver) = sync_channel(100);
        let recorded = Arc::new(Recorded::default());
        let mut sink =
            Sink { batch: Vec::new(), folders: 0, number: 0, sender, recorded: Arc::clone(&recorded), ahead: 2 };
        let number = |receiver: &Receiver<(u64, Vec<Work>)>| receiver.recv().unwrap().0;
        thread::scope(|scope| {
            scope.spawn(move || while sink.push(Work::Gone { key: String::new() }).is_ok() {});
            assert_eq!([number(&receiver), number(&receiver)], [0, 1]);
            assert!(receiver.try_recv().is_err());
            recorded.set(1);
            assert_eq!(number(&receiver), 2);
            assert!(receiver.try_recv().is_err());
            drop(EndOnDrop(&recorded));
            assert_eq!(number(&receiver), 3);
            drop(receiver);
        });
    }
}
