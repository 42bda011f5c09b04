//! The Idempotency-Key of a request, which must not be used for another request.

use super::model::check_idempotency_key;
use super::problem::{Problem, ProblemKind};
use crate::site::api::Api;
use abreast_core::{ChangeLog, SetId};
use http::Request;
use std::fmt::Write as _;
use std::sync::PoisonError;

/// Most idempotency keys of requests that are remembered in memory.
const MAX_KEYS: usize = 10_000;
/// Number of bytes of a request's digest in the keys of its changes.
const DIGEST_BYTES: usize = 8;

/// The Idempotency-Key of a request, with a digest of the request.
///
/// Both are in the log's keys of the changes, with spaces between them, which a key cannot contain. The
/// log therefore shows on every node, and after a restart, that a key was used for another request.
#[derive(Clone, Debug)]
pub(super) struct RequestName {
    name: String,
    /// The digest in hexadecimal digits.
    digest: String,
    set: SetId,
}

impl RequestName {
    /// The name of a request, unless this server knows that another request had it.
    pub(super) fn new(
        api: &Api,
        set: SetId,
        name: String,
        digest: [u8; 32],
    ) -> Result<Self, Problem> {
        let mut keys = api.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= MAX_KEYS {
            keys.clear();
        }
        if *keys.entry((set, name.clone())).or_insert(digest) != digest {
            return Err(reused());
        }
        let digest = digest[..DIGEST_BYTES].iter().fold(String::new(), |mut text, byte| {
            // Writing to a string succeeds.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok(Self { name, digest, set })
    }

    /// Checks in the log that another request did not have this name. Blocks.
    pub(super) fn check(&self, log: &dyn ChangeLog) -> Result<(), Problem> {
        let first = format!("{} 0 ", self.name);
        let recorded = |prefix: &str| log.idempotency_key(self.set, prefix);
        let is_other = recorded(&first)?.is_some_and(|found| found != self.key(0));
        // Two requests at the same time may both be recorded.
        if is_other && recorded(&self.key(0))?.is_none() {
            return Err(reused());
        }
        Ok(())
    }

    /// The log's key of a change of the request, by the number of the change from 0.
    pub(super) fn key(&self, number: usize) -> String {
        format!("{} {number} {}", self.name, self.digest)
    }
}

fn reused() -> Problem {
    let detail = "another request with other content had this Idempotency-Key";
    Problem::new(ProblemKind::KeyReused, detail)
        .help("choose a new key for each request; send the same key only with the same content")
}

/// The Idempotency-Key of a request.
pub(super) fn idempotency_key<B>(request: &Request<B>) -> Result<Option<String>, Problem> {
    let mut values = request.headers().get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim_matches('"');
    let refused =
        |reason: &str| Problem::new(ProblemKind::Query, format!("Idempotency-Key: {reason}"));
    if values.next().is_some() {
        return Err(refused("given twice"));
    }
    check_idempotency_key(text).map_err(|reason| refused(&reason))?;
    Ok(Some(text.to_owned()))
}
