//! The contract of sinks that store each resource under a separate name, for runs that are killed
//! after they stored or deleted a resource and before the database records it.

use super::{Reader, seen};
use crate::copy::{self, Copy, Ran};
use crate::source::Source;
use abreast_destination::{Event, ItemAction, SinkOptions, sync};
use abreast_testkit::pages::Answer;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// A complete run whose database is then restored to its content at a kill right before the commit.
pub(crate) fn run_killed(copy: &Copy) {
    run_killed_at(
        copy,
        &|event| matches!(event, Event::Item(item) if item.action != ItemAction::Unchanged),
    );
}

/// A complete run whose database is then restored to its content at a kill during the first event
/// that `is_end` accepts.
pub(crate) fn run_killed_at(copy: &Copy, is_end: &(dyn Fn(&Event<'_>) -> bool + Sync)) {
    let state = copy.folder().join(".abreast");
    // The files to which the plan refers.
    let bodies = state.join("bodies");
    let planned = Mutex::new(Vec::new());
    let names = ["mirror.db", "mirror.db-wal"];
    let before: Mutex<Option<Vec<Option<Vec<u8>>>>> = Mutex::new(None);
    // Files that are only appended to before a commit, and overwritten after it, are put back too.
    let is_appended = matches!(copy.options.sink, SinkOptions::NQuads(_));
    let contents = Mutex::new(BTreeMap::new());
    let observer = |event: &Event<'_>| {
        let mut before = before.lock().unwrap();
        if before.is_none() && is_end(event) {
            *before = Some(names.iter().map(|name| std::fs::read(state.join(name)).ok()).collect());
            for entry in std::fs::read_dir(&bodies).into_iter().flatten().flatten() {
                planned.lock().unwrap().push((entry.path(), std::fs::read(entry.path()).unwrap()));
            }
            if is_appended {
                *contents.lock().unwrap() = copy::files(copy.folder());
            }
        }
    };
    sync(&copy.options, &observer, &AtomicBool::new(false)).unwrap();
    let before = before.into_inner().unwrap().expect("the run had something to do");
    let _ = std::fs::remove_file(state.join("mirror.db-shm"));
    for (path, bytes) in planned.into_inner().unwrap() {
        std::fs::create_dir_all(&bodies).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    if is_appended {
        for path in copy.paths() {
            std::fs::remove_file(copy.folder().join(path)).unwrap();
        }
        for (path, bytes) in contents.into_inner().unwrap() {
            std::fs::write(copy.folder().join(path), bytes).unwrap();
        }
    }
    for (name, bytes) in names.iter().zip(before) {
        let path = state.join(name);
        match bytes {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    }
}

/// After the next run, the copy equals the Source, whatever happened meanwhile, and no own file is
/// taken for somebody else's.
pub(crate) fn killed(sink: fn(&Path) -> SinkOptions, reader: Reader) {
    killed_with(Source::new, &sink, reader);
}

/// The same with other Sources; the sink is empty for each Source.
pub(crate) fn killed_with(
    new: fn() -> Source,
    sink: &dyn Fn(&Path) -> SinkOptions,
    reader: Reader,
) {
    type Step = fn(&mut Source);
    let text = "some text";
    let cases: [(&str, Step, Step); 9] = [
        ("created, then deleted", |source| source.set("/new", "1"), |source| source.delete("/new")),
        (
            "created, then updated",
            |source| source.set("/new", "1"),
            |source| source.set("/new", "2 longer"),
        ),
        ("created, then nothing", |source| source.set("/new", "1"), |_| {}),
        ("updated, then deleted", |source| source.set("/old", "1"), |source| source.delete("/old")),
        (
            "updated, then back",
            |source| source.set("/old", "1"),
            |source| source.set("/old", "some text"),
        ),
        (
            "updated, then again",
            |source| source.set("/old", "1"),
            |source| source.set("/old", "2 longer"),
        ),
        (
            "deleted, then back",
            |source| source.delete("/old"),
            |source| source.set("/old", "some text"),
        ),
        (
            "deleted, then other",
            |source| source.delete("/old"),
            |source| source.set("/old", "2 longer"),
        ),
        ("deleted, then nothing", |source| source.delete("/old"), |_| {}),
    ];
    for (what, first, then) in cases {
        for baseline in [false, true] {
            let what = format!("{what}{}", if baseline { ", compared with the list" } else { "" });
            let mut source = new();
            source.set("/old", text);
            source.set("/other", "stays");
            source.snapshot();
            let mut copy = Copy::kept_in(&source, sink);
            copy.options.immutable = true;
            copy.run();
            first(&mut source);
            run_killed(&copy);
            then(&mut source);
            if baseline {
                source.snapshot();
                copy.options.baseline = true;
            }
            let Ran { result, codes, .. } = copy.try_run();
            let summary = result.unwrap_or_else(|error| panic!("{what}: {error} {codes:?}"));
            assert_eq!(summary.exit_code, 0, "{what}: {codes:?}");
            assert!(codes.iter().all(|code| !code.starts_with("local.")), "{what}: {codes:?}");
            assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept), "{what}");
            assert_eq!(copy.audit(true).exit_code, 0, "{what}");
        }
    }
}

/// Killed twice: resources that the first run stored are known although the plan has changed since.
pub(crate) fn killed_twice(sink: fn(&Path) -> SinkOptions, reader: Reader) {
    killed_twice_with(Source::new(), &sink, reader);
}

/// The same with another Source.
pub(crate) fn killed_twice_with(
    mut source: Source,
    sink: &dyn Fn(&Path) -> SinkOptions,
    reader: Reader,
) {
    source.set("/other", "stays");
    source.snapshot();
    let copy = Copy::kept_in(&source, sink);
    copy.run();
    source.set("/new", "1");
    run_killed(&copy);
    source.set("/new", "2 longer");
    // Planned again, and killed before anything came.
    source.server.put("/new", Answer::status(503));
    let result = copy.try_run().result;
    assert_ne!(result.unwrap().exit_code, 0);
    source.delete("/new");
    assert_eq!(copy.run().exit_code, 0);
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));
}
