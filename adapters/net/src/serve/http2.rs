//! Serving connections of HTTP/2 [rfc9113].
//!
//! Each request runs in a task. A request whose client does not read the answer ends alone, so that
//! other requests on the connection continue.

use std::error::Error;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Executor, Read, Write};
use hyper::server::conn::http2::Builder;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::TokioTimer;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::serve::accept::serve_until;
use crate::serve::connection_slots::ConnectionSlot;

/// First bytes of a connection of HTTP/2 without TLS [rfc9113 §3.4]. No method of HTTP/1.1 begins with
/// them.
const PREFACE: &[u8] = b"PRI";
/// Pauses before the first bytes are read again, if fewer have arrived: the first, and the longest.
const PREFACE_PAUSE: Duration = Duration::from_millis(10);
const PREFACE_PAUSE_MAX: Duration = Duration::from_millis(500);

/// Most bytes of the body of a request that a client may send before they are read. A connection has
/// space for all its requests, so that unread bodies do not block others.
const RECEIVE_WINDOW_MAX: u32 = 64 * 1024;
/// Most bytes of an answer in the buffer of a request. A frame, and its chunk, may also wait in memory.
const SEND_BUFFER_MAX: usize = 64 * 1024;
/// Most bytes of a body that are sent at a time.
const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Most requests that a client gives up before their answers at a time, and how many more each second.
const GIVEN_UP_MAX: f64 = 100.0;
const GIVEN_UP_A_SECOND: f64 = 10.0;
/// Requests in flight that share the time limit of an answer: a slow line carries them in turn.
const STALL_SHARE: u32 = 8;

/// Limits of a connection of HTTP/2.
#[derive(Clone, Copy, Debug)]
pub struct Http2Limits {
    /// Largest number of requests in flight.
    pub requests: u32,
    /// Most bytes of the headers of a request.
    pub header_bytes: u32,
    /// Time without a request after which the connection is closed.
    pub idle: Duration,
    /// Time after which a request is ended whose client does not read the answer.
    pub stall: Duration,
}

/// Whether a client without TLS speaks HTTP/2, by its first bytes, which remain in the stream.
///
/// # Errors
/// The connection broke or ended before.
pub async fn begins_http2(stream: &TcpStream) -> io::Result<bool> {
    let (mut first, mut pause) = ([0; PREFACE.len()], PREFACE_PAUSE);
    loop {
        let read = stream.peek(&mut first).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if read == PREFACE.len() || first[..read] != PREFACE[..read] {
            return Ok(first == PREFACE);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PREFACE_PAUSE_MAX);
    }
}

/// Serves a connection of HTTP/2 until it ends, is idle for too long, its place is needed or `stop` is
/// done. In the last two cases, requests in flight are completed.
pub async fn serve_http2<I, S, B>(
    stream: I,
    service: S,
    limits: Http2Limits,
    place: &ConnectionSlot,
    stop: impl Future<Output = ()>,
) where
    I: Read + Write + Unpin,
    S: HttpService<Incoming, ResBody = B>,
    S::Future: Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let requests = Arc::new(Requests::default());
    let executor = RequestTasks { stall: limits.stall, requests: Arc::clone(&requests) };
    let service = Mutex::new(service);
    let service = service_fn(|request: Request<Incoming>| {
        let is_head = request.method() == Method::HEAD;
        let answer = service.lock().unwrap_or_else(PoisonError::into_inner).call(request);
        async move {
            let mut answer = answer.await?;
            if is_head {
                set_length(&mut answer);
            }
            Ok::<_, S::Error>(answer.map(|body| Paced::new(body, is_head)))
        }
    });
    let connection = Builder::new(executor)
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.requests)
        .max_header_list_size(limits.header_bytes)
        .initial_stream_window_size(RECEIVE_WINDOW_MAX)
        .initial_connection_window_size(RECEIVE_WINDOW_MAX * limits.requests)
        .max_send_buf_size(SEND_BUFFER_MAX)
        .serve_connection(stream, service);
    let stop = async {
        tokio::select! {
            () = stop => {}
            () = idle(place, limits.idle) => {}
            () = requests.too_many.notified() => {
                tracing::debug!("a client gives up too many requests: its connection ends");
                place.refuse_requests();
            }
        }
    };
    serve_until(connection, place, stop).await;
    let mut tasks = std::mem::take(&mut *requests.tasks());
    tasks.shutdown().await;
}

/// Records that the request of this task waits for changes and does no work, so that its client may give
/// it up.
pub fn may_be_given_up() {
    let _ = OWN_PACE.try_with(|pace| pace.is_answered.store(true, Relaxed));
}

/// Adds the length of the body, which is not sent [rfc9110 §9.3.2].
fn set_length<B: Body>(answer: &mut Response<B>) {
    if let Some(length) = answer.body().size_hint().exact() {
        answer.headers_mut().entry(CONTENT_LENGTH).or_insert(length.into());
    }
}

/// Waits until the connection has had no request for a time, or for up to a quarter longer.
async fn idle(place: &ConnectionSlot, time: Duration) {
    let (mut before, mut quarters) = (place.requests(), 0);
    while quarters < 4 {
        tokio::time::sleep(time / 4).await;
        let requests = place.requests();
        quarters = if requests == before && !place.is_in_flight() { quarters + 1 } else { 0 };
        before = requests;
    }
}

/// The requests of a connection.
#[derive(Debug, Default)]
struct Requests {
    tasks: Mutex<JoinSet<()>>,
    running: AtomicU32,
    given_up: Mutex<GivenUp>,
    too_many: Notify,
}

/// Requests that the client gave up before their answers.
#[derive(Debug, Default)]
struct GivenUp {
    /// The number of these requests, which becomes smaller over time.
    count: f64,
    last: Option<Instant>,
}

impl Requests {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that was given up.
    fn gave_up(&self) {
        let mut given_up = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        if given_up.is_one_too_many(Instant::now()) {
            self.too_many.notify_one();
        }
    }
}

impl GivenUp {
    fn is_one_too_many(&mut self, now: Instant) -> bool {
        let passed = self.last.map_or(Duration::ZERO, |last| now.duration_since(last));
        self.last = Some(now);
        self.count = (self.count - passed.as_secs_f64() * GIVEN_UP_A_SECOND).max(0.0) + 1.0;
        self.count > GIVEN_UP_MAX
    }
}

/// Runs each request in a task.
#[derive(Clone, Debug)]
struct RequestTasks {
    stall: Duration,
    requests: Arc<Requests>,
}

impl<F> Executor<F> for RequestTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, request: F) {
        let Self { stall, requests } = self.clone();
        let mut tasks = self.requests.tasks();
        // Remove finished tasks.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let pace = Arc::new(Pace::default());
            requests.running.fetch_add(1, Relaxed);
            run(request, &pace, &|| stall * (requests.running.load(Relaxed) / STALL_SHARE + 1))
                .await;
            requests.running.fetch_sub(1, Relaxed);
            if !pace.is_answered.load(Relaxed) {
                requests.gave_up();
            }
        });
    }
}

/// Runs a request to its end, or until its client does not read for too long: when the request is
/// dropped, its stream is reset.
async fn run(
    request: impl Future<Output = ()>,
    pace: &Arc<Pace>,
    stall: &(dyn Fn() -> Duration + Sync),
) {
    let mut request = pin!(OWN_PACE.scope(Arc::clone(pace), request));
    loop {
        let left = stall().saturating_sub(pace.waits().unwrap_or_default());
        if tokio::time::timeout(left, request.as_mut()).await.is_ok() {
            return;
        }
        if pace.waits().is_some_and(|waits| waits >= stall()) {
            tracing::debug!("a client does not read its answer");
            return;
        }
    }
}

tokio::task_local! {
    /// The pace of the request that runs in this task.
    static OWN_PACE: Arc<Pace>;
}

/// Records whether a request waits for its client.
#[derive(Debug, Default)]
struct Pace {
    is_answered: AtomicBool,
    /// Time since which a part of the body waits until the client can receive it.
    waits_since: Mutex<Option<Instant>>,
}

impl Pace {
    /// How long a part of the body has waited for the client.
    fn waits(&self) -> Option<Duration> {
        Some(self.lock().as_ref()?.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.waits_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body in small frames, which records whether the client reads it.
struct Paced<B> {
    body: B,
    /// The rest of a frame of `body`.
    rest: Bytes,
    /// The body is not sent, because the method is HEAD.
    is_left_out: bool,
    pace: Option<Arc<Pace>>,
}

impl<B> Paced<B> {
    fn new(body: B, is_left_out: bool) -> Self {
        let pace = OWN_PACE.try_with(Arc::clone).ok();
        if let Some(pace) = &pace {
            pace.is_answered.store(true, Relaxed);
        }
        Self { body, rest: Bytes::new(), is_left_out, pace }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Paced<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        // The next frame is wanted when the frame before it is sent.
        if let Some(pace) = &this.pace {
            *pace.lock() = None;
        }
        let mut frame = if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        } else {
            std::mem::take(&mut this.rest)
        };
        this.rest = frame.split_off(frame.len().min(FRAME_BYTES_MAX));
        if this.rest.is_empty() && frame.len() > 1 && this.body.is_end_stream() {
            // The last byte is sent only when the client receives all others. Until then, the request
            // is in flight.
            this.rest = Bytes::copy_from_slice(&frame.split_off(frame.len() - 1));
        }
        if let Some(pace) = &this.pace {
            *pace.lock() = Some(Instant::now());
        }
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_left_out || (self.rest.is_empty() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() {
            return self.body.size_hint();
        }
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_may_be_given_up_slowly() {
        let (mut given_up, begun) = (GivenUp::default(), Instant::now());
        for number in 0..100 {
            assert!(!given_up.is_one_too_many(begun), "{number}");
        }
        assert!(given_up.is_one_too_many(begun));
        let mut slow = GivenUp::default();
        for number in 0..1_000 {
            assert!(!slow.is_one_too_many(begun + Duration::from_millis(100) * number), "{number}");
        }
    }
}
