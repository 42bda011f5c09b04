//! Change feeds in Activity Streams: the walk from an Entry Point over its pages [emm-1.0 §3]
//! [emm-0.1 §3] [iiif-discovery §3].
//!
//! | file | subject |
//! |---|---|
//! | `document.rs` | one document: its kind, its profile, what it states |
//! | `context.rs` | `@context`, and what terms it defines |
//! | `streams.rs` | the rules of Activity Streams for any object |
//! | `collection.rs` | Entry Points and Change Sets |
//! | `activity.rs` | activities |
//! | `members.rs` | members of collections and activities that only IIIF defines |
//! | `patch.rs` | Entity Patches |
//! | `history.rs` | the order of activities, and what precedes what |
//! | `pages.rs` | all pages of an Entry Point |
//! | `delivery.rs` | how documents are fetched and delivered |
//! | `sample.rs` | a sample of what activities link to |

mod activity;
pub(crate) mod change_feed;
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
mod patch_facts;
mod sample;
mod streams;

use crate::emm::doc::Doc;
use crate::report::finding::Findings;
use crate::walk::feeds::Fault;
pub(crate) use document::is_document;
use document::read;
use history::History;

/// Findings of one document by itself.
pub(crate) fn check_document(bytes: &[u8], mut found: Findings) -> Findings {
    if let Some(doc) = read(bytes, "file:///", None, None, &mut found) {
        for (rule, message) in alone(&doc) {
            found.add(rule, (0, 0), || message);
        }
    }
    found
}

/// The faults in the order of a page by itself.
fn alone(doc: &Doc) -> Vec<Fault> {
    History::new(0, false).page("", doc)
}
