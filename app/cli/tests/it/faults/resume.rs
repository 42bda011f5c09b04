//! The next run continues a killed run: at most 1 % of the complete resources are fetched again.

use super::web::{Page, Sent, Web};
use crate::world::{abreast, sync};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::folder::{assert_equal, files};
use abreast_testkit::zip::Zip;
use abreast_testkit::{Random, eventually};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const RESOURCE_LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn start(url: &str, copy: &Path, more: &[&str]) -> Child {
    let mut command = abreast();
    command.args(["sync", url]).arg(copy).args(["--quiet", "--retries", "0"]).args(more);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Bytes that no packing makes smaller.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        out.extend_from_slice(&random.below(u64::MAX).to_le_bytes());
    }
    out.truncate(length);
    out
}

/// Length of the largest file below a folder, whatever its name.
fn largest(folder: &Path) -> u64 {
    let mut found = 0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            found = found.max(largest(&entry.path()));
        } else {
            found = found.max(entry.metadata().map_or(0, |data| data.len()));
        }
    }
    found
}

/// Waits until the sent bytes are on the disk and their number no longer grows.
fn settled(copy: &Path, least: u64) {
    let (mut last, mut since) = (0, Instant::now());
    eventually("half of it is on disk", || {
        let now = largest(copy);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        last >= least && since.elapsed() > Duration::from_millis(150)
    });
}

fn bytes(sent: &[Sent], path: &str) -> usize {
    sent.iter().filter(|sent| sent.path == path).map(|sent| sent.bytes).sum()
}

#[test]
fn a_large_file_killed_half_way_is_continued_there() {
    const LENGTH: usize = 48 << 20;
    let (web, place) = (Web::start(), tempfile::tempdir().unwrap());
    let copy = place.path().join("copy");
    let body = noise(1, LENGTH);
    web.body("/list.xml", document("urlset", RESOURCE_LIST, &web.entry("/d/large", &body, "")));
    web.body("/d/large", body.clone());
    web.hold_body("/d/large", LENGTH / 2);
    let child = start(&web.url("/list.xml"), &copy, &[]);
    settled(&copy, (LENGTH / 2 - LENGTH / 200) as u64);
    kill(child);
    assert!(files(&copy).is_empty(), "a file that is not whole is visible");
    web.let_go();
    sync(&web.url("/list.xml"), &copy, 0, &[]);
    let sent = web.take_log();
    let again = bytes(&sent, "/d/large") - LENGTH;
    assert!(again <= LENGTH / 2 / 100, "{again} bytes were fetched again: {sent:?}");
    assert!(fs::read(copy.join("large")).unwrap() == body);
}

/// Many small resources, and the list of them.
fn small(web: &Web, count: usize) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for number in 0..count {
        let path = format!("/d/{}/f{number:04}", number % 20);
        let body = format!("resource {number} ").repeat(1 + number % 30).into_bytes();
        web.body(&path, body.clone());
        all.insert(path, body);
    }
    all
}

fn publish(web: &Web, all: &BTreeMap<String, Vec<u8>>) {
    let entries: String = all.iter().map(|(path, body)| web.entry(path, body, "")).collect();
    web.body("/list.xml", document("urlset", RESOURCE_LIST, &entries));
}

fn assert_copied(copy: &Path, all: &BTreeMap<String, Vec<u8>>) {
    let found = files(copy);
    assert_eq!(found.len(), all.len());
    for (path, body) in all {
        assert!(found.get(Path::new(&path[3..])) == Some(body), "{path}");
    }
}

#[test]
fn of_many_small_files_killed_half_way_few_are_fetched_again() {
    const COUNT: usize = 5_000;
    for packed in [false, true] {
        let (web, place) = (Web::start(), tempfile::tempdir().unwrap());
        let copy = place.path().join("copy");
        let target =
            if packed { format!("warc:{}", copy.display()) } else { copy.display().to_string() };
        let all = small(&web, COUNT);
        publish(&web, &all);
        web.hold_requests("/d/", COUNT / 2);
        let child = start(&web.url("/list.xml"), Path::new(&target), &[]);
        // All connections wait for an answer, so that all that was sent has been taken.
        eventually("all connections wait", || web.count("/d/") >= COUNT / 2 + 8);
        std::thread::sleep(Duration::from_millis(200));
        kill(child);
        web.let_go();
        let first = web.take_log();
        let finished: Vec<_> =
            first.iter().filter(|sent| sent.whole).map(|sent| sent.path.as_str()).collect();
        assert!(finished.len() >= COUNT / 2, "{} were finished", finished.len());
        sync(&web.url("/list.xml"), Path::new(&target), 0, &[]);
        let second = web.take_log();
        let again = second
            .iter()
            .filter(|sent| sent.path.starts_with("/d/") && finished.contains(&sent.path.as_str()))
            .count();
        // WARC records that were written after the last commit are cut off, and fetched again.
        let allowed = if packed { COUNT } else { COUNT / 2 / 100 };
        assert!(again <= allowed, "{again} of {} were fetched again", finished.len());
        if !packed {
            assert_copied(&copy, &all);
        }
    }
}

#[test]
fn only_changed_resources_restart_a_transfer() {
    const LENGTH: usize = 16 << 20;
    let (web, place) = (Web::start(), tempfile::tempdir().unwrap());
    let copy = place.path().join("copy");
    let mut all = small(&web, 200);
    for (path, seed) in [("/d/large", 1), ("/d/other", 2)] {
        all.insert(path.to_owned(), noise(seed, LENGTH));
        web.body(path, all[path].clone());
    }
    publish(&web, &all);
    web.hold_body("/d/large", LENGTH / 2);
    let child = start(&web.url("/list.xml"), &copy, &[]);
    eventually("all others are there", || files(&copy).len() == 201);
    settled(&copy, (LENGTH / 2) as u64);
    kill(child);
    web.let_go();
    web.take_log();
    all.insert("/d/large".to_owned(), noise(3, LENGTH));
    web.body("/d/large", all["/d/large"].clone());
    publish(&web, &all);
    sync(&web.url("/list.xml"), &copy, 0, &[]);
    let sent = web.take_log();
    let resources: Vec<_> = sent.iter().filter(|sent| sent.path.starts_with("/d/")).collect();
    assert!(resources.iter().all(|sent| sent.path == "/d/large"), "{resources:?}");
    assert_eq!(bytes(&sent, "/d/large"), LENGTH, "as a whole, and once");
    assert_copied(&copy, &all);
}

#[test]
fn a_package_killed_half_way_is_continued_there() {
    let (web, place) = (Web::start(), tempfile::tempdir().unwrap());
    let (original, copy) = (place.path().join("original"), place.path().join("copy"));
    fs::create_dir(&original).unwrap();
    let mut zip = Zip::new();
    let (mut members, mut entries) = (String::new(), String::new());
    for number in 0..1_000 {
        let (path, body) = (format!("/d/f{number}"), noise(number, 24_000));
        fs::write(original.join(&path[3..]), &body).unwrap();
        entries += &web.entry(&path, &body, "");
        members += &web.entry(&path, &body, &format!(" path=\"/r{number}\""));
        zip.add(&format!("r{number}"), &body);
    }
    let manifest = document(
        "urlset",
        &format!("capability=\"resourcedump-manifest\" at=\"{BEGIN}\""),
        &members,
    );
    let package = zip.add("manifest.xml", manifest.as_bytes()).finish();
    let listed = format!(
        "<url><loc>{}</loc><rs:md type=\"application/zip\" hash=\"md5:{}\" length=\"{}\"/></url>",
        web.url("/one.zip"),
        md5_hex(&package),
        package.len()
    );
    web.body(
        "/dump.xml",
        document("urlset", &format!("capability=\"resourcedump\" at=\"{BEGIN}\""), &listed),
    );
    web.body("/list.xml", document("urlset", RESOURCE_LIST, &entries));
    web.put("/one.zip", Page::ok(package.clone()));
    web.offer(&[("resourcelist", "/list.xml"), ("resourcedump", "/dump.xml")]);
    let half = package.len() / 2;
    web.hold_body("/one.zip", half);
    let child = start(&web.url("/caps.xml"), &copy, &["--dumps", "always"]);
    settled(&copy, (half - package.len() / 200) as u64);
    kill(child);
    web.let_go();
    sync(&web.url("/caps.xml"), &copy, 0, &["--dumps", "always"]);
    let sent = web.take_log();
    let again = bytes(&sent, "/one.zip") - package.len();
    assert!(again <= half / 100, "{again} bytes were fetched again");
    assert_eq!(
        sent.iter().filter(|sent| sent.path.starts_with("/d/")).count(),
        0,
        "resources came out of the package"
    );
    assert_equal(&original, &copy);
}
