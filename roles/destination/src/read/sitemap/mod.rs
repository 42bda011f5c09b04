//! What reading ResourceSync 0.1 and 1.1 has in common: their documents are Sitemaps.
//!
//! The folders `resourcesync` and `resourcesync_0_1` know what the documents of one version mean.
//!
//! | file | what it does |
//! |---|---|
//! | `document.rs` | reads one document, entry by entry, within limits |
//! | `manifest.rs` | reads the manifest of a package |
//! | `walk.rs` | the only way through an index and its lists |
//! | `snapshot.rs` | hands over all lists, and whether they changed meanwhile |
//! | `unchanged.rs` | asks whether the lists are as they were read |
//! | `pushed.rs` | reads documents that were pushed |

pub(super) mod document;
pub(super) mod manifest;
pub(super) mod pushed;
pub(super) mod snapshot;
pub(super) mod unchanged;
pub(super) mod walk;
