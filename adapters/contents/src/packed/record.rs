//! Records of a segment: how they are written, and how they are found, also behind damage.
//!
//! ```text
//! segment: "abrPACK1"  marker (8)  zeros (8)   then records
//! record:  marker (8)  address (32)  length (4)  CRC-32 of these and the marker (4)   then the bytes
//! ```
//!
//! Numbers are little-endian. The marker is drawn for each segment, so that a sender of contents
//! cannot create bytes that look like one of its records. A record with the length [`REMOVED`] does
//! not have bytes: its content was removed.

use abreast_core::ContentId;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::FileExt as _;

/// First bytes of every segment.
const MAGIC: &[u8; 8] = b"abrPACK1";
/// Bytes before the first record.
pub(crate) const SEGMENT_HEAD: u64 = 24;
/// Bytes of a record before its content.
pub(crate) const RECORD_HEAD: usize = 48;
/// Length in the record of a removal.
pub(crate) const REMOVED: u32 = u32::MAX;
/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// The marker at the start of each record in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker([u8; 8]);

impl Marker {
    /// A new marker, from random numbers of the system.
    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(0_u8).to_le_bytes())
    }

    /// The first bytes of a new segment.
    pub(crate) fn segment_head(self) -> [u8; SEGMENT_HEAD as usize] {
        let mut head = [0; SEGMENT_HEAD as usize];
        head[..8].copy_from_slice(MAGIC);
        head[8..16].copy_from_slice(&self.0);
        head
    }

    /// Reads the marker of a segment. If its header is damaged, the first record has the marker.
    pub(crate) fn of(file: &File) -> io::Result<Option<Self>> {
        let mut begin = Vec::new();
        read_up_to(file, 0, SEGMENT_HEAD as usize + RECORD_HEAD, &mut begin)?;
        let marker = |from: usize| {
            begin.get(from..from + 8).and_then(|bytes| bytes.try_into().ok()).map(Self)
        };
        if let (Some(marker), Some(head)) =
            (marker(SEGMENT_HEAD as usize), begin.get(SEGMENT_HEAD as usize..))
            && Head::read(marker, head, u32::MAX - 1).is_some()
        {
            return Ok(Some(marker));
        }
        Ok(marker(8).filter(|_| begin.starts_with(MAGIC)))
    }
}

/// The head of a record, before the content's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: ContentId,
    /// Number of bytes that follow; `None` for a removal.
    pub(crate) length: Option<u32>,
}

impl Head {
    /// Appends the encoded head to a buffer.
    pub(crate) fn write(&self, marker: Marker, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&marker.0);
        out.extend_from_slice(self.id.as_bytes());
        out.extend_from_slice(&self.length.unwrap_or(REMOVED).to_le_bytes());
        let sum = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }

    /// Parses a record of at most `longest` bytes at the start of `bytes`, in a segment with this
    /// marker.
    pub(crate) fn read(marker: Marker, bytes: &[u8], longest: u32) -> Option<Self> {
        let head = bytes.get(..RECORD_HEAD).filter(|head| head[..8] == marker.0)?;
        let number = |from: usize| {
            u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]])
        };
        if crc32fast::hash(&head[..44]) != number(44) {
            return None;
        }
        let length = Some(number(40)).filter(|length| *length != REMOVED);
        let id = ContentId::from_slice(&head[8..40])?;
        length.is_none_or(|length| length <= longest).then_some(Self { id, length })
    }

    /// Bytes of the record with its head.
    pub(crate) fn record_length(&self) -> u64 {
        RECORD_HEAD as u64 + u64::from(self.length.unwrap_or(0))
    }
}

/// A record that was found and verified.
pub(crate) struct VerifiedRecord<'s> {
    pub(crate) id: ContentId,
    /// Offset of the record in the segment.
    pub(crate) offset: u64,
    /// The verified bytes; `None` for a removal.
    pub(crate) bytes: Option<&'s [u8]>,
}

/// Reads a segment from an offset to its end, skipping damaged parts.
pub(crate) struct Scan<'f> {
    file: &'f File,
    marker: Marker,
    longest: u32,
    buffer: Vec<u8>,
    /// Offset of the buffer in the file, and the position in the buffer where the search for the
    /// next record continues.
    base: u64,
    at: usize,
    ended: bool,
    valid_end: u64,
}

impl<'f> Scan<'f> {
    pub(crate) fn new(file: &'f File, marker: Marker, from: u64, longest: u32) -> Self {
        Self {
            file,
            marker,
            longest,
            buffer: Vec::new(),
            base: from,
            at: 0,
            ended: false,
            valid_end: from,
        }
    }

    /// The end of the last valid record.
    pub(crate) fn valid_end(&self) -> u64 {
        self.valid_end
    }

    /// The next valid record.
    pub(crate) fn next(&mut self) -> io::Result<Option<VerifiedRecord<'_>>> {
        loop {
            if !self.fill(RECORD_HEAD)? {
                return Ok(None);
            }
            let Some(head) = Head::read(self.marker, &self.buffer[self.at..], self.longest) else {
                self.skip_to_marker();
                continue;
            };
            let length = head.record_length() as usize;
            if !self.fill(length)? {
                // Torn, or its end is missing: there may be other records after its first byte.
                self.at += 1;
                continue;
            }
            let (begin, end) = (self.at, self.at + length);
            self.at = end;
            if head.length.is_some()
                && *blake3::hash(&self.buffer[begin + RECORD_HEAD..end]).as_bytes() != head.id.0
            {
                continue;
            }
            self.valid_end = self.base + end as u64;
            let bytes = head.length.map(|_| &self.buffer[begin + RECORD_HEAD..end]);
            return Ok(Some(VerifiedRecord {
                id: head.id,
                offset: self.base + begin as u64,
                bytes,
            }));
        }
    }

    /// Moves to the next marker, or near the end of the buffer if a marker may start there.
    fn skip_to_marker(&mut self) {
        let rest = &self.buffer[self.at + 1..];
        let next = rest.windows(8).position(|window| window == self.marker.0);
        self.at += 1 + next.unwrap_or(rest.len().saturating_sub(7));
    }

    /// Reads until this many bytes follow; false if the file has fewer.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        while self.buffer.len() - self.at < wanted {
            if self.ended {
                return Ok(false);
            }
            self.buffer.drain(..self.at);
            self.base += self.at as u64;
            self.at = 0;
            let from = self.base + self.buffer.len() as u64;
            self.ended = !read_up_to(self.file, from, CHUNK.max(wanted), &mut self.buffer)?;
        }
        Ok(true)
    }
}

/// Appends at most `most` bytes of a file from an offset; false if the file has fewer.
fn read_up_to(file: &File, from: u64, most: usize, out: &mut Vec<u8>) -> io::Result<bool> {
    let begin = out.len();
    out.resize(begin + most, 0);
    let mut length = 0;
    while length < most {
        match file.read_at(&mut out[begin + length..], from + length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                out.truncate(begin);
                return Err(error);
            }
        }
    }
    out.truncate(begin + length);
    Ok(length == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bytes: &[u8]) -> ContentId {
        ContentId(*blake3::hash(bytes).as_bytes())
    }

    /// A segment with contents of these lengths; where each record begins, and the end.
    fn segment(marker: Marker, lengths: &[usize]) -> (Vec<u8>, Vec<usize>) {
        let mut out = marker.segment_head().to_vec();
        let mut places = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            let bytes = vec![number as u8 + 1; *length];
            places.push(out.len());
            Head { id: id(&bytes), length: Some(*length as u32) }.write(marker, &mut out);
            out.extend_from_slice(&bytes);
        }
        places.push(out.len());
        (out, places)
    }

    fn scanned(bytes: &[u8]) -> (Vec<u64>, u64) {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        let Some(marker) = Marker::of(&file).unwrap() else { return (Vec::new(), 0) };
        let mut scan = Scan::new(&file, marker, SEGMENT_HEAD, 65_536);
        let mut found = Vec::new();
        while let Some(record) = scan.next().unwrap() {
            found.push(record.offset);
        }
        (found, scan.valid_end())
    }

    #[test]
    fn every_flipped_bit_costs_at_most_its_own_record() {
        let (bytes, places) = segment(Marker([7, 1, 2, 3, 4, 5, 6, 7]), &[0, 5, 300, 1]);
        let begins: Vec<u64> = places[..4].iter().map(|place| *place as u64).collect();
        assert_eq!(scanned(&bytes), (begins.clone(), bytes.len() as u64));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let hit = (0..4).find(|one| (places[*one]..places[one + 1]).contains(&(bit / 8)));
            let expected: Vec<u64> =
                (0..4).filter(|one| Some(*one) != hit).map(|one| begins[one]).collect();
            assert_eq!(scanned(&flipped).0, expected, "bit {bit}");
        }
    }

    #[test]
    fn records_before_a_torn_end_are_found() {
        let (bytes, places) = segment(Marker([9; 8]), &[700, 65_536, 9]);
        let near = |length: &usize| {
            places.iter().any(|place| length.abs_diff(*place) < 60) || length.is_multiple_of(4_096)
        };
        for length in (SEGMENT_HEAD as usize..bytes.len()).filter(near) {
            let whole = places[1..].iter().filter(|end| **end <= length).count();
            let (found, end) = scanned(&bytes[..length]);
            assert_eq!((found.len(), end), (whole, places[whole] as u64), "{length} bytes");
        }
    }

    #[test]
    fn contents_resembling_records_are_not_records() {
        let (inner, _) = segment(Marker([3; 8]), &[10, 20]);
        let marker = Marker([4; 8]);
        let mut out = marker.segment_head().to_vec();
        Head { id: id(&inner), length: Some(inner.len() as u32) }.write(marker, &mut out);
        out.extend_from_slice(&inner);
        assert_eq!(scanned(&out).0, [SEGMENT_HEAD]);
        out[SEGMENT_HEAD as usize + 9] ^= 1;
        assert_eq!(scanned(&out).0, [0_u64; 0], "also where the record around them is damaged");
    }
}
