//! `status` and `doctor` describe a database and the nodes that share it.

use crate::database_node::Node;
use crate::status::assert_schema;
use crate::world::{abreast, stop};
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{provided, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";

/// The store in the report of `status` with these arguments.
fn store(words: &[&str], code: i32) -> Value {
    let answer = run(abreast().arg("status").args(words).arg("--json"));
    let text = String::from_utf8_lossy(&answer.stdout);
    let error = String::from_utf8_lossy(&answer.stderr);
    assert_eq!(answer.status.code(), Some(code), "{words:?}: {text}{error}");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_schema(&report);
    report["stores"][0].clone()
}

/// The results of `doctor` about the database: by their code, whether each is good, and its text.
fn results(config: &Path) -> BTreeMap<String, (bool, String)> {
    let answer = run(abreast()
        .args(["doctor", "--json", "--listen", "127.0.0.1:0", "--config"])
        .arg(config));
    let text = String::from_utf8(answer.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of = |line: Value| {
        let text = format!("{} {}", line["message"], line["help"]);
        (line["code"].as_str().unwrap().to_owned(), (line["ok"].as_bool().unwrap(), text))
    };
    lines.map(of).filter(|(code, _)| code.starts_with("database")).collect()
}

fn bad(config: &Path) -> Vec<String> {
    results(config).into_iter().filter(|(_, (ok, _))| !ok).map(|(code, _)| code).collect()
}

#[test]
fn status_and_doctor_describe_a_database_and_its_nodes() {
    let name = "database_status::status_and_doctor_describe_a_database_and_its_nodes";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    // The server of tests runs without it.
    let is_synced = server.sql("postgres", "SHOW fsync") == "on";
    assert!(!is_synced);
    let url = server.create("hub");
    let config = Node::configure(place.path(), "a", &url, "");
    let file = config.to_str().unwrap();
    let empty = store(&["--config", file], 0);
    assert_eq!((&empty["state"], &empty["hub"]), (&"stopped".into(), &Value::Null));
    assert_eq!(empty["database"]["tables"], serde_json::json!([]));
    assert_eq!(server.sql("hub", "SELECT to_regclass('abreast.schemas') IS NULL"), "t");
    let nodes = ["a", "b"].map(|name| Node::start(place.path(), name, &url, "lease = \"3s\""));
    // The folder of `scratch` is not needed.
    let config = Node::configure(place.path(), "c", &url, "");
    let file = config.to_str().unwrap();
    let found = store(&["--config", file], 0);
    assert_eq!((&found["state"], &found["hub"]["targets"]), (&"serving".into(), &0.into()));
    let database = &found["database"];
    assert_eq!(database["reachable"], true);
    assert!(database["version_number"].as_i64().unwrap() >= 150_000, "{database}");
    assert!(database["clock_difference_ms"].as_i64().unwrap().abs() < 1_000, "{database}");
    assert_eq!(
        database["tables"],
        serde_json::json!([{"part": "store", "version": database["newest_tables"]}])
    );
    let names: Vec<_> =
        database["nodes"].as_array().unwrap().iter().map(|node| &node["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(store(&[&url], 0)["database"]["nodes"].as_array().unwrap().len(), 2);
    let shown = run(abreast().args(["status", "--config", file]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("node a (publish, api, hub, watch): ") && shown.contains("PostgreSQL 1"),
        "{shown}"
    );
    assert!(!place.path().join("scratch-c").exists());

    assert_eq!(bad(&config), ["database.fsync"], "{:?}", results(&config));
    server.set("synchronous_commit", "off");
    server.set("default_transaction_read_only", "on");
    assert_eq!(bad(&config), ["database.changes", "database.commit", "database.fsync"]);
    let read_only = store(&["--config", file], 3);
    assert_eq!(read_only["attention"][0]["message"], "the database accepts no changes");
    server.set("default_transaction_read_only", "off");
    for node in nodes {
        assert_eq!(stop(node.running), Some(0));
    }
    server.sql("hub", "INSERT INTO abreast.nodes SELECT n, 'same', 0, 9000000000000000 FROM generate_series(1, 2) AS n");
    let (is_good, text) = results(&config)["database.nodes"].clone();
    assert!(!is_good && text.contains("2 nodes have the name `same`"), "{text}");
    server.sql("hub", "UPDATE abreast.schemas SET version = 99");
    assert!(bad(&config).contains(&"database.tables".to_owned()));
    assert_eq!(store(&["--config", file], 3)["state"], "stopped");
}

#[test]
fn a_database_that_does_not_answer_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let url = format!("postgres://abreast:hidden-word@{}/hub", unused_address());
    let config = Node::configure(place.path(), "a", &url, "");
    let found = store(&["--config", config.to_str().unwrap()], 3);
    assert_eq!(
        (&found["state"], &found["database"]["reachable"]),
        (&"unreachable".into(), &false.into())
    );
    let message = found["attention"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("Connection refused") && !message.contains("hidden-word"),
        "{message}"
    );
    let results = results(&config);
    assert!(!results["database"].0 && results.len() == 1, "{results:?}");
    assert!(results["database"].1.contains("try again later"), "{results:?}");
    // A server that accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://abreast@{}/hub", silent.local_addr().unwrap());
    let found = store(&[&url, "--timeout", "1s"], 3);
    assert_eq!(found["attention"][0]["message"], "the database has not answered for 1 s");
}
