//! Verification of intent: each request is confirmed at its callback before it takes effect
//! [websub §5.3].
//!
//! Requests for the same callback and topic are verified one after the other, in the order of their
//! arrival: the last confirmed request is in force.

mod shards;

use crate::deliver::Engine;
use crate::deliver::lanes::{CancelSignal, Exchange, ExchangeEnd, Lanes, Name};
use crate::deliver::options::LaneOptions;
use crate::deliver::pace::Pace;
use crate::deliver::payloads::later;
use crate::deliver::table::host_of;
use crate::deliver::worker::Worker;
use crate::message::rates::Rates;
use abreast_core::hub::{
    NewTarget, NewVerification, Settled, TargetKind, Verification, VerificationId, VerificationMode,
};
use abreast_core::{LogError, Offset};
use abreast_net::{Answer, BodyWanted, Error, ErrorKind, Message, Sender};
use abreast_websub::{MAX_ANSWER_LENGTH, Mode, denied_url, is_confirmed, verification_url};
use abreast_webtypes::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// Requests read from the store at once.
const PAGE: usize = 1_000;
/// Pause before the next attempt after a failure of the store.
const STORE_PAUSE: Duration = Duration::from_secs(5);

/// Verifies requests at their callbacks.
pub(crate) struct Verifier {
    engine: Arc<Engine>,
    sender: Sender,
    state: Mutex<State>,
    wake: Notify,
}

struct State {
    lanes: Lanes<VerificationId>,
    pending: HashMap<VerificationId, Pending>,
    /// By a hash of callback and topic.
    chains: HashMap<u64, VerificationChain>,
    /// Unconfirmed requests, by the same hash.
    refused: Rates<u64>,
    hasher: RandomState,
}

/// Data of a request that is stored in memory, without the URLs of up to 8 KiB, because there may
/// be many requests.
struct Pending {
    /// The hash of its callback and topic.
    key: u64,
    callback: Name,
    attempts: u32,
    created: Timestamp,
    pace: Pace,
}

/// Requests for one callback and topic: one is being verified or waits for a retry, the others wait
/// for it.
struct VerificationChain {
    current: VerificationId,
    waits: bool,
    behind: VecDeque<VerificationId>,
}

/// The result of a verification.
enum Outcome {
    Confirmed,
    Refused(String),
    /// The callback did not answer: verify again later.
    Silent(String),
}

pub(crate) struct Job {
    exchange: Exchange<VerificationId>,
    key: u64,
}

impl Verifier {
    pub(crate) fn new(engine: Arc<Engine>, sender: Sender) -> Result<Arc<Self>, LogError> {
        let options = &engine.options.verification;
        let all = options.all.max(1);
        let lanes = LaneOptions {
            all,
            new: all,
            slow: all.div_ceil(4),
            silent: all.div_ceil(4),
            aside: all.div_ceil(2),
            ..LaneOptions::default()
        };
        let state = State {
            lanes: Lanes::new(lanes),
            pending: HashMap::new(),
            chains: HashMap::new(),
            refused: Rates::new(options.refused_burst, 1.0 / 60.0),
            hasher: RandomState::new(),
        };
        let verifier = Self { engine, sender, state: Mutex::new(state), wake: Notify::new() };
        if verifier.engine.held.is_shared() {
            return Ok(Arc::new(verifier));
        }
        let mut after = VerificationId(0);
        loop {
            let page = verifier.engine.store.verifications(after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.id;
            let mut state = verifier.lock();
            for found in page {
                let pending = state.pending(&found.request, found.attempts, found.created);
                state.add(found.id, pending);
            }
        }
        Ok(Arc::new(verifier))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a durable request, unless another node verifies it.
    pub(crate) fn add(&self, id: VerificationId, request: &NewVerification) {
        self.add_created(id, request, 0, self.engine.now());
    }

    /// Adds a request that was read from the store. A request that was added already is not verified
    /// twice.
    pub(crate) fn add_stored(&self, stored: &Verification) {
        self.add_created(stored.id, &stored.request, stored.attempts, stored.created);
    }

    fn add_created(
        &self,
        id: VerificationId,
        request: &NewVerification,
        attempts: u32,
        created: Timestamp,
    ) {
        let mut state = self.lock();
        if state.pending.contains_key(&id) || !self.engine.held.has_loaded_request(id) {
            return;
        }
        let pending = state.pending(request, attempts, created);
        state.add(id, pending);
        drop(state);
        self.wake.notify_one();
    }

    /// Whether the callback may be asked about the topic: not after several unconfirmed requests.
    pub(crate) fn may_ask(&self, callback: &str, topic: &str) -> Result<(), Duration> {
        let state = self.lock();
        state.refused.check(&state.hasher.hash_one((callback, topic)), Instant::now())
    }

    /// Number of requests that are not settled.
    pub(crate) fn len(&self) -> usize {
        self.lock().pending.len()
    }

    /// Reads a request, asks its callback and records the result.
    async fn verify(&self, job: Job, cut: &CancelSignal) {
        let (engine, id) = (Arc::clone(&self.engine), job.exchange.item);
        let read = tokio::task::spawn_blocking(move || {
            let Some(found) = engine.store.verification(id)? else { return Ok(None) };
            // A new subscription gets the notifications that are published from now on.
            let known = match engine.topic(&found.request.topic_url) {
                None if engine.held.is_shared() => {
                    engine.store.find_topic(&found.request.topic_url)?
                }
                known => known,
            };
            let head = known.and_then(|topic| engine.store.head(topic).ok());
            Ok::<_, LogError>(Some((found.request, head)))
        });
        let (request, head) = match read.await {
            Ok(Ok(Some(found))) => found,
            Ok(Ok(None)) => return self.forget(&job),
            Ok(Err(error)) => {
                tracing::error!(%error, "a request to be verified cannot be read; it is read again");
                let now = Instant::now();
                self.lock().lanes.finish(&job.exchange, ExchangeEnd::Silent, now);
                if !self.postpone(&job) {
                    self.drop_until_start(&job);
                }
                return;
            }
            Err(_) => return,
        };
        let request = &request;
        if request.mode == VerificationMode::Subscribe && request.challenge.is_empty() {
            return self.take_trusted(&job, request, head).await;
        }
        // The lease of a new subscription starts now.
        let asked = self.engine.now();
        let url = match request.mode {
            VerificationMode::Denied => {
                denied_url(&request.callback, &request.topic_url, request.reason.as_deref())
            }
            VerificationMode::Subscribe | VerificationMode::Unsubscribe => verification_url(
                &request.callback,
                if request.mode == VerificationMode::Subscribe {
                    Mode::Subscribe
                } else {
                    Mode::Unsubscribe
                },
                &request.topic_url,
                &request.challenge,
                request.lease_seconds,
            ),
        };
        let answer = match self.sender.recipient(&url) {
            Ok(_) if !self.engine.held.may_verify(id) => return self.withhold(&job),
            Ok(to) => {
                let asked =
                    self.sender.get(&to, Message::default(), BodyWanted::Whole(MAX_ANSWER_LENGTH));
                cut.unless(&job.exchange, asked).await
            }
            Err(error) => Some(Err(error)),
        };
        let contact = match &answer {
            Some(Ok(_)) => ExchangeEnd::Answered,
            Some(Err(error)) if matches!(error.kind(), ErrorKind::Connect | ErrorKind::Dns) => {
                ExchangeEnd::Unreachable
            }
            Some(Err(_)) | None => ExchangeEnd::Silent,
        };
        {
            let mut state = self.lock();
            let pace = state.lanes.finish(&job.exchange, contact, Instant::now());
            if let Some(pending) = state.pending.get_mut(&job.exchange.item) {
                pending.pace = pace;
            }
        }
        let outcome = match answer {
            Some(answer) => outcome(request, answer),
            None => {
                Outcome::Silent("no answer in time, and other callbacks were waiting".to_owned())
            }
        };
        self.conclude(&job, request, outcome, head, asked).await;
    }

    /// Accepts a request for a callback in the operator's list, without asking the callback.
    async fn take_trusted(&self, job: &Job, request: &NewVerification, head: Option<Offset>) {
        self.lock().lanes.finish(&job.exchange, ExchangeEnd::Answered, Instant::now());
        let outcome = if self.engine.options.trusts(&request.callback) {
            Outcome::Confirmed
        } else {
            Outcome::Refused("the callback is no longer a trusted one".to_owned())
        };
        self.conclude(job, request, outcome, head, self.engine.now()).await;
    }

    /// Records the result of a verification. `head` is the topic's last offset when the callback
    /// was asked, `asked` the time of the request.
    async fn conclude(
        &self,
        job: &Job,
        request: &NewVerification,
        outcome: Outcome,
        head: Option<Offset>,
        asked: Timestamp,
    ) {
        let host = host_of(&request.callback);
        let settled = match outcome {
            Outcome::Silent(error) => {
                if self.ask_again(job, request, &error) {
                    return;
                }
                Settled::Dropped
            }
            Outcome::Refused(error) => {
                tracing::info!(host, topic = request.topic_url, error, "not confirmed");
                self.engine.counters.unconfirmed.fetch_add(1, Relaxed);
                let _ = self.lock().refused.take(job.key, Instant::now());
                Settled::Dropped
            }
            Outcome::Confirmed => match self.confirmed(request, head, asked).await {
                Ok(settled) => settled,
                Err(error) => {
                    tracing::error!(%error, "a confirmed request cannot be recorded; it is asked again");
                    if self.ask_again(job, request, "the store failed") {
                        return;
                    }
                    Settled::Dropped
                }
            },
        };
        self.settle(job, request, settled).await;
    }

    /// Drops an unreadable request until the next start.
    fn forget(&self, job: &Job) {
        let mut state = self.lock();
        state.lanes.finish(&job.exchange, ExchangeEnd::Silent, Instant::now());
        state.pending.remove(&job.exchange.item);
        state.go_on(job.key, job.exchange.item, Instant::now());
    }

    /// Plans another attempt after a failure of the store, which does not count as one of the
    /// callback. `false` if the time for the request is over, or another node has it.
    fn postpone(&self, job: &Job) -> bool {
        let patience = self.engine.options.verification.patience;
        let mut state = self.lock();
        let pending = state.pending.get(&job.exchange.item);
        if pending.is_none_or(|pending| later(pending.created, patience) <= self.engine.now()) {
            return false;
        }
        if let Some(chain) = state.chains.get_mut(&job.key) {
            chain.waits = true;
        }
        state.lanes.retry_at(Instant::now() + STORE_PAUSE, job.exchange.item);
        drop(state);
        self.wake.notify_one();
        true
    }

    /// Puts a verification back that this node may not start now.
    fn withhold(&self, job: &Job) {
        let now = Instant::now();
        let mut state = self.lock();
        state.lanes.finish(&job.exchange, ExchangeEnd::Silent, now);
        state.ask(job.exchange.item, false, now);
    }

    /// The result of a confirmed request.
    async fn confirmed(
        &self,
        request: &NewVerification,
        head: Option<Offset>,
        asked: Timestamp,
    ) -> Result<Settled, LogError> {
        match request.mode {
            VerificationMode::Denied => return Ok(Settled::Dropped),
            VerificationMode::Unsubscribe => return Ok(Settled::Unsubscribed),
            VerificationMode::Subscribe => {}
        }
        let topic = if let Some(topic) = self.engine.topic(&request.topic_url) {
            topic
        } else {
            let (engine, url) = (Arc::clone(&self.engine), request.topic_url.clone());
            let opened = tokio::task::spawn_blocking(move || engine.open_topic(&url, false)).await;
            opened.map_err(|_| LogError::new(abreast_core::ErrorKind::Io, "the hub stops"))??
        };
        let mut secret = request.secret.clone();
        if request.challenge.is_empty() {
            // A confirmed secret must not be dropped because of a request that the callback did not
            // confirm.
            let (store, callback) = (Arc::clone(&self.engine.store), request.callback.clone());
            let known = tokio::task::spawn_blocking(move || {
                store.find_target(topic, &callback, TargetKind::Subscription)
            });
            let stopped = |_| LogError::new(abreast_core::ErrorKind::Io, "the hub stops");
            secret = known.await.map_err(stopped)??.and_then(|target| target.secret);
        }
        let lease = request.lease_seconds.map(Duration::from_secs);
        Ok(Settled::Subscribed(NewTarget {
            topic,
            kind: TargetKind::Subscription,
            address: request.callback.clone(),
            secret,
            lease_until: lease.map(|lease| later(asked, lease)),
            cursor: head,
        }))
    }

    async fn settle(&self, job: &Job, request: &NewVerification, settled: Settled) {
        let id = job.exchange.item;
        let (sender, receiver) = oneshot::channel();
        let ends = settled == Settled::Unsubscribed;
        let begins = matches!(settled, Settled::Subscribed(_));
        let subscription = match &settled {
            Settled::Subscribed(new) => Some((new.topic, new.address.clone())),
            Settled::Unsubscribed | Settled::Dropped => None,
        };
        if let Some((topic, callback)) = &subscription {
            self.engine.settling(*topic, callback);
        }
        self.engine.store.finish_verification_then(
            id,
            settled,
            Box::new(move |result| drop(sender.send(result))),
        );
        let result = receiver.await;
        match result {
            Ok(Ok(Some(target))) if begins => {
                tracing::info!(
                    target = target.id.0,
                    host = host_of(&target.address),
                    topic = request.topic_url,
                    "subscribed"
                );
                self.engine.counters.confirmed.fetch_add(1, Relaxed);
                self.engine.put(target);
            }
            Ok(Ok(target)) if ends => {
                self.engine.counters.confirmed.fetch_add(1, Relaxed);
                if let Some(target) = target {
                    let host = host_of(&target.address);
                    tracing::info!(
                        target = target.id.0,
                        host,
                        topic = request.topic_url,
                        "unsubscribed"
                    );
                    self.engine.counters.ended.fetch_add(1, Relaxed);
                    self.engine.forget(target.id);
                }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "the answer of a callback was not recorded; it is asked again");
                if self.postpone(job) {
                    if let Some((topic, callback)) = &subscription {
                        self.engine.settled(*topic, callback);
                    }
                    return;
                }
            }
            Ok(Ok(_)) | Err(_) => {}
        }
        if let Some((topic, callback)) = &subscription {
            self.engine.settled(*topic, callback);
        }
        self.drop_until_start(job);
    }

    /// Removes a request from memory; one that is still in the store is verified after the next
    /// start.
    fn drop_until_start(&self, job: &Job) {
        let id = job.exchange.item;
        let mut state = self.lock();
        state.pending.remove(&id);
        state.go_on(job.key, id, Instant::now());
        drop(state);
        self.wake.notify_one();
    }

    /// Plans another attempt, unless the attempts or the time are used up, or there is a newer
    /// request.
    fn ask_again(&self, job: &Job, request: &NewVerification, error: &str) -> bool {
        let options = &self.engine.options.verification;
        let id = job.exchange.item;
        let mut state = self.lock();
        let key = job.key;
        // Another node has the request since, and verifies it.
        let Some(pending) = state.pending.get_mut(&id) else { return true };
        pending.attempts += 1;
        let attempts = pending.attempts;
        let too_late = later(pending.created, options.patience) <= self.engine.now();
        let newer = state.chains.get(&key).is_some_and(|chain| !chain.behind.is_empty());
        if attempts >= options.attempts || too_late || newer {
            tracing::info!(
                host = host_of(&request.callback),
                topic = request.topic_url,
                error,
                "not confirmed"
            );
            self.engine.counters.unconfirmed.fetch_add(1, Relaxed);
            let _ = state.refused.take(key, Instant::now());
            return false;
        }
        let pause =
            options.retry.saturating_mul(4_u32.saturating_pow(attempts - 1)).min(options.patience);
        if let Some(chain) = state.chains.get_mut(&key) {
            chain.waits = true;
        }
        state.lanes.retry_at(Instant::now() + pause, id);
        drop(state);
        let next_at = later(self.engine.now(), pause);
        self.engine.store.retry_verification_then(id, attempts, next_at, Box::new(|_| ()));
        self.wake.notify_one();
        true
    }
}

impl Worker for Verifier {
    type Job = Job;

    fn wake(&self) -> &Notify {
        &self.wake
    }

    fn prepare(self: &Arc<Self>, now: Instant) -> bool {
        let mut state = self.lock();
        while let Some(id) = state.lanes.retry(now) {
            state.ask(id, true, now);
        }
        state.lanes.tick(now);
        true
    }

    fn next_job(&self, cut: &Arc<CancelSignal>) -> Option<Job> {
        if self.engine.is_stopping() || !self.engine.held.may_start() {
            return None;
        }
        let (now, mut state) = (Instant::now(), self.lock());
        loop {
            let exchange = state.lanes.next(now, Some(cut))?;
            let is_held = self.engine.held.has_loaded_request(exchange.item);
            if let Some(pending) = state.pending.get(&exchange.item).filter(|_| is_held) {
                return Some(Job { exchange, key: pending.key });
            }
            state.lanes.finish(&exchange, ExchangeEnd::Silent, now);
        }
    }

    async fn work(&self, job: Job, cut: &Arc<CancelSignal>) -> Option<Job> {
        self.verify(job, cut).await;
        let next = self.next_job(cut);
        // The next wake-up may be earlier now.
        self.wake.notify_one();
        next
    }

    fn due(&self, _: Instant) -> Option<Instant> {
        self.lock().lanes.due()
    }
}

impl State {
    fn pending(&self, request: &NewVerification, attempts: u32, created: Timestamp) -> Pending {
        Pending {
            key: self.hasher.hash_one((request.callback.as_str(), request.topic_url.as_str())),
            callback: self.lanes.name_of(&request.callback),
            attempts,
            created,
            // The reason of failures before the start is unknown.
            pace: if attempts > 0 { Pace::Slow } else { Pace::New },
        }
    }

    fn add(&mut self, id: VerificationId, pending: Pending) {
        let key = pending.key;
        self.pending.insert(id, pending);
        let Some(chain) = self.chains.get_mut(&key) else {
            self.chains.insert(
                key,
                VerificationChain { current: id, waits: false, behind: VecDeque::new() },
            );
            return self.ask(id, false, Instant::now());
        };
        // The request is verified after the current one. If the current one waits for a retry,
        // retry it at once.
        chain.behind.push_back(id);
        if chain.waits {
            let current = chain.current;
            self.ask(current, true, Instant::now());
        }
    }

    fn ask(&mut self, id: VerificationId, again: bool, now: Instant) {
        let Some(pending) = self.pending.get(&id) else { return };
        if let Some(chain) = self.chains.get_mut(&pending.key) {
            if again && !chain.waits {
                return;
            }
            chain.waits = false;
        }
        let patience = self.lanes.options().patience;
        self.lanes.push(pending.callback, id, pending.pace, patience, now);
    }

    /// Starts the next request for the same callback and topic after the end of one.
    fn go_on(&mut self, key: u64, ended: VerificationId, now: Instant) {
        let Some(chain) = self.chains.get_mut(&key).filter(|chain| chain.current == ended) else {
            return;
        };
        match chain.behind.pop_front() {
            Some(next) => {
                chain.current = next;
                chain.waits = false;
                self.ask(next, false, now);
            }
            None => drop(self.chains.remove(&key)),
        }
    }
}

fn outcome(request: &NewVerification, answer: Result<Answer, Error>) -> Outcome {
    match answer {
        // A denial does not need a confirmation.
        Ok(answer)
            if request.mode == VerificationMode::Denied
                || is_confirmed(answer.status.as_u16(), &answer.body, &request.challenge) =>
        {
            Outcome::Confirmed
        }
        Ok(answer) if answer.status.is_server_error() => {
            Outcome::Silent(format!("it answered {}", answer.status))
        }
        Ok(answer) if answer.status.is_success() => {
            Outcome::Refused("its answer is not the challenge".to_owned())
        }
        Ok(answer) => Outcome::Refused(format!("it answered {}", answer.status)),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Size | ErrorKind::Private | ErrorKind::Url | ErrorKind::Scheme
            ) =>
        {
            Outcome::Refused(crate::message::text::failure(&error))
        }
        Err(error) => Outcome::Silent(crate::message::text::failure(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_waits_is_small() {
        // Besides its entries in maps and its turn: none of its URLs, nor the name of its host.
        assert!(size_of::<Pending>() + size_of::<VerificationChain>() <= 96);
    }
}
