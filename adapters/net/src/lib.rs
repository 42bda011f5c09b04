#![doc = include_str!("../README.md")]

mod accept;
mod bandwidth;
mod budget;
mod client;
mod connect;
mod connection;
mod connection_slots;
mod credentials;
mod error;
mod failure;
mod global;
mod gunzip;
mod host;
mod listener;
mod options;
mod origin;
mod pause;
mod pin;
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
mod unpack;
mod userinfo;
mod watchdog;

/// Properties that hold for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::bandwidth::fuzz_property::check as bandwidth;
    pub use crate::credentials::fuzz_property::check as netrc;
}

pub use crate::pause::retry_after;
pub use accept::{accept_until, serve_until};
pub use bandwidth::Bandwidth;
pub use budget::{Budget, Reservation, Room};
pub use client::Client;
pub use connection_slots::{
    CloseWhen, ConnectionSlot, ConnectionSlots, InFlight, Writes, client_group,
};
pub use credentials::Credentials;
pub use error::{Error, ErrorKind};
pub use global::{Reach, is_global};
pub use http::header::{HeaderName, HeaderValue};
pub use http::request::Parts;
pub use http::{HeaderMap, Method, StatusCode};
pub use listener::{Listener, ListenerOptions, Receiver, Reply};
pub use options::{ClientCertificate, Options};
pub use origin::check_url;
pub use pin::Pin;
pub use proxy::Proxies;
pub use request::{Post, Request, UnaskedEncoding};
pub use response::{ContentRange, Response, values};
pub use retry::{Retries, with_retries};
pub use secret::Authorization;
pub use sender::{Answer, BodyWanted, HeaderLines, Message, Recipient, Sender, SenderOptions};
pub use shared::{Counters, Shared};
pub use tls::{check_certificates, check_client_certificate};
pub use unpack::{UnpackError, Unpacker};
