//! The sender: kept connections, bounded answers, times, private addresses.

use std::io::Write;
use std::time::{Duration, Instant};

use abreast_net::{
    Answer, BodyWanted, Error, HeaderLines, HeaderMap, Message, Sender, SenderOptions,
};

use abreast_testkit::http::{Server, answer, hold, ok, redirect};

fn sender(options: SenderOptions) -> Sender {
    Sender::new(SenderOptions { public_only: false, ..options }).unwrap()
}

async fn post(sender: &Sender, url: &str, body: &'static [u8]) -> Result<Answer, Error> {
    let message = Message { body: body.into(), ..Message::default() };
    sender.post(&sender.recipient(url)?, message, BodyWanted::Nothing(4_096)).await
}

async fn get(sender: &Sender, url: &str, most: usize) -> Result<Answer, Error> {
    sender.get(&sender.recipient(url)?, Message::default(), BodyWanted::Whole(most)).await
}

#[tokio::test]
async fn one_connection_takes_many_messages() {
    let server = Server::script(&[
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ]);
    let sender = sender(SenderOptions::default());
    for status in [204, 200, 200] {
        assert_eq!(post(&sender, &server.url("/c?a=%20"), b"hello").await.unwrap().status, status);
    }
    assert_eq!((server.seen().len(), server.connections()), (3, 1));
    let seen = &server.seen()[1];
    assert_eq!(seen.line(), "POST /c?a=%20 HTTP/1.1");
    assert_eq!(seen.header("content-length"), Some("5"));
    assert!(seen.header("user-agent").unwrap().starts_with("abreast/"));
}

#[tokio::test]
async fn headers_of_the_message_and_of_many_are_sent() {
    let server = Server::script(&["HTTP/1.1 204 No Content\r\n\r\n"]);
    let sender = sender(SenderOptions::default());
    let (mut common, mut headers) = (HeaderMap::new(), HeaderMap::new());
    common.insert("link", "<http://e/>; rel=\"self\"".parse().unwrap());
    headers.insert("x-hub-signature", "sha1=00".parse().unwrap());
    let common = HeaderLines::from(&common);
    let message = Message { headers, common: Some(&common), body: "x".into() };
    sender
        .post(&sender.recipient(&server.url("/")).unwrap(), message, BodyWanted::Nothing(9))
        .await
        .unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.header("link"), Some("<http://e/>; rel=\"self\""));
    assert_eq!(seen.header("x-hub-signature"), Some("sha1=00"));
}

#[tokio::test]
async fn redirects_are_answers() {
    let server = Server::saying(redirect("307 Temporary Redirect", "/there"));
    let answer = get(&sender(SenderOptions::default()), &server.url("/"), 100).await.unwrap();
    assert_eq!((answer.status.as_u16(), server.seen().len()), (307, 1));
    assert_eq!(answer.headers["location"], "/there");
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced_at_once() {
    let server = Server::saying(ok("x"));
    let sender = sender(SenderOptions::default());
    for _ in 0..5 {
        assert_eq!(post(&sender, &server.url("/"), b"1").await.unwrap().status, 200);
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn an_answer_larger_than_wanted_is_an_error_or_cut_off() {
    let sender =
        sender(SenderOptions { timeout: Duration::from_secs(20), ..SenderOptions::default() });
    let server = Server::saying(ok(&"x".repeat(100)));
    assert_eq!(get(&sender, &server.url("/"), 100).await.unwrap().body.len(), 100);
    assert_eq!(get(&sender, &server.url("/"), 99).await.unwrap_err().code(), "http.size");
    let chunks = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "1\r\nx\r\n".repeat(100)
    );
    assert_eq!(
        get(&sender, &Server::saying(chunks).url("/"), 99).await.unwrap_err().code(),
        "http.size"
    );
    let endless = Server::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        while stream.write_all(&[b'x'; 8_192]).is_ok() {}
        false
    });
    assert_eq!(post(&sender, &endless.url("/"), b"").await.unwrap().status, 200);
    assert_eq!(get(&sender, &endless.url("/"), 1 << 20).await.unwrap_err().code(), "http.size");
}

#[tokio::test]
async fn a_status_counts_though_the_body_never_ends() {
    let server = Server::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx").unwrap();
        hold(stream);
        false
    });
    let sender =
        sender(SenderOptions { linger: Duration::from_millis(20), ..SenderOptions::default() });
    let begin = Instant::now();
    assert_eq!(post(&sender, &server.url("/"), b"").await.unwrap().status, 200);
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn floods_of_interim_answers_and_of_headers_are_cut_off() {
    let sender =
        sender(SenderOptions { timeout: Duration::from_secs(20), ..SenderOptions::default() });
    let flood = Server::new(|_, stream| {
        while stream.write_all("HTTP/1.1 102 Processing\r\n\r\n".repeat(100).as_bytes()).is_ok() {}
        false
    });
    assert!(post(&sender, &flood.url("/"), b"").await.is_err());
    let head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(100_000));
    assert_eq!(
        post(&sender, &Server::saying(head).url("/"), b"").await.unwrap_err().code(),
        "http.header"
    );
}

#[tokio::test]
async fn silence_ends_with_the_time_of_the_exchange() {
    let server = Server::new(|_, stream| {
        hold(stream);
        false
    });
    let sender =
        sender(SenderOptions { timeout: Duration::from_millis(50), ..SenderOptions::default() });
    assert_eq!(post(&sender, &server.url("/"), b"").await.unwrap_err().code(), "net.timeout");
    // The second request on a connection that answered once has a limit of its own.
    let server = Server::script(&["HTTP/1.1 204 No Content\r\n\r\n", ""]);
    let sender = self::sender(SenderOptions {
        timeout: Duration::from_millis(300),
        ..SenderOptions::default()
    });
    post(&sender, &server.url("/"), b"").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begin = Instant::now();
    assert_eq!(post(&sender, &server.url("/"), b"").await.unwrap_err().code(), "net.timeout");
    assert!(begin.elapsed() >= Duration::from_millis(290));
}

#[tokio::test]
async fn private_addresses_are_connected_to_only_when_allowed() {
    let server = Server::saying(answer("204 No Content", "", ""));
    let public = Sender::new(SenderOptions::default()).unwrap();
    let port = server.address().port();
    for url in [
        server.url("/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
    ] {
        assert_eq!(post(&public, &url, b"").await.unwrap_err().code(), "net.private", "{url}");
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn names_are_resolved() {
    let sender = sender(SenderOptions { lookups: 1, ..SenderOptions::default() });
    for _ in 0..3 {
        let to = sender.recipient("http://localhost:1/").unwrap();
        assert!(sender.addresses(&to).await.unwrap().iter().all(std::net::IpAddr::is_loopback));
    }
    let to = sender.recipient("http://nowhere.invalid/").unwrap();
    assert!(matches!(sender.addresses(&to).await.unwrap_err().code(), "net.dns" | "net.timeout"));
}

#[tokio::test]
async fn urls_that_cannot_be_sent_to_are_refused() {
    let sender = sender(SenderOptions::default());
    for (url, code) in [
        ("file:///etc/passwd", "uri.authority"),
        ("http://me:secret@example.org/", "uri.syntax"),
        ("http://a b/", "uri.syntax"),
    ] {
        assert_eq!(sender.recipient(url).unwrap_err().code(), code, "{url}");
    }
    assert_eq!(sender.recipient("HTTP://Example.ORG/a").unwrap().origin(), "http://example.org:80");
}

/// Status and body of an answer to a GET, as hyper reads it.
async fn by_hyper(server: &Server) -> Option<(u16, Vec<u8>)> {
    use http_body_util::{BodyExt as _, Empty};
    let stream = tokio::net::TcpStream::connect(server.address()).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.allow_obsolete_multiline_headers_in_responses(true);
    let (mut asker, connection) = builder.handshake(io).await.unwrap();
    let driven = tokio::spawn(connection);
    let request =
        http::Request::get("/").header("host", "e").body(Empty::<bytes::Bytes>::new()).unwrap();
    let answer = asker.send_request(request).await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.ok()?.to_bytes().to_vec();
    driven.abort();
    Some((status, body))
}

#[tokio::test]
async fn answers_mean_what_they_mean_to_hyper() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let whole = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\n\r\nhello",
        "HTTP/1.1 200\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\n\r\nhello",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 503 No\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 1000 ?\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 100 Go\r\n\r\n",
        "HTTP/3 200 OK\r\n\r\n",
        "hello\r\n\r\n",
        "",
        "HTTP/1.1 200 OK\r\nContent-",
    ];
    let chunks = [
        "5\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\"\r\nhello\r\n0\r\nX: y\r\n\r\n",
        "5\r\nhello\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhel",
        "\r\n\r\n",
        "g\r\n",
    ];
    let chunks = chunks.map(|chunks| format!("{chunked}{chunks}"));
    let sender = sender(SenderOptions::default());
    for answer in whole.into_iter().chain(chunks.iter().map(String::as_str)) {
        let server = Server::saying(answer);
        let ours = get(&sender, &server.url("/"), 100).await.ok();
        let ours = ours.map(|answer| (answer.status.as_u16(), answer.body.to_vec()));
        assert_eq!(ours, by_hyper(&server).await, "{answer}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_only_when_its_answer_ended() {
    for (answer, connections) in [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1),
        ("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 1),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", 2),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nok", 2),
    ] {
        let server = Server::script(&[answer]);
        let sender =
            sender(SenderOptions { linger: Duration::from_millis(50), ..SenderOptions::default() });
        for _ in 0..2 {
            assert!(post(&sender, &server.url("/"), b"").await.unwrap().status.is_success());
        }
        assert_eq!(server.connections(), connections, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_to_half_a_message_counts() {
    let server = Server::new(|_, stream| {
        stream.write_all(answer("413 Too Large", "", "").as_bytes()).unwrap();
        hold(stream);
        false
    });
    let sender =
        sender(SenderOptions { timeout: Duration::from_secs(20), ..SenderOptions::default() });
    // More than the system takes without the server reading.
    let message = Message { body: vec![0; 64 << 20].into(), ..Message::default() };
    let to = sender.recipient(&server.url("/")).unwrap();
    let begin = Instant::now();
    assert_eq!(sender.post(&to, message, BodyWanted::Nothing(9)).await.unwrap().status, 413);
    assert!(begin.elapsed() < Duration::from_secs(15));
}
