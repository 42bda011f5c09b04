//! Source and Destination are killed at random, under load, again and again: nothing lost, torn or
//! invented.
//!
//! A change counts as acknowledged when a reader saw it in a Change List: from then on it must stay
//! there, the same, over every kill. The mirror is hashed without pause: every visible file must be
//! whole. At the end the mirror must equal the Source, and replaying the whole log must give the
//! Source's folder.

use crate::world::{Source, abreast, catch_up, get};
use abreast_resourcesync::v1_1::{Change, Document, Root};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::folder::{files, same};
use abreast_testkit::{Random, eventually_ok, kills, seed};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Kills of the Source and of the Destination together.
const KILLS: u64 = 200;

#[test]
fn nothing_is_lost_torn_or_invented_by_kills_at_random() {
    let (kills, seed) = (kills(KILLS), seed(1));
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    let mut random = Random::new(seed);
    for number in 0..60 {
        write_version(&original, number, 0);
    }
    let arguments = ["--changes-per-list", "40"];
    let mut source = Source::start(&original, 0, &arguments);
    let (port, url) = (source.port(), source.url());

    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(Mutex::new(BTreeMap::new()));
    let hashed = Arc::new(AtomicU64::new(0));
    let helpers = [
        spawn(writer(original.clone(), seed), &stop),
        spawn(reader(source.address.clone(), Arc::clone(&seen)), &stop),
        spawn(hasher(copy.clone(), Arc::clone(&hashed)), &stop),
    ];

    let (mut of_source, mut of_destination) = (0, 0);
    while of_source + of_destination < kills {
        if random.below(3) == 0 {
            std::thread::sleep(Duration::from_millis(random.below(150)));
            source.kill();
            of_source += 1;
            while random.below(4) == 0 {
                Source::kill_at_start(
                    &original,
                    port,
                    &arguments,
                    Duration::from_millis(random.below(150)),
                );
                of_source += 1;
            }
            source = Source::start(&original, port, &arguments);
        } else {
            let mut child = abreast()
                .args(["sync", &url])
                .arg(&copy)
                .args(["--quiet", "--retries", "2", "--max-delete", "100%"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // Some reach their end, however slow the machine is.
            let at_most = if random.below(10) == 0 { 60_000 } else { random.below(120) };
            let until = Instant::now() + Duration::from_millis(at_most);
            while Instant::now() < until && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                of_destination += 1;
            }
            child.wait().unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for helper in helpers {
        helper.join().unwrap();
    }
    println!(
        "{of_source} kills of the Source, {of_destination} of the Destination, {} files hashed",
        hashed.load(Ordering::Relaxed)
    );
    assert!(of_source > 0 && of_destination > 0 && hashed.load(Ordering::Relaxed) > 0);

    // The last changes come to rest; then everything must fit together.
    recorded(&source, &original);
    let log = read_log(&source).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 50, "only {} changes were seen", seen.len());
    for (time, change) in seen.iter() {
        assert_eq!(
            log.get(time),
            Some(change),
            "an acknowledged change of {time} is lost or altered"
        );
    }
    catch_up(&url, &original, &copy, &["--max-delete", "100%"]);
    assert_whole(&copy);
}

pub(crate) fn spawn(
    mut work: impl FnMut() + Send + 'static,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            work();
        }
    })
}

/// Writes, replaces, renames and removes files all the time.
pub(crate) fn writer(folder: PathBuf, seed: u64) -> impl FnMut() + Send {
    let mut random = Random::new(seed + 1_000);
    let mut version = 1;
    move || {
        version += 1;
        let number = random.below(90);
        match random.below(10) {
            0..=5 => write_version(&folder, number, version),
            6 => drop(fs::remove_file(path_of(&folder, number))),
            7 => drop(fs::rename(path_of(&folder, number), path_of(&folder, random.below(90)))),
            _ => {
                // Written in place, in two halves.
                use std::io::Write as _;
                let content = content(number, version);
                if let Ok(mut file) = fs::File::create(path_of(&folder, number)) {
                    let half = content.len() / 2;
                    let _ = file.write_all(&content.as_bytes()[..half]);
                    std::thread::sleep(Duration::from_millis(2));
                    let _ = file.write_all(&content.as_bytes()[half..]);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Reads the newest Change List, and records the listed state of each file.
fn reader(address: String, seen: Arc<Mutex<BTreeMap<String, String>>>) -> impl FnMut() + Send {
    move || {
        std::thread::sleep(Duration::from_millis(15));
        let Some(document) = fetch(&address, "/set/changelist.xml") else { return };
        let newest = match document.head.root {
            Root::UrlSet => document,
            Root::SitemapIndex => {
                let Some(last) = document.entries.last() else { return };
                let Some(newest) = fetch(&address, &path_in(&last.loc)) else { return };
                newest
            }
        };
        seen.lock().unwrap().extend(changes_of(newest));
    }
}

/// Hashes the mirror; a file that is not whole fails the test.
fn hasher(copy: PathBuf, hashed: Arc<AtomicU64>) -> impl FnMut() + Send {
    move || {
        hashed.fetch_add(assert_whole(&copy), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn assert_whole(copy: &Path) -> u64 {
    let files = files(copy);
    for (path, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        let (body, sum) = text
            .trim_end()
            .rsplit_once('\n')
            .unwrap_or_else(|| panic!("{} is torn: {text:?}", path.display()));
        assert_eq!(md5_hex(body), sum, "{} is torn", path.display());
    }
    files.len() as u64
}

pub(crate) fn path_of(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("f{number:03}.txt"))
}

fn content(number: u64, version: u64) -> String {
    let body = format!("file {number}, version {version}\n")
        .repeat(1 + (number * version % 97) as usize)
        + "end";
    let sum = md5_hex(&body);
    format!("{body}\n{sum}\n")
}

/// Replaces a file as careful programs do: written aside, then renamed.
pub(crate) fn write_version(folder: &Path, number: u64, version: u64) {
    // Two writers may write the same file at once.
    let aside = folder.join(format!(".{number}.{:?}.new", std::thread::current().id()));
    fs::write(&aside, content(number, version)).unwrap();
    fs::rename(aside, path_of(folder, number)).unwrap();
}

fn fetch(address: &str, path: &str) -> Option<Document> {
    let (200, body) = get(address, path)? else { return None };
    Some(Document::from_slice(&body).unwrap())
}

fn path_in(url: &str) -> String {
    format!("/{}", url.splitn(4, '/').nth(3).unwrap())
}

/// Time to what happened, as one text.
fn changes_of(list: Document) -> impl Iterator<Item = (String, String)> {
    list.entries.into_iter().map(|entry| {
        let change = format!("{:?} {} {}", entry.change.unwrap(), entry.loc, entry.digests);
        (entry.datetime.unwrap().instant.to_string(), change)
    })
}

/// The whole log, closed and open lists.
fn read_log(source: &Source) -> Option<BTreeMap<String, String>> {
    let lists = change_lists(source)?;
    Some(lists.into_iter().flat_map(changes_of).collect())
}

pub(crate) fn change_lists(source: &Source) -> Option<Vec<Document>> {
    let top = fetch(&source.address, "/set/changelist.xml")?;
    match top.head.root {
        Root::UrlSet => Some(vec![top]),
        Root::SitemapIndex => {
            top.entries.iter().map(|entry| fetch(&source.address, &path_in(&entry.loc))).collect()
        }
    }
}

/// Waits until the log says what the folder holds.
pub(crate) fn recorded(source: &Source, original: &Path) {
    eventually_ok("the Source has recorded the last changes", || {
        same(&digests(original), &replay(source).ok_or("its lists could not be read")?)
    });
}

/// Applies the log to the base, which is 60 files of version 0.
fn replay(source: &Source) -> Option<BTreeMap<String, String>> {
    let mut table: BTreeMap<String, String> = (0..60)
        .map(|number| (format!("f{number:03}.txt"), format!("md5:{}", md5_hex(content(number, 0)))))
        .collect();
    for entry in change_lists(source)?.into_iter().flat_map(|list| list.entries) {
        let name = entry.loc.rsplit('/').next().unwrap().to_owned();
        match entry.change? {
            Change::Deleted => drop(table.remove(&name)),
            _ => drop(table.insert(name, entry.digests.to_string())),
        }
    }
    Some(table)
}

fn digests(folder: &Path) -> BTreeMap<String, String> {
    files(folder)
        .into_iter()
        .map(|(path, bytes)| {
            (path.to_string_lossy().into_owned(), format!("md5:{}", md5_hex(bytes)))
        })
        .collect()
}
