//! Made files of a Source that runs on several nodes: one node makes a file, and every node serves
//! the file under the same URL.
//!
//! | file | subject |
//! |---|---|
//! | `record.rs` | the record of a group: items, their files, removed files |
//! | `group.rs` | reading the record, publishing items, local copies |
//! | `attempt.rs` | making and publishing one item |
//! | `cache.rs` | limit of local copies, and one fetch of a file at a time |
//! | `place.rs` | the store and the settings |
//! | `files.rs` | the thread that follows the records of other nodes |
//! | `stopped.rs` | removal and renaming of all groups of a set while no node runs |
//!
//! A maker writes files in a local folder, stores the files, and then adds an item to the record of
//! the group by a conditional write. Other nodes read the record at an interval. The making of two
//! nodes at the same time ends with one item, because the later write fails.

mod attempt;
mod cache;
mod error;
mod files;
mod group;
mod place;
mod record;
mod stopped;

pub(crate) use attempt::{Attempt, Finished};
pub(crate) use cache::Held;
pub(crate) use error::SharedError;
pub(crate) use files::{NOW, SharedGroup, WHEN_OLD};
pub use files::{SharedFiles, SharedSet};
pub use place::SharedOptions;
pub(crate) use record::{Item, SharedFile};
pub use stopped::{remove_made_files, rename_made_files};
