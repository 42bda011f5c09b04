//! The processor time of a Resource Dump, compared with `zip -0` of the same folder.
//!
//! `cargo run --release -p abreast-source --example dump_speed -- FOLDER`
#![expect(clippy::print_stdout, reason = "it is a program for people")]

use abreast_core::{ChangeLog, NewSet, SystemClock};
use abreast_folder::Folder;
use abreast_source::dump::{DumpOptions, DumpSet, Dumps};
use abreast_source::publish::SourceUrls;
use abreast_source::{IngestOptions, ScanOptions, scan};
use abreast_store::SqliteLog;
use std::error::Error;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a folder")?;
    let folder = Folder::open(&path)?;
    let log: Arc<dyn ChangeLog> = Arc::new(SqliteLog::temporary(Arc::new(SystemClock))?);
    let set = log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() })?.id;
    let ingest = IngestOptions { settle: Duration::ZERO, ..IngestOptions::default() };
    let options = ScanOptions { ingest, ..ScanOptions::default() };
    scan(&folder, b"", &*log, set, &options, &AtomicBool::new(false))?;
    log.complete_import(set)?;
    let temporary = tempfile::tempdir()?;
    let source = DumpSet {
        id: set,
        slug: "set".to_owned(),
        urls: SourceUrls::new("https://example.org/").set("set"),
        representations: abreast_source::Representations::of_folder(folder, Arc::default()),
        options: DumpOptions::default(),
    };
    let shared = Dumps::new(log, temporary.path(), None);
    let dumps = shared.open_set(source)?;
    let (begun, before) = (Instant::now(), processor_time(false)?);
    let dumper = shared.start([Arc::clone(&dumps)])?;
    let dump = loop {
        match dumps.newest_resources() {
            Some(dump) => break dump,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let (ours, elapsed) = (processor_time(false)? - before, begun.elapsed());
    dumper.stop();
    println!("dump    {:>12} bytes  {ours:.2} s of processor, {elapsed:.2?} elapsed", dump.bytes());
    let (begun, before) = (Instant::now(), processor_time(true)?);
    let zip = temporary.path().join("zip.zip");
    let status = Command::new("zip")
        .args(["-q", "-r", "-0"])
        .arg(&zip)
        .arg(".")
        .current_dir(&path)
        .status()?;
    let (theirs, elapsed) = (processor_time(true)? - before, begun.elapsed());
    println!(
        "zip -0  {:>12} bytes  {theirs:.2} s of processor, {elapsed:.2?} elapsed, {status}",
        zip.metadata()?.len()
    );
    println!("work per processor second: {:.2} of zip -0", theirs / ours);
    Ok(())
}

/// Seconds of this process, or of its children.
fn processor_time(of_children: bool) -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    let first = if of_children { 13 } else { 11 };
    let ticks: f64 = fields[first].parse::<f64>()? + fields[first + 1].parse::<f64>()?;
    Ok(ticks / 100.0)
}
