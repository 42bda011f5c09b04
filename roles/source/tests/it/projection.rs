//! A second protocol next to ResourceSync: its projection alone defines its documents, its topic
//! and its static site.

use crate::csv::Csv;
use crate::world::{BASE, World, body};
use abreast_core::{Change, Offset, Payload, State, SystemClock, TopicLog, append};
use abreast_source::notify::{Notifier, NotifyOptions};
use abreast_source::publish::{Notifications, PublishError, PublishedSet, Publisher, SourceUrls};
use abreast_source::static_site::{SiteOptions, write_site};
use abreast_store::hub::SqliteHub;
use abreast_testkit::eventually;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PATH: &str = "set/changes.csv";

fn publisher(world: &World) -> Publisher {
    world.publisher().with_projection(Csv)
}

/// A publisher of the protocol with notifications.
fn notifying(world: &World) -> Publisher {
    let notifications = Some(Notifications::at(["https://hub.example/"]));
    world.publisher_of(PublishedSet { notifications, ..world.published() }).with_projection(Csv)
}

fn put(world: &World, key: &str) {
    append(&*world.log, world.set, vec![Change::put(key, State::default())]).unwrap();
}

fn text(publisher: &Publisher) -> String {
    String::from_utf8(body(publisher.document(PATH).unwrap().plain())).unwrap()
}

#[test]
fn documents_of_a_second_projection_are_kept_until_they_change() {
    let world = World::begun();
    let publisher = publisher(&world);
    put(&world, "a");
    assert_eq!(text(&publisher), "position,kind,uri\r\n1,create,https://example.org/set/r/a\r\n");
    let first = publisher.document(PATH).unwrap();
    assert_eq!(first.content_type, "text/csv");
    assert!(Arc::ptr_eq(&first, &publisher.cached(PATH).unwrap()));
    put(&world, "b");
    assert!(publisher.cached(PATH).is_none());
    assert!(text(&publisher).ends_with("2,create,https://example.org/set/r/b\r\n"));
    assert_ne!(publisher.document(PATH).unwrap().tag, first.tag);
    assert!(
        publisher.document("set/changelist.xml").is_ok(),
        "the first projection answers as before"
    );
    for path in ["changes.csv", "other/changes.csv", "set/changes.csv/"] {
        assert!(matches!(publisher.document(path), Err(PublishError::NotFound)), "{path}");
    }
    assert!(
        world.publisher().document(PATH).is_err(),
        "without the projection there is no such document"
    );
}

#[test]
fn a_second_projection_has_its_own_topic() {
    let world = World::begun();
    let publisher = Arc::new(notifying(&world));
    let store = SqliteHub::open(&world.temporary.path().join("topics.db"), Arc::new(SystemClock));
    let topics: Arc<dyn TopicLog> = Arc::new(store.unwrap());
    let record = world.temporary.path().join("notified.json");
    let options = NotifyOptions::default().with_debounce(Duration::ZERO);
    let clock = Arc::new(SystemClock);
    let notifier = Notifier::start(
        Arc::clone(&publisher),
        Arc::clone(&topics),
        record,
        options,
        clock,
        Arc::new(|_| {}),
    )
    .unwrap();
    put(&world, "a");
    let topic = publisher.topic_at("set/notify/csv").unwrap();
    let ask = |path: &str| {
        publisher.last_notification(&*topics, &publisher.topic_at(path).unwrap()).unwrap()
    };
    eventually("the change is notified in both topics", || {
        ["set/notify/csv", "set/notify/change"]
            .into_iter()
            .all(|path| ask(path).offset == Some(Offset(1)))
    });
    notifier.stop();
    let last = ask("set/notify/csv");
    assert_eq!(last.media_type, "text/csv");
    assert_eq!(last.body, "position,kind,uri\r\n1,create,https://example.org/set/r/a\r\n");
    assert!(
        last.links.contains(&format!("<{}>; rel=\"self\"", topic.url))
            && last.links.contains("rel=\"hub\"")
    );
    assert_eq!(ask("set/notify/change").media_type, "application/xml");
}

#[test]
fn documents_of_a_second_projection_are_notified_once() {
    let world = World::begun();
    let store = SqliteHub::open(&world.temporary.path().join("topics.db"), Arc::new(SystemClock));
    let topics: Arc<dyn TopicLog> = Arc::new(store.unwrap());
    let record = world.temporary.path().join("notified.json");
    let start = |publisher: Publisher| {
        let (clock, options) = (Arc::new(SystemClock), NotifyOptions::default());
        Notifier::start(
            Arc::new(publisher),
            Arc::clone(&topics),
            record.clone(),
            options,
            clock,
            Arc::new(|_| {}),
        )
        .unwrap()
    };
    let url = format!("{BASE}set/notify/csv-file");
    let bodies = || -> Vec<String> {
        let all = topics.read(topics.open_topic(&url).unwrap(), Offset(0), 100).unwrap();
        let text = |payload| match payload {
            Payload::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Payload::Changes { .. } => panic!("a range of the log in a topic of documents"),
        };
        all.into_iter().map(|notification| text(notification.content.payload)).collect()
    };
    let notifier = start(notifying(&world));
    eventually("the document is announced", || bodies() == ["changes.csv,0,false,true\r\n"]);
    notifier.stop();
    put(&world, "a");
    // The states of both projections are read after a restart, and are separate.
    let notifier = start(notifying(&world));
    eventually("the change is announced", || bodies().len() == 2);
    notifier.stop();
    assert_eq!(bodies()[1], "changes.csv,1,true,false\r\n");
    let other = World::begun();
    let without_set = || {
        let urls = SourceUrls::new(BASE);
        let sets = vec![PublishedSet::new(other.set, "other", urls.set("other"))];
        let folder = other.temporary.path().join("documents");
        Publisher::new(Arc::clone(&other.log), urls, sets, folder).unwrap().with_projection(Csv)
    };
    let notifier = start(without_set());
    eventually("the end of the set is announced", || bodies().len() == 3);
    notifier.stop();
    assert_eq!(bodies()[2], "changes.csv,gone\r\n");
    start(without_set()).stop();
    assert_eq!(bodies().len(), 3, "the end is announced once");
}

#[test]
fn a_static_site_holds_the_documents_of_every_projection() {
    let world = World::new();
    world.write("a", "1");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    put(&world, "b");
    let (publisher, site) = (publisher(&world), world.temporary.path().join("site"));
    let build =
        || write_site(&publisher, &site, SiteOptions::default(), &AtomicBool::new(false)).unwrap();
    let first = build();
    assert_eq!(std::fs::read_to_string(site.join(PATH)).unwrap(), text(&publisher));
    assert!(site.join("set/changelist.xml").is_file());
    assert!(first.written > 5);
    assert_eq!(build().written, 0);
    let source_description =
        std::fs::read_to_string(site.join(".well-known/resourcesync")).unwrap();
    assert!(source_description.contains(BASE));
}
