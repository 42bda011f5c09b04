//! Connections: DNS, proxies, TLS, HTTP/1.1, HTTP/2 and the detection of slow servers.

pub(crate) mod channel;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod failure;
pub(crate) mod host;
pub(crate) mod http2;
pub(crate) mod pipeline;
pub(crate) mod shared;
pub(crate) mod tls;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod tunnel;
pub(crate) mod watchdog;
