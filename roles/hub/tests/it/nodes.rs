//! Nodes of a real XMPP service: everything arrives in order, whatever fails on the way.

use crate::bed;
use abreast_core::hub::{TargetId, TargetKind};
use abreast_core::{LogError, NewNotification, Payload, Position, SystemClock};
use abreast_hub::{Hub, HubOptions, Payloads, SubmissionKind, keep_submissions};
use abreast_store::hub::SqliteHub;
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, Prosody, SERVICE};
use abreast_testkit::{eventually, eventually_some, tls};
use abreast_xmpp::{Account, Event, Events, Node, Session};
use bytes::Bytes;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) const TOPIC: &str = "http://example.org/papers/v0.1/notify/changeset";

pub(crate) fn program(test: &str) -> Option<PathBuf> {
    abreast_testkit::provided(test, "ABREAST_TEST_PROSODY")
}

pub(crate) fn account(server: &Prosody, user: &str, password: &str) -> Account {
    let mut account = Account::new(&format!("{user}@{DOMAIN}"), password).unwrap();
    account.server = Some(server.address());
    account.ca_file = Some(server.ca_file());
    account
}

pub(crate) fn node() -> Node {
    Node::new(SERVICE, "papers").unwrap()
}

/// Change sets with an entry of about that many bytes for each position; what is divided by 1,000 is
/// larger than any stanza.
pub(crate) struct ChangeSets(usize);

impl Payloads for ChangeSets {
    fn render(&self, _: &str, after: Position, last: Position) -> Result<Bytes, LogError> {
        let mut text = "<?xml version=\"1.0\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">".to_owned();
        for position in after.0 + 1..=last.0 {
            let size = if position % 1_000 == 0 { 1 << 20 } else { self.0 };
            let _ = write!(
                text,
                "<url><loc>http://example.org/{position}/{}</loc></url>",
                "x".repeat(size)
            );
        }
        text.push_str("</urlset>");
        Ok(text.into())
    }
}

/// A hub with its store, which may be started again.
pub(crate) struct Service {
    pub(crate) hub: Hub,
    store: Arc<SqliteHub>,
    folder: TempDir,
}

impl Service {
    pub(crate) fn start(account: Account, entry: usize) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), account, entry)
    }

    fn start_in(folder: TempDir, account: Account, entry: usize) -> Self {
        let mut options: HubOptions = bed::options();
        options.xmpp = Some(account);
        let store = SqliteHub::open(&folder.path().join("hub.db"), Arc::new(SystemClock)).unwrap();
        let store = Arc::new(store);
        let wanted = [(node().to_string(), SubmissionKind::Node)];
        keep_submissions(&*store, &wanted).unwrap();
        let hub =
            Hub::start(options, Arc::clone(&store) as _, Arc::new(ChangeSets(entry))).unwrap();
        hub.own_topic(TOPIC).unwrap();
        hub.submit_to(TOPIC, &wanted[0].0, SubmissionKind::Node).unwrap();
        Self { hub, store, folder }
    }

    pub(crate) fn restart(self, account: Account, entry: usize) -> Self {
        let Self { hub, store, folder } = self;
        hub.stop();
        store.close();
        drop(store);
        drop(hub);
        Self::start_in(folder, account, entry)
    }

    /// Publishes changes, in notifications of a thousand at most.
    pub(crate) fn publish(&self, mut after: u64, last: u64) {
        let topic = self.hub.own_topic(TOPIC).unwrap();
        while after < last {
            let end = (after + 1_000).min(last);
            let new = NewNotification {
                media_type: "application/xml".to_owned(),
                links: String::new(),
                payload: Payload::Changes { after: Position(after), last: Position(end) },
            };
            abreast_core::publish(&**self.hub.store(), topic, new).unwrap();
            after = end;
        }
        self.hub.published(topic);
    }

    pub(crate) fn wait_until_delivered(&self) {
        eventually("everything is delivered", || {
            let target = self.hub.targets(None, TargetId(0), 1).unwrap().remove(0);
            target.cursor == self.hub.store().head(target.topic).unwrap()
        });
    }
}

/// A subscriber, which keeps what it receives.
pub(crate) struct Reader {
    runtime: Runtime,
    _session: Session,
    events: Events,
}

impl Reader {
    fn subscribe(server: &Prosody) -> Self {
        let runtime = Runtime::new().unwrap();
        let (session, events) = runtime.block_on(async {
            let account = account(server, "reader", PASSWORD);
            let (session, events) = Session::connect(&account, SERVICE).await.unwrap();
            session.subscribe(&node()).await.unwrap();
            session.be_present().await.unwrap();
            (session, events)
        });
        Self { runtime, _session: session, events }
    }

    /// The items up to one, with the positions in each.
    fn read_to(&mut self, last: u64) -> Vec<(u64, Vec<u64>)> {
        let mut items = Vec::new();
        self.runtime.block_on(async {
            while items.last().is_none_or(|(id, _)| *id < last) {
                let next = tokio::time::timeout(Duration::from_secs(60), self.events.next());
                let event = next
                    .await
                    .unwrap_or_else(|_| panic!("no item after {:?}", items.last()))
                    .unwrap();
                let Event::Item(item) = event else { panic!("{event:?}") };
                let payload = item.payload.unwrap();
                let positions = payload.split("http://example.org/").skip(1);
                let positions =
                    positions.map(|part| part.split('/').next().unwrap().parse().unwrap());
                items.push((item.id.parse().unwrap(), positions.collect()));
            }
        });
        items
    }
}

/// Makes the node, so that a reader can subscribe before anything is published.
fn make_node(server: &Prosody) {
    Runtime::new().unwrap().block_on(async {
        let account = account(server, "source", PASSWORD);
        let (session, _events) = Session::connect(&account, SERVICE).await.unwrap();
        session.create(&node(), "", "").await.unwrap();
    });
}

#[test]
fn large_change_sets_are_published_in_parts() {
    let Some(program) = program("large_change_sets_are_published_in_parts") else { return };
    let server = Prosody::start(&program);
    make_node(&server);
    let mut reader = Reader::subscribe(&server);
    let service = Service::start(account(&server, "source", PASSWORD), 1_000);
    service.publish(0, 1_001);
    let items = reader.read_to(1_001);
    let positions: Vec<u64> = items.iter().flat_map(|(_, positions)| positions.clone()).collect();
    // The one that is larger than any stanza is announced without its entry.
    let expected: Vec<u64> = (1..=1_001).filter(|position| *position != 1_000).collect();
    assert_eq!(positions, expected);
    assert!(items.len() > 5, "{}", items.len());
    for (id, positions) in &items {
        assert_eq!(positions.last().unwrap_or(&1_000), id, "an item is named by its last change");
    }
    service.wait_until_delivered();
    assert!(service.hub.failing_hubs().is_empty());
    let target = service.hub.targets(None, TargetId(0), 1).unwrap().remove(0);
    assert_eq!((target.kind, target.address), (TargetKind::Node, node().to_string()));
}

#[test]
fn smaller_limits_of_a_server_are_learned() {
    let Some(program) = program("smaller_limits_of_a_server_are_learned") else { return };
    let authority = tls::Authority::default();
    let server = Prosody::start_with(
        &program,
        &authority.server(&[DOMAIN], false),
        authority.pem(),
        "c2s_stanza_size_limit = 60000",
    );
    make_node(&server);
    let mut reader = Reader::subscribe(&server);
    let service = Service::start(account(&server, "source", PASSWORD), 100);
    service.publish(0, 999);
    let positions: Vec<u64> =
        reader.read_to(999).into_iter().flat_map(|(_, positions)| positions).collect();
    assert_eq!(positions, (1..=999).collect::<Vec<_>>());
    service.wait_until_delivered();
}

#[test]
fn nothing_is_lost_while_the_server_is_away() {
    let Some(program) = program("nothing_is_lost_while_the_server_is_away") else { return };
    let mut server = Prosody::start(&program);
    let service = Service::start(account(&server, "source", PASSWORD), 10);
    service.publish(0, 999);
    service.wait_until_delivered();
    server.kill();
    service.publish(999, 1_998);
    eventually("it is shown", || !service.hub.failing_hubs().is_empty());
    let shown = service.hub.failing_hubs()[0].to_string();
    for part in [
        "node xmpp:pubsub.xmpp.test?;node=papers",
        "does not accept",
        "check that the XMPP server runs",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let listed = service.hub.targets(None, TargetId(0), 9).unwrap();
    assert!(listed[0].attempts > 0 && listed[0].first_failed.is_some(), "{listed:?}");
    server.restart();
    let mut reader = Reader::subscribe_when_there(&server);
    service.wait_until_delivered();
    service.publish(1_998, 2_997);
    // What was published before it subscribed is in the node.
    let last = reader.read_to(2_997);
    assert!(last.windows(2).all(|pair| pair[0].0 < pair[1].0), "{:?}", last.len());
    assert!(service.hub.failing_hubs().is_empty());
}

impl Reader {
    /// The same once the node is there.
    fn subscribe_when_there(server: &Prosody) -> Self {
        let runtime = Runtime::new().unwrap();
        let (session, events) = eventually_some("the node", || {
            runtime.block_on(async {
                let account = account(server, "reader", PASSWORD);
                let (session, events) = Session::connect(&account, SERVICE).await.ok()?;
                session.subscribe(&node()).await.ok()?;
                session.be_present().await.ok()?;
                Some((session, events))
            })
        });
        Self { runtime, _session: session, events }
    }
}

#[test]
fn refusals_are_shown_until_they_end() {
    let Some(program) = program("refusals_are_shown_until_they_end") else { return };
    let server = Prosody::start(&program);
    make_node(&server);
    let mut reader = Reader::subscribe(&server);
    // A wrong password.
    let service = Service::start(account(&server, "source", "guessed"), 10);
    service.publish(0, 1);
    let failing = |service: &Service, status| {
        eventually_some("it is shown", || {
            service.hub.failing_hubs().pop().filter(|failing| failing.status == Some(status))
        })
    };
    let shown = failing(&service, 401);
    assert!(shown.refuses() && shown.to_string().contains("check `xmpp.jid`"), "{shown}");
    let attempts = service.hub.store();
    let why = eventually_some("an attempt", || {
        attempts.attempts(shown.target).unwrap().pop().and_then(|attempt| attempt.error)
    });
    assert!(why.contains("does not accept source@xmpp.test") && !why.contains("guessed"), "{why}");
    // A certificate of an authority that is not trusted.
    let mut untrusting = account(&server, "source", PASSWORD);
    let other = service.folder.path().join("other.pem");
    std::fs::write(&other, tls::Authority::default().pem()).unwrap();
    untrusting.ca_file = Some(other);
    let service = service.restart(untrusting, 10);
    let attempts = service.hub.store();
    let why = eventually_some("an attempt", || {
        let attempts = attempts.attempts(shown.target).unwrap();
        attempts.into_iter().filter_map(|attempt| attempt.error).find(|why| why.contains("secure"))
    });
    assert!(why.contains("its certificate is not signed by"), "{why}");
    // Not a publisher.
    let service = service.restart(account(&server, "stranger", PASSWORD), 10);
    let shown = failing(&service, 403);
    assert!(shown.refuses() && shown.to_string().contains("xmpp_node"), "{shown}");
    // The right account continues where the others did not begin.
    let service = service.restart(account(&server, "source", PASSWORD), 10);
    service.publish(1, 2);
    // Together, if the second is there before the first is published.
    let items = reader.read_to(2);
    let positions: Vec<u64> = items.iter().flat_map(|(_, positions)| positions.clone()).collect();
    assert_eq!((positions, items.last().map(|item| item.0)), (vec![1, 2], Some(2)), "{items:?}");
    eventually("it is no longer shown", || service.hub.failing_hubs().is_empty());
}

#[test]
fn nodes_of_other_sets_get_nothing() {
    let Some(program) = program("nodes_of_other_sets_get_nothing") else { return };
    let server = Prosody::start(&program);
    let service = Service::start(account(&server, "source", PASSWORD), 10);
    service.hub.keep_nodes(&HashMap::from([(TOPIC.to_owned(), node().to_string())])).unwrap();
    assert_eq!(service.hub.metrics().targets, 1);
    let other = Node::new(SERVICE, "other").unwrap().to_string();
    service.hub.keep_nodes(&HashMap::from([(TOPIC.to_owned(), other)])).unwrap();
    assert_eq!(service.hub.metrics().targets, 0);
}

#[test]
fn hub_kills_lose_no_item_and_reorder_none() {
    let Some(program) = program("hub_kills_lose_no_item_and_reorder_none") else { return };
    let server = Prosody::start(&program);
    make_node(&server);
    let mut reader = Reader::subscribe(&server);
    // Read while they are published: few events are kept for a reader that waits.
    let reading = std::thread::spawn(move || reader.read_to(4_500));
    let mut service = Service::start(account(&server, "source", PASSWORD), 100);
    for round in 0..5 {
        service.publish(round * 900, round * 900 + 900);
        service = service.restart(account(&server, "source", PASSWORD), 100);
    }
    let items = reading.join().unwrap();
    let mut next = 1;
    for (id, mut positions) in items {
        // An item may come again, after a restart, but never an older one after a newer one.
        if positions.is_empty() {
            // Larger than any stanza: it is announced only.
            positions.push(id);
        }
        let fresh: Vec<u64> = positions.into_iter().filter(|position| *position >= next).collect();
        if let (Some(first), Some(last)) = (fresh.first(), fresh.last()) {
            assert_eq!((*first, *last), (next, id));
            next = id + 1;
        }
    }
    assert_eq!(next, 4_501);
}
