#![doc = include_str!("../README.md")]

mod address;
mod fetch;
mod limits;
mod send;
mod serve;
mod settings;
mod signature;
mod transport;
mod unpack;

/// Properties that hold for any input: for fuzzing and for the tests of its seeds.
#[doc(hidden)]
pub mod fuzz_property {
    pub use crate::limits::bandwidth::fuzz_property::check as bandwidth;
    pub use crate::settings::credentials::fuzz_property::check as netrc;
}

pub use crate::limits::pause::retry_after;
pub use address::error::{Error, ErrorKind};
pub use address::global::{Reach, is_global};
pub use address::origin::check_url;
pub use address::secret::Authorization;
pub use fetch::client::Client;
pub use fetch::request::{Post, Request, UnaskedEncoding};
pub use fetch::response::{ContentRange, Response, values};
pub use fetch::retry::{Retries, with_retries};
pub use http::header::{HeaderName, HeaderValue};
pub use http::request::Parts;
pub use http::{HeaderMap, Method, StatusCode};
pub use limits::bandwidth::Bandwidth;
pub use limits::budget::{Budget, Reservation, Room};
pub use limits::size::parse_size;
pub use send::sender::{
    Answer, BodyWanted, HeaderLines, Message, Recipient, Sender, SenderOptions,
};
pub use serve::accept::{ServerConnection, accept_until, serve_until};
pub use serve::certificate::{ServerCertificate, ServerStream};
pub use serve::connection_slots::{
    CloseWhen, ConnectionSlot, ConnectionSlots, InFlight, Writes, client_group,
};
pub use serve::http2::{Http2Limits, begins_http2, may_be_given_up, serve_http2};
pub use serve::listener::{Listener, ListenerOptions, Receiver, Reply};
pub use settings::credentials::Credentials;
pub use settings::options::{ClientCertificate, Options};
pub use settings::pin::Pin;
pub use settings::proxy::Proxies;
pub use settings::retry_listener::{RepeatedRequest, RetryListener};
pub use signature::directory::KeyDirectory;
pub use signature::key::{SigningKey, SigningKeyError};
pub use signature::request::RequestSigner;
pub use signature::verify::{KnownKeys, PublicKey, PublicKeyError};
pub use transport::shared::{Counters, Shared};
pub use transport::tls::{check_certificates, check_client_certificate, client_tls};
pub use transport::trace::{Propagation, TRACE, continue_trace};
pub use unpack::unpacker::{UnpackError, Unpacker};
