//! Answers in JSON, and waiting for the log and for blocking work.

use super::problem::{Problem, ProblemKind};
use crate::message::body::ResponseBody;
use crate::message::respond::Answer;
use abreast_core::{AppendDone, Appended, LogError};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use tokio::sync::oneshot;

/// An answer in JSON.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Answer {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    let mut answer = typed("application/json", text);
    *answer.status_mut() = status;
    answer
}

pub(super) fn typed(content_type: &'static str, body: impl Into<bytes::Bytes>) -> Answer {
    let mut answer = Response::new(ResponseBody::from(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// The response to a recorded change.
#[derive(Serialize)]
pub(super) struct RecordedAnswer {
    /// Head of the log after the change.
    pub(super) head: u64,
    /// Number of recorded changes.
    pub(super) recorded: u64,
    /// Changes without effect: the resource was as requested already, or the idempotency key was
    /// used before.
    pub(super) unchanged: u64,
}

impl From<Appended> for RecordedAnswer {
    fn from(appended: Appended) -> Self {
        Self { head: appended.head.0, recorded: appended.recorded, unchanged: appended.unchanged }
    }
}

/// Receives the result from the log.
pub(super) type Receiver = oneshot::Receiver<Result<Appended, LogError>>;

/// A channel for one result: the callback for the log, and the receiver.
pub(super) fn waiting() -> (AppendDone, Receiver) {
    let (sender, receiver) = oneshot::channel();
    let done: AppendDone = Box::new(move |result| {
        let _ = sender.send(result);
    });
    (done, receiver)
}

/// Waits until the log has recorded the changes, without a time limit: before that, the result is
/// unknown.
pub(super) async fn durable(receiver: Receiver) -> Result<Appended, Problem> {
    match receiver.await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Problem::new(
            ProblemKind::Store,
            "the store ended before it answered; read the log to see what it has",
        )),
    }
}

/// Runs blocking work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(Problem::new(
            ProblemKind::Store,
            "an internal error; the server's log has the reason",
        )),
    }
}
