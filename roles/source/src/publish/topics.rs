//! Topics and their notifications, for the hub and for clients that request them.

use super::PublishedSet;
use super::error::PublishError;
use super::publisher::{Projection, Publisher};
use super::topic::Topic;
use abreast_core::{Notification, Offset, Payload, Position, TopicId, TopicLog};
use abreast_websub::topic_links;
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::sync::Arc;

/// Response for a topic: its last notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDocument {
    /// Last notification; empty if there has not been one.
    pub body: Bytes,
    /// Media type of the notification.
    pub media_type: String,
    /// `Link` header with hubs, topic and Capability List.
    pub links: String,
    /// Number of the notification in its topic.
    pub offset: Option<Offset>,
    /// Time when the notification was sent.
    pub time: Option<Timestamp>,
}

impl Publisher {
    /// The topics of all published sets.
    pub fn topics(&self) -> Vec<Topic> {
        self.projections().flat_map(|projection| projection.topics(self)).collect()
    }

    /// The topic at a path below the public base.
    pub fn topic_at(&self, path: &str) -> Option<Topic> {
        self.find_topic(path).map(|(_, topic)| topic)
    }

    /// Topic at a path below the public base, if clients subscribe to it by HTTP callback.
    pub fn callback_topic_at(&self, path: &str) -> Option<Topic> {
        self.projections().find_map(|projection| projection.callback_topic(self, path))
    }

    fn find_topic(&self, path: &str) -> Option<(&dyn Projection, Topic)> {
        self.projections().find_map(|projection| Some((projection, projection.topic(self, path)?)))
    }

    /// URLs of a set's topics, with notifications enabled or not.
    pub fn topic_urls(&self, set: &Arc<PublishedSet>) -> Vec<String> {
        self.projections().flat_map(|projection| projection.topic_urls(set)).collect()
    }

    /// Whether the path is the path of a topic in which the end of a set is published. The set need
    /// not exist.
    pub fn is_lasting_topic(&self, path: &str) -> bool {
        self.projections().any(|projection| projection.is_lasting_topic(path))
    }

    /// `Link` header of a topic and of its notifications.
    fn topic_links(topic: &Topic) -> String {
        let hubs = topic.set.notifications.iter().flat_map(|notifications| &notifications.hubs);
        topic_links(hubs.map(String::as_str), &topic.url, &topic.links)
    }

    /// Last notification of a topic. Reads the store.
    ///
    /// # Errors
    /// A log fails.
    pub fn last_notification(
        &self,
        topics: &dyn TopicLog,
        topic: &Topic,
    ) -> Result<TopicDocument, PublishError> {
        let (links, media_type) = (Self::topic_links(topic), topic.media_type.to_owned());
        let empty =
            TopicDocument { body: Bytes::new(), media_type, links, offset: None, time: None };
        let id = topics.open_topic(&topic.url)?;
        let Some(Notification { offset, time, content }) = topics.last(id)? else {
            return Ok(empty);
        };
        let body = match content.payload {
            Payload::Changes { after, last } => self.notification(&topic.url, after, last)?.into(),
            Payload::Bytes(bytes) => Bytes::from_owner(bytes),
        };
        Ok(TopicDocument {
            body,
            media_type: content.media_type,
            offset: Some(offset),
            time: Some(time),
            ..empty
        })
    }

    /// Notification of a range of a set's log, by the topic's URL. Reads the store. The same range
    /// always has the same bytes.
    ///
    /// # Errors
    /// The topic does not exist, or the log fails.
    pub fn notification(
        &self,
        topic: &str,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        let path = topic.strip_prefix(self.urls.base()).ok_or(PublishError::NotFound)?;
        let (projection, topic) = self.find_topic(path).ok_or(PublishError::NotFound)?;
        projection.notification(self, &topic, after, last)
    }

    /// Topic with this URL, and its notification for subscribers that missed some. `None` if
    /// notifications themselves show a gap before them, and for topics of other publishers.
    ///
    /// # Errors
    /// The log fails.
    pub fn gap(&self, topic: &str) -> Result<Option<(Topic, Vec<u8>)>, PublishError> {
        let path = topic.strip_prefix(self.urls.base());
        let Some((projection, topic)) = path.and_then(|path| self.find_topic(path)) else {
            return Ok(None);
        };
        Ok(projection.gap(self, &topic)?.map(|bytes| (topic, bytes)))
    }

    /// Last notification in the topic of a set that is no longer published. Reads the store.
    ///
    /// # Errors
    /// There has been no notification, or the log fails.
    pub fn removed_topic(
        &self,
        topics: &dyn TopicLog,
        topic: TopicId,
        url: &str,
    ) -> Result<TopicDocument, PublishError> {
        let Some(Notification { offset, time, content }) = topics.last(topic)? else {
            return Err(PublishError::NotFound);
        };
        let Payload::Bytes(bytes) = content.payload else { return Err(PublishError::NotFound) };
        let hubs = self.sets().iter().find_map(|set| set.notifications.as_ref());
        let hubs = hubs
            .into_iter()
            .flat_map(|notifications| notifications.hubs.iter().map(String::as_str));
        Ok(TopicDocument {
            body: Bytes::from_owner(bytes),
            media_type: content.media_type,
            links: topic_links(hubs, url, ""),
            offset: Some(offset),
            time: Some(time),
        })
    }
}
