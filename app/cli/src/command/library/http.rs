//! Requests to one server, such as to its HTTP API, with the access and limits of `abreast explore`.

use super::{CANCELLED, Failure, parsed, usage};
use crate::command::args::Command;
use abreast_net::{Authorization, Client, Error, Method, Post, Request, Response, Retries, Shared};
use bytes::Bytes;
use std::ffi::OsString;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Interval of the checks whether a request was cancelled.
const TICK: Duration = Duration::from_millis(50);

/// Requests to servers; connections are used again.
pub struct Http {
    runtime: Runtime,
    client: Client,
    authorization: Option<Authorization>,
}

/// A request to a server, and the limits of its response.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// `GET`, `PUT`, `POST` or `DELETE`.
    pub method: Method,
    /// Absolute URL, with the query of the request.
    pub url: String,
    /// Body and its media type.
    pub body: Option<(Vec<u8>, String)>,
    /// The idempotency key of a POST, which may then be repeated.
    pub idempotency_key: Option<String>,
    /// Most bytes of the response.
    pub most: u64,
    /// Connect to public addresses only: for addresses that a document of a remote party contains.
    pub public_only: bool,
}

/// A response. Error statuses are responses too.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status code of the response, such as 404.
    pub status: u16,
    /// Media type, as sent; empty if missing.
    pub media_type: String,
    /// Bytes of the body, without a content coding.
    pub body: Vec<u8>,
}

impl Http {
    /// Prepares requests. The words are the arguments of `abreast explore`: options, and the address of the server, to
    /// which credentials belong. `token` is a bearer token.
    ///
    /// # Errors
    /// The options are wrong, or the token has characters that no header can have.
    pub fn new(words: Vec<OsString>, token: Option<&str>) -> Result<Self, Failure> {
        let (Command::Explore(args), _) = parsed("explore", words)? else {
            return Err(anyhow::Error::from(usage("expected options of `explore`")).into());
        };
        let options = args.walk.options(vec![args.url.clone()])?;
        let authorization = token.map(Authorization::bearer).transpose().map_err(net)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            runtime: runtime.map_err(|error| Failure::from(anyhow::Error::from(error)))?,
            client: Client::new(Shared::new(options.net)),
            authorization,
        })
    }

    /// Sends a request, and repeats it after transient failures if repeating is safe.
    ///
    /// # Errors
    /// The network failed, the response is too large, or the call was cancelled.
    pub fn send(&self, call: &Call, cancel: &AtomicBool) -> Result<Reply, Failure> {
        let done = self.runtime.block_on(until_cancelled(self.attempts(call), cancel));
        match done {
            Some(done) => done.map_err(net),
            None => Err(Failure {
                exit_code: CANCELLED,
                code: "cancelled",
                message: "the request was cancelled".to_owned(),
                help: None,
            }),
        }
    }

    async fn attempts(&self, call: &Call) -> Result<Reply, Error> {
        let is_repeatable = call.method != Method::POST || call.idempotency_key.is_some();
        let mut retries = Retries::default();
        loop {
            match self.attempt(call, is_repeatable).await {
                Err(error) if is_repeatable => retries.wait_after(&self.client, error).await?,
                done => return done,
            }
        }
    }

    async fn attempt(&self, call: &Call, is_repeatable: bool) -> Result<Reply, Error> {
        let body = call.body.as_ref().map(|(bytes, _)| Bytes::copy_from_slice(bytes));
        let body = body.or_else(|| (call.method != Method::GET).then(Bytes::new));
        let content_type = call.body.as_ref().map_or("application/json", |(_, kind)| kind);
        let post = body.as_ref().map(|body| Post {
            body,
            content_type,
            idempotency_key: call.idempotency_key.as_deref(),
        });
        let request = Request {
            post,
            method: (call.method != Method::POST && post.is_some()).then_some(&call.method),
            authorization: self.authorization.as_ref(),
            public_only: call.public_only,
            ..Request::new(&call.url)
        };
        let mut response = self.client.send(&request).await?;
        if is_repeatable && matches!(response.status().as_u16(), 429 | 502 | 503 | 504) {
            response = response.require_success()?;
        }
        reply(response, call.most).await
    }
}

async fn reply(mut response: Response, most: u64) -> Result<Reply, Error> {
    let mut body = Vec::new();
    response.read_to(&mut body, most).await?;
    let media_type = response.header("content-type").unwrap_or_default().to_owned();
    Ok(Reply { status: response.status().as_u16(), media_type, body })
}

async fn until_cancelled<T>(work: impl Future<Output = T>, cancel: &AtomicBool) -> Option<T> {
    let mut work = pin!(work);
    while !cancel.load(Ordering::Relaxed) {
        if let Ok(done) = tokio::time::timeout(TICK, &mut work).await {
            return Some(done);
        }
    }
    None
}

fn net(error: Error) -> Failure {
    anyhow::Error::from(error).into()
}
