//! Several nodes publish sets from a PostgreSQL database and a bucket: nodes are killed and stopped,
//! the database crashes and the bucket does not answer, while files change in a folder and clients
//! write through all nodes. No accepted change is lost or doubled, all nodes serve the same
//! documents, and a copy is equal to the folder.

mod balancer;

use crate::world::{abreast, get, stop};
use abreast_testkit::folder::files;
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::s3::{S3Server, settings};
use abreast_testkit::{Random, Running, eventually, eventually_some, kills, provided, run, seed};
use balancer::Balancer;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const NODES: usize = 3;
/// Faults, and how many when more are asked for.
const FAULTS: u64 = 6;
/// Clients that write records.
const WRITERS: usize = 2;
/// Where the contents of all nodes are.
const CONTENTS: &str = "s3://bucket/abreast";
/// The lease of a node, in seconds.
const LEASE: u64 = 3;
/// How long everything may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);
/// Documents that are unchanged for this time are at rest. Nodes find the snapshots of others within
/// two seconds.
const AT_REST: Duration = Duration::from_secs(4);
/// Pause between two changes of a writer.
const PAUSE: Duration = Duration::from_millis(40);

/// Nodes of a Source, with their load balancer, database and bucket.
struct Nodes {
    place: PathBuf,
    database: String,
    bucket: S3Server,
    addresses: Vec<SocketAddr>,
    running: Vec<Option<Running>>,
    balancer: Balancer,
    token: String,
}

impl Nodes {
    fn start(test: &str, place: &Path, server: &Postgres) -> Option<Self> {
        let bucket = S3Server::start(test)?;
        let database = server.create("serve");
        let token = ["token", "create", "--name", "writer", "--scope", "admin", "--data"];
        let token = run(abreast().args(token).arg(&database));
        assert!(token.status.success(), "{}", String::from_utf8_lossy(&token.stderr));
        let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
        let addresses: Vec<_> = (0..NODES).map(|_| unused_address()).collect();
        let balancer = Balancer::start(addresses.clone());
        let running = (0..NODES).map(|_| None).collect();
        let place = place.to_owned();
        for folder in ["papers", "people"] {
            std::fs::create_dir(place.join(folder)).unwrap();
        }
        let mut nodes = Self { place, database, bucket, addresses, running, balancer, token };
        (0..NODES).for_each(|number| nodes.run(number));
        (0..NODES).for_each(|number| nodes.until_ready(number));
        Some(nodes)
    }

    fn papers(&self) -> PathBuf {
        self.place.join("papers")
    }

    /// The URL of the load balancer.
    fn url(&self) -> String {
        format!("http://{}/", self.balancer.address)
    }

    /// The command of a node whose contents are in this bucket.
    fn command(&self, number: usize, contents: &str) -> Command {
        let (config, scratch) = (
            self.place.join(format!("{number}.toml")),
            self.place.join(format!("scratch-{number}")),
        );
        let text = format!(
            "data = \"{}\"\ncontents = \"{contents}\"\nscratch = \"{}\"\nnode = \"{number}\"\nbase_url = \"{}\"\n\
             [database]\nlease = \"{LEASE}s\"\n[api]\nwrite = true\n\
             [[set]]\nname = \"papers\"\nfolder = \"{}\"\ndebounce = \"30ms\"\ndumps = {{ changes = true }}\n\
             [[set]]\nname = \"notes\"\norigin = \"records\"\n\
             [[set]]\nname = \"people\"\norigin = \"rdf\"\nfolder = \"{}\"\nnamespace = \"http://example.org/p/\"\n\
             [[set]]\nname = \"things\"\norigin = \"rdf\"\nnamespace = \"http://example.org/t/\"\n",
            self.database,
            scratch.display(),
            self.url(),
            self.papers().display(),
            self.place.join("people").display(),
        );
        std::fs::write(&config, text).unwrap();
        let mut command = abreast();
        for (name, value) in settings(self.bucket.address()) {
            command.env(name.to_uppercase(), value);
        }
        command.arg("serve").arg("--config").arg(config);
        command
    }

    fn run(&mut self, number: usize) {
        let log = self.place.join(format!("{number}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = self.command(number, CONTENTS);
        command.args(["--listen", &self.addresses[number].to_string()]);
        let node = Running::start(command.stdout(Stdio::null()).stderr(log));
        self.running[number] = Some(node);
    }

    /// The node with a lease.
    fn holder(server: &Postgres, lease: &str) -> usize {
        let sql = format!(
            "SELECT node FROM abreast.leases WHERE name = '{lease}' \
             AND until > extract(epoch FROM clock_timestamp()) * 1000000"
        );
        eventually_some("a node has the lease", || server.sql("serve", &sql).trim().parse().ok())
    }

    fn until_ready(&self, number: usize) {
        eventually("the node is ready", || {
            get(&self.addresses[number].to_string(), "/readyz")
                .is_some_and(|(status, text)| status == 200 && text == b"ready\n")
        });
    }

    fn signal(&self, number: usize, signal: &str) {
        send_signal(self.running[number].as_ref().unwrap().0.id(), signal);
    }

    fn client(&self) -> Client {
        let (addresses, host) = (self.addresses.clone(), self.balancer.address);
        Client { addresses, host, token: self.token.clone() }
    }

    /// The answer of a node that must answer.
    fn read(&self, number: usize, path: &str) -> (u16, Vec<u8>) {
        get(&self.addresses[number].to_string(), path).unwrap()
    }

    /// Whether all nodes answer a request in the same way; each has 200.
    fn are_equal(&self, path: &str) -> bool {
        let answers: Vec<_> = (0..NODES).map(|number| self.read(number, path)).collect();
        assert!(answers.iter().all(|(status, _)| *status == 200), "{path}: {}", answers[0].0);
        answers.iter().all(|answer| *answer == answers[0])
    }
}

/// A client that asks any node.
struct Client {
    addresses: Vec<SocketAddr>,
    host: SocketAddr,
    token: String,
}

impl Client {
    /// Asks a node, which may not answer.
    fn ask(&self, node: usize, request: &str, headers: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.addresses[node]).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let request = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }
}

fn send_signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

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

/// Records with names that begin so, until `stop` is set; returns the names that were accepted.
fn write_records(client: &Client, writer: usize, stop: &AtomicBool) -> Vec<String> {
    let (mut accepted, mut random) = (Vec::new(), Random::new(writer as u64 + 1));
    for number in 0.. {
        if stop.load(SeqCst) {
            break;
        }
        let name = format!("http://elsewhere.example/{writer}/{number}");
        let body = format!("{{\"uri\":\"{name}\",\"change\":\"created\"}}\n");
        let headers =
            format!("Content-Type: application/x-ndjson\r\nIdempotency-Key: {writer}-{number}\r\n");
        // A client whose request was not answered repeats it, at another node.
        loop {
            let node = random.below(NODES as u64) as usize;
            match client.ask(node, "POST /api/v1/sets/notes/changes", &headers, &body) {
                Some((200, _)) => break,
                Some((503, _)) | None => std::thread::sleep(PAUSE),
                Some(answer) => panic!("{answer:?}"),
            }
        }
        accepted.push(name);
        std::thread::sleep(PAUSE);
    }
    accepted
}

/// Creates, changes and removes files, until `stop` is set.
fn write_files(folder: &Path, stop: &AtomicBool) {
    let mut random = Random::new(7);
    for number in 0_u64.. {
        if stop.load(SeqCst) {
            break;
        }
        let name = folder.join(format!("paper-{}.txt", random.below(40)));
        if random.below(5) == 0 {
            let _ = std::fs::remove_file(name);
        } else {
            let temporary = folder.join(".new");
            std::fs::write(&temporary, format!("paper {number}\n")).unwrap();
            std::fs::rename(temporary, name).unwrap();
        }
        std::thread::sleep(PAUSE);
    }
}

/// One fault, and its repair.
fn fail(nodes: &mut Nodes, server: &mut Postgres, kind: u64, random: &mut Random) {
    let node = random.below(NODES as u64) as usize;
    let bucket = nodes.bucket.id();
    match kind % 4 {
        0 => {
            drop(nodes.running[node].take());
            std::thread::sleep(Duration::from_millis(500));
            nodes.run(node);
        }
        1 => {
            nodes.signal(node, "-STOP");
            std::thread::sleep(Duration::from_secs(2 * LEASE));
            nodes.signal(node, "-CONT");
        }
        2 => server.crash(),
        _ => {
            send_signal(bucket, "-STOP");
            std::thread::sleep(Duration::from_secs(2));
            send_signal(bucket, "-CONT");
        }
    }
}

#[test]
fn a_source_stays_exact_while_its_nodes_fail() {
    let name = "serve_nodes::a_source_stays_exact_while_its_nodes_fail";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let (faults, mut random) = (kills(FAULTS), Random::new(seed(1)));
    let temporary = tempfile::tempdir().unwrap();
    let mut server = Postgres::start(&programs);
    let Some(mut nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    let papers = nodes.papers();
    let copy = temporary.path().join("copy");
    let mut follow = abreast();
    follow.arg("sync").arg(format!("{}papers/", nodes.url())).arg(&copy);
    follow
        .args(["--follow", "--interval", "1s", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    std::fs::write(papers.join("first.txt"), "first").unwrap();
    let following = Running::start(&mut follow);

    let stopping = AtomicBool::new(false);
    let accepted: Vec<String> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, stopping) = (nodes.client(), &stopping);
                scope.spawn(move || write_records(&client, writer, stopping))
            })
            .collect();
        scope.spawn(|| write_files(&papers, &stopping));
        for fault in 0..faults {
            std::thread::sleep(Duration::from_secs(1));
            fail(&mut nodes, &mut server, fault, &mut random);
        }
        std::thread::sleep(Duration::from_secs(1));
        stopping.store(true, SeqCst);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    (0..NODES).for_each(|number| nodes.until_ready(number));
    let ended = Instant::now();
    eventually_within("the copy is equal to the folder", || files(&copy) == files(&papers));
    println!("{} records; the copy was equal after {:?}", accepted.len(), ended.elapsed());
    check_records(&nodes, accepted);
    for path in DOCUMENTS {
        eventually_within(path, || nodes.are_equal(path));
    }
    for name in files(&papers).keys() {
        let path = format!("/papers/r/{}", name.display());
        assert!(nodes.are_equal(&path), "{path}");
        assert_eq!(nodes.read(0, &path).1, std::fs::read(papers.join(name)).unwrap(), "{path}");
    }
    drop(following);
    check_dump(&mut nodes, &server);
    for node in nodes.running.drain(..) {
        assert_eq!(stop(node.unwrap()), Some(0));
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

#[test]
fn nodes_of_one_source_agree() {
    let name = "serve_nodes::nodes_of_one_source_agree";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    for (contents, more, expected) in [
        ("s3://bucket/other", None, "the other nodes have their contents in `s3://bucket/abreast`"),
        ("s3://missing/abreast", None, "cannot use the bucket `s3://missing/abreast`"),
        (CONTENTS, Some("--confirm-deletions"), "`--confirm-deletions`: this node may watch"),
    ] {
        let mut command = nodes.command(NODES, contents);
        let refused = run(command.args(["--listen", "127.0.0.1:0"]).args(more));
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && text.contains(expected), "{contents}: {text}");
    }

    // Most files are gone: the watching node holds their deletion, and others send a client there.
    for number in 0..30 {
        std::fs::write(nodes.papers().join(format!("{number}")), "paper").unwrap();
    }
    let count = |number, path| {
        let (_, body) = nodes.read(number, path);
        let set: serde_json::Value = serde_json::from_slice(&body).unwrap();
        (set["count"].as_u64().unwrap(), set["held_deletions"].as_u64().unwrap())
    };
    let papers = "/api/v1/sets/papers";
    eventually("the files are recorded", || count(0, papers) == (30, 0));
    let holder = Nodes::holder(&server, "watch/papers");
    let away = temporary.path().join("away");
    std::fs::rename(nodes.papers(), &away).unwrap();
    std::fs::create_dir(nodes.papers()).unwrap();
    let scan = format!("POST {papers}/scan");
    for number in (0..NODES).filter(|number| *number != holder) {
        let (status, answer) = nodes.client().ask(number, &scan, "", "").unwrap();
        assert!(status == 409 && answer.contains("another node watches"), "{answer}");
    }
    eventually("the deletions are held", || {
        let watching = Nodes::holder(&server, "watch/papers");
        count(watching, papers) == (30, 30)
    });
    assert!((0..NODES).all(|number| count(number, papers).0 == 30), "nothing is deleted");
    let watching = Nodes::holder(&server, "watch/papers");
    let confirm = format!("POST {papers}/deletions");
    let (status, answer) = nodes.client().ask(watching, &confirm, "", "").unwrap();
    assert!(matches!(status, 200 | 202), "{status}: {answer}");
    eventually("the deletions are recorded", || {
        (0..NODES).all(|number| count(number, papers).0 == 0)
    });
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
fn check_records(nodes: &Nodes, accepted: Vec<String>) {
    let changes: Vec<_> = (0..NODES).map(|number| all_changes(nodes, number)).collect();
    assert!(changes.iter().all(|of_node| *of_node == changes[0]));
    let positions: Vec<u64> = changes[0].iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>(), "without gaps");
    let mut recorded: Vec<_> = changes[0].iter().map(|(_, uri)| uri.clone()).collect();
    let mut accepted = accepted;
    recorded.sort();
    accepted.sort();
    assert_eq!(recorded, accepted, "each is recorded once");
}

/// Positions and URIs of all changes, read from one node.
fn all_changes(nodes: &Nodes, number: usize) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("/api/v1/sets/notes/changes?limit=100&after={after}");
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
