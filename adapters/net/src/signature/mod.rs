//! Signed requests: HTTP Message Signatures [rfc9421] as the Web Bot Auth working group profiles them
//! [web-bot-auth].

pub(crate) mod directory;
pub(crate) mod key;
pub(crate) mod request;
pub(crate) mod verify;

use std::time::{SystemTime, UNIX_EPOCH};

use url::Url;

/// Seconds since 1970, as in `created` and `expires` [rfc9421 §2.3].
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Host and port of a URL in their normal form [rfc9421 §2.2.3].
fn authority(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}
