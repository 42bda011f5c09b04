//! The common parts of the readers of ResourceSync 0.1 and 1.1, whose documents are Sitemaps.
//!
//! The folders `resourcesync` and `resourcesync_0_1` interpret the documents of each version.
//!
//! | file | subject |
//! |---|---|
//! | `document.rs` | reads one document, entry by entry, within limits |
//! | `manifest.rs` | reads the manifest of a package |
//! | `walk.rs` | the way through an index and its lists |
//! | `snapshot.rs` | passes on all lists, and detects changes meanwhile |
//! | `unchanged.rs` | tests whether the lists have changed since they were read |
//! | `pushed.rs` | reads pushed documents |

pub(super) mod document;
pub(super) mod manifest;
pub(super) mod pushed;
pub(super) mod snapshot;
pub(super) mod unchanged;
pub(super) mod walk;
