//! Folders that are moved, closed, opened and replaced while they are watched: soon after, the log
//! equals the tree.

use crate::world::World;
use abreast_source::WatchState;
use abreast_source::watch::{Watch, WatchOptions};
use abreast_testkit::{Random, eventually};
use md5::{Digest as _, Md5};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after the last change by which the log must equal the tree.
const SOON: Duration = Duration::from_secs(5);

/// Starts a watch without the privileges of root, so that permissions apply also if root runs the
/// tests. After the first scan, no full scan is due.
fn start(world: &World) -> Watch {
    let mut options = WatchOptions::new(&world.folder);
    options.rescan = Duration::ZERO;
    options.hold_deletions = Duration::ZERO;
    let (log, set) = (Arc::clone(&world.log), world.set);
    let starting = std::thread::spawn(move || {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, sets).unwrap();
        // The threads of the watch inherit the capabilities of this thread.
        Watch::start(options, log, set)
    });
    starting.join().unwrap()
}

fn watched(watch: &Watch) {
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
}

/// Path and digest of every file that should be published.
fn tree(folder: &Path) -> BTreeMap<String, String> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let key = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                let md5 = Some(Md5::digest(fs::read(entry.path()).unwrap()).into());
                files.insert(
                    key,
                    abreast_webtypes::Digests { md5, ..Default::default() }.to_string(),
                );
            }
        }
    }
    files
}

/// Resources that are missing in the log, surplus, or different.
fn differences(world: &World) -> Vec<String> {
    let (tree, table) = (tree(&world.folder), world.table());
    let missing = tree
        .iter()
        .filter(|(key, digest)| table.get(*key) != Some(*digest))
        .map(|(key, _)| format!("-{key}"));
    missing
        .chain(table.keys().filter(|key| !tree.contains_key(*key)).map(|key| format!("+{key}")))
        .collect()
}

fn equal_soon(world: &World, what: &str) {
    let begun = Instant::now();
    loop {
        let differences = differences(world);
        if differences.is_empty() {
            return;
        }
        let shown = &differences[..differences.len().min(10)];
        assert!(begun.elapsed() < SOON, "{what}: {} differ: {shown:?}", differences.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn folders_moved_while_watches_are_set_up_are_watched() {
    let world = World::new();
    for number in 0..400 {
        world.write(&format!("in/{number}/n/first"), "1");
    }
    fs::create_dir(world.folder.join("out")).unwrap();
    let watch = start(&world);
    for number in 0..400 {
        fs::rename(
            world.folder.join(format!("in/{number}")),
            world.folder.join(format!("out/{number}")),
        )
        .unwrap();
    }
    watched(&watch);
    equal_soon(&world, "after the moves");
    for number in 0..400 {
        fs::write(world.folder.join(format!("out/{number}/n/later")), "2").unwrap();
    }
    equal_soon(&world, "files written into the moved folders");
    watch.stop();
}

#[test]
fn a_folder_that_becomes_readable_is_read() {
    let world = World::new();
    world.write("closed/before", "1");
    world.write("open/a", "1");
    let closed = world.folder.join("closed");
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    let watch = start(&world);
    watched(&watch);
    eventually("the readable file is recorded", || world.keys() == ["open/a"]);
    fs::write(closed.join("meanwhile"), "1").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    equal_soon(&world, "after the folder became readable");
    fs::write(closed.join("later"), "1").unwrap();
    equal_soon(&world, "after a file was written into it");
    watch.stop();
}

#[test]
fn a_file_changed_under_a_name_that_is_not_watched_is_noticed() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    let outside = world.temporary.path().join("outside");
    fs::hard_link(world.folder.join("a"), &outside).unwrap();
    let watch = start(&world);
    watched(&watch);
    fs::write(&outside, "22").unwrap();
    equal_soon(&world, "after a write under the other name");
    // A hard link that is made later causes an event for its own name only.
    fs::hard_link(world.folder.join("b"), world.folder.join("c")).unwrap();
    equal_soon(&world, "after a second link was made");
    std::thread::sleep(SOON);
    fs::write(world.folder.join("c"), "333").unwrap();
    equal_soon(&world, "after a write under a name made later");
    watch.stop();
}

/// All folders below a folder, which is the first element.
fn folders(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut next) = (vec![root.to_owned()], 0);
    while next < found.len() {
        let inner = fs::read_dir(&found[next]).unwrap().map(|entry| entry.unwrap());
        let inner: Vec<_> = inner
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.path())
            .collect();
        found.extend(inner);
        next += 1;
    }
    found
}

/// Makes one random change; changes that are impossible at the moment are skipped.
fn disturb(root: &Path, random: &mut Random, number: usize) {
    let folders = folders(root);
    let one = folders[random.index(folders.len())].clone();
    let other = folders[random.index(folders.len())].clone();
    let outside = root.with_file_name(format!("outside-{number}"));
    let movable = one != root;
    match random.index(9) {
        0 if movable => {
            let _ = fs::rename(&one, other.join(format!("m{number}")));
        }
        1 if movable => {
            // The folder is moved away and back, possibly before the watch reads the event.
            if fs::rename(&one, &outside).is_ok() {
                fs::write(outside.join("visit"), number.to_string()).unwrap();
                let _ = fs::rename(&outside, &one);
            }
        }
        2 if movable => {
            let _ = fs::rename(&one, &outside);
            match random.index(3) {
                0 => fs::write(&one, number.to_string()).unwrap(),
                1 => symlink("..", &one).unwrap(),
                _ => fs::create_dir(&one).unwrap(),
            }
        }
        3 if movable => fs::set_permissions(&one, Permissions::from_mode(0o000)).unwrap(),
        4 => fs::set_permissions(&one, Permissions::from_mode(0o755)).unwrap(),
        5 => {
            let deep = one.join(format!("d{number}/e/f"));
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("x"), number.to_string()).unwrap();
        }
        6 => {
            let temporary = one.join(format!(".t{number}"));
            fs::write(&temporary, number.to_string()).unwrap();
            fs::rename(temporary, one.join("replaced")).unwrap();
        }
        7 => {
            if let Some(file) = fs::read_dir(&one)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .find(|path| path.is_file())
            {
                fs::remove_file(file).unwrap();
            }
        }
        _ => fs::write(one.join(format!("f{}", number % 5)), number.to_string()).unwrap(),
    }
}

#[test]
fn the_log_equals_a_restless_tree_soon_after_it_is_quiet() {
    for seed in 1..=6 {
        let world = World::new();
        for number in 0..60 {
            world.write(&format!("a{}/b{}/c{number}/file", number % 3, number % 7), "1");
        }
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15 ^ seed);
        let watch = start(&world);
        let mut number = 0;
        for round in 0..3 {
            for _ in 0..120 {
                number += 1;
                disturb(&world.folder, &mut random, number);
            }
            if round == 0 {
                watched(&watch);
            }
            for folder in folders(&world.folder).into_iter().skip(1) {
                fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
            }
            equal_soon(&world, &format!("seed {seed}, round {round}"));
        }
        watch.stop();
    }
}
