//! What tests share; a dev-dependency only.
#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod bits;
pub mod digest;
pub mod documents;
#[cfg(feature = "sparql")]
pub mod endpoint;
mod environment;
pub mod folder;
pub mod http;
pub mod pages;
pub mod power;
mod process;
pub mod providers;
pub mod tls;
mod wait;
pub mod warc;
pub mod xmpp;
pub mod zip;

pub use abreast_core::testing::Random;
pub use environment::{kills, number, provided, seed, seeds, skipped};
pub use process::{Running, run};
pub use wait::{PATIENCE, eventually, eventually_ok, eventually_some};
