//! Sorted files of the index: addresses of contents, with the location of each.
//!
//! ```text
//! blocks of 4,096 bytes: 93 entries, CRC-32 (4)       the last one filled with zeros
//! entry: address (32)  segment (4)  offset (4)  length (4)     length ffffffff: removed
//! foot:  "abrINDX1"  entries (8)  segment (4)  offset (8)  CRC-32 (4)
//! ```
//!
//! Segment and offset of the footer are the position up to which the segments are in the index:
//! later records are read from the segments when the folder is opened. The name of a file consists
//! of the numbers of its oldest and its newest part; a file whose parts are all in another one is
//! left over from a merge.

use crate::packed::record::REMOVED;
use abreast_core::ContentId;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"abrINDX1";
const BLOCK: usize = 4096;
const ENTRY: usize = 44;
const ENTRIES: usize = (BLOCK - 4) / ENTRY;
const FOOT: usize = 32;
/// Blocks read at a time when all are read.
const READ_BLOCKS: usize = 16;

/// The location of a content in the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentLocation {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    /// [`REMOVED`] if the content was removed.
    pub(crate) length: u32,
}

impl ContentLocation {
    /// Location of a removed content.
    pub(crate) const REMOVED: Self = Self { segment: 0, offset: 0, length: REMOVED };

    /// The location, unless the content was removed.
    pub(crate) fn kept(self) -> Option<Self> {
        (self.length != REMOVED).then_some(self)
    }
}

/// An address, and the location of its content.
pub(crate) type Entry = (ContentId, ContentLocation);

/// The position in the segments up to which records are in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Covered {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
}

/// The numbers of the oldest and the newest part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Span {
    /// The name of the run's file.
    pub(crate) fn name(self) -> String {
        format!("{:012}-{:012}.index", self.from, self.to)
    }

    /// The span of a file with this name; `None` if it is not the name of a run.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (from, to) = name.strip_suffix(".index")?.split_once('-')?;
        let span = Self { from: from.parse().ok()?, to: to.parse().ok()? };
        (span.from <= span.to && span.name() == name).then_some(span)
    }
}

/// A sorted file of the index.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) span: Span,
    pub(crate) entries: u64,
    pub(crate) covered: Covered,
    file: File,
    /// The first eight bytes of the first address in each block.
    fences: Vec<u64>,
}

/// Error for a block that differs from its checksum.
fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the index of packed contents is damaged")
}

/// Whether an error is from [`damaged`], or the file is truncated.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

impl Run {
    /// Opens a run, and reads it completely to verify it.
    pub(crate) fn open(file: File, span: Span) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let blocks =
            length.checked_sub(FOOT as u64).filter(|rest| rest.is_multiple_of(BLOCK as u64));
        let blocks = blocks.ok_or_else(damaged)? / BLOCK as u64;
        let mut foot = [0; FOOT];
        file.read_exact_at(&mut foot, length - FOOT as u64)?;
        let number = |from: usize| {
            u32::from_le_bytes([foot[from], foot[from + 1], foot[from + 2], foot[from + 3]])
        };
        let long = |from: usize| u64::from(number(from)) | u64::from(number(from + 4)) << 32;
        let entries = long(8);
        if foot[..8] != *MAGIC
            || crc32fast::hash(&foot[..28]) != number(28)
            || entries.div_ceil(ENTRIES as u64) != blocks
        {
            return Err(damaged());
        }
        let covered = Covered { segment: number(16), offset: long(20) };
        let mut run =
            Self { span, entries, covered, file, fences: Vec::with_capacity(blocks as usize) };
        let mut buffer = vec![0; READ_BLOCKS * BLOCK];
        for first in (0..blocks).step_by(READ_BLOCKS) {
            let some = &mut buffer[..(blocks - first).min(READ_BLOCKS as u64) as usize * BLOCK];
            run.file.read_exact_at(some, first * BLOCK as u64)?;
            for block in some.chunks_exact(BLOCK) {
                verify(block)?;
                run.fences.push(prefix(&block[..8]));
            }
        }
        Ok(run)
    }

    /// The location of a content, or its removal; `None` if this run does not have the address.
    pub(crate) fn find(&self, id: &ContentId) -> io::Result<Option<ContentLocation>> {
        let wanted = prefix(&id.0[..8]);
        // Start with the last block whose first address may be equal or smaller. Several are read
        // only if addresses agree in eight bytes.
        let mut block_number = self.fences.partition_point(|fence| *fence <= wanted);
        let mut block = [0; BLOCK];
        while block_number > 0 {
            block_number -= 1;
            self.read_block(block_number, &mut block)?;
            let entries = self.entries_of(block_number, &block);
            let at = entries.partition_point(|entry| entry[..32] <= id.0[..]);
            if at > 0 {
                let (found, place) = decode(&entries[at - 1]);
                return Ok((found == *id).then_some(place));
            }
            if self.fences[block_number] != wanted {
                break;
            }
        }
        Ok(None)
    }

    fn read_block(&self, number: usize, block: &mut [u8; BLOCK]) -> io::Result<()> {
        self.file.read_exact_at(block, number as u64 * BLOCK as u64)?;
        verify(block)
    }

    fn entries_of<'b>(&self, number: usize, block: &'b [u8; BLOCK]) -> &'b [[u8; ENTRY]] {
        let count = (self.entries - number as u64 * ENTRIES as u64).min(ENTRIES as u64) as usize;
        &block[..BLOCK - 4].as_chunks().0[..count]
    }

    /// Entries of the run from an address on.
    pub(crate) fn iterate(self: &Arc<Self>, from: &ContentId) -> Entries {
        let wanted = prefix(&from.0[..8]);
        let block = self.fences.partition_point(|fence| *fence < wanted).saturating_sub(1);
        let first = block as u64 * ENTRIES as u64;
        Entries {
            run: Arc::clone(self),
            next: first,
            buffer: Vec::new(),
            buffer_first: 0,
            from: *from,
        }
    }
}

fn verify(block: &[u8]) -> io::Result<()> {
    let (bytes, sum) = block.split_at(BLOCK - 4);
    if crc32fast::hash(bytes).to_le_bytes() == *sum { Ok(()) } else { Err(damaged()) }
}

fn prefix(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

fn decode(entry: &[u8; ENTRY]) -> Entry {
    let number = |from: usize| {
        u32::from_le_bytes([entry[from], entry[from + 1], entry[from + 2], entry[from + 3]])
    };
    let mut id = [0; ContentId::BYTES];
    id.copy_from_slice(&entry[..32]);
    (ContentId(id), ContentLocation { segment: number(32), offset: number(36), length: number(40) })
}

/// Entries of a run, in order.
pub(crate) struct Entries {
    run: Arc<Run>,
    next: u64,
    buffer: Vec<u8>,
    /// Index of the first entry in the buffer.
    buffer_first: u64,
    from: ContentId,
}

impl Entries {
    fn read(&mut self) -> io::Result<Option<Entry>> {
        loop {
            if self.next >= self.run.entries {
                return Ok(None);
            }
            let at = (self.next - self.buffer_first) as usize;
            let (block, place) = (at / ENTRIES, at % ENTRIES);
            if block * BLOCK >= self.buffer.len() {
                let first = self.next / ENTRIES as u64;
                let blocks =
                    (self.run.fences.len() as u64 - first).min(READ_BLOCKS as u64) as usize;
                self.buffer.resize(blocks * BLOCK, 0);
                self.run.file.read_exact_at(&mut self.buffer, first * BLOCK as u64)?;
                self.buffer.chunks_exact(BLOCK).try_for_each(verify)?;
                self.buffer_first = first * ENTRIES as u64;
                continue;
            }
            self.next += 1;
            let begin = block * BLOCK + place * ENTRY;
            let bytes: &[u8; ENTRY] =
                self.buffer[begin..begin + ENTRY].try_into().map_err(|_| damaged())?;
            let entry = decode(bytes);
            if entry.0 >= self.from {
                return Ok(Some(entry));
            }
        }
    }
}

impl Iterator for Entries {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Writes entries, which must be in order, as a run. The file is complete when this returns, but
/// not yet durable.
pub(crate) fn write(
    file: &File,
    covered: Covered,
    entries: &mut dyn Iterator<Item = io::Result<Entry>>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(READ_BLOCKS * BLOCK, file);
    let mut block = Vec::with_capacity(BLOCK);
    let mut count = 0_u64;
    for entry in entries {
        let (id, place) = entry?;
        block.extend_from_slice(id.as_bytes());
        for number in [place.segment, place.offset, place.length] {
            block.extend_from_slice(&number.to_le_bytes());
        }
        count += 1;
        if block.len() == ENTRIES * ENTRY {
            finish(&mut block, &mut out)?;
        }
    }
    if !block.is_empty() {
        finish(&mut block, &mut out)?;
    }
    let mut foot = MAGIC.to_vec();
    foot.extend_from_slice(&count.to_le_bytes());
    foot.extend_from_slice(&covered.segment.to_le_bytes());
    foot.extend_from_slice(&covered.offset.to_le_bytes());
    let sum = crc32fast::hash(&foot);
    foot.extend_from_slice(&sum.to_le_bytes());
    out.write_all(&foot)?;
    out.flush()
}

fn finish(block: &mut Vec<u8>, out: &mut BufWriter<&File>) -> io::Result<()> {
    block.resize(BLOCK - 4, 0);
    let sum = crc32fast::hash(block);
    block.extend_from_slice(&sum.to_le_bytes());
    out.write_all(block)?;
    block.clear();
    Ok(())
}

/// A part of the index, with its entries in the order of addresses.
pub(crate) type Part<'p> = Box<dyn Iterator<Item = io::Result<Entry>> + 'p>;

/// Merges parts, the newest first: the newest entry of an address replaces the others.
pub(crate) struct Merge<'p> {
    parts: Vec<(Part<'p>, Option<Head>)>,
}

/// The next entry of a part. Comparing the first bytes of its address is nearly always enough.
#[derive(Clone, Copy, Debug)]
struct Head {
    prefix: u64,
    entry: Entry,
}

impl Head {
    fn of(part: &mut Part<'_>) -> io::Result<Option<Self>> {
        let entry = part.next().transpose()?;
        Ok(entry.map(|entry| Self { prefix: prefix(&entry.0.0[..8]), entry }))
    }

    fn address(&self) -> (u64, &ContentId) {
        (self.prefix, &self.entry.0)
    }
}

impl<'p> Merge<'p> {
    pub(crate) fn new(parts: Vec<Part<'p>>) -> io::Result<Self> {
        let mut begun = Vec::with_capacity(parts.len());
        for mut part in parts {
            let first = Head::of(&mut part)?;
            begun.push((part, first));
        }
        Ok(Self { parts: begun })
    }

    fn merged(&mut self) -> io::Result<Option<Entry>> {
        let heads = self.parts.iter().filter_map(|(_, head)| head.as_ref());
        let Some(least) =
            heads.reduce(|least, head| if head.address() < least.address() { head } else { least })
        else {
            return Ok(None);
        };
        let least = *least;
        for (part, head) in &mut self.parts {
            if head.is_some_and(|head| head.address() == least.address()) {
                *head = Head::of(part)?;
            }
        }
        Ok(Some(least.entry))
    }
}

impl Iterator for Merge<'_> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merged().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { from: 1, to: 1 };

    fn id(number: u64) -> ContentId {
        ContentId(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    fn place(number: u64) -> ContentLocation {
        ContentLocation { segment: number as u32 + 1, offset: 24, length: number as u32 }
    }

    fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
        entries.sort_by_key(|entry| entry.0);
        entries
    }

    fn file_of(entries: &[Entry]) -> File {
        let file = tempfile::tempfile().unwrap();
        let covered = Covered { segment: 7, offset: 1 << 33 };
        write(&file, covered, &mut entries.iter().copied().map(Ok)).unwrap();
        file
    }

    #[test]
    fn every_entry_is_found_and_no_other() {
        for count in [0, 1, 92, 93, 94, 186, 5_000] {
            let entries = sorted((0..count).map(|number| (id(number), place(number))).collect());
            let run = Arc::new(Run::open(file_of(&entries), SPAN).unwrap());
            assert_eq!(
                (run.entries, run.covered),
                (count, Covered { segment: 7, offset: 1 << 33 })
            );
            for number in 0..count {
                assert_eq!(
                    run.find(&id(number)).unwrap(),
                    Some(place(number)),
                    "{number} of {count}"
                );
            }
            for number in count..count + 500 {
                assert_eq!(run.find(&id(number)).unwrap(), None);
            }
            for from in [ContentId([0; 32]), ContentId([0x80; 32]), id(3), ContentId([255; 32])] {
                let read: Vec<Entry> = run.iterate(&from).map(Result::unwrap).collect();
                assert_eq!(
                    read,
                    entries.iter().copied().filter(|entry| entry.0 >= from).collect::<Vec<_>>()
                );
            }
        }
    }

    #[test]
    fn addresses_with_the_same_beginning_are_distinguished() {
        let alike = |number: u16| {
            let mut id = [5; 32];
            id[30..].copy_from_slice(&number.to_be_bytes());
            ContentId(id)
        };
        let entries: Vec<Entry> =
            (0..400).map(|number| (alike(number * 2), place(u64::from(number)))).collect();
        let run = Arc::new(Run::open(file_of(&entries), SPAN).unwrap());
        for number in 0..800_u16 {
            let expected = number.is_multiple_of(2).then(|| place(u64::from(number / 2)));
            assert_eq!(run.find(&alike(number)).unwrap(), expected);
            assert_eq!(run.iterate(&alike(number)).count(), 400 - usize::from(number).div_ceil(2));
        }
    }

    #[test]
    fn every_flipped_bit_of_a_run_is_noticed() {
        let entries = sorted((0..100).map(|number| (id(number), place(number))).collect());
        let file = file_of(&entries);
        let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        for bit in 0..bytes.len() * 8 {
            let flipped = bytes[bit / 8] ^ 1 << (bit % 8);
            file.write_all_at(&[flipped], (bit / 8) as u64).unwrap();
            assert!(
                is_damage(&Run::open(file.try_clone().unwrap(), SPAN).unwrap_err()),
                "bit {bit}"
            );
            file.write_all_at(&bytes[bit / 8..=bit / 8], (bit / 8) as u64).unwrap();
        }
        for length in [0, 1, 31, 4_096, bytes.len() as u64 - 1] {
            file.set_len(length).unwrap();
            assert!(
                is_damage(&Run::open(file.try_clone().unwrap(), SPAN).unwrap_err()),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn of_equal_addresses_the_newest_counts() {
        let part = |numbers: &[(u64, u64)]| -> Part<'static> {
            let entries =
                sorted(numbers.iter().map(|(key, value)| (id(*key), place(*value))).collect());
            Box::new(entries.into_iter().map(Ok))
        };
        let merge = Merge::new(vec![
            part(&[(2, 20)]),
            part(&[]),
            part(&[(1, 10), (2, 21)]),
            part(&[(1, 11), (3, 30)]),
        ]);
        let merged: Vec<Entry> = merge.unwrap().map(Result::unwrap).collect();
        assert_eq!(
            merged,
            sorted(vec![(id(1), place(10)), (id(2), place(20)), (id(3), place(30))])
        );
    }
}
