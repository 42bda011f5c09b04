//! The contract of every sink for runs in a separate process, which is killed at any of its system
//! calls: while it plans, fetches, stores, settles, deletes or finishes, in a first run, when it
//! follows changes and when it compares. Until the next run, each visible file is a version of the
//! Source. After the next run, the copy equals the Source, and other files of the user are
//! unchanged.
//!
//! `strace` kills the process when one of its threads makes its N-th call of a kind.
//! `ABREAST_TEST_KILLS` sets the number of kills for each sink instead of 9, `ABREAST_TEST_SEED`
//! repeats a failing run.

use super::{SinkCase, files, seen, sinks};
use crate::copy::Copy;
use crate::rdf::endpoint;
use crate::source::Source;
use abreast_destination::{
    Graph, GraphStoreOptions, NQuadsOptions, PushOptions, Silent, SinkOptions, SparqlOptions,
    SyncOptions, sync,
};
use abreast_store::mirror::Mirror;
use abreast_testkit::pages::Answer;
use abreast_testkit::power::strace;
use abreast_testkit::{Random, kills, seed, skipped};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Describes the copy for the child: the kind of the run, the name of the sink, the place of the
/// copy, the address of the Source, and the addresses of services.
const CHILD: &str = "ABREAST_KILLED_COPY";
const KILLS: u64 = 9;
/// The calls at which a process is killed: sending, writing, making durable, and changes of names.
const CALLS: [&[&str]; 4] = [
    &["sendto", "writev", "recvfrom"],
    &["write", "pwrite64", "ftruncate"],
    &["fsync", "fdatasync", "syncfs"],
    &["rename", "renameat", "renameat2", "unlink", "unlinkat", "linkat"],
];
/// The kinds of killed runs.
const RUNS: [&str; 3] = ["following changes", "comparison", "first run"];
/// A file of the user next to the copy, which is never listed.
const OWN: &str = "copy/own.txt";

/// A sink as another process opens it, without clearing its content.
fn sink_of(name: &str, place: &Path, services: &[&str]) -> SinkOptions {
    let (url, graph) = (|number: usize| services[number].to_owned(), Graph::Default);
    match name {
        "endpoint" => SinkOptions::Sparql(SparqlOptions { url: url(0), query_url: None, graph }),
        "graph store" => SinkOptions::GraphStore(GraphStoreOptions { url: url(1) }),
        "receiver" => SinkOptions::Push(PushOptions { url: url(2), graph: None }),
        // Small files, so that they are compacted.
        "nquads" => SinkOptions::NQuads(NQuadsOptions { graph, file_bytes: 3_000 }),
        #[cfg(feature = "s3")]
        "bucket" => crate::objects::in_bucket(services[3].parse().unwrap(), place),
        _ => (sinks().into_iter().find(|case| case.name == name).unwrap().sink)(place),
    }
}

/// The options of every run of the copy, in this process or another one. The state of a folder is
/// elsewhere.
fn with_options(name: &str, place: &Path, options: &mut SyncOptions) {
    options.state = (name == "folder").then(|| place.join("state"));
    (options.immutable, options.ignore_robots) = (true, true);
    (options.connections, options.threads) = (2, Some(1));
}

#[test]
fn child() {
    let Ok(text) = std::env::var(CHILD) else { return };
    let fields: Vec<&str> = text.split('\n').collect();
    let [run, name, place, url, services @ ..] = fields.as_slice() else { unreachable!() };
    let place = PathBuf::from(place);
    let mut options = SyncOptions::new(*url, place.join("copy"));
    with_options(name, &place, &mut options);
    options.baseline = *run == "comparison";
    options.sink = sink_of(name, &place, services);
    sync(&options, &Silent, &AtomicBool::new(false)).unwrap();
}

/// A sink whose runs are killed, with its Source.
struct Killed {
    case: SinkCase,
    source: Source,
    copy: Copy,
    /// Every version that the Source had, by path.
    versions: BTreeMap<String, BTreeSet<Vec<u8>>>,
}

impl Killed {
    fn new(case: SinkCase) -> Self {
        let source = (case.source)();
        let copy = Self::empty(&case, &source);
        Self { case, source, copy, versions: BTreeMap::new() }
    }

    fn empty(case: &SinkCase, source: &Source) -> Copy {
        let mut copy = Copy::kept_in(source, case.sink);
        with_options(case.name, copy.place.path(), &mut copy.options);
        if case.name == "nquads" {
            copy.options.sink = sink_of(case.name, copy.place.path(), &[]);
        }
        let own = copy.place.path().join(OWN);
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(own, "mine").unwrap();
        copy
    }

    fn set(&mut self, path: &str, text: &str) {
        self.source.set(path, text);
        let versions = self.versions.entry(path.to_owned()).or_default();
        versions.insert(self.source.kept[path].clone());
    }

    /// Changes the Source before a run that is killed.
    fn change(&mut self, round: u64) {
        self.set(&format!("/new/{round}"), "1");
        self.set("/d/1", &format!("round {round} {}", "x".repeat(400)));
        self.set("/d/2", "other");
        self.set("/d/3", &format!("of round {round}"));
        self.set(&format!("/more/{round}"), "2");
        self.source.delete("/d/4");
        for before in 0..round {
            if self.source.kept.contains_key(&format!("/more/{before}")) {
                self.source.delete(&format!("/more/{before}"));
            }
        }
    }

    /// Changes the Source again, so that the effects of the killed run must be undone.
    fn change_again(&mut self, round: u64) {
        self.source.delete(&format!("/new/{round}"));
        self.set("/d/1", "again");
        self.set("/d/2", "1");
        self.set("/d/4", "back");
    }

    /// The output of the last child.
    fn log(&self) -> PathBuf {
        self.copy.place.path().join("child.log")
    }

    /// Completes the command that starts the child.
    fn child<'c>(&self, run: &str, command: &'c mut Command) -> &'c mut Command {
        let services = [
            endpoint().url(),
            endpoint().graph_store_url(),
            endpoint().push_url(),
            #[cfg(feature = "s3")]
            crate::objects::address().to_string(),
        ];
        let (name, place) = (self.case.name.to_owned(), self.copy.place.path());
        let fields = [run.to_owned(), name, place.display().to_string(), self.source.url()];
        let text: Vec<String> = fields.into_iter().chain(services).collect();
        command.args(["--exact", "contract::processes::child", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, text.join("\n"));
        let log = std::fs::File::create(self.log()).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log)
    }

    /// Runs the child under strace, with these options for strace.
    fn traced(&self, run: &str, options: &[String]) -> Option<ExitStatus> {
        let mut command: Command = strace();
        command.args(["-f", "-qq", "-e", "signal=none"]).args(options);
        command.arg(std::env::current_exe().unwrap());
        self.child(run, &mut command).status().ok()
    }

    /// The number of calls of each group, for the thread with the most calls; `None` if this system
    /// cannot trace.
    fn counted(&self, run: &str) -> Option<[u64; CALLS.len()]> {
        let log = self.copy.place.path().join("strace.log");
        let trace = format!("trace={}", CALLS.concat().join(","));
        let options = ["-o", log.to_str().unwrap(), "-e", &trace].map(str::to_owned);
        if !self.traced(run, &options)?.success() {
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

    /// Runs the child, and kills it at a call that `random` chooses; whether it was killed, and at
    /// what.
    fn kill(&self, run: &str, most: [u64; CALLS.len()], random: &mut Random) -> (bool, String) {
        let groups: Vec<usize> = (0..CALLS.len()).filter(|group| most[*group] > 0).collect();
        let group = groups[random.below(groups.len() as u64) as usize];
        let (names, when) = (CALLS[group].join(","), 1 + random.below(most[group]));
        let injected = format!("inject={names}:signal=SIGKILL:when={when}");
        let trace = format!("trace={names}");
        let options = ["-o", "/dev/null", "-e", &trace, "-e", &injected].map(str::to_owned);
        let status = self.traced(run, &options).unwrap();
        (status.signal().is_some() || !status.success(), injected)
    }

    /// Every file is a complete version of its resource, wherever the run was killed.
    fn is_whole(&self, what: &str) {
        if self.case.name == "folder" {
            for (path, bytes) in files(&self.copy, &self.source) {
                let is_ours = !path.ends_with("/own.txt") && !path.contains("/.%~");
                let is_version =
                    || self.versions.get(&path).is_some_and(|all| all.contains(&bytes));
                assert!(!is_ours || is_version(), "{what}: {path} is torn");
            }
        }
    }

    /// The copy equals the Source, and the files of the user exist.
    fn is_right(&self, what: &str) {
        let mut kept = (self.case.read)(&self.copy, &self.source);
        kept.remove("/own.txt");
        // A store in a folder writes an object under such a name first, and never lists that.
        kept.retain(|path, _| self.case.name != "objects" || !path.contains('#'));
        let (kept, truth) = (seen(&kept), seen(&self.source.kept));
        let of_one = |one: &[String], other: &[String]| -> Vec<String> {
            one.iter().filter(|line| !other.contains(line)).cloned().collect()
        };
        let (wrong, lacking) = (of_one(&kept, &truth), of_one(&truth, &kept));
        assert!(wrong.is_empty() && lacking.is_empty(), "{what}: {wrong:?}, and not {lacking:?}");
        let audit = self.copy.audit(true);
        let own = u64::from(self.case.name == "folder");
        assert_eq!((audit.missing, audit.updated, audit.extra), (0, 0, own), "{what}");
        let text = std::fs::read_to_string(self.copy.place.path().join(OWN));
        assert_eq!(text.unwrap(), "mine", "{what}");
    }
}

fn killed(name: &str) {
    killed_in(sinks().into_iter().find(|case| case.name == name).unwrap());
}

fn killed_in(case: SinkCase) {
    let (name, mut killed) = (case.name, Killed::new(case));
    for number in 0..6 {
        killed.set(&format!("/d/{number}"), "1");
    }
    let large = match name {
        "folder" | "warc" | "objects" | "nquads" => 80_000,
        // In several parts.
        "bucket" => 1_100_000,
        _ => 0,
    };
    if large > 0 {
        killed.set("/large", &"0123456789abcdef".repeat(large));
    }
    killed.source.snapshot();
    killed.copy.run();
    let seed = seed(1);
    let mut random = Random::new(seed);
    let (mut calls, mut count) = ([None; RUNS.len()], 0);
    for round in 0..kills(KILLS) + RUNS.len() as u64 {
        let kind = round as usize % RUNS.len();
        let run = RUNS[kind];
        killed.change(round);
        killed.copy.options.baseline = run == "comparison";
        if run != "following changes" {
            killed.source.snapshot();
        }
        if run == "first run" {
            killed.copy = Killed::empty(&killed.case, &killed.source);
        }
        let Some(most) = calls[kind] else {
            calls[kind] = killed.counted(run);
            if calls[kind].is_none() {
                return skipped(name, "strace is not there, or may not trace");
            }
            killed.is_right(&format!("{name}, {run}"));
            continue;
        };
        let mut what = format!("{name}, round {round}, ABREAST_TEST_SEED={seed}, {run}");
        // Sometimes the run after a kill is killed too.
        for _ in 0..=(random.below(4) / 3) {
            let (is_killed, at) = killed.kill(run, most, &mut random);
            count += u64::from(is_killed);
            what += &format!(", {at}");
            killed.is_whole(&what);
        }
        if random.below(4) > 0 {
            killed.change_again(round);
        }
        let ran = killed.copy.try_run();
        assert_eq!(ran.exit(), 0, "{what}: {} {:?}", ran.code(), ran.reported);
        let is_expected = |code: &String| code == "state.recovered";
        assert!(ran.codes.iter().all(is_expected), "{what}: {:?}", ran.reported);
        killed.is_right(&what);
    }
    assert!(count > 0, "{name}: no run was killed");
}

#[test]
fn copies_in_files_recover_from_processes_killed_anywhere() {
    ["folder", "warc"].into_iter().for_each(killed);
    #[cfg(feature = "s3")]
    killed("objects");
}

#[cfg(feature = "s3")]
#[test]
fn copies_in_a_bucket_recover_from_processes_killed_anywhere() {
    let Some(_server) = crate::objects::s3("copies in a bucket") else { return };
    killed_in(crate::objects::BUCKET);
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

/// A run is killed after a commit, while a connection has stored some of its items and waits for the
/// next one: nobody has taken their outcomes yet. Then the Source goes back.
fn killed_after_a_commit(name: &str, batch: u64) {
    let mut killed = Killed::new(sinks().into_iter().find(|case| case.name == name).unwrap());
    killed.set("/a/old", "1");
    // Enough resources, so that deletions are not held.
    killed.source.create((0..200).map(|number| format!("/few/{number}")), "1");
    killed.source.snapshot();
    killed.copy.run();
    let new: Vec<String> = (0..40).map(|number| format!("/a/new/{number}")).collect();
    killed.source.create(new.iter().cloned(), "1");
    killed.set("/a/old", "2 longer");
    killed.set("/a/slow", "1");
    let many = (0..batch + 200).map(|number| format!("/many/{number:05}"));
    killed.source.create(many, "some text");
    killed.source.server.put("/a/slow", Answer::events());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut child = killed.child("following changes", &mut command).spawn().unwrap();
    let state = killed.copy.folder().join(".abreast/mirror.db");
    let begun = Instant::now();
    while Mirror::open_reader(&state).and_then(|state| state.count_rows()).unwrap_or(0)
        < 201 + batch
    {
        assert!(begun.elapsed() < Duration::from_secs(60), "{name}: nothing was committed");
        let has_ended = child.try_wait().unwrap().is_some();
        assert!(
            !has_ended,
            "{name}: the run ended: {}",
            std::fs::read_to_string(killed.log()).unwrap()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    killed.source.serve("/a/slow", "1");
    for path in &new {
        killed.source.delete(path);
    }
    killed.set("/a/old", "1");
    let ran = killed.copy.try_run();
    assert_eq!(ran.exit(), 0, "{name}: {} {:?}", ran.code(), ran.reported);
    killed.is_right(name);
}

#[test]
fn what_is_settled_has_its_row_before_its_outcome_is_taken() {
    for (name, batch) in [
        ("nquads", 5_000),
        ("warc", 5_000),
        ("labels in SQLite", 5_000),
        ("endpoint", 1_000),
        ("graph store", 1_000),
        ("receiver", 1_000),
    ] {
        killed_after_a_commit(name, batch);
    }
}
