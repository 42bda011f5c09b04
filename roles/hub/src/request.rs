//! Requests to the hub and its answers, independent of an HTTP server.

use crate::client::Client;
use bytes::Bytes;

/// A POST at the hub's URL.
#[derive(Clone, Debug)]
pub struct HubRequest {
    /// The `Content-Type` header; empty when there is none.
    pub content_type: String,
    /// The values of all `Link` headers.
    pub links: Vec<String>,
    /// The body. Reading stops a little beyond [`crate::HubOptions::max_body`].
    pub body: Bytes,
    /// The client.
    pub client: Client,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAnswer {
    /// Its status.
    pub status: u16,
    /// Its headers, `Content-Type` not among them: the body is `text/plain; charset=utf-8`.
    pub headers: Vec<(&'static str, String)>,
    /// Text for people.
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

    /// Too much at the moment.
    pub(crate) fn later(status: u16, seconds: u64, body: impl Into<String>) -> Self {
        Self::new(status, body).with("Retry-After", seconds.to_string())
    }
}
