//! The hub's store on SQLite beyond the contracts: its files, closing, large reads.

use abreast_core::hub::{Ending, HubStore as _, TargetId};
use abreast_core::{
    ErrorKind, FixedClock, NewNotification, Offset, Payload, TopicId, TopicLog, publish,
};
use abreast_store::hub::SqliteHub;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

const URL: &str = "http://example.org/topic?a=%2f";

fn open(path: &Path) -> (SqliteHub, TopicId) {
    let store = SqliteHub::open(path, Arc::new(FixedClock::default())).expect("opens");
    let topic = store.open_topic(URL).expect("opens");
    (store, topic)
}

fn publish_some(store: &SqliteHub, topic: TopicId, count: u64) {
    for _ in 0..count {
        let payload = Payload::Bytes(Arc::from(&b"<urlset/>"[..]));
        let content =
            NewNotification { media_type: "application/xml".into(), links: String::new(), payload };
        publish(store, topic, content).expect("published");
    }
}

#[cfg(unix)]
#[test]
fn files_with_secrets_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (_store, _) = open(&folder.path().join("hub.db"));
    for name in ["hub.db", "hub.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} is for its owner only");
    }
}

#[test]
fn the_sizes_of_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (store, topic) = open(&folder.path().join("hub.db"));
    publish_some(&store, topic, 1);
    let sizes = store.sizes().unwrap();
    assert!(sizes.file_bytes > 0 && sizes.log_bytes > 0);
}

#[test]
fn closing_records_what_waits_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.db");
    let (store, topic) = open(&path);
    assert_eq!(
        SqliteHub::open(&path, Arc::new(FixedClock::default())).unwrap_err().kind(),
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
    let refused = store.end_target(TargetId(1), Ending::ByHand).unwrap_err();
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
