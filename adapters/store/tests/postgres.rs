//! The change log on PostgreSQL: the contract of every store, several nodes, and a database that
//! fails.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod plans;

use abreast_core::testing::{Stores, change_log_contract_part, check_consistency};
use abreast_core::{
    Change, ChangeLog, ContentId, ErrorKind, FixedClock, KeyRange, NewSet, Order, PageRule,
    Position, SetId, ShardRule, State, VersionPolicy, append,
};
use abreast_store::{PostgresLog, PostgresOptions};
use abreast_testkit::postgres::{PgBouncer, Postgres};
use abreast_testkit::relay::Relay;
use abreast_testkit::{provided, seed};
use std::collections::HashSet;
use std::fs;
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Parts of the contract that are checked at the same time.
const PARTS: usize = 4;
const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";

/// Databases of one server.
struct PostgresStores<'s> {
    server: &'s Postgres,
    part: usize,
    made: usize,
    options: PostgresOptions,
    url: String,
}

impl Stores for PostgresStores<'_> {
    fn create(&mut self, clock: Arc<FixedClock>, resources: u64, bytes: u64) -> Arc<dyn ChangeLog> {
        self.made += 1;
        self.url = self.server.create(&format!("store{}_{}", self.part, self.made));
        self.options = PostgresOptions::default()
            .with_shard_rule(ShardRule { resources, bytes })
            .with_clock(clock);
        Arc::new(self.options.clone().open(&self.url).expect("the store opens"))
    }

    fn reopen(&mut self, log: Arc<dyn ChangeLog>) -> Arc<dyn ChangeLog> {
        drop(log);
        Arc::new(self.options.clone().open(&self.url).expect("the store opens"))
    }
}

#[test]
fn postgres_keeps_the_promises_of_a_change_log() {
    let Some(programs) = provided("postgres_keeps_the_promises_of_a_change_log", PROGRAMS) else {
        return;
    };
    let server = &Postgres::start(&programs);
    std::thread::scope(|scope| {
        for part in 0..PARTS {
            scope.spawn(move || {
                let options = PostgresOptions::default();
                let mut stores =
                    PostgresStores { server, part, made: 0, options, url: String::new() };
                change_log_contract_part(&mut stores, part, PARTS);
            });
        }
    });
}

/// Small pages and shards, so that a test closes and splits many.
fn open(url: &str) -> PostgresLog {
    let rule = ShardRule { resources: 200, bytes: 1_000_000 };
    PostgresOptions::default().with_shard_rule(rule).open(url).expect("the store opens")
}

fn new_set() -> NewSet {
    let page_rule = PageRule { changes: 100, ..PageRule::default() };
    NewSet { slug: "letters".to_owned(), page_rule, ..NewSet::default() }
}

fn ready(log: &PostgresLog) -> SetId {
    let set = log.open_set(&new_set()).expect("a set can be opened").id;
    log.complete_import(set).expect("an import can be completed");
    set
}

fn put(key: String, length: u64) -> Change {
    Change::put(key, State { length: Some(length), ..State::default() })
}

/// Keys of the log's changes, in their order. Positions have no gaps, times increase.
fn keys(log: &PostgresLog, set: SetId) -> Vec<String> {
    let (mut keys, mut last) = (Vec::new(), (0, i64::MIN));
    log.read(set, Position(0), &mut |change| {
        assert_eq!(change.position.0, last.0 + 1, "positions have no gaps");
        assert!(change.time.as_micros() > last.1, "times increase");
        last = (change.position.0, change.time.as_micros());
        keys.push(change.key.clone());
        ControlFlow::Continue(())
    })
    .expect("the log can be read");
    keys
}

#[test]
fn nodes_record_in_one_log_and_readers_miss_nothing() {
    const NODES: u64 = 3;
    const CHANGES: u64 = 500;
    let Some(programs) = provided("nodes_record_in_one_log_and_readers_miss_nothing", PROGRAMS)
    else {
        return;
    };
    let server = Postgres::start(&programs);
    let url = server.create("letters");
    let nodes: Vec<PostgresLog> = std::thread::scope(|scope| {
        // Nodes that start at the same time make the tables once.
        let starting: Vec<_> = (0..NODES).map(|_| scope.spawn(|| open(&url))).collect();
        starting.into_iter().map(|node| node.join().unwrap()).collect()
    });
    let set = ready(&nodes[0]);
    assert_eq!(ready(&nodes[1]), set);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (log, mut seen) = (&nodes[0], Position(0));
            while !done.load(Ordering::SeqCst) || log.head(set).unwrap().position > seen {
                log.wait_for(&[(set, seen)], Duration::from_millis(100)).unwrap();
                log.read(set, seen, &mut |change| {
                    assert_eq!(change.position, seen.next(), "a reader skips nothing");
                    seen = change.position;
                    ControlFlow::Continue(())
                })
                .unwrap();
            }
            seen
        });
        let writers: Vec<_> = (0..NODES)
            .map(|node| {
                let log = &nodes[node as usize];
                scope.spawn(move || {
                    for number in 0..CHANGES {
                        // Some keys are shared by all nodes.
                        let owner = if number.is_multiple_of(7) { 9 } else { node };
                        let change = put(format!("{owner}/{number:05}"), number * 10 + node);
                        let appended = append(log, set, vec![change]).unwrap();
                        let head = log.head(set).unwrap().position;
                        assert!(head >= appended.head, "a node reads what it recorded");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        assert_eq!(reader.join().unwrap().0, NODES * CHANGES);
    });
    for node in &nodes {
        assert_eq!(keys(node, set).len() as u64, NODES * CHANGES);
        check_consistency(node, set);
    }
    assert!(nodes[2].shards(set).unwrap().len() > 5, "shards are split");
}

#[test]
fn a_crash_of_the_database_loses_and_doubles_nothing() {
    const CHANGES: u64 = 300;
    let Some(programs) = provided("a_crash_of_the_database_loses_and_doubles_nothing", PROGRAMS)
    else {
        return;
    };
    let mut server = Postgres::start(&programs);
    let url = server.create("letters");
    let nodes = [open(&url), open(&url)];
    let set = ready(&nodes[0]);
    let recorded = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(node, log)| {
                let recorded = &recorded;
                scope.spawn(move || {
                    for number in 0..CHANGES {
                        let change = put(format!("{node}/{number:05}"), number)
                            .with_idempotency_key(format!("{node}-{number}"));
                        // A client tries again with the same key until it has an answer.
                        while append(log, set, vec![change.clone()]).is_err() {}
                        recorded.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for crash in 1..=3 {
            while recorded.load(Ordering::SeqCst) < crash * CHANGES / 3 {
                std::thread::sleep(Duration::from_millis(5));
            }
            server.crash();
        }
        for writer in writers {
            writer.join().unwrap();
        }
    });
    let keys = keys(&nodes[0], set);
    assert_eq!(keys.len() as u64, 2 * CHANGES);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "no change is doubled");
    check_consistency(&nodes[1], set);
}

#[test]
fn a_lost_answer_to_a_commit_loses_and_doubles_nothing() {
    const CHANGES: u64 = 200;
    let Some(programs) = provided("a_lost_answer_to_a_commit_loses_and_doubles_nothing", PROGRAMS)
    else {
        return;
    };
    let server = Postgres::start(&programs);
    let url = server.create("letters");
    let set = ready(&open(&url));
    let relay = Relay::start(server.port(), 8, seed(7));
    let lossy = relay.url(&url);
    let nodes = [open(&lossy), open(&lossy)];
    std::thread::scope(|scope| {
        for (node, log) in nodes.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..CHANGES {
                    // Without an idempotency key: the store finds out by itself.
                    let change = put(format!("{node}/{number:05}"), number);
                    let appended = append(log, set, vec![change]).unwrap();
                    assert_eq!(appended.recorded, 1);
                }
            });
        }
    });
    assert!(relay.lost() > 10, "answers were lost");
    let log = open(&url);
    let keys = keys(&log, set);
    assert_eq!(keys.len() as u64, 2 * CHANGES);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "no change is doubled");
    check_consistency(&log, set);
}

#[test]
fn an_unreachable_database_is_reported_and_not_waited_for_twice() {
    let name = "an_unreachable_database_is_reported_and_not_waited_for_twice";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let mut server = Postgres::start(&programs);
    let url = server.create("letters");
    let log = open(&url);
    let set = ready(&log);
    append(&log, set, vec![put("a".to_owned(), 1)]).unwrap();
    server.stop();
    let change = || vec![put("b".to_owned(), 2)];
    let error = append(&log, set, change()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let begun = std::time::Instant::now();
    append(&log, set, change()).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(3), "the second batch fails soon");
    assert_eq!(log.head(set).unwrap_err().kind(), ErrorKind::Unavailable);
    server.run();
    append(&log, set, change()).unwrap();
    assert_eq!(keys(&log, set), ["a", "b"]);
    let refused = append(&log, set, vec![put("a\0b".to_owned(), 1)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    let wrong = PostgresLog::open("postgres://127.0.0.1:1/none").unwrap_err();
    assert!(wrong.to_string().contains("refused"), "{wrong}");
    assert_eq!(PostgresLog::open("mysql://x").unwrap_err().kind(), ErrorKind::Refused);
}

#[test]
fn a_proxy_may_give_each_transaction_another_connection() {
    let name = "a_proxy_may_give_each_transaction_another_connection";
    let (Some(programs), Some(proxy)) =
        (provided(name, PROGRAMS), provided(name, "ABREAST_TEST_PGBOUNCER"))
    else {
        return;
    };
    let server = Postgres::start(&programs);
    server.create("letters");
    let proxy = PgBouncer::start(&proxy, &server);
    let url = proxy.url("letters");
    let nodes = [open(&url), open(&url)];
    let set = ready(&nodes[0]);
    std::thread::scope(|scope| {
        for (node, log) in nodes.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..300 {
                    let change = put(format!("{node}/{number:05}"), number);
                    assert_eq!(append(log, set, vec![change]).unwrap().recorded, 1);
                    assert!(log.resource(set, &format!("{node}/00000")).unwrap().is_some());
                }
                // A large batch needs a named statement, and the other node has a statement of this name.
                for batch in 0..20 {
                    let key = |number| format!("{node}/{batch}/{number}");
                    let changes = (0..500).map(|number| put(key(number), number)).collect();
                    assert_eq!(append(log, set, changes).unwrap().recorded, 500);
                }
            });
        }
    });
    check_consistency(&nodes[0], set);
}

#[test]
fn every_statement_finds_its_rows_by_an_index() {
    const RESOURCES: u64 = 20_000;
    let name = "every_statement_finds_its_rows_by_an_index";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start_with(&programs, &plans::SETTINGS);
    let url = server.create("letters");
    let log = open(&url);
    let set = ready(&log);
    let kept = |number: u64| State {
        length: Some(number),
        content: Some(ContentId([number as u8; ContentId::BYTES])),
        ..State::default()
    };
    log.keep_versions(set, true).unwrap();
    let key = |number: u64| format!("letters/{number:06}.xml");
    for part in 0..RESOURCES / 5_000 {
        let numbers = part * 5_000..(part + 1) * 5_000;
        let changes = numbers.map(|number| {
            Change::put(key(number), kept(number)).with_idempotency_key(format!("{number}"))
        });
        append(&log, set, changes.collect()).unwrap();
    }
    append(&log, set, (0..2_000).map(|number| Change::delete(key(number))).collect()).unwrap();
    let before = server.log().len();
    for analyzed in [false, true] {
        if analyzed {
            server.sql("letters", "ANALYZE");
        }
        use_all(&log, set, &key, &kept);
    }
    plans::check(&server.log()[before..], 60, &["sets"]);
}

#[test]
fn resources_with_long_equal_beginnings_are_read_in_order() {
    let name = "resources_with_long_equal_beginnings_are_read_in_order";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let log = open(&server.create("letters"));
    let set = ready(&log);
    let long = |length: usize, number: u64| format!("long/{}{number:03}", "x".repeat(length));
    let mut expected: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
    // Keys of less, exactly and more than 500 characters, more than one part of each.
    for length in [490, 492, 495, 600] {
        expected.extend((0..100).map(|number| long(length, number * 7 % 100)));
    }
    append(&log, set, expected.iter().map(|key| put(key.clone(), 1)).collect()).unwrap();
    expected.sort_unstable();
    for from in [0, 1, 99, 100, 101, 250, 399, 499] {
        let range = KeyRange { start: expected[from].clone(), end: None };
        let mut found = Vec::new();
        log.scan(set, &range, &mut |resource| {
            found.push(resource.key.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(found, expected[from..], "from {from}");
        let mut witnessed = 0;
        log.scan_witnesses(set, &range, &mut |row| {
            assert_eq!(row.key, expected[from + witnessed]);
            witnessed += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(witnessed, expected.len() - from);
    }
}

/// Uses every method of the log once.
fn use_all(
    log: &PostgresLog,
    set: SetId,
    key: &dyn Fn(u64) -> String,
    kept: &dyn Fn(u64) -> State,
) {
    let ended = |_: &_| ControlFlow::Break(());
    let head = log.head(set).unwrap();
    let next = head.position.0;
    let update = Change::put(key(11_000), kept(next)).with_idempotency_key(format!("u{next}"));
    let same = Change::put(key(12_000), kept(12_000)).with_witness(next.to_le_bytes().to_vec());
    append(log, set, vec![update, same, Change::delete(key(9_000 + next % 1_000))]).unwrap();
    log.refresh_witnesses(set, vec![(key(7), next.to_le_bytes().to_vec())]).unwrap();
    log.read(set, Position(10_000), &mut |_| ControlFlow::Break(())).unwrap();
    log.latest(set, Position(10_000), &mut |_| ControlFlow::Break(())).unwrap();
    log.latest_before(set, Position(10_000)).unwrap().unwrap();
    assert!(log.position_at(set, head.time).unwrap() >= head.position);
    log.resource(set, &key(12_345)).unwrap().unwrap();
    let range = KeyRange { start: key(10_000), end: Some(key(10_010)) };
    let mut seen = 0;
    log.scan(set, &range, &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, 10);
    let from = KeyRange { start: key(10_000), end: None };
    log.scan_witnesses(set, &from, &mut |seen| ended(seen)).unwrap();
    let shard = log.shards(set).unwrap()[3].id;
    log.shard(set, shard).unwrap().unwrap();
    let versions = log.versions(set, &key(11_000), head.time, Order::NewestFirst, 5).unwrap();
    assert!(!versions.is_empty());
    let policy = VersionPolicy { count: Some(1), ..VersionPolicy::default() };
    log.collect_versions(set, &policy, 50).unwrap();
    assert!(log.needs_content(&ContentId([7; ContentId::BYTES])).unwrap());
    log.unneeded_contents(None, 10).unwrap();
    log.forget_contents(vec![ContentId([9; ContentId::BYTES])]).unwrap();
    assert_eq!(log.pages(set, 50, 3).unwrap().len(), 3);
    assert!(log.open_set(&new_set()).unwrap().id == set);
}

/// Some services distribute the tables of a database over servers: they need keys that start with
/// the set, and have no locks of a session, no signals inside a transaction, and costly sequences.
#[test]
fn statements_and_tables_can_be_distributed_by_set() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let tables = folder.join("migrations/postgres_log_0001.sql");
    let mut files = vec![tables.clone()];
    files.extend(
        fs::read_dir(folder.join("log/postgres")).unwrap().map(|file| file.unwrap().path()),
    );
    assert!(files.len() > 8);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for word in ["pg_advisory", "NOTIFY", "pg_notify", "LISTEN", "nextval", "SERIAL", "LOCKED"]
        {
            assert!(!text.contains(word), "{}: {word}", file.display());
        }
    }
    let tables = fs::read_to_string(tables).unwrap();
    for table in
        tables.split("CREATE TABLE ").skip(1).filter(|table| !table.starts_with("abreast.sets"))
    {
        assert!(table.contains("PRIMARY KEY (set_id"), "{table}");
    }
    for index in
        tables.split("CREATE INDEX ").skip(1).filter(|index| !index.contains("abreast.contents"))
    {
        assert!(index.split(';').next().unwrap().contains("(set_id"), "{index}");
    }
}

/// Replaces a database by an earlier copy while nodes are connected, as a failover to a server does
/// that has not received the last commits.
struct Failover<'s>(&'s Postgres);

impl<'s> Failover<'s> {
    /// Keeps the present content of the database `letters`.
    fn keep(server: &'s Postgres) -> Self {
        let this = Self(server);
        this.disconnect();
        server.sql("postgres", "CREATE DATABASE kept TEMPLATE letters");
        this
    }

    fn fail_over(self) {
        self.disconnect();
        self.0.sql("postgres", "DROP DATABASE letters");
        self.0.sql("postgres", "ALTER DATABASE kept RENAME TO letters");
    }

    fn disconnect(&self) {
        self.0.sql(
            "postgres",
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'letters'",
        );
    }
}

#[test]
fn a_failover_that_loses_changes_leaves_a_consistent_log() {
    let name = "a_failover_that_loses_changes_leaves_a_consistent_log";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let many = |part: u64| (0..150).map(|n| put(format!("{part}-{n:03}"), n)).collect::<Vec<_>>();
    // The other node brings the set to the revision that this node knows, or to an earlier one.
    for others in [4, 1] {
        let server = Postgres::start(&programs);
        let url = server.create("letters");
        let nodes = [open(&url), open(&url)];
        let set = ready(&nodes[0]);
        append(&nodes[0], set, vec![put("a".to_owned(), 1)]).unwrap();
        let failover = Failover::keep(&server);
        for part in 0..4 {
            append(&nodes[0], set, many(part)).unwrap();
        }
        failover.fail_over();
        for number in 0..others {
            append(&nodes[1], set, vec![put(format!("b{number}"), 1)]).unwrap();
        }
        let head = nodes[0].head(set).unwrap().position;
        assert_eq!(head.0, 1 + others);
        let waited = nodes[0].wait_for(&[(set, head)], Duration::from_millis(200)).unwrap();
        assert!(!waited, "no change is reported");
        append(&nodes[0], set, many(9)).unwrap();
        for node in &nodes {
            check_consistency(node, set);
        }
    }
}

#[test]
fn a_callback_that_panics_stops_no_other_request() {
    let name = "a_callback_that_panics_stops_no_other_request";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let log = open(&server.create("letters"));
    let set = ready(&log);
    let change = |key: &str| vec![put(key.to_owned(), 1)];
    log.append_then(set, change("a"), Box::new(|_| panic!("a fault of the caller")));
    append(&log, set, change("b")).unwrap();
    assert_eq!(keys(&log, set), ["a", "b"]);
}

#[test]
fn a_damaged_row_is_replaced_and_harms_no_other_resource() {
    let name = "a_damaged_row_is_replaced_and_harms_no_other_resource";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let log = open(&server.create("letters"));
    let set = ready(&log);
    append(&log, set, vec![put("a".to_owned(), 1), put("b".to_owned(), 1)]).unwrap();
    server.sql("letters", "UPDATE abreast.resources SET links = 'damaged' WHERE key = 'a'");
    assert_eq!(log.resource(set, "a").unwrap_err().kind(), ErrorKind::Corrupt);
    let (sender, receiver) = std::sync::mpsc::channel();
    let batches = [vec![Change::deprecate("a", Vec::new())], vec![put("b".to_owned(), 2)]];
    for batch in batches {
        let sender = sender.clone();
        let done = Box::new(move |result| sender.send(result).unwrap());
        log.append_then(set, batch, done);
    }
    let results = [receiver.recv().unwrap(), receiver.recv().unwrap()];
    assert_eq!(results[0].as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(results[1].as_ref().unwrap().recorded, 1);
    append(&log, set, vec![put("a".to_owned(), 3)]).unwrap();
    assert_eq!(log.resource(set, "a").unwrap().unwrap().state.length, Some(3));
    assert_eq!(log.find_set("a\0").unwrap(), None);
    let range = KeyRange { start: "a\0b".to_owned(), end: Some("b\0".to_owned()) };
    let mut seen = Vec::new();
    log.scan(set, &range, &mut |resource| {
        seen.push(resource.key.clone());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(seen, ["b"]);
}

#[test]
fn versions_of_a_batch_are_read_together() {
    let name = "versions_of_a_batch_are_read_together";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start_with(&programs, &["log_statement=all"]);
    let log = open(&server.create("letters"));
    let set = ready(&log);
    log.keep_versions(set, true).unwrap();
    for length in [1, 2] {
        let changes = (0..500).map(|number| put(format!("{number:03}"), length)).collect();
        append(&log, set, changes).unwrap();
    }
    let is_read = |line: &&str| line.contains("FROM abreast.versions");
    let reads = server.log().lines().filter(is_read).count();
    assert!(reads < 5, "{reads} statements");
}

#[test]
fn a_silent_host_is_passed_over() {
    let name = "a_silent_host_is_passed_over";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("letters");
    // It accepts connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let first = format!("@127.0.0.1:{},", silent.local_addr().unwrap().port());
    let log = open(&format!("{}?target_session_attrs=read-write", url.replace('@', &first)));
    let set = ready(&log);
    append(&log, set, vec![put("a".to_owned(), 1)]).unwrap();
    assert_eq!(keys(&log, set), ["a"]);
}
