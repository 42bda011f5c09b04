//! Only verified bytes are stored; interrupted transfers are continued.

use crate::copy::{Copy, Ran, files};
use crate::source::{Source, list_of};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{self, BEGIN, document};
use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Publishes a list of a single resource, with length and digest.
fn list_with_digest(server: &Server, path: &str, body: &[u8]) {
    let entry = documents::entry(&server.url(path), body, "");
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entry));
}

#[test]
fn bytes_that_are_not_as_listed_are_never_seen() {
    let mut source = Source::new();
    source.set("/ok.txt", "old copy");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    source.set("/ok.txt", "new copy");
    source.server.body("/ok.txt", "bad copy");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.codes.as_slice()), (3, ["fixity.mismatch".to_owned()].as_slice()));
    assert_eq!(copy.texts(), BTreeMap::from([("ok.txt".to_owned(), "old copy".to_owned())]));
    // The failure is not forgotten: the next run, with an unchanged list, tries again.
    source.server.body("/ok.txt", "new copy");
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), copy.read("ok.txt").as_deref()),
        (0, Some("new copy")),
        "{:?}",
        ran.codes
    );
}

#[test]
fn unknown_algorithms_are_reported_and_refused_on_demand() {
    let server = Server::start();
    let sha = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let entries = format!(
        "<url><loc>{0}/ok.txt</loc><rs:md length=\"5\" hash=\"sha3-512:00 sha-256:{sha}\"/></url>\
         <url><loc>{0}/ok2.txt</loc><rs:md hash=\"whirlpool:00\"/></url>",
        server.base
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entries));
    server.body("/ok.txt", "hello");
    server.body("/ok2.txt", "hello");
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().unverified), (0, 1));
    assert_eq!(ran.codes, ["rs.no-at", "fixity.unknown", "fixity.unknown"]);
    let mut strict = Copy::of(server.url("/list.xml"));
    strict.options.require_fixity = true;
    let ran = strict.try_run();
    assert_eq!((ran.exit(), ran.summary().skipped), (3, 1));
    assert_eq!(strict.paths(), ["ok.txt"]);
}

fn messages_of(ran: &Ran) -> String {
    ran.reported.iter().map(|it| format!("{}\n", it.message)).collect()
}

/// Also a digest that is malformed cannot be verified, and is not called one of an unknown algorithm.
#[test]
fn unusable_digests_are_named_by_what_is_wrong() {
    for (hash, expected) in [
        ("md5:12", "unknown algorithms or have the wrong length; stored unverified"),
        ("md5:12 md5:5d41402abc4b2a76b9719d911017c592", "wrong length; verified by the others"),
    ] {
        let server = Server::start();
        let entries = format!(
            "<url><loc>{}/ok.txt</loc><rs:md length=\"5\" hash=\"{hash}\"/></url>",
            server.base
        );
        server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entries));
        server.body("/ok.txt", "hello");
        let ran = Copy::of(server.url("/list.xml")).try_run();
        let messages = messages_of(&ran);
        assert!(ran.exit() == 0 && messages.contains(expected), "{hash} {messages}");
        let mut strict = Copy::of(server.url("/list.xml"));
        strict.options.require_fixity = true;
        let ran = strict.try_run();
        let is_verified = hash.contains(' ');
        assert_eq!(ran.summary().skipped, u64::from(!is_verified), "{hash} {}", messages_of(&ran));
        assert!(is_verified || messages_of(&ran).contains("or has the wrong length"));
    }
}

#[test]
fn a_body_cut_short_is_retried_and_reported() {
    let server = Server::start();
    list_of(&server, &["/cut", "/chunked", "/mends", "/ok"]);
    server.put("/cut", Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello"));
    server.put(
        "/chunked",
        Answer::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    );
    let tries = AtomicBool::new(false);
    server.handler(move |path, _| {
        (path == "/mends" && !tries.swap(true, std::sync::atomic::Ordering::Relaxed))
            .then(|| Answer::status(503))
    });
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.codes.as_slice()),
        (3, ["http.truncated".to_owned(), "http.truncated".to_owned()].as_slice())
    );
    assert_eq!(copy.paths(), ["mends", "ok"]);
    assert_eq!(server.take_log().iter().filter(|path| *path == "/cut").count(), 3);
}

#[test]
fn a_large_body_is_continued_where_it_broke_off() {
    let server = Server::start();
    let body: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    list_with_digest(&server, "/big", &body);
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let sent = body.clone();
    server.handler(move |path, _| {
        if path != "/big" {
            return None;
        }
        let head = if tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 {
            let mut raw = format!(
                "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: {}\r\n\r\n",
                sent.len()
            )
            .into_bytes();
            raw.extend_from_slice(&sent[..2_000_000]);
            raw
        } else {
            // Any request receives this: a complete body is a valid response to a range too.
            let mut raw = format!(
                "HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: {}\r\n\r\n",
                sent.len()
            )
            .into_bytes();
            raw.extend_from_slice(&sent);
            raw
        };
        Some(Answer::raw(head))
    });
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(std::fs::read(copy.folder().join("big")).unwrap(), body);
    assert_eq!(copy.paths(), ["big"]);
}

#[test]
fn packed_documents_and_packed_resources_are_read() {
    let server = Server::start();
    let gzip = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let entry = |path: &str, body: &[u8]| {
        format!(
            "<url><loc>{}</loc><rs:md length=\"{}\" hash=\"md5:{}\"/></url>",
            server.url(path),
            body.len(),
            md5_hex(body)
        )
    };
    let archive = gzip(b"an archive");
    // One is listed as it is sent, the other as it is when unpacked.
    let entries = format!("{}{}", entry("/a.gz", &archive), entry("/plain", b"plain text"));
    server.body(
        "/list.xml.gz",
        gzip(document("urlset", "capability=\"resourcelist\"", &entries).as_bytes()),
    );
    server.put("/a.gz", Answer::ok(archive.clone()).header("Content-Encoding", "gzip"));
    server.put("/plain", Answer::ok(gzip(b"plain text")).header("Content-Encoding", "gzip"));
    let copy = Copy::of(server.url("/list.xml.gz"));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {}", ran.codes, ran.code());
    assert_eq!(std::fs::read(copy.folder().join("a.gz")).unwrap(), archive);
    assert_eq!(copy.read("plain").as_deref(), Some("plain text"));
}

#[test]
fn packed_files_that_nothing_is_listed_of_stay_packed() {
    let server = Server::start();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, b"some text").unwrap();
    let packed = encoder.finish().unwrap();
    let paths = ["/a.tar.gz", "/b.tgz", "/c.txt", "/d"];
    let entries: String =
        paths.iter().map(|path| format!("<url><loc>{}</loc></url>", server.url(path))).collect();
    let attributes = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    server.body("/list.xml", document("urlset", &attributes, &entries));
    for path in paths {
        server.put(path, Answer::ok(packed.clone()).header("Content-Encoding", "gzip"));
    }
    let mut copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    let is_packed: Vec<_> = files(copy.folder())
        .into_iter()
        .map(|(path, bytes)| (path.chars().next().unwrap(), bytes == packed))
        .collect();
    assert_eq!(is_packed, [('a', true), ('b', true), ('c', false), ('d', false)]);
    copy.options.baseline = true;
    assert_eq!(copy.run().updated, 0);
}

#[test]
fn a_large_file_is_continued_by_the_next_run() {
    let server = Server::start();
    let body: Vec<u8> = (0..12_000_000_u32).map(|number| (number % 253) as u8).collect();
    list_with_digest(&server, "/big", &body);
    server.put("/big", Answer::ok(body.clone()).header("etag", "\"v1\""));
    let begin = body[..10_000_000].to_vec();
    let length = body.len();
    let cut = move |etag: &str| {
        let mut raw =
            format!("HTTP/1.1 200 OK\r\nETag: {etag}\r\nContent-Length: {length}\r\n\r\n")
                .into_bytes();
        raw.extend_from_slice(&begin);
        Answer::raw(raw)
    };
    for (etag, rest) in [("\"v1\"", 2_000_000), ("\"v0\"", 12_000_000)] {
        let mut copy = Copy::of(server.url("/list.xml"));
        copy.options.net.retries = 0;
        let (cut, etag) = (cut.clone(), etag.to_owned());
        server.handler(move |path, _| (path == "/big").then(|| cut(&etag)));
        assert_eq!(copy.try_run().exit(), 3);
        assert!(copy.paths()[0].starts_with(".%~"), "{:?}", copy.paths());
        server.handler(|_, _| None);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
        let bytes = ran.summary().bytes;
        assert!((rest..rest + 20_000).contains(&bytes), "{bytes}");
        assert_eq!(std::fs::read(copy.folder().join("big")).unwrap(), body);
        assert_eq!(copy.paths(), ["big"]);
        assert_eq!(std::fs::read_dir(copy.folder().join(".abreast/partial")).unwrap().count(), 0);
    }
}

#[test]
fn a_partial_download_is_removed_when_no_longer_wanted() {
    let mut source = Source::new();
    source.set("/small", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.options.net.retries = 0;
    copy.run();
    let body = "x".repeat(9_000_000);
    source.set("/big", &body);
    let mut raw = b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 9000000\r\n\r\n".to_vec();
    raw.extend_from_slice(&body.as_bytes()[..8_900_000]);
    source.server.put("/big", Answer::raw(raw));
    assert_eq!(copy.try_run().exit(), 3);
    assert_eq!(copy.paths().len(), 2);
    source.delete("/big");
    source.set("/small", "2");
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.paths()), (0, vec!["small".to_owned()]), "{:?}", ran.codes);
}

#[test]
fn an_index_whose_transfer_broke_off_is_read_once() {
    let source = Source::new();
    let server = source.server.clone();
    let parts: String = (0..3)
        .map(|n| {
            format!("<sitemap><loc>{}</loc></sitemap>\n", server.url(&format!("/part{n}.xml")))
        })
        .collect();
    let list = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    let index = document("sitemapindex", &list, &parts);
    for n in 0..3 {
        let entry = source.entry(&format!("/r{n}"), b"x", "");
        server.body(&format!("/part{n}.xml"), document("urlset", &list, &entry));
        server.body(&format!("/r{n}"), "x");
    }
    source.publish();
    server.handler(move |path, times| {
        if path != "/resourcelist.xml" {
            return None;
        }
        let sent = if times <= 1 { &index[..index.len() - 60] } else { &index[..] };
        Some(Answer::raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{sent}",
            index.len()
        )))
    });
    let copy = Copy::of(source.url());
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, 3), "{:?}", ran.codes);
}
