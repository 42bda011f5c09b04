//! Damage in each table of a store is reported by the check, and repaired.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

mod rows;

use abreast_core::hub::{
    HubStore as _, NewTarget, NewVerification, Progress, TargetKind, VerificationMode,
};
use abreast_core::{
    Change, ChangeLog as _, ErrorKind, FixedClock, NewNotification, Offset, Payload, TopicLog as _,
    append, publish,
};
use abreast_store::hub::SqliteHub;
use abreast_store::integrity::{Findings, check_hub, check_log};
use abreast_store::repair::{repair_hub, repair_log};
use abreast_store::{SqliteLog, SqliteOptions};
use abreast_webtypes::Timestamp;
use rows::{SHARD_RULE, fill, new_set, state};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock::at(Timestamp::from_seconds(1_800_000_000)))
}

fn open_log(path: &Path) -> SqliteLog {
    SqliteOptions::default().with_shard_rule(SHARD_RULE).open(path, clock()).unwrap()
}

fn write_log(path: &Path) {
    fill(&open_log(path));
}

fn write_hub(path: &Path) {
    let store = SqliteHub::open(path, clock()).unwrap();
    let topic = store.open_topic("http://example.org/topic").unwrap();
    for number in 0..10_u8 {
        let payload = Payload::Bytes(vec![number; 50].into());
        let content =
            NewNotification { media_type: "text/plain".into(), links: String::new(), payload };
        publish(&store, topic, content).unwrap();
    }
    for number in 0..3 {
        let new = NewTarget {
            topic,
            kind: TargetKind::Subscription,
            address: format!("http://example.org/callback/{number}"),
            secret: None,
            lease_until: Some(Timestamp::from_seconds(1_900_000_000)),
            cursor: Some(Offset(2)),
        };
        let target = store.put_target(new).unwrap();
        let progress = Progress {
            id: target.id,
            generation: 1,
            cursor: Offset(4),
            attempts: 1,
            first_failed: None,
            next_at: None,
            last: None,
            dead: None,
        };
        store.save_progress(vec![progress]).unwrap();
        let asked = NewVerification {
            topic_url: "http://example.org/topic".into(),
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
}

/// A table, a statement that damages it, and the code of the finding.
type Case = (&'static str, &'static str, &'static str);

const LOG_CASES: &[Case] = &[
    ("sets", "UPDATE sets SET kept_bytes = kept_bytes + 1", "versions.need"),
    ("sets", "DELETE FROM sets", "store.row"),
    ("resources", "DELETE FROM resources WHERE key = 'base/01'", "table.shard"),
    ("resources", "UPDATE resources SET length = length + 1 WHERE key = 'base/01'", "store.row"),
    ("resources", "UPDATE resources SET position = 3 WHERE key = 'base/01'", "table.row"),
    ("changes", "DELETE FROM changes WHERE position = 12", "log.gap"),
    ("changes", "DELETE FROM changes WHERE position BETWEEN 11 AND 20", "log.gap"),
    ("changes", "DELETE FROM changes WHERE position = 34", "table.row"),
    ("changes", "UPDATE changes SET time = time + 1 WHERE position = 12", "store.row"),
    ("tombstones", "DELETE FROM tombstones WHERE key = 'base/04'", "table.tombstone"),
    ("tombstones", "UPDATE tombstones SET position = position + 1", "table.tombstone"),
    ("tombstones", "INSERT INTO tombstones SELECT id, 'other', 1 FROM sets", "table.tombstone"),
    ("pages", "DELETE FROM pages WHERE number = 2", "log.page"),
    ("pages", "UPDATE pages SET last = last + 1 WHERE number = 2", "log.page"),
    ("pages", "DELETE FROM pages WHERE last IS NULL", "log.page"),
    ("shards", "UPDATE shards SET resources = resources + 1 WHERE retired = 0", "table.shard"),
    ("shards", "DELETE FROM shards WHERE start_key = '' AND retired = 0", "table.shard"),
    ("shards", "UPDATE shards SET version = 1 WHERE retired = 0", "table.shard"),
    ("versions", "UPDATE versions SET length = length + 1 WHERE position = 1", "store.row"),
    ("versions", "DELETE FROM versions WHERE position = 1", "versions.need"),
    ("contents", "UPDATE contents SET needed = needed + 1", "versions.need"),
    ("contents", "DELETE FROM contents", "versions.need"),
    (
        "contents",
        "INSERT INTO contents SELECT x'0102', set_id, 1, 0 FROM contents LIMIT 1",
        "store.row",
    ),
    ("idempotency", "INSERT INTO idempotency VALUES (99, 'a', 1, 1)", "store.row"),
    ("idempotency", "UPDATE idempotency SET set_id = 99", "store.row"),
    ("former_sets", "INSERT INTO former_sets VALUES ('old', 1, 99, NULL)", "store.row"),
    ("schema_version", "UPDATE schema_version SET version = version - 1", "store.damaged"),
    ("schema_version", "DELETE FROM schema_version", "store.damaged"),
];

const HUB_CASES: &[Case] = &[
    ("topics", "UPDATE topics SET url = url || 'x'", "hub.topic-url"),
    ("topics", "UPDATE topics SET head = head + 1", "hub.topic"),
    ("topics", "UPDATE topics SET bytes = bytes + 1", "hub.topic"),
    ("topics", "DELETE FROM topics", "hub.row"),
    ("notifications", "DELETE FROM notifications WHERE offset = 5", "hub.notification"),
    (
        "notifications",
        "UPDATE notifications SET media_type = 'text/html' WHERE offset = 5",
        "hub.notification",
    ),
    ("notifications", "DELETE FROM notifications WHERE offset = 10", "hub.topic"),
    ("bodies", "DELETE FROM bodies WHERE id = 5", "hub.notification"),
    ("bodies", "UPDATE bodies SET bytes = zeroblob(50) WHERE id = 5", "hub.notification"),
    ("bodies", "INSERT INTO bodies (bytes) VALUES (x'00')", "hub.row"),
    ("targets", "UPDATE targets SET address = address || 'x' WHERE id = 2", "hub.target"),
    ("targets", "DELETE FROM targets WHERE id = 2", "hub.row"),
    ("progress", "UPDATE progress SET cursor = 10000 WHERE target_id = 2", "hub.target"),
    ("progress", "DELETE FROM progress WHERE target_id = 2", "hub.row"),
    ("attempts", "INSERT INTO attempts VALUES (99, 1, 1, 1, 1, 1, NULL, 1)", "hub.row"),
    ("dead", "INSERT INTO dead VALUES (1, 99, 1, 1, 1, 'why', 1)", "hub.row"),
    ("dead", "INSERT INTO dead VALUES (1, 1, 3, 2, 1, 'why', 1)", "hub.row"),
    ("verifications", "UPDATE verifications SET challenge = 'another'", "hub.verification"),
    ("schema_version", "DELETE FROM schema_version", "store.damaged"),
];
/// Kept for people only: nothing follows from their rows.
const HUB_HISTORY: &[&str] = &["ended"];

/// Tables that a store has.
fn tables(path: &Path) -> BTreeSet<String> {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

type CheckStore = fn(&Path) -> Findings;
type RepairStore = fn(&Path, bool) -> Vec<String>;

fn each(cases: &[Case], original: &Path, check: CheckStore, repair: RepairStore) {
    assert_eq!(check(original).list(), [], "the store is not damaged yet");
    for (table, damage, code) in cases {
        let context = format!("{table}: {damage}");
        let path = original.with_extension("damaged");
        fs::copy(original, &path).unwrap();
        let connection = Connection::open(&path).unwrap();
        assert!(connection.execute(damage, []).unwrap() > 0, "{context}: nothing was changed");
        drop(connection);
        let found = check(&path);
        assert!(found.has(&[*code]) && !found.is_consistent(), "{context}: {:?}", found.list());
        let planned = repair(&path, true);
        assert!(
            !planned.is_empty() || *code == "store.row" || *code == "hub.row",
            "{context}: a dry run plans nothing"
        );
        assert!(check(&path).has(&[*code]), "{context}: a dry run changes nothing");
        let steps = repair(&path, false);
        assert!(
            check(&path).is_consistent(),
            "{context}: {:?} after {steps:?}",
            check(&path).list()
        );
        assert_eq!(
            repair(&path, false),
            Vec::<String>::new(),
            "{context}: nothing is left to repair"
        );
    }
}

#[test]
fn damage_in_each_table_of_a_log_is_found_and_repaired() {
    let folder = abreast_testkit::folder::in_memory();
    let path = folder.path().join("source.db");
    write_log(&path);
    let covered: BTreeSet<String> =
        LOG_CASES.iter().map(|(table, ..)| (*table).to_owned()).collect();
    assert_eq!(tables(&path), covered);
    let check = |path: &Path| {
        let mut findings = Findings::default();
        check_log(path, &mut findings).unwrap();
        findings
    };
    let repair = |path: &Path, dry_run| {
        repair_log(path, dry_run, Timestamp::from_seconds(1_900_000_000)).unwrap().steps
    };
    each(LOG_CASES, &path, check, repair);
    // What was repaired takes changes again.
    let log = open_log(&path.with_extension("damaged"));
    let set = log.open_set(&new_set()).unwrap().id;
    assert_eq!(append(&log, set, vec![Change::put("after", state(1))]).unwrap().recorded, 1);
}

#[test]
fn damage_in_each_table_of_a_hub_is_found_and_repaired() {
    let folder = abreast_testkit::folder::in_memory();
    let path = folder.path().join("hub.db");
    write_hub(&path);
    let covered = HUB_CASES
        .iter()
        .map(|(table, ..)| *table)
        .chain(HUB_HISTORY.iter().copied())
        .map(str::to_owned);
    assert_eq!(tables(&path), covered.collect());
    let check = |path: &Path| {
        let mut findings = Findings::default();
        check_hub(path, &mut findings).unwrap();
        findings
    };
    each(HUB_CASES, &path, check, |path, dry_run| repair_hub(path, dry_run).unwrap().steps);
}

#[test]
fn a_log_restarted_twice_is_consistent() {
    let folder = abreast_testkit::folder::in_memory();
    let path = folder.path().join("source.db");
    write_log(&path);
    for round in 0..3 {
        abreast_store::backup::restart_log(&path, Timestamp::from_seconds(1_900_000_000)).unwrap();
        let log = open_log(&path);
        let set = log.open_set(&new_set()).unwrap().id;
        append(&log, set, vec![Change::put("again", state(500 + round))]).unwrap();
        drop(log);
        let mut findings = Findings::default();
        check_log(&path, &mut findings).unwrap();
        assert_eq!(findings.list(), [], "round {round}");
    }
}

#[test]
fn a_damaged_row_is_replaced_and_never_deprecated() {
    let folder = abreast_testkit::folder::in_memory();
    let path = folder.path().join("source.db");
    write_log(&path);
    let damage = "UPDATE resources SET length = length + 1 WHERE key IN ('base/01', 'base/03')";
    assert_eq!(Connection::open(&path).unwrap().execute(damage, []).unwrap(), 2);
    let log = open_log(&path);
    let set = log.open_set(&new_set()).unwrap().id;
    let head = log.head(set).unwrap();
    let deprecate = || Change::deprecate("base/01", Vec::new());
    let refused = append(&log, set, vec![Change::put("other", state(1)), deprecate()]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    assert!(
        refused.to_string().contains("`base/01`") && refused.to_string().contains("help: "),
        "{refused}"
    );
    assert_eq!(
        log.head(set).unwrap(),
        head,
        "nothing of the batch is recorded, and the store goes on"
    );
    let batch = vec![Change::put("base/01", state(1)), deprecate(), Change::delete("base/03")];
    assert_eq!(append(&log, set, batch).unwrap().recorded, 3);
    drop(log);
    let mut findings = Findings::default();
    check_log(&path, &mut findings).unwrap();
    assert_eq!(findings.list(), []);
}
