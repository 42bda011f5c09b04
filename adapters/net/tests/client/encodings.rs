//! Packed bodies.

use std::io::Write;

use abreast_net::{Options, Request, UnaskedEncoding};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{client, quick, read};
use abreast_testkit::http::Server;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn packed(encoding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn gzip_is_unpacked_when_it_was_asked_for() {
    let text = "many words ".repeat(10_000);
    for encoding in ["gzip", "GZIP", "x-gzip", "gzip, identity"] {
        let server = Server::saying(packed(encoding, &gzip(text.as_bytes())));
        let url = server.url("/");
        let request = Request { accept_gzip: true, ..Request::new(&url) };
        assert!(read(&client(quick()), &request).await.unwrap().1 == text.as_bytes(), "{encoding}");
        assert_eq!(server.seen()[0].header("accept-encoding"), Some("gzip"));
    }
}

#[tokio::test]
async fn gzip_is_not_asked_for_when_switched_off_or_for_a_part() {
    let server = Server::saying(packed("identity", b"plain"));
    let url = server.url("/");
    let plain = Request { accept_gzip: true, ..Request::new(&url) };
    read(&client(Options { gzip: false, ..quick() }), &plain).await.unwrap();
    let part = Request { range_from: Some((5, "\"a\"")), ..plain };
    read(&client(quick()), &part).await.unwrap();
    assert!(server.seen().iter().all(|seen| seen.header("accept-encoding") == Some("identity")));
}

#[tokio::test]
async fn unrequested_encodings_are_refused_or_passed_on_by_option() {
    let twice = gzip(&gzip(b"text"));
    for (encoding, body, asked) in [
        ("gzip", &gzip(b"text")[..], false),
        ("gzip, gzip", &twice, true),
        ("br", b"xx", true),
        ("what", b"xx", true),
        ("deflate, gzip", b"xx", true),
    ] {
        let server = Server::saying(packed(encoding, body));
        let url = server.url("/");
        let request = Request { accept_gzip: asked, ..Request::new(&url) };
        let error = read(&client(quick()), &request).await.unwrap_err();
        assert_eq!(error.code(), "http.encoding", "{encoding}");
        let raw = Request { unasked_encoding: UnaskedEncoding::Raw, ..request };
        let (response, bytes) = read(&client(quick()), &raw).await.unwrap();
        assert_eq!((&bytes[..], response.header("content-encoding")), (body, Some(encoding)));
    }
    let server = Server::saying(packed("gzip", &gzip(b"text")));
    let url = server.url("/");
    let decode = Request { unasked_encoding: UnaskedEncoding::Decode, ..Request::new(&url) };
    assert_eq!(read(&client(quick()), &decode).await.unwrap().1, b"text");
}

#[tokio::test]
async fn gzip_of_gzip_under_one_name_is_unpacked_once() {
    let inner = gzip(b"text");
    let server = Server::saying(packed("gzip", &gzip(&inner)));
    let url = server.url("/");
    let request = Request { accept_gzip: true, ..Request::new(&url) };
    assert_eq!(read(&client(quick()), &request).await.unwrap().1, inner);
}

#[tokio::test]
async fn broken_and_cut_gzip_is_never_success() {
    let whole = gzip("some words ".repeat(1000).as_bytes());
    let fails = async |body: &[u8]| {
        let server = Server::saying(packed("gzip", body));
        let url = server.url("/");
        let request = Request { accept_gzip: true, ..Request::new(&url) };
        let error = read(&client(quick()), &request).await.unwrap_err();
        (error.code(), error.to_string())
    };
    // In the words that are used for a packed file without `Content-Encoding`.
    for (body, code, words) in [
        (&whole[..whole.len() - 1], "http.truncated", "the gzip data ends in the middle"),
        (&whole[..whole.len() / 2], "http.truncated", "the gzip data ends in the middle"),
        (b"this is not gzip at all", "http.encoding", "the gzip data is damaged"),
        (
            &[&whole[..], b"\n<html>"].concat(),
            "http.encoding",
            "there are bytes behind the end of the gzip data",
        ),
    ] {
        let (found, message) = fails(body).await;
        assert!(found == code && message.contains(words), "{found} {message}");
    }
    let server = Server::saying(packed("gzip", &[&whole[..], &[0; 700]].concat()));
    let url = server.url("/");
    let request = Request { accept_gzip: true, ..Request::new(&url) };
    assert_eq!(read(&client(quick()), &request).await.unwrap().1.len(), 11_000);
}

#[tokio::test]
async fn a_gzip_bomb_is_stopped_by_ratio_and_by_limit() {
    let server = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
        let mut encoder = GzEncoder::new(stream, Compression::best());
        let megabyte = vec![0; 1 << 20];
        for _ in 0..1024 {
            if encoder.write_all(&megabyte).is_err() {
                return false;
            }
        }
        let _ = encoder.finish();
        false
    });
    let url = server.url("/");
    let client = client(quick());
    let request = Request { accept_gzip: true, ..Request::new(&url) };
    let mut response = client.send(&request).await.unwrap();
    let mut unpacked = 0;
    let error = loop {
        match response.chunk().await {
            Ok(data) => unpacked += data.unwrap().len(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "http.size");
    assert!(unpacked <= 10 << 20);
    let error = read(&client, &request).await.unwrap_err();
    assert_eq!(error.code(), "http.size");
}

#[tokio::test]
async fn head_and_not_modified_have_no_body_to_unpack() {
    let server =
        Server::saying("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 77\r\n\r\n");
    let url = server.url("/");
    let (response, body) =
        read(&client(quick()), &Request { head: true, ..Request::new(&url) }).await.unwrap();
    assert_eq!((response.content_length(), body.len()), (Some(77), 0));
    assert_eq!(server.seen()[0].line(), "HEAD / HTTP/1.1");
    let server = Server::saying("HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\n\r\n");
    let url = server.url("/");
    let request = Request { if_none_match: Some("\"a\""), accept_gzip: true, ..Request::new(&url) };
    assert!(read(&client(quick()), &request).await.unwrap().1.is_empty());
}
