//! The changes that a running watch records, and the time until they are recorded.

use crate::world::World;
use abreast_core::contents::ContentStore as _;
use abreast_core::filter::Filter;
use abreast_core::{Kind, Position};
use abreast_source::WatchState;
use abreast_source::links::{LinkRecord, Links, RuleOptions};
use abreast_source::watch::{Watch, WatchOptions};
use abreast_testkit::eventually;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn start(world: &World) -> Watch {
    start_with(world, |_| ())
}

fn start_with(world: &World, change: impl FnOnce(&mut WatchOptions)) -> Watch {
    let mut options = WatchOptions::new(&world.folder);
    options.debounce = Duration::from_millis(50);
    options.ingest.settle = Duration::from_millis(100);
    change(&mut options);
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    watch
}

#[test]
fn the_first_scan_ends_the_import_with_fresh_files_in_the_base() {
    let world = World::new();
    world.write("a", "1");
    let watch = start(&world);
    assert!(!world.log.head(world.set).unwrap().importing);
    assert_eq!(world.keys(), ["a"]);
    assert!(world.changes().is_empty());
    watch.stop();
}

#[test]
fn changes_are_recorded_as_they_happen() {
    let world = World::new();
    world.write("old", "1");
    world.write("dir/inner", "1");
    let watch = start(&world);
    world.write("new", "1");
    eventually("a new file is recorded", || world.changes() == ["created new"]);
    world.write("old", "22");
    eventually("an edit is recorded", || world.changes().len() == 2);
    std::fs::remove_file(world.folder.join("new")).unwrap();
    eventually("a deletion is recorded", || world.changes().len() == 3);
    std::fs::rename(world.folder.join("dir"), world.folder.join("other")).unwrap();
    eventually("a moved folder is recorded", || world.keys() == ["old", "other/inner"]);
    world.write("other/later", "1");
    eventually("a moved folder is still watched", || {
        world.keys().contains(&"other/later".to_owned())
    });
    world.write("made/deep/down/x", "1");
    eventually("a new tree is recorded", || world.keys().contains(&"made/deep/down/x".to_owned()));
    std::fs::remove_dir_all(world.folder.join("made")).unwrap();
    eventually("a removed tree is recorded", || {
        world.keys() == ["old", "other/inner", "other/later"]
    });
    watch.stop();
}

/// Whether this process has an inotify watch on a folder.
fn is_watched(folder: &std::path::Path) -> bool {
    let inode = format!(" ino:{:x} ", std::fs::metadata(folder).unwrap().ino());
    let infos = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    infos
        .filter_map(|info| std::fs::read_to_string(info.ok()?.path()).ok())
        .any(|info| info.lines().any(|line| line.starts_with("inotify ") && line.contains(&inode)))
}

#[test]
fn excluded_folders_are_not_watched() {
    let world = World::new();
    let folders = ["kept/in", "cache/in", "kept/cache/in", "partly/in", "renamed/in"];
    for folder in folders {
        world.write(&format!("{folder}/file"), "1");
    }
    let rules = ["+ partly/in/file", "- cache/", "- partly/"];
    let watch =
        start_with(&world, |options| options.filter = Arc::new(Filter::new(rules).unwrap()));
    let watched = |folder: &str| is_watched(&world.folder.join(folder));
    let unneeded = |folders: [&'static str; 4]| {
        folders.into_iter().filter(|folder| watched(folder)).collect::<Vec<_>>()
    };
    assert_eq!(unneeded(["cache", "cache/in", "kept/cache", "kept/cache/in"]), [""; 0]);
    for folder in ["kept", "kept/in", "partly", "partly/in", "renamed/in"] {
        assert!(watched(folder), "{folder} may hold files of the set");
    }
    std::fs::create_dir_all(world.folder.join("new/cache/in")).unwrap();
    std::fs::rename(world.folder.join("renamed"), world.folder.join("kept/in/cache")).unwrap();
    world.write("marker", "1");
    eventually("a later change is recorded", || world.keys().contains(&"marker".to_owned()));
    eventually("a new folder is watched", || watched("new"));
    assert_eq!(
        unneeded(["new/cache", "new/cache/in", "kept/in/cache", "kept/in/cache/in"]),
        [""; 0]
    );
    // A folder that is not excluded any more is watched again.
    std::fs::rename(world.folder.join("cache"), world.folder.join("shown")).unwrap();
    eventually("a folder that came in is recorded", || {
        world.keys().contains(&"shown/in/file".to_owned())
    });
    world.write("shown/in/later", "1");
    eventually("it is watched", || world.keys().contains(&"shown/in/later".to_owned()));
    watch.stop();
}

#[test]
fn a_file_being_written_is_not_published() {
    let world = World::new();
    let watch = start(&world);
    let mut writer = std::fs::File::create(world.folder.join("growing")).unwrap();
    writer.write_all(b"first half").unwrap();
    writer.flush().unwrap();
    // A later file is recorded first: the watch could have published the first file by then.
    world.write("marker", "1");
    eventually("the later file is recorded", || world.keys() == ["marker"]);
    writer.write_all(b", second half").unwrap();
    drop(writer);
    eventually("the whole file is recorded", || world.keys() == ["growing", "marker"]);
    assert_eq!(world.changes(), ["created marker", "created growing"]);
    watch.stop();
}

#[test]
fn a_file_shortened_by_its_path_is_published_soon() {
    let world = World::new();
    world.write("a", "four");
    let watch = start(&world);
    let begun = Instant::now();
    // As by SFTP and truncate(2): no process opens or closes the file.
    nix::unistd::truncate(&world.folder.join("a"), 1).unwrap();
    eventually("the shorter file is recorded", || world.changes() == ["updated a"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "long before a file counts as abandoned");
    // A file that a process has open is not read yet.
    let mut writer = std::fs::File::create(world.folder.join("open")).unwrap();
    writer.write_all(b"first half").unwrap();
    nix::unistd::truncate(&world.folder.join("a"), 0).unwrap();
    eventually("a later one passes it", || world.changes() == ["updated a", "updated a"]);
    assert_eq!(world.keys(), ["a"]);
    drop(writer);
    eventually("it is recorded when it is closed", || world.keys() == ["a", "open"]);
    watch.stop();
}

#[test]
fn a_file_replaced_by_rename_is_updated_once() {
    let world = World::new();
    world.write("a", "1");
    let watch = start(&world);
    world.write(".a.tmp", "22");
    std::fs::rename(world.folder.join(".a.tmp"), world.folder.join("a")).unwrap();
    eventually("the replacement is recorded", || !world.changes().is_empty());
    world.write("marker", "1");
    eventually("a later change is recorded", || world.changes().len() > 1);
    assert_eq!(world.changes(), ["updated a", "created marker"]);
    watch.stop();
}

#[test]
fn a_vanished_root_deletes_nothing_and_is_picked_up_again() {
    let world = World::new();
    world.write("a", "1");
    let watch = start(&world);
    let aside = world.temporary.path().join("aside");
    std::fs::rename(&world.folder, &aside).unwrap();
    std::fs::create_dir(&world.folder).unwrap();
    // An event makes the watch check the folder: it must detect that another, empty folder is at
    // the path.
    std::fs::write(aside.join("b"), "1").unwrap();
    eventually("the loss is noticed", || matches!(watch.status().state(), WatchState::Vanished(_)));
    assert_eq!(world.keys(), ["a"]);
    std::fs::remove_dir(&world.folder).unwrap();
    std::fs::rename(&aside, &world.folder).unwrap();
    eventually("the folder is read again", || world.keys() == ["a", "b"]);
    assert_eq!(world.changes(), ["created b"]);
    watch.stop();
}

#[test]
fn many_changes_at_once_are_all_recorded() {
    let world = World::new();
    let watch = start(&world);
    for number in 0..2_000 {
        world.write(&format!("d{}/f{number}", number % 20), "1");
    }
    eventually("all are recorded", || world.keys().len() == 2_000);
    std::fs::remove_dir_all(world.folder.join("d7")).unwrap();
    eventually("a removed folder of them too", || world.keys().len() == 1_900);
    watch.stop();
}

#[test]
fn without_events_scans_find_everything() {
    let world = World::new();
    world.write("old", "1");
    let mut options = WatchOptions::new(&world.folder);
    options.events = false;
    options.rescan = Duration::from_millis(50);
    options.ingest.settle = Duration::from_millis(10);
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    eventually("the first scan ends", || world.keys() == ["old"]);
    world.write("new/a", "1");
    eventually("a new file is found", || world.keys() == ["new/a", "old"]);
    std::fs::remove_file(world.folder.join("old")).unwrap();
    eventually("a deletion is found", || world.keys() == ["new/a"]);
    watch.stop();
}

#[test]
fn changes_too_many_to_follow_are_found_by_a_scan() {
    let world = World::new();
    world.write("old", "1");
    let mut options = WatchOptions::new(&world.folder);
    // The debounce is longer than the test, and no scan is due: only lost events cause a scan.
    options.debounce = Duration::from_secs(3_600);
    options.rescan = Duration::ZERO;
    options.ingest.settle = Duration::ZERO;
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    // Names that are created and deleted cause events like other names, and no work for a scan.
    world.write("new", "1");
    for number in 0..51_000 {
        let path = world.folder.join(number.to_string());
        std::fs::write(&path, "").unwrap();
        std::fs::remove_file(path).unwrap();
    }
    eventually("a scan is made", || world.keys().contains(&"new".to_owned()));
    watch.stop();
}

#[test]
fn a_store_in_the_folder_is_not_published() {
    let world = World::new();
    world.write(".abreast/source.db", "1");
    world.write("a", "1");
    let watch = start(&world);
    world.write(".abreast/source.db-wal", "1");
    world.write("deep/.abreast/documents/1.document", "1");
    world.write("b", "1");
    eventually("a later change is recorded", || world.keys().contains(&"b".to_owned()));
    assert_eq!(world.keys(), ["a", "b"]);
    watch.stop();
}

#[test]
fn all_resources_of_a_removed_folder_are_deleted() {
    use abreast_core::{Change, State};
    let world = World::new();
    world.write("a", "1");
    let watch = start_with(&world, |options| options.hold_deletions = Duration::ZERO);
    let keys: Vec<_> = (0..50_100).map(|number| format!("b/{number}")).collect();
    for keys in keys.chunks(10_000) {
        let puts = keys.iter().map(|key| Change::put(key, State::default())).collect();
        abreast_core::append(&*world.log, world.set, puts).unwrap();
    }
    std::fs::create_dir(world.folder.join(".b")).unwrap();
    std::fs::rename(world.folder.join(".b"), world.folder.join("b")).unwrap();
    std::fs::remove_dir(world.folder.join("b")).unwrap();
    eventually("all are gone", || world.log.head(world.set).unwrap().resources == 1);
    watch.stop();
}

#[test]
fn links_come_and_go_with_the_folder_of_their_targets() {
    let world = World::new();
    for name in ["a", "b", "meta/a.xml", "meta/b.xml"] {
        world.write(name, name);
    }
    let link = LinkRecord {
        rel: "describedby".to_owned(),
        href: "meta/{name}.xml".to_owned(),
        ..LinkRecord::default()
    };
    let rule = RuleOptions { pattern: "*".to_owned(), link, if_exists: true };
    let links = Links::new(&[rule], &world.published().urls.resources()).unwrap();
    let watch = start_with(&world, |options| options.ingest.links = Arc::new(links));
    watch.status().confirm_deletions();
    let linked = || {
        let of = |key: &str| world.log.resource(world.set, key).unwrap().unwrap().state.links.len();
        of("a") + of("b")
    };
    assert_eq!(linked(), 2);
    let (meta, away) = (world.folder.join("meta"), world.temporary.path().join("away"));
    std::fs::rename(&meta, &away).unwrap();
    eventually("both links are gone", || linked() == 0);
    std::fs::rename(&away, &meta).unwrap();
    eventually("both links are back", || linked() == 2);
    std::fs::remove_dir_all(&meta).unwrap();
    eventually("both links are gone again", || linked() == 0);
    world.write("meta/a.xml", "again");
    eventually("one is there again", || linked() == 1);
    watch.stop();
}

#[test]
fn a_file_whose_uri_is_too_long_does_not_disturb_the_others() {
    let world = World::new();
    let folder = format!("{}/", "\u{4e00}".repeat(83)).repeat(11);
    std::fs::create_dir_all(world.folder.join(&folder)).unwrap();
    let watch = start(&world);
    let scanned = watch.status().last_scan();
    world.write(&format!("{folder}x"), "1");
    world.write("marker", "1");
    eventually("the other is recorded", || world.keys() == ["marker"]);
    world.write("later", "1");
    eventually("a later one is recorded", || world.keys() == ["later", "marker"]);
    assert_eq!(watch.status().last_scan(), scanned, "nothing failed, and nothing was read anew");
    watch.stop();
}

#[test]
fn no_half_written_file_is_recorded_however_it_is_written() {
    use md5::{Digest as _, Md5};
    use std::collections::HashSet;
    use std::sync::Mutex;
    let world = World::new();
    world.write("first", "1");
    // With the default waits, a closed file is recorded immediately.
    let watch = Watch::start(WatchOptions::new(&world.folder), Arc::clone(&world.log), world.set);
    eventually("the first scan ends", || watch.status().state() == WatchState::Watching);
    let whole = Mutex::new(HashSet::new());
    let until = std::time::Instant::now() + Duration::from_secs(4);
    let write = |writer: u32| {
        let mut number = 0_u32;
        while std::time::Instant::now() < until {
            number += 1;
            let half = format!("{writer} {number} ").repeat(1 + number as usize * 37 % 5_000);
            let content = format!("{half}{half}");
            let digest = abreast_webtypes::Digests {
                md5: Some(Md5::digest(&content).into()),
                ..Default::default()
            };
            whole.lock().unwrap().insert(digest.to_string());
            let path = world.folder.join(format!("{writer}-{}", number % 3));
            let (temporary, renamed) =
                (world.folder.join(format!(".{writer}")), number.is_multiple_of(4));
            let mut file = std::fs::File::create(if renamed { &temporary } else { &path }).unwrap();
            file.write_all(half.as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(u64::from(number * 7 % 40)));
            file.write_all(half.as_bytes()).unwrap();
            drop(file);
            if renamed {
                std::fs::rename(temporary, path).unwrap();
            }
            std::thread::sleep(Duration::from_millis(u64::from(number * 11 % 60)));
        }
    };
    std::thread::scope(|scope| {
        let write = &write;
        (0..4).for_each(|writer| drop(scope.spawn(move || write(writer))));
    });
    let whole = whole.into_inner().unwrap();
    eventually("all are recorded", || world.keys().len() == 13);
    let (mut records, mut torn) = (0, Vec::new());
    world
        .log
        .read(world.set, abreast_core::Position(0), &mut |record| {
            records += 1;
            let digests = record.state.as_ref().map(|state| state.digests.to_string());
            let length = record.state.as_ref().and_then(|state| state.length);
            torn.extend(
                digests
                    .filter(|digests| !whole.contains(digests))
                    .map(|_| (record.key.clone(), length)),
            );
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(records > 20 && torn.is_empty(), "{records} changes, torn: {torn:?}");
    watch.stop();
}

#[test]
fn a_store_removed_while_watching_is_a_failure_without_loss() {
    let world = World::begun();
    let watch = start(&world);
    let (store, aside) =
        (world.temporary.path().join("source.db"), world.temporary.path().join("aside.db"));
    std::fs::rename(&store, &aside).unwrap();
    world.write("new", "1");
    eventually("the failure is reported", || match watch.status().state() {
        WatchState::Failed(reason) => {
            reason.contains("was removed while it was open") && reason.contains("help:")
        }
        _ => false,
    });
    assert!(world.keys().is_empty(), "a change that would be lost is not recorded");
    std::fs::rename(&aside, &store).unwrap();
    eventually("the new file is recorded", || world.keys() == ["new"]);
    eventually("the failure is over", || watch.status().state() == WatchState::Watching);
    watch.stop();
}

#[test]
fn a_copy_that_cannot_be_kept_is_a_failure_of_the_store() {
    let world = World::new();
    world.write("new", "1");
    let place = world.temporary.path().join("contents");
    let contents = abreast_contents::Contents::open(&place).unwrap();
    // After a failure of the disk, the contents accept no writes until they are opened again.
    let kept = contents.put_bytes(&vec![b'x'; 100_000]).unwrap();
    let part = place.join(&kept.id().to_string()[..2]);
    std::fs::rename(&part, place.join("aside")).unwrap();
    std::fs::write(&part, "no folder").unwrap();
    contents.sync().unwrap_err();
    let mut options = WatchOptions::new(&world.folder);
    options.ingest.settle = Duration::ZERO;
    options.ingest.contents = Some(Arc::new(contents));
    let watch = Watch::start(options, Arc::clone(&world.log), world.set);
    eventually("the failure is reported", || match watch.status().state() {
        WatchState::Failed(reason) => reason.contains("cannot keep a copy of `new` in the store"),
        _ => false,
    });
    assert!(world.keys().is_empty());
    watch.stop();
}

#[test]
fn what_a_set_has_at_first_is_added_to_its_log() {
    let world = World::begun();
    world.write("a", "1");
    world.write("b/c", "1");
    let kinds = || {
        let mut kinds = Vec::new();
        world
            .log
            .read(world.set, Position(0), &mut |record| {
                kinds.push((record.kind, record.key.clone()));
                ControlFlow::Continue(())
            })
            .unwrap();
        kinds.sort_by(|one, two| one.1.cmp(&two.1));
        kinds
    };
    let initial = |options: &mut WatchOptions| options.initial_changes = true;
    let watch = start_with(&world, initial);
    let change = |kind, key: &str| (kind, key.to_owned());
    // Files that were written just before are recorded too.
    assert_eq!(kinds(), [change(Kind::Add, "a"), change(Kind::Add, "b/c")]);
    world.write("new", "1");
    eventually("a new file is recorded", || kinds().len() == 3);
    assert_eq!(kinds()[2], change(Kind::Create, "new"));
    watch.stop();
    world.write("newer", "1");
    let watch = start_with(&world, initial);
    eventually("a file is found at the start", || kinds().len() == 4);
    assert_eq!(kinds()[3], change(Kind::Create, "newer"));
    watch.stop();
}
