//! Decides which exchange starts next. Lanes separate recipients by how fast they answer, and hosts
//! share a lane fairly.
//!
//! A slow recipient must not delay others. Therefore each lane has separate places: for recipients
//! that answer fast, that are new, that are slow, and that do not answer. Within a lane hosts take
//! turns, within a host its origins. An exchange with a fast or new recipient that takes much
//! longer than others of its host releases its place as soon as another exchange waits, and
//! continues aside; if too many continue aside, it is aborted. An exchange with a slow recipient is
//! aborted after its patience, if another exchange waits for the place. An origin that refuses
//! connections is not contacted for a while, then tried with one exchange (a circuit breaker).

use super::pace::Pace;
use super::table::{host_in, origin_of};
use crate::deliver::options::LaneOptions;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// Most unused origins that are remembered.
const MAX_IDLE_ORIGINS: usize = 4_096;
/// The shortest time after which an exchange must release its place.
const LEAST_SLOW: Duration = Duration::from_millis(20);
/// Number of lanes: one for each [`Pace`].
const LANES: usize = 4;

/// A running exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange<T> {
    pub(crate) item: T,
    pub(crate) pace: Pace,
    origin: usize,
    slot: usize,
    number: u64,
    begun: Instant,
}

/// The end of an exchange, as far as it concerns the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeEnd {
    /// The origin answered.
    Answered,
    /// The connection to the origin failed.
    Unreachable,
    /// Any other failure, such as a timeout.
    Silent,
}

/// Aborts an exchange of a runner from another task. Each runner has one signal for all its
/// exchanges.
#[derive(Debug, Default)]
pub(crate) struct CancelSignal(Mutex<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    /// The exchange to abort; it may have ended already.
    number: u64,
    waker: Option<Waker>,
}

impl CancelSignal {
    fn lock(&self) -> MutexGuard<'_, CancelState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self, number: u64) {
        let mut cancel_state = self.lock();
        cancel_state.number = number;
        if let Some(waker) = cancel_state.waker.take() {
            waker.wake();
        }
    }

    /// Runs an exchange; `None` if it was aborted.
    pub(crate) async fn unless<T, W: Future>(
        &self,
        exchange: &Exchange<T>,
        work: W,
    ) -> Option<W::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            let mut cancel_state = self.lock();
            if cancel_state.number == exchange.number {
                return Poll::Ready(None);
            }
            if !cancel_state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                cancel_state.waker = Some(cx.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}

/// The destination of an exchange, as hashes, because the origin may be long, and there may be
/// many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The origin, which has a circuit breaker.
    origin: u64,
    /// The group of origins that takes turns with others.
    group: u64,
}

/// The entries of many short queues, in one table.
struct Entries<T>(Slab<(T, usize)>);

/// A queue of [`Entries`]: the index of its last entry, which links to the first. Each entry links
/// to the next one.
#[derive(Clone, Copy, Default)]
struct Queue(Option<usize>);

impl Queue {
    const fn is_empty(self) -> bool {
        self.0.is_none()
    }
}

impl<T: Copy> Entries<T> {
    fn push(&mut self, queue: &mut Queue, item: T) {
        let at = self.0.vacant_key();
        let first = queue.0.map_or(at, |last| std::mem::replace(&mut self.0[last].1, at));
        self.0.insert((item, first));
        queue.0 = Some(at);
    }

    fn pop(&mut self, queue: &mut Queue) -> Option<T> {
        let last = queue.0?;
        let first = self.0[last].1;
        let (item, second) = self.0.remove(first);
        if first == last {
            queue.0 = None;
        } else {
            self.0[last].1 = second;
        }
        Some(item)
    }
}

/// Exchanges of the same pace.
#[derive(Default)]
struct Lane {
    places: usize,
    per_host: usize,
    running: usize,
    /// Exchanges that released their place and continue.
    aside: usize,
    /// Hosts with a waiting exchange and a free place for it.
    round: VecDeque<usize>,
    waiting: usize,
    /// The slots of exchanges that occupy a place, by the time at which they must release it.
    overdue: BTreeSet<(Instant, usize)>,
}

/// A host, whose origins share its slots.
#[derive(Default)]
struct Host {
    /// Origins with waiting exchanges, for each lane.
    rounds: [Queue; LANES],
    in_round: [bool; LANES],
    waiting: [usize; LANES],
    running: [usize; LANES],
    aside: [usize; LANES],
    /// Usual time until a response, smoothed.
    usual: Option<Duration>,
    /// Exchanges that released their place before the host's first answer.
    overran: u32,
    origins: usize,
    name: u64,
}

struct Origin {
    host: usize,
    queues: [Queue; LANES],
    in_round: [bool; LANES],
    flying: usize,
    unreachable: u32,
    /// End of the pause after failures; then one attempt at a time.
    broken_until: Option<Instant>,
    check_planned: bool,
}

/// The lanes' data about a running exchange.
struct Slot<T> {
    item: T,
    number: u64,
    lane: usize,
    host: usize,
    overdue: Instant,
    aside: bool,
    cut: Option<Arc<CancelSignal>>,
}

/// Waiting and running exchanges.
pub(crate) struct Lanes<T> {
    options: LaneOptions,
    by_pace: [Lane; LANES],
    hosts: Slab<Host>,
    origins: Slab<Origin>,
    by_origin: HashMap<u64, usize>,
    by_host: HashMap<u64, usize>,
    hasher: RandomState,
    /// Waiting exchanges by origin, and how long each may occupy its slot when it runs.
    items: Entries<(T, Duration)>,
    /// Origins that wait for their turn at hosts.
    turns: Entries<usize>,
    slots: Slab<Slot<T>>,
    next_number: u64,
    checks: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Items that wait for the time of their next attempt.
    pub(crate) retries: BinaryHeap<Reverse<(Instant, T)>>,
    /// Number of origins at which unused origins are removed.
    forget_at: usize,
}

/// Numbers of exchanges by their progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Exchanges that wait for a place.
    pub(crate) ready: usize,
    /// Exchanges that are running in total.
    pub(crate) flying: usize,
    /// Running exchanges that are slow: aside, or in the lanes for slow recipients.
    pub(crate) slow: usize,
    /// Origins that are paused after failures.
    pub(crate) broken: usize,
}

impl<T: Copy + Ord> Lanes<T> {
    pub(crate) fn new(options: LaneOptions) -> Self {
        let lane = |places: usize, per_host: usize| Lane {
            places: places.max(1),
            per_host: per_host.clamp(1, places.max(1)),
            ..Lane::default()
        };
        let by_pace = [
            lane(options.new, options.per_host),
            lane(options.all, options.per_host),
            lane(options.slow, options.slow / 4),
            lane(options.silent, options.silent / 4),
        ];
        Self {
            options,
            by_pace,
            hosts: Slab::new(),
            origins: Slab::new(),
            by_origin: HashMap::new(),
            by_host: HashMap::new(),
            hasher: RandomState::new(),
            items: Entries(Slab::new()),
            turns: Entries(Slab::new()),
            slots: Slab::new(),
            next_number: 1,
            checks: BinaryHeap::new(),
            retries: BinaryHeap::new(),
            forget_at: MAX_IDLE_ORIGINS,
        }
    }

    pub(crate) const fn options(&self) -> &LaneOptions {
        &self.options
    }

    /// The destination for a URL: its origin has a circuit breaker, and hosts take turns.
    pub(crate) fn name_of(&self, url: &str) -> Name {
        let origin = origin_of(url);
        self.name(&origin, host_in(&origin))
    }

    /// The hashes of an origin and its host.
    pub(crate) fn name(&self, origin: &str, group: &str) -> Name {
        Name { origin: self.hasher.hash_one(origin), group: self.hasher.hash_one(group) }
    }

    /// Adds an exchange to the lane for the recipient's pace. `patience` is the time after which a
    /// slow exchange must release its place if others wait.
    pub(crate) fn push(&mut self, to: Name, item: T, pace: Pace, patience: Duration, now: Instant) {
        let at = match self.by_origin.get(&to.origin) {
            Some(at) => *at,
            None => self.add_origin(to, now),
        };
        let lane = pace as usize;
        self.items.push(&mut self.origins[at].queues[lane], (item, patience));
        self.by_pace[lane].waiting += 1;
        self.hosts[self.origins[at].host].waiting[lane] += 1;
        self.offer_origin(at, lane);
    }

    /// The next exchange that may start. `cut` can abort it.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        cut: Option<&Arc<CancelSignal>>,
    ) -> Option<Exchange<T>> {
        [Pace::Quick, Pace::New, Pace::Slow, Pace::Silent]
            .into_iter()
            .find_map(|pace| self.next_of(pace, now, cut))
    }

    fn next_of(
        &mut self,
        pace: Pace,
        now: Instant,
        cut: Option<&Arc<CancelSignal>>,
    ) -> Option<Exchange<T>> {
        let lane = pace as usize;
        while self.by_pace[lane].running < self.by_pace[lane].places {
            let host = self.by_pace[lane].round.pop_front()?;
            self.hosts[host].in_round[lane] = false;
            let found = self.take(host, lane, now);
            if let Some((origin, item, patience)) = found {
                let exchange = self.begin(pace, host, origin, item, patience, now, cut);
                self.offer_host(host, lane);
                return Some(exchange);
            }
        }
        None
    }

    /// The next waiting exchange of a host, from the origin whose turn it is.
    fn take(&mut self, host: usize, lane: usize, now: Instant) -> Option<(usize, T, Duration)> {
        while let Some(at) = self.turns.pop(&mut self.hosts[host].rounds[lane]) {
            let origin = &mut self.origins[at];
            origin.in_round[lane] = false;
            if origin.broken_until.is_some_and(|until| until > now || origin.flying > 0) {
                self.plan_check(at, now);
                continue;
            }
            let Some((item, patience)) = self.items.pop(&mut origin.queues[lane]) else { continue };
            if !origin.queues[lane].is_empty() {
                origin.in_round[lane] = true;
                self.turns.push(&mut self.hosts[host].rounds[lane], at);
            }
            return Some((at, item, patience));
        }
        None
    }

    #[expect(clippy::too_many_arguments, reason = "all of what an exchange begins with")]
    fn begin(
        &mut self,
        pace: Pace,
        host: usize,
        origin: usize,
        item: T,
        patience: Duration,
        now: Instant,
        cut: Option<&Arc<CancelSignal>>,
    ) -> Exchange<T> {
        let lane = pace as usize;
        let keeps = if pace.is_slow() { patience } else { self.slow_after(host) };
        let overdue = now + keeps;
        let number = self.next_number;
        self.next_number += 1;
        self.origins[origin].flying += 1;
        self.hosts[host].running[lane] += 1;
        self.hosts[host].waiting[lane] -= 1;
        let slot = self.slots.insert(Slot {
            item,
            number,
            lane,
            host,
            overdue,
            aside: false,
            cut: cut.cloned(),
        });
        let entry = &mut self.by_pace[lane];
        entry.running += 1;
        entry.waiting -= 1;
        entry.overdue.insert((overdue, slot));
        Exchange { item, pace, origin, slot, number, begun: now }
    }

    /// The items of running exchanges, without order.
    pub(crate) fn running(&self) -> impl Iterator<Item = T> {
        self.slots.iter().map(|(_, slot)| slot.item)
    }

    /// Aborts the running exchanges of these items.
    pub(crate) fn abort(&self, is_meant: impl Fn(T) -> bool) {
        for (_, slot) in &self.slots {
            if let Some(cut) = slot.cut.as_ref().filter(|_| is_meant(slot.item)) {
                cut.cut(slot.number);
            }
        }
    }

    /// Stores an item until the time of its next attempt.
    pub(crate) fn retry_at(&mut self, due: Instant, item: T) {
        self.retries.push(Reverse((due, item)));
    }

    /// The next item whose time has come, to be pushed again.
    pub(crate) fn retry(&mut self, now: Instant) -> Option<T> {
        self.retries.peek().filter(|Reverse((due, _))| *due <= now)?;
        self.retries.pop().map(|Reverse((_, item))| item)
    }

    /// Ends an exchange. Returns the new pace of the recipient.
    pub(crate) fn finish(
        &mut self,
        exchange: &Exchange<T>,
        contact: ExchangeEnd,
        now: Instant,
    ) -> Pace {
        let slot = self.slots.remove(exchange.slot);
        let (lane, host) = (slot.lane, slot.host);
        let took = now.saturating_duration_since(exchange.begun);
        if slot.aside {
            self.by_pace[lane].aside -= 1;
            self.hosts[host].aside[lane] -= 1;
        } else {
            self.by_pace[lane].overdue.remove(&(slot.overdue, exchange.slot));
            self.leave(lane, host);
        }
        let origin = &mut self.origins[exchange.origin];
        origin.flying -= 1;
        match contact {
            ExchangeEnd::Answered => {
                origin.unreachable = 0;
                origin.broken_until = None;
                if !exchange.pace.is_slow() {
                    let host = &mut self.hosts[host];
                    host.usual = Some(host.usual.map_or(took, |usual| (usual * 7 + took) / 8));
                }
            }
            ExchangeEnd::Unreachable => {
                origin.unreachable = origin.unreachable.saturating_add(1);
                if origin.unreachable >= self.options.breaker_failures {
                    origin.broken_until = Some(now + self.options.breaker_pause);
                }
            }
            ExchangeEnd::Silent => {}
        }
        for lane in 0..LANES {
            self.offer_origin(exchange.origin, lane);
        }
        let answered = contact == ExchangeEnd::Answered;
        match exchange.pace {
            // A short time does not show a fast recipient if the exchange was aborted.
            _ if took < self.options.slow_after && (answered || !slot.aside) => Pace::Quick,
            Pace::Slow | Pace::Silent if !answered => Pace::Silent,
            _ => Pace::Slow,
        }
    }

    /// Releases the place of an exchange.
    fn leave(&mut self, lane: usize, host: usize) {
        self.by_pace[lane].running -= 1;
        self.hosts[host].running[lane] -= 1;
        self.offer_host(host, lane);
    }

    /// Takes places from exchanges that exceed their time, and tries origins again after their
    /// pause. Call it at the instant that [`Lanes::due`] returns.
    pub(crate) fn tick(&mut self, now: Instant) {
        for lane in 0..LANES {
            while self.by_pace[lane].waiting > 0
                && let Some((due, slot)) = self.by_pace[lane].overdue.first().copied()
                && due <= now
            {
                self.by_pace[lane].overdue.pop_first();
                self.make_room(lane, slot, now);
            }
        }
        while let Some(Reverse((due, at))) = self.checks.peek().copied() {
            if due > now {
                return;
            }
            self.checks.pop();
            self.origins[at].check_planned = false;
            for lane in 0..LANES {
                self.offer_origin(at, lane);
            }
        }
    }

    fn make_room(&mut self, lane: usize, at: usize, now: Instant) {
        let host = self.slots[at].host;
        let entry = &self.by_pace[lane];
        let known = &self.hosts[host];
        let is_short = entry.round.len() > entry.places - entry.running;
        let host_is_short = known.waiting[lane] > entry.per_host - known.running[lane];
        if !is_short && !host_is_short {
            // No exchange waits for this place.
            let again = now + self.slow_after(host);
            self.slots[at].overdue = again;
            self.by_pace[lane].overdue.insert((again, at));
            return;
        }
        // New and fast recipients have separate limits for exchanges aside, so that unresponsive
        // new recipients do not use up the limit of fast ones.
        let beside = lane == Pace::New as usize || lane == Pace::Quick as usize;
        let most = self.options.aside;
        let room = beside && entry.aside < most && known.aside[lane] < most / 4;
        let slot = &mut self.slots[at];
        slot.aside = true;
        if !room && let Some(cut) = &slot.cut {
            cut.cut(slot.number);
        }
        // An aborted exchange counts as aside until it has ended.
        self.by_pace[lane].aside += 1;
        self.hosts[host].aside[lane] += 1;
        self.hosts[host].overran = self.hosts[host].overran.saturating_add(1);
        self.leave(lane, host);
    }

    /// Time of the next call of [`Lanes::tick`] or [`Lanes::retry`].
    pub(crate) fn due(&self) -> Option<Instant> {
        let check = self.checks.peek().map(|Reverse((due, _))| *due);
        let waiting = self.by_pace.iter().filter(|lane| lane.waiting > 0);
        let overdue = waiting.filter_map(|lane| lane.overdue.first().map(|(due, _)| *due));
        let retry = self.retries.peek().map(|Reverse((due, _))| *due);
        overdue.chain(check).chain(retry).min()
    }

    pub(crate) fn load(&self) -> Load {
        let slow = [Pace::Slow, Pace::Silent].map(|pace| self.by_pace[pace as usize].running);
        let aside: usize = self.by_pace.iter().map(|lane| lane.aside).sum();
        Load {
            ready: self.by_pace.iter().map(|lane| lane.waiting).sum(),
            flying: aside + self.by_pace.iter().map(|lane| lane.running).sum::<usize>(),
            slow: aside + slow.iter().sum::<usize>(),
            broken: self.origins.iter().filter(|(_, origin)| origin.broken_until.is_some()).count(),
        }
    }

    /// The time after which an exchange with a host must release its place if others wait. For a
    /// host that never answered, the longest time is halved each time that as many exchanges failed
    /// as the host has places.
    fn slow_after(&self, host: usize) -> Duration {
        let (host, most) = (&self.hosts[host], self.options.slow_after);
        let in_vain =
            host.overran / u32::try_from(self.options.per_host.max(1)).unwrap_or(u32::MAX);
        let keeps = host.usual.map_or(most / (1 << in_vain.min(8)), |usual| usual * 4);
        keeps.clamp(LEAST_SLOW.min(most), most).max(Duration::from_millis(1))
    }

    /// Gives an origin a turn at its host if it has waiting exchanges.
    fn offer_origin(&mut self, at: usize, lane: usize) {
        let origin = &mut self.origins[at];
        let host = origin.host;
        if !origin.queues[lane].is_empty() && !origin.in_round[lane] {
            origin.in_round[lane] = true;
            self.turns.push(&mut self.hosts[host].rounds[lane], at);
        }
        self.offer_host(host, lane);
    }

    /// Gives a host a turn if it has waiting exchanges and a free place for one.
    fn offer_host(&mut self, at: usize, lane: usize) {
        let host = &mut self.hosts[at];
        let has_place = host.running[lane] < self.by_pace[lane].per_host;
        if has_place && !host.in_round[lane] && !host.rounds[lane].is_empty() {
            host.in_round[lane] = true;
            self.by_pace[lane].round.push_back(at);
        }
    }

    fn plan_check(&mut self, at: usize, now: Instant) {
        let origin = &mut self.origins[at];
        // Otherwise an attempt is running; its end offers the next turn.
        if let Some(until) = origin.broken_until.filter(|until| *until > now)
            && !origin.check_planned
        {
            origin.check_planned = true;
            self.checks.push(Reverse((until, at)));
        }
    }

    fn add_origin(&mut self, name: Name, now: Instant) -> usize {
        if self.by_origin.len() >= self.forget_at {
            self.forget_idle(now);
            self.forget_at = (self.by_origin.len() * 2).max(MAX_IDLE_ORIGINS);
        }
        let host = if let Some(host) = self.by_host.get(&name.group) {
            *host
        } else {
            let host = self.hosts.insert(Host { name: name.group, ..Host::default() });
            self.by_host.insert(name.group, host);
            host
        };
        self.hosts[host].origins += 1;
        let at = self.origins.insert(Origin {
            host,
            queues: Default::default(),
            in_round: [false; LANES],
            flying: 0,
            unreachable: 0,
            broken_until: None,
            check_planned: false,
        });
        self.by_origin.insert(name.origin, at);
        at
    }

    fn forget_idle(&mut self, now: Instant) {
        let Self { origins, hosts, by_origin, by_host, .. } = self;
        by_origin.retain(|_, at| {
            let origin = &origins[*at];
            let busy = origin.check_planned
                || origin.flying > 0
                || origin.in_round.contains(&true)
                || origin.queues.iter().any(|queue| !queue.is_empty())
                || origin.broken_until.is_some_and(|until| until > now);
            if !busy {
                let origin = origins.remove(*at);
                let host = &mut hosts[origin.host];
                host.origins -= 1;
                // A host without origins has neither exchanges nor turns.
                if host.origins == 0 && !host.in_round.contains(&true) {
                    by_host.remove(&hosts.remove(origin.host).name);
                }
            }
            busy
        });
    }
}

#[cfg(test)]
mod tests;
