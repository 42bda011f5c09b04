//! ResourceSync 1.1: the only place of this crate that knows its documents.
//!
//! What version 0.1 shares is in the folder `sitemap`.
//!
//! | file | what it reads |
//! |---|---|
//! | `reader.rs` | all of it, in the order of a run |
//! | `keys.rs` | under which keys the state keeps what was found |
//! | `discover.rs`, `links.rs`, `sets.rs` | the way from an address to the documents of one set |
//! | `document.rs` | one document, part by part; what its entries show together |
//! | `listed.rs` | an entry as a listed resource |
//! | `resource_list.rs` | Resource Lists, Sitemaps and their indexes |
//! | `change_list.rs` | Change Lists, their indexes and archives |
//! | `spans.rs` | what lies between the spans of Change Lists and of packages |
//! | `dump.rs`, `manifest.rs` | dumps, and the manifests in their packages |
//! | `dump_walk.rs` | dumps in place of lists, where a Source has dumps only |
//! | `subscriber.rs` | topics and notifications, for subscribers that keep no copy |
//! | `notification.rs`, `pushed.rs`, `topic.rs` | notifications, as pushed documents, and where they come from |

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

/// ResourceSync, and Sitemaps: whatever no other protocol recognises, since a page, a site or a
/// header may lead to a Source [rs-core §6.3].
pub(crate) const PROTOCOL: Protocol = Protocol {
    name: "ResourceSync",
    recognises: |_| true,
    has_mark: |head| head.is_sitemap(),
    reader: || Box::<reader::ResourceSync>::default(),
    at_site: Some(super::at_site::reader_at_site),
};
