#![doc = include_str!("../README.md")]

mod accept;
mod admin;
mod body_bytes;
mod callback;
mod client;
mod deliver;
mod error;
mod events;
mod failing;
mod fetch;
mod hub;
mod leases;
mod metrics;
mod options;
mod rates;
mod request;
mod retention;
mod submissions;
mod subscribe;
mod text;
mod topic_host;
mod verify;

pub use crate::failing::FailingHub;
pub use client::{Client, Publisher};
pub use deliver::payloads::{Gap, NoPayloads, Payloads};
pub use error::HubError;
pub use events::{Events, HubEvent};
pub use hub::Hub;
pub use metrics::HubMetrics;
pub use options::{HubOptions, LaneOptions, Redirect, Retries, Sending, VerificationOptions};
pub use request::{HubAnswer, HubRequest};
pub use submissions::{SubmissionKind, keep_submissions};
