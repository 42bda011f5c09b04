//! Stores that older versions wrote open with everything in them.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::testing::check_consistency;
use abreast_core::{
    Change, ChangeLog, ContentId, FixedClock, Imported, KeyRange, NewSet, Order, PageRule,
    Position, SetId, ShardRule, State, SystemClock, append,
};
use abreast_store::integrity::{Findings, check_log};
use abreast_store::{SqliteLog, SqliteOptions};
use abreast_webtypes::{Digests, Link, Timestamp};
use rusqlite::{Connection, params};
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const START: i64 = 1_767_225_600_000_000;

/// A store as version 1 of the schema had it: one set, three resources created, one of them
/// deleted.
fn write_version_1(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection
        .execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT")
        .unwrap();
    connection.execute_batch(include_str!("../src/migrations/log_0001.sql")).unwrap();
    connection.execute("INSERT INTO schema_version (version) VALUES (1)", []).unwrap();
    let add = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        assert_eq!(connection.execute(sql, values).unwrap(), 1);
    };
    let age = 7 * 24 * 3_600_000_000_i64;
    add("INSERT INTO sets VALUES (1, 'old', ?1, 0, 5000, ?2)", params![START, age]);
    let digests = Digests { md5: Some([7; 16]), ..Digests::default() }.to_bytes();
    for (position, key) in [(1_i64, "a"), (2, "b"), (3, "c")] {
        add(
            "INSERT INTO changes VALUES (1, ?1, ?2, 1, ?3, 5000000, 10, 'text/plain', NULL, ?4, NULL)",
            params![position, START + position, key, digests],
        );
        if key != "c" {
            add(
                "INSERT INTO resources VALUES (1, ?1, ?2, 5000000, 10, 'text/plain', NULL, ?3, NULL, x'01')",
                params![key, position, digests],
            );
        }
    }
    add(
        "INSERT INTO changes VALUES (1, 4, ?1, 6, 'c', NULL, NULL, NULL, NULL, NULL, NULL)",
        params![START + 4],
    );
    add("INSERT INTO pages VALUES (1, 1, 0, NULL, ?1, NULL)", params![START]);
    add("INSERT INTO shards VALUES (1, 1, '', NULL, 2, 200, 4, ?1, 0)", params![START + 4]);
}

fn state(content: Option<ContentId>) -> State {
    State {
        modified: Timestamp::from_seconds(5),
        length: Some(10),
        media_type: Some("text/plain".into()),
        digests: Digests { md5: Some([7; 16]), ..Digests::default() },
        content,
        ..State::default()
    }
}

#[test]
fn a_store_of_the_first_schema_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");
    write_version_1(&path);
    for round in 0..2 {
        let log = SqliteLog::open(&path, Arc::new(SystemClock)).unwrap();
        let set = log.open_set(&NewSet { slug: "old".into(), ..NewSet::default() }).unwrap().id;
        let head = log.head(set).unwrap();
        assert_eq!(
            (head.position, head.resources, head.importing),
            (Position(4 + round), 2 + round, false)
        );
        let known = log.resource(set, "a").unwrap().unwrap();
        let id = Some(ContentId([3; 32]));
        assert_eq!(known.state, state(if round == 0 { None } else { id }));
        // Keeping the bytes of what was there before is no change; what is new is recorded with
        // them.
        let key = format!("new/{round}");
        let answer =
            append(&log, set, vec![Change::put("a", state(id)), Change::put(&key, state(id))])
                .unwrap();
        assert_eq!((answer.recorded, answer.unchanged), (1, 1));
        assert_eq!(log.resource(set, &key).unwrap().unwrap().state.content, id);
        if round == 0 {
            continue;
        }
        // The bytes of `a` were kept after it was recorded: the log has it without them.
        append(&log, set, vec![Change::delete("a")]).unwrap();
        check_consistency(&log, set);
    }
}

/// The states in the fixture.
fn numbered(number: u64) -> State {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_le_bytes());
    let link = || Link {
        target: format!("https://example.org/{number}"),
        rel: "describedby".into(),
        ..Link::default()
    };
    State {
        modified: Timestamp::from_seconds(1_700_000_000 + number as i64),
        length: Some(number * 7),
        media_type: Some("text/plain".into()),
        encoding: number.is_multiple_of(10).then(|| "gzip".into()),
        digests: Digests { md5: Some(md5), ..Digests::default() },
        links: if number.is_multiple_of(9) { vec![link()] } else { Vec::new() },
        content: number.is_multiple_of(3).then_some(ContentId([number as u8; 32])),
        ..State::default()
    }
}

fn open_small_shards(path: &Path) -> SqliteLog {
    let clock = Arc::new(FixedClock::at(Timestamp::from_micros(START)));
    let rule = ShardRule { resources: 40, bytes: 1_000_000 };
    SqliteOptions::default().with_shard_rule(rule).open(path, clock).unwrap()
}

fn new_set() -> NewSet {
    let page_rule = PageRule { changes: 25, age: Duration::from_secs(9_999_999) };
    NewSet { slug: "old".into(), page_rule, ..NewSet::default() }
}

/// What wrote the fixture `log_schema_4.db.gz`, with the program of schema 4.
fn write_as_the_fixture(log: &SqliteLog) {
    let set = log.open_set(&new_set()).unwrap().id;
    log.keep_versions(set, true).unwrap();
    let imported = |key, number, witness| Imported { key, state: numbered(number), witness };
    let base = (0..60).map(|number| imported(format!("base/{number:03}"), number, vec![1, 2, 3]));
    log.import(set, base.collect()).unwrap();
    log.complete_import(set).unwrap();
    for number in 0..140_u64 {
        let change = match number % 7 {
            6 => Change::delete(format!("new/{:03}", number - 1)),
            5 => Change::put(format!("base/{:03}", number % 60), numbered(number + 500)),
            4 => Change::delete(format!("base/{:03}", number % 60)),
            _ => Change::put(format!("new/{number:03}"), numbered(number + 100)),
        };
        append(log, set, vec![change.with_idempotency_key(format!("k{number}"))]).unwrap();
    }
    let importing =
        log.open_set(&NewSet { slug: "importing".into(), ..NewSet::default() }).unwrap().id;
    log.import(importing, vec![imported("a".into(), 1, Vec::new())]).unwrap();
}

/// Everything that a store answers.
fn answers(log: &SqliteLog) -> String {
    let mut text = String::new();
    for set in log.sets().unwrap() {
        let (slug, set) = (set.slug, set.id);
        writeln!(text, "{slug} {:?} {:?}", log.head(set).unwrap(), log.shards(set).unwrap())
            .unwrap();
        writeln!(text, "{:?}", log.pages(set, 1, 1_000).unwrap()).unwrap();
        let mut keys = Vec::new();
        log.read(set, Position(0), &mut |change| {
            keys.push(change.key.clone());
            writeln!(text, "{change:?}").unwrap();
            ControlFlow::Continue(())
        })
        .unwrap();
        log.latest(set, Position(0), &mut |change| {
            writeln!(text, "latest {} {}", change.position, change.key).unwrap();
            ControlFlow::Continue(())
        })
        .unwrap();
        log.scan(set, &KeyRange::default(), &mut |resource| {
            writeln!(text, "{resource:?}").unwrap();
            ControlFlow::Continue(())
        })
        .unwrap();
        for key in keys {
            let versions =
                log.versions(set, &key, Timestamp::MIN, Order::OldestFirst, 100).unwrap();
            writeln!(text, "{key} {versions:?}").unwrap();
        }
    }
    text
}

fn findings(path: &Path) -> Findings {
    let mut findings = Findings::default();
    check_log(path, &mut findings).unwrap();
    findings
}

#[test]
fn a_store_of_schema_4_answers_what_a_new_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
    let mut unpacked = Vec::new();
    let fixture = include_bytes!("fixtures/log_schema_4.db.gz");
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&fixture[..]), &mut unpacked)
        .unwrap();
    std::fs::write(&old, unpacked).unwrap();
    let before = findings(&old);
    assert!(before.is_consistent() && before.has(&["store.schema-old"]), "{:?}", before.list());

    let log = open_small_shards(&new);
    write_as_the_fixture(&log);
    // Schemas before 7 do not have what a removed file was.
    let was =
        "removed: Some(Description { types: [], labels: [], media_type: Some(\"text/plain\") })";
    let expected = answers(&log);
    assert!(expected.contains(was));
    let expected = expected.replace(was, "removed: None");
    assert!(expected.contains("latest 23 base/025"), "the fixture has removals");
    log.close();
    for _ in 0..2 {
        let log = open_small_shards(&old);
        log.open_set(&new_set()).unwrap();
        similar(&answers(&log), &expected);
        let again = Change::put("again", numbered(1)).with_idempotency_key("k139");
        let answer = append(&log, SetId(1), vec![again]).unwrap();
        assert_eq!(answer.recorded, 0, "idempotency keys are kept");
        log.close();
        assert_eq!(findings(&old).list(), []);
    }
    let copy = folder.path().join("copy.db");
    abreast_store::backup::copy(&old, &copy).unwrap();
    similar(&answers(&open_small_shards(&copy)), &expected);
}

/// Compares line by line: the whole is too long to read.
fn similar(found: &str, expected: &str) {
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
