//! Stopping: a wait for a server also checks whether the user asked to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon a stop is noticed while waiting for a server.
pub(crate) const STOP_CHECK: Duration = Duration::from_millis(100);

/// Completes when the run is asked to stop.
pub(crate) async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP_CHECK).await;
    }
}
