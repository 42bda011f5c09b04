//! Requests to the hub and its responses, independent of an HTTP server.

use crate::message::client::Client;
use bytes::Bytes;

/// A POST at the hub's URL.
#[derive(Clone, Debug)]
pub struct HubRequest {
    /// The `Content-Type` header; empty if it is missing.
    pub content_type: String,
    /// The values of all `Link` headers.
    pub links: Vec<String>,
    /// The body. Reading may stop after [`crate::HubOptions::max_body`] bytes.
    pub body: Bytes,
    /// The client, with its permission to publish.
    pub client: Client,
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAnswer {
    /// HTTP status of the response.
    pub status: u16,
    /// Headers except `Content-Type`, which is `text/plain; charset=utf-8`.
    pub headers: Vec<(&'static str, String)>,
    /// Text for the user of the client.
    pub body: String,
}

impl HubAnswer {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Response for a request that may succeed later.
    pub(crate) fn later(status: u16, seconds: u64, body: impl Into<String>) -> Self {
        Self::new(status, body).with("Retry-After", seconds.to_string())
    }
}
