//! Limits and options of the HTTP client.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::limits::bandwidth::Bandwidth;
use crate::limits::budget::Budget;
use crate::settings::credentials::Credentials;
use crate::settings::pin::Pin;
use crate::settings::proxy::Proxies;
use crate::settings::retry_listener::RetryListener;
use crate::signature::request::RequestSigner;

/// Limits and behaviour of a [`Client`](crate::Client); the same for all clients with the same
/// [`Shared`](crate::Shared).
#[derive(Debug, Clone)]
pub struct Options {
    /// Longest time for name resolution, TCP connect and TLS handshake together. Default 10 s.
    pub connect_timeout: Duration,
    /// Longest time without a byte from the server while waiting for one. Default 60 s.
    pub idle_timeout: Duration,
    /// Fewest bytes per second that a server may deliver after the start of its response. Default
    /// 1,000; 0 disables the limit.
    pub min_speed: u64,
    /// Time over which `min_speed` is measured. Only time spent waiting for the server counts.
    /// Default 30 s.
    pub min_speed_window: Duration,
    /// Largest status line and header block of a response, in bytes. Default 64 KiB; at least 8
    /// KiB.
    pub max_header_bytes: usize,
    /// Largest body after unpacking, unless the caller sets another limit. Default 1 TiB.
    pub max_body_bytes: u64,
    /// Most redirects that a request follows. Default 5.
    pub max_redirects: u32,
    /// Most repetitions of a request after the first attempt, see
    /// [`with_retries`](crate::with_retries). Default 5.
    pub retries: u32,
    /// First pause between attempts; doubles each time. Default 500 ms.
    pub backoff_base: Duration,
    /// Longest pause between attempts without `Retry-After`. Default 60 s.
    pub backoff_cap: Duration,
    /// Longest pause that a server may request by `Retry-After`. Default 1 h.
    pub max_retry_after: Duration,
    /// Most requests in flight to one host over all clients with the same
    /// [`Shared`](crate::Shared), and most idle connections of each client to a host. Default 4.
    pub connections_per_host: usize,
    /// Whether a server with TLS may choose HTTP/2. Requests of a client to it share a connection.
    /// Default yes.
    pub http2: bool,
    /// Whether requests of HTTP/1.1 may be sent before earlier ones are answered, see
    /// [`Request::pipelined`](crate::Request::pipelined). Default yes.
    pub pipelining: bool,
    /// Most requests in flight to one host that has chosen HTTP/2 or answers requests in a row, if
    /// this is more than `connections_per_host`. Default 0.
    pub streams_per_host: usize,
    /// Time after which an unused connection is closed. Default 30 s.
    pub keep_alive: Duration,
    /// The `User-Agent` header. Default `abreast/VERSION`.
    pub user_agent: String,
    /// Whether a redirect may lead from https to http. Default no.
    pub allow_downgrade: bool,
    /// A PEM file with certificates trusted in addition to the built-in roots. Default none.
    pub extra_roots: Option<PathBuf>,
    /// Addresses to use instead of name resolution: (`host:port`, address). Default empty.
    pub connect_to: Vec<(String, SocketAddr)>,
    /// Most bytes per second received over all connections of the same [`Shared`](crate::Shared).
    /// Default no limit.
    pub bandwidth: Option<Bandwidth>,
    /// A budget shared with other runs: pauses, bandwidth and totals. Its bandwidth replaces
    /// `bandwidth`. Default: a new budget.
    pub budget: Option<Budget>,
    /// Least time between the starts of two requests to one origin. Default none.
    pub request_interval: Duration,
    /// Proxies. Default none; environment variables are used only through
    /// [`Proxies::from_environment`].
    pub proxies: Proxies,
    /// Credentials by origin, for requests without credentials. Default none.
    pub credentials: Credentials,
    /// Hosts with a pinned key. Default none.
    pub pins: Vec<Pin>,
    /// A client certificate for one server. Default none.
    pub client_certificate: Option<ClientCertificate>,
    /// Signs each request, also after a redirect. Default none.
    pub signer: Option<RequestSigner>,
    /// Whether gzip may be requested at all; a request asks for it with `accept_gzip`. Default yes.
    pub gzip: bool,
    /// Called for each repeated request, before the wait. Default none.
    pub on_retry: RetryListener,
}

impl Options {
    /// The same options for endless responses, such as event streams: least speed and largest body
    /// are not limited. A server that is silent for longer than `idle_timeout` is an error. The
    /// caller must limit the bytes that it stores.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Options;
    /// use std::time::Duration;
    ///
    /// let usual = Options { user_agent: "library-mirror/1.0".to_owned(), ..Options::default() };
    /// let streams = usual.for_streams(Duration::from_secs(90));
    /// assert_eq!((streams.idle_timeout, streams.min_speed), (Duration::from_secs(90), 0));
    /// assert_eq!(streams.user_agent, "library-mirror/1.0");
    /// ```
    #[must_use]
    pub fn for_streams(&self, idle_timeout: Duration) -> Self {
        Self { idle_timeout, min_speed: 0, max_body_bytes: u64::MAX, gzip: false, ..self.clone() }
    }
}

/// A client certificate for a server that requests one.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// Any URL of the server; its scheme, host and port are used.
    pub url: String,
    /// PEM file with the certificate, followed by the certificates of its issuers.
    pub certificate: PathBuf,
    /// PEM file with the private key; may be the same file.
    pub key: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            min_speed: 1_000,
            min_speed_window: Duration::from_secs(30),
            max_header_bytes: 64 << 10,
            max_body_bytes: 1 << 40,
            max_redirects: 5,
            retries: 5,
            backoff_base: Duration::from_millis(500),
            backoff_cap: Duration::from_secs(60),
            max_retry_after: Duration::from_secs(3_600),
            connections_per_host: 4,
            http2: true,
            pipelining: true,
            streams_per_host: 0,
            keep_alive: Duration::from_secs(30),
            user_agent: concat!("abreast/", env!("CARGO_PKG_VERSION")).to_owned(),
            allow_downgrade: false,
            extra_roots: None,
            connect_to: Vec::new(),
            bandwidth: None,
            budget: None,
            request_interval: Duration::ZERO,
            proxies: Proxies::default(),
            credentials: Credentials::default(),
            pins: Vec::new(),
            client_certificate: None,
            signer: None,
            gzip: true,
            on_retry: RetryListener::default(),
        }
    }
}
