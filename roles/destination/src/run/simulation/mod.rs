//! Simulation of readers: providers of every protocol under adversity, read without sockets.
//!
//! Each seed determines a provider with a history, and a copy that is killed and runs again at any
//! time. A model of the transfer, which has failures and kills too, carries out the plans of the
//! runs.
//!
//! | file | subject |
//! |---|---|
//! | `world.rs` | the provider of a thread, and its documents as received from a network |
//! | `copy.rs` | a copy: a run of a reader, and the model of the transfer |
//! | `keep.rs` | storing a resource in that model |
//! | `packages.rs` | resources from packages, in that model |
//! | `oracle.rs` | the life of a copy, and the resources that it may lack at the end |
//! | `found.rs` | seeds that found a fault once |
//! | `activities.rs` | EMM 0.1 and 1.0, IIIF |
//! | `lists.rs` | ResourceSync 1.1 |
//! | `dumps.rs` | ResourceSync 1.1 with dumps |
//! | `sitemaps.rs` | ResourceSync 0.1 |
//! | `atom.rs` | SDShare |
//! | `faults/` | faults as patches: `cargo xtask faults` puts them back, one at a time |
//! | `literal.rs` | the algorithms in the specifications of activities, for comparison |

mod activities;
mod atom;
mod copy;
mod dumps;
mod found;
mod keep;
mod lists;
mod literal;
mod oracle;
mod packages;
mod sitemaps;
mod world;

/// Where providers are.
const BASE: &str = "http://feeds.example";
/// Seeds of each reader.
const SEEDS: u64 = 1_000;
