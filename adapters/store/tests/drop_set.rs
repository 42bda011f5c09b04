//! Dropping a set leaves nothing of it in a store, and nothing else is touched.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::hub::{HubStore as _, NewTarget, TargetKind};
use abreast_core::{
    Change, ChangeLog, ContentId, FixedClock, NewNotification, NewSet, Payload, SetId, State,
    TopicLog as _, append, publish,
};
use abreast_store::hub::SqliteHub;
use abreast_store::integrity::{Findings, check_hub, check_log};
use abreast_store::{
    DroppedTopics, FormerSet, NowAt, Removal, RenamedSet, SqliteLog, drop_set, drop_topics,
    former_sets, rename_set, rename_topics,
};
use abreast_webtypes::Timestamp;
use std::path::Path;
use std::sync::Arc;

fn open(path: &Path) -> SqliteLog {
    let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(1_800_000_000)));
    SqliteLog::open(path, clock).unwrap()
}

/// Opens a set with resources, changes, versions, removals, kept contents and idempotency keys.
fn fill(log: &SqliteLog, slug: &str) -> SetId {
    let set = log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).unwrap().id;
    log.complete_import(set).unwrap();
    log.keep_versions(set, true).unwrap();
    for number in 0..30_u8 {
        let content = Some(ContentId([number % 7; ContentId::BYTES]));
        let state = State { length: Some(u64::from(number)), content, ..State::default() };
        let change = Change::put(format!("{}", number % 10), state);
        let name = format!("{slug} {number}");
        append(log, set, vec![change.with_idempotency_key(name)]).unwrap();
    }
    append(log, set, vec![Change::delete("3")]).unwrap();
    set
}

#[test]
fn a_dropped_set_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("source.db");
    let log = open(&path);
    let kept = fill(&log, "kept");
    fill(&log, "old");
    let head = log.head(kept).unwrap();
    let removal = Removal { time: Timestamp::from_seconds(1_800_000_001), moved_to: None };
    assert!(drop_set(&path, "old", Some(&removal)).is_err(), "it is open");
    drop(log);
    let counted = drop_set(&path, "old", None).unwrap().unwrap();
    assert_eq!((counted.resources, counted.changes), (9, 31));
    assert!(counted.versions >= 30);
    assert_eq!(drop_set(&path, "old", Some(&removal)).unwrap(), Some(counted));
    assert_eq!(drop_set(&path, "old", Some(&removal)).unwrap(), None);
    let mut findings = Findings::default();
    let sets = check_log(&path, &mut findings).unwrap();
    assert!(findings.is_consistent(), "{:?}", findings.list());
    assert_eq!(sets.iter().map(|set| set.slug.as_str()).collect::<Vec<_>>(), ["kept"]);
    let log = open(&path);
    assert_eq!(log.head(kept).unwrap(), head);
    // One of the same name begins from nothing.
    let again = fill(&log, "old");
    assert_eq!(log.head(again).unwrap().position.0, 31);
}

#[test]
fn dropped_topics_leave_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("hub.db");
    let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(1_800_000_000)));
    let hub = SqliteHub::open(&path, clock.clone()).unwrap();
    let urls = ["old/notify/change", "old/v0.1/notify/changeset", "old/below/notify/change"];
    for url in urls.map(|url| format!("http://h/{url}")) {
        let topic = hub.open_topic(&url).unwrap();
        for number in 0..3 {
            let payload = Payload::Bytes(Arc::from(&b"<urlset/>"[..]));
            let content = NewNotification {
                media_type: "application/xml".into(),
                links: String::new(),
                payload,
            };
            publish(&hub, topic, content).unwrap();
            let address = format!("http://callback/{number}");
            let new = NewTarget {
                topic,
                kind: TargetKind::Subscription,
                address: address.clone(),
                secret: None,
                lease_until: None,
                cursor: None,
            };
            hub.put_target(new).unwrap();
        }
    }
    assert!(
        drop_topics(&path, &["http://h/old/notify/change".into()], false).is_err(),
        "it is open"
    );
    drop(hub);
    // The third is of another Source below it.
    let dropped = [urls[0], urls[1], "old/emm/1.0"].map(|url| format!("http://h/{url}"));
    let expected = DroppedTopics { topics: 2, targets: 6 };
    let before = std::fs::read(&path).unwrap();
    assert_eq!(drop_topics(&path, &dropped, true).unwrap(), expected);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(drop_topics(&path, &dropped, false).unwrap(), expected);
    assert_eq!(drop_topics(&path, &dropped, false).unwrap(), DroppedTopics::default());
    let mut findings = Findings::default();
    check_hub(&path, &mut findings).unwrap();
    assert!(findings.is_consistent(), "{:?}", findings.list());
    let hub = SqliteHub::open(&path, clock).unwrap();
    let sizes = hub.sizes().unwrap();
    assert_eq!((sizes.topics, sizes.notifications, sizes.targets), (1, 3, 3));
    assert_eq!(sizes.body_bytes, 27);
}

fn names(path: &Path) -> Vec<(String, NowAt)> {
    former_sets(path).unwrap().into_iter().map(|FormerSet { slug, now, .. }| (slug, now)).collect()
}

#[test]
fn former_names_lead_to_the_set_until_one_has_them() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("source.db");
    let log = open(&path);
    let set = fill(&log, "a");
    fill(&log, "other");
    let head = log.head(set).unwrap();
    let time = Timestamp::from_seconds(1_800_000_002);
    let now = Some(time);
    assert!(rename_set(&path, ("a", "b"), now).is_err(), "it is open");
    assert_eq!(names(&path), [], "read while it is open");
    drop(log);
    assert_eq!(rename_set(&path, ("a", "b"), None).unwrap(), RenamedSet::Renamed);
    assert_eq!(names(&path), []);
    for (old, new, expected) in [
        ("a", "b", RenamedSet::Renamed),
        ("a", "c", RenamedSet::Missing),
        ("b", "other", RenamedSet::Taken),
        ("b", "c", RenamedSet::Renamed),
    ] {
        assert_eq!(rename_set(&path, (old, new), now).unwrap(), expected, "{old} {new}");
    }
    let at = |name: &str| NowAt::Name(name.to_owned());
    assert_eq!(names(&path), [("a".into(), at("c")), ("b".into(), at("c"))]);
    let log = open(&path);
    assert_eq!(log.sets().unwrap()[0].slug, "c");
    assert_eq!(log.head(set).unwrap(), head);
    // A new set has the name.
    fill(&log, "a");
    drop(log);
    assert_eq!(names(&path), [("b".into(), at("c"))]);
    // A set that gets its first name back.
    assert_eq!(rename_set(&path, ("c", "b"), now).unwrap(), RenamedSet::Renamed);
    assert_eq!(names(&path), [("c".into(), at("b"))]);
    let moved_to = "https://new.example/b/".to_owned();
    let removal = Removal { time, moved_to: Some(moved_to.clone()) };
    drop_set(&path, "b", Some(&removal)).unwrap();
    let url = NowAt::Url(moved_to);
    assert_eq!(names(&path), [("b".into(), url.clone()), ("c".into(), url)]);
    drop_set(&path, "other", Some(&Removal { moved_to: None, ..removal })).unwrap();
    assert_eq!(names(&path)[2], ("other".into(), NowAt::Removed));
    let mut findings = Findings::default();
    check_log(&path, &mut findings).unwrap();
    assert!(findings.is_consistent(), "{:?}", findings.list());
}

#[test]
fn renamed_topics_keep_their_subscriptions() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("hub.db");
    let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(1_800_000_000)));
    let hub = SqliteHub::open(&path, clock.clone()).unwrap();
    let topic = hub.open_topic("http://h/old/notify/change").unwrap();
    let content = NewNotification {
        media_type: "application/xml".into(),
        links: String::new(),
        payload: Payload::Bytes(Arc::from(&b"<urlset/>"[..])),
    };
    publish(&hub, topic, content).unwrap();
    let new = NewTarget {
        topic,
        kind: TargetKind::Subscription,
        address: "http://callback/".to_owned(),
        secret: None,
        lease_until: None,
        cursor: None,
    };
    hub.put_target(new).unwrap();
    let url = |slug: &str| format!("http://h/{slug}/notify/change");
    let renames = [(url("old"), url("new")), (url("absent"), url("other"))];
    assert!(rename_topics(&path, &renames).is_err(), "it is open");
    drop(hub);
    assert_eq!(rename_topics(&path, &renames).unwrap(), 1);
    assert_eq!(rename_topics(&path, &renames).unwrap(), 0);
    let mut findings = Findings::default();
    check_hub(&path, &mut findings).unwrap();
    assert!(findings.is_consistent(), "{:?}", findings.list());
    let hub = SqliteHub::open(&path, clock).unwrap();
    assert_eq!(hub.open_topic(&url("new")).unwrap(), topic);
    let sizes = hub.sizes().unwrap();
    assert_eq!((sizes.topics, sizes.notifications, sizes.targets), (1, 1, 1));
}
