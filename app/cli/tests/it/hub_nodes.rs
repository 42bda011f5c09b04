//! Several nodes of a hub share a PostgreSQL database: nodes are killed and stopped, and the database
//! crashes, while publishers publish through all nodes. Every subscriber receives all accepted
//! notifications, in order, and only few deliveries are repeated.

pub(crate) mod subscribers;

use crate::world::{abreast, get, stop};
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::relay::Relay;
use abreast_testkit::{Random, Running, eventually, kills, minutes, number, provided, run, seed};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use subscribers::Subscribers;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const NODES: usize = 3;
const TOPICS: usize = 3;
/// Faults, subscriptions and publishers, and how many when more faults are asked for.
const FAULTS: u64 = 6;
const SUBSCRIBERS: [usize; 2] = [60, 1_000];
const PUBLISHERS: usize = 3;
/// Publishers pause while a subscriber is so far behind.
const BEHIND: u64 = 300;
/// The lease of a node, in seconds.
const LEASE: u64 = 3;
/// How long everything may take to come to rest at the end.
const PATIENCE: Duration = Duration::from_secs(180);
/// Most repeated deliveries, as a part of all.
const REPEATS_MAX: f64 = 0.10;

/// Nodes of a hub, and their database.
struct Nodes {
    place: PathBuf,
    url: String,
    token: String,
    running: Vec<Option<Running>>,
    ports: Arc<RwLock<Vec<u16>>>,
}

impl Nodes {
    fn start(place: &Path, url: &str) -> Self {
        let token = run(abreast().args([
            "token",
            "create",
            "--name",
            "publisher",
            "--scope",
            "admin",
            "--data",
            url,
        ]));
        assert!(token.status.success(), "{}", String::from_utf8_lossy(&token.stderr));
        let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
        let ports = Arc::new(RwLock::new(vec![0; NODES]));
        let (place, url) = (place.to_owned(), url.to_owned());
        let mut nodes = Self { place, url, token, running: Vec::new(), ports };
        for number in 0..NODES {
            nodes.running.push(None);
            nodes.run(number);
        }
        nodes
    }

    fn command(&self, number: usize, listen: &str) -> Command {
        let config = self.place.join(format!("{number}.toml"));
        let scratch = self.place.join(format!("scratch-{number}"));
        let text = format!(
            "data = \"{}\"\nscratch = \"{}\"\nnode = \"{number}\"\nbase_url = \"http://hub.example.org/\"\n\
             [database]\nlease = \"{LEASE}s\"\n[hub]\nallow_topics = [\"http://example.org/\"]\nprivate_callbacks = true\n",
            self.url,
            scratch.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = abreast();
        command.arg("hub").arg("--config").arg(config).args(["--listen", listen]);
        command
    }

    fn run(&mut self, number: usize) {
        let address = unused_address();
        let log =
            std::fs::File::options().create(true).append(true).open(self.log(number)).unwrap();
        let node = Running::start(self.command(number, &address.to_string()).stderr(log));
        self.ports.write().unwrap()[number] = address.port();
        self.running[number] = Some(node);
        eventually("the node is ready", || {
            get(&address.to_string(), "/readyz").is_some_and(|(status, _)| status == 200)
        });
    }

    fn log(&self, number: usize) -> PathBuf {
        self.place.join(format!("{number}.log"))
    }

    /// Ends a node at once.
    fn kill(&mut self, number: usize) {
        drop(self.running[number].take());
    }

    fn signal(&self, number: usize, signal: &str) {
        let pid = self.running[number].as_ref().unwrap().0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// As yet no nodes, of another database with the same tokens.
    fn beside(&self, url: &str) -> Self {
        let place = self.place.join("beside");
        std::fs::create_dir(&place).unwrap();
        let ports = Arc::new(RwLock::new(vec![0]));
        Self { place, url: url.to_owned(), token: self.token.clone(), running: vec![None], ports }
    }

    fn client(&self) -> Client {
        Client { ports: Arc::clone(&self.ports), token: self.token.clone() }
    }
}

#[expect(clippy::print_stdout, reason = "the test runner shows it")]
impl Drop for Nodes {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for number in 0..self.running.len() {
                let log = std::fs::read_to_string(self.log(number)).unwrap_or_default();
                println!("log of node {number}:\n{log}");
            }
        }
    }
}

/// A publisher and subscriber, who may ask any node.
#[derive(Clone)]
struct Client {
    ports: Arc<RwLock<Vec<u16>>>,
    token: String,
}

impl Client {
    fn subscribe(&self, node: usize, topic: usize, callback: &str) -> Option<u16> {
        let form = format!(
            "hub.mode=subscribe&hub.topic={}&hub.callback={callback}&hub.secret=hidden",
            topic_url(topic)
        );
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.post(node, headers, &form).map(|(status, _)| status)
    }

    /// The number of a notification that was accepted.
    fn publish(&self, node: usize, topic: usize, message: &str) -> Option<u64> {
        let headers = format!(
            "Content-Type: text/plain\r\nAuthorization: Bearer {}\r\nLink: <{}>; rel=\"self\"\r\n",
            self.token,
            topic_url(topic)
        );
        let (status, head) = self.post(node, &headers, message)?;
        let number = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("abreast-offset:")?.trim().parse().ok()
        });
        (status == 200).then(|| number.expect("an accepted notification has a number"))
    }

    fn post(&self, node: usize, headers: &str, body: &str) -> Option<(u16, String)> {
        let port = self.ports.read().unwrap()[node];
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        // A stopped node does not answer.
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let length = body.len();
        write!(
            stream,
            "POST /hub HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, _) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, head.to_owned()))
    }
}

fn topic_url(topic: usize) -> String {
    format!("http://example.org/{topic}")
}

fn within(time: Duration, what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < time, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn notifications_arrive_in_order_while_nodes_fail() {
    let name = "hub_nodes::notifications_arrive_in_order_while_nodes_fail";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let minutes = minutes();
    let many = usize::from(minutes.is_some() || number("ABREAST_TEST_KILLS").is_some());
    let (faults, seed) = (kills(FAULTS), seed(1));
    let mut random = Random::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let mut server = Postgres::start(&programs);
    let url = server.create("hub");
    let mut nodes = Nodes::start(temporary.path(), &url);
    let client = nodes.client();
    let subscribers = Arc::new(Subscribers::start(SUBSCRIBERS[many], TOPICS, seed));
    for number in 0..subscribers.len() {
        let callback = subscribers.callback(number);
        let answer = client.subscribe(number % NODES, number % TOPICS, &callback);
        assert_eq!(answer, Some(202), "{callback}");
    }
    within(PATIENCE, "everybody heard something", || {
        for topic in 0..TOPICS {
            client.publish(topic % NODES, topic, "hello").unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
        subscribers.slowest().is_some()
    });
    let (accepted, stop) =
        (Arc::new(Mutex::new(BTreeMap::new())), Arc::new(AtomicBool::new(false)));
    let count = Arc::new(AtomicU64::new(0));
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|publisher| {
            let (client, subscribers) = (client.clone(), Arc::clone(&subscribers));
            let (accepted, stop, count) = (accepted.clone(), stop.clone(), count.clone());
            std::thread::spawn(move || {
                let (topic, mut number, mut last) = (publisher % TOPICS, 0_u64, 0_u64);
                while !stop.load(SeqCst) {
                    if last.saturating_sub(subscribers.slowest_of(topic)) > BEHIND {
                        std::thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                    let message = format!("{publisher}/{number}");
                    // Each through all nodes in turn.
                    let node = (publisher + number as usize) % NODES;
                    if let Some(offset) = client.publish(node, topic, &message) {
                        accepted.lock().unwrap().insert((topic, offset), message);
                        (last, _) = (offset, count.fetch_add(1, SeqCst));
                    }
                    number += 1;
                }
            })
        })
        .collect();

    let begun = Instant::now();
    let mut fault = 0;
    while minutes.map_or(fault < faults, |minutes| begun.elapsed() < minutes) {
        std::thread::sleep(Duration::from_millis(300 + random.below(1_500)));
        let node = random.below(NODES as u64) as usize;
        match fault % 3 {
            0 => {
                nodes.kill(node);
                std::thread::sleep(Duration::from_millis(random.below(5_000)));
                nodes.run(node);
            }
            1 => {
                // Beyond the lease: the other nodes take over, and this one comes back as a stranger.
                nodes.signal(node, "-STOP");
                std::thread::sleep(Duration::from_secs(3 * LEASE));
                nodes.signal(node, "-CONT");
            }
            _ => server.crash(),
        }
        assert_eq!(subscribers.wrong(), Vec::<String>::new(), "seed {seed}, fault {fault}");
        fault += 1;
    }
    stop.store(true, SeqCst);
    for publisher in publishers {
        publisher.join().unwrap();
    }
    let took = begun.elapsed();
    subscribers.be_good();
    let mut last = [0; TOPICS];
    for (topic, last) in last.iter_mut().enumerate() {
        within(PATIENCE, "the last notification is accepted", || {
            client.publish(topic % NODES, topic, "the last").is_some_and(|offset| {
                *last = offset;
                true
            })
        });
    }
    let settled = Instant::now();
    within(PATIENCE, "everybody has the last", || {
        assert_eq!(subscribers.wrong(), Vec::<String>::new(), "seed {seed}");
        (0..TOPICS).all(|topic| subscribers.slowest_of(topic) >= last[topic])
    });
    let counts = subscribers.counts();
    println!(
        "{fault} faults in {} s (seed {seed}): {} notifications accepted of {} recorded, {} subscriptions, {} deliveries, of \
         these {} not taken and {} repeated ({:.2} %); longest silence {:.1} s; everybody had the last after {:.1} s",
        took.as_secs(),
        count.load(SeqCst),
        last.iter().sum::<u64>(),
        subscribers.len(),
        counts.deliveries,
        counts.failed,
        counts.repeats,
        100.0 * counts.repeats as f64 / counts.deliveries as f64,
        counts.silence.as_secs_f64(),
        settled.elapsed().as_secs_f64()
    );
    let messages = subscribers.messages();
    for (place, message) in &*accepted.lock().unwrap() {
        assert_eq!(messages.get(place), Some(message), "{place:?} was accepted");
    }
    let share = counts.repeats as f64 / counts.deliveries as f64;
    assert!(share <= REPEATS_MAX, "{share} of the deliveries are repeated");
    assert!(counts.failed > 0 && count.load(SeqCst) > 100);
}

#[test]
fn any_node_answers_and_operators_need_no_server() {
    let name = "hub_nodes::any_node_answers_and_operators_need_no_server";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let url = server.create("hub");
    let mut nodes = Nodes::start(temporary.path(), &url);
    let client = nodes.client();
    let subscribers = Subscribers::start(6, 1, 1);
    subscribers.be_good();
    for number in 0..subscribers.len() {
        let answer = client.subscribe(number % NODES, 0, &subscribers.callback(number));
        assert_eq!(answer, Some(202));
    }
    let ask = |args: &[&str]| {
        let answer = run(abreast().args(args).args(["--data", &url]));
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(answer.status.success(), "{args:?}: {}", shown(&answer.stderr));
        shown(&answer.stdout)
    };
    within(PATIENCE, "all subscribe", || {
        client.publish(0, 0, "hello").unwrap();
        subscribers.slowest().is_some()
    });
    // A notification that one node accepted is the next one on every other node.
    let first = client.publish(1, 0, "one").unwrap();
    assert_eq!(client.publish(2, 0, "two"), Some(first + 1));
    within(PATIENCE, "all have both", || subscribers.slowest_of(0) == first + 1);
    let topics = ask(&["hub", "topics"]);
    assert!(topics.contains("http://example.org/0"), "{topics}");
    let targets = ask(&["hub", "targets", "http://example.org/0", "--json"]);
    assert_eq!(targets.lines().count(), subscribers.len(), "{targets}");
    let target: serde_json::Value = serde_json::from_str(targets.lines().next().unwrap()).unwrap();
    let id = target["id"].to_string();
    // An operator's replay reaches the node of the target.
    let before = subscribers.counts().deliveries;
    ask(&["hub", "replay", &id, "--after", &(first - 1).to_string()]);
    within(PATIENCE, "two are delivered again", || subscribers.counts().deliveries == before + 2);
    ask(&["hub", "end", &id]);
    within(PATIENCE, "the target has ended", || {
        ask(&["hub", "targets", "http://example.org/0", "--json"]).lines().count()
            == subscribers.len() - 1
    });
    // A token that is revoked is not valid on any node after a second.
    ask(&["token", "revoke", "publisher"]);
    within(PATIENCE, "no node accepts the token", || {
        (0..NODES).all(|node| client.publish(node, 0, "no").is_none())
    });
    // A stop hands everything over at once.
    for number in 0..NODES {
        assert_eq!(stop(nodes.running[number].take().unwrap()), Some(0));
    }
    assert_eq!(server.sql("hub", "SELECT count(*) FROM abreast.nodes"), "0");
}

#[test]
fn a_node_that_is_cut_off_delivers_nothing() {
    const SUBSCRIBERS: usize = 40;
    let name = "hub_nodes::a_node_that_is_cut_off_delivers_nothing";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let url = server.create("hub");
    let nodes = Nodes::start(temporary.path(), &url);
    let relay = Relay::start(server.port(), u64::MAX, 1);
    let mut cut_off = nodes.beside(&relay.url(&url));
    cut_off.run(0);
    let client = nodes.client();
    let subscribers = Subscribers::start(SUBSCRIBERS, 1, 1);
    subscribers.be_good();
    for number in 0..SUBSCRIBERS {
        let answer = client.subscribe(number % NODES, 0, &subscribers.callback(number));
        assert_eq!(answer, Some(202));
    }
    let publish = || client.publish(0, 0, "hello").unwrap();
    within(PATIENCE, "all subscribe", || {
        publish();
        subscribers.slowest().is_some()
    });
    let address = format!("127.0.0.1:{}", cut_off.ports.read().unwrap()[0]);
    let delivered = || {
        let (status, text) = get(&address, "/metrics").unwrap();
        assert_eq!(status, 200);
        let text = String::from_utf8(text).unwrap();
        let total =
            |line: &str| line.strip_prefix("abreast_hub_delivered_total ")?.parse::<f64>().ok();
        text.lines().find_map(total).unwrap_or(0.0)
    };
    let before = delivered();
    within(PATIENCE, "the node delivers", || {
        publish();
        delivered() > before
    });
    relay.cut(true);
    // Half of the lease, and a delivery that had started.
    std::thread::sleep(Duration::from_secs(LEASE) / 2 + Duration::from_millis(500));
    let last = delivered();
    let mut newest = 0;
    within(PATIENCE, "the other nodes have its part", || {
        newest = publish();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(delivered().total_cmp(&last), std::cmp::Ordering::Equal);
        subscribers.slowest_of(0) + 1 >= newest
    });
    relay.cut(false);
    within(PATIENCE, "the node delivers again", || {
        newest = publish();
        std::thread::sleep(Duration::from_millis(100));
        delivered() > last
    });
    within(PATIENCE, "all have the last", || subscribers.slowest_of(0) >= newest);
    assert_eq!(subscribers.wrong(), Vec::<String>::new());
}

#[test]
fn notifications_after_a_failover_that_lost_some_are_delivered() {
    let name = "hub_nodes::notifications_after_a_failover_that_lost_some_are_delivered";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    fail_over(&programs, false);
}

#[test]
fn a_failover_is_noticed_although_another_node_recorded_more() {
    let name = "hub_nodes::a_failover_is_noticed_although_another_node_recorded_more";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    fail_over(&programs, true);
}

/// Replaces the database by an earlier copy, and checks that subscribers get the notifications with
/// the offsets of lost ones. With `is_ahead`, a node that nobody else sees published them, and has more
/// revisions than were lost, before any other node asks.
fn fail_over(programs: &Path, is_ahead: bool) {
    const SUBSCRIBERS: usize = 8;
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(programs);
    let url = server.create("hub");
    let nodes = Nodes::start(temporary.path(), &url);
    let client = nodes.client();
    let subscribers = Subscribers::start(SUBSCRIBERS, 1, 1);
    subscribers.be_good();
    for number in 0..SUBSCRIBERS {
        let answer = client.subscribe(number % NODES, 0, &subscribers.callback(number));
        assert_eq!(answer, Some(202));
    }
    let publish = |message: &str| {
        let mut offset = None;
        within(PATIENCE, "a notification is accepted", || {
            offset = (0..NODES).find_map(|node| client.publish(node, 0, message));
            offset.is_some()
        });
        offset.unwrap()
    };
    within(PATIENCE, "all subscribe", || {
        publish("hello");
        subscribers.slowest().is_some()
    });
    let disconnect = || {
        let others =
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'hub'";
        server.sql("postgres", "ALTER DATABASE hub ALLOW_CONNECTIONS false");
        server.sql("postgres", others);
    };
    disconnect();
    server.sql("postgres", "CREATE DATABASE kept TEMPLATE hub");
    server.sql("postgres", "ALTER DATABASE hub ALLOW_CONNECTIONS true");
    let [.., lost] = [0, 1, 2].map(|number| publish(&format!("lost {number}")));
    within(PATIENCE, "all have the last", || subscribers.slowest_of(0) == lost);
    let revision = || {
        let read = |database| server.sql(database, "SELECT revision FROM abreast.hub");
        ["hub", "kept"].map(|database| read(database).parse::<u64>().unwrap())
    };
    let published = is_ahead.then(|| {
        // The other nodes have all shards, so that this one delivers nothing.
        server.sql("kept", "UPDATE abreast.nodes SET until = 9000000000000000");
        let mut other = nodes.beside(&server.url("kept"));
        other.run(0);
        let publish = || other.client().publish(0, 0, "new").unwrap();
        let first = publish();
        while revision()[1] < revision()[0] + 10 {
            publish();
        }
        other.kill(0);
        server.sql("kept", "DELETE FROM abreast.nodes WHERE name = '0' AND until < 9000000000000000");
        let lease = format!(
            "UPDATE abreast.nodes SET until = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {LEASE}000000"
        );
        server.sql("kept", &lease);
        first
    });
    disconnect();
    server.sql("postgres", "DROP DATABASE hub");
    server.sql("postgres", "ALTER DATABASE kept RENAME TO hub");
    // The next notifications have the offsets of the lost ones.
    let first = published.unwrap_or_else(|| publish("new"));
    assert!(first <= lost, "{first} is after {lost}");
    let differs = format!("{first} was `lost");
    within(PATIENCE, "every subscriber has the new notification", || {
        let wrong = subscribers.wrong();
        let new = |one: &&String| one.contains(&differs) && one.ends_with("is `new`");
        wrong.iter().filter(new).count() >= SUBSCRIBERS
    });
}

#[test]
fn settings_of_a_node_are_checked() {
    let refused = |args: &[&str], expected: &str| {
        let answer = run(abreast().args(args));
        let text = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(!answer.status.success() && text.contains(expected), "{args:?}: {text}");
    };
    let nobody = unused_address();
    let url = format!("postgres://abreast:hidden-word@{nobody}/abreast");
    refused(&["hub", "--data", &url], "`scratch`: a node needs a folder");
    refused(&["serve", ".", "--data", &url], "`contents`: the set has contents or files");
    for command in ["import", "log"] {
        refused(&[command, "a", "--data", &url], "cannot open the database");
    }
    let answer = run(abreast().args(["token", "list", "--data", &url]));
    let text = String::from_utf8_lossy(&answer.stderr).into_owned();
    assert!(text.contains("cannot open the database"), "{text}");
    assert!(!text.contains("hidden-word"), "{text}");
}
