//! A Destination that takes resources out of the Source's packages, killed again and again, ends
//! with the Source.

use crate::dumps::changes;
use crate::world::{Source, abreast, audit, get, sync};
use abreast_resourcesync::v1_1::Change;
use abreast_testkit::folder::assert_equal;
use abreast_testkit::{Random, eventually, kills, seed};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// Kills while a package is received and taken apart.
const KILLS: u64 = 20;

#[test]
fn copy_from_packages_survives_kills_with_few_requests() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    for number in 0..3_000 {
        let folder = original.join(format!("d{}", number % 10));
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join(format!("f{number:04}")),
            format!("{number} ").repeat(1 + number % 700),
        )
        .unwrap();
    }
    fs::write(original.join("large"), vec![7; 3_000_000]).unwrap();
    let source = Source::start(&original, 0, &["--dumps", "1d", "--dump-part-size", "2MiB"]);
    eventually("the dump is there", || {
        matches!(get(&source.address, "/set/resourcedump.xml"), Some((200, _)))
    });
    let url = source.url();
    let mut random = Random::new(seed(7));
    for _ in 0..kills(KILLS) {
        let mut run = abreast()
            .args(["sync", &url, "--dumps", "always", "--quiet"])
            .arg(&copy)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(20 + random.below(200)));
        let _ = run.kill();
        run.wait().unwrap();
    }
    sync(&url, &copy, 0, &["--dumps", "always"]);
    assert_equal(&original, &copy);
    assert_eq!(audit(&url, &copy), 0);
    assert!(!copy.join(".abreast/packages").exists(), "no package is left");
    // Undisturbed, a fresh copy costs a few requests, not thousands.
    let fresh = temporary.path().join("fresh");
    let summary = sync(&url, &fresh, 0, &[]);
    assert_equal(&original, &fresh);
    assert!(summary["requests"].as_u64().unwrap() < 50, "{summary}");
}

#[test]
fn many_changes_come_in_one_package_that_is_made_for_who_asks() {
    const CHANGED: usize = 300;
    let temporary = tempfile::tempdir().unwrap();
    let [original, copy, other] =
        ["original", "copy", "other"].map(|name| temporary.path().join(name));
    fs::create_dir_all(&original).unwrap();
    let write = |number: usize, content: &str| {
        // Never seen half-written, so that there is one change of each.
        let begun = temporary.path().join("begun");
        fs::write(&begun, format!("{content} {number}")).unwrap();
        fs::rename(&begun, original.join(format!("f{number:03}"))).unwrap();
    };
    (0..CHANGED).for_each(|number| write(number, "first"));
    let source = Source::start(&original, 0, &["--dumps", "on-demand"]);
    let url = source.url();
    for folder in [&copy, &other] {
        sync(&url, folder, 0, &["--dumps", "never"]);
    }
    // If a file changes twice, its intermediate bytes are neither stored nor needed.
    (0..3).for_each(|number| write(number, "soon changed again"));
    eventually("the first changes are known", || changes(&source).len() == 3);
    (1..CHANGED).for_each(|number| write(number, "second"));
    eventually("the next changes are known", || changes(&source).len() == 3 + CHANGED - 1);
    fs::remove_file(original.join("f007")).unwrap();
    let is_gone = |number| {
        changes(&source)
            .iter()
            .any(|entry| entry.loc.ends_with(number) && entry.change == Some(Change::Deleted))
    };
    eventually("the changes are known", || is_gone("f007"));
    let one_by_one = sync(&url, &other, 0, &["--dumps", "never"]);
    let summary = sync(&url, &copy, 0, &["--dumps", "always"]);
    for folder in [&copy, &other] {
        assert_equal(&original, folder);
        assert_eq!(audit(&url, folder), 0);
    }
    let count = |summary: &serde_json::Value, what: &str| summary[what].as_u64().unwrap();
    assert_eq!(
        (count(&summary, "updated"), count(&summary, "deleted")),
        (CHANGED as u64 - 1, 1),
        "{summary}"
    );
    assert!(count(&one_by_one, "requests") >= CHANGED as u64 - 1, "{one_by_one}");
    // Requests for the Change List, the Capability List and the package, and to find these.
    assert!(count(&summary, "requests") < 10, "{summary}");
    assert_eq!(source.stop(), Some(0));
}
