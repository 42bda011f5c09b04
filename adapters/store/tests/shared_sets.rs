//! Sets of a database are removed and renamed while no node runs: nothing of a removed set is left, however often the
//! removal is interrupted, and nothing else is touched.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

mod plans;
mod rows;

use abreast_core::hub::{
    HubNodes as _, HubStore as _, NewTarget, NewVerification, TargetKind, VerificationMode,
};
use abreast_core::{
    Change, ChangeLog as _, ErrorKind, LogError, Meter, NewNotification, NewSet, Payload, TopicId,
    TopicLog as _, append, publish,
};
use abreast_store::hub::{NodeOptions, PostgresHub};
use abreast_store::integrity::{Findings, SharedStore as _};
use abreast_store::migrate::{MigratedStore, Migration, MigrationOptions};
use abreast_store::{
    DroppedTopics, FormerSet, NowAt, PostgresDatabase, PostgresOptions, Removal, RenamedSet,
    SharedSets,
};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::provided;
use abreast_webtypes::Timestamp;
use rows::{SHARD_RULE, fill, state};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::channel;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
/// Changes of a set in addition to its other rows, so that tables have several parts.
const MANY: u64 = 2_500;
/// The number of rows of each table, by the number of their set.
const ROWS: &str = "SELECT string_agg(name || ' ' || set_id || ' ' || number, ', ' ORDER BY name, set_id) FROM (\
     SELECT 'resources' AS name, set_id, count(*) AS number FROM abreast.resources GROUP BY 1, 2 UNION ALL \
     SELECT 'changes', set_id, count(*) FROM abreast.changes GROUP BY 1, 2 UNION ALL \
     SELECT 'tombstones', set_id, count(*) FROM abreast.tombstones GROUP BY 1, 2 UNION ALL \
     SELECT 'pages', set_id, count(*) FROM abreast.pages GROUP BY 1, 2 UNION ALL \
     SELECT 'shards', set_id, count(*) FROM abreast.shards GROUP BY 1, 2 UNION ALL \
     SELECT 'versions', set_id, count(*) FROM abreast.versions GROUP BY 1, 2 UNION ALL \
     SELECT 'contents', set_id, count(*) FROM abreast.contents GROUP BY 1, 2 UNION ALL \
     SELECT 'idempotency', set_id, count(*) FROM abreast.idempotency GROUP BY 1, 2 UNION ALL \
     SELECT 'writers', set_id, count(*) FROM abreast.writers GROUP BY 1, 2) AS tables";

fn connect(url: &str) -> PostgresDatabase {
    PostgresOptions::default().with_shard_rule(SHARD_RULE).connect(url).unwrap()
}

fn check(database: &PostgresDatabase) {
    let mut findings = Findings::default();
    database.check_log("db", &mut findings, &Meter::default(), &|| false).unwrap();
    assert_eq!(findings.list(), []);
}

fn removal(moved_to: Option<&str>) -> Removal {
    let moved_to = moved_to.map(str::to_owned);
    Removal { time: Timestamp::from_seconds(1_800_000_001), moved_to }
}

/// Fills a set named `set` with rows of each kind, in several parts.
fn fill_many(database: &PostgresDatabase) {
    let log = database.log().unwrap();
    fill(&log);
    let set = log.find_set("set").unwrap().unwrap().id;
    let put = |number: u64| {
        Change::put(format!("many/{number:04}"), state(number))
            .with_idempotency_key(format!("many {number}"))
    };
    append(&log, set, (0..MANY).map(put).collect()).unwrap();
}

#[test]
fn a_removed_set_leaves_no_rows_if_it_is_interrupted() {
    let name = "a_removed_set_leaves_no_rows_if_it_is_interrupted";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let database = connect(&server.create("store"));
    let log = database.log().unwrap();
    let kept = log.open_set(&NewSet { slug: "kept".into(), ..NewSet::default() }).unwrap().id;
    log.complete_import(kept).unwrap();
    append(&log, kept, vec![Change::put("a", state(1))]).unwrap();
    let before = server.sql("store", ROWS);
    fill_many(&database);
    let old = log.find_set("set").unwrap().unwrap().id;

    let counted = database.count_set("set").unwrap().unwrap();
    assert_eq!(counted.changes, log.head(old).unwrap().position.0);
    assert_eq!(counted.resources, log.head(old).unwrap().resources);
    let versions = server.sql("store", "SELECT count(*) FROM abreast.versions");
    assert_eq!(versions.trim(), counted.versions.to_string());
    assert_eq!(database.count_set("other").unwrap(), None);
    database.remove_set("other", &removal(None)).unwrap();
    assert_eq!(database.former_sets().unwrap(), []);

    database.remove_set("set", &removal(None)).unwrap();
    assert_eq!(log.find_set("set").unwrap(), None);
    assert_eq!(database.unfinished_removals().unwrap(), ["set"]);
    // A process that knew the set records nothing more.
    let refused = append(&log, old, vec![Change::put("late", state(1))]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSet);
    // It is counted as before, and the store is not damaged.
    assert_eq!(database.count_set("set").unwrap(), Some(counted));
    check(&database);
    let mut stops = 0;
    loop {
        // The process ends after so many parts.
        let left = Cell::new(stops + 1_u32);
        database.finish_removals(&|| left.replace(left.get().saturating_sub(1)) == 0).unwrap();
        if database.unfinished_removals().unwrap().is_empty() {
            break;
        }
        stops += 1;
        check(&database);
        if stops == 3 {
            // A new set of this name starts a new log meanwhile.
            let new = log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
            assert!(new.0 > old.0);
            assert_eq!(log.head(new).unwrap().position.0, 0);
            assert_eq!(database.former_sets().unwrap(), []);
            database.remove_set("set", &removal(None)).unwrap();
        }
        assert!(stops < 100);
    }
    assert!(stops > 3, "{stops}");
    assert_eq!(server.sql("store", ROWS), before);
    check(&database);
    let former = FormerSet { slug: "set".into(), time: removal(None).time, now: NowAt::Removed };
    assert_eq!(database.former_sets().unwrap(), [former]);
    let left = server.sql("store", "SELECT name FROM abreast.records");
    assert_eq!(left.trim(), "former_sets");
}

fn names(database: &PostgresDatabase) -> Vec<(String, NowAt)> {
    let former = database.former_sets().unwrap().into_iter();
    former.map(|FormerSet { slug, now, .. }| (slug, now)).collect()
}

/// The same steps as in a folder: `former_names_lead_to_the_set_until_one_has_them` in `drop_set.rs`.
#[test]
fn former_names_in_a_database_are_those_of_a_folder() {
    let name = "former_names_in_a_database_are_those_of_a_folder";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let database = connect(&server.create("store"));
    let log = database.log().unwrap();
    let open = |slug: &str| {
        let set = log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).unwrap().id;
        log.complete_import(set).unwrap();
        append(&log, set, vec![Change::put("a", state(1))]).unwrap();
        set
    };
    let set = open("a");
    open("other");
    let (head, time) = (log.head(set).unwrap(), Timestamp::from_seconds(1_800_000_002));
    let now = Some(time);
    assert_eq!(database.rename_set(("a", "b"), None).unwrap(), RenamedSet::Renamed);
    assert_eq!(names(&database), []);
    for (old, new, expected) in [
        ("a", "b", RenamedSet::Renamed),
        ("a", "c", RenamedSet::Missing),
        ("b", "other", RenamedSet::Taken),
        ("b", "c", RenamedSet::Renamed),
    ] {
        assert_eq!(database.rename_set((old, new), None).unwrap(), expected, "{old} {new}");
        assert_eq!(database.rename_set((old, new), now).unwrap(), expected, "{old} {new}");
    }
    let at = |name: &str| NowAt::Name(name.to_owned());
    assert_eq!(names(&database), [("a".into(), at("c")), ("b".into(), at("c"))]);
    assert_eq!(log.find_set("c").unwrap().unwrap().id, set);
    assert_eq!(log.head(set).unwrap(), head);
    // A new set has the name.
    open("a");
    assert_eq!(names(&database), [("b".into(), at("c"))]);
    // A set that gets its first name back.
    assert_eq!(database.rename_set(("c", "b"), now).unwrap(), RenamedSet::Renamed);
    assert_eq!(names(&database), [("c".into(), at("b"))]);
    let moved_to = "https://new.example/b/";
    database.remove_set("b", &removal(Some(moved_to))).unwrap();
    let url = NowAt::Url(moved_to.to_owned());
    assert_eq!(names(&database), [("b".into(), url.clone()), ("c".into(), url)]);
    database.remove_set("other", &removal(None)).unwrap();
    assert_eq!(names(&database)[2], ("other".into(), NowAt::Removed));
    database.finish_removals(&|| false).unwrap();
    check(&database);
    server.sql("store", "UPDATE abreast.records SET bytes = 'x' WHERE name = 'former_sets'");
    let damaged = database.remove_set("a", &removal(None)).unwrap_err().to_string();
    assert!(damaged.contains("help: delete it"), "{damaged}");
    assert!(log.find_set("a").unwrap().is_some());
}

#[test]
fn sets_of_running_nodes_are_neither_removed_nor_renamed() {
    let name = "sets_of_running_nodes_are_neither_removed_nor_renamed";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let database = connect(&server.create("store"));
    let log = database.log().unwrap();
    log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap();
    let named = |name: &str| NodeOptions { name: name.to_owned(), ..NodeOptions::default() };
    let hub = database.hub(named("of-the-hub")).unwrap();
    let assert_in_use = |done: Result<(), LogError>, text: &str| {
        let error = done.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        let shown = error.to_string();
        assert!(shown.contains(text) && shown.contains("help: stop all nodes first"), "{shown}");
    };
    database.check_unused().unwrap();
    hub.renew().unwrap();
    let now = Some(removal(None).time);
    assert_in_use(database.check_unused(), "by the node `of-the-hub`");
    assert_in_use(database.remove_set("set", &removal(None)), "by the node `of-the-hub`");
    assert_in_use(database.rename_set(("set", "new"), now).map(drop), "by the node `of-the-hub`");
    let leases = Arc::new(database.leases(&named("of-a-watch")).unwrap());
    let lease = abreast_core::Lease::of(leases, "watch/set".to_owned());
    abreast_testkit::eventually("the lease is taken", || lease.is_held());
    assert_in_use(database.check_unused(), "by the nodes `of-a-watch`, `of-the-hub`");
    hub.leave().unwrap();
    assert_in_use(database.remove_set("set", &removal(None)), "by the node `of-a-watch`");
    drop(lease);
    abreast_testkit::eventually("the lease is released", || database.check_unused().is_ok());
    database.remove_set("set", &removal(None)).unwrap();
    assert_eq!(log.find_set("set").unwrap(), None);
}

#[test]
fn a_store_with_rows_of_a_removed_set_is_not_moved() {
    let name = "a_store_with_rows_of_a_removed_set_is_not_moved";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let database = connect(&server.create("store"));
    let log = database.log().unwrap();
    fill(&log);
    let kept = log.open_set(&NewSet { slug: "kept".into(), ..NewSet::default() }).unwrap().id;
    log.complete_import(kept).unwrap();
    database.remove_set("set", &removal(None)).unwrap();
    let start = || {
        let to = MigratedStore::Folder(tempfile::tempdir().unwrap().keep());
        let from = MigratedStore::Database(database.clone());
        Migration::start(from, to, MigrationOptions::default())
    };
    let refused = start().map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("`abreast set remove set` again"), "{refused}");
    database.finish_removals(&|| false).unwrap();
    let mut migration = start().unwrap();
    migration.copy_rows().unwrap();
    assert_eq!(migration.verify().unwrap().sets.len(), 1);
    migration.finish().unwrap();
}

fn content() -> NewNotification {
    let payload = Payload::Bytes(Arc::from(&b"<urlset/>"[..]));
    NewNotification { media_type: "application/xml".into(), links: String::new(), payload }
}

/// Opens a topic with notifications, targets and a pending verification.
fn fill_topic(hub: &PostgresHub, url: &str, targets: usize) -> TopicId {
    let topic = hub.open_topic(url).unwrap();
    for _ in 0..3 {
        publish(hub, topic, content()).unwrap();
    }
    for number in 0..targets {
        hub.put_target(NewTarget {
            topic,
            kind: TargetKind::Subscription,
            address: format!("http://callback/{number}"),
            secret: None,
            lease_until: None,
            cursor: None,
        })
        .unwrap();
    }
    let (sender, receiver) = channel();
    let asked = NewVerification {
        topic_url: url.to_owned(),
        callback: format!("http://callback/of/{url}"),
        mode: VerificationMode::Subscribe,
        secret: None,
        lease_seconds: None,
        challenge: "challenge".to_owned(),
        reason: None,
        next_at: Timestamp::from_seconds(1),
    };
    hub.put_verification_then(asked, Box::new(move |put| sender.send(put).unwrap()));
    receiver.recv().unwrap().unwrap();
    topic
}

#[test]
fn topics_of_a_set_in_a_database_are_dropped_and_renamed() {
    let name = "topics_of_a_set_in_a_database_are_dropped_and_renamed";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let database = connect(&server.create("store"));
    // A process that is stopped meanwhile.
    let hub = database.hub(NodeOptions::default()).unwrap();
    let url = |name: &str| format!("http://h/{name}/notify/change");
    let old = fill_topic(&hub, &url("old"), 250);
    fill_topic(&hub, &url("empty"), 0);
    let other = fill_topic(&hub, &url("other"), 3);
    let urls = ["old", "empty", "absent"].map(url);
    let expected = DroppedTopics { topics: 2, targets: 250 };
    assert_eq!(database.drop_topics(&urls, true).unwrap(), expected);
    assert_eq!(hub.sizes().unwrap().topics, 3);
    assert_eq!(database.drop_topics(&urls, false).unwrap(), expected);
    assert_eq!(database.drop_topics(&urls, false).unwrap(), DroppedTopics::default());
    assert!(publish(&hub, old, content()).is_err(), "the topic was removed");
    let sizes = hub.sizes().unwrap();
    let counts = [sizes.topics, sizes.targets, sizes.verifications, sizes.notifications];
    assert_eq!((counts, sizes.body_bytes), ([1, 3, 1, 3], 27));
    for (table, rows) in [
        ("topics", 1),
        ("notifications", 3),
        ("targets", 3),
        ("progress", 3),
        ("attempts", 0),
        ("dead", 0),
        ("ended", 0),
        ("verifications", 1),
    ] {
        let counted = server.sql("store", &format!("SELECT count(*) FROM abreast.{table}"));
        assert_eq!(counted.trim(), rows.to_string(), "{table}");
    }

    let renames = [(url("other"), url("new")), (url("absent"), url("more"))];
    assert_eq!(database.rename_topics(&renames).unwrap(), 1);
    assert_eq!(database.rename_topics(&renames).unwrap(), 0);
    assert_eq!(hub.find_topic(&url("other")).unwrap(), None);
    assert_eq!(hub.open_topic(&url("new")).unwrap(), other);
    publish(&hub, other, content()).unwrap();
    let sizes = hub.sizes().unwrap();
    assert_eq!((sizes.topics, sizes.targets, sizes.notifications), (1, 3, 4));
    assert_eq!(sizes.verifications, 0, "subscribers repeat them");
    // A topic whose new URL is in use remains.
    fill_topic(&hub, &url("other"), 1);
    assert_eq!(database.rename_topics(&renames).unwrap(), 0);
}

#[test]
fn a_removal_finds_its_rows_by_an_index() {
    let name = "a_removal_finds_its_rows_by_an_index";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start_with(&programs, &plans::SETTINGS);
    let database = connect(&server.create("plans"));
    let hub = database.hub(NodeOptions::default()).unwrap();
    for analyzed in [false, true] {
        fill_many(&database);
        fill_topic(&hub, "http://h/set/notify/change", 250);
        fill_topic(&hub, "http://h/old/notify/change", 1);
        if analyzed {
            server.sql("plans", "ANALYZE");
        }
        let before = server.log().len();
        let urls = ["http://h/set/notify/change".to_owned()];
        assert_eq!(database.drop_topics(&urls, false).unwrap().targets, 250);
        let renamed = ("http://h/old/notify/change".into(), "http://h/new/notify/change".into());
        assert_eq!(database.rename_topics(&[renamed]).unwrap(), u64::from(!analyzed));
        let now = Some(removal(None).time);
        for names in [("set", "new"), ("new", "set")] {
            assert_eq!(database.rename_set(names, now).unwrap(), RenamedSet::Renamed);
        }
        database.check_unused().unwrap();
        database.remove_set("set", &removal(None)).unwrap();
        database.finish_removals(&|| false).unwrap();
        plans::check(&server.log()[before..], 60, &["sets", "hub", "nodes", "leases", "ended"]);
    }
}
