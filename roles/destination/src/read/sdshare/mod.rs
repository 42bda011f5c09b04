//! SDShare 1.0, and servers of the draft of 2010. Only this folder of the crate depends on their
//! feeds.
//!
//! | file | subject |
//! |---|---|
//! | `reader.rs` | the reader, in the order of a run |
//! | `feed.rs` | one feed, entry by entry, within limits |
//! | `find.rs` | the way from an address to the feeds of a collection |
//! | `fragments.rs` | the fragments feed, with the changes |
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

/// Whether a response is an Atom feed. The reader refuses feeds with another namespace, with an
/// error that contains the namespace.
fn recognises(head: &AnswerHead<'_>) -> bool {
    head.root_element() == Some("feed")
}
