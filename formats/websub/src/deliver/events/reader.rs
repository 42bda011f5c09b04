//! Reading an event stream as it arrives, in bounded memory.

use super::{BASE64, Event, MEDIA_TYPE};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;
use thiserror::Error;

/// Bytes of one event, all its lines together, unless the caller sets another limit: 8 MiB of text
/// or 6 MiB of others.
pub const MAX_EVENT_LENGTH: usize = 8 * 1_024 * 1_024;
/// Bytes of an `id`, a name or a media type; a stream with longer ones is refused.
const MAX_FIELD_LENGTH: usize = 4 * 1_024;

/// Why a stream is not read on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventError {
    /// An event is longer than allowed.
    #[error("an event is longer than {0} bytes")]
    TooLong(usize),
    /// An `id`, a name or a media type is longer than 4 KiB.
    #[error("a field of an event is longer than {MAX_FIELD_LENGTH} bytes")]
    Field,
    /// A field other than the data is not UTF-8.
    #[error("a field of an event is not UTF-8")]
    NotText,
    /// The data of an event named `base64` is not that.
    #[error("an event declares base64 and is not")]
    Base64,
}

/// Reads an event stream from pieces of any size.
///
/// ```
/// use abreast_websub::EventReader;
///
/// let mut reader = EventReader::new();
/// reader.feed(b"id: 7\nmedia-type: text/plain\ndata: one\ndata: t")?;
/// assert_eq!(reader.next_event(), None);
/// reader.feed(b"wo\n\n")?;
/// let event = reader.next_event().unwrap();
/// assert_eq!((event.id.as_str(), event.data.as_slice()), ("7", &b"one\ntwo"[..]));
/// # Ok::<(), abreast_websub::EventError>(())
/// ```
#[derive(Debug)]
pub struct EventReader {
    max_length: usize,
    /// The unfinished line.
    line: Vec<u8>,
    /// Whether the last byte was a carriage return: a line feed after it ends nothing.
    after_return: bool,
    /// No line was complete yet: a byte order mark may stand before the first.
    first: bool,
    /// The event so far.
    data: Vec<u8>,
    has_data: bool,
    name: String,
    media_type: String,
    /// Kept from event to event.
    id: String,
    retry: Option<Duration>,
    ready: std::collections::VecDeque<Event>,
    failed: Option<EventError>,
}

impl Default for EventReader {
    fn default() -> Self {
        Self::new()
    }
}

impl EventReader {
    /// A reader with the usual limit, [`MAX_EVENT_LENGTH`].
    pub fn new() -> Self {
        Self::with_limit(MAX_EVENT_LENGTH)
    }

    /// A reader that refuses longer events.
    pub fn with_limit(max_length: usize) -> Self {
        Self {
            max_length,
            line: Vec::new(),
            after_return: false,
            first: true,
            data: Vec::new(),
            has_data: false,
            name: String::new(),
            media_type: String::new(),
            id: String::new(),
            retry: None,
            ready: std::collections::VecDeque::new(),
            failed: None,
        }
    }

    /// Parses more bytes of the stream. Take the complete events after each call; otherwise they
    /// accumulate in memory. An incomplete event at the end of the stream is discarded.
    ///
    /// # Errors
    /// See [`EventError`]; the same again at every later call. Events that were complete before can
    /// still be taken.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), EventError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.lines(bytes);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            (self.line, self.data) = (Vec::new(), Vec::new());
        }
        result
    }

    /// The next complete event, or `None` until more bytes arrive.
    pub fn next_event(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    /// The last `id`: what to send as `Last-Event-ID` when connecting again. Empty for none.
    pub fn last_id(&self) -> &str {
        &self.id
    }

    /// How long to wait before connecting again, if the stream states it.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn lines(&mut self, mut rest: &[u8]) -> Result<(), EventError> {
        if self.after_return && !rest.is_empty() {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            self.after_return = false;
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let is_return = rest[end] == b'\r';
            if self.line.is_empty() {
                self.check_length(end)?;
                self.read_line(&rest[..end])?;
            } else {
                self.keep(&rest[..end])?;
                let line = std::mem::take(&mut self.line);
                self.read_line(&line)?;
                // The allocation is used again, unless it is large.
                if line.capacity() <= 64 * 1_024 {
                    self.line = line;
                    self.line.clear();
                }
            }
            rest = &rest[end + 1..];
            if is_return {
                self.after_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
        }
        self.keep(rest)
    }

    fn check_length(&self, more: usize) -> Result<(), EventError> {
        if self.line.len() + self.data.len() + more > self.max_length {
            return Err(EventError::TooLong(self.max_length));
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventError> {
        self.check_length(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), EventError> {
        let line = if std::mem::take(&mut self.first) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return Ok(()),
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &[][..]),
        };
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = text(value)?,
            // An id with a zero in it is ignored [html-events §9.2.6].
            b"id" if !value.contains(&0) => self.id = text(value)?,
            b"retry" => {
                let digits = std::str::from_utf8(value)
                    .ok()
                    .filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                if let Some(milliseconds) = digits.and_then(|digits| digits.parse().ok()) {
                    self.retry = Some(Duration::from_millis(milliseconds));
                }
            }
            name if name == MEDIA_TYPE.as_bytes() => self.media_type = text(value)?,
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Result<(), EventError> {
        let mut name = std::mem::take(&mut self.name);
        let media_type = std::mem::take(&mut self.media_type);
        let mut data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        if name == BASE64 {
            data = BASE64_STANDARD.decode(&data).map_err(|_| EventError::Base64)?;
            name.clear();
        }
        self.ready.push_back(Event { id: self.id.clone(), name, media_type, data });
        Ok(())
    }
}

fn text(value: &[u8]) -> Result<String, EventError> {
    if value.len() > MAX_FIELD_LENGTH {
        return Err(EventError::Field);
    }
    std::str::from_utf8(value).map(str::to_owned).map_err(|_| EventError::NotText)
}
