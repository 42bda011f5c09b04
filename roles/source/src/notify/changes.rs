//! Which changes of a set are told next? A range of its log, as long as a notification may be.

use super::NotifyOptions;
use super::due::Due;
use super::told::Record;
use crate::projection::Topic;
use crate::publish::PublishedSet;
use abreast_core::{ChangeLog, ChangeRecord, LogError, NewNotification, Payload, Position, SetId, TopicId, TopicLog};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// What an entry takes besides its URI and links, about.
const ENTRY_BYTES: usize = 400;
/// The pause after a single notification is this part of the longest one: one of so many.
const FIRST_PAUSE: u32 = 10;
/// What a link takes besides its target and parameters, about.
const LINK_BYTES: usize = 60;

/// The changes of one set.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) set: SetId,
    pub(super) slug: String,
    pub(super) topic: TopicId,
    links: String,
    media_type: &'static str,
    /// Told up to here.
    pub(super) told: Position,
    pub(super) due: Due,
    /// When the last notification was recorded, and the pause after it.
    last: Option<(Instant, Duration)>,
    /// After a failure it is not known whether the last notification was recorded.
    unsure: bool,
}

/// A notification to be recorded.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) after: Position,
    pub(super) last: Position,
    /// There are more changes than fit into one.
    pub(super) full: bool,
}

impl Changes {
    /// Goes on where the topic ends, or where a new one begins.
    pub(super) fn resume(
        log: &dyn ChangeLog,
        set: &PublishedSet,
        topics: &dyn TopicLog,
        topic: &Topic,
        record: &mut Record,
    ) -> Result<Self, LogError> {
        let id = topics.open_topic(&topic.url)?;
        let told = match last_told(topics, id)? {
            Some(told) => told,
            None => record.begun(&topic.record, log.head(set.id)?.position),
        };
        Ok(Self {
            set: set.id,
            slug: set.slug.clone(),
            topic: id,
            links: topic.links.clone(),
            media_type: topic.media_type,
            told,
            due: Due::now(),
            last: None,
            unsure: false,
        })
    }

    /// Is there something to tell? Answered from memory.
    pub(super) fn waiting(&self, log: &dyn ChangeLog) -> bool {
        self.unsure || log.head(self.set).is_ok_and(|head| head.position != self.told)
    }

    /// What is told next; `None` when there is nothing.
    pub(super) fn next(
        &mut self,
        log: &dyn ChangeLog,
        topics: &dyn TopicLog,
        options: &NotifyOptions,
    ) -> Result<Option<Range>, LogError> {
        if self.unsure {
            // An empty topic stays where it began.
            self.told = last_told(topics, self.topic)?.unwrap_or(self.told);
            self.unsure = false;
        }
        let head = log.head(self.set)?.position;
        if head < self.told {
            tracing::warn!(
                set = %self.slug,
                "the log ends at change {}, and {} were told already; what follows is told from here",
                head.0, self.told.0
            );
            self.told = head;
        }
        if head == self.told {
            return Ok(None);
        }
        let (mut last, mut full, mut entries, mut bytes) = (None, false, 0, 0);
        log.read(self.set, self.told, &mut |record| {
            bytes += length(record);
            // One is told however long it is.
            full = entries == options.most.max(1) || (bytes > options.bytes && entries > 0);
            if full {
                return ControlFlow::Break(());
            }
            entries += 1;
            last = Some(record.position);
            ControlFlow::Continue(())
        })?;
        if last.is_none() {
            // A log that began anew, and nothing happened since.
            self.told = head;
        }
        Ok(last.map(|last| Range { after: self.told, last, full }))
    }

    pub(super) fn notification(&self, range: &Range) -> NewNotification {
        NewNotification {
            media_type: self.media_type.to_owned(),
            links: self.links.clone(),
            payload: Payload::Changes { after: range.after, last: range.last },
        }
    }

    /// A range was recorded.
    pub(super) fn recorded(&mut self, range: &Range, options: &NotifyOptions) {
        self.told = range.last;
        // What does not fit into one notification is told without a pause, so that it ends.
        let pause = if range.full { Duration::ZERO } else { self.pause(Instant::now(), options.debounce) };
        self.due.done(pause);
    }

    /// The pause before the next notification: short after a single one, twice as long after each that follows soon.
    fn pause(&mut self, now: Instant, longest: Duration) -> Duration {
        let pause = match self.last {
            Some((last, pause)) if now.duration_since(last) < 2 * longest => (2 * pause).min(longest),
            _ => longest / FIRST_PAUSE,
        };
        self.last = Some((now, pause));
        pause
    }

    /// A range was perhaps not recorded: what the topic says counts.
    pub(super) fn failed(&mut self) {
        self.unsure = true;
        self.due.failed();
    }
}

/// The last position that the topic has told; `None` when it is empty.
fn last_told(topics: &dyn TopicLog, topic: TopicId) -> Result<Option<Position>, LogError> {
    Ok(match topics.last(topic)?.map(|last| last.content.payload) {
        Some(Payload::Changes { last, .. }) => Some(last),
        Some(Payload::Bytes(_)) | None => None,
    })
}

/// About how long the entry of a change is.
fn length(record: &ChangeRecord) -> usize {
    let links = record.state.iter().flat_map(|state| &state.links);
    let links = links.map(|link| {
        let params: usize = link.params.iter().map(|(name, value)| name.len() + value.len()).sum();
        LINK_BYTES + link.target.len() + link.rel.len() + params
    });
    ENTRY_BYTES + record.key.len() + links.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_while_changes_go_on_and_are_short_after_a_rest() {
        let (mut now, longest) = (Instant::now(), Duration::from_millis(200));
        let mut changes = Changes {
            set: SetId(1),
            slug: String::new(),
            topic: TopicId(1),
            links: String::new(),
            media_type: "application/xml",
            told: Position(0),
            due: Due::now(),
            last: None,
            unsure: false,
        };
        let pauses = [0; 6].map(|_| {
            let pause = changes.pause(now, longest);
            now += pause;
            pause.as_millis()
        });
        assert_eq!(pauses, [20, 40, 80, 160, 200, 200]);
        assert_eq!(changes.pause(now + 2 * longest, longest).as_millis(), 20);
    }
}
