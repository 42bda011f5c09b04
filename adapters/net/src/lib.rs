#![doc = include_str!("../README.md")]

mod client;
mod connect;
mod connection;
mod error;
mod failure;
mod gunzip;
mod options;
mod origin;
mod redirect;
mod request;
mod response;
mod retry;
mod secret;
mod shared;
mod tls;
mod watchdog;

pub use client::Client;
pub use error::{Error, ErrorKind};
pub use http::{HeaderMap, StatusCode};
pub use options::Options;
pub use request::{Request, UnaskedEncoding};
pub use response::{ContentRange, Response};
pub use retry::{Retries, retry_after, with_retries};
pub use secret::Authorization;
pub use shared::{Counters, Shared};
