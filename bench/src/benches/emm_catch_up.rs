//! Entities that changed, caught up with from pages that have their patches, beside a request for
//! each.

use crate::abreast::{self, Source};
use crate::delay::DelayProxy;
use crate::http::Http;
use crate::report::Report;
use crate::run::{Usage, log_path, settle, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::thesaurus::{self, STATEMENTS};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const ROUND_TRIP: Duration = Duration::from_millis(50);
/// Requests that are made one after the other.
const REQUESTS: usize = 200;
/// A file system in memory.
const MEMORY: &str = "/dev/shm";
/// About the length of a description.
const DESCRIPTION_BYTES: usize = 1_320;
/// Below the server's own address.
const FEED: &str = "data/emm/0.1/patches";

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let entities = settings.size(100_000, 5_000);
    let states = [None, Some(1)].map(|every| thesaurus::file(settings, entities, every));
    let states = states.into_iter().collect::<Result<Vec<_>>>()?;
    let [data, original] = ["emm-data", "emm-original"].map(|name| settings.empty_folder(name));
    let (data, original) = (data?, original?);
    let write = |state: usize| -> Result<()> {
        let part = data.join("state.nt.part");
        std::fs::copy(&states[state], &part)?;
        Ok(std::fs::rename(part, original.join("state.nt"))?)
    };
    write(0)?;
    let proxy = DelayProxy::start(ROUND_TRIP)?;
    let (url, store) = (proxy.url(), data.join("store"));
    let (folder, store) = (original.to_string_lossy(), store.to_string_lossy());
    let arguments = [&*folder, "--data", &*store, "--origin", "rdf", "--name", "data"];
    let more = ["--versions", "all", "--base-url", &url];
    let source = Source::start(settings, &program, "serve-emm", &[&arguments[..], &more].concat())?;
    source.wait_ready()?;
    proxy.lead_to(source.address);
    let mut position = entities as u64;
    source.wait_position(position)?;
    let copies = ["emm-nquads", "emm-folder"].map(|name| settings.empty_folder(name));
    let copies = copies.into_iter().collect::<Result<Vec<_>>>()?;
    let memory = tempfile::tempdir_in(MEMORY).context("no file system in memory")?;
    let targets = [
        format!("nquads:{}", copies[0].display()),
        copies[1].display().to_string(),
        memory.path().join("emm-folder-in-memory").display().to_string(),
    ];
    let catch_up = |target: &str| -> Result<(Usage, String)> {
        let feed = format!("{url}{FEED}");
        let base = "http://id.example.org/authorities/";
        let arguments = ["sync", &feed, target, "--json", "--base", base];
        let count = if target.starts_with("nquads:") { 4 } else { 6 };
        timed(&program, &arguments[..count], &settings.folder, &log_path(&settings.folder, "sync")?)
    };
    for target in &targets {
        catch_up(target)?;
    }
    let plain = settings.empty_folder("emm-plain")?;
    replace_files(&plain, entities)?;
    let mut caught_up: [Samples; 3] = Default::default();
    let mut replaced: [Samples; 3] = Default::default();
    let (mut plainly, mut singly) = (Samples::default(), Samples::default());
    for round in 0..settings.rounds {
        write((round + 1) % 2)?;
        position += entities as u64;
        source.wait_position(position)?;
        settle();
        for ((target, samples), replaced) in targets.iter().zip(&mut caught_up).zip(&mut replaced) {
            let before = source.responses()?;
            let (usage, printed) = catch_up(target)?;
            let requests = source.responses()? - before;
            let (patched, rate) = carried_out(&printed)?;
            ensure!(patched == entities as u64, "{patched} were patched, of {entities}");
            replaced.push(rate);
            ensure!(requests < 100 + entities as u64 / 100, "{requests} requests were sent");
            report.raw(&json!({"round": round, "target": target.rsplit('/').next(), "entities": entities, "requests": requests,
                "replaced_a_second": rate, "usage": usage.json()}));
            samples.push(usage.seconds);
        }
        settle();
        plainly.push(replace_files(&plain, entities)?);
        report.raw(&json!({"round": round, "files_replaced_a_second": plainly.last()}));
        singly.push(requested_singly(&source, &url)? / REQUESTS as f64 * entities as f64);
        report.raw(&json!({"round": round, "sequential_s": singly.last()}));
    }
    let [nquads, folder, in_memory] = &caught_up;
    let [_, on_disk, replaced] = &replaced;
    let count = number(entities as f64);
    report.at_least(
        &format!(
            "{count} changed entities into N-Quads: how many times faster than a request each"
        ),
        &singly.over(nquads),
        100.0,
        " ×",
    );
    report.at_least(
        &format!(
            "{count} changed entities into a folder: how many times faster than a request each"
        ),
        &singly.over(folder),
        100.0,
        " ×",
    );
    let rate = |samples: &Samples| samples.map(|seconds| entities as f64 / seconds);
    report.at_least("entities replaced a second in a folder", on_disk, 10_000.0, "");
    report.at_least(
        "entities replaced a second in a folder of a file system in memory",
        replaced,
        10_000.0,
        "",
    );
    report.text(&format!(
        "Each of {count} entities of {STATEMENTS} statements has changed by one statement. `abreast sync \
         …/data/emm/0.1/patches`, from the start of the process to its end, over a line of {} ms; for comparison, requests for the \
         descriptions over the same line, one after the other on one connection: {REQUESTS} requests were timed, and their time \
         multiplied by {}. Entities replaced a second: once the pages are read and the plan is made. In memory ({MEMORY}), the \
         figure is the program's own time. A loop of one thread that writes as many files of the same size on the disk, each under \
         another name first, and renames them over the old ones: {} a second; the folder on the disk reaches {} × of this rate. \
         The first target of a round pays for making the pages, which the server keeps for the others.",
        ROUND_TRIP.as_millis(),
        entities / REQUESTS,
        plainly.text(),
        on_disk.over(&plainly).text(),
    ));
    let row =
        |name: &str, samples: &Samples| vec![name.to_owned(), samples.text(), rate(samples).text()];
    report.table(
        &["", "s", "entities a second"],
        &[
            row("patches into files of N-Quads", nquads),
            row("patches into a folder", folder),
            row("patches into a folder in memory", in_memory),
            row("a request each, extrapolated", &singly),
        ],
    );
    Ok(())
}

/// Replaces as many files as there are entities, of the size of a description; how many a second.
fn replace_files(folder: &Path, count: usize) -> Result<f64> {
    let bytes = [b'a'; DESCRIPTION_BYTES];
    let begun = Instant::now();
    for number in 0..count {
        let part = folder.join(format!(".part{number}"));
        std::fs::write(&part, bytes)?;
        std::fs::rename(part, folder.join(format!("sh{number:08}")))?;
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// How many entities were patched, and how many a second after the plan was made.
fn carried_out(printed: &str) -> Result<(u64, f64)> {
    let events = printed.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let (mut patched, mut rate) = (None, None);
    for event in events {
        match (event["type"].as_str(), event["phase"].as_str()) {
            (Some("summary"), _) => patched = event["patched"].as_u64(),
            (Some("status"), Some("fetching")) if rate.is_none() => {
                rate = event["done"].as_f64().zip(event["seconds"].as_f64());
            }
            _ => {}
        }
    }
    let (done, seconds) = rate.context("no status was printed")?;
    Ok((patched.context("no summary was printed")?, done / seconds))
}

/// Seconds for the descriptions of the entities that changed last, one after the other.
fn requested_singly(source: &Source, url: &str) -> Result<f64> {
    let mut near = Http::connect(&source.url())?;
    let entry: Value = serde_json::from_slice(&near.get_ok(&format!("/{FEED}"))?)?;
    let last = entry["last"]["id"].as_str().context("the feed has no last page")?;
    let path_of = |url: &str| -> Result<String> {
        let rest = url.split_once("://").context("a URL")?.1;
        Ok(rest[rest.find('/').context("a path")?..].to_owned())
    };
    let page: Value = serde_json::from_slice(&near.get_ok(&path_of(last)?)?)?;
    let items = page["orderedItems"].as_array().context("the page has no activities")?;
    let addresses = items.iter().filter_map(|item| item["object"]["url"][0]["href"].as_str());
    let paths = addresses.take(REQUESTS).map(path_of).collect::<Result<Vec<_>>>()?;
    ensure!(paths.len() == REQUESTS, "the last page has {} addresses", paths.len());
    let mut far = Http::connect(url)?;
    let begun = Instant::now();
    for path in &paths {
        far.get_ok(path)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}
