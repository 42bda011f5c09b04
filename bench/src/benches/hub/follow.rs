//! How soon is a changed file in a copy that listens?

use crate::abreast::Source;
use crate::report::Report;
use crate::run::{Server, log_path, settle, timed, wait_until};
use crate::samples::Samples;
use crate::settings::Settings;
use anyhow::{Result, bail};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the Source waits for a file to be quiet.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// After so long without a change the next one is told at once; before, notifications keep their distance.
const QUIET: Duration = Duration::from_millis(300);
/// A copy that needs longer does not listen.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run(settings: &Settings, program: &Path, report: &mut Report) -> Result<()> {
    let (mut found, mut busy) = (Samples::default(), Samples::default());
    let (_, help) = timed(program, &["sync", "--help"], &settings.folder, &log_path(&settings.folder, "help")?)?;
    let count = settings.size(100, 20);
    if help.contains("--push") {
        for round in 0..settings.rounds {
            let [times, one_by_one] = follow(settings, program, count)?;
            report.raw(&json!({ "round": round, "disk_to_file_ms": times.median(), "p99_ms": times.quantile(0.99),
                "one_after_another_ms": one_by_one.median() }));
            found.push(times.median());
            busy.push(one_by_one.median());
        }
    } else {
        eprintln!("   this abreast does not listen: `sync` has no `--push`");
    }
    report.at_most("a file changed until it is in a copy that listens, p50", &found, 100.0, " ms");
    report.text(&format!(
        "`abreast sync --follow --push events` beside `abreast serve`, {count} files written, each {} ms after the copy has \
         the one before and timed from its closing until the copy has its content, less the debounce of {} ms; median of a \
         round. Written at once when the copy has the one before, when notifications of one topic keep their distance, it \
         is {} ms.",
        QUIET.as_millis(),
        DEBOUNCE.as_millis(),
        busy.text()
    ));
    Ok(())
}

fn follow(settings: &Settings, program: &Path, count: usize) -> Result<[Samples; 2]> {
    let place = settings.empty_folder("hub-follow")?;
    let (folder, copy, data) = (place.join("folder"), place.join("copy"), place.join("data"));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("first"), "first")?;
    let debounce = format!("{}ms", DEBOUNCE.as_millis());
    let (shown, data) = (folder.to_string_lossy(), data.to_string_lossy());
    let arguments = [shown.as_ref(), "--data", data.as_ref(), "--name", "data", "--debounce", &debounce];
    let source = Source::start(settings, program, "serve-follow", &arguments)?;
    source.wait_ready()?;
    let mut command = Command::new(program);
    // Without what it hears it would look again after an hour.
    command.args(["sync", &source.url()]).arg(&copy).args([
        "--follow",
        "--interval",
        "1h",
        "--push",
        "events",
        "--quiet",
    ]);
    let mut sync = Server::start(&mut command, &log_path(&settings.folder, "sync-follow")?)?;
    let mut is_there = |name: &str, content: &str, limit: Duration| {
        let path = copy.join(name);
        let begun = Instant::now();
        while fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
            if begun.elapsed() > limit || sync.has_ended() {
                bail!("{name} did not come; see logs/sync-follow.log");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(begun)
    };
    is_there("first", "first", LIMIT)?;
    // Once it listens, changes come one by one.
    wait_until("the copy listens", LIMIT, || {
        fs::write(folder.join("second"), "second")?;
        Ok(is_there("second", "second", Duration::from_secs(5)).is_ok())
    })?;
    settle();
    let mut found = [Samples::default(), Samples::default()];
    for (place, (times, pause)) in found.iter_mut().zip([QUIET, Duration::ZERO]).enumerate() {
        for number in 0..count {
            std::thread::sleep(pause);
            let (name, content) = (format!("file-{place}-{number}"), format!("content {number}"));
            fs::write(folder.join(&name), &content)?;
            let begun = is_there(&name, &content, LIMIT)?;
            times.push((begun.elapsed().saturating_sub(DEBOUNCE)).as_secs_f64() * 1e3);
        }
    }
    Ok(found)
}
