//! Several nodes publish sets from a PostgreSQL database and a bucket: nodes are killed, stopped, cut
//! off and upgraded, their clocks differ, the database crashes, commits are lost, and the bucket does
//! not answer, while files change in a folder and clients write through all nodes. No accepted change
//! is lost or doubled, all nodes serve the same documents, the copies of all protocols are equal to
//! the originals, and subscribers get all notifications in order.

mod agreement;
mod balancer;
mod checks;
mod copies;
mod faults;
mod load;
mod nodes;
mod partitions;
mod redirects;
mod roles;

use crate::hub_nodes::subscribers::Subscribers;
use crate::world::stop;
use abreast_testkit::folder::files;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::relay::Relay;
use abreast_testkit::xmpp::Prosody;
use abreast_testkit::{Random, eventually, kills, minutes, number, provided, seed};
use copies::Copy;
use faults::{KINDS, fail};
use load::{write_files, write_records, write_statements};
use nodes::{More, NODES, Nodes, send_signal};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
/// Faults; subscriptions, clients that write records and records in a batch, and how many when more
/// faults are asked for.
const FAULTS: u64 = KINDS;
const SUBSCRIBERS: [usize; 2] = [30, 1_000];
const WRITERS: [usize; 2] = [2, 3];
const BATCH: [usize; 2] = [1, 150];
/// Documents to whose changes clients subscribe.
const TOPICS: [&str; 3] = ["notes/notify/change", "papers/notify/change", "people/notify/change"];
/// How long everything may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(180);
/// Documents that are unchanged for this time are at rest. Nodes find the snapshots of others within
/// two seconds.
const AT_REST: Duration = Duration::from_secs(4);

/// Documents whose bytes are the same on every node, of each protocol.
const DOCUMENTS: &[&str] = &[
    "/.well-known/resourcesync",
    "/papers/capabilitylist.xml",
    "/papers/resourcelist.xml",
    "/papers/changelist.xml",
    "/papers/v0.1/sitemap.xml",
    "/papers/v0.1/changeset.xml",
    "/notes/resourcelist.xml",
    "/notes/changelist.xml",
    "/people/emm/1.0",
    "/people/emm/0.1",
    "/people/iiif",
    "/people/resourcelist.xml",
    "/things/emm/1.0",
    "/things/changelist.xml",
    "/api/v1/sets",
];

#[test]
fn a_source_stays_exact_while_its_nodes_fail() {
    let name = "serve_nodes::a_source_stays_exact_while_its_nodes_fail";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let minutes = minutes();
    let many = usize::from(minutes.is_some() || number("ABREAST_TEST_KILLS").is_some());
    let (faults, seed) = (kills(FAULTS), seed(1));
    let mut random = Random::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let mut server = Postgres::start(&programs);
    let prosody = provided(name, "ABREAST_TEST_PROSODY").map(|program| Prosody::start(&program));
    let more = More { xmpp: prosody.as_ref(), ..More::default() };
    let started = Nodes::start_with(name, temporary.path(), &server, more);
    let Some(mut nodes) = started else { return };
    let (papers, people) = (nodes.papers(), nodes.people());
    std::fs::write(papers.join("first.txt"), "first").unwrap();
    let copies = Copy::start_all(temporary.path(), &nodes.url(), prosody.as_ref());
    let subscribers = Subscribers::start(SUBSCRIBERS[many], TOPICS.len(), seed);
    for number in 0..subscribers.len() {
        let topic = format!("{}{}", nodes.url(), TOPICS[number % TOPICS.len()]);
        let form = format!(
            "hub.mode=subscribe&hub.topic={topic}&hub.callback={}&hub.secret=hidden",
            subscribers.callback(number)
        );
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        let answer = nodes.client().ask(number % NODES, "POST /hub", headers, &form);
        assert_eq!(answer.map(|(status, _)| status), Some(202));
    }

    let (begin, stopping, mut count) = (Instant::now(), AtomicBool::new(false), 0);
    let accepted: Vec<String> = std::thread::scope(|scope| {
        // Also after a failed assertion, so that the writers end.
        let _stop = SetOnDrop(&stopping);
        let writers: Vec<_> = (0..WRITERS[many])
            .map(|writer| {
                let (client, stopping, subscribers) = (nodes.client(), &stopping, &subscribers);
                let work =
                    move || write_records(&client, (writer, BATCH[many]), subscribers, stopping);
                scope.spawn(work)
            })
            .collect();
        scope.spawn(|| write_files(&papers, &stopping));
        scope.spawn(|| write_statements(&people, &stopping));
        while minutes.map_or(count < faults, |minutes| begin.elapsed() < minutes) {
            std::thread::sleep(Duration::from_millis(500 + random.below(1_000)));
            // Each kind once, then at random.
            let kind = if count < KINDS { count } else { random.below(KINDS) };
            fail(&mut nodes, &mut server, kind, &mut random);
            count += 1;
            assert_eq!(subscribers.wrong(), Vec::<String>::new(), "seed {seed}, fault {count}");
        }
        std::thread::sleep(Duration::from_secs(1));
        stopping.store(true, SeqCst);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let took = begin.elapsed();
    (0..NODES).for_each(|number| nodes.until_ready(number));
    let ended = Instant::now();
    subscribers.be_good();
    for copy in &copies {
        eventually_within(&format!("the copy `{}` is equal", copy.name), || copy.is_equal());
    }
    let equal = ended.elapsed();
    check_records(&nodes, &accepted);
    let names: HashSet<&str> = accepted.iter().map(String::as_str).collect();
    let mut notified = HashSet::new();
    eventually_within("all subscribers were notified of all records", || {
        notified = subscribers.messages().into_values().flat_map(|text| locations(&text)).collect();
        !subscribers.is_behind(1) && names.iter().all(|name| notified.contains(*name))
    });
    assert_eq!(subscribers.wrong(), Vec::<String>::new(), "seed {seed}");
    let counts = subscribers.counts();
    println!(
        "{count} faults in {} s (seed {seed}): {} records, {} subscriptions, {} deliveries, of these {} repeated; lost answers to \
         commits: {}; after the last fault, the copies were equal after {:.1} s and all were notified after {:.1} s",
        took.as_secs(),
        accepted.len(),
        subscribers.len(),
        counts.deliveries,
        counts.repeats,
        nodes.relays.iter().map(Relay::lost).sum::<u64>(),
        equal.as_secs_f64(),
        ended.elapsed().as_secs_f64(),
    );
    for path in DOCUMENTS {
        eventually_within(path, || nodes.are_equal(path));
    }
    for name in files(&papers).keys() {
        let path = format!("/papers/r/{}", name.display());
        assert!(nodes.are_equal(&path), "{path}");
        assert_eq!(nodes.read(0, &path).1, std::fs::read(papers.join(name)).unwrap(), "{path}");
    }
    drop(copies);
    check_dump(&mut nodes, &server);
    for node in nodes.running.drain(..) {
        assert_eq!(stop(node.unwrap()), Some(0));
    }
}

/// The URIs in a Change Notification.
fn locations(notification: &str) -> Vec<String> {
    let parts = notification.split("<loc>").skip(1);
    parts.map(|part| part.split("</loc>").next().unwrap_or_default().to_owned()).collect()
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn documents_that_are_known_are_served_during_outages() {
    /// Requests that need the database.
    const FROM_DATABASE: [&str; 3] =
        ["/papers/r/first.txt", "/api/v1/sets/notes/changes", "/things/r/1"];
    let name = "serve_nodes::documents_that_are_known_are_served_during_outages";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let mut server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    std::fs::write(nodes.papers().join("first.txt"), "first").unwrap();
    let description = "<http://example.org/t/1> <http://example.org/p> \"one\" .\n";
    std::fs::write(temporary.path().join("people/one.nt"), description.replace("/t/", "/p/"))
        .unwrap();
    let of_turtle = "Content-Type: text/turtle\r\n";
    let import =
        nodes.client().ask(1, "POST /api/v1/sets/things/entities?as=state", of_turtle, description);
    assert_eq!(import.map(|(status, _)| status), Some(200));
    eventually("all nodes have the file", || {
        (0..NODES).all(|number| nodes.read(number, "/papers/r/first.txt").0 == 200)
    });
    // A write to the files of a folder has one place.
    let content = nodes.client().ask(0, "PUT /api/v1/sets/papers/content/a", "", "a").unwrap();
    assert!(content.0 == 409 && content.1.contains("several nodes"), "{content:?}");
    let known: Vec<_> = DOCUMENTS.iter().filter(|path| !path.starts_with("/api")).collect();
    for path in &known {
        eventually_within(path, || nodes.are_equal(path));
    }
    // The first snapshots of entities are made meanwhile, which changes the documents that list them.
    let bodies = || -> Vec<_> {
        (0..NODES)
            .flat_map(|node| known.iter().map(move |path| (node, path)))
            .map(|(node, path)| nodes.read(node, path))
            .collect()
    };
    eventually_within("the documents are at rest", || {
        let before = bodies();
        std::thread::sleep(AT_REST);
        bodies() == before
            && before
                .iter()
                .any(|(_, body)| String::from_utf8_lossy(body).contains("/sdshare/snapshots/"))
    });

    server.stop();
    let begin = Instant::now();
    for path in &known {
        let (status, body) = nodes.read(0, path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    }
    for path in FROM_DATABASE {
        let head = format!("GET {path}");
        let (status, body) = nodes.client().ask(0, &head, "", "").unwrap();
        assert_eq!(status, 503, "{path}: {body}");
    }
    let write = nodes.client().ask(
        0,
        "POST /api/v1/sets/notes/changes",
        "",
        "{\"uri\":\"http://a/\",\"change\":\"created\"}\n",
    );
    assert_eq!(write.map(|(status, _)| status), Some(503));
    assert_eq!(nodes.read(0, "/readyz").0, 503);
    assert_eq!(nodes.read(0, "/livez").0, 200);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    server.run();
    (0..NODES).for_each(|number| nodes.until_ready(number));

    // Without the bucket, lists are served and the log is written.
    send_signal(nodes.bucket.id(), "-STOP");
    for path in &known {
        assert_eq!(nodes.read(1, path).0, 200, "{path}");
    }
    let write = nodes.client().ask(
        1,
        "POST /api/v1/sets/notes/changes",
        "",
        "{\"uri\":\"http://a/\",\"change\":\"created\"}\n",
    );
    assert_eq!(write.map(|(status, _)| status), Some(200));
    send_signal(nodes.bucket.id(), "-CONT");
    eventually("the bucket answers", || nodes.read(1, "/papers/r/first.txt").0 == 200);

    // What needs the bucket is refused for a time, and neither lost nor a failure of the server.
    send_signal(nodes.bucket.id(), "-KILL");
    let entity = "/api/v1/sets/things/resource?uri=http%3A%2F%2Fexample.org%2Ft%2F2";
    let description = "<http://example.org/t/2> <http://example.org/p> \"two\" .\n";
    for (request, body) in [
        (format!("PUT {entity}"), description),
        ("POST /api/v1/sets/things/entities?as=state".to_owned(), description),
        ("GET /papers/r/first.txt".to_owned(), ""),
        ("GET /things/r/1".to_owned(), ""),
    ] {
        let (status, answer) = nodes.client().ask(2, &request, of_turtle, body).unwrap();
        assert_eq!(status, 503, "{request}: {answer}");
    }
    assert_eq!(nodes.read(2, "/readyz").0, 200);
}

/// A dump that one node made is on all nodes, also after the maker is gone.
fn check_dump(nodes: &mut Nodes, server: &Postgres) {
    let accepted = nodes.client().ask(1, "POST /api/v1/sets/papers/dumps", "", "").unwrap();
    assert_eq!(accepted.0, 202, "{}", accepted.1);
    let package_of = |number| {
        let (status, list) = nodes.read(number, "/papers/resourcedump.xml");
        let list = String::from_utf8(list).unwrap();
        let place = list.split("<loc>").find(|part| part.contains(".zip"))?;
        let url = place.split("</loc>").next().unwrap();
        assert_eq!(status, 200, "{list}");
        Some(url.strip_prefix(&nodes.url()).unwrap().to_owned())
    };
    eventually_within("all nodes list the same dump", || {
        let packages: Vec<_> = (0..NODES).map(package_of).collect();
        packages[0].is_some() && packages.iter().all(|package| *package == packages[0])
    });
    let package = format!("/{}", package_of(0).unwrap());
    let maker = Nodes::holder(server, "made");
    let made = nodes.read(maker, &package);
    assert!(made.0 == 200 && made.1.starts_with(b"PK"), "{}", made.0);
    drop(nodes.running[maker].take());
    for other in (0..NODES).filter(|number| *number != maker) {
        assert_eq!(nodes.read(other, &package), made, "{package} of node {other}");
    }
    nodes.run(maker);
    nodes.until_ready(maker);
}

/// Each accepted record is in the log once, at the same position on every node, without gaps.
fn check_records(nodes: &Nodes, accepted: &[String]) {
    let changes: Vec<_> = (0..NODES).map(|number| all_changes(nodes, number)).collect();
    assert!(changes.iter().all(|of_node| *of_node == changes[0]));
    let positions: Vec<u64> = changes[0].iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>(), "without gaps");
    let mut recorded: Vec<_> = changes[0].iter().map(|(_, uri)| uri.clone()).collect();
    let mut accepted = accepted.to_vec();
    recorded.sort();
    accepted.sort();
    assert_eq!(recorded, accepted, "each is recorded once");
}

/// Positions and URIs of all changes, read from one node.
fn all_changes(nodes: &Nodes, number: usize) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("/api/v1/sets/notes/changes?limit=1000&after={after}");
        let (status, body) = nodes.read(number, &path);
        let page: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, 200, "{page}");
        for change in page["changes"].as_array().unwrap() {
            let uri = change["uri"].as_str().unwrap().to_owned();
            found.push((change["position"].as_u64().unwrap(), uri));
        }
        after = page["next"].as_u64().unwrap();
        if after == page["head"].as_u64().unwrap() {
            return found;
        }
    }
}

fn eventually_within(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
