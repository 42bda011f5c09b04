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

#[test]
fn an_outage_has_a_line_at_its_start_and_at_its_end() {
    let name = "database_health::an_outage_has_a_line_at_its_start_and_at_its_end";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let mut server = Postgres::start(&programs);
    let node = Node::start(place.path(), "a", &server.create("hub"), "lease = \"3s\"");
    server.stop();
    eventually("the failure is logged", || node.log().contains("renewals of the lease"));
    // Several renewals fail.
    std::thread::sleep(Duration::from_secs(8));
    server.run();
    eventually("the end is logged", || node.log().matches("succeed again").count() == 2);
    eventually("the node is ready again", || node.readiness().0 == 200);
    let log = node.log();
    for work in ["renewals of the lease of this node", "reads of the changes of other nodes"] {
        for end in ["fail; further failures are not logged", "succeed again"] {
            assert_eq!(log.matches(&format!("{work} {end}")).count(), 1, "{work} {end}: {log}");
        }
    }
    let lines = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
    // Besides the two, the end of the lease has up to three lines.
    assert!(lines <= 5, "{log}");
}

#[test]
fn a_name_that_another_running_node_has_is_warned_of() {
    const WARNING: &str = "another running node has the name of this node";
    let name = "database_health::a_name_that_another_running_node_has_is_warned_of";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let other = place.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let server = Postgres::start(&programs);
    let url = server.create("hub");
    let killed = Node::start(place.path(), "a", &url, "lease = \"3s\"");
    killed.signal("-KILL");
    drop(killed);
    let first = Node::start(place.path(), "a", &url, "lease = \"3s\"");
    let leases = "SELECT count(*) FROM abreast.nodes";
    eventually("the lease of the killed node ends", || server.sql("hub", leases) == "1");
    assert!(!first.log().contains(WARNING), "{}", first.log());
    let second = Node::start(&other, "a", &url, "lease = \"3s\"");
    eventually("the second node warns", || second.log().contains(WARNING));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(second.log().matches(WARNING).count(), 1);
    assert!(!first.log().contains(WARNING), "{}", first.log());
}
