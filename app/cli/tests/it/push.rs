//! A Source with its hub, and hubs alone: subscribers are notified of every change, in order, over
//! restarts and kills.

use crate::world::{Source, abreast, stop};
use abreast_resourcesync::v1_1::Document;
use abreast_testkit::http::{Server, send};
use abreast_testkit::{Running, eventually, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A subscriber's callback: confirms what it is asked, and keeps what comes.
struct Callback {
    server: Server,
    /// Bodies by offset; a repeat must be the same.
    got: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
}

impl Callback {
    fn new() -> Self {
        let got = Arc::<Mutex<BTreeMap<u64, Vec<u8>>>>::default();
        let kept = Arc::clone(&got);
        let server = Server::new(move |request, stream| {
            let challenge = request
                .target()
                .split(['?', '&'])
                .find_map(|part| part.strip_prefix("hub.challenge="));
            if challenge.is_none() {
                let offset =
                    request.header("abreast-offset").map_or(0, |offset| offset.parse().unwrap());
                let before = kept.lock().unwrap().insert(offset, request.body.clone());
                assert!(before.is_none_or(|before| before == request.body), "a repeat is the same");
            }
            send(stream, "200 OK", "", challenge.unwrap_or_default().as_bytes())
        });
        Self { server, got }
    }

    fn url(&self) -> String {
        self.server.url("/callback")
    }

    /// Everything so far: without gaps, each notification beginning where the one before ended.
    fn changes(&self) -> Vec<(String, String)> {
        let got = self.got.lock().unwrap();
        let offsets: Vec<u64> = got.keys().copied().collect();
        assert_eq!(offsets, (1..=offsets.len() as u64).collect::<Vec<_>>(), "nothing is missing");
        let (mut until, mut changes) = (None, Vec::new());
        for body in got.values() {
            let document = Document::from_slice(body).unwrap();
            if until.is_some() {
                assert_eq!(document.head.from, until, "where the one before ended");
            }
            until = document.head.until;
            for entry in document.entries {
                let name = entry.loc.rsplit('/').next().unwrap().to_owned();
                changes.push((name, entry.change.unwrap().token().to_owned()));
            }
        }
        changes
    }

    fn names(&self) -> Vec<String> {
        self.changes().into_iter().map(|(name, _)| name).collect()
    }
}

/// A file that is there at once, so that it is one change.
fn put(folder: &Path, name: &str) {
    fs::write(folder.join(".new"), "x").unwrap();
    fs::rename(folder.join(".new"), folder.join(name)).unwrap();
}

fn post(address: &str, headers: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /hub HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line[9..12].parse().unwrap()
}

fn encode(url: &str) -> String {
    url.replace(':', "%3A").replace('/', "%2F")
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn subscribe(source: &Source, callback: &Callback) {
    let topic = encode(&format!("{}set/notify/change", source.url()));
    let body =
        format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={}", encode(&callback.url()));
    assert_eq!(post(&source.address, FORM, &body), 202);
    let asked = format!("/hub?callback={}", encode(&callback.url()));
    eventually("the subscription counts", || source.get(&asked).is_some());
}

#[test]
fn subscribers_get_each_change_once_over_restarts_and_kills() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("before"), "x").unwrap();
    let mut source = Source::start(folder, 0, &[]);
    let port = source.port();
    let callback = Callback::new();
    subscribe(&source, &callback);
    let mut expected = Vec::new();
    for round in 0..4 {
        for number in 0..20 {
            let name = format!("r{round}-{number:02}");
            put(folder, &name);
            expected.push(name);
        }
        if round % 2 == 0 {
            eventually("some arrive", || callback.names().len() > round * 20);
            source.kill();
        } else {
            assert_eq!(source.stop(), Some(0));
        }
        // While nobody looks.
        let name = format!("r{round}-away");
        put(folder, &name);
        expected.push(name);
        source = Source::start(folder, port, &[]);
    }
    eventually("all arrive", || callback.names().len() >= expected.len());
    let mut names = callback.names();
    names.sort();
    expected.sort();
    assert_eq!(names, expected, "each change once");
    fs::remove_file(folder.join("before")).unwrap();
    eventually("the deletion arrives", || {
        callback.changes().last() == Some(&("before".into(), "deleted".into()))
    });
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn follower_of_the_stream_resumes() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let source = Source::start(folder, 0, &[]);
    let port = source.port();
    let mut command = abreast();
    command
        .args(["subscribe", &source.url(), "--from", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = Running(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut printed = Vec::new();
    let mut next = |name: &str| {
        let line = lines.next().unwrap();
        printed.push(line["offset"].as_u64().unwrap());
        assert!(line["changes"][0]["uri"].as_str().unwrap().ends_with(name), "{line}");
    };
    put(folder, "one");
    next("one");
    assert_eq!(source.stop(), Some(0));
    put(folder, "two");
    let source = Source::start(folder, port, &[]);
    next("two");
    put(folder, "three");
    next("three");
    assert_eq!(printed, [1, 2, 3]);
    let url = format!("{}set/capabilitylist.xml", source.url());
    let rest = run(abreast().args(["subscribe", &url, "--from", "2", "--limit", "1"]));
    assert_eq!(rest.status.code(), Some(0));
    assert_eq!(serde_json::from_slice::<Value>(&rest.stdout).unwrap()["offset"], 3);
    let over = run(abreast().args(["subscribe", &url, "--framework", "--max-time", "100ms"]));
    assert_eq!(over.status.code(), Some(8));
    let wrong = run(abreast().args(["subscribe", "ftp://example.org/"]));
    assert_eq!(wrong.status.code(), Some(2));
}

/// `abreast hub`, listening.
fn hub(data: &str, more: &[&str]) -> (Running, String) {
    let mut command = abreast();
    started_hub(command.args(["hub", "--listen", "127.0.0.1:0", "--data", data]).args(more))
}

/// Starts a hub by a command; returns its address, too.
pub(crate) fn started_hub(command: &mut Command) -> (Running, String) {
    let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| {
            Some(line.trim().strip_prefix("listening on")?.trim().trim_end_matches('/').to_owned())
        })
        .expect("it tells where it listens");
    (child, address.trim_start_matches("http://").to_owned())
}

#[test]
fn standalone_hub_accepts_foreign_topics_and_is_inspected() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("hub");
    std::fs::create_dir(&data).unwrap();
    let data = data.to_str().unwrap();
    let token =
        run(abreast().args(["token", "create", "--name", "a", "--scope", "admin", "--data", data]));
    let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
    let (child, address) = hub(data, &[]);
    let say = |text: &str| {
        let topic = "Link: <https://museum.example/topic>; rel=\"self\"\r\n";
        let headers =
            format!("Content-Type: text/plain\r\nAuthorization: Bearer {token}\r\n{topic}");
        assert_eq!(post(&address, &headers, text), 200);
    };
    say("one");
    say("two");
    let callback = Callback::new();
    let topic = encode("https://museum.example/topic");
    let form =
        format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={}", encode(&callback.url()));
    assert_eq!(post(&address, FORM, &form), 202);
    let server = format!("http://{address}/");
    let look = |words: &[&str], place: &[&str], code: i32| {
        let output = run(abreast()
            .arg("hub")
            .args(words)
            .args(place)
            .args(["--json"])
            .env("ABREAST_TOKEN", &token));
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?} {problem}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let of_server = ["--server", server.as_str()];
    assert_eq!(look(&["topics"], &of_server, 0)[0]["head"], 2);
    eventually("the subscription counts", || look(&["targets"], &of_server, 0).len() == 1);
    let target =
        look(&["targets", "https://museum.example/topic"], &of_server, 0)[0]["id"].to_string();
    look(&["targets", "https://museum.example/other"], &of_server, 2);
    assert!(callback.got.lock().unwrap().is_empty(), "a new subscriber gets only what comes later");
    look(&["replay", &target, "--after", "0"], &of_server, 0);
    eventually("both come", || callback.got.lock().unwrap().len() == 2);
    eventually("that is recorded", || {
        look(&["attempts", &target], &of_server, 0)[0]["cursor"] == 2
    });
    let of_store = ["--data", data];
    look(&["topics"], &of_store, 10);
    let second = run(abreast().args(["hub", "--listen", "127.0.0.1:0", "--data", data]));
    assert_eq!(second.status.code(), Some(10), "one server a store");
    let config = place.path().join("hub.toml");
    for (hub, code) in [
        ("allow_topics = [\"https://museum.example/\"]", 0),
        ("lease = \"1s\"", 2),
        ("hubs = [\"http://x/\"]", 2),
    ] {
        fs::write(&config, format!("data = {data:?}\n[hub]\n{hub}\n")).unwrap();
        assert_eq!(
            run(abreast().args(["config", "check"]).arg(&config)).status.code(),
            Some(code),
            "{hub}"
        );
    }
    assert_eq!(stop(child), Some(0));
    assert_eq!(look(&["topics"], &of_store, 0)[0]["head"], 2);
    assert_eq!(look(&["attempts", &target], &of_store, 0)[0]["cursor"], 2);
    assert_eq!(look(&["replay", &target, "--after", "1"], &of_store, 0)[0]["cursor"], 1);
    look(&["end", &target], &of_store, 0);
    assert!(look(&["targets"], &of_store, 0).is_empty());
    look(&["end", &target], &of_store, 1);
}

#[test]
fn callbacks_are_not_written_to_the_log() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let mut command = abreast();
    command.args([
        "hub",
        "--listen",
        "127.0.0.1:0",
        "--allow-topic",
        "https://museum.example/",
        "--data",
    ]);
    command
        .arg(place.path().join("hub"))
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log).unwrap());
    let mut child = Running(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        Some(
            line.trim()
                .strip_prefix("listening on    http://")
                .or(line.trim().strip_prefix("listening on   http://"))?
                .trim_end_matches('/')
                .to_owned(),
        )
    });
    let address = address.expect("it prints where it listens");
    let callback = Callback::new();
    let ask = |mode: &str, callback: &str| {
        let topic = encode("https://museum.example/topic");
        let form = format!("hub.mode={mode}&hub.topic={topic}&hub.callback={}", encode(callback));
        assert_eq!(post(&address, FORM, &form), 202);
    };
    let said = |text: &str| eventually(text, || fs::read_to_string(&log).unwrap().contains(text));
    let unguessable = format!("{}/unguessable", callback.url());
    ask("subscribe", &unguessable);
    said("subscribed");
    ask("unsubscribe", &unguessable);
    said("unsubscribed");
    ask("subscribe", "http://127.0.0.1:9/unguessable");
    said("not confirmed");
    let log = fs::read_to_string(&log).unwrap();
    assert!(!log.contains("unguessable") && log.contains("127.0.0.1"), "{log}");
}

/// A Source with these sets and hubs.
fn config(place: &Path, sets: &[&str], hub: &str) -> String {
    use std::fmt::Write as _;
    let data = place.join("data");
    let mut text =
        format!("data = \"{}\"\n[hub]\n{hub}\n[notify]\ndebounce = \"10ms\"\n", data.display());
    for set in sets {
        let folder = place.join(set);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), "x").unwrap();
        writeln!(text, "[[set]]\nname = \"{set}\"\nfolder = \"{}\"", folder.display()).unwrap();
    }
    let path = place.join("abreast.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_end_of_a_removed_set_passes_a_hub_that_verifies() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("hub");
    // It takes no stranger's word: each topic is fetched and must name this hub.
    let (child, other) = hub(data.to_str().unwrap(), &["--open"]);
    let hubs = format!("hubs = [\"http://{other}/hub\"]");
    let source = Source::start_config(&config(place.path(), &["kept", "gone"], &hubs));
    let (port, url) = (source.port(), source.url());
    let last = |set: &str| {
        let topic = encode(&format!("{url}{set}/notify/framework"));
        let mut stream = TcpStream::connect(&other).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
        write!(
            stream,
            "GET /hub/events?topic={topic} HTTP/1.1\r\nHost: h\r\nLast-Event-ID: 0\r\n\r\n"
        )
        .unwrap();
        let (mut text, mut part) = (Vec::new(), [0; 4_096]);
        // Everything that was published so far comes at once.
        while let Ok(read @ 1..) = stream.read(&mut part) {
            text.extend_from_slice(&part[..read]);
            if String::from_utf8_lossy(&text).contains("change=\"deleted\"") {
                break;
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    eventually("both sets are known there", || {
        ["kept", "gone"].into_iter().all(|set| last(set).contains("<loc>"))
    });
    assert_eq!(source.stop(), Some(0));
    let source = Source::start_config_at(&config(place.path(), &["kept"], &hubs), port);
    eventually("its end is known there", || {
        let text = last("gone");
        text.contains("change=\"deleted\"") && text.contains("gone/capabilitylist.xml")
    });
    let end = String::from_utf8(source.get("/gone/notify/framework").unwrap()).unwrap();
    assert!(end.contains("change=\"deleted\""), "{end}");
    assert!(
        source.get("/gone/notify/change").is_none()
            && source.get("/never/notify/framework").is_none()
    );
    assert_eq!(source.stop(), Some(0));
    let targets =
        run(abreast().args(["hub", "targets", "--json", "--data"]).arg(place.path().join("data")));
    let targets = String::from_utf8(targets.stdout).unwrap();
    assert!(targets.contains("/kept/notify/") && !targets.contains("/gone/notify/"), "{targets}");
    // A hub that is no longer configured is not notified, and one is notified in one way.
    for (hub, kinds) in [(format!("submit = \"form\"\n{hubs}"), "form"), (String::new(), "")] {
        let source = Source::start_config_at(&config(place.path(), &["kept"], &hub), port);
        assert_eq!(source.stop(), Some(0));
        let targets = run(abreast()
            .args(["hub", "targets", "--json", "--data"])
            .arg(place.path().join("data")));
        let targets = String::from_utf8(targets.stdout).unwrap();
        let found: Vec<Value> =
            targets.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Both topics of ResourceSync, the fragments feed, three change feeds, and change sets.
        assert_eq!(found.len(), if kinds.is_empty() { 0 } else { 7 }, "{targets}");
        assert!(found.iter().all(|target| target["kind"] == kinds), "{targets}");
    }
    drop(child);
}

#[test]
fn refusing_hub_is_shown_in_log_metrics_and_api() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("hub");
    // It takes no topics of strangers.
    let (child, other) = hub(data.to_str().unwrap(), &[]);
    let hubs = format!("hubs = [\"http://{other}/hub\"]");
    let source = Source::start_config(&config(place.path(), &["set"], &hubs));
    put(&place.path().join("set"), "new");
    let text = |path: &str| {
        source.get(path).map(|body| String::from_utf8(body).unwrap()).unwrap_or_default()
    };
    eventually("it is shown", || text("/readyz").contains("401"));
    let ready = text("/readyz");
    assert!(
        ready.starts_with("ready\n") && ready.contains(&other) && ready.contains("hub.hubs"),
        "{ready}"
    );
    let overview: Value = serde_json::from_str(&text("/api/v1/hub")).unwrap();
    assert!(overview["failing_hubs"][0].as_str().unwrap().contains("refuses"), "{overview}");
    assert!(
        text("/metrics")
            .lines()
            .any(|line| line.starts_with("abreast_hub_failing_hubs ") && !line.ends_with(" 0"))
    );
    assert_eq!(source.stop(), Some(0));
    let targets = run(abreast().args(["hub", "targets", "--data"]).arg(place.path().join("data")));
    let targets = String::from_utf8(targets.stdout).unwrap();
    assert!(targets.contains("failing") && targets.contains("401"), "{targets}");
    drop(child);
}
