//! Copies of a Source whose server speaks HTTP/2.

use crate::copy::Copy;
use crate::dump_source::{DumpSource, resources};
use abreast_destination::Dumps;
use abreast_testkit::tls::Authority;
use bytes::Bytes;
use h2::server::SendResponse;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

/// A server of HTTP/2 that answers what the one behind it answers.
struct Front {
    runtime: Runtime,
    seen: Arc<Seen>,
    address: SocketAddr,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
    /// Requests that are not answered yet, and the most of them.
    open: AtomicUsize,
    most: AtomicUsize,
}

impl Front {
    fn start(authority: &Authority, behind: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let certificate = authority.server(&["127.0.0.1"], false);
        let accept = TlsAcceptor::from(certificate.speaking(&["h2"]));
        let seen = Arc::new(Seen::default());
        let found = Arc::clone(&seen);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                found.connections.fetch_add(1, SeqCst);
                let (accept, found) = (accept.clone(), Arc::clone(&found));
                tokio::spawn(async move {
                    let Ok(stream) = accept.accept(stream).await else { return };
                    let Ok(mut requests) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((request, to))) = requests.accept().await {
                        let path = request.uri().path_and_query().unwrap().as_str().to_owned();
                        tokio::spawn(pass_on(behind, path, to, Arc::clone(&found)));
                    }
                });
            }
        });
        Self { runtime, seen, address }
    }
}

/// Answers a request with the answer of the server behind.
async fn pass_on(behind: SocketAddr, path: String, mut to: SendResponse<Bytes>, seen: Arc<Seen>) {
    seen.requests.fetch_add(1, SeqCst);
    seen.most.fetch_max(seen.open.fetch_add(1, SeqCst) + 1, SeqCst);
    let mut stream = TcpStream::connect(behind).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {behind}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut answer, mut end) = (Vec::new(), None);
    let head = loop {
        let length = stream.read_buf(&mut answer).await.unwrap();
        assert!(length > 0, "the answer to {path} is incomplete");
        end = end.or_else(|| answer.windows(4).position(|four| four == b"\r\n\r\n"));
        let Some(end) = end else { continue };
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
        let length = head.split("content-length:").nth(1).unwrap().split("\r\n").next().unwrap();
        if answer.len() == end + 4 + length.trim().parse::<usize>().unwrap() {
            break head;
        }
    };
    let body = Bytes::from(answer.split_off(head.len() + 4));
    let status = head.split(' ').nth(1).unwrap();
    let response = http::Response::builder().status(status).body(()).unwrap();
    seen.open.fetch_sub(1, SeqCst);
    // The client may have left.
    if let Ok(mut stream) = to.send_response(response, false) {
        let _ = stream.send_data(body, true);
    }
}

#[test]
fn more_requests_are_in_flight_by_http_2() {
    const RESOURCES: usize = 600;
    for (connections, streams, wanted) in [(8, 64, 9..=64), (8, 0, 2..=8), (3, 3, 2..=3)] {
        let authority = Authority::default();
        let mut source = DumpSource::new();
        let front = Front::start(&authority, source.server.address());
        source.server.base = format!("https://{}", front.address);
        let all = resources(RESOURCES);
        source.serve(&all);
        source.list(&all);
        let mut copy = Copy::of(source.url());
        let roots = copy.place.path().join("roots.pem");
        std::fs::write(&roots, authority.pem()).unwrap();
        copy.options.net.extra_roots = Some(roots);
        (copy.options.connections, copy.options.streams) = (connections, streams);
        (copy.options.dumps, copy.options.threads) = (Dumps::Never, Some(2));
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), ran.summary().created),
            (0, RESOURCES as u64),
            "{:?}",
            ran.reported
        );
        let most = front.seen.most.load(SeqCst);
        assert!(wanted.contains(&most), "{connections}, {streams}: {most} requests in flight");
        // The thread that reads the lists, and the threads that fetch.
        assert!(front.seen.connections.load(SeqCst) <= 3);
        let requests = front.seen.requests.load(SeqCst);
        assert!(requests <= RESOURCES + 10, "{requests} requests");
        front.runtime.shutdown_background();
    }
}
