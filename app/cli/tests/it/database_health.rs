//! Probes of a node whose database does not answer, or accepts no changes.

use crate::database_node::Node;
use crate::world::get;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{eventually, provided};
use std::time::{Duration, Instant};

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const LIMIT: Duration = Duration::from_secs(3);

/// Status and text of an answer, which must arrive within the limit.
fn soon(node: &Node, path: &str) -> (u16, String) {
    let begun = Instant::now();
    let (status, body) = get(&node.address, path).expect("an answer");
    assert!(begun.elapsed() < LIMIT, "{path} took {:?}", begun.elapsed());
    (status, String::from_utf8(body).unwrap())
}

#[test]
fn probes_answer_in_time_while_the_database_hangs() {
    let name = "database_health::probes_answer_in_time_while_the_database_hangs";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let node = Node::start(place.path(), "a", &server.create("hub"), "lease = \"30s\"");
    assert!(soon(&node, "/metrics").1.contains("\nabreast_hub_stored_bytes 0\n"));
    server.suspend();
    let (status, text) = soon(&node, "/readyz");
    assert_eq!(status, 503);
    assert!(text.contains("the store has not answered for 2500 ms"), "{text}");
    for _ in 0..3 {
        assert_eq!(soon(&node, "/readyz").0, 503);
        let (status, text) = soon(&node, "/metrics");
        assert_eq!(status, 200);
        assert!(text.contains("\nabreast_hub_since_renewal_seconds "), "{text}");
    }
    server.resume();
    eventually("the node is ready again", || node.readiness().0 == 200);
}

#[test]
fn a_node_that_cannot_renew_its_lease_is_not_ready() {
    let name = "database_health::a_node_that_cannot_renew_its_lease_is_not_ready";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let node = Node::start(place.path(), "a", &server.create("hub"), "lease = \"3s\"");
    // The database can be read, and not be changed.
    server.set("default_transaction_read_only", "on");
    eventually("the node is not ready", || node.readiness().0 == 503);
    eventually("the reason is shown", || node.readiness().1.contains("read-only"));
    server.set("default_transaction_read_only", "off");
    eventually("the node is ready again", || node.readiness().0 == 200);
}
