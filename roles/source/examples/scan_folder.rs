//! Records what a folder holds, then what changed in it.
#![allow(clippy::print_stdout)]

use abreast_core::{ChangeLog, NewSet, Position, SystemClock};
use abreast_folder::Folder;
use abreast_source::{IngestOptions, ScanOptions, scan};
use abreast_store::SqliteLog;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let path = temporary.path();
    let log = SqliteLog::temporary(Arc::new(SystemClock))?;
    let set = log.open_set(&NewSet { slug: "papers".into(), ..NewSet::default() })?.id;
    // Files are taken as complete at once, not when they stayed the same for a while.
    let ingest = IngestOptions { settle: Duration::ZERO, ..IngestOptions::default() };
    let options = ScanOptions { ingest, ..ScanOptions::default() };
    let scan_now = || -> Result<_, Box<dyn std::error::Error>> {
        Ok(scan(&Folder::open(path)?, b"", &log, set, &options, &AtomicBool::new(false))?)
    };

    std::fs::write(path.join("a.pdf"), "first")?;
    scan_now()?;
    log.complete_import(set)?;
    std::fs::write(path.join("a.pdf"), "second version")?;
    std::fs::write(path.join("b.pdf"), "new")?;
    scan_now()?;

    let mut changes = Vec::new();
    log.read(set, Position(0), &mut |change| {
        println!("{} {} {:?} {}", change.position, change.time, change.kind, change.key);
        changes.push(change.key.clone());
        ControlFlow::Continue(())
    })?;
    assert_eq!(changes, ["a.pdf", "b.pdf"]);
    Ok(())
}
