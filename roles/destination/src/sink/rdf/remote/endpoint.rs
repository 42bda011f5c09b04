//! Requests to a SPARQL 1.1 endpoint [SPARQL 1.1 Protocol].

use super::service::{Remote, Service, shown};
use crate::report::error::{Error, ExitCode};
use crate::sink::rdf::remote::refusal::Refusal;
use abreast_net::{Client, Post, Request, Response, StatusCode};
use abreast_webtypes::visible;
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashSet;

/// Maximum length of a response, in bytes.
const ANSWER_BYTES: u64 = 64 << 20;
/// Maximum length of an error message that is read, in bytes.
const MESSAGE_BYTES: u64 = 4 << 10;
/// Maximum number of characters of an error message that are shown.
const MESSAGE_CHARS: usize = 300;

/// A SPARQL endpoint, with its addresses.
pub(super) struct Endpoint {
    client: Client,
    update: String,
    query: String,
}

/// The response to a query, in JSON [SPARQL 1.1 Query Results JSON Format].
#[derive(Deserialize)]
struct Answer {
    boolean: Option<bool>,
    results: Option<Results>,
}

#[derive(Deserialize)]
struct Results {
    bindings: Vec<Binding>,
}

#[derive(Deserialize)]
struct Binding {
    r: Value,
}

#[derive(Deserialize)]
struct Value {
    value: String,
}

impl Endpoint {
    pub(super) fn new(client: Client, remote: &Remote) -> Self {
        Self { client, update: remote.url.clone(), query: remote.query_url.clone() }
    }

    /// Carries an update out. If that is tried again, the first one may have been carried out
    /// although no answer came: `again` makes the text for that.
    pub(super) async fn update(
        &self,
        text: String,
        again: &dyn Fn() -> String,
    ) -> Result<(), Refusal> {
        let kind = "application/sparql-update";
        self.post(&self.update, text, Some(again), (kind, None)).await.map(drop)
    }

    pub(super) async fn ask(&self, text: String) -> Result<bool, Refusal> {
        let answer = self.select(text).await?.boolean;
        answer.ok_or_else(|| unreadable(&self.query, &"it has no boolean"))
    }

    /// The IRIs that `?r` is bound to.
    pub(super) async fn iris(&self, text: String) -> Result<HashSet<String>, Refusal> {
        let results = self.select(text).await?.results;
        let results = results.ok_or_else(|| unreadable(&self.query, &"it has no results"))?;
        Ok(results.bindings.into_iter().map(|binding| binding.r.value).collect())
    }

    async fn select(&self, text: String) -> Result<Answer, Refusal> {
        let accept = "application/sparql-results+json";
        let answer =
            self.post(&self.query, text, None, ("application/sparql-query", Some(accept))).await?;
        serde_json::from_slice(&answer).map_err(|cause| unreadable(&self.query, &cause))
    }

    /// The statements that a query constructs, in N-Triples.
    pub(super) async fn construct(&self, text: String) -> Result<Vec<u8>, Refusal> {
        let accept = "application/n-triples";
        self.post(&self.query, text, None, ("application/sparql-query", Some(accept))).await
    }

    async fn post(
        &self,
        url: &str,
        text: String,
        again: Option<&dyn Fn() -> String>,
        (content_type, accept): (&str, Option<&str>),
    ) -> Result<Vec<u8>, Refusal> {
        let mut body = Bytes::from(text);
        let result = abreast_net::with_retries(&self.client, url, async |made| {
            if made == 1
                && let Some(again) = again
            {
                body = again().into();
            }
            let post = Some(Post { body: &body, content_type, idempotency_key: None });
            let request = Request { post, accept, ..Request::new(url) };
            let response = self.client.send(&request).await?;
            let status = response.status();
            if is_refusal(status) || status == StatusCode::INTERNAL_SERVER_ERROR {
                return Ok(Err((status, message_of(response).await)));
            }
            let mut response = response.require_success()?;
            let mut answer = Vec::new();
            response.read_to(&mut answer, ANSWER_BYTES).await?;
            Ok(Ok(answer))
        });
        match result.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err((status, message))) => Err(Service::Endpoint.refusal(url, status, &message)),
            Err(error) => Err(Service::Endpoint.failed(&error)),
        }
    }
}

/// Whether a changing request was refused, also if it is repeated. Such requests do not follow
/// redirects.
pub(super) fn is_refusal(status: StatusCode) -> bool {
    status.is_redirection() || status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS
}

/// The error message of a server: the target of a redirect, or the first characters of the body, in
/// one line.
pub(super) async fn message_of(mut response: Response) -> String {
    let mut bytes = Vec::new();
    if let Some(place) = response.header("location").filter(|_| response.status().is_redirection())
    {
        bytes.extend_from_slice(place.as_bytes());
    } else {
        // If the transfer fails, the received part is sufficient.
        let _ = response.read_to(&mut bytes, MESSAGE_BYTES).await;
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&line.chars().take(MESSAGE_CHARS).collect::<String>()).to_string()
}

fn unreadable(url: &str, why: &dyn std::fmt::Display) -> Refusal {
    let message =
        format!("the endpoint {} answered what is no result of a query: {why}", shown(url));
    Refusal::Endpoint(
        Error::new("sparql.url", ExitCode::Usage, message)
            .with_help("check the address for queries (`--query-url`)"),
    )
}
