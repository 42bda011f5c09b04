//! The Source against real folders and a real store.

mod publish;
mod scan;
mod watch;
mod world;
