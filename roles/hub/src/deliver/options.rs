//! Limits and options of the hub.

use crate::deliver::table::origin_of;
use abreast_websub::{LeaseLimits, Method};
use std::path::PathBuf;
use std::time::Duration;

/// Limits and behaviour of a [`Hub`](crate::Hub). Every limit has a default and cannot be disabled.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// The hub's public URL, as it occurs in the links of topics and deliveries.
    pub url: String,
    /// Send subscribers to another hub instead of accepting them [websub §5.1.2].
    pub redirect: Option<Redirect>,
    /// The leases to grant. Default 10 days, at least 300 s, at most 31 days.
    pub leases: LeaseLimits,
    /// Accept any topic with content from its host. Default false: only the Source's topics, topics
    /// of a known publisher, and `allow_topics`.
    pub open: bool,
    /// Prefixes of URLs of further topics to accept.
    pub allow_topics: Vec<String>,
    /// Callbacks of ResourceSync 0.1 that are subscribed without a challenge while they are listed,
    /// by their exact URLs [rs-0.1 §5.2.2]. Default none.
    pub trusted_callbacks: Vec<String>,
    /// Whether callbacks may be on this machine or in its network. Default false.
    pub private_callbacks: bool,
    /// Whether topics may be fetched from this machine or its network. Default false.
    pub private_topics: bool,
    /// Most bytes of a published notification. Default 1 MiB.
    pub max_body: usize,
    /// Most bytes of a fetched topic. Default 8 MiB.
    pub max_topic: usize,
    /// Hash algorithm of signatures. Default `sha256`.
    pub signature: Method,
    /// Time limits of a delivery.
    pub sending: Sending,
    /// How deliveries share the available connections.
    pub lanes: LaneOptions,
    /// Pauses between attempts of failed deliveries.
    pub retries: Retries,
    /// How requests to subscribe are verified.
    pub verification: VerificationOptions,
    /// Most subscriptions. Default 1,000,000; each takes about 300 bytes of memory.
    pub subscriptions: usize,
    /// Most subscriptions with callbacks on one host. Default 10,000.
    pub subscriptions_per_host: u32,
    /// Most bytes of notifications in memory. Default 64 MiB.
    pub memory_bytes: usize,
    /// Most bytes of published notifications that are not durable yet, with at least 4 KiB for each
    /// request; then 503. Default 16 MiB.
    pub accepting_bytes: usize,
    /// Most bytes of bodies in the store; then 503. Default 16 GiB.
    pub store_bytes: u64,
    /// How long notifications are stored. Notifications that a target has not received yet are
    /// stored twice as long. Default 7 days.
    pub keep: Duration,
    /// How often leases are checked, in addition to the check before each delivery. Default 60 s.
    pub lease_sweep: Duration,
    /// Interval of searches for old notifications. Default 10 minutes.
    pub retention_sweep: Duration,
    /// How often progress is recorded: a crash repeats the deliveries since the last record.
    /// Default 250 ms.
    pub save_every: Duration,
    /// A PEM file with certificates that are trusted in addition to the built-in ones. Default
    /// none.
    pub extra_roots: Option<PathBuf>,
    /// The account that publishes to nodes of XMPP services. Default none.
    #[cfg(feature = "xmpp")]
    pub xmpp: Option<abreast_xmpp::Account>,
}

/// The hub to which subscribers are redirected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// URL of the other hub.
    pub url: String,
    /// Whether the redirect is permanent (308) or temporary (307).
    pub permanent: bool,
}

/// Time limits of an HTTP exchange.
#[derive(Clone, Debug)]
pub struct Sending {
    /// Time limit to resolve, connect and negotiate TLS. Default 5 s.
    pub connect: Duration,
    /// Longest time of a whole exchange. Default 30 s.
    pub total: Duration,
}

/// How deliveries share the available connections. A running delivery needs a socket, but not a
/// thread.
#[derive(Clone, Debug)]
pub struct LaneOptions {
    /// Deliveries at the same time to recipients whose last response was fast. Default 256.
    pub all: usize,
    /// Deliveries at the same time to recipients without an exchange since the start. Default 64.
    pub new: usize,
    /// Deliveries at the same time to fast or to new recipients on one host. Default 8.
    pub per_host: usize,
    /// Deliveries at the same time to recipients that took longer than `slow_after` the last time,
    /// a quarter of these to one host. Default 256.
    pub slow: usize,
    /// Deliveries at the same time to recipients that did not answer several times in a row, a
    /// quarter of these to one host. Default 64.
    pub silent: usize,
    /// Deliveries that released their place to others and continue: this number each for fast and
    /// for new recipients, a quarter of these to one host. Further ones are aborted and repeated.
    /// Default 1,024.
    pub aside: usize,
    /// The longest that a delivery to a fast or new recipient may delay others. If the host usually
    /// answers faster, the limit is four times its usual time. Recipients that take longer count as
    /// slow. Default 250 ms.
    pub slow_after: Duration,
    /// The time after which a delivery to a slow recipient is aborted if others wait, or four times
    /// its last duration if that is longer. Each fourth attempt in a row has the whole time of an
    /// exchange. Default 1 s.
    pub patience: Duration,
    /// Failed connections in a row after which an origin is paused. Default 10.
    pub breaker_failures: u32,
    /// Length of this pause; then one attempt decides. Default 30 s.
    pub breaker_pause: Duration,
}

/// Pauses between attempts: a random part of a time that doubles with each failure.
#[derive(Clone, Debug)]
pub struct Retries {
    /// The time after the first failure. Default 1 s.
    pub base: Duration,
    /// The longest time between attempts. Default 1 h.
    pub most: Duration,
    /// Time after which an undeliverable notification is given up; the subscription remains.
    /// Default 24 h.
    pub give_up: Duration,
    /// Longest pause that a subscriber may request by `Retry-After`. Default 10 h.
    pub retry_after: Duration,
}

/// How callbacks are verified, and how often anonymous clients may cause this.
#[derive(Clone, Debug)]
pub struct VerificationOptions {
    /// Verifications at the same time, at most 8 to one host. Default 64. In addition, a quarter as
    /// many each to slow and to silent callbacks, and half as many that released their place to
    /// others.
    pub all: usize,
    /// Attempts if a callback does not answer, or with 5xx. Default 3.
    pub attempts: u32,
    /// Pause before the second attempt; later pauses are four times as long. Default 2 s.
    pub retry: Duration,
    /// Time after which unverified requests are dropped. Default 10 minutes.
    pub patience: Duration,
    /// Verifications for the callbacks on one host: this many at once, …. Default 2,000.
    pub host_burst: u32,
    /// … and this many a second from then on. Default 100.
    pub host_rate: f64,
    /// Requests of a client address: this many at once, …. Default 2,000.
    pub client_burst: u32,
    /// … and this many a second from then on. Default 100.
    pub client_rate: f64,
    /// Unconfirmed verifications for one callback and topic: this many, then one a minute. Default
    /// 5.
    pub refused_burst: u32,
}

impl HubOptions {
    /// The default options for a hub at this URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            redirect: None,
            leases: LeaseLimits::default(),
            open: false,
            allow_topics: Vec::new(),
            trusted_callbacks: Vec::new(),
            private_callbacks: false,
            private_topics: false,
            max_body: 1 << 20,
            max_topic: 8 << 20,
            signature: Method::default(),
            sending: Sending { connect: Duration::from_secs(5), total: Duration::from_secs(30) },
            lanes: LaneOptions::default(),
            retries: Retries {
                base: Duration::from_secs(1),
                most: Duration::from_secs(3_600),
                give_up: Duration::from_secs(24 * 3_600),
                retry_after: Duration::from_secs(10 * 3_600),
            },
            verification: VerificationOptions {
                all: 64,
                attempts: 3,
                retry: Duration::from_secs(2),
                patience: Duration::from_secs(600),
                host_burst: 2_000,
                host_rate: 100.0,
                client_burst: 2_000,
                client_rate: 100.0,
                refused_burst: 5,
            },
            subscriptions: 1_000_000,
            subscriptions_per_host: 10_000,
            memory_bytes: 64 << 20,
            accepting_bytes: 16 << 20,
            store_bytes: 16 << 30,
            keep: Duration::from_secs(7 * 24 * 3_600),
            lease_sweep: Duration::from_secs(60),
            retention_sweep: Duration::from_secs(600),
            save_every: Duration::from_millis(250),
            extra_roots: None,
            #[cfg(feature = "xmpp")]
            xmpp: None,
        }
    }

    /// Whether the topic matches `allow_topics`. The host must be equal: `http://example.org` does
    /// not match `http://example.org.elsewhere.example`.
    pub(crate) fn allows(&self, topic: &str) -> bool {
        let is_allowed = |prefix: &String| {
            topic.starts_with(prefix.as_str()) && origin_of(topic) == origin_of(prefix)
        };
        self.allow_topics.iter().any(is_allowed)
    }

    /// Whether a callback is in `trusted_callbacks`.
    pub(crate) fn trusts(&self, callback: &str) -> bool {
        self.trusted_callbacks.iter().any(|trusted| trusted == callback)
    }

    /// Whether a URL is this hub's, with any spelling of scheme, host and port.
    pub(crate) fn is_own(&self, url: &str) -> bool {
        url == self.url || parts(url) == parts(&self.url)
    }
}

/// Origin without a default port, and the rest of the URL.
fn parts(url: &str) -> (String, &str) {
    let origin = origin_of(url);
    let rest = &url[origin.len()..];
    let port = if origin.starts_with("https:") { ":443" } else { ":80" };
    let origin = origin.strip_suffix(port).unwrap_or(&origin).to_owned();
    (origin, if rest.is_empty() { "/" } else { rest })
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self {
            all: 256,
            new: 64,
            per_host: 8,
            slow: 256,
            silent: 64,
            aside: 1_024,
            slow_after: Duration::from_millis(250),
            patience: Duration::from_secs(1),
            breaker_failures: 10,
            breaker_pause: Duration::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_does_not_stand_for_other_hosts() {
        let mut options = HubOptions::new("http://h/");
        options.allow_topics = vec!["http://example.org".to_owned(), "https://e.org/a/".to_owned()];
        for (topic, allowed) in [
            ("http://example.org/t", true),
            ("http://example.org", true),
            ("http://example.org.evil.example/t", false),
            ("http://example.org:8080/t", false),
            ("http://example.org@evil.example/t", false),
            ("https://e.org/a/b", true),
            ("https://e.org/b", false),
        ] {
            assert_eq!(options.allows(topic), allowed, "{topic}");
        }
    }

    #[test]
    fn the_hub_knows_itself_however_it_is_written() {
        let options = HubOptions::new("https://Example.org/hub?a");
        for (url, own) in [
            ("https://example.org:443/hub?a", true),
            ("HTTPS://EXAMPLE.ORG/hub?a", true),
            ("https://example.org/hub", false),
            ("http://example.org/hub?a", false),
            ("https://example.org:444/hub?a", false),
        ] {
            assert_eq!(options.is_own(url), own, "{url}");
        }
        assert!(HubOptions::new("http://h").is_own("http://h:80/"));
    }
}
