//! Classification of network failures.

use std::io;

use crate::address::error::{Error, ErrorKind};
use crate::transport::connection::Failure;
use crate::transport::http2::{Reset, reset_of};
use crate::transport::watchdog::TooSlow;

/// Classifies a network failure after this many bytes of the response's head.
pub(crate) fn failed(failure: Failure, received: u64, url: &str) -> Error {
    let e = match failure {
        Failure::Slow(TooSlow::Idle) => {
            return Error::new(
                ErrorKind::Timeout,
                url,
                "nothing came from the server for too long",
            );
        }
        Failure::Slow(TooSlow::Speed) => {
            return Error::new(ErrorKind::Slow, url, "the answer came too slowly");
        }
        Failure::Interim => {
            return Error::new(ErrorKind::Protocol, url, "more than 16 interim responses");
        }
        Failure::Closed | Failure::Row(_) => {
            return Error::new(
                ErrorKind::Truncated,
                url,
                "the server closed the connection too early",
            );
        }
        Failure::Http(e) => e,
    };
    if let Some(reset) = reset_of(&e) {
        let (kind, message) = match reset {
            Reset::Protocol => (ErrorKind::Protocol, "the answer is not valid HTTP/2"),
            Reset::Refused => (ErrorKind::Truncated, "the server refused the request"),
            Reset::TooMuch => {
                (ErrorKind::Truncated, "the server refused the request: it receives too many")
            }
            Reset::WantsHttp1 | Reset::Ended => {
                (ErrorKind::Truncated, "the server ended the answer too early")
            }
        };
        let error = Error::new(kind, url, message).with_cause(e);
        return match reset {
            Reset::TooMuch => error.with_help("send fewer requests at a time, with --connections"),
            _ => error,
        };
    }
    if e.is_parse_too_large() {
        return Error::new(ErrorKind::Header, url, "the answer's headers are too large")
            .with_help(
                "the server can be reached: ask its operator to send fewer or shorter header fields, such as `Link`, \
                 or give the address of a document",
            )
            .with_cause(e);
    }
    if e.is_parse_status() {
        return Error::new(ErrorKind::Status, url, "the answer has no valid status").with_cause(e);
    }
    if e.is_canceled() && received > 0 {
        let message = "the server spoke before it was asked, so it is no HTTP server";
        return Error::new(ErrorKind::Protocol, url, message).with_cause(e);
    }
    if e.is_parse() {
        return Error::new(ErrorKind::Protocol, url, "the answer is not valid HTTP/1.1")
            .with_cause(e);
    }
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&e);
    let mut io_kind = None;
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<io::Error>() {
            io_kind = Some(inner.kind());
            if inner
                .get_ref()
                .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>)
            {
                return Error::new(ErrorKind::Tls, url, "TLS failed during the answer")
                    .with_cause(e);
            }
        }
        cause = inner.source();
    }
    match io_kind {
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
            Error::new(ErrorKind::Protocol, url, "the answer's body is not valid HTTP/1.1")
                .with_cause(e)
        }
        _ => Error::new(ErrorKind::Truncated, url, "the answer ended before its announced end")
            .with_cause(e),
    }
}
