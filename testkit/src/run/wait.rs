//! Waiting for a condition, without a fixed pause.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The longest wait for anything: far more than is ever needed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until a condition holds; fails after [`PATIENCE`].
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    eventually_some(what, || holds().then_some(()));
}

/// Waits until there is something; fails after [`PATIENCE`].
pub fn eventually_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    eventually_ok(what, || find().ok_or("waited in vain"))
}

/// Waits for a success; after [`PATIENCE`] it fails with the last error.
pub fn eventually_ok<T, E: Display>(what: &str, mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let begin = Instant::now();
    loop {
        match attempt() {
            Ok(value) => return value,
            Err(why) => assert!(begin.elapsed() < PATIENCE, "{what}: {why}"),
        }
        std::thread::sleep(PAUSE);
    }
}
