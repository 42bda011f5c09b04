#![doc = include_str!("../README.md")]

mod answer;
mod deliver;
mod hub;
mod message;
mod nodes;
mod tasks;

pub use answer::submissions::{SubmissionKind, keep_submissions};
pub use deliver::failing::FailingHub;
pub use deliver::options::{
    HubOptions, LaneOptions, Redirect, Retries, Sending, VerificationOptions,
};
pub use deliver::payloads::{Gap, NoPayloads, Payloads};
pub use deliver::webhooks::{ReadKeys, Webhooks};
pub use hub::Hub;
pub use message::client::{Client, Publisher};
pub use message::error::HubError;
pub use message::metrics::HubMetrics;
pub use message::request::{HubAnswer, HubRequest};
pub use tasks::events::{Events, HubEvent};
