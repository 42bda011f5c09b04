//! The contract of every sink for runs in a process of its own, which is killed at any of its calls
//! to the system: while it fetches, stores, settles, deletes or finishes. After one more run the
//! copy is what the Source has.
//!
//! `strace` kills the process when one of its threads makes its N-th call of a kind.
//! `ABREAST_TEST_KILLS` asks for more kills than 10 of each sink, `ABREAST_TEST_SEED` repeats a
//! failing run.

use super::{SinkCase, seen, sinks};
use crate::copy::Copy;
use crate::rdf::endpoint;
use abreast_destination::{
    Graph, GraphStoreOptions, PushOptions, Silent, SinkOptions, SparqlOptions, SyncOptions, sync,
};
use abreast_testkit::power::strace;
use abreast_testkit::{Random, kills, seed, skipped};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;

/// Tells the child which copy to bring up to date: the name of the sink, the place of the copy, the
/// address of the Source, and those of the service.
const CHILD: &str = "ABREAST_KILLED_COPY";
const KILLS: u64 = 10;
/// The calls that a process is killed at: what it sends, what it writes, what it makes durable, and
/// names that it gives and takes away.
const CALLS: [&[&str]; 4] = [
    &["sendto", "writev", "recvfrom"],
    &["write", "pwrite64", "ftruncate"],
    &["fsync", "fdatasync", "syncfs"],
    &["rename", "renameat", "renameat2", "unlink", "unlinkat", "linkat"],
];

/// A sink as another process opens it: what it keeps is not cleared.
fn sink_of(name: &str, place: &Path, services: &[&str]) -> SinkOptions {
    let (url, graph) = (|number: usize| services[number].to_owned(), Graph::Default);
    match name {
        "endpoint" => SinkOptions::Sparql(SparqlOptions { url: url(0), query_url: None, graph }),
        "graph store" => SinkOptions::GraphStore(GraphStoreOptions { url: url(1) }),
        "receiver" => SinkOptions::Push(PushOptions { url: url(2), graph: None }),
        _ => (sinks().into_iter().find(|case| case.name == name).unwrap().sink)(place),
    }
}

/// As every run of the copy, in this process or another. The state of a folder is elsewhere.
fn with_options(name: &str, place: &Path, options: &mut SyncOptions) {
    options.state = (name == "folder").then(|| place.join("state"));
    (options.immutable, options.ignore_robots) = (true, true);
    (options.connections, options.threads) = (2, Some(1));
}

#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let fields: Vec<&str> = text.split('\n').collect();
    let (name, place, url) = (fields[0], PathBuf::from(fields[1]), fields[2]);
    let mut options = SyncOptions::new(url, place.join("copy"));
    with_options(name, &place, &mut options);
    options.sink = sink_of(name, &place, &fields[3..]);
    sync(&options, &Silent, &AtomicBool::new(false)).unwrap();
}

/// Runs the child under strace, with these options of it.
fn traced(case: &SinkCase, copy: &Copy, options: &[String]) -> Option<ExitStatus> {
    let services = [endpoint().url(), endpoint().graph_store_url(), endpoint().push_url()];
    let place = copy.place.path().display().to_string();
    let fields = [case.name.to_owned(), place, copy.options.url.clone()];
    let text: Vec<String> = fields.into_iter().chain(services).collect();
    let mut command: Command = strace();
    command.args(["-f", "-qq", "-e", "signal=none"]).args(options);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "contract::processes::child", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, text.join("\n"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok()
}

/// How many calls of each group the thread makes that makes most of them; `None` when this system
/// cannot trace.
fn counted(case: &SinkCase, copy: &Copy) -> Option<[u64; CALLS.len()]> {
    let log = copy.place.path().join("strace.log");
    let trace = format!("trace={}", CALLS.concat().join(","));
    let options = ["-o", log.to_str().unwrap(), "-e", &trace].map(str::to_owned);
    if !traced(case, copy, &options)?.success() {
        return None;
    }
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    Some(CALLS.map(|names| {
        let mut by_thread: BTreeMap<&str, u64> = BTreeMap::new();
        for line in text.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            let name = call.trim_start().split('(').next().unwrap_or_default();
            if names.contains(&name) {
                *by_thread.entry(thread).or_default() += 1;
            }
        }
        by_thread.into_values().max().unwrap_or(0)
    }))
}

fn killed(name: &str) {
    let case = sinks().into_iter().find(|case| case.name == name).unwrap();
    let mut source = (case.source)();
    for number in 0..6 {
        source.set(&format!("/d/{number}"), "1");
    }
    if !name.starts_with("labels") {
        source.set("/large", &"0123456789abcdef".repeat(80_000));
    }
    source.snapshot();
    let mut copy = Copy::kept_in(&source, case.sink);
    with_options(name, copy.place.path(), &mut copy.options);
    copy.run();
    let seed = seed(1);
    let mut random = Random::new(seed);
    let (mut calls, mut killed) = (None, 0);
    for round in 0..=kills(KILLS) {
        source.set(&format!("/new/{round}"), "1");
        source.set("/d/1", &format!("round {round}"));
        source.set(&format!("/d/{}", 2 + round % 3), &format!("of round {round}"));
        if round > 0 {
            source.delete(&format!("/new/{}", round - 1));
        }
        let Some(most) = calls else {
            calls = counted(&case, &copy);
            if calls.is_none() {
                return skipped(name, "strace is not there, or may not trace");
            }
            continue;
        };
        let group = loop {
            let group = random.below(CALLS.len() as u64) as usize;
            if most[group] > 0 {
                break group;
            }
        };
        let (names, when) = (CALLS[group].join(","), 1 + random.below(most[group]));
        let injected = format!("inject={names}:signal=SIGKILL:when={when}");
        let trace = format!("trace={names}");
        let options = ["-o", "/dev/null", "-e", &trace, "-e", &injected].map(str::to_owned);
        let status = traced(&case, &copy, &options).unwrap();
        killed += u64::from(status.signal().is_some() || !status.success());
        let what = format!("{name}, round {round}, {injected}, ABREAST_TEST_SEED={seed}");
        // What the killed run did may have to be undone.
        match random.below(3) {
            0 => source.delete(&format!("/new/{round}")),
            1 => source.set("/d/1", "again"),
            _ => {}
        }
        if !source.kept.contains_key(&format!("/new/{round}")) {
            source.set(&format!("/new/{round}"), "after all");
        }
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{what}: {} {:?}", ran.code(), ran.reported);
        assert!(
            ran.codes.iter().all(|code| code == "state.recovered"),
            "{what}: {:?}",
            ran.reported
        );
        assert_eq!(seen(&(case.read)(&copy, &source)), seen(&source.kept), "{what}");
        assert_eq!(copy.audit(true).exit_code, 0, "{what}");
    }
    assert!(killed > 0, "{name}: no run was killed");
}

#[test]
fn copies_in_files_recover_from_processes_killed_anywhere() {
    ["folder", "warc"].into_iter().for_each(killed);
    #[cfg(feature = "s3")]
    killed("objects");
}

#[test]
fn copies_of_statements_recover_from_processes_killed_anywhere() {
    ["nquads", "labels in SQLite", "labels in CSV"].into_iter().for_each(killed);
}

#[test]
fn services_recover_from_processes_killed_anywhere() {
    // An endpoint, a graph store and a receiver run on; a store of Oxigraph has its own test.
    ["endpoint", "graph store", "receiver"].into_iter().for_each(killed);
}
