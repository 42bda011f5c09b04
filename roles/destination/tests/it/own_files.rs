//! Files of the user in the folder of a copy, and other copies in it.

use crate::copy::{Copy, Ran, files};
use crate::source::{Source, list_of};
use abreast_destination::{
    Graph, NQuadsOptions, OpenStore, OxigraphOptions, SinkOptions, WarcOptions,
};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::pages::Server;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let mut saved = files(&copy.place.path().join("saved"));
    assert!(saved.remove(".abreast-backup").is_some(), "no Source publishes it");
    let saved: Vec<Vec<u8>> = saved.into_values().collect();
    assert_eq!(saved, [&b"by hand"[..], b"by hand too"]);
}

fn nquads() -> SinkOptions {
    SinkOptions::NQuads(NQuadsOptions::default())
}

/// A store that the caller has opened.
fn oxigraph() -> SinkOptions {
    let store = Some(OpenStore::new(oxigraph::store::Store::new().unwrap()));
    SinkOptions::Oxigraph(OxigraphOptions { graph: Graph::Default, store })
}

/// The user's change of the file `a` while the run requests a resource.
type Edit = fn(&Path);

#[test]
fn files_edited_during_a_download_are_never_lost() {
    let large = "0123456789abcdef".repeat(200_000);
    let edits: [(&str, Edit); 3] = [
        ("written in place", |path| std::fs::write(path, "by hand").unwrap()),
        ("replaced by a rename", |path| {
            std::fs::write(path.with_extension("new"), "by hand").unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        }),
        ("of the same length", |path| {
            let length = std::fs::metadata(path).map_or(3, |file| file.len()) as usize;
            std::fs::write(path, "by hand".repeat(length / 7 + 1).split_at(length).0).unwrap();
        }),
    ];
    // The Source's change of `/d/a`, and the resource during whose request the edit happens.
    let changes: [(&str, &str, Option<&str>); 5] = [
        ("updated", "/d/a", Some("two")),
        ("updated with much", "/d/a", Some(&large)),
        ("created", "/d/a", Some("two")),
        ("found current by the server", "/d/a", Some("one")),
        ("deleted", "/d/z", None),
    ];
    for ((how, edit), (what, requested, new), immutable) in edits
        .into_iter()
        .flat_map(|edit| changes.map(|change| (edit, change)))
        .flat_map(|(edit, change)| [false, true].map(|immutable| (edit, change, immutable)))
    {
        let mut source = Source::new();
        if what != "created" {
            source.set("/d/a", "one");
        }
        source.set("/d/b", "stays");
        source.snapshot();
        let mut copy = Copy::of(source.url());
        copy.options.base = Some(source.server.url("/d/"));
        copy.options.backup_dir = Some(copy.place.path().join("saved"));
        copy.options.immutable = immutable;
        copy.run();
        match new {
            Some(text) => source.set("/d/a", text),
            None => source.delete("/d/a"),
        }
        let is_current = what.starts_with("found current");
        if is_current {
            // If no digest is listed, the server is asked.
            let digest = format!("hash=\"md5:{}\" ", md5_hex(b"one"));
            source.changes = source.changes.replace(&digest, "").replace("2025-06", "2025-07");
        }
        source.set("/d/z", "another");
        let (path, armed) = (copy.folder().join("a"), AtomicBool::new(true));
        source.server.handler(move |path_requested, _| {
            if path_requested == requested && armed.swap(false, Ordering::Relaxed) {
                edit(&path);
            }
            None
        });
        let mut ran = copy.try_run();
        let what = format!("{what}, {how}, immutable: {immutable}");
        let edited = |bytes: &[u8]| bytes.starts_with(b"by ");
        let mut new = new;
        if is_current {
            assert_eq!((ran.exit(), ran.codes.len()), (0, 0), "{what}: {:?}", ran.codes);
            assert!(edited(copy.read("a").unwrap().as_bytes()), "{what}");
            source.set("/d/a", "two");
            (ran, new) = (copy.try_run(), Some("two"));
        }
        let mut all = files(&copy.place.path().join("saved"));
        all.extend(files(copy.folder()));
        assert!(all.values().any(|bytes| edited(bytes)), "{what}: {:?} {all:?}", ran.codes);
        let own = copy.read("a");
        if immutable {
            assert!(edited(own.unwrap().as_bytes()), "{what}: {:?}", ran.codes);
            assert_eq!(ran.codes.last().unwrap(), "local.changed", "{what}: {:?}", ran.codes);
        } else {
            assert_eq!(own.as_deref(), new, "{what}: {:?}", ran.codes);
            assert_eq!(ran.codes.last().unwrap(), "local.backup", "{what}: {:?}", ran.codes);
        }
    }
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

/// What happens to the folder of a copy.
type Loss = fn(&Path);

#[test]
fn a_folder_that_is_not_the_copys_is_refused() {
    let losses: [(&str, Loss); 3] = [
        ("missing", |folder| std::fs::remove_dir_all(folder).unwrap()),
        ("not mounted", |folder| {
            std::fs::remove_dir_all(folder).unwrap();
            std::fs::create_dir(folder).unwrap();
        }),
        ("another one", |folder| {
            std::fs::remove_dir_all(folder).unwrap();
            std::fs::create_dir_all(folder.join("mine")).unwrap();
            std::fs::write(folder.join("mine/a"), "mine").unwrap();
        }),
    ];
    let sinks =
        [SinkOptions::Folder, SinkOptions::Warc(WarcOptions::default()), nquads(), oxigraph()];
    for ((what, lose), sink) in
        losses.into_iter().flat_map(|loss| sinks.clone().map(|sink| (loss, sink)))
    {
        let what = format!("{what}: {sink:?}");
        let mut source = Source::of_statements();
        source.set("/a", "1");
        source.set("/b", "1");
        source.snapshot();
        let mut copy = Copy::kept_in(&source, |_| sink);
        copy.options.state = Some(copy.place.path().join("state"));
        assert_eq!(copy.run().created, 2, "{what}");
        lose(copy.folder());
        let before = everything(copy.folder());
        for dry_run in [true, false, false] {
            copy.options.dry_run = dry_run;
            let ran = copy.try_run();
            assert_eq!((ran.exit(), ran.code()), (2, "folder.lost"), "{what}");
            assert!(ran.result.unwrap_err().help().unwrap().contains("--baseline"), "{what}");
            assert_eq!(everything(copy.folder()), before, "{what}: something was made");
        }
        // The solution in the help text.
        source.delete("/b");
        source.snapshot();
        copy.options.baseline = true;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.count("local.restored")), (0, 1), "{what}: {:?}", ran.codes);
        let audit = copy.audit(true);
        assert_eq!((audit.same, audit.updated, audit.missing), (1, 0, 0), "{what}");
        copy.options.baseline = false;
        assert_eq!(copy.try_run().codes, [""; 0], "{what}");
    }
}

/// Every path below a folder, including the state; `None` if the folder is missing.
fn everything(folder: &Path) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(next).ok()?.flatten() {
            all.push(entry.path().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    all.sort();
    Some(all)
}

#[test]
fn a_failed_first_run_removes_only_what_it_made() {
    let sinks = [SinkOptions::Folder, SinkOptions::Warc(WarcOptions::default()), nquads()];
    for sink in sinks {
        let mut copy = Copy::of("http://127.0.0.1:1/caps.xml");
        copy.options.sink = sink;
        copy.options.state = Some(copy.place.path().join("state"));
        let own = ["state/mine", "state/partial", "state/backup", "copy/mine", "copy/archive"];
        for folder in own {
            std::fs::create_dir_all(copy.place.path().join(folder)).unwrap();
        }
        let before = everything(copy.place.path());
        let ran = copy.try_run();
        assert_ne!(ran.exit(), 0);
        assert_eq!(everything(copy.place.path()), before, "{:?}", copy.options.sink);
    }
}
