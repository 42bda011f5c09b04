//! The check of a store in PostgreSQL: damage in each table is found, also while nodes record.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

mod plans;
mod rows;

use abreast_core::{Change, ChangeLog as _, ContentId, ErrorKind, Meter, append};
use abreast_store::integrity::{Findings, SharedStore as _};
use abreast_store::{PostgresDatabase, PostgresOptions};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::provided;
use rows::{SHARD_RULE, fill, new_set, state};
use std::sync::atomic::{AtomicBool, Ordering};

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
/// The first 16 bytes of the SHA-256 of a key.
const HASH: &str = "substr(sha256(convert_to('base/04', 'UTF8')), 1, 16)";

/// A statement that damages a table, the code of the finding, and a part of its message.
type Case = (&'static str, &'static str, &'static str);

const CASES: &[Case] = &[
    ("UPDATE sets SET kept_bytes = kept_bytes + 1", "versions.need", "the bytes of kept contents"),
    (
        "UPDATE sets SET position = position + 1",
        "log.head",
        "the position in the row of the set is 35",
    ),
    ("UPDATE sets SET time = time + 1", "log.head", "the time in the row"),
    ("UPDATE sets SET resources = resources + 1", "log.head", "the number of resources"),
    ("UPDATE sets SET page = page + 1", "log.head", "the open page"),
    ("DELETE FROM sets", "store.row", "rows of changes that belong to no set: 34"),
    ("DELETE FROM resources WHERE key = 'base/01'", "table.shard", "counts"),
    ("UPDATE resources SET key = 'base/xx' WHERE key = 'base/01'", "store.row", "`base/xx`"),
    ("UPDATE resources SET position = 3 WHERE key = 'base/01'", "table.row", "`base/01`"),
    ("UPDATE resources SET length = length + 1 WHERE key = 'new/07'", "table.row", "`new/07`"),
    ("UPDATE resources SET digests = '\\x01' WHERE key = 'new/07'", "table.row", "`new/07`"),
    ("UPDATE resources SET links = '{' WHERE key = 'new/07'", "store.row", "`new/07`"),
    ("UPDATE resources SET content = '\\x01' WHERE key = 'base/02'", "store.row", "`base/02`"),
    ("DELETE FROM changes WHERE position = 12", "log.gap", "after position 11 comes 13"),
    ("DELETE FROM changes WHERE position BETWEEN 11 AND 20", "log.page", "Change List 2"),
    ("DELETE FROM changes WHERE position = 34", "table.row", "is not what its last change"),
    ("DELETE FROM changes WHERE position = 34", "log.head", "is 34, and 33 in"),
    ("UPDATE changes SET time = 5 WHERE position = 12", "log.time", "at position 12"),
    ("UPDATE changes SET kind = 9 WHERE position = 12", "store.row", "at position 12"),
    ("UPDATE changes SET note = '{' WHERE position = 12", "store.row", "at position 12"),
    ("DELETE FROM tombstones WHERE key_hash = HASH", "table.tombstone", "`base/04` was removed"),
    ("UPDATE tombstones SET position = position + 1", "table.tombstone", "is listed as removed"),
    ("INSERT INTO tombstones SELECT id, '\\x0102', 1 FROM sets", "table.tombstone", "is listed"),
    ("DELETE FROM pages WHERE number = 2", "log.page", "Change List 3 does not follow"),
    ("UPDATE pages SET last = last + 1 WHERE number = 2", "log.page", "Change List 2 ends"),
    ("DELETE FROM pages WHERE last IS NULL", "log.page", "no open Change List"),
    ("UPDATE shards SET resources = resources + 1 WHERE NOT retired", "table.shard", "counts"),
    ("UPDATE shards SET bytes = bytes + 1 WHERE NOT retired", "table.shard", "counts"),
    ("DELETE FROM shards WHERE start_key = '' AND NOT retired", "table.shard", "do not cover"),
    ("UPDATE shards SET version = 1 WHERE NOT retired", "table.shard", "is not as new"),
    ("DELETE FROM versions WHERE position = 1", "versions.need", "rows refer to kept contents"),
    ("UPDATE versions SET content = '\\x01' WHERE position = 1", "store.row", "a version of"),
    ("UPDATE contents SET needed = needed + 1", "versions.need", "uses are counted"),
    ("DELETE FROM contents", "versions.need", "0 uses are counted"),
    (
        "INSERT INTO contents SELECT set_id, '\\x0102', 1, 0 FROM contents LIMIT 1",
        "store.row",
        ": 1",
    ),
    ("INSERT INTO idempotency VALUES (99, 'a', 1, 1)", "store.row", "rows of idempotency"),
];

fn connect(url: &str) -> PostgresDatabase {
    PostgresOptions::default().with_shard_rule(SHARD_RULE).connect(url).unwrap()
}

fn check(database: &PostgresDatabase) -> Findings {
    let mut findings = Findings::default();
    database.check_log("db", &mut findings, &Meter::default(), &|| false).unwrap();
    findings
}

#[test]
fn damage_in_each_table_of_a_database_is_found() {
    let name = "damage_in_each_table_of_a_database_is_found";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let original = connect(&server.create("original"));
    fill(&original.log().unwrap());
    assert_eq!(check(&original).list(), [], "the store is not damaged yet");
    drop(original);
    for (number, (damage, code, part)) in CASES.iter().enumerate() {
        let copy = format!("copy{number}");
        server.sql("postgres", &format!("CREATE DATABASE {copy} TEMPLATE original"));
        let damage = damage.replace("HASH", HASH);
        server.sql(&copy, &format!("SET search_path = abreast; {damage}"));
        let database = connect(&server.url(&copy));
        let found = check(&database);
        let is_named = |finding: &abreast_core::Finding| {
            finding.rule == *code
                && finding.message.contains(part)
                && (finding.location == "db: set set" || finding.message.starts_with("rows of "))
        };
        assert!(found.list().iter().any(is_named), "{damage}: {:?}", found.list());
        assert!(!found.is_consistent(), "{damage}");
    }
}

#[test]
fn a_check_during_changes_finds_nothing_and_can_stop() {
    let name = "a_check_during_changes_finds_nothing_and_can_stop";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("served");
    let (writer, reader) = (connect(&url), connect(&url));
    let log = writer.log().unwrap();
    fill(&log);
    let set = log.find_set("set").unwrap().unwrap().id;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..400_u64 {
                let key = format!("key {:03}", number * 7 % 130);
                let change = match number % 3 {
                    0 => Change::delete(key),
                    _ => Change::put(key, state(number)),
                };
                append(&log, set, vec![change]).unwrap();
            }
            is_done.store(true, Ordering::SeqCst);
        });
        while !is_done.load(Ordering::SeqCst) {
            assert_eq!(check(&reader).list(), []);
        }
    });
    let meter = Meter::listening();
    let mut findings = Findings::default();
    let facts = reader.check_log("db", &mut findings, &meter, &|| false).unwrap();
    let head = log.head(set).unwrap();
    assert_eq!(
        (facts[0].slug.as_str(), facts[0].position, facts[0].resources),
        ("set", head.position.0, head.resources)
    );
    assert!(meter.state().unwrap().done > head.position.0, "rows are counted");
    let stopped = reader.check_log("db", &mut findings, &meter, &|| true).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Busy);

    let needed = reader.needed_contents(&[], 1_000).unwrap();
    assert!(needed.len() > 10 && needed.is_sorted(), "{needed:?}");
    assert!(reader.is_needed(&needed[0].0).unwrap());
    assert!(!reader.is_needed(&ContentId([255; ContentId::BYTES])).unwrap());
    assert_eq!(log.open_set(&new_set()).unwrap().id, set);
}

/// Without statistics of its tables, the planner must still use the indexes.
#[test]
fn a_check_reads_each_row_by_an_index() {
    let name = "a_check_reads_each_row_by_an_index";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start_with(&programs, &plans::SETTINGS);
    let database = connect(&server.create("plans"));
    let log = database.log().unwrap();
    fill(&log);
    let set = log.find_set("set").unwrap().unwrap().id;
    let many = (0..3_000_u64).map(|number| Change::put(format!("{number:04}"), state(number)));
    append(&log, set, many.collect()).unwrap();
    append(&log, set, (0..1_000).map(|number| Change::delete(format!("{number:04}"))).collect())
        .unwrap();
    let before = server.log().len();
    assert_eq!(check(&database).list(), []);
    plans::check(&server.log()[before..], 20, &["sets"]);
}
