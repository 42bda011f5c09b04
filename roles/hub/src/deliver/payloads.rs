//! Payloads of notifications: made once, shared by all deliveries, and dropped soon after.

use abreast_core::hub::HubStore;
use abreast_core::{LogError, Notification, Offset, Payload, Position, TopicId};
use abreast_net::{HeaderLines, HeaderMap, HeaderName, HeaderValue};
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

/// Most notifications cached in memory, in addition to the limit of bytes.
const MAX_READY: usize = 4_096;
/// Most changes in notifications that are published together.
const JOINED_CHANGES: u64 = 1_000;
/// Notifications that are read at a time to join them.
const JOINED_READ: usize = 100;
/// Bytes for each permit of the semaphore.
const UNIT: usize = 1_024;
/// The header with a notification's offset, by which receivers can recognise repetitions.
pub(crate) static OFFSET_HEADER: HeaderName = HeaderName::from_static("abreast-offset");

/// Renders the bytes of notifications that refer to changes.
pub trait Payloads: Send + Sync + 'static {
    /// The notification of the topic's changes at positions `after < p <= last`. If `after` equals
    /// `last`, a notification without changes, which still has a link to the lists of all changes.
    ///
    /// # Errors
    /// When they cannot be read.
    fn render(&self, topic_url: &str, after: Position, last: Position) -> Result<Bytes, LogError>;

    /// The body of a webhook, in JSON, for the topic's changes at positions `after < p <= last`, or for
    /// the first changes if all are too large. Also returns the position of the last change in the
    /// body, which is after `after`.
    ///
    /// # Errors
    /// When they cannot be read, or the topic has none.
    fn webhook(
        &self,
        topic_url: &str,
        _after: Position,
        _last: Position,
    ) -> Result<(Bytes, Position), LogError> {
        let message = format!("the topic {topic_url} has no changes for webhooks");
        Err(LogError::new(abreast_core::ErrorKind::Refused, message))
    }

    /// The notification for a subscriber that misses some notifications, because they were dropped
    /// or given up: it has a link to the lists of all changes. `None` for topics whose
    /// notifications themselves show gaps.
    ///
    /// # Errors
    /// When it cannot be made.
    fn gap(&self, _topic_url: &str) -> Result<Option<Gap>, LogError> {
        Ok(None)
    }
}

/// The notification for a subscriber that misses notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Media type of the body.
    pub media_type: String,
    /// `Link` header values in addition to hub and topic.
    pub links: String,
    /// Bytes to send as the content.
    pub body: Bytes,
}

/// For a hub without a Source: notifications are never made from changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPayloads;

impl Payloads for NoPayloads {
    fn render(
        &self,
        topic_url: &str,
        _after: Position,
        _last: Position,
    ) -> Result<Bytes, LogError> {
        let message =
            format!("the topic {topic_url} has notifications of a Source that is not served here");
        Err(LogError::new(abreast_core::ErrorKind::Refused, message))
    }
}

/// A rendered notification.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) body: Bytes,
    /// `Content-Type`, `Link` and the offset, which are the same for all subscribers.
    pub(crate) headers: HeaderLines,
    pub(crate) media_type: String,
    pub(crate) links: String,
    /// For a notification made from changes: after the first position, up to the second.
    #[cfg(feature = "xmpp")]
    pub(crate) changes: Option<(Position, Position)>,
    _room: Option<OwnedSemaphorePermit>,
}

/// The result of looking up a notification.
#[derive(Clone, Debug)]
pub(crate) enum PayloadLookup {
    Ready(Arc<Ready>),
    /// The notification was dropped; the offset of the next stored one.
    Trimmed(Offset),
}

/// The changes of a request to a webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebhookBatch {
    /// Offset of the last notification with such changes.
    pub(crate) end: Offset,
    /// The changes are after this position.
    pub(crate) after: Position,
    /// Position of the last change.
    pub(crate) last: Position,
}

/// The result of looking up the changes for a webhook.
pub(crate) enum WebhookLookup {
    Ready(WebhookBatch),
    /// The notification was dropped; the offset of the next stored one.
    Trimmed(Offset),
}

/// Cache of notifications that are being sent, or were sent recently.
pub(crate) struct PayloadCache {
    store: Arc<dyn HubStore>,
    payloads: Arc<dyn Payloads>,
    hub_url: String,
    room: Arc<Semaphore>,
    units: usize,
    /// Memory for deliveries to slow recipients, separate from the memory for others.
    slow_room: Arc<Semaphore>,
    slow_units: usize,
    kept: Mutex<CachedPayloads>,
}

#[derive(Default)]
struct CachedPayloads {
    cells: HashMap<(TopicId, Offset), Arc<OnceCell<PayloadLookup>>>,
    /// Notifications for slow recipients, while they are read.
    slow_cells: HashMap<(TopicId, Offset), Arc<OnceCell<PayloadLookup>>>,
    order: VecDeque<((TopicId, Offset), usize)>,
    bytes: usize,
}

impl PayloadCache {
    pub(crate) fn new(
        store: Arc<dyn HubStore>,
        payloads: Arc<dyn Payloads>,
        hub_url: String,
        bytes: usize,
    ) -> Self {
        let slow_units = (bytes / 4 / UNIT).clamp(1, Semaphore::MAX_PERMITS / 2);
        let units = (bytes / UNIT).saturating_sub(slow_units).clamp(1, Semaphore::MAX_PERMITS / 2);
        let [room, slow_room] = [units, slow_units].map(|units| Arc::new(Semaphore::new(units)));
        Self {
            store,
            payloads,
            hub_url,
            room,
            units,
            slow_room,
            slow_units,
            kept: Mutex::default(),
        }
    }

    /// Finds a notification in memory or in the log. Waits while too many bytes are in memory;
    /// notifications for slow recipients are counted separately.
    pub(crate) async fn find(
        self: &Arc<Self>,
        topic: TopicId,
        topic_url: &Arc<str>,
        offset: Offset,
        slow: bool,
    ) -> Result<PayloadLookup, LogError> {
        let key = (topic, offset);
        let cell = {
            let mut kept = self.lock();
            let cells = if slow { &mut kept.slow_cells } else { &mut kept.cells };
            Arc::clone(cells.entry(key).or_default())
        };
        let mut made = None;
        let found = cell
            .get_or_try_init(|| async {
                let (this, url) = (Arc::clone(self), Arc::clone(topic_url));
                let read =
                    tokio::task::spawn_blocking(move || this.read(topic, &url, offset)).await;
                let stopped = || LogError::new(abreast_core::ErrorKind::Io, "the hub stops");
                // The last notification is never dropped, so an empty log is damaged.
                let nothing = || {
                    let message = format!("nothing is in the log at {} or later", offset.0);
                    LogError::new(abreast_core::ErrorKind::Corrupt, message)
                };
                let (notification, body) = read.map_err(|_| stopped())??.ok_or_else(nothing)?;
                if notification.offset != offset {
                    return Ok(PayloadLookup::Trimmed(notification.offset));
                }
                made = Some(body.len());
                let room = self.room(body.len(), slow).await;
                Ok(PayloadLookup::Ready(Arc::new(self.ready(topic_url, &notification, body, room))))
            })
            .await
            .cloned();
        match &found {
            _ if slow => drop(self.lock().slow_cells.remove(&key)),
            Ok(PayloadLookup::Ready(_)) => {
                if let Some(bytes) = made {
                    self.keep(key, bytes);
                }
            }
            // Do not cache dropped notifications and failures.
            _ => drop(self.lock().cells.remove(&key)),
        }
        found
    }

    /// Caches a notification that was just accepted, so that it need not be read again.
    pub(crate) fn remember(&self, topic: TopicId, topic_url: &str, notification: &Notification) {
        let Payload::Bytes(bytes) = &notification.content.payload else { return };
        let body = Bytes::from_owner(Arc::clone(bytes));
        let units = self.units_of(body.len());
        // The memory is used up: the notification is read later.
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(units) else { return };
        let key = (topic, notification.offset);
        let size = body.len();
        let ready = self.ready(topic_url, notification, body, Some(room));
        let cell = OnceCell::new_with(Some(PayloadLookup::Ready(Arc::new(ready))));
        if let Entry::Vacant(place) = self.lock().cells.entry(key) {
            place.insert(Arc::new(cell));
        } else {
            return;
        }
        self.keep(key, size);
    }

    /// Forgets all notifications.
    pub(crate) fn clear(&self) {
        *self.lock() = CachedPayloads::default();
    }

    /// Reads a notification from the store, with its bytes.
    pub(crate) fn read(
        &self,
        topic: TopicId,
        topic_url: &str,
        offset: Offset,
    ) -> Result<Option<(Notification, Bytes)>, LogError> {
        let before = Offset(offset.0.saturating_sub(1));
        let Some(notification) = self.store.read(topic, before, 1)?.pop() else { return Ok(None) };
        let body = self.body(topic_url, &notification)?;
        Ok(Some((notification, body)))
    }

    /// The bytes of a notification.
    pub(crate) fn body(
        &self,
        topic_url: &str,
        notification: &Notification,
    ) -> Result<Bytes, LogError> {
        match &notification.content.payload {
            Payload::Bytes(bytes) => Ok(Bytes::from_owner(Arc::clone(bytes))),
            Payload::Changes { after, last } => self.payloads.render(topic_url, *after, *last),
        }
    }

    /// The notification for a subscriber that misses all notifications up to an offset.
    pub(crate) async fn gap(
        self: &Arc<Self>,
        topic_url: &Arc<str>,
        last: Offset,
    ) -> Result<Option<Ready>, LogError> {
        let (this, url) = (Arc::clone(self), Arc::clone(topic_url));
        let made = tokio::task::spawn_blocking(move || this.payloads.gap(&url)).await;
        let stopped = |_| LogError::new(abreast_core::ErrorKind::Io, "the hub stops");
        let gap = made.map_err(stopped)??;
        Ok(gap.map(|Gap { media_type, links, body }| {
            let headers = headers(&media_type, &self.hub_url, topic_url, &links, last);
            Ready {
                body,
                headers: HeaderLines::from(&headers),
                media_type,
                links,
                #[cfg(feature = "xmpp")]
                changes: None,
                _room: None,
            }
        }))
    }

    /// Finds the changes for the next request to a webhook: the changes of the notification at `offset`,
    /// and of later notifications that the log had accepted by `until`.
    pub(crate) async fn webhook_batch(
        self: &Arc<Self>,
        topic: TopicId,
        offset: Offset,
        until: Timestamp,
    ) -> Result<WebhookLookup, LogError> {
        let store = Arc::clone(&self.store);
        let find = move || {
            let before = Offset(offset.0.saturating_sub(1));
            let mut batch: Option<WebhookBatch> = None;
            for notification in store.read(topic, before, JOINED_READ)? {
                let Payload::Changes { after, last } = notification.content.payload else { break };
                let next = notification.offset;
                batch = Some(match batch {
                    None if next != offset => return Ok(WebhookLookup::Trimmed(next)),
                    None => WebhookBatch { end: next, after, last },
                    Some(batch)
                        if after == batch.last
                            && last.0 - batch.after.0 <= JOINED_CHANGES
                            && notification.time <= until =>
                    {
                        WebhookBatch { end: next, last, ..batch }
                    }
                    Some(_) => break,
                });
            }
            // Topics of changes have no other notifications.
            Ok(batch.map_or(WebhookLookup::Trimmed(Offset(offset.0 + 1)), WebhookLookup::Ready))
        };
        tokio::task::spawn_blocking(find)
            .await
            .unwrap_or_else(|_| Err(LogError::new(abreast_core::ErrorKind::Io, "the hub stops")))
    }

    /// The body of a webhook for these changes, or for the first changes up to the limit, and the
    /// position of the last change in the body.
    pub(crate) fn webhook_body(
        &self,
        topic_url: &str,
        after: Position,
        last: Position,
    ) -> Result<(Bytes, Position), LogError> {
        self.payloads.webhook(topic_url, after, last)
    }

    /// Finds the following notifications that can be published in the same item, because their
    /// changes continue at `end`. Returns the offset of the last one and its last position.
    #[cfg(feature = "xmpp")]
    pub(crate) async fn joined(
        self: &Arc<Self>,
        topic: TopicId,
        mut offset: Offset,
        (first, mut end): (Position, Position),
    ) -> Result<(Offset, Position), LogError> {
        let store = Arc::clone(&self.store);
        let join = move || {
            loop {
                let next = store.read(topic, offset, JOINED_READ)?;
                let is_all = next.len() < JOINED_READ;
                for notification in next {
                    match notification.content.payload {
                        Payload::Changes { after, last }
                            if after == end && last.0 - first.0 <= JOINED_CHANGES =>
                        {
                            (offset, end) = (notification.offset, last);
                        }
                        _ => return Ok((offset, end)),
                    }
                }
                if is_all {
                    return Ok((offset, end));
                }
            }
        };
        tokio::task::spawn_blocking(join)
            .await
            .unwrap_or_else(|_| Err(LogError::new(abreast_core::ErrorKind::Io, "the hub stops")))
    }

    /// Renders a notification with a part of the changes, which is not shared with other targets.
    #[cfg(feature = "xmpp")]
    pub(crate) async fn render(
        self: &Arc<Self>,
        topic_url: &Arc<str>,
        after: Position,
        last: Position,
    ) -> Result<Bytes, LogError> {
        let (this, url) = (Arc::clone(self), Arc::clone(topic_url));
        let made = tokio::task::spawn_blocking(move || this.payloads.render(&url, after, last));
        made.await
            .unwrap_or_else(|_| Err(LogError::new(abreast_core::ErrorKind::Io, "the hub stops")))
    }

    fn ready(
        &self,
        url: &str,
        notification: &Notification,
        body: Bytes,
        room: Option<OwnedSemaphorePermit>,
    ) -> Ready {
        let content = &notification.content;
        let headers =
            headers(&content.media_type, &self.hub_url, url, &content.links, notification.offset);
        let headers = HeaderLines::from(&headers);
        Ready {
            body,
            headers,
            media_type: content.media_type.clone(),
            links: content.links.clone(),
            #[cfg(feature = "xmpp")]
            changes: match content.payload {
                Payload::Changes { after, last } => Some((after, last)),
                Payload::Bytes(_) => None,
            },
            _room: room,
        }
    }

    async fn room(&self, bytes: usize, slow: bool) -> Option<OwnedSemaphorePermit> {
        if slow {
            let units = (bytes.div_ceil(UNIT) + 1).min(self.slow_units) as u32;
            return Arc::clone(&self.slow_room).acquire_many_owned(units).await.ok();
        }
        let units = self.units_of(bytes);
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(units) {
            return Some(room);
        }
        // Drop cached payloads first.
        self.forget();
        Arc::clone(&self.room).acquire_many_owned(units).await.ok()
    }

    fn units_of(&self, bytes: usize) -> u32 {
        (bytes.div_ceil(UNIT) + 1).min(self.units) as u32
    }

    /// Caches a notification. At most half of the memory is used for the cache.
    fn keep(&self, key: (TopicId, Offset), bytes: usize) {
        let mut kept = self.lock();
        kept.order.push_back((key, bytes));
        kept.bytes += bytes;
        while kept.bytes > self.units * UNIT / 2 || kept.order.len() > MAX_READY {
            let Some((key, bytes)) = kept.order.pop_front() else { break };
            kept.bytes -= bytes;
            kept.cells.remove(&key);
        }
    }

    fn forget(&self) {
        let mut kept = self.lock();
        let CachedPayloads { cells, order, bytes, .. } = &mut *kept;
        for (key, _) in order.drain(..) {
            cells.remove(&key);
        }
        *bytes = 0;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CachedPayloads> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The headers of a notification [websub §7].
pub(crate) fn headers(
    media_type: &str,
    hub_url: &str,
    topic_url: &str,
    links: &str,
    offset: Offset,
) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    if let Ok(value) = HeaderValue::from_str(media_type) {
        headers.insert("content-type", value);
    }
    if let Ok(value) =
        HeaderValue::from_str(&abreast_websub::topic_links([hub_url], topic_url, links))
    {
        headers.insert("link", value);
    }
    headers.insert(OFFSET_HEADER.clone(), HeaderValue::from(offset.0));
    headers
}

/// The instant `by` after `now`; saturates.
pub(crate) fn later(now: Timestamp, by: std::time::Duration) -> Timestamp {
    now.plus_micros(i64::try_from(by.as_micros()).unwrap_or(i64::MAX))
}
