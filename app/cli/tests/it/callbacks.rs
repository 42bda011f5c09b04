//! HTTP callbacks of ResourceSync 0.1: receivers get every change set of a Source, in order, over
//! kills; those made for the specification of 2012 too.

use crate::world::{Source, abreast};
use abreast_resourcesync::v0_1::{CALLBACK_PROTOCOL, CHANGE_SET, Document};
use abreast_testkit::eventually;
use abreast_testkit::http::{Server, send};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A receiver: keeps what is posted, and confirms what it is asked unless it is of 2012.
struct Receiver {
    server: Server,
    /// Change sets by the number of their delivery; a repeat must be the same.
    got: Arc<Mutex<BTreeMap<u64, Vec<u8>>>>,
}

impl Receiver {
    fn new(confirms: bool) -> Self {
        let got = Arc::<Mutex<BTreeMap<u64, Vec<u8>>>>::default();
        let kept = Arc::clone(&got);
        let server = Server::new(move |request, stream| {
            if request.method() == "POST" {
                assert_eq!(request.header("content-type"), Some("application/xml"));
                let links = request.header("link").unwrap();
                let current = format!("rel=\"current {CHANGE_SET}\"");
                assert!(links.contains(&current), "{links}");
                let number = request.header("abreast-offset").unwrap().parse().unwrap();
                let mut kept = kept.lock().unwrap();
                // The next one only after this one was taken.
                let last = kept.keys().next_back().copied().unwrap_or_default();
                assert!(last == 0 || number <= last + 1, "{number} came after {last}");
                let before = kept.insert(number, request.body.clone());
                assert!(before.is_none_or(|before| before == request.body), "a repeat is the same");
                return send(stream, "200 OK", "", b"");
            }
            let mut parts = request.target().split(['?', '&']);
            let challenge = parts.find_map(|part| part.strip_prefix("hub.challenge="));
            match challenge.filter(|_| confirms) {
                Some(challenge) => send(stream, "200 OK", "", challenge.as_bytes()),
                None => send(stream, "405 Method Not Allowed", "", b""),
            }
        });
        Self { server, got }
    }

    fn url(&self) -> String {
        self.server.url("/callback")
    }

    /// The changes so far, by the names of their files: nothing is missing, and times increase.
    fn changes(&self) -> Vec<(String, String)> {
        let got = self.got.lock().unwrap();
        let (mut last, mut changes) = (None, Vec::new());
        for body in got.values() {
            let document = Document::from_slice(body).unwrap();
            assert!(document.head.change_set, "{}", String::from_utf8_lossy(body));
            for entry in document.entries {
                let time = entry.time.map(|time| time.instant);
                assert!(time > last, "{time:?} came after {last:?}");
                last = time;
                let name = entry.loc.rsplit('/').next().unwrap().to_owned();
                changes.push((name, format!("{:?}", entry.change.unwrap()).to_lowercase()));
            }
        }
        changes
    }

    fn names(&self) -> Vec<String> {
        self.changes().into_iter().map(|(name, _)| name).collect()
    }
}

/// Where the Sitemap names that callbacks are subscribed.
fn subscribe_at(source: &Source) -> String {
    let sitemap = source.get("/set/v0.1/sitemap.xml").unwrap();
    let links = Document::from_slice(&sitemap).unwrap().head.links;
    let link = links.into_iter().find(|link| link.protocol.as_deref() == Some(CALLBACK_PROTOCOL));
    link.unwrap().href
}

/// Exactly the request of the specification's example, without a content type.
fn post(url: &str, body: &str) -> (u16, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

fn subscribe(source: &Source, receiver: &Receiver) {
    let (status, answer) =
        post(&subscribe_at(source), &format!("callbackURI={}\n", receiver.url()));
    assert_eq!(status, 202, "{answer}");
    let state = format!("/hub?callback={}", receiver.url());
    eventually("the subscription counts", || source.get(&state).is_some());
}

/// A file that is there at once, so that it is one change.
fn put(folder: &Path, name: &str) {
    fs::write(folder.join(".new"), name).unwrap();
    fs::rename(folder.join(".new"), folder.join(name)).unwrap();
}

#[test]
fn receivers_get_each_change_once_over_kills() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("before"), "x").unwrap();
    let mut source = Source::start(folder, 0, &[]);
    let port = source.port();
    let receiver = Receiver::new(true);
    subscribe(&source, &receiver);
    let mut expected = Vec::new();
    for round in 0..4 {
        for number in 0..20 {
            let name = format!("r{round}-{number:02}");
            put(folder, &name);
            expected.push(name);
        }
        // In the middle of deliveries.
        eventually("some arrive", || receiver.names().len() > round * 20);
        if round % 2 == 0 {
            source.kill();
        } else {
            assert_eq!(source.stop(), Some(0));
        }
        let name = format!("r{round}-away");
        put(folder, &name);
        expected.push(name);
        source = Source::start(folder, port, &[]);
    }
    eventually("all arrive", || receiver.names().len() >= expected.len());
    let mut names = receiver.names();
    names.sort();
    expected.sort();
    assert_eq!(names, expected, "each change once");
    fs::remove_file(folder.join("before")).unwrap();
    eventually("the deletion arrives", || {
        receiver.changes().last() == Some(&("before".into(), "deleted".into()))
    });
    let end = format!("callbackURI={}&mode=unsubscribe", receiver.url());
    assert_eq!(post(&subscribe_at(&source), &end).0, 202);
    let state = format!("/hub?callback={}", receiver.url());
    eventually("it has ended", || {
        let state = source.get(&state).unwrap_or_default();
        String::from_utf8(state).unwrap().contains("unsubscribed")
    });
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn receivers_of_2012_are_served_where_they_are_listed() {
    let place = tempfile::tempdir().unwrap();
    let [folder, data] = ["papers", "data"].map(|name| place.path().join(name));
    fs::create_dir(&folder).unwrap();
    let (listed, unlisted) = (Receiver::new(false), Receiver::new(false));
    let config = place.path().join("abreast.toml");
    let write = |hub: &str| {
        let text = format!(
            "data = {data:?}\n[hub]\n{hub}\n[notify]\ndebounce = \"30ms\"\n[[set]]\nname = \"set\"\nfolder = {folder:?}\n"
        );
        fs::write(&config, text).unwrap();
    };
    write(&format!("trusted_callbacks = [{:?}]", listed.url()));
    let config = config.to_str().unwrap();
    let source = Source::start_config(config);
    subscribe(&source, &listed);
    let body = format!("callbackURI={}", unlisted.url());
    assert_eq!(post(&subscribe_at(&source), &body).0, 202);
    eventually("the other one is asked", || !unlisted.server.seen().is_empty());
    put(&folder, "one");
    eventually("it arrives", || listed.names() == ["one"]);
    let port = source.port();
    source.kill();
    put(&folder, "two");
    let source = Source::start_config_at(config, port);
    eventually("it arrives", || listed.names() == ["one", "two"]);
    assert_eq!(listed.server.seen().iter().filter(|seen| seen.method() == "GET").count(), 0);
    assert!(unlisted.got.lock().unwrap().is_empty());
    // It ends when it is listed no longer.
    assert_eq!(source.stop(), Some(0));
    write("");
    let source = Source::start_config_at(config, port);
    put(&folder, "three");
    let state = format!("/hub?callback={}", listed.url());
    eventually("it has ended", || {
        String::from_utf8(source.get(&state).unwrap_or_default()).unwrap().contains("ended")
    });
    assert_eq!(listed.names(), ["one", "two"]);
    assert_eq!(source.stop(), Some(0));
    write("trusted_callbacks = [\"ftp://old.example.org/\"]");
    let wrong = abreast_testkit::run(abreast().args(["serve", "--config", config]));
    assert_eq!(wrong.status.code(), Some(2));
    let says = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(says.contains("hub.trusted_callbacks"), "{says}");
}

#[test]
fn no_callbacks_are_offered_without_a_hub() {
    let place = tempfile::tempdir().unwrap();
    let source = Source::start(place.path(), 0, &["--no-hub"]);
    let sitemap = source.get("/set/v0.1/sitemap.xml").unwrap();
    let links = Document::from_slice(&sitemap).unwrap().head.links;
    assert!(links.iter().all(|link| link.protocol.is_none()), "{links:?}");
    let (status, _) = post(&format!("{}set/v0.1/subscribe", source.url()), "callbackURI=http://e/");
    assert_eq!(status, 404);
    assert!(source.get("/set/v0.1/subscribe").is_none());
}
