//! Meters: how far long work is, for a display that reads them now and then.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ended phases that are stored until they are read; the oldest are forgotten first.
const ENDED_MAX: usize = 32;
/// Names that are stored at a time.
const NAMES_MAX: usize = 64;

/// Counters of long work, and the names of what is being worked on. Clones share their values.
///
/// The default has no counters: nobody listens, and every call returns at once. With counters, counting
/// is one addition to an atomic number; a lock is taken only for names, phases and retries.
///
/// # Examples
/// ```
/// use abreast_core::Meter;
///
/// let meter = Meter::listening();
/// meter.begin("copying");
/// meter.expect(2, 300);
/// {
///     let _named = meter.item(|| "a.pdf".to_owned());
///     meter.add(1, 100);
///     assert_eq!(meter.state().unwrap().names, ["a.pdf"]);
/// }
/// let state = meter.state().unwrap();
/// assert_eq!((state.phase, state.done, state.total), ("copying", 1, 2));
/// assert!(state.names.is_empty());
/// assert!(Meter::default().state().is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Meter(Option<Arc<Values>>);

#[derive(Debug, Default)]
struct Values {
    done: AtomicU64,
    total: AtomicU64,
    bytes: AtomicU64,
    total_bytes: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    phase: &'static str,
    began: Option<Instant>,
    /// Numbers and names of items in work, oldest first.
    names: Vec<(u64, String)>,
    next: u64,
    retry: Option<Retry>,
    ended: VecDeque<MeterState>,
    source: Option<ByteSource>,
}

/// A counter of bytes elsewhere.
struct ByteSource(Box<dyn Fn() -> u64 + Send>);

impl fmt::Debug for ByteSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteSource")
    }
}

/// A request that is repeated soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The host that is asked again.
    pub host: String,
    /// Time of the next attempt.
    pub due: Instant,
    /// Number of the next attempt among the repetitions, from 1.
    pub attempt: u32,
    /// Number of repetitions at most.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub cause: String,
}

/// The values of a meter at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeterState {
    /// What is being done, as one word.
    pub phase: &'static str,
    /// Items dealt with in this phase.
    pub done: u64,
    /// Items to deal with in this phase; 0 if not known.
    pub total: u64,
    /// Bytes dealt with in this phase.
    pub bytes: u64,
    /// Bytes to deal with in this phase; 0 if not known.
    pub total_bytes: u64,
    /// Time since the start of the phase.
    pub elapsed: Duration,
    /// Items in work, oldest first.
    pub names: Vec<String>,
    /// The request that waits for its next attempt, if one does.
    pub retry: Option<Retry>,
}

/// The name of an item in work, until it is dropped.
#[derive(Debug)]
#[must_use = "the name is removed when this is dropped"]
pub struct NamedItem(Option<(Arc<Values>, u64)>);

impl Meter {
    /// A meter with counters, for a display.
    pub fn listening() -> Self {
        Self(Some(Arc::default()))
    }

    /// Whether the meter has counters, because a display reads them.
    pub fn is_listening(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a phase, with counters at 0. The phase before is ended.
    pub fn begin(&self, phase: &'static str) {
        let Some(values) = &self.0 else { return };
        let mut told = values.lock();
        values.end(&mut told);
        (told.phase, told.began) = (phase, Some(Instant::now()));
    }

    /// Ends the phase: nothing is being done until the next one begins.
    pub fn end(&self) {
        let Some(values) = &self.0 else { return };
        values.end(&mut values.lock());
    }

    /// Sets how many items and bytes the phase has; 0 if not known.
    pub fn expect(&self, total: u64, total_bytes: u64) {
        let Some(values) = &self.0 else { return };
        values.total.store(total, Relaxed);
        values.total_bytes.store(total_bytes, Relaxed);
    }

    /// Counts items and bytes that were dealt with.
    pub fn add(&self, items: u64, bytes: u64) {
        let Some(values) = &self.0 else { return };
        if items > 0 {
            values.done.fetch_add(items, Relaxed);
        }
        if bytes > 0 {
            values.bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Sets how many items were dealt with, for work that has its own counter.
    pub fn set(&self, done: u64) {
        let Some(values) = &self.0 else { return };
        values.done.store(done, Relaxed);
    }

    /// Takes the bytes of the phase from a counter elsewhere, such as that of all connections. `source` is
    /// called only when the values are read.
    pub fn read_bytes_from(&self, source: impl Fn() -> u64 + Send + 'static) {
        if let Some(values) = &self.0 {
            values.lock().source = Some(ByteSource(Box::new(source)));
        }
    }

    /// Names an item as long as the result exists. `name` is called only if somebody listens.
    pub fn item(&self, name: impl FnOnce() -> String) -> NamedItem {
        let Some(values) = &self.0 else { return NamedItem(None) };
        let name = name();
        let mut told = values.lock();
        if told.names.len() >= NAMES_MAX {
            return NamedItem(None);
        }
        let number = told.next;
        told.next += 1;
        told.names.push((number, name));
        NamedItem(Some((Arc::clone(values), number)))
    }

    /// Notes that a request will be repeated.
    pub fn retry(&self, retry: Retry) {
        if let Some(values) = &self.0 {
            values.lock().retry = Some(retry);
        }
    }

    /// The present values; `None` if nobody listens. The phase is empty if nothing is being done.
    pub fn state(&self) -> Option<MeterState> {
        let values = self.0.as_ref()?;
        let mut told = values.lock();
        if told.retry.as_ref().is_some_and(|retry| retry.due <= Instant::now()) {
            told.retry = None;
        }
        Some(values.state(&told))
    }

    /// The phases that ended since the last call and in which something was counted, oldest first.
    pub fn ended(&self) -> Vec<MeterState> {
        let Some(values) = &self.0 else { return Vec::new() };
        values.lock().ended.drain(..).collect()
    }
}

impl Values {
    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, told: &Told) -> MeterState {
        MeterState {
            phase: told.phase,
            done: self.done.load(Relaxed),
            total: self.total.load(Relaxed),
            bytes: told
                .source
                .as_ref()
                .map_or_else(|| self.bytes.load(Relaxed), |source| source.0()),
            total_bytes: self.total_bytes.load(Relaxed),
            elapsed: told.began.map_or(Duration::ZERO, |began| began.elapsed()),
            names: told.names.iter().map(|(_, name)| name.clone()).collect(),
            retry: told.retry.clone(),
        }
    }

    fn end(&self, told: &mut Told) {
        let state = MeterState { names: Vec::new(), retry: None, ..self.state(told) };
        if !state.phase.is_empty() && state.done + state.bytes > 0 {
            if told.ended.len() >= ENDED_MAX {
                told.ended.pop_front();
            }
            told.ended.push_back(state);
        }
        (told.phase, told.began, told.retry, told.source) = ("", None, None, None);
        for counter in [&self.done, &self.total, &self.bytes, &self.total_bytes] {
            counter.store(0, Relaxed);
        }
    }
}

impl Drop for NamedItem {
    fn drop(&mut self) {
        if let Some((values, number)) = self.0.take() {
            values.lock().names.retain(|(other, _)| *other != number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_end_with_their_counts() {
        let meter = Meter::listening();
        meter.begin("reading");
        meter.begin("fetching");
        meter.expect(3, 30);
        meter.add(1, 0);
        meter.add(0, 10);
        meter.end();
        let ended = meter.ended();
        assert_eq!(ended.len(), 1, "a phase without a count is left out");
        assert_eq!((ended[0].phase, ended[0].done, ended[0].total_bytes), ("fetching", 1, 30));
        assert!(meter.ended().is_empty());
        assert_eq!(meter.state().unwrap(), MeterState::default());
    }

    #[test]
    fn bytes_may_be_counted_elsewhere() {
        let meter = Meter::listening();
        meter.begin("fetching");
        meter.read_bytes_from(|| 7);
        meter.set(2);
        assert_eq!(meter.state().map(|state| (state.done, state.bytes)), Some((2, 7)));
        meter.begin("deleting");
        assert_eq!((meter.ended()[0].bytes, meter.state().unwrap().bytes), (7, 0));
    }

    #[test]
    fn ended_phases_and_names_are_limited() {
        let meter = Meter::listening();
        for _ in 0..100 {
            meter.begin("reading");
            meter.add(1, 0);
        }
        assert_eq!(meter.ended().len(), ENDED_MAX);
        let names: Vec<_> = (0..100).map(|n| meter.item(|| n.to_string())).collect();
        assert_eq!(meter.state().unwrap().names.len(), NAMES_MAX);
        drop(names);
        assert!(meter.state().unwrap().names.is_empty());
    }

    #[test]
    fn a_retry_is_shown_until_it_is_due() {
        let meter = Meter::listening();
        let (host, cause) = ("h".to_owned(), "refused".to_owned());
        let retry = Retry { host, due: Instant::now(), attempt: 1, attempts: 5, cause };
        meter.retry(retry.clone());
        assert_eq!(meter.state().unwrap().retry, None);
        let due = Instant::now() + Duration::from_secs(60);
        meter.retry(Retry { due, ..retry });
        assert!(meter.state().unwrap().retry.is_some());
    }

    #[test]
    fn nothing_is_named_where_nobody_listens() {
        let _named = Meter::default().item(|| panic!("the name is not needed"));
    }
}
