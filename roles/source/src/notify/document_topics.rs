//! Topics of documents. Every half second, the current documents of each topic are compared with
//! the notified ones. After a set was removed, its topic gets a final notification.

use super::due::Due;
use super::error::NotifyError;
use super::state_file::{StateFile, TopicState};
use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{
    EndedTopic, NewsRequest, NotifiedDocuments, PublishError, Topic, TopicContent,
};
use crate::scan::ingest::with_causes;
use abreast_core::{NewNotification, Payload, TopicId, TopicLog};
use abreast_webtypes::Timestamp;
use std::io;
use std::time::{Duration, Instant};

/// Topics of the documents of all projections.
pub(super) struct DocumentTopics {
    state: StateFile,
    topics: Vec<DocumentTopic>,
    /// Topics of sets that are not published any more.
    ended: Vec<Ended>,
    every: Duration,
}

/// The topic of the documents of a set.
struct DocumentTopic {
    /// Index of the projection in the publisher.
    projection: usize,
    topic: Topic,
    slug: String,
    id: TopicId,
    due: Due,
    /// Earliest time to notify a document that only grew; `None` to disable these notifications.
    growth: Option<Instant>,
}

/// The topic of a set that was published in an earlier run of the Source.
struct Ended {
    projection: usize,
    record: String,
    id: TopicId,
    due: Due,
}

/// A notification that the notifier must record.
pub(super) struct Pending {
    /// Name of the set, or of the topic's record if the set was removed.
    pub(super) name: String,
    pub(super) topic: TopicId,
    pub(super) notification: NewNotification,
    follows: Follows,
}

/// State to update after a notification is recorded.
enum Follows {
    /// The topic with index `place` has notified these documents.
    Notified { place: usize, until: i64, after: NotifiedDocuments, grown: bool },
    /// The topic has ended, and its state is removed.
    Ended,
}

impl DocumentTopics {
    /// Restores the topics, so that only documents that were not yet notified are notified.
    pub(super) fn resume(
        publisher: &Publisher,
        topics: &dyn TopicLog,
        state: StateFile,
        every: Duration,
        now: Timestamp,
    ) -> Result<Self, NotifyError> {
        let (mut found, mut ended) = (Vec::new(), Vec::new());
        for (number, projection) in publisher.projections().enumerate() {
            let of_documents = |topic: &Topic| topic.content == TopicContent::Documents;
            for topic in projection.topics(publisher).into_iter().filter(of_documents) {
                found.push(DocumentTopic {
                    projection: number,
                    slug: topic.set.slug.clone(),
                    id: topics.open_topic(&topic.url)?,
                    topic,
                    due: Due::now(),
                    growth: (!every.is_zero()).then(Instant::now),
                });
            }
            for (record, known) in state.topics() {
                // A set that this node does not publish may be one that another node was started with.
                if state.is_shared() {
                    break;
                }
                if let Some(EndedTopic { url, .. }) =
                    end_of(projection, publisher, record, known, now)
                {
                    let id = topics.open_topic(&url)?;
                    ended.push(Ended {
                        projection: number,
                        record: record.clone(),
                        id,
                        due: Due::now(),
                    });
                }
            }
        }
        Ok(Self { state, topics: found, ended, every })
    }

    /// Returns the notifications that are due. For each notification, the caller must call
    /// [`Self::recorded`] or [`Self::failed`].
    pub(super) fn pending(&mut self, publisher: &Publisher, now: Timestamp) -> Vec<Pending> {
        let mut pending = Vec::new();
        let (clock, first) =
            (Instant::now(), self.state.topics().values().all(|state| state.until == 0));
        for ended in self.ended.iter().filter(|ended| ended.due.is_at(clock)) {
            pending.extend(ended.pending(publisher, self.state.topics().get(&ended.record), now));
        }
        let none = TopicState::default();
        for (place, topic) in
            self.topics.iter_mut().enumerate().filter(|(_, topic)| topic.due.is_at(clock))
        {
            let state = self.state.topics().get(&topic.topic.record).unwrap_or(&none);
            let growth = topic.growth.is_some_and(|growth| growth <= clock);
            let request = NewsRequest { first, growth, ..request(state, now) };
            match topic.pending(place, publisher, &request) {
                Ok(found) => pending.extend(found),
                Err(error) => {
                    topic.due.failed();
                    tracing::error!(set = %topic.slug, "cannot compare documents with those notified: {}; retrying", with_causes(&error));
                }
            }
        }
        pending
    }

    /// Updates the state after a notification was recorded in the log of its topic.
    pub(super) fn recorded(&mut self, done: Pending) {
        match done.follows {
            Follows::Notified { place, until, after, grown } => {
                let topic = &mut self.topics[place];
                topic.due.done(Duration::ZERO);
                if grown {
                    topic.growth = Instant::now().checked_add(self.every);
                }
                self.state.notified(&topic.topic.record, until, after);
            }
            Follows::Ended => {
                self.state.remove(&done.name);
                self.ended.retain(|ended| ended.id != done.topic);
            }
        }
    }

    /// Schedules a retry if a notification was not recorded, or if this is unknown.
    pub(super) fn failed(&mut self, failed: &Pending) {
        match failed.follows {
            Follows::Notified { place, .. } => self.topics[place].due.failed(),
            Follows::Ended => {
                if let Some(ended) = self.ended.iter_mut().find(|ended| ended.id == failed.topic) {
                    ended.due.failed();
                }
            }
        }
    }

    /// Writes the state of all topics to the file.
    pub(super) fn save(&mut self) -> io::Result<()> {
        self.state.save()
    }
}

impl DocumentTopic {
    fn pending(
        &self,
        place: usize,
        publisher: &Publisher,
        request: &NewsRequest<'_>,
    ) -> Result<Option<Pending>, PublishError> {
        let Some(projection) = publisher.projections().nth(self.projection) else {
            return Ok(None);
        };
        let news = projection.news(publisher, &self.topic, request)?;
        Ok(news.map(|news| Pending {
            name: self.slug.clone(),
            topic: self.id,
            notification: NewNotification {
                media_type: self.topic.media_type.to_owned(),
                links: self.topic.links.clone(),
                payload: Payload::Bytes(news.notification.into()),
            },
            follows: Follows::Notified {
                place,
                until: request.until.as_micros(),
                after: news.after,
                grown: news.grown,
            },
        }))
    }
}

impl Ended {
    fn pending(
        &self,
        publisher: &Publisher,
        state: Option<&TopicState>,
        now: Timestamp,
    ) -> Option<Pending> {
        let projection = publisher.projections().nth(self.projection)?;
        let EndedTopic { notification, media_type, .. } =
            end_of(projection, publisher, &self.record, state?, now)?;
        Some(Pending {
            name: self.record.clone(),
            topic: self.id,
            notification: NewNotification {
                media_type: media_type.to_owned(),
                links: String::new(),
                payload: Payload::Bytes(notification.into()),
            },
            follows: Follows::Ended,
        })
    }
}

fn end_of(
    projection: &dyn Projection,
    publisher: &Publisher,
    record: &str,
    state: &TopicState,
    now: Timestamp,
) -> Option<EndedTopic> {
    projection.ended_topic(publisher, record, &request(state, now))
}

/// Creates a request in which `from` is the `until` of the previous notification. Times increase
/// even if the clock is set back.
fn request(state: &TopicState, now: Timestamp) -> NewsRequest<'_> {
    let from = (state.until != 0).then(|| Timestamp::from_micros(state.until));
    let until = from.map_or(now, |from| abreast_core::next_time(from, now));
    NewsRequest { before: &state.documents, first: false, growth: false, now, from, until }
}
