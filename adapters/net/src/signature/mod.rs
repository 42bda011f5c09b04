//! Signed requests: HTTP Message Signatures [rfc9421] as the Web Bot Auth working group profiles them
//! [web-bot-auth].

pub(crate) mod directory;
pub(crate) mod key;
pub(crate) mod request;

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970, as in `created` and `expires` [rfc9421 §2.3].
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
