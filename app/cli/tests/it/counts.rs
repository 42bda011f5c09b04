//! System calls for each resource. Unlike times, they are similar on all machines, so that they show
//! work that was added by mistake.

use crate::world::{Source, abreast};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::{eventually, provided, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FEW: u64 = 500;
const MANY: u64 = 2_500;

/// Calls of a run by name.
type Calls = BTreeMap<String, u64>;

fn write_files(folder: &Path, count: u64) {
    for number in 0..count {
        let folder = folder.join((number % 10).to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}.txt")), format!("content {number}")).unwrap();
    }
}

/// The calls of a command and its threads.
fn calls(strace: &Path, place: &Path, command: &Command) -> Calls {
    let table = place.join("calls");
    let mut traced = Command::new(strace);
    traced.args(["-f", "-c", "-o"]).arg(&table).arg(command.get_program());
    traced.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    let output = run(&mut traced);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(table).unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
    };
    text.lines().filter_map(row).filter(|(name, _): &(String, u64)| name != "total").collect()
}

/// Calls for each of the further resources.
fn for_each(few: &Calls, many: &Calls, name: &str) -> f64 {
    let of = |calls: &Calls| calls.get(name).copied().unwrap_or_default() as f64;
    (of(many) - of(few)) / (MANY - FEW) as f64
}

fn all(calls: &Calls, without: &[&str]) -> u64 {
    calls.iter().filter(|(name, _)| !without.contains(&name.as_str())).map(|(_, calls)| calls).sum()
}

fn strace(test: &str) -> Option<PathBuf> {
    provided(&format!("counts::{test}"), "ABREAST_TEST_STRACE")
}

/// The runs of a copy with this number of resources: the first one, one without changes, and one with a
/// changed resource.
fn runs(strace: &Path, count: u64) -> [Calls; 3] {
    let place = tempfile::tempdir().unwrap();
    let (folder, copy) = (place.path().join("folder"), place.path().join("copy"));
    write_files(&folder, count);
    let source = Source::start(&folder, 0, &[]);
    let sync = || {
        let mut command = abreast();
        command.args(["sync", &source.url()]).arg(&copy);
        calls(strace, place.path(), &command)
    };
    let first = sync();
    assert_equal(&folder, &copy);
    let unchanged = sync();
    fs::write(folder.join("0/0.txt"), "new content").unwrap();
    let is_listed = || {
        source
            .get("/set/changelist.xml")
            .is_some_and(|list| String::from_utf8_lossy(&list).contains("/0/0.txt"))
    };
    eventually("the change is listed", is_listed);
    let changed = sync();
    assert_equal(&folder, &copy);
    [first, unchanged, changed]
}

#[test]
fn a_copy_makes_few_system_calls_for_each_resource() {
    let Some(strace) = strace("a_copy_makes_few_system_calls_for_each_resource") else { return };
    let [few, many] = [FEW, MANY].map(|count| runs(&strace, count));
    // A file is opened, written, dated, linked to its name and closed.
    for (name, most) in [
        ("openat", 1.1),
        ("write", 1.3),
        ("utimensat", 1.1),
        ("linkat", 1.1),
        ("close", 1.3),
        ("sendto", 0.9),
        ("recvfrom", 1.5),
        ("openat2", 0.3),
        ("pwrite64", 0.2),
        ("prlimit64", 0.01),
        ("fsync", 0.01),
        ("clone3", 0.01),
        ("connect", 0.02),
    ] {
        let found = for_each(&few[0], &many[0], name);
        assert!(found <= most, "{found} {name} for each resource, at most {most}: {:?}", many[0]);
    }
    // How often threads wait for each other depends on their pace. Programs for tests check each file
    // that they close (`fcntl`).
    let rest = ["futex", "epoll_wait", "epoll_pwait", "sched_yield", "restart_syscall", "fcntl"];
    let found = (all(&many[0], &rest) - all(&few[0], &rest)) as f64 / (MANY - FEW) as f64;
    assert!(found <= 7.0, "{found} calls for each resource: {:?}", many[0]);
    // Runs with few changes do not grow with the collection. They read the write-ahead log of the run
    // before (`pread64`), which has a limit.
    let rest = [&rest[..], &["pread64"]].concat();
    for (run, what) in [(1, "no change"), (2, "one change")] {
        let (few, many) = (all(&few[run], &rest), all(&many[run], &rest));
        assert!(many <= few + few / 5, "{what}: {few} and {many} calls");
    }
}

#[test]
fn publishing_makes_few_system_calls_for_each_file() {
    let Some(strace) = strace("publishing_makes_few_system_calls_for_each_file") else { return };
    let [few, many] = [FEW, MANY].map(|count| {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        write_files(&folder, count);
        let mut command = abreast();
        command.arg("build").arg(&folder).arg("--out").arg(place.path().join("out"));
        calls(
            &strace,
            place.path(),
            command.args([
                "--base-url",
                "https://example.org/",
                "--resources-url",
                "https://e.org/f/",
            ]),
        )
    });
    for (name, most) in
        [("openat", 1.2), ("openat2", 0.1), ("read", 1.4), ("fstat", 2.1), ("close", 1.2)]
    {
        let found = for_each(&few, &many, name);
        assert!(found <= most, "{found} {name} for each file, at most {most}: {many:?}");
    }
    let rest = ["futex", "sched_yield", "restart_syscall", "fcntl"];
    let found = (all(&many, &rest) - all(&few, &rest)) as f64 / (MANY - FEW) as f64;
    assert!(found <= 6.5, "{found} calls for each file: {many:?}");
}
