//! The table of targets: all in memory, with a few hundred bytes each.

use super::pace::Pace;
use abreast_core::hub::{Attempt, DeadLetter, Progress, Target, TargetId, TargetKind};
use abreast_core::{Offset, TopicId};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

/// Index of a target in the table.
pub(crate) type TargetIndex = u32;

/// The activity of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetActivity {
    /// The target is up to date.
    Idle,
    /// The target waits for its turn.
    Ready,
    /// A delivery is running.
    Flying,
    /// The target waits for the time of the next attempt.
    Waiting,
}

/// A target. Rare values are boxed.
pub(crate) struct Entry {
    pub(crate) id: TargetId,
    pub(crate) topic: TopicId,
    pub(crate) kind: TargetKind,
    pub(crate) doing: TargetActivity,
    /// Whether the progress is not recorded yet.
    pub(crate) dirty: bool,
    /// The speed of its last exchange.
    pub(crate) pace: Pace,
    /// Duration of its last exchange, in milliseconds.
    pub(crate) took: u16,
    /// Changes when running deliveries become invalid: at a replay, and when the slot is reused.
    pub(crate) epoch: u32,
    /// Index in the list of the topic's members.
    member: u32,
    pub(crate) address: Box<str>,
    pub(crate) secret: Option<Box<[u8]>>,
    pub(crate) lease_until: Option<Timestamp>,
    pub(crate) cursor: Offset,
    pub(crate) generation: u64,
    pub(crate) trouble: Option<Box<FailureState>>,
    pub(crate) news: Option<Box<UnsavedAttempt>>,
}

impl Entry {
    fn progress(&mut self) -> Progress {
        let news = self.news.take().map_or_else(UnsavedAttempt::default, |news| *news);
        let trouble = self.trouble.as_deref();
        Progress {
            id: self.id,
            generation: self.generation,
            cursor: self.cursor,
            attempts: trouble.map_or(0, |trouble| trouble.attempts),
            first_failed: trouble.and_then(|trouble| trouble.first_failed),
            next_at: trouble.and_then(|trouble| trouble.next_at),
            last: news.attempt,
            dead: news.dead,
        }
    }
}

/// Attempts in a row that failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailureState {
    /// For the notification after the cursor.
    pub(crate) attempts: u32,
    /// Failures since the last success, over several notifications.
    pub(crate) failures: u32,
    pub(crate) first_failed: Option<Timestamp>,
    pub(crate) next_at: Option<Timestamp>,
    /// Status of the last answer since the start.
    pub(crate) status: Option<u16>,
    /// Offset of the last notification that was given up, if the subscriber is not notified of this
    /// yet.
    pub(crate) gap: Option<Offset>,
}

/// Values that are recorded in addition to the cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnsavedAttempt {
    pub(crate) attempt: Option<Attempt>,
    pub(crate) dead: Option<DeadLetter>,
}

/// A topic with targets, or one that was requested.
pub(crate) struct TopicEntry {
    pub(crate) url: Arc<str>,
    pub(crate) head: Offset,
    pub(crate) members: Vec<TargetIndex>,
    pub(crate) own: bool,
}

/// All targets.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Option<Entry>>,
    free: Vec<TargetIndex>,
    epochs: u32,
    ids: HashMap<TargetId, TargetIndex>,
    pub(crate) topics: HashMap<TopicId, TopicEntry>,
    /// Numbers of subscriptions by a hash of their callback's host.
    hosts: HashMap<u64, u32>,
    hasher: RandomState,
    /// Indexes of other hubs.
    pub(crate) submissions: BTreeSet<TargetIndex>,
    dirty: Vec<TargetIndex>,
    /// Progress that was replaced in its entry before it was recorded.
    pending: Vec<Progress>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn get(&self, place: TargetIndex) -> Option<&Entry> {
        self.entries.get(place as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: TargetIndex) -> Option<&mut Entry> {
        self.entries.get_mut(place as usize)?.as_mut()
    }

    pub(crate) fn place(&self, id: TargetId) -> Option<TargetIndex> {
        self.ids.get(&id).copied()
    }

    /// All places, used and unused.
    pub(crate) fn places(&self) -> std::ops::Range<TargetIndex> {
        0..self.entries.len() as TargetIndex
    }

    /// Adds a target, or updates an existing one, unless that is as new. Its topic must be in the
    /// table.
    pub(crate) fn put(&mut self, target: Target) -> Option<TargetIndex> {
        if let Some(place) = self.place(target.id) {
            let entry = self.get_mut(place)?;
            if entry.generation >= target.generation {
                return Some(place);
            }
            entry.secret = target.secret.map(|secret| secret.0);
            entry.lease_until = target.lease_until;
            entry.generation = target.generation;
            self.mark_dirty(place);
            return Some(place);
        }
        let place = self.free.pop().unwrap_or(self.entries.len() as TargetIndex);
        let topic = self.topics.get_mut(&target.topic)?;
        let member = topic.members.len() as u32;
        topic.members.push(place);
        self.epochs = self.epochs.wrapping_add(1);
        let troubled = target.attempts > 0 || target.first_failed.is_some();
        let trouble = troubled.then(|| {
            Box::new(FailureState {
                attempts: target.attempts,
                failures: target.attempts,
                first_failed: target.first_failed,
                next_at: target.next_at,
                status: None,
                gap: None,
            })
        });
        if target.kind == TargetKind::Subscription {
            *self.hosts.entry(self.hasher.hash_one(host_of(&target.address))).or_default() += 1;
        } else {
            self.submissions.insert(place);
        }
        let entry = Entry {
            id: target.id,
            topic: target.topic,
            kind: target.kind,
            doing: TargetActivity::Idle,
            dirty: false,
            // The reason of failures before the start is unknown.
            pace: if troubled { Pace::Slow } else { Pace::New },
            took: 0,
            epoch: self.epochs,
            member,
            address: target.address.into_boxed_str(),
            secret: target.secret.map(|secret| secret.0),
            lease_until: target.lease_until,
            cursor: target.cursor,
            generation: target.generation,
            trouble,
            news: None,
        };
        self.ids.insert(target.id, place);
        if place as usize == self.entries.len() {
            self.entries.push(Some(entry));
        } else {
            self.entries[place as usize] = Some(entry);
        }
        Some(place)
    }

    pub(crate) fn remove(&mut self, place: TargetIndex) -> Option<Entry> {
        let entry = self.entries.get_mut(place as usize)?.take()?;
        self.ids.remove(&entry.id);
        self.free.push(place);
        if let Some(topic) = self.topics.get_mut(&entry.topic) {
            topic.members.swap_remove(entry.member as usize);
            if let Some(moved) = topic.members.get(entry.member as usize).copied()
                && let Some(moved) = self.entries[moved as usize].as_mut()
            {
                moved.member = entry.member;
            }
        }
        if entry.kind == TargetKind::Subscription {
            let host = self.hasher.hash_one(host_of(&entry.address));
            if let Some(count) = self.hosts.get_mut(&host) {
                *count -= 1;
                if *count == 0 {
                    self.hosts.remove(&host);
                }
            }
        } else {
            self.submissions.remove(&place);
        }
        Some(entry)
    }

    /// Makes running deliveries of a target invalid by a new epoch.
    pub(crate) fn renew_epoch(&mut self, place: TargetIndex) {
        self.epochs = self.epochs.wrapping_add(1);
        let epoch = self.epochs;
        if let Some(entry) = self.get_mut(place) {
            entry.epoch = epoch;
        }
    }

    pub(crate) fn mark_dirty(&mut self, place: TargetIndex) {
        if let Some(entry) = self.get_mut(place)
            && !entry.dirty
        {
            entry.dirty = true;
            self.dirty.push(place);
        }
    }

    /// Whether there is unrecorded progress.
    pub(crate) fn has_progress(&self) -> bool {
        !self.dirty.is_empty() || !self.pending.is_empty()
    }

    /// Takes the unrecorded progress.
    pub(crate) fn take_progress(&mut self) -> Vec<Progress> {
        let dirty = std::mem::take(&mut self.dirty);
        let mut progress = std::mem::take(&mut self.pending);
        progress.reserve(dirty.len());
        for place in dirty {
            if let Some(entry) = self.get_mut(place)
                && std::mem::take(&mut entry.dirty)
            {
                progress.push(entry.progress());
            }
        }
        progress
    }

    /// Returns progress that could not be recorded.
    pub(crate) fn put_back(&mut self, places: &[TargetId], letters: Vec<Progress>) {
        for id in places {
            if let Some(place) = self.place(*id) {
                self.mark_dirty(place);
            }
        }
        self.pending.extend(letters);
    }

    /// Marks targets whose progress the store refused, because they were renewed meanwhile: it is
    /// recorded again, with the newer generation. `letters` are the given-up notifications in that
    /// progress. Progress of targets that left the table is dropped. Returns whether there is a
    /// target to be recorded again.
    pub(crate) fn record_again(&mut self, refused: &[TargetId], letters: Vec<Progress>) -> bool {
        let places: Vec<_> = refused.iter().filter_map(|id| self.place(*id)).collect();
        for place in &places {
            self.mark_dirty(*place);
        }
        for mut letter in letters.into_iter().filter(|letter| refused.contains(&letter.id)) {
            let place = self.place(letter.id);
            if let Some(entry) = place.and_then(|place| self.get(place)) {
                letter.generation = entry.generation;
                self.pending.push(letter);
            }
        }
        !places.is_empty()
    }

    /// Drops unrecorded progress of targets that left the table.
    pub(crate) fn drop_progress(&mut self, is_gone: impl Fn(TargetId) -> bool) {
        self.pending.retain(|progress| !is_gone(progress.id));
    }

    /// Notes the result of a delivery, if it is to be recorded.
    pub(crate) fn note(&mut self, place: TargetIndex, attempt: Attempt) {
        let Some(entry) = self.get_mut(place) else { return };
        let before = entry.news.as_ref().is_some_and(|news| news.attempt.is_some());
        let waiting = before.then(|| entry.progress());
        entry.news.get_or_insert_default().attempt = Some(attempt);
        self.pending.extend(waiting);
    }

    /// Records notifications that were given up.
    pub(crate) fn add_dead_letter(&mut self, place: TargetIndex, letter: DeadLetter) {
        let Some(entry) = self.get_mut(place) else { return };
        let before = entry.news.as_mut().and_then(|news| news.dead.as_mut());
        let waiting = match before {
            Some(before) if before.last.0 + 1 == letter.first.0 => {
                before.last = letter.last;
                before.letters += letter.letters;
                before.error = letter.error;
                before.time = letter.time;
                None
            }
            Some(_) => {
                let waiting = entry.progress();
                entry.news.get_or_insert_default().dead = Some(letter);
                Some(waiting)
            }
            None => {
                entry.news.get_or_insert_default().dead = Some(letter);
                None
            }
        };
        self.pending.extend(waiting);
    }

    /// Number of subscriptions with callbacks on the same host as this one.
    pub(crate) fn subscriptions_on_host_of(&self, callback: &str) -> u32 {
        self.hosts.get(&self.hasher.hash_one(host_of(callback))).copied().unwrap_or(0)
    }
}

/// `scheme://host:port` as written, in lower case where letters do not matter.
pub(crate) fn origin_of(url: &str) -> std::borrow::Cow<'_, str> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let origin = &url[..end];
    if origin.bytes().any(|byte| byte.is_ascii_uppercase()) {
        origin.to_ascii_lowercase().into()
    } else {
        origin.into()
    }
}

/// The host of a URL as written, without the port, in lower case.
pub(crate) fn host_of(url: &str) -> String {
    host_in(&origin_of(url)).to_owned()
}

/// The host in the result of [`origin_of`], or the service of a node.
pub(crate) fn host_in(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, rest)| rest);
    let authority = authority.strip_prefix("xmpp:").unwrap_or(authority);
    let end = if authority.starts_with('[') {
        authority.find(']').map(|at| at + 1)
    } else {
        authority.find(':')
    };
    &authority[..end.unwrap_or(authority.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::hub::Secret;

    fn target(id: i64, address: &str) -> Target {
        Target {
            id: TargetId(id),
            topic: TopicId(1),
            kind: TargetKind::Subscription,
            address: address.to_owned(),
            secret: Some(Secret::from(vec![b'x'; 32])),
            lease_until: None,
            cursor: Offset(0),
            generation: 0,
            created: Timestamp::default(),
            attempts: 0,
            first_failed: None,
            next_at: None,
        }
    }

    fn table() -> Table {
        let mut table = Table::default();
        let topic = TopicEntry {
            url: "http://e/t".into(),
            head: Offset(0),
            members: Vec::new(),
            own: false,
        };
        table.topics.insert(TopicId(1), topic);
        table
    }

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Option<Entry>>() <= 144, "{}", size_of::<Option<Entry>>());
    }

    #[test]
    fn members_stay_right_when_others_go() {
        let mut table = table();
        let places: Vec<_> =
            (1..=5).map(|id| table.put(target(id, "http://a:1/x")).unwrap()).collect();
        assert_eq!(table.subscriptions_on_host_of("http://A/"), 5);
        table.remove(places[1]).unwrap();
        table.remove(places[4]).unwrap();
        table.put(target(9, "http://b/")).unwrap();
        let mut ids: Vec<_> =
            table.topics[&TopicId(1)].members.iter().map(|p| table.get(*p).unwrap().id.0).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 3, 4, 9]);
        for id in ids {
            table.remove(table.place(TargetId(id)).unwrap()).unwrap();
        }
        assert!(table.topics[&TopicId(1)].members.is_empty() && table.hosts.is_empty());
    }

    #[test]
    fn hosts_and_origins_are_read() {
        for (url, origin, host) in [
            ("http://E.org:80/A?b", "http://e.org:80", "e.org"),
            ("https://e.org?x", "https://e.org", "e.org"),
            ("http://[::1]:8/", "http://[::1]:8", "[::1]"),
        ] {
            assert_eq!((&*origin_of(url), host_of(url).as_str()), (origin, host));
        }
    }
}
