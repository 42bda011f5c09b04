//! Webhooks that do not accept changes: repeated for a time, then given up.

use crate::bed::{Bed, HUB, options};
use crate::server::{Reply, Server};
use abreast_core::hub::{TargetId, TargetKind};
use abreast_core::{LogError, NewNotification, Offset, Payload, Position, publish};
use abreast_hub::{HubOptions, Payloads, ReadKeys, Webhooks};
use abreast_testkit::eventually_some;
use abreast_websub::WebhookKey;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const CHANGES: &str = "http://example.org/set/notify/change";

/// Bodies that contain the positions of their changes.
struct Positions;

impl Payloads for Positions {
    fn render(&self, _: &str, _: Position, _: Position) -> Result<Bytes, LogError> {
        unreachable!("the topic has webhooks only")
    }

    fn webhook(
        &self,
        _: &str,
        after: Position,
        last: Position,
    ) -> Result<(Bytes, Position), LogError> {
        Ok((format!("{}..{}", after.0, last.0).into(), last))
    }
}

#[test]
fn changes_are_given_up_and_the_webhook_stays() {
    assert_eq!(HubOptions::new(HUB).retries.give_up, Duration::from_secs(24 * 3_600));
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let server = Server::new(move |_| Reply::Status(if is_up.load(SeqCst) { 204 } else { 500 }));
    let mut impatient = options();
    impatient.retries.give_up = Duration::from_millis(150);
    let bed = Bed::with_payloads(impatient, Arc::new(Positions));
    let topic = bed.hub.own_topic(CHANGES).unwrap();
    let keys: ReadKeys = Arc::new(|| Ok(vec![WebhookKey::new("a secret").unwrap()]));
    let webhooks = Webhooks::from([((CHANGES.to_owned(), server.url("/hook")), keys)]);
    bed.hub.keep_webhooks(webhooks).unwrap();
    let change = |last: u64| {
        let new = NewNotification {
            media_type: "application/xml".to_owned(),
            links: String::new(),
            payload: Payload::Changes { after: Position(last - 1), last: Position(last) },
        };
        publish(&**bed.hub.store(), topic, new).unwrap();
        bed.hub.published(topic);
    };
    change(1);
    let targets = bed.hub.targets(Some(topic), TargetId(0), 10).unwrap();
    let [webhook] = targets.as_slice() else { panic!("{targets:?}") };
    let letter = eventually_some("a dead letter", || {
        bed.hub.dead_letters(webhook.id, Offset(0), 10).unwrap().pop()
    });
    assert_eq!((letter.first, letter.last), (Offset(1), Offset(1)));
    assert!(letter.error.contains("500"), "{}", letter.error);
    assert_eq!(bed.hub.metrics().given_up, 1);
    let attempts = server.deliveries();
    assert!(attempts.len() > 1);
    let is_same = |header: &str| {
        attempts
            .iter()
            .all(|got| got.text() == "0..1" && got.header(header) == attempts[0].header(header))
    };
    assert!(is_same("webhook-id"), "{attempts:?}");
    // Later changes are delivered; `after` shows the receiver which ones are missing.
    up.store(true, SeqCst);
    change(2);
    server.wait("the next change", |seen| seen.iter().any(|got| got.text() == "1..2"));
    eventually_some("success", || (bed.hub.metrics().delivered == 1).then_some(()));
    let targets = bed.hub.targets(Some(topic), TargetId(0), 10).unwrap();
    let kept: Vec<_> = targets.iter().map(|target| (target.id, target.kind)).collect();
    assert_eq!(kept, [(webhook.id, TargetKind::Webhook)]);
    // A replay sends them again.
    bed.hub.replay(webhook.id, Offset(0)).unwrap();
    server.wait("all changes", |seen| seen.iter().any(|got| got.text() == "0..2"));
}
