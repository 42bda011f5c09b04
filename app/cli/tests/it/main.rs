//! The real binary on loopback: a Source, a Destination, and folders compared at the end.
#![expect(clippy::unwrap_used, reason = "tests end at the first surprise")]

mod crash;
mod interop;
mod real;
mod session;
mod world;
