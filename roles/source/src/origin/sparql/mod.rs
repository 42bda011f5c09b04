//! Entities whose descriptions are in a SPARQL endpoint, which is asked at intervals.
//!
//! Either all statements are fetched, and are the new complete state; or the entities are listed,
//! and only those with another version are described. In both cases the endpoint is asked how
//! much there is: many stores end an answer early without notice, and what is missing would be
//! deleted.

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
use abreast_contents::Contents;
use abreast_core::{ChangeLog, Clock as _, SetId, SystemClock};
use abreast_statements::SortOptions;
use endpoint::{Endpoint, Failure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How soon a poll ends that is to stop.
const STOP: Duration = Duration::from_millis(100);

/// A set whose entities are described in an endpoint.
#[derive(Clone)]
pub struct SparqlSet {
    /// How the endpoint is asked.
    pub sparql: SparqlOptions,
    /// The log.
    pub log: Arc<dyn ChangeLog>,
    /// The set.
    pub set: SetId,
    /// Where descriptions are kept.
    pub contents: Contents,
    /// How statements are read.
    pub options: RdfOptions,
    /// When every description was fetched last.
    reread: Option<Instant>,
}

impl SparqlSet {
    /// A set that was not polled yet.
    pub fn new(
        sparql: SparqlOptions,
        log: Arc<dyn ChangeLog>,
        set: SetId,
        contents: Contents,
        options: RdfOptions,
    ) -> Self {
        Self { sparql, log, set, contents, options, reread: None }
    }

    /// Makes what the endpoint has now the complete state of the set.
    ///
    /// # Errors
    /// The endpoint fails, its answers are wrong or not complete, or too much would be deleted:
    /// nothing is recorded then. Or the log, the contents or the disk fail.
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
        RdfTarget { log: &**log, set: *set, contents, kept: None, options }
    }

    async fn poll(&mut self) -> Result<RdfReport, RdfError> {
        let endpoint = Endpoint::new(&self.sparql.url, &self.sparql.net);
        let Some(pattern) = &self.sparql.entities else { return self.whole(&endpoint).await };
        let reread = self.sparql.reread;
        let now = Instant::now();
        // At the start the versions in the log are relied upon.
        let since = *self.reread.get_or_insert(now);
        let all = !reread.is_zero() && now.duration_since(since) >= reread;
        let report = listed::read(self.target(), &self.sparql, pattern, &endpoint, all).await?;
        if all {
            self.reread = Some(now);
        }
        Ok(report)
    }

    /// Fetches all statements.
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
        // The store may have become smaller meanwhile; statements in several graphs may count several times.
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
        super::rdf::replace_by(self.target(), statements, SystemClock.now())
    }
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP).await;
    }
}
