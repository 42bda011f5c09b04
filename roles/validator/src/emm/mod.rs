//! Change feeds in Activity Streams: the walk from an Entry Point over its pages [emm-1.0 §3]
//! [emm-0.1 §3] [iiif-discovery §3].
//!
//! | file | subject |
//! |---|---|
//! | `document.rs` | a single document: its kind, its profile and its facts |
//! | `context.rs` | `@context`, and the terms defined there |
//! | `streams.rs` | the rules of Activity Streams for any object |
//! | `collection.rs` | Entry Points and Change Sets |
//! | `activity.rs` | activities |
//! | `members.rs` | members of collections and activities that only IIIF defines |
//! | `patch.rs` | Entity Patches |
//! | `history.rs` | the order of activities and patches across pages |
//! | `pages.rs` | all pages of an Entry Point |
//! | `delivery.rs` | requests for documents, and their delivery |
//! | `sample.rs` | a sample of the link targets of activities |

mod activity;
mod change_feed;
mod collection;
mod context;
mod delivery;
mod doc;
mod document;
mod history;
mod item;
mod judge;
mod members;
mod newest;
mod object;
mod pages;
mod patch;
mod sample;
mod streams;

use crate::emm::change_feed::ChangeFeed;
use crate::emm::doc::Doc;
use crate::fetch::Failure;
use crate::report::Findings;
use crate::walk::feeds::{Fault, Feeds};
use crate::walk::node::{FoundBy, Record};
use crate::walk::protocol::{Begin, Pending, Protocol};
use history::History;

/// Change feeds in Activity Streams during one run.
pub(crate) struct Emm;

impl Protocol for Emm {
    fn is_document(&self, begin: &[u8]) -> bool {
        document::is_document(begin)
    }

    /// Documents are parsed as a whole, not in pieces.
    fn check(&self, bytes: &[u8], _piece: usize, mut found: Findings) -> Findings {
        if let Some(doc) = document::read(bytes, "file:///", None, None, &mut found) {
            for (rule, message) in alone(&doc) {
                found.add(rule, (0, 0), || message);
            }
        }
        found
    }

    fn has_mark(&self, begin: &[u8]) -> bool {
        abreast_emm::has_mark(begin)
    }

    fn recognise(&self, begin: &Begin<'_>) -> Option<Box<dyn Record>> {
        let is_text = || !begin.bytes.trim_ascii_start().starts_with(b"<");
        let is_ours = begin.found_by == FoundBy::Start
            && !begin.is_links
            && (self.is_document(begin.bytes) || begin.is_json && is_text());
        is_ours.then(|| Box::<ChangeFeed>::default() as Box<dyn Record>)
    }

    fn read<'f>(&self, feeds: &'f mut Feeds<'_>, start: usize) -> Pending<'f, Result<(), Failure>> {
        Box::pin(feeds.changes(start))
    }
}

/// Faults in the order of a page that is checked without its feed.
fn alone(doc: &Doc) -> Vec<Fault> {
    History::new(0, false).page("", doc)
}
