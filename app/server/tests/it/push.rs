//! Topics, event streams and the hub, on a real socket.

use crate::world::{Client, Reply, Served, World};
use abreast_core::hub::{NewTarget, Target, TargetKind};
use abreast_core::{
    LogError, NewNotification, Offset, Payload, Position, SystemClock, TopicId, publish,
};
use abreast_hub::{Hub, HubOptions, Payloads};
use abreast_server::api::{Api, ApiOptions, Readers, Scope, new_token, write_tokens};
use abreast_server::{ServerOptions, Site, SiteHub, TrustedProxies};
use abreast_source::publish::{Notifications, PublishedSet, Publisher, SourceUrls};
use abreast_store::hub::SqliteHub;
use abreast_testkit::{eventually, http};
use abreast_websub::{Event, EventReader};
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::io::BufRead as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const TOPIC_PATH: &str = "/set/notify/change";
pub(crate) const TOPIC: &str = "https://example.org/set/notify/change";
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A set `set` with notifications, a hub, and an API whose tokens are in the folder.
pub(crate) struct Pushing {
    pub(crate) world: World,
    pub(crate) hub: Hub,
    pub(crate) topic: TopicId,
    pub(crate) served: Served,
}

/// Ranges are published as their numbers.
struct Numbers;

impl Payloads for Numbers {
    fn render(&self, _: &str, after: Position, last: Position) -> Result<Bytes, LogError> {
        Ok(format!("{after}..{last}").into())
    }
}

/// One for all tests of the process.
fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| PrometheusBuilder::new().install_recorder().unwrap())
}

impl Pushing {
    pub(crate) fn new() -> Self {
        Self::with(ServerOptions::default(), |_| {})
    }

    pub(crate) fn with(server: ServerOptions, more: impl FnOnce(&mut HubOptions)) -> Self {
        Self::with_readers(Readers::Anyone, server, more)
    }

    pub(crate) fn with_readers(
        readers: Readers,
        server: ServerOptions,
        more: impl FnOnce(&mut HubOptions),
    ) -> Self {
        let world = World::new();
        world.write("a", "1");
        world.publish();
        let folder = world.temporary.path();
        let store =
            Arc::new(SqliteHub::open(&folder.join("hub.db"), Arc::new(SystemClock)).unwrap());
        let mut options = HubOptions::new("https://example.org/hub");
        options.allow_topics = vec!["https://elsewhere.example/".to_owned()];
        options.private_callbacks = true;
        options.private_topics = true;
        options.sending.connect = Duration::from_millis(500);
        options.sending.total = Duration::from_secs(2);
        more(&mut options);
        let hub = Hub::start(options, store, Arc::new(Numbers)).unwrap();
        let topic = hub.own_topic(TOPIC).unwrap();
        let urls = SourceUrls::new(crate::world::BASE);
        let set_urls = urls.set("set");
        let published = Arc::new(PublishedSet {
            representations: world.representations(),
            notifications: Some(Notifications::at(["https://example.org/hub"])),
            ..PublishedSet::new(world.set, "set", set_urls)
        });
        let documents = folder.join("documents");
        let publisher =
            Publisher::new(Arc::clone(&world.log), urls, [Arc::clone(&published)], documents)
                .unwrap()
                .with_projection(crate::callbacks::Called);
        let sets = [World::served(published, "Set")].into_iter().collect();
        let api = ApiOptions { readers, ..ApiOptions::new(folder.join("tokens.json")) };
        let api = Some(Api::new(api).unwrap());
        let site_hub = Some(SiteHub { hub: hub.clone(), serves: true });
        let metrics = Arc::new(|| recorder().render());
        let site = Site {
            publisher,
            sets,
            api,
            hub: site_hub,
            metrics,
            memory: abreast_server::Memory::default(),
            followers: abreast_server::Followers::default(),
            store: None,
        };
        let served = Served::start(site, server);
        Self { world, hub, topic, served }
    }

    pub(crate) fn token(&self, name: &str, scope: Scope) -> String {
        self.token_for(name, scope, &[])
    }

    pub(crate) fn token_for(&self, name: &str, scope: Scope, sets: &[&str]) -> String {
        let sets = sets.iter().map(|set| (*set).to_owned()).collect();
        let path = self.world.temporary.path().join("tokens.json");
        let (secret, token) = new_token(name, scope, sets, "2026-01-01T00:00:00Z").unwrap();
        let mut tokens = abreast_server::api::read_tokens(&path).unwrap();
        tokens.push(token);
        write_tokens(&path, &tokens).unwrap();
        let authorization = format!("Bearer {secret}");
        eventually("the token is known", || {
            self.ask("GET", "/api/v1/hub", &[("Authorization", &authorization)], b"").status == 200
        });
        authorization
    }

    /// Says something in the set's topic.
    pub(crate) fn say(&self, text: &str) -> Offset {
        let payload = Payload::Bytes(Arc::from(text.as_bytes()));
        let new =
            NewNotification { media_type: "text/plain".to_owned(), links: String::new(), payload };
        let offset = publish(&**self.hub.store(), self.topic, new).unwrap();
        self.hub.published(self.topic);
        offset
    }

    /// Somebody who subscribed. Nothing answers there.
    pub(crate) fn subscriber(&self, callback: &str) -> Target {
        let new = NewTarget {
            topic: self.topic,
            kind: TargetKind::Subscription,
            address: callback.to_owned(),
            secret: Some(b"hush".to_vec().into()),
            lease_until: Some(Timestamp::from_micros(4_000_000_000_000_000)),
            cursor: None,
        };
        self.hub.store().put_target(new).unwrap()
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let length = body.len().to_string();
        let mut client = self.served.connect();
        let mut headers = headers.to_vec();
        if !body.is_empty() {
            headers.push(("Content-Length", &length));
        }
        client.request(method, target, &headers);
        // Whoever refuses a large body may close before it is written.
        let _ = client.send(body);
        client.reply(method).unwrap().unwrap()
    }

    fn stream(&self, target: &str, headers: &[(&str, &str)]) -> Stream {
        let mut client = self.served.connect();
        client.request("GET", target, headers);
        let head = client.head().unwrap().unwrap();
        assert_eq!(
            (head.status, head.header("content-type").as_str()),
            (200, "text/event-stream"),
            "{head:?}"
        );
        assert_eq!(head.header("cache-control"), "no-store");
        Stream { client, events: EventReader::new() }
    }
}

impl Drop for Pushing {
    fn drop(&mut self) {
        self.hub.stop();
    }
}

struct Stream {
    client: Client,
    events: EventReader,
}

impl Stream {
    /// Reads one chunk; `false` at the end.
    fn more(&mut self) -> bool {
        let (mut size, stream) = (String::new(), &mut self.client.stream);
        stream.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        std::io::Read::read_exact(stream, &mut chunk).unwrap();
        self.events.feed(&chunk[..size]).unwrap();
        size > 0
    }

    fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.events.next_event() {
                return event;
            }
            assert!(self.more(), "the stream ended");
        }
    }

    /// Whether nothing but the end comes.
    fn ends(&mut self) -> bool {
        while self.more() {}
        self.events.next_event().is_none()
    }
}

fn text(event: &Event) -> (&str, &str) {
    (&event.id, std::str::from_utf8(&event.data).unwrap())
}

#[test]
fn topic_answers_with_its_last_notification() {
    let pushing = Pushing::new();
    let empty = pushing.served.get(TOPIC_PATH);
    assert_eq!((empty.status, empty.body.len()), (200, 0));
    let (tag, links) = (empty.header("etag"), empty.header("link"));
    for link in [
        "<https://example.org/hub>; rel=\"hub\"",
        "<https://example.org/set/notify/change>; rel=\"self\"",
        "<https://example.org/set/capabilitylist.xml>; rel=\"resourcesync\"",
    ] {
        assert!(links.contains(link), "{links}");
    }
    assert_eq!(pushing.served.ask("GET", TOPIC_PATH, &[("If-None-Match", &tag)]).status, 304);
    pushing.say("one");
    pushing.say("two");
    let last = pushing.served.ask("GET", TOPIC_PATH, &[("If-None-Match", &tag)]);
    assert_eq!(
        (last.status, last.text().as_str(), last.header("etag").as_str()),
        (200, "two", "\"2\"")
    );
    assert_eq!(
        (last.header("content-type").as_str(), last.header("vary").as_str()),
        ("text/plain", "Accept")
    );
    assert_eq!(last.header("link"), links);
    let head = pushing.served.ask("HEAD", TOPIC_PATH, &[]);
    assert_eq!(
        (head.status, head.body.len(), head.header("content-length").as_str()),
        (200, 0, "3")
    );
    assert_eq!(head.header("link"), links);
    assert_eq!(pushing.served.ask("HEAD", TOPIC_PATH, &[("If-None-Match", "\"2\"")]).status, 304);
    assert_eq!(pushing.served.get("/set/notify/other").status, 404);
    let post = pushing.served.ask("POST", TOPIC_PATH, &[("Content-Length", "0")]);
    assert_eq!((post.status, post.header("allow").as_str()), (405, "GET, HEAD"));
}

#[test]
fn stream_continues_after_the_readers_last_event() {
    let pushing = Pushing::new();
    pushing.say("one");
    let accept = ("Accept", "text/event-stream");
    let mut from_now = pushing.stream(TOPIC_PATH, &[accept]);
    let mut of_hub =
        pushing.stream("/hub/events?topic=https%3A%2F%2Fexample.org%2Fset%2Fnotify%2Fchange", &[]);
    assert!(from_now.more() && of_hub.more());
    assert_eq!(from_now.events.last_id(), "1", "where it stands is said before anything happens");
    pushing.say("two");
    pushing.say("three");
    for stream in [&mut from_now, &mut of_hub] {
        assert_eq!(text(&stream.next()), ("2", "two"));
        let event = stream.next();
        assert_eq!((text(&event), event.media_type.as_str()), (("3", "three"), "text/plain"));
    }
    for (last, expected) in [("0", "one"), ("2", "three")] {
        let mut stream = pushing.stream(TOPIC_PATH, &[accept, ("Last-Event-ID", last)]);
        assert_eq!(stream.next().data, expected.as_bytes());
    }
    // Of a log that went back: whatever comes next.
    let mut ahead = pushing.stream(TOPIC_PATH, &[accept, ("Last-Event-ID", "900")]);
    assert!(ahead.more());
    pushing.say("four");
    assert_eq!(text(&ahead.next()), ("4", "four"));
    let wrong = pushing.served.ask("GET", TOPIC_PATH, &[accept, ("Last-Event-ID", "x")]);
    assert_eq!(wrong.status, 400);
    assert_eq!(pushing.served.get("/hub/events?topic=https%3A%2F%2Fexample.org%2Fno").status, 404);
    assert_eq!(pushing.served.get("/hub/events").status, 400);
    let notes = pushing.served.get("/hub/events?topic=abreast%3Ato-be-fetched");
    assert_eq!(notes.status, 404, "what the hub notes for itself is told to nobody");
    let head = pushing.served.ask("HEAD", TOPIC_PATH, &[accept]);
    assert_eq!((head.status, head.header("content-type").as_str()), (200, "text/event-stream"));
}

#[test]
fn streams_end_when_the_server_stops() {
    let pushing = Pushing::with(
        ServerOptions { stop_timeout: Duration::from_secs(20), ..ServerOptions::default() },
        |_| {},
    );
    let mut streams: Vec<_> = (0..20)
        .map(|_| pushing.stream(TOPIC_PATH, &[("Accept", "text/html, text/event-stream;q=0.9")]))
        .collect();
    pushing.say("last");
    for stream in &mut streams {
        assert_eq!(stream.next().data, b"last");
    }
    let begun = Instant::now();
    pushing.served.tell_stop();
    assert!(streams.iter_mut().all(Stream::ends));
    eventually("the server ends", || pushing.served.has_ended());
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "streams end by themselves: {:?}",
        begun.elapsed()
    );
}

#[test]
fn the_hub_takes_requests_to_subscribe() {
    let pushing = Pushing::new();
    let form = |body: &str| pushing.ask("POST", "/hub", &[("Content-Type", FORM)], body.as_bytes());
    let topic = "https%3A%2F%2Fexample.org%2Fset%2Fnotify%2Fchange";
    let wish = |topic: &str| {
        format!("hub.mode=subscribe&hub.topic={topic}&hub.callback=http%3A%2F%2F127.0.0.1%3A9%2Fc")
    };
    assert_eq!(form(&wish(topic)).status, 202);
    let unknown = form(&wish("https%3A%2F%2Fexample.org%2Fother"));
    assert!((400..500).contains(&unknown.status), "{}", unknown.text());
    assert_eq!(form("hub.mode=subscribe").status, 400);
    let kind = pushing.ask("POST", "/hub", &[], b"hub.mode=subscribe");
    assert_eq!(kind.status, 415, "{}", kind.text());
    let method = pushing.ask("PUT", "/hub", &[], b"x");
    assert_eq!((method.status, method.header("allow").as_str()), (405, "GET, HEAD, POST"));
    let page = pushing.served.get("/hub");
    assert!(page.text().contains("https://example.org/hub/events?topic=URL"), "{}", page.text());
}

#[test]
fn strangers_publish_only_the_content_of_their_topics() {
    let pushing = Pushing::new();
    let links =
        |topic: &str| format!("<{topic}>; rel=\"self\", <https://example.org/hub>; rel=\"hub\"");
    let send = |topic: &str, token: &str, body: &[u8]| {
        let link = links(topic);
        let mut headers = vec![("Content-Type", "text/plain"), ("Link", link.as_str())];
        headers.extend((!token.is_empty()).then_some(("Authorization", token)));
        pushing.ask("POST", "/hub", &headers, body)
    };
    let writer = pushing.token("publisher", Scope::Write);
    let reader = pushing.token("reader", Scope::Read);
    let ours = "https://elsewhere.example/topic";
    for (topic, token, expected) in [
        (ours, writer.as_str(), 200),
        (ours, "Bearer abreast_guessed", 401),
        (ours, reader.as_str(), 401),
        // The topic's own host does not answer.
        (ours, "", 403),
        ("https://stranger.example/topic", "", 401),
        // Nobody but the Source speaks for its own topics.
        (TOPIC, "", 403),
        (TOPIC, writer.as_str(), 403),
    ] {
        let reply = send(topic, token, b"x");
        assert_eq!(reply.status, expected, "{topic} {token}: {}", reply.text());
    }
    let accepted = send(ours, &writer, b"second");
    assert_eq!(accepted.header("abreast-offset"), "2");
    let mut stream = pushing.stream(
        "/hub/events?topic=https%3A%2F%2Felsewhere.example%2Ftopic",
        &[("Last-Event-ID", "1")],
    );
    assert_eq!(text(&stream.next()), ("2", "second"));
    assert_eq!(pushing.hub.store().head(pushing.topic).unwrap(), Offset(0));
    let said = |topic: &str| {
        let body = format!("hub.mode=publish&hub.url={topic}");
        pushing.ask("POST", "/hub", &[("Content-Type", FORM)], body.as_bytes()).status
    };
    assert_eq!(said("https%3A%2F%2Felsewhere.example%2Ftopic"), 202);
    assert_eq!(said("https%3A%2F%2Fstranger.example%2Ftopic"), 403);
}

#[test]
fn more_than_the_limit_is_not_read() {
    let pushing = Pushing::with(ServerOptions::default(), |options| options.max_body = 100_000);
    let token = pushing.token("publisher", Scope::Write);
    let link = "<https://elsewhere.example/topic>; rel=\"self\"";
    let headers =
        [("Content-Type", "text/plain"), ("Link", link), ("Authorization", token.as_str())];
    assert_eq!(pushing.ask("POST", "/hub", &headers, &vec![b'x'; 100_000]).status, 200);
    let refused = pushing.ask("POST", "/hub", &headers, &vec![b'x'; 100_001]);
    assert_eq!((refused.status, refused.header("connection").as_str()), (413, "close"));
}

/// A topic on 127.0.0.1 that names the hub, which anybody may publish in from the topic's host.
fn topic_of_this_machine() -> (http::Server, String) {
    let links = "<{}>; rel=\"self\", <https://example.org/hub>; rel=\"hub\"";
    let server = http::Server::new(move |request, stream| {
        let own = format!("http://{}/t", request.header("host").unwrap_or_default());
        let headers =
            format!("Content-Type: text/plain\r\nLink: {}\r\n", links.replace("{}", &own));
        http::send(stream, "200 OK", &headers, b"content")
    });
    let url = server.url("/t");
    (server, url)
}

#[test]
fn forwarded_requests_are_not_of_the_topics_host() {
    let (_topic, url) = topic_of_this_machine();
    let link = format!("<{url}>; rel=\"self\"");
    for (trusted, header, status) in [
        (None, None, 200),
        (None, Some(("X-Forwarded-For", "203.0.113.9")), 403),
        (None, Some(("X-Forwarded-For", "127.0.0.1")), 403),
        (None, Some(("Forwarded", "for=203.0.113.9")), 403),
        (None, Some(("Via", "1.1 proxy")), 403),
        (None, Some(("X-Real-IP", "203.0.113.9")), 403),
        (Some("127.0.0.0/8"), None, 403),
        (Some("127.0.0.0/8"), Some(("X-Forwarded-For", "127.0.0.1")), 403),
        (Some("127.0.0.0/8"), Some(("X-Forwarded-For", "203.0.113.9")), 403),
        (Some("203.0.113.0/24"), None, 200),
    ] {
        let trusted_proxies = TrustedProxies::parse(trusted).unwrap();
        let server = ServerOptions { trusted_proxies, ..ServerOptions::default() };
        let pushing = Pushing::with(server, |options| options.open = true);
        let headers: Vec<_> =
            [("Content-Type", "text/plain"), ("Link", &link)].into_iter().chain(header).collect();
        let answer = pushing.ask("POST", "/hub", &headers, b"forged");
        assert_eq!(answer.status, status, "{trusted:?} {header:?}: {answer:?}");
    }
}

#[test]
fn event_streams_are_for_clients_that_want_them() {
    let pushing = Pushing::new();
    pushing.say("one");
    for accept in [
        "text/event-stream;q=0",
        "text/event-stream; q=0.0, */*",
        "application/xml, text/event-stream;q=0.1",
    ] {
        let answer = pushing.served.ask("GET", TOPIC_PATH, &[("Accept", accept)]);
        let of = (answer.status, answer.header("content-type"), answer.header("vary"));
        assert_eq!((of.0, of.2.as_str()), (200, "Accept"), "{accept}");
        assert_ne!(of.1, "text/event-stream", "{accept}");
    }
    let _stream = pushing.stream(TOPIC_PATH, &[("Accept", "*/*, text/event-stream")]);
}
