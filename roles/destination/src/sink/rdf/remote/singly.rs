//! Requests for single entities: the Graph Store Protocol, which replaces a graph by one request,
//! and SDShare Push, which replaces an entity in the same way.

use super::endpoint::{is_refusal, message_of};
use super::service::{Remote, Service};
use crate::report::sinks::Graph;
use crate::sink::rdf::remote::refusal::Refusal;
use abreast_net::{Client, Method, Post, Request, StatusCode};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Maximum length of the response to a GET, in bytes.
const ANSWER_BYTES: u64 = 64 << 20;
const N_TRIPLES: &str = "application/n-triples";
/// Everything but the unreserved characters [rfc3986 §2.3].
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A service that receives one entity at a time.
pub(super) struct Singly {
    client: Client,
    service: Service,
    url: String,
    /// The graph of all entities; `None` for one graph for each entity.
    graph: Option<String>,
}

impl Singly {
    pub(super) fn new(client: Client, remote: &Remote) -> Self {
        let graph = match &remote.graph {
            Graph::Named(iri) => Some(iri.clone()),
            Graph::Default | Graph::OfResource => None,
        };
        Self { client, service: remote.service, url: remote.url.clone(), graph }
    }

    fn url_of(&self, entity: &str) -> String {
        let entity = utf8_percent_encode(entity, ENCODED);
        let begin = if self.url.contains('?') { '&' } else { '?' };
        match (self.service, &self.graph) {
            (Service::Receiver, Some(graph)) => {
                let graph = utf8_percent_encode(graph, ENCODED);
                format!("{}{begin}resource={entity}&graph={graph}", self.url)
            }
            (Service::Receiver, None) => format!("{}{begin}resource={entity}", self.url),
            _ => format!("{}{begin}graph={entity}", self.url),
        }
    }

    /// Replaces the stored statements of an entity; removes all statements if `lines` is empty.
    pub(super) async fn replace(&self, entity: &str, lines: &[u8]) -> Result<(), Refusal> {
        let (url, body) = (self.url_of(entity), Bytes::copy_from_slice(lines));
        let method = match self.service {
            Service::Receiver => &Method::POST,
            _ if lines.is_empty() => &Method::DELETE,
            _ => &Method::PUT,
        };
        let result = abreast_net::with_retries(&self.client, &url, async |_| {
            let post = Post { body: &body, content_type: N_TRIPLES, idempotency_key: None };
            let (post, method) = (Some(post), Some(method));
            let request = Request { post, method, ..Request::new(&url) };
            let response = self.client.send(&request).await?;
            let status = response.status();
            // Nothing was there.
            if lines.is_empty() && matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
                return Ok(Ok(()));
            }
            if is_refusal(status) {
                return Ok(Err((status, message_of(response).await)));
            }
            // Each request can be repeated, since it contains all statements of the entity.
            response.require_success().map_err(|error| match status {
                _ if status.is_server_error() => error.passing(),
                _ => error,
            })?;
            Ok(Ok(()))
        });
        match result.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err((status, message))) => Err(self.service.refusal(&self.url, status, &message)),
            // The error may concern only this entity.
            Err(error) if error.status() == Some(500) => Err(Refusal::Request(error.to_string())),
            Err(error) => Err(self.service.failed(&error)),
        }
    }

    /// The statements of a graph, in N-Triples.
    pub(super) async fn get(&self, entity: &str) -> Result<Vec<u8>, Refusal> {
        let url = self.url_of(entity);
        let result = abreast_net::with_retries(&self.client, &url, async |_| {
            let request = Request { accept: Some(N_TRIPLES), ..Request::new(&url) };
            let response = self.client.send(&request).await?;
            let status = response.status();
            let mut answer = Vec::new();
            if matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) {
                return Ok(Ok(answer));
            }
            if is_refusal(status) {
                return Ok(Err((status, message_of(response).await)));
            }
            response.require_success()?.read_to(&mut answer, ANSWER_BYTES).await?;
            Ok(Ok(answer))
        });
        match result.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err((status, message))) => Err(self.service.refusal(&self.url, status, &message)),
            Err(error) => Err(self.service.failed(&error)),
        }
    }
}
