//! Commands that only read a store write nothing, also where the store has an older schema or is on a read-only mount.

use crate::old_backups::unpack;
use crate::world::abreast;
use abreast_testkit::folder::{files, paths};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

/// The words of each command, in which `@` stands for the folder of the test, and its exit code.
const COMMANDS: &[(&[&str], i32)] = &[
    (&["log", "set", "--data", "@data"], 0),
    (&["log", "set", "--data", "@data", "--since", "2020-01-01T00:00:00Z"], 0),
    (&["log", "other", "--data", "@data"], 2),
    (&["check", "@data"], 0),
    (&["check", "@data", "--read-data"], 0),
    (&["repair", "@data", "--dry-run"], 0),
    (&["repair", "@data", "--dry-run", "--read-data"], 0),
    (&["drop", "@data", "set", "--dry-run"], 0),
    (&["drop", "@data", "set"], 2),
    (&["drop", "@data", "other", "--dry-run"], 2),
    (&["set", "list", "--data", "@data"], 0),
    (&["set", "remove", "set", "--data", "@data", "--dry-run"], 0),
    (&["set", "remove", "set", "--data", "@data"], 2),
    (&["set", "rename", "set", "new", "--data", "@data", "--dry-run"], 0),
    (&["set", "rename", "other", "new", "--data", "@data", "--dry-run"], 2),
    (&["hub", "topics", "--data", "@data"], 0),
    (&["hub", "targets", "--data", "@data"], 0),
    (&["hub", "attempts", "1", "--data", "@data"], 1),
    (&["token", "list", "--data", "@data"], 0),
    (&["import", "set", "--data", "@data", "--dry-run", "@lines"], 0),
    (&["import", "entities", "--data", "@data", "--dry-run", "@a.nt"], 0),
    (&["import", "entities", "--data", "@missing", "--dry-run", "@a.nt"], 2),
    (&["import", "entities", "--data", "@current", "--dry-run", "@a.nt"], 0),
    (&["import", "entities", "--config", "@current.toml", "--dry-run", "@a.nt"], 0),
    (&["config", "check", "@abreast.toml"], 0),
    (&["check", "@backups"], 0),
];

/// A store as a version with schema 4 left it, and the backup that it is made of.
fn world() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    unpack(&at("backups"));
    fs::create_dir(at("data")).unwrap();
    fs::create_dir(at("published")).unwrap();
    for entry in fs::read_dir(at("backups")).unwrap() {
        let from = entry.unwrap().path();
        if from.ends_with("contents") {
            abreast_testkit::folder::copy(&from, &at("data/contents"));
            continue;
        }
        for name in ["source.db", "hub.db", "notified.json"] {
            if from.join(name).is_file() {
                fs::copy(from.join(name), at("data").join(name)).unwrap();
            }
        }
    }
    fs::write(at("lines"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    fs::write(at("a.nt"), "<http://h/a> <http://h/p> <http://h/b> .\n").unwrap();
    let config = format!(
        "data = {:?}\n[[set]]\nname = \"set\"\nfolder = {:?}\n",
        at("data").display().to_string(),
        at("published").display().to_string()
    );
    fs::write(at("abreast.toml"), config).unwrap();
    // A store of this version, with a set whose settings are not the usual ones.
    fs::create_dir(at("current")).unwrap();
    let set = |changes: u32| {
        format!(
            "data = \"{}\"\n[[set]]\nname = \"entities\"\norigin = \"rdf\"\nnamespace = \"http://h/\"\nchanges_per_list = {changes}\n",
            at("current").display()
        )
    };
    fs::write(at("current.toml"), set(500)).unwrap();
    let (config, input) = (at("current.toml"), at("a.nt"));
    let import = abreast().args(["import", "entities", "--config"]).arg(config).arg(input).output();
    let import = import.unwrap();
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    fs::write(at("current.toml"), set(600)).unwrap();
    place
}

fn set_modes(place: &Path, folder: u32, file: u32) {
    let all: Vec<PathBuf> = paths(place).into_iter().chain([place.to_owned()]).collect();
    for path in all {
        let mode = if path.is_dir() { folder } else { file };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// All files, except locks, which have no content.
fn state(place: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let is_lock = |path: &Path| path.extension().is_some_and(|end| end == "lock");
    files(place).into_iter().filter(|(path, bytes)| !(is_lock(path) && bytes.is_empty())).collect()
}

#[test]
fn commands_that_only_read_write_nothing() {
    let place = world();
    let own = format!("{}/", place.path().display());
    let mut wrong = Vec::new();
    for is_writable in [true, false] {
        let before = state(place.path());
        if !is_writable {
            set_modes(place.path(), 0o555, 0o444);
        }
        for (words, code) in COMMANDS {
            let mut command = abreast();
            command.args(words.iter().map(|word| word.replace('@', &own)));
            if !is_writable && rustix::process::getuid().is_root() {
                command.uid(65_534).gid(65_534);
            }
            // Others may not run the program everywhere.
            let Ok(output) = command.output() else { continue };
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text);
            if output.status.code() != Some(*code) {
                wrong.push(format!(
                    "{words:?}, writable {is_writable}: {:?}: {text}",
                    output.status
                ));
            }
            let after = state(place.path());
            if after != before {
                let differ = after.iter().filter(|file| !before.contains(file));
                let differ: Vec<_> = differ.map(|(path, _)| path).collect();
                wrong.push(format!("{words:?}, writable {is_writable}: wrote {differ:?}"));
                break;
            }
        }
        set_modes(place.path(), 0o755, 0o644);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
