//! What is written to the wire, and where it goes.

use abreast_net::{ErrorKind, Method, Options, Post, Request};

use crate::{client, get, quick};
use abreast_testkit::http::{Server, ok, unused_address};

#[tokio::test]
async fn path_and_query_are_sent_as_written() {
    let server = Server::script(&[&ok("x")]);
    let client = client(quick());
    for (path, sent) in [
        ("/a/%2e%2E/../b//c?x=%zz&y=a+b", "/a/%2e%2E/../b//c?x=%zz&y=a+b"),
        ("/caf\u{e9} au lait#fragment", "/caf%C3%A9%20au%20lait"),
        ("?only=query", "/?only=query"),
        ("", "/"),
    ] {
        let (response, _) = get(&client, &server.url(path)).await.unwrap();
        assert_eq!(server.seen().last().unwrap().target(), sent);
        assert_eq!(response.url(), server.url(path.split('#').next().unwrap()));
    }
}

#[tokio::test]
async fn request_has_the_headers_a_polite_client_sends() {
    let server = Server::saying(ok("x"));
    let options =
        Options { user_agent: "museum-mirror/1.0 (+http://example.org/)\r\n".into(), ..quick() };
    get(&client(options), &server.url("/")).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.header("host"), Some(&*server.address().to_string()));
    assert_eq!(seen.header("user-agent"), Some("museum-mirror/1.0 (+http://example.org/)"));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert_eq!(seen.head.lines().count(), 5, "{}", seen.head);
}

#[tokio::test]
async fn request_has_accept_and_last_event_id() {
    let server = Server::saying(ok("x"));
    let url = server.url("/");
    let request = Request {
        accept: Some("text/event-stream"),
        last_event_id: Some("7"),
        ..Request::new(&url)
    };
    client(quick()).send(&request).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.header("accept"), seen.header("last-event-id")),
        (Some("text/event-stream"), Some("7"))
    );
}

#[tokio::test]
async fn name_can_be_connected_to_a_given_address() {
    let server = Server::saying(ok("x"));
    let options =
        Options { connect_to: vec![("museum.example:80".into(), server.address())], ..quick() };
    let (response, _) = get(&client(options), "http://Museum.example/a").await.unwrap();
    assert_eq!(response.url(), "http://Museum.example/a");
    assert_eq!(server.seen()[0].header("host"), Some("museum.example"));
}

#[tokio::test]
async fn second_address_is_tried_when_the_first_refuses() {
    let closed = unused_address();
    let server = Server::saying(ok("x"));
    let name = || "museum.example:80".to_owned();
    let options =
        Options { connect_to: vec![(name(), closed), (name(), server.address())], ..quick() };
    assert_eq!(get(&client(options), "http://museum.example/").await.unwrap().1, b"x");
}

#[tokio::test]
async fn condition_that_cannot_be_a_header_is_refused_before_sending() {
    let server = Server::saying(ok("x"));
    let url = server.url("/");
    let request = Request { if_none_match: Some("\"a\r\nX: y\""), ..Request::new(&url) };
    assert_eq!(client(quick()).send(&request).await.unwrap_err().kind(), ErrorKind::Header);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn urls_of_other_schemes_are_refused() {
    for url in ["file:///etc/passwd", "data:,x", "ftp://example.org/", "//example.org/", "relative"]
    {
        assert_eq!(get(&client(quick()), url).await.unwrap_err().code(), "uri.authority", "{url}");
    }
}

#[tokio::test]
async fn a_post_carries_its_body_and_key_and_follows_no_redirect() {
    let server =
        Server::script(&["HTTP/1.1 307 T\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"]);
    let body = bytes::Bytes::from_static(b"[1]");
    let post = Post { body: &body, content_type: "application/json", idempotency_key: Some("one") };
    let url = server.url("/api");
    let response =
        client(quick()).send(&Request { post: Some(post), ..Request::new(&url) }).await.unwrap();
    assert_eq!(response.status(), 307);
    let seen = &server.seen()[0];
    assert!(seen.head.starts_with("POST /api HTTP/1.1\r\n"), "{}", seen.head);
    assert_eq!(
        [
            seen.header("content-length"),
            seen.header("content-type"),
            seen.header("idempotency-key")
        ],
        [Some("3"), Some("application/json"), Some("one")]
    );
}

#[tokio::test]
async fn requests_with_a_body_may_be_put_and_delete() {
    let empty = "HTTP/1.1 204 N\r\n\r\n";
    let server = Server::script(&[empty, empty]);
    let (body, url, client) = (bytes::Bytes::from_static(b"x"), server.url("/a"), client(quick()));
    let post = Some(Post { body: &body, content_type: "text/plain", idempotency_key: None });
    for method in [&Method::PUT, &Method::DELETE] {
        let request = Request { post, method: Some(method), ..Request::new(&url) };
        assert_eq!(client.send(&request).await.unwrap().status(), 204);
    }
    let lines: Vec<_> = server.seen().iter().map(|seen| seen.line().to_owned()).collect();
    assert_eq!(lines, ["PUT /a HTTP/1.1", "DELETE /a HTTP/1.1"]);
}
