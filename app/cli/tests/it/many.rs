//! Very many names in one folder, and folders very deep: handled without recursion, within limits,
//! and told.

use crate::world::{Source, sync};
use abreast_folder::{Dir, Folder};
use abreast_testkit::folder::{assert_equal, files};
use std::fs;
use std::path::Path;

/// `ABREAST_TEST_NAMES` asks for another number.
const NAMES: usize = 20_000;
const DEPTH: usize = 10_000;
/// How deep a file lies that is still published: its path is within the limits.
const REACHED: usize = 1_000;

/// Folders in folders, made and removed one level at a time: no path leads to the deepest.
struct Deep<'a>(&'a Path);

impl<'a> Deep<'a> {
    fn make(top: &'a Path) -> Self {
        fs::create_dir(top).unwrap();
        let mut dir: Dir = Folder::open(top).unwrap().root();
        for level in 0..DEPTH {
            dir.create_dir(b"d").unwrap();
            dir = dir.dir(b"d").unwrap();
            if level + 1 == REACHED {
                drop(dir.create_new(b"published").unwrap());
            }
        }
        drop(dir.create_new(b"too-deep").unwrap());
        Self(top)
    }
}

impl Drop for Deep<'_> {
    fn drop(&mut self) {
        let root = Folder::open(self.0).unwrap().root();
        // The inner folder takes the place of the outer one, until none is left.
        while let Ok(outer) = root.dir(b"d") {
            for entry in outer.list().unwrap() {
                if entry.name == b"d" {
                    outer.rename(b"d", &root, b"next").unwrap();
                } else {
                    outer.unlink(&entry.name).unwrap();
                }
            }
            root.rmdir(b"d").unwrap();
            let _ = root.rename(b"next", &root, b"d");
        }
    }
}

#[test]
fn many_names_and_deep_folders_are_published_and_copied() {
    let names = std::env::var("ABREAST_TEST_NAMES")
        .ok()
        .and_then(|names| names.parse().ok())
        .unwrap_or(NAMES);
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    let many = original.join("many");
    fs::create_dir_all(&many).unwrap();
    for number in 0..names {
        fs::write(many.join(format!("{number:07}")), "").unwrap();
    }
    let top = original.join("deep");
    let _deep = Deep::make(&top);
    let copied_top = copy.join("deep");
    let begun = std::time::Instant::now();
    let source = Source::start(&original, 0, &[]);
    println!("published after {:?}", begun.elapsed());
    let list = String::from_utf8(source.get("/set/resourcelist.xml").unwrap()).unwrap();
    assert!(!list.contains("too-deep"));
    let begun = std::time::Instant::now();
    let summary = sync(&source.url(), &copy, 0, &[]);
    println!("copied after {:?}: {summary}", begun.elapsed());
    assert_eq!(summary["created"], names + 1);
    assert_eq!(files(&copy).len(), names + 1);
    assert_equal(&original, &copy);

    // One change among them costs one request for what changed.
    fs::write(many.join("0000000"), "changed").unwrap();
    abreast_testkit::eventually("the change is published", || {
        source
            .get("/set/changelist.xml")
            .is_some_and(|list| String::from_utf8_lossy(&list).contains("0000000"))
    });
    let summary = sync(&source.url(), &copy, 0, &[]);
    assert_eq!(
        (&summary["updated"], &summary["mode"]),
        (&1.into(), &"incremental".into()),
        "{summary}"
    );
    drop(source);
    drop(Deep(&copied_top));
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn the_threads_of_a_server_share_few_heaps() {
    let place = tempfile::tempdir().unwrap();
    let source = Source::start(place.path(), 0, &[]);
    let process = format!("/proc/{}", source.pid());
    let environment = std::fs::read_to_string(format!("{process}/environ")).unwrap();
    assert!(
        environment.split('\0').any(|variable| variable == "MALLOC_ARENA_MAX=2"),
        "{environment}"
    );
    let arguments = std::fs::read_to_string(format!("{process}/cmdline")).unwrap();
    assert!(
        arguments.starts_with(env!("CARGO_BIN_EXE_abreast")) && arguments.contains("\0serve\0"),
        "{arguments}"
    );
    assert_eq!(
        std::fs::read_to_string(format!("{process}/comm")).unwrap().trim(),
        "abreast",
        "as `ps` shows it"
    );
    assert_eq!(source.stop(), Some(0));
}
