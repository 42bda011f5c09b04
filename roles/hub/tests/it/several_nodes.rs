//! Hubs that divide the targets of one store, and join.

use crate::bed::{HUB, TOPIC, options};
use crate::node_bed::{LEASE, Nodes, SUBSCRIPTIONS, assert_complete, offsets, sender, wait_all};
use crate::server::{Delivery as _, Reply, Server, encode};
use crate::shared::SHARDS;
use abreast_core::hub::{HubStore as _, Target, TargetId};
use abreast_core::{Offset, TopicLog as _};
use abreast_hub::{Hub, NoPayloads};
use abreast_testkit::{eventually, eventually_some};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

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
fn a_node_starts_while_the_store_is_away_for_a_moment() {
    let nodes = Nodes::new(LEASE);
    let store = nodes.shared.node(0);
    store.cut(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            store.cut(false);
        });
        let hub = Hub::start(options(), Arc::clone(&store) as _, Arc::new(NoPayloads)).unwrap();
        eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
        drop(hub);
    });
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
fn a_new_node_gets_its_part_and_no_order_changes() {
    // No node loses its lease, also on a busy machine.
    let nodes = Nodes::new(Duration::from_secs(6));
    let server = Server::confirming(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Reply::Status(204)
    });
    let first = nodes.start(0);
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    nodes.subscribe(&[&first], &server);
    let mut said = 0;
    let mut say = |number: u64| {
        for _ in 0..number {
            first.say("at any time");
            std::thread::sleep(Duration::from_millis(15));
        }
        said += number;
    };
    say(20);
    let second = nodes.start(1);
    eventually("a part of the shards", || {
        say(1);
        nodes.shared.shards_of(1) == SHARDS / 2
    });
    say(20);
    let seen = wait_all(&server, said);
    // Progress is recorded before shards move, so nothing is repeated.
    for number in 0..SUBSCRIPTIONS {
        assert_eq!(offsets(&seen, &format!("/{number}")), (1..=said).collect::<Vec<_>>());
    }
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

#[test]
fn a_publication_while_shards_are_loaded_is_delivered() {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let first = nodes.start(0);
    eventually("all shards", || nodes.shared.shards_of(0) == SHARDS);
    nodes.subscribe(&[&first], &server);
    let second = nodes.start(1);
    second.store.delay_loads(Duration::from_millis(100));
    for number in 1..=100 {
        second.say(&format!("{number}"));
        std::thread::sleep(Duration::from_millis(10));
    }
    let seen = wait_all(&server, 100);
    assert_complete(&seen, 100);
    assert!(second.hub.metrics().targets > 0);
}
