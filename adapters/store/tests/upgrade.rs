//! Does a store that an older version wrote open, with everything in it?
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::testing::check_consistency;
use abreast_core::{Change, ChangeLog, ContentId, NewSet, PageRule, Position, State, SystemClock, append};
use abreast_store::SqliteLog;
use abreast_webtypes::{Digests, Timestamp};
use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::Arc;

const START: i64 = 1_767_225_600_000_000;

/// A store as version 1 of the schema had it: one set, three resources created, one of them deleted.
fn write_version_1(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch("CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT").unwrap();
    connection.execute_batch(include_str!("../src/migrations/log_0001.sql")).unwrap();
    connection.execute("INSERT INTO schema_version (version) VALUES (1)", []).unwrap();
    let add = |sql: &str, values: &[&dyn rusqlite::ToSql]| assert_eq!(connection.execute(sql, values).unwrap(), 1);
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
    add("INSERT INTO changes VALUES (1, 4, ?1, 6, 'c', NULL, NULL, NULL, NULL, NULL, NULL)", params![START + 4]);
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
        let set = log.open_set(&NewSet { slug: "old".into(), page_rule: PageRule::default() }).unwrap().id;
        let head = log.head(set).unwrap();
        assert_eq!((head.position, head.resources, head.importing), (Position(4 + round), 2 + round, false));
        let known = log.resource(set, "a").unwrap().unwrap();
        let id = Some(ContentId([3; 32]));
        assert_eq!(known.state, state(if round == 0 { None } else { id }));
        // Keeping the bytes of what was there before is no change; what is new is recorded with them.
        let key = format!("new/{round}");
        let answer = append(&log, set, vec![Change::put("a", state(id)), Change::put(&key, state(id))]).unwrap();
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
