//! The thread that sends updates, with many changes in each update.

use super::endpoint::Endpoint;
use super::journal::Journal;
use super::service::{Remote, Service};
use super::singly::Singly;
use super::store::Database;
use super::text;
use super::text::Step;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::sinks::Graph;
use crate::sink::rdf::remote::change::{Change, either};
use crate::sink::rdf::remote::refusal::Refusal;
use abreast_core::start_thread;
use abreast_rdf::sparql::{Reach, SparqlError, ask_deeper};
use abreast_store::mirror::{Described, Row};
use futures_util::stream::{self, StreamExt as _};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as blocking};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Maximum number of changes in an update.
const CHANGES: usize = 500;
/// Bytes of statements after which an update is sent.
const UPDATE_BYTES: usize = 1 << 20;
/// Maximum length of waiting statements, in bytes; a single description may be longer.
const WAITING_BYTES: usize = 24 << 20;
/// Maximum number of steps over blank nodes in searches for the statements of an unknown resource.
const DEPTH_MAX: usize = 64;
/// Number of parallel requests about single entities.
const TOGETHER: usize = 8;

enum Message {
    Change(Box<Change>, OwnedSemaphorePermit),
    /// Everything before is to be carried out.
    Settle(blocking::Sender<Result<Settled, Error>>),
}

/// What became of the changes since the last settling.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) failed: Vec<(String, Failure)>,
    /// The stored descriptions; `None` for deleted resources.
    pub(super) stored: Vec<(String, Option<Described>)>,
    /// The rows of the stored resources.
    pub(super) rows: Vec<Row>,
}

/// The connection to the thread.
#[derive(Debug)]
pub(super) struct Sending {
    messages: UnboundedSender<Message>,
    room: Arc<Semaphore>,
    /// An error has ended the work of the thread.
    is_broken: Arc<AtomicBool>,
    service: Service,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Ends the thread at the end of a run. The next run repeats changes that were not settled.
impl Drop for Sending {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Sending {
    pub(super) fn start(
        remote: &Remote,
        net: abreast_net::Options,
        store: Option<Database>,
        journal: Journal,
    ) -> Result<Self, Error> {
        let cannot = |cause| {
            Error::new("io", ExitCode::Io, "cannot start the thread that sends").with_cause(cause)
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let (messages, received) = unbounded_channel();
        let is_broken = Arc::new(AtomicBool::new(false));
        let (client, service) = (Remote::client(net), remote.service);
        let sender = Sender {
            singly: Singly::new(client.clone(), remote),
            endpoint: Endpoint::new(client, remote),
            store,
            service,
            graph: remote.graph.clone(),
            journal,
            settled: Settled::default(),
            fatal: None,
            is_broken: Arc::clone(&is_broken),
        };
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = sender.work(received) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = start_thread("statements", work).map_err(cannot)?;
        let room = Arc::new(Semaphore::new(WAITING_BYTES));
        Ok(Self { messages, room, is_broken, service, stop: Some(stop), thread: Some(thread) })
    }

    /// Passes a change to the thread, when there is space in its queue.
    pub(super) async fn send(&self, change: Change) -> Result<(), Failure> {
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(self.broken());
        }
        let bytes = change.bytes().clamp(1, WAITING_BYTES) as u32;
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await;
        let room = room.map_err(|_| self.broken())?;
        self.messages.send(Message::Change(Box::new(change), room)).map_err(|_| self.broken())
    }

    fn broken(&self) -> Failure {
        let (code, message) = self.service.broken();
        Failure::fatal(code, message)
    }

    /// Waits until all changes that were passed on are carried out.
    pub(super) fn settle(&self) -> Result<Settled, Error> {
        let (answer, answered) = blocking::channel();
        let sent = self.messages.send(Message::Settle(answer));
        sent.ok()
            .and_then(|()| answered.recv().ok())
            .unwrap_or_else(|| Err(self.broken().into_error()))
    }
}

struct Sender {
    service: Service,
    endpoint: Endpoint,
    /// For services that are not an endpoint.
    singly: Singly,
    store: Option<Database>,
    graph: Graph,
    journal: Journal,
    settled: Settled,
    /// Why the endpoint cannot be used.
    fatal: Option<Error>,
    is_broken: Arc<AtomicBool>,
}

impl Sender {
    async fn work(mut self, mut messages: UnboundedReceiver<Message>) {
        let (mut batch, mut bytes): (Vec<(Box<Change>, OwnedSemaphorePermit)>, _) = (Vec::new(), 0);
        let mut known = HashSet::new();
        while let Some(message) = messages.recv().await {
            match message {
                Message::Change(change, room) => {
                    // An update must not contain two versions of a resource or an entity.
                    let touched = self.touched(&change);
                    if touched.iter().any(|iri| known.contains(iri)) {
                        self.send(&mut batch).await;
                        (known, bytes) = (HashSet::new(), 0);
                    }
                    known.extend(touched);
                    bytes += change.bytes();
                    batch.push((change, room));
                    if batch.len() < CHANGES && bytes < UPDATE_BYTES {
                        continue;
                    }
                    self.send(&mut batch).await;
                }
                Message::Settle(answer) => {
                    self.send(&mut batch).await;
                    let settled = std::mem::take(&mut self.settled);
                    let noted = self.flush().and_then(|()| self.journal.settled());
                    let _ = answer.send(self.fatal.take().map_or(noted.map(|()| settled), Err));
                }
            }
            known.clear();
            bytes = 0;
        }
    }

    /// The resource of a change and the entities that it concerns. A read error is reported when
    /// the change is executed.
    fn touched(&self, change: &Change) -> Vec<String> {
        let mut all = self.journal.entities(change).unwrap_or_default();
        all.extend([change.uri.clone(), change.entity().to_owned()]);
        all
    }

    /// Executes changes. A change that the service refuses fails alone; bisection finds such
    /// changes in an update.
    async fn send(&mut self, batch: &mut Vec<(Box<Change>, OwnedSemaphorePermit)>) {
        let all = std::mem::take(batch);
        let changes: Vec<&Change> = all.iter().map(|(change, _)| &**change).collect();
        let mut waiting = vec![changes.as_slice()];
        while let Some(changes) = waiting.pop() {
            if changes.is_empty() || self.is_broken.load(Ordering::Relaxed) {
                return;
            }
            let result = match self.service {
                Service::Endpoint => {
                    self.apply(changes).await.and_then(|()| Ok(self.keep(changes)?))
                }
                Service::Store => {
                    self.apply_in_store(changes).and_then(|()| Ok(self.keep(changes)?))
                }
                _ => self.apply_singly(changes).await,
            };
            match result {
                Ok(()) => {}
                Err(Refusal::Endpoint(error)) => {
                    self.is_broken.store(true, Ordering::Relaxed);
                    self.fatal = Some(error);
                    return;
                }
                Err(Refusal::Request(message)) => {
                    if let [change] = changes {
                        self.fail(change, message);
                    } else {
                        for change in changes {
                            self.journal.refused(change);
                        }
                        let (first, second) = changes.split_at(changes.len() / 2);
                        waiting.extend([second, first]);
                    }
                }
            }
        }
    }

    fn fail(&mut self, change: &Change, message: String) {
        self.journal.refused(change);
        let failure = Failure::new(self.service.refused(), message);
        self.settled.failed.push((change.uri.clone(), failure));
    }

    /// Records the stored descriptions after changes.
    fn keep(&mut self, changes: &[&Change]) -> Result<(), Error> {
        for change in changes {
            let new = change.new.as_ref();
            if new.is_some() {
                // If two documents describe the same entity, the newest one is stored.
                let former = self.journal.resource(change.entity())?;
                let former = former.filter(|former| *former != change.uri);
                self.settled.stored.extend(former.map(|former| (former, None)));
            }
            self.journal.done(change);
            let described = new.map(|new| Described {
                digest: new.digest.to_vec(),
                entity: new.entity.as_ref().map(|entity| entity.as_str().to_owned()),
            });
            self.settled.stored.push((change.uri.clone(), described));
            self.settled.rows.extend(change.row.clone());
        }
        Ok(())
    }

    async fn stored(&self, entities: &[&str]) -> Result<HashSet<String>, Refusal> {
        if entities.is_empty() {
            return Ok(HashSet::new());
        }
        self.endpoint.iris(text::stored(entities, &self.graph)).await
    }

    /// The steps of a change, one for each entity. `owned` are the entities that are, or may be,
    /// stored for its resource, first the entity in the database.
    fn steps<'a>(&self, change: &'a Change, owned: &'a [String]) -> Result<Vec<Step<'a>>, Error> {
        let (uri, new, target) = (change.uri.as_str(), change.new.as_ref(), change.entity());
        let is_own = |entity: &str| -> Result<bool, Error> {
            Ok(self.journal.resource(entity)?.is_none_or(|owner| owner == uri))
        };
        let unsure = self.journal.unsure_reach(uri);
        let old_of = |entity: &str| {
            let place = owned.iter().position(|known| known == entity)?;
            unsure.or_else(|| change.old.filter(|_| place == 0))
        };
        let mut steps = Vec::with_capacity(1);
        for entity in owned.iter().filter(|entity| new.is_none() || *entity != target) {
            if is_own(entity)? {
                steps.push(Step { entity, old: old_of(entity), new: None });
            }
        }
        if new.is_some() {
            let old = if is_own(target)? { old_of(target) } else { None };
            steps.push(Step { entity: target, old, new });
        }
        Ok(steps)
    }

    async fn apply(&mut self, changes: &[&Change]) -> Result<(), Refusal> {
        let owned: Vec<_> =
            changes.iter().map(|change| self.journal.entities(change)).collect::<Result<_, _>>()?;
        let by_change: Vec<Vec<Step<'_>>> = (changes.iter().zip(&owned))
            .map(|(change, owned)| self.steps(change, owned))
            .collect::<Result<_, _>>()?;
        let steps: Vec<Step<'_>> = by_change.iter().flatten().copied().collect();
        let unknown = steps.iter().filter(|step| step.old.is_none());
        let unknown: Vec<&str> = unknown.map(|step| step.entity).collect();
        let found = self.stored(&unknown).await?;
        let mut stored = HashMap::new();
        for step in &steps {
            let reach = match step.old {
                Some(reach) => reach,
                None if found.contains(step.entity) => self.reach(step.entity).await?,
                None => continue,
            };
            stored.insert(step.entity, reach);
        }
        let text = text::update(&steps, &stored, &self.graph).map_err(|error| refused(&error))?;
        if text.is_empty() {
            return Ok(());
        }
        // Covers the stored statements and the new ones, since either may be stored if the update
        // is repeated.
        let reach_of = |step: &Step<'_>| {
            let new = step.new.map(|new| new.reach).unwrap_or_default();
            either(stored.get(step.entity).copied().unwrap_or_default(), new)
        };
        let enough = |steps: &Vec<Step<'_>>| steps.iter().map(reach_of).reduce(either);
        self.journal.note(
            changes
                .iter()
                .zip(&by_change)
                .map(|(change, steps)| (*change, enough(steps).unwrap_or_default())),
        )?;
        let again = || {
            let stored = steps.iter().map(|step| (step.entity, reach_of(step))).collect();
            // The same text was built successfully before.
            text::update(&steps, &stored, &self.graph).unwrap_or_default()
        };
        self.endpoint.update(text, &again).await
    }

    /// Executes changes in one transaction.
    fn apply_in_store(&mut self, changes: &[&Change]) -> Result<(), Refusal> {
        let Some(store) = &self.store else { return Ok(()) };
        self.journal.note(changes.iter().map(|change| (*change, Reach::default())))?;
        let owned: Vec<_> =
            changes.iter().map(|change| self.journal.entities(change)).collect::<Result<_, _>>()?;
        let mut steps = Vec::with_capacity(changes.len());
        for (change, owned) in changes.iter().zip(&owned) {
            steps.extend(self.steps(change, owned)?);
        }
        store.apply(&steps, &self.graph)
    }

    /// Flushes the committed data to disk, before the database records the changes.
    fn flush(&self) -> Result<(), Error> {
        self.store.as_ref().map_or(Ok(()), Database::flush).map_err(Refusal::into_error)
    }

    /// Executes changes by a request for each entity, several in parallel. `changes` must not
    /// contain two changes of a resource.
    async fn apply_singly(&mut self, changes: &[&Change]) -> Result<(), Refusal> {
        self.journal.note(changes.iter().map(|change| (*change, Reach::default())))?;
        let mut prepared = Vec::with_capacity(changes.len());
        for &change in changes {
            prepared.push((change, self.journal.entities(change)?));
        }
        let mut requests = Vec::with_capacity(changes.len());
        for (change, owned) in &prepared {
            requests.push((*change, self.steps(change, owned)?));
        }
        let (singly, is_broken) = (&self.singly, &self.is_broken);
        let request = async |(change, steps): (_, Vec<Step<'_>>)| {
            let mut result = Ok(());
            for step in steps {
                if result.is_ok() && !is_broken.load(Ordering::Relaxed) {
                    result = singly.replace(step.entity, step.lines()).await;
                }
            }
            if let Err(Refusal::Endpoint(_)) = result {
                is_broken.store(true, Ordering::Relaxed);
            }
            (change, result)
        };
        let results: Vec<(&Change, Result<(), Refusal>)> =
            stream::iter(requests).map(request).buffer_unordered(TOGETHER).collect().await;
        let mut fatal = None;
        for (change, result) in results {
            match result {
                // The rest was not sent: the run ends.
                Ok(()) if self.is_broken.load(Ordering::Relaxed) => {}
                Ok(()) => self.keep(&[change])?,
                Err(Refusal::Request(message)) => self.fail(change, message),
                Err(Refusal::Endpoint(error)) => fatal = Some(error),
            }
        }
        fatal.map_or(Ok(()), |error| Err(Refusal::Endpoint(error)))
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

fn refused(error: &SparqlError) -> Refusal {
    Refusal::Request(error.to_string())
}
