//! Accepting the connections of a server: as long as there are places. Each connection is served
//! until it ends or its place is needed.

use std::error::Error;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::{Body, Incoming};
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::HttpService;
use metrics::counter;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::serve::connection_slots::{CloseWhen, ConnectionSlot, ConnectionSlots};

/// Pause after a connection could not be accepted, usually because the process has too many open
/// files.
const PAUSE: Duration = Duration::from_millis(100);
/// Least time between two messages that connections cannot be accepted.
const LOG_PAUSE: Duration = Duration::from_secs(60);
/// How long a connection without a request in flight stays open after the server was stopped, so
/// that the rest of a response can be sent. A request whose header is incomplete is dropped then.
const STOP_PAUSE: Duration = Duration::from_millis(500);

/// Accepts connections until `stop` is done; each runs in a task. Returns the result of `stop` and
/// the running tasks.
pub async fn accept_until<T, F>(
    listener: &TcpListener,
    connection_slots: &Arc<ConnectionSlots>,
    stop: impl Future<Output = T>,
    mut serve: impl FnMut(TcpStream, IpAddr, ConnectionSlot) -> F,
) -> (T, JoinSet<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut stop = std::pin::pin!(stop);
    let mut logged: Option<Instant> = None;
    let mut connections = JoinSet::new();
    // Each client waits in its own task, so that a client without a place does not delay the
    // others.
    let mut waiting = JoinSet::new();
    let waiting_max = connection_slots.waiting_max();
    loop {
        let accepted = tokio::select! {
            biased;
            stopped = stop.as_mut() => return (stopped, connections),
            Some(entered) = waiting.join_next() => {
                if let Ok((stream, client, place)) = entered {
                    drop(connections.spawn(serve(stream, client, place)));
                }
                continue;
            }
            accepted = listener.accept(), if waiting.len() < waiting_max => accepted,
        };
        // Remove finished tasks.
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, client)) => {
                let _ = stream.set_nodelay(true);
                let client = client.ip();
                if let Some(place) = connection_slots.try_enter(client) {
                    drop(connections.spawn(serve(stream, client, place)));
                } else if waiting.len() * 2 < waiting_max
                    || connection_slots.may_wait(client, waiting.len())
                {
                    let connection_slots = Arc::clone(connection_slots);
                    waiting.spawn(async move {
                        let place = connection_slots.enter(client).await;
                        (stream, client, place)
                    });
                } else {
                    // The client's address has too many places already; the waiting connections are
                    // from other addresses.
                    counter!("abreast_connections_refused_total").increment(1);
                }
            }
            Err(error) => {
                counter!("abreast_accept_errors_total").increment(1);
                // The error repeats until other connections end: log it once a minute.
                if logged.is_none_or(|at| at.elapsed() >= LOG_PAUSE) {
                    logged = Some(Instant::now());
                    tracing::warn!(
                        "cannot accept connections: {error}; they wait until others end"
                    );
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The connection of a client, which can end after the requests in flight.
pub trait ServerConnection: Future<Output = hyper::Result<()>> {
    /// Whether requests may begin after [`Self::finish`], until the client knows of the end.
    const IS_SHARED: bool;

    /// Ends the connection when the requests in flight are complete.
    fn finish(self: Pin<&mut Self>);
}

impl<I, S, B> ServerConnection for http1::Connection<I, S>
where
    I: Read + Write + Unpin,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    const IS_SHARED: bool = false;

    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, B, E> ServerConnection for http2::Connection<I, S, E>
where
    I: Read + Write + Unpin,
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    E: Http2ServerConnExec<S::Future, B>,
{
    const IS_SHARED: bool = true;

    fn finish(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Serves a connection until it ends, its place is needed or `stop` is done. In the last two cases,
/// requests in flight are completed.
pub async fn serve_until<C: ServerConnection>(
    connection: C,
    place: &ConnectionSlot,
    stop: impl Future<Output = ()>,
) {
    let mut connection = std::pin::pin!(connection);
    let mut must_leave = false;
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop => None,
        leave = place.leave() => {
            if leave == CloseWhen::Now {
                return;
            }
            must_leave = true;
            None
        }
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        if must_leave && C::IS_SHARED {
            place.refuse_requests();
        }
        connection.as_mut().finish();
        loop {
            // A client need not confirm the end.
            tokio::select! {
                ended = connection.as_mut() => break ended,
                () = place.force(), if must_leave => return,
                () = tokio::time::sleep(STOP_PAUSE) => {
                    if !place.is_in_flight() {
                        return;
                    }
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended early: {error}");
    }
}
