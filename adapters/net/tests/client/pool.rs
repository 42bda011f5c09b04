//! Connections: kept, limited, replaced.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use abreast_net::{Client, Options, Request, Shared};

use crate::{client, get, quick};
use abreast_testkit::http::{Server, hold, ok};

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::script(&[
        &ok("first"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        &ok(""),
        &ok("rest"),
    ]);
    let client = client(quick());
    for body in ["first", "ab", "", "rest", "rest"] {
        assert_eq!(get(&client, &server.url("/")).await.unwrap().1, body.as_bytes());
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
    let counters = client.shared().counters();
    assert_eq!((counters.requests, counters.retries), (5, 0));
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".len() as u64;
    assert!(counters.bytes_received > 5 * head, "{counters:?}");
}

#[tokio::test]
async fn bytes_count_while_a_body_is_received() {
    let server = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        let _ = stream.write_all(&vec![b'a'; 50_000]);
        hold(stream);
        false
    });
    let client = client(quick());
    let url = server.url("/");
    let mut response = client.send(&Request::new(&url)).await.unwrap();
    let mut received = 0;
    while received < 50_000 {
        received += response.chunk().await.unwrap().unwrap().len() as u64;
        assert!(client.shared().counters().bytes_received >= received);
    }
}

#[tokio::test]
async fn not_modified_and_head_keep_the_connection() {
    let server = Server::script(&[
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
        &ok("x"),
    ]);
    let (client, url) = (client(quick()), server.url("/"));
    drop(
        client.send(&Request { if_none_match: Some("\"a\""), ..Request::new(&url) }).await.unwrap(),
    );
    drop(client.send(&Request { head: true, ..Request::new(&url) }).await.unwrap());
    get(&client, &url).await.unwrap();
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn connection_is_not_used_again_when_the_server_closes_it() {
    let server = Server::new(|_, stream| {
        stream.write_all(ok("x").as_bytes()).unwrap();
        false
    });
    let client = client(quick());
    for _ in 0..5 {
        assert_eq!(get(&client, &server.url("/")).await.unwrap().1, b"x");
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn connection_with_bytes_nobody_asked_for_is_not_used_again() {
    let server = Server::script(&[&format!("{}{}", ok("x"), ok("smuggled"))]);
    let client = client(quick());
    for _ in 0..3 {
        assert_eq!(get(&client, &server.url("/")).await.unwrap().1, b"x");
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn request_is_resent_when_a_kept_connection_was_closed() {
    let server = Server::new(|seen, stream| {
        // The second request of each connection is read and then dropped without a byte.
        stream.peer_addr().is_ok()
            && seen.target() != "/drop"
            && stream.write_all(ok("x").as_bytes()).is_ok()
    });
    let second = Server::new(|seen, stream| {
        (seen.connection > 0 || seen.target() == "/first")
            && stream.write_all(ok("x").as_bytes()).is_ok()
    });
    let client = client(quick());
    get(&client, &second.url("/first")).await.unwrap();
    assert_eq!(get(&client, &second.url("/second")).await.unwrap().1, b"x");
    assert_eq!((second.seen().len(), second.connections()), (3, 2));
    assert_eq!(client.shared().counters().retries, 1);

    get(&client, &server.url("/")).await.unwrap();
    assert_eq!(get(&client, &server.url("/drop")).await.unwrap_err().code(), "http.truncated");
    assert_eq!(server.seen().len(), 3, "once on the kept connection, once on a new one");
}

#[tokio::test]
async fn request_is_not_sent_again_once_the_answer_has_begun() {
    let server = Server::new(|seen, stream| {
        let answer = if seen.target() == "/cut" { "HTTP/1.1 2".to_owned() } else { ok("x") };
        stream.write_all(answer.as_bytes()).is_ok() && seen.target() != "/cut"
    });
    let client = client(quick());
    get(&client, &server.url("/")).await.unwrap();
    assert_eq!(get(&client, &server.url("/cut")).await.unwrap_err().code(), "http.truncated");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn only_a_small_unread_body_keeps_the_connection() {
    let server = Server::new(|seen, stream| {
        let body = if seen.target() == "/large" { "a".repeat(4 << 20) } else { "small".to_owned() };
        stream.write_all(ok(&body).as_bytes()).is_ok()
    });
    let client = client(quick());
    for _ in 0..3 {
        drop(client.send(&Request::new(&server.url("/small"))).await.unwrap());
    }
    assert_eq!(server.connections(), 1);
    drop(client.send(&Request::new(&server.url("/large"))).await.unwrap());
    get(&client, &server.url("/small")).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn discarding_waits_only_for_small_and_prompt_bodies() {
    let server = Server::new(|seen, stream| {
        let length = if seen.target() == "/large" { 1 << 20 } else { 4 };
        stream
            .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes())
            .unwrap();
        if seen.target() != "/small" {
            hold(stream);
            return false;
        }
        std::thread::yield_now();
        stream.write_all(b"late").is_ok()
    });
    let client = client(quick());
    for (path, connections) in
        [("/small", 1), ("/small", 1), ("/large", 1), ("/small", 2), ("/never", 2), ("/small", 3)]
    {
        client.send(&Request::new(&server.url(path))).await.unwrap().discard().await;
        assert_eq!(server.connections(), connections, "{path}");
    }
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection_and_frees_its_place() {
    let server = Server::new(|seen, stream| {
        if seen.target() == "/hang" {
            hold(stream);
            return false;
        }
        stream.write_all(ok("x").as_bytes()).is_ok()
    });
    let client = client(Options { connections_per_host: 1, ..quick() });
    let hang = server.url("/hang");
    let cut = tokio::time::timeout(Duration::from_millis(50), get(&client, &hang)).await;
    assert!(cut.is_err());
    assert_eq!(get(&client, &server.url("/")).await.unwrap().1, b"x");
}

#[tokio::test]
async fn idle_connection_is_closed_after_its_time() {
    let server = Server::script(&[&ok("x")]);
    let client = client(Options { keep_alive: Duration::ZERO, ..quick() });
    for _ in 0..3 {
        get(&client, &server.url("/")).await.unwrap();
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn requests_in_flight_to_a_host_are_limited_over_all_clients() {
    let (now, most) = (AtomicUsize::new(0), std::sync::Arc::new(AtomicUsize::new(0)));
    let highest = most.clone();
    let server = Server::new(move |_, stream| {
        highest.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        std::thread::yield_now();
        now.fetch_sub(1, SeqCst);
        stream.write_all(ok("x").as_bytes()).is_ok()
    });
    let shared = Shared::new(Options { connections_per_host: 2, ..quick() });
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = Client::new(shared.clone());
        for _ in 0..10 {
            let (client, url) = (client.clone(), server.url("/"));
            tasks.spawn(async move { get(&client, &url).await.map(|(_, body)| body) });
        }
    }
    while let Some(result) = tasks.join_next().await {
        assert_eq!(result.unwrap().unwrap(), b"x");
    }
    assert_eq!(server.seen().len(), 40);
    assert!(most.load(SeqCst) <= 2);
    assert!(server.connections() <= 8, "two kept by each client at most");
}

#[tokio::test]
async fn large_body_comes_in_pieces() {
    let server = Server::new(|_, stream| {
        stream.write_all(ok(&"abcdefgh".repeat(1 << 18)).as_bytes()).is_ok()
    });
    let client = client(quick());
    let mut response = client.send(&Request::new(&server.url("/"))).await.unwrap();
    let (mut total, mut largest) = (0, 0);
    while let Some(data) = response.chunk().await.unwrap() {
        total += data.len();
        largest = largest.max(data.len());
    }
    assert_eq!(total, 2 << 20);
    assert!(largest <= 256 << 10, "{largest}");
}

#[tokio::test]
async fn connections_are_made_before_they_are_needed() {
    let server = Server::new(|seen, stream| stream.write_all(ok(seen.target()).as_bytes()).is_ok());
    let client = client(Options { connections_per_host: 3, ..quick() });
    client.prepare(&server.url("/"), 2).await;
    // The server accepts a connection later than the system.
    for _ in 0..500 {
        if server.connections() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    assert_eq!((server.connections(), server.seen().len()), (2, 0));
    // Requests use them.
    for _ in 0..3 {
        get(&client, &server.url("/")).await.unwrap();
    }
    assert_eq!(server.connections(), 2);
    client.prepare(&server.url("/"), 50).await;
    assert!(server.connections() <= 5, "{} connections", server.connections());
    // The first request reports what fails.
    client.prepare("http://127.0.0.1:1/", 2).await;
    client.prepare("no URL", 2).await;
    assert_eq!(client.shared().counters().requests, 3);
    // One place is left to the requests of a run, which may have only one.
    let other = Server::new(|_, _| false);
    let client = crate::client(Options { connections_per_host: 1, ..quick() });
    client.prepare(&other.url("/"), 1).await;
    assert_eq!(other.connections(), 0);
}
