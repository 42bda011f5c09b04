//! ResourceSync 0.1 (alpha draft of August 2012): the only place of this crate that knows its
//! documents.
//!
//! What version 1.1 shares is in the folder `sitemap`.
//!
//! | file | what it reads |
//! |---|---|
//! | `reader.rs` | all of it, in the order of a run |
//! | `recognise.rs` | whether a response begins as a document of this version |
//! | `document.rs` | what documents state about themselves |
//! | `entry_points.rs` | finds the documents of a set from an address |
//! | `site.rs` | links to them in pages, headers, host-meta and robots.txt |
//! | `listed.rs` | an entry as a listed resource |
//! | `sitemap.rs` | Sitemaps and their indexes |
//! | `baseline.rs` | all of them as a snapshot, and its time |
//! | `change_sets.rs` | change sets, from the current one back |
//! | `dump.rs` | dumps and their manifests |
//! | `push.rs`, `pushed.rs` | where change sets are pushed, and one as a pushed document |

mod baseline;
mod change_sets;
mod document;
mod dump;
pub(crate) mod entry_points;
mod listed;
mod newest_time;
pub(crate) mod push;
mod pushed;
pub(crate) mod reader;
pub(crate) mod recognise;
pub(crate) mod site;
mod sitemap;

use crate::read::protocol::{AnswerHead, Protocol};

/// ResourceSync 0.1: documents with elements that only this version has, and dumps.
pub(crate) const PROTOCOL: Protocol = Protocol {
    name: "ResourceSync 0.1",
    recognises: recognise::recognises,
    has_mark: |head| {
        let unpacked = recognise::unpacked(head.bytes);
        AnswerHead { bytes: &unpacked }.is_sitemap()
    },
    reader: || Box::<reader::ResourceSync01>::default(),
    at_site: None,
};
