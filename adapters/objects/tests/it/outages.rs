//! An object store that is out of reach, or refuses.

use crate::kind;
use crate::moto::{Moto, node_at};
use abreast_core::contents::{ContentStore, ErrorKind, address_of};
use abreast_objects::{BucketOptions, OpenError, S3Contents, S3ContentsOptions};
use abreast_testkit::http::Server;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const GRACE: Duration = Duration::from_secs(60);

/// Every call is an error that passes, within this time.
fn is_out_of_reach(contents: &dyn ContentStore, within: Duration) {
    let id = address_of(b"x");
    let large = vec![1; 9 << 20];
    let calls: [(&str, &dyn Fn() -> Option<ErrorKind>); 8] = [
        ("put small", &|| kind(contents.put_bytes(b"x"))),
        ("put large", &|| kind(contents.put_bytes(&large))),
        ("hold", &|| kind(contents.hold(&id))),
        ("open", &|| kind(contents.open_read(&id))),
        ("length", &|| kind(contents.length(&id))),
        ("is whole", &|| kind(contents.is_whole(&id))),
        ("remove", &|| kind(contents.remove(&id))),
        ("visit", &|| kind(contents.visit(0, &mut |_| ControlFlow::Continue(())))),
    ];
    for (call, make) in calls {
        let begun = Instant::now();
        assert_eq!(make(), Some(ErrorKind::Busy), "{call}");
        assert!(begun.elapsed() < within, "{call}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_store_that_refuses_connections_is_busy_within_seconds() {
    let address = abreast_testkit::http::unused_address();
    let contents = node_at(address, "bucket", GRACE, Duration::from_secs(30));
    let begun = Instant::now();
    let error = contents.length(&address_of(b"x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("help: check the service"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn a_silent_store_is_busy_within_the_limit() {
    let server = Server::raw(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let limit = Duration::from_millis(500);
    let contents = node_at(server.address(), "bucket", GRACE, limit);
    is_out_of_reach(&contents, limit + Duration::from_secs(2));
}

#[test]
fn calls_after_a_silent_one_do_not_wait() {
    let server = Server::raw(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let limit = Duration::from_secs(2);
    let contents = node_at(server.address(), "bucket", GRACE, limit);
    let id = address_of(b"x");
    assert_eq!(kind(contents.open_read(&id)), Some(ErrorKind::Busy));
    let begun = Instant::now();
    for _ in 0..10 {
        let error = contents.open_read(&id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(error.to_string().contains("did not answer a moment ago"), "{error}");
    }
    assert!(begun.elapsed() < limit / 2, "{:?}", begun.elapsed());
}

#[test]
fn a_failing_store_is_busy() {
    let server = Server::saying("HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n");
    let limit = Duration::from_secs(1);
    let contents = node_at(server.address(), "bucket", GRACE, limit);
    is_out_of_reach(&contents, limit + Duration::from_secs(2));
}

#[test]
fn a_missing_bucket_and_denied_access_have_a_way_out() {
    let limit = Duration::from_secs(5);
    let denied = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let server = Server::saying(denied);
    let contents = node_at(server.address(), "bucket", GRACE, limit);
    let error = contents.put_bytes(b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.to_string().contains("AWS_SECRET_ACCESS_KEY"), "{error}");
    let Some(moto) = Moto::start("a_missing_bucket_and_denied_access_have_a_way_out") else {
        return;
    };
    let contents = node_at(moto.address, "missing", GRACE, limit);
    let error = contents.put_bytes(b"x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other);
    assert!(error.to_string().contains("help: create the bucket"), "{error}");
    assert_eq!(kind(contents.open_read(&address_of(b"x"))), Some(ErrorKind::Other));
}

#[test]
fn a_store_without_space_is_full() {
    let server = Server::saying("HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n");
    let contents = node_at(server.address(), "bucket", GRACE, Duration::from_secs(1));
    assert!(matches!(kind(contents.put_bytes(b"x")), Some(ErrorKind::Full | ErrorKind::Busy)));
}

#[test]
fn a_store_that_is_back_is_used_without_opening_again() {
    let Some(moto) = Moto::start("a_store_that_is_back_is_used_without_opening_again") else {
        return;
    };
    let proxy = crate::proxy::Proxy::to(moto.address);
    let contents = node_at(proxy.address(), "bucket", GRACE, Duration::from_secs(3));
    let id = contents.put_bytes(b"before").unwrap().id();
    proxy.break_after(0);
    assert_eq!(kind(contents.put_bytes(b"during")), Some(ErrorKind::Busy));
    proxy.repair();
    // For a moment, calls do not wait for the store.
    abreast_testkit::eventually("the store is used", || contents.is_whole(&id).is_ok());
    assert!(contents.is_whole(&id).unwrap());
    assert!(!contents.contains(&address_of(b"during")).unwrap());
    let _ = contents.put_bytes(b"during").unwrap();
}

#[test]
fn an_address_that_is_not_s3_is_refused() {
    for url in ["file:///tmp/contents", "bucket", "s3:/bucket", "https://example.org/bucket", ""] {
        let bucket = BucketOptions { url: url.to_owned(), settings: Vec::new() };
        let error = S3Contents::open(S3ContentsOptions::new(bucket)).unwrap_err();
        assert!(matches!(error, OpenError::Options(_)), "{url}");
        assert!(error.to_string().contains("s3://BUCKET/PREFIX"), "{error}");
    }
    let settings = vec![("no such setting".to_owned(), String::new())];
    let bucket = BucketOptions { url: "s3://bucket".to_owned(), settings };
    assert!(S3Contents::open(S3ContentsOptions::new(bucket)).is_err());
}
