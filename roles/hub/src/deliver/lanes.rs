//! Whose turn is it? Deliveries share a number of places, fairly among origins.
//!
//! Origins with something to deliver take turns. Each has a few places of its own; a delivery that takes much longer
//! than its origin's others gives its place up and goes on beside (`slow`), so that one that hangs costs a socket and
//! keeps nobody waiting. What failed before has places apart (`late`). An origin that cannot be connected to is left
//! alone for a while, then tried with one (a breaker).

use crate::options::LaneOptions;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Origins remembered though nothing is to do for them.
const MAX_IDLE_ORIGINS: usize = 4_096;
/// The shortest time after which a delivery can be called slow.
const LEAST_SLOW: Duration = Duration::from_millis(40);

/// A delivery under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight<T> {
    pub(crate) item: T,
    origin: usize,
    number: u64,
    late: bool,
    begun: Instant,
}

/// How a delivery ended, as far as its origin is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// The origin answered.
    Answered,
    /// No connection could be made.
    Unreachable,
    /// Something else.
    Silent,
}

#[derive(Default)]
struct Origin<T> {
    fresh: VecDeque<T>,
    late: VecDeque<T>,
    /// In the round of those who have a turn?
    in_round: bool,
    in_late_round: bool,
    /// Deliveries that hold a place, the oldest first.
    quick: VecDeque<(Instant, u64)>,
    slow: usize,
    late_running: usize,
    /// How long answers take, smoothed.
    usual: Option<Duration>,
    unreachable: u32,
    /// Left alone until then; afterwards one attempt at a time.
    broken_until: Option<Instant>,
    /// A look at it is planned.
    check_planned: bool,
}

/// Deliveries that wait and deliveries under way.
pub(crate) struct Lanes<T> {
    options: LaneOptions,
    origins: Vec<Origin<T>>,
    by_key: HashMap<Box<str>, usize>,
    free: Vec<usize>,
    round: VecDeque<usize>,
    late_round: VecDeque<usize>,
    running: usize,
    late_running: usize,
    slow: usize,
    ready: usize,
    next_number: u64,
    checks: BinaryHeap<Reverse<(Instant, usize)>>,
    /// All places are taken and somebody waits: when to look who is slow.
    crowded: Option<Instant>,
    /// With so many origins, those with nothing to do are forgotten.
    forget_at: usize,
}

/// What goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Waiting for a place.
    pub(crate) ready: usize,
    /// Under way, all of them.
    pub(crate) flying: usize,
    /// Of these slow.
    pub(crate) slow: usize,
    /// Origins left alone.
    pub(crate) broken: usize,
}

impl<T: Copy> Lanes<T> {
    pub(crate) fn new(options: LaneOptions) -> Self {
        Self {
            options,
            origins: Vec::new(),
            by_key: HashMap::new(),
            free: Vec::new(),
            round: VecDeque::new(),
            late_round: VecDeque::new(),
            running: 0,
            late_running: 0,
            slow: 0,
            ready: 0,
            next_number: 0,
            checks: BinaryHeap::new(),
            crowded: None,
            forget_at: MAX_IDLE_ORIGINS,
        }
    }

    /// Something is to be delivered to an origin.
    pub(crate) fn push(&mut self, origin: &str, item: T, late: bool, now: Instant) {
        let at = match self.by_key.get(origin) {
            Some(at) => *at,
            None => self.add_origin(origin, now),
        };
        let entry = &mut self.origins[at];
        let queue = if late { &mut entry.late } else { &mut entry.fresh };
        queue.push_back(item);
        self.ready += 1;
        self.offer(at, now);
    }

    /// The next delivery that may begin.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Flight<T>> {
        while self.running < self.options.all {
            let Some(at) = self.round.pop_front() else { break };
            let entry = &mut self.origins[at];
            entry.in_round = false;
            if !Self::may_begin(entry, now) {
                self.plan_check(at, now);
                continue;
            }
            let Some(item) = entry.fresh.pop_front() else { continue };
            let number = self.next_number;
            self.next_number += 1;
            entry.quick.push_back((now, number));
            self.running += 1;
            self.ready -= 1;
            self.offer(at, now);
            return Some(Flight { item, origin: at, number, late: false, begun: now });
        }
        if !self.round.is_empty() && self.crowded.is_none() {
            self.crowded = Some(now + LEAST_SLOW);
        }
        while self.late_running < self.options.late {
            let Some(at) = self.late_round.pop_front() else { break };
            let entry = &mut self.origins[at];
            entry.in_late_round = false;
            if !Self::may_begin(entry, now) {
                self.plan_check(at, now);
                continue;
            }
            let Some(item) = entry.late.pop_front() else { continue };
            let number = self.next_number;
            self.next_number += 1;
            entry.late_running += 1;
            self.late_running += 1;
            self.ready -= 1;
            self.offer(at, now);
            return Some(Flight { item, origin: at, number, late: true, begun: now });
        }
        None
    }

    /// A delivery ended.
    pub(crate) fn finish(&mut self, flight: &Flight<T>, contact: Contact, now: Instant) {
        let entry = &mut self.origins[flight.origin];
        if flight.late {
            entry.late_running -= 1;
            self.late_running -= 1;
        } else if let Some(place) = entry.quick.iter().position(|(_, number)| *number == flight.number) {
            entry.quick.remove(place);
            self.running -= 1;
        } else {
            entry.slow -= 1;
            self.slow -= 1;
        }
        match contact {
            Contact::Answered => {
                let took = now.saturating_duration_since(flight.begun);
                entry.usual = Some(entry.usual.map_or(took, |usual| (usual * 7 + took) / 8));
                entry.unreachable = 0;
                entry.broken_until = None;
            }
            Contact::Unreachable => {
                entry.unreachable = entry.unreachable.saturating_add(1);
                if entry.unreachable >= self.options.breaker_failures {
                    entry.broken_until = Some(now + self.options.breaker_pause);
                }
            }
            Contact::Silent => {}
        }
        self.offer(flight.origin, now);
    }

    /// Makes room where deliveries take long, and tries again where an origin was left alone. To be called at the
    /// instant [`Lanes::due`] says.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.crowded.is_some_and(|due| due <= now) {
            self.crowded = None;
            for at in 0..self.origins.len() {
                self.make_room(at, now);
            }
        }
        while let Some(Reverse((due, at))) = self.checks.peek().copied() {
            if due > now {
                return;
            }
            self.checks.pop();
            self.origins[at].check_planned = false;
            self.make_room(at, now);
            self.offer(at, now);
        }
    }

    fn make_room(&mut self, at: usize, now: Instant) {
        let slow_after = self.slow_after(at);
        let entry = &mut self.origins[at];
        while let Some((begun, _)) = entry.quick.front() {
            let room = entry.slow < self.options.slow_per_origin && self.slow < self.options.slow;
            if !room || *begun + slow_after > now {
                return;
            }
            entry.quick.pop_front();
            entry.slow += 1;
            self.slow += 1;
            self.running -= 1;
        }
    }

    /// When to call [`Lanes::tick`].
    pub(crate) fn due(&self) -> Option<Instant> {
        let check = self.checks.peek().map(|Reverse((due, _))| *due);
        [check, self.crowded].into_iter().flatten().min()
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            ready: self.ready,
            flying: self.running + self.late_running + self.slow,
            slow: self.slow,
            broken: self.by_key.values().filter(|at| self.origins[**at].broken_until.is_some()).count(),
        }
    }

    fn may_begin(entry: &Origin<T>, now: Instant) -> bool {
        let flying = entry.quick.len() + entry.slow + entry.late_running;
        entry.broken_until.is_none_or(|until| until <= now && flying == 0)
    }

    fn slow_after(&self, at: usize) -> Duration {
        let most = self.options.slow_after;
        self.origins[at].usual.map_or(most, |usual| (usual * 8).clamp(LEAST_SLOW.min(most), most))
    }

    /// Gives an origin a turn if it has something to deliver and a place for it.
    fn offer(&mut self, at: usize, now: Instant) {
        let entry = &mut self.origins[at];
        let mut blocked = false;
        if !entry.fresh.is_empty() && !entry.in_round {
            if entry.quick.len() < self.options.per_origin {
                entry.in_round = true;
                self.round.push_back(at);
            } else {
                blocked = true;
            }
        }
        if !entry.late.is_empty() && !entry.in_late_round && entry.late_running < (self.options.late / 4).max(1) {
            entry.in_late_round = true;
            self.late_round.push_back(at);
        }
        if blocked {
            self.plan_check(at, now);
        }
    }

    fn plan_check(&mut self, at: usize, now: Instant) {
        let slow_after = self.slow_after(at);
        let full = self.slow >= self.options.slow || self.origins[at].slow >= self.options.slow_per_origin;
        let entry = &mut self.origins[at];
        if entry.check_planned {
            return;
        }
        let due = match (entry.broken_until, entry.quick.front()) {
            (Some(until), _) if until > now => until,
            (_, Some((begun, _))) => (*begun + slow_after).max(now),
            // One attempt is under way at an origin that was left alone; its end offers the next turn.
            _ => return,
        };
        // Where no more can be slow there is nothing to do for a while.
        let due =
            if full && due <= now { now + self.options.slow_after } else { due.max(now + Duration::from_millis(1)) };
        entry.check_planned = true;
        self.checks.push(Reverse((due, at)));
    }

    fn add_origin(&mut self, key: &str, now: Instant) -> usize {
        if self.by_key.len() >= self.forget_at {
            self.forget_idle(now);
            self.forget_at = (self.by_key.len() * 2).max(MAX_IDLE_ORIGINS);
        }
        let entry = Origin {
            fresh: VecDeque::new(),
            late: VecDeque::new(),
            in_round: false,
            in_late_round: false,
            quick: VecDeque::new(),
            slow: 0,
            late_running: 0,
            usual: None,
            unreachable: 0,
            broken_until: None,
            check_planned: false,
        };
        let at = if let Some(at) = self.free.pop() {
            self.origins[at] = entry;
            at
        } else {
            self.origins.push(entry);
            self.origins.len() - 1
        };
        self.by_key.insert(key.into(), at);
        at
    }

    fn forget_idle(&mut self, now: Instant) {
        let Self { origins, by_key, free, .. } = self;
        by_key.retain(|_, at| {
            let entry = &origins[*at];
            let busy = entry.in_round
                || entry.in_late_round
                || entry.check_planned
                || !entry.fresh.is_empty()
                || !entry.late.is_empty()
                || !entry.quick.is_empty()
                || entry.slow + entry.late_running > 0
                || entry.broken_until.is_some_and(|until| until > now);
            if !busy {
                free.push(*at);
            }
            busy
        });
    }
}

#[cfg(test)]
mod tests;
