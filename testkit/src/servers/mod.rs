//! Servers that tests talk to.

#[cfg(feature = "sparql")]
pub mod endpoint;
pub mod http;
pub mod network;
pub mod pages;
pub mod postgres;
pub mod relay;
pub mod s3;
pub mod tls;
pub mod xmpp;
