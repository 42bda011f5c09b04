//! Delivery of documents: compression and conditional requests, each tried a few times.

use crate::fetch::{self, ResponseFacts};
use crate::report::{Findings, rules as r};
use abreast_net::Client;
use std::sync::atomic::{AtomicU64, Ordering};

/// Documents requested a second time, to check whether the server answers conditional requests.
pub(crate) const CONDITIONS_MAX: u64 = 8;

/// Most bytes of a document that a server may send uncompressed without a finding.
const GZIP_BYTES: u64 = 64 << 10;

/// Adds findings about the delivery of a document of `bytes` bytes. `conditions` is the number of
/// conditional requests that may still be sent.
pub(crate) async fn manners(
    client: &Client,
    url: &str,
    facts: &ResponseFacts,
    bytes: u64,
    conditions: &AtomicU64,
    found: &mut Findings,
) {
    if facts.content_encoding.is_none() && bytes > GZIP_BYTES {
        found.add(&r::GZIP, (0, 0), || format!("the server sent {bytes} bytes uncompressed"));
    }
    if facts.url != abreast_webtypes::without_fragment(url) {
        found.add(&r::REDIRECT, (0, 0), || format!("the server redirects to {}", facts.url));
    }
    if facts.etag.is_none() && facts.last_modified.is_none() {
        found.add(&r::ETAG, (0, 0), || "neither ETag nor Last-Modified");
    } else if take_one(conditions) && fetch::is_other_now(client, url, facts).await == Some(false) {
        found.add(&r::CONDITIONAL, (0, 0), || "the whole document came though it is unchanged");
    }
}

pub(crate) fn take_one(counter: &AtomicU64) -> bool {
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
