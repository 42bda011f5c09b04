//! Segments: the files to which records are appended, and the valid length of each file.
//!
//! Every connection with a record appends it to the open segment through a common buffer, in large
//! writes: the lock is held for a copy into memory, or for one write. Large bodies get separate
//! segments.

use crate::report::clock::now;
use crate::report::error::Error;
use crate::report::sinks::WarcOptions;
use crate::sink::segments::{BUFFER_BYTES, Current, OpenSegments, sync, unusable};
use abreast_store::mirror::{Location, Mirror, Packed, Row, Segment};
use abreast_warc::{Capture, END, Kind, Member, Packing, Record, timestamp14};
use abreast_webtypes::Timestamp;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of bodies in memory for the detection of duplicates; the oldest are removed
/// first.
const REMEMBERED_MAX: usize = 32_768;
/// Key of the prefix of this copy's segments.
const PREFIX: &str = "warc-prefix";

/// A body that is already archived.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) uri: String,
    pub(super) date: Timestamp,
    pub(super) at: Location,
    length: u64,
}

/// Metadata of a record that is appended.
#[derive(Debug)]
pub(super) struct Located<'a> {
    /// The record that contains the bytes.
    pub(super) original: Option<Location>,
    /// The row of the resource, which is written together with the place of the record.
    pub(super) row: &'a Row,
    /// Whether later records may refer to this record.
    pub(super) reusable: bool,
}

/// Records that are not in the database yet.
#[derive(Debug)]
enum Unsettled {
    At(Row, Packed),
    Gone(String),
}

#[derive(Debug, Default)]
struct Open {
    files: OpenSegments,
    unsettled: Vec<Unsettled>,
    lines: Vec<u8>,
    known: HashMap<Vec<u8>, Known>,
    known_order: VecDeque<Vec<u8>>,
}

/// Appends what `write` writes, or nothing.
fn write_through(current: &mut Current, write: Writing<'_>) -> io::Result<Location> {
    current.write_out()?;
    let offset = current.segment.length;
    let mut out =
        Counting { out: io::BufWriter::with_capacity(BUFFER_BYTES, &current.file), count: 0 };
    let written = write(&mut out).and_then(|()| out.flush());
    let Counting { out, count: length } = out;
    // After an error, the buffer must not write its remaining bytes.
    drop(out.into_parts());
    if let Err(error) = written {
        current.file.set_len(offset)?;
        return Err(error);
    }
    current.segment.length += length;
    Ok(Location { segment: current.segment.number, offset, length })
}

/// The segments of a copy, with the open one.
#[derive(Debug)]
pub(super) struct Segments {
    folder: PathBuf,
    prefix: String,
    options: WarcOptions,
    source: String,
    open: Mutex<Open>,
    ids: AtomicU64,
    keys: [std::hash::RandomState; 2],
}

impl Segments {
    pub(super) fn open(
        folder: &Path,
        mirror: &Mirror,
        options: &WarcOptions,
        source: &str,
    ) -> Result<Self, Error> {
        let prefix = if let Some(prefix) = mirror.meta(PREFIX)? {
            prefix
        } else {
            let prefix = format!("abreast-{}", timestamp14(now()));
            mirror.set_meta(PREFIX, Some(&prefix))?;
            prefix
        };
        let segments = Self {
            folder: folder.to_owned(),
            prefix,
            options: options.clone(),
            source: source.to_owned(),
            open: Mutex::default(),
            ids: AtomicU64::new(0),
            keys: Default::default(),
        };
        segments.recover(mirror)?;
        Ok(segments)
    }

    /// Removes bytes that were never recorded, and continues the newest segment if it is not full.
    fn recover(&self, mirror: &Mirror) -> Result<(), Error> {
        let known = mirror.segments()?;
        let has_room = |segment: &Segment| {
            segment.length < self.options.segment_bytes && self.number_in(&segment.name).is_some()
        };
        let files = OpenSegments::recover(&self.folder, &known, "warc.damaged", has_room)?;
        self.lock().files = files;
        // Remove segments that were created and never recorded; their prefix belongs to this copy.
        let entries =
            std::fs::read_dir(&self.folder).map_err(|cause| unusable(&self.folder, cause))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if self.number_in(name).is_some() && !known.iter().any(|segment| segment.name == name) {
                let path = self.folder.join(name);
                std::fs::remove_file(&path).map_err(|cause| unusable(&path, cause))?;
            }
        }
        Ok(())
    }

    fn number_in(&self, name: &str) -> Option<i64> {
        name.strip_prefix(&self.prefix)?.strip_prefix('-')?.strip_suffix(".warc.gz")?.parse().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no other record has: hashes of a counter under keys that the system chose at
    /// random.
    pub(super) fn next_id(&self) -> [u8; 16] {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 16];
        let (first, second) = id.split_at_mut(8);
        first.copy_from_slice(&self.keys[0].hash_one(number).to_be_bytes());
        second.copy_from_slice(&self.keys[1].hash_one(number).to_be_bytes());
        id
    }

    /// The record of a body with these digests, if it is in memory.
    pub(super) fn original(&self, digests: &[u8], length: u64) -> Option<Known> {
        self.lock().known.get(digests).filter(|known| known.length == length).cloned()
    }

    /// Appends a record. `false`: nothing was appended, as a record with the same body was appended
    /// since [`Self::original`] was called, by another connection.
    pub(super) fn append(
        &self,
        capture: &Capture<'_>,
        member: &[u8],
        located: &Located<'_>,
    ) -> io::Result<bool> {
        let (mut open, Row { digests, length, .. }) = (self.lock(), located.row);
        let is_same = |known: &Known| known.length == *length;
        if located.reusable && open.known.get(digests).is_some_and(is_same) {
            return Ok(false);
        }
        let at = self.append_bytes(&mut open, member)?;
        self.note(&mut open, capture, at, located);
        if located.reusable {
            let known =
                Known { uri: capture.uri.to_owned(), date: capture.date, at, length: *length };
            if open.known.insert(digests.clone(), known).is_none() {
                open.known_order.push_back(digests.clone());
                if open.known_order.len() > REMEMBERED_MAX
                    && let Some(oldest) = open.known_order.pop_front()
                {
                    open.known.remove(&oldest);
                }
            }
        }
        Ok(true)
    }

    /// Appends the record of a deletion.
    pub(super) fn append_deletion(&self, uri: &str, member: &[u8]) -> io::Result<()> {
        let mut open = self.lock();
        self.append_bytes(&mut open, member)?;
        open.unsettled.push(Unsettled::Gone(uri.to_owned()));
        Ok(())
    }

    /// Appends a record that `write` writes, in a separate segment if `own`.
    pub(super) fn append_large(
        &self,
        capture: &Capture<'_>,
        located: &Located<'_>,
        write: Writing<'_>,
        own: bool,
    ) -> io::Result<()> {
        if own {
            let number = {
                let mut open = self.lock();
                open.files.newest += 1;
                open.files.newest
            };
            let mut current = self.begin(number)?;
            match write_through(&mut current, write) {
                Ok(at) => {
                    let mut open = self.lock();
                    self.note(&mut open, capture, at, located);
                    open.files.full.push((current.segment, current.file));
                    // Later records of the resource are in segments with higher numbers: an archive
                    // without a database is read in this order.
                    return open.files.close();
                }
                Err(error) => {
                    let _ = std::fs::remove_file(self.folder.join(&current.segment.name));
                    return Err(error);
                }
            }
        }
        let mut open = self.lock();
        let at = write_through(self.room(&mut open)?, write)?;
        self.note(&mut open, capture, at, located);
        Ok(())
    }

    fn append_bytes(&self, open: &mut Open, member: &[u8]) -> io::Result<Location> {
        self.room(open)?.append(member)
    }

    /// The segment to append to.
    fn room<'o>(&self, open: &'o mut Open) -> io::Result<&'o mut Current> {
        open.files.room(self.options.segment_bytes, |number| self.begin(number))
    }

    /// Creates a segment, with the record that describes the segment.
    fn begin(&self, number: i64) -> io::Result<Current> {
        let name = self.name_of(number);
        let mut current = Current::begin(&self.folder, number, name.clone())?;
        let block = format!(
            "software: abreast/{}\r\nformat: WARC File Format 1.1\r\n\
             conformsTo: https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
             isPartOf: {}\r\n",
            env!("CARGO_PKG_VERSION"),
            self.source.replace(['\r', '\n'], " ")
        );
        let record = Record {
            content_type: "application/warc-fields",
            filename: Some(&name),
            ..Record::new(Kind::Warcinfo, self.next_id(), now())
        };
        let mut head = Vec::new();
        record.write_head(&mut head, block.len() as u64);
        let mut member = Member::begin(&mut current.buffer, Packing::Stored)?;
        for part in [&head, block.as_bytes(), END] {
            member.add(part)?;
        }
        member.finish()?;
        current.segment.length = current.buffer.len() as u64;
        Ok(current)
    }

    fn name_of(&self, number: i64) -> String {
        format!("{}-{number:08}.warc.gz", self.prefix)
    }

    fn note(&self, open: &mut Open, capture: &Capture<'_>, at: Location, located: &Located<'_>) {
        let Open { files, lines, unsettled, .. } = open;
        let filename = match &files.current {
            Some(current) if current.segment.number == at.segment => {
                Cow::Borrowed(current.segment.name.as_str())
            }
            _ => Cow::Owned(self.name_of(at.segment)),
        };
        Capture { length: at.length, offset: at.offset, filename: &filename, ..*capture }
            .write_line(lines);
        let packed = Packed { record: at, original: located.original };
        unsettled.push(Unsettled::At(located.row.clone(), packed));
    }

    /// Makes all appended records durable, and writes their places to the database; returns their
    /// index lines.
    pub(super) fn settle(&self, mirror: &Mirror) -> Result<Vec<u8>, Error> {
        let write = || -> io::Result<(Vec<Segment>, Vec<Unsettled>, Vec<u8>)> {
            let mut open = self.lock();
            let files = open.files.take()?;
            let (unsettled, lines) =
                (std::mem::take(&mut open.unsettled), std::mem::take(&mut open.lines));
            drop(open);
            let segments =
                if unsettled.is_empty() { Vec::new() } else { sync(&self.folder, files)? };
            Ok((segments, unsettled, lines))
        };
        let (segments, unsettled, lines) = write().map_err(super::spelling::write_error)?;
        for segment in &segments {
            mirror.put_segment(segment)?;
        }
        for change in unsettled {
            match change {
                Unsettled::At(row, packed) => {
                    mirror.put_packed(&row.uri, &packed)?;
                    mirror.put_row(&row)?;
                }
                Unsettled::Gone(uri) => mirror.delete_packed(&uri)?,
            }
        }
        Ok(lines)
    }
}

/// Writes the bytes of a record.
pub(super) type Writing<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// A writer that counts the written bytes.
struct Counting<W> {
    out: W,
    count: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_large_record_is_in_a_later_segment() {
        let place = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&place.path().join("mirror.db")).unwrap();
        let options = WarcOptions::default();
        let segments = Segments::open(place.path(), &mirror, &options, "http://h/").unwrap();
        let uri = "http://h/a";
        let (row, original) = (Row { uri: uri.to_owned(), ..Row::default() }, None);
        let located = Located { original, row: &row, reusable: false };
        let capture = Capture {
            uri,
            date: now(),
            mime: "text/plain",
            status: None,
            digest: "-",
            length: 0,
            offset: 0,
            filename: "",
        };
        let place_of = || {
            mirror.begin().unwrap();
            segments.settle(&mirror).unwrap();
            mirror.commit().unwrap();
            mirror.packed(uri).unwrap().unwrap().record.segment
        };
        segments.append(&capture, b"first", &located).unwrap();
        let first = place_of();
        let mut write = |out: &mut dyn Write| out.write_all(b"large");
        segments.append_large(&capture, &located, &mut write, true).unwrap();
        let large = place_of();
        segments.append(&capture, b"last", &located).unwrap();
        let last = place_of();
        assert!(first < large && large < last, "{first} {large} {last}");
    }
}
