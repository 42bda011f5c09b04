//! Attempts to send changes to a webhook.
//!
//! A request has the changes of one notification, or of several waiting notifications. The selection
//! follows from the time of the first attempt, which is stored, so that a repeated request has the
//! same changes and the same identifier.

use super::Engine;
use super::lanes::ExchangeEnd;
use super::outcome::Outcome;
use super::payloads::{WebhookBatch, WebhookLookup};
use super::run::{AttemptResult, Job};
use super::webhooks::{NoKeys, headers};
use abreast_core::{ErrorKind, LogError, Position};
use abreast_net::{HeaderMap, Message, Recipient};
use std::sync::Arc;

/// Help for keys that cannot be read.
const KEYS_HELP: &str = "check `set.webhook.secret_file` or `secret_command`";

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
            let Some(outcome) = self.send(job, recipient, message).await else {
                return AttemptResult::Withheld;
            };
            let Outcome::Taken(_) = outcome else {
                break outcome;
            };
            done = request.last;
            if done >= last {
                self.webhooks.forget(job.target);
                break outcome;
            }
            self.webhooks.note(job.target, job.offset, done);
        };
        match self.tried(job, outcome).await {
            AttemptResult::Tried { outcome, give_up, .. } => {
                AttemptResult::Tried { outcome, last: end, give_up }
            }
            other => other,
        }
    }

    /// Makes the request for the changes after `done`, up to `last` or to the limit of a request.
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
