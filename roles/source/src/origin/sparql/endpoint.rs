//! Client for a SPARQL endpoint [sparql-protocol].

use crate::origin::at_most::AtMost;
use crate::origin::rdf::RdfError;
use abreast_net::{Client, Post, Request, Response, Shared};
use abreast_rdf::Syntax;
use abreast_webtypes::visible;
use bytes::Bytes;
use serde::Deserialize;
use std::fs::File;
use std::io::{Seek as _, Write as _};

/// Most bytes in a response with solutions.
const ANSWER_BYTES: u64 = 64 << 20;
/// Most solutions in a response; a page has 10,000 by default.
const MAX_SOLUTIONS: usize = 100_000;
/// Most bytes of an error message that are read, and most characters that are displayed.
const MESSAGE_BYTES: u64 = 4 << 10;
const MESSAGE_CHARS: usize = 300;

const STATEMENTS: &str = "application/n-triples, text/turtle;q=0.8, application/n-quads;q=0.7, application/rdf+xml;q=0.5";
const SOLUTIONS: &str = "application/sparql-results+json";

/// Client for the queries of a set.
pub(super) struct Endpoint {
    client: Client,
    url: String,
}

/// Reason why a response cannot be used.
#[derive(Debug)]
pub(super) enum Failure {
    /// The response is longer than the limit.
    TooLong,
    Other(RdfError),
}

impl From<RdfError> for Failure {
    fn from(error: RdfError) -> Self {
        Self::Other(error)
    }
}

/// A solution with the variables of all queries.
#[derive(Deserialize)]
pub(super) struct Solution {
    pub(super) entity: Option<Term>,
    pub(super) latest: Option<Term>,
    n: Option<Term>,
}

#[derive(Deserialize)]
pub(super) struct Term {
    pub(super) value: String,
}

/// Response with solutions, in JSON [SPARQL 1.1 Query Results JSON Format].
#[derive(Deserialize)]
struct Answer {
    results: Results,
}

#[derive(Deserialize)]
struct Results {
    bindings: AtMost<Solution, MAX_SOLUTIONS>,
}

impl Endpoint {
    pub(super) fn new(url: &str, net: &abreast_net::Options) -> Self {
        Self { client: Client::new(Shared::new(net.clone())), url: url.to_owned() }
    }

    pub(super) fn failed(&self, message: impl std::fmt::Display) -> RdfError {
        RdfError::Endpoint(format!("{}: {message}", self.url))
    }

    pub(super) async fn select(&self, query: String) -> Result<Vec<Solution>, RdfError> {
        let result = self
            .post(query, SOLUTIONS, async |mut response| {
                let mut answer = Vec::new();
                response.read_to(&mut answer, ANSWER_BYTES).await?;
                Ok(answer)
            })
            .await;
        let answer = result.map_err(|failure| match failure {
            Failure::TooLong => {
                self.failed(format!("an answer has more than {ANSWER_BYTES} bytes"))
            }
            Failure::Other(error) => error,
        })?;
        let answer: Answer = serde_json::from_slice(&answer).map_err(|error| {
            self.failed(format!(
                "the answer is no result of a query: {error}\n  help: check the address for queries"
            ))
        })?;
        let AtMost { items, more } = answer.results.bindings;
        if more > 0 {
            return Err(self.failed(format!("an answer has more than {MAX_SOLUTIONS} solutions")));
        }
        Ok(items)
    }

    /// Runs a query that counts, and returns the value of `?n`.
    pub(super) async fn count(&self, query: String) -> Result<u64, RdfError> {
        let solutions = self.select(query).await?;
        let number = solutions.first().and_then(|solution| solution.n.as_ref()?.value.parse().ok());
        number.ok_or_else(|| self.failed("the answer to a count is no number"))
    }

    /// Writes the statements that a query constructs to a file, and returns their syntax.
    pub(super) async fn construct(
        &self,
        query: String,
        file: &mut File,
        limit: u64,
    ) -> Result<Syntax, Failure> {
        self.post(query, STATEMENTS, async |mut response| {
            // An earlier attempt may have written part of a response.
            if let Err(error) = file.rewind().and_then(|()| file.set_len(0)) {
                return Ok(Err(RdfError::Io(error)));
            }
            let kind = response.header("content-type").unwrap_or_default();
            let Some(syntax) = Syntax::of_sdshare_media_type(kind) else {
                let message =
                    format!("the answer is `{}`, which is not RDF that can be read", visible(kind));
                return Ok(Err(self.failed(message)));
            };
            response.set_limit(limit);
            while let Some(bytes) = response.chunk().await? {
                if let Err(error) = file.write_all(&bytes) {
                    return Ok(Err(RdfError::Io(error)));
                }
            }
            Ok(file.rewind().map(|()| syntax).map_err(RdfError::Io))
        })
        .await?
        .map_err(Failure::Other)
    }

    async fn post<T>(
        &self,
        query: String,
        accept: &str,
        mut take: impl AsyncFnMut(Response) -> Result<T, abreast_net::Error>,
    ) -> Result<T, Failure> {
        let body = Bytes::from(query);
        let result = abreast_net::with_retries(&self.client, &self.url, async |_| {
            let post = Post {
                body: &body,
                content_type: "application/sparql-query",
                idempotency_key: None,
            };
            let request = Request {
                post: Some(post),
                accept: Some(accept),
                accept_gzip: true,
                ..Request::new(&self.url)
            };
            let response = self.client.send(&request).await?;
            let status = response.status();
            if matches!(status.as_u16(), 400..=500) && status != 429 {
                return Ok(Err((status, message_of(response).await)));
            }
            take(response.require_success()?).await.map(Ok)
        });
        match result.await {
            Ok(Ok(taken)) => Ok(taken),
            Ok(Err((status, message))) => {
                let message = if message.is_empty() { message } else { format!(": {message}") };
                let help = match status.as_u16() {
                    401 | 403 => "\n  help: give credentials that may read",
                    404 | 405 => "\n  help: check the address for queries",
                    _ => "",
                };
                Err(self.failed(format!("the endpoint answered {status}{message}{help}")).into())
            }
            Err(error) if error.kind() == abreast_net::ErrorKind::Size => Err(Failure::TooLong),
            Err(error) => Err(RdfError::Endpoint(error.to_string()).into()),
        }
    }
}

/// Returns the start of an error response on one line, for messages.
async fn message_of(mut response: Response) -> String {
    let mut bytes = Vec::new();
    // If the connection breaks, the part that arrived is sufficient.
    let _ = response.read_to(&mut bytes, MESSAGE_BYTES).await;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&line.chars().take(MESSAGE_CHARS).collect::<String>()).to_string()
}
