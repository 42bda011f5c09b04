//! Topics in memory, for tests. Except for durability, they give the same guarantees as the hub's
//! store on SQLite.

use crate::database::queue::{Limits, Queue, QueueItem};
use crate::hub::limits::{check_notification, check_topic_url, no_topic};
use abreast_core::{
    Clock, LogError, NewNotification, Notification, Offset, PUBLISH_PATIENCE, PublishDone, TopicId,
    TopicLog,
};
use abreast_webtypes::Timestamp;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Most completions that wait; then callers block.
const WAITING_MAX: usize = 1_024;

struct Topic {
    url: String,
    head: u64,
    time: Timestamp,
    kept: VecDeque<Notification>,
}

/// The result of a publication, passed to the callback on a separate thread.
struct Completion(PublishDone, Result<Offset, LogError>);

impl QueueItem for Completion {
    const LIMITS: Limits = Limits {
        jobs: WAITING_MAX,
        weight: WAITING_MAX,
        group: 1,
        patience: Some(PUBLISH_PATIENCE),
    };

    fn weight(&self) -> usize {
        1
    }

    fn refuse(self, why: LogError) {
        (self.0)(Err(why));
    }
}

/// Topics in memory, for tests.
pub struct MemoryTopics {
    clock: Arc<dyn Clock>,
    topics: Mutex<Vec<Topic>>,
    queue: Arc<Queue<Completion>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for MemoryTopics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTopics").finish_non_exhaustive()
    }
}

impl MemoryTopics {
    /// An empty store; starts a thread for callbacks.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let queue = Arc::new(Queue::<Completion>::default());
        let teller = Arc::clone(&queue);
        let thread = std::thread::spawn(move || {
            loop {
                let group = teller.take();
                if group.is_empty() {
                    return;
                }
                for Completion(done, result) in group {
                    done(result);
                }
            }
        });
        Self { clock, topics: Mutex::default(), queue, thread: Some(thread) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Topic>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, topic: TopicId, work: impl FnOnce(&mut Topic) -> T) -> Result<T, LogError> {
        let place = usize::try_from(topic.0).ok().and_then(|number| number.checked_sub(1));
        let mut topics = self.lock();
        place.and_then(|place| topics.get_mut(place)).map(work).ok_or_else(|| no_topic(topic))
    }

    fn record(&self, topic: TopicId, content: NewNotification) -> Result<Offset, LogError> {
        check_notification(&content)?;
        let now = self.clock.now();
        self.with(topic, |topic| {
            topic.head += 1;
            topic.time = topic.time.max(now);
            let offset = Offset(topic.head);
            topic.kept.push_back(Notification { offset, time: topic.time, content });
            offset
        })
    }
}

impl Drop for MemoryTopics {
    fn drop(&mut self) {
        self.queue.close();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a callback for a notification panicked");
        }
    }
}

impl TopicLog for MemoryTopics {
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError> {
        let now = self.clock.now();
        let mut topics = self.lock();
        let place = topics.iter().position(|topic| topic.url == url).unwrap_or(topics.len());
        if place == topics.len() {
            check_topic_url(url, topics.len())?;
            topics.push(Topic { url: url.to_owned(), head: 0, time: now, kept: VecDeque::new() });
        }
        Ok(TopicId(place as i64 + 1))
    }

    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone) {
        let recorded = self.record(topic, notification);
        self.queue.push(Completion(done, recorded));
    }

    fn head(&self, topic: TopicId) -> Result<Offset, LogError> {
        self.with(topic, |topic| Offset(topic.head))
    }

    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError> {
        self.with(topic, |topic| {
            let from = topic.kept.partition_point(|notification| notification.offset <= after);
            topic.kept.iter().skip(from).take(limit).cloned().collect()
        })
    }

    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError> {
        self.with(topic, |topic| {
            let keeps = |one: &Notification| one.offset > up_to || one.offset.0 == topic.head;
            while topic.kept.front().is_some_and(|oldest| !keeps(oldest)) {
                topic.kept.pop_front();
            }
        })
    }
}
