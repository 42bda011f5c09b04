//! One delivery.

use super::lanes::{CancelSignal, Exchange, ExchangeEnd};
use super::outcome::{Outcome, backoff};
use super::pace::NODE_PAUSE_MAX;
use super::payloads::{PayloadLookup, Ready, headers, later};
use super::table::{TargetActivity, TargetIndex, host_of};
use super::worker::Worker;
use super::{Engine, State};
use crate::deliver::failing;
use abreast_core::hub::{Attempt, DeadLetter, Ending, TargetKind};
use abreast_core::{ErrorKind, LogError, Offset, TopicId};
use abreast_net::{BodyWanted, HeaderMap, HeaderValue, Message, Recipient, TRACE};
use abreast_websub::{Key, Publish, Request, SIGNATURE_HEADER};
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tracing::Instrument as _;

/// Most bytes of a response that are read; its content is ignored [websub §7].
const ANSWER_BYTES: usize = 4 << 10;
/// Largest body that is signed on the same thread.
const SIGNED_HERE: usize = 64 << 10;
/// The pause after a failure on the hub's side.
const OUR_PAUSE: Duration = Duration::from_secs(1);

/// One attempt to deliver a notification.
pub(crate) struct Job {
    exchange: Exchange<(TargetIndex, u32)>,
    pub(super) target: abreast_core::hub::TargetId,
    pub(super) topic: TopicId,
    pub(super) topic_url: Arc<str>,
    head: Offset,
    kind: TargetKind,
    pub(super) offset: Offset,
    recipient: Result<Recipient, abreast_net::Error>,
    /// URL of the recipient, unless it is a subscriber.
    pub(super) hub: Option<String>,
    /// The current secret: a renewed secret is used at once.
    secret: Option<Box<[u8]>>,
    pub(super) first_failed: Option<Timestamp>,
    /// Offset of the last notification that was given up, if this is to be reported first.
    gap: Option<Offset>,
    begun: Instant,
    pub(super) time: Timestamp,
}

/// Notifications that are given up, up to the last.
#[derive(Clone, Copy)]
pub(super) struct GiveUp {
    last: Offset,
    /// Whether the subscriber is notified about this before the cursor moves.
    reports: bool,
}

/// The result of a delivery.
pub(super) enum AttemptResult {
    Tried {
        outcome: Outcome,
        /// Offset of the last notification in the attempt.
        last: Offset,
        give_up: Option<GiveUp>,
    },
    /// The subscriber was notified that it misses notifications, up to this one.
    Reported { outcome: Outcome, last: Offset },
    /// The notification was dropped; the offset of the next stored one.
    Trimmed(Offset),
    /// The store, or the renderer of the bytes, failed.
    Ours(LogError),
    /// This node may not start the delivery now, because it did not renew its lease in time.
    Withheld,
}

impl Worker for Engine {
    type Job = Job;

    fn wake(&self) -> &Notify {
        &self.wake
    }

    fn prepare(self: &Arc<Self>, now: Instant) -> bool {
        self.take_changed_topics();
        self.take_retries(now);
        self.save(now);
        self.part();
        !self.is_stopping()
    }

    fn next_job(&self, cut: &Arc<CancelSignal>) -> Option<Job> {
        self.take_job(&mut self.lock(), Instant::now(), cut)
    }

    async fn work(&self, job: Job, cut: &Arc<CancelSignal>) -> Option<Job> {
        let span = tracing::debug_span!(
            target: TRACE,
            "delivery",
            topic = %job.topic_url,
            position = job.offset.0,
            kind = ?job.kind,
        );
        let attempt = self.attempt(&job).instrument(span);
        let ended = match cut.unless(&job.exchange, attempt).await {
            Some(ended) => ended,
            None => self.tried(&job, Outcome::cut_off(job.begun.elapsed())).await,
        };
        self.finish(&job, ended, cut)
    }

    fn due(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        state.armed = self.next_due(&mut state, now);
        state.armed
    }
}

impl Engine {
    fn take_job(&self, state: &mut State, begun: Instant, cut: &Arc<CancelSignal>) -> Option<Job> {
        if self.is_stopping() || !self.held.may_start() || self.waits_for_store(state, begun) {
            return None;
        }
        let time = self.now();
        loop {
            let exchange = state.lanes.next(begun, Some(cut))?;
            let (place, epoch) = exchange.item;
            let State { table, lanes, .. } = state;
            let topics = &table.topics;
            let Some(topic) = table.get(place).and_then(|entry| topics.get(&entry.topic)) else {
                lanes.finish(&exchange, ExchangeEnd::Silent, begun);
                continue;
            };
            let (topic_url, head) = (Arc::clone(&topic.url), topic.head);
            let entry = table
                .get_mut(place)
                .filter(|entry| entry.epoch == epoch && entry.doing == TargetActivity::Ready);
            let Some(entry) = entry else {
                lanes.finish(&exchange, ExchangeEnd::Silent, begun);
                continue;
            };
            if !self.held.has_loaded(entry.id) {
                // The shard is being loaded, which then starts this delivery; or it is lost, and its
                // targets leave the table soon.
                entry.doing = TargetActivity::Idle;
                lanes.finish(&exchange, ExchangeEnd::Silent, begun);
                continue;
            }
            if self.is_over(entry, time) {
                entry.doing = TargetActivity::Idle;
                let (topic, address) = (entry.topic, entry.address.clone());
                lanes.finish(&exchange, ExchangeEnd::Silent, begun);
                if !state.is_settling(topic, &address) {
                    self.end(state, place, Ending::LeaseOver);
                    self.wake.notify_one();
                }
                continue;
            }
            entry.doing = TargetActivity::Flying;
            return Some(Job {
                exchange,
                target: entry.id,
                topic: entry.topic,
                topic_url,
                head,
                kind: entry.kind,
                offset: Offset(entry.cursor.0 + 1),
                recipient: self.sender.recipient(&entry.address),
                hub: (entry.kind != TargetKind::Subscription).then(|| entry.address.to_string()),
                secret: entry.secret.clone(),
                first_failed: entry.trouble.as_ref().and_then(|trouble| trouble.first_failed),
                gap: entry.trouble.as_ref().and_then(|trouble| trouble.gap),
                begun,
                time,
            });
        }
    }

    async fn attempt(&self, job: &Job) -> AttemptResult {
        if job.kind == TargetKind::Node {
            return self.attempt_node(job).await;
        }
        let recipient = match &job.recipient {
            Ok(recipient) => recipient,
            Err(error) => {
                let error = crate::message::text::failure(error);
                return self.tried(job, Outcome::failed(None, error, ExchangeEnd::Silent)).await;
            }
        };
        if job.kind == TargetKind::Webhook {
            return self.attempt_webhook(job, recipient).await;
        }
        if let Some(last) = job.gap {
            return self.report_gap(job, recipient, last).await;
        }
        let ready = match self
            .cache
            .find(job.topic, &job.topic_url, job.offset, job.exchange.pace.is_slow())
            .await
        {
            Ok(PayloadLookup::Ready(ready)) => ready,
            Ok(PayloadLookup::Trimmed(next)) => {
                return self.report_gap(job, recipient, Offset(next.0 - 1)).await;
            }
            Err(error) => return AttemptResult::Ours(error),
        };
        let sent = match job.kind {
            TargetKind::Subscription | TargetKind::Node | TargetKind::Webhook => {
                self.deliver(job, recipient, &ready).await
            }
            TargetKind::FatSubmission => {
                let hub = job.hub.as_deref().unwrap_or_default();
                let headers =
                    headers(&ready.media_type, hub, &job.topic_url, &ready.links, job.offset);
                let message = Message { headers, common: None, body: ready.body.clone() };
                self.send(job, recipient, message).await
            }
            TargetKind::FormSubmission => {
                let mut headers = HeaderMap::with_capacity(1);
                headers.insert(
                    "content-type",
                    HeaderValue::from_static("application/x-www-form-urlencoded"),
                );
                let form =
                    Request::Publish(Publish { topics: vec![job.topic_url.to_string()] }).to_form();
                let message = Message { headers, common: None, body: Bytes::from(form) };
                self.send(job, recipient, message).await
            }
        };
        match sent {
            Some(outcome) => self.tried(job, outcome).await,
            None => AttemptResult::Withheld,
        }
    }

    /// Sends a request to a recipient; `None` if this node may not start a delivery now.
    pub(super) async fn send(
        &self,
        job: &Job,
        recipient: &Recipient,
        message: Message<'_>,
    ) -> Option<Outcome> {
        if !self.held.may_deliver(job.target) {
            return None;
        }
        let sent = self.sender.post(recipient, message, BodyWanted::Nothing(ANSWER_BYTES)).await;
        Some(Outcome::of(sent, self.options.retries.retry_after))
    }

    /// Notifies a subscriber that it misses everything up to `last`, if the topic's notifications
    /// do not show this themselves. The cursor moves after this was accepted, so that a crash does
    /// not lose the report.
    async fn report_gap(&self, job: &Job, recipient: &Recipient, last: Offset) -> AttemptResult {
        let gap = match job.kind {
            TargetKind::Subscription => self.cache.gap(&job.topic_url, last).await,
            TargetKind::FatSubmission
            | TargetKind::FormSubmission
            | TargetKind::Node
            | TargetKind::Webhook => Ok(None),
        };
        let ready = match gap {
            Ok(Some(ready)) => Arc::new(ready),
            Ok(None) => return AttemptResult::Trimmed(Offset(last.0 + 1)),
            Err(error) => return AttemptResult::Ours(error),
        };
        match self.deliver(job, recipient, &ready).await {
            Some(outcome) => AttemptResult::Reported { outcome, last },
            None => AttemptResult::Withheld,
        }
    }

    /// Sends a notification to a subscriber, as [`Engine::send`] does.
    async fn deliver(
        &self,
        job: &Job,
        recipient: &Recipient,
        ready: &Arc<Ready>,
    ) -> Option<Outcome> {
        let message = Message {
            headers: signature(ready, job.secret.as_deref(), &self.options).await,
            common: Some(&ready.headers),
            body: ready.body.clone(),
        };
        self.send(job, recipient, message).await
    }

    /// An attempt to publish to a node. Dropped notifications are not reported there: the next item
    /// shows subscribers that changes are missing.
    async fn attempt_node(&self, job: &Job) -> AttemptResult {
        let found = self
            .cache
            .find(job.topic, &job.topic_url, job.offset, job.exchange.pace.is_slow())
            .await;
        match found {
            Ok(PayloadLookup::Ready(_)) if !self.held.may_deliver(job.target) => {
                AttemptResult::Withheld
            }
            Ok(PayloadLookup::Ready(ready)) => match self.publish(job, &ready).await {
                Ok((outcome, published)) => match self.tried(job, outcome).await {
                    AttemptResult::Tried { outcome, give_up, .. } => {
                        AttemptResult::Tried { outcome, last: published, give_up }
                    }
                    other => other,
                },
                Err(error) => AttemptResult::Ours(error),
            },
            Ok(PayloadLookup::Trimmed(next)) => AttemptResult::Trimmed(next),
            Err(error) => AttemptResult::Ours(error),
        }
    }

    /// Publishes a notification to a node of an XMPP service, in the same item as waiting
    /// notifications: otherwise a service with a limit of a few items per second would fall further
    /// and further behind. Returns the last published offset.
    #[cfg(feature = "xmpp")]
    async fn publish(&self, job: &Job, ready: &Ready) -> Result<(Outcome, Offset), LogError> {
        let Some(nodes) = &self.nodes else {
            return Ok((Outcome::no_xmpp("no account is configured in `[xmpp]`"), job.offset));
        };
        let (mut last, mut changes) = (job.offset, ready.changes);
        if let Some((after, end)) = changes.filter(|_| job.head > job.offset) {
            let (joined, end) = self.cache.joined(job.topic, job.offset, (after, end)).await?;
            (last, changes) = (joined, Some((after, end)));
        }
        let item = super::nodes::NodeItem {
            target: job.target,
            address: job.hub.as_deref().unwrap_or_default(),
            topic_url: &job.topic_url,
            offset: job.offset,
            ready,
            changes,
        };
        Ok((nodes.publish(&item, &self.cache).await, last))
    }

    /// The store may have targets from a program with XMPP support.
    #[cfg(not(feature = "xmpp"))]
    #[expect(clippy::unused_async, reason = "as with the feature `xmpp`")]
    async fn publish(&self, job: &Job, _: &Ready) -> Result<(Outcome, Offset), LogError> {
        let outcome = Outcome::no_xmpp("this program was built without the feature `xmpp`");
        Ok((outcome, job.offset))
    }

    /// Decides whether to give up, and up to which offset: notifications that were accepted before
    /// the limit of time and could not be delivered since.
    pub(super) async fn tried(&self, job: &Job, outcome: Outcome) -> AttemptResult {
        let mut give_up = None;
        let patience = self.options.retries.give_up;
        let since = job.first_failed.unwrap_or(job.time);
        let failed = matches!(outcome, Outcome::Failed { .. })
            || (outcome == Outcome::Gone && !ends_when_gone(job.kind));
        if failed && later(since, patience) <= self.now() {
            let (store, topic) = (Arc::clone(&self.store), job.topic);
            let patience = i64::try_from(patience.as_micros()).unwrap_or(i64::MAX);
            let before = self.now().plus_micros(-patience);
            let found =
                tokio::task::spawn_blocking(move || store.accepted_before(topic, before)).await;
            if let Ok(Ok(before)) = found {
                give_up = Some(before).filter(|before| *before >= job.offset);
            }
        }
        let give_up = match give_up {
            None => None,
            Some(last) if job.kind != TargetKind::Subscription => {
                Some(GiveUp { last, reports: false })
            }
            // Try again later: it is unknown whether the loss can be reported.
            Some(last) => {
                let gap = self.cache.gap(&job.topic_url, last).await;
                gap.ok().map(|gap| GiveUp { last, reports: gap.is_some() })
            }
        };
        AttemptResult::Tried { outcome, last: job.offset, give_up }
    }

    /// Records the result of a delivery and takes the next one.
    fn finish(&self, job: &Job, ended: AttemptResult, cut: &Arc<CancelSignal>) -> Option<Job> {
        let now = Instant::now();
        let contact = match &ended {
            AttemptResult::Tried { outcome, .. } | AttemptResult::Reported { outcome, .. } => {
                outcome.contact()
            }
            AttemptResult::Trimmed(_) | AttemptResult::Ours(_) | AttemptResult::Withheld => {
                ExchangeEnd::Silent
            }
        };
        let (place, epoch) = job.exchange.item;
        let mut state = self.lock();
        let pace = state.lanes.finish(&job.exchange, contact, now);
        if matches!(ended, AttemptResult::Tried { .. } | AttemptResult::Reported { .. })
            && let Some(entry) = state.table.get_mut(place)
            && entry.epoch == epoch
        {
            entry.pace = pace;
            if contact == ExchangeEnd::Answered {
                let took = now.saturating_duration_since(job.begun);
                entry.took = u16::try_from(took.as_millis()).unwrap_or(u16::MAX);
            }
        }
        // There are few webhooks: store the result at once, so that a kill repeats little.
        if job.kind == TargetKind::Webhook {
            state.save_at = Some(now);
        }
        if state
            .table
            .get(place)
            .is_some_and(|entry| entry.epoch == epoch && entry.doing == TargetActivity::Flying)
        {
            match ended {
                AttemptResult::Tried { outcome: Outcome::Taken(status), last, .. } => {
                    self.taken(&mut state, place, job, last, status, now);
                }
                AttemptResult::Reported { outcome: Outcome::Taken(status), last } => {
                    let letter =
                        DeadLetter::range(job.offset, last, "reported as missing", self.now());
                    self.give_up(&mut state, place, letter);
                    self.taken(&mut state, place, job, last, status, now);
                }
                AttemptResult::Tried { outcome: Outcome::Gone, .. }
                | AttemptResult::Reported { outcome: Outcome::Gone, .. }
                    if ends_when_gone(job.kind) =>
                {
                    if job.kind == TargetKind::Webhook {
                        self.webhooks.forget(job.target);
                        let host = job.hub.as_deref().map(host_of);
                        tracing::warn!(
                            host,
                            topic = &*job.topic_url,
                            help = "remove it from `set.webhook`; the next start or reload begins to send again",
                            "a webhook answered 410 and gets no more changes"
                        );
                    }
                    self.end(&mut state, place, Ending::Gone);
                }
                AttemptResult::Tried { outcome, give_up, .. } => {
                    self.failed(&mut state, place, job, outcome, give_up, now);
                }
                AttemptResult::Reported { outcome, .. } => {
                    self.failed(&mut state, place, job, outcome, None, now);
                }
                AttemptResult::Trimmed(next) => {
                    let last = Offset(next.0 - 1);
                    let letter = DeadLetter::range(job.offset, last, "no longer kept", self.now());
                    self.give_up(&mut state, place, letter);
                    self.begin(&mut state, place);
                }
                // The notification can never be made: its set is not published any more.
                AttemptResult::Ours(error) if error.kind() == ErrorKind::NoSet => {
                    let letter = DeadLetter::range(
                        job.offset,
                        job.head,
                        "the set is no longer published",
                        self.now(),
                    );
                    self.give_up(&mut state, place, letter);
                    self.begin(&mut state, place);
                }
                // The delivery starts after the next renewal.
                AttemptResult::Withheld => self.begin(&mut state, place),
                AttemptResult::Ours(error) => {
                    tracing::warn!(topic = &*job.topic_url, offset = job.offset.0, %error, "a notification cannot be made");
                    wait(&mut state, place, now + OUR_PAUSE);
                }
            }
        }
        let next = self.take_job(&mut state, now, cut);
        let due = self.next_due(&mut state, now);
        let sooner = due.is_some_and(|due| state.armed.is_none_or(|armed| due < armed));
        if sooner {
            state.armed = due;
        }
        let ends = !state.ending.is_empty();
        drop(state);
        if sooner || ends || self.is_stopping() {
            self.wake.notify_one();
        }
        next
    }

    /// Records that the target has everything up to `last`.
    fn taken(
        &self,
        state: &mut State,
        place: TargetIndex,
        job: &Job,
        last: Offset,
        status: u16,
        now: Instant,
    ) {
        self.counters.delivered.fetch_add(1, Relaxed);
        let lag = self.now().as_micros() - job.time.as_micros();
        metrics::histogram!("abreast_hub_delivery_lag_seconds").record(lag.max(0) as f64 / 1e6);
        let Some(entry) = state.table.get_mut(place) else { return };
        // A recipient that fetches the topic has its current content.
        entry.cursor = if job.kind == TargetKind::FormSubmission { job.head } else { last };
        if let Some(trouble) = entry.trouble.take() {
            let attempt = attempt_of(job, trouble.attempts + 1, Some(status), None, now);
            state.table.note(place, attempt);
        }
        state.table.mark_dirty(place);
        let is_last = job.kind != TargetKind::Subscription && {
            let entry = state.table.get(place);
            entry.is_some_and(|entry| {
                state.last_words.contains(&entry.id) && entry.cursor >= job.head
            })
        };
        if is_last {
            return self.end(state, place, Ending::NotConfigured);
        }
        self.begin(state, place);
    }

    /// Moves the cursor past the notifications that were given up.
    fn give_up(&self, state: &mut State, place: TargetIndex, letter: DeadLetter) {
        self.counters.given_up.fetch_add(letter.letters, Relaxed);
        let last = letter.last;
        state.table.add_dead_letter(place, letter);
        if let Some(entry) = state.table.get_mut(place) {
            entry.cursor = entry.cursor.max(last);
        }
        state.table.mark_dirty(place);
    }

    fn failed(
        &self,
        state: &mut State,
        place: TargetIndex,
        job: &Job,
        outcome: Outcome,
        give_up: Option<GiveUp>,
        now: Instant,
    ) {
        self.counters.failed.fetch_add(1, Relaxed);
        let (status, error, help, pause) = match outcome {
            Outcome::Failed { status, error, help, pause, .. } => (status, error, help, pause),
            Outcome::Gone | Outcome::Taken(_) => {
                (Some(410), "the hub answered 410".to_owned(), None, None)
            }
        };
        let time = self.now();
        let Some(entry) = state.table.get_mut(place) else { return };
        let trouble = entry.trouble.get_or_insert_default();
        trouble.attempts = trouble.attempts.saturating_add(1);
        trouble.failures = trouble.failures.saturating_add(1);
        trouble.first_failed.get_or_insert(job.time);
        let mut pause = pause.unwrap_or_else(|| backoff(&self.options.retries, trouble.failures));
        if job.kind == TargetKind::Node {
            // All nodes wait for the same connection.
            pause = pause.min(NODE_PAUSE_MAX);
        }
        trouble.next_at = Some(later(time, pause));
        trouble.status = status;
        // At powers of two: soon at first, then rarely while the failures continue.
        if job.kind != TargetKind::Subscription && trouble.failures.is_power_of_two() {
            let failures = trouble.failures;
            let what = match job.kind {
                TargetKind::Node => "a node",
                TargetKind::Webhook => "a webhook",
                _ => "another hub",
            };
            // The whole URL of a webhook may be a secret.
            let hub = match job.kind {
                TargetKind::Webhook => host_of(&entry.address),
                _ => entry.address.to_string(),
            };
            tracing::warn!(
                hub,
                topic = &*job.topic_url,
                error,
                failures,
                help = help.unwrap_or_else(|| failing::help(job.kind, status)),
                "{what} does not accept a notification"
            );
        }
        let attempts = trouble.attempts;
        if let Some(given) = give_up {
            trouble.attempts = 0;
            trouble.gap = Some(given.last).filter(|_| given.reports);
        }
        let (id, host) = (entry.id.0, host_of(&entry.address));
        let error = help.map_or(error.clone(), |help| format!("{error}; {help}"));
        tracing::debug!(
            target = id,
            host,
            offset = job.offset.0,
            attempts,
            error,
            "a delivery failed"
        );
        state.table.note(place, attempt_of(job, attempts, status, Some(error.clone()), now));
        if let Some(GiveUp { last, reports: false }) = give_up {
            let letter = DeadLetter::range(job.offset, last, error, time);
            tracing::warn!(
                target = id,
                host,
                first = job.offset.0,
                last = last.0,
                "notifications were given up; the subscription stays"
            );
            self.give_up(state, place, letter);
            // Try the next notification at once if no pause is needed [websub §7].
            rest_if_done(state, place);
        }
        state.table.mark_dirty(place);
        if state.table.get(place).is_some_and(|entry| entry.doing == TargetActivity::Flying) {
            wait(state, place, now + pause);
        }
    }
}

/// Whether a target of this kind ends when it answers 410. A hub may do so for one topic only, and a
/// mistake of its operator must not end notifications.
fn ends_when_gone(kind: TargetKind) -> bool {
    matches!(kind, TargetKind::Subscription | TargetKind::Webhook)
}

fn rest_if_done(state: &mut State, place: TargetIndex) {
    let Some(entry) = state.table.get(place) else { return };
    let head = state.table.topics.get(&entry.topic).map_or(Offset(0), |topic| topic.head);
    if entry.cursor >= head
        && let Some(entry) = state.table.get_mut(place)
    {
        if let Some(trouble) = &mut entry.trouble {
            trouble.next_at = None;
        }
        entry.doing = TargetActivity::Idle;
    }
}

fn wait(state: &mut State, place: TargetIndex, until: Instant) {
    let State { table, lanes, .. } = state;
    if let Some(entry) = table.get_mut(place) {
        entry.doing = TargetActivity::Waiting;
        lanes.retry_at(until, (place, entry.epoch));
    }
}

fn attempt_of(
    job: &Job,
    number: u32,
    status: Option<u16>,
    error: Option<String>,
    now: Instant,
) -> Attempt {
    let took = now.saturating_duration_since(job.begun);
    Attempt { offset: job.offset, number, time: job.time, status, error, took }
}

/// The signature, for subscribers with a secret only [websub §7.1].
async fn signature(
    ready: &Arc<Ready>,
    secret: Option<&[u8]>,
    options: &crate::HubOptions,
) -> HeaderMap {
    let Some(secret) = secret else { return HeaderMap::new() };
    let key = Key::new(options.signature, secret);
    let signature = if ready.body.len() > SIGNED_HERE {
        let (body, key) = (ready.body.clone(), key.clone());
        tokio::task::spawn_blocking(move || key.sign(&body)).await.ok()
    } else {
        None
    };
    let signature = signature.unwrap_or_else(|| key.sign(&ready.body));
    let mut headers = HeaderMap::with_capacity(1);
    if let Ok(value) = HeaderValue::from_str(&signature.to_string()) {
        headers.insert(SIGNATURE_HEADER, value);
    }
    headers
}
