//! Challenge pages of bot walls in place of resources.

use crate::copy::Copy;
use crate::source::list_of;
use abreast_testkit::documents::document;
use abreast_testkit::pages::{Answer, Server};

const PAGE: &str =
    "<!doctype html><html><head><script id=\"anubis_challenge\">{}</script></head></html>";

fn page() -> Answer {
    Answer::ok(PAGE).header("content-type", "text/html; charset=utf-8")
}

#[test]
fn a_challenge_is_not_stored_in_place_of_a_resource() {
    let server = Server::start();
    list_of(&server, &["/a", "/b", "/c"]);
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().created, 3);
    // Neither a new resource nor the next version of one is replaced.
    let entry = |path: &str, time: &str| {
        format!("<url><loc>{}</loc><lastmod>{time}</lastmod></url>", server.url(path))
    };
    let list = |time: &str| {
        let entries = ["/a", "/b", "/c", "/d"].map(|path| entry(path, time)).concat();
        document("urlset", "capability=\"resourcelist\" at=\"2030-01-01T00:00:00Z\"", &entries)
    };
    server.body("/list.xml", list("2030-01-01T00:00:00Z"));
    for path in ["/a", "/d"] {
        server.put(path, page());
    }
    let before = copy.read("a");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 3, "{:?}", ran.codes);
    assert!(ran.has("http.challenge"), "{:?}", ran.codes);
    assert_eq!(
        (copy.read("a"), copy.paths()),
        (before, ["a", "b", "c"].map(str::to_owned).to_vec())
    );
    server.body("/a", "new");
    server.body("/d", "d");
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!((copy.read("a"), copy.read("d")), (Some("new".to_owned()), Some("d".to_owned())));
}

#[test]
fn a_page_with_the_listed_digest_is_the_resource() {
    use md5::Digest as _;
    let server = Server::start();
    let digest: String = md5::Md5::digest(PAGE).iter().map(|byte| format!("{byte:02x}")).collect();
    let entry = format!(
        "<url><loc>{}</loc><rs:md hash=\"md5:{digest}\"/></url>",
        server.url("/captured.html")
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &entry));
    server.put("/captured.html", page());
    let copy = Copy::of(server.url("/list.xml"));
    assert_eq!(copy.run().created, 1);
    assert_eq!(copy.read("captured.html").as_deref(), Some(PAGE));
}
