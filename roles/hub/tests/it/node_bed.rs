//! Several hubs of this process on one store, as nodes of separate processes.

use crate::bed::{HUB, TOPIC, options};
use crate::server::{Delivery as _, Got, Server, encode};
use crate::shared::{SHARDS, Shared, SharedHub};
use abreast_core::SystemClock;
use abreast_core::hub::{HubStore as _, Target, TargetKind};
use abreast_hub::{Client, Hub, HubAnswer, HubOptions, HubRequest, NoPayloads, Publisher};
use abreast_store::hub::SqliteHub;
use abreast_testkit::{eventually, eventually_some};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const LEASE: Duration = Duration::from_millis(300);
/// Subscriptions of a test, so that both of two nodes have some.
pub(crate) const SUBSCRIPTIONS: usize = 12;

pub(crate) struct Nodes {
    pub(crate) shared: Arc<Shared>,
    _folder: TempDir,
}

pub(crate) struct Node {
    pub(crate) number: usize,
    pub(crate) hub: Hub,
    pub(crate) store: Arc<SharedHub>,
}

impl Nodes {
    pub(crate) fn new(lease: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hub.db");
        let hub = SqliteHub::open(&path, Arc::new(SystemClock)).unwrap();
        Self { shared: Shared::new(Arc::new(hub), lease), _folder: folder }
    }

    pub(crate) fn start(&self, number: usize) -> Node {
        self.start_with(number, options())
    }

    /// Starts a node whose deliveries show its number.
    pub(crate) fn start_with(&self, number: usize, options: HubOptions) -> Node {
        let options = HubOptions { url: format!("{HUB}/{number}"), ..options };
        let store = self.shared.node(number);
        let hub = Hub::start(options, Arc::clone(&store) as _, Arc::new(NoPayloads)).unwrap();
        Node { number, hub, store }
    }

    /// Two nodes, after they have divided the shards.
    pub(crate) fn pair(&self) -> (Node, Node) {
        let first = self.start(0);
        eventually("all shards", || self.shared.shards_of(0) == SHARDS);
        let second = self.start(1);
        self.wait_shards(&second, SHARDS / 2);
        (first, second)
    }

    pub(crate) fn wait_shards(&self, node: &Node, count: usize) {
        eventually("the shards", || self.shared.shards_of(node.number) == count);
    }

    /// The subscription of this callback to [`TOPIC`].
    pub(crate) fn target(&self, callback: &str) -> Option<Target> {
        let hub = self.shared.hub();
        let topic = hub.find_topic(TOPIC).unwrap()?;
        hub.find_target(topic, callback, TargetKind::Subscription).unwrap()
    }

    /// Subscribes callbacks `/0`, `/1` … one after the other, through these nodes in turn. Returns
    /// their targets, in this order and the order of their numbers.
    pub(crate) fn subscribe(&self, nodes: &[&Node], server: &Server) -> Vec<Target> {
        let subscribe = |number: usize| {
            let callback = server.url(&format!("/{number}"));
            assert_eq!(nodes[number % nodes.len()].ask("subscribe", &callback).status, 202);
            eventually_some("a subscription", || self.target(&callback))
        };
        (0..SUBSCRIPTIONS).map(subscribe).collect()
    }
}

impl Node {
    pub(crate) fn post(
        &self,
        content_type: &str,
        links: Vec<String>,
        body: &str,
        by: Publisher,
    ) -> HubAnswer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.hub.handle(HubRequest {
            content_type: content_type.to_owned(),
            links,
            body: body.to_owned().into(),
            client: Client::direct(IpAddr::V4(Ipv4Addr::LOCALHOST)).as_publisher(by),
        }))
    }

    pub(crate) fn ask(&self, mode: &str, callback: &str) -> HubAnswer {
        let (topic, callback) = (encode(TOPIC), encode(callback));
        self.form(&format!("hub.mode={mode}&hub.topic={topic}&hub.callback={callback}"))
    }

    pub(crate) fn form(&self, form: &str) -> HubAnswer {
        let content_type = "application/x-www-form-urlencoded";
        self.post(content_type, Vec::new(), form, Publisher::Anonymous)
    }

    pub(crate) fn say(&self, text: &str) {
        let links = vec![format!("<{TOPIC}>; rel=\"self\""), format!("<{HUB}>; rel=\"hub\"")];
        let answer = self.post("text/plain", links, text, Publisher::Local);
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    /// As after a crash: other nodes get nothing from this one.
    pub(crate) fn disappear(self) {
        self.store.cut(true);
        self.hub.stop();
    }
}

/// The number of the node that sent a delivery.
pub(crate) fn sender(got: &Got) -> usize {
    let links = got.header("link").unwrap();
    let (_, rest) = links.split_once(&format!("<{HUB}/")).unwrap();
    rest.split_once('>').unwrap().0.parse().unwrap()
}

/// Offsets that a callback got, in order.
pub(crate) fn offsets(seen: &[Got], path: &str) -> Vec<u64> {
    let of_callback = |got: &&Got| got.is_delivery() && got.path() == path;
    seen.iter().filter(of_callback).map(Got::offset).collect()
}

/// Waits until every callback has the last notification.
pub(crate) fn wait_all(server: &Server, last: u64) -> Vec<Got> {
    server.wait("all notifications", |seen| {
        (0..SUBSCRIPTIONS).all(|number| offsets(seen, &format!("/{number}")).contains(&last))
    })
}

/// Asserts that each callback got every notification, in order but for repetitions.
pub(crate) fn assert_complete(seen: &[Got], last: u64) {
    for number in 0..SUBSCRIPTIONS {
        let got = offsets(seen, &format!("/{number}"));
        let mut furthest = 0;
        for offset in got {
            assert!(offset <= furthest + 1, "callback {number}: {offset} after {furthest}");
            furthest = furthest.max(offset);
        }
        assert_eq!(furthest, last, "callback {number}");
    }
}
