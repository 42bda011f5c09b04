//! Why is a body not digested as soon as it is there? Four short ones are digested in the time of two, so those that
//! need MD5 only wait for each other.

use crate::fetch::Fetcher;
use crate::sink::outcome::Outcome;
use crate::store::{Facts, Received, Storer, finish};
use abreast_store::mirror::Task;
use abreast_webtypes::{Digests, md5_lanes};

/// Bodies of one connection that wait at a time: two rounds, since some are longer than others.
pub(crate) const TOGETHER: usize = 2 * md5_lanes::LANES;
/// Largest body that waits.
pub(crate) const TOGETHER_BYTES: u64 = 64 << 10;

/// A whole body that waits.
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) head: Vec<u8>,
    pub(crate) listed: Digests,
    pub(crate) facts: Facts,
}

impl Fetcher {
    /// Digests the bodies that wait and stores them in their order. Each comes with the place of its item among
    /// `results`, which gets what became of it.
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
            let received = Received { file: None, digests, length: bytes.len() as u64, facts, head: &head };
            let Storer { hand, rules, .. } = &mut self.storer;
            let (task, outcome) = &mut results[at];
            let stored = finish(hand.as_mut(), rules, task, &listed, &bytes, received).await;
            *outcome = Some(stored.unwrap_or_else(Outcome::Failed));
            self.spare.push((bytes, head));
        }
    }
}
