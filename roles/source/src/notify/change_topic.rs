//! The topic of a set's changes. A notification contains a range of the log, up to the limits of
//! its length.

use super::NotifyOptions;
use super::due::Due;
use super::state_file::StateFile;
use crate::publish::Topic;
use abreast_core::{
    ChangeLog, ChangeRecord, Head, LogError, NewNotification, Payload, Position, SetId, TopicId,
    TopicLog,
};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Approximate length of an entry in bytes, without its URI and links.
const ENTRY_BYTES: usize = 400;
/// Ratio of the longest pause to the pause after a single notification.
const FIRST_PAUSE: u32 = 10;
/// Approximate length of a link in bytes, without its target and parameters.
const LINK_BYTES: usize = 60;

/// The topic of the changes of a set.
#[derive(Debug)]
pub(super) struct ChangeTopic {
    pub(super) set: SetId,
    pub(super) slug: String,
    pub(super) topic: TopicId,
    links: String,
    media_type: &'static str,
    /// Position of the last notified change in the set's log.
    pub(super) notified: Position,
    pub(super) due: Due,
    /// Time of the last notification, and the pause after it.
    last: Option<(Instant, Duration)>,
    /// Whether a failure occurred and it is unknown if the last notification was recorded.
    uncertain: bool,
}

/// A range of the log that a notification must contain.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) after: Position,
    pub(super) last: Position,
    /// Whether the notification reaches a limit, so that further changes follow in another
    /// notification.
    pub(super) full: bool,
}

impl ChangeTopic {
    /// Restores the position from the last notification; a new topic starts at the end of the log.
    pub(super) fn resume(
        log: &dyn ChangeLog,
        topics: &dyn TopicLog,
        topic: &Topic,
        state: &mut StateFile,
    ) -> Result<Self, LogError> {
        let (id, set) = (topics.open_topic(&topic.url)?, &topic.set);
        let notified = match last_notified(topics, id)? {
            Some(position) => position,
            None => state.begun(&topic.record, &topic.url, log.head(set.id)?.position),
        };
        Ok(Self {
            set: set.id,
            slug: set.slug.clone(),
            topic: id,
            links: topic.links.clone(),
            media_type: topic.media_type,
            notified,
            due: Due::now(),
            last: None,
            uncertain: false,
        })
    }

    /// Whether the topic has changes to notify, according to the head of the log.
    pub(super) fn waiting(&self, log: &dyn ChangeLog) -> bool {
        let is_behind = |head: Head| !head.importing && head.position != self.notified;
        self.uncertain || log.head(self.set).is_ok_and(is_behind)
    }

    /// Returns the next range to notify; `None` if all changes are notified.
    pub(super) fn next(
        &mut self,
        log: &dyn ChangeLog,
        topics: &dyn TopicLog,
        options: &NotifyOptions,
    ) -> Result<Option<Range>, LogError> {
        // An empty topic remains at its start.
        let recorded = last_notified(topics, self.topic)?.unwrap_or(self.notified);
        // The store may have lost notifications in a failover.
        self.notified = if self.uncertain { recorded } else { recorded.min(self.notified) };
        self.uncertain = false;
        let head = log.head(self.set)?;
        if head.importing {
            // Clients cannot read the set until its base is complete.
            return Ok(None);
        }
        let head = head.position;
        if head < self.notified {
            tracing::warn!(
                set = %self.slug,
                "the log ends at change {}, and {} were notified already; notifications continue from here",
                head.0, self.notified.0
            );
            self.notified = head;
        }
        if head == self.notified {
            return Ok(None);
        }
        let (mut last, mut full, mut entries, mut bytes) = (None, false, 0, 0);
        log.read(self.set, self.notified, &mut |record| {
            bytes += length(record);
            // The first change is notified even if it exceeds the limit.
            full = entries == options.most.max(1) || (bytes > options.bytes && entries > 0);
            if full {
                return ControlFlow::Break(());
            }
            entries += 1;
            last = Some(record.position);
            ControlFlow::Continue(())
        })?;
        if last.is_none() {
            // The log was recreated, and has no changes yet.
            self.notified = head;
        }
        Ok(last.map(|last| Range { after: self.notified, last, full }))
    }

    pub(super) fn notification(&self, range: &Range) -> NewNotification {
        NewNotification {
            media_type: self.media_type.to_owned(),
            links: self.links.clone(),
            payload: Payload::Changes { after: range.after, last: range.last },
        }
    }

    /// Updates the position after a range was recorded, and starts the pause.
    pub(super) fn recorded(&mut self, range: &Range, options: &NotifyOptions) {
        self.notified = range.last;
        // The rest of the changes follows without a pause, so that the queue becomes empty.
        let pause =
            if range.full { Duration::ZERO } else { self.pause(Instant::now(), options.debounce) };
        self.due.done(pause);
    }

    /// Computes the pause before the next notification. The pause is short after a single
    /// notification, and doubles after each notification that follows soon.
    fn pause(&mut self, now: Instant, longest: Duration) -> Duration {
        let pause = match self.last {
            Some((last, pause)) if now.duration_since(last) < 2 * longest => {
                (2 * pause).min(longest)
            }
            _ => longest / FIRST_PAUSE,
        };
        self.last = Some((now, pause));
        pause
    }

    /// Handles an error after which the range may be recorded. The next attempt reads the end of
    /// the topic's log.
    pub(super) fn failed(&mut self) {
        self.uncertain = true;
        self.due.failed();
    }
}

/// Returns the last position in the topic's log; `None` if the topic is empty.
fn last_notified(topics: &dyn TopicLog, topic: TopicId) -> Result<Option<Position>, LogError> {
    Ok(match topics.last(topic)?.map(|last| last.content.payload) {
        Some(Payload::Changes { last, .. }) => Some(last),
        Some(Payload::Bytes(_)) | None => None,
    })
}

/// Estimates the length of a change's entry, in bytes.
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
        let mut changes = ChangeTopic {
            set: SetId(1),
            slug: String::new(),
            topic: TopicId(1),
            links: String::new(),
            media_type: "application/xml",
            notified: Position(0),
            due: Due::now(),
            last: None,
            uncertain: false,
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
