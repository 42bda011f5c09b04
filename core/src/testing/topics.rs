//! The contract of [`TopicLog`] as code: every store of topics runs it.

use super::{Named, START};
use crate::{
    Clock, ErrorKind, FixedClock, LogError, NewNotification, Notification, Offset, Payload,
    Position, TopicId, TopicLog, publish,
};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a test makes stores of topics.
pub trait TopicStores {
    /// A new and empty store with that clock.
    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<dyn TopicLog>;

    /// Closes the newest store and opens it again, with the same clock. A store that keeps nothing
    /// returns it as it is.
    fn reopen(&mut self, log: Arc<dyn TopicLog>) -> Arc<dyn TopicLog>;
}

/// Checks every promise of [`TopicLog`].
///
/// # Panics
/// When one is broken.
pub fn topic_log_contract(stores: &mut dyn TopicStores) {
    for (promise, check) in PROMISES {
        let guard = Named(promise);
        check(stores);
        std::mem::forget(guard);
    }
}

type Check = fn(&mut dyn TopicStores);

const PROMISES: &[(&str, Check)] = &[
    ("a topic is opened by its URL", topics_are_opened_by_url),
    ("an unknown topic is an error of its own kind", unknown_topics_are_told_apart),
    ("offsets of a topic are 1, 2, 3 … in the order of the calls", offsets_follow_the_calls),
    ("many publishers make one log", many_publishers_make_one_log),
    ("every part of a notification is kept", notifications_are_kept_whole),
    ("a refused notification leaves no gap", refused_notifications_leave_no_gap),
    ("readers see a notification no later than its answer", readers_see_what_is_answered),
    ("what is read follows an offset, up to a limit", reading_goes_on_after_an_offset),
    ("times do not step back in a topic", times_do_not_step_back),
    ("what is trimmed is gone, and nothing else", trimming_drops_the_oldest_only),
];

/// A notification of those bytes.
fn bytes(body: &[u8]) -> NewNotification {
    NewNotification {
        media_type: "application/xml".into(),
        links: String::new(),
        payload: Payload::Bytes(Arc::from(body)),
    }
}

/// A notification of the changes up to that position.
fn changes(last: u64) -> NewNotification {
    NewNotification {
        media_type: "application/xml".into(),
        links: String::new(),
        payload: Payload::Changes { after: Position(last - 1), last: Position(last) },
    }
}

fn store(stores: &mut dyn TopicStores) -> (Arc<dyn TopicLog>, Arc<FixedClock>, TopicId) {
    let clock = Arc::new(FixedClock::at(START));
    let log = stores.create(Arc::clone(&clock));
    let topic = log.open_topic("http://example.org/topic").expect("a topic can be opened");
    (log, clock, topic)
}

fn all(log: &dyn TopicLog, topic: TopicId) -> Vec<Notification> {
    let (mut found, mut after) = (Vec::new(), Offset(0));
    loop {
        let page = log.read(topic, after, 7).expect("notifications can be read");
        let Some(last) = page.last() else { return found };
        after = last.offset;
        found.extend(page);
    }
}

fn offsets(log: &dyn TopicLog, topic: TopicId) -> Vec<u64> {
    all(log, topic).iter().map(|notification| notification.offset.0).collect()
}

fn topics_are_opened_by_url(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    let others = [
        "http://example.org/topic?a=%2f",
        "http://example.org/topic?a=%2F",
        "http://example.org/Topic",
    ];
    let numbers = others.map(|url| log.open_topic(url).expect("opened"));
    let mut distinct = numbers.to_vec();
    distinct.push(topic);
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "URLs are compared as they are written");
    assert_eq!(log.head(topic).expect("a head"), Offset(0));
    assert_eq!(log.last(topic).expect("nothing yet"), None);
    publish(&*log, topic, bytes(b"a")).expect("published");
    let log = stores.reopen(log);
    assert_eq!(others.map(|url| log.open_topic(url).expect("opened")), numbers);
    assert_eq!(log.open_topic("http://example.org/topic").expect("opened"), topic);
    assert_eq!(
        log.head(topic).expect("a head"),
        Offset(1),
        "opening a topic changes nothing in it"
    );
}

fn unknown_topics_are_told_apart(stores: &mut dyn TopicStores) {
    let (log, _, TopicId(topic)) = store(stores);
    let unknown = TopicId(topic + 1_000);
    let kinds = [
        log.head(unknown).map(drop),
        log.read(unknown, Offset(0), 1).map(drop),
        log.last(unknown).map(drop),
        log.trim(unknown, Offset(1)),
        publish(&*log, unknown, bytes(b"a")).map(drop),
    ]
    .map(|result| result.map_err(|error: LogError| error.kind()));
    assert_eq!(kinds, [Err(ErrorKind::NoSet); 5]);
}

fn offsets_follow_the_calls(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    let other = log.open_topic("http://example.org/other").expect("opened");
    let (sender, receiver) = channel();
    for number in 0..200_u64 {
        let sender = sender.clone();
        let place = if number % 4 == 3 { other } else { topic };
        let done =
            Box::new(move |result| sender.send((number, place, result)).expect("the test listens"));
        log.publish_then(place, bytes(&number.to_be_bytes()), done);
    }
    drop(sender);
    let told: Vec<(u64, TopicId, Offset)> = receiver
        .iter()
        .map(|(number, place, result)| (number, place, result.expect("published")))
        .collect();
    assert_eq!(told.len(), 200, "every call is answered once");
    for (number, place, offset) in told {
        let expected = if place == other { number / 4 + 1 } else { number - number / 4 + 1 };
        assert_eq!(offset, Offset(expected), "call {number}");
    }
    let log = stores.reopen(log);
    assert_eq!(offsets(&*log, topic), (1..=150).collect::<Vec<_>>());
    assert_eq!(offsets(&*log, other), (1..=50).collect::<Vec<_>>());
    assert_eq!(publish(&*log, other, bytes(b"after")).expect("published"), Offset(51));
}

fn many_publishers_make_one_log(stores: &mut dyn TopicStores) {
    const THREADS: u64 = 8;
    const EACH: u64 = 40;
    let (log, _, topic) = store(stores);
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, told) = (&log, &told);
            scope.spawn(move || {
                let mut before = Offset(0);
                for number in 0..EACH {
                    let body = [thread as u8, number as u8];
                    let offset = publish(&**log, topic, bytes(&body)).expect("published");
                    assert!(offset > before, "a later call has a later offset");
                    before = offset;
                    told.lock().expect("no panic").push((offset, body));
                }
            });
        }
    });
    let mut told = told.into_inner().expect("no panic");
    told.sort_unstable();
    let kept: Vec<(Offset, Payload)> =
        all(&*log, topic).into_iter().map(|one| (one.offset, one.content.payload)).collect();
    let told: Vec<(Offset, Payload)> = told
        .into_iter()
        .map(|(offset, body)| (offset, Payload::Bytes(Arc::from(&body[..]))))
        .collect();
    assert_eq!(kept, told);
    assert_eq!(log.head(topic).expect("a head"), Offset(THREADS * EACH));
}

fn notifications_are_kept_whole(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    let large: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let published = [
        bytes(b""),
        bytes(&large),
        changes(1),
        NewNotification {
            media_type: "text/plain; charset=\"utf-8\"".into(),
            links: "<http://example.org/é>; rel=\"resourcesync\", <http://example.org/b>; rel=up"
                .into(),
            payload: Payload::Changes { after: Position(1), last: Position(1 << 40) },
        },
        bytes(b"\0\xff not text"),
    ];
    for notification in &published {
        publish(&*log, topic, notification.clone()).expect("published");
    }
    let log = stores.reopen(log);
    let kept: Vec<NewNotification> = all(&*log, topic).into_iter().map(|one| one.content).collect();
    assert_eq!(kept, published);
    assert_eq!(log.last(topic).expect("the last").expect("is kept").content, published[4]);
}

fn refused_notifications_leave_no_gap(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    publish(&*log, topic, bytes(b"1")).expect("published");
    let backwards = NewNotification {
        payload: Payload::Changes { after: Position(5), last: Position(5) },
        ..bytes(b"")
    };
    let endless = NewNotification { media_type: "a".repeat(100_000), ..bytes(b"") };
    for faulty in [backwards, endless] {
        let refused = publish(&*log, topic, faulty).expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    }
    assert_eq!(publish(&*log, topic, bytes(b"2")).expect("published"), Offset(2));
    assert_eq!(offsets(&*log, topic), [1, 2]);
}

fn readers_see_what_is_answered(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    let (sender, receiver) = channel();
    for _ in 0..20 {
        let (sender, reader) = (sender.clone(), Arc::downgrade(&log));
        let done = move |result: Result<Offset, LogError>| {
            let offset = result.expect("published");
            let log = reader.upgrade().expect("the test keeps it");
            let head = log.head(topic).expect("a head");
            let read = log.read(topic, Offset(offset.0 - 1), 1).expect("read");
            sender
                .send((offset, head, read.first().map(|one| one.offset)))
                .expect("the test listens");
        };
        log.publish_then(topic, bytes(b"seen"), Box::new(done));
    }
    drop(sender);
    for (offset, head, read) in &receiver {
        assert!(head >= offset, "{offset:?} was answered, the head is {head:?}");
        assert_eq!(read, Some(offset));
    }
}

fn reading_goes_on_after_an_offset(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    for number in 1..=10 {
        publish(&*log, topic, changes(number)).expect("published");
    }
    let read = |after: u64, limit: usize| -> Vec<u64> {
        let page = log.read(topic, Offset(after), limit).expect("read");
        page.iter().map(|notification| notification.offset.0).collect()
    };
    assert_eq!(read(0, 3), [1, 2, 3]);
    assert_eq!(read(3, 100), [4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(read(9, usize::MAX), [10]);
    assert_eq!(read(5, 0), [0_u64; 0]);
    assert_eq!(read(10, 5), [0_u64; 0]);
    assert_eq!(read(u64::MAX, 5), [0_u64; 0]);
    assert_eq!(log.last(topic).expect("read").expect("one is kept").offset, Offset(10));
}

fn times_do_not_step_back(stores: &mut dyn TopicStores) {
    let (log, clock, topic) = store(stores);
    let minute = Duration::from_secs(60).as_micros() as i64;
    let mut log = Some(log);
    for step in [0, 5, -3, 2, -100, 0] {
        clock.set(clock.now().plus_micros(step * minute));
        let open = log.take().expect("a store");
        publish(&*open, topic, bytes(b"")).expect("published");
        log = Some(stores.reopen(open));
    }
    let log = log.expect("a store");
    let times: Vec<_> = all(&*log, topic).iter().map(|notification| notification.time).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(times[0], START);
    assert_eq!(times[1], START.plus_micros(5 * minute));
    assert_eq!(times.len(), 6);
}

fn trimming_drops_the_oldest_only(stores: &mut dyn TopicStores) {
    let (log, _, topic) = store(stores);
    let other = log.open_topic("http://example.org/other").expect("opened");
    log.trim(topic, Offset(5)).expect("nothing to trim");
    for number in 1..=2_500_u64 {
        log.publish_then(
            topic,
            if number % 2 == 0 { changes(number) } else { bytes(b"body") },
            Box::new(|_| ()),
        );
    }
    publish(&*log, other, bytes(b"other")).expect("published");
    log.trim(topic, Offset(2_400)).expect("trimmed");
    assert_eq!(offsets(&*log, topic), (2_401..=2_500).collect::<Vec<_>>());
    log.trim(topic, Offset(100)).expect("trimmed before");
    assert_eq!(
        log.read(topic, Offset(0), 1).expect("read")[0].offset,
        Offset(2_401),
        "fewer, and one sees it"
    );
    let log = stores.reopen(log);
    log.trim(topic, Offset(u64::MAX)).expect("trimmed");
    assert_eq!(offsets(&*log, topic), [2_500], "the last one stays");
    assert_eq!(log.head(topic).expect("a head"), Offset(2_500));
    assert_eq!(offsets(&*log, other), [1], "another topic keeps its own");
    assert_eq!(log.last(other).expect("read").expect("kept").content, bytes(b"other"));
    let log = stores.reopen(log);
    assert_eq!(publish(&*log, topic, bytes(b"next")).expect("published"), Offset(2_501));
    assert_eq!(offsets(&*log, topic), [2_500, 2_501]);
}
