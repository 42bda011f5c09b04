//! Answers that are no answers.

use std::io::Write;

use abreast_net::{Request, StatusCode};

use crate::{client, code_for, get, quick, read};
use abreast_testkit::http::{Server, answer, ok};

#[tokio::test]
async fn body_shorter_than_its_length_is_truncated() {
    assert_eq!(
        code_for("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nshort").await,
        "http.truncated"
    );
    let server = Server::saying("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nshort");
    let client = client(quick());
    let mut response = client.send(&Request::new(&server.url("/"))).await.unwrap();
    assert_eq!(response.content_length(), Some(100_000));
    let mut body = Vec::new();
    let error = response.read_to(&mut body, 1 << 20).await.unwrap_err();
    assert!(error.is_transient());
    assert_eq!(
        response.chunk().await.unwrap_err().code(),
        "http.truncated",
        "a failed body never ends well"
    );
}

#[tokio::test]
async fn chunked_body_without_its_last_chunk_is_truncated() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["5\r\nhello\r\n", "5\r\nhello", "5\r\nhel", "5", "", "5\r\nhello\r\n0\r\n"] {
        assert_eq!(code_for(format!("{head}{body}")).await, "http.truncated", "{body:?}");
    }
    let server =
        Server::saying(format!("{head}5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: t\r\n\r\n"));
    assert_eq!(get(&client(quick()), &server.url("/")).await.unwrap().1, b"hello world");
}

#[tokio::test]
async fn body_of_unknown_length_ends_with_the_connection() {
    let server = Server::saying("HTTP/1.0 200 OK\r\n\r\nuntil the end");
    assert_eq!(get(&client(quick()), &server.url("/")).await.unwrap().1, b"until the end");
}

#[tokio::test]
async fn connection_closed_before_the_answer_is_transient() {
    for reply in ["", "HTT", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"] {
        assert_eq!(code_for(reply).await, "http.truncated", "{reply:?}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_are_refused() {
    for reply in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "<html>hello</html>\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header line\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello",
    ] {
        assert_eq!(code_for(reply).await, "http.protocol", "{reply:?}");
    }
}

#[tokio::test]
async fn server_that_speaks_first_is_refused() {
    let server = Server::raw(|mut stream| {
        let _ = stream.write_all(b"220 files.example ready\r\n");
        abreast_testkit::http::hold(&mut stream);
    });
    let url = format!("http://{}/", server.address());
    assert_eq!(get(&client(quick()), &url).await.unwrap_err().code(), "http.protocol");
}

#[tokio::test]
async fn framing_that_can_be_read_in_two_ways_is_refused() {
    let body = "5\r\nhello\r\n0\r\n\r\n";
    for (headers, code) in [
        ("Transfer-Encoding: gzip, chunked", "http.encoding"),
        ("Transfer-Encoding: identity", "http.encoding"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "http.encoding"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", "http.protocol"),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", "http.protocol"),
    ] {
        assert_eq!(
            code_for(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{body}")).await,
            code,
            "{headers}"
        );
    }
}

#[tokio::test]
async fn not_modified_without_a_condition_is_an_error() {
    let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
    assert_eq!(code_for(not_modified).await, "http.status");
    let server = Server::saying(not_modified);
    let url = server.url("/");
    let client = client(quick());
    for request in [
        Request { if_none_match: Some("\"a\""), ..Request::new(&url) },
        Request { if_modified_since: Some("Fri, 02 Jan 2026 00:00:00 GMT"), ..Request::new(&url) },
    ] {
        let (response, body) = read(&client, &request).await.unwrap();
        assert_eq!((response.status(), body.len()), (StatusCode::NOT_MODIFIED, 0));
        response.require_success().unwrap();
    }
    assert_eq!(server.seen()[0].header("if-none-match"), Some("\"a\""));
    assert_eq!(server.seen()[1].header("if-modified-since"), Some("Fri, 02 Jan 2026 00:00:00 GMT"));
}

#[tokio::test]
async fn statuses_that_do_not_fit_are_errors_of_the_item() {
    for status in [
        "204 No Content",
        "206 Partial Content",
        "600 Too Much",
        "999 What",
        "099 Little",
        "000 None",
    ] {
        let reply = answer(status, "", "x");
        let server = Server::saying(reply);
        let error = get(&client(quick()), &server.url("/")).await.unwrap_err();
        assert_eq!(error.code(), "http.status", "{status}");
        assert!(!error.is_transient());
    }
    assert_eq!(
        code_for("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
            .await,
        "http.status"
    );
}

#[tokio::test]
async fn a_few_interim_responses_are_skipped_and_a_flood_is_refused() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let server = Server::saying(format!("{}{}", interim.repeat(16), ok("real")));
    assert_eq!(get(&client(quick()), &server.url("/")).await.unwrap().1, b"real");
    let server = Server::new(move |_, stream| {
        while stream.write_all(interim.as_bytes()).is_ok() {}
        false
    });
    let error = get(&client(quick()), &server.url("/")).await.unwrap_err();
    assert_eq!(error.code(), "http.protocol");
    assert!(error.to_string().contains("interim"), "{error}");
}

#[tokio::test]
async fn header_block_beyond_its_limit_is_refused() {
    let server = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX-Large: ");
        let kilobyte = [b'a'; 1024];
        for _ in 0..16 << 10 {
            if stream.write_all(&kilobyte).is_err() {
                return false;
            }
        }
        let _ = stream.write_all(b"\r\nContent-Length: 0\r\n\r\n");
        false
    });
    let client = client(quick());
    assert_eq!(get(&client, &server.url("/")).await.unwrap_err().code(), "http.header");
    assert!(client.shared().counters().bytes_received < 1 << 20, "stopped early");
    let many = format!("HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n", "a: b\r\n".repeat(5_000));
    assert_eq!(code_for(many).await, "http.header");
}

#[tokio::test]
async fn header_block_below_its_limit_is_fine() {
    let server =
        Server::saying(answer("200 OK", &format!("X-Large: {}\r\n", "a".repeat(60_000)), "x"));
    let (response, body) = get(&client(quick()), &server.url("/")).await.unwrap();
    assert_eq!(response.header("x-large").map(str::len), Some(60_000));
    assert_eq!(body, b"x");
}

#[tokio::test]
async fn body_beyond_the_callers_limit_is_refused() {
    let client = client(quick());
    let mut body = Vec::new();
    let announced = Server::saying(ok("0123456789"));
    let mut response = client.send(&Request::new(&announced.url("/"))).await.unwrap();
    assert_eq!(response.read_to(&mut body, 9).await.unwrap_err().code(), "http.size");
    assert!(body.is_empty());
    let endless = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'a'; 1024]).is_ok() {}
        false
    });
    let mut response = client.send(&Request::new(&endless.url("/"))).await.unwrap();
    assert_eq!(response.read_to(&mut body, 100_000).await.unwrap_err().code(), "http.size");
    assert!(body.len() <= 100_000);
    let mut response = client.send(&Request::new(&endless.url("/"))).await.unwrap();
    response.set_limit(5_000);
    let error = loop {
        if let Err(error) = response.chunk().await {
            break error;
        }
    };
    assert_eq!(error.code(), "http.size");
}

#[tokio::test]
async fn partial_answer_is_joined_only_when_it_fits_exactly() {
    let etag = "\"v1\"";
    let fits = async |status: &str, headers: &str| {
        let server = Server::saying(answer(status, headers, "56789"));
        let url = server.url("/");
        let request = Request { range_from: Some((5, etag)), ..Request::new(&url) };
        let answered = read(&client(quick()), &request).await;
        assert_eq!(server.seen()[0].header("range"), Some("bytes=5-"));
        assert_eq!(server.seen()[0].header("if-range"), Some(etag));
        // Where it does not fit, the whole is requested, and this server answers a part again.
        answered.is_ok_and(|(response, _)| response.is_partial_from(5, etag))
    };
    let part = "206 Partial Content";
    assert!(fits(part, "ETag: \"v1\"\r\nContent-Range: bytes 5-9/10\r\n").await);
    assert!(fits(part, "ETag: \"v1\"\r\nContent-Range: Bytes 5-9/10\r\n").await);
    for (status, headers) in [
        ("200 OK", "ETag: \"v1\"\r\n"),
        (part, "ETag: \"v2\"\r\nContent-Range: bytes 5-9/10\r\n"),
        (part, "Content-Range: bytes 5-9/10\r\n"),
        (part, "ETag: W/\"v1\"\r\nContent-Range: bytes 5-9/10\r\n"),
        (part, "ETag: \"v1\"\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 4-8/10\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 5-9/11\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 5-9/*\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 5-8/9\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 9-5/10\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 5-9/9\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes +5-9/10\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 5-9/10\r\nContent-Range: bytes 0-4/10\r\n"),
        (part, "ETag: \"v1\"\r\nContent-Type: multipart/byteranges; boundary=x\r\n"),
        (
            part,
            "ETag: \"v1\"\r\nContent-Range: bytes 5-18446744073709551615/18446744073709551616\r\n",
        ),
        (part, "ETag: \"v1\"\r\nContent-Range: bytes 5-18446744073709551615/*\r\n"),
    ] {
        assert!(!fits(status, headers).await, "{status} {headers}");
    }
}

#[tokio::test]
async fn the_whole_is_requested_where_the_rest_is_not_answered() {
    let etag = "\"v1\"";
    for (status, headers) in [
        ("206 Partial Content", "ETag: \"v1\"\r\nContent-Range: bytes 5-9/*\r\n"),
        ("206 Partial Content", "Content-Range: bytes 5-9/10\r\n"),
        ("206 Partial Content", "ETag: \"v1\"\r\nContent-Range: bytes 4-8/10\r\n"),
        ("206 Partial Content", "ETag: \"v1\"\r\n"),
        ("416 Range Not Satisfiable", "Content-Range: bytes */10\r\n"),
        ("200 OK", "ETag: \"v1\"\r\nContent-Range: bytes 5-9/10\r\n"),
    ] {
        let odd = answer(status, headers, "56789");
        let server = Server::new(move |request, stream| {
            let whole = ok("0123456789");
            let answer = if request.header("range").is_some() { &odd } else { &whole };
            stream.write_all(answer.as_ref()).is_ok()
        });
        let url = server.url("/");
        let request = Request { range_from: Some((5, etag)), ..Request::new(&url) };
        let (response, body) = read(&client(quick()), &request).await.unwrap();
        let seen = (response.status().as_u16(), String::from_utf8(body).unwrap());
        assert_eq!(seen, (200, "0123456789".to_owned()), "{status} {headers}");
    }
}

#[tokio::test]
async fn a_part_with_status_200_is_not_the_whole() {
    let with_range = async |range: &str| {
        let headers = format!("Content-Range: {range}\r\n");
        let server = Server::saying(answer("200 OK", &headers, "56789"));
        let response = client(quick()).send(&Request::new(&server.url("/"))).await.unwrap();
        response.require_success().map(|_| ()).map_err(|error| error.to_string())
    };
    for range in ["bytes 5-9/10", "bytes 0-4/10", "bytes 5-9/*"] {
        let error = with_range(range).await.unwrap_err();
        assert!(error.contains(range), "{error}");
    }
    for range in ["bytes 0-4/5", "bytes 0-4/*", "lines 5-9/10", "bytes 9-5/10"] {
        assert_eq!(with_range(range).await, Ok(()), "{range}");
    }
}

#[tokio::test]
async fn a_part_is_not_asked_for_by_a_weak_tag() {
    let server = Server::saying(ok("0123456789"));
    let url = server.url("/");
    for range_from in [Some((5, "W/\"v1\"")), Some((5, "")), Some((0, "\"v1\""))] {
        let (response, _) =
            read(&client(quick()), &Request { range_from, ..Request::new(&url) }).await.unwrap();
        assert!(!response.is_partial_from(5, range_from.unwrap().1));
    }
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("range").is_none() && seen.header("if-range").is_none())
    );
}

#[tokio::test]
async fn cookies_and_wishes_of_a_server_are_ignored() {
    let wishes = "Set-Cookie: a=b\r\nStrict-Transport-Security: max-age=99999\r\nAlt-Svc: h2=\"evil.example:443\"\r\nRefresh: 0; url=http://evil.example/\r\nLink: <http://evil.example/>; rel=preload\r\n";
    let server = Server::script(&[&answer("200 OK", wishes, "x")]);
    let client = client(quick());
    for _ in 0..3 {
        assert_eq!(get(&client, &server.url("/")).await.unwrap().1, b"x");
    }
    assert_eq!(server.seen().len(), 3);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("cookie").is_none() && seen.line() == "GET / HTTP/1.1")
    );
}

#[tokio::test]
async fn errors_of_the_server_are_answers_until_success_is_required() {
    let server = Server::saying(answer("404 Not Found", "", "gone"));
    let (response, body) = get(&client(quick()), &server.url("/x?y#z")).await.unwrap();
    assert_eq!((response.status(), &body[..]), (StatusCode::NOT_FOUND, &b"gone"[..]));
    assert_eq!(response.url(), server.url("/x?y"));
    let error = response.require_success().unwrap_err();
    assert_eq!(
        (error.code(), error.status(), error.is_transient()),
        ("http.status", Some(404), false)
    );
    assert_eq!(
        error.to_string(),
        format!("cannot fetch {}: the server answered 404, not found", server.url("/x?y"))
    );
}

#[tokio::test]
async fn folded_header_lines_are_one_value() {
    let server =
        Server::saying(answer("200 OK", "X-Long: a,\r\n b\r\n\tc\r\nETag: \"v1\"\r\n", "x"));
    let response = client(quick()).send(&Request::new(&server.url("/"))).await.unwrap();
    let words: Vec<&str> = response.header("x-long").unwrap().split_whitespace().collect();
    assert_eq!((words, response.header("etag")), (vec!["a,", "b", "c"], Some("\"v1\"")));
}
