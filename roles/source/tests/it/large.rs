//! Large files: neither other files nor a stop wait for them.

use crate::world::World;
use abreast_source::WatchState;
use abreast_source::watch::{Watch, WatchOptions};
use abreast_testkit::eventually;
use md5::{Digest as _, Md5};
use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Length of a file, in bytes: reading it takes longer than any test waits.
const HUGE: u64 = 1 << 40;

fn start(world: &World) -> Watch {
    let mut options = WatchOptions::new(&world.folder);
    options.ingest.settle = Duration::from_millis(20);
    Watch::start(options, Arc::clone(&world.log), world.set)
}

fn huge(world: &World, name: &str) {
    File::create(world.folder.join(name)).unwrap().set_len(HUGE).unwrap();
}

fn stops(watch: Watch) {
    let begun = Instant::now();
    watch.stop();
    assert!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
}

#[test]
fn other_changes_and_a_stop_do_not_wait_for_a_large_file() {
    let world = World::new();
    world.write("old", "1");
    let watch = start(&world);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    huge(&world, "huge");
    std::thread::sleep(Duration::from_millis(300));
    world.write("small", "1");
    eventually("a smaller file is recorded", || world.keys() == ["old", "small"]);
    stops(watch);
    // After a restart, the first scan finds the large file.
    let watch = start(&world);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    world.write("later", "1");
    eventually("a later file is recorded", || world.keys() == ["later", "old", "small"]);
    stops(watch);
}

#[test]
fn a_stop_does_not_wait_for_the_first_reading() {
    let world = World::new();
    huge(&world, "huge");
    let watch = start(&world);
    eventually("the first scan begins", || watch.status().state() == WatchState::Scanning);
    std::thread::sleep(Duration::from_millis(300));
    stops(watch);
    assert!(world.log.head(world.set).unwrap().importing, "the base is not complete");
}

#[test]
fn a_large_file_is_recorded_as_it_is_in_the_end() {
    let world = World::new();
    world.write("old", "1");
    let watch = start(&world);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    let digest = |bytes: &[u8]| {
        abreast_webtypes::Digests { md5: Some(Md5::digest(bytes).into()), ..Default::default() }
            .to_string()
    };
    let first = vec![1_u8; 17 << 20];
    std::fs::write(world.folder.join("large"), &first).unwrap();
    eventually("it is recorded", || world.table().get("large") == Some(&digest(&first)));
    let second = vec![2_u8; 18 << 20];
    std::fs::write(world.folder.join("large"), &first).unwrap();
    std::fs::write(world.folder.join("large"), &second).unwrap();
    eventually("it is recorded again", || world.table().get("large") == Some(&digest(&second)));
    std::fs::write(world.folder.join("large"), &first).unwrap();
    std::fs::remove_file(world.folder.join("large")).unwrap();
    eventually("its removal is recorded", || world.keys() == ["old"]);
    watch.stop();
}
