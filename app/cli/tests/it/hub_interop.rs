//! The hub and others' programs: Flask-WebSub as a subscriber, as a publisher and as another hub;
//! publishers that say no more than which topic changed, in both ways they do it.

use crate::world::{Source, abreast};
use abreast_testkit::{Running, eventually, provided};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long others may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The script that runs them.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hub_interop/peer.py");

/// Flask-WebSub.
struct Peer {
    _child: Running,
    address: String,
    says: Receiver<Value>,
}

impl Peer {
    /// Starts it, with the hub that its topic names; nothing when Python does not have it.
    fn start(test: &str, place: &Path, hub: &str) -> Option<Self> {
        let python = provided(test, "ABREAST_TEST_PYTHON")?;
        fs::create_dir_all(place).unwrap();
        let mut command = Command::new(python);
        // Neither the caller's proxies nor settings.
        let path = abreast()
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_owned())
            .collect::<Vec<_>>();
        for name in path {
            command.env_remove(name);
        }
        command.arg(SCRIPT).arg(place).arg(hub).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, says) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let mut peer = Self { _child: Running(child), address: String::new(), says };
        peer.address = format!("127.0.0.1:{}", peer.heard("listening")["port"]);
        Some(peer)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The next thing it says, which must be that.
    fn heard(&self, event: &str) -> Value {
        let said =
            self.says.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it did not say `{event}`"));
        assert_eq!(said["event"], event, "{said}");
        said
    }

    /// Finds the hub that a topic names, subscribes there with a secret, and tells the
    /// subscription's name.
    fn subscribe(&self, topic: &str) -> String {
        let id = self.post("/subscribe", &format!("url={topic}&secret=between+us"));
        let heard = self.heard("subscribe");
        assert_eq!(
            (heard["id"].as_str(), heard["topic"].as_str()),
            (Some(id.as_str()), Some(topic))
        );
        id
    }

    fn post(&self, path: &str, form: &str) -> String {
        let (status, body) = request(&self.address, "POST", path, FORM, form);
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

fn request(
    address: &str,
    method: &str,
    path: &str,
    content_type: &str,
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Serves a folder, with lines for `[hub]`.
fn serve(place: &Path, hub: &str) -> Source {
    let folder = place.join("folder");
    fs::create_dir_all(&folder).unwrap();
    let config = place.join("abreast.toml");
    let text = format!(
        "data = {:?}\n[hub]\n{hub}\n[[set]]\nname = \"set\"\ndebounce = \"30ms\"\nfolder = {:?}\n",
        place.join("data").display().to_string(),
        folder.display().to_string()
    );
    fs::write(&config, text).unwrap();
    Source::start_config(config.to_str().unwrap())
}

#[test]
fn flask_websub_subscribes_verifies_renews_and_unsubscribes() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let Some(peer) =
        Peer::start("Flask-WebSub subscribes", &place.join("peer"), "http://127.0.0.1:1/")
    else {
        return;
    };
    let source = serve(place, "signature = \"sha512\"");
    let topic = format!("{}set/notify/change", source.url());
    let id = peer.subscribe(&topic);
    let change = |name: &str| {
        fs::write(place.join("folder").join(name), name).unwrap();
        // Its listeners hear only what is signed as it should be.
        let printed = peer.heard("told");
        let body = printed["body"].as_str().unwrap();
        assert!(
            body.contains("capability=\"change-notification\"")
                && body.contains(&format!("/{name}<")),
            "{body}"
        );
        assert_eq!(printed["topic"].as_str(), Some(topic.as_str()));
    };
    change("one");
    assert_eq!(peer.post("/renew", &format!("id={id}")), id);
    peer.heard("subscribe");
    change("two");
    peer.post("/unsubscribe", &format!("id={id}"));
    peer.heard("unsubscribe");
    eventually("nobody is subscribed", || {
        let page =
            source.get("/hub").map(|page| String::from_utf8(page).unwrap()).unwrap_or_default();
        page.contains("targets: 0.")
    });
}

#[test]
fn our_hub_delivers_flask_websub_topics_for_any_publish_form() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let source = serve(place, "open = true");
    let hub = format!("{}hub", source.url());
    let Some(peer) = Peer::start("Flask-WebSub publishes", &place.join("peer"), &hub) else {
        return;
    };
    let topic = peer.url("/topic");
    peer.subscribe(&topic);
    for (content, form) in [
        ("one", format!("hub.mode=publish&hub.url={topic}")),
        ("two", format!("hub.mode=publish&hub.topic={topic}")),
        ("three", format!("hub.mode=publish&hub.topic={topic}&hub.url={topic}")),
    ] {
        assert_eq!(request(&peer.address, "PUT", "/topic", "text/plain", content).0, 200);
        let (status, body) = request(&source.address, "POST", "/hub", FORM, &form);
        assert_eq!(status, 202, "{body}");
        let printed = peer.heard("told");
        assert_eq!(
            (printed["topic"].as_str(), printed["body"].as_str()),
            (Some(topic.as_str()), Some(content))
        );
    }
}

#[test]
fn flask_websub_as_another_hub_passes_our_changes_on() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let Some(peer) =
        Peer::start("Flask-WebSub is a hub", &place.join("peer"), "http://127.0.0.1:1/")
    else {
        return;
    };
    // The only hub is the other one: it is told that the topic changed, and fetches it.
    let hub = peer.url("/hub");
    let source = serve(place, &format!("enabled = false\nhubs = [{hub:?}]\nsubmit = \"form\""));
    let topic = format!("{}set/notify/change", source.url());
    peer.subscribe(&topic);
    for name in ["one", "two"] {
        fs::write(place.join("folder").join(name), name).unwrap();
        let printed = peer.heard("told");
        let body = printed["body"].as_str().unwrap();
        assert!(
            body.contains("capability=\"change-notification\"")
                && body.contains(&format!("/{name}<")),
            "{body}"
        );
    }
}
