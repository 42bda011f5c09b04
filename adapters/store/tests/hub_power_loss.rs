//! Power loss at any instant loses nothing that a hub accepted.
//!
//! As `power_loss.rs` does it for the change log: a child publishes, is asked for subscriptions and
//! delivers, all of it told by one number; of every store that may be left, all that was
//! acknowledged is there, and nothing half.

use abreast_core::hub::{
    HubStore as _, NewTarget, NewVerification, Progress, Secret, TargetId, TargetKind,
    VerificationId, VerificationMode,
};
use abreast_core::{NewNotification, Offset, Payload, Position, SystemClock, TopicId, TopicLog};
use abreast_store::hub::SqliteHub;
use abreast_store::integrity::{Findings, check_hub};
use abreast_testkit::power;
use abreast_webtypes::Timestamp;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Tells the child which store to write.
const CHILD: &str = "ABREAST_HUB_POWER_CHILD";
const LOSSES: u64 = 50;
/// Steps before the store is closed, and after it was opened again.
const STEPS: [u64; 2] = [50, 30];
const TOPICS: [&str; 2] = ["http://example.org/one", "http://example.org/two"];

fn open(path: &Path) -> (SqliteHub, [TopicId; 2]) {
    let store =
        SqliteHub::open(path, Arc::new(SystemClock)).expect("the store opens after loss of power");
    let topics = TOPICS.map(|url| store.open_topic(url).expect("the topic opens"));
    (store, topics)
}

/// Notifications that a step publishes in each topic, at once.
const fn published(step: u64) -> u64 {
    1 + step % 3
}

/// Those of all steps up to one.
fn published_by(step: u64) -> u64 {
    (1..=step).map(published).sum()
}

/// What notification `offset` of a topic says.
fn notification(topic: usize, offset: u64) -> NewNotification {
    let payload = if offset % 4 == 3 {
        Payload::Changes { after: Position(offset), last: Position(offset + 5) }
    } else {
        let byte = offset as u8 ^ topic as u8;
        Payload::Bytes(vec![byte; (offset * 977 % 12_000) as usize].into())
    };
    NewNotification {
        media_type: "application/xml".into(),
        links: format!("<{offset}>; rel=up"),
        payload,
    }
}

/// A step asks for one subscription more and verifies it at once if its number is even, delivers
/// everything to all, and drops what is older than 40 notifications when its number ends with 9.
fn take(store: &SqliteHub, topics: [TopicId; 2], step: u64) {
    let (sender, receiver) = channel();
    for offset in published_by(step - 1) + 1..=published_by(step) {
        for (place, topic) in topics.into_iter().enumerate() {
            let sender = sender.clone();
            let done = move |result: Result<Offset, _>| {
                sender.send((offset, result)).expect("listened to");
            };
            store.publish_then(topic, notification(place, offset), Box::new(done));
        }
    }
    let verification = NewVerification {
        topic_url: TOPICS[0].into(),
        callback: format!("http://example.org/callback/{step}"),
        mode: VerificationMode::Subscribe,
        secret: Some(Secret::from(vec![step as u8; 20])),
        lease_seconds: Some(step),
        challenge: format!("challenge {step}"),
        reason: None,
        next_at: Timestamp::from_seconds(0),
    };
    let (asked, answer) = channel();
    store.put_verification_then(
        verification,
        Box::new(move |result| asked.send(result).expect("listened to")),
    );
    drop(sender);
    for (offset, result) in receiver {
        assert_eq!(result.expect("published"), Offset(offset));
    }
    let id = answer.recv().expect("answered").expect("kept");
    if step.is_multiple_of(2) {
        let new = NewTarget {
            topic: topics[0],
            kind: TargetKind::Subscription,
            address: format!("http://example.org/callback/{step}"),
            secret: Some(Secret::from(vec![step as u8; 20])),
            lease_until: None,
            cursor: None,
        };
        store
            .finish_verification(id, abreast_core::hub::Settled::Subscribed(new))
            .expect("settled")
            .expect("a target");
    }
    let moved = |id: TargetId| Progress {
        id,
        generation: 1,
        cursor: Offset(published_by(step)),
        attempts: 0,
        first_failed: None,
        next_at: None,
        last: None,
        dead: None,
    };
    let targets = store.all_targets(TargetId(0), 1_000).expect("read");
    assert!(
        store
            .save_progress(targets.iter().map(|target| moved(target.id)).collect())
            .expect("saved")
            .is_empty()
    );
    if step % 10 == 9 {
        for topic in topics {
            store.trim(topic, Offset(published_by(step).saturating_sub(40))).expect("trimmed");
        }
    }
}

/// Works, closes the store (which writes the log back into the database), opens it, and works
/// again.
#[test]
fn child() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let mut step = 0;
    for steps in STEPS {
        let (store, topics) = open(Path::new(&path));
        for _ in 0..steps {
            step += 1;
            take(&store, topics, step);
            std::io::stderr().write_all(format!("ack {step}\n").as_bytes()).expect("noted");
        }
    }
}

#[test]
fn a_hub_that_lost_power_has_all_that_it_accepted() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    power::lose_power(
        CHILD,
        "hub.db",
        LOSSES,
        STEPS.iter().sum(),
        &mut |path, promised, context| {
            let promised = promised.unwrap_or(0);
            let (store, topics) = open(path);
            for (place, topic) in topics.into_iter().enumerate() {
                let head = store.head(topic).unwrap().0;
                assert!(
                    head >= published_by(promised),
                    "{context}: step {promised} was told, {head} is there"
                );
                let trimmed = store.topic(topic).unwrap().unwrap().trimmed.0;
                let kept = store.read(topic, Offset(0), 10_000).unwrap();
                let offsets: Vec<u64> =
                    kept.iter().map(|notification| notification.offset.0).collect();
                assert_eq!(offsets, (trimmed + 1..=head).collect::<Vec<_>>(), "{context}");
                for found in kept {
                    assert_eq!(found.content, notification(place, found.offset.0), "{context}");
                }
            }
            let targets = store.all_targets(TargetId(0), 1_000).unwrap();
            assert!(targets.len() as u64 >= promised / 2, "{context}: {} targets", targets.len());
            for target in targets.iter().take((promised / 2) as usize) {
                assert!(target.cursor.0 >= published_by(promised), "{context}: {target:?}");
            }
            let waiting = store.verifications(VerificationId(0), 1_000).unwrap();
            let expected = (1..=promised).filter(|step| !step.is_multiple_of(2));
            for step in expected {
                let callback = format!("http://example.org/callback/{step}");
                assert!(
                    waiting.iter().any(|one| one.request.callback == callback),
                    "{context}: {callback}"
                );
            }
            drop(store);
            let mut findings = Findings::default();
            check_hub(path, &mut findings).unwrap();
            assert!(findings.is_consistent(), "{context}: {:?}", findings.list());
        },
    );
}
