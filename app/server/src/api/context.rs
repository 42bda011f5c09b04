//! One request to the API.

use super::answers::blocking;
use super::operations::Operation;
use super::problem::{Problem, ProblemKind};
use super::visible::VisibleSets;
use crate::site::api::Api;
use crate::site::heads::Heads;
use crate::site::served::{ServedSet, Site};
use abreast_core::{Head, SetId};
use abreast_hub::Client;
use std::sync::Arc;

/// A request, with the sets that its token may read.
pub(super) struct Context<'s> {
    pub(super) site: &'s Arc<Site>,
    pub(super) heads: &'s Heads,
    pub(super) api: &'s Api,
    pub(super) operation: &'static Operation,
    pub(super) client: Client,
    pub(super) seen: VisibleSets,
}

impl<'s> Context<'s> {
    /// The set with this name.
    pub(super) fn target(&self, slug: &str) -> Result<&'s Arc<ServedSet>, Problem> {
        self.site.sets.find(slug).ok_or_else(|| {
            Problem::new(ProblemKind::NotFound, "there is no set of this name")
                .help("GET /api/v1/sets lists their names")
        })
    }

    /// The head of a set's log, from memory if possible, otherwise from the store.
    pub(super) async fn head(&self, set: SetId) -> Result<Head, Problem> {
        let log = Arc::clone(self.site.publisher.log());
        match log.known_head(set) {
            Some(head) => Ok(head),
            None => blocking(move || Ok(log.head(set)?)).await,
        }
    }

    /// Refuses changes of a set that is being read for the first time.
    pub(super) async fn not_importing(&self, set: SetId) -> Result<(), Problem> {
        if self.head(set).await?.importing {
            return Err(Problem::new(
                ProblemKind::Importing,
                "the set is being read for the first time",
            )
            .help("send it again in a while"));
        }
        Ok(())
    }
}
