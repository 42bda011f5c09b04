//! Requests to a server: the client, its answers, and attempts after a failure.

pub(crate) mod challenge;
pub(crate) mod client;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod retry;
