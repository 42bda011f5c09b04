//! What fails while nodes work, and how it is repaired.

use super::nodes::{LEASE, NODES, Nodes, send_signal};
use crate::world::stop;
use abreast_testkit::Random;
use abreast_testkit::postgres::Postgres;
use std::thread::sleep;
use std::time::Duration;

/// The kinds of faults.
pub(super) const KINDS: u64 = 6;

/// A fault of this kind, and its repair.
pub(super) fn fail(nodes: &mut Nodes, server: &mut Postgres, kind: u64, random: &mut Random) {
    let node = random.below(NODES as u64) as usize;
    let beyond_the_lease = Duration::from_secs(2 * LEASE);
    match kind % KINDS {
        0 => {
            drop(nodes.running[node].take());
            sleep(Duration::from_millis(500));
            nodes.run(node);
        }
        1 => {
            nodes.signal(node, "-STOP");
            sleep(beyond_the_lease);
            nodes.signal(node, "-CONT");
        }
        2 => server.crash(),
        3 => {
            let bucket = nodes.bucket.id();
            send_signal(bucket, "-STOP");
            sleep(Duration::from_secs(2));
            send_signal(bucket, "-CONT");
        }
        // The network between a node and the database.
        4 => {
            nodes.relays[node].cut(true);
            sleep(beyond_the_lease);
            nodes.relays[node].cut(false);
        }
        // An upgrade of one node after the other.
        _ => {
            for node in 0..NODES {
                assert_eq!(nodes.running[node].take().map(stop), Some(Some(0)), "node {node}");
                nodes.is_upgraded[node] = true;
                nodes.run(node);
                nodes.until_ready(node);
            }
        }
    }
}
