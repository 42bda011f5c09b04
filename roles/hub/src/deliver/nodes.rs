//! Nodes of XMPP services as targets [rs-0.1 §5.2.1]: one session for all nodes, one item for each
//! notification, or several if it is larger than a stanza may be.

use super::lanes::ExchangeEnd;
use super::outcome::Outcome;
use super::payloads::{PayloadCache, Ready};

use abreast_core::hub::TargetId;
use abreast_core::{LogError, Offset, Position};
use abreast_xmpp::{Account, Error, ErrorKind, Node, Session};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Type of the items in a node: documents of Sitemaps.
const PAYLOAD_TYPE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
/// The first pause after a failed connection, for all nodes together; it doubles.
const PAUSE: Duration = Duration::from_secs(1);
/// The first pause after a refused login, because servers may lock an account after many attempts.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause after failed connections.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Least limit of item sizes that is concluded from a failure: a server that ends connections over
/// smaller items does so for another reason.
const STANZA_MIN: usize = 8 << 10;

/// A notification for a node, with further notifications that are published in the same item.
pub(super) struct NodeItem<'a> {
    pub(super) target: TargetId,
    pub(super) address: &'a str,
    pub(super) topic_url: &'a Arc<str>,
    pub(super) offset: Offset,
    pub(super) ready: &'a Ready,
    /// The changes of all these notifications: after the first position, up to the second.
    pub(super) changes: Option<(Position, Position)>,
}

/// The account that publishes, and its nodes.
pub(super) struct Nodes {
    account: Account,
    /// One task connects, the others wait for it.
    link: tokio::sync::Mutex<Link>,
    /// For partly published notifications: the last published position.
    partly: Mutex<HashMap<TargetId, (Offset, Position)>>,
}

#[derive(Default)]
struct Link {
    session: Option<Arc<Session>>,
    /// Nodes that exist in this session, each with the position in the identifier of its newest
    /// item when it was checked.
    prepared: HashMap<Node, Position>,
    /// The largest item, if the server or the service accepts less than the configuration: until
    /// the next start.
    largest: Option<usize>,
    /// The last failure of a connection before an item was published. It ends when an item is
    /// published.
    failure: Option<Failure>,
}

/// A failed connection; the next attempt starts after the pause.
struct Failure {
    error: Error,
    until: Instant,
    pause: Duration,
}

impl Link {
    /// Whether this is the current session.
    fn has(&self, session: &Arc<Session>) -> bool {
        self.session.as_ref().is_some_and(|current| Arc::ptr_eq(current, session))
    }

    /// Starts a pause, twice as long as the last one.
    fn failed(&mut self, error: Error) -> Trouble {
        let before = self.failure.as_ref().map(|failure| failure.pause * 2);
        let least = if error.kind() == ErrorKind::Login { REFUSED_PAUSE } else { PAUSE };
        let pause = before.unwrap_or(least).clamp(least, PAUSE_MAX);
        self.session = None;
        self.failure = Some(Failure { error: error.clone(), until: Instant::now() + pause, pause });
        Trouble::NotConnected(error, pause)
    }
}

/// The reason why an item was not published.
enum Trouble {
    /// The connection failed; the next attempt is after this pause.
    NotConnected(Error, Duration),
    /// The service refuses, or the connection ended.
    Service(Error),
    /// An item of this size in bytes exceeds the limit.
    TooLarge(usize),
    /// The bytes of the item cannot be made.
    Ours(LogError),
}

impl Trouble {
    /// Whether a smaller item may be accepted.
    fn is_size(&self) -> bool {
        match self {
            Self::Service(error) => error.kind() == ErrorKind::TooLarge,
            Self::TooLarge(_) => true,
            Self::NotConnected(..) | Self::Ours(_) => false,
        }
    }

    /// Converts the failure to an outcome for the engine.
    fn outcome(&self) -> Outcome {
        let ours = |status, error| Outcome::failed(status, error, ExchangeEnd::Answered);
        match self {
            Self::Ours(error) => ours(None, format!("the notification cannot be made: {error}")),
            Self::TooLarge(bytes) => ours(
                Some(413),
                format!("an item of {bytes} bytes is above the limit of the server"),
            ),
            Self::Service(error) => failed(error, None),
            Self::NotConnected(error, pause) => failed(error, Some(*pause)),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

impl Nodes {
    pub(super) fn new(account: Account) -> Self {
        Self { account, link: tokio::sync::Mutex::default(), partly: Mutex::default() }
    }

    pub(super) async fn publish(&self, item: &NodeItem<'_>, cache: &Arc<PayloadCache>) -> Outcome {
        match self.publish_all(item, cache).await {
            Ok(()) => Outcome::Taken(200),
            Err(trouble) => trouble.outcome(),
        }
    }

    /// Creates a node, or checks an existing one, so that clients can subscribe before the first
    /// change. An error has its status, a text and the pause before the next attempt.
    pub(super) async fn prepare(&self, address: &str, topic_url: &str) -> Result<(), Outcome> {
        let prepared = async {
            let node: Node = address.parse()?;
            self.prepared(&node, topic_url).await.map(drop)
        };
        prepared.await.map_err(|trouble: Trouble| trouble.outcome())
    }

    /// Publishes the changes that the node does not have yet, in order.
    async fn publish_all(
        &self,
        item: &NodeItem<'_>,
        cache: &Arc<PayloadCache>,
    ) -> Result<(), Trouble> {
        let node: Node = item.address.parse()?;
        let Some((after, last)) = item.changes else {
            let id = item.offset.0.to_string();
            return self.put(&node, item.topic_url, &id, &item.ready.body).await;
        };
        let mut done = self.done(item).unwrap_or(after).clamp(after, last);
        // If the node has an item with some of the changes, it was published before a crash, or its
        // answer was lost. Skip these changes: in a larger item they would be published twice.
        let (_, newest) = self.prepared(&node, item.topic_url).await?;
        if (after..=last).contains(&newest) {
            done = done.max(newest);
        }
        if done == last {
            self.lock().remove(&item.target);
            return Ok(());
        }
        // The ends of the parts, the first part on top of the stack.
        let mut ends = vec![last];
        while let Some(end) = ends.pop() {
            let body = if Some((done, end)) == item.ready.changes {
                item.ready.body.clone()
            } else {
                cache.render(item.topic_url, done, end).await.map_err(Trouble::Ours)?
            };
            // The identifier of an item is the position of its last change, so that subscribers see
            // order and gaps.
            let id = end.0.to_string();
            match self.put(&node, item.topic_url, &id, &body).await {
                Ok(()) => {}
                Err(trouble) if !trouble.is_size() => return Err(trouble),
                Err(_) if end.0 - done.0 > 1 => {
                    ends.extend([end, Position(done.0 + (end.0 - done.0) / 2)]);
                    continue;
                }
                // A single change is too large: publish only that there are changes.
                Err(_) => {
                    let body: Bytes =
                        cache.render(item.topic_url, end, end).await.map_err(Trouble::Ours)?;
                    self.put(&node, item.topic_url, &id, &body).await?;
                }
            }
            done = end;
            if end < last {
                self.lock().insert(item.target, (item.offset, end));
            }
        }
        self.lock().remove(&item.target);
        Ok(())
    }

    /// The position up to which a notification was published before an attempt failed.
    fn done(&self, item: &NodeItem<'_>) -> Option<Position> {
        let partly = self.lock();
        partly.get(&item.target).filter(|(offset, _)| *offset == item.offset).map(|(_, done)| *done)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TargetId, (Offset, Position)>> {
        self.partly.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes one item. Creates the node if it is missing and the service allows this.
    async fn put(
        &self,
        node: &Node,
        topic_url: &str,
        id: &str,
        body: &[u8],
    ) -> Result<(), Trouble> {
        let (session, _) = self.prepared(node, topic_url).await?;
        let largest = self.link.lock().await.largest.unwrap_or(self.account.max_sent);
        if body.len() > largest {
            return Err(Trouble::TooLarge(body.len()));
        }
        let Err(error) = session.publish(node, id, body).await else {
            let mut link = self.link.lock().await;
            if link.has(&session) {
                link.failure = None;
            }
            return Ok(());
        };
        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Timeout) {
            // The node may have been deleted; the next attempt creates it again. After a timeout it
            // may already have the item.
            self.link.lock().await.prepared.remove(node);
        }
        if error.kind() == ErrorKind::TooLarge && body.len() > STANZA_MIN {
            tracing::warn!(%node, %error, bytes = body.len(), "an item was too large for the XMPP server");
            let mut link = self.link.lock().await;
            let half = (body.len() / 2).max(STANZA_MIN);
            link.largest = Some(half.min(link.largest.unwrap_or(half)));
            return Err(error.into());
        }
        Err(self.lost(&session, error).await)
    }

    /// The session and the position of the node's newest item, after the node was created or
    /// checked.
    async fn prepared(
        &self,
        node: &Node,
        topic_url: &str,
    ) -> Result<(Arc<Session>, Position), Trouble> {
        let (session, known) = self.session(node).await?;
        if let Some(newest) = known {
            return Ok((session, newest));
        }
        let made = match session.create(node, topic_url, PAYLOAD_TYPE).await {
            Ok(true) => Ok(Vec::new()),
            Ok(false) => match session.items(node, 1).await {
                // Services are not required to list items for publishers.
                Err(error) if error.kind() != ErrorKind::Timeout && !session.is_closed() => {
                    tracing::debug!(%node, %error, "the newest item is not known");
                    Ok(Vec::new())
                }
                items => items.map(Option::unwrap_or_default),
            },
            Err(error) => Err(error),
        };
        let newest = match made {
            Ok(items) => items.iter().filter_map(|item| item.id.parse().ok()).max().unwrap_or(0),
            Err(error) => return Err(self.lost(&session, error).await),
        };
        let newest = Position(newest);
        let mut link = self.link.lock().await;
        if link.has(&session) {
            link.prepared.insert(node.clone(), newest);
        }
        Ok((session, newest))
    }

    /// Converts a failed request: if the connection ended, a new one is made after a pause.
    async fn lost(&self, session: &Arc<Session>, error: Error) -> Trouble {
        let mut link = self.link.lock().await;
        if session.is_closed() && link.has(session) {
            return link.failed(error);
        }
        Trouble::Service(error)
    }

    /// The session, and the newest position of the node if it was checked in this session.
    async fn session(&self, node: &Node) -> Result<(Arc<Session>, Option<Position>), Trouble> {
        let mut link = self.link.lock().await;
        if let Some(session) = link.session.as_ref().filter(|session| !session.is_closed()) {
            return Ok((Arc::clone(session), link.prepared.get(node).copied()));
        }
        let now = Instant::now();
        if let Some(failure) = link.failure.as_ref().filter(|failure| failure.until > now) {
            return Err(Trouble::NotConnected(failure.error.clone(), failure.until - now));
        }
        link.session = None;
        link.prepared.clear();
        // This account does not subscribe, so its events are not read.
        match Session::connect(&self.account, node.service()).await {
            Ok((session, _)) => {
                let session = Arc::new(session);
                link.session = Some(Arc::clone(&session));
                tracing::info!(server = self.account.server(), "connected to the XMPP server");
                Ok((session, None))
            }
            Err(error) => Err(link.failed(error)),
        }
    }
}

/// A failure as the engine expects it: with the status that an HTTP server would have returned.
fn failed(error: &Error, pause: Option<Duration>) -> Outcome {
    let status = match error.kind() {
        ErrorKind::Login => Some(401),
        ErrorKind::Forbidden => Some(403),
        ErrorKind::NotFound => Some(404),
        ErrorKind::Conflict => Some(409),
        ErrorKind::TooLarge => Some(413),
        ErrorKind::Refused | ErrorKind::Usage | ErrorKind::Protocol => Some(400),
        ErrorKind::Unavailable => Some(503),
        _ => None,
    };
    // The pauses between connections are decided here, not by the engine.
    let contact = match (error.kind(), pause) {
        (ErrorKind::Connection | ErrorKind::Timeout, None) => ExchangeEnd::Silent,
        _ => ExchangeEnd::Answered,
    };
    let (error, help) = (error.message().to_owned(), error.help());
    Outcome::Failed { status, error, help, pause, contact }
}
