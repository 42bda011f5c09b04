//! Bit flips in a hub's store: each is detected or harmless, and repair handles it.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::hub::{
    HubStore as _, NewTarget, NewVerification, Progress, Secret, TargetId, TargetKind,
    VerificationId, VerificationMode,
};
use abreast_core::{
    FixedClock, LogError, NewNotification, Offset, Payload, Position, TopicId, TopicLog, publish,
};
use abreast_store::backup::{OFFSETS_APART, copy_hub, restart_hub_log};
use abreast_store::hub::SqliteHub;
use abreast_store::integrity::{Findings, check_hub};
use abreast_store::repair::repair_hub;
use abreast_testkit::bits::{Outcome, flip_each};
use abreast_webtypes::Timestamp;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Flips of one run; ABREAST_TEST_FLIPS asks for more.
const FLIPS: u64 = 60;

fn open(path: &Path) -> Result<SqliteHub, LogError> {
    SqliteHub::open(path, Arc::new(FixedClock::at(Timestamp::from_seconds(1_000))))
}

fn content(number: u64) -> NewNotification {
    let payload = if number.is_multiple_of(3) {
        Payload::Changes { after: Position(number), last: Position(number + 2) }
    } else {
        Payload::Bytes(vec![number as u8; (number * 397 % 9_000) as usize].into())
    };
    NewNotification { media_type: "application/xml".into(), links: "<a>; rel=up".into(), payload }
}

fn write(path: &Path) {
    let store = open(path).unwrap();
    let topics = [1, 2]
        .map(|number| store.open_topic(&format!("http://example.org/topic/{number}")).unwrap());
    for number in 1..=30 {
        for topic in topics {
            publish(&store, topic, content(number)).unwrap();
        }
    }
    store.trim(topics[1], Offset(10)).unwrap();
    for number in 0..40 {
        let new = NewTarget {
            topic: topics[number % 2],
            kind: TargetKind::Subscription,
            address: format!("http://example.org/callback/{number}"),
            secret: Some(Secret::from(vec![number as u8; 20])),
            lease_until: Some(Timestamp::from_seconds(2_000)),
            cursor: Some(Offset(number as u64 % 15)),
        };
        let target = store.put_target(new).unwrap();
        let progress = Progress {
            id: target.id,
            generation: 1,
            cursor: Offset(20),
            attempts: 3,
            first_failed: None,
            next_at: Some(Timestamp::from_seconds(1_500)),
            last: None,
            dead: None,
        };
        store.save_progress(vec![progress]).unwrap();
        let asked = NewVerification {
            topic_url: "http://example.org/topic/1".into(),
            callback: format!("http://example.org/callback/{number}"),
            mode: VerificationMode::Subscribe,
            secret: None,
            lease_seconds: Some(300),
            challenge: "challenge".into(),
            reason: None,
            next_at: Timestamp::from_seconds(1_000),
        };
        store.put_verification_then(asked, Box::new(|result| assert!(result.is_ok())));
    }
    store.close();
}

fn topics(store: &SqliteHub) -> Result<Vec<TopicId>, LogError> {
    Ok(store.topics(TopicId(0), 10)?.iter().map(|topic| topic.id).collect())
}

/// Everything that matters of what a store answers.
fn answers(path: &Path) -> Result<String, LogError> {
    let store = open(path)?;
    let mut text = String::new();
    for topic in store.topics(TopicId(0), 10)? {
        writeln!(text, "{} {:?} {:?}", topic.url, topic.head, topic.trimmed).unwrap();
        writeln!(text, "{:?}", store.read(topic.id, Offset(0), 1_000)?).unwrap();
    }
    for target in store.all_targets(TargetId(0), 1_000)? {
        writeln!(text, "{target:?} {:?}", target.secret.as_ref().map(|secret| secret.0.clone()))
            .unwrap();
    }
    for asked in store.verifications(VerificationId(0), 1_000)? {
        // When it came and is tried next is not vouched for.
        writeln!(text, "{:?} {} {}", asked.id, asked.request.callback, asked.request.challenge)
            .unwrap();
    }
    Ok(text)
}

fn findings(path: &Path) -> Findings {
    let mut findings = Findings::default();
    if let Err(error) = check_hub(path, &mut findings) {
        findings.add("store.damaged", "", error.to_string());
    }
    findings
}

/// What is kept follows without gaps, says what was said, and comes last.
fn check_what_is_kept(path: &Path, context: &str) {
    let store = open(path).unwrap();
    for topic in topics(&store).unwrap() {
        let state = store.topic(topic).unwrap().unwrap();
        let kept = store.read(topic, Offset(0), 1_000).unwrap();
        let offsets: Vec<u64> = kept.iter().map(|one| one.offset.0).collect();
        assert_eq!(offsets, (state.trimmed.0 + 1..=state.head.0).collect::<Vec<_>>(), "{context}");
        let first = 30 - kept.len() as u64;
        // Those at the end may be lost: then all are numbered by what is left.
        let shifted = (0..=first).any(|back| {
            kept.iter().zip(first + 1 - back..).all(|(one, number)| one.content == content(number))
        });
        assert!(shifted, "{context}: other notifications than were published");
        publish(&store, topic, content(31)).unwrap();
    }
    store.all_targets(TargetId(0), 1_000).unwrap();
}

#[test]
fn hub_flipped_bit_is_detected_or_harmless_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original.db");
    write(&original);
    assert!(findings(&original).is_consistent(), "{:?}", findings(&original).list());
    let expected = answers(&original).unwrap();
    flip_each(FLIPS, &fs::read(&original).unwrap(), "hub.db", &mut |path, _, context| {
        let found = findings(path);
        if found.is_consistent() {
            assert_eq!(answers(path).unwrap(), expected, "{context}: not noticed");
            return Outcome::Unnoticed;
        }
        if repair_hub(path, false).is_err() {
            return Outcome::Lost;
        }
        assert!(
            findings(path).is_consistent(),
            "{context}: {:?}, then {:?}",
            found.list(),
            findings(path).list()
        );
        check_what_is_kept(path, context);
        Outcome::Repaired
    });
}

#[test]
fn restarted_hub_store_loses_nothing_and_reuses_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    write(&path);
    restart_hub_log(&path).unwrap();
    assert!(findings(&path).is_consistent(), "{:?}", findings(&path).list());
    check_what_is_kept(&path, "begun anew");
    let store = open(&path).unwrap();
    let base = OFFSETS_APART;
    let state = |topic: TopicId| {
        store.topic(topic).unwrap().map(|topic| (topic.trimmed.0, topic.head.0)).unwrap()
    };
    let all = topics(&store).unwrap();
    assert_eq!(
        [state(all[0]), state(all[1])],
        [(base, base + 31), (base, base + 21)],
        "and one published since"
    );
    for target in store.all_targets(TargetId(0), 1_000).unwrap() {
        assert_eq!(state(target.topic).1 - target.cursor.0, 11, "{target:?} has as much before it");
        assert_eq!(target.generation, 2);
    }
}

#[test]
fn hub_copy_under_load_has_all_accepted_notifications() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    write(&path);
    let store = open(&path).unwrap();
    let topic = topics(&store).unwrap()[0];
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, stop) = (&store, &stop);
        scope.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                publish(store, topic, content(1)).unwrap();
            }
        });
        for round in 0..5 {
            let acknowledged = store.head(topic).unwrap();
            let to = folder.path().join(format!("copy-{round}.db"));
            assert_eq!(copy_hub(&path, &to).unwrap().targets, 40);
            assert!(open(&to).unwrap().head(topic).unwrap() >= acknowledged);
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                assert_eq!(
                    fs::metadata(&to).unwrap().permissions().mode() & 0o077,
                    0,
                    "for its owner only"
                );
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
