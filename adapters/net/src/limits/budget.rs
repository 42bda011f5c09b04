//! Limits that several runs of a process share: the pauses that servers request, the distance
//! between requests, the bandwidth, and totals of bytes and time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::bandwidth::{Bandwidth, Throttle};

/// Most origins remembered with their pauses; unused origins are forgotten first.
const MAX_HOSTS: usize = 4_096;
/// Bytes above the limit with which nearly complete responses are still finished.
const REST: u64 = 64 << 10;
/// Least bytes of a read, and the divisor of the remaining bytes for one read, so that parallel
/// connections do not exceed the limit together.
const PIECE_MIN: u64 = 4 << 10;
const PIECE_PART: u64 = 16;

/// Limits for all runs together that have it in their [`Options`](crate::Options::budget). Clones
/// are the same budget.
#[derive(Clone)]
pub struct Budget {
    hosts: Arc<Hosts>,
    throttle: Option<Arc<Throttle>>,
    bytes: Arc<Spent>,
    began: Instant,
}

struct Spent {
    count: AtomicU64,
    limit: AtomicU64,
    /// Bytes that running fetches may still receive.
    reserved: AtomicU64,
}

/// The result of a call of [`Budget::reserve`].
#[derive(Debug)]
#[must_use]
pub enum Room {
    /// The bytes are reserved until the value is dropped.
    Reserved(Reservation),
    /// Running fetches have reserved the bytes; try again when one ends.
    Later,
    /// The remaining bytes are too few, also without other reservations.
    Lacking,
}

/// Bytes that a running fetch has reserved.
pub struct Reservation {
    spent: Arc<Spent>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.spent.reserved.fetch_sub(self.bytes, Relaxed);
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Default for Spent {
    fn default() -> Self {
        Self {
            count: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            reserved: AtomicU64::new(0),
        }
    }
}

struct Hosts {
    paces: Mutex<HashMap<String, Arc<HostPace>>>,
    epoch: Instant,
}

/// The times at which requests to an origin may start.
pub(crate) struct HostPace {
    /// End of the origin's pause, in milliseconds after the epoch; 0 for no pause.
    paused_until: AtomicU64,
    /// Least microseconds between the starts of two requests, and the earliest start of the next
    /// request in microseconds after the epoch.
    interval: AtomicU64,
    next: AtomicU64,
}

impl Budget {
    /// A budget that starts now, with a limit of bytes per second if there is one.
    pub fn new(bandwidth: Option<Bandwidth>) -> Self {
        let hosts = Hosts { paces: Mutex::default(), epoch: Instant::now() };
        Self { began: hosts.epoch, hosts: Arc::new(hosts), throttle: None, bytes: Arc::default() }
            .with_bandwidth(bandwidth)
    }

    /// The same pauses and totals with a separate bandwidth.
    #[must_use]
    pub fn with_bandwidth(self, bandwidth: Option<Bandwidth>) -> Self {
        Self { throttle: bandwidth.map(|bandwidth| Arc::new(Throttle::new(bandwidth))), ..self }
    }

    /// The same budget with a separate count of bytes.
    #[must_use]
    pub fn with_own_bytes(self) -> Self {
        Self { bytes: Arc::default(), ..self }
    }

    /// The same budget with a separate time, which starts now.
    #[must_use]
    pub fn with_own_time(self) -> Self {
        Self { began: Instant::now(), ..self }
    }

    /// The number of bytes received so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.count.load(Relaxed)
    }

    /// Limits the bytes that all connections may receive in total. At the limit, each read waits
    /// for a second, during which runs stop by themselves; only the last 64 KiB of a response in
    /// progress are still received.
    pub fn limit_bytes(&self, most: u64) {
        self.bytes.limit.store(most, Relaxed);
    }

    /// Reserves the bytes of a response with a known length, so that fetches are not started if the
    /// limit would interrupt them; an excess of a few KiB is allowed. A response that another run
    /// can resume (`is_resumable`) reserves the remaining bytes if it is longer and nothing else is
    /// reserved.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::{Budget, Room};
    ///
    /// let budget = Budget::new(None);
    /// budget.limit_bytes(100 << 20);
    /// let Room::Reserved(film) = budget.reserve(80 << 20, false) else {
    ///     unreachable!("nothing else is reserved")
    /// };
    /// assert!(matches!(budget.reserve(80 << 20, false), Room::Later));
    /// drop(film);
    /// assert!(matches!(budget.reserve(200 << 20, false), Room::Lacking));
    /// ```
    pub fn reserve(&self, length: u64, is_resumable: bool) -> Room {
        let left = self.bytes_left();
        let with = |reserved: u64| {
            if length <= left.saturating_add(PIECE_MIN).saturating_sub(reserved) {
                return reserved.checked_add(length);
            }
            (is_resumable && reserved == 0 && left > 0).then_some(left)
        };
        match self.bytes.reserved.fetch_update(Relaxed, Relaxed, with) {
            Ok(before) => {
                let bytes = with(before).unwrap_or(before) - before;
                Room::Reserved(Reservation { spent: Arc::clone(&self.bytes), bytes })
            }
            Err(0) => Room::Lacking,
            Err(_) => Room::Later,
        }
    }

    /// Bytes remaining within the limit, including reserved bytes.
    pub fn bytes_left(&self) -> u64 {
        self.bytes.limit.load(Relaxed).saturating_sub(self.bytes())
    }

    /// Most bytes of the next read: 0 once the limit is exceeded; `None` without a limit.
    pub(crate) fn piece(&self) -> Option<u64> {
        let limit = self.bytes.limit.load(Relaxed);
        (limit < u64::MAX).then(|| {
            let left = limit.saturating_add(REST).saturating_sub(self.bytes());
            if left == 0 { 0 } else { (left / PIECE_PART).max(PIECE_MIN) }
        })
    }

    /// The instant at which the time of the budget started.
    pub fn began(&self) -> Instant {
        self.began
    }

    pub(crate) fn spend(&self, bytes: u64) {
        self.bytes.count.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn throttle(&self) -> Option<Arc<Throttle>> {
        self.throttle.clone()
    }

    /// The pace of an origin, with at least this time between two requests.
    pub(crate) fn pace(&self, key: &str, interval: Duration) -> Arc<HostPace> {
        let mut paces = self.hosts.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if paces.len() >= MAX_HOSTS && !paces.contains_key(key) {
            paces.retain(|_, pace| Arc::strong_count(pace) > 1);
        }
        let pace = paces.entry(key.to_owned()).or_insert_with(|| {
            Arc::new(HostPace {
                paused_until: AtomicU64::new(0),
                interval: AtomicU64::new(0),
                next: AtomicU64::new(0),
            })
        });
        pace.set_interval(interval);
        Arc::clone(pace)
    }

    fn elapsed(&self) -> Duration {
        self.hosts.epoch.elapsed()
    }

    pub(crate) fn is_paused(&self, pace: &HostPace) -> bool {
        u128::from(pace.paused_until.load(Relaxed)) > self.elapsed().as_millis()
    }

    /// Pauses all requests to this origin.
    pub(crate) fn pause(&self, pace: &HostPace, pause: Duration) {
        let until = self.elapsed() + pause;
        pace.paused_until.fetch_max(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Relaxed);
    }

    /// The remaining time of the origin's pause, if there is one.
    pub(crate) fn pause_left(&self, pace: &HostPace) -> Option<Duration> {
        let until = pace.paused_until.load(Relaxed);
        if until == 0 { None } else { Duration::from_millis(until).checked_sub(self.elapsed()) }
    }

    /// Waits until the origin's next request may start, if requests have a minimum distance.
    pub(crate) async fn wait_for_turn(&self, pace: &HostPace) {
        let interval = pace.interval.load(Relaxed);
        if interval == 0 {
            return;
        }
        let now = micros(self.elapsed());
        let turn = |next: u64| next.max(now);
        let next = pace
            .next
            .fetch_update(Relaxed, Relaxed, |next| Some(turn(next).saturating_add(interval)));
        let wait = turn(next.unwrap_or(0)) - now;
        if wait > 0 {
            tokio::time::sleep(Duration::from_micros(wait)).await;
        }
    }
}

impl HostPace {
    /// Whether requests may follow each other without an interval.
    pub(crate) fn has_no_interval(&self) -> bool {
        self.interval.load(Relaxed) == 0
    }

    /// Sets the least time between the starts of two requests to this origin.
    pub(crate) fn set_interval(&self, interval: Duration) {
        self.interval.fetch_max(micros(interval), Relaxed);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl std::fmt::Debug for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_reserve_what_the_limit_leaves() {
        let budget = Budget::new(None);
        let is_reserved = |length, resumable| match budget.reserve(length, resumable) {
            Room::Reserved(reservation) => Some(reservation),
            Room::Later | Room::Lacking => None,
        };
        assert!(is_reserved(1 << 40, false).is_some(), "without a limit");
        budget.limit_bytes(100_000);
        budget.spend(10_000);
        assert_eq!(budget.bytes_left(), 90_000);
        let first = is_reserved(60_000, false).unwrap();
        assert!(matches!(budget.reserve(40_000, true), Room::Later));
        let second = is_reserved(30_000, false).unwrap();
        drop((first, second));
        assert!(matches!(budget.reserve(100_000, false), Room::Lacking));
        let all = is_reserved(1_000_000, true).unwrap();
        assert!(matches!(budget.reserve(10_000, false), Room::Later));
        drop(all);
        budget.spend(90_000);
        assert!(matches!(budget.reserve(1_000_000, true), Room::Lacking));
        assert!(is_reserved(0, false).is_some());
    }
}
