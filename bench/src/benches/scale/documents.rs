//! Documents of a node on PostgreSQL, beside documents of one on SQLite.

use crate::abreast::{self, Source};
use crate::benches::documents::record;
use crate::http::Http;
use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_testkit::postgres::Postgres;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Records that are posted together.
const BATCH: usize = 5_000;
/// Documents, and whether a change before each request makes them new.
const DOCUMENTS: [(&str, &str, bool); 4] = [
    ("a Resource List, rendered", "/large/resourcelist.xml", true),
    ("a Resource List, known", "/large/resourcelist.xml", false),
    ("a Change List, rendered", "/large/changelist.xml", true),
    ("a page of the API, 1,000 changes", "/api/v1/sets/large/changes?after=0&limit=1000", false),
];

pub(super) fn run(settings: &Settings, server: &Postgres, report: &mut Report) -> Result<()> {
    // Below 40,000: one document.
    let (count, times) = (settings.size(39_000, 8_000), settings.size(50, 10));
    let program = abreast::binary(settings)?;
    let folder = settings.empty_folder("scale-documents")?;
    let sqlite = folder.join("store").display().to_string();
    let stores = [("sqlite", sqlite), ("postgres", server.create("documents"))];
    let mut sources = Vec::new();
    for (name, data) in &stores {
        let (config, scratch) = (folder.join(format!("{name}.toml")), folder.join(name));
        let scratch =
            (*name == "postgres").then(|| format!("scratch = \"{}\"\n", scratch.display()));
        fs::write(
            &config,
            format!(
                "data = \"{data}\"\n{}[api]\nwrite = true\n[[set]]\nname = \"large\"\nrecords = true\n",
                scratch.unwrap_or_default()
            ),
        )?;
        sources.push(start(settings, &program, &config, count)?);
    }
    let mut samples = vec![[Samples::default(), Samples::default()]; DOCUMENTS.len()];
    let mut version = 0;
    for round in 0..settings.rounds * times {
        for ((_, path, is_rendered), samples) in DOCUMENTS.iter().zip(&mut samples) {
            version += 1;
            for ((_, http), samples) in sources.iter_mut().zip(samples) {
                if *is_rendered {
                    record(http, "large", 0..1, version)?;
                }
                let begun = Instant::now();
                let answer = http.get(path, "")?;
                ensure!(answer.status == 200, "`{path}` is answered with {}", answer.status);
                if round > 0 {
                    samples.push(begun.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
    }
    let mut rows = Vec::new();
    for ((name, ..), [sqlite, postgres]) in DOCUMENTS.iter().zip(&samples) {
        let ratio = Samples::from_iter([postgres.median() / sqlite.median()]);
        report.at_most(&format!("{name}, over SQLite"), &ratio, 1.5, " ×");
        let of = [sqlite, postgres].map(|samples| [samples.median(), samples.quantile(0.99)]);
        rows.push(
            [(*name).to_owned()].into_iter().chain(of.concat().into_iter().map(number)).collect(),
        );
    }
    report.text(&format!(
        "A set of {count} records, served by `abreast serve` from SQLite and from PostgreSQL on the same machine. Each document {} \
         times, in turn from both; before a rendered document, a record changes.",
        settings.rounds * times - 1
    ));
    report.table(&["ms", "SQLite, p50", "p99", "PostgreSQL, p50", "p99"], &rows);
    Ok(())
}

/// Starts a Source with this configuration, and fills its set.
fn start(
    settings: &Settings,
    program: &Path,
    config: &Path,
    count: usize,
) -> Result<(Source, Http)> {
    let arguments = ["--config", &config.to_string_lossy()];
    let source = Source::start(settings, program, "serve-scale", &arguments)?;
    source.wait_ready()?;
    let mut http = Http::connect(&source.url())?;
    for first in (0..count).step_by(BATCH) {
        record(&mut http, "large", first..(first + BATCH).min(count), 0)?;
    }
    Ok((source, http))
}
