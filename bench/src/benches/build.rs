//! Time from an unread folder to all its Resource List documents.

use crate::machine;
use crate::report::Report;
use crate::run::{log_path, settle, timed};
use crate::samples::Samples;
use crate::settings::Settings;
use crate::tree::{Profile, Tree};
use abreast_core::{ChangeLog, NewSet, SystemClock};
use abreast_folder::Folder;
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::{ScanOptions, scan};
use abreast_store::SqliteLog;
use anyhow::{Context, Result, ensure};
use md5::{Digest as _, Md5};
use serde_json::json;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(100_000, 5_000);
    let tree = Tree::open(
        &settings.folder.join(format!("site-{count}")).join("data"),
        count,
        Profile::Records,
    )?;
    let bytes = tree.bytes();
    let mut walls = [Samples::default(), Samples::default(), Samples::default()];
    let mut cpus = walls.clone();
    let log = log_path(&settings.folder, "md5sum")?;
    let command =
        format!("find {} -type f -print0 | xargs -0 -n 500 -P 2 md5sum", tree.folder.display());
    // Once before, so that all find the files in memory.
    walk_and_hash(&tree.folder)?;
    for round in 0..settings.rounds {
        let store = settings.empty_folder("build-store")?;
        for (which, name) in
            ["abreast", "walk+read+md5", "find | xargs md5sum"].into_iter().enumerate()
        {
            settle();
            let (start, cpu) = (Instant::now(), own_cpu());
            let usage = match which {
                0 => {
                    publish_all(&tree.folder, &store, count)?;
                    None
                }
                1 => {
                    ensure!(
                        walk_and_hash(&tree.folder)? == count,
                        "the walk found another number of files"
                    );
                    None
                }
                _ => Some(timed(Path::new("sh"), &["-c", &command], &settings.folder, &log)?.0),
            };
            let (wall, cpu) = match usage {
                Some(usage) => (usage.seconds, usage.cpu),
                None => (start.elapsed().as_secs_f64(), own_cpu() - cpu),
            };
            report.raw(
                &json!({"round": round, "run": name, "files": count, "seconds": wall, "cpu": cpu}),
            );
            walls[which].push(wall);
            cpus[which].push(cpu);
        }
    }
    let [ours, bare, tools] = &walls;
    report.at_least("speed of walk + read + md5, wall", &bare.over(ours), 0.85, " ×");
    report.at_least("the same, CPU time", &cpus[1].over(&cpus[0]), 0.85, " ×");
    report.at_least("speed of `find \\| xargs -P2 md5sum`, wall", &tools.over(ours), 1.0, " ×");
    report.text(&format!(
        "{count} files, {} MB, in memory. abreast: from nothing, through a new durable store, to every Resource List \
         document. Walk + read + md5: the same files read and digested by as many threads as cores, nothing kept.",
        bytes / 1_000_000
    ));
    let rows = [
        "abreast, all documents from nothing",
        "walk + read + md5 in Rust",
        &format!(
            "`find \\| xargs -0 -n 500 -P 2 md5sum` ({})",
            machine::version("md5sum", "--version")
        ),
    ]
    .iter()
    .enumerate()
    .map(|(which, name)| {
        let each = |samples: &Samples| samples.map(|seconds| seconds * 1e6 / count as f64);
        vec![
            (*name).to_string(),
            walls[which].text(),
            walls[which].map(|seconds| count as f64 / seconds).text(),
            each(&cpus[which]).text(),
        ]
    })
    .collect::<Vec<_>>();
    report.table(&["", "wall, s", "files/s", "CPU, µs a file"], &rows);
    Ok(())
}

/// CPU seconds of this process and of no child.
fn own_cpu() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// The whole path of the product, without the process around it.
fn publish_all(folder: &Path, store: &Path, count: usize) -> Result<()> {
    let log: Arc<dyn ChangeLog> =
        Arc::new(SqliteLog::open(&store.join("source.db"), Arc::new(SystemClock))?);
    let set = log.open_set(&NewSet { slug: "data".into(), ..NewSet::default() })?.id;
    let found = scan(
        &Folder::open(folder)?,
        b"",
        &*log,
        set,
        &ScanOptions::default(),
        &AtomicBool::new(false),
    )?;
    ensure!(
        found.ingest.recorded == count as u64,
        "the scan recorded {} of {count} files",
        found.ingest.recorded
    );
    log.complete_import(set)?;
    let urls = SourceUrls::new("http://127.0.0.1/");
    let published = PublishedSet::new(set, "data", urls.set("data"));
    let publisher =
        Publisher::new(Arc::clone(&log), urls, vec![published], store.join("documents"))?;
    publisher.document("data/resourcelist.xml")?;
    for shard in log.shards(set)? {
        let document = publisher.document(&format!("data/resourcelist/{}.xml", shard.id.0))?;
        ensure!(document.plain().length() > shard.resources * 100, "a Resource List is too short");
    }
    Ok(())
}

/// The limit: every file found, read and digested once, on all cores. Returns how many.
fn walk_and_hash(folder: &Path) -> Result<usize> {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    let folders = Mutex::new(folders.into_iter());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| hash_folders(&folders))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
            .sum::<Result<usize>>()
    })
}

fn hash_folders(folders: &Mutex<std::vec::IntoIter<PathBuf>>) -> Result<usize> {
    let (mut count, mut bytes) = (0, Vec::new());
    loop {
        let next = folders.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(folder) = next else { return Ok(count) };
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                bytes.clear();
                fs::File::open(entry.path())
                    .context("cannot open a file")?
                    .read_to_end(&mut bytes)?;
                std::hint::black_box(Md5::digest(&bytes));
                count += 1;
            }
        }
    }
}
