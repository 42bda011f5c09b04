//! Parses an HTTP/1.1 response from bytes as they arrive: its head with `httparse`, its body by the
//! length or coding in the head.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, header};
use httparse::{ParserConfig, Status};

/// The part of a response's body to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyWanted {
    /// The whole body, which may have at most this many bytes.
    Whole(usize),
    /// The content is ignored. At most this many bytes are read, so that the connection can be used
    /// again; an invalid end of the body is not an error.
    Nothing(usize),
}

/// Most header lines of a response.
const MAX_HEADERS: usize = 100;
/// Most bytes of a chunk's size line, and of all trailers.
const MAX_FRAMING: usize = 4 << 10;
/// Bytes read at once: for a head, and for a body.
const SMALL: usize = 1 << 10;
const LARGE: usize = 16 << 10;

/// The head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// Empty if they were not wanted.
    pub(super) headers: HeaderMap,
    /// Whether the server leaves the connection open.
    pub(super) keeps: bool,
    pub(super) rest: Rest,
}

/// The rest of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Bytes(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    UntilClose,
}

impl Rest {
    pub(super) const NONE: Self = Self::Bytes(0);

    /// Least number of bytes that follow.
    pub(super) const fn at_least(self) -> u64 {
        match self {
            Self::Bytes(left) | Self::Chunk(left) => left,
            _ => 0,
        }
    }
}

/// Errors in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Malformed {
    HeadTooLarge,
    Status,
    Head,
    Body,
}

/// Bytes of a response that were received and not used yet.
pub(super) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of an incomplete head that were searched for its end.
    searched: usize,
    max_head: usize,
}

impl Input {
    pub(super) fn new(max_head: usize) -> Self {
        Self { bytes: vec![0; SMALL], start: 0, end: 0, searched: 0, max_head }
    }

    /// Buffer for the next bytes; pass their number to [`Input::received`].
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end * 2 > self.bytes.len() {
                self.bytes.resize(self.bytes.len() * 2, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    pub(super) fn received(&mut self, count: usize) {
        self.end += count;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Enlarges the buffer, because many bytes may follow.
    pub(super) fn expect_much(&mut self) {
        if self.bytes.len() < LARGE {
            self.bytes.resize(LARGE, 0);
        }
    }

    /// The head of the response, as soon as it is complete; interim responses are skipped. `wanted`
    /// returns by the status whether to parse the headers.
    pub(super) fn head(
        &mut self,
        wanted: impl Fn(StatusCode) -> bool,
    ) -> Result<Option<Head>, Malformed> {
        while !self.is_empty() {
            let bytes = &self.bytes[self.start..self.end];
            // A head in pieces is parsed when its first piece and its end were received, not for
            // each piece.
            if self.searched > 0 && !has_end(&bytes[self.searched - self.searched.min(3)..]) {
                self.searched = bytes.len();
                return self.unfinished();
            }
            let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
            let mut head = httparse::Response::new(&mut []);
            let mut parser = ParserConfig::default();
            parser.allow_obsolete_multiline_headers_in_responses(true);
            let length =
                match parser.parse_response_with_uninit_headers(&mut head, bytes, &mut headers) {
                    Ok(Status::Complete(length)) => length,
                    Ok(Status::Partial) => {
                        self.searched = bytes.len();
                        return self.unfinished();
                    }
                    Err(httparse::Error::TooManyHeaders) => return Err(Malformed::HeadTooLarge),
                    Err(httparse::Error::Status) => return Err(Malformed::Status),
                    Err(_) => return Err(Malformed::Head),
                };
            if length > self.max_head {
                return Err(Malformed::HeadTooLarge);
            }
            let status = head
                .code
                .and_then(|code| StatusCode::from_u16(code).ok())
                .ok_or(Malformed::Status)?;
            let is_interim = status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS;
            let found =
                if is_interim { None } else { Some(Head::read(status, &head, wanted(status))?) };
            self.start += length;
            self.searched = 0;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn unfinished(&self) -> Result<Option<Head>, Malformed> {
        if self.end - self.start > self.max_head { Err(Malformed::HeadTooLarge) } else { Ok(None) }
    }

    /// Passes the received bytes of the body to `take`; `true` at its end.
    pub(super) fn body<E: From<Malformed>>(
        &mut self,
        rest: &mut Rest,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        loop {
            let bytes = &self.bytes[self.start..self.end];
            let (used, next) = match *rest {
                Rest::NONE => return Ok(true),
                Rest::ChunkSize => match chunk_size(bytes)? {
                    None => return Ok(false),
                    Some((used, 0)) => (used, Rest::Trailers),
                    Some((used, size)) => (used, Rest::Chunk(size)),
                },
                Rest::Trailers => match trailers(bytes)? {
                    None => return Ok(false),
                    Some(used) => (used, Rest::NONE),
                },
                Rest::ChunkEnd => match bytes {
                    [b'\r', b'\n', ..] => (2, Rest::ChunkSize),
                    [] | [b'\r'] => return Ok(false),
                    _ => return Err(Malformed::Body.into()),
                },
                Rest::Bytes(_) | Rest::Chunk(_) | Rest::UntilClose if bytes.is_empty() => {
                    return Ok(false);
                }
                Rest::UntilClose => {
                    take(bytes)?;
                    (bytes.len(), Rest::UntilClose)
                }
                Rest::Bytes(left) | Rest::Chunk(left) => {
                    let used = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    take(&bytes[..used])?;
                    let left = left - used as u64;
                    let next = match *rest {
                        Rest::Chunk(_) if left == 0 => Rest::ChunkEnd,
                        Rest::Chunk(_) => Rest::Chunk(left),
                        _ => Rest::Bytes(left),
                    };
                    (used, next)
                }
            };
            self.start += used;
            *rest = next;
        }
    }
}

impl Head {
    fn read(
        status: StatusCode,
        head: &httparse::Response<'_, '_>,
        wanted: bool,
    ) -> Result<Self, Malformed> {
        let is_first = head.version == Some(0);
        let (mut closes, mut keeps) = (false, false);
        let (mut length, mut coding) = (None, None);
        let mut headers = HeaderMap::new();
        if wanted {
            headers.reserve(head.headers.len());
        }
        for line in head.headers.iter() {
            let is = |name: &HeaderName| line.name.eq_ignore_ascii_case(name.as_str());
            if is(&header::CONTENT_LENGTH) {
                for part in line.value.split(|byte| *byte == b',') {
                    let found = digits(part.trim_ascii()).ok_or(Malformed::Head)?;
                    if length.replace(found).is_some_and(|before| before != found) {
                        return Err(Malformed::Head);
                    }
                }
            } else if is(&header::TRANSFER_ENCODING) {
                coding = line.value.split(|byte| *byte == b',').next_back();
            } else if is(&header::CONNECTION) {
                for part in line.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    closes |= part.eq_ignore_ascii_case(b"close");
                    keeps |= part.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            if wanted {
                let name =
                    HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Malformed::Head)?;
                headers.append(
                    name,
                    HeaderValue::from_bytes(&unfolded(line.value)).map_err(|_| Malformed::Head)?,
                );
            }
        }
        let rest = match (status.as_u16(), coding, length) {
            (101 | 204 | 304, _, _) => Rest::NONE,
            (_, Some(_), _) if is_first => return Err(Malformed::Head),
            (_, Some(coding), _) if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") => {
                Rest::ChunkSize
            }
            (_, Some(_), _) | (_, None, None) => Rest::UntilClose,
            (_, None, Some(length)) => Rest::Bytes(length),
        };
        let switches = status == StatusCode::SWITCHING_PROTOCOLS;
        let keeps = !closes && (keeps || !is_first) && rest != Rest::UntilClose && !switches;
        Ok(Self { status, headers, keeps, rest })
    }
}

/// A field value with spaces for the line breaks in it [rfc9112 §5.2].
fn unfolded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return Cow::Borrowed(value);
    }
    value.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}

/// Whether the bytes contain an empty line.
fn has_end(bytes: &[u8]) -> bool {
    let mut lines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    lines.any(|(at, _)| matches!(&bytes[at + 1..], [b'\n', ..] | [b'\r', b'\n', ..]))
}

fn digits(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

fn chunk_size(bytes: &[u8]) -> Result<Option<(usize, u64)>, Malformed> {
    match bytes.first() {
        None => return Ok(None),
        Some(first) if !first.is_ascii_hexdigit() => return Err(Malformed::Body),
        Some(_) => {}
    }
    match httparse::parse_chunk_size(bytes) {
        Ok(Status::Complete(found)) => Ok(Some(found)),
        Ok(Status::Partial) if bytes.len() <= MAX_FRAMING => Ok(None),
        Ok(Status::Partial) | Err(_) => Err(Malformed::Body),
    }
}

fn trailers(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let mut trailers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    match httparse::parse_headers(bytes, &mut trailers) {
        Ok(Status::Complete((used, _))) => Ok(Some(used)),
        Ok(Status::Partial) if bytes.len() <= MAX_FRAMING => Ok(None),
        Ok(Status::Partial) | Err(_) => Err(Malformed::Body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, body, whether it ended and whether its connection is kept.
    type Found = (u16, Vec<u8>, bool, bool);

    /// Parses a response that arrives in pieces of one size.
    fn read(answer: &[u8], piece: usize) -> Result<Option<Found>, Malformed> {
        let mut input = Input::new(1_000);
        let (mut head, mut body, mut ended) = (None, Vec::new(), false);
        for piece in answer.chunks(piece) {
            let mut piece = piece;
            while !piece.is_empty() {
                let room = input.room();
                let count = room.len().min(piece.len());
                room[..count].copy_from_slice(&piece[..count]);
                input.received(count);
                piece = &piece[count..];
                if head.is_none() {
                    head = input.head(|_| true)?;
                }
                if let Some(Head { rest, .. }) = &mut head {
                    ended = input.body(rest, |bytes| {
                        body.extend_from_slice(bytes);
                        Ok::<_, Malformed>(())
                    })?;
                }
            }
        }
        Ok(head.map(|head| {
            (head.status.as_u16(), body, ended, ended && head.keeps && input.is_empty())
        }))
    }

    #[test]
    fn answers_are_the_same_in_pieces_of_any_size() {
        for (answer, status, body, ended, kept) in [
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, true),
            ("HTTP/1.1 204\r\nConnection: x, Close\r\n\r\n", 204, "", true, false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true, false),
            (
                "HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: Keep-Alive\r\n\r\nok",
                200,
                "ok",
                true,
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\ncontent-length:2\r\n\r\nok",
                200,
                "ok",
                true,
                true,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore", 200, "ok", true, false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", 200, "ok", false, false),
            ("HTTP/1.1 200 OK\r\n\r\nto the end", 200, "to the end", false, false),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nx",
                200,
                "x",
                false,
                false,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n",
                200,
                "ok",
                true,
                true,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n01\r\no\r\n1 \r\nk\r\n000\r\na: b\r\n\r\n",
                200,
                "ok",
                true,
                true,
            ),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hint\r\nLink: <x>\r\n\r\nHTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
                410,
                "",
                true,
                true,
            ),
            ("HTTP/1.1 101 Other\r\nUpgrade: x\r\n\r\n", 101, "", true, false),
            ("HTTP/1.1 304 Same\r\nContent-Length: 5\r\n\r\n", 304, "", true, true),
        ] {
            for piece in [1, 2, 3, 7, 50, answer.len()] {
                let found = read(answer.as_bytes(), piece);
                assert_eq!(
                    found,
                    Ok(Some((status, body.into(), ended, kept))),
                    "{answer} by {piece}"
                );
            }
        }
    }

    #[test]
    fn malformed_answers_are_refused() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(2_000));
        let lines = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101));
        let chunks =
            |chunks: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let endless = chunks(&format!("1;{}", "x".repeat(5_000)));
        let trailers = chunks(&format!("0\r\n{}", "x".repeat(5_000)));
        for (answer, why) in [
            (long.as_str(), Malformed::HeadTooLarge),
            (&lines, Malformed::HeadTooLarge),
            ("HTTP/1.1 2x0 OK\r\n\r\n", Malformed::Status),
            ("HTTP/1.1 099 OK\r\n\r\n", Malformed::Status),
            ("SSH-2.0-OpenSSH\r\n", Malformed::Head),
            ("\u{16}\u{3}\u{1}", Malformed::Head),
            ("HTTP/2 200 OK\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Malformed::Head),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::Head),
            (&chunks("\r\n\r\n"), Malformed::Body),
            (&chunks("x\r\n"), Malformed::Body),
            (&chunks("1\r\nokay"), Malformed::Body),
            (&chunks("11111111111111111\r\n"), Malformed::Body),
            (&endless, Malformed::Body),
            (&trailers, Malformed::Body),
        ] {
            for piece in [1, 5, 30_000] {
                assert_eq!(read(answer.as_bytes(), piece), Err(why), "{answer:.60} by {piece}");
            }
        }
    }

    #[test]
    fn unfinished_answers_are_waited_for() {
        let answer =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n";
        for end in 1..answer.len() {
            let found = read(&answer.as_bytes()[..end], 4).unwrap();
            assert!(found.is_none_or(|(_, _, ended, _)| !ended), "{}", &answer[..end]);
        }
    }
}
