//! Several backups in a folder: which are kept, which are removed, and what is never touched.

use crate::world::{Source, abreast};
use abreast_contents::{View, digest};
use abreast_core::ContentId;
use abreast_testkit::{Random, eventually, kills, run, seed};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

/// Kills of the test of kills.
const KILLS: u64 = 25;

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    /// A store that keeps versions.
    fn new() -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        world.record("papers", "first");
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Replaces the file of a set, of which only the newest version is kept, and has it recorded.
    fn record(&self, name: &str, text: &str) {
        fs::create_dir_all(self.at(name)).unwrap();
        fs::write(self.at(name).join("a.txt"), text).unwrap();
        let source = Source::start(&self.at(name), 0, &["--versions", "1"]);
        eventually("the file is published", || {
            source.get("/set/r/a.txt").is_some_and(|body| body == text.as_bytes())
        });
        let store = self.at(name).join(".abreast");
        // The file is served from its folder before the store has it.
        eventually("the store has the newest version only", || {
            ids_in(&store) == [digest(&self.at(name).join("a.txt")).unwrap().0]
        });
        assert_eq!(source.stop(), Some(0));
    }

    #[track_caller]
    fn code(&self, words: &[&str], code: i32) -> String {
        let output = run(&mut self.command(words));
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{text}");
        text
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = abreast();
        for word in words {
            match word.strip_prefix('@') {
                Some(name) => command.arg(self.at(name)),
                None => command.arg(word),
            };
        }
        command
    }

    /// Names of the folders in the folder of backups, except that of contents.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("backups")).unwrap().map(|entry| entry.unwrap());
        let folders = entries.filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> =
            folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "contents");
        names.sort();
        names
    }

    /// Makes a backup of a new version, as if at that time; returns its name.
    fn backup_of(&self, text: &str, created: &str) -> String {
        self.record("papers", text);
        self.backup_at(created)
    }

    fn backup_at(&self, created: &str) -> String {
        let before = self.names_if_any();
        self.code(&["backup", "@papers", "@backups"], 0);
        let made = self.names().into_iter().find(|name| !before.contains(name)).unwrap();
        let name = created.replace(['-', ':'], "");
        let path = self.at("backups").join(&name);
        fs::rename(self.at("backups").join(made), &path).unwrap();
        set_time(&path, created);
        name
    }

    fn names_if_any(&self) -> Vec<String> {
        if self.at("backups").is_dir() { self.names() } else { Vec::new() }
    }

    fn contents(&self) -> u64 {
        contents_in(&self.at("backups"))
    }
}

/// Number of contents in the folder of a store or of backups.
fn contents_in(folder: &Path) -> u64 {
    ids_in(folder).len() as u64
}

fn ids_in(folder: &Path) -> Vec<ContentId> {
    let mut ids = Vec::new();
    let view = View::open(&folder.join("contents")).unwrap();
    view.visit(&mut |id, _| {
        ids.push(id);
        Ok(())
    })
    .unwrap();
    ids
}

/// Changes the time in a manifest, and leaves out its digest, as earlier versions did.
fn set_time(backup: &Path, created: &str) {
    let path = backup.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["created"] = created.into();
    manifest.as_object_mut().unwrap().remove("blake3");
    fs::write(path, manifest.to_string()).unwrap();
}

#[test]
fn old_backups_are_removed_with_their_contents() {
    let world = World::new();
    let old = world.backup_of("of October", "2020-10-31T10:00:00.000001Z");
    let week = world.backup_of("of the week before", "2020-11-20T10:00:00.000001Z");
    let morning = world.backup_of("of the morning", "2020-11-28T07:00:00.000001Z");
    let evening = world.backup_of("of the evening", "2020-11-28T19:00:00.000001Z");
    world.record("papers", "of today");
    let (names, contents) = (world.names(), world.contents());
    assert_eq!((names.len(), contents), (4, 4));
    let text = world.code(&["backup", "@papers", "@backups", "--dry-run"], 0);
    assert!(text.contains("nothing would be removed"), "{text}");
    let keep = ["--keep-last", "1", "--keep-daily", "2", "--keep-weekly", "3"];
    let words: Vec<&str> = ["backup", "@papers", "@backups"].into_iter().chain(keep).collect();
    let planned = world.code(&[&words[..], &["--dry-run"]].concat(), 0);
    assert_eq!((world.names(), world.contents()), (names, contents), "nothing is done");
    let done = world.code(&words, 0);
    for (told, word) in [(&planned, "would be removed"), (&done, "removed")] {
        for name in [&old, &morning] {
            assert!(told.contains(&format!("\n{word} {name}\n")), "{told}");
        }
        let kept = format!("kept {evening}: daily 2020-11-28, weekly 2020-W48\n");
        assert!(told.contains(&kept), "{told}");
        assert!(told.contains(&format!("kept {week}: weekly 2020-W47\n")), "{told}");
    }
    assert!(planned.starts_with("kept the new backup: newest, last 1, daily "), "{planned}");
    assert!(done.contains("1 content copied (8 B), 0 reused (0 B)"), "{done}");
    assert!(done.contains("2 unneeded contents removed"), "{done}");
    let left = world.names();
    assert_eq!((left.len(), world.contents()), (3, 3));
    assert!(left.contains(&week) && left.contains(&evening), "{left:?}");
    // Each of them is whole, and has its own version.
    world.code(&["check", "@backups", "--read-data"], 0);
    for (number, name) in left.iter().enumerate() {
        let store = format!("@store{number}");
        world.code(&["restore", &format!("@backups/{name}"), &store], 0);
        world.code(&["check", "--read-data", &store], 0);
    }
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1", "--json"], 0);
    let report: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(report["pruning"]["removed"].as_array().unwrap().len(), 3, "{told}");
    assert_eq!((&report["contents_reused"], &report["bytes_reused"]), (&1.into(), &8.into()));
    assert_eq!((world.names().len(), world.contents()), (1, 1));
    for wrong in [&["--keep-last", "0"][..], &["--keep-daily", "x"]] {
        world.code(&[&["backup", "@papers", "@backups"], wrong].concat(), 2);
    }
}

#[test]
fn what_is_not_a_backup_of_this_store_is_never_removed() {
    let world = World::new();
    let first = world.backup_of("of the first one", "2020-10-31T10:00:00.000001Z");
    fs::rename(world.at("backups").join(first), world.at("backups/before-the-move")).unwrap();
    world.record("others", "of the other store");
    world.code(&["backup", "@others", "@elsewhere"], 0);
    let other = "20200101T000000.000000Z";
    for entry in fs::read_dir(world.at("elsewhere")).unwrap().map(|entry| entry.unwrap()) {
        if entry.path().join("source.db").is_file() {
            fs::rename(entry.path(), world.at("backups").join(other)).unwrap();
        }
    }
    // As the earlier versions made it that did not record the store.
    let early = world.backup_of("of an early version", "2020-02-01T00:00:00.000000Z");
    let path = world.at("backups").join(&early).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["sets"][0].as_object_mut().unwrap().remove("log_created");
    fs::write(&path, manifest.to_string()).unwrap();
    fs::create_dir(world.at("backups/20200303T000000.000000Z")).unwrap();
    fs::create_dir(world.at("notes")).unwrap();
    std::os::unix::fs::symlink(world.at("notes"), world.at("backups/notes")).unwrap();
    let last = world.backup_of("of the last one", "2020-03-01T00:00:00.000000Z");
    world.record("papers", "of today");
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    for line in [
        "not touched before-the-move: it was renamed",
        "not touched 20200101T000000.000000Z: it is a backup of another store",
        "not touched 20200201T000000.000000Z: an earlier version made it, which did not record the store",
        "not touched 20200303T000000.000000Z: it is not a complete backup",
        "not touched notes: it is not a complete backup",
        &format!("removed {last}"),
        "1 unneeded content removed",
    ] {
        assert!(told.lines().any(|found| found == line), "{line}\n{told}");
    }
    for name in ["before-the-move", other, &early, "20200303T000000.000000Z", "notes"] {
        assert!(world.at("backups").join(name).is_dir(), "{name}");
    }
    // Their contents are there, except that of the other store, which never was.
    for name in ["before-the-move", &early] {
        world.code(&["restore", &format!("@backups/{name}"), &format!("@of-{name}")], 0);
        world.code(&["check", "--read-data", &format!("@of-{name}")], 0);
    }
}

#[test]
fn contents_stay_while_a_backup_cannot_be_read() {
    let world = World::new();
    let damaged = world.backup_of("of the damaged one", "2020-10-31T10:00:00.000001Z");
    let old = world.backup_of("of the old one", "2020-11-20T10:00:00.000001Z");
    world.record("papers", "of today");
    let path = world.at("backups").join(&damaged).join("manifest.json");
    let good = fs::read(&path).unwrap();
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    assert!(told.contains(&format!("not touched {damaged}: the manifest of")), "{told}");
    assert!(told.contains(&format!("removed {old}")), "{told}");
    assert!(told.contains("no contents removed, because a backup may need them"), "{told}");
    assert_eq!(world.contents(), 3);
    let told = world.code(&["backup", "--list", "@backups"], 1);
    assert!(told.contains("is damaged"), "{told}");
    fs::write(&path, &good).unwrap();
    // The next removal of a backup removes what the earlier one left.
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    assert!(told.contains("2 unneeded contents removed"), "{told}");
    assert_eq!(world.contents(), 1);
}

#[test]
fn contents_stay_while_a_renamed_backup_is_unreadable() {
    let world = World::new();
    let first = world.backup_of("of the first one", "2020-10-31T10:00:00.000001Z");
    let old = world.backup_of("of the old one", "2020-11-20T10:00:00.000001Z");
    world.record("papers", "of today");
    // On a disk that is not mounted at present.
    fs::rename(world.at("backups").join(first), world.at("disk")).unwrap();
    std::os::unix::fs::symlink(world.at("mounted"), world.at("backups/first")).unwrap();
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    assert!(told.contains(&format!("removed {old}")), "{told}");
    assert!(told.contains("no contents removed, because a backup may need them"), "{told}");
    assert_eq!(world.contents(), 3);
    fs::rename(world.at("disk"), world.at("mounted")).unwrap();
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    assert!(told.contains("1 unneeded content removed"), "{told}");
    world.code(&["restore", "@backups/first", "@store"], 0);
    world.code(&["check", "--read-data", "@store"], 0);
}

#[test]
fn a_single_backup_is_no_folder_of_backups() {
    let world = World::new();
    let first = world.backup_at("2020-10-31T10:00:00.000001Z");
    let place = format!("@backups/{first}");
    for dry_run in [&["--dry-run"][..], &[]] {
        let words = [&["backup", "@papers", &place, "--keep-last", "1"], dry_run].concat();
        let told = world.code(&words, 2);
        assert!(told.contains("is one backup, not a folder of backups"), "{told}");
        assert!(told.contains("help: "), "{told}");
    }
    world.code(&["check", "@backups", "--read-data"], 0);
}

#[test]
fn what_cannot_be_removed_prevents_no_backup() {
    let world = World::new();
    let old = world.backup_of("of the old one", "2020-10-31T10:00:00.000001Z");
    let other = world.backup_of("of the other one", "2020-11-20T10:00:00.000001Z");
    world.record("papers", "of today");
    // A file in the place of a folder: neither it is removed, nor is the backup renamed to it.
    fs::write(world.at("backups").join(format!("making-{old}")), "1").unwrap();
    let told = world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    for name in [&format!("making-{old}"), &old] {
        let line = format!("\nnot touched {name}: it cannot be removed: ");
        assert!(told.contains(&line), "{line}\n{told}");
    }
    assert!(told.contains(&format!("\nremoved {other}\n")), "{told}");
    assert!(told.contains("1 unneeded content removed"), "{told}");
    world.code(&["check", "@backups", "--read-data"], 0);
    let told = world.code(&["backup", "@papers", "@backups", "--json"], 0);
    let report: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(report["unremoved"].as_array().unwrap().len(), 1, "{told}");
}

#[test]
fn backups_are_listed_and_a_restore_is_shown_first() {
    let world = World::new();
    world.code(&["backup", "--list", "@backups"], 2);
    world.code(&["backup", "@papers"], 2);
    let [first, second] = [
        world.backup_of("first", "2020-10-31T10:00:00.000001Z"),
        world.backup_of("second", "2020-11-20T10:00:00.000001Z"),
    ];
    let told = world.code(&["backup", "--list", "@backups"], 0);
    let (one, other) = (told.find(&first).unwrap(), told.find(&second).unwrap());
    assert!(one < other && told.contains("set set: 1 resource, up to position"), "{told}");
    let told = world.code(&["backup", "--list", "@backups", "--json"], 0);
    let listed: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1]["created"], "2020-11-20T10:00:00.000001Z");
    assert_eq!((&listed[0]["number"], &listed[1]["number"]), (&1.into(), &2.into()));
    for (backup, name) in [("@backups", &second), (&*format!("@backups/{first}"), &first)] {
        let told = world.code(&["restore", backup, "@store", "--dry-run"], 0);
        assert!(told.contains("would be restored as of 2020-"), "{told}");
        let from = told.lines().find(|line| line.starts_with("from ")).unwrap();
        assert!(from.ends_with(name.as_str()), "{told}");
        assert!(told.contains("/store: 1 content, "), "{told}");
        assert!(told.contains("a new history would begin"), "{told}");
        assert!(!world.at("store").exists(), "nothing is written");
    }
    fs::create_dir(world.at("full")).unwrap();
    fs::write(world.at("full/source.db"), "1").unwrap();
    world.code(&["restore", "@backups", "@full", "--dry-run"], 2);
    world.code(&["restore", "@backups", "@store"], 0);
}

#[test]
fn the_time_of_the_last_backup_is_a_metric() {
    let world = World::new();
    let value = |source: &Source| -> Option<f64> {
        let body = source.get("/metrics").unwrap();
        let text = String::from_utf8(body).unwrap();
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("abreast_backup_time_seconds "))?;
        line.parse().ok()
    };
    let source = Source::start(&world.at("papers"), 0, &["--versions", "1"]);
    assert_eq!(value(&source), None);
    let begun = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    world.code(&["backup", "@papers", "@backups"], 0);
    let first = value(&source).unwrap();
    assert!((begun - 1.0..begun + 100.0).contains(&first), "{first} {begun}");
    world.code(&["backup", "@papers", "@backups"], 0);
    let second = value(&source).unwrap();
    assert!(second > first, "{second} {first}");
    // One that fails leaves it as it was.
    fs::write(world.at("file"), "1").unwrap();
    world.code(&["backup", "@papers", "@file"], 2);
    assert_eq!(value(&source), Some(second));
    assert_eq!(source.stop(), Some(0));
    // A restored store has no backup yet.
    assert!(world.at("papers/.abreast/last-backup").is_file());
    world.code(&["restore", "@backups", "@store"], 0);
    assert!(!world.at("store/last-backup").exists());
}

#[test]
fn a_killed_removal_leaves_whole_backups() {
    let world = World::new();
    let (kills, mut random) = (kills(KILLS), Random::new(seed(5)));
    world.code(&["backup", "@papers", "@backups"], 0);
    let mut killed = 0;
    for round in 0..kills * 2 {
        if round % 5 == 0 {
            world.record("papers", &format!("of round {round}"));
        }
        let keep = ["backup", "@papers", "@backups", "--keep-last", "1"];
        let mut command = world.command(&keep);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.below(200)));
        if child.try_wait().unwrap().is_none() {
            child.kill().unwrap();
            killed += 1;
        }
        child.wait().unwrap();
        world.code(&["check", "@backups", "--read-data"], 0);
    }
    eprintln!("{killed} kills");
    world.code(&["backup", "@papers", "@backups", "--keep-last", "1"], 0);
    assert_eq!(world.names().len(), 1);
    world.code(&["restore", "@backups", "@store"], 0);
    world.code(&["check", "@store", "--read-data"], 0);
}
