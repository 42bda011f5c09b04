//! The hub against subscribers, topics and other hubs on the loopback interface.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod bed;
mod callbacks;
mod delivery;
mod fairness;
mod lost_nodes;
mod node_bed;
#[cfg(feature = "xmpp")]
mod node_failures;
#[cfg(feature = "xmpp")]
mod nodes;
mod publishing;
mod restart;
mod retries;
mod scenarios;
mod server;
mod several_nodes;
mod shared;
mod submissions;
mod subscriptions;
mod verification;
mod webhooks;
