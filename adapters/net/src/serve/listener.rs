//! A small HTTP listener that receives short messages, such as callbacks.
//!
//! A [`Listener`] takes HTTP/1.1 requests within limits and hands each to a [`Receiver`], which
//! decides from the head alone whether to read the body, and at most how many bytes.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use crate::serve::accept::{accept_until, serve_until};
use crate::serve::connection_slots::{ConnectionSlot, ConnectionSlots};
use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

/// Most bytes of a request's line and headers together.
const MAX_HEAD: usize = 32 << 10;

/// Limits and options of a [`Listener`].
#[derive(Debug, Clone, Copy)]
pub struct ListenerOptions {
    /// Most connections at a time; at the limit, the oldest idle connection of the client with the
    /// most is closed. Default 64.
    pub connections: usize,
    /// Longest time for a request's head, and for an unused connection. Default 15 s.
    pub header_timeout: Duration,
    /// Longest time for a request's body. Default 30 s.
    pub body_timeout: Duration,
}

impl Default for ListenerOptions {
    fn default() -> Self {
        Self {
            connections: 64,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
        }
    }
}

/// The response: a status, and a short text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status of the response.
    pub status: StatusCode,
    /// Body of the response, sent as `text/plain`.
    pub body: String,
}

impl Reply {
    /// A response with a status and a body.
    pub fn new(status: StatusCode, body: impl Into<String>) -> Self {
        Self { status, body: body.into() }
    }
}

/// The handler of requests. It runs on the listener's runtime, so it must not block for long.
pub trait Receiver: Send + Sync + 'static {
    /// Most bytes of the request's body.
    ///
    /// # Errors
    /// The response, if the body is not wanted.
    fn body_limit(&self, head: &Parts) -> Result<usize, Reply>;

    /// Answers a request whose body is complete.
    fn receive(&self, head: &Parts, body: Bytes) -> Reply;
}

/// Listens on one address. It stops when the future of [`Listener::run`] is dropped.
#[derive(Debug)]
pub struct Listener {
    listener: std::net::TcpListener,
}

impl Listener {
    /// Listens on `HOST:PORT`; port 0 chooses one. Does not need a runtime.
    ///
    /// # Errors
    /// When the name cannot be resolved, or the address is taken or not allowed.
    pub fn bind(address: &str) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        let listener = std::net::TcpListener::bind(addresses.as_slice())?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener })
    }

    /// The address on which the listener accepts connections.
    ///
    /// # Errors
    /// The system does not report the address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until the future is dropped; needs a runtime.
    ///
    /// # Errors
    /// When the runtime cannot take the socket.
    pub async fn run(
        self,
        receiver: Arc<dyn Receiver>,
        options: ListenerOptions,
    ) -> io::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let connection_slots = ConnectionSlots::new(options.connections);
        let serve = |stream, _, place| serve(stream, Arc::clone(&receiver), options, place);
        let (never, _) =
            accept_until(&listener, &connection_slots, std::future::pending::<Infallible>(), serve)
                .await;
        Ok(never)
    }
}

async fn serve(
    stream: TcpStream,
    receiver: Arc<dyn Receiver>,
    options: ListenerOptions,
    place: ConnectionSlot,
) {
    let service = service_fn(|request| {
        let in_flight = place.asked();
        let receiver = &receiver;
        async move {
            let answer = answer(request, receiver, options).await;
            drop(in_flight);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    serve_until(connection, &place, std::future::pending()).await;
}

async fn answer(
    request: Request<Incoming>,
    receiver: &Arc<dyn Receiver>,
    options: ListenerOptions,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let too_large = || Reply::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large");
    let limit = match receiver.body_limit(&head) {
        Ok(limit) if body.size_hint().lower() > limit as u64 => return written(too_large(), true),
        Ok(limit) => limit,
        // The rest of the body is not read, so this connection cannot be reused.
        Err(reply) => return written(reply, !body.is_end_stream()),
    };
    let body = match tokio::time::timeout(options.body_timeout, Limited::new(body, limit).collect())
        .await
    {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return written(too_large(), true),
        Ok(Err(_)) => {
            return written(Reply::new(StatusCode::BAD_REQUEST, "the request broke off"), true);
        }
        Err(_) => {
            return written(
                Reply::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
                true,
            );
        }
    };
    written(receiver.receive(&head, body), false)
}

fn written(reply: Reply, last: bool) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(reply.body)));
    *answer.status_mut() = reply.status;
    let headers = answer.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    if last {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
