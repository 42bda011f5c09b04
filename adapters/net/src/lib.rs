#![doc = include_str!("../README.md")]

mod bandwidth;
mod client;
mod connect;
mod connection;
mod credentials;
mod error;
mod failure;
mod global;
mod gunzip;
mod listener;
mod options;
mod origin;
mod pin;
mod places;
mod proxy;
mod redirect;
mod request;
mod response;
mod retry;
mod secret;
mod sender;
mod shared;
mod tls;
mod trust;
mod tunnel;
mod watchdog;

pub use bandwidth::Bandwidth;
#[doc(hidden)]
pub use bandwidth::check_any_input as check_bandwidth;
pub use client::Client;
pub use credentials::Credentials;
#[doc(hidden)]
pub use credentials::check_any_input as check_netrc;
pub use error::{Error, ErrorKind};
pub use global::is_global;
pub use http::header::{HeaderName, HeaderValue};
pub use http::request::Parts;
pub use http::{HeaderMap, Method, StatusCode};
pub use listener::{Listener, ListenerOptions, Receiver, Reply};
pub use options::{ClientCertificate, Options};
pub use origin::check_url;
pub use pin::Pin;
pub use places::{Leave, Place, Places};
pub use proxy::Proxies;
pub use request::{Post, Request, UnaskedEncoding};
pub use response::{ContentRange, Response};
pub use retry::{Retries, retry_after, with_retries};
pub use secret::Authorization;
pub use sender::{Answer, HeaderLines, Message, Recipient, Sender, SenderOptions, Want};
pub use shared::{Counters, Shared};
pub use tls::check_certificates;
