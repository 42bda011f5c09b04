//! Documents of ResourceSync 0.1 over HTTP: addresses of their own, headers, and discovery.

use crate::world::{Served, World};
use abreast_server::ServerOptions;
use abreast_source::projection::resourcesync_0_1::ResourceSync01;
use abreast_webtypes::parse_link_header;

fn serve() -> (World, Served) {
    let world = World::new();
    world.publish();
    for name in ["a.json", "b.json"] {
        world.write(name, name);
        world.publish();
    }
    let served = world.serve_publisher(ServerOptions::default(), |publisher| {
        publisher.with_projection(ResourceSync01::default())
    });
    (world, served)
}

#[test]
fn documents_of_both_versions_have_addresses_of_their_own() {
    let (_world, served) = serve();
    for (path, inside) in [
        ("/set/v0.1/sitemap.xml", "DCTERMS.modified"),
        ("/set/v0.1/changeset.xml", "rs:type=\"changeset\""),
        ("/set/changelist.xml", "capability=\"changelist\""),
    ] {
        for accept in ["*/*", "application/xml", "text/html"] {
            let reply = served.ask("GET", path, &[("Accept", accept)]);
            assert_eq!(reply.status, 200);
            assert_eq!(reply.header("content-type"), "application/xml");
            assert!(reply.text().contains(inside), "{path}");
            assert_eq!(reply.header("vary"), "Accept-Encoding");
        }
        let whole = served.get(path);
        let head = served.ask("HEAD", path, &[]);
        assert_eq!(head.header("content-length"), whole.body.len().to_string());
        assert_eq!(head.header("etag"), whole.header("etag"));
        let again = served.ask("GET", path, &[("If-None-Match", &whole.header("etag"))]);
        assert_eq!(again.status, 304, "{path}");
    }
    for path in [
        "/set/v0.1",
        "/set/v0.1/",
        "/set/v0.1/changesets/1.xml",
        "/set/v0.1/sitemaps/1-3-1.xml",
        "/set/v0.1/changesets/%2e%2e.xml",
        "/other/v0.1/sitemap.xml",
    ] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
    assert_eq!(served.ask("DELETE", "/set/v0.1/sitemap.xml", &[]).status, 405);
}

#[test]
fn link_headers_lead_to_the_documents_of_0_1() {
    let (_world, served) = serve();
    for path in ["/set/r/a.json", "/set/v0.1/sitemap.xml", "/set/about.html"] {
        let links = parse_link_header(&served.get(path).header("link")).unwrap();
        let target = |rel: &str| {
            let found = links.iter().find(|link| link.has_rel(rel));
            found.unwrap_or_else(|| panic!("{rel} of {path}")).target.clone()
        };
        assert_eq!(target("resourcesync"), "https://example.org/set/capabilitylist.xml");
        assert_eq!(target("sitemap"), "https://example.org/set/v0.1/sitemap.xml");
        let change_set = "https://example.org/set/v0.1/changeset.xml";
        for rel in ["current", "http://www.openarchives.org/rs/changeset"] {
            assert_eq!(target(rel), change_set, "{path}");
        }
        assert!(links.iter().all(|link| !link.has_rel("http://www.openarchives.org/rs/dump")));
    }
}

#[test]
fn host_meta_is_sent_as_xrd_and_json() {
    let (_world, served) = serve();
    for (path, content_type) in [
        ("/.well-known/host-meta", "application/xrd+xml"),
        ("/.well-known/host-meta.json", "application/json"),
    ] {
        let reply = served.get(path);
        assert_eq!((reply.status, reply.header("content-type").as_str()), (200, content_type));
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        assert!(reply.text().contains("https://example.org/set/v0.1/sitemap.xml"));
    }
}
