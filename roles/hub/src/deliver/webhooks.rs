//! Webhooks: their keys, their progress and the headers of requests.

use abreast_core::hub::TargetId;
use abreast_core::{Offset, Position, TopicId};
use abreast_net::{HeaderMap, HeaderName, HeaderValue};
use abreast_websub::{WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP, WebhookKey};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads the keys of a webhook, at least one. May read a file or run a command.
pub type ReadKeys = Arc<dyn Fn() -> Result<Vec<WebhookKey>, String> + Send + Sync>;

/// The keys of each webhook, by the URL of its topic and its address.
pub type Webhooks = HashMap<(String, String), ReadKeys>;

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
pub(super) enum NoKeys {
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
    pub(super) fn keys(&self, webhook: &(String, String)) -> Result<Vec<WebhookKey>, NoKeys> {
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

    /// Records that a part of the request that begins at `offset` was delivered.
    pub(super) fn note(&self, target: TargetId, offset: Offset, done: Position) {
        lock(&self.partly).insert(target, (offset, done));
    }

    /// The position of the last delivered change of the request that begins at `offset`.
    pub(super) fn done(&self, target: TargetId, offset: Offset) -> Option<Position> {
        lock(&self.partly).get(&target).filter(|(of, _)| *of == offset).map(|(_, done)| *done)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The headers of a request. The identifier depends on the changes alone.
pub(super) fn headers(
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
