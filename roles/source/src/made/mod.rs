//! Files that are made of what is published, beside the documents: dumps, snapshots, archives.
//!
//! A projection says what is in them, where they are, when one is due and how many are kept. The rest is the same for
//! all of them, and is here:
//!
//! | file | subject |
//! |---|---|
//! | `attempts.rs` | when one is made: the interval, and the pause after a failure |
//! | `worker.rs` | the thread that makes what is due |
//! | `file.rs` | writing, as long as the store keeps its space |
//! | `making.rs` | several files that are published in one step, or removed |
//! | `sweep.rs` | removing what a crash left, and what is replaced |

mod attempts;
mod file;
mod making;
#[cfg(test)]
pub(crate) mod steps;
mod sweep;
mod worker;

pub(crate) use attempts::{Attempts, Failure, Nature};
pub(crate) use file::MadeFile;
pub(crate) use making::{MAKING, Making, sync_folder};
pub(crate) use sweep::{discard, remove, sweep};
pub(crate) use worker::Signal;
pub use worker::Worker;
