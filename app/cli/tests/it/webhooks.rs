//! Webhooks of sets: signed requests with every change, in order, over failures, kills and reloads.

use crate::world::{Source, abreast};
use abreast_testkit::http::{Request, Server, send, unused_address};
use abreast_testkit::{Running, eventually, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_bmV3IHNlY3JldCBvZiB0aGUgcmVjZWl2ZXI=";

/// A receiver of a webhook: keeps requests, and answers by its script, then with 204.
struct Receiver {
    server: Server,
    script: Arc<Mutex<VecDeque<String>>>,
}

impl Receiver {
    fn new() -> Self {
        let script = Arc::<Mutex<VecDeque<String>>>::default();
        let answers = Arc::clone(&script);
        let server = Server::new(move |_, stream| {
            let next = answers.lock().unwrap().pop_front();
            let (status, headers) = match &next {
                Some(answer) => answer.split_once('|').unwrap_or((answer, "")),
                None => ("204 No Content", ""),
            };
            send(stream, status, headers, b"")
        });
        Self { server, script }
    }

    /// Answers the next requests with these status lines, each with headers after `|`.
    fn answer(&self, answers: &[&str]) {
        self.script.lock().unwrap().extend(answers.iter().map(|&answer| answer.to_owned()));
    }

    fn url(&self) -> String {
        self.server.url("/in/token-of-the-url")
    }

    fn seen(&self) -> Vec<Request> {
        self.server.seen()
    }

    /// The changes so far, without repeats: nothing is missing, and a repeated request is the same.
    fn changes(&self) -> Vec<Value> {
        let (mut position, mut changes) = (None, Vec::new());
        let mut bodies = BTreeMap::new();
        for request in self.seen() {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let id = request.header("webhook-id").unwrap().to_owned();
            let before = bodies.insert(id, request.body.clone());
            assert!(before.is_none_or(|before| before == request.body), "a repeat is the same");
            let (after, last) = (number(&body["after"]), number(&body["position"]));
            let known = position.unwrap_or(after);
            assert!(after <= known, "changes after {known} are missing: {body}");
            let of_body = body["changes"].as_array().unwrap();
            let positions: Vec<_> = of_body.iter().map(|one| number(&one["position"])).collect();
            assert_eq!(positions, (after + 1..=last).collect::<Vec<_>>(), "all, in order");
            changes.extend(of_body.iter().filter(|one| number(&one["position"]) > known).cloned());
            position = Some(known.max(last));
        }
        changes
    }

    fn names(&self) -> Vec<String> {
        let name = |change: &Value| {
            let uri = change["uri"].as_str().unwrap();
            uri.rsplit(['/', '#']).next().unwrap().to_owned()
        };
        self.changes().iter().map(name).collect()
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Signatures by a program that is not ours: one for each secret, for each request.
fn verify(requests: &[Request], secrets: &[&str]) {
    const PROGRAM: &str = "
import base64, hashlib, hmac, json, sys
for line in sys.stdin:
    one = json.loads(line)
    keys = [base64.b64decode(s.removeprefix('whsec_')) for s in one['secrets']]
    text = b'.'.join([one['id'].encode(), one['time'].encode(), base64.b64decode(one['body'])])
    right = ['v1,' + base64.b64encode(hmac.new(k, text, hashlib.sha256).digest()).decode() for k in keys]
    assert ' '.join(right) == one['given'], (right, one)
";
    use base64::Engine as _;
    use std::io::Write as _;
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for request in requests {
        let header = |name: &str| request.header(name).unwrap().to_owned();
        assert_eq!(header("content-type"), "application/json");
        let line = serde_json::json!({
            "secrets": secrets, "id": header("webhook-id"), "time": header("webhook-timestamp"),
            "given": header("webhook-signature"),
            "body": base64::prelude::BASE64_STANDARD.encode(&request.body),
        });
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A server with a configuration file, its log, and a folder.
struct World {
    place: tempfile::TempDir,
    source: Option<Source>,
    port: u16,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("set")).unwrap();
        let world = Self { place, source: None, port: 0 };
        world.put("before");
        world.write("secret", &format!("{SECRET}\n"));
        world
    }

    /// Serves a folder with these webhooks.
    fn start(webhooks: &[&Receiver]) -> Self {
        let mut world = Self::new();
        world.configure("", &webhooks.iter().map(|one| one.url()).collect::<Vec<_>>());
        world.run();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn configure(&self, head: &str, urls: &[String]) {
        let root = self.place.path().display();
        let mut text = format!(
            "data = \"{root}/data\"\n{head}\n[notify]\ndebounce = \"30ms\"\n[[set]]\nname = \"set\"\n\
             folder = \"{root}/set\"\ndebounce = \"30ms\"\n"
        );
        for url in urls {
            let _ =
                write!(text, "[[set.webhook]]\nurl = \"{url}\"\nsecret_file = \"{root}/secret\"\n");
        }
        self.write("abreast.toml", &text);
    }

    fn run(&mut self) {
        let mut command = abreast();
        command.args(["serve", "--listen", &format!("127.0.0.1:{}", self.port), "--config"]);
        command.arg(self.path("abreast.toml"));
        let source = Source::run_logged(&mut command, &self.path("log"));
        self.port = source.port();
        self.source = Some(source);
    }

    fn source(&self) -> &Source {
        self.source.as_ref().unwrap()
    }

    /// A file that is there at once, so that it is one change.
    fn put(&self, name: &str) {
        let set = self.path("set");
        fs::write(set.join(".new"), name).unwrap();
        fs::rename(set.join(".new"), set.join(name)).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn reload(&self) {
        let reloads = || self.log().matches("reloaded; ").count();
        let before = reloads();
        kill_process(Pid::from_child(&self.source().child.0), Signal::HUP).unwrap();
        eventually("the configuration is read again", || reloads() > before);
    }

    fn text(&self, path: &str) -> String {
        let body = self.source().answer(path).map(|(_, body)| body).unwrap_or_default();
        String::from_utf8_lossy(&body).into_owned()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).unwrap_or_default()
    }

    /// Offset of the last notification of changes.
    fn notified(&self) -> u64 {
        let topics = self.json("/api/v1/hub/topics");
        let topics = topics["topics"].as_array().cloned().unwrap_or_default();
        let is_change =
            |topic: &&Value| topic["url"].as_str().unwrap().ends_with("/set/notify/change");
        topics.iter().find(is_change).map_or(0, |topic| number(&topic["head"]))
    }

    /// A change, until it is notified.
    fn put_notified(&self, name: &str) {
        let before = self.notified();
        self.put(name);
        eventually("it is notified", || self.notified() > before);
    }

    /// The targets of the hub, by the command for a stopped server.
    fn targets(&self) -> String {
        let output =
            run(abreast().args(["hub", "targets", "--json", "--data"]).arg(self.path("data")));
        String::from_utf8(output.stdout).unwrap()
    }

    fn stop(&mut self) {
        assert_eq!(self.source.take().unwrap().stop(), Some(0));
    }
}

#[test]
fn webhooks_get_each_change_signed_and_in_order() {
    let receiver = Receiver::new();
    let mut world = World::start(&[&receiver]);
    for number in 0..10 {
        world.put(&format!("f{number}"));
        eventually("it arrives", || receiver.names().len() == number + 1);
    }
    fs::remove_file(world.path("set/before")).unwrap();
    eventually("the deletion arrives", || receiver.names().len() == 11);
    let changes = receiver.changes();
    let expected: Vec<_> = (0..10).map(|number| format!("f{number}")).collect();
    assert_eq!(receiver.names()[..10], expected);
    assert_eq!((&changes[10]["change"], &changes[10]["hash"]), (&"deleted".into(), &Value::Null));
    // The same as in the API.
    let of_api = world.json("/api/v1/sets/set/changes?after=0");
    assert_eq!(of_api["changes"], Value::from(changes));
    let body: Value = serde_json::from_slice(&receiver.seen()[0].body).unwrap();
    assert_eq!(body["set"], "set");
    verify(&receiver.seen(), &[SECRET]);
    world.stop();
    let targets = world.targets();
    assert!(targets.contains("\"kind\":\"webhook\"") && targets.contains("\"signed\":true"));
    assert!(!(targets + &world.log()).contains("whsec_"));
}

#[test]
fn webhook_retries_have_the_same_id_and_body() {
    let receiver = Receiver::new();
    let world = World::start(&[&receiver]);
    receiver.answer(&["500 No", "500 No"]);
    world.put_notified("one");
    for name in ["two", "three", "four"] {
        world.put_notified(name);
    }
    eventually("all arrive", || receiver.names().len() == 4);
    assert_eq!(receiver.names(), ["one", "two", "three", "four"]);
    let seen = receiver.seen();
    let ids: Vec<_> = seen.iter().map(|one| one.header("webhook-id").unwrap()).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2] && ids[2] != ids[3], "{ids:?}");
    // What waited comes together.
    assert_eq!(seen.len(), 4, "{ids:?}");
    let times: Vec<_> = seen.iter().map(|one| one.header("webhook-timestamp").unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    verify(&seen, &[SECRET]);
}

#[test]
fn slow_webhooks_get_waiting_changes_together() {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let (waits, got) = (Arc::clone(&gate), Receiver::new());
    let slow = Server::new(move |_, stream| {
        drop(waits.lock().unwrap());
        send(stream, "204 No Content", "", b"")
    });
    let receiver = Receiver { server: slow, script: got.script.clone() };
    // The other one is not delayed.
    let world = World::start(&[&receiver, &got]);
    for number in 0..12 {
        world.put_notified(&format!("f{number:02}"));
    }
    eventually("the other one has all", || got.names().len() == 12);
    assert!(receiver.seen().len() <= 1);
    drop(closed);
    eventually("all arrive", || receiver.names().len() == 12);
    assert_eq!(receiver.names(), got.names());
    assert!(receiver.seen().len() <= 3, "{}", receiver.seen().len());
}

#[test]
fn a_webhook_that_answers_410_ends_until_a_reload() {
    let receiver = Receiver::new();
    let mut world = World::start(&[&receiver]);
    receiver.answer(&["410 Gone"]);
    world.put_notified("one");
    eventually("it is logged", || world.log().contains("a webhook answered 410"));
    world.put_notified("two");
    world.put_notified("three");
    assert_eq!(receiver.seen().len(), 1);
    // It begins at the last change.
    world.reload();
    world.put("four");
    eventually("it arrives", || receiver.seen().len() == 2);
    let body: Value = serde_json::from_slice(&receiver.seen()[1].body).unwrap();
    assert_eq!(body["changes"].as_array().unwrap().len(), 1);
    assert!(body["changes"][0]["uri"].as_str().unwrap().ends_with("/four"), "{body}");
    world.stop();
    let ended = run(abreast().args(["hub", "targets", "--json", "--data"]).arg(world.path("data")));
    assert!(ended.status.success());
    assert!(!world.log().contains("token-of-the-url"), "{}", world.log());
}

#[test]
fn webhooks_lose_nothing_when_the_server_is_killed() {
    let receiver = Receiver::new();
    let mut world = World::start(&[&receiver]);
    let mut expected = Vec::new();
    for round in 0..3 {
        receiver.answer(&["503 Busy"]);
        for number in 0..8 {
            let name = format!("r{round}-{number}");
            world.put(&name);
            expected.push(name);
        }
        eventually("some arrive", || receiver.names().len() > round * 8);
        world.source.take().unwrap().kill();
        let name = format!("r{round}-away");
        world.put(&name);
        expected.push(name);
        world.run();
    }
    eventually("all arrive", || receiver.names().len() >= expected.len());
    let mut names = receiver.names();
    names.sort();
    expected.sort();
    assert_eq!(names, expected, "each change once");
    verify(&receiver.seen(), &[SECRET]);
}

#[test]
fn webhooks_repeat_after_a_kill_only_what_was_not_taken() {
    let receiver = Receiver::new();
    let mut world = World::start(&[&receiver]);
    world.put("taken");
    eventually("it arrives", || receiver.names() == ["taken"]);
    // Refused for long enough that the failure is stored.
    receiver.answer(&["503 Busy|Retry-After: 2\r\n"]);
    world.put_notified("refused");
    eventually("it was tried", || receiver.seen().len() == 2);
    world.put_notified("later");
    eventually("the failure is stored", || {
        let target = world.json("/api/v1/hub/topics");
        target["topics"].is_array() && world.text("/readyz").contains("503")
    });
    std::thread::sleep(std::time::Duration::from_millis(600));
    world.source.take().unwrap().kill();
    world.run();
    eventually("all arrive", || receiver.names() == ["taken", "refused", "later"]);
    let seen = receiver.seen();
    let ids: Vec<_> = seen.iter().map(|one| one.header("webhook-id").unwrap()).collect();
    assert_eq!(ids[1], ids[2], "{ids:?}");
    assert!(ids[1..].iter().all(|id| *id != ids[0]) && ids.len() == 4, "{ids:?}");
}

#[test]
fn secrets_of_webhooks_are_replaced_by_a_reload() {
    let receiver = Receiver::new();
    let world = World::start(&[&receiver]);
    let mut first = 0;
    for (number, secrets) in
        [vec![SECRET], vec![OTHER_SECRET, SECRET], vec![OTHER_SECRET]].iter().enumerate()
    {
        world.write("secret", &(secrets.join("\n") + "\n"));
        world.reload();
        world.put(&format!("f{number}"));
        eventually("it arrives", || receiver.names().len() == number + 1);
        verify(&receiver.seen()[first..], secrets);
        first = receiver.seen().len();
    }
    // A file that cannot be read delays deliveries, and is read again at the next attempt.
    fs::remove_file(world.path("secret")).unwrap();
    world.reload();
    world.put("late");
    eventually("it is logged", || world.log().contains("the secret of the webhook cannot be read"));
    world.write("secret", SECRET);
    eventually("it arrives", || receiver.names().last().is_some_and(|name| name == "late"));
    verify(&receiver.seen()[first..], &[SECRET]);
}

#[test]
fn webhooks_follow_no_redirect_and_show_no_path() {
    let (receiver, other) = (Receiver::new(), Receiver::new());
    let world = World::start(&[&receiver]);
    let location = format!("307 Temporary Redirect|Location: {}\r\n", other.url());
    receiver.answer(&[&location, &location, &location, &location, &location, &location]);
    world.put("one");
    eventually("it is shown", || world.text("/readyz").contains("307"));
    let ready = world.text("/readyz");
    assert!(ready.contains("webhook 127.0.0.1") && ready.contains("set.webhook.url"), "{ready}");
    let shown = ready + &world.text("/api/v1/hub") + &world.log();
    assert!(!shown.contains("token-of-the-url"), "{shown}");
    receiver.script.lock().unwrap().clear();
    eventually("it arrives", || receiver.seen().len() > 1 && receiver.names() == ["one"]);
    assert!(other.seen().is_empty());
}

#[test]
fn webhooks_are_added_and_removed_by_a_reload() {
    let [first, second] = [Receiver::new(), Receiver::new()];
    let mut world = World::start(&[&first]);
    world.put("one");
    eventually("it arrives", || first.names() == ["one"]);
    world.configure("", &[first.url(), second.url()]);
    world.reload();
    world.put("two");
    eventually("both get it", || first.names() == ["one", "two"] && second.names() == ["two"]);
    world.configure("", &[second.url()]);
    world.reload();
    world.put("three");
    eventually("it arrives", || second.names() == ["two", "three"]);
    world.configure("", &[]);
    world.reload();
    world.put_notified("four");
    world.stop();
    assert_eq!(world.targets().trim(), "");
    assert_eq!((first.names().len(), second.names().len()), (2, 2));
}

#[test]
fn webhooks_get_many_changes_in_several_requests() {
    let receiver = Receiver::new();
    let mut world = World::new();
    world.configure("", &[receiver.url()]);
    let text = fs::read_to_string(world.path("abreast.toml")).unwrap();
    world.write("abreast.toml", &text.replace("[notify]\n", "[notify]\nmost = 50000\n"));
    world.run();
    let many = world.path("many");
    fs::create_dir(&many).unwrap();
    for number in 0..2_500 {
        fs::write(many.join(number.to_string()), "x").unwrap();
    }
    fs::rename(many, world.path("set/many")).unwrap();
    eventually("all arrive", || receiver.names().len() == 2_500);
    for request in receiver.seen() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert!(body["changes"].as_array().unwrap().len() <= 1_000);
        assert!(request.body.len() <= (1 << 20) + 4_096);
    }
    verify(&receiver.seen(), &[SECRET]);
}

#[test]
fn webhooks_of_entities_get_their_iris() {
    let receiver = Receiver::new();
    let mut world = World::new();
    let triples = |names: &[&str]| {
        let lines = names
            .iter()
            .map(|name| format!("<http://e.example/{name}> <http://e.example/p> \"{name}\" .\n"));
        lines.collect::<String>()
    };
    fs::remove_file(world.path("set/before")).unwrap();
    world.write("set/all.nt", &triples(&["a"]));
    world.configure("", &[receiver.url()]);
    let text = fs::read_to_string(world.path("abreast.toml")).unwrap();
    world
        .write("abreast.toml", &text.replace("name = \"set\"", "name = \"set\"\norigin = \"rdf\""));
    world.run();
    world.write("set/new.nt", &triples(&["a", "b"]));
    fs::rename(world.path("set/new.nt"), world.path("set/all.nt")).unwrap();
    eventually("it arrives", || receiver.names().last().is_some_and(|name| name == "b"));
    // The first description can be a change before the webhook begins.
    let of_api = world.json("/api/v1/sets/set/changes?after=0");
    assert_eq!(of_api["changes"].as_array().unwrap().last(), receiver.changes().last());
    assert_eq!(receiver.changes().last().unwrap()["uri"], "http://e.example/b");
    verify(&receiver.seen(), &[SECRET]);
}

#[test]
fn published_secrets_of_webhooks_are_refused() {
    let receiver = Receiver::new();
    let world = World::new();
    let show = |command: &str| {
        let output = run(abreast().args(["config", command]).arg(world.path("abreast.toml")));
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    world.configure("", &[receiver.url()]);
    assert!(show("check").0, "{}", show("check").1);
    let (shows, text) = show("show");
    assert!(shows && text.contains("secret_file") && !text.contains("whsec_"), "{text}");
    world.write("set/secret", SECRET);
    let text = fs::read_to_string(world.path("abreast.toml")).unwrap();
    world.write("abreast.toml", &text.replace("/secret\"", "/set/secret\""));
    let (is_right, text) = show("check");
    assert!(!is_right && text.contains("`set.webhook.secret_file`"), "{text}");
    assert!(text.contains("lies in the published folder") && !text.contains("whsec_"), "{text}");
    // Addresses of this machine are refused where strangers can subscribe.
    world.configure("base_url = \"https://papers.example.org/\"", &[receiver.url()]);
    let (is_right, text) = show("check");
    assert!(!is_right && text.contains("is a private address"), "{text}");
}

/// The program in the documentation, as it is there.
#[test]
fn documented_receiver_of_webhooks_works() {
    let docs = include_str!("../../../../docs/push.md");
    let program = docs.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let mut world = World::new();
    world.write("receiver.py", program);
    let port = unused_address().port();
    let mut child = Running(
        Command::new("python3")
            .arg(world.path("receiver.py"))
            .arg(port.to_string())
            .arg(world.path("secret"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let (kept, output) = (Arc::clone(&lines), BufReader::new(child.0.stdout.take().unwrap()));
    std::thread::spawn(move || {
        output.lines().map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line));
    });
    world.configure("", &[format!("http://127.0.0.1:{port}/in")]);
    world.run();
    world.put("one");
    let printed = |expected: &[String]| {
        eventually("the receiver prints it", || *lines.lock().unwrap() == expected);
    };
    let uri = |name: &str| format!("{}set/r/{name}", world.source().url());
    let created = format!("created {}", uri("one"));
    printed(std::slice::from_ref(&created));
    fs::remove_file(world.path("set/before")).unwrap();
    let mut expected = vec![created, format!("deleted {}", uri("before"))];
    printed(&expected);
    // Requests with another secret are refused.
    world.write("secret", OTHER_SECRET);
    world.reload();
    world.put("two");
    eventually("it is refused", || world.text("/readyz").contains("401"));
    world.write("secret", SECRET);
    world.reload();
    expected.push(format!("created {}", uri("two")));
    printed(&expected);
    drop(child);
}

#[test]
fn the_secret_of_a_webhook_can_be_in_the_environment() {
    let receiver = Receiver::new();
    let mut world = World::new();
    world.configure("", &[receiver.url()]);
    let text = fs::read_to_string(world.path("abreast.toml")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("secret_file"));
    world.write("abreast.toml", &lines.collect::<Vec<_>>().join("\n"));
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(world.path("abreast.toml")).env("ABREAST_WEBHOOK_SECRET", SECRET);
    world.source = Some(Source::run_logged(&mut command, &world.path("log")));
    world.put("a");
    eventually("it arrives", || receiver.names() == ["a"]);
    verify(&receiver.seen(), &[SECRET]);
    world.stop();
    assert!(!world.log().contains("whsec_"));
}

#[test]
fn replayed_webhooks_get_earlier_changes_again() {
    let receiver = Receiver::new();
    let mut world = World::start(&[&receiver]);
    for name in ["a", "b"] {
        world.put_notified(name);
        eventually("it arrives", || receiver.names().last().is_some_and(|last| last == name));
    }
    world.stop();
    let sent = receiver.seen().len();
    let data = world.path("data");
    let targets = run(abreast().args(["hub", "targets", "--data"]).arg(&data));
    let targets = String::from_utf8(targets.stdout).unwrap();
    let id = targets.split_whitespace().next().unwrap();
    let replayed = run(abreast().args(["hub", "replay", id, "--after", "0", "--data"]).arg(&data));
    assert!(replayed.status.success(), "{replayed:?}");
    world.run();
    let repeated = || {
        let requests = receiver.seen();
        let bodies = requests[sent..]
            .iter()
            .map(|request| -> Value { serde_json::from_slice(&request.body).unwrap() });
        bodies.flat_map(|body| body["changes"].as_array().unwrap().clone()).collect::<Vec<_>>()
    };
    eventually("both changes arrive again", || repeated().len() == 2);
    let positions: Vec<_> = repeated().iter().map(|change| number(&change["position"])).collect();
    assert_eq!(positions, [1, 2]);
}
