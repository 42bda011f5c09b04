//! A hub for a test, with times that suit it.

use crate::server::{Server, encode};
use abreast_core::hub::{Target, TargetId};
use abreast_core::{LogError, Position, SystemClock};
use abreast_hub::{
    Client, Hub, HubAnswer, HubOptions, HubRequest, NoPayloads, Payloads, Publisher,
};
use abreast_store::hub::SqliteHub;
use abreast_testkit::eventually_some;
use abreast_websub::LeaseLimits;
use bytes::Bytes;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const HUB: &str = "http://127.0.0.1:1/hub";
pub(crate) const TOPIC: &str = "http://example.org/topic";

pub(crate) struct Bed {
    pub(crate) hub: Hub,
    store: Arc<SqliteHub>,
    options: HubOptions,
    payloads: Arc<dyn Payloads>,
    folder: TempDir,
}

/// Quick times; callbacks and topics on this machine are allowed, and all topics below
/// `example.org`.
pub(crate) fn options() -> HubOptions {
    let ms = Duration::from_millis;
    let mut options = HubOptions::new(HUB);
    options.allow_topics = vec!["http://example.org/".to_owned()];
    options.private_callbacks = true;
    options.private_topics = true;
    options.leases = LeaseLimits::new(
        Duration::from_secs(3_600),
        Duration::from_secs(1),
        Duration::from_secs(86_400),
    );
    options.lease_sweep = ms(50);
    options.save_every = ms(20);
    options.retries.base = ms(20);
    options.retries.most = ms(200);
    options.verification.retry = ms(20);
    options.verification.refused_burst = 100;
    options.sending.total = Duration::from_secs(10);
    options
}

impl Bed {
    pub(crate) fn new(options: HubOptions) -> Self {
        Self::with_payloads(options, Arc::new(NoPayloads))
    }

    pub(crate) fn with_payloads(options: HubOptions, payloads: Arc<dyn Payloads>) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), options, payloads)
    }

    fn in_folder(folder: TempDir, options: HubOptions, payloads: Arc<dyn Payloads>) -> Self {
        let open = || SqliteHub::open(&folder.path().join("hub.db"), Arc::new(SystemClock));
        // The one before may need a moment to let go.
        let store = Arc::new(eventually_some("the store", || open().ok()));
        let hub =
            Hub::start(options.clone(), Arc::clone(&store) as _, Arc::clone(&payloads)).unwrap();
        Self { hub, store, options, payloads, folder }
    }

    /// Stops the hub, opens its store again and starts another.
    pub(crate) fn restart(self) -> Self {
        self.restart_with(|_| ())
    }

    /// The same; before it starts, something is done with its store.
    pub(crate) fn restart_with(self, work: impl FnOnce(&SqliteHub)) -> Self {
        self.restart_as(|_| (), work)
    }

    /// The same with other options.
    pub(crate) fn restart_as(
        self,
        change: impl FnOnce(&mut HubOptions),
        work: impl FnOnce(&SqliteHub),
    ) -> Self {
        let Self { hub, store, mut options, payloads, folder } = self;
        change(&mut options);
        hub.stop();
        drop(hub);
        work(&store);
        store.close();
        drop(store);
        Self::in_folder(folder, options, payloads)
    }

    /// As after a crash: what is not recorded yet is lost.
    pub(crate) fn crash(self) -> Self {
        let Self { hub, store, options, payloads, folder } = self;
        store.close();
        drop(store);
        drop(hub);
        Self::in_folder(folder, options, payloads)
    }

    pub(crate) fn post(&self, request: HubRequest) -> HubAnswer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.hub.handle(request))
    }

    pub(crate) fn form(&self, body: &str) -> HubAnswer {
        self.post(HubRequest {
            content_type: "application/x-www-form-urlencoded".to_owned(),
            links: Vec::new(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            client: Client::direct(IpAddr::V4(Ipv4Addr::LOCALHOST))
                .as_publisher(Publisher::Anonymous),
        })
    }

    /// Posts to where [`TOPIC`] is subscribed to by HTTP callback.
    pub(crate) fn call_back(&self, content_type: &str, body: impl AsRef<[u8]>) -> HubAnswer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::direct(IpAddr::V4(Ipv4Addr::LOCALHOST));
        runtime.block_on(self.hub.call_back(TOPIC, content_type, body.as_ref(), client))
    }

    /// Asks for a subscription; `more` are further parameters.
    pub(crate) fn ask(&self, mode: &str, topic: &str, callback: &str, more: &str) -> HubAnswer {
        let (topic, callback) = (encode(topic), encode(callback));
        self.form(&format!("hub.mode={mode}&hub.topic={topic}&hub.callback={callback}{more}"))
    }

    /// Subscribes and waits until that counts.
    pub(crate) fn subscribe(&self, topic: &str, callback: &str, more: &str) -> Target {
        let before = self.target(topic, callback);
        let answer = self.ask("subscribe", topic, callback, more);
        assert_eq!(answer.status, 202, "{}", answer.body);
        let renewed = |target: &Target| {
            before.as_ref().is_none_or(|before| before.generation != target.generation)
        };
        eventually_some("a subscription", || self.target(topic, callback).filter(renewed))
    }

    pub(crate) fn target(&self, topic: &str, callback: &str) -> Option<Target> {
        let topic = self.hub.topic(topic)?;
        let targets = self.hub.targets(Some(topic), TargetId(0), 10_000).unwrap();
        targets.into_iter().find(|target| target.address == callback)
    }

    /// Publishes and waits until that is durable.
    pub(crate) fn publish(&self, topic: &str, media_type: &str, body: &[u8]) -> HubAnswer {
        self.publish_as(Publisher::Local, topic, media_type, body)
    }

    pub(crate) fn publish_as(
        &self,
        publisher: Publisher,
        topic: &str,
        media_type: &str,
        body: &[u8],
    ) -> HubAnswer {
        self.post(HubRequest {
            content_type: media_type.to_owned(),
            links: vec![format!("<{topic}>; rel=\"self\""), format!("<{HUB}>; rel=\"hub\"")],
            body: Bytes::copy_from_slice(body),
            client: Client::direct(IpAddr::V4(Ipv4Addr::LOCALHOST)).as_publisher(publisher),
        })
    }

    /// Publishes text in [`TOPIC`].
    pub(crate) fn say(&self, text: &str) {
        let answer = self.publish(TOPIC, "text/plain", text.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

/// A hub with one subscriber of [`TOPIC`].
pub(crate) fn subscribed(options: HubOptions, subscriber: &Server, more: &str) -> (Bed, Target) {
    let bed = Bed::new(options);
    let target = bed.subscribe(TOPIC, &subscriber.url("/c"), more);
    (bed, target)
}

/// Notifications that count.
pub(crate) struct Ranges;

impl Payloads for Ranges {
    fn render(&self, topic_url: &str, after: Position, last: Position) -> Result<Bytes, LogError> {
        Ok(format!("{topic_url} {}..{}", after.0, last.0).into())
    }
}
