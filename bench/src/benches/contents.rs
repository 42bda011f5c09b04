//! Kept contents, packed: a million small ones put, read, removed and opened, beside what the disk
//! alone can do.

use crate::abreast;
use crate::report::Report;
use crate::run::{log_path, own_cpu, timed};
use crate::samples::Samples;
use crate::settings::Settings;
use abreast_contents::Contents;
use abreast_core::contents::ContentStore as _;
use abreast_core::{ChangeLog as _, ContentId, Imported, NewSet, State, SystemClock};
use abreast_store::SqliteLog;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a content.
const BODY: usize = 1_000;
/// Contents made durable together.
const BATCH: usize = 1_000;

#[derive(Default)]
struct Figures {
    bare: Samples,
    put: Samples,
    put_cpu: Samples,
    over_bare: Samples,
    in_order: Samples,
    in_order_cpu: Samples,
    by_address: Samples,
    opened: Samples,
    removed: Samples,
    on_disk: Samples,
    index_rebuilt: Samples,
    memory: Samples,
    check: Samples,
    check_memory: Samples,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(1_000_000, 100_000);
    let program = abreast::binary(settings)?;
    let mut figures = Figures::default();
    for round in 0..settings.rounds {
        let folder = settings.empty_folder("contents")?;
        let bare = bare(&folder.join("bare"), count)?;
        reset_peak()?;
        put_and_read(&folder, count, &mut figures)?;
        let before = peak_mib()?;
        check(settings, &program, &folder, count, &mut figures)?;
        reset_peak()?;
        remove(&folder, count, &mut figures)?;
        let memory = peak_mib()?.max(before);
        figures.memory.push(memory);
        figures.bare.push(bare);
        figures.over_bare.push(figures.put.last() / bare);
        report.raw(&json!({ "round": round, "contents": count, "bare_per_s": bare, "put_per_s": figures.put.last(),
            "put_cpu_us": figures.put_cpu.last(), "read_in_order_per_s": figures.in_order.last(),
            "read_by_address_per_s": figures.by_address.last(), "open_s": figures.opened.last(),
            "removed_per_s": figures.removed.last(), "disk_after_removing_half": figures.on_disk.last(),
            "open_without_index_s": figures.index_rebuilt.last(), "memory_mib": memory,
            "check_s": figures.check.last(), "check_memory_mib": figures.check_memory.last() }));
    }
    report.at_least("put durably, a second, 1,000 at a time", &figures.put, 50_000.0, "");
    report.at_least("read in the order of keys, a second", &figures.in_order, 100_000.0, "");
    report.at_most(
        "bytes on disk after half was removed, relative to the remaining bytes",
        &figures.on_disk,
        1.3,
        " ×",
    );
    report.at_most("memory of the process, at its highest", &figures.memory, 64.0, " MiB");
    report.at_most("open", &figures.opened, 2.0, " s");
    report.at_most(
        "memory of `abreast check`, as many rows that need them",
        &figures.check_memory,
        64.0,
        " MiB",
    );
    report.text(&format!(
        "{count} contents of {BODY} bytes in one thread. The disk alone, for comparison: the same bytes appended to one file, made durable \
         (`fdatasync`) after every {BATCH}. The order of keys is the order in which they were put, as a set is imported and read; \
         that of addresses is random on disk. Every content is compared with its address when it is read."
    ));
    let row = |name: &str, samples: &Samples| vec![name.to_owned(), samples.text()];
    report.table(
        &["", "found"],
        &[
            row("disk alone, a second", &figures.bare),
            row("put durably, a second", &figures.put),
            row("the same, of the disk alone", &figures.over_bare),
            row("the same, CPU µs each", &figures.put_cpu),
            row("read in the order of keys, a second", &figures.in_order),
            row("the same, CPU µs each", &figures.in_order_cpu),
            row("read in the order of addresses, a second", &figures.by_address),
            row("every other one removed, a second", &figures.removed),
            row("open, s", &figures.opened),
            row("open without an index, which is rebuilt, s", &figures.index_rebuilt),
            row("`abreast check` without reading the contents, s", &figures.check),
        ],
    );
    Ok(())
}

/// A content that no other number has.
fn body(number: usize, out: &mut Vec<u8>) {
    out.clear();
    let mut random = abreast_testkit::Random::new(number as u64);
    while out.len() < BODY {
        out.extend_from_slice(&random.number().to_le_bytes());
    }
    out.truncate(BODY);
}

/// How many a second are appended to one file, durable in batches.
fn bare(path: &Path, count: usize) -> Result<f64> {
    let mut file = File::create(path)?;
    let mut batch = vec![0; BODY * BATCH];
    let begun = Instant::now();
    for number in 0..count / BATCH {
        batch[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(&batch)?;
        file.sync_data()?;
    }
    let rate = count as f64 / begun.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}

/// The folder of contents, in that of a store, and the file with their addresses.
fn places(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("store/contents"), folder.join("ids"))
}

fn put_and_read(folder: &Path, count: usize, figures: &mut Figures) -> Result<()> {
    let (path, ids) = places(folder);
    let contents = Contents::open(&path)?;
    // Addresses are in a file: in memory they would be most of what is measured.
    let mut out = BufWriter::new(File::create(&ids)?);
    let mut bytes = Vec::new();
    let (begun, cpu) = (Instant::now(), own_cpu());
    for first in (0..count).step_by(BATCH) {
        let mut kept = Vec::with_capacity(BATCH);
        for number in first..first + BATCH {
            body(number, &mut bytes);
            kept.push(contents.put_bytes(&bytes)?);
        }
        contents.sync()?;
        for one in &kept {
            out.write_all(one.id().as_bytes())?;
        }
    }
    figures.put.push(count as f64 / begun.elapsed().as_secs_f64());
    figures.put_cpu.push((own_cpu() - cpu) * 1e6 / count as f64);
    out.flush()?;
    drop(contents);

    let begun = Instant::now();
    let contents = Contents::open(&path)?;
    figures.opened.push(begun.elapsed().as_secs_f64());

    let (begun, cpu) = (Instant::now(), own_cpu());
    each(&ids, count, &mut |_, id| read(&contents, &id))?;
    figures.in_order.push(count as f64 / begun.elapsed().as_secs_f64());
    figures.in_order_cpu.push((own_cpu() - cpu) * 1e6 / count as f64);

    let begun = Instant::now();
    let mut seen = 0;
    for first in 0..=u8::MAX {
        let mut part = Vec::new();
        contents.visit(first, &mut |id| {
            part.push(id);
            ControlFlow::Continue(())
        })?;
        seen += part.len();
        part.iter().try_for_each(|id| read(&contents, id))?;
    }
    ensure!(seen == count, "{seen} contents are there");
    figures.by_address.push(count as f64 / begun.elapsed().as_secs_f64());
    Ok(())
}

/// Makes a store whose rows need the contents, and checks it.
fn check(
    settings: &Settings,
    program: &Path,
    folder: &Path,
    count: usize,
    figures: &mut Figures,
) -> Result<()> {
    let (_, ids) = places(folder);
    let store = folder.join("store");
    let log = SqliteLog::open(&store.join("source.db"), Arc::new(SystemClock))?;
    let set = log.open_set(&NewSet { slug: "bench".into(), ..NewSet::default() })?.id;
    let mut batch = Vec::with_capacity(BATCH);
    each(&ids, count, &mut |number, id| {
        let state = State { length: Some(BODY as u64), content: Some(id), ..State::default() };
        batch.push(Imported { key: format!("{number:09}"), state, witness: Vec::new() });
        if batch.len() == BATCH {
            log.import(set, std::mem::take(&mut batch))?;
        }
        Ok(())
    })?;
    log.complete_import(set)?;
    drop(log);
    let arguments = [OsStr::new("check"), store.as_os_str()];
    let (usage, text) =
        timed(program, &arguments, &settings.folder, &log_path(&settings.folder, "check")?)?;
    ensure!(
        text.contains(&format!("kept contents: {count}")),
        "the contents were not checked:\n{text}"
    );
    figures.check.push(usage.seconds);
    figures.check_memory.push(usage.memory_mib);
    Ok(())
}

fn remove(folder: &Path, count: usize, figures: &mut Figures) -> Result<()> {
    let (path, ids) = places(folder);
    let contents = Contents::open(&path)?;
    let begun = Instant::now();
    each(&ids, count, &mut |number, id| {
        if number.is_multiple_of(2) {
            ensure!(contents.remove(&id)?, "content {number} was there");
        }
        Ok(())
    })?;
    contents.compact()?;
    figures.removed.push(count as f64 / 2.0 / begun.elapsed().as_secs_f64());
    contents.sync()?;
    figures.on_disk.push(size(&path)? as f64 / (count / 2 * BODY) as f64);
    each(&ids, count, &mut |number, id| {
        ensure!(contents.contains(&id)? != number.is_multiple_of(2), "content {number}");
        Ok(())
    })?;
    drop(contents);

    for entry in fs::read_dir(path.join("packed"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "index") {
            fs::remove_file(path)?;
        }
    }
    let begun = Instant::now();
    drop(Contents::open(&path)?);
    figures.index_rebuilt.push(begun.elapsed().as_secs_f64());
    Ok(())
}

fn each(
    ids: &Path,
    count: usize,
    see: &mut dyn FnMut(usize, ContentId) -> Result<()>,
) -> Result<()> {
    let mut ids = BufReader::new(File::open(ids)?);
    for number in 0..count {
        let mut id = [0; ContentId::BYTES];
        ids.read_exact(&mut id)?;
        see(number, ContentId(id))?;
    }
    Ok(())
}

fn read(contents: &Contents, id: &ContentId) -> Result<()> {
    let length = contents.open_read(id)?.length();
    ensure!(length == BODY as u64, "{length} bytes");
    Ok(())
}

fn size(folder: &Path) -> Result<u64> {
    let mut all = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        all += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(all)
}

/// The highest memory is measured from here on.
fn reset_peak() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the highest memory")
}

fn peak_mib() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
    Ok(kib / 1024.0)
}
