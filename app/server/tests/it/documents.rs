//! Documents over HTTP: encodings, validators, how long they may be kept.

use crate::csv::Csv;
use crate::world::{Reply, Served, World};
use abreast_core::testing::HeldLog;
use abreast_core::{ChangeLog, Imported, PageRule, State};
use abreast_server::api::{Api, ApiOptions};
use abreast_server::{ServerOptions, Site};
use abreast_testkit::eventually;
use flate2::read::GzDecoder;
use std::io::Read as _;
use std::sync::Arc;

/// A set whose first Change List is closed.
fn world() -> (World, Served) {
    let world = World::with(PageRule { changes: 20, ..PageRule::default() });
    world.write("first", "1");
    world.publish();
    for number in 0..50 {
        world.write(&format!("f{number}"), "1");
    }
    world.publish();
    let served = world.serve();
    (world, served)
}

fn unpacked(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(&reply.body[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn each_encoding_is_a_representation_of_its_own() {
    let (_world, served) = world();
    for target in [
        "/set/resourcelist.xml",
        "/set/changelist.xml",
        "/set/changelist/1.xml",
        "/set/sitemap/1.xml",
    ] {
        let plain = served.get(target);
        let packed = served.ask("GET", target, &[("Accept-Encoding", "br, gzip;q=0.8")]);
        assert_eq!((plain.status, packed.status), (200, 200), "{target}");
        if plain.body.len() >= 1_024 {
            assert_eq!(packed.header("content-encoding"), "gzip", "{target}");
            assert_eq!(unpacked(&packed), plain.body);
            assert_ne!(plain.header("etag"), packed.header("etag"));
        }
        for (coding, reply) in [("identity", &plain), ("gzip", &packed)] {
            assert_eq!(reply.header("vary"), "Accept-Encoding", "{target}");
            let tag = reply.header("etag");
            let again =
                served.ask("GET", target, &[("Accept-Encoding", coding), ("If-None-Match", &tag)]);
            assert_eq!((again.status, again.body.len()), (304, 0), "{target} {coding}");
            assert_eq!(
                (again.header("etag"), again.header("vary")),
                (tag, "Accept-Encoding".into())
            );
            assert_eq!(again.header("cache-control"), reply.header("cache-control"));
        }
        let crossed = [("Accept-Encoding", "identity"), ("If-None-Match", &*packed.header("etag"))];
        let crossed = served.ask("GET", target, &crossed).status;
        assert_eq!(
            crossed,
            if plain.header("etag") == packed.header("etag") { 304 } else { 200 },
            "{target}"
        );
    }
    let ranged = [("Accept-Encoding", "gzip"), ("Range", "bytes=0-9")];
    let ranged = served.ask("GET", "/set/changelist/1.xml", &ranged);
    let packed = served.ask("GET", "/set/changelist/1.xml", &[("Accept-Encoding", "gzip")]);
    assert_eq!(
        (ranged.status, &ranged.body[..]),
        (206, &packed.body[..10]),
        "ranges are of the encoded bytes"
    );
}

#[test]
fn gzip_is_sent_to_those_who_take_it() {
    let (_world, served) = world();
    let encoding = |accept: &str| {
        let reply = served.ask("GET", "/set/changelist/1.xml", &[("Accept-Encoding", accept)]);
        assert_eq!(reply.status, 200);
        reply.header("content-encoding")
    };
    for accepted in ["gzip", "*", "identity;q=0, gzip", "gzip;q=0.001", "deflate, GZIP"] {
        assert_eq!(encoding(accepted), "gzip", "{accepted}");
    }
    for refused in
        ["", "identity", "gzip;q=0", "gzip;q=0, *;q=1", "*;q=0", "br", "gzip;q=0.2, identity;q=0.9"]
    {
        assert_eq!(encoding(refused), "", "{refused}");
    }
}

#[test]
fn closed_change_lists_are_kept_a_day_open_ones_revalidated() {
    let (_world, served) = world();
    let kept = |target: &str| served.get(target).header("cache-control");
    assert_eq!(kept("/set/changelist/1.xml"), "public, max-age=86400");
    for target in [
        "/set/changelist/3.xml",
        "/set/changelist.xml",
        "/set/resourcelist.xml",
        "/set/capabilitylist.xml",
    ] {
        assert_eq!(kept(target), "no-cache", "{target}");
    }
    assert_eq!(served.get("/set/changelist/4.xml").status, 404);
    assert_eq!(served.get("/set/changelist/0.xml").status, 404);
    assert_eq!(served.get("/set/changelist/18446744073709551615.xml").status, 404);
}

#[test]
fn a_closed_change_list_keeps_its_bytes_and_tag() {
    let (world, served) = world();
    let before = served.get("/set/changelist/1.xml");
    for number in 0..50 {
        world.write(&format!("g{number}"), "1");
    }
    world.publish();
    let after = served.get("/set/changelist/1.xml");
    assert_eq!((after.header("etag"), &after.body), (before.header("etag"), &before.body));
    assert_eq!(served.get("/set/changelist/4.xml").status, 200);
}

#[test]
fn crawlers_find_the_way() {
    let (_world, served) = world();
    let robots = served.get("/robots.txt");
    assert!(robots.header("content-type").starts_with("text/plain"));
    assert!(
        robots.text().contains("Sitemap: https://example.org/sitemap.xml"),
        "{}",
        robots.text()
    );
    let sitemap = served.get("/sitemap.xml");
    assert!(sitemap.header("content-type").starts_with("application/xml"));
    let address = sitemap.text();
    let address = address.split("<loc>").nth(1).unwrap().split("</loc>").next().unwrap();
    let shard = served.get(address.strip_prefix("https://example.org").unwrap());
    assert!(shard.text().contains("https://example.org/set/r/f49"));
    let description = served.get("/.well-known/resourcesync");
    assert!(description.text().contains("https://example.org/set/capabilitylist.xml"));
}

#[test]
fn lists_wait_for_the_end_of_the_import() {
    let world = World::new();
    world.write("a", "1");
    let served = world.serve();
    for target in ["/set/resourcelist.xml", "/set/changelist.xml", "/set/resourcelist/1.xml"] {
        let reply = served.get(target);
        assert_eq!(reply.status, 503, "{target}");
        assert!(reply.header("retry-after").parse::<u32>().is_ok());
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
    assert_eq!(served.get("/set/capabilitylist.xml").status, 200);
    world.publish();
    assert_eq!(served.get("/set/resourcelist.xml").status, 200);
}

#[test]
fn documents_have_dates_that_distinguish_their_states() {
    let (world, served) = world();
    let dated = |target: &str| {
        let mut date = String::new();
        eventually("a date is sent as soon as it stands for one state", || {
            date = served.get(target).header("last-modified");
            !date.is_empty()
        });
        date
    };
    let since =
        |target: &str, date: &str| served.ask("GET", target, &[("If-Modified-Since", date)]).status;
    for target in [
        "/.well-known/resourcesync",
        "/set/capabilitylist.xml",
        "/set/resourcelist.xml",
        "/set/changelist.xml",
        "/sitemap.xml",
        "/set/sitemap/1.xml",
        "/robots.txt",
        "/about.html",
        "/set/about.html",
    ] {
        let date = dated(target);
        assert_eq!(since(target, &date), 304, "{target}");
        for other in ["Sat, 01 Jan 2000 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "soon"] {
            assert_eq!(
                since(target, other),
                200,
                "{target}: only the date that was sent says that it is known"
            );
        }
        let tagged = [("If-None-Match", "\"x\""), ("If-Modified-Since", date.as_str())];
        assert_eq!(served.ask("GET", target, &tagged).status, 200, "{target}: tags come first");
    }
    let (list, robots) = (dated("/set/resourcelist.xml"), dated("/robots.txt"));
    for number in 0..20 {
        world.write(&format!("new{number}"), "1");
        world.publish();
        assert_eq!(
            since("/set/resourcelist.xml", &list),
            200,
            "not even for changes within a second"
        );
        let date = served.get("/set/resourcelist.xml").header("last-modified");
        assert!(date.is_empty() || date != list);
    }
    assert_eq!(since("/robots.txt", &robots), 304, "what did not change keeps its date");
    let closed = dated("/set/changelist/1.xml");
    assert_eq!(since("/set/changelist/1.xml", &closed), 304);
}

#[test]
fn many_readers_of_a_large_list_keep_nobody_waiting() {
    let mut world = World::new();
    let resource = |number| Imported {
        key: format!("f{number}"),
        state: State::default(),
        witness: Vec::new(),
    };
    world.log.import(world.set, (0..5_000).map(resource).collect()).unwrap();
    world.log.complete_import(world.set).unwrap();
    let held = Arc::new(HeldLog::new(Arc::clone(&world.log)));
    world.log = Arc::clone(&held) as Arc<dyn ChangeLog>;
    let served = world.serve();
    held.hold(Some(world.set));
    let readers: Vec<_> = (0..100)
        .map(|_| {
            let mut client = served.connect();
            client.request("GET", "/set/resourcelist.xml", &[("Accept-Encoding", "gzip")]);
            client
        })
        .collect();
    eventually("the list is being made", || held.scans() == 1);
    for small in [
        "/set/capabilitylist.xml",
        "/set/changelist.xml",
        "/.well-known/resourcesync",
        "/set/about.html",
    ] {
        assert_eq!(served.get(small).status, 200, "{small}");
    }
    // Those who leave take nothing with them.
    let mut readers = readers.into_iter();
    drop(readers.by_ref().take(50).collect::<Vec<_>>());
    held.hold(None);
    for mut reader in readers {
        let reply = reader.reply("GET").unwrap().unwrap();
        assert_eq!((reply.status, unpacked(&reply).is_empty()), (200, false));
    }
    assert_eq!(held.scans(), 1);
}

/// Lets all readers continue, also when a test fails: the server would not stop before.
struct Release(Arc<HeldLog>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.hold(None);
    }
}

#[test]
fn requests_that_wait_for_the_store_take_no_thread_from_others() {
    let mut world = World::new();
    world.write("a", "1");
    world.publish();
    let held = Arc::new(HeldLog::new(Arc::clone(&world.log)));
    world.log = Arc::clone(&held) as Arc<dyn ChangeLog>;
    let tokens = world.temporary.path().join("tokens.json");
    let api = Api::new(ApiOptions { write: true, local: true, ..ApiOptions::new(tokens) }).unwrap();
    let served = Served::start(Site { api: Some(api), ..world.site() }, ServerOptions::default());
    held.hold_heads();
    held.hold(Some(world.set));
    let release = Release(held);
    let held = &release.0;
    // More of them than the server has threads that must not block.
    let paths = [
        "/set/changelist.xml",
        "/set/resourcelist.xml",
        "/set/resourcelist/1.xml",
        "/set/about.html",
        "/sitemap.xml",
        "/readyz",
        "/api/v1/sets",
        "/api/v1/sets/set",
    ];
    let readers = paths.map(|path| {
        let mut client = served.connect();
        client.request("GET", path, &[]);
        client
    });
    let mut writer = served.connect();
    let request =
        "POST /api/v1/sets/set/changes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n[]";
    writer.send(request.as_bytes()).unwrap();
    eventually("all of them wait", || held.waiting() == paths.len() + 1);
    assert_eq!(served.get("/livez").status, 200);
    held.hold(None);
    for (path, mut reader) in paths.iter().zip(readers) {
        assert_eq!(reader.reply("GET").unwrap().unwrap().status, 200, "{path}");
    }
    assert_eq!(
        writer.reply("POST").unwrap().unwrap().status,
        400,
        "there are no changes in the body"
    );
}

#[test]
fn documents_of_another_projection_are_served_like_all_others() {
    let world = World::new();
    world.write("a", "1");
    world.publish();
    let served =
        world.serve_publisher(ServerOptions::default(), |publisher| publisher.with_projection(Csv));
    let first = served.get("/set/changes.csv");
    assert_eq!((first.status, first.header("content-type").as_str()), (200, "text/csv"));
    let tag = first.header("etag");
    assert_eq!(served.ask("GET", "/set/changes.csv", &[("If-None-Match", &tag)]).status, 304);
    world.write("b", "1");
    world.publish();
    let second = served.ask("GET", "/set/changes.csv", &[("If-None-Match", &tag)]);
    assert_eq!((second.status, second.header("cache-control").as_str()), (200, "no-cache"));
    assert!(second.text().contains("https://example.org/set/r/b"));
    assert_eq!(world.serve().get("/set/changes.csv").status, 404);
}
