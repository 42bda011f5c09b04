//! Requests to a hub, their answers, and the limits of both.

pub(crate) mod body_bytes;
pub(crate) mod client;
pub(crate) mod error;
pub(crate) mod metrics;
pub(crate) mod outage;
pub(crate) mod rates;
pub(crate) mod request;
pub(crate) mod text;
pub(crate) mod topic_host;
