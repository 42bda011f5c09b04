//! Following a topic without a callback: a reader of the log that waits at its end.

use crate::deliver::payloads::PayloadCache;
use abreast_core::hub::HubStore;
use abreast_core::{LogError, Notification, Offset, TopicId};
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// Notifications read at once.
const PAGE: usize = 16;

/// A notification as a follower of a topic reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubEvent {
    /// Offset of the notification. A gap between two offsets means that notifications were dropped.
    pub offset: Offset,
    /// Time at which the hub accepted the notification.
    pub time: Timestamp,
    /// Media type of the body.
    pub media_type: String,
    /// Bytes that subscribers receive as content.
    pub body: Bytes,
}

/// A topic's notifications from an offset on, without end. Has at most 16 in memory, or 16 MiB.
pub struct Events {
    pub(crate) store: Arc<dyn HubStore>,
    pub(crate) cache: Arc<PayloadCache>,
    pub(crate) topic: TopicId,
    pub(crate) url: Arc<str>,
    pub(crate) after: Offset,
    pub(crate) heard: watch::Receiver<u64>,
    pub(crate) page: VecDeque<Notification>,
}

impl Events {
    /// Waits for the next notification; `None` when the hub stops. The future may be dropped and
    /// the function called again.
    ///
    /// # Errors
    /// The store, or the renderer of the bytes, failed; the same notification can be requested
    /// again.
    pub async fn next(&mut self) -> Result<Option<HubEvent>, LogError> {
        loop {
            if let Some(notification) = self.page.front().cloned() {
                let (cache, url, asked) =
                    (Arc::clone(&self.cache), Arc::clone(&self.url), notification.clone());
                let Some(body) = blocking(move || cache.body(&url, &asked)).await? else {
                    return Ok(None);
                };
                self.page.pop_front();
                self.after = notification.offset;
                let Notification { offset, time, content } = notification;
                return Ok(Some(HubEvent { offset, time, media_type: content.media_type, body }));
            }
            self.heard.borrow_and_update();
            let (store, topic, after) = (Arc::clone(&self.store), self.topic, self.after);
            let Some(page) = blocking(move || store.read(topic, after, PAGE)).await? else {
                return Ok(None);
            };
            self.page = page.into();
            if self.page.is_empty() && self.heard.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// Offset of the last returned notification.
    pub fn after(&self) -> Offset {
        self.after
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events")
            .field("url", &self.url)
            .field("after", &self.after)
            .finish_non_exhaustive()
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<Option<T>, LogError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map(Some),
        Err(_) => Ok(None),
    }
}
