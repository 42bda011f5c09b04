//! Files of the user in the folder of a copy, and other copies in it.

use crate::copy::{Copy, Ran, files};
use crate::source::{Source, list_of};
use abreast_testkit::pages::Server;
use std::collections::BTreeMap;

#[test]
fn files_changed_by_the_user_are_backed_up() {
    let mut source = Source::new();
    source.set("/d/a", "1");
    source.set("/d/b", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.backup_dir = Some(copy.place.path().join("saved"));
    copy.run();
    std::fs::write(copy.folder().join("a"), "by hand").unwrap();
    std::fs::write(copy.folder().join("b"), "by hand too").unwrap();
    source.set("/d/a", "2");
    source.delete("/d/b");
    copy.options.immutable = true;
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().skipped), (3, 1), "{:?}", ran.codes);
    assert_eq!(copy.read("a").as_deref(), Some("by hand"));
    copy.options.immutable = false;
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!(ran.codes, ["local.backup", "local.backup"]);
    assert_eq!(copy.texts(), BTreeMap::from([("a".to_owned(), "2".to_owned())]));
    let saved: Vec<Vec<u8>> = files(&copy.place.path().join("saved")).into_values().collect();
    assert_eq!(saved, [&b"by hand"[..], b"by hand too"]);
}

#[test]
fn foreign_files_are_kept_when_their_folder_empties() {
    let mut source = Source::new();
    source.set("/x", "1");
    source.set("/d/e/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    std::fs::write(copy.folder().join("d/mine"), "mine").unwrap();
    source.delete("/d/e/a");
    assert_eq!(copy.run().deleted, 1);
    assert_eq!(copy.paths(), ["d/mine", "x"]);
    assert!(!copy.folder().join("d/e").exists());
}

#[test]
fn identical_files_in_the_folder_are_adopted() {
    let mut source = Source::new();
    source.set("/a", "same");
    source.set("/b", "other");
    source.snapshot();
    let copy = Copy::of(source.url());
    std::fs::create_dir(copy.folder()).unwrap();
    std::fs::write(copy.folder().join("a"), "same").unwrap();
    std::fs::write(copy.folder().join("b"), "OTHER").unwrap();
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().unchanged, ran.summary().updated),
        (0, 1, 1),
        "{:?}",
        ran.codes
    );
    assert!(!source.server.take_log().contains(&"/a".to_owned()));
    assert_eq!(copy.read("b").as_deref(), Some("other"));
}

#[test]
fn two_runs_do_not_work_on_one_folder() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let lock =
        std::fs::File::options().write(true).open(copy.folder().join(".abreast/lock")).unwrap();
    lock.lock().unwrap();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (10, "locked"));
    drop(lock);
    assert_eq!(copy.try_run().exit(), 0);
}

#[test]
fn copies_inside_copies_are_refused() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    for (folder, state) in [("copy/sub", None), ("", None), ("copy", Some("elsewhere"))] {
        let mut options = copy.options.clone();
        options.folder = copy.place.path().join(folder);
        options.state = state.map(|state| copy.place.path().join(state));
        let ran = Ran::sync(&options);
        assert_eq!((ran.exit(), ran.code()), (2, "folder.overlap"), "{folder}");
    }
    let other = Server::start();
    list_of(&other, &["/z"]);
    let mut options = copy.options.clone();
    options.url = other.url("/list.xml");
    assert_eq!(Ran::sync(&options).code(), "folder.source");
}

#[test]
fn state_may_be_elsewhere() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.state = Some(copy.place.path().join("state"));
    assert_eq!(copy.run().created, 1);
    assert_eq!(copy.run().requests, 1);
    assert!(copy.place.path().join("state/mirror.db").exists());
    copy.options.state = None;
    assert_eq!(copy.try_run().code(), "folder.overlap");
}
