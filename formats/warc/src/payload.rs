//! The bytes of a resource in a record: the body of an answer, without transfer coding.

use crate::read::{Block, Head, Read, ReadError, skip_http_head};
use crate::record::Kind;
use std::io::{self, BufRead};

/// Longest line between the chunks of a body.
const LINE_MAX: usize = 4 << 10;

/// The head of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpHead {
    /// Status of the answer, 0 if unreadable.
    pub status: u16,
    /// Head as stored, with the empty line at its end.
    pub bytes: Vec<u8>,
}

impl HttpHead {
    fn parse(bytes: Vec<u8>) -> Self {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let is_http = words.next().is_some_and(|word| word.starts_with(b"HTTP/"));
        let status = words.next().filter(|_| is_http).and_then(|word| str::from_utf8(word).ok());
        let status = status.and_then(|word| word.trim().parse().ok()).unwrap_or_default();
        Self { status, bytes }
    }

    /// The value of a field, with a space for each line break in it [rfc9112 §5.2]. Bytes that are not
    /// UTF-8 are replaced.
    pub fn field(&self, name: &str) -> Option<String> {
        let mut lines =
            self.bytes.split(|byte| *byte == b'\n').skip(1).map(String::from_utf8_lossy);
        let first = lines.by_ref().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            let is_wanted = !is_folded(&line) && known.trim().eq_ignore_ascii_case(name);
            is_wanted.then(|| value.trim().to_owned())
        })?;
        let folded = lines.take_while(|line| is_folded(line));
        let value = folded.fold(first, |mut value, line| {
            value.push(' ');
            value.push_str(line.trim());
            value
        });
        Some(value.trim().to_owned())
    }

    fn is_chunked(&self) -> bool {
        self.field("Transfer-Encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().ends_with("chunked"))
    }
}

/// Whether a line continues the field of the line before it.
fn is_folded(line: &str) -> bool {
    line.starts_with([' ', '\t']) && !line.trim().is_empty()
}

/// The bytes of a resource out of a record, to be read to their end.
pub struct Payload<R: BufRead> {
    /// The named fields of the record's head.
    pub head: Head,
    /// The head of the answer, if the record is one.
    pub http: Option<HttpHead>,
    body: Body<R>,
}

enum Body<R: BufRead> {
    Plain(Block<R>),
    Chunked(Chunked<Block<R>>),
    /// The block of an answer whose head is not terminated by an empty line.
    Headless(Block<R>),
}

impl<R: BufRead> Read<R> {
    /// The bytes of the resource: the block itself, or the body of the answer in the block. Chunks
    /// are joined, unless the writer joined the chunks and did not remove the field. The block of a
    /// revisit does not contain the resource's bytes and may be empty (ISO 28500, section 6.7.2).
    ///
    /// # Examples
    /// ```
    /// use abreast_warc::read_record;
    /// use std::io::Read as _;
    ///
    /// let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nAtlas\r\n0\r\n\r\n";
    /// let record = format!(
    ///     "WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http\r\n\
    ///      Content-Length: {}\r\n\r\n{answer}\r\n\r\n",
    ///     answer.len(),
    /// );
    /// let mut payload = read_record(record.as_bytes())?.expect("one record").payload()?;
    /// assert_eq!(payload.http.as_ref().map(|http| http.status), Some(200));
    /// let mut text = String::new();
    /// payload.read_to_string(&mut text)?;
    /// assert_eq!(text, "Atlas");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The record is torn within the head of the answer.
    pub fn payload(self) -> Result<Payload<R>, ReadError> {
        let Self { head, mut block } = self;
        let is_answer = head.kind() == Some(Kind::Response)
            && head.field("Content-Type").is_none_or(|it| it.starts_with("application/http"));
        let http = match is_answer.then(|| skip_http_head(&mut block)).transpose() {
            Ok(http) => http.map(HttpHead::parse),
            Err(ReadError::Syntax(_)) => {
                return Ok(Payload { head, http: None, body: Body::Headless(block) });
            }
            Err(error) => return Err(error),
        };
        let body = if http.as_ref().is_some_and(HttpHead::is_chunked) {
            Body::Chunked(Chunked::new(block))
        } else {
            Body::Plain(block)
        };
        Ok(Payload { head, http, body })
    }
}

impl<R: BufRead> Payload<R> {
    /// Whether the bytes are joined chunks, and therefore differ from the block.
    pub const fn is_chunked(&self) -> bool {
        matches!(self.body, Body::Chunked(_))
    }

    /// Whether reading failed at the head or the chunks of the answer, and not at the record.
    pub const fn is_broken(&self) -> bool {
        matches!(
            &self.body,
            Body::Headless(_) | Body::Chunked(Chunked { state: State::Broken, .. })
        )
    }

    /// The unread rest of the block, for callers that skip or count its bytes.
    pub fn into_block(self) -> Block<R> {
        match self.body {
            Body::Plain(block) | Body::Headless(block) => block,
            Body::Chunked(chunks) => chunks.input,
        }
    }
}

impl<R: BufRead> io::Read for Payload<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.body {
            Body::Plain(block) => block.read(buffer),
            Body::Chunked(chunks) => chunks.read(buffer),
            Body::Headless(_) => {
                let what = "the head of an answer has no end";
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }
}

/// Where reading of chunks is.
enum State {
    Begin,
    /// So many bytes of a chunk are left.
    Chunk(u64),
    /// The bytes read in the search for a first chunk, without success.
    None(Vec<u8>, usize),
    Broken,
    End,
}

/// Puts chunks together (RFC 9112, section 7.1).
struct Chunked<I> {
    input: I,
    state: State,
}

impl<I: io::Read> Chunked<I> {
    const fn new(input: I) -> Self {
        Self { input, state: State::Begin }
    }

    /// A line with its end, or what there is up to the end of the input.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while line.len() < LINE_MAX && !line.ends_with(b"\n") && self.read_some(&mut byte)? > 0 {
            line.push(byte[0]);
        }
        Ok(line)
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn broken(&mut self) -> io::Error {
        self.state = State::Broken;
        io::Error::new(io::ErrorKind::InvalidData, "the chunks of an answer are broken")
    }

    /// The trailers after the last chunk, and nothing behind them.
    fn end(&mut self) -> io::Result<()> {
        loop {
            let line = self.line()?;
            if line.trim_ascii().is_empty() {
                let is_end = self.read_some(&mut [0])? == 0;
                return if is_end { Ok(()) } else { Err(self.broken()) };
            }
            if !line.ends_with(b"\n") {
                return Err(self.broken());
            }
        }
    }
}

/// The length in the line before a chunk.
fn chunk_length(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\n")?;
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

impl<I: io::Read> io::Read for Chunked<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &mut self.state {
                State::Begin => {
                    let line = self.line()?;
                    self.state = match chunk_length(&line) {
                        Some(length) => State::Chunk(length),
                        None => State::None(line, 0),
                    };
                    if matches!(self.state, State::Chunk(0)) {
                        self.end()?;
                        self.state = State::End;
                    }
                }
                State::Chunk(0) => {
                    if !self.line()?.trim_ascii().is_empty() {
                        return Err(self.broken());
                    }
                    let line = self.line()?;
                    let length = chunk_length(&line).ok_or_else(|| self.broken())?;
                    self.state = State::Chunk(length);
                    if length == 0 {
                        self.end()?;
                        self.state = State::End;
                    }
                }
                State::Chunk(left) => {
                    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                    let left = *left;
                    let count = self.read_some(&mut buffer[..most])?;
                    if count == 0 {
                        return Err(self.broken());
                    }
                    self.state = State::Chunk(left - count as u64);
                    return Ok(count);
                }
                State::None(line, at) if *at < line.len() => {
                    let count = (line.len() - *at).min(buffer.len());
                    buffer[..count].copy_from_slice(&line[*at..*at + count]);
                    *at += count;
                    return Ok(count);
                }
                State::Broken => return Err(self.broken()),
                // The end of the record is checked there.
                State::None(..) | State::End => return self.input.read(buffer),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn joined(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        Chunked::new(bytes).read_to_end(&mut out).ok().map(|_| out)
    }

    #[test]
    fn chunks_are_put_together() {
        for (chunks, whole) in [
            ("5\r\nhello\r\n0\r\n\r\n", "hello"),
            ("2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\n\r\n", "hello"),
            ("0\r\n\r\n", ""),
            // The writer put them together and left the field.
            ("hello", "hello"),
            ("hello\nworld\n", "hello\nworld\n"),
            ("", ""),
        ] {
            assert_eq!(joined(chunks.as_bytes()), Some(whole.as_bytes().to_vec()), "{chunks}");
        }
        for broken in [
            "5\r\nhel",
            "5\r\nhello",
            "5\r\nhello\r\n0\r\n\r\nmore",
            "5\r\nhello!\r\n0\r\n\r\n",
            "5\r\nhello\r\nx\r\n",
        ] {
            assert_eq!(joined(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn heads_of_answers_have_a_status_and_fields() {
        let head = HttpHead::parse(b"HTTP/1.1 404 Not Found\r\nA: b\r\na: c\r\n\r\n".to_vec());
        let field = |name| head.field(name);
        assert_eq!((head.status, field("a").as_deref(), field("x")), (404, Some("b"), None));
        assert_eq!(HttpHead::parse(b"nothing\r\n\r\n".to_vec()).status, 0);
        let folded = b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\tchunked\r\nA: \xe9,\r\n b: c\r\n  d\r\n\r\n";
        let head = HttpHead::parse(folded.to_vec());
        assert_eq!(head.field("a").as_deref(), Some("\u{fffd}, b: c d"));
        assert!(head.is_chunked() && head.field("b").is_none());
    }
}
