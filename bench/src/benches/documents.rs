//! How long a small document takes while a large one of the same Source is rendered and compressed.

use crate::abreast::{self, Source};
use crate::http::Http;
use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

/// Entries of a list of about 2 KB.
const SMALL_SET: usize = 6;
/// Changes posted together.
const BATCH: usize = 5_000;
/// The large document is asked for so long before the small one.
const AHEAD: Duration = Duration::from_millis(10);

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    // Below 40,000: one document.
    let (count, asked) = (settings.size(39_000, 8_000), settings.size(100, 20));
    let abreast = abreast::binary(settings)?;
    let store = settings.empty_folder("documents-store")?;
    let config = store.join("abreast.toml");
    fs::write(
        &config,
        format!(
            "data = \"{}\"\n[api]\nwrite = true\n[[set]]\nname = \"large\"\nrecords = true\n[[set]]\nname = \"small\"\nrecords = true\n",
            store.join("store").display(),
        ),
    )?;
    let source = Source::start(
        settings,
        &abreast,
        "serve-documents",
        &["--config", &config.to_string_lossy()],
    )?;
    source.wait_ready()?;
    let url = source.url();
    let mut http = Http::connect(&url)?;
    for first in (0..count).step_by(BATCH) {
        record(&mut http, "large", first..(first + BATCH).min(count), 0)?;
    }
    record(&mut http, "small", 0..SMALL_SET, 0)?;
    let bytes = ["large", "small"].map(|set| Ok(http.get_ok(&path(set))?.len() as f64 / 1_000.0));
    let [large, small] = bytes.map(Result::<f64>::unwrap_or_default);
    ensure!(large > 0.0 && small > 0.0, "the lists cannot be read");

    let (mut alone, mut beside) =
        ([Samples::default(), Samples::default()], [Samples::default(), Samples::default()]);
    let mut large_times = Samples::default();
    let mut version = 0;
    for round in 0..settings.rounds {
        let (mut one, mut two, mut long) =
            (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..asked {
            // Each is recreated: with nothing beside it, then beside the large one.
            version += 1;
            record(&mut http, "small", 0..1, version)?;
            one.push(timed(&mut http, "small")?);
            version += 1;
            record(&mut http, "small", 0..1, version)?;
            record(&mut http, "large", 0..1, version)?;
            let mut other = Http::connect(&url)?;
            let asking = std::thread::spawn(move || timed(&mut other, "large"));
            std::thread::sleep(AHEAD);
            two.push(timed(&mut http, "small")?);
            long.push(asking.join().ok().context("the reader of the large list failed")??);
        }
        report.raw(&json!({
            "round": round, "asked": asked, "small_alone_p50_ms": one.median(), "small_alone_p99_ms": one.quantile(0.99),
            "small_beside_p50_ms": two.median(), "small_beside_p99_ms": two.quantile(0.99), "large_p50_ms": long.median(),
        }));
        for (samples, found) in [(&mut alone, &one), (&mut beside, &two)] {
            samples[0].push(found.median());
            samples[1].push(found.quantile(0.99));
        }
        large_times.push(long.median());
    }
    report.at_most(
        "a small list next to a large list, p99: share of the large one's time",
        &beside[1].over(&large_times),
        0.2,
        " ×",
    );
    report.text(&format!(
        "Two sets of records: the Resource List of {count} is {} KB, that of {SMALL_SET} is {} KB. Both change before they are \
         asked for, so both are rendered, and the large one is compressed; the small one is asked for {} ms after it. {asked} a \
         round.",
        number(large),
        number(small),
        AHEAD.as_millis(),
    ));
    report.table(
        &["ms", "p50", "p99"],
        &[
            vec!["small list alone".to_owned(), alone[0].text(), alone[1].text()],
            vec![
                "small list, next to the large list".to_owned(),
                beside[0].text(),
                beside[1].text(),
            ],
            vec!["large list, in gzip".to_owned(), large_times.text(), String::new()],
        ],
    );
    Ok(())
}

fn path(set: &str) -> String {
    format!("/{set}/resourcelist.xml")
}

/// Milliseconds until a set's list is there, in gzip.
fn timed(http: &mut Http, set: &str) -> Result<f64> {
    let begun = Instant::now();
    let answer = http.get(&path(set), "Accept-Encoding: gzip\r\n")?;
    ensure!(answer.status == 200, "the list of `{set}` is answered with {}", answer.status);
    Ok(begun.elapsed().as_secs_f64() * 1_000.0)
}

/// Records that these resources have another content.
pub(super) fn record(
    http: &mut Http,
    set: &str,
    numbers: std::ops::Range<usize>,
    version: usize,
) -> Result<()> {
    let mut body = String::new();
    for number in numbers {
        writeln!(
            body,
            "{{\"uri\":\"https://records.example.org/collection-{:04}/record-{number:08}.xml\",\"type\":\"application/xml\",\
             \"length\":{},\"hash\":\"md5:{:032x}\",\"lastmod\":\"2026-01-31T12:00:00Z\"}}",
            number / 1_000,
            3_000 + number % 1_000,
            version * 1_000_000 + number,
        )?;
    }
    let answer = http.post(
        &format!("/api/v1/sets/{set}/changes"),
        "Content-Type: application/x-ndjson\r\n",
        body.as_bytes(),
    )?;
    ensure!(answer.status == 200, "changes of `{set}` are answered with {}", answer.status);
    Ok(())
}
