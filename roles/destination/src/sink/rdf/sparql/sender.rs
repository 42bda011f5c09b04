//! The thread that sends updates, many changes in each.

use super::super::Graph;
use super::super::document::DIGEST_BYTES;
use super::endpoint::{Endpoint, Refusal};
use super::{Change, SparqlOptions, text};
use crate::error::{Error, ExitCode};
use crate::sink::outcome::Failure;
use abreast_rdf::sparql::{Reach, SparqlError, ask_deeper};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most changes in one update.
const CHANGES: usize = 500;
/// Bytes of statements after which an update is sent.
const UPDATE_BYTES: usize = 1 << 20;
/// Bytes of statements that wait, at most; one description may be longer.
const WAITING_BYTES: usize = 24 << 20;
/// Most steps over blank nodes that are searched in what is stored of an unknown resource.
const DEPTH_MAX: usize = 64;

enum Message {
    Change(Change, OwnedSemaphorePermit),
    /// Asks which of these resources are stored.
    Stored(Vec<String>, blocking::Sender<Result<HashSet<String>, String>>),
    /// Everything before is to be carried out.
    Settle(blocking::Sender<Result<Settled, Error>>),
}

/// What became of the changes since the last settling.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) failed: Vec<(String, Failure)>,
    /// The digests of what is stored now; none of resources that are gone.
    pub(super) stored: Vec<(String, Option<[u8; DIGEST_BYTES]>)>,
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Sending {
    messages: UnboundedSender<Message>,
    room: Arc<Semaphore>,
    /// Nothing more will be carried out.
    is_broken: Arc<AtomicBool>,
}

impl Sending {
    pub(super) fn start(options: &SparqlOptions, net: abreast_net::Options) -> Result<Self, Error> {
        let cannot = |cause| {
            Error::new("io", ExitCode::Io, "cannot start the thread of the endpoint")
                .with_cause(cause)
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let (messages, received) = unbounded_channel();
        let is_broken = Arc::new(AtomicBool::new(false));
        let sender = Sender {
            endpoint: Endpoint::new(SparqlOptions::client(net), options),
            graph: options.graph.clone(),
            settled: Settled::default(),
            fatal: None,
            is_broken: Arc::clone(&is_broken),
        };
        std::thread::Builder::new()
            .name("sparql".to_owned())
            .spawn(move || runtime.block_on(sender.work(received)))
            .map_err(cannot)?;
        Ok(Self { messages, room: Arc::new(Semaphore::new(WAITING_BYTES)), is_broken })
    }

    /// Hands a change over, once there is room for it.
    pub(super) async fn send(&self, change: Change) -> Result<(), Failure> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(broken());
        }
        let bytes = change.bytes().clamp(1, WAITING_BYTES) as u32;
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await;
        let room = room.map_err(|_| broken())?;
        self.messages.send(Message::Change(change, room)).map_err(|_| broken())
    }

    /// Which of the resources are stored.
    pub(super) fn stored(&self, uris: Vec<String>) -> Result<HashSet<String>, String> {
        let (answer, answered) = blocking::channel();
        let sent = self.messages.send(Message::Stored(uris, answer));
        sent.ok().and_then(|()| answered.recv().ok()).unwrap_or_else(|| Err(broken().message))
    }

    /// Waits until everything that was handed over is carried out.
    pub(super) fn settle(&self) -> Result<Settled, Error> {
        let (answer, answered) = blocking::channel();
        let sent = self.messages.send(Message::Settle(answer));
        sent.ok().and_then(|()| answered.recv().ok()).unwrap_or_else(|| Err(broken().into_error()))
    }
}

fn broken() -> Failure {
    Failure::fatal("sparql.failed", "the endpoint takes no more updates")
}

struct Sender {
    endpoint: Endpoint,
    graph: Graph,
    settled: Settled,
    /// Why the endpoint cannot be used.
    fatal: Option<Error>,
    is_broken: Arc<AtomicBool>,
}

impl Sender {
    async fn work(mut self, mut messages: UnboundedReceiver<Message>) {
        let (mut batch, mut bytes): (Vec<(Change, OwnedSemaphorePermit)>, _) = (Vec::new(), 0);
        let mut known = HashSet::new();
        while let Some(message) = messages.recv().await {
            match message {
                Message::Change(change, room) => {
                    // One update has one version of a resource.
                    if !known.insert(change.uri.clone()) {
                        self.send(&mut batch).await;
                        known = HashSet::from([change.uri.clone()]);
                        bytes = 0;
                    }
                    bytes += change.bytes();
                    batch.push((change, room));
                    if batch.len() < CHANGES && bytes < UPDATE_BYTES {
                        continue;
                    }
                    self.send(&mut batch).await;
                }
                Message::Stored(uris, answer) => {
                    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
                    let stored = match self.stored(&uris).await {
                        Ok(stored) => Ok(stored),
                        Err(Refusal::Request(message)) => Err(message),
                        Err(Refusal::Endpoint(error)) => Err(error.to_string()),
                    };
                    // Nobody waits for it when the run has ended.
                    let _ = answer.send(stored);
                    continue;
                }
                Message::Settle(answer) => {
                    self.send(&mut batch).await;
                    let settled = std::mem::take(&mut self.settled);
                    let _ = answer.send(self.fatal.take().map_or(Ok(settled), Err));
                }
            }
            known.clear();
            bytes = 0;
        }
    }

    /// Carries changes out. Those that the endpoint refuses are found by halving.
    async fn send(&mut self, batch: &mut Vec<(Change, OwnedSemaphorePermit)>) {
        let all = std::mem::take(batch);
        let changes: Vec<&Change> = all.iter().map(|(change, _)| change).collect();
        let mut waiting = vec![changes.as_slice()];
        while let Some(changes) = waiting.pop() {
            if changes.is_empty() || self.is_broken.load(Ordering::Relaxed) {
                return;
            }
            match self.apply(changes).await {
                Ok(()) => self.settled.stored.extend(changes.iter().map(|change| {
                    let digest = change.new.as_ref().map(|description| description.digest);
                    (change.uri.clone(), digest)
                })),
                Err(Refusal::Endpoint(error)) => {
                    self.is_broken.store(true, Ordering::Relaxed);
                    self.fatal = Some(error);
                    return;
                }
                Err(Refusal::Request(message)) => {
                    if let [change] = changes {
                        let failure = Failure::new("sparql.refused", message);
                        self.settled.failed.push((change.uri.clone(), failure));
                    } else {
                        let (first, second) = changes.split_at(changes.len() / 2);
                        waiting.extend([second, first]);
                    }
                }
            }
        }
    }

    async fn stored(&self, uris: &[&str]) -> Result<HashSet<String>, Refusal> {
        if uris.is_empty() {
            return Ok(HashSet::new());
        }
        self.endpoint.iris(text::stored(uris, &self.graph)).await
    }

    async fn apply(&self, changes: &[&Change]) -> Result<(), Refusal> {
        let unknown = changes.iter().filter(|change| change.old.is_none());
        let unknown: Vec<&str> = unknown.map(|change| &*change.uri).collect();
        let found = self.stored(&unknown).await?;
        let mut stored = HashMap::new();
        for change in changes {
            let reach = match change.old {
                Some(reach) => reach,
                None if found.contains(&change.uri) => self.reach(&change.uri).await?,
                None => continue,
            };
            stored.insert(&*change.uri, reach);
        }
        let text = text::update(changes, &stored, &self.graph).map_err(|error| refused(&error))?;
        if text.is_empty() {
            return Ok(());
        }
        // What is stored may be what was to be stored.
        let again = || {
            let mut stored = stored.clone();
            for change in changes {
                let new = change.new.as_ref().map(|new| new.reach).unwrap_or_default();
                let old = stored.entry(&*change.uri).or_default();
                *old = either(*old, new);
            }
            // It was possible before.
            text::update(changes, &stored, &self.graph).unwrap_or_default()
        };
        self.endpoint.update(text, &again).await
    }

    /// How far the blank nodes of a resource reach that was stored by somebody else, or by a run
    /// that was killed.
    async fn reach(&self, uri: &str) -> Result<Reach, Refusal> {
        let graph = match &self.graph {
            Graph::OfResource => return Ok(Reach::default()),
            Graph::Named(iri) => Some(iri.as_str()),
            Graph::Default => None,
        };
        let mut depth = 0;
        while self
            .endpoint
            .ask(ask_deeper(graph, uri, depth).map_err(|error| refused(&error))?)
            .await?
        {
            if depth >= DEPTH_MAX {
                let message = format!(
                    "what is stored of it has more than {DEPTH_MAX} blank nodes in a row\n  help: remove it from the endpoint, or use `--graph resource`"
                );
                return Err(Refusal::Request(message));
            }
            depth = (depth * 2).max(1);
        }
        Ok(Reach::of_depth(depth))
    }
}

/// A reach that is enough for either of two descriptions.
fn either(one: Reach, other: Reach) -> Reach {
    if one.depth == other.depth {
        let (paths, steps) = (one.paths.max(other.paths), one.steps.max(other.steps));
        return Reach { depth: one.depth, paths, steps };
    }
    Reach::of_depth(one.depth.max(other.depth))
}

fn refused(error: &SparqlError) -> Refusal {
    Refusal::Request(error.to_string())
}
