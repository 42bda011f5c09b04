//! SDShare over HTTP: queries, conditions, encodings, and fragments of what is gone.

use crate::world::{Served, World};
use abreast_server::ServerOptions;
use abreast_source::projection::sdshare::SdShare;

const FRAGMENTS: &str = "/set/sdshare/fragments";

fn world() -> World {
    let world = World::new();
    world.write("a.html", "<script>alert(1)</script>");
    world.write("b.txt", "b");
    world.publish();
    world.write("c.txt", "c");
    world.publish();
    world
}

fn serve(world: &World) -> Served {
    let projection = SdShare::default().with_entries_per_page(2);
    world.serve_publisher(ServerOptions::default(), |publisher| {
        publisher.with_projection(projection)
    })
}

#[test]
fn feeds_are_atom_whatever_the_client_accepts() {
    let served = serve(&world());
    let paths = [
        "/sdshare",
        "/set/sdshare",
        "/set/sdshare/snapshots",
        FRAGMENTS,
        "/set/sdshare/fragments?since=2000-01-01T00:00:00Z",
    ];
    for path in paths {
        for accept in ["text/html, image/gif, image/jpeg, */*; q=0.2", "application/rdf+xml"] {
            let reply = served.ask("GET", path, &[("Accept", accept)]);
            assert_eq!(reply.status, 200, "{path}");
            assert_eq!(reply.header("content-type"), "application/atom+xml");
            assert_eq!(reply.header("cache-control"), "no-cache");
        }
        let head = served.ask("HEAD", path, &[]);
        assert_eq!(head.header("content-length"), served.get(path).header("content-length"));
    }
}

#[test]
fn a_feed_that_is_the_same_is_not_sent_again() {
    let world = world();
    let served = serve(&world);
    for path in [
        "/sdshare",
        "/set/sdshare",
        FRAGMENTS,
        "/set/sdshare/fragments?since=2000-01-01T00:00:00Z&after=1",
    ] {
        let tag = served.get(path).header("etag");
        assert_eq!(served.ask("GET", path, &[("If-None-Match", &tag)]).status, 304, "{path}");
    }
    let gzip = served.ask("GET", FRAGMENTS, &[("Accept-Encoding", "gzip")]);
    assert_eq!(gzip.header("content-encoding"), "gzip");
    let query = format!("{FRAGMENTS}?since=2000-01-01T00:00:00Z");
    let first = served.ask("GET", &query, &[("Accept-Encoding", "gzip")]);
    assert_eq!(first.header("content-encoding"), "gzip");
    let tag = first.header("etag");
    world.write("c.txt", "changed");
    world.publish();
    let again = served.ask("GET", &query, &[("Accept-Encoding", "gzip"), ("If-None-Match", &tag)]);
    assert_eq!(again.status, 200);
}

#[test]
fn since_is_understood_as_clients_write_it() {
    let served = serve(&world());
    for since in
        ["2000-01-01T00:00:00+01:00", "2000-01-01t00%3A00%3A00z", "2000-01-01T00:00:00", ""]
    {
        let reply = served.get(&format!("{FRAGMENTS}?since={since}"));
        assert_eq!(reply.status, 200, "{since}");
        assert!(reply.text().contains("rel=\"next\""), "{since}");
    }
    let later = served.get(&format!("{FRAGMENTS}?since=2999-01-01T00:00:00Z"));
    assert!(!later.text().contains("<entry>"));
    let refused = served.get(&format!("{FRAGMENTS}?since=yesterday"));
    assert_eq!(
        (refused.status, refused.header("content-type").as_str()),
        (400, "application/problem+json")
    );
    assert!(refused.text().contains("help: write the time as Atom does"));
    assert_eq!(served.get(&format!("{FRAGMENTS}?utm_source=x")).status, 200);
}

#[test]
fn fragments_are_served_and_empty_when_their_resource_is_gone() {
    let world = world();
    let served = serve(&world);
    let page = served.get("/set/sdshare/fragment/r/a.html");
    assert_eq!((page.status, page.text().as_str()), (200, "<script>alert(1)</script>"));
    assert_eq!(page.header("content-type"), "text/html");
    assert_eq!(page.header("content-security-policy"), "sandbox");
    assert_eq!(page.header("content-location"), "https://example.org/set/r/a.html");
    assert_eq!(page.header("cache-control"), "no-cache");
    let tag = page.header("etag");
    let path = "/set/sdshare/fragment/r/a.html";
    assert_eq!(served.ask("GET", path, &[("If-None-Match", &tag)]).status, 304);
    std::fs::remove_file(world.folder.join("a.html")).unwrap();
    let between = served.get(path);
    assert_eq!((between.status, between.header("retry-after").as_str()), (503, "1"));
    world.publish();
    let gone = served.ask("GET", path, &[("If-None-Match", &tag)]);
    assert_eq!((gone.status, gone.text().as_str()), (200, ""));
    assert_eq!(served.get("/set/r/a.html").status, 404, "the resource itself is gone");
    assert_eq!(served.get("/other/sdshare/fragment/r/a.html").status, 404);
}
