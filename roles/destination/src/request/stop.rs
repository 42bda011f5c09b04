//! Stopping a run: the user's wish is noticed while the run waits for a server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon a stop is noticed while waiting for a server.
pub(crate) const STOP_CHECK: Duration = Duration::from_millis(100);

/// Ends when a stop is asked for.
pub(crate) async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP_CHECK).await;
    }
}
