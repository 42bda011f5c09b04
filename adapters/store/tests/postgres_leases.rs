//! Leases of parts of the work, taken by several nodes of one database.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use abreast_core::testing::lease_notes_contract;
use abreast_core::{
    Change, ChangeLog, ChangeRecord, ErrorKind, Lease, Leases, LogError, NewSet, Position, SetId,
    State, SystemClock, append,
};
use abreast_store::hub::NodeOptions;
use abreast_store::{PostgresLeases, PostgresLog, PostgresOptions, SqliteLog};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{eventually, provided};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const LENGTH: Duration = Duration::from_secs(2);

fn node(url: &str, name: &str) -> PostgresLeases {
    let database = PostgresOptions::default().connect(url).unwrap();
    database
        .leases(&NodeOptions { name: name.to_owned(), lease: LENGTH, ..NodeOptions::default() })
        .unwrap()
}

#[test]
fn each_part_of_the_work_is_held_by_one_node() {
    const PARTS: [&str; 2] = ["watch/papers", "made/papers"];
    let Some(programs) = provided("each_part_of_the_work_is_held_by_one_node", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let url = server.create("leases");
    let (one, two) = (node(&url, "one"), node(&url, "two"));
    for part in PARTS {
        one.want(part);
    }
    let of_one = |part: &str| one.is_held(part) && !two.is_held(part);
    let of_two = |part: &str| two.is_held(part) && !one.is_held(part);
    eventually("the first takes them", || PARTS.iter().all(|part| of_one(part)));
    for part in PARTS {
        two.want(part);
    }
    let until = Instant::now() + 2 * LENGTH;
    while Instant::now() < until {
        assert!(PARTS.iter().all(|part| of_one(part)), "they are renewed");
        std::thread::sleep(Duration::from_millis(20));
    }

    one.release(PARTS[0]);
    eventually("the other takes it", || of_two(PARTS[0]) && of_one(PARTS[1]));
    one.give_up(PARTS[1]);
    assert!(!one.is_held(PARTS[1]));
    eventually("the other takes it", || of_two(PARTS[1]));
    drop(two);
    eventually("the first takes it again", || one.is_held(PARTS[1]));
    assert!(!one.is_held(PARTS[0]), "it was released, and is not wanted");
}

#[test]
fn a_lease_ends_on_the_node_before_another_node_takes_it() {
    let name = "a_lease_ends_on_the_node_before_another_node_takes_it";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let mut server = Postgres::start(&programs);
    let url = server.create("leases");
    let one = Arc::new(node(&url, "one"));
    one.want("watch/papers");
    let lease = Lease::of(Arc::clone(&one) as _, "watch/papers");
    eventually("it is taken", || lease.is_held());
    server.stop();
    let begin = Instant::now();
    eventually("it ends by itself", || !lease.is_held());
    assert!(begin.elapsed() <= LENGTH / 2 + LENGTH / 4, "{:?}", begin.elapsed());
    server.run();
    eventually("it is renewed", || lease.is_held());

    // A process that is killed leaves its row.
    let killed =
        server.sql("leases", "UPDATE abreast.leases SET owner = owner + 1 RETURNING until");
    assert!(!killed.is_empty());
    eventually("another process had it", || !lease.is_held());
    eventually("it is over", || lease.is_held());
}

#[test]
fn batches_of_an_earlier_worker_are_refused() {
    let Some(programs) = provided("batches_of_an_earlier_worker_are_refused", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let url = server.create("leases");
    let lease_of = |name| Lease::of(Arc::new(node(&url, name)) as Arc<dyn Leases>, "watch/papers");
    let logs: [Arc<dyn ChangeLog>; 2] =
        [(); 2].map(|()| Arc::new(PostgresLog::open(&url).unwrap()) as _);
    let new = NewSet { slug: "papers".into(), ..NewSet::default() };
    let set = logs[0].open_set(&new).unwrap().id;
    logs[0].complete_import(set).unwrap();
    let one = lease_of("one");
    eventually("it is taken", || one.is_held());
    let worker = one.take_over(&logs[0], set).unwrap();
    let put =
        |log: &dyn ChangeLog, key: &str| append(log, set, vec![Change::put(key, State::default())]);
    put(&*worker, "of the first").unwrap();

    // The first process is stopped for a while.
    let two = lease_of("two");
    let take = "UPDATE abreast.leases SET until = 0";
    eventually("the lease is taken", || {
        server.sql("leases", take);
        two.is_held()
    });
    let next = two.take_over(&logs[1], set).unwrap();
    let refused = |result: Result<(), LogError>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy, "its lease is over");
    };
    refused(put(&*worker, "too late").map(drop));
    refused(worker.refresh_witnesses(set, vec![("of the first".to_owned(), vec![1])]));
    refused(one.take_over(&logs[0], set).map(drop));
    // Batches that wait together are judged one by one.
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (worker, log) = (&worker, &logs[0]);
            scope.spawn(move || refused(put(&**worker, &format!("too late {number}")).map(drop)));
            scope.spawn(move || put(&**log, &format!("of an API {number}")).unwrap());
        }
    });
    put(&*next, "of the second").unwrap();
    let mut keys = Vec::new();
    let mut visit = |change: &ChangeRecord| {
        keys.push(change.key.clone());
        ControlFlow::Continue(())
    };
    logs[1].read(set, Position(0), &mut visit).unwrap();
    assert_eq!(keys.len(), 22, "{keys:?}");
    assert!(!keys.iter().any(|key| key.starts_with("too late")), "{keys:?}");
    assert_eq!(logs[0].head(set).unwrap().position, Position(22));
}

#[test]
fn work_of_a_single_process_needs_no_lease() {
    let lease = Lease::always();
    lease.give_up();
    assert!(lease.is_held() && !lease.is_shared());
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(&folder.path().join("log"), Arc::new(SystemClock)).unwrap();
    let log: Arc<dyn ChangeLog> = Arc::new(log);
    assert!(Arc::ptr_eq(&lease.take_over(&log, SetId(1)).unwrap(), &log));
}

#[test]
fn notes_and_requests_hold_the_contract_of_leases() {
    let name = "notes_and_requests_hold_the_contract_of_leases";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("leases");
    lease_notes_contract(&node(&url, "one"), &node(&url, "two"));
}

#[test]
fn a_note_of_an_older_program_does_not_remain() {
    let Some(programs) = provided("a_note_of_an_older_program_does_not_remain", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let url = server.create("leases");
    let (one, two) = (node(&url, "one"), node(&url, "two"));
    one.want("watch/papers");
    eventually("it is taken", || one.is_held("watch/papers"));
    two.want("watch/papers");
    one.publish("watch/papers", "a note".to_owned());
    eventually("the note is read", || two.note_of_holder("watch/papers").is_some());
    let holder = two.note_of_holder("watch/papers").unwrap().holder;
    // A program without the columns takes the lease.
    server.sql("leases", "UPDATE abreast.leases SET owner = 1, until = until + 60000000");
    eventually("the note is over", || two.note_of_holder("watch/papers").is_none());
    assert!(!two.ask("watch/papers", holder, "scan").unwrap());
    assert!(two.ask("watch/papers", 1, "scan").unwrap());
}
