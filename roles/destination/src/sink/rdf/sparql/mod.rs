//! A SPARQL 1.1 endpoint as a sink.
//!
//! Descriptions are collected by the connections and sent by a thread of their own, many in one
//! update, which an endpoint carries out as a whole or not at all. The update removes exactly what
//! is stored of each resource and adds what is stated now, so that it may be repeated: the state
//! moves on after it, and a run that was killed in between does the same again.
//!
//! | file | subject |
//! |---|---|
//! | `sender.rs` | the thread that sends |
//! | `endpoint.rs` | requests, and what their answers mean |
//! | `text.rs` | queries and updates |
//! | `kept.rs` | reading back, for audits |

mod endpoint;
mod kept;
mod sender;
mod text;

pub(crate) use kept::SparqlKept;

use super::document::{Description, describe};
use super::{Graph, iri, same_bytes};
use crate::error::{Error, ExitCode};
use crate::partial::Partials;
use crate::sink::kept::{distrusted, is_distrusted};
use crate::sink::outcome::{Failure, Outcome};
use crate::sink::{Body, Deleted, Deleting, Found, Prepared, Sink, SinkWriter, Storing};
use crate::state_folder::StateFolder;
use abreast_folder::Dir;
use abreast_net::{Client, Shared};
use abreast_rdf::sparql::Reach;
use abreast_store::mirror::{Mirror, Row, Task};
use abreast_webtypes::Digests;
use sender::Sending;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The endpoint that the state knows.
const STORE: &str = "sink-store";

/// Which endpoint, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparqlOptions {
    /// The address that takes updates (`http` or `https`).
    pub url: String,
    /// The address that answers queries; by default what the usual servers have for this `url`.
    pub query_url: Option<String>,
    /// The graph that statements are in.
    pub graph: Graph,
}

impl SparqlOptions {
    /// The address that answers queries: that of updates, but for servers that have two.
    pub(super) fn query_url(&self) -> Cow<'_, str> {
        if let Some(url) = &self.query_url {
            return url.into();
        }
        if let Some(begin) = self.url.strip_suffix("/update") {
            return format!("{begin}/query").into();
        }
        // RDF4J and GraphDB.
        self.url.strip_suffix("/statements").unwrap_or(&self.url).into()
    }

    /// A client for the endpoint. What is asked of requests to the Source does not hold for it.
    fn client(net: abreast_net::Options) -> Client {
        let (bandwidth, request_interval) = (None, Duration::ZERO);
        Client::new(Shared::new(abreast_net::Options { bandwidth, request_interval, ..net }))
    }

    fn check(&self, mirror: &Mirror) -> Result<(), Error> {
        for url in [&*self.url, &*self.query_url()] {
            abreast_net::check_url(url).map_err(|cause| {
                Error::new(
                    "sparql.url",
                    ExitCode::Usage,
                    format!("cannot use {} as an endpoint: {cause}", shown(url)),
                )
                .with_help(
                    "give the address for updates, like `sparql:http://localhost:3030/ds/update`",
                )
            })?;
        }
        self.graph.check(mirror)?;
        let asked = shown(&self.url);
        match mirror.meta(STORE)? {
            Some(known) if known != asked => {
                let message = format!("the state is of the copy in {known}, not of one in {asked}");
                Err(Error::new("sink.kind", ExitCode::Usage, message)
                    .with_help("give each copy a state of its own (`--state`)"))
            }
            Some(_) => Ok(()),
            None => Ok(mirror.set_meta(STORE, Some(&asked))?),
        }
    }
}

/// An address without user and password.
fn shown(url: &str) -> String {
    let Some(mut parsed) = url::Url::parse(url).ok().filter(url::Url::has_host) else {
        return "the address".to_owned();
    };
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.into()
}

/// What is to be stored of a resource.
#[derive(Debug)]
struct Change {
    uri: String,
    /// How far the blank nodes reach of what is stored; `None` where it must be asked for what is
    /// stored.
    old: Option<Reach>,
    /// Nothing when the resource is gone.
    new: Option<Description>,
}

impl Change {
    fn lines(&self) -> &[u8] {
        self.new.as_ref().map_or(&[], |description| &description.lines)
    }

    fn bytes(&self) -> usize {
        self.uri.len() + self.lines().len()
    }
}

/// Bits of each number of a reach in a row. A description has no more statements than they count.
const BITS: u32 = 20;
/// What has this many paths, or more, has any number of them.
const MOST: u64 = (1 << BITS) - 1;

/// A reach as the row of a resource has it, in place of the time of a file.
fn packed(reach: Reach) -> i64 {
    let (steps, depth) = (reach.steps as u64, reach.depth as u64);
    (steps << (2 * BITS) | depth << BITS | reach.paths.min(MOST)) as i64
}

/// The reach of what is stored, if the row states it.
fn reach_in(row: Option<&Row>) -> Option<Reach> {
    let row = row.filter(|row| !is_distrusted(row))?;
    let part = |number: u32| (row.file_mtime as u64 >> (number * BITS)) & MOST;
    let paths = if part(0) == MOST { u64::MAX } else { part(0) };
    Some(Reach { depth: part(1) as usize, paths, steps: part(2) as usize })
}

/// An endpoint as a sink.
#[derive(Debug)]
pub(crate) struct SparqlSink {
    sending: Sending,
    options: SparqlOptions,
    partials: Partials,
    spill: Dir,
    epoch: i64,
}

impl SparqlSink {
    pub(crate) fn open(
        options: &SparqlOptions,
        net: abreast_net::Options,
        state: &StateFolder,
        mirror: &Mirror,
        epoch: i64,
    ) -> Result<Self, Error> {
        options.check(mirror)?;
        let (partials, spill) = crate::sink::spill_folder(state)?;
        let sending = Sending::start(options, net)?;
        Ok(Self { sending, options: options.clone(), partials, spill, epoch })
    }
}

impl Sink for SparqlSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(SparqlWriter { sink: self })
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

    fn settle(&self, mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let settled = self.sending.settle()?;
        for (uri, digest) in settled.stored {
            mirror.set_description(&uri, digest.as_ref().map(<[u8; _]>::as_slice))?;
        }
        Ok(settled.failed)
    }

    fn may_be_ahead(&self) -> bool {
        true
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::place::temporary_name(uri));
    }
}

struct SparqlWriter {
    sink: Arc<SparqlSink>,
}

impl SinkWriter for SparqlWriter {
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

    /// What a killed run may have stored is not read: that there is something is enough to fetch
    /// the resource again, or to delete it.
    fn inspect(&mut self, tasks: &[Task]) -> Vec<Result<Found, Failure>> {
        let uris: Vec<String> = tasks
            .iter()
            .map(|task| task.pending.uri.clone())
            .filter(|uri| iri(uri).is_ok())
            .collect();
        let stored = match self.sink.sending.stored(uris) {
            Ok(stored) => stored,
            Err(message) => {
                return tasks
                    .iter()
                    .map(|_| Err(Failure::new("sparql.failed", message.clone())))
                    .collect();
            }
        };
        let inspect = |task: &Task| {
            let row = task.row.clone();
            if !stored.contains(&task.pending.uri) {
                return Ok(if row.is_some() { Found::Gone } else { Found::AsKept });
            }
            let row = row.unwrap_or_else(|| Row {
                uri: task.pending.uri.clone(),
                epoch: self.sink.epoch,
                ..Row::default()
            });
            Ok(Found::Other(distrusted(&row)))
        };
        tasks.iter().map(inspect).collect()
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
                    let uri = task.pending.uri.clone();
                    if let Err(failure) = self
                        .sink
                        .sending
                        .send(Change { uri, old: reach_in(task.row.as_ref()), new: None })
                        .await
                    {
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

impl SparqlWriter {
    async fn store_later(&mut self, task: &Task, mut body: Body<'_>) -> Result<Outcome, Failure> {
        let mut row = body.row(task, self.sink.epoch);
        if let Some(kept) = same_bytes(task, &row) {
            return Ok(Outcome::Right { row: kept });
        }
        let mut description = describe(task, &mut body, &self.sink.options.graph, false)?;
        let mut notices = body.notices;
        notices.append(&mut description.notices);
        row.file_mtime = packed(description.reach);
        let (uri, old) = (task.pending.uri.clone(), reach_in(task.row.as_ref()));
        self.sink.sending.send(Change { uri, old, new: Some(description) }).await?;
        Ok(Outcome::Stored { created: task.row.is_none(), row, notices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_go_where_the_usual_servers_take_them() {
        let of = |url: &str, query_url: Option<&str>| {
            let query_url = query_url.map(str::to_owned);
            let options = SparqlOptions { url: url.to_owned(), query_url, graph: Graph::Default };
            options.query_url().into_owned()
        };
        assert_eq!(of("http://h/ds/update", None), "http://h/ds/query");
        assert_eq!(of("http://h/repositories/x/statements", None), "http://h/repositories/x");
        assert_eq!(of("http://h/sparql", None), "http://h/sparql");
        assert_eq!(of("http://h/sparql", Some("http://h/q")), "http://h/q");
    }

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

    #[test]
    fn an_address_is_shown_without_its_password() {
        assert_eq!(shown("https://me:secret@h/update"), "https://h/update");
        assert!(!shown("me:secret@").contains("secret"));
    }
}
