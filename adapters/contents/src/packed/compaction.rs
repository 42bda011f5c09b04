//! Compaction in the background: runs of similar size are merged, segments with much garbage are
//! rewritten.
//!
//! A segment is read whole. Contents that the index still locates there are appended to the newest
//! segment. When these are durable, the segment is removed, unless it has needed contents that are
//! damaged.

use super::record::{Marker, SEGMENT_HEAD, Scan};
use super::run::{self, Merge, Part, Run, Span};
use super::{Packed, lock};
use abreast_core::ContentId;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Garbage is at most one part in this number of all bytes in segments, while no contents are being
/// removed.
const GARBAGE_PART: u64 = 8;
/// The same while contents are being removed: a content that is rewritten now may be removed soon.
const BUSY_GARBAGE_PART: u64 = 2;
/// Segments with less garbage than one part in this number are not rewritten.
const LEAST_PART: u64 = 32;
/// Time between two checks for work.
const PAUSE: Duration = Duration::from_secs(1);
/// Time until the next check after a failure.
const RETRY: Duration = Duration::from_secs(10);

/// The thread that compacts; it ends when this is dropped.
pub(crate) struct CompactionThread {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl CompactionThread {
    /// Starts the thread for a folder.
    pub(crate) fn start(packed: Arc<Packed>) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let stopping = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("packed contents".into()).spawn(move || {
                let mut kept = packed.usage().1;
                loop {
                    let now = packed.usage().1;
                    let part = if now < kept { BUSY_GARBAGE_PART } else { GARBAGE_PART };
                    kept = now;
                    let pause = match packed.tidy(part, &stopping.stopped) {
                        Ok(()) => PAUSE,
                        Err(_) if stopping.stopped.load(Ordering::SeqCst) => return,
                        Err(error) => {
                            tracing::warn!(
                                "cannot compact the packed contents: {error}; trying again"
                            );
                            RETRY
                        }
                    };
                    let guard = stopping.lock.lock().unwrap_or_else(PoisonError::into_inner);
                    let waiting = |(): &mut ()| !stopping.stopped.load(Ordering::SeqCst);
                    drop(stopping.changed.wait_timeout_while(guard, pause, waiting));
                    if stopping.stopped.load(Ordering::SeqCst) {
                        return;
                    }
                }
            })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for CompactionThread {
    fn drop(&mut self) {
        self.stop.stopped.store(true, Ordering::SeqCst);
        drop(lock(&self.stop.lock));
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Packed {
    /// Does all work that is due now.
    pub(crate) fn tidy_now(&self) -> io::Result<()> {
        self.tidy(GARBAGE_PART, &AtomicBool::new(false))
    }

    fn tidy(&self, part: u64, stop: &AtomicBool) -> io::Result<()> {
        let _one_at_a_time = lock(&self.tidying);
        while self.merge_runs(stop)? {}
        while let Some(number) = self.most_garbage(part) {
            self.compact(number, stop)?;
            while self.merge_runs(stop)? {}
        }
        Ok(())
    }

    /// The next segment to rewrite, if garbage is more than one part in `part` of all bytes.
    fn most_garbage(&self, part: u64) -> Option<u32> {
        let index = lock(&self.index);
        let movable = || index.segments.iter().filter(|(_, usage)| !usage.stuck);
        let garbage_of =
            |all: u64, kept: u64| all.saturating_sub(kept).saturating_sub(SEGMENT_HEAD);
        let all: u64 = movable().map(|(_, usage)| usage.all).sum();
        let garbage: u64 = movable().map(|(_, usage)| garbage_of(usage.all, usage.kept)).sum();
        if garbage <= self.limits.garbage_bytes || garbage.saturating_mul(part) <= all {
            return None;
        }
        let candidates = movable()
            .filter(|(_, usage)| garbage_of(usage.all, usage.kept) * LEAST_PART >= usage.all);
        let (number, _) = candidates.max_by_key(|(_, usage)| {
            garbage_of(usage.all, usage.kept) * 1_024 / usage.all.max(1)
        })?;
        Some(*number)
    }

    /// Rewrites a segment without its garbage: needed contents are appended to the newest segment.
    fn compact(&self, number: u32, stop: &AtomicBool) -> io::Result<()> {
        let mut writer = lock(&self.writer);
        if writer.active.as_ref().is_some_and(|active| active.number == number) {
            writer.active = None;
        }
        drop(writer);
        let file = self.segment(number)?;
        if let Some(marker) = Marker::of(&file)? {
            let mut scan = Scan::new(&file, marker, SEGMENT_HEAD, self.limits.packed_bytes);
            while let Some(found) = scan.next()? {
                let Some(bytes) = found.bytes else { continue };
                let is_here = |place: super::ContentLocation| {
                    place.segment == number && u64::from(place.offset) == found.offset
                };
                if !self.find(&found.id)?.is_some_and(is_here) {
                    continue;
                }
                if stop.load(Ordering::SeqCst) {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let mut writer = lock(&self.writer);
                // The lock prevents a removal between the check and the copy.
                let before = self.find(&found.id)?;
                if before.is_some_and(is_here) {
                    self.append(&mut writer, &found.id, Some(bytes), before)?;
                    self.bound(writer)?;
                }
            }
        }
        self.sync()?;
        let _writer = lock(&self.writer);
        let mut index = lock(&self.index);
        let Some(usage) = index.segments.get_mut(&number) else { return Ok(()) };
        if usage.kept > 0 {
            usage.stuck = true;
            tracing::warn!(
                segment = number,
                "packed contents are damaged (help: `abreast check --read-data`)"
            );
            return Ok(());
        }
        index.segments.remove(&number);
        index.open.remove(&number);
        drop(index);
        self.files.remove_segment(number)
    }

    /// Merges the newest runs while they have similar sizes, so that an entry is rarely written
    /// again. Returns whether runs were merged.
    fn merge_runs(&self, stop: &AtomicBool) -> io::Result<bool> {
        let runs = Arc::clone(&lock(&self.index).runs);
        let mut newer = 0;
        let mut first = None;
        for (place, run) in runs.iter().enumerate().rev() {
            if place + 1 < runs.len() && run.entries <= newer * 2 {
                first = Some(place);
            }
            newer += run.entries;
        }
        let Some(first) = first else { return Ok(false) };
        let (merged, newest) = (&runs[first..], &runs[runs.len() - 1]);
        let span = Span { from: merged[0].span.from, to: newest.span.to };
        let begin = ContentId([0; ContentId::BYTES]);
        let parts =
            merged.iter().rev().map(|run| Box::new(run.iterate(&begin)) as Part<'_>).collect();
        let is_needed = |entry: &run::Entry| {
            // An entry for a removal is needed only if an older run may have the content.
            first > 0
                || entry
                    .1
                    .kept()
                    .is_some_and(|place| lock(&self.index).segments.contains_key(&place.segment))
        };
        let mut entries = Merge::new(parts)?
            .filter(|entry| entry.as_ref().map_or(true, is_needed))
            .map(|entry| {
                if stop.load(Ordering::SeqCst) {
                    Err(io::ErrorKind::Interrupted.into())
                } else {
                    entry
                }
            });
        let file =
            self.files.write_run(span, |file| run::write(file, newest.covered, &mut entries))?;
        drop(entries);
        let run = Arc::new(Run::open(file, span)?);
        Arc::make_mut(&mut lock(&self.index).runs).splice(first..runs.len(), [run]);
        for run in merged {
            self.files.remove_run(run.span)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::packed::{Files, Limits};

    #[test]
    fn an_interrupted_merge_leaves_nothing_and_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::open(folder.path()).unwrap();
        let files = Files::open(layout.root(), layout.temporary_folder()).unwrap();
        let packed = Packed::open(files, Limits { unindexed: 4, ..Limits::default() }).unwrap();
        let mut ids = Vec::new();
        for number in 0..16_u64 {
            let bytes = number.to_le_bytes();
            ids.push(ContentId(*blake3::hash(&bytes).as_bytes()));
            packed.put(&ids[ids.len() - 1], &bytes).unwrap();
        }
        let parts = || lock(&packed.index).runs.len();
        let temporaries = || std::fs::read_dir(folder.path().join("tmp")).unwrap().count();
        let before = parts();
        assert!(before > 1, "several parts of the index are to be merged");
        let error = packed.merge_runs(&AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!((parts(), temporaries()), (before, 0), "nothing is left of it");
        // While a part is being written it has a temporary name; when the call returns it has none.
        while packed.merge_runs(&AtomicBool::new(false)).unwrap() {
            assert_eq!(temporaries(), 0);
        }
        assert!(parts() < before);
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(packed.read(id).unwrap().unwrap(), (number as u64).to_le_bytes());
        }
    }
}
