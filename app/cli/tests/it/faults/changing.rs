//! A Source that changes continuously while it is listed and copied: the list and the changes since
//! then are complete.

use super::Copy;
use super::web::Web;
use crate::api::send;
use crate::crash::{spawn, writer};
use crate::world::Source;
use abreast_destination::{Dumps, MaxDelete, Mode};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::folder::{files, same};
use abreast_testkit::{Random, eventually, eventually_ok, seeds};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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

/// A first run and some that follow, while everything changes.
///
/// Files that are deleted or changed before the copy fetches them are not errors: the Change List
/// contains these changes.
fn read_during_change(copy: &Copy, seed: u64) {
    for number in 0..4 {
        let ran = copy.run();
        let is_baseline = ran.summary().mode == Mode::Baseline;
        assert_eq!(is_baseline, number == 0, "seed {seed}, run {number}: {:?}", ran.codes);
    }
}

/// The changes since make the copy equal to the original, and nothing else does.
fn follows(copy: &Copy, seed: u64, original: impl Fn() -> BTreeMap<PathBuf, Vec<u8>>) {
    eventually_ok("the copy follows", || {
        let ran = copy.run();
        assert_ne!(ran.summary().mode, Mode::Baseline, "seed {seed}: {:?}", ran.codes);
        same(&original(), &files(&copy.options.folder))
            .map_err(|why| format!("seed {seed}: {why}; {:?}", ran.codes))
    });
}

/// Copies by several clients while everything changes; then the changes since are applied, and
/// nothing else is.
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
        let writers = [
            spawn(writer(original.clone(), seed), &stop),
            spawn(writer(original.clone(), seed + 500), &stop),
        ];
        let copies: Vec<Copy> = (0..CLIENTS)
            .map(|client| {
                let mut copy =
                    Copy::of(source.url(), &place.path().join(format!("copy{seed}-{client}")));
                copy.options.dumps = dumps;
                copy.options.max_delete = MaxDelete::parse("100%").unwrap();
                copy
            })
            .collect();
        std::thread::scope(|scope| {
            for copy in &copies {
                scope.spawn(|| read_during_change(copy, seed));
            }
        });
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
        let marker = format!("marker{seed}");
        fs::write(original.join(&marker), &marker).unwrap();
        for copy in &copies {
            follows(copy, seed, || files(&original));
        }
    }
}

/// Changes that are recorded in a second, if the machine can.
const RATE: usize = 1_000;
/// Changes recorded together.
const TOGETHER: usize = 50;
/// Resources that change again and again.
const RESTLESS: u64 = 60;

/// Resources elsewhere, whose changes are recorded by batches as fast as [`RATE`] says.
struct Records {
    web: Web,
    address: String,
    random: Random,
    made: u64,
    /// Those that were made once and are still there.
    once: Vec<String>,
    recorded: usize,
    begun: Instant,
}

impl Records {
    /// What never changes, or is removed at most.
    fn begin(&mut self) {
        for _ in 0..STILL {
            self.made += 1;
            let path = format!("/d/once{}", self.made);
            self.once.push(path);
        }
        let once = self.once.clone();
        let batch: String = once.iter().map(|path| self.put(path)).collect();
        self.post(&batch);
    }

    /// Puts a new body there, and lists the change.
    fn put(&self, path: &str) -> String {
        let (uri, body) = (self.web.url(path), format!("change {}", self.made));
        let (md5, length) = (md5_hex(body.as_bytes()), body.len());
        self.web.body(path, body);
        format!("{{\"uri\":\"{uri}\",\"hash\":\"md5:{md5}\",\"length\":{length}}}\n")
    }

    /// Tells how many were recorded.
    fn post(&self, batch: &str) -> usize {
        let answer = send(&self.address, "POST", "/api/v1/sets/set/changes", batch.as_bytes());
        let Some((200, printed)) = answer else { panic!("the batch is taken in: {answer:?}") };
        printed["recorded"].as_u64().unwrap() as usize
    }

    /// One batch: most are of the restless, others are made once, some of those are removed later.
    fn record(&mut self) {
        let mut batch = String::new();
        for _ in 0..TOGETHER {
            self.made += 1;
            let (path, is_deleted) = match self.random.below(10) {
                0 => {
                    let path = format!("/d/once{}", self.made);
                    self.once.push(path.clone());
                    (path, false)
                }
                1 if !self.once.is_empty() => {
                    let number = self.random.below(self.once.len() as u64) as usize;
                    (self.once.swap_remove(number), true)
                }
                _ => (
                    format!("/d/restless{}", self.random.below(RESTLESS)),
                    self.random.below(6) == 0,
                ),
            };
            if is_deleted {
                self.web.remove(&path);
                let uri = self.web.url(&path);
                let _ = writeln!(batch, "{{\"uri\":\"{uri}\",\"change\":\"deleted\"}}");
            } else {
                batch += &self.put(&path);
            }
        }
        self.recorded += self.post(&batch);
        let due = Duration::from_secs_f64(self.recorded as f64 / RATE as f64);
        std::thread::sleep(due.saturating_sub(self.begun.elapsed()));
    }
}

#[test]
fn list_read_during_1000_changes_a_second_plus_changes_is_exact() {
    for seed in seeds(ROUNDS) {
        eprintln!("repeat with ABREAST_TEST_SEED={seed}");
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data").display().to_string();
        let config = place.path().join("abreast.toml");
        let text = "[api]\nwrite = true\n[[set]]\nname = \"set\"\nrecords = true\nchanges_per_list = 500\n";
        fs::write(&config, format!("data = {data:?}\n{text}")).unwrap();
        let source = Source::start_config(config.to_str().unwrap());
        let web = Web::start();
        let mut records = Records {
            web: web.clone(),
            address: source.address.clone(),
            random: Random::new(seed),
            made: 0,
            once: Vec::new(),
            recorded: 0,
            begun: Instant::now(),
        };
        records.begin();
        let stop = AtomicBool::new(false);
        let copies: Vec<Copy> = (0..CLIENTS)
            .map(|client| {
                let mut copy = Copy::of(
                    format!("{}set/capabilitylist.xml", source.url()),
                    &place.path().join(format!("copy{seed}-{client}")),
                );
                copy.options.base = Some(web.url("/d/"));
                copy.options.allow_hosts.push(web.url("").trim_start_matches("http://").to_owned());
                copy.options.max_delete = MaxDelete::parse("100%").unwrap();
                copy
            })
            .collect();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                records.begun = Instant::now();
                records.recorded = 0;
                while !stop.load(Ordering::Relaxed) {
                    records.record();
                }
                let rate = records.recorded as f64 / records.begun.elapsed().as_secs_f64();
                eprintln!("seed {seed}: {} changes, {rate:.0} a second", records.recorded);
            });
            let readers: Vec<_> =
                copies.iter().map(|copy| scope.spawn(|| read_during_change(copy, seed))).collect();
            let read: Vec<_> =
                readers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap();
            for read in read {
                read.unwrap();
            }
        });
        let kept = web.bodies("/d/");
        for copy in &copies {
            follows(copy, seed, || kept.clone());
        }
    }
}

#[test]
fn list_read_during_changes_plus_changes_is_the_source() {
    copied_during_change(Dumps::Never, &["--changes-per-list", "50"]);
}

#[test]
fn dump_read_during_changes_plus_changes_is_the_source() {
    copied_during_change(
        Dumps::Always,
        &[
            "--changes-per-list",
            "50",
            "--dumps",
            "1s",
            "--dump-part-size",
            "1MiB",
            "--change-dumps",
        ],
    );
}
