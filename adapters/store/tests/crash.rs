//! Kills at any instant lose no acknowledged change and leave nothing half-written.
//!
//! The test starts itself as a child process that appends and prints what was acknowledged; the
//! parent kills it (SIGKILL) and looks at what it left, again and again on the same store.
//! `ABREAST_CRASH_ROUNDS` asks for more rounds than 30, `ABREAST_CRASH_SEED` repeats a failing run.

use abreast_core::testing::check_consistency;
use abreast_core::{
    Action, Change, ChangeLog, ChangeRecord, NewSet, PageRule, Position, SetId, ShardRule, State,
    SystemClock, append,
};
use abreast_store::{SqliteLog, SqliteOptions};
use abreast_testkit::{Random, number};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Tells the child which store to write, with which seed.
const CHILD: &str = "ABREAST_CRASH_CHILD";
const ROUNDS: u64 = 30;
const THREADS: u64 = 4;
/// Most acknowledgements a child lives to see; a fifth of all children is killed while the store is
/// opened.
const LIFE_MAX: u64 = 60;

/// What the child says of one batch: thread, its number, the head after it, changes recorded.
type Acknowledged = (u64, u64, u64, u64);

fn open(path: &Path) -> (SqliteLog, SetId) {
    let options =
        SqliteOptions::default().with_shard_rule(ShardRule { resources: 25, bytes: 1_000_000 });
    let log = options.open(path, Arc::new(SystemClock)).expect("the store opens after a kill");
    let page_rule = PageRule { changes: 40, age: Duration::from_secs(3_600) };
    let set = log
        .open_set(&NewSet { slug: "crash".into(), page_rule, ..NewSet::default() })
        .expect("the set opens")
        .id;
    log.complete_import(set).expect("the set is complete");
    (log, set)
}

/// One batch of a thread: its own keys, some put, some deleted, and one that names the batch.
fn batch(round: u64, thread: u64, number: u64) -> Vec<Change> {
    let mut random = Random::new(round << 32 | thread << 16 | number);
    let name = format!("batch/{round}/{thread}/{number}");
    let mut changes = vec![Change::put(name.clone(), state(number)).with_idempotency_key(name)];
    for _ in 0..random.below(12) {
        let key = format!("{thread}/{:02}", random.below(60));
        changes.push(match random.below(6) {
            0 => Change::delete(key),
            1 => Change::remove(key).with_summary("left"),
            2 => Change::add(key, state(random.below(1_000))).with_summary("came"),
            _ => Change::put(key, state(random.below(1_000))).with_witness(vec![1; 40]),
        });
    }
    changes
}

fn state(number: u64) -> State {
    State {
        modified: Timestamp::from_seconds(number as i64),
        length: Some(number),
        media_type: Some("text/plain".into()),
        digests: Digests { md5: Some([number as u8; 16]), ..Digests::default() },
        ..State::default()
    }
}

/// Appends from several threads until it is killed. Does nothing unless the parent asked for it.
#[test]
fn child() {
    let Ok(asked) = std::env::var(CHILD) else { return };
    let (round, path) = asked.split_once(':').expect("round:path");
    let round: u64 = round.parse().expect("a number");
    let (log, set) = open(Path::new(path));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                for number in 0..10_000 {
                    let answer = append(log, set, batch(round, thread, number)).expect("appended");
                    let line =
                        format!("ack {thread} {number} {} {}\n", answer.head, answer.recorded);
                    std::io::stderr().write_all(line.as_bytes()).expect("the parent reads"); // one write, whole
                }
            });
        }
    });
}

/// Runs a child until it acknowledged so many batches, kills it, and returns all it acknowledged.
fn run_and_kill(path: &Path, round: u64, life: u64, wait: Duration) -> Vec<Acknowledged> {
    let mut child = Command::new(std::env::current_exe().expect("the test binary"))
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{round}:{}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut acknowledged = Vec::new();
    let mut others = Vec::new();
    let mut note = |line: std::io::Result<String>| {
        let line = line.unwrap_or_default();
        let fields: Vec<u64> =
            line.split(' ').skip(1).filter_map(|field| field.parse().ok()).collect();
        match fields[..] {
            [thread, number, head, recorded] if line.starts_with("ack ") => {
                acknowledged.push((thread, number, head, recorded));
            }
            _ => others.push(line),
        }
    };
    for line in lines.by_ref().take(life as usize) {
        note(line);
    }
    // Not to wait for something: so that the kill falls anywhere in the work that follows.
    std::thread::sleep(wait);
    child.kill().expect("killed");
    child.wait().expect("ended");
    for line in lines {
        note(line);
    }
    assert!(others.is_empty(), "the child said: {others:?}");
    acknowledged
}

/// The changes a batch must have left, given the table before it.
fn recorded_by(
    batch: &[Change],
    table: &mut BTreeMap<String, State>,
) -> Vec<(String, Option<State>)> {
    let mut recorded = Vec::new();
    for change in batch {
        let new = match &change.action {
            Action::Put { state, .. } | Action::Add { state, .. } => Some(state.clone()),
            Action::Remove | Action::Delete => None,
            Action::Deprecate { .. } => unreachable!("no batch has one"),
        };
        let old = match &new {
            Some(state) => table.insert(change.key.clone(), state.clone()),
            None => table.remove(&change.key),
        };
        if old != new {
            recorded.push((change.key.clone(), new));
        }
    }
    recorded
}

#[test]
fn killed_store_has_all_acknowledged_changes_and_no_partial() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let rounds = number("ABREAST_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("ABREAST_CRASH_SEED").unwrap_or(1);
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.sqlite");

    let mut verified = 0; // positions checked in earlier rounds
    let mut table: BTreeMap<String, State> = BTreeMap::new();
    let mut total = 0;
    for round in 0..rounds {
        let life = if random.below(5) == 0 { 0 } else { random.below(LIFE_MAX) };
        let wait = Duration::from_micros(random.below(12_000));
        let acknowledged = run_and_kill(&path, round, life, wait);
        total += acknowledged.len();
        let context = format!("round {round}, ABREAST_CRASH_SEED={seed}");

        let (log, set) = open(&path);
        let head = log.head(set).unwrap();
        check_consistency(&log, set);
        let mut changes: Vec<ChangeRecord> = Vec::new();
        let mut keep = |change: &ChangeRecord| {
            changes.push(change.clone());
            ControlFlow::Continue(())
        };
        log.read(set, Position(verified), &mut keep).unwrap();

        // What is there: whole batches of this round, each thread's in order, none twice.
        let mut next = [0_u64; THREADS as usize];
        let mut found: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
        let mut rest = &changes[..];
        while let Some(first) = rest.first() {
            let name: Vec<u64> =
                first.key.split('/').skip(1).filter_map(|part| part.parse().ok()).collect();
            let [of_round, thread, number] = name[..] else {
                panic!("{context}: half a batch at {first:?}")
            };
            assert_eq!((of_round, number), (round, next[thread as usize]), "{context}");
            next[thread as usize] += 1;
            let expected = recorded_by(&batch(round, thread, number), &mut table);
            assert!(rest.len() >= expected.len(), "{context}: half a batch at the end");
            let (whole, after) = rest.split_at(expected.len());
            let whole: Vec<_> =
                whole.iter().map(|change| (change.key.clone(), change.state.clone())).collect();
            assert_eq!(whole, expected, "{context}");
            rest = after;
            found.insert(
                (thread, number),
                (head.position.0 - rest.len() as u64, expected.len() as u64),
            );
        }
        // What was acknowledged: all there, where it was said to be.
        for (thread, number, at, recorded) in acknowledged {
            assert_eq!(
                found.get(&(thread, number)),
                Some(&(at, recorded)),
                "{context}: lost or moved"
            );
        }
        assert_eq!(head.resources, table.len() as u64, "{context}");

        // Repeating a batch whose answer was lost records its named change once.
        if let Some((thread, number)) = found.keys().next_back().copied() {
            let named = batch(round, thread, number).swap_remove(0);
            let again = append(&log, set, vec![named]).unwrap();
            assert_eq!((again.recorded, again.unchanged), (0, 1), "{context}");
        }
        verified = head.position.0;
    }
    assert!(verified > 0 && total > 0, "the children did something");
    println!("{rounds} kills, {total} acknowledged batches, {verified} changes, all found");
}
