//! Subscription requests: checks and acceptance [websub §5.1].

use crate::hub::Inner;
use crate::message::client::Client;
use crate::message::request::HubAnswer;
use crate::message::text;
use abreast_core::hub::{NewVerification, Secret, TargetKind, VerificationMode};
use abreast_core::{ErrorKind, LogError};
use abreast_websub::{Subscribe, Unsubscribe};
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Longest `scheme://host:port`: a host name has at most 255 characters.
const MAX_ORIGIN: usize = 300;

/// The kind of proof that a request is intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The callback's answer to a challenge.
    Challenge,
    /// The operator's list of callbacks, without a challenge.
    Trusted,
}

impl Inner {
    pub(crate) async fn subscribe(
        &self,
        wish: Subscribe,
        client: Client,
        proof: Proof,
    ) -> HubAnswer {
        if !self.serves(&wish.topic) {
            let text = "this hub does not serve that topic\n  help: subscribe to what the topic names as rel=\"self\", at \
                        the hub that it names\n";
            return HubAnswer::new(404, text);
        }
        if let Some(refusal) = self.limit_reached(&wish.callback) {
            // A repeated request replaces the subscription, and does not add one [websub §5.1].
            match self.is_subscribed(&wish).await {
                Ok(true) => {}
                Ok(false) => return refusal,
                Err(error) => return text::not_stored(&error),
            }
        }
        let verification = NewVerification {
            // A callback in the operator's list does not need a lease.
            lease_seconds: (proof == Proof::Challenge)
                .then(|| self.options.leases.grant(wish.lease_seconds)),
            secret: wish.secret.map(|secret| Secret::from(secret.into_bytes())),
            ..new(wish.topic, wish.callback, VerificationMode::Subscribe)
        };
        self.verify(verification, client, proof).await
    }

    /// The response to a new subscription if a limit is reached.
    fn limit_reached(&self, callback: &str) -> Option<HubAnswer> {
        if self.engine.len() >= self.options.subscriptions {
            let text = "this hub takes no more subscriptions\n";
            return Some(HubAnswer::later(503, 3_600, text));
        }
        let most = self.options.subscriptions_per_host;
        (self.engine.subscriptions_on_host_of(callback) >= most).then(|| {
            let text = format!("the callback's host has {most} subscriptions, no more are taken\n");
            HubAnswer::later(429, 3_600, text)
        })
    }

    async fn is_subscribed(&self, wish: &Subscribe) -> Result<bool, LogError> {
        let Some(topic) = self.known(&wish.topic) else { return Ok(false) };
        let (store, callback) = (Arc::clone(&self.engine.store), wish.callback.clone());
        let find = move || store.find_target(topic, &callback, TargetKind::Subscription);
        let found = tokio::task::spawn_blocking(find).await;
        let stopped = |_| LogError::new(ErrorKind::Io, "the hub stops");
        found.map_err(stopped)?.map(|target| target.is_some())
    }

    /// Handles an unsubscription. The topic may not exist any more, and a requested lease is
    /// ignored [websub §5.1].
    pub(crate) async fn unsubscribe(&self, wish: Unsubscribe, client: Client) -> HubAnswer {
        let verification = new(wish.topic, wish.callback, VerificationMode::Unsubscribe);
        self.verify(verification, client, Proof::Challenge).await
    }

    /// Answers when the request is durable, before it is verified [websub §5.1.2].
    async fn verify(
        &self,
        mut verification: NewVerification,
        client: Client,
        proof: Proof,
    ) -> HubAnswer {
        if let Err(why) = self.check_callback(&verification.callback) {
            return HubAnswer::new(400, why);
        }
        let now = Instant::now();
        let allowed = {
            let mut rates = self.lock_rates();
            let host =
                rates.hasher.hash_one(crate::deliver::table::host_of(&verification.callback));
            rates
                .clients
                .check(&client.group(), now)
                .and_then(|()| rates.hosts.take(host, now))
                .and_then(|()| rates.clients.take(client.group(), now))
        };
        let allowed = allowed
            .and_then(|()| self.verifier.may_ask(&verification.callback, &verification.topic_url));
        if let Err(wait) = allowed {
            return HubAnswer::later(429, seconds(wait), "too many requests; try again later\n");
        }
        let _room = match self.room(0) {
            Ok(room) => room,
            Err(answer) => return answer,
        };
        if proof == Proof::Challenge {
            verification.challenge = match random_text() {
                Ok(challenge) => challenge,
                Err(error) => return text::not_stored(&error),
            };
        }
        verification.next_at = self.engine.now();
        let (sender, receiver) = oneshot::channel();
        let done = Box::new(move |result| drop(sender.send(result)));
        self.engine.store.put_verification_then(verification.clone(), done);
        match receiver.await {
            Ok(Ok(id)) => {
                self.counters.requested.fetch_add(1, Relaxed);
                // The node of the shard takes all requests in the order of the store.
                if !self.engine.held.is_shared() {
                    self.verifier.add(id, &verification);
                }
                HubAnswer::new(
                    202,
                    match proof {
                        Proof::Challenge => "accepted; the callback will be asked\n",
                        Proof::Trusted => "accepted\n",
                    },
                )
            }
            Ok(Err(error)) => text::not_stored(&error),
            Err(_) => HubAnswer::later(503, 5, "the hub stops\n"),
        }
    }

    /// Checks that need no DNS query; the address is checked again when connecting.
    fn check_callback(&self, callback: &str) -> Result<(), String> {
        let sender = &self.sender;
        let recipient =
            sender.recipient(callback).map_err(|error| format!("the callback: {error}\n"))?;
        if crate::deliver::table::origin_of(callback).len() > MAX_ORIGIN {
            return Err("the callback names a host that no name server can know\n".to_owned());
        }
        let host = recipient.host().trim_end_matches('.').to_ascii_lowercase();
        let private = host.parse().map_or_else(
            |_| host == "localhost" || host.ends_with(".localhost"),
            |address| !abreast_net::is_global(address),
        );
        if private && !self.options.private_callbacks {
            return Err(format!(
                "the callback names {host}, a private address (net.private)\n  help: give one that everybody can reach, \
                 or set `private_callbacks = true` in [hub]\n"
            ));
        }
        if callback == self.options.url || callback.starts_with(&format!("{}?", self.options.url)) {
            return Err("the callback is this hub itself\n".to_owned());
        }
        Ok(())
    }
}

pub(crate) fn new(topic_url: String, callback: String, mode: VerificationMode) -> NewVerification {
    NewVerification {
        topic_url,
        callback,
        mode,
        secret: None,
        lease_seconds: None,
        challenge: String::new(),
        reason: None,
        next_at: abreast_webtypes::Timestamp::default(),
    }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(1)
}

/// 256 random bits in hex, which cannot be guessed [websub §8.2].
fn random_text() -> Result<String, LogError> {
    use std::fmt::Write as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        LogError::new(ErrorKind::Io, format!("the system gives no random numbers: {error}"))
    })?;
    let mut text = String::with_capacity(64);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
