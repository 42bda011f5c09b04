//! A Destination that takes resources out of the Source's packages, killed again and again, ends with the Source.

use crate::world::{Random, Source, abreast, assert_equal, audit, eventually, get, kills, seed, sync};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// Kills while a package is received and taken apart.
const KILLS: u64 = 20;

#[test]
fn a_copy_out_of_packages_is_whole_over_kills_and_asks_for_little() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    for number in 0..3_000 {
        let folder = original.join(format!("d{}", number % 10));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("f{number:04}")), format!("{number} ").repeat(1 + number % 700)).unwrap();
    }
    fs::write(original.join("large"), vec![7; 3_000_000]).unwrap();
    let source = Source::start(&original, 0, &["--dumps", "1d", "--dump-part-size", "2MiB"]);
    eventually("the dump is there", || matches!(get(&source.address, "/set/resourcedump.xml"), Some((200, _))));
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
