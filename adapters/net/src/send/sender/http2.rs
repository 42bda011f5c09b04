//! A connection of HTTP/2, which all recipients at an origin share.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::{Instant, timeout_at};

use super::answer::BodyWanted;
use super::line::Failure;
use crate::address::error::{Error, ErrorKind};
use crate::transport::connection::{Failure as TransportFailure, Stream};
use crate::transport::failure::failed;
use crate::transport::http2::{Reset, ends_connection, has_broken_off, reset_of};

/// Most bytes of an answer, and of all answers, that a server may send before they are read.
const STREAM_WINDOW_MAX: u32 = 64 << 10;
const CONNECTION_WINDOW_MAX: u32 = 1 << 20;

/// A failed exchange.
#[derive(Debug)]
pub(super) enum Fault {
    /// The time limit was exceeded.
    Late,
    Http(hyper::Error),
    /// The body is larger than wanted.
    TooLarge(Error),
}

/// A connection of HTTP/2.
pub(super) struct Http2Line {
    requests: SendRequest<Full<Bytes>>,
    last_used: Mutex<Instant>,
}

impl Fault {
    /// Whether the request was not processed, or the connection ended before the answer.
    pub(super) fn was_before_any_answer(&self) -> bool {
        match self {
            Self::Http(error) => reset_of(error) == Some(Reset::Refused) || has_broken_off(error),
            Self::Late | Self::TooLarge(_) => false,
        }
    }

    /// Whether the server answers this request by HTTP/1.1 only.
    pub(super) fn wants_http1(&self) -> bool {
        matches!(self, Self::Http(error) if reset_of(error) == Some(Reset::WantsHttp1))
    }

    /// Whether the connection is of no use to other requests.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Late => true,
            Self::Http(error) => ends_connection(error),
            Self::TooLarge(_) => false,
        }
    }

    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Late => Failure::Late.into_error(),
            Self::Http(error) => failed(TransportFailure::Http(error), 0, ""),
            Self::TooLarge(error) => error,
        }
    }
}

impl Http2Line {
    /// Starts the connection, and the task that drives it.
    pub(super) async fn open(stream: Stream, head_bytes: usize) -> Result<Self, hyper::Error> {
        let (requests, driver) = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_MAX)
            .initial_connection_window_size(CONNECTION_WINDOW_MAX)
            .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(stream))
            .await?;
        drop(tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "a connection of HTTP/2 ended");
            }
        }));
        Ok(Self { requests, last_used: Mutex::new(Instant::now()) })
    }

    /// Whether the connection can be used as far as is known.
    pub(super) fn is_open(&self) -> bool {
        !self.requests.is_closed()
    }

    /// The time of the start or end of the last exchange.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn ask(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Response<Incoming>, Fault> {
        self.touch();
        let answer = timeout_at(deadline, self.requests.clone().send_request(request)).await;
        self.touch();
        answer.map_err(|_| Fault::Late)?.map_err(Fault::Http)
    }
}

/// Reads the wanted part of a body. An unwanted one is read for a short time, so that the server need
/// not see an end by the client.
pub(super) async fn read(
    mut body: Incoming,
    want: BodyWanted,
    deadline: Instant,
    linger: Instant,
) -> Result<Bytes, Fault> {
    let (BodyWanted::Whole(most) | BodyWanted::Nothing(most)) = want;
    let is_whole = matches!(want, BodyWanted::Whole(_));
    let until = if is_whole { deadline } else { deadline.min(linger) };
    let too_large = || {
        let message = format!("the answer is larger than {most} bytes");
        Fault::TooLarge(Error::new(ErrorKind::Size, "", message))
    };
    let (mut bytes, mut read) = (Vec::new(), 0);
    if body.size_hint().lower() > most as u64 {
        return if is_whole { Err(too_large()) } else { Ok(Bytes::new()) };
    }
    loop {
        let frame = match timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return Ok(bytes.into()),
            Ok(Some(Err(_))) | Err(_) if !is_whole => return Ok(Bytes::new()),
            Ok(Some(Err(error))) => return Err(Fault::Http(error)),
            Err(_) => return Err(Fault::Late),
        };
        let Ok(data) = frame.into_data() else { continue };
        read += data.len();
        if read > most {
            return if is_whole { Err(too_large()) } else { Ok(Bytes::new()) };
        }
        if is_whole {
            bytes.extend_from_slice(&data);
        }
    }
}
