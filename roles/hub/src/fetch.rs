//! What does a topic say itself? Fetched from its own host when somebody says that it changed, or speaks in its name.
//!
//! Which topics are to be fetched is kept in a log of its own until it is done: what was answered with 202 is not lost.

use crate::accept::shared;
use crate::deliver::Engine;
use crate::text;
use abreast_core::{LogError, NewNotification, Notification, Offset, Payload, TopicId, TopicLog};
use abreast_net::{Answer, HeaderMap, HeaderValue, Message, Sender, Want};
use abreast_websub::{PublishedLinks, discover};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, OnceCell, Semaphore};

/// The log of topics to be fetched.
const LOG: &str = "abreast:to-be-fetched";
/// Most topics that wait to be fetched.
const MAX_WAITING: usize = 10_000;
/// Topics fetched at the same time.
const AT_ONCE: usize = 16;
/// How often a topic is fetched before it is left alone until somebody speaks of it again.
const ATTEMPTS: u32 = 4;
/// The pause after the first failure; then four times as long.
const PAUSE: Duration = Duration::from_secs(1);
/// How long it is remembered what a topic says of its hub.
const CHECKED_FOR: Duration = Duration::from_secs(60);
/// … when it said that this hub is not its own.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// Topics of which it is remembered.
const MAX_CHECKED: usize = 4_096;

/// Fetches topics.
pub(crate) struct Fetcher {
    /// Where it is kept what is to be fetched.
    pub(crate) topic: TopicId,
    engine: Arc<Engine>,
    sender: Sender,
    waiting: Mutex<Waiting>,
    wake: Notify,
    checked: Mutex<HashMap<String, Checked>>,
}

#[derive(Default)]
struct Waiting {
    /// The last time each was spoken of, and the first that is not done.
    topics: HashMap<String, (Offset, Offset)>,
    queue: VecDeque<String>,
    last: Offset,
    trimmed: Offset,
}

#[derive(Clone)]
struct Checked {
    at: Instant,
    /// The addresses of its host, or why nobody may speak for it here.
    found: Arc<OnceCell<Result<Vec<IpAddr>, String>>>,
}

impl Checked {
    fn is_fresh(&self) -> bool {
        let age = if matches!(self.found.get(), Some(Err(_))) { REFUSED_FOR } else { CHECKED_FOR };
        self.at.elapsed() < age
    }
}

impl Fetcher {
    pub(crate) fn new(engine: Arc<Engine>, sender: Sender) -> Result<Arc<Self>, LogError> {
        let topic = engine.open_topic(LOG, true)?;
        let fetcher =
            Self { topic, engine, sender, waiting: Mutex::default(), wake: Notify::new(), checked: Mutex::default() };
        let mut after = Offset(0);
        loop {
            let page = fetcher.engine.store.read(topic, after, 1_000)?;
            let Some(last) = page.last() else { break };
            after = last.offset;
            for found in page {
                if let Payload::Bytes(url) = &found.content.payload
                    && let Ok(url) = std::str::from_utf8(url)
                {
                    fetcher.add(url.to_owned(), found.offset);
                }
            }
        }
        Ok(Arc::new(fetcher))
    }

    pub(crate) fn has_room(&self) -> bool {
        self.lock().topics.len() < MAX_WAITING
    }

    /// Somebody said that a topic changed. What waits already is not fetched twice for that.
    pub(crate) fn add(&self, url: String, offset: Offset) {
        let mut waiting = self.lock();
        waiting.last = waiting.last.max(offset);
        if let Some((last, _)) = waiting.topics.get_mut(&url) {
            *last = offset.max(*last);
            return;
        }
        waiting.topics.insert(url.clone(), (offset, offset));
        waiting.queue.push_back(url);
        drop(waiting);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn run(self: Arc<Self>) {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let next = self.lock().queue.pop_front();
            let Some(url) = next else {
                self.wake.notified().await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let fetcher = Arc::clone(&self);
            tokio::spawn(async move {
                fetcher.fetch_until_done(url).await;
                drop(place);
            });
        }
    }

    async fn fetch_until_done(&self, url: String) {
        let (mut attempts, mut pause) = (0, PAUSE);
        loop {
            // Whoever speaks of it from now on wants it fetched again.
            let spoken = self.lock().topics.get(&url).map(|(last, _)| *last);
            match self.fetch(&url).await {
                Ok(()) if self.is_done(&url, spoken) => return self.trim().await,
                Ok(()) => attempts = 0,
                Err(error) => {
                    attempts += 1;
                    tracing::warn!(topic = url, error, attempts, "a topic that changed cannot be fetched");
                    if attempts >= ATTEMPTS {
                        self.lock().topics.remove(&url);
                        return self.trim().await;
                    }
                    tokio::time::sleep(pause).await;
                    pause *= 4;
                }
            }
        }
    }

    /// Whether nobody has spoken of it since.
    fn is_done(&self, url: &str, spoken: Option<Offset>) -> bool {
        let mut waiting = self.lock();
        let done = waiting.topics.get(url).is_none_or(|(last, _)| Some(*last) <= spoken);
        if done {
            waiting.topics.remove(url);
        }
        done
    }

    /// Drops from the log what is done.
    async fn trim(&self) {
        let up_to = {
            let mut waiting = self.lock();
            let first = waiting.topics.values().map(|(_, first)| first.0).min();
            let up_to = first.map_or(waiting.last, |first| Offset(first - 1));
            // Not one by one.
            if up_to.0 < waiting.trimmed.0 + 100 && !waiting.topics.is_empty() || up_to <= waiting.trimmed {
                return;
            }
            waiting.trimmed = up_to;
            up_to
        };
        let (store, topic) = (Arc::clone(&self.engine.store), self.topic);
        let _ = tokio::task::spawn_blocking(move || store.trim(topic, up_to)).await;
    }

    /// Fetches a topic and records what is new.
    async fn fetch(&self, url: &str) -> Result<(), String> {
        let answer = self.get(url).await?;
        self.engine.counters.fetched.fetch_add(1, Relaxed);
        let Some(found) = self.named(url, &answer)? else { return Ok(()) };
        let Some(topic) = self.engine.topic(&found) else { return Ok(()) };
        let media_type = media_type(&answer).to_owned();
        let links = PublishedLinks::read(links(&answer)).map_or_else(|_| String::new(), |links| links.others);
        let notification = NewNotification { media_type, links, payload: Payload::Bytes(shared(&answer.body)) };
        let engine = Arc::clone(&self.engine);
        let recorded = tokio::task::spawn_blocking(move || {
            let last = engine.store.last(topic)?;
            if last.is_some_and(|last| {
                last.content.payload == notification.payload && last.content.media_type == notification.media_type
            }) {
                return Ok(None);
            }
            let offset = abreast_core::publish(&*engine.store, topic, notification.clone())?;
            Ok::<_, LogError>(Some(Notification { offset, time: engine.now(), content: notification }))
        });
        match recorded.await {
            Ok(Ok(Some(notification))) => {
                self.engine.cache.remember(topic, &found, &notification);
                self.engine.published(topic);
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
        let answer = self.sender.get(&to, message, Want::Whole(self.engine.options.max_topic)).await;
        let answer = answer.map_err(|error| text::failure(&error))?;
        if answer.status.is_redirection() {
            return Err(format!("the topic answered {}; redirects are not followed", answer.status));
        }
        if !answer.status.is_success() {
            return Err(format!("the topic answered {}", answer.status));
        }
        if answer.headers.get("content-encoding").is_some_and(|coding| coding != "identity") {
            return Err("the topic is encoded, though that was not asked for".to_owned());
        }
        Ok(answer)
    }

    /// The topic's URL by its own account; `None` when it does not name this hub.
    fn named(&self, url: &str, answer: &Answer) -> Result<Option<String>, String> {
        let options = &self.engine.options;
        match discover(url, links(answer), media_type(answer), &answer.body) {
            Ok(found) if found.hubs.iter().any(|hub| options.is_own(hub)) => {
                let same = crate::deliver::table::origin_of(&found.topic) == crate::deliver::table::origin_of(url);
                if same {
                    Ok(Some(found.topic))
                } else {
                    Err(format!("it says that it is {}, which is elsewhere", found.topic))
                }
            }
            _ if options.allows(url) => Ok(Some(url.to_owned())),
            Ok(_) => {
                tracing::info!(topic = url, "a topic that is said to have changed names another hub");
                Ok(None)
            }
            Err(error) => {
                tracing::info!(topic = url, %error, "a topic that is said to have changed does not name this hub");
                Ok(None)
            }
        }
    }

    /// Whether it is known that somebody at that address may speak for the topic, so that nothing has to be fetched.
    pub(crate) fn knows(&self, url: &str, client: IpAddr) -> bool {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.get(url).is_some_and(|one| {
            let names = |found: &Result<Vec<IpAddr>, String>| {
                found.as_ref().is_ok_and(|addresses| addresses.contains(&client.to_canonical()))
            };
            one.is_fresh() && one.found.get().is_some_and(names)
        })
    }

    /// May somebody at that address say that in the topic's name? The topic must name this hub. Then either the address
    /// is one of its host's, or the topic itself says the same.
    pub(crate) async fn speaks_for(&self, url: &str, client: IpAddr, body: &Bytes) -> Result<(), String> {
        let addresses = self.check(url).await?;
        if addresses.contains(&client.to_canonical()) {
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

    /// What a topic says of its hub, as it was within the last minute. Asked once, however many want to know.
    async fn check(&self, url: &str) -> Result<Vec<IpAddr>, String> {
        let cell = {
            let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
            if checked.len() >= MAX_CHECKED {
                checked.retain(|_, one| one.is_fresh());
                if checked.len() >= MAX_CHECKED {
                    checked.clear();
                }
            }
            let new = || Checked { at: Instant::now(), found: Arc::default() };
            let one = checked.entry(url.to_owned()).or_insert_with(new);
            if !one.is_fresh() {
                *one = new();
            }
            Arc::clone(&one.found)
        };
        cell.get_or_init(|| async {
            let answer = self.get(url).await.map_err(|why| format!("the topic cannot be looked at: {why}"))?;
            if self.named(url, &answer)?.as_deref() != Some(url) {
                return Err(format!("the topic does not name this hub, which is {}", self.engine.options.url));
            }
            let to = self.sender.recipient(url).map_err(|error| text::failure(&error))?;
            let found = self.sender.addresses(&to).await.map_err(|error| text::failure(&error))?;
            Ok(found.into_iter().map(|address| address.to_canonical()).collect())
        })
        .await
        .clone()
    }
}

fn links(answer: &Answer) -> impl Iterator<Item = &str> {
    answer.headers.get_all("link").iter().filter_map(|value| value.to_str().ok())
}

fn media_type(answer: &Answer) -> &str {
    let given = answer.headers.get("content-type").and_then(|value| value.to_str().ok());
    given.unwrap_or("application/octet-stream")
}
