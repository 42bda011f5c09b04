//! Which request a refusal is for, and what is received in excess.

use super::{next, scripted};
use abreast_testkit::xmpp::SERVICE;
use abreast_testkit::xmpp::scripted::{self, Scripted, accept, error, result};
use abreast_xmpp::{ErrorKind, Event, Node, SENT_MAX, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn payload(bytes: usize) -> Vec<u8> {
    let part = format!("<b>{}</b>", "x".repeat(993));
    format!("<a xmlns='urn:x'>{}</a>", part.repeat(bytes / 1_000)).into_bytes()
}

fn node() -> Node {
    Node::new("pubsub.xmpp.test", "n").unwrap()
}

#[tokio::test]
async fn a_refused_stanza_is_an_error_of_its_request_only() {
    let server = Scripted::with_limit(50_000, |stanza| {
        // Small ones get no answer.
        if stanza.contains("<publish") { String::new() } else { accept(stanza) }
    });
    let (session, mut events) =
        Session::connect(&scripted(&server), "pubsub.xmpp.test").await.unwrap();
    let session = Arc::new(session);
    let waiting = [1_000, 49_000].map(|bytes| {
        let session = Arc::clone(&session);
        tokio::spawn(async move { session.publish(&node(), "1", &payload(bytes)).await })
    });
    // Both were written before the large one.
    tokio::task::yield_now().await;
    let error = session.publish(&node(), "2", &payload(70_000)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    for waiting in waiting {
        let error = waiting.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
        assert!(error.to_string().contains("policy-violation"), "{error}");
    }
    for error in [
        session.publish(&node(), "3", &payload(1)).await.unwrap_err(),
        events.next().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    }
}

#[tokio::test]
async fn a_refusal_is_read_although_writing_fails() {
    // The server refuses and closes while most of the stanza is not written yet.
    let server = Scripted::with_limit(50_000, accept);
    let mut account = scripted(&server);
    account.max_sent = SENT_MAX;
    for round in 0..5 {
        let (session, _events) = Session::connect(&account, "pubsub.xmpp.test").await.unwrap();
        let error = session.publish(&node(), "1", &payload(1_900_000)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "round {round}: {error}");
    }
}

#[tokio::test]
async fn nothing_above_the_largest_stanza_is_sent() {
    let server = Scripted::start(accept);
    let mut account = scripted(&server);
    account.max_sent = usize::MAX;
    let (session, _events) = Session::connect(&account, "pubsub.xmpp.test").await.unwrap();
    let error = session.publish(&node(), "1", &payload(SENT_MAX + 1_000)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(!session.is_closed());
}

#[tokio::test]
async fn services_that_ask_to_wait_do_not_refuse() {
    let number = AtomicUsize::new(0);
    let server = Scripted::start(move |stanza| match number.fetch_add(1, Relaxed) {
        0 => error(stanza, "wait", "not-acceptable"),
        1 => error(stanza, "cancel", "service-unavailable"),
        2 => error(stanza, "cancel", "remote-server-timeout"),
        _ => accept(stanza),
    });
    let (session, _events) =
        Session::connect(&scripted(&server), "pubsub.xmpp.test").await.unwrap();
    for _ in 0..3 {
        let error = session.publish(&node(), "1", &payload(1)).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && error.is_transient(), "{error}");
    }
    session.publish(&node(), "1", &payload(1)).await.unwrap();
}

/// An event with an item of these payloads.
fn event(id: usize, payloads: &str) -> String {
    scripted::event(SERVICE, "n", &id.to_string(), payloads)
}

#[tokio::test]
async fn two_payloads_in_an_item_are_neither_sent_nor_read() {
    let server = Scripted::start(|stanza| {
        let two = event(7, "<a xmlns='urn:x'/><b xmlns='urn:x'/>");
        if stanza.contains("<presence") { two } else { accept(stanza) }
    });
    let (session, mut events) =
        Session::connect(&scripted(&server), "pubsub.xmpp.test").await.unwrap();
    let two = b"<a xmlns='urn:x'/><b xmlns='urn:x'/>";
    let error = session.publish(&node(), "1", two).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    session.be_present().await.unwrap();
    let Event::Item(item) = next(&mut events).await else { panic!("an item") };
    assert_eq!((item.id.as_str(), item.payload), ("7", None));
}

#[tokio::test]
async fn few_bytes_wait_for_a_reader_that_is_slow() {
    let large = format!("<a xmlns='urn:x'>{}</a>", "x".repeat(3 << 20));
    let server = Scripted::start(move |stanza| {
        if !stanza.contains("<presence") {
            return accept(stanza);
        }
        (1..=5).map(|id| event(id, &large)).collect()
    });
    let (session, mut events) =
        Session::connect(&scripted(&server), "pubsub.xmpp.test").await.unwrap();
    // Its answer comes after the events.
    session.be_present().await.unwrap();
    for id in ["1", "2"] {
        let Event::Item(item) = next(&mut events).await else { panic!("an item") };
        assert_eq!(item.id, id);
    }
    assert_eq!(next(&mut events).await, Event::Missed);
}

#[tokio::test]
async fn items_are_listed_and_read_one_by_one() {
    let server = Scripted::start(|stanza| {
        let pubsub = "http://jabber.org/protocol/pubsub";
        let item = |id: &str| {
            let inside = format!(
                "<pubsub xmlns='{pubsub}'><items node='n'><item id='{id}'><a xmlns='urn:x'/></item></items></pubsub>"
            );
            result(stanza, &inside)
        };
        if stanza.contains("disco#items") {
            let items = "<item jid='s' name='9'/><item jid='s' name='8'/>";
            let query = "http://jabber.org/protocol/disco#items";
            result(stanza, &format!("<query xmlns='{query}'>{items}</query>"))
        } else if stanza.contains("max_items") {
            item("9")
        } else if stanza.contains("id=\"7\"") {
            error(stanza, "cancel", "item-not-found")
        } else if stanza.contains("<items") {
            item("8")
        } else {
            accept(stanza)
        }
    });
    let (session, _events) =
        Session::connect(&scripted(&server), "pubsub.xmpp.test").await.unwrap();
    assert_eq!(session.item_ids(&node()).await.unwrap(), ["8", "9"]);
    assert_eq!(session.item(&node(), "8").await.unwrap().unwrap().id, "8");
    assert_eq!(session.item(&node(), "7").await.unwrap(), None);
}
