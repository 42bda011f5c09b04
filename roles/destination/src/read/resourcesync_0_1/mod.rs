//! ResourceSync 0.1 (alpha draft of August 2012). Only this folder of the crate depends on its
//! documents.
//!
//! The folder `sitemap` contains the parts that are common with version 1.1.
//!
//! | file | subject |
//! |---|---|
//! | `reader.rs` | the reader, in the order of a run |
//! | `recognise.rs` | whether a response starts like a document of this version |
//! | `document.rs` | the metadata of documents |
//! | `entry_points.rs` | finds the documents of a set from an address |
//! | `site.rs` | links to them in pages, headers, host-meta and robots.txt |
//! | `listed.rs` | an entry as a listed resource |
//! | `sitemap.rs` | Sitemaps and their indexes |
//! | `baseline.rs` | the Sitemaps as a snapshot, and its time |
//! | `change_sets.rs` | change sets, from the current one back |
//! | `dump.rs` | dumps and their manifests |
//! | `push.rs`, `pushed.rs` | addresses for pushed change sets, and a pushed change set as a
//! document |

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
