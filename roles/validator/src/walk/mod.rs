//! The walk over a whole Source, up and down. Several threads read each address once, within
//! limits.
//!
//! | file | subject |
//! |---|---|
//! | `protocol.rs` | the interface of a protocol |
//! | `node.rs` | addresses, and the records of their documents |
//! | `inspect.rs` | inspection of an address, and selection of the protocol |
//! | `feeds.rs` | documents that a protocol reads one after another |
//! | `sample.rs`, `sketch.rs` | the sample of resources to fetch |
//! | `settle.rs` | findings explained by a change of the Source |
//! | `report.rs` | the report |

pub(crate) mod feeds;
pub(crate) mod inspect;
pub(crate) mod node;
pub(crate) mod protocol;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod settle;
pub(crate) mod sketch;

use crate::fetch::{self, Budget, Failure, ResponseFacts, is_url};
use crate::report::{MAKING, MAX_DOCUMENTS, Options};
use crate::walk::inspect::{inspect, is_host_meta};
use crate::walk::node::{FoundBy, Lead, Node, Outcome, Record, Stage, Walked, site_has_documents};
use crate::walk::protocol::{Inspected, Inspection, Page, Run, Visit};
use abreast_core::spawn_scoped;
use abreast_net::Client;
use abreast_webtypes::{Origin as WebOrigin, resolve};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use url::Url;

/// Findings after which only the first of each rule in a document is stored; the others are
/// counted.
const FINDINGS_MAX: usize = 100_000;

#[derive(Default)]
struct State {
    nodes: Vec<Node>,
    by_url: HashMap<String, usize>,
    /// Addresses by stage. Late documents are read when the first queue is empty, so that they
    /// contain all changes that the other lists reflect. Documents of archives are read last.
    queues: [VecDeque<usize>; 3],
    /// The current stage.
    stage: usize,
    active: usize,
    /// Name of a limit of bytes or time that was reached; the walk ends at once.
    limit: Option<&'static str>,
    /// Number of documents and packages that were read or wait to be read.
    taken: usize,
    /// Addresses over the limit of documents, in the order of their discovery.
    refused: VecDeque<usize>,
    /// Whether there are more addresses over the limit than are remembered.
    overflowed: bool,
    cancelled: bool,
    steps: u64,
    /// Links of given pages that are tried last.
    last: Vec<(usize, Lead)>,
    /// Whether the links of given pages were tried.
    is_last_tried: bool,
    /// Addresses that are read after the walk, each with the index of the protocol that reads it.
    later: Vec<(usize, usize)>,
}

pub(crate) struct Walk<'a> {
    run: &'a Run<'a>,
    state: Mutex<State>,
    wake: Condvar,
    /// Number of findings that are stored.
    kept: AtomicUsize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(run: &'a Run<'a>) -> Self {
        let (state, wake) = (Mutex::default(), Condvar::new());
        Self { run, state, wake, kept: AtomicUsize::new(0) }
    }

    /// Walks to the end or to a limit. Also returns the addresses to read after the walk, each with
    /// the index of its protocol.
    pub(crate) fn run(self) -> (Walked, Vec<(usize, usize)>) {
        {
            let mut state = self.lock();
            for start in &self.run.options.starts {
                self.add(&mut state, Lead::new(start, FoundBy::Start, 2), None);
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..self.run.options.connections.clamp(1, 64) {
                spawn_scoped(scope, || self.work());
            }
        });
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.later.sort_unstable();
        let is_full = state.overflowed || !state.refused.is_empty();
        let walked = Walked {
            nodes: state.nodes,
            by_url: state.by_url,
            sets: HashMap::new(),
            limit: state.limit.or(is_full.then_some(MAX_DOCUMENTS)),
            cancelled: state.cancelled,
            unique_one_in: 1,
        };
        (walked, state.later)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, state: &mut State, mut lead: Lead, from: Option<usize>) {
        lead.url.truncate(abreast_webtypes::without_fragment(&lead.url).len());
        if state.by_url.contains_key(&lead.url) {
            return;
        }
        let number = state.nodes.len();
        let is_full = state.taken >= self.run.options.max_documents;
        let outcome = if lead.found_by != FoundBy::Start && !self.run.hosts.may(&lead.url) {
            Outcome::Left("other host")
        } else if state.limit.is_some() || state.cancelled || is_full {
            Outcome::Left("limit")
        } else {
            Outcome::Waiting
        };
        if is_full && number >= self.run.options.max_documents.saturating_mul(2) {
            state.overflowed = true;
            return;
        }
        let is_refused = is_full && matches!(outcome, Outcome::Left("limit"));
        let is_waiting = matches!(outcome, Outcome::Waiting);
        state.by_url.insert(lead.url.clone(), number);
        state.nodes.push(Node::new(lead, from, outcome));
        if is_refused {
            state.refused.push_back(number);
        } else if is_waiting {
            Self::take(state, number);
        }
    }

    /// Appends an address to the queue of its stage.
    fn take(state: &mut State, number: usize) {
        state.taken += 1;
        let queue = match state.nodes[number].stage {
            Stage::Now | Stage::Try => 0,
            Stage::Late => 1,
            Stage::Past => 2,
        };
        state.queues[queue].push_back(number);
    }

    /// Subtracts an address from the limit of documents: it was only tried, and does not have a
    /// document.
    fn give_back(state: &mut State) {
        state.taken -= 1;
        if let Some(number) = state.refused.pop_front() {
            state.nodes[number].outcome = Outcome::Waiting;
            Self::take(state, number);
        }
    }

    fn work(&self) {
        let Some(runtime) = fetch::runtime() else { return };
        let client = Client::new(Arc::clone(&self.run.shared));
        while let Some(number) = self.next() {
            let guard = InspectionGuard(self);
            let is_many = self.kept.load(Ordering::Relaxed) >= FINDINGS_MAX;
            let visit = {
                let mut state = self.lock();
                state.steps += 1;
                let step = state.steps;
                let node = &mut state.nodes[number];
                node.steps.0 = step;
                Visit {
                    run: self.run,
                    client: &client,
                    number,
                    url: node.url.clone(),
                    found_by: node.found_by,
                    origin: node.origin.clone(),
                    note: node.note.take(),
                    most_each: if is_many { 1 } else { self.run.options.most_each },
                }
            };
            let begun = Instant::now();
            let done = runtime.block_on(inspect(&visit));
            let mut state = self.lock();
            state.nodes[number].millis = begun.elapsed().as_millis() as u64;
            self.done(&mut state, number, done);
            drop(state);
            drop(guard);
        }
    }

    /// Next address to inspect, waiting for other threads if necessary; `None` at the end of the
    /// walk.
    fn next(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.limit.is_some() || state.cancelled {
                return None;
            }
            let is_idle = state.active == 0 && state.queues.iter().all(VecDeque::is_empty);
            if is_idle
                && self.run.options.walk
                && !std::mem::replace(&mut state.is_last_tried, true)
            {
                self.try_last(&mut state);
            }
            if state.active == 0 && state.queues[0].is_empty() {
                state.stage = state.stage.max(if state.queues[1].is_empty() { 2 } else { 1 });
            }
            let stage = state.stage;
            if let Some(number) = state.queues[..=stage].iter_mut().find_map(VecDeque::pop_front) {
                state.active += 1;
                return Some(number);
            }
            if state.active == 0 {
                self.wake.notify_all();
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Locations of a site that can lead to its Source. `is_last` selects the ones to try last.
    fn places(&self, start: &str, is_last: bool) -> Vec<Lead> {
        let Ok(url) = Url::parse(start) else { return Vec::new() };
        let mut all: Vec<Lead> =
            self.run.protocols.iter().flat_map(|protocol| protocol.places(&url)).collect();
        all.retain(|lead| (lead.stage == Stage::Try) == is_last);
        all
    }

    /// Adds addresses to try if no other address led to a document: links of a given page, and
    /// locations of a site whose root was given.
    fn try_last(&self, state: &mut State) {
        let mut links = std::mem::take(&mut state.last);
        let is_bare = |number: &usize| {
            let node = &state.nodes[*number];
            node.found_by == FoundBy::Start
                && is_url(&node.url)
                && match &node.outcome {
                    Outcome::Failed(_) | Outcome::Page(_) => true,
                    Outcome::Read(record) => record.is_document(node.found_by) == Some(false),
                    _ => false,
                }
                && !site_has_documents(&state.nodes, *number)
        };
        let bare: Vec<usize> = (0..state.nodes.len()).filter(is_bare).collect();
        for number in bare {
            let own: Vec<_> = links.extract_if(.., |(from, _)| *from == number).collect();
            let site = WebOrigin::of(&state.nodes[number].url);
            let is_plain = |node: &Node| {
                matches!(node.outcome, Outcome::Plain) && WebOrigin::of(&node.url) == site
            };
            // A copy would start with the Sitemaps in robots.txt.
            for plain in 0..state.nodes.len() {
                if is_plain(&state.nodes[plain]) {
                    state.nodes[plain].found_by = FoundBy::Plain;
                    state.nodes[plain].outcome = Outcome::Waiting;
                    Self::take(state, plain);
                }
            }
            if own.is_empty() && state.nodes[number].is_root() {
                for lead in self.places(&state.nodes[number].url.clone(), true) {
                    self.add(state, lead, None);
                }
            }
            for (_, lead) in own {
                self.add(state, lead, Some(number));
            }
        }
    }

    /// Stores the result of an inspection, and adds the addresses that it links to.
    fn done(&self, state: &mut State, number: usize, inspected: Inspection) {
        state.steps += 1;
        state.nodes[number].steps.1 = state.steps;
        self.kept.fetch_add(inspected.findings.len(), Ordering::Relaxed);
        state.nodes[number].findings = inspected.findings;
        let is_tried = matches!(
            state.nodes[number].found_by,
            FoundBy::WellKnown | FoundBy::Robots | FoundBy::HostMeta
        );
        if is_tried
            && matches!(
                inspected.found,
                Inspected::Done(Outcome::Failed(_) | Outcome::Plain) | Inspected::Page(..)
            )
        {
            Self::give_back(state);
        }
        let start = &state.nodes[number];
        if start.found_by == FoundBy::Start
            && is_url(&start.url)
            && self.run.options.walk
            && !matches!(
                inspected.found,
                Inspected::Later(..) | Inspected::Done(Outcome::Left(MAKING))
            )
        {
            for lead in self.places(&start.url.clone(), false) {
                self.add(state, lead, None);
            }
        }
        state.nodes[number].outcome = match inspected.found {
            Inspected::Later(protocol, record) => {
                state.later.push((number, protocol));
                Outcome::Read(record)
            }
            Inspected::Done(Outcome::Read(record)) => self.take_over(state, number, record),
            Inspected::Done(outcome) => outcome,
            Inspected::Ended(Failure::Limit(limit)) => {
                state.limit = Some(limit);
                Outcome::Left("limit")
            }
            Inspected::Ended(_) => {
                state.cancelled = true;
                Outcome::Left("stopped")
            }
            Inspected::Page(page, facts) => self.page(state, number, &page, &facts),
            Inspected::Resource(facts) => {
                self.page(state, number, b"", &facts);
                Outcome::Page("resource")
            }
        };
    }

    /// Passes a document to its protocol, and adds the links of the document.
    fn take_over(&self, state: &mut State, number: usize, mut record: Box<dyn Record>) -> Outcome {
        let (nodes, options) = (&state.nodes, self.run.options);
        let taken = self
            .run
            .protocols
            .iter()
            .find_map(|protocol| protocol.take_over(&mut *record, nodes, number, options));
        if let Some((level, leads)) = taken {
            state.nodes[number].level = level;
            for lead in leads {
                self.add(state, lead, Some(number));
            }
        }
        Outcome::Read(record)
    }

    /// Adds the links of a page; a page in place of a required document is a failure.
    fn page(
        &self,
        state: &mut State,
        number: usize,
        bytes: &[u8],
        facts: &ResponseFacts,
    ) -> Outcome {
        let (url, found_by) = (state.nodes[number].url.clone(), state.nodes[number].found_by);
        let page = Page { bytes, facts, found_by, is_host_meta: is_host_meta(&url, found_by) };
        let links = self.run.protocols.iter().flat_map(|protocol| protocol.links(&page));
        let (last, now): (Vec<Lead>, Vec<Lead>) = links.partition(|lead| lead.stage == Stage::Try);
        let is_failed = matches!(found_by, FoundBy::WellKnown | FoundBy::Page)
            || now.is_empty()
                && !matches!(found_by, FoundBy::Robots | FoundBy::Start | FoundBy::HostMeta);
        let is_bare = found_by == FoundBy::Start && now.is_empty();
        let resolved = |mut lead: Lead| {
            lead.url = resolve(&url, &lead.url).ok()?;
            Some(lead)
        };
        if is_bare {
            state.last.extend(last.into_iter().filter_map(resolved).map(|lead| (number, lead)));
        }
        for lead in now.into_iter().filter_map(resolved) {
            self.add(state, lead, Some(number));
        }
        if is_failed {
            return Outcome::Failed("this is a web page, no ResourceSync document".to_owned());
        }
        Outcome::Page("page")
    }
}

/// An inspection in progress. Dropping the guard wakes waiting threads; a panic also ends the walk.
struct InspectionGuard<'a, 'w>(&'a Walk<'w>);

impl Drop for InspectionGuard<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active -= 1;
        state.cancelled |= std::thread::panicking();
        self.0.wake.notify_all();
    }
}

/// Limits of a walk, from the options.
pub(crate) fn budget<'a>(options: &Options, cancel: &'a AtomicBool) -> Budget<'a> {
    Budget {
        bytes_left: AtomicU64::new(options.max_bytes),
        until: Instant::now() + options.max_time,
        cancel,
        unreachable: Mutex::default(),
    }
}
