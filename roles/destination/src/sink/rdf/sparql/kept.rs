//! Reading an endpoint back, for audits.

use super::super::Graph;
use super::super::document::digest_of;
use super::endpoint::{Endpoint, Refusal};
use super::{SparqlOptions, text};
use crate::error::{Error, ExitCode};
use crate::sink::kept::{Damage, DamageKind, ReadBack};
use abreast_rdf::{ReadOptions, Syntax, canonical_lines, write_statement};
use abreast_store::mirror::{Mirror, Row};
use abreast_webtypes::Digests;
use std::ops::ControlFlow;
use tokio::runtime::Runtime;

/// Steps over blank nodes that are read, one after the other until the digest is right.
const DEPTHS: [usize; 3] = [3, 12, 64];

/// Reads descriptions back.
pub(crate) struct SparqlKept {
    endpoint: Endpoint,
    graph: Graph,
    runtime: Runtime,
}

/// What an endpoint has of a resource.
enum Stored {
    AsWritten,
    Other,
    Nothing,
}

impl SparqlKept {
    pub(crate) fn open(
        options: &SparqlOptions,
        net: abreast_net::Options,
        mirror: &Mirror,
    ) -> Result<Self, Error> {
        options.check(mirror)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |cause| {
                Error::new("io", ExitCode::Io, "cannot start the network runtime").with_cause(cause)
            },
        )?;
        let endpoint = Endpoint::new(SparqlOptions::client(net), options);
        Ok(Self { endpoint, graph: options.graph.clone(), runtime })
    }

    fn read(&self, uri: &str, depth: usize) -> Result<Vec<u8>, Error> {
        let query = text::description(uri, &self.graph, depth);
        let answer = self.runtime.block_on(self.endpoint.construct(query));
        let answer = answer.map_err(|refusal| match refusal {
            Refusal::Endpoint(error) => error,
            Refusal::Request(message) => Error::new("sparql.failed", ExitCode::Retryable, message),
        })?;
        let mut lines = Vec::new();
        let read = abreast_rdf::read(
            Syntax::NTriples,
            answer.as_slice(),
            &ReadOptions::default(),
            &mut |quad| {
                write_statement(quad.into(), &mut lines);
                ControlFlow::Continue(())
            },
        );
        let odd = |cause: String| {
            Error::new(
                "sparql.failed",
                ExitCode::Retryable,
                format!("the endpoint answered what is not N-Triples: {cause}"),
            )
        };
        read.map_err(|cause| odd(cause.to_string()))?;
        canonical_lines(&lines)
            .map(|canonical| canonical.lines)
            .map_err(|cause| odd(cause.to_string()))
    }

    fn compare(&self, mirror: &Mirror, uri: &str) -> Result<Stored, Error> {
        let expected = mirror.description(uri)?.unwrap_or_default();
        let mut before = None;
        for depth in DEPTHS {
            let lines = self.read(uri, depth)?;
            if digest_of(&lines).as_slice() == expected {
                return Ok(Stored::AsWritten);
            }
            if lines.is_empty() {
                return Ok(Stored::Nothing);
            }
            if self.graph == Graph::OfResource || before.as_ref() == Some(&lines) {
                break;
            }
            before = Some(lines);
        }
        Ok(Stored::Other)
    }
}

impl ReadBack for SparqlKept {
    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error> {
        if !read {
            return Ok(None);
        }
        let (kind, message) = match self.compare(mirror, &row.uri)? {
            Stored::AsWritten => return Ok(None),
            Stored::Nothing => (DamageKind::Missing, "the endpoint has nothing of it"),
            Stored::Other => (DamageKind::Digest, "the endpoint has other statements than stored"),
        };
        Ok(Some(Damage { kind, message: message.to_owned() }))
    }

    fn digests(
        &mut self,
        mirror: &Mirror,
        row: &Row,
        _: &Digests,
    ) -> Result<Option<(Digests, u64)>, Error> {
        let mut digests = Digests::default();
        match self.compare(mirror, &row.uri)? {
            Stored::AsWritten => {
                // The bytes that it was read from are not kept; their digests are.
                digests.set_from_bytes(&row.digests);
                Ok(Some((digests, row.length)))
            }
            // What cannot be read back is what is not there.
            Stored::Other | Stored::Nothing => Ok(None),
        }
    }
}
