//! The notifier, a thread that records the notifications of all sets. The owner must stop the
//! notifier and wait for its end.

use super::NotifyOptions;
use super::change_topic::ChangeTopic;
use super::document_topics::DocumentTopics;
use super::error::NotifyError;
use super::state_file::{NotifiedPlace, StateFile};
use crate::publish::TopicContent;
use crate::publish::publisher::Publisher;
use crate::scan::ingest::with_causes;
use abreast_core::{Clock, LogError, NewNotification, Offset, TopicId, TopicLog, start_thread};
use abreast_webtypes::Timestamp;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
/// Most attempts to record the start of each topic, while other nodes do the same.
const ATTEMPTS: usize = 20;
/// Interval at which the lease of notifications is checked.
const TURN: Duration = Duration::from_millis(100);
/// Interval between comparisons of documents, and longest time until a stop takes effect.
const INTERVAL: Duration = Duration::from_millis(500);

/// Callback after new entries in a topic's log. It is called on the notifier's thread, and must not
/// block.
pub type Published = Arc<dyn Fn(TopicId) + Send + Sync>;

/// The thread that records notifications. [`Notifier::stop`] stops the thread; dropping the value
/// also stops it.
#[derive(Debug)]
pub struct Notifier {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Starts the notifier for each set of the publisher that has
    /// [`PublishedSet::notifications`](crate::publish::PublishedSet::notifications).
    ///
    /// All topics exist when this method returns, so a subscription cannot precede the start of its
    /// topic, and all later changes are notified. `record` stores the start of each topic and the
    /// documents that were notified. The node with the lease notifies, if there are several; another
    /// node continues after the last notification.
    ///
    /// # Errors
    /// See [`NotifyError`] for the possible errors.
    pub fn start(
        publisher: impl Deref<Target = Publisher> + Send + 'static,
        topics: Arc<dyn TopicLog>,
        record: impl Into<NotifiedPlace>,
        options: NotifyOptions,
        clock: Arc<dyn Clock>,
        published: Published,
    ) -> Result<Self, NotifyError> {
        let place = record.into();
        let every = options.change_list_every;
        let mut attempts = 1..ATTEMPTS;
        let (changes, documents) = loop {
            match resume(&publisher, &*topics, &place, every, clock.now()) {
                Err(NotifyError::Record(error))
                    if error.kind() == io::ErrorKind::ResourceBusy && attempts.next().is_some() => {
                }
                resumed => break resumed?,
            }
        };
        let is_current = !place.is_shared();
        let worker = Worker {
            publisher,
            topics,
            options,
            clock,
            published,
            changes,
            documents,
            place,
            is_current,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = start_thread("notify", move || worker.run(&stopped));
        Ok(Self { stop, thread: Some(thread.map_err(NotifyError::Thread)?) })
    }

    /// Stops the notifier within half a second. Remaining changes are notified after the next
    /// start.
    pub fn stop(mut self) {
        self.join();
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.join();
    }
}

struct Worker<P> {
    publisher: P,
    topics: Arc<dyn TopicLog>,
    options: NotifyOptions,
    clock: Arc<dyn Clock>,
    published: Published,
    changes: Vec<ChangeTopic>,
    documents: DocumentTopics,
    place: NotifiedPlace,
    /// Whether no other node has notified since the topics were restored.
    is_current: bool,
}

/// Restores all topics. Their starts are durable before a client can subscribe, so that all later
/// changes are notified, even after a crash.
fn resume(
    publisher: &Publisher,
    topics: &dyn TopicLog,
    place: &NotifiedPlace,
    every: Duration,
    now: Timestamp,
) -> Result<(Vec<ChangeTopic>, DocumentTopics), NotifyError> {
    let mut state = StateFile::read(place.clone()).map_err(NotifyError::Record)?;
    let mut changes = Vec::new();
    for topic in publisher.topics().iter().filter(|topic| topic.content == TopicContent::Changes) {
        changes.push(ChangeTopic::resume(&**publisher.log(), topics, topic, &mut state)?);
    }
    state.save().map_err(NotifyError::Record)?;
    let documents = DocumentTopics::resume(publisher, topics, state, every, now)?;
    Ok((changes, documents))
}

impl<P: Deref<Target = Publisher>> Worker<P> {
    fn run(mut self, stop: &AtomicBool) {
        let mut compare_at = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            if !self.has_turn() {
                self.is_current = false;
                thread::sleep(TURN);
                continue;
            }
            self.notify_changes();
            if compare_at <= Instant::now() {
                self.notify_documents();
                compare_at = Instant::now() + INTERVAL;
            }
            self.wait(compare_at);
        }
    }

    /// Whether this node publishes the notifications. The topics are restored when it starts to.
    fn has_turn(&mut self) -> bool {
        if !self.place.is_turn() {
            return false;
        }
        if self.is_current {
            return true;
        }
        let (every, now) = (self.options.change_list_every, self.clock.now());
        match resume(&self.publisher, &*self.topics, &self.place, every, now) {
            Ok((changes, documents)) => {
                (self.changes, self.documents, self.is_current) = (changes, documents, true);
            }
            Err(error) => {
                tracing::error!("cannot continue notifications: {}; retrying", with_causes(&error));
                thread::sleep(INTERVAL);
            }
        }
        self.is_current && self.place.is_turn()
    }

    /// Records a notification for each topic that has changes and whose pause is over, in a single
    /// transaction.
    fn notify_changes(&mut self) {
        let (now, log) = (Instant::now(), &**self.publisher.log());
        let mut sent = Vec::new();
        for (place, changes) in
            self.changes.iter_mut().enumerate().filter(|(_, changes)| changes.due.is_at(now))
        {
            match changes.next(log, &*self.topics, &self.options) {
                Ok(None) => {}
                Ok(Some(range)) => {
                    let new = changes.notification(&range);
                    sent.push((
                        place,
                        range,
                        submit(&*self.topics, changes.topic, new, &self.published),
                    ));
                }
                Err(error) => {
                    changes.due.failed();
                    tracing::error!(set = %changes.slug, "cannot read the changes to be notified: {}; retrying", with_causes(&error));
                }
            }
        }
        for (place, range, answer) in sent {
            let changes = &mut self.changes[place];
            match answered(&answer) {
                Ok(_) => {
                    changes.recorded(&range, &self.options);
                    count(&changes.slug, TopicContent::Changes);
                }
                Err(error) => {
                    changes.failed();
                    tracing::error!(set = %changes.slug, "cannot record a notification: {}; retrying", with_causes(&error));
                }
            }
        }
    }

    /// Records a notification for each topic with new or changed documents.
    fn notify_documents(&mut self) {
        let pending = self.documents.pending(&self.publisher, self.clock.now());
        let sent: Vec<_> = pending
            .into_iter()
            .map(|pending| {
                let answer = submit(
                    &*self.topics,
                    pending.topic,
                    pending.notification.clone(),
                    &self.published,
                );
                (pending, answer)
            })
            .collect();
        for (pending, answer) in sent {
            match answered(&answer) {
                Ok(_) => {
                    count(&pending.name, TopicContent::Documents);
                    self.documents.recorded(pending);
                }
                Err(error) => {
                    tracing::error!(set = %pending.name, "cannot record a notification: {}; retrying", with_causes(&error));
                    self.documents.failed(&pending);
                }
            }
        }
        if let Err(error) = self.documents.save() {
            if error.kind() == io::ErrorKind::ResourceBusy {
                // Another node has notified.
                self.is_current = false;
                return;
            }
            tracing::error!(
                "cannot write which documents were notified: {error}; after a restart they are notified again"
            );
        }
    }

    /// Waits until a set has a change to notify, or until the next comparison is due.
    fn wait(&self, compare_at: Instant) {
        let (now, log) = (Instant::now(), &**self.publisher.log());
        let (mut until, mut known) = (compare_at, Vec::with_capacity(self.changes.len()));
        for changes in &self.changes {
            if changes.waiting(log) {
                until = until.min(changes.due.not_before);
            } else {
                known.push((changes.set, changes.notified));
            }
        }
        let timeout = until.saturating_duration_since(now);
        if log.wait_for(&known, timeout).is_err() {
            thread::sleep(timeout);
        }
    }
}

type Answer = mpsc::Receiver<Result<Offset, LogError>>;

fn submit(
    topics: &dyn TopicLog,
    topic: TopicId,
    new: NewNotification,
    published: &Published,
) -> Answer {
    let (sender, answer) = mpsc::sync_channel(1);
    let published = Arc::clone(published);
    let done = move |result: Result<Offset, LogError>| {
        if result.is_ok() {
            published(topic);
        }
        let _ = sender.send(result);
    };
    topics.publish_then(topic, new, Box::new(done));
    answer
}

fn answered(answer: &Answer) -> Result<Offset, LogError> {
    let gone = |_| {
        Err(LogError::new(
            abreast_core::ErrorKind::Io,
            "the store of topics ended before it answered",
        ))
    };
    answer.recv().unwrap_or_else(gone)
}

fn count(slug: &str, content: TopicContent) {
    let labels = [("set", slug.to_owned()), ("channel", content.name().to_owned())];
    metrics::counter!("abreast_notifications_total", &labels).increment(1);
}
