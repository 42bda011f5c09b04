//! SDShare 1.0, and servers of the draft of 2010: the only place of this crate that knows its feeds.
//!
//! | file | what it reads |
//! |---|---|
//! | `reader.rs` | all of it, in the order of a run |
//! | `feed.rs` | one feed, entry by entry, within limits |
//! | `find.rs` | the way from an address to the feeds of one collection |
//! | `fragments.rs` | the fragments feed: what changed |
//! | `snapshots.rs` | the newest snapshot, and the descriptions in it |

mod feed;
mod find;
mod fragments;
mod reader;
mod snapshots;

use crate::read::protocol::{AnswerHead, Protocol};

/// SDShare.
pub(crate) const PROTOCOL: Protocol = Protocol {
    name: "SDShare",
    recognises,
    has_mark: |head| abreast_sdshare::has_mark(head.bytes),
    reader: || Box::<reader::SdShare>::default(),
    at_site: None,
};

/// An Atom feed; one of another namespace is refused by its reader, which names that.
fn recognises(head: &AnswerHead<'_>) -> bool {
    head.root_element() == Some("feed")
}
