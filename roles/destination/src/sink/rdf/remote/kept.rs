//! Verification of the statements in a service, for audits.

use super::super::document::digest_of;
use super::endpoint::Endpoint;
use super::service::{Remote, Service};
use super::singly::Singly;
use super::store::Database;
use super::text;
use crate::report::error::{Error, ExitCode};
use crate::report::sinks::Graph;
use crate::sink::kept::{Damage, DamageKind, ReadBack};
use crate::sink::newest::{self, Verdict};
use crate::sink::rdf::remote::change::{reach_in, version};
use crate::sink::rdf::remote::refusal::Refusal;
use abreast_rdf::{ReadOptions, Syntax, canonical_lines, with_lower_case_tags, write_statement};
use abreast_store::mirror::{Mirror, Row};
use std::collections::HashMap;
use std::ops::ControlFlow;
use tokio::runtime::Runtime;

/// Maximum number of descriptions without blank nodes in one query, and maximum of their length in
/// bytes.
const TOGETHER: usize = 200;
const TOGETHER_BYTES: u64 = 4 << 20;
/// Number of steps over blank nodes in queries about unknown statements.
const STEPS: usize = 3;

/// Reads descriptions back.
pub(crate) struct RemoteKept {
    service: Service,
    endpoint: Endpoint,
    singly: Singly,
    store: Option<Database>,
    graph: Graph,
    runtime: Runtime,
    /// Prefetched descriptions: canonical lines by entity.
    ahead: HashMap<String, Vec<u8>>,
    /// The statements that queries find in the default graph, after a test of the endpoint.
    default: Option<DefaultGraph>,
    /// Resources that cannot be compared.
    unknown: u64,
}

/// Which statements queries see in the default graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DefaultGraph {
    /// The statements of the default graph only.
    Own,
    /// The statements of the default graph and of all named graphs.
    Union,
    /// The statements of all named graphs only.
    NamedOnly,
}

/// The condition of a resource in an endpoint.
enum Stored {
    AsWritten,
    Other,
    Nothing,
    /// There are other statements, which may be in other graphs.
    Unknown,
}

impl RemoteKept {
    pub(crate) fn open(
        remote: &Remote,
        net: abreast_net::Options,
        mirror: &Mirror,
    ) -> Result<Self, Error> {
        if remote.service != Service::Store {
            remote.check(mirror)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |cause| {
                Error::new("io", ExitCode::Io, "cannot start the network runtime").with_cause(cause)
            },
        )?;
        let client = Remote::client(net);
        let store = remote.open_store(mirror, false)?;
        let graph = match &store {
            Some(_) => Graph::of_state(mirror)?,
            None => remote.graph.clone(),
        };
        Ok(Self {
            service: remote.service,
            singly: Singly::new(client.clone(), remote),
            endpoint: Endpoint::new(client, remote),
            store,
            graph,
            runtime,
            ahead: HashMap::new(),
            default: None,
            unknown: 0,
        })
    }

    /// The canonical lines of the stored statements of an entity.
    fn read(&self, entity: &str, steps: usize) -> Result<Vec<u8>, Error> {
        if let Some(store) = &self.store {
            let lines = store.lines_of(entity, &self.graph).map_err(Refusal::into_error)?;
            return canonical(&lines);
        }
        if self.service == Service::Endpoint {
            return in_service(&self.construct(text::description(entity, &self.graph, steps))?);
        }
        let answer = self.runtime.block_on(self.singly.get(entity));
        in_service(&n_triples(&answer.map_err(Refusal::into_error)?)?)
    }

    fn construct(&self, query: String) -> Result<Vec<u8>, Error> {
        let answer = self.runtime.block_on(self.endpoint.construct(query));
        n_triples(&answer.map_err(Refusal::into_error)?)
    }

    /// Reads entities without blank nodes together.
    fn read_together(&mut self, entities: &[String]) -> Result<(), Error> {
        let names: Vec<&str> = entities.iter().map(String::as_str).collect();
        let lines = self.construct(text::statements_of(&names, &self.graph))?;
        let mut found: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let subject = line.split(|byte| *byte == b' ').next().unwrap_or_default();
            found.entry(subject.to_vec()).or_default().extend_from_slice(line);
        }
        for entity in entities {
            let lines = found.remove(format!("<{entity}>").as_bytes()).unwrap_or_default();
            self.ahead.insert(entity.clone(), in_service(&lines)?);
        }
        Ok(())
    }

    fn compare(&mut self, mirror: &Mirror, row: &Row) -> Result<Stored, Error> {
        let expected = mirror.description(&row.uri)?.unwrap_or_default();
        let entity = expected.entity.as_deref().unwrap_or(&row.uri);
        let lines = match self.ahead.remove(entity) {
            Some(lines) => lines,
            None => self.read(entity, reach_in(Some(row)).map_or(STEPS, |reach| reach.steps))?,
        };
        if digest_of(&lines).as_slice() == expected.digest {
            return Ok(Stored::AsWritten);
        }
        let has_any = !lines.is_empty();
        let stored = match self.default_graph()? {
            DefaultGraph::Union if has_any && self.ask(text::in_named_graphs(entity))? => {
                Stored::Unknown
            }
            DefaultGraph::NamedOnly => Stored::Unknown,
            _ if has_any => Stored::Other,
            _ => Stored::Nothing,
        };
        self.unknown += u64::from(matches!(stored, Stored::Unknown));
        Ok(stored)
    }

    fn ask(&self, query: String) -> Result<bool, Error> {
        self.runtime.block_on(self.endpoint.ask(query)).map_err(Refusal::into_error)
    }

    /// Determines the statements that queries find, if the copy is in the default graph.
    fn default_graph(&mut self) -> Result<DefaultGraph, Error> {
        if self.service != Service::Endpoint || self.graph != Graph::Default {
            return Ok(DefaultGraph::Own);
        }
        if let Some(known) = self.default {
            return Ok(known);
        }
        let shows_named = self.ask(text::NAMED_GRAPHS.to_owned())?
            && !self.ask(text::HIDDEN_NAMED_GRAPHS.to_owned())?;
        let found = if !shows_named {
            DefaultGraph::Own
        } else if self.ask(text::OWN_OF_DEFAULT_GRAPH.to_owned())? {
            DefaultGraph::Union
        } else {
            DefaultGraph::NamedOnly
        };
        self.default = Some(found);
        Ok(found)
    }
}

/// Whether a service lacks the newest change of the copy. One that does not answer shows nothing, nor
/// does an entity that a killed run may have changed.
pub(super) fn lacks_newest(
    remote: &Remote,
    net: &abreast_net::Options,
    mirror: &Mirror,
    is_unsure: &dyn Fn(&str) -> bool,
) -> Result<bool, Error> {
    if !remote.is_readable() {
        return Ok(false);
    }
    let mut kept = None;
    let is_there = newest::is_there(mirror, |change| {
        if is_unsure(&change.name) {
            return Verdict::Unknown;
        }
        if kept.is_none() {
            let net = abreast_net::Options { retries: 0, ..net.clone() };
            kept = RemoteKept::open(remote, net, mirror).ok();
        }
        let lines = kept.as_ref().and_then(|kept| kept.read(&change.name, STEPS).ok());
        lines.map_or(Verdict::Unknown, |lines| change.judge(version(&digest_of(&lines)).as_deref()))
    })?;
    Ok(!is_there)
}

/// The lines of a response in N-Triples.
fn n_triples(answer: &[u8]) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    abreast_rdf::read(Syntax::NTriples, answer, &ReadOptions::default(), &mut |quad| {
        write_statement(quad.into(), &mut lines);
        ControlFlow::Continue(())
    })
    .map_err(|cause| odd(&cause))?;
    Ok(lines)
}

/// The canonical lines of statements from a service, with language tags in lower case.
fn in_service(lines: &[u8]) -> Result<Vec<u8>, Error> {
    let lines = canonical(lines)?;
    with_lower_case_tags(&lines).map(std::borrow::Cow::into_owned).map_err(|cause| odd(&cause))
}

fn canonical(lines: &[u8]) -> Result<Vec<u8>, Error> {
    canonical_lines(lines).map(|canonical| canonical.lines).map_err(|cause| odd(&cause))
}

fn odd(cause: &dyn std::fmt::Display) -> Error {
    let message = format!("what was answered is not N-Triples: {cause}");
    Error::new("sparql.failed", ExitCode::Retryable, message)
}

impl ReadBack for RemoteKept {
    fn keeps_bytes(&self) -> bool {
        false
    }

    fn remark(&self) -> Option<(&'static str, String)> {
        let (unknown, default) = (self.unknown, self.default.filter(|_| self.unknown > 0)?);
        let seen = match default {
            DefaultGraph::NamedOnly => "named graphs in place of the default graph",
            _ => "the named graphs together with the default graph",
        };
        let message = format!(
            "queries see {seen}: resources that cannot be compared: {unknown}\n  help: store the copy in a graph of its own \
             (`--graph IRI`), in another state folder"
        );
        Some(("sparql.union", message))
    }

    fn read_ahead(&mut self, mirror: &Mirror, uris: &[&str]) -> Result<(), Error> {
        self.ahead.clear();
        if self.service != Service::Endpoint || self.graph == Graph::OfResource {
            return Ok(());
        }
        let (mut entities, mut bytes) = (Vec::new(), 0);
        for uri in uris {
            let Some(row) = mirror.row(uri)? else { continue };
            if reach_in(Some(&row)).is_none_or(|reach| reach.steps > 0) {
                continue;
            }
            let stored = mirror.description(uri)?.unwrap_or_default();
            entities.push(stored.entity.unwrap_or(row.uri));
            bytes += row.length;
            if entities.len() >= TOGETHER || bytes >= TOGETHER_BYTES {
                self.read_together(&std::mem::take(&mut entities))?;
                bytes = 0;
            }
        }
        if entities.is_empty() { Ok(()) } else { self.read_together(&entities) }
    }

    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error> {
        if !read {
            return Ok(None);
        }
        let (kind, message) = match self.compare(mirror, row)? {
            Stored::AsWritten => return Ok(None),
            Stored::Nothing => (DamageKind::Missing, "nothing of it is stored"),
            Stored::Other => (DamageKind::Digest, "other statements are stored than were sent"),
            Stored::Unknown => (DamageKind::Unknown, "statements of other graphs are seen with it"),
        };
        Ok(Some(Damage { kind, message: message.to_owned() }))
    }
}
