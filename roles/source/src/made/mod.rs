//! Large files of projections: dumps, snapshots, archives.
//!
//! A projection sets the content, the folder, the interval and the number of stored files. This module has the common
//! parts:
//!
//! | file | subject |
//! |---|---|
//! | `attempts.rs` | interval, and pause after a failure |
//! | `worker.rs` | thread that makes due files |
//! | `file.rs` | writer that leaves free space for the store |
//! | `making.rs` | files that are published in one step, or removed |
//! | `sweep.rs` | removal of leftovers of a crash, and of replaced files |
//! | `shared/` | files that several nodes share |

mod attempts;
mod file;
mod making;
pub(crate) mod shared;
#[cfg(test)]
pub(crate) mod steps;
mod sweep;
mod worker;

pub(crate) use attempts::{Attempts, Failure};
pub(crate) use file::MadeFile;
pub(crate) use making::{Making, sync_folder};
pub(crate) use sweep::{MAKING, discard, folders, remove, sweep};
pub(crate) use worker::Signal;
pub(crate) use worker::Worker;
