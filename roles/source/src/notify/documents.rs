//! Which documents are told when? Those of every set with a framework channel, looked at now and then.

use super::due::Due;
use super::news::{Digests, Look, News, digest};
use super::notifier::NotifyError;
use super::told::{Record, Told};
use crate::projection::TopicContent;
use crate::publish::{Channel, PublishError, Publisher, SetUrls, framework};
use abreast_core::{LogError, NewNotification, Payload, TopicId, TopicLog};
use abreast_resourcesync::v1_1::{Capability, Change, Entry};
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};
use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

/// The documents of all sets.
pub(super) struct Documents {
    record: Record,
    sets: Vec<Set>,
    /// Sets that are no longer published.
    removed: Vec<Removed>,
    every: Duration,
}

/// The documents of one set.
struct Set {
    /// Its place in the publisher.
    number: usize,
    slug: String,
    topic: TopicId,
    links: String,
    digests: Digests,
    due: Due,
    /// When the open Change List may be told to have grown; `None` for never.
    growth: Option<Instant>,
}

/// A set that was published when the Source ran before.
struct Removed {
    slug: String,
    topic: TopicId,
    urls: SetUrls,
    due: Due,
}

/// A notification to be recorded.
pub(super) struct ToTell {
    pub(super) slug: String,
    pub(super) topic: TopicId,
    pub(super) notification: NewNotification,
    /// What was told once it is recorded, and of which set, by its place here; of a set that is gone nothing more.
    news: Option<(usize, News)>,
}

impl Documents {
    /// Goes on with what was told before.
    pub(super) fn resume(
        publisher: &Publisher,
        topics: &dyn TopicLog,
        record: Record,
        every: Duration,
    ) -> Result<Self, NotifyError> {
        let mut sets = Vec::new();
        let mut descriptions = HashMap::new();
        for topic in publisher.topics().into_iter().filter(|topic| topic.content == TopicContent::Documents) {
            let (number, set) = (topic.set, &publisher.sets()[topic.set]);
            let path = publisher.source_description_of(number).path;
            let source_description = match descriptions.get(&path) {
                Some(known) => String::clone(known),
                None => descriptions.entry(path).or_insert(digest(publisher, &path)?).clone(),
            };
            sets.push(Set {
                number,
                slug: set.slug.clone(),
                topic: topics.open_topic(&topic.url)?,
                links: topic.links,
                digests: Digests::new(source_description),
                due: Due::now(),
                growth: (!every.is_zero()).then(Instant::now),
            });
        }
        let removed = Self::removed(&record, publisher, topics)?;
        Ok(Self { record, sets, removed, every })
    }

    fn removed(record: &Record, publisher: &Publisher, topics: &dyn TopicLog) -> Result<Vec<Removed>, LogError> {
        let published: HashSet<&str> = publisher.sets().iter().map(|set| set.slug.as_str()).collect();
        let known = record.sets().iter().filter(|(_, told)| !told.capability_list.is_empty()).map(|(slug, _)| slug);
        let gone = known.filter(|slug| !published.contains(slug.as_str())).map(|slug| {
            let urls = publisher.urls().set(slug);
            let topic = topics.open_topic(&urls.topic(Channel::Framework))?;
            Ok(Removed { slug: slug.clone(), topic, urls, due: Due::now() })
        });
        gone.collect()
    }

    /// What is to be told now. Each is to be answered with [`Documents::recorded`] or [`Documents::failed`].
    pub(super) fn news(&mut self, publisher: &Publisher, now: Timestamp) -> Vec<ToTell> {
        let new_source = self.record.sets().values().all(|told| told.source_description.is_empty());
        let mut found: Vec<ToTell> = Vec::new();
        let clock = Instant::now();
        for removed in self.removed.iter().filter(|removed| removed.due.is_at(clock)) {
            found.push(removed.to_tell(self.record.sets().get(&removed.slug), now));
        }
        for (place, set) in self.sets.iter_mut().enumerate().filter(|(_, set)| set.due.is_at(clock)) {
            let none = Told::default();
            let told = self.record.sets().get(&set.slug).unwrap_or(&none);
            let growth = set.growth.is_some_and(|growth| growth <= clock);
            match set.news(publisher, told, now, new_source, growth) {
                Ok(news) if news.entries.is_empty() => {}
                Ok(news) => found.push(set.to_tell(place, publisher, news, now)),
                Err(error) => {
                    set.due.failed();
                    tracing::error!(set = %set.slug, "cannot look for new documents: {error}; trying again");
                }
            }
        }
        found
    }

    /// A notification is in its topic's log.
    pub(super) fn recorded(&mut self, done: ToTell) {
        if let Some((place, news)) = done.news {
            let set = &mut self.sets[place];
            set.due.done(Duration::ZERO);
            if news.growth {
                set.growth = Instant::now().checked_add(self.every);
            }
            self.record.insert(&done.slug, news.told);
        } else {
            self.record.remove(&done.slug);
            self.removed.retain(|removed| removed.slug != done.slug);
        }
    }

    /// A notification is not, or perhaps not: it is told again later.
    pub(super) fn failed(&mut self, failed: &ToTell) {
        match failed.news {
            Some((place, _)) => self.sets[place].due.failed(),
            None => {
                if let Some(removed) = self.removed.iter_mut().find(|removed| removed.slug == failed.slug) {
                    removed.due.failed();
                }
            }
        }
    }

    /// Notes on the disk what was recorded.
    pub(super) fn note(&mut self) -> io::Result<()> {
        self.record.note()
    }
}

impl Set {
    fn news(
        &mut self,
        publisher: &Publisher,
        told: &Told,
        now: Timestamp,
        new_source: bool,
        growth: bool,
    ) -> Result<News, PublishError> {
        self.digests.refresh(publisher, self.number)?;
        Look { publisher, set: self.number, now, new_source, growth }.news(told, &self.digests)
    }

    fn to_tell(&self, place: usize, publisher: &Publisher, mut news: News, now: Timestamp) -> ToTell {
        let (from, until) = span(news.told.until, now);
        news.told.until = until.as_micros();
        let urls = &publisher.sets()[self.number].urls;
        ToTell {
            slug: self.slug.clone(),
            topic: self.topic,
            notification: new_notification(framework(urls, from, until, &news.entries), &self.links),
            news: Some((place, news)),
        }
    }
}

impl Removed {
    /// Its Capability List is gone; of its lists nothing is said.
    fn to_tell(&self, told: Option<&Told>, now: Timestamp) -> ToTell {
        let (from, until) = span(told.map_or(0, |told| told.until), now);
        let entry = Entry {
            loc: self.urls.capability_list(),
            capability: Some(Capability::CapabilityList),
            change: Some(Change::Deleted),
            datetime: Some(W3cDatetime { instant: until, precision: Precision::Fraction }),
            ..Entry::default()
        };
        ToTell {
            slug: self.slug.clone(),
            topic: self.topic,
            notification: new_notification(framework(&self.urls, from, until, &[entry]), ""),
            news: None,
        }
    }
}

/// `from` is `until` of the one before, and times go on whatever the clock does.
fn span(told: i64, now: Timestamp) -> (Option<Timestamp>, Timestamp) {
    let from = (told != 0).then(|| Timestamp::from_micros(told));
    (from, from.map_or(now, |from| abreast_core::next_time(from, now)))
}

fn new_notification(bytes: Vec<u8>, links: &str) -> NewNotification {
    NewNotification {
        media_type: "application/xml".to_owned(),
        links: links.to_owned(),
        payload: Payload::Bytes(bytes.into()),
    }
}
