//! Change feeds of a long log: Entry Points and pages beside those of a short one.

use super::entities::{generated, serve};
use crate::http::Http;
use crate::report::Report;
use crate::run::settle;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Result, ensure};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Requests of Entry Points, and of pages, a round.
const REQUESTS: u64 = 500;
/// Activities of a page.
const PER_PAGE: u64 = 1_000;
const ENTRY_POINTS: [&str; 4] = ["emm/1.0", "emm/0.1", "iiif", "emm/1.0/latest"];

/// A log of one length.
struct Log {
    changes: u64,
    data: PathBuf,
    entry_points: Samples,
    pages: Samples,
    rate: Samples,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = crate::abreast::binary(settings)?;
    let lengths = [10_000, settings.size(10_000_000, 100_000) as u64];
    let mut logs = lengths.map(|changes| {
        let [entry_points, pages, rate] = [const { Samples::new() }; 3];
        let data = settings.folder.join(format!("entities-log-{changes}"));
        Log { changes, data, entry_points, pages, rate }
    });
    for log in &logs {
        std::fs::create_dir_all(&log.data)?;
        generated(&log.data.join("source.db"), log.changes)?;
    }
    for round in 0..settings.rounds {
        for log in &mut logs {
            settle();
            one_round(settings, &program, log)?;
            report.raw(&json!({ "round": round, "log": log.changes,
                "entry_point_p99_ms": log.entry_points.last(), "page_p99_ms": log.pages.last(),
                "activities_per_cpu_second": log.rate.last() }));
        }
    }
    let [short, long] = &logs;
    let [few, many] = lengths.map(|length| number(length as f64));
    for (what, of) in [
        ("Entry Points", (|log| &log.entry_points) as fn(&Log) -> &Samples),
        ("pages", |log| &log.pages),
    ] {
        report.at_most(
            &format!("{what}: p99 with a log of {many} changes, of that of {few}"),
            &of(long).over(of(short)),
            1.2,
            " ×",
        );
    }
    report.at_least(
        &format!("activities of pages a CPU second of the server, {many} changes"),
        &long.rate,
        300e3,
        "",
    );
    report.text(&format!(
        "`abreast serve --origin rdf`, {REQUESTS} requests of {} and {REQUESTS} of closed pages with {PER_PAGE} activities \
         (EMM 1.0), scattered over the log, one after the other, uncompressed.",
        ENTRY_POINTS.map(|path| format!("`/SET/{path}`")).join(", "),
    ));
    let row = |name: &str, of: fn(&Log) -> &Samples| {
        vec![name.to_owned(), of(short).text(), of(long).text()]
    };
    report.table(
        &["changes in the log", &few, &many],
        &[
            row("Entry Points, p99, ms", |log| &log.entry_points),
            row("pages, p99, ms", |log| &log.pages),
            row("activities a CPU second", |log| &log.rate),
        ],
    );
    Ok(())
}

fn one_round(settings: &Settings, program: &Path, log: &mut Log) -> Result<()> {
    let source = serve(settings, program, &log.data)?;
    let mut http = Http::connect(&source.url())?;
    let mut times = Samples::default();
    let mut timed = |path: &str, times: &mut Samples| -> Result<Vec<u8>> {
        let begun = Instant::now();
        let document = http.get_ok(path)?;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        Ok(document)
    };
    for number in 0..REQUESTS {
        let path = ENTRY_POINTS[(number % ENTRY_POINTS.len() as u64) as usize];
        timed(&format!("/data/{path}"), &mut times)?;
    }
    log.entry_points.push(times.quantile(0.99));
    times = Samples::default();
    let closed = log.changes / PER_PAGE - 1;
    let before = source.server.cpu();
    for number in 0..REQUESTS {
        let page = number * 7_919 % closed + 1;
        let path = format!("/data/emm/1.0/page/{page}");
        let document = timed(&path, &mut times)?;
        let found = String::from_utf8_lossy(&document).matches("\"published\"").count() as u64;
        ensure!(found == PER_PAGE, "{path} has {found} activities");
    }
    log.rate.push((REQUESTS * PER_PAGE) as f64 / (source.server.cpu() - before));
    log.pages.push(times.quantile(0.99));
    Ok(())
}
