//! Clients that follow sets: by event stream, or by requests for the newest changes.

use abreast_core::Position;
use abreast_webtypes::{Timestamp, visible};
use http::HeaderValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Most followers by requests in memory; the oldest request is forgotten first. Streams are limited
/// by their places.
const FOLLOWERS: usize = 1_000;
/// Most followers by requests of one client, with different programs and sets.
const OF_CLIENT: usize = 100;
/// A follower without a request for this long is forgotten, in microseconds.
const FORGOTTEN_MICROS: i64 = 7 * 24 * 3_600 * 1_000_000;
/// Most bytes of the name of a client's program.
const MAX_PROGRAM: usize = 200;

/// An answer with which a client follows a set; an extension of the response.
#[derive(Clone, Debug)]
pub(crate) enum Following {
    /// The newest changes of the set with this name, when the last change had this position.
    Set(String, Position),
    /// A stream of the notifications of a topic, with the offset of the last one that was sent.
    Stream(String, Arc<AtomicU64>),
}

/// A client that follows a set or a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Name of a known client, or an address.
    pub client: String,
    /// The program of the client, from `User-Agent`; empty without this field.
    pub program: String,
    /// Name of the set, or URL of the topic of a stream.
    pub of: String,
    /// Time of the last request.
    pub last_request: Timestamp,
    /// The state that the client has.
    pub at: FollowerAt,
}

/// The state that a follower has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowerAt {
    /// Position of the last change at the time of the request.
    Asked(Position),
    /// Offset of the last notification that was sent in an open stream.
    Sent(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    client: String,
    program: String,
    of: String,
    is_stream: bool,
}

#[derive(Debug)]
struct Entry {
    last_request: Timestamp,
    position: Position,
    /// Open streams with the offset of the last notification that was sent.
    streams: Vec<Weak<AtomicU64>>,
}

impl Entry {
    /// Removes closed streams, and returns whether others are open.
    fn has_streams(&mut self) -> bool {
        self.streams.retain(|stream| stream.strong_count() > 0);
        !self.streams.is_empty()
    }
}

/// Forgets the oldest request of the same client, or of all, if there are as many as allowed.
fn make_room(followers: &mut HashMap<Key, Entry>, new: &Key) {
    let polls = || followers.iter().filter(|(key, _)| !key.is_stream);
    let own = || polls().filter(|(key, _)| key.client == new.client);
    let oldest = if new.is_stream {
        None
    } else if own().count() >= OF_CLIENT {
        own().min_by_key(|(_, entry)| entry.last_request)
    } else if polls().count() >= FOLLOWERS {
        polls().min_by_key(|(_, entry)| entry.last_request)
    } else {
        None
    };
    if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
        followers.remove(&oldest);
    }
}

/// The followers of all sets. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Followers(Arc<Mutex<HashMap<Key, Entry>>>);

impl Followers {
    /// Records the request of a client, and its `User-Agent`.
    pub(crate) fn record(
        &self,
        following: Following,
        client: String,
        program: Option<&HeaderValue>,
        now: Timestamp,
    ) {
        let program = program.map_or(&[][..], HeaderValue::as_bytes);
        let program = String::from_utf8_lossy(&program[..program.len().min(MAX_PROGRAM)]);
        let program = visible(&program).into_owned();
        let (of, position, stream) = match following {
            Following::Set(set, position) => (set, position, None),
            Following::Stream(topic, sent) => (topic, Position(0), Some(sent)),
        };
        let key = Key { client, program, of, is_stream: stream.is_some() };
        let mut followers = self.lock();
        if !followers.contains_key(&key) {
            followers.retain(|key, entry| !key.is_stream || entry.has_streams());
            make_room(&mut followers, &key);
        }
        let entry = followers.entry(key).or_insert_with(|| Entry {
            last_request: now,
            position,
            streams: Vec::new(),
        });
        entry.last_request = now;
        entry.position = position;
        entry.has_streams();
        entry.streams.extend(stream.map(|sent| Arc::downgrade(&sent)));
    }

    /// The followers, the last to ask first. Of several open streams of a client for a topic, the
    /// smallest offset counts.
    pub(crate) fn all(&self, now: Timestamp) -> Vec<Follower> {
        let mut followers = self.lock();
        followers.retain(|key, entry| {
            let is_recent =
                entry.last_request.as_micros() > now.as_micros().saturating_sub(FORGOTTEN_MICROS);
            if key.is_stream { entry.has_streams() } else { is_recent }
        });
        let mut all: Vec<Follower> = followers
            .iter()
            .filter_map(|(key, entry)| {
                let sent = entry.streams.iter().filter_map(Weak::upgrade);
                let at = if key.is_stream {
                    FollowerAt::Sent(sent.map(|sent| sent.load(Ordering::Relaxed)).min()?)
                } else {
                    FollowerAt::Asked(entry.position)
                };
                Some(Follower {
                    client: key.client.clone(),
                    program: key.program.clone(),
                    of: key.of.clone(),
                    last_request: entry.last_request,
                    at,
                })
            })
            .collect();
        drop(followers);
        all.sort_by(|one, two| {
            two.last_request.cmp(&one.last_request).then_with(|| one.of.cmp(&two.of))
        });
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    #[test]
    fn followers_are_forgotten_by_age_and_number() {
        let (followers, program) =
            (Followers::default(), HeaderValue::from_bytes(&[b'x'; 500]).unwrap());
        let ask = |client: i64, seconds| {
            let following = Following::Set("maps".into(), Position(client as u64));
            followers.record(following, client.to_string(), Some(&program), at(seconds));
        };
        for client in 0..2 * FOLLOWERS as i64 {
            ask(client, client);
        }
        let all = followers.all(at(0));
        assert_eq!(all.len(), FOLLOWERS);
        assert_eq!((&*all[0].client, all[0].at), ("1999", FollowerAt::Asked(Position(1_999))));
        assert_eq!(all[0].program.len(), MAX_PROGRAM);
        let later = 1_500 + 7 * 24 * 3_600;
        assert_eq!(followers.all(at(later)).len(), 499, "others asked more than 7 days ago");
        ask(1_999, later);
        assert_eq!(followers.all(at(later)).len(), 499, "the same client once");
    }

    #[test]
    fn streams_are_followers_while_they_are_open() {
        let followers = Followers::default();
        let open = |sent| {
            let sent = Arc::new(AtomicU64::new(sent));
            let following = Following::Stream("https://example.org/t".into(), Arc::clone(&sent));
            followers.record(following, "192.0.2.1".into(), None, at(1));
            sent
        };
        let (one, two) = (open(7), open(9));
        let offsets =
            |now| followers.all(at(now)).into_iter().map(|found| found.at).collect::<Vec<_>>();
        assert_eq!(offsets(2), [FollowerAt::Sent(7)], "the stream that is furthest behind");
        drop(one);
        for number in 0..2 * FOLLOWERS {
            let program = HeaderValue::from_str(&number.to_string()).unwrap();
            let following = Following::Set("maps".into(), Position(1));
            followers.record(following, "192.0.2.9".into(), Some(&program), at(2));
        }
        assert_eq!(
            followers.all(at(3)).len(),
            OF_CLIENT + 1,
            "one client does not displace others"
        );
        assert_eq!(offsets(100 * 24 * 3_600), [FollowerAt::Sent(9)]);
        drop(two);
        assert!(offsets(3).is_empty());
    }
}
