//! Topics fetched from their hosts, after a report that they changed or a publication in their
//! name.
//!
//! Topics to be fetched are stored in a separate log until they are fetched: a report that was
//! answered with 202 is not lost. Reports by publishers with tokens have separate places. For other
//! reports the clients take turns, and for each client the topics by their hosts. A topic that
//! waits for its next attempt does not occupy a place.

mod log;

use crate::deliver::Engine;
use crate::deliver::lanes::{CancelSignal, Exchange, ExchangeEnd, Lanes};
use crate::deliver::options::LaneOptions;
use crate::deliver::pace::Pace;
use crate::deliver::table::{host_of, origin_of};
use crate::deliver::worker::Worker;
use crate::message::body_bytes::shared;
use crate::message::client::Client;
use crate::message::text;
use crate::message::topic_host::TopicHost;
use abreast_core::{ErrorKind, LogError, NewNotification, Notification, Offset, Payload, TopicId};
use abreast_net::{Answer, BodyWanted, HeaderMap, HeaderValue, Message, Sender};
use abreast_websub::{PublishedLinks, discover};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OnceCell};

/// The log of topics to be fetched.
const LOG: &str = "abreast:to-be-fetched";
/// Most topics that wait to be fetched; the same number for publishers with tokens.
const MAX_WAITING: usize = 10_000;
/// Most waiting topics of anonymous clients: for one client, and for one host unless a topic has
/// subscribers.
const MAX_WAITING_OF_CLIENT: usize = 1_000;
const MAX_WAITING_OF_HOST: usize = 2_000;
/// Most topics that are fetched at a time, both for known and for new topics; the same numbers for
/// publishers with tokens.
const AT_ONCE: usize = 16;
/// Most fetches of slow or silent topics, and most that released their place to others.
const SLOW_AT_ONCE: usize = 16;
const ASIDE: usize = 64;
/// Most fetches for one client; for publishers with tokens, for one host.
const PER_GROUP: usize = 4;
/// Attempts to fetch a topic after each report of a change; then it waits for the next report.
const ATTEMPTS: u32 = 4;
/// How long the hub link of a topic is cached.
const CHECKED_FOR: Duration = Duration::from_secs(60);
/// How long a topic's link to another hub is cached.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// Most topics whose hub links are cached.
const MAX_CHECKED: usize = 4_096;

/// Fetches topics.
pub(crate) struct Fetcher {
    /// The log of topics to be fetched.
    pub(crate) topic: TopicId,
    engine: Arc<Engine>,
    sender: Sender,
    waiting: Mutex<Waiting>,
    wake: Notify,
    checked: Mutex<HashMap<String, DiscoveryResult>>,
}

/// Topics that are to be fetched.
struct Waiting {
    topics: HashMap<Arc<str>, ChangedTopic>,
    numbers: HashMap<u64, Arc<str>>,
    next_number: u64,
    /// For anonymous clients, and for publishers with tokens.
    lanes: [Lanes<u64>; 2],
    /// Number of waiting topics, from anonymous clients and from publishers with tokens.
    counts: [usize; 2],
    clients: HashMap<IpAddr, usize>,
    hosts: HashMap<String, usize>,
    last: Offset,
    trimmed: Offset,
    /// The last offset up to which all reports of the log were added.
    read: Offset,
    /// Later reports that were added when this node recorded them.
    added: BTreeSet<Offset>,
}

/// A topic that was reported as changed.
struct ChangedTopic {
    number: u64,
    /// Offset of the last report in the log, which is stored until the topic is fetched.
    last: Offset,
    /// Index of the lane: 0 for anonymous clients.
    share: usize,
    client: Option<IpAddr>,
    attempts: u32,
    /// Attempts after which the last report is given up.
    attempts_max: u32,
    pace: Pace,
}

/// The client that reported a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeReporter {
    /// A part of this process, or a publisher with a token.
    Known,
    /// An anonymous client, by its group ([`Client::group`]).
    Stranger(IpAddr),
    /// The report is from before the start.
    Forgotten,
}

pub(crate) struct Job {
    exchange: Exchange<u64>,
    share: usize,
    url: Arc<str>,
    /// Offset of the report; a later report requires another fetch.
    spoken: Offset,
}

#[derive(Clone)]
struct DiscoveryResult {
    at: Instant,
    /// The topic's host, or the reason why clients may not publish for it here.
    found: Arc<OnceCell<Result<TopicHost, String>>>,
}

impl DiscoveryResult {
    fn is_fresh(&self) -> bool {
        let age = if matches!(self.found.get(), Some(Err(_))) { REFUSED_FOR } else { CHECKED_FOR };
        self.at.elapsed() < age
    }
}

impl Waiting {
    fn new() -> Self {
        let lanes = || {
            Lanes::new(LaneOptions {
                all: AT_ONCE,
                new: AT_ONCE,
                per_host: PER_GROUP,
                slow: SLOW_AT_ONCE,
                silent: SLOW_AT_ONCE,
                aside: ASIDE,
                ..LaneOptions::default()
            })
        };
        Self {
            topics: HashMap::new(),
            numbers: HashMap::new(),
            next_number: 0,
            lanes: [lanes(), lanes()],
            counts: [0; 2],
            clients: HashMap::new(),
            hosts: HashMap::new(),
            last: Offset(0),
            trimmed: Offset(0),
            read: Offset(0),
            added: BTreeSet::new(),
        }
    }

    /// Adds a topic to its lane.
    fn push(&mut self, url: &Arc<str>, now: Instant) {
        let Some(spoken) = self.topics.get(url) else { return };
        let lanes = &mut self.lanes[spoken.share];
        let to = if spoken.share == 0 {
            // Clients take turns, and for each client the topics by their hosts.
            let client = spoken.client.map_or_else(String::new, |client| client.to_string());
            lanes.name(&format!("{client} {}", origin_of(url)), &client)
        } else {
            lanes.name_of(url)
        };
        let patience = lanes.options().patience;
        lanes.push(to, spoken.number, spoken.pace, patience, now);
    }

    fn remove(&mut self, url: &str) {
        let Some(spoken) = self.topics.remove(url) else { return };
        self.numbers.remove(&spoken.number);
        self.counts[spoken.share] -= 1;
        if spoken.share == 0 {
            if let Some(client) = spoken.client {
                count_down(&mut self.clients, &client);
            }
            count_down(&mut self.hosts, &host_of(url));
        }
    }
}

fn count_down<K: Hash + Eq>(counts: &mut HashMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

impl Fetcher {
    pub(crate) fn new(engine: Arc<Engine>, sender: Sender) -> Result<Arc<Self>, LogError> {
        let topic = engine.open_topic(LOG, true)?;
        let waiting = Mutex::new(Waiting::new());
        let fetcher =
            Self { topic, engine, sender, waiting, wake: Notify::new(), checked: Mutex::default() };
        if !fetcher.engine.held.is_shared() {
            fetcher.read_log()?;
        }
        Ok(Arc::new(fetcher))
    }

    /// Checks whether another topic may wait; otherwise returns the status and the reason.
    pub(crate) fn has_room(
        &self,
        url: &str,
        reporter: ChangeReporter,
    ) -> Result<(), (u16, &'static str)> {
        let waiting = self.lock();
        if waiting.topics.contains_key(url) {
            return Ok(());
        }
        let share = usize::from(reporter == ChangeReporter::Known);
        if let ChangeReporter::Stranger(client) = reporter {
            if waiting.clients.get(&client).is_some_and(|count| *count >= MAX_WAITING_OF_CLIENT) {
                return Err((429, "too many topics that you named wait to be fetched\n"));
            }
            let of_host = waiting.hosts.get(&host_of(url)).copied().unwrap_or_default();
            if of_host >= MAX_WAITING_OF_HOST && self.engine.topic(url).is_none() {
                return Err((429, "too many topics of that host wait to be fetched\n"));
            }
        }
        if waiting.counts[share] >= MAX_WAITING {
            return Err((503, "too many topics wait to be fetched\n"));
        }
        Ok(())
    }

    fn put(&self, url: &str, offset: Offset, reporter: ChangeReporter) {
        let mut waiting = self.lock();
        if let Some(spoken) = waiting.topics.get_mut(url) {
            // The new report is recorded, and replaces the earlier ones.
            spoken.last = offset.max(spoken.last);
            spoken.attempts_max = spoken.attempts + ATTEMPTS;
            return;
        }
        let (number, url): (_, Arc<str>) = (waiting.next_number, url.into());
        waiting.next_number += 1;
        let share = usize::from(reporter == ChangeReporter::Known);
        let client =
            if let ChangeReporter::Stranger(client) = reporter { Some(client) } else { None };
        waiting.counts[share] += 1;
        if share == 0 {
            if let Some(client) = client {
                *waiting.clients.entry(client).or_default() += 1;
            }
            *waiting.hosts.entry(host_of(&url)).or_default() += 1;
        }
        // Topics with targets have priority over unknown topics.
        let pace = if self.engine.topic(&url).is_some() { Pace::Quick } else { Pace::New };
        let spoken = ChangedTopic {
            number,
            last: offset,
            share,
            client,
            attempts: 0,
            attempts_max: ATTEMPTS,
            pace,
        };
        waiting.topics.insert(Arc::clone(&url), spoken);
        waiting.numbers.insert(number, Arc::clone(&url));
        waiting.push(&url, Instant::now());
        drop(waiting);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch_one(&self, job: Job, cut: &CancelSignal) {
        if !self.engine.held.is_first() {
            let (now, mut waiting) = (Instant::now(), self.lock());
            waiting.lanes[job.share].finish(&job.exchange, ExchangeEnd::Silent, now);
            // It starts after the next renewal of the node's lease.
            return waiting.push(&job.url, now);
        }
        let fetched = self.fetch(&job.url, cut, &job.exchange).await;
        let now = Instant::now();
        {
            let mut waiting = self.lock();
            let waiting = &mut *waiting;
            let lanes = &mut waiting.lanes[job.share];
            // A client reports topics on many hosts, so it is not paused when a single host fails.
            let pace = lanes.finish(
                &job.exchange,
                if fetched.is_ok() { ExchangeEnd::Answered } else { ExchangeEnd::Silent },
                now,
            );
            let Some(spoken) = waiting.topics.get_mut(&job.url) else { return };
            spoken.pace = pace;
            let is_done = match fetched {
                Ok(()) if spoken.last <= job.spoken => true,
                Ok(()) => {
                    (spoken.attempts, spoken.attempts_max) = (0, ATTEMPTS);
                    waiting.push(&job.url, now);
                    false
                }
                Err(error) => {
                    spoken.attempts += 1;
                    let attempts = spoken.attempts;
                    // Attempts that started before a report do not count for it.
                    if spoken.last > job.spoken {
                        spoken.attempts_max = attempts + ATTEMPTS;
                    }
                    let is_last = attempts >= spoken.attempts_max;
                    tracing::warn!(
                        topic = &*job.url,
                        error,
                        attempts,
                        "a topic that changed cannot be fetched"
                    );
                    let pause = self.engine.options.retries.base
                        * 4_u32.saturating_pow(attempts.min(ATTEMPTS) - 1);
                    lanes.retry_at(now + pause, spoken.number);
                    is_last
                }
            };
            // Before the next report of this topic can arrive.
            if is_done {
                waiting.remove(&job.url);
            }
        }
        // Also if attempts fail, because later reports replace earlier ones.
        self.trim().await;
    }

    /// Fetches a topic and records new content.
    async fn fetch(
        &self,
        url: &str,
        cut: &CancelSignal,
        exchange: &Exchange<u64>,
    ) -> Result<(), String> {
        // Only the request can be aborted: recording is always completed.
        let answer = cut.unless(exchange, self.get(url)).await;
        let answer = answer.ok_or("no answer in time, and other topics were waiting")??;
        self.engine.counters.fetched.fetch_add(1, Relaxed);
        let Some(found) = self.named(url, &answer)? else { return Ok(()) };
        let Some(topic) = self.engine.topic(&found) else { return Ok(()) };
        let media_type = media_type(&answer).to_owned();
        let links = PublishedLinks::read(links(&answer).iter().map(String::as_str))
            .map_or_else(|_| String::new(), |links| links.others);
        let notification =
            NewNotification { media_type, links, payload: Payload::Bytes(shared(&answer.body)) };
        let engine = Arc::clone(&self.engine);
        let recorded = tokio::task::spawn_blocking(move || {
            if !engine.held.is_first() {
                let message = "this node did not renew its lease; the topic is fetched again";
                return Err(LogError::new(ErrorKind::Busy, message));
            }
            let last = engine.store.last(topic)?;
            if last.is_some_and(|last| {
                last.content.payload == notification.payload
                    && last.content.media_type == notification.media_type
            }) {
                return Ok(None);
            }
            let offset = abreast_core::publish(&*engine.store, topic, notification.clone())?;
            Ok::<_, LogError>(Some(Notification {
                offset,
                time: engine.now(),
                content: notification,
            }))
        });
        match recorded.await {
            Ok(Ok(Some(notification))) => {
                self.engine.cache.remember(topic, &found, &notification);
                self.engine.published(topic, Some(notification.offset));
                self.engine.counters.accepted.fetch_add(1, Relaxed);
                Ok(())
            }
            Ok(Ok(None)) => Ok(()),
            Ok(Err(error)) => Err(text::chain(&error)),
            Err(_) => Err("the hub stops".to_owned()),
        }
    }

    async fn get(&self, url: &str) -> Result<Answer, String> {
        let to = self.sender.recipient(url).map_err(|error| text::failure(&error))?;
        let mut headers = HeaderMap::with_capacity(2);
        headers.insert("accept", HeaderValue::from_static("*/*"));
        headers.insert("cache-control", HeaderValue::from_static("no-cache"));
        let message = Message { headers, ..Message::default() };
        let answer =
            self.sender.get(&to, message, BodyWanted::Whole(self.engine.options.max_topic)).await;
        let answer = answer.map_err(|error| text::failure(&error))?;
        if answer.status.is_redirection() {
            return Err(format!(
                "the topic answered {}; redirects are not followed",
                answer.status
            ));
        }
        if !answer.status.is_success() {
            return Err(format!("the topic answered {}", answer.status));
        }
        if answer.headers.get("content-encoding").is_some_and(|coding| coding != "identity") {
            return Err("the topic is encoded, though that was not asked for".to_owned());
        }
        Ok(answer)
    }

    /// The topic's URL from its own link; `None` if it does not have a link to this hub.
    fn named(&self, url: &str, answer: &Answer) -> Result<Option<String>, String> {
        let options = &self.engine.options;
        let links = links(answer);
        let links = links.iter().map(String::as_str);
        match discover(url, links, media_type(answer), &answer.body) {
            Ok(found) if found.hubs.iter().any(|hub| options.is_own(hub)) => {
                let same = origin_of(&found.topic) == origin_of(url);
                if same {
                    Ok(Some(found.topic))
                } else {
                    Err(format!("its `self` link is {}, which is elsewhere", found.topic))
                }
            }
            _ if options.allows(url) => Ok(Some(url.to_owned())),
            Ok(_) => {
                tracing::info!(topic = url, "a topic reported as changed names another hub");
                Ok(None)
            }
            Err(error) => {
                tracing::info!(topic = url, %error, "a topic reported as changed does not name this hub");
                Ok(None)
            }
        }
    }

    /// Whether the client is known to be on the topic's host, so that the topic need not be
    /// fetched.
    pub(crate) fn knows(&self, url: &str, client: Client) -> bool {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.get(url).is_some_and(|one| {
            let has = |found: &Result<TopicHost, String>| {
                found.as_ref().is_ok_and(|host| host.has(client))
            };
            one.is_fresh() && one.found.get().is_some_and(has)
        })
    }

    /// Whether a client may publish this content for the topic. The topic must have a link to this
    /// hub. In addition, the client's address must be one of the topic's host, or the topic must
    /// have the same bytes.
    pub(crate) async fn speaks_for(
        &self,
        url: &str,
        client: Client,
        body: &Bytes,
    ) -> Result<(), String> {
        if self.check(url).await?.has(client) {
            return Ok(());
        }
        let answer = self.get(url).await?;
        if answer.body == *body {
            return Ok(());
        }
        Err("nobody knows that you speak for the topic\n  help: publish from its host, serve the notification at its URL, \
             or use a token"
            .to_owned())
    }

    /// The host of a topic that has a link to this hub, cached for a minute. Fetched once for
    /// concurrent callers.
    async fn check(&self, url: &str) -> Result<TopicHost, String> {
        let cell = {
            let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
            if checked.len() >= MAX_CHECKED {
                checked.retain(|_, one| one.is_fresh());
                if checked.len() >= MAX_CHECKED {
                    checked.clear();
                }
            }
            let new = || DiscoveryResult { at: Instant::now(), found: Arc::default() };
            let one = checked.entry(url.to_owned()).or_insert_with(new);
            if !one.is_fresh() {
                *one = new();
            }
            Arc::clone(&one.found)
        };
        cell.get_or_init(|| async {
            let answer =
                self.get(url).await.map_err(|why| format!("the topic cannot be read: {why}"))?;
            if self.named(url, &answer)?.as_deref() != Some(url) {
                return Err(format!(
                    "the topic does not name this hub, which is {}",
                    self.engine.options.url
                ));
            }
            let hub = &self.engine.options.url;
            let found = TopicHost::resolve(&self.sender, url, hub).await;
            found.map_err(|error| text::failure(&error))
        })
        .await
        .clone()
    }
}

impl Worker for Fetcher {
    type Job = Job;

    fn wake(&self) -> &Notify {
        &self.wake
    }

    fn prepare(self: &Arc<Self>, now: Instant) -> bool {
        let mut waiting = self.lock();
        for share in 0..waiting.lanes.len() {
            while let Some(number) = waiting.lanes[share].retry(now) {
                if let Some(url) = waiting.numbers.get(&number).cloned() {
                    waiting.push(&url, now);
                }
            }
            waiting.lanes[share].tick(now);
        }
        true
    }

    fn next_job(&self, cut: &Arc<CancelSignal>) -> Option<Job> {
        if self.engine.is_stopping() || !self.engine.held.is_first() {
            return None;
        }
        let (now, mut waiting) = (Instant::now(), self.lock());
        let Waiting { lanes, numbers, topics, .. } = &mut *waiting;
        for (share, lanes) in lanes.iter_mut().enumerate().rev() {
            while let Some(exchange) = lanes.next(now, Some(cut)) {
                let url = numbers.get(&exchange.item);
                if let Some((url, spoken)) = url.and_then(|url| Some((url, topics.get(url)?))) {
                    return Some(Job {
                        exchange,
                        share,
                        url: Arc::clone(url),
                        spoken: spoken.last,
                    });
                }
                lanes.finish(&exchange, ExchangeEnd::Silent, now);
            }
        }
        None
    }

    async fn work(&self, job: Job, cut: &Arc<CancelSignal>) -> Option<Job> {
        self.fetch_one(job, cut).await;
        let next = self.next_job(cut);
        // The next wake-up may be earlier now.
        self.wake.notify_one();
        next
    }

    fn due(&self, _: Instant) -> Option<Instant> {
        self.lock().lanes.iter().filter_map(Lanes::due).min()
    }
}

fn links(answer: &Answer) -> Vec<String> {
    abreast_net::values(&answer.headers, "link")
}

fn media_type(answer: &Answer) -> &str {
    let given = answer.headers.get("content-type").and_then(|value| value.to_str().ok());
    given.unwrap_or("application/octet-stream")
}
