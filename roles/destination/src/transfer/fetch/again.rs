//! Retries of resources whose bytes are not as listed: once, past all caches, before the run ends.
//!
//! A bit that flipped in transit, or a cache that still has the version before, is not a fault of
//! the resource: waiting for the next run would only hold back what depends on this one, such as
//! deletions. Only the resource's own URL is asked again; where it has mirrors they were asked
//! already.

use super::{Fetched, Fetcher};
use crate::report::failure::Failure;
use crate::sink::Prepared;
use crate::sink::outcome::{Notice, Outcome};
use crate::transfer::fetch::mirrors::Place;
use abreast_store::mirror::Task;
use std::sync::Arc;

impl Fetcher {
    /// Whether another request may succeed after this failure; false if the user wants no retries.
    pub(crate) fn is_worth_asking_again(&self, outcome: Option<&Outcome>) -> bool {
        self.client.retries() > 0
            && matches!(outcome, Some(Outcome::Failed(failure)) if failure.code == "fixity.mismatch")
    }

    /// Requests a resource again, after the received bytes differed from the list. The outcome becomes
    /// `None` if too few bytes are left for the request.
    pub(crate) async fn ask_again(&mut self, task: &Task, outcome: &mut Option<Outcome>) {
        let rules = Arc::clone(&self.storer.rules);
        let Some(place) = rules.again.begin().await else { return };
        *outcome = match self.try_again(task).await {
            Ok(None) => None,
            Ok(Some(mut outcome)) => {
                rules.again.was_useful();
                self.client.stop_pipelining(task.pending.href());
                if let Outcome::Stored { notices, .. } = &mut outcome {
                    let message = "the bytes sent first were not those listed; those sent when asked again, past caches, are";
                    notices.push(Notice::new("fixity.again", message));
                }
                Some(outcome)
            }
            Err(failure) => {
                rules.again.was_useless(place);
                let before = match failure.code {
                    "fixity.mismatch" => "asked twice",
                    _ => "asked again, since the bytes sent first were not those listed",
                };
                Some(Outcome::Failed(Failure {
                    message: format!("{} ({before})", failure.message),
                    ..failure
                }))
            }
        };
    }

    async fn try_again(&mut self, task: &Task) -> Result<Option<Outcome>, Failure> {
        let (listed, dir) = match self.storer.prepare(task)? {
            (_, Prepared::Done(outcome)) => return Ok(Some(outcome)),
            (listed, Prepared::Wanted { dir, .. }) => (listed, dir),
        };
        let own = Place { past_caches: true, ..Place::own(&task.pending) };
        match self.fetch_from(&own, task, &listed, &dir, false, false).await? {
            Fetched::Done(outcome) => Ok(Some(outcome)),
            Fetched::NotBegun => Ok(None),
            Fetched::Held(_) => Err(Failure::new("internal", "a body waits that nobody waits for")),
        }
    }
}
