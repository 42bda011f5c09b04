//! Cost of one change among ten thousand and a million resources; memory and start-up.

use crate::abreast::{self, Source};
use crate::http::{Http, locs, path_of};
use crate::report::Report;
use crate::run::settle;
use crate::same;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::tree::{Profile, Tree};
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A file is checked when it was quiet for this long; taken off the figures.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// Changes timed a round.
const CHANGES: usize = 50;
/// A change that is not visible by then never will be.
const LOST: Duration = Duration::from_secs(30);

struct Set {
    tree: Tree,
    latency: Samples,
    all: Vec<f64>,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let sizes = [settings.size(10_000, 1_000), settings.size(1_000_000, 20_000)];
    let mut sets = Vec::new();
    for size in sizes {
        let folder = settings.folder.join(format!("tiny-{size}/data"));
        sets.push(Set {
            tree: Tree::open(&folder, size, Profile::Tiny)?,
            latency: Samples::default(),
            all: Vec::new(),
        });
    }
    let mut memory = Samples::default();
    let mut first_scan = 0.0;
    let mut sources = Vec::new();
    for set in &sets {
        let store = settings.empty_folder(&format!("publish-store-{}", set.tree.count))?;
        let start = Instant::now();
        let source = serve(settings, &program, &set.tree.folder, &store)?;
        source.wait_ready()?;
        first_scan = start.elapsed().as_secs_f64();
        let lists = read_all(&source)?;
        let peak = source.server.peak_memory_mib()?;
        report.raw(
            &json!({"resources": set.tree.count, "first_scan": first_scan, "lists": lists, "serve_memory_mib": peak}),
        );
        if set.tree.count == sizes[1] {
            memory.push(peak);
        }
        sources.push((source, store));
    }

    // In turn, round by round; both servers run all the time.
    for round in 0..settings.rounds {
        for (set, (source, _)) in sets.iter_mut().zip(&sources) {
            settle();
            let found = change_and_see(&set.tree.folder, source, round)?;
            report.raw(&json!({"round": round, "resources": set.tree.count, "latency_ms": found.median(), "max_ms": found.max()}));
            set.latency.push(found.median());
            set.all.push(found.max());
        }
    }
    let peak_after = sources[1].0.server.peak_memory_mib()?;

    // A copy of the larger set: memory of `sync`.
    let copy = settings.empty_folder("publish-copy")?;
    settings.wait_for_deletions();
    settle();
    let usage = abreast::sync(settings, &program, &sources[1].0.url(), &copy, &[])?;
    let files = same::check(&sets[1].tree.folder, &copy, None)?;
    report.raw(&json!({"resources": files, "sync": usage.json()}));

    // Starting again on what is known.
    let mut restart = Samples::default();
    let (source, store) = sources.pop().context("no server")?;
    drop(source);
    for round in 0..settings.rounds {
        settle();
        let start = Instant::now();
        let source = serve(settings, &program, &sets[1].tree.folder, &store)?;
        source.wait_ready()?;
        restart.push(start.elapsed().as_secs_f64());
        report.raw(&json!({"round": round, "restart": start.elapsed().as_secs_f64()}));
    }
    drop(sources);

    let (few, many) = (number(sizes[0] as f64), number(sizes[1] as f64));
    let ratio = sets[1].latency.over(&sets[0].latency);
    report.at_most(
        &format!("time to publish one change among {many}, over the same among {few}"),
        &ratio,
        1.2,
        " ×",
    );
    report.at_most(
        &format!("memory of `serve`, {many} resources, all lists served"),
        &memory,
        96.0,
        " MiB",
    );
    let sync_memory = [usage.memory_mib].into_iter().collect();
    report.at_most(
        &format!("memory of `sync`, baseline of {many} resources"),
        &sync_memory,
        96.0,
        " MiB",
    );
    report.at_most(&format!("start on {many} known resources until ready"), &restart, 2.0, " s");
    report.text(&format!(
        "Files of about 20 bytes, 1,000 a folder. A change is timed from closing the written file until a client that \
         requests the open Change List repeatedly (conditionally, at most once a millisecond) reads it there, less the \
         debounce of {} ms; median of {CHANGES} changes a round. Memory is the peak of the process.",
        DEBOUNCE.as_millis()
    ));
    let rows: Vec<Vec<String>> = sets
        .iter()
        .map(|set| {
            let worst = set.all.iter().copied().fold(0.0, f64::max);
            vec![number(set.tree.count as f64), set.latency.text(), number(worst)]
        })
        .collect();
    report.table(&["resources", "change visible after, ms", "slowest, ms"], &rows);
    report.table(
        &[&format!("with {many} resources"), ""],
        &[
            vec!["first scan until ready, s".into(), number(first_scan)],
            vec!["`serve`: peak memory after all lists were served, MiB".into(), memory.text()],
            vec!["`serve`: peak memory at the end, MiB".into(), number(peak_after)],
            vec!["`sync`: baseline, s".into(), number(usage.seconds)],
            vec!["`sync`: CPU, µs a resource".into(), number(usage.cpu * 1e6 / sizes[1] as f64)],
            vec!["`sync`: peak memory, MiB".into(), number(usage.memory_mib)],
            vec!["start until ready, s".into(), restart.text()],
        ],
    );
    Ok(())
}

fn serve(settings: &Settings, program: &Path, folder: &Path, store: &Path) -> Result<Source> {
    let log = format!("serve-{}", store.file_name().unwrap_or_default().display());
    let (folder, store) = (folder.to_string_lossy(), store.to_string_lossy());
    let debounce = format!("{}ms", DEBOUNCE.as_millis());
    // No change list is closed on the way, so that one document is the open one throughout.
    let more = [
        "--data",
        &store,
        "--name",
        "data",
        "--debounce",
        &debounce,
        "--wait-for-quiet",
        "--changes-per-list",
        "50000",
    ];
    let arguments: Vec<&str> = [folder.as_ref()].into_iter().chain(more).collect();
    Source::start(settings, program, &log, &arguments)
}

/// Reads every document of the set, as it is and in gzip; returns how many.
fn read_all(source: &Source) -> Result<usize> {
    let mut http = Http::connect(&source.url())?;
    let mut paths: Vec<String> = [
        "/.well-known/resourcesync",
        "/sitemap.xml",
        "/data/capabilitylist.xml",
        "/data/changelist.xml",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push("/data/resourcelist.xml".to_owned());
    for index in ["/data/resourcelist.xml", "/sitemap.xml"] {
        let document = http.get_ok(index)?;
        if String::from_utf8_lossy(&document).contains("<sitemapindex") {
            paths.extend(locs(&document).iter().map(|loc| path_of(loc).to_owned()));
        }
    }
    for path in &paths {
        http.get_ok(path)?;
        http.get(path, "Accept-Encoding: gzip\r\n")?;
    }
    Ok(paths.len())
}

/// Milliseconds from closing a file to reading its name in the open Change List, less the debounce.
fn change_and_see(folder: &Path, source: &Source, round: usize) -> Result<Samples> {
    let mut http = Http::connect(&source.url())?;
    let path = "/data/changelist.xml";
    let mut tag = http.get(path, "")?.tag.context("the Change List has no ETag")?;
    let mut found = Samples::default();
    for change in 0..CHANGES {
        let name = format!("d0000/change-{round}-{change}.xml");
        fs::write(folder.join(&name), format!("<r>{round} {change}</r>\n"))?;
        let start = Instant::now();
        loop {
            let asked = Instant::now();
            let answer = http.get(path, &format!("If-None-Match: {tag}\r\n"))?;
            if answer.status == 200 {
                tag = answer.tag.context("the Change List has no ETag")?;
                if String::from_utf8_lossy(&answer.body).contains(&name) {
                    break;
                }
            }
            if start.elapsed() > LOST {
                bail!("a change of {name} is not in the Change List after {} s", LOST.as_secs());
            }
            std::thread::sleep(Duration::from_millis(1).saturating_sub(asked.elapsed()));
        }
        found.push((start.elapsed().as_secs_f64() - DEBOUNCE.as_secs_f64()) * 1_000.0);
        fs::remove_file(folder.join(&name))?;
        // The removal is published before the next change is timed.
        let start = Instant::now();
        let gone = loop {
            let answer = http.get(path, &format!("If-None-Match: {tag}\r\n"))?;
            if answer.status == 200 {
                tag = answer.tag.context("the Change List has no ETag")?;
                break true;
            }
            if start.elapsed() > LOST {
                break false;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        anyhow::ensure!(
            gone,
            "the removal of {name} is not in the Change List after {} s",
            LOST.as_secs()
        );
    }
    Ok(found)
}
