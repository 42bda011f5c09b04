//! The W3C suite's scenarios for hubs, replayed: a topic that is fetched, and one subscriber.

use crate::bed::{Bed, HUB, options};
use crate::server::{Delivery as _, Got, Reply, Server, encode};
use abreast_testkit::eventually_some;
use std::sync::{Arc, Mutex};

/// A topic that can be changed, and its server.
struct Topic {
    server: Server,
    content: Arc<Mutex<(String, String)>>,
}

impl Topic {
    fn new(media_type: &str) -> Self {
        let content = Arc::new(Mutex::new((media_type.to_owned(), "first".to_owned())));
        let shown = content.clone();
        let url = Arc::new(Mutex::new(String::new()));
        let own = url.clone();
        let server = Server::new(move |_| {
            let (media_type, body) = shown.lock().unwrap().clone();
            let links = format!("<{}>; rel=\"self\", <{HUB}>; rel=\"hub\"", own.lock().unwrap());
            Reply::Full(200, vec![("Content-Type", media_type), ("Link", links)], body.into_bytes())
        });
        *url.lock().unwrap() = server.url("/blog");
        Self { server, content }
    }

    fn url(&self) -> String {
        self.server.url("/blog")
    }

    /// Changes it and notifies the hub as the suite's publisher does.
    fn change(&self, bed: &Bed, body: &str) {
        body.clone_into(&mut self.content.lock().unwrap().1);
        let answer = bed.form(&format!("hub.mode=publish&hub.topic={}", encode(&self.url())));
        assert!((200..300).contains(&answer.status), "{answer:?}");
    }

    fn check(&self, got: &Got, body: &str) {
        assert_eq!(got.text(), body);
        assert_eq!(got.header("content-type"), Some(self.content.lock().unwrap().0.as_str()));
        let link = got.header("link").unwrap();
        assert_eq!(link, format!("<{HUB}>; rel=\"hub\", <{}>; rel=\"self\"", self.url()));
        assert_eq!(got.headers().filter(|(name, _)| name.eq_ignore_ascii_case("link")).count(), 1);
    }
}

fn bed() -> Bed {
    let mut options = options();
    options.open = true;
    options.allow_topics.clear();
    Bed::new(options)
}

fn scenario(media_type: &str, more: &str) -> (Bed, Topic, Server, Got) {
    let (bed, topic, subscriber) = (bed(), Topic::new(media_type), Server::willing());
    bed.subscribe(&topic.url(), &subscriber.url("/c"), more);
    let asked = subscriber.wait_questions(1)[0].query();
    assert_eq!((asked["hub.mode"].as_str(), &asked["hub.topic"]), ("subscribe", &topic.url()));
    assert!(asked["hub.lease_seconds"].parse::<u64>().unwrap() > 0);
    topic.change(&bed, "second");
    let got = subscriber.wait_deliveries(1).remove(0);
    topic.check(&got, "second");
    (bed, topic, subscriber, got)
}

#[test]
fn basic() {
    let (.., got) = scenario("text/html", "");
    assert_eq!(got.header("x-hub-signature"), None);
}

#[test]
fn signed() {
    let (.., got) = scenario("text/html; charset=utf-8", "&hub.secret=0123456789abcdefghij");
    let signature = crate::delivery::signature(b"0123456789abcdefghij", &got.body);
    assert_eq!(got.header("x-hub-signature"), Some(signature.as_str()));
}

#[test]
fn extra_parameters_are_ignored() {
    scenario("text/html", "&foo=bar&hub.foo=hub.bar");
}

#[test]
fn subscribing_again_gives_one_delivery() {
    let (bed, topic, subscriber, _) = scenario("text/html", "");
    bed.subscribe(&topic.url(), &subscriber.url("/c"), "");
    topic.change(&bed, "third");
    topic.check(&subscriber.wait_deliveries(2)[1], "third");
    topic.change(&bed, "fourth");
    topic.check(&subscriber.wait_deliveries(3)[2], "fourth");
}

#[test]
fn unsubscribing_ends_deliveries() {
    let (bed, topic, subscriber, _) = scenario("text/html", "");
    let other = Server::willing();
    bed.subscribe(&topic.url(), &other.url("/other"), "");
    assert_eq!(
        bed.ask("unsubscribe", &topic.url(), &subscriber.url("/c"), "&hub.lease_seconds=5").status,
        202
    );
    let asked = subscriber.wait_questions(2)[1].query();
    assert_eq!((asked["hub.mode"].as_str(), &asked["hub.topic"]), ("unsubscribe", &topic.url()));
    eventually_some("the end", || {
        bed.target(&topic.url(), &subscriber.url("/c")).is_none().then_some(())
    });
    topic.change(&bed, "third");
    topic.check(&other.wait_deliveries(1)[0], "third");
    assert_eq!(subscriber.deliveries().len(), 1);
}

#[test]
fn plain_text() {
    scenario("text/plain", "");
}

#[test]
fn json() {
    scenario("application/json", "");
}
