//! Access to the files in a folder, which no path can leave.
#![doc = include_str!("../README.md")]

mod entry;
mod published;
mod record;

pub use entry::dir::{Dir, Entries, Entry, is_component};
pub use entry::error::{Error, ErrorKind};
pub use entry::locked::Locked;
pub use entry::stat::{Kind, Stat, set_modified};
pub use published::folder::Folder;
pub use published::follow::Visible;
pub use published::selection::{Hiding, Selection};
pub use record::copy_of::CopyOf;
pub use record::last_backup::LastBackup;
pub use record::owner::{other_owner, own_as_folder};
pub use record::sealed::{corrected, is_sealed, read_sealed, sealed, unsealed, write_sealed};
