//! The carrier of a request: a connection of HTTP/1.1, or a part of an HTTP/2 connection.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;

use crate::settings::options::Options;
use crate::transport::connection::{Connection, Failure};
use crate::transport::http2::{
    Http2Connection, Http2Exchange, Reset, ends_connection, has_broken_off, reset_of,
};

/// A new connection, by the protocol that the server has chosen.
pub(crate) enum Opened {
    Http1(Box<Connection>),
    Http2(Arc<Http2Connection>),
}

/// The carrier of a request and its response.
pub(crate) enum Channel {
    /// A connection that carries one request at a time.
    Http1(Box<Connection>),
    /// A request among others on a connection.
    Http2(Box<Http2Exchange>),
}

impl Channel {
    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
        options: &Options,
    ) -> Result<http::Response<Incoming>, Failure> {
        match self {
            Self::Http1(connection) => connection.send(request, options).await,
            Self::Http2(exchange) => exchange.send(request, options).await,
        }
    }

    /// Polls `wanted`, which the connection makes ready, until it is ready or fails.
    pub(crate) fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
        wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Failure>> {
        match self {
            Self::Http1(connection) => connection.poll_with(cx, options, wanted),
            Self::Http2(exchange) => exchange.poll_with(cx, options, wanted),
        }
    }

    /// Records that bytes of the body have arrived.
    pub(crate) fn count_body(&mut self, bytes: usize) {
        if let Self::Http2(exchange) = self {
            exchange.received(bytes);
        }
    }

    /// Bytes received since the start of the request; 0 on a connection that several requests share.
    pub(crate) fn received(&self) -> u64 {
        match self {
            Self::Http1(connection) => connection.received(),
            Self::Http2(_) => 0,
        }
    }

    /// Whether a plain request was answered in TLS.
    pub(crate) fn is_answered_in_tls(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_answered_in_tls(),
            Self::Http2(_) => false,
        }
    }

    /// Whether the connection, which other requests may share, has ended or is silent.
    pub(crate) fn has_ended(&self, failure: &Failure) -> bool {
        match (self, failure) {
            (Self::Http2(_), Failure::Http(error)) => ends_connection(error),
            _ => true,
        }
    }

    /// Whether the server wants the request by HTTP/1.1.
    pub(crate) fn is_sent_back(&self, failure: &Failure) -> bool {
        let Failure::Http(error) = failure else { return false };
        self.is_http2() && reset_of(error) == Some(Reset::WantsHttp1)
    }

    /// Whether the connection ended before any answer, or the server refused the request.
    pub(crate) fn was_before_any_answer(&self, failure: &Failure) -> bool {
        match (self, failure) {
            (Self::Http1(connection), _) => failure.was_before_any_answer(connection.received()),
            (Self::Http2(_), Failure::Http(error)) => {
                has_broken_off(error) || reset_of(error) == Some(Reset::Refused)
            }
            (Self::Http2(_), Failure::Closed) => true,
            (Self::Http2(_), Failure::Slow(_) | Failure::Interim) => false,
        }
    }
}
