//! Does the hub's store keep its promises?

use abreast_core::{FixedClock, NewNotification, Offset, Payload, TopicLog, publish};
use abreast_store::hub::{HubStore, NewTarget, Progress, Secret, TargetId, TargetKind};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

fn notification(body: &[u8]) -> NewNotification {
    NewNotification {
        media_type: "application/xml".into(),
        links: String::new(),
        payload: Payload::Bytes(Arc::from(body)),
    }
}

#[test]
fn targets_keep_their_cursor_when_they_are_renewed_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(1_000)));
    let store = HubStore::open(&path, Arc::clone(&clock) as _).unwrap();
    let topic = store.open_topic("http://example.org/a").unwrap();
    for number in 1..=3 {
        assert_eq!(publish(&store, topic, notification(b"<urlset/>")).unwrap(), Offset(number));
    }
    let new = NewTarget {
        topic,
        kind: TargetKind::Subscription,
        address: "http://example.org/callback?a=b".into(),
        secret: Some(Secret::from(b"hidden".to_vec())),
        lease_until: Some(Timestamp::from_seconds(2_000)),
        cursor: None,
    };
    let target = store.put_target(new.clone()).unwrap();
    assert_eq!(target.cursor, Offset(3));
    assert!(!format!("{target:?}").contains("hidden"));
    publish(&store, topic, notification(b"<urlset/>")).unwrap();
    let progress = Progress {
        id: target.id,
        generation: target.generation,
        cursor: Offset(4),
        attempts: 0,
        first_failed: None,
        next_at: None,
        last: None,
        dead: None,
    };
    assert!(store.save_progress(vec![progress.clone()]).unwrap().is_empty());
    let renewed = store.put_target(NewTarget { secret: None, ..new }).unwrap();
    assert_eq!((renewed.id, renewed.generation, renewed.cursor), (target.id, 2, Offset(4)));
    assert_eq!(store.save_progress(vec![progress]).unwrap(), [target.id]);
    drop(store);
    let store = HubStore::open(&path, clock).unwrap();
    assert_eq!(store.all_targets(TargetId(0), 10).unwrap(), [renewed]);
    assert_eq!(store.head(topic).unwrap(), Offset(4));
}
