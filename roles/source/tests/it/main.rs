//! The Source against real folders and a real store.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

mod publish;
mod scan;
mod watch;
mod world;
