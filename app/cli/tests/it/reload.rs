//! A server that reads its configuration again, or scans its folders, without a restart.

use crate::world::{Source, abreast, sync};
use abreast_testkit::endpoint::{Endpoint, Fault};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::{Running, eventually, eventually_ok, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A server with a configuration file, its log, and folders for sets.
struct World {
    temporary: tempfile::TempDir,
    source: Option<Source>,
}

impl World {
    /// Serves the sets of this text, in which `@` is the folder of all folders.
    fn start(folders: &[&str], text: &str) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let mut world = Self { temporary, source: None };
        for folder in folders {
            fs::create_dir_all(world.path(folder)).unwrap();
            fs::write(world.path(folder).join("file.txt"), *folder).unwrap();
        }
        world.configure(text);
        world.run(&["--listen", "127.0.0.1:0"]);
        world
    }

    fn run(&mut self, more: &[&str]) {
        let mut command = abreast();
        command.args(["serve", "--config"]).arg(self.path("abreast.toml")).args(more);
        self.source = Some(Source::run_logged(&mut command, &self.path("log")));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn source(&self) -> &Source {
        self.source.as_ref().unwrap()
    }

    fn configure(&self, text: &str) {
        let root = self.temporary.path().display().to_string();
        let head = format!("data = \"{root}/data\"\n");
        fs::write(self.path("abreast.toml"), head + &text.replace('@', &root)).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.source().child.0), signal).unwrap();
    }

    fn reloads(&self) -> usize {
        let log = self.log();
        log.matches("reloaded; ").count() + log.matches("remains as it was").count()
    }

    /// Reloads, and returns the log since.
    fn reload(&self) -> String {
        let (before, length) = (self.reloads(), self.log().len());
        self.signal(Signal::HUP);
        eventually("the configuration is read again", || self.reloads() > before);
        self.log()[length..].to_owned()
    }

    /// Changes the configuration, and reloads.
    fn change(&self, text: &str) -> String {
        self.configure(text);
        self.reload()
    }

    fn text(&self, path: &str) -> String {
        let body = self.source().answer(path).map(|(_, body)| body).unwrap_or_default();
        String::from_utf8_lossy(&body).into_owned()
    }

    fn status(&self, path: &str) -> u16 {
        self.source().answer(path).unwrap().0
    }

    fn set(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(&format!("/api/v1/sets/{name}"))).unwrap_or_default()
    }

    /// Status and body of an answer to a method.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.source().address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.source().address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    /// The header with a new token.
    fn token(&self) -> String {
        let made = run(abreast()
            .args(["token", "create", "--name", "n", "--scope", "admin", "--data"])
            .arg(self.path("data")));
        let token = String::from_utf8(made.stdout).unwrap();
        let token = token.split_whitespace().find(|word| word.starts_with("abreast_")).unwrap();
        format!("Authorization: Bearer {token}\r\n")
    }

    /// The end of the last scan of a set.
    fn scanned(&self, set: &str) -> String {
        let metrics = self.text("/metrics");
        let name = format!("abreast_source_last_scan_time_seconds{{set=\"{set}\"}}");
        metrics.lines().find(|line| line.starts_with(&name)).unwrap_or_default().to_owned()
    }
}

/// A `[[set]]` with this name and folder, and more lines.
fn set(name: &str, more: &str) -> String {
    format!("[[set]]\nname = \"{name}\"\nfolder = \"@/{name}\"\ndebounce = \"30ms\"\n{more}\n")
}

#[test]
fn each_kind_of_change_is_applied_and_the_rest_remains() {
    let b = set("b", "");
    let world = World::start(&["a", "b", "c"], &(set("a", "") + &b));
    fs::write(world.path("a").join("left.out"), "x").unwrap();
    eventually("it is published", || world.status("/a/r/left.out") == 200);
    let (scanned, kept) = (world.scanned("b"), world.text("/b/resourcelist.xml"));
    assert!(!scanned.is_empty() && kept.contains("/b/r/file.txt"));
    let holds = |world: &World, path: &str, expected: &str| {
        let text = world.text(path);
        let is = text.contains(expected);
        if is { Ok(()) } else { Err(format!("{expected} in {path}: {text}")) }
    };
    for (more, path, expected) in [
        ("title = \"Old papers\"", "/a/about.html", "<h1>Old papers"),
        ("title = \"New papers\"", "/a/about.html", "New papers"),
        ("title = \"Newest papers\"", "/", "Newest papers"),
        ("description = \"All of them\"", "/a/about.html", "All of them"),
        ("licence = \"https://l.example/\"", "/a/about.html", "https://l.example/"),
        (
            "set_links = [{ rel = \"describedby\", href = \"https://d.example/\" }]",
            "/a/capabilitylist.xml",
            "https://d.example/",
        ),
        (
            "links = [{ match = \"*.txt\", rel = \"author\", href = \"https://w.example/\" }]",
            "/a/resourcelist.xml",
            "https://w.example/",
        ),
        ("digests = \"sha-256\"", "/a/resourcelist.xml", "sha-256"),
        ("dumps = {}", "/a/capabilitylist.xml", "resourcedump"),
        ("archives = { every = \"1s\" }", "/a/capabilitylist.xml", "resourcelist-archive"),
        ("versions = 3", "/a/resourcelist.xml", "timegate"),
        ("filter = [\"- *.out\"]", "/a/changelist.xml", "change=\"deleted\""),
    ] {
        let log = world.change(&(set("a", more) + &b));
        assert!(log.contains("; changed: a") && !log.contains("failed"), "{more}: {log}");
        let touch = || {
            // Settings of files apply to files that change.
            fs::write(world.path("a").join("file.txt"), more.len().to_string()).unwrap();
            holds(&world, path, expected)
        };
        if holds(&world, path, expected).is_err() {
            eventually_ok(more, touch);
        }
        assert_eq!(world.scanned("b"), scanned, "{more}");
        assert_eq!(world.text("/b/resourcelist.xml"), kept, "{more}");
    }
    let institution = "[institution]\nname = \"New Library\"\naccent = \"#006400\"\n";
    world.change(&(institution.to_owned() + &set("a", "") + &b));
    for (path, expected) in [("/b/about.html", "New Library"), ("/style.css", "#006400")] {
        holds(&world, path, expected).unwrap();
    }
    assert_eq!(world.scanned("b"), scanned);
    // Another folder, another name, another set.
    let other = "[[set]]\nname = \"a\"\nfolder = \"@/c\"\nhold_deletions = \"0s\"\n";
    assert!(world.change(&(other.to_owned() + &b)).contains("; changed: a"));
    eventually("the other folder is published", || world.text("/a/r/file.txt") == "c");
    let log = world.change(&(b.clone() + &set("c", "")));
    assert!(log.contains("; added: c; removed: a"), "{log}");
    eventually("the new set is published", || world.text("/c/r/file.txt") == "c");
    for path in ["/a/", "/a/capabilitylist.xml", "/a/r/file.txt", "/api/v1/sets/a"] {
        assert_eq!(world.status(path), 404, "{path}");
    }
    assert!(!world.text("/.well-known/resourcesync").contains("/a/capabilitylist.xml"));
    eventually("the end of the set is notified", || {
        world.text("/a/notify/framework").contains("change=\"deleted\"")
    });
    // The order is that of the file.
    let log = world.change(&(set("c", "") + &b));
    assert!(log.contains("the sets are the same"), "{log}");
    let sets: Value = serde_json::from_str(&world.text("/api/v1/sets")).unwrap();
    assert_eq!(sets["sets"][0]["name"], "c");
    // The API.
    assert_eq!(world.ask("PUT", "/api/v1/sets/b/content/new", "", "1").0, 403);
    world.change(&format!("[api]\nwrite = true\n{b}"));
    assert_eq!(world.ask("PUT", "/api/v1/sets/b/content/new", "", "1").0, 201);
    world.change(&format!("[api]\nwrite = true\nmax_content = 1\n{b}"));
    assert_eq!(world.ask("PUT", "/api/v1/sets/b/content/new", "", "12").0, 413);
    world.change(&format!("[api]\nread = \"token\"\n{b}"));
    let _ = world.token();
    eventually("a token is needed", || world.status("/api/v1/sets") == 401);
    assert_eq!(world.scanned("b"), scanned);
}

/// Reads a stream until it has this text.
fn read_until(stream: &mut impl Read, text: &str) -> String {
    let (mut found, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut part).unwrap();
        found.extend_from_slice(&part[..read]);
        let shown = String::from_utf8_lossy(&found).into_owned();
        assert!(read > 0, "ended without {text}: {shown}");
        if shown.contains(text) {
            return shown;
        }
    }
}

#[test]
fn connections_streams_and_downloads_survive() {
    let b = set("b", "");
    let world = World::start(&["a", "b"], &(set("a", "") + &b));
    let large: Vec<u8> = (0..24 << 20).map(|number: u32| (number >> 3) as u8).collect();
    fs::write(world.path("a").join("large"), &large).unwrap();
    eventually("it is published", || world.source().head("/a/r/large").unwrap().contains(" 200 "));
    let open = |request: &str| {
        let mut stream = TcpStream::connect(&world.source().address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        stream
    };
    let mut streams: Vec<TcpStream> = ["a", "b"]
        .iter()
        .map(|set| {
            let topic = format!("{}{set}/notify/change", world.source().url());
            let topic = topic.replace(':', "%3A").replace('/', "%2F");
            let mut stream = open(&format!("GET /hub/events?topic={topic}"));
            read_until(&mut stream, "id: ");
            stream
        })
        .collect();
    let mut kept = open("GET /livez");
    read_until(&mut kept, "200");
    let mut download = open("GET /a/r/large");
    let mut first = vec![0; 1_000];
    download.read_exact(&mut first).unwrap();
    let log = world.change(&(set("a", "title = \"T\"") + &b));
    assert!(log.contains("; changed: a"), "{log}");
    for (name, stream) in ["a", "b"].iter().zip(&mut streams) {
        fs::write(world.path(name).join("after"), *name).unwrap();
        read_until(stream, &format!("/{name}/r/after"));
    }
    // Without the set, what began with it is completed.
    let log = world.change(&b);
    assert!(log.contains("; removed: a"), "{log}");
    assert_eq!(world.status("/a/r/large"), 404);
    let mut rest = Vec::new();
    let head = first.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let length = large.len() - (first.len() - head);
    download.take(length as u64).read_to_end(&mut rest).unwrap();
    assert!(first[head..].iter().chain(&rest).eq(&large), "{} of {}", rest.len(), length);
    fs::write(world.path("b").join("last"), "b").unwrap();
    read_until(&mut streams[1], "/b/r/last");
    write!(kept, "GET /b/r/last HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    eventually("the connection answers", || read_until(&mut kept, "\r\n\r\n").contains(" 200 "));
}

#[test]
fn faults_change_nothing_and_are_those_of_config_check() {
    let (a, b) = (set("a", ""), set("b", ""));
    let world = World::start(&["a", "b"], &(a.clone() + &b));
    for (text, key) in [
        (format!("trusted_proxies = [\"nowhere\"]\n{b}"), "`trusted_proxies`"),
        (set("a", "digests = \"crc\"\ntitel = \"T\""), "`titel`"),
        (format!("{a}[[set]]\nname = \"x\"\nfolder = \"@/x"), "set.folder"),
        (String::new(), "nothing to publish"),
    ] {
        let log = world.change(&text);
        assert!(log.contains("remains as it was") && log.contains("ERROR"), "{log}");
        let check = run(abreast().args(["config", "check"]).arg(world.path("abreast.toml")));
        let said = String::from_utf8_lossy(&check.stderr).into_owned()
            + &String::from_utf8_lossy(&check.stdout);
        assert_eq!(check.status.code(), Some(2), "{said}");
        let faults = said.lines().filter(|line| line.contains("(help: "));
        let faults: Vec<&str> = faults.map(str::trim).collect();
        for fault in &faults {
            let fault = fault.split_once(".toml:").map_or(*fault, |(_, fault)| fault);
            assert!(log.contains(fault), "{fault}\nin {log}");
        }
        assert!(!faults.is_empty() || key == "nothing to publish", "{said}");
        for name in ["a", "b"] {
            assert_eq!(world.text(&format!("/{name}/r/file.txt")), name);
        }
    }
    // A file that cannot be read.
    fs::remove_file(world.path("abreast.toml")).unwrap();
    assert!(world.reload().contains("cannot read"));
    // A set whose folder is missing is waited for, as at a start.
    fs::write(world.path("a").join("still"), "1").unwrap();
    eventually("the watch goes on", || world.status("/a/r/still") == 200);
    let log = world.change(&(a + &b + &set("later", "")));
    assert!(log.contains("; added: later"), "{log}");
    assert_eq!(world.status("/later/resourcelist.xml"), 503);
    fs::create_dir(world.path("later")).unwrap();
    fs::write(world.path("later").join("file.txt"), "later").unwrap();
    eventually("it is published", || world.text("/later/r/file.txt") == "later");
}

#[test]
fn sets_that_cannot_be_opened_stop_no_other_set() {
    let (a, b) = (set("a", "dumps = {}"), set("b", ""));
    let world = World::start(&["a", "b"], &(a.clone() + &b));
    // A file where a folder of the store must be.
    fs::write(world.path("data").join("archives"), "").unwrap();
    let log = world.change(&(set("a", "archives = { every = \"1h\" }") + &b + &set("c", "")));
    assert!(log.contains("the set `a` keeps its former settings"), "{log}");
    assert!(log.contains("added: c; failed: a"), "{log}");
    fs::write(world.path("a").join("new"), "1").unwrap();
    eventually("changes are recorded", || world.status("/a/r/new") == 200);
    eventually("its dump is published", || {
        world.text("/a/capabilitylist.xml").contains("resourcedump")
    });
    // It is tried again.
    fs::remove_file(world.path("data").join("archives")).unwrap();
    let log = world.change(&(set("a", "archives = { every = \"1h\" }") + &b));
    assert!(log.contains("; changed: a; removed: c"), "{log}");
}

#[test]
fn what_only_a_restart_changes_is_named_in_one_warning() {
    let world = World::start(&["a", "b"], &set("a", ""));
    let (port, data) = (world.source().port(), world.path("data"));
    let log = world.change(&(
        "base_url = \"http://p.example/\"\nstrip_prefix = true\n[hub]\nopen = true\nlease = \"9d\"\n[notify]\nmost = 7\n"
            .to_owned()
            + &set("a", "title = \"Other\"")
            + &set("b", "")
    ));
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    let [warning] = &warnings[..] else { panic!("{log}") };
    let expected = "`base_url` changed from the default to `http://p.example/`, `strip_prefix` changed from `false` to `true`, \
                    `hub.open` changed, `hub.lease` changed: take effect after a restart";
    assert!(warning.contains(expected), "{warning}");
    assert!(log.contains("; added: b; changed: a"), "{log}");
    assert!(world.text("/a/about.html").contains("Other"));
    assert!(world.text("/a/capabilitylist.xml").contains(&format!("http://127.0.0.1:{port}/a/")));
    // Flags come before the file, so that `listen` is not other.
    let log = world.change(
        &("listen = \"127.0.0.1:1\"\n[notify]\nenabled = false\n".to_owned() + &set("a", "")),
    );
    assert!(
        !log.contains("listen") && log.contains("`notify.enabled` changed: takes effect"),
        "{log}"
    );
    assert!(world.text("/a/capabilitylist.xml").contains("hub"));
    assert!(data.join("source.db").is_file());
}

/// Open files and threads of a process, by kind and name, and their numbers.
fn held(source: &Source) -> BTreeMap<String, usize> {
    let mut held = BTreeMap::new();
    let process = format!("/proc/{}", source.pid());
    let entries = |part: &str| fs::read_dir(format!("{process}/{part}")).unwrap().flatten();
    for file in entries("fd").filter_map(|file| fs::read_link(file.path()).ok()) {
        let file = file.to_string_lossy().replace(|c: char| c.is_ascii_digit(), "");
        *held.entry(format!("file {file}")).or_default() += 1;
    }
    for thread in entries("task") {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        *held.entry(format!("thread {}", name.trim())).or_default() += 1;
    }
    held
}

fn resident(source: &Source) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", source.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

#[test]
fn many_reloads_under_load_lose_and_leak_nothing() {
    let b = set("b", "");
    let world = World::start(&["a", "b", "c"], &(set("a", "title = \"0\"") + &b));
    let configure = |number: usize| {
        let versions = if number.is_multiple_of(3) { "versions = 2" } else { "" };
        let a = set("a", &format!("title = \"{number}\"\ndumps = {{}}\n{versions}"));
        let c = if number.is_multiple_of(2) { set("c", "") } else { String::new() };
        world.change(&(a + &b + &c))
    };
    // What is made once, such as threads of the runtime, is there then.
    (0..6).for_each(|number| drop(configure(number)));
    let stop = AtomicBool::new(false);
    let (mut before, mut memory) = (BTreeMap::new(), 0);
    thread::scope(|scope| {
        for folder in ["a", "b"] {
            let (stop, place) = (&stop, world.path(folder));
            scope.spawn(move || {
                let mut number = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    let path = place.join(format!("{}", number % 200));
                    if number % 7 == 6 {
                        let _ = fs::remove_file(path);
                    } else {
                        fs::write(path, number.to_string()).unwrap();
                    }
                    number += 1;
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for path in ["/a/resourcelist.xml", "/b/changelist.xml", "/", "/b/r/file.txt"] {
                    let (status, _) = world.source().answer(path).unwrap();
                    assert!(matches!(status, 200 | 503), "{path}: {status}");
                }
            }
        });
        for number in 0..50 {
            let log = configure(number);
            assert!(log.contains("changed: a") && !log.contains("ERROR"), "{log}");
            if number == 9 {
                (before, memory) = (held(world.source()), resident(world.source()));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(configure(9));
    eventually_ok("files and threads are released", || {
        let now = held(world.source());
        // Connections to a database remain open: a writer, and as many readers as were needed at the
        // same time, at most 8. A scan or a rendering may be under way.
        let is_of_database = |name: &str| name.contains(".db");
        let sum = |held: &BTreeMap<String, usize>, kind: &str| {
            let of_kind = |name: &&String| name.starts_with(kind) && !is_of_database(name);
            held.iter().filter(|(name, _)| of_kind(name)).map(|(_, number)| number).sum::<usize>()
        };
        let is_released = |kind| sum(&now, kind) <= sum(&before, kind) + 4;
        let are_few = now.iter().all(|(name, number)| !is_of_database(name) || *number <= 9);
        let released = is_released("file") && is_released("thread") && are_few;
        released.then_some(()).ok_or_else(|| format!("{before:#?}, then {now:#?}"))
    });
    let now = resident(world.source());
    assert!(now < memory + 48, "{memory} MiB, then {now} MiB");
    for folder in ["a", "b"] {
        let copy = world.path(&format!("copy-{folder}"));
        let url = format!("{}{folder}/capabilitylist.xml", world.source().url());
        eventually_ok("the copy is equal", || {
            sync(&url, &copy, 0, &[]);
            let (one, two) = (
                abreast_testkit::folder::files(&world.path(folder)),
                abreast_testkit::folder::files(&copy),
            );
            abreast_testkit::folder::same(&one, &two)
        });
        assert_equal(&world.path(folder), &copy);
    }
    // Positions have no gap, and every change is there once.
    let head = world.set("b")["head"].as_u64().unwrap();
    let changes = world.text("/api/v1/sets/b/changes?after=0&limit=1000");
    let first: Value = serde_json::from_str(&changes).unwrap();
    let positions = first["changes"].as_array().unwrap().iter().map(|one| one["position"].as_u64());
    let count = positions.clone().count() as u64;
    assert!(positions.eq((1..=count).map(Some)) && count == head.min(1_000), "{head}: {changes}");
}

#[test]
fn a_signal_and_the_api_begin_scans() {
    let unwatched = "events = false\nrescan = \"1d\"\n";
    let text = set("a", unwatched)
        + &set("b", unwatched)
        + "[[set]]\nname = \"known\"\norigin = \"records\"\n";
    let world = World::start(&["a", "b"], &text);
    for number in 0..3 {
        for folder in ["a", "b"] {
            fs::write(world.path(folder).join(format!("{number}")), "1").unwrap();
        }
        world.signal(Signal::USR1);
        eventually("both folders are scanned", || {
            ["a", "b"].iter().all(|set| world.status(&format!("/{set}/r/{number}")) == 200)
        });
    }
    // The scans of earlier signals may find all files before the line of the first signal is written.
    eventually("the log has the signal", || world.log().contains("scanning 2 sets"));
    // A file is published before the end of its scan.
    let mut scanned = world.scanned("b");
    eventually("the scan has ended", || {
        thread::sleep(Duration::from_secs(1));
        std::mem::replace(&mut scanned, world.scanned("b")) == world.scanned("b")
    });
    fs::write(world.path("a").join("by-api"), "1").unwrap();
    assert_eq!(world.ask("POST", "/api/v1/sets/a/scan", "", "").0, 401);
    let token = world.token();
    let scan = |set: &str| {
        eventually_ok("the token is known", || {
            let (status, answer) =
                world.ask("POST", &format!("/api/v1/sets/{set}/scan"), &token, "");
            if status == 401 { Err(answer) } else { Ok((status, answer)) }
        })
    };
    let (status, answer) = scan("a");
    assert!(status == 202 && answer.contains("\"name\":\"a\""), "{answer}");
    eventually("it is scanned", || world.status("/a/r/by-api") == 200);
    assert_eq!(world.scanned("b"), scanned, "the other set is not");
    let (status, answer) = scan("known");
    assert!(status == 409 && answer.contains("no folder and no endpoint"), "{answer}");
    assert_eq!(world.ask("GET", "/api/v1/sets/a/scan", &token, "").0, 405);
    assert_eq!(scan("none").0, 404);
}

#[test]
fn endpoints_and_rdf_files_are_read_at_once() {
    let endpoint = Endpoint::start();
    let statement = |city: &str| format!("<http://id.example/a> <http://p/city> \"{city}\"");
    endpoint.update(&format!("INSERT DATA {{ {} }}", statement("London")));
    let text = format!(
        "[[set]]\nname = \"polled\"\norigin = \"sparql\"\n[set.endpoint]\nurl = {:?}\nevery = \"1d\"\ntoken_file = \"@/a/file.txt\"\n\
         [[set]]\nname = \"read\"\norigin = \"rdf\"\nfolder = \"@/rdf\"\n",
        endpoint.query_url()
    );
    let world = World::start(&["a"], &set("a", ""));
    fs::create_dir(world.path("rdf")).unwrap();
    fs::write(world.path("rdf").join("a.nt"), format!("{} .\n", statement("Rome"))).unwrap();
    let log = world.change(&text);
    assert!(log.contains("; added: polled, read; removed: a"), "{log}");
    let changes = |set: &str| world.set(set)["head"].as_u64().unwrap_or_default();
    eventually("both are read", || changes("polled") == 1 && changes("read") == 1);
    // Nothing but the signal is the reason for another poll, also after a failure.
    endpoint.judge_queries(|_| Some(Fault::Status(400)));
    let polls = endpoint.heads().len();
    world.signal(Signal::USR1);
    eventually("it is polled", || endpoint.heads().len() > polls);
    eventually("the failure is seen", || world.set("polled")["state"] == "missing");
    endpoint.judge_queries(|_| None);
    endpoint.update(&format!("INSERT DATA {{ {} }}", statement("Paris")));
    let reads = || world.log().matches("/rdf: 1 entity").count();
    let before = reads();
    world.signal(Signal::USR1);
    eventually("it is polled again", || changes("polled") == 2);
    eventually("the files are read again", || reads() > before);
    assert_eq!(changes("read"), 1);
    // The set is as before, but not its secret.
    let sends = |secret: &str| {
        let line = format!("authorization: bearer {secret}");
        let heads = endpoint.heads().into_iter().map(|head| head.to_lowercase());
        heads.filter(|head| head.lines().any(|one| one.trim_end() == line)).count()
    };
    assert_eq!(sends("a"), endpoint.heads().len());
    let log = world.reload();
    assert!(log.contains("the sets are the same"), "{log}");
    fs::write(world.path("a").join("file.txt"), "b").unwrap();
    let log = world.reload();
    assert!(log.contains("; changed: polled") && !log.contains("read;"), "{log}");
    eventually("the new secret is sent", || sends("b") > 0);
}

#[test]
fn a_first_scan_goes_on_while_others_are_changed() {
    let temporary = tempfile::tempdir().unwrap();
    let mut world = World { temporary, source: None };
    for folder in ["a", "big"] {
        fs::create_dir_all(world.path(folder)).unwrap();
    }
    let content = vec![b'x'; 64 << 10];
    for number in 0..3_000 {
        fs::write(world.path("big").join(format!("{number}")), &content).unwrap();
    }
    let big = set("big", "digests = \"both\"");
    world.configure(&(set("a", "") + &big));
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(world.path("abreast.toml"));
    world.source = Some(Source::listening(&mut command));
    let reading = || world.text("/readyz").contains("is being read");
    let was_reading = reading();
    for number in 0..4 {
        world.configure(&(set("a", &format!("title = \"{number}\"")) + &big));
        world.signal(Signal::HUP);
        let title = number.to_string();
        eventually("it is applied", || world.set("a")["title"] == title.as_str());
    }
    assert!(was_reading, "the scan was too fast for this test");
    eventually("all files are published", || world.set("big")["count"] == 3_000);
    let head = world.set("big")["head"].as_u64();
    assert_eq!(head, Some(0), "the first state is no change");
}

/// Its folder of archives is a file, with the new settings and with the former ones.
#[test]
fn a_set_that_cannot_be_opened_again_has_failed() {
    let archives = "archives = { every = \"1d\" }\n";
    let world = World::start(&["a", "b"], &[set("a", ""), set("b", archives)].concat());
    assert!(!world.text("/readyz").contains("has failed"));
    let place = world.path("data/archives/b");
    fs::remove_dir_all(&place).unwrap();
    fs::write(&place, "").unwrap();
    let more = format!("{archives}title = \"B\"\n");
    let log = world.change(&[set("a", ""), set("b", &more)].concat());
    assert!(log.contains("no change is recorded"), "{log}");
    let ready = world.text("/readyz");
    assert!(ready.contains("set `b` has failed"), "{ready}");
    assert_eq!(world.status("/b/r/file.txt"), 200);
}

/// New settings without versions that cannot be used end no history.
#[test]
fn a_failed_reload_ends_no_versions() {
    let versions = "versions = \"all\"\n";
    let world = World::start(&["a"], &set("a", versions));
    for text in ["1", "2"] {
        fs::write(world.path("a").join("new.txt"), text).unwrap();
        let head = text.parse::<u64>().unwrap();
        eventually("the change is recorded", || world.set("a")["head"] == head);
    }
    let links = || world.text("/a/changelist.xml").matches("memento").count();
    let before = links();
    assert!(before > 0);
    fs::create_dir_all(world.path("data/archives")).unwrap();
    fs::write(world.path("data/archives/a"), "").unwrap();
    let log = world.change(&set("a", "archives = { every = \"1d\" }\n"));
    assert!(log.contains("keeps its former settings"), "{log}");
    assert_eq!(links(), before);
}

/// An alert on the last value of a set that is gone would never end.
#[test]
fn a_removed_set_has_no_figures() {
    let world = World::start(&["a", "b"], &[set("a", ""), set("b", "")].concat());
    let value = |name: &str| {
        let text = world.text("/metrics");
        let line = text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("no {name}\n{text}")).rsplit(' ').next().unwrap().to_owned()
    };
    let names = [
        "abreast_source_watching{set=\"b\"}",
        "abreast_resources{set=\"b\"}",
        "abreast_set_state{set=\"b\",state=\"ready\"}",
    ];
    for name in names {
        assert_eq!(value(name), "1", "{name}");
    }
    world.change(&set("a", ""));
    for name in names {
        assert_eq!(value(name), "NaN", "{name}");
        assert_eq!(value(&name.replace("\"b\"", "\"a\"")), "1", "{name}");
    }
    world.change(&[set("a", ""), set("b", "")].concat());
    eventually("the set has figures again", || names.iter().all(|name| value(name) == "1"));
}

#[test]
fn a_set_that_comes_back_has_its_history() {
    let (a, b) = (set("a", ""), set("b", ""));
    let world = World::start(&["a", "b"], &(a.clone() + &b));
    fs::write(world.path("b").join("one"), "1").unwrap();
    eventually("a change", || world.set("b")["head"] == 1);
    let created = world.set("b")["created"].clone();
    let log = world.change(&a);
    assert!(log.contains("removed: b") && log.contains("`abreast set remove b "), "{log}");
    fs::write(world.path("b").join("two"), "2").unwrap();
    let log = world.change(&(a + &b));
    assert!(log.contains("; added: b"), "{log}");
    eventually("another change", || world.set("b")["head"] == 2);
    assert_eq!(world.set("b")["created"], created);
    let changes = world.text("/b/changelist.xml");
    assert!(changes.contains("/b/r/one") && changes.contains("/b/r/two"), "{changes}");
}

/// A server by other arguments, with its log.
fn logged(arguments: &[&str], log: &Path) -> (Running, String) {
    let mut command = abreast();
    command.args(arguments).args(["--listen", "127.0.0.1:0"]);
    command.stderr(fs::File::create(log).unwrap()).stdout(Stdio::piped());
    let mut child = Running(command.spawn().unwrap());
    let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains("listening on")).unwrap();
    (child, line.rsplit("http://").next().unwrap().trim_end_matches('/').to_owned())
}

#[test]
fn without_a_configuration_file_nothing_is_reloaded() {
    let place = tempfile::tempdir().unwrap();
    let (folder, log) = (place.path().join("papers"), place.path().join("log"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a"), "1").unwrap();
    let (mut child, address) = logged(&["serve", folder.to_str().unwrap()], &log);
    kill_process(Pid::from_child(&child.0), Signal::HUP).unwrap();
    eventually("it is said", || {
        fs::read_to_string(&log).unwrap().contains("nothing to reload: no configuration file")
    });
    eventually("it still serves", || {
        crate::world::get(&address, "/papers/r/a").is_some_and(|(status, _)| status == 200)
    });
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    // A hub has only its access log to open again.
    let data = place.path().join("hub");
    let (mut child, _) = logged(&["hub", "--data", data.to_str().unwrap()], &log);
    kill_process(Pid::from_child(&child.0), Signal::HUP).unwrap();
    eventually("it is said", || {
        fs::read_to_string(&log).unwrap().contains("log files are open again")
    });
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

/// Closes the terminal of a server, which the shell of the terminal does not end.
const TERMINAL: &str = "
import os, pty, sys, time
child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
text = b''
while b'listening on' not in text:
    text += os.read(terminal, 4096)
os.close(terminal)
for _ in range(300):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.1)
os.kill(child, 9)
sys.exit('it did not end')
";

#[test]
fn a_closed_terminal_ends_a_server() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a"), "1").unwrap();
    let server = abreast();
    let output = run(std::process::Command::new("python3")
        .args(["-c", TERMINAL])
        .arg(server.get_program())
        .arg("serve")
        .arg(place.path())
        .args(["--listen", "127.0.0.1:0"]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
