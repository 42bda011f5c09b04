//! Mementos, TimeGates and TimeMaps, as a client of RFC 7089 sees them.

use crate::world::{BASE, Reply, SECRET, Served, World};
use abreast_contents::Contents;
use abreast_core::{FixedClock, NewSet, VersionPolicy};
use abreast_store::SqliteLog;
use abreast_webtypes::{Link, Timestamp, parse_link_header};
use std::sync::Arc;

/// 2026-01-01T00:00:00Z
const START: i64 = 1_767_225_600;
const ORIGINAL: &str = "https://example.org/set/r/a%20b.txt";
const TIMEGATE: &str = "/timegate/https://example.org/set/r/a%20b.txt";
const TIMEMAP: &str = "/timemap/https://example.org/set/r/a%20b.txt";

struct Versioned {
    world: World,
    clock: Arc<FixedClock>,
}

impl Versioned {
    fn new() -> Self {
        let mut world = World::new();
        let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(START)));
        world.log = Arc::new(SqliteLog::temporary(Arc::clone(&clock) as _).unwrap());
        world.set =
            world.log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
        world.log.keep_versions(world.set, true).unwrap();
        let contents = Contents::open(&world.temporary.path().join("contents")).unwrap();
        world.contents = Some(Arc::new(contents));
        world.write("other.txt", "other");
        Self { world, clock }
    }

    /// At so many seconds after the start the file has this content, or is gone.
    fn at(&self, seconds: i64, content: Option<&str>) {
        self.clock.set(Timestamp::from_seconds(START + seconds));
        match content {
            Some(content) => self.world.write("a b.txt", content),
            None => std::fs::remove_file(self.world.folder.join("a b.txt")).unwrap(),
        }
        self.world.publish();
    }

    /// One in the base, two in one second, a deletion, and the current one.
    fn with_history() -> Self {
        let new = Self::new();
        for (seconds, content) in [
            (0, Some("one")),
            (10, Some("two")),
            (10, Some("three")),
            (20, None),
            (30, Some("four")),
        ] {
            new.at(seconds, content);
        }
        new
    }
}

fn date(seconds: i64) -> String {
    abreast_source::versions::http_date(Timestamp::from_seconds(START + seconds))
}

/// The address without the public base.
fn target(url: &str) -> String {
    format!("/{}", url.strip_prefix(BASE).unwrap())
}

fn links(reply: &Reply) -> Vec<Link> {
    parse_link_header(&reply.header("link")).unwrap()
}

fn link(reply: &Reply, rel: &str) -> Option<String> {
    links(reply).into_iter().find(|link| link.has_rel(rel)).map(|link| link.target)
}

/// Where a date leads.
fn negotiated(served: &Served, accept: &str) -> Reply {
    let reply = served.ask("GET", TIMEGATE, &[("Accept-Datetime", accept)]);
    assert_eq!(
        (reply.status, reply.header("vary").as_str()),
        (302, "Accept-Datetime"),
        "{accept}: {}",
        reply.text()
    );
    assert_eq!(link(&reply, "original").unwrap(), ORIGINAL);
    assert_eq!(link(&reply, "timegate"), None, "a TimeGate is none of itself");
    served.get(&target(&reply.header("location")))
}

#[test]
fn a_date_leads_to_the_version_of_that_date() {
    let versioned = Versioned::with_history();
    let served = versioned.world.serve();
    for (accept, status, body, since) in [
        (date(-1_000_000), 200, "one", 0),
        (date(0), 200, "one", 0),
        (date(9), 200, "one", 0),
        // The last of that second: dates have no more.
        (date(10), 200, "three", 10),
        (date(19), 200, "three", 10),
        (date(20), 410, "", 20),
        (date(29), 410, "", 20),
        (date(30), 200, "four", 30),
        (date(1_000_000_000), 200, "four", 30),
        ("Thursday, 01-Jan-26 00:00:12 GMT".to_owned(), 200, "three", 10),
    ] {
        let reply = negotiated(&served, &accept);
        assert_eq!(
            (reply.status, reply.header("memento-datetime")),
            (status, date(since)),
            "{accept}"
        );
        assert!(status != 200 || reply.text() == body, "{accept}: {}", reply.text());
    }
    let newest = served.get(TIMEGATE);
    assert_eq!(newest.status, 302);
    assert_eq!(
        served.get(&target(&newest.header("location"))).text(),
        "four",
        "without a date, the newest"
    );
}

#[test]
fn a_date_that_is_none_is_refused_with_the_way_out() {
    let versioned = Versioned::with_history();
    let served = versioned.world.serve();
    for bad in
        ["", "yesterday", "2026-01-01T00:00:00Z", "Thu, 32 Jan 2026 00:00:00 GMT", "1767225600"]
    {
        let reply = served.ask("GET", TIMEGATE, &[("Accept-Datetime", bad)]);
        assert_eq!(
            (reply.status, reply.header("vary").as_str()),
            (400, "Accept-Datetime, Accept"),
            "{bad}"
        );
        assert!(reply.text().contains("write it as in"), "{}", reply.text());
    }
}

#[test]
fn version_links_to_its_original_and_its_neighbours() {
    let versioned = Versioned::with_history();
    let served = versioned.world.serve();
    let reply = negotiated(&served, &date(12));
    assert_eq!(reply.header("content-type"), "text/plain");
    assert_eq!(reply.header("cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(reply.header("content-security-policy"), "sandbox");
    assert_eq!(link(&reply, "original").unwrap(), ORIGINAL);
    assert_eq!(target(&link(&reply, "timegate").unwrap()), TIMEGATE);
    assert_eq!(target(&link(&reply, "timemap").unwrap()), TIMEMAP);
    let content = |rel: &str| served.get(&target(&link(&reply, rel).unwrap()));
    assert_eq!(content("first").text(), "one");
    assert_eq!(content("prev").text(), "two");
    assert_eq!(content("next").status, 410);
    assert_eq!(content("last").text(), "four");
    for link in links(&reply).iter().filter(|link| link.has_rel("memento")) {
        let memento = served.get(&target(&link.target));
        assert_eq!(Some(memento.header("memento-datetime").as_str()), link.param("datetime"));
    }
    let gone = content("next");
    assert_eq!(link(&gone, "original").unwrap(), ORIGINAL);
    assert!(link(&gone, "next").is_some() && link(&gone, "prev").is_some());
}

#[test]
fn versions_of_one_second_have_addresses_of_their_own_that_stay() {
    let versioned = Versioned::with_history();
    let served = versioned.world.serve();
    let paths = ["/set/m/20260101000010000000/a%20b.txt", "/set/m/20260101000010000001/a%20b.txt"];
    assert_eq!(paths.map(|path| served.get(path).text()), ["two", "three"]);
    let first = served.get(paths[0]);
    let tag = first.header("etag");
    assert_ne!(tag, served.get(paths[1]).header("etag"));
    assert_eq!(served.ask("GET", paths[0], &[("If-None-Match", &tag)]).status, 304);
    let part = served.ask("GET", paths[0], &[("Range", "bytes=1-")]);
    assert_eq!((part.status, part.text().as_str()), (206, "wo"));
    let head = served.ask("HEAD", paths[0], &[]);
    assert_eq!(
        (head.status, head.header("content-length").as_str(), head.body.len()),
        (200, "3", 0)
    );
    // As people write it, and as another spelling of the same path: both lead there.
    let second = served.get("/set/m/20260101000015/a%20b.txt");
    assert_eq!((second.status, target(&second.header("location")).as_str()), (302, paths[1]));
    assert_eq!(served.get("/set/m/20260101000010000000/%61%20b.txt").text(), "two");
    for nothing in [
        "/set/m/20260101000010000002/a%20b.txt",
        "/set/m/20260101000010/b.txt",
        "/set/m/2026/a%20b.txt",
        "/set/m/",
    ] {
        assert_eq!(served.get(nothing).status, 404, "{nothing}");
    }
}

#[test]
fn an_original_names_its_timegate_also_when_it_is_gone() {
    let versioned = Versioned::new();
    versioned.at(0, Some("one"));
    versioned.at(10, None);
    let served = versioned.world.serve();
    for (path, status) in [("/set/r/other.txt", 200), ("/set/r/a%20b.txt", 404)] {
        let reply = served.get(path);
        assert_eq!(reply.status, status);
        assert_eq!(
            link(&reply, "timegate"),
            Some(format!("{BASE}timegate/{BASE}{}", &path[1..])),
            "{path}"
        );
        assert_eq!(
            link(&reply, "timemap"),
            Some(format!("{BASE}timemap/{BASE}{}", &path[1..])),
            "{path}"
        );
    }
    let never = served.get("/set/r/never");
    assert_eq!(
        (never.status, link(&never, "timegate")),
        (404, None),
        "what never was has no versions"
    );
    assert_eq!(negotiated(&served, &date(5)).text(), "one");
    assert_eq!(negotiated(&served, &date(15)).status, 410);
}

#[test]
fn a_timemap_lists_every_version_in_links_and_in_json() {
    let versioned = Versioned::with_history();
    let served = versioned.world.serve();
    let reply = served.get(TIMEMAP);
    assert_eq!(
        (reply.status, reply.header("content-type").as_str()),
        (200, "application/link-format")
    );
    let all = parse_link_header(&reply.text().replace('\n', " ")).unwrap();
    let of = |rel: &str| all.iter().filter(|link| link.has_rel(rel)).collect::<Vec<_>>();
    assert_eq!(of("original")[0].target, ORIGINAL);
    assert_eq!(target(&of("timegate")[0].target), TIMEGATE);
    assert_eq!(target(&of("self")[0].target), TIMEMAP);
    assert_eq!(
        (of("self")[0].param("from"), of("self")[0].param("until")),
        (Some(&*date(0)), Some(&*date(30)))
    );
    let mementos = of("memento");
    let contents: Vec<_> = mementos.iter().map(|link| served.get(&target(&link.target))).collect();
    let told: Vec<_> = contents
        .iter()
        .map(|reply| if reply.status == 200 { reply.text() } else { "-".into() })
        .collect();
    assert_eq!(told, ["one", "two", "three", "-", "four"]);
    assert!(mementos[0].has_rel("first") && mementos[4].has_rel("last"));
    assert_eq!(
        mementos.iter().filter(|link| link.has_rel("first") || link.has_rel("last")).count(),
        2
    );
    assert_eq!(served.ask("GET", TIMEMAP, &[("If-None-Match", &reply.header("etag"))]).status, 304);

    let json = served.get(&TIMEMAP.replace("/timemap/", "/timemap/json/"));
    assert_eq!(json.header("content-type"), "application/json");
    let json: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
    assert_eq!(json["original_uri"], ORIGINAL);
    let list = json["mementos"]["list"].as_array().unwrap();
    assert_eq!(list.len(), 5);
    assert_eq!(
        (&list[2]["datetime"], &list[3]["deleted"]),
        (&"2026-01-01T00:00:10.000001Z".into(), &true.into())
    );
    assert_eq!(json["mementos"]["last"]["uri"], mementos[4].target);

    // A page that begins later, and what is no page.
    let later = served.get(&TIMEMAP.replace("/timemap/", "/timemap/20260101000020000000/"));
    assert_eq!(later.text().matches("datetime=").count(), 2);
    for nothing in [
        "/timemap/",
        "/timemap/https://example.org/set/r/never",
        "/timemap/20260101000040000000/https://example.org/set/r/a%20b.txt",
    ] {
        assert_eq!(served.get(nothing).status, 404, "{nothing}");
    }
}

#[test]
fn collected_versions_leave_the_rest_in_order() {
    let versioned = Versioned::with_history();
    let (world, policy) =
        (&versioned.world, VersionPolicy { count: Some(3), ..VersionPolicy::default() });
    let set = abreast_source::versions::KeptSet { set: world.set, slug: "set".into(), policy };
    abreast_source::versions::collect_all(
        Arc::clone(&world.log),
        world.contents.clone().unwrap(),
        vec![set],
    )
    .unwrap();
    let served = world.serve();
    assert_eq!(served.get("/set/m/20260101000010000000/a%20b.txt").status, 404);
    let first = negotiated(&served, &date(0));
    assert_eq!(first.text(), "three", "the first that is kept");
    assert_eq!(link(&first, "prev"), None);
    assert_eq!(served.get(TIMEMAP).text().matches("datetime=").count(), 3);
}

#[test]
fn nothing_but_versions_is_reached() {
    let versioned = Versioned::with_history();
    let served = versioned.world.serve();
    for path in [
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "/secret",
        ".git/config",
        "http://evil.example/x",
    ] {
        for target in [
            format!("/set/m/20260101000010000000/{path}"),
            format!("/timegate/https://example.org/set/r/{path}"),
            format!("/timemap/https://example.org/set/r/{path}"),
            format!("/timegate/{path}"),
        ] {
            let reply = served.get(&target);
            assert_eq!(reply.status, 404, "{target}");
            assert!(!reply.text().contains(SECRET));
        }
    }
    // Some intermediaries make one slash of two.
    assert_eq!(served.get("/timegate/https:/example.org/set/r/a%20b.txt").status, 302);
}

#[test]
fn a_set_without_versions_promises_none() {
    let world = World::new();
    world.write("a.txt", "a");
    world.publish();
    let served = world.serve();
    let reply = served.get("/set/r/a.txt");
    assert!(!reply.header("link").contains("timegate"), "{}", reply.header("link"));
    for target in [
        "/timegate/https://example.org/set/r/a.txt",
        "/timemap/https://example.org/set/r/a.txt",
        "/set/m/20260101000000/a.txt",
    ] {
        assert_eq!(served.get(target).status, 404, "{target}");
    }
}

#[test]
fn unmodified_since_is_judged_alike_by_every_route() {
    // 2100: of a date that is not over, none is sent, and it is known all the same.
    let new = Versioned::new();
    new.at(2_335_219_200, Some("one"));
    let file = std::fs::File::options().write(true).open(new.world.folder.join("other.txt"));
    file.unwrap()
        .set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(3_600))
        .unwrap();
    let served = new.world.serve();
    let memento = target(&served.get(TIMEGATE).header("location"));
    let (early, late) = ("Sun, 09 Sep 2001 01:46:40 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    let mut wrong = Vec::new();
    for (path, has_date, is_sent) in [
        ("/.well-known/resourcesync", true, false),
        ("/set/capabilitylist.xml", true, false),
        ("/set/resourcelist.xml", true, false),
        ("/set/changelist.xml", true, false),
        ("/sitemap.xml", true, false),
        ("/set/sitemap/1.xml", true, false),
        ("/set/about.html", true, false),
        ("/robots.txt", true, false),
        ("/set/r/other.txt", true, false),
        (&memento, true, true),
        // Without a modification date the field is ignored [rfc9110 §13.1.4].
        (TIMEMAP, false, false),
        ("/livez", false, false),
    ] {
        let plain = served.get(path);
        let status = |headers: &[(&str, &str)]| served.ask("GET", path, headers).status;
        let found = (
            plain.status,
            !plain.header("last-modified").is_empty(),
            status(&[("If-Unmodified-Since", early)]),
            status(&[("If-Unmodified-Since", late)]),
            // A list of dates, and a date beside a tag, are ignored.
            status(&[("If-Unmodified-Since", early), ("If-Unmodified-Since", early)]),
            status(&[("If-Unmodified-Since", early), ("If-Match", "*")]),
        );
        let expected = (200, is_sent, if has_date { 412 } else { 200 }, 200, 200, 200);
        if found != expected {
            wrong.push(format!("{path}: {found:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
