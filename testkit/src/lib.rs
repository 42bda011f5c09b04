//! What tests share; a dev-dependency only.
#![doc = include_str!("../README.md")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;
mod disk;
pub mod providers;
mod run;
mod servers;

pub use abreast_core::testing::Random;
pub use bytes::{digest, documents, warc, zip};
pub use disk::{bits, folder, power};
pub use run::environment::{kills, minutes, number, provided, seed, seeds, skipped};
pub use run::process::{Running, run};
pub use run::wait::{PATIENCE, eventually, eventually_ok, eventually_some};
#[cfg(feature = "sparql")]
pub use servers::endpoint;
pub use servers::{http, network, pages, postgres, relay, s3, tls, xmpp};
