//! Savings from packages: a copy through a dump, a packed copy, and the cost of making a dump.

use crate::abreast::{self, Source};
use crate::http::Http;
use crate::peers::{Peer, RsyncDaemon, find_or_install};
use crate::report::Report;
use crate::run::{log_path, settle, timed, wait_until};
use crate::same;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::tree::{Profile, Tree};
use crate::wrk;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Making a dump may take as long as it takes, within reason.
const MAKING: Duration = Duration::from_secs(600);
/// Files of the large dump, 10 MB each.
const LARGE_FILES: usize = 500;

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let abreast = abreast::binary(settings)?;
    let rsync = Peer::Rsync.program(settings).context("rsync is missing")?;
    let (wrk, zip) = (find_or_install("wrk")?, find_or_install("zip")?);
    report.text(
        "Metadata records of 3.1 KB on average, from `abreast serve` on 127.0.0.1, files in memory, writes settled before \
         each run. Through a dump: `abreast sync --dumps always` into a folder. Packed: `abreast sync warc:PATH --dumps never`, \
         a plain GET for each resource. wrk asks for the same URLs with 16 connections and keeps nothing.",
    );
    let sizes = if settings.quick { vec![2_000] } else { vec![20_000, 100_000] };
    let mut rows = Vec::new();
    for count in sizes {
        let tree = Tree::open(
            &settings.folder.join(format!("site-{count}/data")),
            count,
            Profile::Records,
        )?;
        let daemon = RsyncDaemon::start(settings, &rsync, &tree.folder)?;
        let script = wrk::script(settings, "dump", "/data/r/", count)?;
        settings.wait_for_deletions();
        let names = ["rsync daemon, folder", "dump, folder", "GETs, packed", "wrk, kept nowhere"];
        let (mut wall, mut cpu) =
            (vec![Samples::default(); names.len()], vec![Samples::default(); names.len()]);
        let (mut making, mut zipping) = (Samples::default(), Samples::default());
        for round in 0..settings.rounds {
            let source = start(settings, &abreast, "serve-dump", &tree.folder)?;
            let (made, packed) = (make(&source)?, zip_it(settings, &zip, &tree.folder)?);
            report.raw(
                &json!({ "round": round, "resources": count, "make_cpu": made, "zip_cpu": packed }),
            );
            making.push(made);
            zipping.push(packed);
            for (place, name) in names.iter().enumerate() {
                let copy = settings.empty_folder("dump-copy")?;
                settle();
                let seconds = match place {
                    0 => {
                        let log = log_path(&settings.folder, "rsync")?;
                        let usage = timed(
                            &rsync,
                            &Peer::Rsync.arguments("", &daemon.url, &copy),
                            &settings.folder,
                            &log,
                        )?
                        .0;
                        cpu[place].push(usage.cpu);
                        usage.seconds
                    }
                    1 => {
                        let usage = abreast::sync(
                            settings,
                            &abreast,
                            &source.url(),
                            &copy,
                            &["--dumps", "always", "--quiet"],
                        )?;
                        same::check(&tree.folder, &copy, None)?;
                        cpu[place].push(usage.cpu);
                        usage.seconds
                    }
                    2 => {
                        let packed = format!("warc:{}", copy.display());
                        let options = ["--dumps", "never", "--quiet", "--connections", "16"];
                        let usage = abreast::sync(
                            settings,
                            &abreast,
                            &source.url(),
                            Path::new(&packed),
                            &options,
                        )?;
                        cpu[place].push(usage.cpu);
                        usage.seconds
                    }
                    _ => {
                        let seconds = settings.size(4, 1);
                        let (requests, took) =
                            wrk::ask(settings, &wrk, &source.url(), "", Some(&script), seconds)?;
                        count as f64 * took / requests
                    }
                };
                report.raw(&json!({ "round": round, "resources": count, "tool": name, "seconds": seconds }));
                wall[place].push(seconds);
            }
        }
        let size = number(count as f64);
        let speed = |ours: usize, other: usize| wall[ours].over(&wall[other]).map(f64::recip);
        report.at_least(
            &format!("{size}: through a dump into a folder: speed of rsync"),
            &speed(1, 0),
            1.0,
            " ×",
        );
        report.at_least(
            &format!("{size}: GETs into a packed copy: rate of wrk"),
            &speed(2, 3),
            0.75,
            " ×",
        );
        report.at_least(
            &format!("{size}: making a dump: work per CPU second of `zip -0`"),
            &making.over(&zipping).map(f64::recip),
            0.8,
            " ×",
        );
        for (place, name) in names.iter().enumerate() {
            rows.push(vec![
                size.clone(),
                (*name).to_owned(),
                wall[place].text(),
                number(count as f64 / wall[place].median()),
                cpu[place].text(),
            ]);
        }
        rows.push(vec![
            size.clone(),
            "making a dump".into(),
            "–".into(),
            "–".into(),
            making.text(),
        ]);
        rows.push(vec![
            size,
            "`zip -0 -r` of the folder".into(),
            "–".into(),
            "–".into(),
            zipping.text(),
        ]);
    }
    report.table(&["resources", "", "wall, s", "resources/s", "CPU, s"], &rows);
    large(settings, report, &abreast)
}

fn start(settings: &Settings, abreast: &Path, name: &str, folder: &Path) -> Result<Source> {
    let store = settings.empty_folder(&format!("{name}-store"))?;
    let (data, folder) =
        (store.to_string_lossy().into_owned(), folder.to_string_lossy().into_owned());
    let arguments = [&folder, "--data", &data, "--name", "data", "--dumps", "on-demand"];
    let source = Source::start(settings, abreast, name, &arguments)?;
    source.wait_ready()?;
    Ok(source)
}

/// CPU seconds that a Source takes for its first dump of everything.
fn make(source: &Source) -> Result<f64> {
    let mut http = Http::connect(&source.url())?;
    let before = source.server.cpu();
    wait_until("making a dump", MAKING, || {
        Ok(http.get("/data/resourcedump.xml", "")?.status == 200)
    })?;
    Ok(source.server.cpu() - before)
}

fn zip_it(settings: &Settings, zip: &Path, folder: &Path) -> Result<f64> {
    let package = settings.empty_folder("zip")?.join("all.zip");
    let arguments = ["-q", "-0", "-r", &package.to_string_lossy(), "."].map(str::to_owned);
    Ok(timed(zip, &arguments, folder, &log_path(&settings.folder, "zip")?)?.0.cpu)
}

/// Memory of making and of applying a dump of 5 GB.
fn large(settings: &Settings, report: &mut Report, abreast: &Path) -> Result<()> {
    let files = settings.size(LARGE_FILES, 5);
    let folder = settings.folder.join(format!("large-{files}"));
    fs::create_dir_all(&folder)?;
    let mut random = abreast_testkit::Random::new(5);
    for number in 0..files {
        let path = folder.join(format!("{number}.bin"));
        if !path.exists() {
            let bytes: Vec<u8> = std::iter::repeat_with(|| random.number().to_le_bytes())
                .take(1_250_000)
                .flatten()
                .collect();
            fs::write(path, bytes)?;
        }
    }
    let source = start(settings, abreast, "serve-dump-large", &folder)?;
    make(&source)?;
    let copy = settings.empty_folder("dump-large-copy")?;
    settle();
    let usage =
        abreast::sync(settings, abreast, &source.url(), &copy, &["--dumps", "always", "--quiet"])?;
    same::check(&folder, &copy, None)?;
    let memory = source.server.peak_memory_mib()?;
    let gigabytes = number(files as f64 / 100.0);
    report.raw(
        &json!({ "dump_gb": files as f64 / 100.0, "serve_mib": memory, "sync": usage.json() }),
    );
    let one = |value: f64| [value].into_iter().collect();
    report.at_most(
        &format!("memory of `serve` making a dump of {gigabytes} GB"),
        &one(memory),
        96.0,
        " MiB",
    );
    report.at_most("memory of `sync` applying it", &one(usage.memory_mib), 96.0, " MiB");
    settings.set_aside(&copy)
}
