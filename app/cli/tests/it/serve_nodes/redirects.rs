//! Large files and dumps are answered by redirects to signed URLs of the bucket.

use super::nodes::{More, NODES, Nodes};
use super::{PROGRAMS, eventually_within};
use crate::world::abreast;
use abreast_testkit::folder::files;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{Random, eventually, eventually_some, provided, run};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// Length in bytes of the large file.
const LARGE: usize = 4 << 20;
/// The node whose clock is an hour late, so that its URLs have expired.
const LATE: usize = 2;

#[test]
fn large_files_and_dumps_are_read_from_the_bucket() {
    let name = "serve_nodes::redirects::large_files_and_dumps_are_read_from_the_bucket";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let more = More { settings: "contents_redirect = \"1MiB\"\n", ..More::default() };
    let Some(nodes) = Nodes::start_with(name, temporary.path(), &server, more) else { return };
    let (mut large, mut random) = (String::with_capacity(LARGE), Random::new(1));
    while large.len() < LARGE {
        write!(large, "{:08x}", random.below(1 << 32)).unwrap();
    }
    std::fs::write(nodes.papers().join("large.txt"), &large).unwrap();
    std::fs::write(nodes.papers().join("small.txt"), "small").unwrap();
    let path = "/papers/r/large.txt";
    let client = nodes.client();
    let ask = |number: usize, request: &str, headers: &str| {
        client.exchange(number, request, headers, "").unwrap()
    };
    let field = |head: &str, name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    };
    eventually("all nodes have both files", || {
        (0..NODES).all(|number| {
            nodes.read(number, "/papers/r/small.txt").0 == 200 && nodes.read(number, path).0 == 307
        })
    });

    let (status, head, body) = ask(0, &format!("GET {path}"), "Range: bytes=0-9\r\n");
    assert!(status == 307 && body.is_empty(), "{head}");
    assert_eq!(field(&head, "cache-control").as_deref(), Some("no-store"));
    assert_eq!(field(&head, "etag"), None);
    assert!(field(&head, "link").is_some(), "{head}");
    let bucket = format!("http://{}", nodes.bucket.address());
    let to_bucket = |head: &str| {
        let location = field(head, "location").unwrap();
        assert!(location.contains("X-Amz-Expires=600&"), "{location}");
        location.strip_prefix(&bucket).unwrap().to_owned()
    };
    let url = to_bucket(&head);
    assert!(url.contains("response-content-type=text%2Fplain"), "{url}");
    // The bucket answers everybody who has the URL, as long as the URL is valid.
    let fetch = |path: &str, headers: &str| -> (u16, String) {
        let mut stream = TcpStream::connect(nodes.bucket.address()).unwrap();
        let host = nodes.bucket.address();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\n{headers}\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    };
    let part = fetch(&url, "Range: bytes=1000000-1000009\r\n");
    assert_eq!(part, (206, large[1_000_000..1_000_010].to_owned()));
    assert!(fetch(&url, "") == (200, large.clone()));
    let unsigned = url.split('?').next().unwrap();
    assert_eq!(fetch(unsigned, "").0, 403);
    if std::env::var_os("ABREAST_TEST_FAKETIME").is_some() {
        let (_, head, _) = ask(LATE, &format!("GET {path}"), "");
        assert_eq!(fetch(&to_bucket(&head), "").0, 403, "the URL has expired");
    }

    // The node itself answers what the bucket cannot.
    let (status, head, _) = ask(0, &format!("HEAD {path}"), "");
    assert_eq!((status, field(&head, "content-length")), (200, Some(LARGE.to_string())));
    let tag = field(&head, "etag").unwrap();
    assert_eq!(ask(0, &format!("GET {path}"), &format!("If-None-Match: {tag}\r\n")).0, 304);
    let since = "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
    assert_eq!(ask(0, &format!("GET {path}"), since).0, 200);
    let (status, head, body) = ask(0, &format!("GET {path}"), "Range: bytes=0-9, 20-29\r\n");
    assert_eq!((status, head.contains("multipart/byteranges")), (206, true), "{head}");
    assert!(body.contains(&large[..10]) && body.contains(&large[20..30]));
    assert_eq!(ask(0, "GET /papers/r/small.txt", "").0, 200);

    // A copy follows redirects, and asks again after an expired URL.
    let copy = temporary.path().join("copy");
    eventually_within("the copy is equal", || {
        run(abreast().args(["sync", &format!("{}papers/", nodes.url())]).arg(&copy));
        files(&copy) == files(&nodes.papers())
    });

    assert_eq!(ask(0, "POST /api/v1/sets/papers/dumps", "").0, 202);
    let package = eventually_some("the dump is listed", || {
        let list = String::from_utf8(nodes.read(0, "/papers/resourcedump.xml").1).unwrap();
        let place = list.split("<loc>").find(|part| part.contains(".zip"))?;
        let url = place.split("</loc>").next()?;
        // The first dump was made before the files were there.
        let package = format!("/{}", url.strip_prefix(&nodes.url())?);
        (ask(0, &format!("GET {package}"), "").0 == 307).then_some(package)
    });
    let (status, head, _) = ask(0, &format!("GET {package}"), "");
    assert_eq!(status, 307, "{head}");
    let url = to_bucket(&head);
    assert!(url.contains("response-content-type=application%2Fzip"), "{url}");
    let (status, bytes) = fetch(&url, "");
    assert!(status == 200 && bytes.starts_with("PK"), "{status}");
    assert_eq!(ask(1, &format!("HEAD {package}"), "").0, 200);
}
