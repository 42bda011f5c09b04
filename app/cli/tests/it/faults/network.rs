//! With 30 of 100 requests broken on the way a copy converges by itself, in three runs at most, and
//! nothing bad is kept.

use super::Copy;
use super::proxy::{FaultProxy, STALL};
use super::web::Web;
use crate::world::Source;
use abreast_destination::{AuditOptions, Dumps, Mode, Silent, audit};
use abreast_testkit::documents::document;
use abreast_testkit::folder::{assert_equal, files, same};
use abreast_testkit::{Random, eventually, eventually_ok, number, seeds};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Resources; ABREAST_TEST_RESOURCES asks for more.
const COUNT: u64 = 2_000;

/// Every version that a file ever had.
type Versions = Arc<Mutex<BTreeMap<PathBuf, Vec<Vec<u8>>>>>;

fn write(folder: &Path, number: u64, version: u64, versions: &Versions) {
    let path = PathBuf::from(format!("d{}/f{number:04}.txt", number % 20));
    let text = format!("resource {number}, version {version}\n")
        .repeat(1 + (number % 60) as usize)
        .into_bytes();
    versions.lock().unwrap().entry(path.clone()).or_default().push(text.clone());
    fs::create_dir_all(folder.join(&path).parent().unwrap()).unwrap();
    let aside = folder.join(".new");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, folder.join(path)).unwrap();
}

fn patient(url: &str, folder: &Path, dumps: Dumps) -> Copy {
    let mut copy = Copy::of(url, folder);
    copy.options.net.retries = 5;
    copy.options.net.idle_timeout = STALL / 2;
    // Those that are stalled are waited for side by side.
    copy.options.connections = 24;
    copy.options.dumps = dumps;
    copy
}

/// Runs until all is well, three times at most; returns the mode of each run.
fn converge(copy: &Copy, seed: u64) -> Vec<Mode> {
    let (mut modes, mut printed) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let ran = copy.run();
        modes.extend(ran.result.as_ref().map(|summary| summary.mode));
        if ran.exit() == 0 {
            return modes;
        }
        printed.push(format!(
            "{:?} {:?}",
            ran.result.as_ref().err().map(ToString::to_string),
            ran.codes
        ));
    }
    panic!("seed {seed}: three runs were not enough: {printed:#?}");
}

/// Looks at every visible file without pause: each must be a version that there was, whole.
fn watch(
    folder: PathBuf,
    versions: &Versions,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<u64> {
    let (versions, stop) = (Arc::clone(versions), Arc::clone(stop));
    std::thread::spawn(move || {
        let mut looked = 0;
        while !stop.load(Ordering::Relaxed) {
            for (path, bytes) in files(&folder) {
                let known =
                    versions.lock().unwrap().get(&path).is_some_and(|all| all.contains(&bytes));
                assert!(
                    known,
                    "{} holds {} bytes that were never its content",
                    path.display(),
                    bytes.len()
                );
                looked += 1;
            }
            // Two cores are shared with those who do the work.
            std::thread::sleep(Duration::from_millis(100));
        }
        looked
    })
}

/// Where a copy begins below the address of the Source; with version 0.1 its resources are named
/// below another.
const ENTRIES: [(&str, Option<&str>); 2] = [("", None), ("set/v0.1/sitemap.xml", Some("set/r/"))];

fn broken_network(dumps: Dumps, serve: &[&str], count: u64, at: (&str, Option<&str>)) {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    let versions = Versions::default();
    let resources = number("ABREAST_TEST_RESOURCES").unwrap_or(COUNT);
    for number in 0..resources {
        write(&original, number, 0, &versions);
    }
    let proxy = FaultProxy::start();
    let base = proxy.url();
    let source = Source::start(&original, 0, &[&["--base-url", base.as_str()], serve].concat());
    proxy.target(&source.address);
    if !serve.is_empty() {
        eventually("the dump is there", || source.get("/set/resourcedump.xml").is_some());
    }
    let mut version = 0;
    for seed in seeds(count) {
        eprintln!("repeat with ABREAST_TEST_SEED={seed}");
        let folder = place.path().join(format!("copy{seed}"));
        let mut copy = patient(&format!("{base}{}", at.0), &folder, dumps);
        copy.options.base = at.1.map(|below| format!("{base}{below}"));
        let stop = Arc::new(AtomicBool::new(false));
        let watched = watch(folder.clone(), &versions, &stop);
        proxy.seed(Some(seed));
        assert!(converge(&copy, seed).contains(&Mode::Baseline), "seed {seed}");
        assert_equal(&original, &folder);

        // And what changes after that.
        version += 1;
        let mut random = Random::new(seed);
        for _ in 0..200 {
            let number = random.below(resources + 100);
            if random.below(5) == 0 {
                let _ =
                    fs::remove_file(original.join(format!("d{}/f{number:04}.txt", number % 20)));
            } else {
                write(&original, number, version, &versions);
            }
        }
        let marker = resources + 1_000 + seed;
        write(&original, marker, version, &versions);
        let name = format!("f{marker}");
        eventually("the Source has recorded the changes", || {
            source
                .get("/set/changelist.xml")
                .is_some_and(|list| String::from_utf8_lossy(&list).contains(&name))
        });
        let mut modes = Vec::new();
        eventually_ok("the copy follows", || {
            modes.extend(converge(&copy, seed));
            same(&files(&original), &files(&folder))
                .map_err(|why| format!("seed {seed}: {why}; {modes:?}"))
        });
        assert!(!modes.contains(&Mode::Baseline), "seed {seed}: no change was missed {modes:?}");
        stop.store(true, Ordering::Relaxed);
        assert!(watched.join().unwrap() > 0, "seed {seed}");
        let met = proxy.met();
        eprintln!("seed {seed}: {met:?}");
        proxy.seed(None);
        let report = audit(
            &AuditOptions { sync: copy.options, full: true },
            &Silent,
            &AtomicBool::new(false),
        )
        .unwrap();
        assert_eq!(report.exit_code, 0, "seed {seed}: {report:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_copy_converges_over_a_broken_network_request_by_request() {
    broken_network(Dumps::Never, &[], 5, ENTRIES[0]);
}

#[test]
fn a_copy_of_0_1_converges_over_a_broken_network() {
    broken_network(Dumps::Never, &[], 3, ENTRIES[1]);
}

#[test]
fn a_copy_converges_over_a_broken_network_by_packages() {
    let serve = ["--dumps", "1d", "--dump-part-size", "1MiB"];
    broken_network(Dumps::Always, &serve, 5, ENTRIES[0]);
}

#[test]
fn bytes_without_digest_and_length_count_as_unverified() {
    const COUNT: usize = 90;
    let web = Web::start();
    let proxy = FaultProxy::start();
    proxy.target(web.url("").trim_start_matches("http://"));
    let mut entries = String::new();
    for number in 0..COUNT {
        web.body(&format!("/r/f{number}"), format!("resource {number}").repeat(20));
        entries += &["<url><loc>", &proxy.url(), &format!("r/f{number}</loc></url>")].concat();
    }
    web.body(
        "/list.xml",
        document("urlset", "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries),
    );
    for seed in seeds(2) {
        eprintln!("repeat with ABREAST_TEST_SEED={seed}");
        let place = tempfile::tempdir().unwrap();
        proxy.seed(Some(seed));
        let copy =
            patient(&format!("{}list.xml", proxy.url()), &place.path().join("copy"), Dumps::Never);
        let (mut unverified, mut runs) = (0, 0);
        loop {
            let ran = copy.run();
            unverified += ran.result.as_ref().map_or(0, |summary| summary.unverified);
            runs += 1;
            if ran.exit() == 0 {
                break;
            }
            let error = ran.result.as_ref().err().map(ToString::to_string);
            assert!(runs < 3, "seed {seed}: {error:?} {:?}", ran.codes);
        }
        assert_eq!(unverified, COUNT as u64, "seed {seed}");
        // No file is incomplete: if the list has no length, the length in the server's header counts.
        let found = files(&copy.options.folder);
        assert_eq!(found.len(), COUNT, "seed {seed}");
        for (path, bytes) in found {
            let number = path.to_string_lossy()[1..].to_owned();
            assert_eq!(
                bytes.len(),
                format!("resource {number}").len() * 20,
                "seed {seed}: {number}"
            );
        }
        // With `require_fixity`, resources without a verified digest are not stored.
        let mut strict = patient(
            &format!("{}list.xml", proxy.url()),
            &place.path().join("strict"),
            Dumps::Never,
        );
        strict.options.require_fixity = true;
        proxy.seed(None);
        assert_eq!(strict.run().exit(), 3, "seed {seed}");
        assert!(files(&strict.options.folder).is_empty(), "seed {seed}");
    }
}
