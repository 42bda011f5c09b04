//! Entities whose descriptions are in a SPARQL endpoint, which is polled at intervals.
//!
//! There are two methods. The first method fetches all statements as the new complete state. The
//! second method lists the entities, and only fetches descriptions with a changed version. Both
//! methods also request the number of statements or entities, because many stores truncate a
//! response without an error, and missing entities would be deleted.

mod endpoint;
mod listed;
mod options;
mod query;

pub use options::{PendingSecret, SparqlOptions};
pub use query::{EntityPattern, NoEntity, QueryGraph};

use super::rdf::{RdfBytes, RdfInput};
use crate::origin::rdf::RdfError;
use crate::origin::rdf::RdfReport;
use crate::origin::rdf::{RdfOptions, RdfTarget};
use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, SetId};
use abreast_statements::SortOptions;
use endpoint::{Endpoint, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a poll checks the stop flag.
const STOP: Duration = Duration::from_millis(100);

/// A set whose entities are described in a SPARQL endpoint.
#[derive(Clone)]
pub struct SparqlSet {
    /// Options of the endpoint and its queries.
    pub sparql: SparqlOptions,
    /// Change log that contains the set.
    pub log: Arc<dyn ChangeLog>,
    /// Number of the set in the log.
    pub set: SetId,
    /// Store of the entities' descriptions.
    pub contents: Arc<dyn ContentStore>,
    /// Options of reading RDF into the set.
    pub options: RdfOptions,
    /// Time of the last poll that fetched all descriptions; `None` before the first poll.
    reread: Option<Instant>,
}

impl SparqlSet {
    /// Creates a set that has not been polled.
    pub fn new(
        sparql: SparqlOptions,
        log: Arc<dyn ChangeLog>,
        set: SetId,
        contents: Arc<dyn ContentStore>,
        options: RdfOptions,
    ) -> Self {
        Self { sparql, log, set, contents, options, reread: None }
    }

    /// Replaces the complete state of the set with the current contents of the endpoint.
    ///
    /// # Errors
    /// If the endpoint fails, its response is invalid or incomplete, or the guard holds the
    /// deletions, nothing is recorded. The log, the contents or the disk can fail after some
    /// changes were recorded.
    pub fn read(&mut self) -> Result<RdfReport, RdfError> {
        if let Some(PendingSecret(read)) = &self.sparql.secret {
            let url = &self.sparql.url;
            read(&mut self.sparql.net)
                .map_err(|reason| RdfError::Endpoint(format!("{url}: {reason}")))?;
            self.sparql.secret = None;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::clone(&self.options.sort.stop);
        let result = runtime.block_on(async {
            tokio::select! {
                result = self.poll() => result,
                () = stopped(&stop) => Err(abreast_statements::Error::Stopped.into()),
            }
        });
        super::rdf::in_folder(&self.options, || result)
    }

    fn target(&self) -> RdfTarget<'_> {
        let Self { log, set, contents, options, .. } = self;
        RdfTarget { log: &**log, set: *set, contents: &**contents, kept: None, options }
    }

    async fn poll(&mut self) -> Result<RdfReport, RdfError> {
        let endpoint = Endpoint::new(&self.sparql.url, &self.sparql.net);
        let Some(pattern) = &self.sparql.entities else { return self.whole(&endpoint).await };
        let reread = self.sparql.reread;
        let now = Instant::now();
        // At the start, the versions in the log are considered current.
        let since = *self.reread.get_or_insert(now);
        let all = !reread.is_zero() && now.duration_since(since) >= reread;
        let report = listed::read(self.target(), &self.sparql, pattern, &endpoint, all).await?;
        if all {
            self.reread = Some(now);
        }
        Ok(report)
    }

    /// Fetches all statements as the complete state.
    async fn whole(&self, endpoint: &Endpoint) -> Result<RdfReport, RdfError> {
        let sparql = &self.sparql;
        let pattern = sparql.graph.statements().map_err(|error| endpoint.failed(error))?;
        let before = endpoint.count(query::count(&pattern, false)).await?;
        let mut file = tempfile::tempfile_in(&self.options.sort.temporary)?;
        let fetched =
            endpoint.construct(query::construct(&pattern), &mut file, sparql.max_bytes).await;
        let syntax = fetched.map_err(|failure| match failure {
            Failure::TooLong => endpoint.failed(format!(
                "all statements are more than {} bytes\n  help: raise `max_size`, or name `entities`",
                sparql.max_bytes
            )),
            Failure::Other(error) => error,
        })?;
        let bytes = RdfBytes::Stream(Box::new(file));
        let input = RdfInput { name: sparql.url.clone(), syntax, base: None, bytes };
        let sort = SortOptions { may_break_off: true, ..self.options.sort.clone() };
        let statements = abreast_statements::sorted(&sort, [input])?;
        let received = statements.count()? + statements.left_out().count();
        // The store may have become smaller meanwhile, and statements in several graphs may be
        // counted several times.
        if received < before
            && received < endpoint.count(query::count(&pattern, false)).await?
            && let all = endpoint.count(query::count(&pattern, true)).await?
            && received < all
        {
            return Err(endpoint.failed(format!(
                "the answer has {received} of {all} statements\n  help: the endpoint limits its answers: name `entities`, to \
                 fetch their descriptions in small parts"
            )));
        }
        super::rdf::replace_by(self.target(), statements, self.log.now())
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP).await;
    }
}
