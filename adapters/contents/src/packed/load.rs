//! Opening the folder: the index is read and verified, and later contents are read from the
//! segments.

use super::files::{Files, Listing};
use super::record::{Marker, SEGMENT_HEAD, Scan};
use super::run::{ContentLocation, Covered, Merge, Part, Run, is_damage};
use super::{Active, Index, Limits, Packed, Usage, Writer, lock, record_bytes};
use abreast_core::ContentId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

impl Packed {
    /// Opens the folder for writing. Contents that a killed process put are made durable first; a
    /// damaged index is rebuilt from the segments.
    pub(crate) fn open(files: Files, limits: Limits) -> io::Result<Self> {
        let mut listing = files.list()?;
        for span in std::mem::take(&mut listing.outdated) {
            files.remove_run(span)?;
        }
        let runs = match open_runs(&files, &listing) {
            Ok(runs) => runs,
            Err(error) if is_damage(&error) => {
                tracing::warn!(
                    "the index of packed contents is damaged: rebuilding it from the segments"
                );
                for span in std::mem::take(&mut listing.runs) {
                    files.remove_run(span)?;
                }
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let covered = runs.last().map_or(Covered::default(), |run| run.covered);
        let packed = Self::load(files, limits, &listing, runs)?;
        for number in listing.segments.iter().filter(|number| **number >= covered.segment) {
            packed.segment(*number)?.sync_data()?;
        }
        packed.files.sync_names()?;
        packed.replay(&listing, covered, true)?;
        packed.remove_empty_segments()?;
        Ok(packed)
    }

    /// Removes segments without a header, which a full disk or a kill left.
    fn remove_empty_segments(&self) -> io::Result<()> {
        let mut index = lock(&self.index);
        let empty = |usage: &Usage| usage.kept == 0 && usage.all < SEGMENT_HEAD;
        let numbers: Vec<u32> = index
            .segments
            .iter()
            .filter(|(_, usage)| empty(usage))
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            index.segments.remove(&number);
            index.open.remove(&number);
            self.files.remove_segment(number)?;
        }
        Ok(())
    }

    /// Opens the folder read-only, while another process may write it. The index is not updated
    /// later.
    ///
    /// Fails with [`io::ErrorKind::NotFound`] if a file was replaced meanwhile, and with
    /// [`io::ErrorKind::InvalidData`] if the index is damaged.
    pub(crate) fn open_view(files: Files) -> io::Result<Self> {
        let listing = files.list()?;
        let runs = open_runs(&files, &listing)?;
        let covered = runs.last().map_or(Covered::default(), |run| run.covered);
        let packed = Self::load(files, Limits::default(), &listing, runs)?;
        packed.replay(&listing, covered, false)?;
        Ok(packed)
    }

    fn load(
        files: Files,
        limits: Limits,
        listing: &Listing,
        runs: Vec<Arc<Run>>,
    ) -> io::Result<Self> {
        let mut segments = BTreeMap::new();
        for number in &listing.segments {
            let all = files.open_segment(*number)?.metadata()?.len();
            segments.insert(*number, Usage { all, ..Usage::default() });
        }
        let first = ContentId([0; ContentId::BYTES]);
        let parts =
            runs.iter().rev().map(|run| Box::new(run.iterate(&first)) as Part<'_>).collect();
        for entry in Merge::new(parts)? {
            let (_, place) = entry?;
            let Some(place) = place.kept() else { continue };
            if let Some(usage) =
                segments.get_mut(&place.segment).filter(|usage: &&mut Usage| usage.has(place))
            {
                usage.kept += record_bytes(place.length);
            }
        }
        // Never reuse a number: the index may refer to a lost segment.
        let covered = runs.last().map_or(Covered::default(), |run| run.covered);
        let after = covered.segment + u32::from(covered.offset > 0);
        let writer = Writer {
            active: None,
            next_segment: listing.segments.last().map_or(1, |last| last + 1).max(after),
            next_run: runs.last().map_or(1, |run| run.span.to + 1),
            unsynced: Vec::new(),
            new_names: false,
            unindexed: 0,
            record: Vec::new(),
        };
        let index = Index { runs: Arc::new(runs), segments, ..Index::default() };
        Ok(Self {
            files,
            limits,
            writer: Mutex::new(writer),
            index: Mutex::new(index),
            syncing: Mutex::default(),
            tidying: Mutex::default(),
            untrusted: AtomicBool::new(false),
        })
    }

    /// Adds the contents to the index that were appended to segments after it was written.
    fn replay(&self, listing: &Listing, covered: Covered, writing: bool) -> io::Result<()> {
        for number in listing.segments.iter().copied().filter(|number| *number >= covered.segment) {
            let file = self.segment(number)?;
            let length = file.metadata()?.len();
            let from = if number == covered.segment {
                covered.offset.max(SEGMENT_HEAD)
            } else {
                SEGMENT_HEAD
            };
            let marker = Marker::of(&file)?;
            let end = match marker {
                Some(marker) if from <= length => {
                    self.replay_segment(number, &file, marker, from, writing)?
                }
                // Shorter than the part in the index, or without a header: do not append to it.
                _ => u64::MAX,
            };
            if end < u64::MAX {
                // The writing process may have added contents after the length was read.
                let mut index = lock(&self.index);
                let usage = index.segments.entry(number).or_default();
                usage.all = usage.all.max(end);
            }
            if writing
                && listing.segments.last() == Some(&number)
                && end < u64::from(self.limits.segment_bytes)
                && let Some(marker) = marker
            {
                let file = Arc::new(self.files.open_segment_for_writing(number)?);
                if end < length {
                    file.set_len(end)?;
                }
                let mut index = lock(&self.index);
                index.segments.entry(number).or_default().all = end;
                index.hold(number, &file);
                lock(&self.writer).active = Some(Active { number, file, marker, length: end });
            }
        }
        Ok(())
    }

    /// Adds the records of a segment to the index. Returns the end of the last intact record.
    fn replay_segment(
        &self,
        number: u32,
        file: &File,
        marker: Marker,
        from: u64,
        writing: bool,
    ) -> io::Result<u64> {
        let mut scan = Scan::new(file, marker, from, self.limits.packed_bytes);
        while let Some(found) = scan.next()? {
            let (id, offset, length) =
                (found.id, found.offset, found.bytes.map(|bytes| bytes.len() as u32));
            let place = match length {
                Some(length) => ContentLocation { segment: number, offset: offset as u32, length },
                None => ContentLocation::REMOVED,
            };
            let before = self.find(&id)?;
            lock(&self.index).set(&id, before, place);
            let mut writer = lock(&self.writer);
            writer.unindexed += record_bytes(length.unwrap_or(0));
            if writing && self.is_due(&writer) {
                let frozen =
                    self.freeze(&mut writer, Covered { segment: number, offset: scan.valid_end() });
                drop(writer);
                self.write_frozen(&frozen)?;
            }
        }
        Ok(scan.valid_end())
    }
}

fn open_runs(files: &Files, listing: &Listing) -> io::Result<Vec<Arc<Run>>> {
    if listing.gap {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a part of the index of packed contents is missing",
        ));
    }
    listing.runs.iter().map(|span| Run::open(files.open_run(*span)?, *span).map(Arc::new)).collect()
}
