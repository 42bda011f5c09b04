//! The memory that requests need temporarily: to render large documents, and to process their
//! bodies.
//!
//! Requests wait for it in the order in which they came, and hold it only while the server itself
//! works: a client that is slow to send or to receive holds none, as large bodies are in files
//! then.

use crate::limits::places::{ClientPlaces, Place};
use abreast_hub::Client;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes for all requests together, and bytes of a unit.
const TOTAL: u64 = 160 << 20;
const UNIT: u64 = 64 << 10;
/// Most documents that are made for requests at a time, and most bodies that are received; a single
/// client may have half. Bodies are limited to an eighth of the connections.
const SHARES: usize = 64;
/// Most event streams at a time, and at most half of the connections. A single client may have
/// half.
const STREAMS: usize = 1_024;

/// The remaining memory for requests, and places for event streams. Clones share both.
#[derive(Clone, Debug)]
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
    /// Limits the places of waiting clients, so that they use only a part of the connections.
    pub(crate) fn fit(&self, connections: usize) {
        self.streams.limit(connections / 2);
        self.received.limit(connections / 8);
    }

    /// A place for rendering work, which may wait on a blocking thread. The limit leaves threads
    /// for other requests.
    pub(crate) async fn make(&self, client: &Client) -> Option<Place> {
        self.made.enter(client).await
    }

    /// A place for a body that is received completely into a file.
    pub(crate) async fn receive(&self, client: &Client) -> Option<Place> {
        self.received.enter(client).await
    }

    /// Waits for this many bytes; a request that needs more than the total gets all. The task that
    /// uses the memory holds the permit, because it continues when a client disconnects.
    pub(crate) async fn take(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let units = bytes.min(TOTAL).div_ceil(UNIT) as u32;
        // The semaphore is never closed.
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
