//! The carrier of a request: a connection of HTTP/1.1, a turn on one, or a part of an HTTP/2
//! connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};

use crate::settings::options::Options;
use crate::transport::connection::{Connection, Failure};
use crate::transport::http2::{
    Http2Connection, Http2Exchange, Reset, ends_connection, has_broken_off, reset_of,
};
use crate::transport::pipeline::{PipelinedExchange, ends_with};

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
    /// A request in a row on a connection.
    Pipelined(Box<PipelinedExchange>),
}

/// The body of an answer.
pub(crate) enum Body {
    Incoming(Incoming),
    /// The body of an answer to a request in a row, which its channel receives.
    InRow,
}

impl Channel {
    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    pub(crate) fn is_pipelined(&self) -> bool {
        matches!(self, Self::Pipelined(_))
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
        options: &Options,
    ) -> Result<http::Response<Body>, Failure> {
        let answer = match self {
            Self::Http1(connection) => connection.send(request, options).await?,
            Self::Http2(exchange) => exchange.send(request, options).await?,
            Self::Pipelined(exchange) => {
                let head = exchange.send(&request, options).await?;
                return Ok(http::Response::from_parts(head, Body::InRow));
            }
        };
        if let Self::Http1(connection) = self
            && answer.version() == http::Version::HTTP_11
            && answer.headers().contains_key(CONTENT_LENGTH)
            && !ends_with(answer.headers())
        {
            connection.was_answered_regularly();
        }
        Ok(answer.map(Body::Incoming))
    }

    /// The next bytes of a body; `None` at its end.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        options: &Options,
        body: &mut Body,
    ) -> Poll<Result<Option<Bytes>, Failure>> {
        let body = match (&mut *self, body) {
            (Self::Pipelined(exchange), _) => return exchange.poll_body(cx, options),
            (_, Body::Incoming(body)) => body,
            (_, Body::InRow) => return Poll::Ready(Err(Failure::Closed)),
        };
        loop {
            let wanted = |cx: &mut Context<'_>| Pin::new(&mut *body).poll_frame(cx);
            let frame = match self {
                Self::Http1(connection) => connection.poll_with(cx, options, wanted),
                Self::Http2(exchange) => exchange.poll_with(cx, options, wanted),
                Self::Pipelined(_) => return Poll::Ready(Err(Failure::Closed)),
            };
            match ready!(frame)? {
                // Trailers are ignored.
                Some(frame) => match frame.map_err(Failure::Http)?.into_data() {
                    Ok(data) if !data.is_empty() => {
                        if let Self::Http2(exchange) = self {
                            exchange.received(data.len());
                        }
                        return Poll::Ready(Ok(Some(data)));
                    }
                    Ok(_) | Err(_) => {}
                },
                None => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// Bytes of a body that have not been received: at least, and at most if known.
    pub(crate) fn left(&self, body: &Body) -> (u64, Option<u64>) {
        match (self, body) {
            (Self::Pipelined(exchange), _) => (exchange.left(), Some(exchange.left())),
            (_, Body::Incoming(body)) => (body.size_hint().lower(), body.size_hint().upper()),
            (_, Body::InRow) => (0, None),
        }
    }

    /// Whether the end of a body has been received.
    pub(crate) fn is_at_end(&self, body: &Body) -> bool {
        match (self, body) {
            (Self::Pipelined(exchange), _) => exchange.left() == 0,
            (_, Body::Incoming(body)) => body.is_end_stream(),
            (_, Body::InRow) => false,
        }
    }

    /// Bytes received since the start of the request; 0 on a connection that several requests share.
    pub(crate) fn received(&self) -> u64 {
        match self {
            Self::Http1(connection) => connection.received(),
            Self::Http2(_) | Self::Pipelined(_) => 0,
        }
    }

    /// Whether a plain request was answered in TLS.
    pub(crate) fn is_answered_in_tls(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_answered_in_tls(),
            Self::Http2(_) | Self::Pipelined(_) => false,
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
            (Self::Http2(_) | Self::Pipelined(_), _) => false,
        }
    }
}
