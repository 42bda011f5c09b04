//! The network of a node is cut, that of two nodes, and that of the database and the bucket.

use super::copies::Copy;
use super::load::{write_files, write_records, write_statements};
use super::nodes::{LEASE, More, NODES, Nodes};
use super::{PROGRAMS, SetOnDrop, all_changes, check_records, eventually_within};
use crate::hub_nodes::subscribers::Subscribers;
use crate::world::stop;
use abreast_testkit::network::{End, Network};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{Random, kills, provided, seed};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Faults, of each kind one.
const FAULTS: u64 = 4;
const WRITERS: usize = 2;
/// How long the others may take to record a change after a node was cut off: the database ends the
/// transaction of that node after 10 s.
const CONTINUED: Duration = Duration::from_secs(15);
/// How long another node may take to record a changed file: a lease, and the same.
const WATCHED: Duration = Duration::from_secs(LEASE + 15);
/// The machine of the database and the bucket.
const SERVICES: usize = NODES;

#[test]
fn nodes_continue_while_the_network_of_others_is_cut() {
    let name = "serve_nodes::partitions::nodes_continue_while_the_network_of_others_is_cut";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let Some(network) = Network::start(name, NODES as u8 + 1) else { return };
    let (faults, seed) = (kills(FAULTS), seed(1));
    let mut random = Random::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start_at(&programs, network.place(SERVICES));
    let more = More { network: Some((&network, SERVICES)), ..More::default() };
    let Some(mut nodes) = Nodes::start_with(name, temporary.path(), &server, more) else { return };
    let (papers, people) = (nodes.papers(), nodes.people());
    std::fs::write(papers.join("first.txt"), "first").unwrap();
    let copies = Copy::start_all(temporary.path(), &nodes.url(), None);
    // Hooks of the hub are on this machine, which the nodes do not reach.
    let subscribers = Subscribers::start(0, 1, seed);
    let stopping = AtomicBool::new(false);
    let accepted: Vec<String> = std::thread::scope(|scope| {
        let _stop = SetOnDrop(&stopping);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, stopping, subscribers) = (nodes.client(), &stopping, &subscribers);
                scope.spawn(move || write_records(&client, (writer, 1), subscribers, stopping))
            })
            .collect();
        scope.spawn(|| write_files(&papers, &stopping));
        scope.spawn(|| write_statements(&people, &stopping));
        for fault in 0..faults {
            sleep(Duration::from_millis(500 + random.below(1_000)));
            // The node whose lease others must take over, and the next one.
            let holder = Nodes::holder(&server, "watch/papers");
            let end = match fault % FAULTS {
                0 => End::Bridge,
                1 => End::Machine,
                _ => [End::Bridge, End::Machine][random.below(2) as usize],
            };
            let cut = match fault % FAULTS {
                0 | 1 => vec![holder],
                2 => vec![holder, (holder + 1) % NODES],
                _ => vec![SERVICES],
            };
            set_links(&network, &cut, end, true);
            let begin = Instant::now();
            if cut != [SERVICES] {
                let left = (0..NODES).find(|node| !cut.contains(node)).unwrap();
                others_continue(&nodes, &server, (left, holder), fault);
            }
            let least = Duration::from_secs(2 * LEASE);
            sleep(least.saturating_sub(begin.elapsed()));
            set_links(&network, &cut, end, false);
            (0..NODES).for_each(|number| nodes.until_ready(number));
            println!(
                "fault {fault}, machines {cut:?}, {end:?}: {:.1} s",
                begin.elapsed().as_secs_f64()
            );
        }
        stopping.store(true, SeqCst);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    for copy in &copies {
        eventually_within(&format!("the copy `{}` is equal", copy.name), || copy.is_equal());
    }
    // Records of `others_continue` are in the log, too.
    let mut expected = accepted;
    expected.extend((0..faults).filter(|fault| fault % FAULTS != 3).map(mark));
    check_records(&nodes, &expected);
    println!("{faults} faults of the network (seed {seed}): {} records", expected.len());
    for path in super::DOCUMENTS {
        eventually_within(path, || nodes.are_equal(path));
    }
    drop(copies);
    for node in nodes.running.drain(..) {
        assert_eq!(stop(node.unwrap()), Some(0));
    }
}

/// Cuts the links of machines, or repairs the links.
fn set_links(network: &Network, machines: &[usize], end: End, is_cut: bool) {
    for machine in machines {
        network.cut(*machine, end, is_cut);
    }
}

/// The record of a fault.
fn mark(fault: u64) -> String {
    format!("http://elsewhere.example/fault/{fault}")
}

/// A node that is not cut off records what a client sends, and takes over the watch of the folder.
fn others_continue(nodes: &Nodes, server: &Postgres, (left, holder): (usize, usize), fault: u64) {
    let begin = Instant::now();
    let body = format!("{{\"uri\":\"{}\",\"change\":\"created\"}}\n", mark(fault));
    let headers =
        format!("Content-Type: application/x-ndjson\r\nIdempotency-Key: fault-{fault}\r\n");
    let client = nodes.client();
    let is_recorded = || {
        let answer = client.ask(left, "POST /api/v1/sets/notes/changes", &headers, &body);
        matches!(answer, Some((200, _)))
    };
    while !is_recorded() {
        assert!(begin.elapsed() < CONTINUED, "fault {fault}: node {left} does not record");
        sleep(Duration::from_millis(100));
    }
    assert!(all_changes(nodes, left).iter().any(|(_, uri)| *uri == mark(fault)));
    let path = format!("fault-{fault}.txt");
    std::fs::write(nodes.papers().join(&path), "written during a fault").unwrap();
    let served = format!("/papers/r/{path}");
    while nodes.read(left, &served).0 != 200 {
        assert!(begin.elapsed() < WATCHED, "fault {fault}: nobody watches the folder");
        sleep(Duration::from_millis(100));
    }
    assert_ne!(Nodes::holder(server, "watch/papers"), holder, "fault {fault}");
}
