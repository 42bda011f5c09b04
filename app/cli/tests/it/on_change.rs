//! The command that is given the changes of a copy: what it is given, and its failures.

use crate::world::{Source, abreast, stop, sync};
use abreast_testkit::{Running, eventually};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A Source, its copy, and a command that adds what it accepts to a file.
struct World {
    place: tempfile::TempDir,
    source: Source,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let original = place.path().join("original");
        fs::create_dir(&original).unwrap();
        fs::write(original.join("a.txt"), "a").unwrap();
        fs::write(original.join("b.txt"), "b").unwrap();
        let data = place.path().join("data");
        let source = Source::start(&original, 0, &["--data", data.to_str().unwrap()]);
        Self { place, source }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn copy(&self) -> PathBuf {
        self.path("copy")
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("original").join(name), text).unwrap();
    }

    /// A command whose first runs do `first`, and which then accepts.
    fn command(&self, first: &str, times: u32) -> String {
        let script = format!(
            "cd {}\nruns=$(cat runs 2>/dev/null || echo 0)\necho $((runs + 1)) > runs\n\
             echo \"$ABREAST_BATCH $ABREAST_JOB $ABREAST_SET $ABREAST_SOURCE $ABREAST_COPY\" >> variables\n\
             if [ $runs -lt {times} ]; then\n{first}\nfi\ncat >> accepted\n",
            self.place.path().display()
        );
        fs::write(self.path("command"), script).unwrap();
        let _ = fs::remove_file(self.path("runs"));
        format!("sh {}", self.path("command").display())
    }

    /// What was accepted since the last call, as `CHANGE PATH`.
    fn accepted(&self) -> Vec<String> {
        let lines = self.lines();
        let _ = fs::remove_file(self.path("accepted"));
        let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
        lines
            .iter()
            .map(|line| format!("{} {}", text(&line["change"]), text(&line["path"])))
            .collect()
    }

    /// The accepted changes by path. Only the changes of one resource have an order.
    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("accepted")).unwrap_or_default();
        let mut lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.sort_by_key(|line| line["path"].as_str().unwrap_or_default().to_owned());
        lines
    }

    fn runs(&self) -> u32 {
        fs::read_to_string(self.path("runs")).map_or(0, |text| text.trim().parse().unwrap())
    }
}

#[test]
fn each_change_is_given_once_with_its_facts() {
    let world = World::new();
    let command = world.command(":", 0);
    let summary =
        sync(&world.source.url(), &world.copy(), 0, &["--on-change", &command, "--set", "set"]);
    assert_eq!(summary["not_handed_over"], 0);
    let lines = world.lines();
    assert_eq!(world.accepted(), ["created a.txt", "created b.txt"]);
    let line = &lines[0];
    let names: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["change", "datetime", "hash", "lastmod", "length", "path", "type", "uri"];
    assert_eq!(names.len(), expected.len());
    assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
    assert_eq!((&line["type"], &line["length"]), (&"item".into(), &1.into()));
    assert!(line["uri"].as_str().unwrap().ends_with("/a.txt"));
    // MD5 of `a`.
    let digest = "md5:0cc175b9c0f1b6a831c399e269772661";
    assert!(line["hash"].as_str().unwrap().contains(digest), "{line}");
    let variables = fs::read_to_string(world.path("variables")).unwrap();
    let copy = world.copy();
    assert_eq!(variables, format!("1  set {} {}\n", world.source.url(), copy.display()));
    // Nothing new: no run.
    sync(&world.source.url(), &copy, 0, &["--on-change", &command, "--set", "set"]);
    assert_eq!(world.runs(), 1);
    world.write("a.txt", "other");
    world.write("c.txt", "c");
    fs::remove_file(world.path("original").join("b.txt")).unwrap();
    let command = world.command(":", 0);
    let mut all = Vec::new();
    eventually("all changes are given", || {
        sync(&world.source.url(), &copy, 0, &["--on-change", &command, "--set", "set"]);
        all.extend(world.accepted());
        all.len() >= 3
    });
    all.sort();
    assert_eq!(all, ["created c.txt", "deleted b.txt", "updated a.txt"]);
}

#[test]
fn failures_of_a_command_lose_and_double_nothing() {
    for (first, times, more) in [
        ("exit 1", 2, &[][..]),
        ("cat > /dev/null; exit 3", 1, &[]),
        ("sleep 1000", 1, &["--on-change-timeout", "1s"]),
        ("trap '' TERM; read x; kill -9 $$", 1, &[]),
        ("yes x | head -c 10000000; exit 1", 1, &[]),
        ("echo no >&2; kill $$", 1, &[]),
    ] {
        let world = World::new();
        let command = world.command(first, times);
        let more = [&["--on-change", &command], more].concat();
        let began = Instant::now();
        let summary = sync(&world.source.url(), &world.copy(), 0, &more);
        assert_eq!(world.accepted(), ["created a.txt", "created b.txt"], "{first}");
        assert_eq!(world.runs(), times + 1, "{first}");
        assert!(began.elapsed() >= Duration::from_secs((1 << times) - 1), "{first}");
        assert!(summary["notices"].as_u64().unwrap() >= u64::from(times), "{first}");
        let batches = fs::read_to_string(world.path("variables")).unwrap();
        assert!(batches.lines().all(|line| line.starts_with("1 ")), "{first}: the same batch");
    }
}

#[test]
fn batches_follow_at_once_in_the_order_of_changes() {
    let world = World::new();
    (0..25).for_each(|number| world.write(&format!("{number:02}.txt"), "x"));
    let command = world.command(":", 0);
    // Changes that were applied without the command are given at the first run with it.
    eventually("the copy is complete", || {
        sync(&world.source.url(), &world.copy(), 0, &[]);
        world.copy().join("24.txt").exists()
    });
    let began = Instant::now();
    sync(
        &world.source.url(),
        &world.copy(),
        0,
        &["--on-change", &command, "--on-change-batch", "10"],
    );
    assert!(began.elapsed() < Duration::from_secs(20));
    let accepted = world.accepted();
    assert_eq!((accepted.len(), world.runs()), (27, 3));
    let mut sorted = accepted.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted, accepted);
    let batches = fs::read_to_string(world.path("variables")).unwrap();
    assert_eq!(
        batches.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["1", "2", "3"]
    );
}

#[test]
fn a_command_that_always_fails_makes_the_run_partial() {
    let world = World::new();
    let summary = sync(&world.source.url(), &world.copy(), 3, &["--on-change", "exit 9"]);
    assert_eq!((&summary["not_handed_over"], &summary["failed"]), (&2.into(), &0.into()));
    assert!(world.copy().join("a.txt").exists(), "the copy does not depend on the command");
    let status = abreast().args(["status", "--json"]).arg(world.copy()).output().unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("on-change.given-up"), "{status}");
    // Also changes that are applied meanwhile wait.
    world.write("a.txt", "other");
    eventually("the change is in the copy", || {
        sync(&world.source.url(), &world.copy(), 0, &[]);
        fs::read_to_string(world.copy().join("a.txt")).unwrap() == "other"
    });
    let command = world.command(":", 0);
    sync(&world.source.url(), &world.copy(), 0, &["--on-change", &command]);
    assert_eq!(world.accepted(), ["created a.txt", "updated a.txt", "created b.txt"]);
}

fn start(world: &World, more: &[&str], command: &str) -> Running {
    let mut run = abreast();
    run.arg("sync").arg(world.source.url()).arg(world.copy()).args(more);
    run.args(["--on-change", command]).stdout(Stdio::null()).stderr(Stdio::null());
    Running(run.spawn().unwrap())
}

/// Ends the process group of a command whose program was killed.
fn end_command(world: &World) {
    if let Ok(text) = fs::read_to_string(world.path("pid")) {
        let _ =
            kill_process_group(Pid::from_raw(text.trim().parse().unwrap()).unwrap(), Signal::KILL);
    }
}

#[test]
fn changes_survive_a_kill_during_the_command() {
    let world = World::new();
    let command =
        world.command("ps -o pgid= -p $$ > pid; touch begun; cat > /dev/null; sleep 1000", 1);
    let mut killed = start(&world, &[], &command);
    eventually("the command runs", || world.path("begun").exists());
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    end_command(&world);
    assert_eq!(world.accepted(), [""; 0]);
    sync(&world.source.url(), &world.copy(), 0, &["--on-change", &command]);
    assert_eq!(world.accepted(), ["created a.txt", "created b.txt"]);
    let batches = fs::read_to_string(world.path("variables")).unwrap();
    assert!(batches.lines().all(|line| line.starts_with("1 ")), "the same batch: {batches}");
}

#[test]
fn changes_survive_kills_at_any_instant() {
    let world = World::new();
    let command = world.command(":", 0);
    let mut state = BTreeMap::new();
    for round in 0..12_u64 {
        for number in 0..30 {
            if (number + round) % 3 == 0 {
                world.write(&format!("{number}.txt"), &format!("{round} {number}"));
            }
        }
        let _ = fs::remove_file(world.path("original").join(format!("{round}.txt")));
        let mut killed = start(&world, &[], &command);
        std::thread::sleep(Duration::from_millis(40 + 35 * round));
        let _ = killed.0.kill();
        killed.0.wait().unwrap();
        // The command may outlive the program that was killed.
        std::thread::sleep(Duration::from_millis(100));
    }
    eventually("the copy is complete", || {
        sync(&world.source.url(), &world.copy(), 0, &["--on-change", &command]);
        let [original, copy] = [world.path("original"), world.copy()];
        abreast_testkit::folder::same(
            &abreast_testkit::folder::files(&original),
            &abreast_testkit::folder::files(&copy),
        )
        .is_ok()
    });
    // Whoever applies the changes in their order has the state of the copy.
    for line in world.lines() {
        let path = line["path"].as_str().unwrap().to_owned();
        match line["change"].as_str().unwrap() {
            "deleted" => state.remove(&path),
            _ => state.insert(path, line["length"].as_u64().unwrap()),
        };
    }
    let mut expected = BTreeMap::new();
    for entry in fs::read_dir(world.path("original")).unwrap() {
        let entry = entry.unwrap();
        expected.insert(entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len());
    }
    assert_eq!(state, expected);
}

#[test]
fn a_follower_is_not_held_up_by_its_command() {
    let world = World::new();
    let command = world.command("touch begun; while [ ! -e go ]; do sleep 0.1; done; exit 1", 1);
    let following = start(&world, &["--follow"], &command);
    eventually("the command runs", || world.path("begun").exists());
    world.write("c.txt", "c");
    eventually("the copy follows meanwhile", || world.copy().join("c.txt").exists());
    assert_eq!(world.runs(), 1, "never two at a time");
    fs::write(world.path("go"), "").unwrap();
    eventually("all changes are given", || world.lines().len() == 3);
    assert_eq!(world.accepted(), ["created a.txt", "created b.txt", "created c.txt"]);
    assert_eq!(stop(following), Some(0));
    assert_eq!(world.runs(), 3);
}

#[test]
fn a_follower_that_stops_ends_its_command() {
    let world = World::new();
    let command = world.command("ps -o pgid= -p $$ > pid; touch begun; sleep 1000", 1);
    let following = start(&world, &["--follow"], &command);
    eventually("the command runs", || world.path("begun").exists());
    let began = Instant::now();
    assert_eq!(stop(following), Some(0));
    assert!(began.elapsed() < Duration::from_secs(8));
    sync(&world.source.url(), &world.copy(), 0, &["--on-change", &command]);
    assert_eq!(world.accepted(), ["created a.txt", "created b.txt"]);
}

#[test]
fn a_job_has_a_command_and_its_name() {
    let world = World::new();
    let command = world.command(":", 0);
    let config = world.path("abreast.toml");
    let text = format!(
        "[[mirror]]\nname = \"papers\"\nurl = \"{}\"\nfolder = \"{}\"\non_change = \"{command}\"\non_change_timeout = \"1m\"\n",
        world.source.url(),
        world.copy().display()
    );
    fs::write(&config, text).unwrap();
    let run = |more: &[&str]| {
        let mut run = abreast();
        run.args(["sync", "--config"]).arg(Path::new(&config)).arg("papers").args(more);
        assert!(run.output().unwrap().status.success());
    };
    run(&["--dry-run"]);
    assert_eq!(world.runs(), 0);
    run(&[]);
    assert_eq!(world.accepted(), ["created a.txt", "created b.txt"]);
    let variables = fs::read_to_string(world.path("variables")).unwrap();
    assert!(variables.starts_with("1 papers  http"), "{variables}");
}
