//! Browsers, scripts in their pages, and proxies in front: the same answers, in a form that they can use.

use crate::api::{ApiWorld, Settings};
use crate::world::{Served, World};
use abreast_server::ServerOptions;
use abreast_server::api::{Readers, Scope};
use abreast_source::WatchState;
use abreast_source::watch::{Watch, WatchOptions};
use abreast_testkit::eventually;
use std::sync::Arc;
use std::time::Duration;

const BROWSER: (&str, &str) =
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

#[test]
fn scripts_of_any_page_read_what_everybody_reads() {
    let world = ApiWorld::new(&Settings::default());
    let token = format!("Bearer {}", world.token(Scope::Admin, &[]));
    let allowed = |path: &str, headers: &[(&str, &str)]| {
        world.served.ask("GET", path, headers).header("access-control-allow-origin")
    };
    for path in [
        "/api/v1/sets",
        "/api/v1/sets/set",
        "/api/v1/sets/set/changes",
        "/api/v1/sets/none",
        "/api/v1/openapi.json",
        "/readyz",
        "/set/capabilitylist.xml",
    ] {
        assert_eq!(allowed(path, &[("Origin", "https://other.example")]), "*", "{path}");
        let asked = [
            ("Origin", "https://other.example"),
            ("Access-Control-Request-Method", "GET"),
            ("Access-Control-Request-Headers", "if-none-match"),
        ];
        let reply = world.served.ask("OPTIONS", path, &asked);
        assert_eq!(
            (reply.status, reply.header("access-control-allow-origin").as_str()),
            (200, "*")
        );
        assert_eq!(reply.header("access-control-allow-methods"), "GET, HEAD", "{path}");
    }
    assert_eq!(allowed("/api/v1/sets", &[("Authorization", &token)]), "", "not with a token");
    let closed = ApiWorld::new(&Settings { readers: Readers::Tokens, ..Settings::default() });
    let of = |path: &str| closed.served.get(path).header("access-control-allow-origin");
    assert_eq!((of("/api/v1/sets").as_str(), of("/api/v1/openapi.json").as_str()), ("", "*"));
}

#[test]
fn errors_are_pages_for_browsers_and_json_for_others() {
    let world = ApiWorld::new(&Settings::default());
    for (method, path, status) in [
        ("GET", "/nothing", 404),
        ("GET", "/set/r/none", 404),
        ("GET", "/set/none.xml", 404),
        ("GET", "/none/r/x", 404),
        ("GET", "/api/v1/none", 404),
        ("GET", "/api/v1/sets/none", 404),
        ("GET", "/api/v1/tokens", 401),
        ("DELETE", "/set/r/old.txt", 405),
        ("DELETE", "/api/v1/sets", 405),
    ] {
        let page = world.served.ask(method, path, &[BROWSER]);
        assert_eq!(page.status, status, "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert!(page.text().contains(&format!("<h1>{status} ")), "{path}: {}", page.text());
        assert!(page.text().contains("<a href=\"https://example.org/\">"), "{path}");
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
        assert_eq!(page.header("vary").to_ascii_lowercase(), "accept", "{path}");
        for headers in [
            &[][..],
            &[("Accept", "*/*")],
            &[("Accept", "application/json, text/html;q=0.5")],
            &[("Accept", "application/problem+json, text/html;q=0.5")],
            &[("Accept", "application/json")],
        ] {
            let reply = world.served.ask(method, path, headers);
            assert_eq!(reply.status, status, "{path}");
            let json = serde_json::from_str::<serde_json::Value>(&reply.text());
            assert_eq!(reply.header("content-type"), "application/problem+json", "{path}");
            assert_eq!(json.unwrap()["status"], status, "{path}");
            assert_eq!(reply.header("cache-control"), "no-store", "{path}");
            assert_eq!(reply.header("vary").to_ascii_lowercase(), "accept", "{path}");
        }
    }
}

#[test]
fn the_root_of_the_api_is_a_page_for_browsers() {
    let world = ApiWorld::new(&Settings::default());
    for path in ["/api", "/api/", "/api/v1", "/api/v1/"] {
        let page = world.served.ask("GET", path, &[BROWSER]);
        assert_eq!(
            (page.status, page.header("content-type").as_str()),
            (200, "text/html; charset=utf-8")
        );
        assert!(
            page.text().contains("<code>POST /api/v1/sets/{set}/changes</code>"),
            "{}",
            page.text()
        );
        assert!(page.text().contains("curl https://example.org/api/v1/sets"));
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
        assert_eq!(page.header("vary"), "Accept");
        let document = world.served.get(path);
        assert_eq!(document.header("content-type"), "application/json");
        assert!(document.text().contains("\"openapi\""));
        assert_eq!(world.served.ask("POST", path, &[]).status, 404);
    }
}

#[test]
fn the_root_of_a_set_leads_to_its_page() {
    let world = World::new();
    world.write("a", "1");
    world.publish();
    let served = world.serve();
    for (path, page) in [("/set", "about"), ("/set/", "about"), ("/set/r/", "resources")] {
        let reply = served.get(path);
        assert_eq!(reply.status, 303, "{path}");
        let page = format!("https://example.org/set/{page}.html");
        assert_eq!(reply.header("location"), page, "{path}");
    }
    assert_eq!(served.get("/set/about.html").status, 200);
    assert_eq!(served.get("/other/").status, 404);
}

#[test]
fn the_prefix_of_the_public_url_is_removed_if_set() {
    let world = World::new();
    world.write("a b", "1");
    world.publish();
    let serve = |base: &str, strip_prefix: bool| {
        let options = ServerOptions { strip_prefix, ..ServerOptions::default() };
        Served::start(world.site_at(base), options)
    };
    let served = serve("https://example.org/my/data/", true);
    for path in [
        "/",
        "/set/capabilitylist.xml",
        "/set/resourcelist.xml",
        "/set/about.html",
        "/set/r/a%20b",
        "/.well-known/resourcesync",
        "/robots.txt",
        "/readyz",
        "/metrics",
        "/livez",
    ] {
        let (removed, kept) = (served.get(path), served.get(&format!("/my/data{path}")));
        assert_eq!((removed.status, kept.status), (200, 200), "{path}");
        assert_eq!(removed.body, kept.body, "{path}");
    }
    assert_eq!(served.get("/my/data").status, 200);
    for path in ["/my/set/capabilitylist.xml", "/my/data/set/none", "/my/data/my/data/metrics"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
    // By default a proxy removes it: nothing that it does not hand on is found by another path.
    for (base, path, status) in [
        ("https://example.org/my/data/", "/my/data/metrics", 404),
        ("https://example.org/my/data/", "/my/data/set/r/a%20b", 404),
        ("https://example.org/api/", "/api/v1/none", 404),
        ("https://example.org/hub/", "/hub", 404),
        ("https://example.org/set/", "/set/r/a%20b", 200),
        ("https://example.org/set/", "/set/readyz", 404),
        ("https://example.org/set/", "/set/set/r/a%20b", 404),
    ] {
        assert_eq!(serve(base, false).get(path).status, status, "{base} {path}");
    }
    // As written: once, also where a set or a part of the server has the name.
    let served = serve("https://example.org/set/", true);
    assert_eq!(served.get("/set/set/r/a%20b").status, 200);
    assert_eq!(served.get("/set/readyz").status, 200);
    assert_eq!(served.get("/set/r/a%20b").status, 404);
}

#[test]
fn no_answer_has_a_path_of_this_machine() {
    let mut world = World::new();
    let store = world.temporary.path().join("source.db");
    world.log = Arc::new(
        abreast_store::SqliteLog::open(&store, Arc::new(abreast_core::SystemClock)).unwrap(),
    );
    let new = abreast_core::NewSet { slug: "set".into(), ..abreast_core::NewSet::default() };
    world.set = world.log.open_set(&new).unwrap().id;
    world.write("a", "1");
    let mut options = WatchOptions::new(&world.folder);
    options.debounce = Duration::from_millis(20);
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    world.status = Arc::clone(watch.status());
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    let served = world.serve();
    eventually("it is ready", || served.get("/readyz").status == 200);
    let here = world.temporary.path().to_str().unwrap().to_owned();
    let check = |what: &str| {
        for path in ["/readyz", "/metrics", "/set/r/a", "/set/resourcelist.xml"] {
            for headers in [&[][..], &[BROWSER]] {
                let text = served.ask("GET", path, headers).text();
                assert!(!text.contains(&here), "{what}: {path}: {text}");
            }
        }
    };
    let aside = world.temporary.path().join("aside");
    std::fs::rename(&world.folder, &aside).unwrap();
    eventually("the loss is shown", || served.get("/readyz").status == 503);
    let text = served.get("/readyz").text();
    assert!(text.contains("is missing") && text.contains("folder"), "{text}");
    check("without the folder");
    std::fs::rename(&aside, &world.folder).unwrap();
    std::fs::rename(&store, world.temporary.path().join("aside.db")).unwrap();
    let text = served.get("/readyz").text();
    assert!(text.contains("source.db") && text.contains("was removed"), "{text}");
    check("without the store");
    watch.stop();
}

#[test]
fn no_answer_of_the_api_has_a_path_of_this_machine() {
    let world = ApiWorld::new(&Settings::default());
    let here = world.temporary.path().to_str().unwrap().to_owned();
    std::fs::rename(&world.folder, world.temporary.path().join("aside")).unwrap();
    let of_sets = || world.served.get("/api/v1/sets").text();
    eventually("the loss is shown", || of_sets().contains("missing"));
    for path in
        ["/api/v1/sets", "/api/v1/sets/set", "/api/v1/sets/set/changes", "/api/v1/sets/none"]
    {
        for headers in [&[][..], &[BROWSER]] {
            let reply = world.served.ask("GET", path, headers);
            assert!(reply.status == 200 || path.ends_with("none"), "{path}: {}", reply.status);
            assert!(!reply.text().contains(&here), "{path}: {}", reply.text());
        }
    }
}
