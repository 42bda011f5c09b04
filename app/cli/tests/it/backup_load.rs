//! Backups of a store that records 1,000 changes a second: each restores to a state that existed.

use crate::crash::{spawn, writer};
use crate::world::{Source, abreast};
use abreast_core::{ChangeLog as _, KeyRange, SystemClock};
use abreast_store::SqliteLog;
use abreast_testkit::run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Changes in a batch, of which there are ten a second.
const BATCH: u64 = 100;
const BACKUPS: usize = 5;

#[track_caller]
fn code(words: &[&str], paths: &[&Path]) {
    let output = run(abreast().args(&words[..1]).args(paths).args(&words[1..]));
    assert_eq!(output.status.code(), Some(0), "{words:?} {paths:?}\n{output:?}");
}

/// All changes of a set in the log of a store, as they are printed.
fn log_of(set: &str, store: &Path) -> Vec<String> {
    let output = run(abreast().args(["log", set, "--data"]).arg(store));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Length of each resource of a set in a store.
fn resources_of(set: &str, store: &Path) -> BTreeMap<String, Option<u64>> {
    let log = SqliteLog::open(&store.join("source.db"), Arc::new(SystemClock)).unwrap();
    let set = log.find_set(set).unwrap().unwrap().id;
    let mut found = BTreeMap::new();
    log.scan(set, &KeyRange::default(), &mut |resource| {
        found.insert(resource.key.clone(), resource.state.length);
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// The resources after the changes of a log.
fn replayed(log: &[String]) -> BTreeMap<String, Option<u64>> {
    let mut resources = BTreeMap::new();
    for line in log {
        let change: Value = serde_json::from_str(line).unwrap();
        let uri = change["uri"].as_str().unwrap().to_owned();
        if change["change"] == "deleted" {
            resources.remove(&uri);
        } else {
            resources.insert(uri, change["length"].as_u64());
        }
    }
    resources
}

#[test]
fn backups_under_a_thousand_changes_a_second_are_states() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (data, papers, backups) = (at("data"), at("papers"), at("backups"));
    fs::create_dir(&papers).unwrap();
    let text = format!(
        "data = {data:?}\n[api]\nwrite = true\n[[set]]\nname = \"records\"\nrecords = true\n\
         [[set]]\nname = \"papers\"\nfolder = {papers:?}\ndebounce = \"30ms\"\nversions = \"all\"\n"
    );
    fs::write(at("abreast.toml"), text).unwrap();
    let source = Source::start_config(at("abreast.toml").to_str().unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let (sent, address) = (Arc::new(AtomicU64::new(0)), source.address.clone());
    let begun = Instant::now();
    let load = {
        let sent = Arc::clone(&sent);
        move || {
            let number = sent.load(Ordering::SeqCst);
            let due = begun + Duration::from_millis(number * 100);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut body = String::new();
            for place in 0..BATCH {
                // Each tenth change deletes the resource that the change before it made.
                let name = (number * 37 + place - u64::from(place % 10 == 9)) % 1_000;
                let _ = match place % 10 {
                    9 => writeln!(body, "{{\"uri\":\"urn:x:{name}\",\"change\":\"deleted\"}}"),
                    _ => writeln!(
                        body,
                        "{{\"uri\":\"urn:x:{name}\",\"length\":{}}}",
                        number * BATCH + place
                    ),
                };
            }
            let target = "/api/v1/sets/records/changes";
            let answer = crate::api::send(&address, "POST", target, body.as_bytes());
            assert!(matches!(answer, Some((200 | 201, _))), "{answer:?}");
            sent.fetch_add(1, Ordering::SeqCst);
        }
    };
    let helpers = [spawn(load, &stop), spawn(writer(papers.clone(), 3), &stop)];
    let mut acknowledged = Vec::new();
    for _ in 0..BACKUPS {
        std::thread::sleep(Duration::from_millis(500));
        acknowledged.push(sent.load(Ordering::SeqCst) * BATCH);
        code(&["backup", "--keep-last", "99"], &[&data, &backups]);
    }
    let (seconds, changes) = (begun.elapsed().as_secs_f64(), sent.load(Ordering::SeqCst) * BATCH);
    stop.store(true, Ordering::Relaxed);
    for helper in helpers {
        helper.join().unwrap();
    }
    assert_eq!(source.stop(), Some(0));
    let rate = changes as f64 / seconds;
    eprintln!("{changes} changes in {seconds:.1} s, {rate:.0} a second");
    let whole = [log_of("records", &data), log_of("papers", &data)];
    let mut names: Vec<_> = fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("manifest.json").is_file())
        .collect();
    names.sort();
    assert_eq!(names.len(), BACKUPS);
    for (number, (backup, acknowledged)) in names.iter().zip(acknowledged).enumerate() {
        let store = at(&format!("store{number}"));
        code(&["restore", "--same-log"], &[backup, &store]);
        code(&["check", "--read-data"], &[&store]);
        for (set, whole) in ["records", "papers"].into_iter().zip(&whole) {
            let log = log_of(set, &store);
            assert_eq!(log[..], whole[..log.len()], "the log of {set} is the begin of the log");
            if set == "records" {
                assert_eq!(log.len() as u64 % BATCH, 0, "batches are whole");
                assert!(log.len() as u64 >= acknowledged, "acknowledged changes are in it");
                assert_eq!(resources_of(set, &store), replayed(&log), "{set}");
            }
        }
    }
    assert!(rate > 500.0, "{rate:.0} changes a second: the machine is too slow for this test");
}
