//! The contract of [`HubStore`] as code: every store of a hub runs it, beside the contract of topics.

use super::{Named, START};
use crate::hub::{
    ATTEMPTS_MAX, Attempt, DEAD_LETTERS_MAX, DeadLetter, Done, ENDED_MAX, ERROR_BYTES_MAX, Ending,
    FailingTarget, HubStore, HubSummary, NewTarget, NewVerification, Progress, Secret, Settled,
    Target, TargetId, TargetKind, TopicSummary, Verification, VerificationId, VerificationMode,
};
use crate::{ErrorKind, FixedClock, LogError, NewNotification, Offset, Payload, TopicId, publish};
use abreast_webtypes::Timestamp;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How a test makes stores of hubs.
pub trait HubStores {
    /// A new and empty store with that clock.
    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<dyn HubStore>;

    /// Closes the newest store and opens it again, with the same clock. A store that keeps nothing
    /// returns it as it is.
    fn reopen(&mut self, store: Arc<dyn HubStore>) -> Arc<dyn HubStore>;
}

/// Checks every promise of [`HubStore`]; the promises of topics are checked by
/// [`topic_log_contract`](super::topic_log_contract).
///
/// # Panics
/// When one is broken.
pub fn hub_store_contract(stores: &mut dyn HubStores) {
    for (promise, check) in PROMISES {
        let guard = Named(promise);
        check(stores);
        std::mem::forget(guard);
    }
}

type Check = fn(&mut dyn HubStores);

const PROMISES: &[(&str, Check)] = &[
    ("an open store is available", open_stores_are_available),
    ("topics are found and listed", topics_are_found_and_listed),
    ("old notifications are found by time", old_notifications_are_found),
    ("a target keeps its cursor over renewal and restart", targets_keep_their_cursor),
    ("a new target starts at a cursor or at the end", new_targets_start_at_a_cursor),
    ("targets of a topic are listed in pages", targets_of_a_topic_are_listed),
    ("a cursor goes back only by a replay", cursors_go_back_by_replay_only),
    ("a replay before trimmed notifications shows the gap", replays_show_gaps),
    ("progress is recorded for live targets only", progress_is_for_live_targets),
    ("changes are recorded in the order of the calls", changes_follow_the_calls),
    ("the last failures and the last success are retained", attempts_are_limited),
    ("too many dead letters of a target are merged", dead_letters_are_limited),
    ("an ended target leaves one entry in a list", targets_end_once),
    ("the last ended targets are retained", ended_targets_are_limited),
    ("expired leases are listed oldest first", leases_over_are_listed),
    ("a verification is kept until it is settled", verifications_are_kept),
    ("a verification and its effect are one change", verifications_settle_once),
    ("a refused effect does not settle a verification", refused_effects_settle_nothing),
    ("numbers are never used again", numbers_are_not_used_again),
    ("too long values are refused one by one", long_values_are_refused),
    ("a summary describes the deliveries", summaries_describe_deliveries),
];

const URL: &str = "http://example.org/topic?a=%2f";
const CALLBACK: &str = "http://example.org/callback?a=b";

fn at(second: i64) -> Timestamp {
    START.plus_micros(second * 1_000_000)
}

fn store(stores: &mut dyn HubStores) -> (Arc<dyn HubStore>, Arc<FixedClock>, TopicId) {
    let clock = Arc::new(FixedClock::at(START));
    let store = stores.create(Arc::clone(&clock));
    let topic = store.open_topic(URL).expect("a topic can be opened");
    (store, clock, topic)
}

fn publish_some(store: &dyn HubStore, topic: TopicId, count: u64) {
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

/// A new target with this address.
fn addressed(topic: TopicId, address: &str) -> NewTarget {
    NewTarget { address: address.into(), ..new(topic) }
}

fn put(store: &dyn HubStore, new: NewTarget) -> Target {
    store.put_target(new).expect("a target can be created")
}

fn target(store: &dyn HubStore, id: TargetId) -> Target {
    store.target(id).expect("a target can be read").expect("the target exists")
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

/// Records progress, and returns the targets whose progress was not recorded.
fn save(store: &dyn HubStore, progress: Vec<Progress>) -> Vec<TargetId> {
    store.save_progress(progress).expect("progress can be recorded")
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

/// Makes a request, and waits for its result.
fn wait<T: Send + 'static>(request: impl FnOnce(Done<T>)) -> Result<T, LogError> {
    let (sender, receiver) = channel();
    request(Box::new(move |result| sender.send(result).expect("the test listens")));
    receiver.recv().expect("`done` is called")
}

fn ask(store: &dyn HubStore, new: NewVerification) -> VerificationId {
    wait(|done| store.put_verification_then(new, done)).expect("a request can be recorded")
}

fn verifications(store: &dyn HubStore) -> Vec<Verification> {
    store.verifications(VerificationId(0), 10).expect("verifications can be read")
}

fn settle(store: &dyn HubStore, id: VerificationId, settled: Settled) -> Option<Target> {
    store.finish_verification(id, settled).expect("a verification can be settled")
}

fn open_stores_are_available(stores: &mut dyn HubStores) {
    let (store, ..) = store(stores);
    store.check_available().expect("available");
    stores.reopen(store).check_available().expect("available");
}

fn topics_are_found_and_listed(stores: &mut dyn HubStores) {
    let (store, clock, topic) = store(stores);
    clock.set(at(7));
    let other = store.open_topic("http://example.org/other").expect("opened");
    publish_some(&*store, topic, 3);
    store.trim(topic, Offset(1)).expect("trimmed");
    assert_eq!(store.find_topic(URL).expect("read"), Some(topic));
    assert_eq!(store.find_topic("http://example.org/none").expect("read"), None);
    let store = stores.reopen(store);
    let all = store.topics(TopicId(0), 10).expect("read");
    let ids: Vec<_> = all.iter().map(|one| one.id).collect();
    assert_eq!(ids, [topic, other], "a topic that is not found is not created");
    let first = &all[0];
    assert_eq!((&*first.url, first.created), (URL, START));
    assert_eq!((first.head, first.trimmed, first.bytes), (Offset(3), Offset(1), 18));
    assert_eq!((all[1].created, all[1].head, all[1].bytes), (at(7), Offset(0), 0));
    assert_eq!(store.topics(TopicId(0), 1).expect("read"), all[..1]);
    assert_eq!(store.topics(topic, 10).expect("read"), all[1..]);
    assert_eq!(store.topic(topic).expect("read").as_ref(), Some(first));
    assert_eq!(store.topic(TopicId(other.0 + 1)).expect("read"), None);
}

fn old_notifications_are_found(stores: &mut dyn HubStores) {
    let (store, clock, topic) = store(stores);
    for second in [10, 20, 20, 5, 30] {
        clock.set(at(second));
        publish_some(&*store, topic, 1);
    }
    let before = |second| store.accepted_before(topic, at(second)).expect("read").0;
    assert_eq!(
        [before(5), before(10), before(11), before(20), before(21), before(99)],
        [0, 0, 1, 1, 4, 5]
    );
    store.trim(topic, Offset(2)).expect("trimmed");
    assert_eq!([before(5), before(21)], [2, 4]);
    let unknown = store.accepted_before(TopicId(77), at(0)).expect_err("unknown");
    assert_eq!(unknown.kind(), ErrorKind::NoSet, "{unknown}");
    let sizes = store.sizes().expect("read");
    assert_eq!((sizes.topics, sizes.notifications, sizes.body_bytes), (1, 3, 27));
}

fn targets_keep_their_cursor(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    publish_some(&*store, topic, 3);
    let target = put(&*store, new(topic));
    assert_eq!(
        (target.cursor, target.generation),
        (Offset(3), 1),
        "a new target gets later notifications"
    );
    assert_eq!(target.secret, Some(Secret::from(b"hidden".to_vec())));
    publish_some(&*store, topic, 1);
    let moved = progress(&target, 4);
    assert!(save(&*store, vec![moved.clone()]).is_empty());
    let renewal = NewTarget {
        secret: None,
        lease_until: Some(at(900)),
        cursor: Some(Offset(1)),
        ..new(topic)
    };
    let renewed = put(&*store, renewal);
    assert_eq!((renewed.id, renewed.generation, renewed.cursor), (target.id, 2, Offset(4)));
    assert_eq!((&renewed.secret, renewed.lease_until), (&None, Some(at(900))));
    assert_eq!(save(&*store, vec![moved]), [target.id], "progress from before the renewal");
    let other = put(&*store, NewTarget { kind: TargetKind::FatSubmission, ..new(topic) });
    assert_ne!(other.id, target.id, "another kind is another target");
    let store = stores.reopen(store);
    let all = store.all_targets(TargetId(0), 10).expect("read");
    assert_eq!(all, [renewed.clone(), other.clone()]);
    assert_eq!(store.all_targets(renewed.id, 1).expect("read"), [other]);
    let found = store.find_target(topic, CALLBACK, TargetKind::Subscription).expect("read");
    assert_eq!(found, Some(renewed));
    assert_eq!(store.find_target(topic, CALLBACK, TargetKind::Node).expect("read"), None);
    assert_eq!(store.sizes().expect("read").targets, 2);
}

fn new_targets_start_at_a_cursor(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    publish_some(&*store, topic, 5);
    let from = |address: &str, cursor| {
        let cursor = Some(Offset(cursor));
        put(&*store, NewTarget { cursor, ..addressed(topic, address) }).cursor
    };
    assert_eq!(from("a", 2), Offset(2));
    assert_eq!(from("b", 0), Offset(0));
    assert_eq!(from("c", 99), Offset(5), "no cursor is beyond the last notification");
}

fn targets_of_a_topic_are_listed(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let other = store.open_topic("http://example.org/other").expect("opened");
    let [first, between, last] = [(topic, "a"), (other, "a"), (topic, "b")]
        .map(|(of, name)| put(&*store, addressed(of, name)));
    let of = |topic, after, limit| store.targets_of(topic, after, limit).expect("read");
    assert_eq!(of(topic, TargetId(0), 10), [first.clone(), last.clone()]);
    assert_eq!(of(topic, TargetId(0), 1), std::slice::from_ref(&first));
    assert_eq!(of(topic, first.id, 10), [last]);
    assert_eq!(of(other, TargetId(0), 10), [between]);
    assert_eq!(of(TopicId(other.0 + 1), TargetId(0), 10), []);
}

fn cursors_go_back_by_replay_only(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    publish_some(&*store, topic, 9);
    let first = put(&*store, new(topic));
    assert_eq!(save(&*store, vec![progress(&first, 5)]), [first.id]);
    let replay = |to| store.replay(first.id, Offset(to)).expect("replayed").expect("exists");
    let back = replay(2);
    assert_eq!((back.cursor, back.generation), (Offset(2), 2));
    let stale = save(&*store, vec![progress(&first, 9), progress(&back, 3)]);
    assert_eq!(stale, [first.id], "deliveries from before the replay do not move the cursor");
    assert_eq!(target(&*store, first.id).cursor, Offset(3));
    assert_eq!(replay(99).cursor, Offset(9));
    assert_eq!(store.replay(TargetId(first.id.0 + 1), Offset(1)).expect("no fault"), None);
    let store = stores.reopen(store);
    let last = target(&*store, first.id);
    assert_eq!((last.cursor, last.generation), (Offset(9), 3));
}

fn replays_show_gaps(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    publish_some(&*store, topic, 9);
    let first = put(&*store, new(topic));
    store.trim(topic, Offset(4)).expect("trimmed");
    let back = store.replay(first.id, Offset(1)).expect("replayed").expect("exists");
    assert_eq!(back.cursor, Offset(1), "the cursor may be in the trimmed range");
    let read = |after| -> Vec<u64> {
        let page = store.read(topic, after, 3).expect("read");
        page.iter().map(|notification| notification.offset.0).collect()
    };
    assert_eq!(read(back.cursor), [5, 6, 7], "the first offset shows the gap");
    let dead = DeadLetter::range(Offset(2), Offset(4), "trimmed", at(0));
    let moved = Progress { dead: Some(dead.clone()), ..progress(&back, 5) };
    assert!(save(&*store, vec![moved]).is_empty());
    assert_eq!(read(target(&*store, first.id).cursor), [6, 7, 8]);
    assert_eq!(store.dead_letters(first.id, Offset(0), 10).expect("read"), [dead]);
}

fn progress_is_for_live_targets(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let [ended, live] = ["a", "b"].map(|name| put(&*store, addressed(topic, name)));
    publish_some(&*store, topic, 3);
    assert!(store.end_target(ended.id, Ending::Gone).expect("ended"));
    let failed = Progress {
        attempts: 2,
        first_failed: Some(at(1)),
        next_at: Some(at(3)),
        last: Some(attempt(3, 2, Some("refused"))),
        dead: Some(DeadLetter::one(Offset(1), "gave up", at(1))),
        ..progress(&live, 2)
    };
    let late = Progress { id: ended.id, ..failed.clone() };
    let unknown = Progress { id: TargetId(live.id.0 + 1), ..failed.clone() };
    let stale = save(&*store, vec![late, failed, unknown.clone()]);
    assert_eq!(stale, [ended.id, unknown.id], "the others of the batch are recorded");
    assert_eq!(save(&*store, Vec::new()), []);
    let store = stores.reopen(store);
    let found = target(&*store, live.id);
    assert_eq!(
        (found.cursor, found.attempts, found.first_failed, found.next_at),
        (Offset(2), 2, Some(at(1)), Some(at(3)))
    );
    assert_eq!(store.attempts(live.id).expect("read"), [attempt(3, 2, Some("refused"))]);
    assert_eq!(store.dead_letters(live.id, Offset(0), 10).expect("read").len(), 1);
    for id in [ended.id, unknown.id] {
        assert_eq!(store.target(id).expect("read"), None);
        assert_eq!(store.attempts(id).expect("read"), []);
        assert_eq!(store.dead_letters(id, Offset(0), 10).expect("read"), []);
    }
}

fn changes_follow_the_calls(stores: &mut dyn HubStores) {
    const STEPS: u64 = 50;
    let (store, _, topic) = store(stores);
    publish_some(&*store, topic, STEPS);
    let first = put(&*store, NewTarget { cursor: Some(Offset(0)), ..new(topic) });
    let (sender, receiver) = channel();
    for cursor in 1..=STEPS {
        let sender = sender.clone();
        let done = move |result: Result<Vec<TargetId>, LogError>| {
            sender.send(result.expect("recorded")).expect("the test listens");
        };
        store.save_progress_then(vec![progress(&first, cursor)], Box::new(done));
    }
    drop(sender);
    let ended = wait(|done| store.end_target_then(first.id, Ending::ByHand, done));
    assert!(ended.expect("ended"), "the target existed");
    let stale: Vec<_> = receiver.iter().collect();
    assert_eq!(stale.len() as u64, STEPS);
    assert!(stale.iter().all(Vec::is_empty), "{stale:?}");
    let listed = store.ended_targets(i64::MAX, 1).expect("read");
    assert_eq!(listed[0].cursor, Offset(STEPS));
}

fn attempts_are_limited(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let first = put(&*store, new(topic));
    publish_some(&*store, topic, 2);
    let success = Progress { last: Some(attempt(1, 1, None)), ..progress(&first, 1) };
    let failures = (2..=20_u32).map(|number| Progress {
        attempts: number,
        first_failed: Some(at(2)),
        next_at: Some(at(100)),
        last: Some(attempt(2, number, Some(&"ö".repeat(ERROR_BYTES_MAX)))),
        ..progress(&first, 1)
    });
    assert!(save(&*store, std::iter::once(success).chain(failures).collect()).is_empty());
    let store = stores.reopen(store);
    let kept = store.attempts(first.id).expect("read");
    assert_eq!(kept.len() as i64, ATTEMPTS_MAX + 1);
    assert_eq!(kept[0].number, 20, "the newest first");
    assert_eq!(kept[0].error.as_ref().map(String::len), Some(ERROR_BYTES_MAX));
    assert_eq!(kept.last(), Some(&attempt(1, 1, None)));
    let found = target(&*store, first.id);
    assert_eq!(
        (found.attempts, found.first_failed, found.next_at),
        (20, Some(at(2)), Some(at(100)))
    );
    let renewed = put(&*store, new(topic));
    assert_eq!(renewed.next_at, None, "a renewed target is attempted at once");
}

fn dead_letters_are_limited(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let first = put(&*store, new(topic));
    let most = DEAD_LETTERS_MAX as u64;
    let buried = |number: u64| Progress {
        dead: Some(DeadLetter::one(Offset(number), "gave up", at(number as i64))),
        ..progress(&first, number)
    };
    assert!(save(&*store, (1..=most + 3).map(buried).collect()).is_empty());
    let store = stores.reopen(store);
    let letters = store.dead_letters(first.id, Offset(0), 20_000).expect("read");
    assert_eq!(letters.len() as u64, most);
    assert_eq!((letters[0].first, letters[0].last, letters[0].letters), (Offset(1), Offset(4), 4));
    assert_eq!(letters[1], DeadLetter::one(Offset(5), "gave up", at(5)));
    let range = DeadLetter::range(Offset(most + 4), Offset(most + 9), "trimmed", at(0));
    let moved = Progress { dead: Some(range.clone()), ..progress(&first, most + 9) };
    assert!(save(&*store, vec![moved]).is_empty());
    assert_eq!(store.dead_letters(first.id, Offset(most + 3), 10).expect("read"), [range]);
    let count = |store: &dyn HubStore| store.sizes().expect("read").dead_letters;
    assert_eq!(count(&*store), most);
    assert!(store.end_target(first.id, Ending::Gone).expect("ended"));
    assert_eq!(count(&*store), 0);
}

fn targets_end_once(stores: &mut dyn HubStores) {
    let (store, clock, topic) = store(stores);
    publish_some(&*store, topic, 2);
    let reasons = [
        Ending::Unsubscribed,
        Ending::LeaseOver,
        Ending::Gone,
        Ending::Denied,
        Ending::ByHand,
        Ending::NotConfigured,
    ];
    let kinds = [
        TargetKind::Subscription,
        TargetKind::FatSubmission,
        TargetKind::FormSubmission,
        TargetKind::Node,
        TargetKind::Webhook,
        TargetKind::Subscription,
    ];
    let mut told = Vec::new();
    for (second, (why, kind)) in (1..).zip(reasons.into_iter().zip(kinds)) {
        let ended = put(&*store, NewTarget { kind, ..addressed(topic, CALLBACK) });
        clock.set(at(second));
        assert!(store.end_target(ended.id, why).expect("ended"));
        assert!(!store.end_target(ended.id, why).expect("no fault"), "only once");
        told.push((ended, why, at(second)));
    }
    let store = stores.reopen(store);
    let listed = store.ended_targets(i64::MAX, 10).expect("read");
    assert_eq!(listed.len(), told.len());
    for (one, (ended, why, time)) in listed.iter().zip(told.iter().rev()) {
        assert_eq!((one.id, one.topic, one.kind), (ended.id, topic, ended.kind));
        assert_eq!((&*one.address, one.why, one.cursor), (CALLBACK, *why, Offset(2)));
        assert_eq!((one.created, one.time), (ended.created, *time));
    }
    assert_eq!(store.ended_targets(listed[1].number, 2).expect("read"), listed[2..4]);
    assert_eq!(store.all_targets(TargetId(0), 10).expect("read"), []);
}

fn ended_targets_are_limited(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let (sender, receiver) = channel();
    for number in 0..ENDED_MAX + 2 {
        let sender = sender.clone();
        let done = move |result: Result<Target, LogError>| {
            sender.send(result.expect("created").id).expect("the test listens");
        };
        store.put_target_then(addressed(topic, &number.to_string()), Box::new(done));
    }
    drop(sender);
    for id in receiver {
        store.end_target_then(id, Ending::NotConfigured, Box::new(|_| ()));
    }
    // The answer to this request follows those to the requests before.
    assert!(!store.end_target(TargetId(0), Ending::ByHand).expect("no fault"));
    let listed = store.ended_targets(i64::MAX, usize::MAX).expect("read");
    assert_eq!(listed.len() as i64, ENDED_MAX);
    assert_eq!(listed[0].address, (ENDED_MAX + 1).to_string());
    assert_eq!(listed.last().map(|one| &*one.address), Some("2"));
}

fn leases_over_are_listed(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let lease = |name: &str, lease_until| {
        put(&*store, NewTarget { lease_until, ..addressed(topic, name) }).id
    };
    let (later, sooner) = (lease("a", Some(at(20))), lease("b", Some(at(10))));
    let (_, renewed) = (lease("c", None), lease("d", Some(at(15))));
    assert_eq!(lease("d", Some(at(30))), renewed);
    let over = |second, limit| store.leases_over(at(second), limit).expect("read");
    assert_eq!(over(20, 10), [sooner, later]);
    assert_eq!(over(20, 1), [sooner]);
    assert_eq!(over(9, 10), []);
    assert!(store.end_target(sooner, Ending::LeaseOver).expect("ended"));
    assert_eq!(over(20, 10), [later]);
}

fn verifications_are_kept(stores: &mut dyn HubStores) {
    let (store, clock, _) = store(stores);
    clock.set(at(3));
    let first = ask(&*store, asked(VerificationMode::Subscribe));
    let later =
        ask(&*store, NewVerification { next_at: at(60), ..asked(VerificationMode::Subscribe) });
    let denial = NewVerification {
        secret: None,
        lease_seconds: None,
        challenge: String::new(),
        reason: Some("too many".into()),
        ..asked(VerificationMode::Denied)
    };
    let denied = ask(&*store, denial.clone());
    let store = stores.reopen(store);
    let due = verifications(&*store);
    assert_eq!(due.len(), 3);
    assert_eq!((due[0].id, &due[0].request), (first, &asked(VerificationMode::Subscribe)));
    assert_eq!((due[0].attempts, due[0].created), (0, at(3)));
    assert_eq!((due[1].id, due[1].request.next_at), (later, at(60)));
    assert_eq!((due[2].id, &due[2].request), (denied, &denial));
    assert_eq!(store.verifications(first, 1).expect("read"), due[1..2]);
    assert_eq!(store.verification(denied).expect("read").as_ref(), Some(&due[2]));

    wait(|done| store.retry_verification_then(first, 1, at(90), done)).expect("recorded");
    let store = stores.reopen(store);
    let due: Vec<_> = verifications(&*store)
        .iter()
        .map(|one| (one.id, one.attempts, one.request.next_at))
        .collect();
    assert_eq!(due, [(first, 1, at(90)), (later, 0, at(60)), (denied, 0, at(0))]);
    assert_eq!(settle(&*store, denied, Settled::Dropped), None);
    wait(|done| store.retry_verification_then(denied, 1, at(90), done)).expect("changes nothing");
    assert_eq!(store.verification(denied).expect("read"), None);
    assert_eq!(store.sizes().expect("read").verifications, 2);
}

fn verifications_settle_once(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    publish_some(&*store, topic, 2);
    let [first, later] = [0, 60].map(|second| {
        let next_at = at(second);
        ask(&*store, NewVerification { next_at, ..asked(VerificationMode::Subscribe) })
    });
    let subscribed = settle(&*store, first, Settled::Subscribed(new(topic))).expect("a target");
    assert_eq!(subscribed.cursor, Offset(2));
    let store = stores.reopen(store);
    assert_eq!(settle(&*store, first, Settled::Subscribed(new(topic))), None, "only once");
    assert_eq!(target(&*store, subscribed.id), subscribed);
    assert_eq!(settle(&*store, later, Settled::Dropped), None);
    assert_eq!(target(&*store, subscribed.id), subscribed);
    let bye = ask(&*store, asked(VerificationMode::Unsubscribe));
    let ended = settle(&*store, bye, Settled::Unsubscribed).expect("a target");
    assert_eq!(ended.id, subscribed.id);
    let sizes = store.sizes().expect("read");
    assert_eq!((sizes.targets, sizes.verifications), (0, 0));
    let listed = store.ended_targets(i64::MAX, 10).expect("read");
    assert_eq!(
        (listed.len(), listed[0].id, listed[0].why, &*listed[0].address),
        (1, subscribed.id, Ending::Unsubscribed, CALLBACK)
    );
    let again = ask(&*store, asked(VerificationMode::Unsubscribe));
    assert_eq!(settle(&*store, again, Settled::Unsubscribed), None, "no target is left");
    assert_eq!(verifications(&*store), []);
}

fn refused_effects_settle_nothing(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let id = ask(&*store, asked(VerificationMode::Subscribe));
    let long = NewTarget { address: "a".repeat(9_000), ..new(topic) };
    let refused = store.finish_verification(id, Settled::Subscribed(long)).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    let unknown = new(TopicId(topic.0 + 1));
    let refused = store.finish_verification(id, Settled::Subscribed(unknown)).expect_err("unknown");
    assert_eq!(refused.kind(), ErrorKind::NoSet, "{refused}");
    let left: Vec<_> = verifications(&*store).iter().map(|one| one.id).collect();
    assert_eq!(left, [id]);
    assert!(settle(&*store, id, Settled::Subscribed(new(topic))).is_some());
}

fn numbers_are_not_used_again(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let first = put(&*store, new(topic));
    let asked_first = ask(&*store, asked(VerificationMode::Subscribe));
    assert!(store.end_target(first.id, Ending::ByHand).expect("ended"));
    assert_eq!(settle(&*store, asked_first, Settled::Dropped), None);
    let store = stores.reopen(store);
    let again = put(&*store, new(topic));
    assert!(again.id > first.id, "{again:?}");
    assert_eq!(again.generation, 1, "a target that ended is not continued");
    assert!(ask(&*store, asked(VerificationMode::Subscribe)) > asked_first);
}

fn long_values_are_refused(stores: &mut dyn HubStores) {
    let (store, _, topic) = store(stores);
    let refusal = |new| store.put_target(new).expect_err("refused");
    let long = Secret::from(vec![b'x'; 200]);
    let refused = refusal(NewTarget { secret: Some(long), ..new(topic) });
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(
        refused.to_string().contains("the secret has 200 bytes\n  help: at most 199"),
        "{refused}"
    );
    let refused = refusal(addressed(topic, &"a".repeat(9_000)));
    assert!(refused.to_string().contains("at most 8192"), "{refused}");
    let refused = store.open_topic(&"a".repeat(9_000)).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(refusal(new(TopicId(topic.0 + 1))).kind(), ErrorKind::NoSet);
    let long =
        NewVerification { challenge: "a".repeat(9_000), ..asked(VerificationMode::Subscribe) };
    let refused = wait(|done| store.put_verification_then(long, done)).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(verifications(&*store), []);
    put(&*store, new(topic));
}

fn summaries_describe_deliveries(stores: &mut dyn HubStores) {
    let (store, clock, topic) = store(stores);
    let empty = HubSummary { topic_count: 1, ..HubSummary::default() };
    assert_eq!(store.summary(START).expect("read"), empty);
    let [current, failing, gone, left] =
        ["a", "b", "c", "d"].map(|name| put(&*store, addressed(topic, name)));
    for second in [10, 20] {
        clock.set(at(second));
        publish_some(&*store, topic, 1);
    }
    let failed = Progress {
        attempts: 3,
        first_failed: Some(at(12)),
        next_at: Some(at(100)),
        last: Some(attempt(2, 3, Some("refused"))),
        dead: Some(DeadLetter::one(Offset(1), "gave up", at(12))),
        ..progress(&failing, 1)
    };
    assert!(save(&*store, vec![progress(&current, 2), failed]).is_empty());
    for (second, ended, why) in [(30, gone, Ending::Gone), (31, left, Ending::Unsubscribed)] {
        clock.set(at(second));
        assert!(store.end_target(ended.id, why).expect("ended"));
    }
    let summary = store.summary(at(30)).expect("read");
    let expected = HubSummary {
        topics: vec![TopicSummary {
            url: URL.into(),
            head: 2,
            targets: 2,
            failing: 1,
            behind: 1,
            lag: 1,
            oldest: Some(at(20)),
        }],
        topic_count: 1,
        targets: 2,
        failing: 1,
        failing_targets: vec![FailingTarget {
            id: failing.id.0,
            address: "b".into(),
            topic: URL.into(),
            attempts: 3,
            since: Some(at(12)),
            error: Some("refused".into()),
        }],
        dead_letters: 1,
        dead_subscriptions: 1,
    };
    assert_eq!(summary, expected);
    assert_eq!(store.summary(at(31)).expect("read").dead_subscriptions, 0);
}
