//! A Source that changes without pause while it is listed and copied: what was listed and the changes since are all of it.

use super::{Copy, seeds};
use crate::crash::{spawn, writer};
use crate::world::{Source, assert_equal, eventually, files};
use abreast_destination::{Dumps, MaxDelete, Mode};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clients that read at the same time.
const CLIENTS: usize = 4;

/// Rounds: ten runs and more, together.
const ROUNDS: u64 = 3;

/// What never changes, so that a list takes a while.
const STILL: usize = 400;

fn begin(original: &Path) {
    fs::create_dir_all(original.join("still")).unwrap();
    for number in 0..STILL {
        fs::write(original.join(format!("still/s{number}")), format!("still {number}")).unwrap();
    }
    for number in 0..60 {
        crate::crash::write_version(original, number, 0);
    }
}

/// Copies by several clients while everything changes; then the changes since are applied, and nothing else is.
fn copied_during_change(dumps: Dumps, serve: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    begin(&original);
    let source = Source::start(&original, 0, serve);
    if dumps == Dumps::Always {
        eventually("the dump is there", || source.get("/set/resourcedump.xml").is_some());
    }
    for seed in seeds(ROUNDS) {
        eprintln!("repeat with ABREAST_TEST_SEED={seed}");
        let stop = Arc::new(AtomicBool::new(false));
        let writers =
            [spawn(writer(original.clone(), seed), &stop), spawn(writer(original.clone(), seed + 500), &stop)];
        let folders: Vec<PathBuf> =
            (0..CLIENTS).map(|client| place.path().join(format!("copy{seed}-{client}"))).collect();
        let copies: Vec<Copy> = folders
            .iter()
            .map(|folder| {
                let mut copy = Copy::of(source.url(), folder);
                copy.options.dumps = dumps;
                copy.options.max_delete = MaxDelete::parse("100%").unwrap();
                copy
            })
            .collect();
        // Files that go or change before they are fetched are no error of the copy: the changes tell.
        std::thread::scope(|scope| {
            for copy in &copies {
                scope.spawn(|| {
                    let first = copy.run();
                    assert_eq!(first.summary().mode, Mode::Baseline, "seed {seed}");
                    for _ in 0..3 {
                        assert_ne!(copy.run().summary().mode, Mode::Baseline, "seed {seed}");
                    }
                });
            }
        });
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
        let marker = format!("marker{seed}");
        fs::write(original.join(&marker), &marker).unwrap();
        for (copy, folder) in copies.iter().zip(&folders) {
            let mut modes = BTreeSet::new();
            eventually("the copy follows", || {
                let ran = copy.run();
                modes.insert(format!("{:?}", ran.summary().mode));
                files(&original) == files(folder)
            });
            assert!(!modes.contains("Baseline"), "seed {seed}: {modes:?}");
            assert_equal(&original, folder);
        }
    }
}

#[test]
fn a_list_read_during_changes_and_the_changes_since_are_the_source() {
    copied_during_change(Dumps::Never, &["--changes-per-list", "50"]);
}

#[test]
fn a_dump_read_during_changes_and_the_changes_since_are_the_source() {
    copied_during_change(
        Dumps::Always,
        &["--changes-per-list", "50", "--dumps", "1s", "--dump-part-size", "1MiB", "--change-dumps"],
    );
}
