//! From "look at this file" to a recorded change: files are hashed on all cores, recorded in order.
//!
//! One thread walks, one for each core hashes, one records; the queues between them are bounded, and the walk does
//! not run far ahead of the recording, so memory does not grow with the folder, not even while one huge file is read.

use crate::hash::{DigestPolicy, Hashed, Hasher, Target};
use crate::links::{Links, witness_with};
use crate::names::path_of;
use crate::writes::Writes;
use abreast_contents::{Contents, Kept};
use abreast_core::{Action, Change, ChangeLog, Imported, LogError, SetId, State};
use abreast_folder::Dir;
use abreast_webtypes::Link;
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
#[derive(Clone, Debug)]
pub struct IngestOptions {
    /// Digests to compute.
    pub digests: DigestPolicy,
    /// A file changed more recently than this is not read yet: somebody may still be writing it.
    pub settle: Duration,
    /// Where the links of files come from.
    pub links: Arc<Links>,
    /// What others record of the same set.
    pub writes: Arc<Writes>,
    /// Where a copy of each new content is kept, before what is recorded speaks of it.
    pub contents: Option<Contents>,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            digests: DigestPolicy::default(),
            settle: Duration::from_secs(1),
            links: Arc::default(),
            writes: Arc::default(),
            contents: None,
        }
    }
}

/// Something to look at.
pub(crate) enum Work {
    /// A file that is new or looks changed.
    Check { key: String, path: Vec<u8>, dir: Dir, links: Vec<Link> },
    /// A resource whose bytes are as before, but not what is said of it.
    Relink(Imported),
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
        self.problem_of(format!("cannot read `{}`: {error}", String::from_utf8_lossy(path).escape_debug()));
    }

    pub(crate) fn problem_of(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "nearly every outcome is a Put")]
enum Outcome {
    /// With the copy of its bytes, held until the record of it is durable.
    Put(Imported, Option<Kept>),
    Gone(String),
    Deferred(Vec<u8>),
    Problem(Vec<u8>, String),
}

/// What is looked at together.
struct Batch<T> {
    number: u64,
    /// Writes of others before the first look.
    writes: u64,
    items: Vec<T>,
}

/// Where the walk puts its work. Refuses when the recording has failed.
pub(crate) struct Sink {
    batch: Vec<Work>,
    folders: usize,
    number: u64,
    /// Writes of others before the batch was begun.
    before: u64,
    writes: Arc<Writes>,
    sender: SyncSender<Batch<Work>>,
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
    /// To be called before the look whose result is pushed next.
    pub(crate) fn begin(&mut self) {
        if self.batch.is_empty() {
            self.before = self.writes.count();
        }
    }

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
        self.sender.send(Batch { number: self.number, writes: self.before, items: batch }).map_err(|_| Closed)?;
        self.number += 1;
        self.before = self.writes.count();
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
    let (work_sender, work_receiver) = sync_channel::<Batch<Work>>(QUEUE);
    let (done_sender, done_receiver) = sync_channel::<Batch<Outcome>>(QUEUE);
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
        let writes = &*options.writes;
        let recorder = scope.spawn(move || record(log, set, importing, &done_receiver, &progress, writes));
        let ahead = (2 * (QUEUE + threads)) as u64;
        let mut sink = Sink {
            batch: Vec::with_capacity(BATCH),
            folders: 0,
            number: 0,
            before: options.writes.count(),
            writes: Arc::clone(&options.writes),
            sender: work_sender,
            recorded,
            ahead,
        };
        let walked = walk(&mut sink);
        let _ = sink.flush();
        drop(sink);
        let report = recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((walked, report))
    })
}

fn hash_batches(receiver: &Mutex<Receiver<Batch<Work>>>, sender: &SyncSender<Batch<Outcome>>, options: &IngestOptions) {
    let contents = options.contents.as_ref();
    let mut hasher = Hasher::new(options.digests, options.settle, contents.cloned());
    loop {
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Batch { number, writes, items }) = next else { return };
        let mut items = look(&mut hasher, items, contents);
        if let Some(contents) = contents {
            make_durable(contents, &mut items);
        }
        if sender.send(Batch { number, writes, items }).is_err() {
            return;
        }
    }
}

/// Content before its row: what cannot be made durable is not recorded.
fn make_durable(contents: &Contents, items: &mut [Outcome]) {
    if !items.iter().any(|item| matches!(item, Outcome::Put(_, Some(_)))) {
        return;
    }
    let Err(error) = contents.sync() else { return };
    let reason = describe(&error);
    for item in items {
        if let Outcome::Put(put, Some(_)) = item {
            *item = Outcome::Problem(path_of(&put.key), reason.clone());
        }
    }
}

/// An error with its causes.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// A state whose bytes are as before: their copy is held, if there still is one.
fn relinked(mut resource: Imported, contents: Option<&Contents>) -> Outcome {
    let held = resource.state.content.zip(contents).and_then(|(id, contents)| contents.hold(&id).ok().flatten());
    resource.state.content = held.as_ref().map(Kept::id);
    Outcome::Put(resource, held)
}

fn look(hasher: &mut Hasher, batch: Vec<Work>, contents: Option<&Contents>) -> Vec<Outcome> {
    let name_of = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let targets: Vec<Target<'_>> = batch
        .iter()
        .filter_map(|work| match work {
            Work::Check { path, dir, .. } => Some(Target { dir, name: &path[name_of(path)..] }),
            Work::Gone { .. } | Work::Relink(_) => None,
        })
        .collect();
    let mut hashed = hasher.hash(&targets).into_iter();
    batch
        .into_iter()
        .map(|work| match work {
            Work::Gone { key } => Outcome::Gone(key),
            Work::Relink(resource) => relinked(resource, contents),
            Work::Check { key, path, links, .. } => match hashed.next() {
                Some(Hashed::Stable(state, stat, kept)) => {
                    let witness = witness_with(&stat, &links);
                    Outcome::Put(Imported { key, state: State { links, ..state }, witness }, kept)
                }
                // Recorded as a deletion if it was known, else as nothing at all.
                Some(Hashed::Gone) => Outcome::Gone(key),
                Some(Hashed::Failed(error)) => Outcome::Problem(path, describe(&error)),
                Some(Hashed::Unsettled) | None => Outcome::Deferred(path),
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
    receiver: &Receiver<Batch<Outcome>>,
    recorded: &Recorded,
    others: &Writes,
) -> Result<IngestReport, LogError> {
    let _end = EndOnDrop(recorded);
    let mut report = IngestReport::default();
    let outstanding = Arc::new((Mutex::new(Outstanding::default()), Condvar::new()));
    let (mut imported, mut held) = (Vec::new(), Vec::new());
    let mut early = BTreeMap::new();
    let mut next = 0;
    'receiving: for batch in receiver {
        early.insert(batch.number, batch);
        while let Some(Batch { writes, items: outcomes, .. }) = early.remove(&next) {
            next += 1;
            recorded.set(next);
            let mut puts = Vec::with_capacity(outcomes.len());
            let mut kept = Vec::new();
            let mut gone = Vec::new();
            for outcome in outcomes {
                match outcome {
                    Outcome::Put(resource, content) => {
                        puts.push(resource);
                        kept.extend(content);
                    }
                    Outcome::Gone(key) => gone.push(key),
                    Outcome::Deferred(path) => report.deferred.push(path),
                    Outcome::Problem(path, error) => report.problem(&path, &error),
                }
            }
            if importing {
                report.recorded += puts.len() as u64;
                imported.extend(puts);
                held.append(&mut kept);
                if imported.len() >= IMPORT_BATCH {
                    log.import(set, std::mem::take(&mut imported))?;
                    held.clear();
                }
            } else if !puts.is_empty() || !gone.is_empty() {
                if !take_place(&outstanding) {
                    break 'receiving;
                }
                let last = others.lock();
                if others.count() > writes {
                    let mut keep = |key: &String| {
                        let overtaken = last.is_after(key, writes);
                        if overtaken {
                            report.deferred.push(path_of(key));
                        }
                        !overtaken
                    };
                    puts.retain(|put| keep(&put.key));
                    gone.retain(|key| keep(key));
                }
                append(log, set, changes_of(puts, gone), kept, &outstanding);
                drop(last);
            }
        }
    }
    if !imported.is_empty() {
        log.import(set, imported)?;
    }
    drop(held);
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

/// Waits until one more append may be on its way; false when an earlier one has failed.
fn take_place(outstanding: &(Mutex<Outstanding>, Condvar)) -> bool {
    let (state, changed) = outstanding;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    while state.count >= OUTSTANDING {
        state = changed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    if state.failure.is_some() {
        return false;
    }
    state.count += 1;
    true
}

/// Queues one append, for which a place was taken; what is kept for it is held until it is durable.
fn append(
    log: &dyn ChangeLog,
    set: SetId,
    changes: Vec<Change>,
    kept: Vec<Kept>,
    outstanding: &Arc<(Mutex<Outstanding>, Condvar)>,
) {
    let outstanding = Arc::clone(outstanding);
    log.append_then(
        set,
        changes,
        Box::new(move |result| {
            drop(kept);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_made_durable_is_not_recorded() {
        let place = tempfile::tempdir().unwrap();
        let contents = Contents::open(place.path()).unwrap();
        let kept = contents.put_bytes(b"x").unwrap();
        let part = place.path().join(&kept.id().to_string()[..2]);
        std::fs::rename(&part, place.path().join("aside")).unwrap();
        std::fs::write(&part, "no folder").unwrap();
        let put = |key: &str, kept| {
            let resource = Imported { key: key.to_owned(), state: State::default(), witness: Vec::new() };
            Outcome::Put(resource, kept)
        };
        let mut items = [put("a%20b", Some(kept)), put("of elsewhere", None), Outcome::Gone("c".to_owned())];
        make_durable(&contents, &mut items);
        assert!(matches!(&items[0], Outcome::Problem(path, reason) if path == b"a b" && reason.contains("durable")));
        assert!(matches!(&items[1..], [Outcome::Put(_, None), Outcome::Gone(_)]), "the rest is as it was");
    }

    #[test]
    fn the_walk_does_not_run_far_ahead_of_the_recording() {
        let (sender, receiver) = sync_channel(100);
        let recorded = Arc::new(Recorded::default());
        let mut sink = Sink {
            batch: Vec::new(),
            folders: 0,
            number: 0,
            before: 0,
            writes: Arc::default(),
            sender,
            recorded: Arc::clone(&recorded),
            ahead: 2,
        };
        let number = |receiver: &Receiver<Batch<Work>>| receiver.recv().unwrap().number;
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
