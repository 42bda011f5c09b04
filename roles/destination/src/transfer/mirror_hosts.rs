//! Hosts of mirrors that do not respond.

use crate::report::failure::Failure;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of consecutive failures after which a mirror's host is not used for the rest of the run.
const FAILURES_MAX: u32 = 3;
/// Hosts whose failures are remembered.
const HOSTS_MAX: usize = 64;

/// The hosts of mirrors in a run.
#[derive(Debug)]
pub(crate) struct MirrorHosts {
    hosts: Mutex<HashMap<String, Arc<MirrorHost>>>,
    /// Number of requests to a host at a time, so that few requests follow the last failure.
    parallel: usize,
}

#[derive(Debug)]
struct MirrorHost {
    places: Arc<Semaphore>,
    failures: AtomicU32,
}

/// A request to a mirror.
pub(crate) struct MirrorTurn {
    host: Option<Arc<MirrorHost>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl MirrorHosts {
    pub(crate) fn new(parallel: usize) -> Self {
        Self { hosts: Mutex::default(), parallel }
    }

    /// Waits until the host of a mirror may be asked; `None` if it does not respond.
    pub(crate) async fn enter(&self, url: &str) -> Option<MirrorTurn> {
        let Some(host) = self.host(origin(url)) else {
            return Some(MirrorTurn { host: None, _place: None });
        };
        let place = Arc::clone(&host.places).acquire_owned().await.ok();
        let responds = host.failures.load(Relaxed) < FAILURES_MAX;
        responds.then_some(MirrorTurn { host: Some(host), _place: place })
    }

    /// The record of a host, unless there are too many hosts.
    fn host(&self, origin: &str) -> Option<Arc<MirrorHost>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = hosts.get(origin) {
            return Some(Arc::clone(host));
        }
        if hosts.len() >= HOSTS_MAX {
            // Hosts that respond and are not being asked.
            hosts.retain(|_, host| Arc::strong_count(host) > 1 || host.failures.load(Relaxed) > 0);
        }
        if hosts.len() >= HOSTS_MAX {
            return None;
        }
        let places = Arc::new(Semaphore::new(self.parallel));
        let host = Arc::new(MirrorHost { places, failures: AtomicU32::new(0) });
        hosts.insert(origin.to_owned(), Arc::clone(&host));
        Some(host)
    }
}

impl MirrorTurn {
    /// Counts a failure of the host. A success, a wrong digest or an error status shows that the host
    /// responds.
    pub(crate) fn note(self, failure: Option<&Failure>) {
        let Some(host) = self.host else { return };
        let answers = failure.is_none_or(|failure| {
            failure.code.starts_with("fixity.") || failure.code == "http.status"
        });
        if answers {
            host.failures.store(0, Relaxed);
        } else {
            host.failures.fetch_add(1, Relaxed);
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

    #[tokio::test]
    async fn a_mirror_that_fails_again_and_again_is_left_alone() {
        let hosts = MirrorHosts::new(1);
        let failure = Failure::new("net.connect", "nobody there");
        let missing = Failure::new("http.status", "404");
        let note = async |url: &str, failure: Option<&Failure>| {
            let turn = hosts.enter(url).await;
            let is_asked = turn.is_some();
            if let Some(turn) = turn {
                turn.note(failure);
            }
            is_asked
        };
        for _ in 0..2 {
            assert!(note("http://m.example/a", Some(&failure)).await);
        }
        assert!(note("http://m.example/b", Some(&missing)).await);
        for number in 0..3 {
            let url = format!("http://m.example/{number}");
            assert!(note(&url, Some(&failure)).await, "{number}");
        }
        assert!(!note("http://m.example/c?d", None).await);
        assert!(note("http://other.example/a", None).await);
    }
}
