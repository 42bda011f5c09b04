//! Options of reading a set from an endpoint.

use crate::origin::sparql::query::EntityPattern;
use crate::origin::sparql::query::QueryGraph;
use std::sync::Arc;
use std::time::Duration;

/// Options of reading a set from a SPARQL endpoint.
#[derive(Clone, Debug)]
pub struct SparqlOptions {
    /// URL to which queries are sent.
    pub url: String,
    /// Graph that contains the statements.
    pub graph: QueryGraph,
    /// Pattern that selects the entities; `None` to fetch all statements.
    pub entities: Option<EntityPattern>,
    /// Interval between two polls, 10 minutes by default.
    pub every: Duration,
    /// Interval between polls that also fetch descriptions with an unchanged version; zero, the
    /// default, to disable.
    pub reread: Duration,
    /// Most entities in a page of the list of entities, 10,000 by default.
    pub page: usize,
    /// Most entities whose descriptions are fetched together, 100 by default.
    pub batch: usize,
    /// Most bytes of all statements, 16 GiB by default.
    pub max_bytes: u64,
    /// Options of the HTTP client.
    pub net: abreast_net::Options,
    /// A secret that could not be read at the start. Each poll tries again, and fails if the secret
    /// is still not readable.
    pub secret: Option<PendingSecret>,
}

/// Equal if all options are equal, including credentials of the HTTP client.
impl PartialEq for SparqlOptions {
    fn eq(&self, other: &Self) -> bool {
        // Logins are hidden in the text.
        format!("{self:?}") == format!("{other:?}") && self.net.credentials == other.net.credentials
    }
}

impl SparqlOptions {
    /// Creates default options for an endpoint with this URL.
    pub fn new(url: impl Into<String>) -> Self {
        // An endpoint may evaluate a query for minutes before the response starts.
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

/// Function that reads a secret into the options of the HTTP client.
#[derive(Clone)]
pub struct PendingSecret(pub(super) Arc<ReadSecret>);

impl PendingSecret {
    /// Wraps a function that reads a secret, and that returns the reason of a failure.
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

/// Returns the reason if the secret cannot be read.
pub(super) type ReadSecret = dyn Fn(&mut abreast_net::Options) -> Result<(), String> + Send + Sync;
