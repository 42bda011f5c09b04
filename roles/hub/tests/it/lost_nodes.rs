//! Hubs that share a store and disappear, stop, or cannot renew their lease.

use crate::node_bed::{LEASE, Nodes, SUBSCRIPTIONS, assert_complete, offsets, sender, wait_all};
use crate::server::{Delivery as _, Reply, Server};
use crate::shared::{SHARDS, Shared};
use abreast_core::hub::{HubStore as _, NewTarget, Target, TargetId};
use abreast_core::{Offset, TopicId};
use abreast_testkit::eventually;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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

#[test]
fn a_node_that_records_no_progress_delivers_little_more() {
    let nodes = Nodes::new(Duration::from_secs(20));
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&times);
    let server = Server::confirming(move |_| {
        log.lock().unwrap().push(Instant::now());
        Reply::Status(204)
    });
    let only = nodes.start(0);
    nodes.wait_shards(&only, SHARDS);
    nodes.subscribe(&[&only], &server);
    only.say("before");
    wait_all(&server, 1);
    only.store.cut(true);
    let (cut, mut count) = (Instant::now(), 1);
    while cut.elapsed() < Duration::from_secs(3) {
        only.say("while the store records no progress");
        count += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    // The lease is long: without the limit, deliveries would continue for 10 s.
    let last = *times.lock().unwrap().iter().max().unwrap();
    let last = last.saturating_duration_since(cut);
    assert!(last < Duration::from_millis(1_500), "{last:?}");
    only.store.cut(false);
    assert_complete(&wait_all(&server, count), count);
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
fn a_notification_that_is_read_too_late_is_not_sent() {
    let nodes = Nodes::new(LEASE);
    let (server, faults) = watching(&nodes);
    let (first, second) = nodes.pair();
    nodes.subscribe(&[&first], &server);
    // The delivery starts in time, and its request would be after the lease.
    first.store.delay_reads(LEASE * 2);
    second.say("read slowly");
    std::thread::sleep(LEASE / 5);
    first.store.cut(true);
    assert_complete(&wait_all(&server, 1), 1);
    std::thread::sleep(LEASE * 2);
    assert_eq!(*faults.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn all_targets_are_loaded_again_after_the_store_lost_changes() {
    load_again_after(|shared, _| shared.lose_changes());
}

#[test]
fn lost_changes_are_found_although_others_recorded_more() {
    load_again_after(Shared::replace_changes);
}

/// Checks that a node finds a target of which it read no change, after this fault of the store.
fn load_again_after(fault: impl FnOnce(&Shared, TopicId)) {
    let (nodes, server) = (Nodes::new(LEASE), Server::willing());
    let node = nodes.start(0);
    let known = nodes.subscribe(&[&node], &server).remove(0);
    let address = server.url("/new");
    let (topic, kind) = (known.topic, known.kind);
    let lease_until = known.lease_until;
    let new = NewTarget { topic, kind, address, secret: None, lease_until, cursor: None };
    nodes.shared.hub().put_target(new).unwrap();
    fault(&nodes.shared, topic);
    eventually("the target", || node.hub.metrics().targets == SUBSCRIPTIONS as u64 + 1);
    node.say("to all");
    server.wait("the new target", |seen| offsets(seen, "/new") == [1]);
    assert_complete(&wait_all(&server, 1), 1);
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
