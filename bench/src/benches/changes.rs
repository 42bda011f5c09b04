//! The time from a changed file to its copy, and what a burst of changes costs the Source.

use crate::abreast::{self, Source};
use crate::report::Report;
use crate::run::{Server, log_path, settle, wait_until};
use crate::samples::Samples;
use crate::settings::Settings;
use anyhow::{Result, bail};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Single changes have this distance.
const QUIET: Duration = Duration::from_millis(300);
/// A copy that needs longer does not follow.
const LIMIT: Duration = Duration::from_secs(30);
/// How the Source waited before: until every path was quiet.
const FIXED: &[&str] = &["--wait-for-quiet"];
/// Files of a burst in one folder.
const TOGETHER: usize = 1_000;

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let (mut p50, mut p99, mut busy, mut fixed) =
        (Samples::default(), Samples::default(), Samples::default(), Samples::default());
    let count = settings.size(200, 30);
    for round in 0..settings.rounds {
        let [single, one_by_one] = follow(settings, &program, count, &[])?;
        let [before, _] = follow(settings, &program, count.min(50), FIXED)?;
        report.raw(
            &json!({ "round": round, "p50_ms": single.median(), "p99_ms": single.quantile(0.99),
            "one_after_another_ms": one_by_one.median(), "wait_for_quiet_ms": before.median() }),
        );
        p50.push(single.median());
        p99.push(single.quantile(0.99));
        busy.push(one_by_one.median());
        fixed.push(before.median());
    }
    report.at_most("a file changed until it is in a copy that follows, p50", &p50, 30.0, " ms");
    report.at_most("a file changed until it is in a copy that follows, p99", &p99, 100.0, " ms");
    let (mut cpu, mut cpu_before, mut seconds, mut seconds_before) =
        (Samples::default(), Samples::default(), Samples::default(), Samples::default());
    let files = settings.size(100_000, 5_000);
    for round in 0..settings.rounds {
        // In turn, and each in folders of its own.
        let (took, used) = burst(settings, &program, files, &[])?;
        let (took_before, used_before) = burst(settings, &program, files, FIXED)?;
        report.raw(&json!({ "round": round, "files": files, "seconds": took, "cpu": used,
            "wait_for_quiet": { "seconds": took_before, "cpu": used_before } }));
        seconds.push(took);
        cpu.push(used);
        seconds_before.push(took_before);
        cpu_before.push(used_before);
    }
    let share = cpu.over(&cpu_before);
    report.at_most(
        &format!("CPU of {files} new files, over that with --wait-for-quiet"),
        &share,
        1.0,
        " ×",
    );
    report.text(&format!(
        "`abreast sync --follow --push events` next to `abreast serve`, both with their defaults: {count} files written, each {} ms \
         after the copy has the previous file and timed from its closing until the copy has its content. Then {files} files of some \
         bytes, {TOGETHER} in a folder, written into a served folder as fast as one program can; CPU of `abreast serve` until all \
         are in its log. `--wait-for-quiet` is how it was before: every path waits until it was quiet for 200 ms.",
        QUIET.as_millis(),
    ));
    report.table(
        &["", "defaults", "--wait-for-quiet"],
        &[
            vec![
                "a single change until it is in the copy, p50, ms".into(),
                p50.text(),
                fixed.text(),
            ],
            vec!["the same, p99, ms".into(), p99.text(), String::new()],
            vec!["one change after another, p50, ms".into(), busy.text(), String::new()],
            vec!["burst: CPU of the Source, s".into(), cpu.text(), cpu_before.text()],
            vec!["burst: until all are recorded, s".into(), seconds.text(), seconds_before.text()],
        ],
    );
    Ok(())
}

/// Writes many files into a served folder: wall time until all are recorded, and CPU of the Source.
fn burst(settings: &Settings, program: &Path, files: usize, more: &[&str]) -> Result<(f64, f64)> {
    let place = settings.empty_folder("changes-burst")?;
    let (folder, data) = (place.join("folder"), place.join("data"));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("first"), "first")?;
    let source = serve(settings, program, &folder, &data, more)?;
    settle();
    let (begun, cpu) = (Instant::now(), source.server.cpu());
    for number in 0..files {
        let inner = folder.join(format!("d{}", number / TOGETHER));
        if number % TOGETHER == 0 {
            fs::create_dir(&inner)?;
        }
        fs::write(inner.join(format!("f{number}")), format!("content {number}"))?;
    }
    source.wait_position(files as u64)?;
    Ok((begun.elapsed().as_secs_f64(), source.server.cpu() - cpu))
}

fn serve(
    settings: &Settings,
    program: &Path,
    folder: &Path,
    data: &Path,
    more: &[&str],
) -> Result<Source> {
    let (folder, data) = (folder.to_string_lossy(), data.to_string_lossy());
    let mut arguments = vec![folder.as_ref(), "--data", data.as_ref(), "--name", "data"];
    arguments.extend(more);
    let source = Source::start(settings, program, "serve-changes", &arguments)?;
    source.wait_ready()?;
    Ok(source)
}

/// Milliseconds from closing a file until the copy has it: of single changes, and of one after
/// another.
fn follow(
    settings: &Settings,
    program: &Path,
    count: usize,
    more: &[&str],
) -> Result<[Samples; 2]> {
    let place = settings.empty_folder("changes-follow")?;
    let (folder, copy, data) = (place.join("folder"), place.join("copy"), place.join("data"));
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("first"), "first")?;
    let source = serve(settings, program, &folder, &data, more)?;
    let mut command = Command::new(program);
    // Without notifications it would poll again after an hour.
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
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(found)
}
