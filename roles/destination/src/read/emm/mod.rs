//! Change feeds in Activity Streams: Entity Metadata Management 0.1 and 1.0, IIIF Change Discovery,
//! and similar feeds of other publishers. Only this folder of the crate depends on these formats.
//!
//! | file | subject |
//! |---|---|
//! | `reader.rs` | the reader, in the order of a run |
//! | `document.rs` | one Entry Point or page, within limits |
//! | `find.rs` | the way from an address to its Entry Point |
//! | `download.rs` | the full download, from which a copy starts |
//! | `pages.rs` | the pages of a feed, from the newest change back |
//! | `ages.rs` | detection of pages with different ages |
//! | `repeat.rs` | repeated walks if pages change during a walk |
//! | `entity.rs` | an activity as a change of a resource |
//! | `wanted.rs` | the entities of a list of URIs |

mod ages;
mod document;
mod download;
mod entity;
mod find;
mod listed;
mod order;
mod pages;
mod reader;
mod repeat;
mod wanted;

use crate::read::protocol::{AnswerHead, Protocol};
use abreast_emm::{Document, ReadError};

/// Activity Streams.
pub(crate) const PROTOCOL: Protocol = Protocol {
    name: "EMM",
    recognises,
    has_mark: |head| abreast_emm::has_mark(head.bytes),
    reader: || Box::<reader::Emm>::default(),
    at_site: None,
};

/// A collection of activities, in JSON.
fn recognises(head: &AnswerHead<'_>) -> bool {
    let text = head.bytes.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    text.starts_with(b"{")
        && MARKS.iter().any(|mark| text.windows(mark.len()).any(|window| window == *mark))
}

/// The words about JSON that is not a collection of activities.
pub(crate) fn other_json(body: &[u8], url: &str) -> Option<String> {
    let read = Document::from_slice(body, url);
    read.err().filter(|error| matches!(error, ReadError::Type(_))).map(|error| error.to_string())
}

/// Texts of which at least one is near the start of each such document.
const MARKS: [&[u8]; 3] = [b"OrderedCollection", b"ns/activitystreams", b"orderedItems"];
