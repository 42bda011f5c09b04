//! Snapshots of a set of entities: files with all descriptions, made in the background.
//!
//! A snapshot has a file of N-Triples in ASCII, which is also valid Turtle and the `text/plain` of
//! SDShare, and a file of RDF/XML if that can express every description. A chunk is a part of the
//! N-Triples file with whole descriptions. A blank node occurs in one description only, so chunks
//! do not divide blank nodes.
//!
//! The time of a snapshot is the time of the last change before the first entity is read. Every
//! entity in the snapshot is at least that new. With the fragments since that time, a client has
//! exactly the set, including changes during the making of the snapshot.
//!
//! The files, and each chunk, begin with a comment that contains the set, the time and the position.
//! Readers of these syntaxes ignore comments [n-triples §2.4, turtle §2, xml §2.5].
//!
//! A snapshot is made after the first scan of the set if there is none, and at a request for the
//! feed if the newest one is too old. Its files are written under other names and made durable. The
//! record, which is written last, publishes the snapshot: a snapshot is complete or not listed.
//! last: at any instant a snapshot is there whole, or not.

use super::ascii::Ascii;
use super::shared_snapshots::Shared;
use super::snapshot_name::SnapshotName;
use super::snapshot_record::{Snapshot, complete_in, digest_of, part, remove};
use crate::Representations;
use crate::made::shared::{SharedError, SharedSet};
use crate::made::{Attempts, Failure, Making};
use crate::publish::PublishedSet;
use crate::publish::files::FileContent;
use abreast_core::{
    ChangeLog, Clock as _, Head, KeyRange, LogError, Meter, Position, SetId, SystemClock,
    start_thread,
};
use abreast_folder::sealed;
use abreast_rdf::{Syntax, WriteError, WriteOptions, Writer};
use abreast_webtypes::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// Entities read from the table at a time.
const SLICE: usize = 1_024;
/// So many changes never make a snapshot worthless.
const FEW_CHANGES: u64 = 1_000;
/// Interval of snapshots, and the number of stored snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// Age at which the newest snapshot is replaced, if the set has changed since; a day by
    /// default. It is replaced earlier when the number of changes reaches the number of entities.
    pub every: Duration,
    /// Number of stored snapshots, at least one; two by default.
    pub keep: usize,
    /// Approximate size of a chunk in bytes; 16 MiB by default.
    pub chunk_bytes: u64,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { every: Duration::from_secs(24 * 3_600), keep: 2, chunk_bytes: 16 << 20 }
    }
}

/// Snapshots of one set of entities.
pub struct SetSnapshots {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    representations: Representations,
    folder: PathBuf,
    options: SnapshotOptions,
    /// The snapshots of all nodes, if several nodes share them.
    shared: Option<Shared>,
    state: Mutex<State>,
    attempts: Attempts,
    cancel: AtomicBool,
    meter: OnceLock<Meter>,
}

impl PublishedSet {
    /// Snapshots of the set, if it is a set of entities.
    pub fn snapshots(&self) -> Option<&Arc<SetSnapshots>> {
        self.part()
    }
}

impl std::fmt::Debug for SetSnapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetSnapshots").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    /// Complete snapshots, the oldest first.
    complete: Vec<Arc<Snapshot>>,
    /// Number of the shared record from which the complete snapshots were taken.
    stamp: Option<u64>,
    /// Time when the newest shared snapshot was published.
    published: Option<Timestamp>,
    /// Snapshot that is being made, if any.
    making: Option<SnapshotName>,
    thread: Option<JoinHandle<()>>,
}

/// Result of a search for a snapshot by name.
pub(super) enum Found {
    Complete(Arc<Snapshot>),
    /// The snapshot is being made.
    Making,
    /// The record of the snapshots of all nodes cannot be read now.
    Unread,
    Unknown,
}

#[derive(Debug, Error)]
enum SnapshotError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("cannot write the snapshot")]
    Io(#[from] io::Error),
    #[error("cannot write the description of <{0}>")]
    Description(String, #[source] WriteError),
    #[error("cannot end the snapshot")]
    End(#[from] WriteError),
    #[error("the description of <{0}> is not kept")]
    Missing(String),
    #[error("the set was removed")]
    Removed,
    #[error("cannot start a thread for the snapshot")]
    Thread(#[source] io::Error),
    #[error("cannot share the snapshot with other nodes")]
    Shared(#[from] SharedError),
    #[error("the program ends")]
    Cancelled,
}

impl Failure for SnapshotError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Cancelled | Self::Shared(SharedError::Stopped))
    }
}

impl SetSnapshots {
    /// Opens the folder of a set's snapshots, and removes incomplete snapshots from it. With `shared`,
    /// one node makes a snapshot and all nodes serve it; the folder has local copies.
    ///
    /// # Errors
    /// The folder cannot be created, read or cleared.
    pub fn open(
        log: Arc<dyn ChangeLog>,
        set: SetId,
        representations: Representations,
        folder: PathBuf,
        options: SnapshotOptions,
        shared: Option<&SharedSet>,
    ) -> io::Result<Arc<Self>> {
        fs::create_dir_all(&folder)?;
        let shared = shared.map(|set| Shared::open(set, folder.clone())).transpose()?;
        let complete = if shared.is_some() { Vec::new() } else { complete_in(&folder)? };
        let state = Mutex::new(State { complete, ..State::default() });
        let attempts = Attempts::new(format!("make a snapshot in `{}`", folder.display()));
        let snapshots = Arc::new(Self {
            log,
            set,
            representations,
            folder,
            options,
            shared,
            state,
            attempts,
            cancel: AtomicBool::new(false),
            meter: OnceLock::new(),
        });
        if let Some(shared) = &snapshots.shared {
            let weak = Arc::downgrade(&snapshots);
            shared.on_request(move || {
                if let Some(snapshots) = weak.upgrade() {
                    snapshots.begin();
                }
            });
        }
        Ok(snapshots)
    }

    /// Shows the making of snapshots with a meter. Only the first call has an effect, before the first
    /// snapshot.
    pub fn show(&self, meter: Meter) {
        let _ = self.meter.set(meter);
    }

    /// Starts making the first snapshot before the first request, unless the set is empty. If the
    /// log fails, the first request starts it.
    pub fn begin(self: &Arc<Self>) {
        let head = self.log.head(self.set).ok().filter(|head| head.resources > 0);
        if let Some(head) = head {
            self.ask(&head);
        }
    }

    /// Stops making a snapshot, and waits for the end of the thread.
    pub fn stop(&self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.wait();
    }

    /// Waits for the end of the current attempt.
    pub(in crate::projection) fn wait(&self) {
        let thread = self.lock().thread.take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Complete snapshots, the newest first; if there are none, the unfinished snapshot.
    pub(super) fn listed(&self) -> Vec<(SnapshotName, Option<Arc<Snapshot>>)> {
        let state = self.lock();
        if state.complete.is_empty() {
            return state.making.map(|name| (name, None)).into_iter().collect();
        }
        let all = state.complete.iter().rev();
        all.map(|snapshot| (snapshot.name, Some(Arc::clone(snapshot)))).collect()
    }

    pub(super) fn find(&self, name: SnapshotName) -> Found {
        match (self.find_known(name), &self.shared) {
            // Another node may have published the snapshot a moment ago.
            (Found::Unknown, Some(shared)) => match shared.read_again() {
                Ok(true) => self.find_known(name),
                Ok(false) => Found::Unknown,
                Err(_) => Found::Unread,
            },
            (found, _) => found,
        }
    }

    fn find_known(&self, name: SnapshotName) -> Found {
        let state = self.lock();
        let complete = state.complete.iter().find(|snapshot| snapshot.name == name);
        match complete {
            Some(snapshot) => Found::Complete(Arc::clone(snapshot)),
            None if state.making == Some(name) => Found::Making,
            None => Found::Unknown,
        }
    }

    /// Opens a file of a snapshot; `None` if the snapshot does not have the file.
    pub(super) fn file(&self, name: SnapshotName, extension: &str) -> Option<FileContent> {
        let file = format!("{name}.{extension}");
        match &self.shared {
            Some(shared) => shared.file(name, &file),
            None => File::open(self.folder.join(file)).ok().map(FileContent::File),
        }
    }

    /// Starts making a snapshot in the background if one is due. Reads neither the store nor a
    /// disk.
    pub(in crate::projection) fn ask(self: &Arc<Self>, head: &Head) {
        let mut state = self.lock();
        // Snapshots of an earlier log do not have the changes of a recreated log.
        let is_older = |snapshot: &Arc<Snapshot>| snapshot.created != head.created.as_micros();
        if state.complete.iter().any(is_older) {
            state.complete.retain(|snapshot| !is_older(snapshot));
        }
        let is_due = match state.complete.last() {
            None => true,
            Some(newest) => {
                let every = self.options.every;
                let is_old = match (&self.shared, state.published) {
                    (Some(shared), Some(made)) => {
                        Attempts::is_over_of_nodes(every, made, shared.now())
                    }
                    _ => self.attempts.is_over(every, newest.name.time(), SystemClock.now()),
                };
                // After that many changes, fragments cost a client more than a new snapshot.
                let changes = head.position.0.saturating_sub(newest.name.position);
                let is_small = changes >= head.resources.max(FEW_CHANGES);
                let was_empty = newest.name.position == 0;
                newest.name != SnapshotName::of(head) && (is_old || is_small || was_empty)
            }
        };
        let stops = self.cancel.load(Ordering::Relaxed);
        if !is_due || self.attempts.rests() || stops || state.making.is_some() || head.importing {
            return;
        }
        if let Some(shared) = self.shared.as_ref().filter(|shared| !shared.is_mine()) {
            return shared.request();
        }
        let name = SnapshotName::of(head);
        let (this, head, stamp) = (Arc::clone(self), *head, state.stamp);
        match start_thread("snapshot", move || this.run(name, &head, stamp)) {
            Ok(thread) => (state.making, state.thread) = (Some(name), Some(thread)),
            Err(error) => {
                let failed = || Err::<Option<()>, _>(SnapshotError::Thread(error));
                let _ = self.attempts.attempt(failed);
            }
        }
    }

    fn run(&self, name: SnapshotName, head: &Head, stamp: Option<u64>) {
        let meter = self.meter.get_or_init(Meter::default);
        meter.begin("snapshot");
        meter.expect(head.resources, 0);
        let made = self.attempts.attempt(|| match &self.shared {
            None => self.make(name, head, meter).map(Some),
            Some(shared) => self.make_shared(shared, name, head, stamp),
        });
        meter.end();
        let mut state = self.lock();
        state.making = None;
        if self.shared.is_some() {
            return;
        }
        // The failure was logged, and a pause follows.
        let Ok(Some(snapshot)) = made else { return };
        state.complete.push(Arc::new(snapshot));
        state.complete.sort_by_key(|snapshot| snapshot.name);
        let surplus = state.complete.len().saturating_sub(self.options.keep.max(1));
        let old: Vec<_> = state.complete.drain(..surplus).collect();
        drop(state);
        for snapshot in old {
            remove(&self.folder, snapshot.name);
        }
    }

    fn make(
        &self,
        name: SnapshotName,
        head: &Head,
        meter: &Meter,
    ) -> Result<Snapshot, SnapshotError> {
        let (snapshot, mut making) = self.make_files(&self.folder, name, head, meter)?;
        let text = serde_json::to_vec(&snapshot).map_err(io::Error::from)?;
        let record = format!("{name}.json");
        making.write(&record, &sealed(text))?;
        making.publish(&record)?;
        Ok(snapshot)
    }

    /// Makes and publishes a snapshot of several nodes. Returns `None` if another node makes it.
    fn make_shared(
        &self,
        shared: &Shared,
        name: SnapshotName,
        head: &Head,
        stamp: Option<u64>,
    ) -> Result<Option<Snapshot>, SnapshotError> {
        let make = || {
            let attempt = shared.begin(stamp.unwrap_or_default())?;
            let meter = self.meter.get_or_init(Meter::default);
            let (snapshot, making) = self.make_files(attempt.folder(), name, head, meter)?;
            making.retain();
            let stop = || self.cancel.load(Ordering::Relaxed);
            Shared::publish(attempt, &snapshot, self.options.keep, &stop)?;
            Ok(snapshot)
        };
        match make() {
            Err(SnapshotError::Shared(error)) if error.is_of_another() => {
                tracing::info!("no snapshot is made: {error}");
                Ok(None)
            }
            made => made.map(Some),
        }
    }

    /// Makes the files of a snapshot in a folder, complete and durable.
    fn make_files(
        &self,
        folder: &Path,
        name: SnapshotName,
        head: &Head,
        meter: &Meter,
    ) -> Result<(Snapshot, Making), SnapshotError> {
        let mut making = Making::begin(folder);
        let options = WriteOptions::default();
        let written = Rc::new(Cell::new(0_u64));
        let (nt, rdf) = (format!("{name}.nt"), format!("{name}.rdf"));
        let mut lines = Ascii::new(making.file(&nt, 0)?, Rc::clone(&written));
        let mut line_writer = Writer::new(Syntax::NTriples, &options, &mut lines);
        let mut rdf_xml = making.file(&rdf, 0)?;
        let mut has_rdf_xml = true;
        let mut xml_writer = Writer::new(Syntax::RdfXml, &options, &mut rdf_xml);
        let comment = name.comment(&self.slug()?);
        xml_writer.comment(&comment)?;
        let mut chunks: Vec<u64> = Vec::new();
        let mut range = KeyRange::default();
        let (mut slice, mut description) = (Vec::with_capacity(SLICE), Vec::new());
        loop {
            self.log.scan(self.set, &range, &mut |resource| {
                slice.push(resource.clone());
                if slice.len() < SLICE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            let Some(last) = slice.last() else { break };
            // The smallest key after the last one.
            range.start = format!("{}\0", last.key);
            for resource in slice.drain(..) {
                meter.add(1, resource.state.length.unwrap_or(0));
                if self.cancel.load(Ordering::Relaxed) {
                    return Err(SnapshotError::Cancelled);
                }
                let Some(mut kept) = self.representations.open_kept(&resource.state)? else {
                    // The entity changed after it was read here; the fragments feed has the change.
                    if self.is_newer(&resource.key, resource.position)? {
                        continue;
                    }
                    return Err(SnapshotError::Missing(resource.key));
                };
                description.clear();
                kept.read_to_end(&mut description)?;
                let failed = |error| SnapshotError::Description(resource.key.clone(), error);
                let begun = chunks.last().copied().unwrap_or_default();
                if written.get() == begun {
                    line_writer.comment(&comment)?;
                }
                line_writer.description(&description).map_err(failed)?;
                if has_rdf_xml {
                    match xml_writer.description(&description) {
                        Ok(()) => {}
                        Err(WriteError::Cannot(_)) => has_rdf_xml = false,
                        Err(error) => return Err(failed(error)),
                    }
                }
                if written.get() - begun >= self.options.chunk_bytes {
                    chunks.push(written.get());
                }
            }
        }
        if written.get() == 0 {
            line_writer.comment(&comment)?;
        }
        let length = written.get();
        if chunks.last() != Some(&length) {
            chunks.push(length);
        }
        line_writer.finish()?;
        if has_rdf_xml {
            xml_writer.finish()?;
        }
        making.complete(&nt, lines.into_inner())?;
        let created = head.created.as_micros();
        let gzip = self.compress(&mut making, folder, &nt, &chunks)?;
        if has_rdf_xml {
            making.complete(&rdf, rdf_xml)?;
            let length = fs::metadata(folder.join(&rdf))?.len();
            self.compress(&mut making, folder, &rdf, &[length])?;
        }
        let digests = BTreeMap::new();
        let mut snapshot = Snapshot { name, created, length, chunks, has_rdf_xml, gzip, digests };
        for extension in snapshot.extensions() {
            let path = folder.join(format!("{name}.{extension}"));
            snapshot.digests.insert((*extension).to_owned(), digest_of(&path)?);
        }
        Ok((snapshot, making))
    }

    /// Present name of the set.
    fn slug(&self) -> Result<String, SnapshotError> {
        let set = self.log.sets()?.into_iter().find(|set| set.id == self.set);
        set.map(|set| set.slug).ok_or(SnapshotError::Removed)
    }

    /// Compresses a file, each part separately. Returns the offsets of the parts' ends.
    fn compress(
        &self,
        making: &mut Making,
        folder: &Path,
        file: &str,
        ends: &[u64],
    ) -> Result<Vec<u64>, SnapshotError> {
        let mut plain = BufReader::new(File::open(folder.join(file))?);
        let packed = format!("{file}z");
        let mut out = making.file(&packed, 0)?;
        let mut found = Vec::with_capacity(ends.len());
        for number in 1..=ends.len() {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(SnapshotError::Cancelled);
            }
            let length = part(ends, number).map_or(0, |(_, length)| length);
            let mut member = GzEncoder::new(out, Compression::fast());
            io::copy(&mut plain.by_ref().take(length), &mut member)?;
            out = member.finish()?;
            found.push(out.stream_position()?);
        }
        making.complete(&packed, out)?;
        Ok(found)
    }

    /// Whether an entity changed after the position, or left the set.
    fn is_newer(&self, key: &str, position: Position) -> Result<bool, LogError> {
        let now = self.log.resource(self.set, key)?;
        Ok(now.is_none_or(|now| now.position > position))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = &self.shared
            && let Some(known) = shared.changed(state.stamp)
        {
            state.stamp = Some(known.stamp);
            (state.complete, state.published) = (known.complete, known.published);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::routes::PathValue as _;

    #[test]
    fn names_read_back() {
        let name = SnapshotName { time: 1_767_432_000_000_001, position: 17 };
        assert_eq!(SnapshotName::parse(&name.to_string()), Some(name));
        for text in ["", "17", "1-2-3", "01-2", "1-+2", "-1-2x"] {
            assert_eq!(SnapshotName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_comment_is_one_in_every_syntax() {
        let name = SnapshotName { time: 1_767_432_000_000_001, position: 17 };
        for (slug, shown) in [("my--set-", "my-%2Dset-"), ("a\n--> ü", "a%0A-%2D%3E%20%C3%BC")] {
            let comment = name.comment(slug);
            let time = "2026-01-03T09:20:00.000001Z";
            assert_eq!(comment, format!("snapshot of set={shown} time={time} position=17"));
            for syntax in [Syntax::NTriples, Syntax::Turtle, Syntax::RdfXml] {
                let (mut out, options) = (Vec::new(), WriteOptions::default());
                let mut writer = Writer::new(syntax, &options, &mut out);
                writer.comment(&comment).unwrap();
                writer.finish().unwrap();
                let mut count = 0;
                let options = abreast_rdf::ReadOptions::default();
                abreast_rdf::read(syntax, out.as_slice(), &options, &mut |_| {
                    count += 1;
                    ControlFlow::Continue(())
                })
                .unwrap();
                assert_eq!(count, 0, "{syntax}");
                assert!(String::from_utf8(out).unwrap().contains(&comment));
            }
        }
    }
}
