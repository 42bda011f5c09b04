//! Real collections: what people publish has odd names, links and sizes that nobody would make up.

use crate::world::{Source, abreast, audit, sync};
use abreast_testkit::folder::{assert_equal, copy_files, files, same};
use abreast_testkit::{Running, eventually_ok, provided};
use std::path::Path;
use std::process::Stdio;

fn mirrored_equal(original: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let copy = temporary.path().join("copy");
    let data = temporary.path().join("store");
    let source = Source::start(original, 0, &["--data", data.to_str().unwrap()]);
    let summary = sync(&source.url(), &copy, 0, &[]);
    assert_eq!(summary["created"].as_u64().unwrap(), files(original).len() as u64);
    assert_equal(original, &copy);
    assert_eq!(audit(&source.url(), &copy), 0);
}

#[test]
fn the_iso_codes_tree_is_mirrored() {
    if let Some(tree) = provided("iso-codes", "ABREAST_TEST_ISO_CODES_DIR") {
        mirrored_equal(&tree);
    }
}

#[test]
fn the_rdflib_distribution_is_mirrored() {
    if let Some(tree) = provided("rdflib", "ABREAST_TEST_RDFLIB_DIR") {
        mirrored_equal(&tree);
    }
}

#[test]
fn five_releases_of_brick_arrive_one_after_the_other() {
    let Some(releases) = provided("Brick", "ABREAST_TEST_BRICK_DIR") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("brick"), temporary.path().join("copy"));
    copy_files(&releases.join("1.1"), &original);
    let source = Source::start(&original, 0, &[]);
    let mut follower = abreast();
    follower.args(["sync", &source.url()]).arg(&copy).args([
        "--follow",
        "--interval",
        "50ms",
        "--quiet",
    ]);
    let _follower = Running(follower.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    eventually_ok("the first release is mirrored", || same(&files(&original), &files(&copy)));
    for release in ["1.2", "1.3", "1.4", "1.5"] {
        copy_files(&releases.join(release), &original);
        eventually_ok("the next release is mirrored", || same(&files(&original), &files(&copy)));
    }
    assert_eq!(audit(&source.url(), &copy), 0);
}
