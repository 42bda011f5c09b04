//! Who tells, and when? One thread for all sets, told to stop and awaited by its owner.

use super::NotifyOptions;
use super::changes::Changes;
use super::documents::Documents;
use super::told::Record;
use crate::projection::TopicContent;
use crate::publish::{Channel, PublishError, Publisher};
use abreast_core::{Clock, LogError, NewNotification, Offset, TopicId, TopicLog};
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How often documents are looked at, and whether it is told to stop.
const LOOK: Duration = Duration::from_millis(500);

/// Told that something new is in a topic's log, from another thread and at once: it must not block.
pub type Published = Arc<dyn Fn(TopicId) + Send + Sync>;

/// Notifications could not be begun.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// A log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A document could not be made.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// What was told before cannot be read or noted.
    #[error("cannot note what was told")]
    Record(#[source] io::Error),
    /// The system gives no thread.
    #[error("cannot start the thread that tells")]
    Thread(#[source] io::Error),
}

/// The thread that tells; stops when told, or when dropped.
#[derive(Debug)]
pub struct Notifier {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Starts it: for every set of the publisher that has notifications ([`Publisher::with_notifications`]).
    ///
    /// The topics are there when this returns, so that nobody subscribes to one that does not know yet where it begins:
    /// what changes from now on is told. That, and what was told of documents, is noted in the file `record`.
    ///
    /// # Errors
    /// See [`NotifyError`].
    pub fn start(
        publisher: impl Deref<Target = Publisher> + Send + 'static,
        topics: Arc<dyn TopicLog>,
        record: PathBuf,
        options: NotifyOptions,
        clock: Arc<dyn Clock>,
        published: Published,
    ) -> Result<Self, NotifyError> {
        let mut record = Record::read(record).map_err(NotifyError::Record)?;
        let mut changes = Vec::new();
        for topic in publisher.topics().iter().filter(|topic| topic.content == TopicContent::Changes) {
            let set = &publisher.sets()[topic.set];
            changes.push(Changes::resume(&**publisher.log(), set, &*topics, topic, &mut record)?);
        }
        // Where topics begin is noted before anybody can subscribe: what follows is told, also after a crash.
        record.note().map_err(NotifyError::Record)?;
        let documents = Documents::resume(&publisher, &*topics, record, options.change_list_every)?;
        let telling = Telling { publisher, topics, options, clock, published, changes, documents };
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::Builder::new().name("notify".into()).spawn(move || telling.run(&told));
        Ok(Self { stop, thread: Some(thread.map_err(NotifyError::Thread)?) })
    }

    /// Stops within half a second. What was not told by then is told after the next start.
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

struct Telling<P> {
    publisher: P,
    topics: Arc<dyn TopicLog>,
    options: NotifyOptions,
    clock: Arc<dyn Clock>,
    published: Published,
    changes: Vec<Changes>,
    documents: Documents,
}

impl<P: Deref<Target = Publisher>> Telling<P> {
    fn run(mut self, stop: &AtomicBool) {
        let mut look = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            self.tell_changes();
            if look <= Instant::now() {
                self.tell_documents();
                look = Instant::now() + LOOK;
            }
            self.wait(look);
        }
    }

    /// One notification of each set that has something to tell and had its pause; all are recorded together.
    fn tell_changes(&mut self) {
        let (now, log) = (Instant::now(), &**self.publisher.log());
        let mut sent = Vec::new();
        for (place, changes) in self.changes.iter_mut().enumerate().filter(|(_, changes)| changes.due.is_at(now)) {
            match changes.next(log, &*self.topics, &self.options) {
                Ok(None) => {}
                Ok(Some(range)) => {
                    let new = changes.notification(&range);
                    sent.push((place, range, submit(&*self.topics, changes.topic, new, &self.published)));
                }
                Err(error) => {
                    changes.due.failed();
                    tracing::error!(set = %changes.slug, "cannot tell what changed: {error}; trying again");
                }
            }
        }
        for (place, range, answer) in sent {
            let changes = &mut self.changes[place];
            match answered(&answer) {
                Ok(_) => {
                    changes.recorded(&range, &self.options);
                    count(&changes.slug, Channel::Change);
                }
                Err(error) => {
                    changes.failed();
                    tracing::error!(set = %changes.slug, "cannot record a notification: {error}; trying again");
                }
            }
        }
    }

    /// One notification of each set whose documents are new or different.
    fn tell_documents(&mut self) {
        let news = self.documents.news(&self.publisher, self.clock.now());
        let sent: Vec<_> = news
            .into_iter()
            .map(|news| {
                let answer = submit(&*self.topics, news.topic, news.notification.clone(), &self.published);
                (news, answer)
            })
            .collect();
        for (news, answer) in sent {
            match answered(&answer) {
                Ok(_) => {
                    count(&news.slug, Channel::Framework);
                    self.documents.recorded(news);
                }
                Err(error) => {
                    tracing::error!(set = %news.slug, "cannot record a notification: {error}; trying again");
                    self.documents.failed(&news);
                }
            }
        }
        if let Err(error) = self.documents.note() {
            tracing::error!("cannot note which documents were told: {error}; after a restart they are told again");
        }
    }

    /// Until a set has a change that may be told, or something else is due.
    fn wait(&self, look: Instant) {
        let (now, log) = (Instant::now(), &**self.publisher.log());
        let (mut until, mut known) = (look, Vec::with_capacity(self.changes.len()));
        for changes in &self.changes {
            if changes.waiting(log) {
                until = until.min(changes.due.not_before);
            } else {
                known.push((changes.set, changes.told));
            }
        }
        let timeout = until.saturating_duration_since(now);
        if log.wait_for(&known, timeout).is_err() {
            thread::sleep(timeout);
        }
    }
}

type Answer = mpsc::Receiver<Result<Offset, LogError>>;

fn submit(topics: &dyn TopicLog, topic: TopicId, new: NewNotification, published: &Published) -> Answer {
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
    let gone = |_| Err(LogError::new(abreast_core::ErrorKind::Io, "the store of topics ended before it answered"));
    answer.recv().unwrap_or_else(gone)
}

fn count(slug: &str, channel: Channel) {
    let labels = [("set", slug.to_owned()), ("channel", channel.name().to_owned())];
    metrics::counter!("abreast_notifications_total", &labels).increment(1);
}
