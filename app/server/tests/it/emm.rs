//! Change feeds over HTTP: media types, conditions, redirects, and scripts of other pages.

use crate::world::{Served, World};
use abreast_server::ServerOptions;
use abreast_source::projection::emm::ChangeFeeds;

fn serve() -> (World, Served) {
    let world = World::new();
    world.publish();
    for name in ["a.json", "b.json", "c.json"] {
        world.write(name, name);
        world.publish();
    }
    let feeds = ChangeFeeds::default().with_positions_per_page(2);
    let served = world
        .serve_publisher(ServerOptions::default(), |publisher| publisher.with_projection(feeds));
    (world, served)
}

#[test]
fn documents_have_the_media_type_that_is_accepted() {
    let (_world, served) = serve();
    let activity = "application/activity+json";
    let json_ld = "application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\"";
    for (path, accept, expected) in [
        ("/set/emm/1.0", "", activity),
        ("/set/emm/0.1/page/1", "*/*", activity),
        ("/set/emm/1.0", "application/ld+json", json_ld),
        ("/set/emm/1.0", json_ld, json_ld),
        ("/set/emm/1.0/latest", "application/json", "application/json"),
        ("/set/emm/1.0", "text/html", activity),
        (
            "/set/iiif",
            "",
            "application/ld+json; profile=\"http://iiif.io/api/discovery/1/context.json\"",
        ),
        ("/set/iiif/page/2", "application/json, */*;q=0.1", "application/json"),
    ] {
        let headers = [("Accept", accept)];
        let headers = if accept.is_empty() { &[][..] } else { &headers };
        let reply = served.ask("GET", path, headers);
        assert_eq!(
            (reply.status, reply.header("content-type").as_str()),
            (200, expected),
            "{path}"
        );
        assert_eq!(reply.header("vary"), "Accept, Accept-Encoding");
        assert!(reply.text().starts_with('{'));
        // One entity tag for each type.
        let tag = reply.header("etag");
        let again = served.ask("GET", path, &[headers, &[("If-None-Match", &tag)]].concat());
        assert_eq!(again.status, 304, "{path}");
        let other =
            served.ask("GET", path, &[("Accept", "application/json"), ("If-None-Match", &tag)]);
        assert_eq!(other.status == 304, expected == "application/json", "{path}");
    }
    let closed = served.get("/set/emm/1.0/page/1").header("cache-control");
    assert_eq!(closed, "public, max-age=86400");
    assert_eq!(served.get("/set/emm/1.0/page/2").header("cache-control"), "no-cache");
}

#[test]
fn a_time_is_redirected_to_its_page() {
    let (_world, served) = serve();
    for (query, target) in [("2000-01-01", "page/1"), ("2999-01-01T00:00:00Z", "page/2")] {
        let reply = served.get(&format!("/set/emm/1.0/skip-to?datetime={query}"));
        assert_eq!(reply.status, 307);
        assert!(reply.header("location").ends_with(&format!("/set/emm/1.0/{target}")));
    }
    for path in ["/set/emm/1.0/skip-to", "/set/iiif/skip-to?datetime=soon"] {
        let reply = served.get(path);
        assert_eq!(reply.status, 400, "{path}");
        assert!(reply.text().contains("give a date and time"));
    }
    for path in ["/set/emm/1.0/page/3", "/set/emm/1.0/activity/9", "/set/emm/1.0/labels"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
}

#[test]
fn scripts_of_other_pages_may_read_what_is_published() {
    let (_world, served) = serve();
    let allowed = |path: &str| served.get(path).header("access-control-allow-origin");
    for path in ["/set/iiif", "/set/r/a.json", "/set/changelist.xml", "/.well-known/resourcesync"] {
        assert_eq!(allowed(path), "*", "{path}");
    }
    for path in ["/metrics", "/hub", "/api/v1/sets"] {
        assert_eq!(allowed(path), "", "{path}");
    }
    let origin = ("Origin", "https://viewer.example");
    let asked = [origin, ("Access-Control-Request-Method", "GET")];
    let reply = served.ask("OPTIONS", "/set/iiif", &asked);
    assert_eq!(
        (reply.status, reply.header("access-control-allow-methods").as_str()),
        (200, "GET, HEAD")
    );
    assert_eq!(served.ask("OPTIONS", "/set/iiif", &[origin]).status, 405);
}
