//! Notifications: prompt, in order, without gaps and without repeats.

use crate::world::{BASE, World, bytes};
use abreast_core::{
    Change, Clock, ErrorKind, FixedClock, LogError, NewNotification, NewSet, Notification, Offset,
    PageRule, Payload, Position, PublishDone, State, SystemClock, TopicId, TopicLog, append,
};
use abreast_resourcesync::v1_1::{Capability, Change as Kind, Document, Root};
use abreast_source::archive::{Archive, ArchiveRule};
use abreast_source::dump::DumpOptions;
use abreast_source::notify::{Notifier, NotifyOptions, Published};
use abreast_source::projection::TopicContent;
use abreast_source::projection::resourcesync::Channel;
use abreast_source::publish::{Notifications, PublishedSet, Publisher, SourceUrls};
use abreast_store::hub::SqliteHub;
use abreast_testkit::eventually;
use abreast_webtypes::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HUB: &str = "https://hub.example/?a=1&b=2";
const HOUR: Duration = Duration::from_secs(3_600);

fn state(length: u64) -> State {
    State { length: Some(length), ..State::default() }
}

fn put(world: &World, keys: impl IntoIterator<Item = u64>) {
    let changes = keys.into_iter().map(|key| Change::put(format!("k{key}"), state(key))).collect();
    append(&*world.log, world.set, changes).unwrap();
}

fn publisher(world: &World) -> Publisher {
    notifying(world, Notifications::at([HUB]))
}

fn notifying(world: &World, notifications: Notifications) -> Publisher {
    world.publisher_of(PublishedSet { notifications: Some(notifications), ..world.published() })
}

/// Options without a pause, so that tests do not wait.
fn prompt() -> NotifyOptions {
    NotifyOptions::default().with_debounce(Duration::ZERO)
}

fn start(world: &World, topics: &Arc<dyn TopicLog>, options: NotifyOptions) -> Notifier {
    start_with(world, publisher(world), topics, options)
}

fn start_with(
    world: &World,
    publisher: Publisher,
    topics: &Arc<dyn TopicLog>,
    options: NotifyOptions,
) -> Notifier {
    let record = world.temporary.path().join("notify.json");
    let told: Published = Arc::new(|_| {});
    let clock = Arc::new(SystemClock);
    Notifier::start(Arc::new(publisher), Arc::clone(topics), record, options, clock, told).unwrap()
}

fn topics(world: &World) -> Arc<dyn TopicLog> {
    Arc::new(hub_store(world))
}

fn hub_store(world: &World) -> SqliteHub {
    let path = world.temporary.path().join("topics.db");
    SqliteHub::open(&path, Arc::new(SystemClock)).unwrap()
}

fn topic(channel: Channel) -> String {
    SourceUrls::new(BASE).set("set").topic(channel)
}

/// The notifications of a topic.
fn said(topics: &dyn TopicLog, url: &str) -> Vec<Notification> {
    let topic = topics.open_topic(url).unwrap();
    topics.read(topic, Offset(0), 100_000).unwrap()
}

fn ranges(topics: &dyn TopicLog) -> Vec<(u64, u64)> {
    let all = said(topics, &topic(Channel::Change));
    let range = |one: Notification| match one.content.payload {
        Payload::Changes { after, last } => (after.0, last.0),
        Payload::Bytes(_) => panic!("bytes in a topic of changes"),
    };
    all.into_iter().map(range).collect()
}

fn told_up_to(topics: &dyn TopicLog, position: u64) {
    eventually("all changes are told", || {
        ranges(topics).last().is_some_and(|(_, last)| *last == position)
    });
}

fn rendered(publisher: &Publisher, (after, last): (u64, u64)) -> Document {
    let bytes =
        publisher.notification(&topic(Channel::Change), Position(after), Position(last)).unwrap();
    Document::from_slice(&bytes).unwrap()
}

fn framework(topics: &dyn TopicLog, url: &str) -> Vec<Document> {
    let document = |one: Notification| match one.content.payload {
        Payload::Bytes(bytes) => Document::from_slice(&bytes).unwrap(),
        Payload::Changes { .. } => panic!("a range in a topic of documents"),
    };
    said(topics, url).into_iter().map(document).collect()
}

/// The entries of a document, as `change capability path [index]`.
fn entries(document: &Document) -> Vec<String> {
    let short = |url: &str| url.strip_prefix(BASE).unwrap().to_owned();
    let entry = |entry: &abreast_resourcesync::v1_1::Entry| {
        let index = entry.links.iter().find(|link| link.has_rel("index"));
        let index = index.map(|link| format!(" {}", short(&link.href))).unwrap_or_default();
        format!(
            "{} {} {}{index}",
            entry.change.unwrap().token(),
            entry.capability.unwrap().token(),
            short(&entry.loc)
        )
    };
    document.entries.iter().map(entry).collect()
}

fn all_entries(topics: &dyn TopicLog) -> Vec<String> {
    framework(topics, &topic(Channel::Framework)).iter().flat_map(entries).collect()
}

#[test]
fn channels_stand_in_the_capability_list_with_their_hub() {
    let world = World::begun();
    let hubs = [HUB, "https://other.example/"];
    let told = Notifications { framework: false, ..Notifications::at(hubs) };
    let publisher = notifying(&world, told);
    let list = Document::from_slice(&bytes(&publisher, "set/capabilitylist.xml")).unwrap();
    let channels: Vec<_> = list
        .entries
        .iter()
        .filter(|entry| entry.links.iter().any(|link| link.has_rel("hub")))
        .collect();
    assert_eq!(channels.len(), 1);
    assert_eq!(channels[0].loc, "https://example.org/set/notify/change");
    assert_eq!(channels[0].capability, Some(Capability::ChangeNotification));
    assert_eq!(channels[0].links.iter().map(|link| link.href.as_str()).collect::<Vec<_>>(), hubs);
    let topic = publisher.topic_at("set/notify/change").unwrap();
    assert_eq!((&topic.url, topic.content), (&channels[0].loc, TopicContent::Changes));
    assert!(Arc::ptr_eq(&topic.set, publisher.find_set("set").unwrap()));
    assert!(publisher.topic_at("set/notify/framework").is_none());
    assert!(publisher.topic_at("set/notify/changes").is_none());
    let plain = bytes(&world.publisher(), "set/capabilitylist.xml");
    assert!(
        !String::from_utf8(plain).unwrap().contains("notif"),
        "one who tells nothing says nothing of it"
    );
}

#[test]
fn a_topic_answers_with_its_last_notification() {
    let world = World::begun();
    put(&world, 0..3);
    let (topics, publisher) = (topics(&world), publisher(&world));
    let notifier = start(&world, &topics, prompt());
    let ask = |channel: Channel| {
        let topic = publisher.topic_at(&format!("set/notify/{}", channel.name())).unwrap();
        publisher.last_notification(&*topics, &topic).unwrap()
    };
    let empty = ask(Channel::Change);
    assert!(empty.body.is_empty() && empty.offset.is_none(), "what was before is not told");
    assert_eq!(
        empty.links,
        "<https://hub.example/?a=1&b=2>; rel=\"hub\", <https://example.org/set/notify/change>; rel=\"self\", \
         <https://example.org/set/capabilitylist.xml>; rel=\"resourcesync\""
    );
    put(&world, 7..8);
    told_up_to(&*topics, 4);
    notifier.stop();
    let document = ask(Channel::Change);
    assert_eq!((document.media_type.as_str(), &document.links), ("application/xml", &empty.links));
    assert_eq!(document.offset, Some(Offset(1)));
    let read = Document::from_slice(&document.body).unwrap();
    assert_eq!(
        (read.head.root, read.head.capability),
        (Root::UrlSet, Some(Capability::ChangeNotification))
    );
    assert!(
        read.head
            .links
            .iter()
            .any(|link| link.has_rel("up") && link.href.ends_with("/set/capabilitylist.xml"))
    );
    assert_eq!(read.entries.len(), 1);
    assert_eq!(
        (read.entries[0].loc.as_str(), read.entries[0].change),
        ("https://example.org/set/r/k7", Some(Kind::Created))
    );
    assert!(read.entries[0].datetime.is_some() && read.entries[0].capability.is_none());
    let said = said(&*topics, &topic(Channel::Change));
    assert_eq!(
        said[0].content.links,
        "<https://example.org/set/capabilitylist.xml>; rel=\"resourcesync\""
    );
    assert!(!ask(Channel::Framework).body.is_empty());
    assert!(world.publisher().topics().is_empty(), "no notifications, no topic");
}

#[test]
fn the_first_change_is_notified_at_once_and_later_ones_together() {
    let world = World::begun();
    let topics = topics(&world);
    let notifier = start(&world, &topics, NotifyOptions::default().with_debounce(HOUR));
    put(&world, 0..1);
    told_up_to(&*topics, 1);
    put(&world, 1..2);
    put(&world, 2..5);
    notifier.stop();
    assert_eq!(ranges(&*topics), [(0, 1)], "an hour did not pass");
    let notifier = start(&world, &topics, NotifyOptions::default().with_debounce(HOUR));
    told_up_to(&*topics, 5);
    notifier.stop();
    assert_eq!(
        ranges(&*topics),
        [(0, 1), (1, 5)],
        "what was not told before the end is told after the next start"
    );
}

#[test]
fn more_than_fits_becomes_several_in_order_and_without_a_pause() {
    let world = World::begun();
    let topics = topics(&world);
    let notifier =
        start(&world, &topics, NotifyOptions::default().with_debounce(HOUR).with_most(10));
    put(&world, 0..25);
    told_up_to(&*topics, 25);
    notifier.stop();
    assert_eq!(ranges(&*topics), [(0, 10), (10, 20), (20, 25)]);
    put(&world, 30..33);
    append(
        &*world.log,
        world.set,
        vec![Change::put("x".repeat(2_000), state(1)), Change::delete("k1")],
    )
    .unwrap();
    let notifier =
        start(&world, &topics, NotifyOptions::default().with_debounce(HOUR).with_bytes(900));
    told_up_to(&*topics, 30);
    notifier.stop();
    assert_eq!(
        ranges(&*topics)[3..],
        [(25, 27), (27, 28), (28, 29), (29, 30)],
        "one is told however long it is"
    );
}

/// Checks that `from` of each notification is `until` of the previous one, and that every change is
/// in exactly one notification.
fn assert_chain(world: &World, topics: &dyn TopicLog, publisher: &Publisher) -> usize {
    let ranges = ranges(topics);
    let mut before: Option<Document> = None;
    let mut told = Vec::new();
    for range in &ranges {
        let document = rendered(publisher, *range);
        assert_eq!(document.entries.len() as u64, range.1 - range.0);
        let (from, until) =
            (document.head.from.unwrap().instant, document.head.until.unwrap().instant);
        assert!(document.entries.iter().all(|entry| {
            let time = entry.datetime.unwrap().instant;
            from < time && time <= until
        }));
        assert!(
            document
                .entries
                .windows(2)
                .all(|pair| pair[0].datetime.unwrap().instant < pair[1].datetime.unwrap().instant)
        );
        if let Some(before) = before {
            assert_eq!(before.head.until, document.head.from, "{range:?}");
        }
        told.extend(
            document.entries.iter().map(|entry| (entry.loc.clone(), entry.datetime, entry.change)),
        );
        before = Some(document);
    }
    let mut log = Vec::new();
    world
        .log
        .read(world.set, Position(ranges.first().map_or(0, |first| first.0)), &mut |record| {
            log.push((format!("{BASE}set/r/{}", record.key), record.time));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    let told: Vec<_> =
        told.into_iter().map(|(loc, time, _)| (loc, time.unwrap().instant)).collect();
    assert_eq!(told, log);
    ranges.len()
}

#[test]
fn over_restarts_every_change_is_notified_once() {
    let world = World::begun();
    put(&world, 0..3);
    // Changes after the first start are notified, although the first run notified no changes.
    start(&world, &topics(&world), prompt()).stop();
    put(&world, 3..5);
    let (path, clock): (_, Arc<dyn Clock>) =
        (world.temporary.path().join("hub.db"), Arc::new(SystemClock));
    let open =
        || -> Arc<dyn TopicLog> { Arc::new(SqliteHub::open(&path, Arc::clone(&clock)).unwrap()) };
    let stop = AtomicBool::new(false);
    let next = AtomicU64::new(10);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let key = next.fetch_add(7, Ordering::Relaxed);
                put(&world, key..key + 7);
            }
        });
        for round in 0..6 {
            let topics = open();
            let before = ranges(&*topics).len();
            let options = prompt()
                .with_most(5 + round * 3)
                .with_debounce(Duration::from_millis(round as u64));
            let notifier = start(&world, &topics, options);
            eventually("something is told", || ranges(&*topics).len() > before + 2);
            notifier.stop();
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let topics = open();
    let notifier = start(&world, &topics, prompt());
    told_up_to(&*topics, world.log.head(world.set).unwrap().position.0);
    notifier.stop();
    assert!(assert_chain(&world, &*topics, &publisher(&world)) > 12);
    assert_eq!(ranges(&*topics)[0].0, 3, "a topic begins where the log stood then");
}

/// Topics whose store fails at intervals, before or after it records a notification.
struct Failing {
    inner: SqliteHub,
    calls: AtomicU64,
}

impl TopicLog for Failing {
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError> {
        self.inner.open_topic(url)
    }

    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone) {
        let failed = || Err(LogError::new(ErrorKind::Io, "the disk failed"));
        match self.calls.fetch_add(1, Ordering::Relaxed) % 5 {
            3 => done(failed()),
            4 => {
                let published = abreast_core::publish(&self.inner, topic, notification);
                assert!(published.is_ok());
                done(failed());
            }
            _ => self.inner.publish_then(topic, notification, done),
        }
    }

    fn head(&self, topic: TopicId) -> Result<Offset, LogError> {
        self.inner.head(topic)
    }

    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError> {
        self.inner.read(topic, after, limit)
    }

    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError> {
        self.inner.trim(topic, up_to)
    }
}

#[test]
fn a_store_that_fails_loses_nothing_and_repeats_nothing() {
    let world = World::begun();
    let inner = hub_store(&world);
    let topics: Arc<dyn TopicLog> = Arc::new(Failing { inner, calls: AtomicU64::new(0) });
    let told = Notifications { framework: false, ..Notifications::at([HUB]) };
    let publisher = || notifying(&world, told.clone());
    let notifier = start_with(&world, publisher(), &topics, prompt().with_most(4));
    put(&world, 0..30);
    told_up_to(&*topics, 30);
    notifier.stop();
    assert_eq!(assert_chain(&world, &*topics, &publisher()), 8);
}

/// Topics whose store is replaced by a copy without the last notifications.
struct Replaced {
    stores: [SqliteHub; 2],
    is_copied: AtomicBool,
    lost_last: AtomicBool,
}

impl Replaced {
    fn store(&self) -> &SqliteHub {
        &self.stores[usize::from(self.lost_last.load(Ordering::Relaxed))]
    }
}

impl TopicLog for Replaced {
    fn open_topic(&self, url: &str) -> Result<TopicId, LogError> {
        let [first, copy] = &self.stores;
        let topic = first.open_topic(url)?;
        assert_eq!(copy.open_topic(url)?, topic);
        Ok(topic)
    }

    fn publish_then(&self, topic: TopicId, notification: NewNotification, done: PublishDone) {
        if self.is_copied.load(Ordering::Relaxed) {
            let copied = abreast_core::publish(&self.stores[1], topic, notification.clone());
            assert!(copied.is_ok());
        }
        self.store().publish_then(topic, notification, done);
    }

    fn head(&self, topic: TopicId) -> Result<Offset, LogError> {
        self.store().head(topic)
    }

    fn read(
        &self,
        topic: TopicId,
        after: Offset,
        limit: usize,
    ) -> Result<Vec<Notification>, LogError> {
        self.store().read(topic, after, limit)
    }

    fn trim(&self, topic: TopicId, up_to: Offset) -> Result<(), LogError> {
        self.store().trim(topic, up_to)
    }
}

#[test]
fn changes_whose_notification_was_lost_are_notified_again() {
    let world = World::begun();
    let path = world.temporary.path().join("copy.db");
    let copy = SqliteHub::open(&path, Arc::new(SystemClock)).unwrap();
    let topics = Arc::new(Replaced {
        stores: [hub_store(&world), copy],
        is_copied: AtomicBool::new(true),
        lost_last: AtomicBool::new(false),
    });
    let told = Notifications { framework: false, ..Notifications::at([HUB]) };
    let log: Arc<dyn TopicLog> = topics.clone();
    let notifier = start_with(&world, notifying(&world, told), &log, prompt());
    put(&world, 0..1);
    told_up_to(&*topics, 1);
    topics.is_copied.store(false, Ordering::Relaxed);
    put(&world, 1..3);
    told_up_to(&*topics, 3);
    topics.lost_last.store(true, Ordering::Relaxed);
    put(&world, 3..4);
    told_up_to(&*topics, 4);
    notifier.stop();
    assert_eq!(ranges(&*topics), [(0, 1), (1, 4)]);
}

#[test]
fn a_set_notifies_nothing_before_its_base_is_complete() {
    let world = World::new();
    let topics = topics(&world);
    let notifier = start(&world, &topics, prompt());
    let base = abreast_core::Imported { key: "k1".into(), state: state(1), witness: Vec::new() };
    world.log.import(world.set, vec![base]).unwrap();
    eventually("the Capability List is told", || !all_entries(&*topics).is_empty());
    world.log.complete_import(world.set).unwrap();
    put(&world, 2..3);
    told_up_to(&*topics, 1);
    eventually("the lists are told", || all_entries(&*topics).len() == 4);
    notifier.stop();
    assert_eq!(rendered(&publisher(&world), (0, 1)).entries.len(), 1);
    let began = world.log.head(world.set).unwrap().created;
    assert_eq!(rendered(&publisher(&world), (0, 1)).head.from.unwrap().instant, began);
    let mut entries = all_entries(&*topics);
    entries.sort();
    assert_eq!(
        entries,
        [
            "created capabilitylist set/capabilitylist.xml",
            "created changelist set/changelist.xml",
            "created description .well-known/resourcesync",
            "created resourcelist set/resourcelist.xml",
        ]
    );
}

#[test]
fn a_restarted_log_shows_readers_the_gap() {
    let world = World::begun();
    let topics = topics(&world);
    let notifier = start(&world, &topics, prompt());
    put(&world, 0..3);
    told_up_to(&*topics, 3);
    eventually("the lists are told", || all_entries(&*topics).len() == 4);
    notifier.stop();
    let before = rendered(&publisher(&world), (0, 3)).head.until.unwrap().instant;
    let World { temporary, folder, log, set } = world;
    drop(log);
    let path = temporary.path().join("source.db");
    abreast_store::backup::restart_log(&path, SystemClock.now()).unwrap();
    let log = Arc::new(abreast_store::SqliteLog::open(&path, Arc::new(SystemClock)).unwrap());
    let world = World { temporary, folder, log, set };
    let notifier = start(&world, &topics, prompt());
    put(&world, 5..6);
    let head = world.log.head(world.set).unwrap().position.0;
    told_up_to(&*topics, head);
    eventually("the lists are told anew", || all_entries(&*topics).len() == 6);
    notifier.stop();
    let last = *ranges(&*topics).last().unwrap();
    let after = rendered(&publisher(&world), last);
    assert_eq!(after.entries.len(), 1);
    assert!(after.head.from.unwrap().instant > before, "a reader sees that something is missing");
    assert!(
        rendered(&publisher(&world), (0, 3)).entries.len() <= 3,
        "what is gone from the log is told as nothing"
    );
    // A range over the restart, as in a topic whose notification was late: no change is before
    // `from`.
    let over = rendered(&publisher(&world), (1, head));
    assert_eq!((over.entries.len(), &over.head.from), (1, &after.head.from));
    assert_eq!(all_entries(&*topics)[4], "updated resourcelist set/resourcelist.xml");
    assert!(all_entries(&*topics)[5].starts_with("created changelist set/changelist"));
}

#[test]
fn documents_are_notified_once_also_over_restarts() {
    let world = World::begun();
    let topics = topics(&world);
    let options = prompt().with_change_list_every(HOUR);
    let notifier = start(&world, &topics, options);
    eventually("all documents are told", || all_entries(&*topics).len() == 4);
    put(&world, 0..1);
    eventually("the first change in the list is told", || all_entries(&*topics).len() == 5);
    put(&world, 1..2);
    told_up_to(&*topics, 2);
    notifier.stop();
    let before = all_entries(&*topics);
    assert_eq!(
        before[4..],
        ["updated changelist set/changelist.xml"],
        "the next one only after an hour"
    );
    let notifier = start(&world, &topics, options.with_change_list_every(Duration::ZERO));
    put(&world, 2..3);
    told_up_to(&*topics, 3);
    notifier.stop();
    assert_eq!(
        all_entries(&*topics),
        before,
        "nothing else changed, and open lists are never told"
    );
    let told = Notifications::at([HUB, "https://other.example/"]);
    let other = notifying(&world, told);
    let notifier =
        start_with(&world, other, &topics, options.with_change_list_every(Duration::ZERO));
    eventually("the Capability List is told", || all_entries(&*topics).len() == before.len() + 1);
    notifier.stop();
    assert_eq!(all_entries(&*topics)[5..], ["updated capabilitylist set/capabilitylist.xml"]);
    let documents = framework(&*topics, &topic(Channel::Framework));
    assert!(documents[0].head.from.is_none());
    for pair in documents.windows(2) {
        assert_eq!(pair[0].head.until, pair[1].head.from, "a reader sees when one was missed");
    }
    assert!(
        documents.iter().all(|one| one.head.capability == Some(Capability::FrameworkNotification))
    );
}

#[test]
fn closed_and_split_lists_are_notified_with_their_index() {
    let world = World::with(PageRule { changes: 10, ..PageRule::default() }, 10);
    world.log.complete_import(world.set).unwrap();
    let topics = topics(&world);
    let options = prompt().with_change_list_every(HOUR);
    let notifier = start(&world, &topics, options);
    eventually("all documents are told", || all_entries(&*topics).len() == 4);
    put(&world, 0..25);
    eventually("closed lists are told", || {
        let told = all_entries(&*topics);
        told.iter().any(|told| told.starts_with("created changelist set/changelist/3.xml"))
    });
    notifier.stop();
    let told = all_entries(&*topics);
    let index = "set/changelist.xml";
    for expected in
        ["updated changelist set/changelist/1.xml", "created changelist set/changelist/3.xml"]
    {
        assert!(told.contains(&format!("{expected} {index}")), "{told:?}");
    }
    let lists: Vec<_> = told[4..].iter().filter(|told| told.contains(" resourcelist ")).collect();
    assert!(
        !lists.is_empty()
            && lists.iter().all(|told| told.starts_with("created resourcelist set/resourcelist/"))
    );
    assert!(lists.iter().all(|told| told.ends_with(" set/resourcelist.xml")), "{lists:?}");
    assert!(
        !told[4..].iter().any(|told| told.split(' ').nth(2) == Some("set/resourcelist.xml")),
        "never the index"
    );
}

#[test]
fn dumps_and_archives_are_notified_when_they_are_made() {
    let world = World::begun();
    world.write("a", "one");
    world.scan();
    let options = DumpOptions { every: Duration::ZERO, changes: true, ..DumpOptions::default() };
    let (shared, dumps) = world.dumps(options, None);
    let folder = world.temporary.path();
    let archive =
        Archive::open(folder.join("archive"), ArchiveRule { every: HOUR, keep: 3 }, None).unwrap();
    let set = PublishedSet { notifications: Some(Notifications::at([HUB])), ..world.published() };
    let set = set.with(Some(Arc::clone(&dumps))).with(Some(Arc::new(archive)));
    let publisher = world.publisher_of(set);
    let (topics, publisher) = (topics(&world), Arc::new(publisher));
    let record = world.temporary.path().join("notify.json");
    let notifier = |options: NotifyOptions| {
        let (publisher, topics) = (Arc::clone(&publisher), Arc::clone(&topics));
        Notifier::start(
            publisher,
            topics,
            record.clone(),
            options,
            Arc::new(SystemClock),
            Arc::new(|_| {}),
        )
        .unwrap()
    };
    let is_told = |wanted: &str| {
        eventually(wanted, || all_entries(&*topics).iter().any(|told| told == wanted));
    };
    let first = notifier(prompt());
    is_told("created capabilitylist set/capabilitylist.xml");
    let dumper = shared.start([dumps]).unwrap();
    is_told("created resourcedump set/resourcedump.xml");
    is_told("created changedump set/changedump.xml");
    is_told("updated capabilitylist set/capabilitylist.xml");
    abreast_source::archive::take(&*world.log, &publisher.sets()[0], &AtomicBool::new(false))
        .unwrap();
    is_told("created resourcelist-archive set/resourcelist-archive.xml");
    world.write("b", "two");
    world.scan();
    is_told("updated changedump set/changedump.xml");
    dumper.stop();
    first.stop();
    let before = all_entries(&*topics);
    assert!(
        !before.iter().any(|told| told.starts_with("updated resourcedump ")),
        "a dump is only ever created"
    );
    let second = notifier(prompt().with_change_list_every(Duration::ZERO));
    let told = world.log.head(world.set).unwrap().position.0;
    put(&world, 1..2);
    told_up_to(&*topics, told + 1);
    second.stop();
    let again = all_entries(&*topics).split_off(before.len());
    assert!(
        again.iter().all(|told| told.contains("dump")),
        "what is the same is not told again: {again:?}"
    );
}

fn two_sets(world: &World, slugs: &[&str]) -> Publisher {
    let urls = SourceUrls::new(BASE);
    let open = |slug: &&str| {
        let set =
            world.log.open_set(&NewSet { slug: (*slug).into(), ..NewSet::default() }).unwrap();
        world.log.complete_import(set.id).unwrap();
        let notifications = Some(Notifications::at([HUB]));
        PublishedSet { notifications, ..PublishedSet::new(set.id, *slug, urls.set(slug)) }
    };
    let sets: Vec<_> = slugs.iter().map(open).collect();
    let folder = world.temporary.path().join("documents");
    Publisher::new(Arc::clone(&world.log), urls, sets, folder).unwrap()
}

#[test]
fn added_and_removed_sets_are_notified_on_framework_topics() {
    let world = World::begun();
    let topics = topics(&world);
    let channel = |slug: &str| SourceUrls::new(BASE).set(slug).topic(Channel::Framework);
    let told = |slug: &str| -> Vec<String> {
        framework(&*topics, &channel(slug)).iter().flat_map(entries).collect()
    };
    let run = |slugs: &[&str], so: &dyn Fn() -> bool| {
        let notifier = start_with(&world, two_sets(&world, slugs), &topics, prompt());
        eventually("documents are told", so);
        notifier.stop();
    };
    run(&["one"], &|| told("one").len() == 4);
    run(&["one", "two"], &|| told("one").len() == 5 && told("two").len() == 4);
    assert_eq!(told("one")[4..], ["updated description .well-known/resourcesync"]);
    assert_eq!(told("two")[0], "updated description .well-known/resourcesync");
    assert_eq!(told("two")[1], "created capabilitylist two/capabilitylist.xml");
    run(&["two"], &|| told("one").len() == 6 && told("two").len() == 5);
    assert_eq!(told("one")[5..], ["deleted capabilitylist one/capabilitylist.xml"]);
    assert_eq!(told("two")[4..], ["updated description .well-known/resourcesync"]);
    run(&["two", "three"], &|| told("two").len() == 6 && told("three").len() == 4);
    assert_eq!(told("one").len(), 6, "what is gone is told to be gone once");
}

#[test]
fn a_hub_is_notified_of_new_notifications_at_once() {
    let world = World::begun();
    let topics = topics(&world);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let published: Published = Arc::new(move |topic| note.lock().unwrap().push(topic));
    let record = world.temporary.path().join("notify.json");
    let told = Notifications { framework: false, ..Notifications::at([HUB]) };
    let publisher = Arc::new(notifying(&world, told));
    let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(1)));
    let notifier =
        Notifier::start(publisher, Arc::clone(&topics), record, prompt(), clock, published)
            .unwrap();
    put(&world, 0..1);
    told_up_to(&*topics, 1);
    eventually("the hub knows", || !seen.lock().unwrap().is_empty());
    notifier.stop();
    assert_eq!(*seen.lock().unwrap(), [topics.open_topic(&topic(Channel::Change)).unwrap()]);
}

#[test]
fn a_damaged_record_of_notified_documents_notifies_again() {
    let world = World::begun();
    let topics = topics(&world);
    let record = world.temporary.path().join("notify.json");
    std::fs::write(&record, "{").unwrap();
    let notifications = Notifications { framework: false, ..Notifications::at([HUB]) };
    let notifier = Notifier::start(
        Arc::new(notifying(&world, notifications)),
        Arc::clone(&topics),
        record.clone(),
        prompt(),
        Arc::new(SystemClock),
        Arc::new(|_| {}),
    )
    .unwrap();
    put(&world, 0..1);
    told_up_to(&*topics, 1);
    notifier.stop();
    assert!(std::fs::read_to_string(record).unwrap().len() > 1, "it is whole again");
}
