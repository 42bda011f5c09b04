//! Limits of our own: bytes and requests per second.

use std::time::{Duration, Instant};

use abreast_net::{Bandwidth, Budget, Options, Request};

use crate::{client, get, quick, read};
use abreast_testkit::http::{Server, answer, ok};

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

#[tokio::test]
async fn runs_with_one_budget_keep_its_limits_together() {
    let server = Server::new(|seen, stream| {
        let reply = if seen.target() == "/busy" {
            answer("429 Too Many Requests", "Retry-After: 1\r\n", "")
        } else {
            ok(&"x".repeat(20_000))
        };
        std::io::Write::write_all(stream, reply.as_bytes()).is_ok()
    });
    let interval = Duration::from_millis(60);
    let budget = Budget::new(Some(Bandwidth::parse("200K").unwrap()));
    let run = || {
        client(Options {
            budget: Some(budget.clone()),
            request_interval: interval,
            retries: 0,
            max_retry_after: Duration::from_millis(300),
            ..quick()
        })
    };
    let (one, two, three) = (run(), run(), run());
    let (url, busy) = (server.url("/"), server.url("/busy"));
    let begin = Instant::now();
    let (first, second, third) = tokio::join!(get(&one, &url), get(&two, &url), get(&three, &url));
    for answer in [first, second, third] {
        answer.unwrap();
    }
    let mut seen = server.seen();
    seen.sort_by_key(|request| request.at);
    // Since the begin: a busy machine may notice the first request late.
    let third = seen[2].at - begin;
    assert!(third >= Duration::from_millis(115), "{third:?}");
    assert!(begin.elapsed() >= Duration::from_millis(200), "{:?}", begin.elapsed());
    let received: u64 =
        [&one, &two, &three].map(|client| client.shared().counters().bytes_received).iter().sum();
    assert!(budget.bytes() == received && received > 60_000, "{received}");
    // What a server asks of one run holds for the others.
    one.fetch_to(&Request::new(&busy), &mut Vec::new(), 100).await.unwrap_err();
    let asked = Instant::now();
    get(&two, &url).await.unwrap();
    assert!(asked.elapsed() >= Duration::from_millis(250), "{:?}", asked.elapsed());
}
