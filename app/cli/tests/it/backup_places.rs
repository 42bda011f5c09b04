//! Where backups and restored stores may be, and whose files stay.

use crate::world::{Source, abreast};
use abreast_testkit::{eventually, run};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

struct World {
    temporary: tempfile::TempDir,
}

impl World {
    /// A published folder whose store was filled.
    fn new() -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap() };
        fs::create_dir(world.at("papers")).unwrap();
        fs::write(world.at("papers/a.txt"), "1").unwrap();
        let source = Source::start(&world.at("papers"), 0, &[]);
        assert_eq!(source.stop(), Some(0));
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    /// Exit code and output of a command.
    fn code(&self, words: &[&str]) -> (i32, String) {
        let paths = |word: &&str| match word.strip_prefix('@') {
            Some(name) => self.at(name).to_str().unwrap().to_owned(),
            None => (*word).to_owned(),
        };
        let output = run(abreast().args(words.iter().map(paths)));
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }

    #[track_caller]
    fn assert_code(&self, words: &[&str], expected: i32) -> String {
        let (code, text) = self.code(words);
        assert_eq!(code, expected, "{words:?}\n{text}");
        text
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn no_backup_goes_where_it_would_be_read_or_copied() {
    let world = World::new();
    for place in ["@papers/backups", "@papers/deep/er", "@papers/.abreast/backups", "@papers"] {
        let text = world.assert_code(&["backup", "@papers", place], 2);
        assert!(text.contains("help: name a folder elsewhere"), "{text}");
    }
    symlink(world.at("papers"), world.at("link")).unwrap();
    world.assert_code(&["backup", "@papers", "@link/backups"], 2);
    world.assert_code(&["backup", "@papers", "@backups"], 0);
    for place in ["@papers/store", "@link/store"] {
        let text = world.assert_code(&["restore", "@backups", place], 2);
        assert!(text.contains("everybody could read the store"), "{text}");
    }
    let names: Vec<_> = fs::read_dir(world.at("papers")).unwrap().collect();
    assert_eq!(names.len(), 2, "nothing was made there: {names:?}");
    // Names with a dot are not published.
    fs::create_dir(world.at("new")).unwrap();
    world.assert_code(&["restore", "@backups", "@new/.abreast"], 0);
}

#[test]
fn what_is_not_ours_stays() {
    let world = World::new();
    fs::create_dir_all(world.at("backups/making-of")).unwrap();
    fs::write(world.at("backups/making-of/film"), "1").unwrap();
    // As the archives of a set of that name have it.
    fs::create_dir_all(world.at("papers/.abreast/archives/airlock")).unwrap();
    fs::write(world.at("papers/.abreast/archives/airlock/1.xml"), "1").unwrap();
    world.assert_code(&["backup", "@papers", "@backups"], 0);
    assert!(world.at("backups/making-of/film").is_file());
    fs::create_dir(world.at("store.restoring")).unwrap();
    world.assert_code(&["restore", "@backups", "@store"], 0);
    assert!(world.at("store.restoring").is_dir());
    assert!(world.at("store/archives/airlock/1.xml").is_file());
    // A folder that looks like an interrupted restore, with something else in it.
    fs::create_dir_all(world.at("other/.abreast-restoring")).unwrap();
    fs::write(world.at("other/.abreast-restoring/restore.lock"), "").unwrap();
    fs::write(world.at("other/mine"), "1").unwrap();
    world.assert_code(&["restore", "@backups", "@other"], 0);
    assert!(world.at("other/mine").is_file());
    world.assert_code(&["restore", "@backups", "@other"], 2);
    // Such a folder with a folder that a server could have made, but no restore.
    fs::create_dir_all(world.at("looks/.abreast-restoring")).unwrap();
    fs::write(world.at("looks/.abreast-restoring/restore.lock"), "").unwrap();
    fs::create_dir(world.at("looks/documents")).unwrap();
    fs::write(world.at("looks/documents/mine"), "1").unwrap();
    world.assert_code(&["restore", "@backups", "@looks"], 2);
    assert!(world.at("looks/documents/mine").is_file());
    // One that ended before it had its lock.
    fs::create_dir_all(world.at("early/.abreast-restoring")).unwrap();
    world.assert_code(&["restore", "@backups", "@early"], 0);
    world.assert_code(&["check", "--read-data", "@other"], 0);
}

#[test]
fn a_database_behind_a_link_is_backed_up_as_it_is_now() {
    let world = World::new();
    let store = world.at("papers/.abreast");
    fs::create_dir(world.at("disk")).unwrap();
    fs::rename(store.join("source.db"), world.at("disk/source.db")).unwrap();
    symlink(world.at("disk/source.db"), store.join("source.db")).unwrap();
    fs::write(world.at("disk/tokens.json"), "{}").unwrap();
    symlink(world.at("disk/tokens.json"), store.join("tokens.json")).unwrap();
    for number in 0..20 {
        fs::write(world.at(&format!("papers/{number}")), "1").unwrap();
    }
    // The newest changes are in the file next to the database.
    let source = Source::start(&world.at("papers"), 0, &[]);
    eventually("the files are recorded", || {
        let list = source.get("/set/resourcelist.xml");
        list.is_some_and(|list| String::from_utf8_lossy(&list).contains("/set/r/19<"))
    });
    let text = world.assert_code(&["backup", "@papers", "@backups"], 0);
    assert_eq!(source.stop(), Some(0));
    assert!(text.contains("21 resources"), "{text}");
    world.assert_code(&["restore", "@backups", "@store"], 0);
    assert!(world.at("store/tokens.json").is_file());
    let _ = fs::remove_dir_all(store.join("archives"));
    symlink(&store, store.join("archives")).unwrap();
    let text = world.assert_code(&["backup", "@papers", "@others"], 13);
    assert!(text.contains("leads back to the store"), "{text}");
}

#[test]
fn a_store_is_restored_into_the_folder_that_is_there() {
    let world = World::new();
    world.assert_code(&["backup", "@papers", "@backups"], 0);
    fs::create_dir(world.at("store")).unwrap();
    fs::set_permissions(world.at("store"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink(world.at("store"), world.at("link")).unwrap();
    world.assert_code(&["restore", "@backups", "@link"], 0);
    assert_eq!(mode(&world.at("store")), 0o700);
    assert!(world.at("link").is_symlink() && world.at("store/source.db").is_file());
    assert!(!world.at("store/.abreast-restoring").exists());
    world.assert_code(&["check", "--read-data", "@store"], 0);
    world.assert_code(&["restore", "@backups", "@link"], 2);
}

#[test]
fn two_restores_into_one_folder_leave_one_store() {
    let world = World::new();
    world.assert_code(&["backup", "@papers", "@backups"], 0);
    for round in 0..8 {
        let store = format!("@store{round}");
        let codes = std::thread::scope(|scope| {
            let restore = || world.code(&["restore", "@backups", &store]).0;
            let all = [scope.spawn(restore), scope.spawn(restore)];
            all.map(|one| one.join().unwrap())
        });
        assert!(codes.contains(&0), "{codes:?}");
        assert!(codes.iter().all(|code| [0, 2, 10, 13].contains(code)), "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
        world.assert_code(&["check", "--read-data", &store], 0);
    }
}

#[test]
fn a_backup_is_checked_and_never_altered() {
    let world = World::new();
    for _ in 0..2 {
        world.assert_code(&["backup", "@papers", "@backups"], 0);
    }
    let backups: Vec<PathBuf> = fs::read_dir(world.at("backups"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("manifest.json").is_file())
        .collect();
    let [one, other] = &backups[..] else { panic!("{backups:?}") };
    let text = world.assert_code(&["check", "@backups"], 0);
    assert_eq!(text.matches(": whole, 1 set").count(), 2, "{text}");
    let name = one.to_str().unwrap();
    world.assert_code(&["check", name], 0);
    let before = files_of(one);
    for command in [&["repair", name][..], &["log", "papers", "--data", name]] {
        let text = world.assert_code(command, 2);
        assert!(text.contains("is a backup") && text.contains("abreast restore"), "{text}");
    }
    let text =
        world.assert_code(&["serve", "@papers", "--data", name, "--listen", "127.0.0.1:0"], 2);
    assert!(text.contains("is a backup"), "{text}");
    assert_eq!(files_of(one), before);
    // One bit of one of them.
    let path = other.join("source.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[5_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let text = world.assert_code(&["check", "@backups"], 1);
    assert!(text.contains("backup.damaged") && text.contains("not as it was backed up"), "{text}");
    assert_eq!(text.matches(": whole, 1 set").count(), 1, "{text}");
    world.assert_code(&["check", name], 0);
    // The help of an error has a line of its own, in place of that of the code.
    let path = other.join("manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut newer = manifest.clone();
    newer["format"] = 99.into();
    fs::write(&path, newer.to_string()).unwrap();
    let text = world.assert_code(&["check", "@backups"], 1);
    assert!(!text.contains("\\n"), "{text}");
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert!(lines.contains(&"help: use the newer program"), "{text}");
    let text = world.assert_code(&["check", "@backups", "--json"], 1);
    assert!(text.contains("\"help\":\"use the newer program\""), "{text}");
}

fn files_of(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let paths = abreast_testkit::folder::paths(folder);
    let files = paths.into_iter().filter(|path| path.is_file());
    files.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}
