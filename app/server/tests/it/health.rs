//! Probes and figures.

use crate::world::{BASE, Served, World};
use abreast_core::{NewSet, NodeRoles, SystemClock};
use abreast_server::{ServerOptions, Site};
use abreast_source::WatchState;
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::watch::{Watch, WatchOptions};
use abreast_testkit::eventually;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn alive_at_once_and_ready_when_the_import_is_complete() {
    let world = World::new();
    world.write("a", "1");
    let served = world.serve();
    assert_eq!(served.get("/livez").status, 200);
    let waiting = served.get("/readyz");
    assert_eq!(waiting.status, 503);
    assert!(
        waiting.text().contains("set `set` is being read for the first time"),
        "{}",
        waiting.text()
    );
    assert!(!waiting.header("retry-after").is_empty());
    world.publish();
    assert_eq!(served.get("/readyz").status, 200);
}

#[test]
fn a_node_refuses_requests_for_other_roles() {
    let world = World::new();
    world.write("a", "1");
    world.publish();
    let roles = NodeRoles::parse(&["hub"]).unwrap();
    let served = Served::start(world.site(), ServerOptions { roles, ..ServerOptions::default() });
    for path in ["/", "/set/r/a", "/set/resourcelist.xml", "/api/v1/sets", "/admin/"] {
        assert_eq!(served.get(path).status, 421, "{path}");
    }
    let refused = served.ask("POST", "/api/v1/sets/set/changes", &[("Content-Length", "9")]);
    assert_eq!((refused.status, refused.header("connection").as_str()), (421, "close"));
    assert!(refused.text().contains("does not have the role `api`"), "{}", refused.text());
    assert_eq!(served.get("/hub").status, 404, "the site has no hub");
    for path in ["/livez", "/readyz", "/metrics", "/style.css"] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
}

#[test]
fn not_ready_while_the_folder_is_gone() {
    let mut world = World::new();
    world.write("a", "1");
    let mut options = WatchOptions::new(&world.folder);
    options.debounce = Duration::from_millis(20);
    options.ingest.settle = Duration::from_millis(50);
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    world.status = Arc::clone(watch.status());
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    let served = world.serve();
    assert_eq!(served.get("/readyz").status, 200);
    let aside = world.temporary.path().join("aside");
    std::fs::rename(&world.folder, &aside).unwrap();
    std::fs::write(aside.join("b"), "1").unwrap();
    eventually("the loss is told", || served.get("/readyz").status == 503);
    assert_eq!(served.get("/livez").status, 200);
    let list = served.get("/set/resourcelist.xml");
    assert!(list.text().contains("https://example.org/set/r/a"), "nothing is deleted");
    watch.stop();
}

#[test]
fn not_ready_while_the_store_is_gone() {
    let mut world = World::new();
    let path = world.temporary.path().join("source.db");
    world.log = Arc::new(abreast_store::SqliteLog::open(&path, Arc::new(SystemClock)).unwrap());
    world.set = world.log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
    world.publish();
    let served = world.serve();
    assert_eq!(served.get("/readyz").status, 200);
    let (store, aside) =
        (world.temporary.path().join("source.db"), world.temporary.path().join("aside.db"));
    std::fs::rename(&store, &aside).unwrap();
    let reply = served.get("/readyz");
    assert_eq!(reply.status, 503);
    assert!(reply.text().contains("was removed while it was open"), "{}", reply.text());
    std::fs::write(&store, "another").unwrap();
    assert!(served.get("/readyz").text().contains("was replaced while it was open"));
    assert_eq!(served.get("/set/resourcelist.xml").status, 200, "what was published stays");
    std::fs::rename(&aside, &store).unwrap();
    assert_eq!(served.get("/readyz").status, 200);
}

#[test]
fn figures_are_text_for_prometheus() {
    let world = World::new();
    let served = world.serve();
    let reply = served.get("/metrics");
    assert_eq!((reply.status, reply.text().as_str()), (200, "abreast_test 1\n"));
    assert!(reply.header("content-type").starts_with("text/plain; version=0.0.4"));
    assert_eq!(reply.header("cache-control"), "no-store");
}

#[test]
fn the_state_of_one_set_does_not_make_the_server_unready() {
    let mut world = World::new();
    for number in 0..20 {
        world.write(&format!("{number}"), "1");
    }
    let other = NewSet { slug: "other".into(), ..NewSet::default() };
    let other = world.log.open_set(&other).unwrap().id;
    let mut options = WatchOptions::new(&world.folder);
    options.debounce = Duration::from_millis(20);
    options.ingest.settle = Duration::from_millis(20);
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    world.status = Arc::clone(watch.status());
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    let urls = SourceUrls::new(BASE);
    let watches = [Arc::clone(&world.status), Arc::default()];
    let ids = [(world.set, "set"), (other, "other")].into_iter().zip(watches);
    let published: Vec<_> = ids
        .map(|((id, slug), watch)| {
            Arc::new(PublishedSet {
                representations: world.representations(),
                watch,
                ..PublishedSet::new(id, slug, urls.set(slug))
            })
        })
        .collect();
    let documents = world.temporary.path().join("documents");
    let publisher =
        Publisher::new(Arc::clone(&world.log), urls, published.clone(), documents).unwrap();
    let titles = published.into_iter().zip(["Set", "Other"]);
    let sets = titles.map(|(published, title)| World::served(published, title)).collect();
    let served = Served::start(Site { publisher, sets, ..world.site() }, ServerOptions::default());
    let reply = served.get("/readyz");
    assert_eq!(reply.status, 200, "the other set is being read for the first time");
    assert!(reply.text().contains("set `other` is being read"), "{}", reply.text());
    assert_eq!(served.get("/other/resourcelist.xml").status, 503);
    world.log.complete_import(other).unwrap();
    assert_eq!(served.get("/readyz").text(), "ready\n");
    for number in 0..20 {
        std::fs::remove_file(world.folder.join(number.to_string())).unwrap();
    }
    eventually("deletions are held", || served.get("/readyz").text().contains("is held"));
    assert_eq!(served.get("/readyz").status, 200);
    let aside = world.temporary.path().join("aside");
    std::fs::rename(&world.folder, &aside).unwrap();
    std::fs::write(aside.join("b"), "1").unwrap();
    eventually("the loss is shown", || {
        served.get("/readyz").text().contains("set `set` is missing")
    });
    assert_eq!(served.get("/readyz").status, 200, "{}", served.get("/readyz").text());
    watch.stop();
}
