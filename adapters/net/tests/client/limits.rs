//! Limits of our own: bytes and requests per second.

use std::time::{Duration, Instant};

use abreast_net::{Bandwidth, Options, Request};

use crate::{client, get, quick, read};
use abreast_testkit::http::{Server, ok};

#[tokio::test]
async fn bandwidth_limit_covers_all_connections_and_blames_no_server() {
    let body = "x".repeat(100_000);
    let server = Server::script(&[&ok(&body)]);
    let client = client(Options {
        bandwidth: Some(Bandwidth::parse("400K").unwrap()),
        // Each connection alone is slower than this: by our own wish.
        min_speed: 300_000,
        min_speed_window: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(300),
        ..quick()
    });
    let begin = Instant::now();
    let url = server.url("/");
    let request = Request::new(&url);
    let (one, two, three) =
        tokio::join!(read(&client, &request), read(&client, &request), read(&client, &request));
    for answer in [one, two, three] {
        assert_eq!(answer.unwrap().1.len(), body.len());
    }
    let seconds = begin.elapsed().as_secs_f64();
    assert!(seconds > 0.5, "300 kB at 400 KiB/s took {seconds} s");
}

#[tokio::test]
async fn requests_to_one_host_keep_their_distance() {
    // Looked at from this side: when a busy machine gets round to answering says nothing.
    let (server, other) = (Server::script(&[&ok("x")]), Server::script(&[&ok("y")]));
    let interval = Duration::from_millis(100);
    let slow = client(Options { request_interval: interval, ..quick() });
    let began = Instant::now();
    for _ in 0..3 {
        get(&slow, &server.url("/")).await.unwrap();
    }
    assert!(began.elapsed() >= interval * 2, "{:?}", began.elapsed());

    let slower = client(Options { request_interval: Duration::from_secs(60), ..quick() });
    let began = Instant::now();
    get(&slower, &server.url("/")).await.unwrap();
    get(&slower, &other.url("/")).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(60), "another host does not wait");

    let polite = client(quick());
    polite.set_min_interval(&server.url("/robots.txt"), interval);
    polite.set_min_interval(&server.url("/"), Duration::from_millis(10));
    let began = Instant::now();
    for _ in 0..2 {
        get(&polite, &server.url("/")).await.unwrap();
    }
    assert!(began.elapsed() >= interval, "the longer interval holds: {:?}", began.elapsed());
}
