//! Small contents, packed: appended to segments of bounded size, found by an index of sorted files.
//!
//! - **Appending.** A content is one record at the end of the newest segment. One `fdatasync` of
//!   the segment makes all its records durable. Records that are not durable are at the end; after
//!   a crash, the complete records remain in the index.
//! - **Finding.** The locations of the newest records are in memory, all others in runs (`run.rs`).
//!   When memory has [`Limits::unindexed`] locations, they become a run; runs of similar size are
//!   merged in the background.
//! - **Removing.** A removal is a record without content; segments with much garbage are rewritten
//!   without it (`compaction.rs`). After loss of power a removed content may be back: then no row
//!   needs it, and it is removed again.
//! - **Trust.** Bytes are compared with their address whenever they are read. The index has
//!   checksums; it is rebuilt from the segments if a part is damaged or missing.

mod compaction;
mod files;
mod load;
mod record;
mod run;

pub(crate) use compaction::CompactionThread;
pub(crate) use files::Files;
use record::{Head, Marker, RECORD_HEAD, SEGMENT_HEAD};
use run::{ContentLocation, Covered, Entry, Merge, Part, Run, Span};

use abreast_core::ContentId;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most segments that are open at a time.
const OPEN_FILES: usize = 64;
/// Most lookups of a content, which may move to another segment while it is read.
const ATTEMPTS: usize = 8;

/// Sizes at which files change. Smaller values need more files, larger values more memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Contents of at most this many bytes are packed; larger ones are separate files. A packed
    /// content is read and verified whole, in memory, before its first byte is returned.
    pub packed_bytes: u32,
    /// A segment of this size gets no more records. Compaction rewrites one segment at a time.
    pub segment_bytes: u32,
    /// Most contents whose locations are in memory before they are written to the index, 64 bytes
    /// each.
    pub unindexed: usize,
    /// Bytes of removed contents below which segments are not rewritten.
    pub garbage_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packed_bytes: 64 << 10,
            segment_bytes: 64 << 20,
            unindexed: 100_000,
            garbage_bytes: 1 << 20,
        }
    }
}

/// Numbers of bytes in a segment.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    all: u64,
    /// Bytes in records of contents that are not removed.
    kept: u64,
    /// Whether a needed part is damaged, so that the segment is not rewritten.
    stuck: bool,
}

/// The locations of contents.
#[derive(Default)]
struct Index {
    /// Locations that are not yet in a run.
    recent: HashMap<ContentId, ContentLocation>,
    /// Locations that are being written to a run.
    frozen: Arc<HashMap<ContentId, ContentLocation>>,
    /// Runs, the oldest first.
    runs: Arc<Vec<Arc<Run>>>,
    segments: BTreeMap<u32, Usage>,
    open: HashMap<u32, Arc<File>>,
}

/// The segment to which records are appended.
struct Active {
    number: u32,
    file: Arc<File>,
    marker: Marker,
    length: u64,
}

/// The values of the appending writer.
struct Writer {
    active: Option<Active>,
    next_segment: u32,
    next_run: u64,
    /// Segments with records that are not durable.
    unsynced: Vec<Arc<File>>,
    /// There are segments whose directory entries are not durable.
    new_names: bool,
    /// Bytes of records that are not yet in a run.
    unindexed: u64,
    record: Vec<u8>,
}

/// The packed contents of a folder.
pub(crate) struct Packed {
    files: Files,
    limits: Limits,
    /// Locked for a whole change of the contents; then `index`, for a short time.
    writer: Mutex<Writer>,
    index: Mutex<Index>,
    syncing: Mutex<()>,
    tidying: Mutex<()>,
    /// Whether the disk failed to make data durable; then nothing is appended.
    untrusted: AtomicBool,
}

/// Locations that are written to a run.
struct Frozen {
    span: Span,
    covered: Covered,
    /// Bytes of their records in segments.
    bytes: u64,
    places: Arc<HashMap<ContentId, ContentLocation>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record_bytes(length: u32) -> u64 {
    RECORD_HEAD as u64 + u64::from(length)
}

/// Whether the disk or the quota was full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Usage {
    /// Whether a record can be in the segment: false if it is after the end of a truncated segment.
    fn has(&self, place: ContentLocation) -> bool {
        u64::from(place.offset) + record_bytes(place.length) <= self.all
    }
}

impl Packed {
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Stores bytes, unless they are stored already. Durable after [`Packed::sync`].
    pub(crate) fn put(&self, id: &ContentId, bytes: &[u8]) -> io::Result<()> {
        let mut writer = lock(&self.writer);
        let before = self.find(id)?;
        if let Some(place) = before
            && place.length as usize == bytes.len()
            && self.bytes_at(place).is_ok_and(|kept| kept == bytes)
        {
            return Ok(());
        }
        self.append(&mut writer, id, Some(bytes), before)?;
        self.bound(writer)
    }

    /// Removes a content; false if it is not stored.
    pub(crate) fn remove(&self, id: &ContentId) -> io::Result<bool> {
        let mut writer = lock(&self.writer);
        let before = self.find(id)?;
        if before.is_none() {
            return Ok(false);
        }
        match self.append(&mut writer, id, None, before) {
            // On a full disk, remove the content from the index only, so that space can be freed.
            // If the record is missing, the content may be back when the folder is opened again, as
            // after loss of power.
            Err(error) if is_full(&error) => {
                lock(&self.index).set(id, before, ContentLocation::REMOVED);
            }
            appended => appended?,
        }
        self.bound(writer)?;
        Ok(true)
    }

    /// Writes locations to the index when there are many in memory, even if no caller requests a
    /// sync.
    fn bound(&self, writer: MutexGuard<'_, Writer>) -> io::Result<()> {
        let due = self.is_due(&writer);
        drop(writer);
        if due { self.sync() } else { Ok(()) }
    }

    fn is_due(&self, writer: &Writer) -> bool {
        writer.unindexed >= u64::from(self.limits.segment_bytes)
            || lock(&self.index).recent.len() >= self.limits.unindexed
    }

    /// Appends a record of a content or a removal, and updates the index. `before` is the content's
    /// previous location.
    fn append(
        &self,
        writer: &mut Writer,
        id: &ContentId,
        bytes: Option<&[u8]>,
        before: Option<ContentLocation>,
    ) -> io::Result<()> {
        self.trusted()?;
        if writer
            .active
            .as_ref()
            .is_some_and(|active| active.length >= u64::from(self.limits.segment_bytes))
        {
            writer.active = None;
        }
        if writer.active.is_none() {
            self.begin_segment(writer)?;
        }
        let Writer { active, unsynced, unindexed, record, .. } = writer;
        let Some(active) = active else { return Err(io::ErrorKind::NotFound.into()) };
        let head = Head { id: *id, length: bytes.map(|bytes| bytes.len() as u32) };
        record.clear();
        head.write(active.marker, record);
        record.extend_from_slice(bytes.unwrap_or_default());
        if !unsynced.iter().any(|file| Arc::ptr_eq(file, &active.file)) {
            unsynced.push(Arc::clone(&active.file));
        }
        // After a failure, bytes after the end are overwritten by the next record, or skipped by
        // the next open.
        active.file.write_all_at(record, active.length)?;
        let place = match head.length {
            Some(length) => {
                ContentLocation { segment: active.number, offset: active.length as u32, length }
            }
            None => ContentLocation::REMOVED,
        };
        active.length += record.len() as u64;
        *unindexed += record.len() as u64;
        let (number, added) = (active.number, record.len() as u64);
        let mut index = lock(&self.index);
        index.segments.entry(number).or_default().all += added;
        index.set(id, before, place);
        Ok(())
    }

    fn begin_segment(&self, writer: &mut Writer) -> io::Result<()> {
        let number = writer.next_segment;
        let file = Arc::new(self.files.create_segment(number)?);
        writer.next_segment += 1;
        writer.new_names = true;
        let marker = Marker::random();
        if let Err(error) = file.write_all_at(&marker.segment_head(), 0) {
            // The next attempt creates another segment, so on a full disk there could be many empty
            // ones.
            let _ = self.files.remove_segment(number);
            return Err(error);
        }
        let mut index = lock(&self.index);
        index.segments.insert(number, Usage { all: SEGMENT_HEAD, ..Usage::default() });
        index.hold(number, &file);
        writer.active = Some(Active { number, file, marker, length: SEGMENT_HEAD });
        Ok(())
    }

    /// Makes all records durable that were appended before.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.sync_and(false)
    }

    /// As `sync`, and writes all locations to the index, so that the next open does not have to
    /// read the segments.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.sync_and(true)
    }

    fn sync_and(&self, close: bool) -> io::Result<()> {
        let _one_at_a_time = lock(&self.syncing);
        let mut writer = lock(&self.writer);
        let files = std::mem::take(&mut writer.unsynced);
        let new_names = std::mem::take(&mut writer.new_names);
        // Later contents are in the next run.
        let close = close && !lock(&self.index).recent.is_empty();
        let frozen = (close || self.is_due(&writer)).then(|| {
            let covered = match &writer.active {
                Some(active) => Covered { segment: active.number, offset: active.length },
                None => Covered { segment: writer.next_segment, offset: 0 },
            };
            self.freeze(&mut writer, covered)
        });
        drop(writer);
        let synced =
            self.trusted().and_then(|()| files.iter().try_for_each(|file| file.sync_data()));
        let synced = synced.and_then(|()| if new_names { self.files.sync_names() } else { Ok(()) });
        if let Err(error) = synced {
            // Any written data may be lost: another call would only hide the failure.
            self.untrusted.store(true, Ordering::SeqCst);
            return Err(error);
        }
        match frozen.map_or(Ok(()), |frozen| self.write_frozen(&frozen)) {
            // The records are durable; the index is written later.
            Err(error) if is_full(&error) && !close => {
                tracing::warn!(
                    "cannot write the index of packed contents: {error}; trying again with the next contents"
                );
                Ok(())
            }
            written => written,
        }
    }

    fn trusted(&self) -> io::Result<()> {
        if self.untrusted.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk failed to make contents durable"));
        }
        Ok(())
    }

    /// Takes the locations that are not yet in a run, to write them. The caller holds `syncing`, or
    /// is the only one.
    fn freeze(&self, writer: &mut Writer, covered: Covered) -> Frozen {
        let mut index = lock(&self.index);
        index.frozen = Arc::new(std::mem::take(&mut index.recent));
        let bytes = std::mem::take(&mut writer.unindexed);
        let span = Span { from: writer.next_run, to: writer.next_run };
        Frozen { span, covered, bytes, places: Arc::clone(&index.frozen) }
    }

    /// Writes the locations as a run; the records must be durable.
    fn write_frozen(&self, frozen: &Frozen) -> io::Result<()> {
        let written = self.write_run(frozen.span, frozen.covered, &frozen.places);
        let mut writer = lock(&self.writer);
        let mut index = lock(&self.index);
        index.frozen = Arc::default();
        match written {
            Ok(run) => {
                writer.next_run += 1;
                Arc::make_mut(&mut index.runs).push(Arc::new(run));
                Ok(())
            }
            Err(error) => {
                writer.unindexed += frozen.bytes;
                for (id, place) in &*frozen.places {
                    index.recent.entry(*id).or_insert(*place);
                }
                Err(error)
            }
        }
    }

    fn write_run(
        &self,
        span: Span,
        covered: Covered,
        places: &HashMap<ContentId, ContentLocation>,
    ) -> io::Result<Run> {
        let mut entries: Vec<Entry> = places.iter().map(|(id, place)| (*id, *place)).collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        let file = self
            .files
            .write_run(span, |file| run::write(file, covered, &mut entries.into_iter().map(Ok)))?;
        Run::open(file, span)
    }

    /// Finds the location of a content.
    fn find(&self, id: &ContentId) -> io::Result<Option<ContentLocation>> {
        let mut last = None;
        loop {
            let index = lock(&self.index);
            let mut place = index.unwritten(id);
            let runs = Arc::clone(&index.runs);
            drop(index);
            for run in runs.iter().rev() {
                if place.is_some() {
                    break;
                }
                place = run.find(id)?;
            }
            let Some(place) = place.and_then(ContentLocation::kept) else { return Ok(None) };
            if lock(&self.index).has(place) {
                return Ok(Some(place));
            }
            // The content was just moved; or the record of its removal was lost with the power, and
            // its segment does not exist; or the end of the segment was lost.
            if last == Some(place) {
                return Ok(None);
            }
            last = Some(place);
        }
    }

    /// Length of a content in bytes; `None` if it is not packed.
    pub(crate) fn length(&self, id: &ContentId) -> io::Result<Option<u64>> {
        Ok(self.find(id)?.map(|place| u64::from(place.length)))
    }

    /// The bytes of a content, verified against its address; `None` if it is not packed.
    pub(crate) fn read(&self, id: &ContentId) -> io::Result<Option<Vec<u8>>> {
        for _ in 0..ATTEMPTS {
            let Some(place) = self.find(id)? else { return Ok(None) };
            match self.bytes_at(place) {
                Ok(bytes) if *blake3::hash(&bytes).as_bytes() == id.0 => return Ok(Some(bytes)),
                Ok(_) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "other bytes than were kept",
                    ));
                }
                // Compaction removed the segment since the lookup: search again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Whether the record of a content is intact, so that a rebuilt index would include it.
    pub(crate) fn is_record_whole(&self, id: &ContentId) -> io::Result<bool> {
        let Some(place) = self.find(id)? else { return Ok(false) };
        let file = self.segment(place.segment)?;
        let mut head = [0; RECORD_HEAD];
        file.read_exact_at(&mut head, u64::from(place.offset))?;
        let Some(marker) = Marker::of(&file)? else { return Ok(false) };
        Ok(Head::read(marker, &head, place.length)
            == Some(Head { id: *id, length: Some(place.length) }))
    }

    /// Appends a stored content again.
    pub(crate) fn rewrite(&self, id: &ContentId) -> io::Result<()> {
        let Some(bytes) = self.read(id)? else { return Ok(()) };
        let mut writer = lock(&self.writer);
        let before = self.find(id)?;
        self.append(&mut writer, id, Some(&bytes), before)?;
        self.bound(writer)
    }

    fn bytes_at(&self, place: ContentLocation) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; place.length as usize];
        self.segment(place.segment)?
            .read_exact_at(&mut bytes, u64::from(place.offset) + RECORD_HEAD as u64)?;
        Ok(bytes)
    }

    fn segment(&self, number: u32) -> io::Result<Arc<File>> {
        if let Some(file) = lock(&self.index).open.get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(self.files.open_segment(number)?);
        lock(&self.index).hold(number, &file);
        Ok(file)
    }

    /// Visits the addresses of packed contents from one to another, both included, in order, with
    /// their lengths.
    pub(crate) fn visit(
        &self,
        from: &ContentId,
        to: &ContentId,
        visit: &mut dyn FnMut(ContentId, u64) -> io::Result<ControlFlow<()>>,
    ) -> io::Result<()> {
        let index = lock(&self.index);
        let (recent, frozen, runs) = (
            sorted(&index.recent, from, to),
            sorted(&index.frozen, from, to),
            Arc::clone(&index.runs),
        );
        drop(index);
        let mut parts: Vec<Part<'_>> =
            vec![Box::new(recent.into_iter().map(Ok)), Box::new(frozen.into_iter().map(Ok))];
        let within =
            |entry: &io::Result<Entry>| entry.as_ref().map_or(true, |entry| entry.0 <= *to);
        parts.extend(
            runs.iter().rev().map(|run| Box::new(run.iterate(from).take_while(within)) as Part<'_>),
        );
        for entry in Merge::new(parts)? {
            let (id, place) = entry?;
            let Some(place) = place.kept() else { continue };
            let there = lock(&self.index).has(place);
            // A content in a removed segment was just moved, unless the record of its removal was
            // lost with the power.
            if (there || self.find(&id)?.is_some())
                && visit(id, u64::from(place.length))?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// Bytes of all segments, and bytes in the records of contents that are not removed.
    pub(crate) fn usage(&self) -> (u64, u64) {
        lock(&self.index)
            .segments
            .values()
            .fold((0, 0), |(all, kept), one| (all + one.all, kept + one.kept))
    }
}

impl Index {
    /// Whether a segment can have a content at this location.
    fn has(&self, place: ContentLocation) -> bool {
        self.segments.get(&place.segment).is_some_and(|usage| usage.has(place))
    }

    /// Finds a location that is not yet in a run.
    fn unwritten(&self, id: &ContentId) -> Option<ContentLocation> {
        self.recent.get(id).or_else(|| self.frozen.get(id)).copied()
    }

    /// Records the location of a content, or its removal.
    fn set(&mut self, id: &ContentId, before: Option<ContentLocation>, place: ContentLocation) {
        let mut usage = |place: ContentLocation, change: fn(u64, u64) -> u64| {
            if let Some(usage) = self.segments.get_mut(&place.segment) {
                usage.kept = change(usage.kept, record_bytes(place.length));
            }
        };
        if let Some(before) = before {
            usage(before, u64::saturating_sub);
        }
        if let Some(place) = place.kept() {
            usage(place, u64::saturating_add);
        }
        self.recent.insert(*id, place);
    }

    /// Caches the handle of a segment, unless the segment was removed meanwhile.
    fn hold(&mut self, number: u32, file: &Arc<File>) {
        if !self.segments.contains_key(&number) {
            return;
        }
        if self.open.len() >= OPEN_FILES {
            self.open.clear();
        }
        self.open.insert(number, Arc::clone(file));
    }
}

fn sorted(
    places: &HashMap<ContentId, ContentLocation>,
    from: &ContentId,
    to: &ContentId,
) -> Vec<Entry> {
    let within = places.iter().filter(|(id, _)| *from <= **id && **id <= *to);
    let mut entries: Vec<Entry> = within.map(|(id, place)| (*id, *place)).collect();
    entries.sort_unstable_by_key(|entry| entry.0);
    entries
}
