//! ResourceSync 1.1: the only place of this crate that knows its documents.
//!
//! | file | what it reads |
//! |---|---|
//! | `discover.rs`, `links.rs`, `sets.rs` | the way from an address to the documents of one set |
//! | `document.rs` | one document, part by part, within limits |
//! | `listed.rs` | an entry as a listed resource |
//! | `resource_list.rs` | Resource Lists, Sitemaps and their indexes |
//! | `change_list.rs` | Change Lists, their indexes and archives |
//! | `dump.rs`, `manifest.rs` | dumps, and the manifests in their packages |
//! | `notification.rs`, `topic.rs` | notifications, and where they come from |

pub(crate) mod change_list;
pub(crate) mod discover;
pub(crate) mod document;
pub(crate) mod dump;
pub(crate) mod links;
pub(crate) mod listed;
pub(crate) mod manifest;
pub(crate) mod notification;
pub(crate) mod resource_list;
pub(crate) mod sets;
pub(crate) mod topic;

pub use abreast_resourcesync::v1_1::Tolerance;
