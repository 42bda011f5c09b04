//! Services that store statements, as sinks: a SPARQL 1.1 endpoint, a graph store, a receiver of
//! SDShare Push, and an Oxigraph store in this process.
//!
//! The connections collect descriptions, and one thread sends them. An endpoint receives many
//! descriptions in one update, which it executes completely or not at all. An Oxigraph store
//! receives many in one transaction. The other services receive a request for each entity, several
//! in parallel. A request removes exactly the stored statements of a resource and adds the current
//! ones, so it can be repeated: the database is updated after the request, and a run after a crash
//! in between repeats it.
//!
//! | file | subject |
//! |---|---|
//! | `service.rs` | the services, and the meaning of their errors |
//! | `sender.rs` | the thread that sends |
//! | `change.rs`, `refusal.rs` | the change of a resource's statements, and the reason for its
//! failure |
//! | `endpoint.rs` | requests to an endpoint |
//! | `singly.rs` | requests about one entity |
//! | `store.rs` | transactions on an Oxigraph store |
//! | `text.rs` | queries and updates |
//! | `targets.rs` | the texts of targets for services |
//! | `journal.rs` | sent changes that are not yet in the database, and the entity of each resource
//! |
//! | `kept.rs` | reading back, for audits |

mod change;
mod endpoint;
mod journal;
mod kept;
mod refusal;
mod sender;
mod service;
mod singly;
mod store;
mod targets;
mod text;

use kept::RemoteKept;
pub(crate) use service::Remote;
use service::RemoteOptions;

use super::document::{DIGEST_BYTES, describe, digest_of};
use super::{iri, same_bytes};
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::report::error::Error;
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::report::sinks::Graph;
use crate::sink::kept::ReadBack;
use crate::sink::kind::{KeptCopy, Opening, SinkKind};
use crate::sink::outcome::Outcome;
use crate::sink::rdf::remote::change::{Change, packed, reach_in, version};
use crate::sink::{Body, Deleted, Deleting, Prepared, Sink, SinkWriter, Storing, newest};
use abreast_folder::Dir;
use abreast_rdf::{canonical_lines, with_lower_case_tags};
use abreast_store::mirror::{Described, Mirror, Row, Task};
use abreast_webtypes::Digests;
use journal::Journal;
use sender::Sending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Database;

/// Number of items in one transaction of a sink that flushes to disk before the transaction.
const STORE_BATCH: u64 = 5_000;

/// A service as a sink.
#[derive(Debug)]
pub(crate) struct RemoteSink {
    sending: Sending,
    graph: Graph,
    store: Option<Database>,
    partials: Partials,
    spill: Dir,
    epoch: i64,
    remote: Remote,
    net: abreast_net::Options,
    /// The reason why the service differs from the database.
    restored: Option<String>,
    has_stored: AtomicBool,
}

impl RemoteSink {
    /// With `is_compared`, a store that is missing is made again.
    pub(crate) fn open(
        remote: &Remote,
        net: abreast_net::Options,
        (state, mirror, is_compared): (&StateFolder, &Mirror, bool),
        epoch: i64,
    ) -> Result<Self, Error> {
        remote.check(mirror)?;
        let is_lost = remote.lacks_store(mirror)?;
        let store = remote.open_store(mirror, is_compared)?;
        let (partials, spill) = crate::sink::spill_folder(state)?;
        let journal = Journal::open(state, mirror, epoch)?;
        let is_unsure = |entity: &str| journal.may_have_changed(entity);
        let is_lost = is_lost || kept::lacks_newest(remote, &net, mirror, &is_unsure)?;
        let lost = || {
            let shown = remote.shown();
            format!(
                "the {shown} does not have what was stored last: it was emptied, replaced or restored from a backup"
            )
        };
        let restored = is_lost.then(lost).or_else(|| journal.damage());
        let sending = Sending::start(remote, net.clone(), store.clone(), journal)?;
        let (graph, remote, has_stored) = (remote.graph.clone(), remote.clone(), false.into());
        Ok(Self {
            sending,
            graph,
            store,
            partials,
            spill,
            epoch,
            remote,
            net,
            restored,
            has_stored,
        })
    }
}

impl Sink for RemoteSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(RemoteWriter { sink: self })
    }

    fn keeps_statements(&self) -> bool {
        true
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _leaf: bool) -> String {
        uri.to_owned()
    }

    fn wants_head(&self) -> bool {
        true
    }

    fn settles_items(&self) -> bool {
        true
    }

    fn reads_descriptions(&self) -> bool {
        self.store.is_some()
    }

    fn batch_items(&self) -> u64 {
        if self.store.is_some() { STORE_BATCH } else { 1_000 }
    }

    fn settle(&self, mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let settled = self.sending.settle()?;
        let others = settled.stored.len().saturating_sub(newest::CHANGES);
        let mut changes = Vec::new();
        for (number, (uri, stored)) in settled.stored.into_iter().enumerate() {
            if self.remote.is_readable() && number >= others {
                let before = mirror.description(&uri)?;
                changes.push(change_of(&uri, before.as_ref(), stored.as_ref()));
            }
            mirror.set_description(&uri, stored.as_ref())?;
        }
        settled.rows.iter().try_for_each(|row| mirror.put_row(row))?;
        self.has_stored.fetch_or(!changes.is_empty(), Ordering::Relaxed);
        newest::note(mirror, changes)?;
        Ok(settled.failed)
    }

    /// Ends the detection of lost changes if the service does not return statements that were just
    /// stored.
    fn finish(&self, mirror: &Mirror) -> Result<(), Error> {
        if self.has_stored.load(Ordering::Relaxed)
            && kept::lacks_newest(&self.remote, &self.net, mirror, &|_| false)?
        {
            newest::forget(mirror)?;
        }
        Ok(())
    }

    fn restored(&self, _mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(self.restored.clone())
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::copy::names::temporary_name(uri));
    }
}

/// A change for [`newest`], with the entity as its name.
fn change_of(uri: &str, before: Option<&Described>, now: Option<&Described>) -> newest::Change {
    let of = |described: Option<&Described>| described.and_then(|one| version(&one.digest));
    let entity = now.or(before).and_then(|described| described.entity.clone());
    let (new, old) = (of(now), of(before));
    let name = entity.unwrap_or_else(|| uri.to_owned());
    newest::Change { uri: uri.to_owned(), name, new, old, older: Vec::new() }
}

/// The digest of a description in a service, which may store language tags in lower case.
fn digest_in_service(lines: &[u8]) -> Result<[u8; DIGEST_BYTES], Failure> {
    with_lower_case_tags(lines)
        .map(|lines| digest_of(&lines))
        .map_err(|error| Failure::new("rdf.syntax", error.to_string()))
}

struct RemoteWriter {
    sink: Arc<RemoteSink>,
}

impl SinkWriter for RemoteWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        iri(&task.pending.uri)?;
        if let Some(row) = &task.row
            && crate::sink::is_right(task, row, listed)
        {
            let row = crate::sink::with_time(task, row.clone());
            return Ok(Prepared::Done(Outcome::Right { row }));
        }
        Ok(Prepared::Wanted { dir: self.sink.spill.clone(), conditional: task.row.is_some() })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(crate::sink::with_time(task, task.row.clone().unwrap_or_default()))
    }

    /// Only an embedded store is read; a service would cost a request.
    fn kept_description(&mut self, task: &Task) -> Option<Vec<u8>> {
        task.row.as_ref()?;
        let lines = self.sink.store.as_ref()?.lines_of(&task.pending.uri, &self.sink.graph).ok()?;
        Some(canonical_lines(&lines).ok()?.lines)
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(self.store_later(task, body))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        Box::pin(async move {
            let mut results = Vec::with_capacity(tasks.len());
            for task in tasks {
                let gone = task.row.is_some();
                if gone {
                    let (uri, old) = (task.pending.uri.clone(), reach_in(task.row.as_ref()));
                    let change = Change { uri, is_kept: true, old, new: None, row: None };
                    if let Err(failure) = self.sink.sending.send(change).await {
                        results.push(Err(failure));
                        break;
                    }
                }
                results.push(Ok(Deleted { gone, notices: Vec::new() }));
            }
            results
        })
    }
}

impl RemoteWriter {
    async fn store_later(&mut self, task: &Task, mut body: Body<'_>) -> Result<Outcome, Failure> {
        let mut row = body.row(task, self.sink.epoch);
        if let Some(kept) = same_bytes(task, &row) {
            return Ok(Outcome::Right { row: kept });
        }
        let mut description = describe(task, &mut body, &self.sink.graph)?;
        let mut notices = body.notices;
        notices.append(&mut description.notices);
        if self.sink.store.is_some() {
            let entity = description.entity.as_ref().map_or(&*task.pending.uri, |iri| iri.as_str());
            let entity = entity.to_owned();
            Database::as_stored(&mut description, &entity)?;
        } else {
            description.digest = digest_in_service(&description.lines)?;
        }
        row.file_mtime = packed(description.reach);
        let (uri, old) = (task.pending.uri.clone(), reach_in(task.row.as_ref()));
        let is_kept = task.row.is_some();
        let (new, kept) = (Some(description), Some(row.clone()));
        self.sink.sending.send(Change { uri, is_kept, old, new, row: kept }).await?;
        Ok(Outcome::Stored { created: task.row.is_none(), row, notices })
    }
}

impl<T: RemoteOptions> SinkKind for T {
    fn open(
        &self,
        opening: Opening<'_>,
        _report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        let Opening { options, mirror, state, epoch, .. } = opening;
        let remote = self.remote(&options.folder);
        let open = (state, mirror, options.baseline);
        Ok(Some(Arc::new(RemoteSink::open(&remote, options.net_options(), open, epoch)?)))
    }

    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        let remote = self.remote(copy.folder);
        Ok(Some(Box::new(RemoteKept::open(&remote, copy.net.clone(), copy.mirror)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::kept::distrusted;
    use abreast_rdf::sparql::Reach;

    #[test]
    fn a_row_states_how_far_blank_nodes_reach() {
        for (depth, paths, steps) in
            [(0, 0, 0), (1, 7, 1), (3, 0xf_fffe, 2), (100_000, u64::MAX, 12_500)]
        {
            let reach = Reach { depth, paths, steps };
            let row = Row { file_mtime: packed(reach), ..Row::default() };
            assert_eq!(reach_in(Some(&row)), Some(reach));
            assert_eq!(reach_in(Some(&distrusted(&row))), None);
        }
        assert_eq!(reach_in(None), None);
    }
}
