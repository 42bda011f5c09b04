//! Requests on which two servers could disagree: one answer at most, and the connection closed
//! after it.

use crate::world::{Served, World};
use abreast_server::ServerOptions;
use std::time::Duration;

fn world() -> (World, Served) {
    let world = World::new();
    world.write("a", "public");
    world.publish();
    // Some of these never become a whole request.
    let served = world.serve_with(ServerOptions {
        header_timeout: Duration::from_secs(1),
        ..ServerOptions::default()
    });
    (world, served)
}

/// What a smuggler hides behind the first request.
const SECOND: &str = "GET /livez HTTP/1.1\r\nHost: smuggled\r\n\r\n";

#[test]
fn ambiguous_requests_get_one_refusal_and_no_second_answer() {
    let (_world, served) = world();
    let target = "/set/r/a";
    for (what, request) in [
        (
            "length and chunks",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}"
            ),
        ),
        (
            "chunks and length",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{SECOND}"
            ),
        ),
        (
            "the same to POST",
            format!(
                "POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}"
            ),
        ),
        (
            "two lengths",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\n{SECOND}"
            ),
        ),
        (
            "a list of lengths",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 40\r\n\r\n{SECOND}"),
        ),
        (
            "a signed length",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n{SECOND}"),
        ),
        (
            "a body",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{SECOND}",
                SECOND.len()
            ),
        ),
        (
            "a chunked body",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}"
            ),
        ),
        (
            "a body to HEAD",
            format!("HEAD {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx{SECOND}"),
        ),
        (
            "chunked, but not last",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n{SECOND}"
            ),
        ),
        (
            "an odd coding",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{SECOND}"
            ),
        ),
        (
            "chunks in HTTP/1.0",
            format!(
                "GET {target} HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SECOND}"
            ),
        ),
        (
            "a folded header",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n{SECOND}"),
        ),
        (
            "a folded length",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 0\r\n\r\n{SECOND}"),
        ),
        (
            "a space before the colon",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nContent-Length : 0\r\n\r\n{SECOND}"),
        ),
        (
            "a space before the first header",
            format!("GET {target} HTTP/1.1\r\n Host: x\r\n\r\n{SECOND}"),
        ),
        (
            "a bare line feed after the request line",
            format!("GET {target} HTTP/1.1\nHost: x\r\n\r\n{SECOND}"),
        ),
        (
            "a bare line feed after a header",
            format!("GET {target} HTTP/1.1\r\nHost: x\nX: y\r\n\r\n{SECOND}"),
        ),
        ("only bare line feeds", format!("GET {target} HTTP/1.1\nHost: x\n\n{SECOND}")),
        ("a bare line feed at the end", format!("GET {target} HTTP/1.1\r\nHost: x\r\n\n{SECOND}")),
        ("a bare line feed before", format!("\nGET {target} HTTP/1.1\r\nHost: x\r\n\r\n{SECOND}")),
        (
            "a bare carriage return",
            format!("GET {target} HTTP/1.1\r\nHost: x\rX: y\r\n\r\n{SECOND}"),
        ),
        ("a NUL", format!("GET {target} HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n{SECOND}")),
        ("two hosts", format!("GET {target} HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n{SECOND}")),
        (
            "the same host twice",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n{SECOND}"),
        ),
        ("no host", format!("GET {target} HTTP/1.1\r\n\r\n{SECOND}")),
        ("a host that is a path", format!("GET {target} HTTP/1.1\r\nHost: x/../y\r\n\r\n{SECOND}")),
        ("a host with user", format!("GET {target} HTTP/1.1\r\nHost: u@x\r\n\r\n{SECOND}")),
        ("a host with spaces", format!("GET {target} HTTP/1.1\r\nHost: x y\r\n\r\n{SECOND}")),
        (
            "a host with markup",
            format!("GET {target} HTTP/1.1\r\nHost: \"><script>\r\n\r\n{SECOND}"),
        ),
        ("no version", format!("GET {target}\r\nHost: x\r\n\r\n{SECOND}")),
        ("another version", format!("GET {target} HTTP/3.7\r\nHost: x\r\n\r\n{SECOND}")),
        ("two spaces", format!("GET  {target} HTTP/1.1\r\nHost: x\r\n\r\n{SECOND}")),
        ("HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
        ("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\u{7f}\x03\x03".to_owned()),
        ("an unknown method", format!("G\u{e9}T {target} HTTP/1.1\r\nHost: x\r\n\r\n{SECOND}")),
        (
            "101 headers",
            format!("GET {target} HTTP/1.1\r\nHost: x\r\n{}\r\n{SECOND}", "X: y\r\n".repeat(101)),
        ),
        (
            "headers of a megabyte",
            format!(
                "GET {target} HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n{SECOND}",
                "y".repeat(1 << 20)
            ),
        ),
    ] {
        let replies = served.answers_to(request.as_bytes());
        assert!(replies.len() <= 1, "{what}: {replies:?}");
        for reply in &replies {
            assert!(matches!(reply.status, 400 | 405 | 414 | 431 | 505), "{what}: {reply:?}");
        }
    }
}

#[test]
fn the_named_faults_are_answered_with_400() {
    let (_world, served) = world();
    for request in [
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "GET / HTTP/1.1\nHost: x\n\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ] {
        let replies = served.answers_to(request.as_bytes());
        assert_eq!(
            replies.iter().map(|reply| reply.status).collect::<Vec<_>>(),
            [400],
            "{request:?}"
        );
        assert_eq!(replies[0].header("connection"), "close", "{request:?}");
    }
}

#[test]
fn line_feed_is_checked_with_the_byte_before_it_over_reads() {
    let (_world, served) = world();
    let mut client = served.connect();
    for byte in b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" {
        client.send(&[*byte]).unwrap();
    }
    assert_eq!(client.reply("GET").unwrap().unwrap().status, 200);
}

#[test]
fn only_get_and_head_are_answered() {
    let (_world, served) = world();
    for method in
        ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"]
    {
        for target in ["/", "/set/r/a", "/set/resourcelist.xml", "/livez", "/metrics", "/nothing"] {
            if method == "CONNECT" && target != "/" {
                continue;
            }
            let target = if method == "CONNECT" { "example.org:80" } else { target };
            let reply = served.ask(method, target, &[]);
            assert_eq!(
                (reply.status, reply.header("allow").as_str()),
                (405, "GET, HEAD"),
                "{method} {target}"
            );
        }
    }
    let reply = served.ask("POST", "/set/r/a", &[("Content-Length", "0")]);
    assert_eq!(reply.status, 405);
    let mut client = served.connect();
    client.send(b"POST /set/r/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\na\nb").unwrap();
    assert_eq!(
        client.reply("POST").unwrap().unwrap().status,
        405,
        "line feeds in a body are not judged"
    );
}

#[test]
fn documents_name_only_the_configured_base() {
    let (_world, served) = world();
    for target in [
        "/",
        "/robots.txt",
        "/sitemap.xml",
        "/.well-known/resourcesync",
        "/set/capabilitylist.xml",
        "/set/resourcelist.xml",
        "/set/changelist.xml",
        "/set/r/a",
        "/nothing",
    ] {
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n\r\n"
        );
        let replies = served.answers_to(request.as_bytes());
        assert_eq!(replies.len(), 1);
        let absolute = served.ask("GET", &format!("http://evil.example{target}"), &[]);
        for reply in replies.iter().chain([&absolute]) {
            let all = format!("{:?}{}", reply.headers, reply.text());
            assert!(!all.contains("evil"), "{target}: {all}");
            assert!(reply.status == 404 || all.contains(crate::world::BASE), "{target}: {all}");
        }
        // HTTP/1.0 has no Host, and needs none.
        let replies = served.answers_to(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes());
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0].body, absolute.body, "{target}");
    }
}

#[test]
fn head_is_answered_with_the_headers_of_get() {
    let (world, served) = world();
    world.write("large", vec![b'x'; 200_000]);
    for target in [
        "/",
        "/livez",
        "/readyz",
        "/metrics",
        "/robots.txt",
        "/sitemap.xml",
        "/.well-known/resourcesync",
        "/set/capabilitylist.xml",
        "/set/resourcelist.xml",
        "/set/resourcelist/1.xml",
        "/set/changelist.xml",
        "/set/changelist/1.xml",
        "/set/changelist/9.xml",
        "/set/sitemap/1.xml",
        "/set/r/a",
        "/set/r/large",
        "/set/r/none",
        "/nothing",
    ] {
        for headers in [
            &[][..],
            &[("Accept-Encoding", "gzip")],
            &[("If-None-Match", "*")],
            &[("If-Match", "\"x\"")],
        ] {
            let get = served.ask("GET", target, headers);
            let mut client = served.connect();
            client.request("HEAD", target, headers);
            let head = client.reply("HEAD").unwrap().unwrap();
            let without_date = |reply: &crate::world::Reply| {
                let mut headers = reply.headers.clone();
                headers.retain(|(name, _)| name != "date");
                headers.sort();
                (reply.status, headers)
            };
            assert_eq!(without_date(&head), without_date(&get), "{target}");
            client.request("GET", "/livez", &[]);
            assert_eq!(
                client.reply("GET").unwrap().unwrap().body,
                b"alive\n",
                "{target}: nothing follows a HEAD"
            );
        }
    }
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let (world, served) = world();
    world.write("large", vec![b'x'; 300_000]);
    let mut client = served.connect();
    let targets =
        ["/set/r/a", "/set/r/large", "/livez", "/set/r/none", "/set/resourcelist.xml", "/set/r/a"];
    let mut all = Vec::new();
    for round in 0..20 {
        for target in targets {
            all.extend_from_slice(
                format!("GET {target}?{round} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
            );
        }
    }
    client.send(&all).unwrap();
    for _ in 0..20 {
        for target in targets {
            let reply = client.reply("GET").unwrap().unwrap();
            let expected = served.get(target);
            assert!(reply.status == expected.status && reply.body == expected.body, "{target}");
        }
    }
}

#[test]
fn nothing_is_read_after_a_chunked_request() {
    let (_world, served) = world();
    let chunked =
        "POST /hub HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na=\r\n0\r\n\r\n";
    for second in ["GET /livez HTTP/1.1\nHost: x\n\n", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let replies = served.answers_to(format!("{chunked}{second}").as_bytes());
        assert_eq!(replies.len(), 1, "{second:?}");
        assert_eq!(replies[0].header("connection"), "close", "{second:?}");
    }
}
