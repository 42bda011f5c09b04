//! The memory that requests take for a while: to render something large, and to read what they sent.
//!
//! Requests wait for it in the order in which they came, and hold it only while the server itself works: a client
//! that is slow to send or to receive holds none, as large bodies are in files then.

use crate::places::{ClientPlaces, Place};
use abreast_hub::Client;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for all requests together, and of one unit.
const TOTAL: u64 = 160 << 20;
const UNIT: u64 = 64 << 10;
/// Documents that are made for one request, and bodies that are received, at once; one client alone has half of them.
/// Bodies are at most an eighth of the connections.
const SHARES: usize = 64;
/// Event streams at a time, and at most half of the connections. One client alone has half of them.
const STREAMS: usize = 1_024;

/// What is left for requests, and for event streams.
#[derive(Debug)]
pub struct Memory {
    bytes: Arc<Semaphore>,
    made: ClientPlaces,
    received: ClientPlaces,
    pub(crate) streams: ClientPlaces,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            bytes: Arc::new(Semaphore::new((TOTAL / UNIT) as usize)),
            made: ClientPlaces::new(SHARES),
            received: ClientPlaces::new(SHARES),
            streams: ClientPlaces::new(STREAMS),
        }
    }
}

impl Memory {
    /// What waits for clients never takes most of so many connections.
    pub(crate) fn fit(&self, connections: usize) {
        self.streams.limit(connections / 2);
        self.received.limit(connections / 8);
    }

    /// For what may wait on a thread of its own until it can be made: so many at once that others find a thread.
    pub(crate) async fn make(&self, client: &Client) -> Option<Place> {
        self.made.enter(client).await
    }

    /// For a body that is received into a file as a whole.
    pub(crate) async fn receive(&self, client: &Client) -> Option<Place> {
        self.received.enter(client).await
    }

    /// Waits for so many bytes; a request that needs more than there are has all of them. The work that takes
    /// them holds the permit, as it continues when a client leaves.
    pub(crate) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let units = bytes.min(TOTAL).div_ceil(UNIT) as u32;
        // It is never closed.
        Arc::clone(&self.bytes).acquire_many_owned(units).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn large_requests_wait_for_each_other_in_order() {
        let memory = Memory::default();
        let whole = memory.take(u64::MAX).await;
        let mut large = Box::pin(memory.take(TOTAL - UNIT));
        let mut small = Box::pin(memory.take(2 * UNIT));
        let wait = Duration::from_millis(20);
        assert!(tokio::time::timeout(wait, &mut large).await.is_err());
        assert!(tokio::time::timeout(wait, &mut small).await.is_err());
        drop(whole);
        let large = large.await;
        assert!(tokio::time::timeout(wait, &mut small).await.is_err(), "it came later");
        drop(large);
        assert!(small.await.is_some());
    }
}
