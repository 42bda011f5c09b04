//! Time to validate a whole Source, beside parsing its documents.

use super::parse;
use crate::abreast::{self, Source};
use crate::http::{Http, locs, path_of};
use crate::report::Report;
use crate::run::{log_path, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::tree::{Profile, Tree};
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::Instant;

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let count = settings.size(1_000_000, 20_000);
    let tree =
        Tree::open(&settings.folder.join(format!("tiny-{count}/data")), count, Profile::Tiny)?;
    let store = settings.empty_folder("validate-store")?;
    let (data, folder) =
        (store.to_string_lossy().into_owned(), tree.folder.to_string_lossy().into_owned());
    let source = Source::start(
        settings,
        &program,
        "serve-validate",
        &[&folder, "--data", &data, "--name", "data"],
    )?;
    source.wait_ready()?;
    let mut http = Http::connect(&source.url())?;
    let index = http.get_ok("/data/resourcelist.xml")?;
    let mut lists = Vec::new();
    let indexed = String::from_utf8_lossy(&index).contains("<sitemapindex");
    let members = if indexed { locs(&index) } else { vec!["/data/resourcelist.xml".to_owned()] };
    for member in &members {
        let path = if indexed { path_of(member) } else { member };
        // Also packed, as it is asked for: both are made once and kept.
        http.get(path, "Accept-Encoding: gzip\r\n")?;
        lists.push(http.get_ok(path)?);
    }
    let bytes: usize = lists.iter().map(Vec::len).sum();
    let (mut parsing, mut validating) = (Samples::default(), Samples::default());
    let (mut cpu, mut memory) = (Samples::default(), Samples::default());
    for round in 0..settings.rounds {
        let begun = Instant::now();
        let mut entries = 0;
        for list in &lists {
            entries += parse::ours(list, 256 * 1024)?;
        }
        let parse = begun.elapsed().as_secs_f64();
        ensure!(entries == count, "{entries} entries of {count}");
        let arguments = ["validate", &source.url(), "--sample", "0"].map(str::to_owned);
        let (usage, text) = timed(
            &program,
            &arguments,
            &settings.folder,
            &log_path(&settings.folder, "validate")?,
        )?;
        report.raw(&json!({ "round": round, "entries": count, "parse_seconds": parse, "validate": usage.json(),
            "said": text.lines().last() }));
        parsing.push(parse);
        validating.push(usage.seconds);
        cpu.push(usage.cpu);
        memory.push(usage.memory_mib);
    }
    let size = number(count as f64);
    report.at_most(
        &format!("judging a Source of {size} resources, of the time of parsing its lists"),
        &validating.over(&parsing),
        3.0,
        " ×",
    );
    report.text(&format!(
        "The Resource Lists of `abreast serve` on 127.0.0.1, {size} entries in {} lists, {} MB, made before; one thread parses \
         them in memory. `abreast validate` fetches every document and checks it; no resource is fetched (`--sample 0`).",
        lists.len(),
        number(bytes as f64 / 1e6)
    ));
    report.table(
        &["", "wall, s", "CPU, s", "memory, MiB"],
        &[
            vec!["parsing the lists".into(), parsing.text(), "–".into(), "–".into()],
            vec!["`abreast validate`".into(), validating.text(), cpu.text(), memory.text()],
        ],
    );
    Ok(())
}
