//! Folders of backups: which one is the newest, of which store they are, and what becomes of damage in them.

use crate::world::{Source, abreast};
use abreast_testkit::{eventually, folder, run};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    /// Two stores that keep versions: `papers` and `others`.
    fn new() -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        for name in ["papers", "others"] {
            fs::create_dir(world.at(name)).unwrap();
            world.record(name, &[("large", &"large ".repeat(50_000)), ("small", "small text")]);
        }
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Writes files, and has them recorded.
    fn record(&self, name: &str, files: &[(&str, &str)]) {
        for (file, text) in files {
            fs::write(self.at(name).join(file), text).unwrap();
        }
        let source = Source::start(&self.at(name), 0, &["--versions", "all"]);
        let last = format!("/set/r/{}", files[files.len() - 1].0);
        eventually("the files are published", || source.get(&last).is_some());
        assert_eq!(source.stop(), Some(0));
    }

    /// What a command prints, with that exit code.
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

    fn backups(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at("backups")).unwrap().map(|entry| entry.unwrap().path());
        let mut backups: Vec<_> = entries.filter(|path| path.join("source.db").is_file()).collect();
        backups.sort();
        backups
    }
}

/// Flips a bit where those bytes are.
fn damage(below: &Path, text: &[u8]) {
    for path in folder::paths(below).into_iter().filter(|path| path.is_file()) {
        let mut bytes = fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(text.len()).position(|window| window == text) {
            bytes[at] ^= 1;
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            return;
        }
    }
    panic!("there are no such bytes");
}

#[test]
fn damaged_contents_of_backups_are_replaced() {
    let world = World::new();
    for text in [&b"large large"[..], b"small text"] {
        world.code(&["backup", "@papers", "@backups"], 0);
        world.code(&["check", "@backups"], 0);
        damage(&world.at("backups/contents"), text);
        let told = world.code(&["check", "@backups"], 1);
        assert!(told.contains("abreast backup --read-data"), "{told}");
        world.code(&["restore", "@backups", "@refused"], 1);
        assert!(!world.at("refused").exists());
        let told = world.code(&["backup", "@papers", "@backups", "--read-data"], 0);
        assert!(told.contains("1 damaged content of earlier backups replaced"), "{told}");
        assert!(told.contains("0 contents copied"), "{told}");
        let told = world.code(&["check", "@backups"], 0);
        assert!(told.contains(": whole, 1 set"), "{told}");
    }
    world.code(&["restore", "@backups", "@store"], 0);
    world.code(&["check", "@store", "--read-data"], 0);
}

#[test]
fn a_damaged_content_costs_a_restore_one_version() {
    let world = World::new();
    world.code(&["backup", "@papers", "@backups"], 0);
    damage(&world.at("backups/contents"), b"large large");
    world.code(&["restore", "@backups", "@store"], 1);
    let told = world.code(&["restore", "@backups", "@store", "--without-damaged"], 0);
    assert!(told.contains("without 1 damaged content"), "{told}");
    let told = world.code(&["check", "@store", "--read-data"], 0);
    assert!(told.contains("2 resources") && told.contains("kept contents: 1, 1 read"), "{told}");
}

#[test]
fn the_newest_backup_is_the_last_one_whatever_the_clock_was() {
    let world = World::new();
    world.code(&["backup", "@papers", "@backups"], 0);
    world.record("papers", &[("new", "new")]);
    world.code(&["backup", "@papers", "@backups"], 0);
    // As if the clock had been ahead when the first one was made, and behind at the second.
    let [first, second] = &world.backups()[..] else { panic!("two backups") };
    fs::rename(first, world.at("backups/20990101T000000.000000Z")).unwrap();
    fs::rename(second, world.at("backups/20000101T000000.000000Z")).unwrap();
    // Of another program.
    fs::create_dir(world.at("backups/zzz")).unwrap();
    fs::write(world.at("backups/zzz/manifest.json"), "{\"name\": \"app\"}").unwrap();
    let told = world.code(&["restore", "@backups", "@store"], 0);
    assert!(told.contains("set set: 3 resources"), "{told}");
    world.code(&["check", "@backups"], 0);
    // A flipped bit in its manifest is no reason to take an older one.
    let path = world.at("backups/20000101T000000.000000Z/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"number\": 2", "\"number\": 0")).unwrap();
    let told = world.code(&["restore", "@backups", "@again"], 1);
    assert!(told.contains("is damaged") && told.contains("help: name one backup"), "{told}");
    world.code(&["check", "@backups"], 1);
    world.code(&["backup", "@papers", "@backups"], 0);
}

#[test]
fn backups_of_two_stores_are_told_apart() {
    let world = World::new();
    world.code(&["backup", "@papers", "@backups"], 0);
    let told = world.code(&["backup", "@others", "@backups"], 2);
    assert!(told.contains("has backups of another store"), "{told}");
    assert_eq!(world.backups().len(), 1);
    world.code(&["backup", "@others", "@elsewhere"], 0);
    for entry in fs::read_dir(world.at("elsewhere")).unwrap().map(|entry| entry.unwrap()) {
        if entry.path().join("source.db").is_file() {
            fs::rename(entry.path(), world.at("backups").join(entry.file_name())).unwrap();
        }
    }
    let told = world.code(&["restore", "@backups", "@store"], 2);
    assert!(told.contains("backups of several stores") && told.contains("name one"), "{told}");
    // A restored store is the same one, although its log was begun again.
    let one = world.backups().remove(0);
    world.code(&["restore", one.to_str().unwrap(), "@store"], 0);
    world.code(&["backup", "@store", "@backups"], 0);
}

#[test]
fn a_backup_that_cannot_be_read_is_not_called_damaged() {
    let world = World::new();
    world.code(&["backup", "@papers", "@backups"], 0);
    let is_root = rustix::process::getuid().is_root();
    let mut paths = folder::paths(&world.at("backups"));
    paths.insert(world.temporary.path().to_owned());
    for path in paths {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let check = |path: &Path| {
        let mut command = world.command(&["check", path.to_str().unwrap()]);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        let Ok(output) = command.output() else { return None };
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Some((output.status.code(), text))
    };
    let backups = world.at("backups");
    match check(&backups) {
        Some((Some(0), _)) => {}
        Some((_, text)) => panic!("{text}"),
        // Others may not run the program here.
        None => return,
    }
    let backup = world.backups().remove(0);
    let contents = folder::paths(&backups.join("contents"));
    let content =
        contents.iter().find(|path| path.is_file() && path.metadata().unwrap().len() > 99);
    let parts = [
        backups.clone(),
        backup.clone(),
        backup.join("manifest.json"),
        backup.join("source.db"),
        backups.join("contents"),
        content.unwrap().clone(),
    ];
    for part in parts {
        let mode = fs::metadata(&part).unwrap().permissions();
        fs::set_permissions(&part, fs::Permissions::from_mode(0o000)).unwrap();
        let (code, text) = check(&backups).unwrap();
        fs::set_permissions(&part, mode).unwrap();
        assert_eq!(code, Some(13), "{}: {text}", part.display());
        assert!(!text.contains("backup.damaged"), "{}: {text}", part.display());
        assert!(text.contains("ermission denied"), "{}: {text}", part.display());
    }
}

#[test]
fn copies_next_to_a_store_are_not_in_its_backups() {
    let world = World::new();
    let store = world.at("papers/.abreast");
    fs::create_dir_all(store.join("copy/.abreast")).unwrap();
    fs::write(store.join("copy/large"), vec![7; 1 << 20]).unwrap();
    fs::write(store.join("notes.txt"), "mine").unwrap();
    // A link that leads nowhere is read by nobody.
    std::os::unix::fs::symlink("/nowhere/at/all", store.join("link")).unwrap();
    let told = world.code(&["backup", "@papers", "@backups"], 0);
    let names = "not in the backup, because not a part of the store: copy, link, notes.txt";
    assert!(told.contains(names), "{told}");
    assert!(!world.backups()[0].join("copy").exists());
    let told = world.code(&["backup", "@papers", "@backups", "--json"], 0);
    assert!(told.contains("\"not_in_backup\":[\"copy\",\"link\",\"notes.txt\"]"), "{told}");
}

#[test]
fn each_file_of_a_store_is_in_its_backups_or_derived() {
    let world = World::new();
    let config = world.at("abreast.toml");
    let (data, folder) = (world.at("store"), world.at("fresh"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a"), "text").unwrap();
    fs::create_dir(world.at("graph")).unwrap();
    fs::write(world.at("graph/a.nt"), "<http://h/a> <http://h/p> \"x\" .\n").unwrap();
    let text = format!(
        "data = \"{}\"\n[[set]]\nname = \"papers\"\nfolder = \"{}\"\nversions = \"all\"\n\
         dumps = {{ every = \"1d\", changes = true }}\narchives = {{ every = \"1d\" }}\n\
         [[set]]\nname = \"graph\"\norigin = \"rdf\"\nfolder = \"{}\"\n",
        data.display(),
        folder.display(),
        world.at("graph").display(),
    );
    fs::write(&config, text).unwrap();
    fs::create_dir(&data).unwrap();
    world.code(&["token", "create", "--name", "robot", "--scope", "read", "--data", "@store"], 0);
    let source = Source::start_config(config.to_str().unwrap());
    eventually("the dump and the archive", || {
        data.join("archives/papers").exists() && data.join("dumps/papers").exists()
    });
    let told = world.code(&["backup", "@store", "@backups"], 0);
    drop(source);
    assert!(!told.contains("not in the backup"), "{told}");
    let told = world.code(
        &[
            "build",
            "--config",
            "@abreast.toml",
            "--out",
            "@site",
            "--base-url",
            "http://h/",
            "--copy",
        ],
        0,
    );
    assert!(!told.contains("error"), "{told}");
    let told = world.code(&["backup", "@store", "@backups"], 0);
    assert!(!told.contains("not in the backup"), "{told}");
}

#[test]
fn restore_moves_the_present_store_aside_only_if_asked() {
    let world = World::new();
    world.code(&["backup", "@papers", "@backups"], 0);
    world.code(&["restore", "@backups", "@store"], 0);
    fs::create_dir(world.at("store/copy")).unwrap();
    fs::write(world.at("store/copy/file"), "mine").unwrap();
    let told = world.code(&["restore", "@backups", "@store"], 2);
    assert!(told.contains("--replace"), "{told}");
    let told = world.code(&["restore", "@backups", "@store", "--replace", "--dry-run"], 0);
    assert!(told.contains("would be restored") && !told.contains("former"), "{told}");
    let told = world.code(&["restore", "@backups", "@store", "--replace"], 0);
    let aside = told.lines().find_map(|line| line.strip_prefix("the former store is in "));
    let aside = PathBuf::from(aside.unwrap_or_else(|| panic!("{told}")));
    for place in [&world.at("store"), &aside] {
        let told = world.code(&["check", place.to_str().unwrap(), "--read-data"], 0);
        assert!(told.contains("2 resources"), "{told}");
    }
    assert_eq!(fs::read(world.at("store/copy/file")).unwrap(), b"mine");
    assert!(!aside.join("copy").exists());
    // Into a folder with other files, and none of a store.
    fs::create_dir_all(world.at("new/copy")).unwrap();
    let told = world.code(&["restore", "@backups", "@new", "--replace"], 0);
    assert!(!told.contains("former") && world.at("new/copy").exists(), "{told}");
}
