//! Symbolic links: which links are followed, and the limits.

use crate::world::World;
use abreast_source::WatchState;
use abreast_source::watch::{Watch, WatchOptions};
use abreast_source::{IngestOptions, Private, ScanOptions, open_folder, scan};
use abreast_testkit::eventually;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Scans below `subtree`, and returns the number of links that were not followed.
fn scan_with(world: &World, subtree: &str, follow: bool) -> u64 {
    let folder = open_folder(&world.folder, follow, &Arc::default(), &Private::default()).unwrap();
    let ingest = IngestOptions { settle: Duration::ZERO, ..IngestOptions::default() };
    let options = ScanOptions { ingest, ..ScanOptions::default() };
    let stop = AtomicBool::new(false);
    scan(&folder, subtree.as_bytes(), &*world.log, world.set, &options, &stop).unwrap().links
}

#[test]
fn links_inside_the_folder_are_followed_only_when_asked_for() {
    let world = World::new();
    world.write("real/a", "1");
    world.write("real/.git/config", "hidden");
    std::fs::write(world.folder.parent().unwrap().join("secret"), "no").unwrap();
    for (target, name) in [
        ("real", "link"),
        ("real/a", "leaf"),
        ("../secret", "out"),
        ("real/.git/config", "uncover"),
        ("nowhere", "dangling"),
    ] {
        symlink(target, world.folder.join(name)).unwrap();
    }
    assert_eq!(scan_with(&world, "", false), 5);
    assert_eq!(world.keys(), ["real/a"]);
    assert_eq!(scan_with(&world, "", true), 3);
    assert_eq!(world.keys(), ["leaf", "link/a", "real/a"]);
    world.log.complete_import(world.set).unwrap();
    // If links are not followed any more, the resources behind links are deleted.
    scan_with(&world, "", false);
    assert_eq!(world.keys(), ["real/a"]);
}

#[test]
fn circles_of_links_end() {
    let world = World::new();
    world.write("a/file", "1");
    world.write("b/file", "2");
    symlink("..", world.folder.join("a/up")).unwrap();
    symlink("../b", world.folder.join("a/other")).unwrap();
    symlink("../a", world.folder.join("b/other")).unwrap();
    scan_with(&world, "", true);
    assert_eq!(world.keys(), ["a/file", "a/other/file", "b/file", "b/other/file"]);
    // A scan of a subtree, as after an event, has the same result.
    let before = world.keys();
    scan_with(&world, "a/other", true);
    assert_eq!(world.keys(), before);
}

#[test]
fn folders_with_links_to_each_other_make_no_endless_paths() {
    let world = World::new();
    for level in 0..12 {
        world.write(&format!("{level:02}/file"), "x");
        for number in 0..3 {
            symlink(
                format!("../{:02}", level + 1),
                world.folder.join(format!("{level:02}/{number}")),
            )
            .unwrap();
        }
    }
    // 3^12 paths lead to the last folder; at most four links are followed on a path.
    assert!(scan_with(&world, "", true) > 0);
    assert!(world.keys().len() < 12 * (1 + 3 + 9 + 27 + 81) + 1);
    assert!(world.keys().contains(&"00/0/0/0/0/file".to_owned()));
}

#[test]
fn what_changes_behind_links_is_recorded_as_it_happens() {
    let world = World::new();
    world.write("real/sub/a", "1");
    symlink("real", world.folder.join("link")).unwrap();
    symlink("real/sub/a", world.folder.join("leaf")).unwrap();
    let mut options = WatchOptions::new(&world.folder);
    options.debounce = Duration::from_millis(50);
    options.ingest.settle = Duration::from_millis(100);
    options.rescan = Duration::ZERO;
    options.follow_links = true;
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    assert_eq!(world.keys(), ["leaf", "link/sub/a", "real/sub/a"]);
    world.write("real/sub/a", "22");
    let updated = ["updated leaf", "updated link/sub/a", "updated real/sub/a"];
    eventually("an edit is recorded under all paths", || world.changes() == updated);
    // A link to a folder, made later.
    symlink("../real/sub", world.folder.join("real/late")).unwrap();
    eventually("what it leads to is recorded", || world.keys().contains(&"link/late/a".to_owned()));
    world.write("real/sub/b", "1");
    let everywhere = ["link/late/b", "link/sub/b", "real/late/b", "real/sub/b"];
    eventually("a new file is recorded under all paths", || {
        everywhere.iter().all(|key| world.keys().contains(&(*key).to_owned()))
    });
    std::fs::remove_file(world.folder.join("real/sub/b")).unwrap();
    eventually("so is its end", || {
        everywhere.iter().all(|key| !world.keys().contains(&(*key).to_owned()))
    });
    watch.stop();
}
