//! Nodes with different roles do the work of a Source together.

use super::PROGRAMS;
use super::nodes::{More, Nodes};
use crate::hub_nodes::subscribers::Subscribers;
use crate::world::{abreast, stop};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{eventually, provided, run};

#[test]
fn nodes_with_different_roles_work_together() {
    /// The node with each role; the last has two.
    const PUBLISH: usize = 0;
    const HUB: usize = 1;
    const API: usize = 2;
    let name = "serve_nodes::roles::nodes_with_different_roles_work_together";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let roles = Some(["publish", "hub", "watch,api"]);
    let started =
        Nodes::start_with(name, temporary.path(), &server, More { roles, ..More::default() });
    let Some(mut nodes) = started else { return };
    let client = nodes.client();
    let read = |number: usize, path: &str| {
        let (status, body) = client.ask(number, &format!("GET {path}"), "", "").unwrap();
        (status, body)
    };

    let subscribers = Subscribers::start(1, 1, 1);
    subscribers.be_good();
    let form = format!(
        "hub.mode=subscribe&hub.topic={}notes/notify/change&hub.callback={}&hub.secret=hidden",
        nodes.url(),
        subscribers.callback(0)
    );
    let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(client.ask(HUB, "POST /hub", headers, &form).unwrap().0, 202);
    let targets = "SELECT count(*) FROM abreast.targets";
    eventually("the subscription is verified", || server.sql("serve", targets) == "1");

    // One node records, another publishes, and another delivers.
    let record = "{\"uri\":\"http://elsewhere.example/one\"}\n";
    let recorded = client.ask(API, "POST /api/v1/sets/notes/changes", "", record).unwrap();
    assert_eq!(recorded.0, 200, "{}", recorded.1);
    eventually("the record is published", || {
        read(PUBLISH, "/notes/changelist.xml").1.contains("http://elsewhere.example/one")
    });
    eventually("the record is delivered", || {
        subscribers.messages().values().any(|text| text.contains("http://elsewhere.example/one"))
    });
    std::fs::write(nodes.papers().join("first.txt"), "first").unwrap();
    eventually("the file is published", || {
        read(PUBLISH, "/papers/r/first.txt") == (200, "first".to_owned())
    });

    // Work with a lease is that of one node, and deliveries are that of another one.
    assert_eq!(server.sql("serve", "SELECT DISTINCT node FROM abreast.leases"), API.to_string());
    let config = nodes.place.join("0.toml");
    let command = |name: &str| {
        let done = run(abreast().args([name, "--config"]).arg(&config));
        String::from_utf8(done.stdout).unwrap()
    };
    let status = command("status");
    for part in ["node 0 (publish): 0 of", "node 1 (hub): 1024 of", "node 2 (api, watch): 0 of"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    assert!(command("doctor").contains("ok   database.roles: each role has a running node"));

    for (request, answering) in [
        ("GET /", PUBLISH),
        ("GET /notes/resourcelist.xml", PUBLISH),
        ("GET /papers/r/first.txt", PUBLISH),
        ("GET /api/v1/sets", API),
        ("POST /api/v1/sets/notes/changes", API),
        ("GET /admin/", API),
        ("GET /hub", HUB),
        ("POST /hub", HUB),
    ] {
        for number in [PUBLISH, HUB, API] {
            let (status, body) = client.ask(number, request, "", "").unwrap();
            assert_eq!(
                status != 421,
                number == answering,
                "{request} at {number}: {status} {body}"
            );
            assert!(status != 421 || body.contains("does not have the role"), "{body}");
        }
    }
    for path in ["/livez", "/readyz", "/metrics", "/style.css"] {
        assert!([PUBLISH, HUB, API].iter().all(|node| read(*node, path).0 == 200), "{path}");
    }

    assert_eq!(nodes.running[HUB].take().map(stop), Some(Some(0)));
    for report in [command("status"), command("doctor")] {
        assert!(report.contains("no running node has the role `hub`"), "{report}");
    }
}
