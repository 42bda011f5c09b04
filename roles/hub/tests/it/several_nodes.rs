//! Hubs that divide the targets of one store: joining, leaving, and nodes that disappear.

use crate::bed::{HUB, TOPIC, options};
use crate::server::{Delivery as _, Got, Reply, Server, encode};
use crate::shared::{SHARDS, Shared, SharedHub};
use abreast_core::hub::{HubStore as _, Target, TargetId, TargetKind};
use abreast_core::{Offset, SystemClock, TopicLog as _};
use abreast_hub::{Client, Hub, HubAnswer, HubOptions, HubRequest, NoPayloads, Publisher};
use abreast_store::hub::SqliteHub;
use abreast_testkit::{eventually, eventually_some};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LEASE: Duration = Duration::from_millis(300);
/// Subscriptions of a test, so that both of two nodes have some.
const SUBSCRIPTIONS: usize = 12;

struct Nodes {
    shared: Arc<Shared>,
    _folder: TempDir,
}

struct Node {
    number: usize,
    hub: Hub,
    store: Arc<SharedHub>,
}

impl Nodes {
    fn new(lease: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.db");
        let hub = SqliteHub::open(&path, Arc::new(SystemClock)).unwrap();
        Self { shared: Shared::new(Arc::new(hub), lease), _folder: folder }
    }

    fn start(&self, number: usize) -> Node {
        self.start_with(number, options())
    }

    /// Starts a node whose deliveries show its number.
    fn start_with(&self, number: usize, options: HubOptions) -> Node {
        let options = HubOptions { url: format!("{HUB}/{number}"), ..options };
        let store = self.shared.node(number);
        let hub = Hub::start(options, Arc::clone(&store) as _, Arc::new(NoPayloads)).unwrap();
        Node { number, hub, store }
    }

    /// Two nodes, after they have divided the shards.
    fn pair(&self) -> (Node, Node) {
        let first = self.start(0);
        eventually("all shards", || self.shared.shards_of(0) == SHARDS);
        let second = self.start(1);
        self.wait_shards(&second, SHARDS / 2);
        (first, second)
    }

    fn wait_shards(&self, node: &Node, count: usize) {
        eventually("the shards", || self.shared.shards_of(node.number) == count);
    }

    /// The subscription of this callback to [`TOPIC`].
    fn target(&self, callback: &str) -> Option<Target> {
        let hub = self.shared.hub();
        let topic = hub.find_topic(TOPIC).unwrap()?;
        hub.find_target(topic, callback, TargetKind::Subscription).unwrap()
    }

    /// Subscribes callbacks `/0`, `/1` … one after the other, through these nodes in turn. Returns
    /// their targets, in this order and the order of their numbers.
    fn subscribe(&self, nodes: &[&Node], server: &Server) -> Vec<Target> {
        let subscribe = |number: usize| {
            let callback = server.url(&format!("/{number}"));
            assert_eq!(nodes[number % nodes.len()].ask("subscribe", &callback).status, 202);
            eventually_some("a subscription", || self.target(&callback))
        };
        (0..SUBSCRIPTIONS).map(subscribe).collect()
    }
}

impl Node {
    fn post(&self, content_type: &str, links: Vec<String>, body: &str, by: Publisher) -> HubAnswer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.hub.handle(HubRequest {
            content_type: content_type.to_owned(),
            links,
            body: body.to_owned().into(),
            client: Client::direct(IpAddr::V4(Ipv4Addr::LOCALHOST)).as_publisher(by),
        }))
    }

    fn ask(&self, mode: &str, callback: &str) -> HubAnswer {
        let (topic, callback) = (encode(TOPIC), encode(callback));
        self.form(&format!("hub.mode={mode}&hub.topic={topic}&hub.callback={callback}"))
    }

    fn form(&self, form: &str) -> HubAnswer {
        let content_type = "application/x-www-form-urlencoded";
        self.post(content_type, Vec::new(), form, Publisher::Anonymous)
    }

    fn say(&self, text: &str) {
        let links = vec![format!("<{TOPIC}>; rel=\"self\""), format!("<{HUB}>; rel=\"hub\"")];
        let answer = self.post("text/plain", links, text, Publisher::Local);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// As after a crash: other nodes get nothing from this one.
    fn disappear(self) {
        self.store.cut(true);
        self.hub.stop();
    }
}

/// The number of the node that sent a delivery.
fn sender(got: &Got) -> usize {
    let links = got.header("link").unwrap();
    let (_, rest) = links.split_once(&format!("<{HUB}/")).unwrap();
    rest.split_once('>').unwrap().0.parse().unwrap()
}

/// Offsets that a callback got, in order.
fn offsets(seen: &[Got], path: &str) -> Vec<u64> {
    let of_callback = |got: &&Got| got.is_delivery() && got.path() == path;
    seen.iter().filter(of_callback).map(Got::offset).collect()
}

/// Waits until every callback has the last notification.
fn wait_all(server: &Server, last: u64) -> Vec<Got> {
    server.wait("all notifications", |seen| {
        (0..SUBSCRIPTIONS).all(|number| offsets(seen, &format!("/{number}")).contains(&last))
    })
}

/// Asserts that each callback got every notification, in order but for repetitions.
fn assert_complete(seen: &[Got], last: u64) {
    for number in 0..SUBSCRIPTIONS {
        let got = offsets(seen, &format!("/{number}"));
        let mut furthest = 0;
        for offset in got {
            assert!(offset <= furthest + 1, "callback {number}: {offset} after {furthest}");
            furthest = furthest.max(offset);
        }
        assert_eq!(furthest, last, "callback {number}");
    }
}

#[test]
fn two_nodes_divide_the_subscriptions_and_deliver_once() {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first, &second], &server);
    for number in 0..5 {
        first.say(&format!("{number} by the first"));
        second.say(&format!("{number} by the second"));
    }
    let seen = wait_all(&server, 10);
    for number in 0..SUBSCRIPTIONS {
        assert_eq!(offsets(&seen, &format!("/{number}")), (1..=10).collect::<Vec<_>>());
    }
    assert!(first.hub.metrics().delivered > 0 && second.hub.metrics().delivered > 0);
    let metrics = second.hub.metrics();
    assert_eq!((metrics.nodes, metrics.shards), (2, SHARDS as u64 / 2));
    assert!(metrics.since_renewal < LEASE, "{:?}", metrics.since_renewal);
    assert_eq!(first.hub.metrics().targets + metrics.targets, SUBSCRIPTIONS as u64);
}

#[test]
fn a_subscription_belongs_to_the_node_of_its_shard() {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first], &server);
    let (by_first, by_second) = (first.hub.metrics(), second.hub.metrics());
    assert_eq!((by_first.requested, by_second.requested), (SUBSCRIPTIONS as u64, 0));
    assert!(by_first.confirmed > 0 && by_second.confirmed > 0, "{by_first:?} {by_second:?}");
    assert_eq!(server.questions().len(), SUBSCRIPTIONS);
    first.say("to all");
    let seen = wait_all(&server, 1);
    for got in seen.iter().filter(|got| got.is_delivery()) {
        let target = nodes.target(&server.url(got.path())).unwrap();
        assert_eq!(nodes.shared.owner(target.id), Some(sender(got)));
    }
}

#[test]
fn an_unsubscription_on_another_node_ends_the_deliveries() {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let (first, second) = nodes.pair();
    let targets = nodes.subscribe(&[&first], &server);
    let before = first.hub.metrics().targets;
    for (number, target) in targets.iter().enumerate().take(3) {
        // The first node delivers, and the second one verifies.
        assert_eq!(nodes.shared.owner(target.id), Some(0));
        let callback = server.url(&format!("/{number}"));
        assert_eq!(first.ask("unsubscribe", &callback).status, 202);
        eventually("the end", || nodes.target(&callback).is_none());
    }
    eventually("the targets", || first.hub.metrics().targets == before - 3);
    assert_eq!(second.hub.metrics().ended, 3);
}

#[test]
fn a_node_that_disappears_is_replaced_and_nothing_is_lost() {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first, &second], &server);
    for number in 0..10 {
        second.say(&format!("before {number}"));
    }
    let dying = std::thread::spawn(move || first.disappear());
    for number in 0..20 {
        second.say(&format!("meanwhile {number}"));
        std::thread::sleep(Duration::from_millis(10));
    }
    dying.join().unwrap();
    assert_complete(&wait_all(&server, 30), 30);
    nodes.wait_shards(&second, SHARDS);
}

#[test]
fn a_node_that_cannot_renew_stops_after_half_of_the_lease() {
    let lease = Duration::from_secs(1);
    let nodes = Nodes::new(lease);
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&times);
    let server = Server::confirming(move |got| {
        log.lock().unwrap().push((sender(got), Instant::now()));
        Reply::Status(204)
    });
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first, &second], &server);
    first.say("before");
    wait_all(&server, 1);
    let cut = Instant::now();
    first.store.cut(true);
    let mut count = 1;
    while cut.elapsed() < lease * 2 {
        first.say("during the cut");
        count += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_complete(&wait_all(&server, count), count);
    let times = times.lock().unwrap();
    let of_first = times.iter().filter(|(node, _)| *node == 0).map(|(_, at)| *at);
    let last = of_first.max().unwrap().saturating_duration_since(cut);
    // The last renewal was before the cut. The rest is the time of a delivery.
    assert!(last < lease * 7 / 10, "{last:?}");
    nodes.wait_shards(&second, SHARDS);
}

/// A server that records deliveries by a node while another one has the target. Requires the
/// targets of [`Nodes::subscribe`].
fn watching(nodes: &Nodes) -> (Server, Arc<Mutex<Vec<String>>>) {
    let (faults, shared) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&nodes.shared));
    let found = Arc::clone(&faults);
    let server = Server::confirming(move |got| {
        let number: i64 = got.path()[1..].parse().unwrap();
        let owner = shared.owner(TargetId(number + 1));
        if owner.is_some_and(|owner| owner != sender(got)) {
            let (path, offset, node) = (got.path(), got.offset(), sender(got));
            found.lock().unwrap().push(format!("{path} {offset} by {node}, not {owner:?}"));
        }
        Reply::Status(204)
    });
    (server, faults)
}

#[test]
fn a_renewal_with_a_late_answer_starts_nothing() {
    let nodes = Nodes::new(LEASE);
    let (server, faults) = watching(&nodes);
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first], &server);
    // As after a pause of the whole process in a renewal.
    first.store.delay(LEASE * 3);
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < LEASE * 8 {
        second.say("at any time");
        count += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    first.store.delay(Duration::ZERO);
    assert_complete(&wait_all(&server, count), count);
    assert_eq!(*faults.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn nothing_is_lost_while_nodes_come_and_go() {
    let nodes = Nodes::new(LEASE);
    let (server, faults) = watching(&nodes);
    let stays = nodes.start(0);
    nodes.subscribe(&[&stays], &server);
    let mut count = 0;
    let mut say = |times: u64| {
        for _ in 0..times {
            stays.say("at any time");
            count += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        count
    };
    for round in 0..4 {
        let [kills, stops, stalls] = [0, 1, 2].map(|node| nodes.start(1 + 3 * round + node));
        say(60);
        stalls.store.cut(true);
        let killing = std::thread::spawn(move || kills.disappear());
        say(30);
        let stopping = std::thread::spawn(move || stops.hub.stop());
        say(30);
        stalls.store.cut(false);
        say(60);
        killing.join().unwrap();
        stopping.join().unwrap();
    }
    let last = say(10);
    assert_complete(&wait_all(&server, last), last);
    assert_eq!(*faults.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_node_that_returns_after_its_lease_moves_no_cursor() {
    let nodes = Nodes::new(LEASE);
    let (is_held, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (holds, ends) = (Arc::clone(&is_held), Arc::clone(&may_end));
    let server = Server::confirming(move |got| {
        // The first node's delivery is answered after its lease.
        if got.path() == "/0" && sender(got) == 0 && !ends.load(SeqCst) {
            holds.store(true, SeqCst);
            eventually("the end of the lease", || ends.load(SeqCst));
        }
        Reply::Status(204)
    });
    let first = nodes.start(0);
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    let targets = nodes.subscribe(&[&first], &server);
    let second = nodes.start(1);
    nodes.wait_shards(&second, SHARDS / 2);
    let held = targets[0].id;
    assert_eq!(nodes.shared.owner(held), Some(0));
    second.say("held");
    eventually("a delivery", || is_held.load(SeqCst));
    first.store.cut(true);
    nodes.wait_shards(&second, SHARDS);
    second.say("by the second");
    wait_all(&server, 2);
    let recorded = nodes.shared.recorded(0, held);
    may_end.store(true, SeqCst);
    std::thread::sleep(LEASE / 3);
    first.store.cut(false);
    // It joins as a new node, which gets the highest shards.
    nodes.wait_shards(&first, SHARDS / 2);
    second.say("after the return");
    assert_complete(&wait_all(&server, 3), 3);
    let cursor = |target: &Target| nodes.shared.hub().target(target.id).unwrap().unwrap().cursor;
    eventually("the cursors", || targets.iter().all(|target| cursor(target) == Offset(3)));
    assert_eq!(nodes.shared.recorded(0, held), recorded);
    assert_eq!(nodes.shared.owner(held), Some(1));
}

#[test]
fn a_new_node_gets_its_part_and_no_order_changes() {
    let nodes = Nodes::new(LEASE);
    let server = Server::confirming(|_| {
        std::thread::sleep(Duration::from_millis(3));
        Reply::Status(204)
    });
    let first = nodes.start(0);
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    nodes.subscribe(&[&first], &server);
    let mut second = None;
    for number in 0..60 {
        if number == 20 {
            second = Some(nodes.start(1));
        }
        first.say(&number.to_string());
        std::thread::sleep(Duration::from_millis(15));
    }
    let seen = wait_all(&server, 60);
    // Progress is recorded before shards move, so nothing is repeated.
    for number in 0..SUBSCRIPTIONS {
        assert_eq!(offsets(&seen, &format!("/{number}")), (1..=60).collect::<Vec<_>>());
    }
    let second = second.unwrap();
    nodes.wait_shards(&second, SHARDS / 2);
    assert!(seen.iter().any(|got| got.is_delivery() && sender(got) == 1));
}

#[test]
fn a_hanging_delivery_does_not_hold_a_shard_for_long() {
    let nodes = Nodes::new(LEASE);
    let hangs = Arc::new(AtomicUsize::new(0));
    let hung = Arc::clone(&hangs);
    let server = Server::confirming(move |got| {
        if sender(got) == 0 && got.offset() == 2 {
            hung.fetch_add(1, SeqCst);
            return Reply::Hang;
        }
        Reply::Status(204)
    });
    let first = nodes.start(0);
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    let targets = nodes.subscribe(&[&first], &server);
    first.say("taken");
    wait_all(&server, 1);
    first.say("not answered");
    eventually("the deliveries", || hangs.load(SeqCst) >= SUBSCRIPTIONS);
    let second = nodes.start(1);
    nodes.wait_shards(&second, SHARDS / 2);
    let moved = |target: &&Target| nodes.shared.owner(target.id) == Some(1);
    let moved: Vec<_> = targets.iter().filter(moved).map(|target| target.id).collect();
    assert!(!moved.is_empty());
    let taken = |id: TargetId| nodes.shared.hub().target(id).unwrap().unwrap().cursor == Offset(2);
    eventually("the deliveries of the second", || moved.iter().all(|id| taken(*id)));
}

#[test]
fn replays_and_ends_on_another_node_take_effect() {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let (first, second) = nodes.pair();
    let targets = nodes.subscribe(&[&first, &second], &server);
    for number in 0..3 {
        first.say(&number.to_string());
    }
    wait_all(&server, 3);
    let taken = |target: &Target| nodes.shared.hub().target(target.id).unwrap().unwrap().cursor;
    eventually("the progress", || targets.iter().all(|target| taken(target) == Offset(3)));
    for (number, target) in targets.iter().enumerate() {
        let (owner, other) = if nodes.shared.owner(target.id) == Some(0) {
            (&first, &second)
        } else {
            (&second, &first)
        };
        other.hub.replay(target.id, Offset(1)).unwrap().unwrap();
        let path = format!("/{number}");
        let seen = server.wait("the replay", |seen| offsets(seen, &path).len() >= 5);
        assert_eq!(offsets(&seen, &path), [1, 2, 3, 2, 3]);
        let before = owner.hub.metrics().targets;
        assert!(other.hub.end(target.id, None).unwrap());
        eventually("the end", || owner.hub.metrics().targets == before - 1);
    }
    first.say("to nobody");
    std::thread::sleep(LEASE);
    assert!(server.deliveries().iter().all(|got| got.offset() < 4));
}

#[test]
fn a_retry_on_another_node_is_at_once() {
    let nodes = Nodes::new(LEASE);
    let works = Arc::new(AtomicBool::new(false));
    let working = Arc::clone(&works);
    let server =
        Server::confirming(move |_| Reply::Status(if working.load(SeqCst) { 204 } else { 500 }));
    let mut slow = options();
    slow.retries.base = Duration::from_secs(3_600);
    slow.retries.most = Duration::from_secs(3_600);
    let first = nodes.start_with(0, slow.clone());
    let targets = nodes.subscribe(&[&first], &server);
    let second = nodes.start_with(1, slow);
    nodes.wait_shards(&second, SHARDS / 2);
    first.say("refused");
    let failed = |target: &Target| nodes.shared.hub().target(target.id).unwrap().unwrap().attempts;
    eventually("the failures", || targets.iter().all(|target| failed(target) > 0));
    works.store(true, SeqCst);
    for target in &targets {
        first.hub.attempt_now(target.id).unwrap().unwrap();
    }
    assert_complete(&wait_all(&server, 1), 1);
}

/// A topic on this machine that names the first node as its hub.
fn topic() -> Server {
    Server::new(|got| {
        let links = format!(
            "<http://{}{}>; rel=\"self\", <{HUB}/0>; rel=\"hub\"",
            got.header("host").unwrap(),
            got.path()
        );
        let headers = vec![("Content-Type", "text/plain".to_owned()), ("Link", links)];
        Reply::Full(200, headers, b"fetched".to_vec())
    })
}

#[test]
fn reported_topics_are_fetched_by_one_node() {
    let (nodes, topic, server) = (Nodes::new(LEASE), topic(), Server::willing());
    let mut open = options();
    open.allow_topics = vec![topic.url("/")];
    let first = nodes.start_with(0, open.clone());
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    let second = nodes.start_with(1, open);
    nodes.wait_shards(&second, SHARDS / 2);
    let url = topic.url("/t");
    let form = format!(
        "hub.mode=subscribe&hub.topic={}&hub.callback={}",
        encode(&url),
        encode(&server.url("/c"))
    );
    assert_eq!(second.form(&form).status, 202);
    let targets = || first.hub.metrics().targets + second.hub.metrics().targets;
    eventually("a subscription", || targets() == 1);
    let ping = format!("hub.mode=publish&hub.url={}", encode(&url));
    assert_eq!(second.form(&ping).status, 202);
    assert_eq!(server.wait_deliveries(1)[0].text(), "fetched");
    assert_eq!((first.hub.metrics().fetched, second.hub.metrics().fetched), (1, 0));
    // A report on the node that fetches is not fetched again when it comes back in the changes.
    assert_eq!(first.form(&ping).status, 202);
    eventually("another fetch", || first.hub.metrics().fetched == 2);
    std::thread::sleep(LEASE);
    assert_eq!(first.hub.metrics().fetched + second.hub.metrics().fetched, 2);
    // Another node takes this work over, with reports from before.
    first.store.cut(true);
    assert_eq!(second.form(&ping).status, 202);
    first.disappear();
    eventually("a fetch by the second", || second.hub.metrics().fetched > 0);
}

#[test]
fn a_stopped_node_hands_its_part_over_at_once() {
    let lease = Duration::from_secs(6);
    let (nodes, server) = (Nodes::new(lease), Server::willing());
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first, &second], &server);
    second.say("before");
    wait_all(&server, 1);
    first.hub.stop();
    let stopped = Instant::now();
    second.say("after");
    let seen = wait_all(&server, 2);
    assert!(stopped.elapsed() < lease / 2, "{:?}", stopped.elapsed());
    for number in 0..SUBSCRIPTIONS {
        assert_eq!(offsets(&seen, &format!("/{number}")), [1, 2], "nothing is repeated");
    }
}

#[test]
fn notifications_that_another_node_needs_are_not_dropped() {
    let nodes = Nodes::new(LEASE);
    let works = Arc::new(AtomicBool::new(false));
    let working = Arc::clone(&works);
    let server = Server::confirming(move |got| {
        Reply::Status(if sender(got) == 0 || working.load(SeqCst) { 204 } else { 500 })
    });
    let mut small = options();
    // Nearly full: only what targets need is retained.
    small.store_bytes = 1_000;
    small.retention_sweep = Duration::from_millis(10);
    let first = nodes.start_with(0, small.clone());
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    let second = nodes.start_with(1, small);
    nodes.wait_shards(&second, SHARDS / 2);
    nodes.subscribe(&[&first], &server);
    for _ in 0..9 {
        first.say(&"x".repeat(95));
    }
    eventually("failures", || second.hub.metrics().failed > 3);
    std::thread::sleep(LEASE);
    works.store(true, SeqCst);
    assert_complete(&wait_all(&server, 9), 9);
    let topic = nodes.shared.hub().find_topic(TOPIC).unwrap().unwrap();
    let stored = || nodes.shared.hub().read(topic, Offset(0), 100).unwrap().len();
    // All, or as many as make room.
    eventually("old notifications are dropped", || stored() < 9);
}

#[test]
fn event_streams_have_the_notifications_of_other_nodes() {
    let nodes = Nodes::new(LEASE);
    let (first, second) = nodes.pair();
    first.hub.own_topic(TOPIC).unwrap();
    let mut events = eventually_some("the topic", || second.hub.events(TOPIC, None).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    first.say("from the first");
    let event = runtime.block_on(events.next()).unwrap().unwrap();
    assert_eq!(&event.body[..], b"from the first");
}
