//! Moving a store between a folder and a PostgreSQL database: all rows are equal afterwards, also if
//! the migration is interrupted after each part.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::hub::{
    Attempt, DeadLetter, Ending, HubStore as _, NewTarget, NewVerification, Progress, Secret,
    TargetId, TargetKind, VerificationMode,
};
use abreast_core::{
    Change, ChangeLog, ContentId, Description, ErrorKind, FixedClock, Imported, LogError,
    NewNotification, NewSet, Offset, PageRule, Payload, Position, ShardRule, State, TopicLog,
    append, publish,
};
use abreast_store::hub::{NodeOptions, PostgresHub, SqliteHub};
use abreast_store::migrate::{
    MigratedStore, MigratedTable, Migration, MigrationOptions, identity_of, migrated_from,
};
use abreast_store::{
    FormerSet, NowAt, PostgresDatabase, PostgresOptions, Removal, SharedSets as _, SqliteLog,
    SqliteOptions, drop_set, former_sets, rename_set,
};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::provided;
use abreast_webtypes::{Label, Link, Timestamp};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";

fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock::at(Timestamp::from_seconds(1_800_000_000)))
}

fn open_log(folder: &Path) -> SqliteLog {
    SqliteOptions::default()
        .with_shard_rule(ShardRule { resources: 20, bytes: 1_000_000 })
        .open(&folder.join("source.db"), clock())
        .unwrap()
}

fn state(number: u64) -> State {
    let content = number.is_multiple_of(2).then_some(ContentId([number as u8; ContentId::BYTES]));
    let label = Label { language: "de".into(), text: format!("Größe {number}") };
    let description = Description {
        types: vec!["http://example.org/Type".into()],
        labels: vec![label],
        ..Description::default()
    };
    let mut state = State {
        modified: Timestamp::from_seconds(number as i64),
        length: Some(number),
        media_type: Some("text/plain".into()),
        encoding: number.is_multiple_of(3).then(|| "gzip".into()),
        links: vec![Link {
            target: "http://example.org/é".into(),
            rel: "describedby".into(),
            ..Link::default()
        }],
        description: number.is_multiple_of(5).then(|| Box::new(description)),
        content,
        ..State::default()
    };
    state.digests.set_from_bytes(&[]);
    state
}

/// Long keys differ only after the characters that an index of PostgreSQL has.
fn key(number: u64) -> String {
    match number % 4 {
        0 => format!("{}{number:03}", "x".repeat(2_000)),
        1 => format!("ü/{number:03}"),
        2 => format!("\u{10ffff}{number:03}"),
        _ => format!("plain/{number:03}"),
    }
}

/// Sets with a base, changes of all kinds, versions, names of changes, pages, shards, former names.
fn write_log(folder: &Path) {
    let log = open_log(folder);
    for (slug, with_versions) in [("versions", true), ("plain", false), ("dropped", false)] {
        let page_rule = PageRule { changes: 10, age: Duration::from_secs(9_999_999) };
        let set = log.open_set(&NewSet { slug: slug.into(), page_rule, ..NewSet::default() });
        let set = set.unwrap().id;
        log.keep_versions(set, with_versions).unwrap();
        let base =
            |number| Imported { key: key(number), state: state(number), witness: vec![1, 2] };
        log.import(set, (0..60).map(base).collect()).unwrap();
        log.complete_import(set).unwrap();
        for number in 0..60_u64 {
            let change = match number % 6 {
                3 => Change::deprecate(key(number), vec!["http://example.org/new".into()]),
                4 => Change::remove(key(number - 1)),
                5 => Change::delete(key(number - 5)),
                _ => Change::put(key(number * 7 % 90), state(100 + number)),
            };
            let change = change.with_summary("résumé").with_witness(vec![number as u8; 9]);
            let change = change.with_idempotency_key(format!("naïve {number}"));
            append(&log, set, vec![change]).unwrap();
        }
    }
    let unfinished = NewSet { slug: "unfinished".into(), ..NewSet::default() };
    let unfinished = log.open_set(&unfinished).unwrap().id;
    let first = Imported { key: "first".into(), state: state(1), witness: vec![] };
    log.import(unfinished, vec![first]).unwrap();
    log.close();
    drop(log);
    let (path, time) = (folder.join("source.db"), Timestamp::from_seconds(1_800_000_900));
    let moved_to = Some("http://other.example/set/".to_owned());
    drop_set(&path, "dropped", Some(&Removal { time, moved_to })).unwrap();
    rename_set(&path, ("plain", "renamed"), Some(time)).unwrap();
}

fn write_hub(folder: &Path) {
    let store = SqliteHub::open(&folder.join("hub.db"), clock()).unwrap();
    let topics = ["a", "b%C3%BC"]
        .map(|name| store.open_topic(&format!("http://example.org/topic/{name}")).unwrap());
    for number in 0..40_u64 {
        let payload = match number % 3 {
            0 => Payload::Changes { after: Position(number), last: Position(number + 1) },
            _ => Payload::Bytes(vec![number as u8; number as usize * 300].into()),
        };
        let (media_type, links) = ("text/plain".to_owned(), "<a>; rel=\"up\"".to_owned());
        let content = NewNotification { media_type, links, payload };
        publish(&store, topics[number as usize % 2], content).unwrap();
    }
    store.trim(topics[0], Offset(5)).unwrap();
    for number in 0..30_u64 {
        let kinds = [TargetKind::Subscription, TargetKind::FatSubmission, TargetKind::Webhook];
        let new = NewTarget {
            topic: topics[number as usize % 2],
            kind: kinds[number as usize % 3],
            address: format!("http://example.org/{}/{number}", "y".repeat(number as usize * 100)),
            secret: number.is_multiple_of(2).then(|| Secret::from(vec![number as u8; 20])),
            lease_until: number.is_multiple_of(3).then(|| Timestamp::from_seconds(1_900_000_000)),
            cursor: Some(Offset(2)),
        };
        let target = store.put_target(new).unwrap();
        let attempt = |error: Option<&str>| Attempt {
            offset: Offset(3),
            number: 2,
            time: Timestamp::from_seconds(1_800_000_000 + number as i64),
            status: Some(200 + number as u16),
            error: error.map(str::to_owned),
            took: Duration::from_micros(77),
        };
        let progress = |cursor, last: Attempt, is_dead: bool| Progress {
            id: target.id,
            generation: 1,
            cursor: Offset(cursor),
            attempts: 1,
            first_failed: Some(Timestamp::from_seconds(7)),
            next_at: Some(Timestamp::from_seconds(8)),
            last: Some(last),
            dead: is_dead.then(|| {
                let time = Timestamp::from_seconds(1_800_000_000 - number as i64);
                DeadLetter::range(Offset(3), Offset(4), "gave up: ö", time)
            }),
        };
        let all = vec![
            progress(4, attempt(Some("refused: é")), false),
            progress(6, attempt(Some("again")), true),
            progress(7, attempt(None), number.is_multiple_of(2)),
        ];
        assert_eq!(store.save_progress(all).unwrap(), []);
        if number.is_multiple_of(5) {
            store.end_target(target.id, Ending::Gone).unwrap();
        }
        let asked = NewVerification {
            topic_url: "http://example.org/topic/a".into(),
            callback: format!("http://example.org/callback/{number}"),
            mode: VerificationMode::Subscribe,
            secret: Some(Secret::from(vec![1; 3])),
            lease_seconds: Some(300),
            challenge: "challenge".into(),
            reason: number.is_multiple_of(2).then(|| "because".into()),
            next_at: Timestamp::from_seconds(1_000),
        };
        store.put_verification_then(asked, Box::new(|result| assert!(result.is_ok())));
    }
    store.close();
}

/// All rows of a folder's databases as texts. Numbers that only SQLite has are left out.
fn rows(folder: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    const OWN: [&str; 2] = [
        "SELECT topic_id, offset, time, media_type, links, after, last, sum, bytes FROM notifications \
         LEFT JOIN bodies ON bodies.id = body_id",
        "SELECT target_id, first, last, letters, error, time FROM dead",
    ];
    let mut found = BTreeMap::new();
    for file in ["source.db", "hub.db"] {
        let connection = Connection::open(folder.join(file)).unwrap();
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
                      AND name NOT IN ('notifications', 'bodies', 'dead') ORDER BY name";
        let mut tables = connection.prepare(tables).unwrap();
        let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let names = names.map(|name| name.unwrap());
        let mut queries: Vec<(String, String)> = names
            .map(|name| {
                let sql = format!("SELECT * FROM {name}");
                (name, sql)
            })
            .collect();
        if file == "hub.db" {
            queries.extend(OWN.map(|sql| (sql.to_owned(), sql.to_owned())));
        }
        for (name, sql) in queries {
            let mut statement = connection.prepare(&sql).unwrap();
            let count = statement.column_count();
            let rows = statement
                .query_map([], |row| (0..count).map(|column| row.get(column)).collect())
                .unwrap();
            let mut rows = rows.collect::<Result<Vec<Vec<Value>>, _>>().unwrap();
            rows.sort_by_key(|row| format!("{row:?}"));
            found.insert(name, rows);
        }
    }
    found
}

fn assert_equal(one: &Path, other: &Path) {
    let (one, other) = (rows(one), rows(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (table, rows) in &one {
        assert!(!rows.is_empty(), "`{table}` has rows");
        assert_eq!(rows, &other[table], "{table}");
    }
}

fn connect(url: &str) -> PostgresDatabase {
    PostgresOptions::default().connect(url).unwrap()
}

/// Runs a migration to its end, or to the error.
fn migrate(
    from: &MigratedStore,
    to: &MigratedStore,
    options: MigrationOptions<'_>,
) -> Result<Vec<MigratedTable>, LogError> {
    let mut migration = Migration::start(from.clone(), to.clone(), options)?;
    migration.copy_rows()?;
    let tables = migration.verify()?.tables;
    migration.finish()?;
    Ok(tables)
}

/// Runs a migration that is interrupted before each part.
fn migrate_in_pieces(from: &MigratedStore, to: &MigratedStore) {
    for attempt in 1.. {
        let calls = AtomicU64::new(0);
        // The second part of each attempt is not copied.
        let is_stopped = || calls.fetch_add(1, Ordering::Relaxed) == 1;
        let options = MigrationOptions { rows: 7, is_stopped: &is_stopped, ..Default::default() };
        let mut migration = Migration::start(from.clone(), to.clone(), options).unwrap();
        assert_eq!(migration.is_continued(), attempt > 1);
        match migration.copy_rows() {
            Ok(()) => break,
            Err(error) => assert!(error.to_string().contains("was stopped"), "{error}"),
        }
    }
    let options = MigrationOptions::default();
    let mut migration = Migration::start(from.clone(), to.clone(), options).unwrap();
    assert!(migration.is_continued());
    migration.copy_rows().unwrap();
    migration.verify().unwrap();
    migration.finish().unwrap();
}

/// A folder with a store that has rows in all tables.
fn full_store() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_log(folder.path());
    write_hub(folder.path());
    folder
}

#[test]
fn a_store_moves_to_postgres_and_back_unchanged() {
    let Some(programs) = provided("a_store_moves_to_postgres_and_back_unchanged", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let (one, back) = (full_store(), tempfile::tempdir().unwrap());
    let database = connect(&server.create("store"));
    let folder = MigratedStore::Folder(one.path().to_owned());
    let in_database = MigratedStore::Database(database.clone());
    let tables = migrate(&folder, &in_database, MigrationOptions::default()).unwrap();
    assert_eq!(tables.len(), 17, "{tables:?}");
    assert!(tables.iter().all(|table| table.rows > 0), "{tables:?}");
    let former = former_sets(&one.path().join("source.db")).unwrap();
    let expected = |slug: &str, now| FormerSet {
        slug: slug.into(),
        time: Timestamp::from_seconds(1_800_000_900),
        now,
    };
    let moved = NowAt::Url("http://other.example/set/".into());
    assert_eq!(
        former,
        [expected("dropped", moved), expected("plain", NowAt::Name("renamed".into()))]
    );
    assert_eq!(database.former_sets().unwrap(), former);
    let to = MigratedStore::Folder(back.path().to_owned());
    migrate(&in_database, &to, MigrationOptions::default()).unwrap();
    assert_equal(one.path(), back.path());
    // Both logs and hubs continue in the same way.
    let (own, other) = (open_log(back.path()), database.log().unwrap());
    for log in [&own as &dyn ChangeLog, &other] {
        let set = log.find_set("versions").unwrap().unwrap().id;
        let (head, change) = (log.head(set).unwrap(), Change::put("new", state(1)));
        append(log, set, vec![change]).unwrap();
        assert_eq!(log.head(set).unwrap().position, head.position.next());
        let created = NewSet { slug: "later".into(), ..NewSet::default() };
        assert!(log.open_set(&created).unwrap().id.0 > set.0);
    }
    drop(own);
    let hubs: [Box<dyn abreast_core::hub::HubStore>; 2] = [
        Box::new(SqliteHub::open(&back.path().join("hub.db"), clock()).unwrap()),
        Box::new(database.hub(NodeOptions::default()).unwrap()),
    ];
    for hub in hubs {
        let topic = hub.find_topic("http://example.org/topic/a").unwrap().unwrap();
        let head = hub.head(topic).unwrap();
        let payload = Payload::Bytes(vec![1].into());
        let (media_type, links) = ("text/plain".to_owned(), String::new());
        let content = NewNotification { media_type, links, payload };
        assert_eq!(publish(&*hub, topic, content).unwrap().0, head.0 + 1);
        let new = NewTarget {
            topic,
            kind: TargetKind::Subscription,
            address: "http://example.org/new".into(),
            secret: None,
            lease_until: None,
            cursor: None,
        };
        let last = hub.all_targets(TargetId(0), 1_000).unwrap().pop().unwrap().id;
        // Numbers in PostgreSQL have the shard as their remainder.
        let parts = if hub.nodes().is_some() { 1_024 } else { 1 };
        assert!(hub.put_target(new).unwrap().id.0 / parts > last.0 / parts);
    }
}

#[test]
fn an_interrupted_migration_continues_after_each_part() {
    let Some(programs) = provided("an_interrupted_migration_continues_after_each_part", PROGRAMS)
    else {
        return;
    };
    let server = Postgres::start(&programs);
    let (one, back) = (full_store(), tempfile::tempdir().unwrap());
    let folder = MigratedStore::Folder(one.path().to_owned());
    let in_database = MigratedStore::Database(connect(&server.create("store")));
    migrate_in_pieces(&folder, &in_database);
    migrate_in_pieces(&in_database, &MigratedStore::Folder(back.path().to_owned()));
    assert_equal(one.path(), back.path());
}

#[test]
fn a_migration_refuses_stores_that_do_not_fit() {
    let Some(programs) = provided("a_migration_refuses_stores_that_do_not_fit", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let (one, other) = (full_store(), full_store());
    let database = connect(&server.create("store"));
    let [one, other] = [&one, &other].map(|folder| MigratedStore::Folder(folder.path().to_owned()));
    let to = MigratedStore::Database(database.clone());
    let refusal = |from: &MigratedStore, to: &MigratedStore| {
        migrate(from, to, MigrationOptions::default()).unwrap_err().to_string()
    };
    assert!(refusal(&one, &other).contains("both stores are folders"));
    let is_stopped = || true;
    let options = MigrationOptions { is_stopped: &is_stopped, ..Default::default() };
    assert_eq!(migrate(&one, &to, options).unwrap_err().kind(), ErrorKind::Busy);
    // The other store has the same sets, but not the same times of its changes.
    let MigratedStore::Folder(folder) = &other else { unreachable!() };
    let log = open_log(folder);
    let set = log.find_set("renamed").unwrap().unwrap().id;
    append(&log, set, vec![Change::put("one more", state(1))]).unwrap();
    drop(log);
    assert!(refusal(&other, &to).contains("a part of another store"));
    let refused = refusal(&to, &MigratedStore::Folder(tempfile::tempdir().unwrap().keep()));
    assert!(refused.contains("is not complete"), "{refused}");
    migrate(&one, &to, MigrationOptions::default()).unwrap();
    assert!(refusal(&one, &to).contains("is not empty"));
    let hub: PostgresHub = database.hub(NodeOptions::default()).unwrap();
    abreast_core::hub::HubNodes::renew(&hub).unwrap();
    assert!(refusal(&to, &one).contains("in use by the node"));
}

#[test]
fn an_attempt_that_ended_before_its_first_record_is_repeated() {
    let name = "an_attempt_that_ended_before_its_first_record_is_repeated";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let (one, folder) = (full_store(), tempfile::tempdir().unwrap());
    let from = MigratedStore::Folder(one.path().to_owned());
    let database = MigratedStore::Database(connect(&server.create("store")));
    migrate(&from, &database, MigrationOptions::default()).unwrap();
    let MigratedStore::Database(connected) = &database else { unreachable!() };
    assert_eq!(migrated_from(connected).unwrap(), Some(identity_of(&from).unwrap()));
    // The databases of a folder exist, and have neither rows nor a record.
    let to = MigratedStore::Folder(folder.path().to_owned());
    drop(open_log(folder.path()));
    drop(SqliteHub::open(&folder.path().join("hub.db"), clock()).unwrap());
    migrate(&database, &to, MigrationOptions::default()).unwrap();
    assert!(identity_of(&to).unwrap().contains("sets"));
    // A store with rows is not replaced.
    let again = migrate(&database, &to, MigrationOptions::default()).unwrap_err();
    assert!(again.to_string().contains("is not empty"), "{again}");
}

#[test]
fn a_changed_row_is_found_before_the_end() {
    let Some(programs) = provided("a_changed_row_is_found_before_the_end", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let one = full_store();
    let from = MigratedStore::Folder(one.path().to_owned());
    for (number, (sql, place)) in [
        ("UPDATE abreast.changes SET time = time + 1 WHERE set_id = 1 AND position = 3", "`changes`"),
        ("DELETE FROM abreast.versions WHERE ctid = (SELECT ctid FROM abreast.versions LIMIT 1)", "`versions`"),
        ("UPDATE abreast.resources SET witness = 'x' WHERE ctid = (SELECT ctid FROM abreast.resources LIMIT 1)", "`resources`"),
        ("UPDATE abreast.sets SET time = time + 1 WHERE id = 1", "the head of the set"),
        ("UPDATE abreast.targets SET lease_until = 1", "`targets`"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("store{number}");
        let to = MigratedStore::Database(connect(&server.create(&name)));
        let mut migration =
            Migration::start(from.clone(), to, MigrationOptions::default()).unwrap();
        migration.copy_rows().unwrap();
        server.sql(&name, sql);
        let error = migration.verify().unwrap_err().to_string();
        assert!(error.contains(place), "{sql}: {error}");
    }
}
