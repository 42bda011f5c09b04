//! Requests that are sent before earlier ones are answered.

use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use abreast_net::{Client, Error, Options, Request};
use tokio::task::JoinSet;

use crate::{client, get, quick, read};
use abreast_testkit::http::{self, Server, hold, ok};

/// One connection, and requests in a row on it.
fn in_row() -> Options {
    Options { connections_per_host: 1, streams_per_host: 64, ..quick() }
}

/// A request that may be sent in a row.
fn pipelined(url: &str) -> Request<'_> {
    Request { pipelined: true, ..Request::new(url) }
}

/// Sends requests for these paths in parallel; returns the bodies in this order.
async fn all(client: &Client, server: &Server, paths: &[&str]) -> Vec<Result<String, Error>> {
    let mut tasks = JoinSet::new();
    for (number, path) in paths.iter().enumerate() {
        let (client, url) = (client.clone(), server.url(path));
        tasks.spawn(async move {
            let body = read(&client, &pipelined(&url)).await;
            (number, body.map(|(_, body)| String::from_utf8(body).unwrap()))
        });
    }
    let mut bodies = tasks.join_all().await;
    bodies.sort_by_key(|(number, _)| *number);
    bodies.into_iter().map(|(_, body)| body).collect()
}

/// A server that answers the first request of a connection at once, and later ones in groups of this
/// number. Each answer is the path of its request.
fn grouping(group: usize) -> Server {
    Server::raw(move |stream| {
        let mut input = BufReader::new(stream);
        let mut size = 1;
        loop {
            let requests: Vec<_> =
                (0..size).map_while(|_| http::Request::read(&mut input)).collect();
            let answers: String = requests.iter().map(|it| ok(it.target())).collect();
            if requests.len() < size || input.get_mut().write_all(answers.as_bytes()).is_err() {
                return;
            }
            size = group;
        }
    })
}

#[tokio::test]
async fn requests_are_sent_before_earlier_ones_are_answered() {
    let server = grouping(8);
    let client = client(in_row());
    assert_eq!(all(&client, &server, &["/first"]).await[0].as_deref().unwrap(), "/first");
    let paths = ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"];
    for _ in 0..3 {
        let bodies = all(&client, &server, &paths).await;
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), paths);
    }
    assert_eq!(server.connections(), 1);
    assert!(client.shared().takes_many());
    let counters = client.shared().counters();
    assert_eq!((counters.requests, counters.retries), (25, 0));
}

#[tokio::test]
async fn other_requests_are_not_sent_in_a_row() {
    /// A server that fails if a request arrives before the last one is answered.
    fn strict(early: &Arc<AtomicUsize>) -> Server {
        let early = Arc::clone(early);
        Server::new(move |seen, stream| {
            std::thread::sleep(Duration::from_millis(20));
            stream.set_nonblocking(true).unwrap();
            if stream.peek(&mut [0]).is_ok_and(|read| read > 0) {
                early.fetch_add(1, SeqCst);
            }
            stream.set_nonblocking(false).unwrap();
            stream.write_all(ok(seen.target()).as_bytes()).is_ok()
        })
    }
    let early = Arc::new(AtomicUsize::new(0));
    let off = Options { pipelining: false, ..in_row() };
    for (options, is_marked) in [(off, true), (in_row(), false)] {
        let (server, client) = (strict(&early), client(options));
        get(&client, &server.url("/first")).await.unwrap();
        let mut tasks = JoinSet::new();
        for _ in 0..6 {
            let (client, url) = (client.clone(), server.url("/"));
            tasks.spawn(async move {
                let request = Request { pipelined: is_marked, ..Request::new(&url) };
                read(&client, &request).await.unwrap();
            });
        }
        tasks.join_all().await;
    }
    assert_eq!(early.load(SeqCst), 0);
    // Each kind of request that a repetition, or its answer, treats differently.
    let (server, client) = (strict(&early), client(in_row()));
    all(&client, &server, &["/first"]).await;
    let url = server.url("/");
    let kinds = [
        Request { head: true, ..pipelined(&url) },
        Request { if_none_match: Some("\"a\""), ..pipelined(&url) },
        Request { range_from: Some((1, "\"a\"")), ..pipelined(&url) },
        Request { no_cache: true, ..pipelined(&url) },
    ];
    let [one, two, three, four] = &kinds;
    let _ = tokio::join!(client.send(one), async {
        let _ = client.send(two).await;
        let _ = client.send(three).await;
        let _ = client.send(four).await;
    });
    assert_eq!(early.load(SeqCst), 0);
}

/// Answers like [`grouping`] does, until a request for `/odd` on a connection that has answered.
fn odd(
    group: usize,
    answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static,
) -> (Server, Arc<AtomicUsize>) {
    let in_row = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&in_row);
    let server = Server::raw(move |stream| {
        let mut input = BufReader::new(stream);
        let mut answered = 0;
        while let Some(request) = http::Request::read(&mut input) {
            // Requests in a row come together, apart from the first one of a connection.
            let is_in_row = input.buffer().len() > 20 * (group - 1);
            if is_in_row && request.target().starts_with("/again") {
                count.fetch_add(1, SeqCst);
            }
            if request.target() == "/odd" && answered > 0 && is_in_row {
                if !answer(input.get_mut()) {
                    return;
                }
            } else if input.get_mut().write_all(ok(request.target()).as_bytes()).is_err() {
                return;
            }
            answered += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    (server, in_row)
}

#[tokio::test]
async fn after_an_irregular_answer_requests_are_repeated_alone() {
    let irregular: [(&str, &str, bool); 9] = [
        (
            "chunked",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n/odd\r\n0\r\n\r\n",
            true,
        ),
        ("until the end", "HTTP/1.1 200 OK\r\n\r\n/odd", false),
        ("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\n/odd", true),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n/odd",
            true,
        ),
        (
            "interim",
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n/odd",
            true,
        ),
        ("not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", true),
        ("no content", "HTTP/1.1 204 No Content\r\n\r\n", true),
        ("no HTTP", "SSH-2.0-x\r\n\r\n", true),
        ("nothing", "", false),
    ];
    for (case, answer, goes_on) in irregular {
        let (server, in_row_count) = odd(2, move |stream| {
            let _ = stream.write_all(answer.as_bytes());
            if answer.is_empty() {
                hold(stream);
            }
            goes_on
        });
        let idle_timeout = Duration::from_millis(400);
        let client = client(Options { idle_timeout, ..in_row() });
        all(&client, &server, &["/first"]).await;
        let paths = ["/a", "/odd", "/b", "/c", "/d"];
        let bodies = all(&client, &server, &paths).await;
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), paths, "{case}");
        assert!(client.shared().takes_many(), "{case}: requests were sent in a row");
        let paths = ["/again", "/again-b", "/again-c"];
        let bodies = all(&client, &server, &paths).await;
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), paths, "{case}");
        assert_eq!(in_row_count.load(SeqCst), 0, "{case}: no more are");
    }
}

#[tokio::test]
async fn answers_that_no_digest_verifies_are_asked_for_again() {
    let again = [203, 302, 404, 410, 500];
    for status in again.into_iter().chain([429, 503]) {
        let (server, _) = odd(2, move |stream| {
            let text = format!("HTTP/1.1 {status} X\r\nContent-Length: 3\r\n\r\nodd");
            stream.write_all(text.as_bytes()).is_ok()
        });
        let client = client(in_row());
        all(&client, &server, &["/first"]).await;
        let url = server.url("/odd");
        let mut seen = Vec::new();
        for _ in 0..4 {
            let odd = async || client.send(&pipelined(&url)).await.unwrap().status().as_u16();
            let (bodies, one, two) =
                tokio::join!(all(&client, &server, &["/a", "/b", "/c", "/d"]), odd(), odd());
            assert!(bodies.iter().all(Result::is_ok), "{status}");
            seen.extend([one, two]);
        }
        // Alone, the server answers with the resource.
        assert_eq!(seen.contains(&status), !again.contains(&status), "{status}: {seen:?}");
    }
}

#[tokio::test]
async fn an_announced_end_repeats_only_the_requests_behind() {
    let server = Server::new(|seen, stream| {
        let answer = if seen.target() == "/last" {
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n/last".to_owned()
        } else {
            ok(seen.target())
        };
        stream.write_all(answer.as_bytes()).is_ok() && seen.target() != "/last"
    });
    let client = client(in_row());
    all(&client, &server, &["/first"]).await;
    for _ in 0..5 {
        let paths = ["/a", "/b", "/last", "/c", "/d"];
        let bodies = all(&client, &server, &paths).await;
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), paths);
    }
    let seen = server.seen();
    assert_eq!(seen.iter().filter(|request| request.target() == "/a").count(), 5);
    assert!(client.shared().takes_many());
}

#[tokio::test]
async fn a_connection_that_breaks_off_fails_only_the_body_that_is_cut() {
    let was_cut = AtomicBool::new(false);
    let server = Server::new(move |seen, stream| {
        if seen.target() == "/cut" && !was_cut.swap(true, SeqCst) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n/cut");
            let _ = stream.shutdown(Shutdown::Write);
            // A connection that is closed with unread requests would lose the answer.
            let _ = std::io::copy(stream, &mut std::io::sink());
            return false;
        }
        stream.write_all(ok(seen.target()).as_bytes()).is_ok()
    });
    let client = client(in_row());
    all(&client, &server, &["/first"]).await;
    let bodies = all(&client, &server, &["/a", "/cut", "/b", "/c"]).await;
    let found: Vec<_> = bodies.iter().map(|it| it.as_ref().map_err(Error::code)).collect();
    assert_eq!(found[1], Err("http.truncated"));
    for (number, path) in [(0, "/a"), (2, "/b"), (3, "/c")] {
        assert_eq!(found[number].unwrap(), path);
    }
    // One break is no reason to stop; several are.
    let breaking = Server::new(|seen, stream| {
        stream.write_all(ok(seen.target()).as_bytes()).is_ok() && seen.target() != "/b"
    });
    for _ in 0..6 {
        let bodies = all(&client, &breaking, &["/a", "/b", "/c", "/d"]).await;
        assert!(bodies.iter().all(Result::is_ok), "{bodies:?}");
    }
}

#[tokio::test]
async fn a_dropped_answer_does_not_stop_those_behind_it() {
    let server = Server::new(|seen, stream| {
        let body =
            if seen.target() == "/large" { "x".repeat(3 << 20) } else { seen.target().into() };
        stream.write_all(ok(&body).as_bytes()).is_ok()
    });
    let client = client(in_row());
    all(&client, &server, &["/first"]).await;
    for dropped in ["/small", "/large"] {
        let url = server.url(dropped);
        let (bodies, ()) = tokio::join!(all(&client, &server, &["/a", "/b", "/c"]), async {
            drop(client.send(&pipelined(&url)).await.unwrap());
        });
        assert!(bodies.iter().all(Result::is_ok), "{dropped}: {bodies:?}");
    }
}

#[tokio::test]
async fn a_request_alone_gets_its_turn() {
    let server = Server::new(|seen, stream| {
        std::thread::sleep(Duration::from_millis(2));
        stream.write_all(ok(seen.target()).as_bytes()).is_ok()
    });
    let client = client(in_row());
    all(&client, &server, &["/first"]).await;
    let mut tasks = JoinSet::new();
    for _ in 0..12 {
        let (client, url) = (client.clone(), server.url("/many"));
        tasks.spawn(async move {
            let end = Instant::now() + Duration::from_secs(3);
            while Instant::now() < end {
                read(&client, &pipelined(&url)).await.unwrap();
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begun = Instant::now();
    get(&client, &server.url("/alone")).await.unwrap();
    let waited = begun.elapsed();
    tasks.abort_all();
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_server_that_ignores_early_requests_is_asked_alone() {
    // Reads all that has come, and answers only the first request in it.
    let server = Server::raw(|stream| {
        let mut input = BufReader::new(stream);
        while http::Request::read(&mut input).is_some_and(|request| {
            std::thread::sleep(Duration::from_millis(30));
            let rest = input.buffer().len();
            std::io::BufRead::consume(&mut input, rest);
            input.get_mut().write_all(ok(request.target()).as_bytes()).is_ok()
        }) {}
    });
    let client = client(Options { idle_timeout: Duration::from_millis(500), ..in_row() });
    all(&client, &server, &["/first"]).await;
    let paths = ["/a", "/b", "/c", "/d"];
    for _ in 0..2 {
        let bodies = all(&client, &server, &paths).await;
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), paths);
    }
}

#[tokio::test]
async fn a_cancelled_request_does_not_mix_up_answers() {
    let server = Server::new(|seen, stream| {
        std::thread::sleep(Duration::from_millis(20));
        if seen.target() == "/held" {
            hold(stream);
        }
        stream.write_all(ok(seen.target()).as_bytes()).is_ok()
    });
    let client = client(in_row());
    all(&client, &server, &["/first"]).await;
    for _ in 0..5 {
        let url = server.url("/cancelled");
        let cancelled = async {
            let _ = tokio::time::timeout(Duration::from_millis(10), client.send(&pipelined(&url)))
                .await;
        };
        let (bodies, ()) = tokio::join!(all(&client, &server, &["/a", "/b", "/c"]), cancelled);
        let bodies: Vec<_> = bodies.into_iter().map(Result::unwrap).collect();
        assert_eq!(bodies, ["/a", "/b", "/c"]);
    }
}

#[tokio::test]
async fn requests_alone_use_no_more_connections() {
    let server = Server::new(|seen, stream| {
        std::thread::sleep(Duration::from_millis(2));
        stream.write_all(ok(seen.target()).as_bytes()).is_ok()
    });
    let client = client(Options { connections_per_host: 2, ..in_row() });
    all(&client, &server, &["/first"]).await;
    all(&client, &server, &["/a"; 16]).await;
    assert!(client.shared().takes_many());
    let mut tasks = JoinSet::new();
    for number in 0..60 {
        let (client, url) = (client.clone(), server.url("/"));
        tasks.spawn(async move {
            // Some of them may be sent in a row, as the small resources of a list.
            let request = Request { pipelined: number % 3 == 0, ..Request::new(&url) };
            read(&client, &request).await.unwrap();
        });
    }
    tasks.join_all().await;
    assert!(server.connections() <= 2, "{} connections", server.connections());
    // Nor after the server turned out to be irregular.
    client.stop_pipelining(&server.url("/"));
    all(&client, &server, &["/b"; 40]).await;
    assert!(server.connections() <= 4, "{} connections", server.connections());
}

#[tokio::test]
async fn an_idle_connection_without_a_place_is_no_obstacle() {
    let (most, is_held) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(true)));
    let (seen, held) = (Arc::clone(&most), Arc::clone(&is_held));
    let server = Server::raw(move |stream| {
        let mut input = BufReader::new(stream);
        while let Some(first) = http::Request::read(&mut input) {
            while first.target() == "/held" && held.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let mut together = vec![first];
            std::thread::sleep(Duration::from_millis(20));
            while !input.buffer().is_empty() {
                together.extend(http::Request::read(&mut input));
            }
            seen.fetch_max(together.len(), SeqCst);
            let answers: String = together.iter().map(|it| ok(it.target())).collect();
            if input.get_mut().write_all(answers.as_bytes()).is_err() {
                return;
            }
        }
    });
    // Two clients share two places of connections.
    let client = client(Options { connections_per_host: 2, ..in_row() });
    let other = Client::new(Arc::clone(client.shared()));
    all(&client, &server, &["/a"; 2]).await;
    all(&client, &server, &["/a"; 16]).await;
    assert!(most.swap(0, SeqCst) > 1);
    let url = server.url("/held");
    let (answer, bodies) = tokio::join!(get(&other, &url), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // One of two idle connections has a place, and takes all these requests.
        let bodies = all(&client, &server, &["/b"; 8]).await;
        is_held.store(false, SeqCst);
        bodies
    });
    answer.unwrap();
    assert!(bodies.iter().all(Result::is_ok), "{bodies:?}");
    assert!(most.load(SeqCst) > 1, "the requests were sent in a row");
}

#[tokio::test]
async fn a_limit_of_requests_a_connection_repeats_few_requests() {
    /// Requests that a connection answers.
    const MOST: usize = 25;
    let answered = Arc::new(std::sync::Mutex::new(std::collections::HashMap::new()));
    let server = Server::new(move |seen, stream| {
        let mut answered = answered.lock().unwrap();
        let count: &mut usize = answered.entry(seen.connection).or_default();
        *count += 1;
        let is_last = *count == MOST;
        drop(answered);
        let close = if is_last { "Connection: close\r\n" } else { "" };
        let (path, length) = (seen.target(), seen.target().len());
        let answer = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: {length}\r\n\r\n{path}");
        let is_sent = stream.write_all(answer.as_bytes()).is_ok();
        if is_last {
            let _ = stream.shutdown(Shutdown::Write);
            let _ = std::io::copy(stream, &mut std::io::sink());
        }
        is_sent && !is_last
    });
    let client = client(Options { connections_per_host: 2, ..in_row() });
    let paths: Vec<String> = (0..500).map(|number| format!("/{number}")).collect();
    for paths in paths.chunks(50) {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let bodies = all(&client, &server, &paths).await;
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), paths);
    }
    assert!(client.shared().takes_many());
    // At most 7 of 25 are behind the last answer of a connection.
    let counters = client.shared().counters();
    assert!(counters.retries <= 500 * 7 / MOST as u64 + 20, "{counters:?}");
    assert!(server.connections() <= 500 / MOST + 4, "{} connections", server.connections());
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_used() {
    let server = Server::new(|seen, stream| {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        stream.write_all(ok(seen.target()).as_bytes()).is_ok()
    });
    let client = client(in_row());
    for _ in 0..5 {
        all(&client, &server, &["/a"]).await;
        let bodies = all(&client, &server, &["/b", "/c", "/d"]).await;
        assert!(bodies.iter().all(Result::is_ok), "{bodies:?}");
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert_eq!(client.shared().counters().retries, 0);
}

#[tokio::test]
async fn a_source_that_redirects_is_asked_alone_after_a_while() {
    let server = Server::new(|seen, stream| {
        let answer = match seen.target().strip_prefix("/old") {
            Some(rest) => {
                format!("HTTP/1.1 302 Found\r\nLocation: /new{rest}\r\nContent-Length: 0\r\n\r\n")
            }
            None => ok(seen.target()),
        };
        stream.write_all(answer.as_bytes()).is_ok()
    });
    let client = client(in_row());
    all(&client, &server, &["/first"]).await;
    for number in 0..20 {
        let paths = [format!("/old/{number}/a"), format!("/old/{number}/b")];
        let bodies = all(&client, &server, &[&paths[0], &paths[1]]).await;
        let wanted = paths.map(|path| path.replace("/old", "/new"));
        assert_eq!(bodies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), wanted);
    }
    let counters = client.shared().counters();
    assert!(counters.retries <= 17, "{counters:?}");
}
