//! The hub's store beyond the contract of topics: targets, verifications, limits.

use abreast_core::{
    ErrorKind, FixedClock, NewNotification, Offset, Payload, TopicId, TopicLog, publish,
};
use abreast_store::hub::{
    ATTEMPTS_MAX, Attempt, DEAD_LETTERS_MAX, DeadLetter, ERROR_BYTES_MAX, Ending, HubStore,
    NewTarget, NewVerification, Progress, Secret, Settled, Target, TargetId, TargetKind,
    VerificationId, VerificationMode,
};
use abreast_webtypes::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

const URL: &str = "http://example.org/topic?a=%2f";
const CALLBACK: &str = "http://example.org/callback?a=b";

fn at(second: i64) -> Timestamp {
    Timestamp::from_seconds(1_000 + second)
}

fn open(path: &Path) -> (HubStore, TopicId) {
    let store = HubStore::open(path, Arc::new(FixedClock::at(at(0)))).expect("opens");
    let topic = store.open_topic(URL).expect("opens");
    (store, topic)
}

fn publish_some(store: &HubStore, topic: TopicId, count: u64) {
    for _ in 0..count {
        let payload = Payload::Bytes(Arc::from(&b"<urlset/>"[..]));
        let content =
            NewNotification { media_type: "application/xml".into(), links: String::new(), payload };
        publish(store, topic, content).expect("published");
    }
}

fn new(topic: TopicId) -> NewTarget {
    NewTarget {
        topic,
        kind: TargetKind::Subscription,
        address: CALLBACK.into(),
        secret: Some(Secret::from(b"hidden".to_vec())),
        lease_until: Some(at(500)),
        cursor: None,
    }
}

fn progress(target: &Target, cursor: u64) -> Progress {
    Progress {
        id: target.id,
        generation: target.generation,
        cursor: Offset(cursor),
        attempts: 0,
        first_failed: None,
        next_at: None,
        last: None,
        dead: None,
    }
}

fn attempt(offset: u64, number: u32, error: Option<&str>) -> Attempt {
    Attempt {
        offset: Offset(offset),
        number,
        time: at(i64::from(number)),
        status: Some(if error.is_some() { 503 } else { 204 }),
        error: error.map(str::to_owned),
        took: Duration::from_millis(7),
    }
}

fn asked(mode: VerificationMode) -> NewVerification {
    NewVerification {
        topic_url: URL.into(),
        callback: CALLBACK.into(),
        mode,
        secret: Some(Secret::from(b"hidden".to_vec())),
        lease_seconds: Some(864_000),
        challenge: "0123456789abcdef".into(),
        reason: None,
        next_at: at(0),
    }
}

fn ask(store: &HubStore, new: NewVerification) -> VerificationId {
    let (sender, receiver) = channel();
    store.put_verification_then(
        new,
        Box::new(move |result| sender.send(result).expect("listened to")),
    );
    receiver.recv().expect("answered").expect("kept")
}

#[test]
fn targets_keep_their_cursor_over_renewal_and_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let (store, topic) = open(&path);
    publish_some(&store, topic, 3);
    let target = store.put_target(new(topic)).unwrap();
    assert_eq!(
        (target.cursor, target.generation),
        (Offset(3), 1),
        "a new target gets what comes from now on"
    );
    publish_some(&store, topic, 1);
    let moved = progress(&target, 4);
    assert!(store.save_progress(vec![moved.clone()]).unwrap().is_empty());
    let renewed = store
        .put_target(NewTarget { secret: None, lease_until: Some(at(900)), ..new(topic) })
        .unwrap();
    assert_eq!((renewed.id, renewed.generation, renewed.cursor), (target.id, 2, Offset(4)));
    assert_eq!((&renewed.secret, renewed.lease_until), (&None, Some(at(900))));
    assert_eq!(
        store.save_progress(vec![moved]).unwrap(),
        [target.id],
        "progress from before the renewal"
    );
    let other =
        store.put_target(NewTarget { kind: TargetKind::FatSubmission, ..new(topic) }).unwrap();
    assert_ne!(other.id, target.id, "another kind is another target");
    drop(store);
    let (store, _) = open(&path);
    assert_eq!(store.all_targets(TargetId(0), 10).unwrap(), [renewed.clone(), other.clone()]);
    assert_eq!(store.all_targets(renewed.id, 1).unwrap(), [other]);
    assert_eq!(
        store.find_target(topic, CALLBACK, TargetKind::Subscription).unwrap(),
        Some(renewed)
    );
    assert_eq!(store.sizes().unwrap().targets, 2);
}

#[test]
fn secrets_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    let target = store.put_target(new(topic)).unwrap();
    assert_eq!(target.secret, Some(Secret::from(b"hidden".to_vec())));
    let shown = format!("{target:?} {:?} {:?}", new(topic), asked(VerificationMode::Subscribe));
    assert!(!shown.contains("hidden") && !shown.contains("104, 105"), "{shown}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for name in ["hub.db", "hub.db-wal"] {
            let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name} is for its owner only");
        }
    }
}

#[test]
fn a_cursor_goes_back_only_when_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    publish_some(&store, topic, 9);
    let target = store.put_target(new(topic)).unwrap();
    assert_eq!(store.save_progress(vec![progress(&target, 5)]).unwrap(), [target.id]);
    let back = store.replay(target.id, Offset(2)).unwrap().unwrap();
    assert_eq!((back.cursor, back.generation), (Offset(2), 2));
    let stale = store.save_progress(vec![progress(&target, 9), progress(&back, 3)]).unwrap();
    assert_eq!(stale, [target.id], "what was on its way when it was set back does not move it");
    assert_eq!(store.target(target.id).unwrap().unwrap().cursor, Offset(3));
    assert_eq!(store.replay(target.id, Offset(99)).unwrap().unwrap().cursor, Offset(9));
    assert_eq!(store.replay(TargetId(77), Offset(1)).unwrap(), None);
    assert_eq!(store.target(target.id).unwrap().unwrap().cursor, Offset(9));
}

#[test]
fn the_last_failures_and_the_last_success_of_a_target_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    let target = store.put_target(new(topic)).unwrap();
    publish_some(&store, topic, 2);
    let success = Progress { last: Some(attempt(1, 1, None)), ..progress(&target, 1) };
    let failures = (2..=20_u32).map(|number| Progress {
        attempts: number,
        first_failed: Some(at(2)),
        next_at: Some(at(100)),
        last: Some(attempt(2, number, Some(&"ö".repeat(ERROR_BYTES_MAX)))),
        ..progress(&target, 1)
    });
    assert!(
        store.save_progress(std::iter::once(success).chain(failures).collect()).unwrap().is_empty()
    );
    let kept = store.attempts(target.id).unwrap();
    assert_eq!(kept.len() as i64, ATTEMPTS_MAX + 1);
    assert_eq!(kept[0].number, 20, "the newest first");
    assert_eq!(kept[0].error.as_ref().unwrap().len(), ERROR_BYTES_MAX);
    assert_eq!(kept.last().unwrap(), &attempt(1, 1, None));
    let target = store.target(target.id).unwrap().unwrap();
    assert_eq!(
        (target.attempts, target.first_failed, target.next_at),
        (20, Some(at(2)), Some(at(100)))
    );
}

#[test]
fn dead_letters_are_kept_one_by_one_until_there_are_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    let target = store.put_target(new(topic)).unwrap();
    let most = DEAD_LETTERS_MAX as u64;
    let buried = |number: u64| Progress {
        dead: Some(DeadLetter::one(Offset(number), "gave up", at(number as i64))),
        ..progress(&target, number)
    };
    assert!(store.save_progress((1..=most + 3).map(buried).collect()).unwrap().is_empty());
    let letters = store.dead_letters(target.id, Offset(0), 20_000).unwrap();
    assert_eq!(letters.len() as u64, most);
    assert_eq!((letters[0].first, letters[0].last, letters[0].letters), (Offset(1), Offset(4), 4));
    assert_eq!(letters[1], DeadLetter::one(Offset(5), "gave up", at(5)));
    let range = DeadLetter::range(Offset(most + 4), Offset(most + 9), "trimmed", at(0));
    let moved = Progress { dead: Some(range.clone()), ..progress(&target, most + 9) };
    assert!(store.save_progress(vec![moved]).unwrap().is_empty());
    assert_eq!(store.dead_letters(target.id, Offset(most + 3), 10).unwrap(), [range]);
    assert_eq!(store.sizes().unwrap().dead_letters, most);
    assert!(store.end_target(target.id, Ending::Gone).unwrap());
    assert_eq!(store.sizes().unwrap().dead_letters, 0);
}

#[test]
fn a_verification_and_what_follows_from_it_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let (store, topic) = open(&path);
    publish_some(&store, topic, 2);
    let first = ask(&store, asked(VerificationMode::Subscribe));
    let later =
        ask(&store, NewVerification { next_at: at(60), ..asked(VerificationMode::Subscribe) });
    drop(store);
    let (store, topic) = open(&path);
    let due = store.verifications(VerificationId(0), 10).unwrap();
    assert_eq!((due.len(), due[1].id, due[1].request.next_at), (2, later, at(60)));
    assert_eq!((due[0].id, &due[0].request), (first, &asked(VerificationMode::Subscribe)));
    let (sender, told) = channel();
    store.retry_verification_then(
        first,
        1,
        at(90),
        Box::new(move |result| sender.send(result).unwrap()),
    );
    told.recv().unwrap().unwrap();
    let due: Vec<_> = store
        .verifications(VerificationId(0), 10)
        .unwrap()
        .iter()
        .map(|one| (one.id, one.attempts, one.request.next_at))
        .collect();
    assert_eq!(due, [(first, 1, at(90)), (later, 0, at(60))]);

    let target =
        store.finish_verification(first, Settled::Subscribed(new(topic))).unwrap().unwrap();
    assert_eq!(target.cursor, Offset(2));
    assert_eq!(
        store.finish_verification(first, Settled::Subscribed(new(topic))).unwrap(),
        None,
        "only once"
    );
    assert_eq!(store.target(target.id).unwrap().unwrap().generation, 1);
    assert_eq!(store.finish_verification(later, Settled::Dropped).unwrap(), None);
    let bye = ask(&store, asked(VerificationMode::Unsubscribe));
    let ended = store.finish_verification(bye, Settled::Unsubscribed).unwrap().unwrap();
    assert_eq!(ended.id, target.id);
    assert_eq!(store.sizes().unwrap().targets, 0);
    assert_eq!(store.sizes().unwrap().verifications, 0);
    let told = store.ended_targets(i64::MAX, 10).unwrap();
    assert_eq!(
        (told.len(), told[0].id, told[0].why, &*told[0].address),
        (1, target.id, Ending::Unsubscribed, CALLBACK)
    );
}

#[test]
fn expired_leases_are_listed_oldest_first() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    let lease = |name: &str, until| {
        let target = NewTarget { address: name.into(), lease_until: until, ..new(topic) };
        store.put_target(target).unwrap().id
    };
    let (later, sooner) = (lease("a", Some(at(20))), lease("b", Some(at(10))));
    let (_, _) = (lease("c", None), lease("d", Some(at(30))));
    assert_eq!(store.leases_over(at(20), 10).unwrap(), [sooner, later]);
    assert_eq!(store.leases_over(at(20), 1).unwrap(), [sooner]);
    assert_eq!(store.leases_over(at(9), 10).unwrap(), []);
}

#[test]
fn old_notifications_are_found_and_unused_topics_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FixedClock::at(at(0)));
    let store = HubStore::open(&folder.path().join("hub.db"), Arc::clone(&clock) as _).unwrap();
    let topic = store.open_topic(URL).unwrap();
    for second in [10, 20, 20, 5, 30] {
        clock.set(at(second));
        publish_some(&store, topic, 1);
    }
    let before = |second| store.accepted_before(topic, at(second)).unwrap().0;
    assert_eq!(
        [before(5), before(10), before(11), before(20), before(21), before(99)],
        [0, 0, 1, 1, 4, 5]
    );
    store.trim(topic, Offset(2)).unwrap();
    assert_eq!([before(5), before(21)], [2, 4]);
    let sizes = store.sizes().unwrap();
    assert_eq!((sizes.topics, sizes.notifications, sizes.body_bytes), (1, 3, 27));
    assert!(sizes.file_bytes > 0 && sizes.log_bytes > 0);
}

#[test]
fn too_long_values_are_refused_individually() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    let long = Secret::from(vec![b'x'; 200]);
    let refused = store.put_target(NewTarget { secret: Some(long), ..new(topic) }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(
        refused.to_string().contains("the secret has 200 bytes\n  help: at most 199"),
        "{refused}"
    );
    let refused =
        store.put_target(NewTarget { address: "a".repeat(9_000), ..new(topic) }).unwrap_err();
    assert!(refused.to_string().contains("at most 8192"), "{refused}");
    assert_eq!(store.open_topic(&"a".repeat(9_000)).unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(store.put_target(new(TopicId(77))).unwrap_err().kind(), ErrorKind::NoSet);
    store.put_target(new(topic)).unwrap();
}

#[test]
fn closing_records_what_waits_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let (store, topic) = open(&path);
    assert_eq!(
        HubStore::open(&path, Arc::new(FixedClock::default())).unwrap_err().kind(),
        ErrorKind::Busy
    );
    let (sender, told) = channel();
    for _ in 0..100 {
        let payload = Payload::Bytes(Arc::from(&[7_u8; 10_000][..]));
        let content = NewNotification { media_type: "a/b".into(), links: String::new(), payload };
        let sender = sender.clone();
        store.publish_then(topic, content, Box::new(move |result| sender.send(result).unwrap()));
    }
    store.close();
    drop(sender);
    assert_eq!(told.iter().flatten().count(), 100);
    let refused = store.put_target(new(topic)).unwrap_err();
    assert!(refused.to_string().contains("closed"), "{refused}");
    assert_eq!(store.read(topic, Offset(99), 10).unwrap().len(), 1, "reads go on");
    drop(store);
    assert_eq!(open(&path).0.head(topic).unwrap(), Offset(100));
}

#[test]
fn a_read_ends_after_many_bytes_but_not_before_one_notification() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    for _ in 0..3 {
        let payload = Payload::Bytes(vec![1; 9 * 1024 * 1024].into());
        let content = NewNotification { media_type: "a/b".into(), links: String::new(), payload };
        publish(&store, topic, content).unwrap();
    }
    assert_eq!(store.read(topic, Offset(0), 10).unwrap().len(), 1);
    assert_eq!(store.read(topic, Offset(1), 10).unwrap().len(), 1);
}

#[test]
fn closed_store_is_one_file_despite_readers() {
    for round in 0..60 {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("hub.db");
        let (store, topic) = open(&path);
        publish_some(&store, topic, 1);
        let store = Arc::new(store);
        let reader = std::thread::spawn({
            let store = Arc::clone(&store);
            move || (0..round).for_each(|_| drop(store.topics(TopicId(0), 10).expect("read")))
        });
        store.close();
        reader.join().expect("no panic");
        drop(store);
        let left: Vec<_> = std::fs::read_dir(&folder)
            .expect("listed")
            .map(|entry| entry.expect("read").file_name())
            .collect();
        assert!(
            left.iter().all(|name| name == "hub.db" || name == "hub.db.lock"),
            "round {round}: {left:?}"
        );
    }
}
