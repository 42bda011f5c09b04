//! Reading a record, from one gzip member or as it stands; a truncated one is reported.

use crate::record::{END, Kind};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, BufReader};
use thiserror::Error;

/// Longest head of a record, and of an answer in it.
const HEAD_MAX: usize = 1 << 20;
/// Most zeros behind the last record, in bytes.
const PADDING_MAX: usize = 1 << 20;

/// Why no record could be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file ends within the record, or its checksum is wrong.
    #[error("the record is torn or damaged")]
    Torn(#[source] io::Error),
    /// The bytes are not a WARC record.
    #[error("{0}")]
    Syntax(&'static str),
    /// The file cannot be read.
    #[error("the file cannot be read")]
    Io(#[source] io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData => Self::Torn(error),
            _ => Self::Io(error),
        }
    }
}

/// The named fields of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    fields: Vec<(String, String)>,
}

impl Head {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The payload of the record; `None` for unsupported kinds.
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_name(self.field("WARC-Type")?)
    }

    /// The URI it is about.
    pub fn target(&self) -> Option<&str> {
        // Some writers put it in angle brackets, as WARC 1.0 printed it.
        self.field("WARC-Target-URI").map(|uri| uri.trim_start_matches('<').trim_end_matches('>'))
    }
}

/// A record being read: its head, and its block, which is to be read to its end.
pub struct Read<R: BufRead> {
    /// The named fields of the record.
    pub head: Head,
    /// The block, not yet read completely.
    pub block: Block<R>,
}

/// The bytes of a block. Its end is reached only if the record is whole and the checksum of its
/// member, if it is packed, is right.
pub struct Block<R: BufRead> {
    input: Input<R>,
    left: u64,
    is_ended: bool,
}

/// The bytes of a record.
enum Input<R: BufRead> {
    Packed(Box<BufReader<GzDecoder<R>>>),
    Plain(R),
}

impl<R: BufRead> io::Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Packed(input) => input.read(buffer),
            Self::Plain(input) => input.read(buffer),
        }
    }
}

impl<R: BufRead> BufRead for Input<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Packed(input) => input.fill_buf(),
            Self::Plain(input) => input.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Packed(input) => input.consume(count),
            Self::Plain(input) => input.consume(count),
        }
    }
}

impl<R: BufRead> Block<R> {
    /// Bytes of the block that were not read yet.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Reads the rest of the record, and checks the member.
    ///
    /// # Errors
    /// The record is torn.
    pub fn finish(mut self) -> Result<(), ReadError> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(())
    }

    /// Reads the bytes after the block, and the checksum of a packed record.
    fn end(&mut self) -> io::Result<()> {
        if self.is_ended {
            return Ok(());
        }
        // Behind a record that is not packed comes the next one.
        let (most, may_lack) = match self.input {
            Input::Packed(_) => (END.len() as u64 + 1, true),
            Input::Plain(_) => (END.len() as u64, false),
        };
        let mut end = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(&mut self.input, most), &mut end)?;
        if end == END || may_lack && end.is_empty() {
            self.is_ended = true;
            return Ok(());
        }
        let (kind, what) = if END.starts_with(&end) {
            (io::ErrorKind::UnexpectedEof, "the record ends early")
        } else {
            (io::ErrorKind::InvalidData, "the record is longer than its Content-Length")
        };
        Err(io::Error::new(kind, what))
    }
}

impl<R: BufRead> io::Read for Block<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.left == 0 {
            return self.end().map(|()| 0);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.input.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

/// Reads the head of the record at the input's place; `None` at the end of the input.
///
/// Given as `&mut input`, that stands at the next record once the block was read to its end, or by [`Block::finish`].
///
/// # Examples
/// ```
/// use abreast_warc::read_record;
///
/// let file = "WARC/1.1\r\nWARC-Type: metadata\r\nContent-Length: 5\r\n\r\nAtlas\r\n\r\n\
///     WARC/1.1\r\nWARC-Type: resource\r\nContent-Length: 3\r\n\r\nMap\r\n\r\n";
/// let mut input = file.as_bytes();
/// let mut kinds = Vec::new();
/// while let Some(record) = read_record(&mut input)? {
///     kinds.push(record.head.field("warc-type").map(str::to_owned));
///     record.block.finish()?;
/// }
/// assert_eq!(kinds, [Some("metadata".to_owned()), Some("resource".to_owned())]);
/// # Ok::<(), abreast_warc::ReadError>(())
/// ```
///
/// # Errors
/// The record is torn, or none.
pub fn read_record<R: BufRead>(mut input: R) -> Result<Option<Read<R>>, ReadError> {
    let mut input = match input.fill_buf().map_err(ReadError::Io)?.first() {
        None => return Ok(None),
        Some(b'W') => Input::Plain(input),
        Some(0x1f) => Input::Packed(Box::new(BufReader::new(GzDecoder::new(input)))),
        Some(_) => return Err(ReadError::Syntax("bytes that are neither a record nor gzip data")),
    };
    let mut line = Vec::new();
    let mut left = HEAD_MAX;
    read_line(&mut input, &mut line, &mut left)?;
    if !line.starts_with(b"WARC/") {
        return Err(ReadError::Syntax("expected `WARC/` at the begin of a record"));
    }
    let mut head = Head::default();
    loop {
        read_line(&mut input, &mut line, &mut left)?;
        if line.is_empty() {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if let (true, Some((_, value))) = (text.starts_with([' ', '\t']), head.fields.last_mut()) {
            // A folded line (ISO 28500, section 4).
            value.push(' ');
            value.push_str(text.trim());
            continue;
        }
        let (name, value) = text
            .split_once(':')
            .ok_or(ReadError::Syntax("a line of a record's head has no colon"))?;
        head.fields.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    for (_, value) in &mut head.fields {
        value.truncate(value.trim_end().len());
        value.drain(..value.len() - value.trim_start().len());
    }
    let length = head.field("Content-Length").and_then(|text| text.parse().ok());
    let left = length.ok_or(ReadError::Syntax("a record has no Content-Length"))?;
    Ok(Some(Read { head, block: Block { input, left, is_ended: false } }))
}

/// Passes over zeros, which some programs fill blocks with behind the last record, up to 1 MiB.
///
/// # Errors
/// There are more, another record follows them, or the input cannot be read.
pub fn skip_padding(input: &mut impl BufRead) -> Result<(), ReadError> {
    let mut skipped = 0;
    loop {
        let bytes = input.fill_buf().map_err(ReadError::Io)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let (is_end, has_more) = (bytes.is_empty(), zeros < bytes.len());
        input.consume(zeros);
        skipped += zeros;
        if skipped > PADDING_MAX {
            return Err(ReadError::Syntax("more than 1 MiB of zeros between records"));
        }
        if has_more && skipped > 0 {
            return Err(ReadError::Syntax("a record behind zeros"));
        }
        if is_end || has_more {
            return Ok(());
        }
    }
}

/// Reads a line without its end.
fn read_line(
    input: &mut impl BufRead,
    line: &mut Vec<u8>,
    left: &mut usize,
) -> Result<(), ReadError> {
    line.clear();
    io::Read::take(&mut *input, *left as u64).read_until(b'\n', line)?;
    *left -= line.len();
    if line.pop() != Some(b'\n') {
        return Err(if *left == 0 {
            ReadError::Syntax("a record's head is longer than 1 MiB")
        } else {
            ReadError::Torn(io::ErrorKind::UnexpectedEof.into())
        });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(())
}

/// Reads over the head of an HTTP answer, so that its body comes next; gives back the head.
///
/// # Errors
/// The block ends before, or the head is longer than 1 MiB.
pub fn skip_http_head<R: BufRead>(block: &mut Block<R>) -> Result<Vec<u8>, ReadError> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_MAX || io::Read::read(block, &mut byte)? == 0 {
            return Err(ReadError::Syntax("an answer's head has no end"));
        }
        head.push(byte[0]);
    }
    Ok(head)
}

/// Counts the bytes read from an input, which gives the start of each record.
///
/// # Examples
/// ```
/// use abreast_warc::{CountingReader, read_record};
///
/// let file = "WARC/1.1\r\nWARC-Type: metadata\r\nContent-Length: 5\r\n\r\nAtlas\r\n\r\n";
/// let mut input = CountingReader::new(file.as_bytes());
/// let record = read_record(&mut input)?.expect("one record");
/// record.block.finish()?;
/// assert_eq!(input.taken, file.len() as u64);
/// # Ok::<(), abreast_warc::ReadError>(())
/// ```
#[derive(Debug)]
pub struct CountingReader<R> {
    input: R,
    /// Number of bytes read so far.
    pub taken: u64,
}

impl<R> CountingReader<R> {
    /// A reader that starts at byte 0.
    pub const fn new(input: R) -> Self {
        Self { input, taken: 0 }
    }
}

impl<R: BufRead> io::Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.taken += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.taken += count as u64;
        self.input.consume(count);
    }
}
