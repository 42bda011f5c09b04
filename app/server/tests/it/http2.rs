//! Connections of HTTP/2 without TLS: the same answers as by HTTP/1.1, and the same limits.

use crate::world::{Served, World};
use abreast_server::ServerOptions;
use abreast_testkit::eventually;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, StatusCode, Version};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const LARGE: usize = 4 << 20;

fn serve(options: ServerOptions) -> (World, Served) {
    let world = World::new();
    world.write("a", "public");
    world.write("large", vec![b'x'; LARGE]);
    world.publish();
    let served = world.serve_with(options);
    (world, served)
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    runtime.block_on(test).expect("the test ends in a minute");
}

/// A connection of a client, and the task that drives it: its result is the end of the connection.
struct Connection {
    requests: SendRequest<Bytes>,
    driver: JoinHandle<Result<(), h2::Error>>,
}

struct Answer {
    head: http::response::Parts,
    body: Vec<u8>,
}

impl Connection {
    /// With this many bytes of an answer that the server may send before they are read.
    async fn open(served: &Served, window: u32) -> Self {
        let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
        let (requests, connection) = h2::client::Builder::new()
            .initial_window_size(window)
            .initial_connection_window_size(64 << 20)
            .handshake(stream)
            .await
            .unwrap();
        let driver = tokio::spawn(connection);
        Self { requests, driver }
    }

    async fn send(&self, request: Request<()>, ends: bool) -> (ResponseFuture, SendStream<Bytes>) {
        let mut requests = self.requests.clone().ready().await.unwrap();
        requests.send_request(request, ends).unwrap()
    }

    async fn ask(&self, method: Method, path: &str) -> Answer {
        self.send(request(method, path), true).await.0.await.map(read).unwrap().await.unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path).await
    }
}

fn request(method: Method, path: &str) -> Request<()> {
    let uri = format!("http://example.org{path}");
    Request::builder().method(method).uri(uri).version(Version::HTTP_2).body(()).unwrap()
}

async fn read(answer: http::Response<RecvStream>) -> Result<Answer, h2::Error> {
    let (head, mut stream) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(Answer { head, body })
}

#[test]
fn answers_are_the_same_as_by_http_1_1() {
    let (_world, served) = serve(ServerOptions::default());
    run(async {
        let connection = Connection::open(&served, 65_535).await;
        for (method, path) in [
            ("GET", "/"),
            ("GET", "/.well-known/resourcesync"),
            ("GET", "/set/capabilitylist.xml"),
            ("GET", "/set/resourcelist.xml"),
            ("GET", "/set/r/a"),
            ("GET", "/set/r/large"),
            ("HEAD", "/set/r/a"),
            ("GET", "/set/r/missing"),
            ("GET", "/set"),
            ("POST", "/set/r/a"),
            ("OPTIONS", "/set/r/a"),
            ("GET", "/hub"),
            ("GET", "/api/v1/sets"),
            ("GET", "/admin/"),
            ("GET", "/livez"),
        ] {
            let old = served.ask(method, path, &[]);
            let new = connection.ask(method.parse().unwrap(), path).await;
            assert_eq!(new.head.status.as_u16(), old.status, "{method} {path}");
            assert_eq!(new.head.version, Version::HTTP_2);
            assert!(new.body == old.body, "{method} {path}");
            // `Date` may differ, and HTTP/2 has no fields of the connection.
            let fields = |fields: Vec<(String, String)>| -> Vec<_> {
                let mut kept: Vec<_> = fields
                    .into_iter()
                    .filter(|(name, _)| name != "date" && name != "connection")
                    .collect();
                kept.sort();
                kept
            };
            let new = new.head.headers.iter().map(|(name, value)| {
                (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
            });
            let (new, old) = (fields(new.collect()), fields(old.headers));
            let is_empty =
                |(name, value): &(String, String)| name == "content-length" && value == "0";
            let without_empty = |fields: Vec<(String, String)>| -> Vec<_> {
                fields.into_iter().filter(|field| !is_empty(field)).collect()
            };
            assert_eq!(without_empty(new), without_empty(old), "{method} {path}");
        }
    });
}

#[test]
fn methods_that_begin_like_the_preface_are_http_1_1() {
    let (_world, served) = serve(ServerOptions::default());
    for (first, rest) in [("P", "OST"), ("PR", "OPFIND"), ("PRI", "NT")] {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let _ = stream.write_all(
            format!("{rest} /set/r/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        // A method of one's own that begins like the preface is a faulty preface.
        let is_refused = answer.starts_with(b"HTTP/1.1 405");
        assert_eq!(is_refused, first != "PRI", "{first}{rest}: {:?}", answer.get(..40));
    }
}

#[test]
fn without_http_2_the_preface_is_refused() {
    let (_world, served) = serve(ServerOptions { http2: false, ..ServerOptions::default() });
    assert!(served.answers_to(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").is_empty());
}

#[test]
fn requests_share_a_connection_and_small_ones_overtake() {
    let (_world, served) = serve(ServerOptions::default());
    run(async {
        let connection = Connection::open(&served, 65_535).await;
        let mut large = Vec::new();
        for _ in 0..40 {
            large.push(connection.send(request(Method::GET, "/set/r/large"), true).await.0);
        }
        assert_eq!(connection.get("/set/r/a").await.body, b"public");
        let mut read = tokio::task::JoinSet::new();
        for answer in large {
            read.spawn(async { super::http2::read(answer.await.unwrap()).await.unwrap().body });
        }
        while let Some(body) = read.join_next().await {
            assert!(body.unwrap() == vec![b'x'; LARGE]);
        }
    });
}

#[test]
fn an_answer_that_is_not_read_ends_alone() {
    let options =
        ServerOptions { stall_timeout: Duration::from_millis(500), ..ServerOptions::default() };
    let (_world, served) = serve(options);
    run(async {
        let connection = Connection::open(&served, 65_535).await;
        let (answer, _) = connection.send(request(Method::GET, "/set/r/large"), true).await;
        let mut stalled = answer.await.unwrap().into_body();
        let begun = Instant::now();
        // The bytes are received, but the window is not opened again.
        let end = loop {
            assert_eq!(connection.get("/set/r/a").await.body, b"public");
            match tokio::time::timeout(Duration::from_millis(10), stalled.data()).await {
                Ok(Some(Err(error))) => break error,
                Ok(None) => panic!("the answer is complete"),
                Ok(Some(Ok(_))) | Err(_) => {}
            }
        };
        assert_eq!(end.reason(), Some(Reason::CANCEL), "{end}");
        assert!(begun.elapsed() >= Duration::from_millis(500), "{:?}", begun.elapsed());
        assert_eq!(connection.get("/set/r/a").await.body, b"public");
    });
}

#[test]
fn a_connection_without_requests_is_closed() {
    let options =
        ServerOptions { header_timeout: Duration::from_millis(400), ..ServerOptions::default() };
    let (_world, served) = serve(options);
    run(async {
        let unused = Connection::open(&served, 65_535).await;
        let used = Connection::open(&served, 65_535).await;
        for _ in 0..10 {
            assert_eq!(used.get("/set/r/a").await.body, b"public");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(unused.driver.is_finished());
        let _ = used.driver.await;
        // The first bytes of the preface do not hold a connection either.
        let mut partial = TcpStream::connect(served.address).unwrap();
        partial.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        partial.write_all(b"PR").unwrap();
        let end = partial.read(&mut [0]);
        let is_reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(end.as_ref().is_err_and(is_reset) || matches!(end, Ok(0)), "{end:?}");
    });
}

#[test]
fn places_of_idle_connections_go_to_requests_and_newcomers() {
    let options = ServerOptions { connections: 16, ..ServerOptions::default() };
    let (_world, served) = serve(options);
    run(async {
        let ask_both = async |connection: &Connection| {
            let (one, two) =
                tokio::join!(connection.get("/set/r/large"), connection.get("/set/r/large"));
            assert_eq!((one.head.status, two.head.status), (StatusCode::OK, StatusCode::OK));
        };
        let connection = Connection::open(&served, 65_535).await;
        let mut idle: Vec<_> = (0..15).map(|_| served.connect()).collect();
        for client in &mut idle {
            client.request("GET", "/set/r/a", &[]);
            assert_eq!(client.reply("GET").unwrap().unwrap().status, 200);
        }
        ask_both(&connection).await;
    });
    // Clients of HTTP/2 that do not react when they are asked to leave.
    let mut silent = Vec::new();
    run(async {
        for _ in 0..16 {
            let stream = TcpStream::connect(served.address).unwrap();
            silent.push(stream.try_clone().unwrap());
            stream.set_nonblocking(true).unwrap();
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            let (requests, connection) = h2::client::handshake(stream).await.unwrap();
            let driver = tokio::spawn(connection);
            let answer =
                requests.ready().await.unwrap().send_request(request(Method::GET, "/livez"), true);
            assert_eq!(answer.unwrap().0.await.unwrap().status(), StatusCode::OK);
            driver.abort();
        }
    });
    let begun = Instant::now();
    for _ in 0..4 {
        assert_eq!(served.get("/set/r/a").body, b"public");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn requests_in_flight_take_places_of_connections() {
    // A connection may have two requests.
    let options = ServerOptions { connections: 16, ..ServerOptions::default() };
    let (_world, served) = serve(options);
    run(async {
        let (mut connections, mut held) = (Vec::new(), Vec::new());
        for _ in 0..8 {
            let connection = Connection::open(&served, 65_535).await;
            for _ in 0..2 {
                let (answer, _) = connection.send(request(Method::GET, "/set/r/large"), true).await;
                let answer = answer.await.unwrap();
                assert_eq!(answer.status(), StatusCode::OK);
                held.push(answer);
            }
            connections.push(connection);
        }
        // All places are taken, half of them by second requests: a further connection waits until one
        // is complete.
        let mut further = served.connect();
        further.request("GET", "/set/r/a", &[]);
        further.stream.get_ref().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        assert!(further.head().is_err());
        further.stream.get_ref().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        held.pop();
        let answer = tokio::task::spawn_blocking(move || further.reply("GET")).await.unwrap();
        assert_eq!(answer.unwrap().unwrap().status, 200);
    });
}

#[test]
fn faulty_requests_end_alone() {
    let (_world, served) = serve(ServerOptions::default());
    run(async {
        let connection = Connection::open(&served, 65_535).await;
        let mut two_hosts = request(Method::GET, "/set/r/a");
        two_hosts.headers_mut().insert("host", "other.example".parse().unwrap());
        let refused = connection.send(two_hosts, true).await.0.await.unwrap();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        let user = "http://user@example.org/set/r/a";
        let user = Request::builder().version(Version::HTTP_2).uri(user).body(()).unwrap();
        let refused = connection.send(user, true).await.0.await;
        assert!(refused.is_err() || refused.unwrap().status() == StatusCode::BAD_REQUEST);
        let long = request(Method::GET, &format!("/{}", "x".repeat(20_000)));
        let refused = connection.send(long, true).await.0.await.unwrap();
        assert_eq!(refused.status(), StatusCode::URI_TOO_LONG);
        for number in 0..40 {
            // Bodies that are not read do not use up the window of the connection.
            let (answer, mut body) = connection.send(request(Method::POST, "/hub"), false).await;
            body.send_data(Bytes::from(vec![b'x'; 20_000]), number % 2 == 0).unwrap();
            assert!(answer.await.unwrap().status().is_client_error());
        }
        let (answer, mut body) = connection.send(request(Method::GET, "/set/r/a"), false).await;
        body.send_data(Bytes::new(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
        let (answer, mut body) = connection.send(request(Method::GET, "/set/r/a"), false).await;
        body.send_data(Bytes::from_static(b"a body"), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), StatusCode::BAD_REQUEST);
        let mut many = request(Method::GET, "/set/r/a");
        for number in 0..80 {
            let name: http::HeaderName = format!("x-{number}").parse().unwrap();
            many.headers_mut().insert(name, "y".repeat(1_000).parse().unwrap());
        }
        let refused = connection.send(many, true).await.0.await;
        assert!(refused.is_err() || refused.unwrap().status().is_client_error());
        assert_eq!(connection.get("/set/r/a").await.body, b"public");
    });
}

#[test]
fn requests_in_flight_are_completed_when_the_server_stops() {
    // Also if little remains that the client does not receive yet.
    for length in [LARGE, 65_536, 65_540, 70_000] {
        let (world, served) = serve(ServerOptions::default());
        world.write("file", vec![b'y'; length]);
        world.publish();
        run(async {
            let connection = Connection::open(&served, 65_535).await;
            let (answer, _) = connection.send(request(Method::GET, "/set/r/file"), true).await;
            let answer = answer.await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            served.tell_stop();
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            assert_eq!(read(answer).await.unwrap().body.len(), length);
            let _ = connection.driver.await;
            eventually("the end", || served.has_ended());
        });
    }
}
