//! Subscriptions: made, renewed and ended, at hubs [websub §5] and at Sources of ResourceSync 0.1
//! [rs-0.1 §5.2.2].

use super::callback::Standing;
use super::{Ended, Subscriber, is_https, may_have_secret, spread, stopped};
use crate::push::announcement::{Asking, Topic};
use abreast_net::{ErrorKind, Post, Request, StatusCode};
use abreast_websub::{CallbackRequest, Secret};
use abreast_webtypes::resolve;
use bytes::Bytes;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The lease that is requested. Short, so that a copy that never unsubscribed is forgotten soon.
const LEASE: Duration = Duration::from_secs(24 * 3_600);
/// How long a hub may take to ask back.
const VERIFY_TIME: Duration = Duration::from_secs(60);
/// How long is waited, when stopping, until the hub asks back.
const LEAVE_TIME: Duration = Duration::from_secs(1);
/// Maximum time for the request that ends a subscription.
const GOODBYE_TIME: Duration = Duration::from_secs(3);
/// First pause after a failed renewal, at most an eighth of the remaining lease; the pause doubles
/// each time.
const RENEW_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of redirects by a hub.
const REDIRECTS_MAX: usize = 3;

/// A subscription that a hub has confirmed.
struct Active {
    token: String,
    /// The hub that accepted the subscription, after redirects.
    hub: String,
    renew: Instant,
    until: Instant,
}

impl Subscriber {
    /// Receives the deliveries of a hub until that ends.
    pub(super) async fn subscribed(&self, base: &str, topic: &Topic, hub: &str) -> Ended {
        let mut stop = self.stop.clone();
        let mut active = tokio::select! {
            made = self.subscribe(base, topic, hub, None) => match made {
                Ok(active) => active,
                Err(why) => return Ended::Broken(why),
            },
            () = stopped(&mut stop) => return Ended::Stopped,
        };
        // If nothing is verified, it is unknown whether deliveries will arrive.
        self.inbox.set_live(topic.asking != Asking::PlainCallback);
        self.inbox.pull();
        self.inbox.note("push.callback", &topic.url, &format!("subscribed at {hub}"));
        let mut pause = RENEW_PAUSE;
        loop {
            let changed = self.callbacks.changed.notified();
            if let Standing::Denied(reason) = self.callbacks.standing(&active.token) {
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                return Ended::Broken(format!("the hub {hub} ended the subscription{reason}"));
            }
            let now = Instant::now();
            if now >= active.until {
                self.callbacks.forget(&active.token);
                return Ended::Broken(format!(
                    "the subscription at {hub} has ended and could not be renewed"
                ));
            }
            if now < active.renew {
                tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep(active.renew - now) => {}
                    () = stopped(&mut stop) => {
                        self.unsubscribe(base, topic, &active, LEAVE_TIME).await;
                        return Ended::Stopped;
                    }
                }
                continue;
            }
            // Each renewal has a new callback, so that the old subscription ends with its old
            // callback. A plain callback cannot be ended, so it is used again.
            let known =
                Some(active.token.clone()).filter(|_| topic.asking == Asking::PlainCallback);
            let renewed = tokio::select! {
                renewed = self.subscribe(base, topic, hub, known) => renewed,
                () = tokio::time::sleep(active.until - now) => Err("the lease has ended".to_owned()),
                () = stopped(&mut stop) => {
                    self.unsubscribe(base, topic, &active, LEAVE_TIME).await;
                    return Ended::Stopped;
                }
            };
            match renewed {
                Ok(new) => {
                    let old = std::mem::replace(&mut active, new);
                    if old.token != active.token {
                        self.unsubscribe(base, topic, &old, Duration::ZERO).await;
                    }
                    pause = RENEW_PAUSE;
                }
                Err(why) => {
                    tracing::debug!(hub, why, "a subscription could not be renewed yet");
                    active.renew = now + spread(pause).min((active.until - now) / 8);
                    pause = pause.saturating_mul(2);
                }
            }
        }
    }

    /// Requests a subscription, and waits for the verification by the hub.
    async fn subscribe(
        &self,
        base: &str,
        topic: &Topic,
        hub: &str,
        known: Option<String>,
    ) -> Result<Active, String> {
        let is_new = known.is_none();
        let token = known.map_or_else(random_text, Ok)?;
        let secret = Secret::new(random_text()?);
        self.callbacks.expect(&token, &topic.url, topic.asking, LEASE);
        let mut form = |hub: &str| {
            // A secret must not be sent over a connection that others could read.
            let secret = secret.clone().filter(|_| may_have_secret(hub, &self.proxies));
            let secret = secret.filter(|_| topic.asking != Asking::PlainCallback);
            self.callbacks.set_secret(&token, secret.clone());
            let lease = Some(LEASE.as_secs()).filter(|_| topic.asking != Asking::PlainCallback);
            let callback = format!("{base}{token}");
            written(topic, CallbackRequest::Subscribe { callback, secret, lease_seconds: lease })
        };
        let hub = match self.ask_hub(hub, &mut form).await {
            Ok(hub) => hub,
            Err(why) => {
                if is_new {
                    self.callbacks.forget(&token);
                }
                return Err(why);
            }
        };
        let confirmed = async {
            loop {
                let changed = self.callbacks.changed.notified();
                match self.callbacks.standing(&token) {
                    Standing::Asked => changed.await,
                    other => return other,
                }
            }
        };
        match tokio::time::timeout(VERIFY_TIME, confirmed).await {
            Ok(Standing::Active { renew, until }) => Ok(Active { token, hub, renew, until }),
            Ok(Standing::Denied(reason)) => {
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                Err(format!("the hub {hub} refuses the subscription{reason}"))
            }
            _ => {
                self.callbacks.forget(&token);
                Err(format!(
                    "the hub {hub} did not ask back within {} s\n  help: can it reach {base}?",
                    VERIFY_TIME.as_secs()
                ))
            }
        }
    }

    /// Asks the hub to end a subscription, and waits that long for its question back.
    async fn unsubscribe(&self, base: &str, topic: &Topic, active: &Active, wait: Duration) {
        if topic.asking == Asking::PlainCallback {
            // The Source of a plain callback detects the end of the subscription only by an answer
            // 410.
            return self.callbacks.forget(&active.token);
        }
        self.callbacks.leave(&active.token);
        let mut form = |_: &str| {
            let request =
                CallbackRequest::Unsubscribe { callback: format!("{base}{}", active.token) };
            written(topic, request)
        };
        match tokio::time::timeout(GOODBYE_TIME, self.ask_hub(&active.hub, &mut form)).await {
            Ok(Ok(_)) => {}
            // The subscription ends with its lease at the latest.
            Ok(Err(why)) => return tracing::debug!(why, "cannot unsubscribe"),
            Err(_) => {
                return tracing::debug!("the hub does not hear that a subscription is to end");
            }
        }
        let ended = async {
            loop {
                let changed = self.callbacks.changed.notified();
                if self.callbacks.standing(&active.token) != Standing::Leaving {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(wait, ended).await;
    }

    /// Sends a form to a hub, and follows its redirects [websub §5.1.2]; returns the hub that
    /// accepted it.
    async fn ask_hub(
        &self,
        hub: &str,
        form: &mut dyn FnMut(&str) -> String,
    ) -> Result<String, String> {
        let mut hub = hub.to_owned();
        for _ in 0..=REDIRECTS_MAX {
            let body = Bytes::from(form(&hub));
            let post = Post {
                body: &body,
                content_type: "application/x-www-form-urlencoded",
                idempotency_key: None,
            };
            let public_only = self.must_be_public(&hub);
            let request = Request {
                post: Some(post),
                public_only,
                authorization: self.authorization_for(&hub),
                ..Request::new(&hub)
            };
            let mut answer = match self.client.send(&request).await {
                Ok(answer) => answer,
                // Some hubs accept with 204.
                Err(error) if error.status() == Some(204) => return Ok(hub),
                // Redirects of a POST are not followed, so it is the address of the hub.
                Err(error) if public_only && error.kind() == ErrorKind::Redirect => {
                    return Err(private(&hub));
                }
                Err(error) => return Err(error.to_string()),
            };
            if answer.status().is_success() {
                return Ok(hub);
            }
            if !matches!(
                answer.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            ) {
                if matches!(answer.status().as_u16(), 404 | 405 | 410) {
                    let status = answer.status().as_u16();
                    return Err(format!("{hub} no longer takes subscriptions (HTTP {status})"));
                }
                let mut text = Vec::new();
                let _ = answer.read_to(&mut text, 4_096).await;
                let text = abreast_webtypes::excerpt(String::from_utf8_lossy(&text).trim());
                return Err(format!("the hub {hub} answered {}: {text}", answer.status().as_u16()));
            }
            let next = answer.header("location").and_then(|to| resolve(answer.url(), to).ok());
            let next =
                next.ok_or_else(|| format!("the hub {hub} redirects without a `Location`"))?;
            if is_https(&hub) && !is_https(&next) && !self.allow_downgrade {
                return Err(format!("the hub {hub} redirects from https to {next}"));
            }
            hub = next;
        }
        Err(format!("more than {REDIRECTS_MAX} redirects of a hub, the last to {hub}"))
    }
}

/// The message about a hub in the reader's own network, which the reader did not allow.
fn private(hub: &str) -> String {
    let url = url::Url::parse(hub).ok();
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or(hub);
    format!(
        "the hub {hub} has a private address\n  help: allow its host with --allow-host {host} (`allow_host`) if the hub is right"
    )
}

/// A request as a form, in the form of the topic.
fn written(topic: &Topic, request: CallbackRequest) -> String {
    match topic.asking {
        Asking::WebSub => request.about(&topic.url).to_form(),
        Asking::Callback | Asking::PlainCallback => request.to_form(),
    }
}

/// 256 random bits in hex: it cannot be guessed [websub §8.2].
fn random_text() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
