//! Webhooks: requests with changes in JSON, signed with keys from the configuration.
//!
//! A request has the changes of one notification, or of several that waited together. Which ones
//! follows from the time of the first attempt, which is stored, so that a repeated request has the
//! same changes and the same identifier.

use super::Engine;
use super::lanes::ExchangeEnd;
use super::outcome::Outcome;
use super::payloads::{WebhookBatch, WebhookLookup};
use super::run::{ANSWER_BYTES, AttemptResult, Job};
use abreast_core::{ErrorKind, LogError, Offset, Position, TopicId};
use abreast_net::{BodyWanted, HeaderMap, HeaderName, HeaderValue, Message, Recipient};
use abreast_store::hub::TargetId;
use abreast_websub::{WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP, WebhookKey};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads the keys of a webhook, at least one. May read a file or run a command.
pub type ReadKeys = Arc<dyn Fn() -> Result<Vec<WebhookKey>, String> + Send + Sync>;

/// The keys of each webhook, by the URL of its topic and its address.
pub type Webhooks = HashMap<(String, String), ReadKeys>;

/// Help for keys that cannot be read.
const KEYS_HELP: &str = "check `set.webhook.secret_file` or `secret_command`";
/// Help for an address that is not public.
const PRIVATE_HELP: &str =
    "set `private_callbacks = true` in [hub] to allow private addresses, also to subscribers";

/// Keys are not stored: the configuration has them at each start.
#[derive(Default)]
pub(crate) struct WebhookState {
    keys: Mutex<HashMap<(String, String), WebhookKeys>>,
    /// For partly delivered requests: the offset, and the position of the last delivered change.
    partly: Mutex<HashMap<TargetId, (Offset, Position)>>,
}

struct WebhookKeys {
    read: ReadKeys,
    /// The keys, once they were read.
    known: Option<Vec<WebhookKey>>,
}

/// Why there are no keys.
enum NoKeys {
    /// The webhook is not configured, or not yet.
    Unknown,
    Unreadable(String),
}

impl WebhookState {
    /// Replaces all webhooks. Their keys are read again.
    pub(crate) fn replace(&self, webhooks: Webhooks) {
        let keys = webhooks.into_iter().map(|(webhook, read)| {
            let keys = WebhookKeys { read, known: None };
            (webhook, keys)
        });
        *lock(&self.keys) = keys.collect();
    }

    /// Removes what is known of the deliveries to a target.
    pub(crate) fn forget(&self, target: TargetId) {
        lock(&self.partly).remove(&target);
    }

    /// The keys of a webhook. Blocks if they are not known yet.
    fn keys(&self, webhook: &(String, String)) -> Result<Vec<WebhookKey>, NoKeys> {
        let read = match lock(&self.keys).get(webhook) {
            None => return Err(NoKeys::Unknown),
            Some(WebhookKeys { known: Some(known), .. }) => return Ok(known.clone()),
            Some(WebhookKeys { read, .. }) => Arc::clone(read),
        };
        let keys = read().map_err(NoKeys::Unreadable)?;
        // Not if the webhooks were replaced meanwhile.
        if let Some(of_webhook) = lock(&self.keys).get_mut(webhook)
            && Arc::ptr_eq(&of_webhook.read, &read)
        {
            of_webhook.known = Some(keys.clone());
        }
        Ok(keys)
    }

    /// The position of the last delivered change of the request that begins at `offset`.
    fn done(&self, target: TargetId, offset: Offset) -> Option<Position> {
        lock(&self.partly).get(&target).filter(|(of, _)| *of == offset).map(|(_, done)| *done)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request that is ready to be sent.
struct WebhookRequest {
    headers: HeaderMap,
    body: bytes::Bytes,
    /// Position of the last change in the body.
    last: Position,
}

/// Why no request can be made.
enum Unmade {
    /// The keys cannot be read: as if the receiver did not accept the request.
    Keys(String),
    Ours(LogError),
}

impl Engine {
    /// An attempt to send changes to a webhook, in several requests if they are too large for one. A
    /// gap needs no report: the body has the position after which its changes begin.
    pub(super) async fn attempt_webhook(&self, job: &Job, recipient: &Recipient) -> AttemptResult {
        // A later attempt has the changes of the first.
        let until = job.first_failed.unwrap_or(job.time);
        let batch = match self.cache.webhook_batch(job.topic, job.offset, until).await {
            Ok(WebhookLookup::Ready(batch)) => batch,
            Ok(WebhookLookup::Trimmed(next)) => return AttemptResult::Trimmed(next),
            Err(error) => return AttemptResult::Ours(error),
        };
        let WebhookBatch { end, after, last } = batch;
        let mut done = self.webhooks.done(job.target, job.offset).unwrap_or(after);
        let outcome = loop {
            let request = match self.webhook_request(job, done, last).await {
                Ok(request) => request,
                Err(Unmade::Ours(error)) => return AttemptResult::Ours(error),
                Err(Unmade::Keys(error)) => {
                    let error = format!("the secret of the webhook cannot be read: {error}");
                    let outcome = Outcome::failed(None, error, ExchangeEnd::Answered);
                    break outcome.with_help(KEYS_HELP);
                }
            };
            let message = Message { headers: request.headers, common: None, body: request.body };
            let want = BodyWanted::Nothing(ANSWER_BYTES);
            let sent = self.sender.post(recipient, message, want).await;
            let is_private =
                sent.as_ref().is_err_and(|error| error.kind() == abreast_net::ErrorKind::Private);
            let outcome = Outcome::of(sent, self.options.retries.retry_after);
            let Outcome::Taken(_) = outcome else {
                break if is_private { outcome.with_help(PRIVATE_HELP) } else { outcome };
            };
            done = request.last;
            if done >= last {
                self.webhooks.forget(job.target);
                break outcome;
            }
            lock(&self.webhooks.partly).insert(job.target, (job.offset, done));
        };
        match self.tried(job, outcome).await {
            AttemptResult::Tried { outcome, give_up, .. } => {
                AttemptResult::Tried { outcome, last: end, give_up }
            }
            other => other,
        }
    }

    /// Makes the request for the changes after `done`, up to `last` or to the limit of one request.
    async fn webhook_request(
        &self,
        job: &Job,
        done: Position,
        last: Position,
    ) -> Result<WebhookRequest, Unmade> {
        let address = job.hub.clone().unwrap_or_default();
        let webhook = (job.topic_url.to_string(), address);
        let (webhooks, cache) = (Arc::clone(&self.webhooks), Arc::clone(&self.cache));
        let (topic, now) = (job.topic, self.now());
        let make = move || {
            let keys = webhooks.keys(&webhook).map_err(|missing| match missing {
                NoKeys::Unreadable(error) => Unmade::Keys(error),
                NoKeys::Unknown => {
                    let message = "the webhook is not configured, or the Source is starting";
                    Unmade::Ours(LogError::new(ErrorKind::Io, message))
                }
            })?;
            let (body, end) = cache.webhook_body(&webhook.0, done, last).map_err(Unmade::Ours)?;
            let headers = headers(&keys, topic, (done, end), now, &body);
            Ok(WebhookRequest { headers, body, last: end })
        };
        let stopped = |_| Unmade::Ours(LogError::new(ErrorKind::Io, "the hub stops"));
        tokio::task::spawn_blocking(make).await.map_err(stopped)?
    }
}

/// The headers of a request. The identifier depends on the changes alone.
fn headers(
    keys: &[WebhookKey],
    topic: TopicId,
    (after, last): (Position, Position),
    now: Timestamp,
    body: &[u8],
) -> HeaderMap {
    let id = format!("msg_{}_{}_{}", topic.0, after.0, last.0);
    let seconds = now.as_micros().div_euclid(1_000_000);
    let signatures: Vec<_> = keys.iter().map(|key| key.sign(&id, seconds, body)).collect();
    let mut headers = HeaderMap::with_capacity(4);
    for (name, value) in [
        ("content-type", "application/json"),
        (WEBHOOK_ID, &id),
        (WEBHOOK_TIMESTAMP, &seconds.to_string()),
        (WEBHOOK_SIGNATURE, &signatures.join(" ")),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}
