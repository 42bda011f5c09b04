//! Storage of bodies whose digests are computed together.

use super::Fetcher;
use super::together::Held;
use crate::sink::outcome::Outcome;
use crate::transfer::store::{Received, Storer, finish};
use abreast_store::mirror::Task;
use abreast_webtypes::{Digests, md5_lanes};

impl Fetcher {
    /// Computes the digests of the waiting bodies and stores the bodies in their order. Each body
    /// has the index of its item in `results`, where its outcome is written.
    pub(crate) async fn store_held(
        &mut self,
        waiting: &mut Vec<(usize, Held)>,
        results: &mut [(Task, Option<Outcome>)],
    ) {
        let bodies: Vec<&[u8]> = waiting.iter().map(|(_, held)| held.bytes.as_slice()).collect();
        let sums = md5_lanes::digests(&bodies);
        for ((at, held), md5) in waiting.drain(..).zip(sums) {
            let Held { bytes, head, listed, facts } = held;
            let digests = Digests { md5: Some(md5), ..Digests::default() };
            let received =
                Received { file: None, digests, length: bytes.len() as u64, facts, head: &head };
            let Storer { writer, rules, .. } = &mut self.storer;
            let (task, outcome) = &mut results[at];
            let stored = finish(writer.as_mut(), rules, task, &listed, &bytes, received).await;
            *outcome = Some(stored.unwrap_or_else(Outcome::Failed));
            self.spare.push((bytes, head));
        }
    }
}
