//! What is told to those who subscribed? Notifications, and the topics they belong to [rs-change-notification §3, §4]
//! [rs-framework-notification §3, §4].
//!
//! A Change Notification is a range of the log: the same entries as in the Change List. Its `from` is `until` of the one
//! before, so who sees a gap knows that something was missed, and finds it in the Change List.

use super::change_list::ChangeWriter;
use super::{PublishError, Publisher, SetUrls, XML, exactly, link};
use crate::dump::time_of;
use abreast_core::{Notification, Offset, Payload, Position, TopicId, TopicLog};
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root, write_end, write_entry, write_head};
use abreast_websub::topic_links;
use abreast_webtypes::{Link, Timestamp, write_link};
use bytes::Bytes;
use std::ops::ControlFlow;

/// What is told of: each is a topic of its own in every set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Changes of resources [rs-change-notification §2].
    Change,
    /// Changes of the documents that speak of them [rs-framework-notification §2].
    Framework,
}

impl Channel {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Change, Self::Framework];

    /// Its name in URLs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Framework => "framework",
        }
    }

    /// What its notifications are.
    pub const fn capability(self) -> Capability {
        match self {
            Self::Change => Capability::ChangeNotification,
            Self::Framework => Capability::FrameworkNotification,
        }
    }
}

/// What a set tells those who subscribed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifications {
    /// Where it is subscribed to: at least one.
    pub hubs: Vec<String>,
    /// Are changes of resources told?
    pub changes: bool,
    /// Are changes of documents told?
    pub framework: bool,
}

impl Notifications {
    /// Everything is told.
    pub fn at(hubs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { hubs: hubs.into_iter().map(Into::into).collect(), changes: true, framework: true }
    }

    /// Is there this channel?
    pub fn has(&self, channel: Channel) -> bool {
        match channel {
            Channel::Change => self.changes,
            Channel::Framework => self.framework,
        }
    }

    /// The channels there are.
    pub fn channels(&self) -> impl Iterator<Item = Channel> + '_ {
        Channel::ALL.into_iter().filter(|channel| self.has(*channel))
    }
}

/// What a topic answers with: what was said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDocument {
    /// The last notification; empty while there is none.
    pub body: Bytes,
    /// Its media type.
    pub media_type: String,
    /// The `Link` header: hubs, topic, Capability List.
    pub links: String,
    /// The number of that notification in its topic.
    pub offset: Option<Offset>,
    /// When it was sent.
    pub time: Option<Timestamp>,
}

impl Publisher {
    /// The set and the channel that a topic's URL names, if it is one of these.
    pub fn topic_named(&self, url: &str) -> Option<(usize, Channel)> {
        let channel = Channel::ALL.into_iter().find(|channel| url.ends_with(channel.name()))?;
        let base = url.strip_suffix(channel.name())?.strip_suffix("notify/")?;
        let set = self.sets().iter().position(|set| set.urls.base() == base)?;
        self.notifications(set)?.has(channel).then_some((set, channel))
    }

    /// The `Link` header of a topic and of its notifications, `None` when there is no such topic.
    pub fn topic_links(&self, set: usize, channel: Channel) -> Option<String> {
        let notifications = self.notifications(set).filter(|told| told.has(channel))?;
        let urls = &self.sets().get(set)?.urls;
        let hubs = notifications.hubs.iter().map(String::as_str);
        Some(topic_links(hubs, &urls.topic(channel), &self.notification_links(set)?))
    }

    /// What is sent along with each notification besides hub and topic: where its Capability List is.
    pub(crate) fn notification_links(&self, set: usize) -> Option<String> {
        let mut links = String::new();
        let target = self.sets().get(set)?.urls.capability_list();
        write_link(&mut links, &Link { target, rel: "resourcesync".to_owned(), params: Vec::new() });
        Some(links)
    }

    /// What a topic answers with. Reads the store.
    ///
    /// # Errors
    /// When there is no such topic or a log fails.
    pub fn topic(&self, topics: &dyn TopicLog, set: usize, channel: Channel) -> Result<TopicDocument, PublishError> {
        let links = self.topic_links(set, channel).ok_or(PublishError::NotFound)?;
        let topic = topics.open_topic(&self.set(set)?.urls.topic(channel))?;
        let empty = TopicDocument { body: Bytes::new(), media_type: XML.to_owned(), links, offset: None, time: None };
        let Some(Notification { offset, time, content }) = topics.last(topic)? else { return Ok(empty) };
        let body = match content.payload {
            Payload::Changes { after, last } => self.change_notification(set, after, last)?.into(),
            Payload::Bytes(bytes) => Bytes::from_owner(bytes),
        };
        Ok(TopicDocument { body, media_type: content.media_type, offset: Some(offset), time: Some(time), ..empty })
    }

    /// What the topic of a set answers with that is no longer published: its last notification. Reads the store.
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
        let hubs = (0..self.sets().len()).find_map(|set| self.notifications(set));
        let hubs = hubs.into_iter().flat_map(|notifications| notifications.hubs.iter().map(String::as_str));
        Ok(TopicDocument {
            body: Bytes::from_owner(bytes),
            media_type: content.media_type,
            links: topic_links(hubs, url, ""),
            offset: Some(offset),
            time: Some(time),
        })
    }

    /// The Change Notification of a range of a set's log. Reads the store; the same range is the same bytes.
    ///
    /// A range whose changes are no longer in the log, since it began anew, tells of none: its `from` is later than
    /// what was told before, and that leads readers to the Change List.
    ///
    /// # Errors
    /// When there is no such set or the log fails.
    pub fn change_notification(&self, set: usize, after: Position, last: Position) -> Result<Vec<u8>, PublishError> {
        let set = self.set(set)?;
        let log = &**self.log();
        let before = time_of(log, set.id, after)?;
        let mut until = None;
        let (mut entries, mut writer) = (Vec::new(), ChangeWriter::new(set));
        if after < last {
            log.read(set.id, after, &mut |record| {
                if record.position > last {
                    return ControlFlow::Break(());
                }
                until = Some(record.time);
                writer.write(&mut entries, record);
                if record.position == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        let created = log.head(set.id)?.created;
        let (from, until) = match until {
            // Told before the log began anew: the log does not speak of it any more.
            Some(until) if until <= created => (before.min(until), until),
            // What was between is unknown since it began anew: a gap says so.
            Some(until) => (before.max(created), until),
            None => (created, created),
        };
        let mut bytes = Vec::with_capacity(entries.len() + 512);
        write_head(&mut bytes, &head(&set.urls, Channel::Change, Some(from), until));
        bytes.append(&mut entries);
        write_end(&mut bytes, Root::UrlSet);
        Ok(bytes)
    }

    /// The same by the topic's URL, for a hub that knows nothing else.
    ///
    /// # Errors
    /// When there is no such topic or the log fails.
    pub fn change_notification_of(
        &self,
        topic: &str,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        match self.topic_named(topic) {
            Some((set, Channel::Change)) => self.change_notification(set, after, last),
            _ => Err(PublishError::NotFound),
        }
    }
}

/// A Framework Notification of these documents.
pub(crate) fn framework(urls: &SetUrls, from: Option<Timestamp>, until: Timestamp, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512 + entries.len() * 256);
    write_head(&mut bytes, &head(urls, Channel::Framework, from, until));
    for entry in entries {
        write_entry(&mut bytes, Root::UrlSet, entry);
    }
    write_end(&mut bytes, Root::UrlSet);
    bytes
}

fn head(urls: &SetUrls, channel: Channel, from: Option<Timestamp>, until: Timestamp) -> Head {
    Head {
        root: Root::UrlSet,
        capability: Some(channel.capability()),
        from: from.map(exactly),
        until: Some(exactly(until)),
        links: vec![link("up", &urls.capability_list())],
        ..Head::default()
    }
}
