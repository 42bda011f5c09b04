//! What one node knows, all nodes know: held deletions, requests, sessions, keys of requests.

use super::nodes::{CONTENTS, NODES, Nodes, send_signal};
use super::{PROGRAMS, all_changes};
use crate::world::abreast;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::s3::settings;
use abreast_testkit::{eventually, provided, run};
use std::time::{Duration, Instant};

#[test]
fn nodes_of_one_source_agree() {
    let name = "serve_nodes::agreement::nodes_of_one_source_agree";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    for (contents, more, expected) in [
        ("s3://bucket/other", None, "the other nodes have their contents in `s3://bucket/abreast`"),
        ("s3://missing/abreast", None, "cannot use the bucket `s3://missing/abreast`"),
        (CONTENTS, Some("--confirm-deletions"), "`--confirm-deletions`: this node may watch"),
    ] {
        let mut command = nodes.command(NODES, contents);
        let refused = run(command.args(["--listen", "127.0.0.1:0"]).args(more));
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && text.contains(expected), "{contents}: {text}");
    }

    // Two nodes of a machine need two folders.
    let second = run(nodes.command(0, CONTENTS).args(["--listen", "127.0.0.1:0"]));
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(second.status.code() == Some(10) && text.contains("its own `scratch`"), "{text}");
}

#[test]
fn held_deletions_are_shown_and_confirmed_at_any_node() {
    let name = "serve_nodes::agreement::held_deletions_are_shown_and_confirmed_at_any_node";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    // Most files are gone: the watching node holds their deletion, and all nodes show it.
    for number in 0..30 {
        std::fs::write(nodes.papers().join(format!("{number}")), "paper").unwrap();
    }
    let set = |number| -> serde_json::Value {
        serde_json::from_slice(&nodes.read(number, "/api/v1/sets/papers").1).unwrap()
    };
    let count = |number| {
        let set = set(number);
        (set["count"].as_u64().unwrap(), set["held_deletions"].as_u64().unwrap())
    };
    eventually("the files are recorded", || count(0) == (30, 0));
    let away = temporary.path().join("away");
    std::fs::rename(nodes.papers(), &away).unwrap();
    std::fs::create_dir(nodes.papers()).unwrap();
    eventually("all nodes show the held deletions", || (0..NODES).all(|n| count(n) == (30, 30)));
    for number in 0..NODES {
        let set = set(number);
        assert_eq!((&set["state"], set["held"].as_array().unwrap().len()), (&"held".into(), 20));
    }
    let config = nodes.place.join("0.toml");
    let status = run(abreast().args(["status", "--config"]).arg(&config));
    let status = String::from_utf8(status.stdout).unwrap();
    for part in ["held          30 deletions", "set papers: the deletion of 30 resources is held"] {
        assert!(status.contains(part), "{part}: {status}");
    }

    // Scans are requests to any node.
    let scans = |number| {
        let log = std::fs::read_to_string(nodes.place.join(format!("{number}.log"))).unwrap();
        log.matches("scanned folder=").count()
    };
    let watching = Nodes::holder(&server, "watch/papers");
    let others = || (0..NODES).filter(|number| *number != watching);
    for number in others() {
        let before = scans(watching);
        let (status, answer) =
            nodes.client().ask(number, "POST /api/v1/sets/papers/scan", "", "").unwrap();
        assert_eq!(status, 202, "{answer}");
        eventually("the watching node scans", || scans(watching) > before);
    }

    // A confirmation counts for the deletions that its node showed, and not for later ones.
    let other = others().next().unwrap();
    let confirm = || {
        let answer = nodes.client().ask(other, "POST /api/v1/sets/papers/deletions", "", "");
        answer.unwrap()
    };
    let (status, answer) = confirm();
    assert_eq!(status, 200, "{answer}");
    let confirmed: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&confirmed["count"], &confirmed["held_deletions"]), (&0.into(), &0.into()));
    eventually("the deletions are recorded", || (0..NODES).all(|number| count(number) == (0, 0)));
    let (status, answer) = confirm();
    assert!(status == 409 && answer.contains("no deletion of this set is held"), "{answer}");

    // Held deletions are judged again by the next node.
    for number in 0..30 {
        std::fs::write(nodes.papers().join(format!("new-{number}")), "paper").unwrap();
    }
    eventually("the files are recorded", || count(other) == (30, 0));
    std::fs::remove_dir_all(nodes.papers()).unwrap();
    std::fs::create_dir(nodes.papers()).unwrap();
    eventually("the deletions are held", || count(other) == (30, 30));
    let sql = "SELECT owner FROM abreast.leases WHERE name = 'watch/papers'";
    let owner = || server.sql("serve", sql).trim().to_owned();
    let before = owner();
    let killed = Nodes::holder(&server, "watch/papers");
    nodes.signal(killed, "-KILL");
    eventually(
        "another node watches",
        || !matches!(owner(), now if now == before || now.is_empty()),
    );
    let left = (0..NODES).find(|number| *number != killed).unwrap();
    eventually("it holds the deletions", || count(left) == (30, 30));
}

#[test]
fn sessions_of_administrators_are_valid_on_all_nodes() {
    let name = "serve_nodes::agreement::sessions_of_administrators_are_valid_on_all_nodes";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(mut nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    let origin = format!("Origin: http://{}\r\n", nodes.balancer.address);
    let post = |nodes: &Nodes, number, path: &str, cookie: &str, body: &str| {
        let headers = format!("{origin}{cookie}");
        nodes.client().exchange(number, &format!("POST /admin/{path}"), &headers, body).unwrap()
    };
    let is_signed_in = |nodes: &Nodes, number, cookie: &str| {
        nodes.client().ask(number, "GET /admin/", cookie, "").unwrap().0 == 200
    };
    let sign_in = |nodes: &Nodes, number| {
        let (status, head, body) =
            post(nodes, number, "sign-in", "", &format!("token={}", nodes.token));
        assert_eq!(status, 303, "{head}\n{body}");
        let cookie = head.split_once("set-cookie: ").unwrap().1.split_once(';').unwrap().0;
        format!("Cookie: {cookie}\r\n")
    };
    let cookie = sign_in(&nodes, 0);
    assert!((0..NODES).all(|number| is_signed_in(&nodes, number, &cookie)));
    assert!(!is_signed_in(&nodes, 0, "Cookie: abreast_admin_00000000=x\r\n"));
    // The session outlives the node that started it.
    drop(nodes.running[0].take());
    assert!((1..NODES).all(|number| is_signed_in(&nodes, number, &cookie)));
    let scan = post(&nodes, 1, "api/v1/sets/papers/scan", &cookie, "back=sets/papers");
    assert_eq!(scan.0, 303, "{}", scan.2);

    let other = sign_in(&nodes, 1);
    assert!(is_signed_in(&nodes, 2, &other));
    assert_eq!(post(&nodes, 2, "sign-out", &cookie, "").0, 303);
    let begin = Instant::now();
    eventually("the session ends on all nodes", || {
        (1..NODES).all(|number| !is_signed_in(&nodes, number, &cookie))
    });
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    assert!((1..NODES).all(|number| is_signed_in(&nodes, number, &other)));
}

#[test]
fn a_reused_idempotency_key_is_refused_by_all_nodes() {
    let name = "serve_nodes::agreement::a_reused_idempotency_key_is_refused_by_all_nodes";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    let post = |number, key: &str, name: &str| {
        let headers = format!("Content-Type: application/x-ndjson\r\nIdempotency-Key: {key}\r\n");
        let body = format!("{{\"uri\":\"http://elsewhere.example/{name}\"}}\n");
        nodes.client().ask(number, "POST /api/v1/sets/notes/changes", &headers, &body).unwrap()
    };
    for (node, key, body, expected) in [
        (0, "one", "a", (200, "\"recorded\":1")),
        (1, "one", "b", (422, "key-reused")),
        (2, "one", "a", (200, "\"recorded\":0")),
        (1, "one/0", "c", (200, "\"recorded\":1")),
        (2, "on", "d", (200, "\"recorded\":1")),
    ] {
        let (status, answer) = post(node, key, body);
        assert!(status == expected.0 && answer.contains(expected.1), "{key}: {status} {answer}");
    }
    let entity = |number, name: &str| {
        let request =
            format!("PUT /api/v1/sets/things/resource?uri=http%3A%2F%2Fexample.org%2Ft%2F{name}");
        let body = format!("<http://example.org/t/{name}> <http://example.org/p> \"x\" .\n");
        let headers = "Content-Type: text/turtle\r\nIdempotency-Key: entity\r\n";
        nodes.client().ask(number, &request, headers, &body).unwrap().0
    };
    assert_eq!([entity(0, "1"), entity(1, "2"), entity(2, "1")], [200, 422, 200]);
}

#[test]
fn commands_read_and_record_through_the_database() {
    let name = "serve_nodes::agreement::commands_read_and_record_through_the_database";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    let config = nodes.place.join("0.toml");
    let text = |args: &[&str], config: &[&str]| {
        let done = run(abreast().args(args).args(config));
        let (out, error) = (
            String::from_utf8(done.stdout).unwrap(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        );
        assert!(done.status.success(), "{args:?}: {error}");
        out
    };
    let by_config = ["--config", config.to_str().unwrap()];
    let by_url = ["--data", &*nodes.database];
    let lines = nodes.place.join("lines.ndjson");
    for (number, place) in [by_config, by_url].iter().enumerate() {
        std::fs::write(&lines, format!("{{\"uri\":\"http://elsewhere.example/{number}\"}}\n"))
            .unwrap();
        text(&["import", "notes", lines.to_str().unwrap()], place);
        let log = text(&["log", "notes"], place);
        assert_eq!(log.lines().count(), number + 1, "{log}");
        let sets = text(&["set", "list"], place);
        assert!(sets.contains("notes  ") && sets.contains("papers  "), "{sets}");
    }
    eventually("all nodes have the records", || {
        (0..NODES).all(|number| all_changes(&nodes, number).len() == 2)
    });
    let unknown = run(abreast().args(["import", "other", lines.to_str().unwrap()]).args(by_url));
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && error.contains("other"), "{error}");

    // The bucket is examined.
    let doctor = |contents: &str| {
        let _ = nodes.command(NODES, contents);
        let mut command = abreast();
        for (name, value) in settings(nodes.bucket.address()) {
            command.env(name.to_uppercase(), value);
        }
        let file = nodes.place.join(format!("{NODES}.toml"));
        let done = run(command.args(["doctor", "--config"]).arg(file));
        String::from_utf8(done.stdout).unwrap()
    };
    let report = doctor(CONTENTS);
    for part in ["ok   bucket: s3://bucket/abreast answers", "ok   bucket.address: "] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let report = doctor("s3://missing/abreast");
    for part in [
        "bad  bucket: s3://missing/abreast: cannot use",
        "help: create the bucket",
        "bad  bucket.address: ",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    send_signal(nodes.bucket.id(), "-STOP");
    let begin = Instant::now();
    let report = doctor(CONTENTS);
    assert!(report.contains("bad  bucket: "), "{report}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());

    // A silent bucket delays the first requests, and then none.
    std::fs::write(nodes.papers().join("first.txt"), "first").unwrap();
    send_signal(nodes.bucket.id(), "-CONT");
    eventually("the file is served", || nodes.read(1, "/papers/r/first.txt").0 == 200);
    send_signal(nodes.bucket.id(), "-STOP");
    let begin = Instant::now();
    assert_eq!(nodes.read(1, "/papers/r/first.txt").0, 503);
    assert!(begin.elapsed() < Duration::from_secs(14), "{:?}", begin.elapsed());
    let begin = Instant::now();
    for _ in 0..10 {
        assert_eq!(nodes.read(1, "/papers/r/first.txt").0, 503);
    }
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    let problem = nodes.client().ask(
        1,
        "PUT /api/v1/sets/things/resource?uri=http%3A%2F%2Fexample.org%2Ft%2F2",
        "Content-Type: text/turtle\r\n",
        "<http://example.org/t/2> <http://example.org/p> \"two\" .\n",
    );
    let (status, answer) = problem.unwrap();
    assert!(status == 503 && answer.contains("urn:abreast:problem:unavailable"), "{answer}");
    send_signal(nodes.bucket.id(), "-CONT");
    eventually("the file is served", || nodes.read(1, "/papers/r/first.txt").0 == 200);
}
