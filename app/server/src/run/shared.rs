//! The data that all connections of a server share.

use crate::limits::clients::ClientLimits;
use crate::message::conditional::may_redirect;
use crate::routes::document;
use crate::run::options::ServerOptions;
use crate::site::current::CurrentSite;
use crate::site::heads::Heads;
use http::{HeaderMap, Method, StatusCode};
use metrics::{Counter, Histogram, counter, histogram};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::watch;

/// The data of all connections of a server.
pub(super) struct Shared {
    pub(super) sites: Arc<CurrentSite>,
    pub(super) clients: ClientLimits,
    pub(super) options: ServerOptions,
    pub(super) stopping: AtomicBool,
    /// Ends event streams, which would not end by themselves.
    pub(super) stop: watch::Receiver<bool>,
    pub(super) counters: Counters,
    /// Documents that are being made.
    pub(super) single_flight: document::SingleFlight,
    /// The heads of the logs, for waiting requests.
    pub(super) heads: Heads,
}

impl Shared {
    /// The length of content from which a request is redirected to the object store.
    pub(super) fn redirect_from(&self, method: &Method, headers: &HeaderMap) -> Option<u64> {
        self.options.redirect_from.filter(|_| may_redirect(method, headers))
    }
}

/// The part of the server that a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Document,
    Resource,
    Api,
    Hub,
    Other,
    /// The request waits for changes, so its duration is not measured.
    Waiting,
}

/// Counters of answers by class of status, and their times by part, looked up once.
pub(super) struct Counters {
    classes: [Counter; 4],
    times: [Histogram; 5],
}

impl Counters {
    pub(super) fn new() -> Self {
        Self {
            classes: ["2xx", "3xx", "4xx", "5xx"]
                .map(|class| counter!("abreast_http_responses_total", "class" => class)),
            times: ["document", "resource", "api", "hub", "other"]
                .map(|kind| histogram!("abreast_http_request_seconds", "kind" => kind)),
        }
    }

    pub(super) fn count(&self, status: StatusCode, part: Part, time: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(2, 5) - 2;
        self.classes[class].increment(1);
        if let Some(times) = self.times.get(part as usize) {
            times.record(time);
        }
    }
}
