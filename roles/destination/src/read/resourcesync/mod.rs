//! ResourceSync 1.1. Only this folder of the crate depends on the documents of this version.
//!
//! The folder `sitemap` contains the parts that are common with version 0.1.
//!
//! | file | subject |
//! |---|---|
//! | `reader.rs` | the reader, in the order of a run |
//! | `keys.rs` | the keys of found documents in the database |
//! | `discover.rs`, `links.rs`, `sets.rs` | the way from an address to the documents of a set |
//! | `document.rs` | one document, part by part, and the combined evidence of its entries |
//! | `listed.rs` | an entry as a listed resource |
//! | `resource_list.rs` | Resource Lists, Sitemaps and their indexes |
//! | `change_list.rs` | Change Lists, their indexes and archives |
//! | `spans.rs` | gaps between the intervals of Change Lists and of packages |
//! | `dump.rs`, `manifest.rs` | dumps, and the manifests in their packages |
//! | `dump_walk.rs` | dumps as replacements of lists, if a Source has dumps only |
//! | `subscriber.rs` | topics and notifications, for subscribers without a copy |
//! | `notification.rs`, `pushed.rs`, `topic.rs` | notifications, as pushed documents, and their
//! topics |

pub(crate) mod change_list;
pub(crate) mod discover;
pub(crate) mod document;
pub(crate) mod dump;
mod dump_walk;
pub(crate) mod entry_points;
mod keys;
pub(crate) mod links;
pub(crate) mod listed;
pub(crate) mod manifest;
pub(crate) mod notification;
pub(crate) mod pushed;
pub(crate) mod reader;
pub(crate) mod resource_list;
pub(crate) mod sets;
mod spans;
pub(crate) mod subscriber;
pub(crate) mod topic;

use crate::read::protocol::Protocol;

/// ResourceSync and Sitemaps. This protocol is the fallback for responses that no other protocol
/// recognises, since a page, a site or a header may lead to a Source [rs-core §6.3].
pub(crate) const PROTOCOL: Protocol = Protocol {
    name: "ResourceSync",
    recognises: |_| true,
    has_mark: |head| head.is_sitemap(),
    reader: || Box::<reader::ResourceSync>::default(),
    at_site: Some(super::at_site::reader_at_site),
};
