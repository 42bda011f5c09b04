//! Scans: the changes that they find, and faults that must not count as changes.

use crate::world::World;
use abreast_source::{Deletions, Held, ScanOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::time::Duration;

#[test]
fn the_first_scan_is_the_base_and_makes_no_changes() {
    let world = World::new();
    world.write("b", "1");
    world.write("a/x.txt", "2");
    let report = world.scan();
    assert_eq!((report.files, report.ingest.recorded), (2, 2));
    world.log.complete_import(world.set).unwrap();
    assert_eq!(world.keys(), ["a/x.txt", "b"]);
    assert!(world.changes().is_empty());
    assert_eq!(world.scan().ingest.recorded, 0);
}

#[test]
fn scan_finds_changes_made_before_it() {
    let world = World::begun();
    world.write("same", "1");
    world.write("edited", "1");
    world.write("gone", "1");
    world.write("dir/moved", "1");
    world.scan();
    world.write("edited", "22");
    std::fs::remove_file(world.folder.join("gone")).unwrap();
    std::fs::rename(world.folder.join("dir"), world.folder.join("folder")).unwrap();
    world.write("new", "1");
    let before = world.changes().len();
    world.scan();
    let mut changes = world.changes().split_off(before);
    changes.sort();
    assert_eq!(
        changes,
        [
            "created folder/moved",
            "created new",
            "deleted dir/moved",
            "deleted gone",
            "updated edited"
        ]
    );
}

#[test]
fn content_changed_under_the_same_mtime_and_size_is_found() {
    let world = World::begun();
    world.write("a", "one");
    world.scan();
    let path = world.folder.join("a");
    let mtime = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, "two").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(mtime).unwrap();
    world.scan();
    assert_eq!(world.changes().last().unwrap(), "updated a");
}

#[test]
fn reading_all_finds_nothing_in_an_unchanged_folder() {
    let world = World::begun();
    world.write("a", "one");
    world.scan();
    let report = world.scan_with(|options| options.read_all = true);
    assert_eq!((report.ingest.recorded, report.ingest.unchanged), (0, 1));
}

#[test]
fn files_and_folders_may_take_each_others_place() {
    let world = World::begun();
    world.write("a", "file");
    world.write("b/c", "in a folder");
    world.scan();
    std::fs::remove_file(world.folder.join("a")).unwrap();
    std::fs::remove_dir_all(world.folder.join("b")).unwrap();
    world.write("a/x", "in a folder now");
    world.write("b", "file now");
    world.write("a.txt", "between `a` and `a/x` in byte order");
    world.write("a-b/x", "also between");
    world.scan();
    assert_eq!(world.keys(), ["a-b/x", "a.txt", "a/x", "b"]);
}

#[test]
fn links_hidden_files_and_pipes_are_not_published() {
    let world = World::begun();
    world.write("real", "1");
    world.write(".hidden", "1");
    world.write(".git/config", "1");
    world.write("draft~", "1");
    symlink("/etc", world.folder.join("etc")).unwrap();
    symlink("real", world.folder.join("alias")).unwrap();
    symlink(".", world.folder.join("loop")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        world.folder.join("pipe"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    std::fs::hard_link(world.folder.join("real"), world.folder.join("second name")).unwrap();
    world.scan();
    assert_eq!(world.keys(), ["real", "second%20name"]);
}

#[test]
fn odd_names_become_encoded_keys_in_byte_order() {
    let world = World::begun();
    for name in [
        &b"new\nline"[..],
        b"<&\"'>",
        b"100%",
        b"%41",
        b"\xff\xfe",
        "h\u{e9}".as_bytes(),
        b"a b",
        b"a:b",
        b"?x#y",
    ] {
        std::fs::write(world.folder.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    world.scan();
    assert_eq!(
        world.keys(),
        [
            "%2541",
            "%3C&%22'%3E",
            "%3Fx%23y",
            "%FF%FE",
            "100%25",
            "a%20b",
            "a%3Ab",
            "h%C3%A9",
            "new%0Aline"
        ]
    );
    let before = world.changes().len();
    world.scan();
    assert_eq!(world.changes().len(), before, "a second scan finds them again");
}

#[test]
fn an_emptied_root_deletes_nothing_until_it_is_confirmed() {
    let world = World::begun();
    world.write("a", "1");
    world.write("b/c", "1");
    world.scan();
    let before = world.changes().len();
    std::fs::rename(&world.folder, world.temporary.path().join("aside")).unwrap();
    std::fs::create_dir(&world.folder).unwrap();
    assert_eq!(world.scan().held, Some(Held { missing: 2, left_out: 0, of: 2, before: 0 }));
    assert_eq!(world.changes().len(), before);
    world.scan_with(|options| options.deletions = Deletions::Confirmed);
    assert!(world.keys().is_empty());
}

#[test]
fn the_loss_of_more_than_half_is_held_and_the_rest_recorded() {
    let world = World::begun();
    (0..20).for_each(|number| world.write(&format!("d/{number}"), "1"));
    world.scan();
    (0..11)
        .for_each(|number| std::fs::remove_file(world.folder.join(format!("d/{number}"))).unwrap());
    world.write("d/19", "22");
    assert_eq!(world.scan().held, Some(Held { missing: 11, left_out: 0, of: 20, before: 0 }));
    assert_eq!(
        (world.keys().len(), world.changes().last().unwrap().as_str()),
        (20, "updated d/19")
    );
    world.write("d/0", "1");
    assert_eq!(world.scan().held, None, "half is not more than half");
    assert_eq!(world.keys().len(), 10);
}

#[test]
fn a_folder_moved_within_the_folder_is_no_loss() {
    let world = World::begun();
    (0..20).for_each(|number| world.write(&format!("a/{number}"), "1"));
    world.scan();
    std::fs::rename(world.folder.join("a"), world.folder.join("b")).unwrap();
    assert_eq!(world.scan().held, None);
    assert!(world.keys().len() == 20 && world.keys().iter().all(|key| key.starts_with("b/")));
}

#[test]
fn more_deletions_than_fit_in_memory_are_judged_and_recorded() {
    use abreast_core::{Change, State};
    let world = World::begun();
    world.write("here", "1");
    let keys: Vec<_> = (0..60_000).map(|number| format!("gone/{number}")).collect();
    for keys in keys.chunks(10_000) {
        let puts = keys.iter().map(|key| Change::put(key, State::default())).collect();
        abreast_core::append(&*world.log, world.set, puts).unwrap();
    }
    assert_eq!(
        world.scan().held,
        Some(Held { missing: 60_000, left_out: 0, of: 60_000, before: 0 })
    );
    assert_eq!(world.log.head(world.set).unwrap().resources, 60_001);
    world.scan_with(|options| options.deletions = Deletions::Confirmed);
    assert_eq!(world.keys(), ["here"]);
}

#[test]
fn a_file_that_somebody_has_open_for_writing_is_left_alone() {
    use std::io::Write as _;
    let world = World::begun();
    let mut writer = std::fs::File::create(world.folder.join("half")).unwrap();
    writer.write_all(b"first half").unwrap();
    world.write("whole", "1");
    std::thread::sleep(Duration::from_millis(1_200));
    let settle = |options: &mut ScanOptions| options.ingest.settle = Duration::from_secs(1);
    let report = world.scan_with(settle);
    assert_eq!(
        (world.keys(), report.ingest.deferred),
        (vec!["whole".to_owned()], vec![b"half".to_vec()])
    );
    writer.write_all(b", second half").unwrap();
    drop(writer);
    std::thread::sleep(Duration::from_millis(1_200));
    world.scan_with(settle);
    assert_eq!(world.keys(), ["half", "whole"]);
}

#[test]
fn a_file_written_just_now_is_read_later() {
    let world = World::begun();
    let _writer = std::fs::File::create(world.folder.join("fresh")).unwrap();
    let folder = abreast_folder::Folder::open(&world.folder).unwrap();
    let options = abreast_source::ScanOptions::default();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let report =
        abreast_source::scan(&folder, b"", &*world.log, world.set, &options, &stop).unwrap();
    assert_eq!(report.ingest.deferred, [b"fresh".to_vec()]);
    assert!(world.keys().is_empty());
}

#[test]
fn deep_folders_and_many_names_need_no_recursion() {
    let world = World::begun();
    let deep = "d/".repeat(400) + "end";
    world.write(&deep, "1");
    for number in 0..3_000 {
        world.write(&format!("many/{number}"), "1");
    }
    let report = world.scan();
    assert_eq!(report.files, 3_001);
    assert_eq!(report.ingest.problem_count, 0, "{:?}", report.ingest.problems);
    assert_eq!(world.scan().ingest.recorded, 0);
}

#[test]
fn digests_are_of_the_bytes_small_and_large() {
    use md5::{Digest as _, Md5};
    let world = World::begun();
    let large = "0123456789".repeat(100_000);
    world.write("large", &large);
    world.write("small", "hello");
    world.write("empty", "");
    world.scan();
    let table = world.table();
    for (key, content) in [("large", large.as_str()), ("small", "hello"), ("empty", "")] {
        let digests = abreast_webtypes::Digests {
            md5: Some(Md5::digest(content).into()),
            ..Default::default()
        };
        assert_eq!(table[key], digests.to_string(), "{key}");
    }
}

#[test]
fn what_lies_in_an_unreadable_folder_stays_published() {
    use abreast_core::Change;
    let world = World::begun();
    // A folder whose path is too long cannot be read by any user; permissions would not apply to
    // root.
    let long = "d".repeat(200);
    let outer = format!("{long}/").repeat(17);
    let inner = format!("{outer}{long}");
    assert!(outer.len() < 3_500 && inner.len() > 3_500);
    world.write("a", "1");
    world.write("z", "1");
    let root = abreast_folder::Folder::open(&world.folder).unwrap();
    let mut dir = root.root();
    for name in inner.split('/') {
        dir.create_dir(name.as_bytes()).unwrap();
        dir = dir.dir(name.as_bytes()).unwrap();
    }
    drop(dir.create_new(b"file").unwrap());
    world.scan();
    let known = format!("{inner}/file");
    let state = world.log.resource(world.set, "a").unwrap().unwrap().state;
    let put = Change::put(known.clone(), state).with_witness(vec![1]);
    abreast_core::append(&*world.log, world.set, vec![put]).unwrap();
    std::fs::remove_file(world.folder.join("z")).unwrap();
    let report = world.scan();
    assert_eq!((report.ingest.problem_count, report.gone), (1, 1), "{:?}", report.ingest.problems);
    assert_eq!(world.keys(), ["a", known.as_str()]);
}

#[test]
fn what_lies_in_a_folder_without_permission_stays_published() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::begun();
    world.write("closed/b", "1");
    world.write("a", "1");
    world.scan();
    let closed = world.folder.join("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read_dir(&closed).is_ok() {
        println!("skipped: permissions do not bind this user");
        return;
    }
    let report = world.scan();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!((report.ingest.problem_count, report.gone), (1, 0));
    assert_eq!(world.keys(), ["a", "closed/b"]);
}
