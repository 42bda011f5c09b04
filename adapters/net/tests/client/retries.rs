//! Repetition and pauses.

use std::io::Write;
use std::time::{Duration, Instant};

use abreast_net::{Client, Options, Request, Shared, with_retries};

use crate::{client, get, quick};
use abreast_testkit::http::{Server, answer, ok, unused_address};

#[tokio::test]
async fn transient_failures_are_repeated_until_success() {
    let server = Server::script(&[
        &answer("503 Service Unavailable", "", ""),
        &answer("429 Too Many Requests", "Retry-After: soon\r\n", ""),
        &answer("502 Bad Gateway", "Retry-After: -1\r\n", ""),
        &answer("504 Gateway Timeout", "Retry-After: 1000000000\r\n", ""),
        &ok("at last"),
    ]);
    let client = client(quick());
    let mut body = b"old".to_vec();
    let response = client.fetch_to(&Request::new(&server.url("/")), &mut body, 100).await.unwrap();
    assert_eq!((response.status().as_u16(), &body[..]), (200, &b"at last"[..]));
    let counters = client.shared().counters();
    assert_eq!((counters.requests, counters.retries), (5, 4));
}

#[tokio::test]
async fn truncated_body_is_fetched_again_from_the_start() {
    let server = Server::new(|seen, stream| {
        let reply = if seen.connection < 2 {
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_owned()
        } else {
            ok("the whole")
        };
        let _ = stream.write_all(reply.as_bytes());
        false
    });
    let mut body = Vec::new();
    client(quick()).fetch_to(&Request::new(&server.url("/")), &mut body, 100).await.unwrap();
    assert_eq!(body, b"the whole");
}

#[tokio::test]
async fn repetition_ends_with_the_last_error() {
    let server = Server::saying("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nshort");
    let mut body = Vec::new();
    let client = client(quick());
    let error =
        client.fetch_to(&Request::new(&server.url("/")), &mut body, 1 << 20).await.unwrap_err();
    assert_eq!((error.code(), error.attempts(), server.seen().len()), ("http.truncated", 6, 6));
    assert!(error.to_string().contains("tried 6 times"), "{error}");
}

#[tokio::test]
async fn lasting_failures_are_not_repeated() {
    for reply in [
        answer("404 Not Found", "", ""),
        answer("500 Internal Server Error", "", ""),
        "rubbish\r\n\r\n".into(),
    ] {
        let server = Server::saying(reply);
        let error = client(quick())
            .fetch_to(&Request::new(&server.url("/")), &mut Vec::new(), 100)
            .await
            .unwrap_err();
        assert_eq!((error.attempts(), server.seen().len()), (1, 1), "{error}");
    }
}

#[tokio::test]
async fn retry_after_pauses_the_host_for_all_clients_up_to_the_cap() {
    let pause = Duration::from_millis(150);
    let server = Server::new(|seen, stream| {
        let reply = if seen.target() == "/busy" && seen.connection == 0 {
            answer("503 Service Unavailable", "Retry-After: 3600\r\n", "")
        } else {
            ok("x")
        };
        stream.write_all(reply.as_bytes()).is_ok() && seen.target() != "/busy"
    });
    let elsewhere = Server::script(&[&ok("x")]);
    let shared = Shared::new(Options { max_retry_after: pause, ..quick() });
    let (one, other) = (Client::new(shared.clone()), Client::new(shared));
    let busy = server.url("/busy");
    let first = tokio::spawn(async move {
        let mut body = Vec::new();
        one.fetch_to(&Request::new(&busy), &mut body, 100).await.map(drop)
    });
    while server.seen().is_empty() || other.shared().counters().retries == 0 {
        tokio::task::yield_now().await;
    }
    let asked = Instant::now();
    get(&other, &elsewhere.url("/")).await.unwrap();
    assert!(asked.elapsed() < pause, "another host is not held up");
    get(&other, &server.url("/quiet")).await.unwrap();
    first.await.unwrap().unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen[1..].iter().all(|later| later.at - seen[0].at >= Duration::from_millis(149)));
}

#[tokio::test]
async fn host_is_paused_even_when_the_request_is_given_up() {
    let pause = Duration::from_millis(100);
    let server =
        Server::script(&[&answer("429 Too Many Requests", "Retry-After: 60\r\n", ""), &ok("x")]);
    let client = client(Options { retries: 0, max_retry_after: pause, ..quick() });
    let url = server.url("/");
    let error = client.fetch_to(&Request::new(&url), &mut Vec::new(), 100).await.unwrap_err();
    assert_eq!((error.status(), error.retry_after()), (Some(429), Some(Duration::from_secs(60))));
    get(&client, &url).await.unwrap();
    assert!(server.seen()[1].at - server.seen()[0].at >= pause);
}

#[tokio::test]
async fn callers_own_attempts_are_counted() {
    let client = client(quick());
    let closed = unused_address();
    let url = format!("http://{closed}/");
    let mut made = Vec::new();
    let error = with_retries(&client, &url, async |before| {
        made.push(before);
        client.send(&Request::new(&url)).await
    })
    .await
    .unwrap_err();
    assert_eq!((error.code(), &made[..]), ("net.connect", &[0, 1, 2, 3, 4, 5][..]));
    assert!(error.to_string().contains("help:"), "{error}");
}

#[tokio::test]
async fn futures_can_be_spawned() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let server = Server::saying(ok("x"));
    let (client, url) = (client(quick()), server.url("/"));
    is_send(client.send(&Request::new(&url))).await.unwrap();
}
