//! The order of requests to a resource's own URL and its mirrors [rs-core §14.1, §14.2].
//!
//! The resource's own URL is first, then the mirrors by their priority. A mirror to which the
//! Source gives the priority 1 precedes the own URL, and so do all mirrors while the own host
//! demands a pause. The bytes from a mirror are accepted only if they have the digest in the
//! Source's list, so mirrors are not used for resources without a digest.

use crate::report::failure::Failure;
use abreast_store::mirror::Pending;
use std::borrow::Cow;
use std::collections::HashMap;

/// One address for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) url: Cow<'a, str>,
    /// Only if its address is public.
    pub(crate) public_only: bool,
    pub(crate) is_mirror: bool,
    /// Whether caches must not answer with a stored response.
    pub(crate) past_caches: bool,
}

impl<'a> Place<'a> {
    /// The resource's own address.
    pub(crate) fn own(item: &'a Pending) -> Self {
        Self { url: item.href().into(), ..Self::default() }
    }
}

/// Number of consecutive failures after which a mirror's host is not used for the rest of the run.
const FAILURES_MAX: u32 = 3;
/// Hosts whose failures are remembered.
const FAILING_MAX: usize = 64;

/// Hosts of mirrors that do not respond, as observed by one connection.
#[derive(Debug, Default)]
pub(crate) struct FailingHosts(HashMap<String, u32>);

impl FailingHosts {
    pub(crate) fn is_failing(&self, url: &str) -> bool {
        !self.0.is_empty()
            && self.0.get(origin(url)).is_some_and(|failures| *failures >= FAILURES_MAX)
    }

    /// Counts a failure of a host. A success, a wrong digest or an error status shows that the host
    /// responds.
    pub(crate) fn note(&mut self, url: &str, failure: Option<&Failure>) {
        let answers = failure.is_none_or(|failure| {
            failure.code.starts_with("fixity.") || failure.code == "http.status"
        });
        if answers {
            self.0.remove(origin(url));
        } else if let Some(failures) = self.0.get_mut(origin(url)) {
            *failures += 1;
        } else if self.0.len() < FAILING_MAX {
            self.0.insert(origin(url).to_owned(), 1);
        }
    }
}

/// Scheme, host and port as written.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_that_fails_again_and_again_is_left_alone() {
        let mut failing_hosts = FailingHosts::default();
        let failure = Failure::new("net.connect", "nobody there");
        let missing = Failure::new("http.status", "404");
        for _ in 0..2 {
            failing_hosts.note("http://m.example/a", Some(&failure));
        }
        failing_hosts.note("http://m.example/b", Some(&missing));
        for number in 0..3 {
            assert!(!failing_hosts.is_failing("http://m.example/a"), "after {number}");
            failing_hosts.note(&format!("http://m.example/{number}"), Some(&failure));
        }
        assert!(failing_hosts.is_failing("http://m.example/c?d"));
        assert!(!failing_hosts.is_failing("http://other.example/a"));
    }
}
