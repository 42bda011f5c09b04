//! Files that are missing in a watched folder: the deletion of most files waits for a confirmation.

use crate::world::World;
use abreast_source::watch::{Watch, WatchOptions};
use abreast_source::{Held, WatchState};
use abreast_testkit::eventually;
use std::sync::Arc;
use std::time::Duration;

fn start(world: &World, change: impl FnOnce(&mut WatchOptions)) -> Watch {
    let mut options = WatchOptions::new(&world.folder);
    options.debounce = Duration::from_millis(50);
    options.ingest.settle = Duration::from_millis(20);
    change(&mut options);
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    watch
}

fn with_files(count: usize) -> World {
    let world = World::new();
    (0..count).for_each(|number| world.write(&format!("{number:02}"), "1"));
    world
}

fn remove(world: &World, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| {
        std::fs::remove_file(world.folder.join(format!("{number:02}"))).unwrap();
    });
}

#[test]
fn emptying_a_watched_folder_deletes_nothing_until_confirmed() {
    let world = with_files(28);
    let watch = start(&world, |_| ());
    remove(&world, 0..28);
    eventually("the deletions are held", || {
        watch.status().held() == Some(Held { missing: 28, left_out: 0, of: 28, before: 0 })
    });
    world.write("new", "1");
    eventually("other changes go on", || world.changes() == ["created new"]);
    // A restart does not end the hold.
    watch.stop();
    let watch = start(&world, |_| ());
    eventually("the deletions are held again", || {
        watch.status().held() == Some(Held { missing: 28, left_out: 0, of: 29, before: 0 })
    });
    assert_eq!(world.changes().len(), 1);
    watch.status().confirm_deletions();
    eventually("the deletions are recorded", || world.keys() == ["new"]);
    eventually("nothing is held", || watch.status().held().is_none());
    watch.stop();
}

#[test]
fn a_small_folder_that_is_emptied_is_held_as_well() {
    let world = with_files(2);
    let watch = start(&world, |_| ());
    remove(&world, 0..2);
    eventually("the deletions are held", || watch.status().held().is_some());
    assert!(world.changes().is_empty());
    watch.stop();
}

#[test]
fn held_deletions_end_when_the_files_are_back() {
    let world = with_files(20);
    let watch = start(&world, |_| ());
    let aside = world.temporary.path().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let moved = |from: &std::path::Path, to: &std::path::Path| {
        (0..15).for_each(|number| {
            let name = format!("{number:02}");
            std::fs::rename(from.join(&name), to.join(&name)).unwrap();
        });
    };
    moved(&world.folder, &aside);
    eventually("the deletions are held", || watch.status().held().is_some());
    moved(&aside, &world.folder);
    eventually("nothing is held", || watch.status().held().is_none());
    assert!(world.changes().is_empty());
    watch.stop();
}

#[test]
fn held_deletions_are_recorded_when_the_configured_time_is_over() {
    let world = with_files(20);
    let watch = start(&world, |options| options.hold_deletions = Duration::from_millis(500));
    remove(&world, 0..19);
    eventually("the deletions are held", || watch.status().held().is_some());
    eventually("the deletions are recorded", || world.keys() == ["19"]);
    eventually("nothing is held", || watch.status().held().is_none());
    watch.stop();
}

#[test]
fn files_written_just_before_the_first_scan_are_counted() {
    let settle = Duration::from_millis(400);
    let world = with_files(1);
    std::thread::sleep(2 * settle);
    (1..40).for_each(|number| world.write(&format!("{number:02}"), "1"));
    let watch = start(&world, |options| options.ingest.settle = settle);
    assert_eq!(world.keys().len(), 40);
    remove(&world, 0..25);
    eventually("the deletions are held", || watch.status().held().is_some());
    assert_eq!(world.keys().len(), 40);
    watch.stop();
}

#[test]
fn deletions_one_by_one_are_judged_together() {
    let world = with_files(20);
    let watch = start(&world, |options| options.debounce = Duration::from_millis(5));
    for number in 0..20 {
        remove(&world, number..number + 1);
        eventually("it is noticed", || {
            watch.status().held().is_some() || !world.keys().contains(&format!("{number:02}"))
        });
    }
    assert_eq!(world.keys().len(), 10, "half is published, and no more");
    watch.stop();
}

#[test]
fn a_large_folder_moved_within_a_watched_folder_is_no_loss() {
    let world = World::new();
    (0..40).for_each(|number| world.write(&format!("a/{number}"), "1"));
    let watch = start(&world, |_| ());
    std::fs::rename(world.folder.join("a"), world.folder.join("b")).unwrap();
    eventually("it is followed", || {
        world.keys().len() == 40 && world.keys().iter().all(|key| key.starts_with("b/"))
    });
    assert_eq!(watch.status().held(), None);
    watch.stop();
}

fn with_folders(world: &World, names: &[&str], files: usize) {
    for name in names {
        let folder = world.folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        (0..files).for_each(|number| std::fs::write(folder.join(number.to_string()), "1").unwrap());
    }
}

/// The moved files are as many as the guard would hold as deletions.
#[test]
fn half_of_a_large_set_that_moves_is_no_loss() {
    let world = World::new();
    with_folders(&world, &["a", "b"], 1_500);
    let watch = start(&world, |_| ());
    std::fs::rename(world.folder.join("a"), world.folder.join("c")).unwrap();
    let has_moved = || {
        let keys = world.keys();
        keys.len() == 3_000 && keys.iter().all(|key| !key.starts_with("a/"))
    };
    eventually("it is followed", has_moved);
    assert_eq!(watch.status().held(), None);
    // The move does not count in later deletions either.
    (0..40).for_each(|number| {
        std::fs::remove_file(world.folder.join(format!("c/{number}"))).unwrap();
    });
    eventually("few deletions are recorded", || world.keys().len() == 2_960);
    assert_eq!(watch.status().held(), None);
    // A folder is moved while no watch runs.
    watch.stop();
    std::fs::rename(world.folder.join("b"), world.folder.join("a")).unwrap();
    let watch = start(&world, |_| ());
    eventually("it is found", || world.keys().iter().all(|key| !key.starts_with("b/")));
    assert_eq!((world.keys().len(), watch.status().held()), (2_960, None));
    watch.stop();
}

#[test]
fn held_deletions_end_when_others_take_their_place() {
    let world = with_files(40);
    let watch = start(&world, |options| options.debounce = Duration::from_millis(5));
    remove(&world, 0..25);
    eventually("the deletions are held", || watch.status().held().is_some());
    (40..65).for_each(|number| world.write(&format!("{number:02}"), "1"));
    eventually("nothing is held", || watch.status().held().is_none() && world.keys().len() == 40);
    // Each file is replaced by another file, several times.
    for round in 0..4 {
        let names = (40 + 15 * round)..(55 + 15 * round);
        names.clone().for_each(|number| world.write(&format!("{:02}", number + 25), "1"));
        let newest = format!("{:02}", names.end + 24);
        remove(&world, names);
        eventually("they are followed", || {
            world.keys().len() == 40 && world.keys().contains(&newest)
        });
    }
    assert_eq!(watch.status().held(), None);
    watch.stop();
}
