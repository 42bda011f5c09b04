//! Notifications as event streams, for clients without a callback [html-events §9.2.5, §9.2.6].
//!
//! A notification is one event: its `id` is the place in the topic's log, so `Last-Event-ID` is the
//! cursor. Bytes arrive unchanged. Bytes that an event cannot carry as text, since an event has one
//! kind of line end only, travel as base64 in an event of type `base64`. A field `media-type` has
//! the media type of the bytes; programs that do not know the field ignore it.

mod reader;

pub use reader::{EventError, EventReader, MAX_EVENT_LENGTH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;

/// The name of events whose data is base64.
const BASE64: &str = "base64";
/// The field with the media type of the data.
const MEDIA_TYPE: &str = "media-type";

/// One event in a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Last `id` in the stream, from this event or an earlier event, at which a client continues.
    /// Empty without an `id`.
    pub id: String,
    /// Event type; empty for a plain message.
    pub name: String,
    /// Media type of the data; empty if unknown.
    pub media_type: String,
    /// Bytes of the event, after decoding.
    pub data: Vec<u8>,
}

/// Appends an event. In `id` and `media_type` control characters are left out; empty ones are not
/// written.
///
/// # Examples
/// ```
/// use abreast_websub::write_event;
///
/// let mut stream = Vec::new();
/// write_event(&mut stream, "1042", "text/plain", b"Herbarium\nsheet 7");
/// assert_eq!(
///     stream,
///     b"id: 1042\nmedia-type: text/plain\ndata: Herbarium\ndata: sheet 7\n\n",
/// );
/// ```
pub fn write_event(out: &mut Vec<u8>, id: &str, media_type: &str, data: &[u8]) {
    write_field(out, "id", id);
    write_field(out, MEDIA_TYPE, media_type);
    // A carriage return would come back as a line feed.
    if let Some(text) = std::str::from_utf8(data).ok().filter(|text| !text.contains('\r')) {
        out.reserve(text.len() + 64);
        for line in text.split('\n') {
            out.extend_from_slice(b"data: ");
            out.extend_from_slice(line.as_bytes());
            out.push(b'\n');
        }
    } else {
        write_field(out, "event", BASE64);
        write_field(out, "data", &BASE64_STANDARD.encode(data));
    }
    out.push(b'\n');
}

/// Appends a comment: a line that clients ignore, so that both ends notice whether the connection
/// still works.
///
/// # Examples
/// ```
/// use abreast_websub::{EventReader, write_comment, write_event};
///
/// let mut stream = Vec::new();
/// write_comment(&mut stream, "no change");
/// write_event(&mut stream, "1042", "application/xml", b"<urlset/>");
/// let mut reader = EventReader::new();
/// reader.feed(&stream)?;
/// let event = reader.next_event().expect("the stream has one event");
/// assert_eq!(event.id, "1042");
/// assert!(reader.next_event().is_none());
/// # Ok::<(), abreast_websub::EventError>(())
/// ```
pub fn write_comment(out: &mut Vec<u8>, text: &str) {
    out.push(b':');
    out.extend(text.bytes().filter(|byte| !byte.is_ascii_control()));
    out.push(b'\n');
}

/// Appends the time that a client waits before it connects again, in milliseconds
/// [html-events §9.2.6].
///
/// # Examples
/// ```
/// use abreast_websub::write_retry;
/// use std::time::Duration;
///
/// let mut stream = Vec::new();
/// write_retry(&mut stream, Duration::from_secs(5));
/// assert_eq!(stream, b"retry: 5000\n");
/// ```
pub fn write_retry(out: &mut Vec<u8>, delay: Duration) {
    out.extend_from_slice(format!("retry: {}\n", delay.as_millis()).as_bytes());
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &str) {
    if !value.is_empty() {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend(value.bytes().filter(|byte| !byte.is_ascii_control()));
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
