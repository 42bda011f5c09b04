//! Callbacks: the answers to hubs, and which deliveries are accepted [websub §5.3, §7]; those to
//! Sources of ResourceSync 0.1 too [rs-0.1 §5.2.2].

use super::inbox::Inbox;
use crate::push::announcement::Asking;
use crate::push::limits::NOTIFICATION_MAX;
use abreast_net::{Method as HttpMethod, Parts, Receiver, Reply, StatusCode};
use abreast_websub::{Intent, Method, Mode, SIGNATURE_HEADER, Secret, renew_after, verify};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Maximum number of subscriptions in memory, including ended ones; the oldest ended subscriptions
/// are removed first.
const SUBSCRIPTIONS_MAX: usize = 16;
/// Minimum lease; a shorter lease is treated as this duration.
const LEASE_MIN: Duration = Duration::from_secs(1);
/// Maximum lease; a longer lease is treated as this duration.
const LEASE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// The service that hubs call. Answers come from memory, so that a hub never waits for a run.
#[derive(Debug)]
pub(super) struct Callbacks {
    subscriptions: Mutex<Vec<Subscription>>,
    inbox: Arc<Inbox>,
    /// Something happened to a subscription.
    pub(super) changed: Notify,
}

#[derive(Debug)]
struct Subscription {
    token: String,
    topic: String,
    asking: Asking,
    secret: Option<Secret>,
    /// The requested lease, which is used if the hub does not specify the granted lease.
    lease: Duration,
    standing: Standing,
    /// The challenge of the last answer: a hub that did not receive the answer repeats the request.
    answered: Option<String>,
    /// A refused delivery was reported.
    doubted: bool,
}

/// How far a subscription is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The subscription was requested, and the hub has not verified it yet.
    Asked,
    /// The hub delivers.
    Active { renew: Instant, until: Instant },
    /// The hub was asked to end the subscription, and has not verified the request yet.
    Leaving,
    /// The subscription has ended as requested.
    Ended,
    /// The hub refuses the subscription, with its reason if it gives one.
    Denied(Option<String>),
}

impl Callbacks {
    pub(super) fn new(inbox: Arc<Inbox>) -> Self {
        Self { subscriptions: Mutex::default(), inbox, changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Subscription>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the request to the hub: it may verify before it answers.
    pub(super) fn expect(&self, token: &str, topic: &str, asking: Asking, lease: Duration) {
        let mut subscriptions = self.lock();
        subscriptions.retain(|one| one.token != token);
        while subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let ended =
                |one: &Subscription| matches!(one.standing, Standing::Ended | Standing::Denied(_));
            let oldest = subscriptions.iter().position(ended).unwrap_or(0);
            subscriptions.remove(oldest);
        }
        let standing = match asking {
            Asking::WebSub | Asking::Callback => Standing::Asked,
            // Nothing is verified: deliveries may come from now on.
            Asking::PlainCallback => active(lease, LEASE_MAX),
        };
        subscriptions.push(Subscription {
            token: token.to_owned(),
            topic: topic.to_owned(),
            asking,
            secret: None,
            lease,
            standing,
            answered: None,
            doubted: false,
        });
    }

    /// The secret that deliveries are to be signed with.
    pub(super) fn set_secret(&self, token: &str, secret: Option<Secret>) {
        if let Some(one) = self.lock().iter_mut().find(|one| one.token == token) {
            one.secret = secret;
        }
    }

    pub(super) fn standing(&self, token: &str) -> Standing {
        let subscriptions = self.lock();
        let one = subscriptions.iter().find(|one| one.token == token);
        one.map_or(Standing::Ended, |one| one.standing.clone())
    }

    /// Expects the verification of a request to end a subscription. Called before that request.
    pub(super) fn leave(&self, token: &str) {
        if let Some(one) = self.lock().iter_mut().find(|one| one.token == token) {
            (one.standing, one.answered) = (Standing::Leaving, None);
        }
    }

    pub(super) fn forget(&self, token: &str) {
        self.lock().retain(|one| one.token != token);
    }

    /// A verification of intent, or a denial. A topic that was not requested is not found.
    fn verify_intent(&self, token: &str, query: &str) -> Reply {
        let not_wanted = || Reply::new(StatusCode::NOT_FOUND, "nobody asked for this");
        let Ok(intent) = Intent::parse(query) else { return not_wanted() };
        let mut subscriptions = self.lock();
        let Some(one) = subscriptions.iter_mut().find(|one| one.token == token) else {
            return not_wanted();
        };
        let reply = match intent {
            Intent::Verify { mode, topic, challenge, lease_seconds } if one.is_about(&topic) => {
                let again = one.answered.as_ref() == Some(&challenge);
                match (mode, &one.standing) {
                    (Mode::Subscribe, Standing::Asked) => {
                        let lease = lease_seconds
                            .map_or(one.lease, Duration::from_secs)
                            .clamp(LEASE_MIN, LEASE_MAX);
                        one.standing = active(lease, lease);
                    }
                    // A Source with plain callbacks sends a verification although it need not.
                    (Mode::Subscribe, Standing::Active { .. })
                        if one.asking == Asking::PlainCallback => {}
                    (Mode::Unsubscribe, Standing::Leaving) => one.standing = Standing::Ended,
                    (Mode::Subscribe, Standing::Active { .. })
                    | (Mode::Unsubscribe, Standing::Ended)
                        if again => {}
                    _ => return not_wanted(),
                }
                one.answered = Some(challenge.clone());
                Reply::new(StatusCode::OK, challenge)
            }
            Intent::Denied { topic, reason }
                if one.is_about(&topic) && one.standing != Standing::Ended =>
            {
                one.standing = Standing::Denied(reason);
                Reply::new(StatusCode::OK, "")
            }
            _ => return not_wanted(),
        };
        drop(subscriptions);
        self.changed.notify_waiters();
        reply
    }

    /// Accepts a delivery. A delivery without the agreed signature is ignored. If no secret was
    /// agreed, a delivery only shows that there are changes; the same applies to all deliveries of
    /// a Source of ResourceSync 0.1 without a valid signature, since its callbacks need none.
    fn deliver(&self, token: &str, head: &Parts, body: Bytes) -> Reply {
        let received = || Reply::new(StatusCode::ACCEPTED, "");
        let mut subscriptions = self.lock();
        let Some(one) = subscriptions.iter_mut().find(|one| one.token == token) else {
            return gone();
        };
        match &one.standing {
            Standing::Active { .. } => {}
            Standing::Leaving => return received(),
            Standing::Asked | Standing::Ended | Standing::Denied(_) => return gone(),
        }
        tracing::debug!(topic = one.topic, bytes = body.len(), "a callback delivered");
        let Some(secret) = &one.secret else {
            self.inbox.pull();
            return received();
        };
        let signatures = head.headers.get_all(SIGNATURE_HEADER).iter();
        let signatures = signatures.map(|value| value.to_str().unwrap_or_default());
        match verify(secret.as_bytes(), Method::Sha1, signatures, &body) {
            Ok(_) => self.inbox.notify(body),
            Err(error) if !std::mem::replace(&mut one.doubted, true) => {
                let message =
                    format!("a delivery is not believed, nor are others like it: {error}");
                self.inbox.note("push.signature", &one.topic, &message);
                one.hint(&self.inbox);
            }
            Err(_) => one.hint(&self.inbox),
        }
        received()
    }
}

impl Subscription {
    /// Whether a verification belongs to this subscription. A request for plain callbacks does not
    /// contain a topic, so only the Source knows the topic; the secret token in the URL identifies
    /// the subscription.
    fn is_about(&self, topic: &str) -> bool {
        self.asking != Asking::WebSub || topic == self.topic
    }

    /// Handles a delivery whose content is not trusted.
    fn hint(&self, inbox: &Inbox) {
        if self.asking != Asking::WebSub {
            inbox.pull();
        }
    }
}

/// From now on, renewed in time for a lease.
fn active(lease: Duration, until: Duration) -> Standing {
    let now = Instant::now();
    Standing::Active { renew: now + renew_after(lease), until: now + until }
}

/// Hubs that hear this end the subscription.
fn gone() -> Reply {
    Reply::new(StatusCode::GONE, "there is no such subscription")
}

/// The token of a request: the last segment of the path. A proxy may have changed the other
/// segments.
fn token_of(head: &Parts) -> &str {
    head.uri.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

impl Receiver for Callbacks {
    fn body_limit(&self, head: &Parts) -> Result<usize, Reply> {
        match head.method {
            HttpMethod::GET | HttpMethod::HEAD => Ok(0),
            HttpMethod::POST if self.lock().iter().any(|one| one.token == token_of(head)) => {
                Ok(NOTIFICATION_MAX)
            }
            HttpMethod::POST => Err(gone()),
            _ => Err(Reply::new(StatusCode::METHOD_NOT_ALLOWED, "a callback answers GET and POST")),
        }
    }

    fn receive(&self, head: &Parts, body: Bytes) -> Reply {
        if head.method == HttpMethod::POST {
            return self.deliver(token_of(head), head, body);
        }
        self.verify_intent(token_of(head), head.uri.query().unwrap_or_default())
    }
}
