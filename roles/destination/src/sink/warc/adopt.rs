//! Reconstruction of a lost database from the archive: its records are read and verified, so that
//! archived resources are not fetched again.

use crate::request::verify::Hasher;
use crate::sink::warc::spelling::spelled;
use abreast_store::mirror::{Location, Mirror, Packed, Row, Segment};
use abreast_warc::{Capture, CountingReader, Head, Kind, ReadError, read_record, skip_http_head};
use abreast_webtypes::{Algorithm, Digests, W3cDatetime};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Bytes read at a time.
const BLOCK_BYTES: usize = 256 << 10;
/// Index lines handed on together.
const LINES_BYTES: usize = 1 << 20;

/// Reads the segments that copies wrote into this folder; returns the number of resources. Other
/// files are not changed.
pub(super) fn adopt(
    archive: &Path,
    mirror: &Mirror,
    lines: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(archive)? {
        let name = entry?.file_name();
        if let Some(name) =
            name.to_str().filter(|name| name.starts_with("abreast-") && name.ends_with(".warc.gz"))
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    for (at, name) in names.iter().enumerate() {
        let mut reading = Reading {
            mirror,
            segment: at as i64 + 1,
            name,
            lines: Vec::new(),
            block: vec![0; BLOCK_BYTES],
        };
        let length = reading.file(&archive.join(name), lines)?;
        lines(&reading.lines)?;
        let segment = Segment { number: reading.segment, name: name.clone(), length };
        mirror.put_segment(&segment).map_err(io::Error::other)?;
    }
    mirror.count_rows().map_err(io::Error::other)
}

struct Reading<'a> {
    mirror: &'a Mirror,
    segment: i64,
    name: &'a str,
    lines: Vec<u8>,
    block: Vec<u8>,
}

/// The contents of a complete record.
struct Found {
    head: Head,
    /// Head of the response, if the record contains one.
    http: Vec<u8>,
    digests: Digests,
    length: u64,
    /// The first bytes of the block.
    begin: Vec<u8>,
}

impl Reading<'_> {
    /// Reads a segment; returns the length of its intact part, in bytes.
    fn file(
        &mut self,
        path: &Path,
        lines: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut input =
            CountingReader::new(BufReader::with_capacity(BLOCK_BYTES, File::open(path)?));
        loop {
            let begin = input.taken;
            match self.record(&mut input) {
                Ok(Some(found)) => {
                    let at = Location {
                        segment: self.segment,
                        offset: begin,
                        length: input.taken - begin,
                    };
                    self.take(&found, at).map_err(io::Error::other)?;
                }
                Err(ReadError::Io(error)) => return Err(error),
                // The end of the file, or an incomplete record. Later bytes cannot be read, and
                // were never recorded.
                Ok(None) | Err(_) => return Ok(begin),
            }
            if self.lines.len() >= LINES_BYTES {
                lines(&self.lines)?;
                self.lines.clear();
            }
        }
    }

    fn record<R: io::BufRead>(&mut self, input: &mut R) -> Result<Option<Found>, ReadError> {
        let Some(mut read) = read_record(input)? else { return Ok(None) };
        let of_http = matches!(read.head.kind(), Some(Kind::Response | Kind::Revisit));
        let http = if of_http { skip_http_head(&mut read.block)? } else { Vec::new() };
        // The usual digests of lists; which one this list has is not known yet.
        let mut wanted = Digests::default();
        wanted.set(Algorithm::Md5, &[0; 16]);
        wanted.set(Algorithm::Sha256, &[0; 32]);
        let mut hasher = Hasher::for_listed(&wanted);
        let (mut length, mut begin) = (0, Vec::new());
        loop {
            let count = read.block.read(&mut self.block)?;
            if count == 0 {
                break;
            }
            hasher.update(&self.block[..count]);
            if length == 0 {
                begin.extend_from_slice(&self.block[..count.min(64)]);
            }
            length += count as u64;
        }
        Ok(Some(Found { head: read.head, http, digests: hasher.finish(), length, begin }))
    }

    fn take(&mut self, found: &Found, at: Location) -> Result<(), abreast_core::LogError> {
        let head = &found.head;
        let (Some(uri), Some(kind)) = (head.target(), head.kind()) else { return Ok(()) };
        let date =
            head.field("WARC-Date").and_then(|date| W3cDatetime::parse(date.as_bytes()).ok());
        let payload = head.field("WARC-Payload-Digest").unwrap_or("-");
        let (mut packed, mut row) = (Packed { record: at, original: None }, None);
        match kind {
            Kind::Metadata if found.begin.starts_with(b"change: deleted") => {
                self.mirror.delete_row(uri)?;
                return self.mirror.delete_packed(uri);
            }
            Kind::Response | Kind::Resource => row = Some((found.length, found.digests.to_bytes())),
            Kind::Revisit => {
                // The bytes are known if the referenced record is the newest one of its resource,
                // and contains the bytes.
                let original = head.field("WARC-Refers-To-Target-URI").unwrap_or_default();
                if let Some(known) = self.mirror.row(original)?
                    && let Some(place) = self.mirror.packed(original)?
                    && is_spelled(&known.digests, payload)
                {
                    packed.original = Some(place.bytes_at());
                    row = Some((known.length, known.digests));
                }
            }
            _ => return Ok(()),
        }
        if let Some((length, digests)) = row {
            let row = Row { uri: uri.to_owned(), length, digests, ..Row::default() };
            self.mirror.put_row(&row)?;
            self.mirror.put_packed(uri, &packed)?;
        } else {
            self.mirror.delete_row(uri)?;
            self.mirror.delete_packed(uri)?;
        }
        let media_type = match kind {
            Kind::Resource => head.field("Content-Type").map(str::to_owned),
            _ => header(&found.http, "content-type"),
        };
        let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
        let capture = Capture {
            uri,
            date: date.map_or(abreast_webtypes::Timestamp::MIN, |date| date.instant),
            mime: if kind == Kind::Revisit {
                "warc/revisit"
            } else {
                media_type.split(';').next().unwrap_or_default().trim()
            },
            status: (kind == Kind::Response).then_some(200),
            digest: payload,
            length: at.length,
            offset: at.offset,
            filename: self.name,
        };
        capture.write_line(&mut self.lines);
        Ok(())
    }
}

/// Whether this is one of the digests, in the spelling of archives.
fn is_spelled(digests: &[u8], payload: &str) -> bool {
    let mut all = Digests::default();
    all.set_from_bytes(digests);
    Algorithm::ALL.into_iter().any(|algorithm| {
        let mut one = Digests::default();
        if let Some(bytes) = all.bytes_of(algorithm) {
            one.set(algorithm, bytes);
        }
        spelled(&one).as_deref() == Some(payload)
    })
}

fn header(head: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    text.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    })
}
