//! How a set is read from an endpoint.

use crate::origin::sparql::query::EntityPattern;
use crate::origin::sparql::query::QueryGraph;
use std::sync::Arc;
use std::time::Duration;

/// How an endpoint is asked.
#[derive(Clone, Debug)]
pub struct SparqlOptions {
    /// The address for queries.
    pub url: String,
    /// Where the statements are.
    pub graph: QueryGraph,
    /// How entities are found; `None`: all statements are fetched.
    pub entities: Option<EntityPattern>,
    /// Time between two polls. Default 10 minutes.
    pub every: Duration,
    /// Time between polls that fetch every description, even if its version is the same. Default
    /// zero: none.
    pub reread: Duration,
    /// Entities in one list that the endpoint answers. Default 10,000.
    pub page: usize,
    /// Entities described in one answer. Default 100.
    pub batch: usize,
    /// Most bytes of all statements. Default 16 GiB.
    pub max_bytes: u64,
    /// The HTTP client.
    pub net: abreast_net::Options,
    /// A secret that could not be read yet: each poll tries again, and fails while it cannot be read.
    pub secret: Option<PendingSecret>,
}

impl SparqlOptions {
    /// Defaults.
    pub fn new(url: impl Into<String>) -> Self {
        // A query may be evaluated for minutes before the answer begins.
        let net = abreast_net::Options {
            idle_timeout: Duration::from_secs(300),
            retries: 3,
            ..abreast_net::Options::default()
        };
        Self {
            url: url.into(),
            graph: QueryGraph::Default,
            entities: None,
            every: Duration::from_secs(600),
            reread: Duration::ZERO,
            page: 10_000,
            batch: 100,
            max_bytes: 16 << 30,
            net,
            secret: None,
        }
    }
}

/// Reads a secret into the options of the HTTP client.
#[derive(Clone)]
pub struct PendingSecret(pub(super) Arc<ReadSecret>);

impl PendingSecret {
    /// A secret that this reads; it fails with the reason.
    pub fn new(
        read: impl Fn(&mut abreast_net::Options) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }
}

impl std::fmt::Debug for PendingSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PendingSecret")
    }
}

/// Fails with the reason.
pub(super) type ReadSecret = dyn Fn(&mut abreast_net::Options) -> Result<(), String> + Send + Sync;
