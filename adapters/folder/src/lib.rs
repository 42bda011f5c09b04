//! Access to the files in a folder, which no path can leave.
#![doc = include_str!("../README.md")]

mod copy_of;
mod dir;
mod error;
mod folder;
mod follow;
mod locked;
mod sealed;
mod selection;
mod stat;

pub use copy_of::CopyOf;
pub use dir::{Dir, Entries, Entry, is_component};
pub use error::{Error, ErrorKind};
pub use folder::Folder;
pub use follow::Visible;
pub use locked::Locked;
pub use sealed::{corrected, is_sealed, read_sealed, sealed, unsealed, write_sealed};
pub use selection::{Hiding, Selection};
pub use stat::{Kind, Stat, set_modified};
