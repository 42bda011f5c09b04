//! SDShare over HTTP: queries, conditions, encodings, and fragments of what is gone.

use crate::world::{BASE, Served, World};
use abreast_contents::Contents;
use abreast_core::contents::ContentStore as _;
use abreast_core::{Beginning, Change, ChangeLog, NewSet, State, SystemClock, append};
use abreast_server::{ServedSet, ServerOptions, Site};
use abreast_source::projection::sdshare::{SdShare, SetSnapshots, SnapshotOptions};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::{OpenKept, Representations};
use abreast_store::SqliteLog;
use abreast_testkit::eventually;
use flate2::read::MultiGzDecoder;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

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
    let refused = served.ask("GET", path, &[("Accept", "application/rdf+xml")]);
    assert_eq!((refused.status, refused.header("vary").as_str()), (406, "accept"));
    assert_eq!(served.ask("GET", path, &[("Accept", "text/*, image/png")]).status, 200);
    std::fs::remove_file(world.folder.join("a.html")).unwrap();
    let between = served.get(path);
    assert_eq!((between.status, between.header("retry-after").as_str()), (503, "1"));
    world.publish();
    let gone = served.ask("GET", path, &[("If-None-Match", &tag)]);
    assert_eq!((gone.status, gone.text().as_str()), (200, ""));
    assert_eq!(served.get("/set/r/a.html").status, 404, "the resource itself is gone");
    assert_eq!(served.get("/other/sdshare/fragment/r/a.html").status, 404);
}

/// A server with a set of one entity, whose description nobody reads while the gate is held.
fn entities(place: &Path, gate: &Arc<Mutex<()>>) -> Served {
    let log: Arc<dyn ChangeLog> = Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
    let new = NewSet { slug: "set".into(), beginning: Beginning::Log, ..NewSet::default() };
    let id = log.open_set(&new).unwrap().id;
    let contents = Contents::open(&place.join("contents")).unwrap();
    let kept =
        contents.put_bytes("<http://id.example/a> <http://p.example/p> \"é\" .\n".as_bytes());
    let content = Some(kept.unwrap().id());
    let state = State { content, ..State::default() };
    append(&*log, id, vec![Change::put("http://id.example/a", state)]).unwrap();
    let gate = Arc::clone(gate);
    let open: OpenKept = Arc::new(move |id| {
        drop(gate.lock());
        contents.open_read(id).map_err(Into::into)
    });
    let representations = Representations::elsewhere().with_kept(Some(open));
    let (of_set, folder) = (representations.clone(), place.join("snapshots"));
    let options = SnapshotOptions::default();
    let snapshots =
        SetSnapshots::open(Arc::clone(&log), id, of_set, folder, options, None).unwrap();
    let urls = SourceUrls::new(BASE);
    let set_urls = urls.set("set").of_entities("http://id.example/");
    let published = PublishedSet { representations, ..PublishedSet::new(id, "set", set_urls) };
    let published = Arc::new(published.with(Some(snapshots)));
    let publisher =
        Publisher::new(log, urls, [Arc::clone(&published)], place.join("documents")).unwrap();
    let served = ServedSet {
        title: "A set".to_owned(),
        link: abreast_server::set_link(&published).unwrap(),
        links: Arc::default(),
        deposit: None,
        entities: None,
        published,
    };
    let publisher = publisher.with_projection(SdShare::default());
    let (sets, metrics) = ([served].into_iter().collect(), std::sync::Arc::new(String::new));
    Served::start(
        Site {
            publisher,
            sets,
            api: None,
            hub: None,
            metrics,
            memory: abreast_server::Memory::default(),
            followers: abreast_server::Followers::default(),
            store: None,
        },
        ServerOptions::default(),
    )
}

#[test]
fn a_fragment_of_an_entity_has_the_type_of_its_link_or_none() {
    let place = tempfile::tempdir().unwrap();
    let served = entities(place.path(), &Arc::default());
    for (form, media_type) in [
        ("rdf", "application/rdf+xml"),
        ("nt", "application/n-triples"),
        ("txt", "text/plain"),
        ("ttl", "text/turtle"),
    ] {
        let path = format!("/set/sdshare/fragment/{form}/a");
        for accept in [media_type, "*/*", "application/rdf+xml;q=0.1, */*;q=0.01"] {
            let reply = served.ask("GET", &path, &[("Accept", accept)]);
            assert_eq!((reply.status, reply.header("content-type").as_str()), (200, media_type));
            assert!(reply.header("vary").contains("accept"));
        }
        let refused = served.ask("GET", &path, &[("Accept", "application/x-unknown")]);
        assert_eq!(refused.status, 406, "{path}");
        assert!(refused.text().contains(media_type));
        let tag = served.get(&path).header("etag");
        assert_eq!(served.ask("GET", &path, &[("If-None-Match", &tag)]).status, 304);
        let gone = served.get(&format!("/set/sdshare/fragment/{form}/gone"));
        assert_eq!((gone.status, gone.header("content-type").as_str()), (200, media_type));
    }
    assert!(served.get("/set/sdshare/fragment/txt/a").text().contains("\"\\u00E9\""));
    assert_eq!(served.get("/set/sdshare/fragment/jsonld/a").status, 404);
}

#[test]
fn a_snapshot_is_202_until_it_is_complete() {
    let (place, gate) = (tempfile::tempdir().unwrap(), Arc::<Mutex<()>>::default());
    let served = entities(place.path(), &gate);
    let held = gate.lock().unwrap();
    let text = served.get("/set/sdshare/snapshots").text();
    let href =
        text.split("href=\"https://example.org").find(|rest| rest.contains(".nt\"")).unwrap();
    let path = href.split('"').next().unwrap();
    let chunks = path.replace(".nt", "/chunks");
    for path in [path, &chunks] {
        let making = served.get(path);
        assert_eq!(making.status, 202, "{path}");
        assert!(making.header("retry-after").parse::<u32>().unwrap() > 0);
    }
    drop(held);
    eventually("the snapshot is complete", || served.get(path).status == 200);
    let whole = served.get(path);
    let text = whole.text();
    let (position, statements) = text.split_once('\n').unwrap();
    assert!(position.starts_with("# snapshot of set=set time="), "{position}");
    assert!(position.ends_with(" position=1"), "{position}");
    assert_eq!(statements, "<http://id.example/a> <http://p.example/p> \"\\u00E9\" .\n");
    assert_eq!(whole.header("content-type"), "application/n-triples");
    assert!(whole.header("cache-control").contains("immutable"));
    let chunk = path.replace(".nt", "/1.ttl");
    for path in [path, &chunk] {
        let (plain, packed) =
            (served.get(path), served.ask("GET", path, &[("Accept-Encoding", "gzip")]));
        assert_eq!(packed.header("content-encoding"), "gzip", "{path}");
        let mut text = String::new();
        MultiGzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, plain.text());
        let (tag, whole) = (packed.header("etag"), packed.body.len());
        assert_ne!(tag, plain.header("etag"));
        for answer in [&plain, &packed] {
            assert_eq!(answer.header("vary"), "accept-encoding, accept");
        }
        let headers = [("Accept-Encoding", "gzip"), ("If-None-Match", tag.as_str())];
        assert_eq!(served.ask("GET", path, &headers).status, 304);
        let headers =
            [("Accept-Encoding", "gzip"), ("If-Range", tag.as_str()), ("Range", "bytes=1-4")];
        let range = served.ask("GET", path, &headers);
        assert_eq!((range.status, range.body.as_slice()), (206, &packed.body[1..5]));
        assert_eq!(range.header("content-range"), format!("bytes 1-4/{whole}"));
    }
    let part = served.get(&chunk);
    assert_eq!((part.text(), part.header("content-type").as_str()), (whole.text(), "text/turtle"));
    let range = served.ask("GET", &chunk, &[("Range", "bytes=1-4")]);
    assert_eq!((range.status, range.text().as_str()), (206, &part.text()[1..5]));
    assert_eq!(served.ask("GET", &chunk, &[("Accept", "image/png")]).status, 406);
    assert_eq!(served.get(&path.replace(".nt", "/2.nt")).status, 404);
}
