//! A second server for operators: `/livez`, `/readyz`, `/metrics` and `/status` of any program, on an
//! address or on a socket of the file system. It changes nothing.

use crate::message::respond::{Answer, problem, text};
use abreast_net::{ConnectionSlot, ConnectionSlots, accept_until, serve_until};
use http::header::{ALLOW, AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sha2::{Digest as _, Sha256};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

/// Most connections to an address.
const CONNECTIONS: usize = 32;
/// Most connections to all sockets of the file system.
const SOCKET_CONNECTIONS: usize = 16;
/// Most threads that make answers.
const THREADS: usize = 4;
/// Time limit for the header of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for a connection to a socket of the file system.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of a request's line and headers together.
const MAX_HEAD: usize = 16 * 1024;
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time limit for answers when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// A program that reports to its operators. The functions may read stores, and must not
/// wait for anything that has no time limit.
pub trait Observed: Send + Sync + 'static {
    /// A text on the program, as an error if it hangs.
    ///
    /// # Errors
    /// The program hangs, with the reason.
    fn live(&self) -> Result<String, String>;

    /// A text on the work of the program, as an error if it cannot do its work.
    ///
    /// # Errors
    /// The program cannot do its work, with the reason.
    fn ready(&self) -> Result<String, String>;

    /// The metrics in the text format of Prometheus.
    fn metrics(&self) -> String;

    /// The status of the program in JSON.
    fn status(&self) -> String;
}

/// A thread that answers operators until this is dropped.
pub struct AdminServer {
    handle: Handle,
    stop: watch::Sender<bool>,
    sockets: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Starts the thread, which listens nowhere yet.
    ///
    /// # Errors
    /// The system does not start a thread.
    pub fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS)
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopping) = watch::channel(false);
        let run = move || {
            runtime.block_on(stopped(stopping));
            runtime.shutdown_timeout(STOP_TIMEOUT);
        };
        let thread = std::thread::Builder::new().name("admin".into()).spawn(run)?;
        let sockets = Arc::new(Semaphore::new(SOCKET_CONNECTIONS));
        Ok(Self { handle, stop, sockets, thread: Some(thread) })
    }

    /// Answers on an address; with a token, only requests that have it.
    ///
    /// # Errors
    /// The socket cannot be used without blocking.
    pub fn answer_at(
        &self,
        listener: std::net::TcpListener,
        token: Option<String>,
        observed: Arc<dyn Observed>,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let _context = self.handle.enter();
        let listener = TcpListener::from_std(listener)?;
        let stop = self.stop.subscribe();
        let shared = Arc::new(Shared { observed, token });
        self.handle.spawn(async move {
            let slots = ConnectionSlots::new(CONNECTIONS);
            let serve =
                |stream, _, slot| at_address(stream, Arc::clone(&shared), stop.clone(), slot);
            accept_until(&listener, &slots, stopped(stop.clone()), serve).await;
        });
        Ok(())
    }

    /// Answers on a socket of the file system, to this user and to root.
    ///
    /// # Errors
    /// The socket cannot be used without blocking.
    pub fn answer_on(
        &self,
        listener: std::os::unix::net::UnixListener,
        observed: Arc<dyn Observed>,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let _context = self.handle.enter();
        let listener = UnixListener::from_std(listener)?;
        let shared = Arc::new(Shared { observed, token: None });
        let sockets = Arc::clone(&self.sockets);
        self.handle.spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) if is_allowed(&stream) => {
                        // Not before: a socket that waits for a client would hold a place of the others.
                        let Ok(slot) = Arc::clone(&sockets).acquire_owned().await else { return };
                        let shared = Arc::clone(&shared);
                        tokio::spawn(async move {
                            let _slot = slot;
                            let served = on_socket(stream, shared);
                            let _ = tokio::time::timeout(SOCKET_TIMEOUT, served).await;
                        });
                    }
                    Ok(_) => {}
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                }
            }
        });
        Ok(())
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Shared {
    observed: Arc<dyn Observed>,
    token: Option<String>,
}

/// Waits until the server must stop, or the sender is dropped.
async fn stopped(mut stop: watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Whether the other end of a socket is a process of this user or of root.
fn is_allowed(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == own)
}

async fn at_address(
    stream: TcpStream,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
    slot: ConnectionSlot,
) {
    let service = service_fn(|request| {
        let in_flight = slot.asked();
        let answer = answer(Arc::clone(&shared), request);
        async move {
            let _in_flight = in_flight;
            Ok::<_, io::Error>(answer.await)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    serve_until(connection, &slot, stopped(stop)).await;
}

async fn on_socket(stream: UnixStream, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let answer = answer(Arc::clone(&shared), request);
        async move { Ok::<_, io::Error>(answer.await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a connection of an operator ended early: {error}");
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer =
            problem(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    let given = request.headers().get(AUTHORIZATION);
    if shared.token.as_ref().is_some_and(|token| !is_token(token, given)) {
        let help = "this address needs the token of --admin-token-file (help: `Authorization: Bearer TOKEN`)";
        let mut answer = problem(StatusCode::UNAUTHORIZED, help);
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
    let path = request.uri().path().to_owned();
    let made = tokio::task::spawn_blocking(move || answer_to(&path, &*shared.observed));
    made.await.unwrap_or_else(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "the answer failed"))
}

fn answer_to(path: &str, observed: &dyn Observed) -> Answer {
    const PLAIN: &str = "text/plain; charset=utf-8";
    let state = |state: Result<String, String>| match state {
        Ok(body) => text(PLAIN, body),
        Err(reason) => {
            let mut answer = text(PLAIN, reason);
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
            answer
        }
    };
    match path {
        "/livez" => state(observed.live()),
        "/readyz" => state(observed.ready()),
        "/metrics" => text("text/plain; version=0.0.4; charset=utf-8", observed.metrics()),
        "/status" => text("application/json", observed.status()),
        _ => problem(
            StatusCode::NOT_FOUND,
            "the paths here are /livez, /readyz, /metrics and /status",
        ),
    }
}

/// Whether a header has the token. The time of the comparison does not depend on the token.
fn is_token(token: &str, given: Option<&HeaderValue>) -> bool {
    let Some((scheme, given)) = given.and_then(|value| value.to_str().ok()?.split_once(' ')) else {
        return false;
    };
    scheme.eq_ignore_ascii_case("bearer")
        && Sha256::digest(given.trim().as_bytes()) == Sha256::digest(token.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Observed for Silent {
        fn live(&self) -> Result<String, String> {
            Ok("alive\n".to_owned())
        }

        fn ready(&self) -> Result<String, String> {
            Ok("ready\n".to_owned())
        }

        fn metrics(&self) -> String {
            String::new()
        }

        fn status(&self) -> String {
            "{}".to_owned()
        }
    }

    #[test]
    fn more_sockets_than_places_all_answer() {
        use std::io::{Read as _, Write as _};
        let place = tempfile::tempdir().unwrap();
        let server = AdminServer::start().unwrap();
        let paths: Vec<_> = (0..40).map(|number| place.path().join(number.to_string())).collect();
        for path in &paths {
            let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
            server.answer_on(listener, Arc::new(Silent)).unwrap();
        }
        for path in paths.iter().chain(&paths) {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream
                .write_all(b"GET /status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.contains("{}"), "{}: {answer}", path.display());
        }
    }

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let of = |text: &'static str| is_token("secret", Some(&HeaderValue::from_static(text)));
        assert!(of("Bearer secret") && of("bearer  secret"));
        for wrong in ["secret", "Bearer", "Bearer secre", "Bearer secrets", "Basic secret", ""] {
            assert!(!of(wrong), "{wrong}");
        }
        assert!(!is_token("secret", None));
    }
}
