//! What a scan finds, and what it must not believe.

use crate::world::World;
use abreast_source::ScanError;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

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
fn scan_finds_what_changed_while_nobody_looked() {
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
    assert_eq!(changes, ["created folder/moved", "created new", "deleted dir/moved", "deleted gone", "updated edited"]);
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
    let report = world.try_scan(true).unwrap();
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
    rustix::fs::mkfifoat(rustix::fs::CWD, world.folder.join("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    std::fs::hard_link(world.folder.join("real"), world.folder.join("second name")).unwrap();
    world.scan();
    assert_eq!(world.keys(), ["real", "second%20name"]);
}

#[test]
fn odd_names_become_encoded_keys_in_byte_order() {
    let world = World::begun();
    for name in
        [&b"new\nline"[..], b"<&\"'>", b"100%", b"%41", b"\xff\xfe", "h\u{e9}".as_bytes(), b"a b", b"a:b", b"?x#y"]
    {
        std::fs::write(world.folder.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    world.scan();
    assert_eq!(
        world.keys(),
        ["%2541", "%3C&%22'%3E", "%3Fx%23y", "%FF%FE", "100%25", "a%20b", "a%3Ab", "h%C3%A9", "new%0Aline"]
    );
    let before = world.changes().len();
    world.scan();
    assert_eq!(world.changes().len(), before, "a second scan finds them again");
}

#[test]
fn an_emptied_or_vanished_root_deletes_nothing() {
    let world = World::begun();
    world.write("a", "1");
    world.write("b/c", "1");
    world.scan();
    let before = world.changes().len();
    let aside = world.temporary.path().join("aside");
    let folder = abreast_folder::Folder::open(&world.folder).unwrap();
    std::fs::rename(&world.folder, &aside).unwrap();
    std::fs::create_dir(&world.folder).unwrap();
    assert!(matches!(world.try_scan(false), Err(ScanError::Vanished(reason)) if reason.contains("empty")));
    assert_eq!(world.changes().len(), before);
    drop(folder);
}

#[test]
fn a_file_written_just_now_is_looked_at_later() {
    let world = World::begun();
    world.write("fresh", "half");
    let folder = abreast_folder::Folder::open(&world.folder).unwrap();
    let options = abreast_source::ScanOptions::default();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let report = abreast_source::scan(&folder, b"", &*world.log, world.set, &options, &stop).unwrap();
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
        let digests = abreast_webtypes::Digests { md5: Some(Md5::digest(content).into()), ..Default::default() };
        assert_eq!(table[key], digests.to_string(), "{key}");
    }
}

#[test]
fn what_lies_in_an_unreadable_folder_stays_published() {
    use abreast_core::{Action, Change};
    let world = World::begun();
    // A folder whose path is too long cannot be looked into, whoever asks; permissions would not stop root.
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
    let put = Change { key: known.clone(), action: Action::Put { state, witness: vec![1] }, idempotency_key: None };
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
