//! Conversion of paths to recorded changes. Files are hashed on all cores and recorded in order.
//!
//! One thread walks, one thread per core hashes, and one thread records. The queues between the
//! threads are bounded, and the distance between walk and recording is limited. Memory therefore
//! does not grow with the folder, even while a very large file is read.

use crate::links::fingerprint_with;
use crate::names::fingerprint::{Fingerprint, fingerprint_of};
use crate::names::keys::path_of;
use crate::scan::appends::Appends;
use crate::scan::hash::{Hashed, Hasher, Reading, Target};
use crate::scan::options::IngestOptions;
use crate::scan::writes::Writes;
use abreast_core::contents::{ContentStore, PinnedContent};
use abreast_core::{Change, ChangeLog, ErrorKind, Imported, LogError, SetId, State, spawn_scoped};
use abreast_folder::{Dir, Stat};
use abreast_webtypes::Link;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
/// Files in a batch, which needs a few milliseconds of hashing and a single transaction.
const BATCH: usize = 512;
/// Most folders that a batch has open.
const BATCH_FOLDERS: usize = 32;
/// Resources of a new set that are imported in a transaction.
const IMPORT_BATCH: usize = 4_096;
/// Most batches that wait for a hashing thread, or for recording.
const QUEUE: usize = 16;
/// Most problems whose text is reported. Further problems are only counted.
const MAX_PROBLEMS: usize = 100;
/// Most deleted or unreadable files whose paths are reported.
pub(crate) const MAX_NOTED: usize = 10_000;
/// Most files that are hashed in the calling thread; more files are divided among threads.
const HERE: usize = 16;

/// A file to read, or a change to record without reading.
pub(crate) enum Work {
    /// A file that is new or may have changed.
    Check { key: String, path: Vec<u8>, dir: Dir, links: Vec<Link> },
    /// A resource with new links and unchanged bytes.
    Relink(Box<Imported>),
    /// A resource whose deletion is to be recorded.
    Gone { key: String },
}

/// Result of reading and recording files.
#[derive(Debug, Default)]
pub struct IngestReport {
    /// Number of changes that were recorded; in a new set, of imported resources.
    pub recorded: u64,
    /// Number of files that were read and whose published state did not change.
    pub unchanged: u64,
    /// Relative paths of files that are not at rest, to be read again soon.
    pub deferred: Vec<Vec<u8>>,
    /// Files that could not be read, with the reason. Their published state does not change.
    pub problems: Vec<String>,
    /// Number of all problems, including problems without text.
    pub problem_count: u64,
    /// Relative paths that could not be read, up to a limit.
    pub(crate) unreadable: Vec<Vec<u8>>,
    /// Large files that separate threads must read.
    pub(crate) large: Vec<Vec<u8>>,
    /// Resources whose files were deleted before they could be read, up to a limit.
    pub(crate) gone: Vec<String>,
    /// Files with several hard links, with their fingerprints, up to a limit.
    pub(crate) shared: Vec<(Vec<u8>, Fingerprint)>,
    /// Keys of resources with recorded changes, if links of other resources depend on them, up to a
    /// limit.
    pub(crate) touched: Vec<String>,
}

impl IngestReport {
    /// Adds a path that cannot be read now, but possibly later.
    pub(crate) fn problem(&mut self, path: &[u8], error: &dyn std::fmt::Display) {
        if self.unreadable.len() < MAX_NOTED {
            self.unreadable.push(path.to_vec());
        }
        self.refused(path, error);
    }

    /// Adds a path that cannot be published, until it is changed.
    pub(crate) fn refused(&mut self, path: &[u8], error: &dyn std::fmt::Display) {
        self.problem_of(format!(
            "cannot read `{}`: {error}",
            String::from_utf8_lossy(path).escape_debug()
        ));
    }

    pub(crate) fn problem_of(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Adds a file with several hard links, which can change under a name that is not watched.
    pub(crate) fn shares(&mut self, path: &[u8], stat: &Stat) {
        if stat.links > 1 && self.shared.len() < MAX_NOTED {
            self.shared.push((path.to_vec(), fingerprint_of(stat)));
        }
    }

    /// Adds the results of another part of the same work.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.recorded += other.recorded;
        self.unchanged += other.unchanged;
        self.problem_count += other.problem_count;
        self.deferred.append(&mut other.deferred);
        self.problems.append(&mut other.problems);
        self.unreadable.append(&mut other.unreadable);
        self.large.append(&mut other.large);
        self.gone.append(&mut other.gone);
        self.shared.append(&mut other.shared);
        self.touched.append(&mut other.touched);
    }
}

#[expect(clippy::large_enum_variant, reason = "nearly every outcome is a Put")]
enum Outcome {
    /// State of a file, with its stored copy, which is held until the change is durable, and the
    /// file if it has several hard links.
    Put(Imported, Option<PinnedContent>, Option<(Vec<u8>, Stat)>),
    Gone(String),
    /// The file was deleted before it could be read.
    Lost(String),
    Deferred(Vec<u8>),
    Large(Vec<u8>),
    Problem(Vec<u8>, String),
    /// The copy of a file could not be stored. Recording stops, because the store probably cannot
    /// record the change either.
    NotKept(LogError),
}

/// Items that are read and recorded together.
struct Batch<T> {
    number: u64,
    /// Count of the API's writes before the first item was inspected.
    writes: u64,
    items: Vec<T>,
}

/// Receiver of the items that the walk finds. Returns an error after recording failed.
pub(crate) struct Sink {
    batch: Vec<Work>,
    folders: usize,
    number: u64,
    /// Count of the API's writes before the batch was started.
    before: u64,
    writes: Arc<Writes>,
    sender: SyncSender<Batch<Work>>,
    recorded: Arc<Recorded>,
    /// Most batches between the walk and the recording.
    ahead: u64,
}

/// Number of batches that are recorded. A hashed batch waits until all earlier batches are
/// recorded.
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

/// Wakes the walk when the recording ends, with or without an error.
struct EndOnDrop<'r>(&'r Recorded);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(u64::MAX);
    }
}

/// Error of the walk after recording ended early; [`ingest`] returns the reason.
pub(crate) struct Closed;

impl Sink {
    /// Stores the count of writes. Call this method before inspecting the file of the next item.
    pub(crate) fn begin(&mut self) {
        if self.batch.is_empty() {
            self.before = self.writes.count();
        }
    }

    pub(crate) fn push(&mut self, work: Work) -> Result<(), Closed> {
        self.batch.push(work);
        if self.batch.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Counts the folders of a batch, and ends the batch at the limit. Call this method when the
    /// walk continues in another folder.
    pub(crate) fn next_folder(&mut self) -> Result<(), Closed> {
        self.folders += 1;
        if self.folders >= BATCH_FOLDERS && !self.batch.is_empty() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.folders = 0;
        self.recorded.wait_for((self.number + 1).saturating_sub(self.ahead));
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.sender
            .send(Batch { number: self.number, writes: self.before, items: batch })
            .map_err(|_| Closed)?;
        self.number += 1;
        self.before = self.writes.count();
        Ok(())
    }
}

/// Runs `walk`, and hashes and records its items.
///
/// # Errors
/// The log fails, or cannot store a copy.
pub(crate) fn ingest<R: Send>(
    log: &dyn ChangeLog,
    set: SetId,
    options: &IngestOptions,
    reading: Reading<'_>,
    walk: impl FnOnce(&mut Sink) -> R + Send,
) -> Result<(R, IngestReport), LogError> {
    let importing = log.head(set)?.takes_base();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (work_sender, work_receiver) = sync_channel::<Batch<Work>>(QUEUE);
    let (done_sender, done_receiver) = sync_channel::<Batch<Outcome>>(QUEUE);
    let work_receiver = Arc::new(Mutex::new(work_receiver));
    thread::scope(|scope| {
        for _ in 0..threads {
            let receiver = Arc::clone(&work_receiver);
            let sender = done_sender.clone();
            spawn_scoped(scope, move || hash_batches(&receiver, &sender, options, reading));
        }
        drop(done_sender);
        // Only the hashing threads have the receiver now. When they stop, sending fails and the
        // walk ends.
        drop(work_receiver);
        let recorded = Arc::new(Recorded::default());
        let progress = Arc::clone(&recorded);
        let recorder = spawn_scoped(scope, move || {
            record(log, set, importing, &done_receiver, &progress, options)
        });
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

fn hash_batches(
    receiver: &Mutex<Receiver<Batch<Work>>>,
    sender: &SyncSender<Batch<Outcome>>,
    options: &IngestOptions,
    reading: Reading<'_>,
) {
    let contents = options.contents.as_deref();
    let mut hasher = Hasher::new(options, reading);
    loop {
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Batch { number, writes, items }) = next else { return };
        let items = look(&mut hasher, items, contents);
        if sender.send(Batch { number, writes, items }).is_err() {
            return;
        }
    }
}

/// Makes copies durable before their rows are recorded. After a failure, the items with copies are
/// replaced by the error.
fn make_durable(contents: &dyn ContentStore, items: &mut [Outcome]) {
    if !items.iter().any(|item| matches!(item, Outcome::Put(_, Some(_), _))) {
        return;
    }
    let Err(error) = contents.sync() else { return };
    let error = Arc::new(error);
    for item in items {
        if let Outcome::Put(put, Some(_), _) = item {
            *item = Outcome::NotKept(not_kept(&path_of(&put.key), Arc::clone(&error)));
        }
    }
}

/// Returns the error for a file whose copy cannot be stored.
fn not_kept(path: &[u8], cause: impl std::error::Error + Send + Sync + 'static) -> LogError {
    let path = String::from_utf8_lossy(path).escape_debug().to_string();
    LogError::new(ErrorKind::Io, format!("cannot keep a copy of `{path}` in the store"))
        .with_cause(cause)
}

/// Returns the text of an error with all of its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// Returns a resource with unchanged bytes, and holds the copy of the bytes if it still exists.
fn relinked(mut resource: Imported, contents: Option<&dyn ContentStore>) -> Outcome {
    let held = resource.state.content.zip(contents).map(|(id, contents)| contents.hold(&id));
    let held = match held.transpose() {
        Ok(held) => held.flatten(),
        // Otherwise the log would lose the copy.
        Err(error) if error.kind() == abreast_core::contents::ErrorKind::Busy => {
            return Outcome::NotKept(not_kept(&path_of(&resource.key), error));
        }
        Err(_) => None,
    };
    resource.state.content = held.as_ref().map(PinnedContent::id);
    Outcome::Put(resource, held, None)
}

/// Reads the files of a batch, and makes their copies durable.
fn look(
    hasher: &mut Hasher<'_>,
    batch: Vec<Work>,
    contents: Option<&dyn ContentStore>,
) -> Vec<Outcome> {
    let name_of =
        |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let targets: Vec<Target<'_>> = batch
        .iter()
        .filter_map(|work| match work {
            Work::Check { path, dir, .. } => Some(Target { dir, name: &path[name_of(path)..] }),
            Work::Gone { .. } | Work::Relink(_) => None,
        })
        .collect();
    let mut hashed = hasher.hash(&targets).into_iter();
    let mut outcomes: Vec<Outcome> = batch
        .into_iter()
        .map(|work| match work {
            Work::Gone { key } => Outcome::Gone(key),
            Work::Relink(resource) => relinked(*resource, contents),
            Work::Check { key, path, links, .. } => match hashed.next() {
                Some(Hashed::Stable(state, stat, kept)) => {
                    let witness = fingerprint_with(&stat, &links);
                    let shared = (stat.links > 1).then_some((path, stat));
                    Outcome::Put(
                        Imported { key, state: State { links, ..state }, witness },
                        kept,
                        shared,
                    )
                }
                Some(Hashed::Gone) => Outcome::Lost(key),
                Some(Hashed::Failed(error)) => Outcome::Problem(path, with_causes(&error)),
                Some(Hashed::Large) => Outcome::Large(path),
                Some(Hashed::NotKept(error)) => Outcome::NotKept(not_kept(&path, error)),
                Some(Hashed::Unsettled) | None => Outcome::Deferred(path),
            },
        })
        .collect();
    if let Some(contents) = contents {
        make_durable(contents, &mut outcomes);
    }
    outcomes
}

/// Changes of a batch that are to be recorded; other results are in the report.
#[derive(Default)]
struct Recordable {
    puts: Vec<Imported>,
    kept: Vec<PinnedContent>,
    gone: Vec<String>,
}

impl Recordable {
    fn of(
        outcomes: impl IntoIterator<Item = Outcome>,
        report: &mut IngestReport,
        failure: &mut Option<LogError>,
    ) -> Self {
        let mut to = Self::default();
        for outcome in outcomes {
            match outcome {
                Outcome::Put(resource, content, shared) => {
                    to.puts.push(resource);
                    to.kept.extend(content);
                    if let Some((path, stat)) = shared {
                        report.shares(&path, &stat);
                    }
                }
                Outcome::Gone(key) => to.gone.push(key),
                Outcome::Lost(key) => {
                    report.gone.extend((report.gone.len() < MAX_NOTED).then_some(key));
                }
                Outcome::Deferred(path) => report.deferred.push(path),
                Outcome::Large(path) => report.large.push(path),
                Outcome::Problem(path, error) => report.problem(&path, &error),
                Outcome::NotKept(error) => *failure = failure.take().or(Some(error)),
            }
        }
        to
    }

    /// Appends the changes to the log, except for keys that the API wrote since `writes`. Returns
    /// false if an earlier append failed.
    fn append(
        mut self,
        log: &dyn ChangeLog,
        set: SetId,
        options: &IngestOptions,
        writes: u64,
        appends: &Appends,
        report: &mut IngestReport,
    ) -> bool {
        if self.puts.is_empty() && self.gone.is_empty() {
            return true;
        }
        if !appends.take_place() {
            return false;
        }
        let others = &*options.writes;
        let last = others.lock();
        if last.is_busy() || others.count() > writes {
            let mut keep = |key: &String| {
                let overtaken = last.is_after(key, writes);
                if overtaken {
                    report.deferred.push(path_of(key));
                }
                !overtaken
            };
            self.puts.retain(|put| keep(&put.key));
            self.gone.retain(|key| keep(key));
        }
        if options.links.depend_on_files() {
            let keys = self.puts.iter().map(|put| &put.key).chain(&self.gone);
            report
                .touched
                .extend(keys.take(MAX_NOTED - report.touched.len().min(MAX_NOTED)).cloned());
        }
        appends.append(log, set, changes_of(self.puts, self.gone, options.first), self.kept);
        drop(last);
        true
    }
}

/// Reads and records up to a few thousand files, whose paths are known.
///
/// After reading, `again` is called for each path, and returns whether the path had an event
/// meanwhile; the result of such a path is not recorded. `writes` is the count of the API's writes
/// before the first file was inspected.
///
/// # Errors
/// The log fails, or cannot store a copy.
pub(crate) fn ingest_now<A: FnMut(&[u8]) -> bool>(
    log: &dyn ChangeLog,
    set: SetId,
    options: &IngestOptions,
    reading: Reading<'_>,
    writes: u64,
    work: Vec<Work>,
    again: impl FnOnce() -> A,
) -> Result<IngestReport, LogError> {
    let mut report = IngestReport::default();
    let mut outcomes = look_at_all(options, reading, work);
    let mut again = again();
    outcomes.retain(|outcome| match outcome {
        Outcome::Put(Imported { key, .. }, ..) | Outcome::Gone(key) | Outcome::Lost(key) => {
            !again(&path_of(key))
        }
        Outcome::Deferred(_) | Outcome::Large(_) | Outcome::Problem(..) | Outcome::NotKept(_) => {
            true
        }
    });
    let mut failure = None;
    if log.head(set)?.takes_base() {
        let Recordable { puts, kept, .. } = Recordable::of(outcomes, &mut report, &mut failure);
        report.recorded += puts.len() as u64;
        log.import(set, puts)?;
        drop(kept);
        return failure.map_or(Ok(report), Err);
    }
    let appends = Appends::default();
    let mut outcomes = outcomes.into_iter();
    loop {
        let batch: Vec<_> = outcomes.by_ref().take(BATCH).collect();
        let ended = batch.is_empty();
        let batch = Recordable::of(batch, &mut report, &mut failure);
        if ended || !batch.append(log, set, options, writes, &appends, &mut report) {
            break;
        }
    }
    let appended = appends.finish()?;
    report.recorded += appended.recorded;
    report.unchanged = appended.unchanged;
    failure.map_or(Ok(report), Err)
}

fn look_at_all(options: &IngestOptions, reading: Reading<'_>, mut work: Vec<Work>) -> Vec<Outcome> {
    let contents = options.contents.as_deref();
    if work.len() <= HERE {
        return look(&mut Hasher::new(options, reading), work, contents);
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = work.len().div_ceil(threads);
    thread::scope(|scope| {
        let mut parts = Vec::with_capacity(threads);
        while !work.is_empty() {
            let part = work.split_off(work.len().saturating_sub(share));
            parts.push(spawn_scoped(scope, move || {
                let (mut hasher, mut part) = (Hasher::new(options, reading), part.into_iter());
                let mut outcomes = Vec::with_capacity(part.len());
                while part.len() > 0 {
                    outcomes.extend(look(
                        &mut hasher,
                        part.by_ref().take(BATCH).collect(),
                        contents,
                    ));
                }
                outcomes
            }));
        }
        // The parts were taken from the end, so their order is reversed.
        let parts = parts.into_iter().rev();
        parts
            .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn record(
    log: &dyn ChangeLog,
    set: SetId,
    importing: bool,
    receiver: &Receiver<Batch<Outcome>>,
    recorded: &Recorded,
    options: &IngestOptions,
) -> Result<IngestReport, LogError> {
    let _end = EndOnDrop(recorded);
    let mut report = IngestReport::default();
    let appends = Appends::default();
    let (mut imported, mut held) = (Vec::new(), Vec::new());
    let mut failure = None;
    let mut early = BTreeMap::new();
    let mut next = 0;
    'receiving: for batch in receiver {
        early.insert(batch.number, batch);
        while let Some(Batch { writes, items: outcomes, .. }) = early.remove(&next) {
            next += 1;
            recorded.set(next);
            let batch = Recordable::of(outcomes, &mut report, &mut failure);
            // Reading and copying may have taken longer than the lease.
            options.lease.check()?;
            if importing {
                let Recordable { puts, mut kept, .. } = batch;
                report.recorded += puts.len() as u64;
                imported.extend(puts);
                held.append(&mut kept);
                if imported.len() >= IMPORT_BATCH {
                    log.import(set, std::mem::take(&mut imported))?;
                    held.clear();
                }
            } else if !batch.append(log, set, options, writes, &appends, &mut report) {
                break 'receiving;
            }
            if failure.is_some() {
                break 'receiving;
            }
        }
    }
    if !imported.is_empty() {
        options.lease.check()?;
        log.import(set, imported)?;
    }
    drop(held);
    let appended = appends.finish()?;
    report.recorded += appended.recorded;
    report.unchanged = appended.unchanged;
    if let Some(failure) = failure {
        return Err(failure);
    }
    Ok(report)
}

fn changes_of(puts: Vec<Imported>, gone: Vec<String>, first: bool) -> Vec<Change> {
    let put = if first { Change::add } else { Change::put };
    let mut changes: Vec<Change> = gone.into_iter().map(Change::delete).collect();
    changes.extend(puts.into_iter().map(|new| put(new.key, new.state).with_witness(new.witness)));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_made_durable_is_not_recorded() {
        let place = tempfile::tempdir().unwrap();
        let contents = abreast_contents::Contents::open(place.path()).unwrap();
        let kept = contents.put_bytes(&vec![b'x'; 100_000]).unwrap();
        let part = place.path().join(&kept.id().to_string()[..2]);
        std::fs::rename(&part, place.path().join("aside")).unwrap();
        std::fs::write(&part, "no folder").unwrap();
        let put = |key: &str, kept| {
            let resource =
                Imported { key: key.to_owned(), state: State::default(), witness: Vec::new() };
            Outcome::Put(resource, kept, None)
        };
        let mut items =
            [put("a%20b", Some(kept)), put("of elsewhere", None), Outcome::Gone("c".to_owned())];
        make_durable(&contents, &mut items);
        assert!(
            matches!(&items[0], Outcome::NotKept(error) if error.to_string().contains("`a b`"))
        );
        assert!(
            matches!(&items[1..], [Outcome::Put(_, None, _), Outcome::Gone(_)]),
            "the rest is as it was"
        );
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
