//! Descriptions that are made from patches in a feed, instead of requests.
//!
//! The digests in the patches show whether they apply to the stored version, and whether the result
//! is correct. A description that cannot be made from patches is fetched.

use super::patch::has_digests;
use super::{Fetched, Fetcher};
use crate::report::failure::Failure;
use crate::sink::outcome::Outcome;
use crate::transfer::store::Facts;
use abreast_rdf::apply_entity_patches;
use abreast_store::mirror::{Row, Task};
use abreast_webtypes::Digests;
use std::fmt::Display;

/// A description, and whether it is the stored one.
struct Made {
    lines: Vec<u8>,
    is_kept: bool,
}

impl Fetcher {
    /// Stores the description that a planned chain of patches leads to; `None` when it has to be
    /// fetched. After [`crate::transfer::store::Storer::prepare`].
    pub(super) async fn patched_description(
        &mut self,
        task: &Task,
        listed: &Digests,
        at: u64,
    ) -> Option<Result<Fetched, Failure>> {
        let made = self.make(task, at);
        if let Ok(made) = &made {
            self.storer.rules.deprecations.described(&task.pending.uri, &made.lines);
        }
        match made {
            Ok(Made { is_kept: true, .. }) => {
                let right = self.storer.writer.still_right(task);
                Some(right.map(|row| Fetched::Done(Outcome::Right { row })))
            }
            Ok(Made { lines, .. }) => {
                self.storer.bytes = lines;
                self.head.clear();
                let lines = self.lines(listed, Facts::default());
                let stored = self.store(task, listed, lines, true).await;
                let is_new = |fetched: &Fetched| {
                    matches!(fetched, Fetched::Held(_) | Fetched::Done(Outcome::Stored { .. }))
                };
                if stored.as_ref().is_ok_and(is_new) {
                    self.storer.rules.patches.lock().patched += 1;
                }
                Some(stored)
            }
            Err(why) => {
                self.storer.rules.patches.note_fetched(&task.pending.uri, &why);
                None
            }
        }
    }

    fn make(&mut self, task: &Task, at: u64) -> Result<Made, Box<dyn Display>> {
        let chain = self.storer.rules.bodies.read_chain(at).map_err(boxed)?;
        let patches: Vec<&[u8]> = chain.patches.iter().map(Vec::as_slice).collect();
        let kept = self.storer.writer.kept_description(task);
        let known: Vec<&[u8]> =
            [&kept, &chain.base].into_iter().filter_map(Option::as_deref).collect();
        let made = apply_entity_patches(&task.pending.uri, &known, &patches).map_err(boxed)?;
        let of_kept = kept.is_some() && made.base == Some(0);
        if of_kept {
            self.storer.writer.trust_kept();
        }
        // A killed run may have stored a version that is not in the database.
        let is_known = |row: &Row| has_digests(&made.lines, &digests_in(row), Some(row.length));
        let is_kept = of_kept && made.applied == 0 && task.row.as_ref().is_some_and(is_known);
        Ok(Made { lines: made.lines, is_kept })
    }
}

fn digests_in(row: &Row) -> Digests {
    let mut digests = Digests::default();
    digests.set_from_bytes(&row.digests);
    digests
}

fn boxed(error: impl Display + 'static) -> Box<dyn Display> {
    Box::new(error)
}
