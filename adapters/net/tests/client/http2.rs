//! Servers that speak HTTP/2.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abreast_net::{Client, Options, Post, Request};
use abreast_testkit::http::Server;
use abreast_testkit::tls::{Authority, Certificate};
use bytes::Bytes;
use h2::Reason;
use h2::server::{Connection, SendResponse};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::{client, get, quick};

const URL: &str = "https://museum.example/";

type Requests = Connection<TlsStream<TcpStream>, Bytes>;
type Answer = SendResponse<Bytes>;

/// A certificate, and a client's options with its authority.
pub(crate) struct Trust {
    pub(crate) certificate: Certificate,
    pub(crate) roots: PathBuf,
    _folder: TempDir,
}

impl Trust {
    fn new() -> Self {
        Self::of("museum.example")
    }

    /// The certificate of this host.
    pub(crate) fn of(host: &str) -> Self {
        let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
        let roots = folder.path().join("roots.pem");
        std::fs::write(&roots, authority.pem()).unwrap();
        let certificate = authority.server(&[host], false);
        Self { certificate, roots, _folder: folder }
    }

    fn options(&self, address: SocketAddr) -> Options {
        Options {
            extra_roots: Some(self.roots.clone()),
            connect_to: vec![("museum.example:443".into(), address)],
            streams_per_host: 64,
            ..quick()
        }
    }

    /// Serves each connection by a function, which gets the number of the connection.
    pub(crate) async fn serve<F, S>(&self, serve: F) -> (SocketAddr, Arc<AtomicUsize>)
    where
        F: Fn(usize, Requests) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept = TlsAcceptor::from(self.certificate.speaking(&["h2"]));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            let serve = Arc::new(serve);
            while let Ok((stream, _)) = listener.accept().await {
                let (accept, serve) = (accept.clone(), Arc::clone(&serve));
                let number = counted.fetch_add(1, SeqCst);
                tokio::spawn(async move {
                    let Ok(stream) = accept.accept(stream).await else { return };
                    let Ok(requests) = h2::server::handshake(stream).await else { return };
                    serve(number, requests).await;
                });
            }
        });
        (address, connections)
    }
}

impl Trust {
    /// Serves by the chosen protocol, and records it.
    pub(crate) async fn serve_either(
        &self,
        protocols: &[&str],
    ) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept = TlsAcceptor::from(self.certificate.speaking(protocols));
        let chosen = Arc::<Mutex<Vec<String>>>::default();
        let choices = Arc::clone(&chosen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = accept.accept(stream).await.unwrap();
                let protocol = stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec();
                let protocol = String::from_utf8(protocol).unwrap();
                choices.lock().unwrap().push(protocol.clone());
                tokio::spawn(async move {
                    if protocol == "h2" {
                        let requests = h2::server::handshake(stream).await.unwrap();
                        answer_all(requests, |_, to| answer(to, "either")).await;
                        return;
                    }
                    let mut buffer = vec![0; 4_096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\neither";
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        (address, chosen)
    }
}

/// Answers with a body, in one piece if the window allows.
pub(crate) async fn answer(mut to: Answer, body: impl Into<Bytes>) {
    let mut body: Bytes = body.into();
    let head = http::Response::builder().header("content-length", body.len()).body(()).unwrap();
    let Ok(mut stream) = to.send_response(head, body.is_empty()) else { return };
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let Some(Ok(most)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else {
            return;
        };
        let part = body.split_to(most.min(body.len()));
        let is_last = body.is_empty();
        if stream.send_data(part, is_last).is_err() {
            return;
        }
    }
}

/// Answers each request in a task.
pub(crate) async fn answer_all<A: Future<Output = ()> + Send + 'static>(
    mut requests: Requests,
    each: impl Fn(http::Request<h2::RecvStream>, Answer) -> A,
) {
    while let Some(Ok((request, to))) = requests.accept().await {
        tokio::spawn(each(request, to));
    }
}

async fn get_together(client: &Client, count: usize) {
    let mut all = tokio::task::JoinSet::new();
    for number in 0..count {
        let client = client.clone();
        all.spawn(async move { get(&client, &format!("{URL}{number}")).await.unwrap().1 });
    }
    while let Some(body) = all.join_next().await {
        assert_eq!(body.unwrap(), b"together");
    }
}

#[tokio::test]
async fn requests_of_a_client_share_a_connection() {
    const REQUESTS: usize = 50;
    let trust = Trust::new();
    // No request is answered before all are there.
    let all = Arc::new(Barrier::new(REQUESTS));
    let (address, connections) = trust
        .serve(move |_, requests| {
            let all = Arc::clone(&all);
            answer_all(requests, move |request, to| {
                assert_eq!(request.uri().authority().unwrap(), "museum.example");
                assert!(!request.headers().contains_key("host"));
                let all = Arc::clone(&all);
                async move {
                    all.wait().await;
                    answer(to, "together").await;
                }
            })
        })
        .await;
    let client = client(trust.options(address));
    assert!(!client.shared().takes_many());
    get_together(&client, REQUESTS).await;
    assert_eq!(connections.load(SeqCst), 1);
    assert!(client.shared().takes_many());
    assert_eq!(client.shared().counters().requests, REQUESTS as u64);
}

#[tokio::test]
async fn limits_count_requests_and_not_connections() {
    let trust = Trust::new();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let found = Arc::clone(&most);
    let (address, connections) = trust
        .serve(move |_, requests| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            answer_all(requests, move |_, to| {
                let (running, most) = (Arc::clone(&running), Arc::clone(&most));
                async move {
                    most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    running.fetch_sub(1, SeqCst);
                    answer(to, "together").await;
                }
            })
        })
        .await;
    let options = trust.options(address);
    let options = Options { connections_per_host: 2, streams_per_host: 5, ..options };
    get_together(&client(options), 30).await;
    assert_eq!((found.load(SeqCst), connections.load(SeqCst)), (5, 1));
}

#[tokio::test]
async fn large_bodies_and_dropped_ones_leave_the_connection_usable() {
    const LENGTH: usize = 30 << 20;
    let trust = Trust::new();
    let (address, connections) = trust
        .serve(|_, requests| answer_all(requests, |_, to| answer(to, vec![b'x'; LENGTH])))
        .await;
    let client = client(trust.options(address));
    for _ in 0..20 {
        let mut begun = client.send(&Request::new(URL)).await.unwrap();
        assert!(!begun.chunk().await.unwrap().unwrap().is_empty());
    }
    let mut whole = client.send(&Request::new(URL)).await.unwrap();
    let mut length = 0;
    while let Some(part) = whole.chunk().await.unwrap() {
        length += part.len();
    }
    assert_eq!((length, connections.load(SeqCst)), (LENGTH, 1));
    let mut limited = client.send(&Request::new(URL)).await.unwrap();
    let error = limited.read_to(&mut Vec::new(), 1_000).await.unwrap_err();
    assert_eq!(error.code(), "http.size");
    assert_eq!(connections.load(SeqCst), 1);
}

#[tokio::test]
async fn refused_requests_are_sent_again() {
    let trust = Trust::new();
    let refused = Arc::new(AtomicUsize::new(0));
    let (address, connections) = trust
        .serve(move |_, requests| {
            let refused = Arc::clone(&refused);
            answer_all(requests, move |_, mut to| {
                let is_refused = refused.fetch_add(1, SeqCst) % 2 == 1;
                async move {
                    if is_refused {
                        return to.send_reset(Reason::REFUSED_STREAM);
                    }
                    answer(to, "answered").await;
                }
            })
        })
        .await;
    let client = client(trust.options(address));
    for _ in 0..4 {
        assert_eq!(get(&client, URL).await.unwrap().1, b"answered");
    }
    let counters = client.shared().counters();
    assert_eq!((counters.requests, counters.retries, connections.load(SeqCst)), (7, 3, 1));
}

#[tokio::test]
async fn a_connection_that_the_server_ends_is_replaced() {
    let trust = Trust::new();
    let (address, connections) = trust
        .serve(|number, mut requests| async move {
            // The odd connections end without notice.
            for _ in 0..3 {
                let Some(Ok((_, to))) = requests.accept().await else { return };
                tokio::spawn(answer(to, "answered"));
            }
            if number % 2 == 0 {
                requests.graceful_shutdown();
                while requests.accept().await.is_some() {}
            }
        })
        .await;
    let client = client(trust.options(address));
    for _ in 0..12 {
        assert_eq!(get(&client, URL).await.unwrap().1, b"answered");
    }
    let used = connections.load(SeqCst);
    assert!((4..=6).contains(&used), "{used} connections");
}

/// A server that resets each request of HTTP/2, and answers those of HTTP/1.1.
async fn serve_both(trust: &Trust, reset: Reason) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accept = TlsAcceptor::from(trust.certificate.speaking(&["h2", "http/1.1"]));
    let resets = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&resets);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (accept, counted) = (accept.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                let Ok(stream) = accept.accept(stream).await else { return };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let Ok(mut requests) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((_, mut to))) = requests.accept().await {
                        counted.fetch_add(1, SeqCst);
                        to.send_reset(reset);
                    }
                    return;
                }
                let service = hyper::service::service_fn(async |_| {
                    let body = http_body_util::Full::new(Bytes::from_static(b"by HTTP/1.1"));
                    Ok::<_, std::convert::Infallible>(http::Response::new(body))
                });
                let io = hyper_util::rt::TokioIo::new(stream);
                drop(
                    hyper::server::conn::http1::Builder::new().serve_connection(io, service).await,
                );
            });
        }
    });
    (address, resets)
}

#[tokio::test]
async fn a_server_may_require_http_1_1() {
    let trust = Trust::new();
    let (address, resets) = serve_both(&trust, Reason::HTTP_1_1_REQUIRED).await;
    let client = client(trust.options(address));
    let body = Bytes::from_static(b"x");
    let post = Post { content_type: "text/plain", body: &body, idempotency_key: None };
    let posted = Request { post: Some(post), ..Request::new(URL) };
    // The request was not processed, so that it is sent again whatever it is.
    assert_eq!(client.send(&posted).await.unwrap().status(), 200);
    for _ in 0..3 {
        assert_eq!(get(&client, URL).await.unwrap().1, b"by HTTP/1.1");
    }
    assert_eq!(resets.load(SeqCst), 1);
}

#[tokio::test]
async fn http_2_can_be_disabled() {
    let trust = Trust::new();
    let (address, resets) = serve_both(&trust, Reason::INTERNAL_ERROR).await;
    let options = Options { http2: false, ..trust.options(address) };
    assert_eq!(get(&client(options), URL).await.unwrap().1, b"by HTTP/1.1");
    assert_eq!(resets.load(SeqCst), 0);
    let error = get(&client(trust.options(address)), URL).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("http.truncated", true), "{error}");
}

#[tokio::test]
async fn errors_of_http_2_have_the_codes_of_http_1_1() {
    let trust = Trust::new();
    for (reason, code, words) in [
        (Reason::REFUSED_STREAM, "http.truncated", "refused"),
        (Reason::ENHANCE_YOUR_CALM, "http.truncated", "too many"),
        (Reason::CANCEL, "http.truncated", "too early"),
        (Reason::FLOW_CONTROL_ERROR, "http.protocol", "HTTP/2"),
    ] {
        let (address, _) = serve_both(&trust, reason).await;
        let error = get(&client(trust.options(address)), URL).await.unwrap_err();
        assert_eq!(error.code(), code, "{reason:?}: {error}");
        assert!(error.to_string().contains(words), "{reason:?}: {error}");
    }
}

#[tokio::test]
async fn a_body_that_is_shorter_than_its_length_is_incomplete() {
    let trust = Trust::new();
    let (address, connections) = trust
        .serve(|_, requests| {
            answer_all(requests, |_, mut to| async move {
                let head = http::Response::builder().header("content-length", 10).body(()).unwrap();
                let mut stream = to.send_response(head, false).unwrap();
                stream.send_data(Bytes::from_static(b"short"), true).unwrap();
            })
        })
        .await;
    let client = client(trust.options(address));
    for _ in 0..2 {
        let error = get(&client, URL).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("http.truncated", true), "{error}");
    }
    assert_eq!(connections.load(SeqCst), 1);
}

#[tokio::test]
async fn a_silent_connection_is_given_up() {
    let trust = Trust::new();
    let (address, connections) = trust
        .serve(|number, requests| {
            answer_all(requests, move |_, to| async move {
                if number == 0 {
                    std::future::pending::<()>().await;
                }
                answer(to, "answered").await;
            })
        })
        .await;
    let options = trust.options(address);
    let client = client(Options { idle_timeout: Duration::from_millis(300), ..options });
    let error = get(&client, URL).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.timeout", true), "{error}");
    assert_eq!(get(&client, URL).await.unwrap().1, b"answered");
    assert_eq!(connections.load(SeqCst), 2);
}

#[tokio::test]
async fn a_request_is_given_up_although_others_are_answered() {
    let trust = Trust::new();
    let (address, _) = trust
        .serve(|_, requests| {
            answer_all(requests, |request, to| async move {
                if request.uri().path() == "/lost" {
                    std::future::pending::<()>().await;
                }
                answer(to, "answered").await;
            })
        })
        .await;
    let options = trust.options(address);
    let client = client(Options { idle_timeout: Duration::from_millis(100), ..options });
    let others = async {
        loop {
            assert_eq!(get(&client, URL).await.unwrap().1, b"answered");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let lost = format!("{URL}lost");
    let error = tokio::select! {
        lost = get(&client, &lost) => lost.unwrap_err(),
        () = others => unreachable!(),
    };
    assert_eq!((error.code(), error.is_transient()), ("net.timeout", true), "{error}");
}

/// A server that writes these bytes after the TLS handshake, as a server of HTTP/2.
fn writing(config: Arc<ServerConfig>, bytes: Vec<u8>) -> Server {
    Server::raw(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = StreamOwned::new(connection, stream);
        if tls.write_all(&bytes).and_then(|()| tls.flush()).is_ok() {
            // Until the client leaves.
            while matches!(tls.read(&mut [0; 1_024]), Ok(length) if length > 0) {}
        }
    })
}

/// A frame of HTTP/2 [rfc9113 §4.1].
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    let head = [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes()[..]].concat();
    [&head, payload].concat()
}

#[tokio::test]
async fn hostile_servers_are_refused() {
    let trust = Trust::new();
    let settings = || frame(4, 0, 0, &[]);
    let endless = || {
        // A header block that never ends: `HEADERS`, then `CONTINUATION` again and again.
        let mut bytes = [settings(), frame(1, 0, 1, &[0x88])].concat();
        for _ in 0..2_000 {
            bytes.extend(frame(9, 0, 1, &[0; 1_000]));
        }
        bytes
    };
    for (what, bytes, code) in [
        ("no HTTP", b"220 mail.example ESMTP\r\n\r\n".to_vec(), "http.protocol"),
        ("HTTP/1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), "http.protocol"),
        ("an endless head", endless(), "http.protocol"),
        ("a frame for no stream", [settings(), frame(0, 0, 7, b"x")].concat(), "http.protocol"),
        (
            "a large frame",
            [settings(), frame(0, 0, 1, &vec![0; 1 << 20])].concat(),
            "http.protocol",
        ),
        ("a broken head", [settings(), frame(1, 4, 1, &[0xff; 20])].concat(), "http.protocol"),
        ("a promise", [settings(), frame(5, 4, 1, &[0, 0, 0, 2, 0x88])].concat(), "http.protocol"),
    ] {
        let server = writing(trust.certificate.speaking(&["h2"]), bytes);
        let options =
            Options { idle_timeout: Duration::from_secs(2), ..trust.options(server.address()) };
        let error = get(&client(options), URL).await.unwrap_err();
        assert_eq!(error.code(), code, "{what}: {error}");
    }
}

/// A server that writes the first bytes after the TLS handshake, and then the others again and again.
fn repeating(config: Arc<ServerConfig>, first: Vec<u8>, again: Vec<u8>) -> Server {
    Server::raw(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut tls = StreamOwned::new(connection, stream);
        // The frames are for a stream, which the request opens.
        let mut opened = tls.write_all(&frame(4, 0, 0, &[])).and_then(|()| tls.flush());
        opened = opened.and_then(|()| tls.read(&mut [0; 4_096]).map(|_| ()));
        std::thread::sleep(Duration::from_millis(50));
        let mut written = opened.and_then(|()| tls.write_all(&first));
        while written.is_ok() {
            written = tls.write_all(&again).and_then(|()| tls.flush());
            std::thread::sleep(Duration::from_millis(2));
        }
    })
}

#[tokio::test]
async fn frames_that_are_no_answer_do_not_prevent_time_limits() {
    let trust = Trust::new();
    // `:status` with 103 and with 200, by an index of the table of names, and by one of the whole.
    let (early_hints, ok): (&[u8], &[u8]) = (&[0x08, 0x03, b'1', b'0', b'3'], &[0x88]);
    for (what, first, again) in [
        ("interim responses", Vec::new(), frame(1, 4, 1, early_hints)),
        ("pings", Vec::new(), frame(6, 0, 0, &[0; 8])),
        ("settings", Vec::new(), frame(4, 0, 0, &[])),
        ("windows", Vec::new(), frame(8, 0, 0, &[0, 0, 0, 1])),
        ("unknown frames", Vec::new(), frame(0xfa, 0, 0, &[0; 2_000])),
        ("empty pieces of a body", frame(1, 4, 1, ok), frame(0, 0, 1, &[])),
    ] {
        let server = repeating(trust.certificate.speaking(&["h2"]), first, again);
        let options =
            Options { idle_timeout: Duration::from_millis(150), ..trust.options(server.address()) };
        let ended = tokio::time::timeout(Duration::from_secs(20), get(&client(options), URL)).await;
        let error = ended.unwrap_or_else(|_| panic!("{what}: no end")).unwrap_err();
        assert!(["net.timeout", "http.protocol"].contains(&error.code()), "{what}: {error}");
    }
}
