//! Packages are answered as resources are, and what cannot be had is refused with the way out.

use crate::world::{BASE, Served, World};
use abreast_server::ServerOptions;
use abreast_source::dump::{DumpOptions, DumpSet, Dumper, Dumps};
use abreast_source::projection::resourcesync_0_1::ResourceSync01;
use abreast_source::publish::SourceUrls;
use abreast_testkit::eventually;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// A world whose set has dumps, and what makes them.
fn world(options: DumpOptions) -> (World, Arc<Dumps>) {
    let mut world = World::new();
    let source = DumpSet {
        id: world.set,
        slug: "set".to_owned(),
        urls: SourceUrls::new(BASE).set("set"),
        representations: world.representations(),
        options,
    };
    let dumps = Dumps::new(Arc::clone(&world.log), world.temporary.path().join("dumps"), None);
    world.dumps = Some(dumps.open_set(source).unwrap());
    (world, dumps)
}

struct Making(Option<Dumper>);

impl Drop for Making {
    fn drop(&mut self) {
        if let Some(dumper) = self.0.take() {
            dumper.stop();
        }
    }
}

fn make(world: &World, dumps: &Arc<Dumps>) -> Making {
    Making(Some(dumps.start(world.dumps.clone()).unwrap()))
}

/// What stands behind the first `name="` of a text.
fn attribute<'a>(text: &'a str, name: &str) -> &'a str {
    let from = text.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
    text[from..].split('"').next().unwrap()
}

fn packages(served: &Served) -> (String, String) {
    let dump = served.get("/set/resourcedump.xml");
    assert_eq!(dump.status, 200);
    let text = dump.text();
    let package = text.split("<loc>").nth(1).unwrap().split("</loc>").next().unwrap();
    let contents = text.split("rel=\"contents\"").next().unwrap().rsplit("href=\"").next().unwrap();
    let path = |url: &str| format!("/{}", url.strip_prefix(BASE).unwrap());
    (path(package), path(contents.split('"').next().unwrap()))
}

#[test]
fn a_package_is_sent_whole_in_part_and_not_twice() {
    let (world, dumps) = world(DumpOptions { scheduled: false, ..DumpOptions::default() });
    world.write("a.txt", "some text");
    world.publish();
    let served = world.serve();
    let reply = served.get("/set/resourcedump.xml");
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (202, "10".to_owned()),
        "{}",
        reply.text()
    );
    assert!(!served.get("/set/capabilitylist.xml").text().contains("resourcedump"));
    let making = make(&world, &dumps);
    eventually("the dump is complete", || served.get("/set/resourcedump.xml").status == 200);
    assert!(served.get("/set/capabilitylist.xml").text().contains("/set/resourcedump.xml"));
    let (package, contents) = packages(&served);
    let reply = served.get(&package);
    assert_eq!((reply.status, &reply.body[..2]), (200, &b"PK"[..]));
    assert_eq!(reply.header("content-type"), "application/zip");
    assert_eq!(reply.header("cache-control"), "public, max-age=31536000, immutable");
    assert!(
        reply.header("link").contains("rel=\"resourcesync\"")
            && !reply.header("last-modified").is_empty()
    );
    let tag = reply.header("etag");
    assert_eq!(served.ask("GET", &package, &[("If-None-Match", &tag)]).status, 304);
    let part = served.ask("GET", &package, &[("Range", "bytes=2-9"), ("If-Range", &tag)]);
    assert_eq!((part.status, &part.body[..]), (206, &reply.body[2..10]));
    let dump = served.get("/set/resourcedump.xml").text();
    assert_eq!(attribute(&dump, " length"), reply.body.len().to_string());
    let manifest = served.get(&contents);
    assert_eq!(
        (manifest.status, manifest.header("content-type")),
        (200, "application/xml".to_owned())
    );
    assert!(
        reply.body.windows(manifest.body.len()).any(|window| window == manifest.body),
        "it is the one inside"
    );
    for absent in
        ["/set/dump/resources-x-1.zip", "/set/dump/record.xml", "/set/dump/../x.zip", "/set/dump/"]
    {
        assert_eq!(served.get(absent).status, 404, "{absent}");
    }
    drop(making);
}

#[test]
fn a_dump_of_0_1_has_its_digest_in_the_answer() {
    let (world, dumps) = world(DumpOptions::default());
    world.write("a.txt", "some text");
    world.publish();
    let served = world.serve_publisher(ServerOptions::default(), |publisher| {
        publisher.with_projection(ResourceSync01::default())
    });
    let _making = make(&world, &dumps);
    for path in ["/set/v0.1/dump.zip", "/set/v0.1/dump.warc.gz"] {
        eventually("the dump is complete", || served.get(path).status == 200);
        let reply = served.get(path);
        let digest = BASE64.encode(Sha256::digest(&reply.body));
        assert_eq!(reply.header("repr-digest"), format!("sha-256=:{digest}:"));
        let part = served.ask("GET", path, &[("Range", "bytes=2-9")]);
        assert_eq!(part.header("repr-digest"), reply.header("repr-digest"));
    }
}

#[test]
fn answers_name_the_dump_of_0_1_while_it_is_one_file() {
    let options = DumpOptions { part_size: 2_000, every: Duration::ZERO, ..DumpOptions::default() };
    let (world, dumps) = world(options);
    world.write("a", "a".repeat(1_500));
    world.publish();
    let served = world.serve_publisher(ServerOptions::default(), |publisher| {
        publisher.with_projection(ResourceSync01::default())
    });
    let _making = make(&world, &dumps);
    eventually("there is a dump", || served.get("/set/v0.1/dump.zip").status == 200);
    let named = || {
        ["/set/r/a", "/set/about.html"].map(|path| {
            let answer = served.get(path);
            let name = "/set/v0.1/dump.zip";
            answer.header("link").contains(name) || answer.text().contains(name)
        })
    };
    assert_eq!(named(), [true; 2]);
    world.write("b", "b".repeat(1_500));
    world.publish();
    eventually("it has two files", || served.get("/set/v0.1/dump.zip").status == 404);
    assert_eq!(served.get("/set/v0.1/dump.zip").status, 404);
    assert_eq!(named(), [false; 2]);
}

#[test]
fn changes_since_a_point_are_answered_or_refused_with_help() {
    let (world, _dumps) =
        world(DumpOptions { part_size: 100, patience: Duration::ZERO, ..DumpOptions::default() });
    world.publish();
    for content in ["one", "two"] {
        world.write("a", content);
        world.publish();
    }
    let served = world.serve();
    let ask = |query: &str| served.get(&format!("/set/changedump/since{query}"));
    let reply = ask("?position=1");
    assert_eq!((reply.status, &reply.body[..2]), (200, &b"PK"[..]), "{}", reply.text());
    assert_eq!(
        (reply.header("content-type"), reply.header("cache-control")),
        ("application/zip".into(), "no-cache".into())
    );
    let location = reply.header("content-location");
    assert_eq!(served.get(location.strip_prefix("https://example.org").unwrap()).body, reply.body);
    let gone = ask("?position=0");
    assert_eq!(gone.status, 410);
    assert!(
        gone.text().contains("change 1 ") && gone.text().contains("Change List"),
        "{}",
        gone.text()
    );
    assert_eq!(ask("?position=3").status, 400);
    assert_eq!(ask("").status, 400);
    // What is announced takes the last change of each, of which there are the bytes.
    let list = served.get("/set/capabilitylist.xml").text();
    let link =
        list.split('<').find(|tag| tag.contains("rel=\"urn:abreast:rel:changes-since\"")).unwrap();
    let address = attribute(link, " href").strip_prefix("https://example.org").unwrap();
    let last = served.get(&format!("{address}&position=0"));
    assert_eq!((last.status, &last.body[..2]), (200, &b"PK"[..]), "{}", last.text());
    assert_eq!(served.get(address).status, 400);
    assert_eq!(ask("?time=1999-01-01T00:00:00Z").status, 410);
    world.write("b", "x".repeat(101));
    world.publish();
    let large = ask("?position=2");
    assert_eq!(large.status, 413);
    assert!(
        large.text().contains("100 bytes") && large.text().contains("Resource List"),
        "{}",
        large.text()
    );
    // The log knows nothing of this yet.
    world.write("a", "six");
    assert_eq!(ask("?position=3").status, 200);
}

#[test]
fn a_set_without_dumps_has_none() {
    let world = World::new();
    world.publish();
    let served = world.serve();
    assert!(!served.get("/set/capabilitylist.xml").text().contains("changes-since"));
    for path in [
        "/set/resourcedump.xml",
        "/set/changedump.xml",
        "/set/changedump/since?position=0",
        "/set/dump/x-1.zip",
    ] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
}
