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

/// The answer of a topic: its last notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDocument {
    /// The last notification; empty while there is none.
    pub body: Bytes,
    /// The media type of the notification.
    pub media_type: String,
    /// The `Link` header: hubs, topic, Capability List.
    pub links: String,
    /// The number of that notification in its topic.
    pub offset: Option<Offset>,
    /// The time when the notification was sent.
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

    /// The topic that is subscribed to by HTTP callback at a path below the public base.
    pub fn callback_topic_at(&self, path: &str) -> Option<Topic> {
        self.projections().find_map(|projection| projection.callback_topic(self, path))
    }

    fn find_topic(&self, path: &str) -> Option<(&dyn Projection, Topic)> {
        self.projections().find_map(|projection| Some((projection, projection.topic(self, path)?)))
    }

    /// The URLs of a set's topics, whether notifications are published there now or not.
    pub fn topic_urls(&self, set: &Arc<PublishedSet>) -> Vec<String> {
        self.projections().flat_map(|projection| projection.topic_urls(set)).collect()
    }

    /// Whether this is the path of a topic in which the end of a set is published, whether there is
    /// such a set or not.
    pub fn is_lasting_topic(&self, path: &str) -> bool {
        self.projections().any(|projection| projection.is_lasting_topic(path))
    }

    /// The `Link` header of a topic and of its notifications.
    fn topic_links(topic: &Topic) -> String {
        let hubs = topic.set.notifications.iter().flat_map(|notifications| &notifications.hubs);
        topic_links(hubs.map(String::as_str), &topic.url, &topic.links)
    }

    /// The last notification of a topic. Reads the store.
    ///
    /// # Errors
    /// When a log fails.
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

    /// The notification of a range of a set's log, by the topic's URL. Reads the store; the same
    /// range is the same bytes.
    ///
    /// # Errors
    /// When there is no such topic or the log fails.
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

    /// The topic of that URL, and its notification for subscribers that miss some; `None` where
    /// notifications show by themselves that others are missing before them, and for topics of
    /// others.
    ///
    /// # Errors
    /// When the log fails.
    pub fn gap(&self, topic: &str) -> Result<Option<(Topic, Vec<u8>)>, PublishError> {
        let path = topic.strip_prefix(self.urls.base());
        let Some((projection, topic)) = path.and_then(|path| self.find_topic(path)) else {
            return Ok(None);
        };
        Ok(projection.gap(self, &topic)?.map(|bytes| (topic, bytes)))
    }

    /// The last notification in the topic of a set that is no longer published. Reads the store.
    ///
    /// # Errors
    /// When nothing was published there, or the log fails.
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
